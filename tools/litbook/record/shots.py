"""Snapshots as the record's JSON has them, and back.

There are thousands in a record, and most are small, so what is said anyway is left out:

    5   0.5   true   null   "'text'"        a plain scalar is itself, a string its repr
    "torch.dtype torch.float32"             any other scalar that is a text alone: its type, then the text
    ["list", 1, 2, 3]                       a sequence that is whole
    [[2, 3], "float32", 7, {...}]           a tensor: shape, dtype, storage, and what else there is to say
    {"type": "dict", "keys": [...], ...}    everything else: its fields, without those that hold their default

Of a tensor `strides` are those of a contiguous one, `bytes` and `storage_bytes` what its elements take, and
`memory` may be `true`: the values once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from litbook.record import checked
from litbook.record.checked import READERS, Misfit, within
from litbook.record.model import Mapping, Opaque, Scalar, Sequence, Snapshot, Stats, Tensor

WIDTHS = {
    "bool": 1, "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "uint16": 2, "int16": 2, "float16": 2, "bfloat16": 2, "uint32": 4, "int32": 4, "float32": 4,
    "uint64": 8, "int64": 8, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""dtype -> bytes of one element, for those whose size need not be written."""

_BARE = {int, float, bool, type(None)}
_DEFAULTS = {
    kind: [(field.name, field.default) for field in fields(kind) if field.name != "kind"]
    for kind in (Scalar, Sequence, Mapping, Stats, Tensor, Opaque)
}


def shot(it: Snapshot) -> Any:
    """A snapshot as JSON data."""
    return _WAYS[type(it)](it)


def read_shot(data: Any) -> Snapshot:
    """The snapshot that `shot` wrote."""
    kind = type(data)
    if kind is str:
        return _worded(data)
    if kind in _BARE:
        return Scalar(kind.__name__, repr(data), checked.number(data))
    if kind is list:
        return _read_tensor(data) if data and type(data[0]) is list else _read_sequence(data)
    if kind is not dict:
        raise Misfit(f"{data!r} is no snapshot")
    found: Snapshot = checked.fields(_kind_of(data), data)
    return found


def _kind_of(data: dict[str, Any]) -> type:
    """What an object is a snapshot of: its fields say so, but of an opaque one, which is named."""
    tag = data.get("kind")
    if tag is not None:
        if tag != "opaque":
            raise Misfit(f"{tag!r} is no kind of snapshot")
        return Opaque
    for name, kind in (("dtype", Tensor), ("keys", Mapping), ("length", Sequence), ("text", Scalar)):
        if name in data:
            return kind
    raise Misfit("an object of no known fields is no snapshot")


def _given(it: Any) -> dict[str, Any]:
    """The fields that do not hold their default."""
    found = {}
    for name, default in _DEFAULTS[type(it)]:
        value = getattr(it, name)
        if value != default or type(value) is not type(default):
            found[name] = value
    return found


# ---------------------------------------------------------------------------- scalars, objects


def _scalar(it: Scalar) -> Any:
    if not it.cut:
        bare = it.number
        if type(bare) in _BARE and it.type == type(bare).__name__ and it.text == repr(bare):
            return bare
        if bare is None and _read_back(it):
            return it.text if it.type == "str" else f"{it.type} {it.text}"
    return _given(it)


def _read_back(it: Scalar) -> bool:
    """Whether one string says all of a scalar without a number."""
    if it.type == "str":
        return it.text[:1] in _QUOTES
    return bool(it.type) and " " not in it.type and it.type[:1] not in _QUOTES


_QUOTES = ("'", '"')


def _worded(text: str) -> Scalar:
    if text[:1] in _QUOTES:
        return Scalar("str", text)
    kind, space, rest = text.partition(" ")
    if not kind or not space:
        raise Misfit(f"{text!r} is no snapshot")
    return Scalar(kind, rest)


def _opaque(it: Opaque) -> Any:
    return {**_given(it), "kind": "opaque"}


