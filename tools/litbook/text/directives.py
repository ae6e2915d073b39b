"""Comments -> directives, each on the statement that it belongs to.

The syntax tree says where the statements are; `tokenize` says where the comments are, so that a `#` inside a
string is no directive and a directive may stand on any line of a multi-line statement. Only what may hold a
directive is tokenized, since that takes as long as everything else together.
"""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import NamedTuple

from litbook.errors import Problem
from litbook.text.lecture import File, Lecture, Watch
from litbook.text.tree import Anchor, Definition, blocks, own_nodes

DIRECTIVES = {  # each with what it says: of this the reference in the docs is made
    "inspect": "show these expressions, after the line has run: `x, f(y) as B`",
    "measure": "the same, for what depends on the machine or the clock: it is never compared",
    "clear": "the player stops showing these expressions",
    "hide": "the line, block or definition runs and is not shown; behind the docstring of a file, all of it",
    "stepover": "calls on this line run at full speed, unrecorded; on a `def` always",
    "fails": "on an `assert`: it is meant to fail, at least once in a run",
    "zero": "on a claim: that it is zero, or nothing, is the point",
}
FOREIGN: dict[str, str] = {}  # another tool's, and which of ours each is; a package of its words fills it
Anchors = list[tuple[int, int, Anchor]]  # line and column where one begins, sorted
_FIRST = re.compile(r"(?:(?P<own>#)\s*|(?<!\S))@(?P<name>[A-Za-z_][\w-]*)")
_MARK = re.compile(r"(?P<own>#)\s*@(?P<any>[A-Za-z_][\w-]*)|(?<!\S)@(?P<known>[A-Za-z_]\w*)|(?P<remark>#)")
_STRING = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_UNIT = re.compile(r"(?P<expression>.+?)\s+as\s+(?P<unit>[^\s,()\[\]{}'\"]+)\s*", re.DOTALL)


@dataclass(frozen=True)
class Directive:
    """A directive as it stands in a comment. `start` and `end` are the lines of its logical line."""

    name: str
    content: str
    line: int
    column: int  # 0-based, in characters
    start: int | None  # None: the comment stands outside every statement
    end: int = 0
    said: bool = False  # it stands within a remark

    def problem(self, file: File, slug: str, what: str, way_out: str) -> Problem:
        """What is wrong with it, at its place."""
        way_out += f"; as a word of the remark write `@{self.name}`" * self.said
        return Problem(slug, what, file.place(self.line, self.column + 1), way_out)


def directives_in(file: File, anchors: Anchors | None, problems: list[Problem]) -> list[Directive]:
    """The directives of all comments, in order, each with the first line of its statement.

    `anchors` say where the statements begin; None where the text has no tree.
    """
    directives: list[Directive] = []
    lines = file.lines
    try:
        for logical in _logical_lines(lines) if anchors is None else _near_directives(lines, anchors):
            _take(file, logical, directives)
    except (tokenize.TokenError, SyntaxError, UnicodeEncodeError):
        pass  # the parser has reported it, with a better message
    for directive in directives:
        _check_name(file, directive, problems)
    return directives


class _Logical(NamedTuple):
    """The first and the last of the lines that one logical line takes, and its comments.

    A comment outside every statement is one by itself, without lines.
    """

    first: int | None
    last: int
    comments: list[tuple[int, int, str]]  # line, column, text


def _logical_lines(lines: Sequence[str], above: int = 0) -> Iterator[_Logical]:
    """What `tokenize` makes of these lines. `above` says how many stand before them."""
    first: int | None = None
    comments: list[tuple[int, int, str]] = []
    for token in tokenize.generate_tokens((f"{line}\n" for line in lines).__next__):
        if token.type == tokenize.COMMENT:
            comments.append((token.start[0] + above, token.start[1], token.string))
            if first is None:
                yield _Logical(None, 0, comments)
                comments = []
        elif token.type == tokenize.NEWLINE:
            yield _Logical(first, token.start[0] + above, comments)
            first, comments = None, []
        elif first is None and token.type not in _QUIET:
            first = token.start[0] + above


# What stands before, between and behind logical lines.
_QUIET = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}


