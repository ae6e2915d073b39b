"""Lecture 03: a Transformer, counted."""
from litbook import note

from .activations import the_activations_of_a_block
from .anatomy import a_block_of_today
from .generate import generating
from .later import later_models
from .regimes import three_regimes
from .utilization import which_flops_enter_mfu
from .whole import the_whole_model

__beside__ = ("counters", "timing", "units")


def main() -> None:
    note(r"""
        The previous lecture counted matmuls, parameters and bytes one by one. This one counts the
        parameters, FLOPs, memory and time of a whole Transformer. Each formula is compared with a
        count that PyTorch makes without knowing the formula, and with a published number where
        there is one.
    """)
    note(r"""
        You need the core of that lecture: what a FLOP is, what a training step keeps in memory, and
        what MFU is. Nothing here needs a GPU. Large models are built on the device `meta`, where a
        tensor has a shape but no data.
    """)
    note("**The block.** The parts of a Transformer, and what each of them costs.")
    a_block_of_today()
    note("**Memory.** What a block keeps for the backward pass, and what can be recomputed instead.")
    the_activations_of_a_block()
    note("**Utilization.** Which FLOPs count towards MFU, the number that everyone reports.")
    which_flops_enter_mfu()
    note("**Waiting.** Whether a block waits for arithmetic, for memory, or for the program: whether it is compute-bound, memory-bound or launch-bound.")
    three_regimes()
    note("**Generating.** How fast a model can generate, and how much memory each token needs.")
    generating()
    note("**Since then.** Experts, a compressed cache, windows, and what each costs.")
    later_models()
    note("**All of it.** A whole model, and a training run that is predicted before it starts.")
    the_whole_model()
