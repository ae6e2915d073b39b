"""Whether a change changes nothing: the expression that it is in comes to the very same value.

In goes a change, out comes its tree, changed so that both expressions are evaluated, one after the other, and
compared. What is the same to the last bit, no claim behind it can tell apart: a keyword that spells out its
default, a length that a formula does not use. What cannot be compared (a model, a function) is taken for
another.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from litbook.lecture.model import Lecture
from litbook.mutants.changes import CodeChange
from litbook.run.restore import random_state

TWICE = "__litbook_twice__"  # the name by which the changed program knows `ValuePair.evaluate`
_STAYS = ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom  # what means something else in a lambda
_PLAIN = (int, float, complex, str, bytes, range, set, frozenset)


class ValuePair:
    """What the two expressions came to, each time that they were evaluated."""

    def __init__(self) -> None:
        self.same: list[bool] = []

    def evaluate(self, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """The value of `one`. `other` is given the same random numbers, and takes none from what comes."""
        before = [(entry, entry.read()) for entry in random_state()]
        value = one()
        after = [(entry, entry.read()) for entry in random_state()]
        for entry, state in before:
            entry.write(state)
        try:
            self.same.append(_same(value, other()))
        except Exception:
            self.same.append(False)
        for entry, state in after:
            entry.write(state)
        return value


def compare(change: CodeChange, lecture: Lecture) -> bool:
    """Change the tree for good, so that both are evaluated; False where that cannot be done."""
    statement = next(node for node, number in lecture.statement_of.items() if number == change.statement)
    places: list[tuple[Any, str]] = []
    match statement:
        case ast.Assign() | ast.AnnAssign() if change.field:
            places = [(statement, "value")]
        case ast.Expr(ast.Call(args=[], keywords=keywords)) | ast.Expr(ast.Call(args=[_], keywords=keywords)):
            places = [(keyword, "value") for keyword in keywords]
    for holder, name in places:
        before = getattr(holder, name)
        if holder is change.node or any(node is change.node for node in ast.walk(before)):
            if any(isinstance(node, _STAYS) for node in ast.walk(before)):
                return False
            kept = copy.deepcopy(before)
            change.make(lecture)
            nothing = ast.arguments([], [], None, [], [], None, [])
            both: list[ast.expr] = [ast.Lambda(nothing, value) for value in (kept, getattr(holder, name))]
            call = ast.copy_location(ast.Call(ast.Name(TWICE, ast.Load()), both, []), before)
            setattr(holder, name, ast.fix_missing_locations(call))
            return True
    return False


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same to the last bit, and in all that a lecture can ask of them."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    torch = sys.modules.get("torch")
    if torch and isinstance(one, torch.Tensor):
        of = [(x.dtype, x.shape, x.stride(), x.device, x.requires_grad, x._is_view()) for x in (one, other)]
        return of[0] == of[1] and (one.is_meta or bool(torch.equal(one, other)))
    match one:
        case list() | tuple():
            return len(one) == len(other) and all(map(_same, one, other))
        case dict():
            return _same([*one.items()], [*other.items()])
        case _ if isinstance(one, _PLAIN):
            return bool(one == other)
        case _ if dataclasses.is_dataclass(one):
            return _same(vars(one), vars(other))
    return False
