"""Interleaved repeats, and what they say: a median between two quartiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from time import perf_counter

CLOSE = 0.02  # of the median: quartiles as near as this need no further round


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


def interleaved(
    ways: Mapping[str, Callable[[], float]], rounds: int, least: int = 0, budget: float = math.inf
) -> dict[str, list[float]]:
    """What each way returns, in up to `rounds` rounds; every round begins with another way.

    After `least` rounds (0: all of them) no further one is made once the quartiles of every way lie within
    `CLOSE` of its median, or `budget` seconds have passed.
    """
    found: dict[str, list[float]] = {name: [] for name in ways}
    names, start = list(ways), perf_counter()
    for i in range(rounds):
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            found[name].append(ways[name]())
        late = perf_counter() - start > budget
        if least and i + 1 >= least and (late or all(map(_close, found.values()))):
            break
    return found


def _close(values: Sequence[float]) -> bool:
    found = spread(values)
    return found.high - found.low <= CLOSE * abs(found.middle)


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
