"""Interleaved repeats, and what they say: a median between two quartiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles


@dataclass(frozen=True)
class Spread:
    """The median of `count` measurements, and their quartiles."""

    low: float
    middle: float
    high: float
    count: int

    def scaled(self, factor: float) -> Spread:
        return Spread(self.low * factor, self.middle * factor, self.high * factor, self.count)

    def data(self) -> dict[str, float]:
        """As JSON holds it, in four digits: more are noise."""
        return {
            name: value if isinstance(value, int) else float(f"{value:.4g}")
            for name, value in asdict(self).items()
        }


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one measurement."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0], len(values))
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Spread(low, middle, high, len(values))


def interleaved(ways: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each way returns, `rounds` times; every round begins with another way."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for i in range(rounds):
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(ways[name]())
    return found


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """`above` divided by `below`, round by round."""
    return spread([a / b for a, b in zip(above, below, strict=True)])


def difference(more: Sequence[float], less: Sequence[float]) -> Spread:
    """`more` minus `less`, round by round."""
    return spread([a - b for a, b in zip(more, less, strict=True)])


def chance(above: Sequence[float], below: Sequence[float]) -> float:
    """How likely rounds so one-sided are if the two are alike: the two-sided sign test, without ties."""
    signs = [a > b for a, b in zip(above, below, strict=True) if a != b]
    n, fewer = len(signs), min(sum(signs), len(signs) - sum(signs))
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(fewer + 1)) / 2**n) if n else 1.0


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The exponent of growth between the last two sizes: 1 is linear, 0 is flat."""
    return math.log(costs[-1] / costs[-2]) / math.log(sizes[-1] / sizes[-2])


__all__ = ["Spread", "chance", "difference", "interleaved", "median", "ratio", "slope", "spread"]
