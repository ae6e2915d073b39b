"""How an answer comes about: the expression of a question's `answer`, and the same with values put in.

In goes the text of one call of `question()`, or a lecture, of which come out the questions that can be put
without running their sections. Nothing of it is worked out here: the answer is the run's.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping

from litbook.lecture.calls import LectureCalls
from litbook.lecture.model import Lecture
from litbook.python import scopes

_PLAIN = {"abs", "len", "max", "min", "round", "sum"}
_MAY_RUN = (
    ast.Call | ast.Lambda | ast.Await | ast.NamedExpr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
)


def free(lecture: Lecture) -> dict[int, list[ast.expr]]:
    """For each section that requires a device, the questions that need neither it nor the device.

    They name nothing of the section, and nothing that the lecture's text gets by calling anything but
    `round`, `sum` and the like.
    """
    text, questions = LectureCalls(lecture), dict[int, list[ast.expr]]()
    for section in (i for i, spec in enumerate(lecture.functions) if spec.requires):
        questions[section] = []
        for statement in text.body(section):
            match statement:
                case ast.Expr(ast.Call() as call) if text.word(statement) == "question":
                    given = [*call.args, *(keyword.value for keyword in call.keywords)]
                    names, file = {name for node in given for name in scopes.reads(node)}, text.file(section)
                    needed = (
                        unit.node for unit in text.program.needed_statements((file, name) for name in names)
                    )
                    nodes = (inner for node in (*given, *needed) for inner in ast.walk(node))
                    # Whether code of the lecture's, or of a library, may run.
                    called = (getattr(node, "func", node) for node in nodes if isinstance(node, _MAY_RUN))
                    runs = any(getattr(one, "id", "") not in _PLAIN for one in called)
                    if text.local_names(section).isdisjoint(names) and not runs:
                        questions[section].append(call)
    return questions


class _Filled(ast.NodeTransformer):
    """Puts values in for parts of an expression: `2 * n` with `n` of 8 is `2 * 8`.

    A number stays as its author wrote it: `4e6`, not `4000000.0`.
    """

    def __init__(self, text: str, values: Mapping[str, str]) -> None:
        self.text, self.values = text, values

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and (text := ast.unparse(node)) in self.values:
            return ast.Name(self.values[text])
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return ast.Name(ast.get_source_segment(self.text, node) or repr(node.value))
        return node if isinstance(node, ast.Attribute) else super().visit(node)


def steps(source: str, values: Mapping[str, str]) -> list[str]:
    """The expression of a question's answer, and the same with `values` put in; none of a bare constant."""
    text = textwrap.dedent(source)
    try:
        statement = ast.parse(text).body[0]
    except (SyntaxError, IndexError):
        return []
    match statement:
        case ast.Expr(ast.Call(keywords=keywords)):
            answer = {keyword.arg: keyword.value for keyword in keywords}.get("answer")
            if answer is not None and not isinstance(answer, ast.Constant):
                written = f"({ast.get_source_segment(text, answer)})"
                both: tuple[Mapping[str, str], ...] = {}, values
                trees = [(_Filled(written, some), ast.parse(written, mode="eval")) for some in both]
                return list(dict.fromkeys(ast.unparse(filled.visit(tree)) for filled, tree in trees))
    return []
