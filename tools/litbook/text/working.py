"""How an answer comes about: the expression of a question's `answer`, and the same with values put in.

In goes the text of one call of `question()`, or a lecture, of which come out the questions that can be put
without running their sections. Nothing of it is worked out here: the answer is the run's.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping

from litbook.text import scopes
from litbook.text.lecture import Lecture
from litbook.text.plan import Text

_PLAIN = {"abs", "len", "max", "min", "round", "sum"}
_RUNS = ast.Lambda | ast.Await | ast.NamedExpr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def free(lecture: Lecture) -> dict[int, list[ast.expr]]:
    """For each section that requires a device, the questions that need neither it nor the device.

    They name nothing of the section, and nothing that the lecture's text gets by calling anything but
    `round`, `sum` and the like.
    """
    text = Text(lecture)
    needy = [i for i, it in enumerate(lecture.functions) if it.requires]
    return {i: [call for it in text.body(i) for call in _free(text, i, it)] for i in needy}


def _free(text: Text, section: int, statement: ast.stmt) -> Iterator[ast.expr]:
    """The question that a statement is, if nothing else has to run for it."""
    match statement:
        case ast.Expr(ast.Call() as call) if text.word(statement) == "question":
            given = [*call.args, *(it.value for it in call.keywords)]
            names, file = {name for it in given for name in scopes.reads(it)}, text.file(section)
            needed = (unit.node for unit in text.program.needed((file, name) for name in names))
            runs = any(_runs(it) for node in (*given, *needed) for it in ast.walk(node))
            if not runs and scopes.own(text.function(section)).isdisjoint(names):
                yield call


def _runs(node: ast.AST) -> bool:
    """Whether code of the lecture's, or of a library, may run."""
    plain = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _PLAIN
    return isinstance(node, _RUNS) or (isinstance(node, ast.Call) and not plain)


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
