"""Comments -> directives, each on the statement that it belongs to.

The syntax tree says where the statements are; `tokenize` says where the comments are, so that a `#` inside a
string is no directive and a directive may stand on any line of a multi-line statement. Only what may hold a
directive is tokenized, since that takes as long as everything else together.
"""

from __future__ import annotations

import ast
import contextlib
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import NamedTuple

from litbook.finding import Finding
from litbook.lecture.model import SECTIONS, Allowance, Lecture, Watch
from litbook.python.file import File
from litbook.python.nodes import (
    Anchor,
    DefinitionNode,
    FunctionNode,
    blocks,
    first_line,
    has_docstring,
    own_nodes,
    parameters,
)
from litbook.python.scopes import targets

DIRECTIVES = {  # each with what it says: of this the reference in the docs is made
    "inspect": "show these expressions, after the line has run: `x, f(y) as B`; alone, what the line assigns",
    "measure": "the same, for what depends on the machine or the clock: it is never compared",
    "clear": "the player stops showing these expressions",
    "hide": "the line, block or definition runs and is not shown; behind the docstring of a file, all of it",
    "show": "on an `assert`: the comparison is the lesson; a page shows it as code, not as a sentence; "
    "on the `def` of a helper: it is the idea; its lines stand where a page first names it",
    "stepover": "calls on this line run unrecorded; on a `def` it runs at full speed, too, and always",
    "allow": "what a rule finds on these lines is meant, and why: `# @allow CODE: why`",
    "fails": "older, on an `assert`, for `# @allow claim-fails: why`: it fails at least once in a run",
    "zero": "older, `# @zero: why`, for `# @allow vacuous: why`: zero, or nothing, is the point",
    "unnoticed": "older, `# @unnoticed: 8 -> 9: why`, for `# @allow unnoticed: 8 -> 9: why`",
}
UNREAD = "unread-directive"  # the code of what another tool's words take for a comment
FOREIGN: dict[str, str] = {}  # another tool's, and which of ours each is; a package of its words fills it
Anchors = list[tuple[int, int, Anchor]]  # line and column where one begins, sorted
_FIRST = re.compile(r"(?:(?P<own>#)\s*@(?P<blank>\s*)|(?<!\S)@)(?P<name>[A-Za-z_][\w-]*)")
_MARK = re.compile(r"(?P<own>#)\s*@(?P<any>[A-Za-z_][\w-]*)|(?<!\S)@(?P<known>[A-Za-z_]\w*)|(?P<remark>#)")
_STRING = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_ALLOW = re.compile(r"(?P<code>[a-z][a-z-]*):\s*(?P<why>\S.*)", re.DOTALL)
# Codes of rules for which the run, or a trial, has a use of its own, and the directive that says the same.
_USES = {"claim-fails": "fails", "vacuous": "zero", "unnoticed": "unnoticed", "mutant": ""}
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
    in_remark: bool = False  # it stands within a remark
    watches: tuple[Watch, ...] = ()  # what it shows; their file is not known yet

    def problem(self, file: File, code: str, what: str, way_out: str) -> Finding:
        """What is wrong with it, at its place."""
        way_out += f"; as a word of the remark write `@{self.name}`" * self.in_remark
        return Finding(code, what, file.place(self.line, self.column + 1), way_out)