# ---------------------------------------------------------------------------- containers


def _sequence(it: Sequence) -> Any:
    items = [shot(item) for item in it.items]
    if len(items) == it.length:
        return [it.type, *items]
    found = {"type": it.type, "length": it.length}
    return {**found, "items": items} if items else found


def _read_sequence(data: list[Any]) -> Sequence:
    if not data or type(data[0]) is not str:
        raise Misfit("a sequence was expected, its type first")
    return Sequence(data[0], len(data) - 1, checked.each(read_shot, data[1:]))


def _mapping(it: Mapping) -> Any:
    found: dict[str, Any] = {"type": it.type, "length": it.length, "keys": [shot(key) for key in it.keys]}
    if it.items:
        found["items"] = [shot(item) for item in it.items]
    return found


# ---------------------------------------------------------------------------- tensors


def _tensor(it: Tensor) -> Any:
    rest = _given(it)
    del rest["dtype"], rest["shape"]
    rest.pop("storage", None)
    for name, value in _implied(it.shape, it.dtype, it.storage).items():
        rest.pop(name, None)
        if getattr(it, name) != value:
            rest[name] = getattr(it, name)
    if it.stats is not None:
        rest["stats"] = _trimmed(it.stats)
    if it.memory is not None and repr(it.memory) == repr(it.values):  # -0.0 is 0.0, and True is 1
        rest["memory"] = True
    row = [it.shape, it.dtype, it.storage, rest]
    return row if rest else row[:3] if it.storage is not None else row[:2]


def _implied(shape: tuple[int, ...], dtype: str, storage: int | None) -> dict[str, Any]:
    """What goes without saying: a contiguous tensor that is all of its storage."""
    width = WIDTHS.get(dtype, 0)
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    whole = math.prod(shape) * width
    return {
        "type": "torch.Tensor",
        "strides": tuple(strides[::-1]),
        "bytes": whole,
        "storage_bytes": None if storage is None else whole,
    }


def _trimmed(stats: Stats) -> list[Any]:
    """The fields in order, without defaults at the end."""
    row = [getattr(stats, name) for name, _ in _DEFAULTS[Stats]]
    for _, default in reversed(_DEFAULTS[Stats]):
        if row[-1] != default or type(row[-1]) is not type(default):
            break
        row.pop()
        if not row:
            break
    return row


def _read_tensor(data: list[Any]) -> Tensor:
    if not 2 <= len(data) <= 4:
        raise Misfit("shape, dtype, storage and more of a tensor were expected")
    shape, dtype = within("[0]", _SHAPE, data[0]), within("[1]", _TEXT, data[1])
    storage = within("[2]", _STORAGE, data[2]) if len(data) > 2 else None
    rest = data[3] if len(data) > 3 else {}
    if type(rest) is not dict:
        raise Misfit("an object was expected").under("[3]")
    found = {
        **_implied(shape, dtype, storage),
        "shape": list(shape),
        "dtype": dtype,
        "storage": storage,
        **rest,
    }
    found["strides"] = list(found["strides"]) if type(found["strides"]) is tuple else found["strides"]
    if type(stats := found.get("stats")) is list:
        if len(stats) > len(_DEFAULTS[Stats]):
            raise Misfit("at most six statistics were expected").under("[3].stats")
        found["stats"] = {name: value for (name, _), value in zip(_DEFAULTS[Stats], stats, strict=False)}
    if found.get("memory") is True:
        found["memory"] = found.get("values", [])
    tensor: Tensor = within("[3]", checked.reader(Tensor), found)
    return tensor


_SHAPE, _TEXT, _STORAGE = (checked.reader(kind) for kind in (tuple[int, ...], str, int | None))
_WAYS: dict[type, Callable[[Any], Any]] = {
    Scalar: _scalar,
    Sequence: _sequence,
    Mapping: _mapping,
    Tensor: _tensor,
    Opaque: _opaque,
}
READERS[Snapshot] = read_shot
