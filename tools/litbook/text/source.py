"""A lecture's text -> statements, spans, directives, sections. Knows no values and runs nothing.

The syntax tree says what the statements are; `tokenize` says where the comments are, so that a `#`
inside a string is no directive and a directive may stand on any line of a multi-line statement.

A lecture may have ten thousand lines, and an author who mistyped a section's name waits for all of them. So
only statements are walked, not the expressions in them, and only what may hold a directive is tokenized.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import inspect
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple

from litbook import project
from litbook.errors import NotFound, Place, Problem, UnusableLecture
from litbook.record import model

WORDS = {"note", "misbelief", "question", "figure", "image", "link", "speaker_note"}
ASIDES = {"speaker_note"}  # words that no reader of a page sees
INSTALLED = {"site-packages", "dist-packages"}  # what lies there is nobody's own
DIRECTIVES = ("inspect", "measure", "clear", "hide", "stepover")

# Decorators and calls that read a function's source or bytecode: torch.compile, torch.jit.script,
# triton.jit, numba.njit. What they get stays exactly as the author wrote it.
COMPILERS = {"compile", "jit", "script", "njit", "trace_fn"}
_FOREIGN = re.compile(r"[^\W\x00-\x7f]")  # a letter that Python may read as an ASCII one in a name

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Anchor = ast.stmt | ast.ExceptHandler | ast.match_case

Calls = dict[ast.AST, list[tuple[ast.Expr, ast.FunctionDef]]]
Anchors = list[tuple[int, int, Anchor]]  # line and column where one begins, sorted

_FIRST = re.compile(r"#\s*@[A-Za-z_][\w-]*")
_MARK = re.compile(
    rf"#\s*@(?P<any>[A-Za-z_][\w-]*)|(?<!\S)@(?P<known>{'|'.join(DIRECTIVES)})\b|(?P<remark>#)"
)
_STRING = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_UNIT = re.compile(r"(?P<expression>.+?)\s+as\s+(?P<unit>[^\s,()\[\]{}'\"]+)\s*", re.DOTALL)


FunctionKind = Literal["module", "main", "part", "section", "helper", "class"]
StatementKind = Literal["code", "claim", "piece", "section", "def", "doc", "hidden"]


@dataclass(frozen=True)
class Function:
    """A module, function or class of the lecture's text; sections and parts are functions too.

    `file` counts the lecture's files; lines are those of that file. `key` names it within the lecture, with
    the names around it: `Decoder.forward`. `digest` is the hash of its text. `parent` is, for a section, the
    part or main that calls it first.
    """

    name: str
    kind: FunctionKind
    first: int
    last: int
    heading: str = ""
    body: int = 0  # first line of the body after the docstring
    parent: int | None = None
    requires: str | None = None
    hidden: bool = False
    digest: str = ""
    file: int = 0
    key: str = ""


@dataclass(frozen=True)
class Statement:
    """One statement: its lines, and what it is to a reader. `function` owns it."""

    function: int
    first: int
    last: int  # of a compound statement: the last line of its header
    kind: StatementKind = "code"
    end: int = 0  # last line with the whole body
    target: int | None = None  # for "section": the function called; for "def": the function defined


@dataclass(frozen=True)
class Watch:
    """One expression of an `@inspect`, `@measure` or `@clear`, and where it stands."""

    kind: str
    text: str
    unit: str | None
    line: int
    node: ast.expr = field(compare=False)


@dataclass(frozen=True)
class Assertion:
    """An `assert`, or an annotation, that is a claim: it stands in a section's own body."""

    statement: int
    kind: str  # "assert" or "axes"
    text: str
    caption: str
    form: tuple[str, ...]  # the test's text around its operands
    operands: tuple[ast.expr, ...] = field(compare=False)
    operand_texts: tuple[str, ...] = ()
    node: ast.Assert | ast.AnnAssign | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Directive:
    """A directive as it stands in a comment. `start` and `end` are the lines of its logical line."""

    name: str
    content: str
    line: int
    column: int  # 0-based, in characters
    start: int | None  # None: the comment stands outside every statement
    end: int = 0


