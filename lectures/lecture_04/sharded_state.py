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
from napkin import RESERVE, room
from plots import RED, stacks
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint
from wire import Wire, from_all_ranks

from litbook import explore, figure, note, question, requires

from .collectives import ring_all_gather, ring_reduce_scatter
from .figures import plot_state


def sharded_state() -> None:
    """Sharded state."""
    note(r"""
        In data parallelism every GPU, or *rank*, keeps all parameters, all gradients and the
        optimizer's two moments. With many ranks, the same state is stored many times. *ZeRO* cuts
        it into *shards* instead, one for each rank; PyTorch's *FSDP* does so with all of it. This
        part does both, and counts what a rank keeps and what it sends.
    """)
    every_rank_keeps_sixteen_bytes()
    each_rank_updates_a_shard()
    weights_come_when_they_are_needed()
    fsdp_does_the_same()
    more_ranks_keep_less_each()


WIDTH, LAYERS = 64, 4
P = LAYERS * 8 * WIDTH**2  # parameters


def layer(weights: Tensor, x: Tensor) -> Tensor:
    """A feed-forward layer with a residual connection; `weights` has both matrices in one vector."""
    up, down = weights.chunk(2)
    hidden = F.gelu(x @ up.view(WIDTH, 4 * WIDTH))
    return x + hidden @ down.view(4 * WIDTH, WIDTH)


def initial_weights() -> list[Tensor]:  # @stepover
    """The weights before training: a vector for each of four layers, equal on all ranks."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(LAYERS, P // LAYERS, generator=generator) / WIDTH
    return [vector.clone().requires_grad_() for vector in vectors]


def batch() -> Tensor:  # @stepover
    """The 32 rows of the batch, equal on all ranks."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(32, WIDTH, generator=generator)


def loss(weights: Sequence[Tensor], rows: slice) -> Tensor:
    """The loss of the model on some rows of the batch; `weights` has a vector for each layer."""
    x = batch()[rows]
    for vector in weights:
        x = layer(vector, x)
    return x.square().mean()


def my_rows() -> slice:
    """The rows of the batch of 32 that this rank trains on, as a slice: the same number on each rank."""
    each = 32 // dist.get_world_size()
    return slice(each * dist.get_rank(), each * dist.get_rank() + each)


def my_part(whole: Tensor) -> Tensor:
    """This rank's shard of a vector, as a view."""
    return whole.detach().chunk(dist.get_world_size())[dist.get_rank()]


def moments_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:  # @stepover
    """The two moments that AdamW keeps for each parameter, in a list."""
    names = "exp_avg", "exp_avg_sq"
    return [state[n] for state in optimizer.state.values() for n in names]


def local_part(tensor: Tensor) -> Tensor:
    """The part of a tensor that this rank holds: a shard, or all of it if it is not sharded."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def bytes_of(tensors: Iterable[Tensor | None]) -> int:  # @stepover
    """Bytes that these tensors occupy on this rank. Memory that two tensors share counts once."""
    parts = [local_part(t) for t in tensors if t is not None]
    storages = [part.untyped_storage() for part in parts]
    return sum({s.data_ptr(): s.nbytes() for s in storages}.values())


def bytes_by_kind(
    tensors: Sequence[Tensor], optimizer: torch.optim.Optimizer
) -> list[int]:
    """Bytes on this rank of these parameters, of their gradients and of AdamW's moments."""
    gradients = bytes_of(t.grad for t in tensors)
    return [bytes_of(tensors), gradients, bytes_of(moments_of(optimizer))]


def trained_alone() -> tuple[list[Tensor], list[Tensor]]:  # @stepover
    """Weights and moments after a step of AdamW in one process, with all 32 rows."""
    weights = initial_weights()
    optimizer = torch.optim.AdamW(weights)
    loss(weights, slice(None)).backward()
    optimizer.step()
    return weights, moments_of(optimizer)


