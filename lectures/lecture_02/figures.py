"""The code behind the figures, which the pages do not show."""  # @hide

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, PathPatch, Polygon, Rectangle
from matplotlib.path import Path
from plots import BLUE, COLUMN, GOLD, GREEN, GREY, RED, blank, legend_above, powers_of_ten, stacks
from torch import Tensor
from units import TERA, KiB

from .measure import Point


def plot_masks(causal: Tensor, leaking: Tensor) -> Figure:
    """Both weight matrices as squares whose area is the weight; weights on the future in red."""
    fig = Figure(figsize=(3.4, 6.2), facecolor="none", layout="constrained")
    panels = fig.subplots(2, gridspec_kw={"hspace": 0.08})
    titles = ("keep tril: nothing ahead", "keep triu: the future leaks in")
    for axes, weights, title in zip(panels, (causal, leaking), titles, strict=True):
        draw_weights(axes, weights)
        axes.set_title(title, color=GREY, fontsize=11)
    return fig


def draw_weights(axes: Axes, weights: Tensor) -> None:
    """One square for each weight, query down, key across."""
    n = weights.shape[0]
    for query, key in itertools.product(range(n), range(n)):
        weight = weights[query, key].item()
        side = 0.94 * math.sqrt(weight)
        corner = (key - side / 2, query - side / 2)
        color = RED if key > query else BLUE
        axes.add_patch(Rectangle(corner, side, side, facecolor=color, edgecolor="none"))
        cell = Rectangle((key - 0.5, query - 0.5), 1, 1, facecolor="none", edgecolor=GREY)
        cell.set(linewidth=0.6, clip_on=False)
        axes.add_patch(cell)
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal", facecolor="none")
    axes.set_xticks(range(n), [f"key {key}" for key in range(n)])
    axes.set_yticks(range(n), [f"query {query}" for query in range(n)])
    axes.tick_params(colors=GREY, length=0)
    axes.spines[:].set_visible(False)


def plot_folding(batch: int, seq: int, rows: int, inner: int, out: int) -> Figure:
    """A stack of matmuls as it is written, above the single matmul as it is run."""
    fig, axes = blank(COLUMN, 4.3)
    sheets, folded = f"{batch} x {seq} sheets\nof {rows} x", f"{batch * seq * rows} x"
    blue, green, gold = (BLUE, "#a9b2ee"), (GREEN, "#9ad6b8"), (GOLD, "#b98518")
    for left, width, colors in ((0, inner, blue), (112, out, green)):
        draw_sheets(axes, (left, 88), (width, rows), (batch, seq), colors)
        axes.add_patch(patch((left, 4), (width, 1.6 * batch * seq), colors))
        between = [y for band in range(1, batch * seq) for y in (4 + 1.6 * band, 4 + 1.6 * band, math.nan)]
        axes.plot([left, left + width, math.nan] * (batch * seq - 1), between, color=colors[1], lw=0.5)
        axes.text(left, 85, f"{sheets} {width}", color=GREY, va="top")
        axes.text(left, 1, f"{folded} {width}", color=GREY, va="top")
    for bottom in (88, 12):
        axes.add_patch(patch((84, bottom), (out, inner), gold))
        axes.text(76, bottom + 16, "@", color=GREY, fontsize=14, ha="center", va="center")
        axes.text(99, bottom + 16, "=", color=GREY, fontsize=14, ha="center", va="center")
        axes.text(84, bottom - 3, f"{inner} x {out}", color=GREY, va="top")
    axes.text(0, 146, "as written", color=GREY, fontsize=11, weight="bold")
    axes.text(0, 58, "as run", color=GREY, fontsize=11, weight="bold")
    axes.set(xlim=(-1, 154), ylim=(-7, 152), aspect="equal")
    axes.set_axis_off()
    return fig