@dataclass
class Lecture:
    """Everything that the text of one lecture says. Built by `parse`; read-only afterwards."""

    path: str
    text: str
    tree: ast.Module
    title: str = ""
    functions: list[Function] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    claims: list[Assertion] = field(default_factory=list)
    cuts: list[tuple[int, int]] = field(default_factory=list)
    function_of: dict[ast.AST, int] = field(default_factory=dict)
    statement_of: dict[ast.stmt, int] = field(default_factory=dict)
    watches_of: dict[ast.AST, list[int]] = field(default_factory=dict)
    claim_of: dict[ast.stmt, int] = field(default_factory=dict)
    hidden: set[ast.AST] = field(default_factory=set)
    stepover: set[ast.AST] = field(default_factory=set)
    untouched: set[ast.AST] = field(default_factory=set)
    order: list[int] = field(default_factory=list)  # parts and sections, as `main` reaches them
    warns: bool = True  # whether the compiler may have something to say about the text

    @cached_property
    def lines(self) -> list[str]:
        """The text's physical lines, without their ends, counted as Python counts them."""
        return _lines(self.text)

    def place(self, line: int, column: int = 1) -> Place:
        """The position `line`:`column` (1-based) with the user's own text."""
        lines = self.lines
        return Place(self.path, line, column, lines[line - 1] if 0 < line <= len(lines) else "")

    def source(self) -> model.Source:
        """The file as the record keeps it."""
        digest = sha256(self.text.encode()).hexdigest()
        return model.Source(self.path, digest, self.text, tuple(sorted(self.cuts)))

    def section_names(self) -> list[str]:
        """Names of the parts and sections, in the order in which `main` reaches them."""
        return [self.functions[i].name for i in self.order]

    def text_of(self, statement: ast.stmt) -> str:
        """The physical lines of a statement, with its decorators."""
        return "\n".join(self.lines[first_line(statement) - 1 : statement.end_lineno])


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Python looks for no garbage in here, or in the function so decorated.

    A syntax tree is many objects and no garbage; looking for some takes as long as building it. So that it is
    not looked through right afterwards, all that is there then counts as old; in a process that has frozen
    what is old (the preview does) it is frozen with it.
    """
    was, frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.freeze()
            if not frozen:
                gc.unfreeze()
            gc.enable()


def read(path: Path, shown: str | None = None) -> Lecture:
    """The lecture in the file `path`, called `shown` in messages and in the record.

    Raises `UnusableLecture` with every problem found: not text, syntax errors, unknown directives,
    expressions that do not parse, no `main`.
    """
    shown = shown or path.name
    try:
        with tokenize.open(path) as file:
            text = file.read()
    except OSError as error:
        raise UnusableLecture([Problem("unreadable", f"{shown}: {error.strerror}")]) from None
    except (UnicodeDecodeError, SyntaxError) as error:
        raise UnusableLecture([Problem("not-text", f"{shown} is not Python text: {error}")]) from None
    return parse(text, shown)


@uncollected()
def outline(path: Path) -> Lecture:
    """The functions, sections and headings of the lecture in the file `path`: all that a list of them needs.

    Quicker than `read`, which it leaves to complain: raises `UnusableLecture` as that does, for a text with a
    syntax error or no `main`. Other problems of the text are not looked for.
    """
    with contextlib.suppress(OSError, ValueError, SyntaxError, RecursionError):
        with tokenize.open(path) as file:
            text = file.read().replace("\r\n", "\n").replace("\r", "\n")
        found = Lecture(path.name, text, ast.parse(text))
        problems: list[Problem] = []
        _number_definitions(found)
        _find_sections(found, _section_calls(found), problems)
        if not problems:
            return found
    return usable(path)


def usable(path: Path, sections: Iterable[str] = (), shown: str | None = None) -> Lecture:
    """The lecture in the file `path`, read; nothing of it runs, and nothing heavy is imported.

    Raises `UnusableLecture`, and `NotFound` for one of `sections` that it does not have. The latter comes
    first, and sooner, where only other things than the outline are wrong with the text.
    """
    wanted = list(sections)
    if wanted:
        with contextlib.suppress(UnusableLecture):  # `read` says so, under the right name
            there = outline(path).section_names()
            for name in wanted:
                if name not in there:
                    raise NotFound("section", name, there)
    return read(path, shown or project.shown(path.resolve()))


@functools.lru_cache(maxsize=4)  # asked for every statement and operand of one lecture
def _lines(text: str) -> list[str]:
    """Python ends a line at a newline only; `str.splitlines` also at form feeds and the like."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


