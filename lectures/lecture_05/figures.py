"""The code behind the figures, which the pages do not show."""  # @hide

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from plots import BLUE, GREEN, GREY, RED, blank


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
