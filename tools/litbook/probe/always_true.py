"""Values whose truth is the same whatever they hold; and two, of which a comparison was settled before.

In goes the value of an assert's test, out comes what it is; "" for a value that may be false, and whether the
text says that no other could stand there: `d.get("f")` may be None another time. Or in go two values that a
claim sets against each other, and out comes why that says nothing: they are one, or could never be equal.
Nothing of the values runs.
"""

from __future__ import annotations

import collections.abc
import contextlib
import ctypes
import dis
import enum
import functools
import gc
import inspect
import itertools
import math
import numbers
import subprocess
import sys
import types
from collections.abc import Iterable
from typing import Any

from litbook.lecture.comparisons import ALIKE, ASKED, DISJOINT, NOT_CLOSE, NOT_IN, ORDERED, UNLIKE
from litbook.record.model import is_constant
from litbook.rules.vacuous import NAN, NEVER_EQUAL, ONE_CONTENT, UNLIKE_SHAPES
from litbook.snapshot import libraries
from litbook.snapshot.safe_types import name_of
from litbook.snapshot.snapshot import glimpse

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
_ITEMS = 100  # of a container, so many are looked at
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MADE_HERE = 1 << 9  # the flag of types that a `class` statement has made
# Of Python's own dictionaries, and `OrderedDict`'s. Each refers to what it shows, and to nothing else.
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), types.MappingProxyType)
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


def why_settled(how: int, a: Any, b: Any, written: bool) -> str:
    """Why what a claim says of two things was settled before; "" where it says something.

    `how` it sets them against each other; `written`: see `one_thing`.
    """
    if how in (NOT_IN, DISJOINT):
        ours = _items(a) if how == DISJOINT else [a]
        reasons = [_never_equal(one, other) for one, other in itertools.product(ours, _items(b))]
        return reasons[0] if reasons and all(reasons) else ""
    if how == ASKED:
        one = one_thing(a, b, written) or (written and _one_content(a, b))
        return "both sides ask one object" if one else ""
    if how in (UNLIKE, NOT_CLOSE) and (why := _never_equal(a, b) or _settled_within(a, b)):
        return why
    if how in (UNLIKE, NOT_CLOSE, ORDERED) and a is not b and (_has_nan(a) or _has_nan(b)):
        return NAN
    if how == NOT_CLOSE and None not in (shapes := [_shape(a), _shape(b)]) and shapes[0] != shapes[1]:
        return UNLIKE_SHAPES
    if how != ALIKE:
        return ""
    return one_thing(a, b, written) or (_one_content(a, b) if written else "")


def _items(value: Any) -> list[Any]:
    """What a container of Python's own holds, or its keys; nothing of one that holds more than we look at."""
    plain = type(value) in (list, tuple, set, frozenset, dict)
    return [*value] if plain and len(value) <= _ITEMS else []


def _settled_within(a: Any, b: Any, deep: int = 3) -> str:
    """Why two lists, tuples or dicts of one form differ, if only by types or nan; else ""."""
    if type(a) is not type(b) or type(a) not in (list, tuple, dict) or not deep:
        return ""
    if len(a) != len(b) or len(a) > _ITEMS:  # what nobody looked at may differ by more
        return ""
    if type(a) is dict and a.keys() != b.keys():
        return ""
    pairs = [(a[key], b[key]) for key in a] if type(a) is dict else [*zip(a, b, strict=True)]
    reasons = list[str]()
    for one, other in pairs:
        why = _never_equal(one, other) or _settled_within(one, other, deep - 1)
        if not why and float in (type(one), type(other)) and one is not other:
            why = NAN if _has_nan(one) or _has_nan(other) else ""
        plain = isinstance(one, _PLAIN) and isinstance(other, _PLAIN)
        if not why and not (one is other or (plain and one == other)):
            return ""
        reasons += [why] if why else []
    return next(iter(reasons), "")


def _never_equal(a: Any, b: Any) -> str:
    """Why two things are unequal whatever they hold: no type of theirs compares by what they hold."""
    kinds = type(a), type(b)
    related = issubclass(kinds[0], kinds[1]) or issubclass(kinds[1], kinds[0])
    if a is None or b is None or a is b or (related and not (kinds[0] is kinds[1] and _is_unique(a))):
        return ""
    with contextlib.suppress(Exception):
        for one, other in ((a, b), (b, a)):
            equal = next(names["__eq__"] for names in map(_names, _bases(type(one))) if "__eq__" in names)
            home = getattr(equal, "__module__", None) or ""
            known = isinstance(equal, types.WrapperDescriptorType) or home in sys.stdlib_module_names
            if not known or equal(one, other) is not NotImplemented:
                return ""
        of_one = f"each {name_of(kinds[0])} equals itself alone"
        both = f"{NEVER_EQUAL}: {name_of(kinds[0])} and {name_of(kinds[1])}"
        return of_one if kinds[0] is kinds[1] else both
    return ""


def _is_unique(value: Any) -> bool:
    """Whether it is an object that equals itself alone, though others may hold the same: a module of torch.

    Members of an enumeration, functions and classes are what they are; so is what a library keeps one of.
    """
    kind = type(value)
    if kind in (type({}.values()), types.GeneratorType, map, filter, zip):
        return True
    torch = libraries.torch()
    if torch is not None and issubclass(kind, torch.Module):
        return True
    made = kind.__module__.partition(".")[0]
    known = made in sys.stdlib_module_names or made in ("torch", "numpy", "builtins")
    plain = next(names["__eq__"] for names in map(_names, _bases(kind)) if "__eq__" in names) is object.__eq__
    named = isinstance(value, enum.Enum | types.FunctionType | type)
    return plain and not known and not named and bool(kind.__flags__ & _MADE_HERE)