def draw_sheets(
    axes: Axes,
    corner: tuple[float, float],
    size: tuple[int, int],
    stack: tuple[int, int],
    colors: tuple[str, str],
) -> None:
    """The sheets of a stack from back to front, one group for each example of the batch."""
    batch, seq = stack
    for sheet in reversed(range(batch * seq)):
        shift = 0.9 * sheet + 3 * (sheet // seq)
        axes.add_patch(patch((corner[0] + shift, corner[1] + shift), size, colors))


def patch(corner: tuple[float, float], size: tuple[float, float], colors: tuple[str, str]) -> Rectangle:
    """A filled rectangle with a light edge."""
    return Rectangle(corner, *size, facecolor=colors[0], edgecolor=colors[1], linewidth=0.5)


def plot_bill(bills: dict[str, dict[str, int]], unit: int = KiB) -> Figure:
    """One horizontal bar per optimizer, stacked by kind of memory, in KiB or MiB."""
    kinds = "parameters", "gradients", "optimizer state", "activations"
    bars = {name: {kind: entry[kind] / unit for kind in kinds} for name, entry in bills.items()}
    fig = stacks(bars, "KiB" if unit == KiB else "MiB", (BLUE, GREEN, RED, GOLD))
    for row, parts in enumerate(bars.values()):
        total = sum(parts.values())
        fig.axes[0].annotate(
            f"{total:.0f}", (total, -row), (3, 0), textcoords="offset points", va="center", color=GREY
        )
    return fig


def plot_losses(runs: dict[float, list[float]]) -> Figure:
    """Loss against step on a logarithmic axis, one labelled curve for each learning rate."""
    fig, ax = blank(COLUMN, 4)
    colors = (GOLD, GREEN, BLUE, GREY, RED)
    for (lr, losses), color in zip(runs.items(), colors):
        shown = [(i, v) for i, v in enumerate(losses) if math.isfinite(v) and 1e-12 < v < 1e11]
        steps, values = zip(*shown)
        ax.plot(steps, values, color=color, lw=1.8)
        last = steps[-1]
        text = f"{lr:g}" + (", diverges" if values[-1] > 1e9 else "")
        up = {0.05: 8, 0.1: -6}.get(lr, 0)
        ax.annotate(text, (last, values[-1]), (6, up), textcoords="offset points", color=color, va="center")
    ax.set_yscale("log")
    powers_of_ten(ax.yaxis)
    ax.set(xlabel="step", ylabel="loss on the fixed batch", xlim=(0, 205), ylim=(1e-14, 1e12))
    ax.set_xticks(range(0, 201, 50))
    return fig


def staircase_figure(xs: list[float], ys: list[float], unit: float, lost: float) -> Figure:
    """Rounded value against value, in units of the smallest one."""
    fig, ax = blank(COLUMN, 3.6)
    exact = [x / unit for x in xs]
    ax.plot(exact, exact, color=GREY, lw=1, ls=":", label="exact")
    ax.plot(exact, [y / unit for y in ys], color=BLUE, lw=2, label="float16")
    ax.plot([lost / unit], [0], "o", color=RED, ms=9, label=f"{lost:g} becomes 0")
    ax.set(xlabel="x / 2⁻²⁴", ylabel="float16(x) / 2⁻²⁴", xlim=(-0.5, 4.5), ylim=(-0.5, 4.5))
    ax.legend(frameon=False, labelcolor=GREY, loc="upper left")
    return fig


def byte_figure(fine: list[float], wide: list[float]) -> Figure:
    """Every positive value as a tick on a logarithmic axis."""
    fig, ax = blank(2.6, 6)
    for column, ticks, color in ((0, fine, BLUE), (1, wide, RED)):
        powers = [math.log2(t) for t in ticks if math.isfinite(t)]
        ys = [y for p in powers for y in (p, p, math.nan)]  # one path for all ticks, for the page's weight
        xs = [column - 0.32, column + 0.32, math.nan] * len(powers)
        ax.plot(xs, ys, color=color, lw=0.6, solid_capstyle="butt")
    ax.set_yticks(range(-16, 17, 4))
    ax.set_xticks([0, 1], ["E4M3", "E5M2"])
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0)
    ax.set(ylabel="power of two", xlim=(-0.5, 1.5))
    ax.spines["bottom"].set_visible(False)
    return fig


