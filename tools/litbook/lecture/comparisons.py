"""Where the test of an assert compares: two things with each other, or how far they are apart with a bound.

In goes the test, out come nodes of it. Nothing runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

# How a claim sets two things against each other: as equal; as not; one as not in the other; as not close, by
# a call; two things of which it asks the same; by an order that is denied; as without anything in common.
ALIKE, UNLIKE, NOT_IN, NOT_CLOSE, ASKED, ORDERED, DISJOINT = range(7)
Place = tuple[ast.AST, str, int | None]  # a node, its field, and which item of that
_EQUAL = ("equal", "equals", "close", "eq", "zip")  # ends of names of calls that set two things side by side
# Who asks for these asks whether two things are one.
_PLACES = ("id", "hash", "data_ptr", "storage", "untyped_storage", "ctypes", "__array_interface__")


def pairs(test: ast.expr, denied: bool = False) -> Iterator[tuple[int, list[Place]]]:
    """What in a test sets two things against each other: how, and where they are.

    A test that is `denied` stands behind a `not`.
    """
    how, places = _compared(test, denied)
    sides: list[Any] = [_at(place) for place in places]
    asks = how == ALIKE and isinstance(test, ast.Compare) and places
    if asks and (things := _asked_alike(*sides)):
        yield ASKED, things
    if how == ALIKE and not isinstance(test, ast.BinOp) and _is_of_the_other(sides):
        places = []  # `x.T.T == x` says something of `.T`, though both are the same memory
    # What is written there is no other name for anything; but it may never be equal.
    written = [isinstance(side, ast.Constant) for side in sides]
    known = all(written) or (any(written) and how == ALIKE)
    if places and not known and not any(isinstance(side, ast.Starred) for side in sides):
        yield how, places
    inner = denied is not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))
    for part in ast.iter_child_nodes(test):
        if isinstance(part, ast.expr | ast.comprehension | ast.keyword):
            yield from pairs(part, inner)  # type: ignore[arg-type]


def _compared(test: ast.expr, denied: bool) -> tuple[int, list[Place]]:
    """How a node of a test sets two things against each other, and where they are; nowhere if it does not."""
    sides: list[Place] = [(test, "left", None), (test, "comparators", 0)]
    match test:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() as op]):
            return (UNLIKE if isinstance(op, ast.NotEq) is not denied else ALIKE), sides
        case ast.Compare(ops=[ast.In() | ast.NotIn() as op]):
            return NOT_IN, sides if isinstance(op, ast.NotIn) is not denied else []
        case ast.Compare(ops=[ast.LtE() | ast.GtE()]):
            return (ORDERED if denied else ALIKE), sides
        case ast.Compare(ops=[ast.Lt() | ast.Gt()]) if denied:
            return ORDERED, sides
        case ast.BinOp(op=ast.Sub()) | ast.BinOp(op=ast.BitAnd()) if denied or isinstance(test.op, ast.Sub):
            how = DISJOINT if isinstance(test.op, ast.BitAnd) else ALIKE
            return how, [(test, "left", None), (test, "right", None)]
        case ast.Call(func, [_, _, *_]) if last_name(func).endswith(_EQUAL):
            return (NOT_CLOSE if denied else ALIKE), [(test, "args", 0), (test, "args", 1)]
        case ast.Call(ast.Attribute(attr=name) as method, [_]):
            of_method: list[Place] = [(method, "value", None), (test, "args", 0)]
            if name in ("ne", "isdisjoint"):
                return (UNLIKE if name == "ne" else DISJOINT), of_method
            if name.endswith(_EQUAL):
                return (NOT_CLOSE if denied else ALIKE), of_method
    return ALIKE, []


def _is_of_the_other(sides: list[ast.expr]) -> bool:
    """Whether one of two things is a name, and the other is worked out from it in the test."""
    for one, other in (sides, sides[::-1]) if sides else ():
        worked_out = any(isinstance(node, ast.Call | ast.Attribute) for node in ast.walk(other))
        if isinstance(one, ast.Name) and worked_out:
            return any(isinstance(node, ast.Name) and node.id == one.id for node in ast.walk(other))
    return False


def _asked_alike(left: ast.expr, right: ast.expr) -> list[Place]:
    """The two things of which both sides ask the same: `before` and `w` of `before.sum() == w.sum()`.

    None where they ask several, or the same one; whoever asks where a thing lies, asks whether two are one.
    """
    inner = [*ast.walk(left), *ast.walk(right)]
    said = {node.attr for node in inner if isinstance(node, ast.Attribute)}
    said |= {node.id for node in inner if isinstance(node, ast.Name)}
    bound = any(isinstance(node, ast.Lambda | ast.comprehension | ast.NamedExpr) for node in inner)
    if bound or type(left) is not type(right) or isinstance(left, ast.Name) or said & {*_PLACES}:
        return []
    apart = [*_differing(left, right)]
    if any(not one[1] for one, _ in apart):
        return []
    if len({(ast.dump(_at(one)), ast.dump(_at(other))) for one, other in apart}) != 1:
        return []
    things = _at(apart[0][0]), _at(apart[0][1])
    readable = all(isinstance(thing, ast.Name | ast.Attribute | ast.Subscript | ast.Call) for thing in things)
    return [*apart[0]] if readable else []


def _differing(left: ast.AST, right: ast.AST) -> Iterator[tuple[Place, Place]]:
    """Where two trees of one form differ: the places of the innermost expressions that do."""
    for field in left._fields:
        ours, theirs = getattr(left, field, None), getattr(right, field, None)
        both: list[tuple[int | None, Any, Any]] = [(None, ours, theirs)]
        if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            both = [(at, *pair) for at, pair in enumerate(zip(ours, theirs, strict=True))]
        for at, one, other in both:
            if not isinstance(one, ast.AST) or not isinstance(other, ast.AST):
                if one != other:  # names, attributes, operators: nothing that could be asked for
                    yield (left, "", None), (right, "", None)
            elif ast.dump(one) != ast.dump(other):
                below = [*_differing(one, other)] if type(one) is type(other) else []
                if not below or any(not place[1] for place, _ in below):
                    yield (left, field, at), (right, field, at)
                else:
                    yield from below


def _at(place: Place) -> ast.AST:
    """What stands at a place."""
    owner, field, at = place
    value: Any = getattr(owner, field) if field else owner
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
    """Calls of `zip` and `map` that stop at the shortest; but for `zip(xs, xs[1:])`, which is meant to."""
    for node in ast.walk(test):
        match node:
            case ast.Call(ast.Name("zip"), [_, _, *_] as values, []) | ast.Call(
                ast.Name("map"), [_, *values], []
            ) if len(values) > 1:
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