@functools.lru_cache(maxsize=2)  # the command line, the run and the search for bare numbers ask for the same
@uncollected()
def parse(text: str, path: str = "<lecture>", *, lecture: bool = True) -> Lecture:
    """The text of a lecture, taken apart. Line ends of other systems become newlines, as in Python.

    With `lecture=False` any Python text is accepted: it needs no `main`, and has no sections and no
    directives (its comments may start with an `@` of their own).

    Raises `UnusableLecture` with every problem found.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    problems: list[Problem] = []
    tree, warns = _tree(text, path, problems)
    found = Lecture(path, text, tree or ast.Module([], []), warns=warns)
    try:
        _take_apart(found, tree, problems, lecture)
    except RecursionError:
        problems.append(Problem("too-deep", f"{path} nests its statements too deep to be followed"))
    if problems:
        raise UnusableLecture(problems)
    return found


def _take_apart(found: Lecture, tree: ast.Module | None, problems: list[Problem], lecture: bool) -> None:
    anchors = _anchors(found.tree)
    directives = _directives(found, anchors if tree else None, problems) if lecture else []
    if tree is not None:
        _number(found, lecture, problems)
        _attach(found, directives, anchors, problems)
        _leave_compiled_code_alone(found)
    else:  # what can be said without a tree
        for directive in directives:
            _watches(found, directive, problems)


def _tree(text: str, path: str, problems: list[Problem]) -> tuple[ast.Module | None, bool]:
    """The syntax tree, and whether the compiler warns of something in it; or None and a problem.

    A problem is also what only the compiler refuses (a stray `return`).
    """
    try:
        tree = ast.parse(text, path)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")  # kept here: they are shown once, when instrument compiles
            compile(tree, path, "exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        problems.append(_unparsed(error, text, path))
    except (ValueError, RecursionError, MemoryError) as error:
        problems.append(Problem("syntax", f"{path} cannot be parsed: {error}"))
    else:
        return tree, bool(given)
    return None, False


def _unparsed(error: SyntaxError, text: str, path: str) -> Problem:
    """What Python says of a text that it cannot read; of a wrong indentation also the line above."""
    line, lines = error.lineno or 1, _lines(text)
    shown = lines[line - 1] if 0 < line <= len(lines) else (error.text or "")
    what = f"syntax error: {error.msg}"
    if not isinstance(error, IndentationError) or not shown.strip():
        return Problem("syntax", what, Place(path, line, error.offset or 1, shown))
    place = Place(path, line, len(shown) - len(shown.lstrip()) + 1, shown)
    said = (before for before in reversed(lines[: line - 1]) if before.strip()[:1] not in ("", "#"))
    above = next(said, "")
    way_out = next(way for begins, way in _INDENT.items() if error.msg.startswith(begins))
    if not above and not error.msg.startswith("expected"):
        way_out = "begin it at the left margin"
    return Problem("syntax", what, place, way_out, above)


_INDENT = {  # how Python's messages about indentation begin, and the way out
    "inconsistent use of tabs": "indent with spaces only",
    "expected an indented block": "indent what belongs into that block, or write `pass` there",
    "unindent": "indent it as far as the statement above, or as a block around that",
    "unexpected indent": "indent it as far as the statement above",
    "": "",
}


# ---------------------------------------------------------------------------- directives


def _directives(found: Lecture, anchors: Anchors | None, problems: list[Problem]) -> list[Directive]:
    """The directives of all comments, in order, each with the first line of its statement.

    `anchors` say where the statements begin; None where the text has no tree.
    """
    directives: list[Directive] = []
    lines = found.lines
    try:
        for logical in _logical_lines(lines) if anchors is None else _near_directives(lines, anchors):
            _take(found, logical, directives)
    except (tokenize.TokenError, SyntaxError, UnicodeEncodeError):
        pass  # the parser has reported it, with a better message
    for directive in directives:
        _check_name(found, directive, problems)
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
        if line > done and "@" in text and _FIRST.search(text):
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


def _take(found: Lecture, logical: _Logical, into: list[Directive]) -> None:
    for line, column, text in logical.comments:
        marks = _marks(text)
        if marks:
            found.cuts.append((line, column + marks[0][1]))
        lines = logical.first, logical.last
        into.extend(Directive(name, content, line, column + at, *lines) for name, at, content in marks)


def _marks(comment: str) -> list[tuple[str, int, str]]:
    """Name, column and content of the directives in a comment.

    Further ones need no `#` of their own. A `#` without `@` begins a remark. What stands in a quoted
    string of an expression is neither.
    """
    first = _FIRST.search(comment)
    if first is None:
        return []
    blank = _STRING.sub(lambda string: "_" * len(string[0]), comment[first.end() :])
    marks = list(_MARK.finditer(comment[: first.end()] + blank, first.start()))
    ends = [mark.start() for mark in marks[1:]] + [len(comment)]
    found, remark = [], False
    for mark, end in zip(marks, ends, strict=True):
        remark = bool(mark["remark"]) or (remark and not mark["any"])
        if not remark:
            name = mark["any"] or mark["known"]
            found.append((name, mark.start(), comment[mark.end() : end].strip()))
    return found


def _check_name(found: Lecture, directive: Directive, problems: list[Problem]) -> None:
    if directive.name in DIRECTIVES:
        return
    near = get_close_matches(directive.name, DIRECTIVES, n=1)
    known = ", ".join(f"@{name}" for name in DIRECTIVES)
    way_out = f"did you mean @{near[0]}?" if near else f"there are: {known}"
    what = f"unknown directive @{directive.name}"
    problems.append(
        Problem("unknown-directive", what, found.place(directive.line, directive.column + 1), way_out)
    )


def _watches(found: Lecture, directive: Directive, problems: list[Problem]) -> list[Watch]:
    """The expressions of an `@inspect`, `@measure` or `@clear`."""
    if directive.name not in ("inspect", "measure", "clear"):
        if directive.name in DIRECTIVES and directive.content:
            what = f"@{directive.name} takes nothing, but {directive.content!r} follows it"
            place = found.place(directive.line, directive.column + 1)
            problems.append(Problem("bad-directive", what, place, "remove what follows it"))
        return []
    place = found.place(directive.line, directive.column + 1)
    if not directive.content:
        way_out = f"write what to show: # @{directive.name} x.shape"
        problems.append(Problem("bad-directive", f"@{directive.name} names no expression", place, way_out))
        return []
    try:
        return [
            Watch(directive.name, text, unit, directive.line, node)
            for text, unit, node in _expressions(directive.content)
        ]
    except SyntaxError as error:
        what = f"@{directive.name} cannot read {error.text!r}: {error.msg}"
        way_out = "write Python expressions, separated by commas, each with an optional `as UNIT`"
        problems.append(Problem("bad-expression", what, place, way_out))
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
    """One expression with its unit, or plain names separated by spaces; None where it does not parse."""
    match = _UNIT.fullmatch(text)
    bare, unit = (match["expression"], match["unit"]) if match else (text, None)
    words = bare.split()
    if len(words) > 1 and all(word.isidentifier() and _parsed(word) for word in words):
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


def _attach(found: Lecture, directives: list[Directive], anchors: Anchors, problems: list[Problem]) -> None:
    """Give every directive to the statement on whose logical line it stands."""
    for directive in directives:
        watches = _watches(found, directive, problems)
        anchor = _anchor(anchors, directive)
        if anchor is None:
            if directive.name in DIRECTIVES:  # an unknown one has been reported
                problems.append(_homeless(found, directive))
            continue
        if directive.name == "hide":
            found.hidden.add(anchor)
        elif directive.name == "stepover":
            _step_over(found, directive, anchor, problems)
        for watch in watches:
            found.watches_of.setdefault(anchor, []).append(len(found.watches))
            found.watches.append(watch)
    _hide(found)


def _anchors(tree: ast.Module) -> Anchors:
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


def _homeless(found: Lecture, directive: Directive) -> Problem:
    place = found.place(directive.line, directive.column + 1)
    if directive.start is None:
        what = f"@{directive.name} stands on a line of its own and belongs to no statement"
        return Problem("homeless-directive", what, place, "put it at the end of the statement it is about")
    what = f"@{directive.name} stands on a line that is no statement (`else:`, `finally:`)"
    return Problem("homeless-directive", what, place, "put it on a statement of the block")


def _step_over(found: Lecture, directive: Directive, anchor: Anchor, problems: list[Problem]) -> None:
    index = found.function_of.get(anchor)
    if index is not None and found.functions[index].kind in ("main", "part", "section"):
        what = f"@stepover on the section {found.functions[index].name!r} would leave nothing to show"
        place = found.place(directive.line, directive.column + 1)
        problems.append(Problem("bad-directive", what, place, "put it on the line that calls at full speed"))
    found.stepover.add(anchor)
    if isinstance(anchor, Definition):
        found.untouched.add(anchor)


def _hide(found: Lecture) -> None:
    """Mark hidden statements, and everything inside them, in the numbered lists."""
    for anchor in list(found.hidden):
        for node in ast.walk(anchor):
            number = found.statement_of.get(node)  # type: ignore[call-overload]
            if number is not None:
                found.statements[number] = replace(found.statements[number], kind="hidden")
            index = found.function_of.get(node)
            if index is not None:
                found.functions[index] = replace(found.functions[index], hidden=True)


# ---------------------------------------------------------------------------- statements and sections


def _number(found: Lecture, lecture: bool, problems: list[Problem]) -> None:
    """Number every function and statement in reading order, and say what each is."""
    _number_definitions(found)
    calls = _section_calls(found) if lecture else {}
    if lecture:
        _find_sections(found, calls, problems)
    _number_statements(found, calls)
    _find_claims(found)
    if lecture:
        _find_what_says_nothing(found, problems)


def _number_definitions(found: Lecture) -> None:
    """Number the module and every function and class in it."""
    found.title = _heading(found.tree) or Path(found.path).stem
    last = max(1, len(found.lines))
    found.functions.append(Function("<module>", "module", 1, last, found.title))
    found.function_of[found.tree] = 0
    _number_functions(found, found.tree)


def _number_functions(found: Lecture, node: ast.AST) -> None:
    for child in _blocks(node):
        if isinstance(child, Definition):
            first = first_line(child)
            last = child.end_lineno or child.lineno
            text = "\n".join(found.lines[first - 1 : last])
            found.function_of[child] = len(found.functions)
            found.functions.append(
                Function(
                    name=child.name,
                    kind="class" if isinstance(child, ast.ClassDef) else "helper",
                    first=first,
                    last=last,
                    heading=_heading(child),
                    body=_first_line_of_body(child),
                    requires=_requires(child),
                    digest=sha256(text.encode()).hexdigest()[:16],
                )
            )
        _number_functions(found, child)


def _heading(node: ast.Module | Definition) -> str:
    """The docstring's first line, without the full stop that ends a thesis."""
    lines = (ast.get_docstring(node) or "").strip().splitlines()
    first = lines[0].strip() if lines else ""
    return first[:-1] if first.endswith(".") and not first.endswith("..") else first