def directives_in(file: File, anchors: Anchors | None, problems: list[Finding]) -> list[Directive]:
    """The directives of all comments, in order, each with the first line of its statement.

    `anchors` say where the statements begin; None where the text has no tree.
    """
    directives: list[Directive] = []
    logical_lines = _logical_lines(file.lines) if anchors is None else _near_directives(file.lines, anchors)
    try:
        for first, last, comments in logical_lines:
            for line, column, comment in comments:
                marks = _marks(comment)
                if marks:
                    file.cuts.append((line, column + marks[0][1]))
                for name, at, content, in_remark in marks:
                    if ours := FOREIGN.get(name, name):
                        directives.append(Directive(ours, content, line, column + at, first, last, in_remark))
    except (tokenize.TokenError, SyntaxError, UnicodeEncodeError):
        pass  # the parser has reported it, with a better message
    return [_with_watches(file, directive, problems) for directive in directives]


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
        if line <= done or "@" not in text or "#" not in text or not _FIRST.search(text, text.index("#")):
            continue
        # The lines around it from one statement that begins a line to the next. These are logical lines,
        # whole: `else:` and comments belong to the statement above them.
        after = bisect_right(anchors, line, key=lambda anchor: anchor[0])
        above = (anchors[i] for i in range(after - 1, -1, -1) if _begins_a_line(lines, anchors[i]))
        below = (anchors[i] for i in range(after, len(anchors)) if _begins_a_line(lines, anchors[i]))
        first, done = next(above, (1,))[0], next(below, (len(lines) + 1,))[0] - 1
        while done > line and not lines[done - 1].strip():
            done -= 1
        code, _, comment = text.partition("#")
        if first == done and code.strip() and not _QUOTE.search(code):  # nor is there a string above it
            yield _Logical(line, line, [(line, len(code), f"#{comment}")])
            continue
        # Each is read as if it were alone: `else:` below an indented statement is no dedent to nowhere.
        while first <= done:
            behind = done + 1
            for logical in _logical_lines(lines[first - 1 : done], first - 1):
                yield logical
                if logical.first is not None:
                    behind = logical.last + 1
                    break
            first = behind


_QUOTE = re.compile("['\"]")


def _begins_a_line(lines: list[str], anchor: tuple[int, int, Anchor]) -> bool:
    """Whether a logical line begins with it: a statement, and none behind a `;`, a `:` or a backslash.

    What a `case` or a decorator says may stand in brackets on a line of its own.
    """
    line, column, node = anchor
    if getattr(node, "lineno", None) != line or lines[line - 1][:column].strip():
        return False
    return line == 1 or not lines[line - 2].endswith("\\")


def _marks(comment: str) -> list[tuple[str, int, str, bool]]:
    """Name, column and content of the directives in a comment, and whether each stands within a remark.

    A remark may stand before them, and begins anew at a `#` without `@`. There, also what is nearly a
    directive counts, as misspelt, and so does one with a blank behind its `@`. What stands in a quoted
    string of an expression does not.
    """
    candidates = _FIRST.finditer(comment)
    first = next((mark for mark in candidates if mark["blank"] == "" or _nearest(mark["name"], 0.8)), None)
    if first is None:
        return []
    blank = _STRING.sub(lambda string: "_" * len(string[0]), comment[first.end() :])
    found_marks = _MARK.finditer(comment[: first.end()] + blank, first.end())
    marks = [mark for mark in found_marks if not mark["known"] or mark["known"] in (*DIRECTIVES, *FOREIGN)]
    ends = [mark.start() for mark in marks] + [len(comment)]
    in_remark = not first["own"]
    name = f"{first['blank'] or ''}{first['name']}"  # behind a blank it is none that is known
    directives = [(name, first.start(), comment[first.end() : ends[0]].strip(), in_remark)]
    for mark, end in zip(marks, ends[1:], strict=True):
        in_remark = bool(mark["remark"]) or (in_remark and not mark["own"])
        if name := mark["any"] or mark["known"]:
            directives[-1] = *directives[-1][:2], directives[-1][2].removesuffix(","), directives[-1][3]
            directives.append((name, mark.start(), comment[mark.end() : end].strip(), in_remark))
    return directives


def _nearest(name: str, likeness: float = 0.6) -> list[str]:
    """The directive that a name is, or is nearly; none where nothing is as like."""
    return get_close_matches(name, DIRECTIVES, 1, likeness)


