"""A bit pattern of a float -> its three fields, and the value that they spell.

This module knows the formats: IEEE 754-2019 (binary16, binary32, binary64), bfloat16, which is binary32 with
16 bits of fraction less, and the 8-bit formats of the OCP specification "8-bit Floating Point" (OFP8, 2023),
of which E4M3 has no infinity. It knows no tensors and draws nothing.
"""

from __future__ import annotations

import decimal
from fractions import Fraction
from typing import Literal

from msgspec import Struct

Kind = Literal["zero", "subnormal", "normal", "infinite", "not a number"]


class Format(Struct, frozen=True):
    """How many bits exponent and fraction have. `infinities`: whether the highest exponent is set apart."""

    exponent: int
    fraction: int
    infinities: bool = True

    @property
    def bits(self) -> int:
        """All of them, with the sign."""
        return 1 + self.exponent + self.fraction

    @property
    def bias(self) -> int:
        """What is taken off the exponent's bits."""
        return (1 << (self.exponent - 1)) - 1


FORMATS = {
    "float64": Format(11, 52),
    "float32": Format(8, 23),
    "float16": Format(5, 10),
    "bfloat16": Format(8, 7),
    "float8_e4m3fn": Format(4, 3, infinities=False),
    "float8_e5m2": Format(5, 2),
}


class Float(Struct, frozen=True):
    """One value: its format, and its three fields as unsigned integers."""

    format: Format
    negative: bool
    exponent: int
    fraction: int

    @property
    def fields(self) -> tuple[str, str, str]:
        """Sign, exponent and fraction as they are stored, in zeros and ones."""
        f = self.format
        return str(int(self.negative)), f"{self.exponent:0{f.exponent}b}", f"{self.fraction:0{f.fraction}b}"

    @property
    def kind(self) -> Kind:
        """What the fields say before one calculates."""
        layout = self.format
        highest, full = 2**layout.exponent - 1, 2**layout.fraction - 1
        if not self.exponent:
            return "subnormal" if self.fraction else "zero"
        if self.exponent < highest:
            return "normal"
        if not layout.infinities:
            return "not a number" if self.fraction == full else "normal"
        return "not a number" if self.fraction else "infinite"

    @property
    def power(self) -> int:
        """The exponent of two, of a finite value. Subnormal ones share that of the smallest normal one."""
        return max(self.exponent, 1) - self.format.bias

    @property
    def significand(self) -> Fraction:
        """What the power of two is multiplied by: 1 + fraction, or fraction where the exponent is zero."""
        return int(self.exponent > 0) + Fraction(self.fraction, 2**self.format.fraction)

    @property
    def magnitude(self) -> Fraction:
        """The value of a finite float without its sign, exactly."""
        return self.significand * Fraction(2) ** self.power


def read(pattern: str, dtype: str) -> Float | None:
    """The float whose bits are the hexadecimal `pattern`; None where `dtype` is no known format."""
    layout = FORMATS.get(dtype)
    if layout is None or len(pattern) * 4 != layout.bits:
        return None
    whole = int(pattern, 16)
    return Float(
        layout,
        bool(whole >> (layout.bits - 1)),
        whole >> layout.fraction & (2**layout.exponent - 1),
        whole & (2**layout.fraction - 1),
    )


def text(value: Fraction, digits: int = 10) -> str:
    """A finite binary number in decimal: every digit if there are few, else the first ones and `…`."""
    with decimal.localcontext() as context:
        context.prec = 1200  # 1 / 2**1074 has 751 digits; nothing here is rounded
        exact = decimal.Decimal(value.numerator) / value.denominator
    sign, figures, exponent = exact.normalize().as_tuple()
    assert isinstance(exponent, int), "finite"
    cut = len(figures) > digits + 3
    lead = "".join(map(str, figures[:digits] if cut else figures))
    place = len(figures) + exponent  # digits before the point
    dots = "…" if cut else ""
    minus = "−" if sign else ""
    if not -4 <= place <= 15:
        return f"{minus}{lead[0]}.{lead[1:] or '0'}{dots}e{place - 1}"
    if place <= 0:
        return f"{minus}0.{'0' * -place}{lead}{dots}"
    return f"{minus}{lead[:place].ljust(place, '0')}.{lead[place:] or '0'}{dots}"