def _first_line_of_body(node: Definition) -> int:
    body = node.body
    if ast.get_docstring(node) is not None and len(body) > 1:
        return body[1].lineno
    return body[0].lineno


def _requires(node: Definition) -> str | None:
    """The device in `@requires("cuda")`, else None."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _is_requires(decorator):
            if decorator.args and isinstance(decorator.args[0], ast.Constant):
                return str(decorator.args[0].value)
    return None


def _is_requires(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and _dotted(decorator.func).split(".")[-1] == "requires"


def _dotted(node: ast.expr) -> str:
    """`torch.cuda.is_available` for the expression of that name, "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""


def _is_plain(found: Lecture, node: ast.AST) -> bool:
    """Whether `node` is a function that takes nothing, and no generator: one that can be a section."""
    if not isinstance(node, ast.FunctionDef):
        return False
    a = node.args
    if a.posonlyargs or a.args or a.kwonlyargs or a.vararg or a.kwarg:
        return False
    generates = ast.Yield | ast.YieldFrom
    return not ("yield" in found.text_of(node) and any(isinstance(n, generates) for n in own_nodes(node)))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's own body, in order: not those of functions or classes inside it.

    Where a name is read or written is no node here (`ctx`, one in three nodes of a tree).
    """
    todo = children(node)[::-1]
    while todo:
        child = todo.pop()
        yield child
        if type(child) not in _ENDS:
            todo += children(child)[::-1]


LEAVES = {ast.Name, ast.Constant}  # one node in two; nothing is below them
_ENDS = {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *LEAVES}


def children(node: ast.AST) -> list[ast.AST]:
    """As `ast.iter_child_nodes`, in a third of the time: every node of a lecture comes by here."""
    found: list[ast.AST] = []
    known = node.__dict__
    for name in node._fields:
        value = known.get(name)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and name != "ctx":
            found.append(value)
    return found


def _everything(node: ast.AST) -> list[ast.AST]:
    """The node and all below it, the outer ones first, as `ast.walk`; but no `ctx`."""
    found = [node]
    for inner in found:  # which grows
        if type(inner) not in LEAVES:
            found += children(inner)
    return found


def parameters(node: FunctionNode) -> list[tuple[str, str]]:
    """Every parameter in the order of the signature: as a reader sees it (`*rest`), and its bare name."""
    a = node.args
    rest = [(f"*{a.vararg.arg}", a.vararg.arg)] if a.vararg else []
    others = [(f"**{a.kwarg.arg}", a.kwarg.arg)] if a.kwarg else []
    plain = [(p.arg, p.arg) for p in (*a.posonlyargs, *a.args)]
    return [*plain, *rest, *((p.arg, p.arg) for p in a.kwonlyargs), *others]


def _blocks(node: ast.AST) -> list[Anchor]:
    """The statements right inside `node`, and its `except` and `case` parts. Expressions hold neither."""
    known = node.__dict__
    found: list[Anchor] = []
    for name in _BLOCKS:
        if name in known:
            found += known[name]
    return found


_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")  # of a statement; all of them lists, in order


def blocks(node: ast.Module | Anchor) -> list[Anchor]:
    """Every statement, `except` and `case` inside `node`, the outer ones first."""
    found = _blocks(node)
    for inner in found:  # which grows
        found += _blocks(inner)
    return found


def _section_calls(found: Lecture) -> Calls:
    """For every function, its statements `name()` that call a parameterless function of the module."""
    candidates = {node.name: node for node in found.tree.body if isinstance(node, ast.FunctionDef)}
    plain = functools.cache(lambda name: name in candidates and _is_plain(found, candidates[name]))
    calls: Calls = {}
    for name, caller in candidates.items():
        made = [(node, called) for node, called in _bare_calls(caller) if plain(called)]
        if made and plain(name):
            own = {name, "main", *_bound(caller)}
            if several := [(node, candidates[called]) for node, called in made if called not in own]:
                calls[caller] = several
    return calls


def _bare_calls(node: ast.AST) -> Iterator[tuple[ast.Expr, str]]:
    """The statements `name()` in a function's own body, in order, each with the name."""
    todo = _blocks(node)[::-1]
    while todo:
        match todo.pop():
            case ast.Expr(ast.Call(ast.Name(id=called), [], [])) as statement:
                yield statement, called
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case other:
                todo += _blocks(other)[::-1]


