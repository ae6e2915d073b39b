"""How cost grows with lectures, as a picture for the page: inline SVG that follows the theme."""

from __future__ import annotations

from typing import Any

from litbook import vector
from litbook.render import figures

Found = dict[str, Any]
BLUE, RED, GREEN, GOLD, GREY = "#5566cc", "#cc5533", "#1f9a5b", "#c0912a", "#808894"  # on any paper
ALT = (
    "Three plots with logarithmic axes. Seconds to read, run and draw a lecture, over its lines; bytes of "
    "its record and pages, over its lines; bytes of a loop's record, over its iterations. Dotted: linear."
)


def growth(found: Found) -> str:
    """The picture of `cases.measured()["growth"]`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.2), layout="constrained")
    seconds, bytes_, flat = figure.subplots(1, 3)
    lines, steps = found["lines"], found["steps"]
    across = [row["lines"] for row in lines]
    for name, label, colour in (
        ("read", "read the text", GREY), ("run", "run and record", BLUE), ("render", "draw the pages", RED),
    ):  # fmt: skip
        seconds.plot(across, [row["seconds"][name] for row in lines], "o-", color=colour, label=label, ms=4)
    for key, label, colour in (
        ("record", "record", BLUE),
        ("gzip", "compressed", GREEN),
        ("pages", "pages", RED),
    ):
        bytes_.plot(across, [row[key] for row in lines], "o-", color=colour, label=label, ms=4)
    turns = [row["executed"] // 2 for row in steps]
    flat.plot(turns, [row["record"] for row in steps], "o-", color=BLUE, label="record", ms=4)
    flat.plot(turns, [row["gzip"] for row in steps], "o-", color=GREEN, label="compressed", ms=4)
    flat.set_ylim(100, 10**5)
    for axes, title, x in (
        (seconds, "seconds", "lines of the lecture"),
        (bytes_, "bytes", "lines of the lecture"),
        (flat, "bytes", "iterations of one loop"),
    ):
        axes.set(xscale="log", yscale="log", xlabel=x)
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
        if axes is not flat:
            _linear(axes, across)
    return figures.inline(vector.svg(figure), ALT, "growth-")


def _linear(axes: Any, across: list[int]) -> None:
    """A dotted line that is linear, through the middle of what there is."""
    low, high = axes.get_ylim()
    start = (low * high) ** 0.5 * across[0] / (across[0] * across[-1]) ** 0.5
    ends = [start * n / across[0] for n in (across[0], across[-1])]
    axes.plot([across[0], across[-1]], ends, ":", color=GREY, lw=1, label="_linear")
    axes.set_ylim(low, high)
