"""How an answer comes about: the expression of a question's `answer`, and the same with values put in.

In goes the text of one call of `question()`. Nothing of it is worked out here: the answer is the run's.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping


def steps(source: str, values: Mapping[str, str]) -> list[str]:
    """The expression of a question's answer, and the same with `values` put in; none of a bare constant."""
    expression = _given(source).get("answer")
    if expression is None or isinstance(expression, ast.Constant):
        return []
    return list(dict.fromkeys([ast.unparse(expression), _put_in(expression, values)]))


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
