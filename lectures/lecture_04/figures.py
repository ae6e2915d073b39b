"""The code behind the figures, which the pages do not show."""  # @hide

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import path
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from plots import BLUE, COLUMN, GOLD, GREEN, GREY, RED, blank, name_rows

COLORS = BLUE, RED, GREEN, GOLD  # of ranks


def boxes(corners: Sequence[tuple[float, float]], width: float, height: float, **look: Any) -> PathPatch:
    """Equal rectangles as one shape, which is short in a page."""
    shapes = [Rectangle(corner, width, height) for corner in corners]
    paths = [shape.get_patch_transform().transform_path(shape.get_path()) for shape in shapes]
    return PathPatch(path.Path.make_compound_path(*paths), clip_on=False, **look)


def plot_held(states: Mapping[str, Sequence[Sequence[int]]]) -> Figure:
    """What each rank holds: a panel for each state, a row for each rank, in it a cell for each of its numbers.

    The digits of a sum of powers of ten say whose numbers are in it: each has the colour of its rank.
    """
    longest = max(len(row) for rows in states.values() for row in rows)
    ranks = max(len(rows) for rows in states.values())
    width, height = longest + 1.4, ranks + 1.1  # of a panel, in cells
    columns = min(len(states), int(COLUMN / (0.47 * width)))
    lines = -(-len(states) // columns)
    fig = Figure(figsize=(0.47 * width * columns, 0.32 * height * lines), facecolor="none")
    axes = fig.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width * columns), ylim=(height * lines, 0))
    digits: dict[str, list[tuple[float, float, str]]] = {"white": [], GREY: []}
    for place, (title, rows) in enumerate(states.items()):
        left, top = width * (place % columns) + 1.3, height * (place // columns) + 0.8
        axes.text(left + longest / 2, top - 0.12, title, color=GREY, ha="center", va="bottom")
        filled: list[list[tuple[float, float]]] = [[] for _ in COLORS]
        for rank, row in enumerate(rows):
            middle = left - 0.1, top + rank + 0.5
            axes.text(*middle, f"rank {rank}", color=COLORS[rank], ha="right", va="center")
            for column, value in enumerate(row):
                for sender, digit in enumerate(reversed(str(value))):
                    x = left + column + 0.96 - 0.92 * (sender + 1) / ranks
                    if digit != "0":
                        filled[sender].append((x, top + rank + 0.1))
                    middle = x + 0.46 / ranks, top + rank + 0.51
                    digits["white" if digit != "0" else GREY].append((*middle, digit))
        corners = [(left + c + 0.04, top + r + 0.1) for r, row in enumerate(rows) for c, _ in enumerate(row)]
        axes.add_patch(boxes(corners, 0.92, 0.8, fc="none", ec=GREY, lw=0.5))
        for color, places in zip(COLORS, filled):
            if places:
                axes.add_patch(boxes(places, 0.92 / ranks, 0.8, fc=color, lw=0))
    for color, written in digits.items():  # one color after the other, so that the page says each once
        for x, y, digit in written:
            axes.text(x, y, digit, color=color, weight="bold", ha="center", va="center")
    return fig


def plot_traffic(tables: Mapping[str, Sequence[Sequence[int]]]) -> Figure:
    """Who sent how much to whom: a table for each title, a row for each sender, darker where it was more, empty at zero."""
    count = len(next(iter(tables.values())))
    most = max(max(max(row) for row in table) for table in tables.values())
    width, height = count + 1.1, count + 2.2  # of a table, in cells
    fig = Figure(figsize=(0.6 * width, 0.32 * height * len(tables)), facecolor="none")
    axes = fig.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(-1.1, count), ylim=(height * len(tables), 0))
    for place, (title, table) in enumerate(tables.items()):
        top = height * place + 1.8
        axes.text(count / 2, top - 0.9, title, color=GREY, ha="center", va="bottom")
        for rank, color in zip(range(count), COLORS):
            axes.text(-0.1, top + rank + 0.5, f"from {rank}", color=color, ha="right", va="center")
            axes.text(rank + 0.5, top - 0.1, f"to {rank}", color=color, ha="center", va="bottom")
        corners = [(r + 0.04, top + s + 0.06) for s, row in enumerate(table) for r, _ in enumerate(row)]
        axes.add_patch(boxes(corners, 0.92, 0.88, lw=0.6, ec=GREY, fc="none"))
        for sender, row in enumerate(table):
            for receiver, size in enumerate(row):
                if size:
                    corner, shade = (receiver + 0.04, top + sender + 0.06), 0.15 + 0.85 * size / most
                    axes.add_patch(Rectangle(corner, 0.92, 0.88, lw=0, color=COLORS[sender], alpha=shade))
                    text = f"{size / 1000:,.0f}k" if size >= 10_000 else f"{size:,}"
                    color = "white" if size > 0.4 * most else GREY
                    axes.text(receiver + 0.5, top + sender + 0.5, text, color=color, ha="center", va="center")
    return fig


def plot_backward(events: Sequence[Sequence[int]]) -> Figure:
    """Layers that have their gradients (lists of one) and buckets that leave (longer ones), in their order."""
    fig, axes = blank(COLUMN, 1.7)
    name_rows(axes, ["gradient ready", "bucket leaves"])
    for place, layers in enumerate(events):
        row, color = (-1, RED) if len(layers) > 1 else (0, BLUE)
        axes.barh(row, len(layers) - 0.08, left=place + 0.04, height=0.5, color=color)
        middle = place + len(layers) / 2, row
        text = ", ".join(map(str, layers))
        axes.text(*middle, text, color="white", weight="bold", ha="center", va="center")
    axes.set(xlim=(0, len(events) + 1), xticks=[], xlabel="order of events")
    return fig


def plot_state(panels: Mapping[str, Sequence[Sequence[int]]], parameters: int) -> Figure:
    """What each rank keeps of parameters, gradients and moments, by bytes: all blocks of a kind, or its own one."""
    widths = {"parameters": 4, "gradients": 4, "moments": 8}  # bytes for each parameter
    lines = sum(len(rows) for rows in panels.values())
    fig = Figure(figsize=(COLUMN - 0.2, 0.36 * (lines + 1.2 * len(panels))), facecolor="none")
    fig.subplots_adjust(left=0, right=1, bottom=0, top=1)
    for place, rows in enumerate(panels.values()):
        axes = fig.add_subplot(len(panels), 1, place + 1)
        axes.set_axis_off()
        axes.set(xlim=(-2.6, 17), ylim=(len(rows), -1.2))
        left = 0.0
        for kind, (name, width) in enumerate(widths.items()):
            title = f"{name}\n{width} B each"
            axes.text(left + width / 2, -0.05, title, color=GREY, ha="center", va="bottom")
            for rank, row in enumerate(rows):
                filled = round(row[kind] / (width * parameters) * len(rows))
                for block in range(len(rows)):
                    there = filled == len(rows) or block == rank
                    axes.add_patch(
                        Rectangle(
                            (left + block * width / len(rows) + 0.04, rank + 0.12),
                            width / len(rows) - 0.08,
                            0.76,
                            lw=0.8,
                            ec=COLORS[block] if there else GREY,
                            fc=COLORS[block] if there else "none",
                        )
                    )
            left += width + 0.5
        for rank in range(len(rows)):
            axes.text(-0.15, rank + 0.5, f"rank {rank}", color=COLORS[rank], ha="right", va="center")
    return fig
