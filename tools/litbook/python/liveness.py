"""The text of a function -> how long what its names hold can be relied on.

In go the lines of one section or definition, as a record has them, counted from 0; out come the names whose
values only the function's own statements exchange, what each of these gives a value, and whether it may stop
half-way. It knows no values.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from litbook.python.nodes import FunctionNode, first_line, own_nodes
from litbook.python.scopes import binds, steady_names


class Liveness(NamedTuple):
    """What a reader of a function's steps may rely on.

    `steady` names are given a value by the function's own statements alone, each when it is its turn: not by
    a function inside it, and neither by `:=` nor `except … as`, which do it, or undo it, between two steps.
    """

    steady: frozenset[str] = frozenset()
    # By the line of a statement: the names that its header gives a value, or deletes.
    given: Mapping[int, frozenset[str]] = MappingProxyType({})
    suspends: bool = False  # it may stop half-way and go on later, as a generator or a coroutine does
    quiet: frozenset[int] = frozenset()  # the lines of statements that change no object, see `_is_quiet`


@functools.lru_cache(maxsize=4096)
def of_function(text: str) -> Liveness:
    """The liveness of the names of the function whose own lines are `text`; of what is none, no name's."""
    indented = text[:1].isspace()
    try:
        node = ast.parse(f"if 1:\n{text}" if indented else text).body[0]
    except (SyntaxError, ValueError, IndexError):  # lines of no function
        return Liveness()
    if indented and isinstance(node, ast.If):
        node = node.body[0]
    if not isinstance(node, FunctionNode):
        return Liveness()
    inner = [*own_nodes(node)]
    suspends = isinstance(node, ast.AsyncFunctionDef) or any(
        isinstance(one, ast.Yield | ast.YieldFrom | ast.Await) for one in inner
    )
    passing = {one.name for one in inner if isinstance(one, ast.ExceptHandler)}
    walrus = (one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr))
    given = dict[int, frozenset[str]]()
    for one in inner:
        if isinstance(one, ast.stmt):
            names = {*binds(one)}
            if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
                names.add(one.target.id)
            line = first_line(one) - 1 - indented
            given[line] = given.get(line, frozenset()) | names
    statements = [one for one in inner if isinstance(one, ast.stmt)]
    waiting = suspends or any(isinstance(one, ast.With | ast.AsyncWith | ast.Try) for one in inner)
    quiet = {first_line(one) - 1 - indented for one in statements if not waiting and _is_quiet(one)}
    loud = {first_line(one) - 1 - indented for one in statements if not _is_quiet(one)}
    return Liveness(steady_names(node) - passing - {*walrus}, given, suspends, frozenset(quiet - loud))


_NO_CHANGE = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.BinOp, ast.UnaryOp, ast.BoolOp,
    ast.Compare, ast.IfExp, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr, ast.FormattedValue,
    ast.keyword, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_SAYING = ("note", "link", "speaker_note", "misbelief")


def _is_quiet(statement: ast.stmt) -> bool:
    """Whether a statement's own line changes no object, where no operator of its objects does.

    It gives names values, compares, asserts or returns, with no call but of a word for readers; `in`, `*` and
    unpacking take from an iterator. Whether a class or a thread of the lecture does more, others look at.
    """
    match statement:
        case ast.Assign(targets, value) if all(isinstance(target, ast.Name) for target in targets):
            read: list[ast.expr | None] = [value]
        case ast.AnnAssign(ast.Name(), value=value) | ast.Return(value):
            read = [value]
        case ast.Assert(test, message):
            read = [test, message]
        case ast.If(test):
            read = [test]
        case ast.Expr(ast.Call(ast.Name(word), arguments, keywords)) if word in _SAYING:
            read = [*arguments, *(keyword.value for keyword in keywords)]
        case ast.Expr(ast.Constant()) | ast.Pass() | ast.Global() | ast.Nonlocal():
            read = []
        case _:
            return False
    nodes = [node for one in read if one is not None for node in ast.walk(one)]
    return all(isinstance(node, _NO_CHANGE) and not isinstance(node, ast.In | ast.NotIn) for node in nodes)