def _with_watches(file: File, directive: Directive, problems: list[Finding]) -> Directive:
    """The directive with the expressions of an `@inspect`, `@measure` or `@clear`."""
    name, content, code = directive.name, directive.content, "bad-directive"
    if name not in DIRECTIVES:
        near, code = _nearest(name), "unknown-directive"
        what = f"unknown directive @{name}"
        every = ", ".join(f"@{other}" for other in DIRECTIVES)
        way_out = f"did you mean @{near[0]}?" if near else f"there are: {every}"
    elif name == "zero":
        if content.startswith(":") and content.strip(": "):
            return directive
        what = "@zero says no reason"
        way_out = "write why zero, or nothing, is the point: # @zero: a view moves nothing"
    elif name == "allow":
        if _ALLOW.fullmatch(content):
            return directive
        what = "@allow names no rule, or no reason"
        way_out = "write the code of what is found, and why it may be: # @allow unbacked: a name of a model"
    elif name == "unnoticed":
        if re.fullmatch(r":\s*\S.*:\s+\S.*", content):
            return directive
        what = "@unnoticed says no change, or no reason"
        way_out = "write the changes as they are listed, and why: # @unnoticed: 8 -> 9, 8 -> 16: "
        way_out += "any size does"
    elif name not in ("inspect", "measure", "clear"):
        if not content:
            return directive
        what, way_out = f"@{name} takes nothing, but {content!r} follows it", "remove what follows it"
    elif not content and name == "inspect" and not directive.in_remark:
        return directive  # what its statement assigns: see `attach`
    elif not content:
        what = f"@{name} names no expression"
        way_out = f"write what to show: # @{name} x.shape"
    else:
        try:
            watches = [Watch(name, text, unit, directive.line, node) for text, unit, node in _read(content)]
            return replace(directive, watches=tuple(watches))
        except SyntaxError as error:
            what, code = f"@{name} cannot read {error.text!r}: {error.msg}", "bad-expression"
            way_out = "write Python expressions, separated by commas, each with an optional `as UNIT`"
    problems.append(directive.problem(file, code, what, way_out))
    return directive


WatchedExpression = tuple[str, str | None, ast.expr]  # an expression's text, its unit, its node


def _read(content: str) -> Iterator[WatchedExpression]:
    """`a, f(b, c) as B` -> (`a`, None, node), (`f(b, c)`, `B`, node).

    Raises `SyntaxError`, with the `text` that is meant, where one does not parse.
    """
    pieces = content.split(",")
    while pieces:
        errors = list[SyntaxError]()
        for taken in range(1, len(pieces) + 1):
            text = ",".join(pieces[:taken]).strip()
            try:
                yield from _expression(text)
                break
            except SyntaxError as error:
                error.text = text
                errors.append(error)
        else:  # the error of the first piece, or of as many as its brackets and quotes go on for
            raise next((error for error in errors if not _OPEN.search(error.msg)), errors[0])
        del pieces[:taken]


_OPEN = re.compile("never closed|unterminated")


def _expression(text: str) -> list[WatchedExpression]:
    """One expression with its unit, or names and attributes separated by spaces. Raises `SyntaxError`."""
    match = _UNIT.fullmatch(text)
    bare, unit = (match["expression"], match["unit"]) if match else (text, None)
    try:
        return [(bare, unit, _parse_expression(bare))]
    except SyntaxError as error:
        words = bare.split()
        if len(words) > 1 and all(map(_NAME.fullmatch, words)):
            with contextlib.suppress(SyntaxError):  # a word of Python's, as in `x is not`
                return [(word, unit, _parse_expression(word)) for word in words]
        raise SyntaxError(error.msg) from None


def _parse_expression(text: str) -> ast.expr:
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