def _near_directives(lines: list[str], anchors: Anchors) -> Iterator[_Logical]:
    """Every logical line that may hold a directive, and some others.

    `tokenize` takes as long for a whole lecture as everything else here together.
    """
    done = 0  # lines
    for line, text in enumerate(lines, 1):
        if line > done and "@" in text and "#" in text and _FIRST.search(text, text.index("#")):
            first, done = _whole_lines_around(lines, anchors, line)
            code, _, comment = text.partition("#")
            if first == done and code.strip() and not _QUOTE.search(code):  # nor is there a string above it
                yield _Logical(line, line, [(line, len(code), f"#{comment}")])
            else:
                yield from _one_by_one(lines, first, done)


_QUOTE = re.compile("['\"]")


def _one_by_one(lines: list[str], first: int, last: int) -> Iterator[_Logical]:
    """The logical lines from `first` to `last`.

    Each is read as if it were alone, so that `else:` below an indented statement is no dedent to nowhere.
    """
    while first <= last:
        behind = last + 1
        for logical in _logical_lines(lines[first - 1 : last], first - 1):
            yield logical
            if logical.first is not None:
                behind = logical.last + 1
                break
        first = behind


def _whole_lines_around(lines: list[str], anchors: Anchors, line: int) -> tuple[int, int]:
    """The first and the last of the lines around `line` from one statement that begins a line to the next.

    These are logical lines, whole: `else:` and comments belong to the statement above them.
    """
    after = bisect_right(anchors, line, key=lambda anchor: anchor[0])
    above = (anchors[i] for i in range(after - 1, -1, -1) if _begins_a_line(lines, anchors[i]))
    below = (anchors[i] for i in range(after, len(anchors)) if _begins_a_line(lines, anchors[i]))
    last = next(below, (len(lines) + 1,))[0] - 1
    while last > line and not lines[last - 1].strip():
        last -= 1
    return next(above, (1,))[0], last


def _begins_a_line(lines: list[str], anchor: tuple[int, int, Anchor]) -> bool:
    """Whether a logical line begins with it: a statement, and none behind a `;`, a `:` or a backslash.

    What a `case` or a decorator says may stand in brackets on a line of its own.
    """
    line, column, node = anchor
    if getattr(node, "lineno", None) != line or lines[line - 1][:column].strip():
        return False
    return line == 1 or not lines[line - 2].endswith("\\")


def _take(file: File, logical: _Logical, into: list[Directive]) -> None:
    for line, column, text in logical.comments:
        marks = _marks(text)
        if marks:
            file.cuts.append((line, column + marks[0][1]))
        lines = logical.first, logical.last
        for name, at, content, said in marks:
            if ours := FOREIGN.get(name, name):
                into.append(Directive(ours, content, line, column + at, *lines, said))


def _marks(comment: str) -> list[tuple[str, int, str, bool]]:
    """Name, column and content of the directives in a comment, and whether each stands within a remark.

    A remark may stand before them, and begins anew at a `#` without `@`. There, also what is nearly a
    directive counts, as misspelt. What stands in a quoted string of an expression does not.
    """
    candidates = _FIRST.finditer(comment)
    first = next((it for it in candidates if it["own"] or _nearest(it["name"], 0.8)), None)
    if first is None:
        return []
    blank = _STRING.sub(lambda string: "_" * len(string[0]), comment[first.end() :])
    found_marks = _MARK.finditer(comment[: first.end()] + blank, first.end())
    marks = [it for it in found_marks if not it["known"] or it["known"] in (*DIRECTIVES, *FOREIGN)]
    ends = [mark.start() for mark in marks] + [len(comment)]
    said = not first["own"]
    found = [(first["name"], first.start(), comment[first.end() : ends[0]].strip(), said)]
    for mark, end in zip(marks, ends[1:], strict=True):
        said = bool(mark["remark"]) or (said and not mark["own"])
        if name := mark["any"] or mark["known"]:
            found[-1] = *found[-1][:2], found[-1][2].removesuffix(","), found[-1][3]
            found.append((name, mark.start(), comment[mark.end() : end].strip(), said))
    return found


def _nearest(name: str, likeness: float = 0.6) -> list[str]:
    """The directive that a name is, or is nearly; none where nothing is as like."""
    return get_close_matches(name, DIRECTIVES, 1, likeness)


