"""JSON data -> dataclasses, strictly: a reader for every type, built once from its annotations.

In goes what `json.loads` found; out comes the value that an annotation promises, or a `Misfit` that names the
place. It knows types, and nothing of what they mean.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

from litbook.record.model import (
    Frame,
    Loop,
    Mapping,
    Number,
    Opaque,
    Operand,
    Scalar,
    Sequence,
    Snapshot,
    Statement,
    Tensor,
    Value,
)

Reader = Callable[[Any], Any]

ROWS = (Statement, Frame, Loop, Operand, Value)  # what there is most of: values in the order of the fields
SHOTS = {"scalar": Scalar, "sequence": Sequence, "mapping": Mapping, "tensor": Tensor, "opaque": Opaque}


class Misfit(TypeError):
    """Data that no run writes. Its place is put together from the inside out, as the error travels."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what, self.place = what, ""

    def __str__(self) -> str:
        return f"record{self.place}: {self.what}"


def plain_scalar(value: Number | None) -> Scalar:
    """The scalar that a bare JSON value stands for: whole texts, ints, floats, bools and None."""
    if isinstance(value, str):
        return Scalar("str", value)
    return Scalar(type(value).__name__, repr(value), value)


@functools.cache
def reader(kind: Any) -> Reader:
    """What reads values of an annotated type."""
    origin, args = get_origin(kind), get_args(kind)
    if kind == Snapshot:
        return _shot
    if dataclasses.is_dataclass(kind):
        return _object(kind)
    if origin is tuple:
        several = len(args) == 2 and args[1] is Ellipsis
        return functools.partial(_each, reader(args[0])) if several else functools.partial(_row, args)
    if origin is dict:
        return functools.partial(_named, reader(args[1]))
    if origin is Literal:
        return functools.partial(_one_of, args)
    if origin in (Union, types.UnionType):
        return _choice(args)
    return functools.partial(_plain, kind)


def within(place: str, read: Reader, data: Any) -> Any:
    """What `read` makes of the data; its `Misfit` names the place."""
    try:
        return read(data)
    except Misfit as misfit:
        misfit.place = place + misfit.place
        raise


def _list(data: Any) -> list[Any]:
    if type(data) is not list:
        raise Misfit("a list was expected")
    return data


def _dict(data: Any) -> dict[str, Any]:
    if type(data) is not dict:
        raise Misfit("an object was expected")
    return data


def objects(data: Any) -> tuple[dict[str, Any], ...]:
    """A list of objects, as they are."""
    return _each(_dict, data)


def _each(read: Reader, data: Any) -> tuple[Any, ...]:
    return tuple([within(f"[{i}]", read, item) for i, item in enumerate(_list(data))])


def _row(kinds: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if len(_list(data)) != len(kinds):
        raise Misfit(f"{len(kinds)} items were expected, {len(data)} are there")
    return tuple([within(f"[{i}]", reader(kind), data[i]) for i, kind in enumerate(kinds)])


def _named(read: Reader, data: Any) -> dict[str, Any]:
    return {key: within(f".{key}", read, value) for key, value in _dict(data).items()}


def _one_of(known: tuple[Any, ...], data: Any) -> Any:
    if type(data) is not str or data not in known:
        raise Misfit(f"{data!r} is none of {', '.join(map(repr, known))}")
    return data


def _choice(kinds: tuple[Any, ...]) -> Reader:
    """A number, or one type or None."""
    nothing, others = type(None) in kinds, tuple(kind for kind in kinds if kind is not type(None))
    readers = {kind: reader(kind) for kind in others}
    only = reader(others[0]) if len(others) == 1 else None

    def read(data: Any) -> Any:
        if data is None and nothing:
            return None
        if only is None and type(data) not in readers:
            raise Misfit(f"{data!r} is no number")
        return (only or readers[type(data)])(data)

    return read


def _plain(kind: Any, data: Any) -> Any:
    if type(data) is not kind and (kind, type(data)) != (float, int):
        raise Misfit(f"{data!r} is no {kind.__name__}")
    try:
        if kind is not float or math.isfinite(data):
            return float(data) if kind is float else data
    except OverflowError:
        pass  # an int beyond every float
    raise Misfit(f"{data!r} is too large for a number")  # 1e999; infinity itself is text


def _object(kind: Any) -> Reader:
    """A dataclass, as an object or as a row."""
    readers = {name: reader(hint) for name, hint in typing.get_type_hints(kind).items()}
    fields = dataclasses.fields(kind)
    names = [field.name for field in fields]
    needed = [it.name for it in fields if it.default is it.default_factory is dataclasses.MISSING]

    def read(data: Any) -> Any:
        if kind in ROWS:
            if len(_list(data)) > len(names):
                raise Misfit(f"a list of at most {len(names)} values was expected")
            data = dict(zip(names, data, strict=False))
        if unknown := _dict(data).keys() - readers.keys():
            raise Misfit(f"unknown field {min(unknown)!r}")
        if missing := [name for name in needed if name not in data]:
            raise Misfit(f"the field {missing[0]!r} is missing")
        return kind(**{name: within(f".{name}", readers[name], value) for name, value in data.items()})

    return read


def _shot(data: Any) -> Snapshot:
    if data is None or type(data) in (int, float, bool, str):
        return plain_scalar(_plain(type(data), data))
    tag = data.get("kind") if type(data) is dict else None
    if type(tag) is not str or tag not in SHOTS:
        raise Misfit(f"{tag!r} is no kind of snapshot")
    found: Snapshot = reader(SHOTS[tag])(data)
    return found
