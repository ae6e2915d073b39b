"""Scalars: values that are one short text, and perhaps a number.

This module knows Python's numbers and texts, enum members, numpy's scalars, and library types whose `repr` is
short and runs nothing foreign. It does not know what is inside anything.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from litbook.record import model
from litbook.record.limits import ONE_TEXT, TYPE_NAME
from litbook.snapshot import libraries
from litbook.snapshot.safe_types import QUALNAME, clean_text, dict_of, is_one_of, name_of
from litbook.snapshot.statistics import numbers

SAFE_BITS = 2000  # int -> decimal text is never refused below 640 digits (sys.int_info)


@dataclasses.dataclass(frozen=True)
class FieldName:
    """The name of a field, to tell `(x=1)` from `{'x': 1}`: a scalar of type "name", without quotes."""

    name: str


def _int(value: int, name: str = "int") -> model.Scalar:
    """Whole up to about 600 digits; beyond, Python may refuse decimal text, so sign, leading hex and bits."""
    bits = value.bit_length()
    if bits <= SAFE_BITS:
        return model.Scalar(name, str(value), model.number(value))
    sign = "-" if value < 0 else ""
    return model.Scalar(name, f"{sign}0x{abs(value) >> (bits - 64):x}… ({bits} bits)", cut=True)


def _float(value: float, name: str = "float") -> model.Scalar:
    return model.Scalar(name, repr(value), model.number(value))


def _text(value: Any, name: str = "str", base: Any = str) -> model.Scalar:
    """`repr` of the beginning of a str, bytes or bytearray, without its closing quote where it was cut."""
    shown = base.__repr__(base.__getitem__(value, slice(0, ONE_TEXT)))
    cut = base.__len__(value) > ONE_TEXT or len(shown) > ONE_TEXT + 20
    return model.Scalar(name, shown[: ONE_TEXT + 1] if cut else shown, cut=cut)


def _repr(value: object) -> model.Scalar:
    """For types whose `repr` is known to be short and to run nothing foreign."""
    return _clean_scalar(name_of(type(value)), repr(value))


def _clean_scalar(name: str, text: str, limit: int = ONE_TEXT) -> model.Scalar:
    text, cut = clean_text(text, limit)
    return model.Scalar(name, text, cut=cut)


# By identity of the exact type: a metaclass may have a hostile __hash__.
PLAIN: dict[int, Callable[[Any], model.Scalar]] = {
    id(int): _int,
    id(float): _float,
    id(bool): lambda value: model.Scalar("bool", repr(value), value),
    id(str): _text,
    id(FieldName): lambda value: _clean_scalar("name", value.name, TYPE_NAME),
    id(type(None)): lambda _: model.Scalar("NoneType", "None"),
    id(complex): _repr,
    id(type(...)): _repr,
    id(type(NotImplemented)): _repr,
}

_HARMLESS = {
    "fractions": "Fraction",
    "decimal": "Decimal",
    "datetime": "date timedelta timezone",
    "pathlib": "PosixPath WindowsPath PurePosixPath PureWindowsPath",
    "uuid": "UUID",
    "torch": "dtype device layout memory_format",
}
_CLOCKS = {"datetime": "datetime time"}  # their tzinfo may be foreign
_ZONES = {"datetime": "timezone", "zoneinfo": "ZoneInfo", "types": "NoneType"}


def scalar(value: Any, kind: type) -> model.Scalar | None:
    """Numbers, texts and the like whose exact type is not among the plain ones; None for anything else."""
    numpy, name = libraries.numpy(), name_of(kind)
    if numpy is not None and issubclass(kind, numpy.generic) and not issubclass(kind, (str, bytes)):
        # Of numpy's own, and no subclass: `np.float32(0.1)`, and 0.1.
        if dict_of(numpy).get(QUALNAME(kind)) is kind:
            letter, width = value.dtype.kind, value.dtype.itemsize
            if letter not in "biuf":
                return _repr(value)
            item = float(value) if letter == "f" else value.item()  # item() of a longdouble is one still
            return replace(_repr(value), number=numbers([item], letter == "f" and width <= 4)[0])
    if issubclass(kind, enum.Enum):  # by its name; a flag without one is left to its `repr`
        member = dict_of(value).get("_name_")
        full = f"{QUALNAME(kind).rpartition('.')[2]}.{member}"
        return _clean_scalar(name, full) if type(member) is str else None
    if issubclass(kind, int):
        return _int(int.__int__(value), name)
    if issubclass(kind, float):
        return _float(float.__float__(value), name)
    for base in (str, bytes, bytearray):
        if issubclass(kind, base):
            return _text(value, name, base)
    if issubclass(kind, complex):
        return model.Scalar(name, complex.__repr__(value))
    if is_one_of(kind, _HARMLESS) or (is_one_of(kind, _CLOCKS) and is_one_of(type(value.tzinfo), _ZONES)):
        return _repr(value)
    return None
