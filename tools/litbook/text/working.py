"""How an answer comes about: the expression of a question's `answer`, with values put in, and worked out.

In goes the text of one call of `question()`. Nothing of it is run: what is worked out here is arithmetic on
numbers that stand in the text, and nothing else.
"""

from __future__ import annotations

import ast
import copy
import operator
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

Numbers = int | float | list["Numbers"]
Constants = Mapping[str, ast.expr]

MOST = 10**40  # larger numbers, and powers above the next, are not worked out
POWER = 200
_OPERATORS: dict[type[ast.operator], Callable[[int | float, int | float], int | float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_CALLS: dict[str, Callable[..., int | float]] = {
    "round": round,
    "max": max,
    "min": min,
    "abs": abs,
    "sum": sum,
}


def steps(source: str, values: Mapping[str, str]) -> list[str]:
    """The expression of a question's answer, and the same with `values` put in; none of a bare constant."""
    expression = _given(source).get("answer")
    if expression is None or isinstance(expression, ast.Constant):
        return []
    return list(dict.fromkeys([ast.unparse(expression), _put_in(expression, values)]))


def work_out(source: str, names: Constants) -> tuple[Numbers | None, str | None]:
    """The answer where it is arithmetic on numbers of the text, or that `names` are; and its unit."""
    given = _given(source)
    answer, unit = given.get("answer"), given.get("unit")
    label = unit.value if isinstance(unit, ast.Constant) and isinstance(unit.value, str) else None
    try:
        found = None if answer is None else _value(_Spelled(names).visit(copy.deepcopy(answer)))
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError):
        found = None
    return found, label


def _given(source: str) -> dict[str | None, ast.expr]:
    """The keyword arguments of a call."""
    try:
        statement = ast.parse(textwrap.dedent(source)).body[0]
    except (SyntaxError, IndexError):
        return {}
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return {}
    return {it.arg: it.value for it in statement.value.keywords}


def _put_in(expression: ast.expr, values: Mapping[str, str]) -> str:
    """The expression with these values for its parts: `2 * n` with `n` of 8 is `2 * 8`."""

    class Filled(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            if isinstance(node, ast.expr) and ast.unparse(node) in values:
                return ast.Name(values[ast.unparse(node)])
            return node if isinstance(node, ast.Attribute) else super().visit(node)

    return ast.unparse(Filled().visit(ast.parse(ast.unparse(expression), mode="eval")))


def constants(texts: Iterable[str]) -> dict[str, ast.expr]:
    """The names that files set once, outside of functions, each with its expression."""
    assigned = (it for text in texts for it in ast.parse(text).body if isinstance(it, ast.Assign))
    found = [pair for it in assigned for pair in _pairs(it.targets[0], it.value)]
    times = Counter(name for name, _ in found)
    return {name: value for name, value in found if times[name] == 1}


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    match target, value:
        case ast.Name(name), _:
            return [(name, value)]
        case ast.Tuple(names), ast.Tuple(values) if len(names) == len(values):
            return [pair for it in zip(names, values, strict=True) for pair in _pairs(*it)]
    return []


class _Spelled(ast.NodeTransformer):
    """Puts the expressions of constants in place of their names."""

    def __init__(self, names: Constants) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.names.get(node.id)
        return node if value is None else self.visit(copy.deepcopy(value))


def _value(node: ast.expr) -> Numbers:
    match node:
        case ast.Subscript(inner, ast.Constant(value=int(at))):
            found = _value(inner)
            if isinstance(found, list):
                return found[at]
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(ast.USub(), inner):
            return -_number(inner)
        case ast.BinOp(left, op, right):
            one, other = _number(left), _number(right)
            if max(abs(one), abs(other)) > (POWER if isinstance(op, ast.Pow) else MOST):
                raise ValueError
            return _OPERATORS[type(op)](one, other)
        case ast.List(items) | ast.Tuple(items):
            return [_value(item) for item in items]
        case ast.Call(ast.Name(name), arguments, []):
            return _CALLS[name](*map(_value, arguments))
    raise TypeError


def _number(node: ast.expr) -> int | float:
    value = _value(node)
    if isinstance(value, list):
        raise TypeError
    return value
