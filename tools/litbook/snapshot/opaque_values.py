"""Objects of which a record keeps a type and a text.

This module knows how to say what a function, a class, a module or a network is without asking it. Whatever is
left is asked for its `repr`, on a clock. It looks into nothing.
"""

from __future__ import annotations

import functools
import itertools
import re
import types
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from litbook.record import model
from litbook.record.limits import ITEMS, ONE_TEXT
from litbook.snapshot import libraries
from litbook.snapshot.safe_types import (
    QUALNAME,
    clean_text,
    dict_of,
    is_one_of,
    name_of,
    qualified_name,
    static_attribute,
)
from litbook.snapshot.timeout import Clock

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{4,}")  # differs from run to run and tells a reader nothing


def describe(value: Any, kind: Any, clock: Clock) -> model.Opaque:
    """`value` in a text; foreign code is called by `clock` only."""
    torch = libraries.torch()
    if issubclass(kind, BaseException):
        return _own_text(value, kind, clock, str)
    if torch is not None and issubclass(kind, torch.Module):
        # `Linear(in_features=4, out_features=2, bias=True), 10 parameters`, without calling `__repr__`.
        extra, _ = call_quietly(kind.extra_repr, value, clock, "extra_repr")
        parts = [extra] if isinstance(extra, str) and extra else []
        children = dict_of(value).get("_modules") or {}
        for name, child in itertools.islice(dict.items(children), ITEMS):
            parts.append(f"{name}: {QUALNAME(type(child))}")
        if len(children) > ITEMS:
            parts.append("…")
        text, cut = clean_text(f"{QUALNAME(kind)}({', '.join(parts)})")
        return model.Opaque(name_of(kind), text + _parameters(torch, value), cut)
    # What can be said without asking it.
    if issubclass(kind, type):
        text = name_of(value)
    elif _is_code(kind):
        text = _code_name(value)
    elif kind is functools.partial and clock.left <= 0:  # its own `repr` would ask what it was given
        inner = value.func
        text = f"{_code_name(inner) if _is_code(type(inner)) else name_of(type(inner))}(…)"
    elif issubclass(kind, types.ModuleType):
        text = qualified_name(None, dict_of(value).get("__name__"))
    elif is_one_of(kind, {"torch": "UntypedStorage TypedStorage"}):
        text = f"{value.nbytes()} bytes on {value.device}"
    elif libraries.is_masked(kind):  # it takes a line for each of its fields
        return _own_text(value, kind, clock, _repr_in_a_line)
    elif static_attribute(kind, "__repr__") is object.__repr__:
        text = f"<{name_of(kind)} object>"
    else:
        return _own_text(value, kind, clock, repr)
    return model.Opaque(name_of(kind), text)


def _own_text(value: Any, kind: type, clock: Clock, say: Callable[[Any], Any]) -> model.Opaque:
    """What `value` says of itself."""
    text, why = call_quietly(say, value, clock, say.__name__)
    if why:
        return model.Opaque(name_of(kind), "", why=why)
    text, cut = clean_text(text, 2 * ONE_TEXT)
    text, cut_more = clean_text(_ADDRESS.sub("", text))
    return model.Opaque(name_of(kind), text, cut or cut_more)


def _repr_in_a_line(value: Any) -> str:
    return " ".join(repr(value).split())


def safe_str(value: Any, clock: Clock) -> str:
    """`str(value)`, bounded; where that is not to be had, the type, and why."""
    told = _own_text(value, type(value), clock, str)
    return f"{told.type} ({told.why})" if told.why else f"{told.text}{' …' if told.cut else ''}"


def call_quietly(function: Callable[[Any], Any], value: Any, clock: Clock, what: str) -> tuple[Any, str]:
    """As `Clock.call`, unseen by torch's modes: an object's text may print tensors."""
    torch = libraries.torch()
    with torch.without_modes() if torch is not None else nullcontext():
        return clock.call(function, value, what)


# ---------------------------------------------------------------------------- code

_CODE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.WrapperDescriptorType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType, types.MethodWrapperType,
)  # fmt: skip


def _is_code(kind: type) -> bool:
    return any(kind is code for code in _CODE)  # by identity: a metaclass may have a hostile __eq__


def _code_name(value: Any) -> str:
    if type(value) is types.MethodType:  # a method may be bound to any callable
        return _code_name(value.__func__) if _is_code(type(value.__func__)) else "?"
    return qualified_name(getattr(value, "__module__", None), value.__qualname__)


# ---------------------------------------------------------------------------- networks


def _parameters(torch: libraries.Torch, network: Any) -> str:
    """How many parameters a network has, shared ones once; nothing where some have no shape yet."""
    seen, tensors, queue = set[int](), dict[int, Any](), [network]
    while queue:
        fields = dict_of(queue.pop())
        for tensor in dict.values(fields.get("_parameters") or {}):
            if issubclass(type(tensor), torch.Tensor):
                tensors[id(tensor)] = tensor
        for child in dict.values(fields.get("_modules") or {}):
            if id(child) not in seen:
                seen.add(id(child))
                queue.append(child)
    if any(QUALNAME(type(tensor)).startswith("Uninitialized") for tensor in tensors.values()):
        return ""
    with torch.without_observers():
        count = sum(torch.base.numel(tensor) for tensor in tensors.values())
    return f", {count} parameters"
