"""What is inspected changes nothing: the lecture goes on as if nobody had looked.

In goes the expression of an `@inspect` or `@measure`, out comes one in which everything that a call is
handed goes through `untouched` first. It refuses what looking would use up or change: an iterator, a random
generator, a container that its own method changes, a tensor in place. The global random state is put back
behind the expression. What the lecture's own functions change besides, nobody can see from outside.
"""

from __future__ import annotations

import ast
import builtins
import collections
import contextlib
import copy
import random
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from litbook.record.device_kinds import devices
from litbook.snapshot import libraries
from litbook.snapshot.safe_types import static_attribute

_CHANGING = frozenset(  # methods of Python's containers
    "append appendleft extend extendleft insert remove pop popleft popitem clear update setdefault add "
    "discard sort reverse rotate subtract move_to_end difference_update intersection_update "
    "symmetric_difference_update __setitem__ __delitem__".split()
)
_CONTAINERS = (list, dict, set, bytearray, collections.deque)
_USING_UP = frozenset(  # methods of iterators, files among them
    "__next__ send throw close read read1 readline readlines readinto seek write writelines truncate".split()
)
_STATE = ("getstate", "get_state", "initial_seed", "clone_state", "graphsafe_get_state")  # these draw nothing
# What Python's own functions of these names say of an iterator leaves it as it is.
_ASKING = "type isinstance issubclass id hasattr getattr repr str callable bool hash iter print".split()
_QUIET = ("item", "tolist", "stride", "size", "numel", "dim", "storage_offset", "data_ptr")  # draw nothing


class Changes(Exception):
    """Looking would change the lecture."""


def draws(node: ast.expr) -> bool:
    """Whether an expression may draw from the global random state."""
    calls = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return any(
        call.attr not in _QUIET
        if isinstance(call, ast.Attribute)
        else not (isinstance(call, ast.Name) and hasattr(builtins, call.id))
        for call in calls
    )


class Guarded(ast.NodeTransformer):
    """A copy of an expression, with `guard(value, method)` around what might be changed in it."""

    def __init__(self, guard: Callable[[ast.expr, str], ast.expr]) -> None:
        self.guard = guard

    def of(self, node: ast.expr) -> ast.expr:
        changed: ast.expr = self.visit(copy.deepcopy(node))
        return changed

    def _through(self, node: ast.expr, method: str = "") -> ast.expr:
        inner = node.value if isinstance(node, ast.Starred) else node
        if method.endswith("_") or isinstance(inner, ast.Name | ast.Attribute | ast.Subscript):
            inner = self.guard(inner, method)
        if isinstance(node, ast.Starred):
            node.value = inner
            return node
        return inner

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute):
            node.func.value = self._through(node.func.value, node.func.attr)
        if not (isinstance(node.func, ast.Name) and node.func.id in _ASKING):
            node.args = [self._through(argument) for argument in node.args]
            for keyword in node.keywords:
                keyword.value = self._through(keyword.value)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.iter = self._through(node.iter)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        self.generic_visit(node)
        return self._through(node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        within = zip(node.ops, node.comparators, strict=True)
        node.comparators = [
            self._through(side) if isinstance(operator, ast.In | ast.NotIn) else side
            for operator, side in within
        ]
        return node


def untouched(value: Any, method: str = "") -> Any:
    """`value`, where the call does not change it. `method` is its own; "" where a call is given it."""
    kind, what = type(value), ""
    in_place = method.endswith("_") and not method.endswith("__")
    torch = libraries.torch()
    if _is_generator(kind):
        what = "" if method in _STATE else "draws from a random generator"
    elif static_attribute(kind, "__next__") is not None:
        what = "uses up an iterator" if not method or method in _USING_UP else ""
    elif issubclass(kind, _CONTAINERS) and method in _CHANGING:
        what = f"changes a {kind.__name__}"
    elif in_place and torch is not None:
        is_torchs = issubclass(kind, types.ModuleType) and str(value.__name__).startswith("torch.")
        what = "changes a tensor in place" if is_torchs or issubclass(kind, torch.Tensor) else ""
    if what:
        raise Changes(what)
    return value


def _is_generator(kind: type) -> bool:
    """Whether it is a random generator, of Python, torch or numpy."""
    if issubclass(kind, random.Random):
        return True
    names = {"torch": ("Generator",), "numpy.random": ("Generator", "RandomState")}
    there = ((vars(sys.modules[module]), names[module]) for module in names if module in sys.modules)
    return any(issubclass(kind, its.get(name, ())) for its, several in there for name in several)


class KeptDraws:
    """While an expression is evaluated: behind it the global random state is what it was before."""

    def __enter__(self) -> None:
        self._back: list[Callable[[], object]] = [partial(random.setstate, random.getstate())]
        if numpy := libraries.numpy():
            self._back.append(partial(numpy.random.set_state, numpy.random.get_state()))
        if torch := sys.modules.get("torch"):
            generators = [getattr(torch, "default_generator", None)]
            for kind in devices():  # there is none before the device is first used
                generators += getattr(kind.module, "default_generators", ())
            for generator in filter(None, generators):
                with contextlib.suppress(RuntimeError):  # while a CUDA graph is captured
                    self._back.append(partial(generator.set_state, generator.get_state()))

    def __exit__(self, *_: object) -> None:
        for put_back in self._back:
            with contextlib.suppress(RuntimeError):
                put_back()
