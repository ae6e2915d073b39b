"""What the results say of each thing that is measured. All raise `KeyError` for what was not measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.spreads import Spread, chance, difference, ratio, slope, spread

Found = dict[str, Any]
MICRO, MILLI, KB = 1e-6, 1e-3, 1e3
UNLIKELY = 0.01  # of the sign test: rounds so one-sided are no accident
LOOP = "a loop, its line inspected"


def at(value: float) -> Spread:
    """What was measured once, because it does not vary."""
    return Spread(value, value, value, 1)


def case(results: Found, name: str) -> Found:
    found: Found = results["cases"][name]
    return found


def extra(case: Found, tool: str = "litbook") -> Spread:
    """Seconds beyond plain Python, for each line that ran."""
    small = tool == "edtrace"
    lines, plain = case["small lines" if small else "lines"], "small plain" if small else "plain"
    return difference(case["seconds"][tool], case["seconds"][plain]).scaled(1 / lines)


def trained(results: Found, tool: str) -> Spread:
    """The training loop: of `tool` over plain Python, which for edtrace is that of its shorter loop."""
    seconds = case(results, "a training loop")["seconds"]
    return ratio(seconds[tool], seconds["small plain" if tool == "edtrace" else "plain"])


def inside(whole: Found, tool: str = "litbook") -> Spread:
    """Seconds inside the process, of `tool` over plain Python."""
    seconds, plain = ([it["seconds"] for it in whole["said"][name]] for name in (tool, "plain"))
    return ratio(seconds, plain[: len(seconds)])


def without_figures(whole: Found) -> Spread:
    """As `inside`, without the seconds that the recorded run takes to draw figures: plain draws none."""
    rounds, plain = whole["said"]["litbook"], [it["seconds"] for it in whole["said"]["plain"]]
    seconds = [it["seconds"] - it["parts"].get(FIGURES, 0.0) for it in rounds]
    return ratio(seconds, plain[: len(seconds)])


def against_text(results: Found, lecture: str, packed: int) -> Spread:
    """Bytes of the record over those of the lecture's text within it; `packed`: 0 as is, 1 compressed."""
    last = results["whole"][lecture]["said"]["litbook"][-1]
    return at(last["gzip" if packed else "bytes"] / last["fields"]["sources"][packed])


def outside(whole: Found, tool: str) -> Spread:
    """Seconds of the whole process, of `tool` over plain Python.

    Round by round; a contestant with fewer turns had them in the first rounds.
    """
    seconds = whole["seconds"][tool]
    return ratio(seconds, whole["seconds"]["plain"][: len(seconds)])


def stages(whole: Found, tool: str) -> dict[str, Spread]:
    """Seconds of each stage inside the process; `the rest` is what no stage accounts for."""
    rounds = whole["said"][tool]
    found = {name: spread([it["parts"].get(name, 0.0) for it in rounds]) for name in rounds[-1]["parts"]}
    within = [sum(s for name, s in it["parts"].items() if name not in AFTERWARDS) for it in rounds]
    rest = difference([it["seconds"] for it in rounds], within)
    return found | {"the rest": rest}


FIGURES = "drawing figures as SVG"
AFTERWARDS = ("record as JSON", "pages")  # stages that come after the run


def said(results: Found, lecture: str, name: str, tool: str = "litbook") -> Spread:
    """What the contestant's process says of itself."""
    return spread([float(it[name]) for it in results["whole"][lecture]["said"][tool]])


def shot(results: Found, kind: str, size: int) -> Found:
    found: Found = results["snapshots"][f"{kind} {size}"]
    return found


def beyond_reading(results: Found) -> Spread:
    """Seconds of a snapshot of a GiB, beyond torch's own minimum, maximum, mean and deviation of it."""
    seconds = shot(results, "float32", 2**30)["seconds"]
    return difference(seconds["litbook"], seconds["read"])


def shift(case: Found, tool: str = "litbook") -> Spread:
    """By which part of itself a time measured in a lecture is off when recorded; 0 if that may be chance."""
    recorded, plain = case["seconds"][tool], case["seconds"]["plain"]
    found = ratio(recorded, plain)
    middle = 0.0 if chance(recorded, plain) > UNLIKELY else found.middle - 1
    return Spread(found.low - 1, middle, found.high - 1, found.count)


def growth_of(rows: list[Found], cost: Callable[[Found], float], size: str = "lines") -> float:
    """The exponent with which a cost grows between the two largest sizes."""
    return slope([row[size] for row in rows], [max(cost(row), 1e-12) for row in rows])


def claims(results: Found, lecture: str) -> tuple[int, int]:
    """How many claims hold and how many steps ran, in the last run."""
    last = results["whole"][lecture]["said"]["litbook"][-1]
    return last["claims"], last["steps"]
