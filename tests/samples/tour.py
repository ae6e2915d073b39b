"""Sample: a tour of the lecture language."""

import torch
from jaxtyping import Float
from torch import Tensor

from litbook import link, misbelief, note, requires

WIDTH = 4  # bytes of a float32


def main() -> None:
    note("Two resources: **memory** in bytes, compute in FLOPs.")
    bytes_are_count_times_width()
    loops_and_views()
    on_a_gpu()


def double(x: int) -> int:
    y = 2 * x  # @inspect y
    return y


def bytes_are_count_times_width() -> None:
    """A tensor costs its element count times its element width."""
    note(
        """
        One small matrix, in float32:

        - two rows
        - three columns
        """
    )
    w: Float[Tensor, "row col"] = torch.arange(6.0).reshape(2, 3)  # @inspect w
    size = w.numel() * WIDTH  # @inspect size as B
    assert size == w.numel() * w.element_size() == 24, "24 bytes"
    misbelief("A view copies.", "It shares: `w.T` has the same storage.")
    view = w.T  # @inspect view, view.is_contiguous()
    shared = view.data_ptr() == w.data_ptr()
    assert shared, "one storage"
    view = None  # @clear view


def loops_and_views() -> None:
    """Loops are folded"""
    hidden = 10  # @hide
    total = 0
    for i in range(hidden):
        total += double(i)  # @inspect total
        if i == 3:
            print("three", end="")
            print(" and a half")
    else:
        last = i
    try:
        {}["missing"]
    except KeyError as error:
        print("caught", error)
    finally:
        done = True
    assert total == sum(2 * i for i in range(10)), f"the sum is {total}"
    quick = double(21)  # @stepover @inspect quick
    link(bytes_are_count_times_width, "the first section")
    link("https://example.org/", "elsewhere")
    nested()


def nested() -> None:
    """A part has sections of its own."""
    seconds = sum([0.25])  # @measure seconds as s
    share = 0.5  # @inspect share as %
    assert 0 < share <= 1


@requires("cuda")
def on_a_gpu() -> None:
    """Only where there is a GPU."""
    assert torch.ones(1, device="cuda").is_cuda, "on the device"


if __name__ == "__main__":
    main()