def _bound(function: ast.FunctionDef) -> set[str]:
    """The names that a function binds itself: there they are no functions of the module."""
    names = set()
    for node in own_nodes(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.alias(asname=str(name)) | ast.alias(name=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
    return names


def _find_sections(found: Lecture, calls: Calls, problems: list[Problem]) -> None:
    """Mark `main`, and what it reaches through calls, as main, parts and sections."""
    main = _main(found, problems)
    if main is None:
        return
    reached = _reached(calls, main)
    for node in list(calls):  # calls of functions that no lecture reaches are plain calls
        if node not in reached:
            del calls[node]
    todo: list[tuple[ast.FunctionDef, int | None]] = [(main, None)]  # the next one last
    seen: set[ast.AST] = set()
    while todo:
        node, parent = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        index = found.function_of[node]
        if parent is not None:
            found.order.append(index)
        below = [callee for _, callee in calls.get(node, []) if callee not in seen]
        kind = "main" if parent is None else "part" if calls.get(node) else "section"
        heading = found.functions[index].heading or node.name.replace("_", " ").capitalize()
        found.functions[index] = replace(
            found.functions[index],
            kind=kind,  # type: ignore[arg-type]  # a conditional of literals is a str to mypy
            parent=parent,
            heading=heading,
            requires=found.functions[index].requires or _device_of(found, parent),
        )
        todo += [(callee, index) for callee in reversed(below)]
    _find_lost_sections(found, seen, problems)


def _device_of(found: Lecture, part: int | None) -> str | None:
    """What a part is for, all its sections are for."""
    return None if part is None else found.functions[part].requires


def _main(found: Lecture, problems: list[Problem]) -> ast.FunctionDef | None:
    """The last `main` of the module; None and a problem where it cannot be called without more."""
    way_out = "a lecture starts at `def main() -> None:`, which calls its sections"
    mains = [n for n in found.tree.body if isinstance(n, Definition) and n.name == "main"]
    if not mains:
        problems.append(Problem("no-main", f"{found.path} has no function main()", None, way_out))
    elif isinstance(mains[-1], ast.FunctionDef) and _is_plain(found, mains[-1]):
        return mains[-1]
    else:
        place = found.place(mains[-1].lineno, mains[-1].col_offset + 1)
        problems.append(Problem("no-main", "main is no plain function without parameters", place, way_out))
    return None


def _reached(calls: Calls, start: ast.AST) -> set[ast.AST]:
    """`start`, and what it calls in turn."""
    todo, seen = [start], set[ast.AST]()
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo.extend(callee for _, callee in calls.get(node, []))
    return seen


def _number_statements(found: Lecture, calls: Calls) -> None:
    targets: dict[ast.AST, int] = {
        call: found.function_of[callee]
        for caller, several in calls.items()
        if found.functions[found.function_of[caller]].kind in ("main", "part", "section")
        for call, callee in several
    }
    words, asides = _words(found.tree, WORDS), _words(found.tree, ASIDES)
    docstrings = {
        node.body[0]
        for node in found.function_of
        if isinstance(node, Definition | ast.Module) and ast.get_docstring(node, clean=False) is not None
    }
    for owner, statement in _statements(found.tree, found.tree):
        kind, target = _kind(statement, words, asides), targets.get(statement)
        if statement in docstrings:
            kind = "doc"
        elif target is not None:
            kind = "section"
        elif isinstance(statement, Definition):
            kind, target = "def", found.function_of[statement]
        found.statement_of[statement] = len(found.statements)
        found.statements.append(
            Statement(
                function=found.function_of[owner],
                first=first_line(statement),
                last=_last_line_of_header(statement, found.lines),
                kind=kind,
                end=statement.end_lineno or statement.lineno,
                target=target,
            )
        )


def _statements(node: ast.AST, owner: ast.AST) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """Every statement with the function, class or module that owns it, in reading order."""
    for child in _blocks(node):
        if isinstance(child, ast.stmt):
            yield owner, child
        yield from _statements(child, child if isinstance(child, Definition) else owner)


def first_line(statement: ast.stmt) -> int:
    """The line of a statement's first decorator, else its own."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min(decorator.lineno for decorator in decorators) if decorators else statement.lineno


def _last_line_of_header(statement: ast.stmt, lines: list[str]) -> int:
    """The last line before a compound statement's body; the last line of a simple statement."""
    last = statement.end_lineno or statement.lineno
    between = _BETWEEN
    match statement:
        case ast.Match(cases=[first, *_]):
            last, between = first.pattern.lineno - 1, _BEFORE_PATTERN
        case _ if body := getattr(statement, "body", None):
            last = min(last, first_line(body[0]) - 1)
        case _:
            return last
    while last > statement.lineno and between.match(lines[last - 1]):
        last -= 1
    return max(statement.lineno, last)


_BETWEEN = re.compile(r"\s*(#|$)")  # what may stand between a header and its body
_BEFORE_PATTERN = re.compile(r"\s*(#|$|case\b)")


def _words(tree: ast.Module, words: set[str]) -> set[str]:
    """The names under which this file calls some of the author's words: `note`, or `n` after `note as n`."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "litbook":
            names |= {a.asname or a.name for a in node.names if a.name in words}
        elif isinstance(node, ast.Import):
            packages = [a.asname or a.name for a in node.names if a.name == "litbook"]
            names |= {f"{package}.{word}" for package in packages for word in words}
    return names


def _kind(statement: ast.stmt, words: set[str], asides: set[str]) -> StatementKind:
    match statement:
        case ast.Expr(ast.Call(func=called)):
            name = _dotted(called)
            return "hidden" if name in asides else "piece" if name in words else "code"
    return "code"


def _find_claims(found: Lecture) -> None:
    """Asserts in a section's own body, outside `try`, and annotations that name axes, are claims."""
    for node, index in list(found.function_of.items()):
        if found.functions[index].kind not in ("main", "part", "section"):
            continue
        for child in _outside_try(node):
            if isinstance(child, ast.Assert):
                _add_claim(found, child, "assert", child.test, _caption(child))
            elif isinstance(child, ast.AnnAssign) and _names_axes(child):
                _add_claim(found, child, "axes", child.annotation, "")


def _outside_try(node: ast.AST) -> Iterator[ast.AST]:
    for child in _blocks(node):
        yield child
        if not isinstance(child, Definition | ast.Try | ast.TryStar):
            yield from _outside_try(child)


def _add_claim(
    found: Lecture, node: ast.Assert | ast.AnnAssign, kind: str, shown: ast.expr, caption: str
) -> None:
    number = found.statement_of[node]
    text = _segment(found.text, shown)
    if isinstance(node, ast.AnnAssign):
        text = f"{ast.unparse(node.target)}: {text}"
    else:
        found.statements[number] = replace(found.statements[number], kind="claim")
    form, operands = dissect(shown, found.text) if kind == "assert" else (("",), [])
    texts = tuple(_segment(found.text, operand) for operand in operands)
    found.claim_of[node] = len(found.claims)
    found.claims.append(Assertion(number, kind, text, caption, form, tuple(operands), texts, node))


def _caption(node: ast.Assert) -> str:
    match node.msg:
        case ast.Constant(value=value) if value is not None:
            return str(value)
    return ""


def _names_axes(node: ast.AnnAssign) -> bool:
    """`x: Float[Tensor, "batch seq"] = ...`: a jaxtyping annotation with a value, on a plain name."""
    match node:
        case ast.AnnAssign(
            target=ast.Name(),
            annotation=ast.Subscript(slice=ast.Tuple(elts=[_, ast.Constant(value=str())])),
            value=ast.expr(),
        ):
            return True
    return False


# ---------------------------------------------------------------------------- what would say nothing

_SECTION = "a section is a plain function without parameters"
# Decorators under which two functions of a name belong together; `@f.register` and `@f.setter` with them.
_JOINS = {"overload", "register", "setter", "getter", "deleter"}


def _find_lost_sections(found: Lecture, callers: Iterable[ast.AST], problems: list[Problem]) -> None:
    """Statements `name()` that look like a section's, and would lose its claims without a word.

    `callers` are main, the parts and the sections. A function that is decorated is its decorator's business.
    """
    there = _module_functions(found.tree)
    said = set[ast.AST]()
    for caller in sorted(callers, key=lambda node: found.function_of[node]):
        assert isinstance(caller, ast.FunctionDef)
        for statement, name in _bare_calls(caller):
            node = there.get(name)
            if node is None or node in said or name in (caller.name, "main"):
                continue
            kind = found.functions[found.function_of[caller]].kind
            why, way_out = _why_no_section(found, node, there, kind != "section")
            if why and name not in _bound(caller):
                said.add(node)
                what = f"{name}() {why}, and {caller.name}() calls it on line {statement.lineno}: {_SECTION}"
                problems.append(Problem("no-section", what, _at(found, node), way_out))


def _module_functions(tree: ast.Module) -> dict[str, FunctionNode]:
    """The functions of the module by name; those inside an `if` or `try` only where there is no other."""
    inside: dict[str, FunctionNode] = {}
    todo: list[Anchor] = [node for node in tree.body if not isinstance(node, Definition)]
    while todo:
        for node in _blocks(todo.pop()):
            if isinstance(node, FunctionNode):
                inside[node.name] = node
            elif not isinstance(node, Definition):
                todo.append(node)
    return inside | {node.name: node for node in tree.body if isinstance(node, FunctionNode)}


def _why_no_section(
    found: Lecture, node: FunctionNode, there: dict[str, FunctionNode], among_sections: bool
) -> tuple[str, str]:
    """Why a call of `node` is no section's, and the way out; two blanks where nothing is lost.

    What takes parameters, or is defined in a block, is a helper: that it asserts something is lost only
    `among_sections`, in `main` or a part.
    """
    plain, at_margin = _is_plain(found, node), node.col_offset == 0
    if (plain and at_margin) or any(not _is_requires(decorator) for decorator in node.decorator_list):
        return "", ""
    if isinstance(node, ast.AsyncFunctionDef):
        return "is async", f"write `def {node.name}():`, with asyncio.run(…) around what it awaits"
    if any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in own_nodes(node)):
        return "holds a `yield`, so that calling it runs nothing", "take the `yield` out"
    if among_sections and _asserts(node, there, set()):
        if plain:
            return "is defined in a block, so that its claims do not count", "define it at the left margin"
        way_out = f"write `def {node.name}():`, or call it in a section"
        return "takes parameters, so that its claims do not count", way_out
    return "", ""


def _asserts(node: FunctionNode, there: dict[str, FunctionNode], seen: set[ast.AST]) -> bool:
    """Whether a function, as if it were a section, makes a claim, or one that it calls does."""
    if node in seen:
        return False
    seen.add(node)
    for inner in _outside_try(node):
        if isinstance(inner, ast.Assert) or (isinstance(inner, ast.AnnAssign) and _names_axes(inner)):
            return True
    return any(_asserts(there[name], there, seen) for _, name in _bare_calls(node) if name in there)


def _find_what_says_nothing(found: Lecture, problems: list[Problem]) -> None:
    """Functions that another of their name replaces, and claims that claim nothing."""
    _find_replaced(found, problems)
    _find_idle_annotations(found, problems)
    for node in found.statement_of:
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Tuple):
            if any(not isinstance(part, ast.Starred) for part in node.test.elts):
                what = "this assert is always true: it asserts a tuple"
                problems.append(Problem("no-claim", what, _at(found, node.test), _untupled(found, node.test)))


