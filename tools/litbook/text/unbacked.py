"""Numbers in a lecture's prose that nothing backs. Reads the text alone: nothing runs, nothing is imported.

Prose is what a reader reads as the book's own words: notes, both texts of a misbelief, questions and hints,
captions and alternative texts of figures and images, the text of a link, the headings of sections. The
caption of a claim is none: it is a label, and what it labels stands beside it, computed. A number in prose is

    computed     an f-string's hole puts it there;
    cited        `[@key]` stands in the same piece: the same note, either text of a misbelief ...
    structural   the number of a heading or list item; part of a name (`R2`, `Python-3`, `float32`);
                 in a formula, an address or code. A number alone in backticks is code where the section's
                 code, or what it calls, holds that number; elsewhere it is a number like any other. In a
                 question it is what the exercise gives, and that needs no backing.

What is left is *unbacked*. Digits always count; so do number words with a unit behind them ("two weeks"),
because that is how a number looks that somebody looked up. A heading cannot have holes, so a number in it is
backed where the section's code holds it. `docs/write-a-lecture.md` tells authors the same.

Listed too is a number that was meant to be computed: `{name}` in a string without its `f`, where the section
or the module knows the name. Readers would see the braces. In code and formulas they are let be.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from litbook.errors import Problem
from litbook.record import model
from litbook.text import scopes
from litbook.text.file import File
from litbook.text.lecture import Lecture
from litbook.text.literals import HOLE, Passage, Source
from litbook.text.program import Program
from litbook.text.source import parse_sources
from litbook.text.tree import FunctionNode
from litbook.text.words import UNKNOWN, WORDS, calls

WAY_OUT = "compute it in an f-string's {…}, cite its source with [@key], or say it without the number"
WAY_OUT_QUESTION = (
    "put backticks around it where the exercise gives it, compute it in an f-string's {…}, "
    "cite its source with [@key], or say it without the number"
)
WAY_OUT_HEADING = "let the section's code hold it, in a claim say, or give the heading without the number"

# ---------------------------------------------------------------------------- what a number looks like

_EXPONENT = r"(?:[eE][-+−]?\d+)?"
_DIGITS = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d+(?:_\d+)*)(?:\.\d+)*{_EXPONENT}|\.\d+{_EXPONENT}"
_SCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_NUMBER = re.compile(
    rf"""(?<![\w.])(?<![^\W\d_]-)          # R2, Python-3 and 1.2.3 from its middle are no numbers
    (?<![^\W\d_]-\d-)                     # nor is Name-3-8B from there
    (?:\d{{4}}-\d\d-\d\d(?!\d)             # a date
    |\d+/\d+(?![\w/])                      # a fraction
    |(?:{_DIGITS})[{_SCRIPT}]*             # 12, 1,000, 3.14e23, 10²³
    |[¼½¾⅐-⅞])                             # a fraction in one character
    [^\W_]*                                # 70B, 4x, 3rd""",
    re.VERBOSE,
)
_SMALL = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"""
_SCALE = ("hundred", "thousand", "million", "billion", "trillion", "dozen")
_UNITS = """bit byte [kKMGTP]i?B FLOP FLOPs? FLOP/s second minute hour day week month year decade century
    centuries percent watt joule hertz [kMGT]?Hz dollar euro degree metre mile token parameter time"""
_VALUE = "|".join([*_SMALL.split(), *_SCALE])
_WORDS = re.compile(
    rf"\b(?P<words>(?:{_VALUE})(?:(?:-|\s+and\s+|\s+)(?:{_VALUE})){{0,11}})"  # no number has more words
    rf"(?:-|\s+)(?:{'|'.join(_UNITS.split())})s?\b",
    re.IGNORECASE,
)
# Before "million parameters" these leave nothing to say: the number stands before it, or nobody gives one.
_SAID_BEFORE = re.compile(rf"(?:[\d%{HOLE}`]|\b(?:few|several|many|some))\s*$")

# ---------------------------------------------------------------------------- what is structural

_FENCE = re.compile(r"^[ ]*(`{3,}|~{3,}).*?(?:^[ ]*\1[`~]*[ ]*$|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_BARE = re.compile(rf"[-−+±~]?(?:{_DIGITS})(?:[ ]?[A-Za-z%/]+)?(?:,[ ]*[-−+±~]?(?:{_DIGITS}))*")
_CITATION = re.compile(r"\[@(?!(?:fig|tab|eq):)[\w:./+-]+(?:\s*;\s*@[\w:./+-]+)*\]")
_STRUCTURE = (
    re.compile(r"(?<![\\$])\$\$.+?\$\$", re.DOTALL),
    re.compile(r"(?<![\\$\w])\$(?![\s$])(?:[^$\\\n]|\\.|\n(?!\n))+?(?<!\s)\$(?![\d$])"),
    _CITATION,
    re.compile(r"\[(?:@(?:fig|tab|eq):[\w.-]+|\^[^\]\s]+)\]"),  # a figure, a footnote
    re.compile(r"(?<=\])\([^()\s]*(?:\([^()]*\)[^()\s]*)*\)"),  # where a link leads
    re.compile(r"https?://[^\s<>\"'`]+"),
    re.compile(r"^[ >]*\d+[.)][ ]", re.MULTILINE),  # an item of a list
    re.compile(r"^[ ]*#{1,6}[ ]+\d+(?:\.\d+)*[.)]?[ ]", re.MULTILINE),  # the number of a heading
)


@dataclass(frozen=True)
class _Text:
    """One passage of prose, with what backs the numbers in it."""

    file: File
    passage: Passage
    cited: bool
    held: frozenset[float]  # the numbers that the section's code holds
    known: frozenset[str] = frozenset()  # the names that a hole could have named here
    heading: bool = False
    exercise: bool = False  # a question: numbers in backticks are given


def unbacked(lecture: Lecture) -> list[Problem]:
    """Every unbacked number of `lecture` and every brace that lacks its `f`, in the order of its files."""
    found: dict[tuple[int, int, int], Problem] = {}
    for text in _texts(lecture, Program(lecture.names)):
        forgotten = list(_forgotten(text))
        for match in forgotten:
            what = f"{match[0]} is shown as it stands: its string has no f"
            way_out = f"put f before the quotation mark, or backticks around {match[0]}"
            place = text.passage.places[match.start()]
            found[text.file.number, *place] = Problem("forgotten-f", what, text.file.place(*place), way_out)
        for place, number in _numbers(text, [match.span() for match in forgotten]):
            what = f"unbacked: the number {number!r} in {'a heading' if text.heading else 'prose'}"
            way_out = WAY_OUT_HEADING if text.heading else WAY_OUT_QUESTION if text.exercise else WAY_OUT
            found[text.file.number, *place] = Problem("unbacked", what, text.file.place(*place), way_out)
    return [found[place] for place in sorted(found)]


def in_sources(sources: Sequence[model.Source]) -> list[Problem]:
    """The same for a lecture's text: what a record holds."""
    return unbacked(parse_sources(sources))