def _check_name(file: File, directive: Directive, problems: list[Problem]) -> None:
    if directive.name in DIRECTIVES:
        return
    near = _nearest(directive.name)
    known = ", ".join(f"@{name}" for name in DIRECTIVES)
    way_out = f"did you mean @{near[0]}?" if near else f"there are: {known}"
    what = f"unknown directive @{directive.name}"
    problems.append(directive.problem(file, "unknown-directive", what, way_out))


def watches_in(file: File, directive: Directive, problems: list[Problem]) -> list[Watch]:
    """The expressions of an `@inspect`, `@measure` or `@clear`."""
    if directive.name not in ("inspect", "measure", "clear"):
        if directive.name in DIRECTIVES and directive.content:
            what = f"@{directive.name} takes nothing, but {directive.content!r} follows it"
            problems.append(directive.problem(file, "bad-directive", what, "remove what follows it"))
        return []
    if not directive.content:
        way_out = f"write what to show: # @{directive.name} x.shape"
        what = f"@{directive.name} names no expression"
        problems.append(directive.problem(file, "bad-directive", what, way_out))
        return []
    try:
        return [
            Watch(directive.name, text, unit, directive.line, node, file.number)
            for text, unit, node in _expressions(directive.content)
        ]
    except SyntaxError as error:
        what = f"@{directive.name} cannot read {error.text!r}: {error.msg}"
        way_out = "write Python expressions, separated by commas, each with an optional `as UNIT`"
        problems.append(directive.problem(file, "bad-expression", what, way_out))
    return []


def _expressions(content: str) -> Iterator[tuple[str, str | None, ast.expr]]:
    """`a, f(b, c) as B` -> (`a`, None, node), (`f(b, c)`, `B`, node).

    Raises `SyntaxError` where one does not parse.
    """
    pieces = content.split(",")
    while pieces:
        for taken in range(1, len(pieces) + 1):
            parsed = _expression(",".join(pieces[:taken]).strip())
            if parsed is not None:
                break
        else:
            raise _unreadable(pieces)
        yield from parsed
        del pieces[:taken]


def _expression(text: str) -> list[tuple[str, str | None, ast.expr]] | None:
    """One expression with its unit, or names and attributes separated by spaces; None where it is neither."""
    match = _UNIT.fullmatch(text)
    bare, unit = (match["expression"], match["unit"]) if match else (text, None)
    words = bare.split()
    if len(words) > 1 and all(_NAME.fullmatch(word) and _parsed(word) for word in words):
        if _parsed(bare) is None:
            return [(word, unit, _must_parse(word)) for word in words]
    node = _parsed(bare)
    return None if node is None else [(bare, unit, node)]


def _parsed(text: str) -> ast.expr | None:
    try:
        return _must_parse(text)
    except SyntaxError:
        return None


