"""Why what a claim says of two things was settled before it ran: they are one, or could never be equal.

In go two values that a claim sets against each other, and how it does; out comes why that says nothing, ""
where it says something. Nothing of a lecture's own code runs, and nothing is computed that anybody sees.
"""

from __future__ import annotations

import collections.abc
import contextlib
import ctypes
import enum
import gc
import itertools
import math
import sys
import types
from collections.abc import Iterable
from typing import Any

from litbook.record.model import is_constant
from litbook.rules.vacuous import NAN, NEVER_EQUAL, ONE_CONTENT, UNLIKE_SHAPES
from litbook.snapshot import libraries
from litbook.snapshot.safe_types import name_of
from litbook.snapshot.snapshot import glimpse

# How a claim sets two things against each other: as equal; as not; one as not in the other; as not close, by
# a call; two things of which it asks the same; by an order that is denied; as without anything in common.
ALIKE, UNLIKE, NOT_IN, NOT_CLOSE, ASKED, ORDERED, DISJOINT = range(7)
_ITEMS = 100  # of a container, so many are looked at
# Of Python's own dictionaries, and `OrderedDict`'s. Each refers to what it shows, and to nothing else.
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), types.MappingProxyType)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MADE_HERE = 1 << 9  # the flag of types that a `class` statement has made
_bases = type.__dict__["__mro__"].__get__
_names = type.__dict__["__dict__"].__get__


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
    """What a container of Python's own holds, or its keys; at most so many."""
    plain = type(value) in (list, tuple, set, frozenset, dict)
    return [*itertools.islice(value, _ITEMS)] if plain else []


def _settled_within(a: Any, b: Any, deep: int = 3) -> str:
    """Why two lists, tuples or dicts of one form differ, if only by types or nan; else ""."""
    if type(a) is not type(b) or type(a) not in (list, tuple, dict) or len(a) != len(b) or not deep:
        return ""
    if type(a) is dict and a.keys() != b.keys():
        return ""
    pairs = [(a[key], b[key]) for key in a] if type(a) is dict else [*zip(a, b, strict=True)]
    reasons = list[str]()
    for one, other in pairs[:_ITEMS]:
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