def _numbers(text: _Text, holes: Sequence[tuple[int, int]] = ()) -> Iterator[tuple[tuple[int, int], str]]:
    """The numbers of a passage that are neither computed nor cited nor structural, each with its place.

    What stands in `holes` would be computed.
    """
    if text.cited:
        return
    bare = _without_structure(text.passage.text, text.held, text.exercise)
    for start, end in holes:
        bare = bare[:start] + HOLE * (end - start) + bare[end:]
    for match in _NUMBER.finditer(bare):
        if not (text.heading and _values(match[0]) <= text.held):
            yield text.passage.places[match.start()], match[0]
    if text.heading:
        return  # "Six FLOPs per parameter" is the thesis of a section: it is what its claims are about
    for match in _WORDS.finditer(bare):
        scale = match["words"].split()[0].lower() in _SCALE
        if not (scale and _SAID_BEFORE.search(bare[: match.start()])):
            yield text.passage.places[match.start()], " ".join(match[0].split())


def _without_structure(text: str, held: frozenset[float], exercise: bool = False) -> str:
    """`text` with blanks for what is structural: every character keeps its place."""

    def code(match: re.Match[str]) -> str:
        inside = match[2].strip()
        if exercise and _BARE.fullmatch(inside):
            return HOLE * len(match[0])  # "`2` trillion tokens": the reader is given a number here
        if _BARE.fullmatch(inside) and not _values(inside) <= held:
            ticks = " " * len(match[1])
            return ticks + match[2] + ticks
        return _blank(match)

    text = _CODE.sub(code, _FENCE.sub(_blank, text))
    return functools.reduce(lambda left, pattern: pattern.sub(_blank, left), _STRUCTURE, text)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _values(text: str) -> frozenset[float]:
    """The numbers written in `text`, without their signs."""
    return frozenset(
        float(re.sub("[,_]", "", match[0]).replace("−", "-"))
        for match in re.finditer(rf"(?<![\w.]){_DIGITS}", text)
        if match[0].count(".") < 2
    )


