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
        memory, and arithmetic operations. This lecture counts them. Begin with the estimate, and
        read the *core* in order; *asides* are folded, and the argument does not depend on them.
    """)
    note(r"""
        You need Python, a little linear algebra, and an idea of what a neural network is; PyTorch
        is explained where it is used. The lecture follows, and checks, lecture 2 of Stanford's
        CS336 in its edition of 2025 [@cs336].
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
