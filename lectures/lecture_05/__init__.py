"""Lecture 05: a service, counted."""
from litbook import note

from .batching import a_batch_that_never_ends
from .bill import the_bill
from .cache import the_cache_as_memory
from .guesses import guesses
from .prompts import prompts_between_tokens
from .two_waits import two_waits

__beside__ = ("counters", "units")


def main() -> None:
    note(r"""
        A trained model becomes useful when it answers requests. This lecture counts what that
        costs: how long a user waits, how many users one GPU can serve at once, and what a token
        costs.
    """)
    note(r"""
        You need the core of [the lecture on Transformers](#lecture_03): FLOPs and bytes of a
        forward pass, and the KV cache. All sections use the same model and GPU, Llama-3-8B on one
        H100. Nothing in the core needs a GPU. Times are lower bounds, computed from the rates in
        the GPU's datasheet. Schedules are simulated. Results of small models are compared exactly.
    """)
    note("**Two waits.** The first token is limited by arithmetic, and all others by memory.")
    two_waits()
    note("**A batch that never ends.** Requests come and go, and the batch changes with every step.")
    a_batch_that_never_ends()
    note("**The cache as memory.** Pages, shared prefixes, and fewer bytes for keys and values.")
    the_cache_as_memory()
    note("**Prompts between tokens.** Long prompts and short waits on the same GPU, and a wait that more GPUs do not shorten.")
    prompts_between_tokens()
    note("**Guesses.** A small model guesses, and the large one verifies with arithmetic units that would otherwise be idle.")
    guesses()
    note("**The bill.** What a token costs, and what experts change.")
    the_bill()
