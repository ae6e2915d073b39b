"""The code behind the figures of ranks, which the pages do not show."""  # @hide

from collections.abc import Mapping, Sequence
from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from plots import BLUE, COLUMN, GREEN, GREY, blank, powers_of_ten
import torch
from torch import Tensor

from .figures import COLORS


def plot_owners(matrices: Mapping[str, Tensor]) -> Figure:
    """A panel for each matrix, its weights in the color of the rank that keeps them."""
    heights, widths = zip(*(owner.shape for owner in matrices.values()))
    high = 0.6 + 3.4 * max(heights) / sum(widths)
    fig = Figure(figsize=(COLUMN - 0.2, high), facecolor="none", layout="constrained")
    panels = fig.subplots(1, len(matrices), gridspec_kw={"width_ratios": widths})
    for axes, (name, owner) in zip(panels, matrices.items()):
        axes.imshow(owner.numpy(), cmap=ListedColormap(COLORS), vmin=0, vmax=3, interpolation="nearest")
        axes.set_title(name, color=GREY, fontsize=10)
        grid(axes, *owner.shape)
    name_colors(fig, {f"rank {r}": color for r, color in enumerate(COLORS)})
    return fig


def grid(axes: Axes, rows: int, cols: int) -> None:
    """Thin lines between the cells of a picture, and no ticks."""
    axes.set_xticks([x - 0.5 for x in range(1, cols)], [], minor=False)
    axes.set_yticks([y - 0.5 for y in range(1, rows)], [])
    axes.grid(color="white", linewidth=0.8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_facecolor("none")


def name_colors(fig: Figure, colors: Mapping[str, str]) -> None:
    """A legend of colors below the panels."""
    marks = [Line2D([], [], marker="s", ls="", color=color) for color in colors.values()]
    fig.legend(
        marks,
        [*colors],
        ncols=len(colors),
        loc="outside lower center",
        frameon=False,
        labelcolor=GREY,
        borderpad=0,
        handlelength=1,
        handletextpad=0.4,
        columnspacing=1.2,
    )


def plot_pairs(tokens: int, cuts: Mapping[str, tuple[Sequence[Tensor], Sequence[int]]]) -> Figure:
    """For each way to cut a text: its causal pairs in the colors of the ranks, above bars of how many each has."""
    fig = Figure(figsize=(COLUMN - 0.15, 3.4), facecolor="none", layout="constrained")
    most = 1.05 * max(max(work) for _, work in cuts.values())
    panels = fig.subplots(2, len(cuts), height_ratios=[3, 2], sharey="row", squeeze=False)
    for (above, below), (name, (places, work)) in zip(panels.T, cuts.items()):
        owner = torch.zeros(tokens)
        for rank, at in enumerate(places):
            owner[at] = float(rank)
        pairs = (
            owner[:, None]
            .expand(tokens, tokens)
            .masked_fill(torch.ones(tokens, tokens).triu(1).bool(), torch.nan)
        )
        above.imshow(pairs.numpy(), cmap=ListedColormap(COLORS), vmin=0, vmax=3, interpolation="nearest")
        above.set_title(name, color=GREY, fontsize=10)
        grid(above, 1, 1)
        below.barh(range(len(work)), work, color=COLORS)
        below.set_yticks(range(len(work)), [f"rank {r}" for r in range(len(work))])
        below.set(ylim=(len(work) - 0.4, -0.6), xlim=(0, most))
        below.set_xticks([0, 10_000], ["0", "10,000"])
        plain(below)
    return fig


def plot_widths(
    lines: Mapping[int, Mapping[int, float]], point: tuple[int, float], links: Mapping[str, float]
) -> Figure:
    """FLOPs for each byte over the model dimension, a line for each number of GPUs, and what each link asks for."""
    fig, axes = blank(COLUMN, 3.4)
    axes.set(xscale="log", yscale="log", xlabel="model dimension", ylabel="FLOPs for each byte")
    for color, (gpus, line) in zip(COLORS, lines.items()):
        axes.plot([*line], [*line.values()], color=color)
        end = [*line.items()][-1]
        axes.annotate(f"{gpus} GPUs", end, (5, 0), textcoords="offset points", color=color, va="center")
    sizes = [*next(iter(lines.values()))]
    powers_of_ten(axes.xaxis, axes.yaxis)
    axes.set_xticks(sizes[::2], [f"{size:,}" for size in sizes[::2]])
    places = (sizes[0], "left", "bottom"), (sizes[-1], "right", "top")  # where no line crosses the words
    for (link, least), (x, side, edge) in zip(links.items(), places):
        axes.axhline(least, color=GREY, lw=0.8, ls="--")
        axes.text(x, least, link, color=GREY, ha=side, va=edge)
    own = COLORS[len(lines) - 1]
    axes.plot(*point, "o", color=own)
    axes.annotate("Llama 3", point, (6, -4), textcoords="offset points", color=own, va="top")
    return fig


def plain(axes: Axes) -> None:
    """Axes for light and dark pages alike."""
    axes.set_facecolor("none")
    axes.tick_params(colors=GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)


class Ran(Protocol):
    """A step of a pipeline's rank."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def batch(self) -> int: ...


def plot_schedules(schedules: Mapping[str, Sequence[Sequence[Ran]]]) -> Figure:
    """A panel for each schedule, a row for each rank, a box for each step that it worked in."""
    last = max(step.number for rows in schedules.values() for row in rows for step in row)
    high = 0.5 + 1.4 * len(schedules)
    fig = Figure(figsize=(COLUMN - 0.2, high), facecolor="none", layout="constrained")
    panels = fig.subplots(len(schedules), 1, squeeze=False)[:, 0]
    for axes, (name, rows) in zip(panels, schedules.items()):
        for rank, row in enumerate(rows):
            for step in row:
                color = BLUE if step.kind == "F" else GREEN
                axes.add_patch(Rectangle((step.number - 0.96, rank - 0.42), 0.92, 0.84, color=color, lw=0))
                number = str(step.batch + 1)
                axes.text(step.number - 0.5, rank, number, color="white", ha="center", va="center_baseline")
        axes.set(xlim=(0, last), ylim=(len(rows) - 0.5, -0.5))
        even = range(2, last + 1, 2)
        axes.set_xticks([step - 0.5 for step in even], [str(step) for step in even])
        axes.set_yticks(range(len(rows)), [f"rank {r}" for r in range(len(rows))])
        axes.set_title(name, color=GREY, fontsize=10)
        plain(axes)
        axes.tick_params(length=0)
    axes.set_xlabel("step", color=GREY)
    name_colors(fig, {"forward": BLUE, "backward": GREEN})
    return fig
