"""The goals, what was measured of each, and the limits beyond which `make bench` fails.

A goal is what the engine is built for. A limit allows for a noisy machine, so that passing it means a
slow-down. Results come from `cases.measured`; a goal that was not measured at some size is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.spreads import Spread, chance, difference, ratio, slope, spread

Found = dict[str, Any]
MICRO, MILLI, KB = 1e-6, 1e-3, 1e3
UNLIKELY = 0.01  # of the sign test: rounds so one-sided are no accident


@dataclass(frozen=True)
class Goal:
    """One row of the table. `measure` raises `KeyError` where the results do not have what it needs."""

    what: str
    unit: str
    goal: float
    limit: float
    measure: Callable[[Found], Spread]

    def judged(self, results: Found) -> Judged | None:
        try:
            found = self.measure(results)
        except (KeyError, StopIteration):
            return None
        return Judged(self, found)


@dataclass(frozen=True)
class Judged:
    """A goal with what was measured."""

    goal: Goal
    found: Spread

    @property
    def met(self) -> bool:
        return self.found.middle <= self.goal.goal

    @property
    def failed(self) -> str:
        """What `make bench` says when the limit is passed; empty when it is not."""
        it = self.goal
        if self.found.middle <= it.limit:
            return ""
        return f"{it.what}: {self.found.middle:.3g} {it.unit}, limit {it.limit:g} (goal {it.goal:g})"


def extra(case: Found, tool: str = "litbook") -> Spread:
    """Seconds beyond plain Python, for each line that ran."""
    small = tool == "edtrace"
    lines, plain = case["small lines" if small else "lines"], "small plain" if small else "plain"
    return difference(case["seconds"][tool], case["seconds"][plain]).scaled(1 / lines)


def inside(whole: Found, tool: str = "litbook") -> Spread:
    """Seconds inside the process, of `tool` over plain Python."""
    return _over_plain(
        [it["seconds"] for it in whole["said"][tool]], [it["seconds"] for it in whole["said"]["plain"]]
    )


def outside(whole: Found, tool: str) -> Spread:
    """Seconds of the whole process, of `tool` over plain Python."""
    return _over_plain(whole["seconds"][tool], whole["seconds"]["plain"])


def _over_plain(seconds: list[float], plain: list[float]) -> Spread:
    """Round by round; a contestant that was slow had its only turn in the first."""
    return ratio(seconds, plain[: len(seconds)])


def shot(results: Found, kind: str, size: int) -> Found:
    return next(it for it in results["snapshots"] if it["kind"] == kind and it["size"] == size)


def beyond_reading(results: Found) -> Spread:
    """Seconds of a snapshot of a GiB, beyond torch's own minimum, maximum, mean and deviation of it."""
    seconds = shot(results, "float32", 2**30)["seconds"]
    return difference(seconds["litbook"], seconds["read"])


def shift(case: Found) -> Spread:
    """By which part of itself a time measured in a lecture is off when recorded; 0 if that may be chance."""
    recorded, plain = case["seconds"]["litbook"], case["seconds"]["plain"]
    found = ratio(recorded, plain)
    if chance(recorded, plain) > UNLIKELY:
        return Spread(found.low - 1, 0.0, found.high - 1, found.count)
    return Spread(found.low - 1, found.middle - 1, found.high - 1, found.count)


def _said(results: Found, lecture: str, name: str) -> Spread:
    return spread([float(it[name]) for it in results["whole"][lecture]["said"]["litbook"]])


def _case(results: Found, name: str) -> Found:
    found: Found = results["cases"][name]
    return found


def growth_of(rows: list[Found], cost: Callable[[Found], float], size: str = "lines") -> float:
    """The exponent with which a cost grows between the two largest sizes."""
    return slope([row[size] for row in rows], [cost(row) for row in rows])


def _at(value: float) -> Spread:
    return Spread(value, value, value, 1)


