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
        Take a model of four weights. Its output is the product of a row of inputs with the weights,
        and its loss is the mean of the outputs. So the gradient of the weights is the mean of the
        rows. Each of four ranks has the same weights and two rows of its own. Rank 0 has the two
        rows of `table`, and rank `r` has them times `10**r`:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    table = torch.tensor([[0.0, 1, 2, 3], [2, 3, 4, 5]])
    weights = torch.ones(4, requires_grad=True)
    (10**rank * table @ weights).mean().backward()
    gradient = gradient_of(weights)
    before = from_all_ranks(gradient.long().tolist())
    assert before[0] == [1, 2, 3, 4], "Rank 0 has the mean of its two rows."
    assert before[1] == [10, 20, 30, 40], \
        "Rank 1 has the mean of its own two rows."
    note(r"""
        Each rank has a different gradient. If each updated its weights with that, the copies of the
        model would drift apart. An all-reduce gives all of them the same sum. Divided by the number
        of ranks, it is the mean of the four gradients. And that is the gradient of the whole batch
        of eight rows, because all ranks have equally many rows:
    """)
    dist.all_reduce(gradient)
    summed = from_all_ranks(gradient.long().tolist())
    gradient /= ranks
    batch = torch.cat([10**r * table for r in range(ranks)])
    assert batch.shape == (8, 4), "The whole batch has 8 rows."  # @hide
    assert torch.equal(gradient, batch.mean(0)), \
        "The mean over ranks is the gradient of the whole batch."
    figure(plot_held({"before": before, "after the all-reduce": summed}),
        caption="The gradient on each rank, before it is divided by the number of ranks.",
        alt=r"""
            Two panels. Before the all-reduce each rank has numbers of its own colour; afterwards
            all ranks have the same numbers, in all four colours.
        """)
    question(r"""
        Two ranks have the gradients `3` and `5` for a weight of `1`. They train with plain SGD at a
        learning rate of `0.5`. Which weight do both have after the step?
    """, answer=1 - 0.5 * (3 + 5) / 2, check=((1 - 0.5 * 3) + (1 - 0.5 * 5)) / 2,
        wrong={"That is with the sum of the gradients, not with their mean.": 1 - 0.5 * 8},
        hint="What is the gradient after the all-reduce and the division?",
        why="The mean of the gradients is `4`. SGD subtracts half of it, so the weight goes from `1` to `-1`.")


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
        In data parallelism, each rank computes the gradient of its own rows, and the mean over
        ranks is the gradient of the whole batch. Does that hold for a real network? `network` makes
        one of eight layers, with the same weights on every rank. It gets a batch of `32` rows in
        three ways:

        - In one process, which takes all rows.
        - By hand: each of four ranks takes eight rows, and then the ranks all-reduce the gradient
          of one weight matrix after the other.
        - By PyTorch's `DistributedDataParallel`, *DDP* for short, on the same four ranks. It wraps
          a model, and all-reduces the gradients by itself during `backward()` [@ddp].
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, target = torch.randn(2, 32, 64, dtype=torch.float64)
    mine = slice(8 * rank, 8 * rank + 8)
    alone, by_hand, inner = network(), network(), network()
    F.mse_loss(alone(x), target).backward()  # @unnoticed: arguments swapped: the same loss
    F.mse_loss(by_hand(x[mine]), target[mine]).backward()  # @unnoticed: arguments swapped: the same loss
    assert not torch.allclose(gradients(by_hand), gradients(alone)), \
        "Before the all-reduce, a rank has another gradient than one process."
    with Wire() as loop:
        for p in by_hand.parameters():
            gradient = gradient_of(p)
            dist.all_reduce(gradient)
            gradient /= ranks
    right = gradients(alone)
    assert difference(gradients(by_hand), right) < ROUNDING, \
        "By hand, the gradient is that of one process."
    ddp = DistributedDataParallel(inner)
    loss = F.mse_loss(ddp(x[mine]), target[mine])  # @unnoticed: arguments swapped: the same loss
    with Wire() as torchs:
        loss.backward()
    assert difference(gradients(inner), right) < ROUNDING, \
        "By DDP, too, the gradient is that of one process."
    note(r"""
        All three have the same gradient, up to rounding. How much was sent for it? An all-reduce on
        $G$ ranks sends $2\,(G-1)/G$ times the bytes of its tensor, by [@eq:all-reduce]. Both ways
        on four ranks send that for all gradients together. Besides, each all-reduce sends `36`
        headers of `48` bytes. DDP sends fewer of them, because it sends all gradients in one
        all-reduce:
    """)
    formula = 2 * (ranks - 1) * gradients(alone).nbytes // ranks  # @inspect formula as B
    assert loop.sent - formula == 8 * 36 * HEADER, \
        "By hand, there are the headers of eight all-reduces."
    assert torchs.sent - formula == 36 * HEADER, \
        "By DDP, there are those of a single one."
    question(r"""
        Llama-3-8B has `8030261248` parameters. In data parallelism on `16` ranks, how many GB does
        each send for the gradients of one step, in `bfloat16`?
    """, answer=2 * 15 / 16 * 8030261248 * 2 / 1e9, check=30 * (2 * 8030261248 / 16) / 1e9, unit="GB", within=0.05,
        wrong={"A parameter has `2` bytes in bfloat16.": 2 * 15 / 16 * 8.030261248,
               "That is one half of the all-reduce.": 15 / 16 * 16.060522496},
        hint=r"""
            How many bytes are the gradients, and how often does a rank send nearly all of them in
            an all-reduce?
        """,
        why="The gradients take `2` bytes each, `16` GB. An all-reduce on `16` ranks sends `2 * 15 / 16` times that. The batch does not matter.")