def attach(
    lecture: Lecture, file: File, directives: list[Directive], anchors: Anchors, problems: list[Finding]
) -> None:
    """Give every directive to the statement on whose logical line it stands."""
    for directive in directives:
        # What begins last on its logical line: of `if x: y = 1  # @inspect y` the assignment.
        after = bisect_right(anchors, directive.end, key=lambda anchor: anchor[0])
        if directive.start is None or after == 0 or anchors[after - 1][0] < directive.start:
            if directive.name in DIRECTIVES:  # an unknown one has been reported
                where = "on a line of its own and belongs to no statement"
                way_out = "put it at the end of the statement it is about"
                if directive.start is not None:
                    where = "on a line that is no statement (`else:`, `finally:`)"
                    way_out = "put it on a statement of the block"
                what = f"@{directive.name} stands {where}"
                problems.append(directive.problem(file, "homeless-directive", what, way_out))
            continue
        anchor = anchors[after - 1][2]
        _mark(lecture, file, directive, anchor, problems)
        watches = directive.watches
        if directive.name == "inspect" and not directive.content and not directive.in_remark:
            # What the statement gives a value, as expressions that show it; of a function its parameters.
            names = [name for _, name in parameters(anchor)] if isinstance(anchor, FunctionNode) else []
            parts = targets(anchor)
            while parts:
                match parts.pop(0):
                    case ast.Tuple(elts=several) | ast.List(elts=several):
                        parts[:0] = several
                    case ast.Starred(value=target) | target:
                        names.append(ast.unparse(target))
            watches = tuple(Watch("inspect", n, None, directive.line, _parse_expression(n)) for n in names)
            if not watches:
                what, way_out = "@inspect names no expression", "write what to show: # @inspect x.shape"
                problems.append(directive.problem(file, "bad-directive", what, way_out))
        for watch in watches:
            lecture.watches_of.setdefault(anchor, []).append(len(lecture.watches))
            lecture.watches.append(replace(watch, file=file.number))


def _mark(
    lecture: Lecture, file: File, directive: Directive, anchor: Anchor, problems: list[Finding]
) -> None:
    """Note what a directive says of its statement, other than what it shows."""
    place, what = file.place(directive.line, directive.column + 1), ""
    name, content = directive.name, directive.content
    if name == "allow" and (allowed := _ALLOW.fullmatch(content)):
        code, why = allowed["code"], allowed["why"]
        first = first_line(anchor) if isinstance(anchor, ast.stmt) else directive.line
        last = max(getattr(anchor, "end_lineno", 0) or 0, directive.end)
        allowance = Allowance(code, why, place, last, general=code not in _USES, first=first)
        lecture.allowances.append(allowance)
        name, content = _USES.get(code, ""), f":{why}"
    match name:
        case "hide":
            lecture.hidden.add(anchor)
            if anchor is file.tree.body[0] and has_docstring(file.tree):
                lecture.hidden.update(file.tree.body)  # everything in a file, unless it has sections
                if any(spec.file == file.number and spec.kind in SECTIONS for spec in lecture.functions):
                    what = "@hide on the docstring of a file with sections would leave nothing to show"
                    way_out = "put it on what is not to be shown"
        case "stepover":
            lecture.stepover.add(anchor)
            if isinstance(anchor, DefinitionNode):
                lecture.untouched.add(anchor)
                spec = lecture.functions[lecture.function_of[anchor]]
                if spec.kind in SECTIONS:
                    what = f"@stepover on the section {spec.name!r} would leave nothing to show"
                    way_out = "put it on the line that calls what is not to be recorded"
        case "unnoticed":
            excuse = place, content.removeprefix(":").strip()
            lecture.unnoticed.setdefault(anchor, []).append(excuse)
        case "zero" | "fails" | "show":
            marked = {"zero": lecture.zeros, "fails": lecture.fails, "show": lecture.shown}
            marked[name].add(anchor)
            number = lecture.function_of.get(anchor)
            if name == "show" and number is not None and lecture.functions[number].kind not in SECTIONS:
                lecture.functions[number] = replace(lecture.functions[number], shown=True)
            elif not isinstance(anchor, ast.Assert):
                what, way_out = f"@{directive.name} stands at no assert", "put it on the line of the assert"
                if name == "show":
                    what += ", and at no helper"
                    way_out += ", or of the helper's def"
                problems.append(Finding("bad-directive", what, place, way_out))
                return
    if what:
        problems.append(directive.problem(file, "bad-directive", what, way_out))


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


def hide(lecture: Lecture) -> None:
    """Mark hidden statements, and everything inside them, in the numbered lists."""
    for node in {inner for anchor in lecture.hidden for inner in (anchor, *blocks(anchor))}:  # type: ignore[arg-type]
        if isinstance(node, ast.stmt):
            number = lecture.statement_of[node]
            lecture.statements[number] = replace(lecture.statements[number], kind="hidden")
        if isinstance(node, DefinitionNode):
            index = lecture.function_of[node]
            lecture.functions[index] = replace(lecture.functions[index], hidden=True)
