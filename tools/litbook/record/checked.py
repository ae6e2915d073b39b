"""JSON data -> dataclasses, strictly: a reader for every type, built once from its annotations.

In goes what `json.loads` found; out comes the value that the annotation promises, or a `Misfit` that names
the place. It knows types, not what they mean: how a field is written differently from a plain object stands
in `rows`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Collection
from typing import Any, Literal, Union, get_args, get_origin

Reader = Callable[[Any], Any]

READERS: dict[Any, Reader] = {}
"""Types that are not written as their fields say, and what reads them."""


class Misfit(TypeError):
    """Data that no run writes. The place is put together from the inside out, as the error travels."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what)
        self.what, self.place = what, place

    def under(self, place: str) -> Misfit:
        """The same, of something that stands within `place`."""
        return Misfit(self.what, place + self.place)

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def within(place: str, read: Reader, data: Any) -> Any:
    """`read(data)`; what does not fit is named as standing in `place`."""
    try:
        return read(data)
    except Misfit as misfit:
        raise misfit.under(place) from None


def each(read: Reader, data: Any) -> tuple[Any, ...]:
    """Every item of a list, read."""
    if type(data) is not list:
        raise Misfit("a list was expected")
    try:
        return tuple([read(item) for item in data])
    except Misfit:  # which one it was is asked only now
        for i, item in enumerate(data):
            within(f"[{i}]", read, item)
        raise


@functools.cache
def reader(kind: Any) -> Reader:
    """What reads values of an annotated type."""
    if kind in READERS:
        return READERS[kind]
    origin, args = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return functools.partial(fields, kind)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _plain_list(args[0]) if args[0] in _PLAIN else functools.partial(each, reader(args[0]))
    if origin is tuple:
        return functools.partial(_in_order, tuple(map(reader, args)))
    if origin is dict:
        return functools.partial(_named, reader(args[1]))
    if origin is Literal:
        return functools.partial(_one_of, args, frozenset(args))
    if origin in (Union, types.UnionType):
        return _union(args)
    return functools.partial(_plain, kind)


def fields(kind: Any, data: Any) -> Any:
    """A dataclass from an object of its fields; those that hold their default may be missing."""
    if type(data) is not dict:
        raise Misfit("an object was expected")
    readers, needed = _fields_of(kind)
    found = {}
    for name, value in data.items():
        read = readers.get(name)
        if read is None:
            raise Misfit(f"unknown field {name!r}")
        try:
            found[name] = read(value)
        except Misfit as misfit:
            raise misfit.under(f".{name}") from None
    if len(found) < len(readers):
        for name in needed:
            if name not in found:
                raise Misfit(f"the field {name!r} is missing")
    return kind(**found)


@functools.cache
def _fields_of(kind: Any) -> tuple[dict[str, Reader], list[str]]:
    """How the fields of a dataclass are read, and those that must be there."""
    hints = typing.get_type_hints(kind)
    readers = {field.name: reader(hints[field.name]) for field in dataclasses.fields(kind)}
    needed = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return readers, needed


def _named(read: Reader, data: Any) -> dict[str, Any]:
    if type(data) is not dict:
        raise Misfit("an object was expected")
    return {key: within(f".{key}", read, value) for key, value in data.items()}


def _in_order(readers: tuple[Reader, ...], data: Any) -> tuple[Any, ...]:
    if type(data) is not list:
        raise Misfit("a list was expected")
    if len(data) != len(readers):
        raise Misfit(f"{len(readers)} items were expected, {len(data)} are there")
    return tuple(
        within(f"[{i}]", read, item) for i, (read, item) in enumerate(zip(readers, data, strict=True))
    )


def _one_of(args: tuple[Any, ...], known: Collection[Any], data: Any) -> Any:
    if type(data) is not str or data not in known:
        raise Misfit(f"{data!r} is none of {', '.join(map(repr, args))}")
    return data


_PLAIN = (int, str, bool)


def _plain_list(kind: type) -> Reader:
    """A list of one plain type, looked at all at once."""

    def read(data: Any) -> tuple[Any, ...]:
        if type(data) is list and set(map(type, data)) <= {kind}:
            return tuple(data)
        return each(functools.partial(_plain, kind), data)

    return read


def _plain(kind: Any, data: Any) -> Any:
    if type(data) is kind and (kind is not float or math.isfinite(data)):
        return data
    if kind is float and type(data) is int and abs(data) < 2**1000:
        return float(data)
    if type(data) is not kind and not (kind is float and type(data) is int):
        raise Misfit(f"{data!r} is no {kind.__name__}")
    raise Misfit(f"{data!r} is too large for a number")  # 1e999; infinity itself is text


def _union(args: tuple[Any, ...]) -> Reader:
    choices = [arg for arg in args if arg is not type(None)]
    if len(choices) == 1:
        return functools.partial(_maybe, reader(choices[0]))
    return functools.partial(_number, frozenset(choices), type(None) in args)


def _maybe(read: Reader, data: Any) -> Any:
    return None if data is None else read(data)


def _number(choices: Collection[type], maybe: bool, data: Any) -> Any:
    kind = type(data)
    if kind in choices and (kind is not float or math.isfinite(data)):
        return data
    if data is None and maybe:
        return None
    if kind in choices:
        raise Misfit(f"{data!r} is too large for a number")
    raise Misfit(f"{data!r} is no number")


def number(data: Any) -> Any:
    """A bare number, bool or None; refused where it is too large to be one."""
    return _number(_BARE, True, data)


_BARE = frozenset((int, float, bool))
