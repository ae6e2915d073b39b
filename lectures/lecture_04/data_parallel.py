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
        Several ranks train one model together. Each has a copy of the model and some rows of the
        batch. Which gradient does a rank compute, and how do all ranks get the gradient of the
        whole batch?

        Take a model of one weight, and rows of one number each. The model's output is the weight
        times this number, and the loss is the mean of the outputs. So the gradient of the weight is
        the mean of the numbers.

        Two ranks share a batch of four rows, `0`, `2`, `10` and `20`:

        - Rank 0 has `0` and `2`, and computes the gradient `(0 + 2) / 2 = 1`.
        - Rank 1 has `10` and `20`, and computes the gradient `(10 + 20) / 2 = 15`.
        - The gradient of the whole batch is `(0 + 2 + 10 + 20) / 4 = 8`. That is the mean of both
          gradients, `(1 + 15) / 2 = 8`.

        If each rank updated its weight with its own gradient, the copies of the model would drift
        apart. So the ranks [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) their gradients
        and divide the sum by the number of ranks. That is the gradient of the whole batch, because
        all ranks have the same number of rows, and the mean of the means of equally large groups is
        the mean of all.

        Now four ranks: rank 0 has the rows `[0, 2]`, rank 1 has `[0, 20]`, rank 2 has `[0, 200]`,
        and rank 3 has `[0, 2000]`:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rows = 10.0**rank * torch.tensor([0, 2])  # @inspect rows
    weight = torch.tensor(1.0, requires_grad=True)
    loss = (weight * rows).mean()
    gradient = torch.autograd.grad(loss, weight)[0]  # @inspect gradient
    before = from_all_ranks([int(gradient)])  # @hide
    assert gradient == rows.mean(), \
        "A rank's gradient is the mean of its own rows."
    dist.all_reduce(gradient)  # adds up over ranks, in place
    summed = from_all_ranks([int(gradient)])  # @hide
    gradient /= ranks  # @inspect gradient
    batch = torch.tensor([0.0, 2, 0, 20, 0, 200, 0, 2000])
    everything = [row for part in from_all_ranks(rows.tolist()) for row in part]  # @hide
    assert batch.tolist() == everything, "The batch has the rows of all ranks."  # @hide
    assert gradient == batch.mean() == 277.75, \
        "After the all-reduce and the division, it is the mean of the whole batch."
    figure(plot_held({"before": before, "after": summed}),
        caption="The gradient on each rank before and after the all-reduce, not yet divided by the number of ranks.",
        alt=r"""
            Two panels. Before the all-reduce each rank has a value of its own color; afterwards all
            ranks have the same value, in all four colors.
        """)
    copy = torch.tensor(1.0, requires_grad=True)  # @hide
    (copy * [3.0, 5.0][rank % 2]).backward()  # @hide
    torch.optim.SGD([copy], lr=0.5).step()  # @hide
    copies = from_all_ranks(copy.item())  # @hide
    question(r"""
        Somebody forgets the all-reduce. Two ranks start with the same weight, `1`. Their gradients
        are `3` and `5`, and each subtracts half of its own gradient. How far apart are the two
        weights after the step?
    """, answer=abs((1 - 0.5 * 3) - (1 - 0.5 * 5)), check=max(copies) - min(copies),
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


def gradients_of(model: nn.Module, rows: Tensor, target: Tensor) -> Tensor:
    """The gradient of a model's mean loss on some rows, all weights in one vector."""
    F.mse_loss(model(rows), target).backward()
    gradients = (p.grad for p in model.parameters() if p.grad is not None)
    return torch.cat([gradient.flatten() for gradient in gradients])


@requires("linux, ranks=4")
def three_ways_to_the_same_gradient() -> None:
    """By hand, by PyTorch, or in one process: the gradients are the same."""
    note(r"""
        Does a real network get the same gradient
        [from four ranks](#a_rank_has_the_gradient_of_its_own_rows) as from a single process?

        Yes, because the loss is a mean over rows. Take four rows with the losses `[1, 3, 5, 7]`,
        two on each of two ranks. The means of the ranks are `(1 + 3) / 2 = 2` and
        `(5 + 7) / 2 = 6`, and the mean of both, `(2 + 6) / 2 = 4`, is the mean of all four. The
        gradient of a mean is the mean of the gradients. So if every rank has the same number of
        rows, the same holds for the gradients of any network that processes each row by itself and
        without randomness.

        We compute the gradient of a network of eight layers for a batch of `32` rows in three ways:

        - *In one process*, with all rows.
        - *By hand* on four ranks, with eight rows each: all-reduce the gradients, and divide the
          sum by the number of ranks.
        - *By PyTorch's* `DistributedDataParallel`, DDP for short, on four ranks. It wraps a model.
          During the backward pass it all-reduces the gradients and divides them by the number of
          ranks [@ddp].

        `network` makes the same network each time. `gradients_of` computes the mean squared error
        of a model over some rows, runs the backward pass, and returns all gradients in one vector:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = torch.randn(32, 64, dtype=torch.float64)  # the same on all ranks
    target = torch.randn(32, 64, dtype=torch.float64)
    expected = gradients_of(network(), x, target)  # in one process
    own = slice(8 * rank, 8 * rank + 8)  # this rank's eight rows
    by_hand = gradients_of(network(), x[own], target[own])
    assert not torch.allclose(by_hand, expected), \
        "Before the all-reduce, a rank's gradient differs from a single process's."  # @hide
    with Wire() as hand_wire:  # @hide
        dist.all_reduce(torch.ones_like(by_hand))
    dist.all_reduce(by_hand)
    by_hand /= ranks
    hand_agrees = torch.allclose(by_hand, expected)
    assert hand_agrees, \
        "By hand, the gradient equals that of one process, up to rounding."
    ddp = DistributedDataParallel(network())
    by_ddp = gradients_of(ddp, x[own], target[own])
    ddp_agrees = torch.allclose(by_ddp, expected)
    assert ddp_agrees, \
        "With DDP, the gradient also equals that of one process, up to rounding."
    with Wire() as ddp_wire:  # @hide
        gradients_of(ddp, x[own], target[own])
    formula = 2 * (ranks - 1) * expected.nbytes // ranks  # @hide
    ratios = hand_wire.sent / formula, ddp_wire.sent / formula  # @hide
    assert 1 < min(ratios) <= max(ratios) < 1.04, \
        "By hand and with DDP, a rank sends the bytes of an all-reduce of all gradients, plus a few headers."
    note(r"""
        By hand, each rank takes part in one [all-reduce](#a_ring_sends_less_than_twice_the_tensor)
        of the gradients. DDP may split it into several, with the same number of bytes in all. This
        number depends on the number of weights, and not on the number of rows. So with more rows on
        each rank, a step computes more and sends the same number of bytes.
    """)
    ddp = DistributedDataParallel(network())  # @hide
    row_losses = (ddp(x[own]) - target[own]).square().mean(dim=1)  # @hide
    row_losses.sum().backward()  # @hide
    by_sum = torch.cat([p.grad.flatten() for p in ddp.parameters() if p.grad is not None])  # @hide
    question(r"""
        A script computes the *sum* of the losses of a rank's eight rows instead of their mean, and
        trains with DDP on four ranks. By what factor is the result larger than the gradient of the
        batch's mean loss?
    """, answer=8, check=(by_sum @ expected / (expected @ expected)).item(), unit="times",
        wrong={"DDP still divides by the number of ranks.": 32, "DDP divides by the number of ranks, not of rows.": 1},
        hint="How large is each rank's gradient, and what does DDP do with the four?",
        why=r"""
            Each rank's gradient is `8` times that of its mean loss, and DDP still takes the mean
            over ranks. So the result is `8` times as large, and the step as well, with an optimizer
            that multiplies the gradient by a learning rate.
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
    """During the backward pass, DDP starts to send gradients in buckets, the last layers first."""
    note(r"""
        In [data parallelism](#a_rank_has_the_gradient_of_its_own_rows) the ranks all-reduce their
        gradients in each step. Must that wait until the backward pass is over?

        Not for most gradients, because the backward pass computes the last layer's gradient first.
        That gradient can be sent while the pass continues with the earlier layers. PyTorch's
        `DistributedDataParallel`, DDP, collects gradients in *buckets*. As soon as all gradients of
        a bucket are ready, DDP sends it, that is, it starts to all-reduce it.

        Here a network has eight layers, `0` to `7`, of `64 * 64` weights of `8` bytes. A bucket
        holds the gradients of two layers. `watched_ddp` wraps the network in DDP, with buckets of
        `size` bytes (DDP's own option, `bucket_cap_mb`, is in MiB), and records what happens in
        `events`: `[7]` when the gradient of layer `7` is ready, and `[7, 6]` when the bucket of
        layers `7` and `6` is sent. Only after the first step does DDP know in which order gradients
        become ready, and it rebuilds its buckets in this order. So we look at the second step:
    """)
    model = network()
    ddp, events = watched_ddp(model, size=2 * 64 * 64 * 8)
    x = torch.randn(8, 64, dtype=torch.float64)  # @unnoticed: 8: any number of rows
    ddp(x).square().mean().backward()  # the first step
    events.clear()
    ddp(x).square().mean().backward()  # the second step  # @inspect events
    assert events[:4] == [[7], [6], [7, 6], [5]], \
        "The bucket of layers 7 and 6 is sent before layer 5 is ready."
    assert events[-2:] == [[0], [1, 0]], \
        "The last bucket is sent at the end, when layer 0 is ready."
    buckets = [layers for layers in events if len(layers) > 1]  # @hide
    assert buckets == [[7, 6], [5, 4], [3, 2], [1, 0]], \
        "Each of the eight layers is in one of four buckets."  # @hide
    note(r"""
        So three of the four buckets start to be sent while the backward pass is still running. Only
        the last one starts to be sent after the computation has ended.
    """)
    figure(plot_backward(events), caption="The events of one backward pass of DDP, in the order in which they happened.",
        alt=r"""
            Two rows from left to right. In the upper one the layers finish, from the last to the
            first. In the lower one a bucket leaves after every other layer.
        """)
    question(r"""
        A bucket now holds the gradients of four of the eight layers. What share of all gradients is
        sent only after the computation has ended?
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
    """If ranks have unequal shares, the mean of their gradients need not be the gradient of the batch."""
    note(r"""
        Sequences differ in length, so two ranks may get different numbers of tokens. In
        [data parallelism](#a_rank_has_the_gradient_of_its_own_rows) each rank computes the gradient
        of the mean loss of its own share, and then the ranks take the mean of these gradients. Is
        the result still correct?

        Take ten `inputs` on four ranks: rank 0 has `[100]`, rank 1 has `[200, 200]`, rank 2 has
        `[300, 300, 300]`, and rank 3 has `[400, 400, 400, 400]`. The model is one `weight` times
        the input, and the loss is the mean output. So the gradient of the weight is the mean of the
        inputs. `batch` has all ten:
    """)
    rank = dist.get_rank()  # @hide
    inputs = torch.full((rank + 1,), 100.0 * (rank + 1))  # @hide
    batch = torch.tensor([100.0] + 2 * [200] + 3 * [300] + 4 * [400])  # @hide
    everything = [n for part in from_all_ranks(inputs.tolist()) for n in part]  # @hide
    assert batch.tolist() == everything, "The batch has the inputs of all ranks."  # @hide
    weight = torch.tensor(1.0, requires_grad=True)  # @hide
    loss = (weight * inputs).mean()
    gradient = torch.autograd.grad(loss, weight)[0]
    dist.all_reduce(gradient)  # adds up over ranks, in place
    averaged = gradient.item() / 4  # @inspect averaged
    assert averaged == (100 + 200 + 300 + 400) / 4 == 250, \
        "The mean of the four ranks' means is 250."
    correct = batch.mean().item()  # @inspect correct
    assert correct == (100 + 2 * 200 + 3 * 300 + 4 * 400) / 10 == 300, \
        "The mean of all ten inputs, which is the correct gradient, is 300."
    misbelief("Data parallelism always gives the gradient of the batch.", rf"""
        It does so for certain only with the same number of inputs on all ranks, because the mean
        over ranks counts each rank once. Here it gave {averaged:.0f} instead of {correct:.0f},
        because the single input of rank 0 counted as much as the four of rank 3 together.
    """)
    note(r"""
        The fix is to divide by the total number of inputs, here ten. The ranks compute this total
        with an all-reduce: before it, `count` is the number of this rank's inputs. Each rank adds
        up its own outputs and divides the *sum* by the total. (DDP
        [also divides by the number of ranks](#three_ways_to_the_same_gradient), so there, the loss
        has to be multiplied by this number.) Then the sum over ranks is the gradient of the batch:
    """)
    count = torch.tensor(float(len(inputs)))  # @hide
    dist.all_reduce(count)
    assert count.item() == len(batch) == 10, \
        "The four ranks have ten inputs in total."
    loss = (weight * inputs).sum() / count
    gradient = torch.autograd.grad(loss, weight)[0]
    dist.all_reduce(gradient)
    assert gradient.item() == correct, \
        "Divided by the total number of inputs, the sum over ranks is the correct gradient."
    losses = torch.tensor(100 * [2.0] + 300 * [4.0])  # @hide
    means = torch.stack([losses[:100].mean(), losses[100:].mean()])  # @hide
    question(r"""
        Rank 0 has `100` tokens with a mean loss of `2`, and rank 1 has `300` tokens with a mean
        loss of `4`. A script logs the mean of the two means. By how much is the mean loss of all
        `400` tokens larger than that?
    """, answer=(100 * 2 + 300 * 4) / 400 - (2 + 4) / 2, check=(losses.mean() - means.mean()).item(),
        why="The mean of the means is `3`. But three quarters of all tokens have a mean of `4`, so the mean of the batch is `0.75 * 4 + 0.25 * 2 = 3.5`.",
        wrong={"With means of `2` and `4`, they agree only if both ranks have the same number of tokens.": 0})