def agree(ours: Iterable[Tensor], expected: Iterable[Tensor]) -> bool:
    """Whether what this rank holds of each tensor is what is expected, up to rounding in float32."""
    pairs = [
        (local_part(a).detach(), b.detach())
        for a, b in zip(ours, expected, strict=True)
    ]
    return all((a - b).abs().max() < 1e-4 * b.abs().max() for a, b in pairs)


def traffic_units(sent: int) -> float:
    """Bytes sent, in units of what a rank sends in one all-gather of all parameters."""
    ranks = dist.get_world_size()
    return sent / (4 * P * (ranks - 1) / ranks)


def train_on_own_rows(
    weights: Sequence[Tensor], optimizer: torch.optim.Optimizer
) -> None:  # @stepover
    """A training step of data parallelism: gradients of own rows, an all-reduce of each, the update."""
    loss(weights, my_rows()).backward()
    for gradient in [w.grad for w in weights if w.grad is not None]:
        dist.all_reduce(gradient)
        gradient /= dist.get_world_size()
    optimizer.step()


@requires("linux, ranks=4")
def every_rank_keeps_sixteen_bytes() -> None:
    """With AdamW in float32, each data-parallel rank keeps 16 bytes per parameter."""
    note(r"""
        A model just fits on one GPU. You buy a second GPU. Does a model twice as large fit now?

        The simplest way to use both is
        [data parallelism](#a_rank_has_the_gradient_of_its_own_rows): each rank has a copy of the
        model and trains on its own rows of the batch. Then it does not fit, because each copy needs
        as much memory as before. With shards it would:
    """)
    bytes_each = [4.0, 4.0, 8.0]  # of parameters, gradients and moments  # @hide
    figure(plot_fit(bytes_each),
        caption=rf"""
            Memory for training, at {sum(bytes_each):.0f} bytes per parameter. `3` billion
            parameters need `48` GB, the whole memory of a GPU in this example (dashed). Copies of
            `6` billion need `96` GB on each of two GPUs, and two shards `48` GB on each.
        """,
        alt=r"""
            Three bars and a limit. The model fills one GPU up to the limit. A copy of the larger
            model goes far beyond it, and a shard of that model just fills it again.
        """)
    note(rf"""
        Count what a rank keeps for one parameter in `float32`:

        - The parameter itself needs `4` bytes.
        - Its gradient needs `4` bytes.
        - The optimizer AdamW keeps two *moments* of `4` bytes, running means of the gradient and of
          its square.

        That is `4 + 4 + 2 * 4 = 16` bytes. (Activations, which the layers save for the backward
        pass, are extra.) A tiny model of `3` parameters needs `3 * 16 = 48` bytes on one GPU. On
        two GPUs it needs `48` bytes on each.

        Data parallelism divides the rows and not the model: each rank runs its rows through all
        layers itself, with its own copy of the weights. So it also keeps the gradients and moments
        that update this copy.

        Check it on four ranks. `initial_weights` returns a model of {P:,} `parameters`.
        `train_on_own_rows` is one training step of data parallelism. `bytes_by_kind` returns the
        bytes that a rank then keeps: of parameters, gradients and moments:
    """)
    parameters = P  # @hide
    weights = initial_weights()  # the whole model, on every rank
    optimizer = torch.optim.AdamW(weights)
    train_on_own_rows(weights, optimizer)
    held = bytes_by_kind(weights, optimizer)  # @inspect held as B
    per_parameter = [part / parameters for part in held]  # @inspect per_parameter as B
    assert per_parameter == [4, 4, 8], \
        "Every rank keeps 4 bytes per parameter, 4 for its gradient, 8 for its moments."
    assert per_parameter == bytes_each, "The picture is drawn with these bytes."  # @hide
    expected_weights, expected_moments = trained_alone()  # @hide
    assert agree(weights, expected_weights), \
        "After a step, every rank has the weights of one process with all rows, up to rounding."  # @hide
    assert agree(moments_of(optimizer), expected_moments), \
        "Every rank has the moments of one process with all rows, up to rounding."  # @hide
    note("So the answer is no: with data parallelism alone, a second GPU shares the work, but makes no room for a larger model.")
    question(r"""
        `64` GPUs of `80` GB train a model with data parallelism and AdamW in `float32`. How many
        billion parameters can the model have, if activations needed no memory?
    """, answer=80 / 16, check=80 / (sum(held) / P), unit="billion",
        wrong={"That would need GPUs that divide the state. Here every rank keeps all of it.": 64 * 80 / 16},
        hint="What does the second GPU keep that the first one does not?",
        why=r"""
            Each of the `64` ranks keeps all `16` bytes of every parameter. So the model has to fit
            on a single GPU, and the other `63` change nothing: `80 / 16` billion.
        """)


