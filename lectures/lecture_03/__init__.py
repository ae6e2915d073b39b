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
        The lecture before this one counted products, parameters and bytes one by one. Here a whole
        model is counted: the block that Llama, Mistral and Qwen share. Every formula stands beside
        a measurement that was not shown the formula, and beside a published number where there is
        one.
    """)
    note(r"""
        You need the core of that lecture: what a FLOP is, what a training step keeps, what MFU
        divides by what. Nothing here needs a GPU, because counting needs no speed: large models are
        built on the device `meta`, which has shapes and no data.
    """)
    note("**The block.** What was exchanged since the first Transformers, and what each exchange costs:")
    a_block_of_today()
    note("**Memory.** What a block leaves behind for the backward pass, and what need not stay:")
    the_activations_of_a_block()
    note("**Utilization.** The formula behind the number that everyone reports:")
    which_flops_enter_mfu()
    note("**Waiting.** For arithmetic, for memory, or for the program itself:")
    three_regimes()
    note("**Writing.** What is kept for each token, what is read for the next, and how fast that can be:")
    generating()
    note("**Since then.** Heads of any size, experts, a compressed cache, windows, and what each costs:")
    later_models()
    note("**All of it.** The tables at both ends, and a run that is predicted before it starts:")
    the_whole_model()
