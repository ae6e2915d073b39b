"""Values whose truth is the same whatever they hold: what they are, said of a test that comes to one.

In goes the value of an assert's test, out comes what it is; "" for a value that may be false, and whether the
text says that no other could stand there: `d.get("f")` may be None another time. Nothing of the value runs.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import math
import numbers
import subprocess
import sys
import types
from collections.abc import Iterable
from typing import Any

from litbook.snapshot import libraries
from litbook.snapshot.safe_types import name_of

FUNCTION, METHOD = "a function, which is not called", "a method, which is not called"
TAKEN = "an iterator, from which nothing was taken"
TUPLE, UNAWAITED = "a tuple that begins with a truth", "what nobody awaits"
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type, "a class"),
    ((types.FunctionType, functools.partial, type(functools.cache(len))), FUNCTION),
    ((types.MethodType, types.MethodWrapperType, types.WrapperDescriptorType), METHOD),
    ((types.MethodDescriptorType, types.ClassMethodDescriptorType), METHOD),
    (types.ModuleType, "a module"),
    ((subprocess.CompletedProcess, subprocess.Popen), "a process, however it ended"),
    ((type(...), type(NotImplemented)), "a placeholder"),
)
_ALWAYS = ("a mock", "a placeholder", TUPLE, UNAWAITED)  # wherever they come from, nobody meant them
# What makes one, where that is not called like its type.
_MADE_BY = {"CompletedProcess": "run()", "Pattern": "compile()"}
_NAMES = {"__await__": UNAWAITED, "__next__": TAKEN, "__anext__": TAKEN}
# What Python and the probes of a function put around its statements, whatever these do.
_PROBING = {
    "RESUME", "PUSH_NULL", "PRECALL", "CALL", "POP_TOP", "NOP", "COPY_FREE_VARS", "LOAD_CONST",
    "LOAD_SMALL_INT", "LOAD_FAST", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
}  # fmt: skip
ROUNDED = 1e-6  # what is smaller may be a zero that was rounded
_bases = type.__dict__["__mro__"].__get__
_names = type.__dict__["__dict__"].__get__


def always_true(value: Any, named: str = "") -> tuple[str, bool]:
    """What a value is that no `if` would ever take for false: "a function, which is not called"; else "".

    `named` is the last name of the text that it comes from, with `()` where that is a call. The second says
    whether the text can give nothing else: `x.is_contiguous` and `Linear(2, 2)` cannot, `re.match("a", x)`
    and `functions.get("a")` may give None. With `(…)` it is a function of Python's own, as in `repr(…)`.
    """
    kind, what = type(value), _kind(value)
    if value is sys.modules:
        return "the table of all modules, which is never empty", True
    if named.endswith("(…)"):
        return (f"what {named} makes of anything" if value else ""), bool(value)
    if what in _ALWAYS or not named:
        return what, what in _ALWAYS
    if not named.endswith("()"):
        return what, bool(what) and not named.startswith("__") and _name(value).rpartition(".")[2] == named
    made_by = {_name(base) for base in _bases(kind)} | ({_name(value)} if what == TAKEN else set())
    sure = named[:-2] in made_by or named == _MADE_BY.get(_name(kind))
    return what or ("an object, which is always true" if sure and not _decides_truth(kind) else ""), sure


def _decides_truth(kind: type) -> bool:
    """Whether an instance has a say in its truth."""
    return any("__bool__" in names or "__len__" in names for names in map(_names, _bases(kind)))


def _name(value: Any) -> str:
    """The `__name__` of a function, class or module; nothing of a library's object runs."""
    if isinstance(value, type):
        return str(type.__dict__["__name__"].__get__(value))
    if type(value) is types.MethodType:
        return _name(value.__func__)
    name = inspect.getattr_static(value, "__name__", "")
    if isinstance(name, types.GetSetDescriptorType | types.MemberDescriptorType):
        name = name.__get__(value, type(value))
    return name if isinstance(name, str) else ""


def _kind(value: Any) -> str:
    """What a value is whose truth is the same whatever it holds."""
    kind = type(value)
    if kind is tuple:  # a test and its message, or `return True, why`
        return TUPLE if value and type(value[0]) is bool else ""
    if issubclass(kind, types.BuiltinFunctionType):  # `len`, and `[].append`
        return FUNCTION if isinstance(value.__self__, types.ModuleType | None) else METHOD
    for kinds, what in _KINDS:
        if issubclass(kind, kinds):
            return what
    mock = sys.modules.get("unittest.mock")
    if mock is not None and issubclass(kind, mock.NonCallableMock):
        return "a mock"
    if _decides_truth(kind):
        return ""
    bases = [_names(base) for base in _bases(kind)]
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