def _must_parse(text: str) -> ast.expr:
    """The expression `text`; SyntaxError also for what only the compiler refuses, and for what assigns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text, mode="eval")
            compile(tree, "<expression>", "eval", dont_inherit=True)
        except (ValueError, RecursionError, MemoryError) as error:  # a NUL byte; nested too deep
            raise SyntaxError(str(error)) from None
    if any(isinstance(node, ast.NamedExpr) for node in own_nodes(tree)):
        raise SyntaxError("what is shown may not assign; it would change the lecture")
    return tree.body


def _unreadable(pieces: list[str]) -> SyntaxError:
    """The error of the first piece, or of as many as its brackets and quotes go on for."""
    texts = [",".join(pieces[:taken]).strip() for taken in range(1, len(pieces) + 1)]
    errors = [_error(text) for text in texts]
    return next((error for error in errors if not _OPEN.search(error.msg)), errors[0])


_OPEN = re.compile("never closed|unterminated")


def _error(text: str) -> SyntaxError:
    match = _UNIT.fullmatch(text)
    problem = SyntaxError("invalid syntax")
    try:
        _must_parse(match["expression"] if match else text)
    except SyntaxError as error:
        problem = SyntaxError(error.msg)
    problem.text = text
    return problem


def attach(
    found: Lecture, file: File, directives: list[Directive], anchors: Anchors, problems: list[Problem]
) -> None:
    """Give every directive to the statement on whose logical line it stands."""
    for directive in directives:
        watches = watches_in(file, directive, problems)
        anchor = _anchor(anchors, directive)
        if anchor is None:
            if directive.name in DIRECTIVES:  # an unknown one has been reported
                problems.append(_homeless(file, directive))
            continue
        if directive.name == "hide":
            found.hidden.add(anchor)
            if anchor is file.tree.body[0] and ast.get_docstring(file.tree, clean=False) is not None:
                _hide_file(found, file, directive, problems)
        elif directive.name == "stepover":
            _step_over(found, file, directive, anchor, problems)
        elif directive.name == "zero":
            found.zeros[anchor] = file.place(directive.line, directive.column + 1)
        elif directive.name == "fails":
            found.fails.add(anchor)
            if not isinstance(anchor, ast.Assert):
                what, way_out = "@fails stands at no assert", "put it on the line of the assert"
                place = file.place(directive.line, directive.column + 1)
                problems.append(Problem("bad-directive", what, place, way_out))
        for watch in watches:
            found.watches_of.setdefault(anchor, []).append(len(found.watches))
            found.watches.append(watch)


def anchors_in(tree: ast.Module) -> Anchors:
    """Line and column where every statement, decorator, `except` and `case` begins, sorted."""
    anchors: Anchors = []
    for node in blocks(tree):
        if isinstance(node, ast.match_case):
            anchors.append((node.pattern.lineno, node.pattern.col_offset, node))
        else:
            beginnings = [*getattr(node, "decorator_list", ()), node]
            anchors.extend((at.lineno, at.col_offset, node) for at in beginnings)
    return sorted(anchors, key=lambda anchor: anchor[:2])


def _anchor(anchors: Anchors, directive: Directive) -> Anchor | None:
    """What begins last on the directive's logical line: of `if x: y = 1  # @inspect y` the assignment."""
    if directive.start is None:
        return None
    after = bisect_right(anchors, directive.end, key=lambda anchor: anchor[0])
    if after == 0 or anchors[after - 1][0] < directive.start:
        return None
    return anchors[after - 1][2]


def _homeless(file: File, directive: Directive) -> Problem:
    what = f"@{directive.name} stands on a line that is no statement (`else:`, `finally:`)"
    way_out = "put it on a statement of the block"
    if directive.start is None:
        what = f"@{directive.name} stands on a line of its own and belongs to no statement"
        way_out = "put it at the end of the statement it is about"
    return directive.problem(file, "homeless-directive", what, way_out)


def _hide_file(found: Lecture, file: File, directive: Directive, problems: list[Problem]) -> None:
    """Hide everything in a file, unless it has sections."""
    kinds = {spec.kind for spec in found.functions if spec.file == file.number}
    if kinds & {"main", "part", "section"}:
        what = "@hide on the docstring of a file with sections would leave nothing to show"
        way_out = "put it on what is not to be shown"
        problems.append(directive.problem(file, "bad-directive", what, way_out))
    found.hidden.update(file.tree.body)


def _step_over(
    found: Lecture, file: File, directive: Directive, anchor: Anchor, problems: list[Problem]
) -> None:
    index = found.function_of.get(anchor)
    if index is not None and found.functions[index].kind in ("main", "part", "section"):
        what = f"@stepover on the section {found.functions[index].name!r} would leave nothing to show"
        way_out = "put it on the line that calls at full speed"
        problems.append(directive.problem(file, "bad-directive", what, way_out))
    found.stepover.add(anchor)
    if isinstance(anchor, Definition):
        found.untouched.add(anchor)


def allow_zeros(found: Lecture, problems: list[Problem]) -> None:
    """The author says of claims, known by now, that zero, or nothing, is the point: see `vacuous`."""
    for anchor, place in found.zeros.items():
        number = found.claim_of.get(anchor)  # type: ignore[call-overload]
        if number is not None:
            found.claims[number] = replace(found.claims[number], zero=True)
        else:
            what = "@zero stands at no claim"
            problems.append(Problem("bad-directive", what, place, "put it on the claim's line"))


def hide(found: Lecture) -> None:
    """Mark hidden statements, and everything inside them, in the numbered lists."""
    for anchor in list(found.hidden):
        for node in ast.walk(anchor):
            number = found.statement_of.get(node)  # type: ignore[call-overload]
            if number is not None:
                found.statements[number] = replace(found.statements[number], kind="hidden")
            index = found.function_of.get(node)
            if index is not None:
                found.functions[index] = replace(found.functions[index], hidden=True)
