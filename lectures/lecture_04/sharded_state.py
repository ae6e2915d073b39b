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
    weights: Iterable[Tensor], with_gradients: Iterable[Tensor],
    optimizer: torch.optim.Optimizer,
) -> list[int]:
    """Bytes on this rank of the parameters, of the gradients and of the moments."""
    gradients = bytes_of(t.grad for t in with_gradients)
    return [bytes_of(weights), gradients, bytes_of(moments(optimizer))]


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
        In data parallelism each rank has the whole model and its own rows of the batch, and the
        ranks all-reduce their gradients. What does a rank keep then, and what does it send in a
        step? Four ranks train a model of {LAYERS} feed-forward layers with AdamW, in `float32`.
        Each takes eight of the `32` rows of a batch. They make two steps. `bytes_by_kind` adds up
        the bytes of parameters, gradients and moments that a rank keeps. It is given the weights
        twice here, once as parameters and once as what holds the gradients:
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
        "Weights and moments are those of one process."
    held = bytes_by_kind(weights, weights, optimizer)  # @inspect held as B
    assert held == [4 * P, 4 * P, 8 * P], \
        "A rank keeps 4, 4 and 8 bytes for each of P parameters, gradients and moments."
    note(r"""
        With $P$ parameters, a rank keeps $4P$ bytes of parameters, $4P$ of gradients and $8P$ of
        AdamW's two moments. That is $16P$ on every rank, as on a single card. Adding ranks does not
        make room for a larger model.

        And what is sent? We measure it in *units* that do not depend on the model. One unit is what
        a rank sends in an all-gather of all parameters, $4P\,(G-1)/G$ bytes on $G$ ranks. An
        all-reduce is a reduce-scatter and an all-gather, which send as much each. So it should send
        two units. `traffic_units` divides the measured bytes by one unit:
    """)
    sent = traffic_units(wire.sent)  # @inspect sent
    assert round(sent, 1) == 2.0, \
        "The all-reduce of the gradients sends two units, beside headers."
    figure(plot_state({"data parallelism": from_all_ranks(held)}, P),
        caption=r"""
            What each rank keeps in data parallelism: everything. Each kind is drawn in four
            quarters, in the colours of the ranks that will own them once the state is sharded.
        """,
        alt=r"""
            Four rows, one for each rank, with four blocks of parameters, four of gradients and four
            of moments, which are twice as wide. All blocks are filled in all rows.
        """)
    question(r"""
        A model has `7` billion parameters and is trained with AdamW in `float32`. How many GB of
        state do `64` ranks keep in all, in data parallelism?
    """, answer=64 * 16 * 7, check=64 * sum(held) / P * 7, unit="GB", hint="How many bytes does a single rank keep?",
        why="Each rank keeps `16` bytes for each parameter, `112` GB, whatever the others keep. `64` ranks keep `64` times that.",
        wrong={"That is a single rank.": 112})


