"""Data parallelism: every rank has the whole model and a share of the batch."""
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch._C._distributed_c10d import _DEFAULT_FIRST_BUCKET_BYTES as FIRST
from torch.nn.parallel import DistributedDataParallel
from units import MiB
from wire import HEADER, Wire, from_all_ranks

from litbook import aside, figure, misbelief, note, question, requires

from .collectives import difference
from .figures import plot_backward, plot_held


def data_parallel() -> None:
    """Data parallelism."""
    note(r"""
        The simplest way to train on several cards is to give each of them the whole model and its
        own share of the batch. This is *data parallelism*. Only the gradients have to be exchanged.
        When is the result the same as on a single card?
    """)
    a_rank_has_the_gradient_of_its_own_rows()
    three_ways_to_the_same_gradient()
    buckets_leave_during_the_backward_pass()
    unequal_shares_give_a_wrong_mean()


def gradient_of(p: Tensor) -> Tensor:
    """The gradient that a backward pass has left in `p.grad`. Raises `ValueError` if there is none."""
    if p.grad is None:
        raise ValueError("there is no gradient before a backward pass")
    return p.grad


@requires("ranks=4")
def a_rank_has_the_gradient_of_its_own_rows() -> None:
    """Each rank has the gradient of its own rows; the mean of all is the gradient of the batch."""
    note(r"""
        Four ranks train one model together. Each has a copy of it and two of the eight rows of a
        batch. Which gradient does a rank compute, and how do all get the gradient of the whole
        batch?

        Take a model of four weights. Its output for a row is the sum of the row's numbers, each
        times its weight, and its loss is the mean of the outputs. So the gradient of a weight is
        the mean of the numbers in its column. Rank 0 has the rows `[0, 1, 2, 3]` and
        `[2, 3, 4, 5]`, whose mean is `[1, 2, 3, 4]`. Rank `r` has these rows times `10**r`:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    table = torch.tensor([[0.0, 1, 2, 3], [2, 3, 4, 5]])
    rows = 10**rank * table
    weights = torch.ones(4, requires_grad=True)
    (rows @ weights).mean().backward()
    gradient = gradient_of(weights)
    before = from_all_ranks(gradient.long().tolist())
    assert before[0] == [1, 2, 3, 4], \
        "Rank 0 has the mean of its two rows as its gradient."
    assert before[1] == [10, 20, 30, 40], \
        "Rank 1 has the mean of its own two rows, a different gradient."
    note(r"""
        If each rank updated its weights with its own gradient, the four copies of the model would
        drift apart. So the ranks [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) their
        gradients: then each has the sum of all four. Divided by the number of ranks, it is the mean
        of the four gradients. That is the gradient of the whole batch of eight rows, because all
        ranks have equally many rows:
    """)
    dist.all_reduce(gradient)
    summed = from_all_ranks(gradient.long().tolist())
    gradient /= ranks
    batch = torch.cat([10**r * table for r in range(ranks)])
    assert batch.shape == (8, 4), "The whole batch has 8 rows."  # @hide
    assert torch.equal(gradient, batch.mean(0)), \
        "On each rank, the mean over ranks is the gradient of the whole batch."
    figure(plot_held({"before": before, "after the all-reduce": summed}),
        caption="The gradient on each rank before and after the all-reduce, not yet divided by the number of ranks.",
        alt=r"""
            Two panels. Before the all-reduce each rank has numbers of its own colour; afterwards
            all ranks have the same numbers, in all four colours.
        """)
    question(r"""
        Two ranks have the gradients `3` and `5` for a weight of `1`. They take the mean of the two,
        and then subtract `0.5` times the mean from the weight. Which weight do both have after
        that?
    """, answer=1 - 0.5 * (3 + 5) / 2, check=((1 - 0.5 * 3) + (1 - 0.5 * 5)) / 2,
        wrong={"That is with the sum of the gradients, not with their mean.": 1 - 0.5 * 8},
        hint="What is the gradient after the all-reduce and the division?",
        why="The mean of the gradients is `4`. Half of it is subtracted, so the weight goes from `1` to `-1`.")


ROUNDING = 1e-9  # what adding in another order may change in float64, relative to the gradient


def network() -> nn.Sequential:
    """A network of eight layers of 64 by 64 weights in float64, the same on every rank."""
    torch.manual_seed(0)
    pairs = ((nn.Linear(64, 64, bias=False), nn.GELU()) for _ in range(8))
    return nn.Sequential(*(nn.Sequential(*pair) for pair in pairs)).double()


def gradients(model: nn.Module) -> Tensor:
    """All gradients of a model, one after the other in one row of numbers."""
    return torch.cat([gradient_of(p).flatten() for p in model.parameters()])


@requires("linux, ranks=4")
def three_ways_to_the_same_gradient() -> None:
    """By hand, by PyTorch, or in one process: the gradients are the same."""
    note(r"""
        In *data parallelism* each rank has a copy of the model and a share of the batch. Each
        computes the gradient of its own rows, and then the ranks take the mean of all gradients.
        Does a real network get the same gradient like this as in a single process? `network` makes
        one of eight layers, with the same weights each time. Every rank draws the same batch of
        `32` rows. We give it to the network in three ways:

        - *In one process*, which takes all `32` rows.
        - *By hand* on four ranks. Each takes eight rows. Then the ranks
          [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) the gradient of one layer after the
          other, which leaves the sum on every rank, and divide it by four. The shares are equal, so
          this mean of four means is the mean of all rows.
        - *By PyTorch's* `DistributedDataParallel`, DDP for short, on four ranks. It wraps a model,
          and all-reduces the gradients by itself during `backward()` [@ddp].

        `Wire` counts the bytes that a rank sends:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, target = torch.randn(2, 32, 64, dtype=torch.float64)
    mine = slice(8 * rank, 8 * rank + 8)
    alone, by_hand, by_ddp = network(), network(), network()
    # In one process.
    F.mse_loss(alone(x), target).backward()  # @unnoticed: arguments swapped: the same loss
    right = gradients(alone)
    # By hand.
    F.mse_loss(by_hand(x[mine]), target[mine]).backward()  # @unnoticed: arguments swapped: the same loss
    assert not torch.allclose(gradients(by_hand), right), \
        "Before the all-reduce, a rank has another gradient than one process."
    with Wire() as by_hand_sent:
        for p in by_hand.parameters():
            gradient = gradient_of(p)
            dist.all_reduce(gradient)
            gradient /= ranks
    assert difference(gradients(by_hand), right) < ROUNDING, \
        "By hand, the gradient is that of one process, up to rounding."
    # By DDP.
    ddp = DistributedDataParallel(by_ddp)
    loss = F.mse_loss(ddp(x[mine]), target[mine])  # @unnoticed: arguments swapped: the same loss
    with Wire() as ddp_sent:
        loss.backward()
    assert difference(gradients(by_ddp), right) < ROUNDING, \
        "By DDP, too, the gradient is that of one process, up to rounding."
    note(r"""
        How much is sent for that? In an all-reduce on $G$ ranks, each sends $2\,(G-1)$ parts, a
        $G$th of the tensor each [@eq:all-reduce]. On four ranks that is `2 * 3 / 4 = 1.5` times the
        bytes of all gradients:
    """)
    formula = 2 * (ranks - 1) * gradients(alone).nbytes // ranks  # @inspect formula as B
    ratios = by_hand_sent.sent / formula, ddp_sent.sent / formula  # @inspect ratios
    assert 1 < min(ratios) <= max(ratios) < 1.04, \
        "By hand and by DDP, a rank sends the bytes of the formula, and a few headers."
    assert by_hand_sent.sent - formula == 8 * 36 * HEADER, \
        "By hand, the rest are the headers of eight all-reduces, 36 for each."  # @hide
    assert ddp_sent.sent - formula == 36 * HEADER, \
        "By DDP, the rest are 36 headers, because it sends all gradients in one all-reduce."  # @hide
    note(r"""
        The batch is not in the formula: a larger one has no more gradients. The *headers* are short
        notes that the library for sending adds to each message. DDP sends fewer of them, because
        all gradients of this small network fit into one all-reduce.
    """)
    question(r"""
        Llama-3-8B has `8030261248` parameters, each with a gradient of `2` bytes. In data
        parallelism on `16` ranks, how many GB does each send for the gradients of one step?
    """, answer=2 * 15 / 16 * 8030261248 * 2 / 1e9, check=30 * (2 * 8030261248 / 16) / 1e9, unit="GB", within=0.05,
        wrong={"That is half: each gradient has `2` bytes, and an all-reduce has two halves.": 15 / 16 * 16.060522496},
        hint=r"""
            How many GB are the gradients, and which share of them does an all-reduce on `16` ranks
            send?
        """,
        why="The gradients take `2` bytes each, `16` GB. An all-reduce on `16` ranks sends `2 * 15 / 16` times that. The batch does not matter.")


def watched_ddp(
    model: nn.Module, size: int
) -> tuple[DistributedDataParallel, list[list[int]]]:
    """`model` in DDP with buckets of `size` bytes, and a list that gets its events.

    An event is `[layer]` when that layer's gradient is ready, and all layers of a bucket when it leaves.
    """
    ranks, events = dist.get_world_size(), list[list[int]]()
    layer: dict[Tensor, int] = {p: i for i, p in enumerate(model.parameters())}

    def ready(p: Tensor) -> None:
        events.append([layer[p]])

    def send(bucket: Any) -> Any:
        """All-reduces a bucket, as DDP itself would, and notes its layers."""
        events.append([layer[p] for p in bucket.parameters()])
        mean = bucket.buffer().div_(ranks)
        sent = dist.all_reduce(mean, async_op=True).get_future()
        return sent.then(lambda done: done.value()[0])

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(ready)
    ddp = DistributedDataParallel(model, bucket_cap_mb=size / MiB)
    ddp.register_comm_hook(None, lambda _, bucket: send(bucket))
    return ddp, events


@aside
@requires("ranks=4")
def buckets_leave_during_the_backward_pass() -> None:
    """DDP sends gradients in buckets, the last layers first, while the backward pass goes on."""
    note(r"""
        In [data parallelism](#a_rank_has_the_gradient_of_its_own_rows) the ranks all-reduce their
        gradients in each step. If they waited for the end of the backward pass, the cards would
        have nothing to compute while they send. PyTorch's `DistributedDataParallel`, DDP, does not
        wait. The backward pass makes the gradient of the last layer first. DDP collects gradients
        in *buckets*, and all-reduces a bucket as soon as it is full, while the backward pass goes
        on with the layers before.

        Here is a network of eight layers, `0` to `7`, and a bucket holds the gradients of two
        layers, `64 * 64` numbers of `8` bytes each. `watched_ddp` wraps the network in DDP. It also
        writes down what happens: `[7]` when the gradient of layer `7` is ready, and `[7, 6]` when
        the bucket of layers `7` and `6` leaves. `order` has the events of the third step:
    """)
    model = network()
    ddp, events = watched_ddp(model, size=2 * 64 * 64 * 8)
    x = torch.randn(8, 64, dtype=torch.float64)  # @unnoticed: 8: any number of rows
    for _ in range(3):  # DDP makes its buckets after the first step  # @unnoticed: 3: two steps or more
        events.clear()
        loss = ddp(x).square().mean()
        loss.backward()
    order = [*events]  # @inspect order
    assert order[:4] == [[7], [6], [7, 6], [5]], \
        "When layers 7 and 6 are ready, their bucket leaves. Layer 5 is ready only after that."
    assert order[-2:] == [[0], [1, 0]], \
        "The last bucket leaves at the end, when layer 0 is ready."
    buckets = [layers for layers in order if len(layers) > 1]
    assert buckets == [[7, 6], [5, 4], [3, 2], [1, 0]], \
        "Each of the eight layers is in one of four buckets."
    default = DistributedDataParallel(network()).bucket_bytes_cap  # @inspect default as B
    assert (default, FIRST) == (25 * MiB, MiB), \
        "By default, a bucket of DDP holds 25 MiB, but the first one to leave 1 MiB."
    note(r"""
        So three of four buckets travel while the backward pass goes on. Only the last one leaves
        when nothing is left to compute. Smaller buckets make this last one shorter, and larger ones
        make fewer messages. DDP's default lies between. Its first bucket is small, so that sending
        begins early.
    """)
    figure(plot_backward(order), caption="The events of one backward pass of DDP, in the order in which they happened.",
        alt=r"""
            Two rows from left to right. In the upper one the layers finish, from the last to the
            first. In the lower one a bucket leaves after each second layer.
        """)
    note(r"""
        A batch that does not fit into memory is computed in parts, whose gradients add up. The
        ranks need to send only the sum, after the last part. The other parts run under `no_sync`,
        which keeps DDP from sending:
    """)
    events.clear()
    with ddp.no_sync():
        ddp(x).square().mean().backward()
    assert events == [[7], [6], [5], [4], [3], [2], [1], [0]], \
        "Under no_sync all eight layers become ready, and no bucket leaves."
    question(r"""
        The gradients of a model take `1000` MB. DDP sends them in buckets of `25` MB, and all but
        the last bucket leave before the backward pass ends. Which share of the bytes leaves before
        the end?
    """, answer=1 - 25 / 1000, check=(1000 // 25 - 1) / (1000 // 25), unit="%", within=0.02,
        why="`1000 / 25 = 40` buckets leave, and all but the last leave before the end: `39 / 40`.", wrong={"That is the last bucket, which leaves at the end.": 0.025})


@aside
@requires("ranks=4")
def unequal_shares_give_a_wrong_mean() -> None:
    """If ranks have unequal shares, the mean of their gradients is not the gradient of the batch."""
    note(r"""
        Texts differ in length, so two ranks may get unequally many tokens of a batch. In
        [data parallelism](#a_rank_has_the_gradient_of_its_own_rows) each rank takes the gradient of
        the mean loss of its own share, and then the ranks take the mean of these gradients. With
        unequal shares that is wrong.

        Take ten inputs on four ranks: rank 0 has `[1]`, rank 1 has `[2, 2]`, rank 2 has
        `[3, 3, 3]`, and rank 3 has `[4, 4, 4, 4]`. The model is one weight times the input, and the
        loss is the mean output. So the gradient of the weight is the mean of the inputs:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = torch.full((rank + 1,), rank + 1.0)  # @inspect mine
    weight = torch.ones((), requires_grad=True)
    (weight * mine).mean().backward()
    gradient = gradient_of(weight)
    dist.all_reduce(gradient)
    averaged = gradient.item() / ranks  # @inspect averaged
    assert averaged == (1 + 2 + 3 + 4) / 4 == 2.5, \
        "The mean of the four ranks' means is 2.5."
    batch = torch.cat([torch.full((n,), float(n)) for n in (1, 2, 3, 4)])
    whole = batch.mean().item()  # @inspect whole
    assert whole == (1 + 4 + 9 + 16) / 10 == 3.0, \
        "The mean of all ten inputs, which is the right gradient, is 3."
    misbelief("Data parallelism always gives the gradient of the batch.", rf"""
        It does so only if all ranks have equally many inputs. Here it gave {averaged} in place of
        {whole:.0f}, because the single input of rank 0 counted as much as the four of rank 3
        together.
    """)
    note(r"""
        The remedy is to divide by the number of all inputs, here ten. Each rank takes the *sum*
        over its own inputs and divides it by that number. Then the sum over ranks is the gradient
        of the batch:
    """)
    count = torch.tensor(float(len(mine)))
    dist.all_reduce(count)
    assert count.item() == len(batch) == 10, \
        "The four ranks have ten inputs together."
    weight.grad = None
    ((weight * mine).sum() / count).backward()
    gradient = gradient_of(weight)
    dist.all_reduce(gradient)
    assert gradient.item() == whole, \
        "Divided by the number of all inputs, the sum over ranks is the right gradient."
    question(r"""
        Rank 0 has `100` tokens with a mean loss of `2`, and rank 1 has `300` tokens with a mean
        loss of `4`. By how much is the mean loss of all `400` tokens larger than the mean of the
        two means?
    """, answer=(100 * 2 + 300 * 4) / 400 - (2 + 4) / 2, check=0.75 * 4 + 0.25 * 2 - 3,
        why="The mean of the means is `3`. But three quarters of all tokens have a mean of `4`, so the mean of the batch is `0.75 * 4 + 0.25 * 2 = 3.5`.",
        wrong={"They agree only if both have equally many tokens.": 0})
