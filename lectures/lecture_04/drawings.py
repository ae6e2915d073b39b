"""The code behind the figures of ranks, which the pages do not show."""  # @hide
from collections.abc import Mapping, Sequence
from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from plots import BLUE, GREEN, GREY, blank
import torch
from torch import Tensor

from .figures import COLORS



def plot_owners(matrices: Mapping[str, Tensor]) -> Figure:
    """A panel for each matrix, its weights in the color of the rank that keeps them."""
    fig = Figure(figsize=(7, 2.6), facecolor="none", layout="constrained")
    widths = [owner.shape[1] for owner in matrices.values()]
    panels = fig.subplots(1, len(matrices), gridspec_kw={"width_ratios": widths})
    for axes, (name, owner) in zip(panels, matrices.items()):
        axes.imshow(owner.numpy(), cmap=ListedColormap(COLORS), vmin=0, vmax=3, interpolation="nearest")
        axes.set_title(name, color=GREY, fontsize=11)
        grid(axes, *owner.shape)
    name_ranks(fig)
    return fig


def grid(axes: Axes, rows: int, cols: int) -> None:
    """Thin lines between the cells of a picture, and no ticks."""
    axes.set_xticks([x - 0.5 for x in range(1, cols)], [], minor=False)
    axes.set_yticks([y - 0.5 for y in range(1, rows)], [])
    axes.grid(color="white", linewidth=0.8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_facecolor("none")


def name_ranks(fig: Figure) -> None:
    """A legend of the ranks' colors below the panels."""
    marks = [fig.add_artist(Line2D([], [], marker="s", ls="", color=color)) for color in COLORS]
    names = [f"rank {r}" for r in range(len(COLORS))]
    fig.legend(marks, names, loc="outside lower center", ncols=4, frameon=False, labelcolor=GREY)


def plot_pairs(tokens: int, cuts: Mapping[str, tuple[Sequence[Tensor], Sequence[int]]]) -> Figure:
    """For each way to cut a text: its causal pairs in the colors of the ranks, above bars of how many each has."""
    fig = Figure(figsize=(7, 4.4), facecolor="none", layout="constrained")
    most = 1.05 * max(max(work) for _, work in cuts.values())
    panels = fig.subplots(2, len(cuts), height_ratios=[3, 1], squeeze=False)
    for (above, below), (name, (places, work)) in zip(panels.T, cuts.items()):
        owner = torch.zeros(tokens)
        for rank, at in enumerate(places):
            owner[at] = float(rank)
        pairs = owner[:, None].expand(tokens, tokens).masked_fill(torch.ones(tokens, tokens).triu(1).bool(), torch.nan)
        above.imshow(pairs.numpy(), cmap=ListedColormap(COLORS), vmin=0, vmax=3, interpolation="nearest")
        above.set_title(name, color=GREY, fontsize=11)
        grid(above, 1, 1)
        below.barh(range(len(work)), work, color=COLORS)
        below.set_yticks(range(len(work)), [f"rank {r}" for r in range(len(work))])
        below.set(ylim=(len(work) - 0.4, -0.6), xlim=(0, most))
        plain(below)
    return fig


def plot_arrivals(tokens: Mapping[str, float], needed: float) -> Figure:
    """Bars of the tokens that use a weight each time it has arrived, and a line where they are enough."""
    fig, axes = blank(6.2, 1.6)
    fig.subplots_adjust(left=0.2, right=0.96, bottom=0.33, top=0.98)
    axes.barh([*tokens], [*tokens.values()], color=BLUE, height=0.6)
    axes.axvline(needed, color=GREY, lw=0.8, ls="--")
    axes.text(needed, -0.75, " hides the traffic from here on", color=GREY, fontsize=8.5, va="center")
    axes.set(xscale="log", xlim=(1e3, 1e6), ylim=(1.5, -1.1), xlabel="tokens")
    axes.tick_params(left=False)
    return fig


def plot_widths(
    lines: Mapping[int, Mapping[int, float]], point: tuple[int, float], links: Mapping[str, float]
) -> Figure:
    """FLOPs for each byte over the model dimension, a line for each number of GPUs, and what each link asks for."""
    fig, axes = blank(6.6, 3)
    fig.subplots_adjust(right=0.88)
    axes.set(xscale="log", yscale="log", xlabel="model dimension", ylabel="FLOPs for each byte")
    for color, (gpus, line) in zip(COLORS, lines.items()):
        axes.plot([*line], [*line.values()], color=color)
        axes.annotate(f"{gpus} GPUs", [*line.items()][-1], (5, 0), textcoords="offset points", color=color, fontsize=8.5, va="center")
    sizes = [*next(iter(lines.values()))]
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    for (link, least), side in zip(links.items(), ("left", "right")):
        axes.axhline(least, color=GREY, lw=0.8, ls="--")
        axes.text(sizes[0 if side == "left" else -1], least, link, color=GREY, fontsize=8.5, ha=side, va="bottom")
    axes.plot(*point, "o", color=COLORS[len(lines) - 1])
    axes.annotate("Llama 3", point, (6, -4), textcoords="offset points", color=COLORS[len(lines) - 1], fontsize=8.5, va="top")
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
    fig = Figure(figsize=(7, 0.3 + 1.5 * len(schedules)), facecolor="none", layout="constrained")
    panels = fig.subplots(len(schedules), 1, squeeze=False)[:, 0]
    for axes, (name, rows) in zip(panels, schedules.items()):
        for rank, row in enumerate(rows):
            for step in row:
                color = BLUE if step.kind == "F" else GREEN
                axes.add_patch(Rectangle((step.number - 0.96, rank - 0.42), 0.92, 0.84, color=color, lw=0))
                axes.text(step.number - 0.5, rank, str(step.batch + 1), color="white", fontsize=8,
                    ha="center", va="center")
        axes.set(xlim=(0, last), ylim=(len(rows) - 0.5, -0.5))
        axes.set_xticks([step - 0.5 for step in range(2, last + 1, 2)], [str(step) for step in range(2, last + 1, 2)])
        axes.set_yticks(range(len(rows)), [f"rank {r}" for r in range(len(rows))])
        axes.set_title(name, color=GREY, fontsize=10)
        plain(axes)
        axes.tick_params(length=0)
    axes.set_xlabel("step", color=GREY)
    marks = [fig.add_artist(Line2D([], [], marker="s", ls="", color=color)) for color in (BLUE, GREEN)]
    fig.legend(marks, ["forward", "backward"], loc="outside lower center", ncols=2, frameon=False, labelcolor=GREY)
    return fig
