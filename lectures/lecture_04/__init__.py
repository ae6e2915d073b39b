"""Lecture 04: many devices, counted."""
from litbook import note

from .collectives import collectives
from .context import context_parallelism
from .data_parallel import data_parallel
from .experts import expert_parallelism
from .pipeline import pipelines
from .sharded_state import sharded_state
from .tensor_parallel import tensor_parallelism
from .together import all_together

__beside__ = ("counters", "units", "wire")


def main() -> None:
    note(r"""
        The last two lectures counted what a model costs on one GPU. Large models are trained on
        many GPUs, up to hundreds of thousands. This adds a new cost: the bytes that the GPUs send
        to each other. For each way of dividing the work, this lecture counts these bytes, in
        addition to memory and time.
    """)
    note(r"""
        You need the core of both lectures: what a training step keeps in memory, and the parts of a
        Transformer. Nothing here needs a GPU. The sections run on several processes of one CPU,
        which exchange data as GPUs do. So bytes, memory and results are real. Measured times would
        not be, because the processes share a few cores. So times are computed, not measured.
    """)
    note("**Exchange.** The operations by which ranks exchange tensors, and what each of them sends.")
    collectives()
    note("**The batch.** Each rank has the whole model and a share of the batch.")
    data_parallel()
    note("**The state.** Each rank keeps only a share of the parameters, gradients and moments.")
    sharded_state()
    note("**The matmuls.** All ranks work on the same tokens, each with a slice of every matrix.")
    tensor_parallelism()
    note("**The sequence.** Each rank has a part of one long sequence.")
    context_parallelism()
    note("**The layers.** Each rank has some of the layers, and sends their outputs to the next rank.")
    pipelines()
    note("**The experts.** Each rank has some of the experts, and tokens travel to them.")
    expert_parallelism()
    note("**All of it.** Several of these ways combined, and the layouts of published runs.")
    all_together()