def plot_roofline(rate: float, bandwidth: float, shapes: dict[str, float]) -> Figure:
    """The roof in TFLOP/s against intensity, and a labelled dot for each shape."""
    points = {name: Point(x, min(rate, x * bandwidth)) for name, x in shapes.items()}
    fig = plot_measured_roof(rate, {"solid": bandwidth}, points)
    fig.axes[0].set(ylabel="attainable TFLOP/s", ylim=(0.1, 3000))
    return fig


def plot_measured_roof(rate: float, slopes: dict[str, float], points: dict[str, Point]) -> Figure:
    """A roof in TFLOP/s for each slope, by line style, and a labelled dot for each measured operation."""
    fig, ax = blank(COLUMN, 3.6)
    ridge = rate / min(slopes.values())
    for style, bandwidth in slopes.items():
        xs = [0.05, rate / bandwidth, 1e4]
        ax.plot(xs, [min(rate, x * bandwidth) / TERA for x in xs], color=BLUE, lw=2, ls=style)
    for name, (x, reached) in points.items():
        at, below = (x, reached / TERA), x < ridge
        ax.plot(*at, "o", color=RED if below else GREEN, ms=8)
        ax.annotate(
            name,
            at,
            (8, -12) if below else (0, -18),
            textcoords="offset points",
            color=GREY,
            ha="left" if below else "center",
        )
    ax.set(xscale="log", yscale="log", xlabel="FLOPs per byte", ylabel="TFLOP/s")
    powers_of_ten(ax.xaxis, ax.yaxis)
    return fig


def plot_sweep(sizes: list[int], rates: list[float], launched: list[float], promised: float | None) -> Figure:
    """Rates in TFLOP/s against size, in a graph and launched one by one, and the promised rate if any."""
    fig, ax = blank(COLUMN, 3.2)
    ax.plot(sizes, [rate / TERA for rate in launched], "o-", color=GREY, lw=1, ms=3)
    ax.plot(sizes, [rate / TERA for rate in rates], "o-", color=BLUE, lw=2)
    if promised is not None:
        ax.axhline(promised / TERA, color=RED, ls="--", lw=1.5)
    ax.set(xlabel="rows and columns", ylabel="TFLOP/s", ylim=(0, None), xscale="log")
    ax.set_xticks(sizes, map(str, sizes))
    ax.minorticks_off()
    return fig


def plot_products(costs: list[int]) -> Figure:
    """A bar for each matmul of a step, layer by layer; the first input gradient greyed out."""
    fig, ax = blank(COLUMN, 3.4)
    kinds = {"forward": BLUE, "weight gradient": RED, "input gradient": GREEN}
    for layer, (name, cost) in enumerate(zip(("first layer", "second layer"), costs, strict=True)):
        ax.text(0, 0.9 - 4 * layer, name, color=GREY, va="center", weight="bold")
        for row, color in enumerate(kinds.values()):
            y, length = -(4 * layer + row), cost / TERA
            skipped = layer == 0 and row == 2
            ax.barh(
                y,
                length,
                0.8,
                facecolor="none" if skipped else color,
                edgecolor=GREY if skipped else color,
                ls="--" if skipped else "-",
            )
            label = "not computed" if skipped else f"{length:.1f} TFLOP"
            ax.annotate(label, (length, y), (4, 0), textcoords="offset points", va="center", color=GREY)
    ax.set_yticks([0, -1, -2, -4, -5, -6], [*kinds] * 2)
    ax.set(xlabel="TFLOP", xlim=(0, 1.02 * max(costs) / TERA))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return fig


def plot_spread(widths: list[int], raw: list[float], level: list[float]) -> Figure:
    """Deviation against width on logarithmic axes, with and without scaling."""
    fig, ax = blank(COLUMN, 3.4)
    ax.plot(widths, [math.sqrt(n) for n in widths], ls=":", color=GREY, lw=1.5)
    ax.plot(widths, [1.0] * len(widths), ls=":", color=GREY, lw=1.5)
    ax.plot(widths, raw, "o", color=RED, ms=8)
    ax.plot(widths, level, "s", color=BLUE, ms=8)
    ax.annotate(
        "unit weights:\nslope one half",
        (widths[1], raw[1]),
        (12, -4),
        textcoords="offset points",
        color=GREY,
        va="top",
    )
    ax.annotate("weights / √n", (widths[1], level[1]), (10, 8), textcoords="offset points", color=GREY)
    ax.set(xscale="log", yscale="log", xlabel="inputs n", ylabel="std of x @ w", ylim=(0.5, 256))
    ax.set_xticks(widths, map(str, widths))
    ax.set_yticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    ax.minorticks_off()
    return fig


