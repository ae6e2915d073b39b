"""Where the cost is: a sentence or two for each goal, out of what the same run measured."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks import measures, numbers
from benchmarks.spreads import chance, spread

Found = dict[str, Any]


def _listed(parts: dict[str, float], show: Callable[[float], str]) -> str:
    """The parts by weight, the largest first, without those that do not matter."""
    total = sum(abs(value) for value in parts.values()) or 1.0
    found = [
        f"{name} {show(value)}"
        for name, value in sorted(parts.items(), key=lambda part: -part[1])
        if abs(value) >= total / 100
    ]
    return ", ".join(found)


def inside(lecture: str, results: Found) -> str:
    whole = results["whole"][lecture]
    plain = median([it["seconds"] for it in whole["said"]["plain"]])
    ours = median([it["seconds"] for it in whole["said"]["litbook"]])
    parts = {name: it.middle for name, it in measures.stages(whole, "litbook").items()}
    during = {name: value for name, value in parts.items() if name not in measures.AFTERWARDS}
    figures = parts.get("drawing figures as SVG", 0.0)
    once = parts.get("reading the text", 0.0) + parts.get("compiling probes in", 0.0)
    return (
        f"Plain Python takes {numbers.seconds(plain)}, a recorded run {numbers.seconds(ours)}: "
        f"{_listed(during, numbers.seconds)}. Plain Python draws no figures; without drawing them the ratio "
        f"is {numbers.number((ours - figures) / plain)}, and without reading the text and compiling it once "
        f"{numbers.number((ours - figures - once) / plain)}."
    )


def process(lecture: str, results: Found) -> str:
    whole = results["whole"][lecture]
    plain, ours = (median(whole["seconds"][name]) for name in ("plain", "litbook"))
    parts = {name: it.middle for name, it in measures.stages(whole, "litbook").items()}
    more = {name: value for name, value in parts.items() if not name.startswith(("sections", "the rest"))}
    drawn = whole["said"]["litbook"][-1]["pages"]
    return (
        f"The process takes {numbers.seconds(ours)} instead of {numbers.seconds(plain)}. What plain Python "
        f"does not do: {_listed(more, numbers.seconds)}. There are {drawn} pages and "
        f"{whole['said']['litbook'][-1]['claims']:,} claims."
    )


def record(lecture: str, results: Found) -> str:
    last = results["whole"][lecture]["said"]["litbook"][-1]
    weights = {name: size for name, (size, _) in last["fields"].items()}
    text, packed = last["fields"]["sources"]
    return (
        f"The record is of {_listed(weights, numbers.size)}. It holds the lecture's whole text, because "
        f"pages, notebook and player come from the record alone: {numbers.size(text)}, compressed "
        f"{numbers.size(packed)}. All that the run adds is {numbers.size(last['bytes'] - text)}, compressed "
        f"{numbers.size(last['gzip'] - packed)}, for {last['claims']:,} claims and {last['steps']:,} steps."
    )


def line(name: str, results: Found) -> str:
    case = measures.case(results, name)
    plain = spread(case["seconds"]["plain"]).middle
    ours = spread(case["seconds"]["litbook"]).middle
    return (
        f"{case['lines']:,} lines take {numbers.seconds(plain)} in plain Python, "
        f"{numbers.seconds(plain / case['lines'])} each, and {numbers.seconds(ours)} recorded, "
        f"{numbers.seconds(ours / case['lines'])} each; the record takes {numbers.size(case['bytes'])}."
    )


def shift(name: str, results: Found) -> str:
    case = measures.case(results, name)
    seconds = case["seconds"]
    plain, ours = (_between(seconds[name]) for name in ("plain", "litbook"))
    likely = chance(seconds["litbook"], seconds["plain"])
    return (
        f"The lecture measures {plain} in plain Python and {ours} recorded; "
        f"so one-sided by chance: {likely:.3f}. What is timed is a single statement, and a probe stands "
        "in front of it; where the line is stepped over, the probe returns at once, but it is called."
    )


def snapshot(results: Found) -> str:
    it = measures.shot(results, "float32", 2**30)
    passes = {name: spread(it["seconds"][name]).middle for name in ("pass", "read", "litbook")}
    return (
        f"Its sum takes {numbers.seconds(passes['pass'])}, torch's minimum, maximum, mean and "
        f"deviation {numbers.seconds(passes['read'])}, the snapshot {numbers.seconds(passes['litbook'])} and "
        f"{it['bytes']:,} bytes."
    )


def save(results: Found) -> str:
    rounds = results["save"]["stages"]
    parts = {name: median([it[name] for it in rounds]) for name in rounds[0]}
    browser = results["save"]["seconds"].get("browser")
    page = median(results["save"]["seconds"]["page"])
    more = f" A browser shows it {numbers.seconds(median(browser) - page)} later." if browser else ""
    return f"A save becomes a page in {numbers.seconds(page)}: {_listed(parts, numbers.seconds)}.{more}"


def build(results: Found) -> str:
    rounds = [it["parts"] for it in results["build"]["said"]]
    parts = {name: median([it[name] for it in rounds]) for name in rounds[-1]}
    return f"{_listed(parts, numbers.seconds)}; the rest is starting Python and importing MkDocs."


def page(results: Found) -> str:
    found = results["save"]
    return (
        f"The largest of {found['pages']} pages takes {numbers.size(found['largest page'])}, with the "
        f"theme's frame. Our scripts on it take {numbers.size(found['scripts'])}; the steps that the player "
        "loads when asked are not among them."
    )


def command(name: str, results: Found) -> str:
    it, nothing = (_between(results["commands"][which]) for which in (name, "`python -c pass`"))
    return f"{name} takes {it}; a Python that does nothing takes {nothing}."


def _between(values: list[float]) -> str:
    it = spread(values)
    return f"{numbers.seconds(it.middle)} ({numbers.seconds(it.low)} to {numbers.seconds(it.high)})"


def growth(kind: str, cost: Callable[[Found], float], size: str, results: Found) -> str:
    before, last = results["growth"][kind][-2:]
    unit = "lines" if kind == "lines" else "steps"
    times, factor = last[size] / before[size], cost(last) / max(cost(before), 1e-12)
    return (
        f"From {before[size]:,} to {last[size]:,} {unit}, {numbers.number(times)} times as many, it grows to "
        f"{numbers.number(factor)} times as much."
    )