def reduce_scatter(gradient: Tensor) -> Tensor:
    """Returns this rank's quarter of a gradient, a view, with the mean over ranks in it."""
    ranks = dist.get_world_size()
    quarter = ring_reduce_scatter(gradient.chunk(ranks))
    quarter /= ranks
    return quarter


def all_gather(weights: Tensor) -> None:
    """Brings each rank's quarter of a vector to all ranks, in place."""
    ring_all_gather(weights.detach().chunk(dist.get_world_size()))


@requires("linux, ranks=4")
def each_rank_updates_a_shard() -> None:
    """ZeRO's first stage shards the optimizer's moments, without extra traffic."""
    note(rf"""
        For each parameter, AdamW keeps two running means, of the gradient and of its square: its
        *moments*. In data parallelism
        [every rank keeps all of them](#every_rank_keeps_sixteen_bytes). Can each rank keep only
        some?

        Yes, because after the all-reduce of gradients all ranks compute the same update. It is
        enough if each rank updates one part of the parameters, its *shard*, and gives the result to
        the others. For that it needs only the moments of its shard. This is the first of three
        stages of *ZeRO*, a way to divide a model's state among ranks [@zero].

        By hand, take two ranks and the parameters $a = 10$ and $b = 20$. Rank 0 updates $a$, and
        rank 1 updates $b$. To keep it simple, the update subtracts the gradient. From its own rows
        of the batch, rank 0 has computed the gradients $1$ for $a$ and $5$ for $b$, and rank 1 $3$
        and $7$.

        1. A [reduce-scatter](#an_all_reduce_has_two_halves) gives each rank the mean gradient of
           its shard: `(1 + 3) / 2 = 2` to rank 0, and `(5 + 7) / 2 = 6` to rank 1.
        2. Each rank updates its shard: rank 0 computes `10 - 2 = 8`, and rank 1 computes
           `20 - 6 = 14`.
        3. An all-gather gives both ranks both new values, $8$ for $a$ and $14$ for $b$.

        This needs no extra traffic, because a reduce-scatter and an all-gather are the two halves
        of the all-reduce that they replace.

        Four ranks do these three steps with {P:,} parameters, all in one vector `weights`.
        `gradient` is their gradient on this rank's rows. `shard` is a view of this rank's quarter
        of `weights`, so an update of the shard changes `weights`. `Wire` counts the bytes that this
        rank sends, and `all_reduce_bytes` is the number of bytes that it sends in an all-reduce of
        `gradient`:
    """)
    parameters, ranks = P, dist.get_world_size()  # @hide
    weights = torch.cat(initial_weights()).detach().requires_grad_()  # @hide
    loss(weights.chunk(LAYERS), my_rows()).backward()  # @hide
    [gradient] = [w.grad for w in (weights,) if w.grad is not None]  # @hide
    with Wire() as all_reduce:  # @hide
        dist.all_reduce(gradient.clone())
    all_reduce_bytes = all_reduce.sent  # @hide
    shard = nn.Parameter(my_part(weights))  # @hide
    optimizer = torch.optim.AdamW([shard])  # has moments of the shard only
    with Wire() as wire:
        shard.grad = reduce_scatter(gradient)  # 1.
        optimizer.step()  # 2.
        all_gather(weights)  # 3.
    ratio = wire.sent / all_reduce_bytes  # @inspect ratio as .2f
    assert 0.99 < ratio < 1.01, \
        "A rank sends the same number of bytes as in an all-reduce of the gradients, up to headers."
    held = bytes_by_kind([weights], optimizer)  # @hide
    assert held == [4 * parameters, 4 * parameters, 8 * parameters // ranks], \
        "A rank keeps all parameters, the gradients of all of them, and a quarter of the moments."
    assert round(traffic_units(wire.sent), 1) == 2.0, \
        "These are two units plus headers."  # @hide
    assert bytes_of([weights, shard]) == held[0], \
        "The shard is a view of the weights, so it adds no bytes."  # @hide
    expected_weights, expected_moments = trained_alone()  # @hide
    assert agree([weights], [torch.cat(expected_weights)]), \
        "After a step, every rank has the weights of one process with all rows, up to rounding."  # @hide
    of_each_kind = [torch.cat(expected_moments[kind::2]) for kind in (0, 1)]  # @hide
    assert agree(moments_of(optimizer), map(my_part, of_each_kind)), \
        "Its moments equal its shard of the moments of one process, up to rounding."  # @hide
    figure(plot_state({"stage one": from_all_ranks(held)}, P), caption=r"""
        What each rank keeps in the first stage: all parameters, all gradients, and the moments of
        its own shard. (The backward pass computes all gradients on every rank, and the first stage
        keeps them.)
    """,
        alt="Four rows of blocks. All parameters and gradients are filled; of the moments, one block in each row.")
    dropped = shard.numel()  # @hide
    question(rf"""
        Somebody forgets the all-gather at the end of a step. The model has `{P}` parameters and
        trains on `4` ranks. How many of a rank's parameters are out of date after the step?
    """, answer=P * 3 // 4, check=P - dropped, unit="parameters",
        wrong={"Each rank has updated its own shard.": P, "That is the shard that is up to date.": P // 4},
        hint="Which parameters has a rank updated itself?",
        why=r"""
            A rank has updated only its own quarter. The other three quarters were updated on other
            ranks, and without the all-gather the rank continues with their old values. Then the
            four copies of the model differ, and no error message says so.
        """)


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


def run_and_drop(shard: Tensor, x: Tensor) -> Any:
    """Gathers a layer's weights, runs the layer on `x`, and drops the weights; the backward pass gathers them and runs the layer again."""
    return checkpoint(run_from_shard, shard, x, use_reentrant=False)


@requires("linux, ranks=4")
def weights_come_when_they_are_needed() -> None:
    """ZeRO's third stage keeps one shard of everything, and gathers each layer's weights twice."""
    note(rf"""
        In the first stages of [ZeRO](#each_rank_updates_a_shard) every rank keeps all weights. If
        they do not fit on one GPU, is training impossible?

        No, because a layer needs its weights only while it runs. Take a model of four layers with
        `1` GB of weights each, on four ranks. In the *third stage* a rank keeps a quarter of every
        layer, `4 * 1/4 = 1` GB. When a layer runs, its other three quarters arrive, and then they
        are dropped. So in the forward pass a rank needs its own `1` GB, and another `3/4` GB for
        the layer that runs.

        A step needs three exchanges for each layer:

        1. In the forward pass, an [all-gather](#an_all_reduce_has_two_halves) collects the layer's
           weights on all ranks.
        2. In the backward pass, a second all-gather collects them again, because they were dropped.
        3. A reduce-scatter then leaves each rank with the mean over ranks of its shard's gradients.
           Until then, a rank also has the gradients of the whole layer.

        Each of the three sends the same number of bytes, because a gradient has the dtype of its
        weight here. Data parallelism needs one all-reduce, that is, two such exchanges. So the
        third stage sends `3 / 2 = 1.5` times as much as data parallelism. If the batch is processed
        in several parts, and the weights are dropped after each, the third stage makes its
        exchanges for each part. Data parallelism still needs one all-reduce.

        We train a model of {P:,} `parameters` in four layers. `shards` has this rank's quarter of
        each layer. `run_and_drop` gathers a layer's weights, runs the layer on this rank's rows
        `x`, and drops the weights. Its backward pass does the second and the third exchange. `Wire`
        counts the bytes that this rank sends. `bytes_by_kind` returns the bytes that it keeps: of
        parameters, gradients and moments. `all_reduce_bytes` is what a rank sends if a ring
        all-reduces all gradients:
    """)
    parameters, ranks = P, dist.get_world_size()  # @hide
    shards = [nn.Parameter(my_part(w).clone()) for w in initial_weights()]  # @hide
    optimizer = torch.optim.AdamW(shards)  # @hide
    x = batch()[my_rows()]  # @hide
    all_reduce_bytes = 2 * (ranks - 1) / ranks * 4 * P  # @hide
    with Wire() as wire:
        for shard in shards:
            x = run_and_drop(shard, x)
        x.square().mean().backward()
    optimizer.step()
    held = bytes_by_kind(shards, optimizer)  # @inspect held as B
    assert sum(held) == 16 * parameters // ranks, \
        "A rank keeps a quarter of all parameters, gradients and moments."
    ratio = wire.sent / all_reduce_bytes  # with headers  # @inspect ratio as .2f
    assert round(ratio, 1) == 1.5, \
        "A rank sends one and a half times the bytes of an all-reduce of all gradients."
    assert round(traffic_units(wire.sent), 1) == 3.0, \
        "A rank sends three units plus headers, for two all-gathers and a reduce-scatter."  # @hide
    expected_weights, expected_moments = trained_alone()  # @hide
    assert agree(shards, map(my_part, expected_weights)), \
        "After a step, each shard equals that of one process, up to rounding."  # @hide
    assert agree(moments_of(optimizer), map(my_part, expected_moments)), \
        "The moments of each shard also equal those of one process, up to rounding."  # @hide
    with Wire() as two:  # @hide
        for part in batch()[my_rows()].chunk(2):
            for shard in shards:
                part = run_and_drop(shard, part)
            part.square().mean().backward()
    assert round(traffic_units(two.sent), 1) == 2 * 3.0, \
        "For a batch in two parts, a rank makes all three exchanges twice."  # @hide
    gathered = Gather.apply(shards[0])  # @hide
    assert gathered.nbytes == 4 * P // LAYERS, \
        "A gathered layer has all of its weights, however many ranks there are."  # @hide
    saved = [saved_bytes_of(partial(loss_by, run, shards), shards)
             for run in (run_from_shard, run_and_drop)]  # @hide
    assert saved[0] > 4 * P, \
        "If the layers did not drop their weights, autograd would keep all of them."  # @hide
    assert saved[1] == 4 * WIDTH * (32 + 8 * LAYERS), \
        "Autograd keeps no weights: only the 32 rows of the batch, and the 8 rows that enter each layer."  # @hide
    figure(plot_state({"stage three": from_all_ranks(held)}, P), caption="What each rank keeps in the third stage: one shard of parameters, gradients and moments.",
        alt="Four rows of blocks. In each row one block of parameters, one of gradients and one of moments is filled.")
    note(r"""
        In exchange for this traffic, the whole state, `16` bytes per parameter, is divided by the
        number of ranks. So with enough ranks, a model fits if a GPU has room for the weights and
        gradients of one layer, and for the activations.
    """)
    own = {(number, 0) for number in range(100)}  # fiftieths of each layer, on rank 0  # @hide
    while_one_runs = own | {(7, part) for part in range(50)}  # @hide
    question(r"""
        A model has `100` layers with `1` GB of weights each, on `50` ranks in the third stage. How
        many GB of weights does a rank need while it runs a layer? Count its shards of all layers,
        and the part of this layer that it does not hold.
    """, answer=100 / 50 + (1 - 1 / 50), check=len(while_one_runs) / 50, unit="GB",
        wrong={"The layer that runs has to be there as a whole.": 2, "That is the whole model.": 100},
        hint="What does a rank keep of every layer, and what arrives for the one that runs?",
        why=r"""
            A rank keeps a fiftieth of each layer, `100 / 50 = 2` GB. Of the layer that runs, the
            other `49 / 50` GB arrive. With more ranks, the first number shrinks, and the second
            approaches `1` GB.
        """)


def loss_by(
    run: Callable[[Tensor, Tensor], Tensor], shards: Iterable[Tensor]
) -> Tensor:
    """The loss on this rank's rows, with `run` for each layer."""
    x = batch()[my_rows()]
    for shard in shards:
        x = run(shard, x)
    return x.square().mean()


class Layer(nn.Module):
    """The function `layer` and its vector of weights as a module, which is what FSDP takes."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = nn.Parameter(weights.detach())

    def forward(self, x: Tensor) -> Tensor:
        return layer(self.weights, x)


class Collectives(Watching):
    """While active, counts how often PyTorch calls each collective; `counts` maps its name to that number."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def see(
        self, operation: Any, args: Any, kwargs: Any, made: Any
    ) -> None:  # @stepover
        if operation.namespace == "c10d":
            ordinary = {"allgather_base": "all-gather",
                        "reduce_scatter_base": "reduce-scatter"}
            name = operation.overloadpacket.__name__.strip("_")
            self.counts[ordinary.get(name, name)] += 1


@requires("linux, ranks=4")
def fsdp_does_the_same() -> None:
    """PyTorch's FSDP keeps one shard on each rank, and a step gives the same weights as in one process."""
    note(r"""
        A model's parameters, gradients and optimizer state do not fit on one GPU. How can you train
        it with PyTorch?

        Call `fully_shard` for each layer, and then for the whole model, if it has parameters
        outside these layers. (Here it has none.) Then each rank keeps only one part of all this
        state, its *shard*. That is enough, because a layer needs its other weights only while it
        runs: PyTorch gathers them just before, and drops them afterwards. The method is called
        *FSDP*, fully sharded data parallelism [@fsdp], and is the
        [third stage](#weights_come_when_they_are_needed) of ZeRO.

        By hand, take two ranks and a layer with the weights `[10, 20]`. Rank 0 keeps the $10$, and
        rank 1 keeps the $20$. In a training step there are three exchanges:

        1. Before the layer's forward pass, an [all-gather](#an_all_reduce_has_two_halves) gives
           `[10, 20]` to both ranks. After it, each rank drops the other's weight.
        2. Before its backward pass, a second all-gather gives `[10, 20]` to both ranks again.
        3. From its own rows of the batch, rank 0 has computed the gradients `[1, 5]`, and rank 1
           `[3, 7]`. A reduce-scatter gives each rank the mean gradient of its shard:
           `(1 + 3) / 2 = 2` to rank 0, and `(5 + 7) / 2 = 6` to rank 1.

        Then each rank updates its own weight.

        Four ranks train a `model` of four layers for one step, so expect `2 * 4 = 8` all-gathers
        and `4` reduce-scatters. `reshard_after_forward=True` means that weights are dropped after
        the forward pass. `x` holds this rank's rows of the batch; all ranks have the same number.
        `Collectives` counts the exchanges:
    """)
    ranks = dist.get_world_size()  # @hide
    model = nn.Sequential(*map(Layer, initial_weights()))  # @hide
    x = batch()[my_rows()]  # @hide
    for module in model:
        fully_shard(module, reshard_after_forward=True)
    optimizer = torch.optim.AdamW(model.parameters())
    with Collectives() as calls:
        model(x).square().mean().backward()
    optimizer.step()
    assert calls.counts["all-gather"] == 2 * 4, \
        "FSDP calls two all-gathers for each of the four layers."
    assert calls.counts["reduce-scatter"] == 4, \
        "FSDP calls one reduce-scatter for each layer."
    assert calls.counts.total() == 12 == 3 * LAYERS, "These are all collectives of a step."  # @hide
    weights = [*model.parameters()]  # @hide
    held = bytes_by_kind(weights, optimizer)  # @hide
    assert sum(held) == 16 * P // ranks, \
        "With FSDP, a rank keeps a fourth of the state: the 4 + 4 + 8 = 16 bytes of a fourth of the parameters."  # @hide
    expected_weights, expected_moments = trained_alone()  # @hide
    same = agree(weights, [my_part(w) for w in expected_weights])  # @hide
    assert same, \
        "After a step, each rank's shard is its part of the weights that one process gets with all rows, up to rounding."
    assert agree(moments_of(optimizer), map(my_part, expected_moments)), \
        "Each rank also has its shard of the moments of one process."  # @hide
    figure(plot_state({"FSDP": from_all_ranks(held)}, P), caption="What each rank keeps with FSDP: one shard of the parameters, of the gradients and of the moments.",
        alt="Four rows of blocks. In each row one block of parameters, one of gradients and one of moments is filled.")
    note(r"""
        So in this step FSDP makes three exchanges per layer. Each rank keeps a quarter of the
        state, and its quarter of the weights equals the same quarter after a step in one process
        with all rows, up to rounding.
    """)
    kept = nn.Sequential(*map(Layer, initial_weights()))  # @hide
    for module in kept:  # @hide
        fully_shard(module, reshard_after_forward=False)
    with Collectives() as fewer:  # @hide
        kept(x).square().mean().backward()
    question(r"""
        Somebody sets `reshard_after_forward` to `False`: gathered weights are kept until the
        backward pass. What share of the traffic of a step is saved, if all three exchanges send the
        same number of bytes?
    """, answer=1 / 3, check=1 - fewer.counts.total() / calls.counts.total(), unit="%", within=0.02,
        wrong={"The reduce-scatter of gradients is still needed.": 2 / 3, "One of the three exchanges is not needed then.": 0},
        hint="Why are weights gathered a second time?",
        why=r"""
            Weights that are still there do not have to be gathered again, so one of three exchanges
            is saved. The price is memory: after the forward pass, a rank holds all weights of the
            model.
        """)


def more_ranks_keep_less_each() -> None:
    """Only what is sharded shrinks with more ranks."""
    note(rf"""
        A model is too large for one GPU. How much of its state is left on each rank, if there are
        more ranks?

        The usual recipe keeps `16` bytes for each parameter: `2` for the weight in `bfloat16`, `2`
        for its gradient, and `3 * 4 = 12` for the optimizer, which stores two moments and a copy of
        the weight in `float32`. So $1$ billion parameters need `2 + 2 + 12 = 16` GB of state.

        Each stage of [ZeRO](#each_rank_updates_a_shard) *shards* more of it: it gives each rank
        only one part. A rank keeps, on four ranks and on any number $G$ of ranks:

        [@tab:stages]: What each rank keeps for $1$ billion parameters, in GB: weights, gradients, optimizer [@zero].

        | | four ranks | $G$ ranks |
        |---|---|---|
        | data parallelism: nothing is sharded | `2 + 2 + 12 = 16` | $2 + 2 + 12$ |
        | stage one: the optimizer is sharded | `2 + 2 + 12/4 = 7` | $2 + 2 + 12/G$ |
        | stage two: also the gradients | `2 + 2/4 + 12/4 = 5.5` | $2 + 2/G + 12/G$ |
        | stage three: also the weights | `2/4 + 2/4 + 12/4 = 4` | $2/G + 2/G + 12/G$ |

        With more ranks only the terms with $G$ shrink, because every rank keeps a full copy of the
        rest. So stage one never gets below `2 + 2 = 4` GB, and stage two never below `2` GB. Stage
        three has no such limit, apart from the layer that is in use.

        Now take $13$ billion parameters on H100 GPUs, with {CARDS["H100 SXM"].memory / 1e9:.0f} GB
        each. A tenth is [kept free](#lecture_03.checkpointing_lets_a_large_model_fit) for temporary
        results, so {room(CARDS["H100 SXM"].memory, RESERVE, 0) / 1e9:.0f} GB are available. Does
        stage two on `8` ranks fit?
    """)
    recipe = {"weights": 2, "gradients": 2, "optimizer": 12}  # @hide
    assert sum(recipe.values()) == 16, "The state of a parameter is 16 bytes."  # @hide
    sharded = {"data parallelism": [],
               "stage one": ["optimizer"],
               "stage two": ["optimizer", "gradients"],
               "stage three": ["optimizer", "gradients", "weights"]}  # @hide

    def keep(stage: str, ranks: int) -> dict[str, float]:  # @hide
        kept = {kind: 13e9 * size for kind, size in recipe.items()}
        for kind in sharded[stage]:
            kept[kind] /= ranks
        return kept

    memory = 72e9  # available on each GPU  # @hide
    assert memory == room(CARDS["H100 SXM"].memory, RESERVE, 0), "The memory that is available is 72 GB."  # @hide
    # Weights in full, an eighth of gradients and optimizer:
    per_parameter = 2 + 2 / 8 + 12 / 8  # @inspect per_parameter as B
    stage_two = 13e9 * per_parameter  # on each rank  # @inspect stage_two as B
    assert stage_two == sum(keep("stage two", 8).values()) == 48.75e9, \
        "In stage two on 8 ranks, a rank keeps 3.75 bytes per parameter: 48.75 GB for 13 billion parameters."
    assert stage_two < memory, \
        "That is less than the memory that is available on a GPU."
    per_billion = [sum(keep(stage, 4).values()) / 13e9 for stage in sharded]  # @hide
    assert per_billion == [16, 7, 5.5, 4], \
        "On 4 ranks the four rows of the table are 16, 7, 5.5 and 4 bytes per parameter."  # @hide
    grid = explore(keep, over={"stage": [*sharded], "ranks": [1, 2, 4, 6, 8, 16, 32, 64, 128, 1024]},
        at={"stage": "stage one", "ranks": 4}, kind="stack", unit="B", limit=("nine tenths of an H100's memory", memory),
        do="How many ranks does each stage need to fit on an H100? Choose a stage, then change the number of ranks.",
        see=r"""
            Data parallelism never fits. Among the slider's values, stage one first fits at `8`
            ranks, and stages two and three at `4`.
        """,
        caption="What each rank keeps of the state of a model of `13e9` parameters: weights and gradients in `bfloat16`, optimizer in `float32`.",
        alt="A bar of weights, gradients and optimizer next to the memory of one GPU.")  # @hide
    fits = dict.fromkeys(sharded, 0)  # @hide
    for (stage, ranks), state in grid.items():  # @hide
        if not fits[stage] and sum(state.values()) <= memory:
            fits[stage] = ranks
    assert [*fits.values()] == [0, 8, 4, 4], \
        "Data parallelism never fits, stage one first fits on 8 ranks, and stages two and three on 4."  # @hide
    question(r"""
        How many times as many parameters fit on `1024` ranks with stage three as with stage two?
        Both use the usual recipe. Count only the state.
    """, answer=(2 + 14 / 1024) / (16 / 1024), check=sum(grid["stage two", 1024].values()) / sum(grid["stage three", 1024].values()), unit="times",
        within=0.02,
        wrong={"Stage three shards the weights as well, and these are nearly all that is left.": 1},
        hint="In each stage, how many bytes per parameter are left on a rank?",
        why=r"""
            In stage two, every rank keeps `2` bytes per parameter, and `14 / 1024` of the rest. In
            stage three everything is sharded: `16 / 1024` bytes. The ratio is about `129`.
        """)


def plot_fit(kept: Sequence[float]) -> Figure:  # @hide
    """Memory that training needs on each GPU, with a limit at 48 GB."""
    rows = {"3 billion parameters on 1 GPU": 3, "6 billion, a copy on each of 2": 6, "6 billion, a shard on each of 2": 3}
    kinds = "parameters", "gradients", "AdamW's moments"
    bars = {name: {kind: n * size for kind, size in zip(kinds, kept, strict=True)} for name, n in rows.items()}
    fig = stacks(bars, "GB (dashed: what a GPU has)")
    fig.axes[0].vlines([48] * 3, [-0.4, -1.4, -2.4], [0.28, -0.72, -1.72], color=RED, ls="--")
    fig.axes[0].set_xticks([0, 24, 48, 72, 96])
    return fig
