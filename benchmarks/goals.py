"""The goals, what was measured of each, and the limits beyond which `make bench` fails.

A goal is what the engine is built for. A limit allows for a noisy machine, so that passing it means a
slow-down. Results come from `cases`; a goal of a stage that was not measured is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import reasons
from benchmarks.measures import (
    KB,
    LOOP,
    MICRO,
    MILLI,
    Found,
    against_text,
    at,
    beyond_reading,
    case,
    extra,
    growth_of,
    inside,
    outside,
    said,
    shift,
    shot,
    trained,
    without_figures,
)
from benchmarks.spreads import Spread, spread

MILLION = 2 * 10**6  # lines of so many iterations: the `for` and its body
Beside = Callable[[Found], tuple[str, Spread]]


@dataclass(frozen=True)
class Goal:
    """One row of the table. `measure` raises `KeyError` where the results do not have what it needs.

    `beside` is the same of another tool, and may raise it too; `why` says, out of what was measured, where
    the cost is, for a goal that is missed.
    """

    what: str
    unit: str
    goal: float
    limit: float
    measure: Callable[[Found], Spread]
    why: Callable[[Found], str]
    beside: Beside | None = None

    def judged(self, results: Found) -> Judged | None:
        try:
            found = self.measure(results)
        except KeyError:
            return None
        return Judged(self, found)

    def other(self, results: Found) -> tuple[str, Spread] | None:
        """Another tool, and what was measured of it; None where it took no part."""
        if self.beside is None:
            return None
        try:
            return self.beside(results)
        except KeyError:
            return None


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


def edtrace(measure: Callable[[Found], Spread]) -> Beside:
    return lambda results: ("edtrace", measure(results))


def nbconvert(measure: Callable[[Found], Spread]) -> Beside:
    return lambda results: ("nbconvert", measure(results))


def _line(what: str, name: str, goal: float, limit: float) -> Goal:
    """The cost of a line that is recorded and not inspected."""
    return Goal(
        what, "µs", goal, limit, lambda r: extra(case(r, name)).scaled(1 / MICRO),
        partial(reasons.line, name),
        edtrace(lambda r: extra(case(r, name), "edtrace").scaled(1 / MICRO)),
    )  # fmt: skip


def _answer(what: str, command: str) -> Goal:
    return Goal(
        what, "s", 0.3, 1.5, lambda r: spread(r["commands"][command]), partial(reasons.command, command)
    )


def _grows(what: str, kind: str, limit: float, cost: Callable[[Found], float], size: str = "lines") -> Goal:
    """An exponent: 1 is linear, 0 is flat."""
    goal = 1.05 if kind == "lines" else 0.05
    return Goal(
        what, "", goal, limit, lambda r: at(growth_of(r["growth"][kind], cost, size)),
        partial(reasons.growth, kind, cost, size),
    )  # fmt: skip


def _weight(what: str, lecture: str, key: str, goal: float, limit: float) -> Goal:
    return Goal(
        what, "kB", goal, limit, lambda r: said(r, lecture, key).scaled(1 / KB),
        partial(reasons.record, lecture), edtrace(lambda r: said(r, lecture, key, "edtrace").scaled(1 / KB)),
    )  # fmt: skip


def _reachable(results: Found, browser: str) -> Spread:
    return spread(results["save"]["seconds"][browser])


# Plain Python draws no figures since 26 Nov 2026. The two limits of lecture 02 beside it were set anew then,
# a quarter above what was measured, as the others had been; the goals stayed.
GOALS = (
    Goal("recorded ÷ plain, inside one process: lecture 02, without drawing its figures", "×", 1.05, 1.9,
         lambda r: without_figures(r["whole"]["lecture 02"]), partial(reasons.inside, "lecture 02")),
    Goal("recorded ÷ plain, inside one process: the shared lecture", "×", 1.05, 1.35,
         lambda r: inside(r["whole"]["shared"]), partial(reasons.inside, "shared"),
         edtrace(lambda r: inside(r["whole"]["shared"], "edtrace"))),
    _line("a recorded line without inspection, in a loop", "a loop, nothing inspected", 0.3, 1.5),
    _line("a recorded line without inspection, once each", "lines that run once", 0.5, 1.5),
    _line("a recorded line without inspection, in a deep recursion",
          "a recursion 900 deep, 20 times", 0.7, 5.0),
    Goal("shift of a time measured inside `@stepover`, a small product", "", 0.0, 0.1,
         lambda r: shift(case(r, "small product, `@stepover`")),
         partial(reasons.shift, "small product, `@stepover`"),
         edtrace(lambda r: shift(case(r, "small product, `@stepover`"), "edtrace"))),
    Goal("shift of a time measured in recorded lines, a large product", "", 0.0, 0.05,
         lambda r: shift(case(r, "large product")), partial(reasons.shift, "large product"),
         edtrace(lambda r: shift(case(r, "large product"), "edtrace"))),
    Goal("a training loop, recorded ÷ plain", "×", 1.05, 1.25, lambda r: trained(r, "litbook"),
         partial(reasons.line, "a training loop"), edtrace(lambda r: trained(r, "edtrace"))),
    Goal("record ÷ the lecture's own text: lecture 02", "×", 2.5, 5.0,
         lambda r: against_text(r, "lecture 02", 0), partial(reasons.record, "lecture 02")),
    Goal("the same, both compressed", "×", 2.0, 4.0,
         lambda r: against_text(r, "lecture 02", 1), partial(reasons.record, "lecture 02")),
    _weight("record of the shared lecture", "shared", "bytes", 300.0, 300.0),
    _weight("record of the shared lecture, compressed", "shared", "gzip", 40.0, 40.0),
    Goal("a loop of 10⁶ iterations with `@inspect`", "s", 1.0, 4.0,
         lambda r: spread(case(r, LOOP)["seconds"]["litbook"]).scaled(MILLION / case(r, LOOP)["lines"]),
         partial(reasons.line, LOOP),
         edtrace(lambda r: spread(case(r, LOOP)["seconds"]["edtrace"])
                 .scaled(MILLION / case(r, LOOP)["small lines"]))),
    Goal("its record", "kB", 3.0, 20.0, lambda r: at(case(r, LOOP)["bytes"] / KB),
         partial(reasons.line, LOOP),
         edtrace(lambda r: at(case(r, LOOP)["edtrace bytes"] / KB * MILLION / case(r, LOOP)["small lines"]))),
    Goal("snapshot of 1 GiB, beyond torch's own statistics of it (negative: faster than they)",
         "ms", 50.0, 500.0, lambda r: beyond_reading(r).scaled(1 / MILLI), reasons.snapshot),
    Goal("its snapshot", "kB", 4.0, 4.0,
         lambda r: at(shot(r, "float32", 2**30)["bytes"] / KB), reasons.snapshot),
    Goal("run lecture 02 and write its pages ÷ plain, whole process", "×", 1.2, 3.2,
         lambda r: outside(r["whole"]["lecture 02"], "litbook"), partial(reasons.process, "lecture 02")),
    Goal("the same, the shared lecture", "×", 1.2, 1.5,
         lambda r: outside(r["whole"]["shared"], "litbook"), partial(reasons.process, "shared"),
         nbconvert(lambda r: outside(r["whole"]["shared"], "nbconvert"))),
    Goal("save a section to its new page in `make serve`, lecture 02", "s", 1.5, 4.0,
         lambda r: _reachable(r, "page"), reasons.save),
    Goal("the same, until a browser shows it", "s", 2.0, 5.0,
         lambda r: _reachable(r, "browser"), reasons.save),
    Goal("a strict build of the whole site, with the lectures run", "s", 25.0, 90.0,
         lambda r: spread(r["build"]["seconds"]), reasons.build),
    Goal("the largest page of lecture 02, HTML", "kB", 250.0, 400.0,
         lambda r: at(r["save"]["largest page"] / KB), reasons.page),
    Goal("our JavaScript on it", "kB", 30.0, 30.0, lambda r: at(r["save"]["scripts"] / KB), reasons.page),
    _answer("`run_lecture.py --help`", "`run_lecture.py --help`"),
    _answer("`--list` of lecture 02", "`run_lecture.py lecture_02 --list`"),
    _answer("a section that lecture 02 does not have", "`run_lecture.py lecture_02 no_such_section`"),
    _grows("growth of a run with the lecture's lines (1: linear)", "lines", 1.35,
           lambda row: row["seconds"]["run"]),
    _grows("growth of drawing its pages", "lines", 1.35, lambda row: row["seconds"]["render"]),
    _grows("growth of its record", "lines", 1.1, lambda row: row["record"]),
    _grows("growth of its pages", "lines", 1.1, lambda row: row["pages"]),
    _grows("growth of a record with a loop's iterations (0: flat)", "steps", 0.1,
           lambda row: row["record"], "executed"),
    _grows("growth of the cost of one iteration", "steps", 0.3,
           lambda row: (row["seconds"]["run"] - row["seconds"]["plain"]) / row["executed"], "executed"),
    _grows("growth of drawing its page", "steps", 0.3, lambda row: row["seconds"]["render"], "executed"),
)  # fmt: skip


def judged(results: dict[str, Any]) -> list[Judged]:
    return [it for goal in GOALS if (it := goal.judged(results)) is not None]