# ---------------------------------------------------------------------------- a forgotten f

_BRACED = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")


def _forgotten(text: _Text) -> Iterator[re.Match[str]]:
    """What would be a hole of this passage, did its string have an `f`."""
    if text.heading or "{" not in text.passage.text:
        return
    for match in _BRACED.finditer(_without_structure(text.passage.text, text.held, text.exercise)):
        line, column = text.passage.places[match.start()]
        doubled = text.file.lines[line - 1].startswith("{{", column - 1)  # an f-string's way to write a brace
        if not doubled and _would_be_filled(match[0], text.known):
            yield match


def _would_be_filled(braced: str, known: frozenset[str]) -> bool:
    """Whether `braced` is a hole whose names are all known, and not a set written out: `{a, b}`."""
    try:
        literal = ast.parse(f"f{braced!r}", mode="eval").body
    except (SyntaxError, ValueError):
        return False
    holes = [node for node in ast.walk(literal) if isinstance(node, ast.FormattedValue)]
    names = {node.id for hole in holes for node in ast.walk(hole) if isinstance(node, ast.Name)}
    is_set = any(isinstance(hole.value, ast.Tuple) for hole in holes)
    return not is_set and bool(names & known) and names <= known | _BUILT_IN


_BUILT_IN = frozenset(dir(builtins))


# ---------------------------------------------------------------------------- where prose stands


def _texts(lecture: Lecture, program: Program) -> Iterator[_Text]:
    sources = [Source(file.text) for file in lecture.files]
    held = functools.cache(lambda function: _held(lecture, function, program))
    margins = [frozenset().union(*map(scopes.sets, file.tree.body)) for file in lecture.files]
    nodes = {index: node for node, index in lecture.function_of.items()}
    for statement, number in lecture.statement_of.items():
        spec = lecture.statements[number]
        file, node = lecture.file_of_statement(number), nodes[spec.function]
        for call in calls(statement) if spec.kind == "piece" else ():
            source = sources[file.number]
            passages = [p for given in _prose(call) for p in _passages(given, node, source)]
            cited = any(_CITATION.search(p.text) for p in passages)
            asks = _word(call) == "question"
            own = scopes.own(node) if isinstance(node, FunctionNode) else frozenset[str]()
            for passage in passages:
                known = margins[file.number] | own
                yield _Text(file, passage, cited, held(node), known, exercise=asks)
        if spec.kind == "doc" and lecture.functions[spec.function].kind in ("part", "section"):
            passage = _heading(statement, sources[file.number])
            yield _Text(file, passage, False, held(node), heading=True)


def _heading(statement: ast.stmt, source: Source) -> Passage:
    """The first line of a section's docstring."""
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Constant)
    whole = source.passage(statement.value)
    indent = len(whole.text) - len(whole.text.lstrip())
    end = whole.text.find("\n", indent)
    cut = slice(indent, None if end < 0 else end)
    return Passage(whole.text[cut], whole.places[cut])


