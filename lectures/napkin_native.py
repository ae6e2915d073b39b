"""The few operations that `napkin*.py` need and that each language has its own of; the calculator's script has its twin.

In go plain values, out come plain values. Nothing here knows a formula.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeGuard

Mapping = dict[str, Any]


def is_number(x: object) -> TypeGuard[float]:
    """Whether this is a finite number, and not a truth value."""
    return isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)


def is_flag(x: object) -> TypeGuard[bool]:
    """Whether this is true or false."""
    return isinstance(x, bool)


def is_text(x: object) -> TypeGuard[str]:
    """Whether this is a string."""
    return isinstance(x, str)


def is_list(x: object) -> TypeGuard[list[Any]]:
    """Whether this is a list."""
    return isinstance(x, list)


def is_mapping(x: object) -> TypeGuard[Mapping]:
    """Whether this maps names to values, as a JSON object does."""
    return isinstance(x, dict)


def has(things: Any, name: Any) -> bool:
    """Whether a mapping has this key, a list this element, or a string this part."""
    return name in things


def get(things: Mapping, name: str, otherwise: Any) -> Any:
    """What a mapping has under this name; `otherwise` where it has nothing, or null."""
    found = things.get(name)
    return otherwise if found is None else found


def keys(things: Mapping) -> list[str]:
    """The names in a mapping, in alphabetical order."""
    return sorted(things)


def ten_to(power: int) -> float:
    """The float nearest to this power of ten."""
    return float(f"1e{power}")


def number_of(text: str) -> float:
    """The float that a text of digits, with at most one point, says."""
    return float(text)


def sorted_by(things: list[Any], key: Callable[[Any], float]) -> list[Any]:
    """The things from the smallest key to the largest; of equal ones the first stays first."""
    return sorted(things, key=key)