def plot_truncation(absolute: Tensor, relative: Tensor) -> Figure:
    """Histograms of both draws on a logarithmic scale of counts."""
    fig, ax = blank(COLUMN, 3.4)
    bins = [i / 5 for i in range(-27, 28)]
    ax.hist(absolute.flatten().numpy(), bins, histtype="step", color=RED, lw=2, label="±3")
    ax.hist(relative.flatten().numpy(), bins, color=BLUE, alpha=0.55, label="±3·std")
    ax.set(yscale="log", xlabel="weight / std", ylabel="weights")
    powers_of_ten(ax.yaxis)
    legend_above(ax)
    return fig


def plot_timeline(title: str, moments: list[Any]) -> Figure:
    """Stacked areas of one step: KiB alive after each operation, by kind."""
    fig, ax = blank(COLUMN, 4.2)
    kinds = list(moments[0].held)
    sizes = [[m.held[kind] / KiB for m in moments] for kind in kinds]
    colors = (BLUE, RED, GREEN, GOLD, GREY)
    labels = ["Adam's moments" if kind == "moments" else kind for kind in kinds]
    ax.stackplot(range(len(moments)), sizes, labels=labels, colors=colors, step="post")
    phases = [m.phase for m in moments]
    highest = max(m.total for m in moments) / KiB
    for phase, line in (("forward", 1.15), ("backward", 1.05), ("update", 1.05)):
        ax.vlines(phases.index(phase), 0, highest * (line + 0.06), color=GREY, ls="--", lw=1)
        ax.text(phases.index(phase) + 0.8, highest * line, phase, color=GREY)
    fig.suptitle(title, color=GREY, fontsize=11)
    legend_above(ax)
    ax.set(xlabel="time in the step, in operations", ylabel="memory in use, KiB", ylim=(0, highest * 1.25))
    return fig


def plot_scale(weights: Tensor, factor: float, held: tuple[float, float]) -> Figure:
    """Histograms of a tensor's sizes over the powers of two, with and without a factor; what a format holds in grey."""
    fig, ax = blank(COLUMN, 2.8)
    ax.axvspan(*(math.log2(value) for value in held), color=GREY, alpha=0.25, lw=0)
    for scaled, label, color in ((weights, "without a scale", RED), (weights * factor, "with a scale", BLUE)):
        sizes = scaled.abs().log2()
        counts = torch.histc(sizes, bins=120, min=-30, max=10)
        ax.stairs(
            counts.tolist(), [-30 + 40 * k / 120 for k in range(121)], color=color, fill=True, label=label
        )
    ax.set(xlabel="log₂ of the size", xlim=(-30, 12))
    ax.set_yticks([])
    legend_above(ax)
    return fig


def plot_saves(minutes: list[float], costs: dict[str, list[float]], best: tuple[float, float]) -> Figure:
    """Percent of all time against minutes between saves: each cost, their sum, and its minimum."""
    fig, ax = blank(COLUMN, 3.4)
    styles = (RED, "--"), (GOLD, "--"), (BLUE, "-")
    for (name, shares), (color, style) in zip(costs.items(), styles, strict=True):
        ax.plot(minutes, [100 * it for it in shares], ls=style, color=color, lw=2, label=name)
    every, share = best[0], 100 * best[1]
    ax.plot(every, share, "o", color=BLUE, ms=8)
    ax.annotate(
        f"{share:.1f} %,\nevery {every:.0f} minutes",
        (every, share),
        (0, 24),
        ha="center",
        textcoords="offset points",
        color=GREY,
    )
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set(xlabel="minutes between saves", ylabel="% of all time", ylim=(0, None))
    legend_above(ax)
    return fig


