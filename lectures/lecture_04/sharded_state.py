"""Sharded state: parameters, gradients and moments, each kept once instead of once on every rank."""
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from counters import Watching, saved_bytes_of
from hardware import CARDS
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint
from wire import Wire, from_all_ranks

from litbook import aside, explore, figure, misbelief, note, question, requires

from .collectives import ring_all_gather, ring_reduce_scatter
from .data_parallel import gradient_of
from .figures import plot_state, plot_traffic


def sharded_state() -> None:
    """Sharded state."""
    note(r"""
        In data parallelism every rank keeps everything: parameters, gradients and the optimizer's
        moments. That is the same state many times over. This part cuts it into shards, first by
        hand and then with PyTorch. For each way we count what a rank keeps and what it sends.
    """)
    every_rank_keeps_sixteen_bytes()
    each_rank_updates_a_shard()
    gradients_need_not_stay()
    weights_come_when_they_are_needed()
    fsdp_does_the_same()
    more_ranks_keep_less_each()
    shards_within_copies_between()


WIDTH, LAYERS = 64, 4
P = LAYERS * 8 * WIDTH**2  # parameters
ROUNDING = 1e-4  # what adding in another order may change in float32, after two steps of AdamW


def layer(weights: Tensor, x: Tensor) -> Tensor:
    """Runs a feed-forward layer on `x` and adds `x`; `weights` has both matrices in one row."""
    up, down = weights.chunk(2)
    hidden = F.gelu(x @ up.view(WIDTH, 4 * WIDTH))
    return x + hidden @ down.view(4 * WIDTH, WIDTH)


def rows_of_weights() -> list[Tensor]:  # @stepover
    """The weights before training: one row of numbers for each layer, equal on all ranks."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(LAYERS, P // LAYERS, generator=generator) / WIDTH
    return [row.clone() for row in rows]


def loss_of(
    layers: Iterable[Callable[[Tensor], Tensor]], share: slice
) -> Tensor:
    """The loss of a model of these layers on a share of a batch of 32 rows."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(32, WIDTH, generator=generator)[share]
    for run in layers:
        x = run(x)
    return x.square().mean()


def my_rows() -> slice:
    """Which of the 32 rows of the batch this rank has: eight of them on four ranks."""
    each = 32 // dist.get_world_size()
    return slice(each * dist.get_rank(), each * dist.get_rank() + each)


def moments(optimizer: torch.optim.Optimizer) -> list[Tensor]:  # @stepover
    """The two moments that AdamW keeps for each parameter, in a list."""
    names = "exp_avg", "exp_avg_sq"
    return [state[n] for state in optimizer.state.values() for n in names]


def local_part(tensor: Tensor) -> Tensor:
    """The part of a tensor that this rank holds: a shard, or all of it if it is not sharded."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def bytes_of(tensors: Iterable[Tensor | None]) -> int:  # @stepover
    """Bytes that these tensors take on this rank. Memory that two tensors share counts once."""
    parts = [local_part(t) for t in tensors if t is not None]
    storages = [part.untyped_storage() for part in parts]
    return sum({s.data_ptr(): s.nbytes() for s in storages}.values())


def bytes_by_kind(
    tensors: Sequence[Tensor], optimizer: torch.optim.Optimizer
) -> list[int]:
    """Bytes on this rank of these parameters, of their gradients and of AdamW's moments."""
    gradients = bytes_of(t.grad for t in tensors)
    return [bytes_of(tensors), gradients, bytes_of(moments(optimizer))]


