"""Results -> what stands in `docs/benchmarks.md` between its marks: goals, two plots, a table a group."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyperf

from benchmarks.goals import judged
from benchmarks.results import Results, Spread, ratio, size_of, spread

START, END = "<!-- written by make bench -->", "<!-- end of what make bench writes -->"
NONE, SPACE, TO = (
    "–",
    "\u00a0",
    "\u2060–\u2060",
)  # a number and its unit, a dash and its ends stay on one line
BASES = (
    "plain",
    "torch's statistics",
)  # a table that has such a column says what multiple of it the others are
BLUE, RED, GREEN, GOLD, GREY = "#5566cc", "#cc5533", "#1f9a5b", "#c0912a", "#808894"  # on any paper


def write(template: Path, page: Path, results: Results) -> None:
    """The text of `template` with the results between its marks. Raises `ValueError` where it has none."""
    before, start, rest = template.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"{template} has no line {START!r} followed by {END!r}")
    page.write_text(f"{before}{START}\n\n{body(results)}\n\n{END}{after}", encoding="utf-8")


def body(results: Results) -> str:
    groups: dict[str, dict[str, list[str]]] = {}
    for name in results:
        group, row, who = name.split(" / ")
        groups.setdefault(group, {}).setdefault(row, []).append(who)
    blocks = ["### Against the goals", goals(results), plots(results, groups)]
    for group, rows in groups.items():
        blocks += [f"### {group[0].upper()}{group[1:]}", table(results, group, rows)]
    return "\n\n".join([about(results, list(groups.pop("this run", []))), *filter(None, blocks)])


def about(results: Results, stages: Sequence[str]) -> str:
    """On which machines, when, and who took no part; of stages measured together once."""
    found: dict[str, list[str]] = {}
    for stage in stages:
        it: dict[str, Any] = results[f"this run / {stage} / seconds"].get_metadata()
        words = f"{it['date']} UTC, commit `{it['commit'][:12]}`, load before and after {it['load']}"
        found.setdefault(it["machine"], []).append(f"{stage}: {words}")
        for who, why in json.loads(it["absent"]).items():
            found.setdefault("Not measured", []).append(f"{who}: {why}")
    lines = [f"- **{what}.** {'; '.join(dict.fromkeys(told))}." for what, told in found.items()]
    return "\n".join(lines)


# ---------------------------------------------------------------------------- tables


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    rule = [":--" if i < left else "--:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])


def goals(results: Results) -> str:
    rows = []
    for goal, found, verdict in judged(results):
        try:
            other = goal.measured(results, goal.beside) if goal.beside else None
        except KeyError:
            other = None
        beside = f"{goal.beside} {number(other.middle)}{SPACE}{goal.unit}" if other else NONE
        bounds = [f"≤{SPACE}{goal.goal:g}", f"{goal.limit:g}"]
        mark = {"met": "met", "missed": "*missed*"}.get(verdict, f"**{verdict}**")
        rows.append([goal.what, mark, shown(found, goal.unit), *bounds, beside])
    return markdown(["what", "verdict", "measured", "goal", "limit", "beside it"], rows, left=2)


def table(results: Results, group: str, rows: dict[str, list[str]]) -> str:
    """Medians and quartiles; and what multiple of the first column's they are, where that is plain Python."""
    columns = list(dict.fromkeys(who for row in rows.values() for who in row))
    base = next((it for it in BASES if it in columns and "growth" not in group), "")
    lines = []
    for row in rows:
        cells = []
        for who in columns:
            name, below = f"{group} / {row} / {who}", f"{group} / {row} / {base}"
            cell = quantity(results[name]) if name in results else NONE
            if name in results and below in results and who != base:
                cell += f" = {shown(spread(ratio(results, name, below)), '×')}"
            cells.append(cell)
        lines.append([row, *cells])
    return markdown(["", *columns], lines)


def quantity(it: pyperf.Benchmark) -> str:
    """A benchmark's median in the unit that suits it, and the quartiles where they differ from it."""
    units = (
        [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
        if it.get_unit() == "second"
        else [(1e6, "MB"), (1e3, "kB"), (1, "B")]
    )
    factor, unit = next((known for known in units if it.median() >= known[0]), units[-1])
    return shown(Spread(*(value / factor for value in spread(it.get_values()))), unit)


def shown(it: Spread, unit: str) -> str:
    low, middle, high = map(number, it)
    to = " to " if it.low < 0 else TO  # beside a minus the dash would look like one more
    return f"{middle}{SPACE}{unit}".rstrip() + (f" ({low}{to}{high})" if low != high else "")


def number(value: float) -> str:
    """Three digits, the thousands apart."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}".replace("-", "−")


# ---------------------------------------------------------------------------- plots


def plots(results: Results, groups: dict[str, dict[str, list[str]]]) -> str:
    """Time over the lines of a lecture, and bytes over the iterations of a loop."""
    wanted = (
        ("growth with lines", "s", {"run": BLUE, "draw": RED, "read": GREY, "edtrace": GOLD}),
        ("growth with iterations, left", "B", {"record": BLUE, "pages": RED, "edtrace": GOLD}),
    )
    drawn = [plot(results, group, unit, groups[group], who) for group, unit, who in wanted if group in groups]
    caption = (
        "The seconds of a lecture's stages over its lines; and the bytes left by a loop over its iterations, "
        "each of which shows a value. Both axes are logarithmic; the dotted line is linear growth."
    )
    row = f'<div style="display:flex;flex-wrap:wrap;gap:1rem">{"".join(drawn)}</div>'
    return f'<figure style="margin:1em 0">{row}<figcaption>{caption}</figcaption></figure>' if drawn else ""


def plot(results: Results, group: str, unit: str, rows: dict[str, list[str]], colours: dict[str, str]) -> str:
    """Curves over the sizes that the rows are named by, as SVG that follows the theme."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, NullFormatter

    from litbook.html import safe_svg
    from litbook.probe import svg

    figure, said = Figure(figsize=(3.9, 3.2), layout="constrained"), []
    axes = figure.subplots(subplot_kw={"xscale": "log", "yscale": "log"})
    for who, colour in colours.items():
        if curve := [(row, results[f"{group} / {row} / {who}"].median()) for row in rows if who in rows[row]]:
            sizes, heights = zip(*((size_of(row), it) for row, it in curve), strict=True)
            axes.plot(sizes, heights, "o-", color=colour, ms=4, label=who)
            said.append(f"{who} {heights[0]:.2g} to {heights[-1]:.2g} {unit}")
    x = group.partition(",")[0].removeprefix("growth with ")
    low, high = (size_of(list(rows)[i]) for i in (0, -1))
    bottom, top = axes.get_ylim()
    axes.plot([low, high], [bottom * 2, bottom * 2 * high / low], ":", color=GREY, lw=1)
    axes.set_ylim(bottom / 2, top * 2)
    axes.set_xlabel(x, fontsize=12)
    axes.set_title("seconds" if unit == "s" else "bytes", loc="left", fontsize=12)
    for axis, of in ((axes.xaxis, ""), (axes.yaxis, unit)):
        axis.set_major_formatter(EngFormatter(of))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=12)
    alt, name = f"{group}: over {low:,} to {high:,} {x}, {'; '.join(said)}", re.sub(r"\W+", "-", f"{group} ")
    return f'<div style="flex:1 1 17rem;min-width:0">{safe_svg.inline(svg.svg(figure), alt, name)}</div>'
