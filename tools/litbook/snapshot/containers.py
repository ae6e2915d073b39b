"""Containers: how long they are, and the first things in them.

This module opens lists, dicts, dataclasses and their relatives with the base types' own methods, and hands
out what it finds as it is. It does not know what becomes of it, nor how much of it may be shown.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from litbook.record.limits import ITEMS, SORTED_SET
from litbook.snapshot.kinds import is_one_of, own, static
from litbook.snapshot.plain import FieldName


class Contents(NamedTuple):
    length: int
    items: list[Any]  # the first `ITEMS`
    keys: list[Any] | None = None  # None for a sequence


# By identity, as a metaclass may have a hostile __hash__: no other module need be asked about these.
BUILTIN = {id(kind) for kind in (list, tuple, dict, set, frozenset)}

_BASES: tuple[Any, ...] = (list, collections.deque, set, frozenset)
_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def contents(value: Any, kind: type) -> Contents | None:
    """What is in a container of known kind, read with the base type's own methods; None for anything else."""
    if issubclass(kind, tuple):
        return _tuple(value, kind)
    if type(static(kind, "__dataclass_fields__")) is dict:
        return _fields(value, kind)
    if issubclass(kind, dict):
        return _pairs(value)
    if is_one_of(kind, {"torch": "finfo iinfo"}):
        return _limits(value)
    for base in _BASES:
        if issubclass(kind, base):
            members = base.__iter__(value)
            ordered = base is list or base is collections.deque
            return Contents(base.__len__(value), _first(members) if ordered else _in_order(members))
    if kind is range and -sys.maxsize < value.stop - value.start < sys.maxsize:
        return Contents(len(value), list(value[:ITEMS]))
    if any(kind is view for view in _VIEWS):
        return Contents(len(value), _first(iter(value)))
    return None


def _first(members: Iterator[Any]) -> list[Any]:
    return list(itertools.islice(members, ITEMS))


def _in_order(all_members: Iterator[Any]) -> list[Any]:
    """The first members, sorted where that is safe: the order of a set of texts differs from run to run."""
    members = list(itertools.islice(all_members, SORTED_SET + 1))
    kinds = {id(type(member)) for member in members}
    if len(members) <= SORTED_SET and kinds in ({id(str)}, {id(int)}):
        members.sort()
    return members[:ITEMS]


def _pairs(value: Any) -> Contents:
    keys = _first(iter(dict.keys(value)))
    items = _first(iter(dict.values(value)))
    if issubclass(type(value), collections.OrderedDict) and _all_texts(value):
        # Only its own iterator knows of move_to_end; it hashes the keys, which is harmless for texts.
        keys = _first(collections.OrderedDict.__iter__(value))
        items = [dict.__getitem__(value, key) for key in keys]
    return Contents(dict.__len__(value), items, keys)


def _all_texts(value: dict[Any, Any]) -> bool:
    return dict.__len__(value) <= SORTED_SET and all(type(key) is str for key in dict.keys(value))


def _named(pairs: list[tuple[str, Any]], length: int) -> Contents:
    return Contents(length, [item for _, item in pairs], [FieldName(name) for name, _ in pairs])


def _tuple(value: tuple[Any, ...], kind: type) -> Contents:
    """A tuple, or a named one: `namedtuple`, and the results of `torch.max(x, dim)` and the like."""
    length = tuple.__len__(value)
    names = static(kind, "_fields")
    if names is None and static(kind, "n_fields") is not None:
        names = static(kind, "__match_args__")
    items = list(tuple.__getitem__(value, slice(0, ITEMS)))
    if type(names) is tuple and len(names) == length and all(type(name) is str for name in names):
        return _named(list(zip(names, items, strict=False)), length)
    return Contents(length, items)


_FIELD = dataclasses._FIELD  # type: ignore[attr-defined]  # tells fields from ClassVar and InitVar


def _fields(value: Any, kind: type) -> Contents:
    """A dataclass instance: what its fields hold now, whether in `__dict__` or in slots."""
    known, fields = own(value), static(kind, "__dataclass_fields__")
    kept = (f for f in fields.values() if type(f) is dataclasses.Field and f._field_type is _FIELD)  # type: ignore[attr-defined]
    names = [f.name for f in kept if type(f.name) is str]
    found = [(name, *_held(value, kind, known, name)) for name in names[:ITEMS]]
    pairs = [(name, item) for name, is_set, item in found if is_set]
    return _named(pairs, len(names) - len(found) + len(pairs))


def attributes(value: Any, kind: type) -> Contents | None:
    """The attributes of an object that has no text of its own; None for any other, or where it has none."""
    if static(kind, "__repr__") is not object.__repr__:
        return None
    pairs = [(name, item) for name, item in own(value).items() if type(name) is str]
    return _named(pairs[:ITEMS], len(pairs)) if pairs else None


def _held(value: Any, kind: type, known: dict[str, Any], name: str) -> tuple[bool, Any]:
    """Whether the field is set, and to what; a property of that name is not asked."""
    if name in known:
        return True, known[name]
    default = static(kind, name)
    if type(default) is types.MemberDescriptorType:
        try:
            return True, default.__get__(value)
        except AttributeError:
            return False, None
    is_computed = default is None or static(type(default), "__get__") is not None
    return (False, None) if is_computed else (True, default)


_LIMITS = ("bits", "min", "max", "eps", "tiny", "smallest_normal", "resolution", "dtype")


def _limits(value: Any) -> Contents:
    """`torch.finfo` and `torch.iinfo`, always in the same order, so that several make one table."""
    pairs = [(name, getattr(value, name)) for name in _LIMITS if hasattr(value, name)]
    return _named(pairs, len(pairs))