LOOP = "a loop, its line inspected"
GOALS = (
    Goal("recorded ÷ plain, inside one process, lecture 02", "×", 1.05, 1.35,
         lambda r: inside(r["whole"]["lecture 02"])),
    Goal("recorded ÷ plain, inside one process, the shared lecture", "×", 1.05, 1.35,
         lambda r: inside(r["whole"]["shared"])),
    Goal("run lecture 02 and write its pages ÷ plain, whole process", "×", 1.15, 1.5,
         lambda r: outside(r["whole"]["lecture 02"], "litbook")),
    Goal("a recorded line without inspection, in a loop", "µs", 0.5, 1.5,
         lambda r: extra(_case(r, "a loop, nothing inspected")).scaled(1 / MICRO)),
    Goal("a recorded line without inspection, once each", "µs", 0.5, 1.5,
         lambda r: extra(_case(r, "lines that run once")).scaled(1 / MICRO)),
    Goal("a recorded line of a deep recursion", "µs", 0.5, 5.0,
         lambda r: extra(_case(r, "a recursion 900 deep, 20 times")).scaled(1 / MICRO)),
    Goal("a loop of 10⁶ iterations with `@inspect`", "s", 2.0, 4.0,
         lambda r: spread(_case(r, LOOP)["seconds"]["litbook"]).scaled(2 * 10**6 / _case(r, LOOP)["lines"])),
    Goal("its record", "kB", 20.0, 20.0, lambda r: _at(_case(r, LOOP)["bytes"] / KB)),
    Goal("a training loop, recorded ÷ plain", "×", 1.05, 1.25,
         lambda r: ratio(*(_case(r, "a training loop")["seconds"][n] for n in ("litbook", "plain")))),
    Goal("shift of a time measured inside `@stepover`, 10 µs", "", 0.0, 0.1,
         lambda r: shift(_case(r, "small product, `@stepover`"))),
    Goal("shift of a time measured in recorded lines, 5 ms", "", 0.0, 0.05,
         lambda r: shift(_case(r, "large product"))),
    Goal("snapshot of 1 GiB, beyond torch's statistics of it", "ms", 50.0, 500.0,
         lambda r: beyond_reading(r).scaled(1 / MILLI)),
    Goal("its snapshot", "kB", 4.0, 4.0, lambda r: _at(shot(r, "float32", 2**30)["bytes"] / KB)),
    Goal("record of lecture 02", "kB", 300.0, 2500.0,
         lambda r: _said(r, "lecture 02", "bytes").scaled(1 / KB)),
    Goal("record of lecture 02, compressed", "kB", 40.0, 600.0,
         lambda r: _said(r, "lecture 02", "gzip").scaled(1 / KB)),
    Goal("record of the shared lecture", "kB", 300.0, 300.0,
         lambda r: _said(r, "shared", "bytes").scaled(1 / KB)),
    Goal("record of the shared lecture, compressed", "kB", 40.0, 40.0,
         lambda r: _said(r, "shared", "gzip").scaled(1 / KB)),
    Goal("the largest page of lecture 02, before the theme's frame", "kB", 400.0, 600.0,
         lambda r: _said(r, "lecture 02", "largest page").scaled(1 / KB)),
    Goal("growth of a run with the lecture's lines (1: linear)", "", 1.05, 1.35,
         lambda r: _at(growth_of(r["growth"]["lines"], lambda row: row["seconds"]["run"]))),
    Goal("growth of drawing its pages", "", 1.05, 1.35,
         lambda r: _at(growth_of(r["growth"]["lines"], lambda row: row["seconds"]["render"]))),
    Goal("growth of the record with iterations (0: flat)", "", 0.05, 0.1,
         lambda r: _at(growth_of(r["growth"]["steps"], lambda row: row["record"], "executed"))),
)  # fmt: skip


def judged(results: Found) -> list[Judged]:
    return [it for goal in GOALS if (it := goal.judged(results)) is not None]


__all__ = [
    "GOALS",
    "Goal",
    "Judged",
    "chance",
    "extra",
    "growth_of",
    "inside",
    "judged",
    "median",
    "outside",
    "shift",
]
