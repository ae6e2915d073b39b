"""Containers: how long they are, and the first things in them.

This module opens lists, dicts, dataclasses and their relatives with the base types' own methods, and hands
out what it finds as it is. It does not know what becomes of it, nor how much of it may be shown.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from litbook.record.limits import DEPTH, ITEMS, ONE_TEXT, SORTED_SET
from litbook.snapshot.safe_types import dict_of, is_one_of, static_attribute
from litbook.snapshot.scalars import FieldName


class Contents(NamedTuple):
    length: int
    items: list[Any]  # the first `ITEMS`
    keys: list[Any] | None = None  # None for a sequence


# By identity, as a metaclass may have a hostile __hash__: no other module need be asked about these.
BUILTIN = {id(kind) for kind in (list, tuple, dict, set, frozenset)}

_BASES: tuple[Any, ...] = (list, collections.deque, set, frozenset)
_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_LIMITS = ("bits", "min", "max", "eps", "tiny", "smallest_normal", "resolution", "dtype")
_FIELD = dataclasses._FIELD  # type: ignore[attr-defined]  # tells fields from ClassVar and InitVar


def contents(value: Any, kind: type) -> Contents | None:
    """What is in a container of known kind, read with the base type's own methods; None for anything else."""
    if issubclass(kind, tuple):
        return _tuple(value, kind)
    if type(static_attribute(kind, "__dataclass_fields__")) is dict:
        return _fields(value, kind)
    if issubclass(kind, dict):
        length = dict.__len__(value)
        keys, items = _first(iter(dict.keys(value))), _first(iter(dict.values(value)))
        if issubclass(type(value), collections.OrderedDict) and length <= SORTED_SET:
            # Only its own iterator knows of move_to_end; it hashes the keys, which is harmless for texts.
            if all(type(key) is str for key in dict.keys(value)):
                keys = _first(collections.OrderedDict.__iter__(value))
                items = [dict.__getitem__(value, key) for key in keys]
        return Contents(length, items, keys)
    if is_one_of(kind, {"torch": "finfo iinfo"}):  # always in the same order, so that several make one table
        limits = [(name, getattr(value, name)) for name in _LIMITS if hasattr(value, name)]
        return _named_contents(limits, len(limits))
    for base in _BASES:
        if issubclass(kind, base):
            members = base.__iter__(value)
            if base is list or base is collections.deque:
                return Contents(base.__len__(value), _first(members))
            # A set is sorted where that is safe: the order of one of texts differs from run to run.
            some = list(itertools.islice(members, SORTED_SET + 1))
            if len(some) <= SORTED_SET and {id(type(one)) for one in some} in ({id(str)}, {id(int)}):
                some.sort()
            return Contents(base.__len__(value), some[:ITEMS])
    if kind is range and -sys.maxsize < value.stop - value.start < sys.maxsize:
        return Contents(len(value), list(value[:ITEMS]))
    if any(kind is view for view in _VIEWS):
        return Contents(len(value), _first(iter(value)))
    return None


class Omitted:
    """What stands in a shortened list for items that are left out."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"… {self.text}"


def around_difference(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Two lists, tuples, dicts or texts that are long and differ late, each from shortly before that place.

    Of containers within containers those in which they differ, where these lie too deep to be shown. None for
    all else. Only numbers and texts are compared with one another: nothing foreign runs.
    """
    kind = type(a)
    if kind is dict and kind is type(b) and max(len(a), len(b)) > ITEMS:
        return _around_pair(a, b)
    if inner := _too_deep(a, b):
        return inner
    if kind is not type(b) or (kind is not list and kind is not tuple and kind is not str):
        return None
    most, before = (ONE_TEXT, 40) if kind is str else (ITEMS, 3)
    if max(len(a), len(b)) <= most:
        return None
    plain = (int, float, str, bool)
    at = 0
    for x, y in zip(a, b, strict=False):
        if x is not y and (type(x) not in plain or type(y) not in plain or x != y):
            break
        at += 1
    if at < most or (at == len(a) == len(b)):
        return None
    start = at - before
    if kind is str:
        return f"… {start:,} alike …{a[start:]}", f"… {start:,} alike …{b[start:]}"
    end = start + ITEMS - 2
    rests = [[Omitted(f"{len(of) - end:,} more")] if len(of) > end else [] for of in (a, b)]
    head = Omitted(f"{start:,} alike")
    return kind([head, *a[start:end], *rests[0]]), kind([head, *b[start:end], *rests[1]])