def is_empty(value: Any) -> bool:
    """Whether a container of Python's own, a tensor or an array holds nothing. Others are not asked."""
    kind, torch = type(value), libraries.torch()
    if kind.__module__ == "builtins":
        return hasattr(value, "__len__") and len(value) == 0
    shaped = libraries.is_array(kind) or (torch is not None and issubclass(kind, torch.Tensor))
    return shaped and 0 in value.shape


def function_in(value: Any) -> str:
    """What stands uncalled among the first hundred elements of a list or tuple; "" where nothing does."""
    kinds = map(_kind, value[:100]) if type(value) in (list, tuple) else ()
    return next((kind for kind in kinds if kind in (FUNCTION, METHOD)), "")


def is_boundless(tolerance: Any) -> bool:
    """Whether everything is within this tolerance."""
    return isinstance(tolerance, numbers.Real) and math.isinf(tolerance)


def takes_zero(tolerance: Any, sides: Iterable[Any], exclusive: bool, at_least: float = ROUNDED) -> bool:
    """Whether zero would be within a tolerance of each of the sides, though none of them is zero.

    Of sides as small as what rounding leaves of zero, `at_least`, a small tolerance says that they are.
    """
    sizes, allowed = [*map(_largest, sides)], _largest(tolerance, most=1)
    if not sizes or None in sizes or allowed is None or 0 in sizes:
        return False
    largest = max(size for size in sizes if size is not None)
    return largest > at_least and (allowed > largest or (allowed == largest and not exclusive))


def _largest(value: Any, most: float = math.inf) -> float | None:
    """The absolute of a number, or the largest in a list, array or tensor of at most so many; else None."""
    kind, torch = type(value), libraries.torch()
    with contextlib.suppress(Exception):
        if kind in (list, tuple):
            sizes = [size for one in value if (size := _largest(one)) is not None]
            return max(sizes) if len(sizes) == len(value) <= most else None
        if torch is not None and issubclass(kind, torch.Tensor) and torch.is_plain(kind):
            with torch.without_observers():
                ends = torch.module.aminmax(value) if 0 < torch.base.numel(value) <= most else ()
                return max((abs(float(end)) for end in ends), default=None)
        if libraries.is_array(kind):
            return float(abs(value).max()) if value.size <= most else None
        if isinstance(value, numbers.Real) and kind is not bool:
            return abs(float(value))
    return None


def length_of(value: Any) -> int | None:
    """The length of a container of Python's own, a tensor or an array; None of all else."""
    kind, torch = type(value), libraries.torch()
    if kind.__module__ == "builtins":
        return len(value) if hasattr(kind, "__len__") else None
    if torch is not None and issubclass(kind, torch.Tensor):
        shape = torch.shape(value)
    else:
        shape = libraries.numpy().ndarray.shape.__get__(value) if libraries.is_array(kind) else ()
    return shape[0] if shape else None


def never_python_bool(value: Any) -> str:
    """The type of what is NumPy's or a tensor, and so is neither `True` nor `False`; "" of all else."""
    kind, torch, numpy = type(value), libraries.torch(), libraries.numpy()
    theirs = (numpy is not None and issubclass(kind, numpy.generic)) or libraries.is_array(kind)
    return name_of(kind) if theirs or (torch is not None and issubclass(kind, torch.Tensor)) else ""


# ---------------------------------------------------------------------------- claims


def no_truth(value: Any) -> str:
    """What the test of a claim comes to, and the way out, where that is neither true nor false; else "".

    Truths are Python's `bool`, NumPy's, SymPy's, and a tensor or array of one.
    """
    kind, torch, numpy = type(value), libraries.torch(), libraries.numpy()
    if kind is bool or (numpy is not None and kind is numpy.bool_):
        return ""
    if kind.__module__ == "sympy.logic.boolalg" and kind.__name__ in ("BooleanTrue", "BooleanFalse"):
        return ""
    with contextlib.suppress(Exception):
        if torch is not None and issubclass(kind, torch.Tensor):
            with torch.without_observers():
                if torch.dtype(value) is torch.module.bool and torch.base.numel(value) == 1:
                    return ""
        elif libraries.is_array(kind) and value.dtype == bool and value.size == 1:
            return ""
    if kind in (list, tuple, set, frozenset, dict, str, bytes):
        way_out = "ask it something: all(…), len(x) > 0, x == …"
    elif hasattr(kind, "__next__"):
        way_out = "nothing was taken from it: all(…), any(…), sum(…) == … of Python's own take what it gives"
    elif isinstance(value, numbers.Number):
        way_out = "compare it: x == 0, x > 0"
    else:
        way_out = "ask it something: x is not None, x.all(), x == …"
    name = name_of(kind).removeprefix("collections.")
    return f"the test is neither true nor false: it is of type {name}\n{way_out}"
