"""What a claim would have to refuse: its test, changed a little, in every way that should make it fail.

Knows the text alone; `litbook.run.trials` runs what is made here. A *trial* holds one or two mutants of one
claim. The claim passes it when at least one of them fails, raises, or takes too long. It survives a trial
when all of them hold just as the claim does: then what was changed does not matter to the claim.

    comparison   `==` and `!=`, `<` and `>=`, `<=` and `>`, `in` and `not in`, `is` and `is not` swapped
    `or`         becomes `and`: where that still holds, the second way out is not needed. The reverse is tried
                 only below a `not`, a call or the like: of a claim that holds, both sides of an `and` are
                 true, and so is their `or`.
    `not`        dropped
    number       What is *equal* to something is nudged by one unit of its last written digit (`16` to 15 and
                 17, `0.25` to 0.24 and 0.26) and must fail in either direction. A *bound* (under `<` and the
                 like) is nudged by a tenth of itself, an integer by at least 1, and must fail in one
                 direction: the other only makes room. A tenth, because bounds are there for what another
                 machine or draw changes; one further off than that says hardly more than a sign. The bound 0
                 has no scale; the comparison's mutant tests it. What is *inside* a call, an index or a
                 condition is nudged like an equal and must fail in one direction: the other may be the same.
    tolerance    `atol`, `rtol`, `abs_tol`, `rel_tol`: zero, and infinity. One must fail: the claim needs its
                 tolerance, or (under `not`) exceeds it.
    text         changed, and emptied; one must fail, since every text contains the empty one
    constant     `True` and `False` swapped; `None` becomes `False`
    annotation   `Float` becomes `Bool` and the like; one axis more; one axis less; another size; an axis
                 that has a size in the section already had another

What stands under `!=`, `not in` and `is not` is let be: it excludes one value, and so does its neighbour.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from litbook.text.source import Assertion, Lecture

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.LtE: ast.Gt, ast.Gt: ast.LtE,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.And: "and", ast.Or: "or",
}  # fmt: skip
TOLERANCES = ("atol", "rtol", "abs_tol", "rel_tol")
INFINITY = "1e999"  # what `ast.unparse` writes, and Python reads, for it

# Where a number stands decides how it is nudged.
EQUAL, BOUND, INSIDE, EXCLUDED = "equal", "bound", "inside", "excluded"


@dataclass(frozen=True)
class Mutant:
    """A changed test. `change` says how: `16 -> 17`."""

    change: str
    test: ast.expr

    @property
    def text(self) -> str:
        """The changed test as Python."""
        return ast.unparse(self.test)


@dataclass(frozen=True)
class Trial:
    """One or two changes at one place of a claim, of which at least one must fail."""

    claim: int
    kind: str
    line: int
    column: int  # 1-based
    mutants: tuple[Mutant, ...]


def trials(lecture: Lecture, number: int) -> list[Trial]:
    """Every trial of the claim `number` that is an `assert`, in the order of its text."""
    claim = lecture.claims[number]
    if not isinstance(claim.node, ast.Assert):
        return []
    found = [replace(trial, claim=number) for trial in _Maker(lecture, claim).trials()]
    return sorted(found, key=lambda trial: (trial.line, trial.column))


class _Maker:
    """Walks a test, knowing for every node whether the test stays true when it does, and where it stands."""

    def __init__(self, lecture: Lecture, claim: Assertion) -> None:
        assert isinstance(claim.node, ast.Assert)
        self.file = lecture.file_of_statement(claim.statement)
        self.test = claim.node.test

    def trials(self) -> Iterator[Trial]:
        yield from self.walk(self.test, INSIDE, skeleton=True)

    def trial(self, kind: str, node: ast.expr, *changes: tuple[str, ast.expr]) -> Trial:
        mutants = tuple(Mutant(change, _replaced(self.test, node, new)) for change, new in changes)
        before = self.file.lines[node.lineno - 1].encode()[: node.col_offset]
        return Trial(0, kind, node.lineno, len(before.decode()) + 1, mutants)

    def walk(self, node: ast.AST, place: str, *, skeleton: bool = False) -> Iterator[Trial]:
        """The trials in `node`. `skeleton`: only `and` and `or` stand above it."""
        match node:
            case ast.Compare():
                yield from self.comparison(node)
            case ast.BoolOp(op, values):
                if isinstance(op, ast.Or) or not skeleton:
                    other = ast.And() if isinstance(op, ast.Or) else ast.Or()
                    change = f"{SYMBOLS[type(op)]} -> {SYMBOLS[type(other)]}"
                    yield self.trial("and/or", node, (change, ast.BoolOp(other, values)))
                for value in values:
                    yield from self.walk(value, INSIDE, skeleton=skeleton)
            case ast.UnaryOp(ast.Not(), operand):
                yield self.trial("not", node, ("not dropped", operand))
                yield from self.walk(operand, INSIDE)
            case ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant(value=int() | float())):
                yield from self.constant(node, place)
            case ast.BinOp(left, _, right):
                yield from self.walk(left, place)
                yield from self.walk(right, place)
            case ast.UnaryOp(_, operand):
                yield from self.walk(operand, place)
            case ast.Tuple(items) | ast.List(items) | ast.Set(items):
                for item in items:
                    yield from self.walk(item, place)
            case ast.Call():
                yield from self.call(node)
            case ast.FormattedValue(value):
                yield from self.walk(value, INSIDE)
            case _:
                for child in ast.iter_child_nodes(node):
                    yield from self.walk(child, INSIDE)

    def comparison(self, node: ast.Compare) -> Iterator[Trial]:
        for i, op in enumerate(node.ops):
            other = FLIPPED[type(op)]()
            ops = [*node.ops[:i], other, *node.ops[i + 1 :]]
            change = f"{SYMBOLS[type(op)]} -> {SYMBOLS[type(other)]}"
            yield self.trial("comparison", node, (change, ast.Compare(node.left, ops, node.comparators)))
        places = [_place(op) for op in node.ops]
        for i, side in enumerate([node.left, *node.comparators]):
            around = {places[j] for j in (i - 1, i) if 0 <= j < len(places)}
            yield from self.walk(side, _strictest(around))

    def call(self, node: ast.Call) -> Iterator[Trial]:
        yield from self.walk(node.func, INSIDE)
        for argument in node.args:
            yield from self.walk(argument, INSIDE)
        for keyword in node.keywords:
            if keyword.arg in TOLERANCES:
                value = keyword.value
                zero, infinite = ast.Constant(0.0), ast.Constant(float("inf"))
                said = f"{keyword.arg}={_short(value)} -> {keyword.arg}="
                yield self.trial("tolerance", value, (f"{said}0", zero), (f"{said}inf", infinite))
            else:
                yield from self.walk(keyword.value, INSIDE)

    def constant(self, node: ast.expr, place: str) -> Iterator[Trial]:
        value = ast.literal_eval(node)
        if place == EXCLUDED:
            return
        match value:
            case bool():
                yield self.trial("constant", node, (f"{value} -> {not value}", ast.Constant(not value)))
            case None:
                yield self.trial("constant", node, ("None -> False", ast.Constant(False)))
            case int() | float():
                yield from self.number(node, value, place)
            case str():
                changed = ast.Constant(value + "~")
                changes = [(f"{_short(node)} -> {changed.value!r}"[:80], changed)]
                if value:
                    changes.append((f"{_short(node)} -> ''", ast.Constant("")))
                yield self.trial("text", node, *changes)
            case bytes():
                yield self.trial("text", node, (f"{_short(node)} + b'~'", ast.Constant(value + b"~")))

    def number(self, node: ast.expr, value: float, place: str) -> Iterator[Trial]:
        if place == BOUND and value == 0:
            return
        less, more = _scaled(value) if place == BOUND else self.nudged(node, value)
        written = self.written(node)
        changes = [(f"{written} -> {new!r}", _constant(new)) for new in (less, more)]
        if place == EQUAL:
            for change in changes:
                yield self.trial("number", node, change)
        else:
            yield self.trial("number", node, *changes)

    def nudged(self, node: ast.expr, value: float) -> tuple[float, float]:
        """`value` less and more one unit of the last digit that the author wrote."""
        if isinstance(value, int):
            return value - 1, value + 1
        try:
            written = Decimal(self.written(node).replace("_", ""))
        except InvalidOperation:
            return value - 1, value + 1
        exponent = written.as_tuple().exponent
        unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
        return float(written - unit), float(written + unit)

    def written(self, node: ast.expr) -> str:
        return ast.get_source_segment(self.file.text, node) or ast.unparse(node)


def _place(op: ast.cmpop) -> str:
    if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return BOUND
    if isinstance(op, ast.NotEq | ast.NotIn | ast.IsNot):
        return EXCLUDED
    return INSIDE if isinstance(op, ast.In) else EQUAL


def _strictest(places: set[str]) -> str:
    return next(place for place in (EQUAL, BOUND, INSIDE, EXCLUDED) if place in places)


def _scaled(value: float) -> tuple[float, float]:
    """`value` less and more a tenth of itself; integers stay integers."""
    if isinstance(value, int):
        step = max(1, abs(value) // 10)
        return value - step, value + step
    return value - abs(value) / 10, value + abs(value) / 10


def _constant(value: float) -> ast.expr:
    if value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def _short(node: ast.expr, most: int = 40) -> str:
    text = ast.unparse(node)
    return text if len(text) <= most else text[: most - 1] + "…"


def _replaced(test: ast.expr, old: ast.expr, new: ast.expr) -> ast.expr:
    """A copy of `test` with `new` in the place of `old`."""
    here = ast.fix_missing_locations(ast.copy_location(copy.copy(new), old))
    return copy.deepcopy(test, {id(old): here})