def difference_to_one_process(
    weights: Sequence[Tensor], optimizer: torch.optim.Optimizer
) -> float:  # @stepover
    """How far weights and moments are from one process's, as a share of the largest of these.

    One process has made two steps on all rows. Shards are compared with the same parts of them.
    """
    whole = [w.requires_grad_() for w in rows_of_weights()]
    alone = torch.optim.AdamW(whole)
    for _ in range(2):
        alone.zero_grad()
        loss_of([partial(layer, w) for w in whole], slice(None)).backward()
        alone.step()
    worst = 0.0
    pairs = [*zip(weights, whole), *zip(moments(optimizer), moments(alone))]
    for ours, right in pairs:
        part = local_part(ours).detach()
        shards = right.detach().chunk(right.numel() // part.numel())
        expected = shards[dist.get_rank() % len(shards)]
        gap = (part - expected).abs().max() / right.abs().max()
        worst = max(worst, gap.item())
    return worst


def traffic_units(sent: int) -> float:
    """Bytes sent, in units of what a rank sends in one all-gather of all parameters."""
    ranks = dist.get_world_size()
    return sent / (4 * P * (ranks - 1) / ranks)


@requires("linux, ranks=4")
def every_rank_keeps_sixteen_bytes() -> None:
    """In data parallelism every rank keeps sixteen bytes for each parameter."""
    note(rf"""
        Does a model twice as large fit if twice as many cards train it? In
        [data parallelism](#a_rank_has_the_gradient_of_its_own_rows) each rank has a copy of the
        model and its own share of the batch, and the ranks
        [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) their gradients. We count what a rank
        sends, and what it keeps from step to step (so activations are left out).

        Four ranks train a model of four layers with $P$ = {P:,} parameters in `float32`. The
        optimizer is AdamW, which keeps two *moments* for each parameter: running means of its
        gradient and of the gradient's square. In each of two steps, `loss_of` runs the layers on
        eight of the `32` rows of a batch. `bytes_by_kind` adds up the bytes of parameters,
        gradients and moments on this rank:
    """)
    ranks = dist.get_world_size()
    weights = [w.requires_grad_() for w in rows_of_weights()]
    optimizer = torch.optim.AdamW(weights)
    for _ in range(2):
        optimizer.zero_grad()
        loss_of([partial(layer, w) for w in weights], my_rows()).backward()
        with Wire() as wire:
            for w in weights:
                gradient = gradient_of(w)
                dist.all_reduce(gradient)
                gradient /= ranks
        optimizer.step()
    assert difference_to_one_process(weights, optimizer) < ROUNDING, \
        "After two steps, weights and moments are those of one process, up to rounding."
    held = bytes_by_kind(weights, optimizer)  # @inspect held as B
    assert held == [4 * P, 4 * P, 8 * P], \
        "For each parameter, a rank keeps 4 bytes, its gradient 4, and its moments 8."
    note(r"""
        That is `4 + 4 + 8 = 16` bytes for each parameter, on every rank, as on a single card. So
        the answer is no: more ranks make no room for a larger model, because each keeps all of it.

        And what is sent? We measure traffic in *units*. One unit is what a rank sends in one
        [all-gather](#an_all_reduce_has_two_halves) of all parameters. An all-reduce is a
        reduce-scatter and an all-gather, and each of these two can be done with one unit. So the
        all-reduce of the gradients should send two units. `traffic_units` divides the counted bytes
        by one unit:
    """)
    sent = traffic_units(wire.sent)  # @inspect sent
    assert round(sent, 1) == 2.0, \
        "To all-reduce the gradients, a rank sends two units."
    figure(plot_state({"data parallelism": from_all_ranks(held)}, P),
        caption=r"""
            What each of four ranks keeps in data parallelism: everything. Each kind is drawn in
            four quarters, because later a rank keeps only one of them.
        """,
        alt=r"""
            Four rows, one for each rank, with four blocks of parameters, four of gradients and four
            of moments, which are twice as wide. All blocks are filled in all rows.
        """)
    question(r"""
        A model has `7` billion parameters and is trained with AdamW in `float32`. In data
        parallelism, how many GB do `64` ranks keep in all for parameters, gradients and moments?
    """, answer=64 * 16 * 7, check=64 * sum(held) / P * 7, unit="GB", hint="How many bytes does a single rank keep for each parameter?",
        why="Each rank keeps `16` bytes for each parameter, `112` GB, whatever the others keep. `64` ranks keep `64` times that.",
        wrong={"That is a single rank.": 112})


@requires("linux, ranks=4")
def each_rank_updates_a_shard() -> None:
    """ZeRO's first stage shards the moments, and sends no more than before."""
    note(r"""
        In [data parallelism](#every_rank_keeps_sixteen_bytes) each rank has a copy of the model,
        and after the all-reduce all have the same gradients. So all ranks compute the same update,
        and each keeps AdamW's moments, two numbers for each parameter, for it. That is done once
        too often on every rank but one. Why not let each of four ranks update a fourth of the
        parameters, its *shard*? Then it needs only the moments of its shard. This is the first
        stage of *ZeRO* [@zero]. After the backward pass, a step goes like this:

        1. A [reduce-scatter](#an_all_reduce_has_two_halves) leaves each rank the sum of all ranks'
           gradients for its shard.
        2. Each rank updates its shard.
        3. An all-gather brings the updated shards to all ranks.

        The reduce-scatter and the all-gather are the two halves of an all-reduce, so a rank sends
        no more than before.

        In the code, a model of four layers has one row of numbers for each layer in `weights`. A
        rank's shard is a quarter of each row, as a view: where AdamW changes the shard, it changes
        the row. `ring_reduce_scatter` and `ring_all_gather` are our own
        [ring](#a_ring_sends_less_than_twice_the_tensor), which changes tensors in place:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    weights = [w.requires_grad_() for w in rows_of_weights()]
    shards = [nn.Parameter(w.detach().chunk(ranks)[rank]) for w in weights]
    optimizer = torch.optim.AdamW(shards)
    for _ in range(2):
        for w in weights:
            w.grad = None
        loss_of([partial(layer, w) for w in weights], my_rows()).backward()
        with Wire() as wire:
            for w, shard in zip(weights, shards):  # step 1
                shard.grad = ring_reduce_scatter(gradient_of(w).chunk(ranks))
                shard.grad /= ranks
            optimizer.step()  # step 2
            for w in weights:  # step 3
                ring_all_gather(w.detach().chunk(ranks))
    assert difference_to_one_process(weights, optimizer) < ROUNDING, \
        "After two steps, all weights are those of one process, up to rounding."
    held = bytes_by_kind([*weights, *shards], optimizer)  # @inspect held as B
    assert held == [4 * P, 4 * P, 8 * P // ranks], \
        "A rank keeps all parameters, all gradients, and a fourth of the moments."
    assert round(traffic_units(wire.sent), 1) == 2.0, \
        "A rank sends as much as in two all-gathers of all parameters."
    figure(plot_state({"stage one": from_all_ranks(held)}, P), caption=r"""
        What each rank keeps in the first stage: all parameters, all gradients, and the moments of
        its own shard.
    """,
        alt="Four rows of blocks. All parameters and gradients are filled; of the moments, one block in each row.")
    misbelief("Sharding the moments costs extra traffic.", rf"""
        It costs none. In a step of the first stage, a rank sent as much as in
        {traffic_units(wire.sent):.1f} all-gathers of all parameters. Data parallelism sends the
        same, because its all-reduce is a reduce-scatter and an all-gather. Only the update has
        moved between the two.
    """)
    question(r"""
        `16` ranks train a model of `10` billion parameters with the first stage. A parameter takes
        `4` bytes, its gradient `4`, and its moments `8`. How many GB does each rank keep?
    """, answer=(8 + 8 / 16) * 10, check=(held[0] + held[1]) / P * 10 + 8 * 10 / 16, unit="GB",
        wrong={"Parameters and gradients are not sharded here.": 10, "That is without sharding.": 160},
        hint="Which of the three kinds is cut into `16` shards?",
        why="Parameters and gradients take `8` bytes for each parameter on every rank. Of the moments' `8` bytes a rank keeps a sixteenth, `0.5`. `8.5 * 10` is `85` GB.")


@aside
@requires("linux, ranks=4")
def gradients_need_not_stay() -> None:
    """The second stage keeps only one shard of each gradient, as soon as its layer is done."""
    note(r"""
        In the [first stage of ZeRO](#each_rank_updates_a_shard) each of four ranks updates one
        shard, a fourth of the parameters. For that it needs only a fourth of the gradients. But
        until the end of the backward pass it keeps all of them. Can it drop the rest earlier?

        It can, because the gradient of a layer is complete as soon as the backward pass has left
        that layer. So the *second stage* does the reduce-scatter then: it leaves the rank the sum
        of all ranks' gradients for its shard, and the rest of the layer's gradient is dropped
        [@zero]. In the code, PyTorch calls our function `scatter` whenever the gradient of a layer
        is complete. The model has four layers. `most` is the largest number of bytes that whole
        gradients took at one time:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    weights = [w.requires_grad_() for w in rows_of_weights()]
    shards = [nn.Parameter(w.detach().chunk(ranks)[rank]) for w in weights]
    shard_of, most = dict(zip(weights, shards)), 0  # @unnoticed: 0: less than the bytes of a gradient
    optimizer = torch.optim.AdamW(shards)

    def scatter(w: Tensor) -> None:
        nonlocal most
        most = max(most, bytes_of(v.grad for v in weights))
        parts = gradient_of(w).chunk(ranks)
        shard_of[w].grad = ring_reduce_scatter(parts) / ranks
        w.grad = None

    for w in weights:
        w.register_post_accumulate_grad_hook(scatter)
    for _ in range(2):
        with Wire() as wire:
            loss_of([partial(layer, w) for w in weights], my_rows()).backward()
            optimizer.step()
            for w in weights:
                ring_all_gather(w.detach().chunk(ranks))
    assert difference_to_one_process(weights, optimizer) < ROUNDING, \
        "After two steps, all weights are those of one process, up to rounding."
    held = bytes_by_kind([*weights, *shards], optimizer)  # @inspect held as B
    assert held == [4 * P, 4 * P // ranks, 8 * P // ranks], \
        "A rank keeps all parameters, a fourth of the gradients and a fourth of the moments."
    assert most == 4 * P // LAYERS, \
        "At any time, the whole gradient of one layer is there at most."
    assert round(traffic_units(wire.sent), 1) == 2.0, \
        "A rank sends as much as in two all-gathers of the parameters, like the first stage."
    note(r"""
        So the second stage saves three fourths of the gradients' memory on four ranks, and costs no
        traffic: the same reduce-scatters happen, only earlier.
    """)
    question(r"""
        A parameter takes `4` bytes, its gradient `4` and its moments `8`. How many bytes for each
        parameter of the model does each of `8` ranks keep in the second stage, which shards
        gradients and moments?
    """, answer=4 + (4 + 8) / 8, check=held[0] / P + (16 * P - held[0]) / P / 8, unit="B",
        wrong={"That is the first stage.": 9, "The parameters are not sharded yet.": 2},
        why="All parameters take `4` bytes. Gradients and moments together take `12`, of which a rank keeps an eighth, `1.5`.")


class Gather(torch.autograd.Function):
    """Forward: all weights of a layer from its shards. Backward: the shard's mean gradient."""

    @staticmethod
    def forward(ctx: Any, shard: Tensor) -> Tensor:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        whole = shard.new_empty(ranks * shard.numel())
        parts = whole.chunk(ranks)
        parts[rank].copy_(shard)
        ring_all_gather(parts)
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        ranks = dist.get_world_size()
        return ring_reduce_scatter(gradient.clone().chunk(ranks)) / ranks


def run_from_shard(shard: Tensor, x: Tensor) -> Tensor:
    """All-gathers the weights of the layer that `shard` belongs to, and runs it on `x`."""
    return layer(Gather.apply(shard), x)


def run_and_drop(shard: Tensor, x: Tensor) -> Tensor:
    """Does the same, and keeps only `x` for the backward pass, which gathers the weights again."""
    y: Tensor = checkpoint(run_from_shard, shard, x, use_reentrant=False)
    return y


@requires("linux, ranks=4")
def weights_come_when_they_are_needed() -> None:
    """The third stage keeps one shard of everything, and fetches a layer's weights twice."""
    note(r"""
        A layer needs its weights only while it computes. So a rank need not keep the weights of all
        layers. In the *third stage* of [ZeRO](#each_rank_updates_a_shard), each of four ranks keeps
        one shard, a fourth, of everything: of weights, of gradients and of AdamW's moments. The
        rest comes when it is needed:

        - Forward, an [all-gather](#an_all_reduce_has_two_halves) collects the weights of a layer
          from all ranks. The layer runs, and the rank drops the weights.
        - Backward, another all-gather collects them again. A reduce-scatter then leaves each rank
          the sum of all ranks' gradients for its shard.

        Four ranks train a model of four layers. `run_and_drop` does this for one layer: it gathers
        the weights, runs the layer and keeps nothing but the layer's input. For the backward pass,
        it [runs the layer once more](#lecture_03.checkpointing_keeps_the_input_alone):
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    shards = [nn.Parameter(w.chunk(ranks)[rank].clone())
              for w in rows_of_weights()]
    optimizer = torch.optim.AdamW(shards)
    layers = [partial(run_and_drop, shard) for shard in shards]
    for _ in range(2):
        optimizer.zero_grad()
        with Wire() as wire:
            loss_of(layers, my_rows()).backward()
        optimizer.step()
    assert difference_to_one_process(shards, optimizer) < ROUNDING, \
        "After two steps, each shard is that of one process, up to rounding."
    held = bytes_by_kind(shards, optimizer)  # @inspect held as B
    assert sum(held) == 16 * P // ranks, \
        "Of each parameter's 4 + 4 + 8 = 16 bytes, a rank keeps a fourth on average."
    note(r"""
        How much is sent for that? One *unit* is what a rank sends in one all-gather of all
        parameters. A reduce-scatter in our ring sends as much:
    """)
    sent = traffic_units(wire.sent)  # @inspect sent
    assert round(sent, 1) == 3.0, \
        "In a step, a rank sends three units: two all-gathers and a reduce-scatter."
    without = [partial(run_from_shard, shard) for shard in shards]  # @hide
    saved = [saved_bytes_of(partial(loss_of, run, my_rows()), shards)
             for run in (without, layers)]  # @hide
    assert saved[0] > 4 * P, \
        "If the layers did not drop their weights, autograd would keep all of them."  # @hide
    assert saved[1] == 4 * WIDTH * (32 + 8 * LAYERS), \
        "Autograd keeps no weights: only the 32 rows of the batch, and the 8 rows that enter each layer."  # @hide
    figure(plot_state({"stage three": from_all_ranks(held)}, P), caption="What each rank keeps in the third stage: one shard of parameters, gradients and moments.",
        alt="Four rows of blocks. In each row one block of parameters, one of gradients and one of moments is filled.")
    note(r"""
        Data parallelism and the first two stages send two units, so the third sends half as much
        again. In return, all `16` bytes of each parameter (`4` for itself, `4` for its gradient,
        `8` for its moments) are divided by the number of ranks. So any model fits, if there are
        enough ranks.
    """)
    question(r"""
        A model of `70` billion parameters is trained in the third stage. Parameters, gradients and
        moments take `16` bytes for each parameter, and all of it is sharded. On how many ranks does
        each keep `17.5` GB?
    """, answer=16 * 70 / 17.5, check=next(g for g in range(1, 999) if sum(held) * ranks / P * 70 / g <= 17.5), unit="ranks",
        wrong={"That is the parameters alone.": 16}, hint="How many GB do all ranks keep together?",
        why="The state is `16 * 70 = 1120` GB in all, and `1120 / 17.5 = 64`.")


class Layer(nn.Module):
    """The function `layer` and its row of weights as a module, which is what FSDP takes."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = nn.Parameter(weights)

    def forward(self, x: Tensor) -> Tensor:
        return layer(self.weights, x)


class Collectives(Watching):
    """While it is active, `counts` counts the collectives that PyTorch runs, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def see(
        self, operation: Any, args: Any, kwargs: Any, made: Any
    ) -> None:  # @stepover
        if operation.namespace == "c10d":
            self.counts[operation.overloadpacket.__name__.strip("_")] += 1


@requires("linux, ranks=4")
def fsdp_does_the_same() -> None:
    """PyTorch's FSDP keeps and computes the same as the third stage by hand."""
    note(r"""
        Nobody has to shard a model by hand. PyTorch does it for any model, and calls it *FSDP*,
        fully sharded data parallelism [@fsdp]. It is the
        [third stage of ZeRO](#weights_come_when_they_are_needed): each rank keeps one shard, a part
        of all parameters, gradients and moments.

        One calls `fully_shard` for each layer. From then on, PyTorch collects the layer's weights
        from all ranks before the layer runs (an *all-gather*), forward and once more backward, and
        drops them afterwards. A *reduce-scatter* leaves each rank the summed gradients of its
        shard. We train a model of four layers on four ranks. `Collectives` counts these exchanges:
    """)
    ranks = dist.get_world_size()
    layers = [Layer(w) for w in rows_of_weights()]
    for each in layers:
        fully_shard(each, reshard_after_forward=True)
    weights = [each.weights for each in layers]
    optimizer = torch.optim.AdamW(weights)
    for _ in range(2):
        optimizer.zero_grad()
        with Wire() as wire, Collectives() as calls:
            loss_of(layers, my_rows()).backward()
        optimizer.step()
    assert difference_to_one_process(weights, optimizer) < ROUNDING, \
        "After two steps, each shard is that of one process, up to rounding."
    held = bytes_by_kind(weights, optimizer)  # @inspect held as B
    assert sum(held) == 16 * P // ranks, \
        "With FSDP, a rank keeps a fourth of each parameter's 4 + 4 + 8 = 16 bytes on average."
    counts = calls.counts  # @inspect counts
    assert counts["allgather_base"] == 2 * LAYERS, \
        "For four layers, FSDP does eight all-gathers, two for each."
    assert counts["reduce_scatter_base"] == LAYERS, \
        "It does four reduce-scatters, one for each layer."
    sent = traffic_units(wire.sent)  # @hide
    assert round(sent, 1) == 4.0, \
        "In all-gathers of all parameters, a rank sends four here: two, and gloo's reduce-scatter, which sends two."  # @hide
    note(r"""
        So each layer takes three exchanges in a step. Each of them sends all of the layer but the
        rank's own shard, if a reduce-scatter is as cheap as an all-gather. Data parallelism
        all-reduces the gradients, which is as much as two such exchanges. So FSDP sends one and a
        half times as much [@zero], and keeps only a part of the state. (The library of our
        processors is not that cheap:
        [its reduce-scatter sends a whole all-reduce](#a_ring_sends_less_than_twice_the_tensor).)
    """)
    question(r"""
        A layer has `1` GB of weights, in shards on `8` ranks. In a step of FSDP, each rank takes
        part in two all-gathers of the weights and in a reduce-scatter of the gradients, and each of
        these sends `7/8` of a GB. How many GB does a rank send for this layer?
    """, answer=3 * 7 / 8, check=(7 + 7 + 7) * (1 / 8), unit="GB",
        wrong={"That is data parallelism.": 2 * 7 / 8, "That is with a reduce-scatter that costs as much as an all-reduce.": 4 * 7 / 8},
        hint="How many collectives does a layer take in a step?",
        why="Two all-gathers and a reduce-scatter send as much each: all but the rank's own eighth, `7 / 8` GB.")


def more_ranks_keep_less_each() -> None:
    """Only what is sharded shrinks with more ranks."""
    note(rf"""
        A model of `13` billion parameters is trained with AdamW in `float32`. For each parameter,
        the parameter takes `4` bytes, its gradient `4`, and the two moments of AdamW `8`. Will that
        fit on H100 cards, with {CARDS["H100 SXM"].memory / 1e9:.0f} GB each? It depends on what is
        *sharded*: divided among the ranks, so that each keeps only one part. What is not sharded,
        every rank keeps whole. The stages of [ZeRO](#each_rank_updates_a_shard) shard more and
        more. With $P$ parameters on $G$ ranks:

        [@tab:stages]: Bytes that each rank keeps, and all-gathers of all parameters that would send as much as it sends in a step.

        | | keeps | sends |
        |---|---|---|
        | data parallelism: nothing is sharded | $16P$ | $2$ |
        | stage one: moments are sharded | $8P + 8P/G$ | $2$ |
        | stage two: moments and gradients | $4P + 12P/G$ | $2$ |
        | stage three: everything | $16P/G$ | $3$ |

        Take stage two on `8` ranks. Each keeps all parameters, `4 * 13 = 52` GB, and an eighth of
        gradients and moments, `12 * 13 / 8 = 19.5` GB. Together that is `52 + 19.5 = 71.5` GB,
        which fits, if activations fit into the rest. `keep` gives the bytes of each kind on one
        rank. `grid` collects its results from the figure below:
    """)
    sizes = {"parameters": 4, "gradients": 4, "moments": 8}
    assert sum(sizes.values()) == 16, "The state of a parameter has 16 bytes."
    sharded = {"data parallelism": {}, "stage one": {"moments"},
               "stage two": {"moments", "gradients"}, "stage three": sizes}

    def keep(stage: str, ranks: int) -> dict[str, float]:
        return {kind: 13e9 * size / (ranks if kind in sharded[stage] else 1)
                for kind, size in sizes.items()}

    assert sum(keep("stage two", 8).values()) == 71.5e9, \
        "In stage two on 8 ranks, each keeps 71.5 GB."
    memory = CARDS["H100 SXM"].memory  # @inspect memory as B
    grid = explore(keep, over={"stage": [*sharded], "ranks": [1, 2, 4, 8, 16, 32, 64, 128, 1024]},
        at={"stage": "stage one", "ranks": 8}, kind="stack", unit="B", limit=("memory of one H100", memory),
        do="Which stages ever fit on an H100? Choose a stage, then move the ranks.",
        see=r"""
            Data parallelism and stage one never fit, on any number of ranks. Among the numbers that
            the slider has, stage two fits first at `8` ranks, and stage three at `4`.
        """,
        caption="What each rank keeps of the state of a model of `13` billion parameters, with AdamW in `float32`.",
        alt="A bar of parameters, gradients and moments beside the memory of one card.")  # @hide
    fits = dict.fromkeys(sharded, 0)
    for (stage, ranks), state in grid.items():
        if not fits[stage] and sum(state.values()) <= memory:
            fits[stage] = ranks
    assert [*fits.values()] == [0, 0, 8, 4], \
        "Stages two and three fit on 8 and on 4 of these numbers of ranks, the others (0) on none."
    note(r"""
        More ranks help only with what is sharded, and only stage three sends more for it. In data
        parallelism nothing is, and in stage one parameters and gradients alone take `8 * 13 = 104`
        GB on every rank.
    """)
    question(r"""
        A model of `13` billion parameters is trained in stage two of ZeRO, which shards gradients
        and moments. How many GB does a rank keep at least, however many ranks there are?
    """, answer=4 * 13, check=round(grid["stage two", 1024]["parameters"] / 1e9), unit="GB", hint="Which of parameters, gradients and moments is whole on every rank in this stage?",
        why="Stage two shards gradients and moments, and every rank has all parameters: `13` billion of `4` bytes.",
        wrong={"Gradients are sharded in stage two.": 104})


@aside
@requires("linux, ranks=4")
def shards_within_copies_between() -> None:
    """FSDP sends less over slow links if each rank keeps more."""
    note(r"""
        Cards in one machine have fast links to each other, and slower ones to the cards of other
        machines. With [FSDP](#fsdp_does_the_same) each rank keeps one shard of all weights, so
        weights cross the slow links all the time. *Hybrid* sharding keeps a whole copy of the
        weights in each machine, cut into shards inside it. Then a rank finds all weights in its own
        machine. Only gradients cross between machines, as in data parallelism.

        How much does that save, and what does it cost? Four ranks train a model of four layers.
        Ranks 0 and 1 stand for one machine, and ranks 2 and 3 for another. With FSDP a shard is a
        fourth of the weights, with hybrid sharding it is half. A *mesh*, a table of the ranks,
        tells PyTorch so. `keeps` has the bytes that a rank keeps for each weight of `4` bytes, and
        `tables` has who sends how many bytes to whom in a step:
    """)
    meshes = {"FSDP": init_device_mesh("cpu", (4,), mesh_dim_names=("shard",)),
              "hybrid": init_device_mesh("cpu", (2, 2), mesh_dim_names=("copy", "shard"))}
    keeps, tables = {}, {}
    for name, mesh in meshes.items():
        layers = [Layer(w) for w in rows_of_weights()]
        for each in layers:
            fully_shard(each, mesh=mesh, reshard_after_forward=True)
        keeps[name] = bytes_of(each.weights for each in layers) / P
        # The first step sets up connections.
        for _ in range(2):  # @unnoticed: 2: any step but the first
            with Wire() as wire:
                loss_of(layers, my_rows()).backward()
        tables[name] = from_all_ranks(wire.to)
    assert keeps == {"FSDP": 1.0, "hybrid": 2.0}, \
        "For each weight a rank keeps 1 byte with FSDP, and 2 with hybrid sharding."  # @inspect keeps as B
    across = [sum(tables[name][r][s] for r in (0, 1) for s in (2, 3))
              for name in ("FSDP", "hybrid")]  # @inspect across as B
    less = across[0] / across[1]  # @inspect less as times
    assert less == 3.0, \
        "From one machine to the other, FSDP sends 3 times the bytes of hybrid sharding."
    figure(plot_traffic(tables), caption=r"""
        Bytes that each rank (row) sent to each other rank (column) in a step. Ranks 0 and 1 are one
        machine, ranks 2 and 3 the other.
    """,
        alt=r"""
            Two tables. With FSDP each rank sends as much to both of its neighbours. With hybrid
            sharding most goes between ranks 0 and 1 and between ranks 2 and 3.
        """)
    note(r"""
        So memory buys traffic: each rank keeps twice as many bytes, and a third crosses. This can
        be counted, in bytes of all weights. FSDP has two links from machine to machine. One carries
        two all-gathers, `2 * 3/4`, and the other a reduce-scatter, `6/4`, because
        [here it costs as much as an all-reduce](#a_ring_sends_less_than_twice_the_tensor). That
        makes `3`. With hybrid sharding, two ranks all-reduce the gradients of half the weights with
        one rank each, `2 * 1/2 = 1`.
    """)
    question(r"""
        `1024` cards stand in machines of `8`. A model has `100` GB of weights. It is sharded within
        each machine, and copied between machines. How many GB of weights does each card keep?
    """, answer=100 / 8, check=100 / 1024 * (1024 / 8), unit="GB",
        wrong={"That is with shards over all cards.": 100 / 1024},
        why="Each machine holds a whole copy, cut into `8` shards. More machines make more copies and no smaller shards.")
