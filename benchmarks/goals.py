"""The goals of `goals.toml`, each with what was measured of it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import Results, Spread, growth, pairs, ratio, spread

UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "kB": 1e3}


@dataclass(frozen=True)
class Goal:
    """One row of the table, as the head of `goals.toml` says."""

    what: str
    unit: str
    goal: float
    limit: float
    of: str
    over: str = ""
    minus: str = ""
    grows: str = ""
    times: float = 1.0
    beside: str = ""  # who else is measured so

    def measured(self, results: Results, who: str = "") -> Spread:
        """Raises `KeyError` where the results do not have what it needs."""
        of = " / ".join([*self.of.split(" / ")[:-1], who]) if who else self.of
        if self.grows:
            found: Sequence[float] = [growth(results, self.of, self.grows)]
        elif self.over:
            found = ratio(results, of, self.over)
        elif self.minus:
            found = [a - b for a, b in pairs(results, of, self.minus)]
        else:
            found = results[of].get_values()
        return Spread(*(it * self.times / UNITS.get(self.unit, 1.0) for it in spread(found)))


GOALS = [
    Goal(**row)
    for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["goals"]
]


def judged(results: Results) -> list[tuple[Goal, Spread, str]]:
    """Each goal that was measured: `met`, `missed`, or `beyond the limit`."""
    found = []
    for goal in GOALS:
        try:
            it = goal.measured(results)
        except KeyError:
            continue
        beyond = "beyond the limit" if it.middle > goal.limit else "missed"
        found.append((goal, it, "met" if it.middle <= goal.goal else beyond))
    return found
