"""The code above a section's claims, changed a little in ways that some claim or shown value should notice.

Knows the text alone; `noticed` runs what is made here. A *change* sets one field of one node of
the tree, or puts `pass` for a statement, so that the text, its lines and the numbers of its statements stay.

    left out    an assignment, a `del`, a call for its effect
    dtype       another one near it: `float32` to `float64`, `.half()` to `.float()`
    number      an integer plus one, a float times two (zero becomes one)
    operator    `+` and `-`, `*` and `/` swapped; `//`, `%` and `**` become `*`
    keyword     dropped from its call

Of a section's own body, that is: of headers, of simple statements, of the defaults of a nested function.
Let be are claims (`claims` changes these), asserts, prose and figures, imports, annotations, hidden lines,
and what is shown with `@measure`, which is compared with nothing. Helpers are let be too: what one of them
does shows in all the sections that call it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from litbook.text.lecture import Lecture
from litbook.text.tree import Definition, blocks, segment

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
_LEFT_OUT = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Delete
_LET_BE = ast.Assert | ast.Import | ast.ImportFrom


@dataclass(frozen=True)
class Change:
    """One thing about one statement. `change` says what, at `line` and 1-based `column` of its file."""

    statement: int
    line: int
    column: int
    change: str
    node: ast.AST
    field: str
    value: Any

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


def changes(lecture: Lecture, function: int) -> list[Change]:
    """Every change of the body of a section, in the order of its text."""
    made = list[Change]()
    for node, number in lecture.statement_of.items():
        statement = lecture.statements[number]
        measured = any(lecture.watches[i].kind == "measure" for i in lecture.watches_of.get(node, ()))
        let_be = measured or node in lecture.claim_of or isinstance(node, _LET_BE)
        if statement.function == function and statement.kind in ("code", "def") and not let_be:
            made += _Maker(lecture, number).of(node)
    return sorted(made, key=lambda change: (change.line, change.column))


class _Maker:
    """The changes of one statement."""

    def __init__(self, lecture: Lecture, number: int) -> None:
        self.file, self.number = lecture.file_of_statement(number), number

    def of(self, statement: ast.stmt) -> Iterator[Change]:
        """The changes of the statement, and of every expression in it that may change."""
        if isinstance(statement, _LEFT_OUT) and getattr(statement, "value", statement) is not None:
            yield self.change(statement, "left out", "", ast.copy_location(ast.Pass(), statement))
        todo: list[ast.AST] = [statement]
        while todo:
            node = todo.pop()
            todo += _parts(node)
            match node:
                case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                    new = value + 1 if isinstance(value, int) else value * 2 or 1.0
                    yield self.change(node, f"{segment(self.file.text, node)} -> {new!r}", "value", new)
                case ast.AugAssign(op=op):
                    yield from self.operator(node, op)
                case ast.BinOp(left, op, right) if not _is_text(left) and not _is_text(right):
                    yield from self.operator(node, op)
                case ast.Call(ast.Attribute(attr=name) as cast, [], []) if name in CASTS:
                    yield self.change(cast, f".{name}() -> .{CASTS[name]}()", "attr", CASTS[name])
                case ast.Call():
                    for keyword in node.keywords:
                        left_over = [other for other in node.keywords if other is not keyword]
                        if keyword.arg is not None:
                            what = f"{keyword.arg}= dropped"
                            yield self.change(node, what, "keywords", left_over, keyword.value)
                case ast.Attribute(attr=name) if name in DTYPES:
                    yield self.change(node, f"{name} -> {DTYPES[name]}", "attr", DTYPES[name])

    def operator(self, node: ast.stmt | ast.expr, op: ast.operator) -> Iterator[Change]:
        """Another operator in the place of this one."""
        if type(op) in OPERATORS:
            was, other, now = OPERATORS[type(op)]
            yield self.change(node, f"{was} -> {now}", "op", other())

    def change(
        self, node: ast.stmt | ast.expr, what: str, field: str, value: object, at: ast.expr | None = None
    ) -> Change:
        """One change, at the place of its node or of a part of that."""
        place = self.file.at(at or node)
        return Change(self.number, place.line, place.column, what, node, field, value)


def _parts(node: ast.AST) -> list[ast.AST]:
    """What is in a node and may change: no statements, no annotation, no pattern of a `case`, no f-string."""
    match node:
        case _ if isinstance(node, Definition):
            arguments = getattr(node, "args", None)
            return [*arguments.defaults, *filter(None, arguments.kw_defaults)] if arguments else []
        case ast.JoinedStr() | ast.match_case() | ast.ExceptHandler():
            return []
        case ast.Call(ast.Attribute(value)):  # `x.bfloat16()` names no dtype
            return [value, *node.args, *node.keywords]
        case ast.AnnAssign():
            return [part for part in (node.target, node.value) if part is not None]
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )
