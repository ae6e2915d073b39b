"""What the figures of all lectures share: colours, a figure to draw on, and the kinds that several lectures draw."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

GREY, BLUE, RED, GREEN, GOLD = "#6b7280", "#3949ab", "#b3421f", "#16794c", "#b98518"
SHADES = BLUE, GREEN, GOLD, RED, "#7f8bd6", "#9ad6b8"  # of the parts of a bar
COLUMN = 4.1  # inches: a phone shows a figure of this width with texts of 12 pixels and more


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of so many inches with all that sticks out of its axes, for light and dark pages alike."""
    fig = Figure(figsize=(width, height), facecolor="none")
    fig.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)  # the margin that is added when it is saved
    axes = fig.subplots()
    axes.set_facecolor("none")
    axes.tick_params(colors=GREY, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.xaxis.label.set_color(GREY)
    axes.yaxis.label.set_color(GREY)
    return fig, axes


def stacks(bars: Mapping[str, Mapping[str, float]], xlabel: str, colors: Sequence[str] = SHADES) -> Figure:
    """A figure with a horizontal bar for each entry, below its name, made of its parts one after the other."""
    names = list(dict.fromkeys(name for parts in bars.values() for name in parts))
    lines = math.ceil(len(names) / columns_of(names))  # of the legend
    fig, axes = blank(COLUMN, 0.8 + 0.55 * len(bars) + 0.2 * lines)
    hue = dict(zip(names, colors, strict=False))
    for row, parts in enumerate(bars.values()):
        left = 0.0
        for name, size in parts.items():
            axes.barh(-row, size, left=left, color=hue[name], height=0.5)
            left += size
    name_rows(axes, list(bars))
    axes.set(xlabel=xlabel)
    keys = [Rectangle((0, 0), 1, 1, color=hue[name]) for name in names]
    legend_above(axes, keys, names)
    return fig


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Put the name of each row, the first at the top, above the bar half as high as the row, from its left end."""
    rows = [0.3 - row for row in range(len(names))]
    axes.set_yticks(rows, names, ha="left", va="bottom")
    axes.tick_params(axis="y", length=0, pad=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-len(names) + 0.65, 0.75)


def columns_of(names: Sequence[str]) -> int:
    """How many columns of a legend fit into a figure of `COLUMN` inches."""
    return max(1, 44 // (4 + max(map(len, names))))


def legend_above(axes: Axes, handles: Sequence[Artist] = (), names: Sequence[str] = ()) -> None:
    """A legend over the axes, from their left end, of what is labelled there if nothing else is named."""
    if not names:
        handles, names = axes.get_legend_handles_labels()
    axes.legend(
        handles,
        names,
        ncols=columns_of(names),
        loc="lower left",
        bbox_to_anchor=(0, 1),
        frameon=False,
        labelcolor=GREY,
        borderpad=0,
        borderaxespad=0.3,
        handlelength=1,
        columnspacing=1.2,
    )


def powers_of_ten(*axes: Axis) -> None:
    """Label logarithmic axes without exponents, which are smaller than other text."""
    for axis in axes:
        axis.set_major_formatter(lambda x, _: f"{x:g}" if 1e-3 <= x < 1e4 else f"1e{math.log10(x):.0f}")
        axis.set_minor_locator(NullLocator())


def curves(lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], xlabel: str, ylabel: str) -> Figure:
    """A figure with a line for each entry, through its points (`x` values, `y` values); its name stands at its end."""
    fig, axes = blank(COLUMN, 3.2)
    for (name, (across, up)), color in zip(lines.items(), SHADES, strict=False):
        axes.plot(across, up, color=color, linewidth=2)
        axes.annotate(name, (across[-1], up[-1]), (0, 6), textcoords="offset points", color=color, ha="right")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return fig
