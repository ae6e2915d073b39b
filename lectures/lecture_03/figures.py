"""The code behind the figures, which the pages do not show."""  # @hide

from collections.abc import Mapping, Sequence
from itertools import groupby

from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from plots import BLUE, COLUMN, GOLD, GREEN, GREY, RED, blank, legend_above, name_rows, powers_of_ten
from tiles import rectangles
from units import GB


def plot_block(shapes: Mapping[str, tuple[int, int]]) -> Figure:
    """Each matrix as a rectangle to one scale: attention, gate and up, and `down` turned on its side."""
    attention = {name: shapes[name] for name in ("query", "key", "value", "out")}
    inner = {name: shapes[name] for name in ("gate", "up")}
    down = {"down": (shapes["down"][1], shapes["down"][0])}
    colors = {
        "query": BLUE,
        "key": GOLD,
        "value": GOLD,
        "out": BLUE,
        "gate": GREEN,
        "up": GREEN,
        "down": GREEN,
    }
    return rectangles([attention, inner, down], colors)


def plot_fit(kept: Mapping[str, float], memory: int) -> Figure:
    """The verdict, a GPU's memory as a frame, a tenth of it dashed, and a bar of state, activations and the softmax.

    As the picture's script draws it, so that nothing jumps when this begins.
    """
    # 384 by 200 units of the script, each 3/4 of a point:
    fig = Figure(figsize=(4, 200 / 96), facecolor="none")
    axes = fig.add_axes((0, 0, 1, 1))
    scale, most = 124 / memory, 376
    parts = {name: kept[name] for name in ("state", "activations", "softmax")}
    need, room, left = sum(parts.values()), 0.9 * memory, 0.0
    small, places = 13.5 * 0.75, ((3, 160), (180, 160), (3, 186))
    for (name, size), color, (x, y) in zip(parts.items(), (BLUE, GOLD, GREEN), places):
        end = min(most, left + size * scale)
        axes.add_patch(Rectangle((4 + left, 88), end - left, 40, color=color + "99", linewidth=0))
        axes.add_patch(Rectangle((x, y - 11), 12, 12, color=color + "99", linewidth=0))
        axes.text(x + 18, y, f"{name} {size / GB:.4g} GB", color="black", fontsize=small)
        left = end
    fits = need <= room
    words = f"{'✓ It fits' if fits else '✗ It does not fit'}: {need / GB:.4g} of {room / GB:.4g} GB usable"
    axes.text(3, 22, words, color=GREEN if fits else RED, fontsize=21 * 0.75, fontweight="bold")
    hours = float(f"{kept['gpu_hours']:.3g}")
    axes.text(3, 46, f"{kept['days']:.3g} days, {hours:,.0f} GPU-hours", color="black", fontsize=small)
    axes.text(3, 75, f"one H100: {memory / GB:.0f} GB, a tenth kept free", color="black", fontsize=small)
    if need * scale > most:  # the bar goes on
        axes.plot([382, 375] * 3 + [382], range(84, 140, 8), color="white", linewidth=4)
    free = (4 + room * scale, 86), (memory - room) * scale, 44
    axes.add_patch(Rectangle(*free, facecolor="none", edgecolor="black", linestyle="--"))
    frame = (4, 82), memory * scale, 52
    axes.add_patch(Rectangle(*frame, facecolor="none", edgecolor="black", linewidth=2))
    axes.set(xlim=(0, 384), ylim=(200, 0))
    axes.set_axis_off()
    return fig


def plot_lanes(launch: float, operation: float, times: Mapping[str, Sequence[float]]) -> Figure:
    """Two lanes over time: launches of the program, and the GPU's operations."""
    fig, axes = blank(COLUMN, 1.8)
    name_rows(axes, ["program", "GPU"])
    for handed, start, color in zip(times["handed"], times["starts"], (BLUE, GREEN) * 4):
        axes.barh((0, -1), (launch, operation), left=(handed - launch, start), height=0.5, color=color + "99")
    axes.set(xlabel="µs", xlim=(0, None))
    return fig


def plot_lines(
    xs: Sequence[float], lines: Mapping[str, Sequence[float]], xlabel: str, ylabel: str, *, log: bool
) -> Figure:
    """Labelled curves against a length that doubles; the upright axis is logarithmic if `log`."""
    fig, axes = blank(COLUMN, 3.4)
    for color, style, (name, ys) in zip(
        (RED, BLUE, GREEN, GOLD, GREY), ("-", "-", "-", "--", ":"), lines.items()
    ):
        axes.plot(xs, ys, color=color, ls=style, lw=2, label=name)
    axes.set_xscale("log", base=2)
    if log:
        axes.set_yscale("log")
        powers_of_ten(axes.yaxis)
    axes.set_xticks(xs[::2], [f"{x:,.0f}" for x in xs[::2]])
    axes.set(xlabel=xlabel, ylabel=ylabel)
    legend_above(axes)
    return fig


def plot_loss(losses: Sequence[float], start: float, floor: float) -> Figure:
    """Loss against step, between two dashed lines."""
    fig, axes = blank(COLUMN, 3)
    axes.plot(range(1, len(losses) + 1), losses, color=BLUE, lw=1.5)
    for level in (start, floor):
        axes.axhline(level, color=RED, ls="--", lw=1)
    axes.set(xlabel="step", ylabel="loss, nats a token", ylim=(0, None))
    axes.tick_params(colors=GREY)
    return fig


def cells(
    panels: Mapping[str, Sequence[Sequence[int]]], kinds: Sequence[tuple[str, str]], sides: tuple[str, str]
) -> Figure:
    """A grid for each panel; a cell has the color of its kind. `sides` names what goes down and across."""
    down, across = len(rows := next(iter(panels.values()))), len(rows[0])
    size = min((COLUMN - 0.15) / len(panels), 0.3 * across)  # of a panel, in inches
    high = (size - 0.33) * down / across + 0.7 + 0.2 * -(-len(kinds) // 2)
    fig = Figure(figsize=(size * len(panels), high), facecolor="none", layout="constrained")
    (grids,) = fig.subplots(1, len(panels), squeeze=False)
    for axes, (title, rows) in zip(grids, panels.items(), strict=True):
        for y, row in enumerate(rows):
            for kind, places in groupby(range(across), row.__getitem__):
                x, *rest = places
                if (color := kinds[kind][1]) != "none":
                    axes.barh(-y - 0.5, 1 + len(rest), left=x, height=1, color=color)
        ends = [(x, y) for x in range(across + 1) for y in (0, -down)]
        ends += [(x, -y) for y in range(down + 1) for x in (0, across)]
        lines = Path(ends, [Path.MOVETO, Path.LINETO] * (len(ends) // 2))
        axes.add_patch(PathPatch(lines, fill=False, ec=GREY, lw=0.5))
        axes.set(aspect="equal", facecolor="none", xticks=[], yticks=[])
        axes.set_title(title, color=GREY, fontsize=10)
        axes.set_ylabel(sides[0], color=GREY)
        axes.set_xlabel(sides[1], color=GREY)
        axes.spines[:].set_visible(False)
    keys = [Rectangle((0, 0), 1, 1, facecolor=color, edgecolor=GREY) for _, color in kinds]
    names = [name for name, _ in kinds]
    fig.legend(keys, names, loc="outside lower center", ncols=2, frameon=False, labelcolor=GREY)
    return fig
