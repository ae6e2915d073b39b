"""The code behind the figures, which the pages do not show."""  # @hide

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from plots import BLUE, COLUMN, GOLD, GREEN, GREY, RED, blank, legend_above


def plot_limit(curves: Mapping[int, Sequence[tuple[float, float]]], limit: float) -> Figure:
    """Throughput against milliseconds per token, a curve for each context, and the latency target."""
    fig, axes = blank(COLUMN, 3.4)
    for color, (context, points) in zip((BLUE, GREEN, RED), curves.items()):
        waits, paces = zip(*points)
        axes.plot(waits, paces, color=color, lw=2, marker="o", ms=4, label=f"{context:,} tokens")
    axes.axvline(limit, color=GREY, ls="--")
    axes.set_xscale("log", base=2)
    axes.set_xticks([5, 10, 20, 40], ["5", "10", "20", "40"])
    axes.minorticks_off()
    axes.set(xlabel="ms per output token", ylabel="tokens/s, all sequences together", ylim=(0, None))
    legend_above(axes)
    return fig


def plot_slots(panels: Mapping[str, Sequence[tuple[int, int, int]]]) -> Figure:
    """A panel for each schedule; in it a row per slot, and a bar from the first step to the end of each request."""
    fig = Figure(figsize=(COLUMN - 0.15, 2.9), facecolor="none", layout="constrained")
    last = max(end for spans in panels.values() for _, _, end in spans)
    for axes, (title, spans) in zip(
        fig.subplots(len(panels), 1, sharex=True, squeeze=False).flat, panels.items(), strict=True
    ):
        for number, (slot, start, end) in enumerate(spans):
            color = (BLUE, GREEN, GOLD, RED)[number % 4]
            axes.barh(-slot, end - start - 0.08, left=start + 0.04, height=0.7, color=color + "aa")
        slots = sorted({slot for slot, _, _ in spans})
        axes.set_yticks([-slot for slot in slots], [f"slot {slot}" for slot in slots])
        axes.set_title(title, color=GREY, fontsize=10)
        axes.set(xlim=(0, last), facecolor="none")
        axes.tick_params(colors=GREY)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color(GREY)
    fig.axes[-1].set_xlabel("step", color=GREY)
    return fig


def plot_pages(lengths: Mapping[str, int], page: int, order: str) -> Figure:
    """Rows of pages: each belongs to the sequence that `order` names; its tokens are colored, the rest is unused."""
    fig, axes = blank(COLUMN - 0.3, 0.38 * len(order) + 0.2)
    colors = dict(zip(lengths, (BLUE, GREEN, GOLD)))
    position = dict.fromkeys(lengths, 0)
    for row, name in enumerate(order):
        for offset in range(page):
            used = position[name] < lengths[name]
            face = colors[name] + "aa" if used else "none"
            axes.barh(-row, 0.94, left=offset + 0.03, height=0.86, color=face, edgecolor=GREY, lw=0.7)
            if used:
                label = f"{name}{position[name]}"
                axes.text(offset + 0.5, -row, label, ha="center", va="center", color="white")
            position[name] += 1
    axes.set_yticks([-row for row in range(len(order))], [f"page {row}" for row in range(len(order))])
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    return fig


def plot_floor(measured: Mapping[int, float], formula: Mapping[int, float], fastest: float) -> Figure:
    """Paces against the number of GPUs: dots as measured, the formula as a line, its limit dashed."""
    fig, axes = blank(COLUMN, 3)
    axes.plot(list(formula), list(formula.values()), color=BLUE, lw=2, label="formula")
    axes.plot(list(measured), list(measured.values()), "o", color=RED, ms=7, label="measured")
    axes.axhline(fastest, color=GREY, ls="--")
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(formula), [str(g) for g in formula])
    axes.minorticks_off()
    axes.set(xlabel="GPUs", ylabel="tokens/s of one sequence", ylim=(0, None))
    axes.legend(frameon=False, labelcolor=GREY, loc="lower right")
    return fig