def _prose(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of an author's word that are prose."""
    word = WORDS.get(_word(call), UNKNOWN)
    yield from (argument for i, argument in enumerate(call.args) if i in word.positions)
    yield from (keyword.value for keyword in call.keywords if keyword.arg in word.names)


def _word(call: ast.Call) -> str:
    """The name of the author's word that is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else str(getattr(call.func, "id", ""))


def _passages(node: ast.expr, function: ast.AST, source: Source) -> list[Passage]:
    """The passages that `node` is made of: itself, and those that names in it were given in `function`."""
    finder = _Finder(function, source)
    whole = finder.whole(node)
    return [whole, *finder.others]


class _Finder:
    """Follows an expression to the literals that it is put together from."""

    def __init__(self, function: ast.AST, source: Source) -> None:
        self.function = function
        self.source = source
        self.others: list[Passage] = []
        self.followed: set[str] = set()

    def whole(self, node: ast.expr) -> Passage:
        """`node` as one passage, with a hole for what is no literal; what fills the hole goes to `others`."""
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                return self.source.passage(node)
            case ast.BinOp(left, ast.Add(), right):
                return self.whole(left) + self.whole(right)
            case ast.BinOp(left, ast.Mod(), _):
                return _formatted(self.whole(left), r"%(\(\w+\))?[-+ #0]*[\d*]*(\.[\d*]+)?[a-zA-Z%]")
            case ast.Call(ast.Attribute(literal, "format")):
                before = len(self.others)
                made = _formatted(self.whole(literal), _FIELD)
                self.others[before:] = [_formatted(other, _FIELD) for other in self.others[before:]]
                return made
            case ast.Call(ast.Attribute(literal, "join"), [given]):
                self.inside(given)
                self.inside(literal)
            case ast.Call(ast.Attribute(ast.Constant(value=str()) | ast.JoinedStr() as literal)):
                return _formatted(self.whole(literal), r"[{}]")  # "...".replace(…), which may fill them
            case ast.Call(ast.Name("dedent" | "cleandoc"), [given]):
                return self.whole(given)
            case _:
                self.inside(node)
        return self.source.hole(node)

    def inside(self, node: ast.expr) -> None:
        """Literals that may become part of the text: of the branches, items and names in `node`."""
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
                self.others.append(self.whole(node))
            case ast.BinOp(left, _, right):  # "-" * 40
                self.inside(left)
                self.inside(right)
            case ast.IfExp(_, yes, no):
                self.inside(yes)
                self.inside(no)
            case ast.BoolOp(_, items) | ast.List(items) | ast.Tuple(items):
                for item in items:
                    self.inside(item)
            case ast.GeneratorExp(item) | ast.ListComp(item) | ast.Starred(item) | ast.NamedExpr(_, item):
                self.inside(item)
            case ast.Name(name) if name not in self.followed:
                self.followed.add(name)
                for value in self.given(name):
                    self.inside(value)

    def given(self, name: str) -> Iterator[ast.expr]:
        """What `name` is assigned, and appended, in the function."""
        for node in ast.walk(self.function):
            match node:
                case ast.Assign(targets, value) if any(
                    isinstance(t, ast.Name) and t.id == name for t in targets
                ):
                    yield value
                case ast.AnnAssign(ast.Name(target), value=ast.expr() as value) if target == name:
                    yield value
                case ast.AugAssign(ast.Name(target), _, value) if target == name:
                    yield value
                case ast.Call(ast.Attribute(ast.Name(target), "append"), [value]) if target == name:
                    yield value


_FIELD = r"\{[^{}]*\}"  # what `format` fills


def _formatted(passage: Passage, fields: str) -> Passage:
    """A passage with a hole over every field that `%` or `format` fills."""
    return Passage(re.sub(fields, lambda match: HOLE * len(match[0]), passage.text), passage.places)


# ---------------------------------------------------------------------------- numbers that code holds


def _held(lecture: Lecture, function: ast.AST, program: Program) -> frozenset[float]:
    """The numbers in the code of `function`, and of what it names at the top of any file; not of sections."""
    if isinstance(function, ast.Module):
        return frozenset()
    file = lecture.functions[lecture.function_of[function]].file
    named = (program.binding(file, name) for name in scopes.reads(function))
    nodes = [it.node for it in named if it is not None and not _is_section(lecture, it.node)]
    return frozenset(n for node in [function, *nodes] for n in _constants(node))


def _is_section(lecture: Lecture, node: ast.stmt) -> bool:
    index = lecture.function_of.get(node)
    return index is not None and lecture.functions[index].kind in ("main", "part", "section")


def _constants(node: ast.AST) -> Iterator[float]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and type(inner.value) in (int, float):
            yield _as_float(inner.value)


def _as_float(value: object) -> float:
    try:
        return abs(float(value))  # type: ignore[arg-type]
    except OverflowError:
        return float("inf")
