"""The code behind the figures, which the pages do not show."""  # @hide

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from plots import BLUE, GOLD, GREEN, GREY, RED, blank


def plot_limit(curves: Mapping[int, Sequence[tuple[float, float]]], limit: float) -> Figure:
    """Throughput against milliseconds per token, a curve for each context, and the promised limit."""
    fig, axes = blank(7, 3.4)
    for color, (context, points) in zip((BLUE, GREEN, RED), curves.items()):
        waits, paces = zip(*points)
        axes.plot(waits, paces, color=color, lw=2, marker="o", ms=4, label=f"{context:,} tokens")
    axes.axvline(limit, color=GREY, ls="--")
    axes.set_xscale("log", base=2)
    axes.set_xticks([5, 10, 20, 40], ["5", "10", "20", "40"])
    axes.minorticks_off()
    axes.set(xlabel="ms per output token", ylabel="tokens/s, all sequences together", ylim=(0, None))
    axes.legend(frameon=False, labelcolor=GREY)
    return fig


def plot_slots(panels: Mapping[str, Sequence[tuple[int, int, int]]]) -> Figure:
    """A panel for each schedule; in it a row per slot, and a bar from the first step to the end of each request."""
    fig = Figure(figsize=(7, 3.8), facecolor="none", layout="constrained")
    last = max(end for spans in panels.values() for _, _, end in spans)
    for axes, (title, spans) in zip(fig.subplots(len(panels), 1, sharex=True), panels.items(), strict=True):
        for number, (slot, start, end) in enumerate(spans):
            color = (BLUE, GREEN, GOLD, RED)[number % 4]
            axes.barh(-slot, end - start - 0.08, left=start + 0.04, height=0.7, color=color + "aa")
        slots = sorted({slot for slot, _, _ in spans})
        axes.set_yticks([-slot for slot in slots], [f"slot {slot}" for slot in slots])
        axes.set_title(title, color=GREY, fontsize=11)
        axes.set(xlim=(0, last), facecolor="none")
        axes.tick_params(colors=GREY)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color(GREY)
    fig.axes[-1].set_xlabel("step", color=GREY)
    return fig
