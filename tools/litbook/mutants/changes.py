"""The code above a section's claims, changed a little in ways that some claim or shown value should notice.

Knows the text alone; `noticed` runs what is made here. A *change* sets one field of one node of
the tree, or puts `pass` for a statement, so that the text, its lines and the numbers of its statements stay.

    left out    an assignment, a `del`, a call for its effect
    dtype       another one near it: `float32` to `float64`, `.half()` to `.float()`
    number      an integer plus one, a large one plus a tenth, and doubled; a float doubled (zero becomes
                one), and halved
    operator    `+` and `-`, `*` and `/` swapped; `//`, `%` and `**` become `*`
    factor      of a product or quotient, left out
    quantity    what an arithmetic expression comes to, doubled, where a name gets it
    constant    another of its kind: a text that the lecture gives to the same call or index elsewhere
                (`RATES["fast"]`), a constant that the same import brings (`HOUR` for `DAY`)
    arguments   the first two of a call swapped
    keyword     dropped from its call

Of a section's own body, that is: of headers, of simple statements, of the defaults of a nested function.
Let be are claims (`claims` changes these), asserts, prose and figures, imports, annotations, hidden lines,
what is shown with `@measure`, which is compared with nothing, and seeds: a claim has to hold with any.
Helpers are let be too: what one of them does shows in all the sections that call it.

A change that no claim need notice is excused where it stands: `# @unnoticed: 8 -> 9, 8 -> 16: any size does`.
Each is named as it is listed, or by what stands before its arrow, which names all that `8` becomes.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from litbook.finding import Finding, Place
from litbook.lecture.model import Lecture
from litbook.python.nodes import DefinitionNode, blocks, segment

DTYPES = {
    "float64": "float32", "float32": "float64", "float16": "float32", "bfloat16": "float32",
    "float8_e4m3fn": "float16", "float8_e5m2": "float16",
    "int64": "int32", "int32": "int64", "int16": "int32", "int8": "int16", "uint8": "int16",
}  # fmt: skip
CASTS = {
    "half": "float", "bfloat16": "float", "float": "double", "double": "float", "int": "long", "long": "int",
}  # fmt: skip
OPERATORS: dict[type[ast.operator], tuple[str, type[ast.operator], str]] = {
    ast.Add: ("+", ast.Sub, "-"), ast.Sub: ("-", ast.Add, "+"), ast.Mult: ("*", ast.Div, "/"),
    ast.Div: ("/", ast.Mult, "*"), ast.FloorDiv: ("//", ast.Mult, "*"), ast.Mod: ("%", ast.Mult, "*"),
    ast.Pow: ("**", ast.Mult, "*"),
}  # fmt: skip
COMMUTE = {"max", "min", "equal", "isclose", "allclose", "promote_types", "isdisjoint"}  # as arguments swap
LARGE = 1000  # a whole number from which on one more cannot be seen in what is computed with it
SEEDS = {"manual_seed", "seed", "default_rng"}  # who is given a seed
_CONSTANT = re.compile(r"[A-Z](?:\w*[A-Z0-9])?")  # `HOUR`, `TiB`: what a constant is called, and no class
_LEFT_OUT = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Delete
_LET_BE = ast.Assert | ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Excuse:
    """What `# @unnoticed` says at `place` of the changes that it calls `name`: why no claim need notice."""

    place: Place
    name: str
    reason: str


@dataclass(frozen=True)
class CodeChange:
    """One thing about one statement. `change` says what, at `line` and 1-based `column` of its file."""

    statement: int
    line: int
    column: int
    change: str
    node: ast.AST
    field: str
    value: Any
    excuse: Excuse | None = None

    @property
    def names(self) -> tuple[str, str]:
        """What an excuse may call it."""
        return self.change, self.change.partition(" -> ")[0]

    def make(self, lecture: Lecture) -> None:
        """Change the tree itself, for good. A `pass` in the place of a statement is known by its number."""
        if self.field:
            setattr(self.node, self.field, self.value)
            return
        lecture.statement_of[self.value] = self.statement
        lecture.watches_of[self.value] = lecture.watches_of.get(self.node, [])
        tree = lecture.file_of_statement(self.statement).tree
        for inside in (vars(block) for block in (tree, *blocks(tree))):
            for name in inside.keys() & {"body", "orelse", "finalbody"}:
                inside[name][:] = [self.value if s is self.node else s for s in inside[name]]


def changes(lecture: Lecture) -> dict[int, list[CodeChange]]:
    """Every change of the body of each part and section, in the order of its text, by its function."""
    made: dict[int, list[CodeChange]] = {function: [] for function in lecture.order}
    # What is of one kind: the texts given at one place of a call or index, the constants of one import.
    alike = defaultdict[tuple[str, object], set[str]](set)
    for file in lecture.files:
        for node in ast.walk(file.tree):
            for place, text in _texts(node):
                alike[place].add(str(text.value))
            if isinstance(node, ast.ImportFrom):
                names = {alias.asname or alias.name for alias in node.names}
                constants = {name for name in names if _CONSTANT.fullmatch(name)}
                for name in constants:
                    alike[file.name, name] |= constants
    kinds = {place: sorted(texts) for place, texts in alike.items() if len(texts) > 1}
    for node, number in lecture.statement_of.items():
        statement = lecture.statements[number]
        measured = any(lecture.watches[i].kind == "measure" for i in lecture.watches_of.get(node, ()))
        let_be = measured or node in lecture.claim_of or isinstance(node, _LET_BE)
        if statement.function in made and statement.kind in ("code", "def") and not let_be:
            of_it = [*_ChangeGenerator(lecture, number, kinds).changes_of(node)]
            excuses = {excuse.name: excuse for excuse in _excuses(lecture, node, of_it) if excuse.reason}
            for change in of_it:
                excuse = next((excuses[name] for name in change.names if name in excuses), None)
                made[statement.function].append(replace(change, excuse=excuse))
    return {i: sorted(of_it, key=lambda change: (change.line, change.column)) for i, of_it in made.items()}


def find_bad_excuses(lecture: Lecture) -> list[Finding]:
    """Excuses that name no change of their statement, in the order of the text."""
    made = defaultdict[int, list[CodeChange]](list)
    for change in itertools.chain(*changes(lecture).values()):
        made[change.statement].append(change)
    problems = list[tuple[str, int, Finding]]()
    for node in lecture.unnoticed:
        of_it = made[lecture.statement_of[node]] if isinstance(node, ast.stmt) else []
        for excuse in _excuses(lecture, node, of_it):
            if not excuse.reason:
                there = ", ".join(dict.fromkeys(change.change for change in of_it)) or "none is made"
                what = f"@unnoticed names no change of its statement: {excuse.name!r}"
                problem = Finding("unnoticed", what, excuse.place, f"the changes of it: {there}")
                problems.append((excuse.place.path, excuse.place.line, problem))
    return [problem for *_, problem in sorted(problems, key=lambda problem: problem[:2])]


def _excuses(lecture: Lecture, node: ast.AST, made: list[CodeChange]) -> Iterator[Excuse]:
    """What the comments at a statement excuse of the changes made of it; without a reason what names none."""
    names = sorted({name for change in made for name in change.names}, key=len, reverse=True)
    for place, text in lecture.unnoticed.get(node, ()):
        named, left, ended = list[str](), text, False
        while not ended:
            # A change may hold a comma or a colon itself, so the longest that fits is taken.
            name = next((n for n in names if left.startswith((f"{n},", f"{n}:"))), None)
            if name is None:
                yield Excuse(place, left, "")
                break
            named.append(name)
            ended, left = left[len(name)] == ":", left[len(name) + 1 :].strip()
        yield from (Excuse(place, name, left) for name in named if ended)


def _texts(node: ast.AST) -> Iterator[tuple[tuple[str, object], ast.Constant]]:
    """The texts that are arguments of a call, or an index; patterns of axes are each for their own tensor."""
    given: list[tuple[str, object, ast.expr]] = []
    match node:
        case ast.Call(func, arguments, keywords):
            given += [(f"{ast.unparse(func)}(", i, argument) for i, argument in enumerate(arguments)]
            given += [(f"{ast.unparse(func)}(", word.arg, word.value) for word in keywords]
        case ast.Subscript(value, index):
            given.append((f"{ast.unparse(value)}[", 0, index))
    for name, place, text in given:
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and "->" not in text.value:
            yield (name, place), text


def _next(texts: list[str], text: str) -> str:
    """The one behind a text, in a ring."""
    return texts[(texts.index(text) + 1) % len(texts)]


class _ChangeGenerator:
    """The changes of one statement."""

    def __init__(self, lecture: Lecture, number: int, kinds: dict[tuple[str, object], list[str]]) -> None:
        self.file, self.number, self.kinds = lecture.file_of_statement(number), number, kinds

    def changes_of(self, statement: ast.stmt) -> Iterator[CodeChange]:
        """The changes of the statement, and of every expression in it that may change."""
        if isinstance(statement, _LEFT_OUT) and getattr(statement, "value", statement) is not None:
            yield self.change(statement, "left out", "", ast.copy_location(ast.Pass(), statement))
        match statement:
            case ast.Assign(value=ast.BinOp(op=op) as value) if type(op) in OPERATORS and not _of_text(value):
                twice = ast.copy_location(ast.BinOp(ast.Constant(2), ast.Mult(), value), value)
                yield self.change(statement, "doubled", "value", ast.fix_missing_locations(twice), value)
        todo: list[ast.AST] = [statement]
        while todo:
            node = todo.pop()
            todo += _parts(node)
            yield from self.changes_inside(node)
            for place, text in _texts(node):
                if place in self.kinds:
                    other = _next(self.kinds[place], str(text.value))
                    yield self.change(text, f"{text.value!r} -> {other!r}", "value", other)

    def changes_inside(self, node: ast.AST) -> Iterator[CodeChange]:
        """The changes of one node of an expression."""
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                whole = isinstance(number, int)
                more = number + max(1, number // 10 if number >= LARGE else 1)  # that one can see
                others = (more, number * 2) if whole else (number * 2 or 1.0, number / 2)
                for new in dict.fromkeys(other for other in others if other != number):
                    was = segment(self.file.text, node)
                    yield self.change(node, f"{was} -> {new!r}", "value", new)
            case ast.AugAssign(op=op):
                yield from self.operator(node, op)
            case ast.BinOp(left, op, right) if not _is_text(left) and not _is_text(right):
                yield from self.operator(node, op)
                yield from self.factors(node)
            case ast.Call(ast.Attribute(attr=name) as cast, [], []) if name in CASTS:
                yield self.change(cast, f".{name}() -> .{CASTS[name]}()", "attr", CASTS[name])
            case ast.Name(name) if (self.file.name, name) in self.kinds:
                constant = _next(self.kinds[self.file.name, name], name)
                yield self.change(node, f"{name} -> {constant}", "id", constant)
            case ast.Call():
                yield from self.arguments(node)
                for keyword in node.keywords:
                    left_over = [other for other in node.keywords if other is not keyword]
                    if keyword.arg is not None:
                        what = f"{keyword.arg}= dropped"
                        yield self.change(node, what, "keywords", left_over, keyword.value)
            case ast.Attribute(attr=name) if name in DTYPES:
                yield self.change(node, f"{name} -> {DTYPES[name]}", "attr", DTYPES[name])

    def factors(self, node: ast.BinOp) -> Iterator[CodeChange]:
        """The product or quotient with one of its factors left out."""
        if isinstance(node.op, ast.Mult | ast.Div):
            for side in ("left", "right") if isinstance(node.op, ast.Mult) else ("right",):
                factor = getattr(node, side)
                one = ast.copy_location(ast.Constant(1), factor)
                if not (isinstance(factor, ast.Constant) and factor.value == 1):
                    text = " ".join(segment(self.file.text, factor).split())
                    yield self.change(node, f"factor {text} left out", side, one, factor)

    def arguments(self, node: ast.Call) -> Iterator[CodeChange]:
        """The call with its first two arguments swapped, where that may matter."""
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        match node.args:
            case [one, other, *more] if name not in COMMUTE and ast.dump(one) != ast.dump(other):
                if not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred):
                    yield self.change(node, "arguments swapped", "args", [other, one, *more])

    def operator(self, node: ast.stmt | ast.expr, op: ast.operator) -> Iterator[CodeChange]:
        """Another operator in the place of this one."""
        if type(op) in OPERATORS:
            was, other, now = OPERATORS[type(op)]
            yield self.change(node, f"{was} -> {now}", "op", other())

    def change(
        self, node: ast.stmt | ast.expr, what: str, field: str, value: object, at: ast.expr | None = None
    ) -> CodeChange:
        """One change, at the place of its node or of a part of that."""
        place = self.file.place_of(at or node)
        return CodeChange(self.number, place.line, place.column, what, node, field, value)


def _parts(node: ast.AST) -> list[ast.AST]:
    """What is in a node and may change: no statements, no annotation, no pattern of a `case`, no f-string."""
    match node:
        case _ if isinstance(node, DefinitionNode):
            arguments = getattr(node, "args", None)
            return [*arguments.defaults, *filter(None, arguments.kw_defaults)] if arguments else []
        case ast.JoinedStr() | ast.match_case() | ast.ExceptHandler():
            return []
        case ast.Call(ast.Attribute(value, name)):  # `x.bfloat16()` names no dtype
            return [value] if name in SEEDS else [value, *node.args, *node.keywords]
        case ast.AnnAssign():
            return [part for part in (node.target, node.value) if part is not None]
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _of_text(node: ast.expr) -> bool:
    """Whether a text, a list or a tuple is added up or repeated in an expression."""
    match node:
        case ast.BinOp(left, _, right):
            return _of_text(left) or _of_text(right)
    return _is_text(node) or isinstance(node, ast.List | ast.Tuple | ast.ListComp)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )
