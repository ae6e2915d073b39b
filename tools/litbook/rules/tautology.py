"""Tests that hold whatever their names stand for: `x == 4 or x != 4`, `x in [x]`, `print(x) is None`.

In goes the text of a test, out comes why it cannot fail. Of comparisons, `in`, `and`, `or` and `not` the
value is worked out, with a few odd values in the place of all else: a name, or an expression that is not
looked into, is the same thing wherever the same text stands, but for calls. Nothing of the lecture runs.
"""

from __future__ import annotations

import ast
import contextlib
import operator
from collections.abc import Callable, Mapping
from typing import Any

SAME = "it holds whatever its names stand for"
_ODD = (object(), 0, 1, float("nan"), "", True, None)
_MOST = 3  # unknown things in a test: of more, all combinations of values are many
_OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.In: lambda item, held: item in held, ast.NotIn: lambda item, held: item not in held,
}  # fmt: skip
_OF_ITSELF = (ast.Eq, ast.Is, ast.LtE, ast.GtE)  # what holds between a thing and itself
_Assignment = Mapping[tuple[str, int], object]


def why_same(text: str) -> str:
    """`SAME` where a test, or a part of it behind `and`, holds whatever its names stand for; else ""."""
    test = expression(text)
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    names = _Names()
    for part in filter(None, parts):
        inner = list(ast.walk(part))
        constants = [node.value for node in inner if isinstance(node, ast.Constant)]
        named = any(isinstance(node, ast.Name) for node in inner)
        unnamed = names.visit(part)  # in order: what one part names, the next may read
        if named and _holds(unnamed, [*_ODD, *constants], {}):
            return SAME
    return ""


class _Names(ast.NodeTransformer):
    """Puts what `:=` names in the place of the name, where this stands behind it.

    `(y := f()) == y` is `f() == f()` with one node in both places, which tells it from a second call.
    """

    def __init__(self) -> None:
        self.given = dict[str, ast.expr]()

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        self.given[node.target.id] = value = self.visit(node.value)
        return value  # type: ignore[no-any-return]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.given.get(node.id, node)


def expression(text: str) -> ast.expr | None:
    """What a text says; None where it is no expression, as what stands over several lines may be none."""
    with contextlib.suppress(SyntaxError, ValueError):
        return ast.parse(text, mode="eval").body
    return None


def _holds(test: ast.expr, odd: list[object], given: _Assignment) -> bool:
    """Whether a test holds, with all `odd` values in turn for each thing that is not yet `given`."""
    try:
        return bool(_value(test, given))
    except KeyError as unknown:
        key = unknown.args[0]
        return len(given) < _MOST and all(_holds(test, odd, {**given, key: value}) for value in odd)
    except TypeError:  # `None < 3`: it does not hold whatever they stand for
        return False


def _value(node: ast.expr, given: _Assignment) -> Any:
    """The value of a test; raises `KeyError` of the first thing in it that is not `given`."""
    displays = ast.List | ast.Tuple | ast.Set
    match node:
        case ast.Constant(constant):
            return constant
        case ast.UnaryOp(ast.Not(), operand):
            return not _value(operand, given)
        case ast.BoolOp(joint, values):
            for value in values:
                settled = _value(value, given)
                if bool(settled) is isinstance(joint, ast.Or):
                    break
            return settled
        case ast.Compare(left, operators, sides):
            before = _value(left, given)
            for comparison, side in zip(operators, sides, strict=True):
                if isinstance(comparison, ast.In | ast.NotIn) and isinstance(side, displays):
                    after = [_value(element, given) for element in side.elts]
                else:
                    after = _value(side, given)
                same = side is left  # one thing that `:=` names: nobody asks whether it is nan
                kind = type(comparison)
                if not (kind in _OF_ITSELF if same else _OPERATORS[kind](before, after)):
                    return False
                before, left = after, side
            return True
        case ast.Call(ast.Name("isinstance" | "issubclass"), [_, ast.Name("object")]):
            return True
        case ast.Call(ast.Name("isinstance"), [ast.Compare(), ast.Name("bool")]):
            return True
        case ast.Call(ast.Name("hasattr"), [_, ast.Constant(str(name))]) if hasattr(object, name):
            return True
        case ast.Call(ast.Name("print") | ast.Attribute(attr="assert_allclose" | "assert_equal")):
            return None
    calls = any(isinstance(inner, ast.Call | ast.Await | ast.Yield) for inner in ast.walk(node))
    return given[ast.dump(node), node.col_offset if calls else -1]
