"""Numbers as the page writes them."""

from __future__ import annotations

from benchmarks.spreads import Spread

TO = "\u2060–\u2060"  # no line ends beside this dash
SPACE = "\u00a0"  # between a number and its unit: they stay on one line


def number(value: float) -> str:
    """Two to four digits that say something."""
    if value == 0 or 1e-3 <= abs(value) < 1e9:
        digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
        return f"{value:,.{digits}f}".replace("-", "−")
    return f"{value:.1e}".replace("-", "−")


def plain(value: float) -> str:
    """A number that somebody chose, such as a goal: no digits that it does not have."""
    return f"{value:,g}".replace("-", "−")


def shown(found: Spread, unit: str = "", beside: float | None = None) -> str:
    """The median, and the quartiles where there is more than one measurement.

    Of one that would look like the number `beside` it and is another, enough digits to tell.
    """
    to = " to " if found.low < 0 else TO  # beside a minus the dash would look like one more
    ends = f" ({number(found.low)}{to}{number(found.high)})" if found.count > 1 else ""
    after = f"{SPACE}{unit}" if unit else ""
    middle = number(found.middle)
    if beside is not None and found.middle != beside and middle == number(beside):
        middle = f"{found.middle:.4g}".replace("-", "−")
    return f"{middle}{after}{ends}"


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value) >= size:
            return f"{number(value / size)}{SPACE}{unit}"
    return f"{number(value / 1e-9)}{SPACE}ns"


def size(count: float) -> str:
    """Bytes in kB, which are 1000."""
    return f"{number(count / 1000)}{SPACE}kB" if count >= 1000 else f"{count:.0f}{SPACE}B"


def binary(count: int) -> str:
    """Bytes of a tensor, which are chosen as powers of two."""
    for unit, whole in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= whole:
            return f"{count // whole}{SPACE}{unit}"
    return f"{count}{SPACE}B"
