"""Values whose truth is the same whatever they hold: what they are, said of a test that comes to one.

In goes the value of an assert's test, out comes what it is; "" for a value that may be false. Nothing of the
value runs.
"""

from __future__ import annotations

import dis
import functools
import inspect
import math
import subprocess
import sys
import types
from typing import Any

FUNCTION, METHOD = "a function, which is not called", "a method, which is not called"
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type, "a class"),
    ((types.FunctionType, functools.partial, type(functools.cache(len))), FUNCTION),
    ((types.MethodType, types.MethodWrapperType, types.WrapperDescriptorType), METHOD),
    ((types.MethodDescriptorType, types.ClassMethodDescriptorType), METHOD),
    (types.ModuleType, "a module"),
    ((subprocess.CompletedProcess, subprocess.Popen), "a process, however it ended"),
    ((type(...), type(NotImplemented)), "a placeholder"),
)
_NAMES = {"__await__": "what nobody awaits", "__next__": "an iterator, from which nothing was taken"}
# What Python and the probes of a function put around its statements, whatever these do.
_PROBING = {
    "RESUME", "PUSH_NULL", "PRECALL", "CALL", "POP_TOP", "NOP", "COPY_FREE_VARS", "LOAD_CONST",
    "LOAD_SMALL_INT", "LOAD_FAST", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
}  # fmt: skip
_bases = type.__dict__["__mro__"].__get__
_names = type.__dict__["__dict__"].__get__


def always_true(value: Any) -> str:
    """What a value is that no `if` would ever take for false: "a function, which is not called"."""
    kind = type(value)
    if kind is tuple:  # a test and its message, or `return True, why`
        return "a tuple that begins with a truth" if value and type(value[0]) is bool else ""
    if issubclass(kind, types.BuiltinFunctionType):  # `len`, and `[].append`
        return FUNCTION if isinstance(value.__self__, types.ModuleType | None) else METHOD
    for kinds, what in _KINDS:
        if issubclass(kind, kinds):
            return what
    mock = sys.modules.get("unittest.mock")
    if mock is not None and issubclass(kind, mock.NonCallableMock):
        return "a mock"
    bases = [_names(base) for base in _bases(kind)]
    if any("__bool__" in names or "__len__" in names for names in bases):
        return ""
    if what := next((what for name, what in _NAMES.items() if any(name in names for names in bases)), ""):
        return what
    # What is called and has a name of its own: a function of numpy, an operator of torch.
    called = any("__call__" in names for names in bases)
    return FUNCTION if called and inspect.getattr_static(value, "__name__", None) is not None else ""


def equals_everything(value: Any) -> bool:
    """Whether the `==` of a value does no more than `return True`: nothing of it runs to find that out."""
    kind = type(value)
    if (kind.__module__, kind.__name__) == ("unittest.mock", "_ANY"):
        return True
    equal = next((names["__eq__"] for names in map(_names, _bases(kind)) if "__eq__" in names), None)
    if not isinstance(equal, types.FunctionType):
        return False
    code = [(step.opname, step.argval) for step in dis.get_instructions(equal)]
    ends = code[-2:] == [("LOAD_CONST", True), ("RETURN_VALUE", None)] or code[-1] == ("RETURN_CONST", True)
    return ends and {name for name, _ in code[:-1]} <= _PROBING


def is_boundless(tolerance: Any) -> bool:
    """Whether everything is within this tolerance."""
    return isinstance(tolerance, float) and math.isinf(tolerance)