def plot_path(places: list[list[float]], curvatures: list[float]) -> Figure:
    """The path that leads down one bowl, over its level lines."""
    fig = Figure(figsize=(4, 2.8), layout="constrained", facecolor="none")
    ax = fig.subplots()
    for half in range(5):
        width, height = (2 * math.sqrt(sum(curvatures) / 3**half / curve) for curve in curvatures)
        ax.add_patch(Ellipse((0, 0), width, height, fill=False, edgecolor=GREY, lw=0.5))
    ax.plot(*zip(*places), color=BLUE, lw=1.5)
    ax.plot([0], [0], "+", color=GREY, ms=10)
    ax.set(xlim=(-1.4, 1.4), ylim=(-1.1, 1.1), facecolor="none")
    ax.set_axis_off()
    return fig


def plot_box(sides: tuple[int, int, int], fills: dict[int, int]) -> Figure:
    """The box of an m × k × n matmul, filled with so many slices from the back, once for each count."""
    high, deep, wide = sides
    fig = Figure(figsize=(5.8, 2.1), layout="constrained", facecolor="none")
    (panels,) = fig.subplots(1, len(fills), squeeze=False)
    for ax, (depth, count) in zip(panels, fills.items(), strict=True):
        draw_box(ax, sides, deep - depth, (GOLD, GREEN, BLUE))
        draw_box(ax, sides, 0, ("none", "none", "none"))
        ax.set_title(f"{count} multiplications", color=GREY, fontsize=10)
        right, top = wide + 0.5 * deep, high + 0.4 * deep
        for face, x, y in (
            ("w", right / 2 + 1, top + 0.5),
            ("x", right + 0.5, top / 2 + 1),
            ("sums", wide / 2, -0.6),
        ):
            ax.text(x, y, face, color=GREY, ha="center", va="center")
        ax.set(xlim=(-0.2, right + 1), ylim=(-1, top + 1))
        ax.set(aspect="equal", facecolor="none")
        ax.set_axis_off()
    return fig