@requires("linux, ranks=4")
def each_rank_updates_a_shard() -> None:
    """ZeRO's first stage shards the moments, and sends no more than before."""
    note(r"""
        In data parallelism, all ranks have the same parameters and the same summed gradients. So
        all compute the same update, and each keeps AdamW's moments of all parameters for it. It is
        enough if each rank updates one part of the parameters, its *shard*. Then it needs the
        moments of its shard only. This is the first stage of *ZeRO* [@zero]. A step ends like this:

        1. A reduce-scatter brings each rank the summed gradients of its shard.
        2. Each rank updates its shard.
        3. An all-gather brings the updated shards to all ranks.

        The reduce-scatter and the all-gather are the halves of an all-reduce. So nothing is sent
        that data parallelism does not send.

        In the code, four ranks train a model of four layers, and `weights` has one row of numbers
        for each layer. A shard is a *view* of a quarter of a row: it shares the row's memory. So
        when AdamW updates the shards, it changes a quarter of each row. `ring_all_gather` writes
        the other three quarters into the row. (It and `ring_reduce_scatter` are
        [our own ring](#ring_reduce_scatter), because the reduce-scatter of gloo, the library that
        carries the data here, sends too much.)
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    weights = [w.requires_grad_() for w in rows_of_weights()]
    shards = [nn.Parameter(w.detach().chunk(ranks)[rank]) for w in weights]
    optimizer = torch.optim.AdamW(shards)  # its steps change the weights
    for _ in range(2):
        for w in weights:
            w.grad = None
        loss_of([partial(layer, w) for w in weights], my_rows()).backward()
        with Wire() as wire:
            for w, shard in zip(weights, shards):
                shard.grad = ring_reduce_scatter(gradient_of(w).chunk(ranks))
                shard.grad /= ranks
            optimizer.step()
            for w in weights:
                ring_all_gather(w.detach().chunk(ranks))  # in place
    assert difference_to_one_process(weights, optimizer) < ROUNDING, \
        "All weights are those of one process."
    held = bytes_by_kind([*weights, *shards], weights, optimizer)  # @inspect held as B
    assert held == [4 * P, 4 * P, 8 * P // ranks], \
        "A rank keeps all parameters and gradients, and a fourth of the moments."
    assert round(traffic_units(wire.sent), 1) == 2.0, \
        "It sends as much as two all-gathers, as data parallelism does."
    figure(plot_state({"stage one": from_all_ranks(held)}, P), caption=r"""
        What each rank keeps in the first stage: all parameters, all gradients, and the moments of
        its own shard.
    """,
        alt="Four rows of blocks. All parameters and gradients are filled; of the moments, one block in each row.")
    misbelief("Sharding the optimizer costs extra traffic.", rf"""
        It costs none. In a step of the first stage, a rank sent as much as
        {traffic_units(wire.sent):.1f} all-gathers of all parameters. In data parallelism it sends
        the same, for an all-reduce is a reduce-scatter and an all-gather. Only the update has moved
        between the two.
    """)
    question(r"""
        `16` ranks train a model of `10` billion parameters with the first stage. A parameter takes
        `4` bytes, its gradient `4`, and its moments `8`. How many GB does each rank keep?
    """, answer=(8 + 8 / 16) * 10, check=(held[0] + held[1]) / P * 10 + 8 * 10 / 16, unit="GB",
        wrong={"Parameters and gradients are not sharded here.": 10, "Without sharding.": 160},
        hint="Which of the three kinds is cut into `16` shards?",
        why="Parameters and gradients take `8` bytes for each parameter on every rank. Of the moments' `8` bytes a rank keeps a sixteenth, `0.5`. `8.5 * 10` is `85` GB.")


@aside
@requires("linux, ranks=4")
def gradients_need_not_stay() -> None:
    """The second stage keeps only one shard of each gradient, as soon as its layer is done."""
    note(r"""
        In the [first stage of ZeRO](#each_rank_updates_a_shard) each rank updates one shard of the
        parameters. For that it needs one shard of each gradient, which a reduce-scatter brings
        after the backward pass. But a layer's gradient is complete much earlier, as soon as the
        backward pass has left the layer. The second stage does the reduce-scatter then, and drops
        the rest of the gradient [@zero].

        Four ranks train a model of four layers. PyTorch calls a *hook*, a function of ours, when a
        gradient is complete. Our hook is `scatter`: it reduce-scatters the gradient, keeps this
        rank's shard, and drops the rest. `most` is the largest number of bytes that whole gradients
        took at one time:
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
        "All weights are those of one process."
    held = bytes_by_kind([*weights, *shards], shards, optimizer)  # @inspect held as B
    assert held == [4 * P, 4 * P // ranks, 8 * P // ranks], \
        "A rank keeps shards of gradients and moments, and all parameters."
    assert most == 4 * P // LAYERS, \
        "The whole gradient of one layer is there at a time."
    assert round(traffic_units(wire.sent), 1) == 2.0, \
        "It sends two all-gathers of the parameters, as the first stage does."
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


@requires("linux, ranks=4")
def weights_come_when_they_are_needed() -> None:
    """The third stage keeps one shard of everything, and fetches a layer's weights twice."""
    note(r"""
        A layer needs its weights only while it computes. So in the third stage of ZeRO, a rank
        keeps only one shard of everything: of weights, gradients and moments. For each layer, it
        does this:

        - Forward it all-gathers the layer's weights, runs the layer, and drops them.
        - Backward it all-gathers the weights once more. A reduce-scatter leaves it the gradient of
          its own shard.

        Four ranks train a model of four layers. `run_from_shard` all-gathers a layer's weights and
        runs the layer. Without more, autograd would keep these weights for the backward pass. So a
        [checkpoint](#lecture_03.checkpointing_keeps_the_input_alone) is put around it: it keeps
        nothing but the layer's input, and in the backward pass it runs the layer again, with
        another all-gather. `saved` has the bytes that autograd keeps without checkpoints and with
        them. A row of the batch has `64` numbers of `4` bytes. A rank trains on `8` of the `32`
        rows, but as a view of the batch, so all `32` stay:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    shards = [nn.Parameter(w.chunk(ranks)[rank].clone())
              for w in rows_of_weights()]
    optimizer = torch.optim.AdamW(shards)
    again = partial(checkpoint, run_from_shard, use_reentrant=False)  # @unnoticed: use_reentrant= dropped: the older way keeps as little
    layers = [partial(again, shard) for shard in shards]
    for _ in range(2):
        optimizer.zero_grad()
        with Wire() as wire:
            loss_of(layers, my_rows()).backward()
        optimizer.step()
    assert difference_to_one_process(shards, optimizer) < ROUNDING, \
        "Each shard is that of one process."
    held = bytes_by_kind(shards, shards, optimizer)  # @inspect held as B
    assert sum(held) == 16 * P // ranks, \
        "A rank keeps a shard of everything: 4 bytes for each parameter."
    sent = traffic_units(wire.sent)  # @inspect sent
    assert round(sent, 1) == 3.0, \
        "Two all-gathers and a reduce-scatter send three units."
    saved = [saved_bytes_of(partial(loss_of, run, my_rows()), shards)
             for run in ([partial(run_from_shard, s) for s in shards], layers)]  # @inspect saved as B
    assert saved[0] > 4 * P, \
        "Without a checkpoint, autograd keeps all weights, and more."
    assert saved[1] == 4 * WIDTH * (32 + 8 * LAYERS), \
        "With it, autograd keeps 32 rows of the batch, and 8 from each of the layers."
    figure(plot_state({"stage three": from_all_ranks(held)}, P), caption="What each rank keeps in the third stage: one shard of everything.",
        alt="Four rows of blocks. In each row one block of parameters, one of gradients and one of moments is filled.")
    note(r"""
        So the third stage sends three units, where a unit is one all-gather of all parameters: two
        all-gathers, and a reduce-scatter that costs as much. Data parallelism sends two, and so do
        the stages before. In return, a rank keeps `16` bytes for each parameter of its shard, and
        nothing for the others. So this stage can hold any model, if there are enough ranks.
    """)
    question(r"""
        A model of `70` billion parameters is trained with AdamW in the third stage. On how many
        ranks does each keep `17.5` GB?
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
        PyTorch's name for the third stage of ZeRO is *FSDP*, fully sharded data
        parallelism [@fsdp]: each rank keeps one shard of all parameters, gradients and moments.
        `fully_shard` is given a layer. From then on, PyTorch all-gathers the layer's parameters
        before the layer runs, forward and backward, and drops them afterwards. It reduce-scatters
        the gradients. We train a model of four layers on four ranks, and count these calls by
        `Collectives`:
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
        "Each shard is that of one process."
    held = bytes_by_kind(weights, weights, optimizer)  # @inspect held as B
    assert sum(held) == 16 * P // ranks, \
        "With FSDP a rank keeps a shard of everything: 4 bytes for each parameter."
    counts = calls.counts  # @inspect counts
    assert counts["allgather_base"] == 2 * LAYERS, \
        "FSDP does two all-gathers for each layer."
    assert counts["reduce_scatter_base"] == LAYERS, \
        "It does one reduce-scatter for each layer."
    note(r"""
        There are three collectives for each layer: two all-gathers and a reduce-scatter. Let one
        all-gather of all parameters be the unit of traffic. If a reduce-scatter costs as much,
        three units are sent. But we count four, because gloo, the library that carries the data
        here, [sends a whole all-reduce](#a_ring_sends_less_than_twice_the_tensor) in place of a
        reduce-scatter, and that is two units:
    """)
    sent = traffic_units(wire.sent)  # @inspect sent
    assert round(sent, 1) == 4.0, \
        "Two all-gathers send two units, and gloo's reduce-scatter two."
    note(r"""
        Where a reduce-scatter is as cheap as an all-gather, FSDP sends three units. Data
        parallelism sends two, for its all-reduce. So FSDP sends one and a half times as much
        [@zero].
    """)
    question(r"""
        A layer has `1` GB of weights, in shards on `8` ranks. In a step of FSDP, each rank takes
        part in two all-gathers of the weights and in a reduce-scatter of the gradients, and each of
        these sends `7/8` of a GB. How many GB does a rank send for this layer?
    """, answer=3 * 7 / 8, check=(7 + 7 + 7) * (1 / 8), unit="GB",
        wrong={"That is data parallelism.": 2 * 7 / 8, "That is with gloo's reduce-scatter.": 4 * 7 / 8},
        hint="How many collectives does a layer take in a step?",
        why="Two all-gathers and a reduce-scatter send as much each: all but the rank's own eighth, `7 / 8` GB.")


def more_ranks_keep_less_each() -> None:
    """Only what is sharded shrinks with more ranks."""
    note(r"""
        Each stage of ZeRO shards more. What is sharded is divided by the number of ranks, and the
        rest is on every rank. With AdamW in `float32`, a parameter takes `4` bytes, its gradient
        `4`, and its moments `8`. So with $P$ parameters on $G$ ranks:

        [@tab:stages]: Bytes that each rank keeps, and all-gathers of the parameters that it sends in a step.

        | | keeps | sends |
        |---|---|---|
        | data parallelism | $16P$ | $2$ |
        | stage one: moments are sharded | $8P + 8P/G$ | $2$ |
        | stage two: and gradients | $4P + 12P/G$ | $2$ |
        | stage three: and parameters | $16P/G$ | $3$ |

        With `13` billion parameters, which stages ever fit into the memory of an H100? `keep` gives
        the bytes of each kind on one rank, and `grid` has them for all stages and all numbers of
        ranks on the slider:
    """)
    sizes = {"parameters": 4, "gradients": 4, "moments": 8}
    assert sum(sizes.values()) == 16, "The state of a parameter has 16 bytes."
    shared = {"data parallelism": {}, "stage one": {"moments"},
              "stage two": {"moments", "gradients"}, "stage three": sizes}

    def keep(stage: str, ranks: int) -> dict[str, float]:
        return {name: 13e9 * size / (ranks if name in shared[stage] else 1)
                for name, size in sizes.items()}

    memory = CARDS["H100 SXM"].memory  # @inspect memory as B
    grid = explore(keep, over={"stage": [*shared], "ranks": [1, 2, 4, 8, 16, 32, 64, 128, 1024]},
        at={"stage": "stage one", "ranks": 8}, kind="stack", unit="B", limit=("memory of one H100", memory),
        do="Which stages ever fit on an H100? Choose a stage, then move the ranks.",
        see=r"""
            Data parallelism and the first stage never fit, on any number of ranks. Among the
            numbers that the slider has, the second fits first at `8` ranks, and the third at `4`.
        """,
        caption="What each rank keeps of the state of a model of `13` billion parameters, with AdamW in `float32`.",
        alt="A bar of parameters, gradients and moments beside the memory of one card.")  # @hide
    fits = dict.fromkeys(shared, 0)
    for (stage, ranks), state in grid.items():
        if not fits[stage] and sum(state.values()) <= memory:
            fits[stage] = ranks
    assert [*fits.values()] == [0, 0, 8, 4], \
        "Among these, stage two fits from 8 ranks on, three from 4; 0: none fits."
    question(r"""
        A model of `13` billion parameters is trained in the second stage of ZeRO. How many GB does
        a rank keep at least, however many ranks there are?
    """, answer=4 * 13, check=round(grid["stage two", 1024]["parameters"] / 1e9), unit="GB", hint="Which of parameters, gradients and moments is whole on every rank in this stage?",
        why="The second stage shards gradients and moments, and every rank has all parameters: `13` billion of `4` bytes.",
        wrong={"Gradients are sharded in the second stage.": 104})


@aside
@requires("linux, ranks=4")
def shards_within_copies_between() -> None:
    """FSDP sends less over slow links if each rank keeps more."""
    note(r"""
        With FSDP each rank keeps a shard of a layer's weights. It all-gathers the others before the
        layer runs, drops them after the forward pass, and gathers them again for the backward pass.
        If the links are slow, it can keep more and send less, in two ways:

        - *Keep the gathered weights* between the two passes, with `reshard_after_forward=False`.
          That saves the second all-gather.
        - *Shard within a machine only.* Cards within a machine have fast links, and machines have
          slower ones between them. *Hybrid* sharding keeps a copy of all weights in each machine,
          cut into shards there. Then only gradients cross between machines, as in data parallelism.

        How much does each of them keep and save? Four ranks train a model of four layers with $P$
        parameters of `4` bytes. Ranks 0 and 1 stand for one machine, and ranks 2 and 3 for another.
        A *mesh* gives each rank two coordinates, its machine and its place there. `between` are the
        bytes for each weight that a rank has between the two passes, and `units` is what it sends
        in a step, in all-gathers of all parameters:
    """)
    line, grid = (4,), (2, 2)  # shapes of the mesh
    ways = {"FSDP": (line, True), "kept": (line, False), "hybrid": (grid, True)}
    rank, tables, between, units = dist.get_rank(), {}, {}, {}
    for name, (shape, reshard) in ways.items():
        axes = ("copy", "shard") if name == "hybrid" else ("shard",)
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=axes)
        layers = [Layer(w) for w in rows_of_weights()]
        for each in layers:
            fully_shard(each, mesh=mesh, reshard_after_forward=reshard)
        # The first step sets up connections.
        for _ in range(2):  # @unnoticed: 2: any step but the first
            with Wire() as wire:
                loss = loss_of(layers, my_rows())
                between[name] = bytes_of(each.weights for each in layers) / P
                loss.backward()
        units[name] = traffic_units(wire.sent)
        tables[name] = from_all_ranks(wire.to)
    assert between == {"FSDP": 1.0, "kept": 4.0, "hybrid": 2.0}, \
        "A rank has 1 byte for each weight with FSDP, 4 if they are kept, 2 with hybrid sharding."  # @inspect between as B
    saved = units["FSDP"] - units["kept"]  # @inspect saved
    assert round(saved, 1) == 1.0, "Weights that are kept save one all-gather."
    across = [sum(tables[name][r][s] for r in (0, 1) for s in (2, 3))
              for name in ("FSDP", "hybrid")]  # @inspect across as B
    less = across[0] / across[1]  # @inspect less as times
    assert less == 3.0, \
        "FSDP sends 3 times as much between the machines as hybrid sharding."
    figure(plot_traffic({name: tables[name] for name in ("FSDP", "hybrid")}), caption=r"""
        Bytes that each rank (row) sent to each other rank (column) in a step. Ranks 0 and 1 are one
        machine, ranks 2 and 3 the other.
    """,
        alt=r"""
            Two tables. With FSDP each rank sends as much to both of its neighbours. With hybrid
            sharding most goes between ranks 0 and 1 and between ranks 2 and 3.
        """)
    note(r"""
        So memory buys traffic. Kept weights save one of two all-gathers, and every rank then has
        all weights between the passes. Hybrid sharding saves most of what crosses between machines,
        because only the gradients of a rank's shard cross there. In return there are as many copies
        of the weights as machines.
    """)
    question(r"""
        `1024` cards stand in machines of `8`. A model has `100` GB of weights. It is sharded within
        each machine, and copied between machines. How many GB of weights does each card keep?
    """, answer=100 / 8, check=100 / 1024 * (1024 / 8), unit="GB",
        wrong={"That is with shards over all cards.": 100 / 1024},
        why="Each machine holds a whole copy, cut into `8` shards. More machines make more copies and no smaller shards.")
