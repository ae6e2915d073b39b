"""Data parallelism: every rank has the whole model and a share of the batch."""
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel
from units import MiB
from wire import Wire, from_all_ranks

from litbook import aside, figure, misbelief, note, question, requires

from .figures import plot_backward, plot_held


def data_parallel() -> None:
    """Data parallelism."""
    note(r"""
        The simplest way to train on several GPUs is to give each of them the whole model and its
        own share of the batch. This is *data parallelism*. Only the gradients have to be exchanged.
        When is the result the same as on a single GPU?
    """)
    a_rank_has_the_gradient_of_its_own_rows()
    three_ways_to_the_same_gradient()
    buckets_leave_during_the_backward_pass()
    unequal_shares_give_a_wrong_mean()


@requires("ranks=4")
def a_rank_has_the_gradient_of_its_own_rows() -> None:
    """Each rank has the gradient of its own rows; the mean of all is the gradient of the batch."""
    note(r"""
        Four ranks train one model together. Each has a copy of the model and two of the eight rows
        of a batch. Which gradient does a rank compute, and how do all ranks get the gradient of the
        whole batch?

        Take a model of four weights. Its output for a row is the sum of the row's elements, each
        multiplied by its weight. The loss is the mean of the outputs. A weight multiplies one
        element of each row. If the weight grows by `1`, the loss grows by the mean of these
        elements, so this mean is the gradient of the weight.

        Rank 0 has the rows `[0, 1, 2, 3]` and `[2, 3, 4, 5]`. So its gradient of the first weight
        is `(0 + 2) / 2 = 1`, and its gradient of all four is the mean of both rows, `[1, 2, 3, 4]`.
        Rank `r` has these rows times `10**r`:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    table = torch.tensor([[0.0, 1, 2, 3], [2, 3, 4, 5]])
    rows = 10**rank * table
    weights = torch.ones(4, requires_grad=True)
    loss = (rows @ weights).mean()
    gradient, = torch.autograd.grad(loss, weights)
    before = from_all_ranks(gradient.long().tolist())  # as whole numbers
    assert before[0] == [1, 2, 3, 4], \
        "Rank 0 has the mean of its two rows as its gradient."
    assert before[1] == [10, 20, 30, 40], \
        "Rank 1 has the mean of its own two rows, a different gradient."
    note(r"""
        If each rank updated its weights with its own gradient, the four copies of the model would
        drift apart. So the ranks [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) their
        gradients and divide the sum by the number of ranks. That is the gradient of the whole
        batch, because all ranks have the same number of rows, and the mean of the means of equally
        large groups is the mean of all rows. For the first weight it is `1111 / 4 = 277.75`:
    """)
    dist.all_reduce(gradient)  # adds up over ranks, in place
    summed = from_all_ranks(gradient.long().tolist())
    gradient /= ranks  # @inspect gradient
    batch = torch.cat([10**r * table for r in range(ranks)])
    assert batch.shape == (8, 4), "The whole batch has 8 rows."  # @hide
    assert gradient[0] == 1111 / 4 == 277.75, \
        "The gradient of the first weight is 277.75."  # @hide
    assert torch.equal(gradient, batch.mean(0)), \
        "On each rank, the mean over ranks is the gradient of the whole batch."
    figure(plot_held({"before": before, "after the all-reduce": summed}),
        caption="The gradient on each rank before and after the all-reduce, not yet divided by the number of ranks.",
        alt=r"""
            Two panels. Before the all-reduce each rank has values of its own color; afterwards all
            ranks have the same values, in all four colors.
        """)
    question(r"""
        Somebody forgets the all-reduce. Two ranks start with the same weight, `1`. Their gradients
        are `3` and `5`, and each subtracts half of its own gradient. How far apart are the two
        weights after the step?
    """, answer=abs((1 - 0.5 * 3) - (1 - 0.5 * 5)), check=0.5 * (5 - 3),
        wrong={"Each rank has updated its own copy of the weight.": 0},
        hint="Which weight does each rank have after its own update?",
        why=r"""
            One rank has `1 - 1.5 = -0.5`, the other `1 - 2.5 = -1.5`. From now on they train two
            different models, and no error message says so.
        """)


def network() -> nn.Sequential:
    """A network of eight layers of 64 by 64 weights in float64, the same on every rank."""
    torch.manual_seed(0)
    pairs = ((nn.Linear(64, 64, bias=False), nn.GELU()) for _ in range(8))
    return nn.Sequential(*(nn.Sequential(*pair) for pair in pairs)).double()


def gradients_of(model: nn.Module) -> Tensor:
    """All gradients that a backward pass has left in a model, flattened into one vector."""
    gradients = (p.grad for p in model.parameters() if p.grad is not None)
    return torch.cat([gradient.flatten() for gradient in gradients])


@requires("linux, ranks=4")
def three_ways_to_the_same_gradient() -> None:
    """By hand, by PyTorch, or in one process: the gradients are the same."""
    note(r"""
        Does a real network get the same gradient
        [from four ranks](#a_rank_has_the_gradient_of_its_own_rows) as from a single process? And
        what do the ranks have to send to get it?

        The gradient is the same, because the loss is a mean over rows. If four ranks have eight
        rows each, the mean of their four means is the mean over all `32` rows. So the mean of their
        gradients is the gradient of the whole batch.

        For the traffic, take a gradient of twelve elements on four ranks. In an
        [all-reduce](#a_ring_sends_less_than_twice_the_tensor) each rank has four parts of three
        elements. It sends three parts while the sums are formed, and three while the sums are
        distributed: `2 * 3 = 6` parts, `6 * 3 = 18` elements. That is one and a half times the
        gradient. On many ranks it is nearly twice the gradient. The number of rows on a rank does
        not matter, because the size of the gradient depends on the weights and not on the batch.

        `network` makes a model of eight layers, with the same weights each time. We compute the
        gradient for a batch of `32` rows in three ways:

        - *In one process*, with all rows.
        - *By hand* on four ranks, with eight rows each. They all-reduce the gradient of each layer
          and divide it by four.
        - *By PyTorch's* `DistributedDataParallel`, DDP for short, on four ranks. It wraps a model,
          and all-reduces the gradients automatically during `backward()` [@ddp].
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    # Equal on all ranks:
    x, target = torch.randn(2, 32, 64, dtype=torch.float64)
    own = slice(8 * rank, 8 * rank + 8)  # this rank's rows
    # In one process.
    alone = network()
    F.mse_loss(alone(x), target).backward()  # @unnoticed: arguments swapped: the same loss
    # By hand.
    by_hand = network()
    loss = F.mse_loss(by_hand(x[own]), target[own])  # @unnoticed: arguments swapped: the same loss
    gradients = torch.autograd.grad(loss, [*by_hand.parameters()])
    first = gradients[0].clone()  # @hide
    with Wire() as hand_wire:
        for gradient in gradients:
            dist.all_reduce(gradient)
            gradient /= ranks
    # By DDP.
    by_ddp = network()
    wrapped = DistributedDataParallel(by_ddp)
    loss = F.mse_loss(wrapped(x[own]), target[own])  # @unnoticed: arguments swapped: the same loss
    with Wire() as ddp_wire:
        loss.backward()
    expected = gradients_of(alone)
    assert not torch.allclose(first.flatten(), expected[: first.numel()]), \
        "Before the all-reduce, a rank's gradient differs from a single process's."  # @hide
    assert torch.allclose(nn.utils.parameters_to_vector(gradients), expected), \
        "By hand, the gradient equals that of one process, up to rounding."
    assert torch.allclose(gradients_of(by_ddp), expected), \
        "With DDP, the gradient also equals that of one process, up to rounding."
    formula = 2 * (ranks - 1) * expected.nbytes // ranks  # @inspect formula as B
    assert formula == 1.5 * 8 * 64 * 64 * 8, \
        "Eight layers of 64 * 64 weights of 8 bytes have 262144 bytes of gradients; the formula is one and a half times that."
    ratios = hand_wire.sent / formula, ddp_wire.sent / formula  # @inspect ratios
    assert 1 < min(ratios) <= max(ratios) < 1.04, \
        "By hand and with DDP, a rank sends one and a half times the bytes of all gradients, plus a few headers."
    question(r"""
        A data-parallel run on `16` ranks waits for its all-reduces. Which of these reduce the share
        of the time in which it waits? Give `1` or `0` for each: twice as many rows on each rank;
        twice as many ranks, with the same number of rows on each; gradients of `2` bytes instead of
        `4`.
    """, answer=[1, 0, 1], check=[int(2 > 1), int(31 / 32 < 15 / 16), int(2 < 4)],
        hint="What is computed in a step, and what is sent?",
        why=r"""
            With more rows on each rank there is more to compute, and the gradients keep their size.
            With more ranks, each sends `2 * 31/32` instead of `2 * 15/16` times the gradients, a
            little more. Gradients of half the size halve the traffic.
        """)


def watched_ddp(
    model: nn.Module, size: int
) -> tuple[DistributedDataParallel, list[list[int]]]:
    """Wraps `model` in DDP; returns it, and a list in which it records the events of a backward pass.

    An event is `[layer]` when that layer's gradient is ready, and the list of a bucket's layers when the bucket is
    sent. A bucket is a group of gradients that are sent together, of `size` bytes.
    """
    events, world = list[list[int]](), dist.group.WORLD
    assert world is not None
    layer: dict[Tensor, int] = {p: i for i, p in enumerate(model.parameters())}

    def send(bucket: Any) -> Any:
        """Records the layers of a bucket, and all-reduces it as DDP does."""
        events.append([layer[p] for p in bucket.parameters()])
        return allreduce_hook(world, bucket)

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(
            lambda p: events.append([layer[p]])
        )
    ddp = DistributedDataParallel(model, bucket_cap_mb=size / MiB)
    ddp.register_comm_hook(None, lambda _, bucket: send(bucket))
    return ddp, events


@aside
@requires("ranks=4")
def buckets_leave_during_the_backward_pass() -> None:
    """DDP sends gradients in buckets, the last layers first, while the backward pass continues."""
    note(r"""
        In [data parallelism](#a_rank_has_the_gradient_of_its_own_rows) the ranks all-reduce their
        gradients in each step. Do the GPUs have to wait for that?

        Not for most of it, because the backward pass computes the gradient of the last layer first.
        That gradient can be sent while the pass continues with the earlier layers. PyTorch's
        `DistributedDataParallel`, DDP, collects gradients in *buckets*, and all-reduces a bucket as
        soon as it is full.

        Here a network has eight layers, `0` to `7`, and a bucket holds the gradients of two layers,
        `64 * 64` elements of `8` bytes each. `watched_ddp` wraps the network in DDP and records
        what happens: `[7]` when the gradient of layer `7` is ready, and `[7, 6]` when the bucket of
        layers `7` and `6` leaves. `order` lists the events of the third step:
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
    note(r"""
        So three of the four buckets leave while the backward pass is still running. Only the last
        one leaves when nothing is left to compute.
    """)
    figure(plot_backward(order), caption="The events of one backward pass of DDP, in the order in which they happened.",
        alt=r"""
            Two rows from left to right. In the upper one the layers finish, from the last to the
            first. In the lower one a bucket leaves after every other layer.
        """)
    question(r"""
        A bucket now holds the gradients of four of the eight layers. What share of all gradients is
        sent only when nothing is left to compute?
    """, answer=4 / 8, check=len([3, 2, 1, 0]) / len(model), unit="%", within=0.02,
        wrong={"That is with two layers in a bucket.": 2 / 8},
        hint="Which layers are in the last bucket?",
        why=r"""
            The last bucket holds layers `3` to `0`, half of all gradients, and is full only when
            layer `0` is ready. Smaller buckets leave less for the end, in more messages.
        """)


@aside
@requires("ranks=4")
def unequal_shares_give_a_wrong_mean() -> None:
    """If ranks have unequal shares, the mean of their gradients is not the gradient of the batch."""
    note(r"""
        Sequences differ in length, so two ranks may get different numbers of tokens. In
        [data parallelism](#a_rank_has_the_gradient_of_its_own_rows) each rank computes the gradient
        of the mean loss of its own share, and then the ranks take the mean of these gradients. Is
        the result still correct?

        Take ten inputs on four ranks: rank 0 has `[1]`, rank 1 has `[2, 2]`, rank 2 has
        `[3, 3, 3]`, and rank 3 has `[4, 4, 4, 4]`. The model is one weight times the input, and the
        loss is the mean output. So the gradient of the weight is the mean of the inputs:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    inputs = torch.full((rank + 1,), rank + 1.0)  # @inspect inputs
    weight = torch.ones((), requires_grad=True)
    gradient, = torch.autograd.grad((weight * inputs).mean(), weight)
    dist.all_reduce(gradient)  # adds up over ranks, in place
    averaged = gradient.item() / ranks  # @inspect averaged
    assert averaged == (1 + 2 + 3 + 4) / 4 == 2.5, \
        "The mean of the four ranks' means is 2.5."
    batch = torch.cat([torch.full((n,), float(n)) for n in (1, 2, 3, 4)])
    correct = batch.mean().item()  # @inspect correct
    assert correct == (1 + 4 + 9 + 16) / 10 == 3.0, \
        "The mean of all ten inputs, which is the correct gradient, is 3."
    misbelief("Data parallelism always gives the gradient of the batch.", rf"""
        It does so only if all ranks have the same number of inputs, because each rank has the same
        weight in the mean. Here it gave {averaged} instead of {correct:.0f}, because the single
        input of rank 0 counted as much as the four of rank 3 together.
    """)
    note(r"""
        The fix is to divide by the total number of inputs, here ten. The ranks compute this total
        with an all-reduce of their numbers of inputs. Each rank takes the *sum* over its own inputs
        and divides it by the total. Then the sum over ranks is the gradient of the batch:
    """)
    count = torch.tensor(float(len(inputs)))
    dist.all_reduce(count)
    assert count.item() == len(batch) == 10, \
        "The four ranks have ten inputs together."
    gradient, = torch.autograd.grad((weight * inputs).sum() / count, weight)
    dist.all_reduce(gradient)
    assert gradient.item() == correct, \
        "Divided by the total number of inputs, the sum over ranks is the correct gradient."
    question(r"""
        Rank 0 has `100` tokens with a mean loss of `2`, and rank 1 has `300` tokens with a mean
        loss of `4`. Somebody logs the mean of the two means. By how much is the mean loss of all
        `400` tokens larger than that?
    """, answer=(100 * 2 + 300 * 4) / 400 - (2 + 4) / 2, check=0.75 * 4 + 0.25 * 2 - 3,
        why="The mean of the means is `3`. But three quarters of all tokens have a mean of `4`, so the mean of the batch is `0.75 * 4 + 0.25 * 2 = 3.5`.",
        wrong={"They agree only if both have the same number of tokens.": 0})