def _find_idle_annotations(found: Lecture, problems: list[Problem]) -> None:
    """Annotations of jaxtyping in a section's own body that look like claims and are none.

    In a helper none is a claim, and none looks like one more than another.
    """
    kinds = _jaxtyping_names(found.tree) if "jaxtyping" in found.text else set()
    if not kinds:
        return
    for node, number in found.statement_of.items():
        if isinstance(node, ast.AnnAssign) and node not in found.claim_of:
            function = found.functions[found.statements[number].function]
            if function.kind in ("main", "part", "section"):
                why, way_out = _why_idle(found, node, kinds)
                if why:
                    what = f"this annotation checks nothing: {why}"
                    problems.append(Problem("no-claim", what, _at(found, node), way_out))


def _why_idle(found: Lecture, node: ast.AnnAssign, kinds: set[str]) -> tuple[str, str]:
    """Why an annotation is no claim, and the way out; two blanks where it is none of jaxtyping's."""
    alone = [kind for kind in _alternatives(node.annotation) if _is_jaxtyping(kind, kinds)]
    if not alone or (alone[0] is not node.annotation and _is_none(node.value)):
        return "", ""  # `x: Float[...] | None = None` has nothing to check
    target, shown = _segment(found.text, node.target), _segment(found.text, alone[0])
    if node.value is None:
        return "it has no value", f"annotate where the value is assigned: {target}: {shown} = …"
    if not isinstance(node.target, ast.Name):
        return f"{target} is no plain name", f"annotate a name, and assign that: value: {shown} = …"
    if alone[0] is not node.annotation:
        return "it allows for more than one type", f"leave the others out: {target}: {shown} = …"
    return "it stands in a `try`", "annotate behind the `try`"


