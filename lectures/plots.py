"""What the figures of all lectures share: five colours, and a figure to draw on."""
from matplotlib.axes import Axes
from matplotlib.figure import Figure

GREY, BLUE, RED, GREEN, GOLD = "#6b7280", "#3949ab", "#b3421f", "#16794c", "#b98518"


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
