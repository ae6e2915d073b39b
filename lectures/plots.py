"""What the figures of all lectures share: colours, a figure to draw on, and the kinds that several lectures draw."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

GREY, BLUE, RED, GREEN, GOLD = "#6b7280", "#3949ab", "#b3421f", "#16794c", "#b98518"
SHADES = BLUE, GREEN, GOLD, RED, "#7f8bd6", "#9ad6b8"  # of the parts of a bar


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure for light and dark pages alike."""
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
    """A horizontal bar for each entry, of one part after the other; a part of one name has one colour."""
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


def bars(
    sizes: Mapping[str, float], xlabel: str, *, log: bool = False, mark: tuple[str, float] | None = None
) -> Figure:
    """A horizontal bar for each number, which stands at its end; `mark` is a line across with its name."""
    fig, axes = blank(6.4, 0.75 + 0.38 * len(sizes))
    axes.barh(range(0, -len(sizes), -1), list(sizes.values()), color=BLUE, height=0.65, log=log)
    for row, size in enumerate(sizes.values()):
        axes.annotate(
            f"{size:,.4g}", (size, -row), (4, 0), textcoords="offset points", color=GREY, va="center"
        )
    axes.set_yticks(range(0, -len(sizes), -1), list(sizes))
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=xlabel)
    axes.margins(x=0.12)
    if mark:
        axes.axvline(mark[1], color=RED, ls="--", lw=1.2)
        axes.annotate(mark[0], (mark[1], 0.5), (0, 2), textcoords="offset points", color=RED, ha="center")
    return fig


def cells(
    panels: Mapping[str, Sequence[Sequence[int]]],
    kinds: Sequence[tuple[str, str]],
    axes_names: tuple[str, str],
) -> Figure:
    """A grid for each panel: each cell in the colour of its kind, a name and a colour; down and across are named."""
    down, across = len(rows := next(iter(panels.values()))), len(rows[0])
    size = 3.1 if across <= 16 else 6.2  # of a panel, in inches
    fig = Figure(
        figsize=(size * len(panels) + 0.4, size * down / across + 0.9), facecolor="none", layout="constrained"
    )
    for axes, (title, rows) in zip(
        fig.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for y, row in enumerate(rows):
            for x, kind in enumerate(row):
                corner = x + 0.05, -y - 0.95
                axes.add_patch(
                    Rectangle(corner, 0.9, 0.9, facecolor=kinds[kind][1], edgecolor=GREY, linewidth=0.4)
                )
        axes.set(xlim=(0, len(rows[0])), ylim=(-len(rows), 0), aspect="equal", facecolor="none")
        axes.set_title(title, color=GREY, fontsize=11)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)
        axes.set_xlabel(axes_names[1], color=GREY)
        axes.set_ylabel(axes_names[0], color=GREY)
    keys = [Rectangle((0, 0), 1, 1, facecolor=color, edgecolor=GREY) for _, color in kinds]
    fig.legend(
        keys, [name for name, _ in kinds], loc="outside lower center", ncols=3, frameon=False, labelcolor=GREY
    )
    return fig


def curves(xs: Sequence[float], lines: Mapping[str, Sequence[float]], xlabel: str, ylabel: str) -> Figure:
    """Labelled lines over the same places."""
    fig, axes = blank(6.4, 3)
    for color, (name, ys) in zip((BLUE, RED, GREEN, GOLD), lines.items(), strict=False):
        axes.plot(xs, ys, color=color, lw=2, label=name)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.legend(frameon=False, labelcolor=GREY, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    return fig


def rectangles(rows: Sequence[Mapping[str, tuple[float, float]]], colors: Mapping[str, str]) -> Figure:
    """Rows of rectangles, each as high and wide as it says, to one scale, with their names above them."""
    fig = Figure(figsize=(6.4, 3.4), facecolor="none", layout="constrained")
    axes = fig.subplots()
    unit = max(size for row in rows for box in row.values() for size in box) / 16
    top, right = 0.0, 0.0
    for row in rows:
        left = 0.0
        top -= max(high for high, _ in row.values()) + 2.6 * unit
        for name, (high, wide) in row.items():
            color = colors[name]
            axes.add_patch(Rectangle((left, top), wide, high, facecolor=color + "66", edgecolor=color))
            axes.text(left, top + high + 0.3 * unit, name, color=GREY, fontsize=9)
            left += max(wide, 3.6 * unit) + unit
        right = max(right, left)
    axes.set(xlim=(-unit / 4, right), ylim=(top - unit / 4, 0), aspect="equal")
    axes.set_axis_off()
    return fig