def _alternatives(annotation: ast.expr) -> list[ast.expr]:
    """What `A | B`, `Optional[A]` or `Union[A, B]` allows for; any other annotation itself."""
    match annotation:
        case ast.BinOp(left, ast.BitOr(), right):
            return [*_alternatives(left), *_alternatives(right)]
        case ast.Subscript(named, inner) if _dotted(named).rpartition(".")[2] in ("Optional", "Union"):
            return inner.elts if isinstance(inner, ast.Tuple) else [inner]
    return [annotation]


def _is_jaxtyping(annotation: ast.expr, kinds: set[str]) -> bool:
    match annotation:
        case ast.Subscript(named, ast.Tuple(elts=[_, ast.Constant(value=str())])):
            return _dotted(named) in kinds or _dotted(named).rpartition(".")[0] in kinds
    return False


def _jaxtyping_names(tree: ast.Module) -> set[str]:
    """What the file calls jaxtyping, and what it takes out of it."""
    names = set[str]()
    for node in blocks(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "jaxtyping":
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "jaxtyping"}
    return names


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _untupled(found: Lecture, test: ast.Tuple) -> str:
    """How to assert what stands in the brackets."""
    parts = [_segment(found.text, part) for part in test.elts]
    if len(parts) == 2:
        return f"take the parentheses away: assert {', '.join(parts)}"
    return "assert one thing at a time" if len(parts) > 1 else f"take the comma away: assert {parts[0]}"


def _find_replaced(found: Lecture, problems: list[Problem]) -> None:
    """Functions at the left margin of which a later one takes the name."""
    first: dict[str, FunctionNode] = {}
    for node in found.tree.body:
        if not isinstance(node, FunctionNode) or node.name == "_":
            continue
        before = first.setdefault(node.name, node)
        if before is not node and not _joined(before) and not _joined(node):
            what = f"{node.name}() is defined on line {before.lineno} already, and this one replaces it"
            problems.append(Problem("replaced", what, _at(found, node), "give one of them another name"))


def _joined(node: FunctionNode) -> bool:
    """Whether a decorator makes this one of several functions under one name."""
    named = (_dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)
    return any(name.rpartition(".")[2] in _JOINS for name in named)


def _at(found: Lecture, node: ast.stmt | ast.expr) -> Place:
    """Where a node begins. The tree counts columns in bytes, and so no reader does."""
    line = found.lines[node.lineno - 1]
    return found.place(node.lineno, len(line.encode()[: node.col_offset].decode()) + 1)


# ---------------------------------------------------------------------------- what a test is made of

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


# Next to an operator these need the brackets that they may have around them in the text.
_LOOSE = ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda | ast.NamedExpr


def dissect(test: ast.expr, text: str) -> tuple[tuple[str, ...], list[ast.expr]]:
    """The operands of an asserted test, and the words around them.

    `a < b and torch.equal(x, y)` -> `("", " < ", " and torch.equal(", ", ", ")")` and `[a, b, x, y]`.
    Operands are the sides of comparisons and the positional arguments of calls, through `and`, `or`
    and `not`; anything else is one operand, whole. Put together again, they are the test.
    """
    found = _Dissection(text)
    found.walk(test, inside=False)
    return tuple(found.form), found.operands


class _Dissection:
    """The form and the operands of a test while it is taken apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.form = [""]
        self.operands: list[ast.expr] = []

    def walk(self, node: ast.expr, inside: bool) -> None:
        """Add `node`; `inside` says whether an operator stands next to it."""
        match node:
            case ast.Compare():
                self._comparison(node)
            case ast.BoolOp():
                self._both(node, inside)
            case ast.UnaryOp(ast.Not(), value):
                self.form[-1] += "not "
                self.walk(value, inside=True)
            case ast.Call(_, [_, *_]):
                self._call(node)
            case _:
                self._operand(node, inside)

    def _operand(self, node: ast.expr, inside: bool) -> None:
        bracketed = inside and _is_loose(node)
        self.form[-1] += "(" * bracketed
        self.operands.append(node)
        self.form.append(")" * bracketed)

    def _comparison(self, node: ast.Compare) -> None:
        self._operand(node.left, inside=True)
        for op, side in zip(node.ops, node.comparators, strict=True):
            self.form[-1] += f" {_OPERATORS[type(op)]} "
            self._operand(side, inside=True)

    def _both(self, node: ast.BoolOp, inside: bool) -> None:
        word = " and " if isinstance(node.op, ast.And) else " or "
        self.form[-1] += "(" * inside
        for i, value in enumerate(node.values):
            self.form[-1] += word * (i > 0)
            self.walk(value, inside=True)
        self.form[-1] += ")" * inside

    def _call(self, node: ast.Call) -> None:
        called = _segment(self.text, node.func)
        atom = isinstance(node.func, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
        self.form[-1] += (called if atom else f"({called})") + "("
        for i, argument in enumerate(node.args):
            self.form[-1] += ", " * (i > 0) + "*" * isinstance(argument, ast.Starred)
            self._operand(argument.value if isinstance(argument, ast.Starred) else argument, inside=False)
        for keyword in node.keywords:
            name = f"{keyword.arg}=" if keyword.arg else "**"
            self.form[-1] += f", {name}{_segment(self.text, keyword.value)}"
        self.form[-1] += ")"


def _is_loose(node: ast.expr) -> bool:
    return isinstance(node, _LOOSE) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _exact_segment(text: str, node: ast.expr) -> str:
    """As `ast.get_source_segment`, which reads the whole text at every call. Columns count bytes of UTF-8."""
    last_line, last_column = node.end_lineno, node.end_col_offset
    if last_line is None or last_column is None:
        return ""
    lines = [line.encode() for line in _lines(text)[node.lineno - 1 : last_line]]
    lines[-1] = lines[-1][:last_column]
    lines[0] = lines[0][node.col_offset :]
    return b"\n".join(lines).decode()


def _segment(text: str, node: ast.expr) -> str:
    """The user's own text of an expression, on one line; rewritten where comments stand in between."""
    segment = _exact_segment(text, node) or ast.unparse(node)
    if "\n" not in segment:
        return segment
    if "#" in segment or '"""' in segment or "'''" in segment:
        return ast.unparse(node)
    return re.sub(r"\s*\\?\n\s*", " ", segment)