@aside
@requires("ranks=4")
def buckets_leave_during_the_backward_pass() -> None:
    """DDP sends gradients in buckets, the last layers first, while the backward pass goes on."""
    note(r"""
        In data parallelism, the ranks all-reduce their gradients. PyTorch's
        `DistributedDataParallel`, DDP, does not wait with that for the end of the backward pass,
        nor does it send each gradient by itself. It collects gradients in *buckets*. When a bucket
        is full, one all-reduce sends all of it. The backward pass makes the gradient of the last
        layer first. So the first bucket is full, and leaves, while most layers are still to come.

        To see that, we write down two kinds of events in a network of eight layers, `0` to `7`.
        `ready` is called when a layer's gradient is there, and notes the layer's number. `send` is
        called when a bucket leaves, and notes the numbers of all layers in it. DDP calls it in the
        place of its own all-reduce, so it has to all-reduce the bucket, too. A bucket holds two
        layers here:
    """)
    ranks, model = dist.get_world_size(), network()
    layer: dict[Tensor, int] = {}
    for i, p in enumerate(model.parameters()):
        layer[p] = i
    events: list[list[int]] = []
    def ready(p: Tensor) -> None:
        events.append([layer[p]])

    def send(bucket: Any) -> Any:
        events.append([layer[p] for p in bucket.parameters()])
        mean = bucket.buffer().div_(ranks)
        sent = dist.all_reduce(mean, async_op=True).get_future()
        return sent.then(lambda done: done.value()[0])

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(ready)
    ddp = DistributedDataParallel(model, bucket_cap_mb=2 * 64 * 64 * 8 / MiB)
    ddp.register_comm_hook(None, lambda _, bucket: send(bucket))
    x = torch.randn(8, 64, dtype=torch.float64)  # @unnoticed: 8: any number of rows
    for _ in range(3):  # DDP makes its buckets after the first step  # @unnoticed: 3: two steps or more
        events.clear()
        loss = ddp(x).square().mean()
        loss.backward()
    note(r"""
        These are the events of the third step. A list of one number is a layer whose gradient is
        ready, a list of two is a bucket that leaves:
    """)
    order = [*events]  # @inspect order
    assert order[:4] == [[7], [6], [7, 6], [5]], \
        "When layers 7 and 6 are ready, their bucket leaves; then comes layer 5."
    assert order[-2:] == [[0], [1, 0]], \
        "The last bucket leaves at the end, when layer 0 is ready."
    buckets = [layers for layers in order if len(layers) > 1]
    assert buckets == [[7, 6], [5, 4], [3, 2], [1, 0]], \
        "Each layer is in one bucket."
    default = DistributedDataParallel(network()).bucket_bytes_cap  # @inspect default as B
    assert (default, FIRST) == (25 * MiB, MiB), \
        "By default, a bucket of DDP holds 25 MiB, but the first one to leave 1 MiB."
    note(r"""
        So all buckets but the last travel while gradients are still being computed, and only the
        last has no work to hide behind. Large buckets mean few messages, and small ones mean a
        short last bucket. PyTorch's default lies between. Its first bucket is small, so that
        sending begins early.
    """)
    figure(plot_backward(order), caption="The events of one backward pass of DDP, in the order in which they happened.",
        alt=r"""
            Two rows from left to right. In the upper one the layers finish, from the last to the
            first. In the lower one a bucket leaves after each second layer.
        """)
    note(r"""
        A batch that does not fit into memory is computed in parts, whose gradients add up. Then the
        ranks need to send only the sum, after the last part. All other parts run under `no_sync`,
        where no bucket leaves:
    """)
    events.clear()
    with ddp.no_sync():
        ddp(x).square().mean().backward()
    assert events == [[7], [6], [5], [4], [3], [2], [1], [0]], \
        "Under no_sync all eight layers are ready, and no bucket leaves."
    question(r"""
        The gradients of a model take `1` GB, in equally large layers. DDP sends them in buckets of
        `25` MB, and all but the last leave before the backward pass ends. What share of the bytes
        leaves before the end?
    """, answer=1 - 25 / 1000, check=(1000 // 25 - 1) / (1000 // 25), unit="%", within=0.02,
        why="`1000 / 25 = 40` buckets leave, and all but the last leave before the end: `39 / 40`.", wrong={"That is the last bucket, which cannot.": 0.025})


@aside
@requires("ranks=4")
def unequal_shares_give_a_wrong_mean() -> None:
    """If ranks have unequal shares, the mean of their gradients is not the gradient of the batch."""
    note(r"""
        In data parallelism, each rank takes the mean over its share of the batch, and then the mean
        over ranks is taken. That is wrong if the shares differ in size, and they often do, because
        texts differ in length. Here rank 0 has one input, `1`; rank 1 has two, `2` and `2`; rank 2
        has three and rank 3 has four. The model is one weight times the input, so the gradient is
        the mean of the inputs:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = torch.full((rank + 1,), rank + 1.0)  # @inspect mine
    weight = torch.ones((), requires_grad=True)
    (weight * mine).mean().backward()
    gradient = gradient_of(weight)
    dist.all_reduce(gradient)
    averaged = gradient.item() / ranks  # @inspect averaged
    assert averaged == (1 + 2 + 3 + 4) / 4 == 2.5, \
        "The mean of the ranks' four means is 2.5."
    batch = torch.cat([torch.full((n,), float(n)) for n in (1, 2, 3, 4)])
    whole = batch.mean().item()  # @inspect whole
    assert whole == (1 + 4 + 9 + 16) / 10 == 3.0, \
        "The mean over all ten inputs, which is right, is 3."
    misbelief("Data parallelism gives the gradient of the batch.", r"""
        It does if all ranks have equally many examples. Otherwise an example counts for more on a
        rank that has few.
    """)
    note(r"""
        What helps is to divide by the number of all examples. Each rank takes the *sum* over its
        own examples, and divides it by the count of the whole batch. Then the sum over ranks is the
        gradient of the batch:
    """)
    count = torch.tensor(float(len(mine)))
    dist.all_reduce(count)
    assert count.item() == len(batch) == 10, \
        "The four ranks have ten examples together."
    weight.grad = None
    ((weight * mine).sum() / count).backward()
    gradient = gradient_of(weight)
    dist.all_reduce(gradient)
    assert gradient.item() == whole, \
        "Divided by the count of all examples, the sum is the gradient of the batch."
    question(r"""
        Rank 0 has `100` tokens with a mean loss of `2`, and rank 1 has `300` tokens with a mean
        loss of `4`. By how much is the mean loss of all `400` tokens larger than the mean of the
        two means?
    """, answer=(100 * 2 + 300 * 4) / 400 - (2 + 4) / 2, check=0.75 * 4 + 0.25 * 2 - 3,
        why="The mean of the means is `3`. But three quarters of all tokens have a mean of `4`, so the mean of the batch is `0.75 * 4 + 0.25 * 2 = 3.5`.",
        wrong={"They agree only if both have equally many tokens.": 0})