def draw_box(ax: Axes, sides: tuple[int, int, int], near: int, colors: tuple[str, str, str]) -> None:
    """What is seen of a box from `near` to its back: front, top and side, unit by unit unless it is of glass."""
    high, deep, wide = sides

    def seen(x: int, y: int, z: int) -> tuple[float, float]:
        return x + 0.5 * z, y + 0.4 * z

    faces: tuple[Callable[[int, int], tuple[float, float]], ...] = (
        lambda a, b: seen(a, b, near),
        lambda a, b: seen(a, high, near + b),
        lambda a, b: seen(wide, a, near + b),
    )
    sizes = (wide, high), (wide, deep - near), (high, deep - near)
    for face, (across, along), color in zip(faces, sizes, colors, strict=True):
        corners = [face(0, 0), face(across, 0), face(across, along), face(0, along)]
        ax.add_patch(Polygon(corners, facecolor=color, edgecolor=GREY, lw=0.8))
        ends = [end for a in range(1, across) for end in (face(a, 0), face(a, along))]
        ends += [end for b in range(1, along) for end in (face(0, b), face(across, b))]
        if color != "none" and ends:
            lines = Path(ends, [Path.MOVETO, Path.LINETO] * (len(ends) // 2))
            ax.add_patch(PathPatch(lines, fill=False, edgecolor="white", lw=0.6))


def plot_blocks(sizes: dict[str, int], block: int) -> Figure:
    """A row of blocks for each tensor, filled by its bytes; what stays empty of the last one in red."""
    fig, ax = blank(COLUMN, 2.4)
    for row, size in enumerate(sizes.values()):
        count = -(-size // block)
        ax.barh(-row, size, 0.7, color=BLUE)
        ax.barh(-row, count * block - size, 0.7, left=size, color=RED)
        for number in range(count):
            cell = Rectangle((number * block, -row - 0.35), block, 0.7, fill=False, edgecolor="white", lw=1)
            ax.add_patch(cell)
        ax.text(count * block + 60, -row, f"{count * block - size} lost", va="center", color=GREY)
    ax.set_yticks([-row for row in range(len(sizes))], list(sizes))
    ax.set_xticks([n * block for n in (0, 1, 4, 8)])
    ax.set(xlabel="bytes")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return fig


def plot_walk(grid: Tensor, offset: int, stride: int) -> Figure:
    """A matrix above its line of memory; in both, what a view reads that walks through this line."""
    columns = grid.shape[1]
    line = grid.flatten().tolist()
    reads = range(offset, len(line), stride)
    fig = Figure(figsize=(3.9, 2.3), facecolor="none", layout="constrained")
    axes = fig.subplots()
    places = [(at, (at % columns + 1.5, 2.6 - at // columns)) for at in range(len(line))]
    places += [(at, (float(at), -1.2)) for at in range(len(line))]
    for at, (x, y) in places:
        shade, weight = (BLUE + "4d", "bold") if at in reads else ("none", "normal")
        axes.add_patch(Rectangle((x, y), 1, 0.8, facecolor=shade, edgecolor="black", linewidth=0.9))
        axes.text(x + 0.5, y + 0.38, f"{line[at]:g}", color="black", ha="center", va="center", fontweight=weight)
    axes.text(1.3, 2.45, "matrix", color="black", ha="right", va="center")
    axes.text(0, -0.15, "memory", color="black")
    for at in reads[:-1]:
        bow = {"arrowstyle": "->", "color": BLUE, "connectionstyle": "arc3,rad=0.3", "linewidth": 1.5}
        axes.annotate("", (at + stride + 0.5, -1.25), (at + 0.5, -1.25), arrowprops=bow)
        axes.text(at + stride / 2 + 0.5, -2.25, f"+{stride}", color=BLUE, ha="center", va="center")
    axes.set(xlim=(-0.1, len(line) + 0.1), ylim=(-2.6, 3.6), facecolor="none")
    axes.set_axis_off()
    return fig


def plot_strides(elements: list[list[int]], cells: int) -> Figure:
    """A strip of memory, and below it the grid that a tensor reads from it."""
    fig = Figure(figsize=(4, 2.2), facecolor="none", layout="constrained")
    axes = fig.subplots()
    kept = {at for row in elements for at in row}
    squares = [(at, (at, 0.0), at in kept) for at in range(cells)]
    squares += [(at, (j, -2.4 - i), True) for i, row in enumerate(elements) for j, at in enumerate(row)]
    for at, (x, y), filled in squares:
        color, weight = (BLUE + "4d", "bold") if filled else ("none", "normal")
        axes.add_patch(Rectangle((x, y), 1, 0.8, facecolor=color, edgecolor="black", linewidth=0.9))
        axes.text(x + 0.5, y + 0.38, f"{at}", color="black", ha="center", va="center", fontweight=weight)
    axes.text(0, 1.1, "memory", color="black")
    axes.text(0, -1.2, f"tensor, {len(elements)} × {len(elements[0])}", color="black")
    axes.set(xlim=(-0.1, cells + 0.1), ylim=(-1.5 - len(elements), 1.5), facecolor="none")
    axes.set_axis_off()
    return fig


def plot_bits(pattern: str, fields: tuple[int, int, int], near: list[float]) -> Figure:
    """A pattern of bits by field, and below it the numbers near its own, the middle one of `near`."""
    fig = Figure(figsize=(4, 1.9), facecolor="none", layout="constrained")
    axes = fig.subplots()
    for name, x, color in zip(("sign", "exponent", "fraction"), (0.0, 2.0, 9.0), (RED, BLUE, GREEN)):
        axes.text(x, 3.2, name, color=color, fontweight="bold")
    axes.text(len(pattern) + 0.2, 2.42, f"= {near[2]:g}", color=GREY, fontweight="bold", va="center")
    colors = [color for color, count in zip((RED, BLUE, GREEN), fields) for _ in range(count)]
    for i, (bit, color) in enumerate(zip(pattern, colors, strict=True)):
        shade = color + ("66" if bit == "1" else "00")
        axes.add_patch(Rectangle((i, 2), 0.9, 0.9, facecolor=shade, edgecolor=color, linewidth=0.8))
        axes.text(i + 0.45, 2.42, bit, color="black", ha="center", va="center")
    scale = 14 / (max(near) - min(near))
    axes.plot([0, 16], [0.7, 0.7], color=GREY, lw=0.8)
    for value in near:
        x = 1 + (value - min(near)) * scale
        axes.plot([x, x], [0.4, 1.0], color=BLUE if value == near[2] else GREY, lw=1.5)
        axes.text(x, 0.0, f"{value:g}", color=GREY, ha="center", va="center")
    x = 1 + (near[2] + 1 - min(near)) * scale
    axes.plot([x], [0.7], "o", color=RED, fillstyle="none", ms=7)
    axes.text(x, 1.15, "+1", color=RED, ha="center")
    axes.set(xlim=(-0.1, 18.3), ylim=(-0.3, 3.8), facecolor="none")
    axes.set_axis_off()
    return fig


def plot_kept(moments: list[dict[str, Any]], now: int) -> Figure:
    """The outputs in memory at one moment as filled dots, and below it their number at every moment."""
    fig = Figure(figsize=(4, 2.8), facecolor="none", layout="constrained")
    dots, bars = fig.subplots(2, 1, height_ratios=(1, 5))
    layers = len(moments) // 3
    here, colors = moments[now], {"forward": BLUE, "backward": BLUE, "again": GOLD}
    filled = [layer in here["kept"] for layer in range(layers + 1)]
    dots.scatter(
        range(layers + 1),
        [0] * (layers + 1),
        s=110,
        c=[BLUE if f else "none" for f in filled],
        edgecolors=GREY,
    )
    dots.set_xticks(range(0, layers + 1, 4), ["input", *map(str, range(4, layers + 1, 4))])
    bars.bar(
        range(len(moments)),
        [len(it["kept"]) for it in moments],
        width=1,
        color=[colors[it["phase"]] for it in moments],
    )
    bars.axvline(now, color=GREY, lw=1.5)
    bars.set(xlabel="time", ylabel="in memory", ylim=(0, layers + 1), xlim=(-0.5, len(moments)))
    bars.set_xticks([])
    for ax in (dots, bars):
        ax.set_facecolor("none")
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(colors=GREY)
        ax.xaxis.label.set_color(GREY)
        ax.yaxis.label.set_color(GREY)
    dots.set_yticks([])
    dots.spines[:].set_visible(False)
    return fig


def plot_leaves(tensors: dict[str, tuple[Any, Any]]) -> Figure:
    """Boxes of two leaves, of what is computed from them, and of the loss: values and gradients."""
    fig, axes = blank(COLUMN, 3)
    places = dict(zip(tensors, ((0, 2.6), (2.3, 2.6), (1.15, 1.3), (1.15, 0)), strict=True))
    for name, (value, grad) in tensors.items():
        x, y = places[name]
        color = BLUE if grad else GREY
        axes.add_patch(Rectangle((x, y), 2.2, 1, facecolor=BLUE + "33" if grad else "none", edgecolor=color))
        axes.text(x + 0.1, y + 0.72, f"{name} = {value}", color=GREY, va="center")
        axes.text(x + 0.1, y + 0.28, f".grad = {grad}", color=color, va="center")
    for start, end in (((1.1, 2.6), (1.9, 2.3)), ((3.4, 2.6), (2.6, 2.3)), ((2.25, 1.3), (2.25, 1))):
        axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": GREY})
    axes.set(xlim=(-0.02, 4.52), ylim=(-0.05, 3.65))
    axes.set_axis_off()
    return fig


def curves(
    xs: Sequence[float], lines: Mapping[str, Sequence[float]], xlabel: str, ylabel: str, log: bool = False
) -> Figure:
    """Labelled lines over the same positions, on logarithmic axes if asked for."""
    fig, axes = blank(COLUMN, 3.3)
    for color, (name, ys) in zip((BLUE, RED, GREEN, GOLD), lines.items(), strict=False):
        axes.plot(xs, ys, color=color, lw=2, label=name)
    if log:
        axes.set(xscale="log", yscale="log")
        powers_of_ten(axes.xaxis, axes.yaxis)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    legend_above(axes)
    return fig