def _around_pair(a: dict[Any, Any], b: dict[Any, Any]) -> tuple[Any, Any] | None:
    """Two dicts from the first pair that is not in both at its place; None where that is among the first."""
    pairs = list(a.items()), list(b.items())
    alike = itertools.takewhile(lambda both: all(map(_is_same, *both)), zip(*pairs, strict=False))
    at = sum(1 for _ in alike)
    if at < ITEMS or at == len(a) == len(b):
        return None
    start = at - 3
    shown = ({Omitted(f"{start:,} alike"): Omitted("")} | dict(of[start : start + ITEMS - 2]) for of in pairs)
    first, second = shown
    return first, second


def _too_deep(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Where two lists or tuples have one item each way down, deeper than is shown, what lies there."""
    path = ""
    while type(a) is type(b) and type(a) in (list, tuple) and len(a) == len(b):
        differing = [
            i for i, (x, y) in enumerate(zip(a[:ITEMS], b[:ITEMS], strict=True)) if not _is_same(x, y)
        ]
        if len(differing) != 1:
            break
        path += f"[{differing[0]}]"
        a, b = a[differing[0]], b[differing[0]]
    return ([Omitted(f"at {path}:"), a], [Omitted(f"at {path}:"), b]) if path.count("[") > DEPTH else None


def _is_same(x: Any, y: Any) -> bool:
    """Whether two things are one, or numbers or texts that are equal."""
    plain = (int, float, str, bool)
    return x is y or (type(x) in plain and type(y) in plain and bool(x == y))


def attributes(value: Any, kind: type) -> Contents | None:
    """The attributes of an object that has no text of its own; None for any other, or where it has none."""
    if static_attribute(kind, "__repr__") is not object.__repr__:
        return None
    pairs = [(name, item) for name, item in dict_of(value).items() if type(name) is str]
    return _named_contents(pairs[:ITEMS], len(pairs)) if pairs else None


def _first(members: Iterator[Any]) -> list[Any]:
    return list(itertools.islice(members, ITEMS))


def _named_contents(pairs: list[tuple[str, Any]], length: int) -> Contents:
    return Contents(length, [item for _, item in pairs], [FieldName(name) for name, _ in pairs])


def _tuple(value: tuple[Any, ...], kind: type) -> Contents:
    """A tuple, or a named one: `namedtuple`, and the results of `torch.max(x, dim)` and the like."""
    length = tuple.__len__(value)
    names = static_attribute(kind, "_fields")
    if names is None and static_attribute(kind, "n_fields") is not None:
        names = static_attribute(kind, "__match_args__")
    items = list(tuple.__getitem__(value, slice(0, ITEMS)))
    if type(names) is tuple and len(names) == length and all(type(name) is str for name in names):
        return _named_contents(list(zip(names, items, strict=False)), length)
    return Contents(length, items)


def _fields(value: Any, kind: type) -> Contents:
    """A dataclass instance: what its fields hold now, whether in `__dict__` or in slots.

    A field that is not set is left out, and so is one that is a property: that is not asked.
    """
    held, fields = dict_of(value), static_attribute(kind, "__dataclass_fields__")
    kept = (f for f in fields.values() if type(f) is dataclasses.Field and f._field_type is _FIELD)  # type: ignore[attr-defined]
    names = [f.name for f in kept if type(f.name) is str]
    pairs = []
    for name in names[:ITEMS]:
        default = static_attribute(kind, name)
        if name in held:
            pairs.append((name, held[name]))
        elif type(default) is types.MemberDescriptorType:
            with contextlib.suppress(AttributeError):
                pairs.append((name, default.__get__(value)))
        elif default is not None and static_attribute(type(default), "__get__") is None:
            pairs.append((name, default))
    return _named_contents(pairs, len(names) - len(names[:ITEMS]) + len(pairs))
