"""How cost grows with lectures, as pictures for the page: inline SVG that follows the theme."""

from __future__ import annotations

import re
from typing import Any

from litbook.html import safe_svg
from litbook.probe import svg

Found = dict[str, Any]
BLUE, RED, GREEN, GOLD, GREY = "#5566cc", "#cc5533", "#1f9a5b", "#c0912a", "#808894"  # on any paper
WIDTH, HEIGHT = 3.9, 3.0  # inches: two beside each other on a laptop, one above the other on a phone


def growth(found: Found) -> str:
    """The pictures of `results["growth"]`, side by side where there is room."""
    lines, steps = found["lines"], found["steps"]
    across, turns = [row["lines"] for row in lines], [row["executed"] // 2 for row in steps]
    stages = (("read", "read", GREY), ("run", "run", BLUE), ("render", "draw pages", RED))
    weights = (("record", "record", BLUE), ("gzip", "compressed", GREEN), ("pages", "pages", RED))
    drawn = [
        _plot("lines of the lecture", "seconds", across, True, [
            *((label, colour, [row["seconds"][name] for row in lines]) for name, label, colour in stages),
            ("edtrace", GOLD, [row["edtrace"]["seconds"] for row in lines if "edtrace" in row]),
        ]),
        _plot("lines of the lecture", "bytes", across, True, [
            *((label, colour, [row[name] for row in lines]) for name, label, colour in weights),
            ("edtrace", GOLD, [row["edtrace"]["record"] for row in lines if "edtrace" in row]),
        ]),
        _plot("iterations of one loop", "seconds for each iteration", turns, False, [
            ("run", BLUE, [_each(row, row["seconds"]["run"]) for row in steps]),
            ("plain", GREY, [_each(row, row["seconds"]["plain"]) for row in steps]),
            ("edtrace", GOLD, [_each(row, row["edtrace"]["seconds"]) for row in steps if "edtrace" in row]),
        ]),
        _plot("iterations of one loop", "bytes", turns, False, [
            *((label, colour, [row[name] for row in steps]) for name, label, colour in weights),
            ("edtrace", GOLD, [row["edtrace"]["record"] for row in steps if "edtrace" in row]),
        ]),
    ]  # fmt: skip
    caption = (
        "Growth with the lines of a lecture, and with the iterations of a loop whose line is inspected. "
        "Both axes of each plot are logarithmic. Dotted: linear."
    )
    row = f'<div style="display:flex;flex-wrap:wrap;gap:1rem">{"".join(drawn)}</div>'
    return f'<figure style="margin:1em 0;max-width:none">{row}<figcaption>{caption}</figcaption></figure>'


def _each(row: Found, seconds: float) -> float:
    return 2 * seconds / float(row["executed"])


def _plot(x: str, y: str, across: list[int], linear: bool, curves: list[tuple[str, str, list[float]]]) -> str:
    """Curves over sizes, both logarithmic; one that is shorter ends earlier."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.subplots()
    for label, colour, values in curves:
        if values:
            axes.plot(across[: len(values)], values, "o-", color=colour, label=label, ms=4)
    axes.set(xscale="log", yscale="log", xlabel=x)
    axes.set_title(y, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    low, high = axes.get_ylim()
    if high < 1000 * low:  # what is flat looks flat
        middle = (low * high) ** 0.5
        axes.set_ylim(middle / 1000**0.5, middle * 1000**0.5)
    if linear:
        _linear(axes, across)
    said = "; ".join(f"{label} {values[0]:.2g} to {values[-1]:.2g}" for label, _, values in curves if values)
    alt = f"{y}, over {x}, {across[0]:,} to {across[-1]:,}: {said}"
    name = re.sub(r"\W+", "-", f"growth {y} {x} ")
    return f'<div style="flex:1 1 17rem;min-width:0">{safe_svg.inline(svg.svg(figure), alt, name)}</div>'


def _linear(axes: Any, across: list[int]) -> None:
    """A dotted line that is linear, through the middle of what there is."""
    low, high = axes.get_ylim()
    start = (low * high) ** 0.5 * across[0] / (across[0] * across[-1]) ** 0.5
    ends = [start * n / across[0] for n in (across[0], across[-1])]
    axes.plot([across[0], across[-1]], ends, ":", color=GREY, lw=1, label="_linear")
    axes.set_ylim(low, high)
