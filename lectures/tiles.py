"""A figure of rectangles to one scale, for all lectures."""
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from plots import GREY


def rectangles(
    rows: Sequence[Mapping[str, tuple[float, float]]], colors: Mapping[str, str]
) -> Figure:
    """A figure of rows of rectangles, drawn to one scale, with their names above them."""
    fig = Figure(figsize=(6.4, 3.4), facecolor="none", layout="constrained")
    axes = fig.subplots()
    unit = max(size for row in rows for box in row.values() for size in box) / 16
    top, right = 0.0, 0.0
    for row in rows:
        left = 0.0
        top -= max(high for high, _ in row.values()) + 2.6 * unit
        for name, (high, wide) in row.items():
            color, corner = colors[name], (left, top)
            axes.add_patch(Rectangle(corner, wide, high, fc=color + "66", ec=color))
            axes.text(left, top + high + 0.3 * unit, name, color=GREY, fontsize=9)
            left += max(wide, 3.6 * unit) + unit
        right = max(right, left)
    axes.set(xlim=(-unit / 4, right), ylim=(top - unit / 4, 0), aspect="equal")
    axes.set_axis_off()
    return fig