# ---------------------------------------------------------------------------- prose that did not run


def unspoken(statement: ast.stmt) -> str:
    """What a piece says without being run, as Markdown; an ellipsis where running would put a value.

    A note its text, `question()` what it asks, `misbelief()` both sides, a figure or picture its caption,
    `link()` its text and target. "" for other statements.
    """
    match statement:
        case ast.Expr(ast.Call(func, given, keywords)):
            named = {k.arg: k.value for k in keywords if k.arg}
        case _:
            return ""
    texts = [inspect.cleandoc(_unspoken_text(node)) for node in given]
    match _dotted(func).split(".")[-1], texts:
        case "note", [text, *_]:
            return text
        case "question", [text, *_]:
            return f"**Check yourself.** {text}"
        case "misbelief", [said, run, *_]:
            return f"**Commonly said:** “{said}”\n\n**Run:** {run}"
        case "figure" | "image", _:
            caption = named.get("caption") or named.get("alt") or ast.Constant("…")
            return f"**Not drawn yet:** {inspect.cleandoc(_unspoken_text(caption))}"
        case "link", [target, *rest]:
            name = _dotted(given[0])
            text, to = (rest or [""])[0], f"#{name}" if name else target
            return f"{text} [{to}]".strip() if to.startswith("@") else f"[{text or name or to}]({to})"
    return ""


def _unspoken_text(node: ast.expr) -> str:
    """A string's text, as far as it stands in the source."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values):
            return "".join(map(_unspoken_text, values))
        case ast.BinOp(left, ast.Add(), right):
            return _unspoken_text(left) + _unspoken_text(right)
    return "…"


# ---------------------------------------------------------------------------- compiled code


def _leave_compiled_code_alone(found: Lecture) -> None:
    """Find what a compiler will read from source or bytecode, and what that calls in turn.

    What is named in `torch.compile(f)` or decorated with `@triton.jit` is known by name; for a call on
    anything else (a module object, say) every class of the lecture is left alone.
    """
    named: dict[str, list[ast.AST]] = {}
    for node in found.function_of:
        if isinstance(node, Definition):
            named.setdefault(node.name, []).append(node)
    todo = [*found.untouched, *_compiled(found, named)]
    while todo:
        node = todo.pop()
        found.untouched.add(node)
        inner = _everything(node)
        own = _variables(inner)
        for used in inner:
            if not (isinstance(used, ast.Name) and used.id in own):
                todo.extend(it for it in named.get(_called(used), []) if it not in found.untouched)


def _variables(nodes: list[ast.AST]) -> set[str]:
    """Parameters and variables of a function: where it says `gradients`, it does not mean the section."""
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    taken = {n.arg for n in nodes if isinstance(n, ast.arg)}
    shared = {n for it in nodes if isinstance(it, ast.Global | ast.Nonlocal) for n in it.names}
    return (stored | taken) - shared


def _compiled(found: Lecture, named: dict[str, list[ast.AST]]) -> Iterator[ast.AST]:
    """The functions and classes that are handed to a compiler, by a decorator or a call."""
    classes = [node for several in named.values() for node in several if isinstance(node, ast.ClassDef)]
    suspects = [node for node in found.tree.body if _may_name_a_compiler(found.text_of(node))]
    for node in (inner for suspect in suspects for inner in _everything(suspect)):
        if isinstance(node, Definition):
            if any(_compiles(decorator) for decorator in node.decorator_list):
                yield node
        elif isinstance(node, ast.Call) and _compiles(node.func):
            match [*node.args[:1], *(k.value for k in node.keywords if k.arg == "model")]:
                case [ast.Name(id=name)] if name in named:
                    yield from named[name]
                case [ast.Constant() | ast.JoinedStr()]:
                    pass  # text: a pattern or a program, no function
                case given:  # a module object, or nothing at all in `model.compile()`
                    inner = [n for expression in given for n in ast.walk(expression)]
                    yield from (n for used in inner for n in named.get(_called(used), []))
                    yield from classes


def _may_name_a_compiler(text: str) -> bool:
    return any(word in text for word in COMPILERS) or bool(not text.isascii() and _FOREIGN.search(text))


def _called(node: ast.AST) -> str:
    """The name by which an expression may mean a definition of this file: `f`, or `f` of `self.f`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return name
    return ""


def _compiles(node: ast.expr) -> bool:
    """Whether `node` names a compiler: `torch.compile`, `triton.jit(...)`, `partial(torch.compile, ...)`."""
    if isinstance(node, ast.Call):
        if _dotted(node.func).endswith("partial") and node.args:
            return _compiles(node.args[0])
        node = node.func
    head, _, tail = _dotted(node).rpartition(".")
    return (tail in COMPILERS and head not in ("re", "regex", "")) or _dotted(node) in ("njit", "jit")
