"""Measurements as pyperf keeps them: a benchmark named `GROUP / ROW / WHO`, with one value a round.

A group becomes a table of the page, a row its line, and who was measured its column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import NamedTuple

import pyperf

Results = dict[str, pyperf.Benchmark]


class Spread(NamedTuple):
    """A median between its quartiles."""

    low: float
    middle: float
    high: float


def add(
    results: Results,
    row: str,
    by_who: Mapping[str, float | Sequence[float]],
    unit: str = "second",
    **about: str | int,
) -> None:
    """Lay values into the results, behind those that are there already. pyperf wants them above zero."""
    for who, it in by_who.items():
        values = [it] if isinstance(it, int | float) else it
        rounded = [float(f"{max(value, 1e-9):.5g}") for value in values]  # further digits are noise
        metadata = {"name": f"{row} / {who}", "unit": unit, **about}
        merge(results, [pyperf.Benchmark([pyperf.Run(rounded, metadata=metadata, collect_metadata=False)])])


def merge(results: Results, found: Sequence[pyperf.Benchmark]) -> None:
    for benchmark in found:
        if (name := str(benchmark.get_name())) in results:
            results[name].add_runs(benchmark)
        else:
            results[name] = benchmark


def load(file: Path) -> Results:
    return {str(it.get_name()): it for it in pyperf.BenchmarkSuite.load(str(file))}


def dump(file: Path, results: Results) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pyperf.BenchmarkSuite(list(results.values())).dump(str(file), replace=True)


def interleaved(
    ways: Mapping[str, Callable[[], float]], rounds: int, budget: float = math.inf
) -> dict[str, list[float]]:
    """What each way returns, round by round; each round begins with another way.

    After `budget` seconds no further round begins, once there are three.
    """
    found: dict[str, list[float]] = {name: [] for name in ways}
    names, start = list(ways), perf_counter()
    for i in range(rounds):
        for j in range(len(names)):
            name = names[(i + j) % len(names)]
            found[name].append(ways[name]())
        if i >= 2 and perf_counter() - start > budget:
            break
    return found


def spread(values: Sequence[float]) -> Spread:
    return (
        Spread(*quantiles(values, n=4, method="inclusive")) if len(values) > 1 else Spread(*3 * [values[0]])
    )


def pairs(results: Results, above: str, below: str) -> list[tuple[float, float]]:
    """Two of a round; who had fewer turns had them in the first rounds."""
    return list(zip(results[above].get_values(), results[below].get_values(), strict=False))


def ratio(results: Results, above: str, below: str) -> list[float]:
    return [a / b for a, b in pairs(results, above, below)]


def size_of(row: str) -> int:
    """The number that a row of growth begins with: `1,000 lines`."""
    return int(row.partition(" ")[0].replace(",", ""))


def growth(results: Results, group: str, who: str) -> float:
    """The exponent of growth between a group's two largest rows: 1 is linear, 0 is flat."""
    names = [
        name.split(" / ") for name in results if name.startswith(f"{group} / ") and name.endswith(f" / {who}")
    ]
    if len(names) < 2:
        raise KeyError(group)
    (n, small), (m, large) = sorted(
        (size_of(row), results[f"{group} / {row} / {who}"]) for _, row, _ in names
    )[-2:]
    return math.log(large.median() / small.median()) / math.log(m / n)