def _has_nan(value: Any) -> bool:
    """Whether a number, a list of some, an array or a tensor holds nan, which equals nothing."""
    kind, torch = type(value), libraries.torch()
    with contextlib.suppress(Exception):
        if kind is float:
            return math.isnan(value)
        if kind in (list, tuple):
            return any(type(item) is float and math.isnan(item) for item in value[:_ITEMS])
        if torch is not None and issubclass(kind, torch.Tensor) and torch.is_plain(kind):
            with torch.without_observers():
                return bool(torch.module.isnan(value).any())
        numpy = libraries.numpy()
        if libraries.is_array(kind) and value.dtype.kind in "fc":
            return bool(numpy.isnan(value).any())
    return False


def _shape(value: Any) -> tuple[int, ...] | None:
    """The axes of a tensor or an array; None of all else."""
    kind, torch = type(value), libraries.torch()
    if torch is not None and issubclass(kind, torch.Tensor):
        return tuple(torch.shape(value))
    return tuple(libraries.numpy().ndarray.shape.__get__(value)) if libraries.is_array(kind) else None


def _one_content(a: Any, b: Any) -> str:
    """What two lists or dicts hold, where that is the same things that may change, as in a shallow copy."""
    if a is b or type(a) is not type(b) or type(a) not in (list, dict) or len(a) != len(b):
        return ""
    items = [*zip(a.values(), b.values(), strict=True)] if type(a) is dict else [*zip(a, b, strict=True)]
    may_change = any(type(one) in (list, dict, set) or _shape(one) is not None for one, _ in items[:_ITEMS])
    return ONE_CONTENT if may_change and all(x is y for x, y in items) else ""


def one_thing(a: Any, b: Any, written: bool) -> str:
    """What two things are that a claim sets against each other, where they are one; "" where they are two.

    Then it holds whatever became of it: `before = w; w.add_(1); assert torch.equal(before, w)`. What cannot
    change is asked for its value: of 3 and "x" nobody means more. `written` says whether the text before the
    claim writes into anything, as arrays do not count their changes.
    """
    if a is b:
        return "" if is_constant(glimpse(a)) or _is_value(a) else "both sides are one object"
    if (shown := _viewed(a)) is not None and type(a) is type(b) and shown is _viewed(b):
        return "both sides are views of one object"
    if any(type(one) is types.MappingProxyType and _viewed(one) is other for one, other in ((a, b), (b, a))):
        return "both sides are views of one object"
    where = _written_memory(a, written)
    return "both sides are the same memory" if where and where == _written_memory(b, written) else ""


def _viewed(value: Any) -> Any:
    """What a view of a mapping shows, as `d.keys()` does: it says what is there now, not what was."""
    kind = type(value)
    if issubclass(kind, _VIEWS):
        return next(iter(gc.get_referents(value)), None)
    with contextlib.suppress(AttributeError):  # of other mappings: `os.environ.keys()`
        if collections.abc.MappingView in _bases(kind):
            return object.__getattribute__(value, "_mapping")
    return None


def _is_value(thing: Any) -> bool:
    """Whether it is a class, or of a type that is compared and hashed by its value, which then never changes.

    A library may keep one object for each value, as sympy does. A tensor has the hash of its place.
    """
    kind, torch = type(thing), libraries.torch()
    if issubclass(kind, type):
        return True
    if issubclass(kind, tuple | frozenset) or (torch is not None and issubclass(kind, torch.Tensor)):
        return False  # what is in it may change
    made = next((names["__hash__"] for names in map(_names, _bases(kind)) if "__hash__" in names), None)
    return made is not None and made is not object.__hash__


def _written_memory(value: Any, written: bool) -> tuple[object, ...]:
    """Where the elements of a tensor, an array or a buffer lie, and in which order; nothing where none of it
    was ever written in place: a tensor counts that, of all else the text says whether anything is `written`.

    Of views of what stays as it was a claim says that both lead to the same elements, and so it does of one.
    """
    kind, torch = type(value), libraries.torch()
    with contextlib.suppress(Exception):
        if torch is not None and issubclass(kind, torch.Tensor):
            base = torch.base
            if not torch.is_plain(kind):
                return ()
            with torch.without_observers():
                if (
                    written
                    and base.numel(value) > 1
                    and base._version.__get__(value)
                    and base.data_ptr(value)
                ):
                    size = base.element_size(value)
                    steps = [step * size for step in base.stride(value)]
                    dtype = str(torch.dtype(value)).removeprefix("torch.")
                    return base.data_ptr(value), dtype, *_axes(torch.shape(value), steps)
        elif written and libraries.is_array(kind):
            array = libraries.numpy().ndarray
            if array.size.__get__(value) > 1:
                address, _ = libraries.array_memory(value)
                dtype, shape = str(array.dtype.__get__(value)), array.shape.__get__(value)
                return address, dtype, *_axes(shape, array.strides.__get__(value))
        elif written and kind.__module__ in ("builtins", "array", "mmap"):
            with memoryview(value) as view:
                if view.nbytes > 1 and not view.readonly:  # what is contiguous: of all else nobody tells
                    address = ctypes.addressof(ctypes.c_char.from_buffer(view))
                    return address, view.format, *_axes(view.shape or (), view.strides or ())
    return ()


def _axes(shape: Iterable[int], steps: Iterable[int]) -> list[tuple[int, int]]:
    """The axes that have several places, each with the bytes from one to the next."""
    return [(size, step) for size, step in zip(shape, steps, strict=True) if size > 1]
