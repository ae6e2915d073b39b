"""What a claim would have to refuse: its test, changed a little, in every way that should make it fail.

Knows the text alone; `trials` runs what is made here. A *trial* holds one or two mutants of one
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
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from litbook.lecture.claims import OPERATORS
from litbook.lecture.model import Lecture

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.LtE: ast.Gt, ast.Gt: ast.LtE,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
SYMBOLS = OPERATORS | {ast.And: "and", ast.Or: "or"}
TOLERANCES = ("atol", "rtol", "abs_tol", "rel_tol")

# Where a number stands decides how it is nudged.
STRICTEST_FIRST = EQUAL, BOUND, INSIDE, EXCLUDED = "equal", "bound", "inside", "excluded"
PLACES: dict[type[ast.cmpop], str] = {
    ast.Eq: EQUAL, ast.Is: EQUAL, ast.Lt: BOUND, ast.LtE: BOUND, ast.Gt: BOUND, ast.GtE: BOUND,
    ast.In: INSIDE, ast.NotEq: EXCLUDED, ast.NotIn: EXCLUDED, ast.IsNot: EXCLUDED,
}  # fmt: skip


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
    made = _MutantGenerator(lecture, number, claim.node.test).walk(claim.node.test, INSIDE, skeleton=True)
    return sorted(made, key=lambda trial: (trial.line, trial.column))


class _MutantGenerator:
    """Walks a test, knowing for every node whether the test stays true when it does, and where it stands."""

    def __init__(self, lecture: Lecture, number: int, test: ast.expr) -> None:
        self.file = lecture.file_of_statement(lecture.claims[number].statement)
        self.number, self.test = number, test

    def trial(self, kind: str, node: ast.expr, *changes: tuple[str, ast.expr]) -> Trial:
        """A trial of the test with each of these in the place of `node`."""
        mutants = []
        for change, new in changes:
            here = ast.fix_missing_locations(ast.copy_location(copy.copy(new), node))
            mutants.append(Mutant(change, copy.deepcopy(self.test, {id(node): here})))
        return Trial(self.number, kind, node.lineno, self.file.place_of(node).column, tuple(mutants))

    def walk(self, node: ast.AST, place: str, *, skeleton: bool = False) -> Iterator[Trial]:
        """The trials in `node`. `skeleton`: only `and` and `or` stand above it."""
        match node:
            case ast.Compare():
                yield from self.comparison(node)
            case ast.BoolOp(op, values):
                if isinstance(op, ast.Or) or not skeleton:
                    join = ast.And() if isinstance(op, ast.Or) else ast.Or()
                    change = f"{SYMBOLS[type(op)]} -> {SYMBOLS[type(join)]}"
                    yield self.trial("and/or", node, (change, ast.BoolOp(join, values)))
                for value in values:
                    yield from self.walk(value, INSIDE, skeleton=skeleton)
            case ast.UnaryOp(ast.Not(), operand):
                yield self.trial("not", node, ("not dropped", operand))
                yield from self.walk(operand, INSIDE)
            case ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant(value=int() | float())):
                if place != EXCLUDED:
                    yield from self.constant(node, place)
            case ast.BinOp() | ast.UnaryOp() | ast.Tuple() | ast.List() | ast.Set():
                for child in ast.iter_child_nodes(node):
                    yield from self.walk(child, place)
            case ast.keyword(arg=name, value=value) if name in TOLERANCES:
                zero, infinite = ast.Constant(0.0), ast.Constant(float("inf"))
                change = f"{name}={_short(value)} -> {name}="
                yield self.trial("tolerance", value, (f"{change}0", zero), (f"{change}inf", infinite))
            case ast.FormattedValue(value):  # and not its format
                yield from self.walk(value, INSIDE)
            case _:
                for child in ast.iter_child_nodes(node):
                    yield from self.walk(child, INSIDE)

    def comparison(self, node: ast.Compare) -> Iterator[Trial]:
        """The trials of each operator, and of each side as strictly as it is compared."""
        for i, op in enumerate(node.ops):
            other = FLIPPED[type(op)]
            change = f"{SYMBOLS[type(op)]} -> {SYMBOLS[other]}"
            ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
            yield self.trial("comparison", node, (change, ast.Compare(node.left, ops, node.comparators)))
        places = [PLACES[type(op)] for op in node.ops]
        for i, side in enumerate([node.left, *node.comparators]):
            around = places[max(0, i - 1) : i + 1]
            yield from self.walk(side, min(around, key=STRICTEST_FIRST.index))

    def constant(self, node: ast.expr, place: str) -> Iterator[Trial]:
        """The trials of a constant, by what it is and where it stands."""
        value = ast.literal_eval(node)
        match value:
            case bool():
                yield self.trial("constant", node, (f"{value} -> {not value}", ast.Constant(not value)))
            case None:
                yield self.trial("constant", node, ("None -> False", ast.Constant(False)))
            case int() | float():
                if place == BOUND and value == 0:
                    return
                written = ast.get_source_segment(self.file.text, node) or ast.unparse(node)
                # Less and more a tenth of itself, where integers stay integers; or a unit of the last digit
                # that the author wrote.
                if place == BOUND:
                    step = max(1, abs(value) // 10) if isinstance(value, int) else abs(value) / 10
                    nudged = value - step, value + step
                    if isinstance(value, float):  # 9e-10, not 9.000000000000001e-10
                        nudged = float(f"{nudged[0]:.12g}"), float(f"{nudged[1]:.12g}")
                else:
                    nudged = _nudge(value, written)
                changes = []
                for new in nudged:
                    constant: ast.expr = ast.Constant(abs(new))
                    constant = ast.UnaryOp(ast.USub(), constant) if new < 0 else constant
                    changes.append((f"{written} -> {new!r}", constant))
                for trial in [[change] for change in changes] if place == EQUAL else [changes]:
                    yield self.trial("number", node, *trial)
            case str():
                longer = ast.Constant(value + "~")
                emptied = [(f"{_short(node)} -> ''", ast.Constant(""))] * bool(value)
                yield self.trial("text", node, (f"{_short(node)} -> {longer.value!r}"[:80], longer), *emptied)
            case bytes():
                yield self.trial("text", node, (f"{_short(node)} + b'~'", ast.Constant(value + b"~")))


def _nudge(value: float, written: str) -> tuple[float, float]:
    """`value` less and more one unit of the last digit that the author wrote."""
    if isinstance(value, int):
        return value - 1, value + 1
    try:
        digits = Decimal(written.replace("_", ""))
    except InvalidOperation:
        return value - 1, value + 1
    exponent = digits.as_tuple().exponent
    unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
    return float(digits - unit), float(digits + unit)


def _short(node: ast.expr, most: int = 40) -> str:
    text = ast.unparse(node)
    return text if len(text) <= most else text[: most - 1] + "…"
