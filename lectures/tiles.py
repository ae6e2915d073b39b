"""A figure of rectangles to one scale, for all lectures."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from plots import COLUMN, GREY


def rectangles(rows: Sequence[Mapping[str, tuple[float, float]]], colors: Mapping[str, str]) -> Figure:
    """A figure of rows of rectangles, drawn to one scale, with their names above them."""
    unit = max(size for row in rows for box in row.values() for size in box) / 16
    fig = Figure(facecolor="none")
    axes = fig.add_axes((0, 0, 1, 1))
    top, right = 0.0, 0.0
    for row in rows:
        left = 0.0
        top -= max(high for high, _ in row.values()) + 2.6 * unit
        for name, (high, wide) in row.items():
            color, corner = colors[name], (left, top)
            axes.add_patch(Rectangle(corner, wide, high, fc=color + "66", ec=color))
            axes.text(left, top + high + 0.15 * unit, name, color=GREY, va="bottom")
            left += max(wide, 0.8 * len(name) * unit) + unit
            right = max(right, left)
    across, down = right - unit / 2, unit / 4 - top
    axes.set(xlim=(-unit / 4, across - unit / 4), ylim=(-down, 0), aspect="equal")
    fig.set_size_inches(COLUMN - 0.2, (COLUMN - 0.2) * down / across)
    axes.set_axis_off()
    return fig
