"""Where the test of an assert compares: two things with each other, or how far they are apart with a bound.

In goes the test, out come nodes of it. Nothing runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from litbook.probe.settled import ALIKE, ASKED, NOT_CLOSE, NOT_IN, UNLIKE

Place = tuple[ast.AST, str, int | None]  # a node, its field, and which item of that
_EQUAL = ("equal", "equals", "close", "eq", "zip")  # ends of names of calls that set two things side by side
# Who asks for these asks whether two things are one.
_PLACES = ("id", "hash", "data_ptr", "storage", "untyped_storage", "ctypes", "__array_interface__")


def pairs(test: ast.expr, denied: bool = False) -> Iterator[tuple[int, list[Place]]]:
    """What in a test sets two things against each other: how, and where they are.

    A test that is `denied` stands behind a `not`.
    """
    sides, places, how = list[ast.expr](), list[Place](), ALIKE
    match test:
        case ast.Compare(left, [ast.Eq() | ast.NotEq() | ast.In() | ast.NotIn() as op], [right]):
            sides, places = [left, right], [(test, "left", None), (test, "comparators", 0)]
            apart = isinstance(op, ast.NotEq | ast.NotIn) is not denied
            if isinstance(op, ast.In | ast.NotIn):
                how = NOT_IN if apart else -1
            else:
                how = UNLIKE if apart else ALIKE
        case ast.Compare(left, [ast.LtE() | ast.GtE()], [right]):
            sides, places = [left, right], [(test, "left", None), (test, "comparators", 0)]
        case ast.BinOp(left, ast.Sub(), right):
            sides, places = [left, right], [(test, "left", None), (test, "right", None)]
        case ast.Call(func, [left, right, *_]) if last_name(func).endswith(_EQUAL):
            sides, places = [left, right], [(test, "args", 0), (test, "args", 1)]
            how = NOT_CLOSE if denied else ALIKE
        case ast.Call(ast.Attribute(left, name) as method, [right]) if name.endswith(_EQUAL):
            sides, places = [left, right], [(method, "value", None), (test, "args", 0)]
            how = NOT_CLOSE if denied else ALIKE
    if how == ALIKE and not isinstance(test, ast.BinOp) and _is_of_the_other(sides):
        how = -1  # `x.T.T == x` says something of `.T`, though both are the same memory
    # What is written there is no other name for anything; but it may never be equal.
    written = [isinstance(side, ast.Constant) for side in sides]
    known = all(written) or (any(written) and how == ALIKE)
    if sides and how >= 0 and not known and not any(isinstance(side, ast.Starred) for side in sides):
        yield how, places
    if sides and how == ALIKE and isinstance(test, ast.Compare):
        yield from ((ASKED, names) for names in _asked_alike(*sides))
    inner = denied is not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))
    for part in ast.iter_child_nodes(test):
        if isinstance(part, ast.expr | ast.comprehension | ast.keyword):
            yield from pairs(part, inner)  # type: ignore[arg-type]


def _is_of_the_other(sides: list[ast.expr]) -> bool:
    """Whether one of two things is a name, and the other is worked out from it in the test."""
    for one, other in (sides, sides[::-1]) if sides else ():
        worked_out = any(isinstance(node, ast.Call | ast.Attribute) for node in ast.walk(other))
        if isinstance(one, ast.Name) and worked_out:
            return any(isinstance(node, ast.Name) and node.id == one.id for node in ast.walk(other))
    return False


def _asked_alike(left: ast.expr, right: ast.expr) -> Iterator[list[Place]]:
    """Two names of which both sides ask the same: `before` and `w` of `before.sum() == w.sum()`.

    Whoever asks where a thing lies, asks whether two are one.
    """
    asked, others = [*_names(left)], [*_names(right)]
    if isinstance(left, ast.Name) or len(asked) != len(others):
        return
    renamed = zip(asked, others, strict=True)
    differing = [(one, other) for one, other in renamed if _of(one).id != _of(other).id]
    said = {inner.attr for inner in ast.walk(left) if isinstance(inner, ast.Attribute)}
    said |= {_of(one).id for one in asked}
    masked = [re.sub(r"Name\(id='\w+'", "Name(", ast.dump(side)) for side in (left, right)]
    if (
        len({(_of(one).id, _of(other).id) for one, other in differing}) == 1
        and masked[0] == masked[1]
        and said.isdisjoint(_PLACES)
    ):
        yield [*differing[0]]


def _names(side: ast.expr) -> Iterator[Place]:
    """Where in an expression names stand that are read; none where it binds some of its own."""
    inner = [*ast.walk(side)]
    if any(isinstance(node, ast.Lambda | ast.comprehension | ast.NamedExpr) for node in inner):
        return
    for owner in inner:
        for field, value in ast.iter_fields(owner):
            for at, node in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(node, ast.Name):
                    yield owner, field, at if isinstance(value, list) else None


def _of(place: Place) -> ast.Name:
    """The name that stands at a place."""
    owner, field, at = place
    value: Any = getattr(owner, field)
    return value if at is None else value[at]  # type: ignore[no-any-return]


def bounds(test: ast.expr) -> Iterator[tuple[ast.Compare, int, ast.BinOp]]:
    """Comparisons of how far two things are apart with what is computed, and the side on which that stands.

    Of a number that is written there, `abs(a - b) < 5`, a reader sees what it lets pass.
    """
    for node in ast.walk(test):
        match node:
            case ast.Compare(far, [ast.Lt() | ast.LtE()], [bound]):
                at = 1
            case ast.Compare(bound, [ast.Gt() | ast.GtE()], [far]):
                at = 0
            case _:
                continue
        difference = _difference(far)
        if difference is not None and not isinstance(bound, ast.Constant):
            yield node, at, difference


def _difference(node: ast.expr) -> ast.BinOp | None:
    """The difference of which the size is asked: `abs(a - b)`, `(a - b).abs().max()`; None of all else."""
    match node:
        case ast.Call(
            ast.Name("abs") | ast.Attribute(attr="abs" | "fabs"), [ast.BinOp(op=ast.Sub()) as apart]
        ):
            return apart
        case ast.Call(ast.Attribute(ast.BinOp(op=ast.Sub()) as apart, "abs"), []):
            return apart
        case ast.Call(ast.Attribute(inner, "max" | "item"), []):
            return _difference(inner)
    return None


def zips(test: ast.expr) -> Iterator[ast.Call]:
    """Calls of `zip` that stop at the shortest; but for `zip(xs, xs[1:])`, which is meant to."""
    for node in ast.walk(test):
        match node:
            case ast.Call(ast.Name("zip"), [_, _, *_] as values, []):
                cut = (isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice) for one in values)
                if not any(cut) and not any(isinstance(one, ast.Starred) for one in values):
                    yield node


def last_name(node: ast.expr) -> str:
    """The last name of what decides an assert: `contiguous` of `x.contiguous`, and with `()` of a call."""
    match node:
        case ast.NamedExpr(value=value):
            return last_name(value)
        case ast.Call(func=called):
            return f"{last_name(called)}()" if isinstance(called, ast.Name | ast.Attribute) else ""
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
