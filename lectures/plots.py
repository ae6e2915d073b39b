"""What the figures of all lectures share: colours, a figure to draw on, and the kinds that several lectures draw."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

GREY, BLUE, RED, GREEN, GOLD = "#6b7280", "#3949ab", "#b3421f", "#16794c", "#b98518"
SHADES = BLUE, GREEN, GOLD, RED, "#7f8bd6", "#9ad6b8"  # of the parts of a bar


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty figure of so many inches, for light and dark pages alike."""
    fig = Figure(figsize=(width, height), facecolor="none")
    fig.subplots_adjust(left=0.1, right=1, bottom=0.14, top=1)  # what sticks out is kept when it is drawn
    axes = fig.subplots()
    axes.set_facecolor("none")
    axes.tick_params(colors=GREY, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.xaxis.label.set_color(GREY)
    axes.yaxis.label.set_color(GREY)
    return fig, axes


def stacks(bars: Mapping[str, Mapping[str, float]], xlabel: str, colors: Sequence[str] = SHADES) -> Figure:
    """A figure with a horizontal bar for each entry, made of its parts one after the other."""
    fig, axes = blank(6.4, 1.1 + 0.42 * len(bars))
    names = list(dict.fromkeys(name for parts in bars.values() for name in parts))
    hue = dict(zip(names, colors, strict=False))
    for row, parts in enumerate(bars.values()):
        left = 0.0
        for name, size in parts.items():
            axes.barh(-row, size, left=left, color=hue[name], height=0.65)
            left += size
    axes.set_yticks([-row for row in range(len(bars))], list(bars))
    axes.set(xlabel=xlabel)
    axes.tick_params(axis="y", length=0)
    keys = [Rectangle((0, 0), 1, 1, color=hue[name]) for name in names]
    axes.legend(
        keys,
        names,
        frameon=False,
        labelcolor=GREY,
        ncols=3,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderpad=0,
        handlelength=1,
        columnspacing=1.2,
    )
    return fig


def curves(lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], xlabel: str, ylabel: str) -> Figure:
    """A figure with a line for each entry, through its points (`x` values, `y` values); its name stands at its end."""
    fig, axes = blank(6.4, 3.2)
    for (name, (across, up)), color in zip(lines.items(), SHADES, strict=False):
        axes.plot(across, up, color=color, linewidth=2)
        axes.annotate(name, (across[-1], up[-1]), (0, 6), textcoords="offset points", color=color, ha="right")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return fig
