"""A number with its unit as a reader reads it: the same on the page, in the terminal and in a notebook.

This file knows nothing of the engine: a notebook brings it along, where the engine is not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

DIGITS = 6  # significant digits of a float whose repr is long
SHORT = 11  # characters up to which an exact number of bytes or FLOPs is used inside a list or table
SHORT_REPR = 8  # characters up to which a float's own repr is used
HUGE = 10**13  # from here on a number is written with an exponent, as code writes it

# IEC 80000-13 (binary) and SI (decimal) prefixes.
BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
SI = ("", "k", "M", "G", "T", "P", "E")
FORMAT = re.compile(r"\.\d{1,2}[efg]")  # where a unit stands: how a number is written, `.2f`
SMALL_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def amount(value: complex, unit: str = "") -> str:
    """A number with its unit, exact and, where that helps, once more with a prefix.

    `B`, `FLOP`, `FLOP/s`, `B/s`, `s` and `%` (of a fraction, shown times 100) drive how it is written; any
    other unit follows the number as it stands. In place of a unit there may be a format, `.2f`.
    """
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, complex):
        value = value * 100 if unit == "%" else value
        real, imaginary = (plain_number(v) if math.isfinite(v) else str(v) for v in (value.real, value.imag))
        return f"{real}{'' if imaginary.startswith('-') else '+'}{imaginary}j {unit}".rstrip()
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} {unit}".rstrip()
    if FORMAT.fullmatch(unit):
        return f"{value:,{unit}}"
    match unit:
        case "B":  # the exact count; beyond a KiB also in binary, beyond a MiB also in decimal prefixes
            if abs(value) >= 10**21:
                return f"{_scientific(value)} B"
            binary = _scale_to_prefix(value, 1024, BINARY) if abs(value) >= 1024 else ""
            decimal = _scale_to_prefix(value, 1000, DECIMAL) if abs(value) >= 1024**2 else ""
            return " · ".join(filter(None, (f"{_exact_number(value)} B", binary, decimal)))
        case "FLOP" | "FLOPs":  # exact while that can be read; from a million on with a prefix
            exact = f"{_exact_number(value)} FLOP" if abs(value) < 10**12 else ""
            prefixed = _with_prefix(value, "FLOP") if abs(value) >= 10**6 else ""
            return " · ".join(filter(None, (exact, prefixed)))
        case "FLOP/s" | "B/s":
            return _with_prefix(value, unit)
        case "s":
            if value == 0 or abs(value) >= 1:
                return f"{_digits(value)} s" if abs(value) < 10**15 else f"{_scientific(value)} s"
            if abs(value) < 1e-12:
                return f"{value:.3g} s"
            scale, name = next((s for s in SMALL_TIMES if abs(value) >= s[0]), SMALL_TIMES[-1])
            return f"{_digits(value / scale)} {name}"
        case "%":
            if abs(value) >= HUGE:
                return f"{_scientific(value)} × 100 %"
            return f"{_percent(value)} %"
    return f"{plain_number(value)} {unit}".rstrip()


def brief(value: complex, unit: str = "") -> str:
    """One of several numbers: in one unit where `amount` says a single one in two or three.

    Of bytes and FLOPs the exact number while it is short, else the one with a prefix.
    """
    exact, _, rest = amount(value, unit).partition(" · ")
    return rest.partition(" · ")[0] if rest and len(exact) > SHORT else exact


def short(value: int | float, unit: str = "") -> str:
    """A number in one form of at most four digits or so: `1,024`, `16.38 GB`, `7.8 ms`, `0.3333`."""
    if unit == "B":
        return _with_prefix(value, "B") if abs(value) >= 1000 else f"{plain_number(value)} B"
    if FORMAT.fullmatch(unit):
        return amount(value, unit)
    prefixed = unit in ("s", "FLOP", "FLOP/s", "B/s")
    if not prefixed and (isinstance(value, float) or unit):
        exact = float(f"{value * (100 if unit == '%' else 1):.4g}")
        if not math.isfinite(exact):
            return f"{value} {unit}".rstrip()
        text = plain_number(int(exact) if exact.is_integer() and abs(exact) < HUGE else exact)
        return f"{text} {unit}".rstrip()
    return brief(value, unit)


def size(count: int) -> str:
    """A number of bytes in one short form: `24 B`, `2.25 GiB`."""
    return f"{count:,} B" if abs(count) < 1024 else _scale_to_prefix(count, 1024, BINARY)


def plain_number(value: int | float) -> str:
    """Integers with thousands separators, floats by their repr if short, else with six digits.

    Huge floats, and huge integers of which no digit gets lost, are written as `6.3e24`.
    """
    if isinstance(value, int):
        round_ = abs(value) >= HUGE and value % 10 ** (len(str(abs(value))) - DIGITS) == 0
        return _scientific(value) if round_ or abs(value) >= 10**40 else f"{value:,}"
    if abs(value) >= HUGE:
        return _scientific(value)
    if value.is_integer():
        return f"{value:,.1f}"
    text = f"{value:,}" if len(repr(value)) <= SHORT_REPR else _with_fraction(value)
    lead, mark, exponent = text.partition("e")
    return f"{lead}e{int(exponent)}" if mark else text  # `1e-08` as one writes it: `1e-8`


def _with_fraction(value: float) -> str:
    """`value` with six significant digits, or with as many as show that it is no whole number."""
    texts = (f"{value:,.{digits}g}" for digits in range(DIGITS, 17))
    return next((text for text in texts if "." in text), f"{value:,}")


def _digits(value: float, digits: int = 4, exact: bool = True) -> str:
    """`value` with so many significant digits, without an exponent, and without zeros at the end.

    These stay where the rest is a whole number, and `value` is not, or is not `exact`: 1.000 of 1.0001.
    """
    if value == 0:
        return "0"
    _, _, exponent = f"{value:.{digits - 1}e}".partition("e")  # of what is left after rounding
    text = f"{value:,.{max(0, digits - 1 - int(exponent))}f}"
    short = text.rstrip("0").rstrip(".") if "." in text else text
    whole = exact and math.isclose(value, round(value), rel_tol=1e-15)  # a division by 1e-3 rounds
    if whole or "." in short:
        return short
    return text if "." in text else f"{value:,.1f}"


def _percent(fraction: float) -> str:
    """A fraction times 100; of what is no whole one as many digits as it takes to be told from it: 99.996."""
    texts = (_digits(fraction * 100, digits) for digits in range(4, 19))
    part = abs(fraction) < 1
    return next(text for text in texts if not (part and abs(float(text.replace(",", ""))) == 100))


def _scientific(value: int | float) -> str:
    """`3.142e23`, as code writes it; exact integers of any size are accepted."""
    if isinstance(value, int):
        exponent = len(str(abs(value))) - 1
        lead, exact = value * 10**6 // 10**exponent / 10**6, value % 10**exponent == 0
    else:
        exponent = math.floor(math.log10(abs(value)))
        lead, exact = value / 10**exponent, True
    return f"{_digits(lead, DIGITS, exact)}e{exponent}"


def _power(value: int | float, base: int, count: int) -> int:
    """How many times `base` goes into `value` with four digits, at most as many as there are prefixes."""
    power = 0
    while power < count - 1 and float(f"{abs(value) / base**power:.4g}") >= base:
        power += 1
    return power


def _exact_number(value: int | float) -> str:
    return f"{int(value):,}" if isinstance(value, int) or value.is_integer() else plain_number(value)


def _scale_to_prefix(value: int | float, base: int, names: Sequence[str]) -> str:
    power = _power(value, base, len(names))
    return f"{_digits(value / base**power)} {names[power]}"


def _with_prefix(value: int | float, unit: str) -> str:
    if abs(value) >= 10**21:
        return f"{_scientific(value)} {unit}"
    return _scale_to_prefix(value, 1000, [name + unit for name in SI])


def grid(values: list[Any], shape: tuple[int, ...]) -> str:
    """Numbers in the brackets of their axes."""
    if not shape:
        return f"{values[0]:.6g}" if isinstance(values[0], float | complex) else str(values[0])
    step = len(values) // shape[0]
    rows = [grid(values[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]
    return f"[{', '.join(rows)}]"
