"""The code behind the figures of a block, its activations and its FLOPs, which the pages do not show."""
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

GREY, BLUE, RED, GREEN, GOLD = "#6b7280", "#3949ab", "#b3421f", "#16794c", "#b98518"


def blank(width: float, height: float) -> tuple[Figure, Axes]:  # @hide
    """A figure for light and dark pages alike."""
    fig = Figure(figsize=(width, height), facecolor="none")
    fig.subplots_adjust(left=0.1, right=1, bottom=0.16, top=1)  # what sticks out is kept when it is drawn
    axes = fig.subplots()
    axes.set_facecolor("none")
    axes.tick_params(colors=GREY, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.xaxis.label.set_color(GREY)
    axes.yaxis.label.set_color(GREY)
    return fig, axes


def plot_matrices(models: Mapping[str, Mapping[str, tuple[int, int]]]) -> Figure:  # @hide
    """A bar for each model: the shares of a block's matrices in its weights."""
    fig, axes = blank(7, 2.8)
    colors = (BLUE, "#7f8bd6", "#a9b2ee", "#5c6bc0", GREEN, "#4fa980", "#9ad6b8")
    for row, shapes in enumerate(models.values()):
        total, left = sum(r * c for r, c in shapes.values()), 0.0
        for color, (label, (rows, cols)) in zip(colors, shapes.items()):
            share = rows * cols / total
            axes.barh(-row, share, left=left, color=color, height=0.7, label="" if row else label)
            left += share
    axes.set_yticks([-row for row in range(len(models))], list(models))
    axes.set(xlabel="share of the block's weights", xlim=(0, 1))
    axes.legend(
        frameon=False, labelcolor=GREY, ncols=7, loc="lower center", bbox_to_anchor=(0.45, 1),
        handlelength=1, columnspacing=1,
    )
    return fig


def plot_lines(  # @hide
    xs: Sequence[float], lines: Mapping[str, Sequence[float]], xlabel: str, ylabel: str, *, log: bool
) -> Figure:
    """Labelled curves against a length that doubles; the upright axis is logarithmic if `log`."""
    fig, axes = blank(7, 3.4)
    for color, style, (name, ys) in zip(
        (RED, BLUE, GREEN, GOLD, GREY), ("-", "-", "-", "--", ":"), lines.items()
    ):
        axes.plot(xs, ys, color=color, ls=style, lw=2, label=name)
    axes.set_xscale("log", base=2)
    if log:
        axes.set_yscale("log")
    axes.set_xticks(list(xs), [f"{x:,.0f}" for x in xs], fontsize=8)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.legend(frameon=False, labelcolor=GREY)
    return fig
