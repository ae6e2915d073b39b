"""Lecture 02: PyTorch and resource accounting."""
from litbook import note

from .estimate import napkin_math
from .tensor import tensors
from .formats import number_formats, what_rounding_loses
from .gpu import tensors_on_a_gpu
from .storage import storage_and_views
from .pointwise import elementwise
from .matmul import matmul_and_named_axes
from .counting import counting_flops
from .peaks import peaks_and_mfu
from .rates import measuring_a_rate
from .gradient import gradients
from .parameter import parameters
from .data import data_and_randomness
from .optimizer import optimizers
from .step import the_bill_of_a_step
from .loop import training
from .checkpoint import checkpoints
from .precision import mixed_precision
from .formulas import summary

__beside__ = ("counters", "timing", "units")


def main() -> None:
    note(r"""
        Will a training run fit into memory, and how long will it take? For a language model, both
        questions can be answered before anything is switched on, by counting two things: bytes of
        memory, and arithmetic operations. This lecture counts them. Its numbers are computed by the
        lines next to them, or cite their source. A line with a tick is a claim that was checked: if
        it had failed, the build would have stopped.
    """)
    note(r"""
        The chapter follows, and checks, lecture 2 of Stanford's CS336, *Language Modeling from
        Scratch*, in its edition of 2025 [@cs336]. Its number, its order and many of its examples
        come from that lecture. The course publishes its code together with what the code printed,
        and only for that reason can a reader check it line by line.
    """)
    note(r"""
        You need Python, a little linear algebra, and an idea of what a neural network is; PyTorch
        is explained where it is used. A section states a thesis, tests it in a few lines, and ends
        with a question. A name with a line of dots below it is a helper of the book; it leads to
        the code.
    """)
    note(r"""
        Read the *core* in order; it carries the argument, and fits into two evenings. Between its
        sections are *asides*, folded to their headings: a special case, another format, an edge
        case of a library. The argument does not depend on them. This page counts both, and says
        above how long the core takes to read.
    """)
    note("**The estimate.** How long will it take, and will it fit? First on a napkin.")
    napkin_math()
    note("**Memory.** What a number costs, what it can hold, and when two tensors share one memory.")
    tensors()
    number_formats()
    what_rounding_loses()
    tensors_on_a_gpu()
    storage_and_views()
    note("**Compute.** What is done with tensors, what that costs, and what share of the peak is reached.")
    elementwise()
    matmul_and_named_axes()
    counting_flops()
    peaks_and_mfu()
    measuring_a_rate()
    note("**A training step.** Its pieces one by one, and then the bill for all of them.")
    gradients()
    parameters()
    data_and_randomness()
    optimizers()
    the_bill_of_a_step()
    note("**A training run.** Steps repeated, interrupted, resumed, and done in fewer bits.")
    training()
    checkpoints()
    mixed_precision()
    summary()
