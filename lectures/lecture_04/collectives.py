"""Collectives: what each rank holds before and after, and what crosses the wire."""
from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction

import torch
import torch.distributed as dist
from torch import Tensor
from wire import HEADER, Wire, from_all_ranks

from litbook import aside, explore, figure, note, question, requires

from .figures import plot_held, plot_traffic


def collectives() -> None:
    """Collectives."""
    note(r"""
        Several GPUs that train one model have to exchange tensors. They do it with a handful of
        operations, the *collectives*. Each of them defines what every GPU holds before and after
        it. We ask two questions about each: what is it good for, and how many bytes does it send?
    """)
    a_rank_sees_its_own_memory_alone()
    an_all_reduce_leaves_the_sum_everywhere()
    an_all_reduce_has_two_halves()
    the_kernel_counts_what_a_rank_sends()
    a_ring_passes_sums_to_the_next_rank()
    a_ring_sends_less_than_twice_the_tensor()
    an_all_to_all_transposes()
    few_messages_or_few_bytes()
    a_collective_needs_every_rank()


@requires("ranks=4")
def a_rank_sees_its_own_memory_alone() -> None:
    """A rank is a process with memory of its own."""
    note(r"""
        To train on several GPUs, we start one process for each GPU. Such a process is called a
        *rank*. All ranks run the same program, and each has a number: rank 0, rank 1, and so on. If
        rank 0 changes a tensor, do the other ranks see the change?

        No, because the operating system gives each process its own memory. When four ranks run
        `mine = ...`, there are four tensors of that name. A rank that needs the values of another
        rank has to be sent them.

        Four ranks ran the code below, on CPUs instead of GPUs. `dist` is `torch.distributed`,
        PyTorch's module for exchanges between ranks. Rank 0 makes the tensor `[1, 2, 3, 4]`, rank 1
        has `[10, 20, 30, 40]`, rank 2 has `[100, 200, 300, 400]`, and rank 3 has
        `[1000, 2000, 3000, 4000]`:
    """)
    rank = dist.get_rank()  # the number of this rank  # @inspect rank
    mine = 10**rank * torch.arange(1, 5)  # @inspect mine
    start = from_all_ranks(mine.tolist())  # @hide
    assert start[0] == [1, 2, 3, 4], "Rank 0 has the values 1 to 4."  # @hide
    assert start == [[10**r * n for n in (1, 2, 3, 4)] for r in range(4)], \
        "The other ranks have ten, a hundred and a thousand times these values."  # @hide
    note(r"""
        Now rank 0 sets an element of its tensor to `9`. `from_all_ranks` returns a list of all
        ranks' values, in the order of the ranks:
    """)
    if rank == 0:
        mine[0] = 9  # @unnoticed: 0: any element
    changed = from_all_ranks(mine.tolist())
    assert changed[0] == [9, 2, 3, 4], "The tensor of rank 0 has changed."
    assert changed[1:] == start[1:], \
        "The tensors of the other ranks have not changed."  # @hide
    assert changed[1] == [10, 20, 30, 40], \
        "The tensor of rank 1 has not changed."
    note(r"""
        Then rank 0 sends its tensor to rank 1 (`dst` is the destination). Rank 1 receives it from
        rank 0 (`src` is the source), and the received values overwrite its own:
    """)
    if rank == 0:
        dist.send(mine, dst=1)
    if rank == 1:
        dist.recv(mine, src=0)  # @unnoticed: src= dropped: rank 0 alone sends
    sent = from_all_ranks(mine.tolist())
    assert sent[1] == [9, 2, 3, 4], \
        "After the message, rank 1 has the values of rank 0."
    assert sent[2:] == start[2:], \
        "Ranks 2 and 3 still have their own values."  # @hide
    figure(plot_held({"at first": start, "rank 0 sets a 9": changed, "and sends to 1": sent}),
        caption=r"""
            What each rank holds at first, after rank 0 has set an element to `9`, and after rank 1
            has received the tensor of rank 0. The color of a value shows which rank made it.
        """,
        alt=r"""
            Three panels with a row of four values for each rank. In the second panel the first
            value of rank 0 has changed. In the third, rank 1 has the values of rank 0.
        """)
    note("So ranks share only what the program sends, and each exchange costs bytes.")
    question(r"""
        Ranks 0 and 1 now hold a `9`. Next, rank 1 sends its tensor to rank 2. After that, rank 2
        sends its own tensor to rank 3. How many ranks hold a `9` in the end?
    """, answer=4, check=sum(9 in row for row in [sent[0], sent[1], sent[1], sent[1]]), unit="ranks",
        wrong={"Rank 3 gets what rank 2 has just received, not what it had at first.": 3},
        hint="What does rank 2 hold at the moment when it sends?",
        why="Sending leaves the sender's tensor unchanged. So ranks 0 and 1 keep the `9`, rank 2 gets it from rank 1, and rank 3 gets it from rank 2, which already holds it when it sends.")


@requires("ranks=4")
def an_all_reduce_leaves_the_sum_everywhere() -> None:
    """A reduce leaves the sum on one rank, an all-reduce leaves it on every rank."""
    note(r"""
        Four [ranks](#a_rank_sees_its_own_memory_alone) have a tensor each. How does a rank get the
        sum of all four?

        Rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, rank 2 has `[100, 200, 300, 400]`,
        and rank 3 has `[1000, 2000, 3000, 4000]`. The sum of the first elements is
        `1 + 10 + 100 + 1000 = 1111`: each of its four digits comes from a different rank. The sum
        of all four tensors is `[1111, 2222, 3333, 4444]`.

        An exchange that all ranks call together is a *collective*. Two collectives compute this
        sum:

        - A *reduce* leaves the sum on a single rank, the destination `dst`. That is enough if one
          rank prints a loss.
        - An *all-reduce* leaves the sum on every rank. That is needed if every rank updates its own
          copy of the weights, because a rank cannot read the sum from another rank's memory.

        Both overwrite the tensor that they are given, so the code passes a copy. `from_all_ranks`
        returns a list of all ranks' values:
    """)
    mine = 10 ** dist.get_rank() * torch.arange(1, 5)  # @inspect mine
    start = from_all_ranks(mine.tolist())  # @hide
    copy = mine.clone()
    dist.reduce(copy, dst=0)
    reduced = from_all_ranks(copy.tolist())
    assert reduced[0] == [1111, 2222, 3333, 4444], \
        "After the reduce, rank 0 has the sum."
    copy = mine.clone()
    dist.all_reduce(copy)
    summed = from_all_ranks(copy.tolist())  # @inspect summed
    assert summed == 4 * [reduced[0]], \
        "After the all-reduce, each of the four ranks has the sum."
    figure(plot_held({"at first": start, "after a reduce": reduced, "after an all-reduce": summed}),
        caption=r"""
            What each rank holds at first, after a reduce to rank 0, and after an all-reduce. A
            value has the colors of all ranks that contributed to it. Here the reduce leaves the
            other ranks with partial sums, which are of no use.
        """,
        alt=r"""
            Three panels. At first each rank has values of its own color. After the reduce, rank 0
            has values of all four colors. After the all-reduce all ranks have them.
        """)
    eight = torch.arange(8).view(4, 2)[dist.get_rank()]  # each rank plays two of eight  # @hide
    for _ in range(2):  # @hide
        total = eight.sum()
        dist.all_reduce(total)
        eight = total.expand(2)
    question(r"""
        Eight ranks have the values `0` to `7`, in order. They all-reduce these values, and then
        all-reduce the result once more. What does rank 5 have in the end?
    """, answer=8 * sum(range(8)), check=from_all_ranks(eight.tolist())[2][1],
        hint="What does each rank bring to the second all-reduce?",
        why=r"""
            The first all-reduce leaves `0 + 1 + … + 7 = 28` on every rank. In the second, eight
            ranks bring `28` each. A sum that is already complete must not be all-reduced again.
        """,
        wrong={"That is after the first all-reduce.": 28, "That is what rank 5 had at first.": 5})


@requires("ranks=4")
def an_all_reduce_has_two_halves() -> None:
    """A reduce-scatter followed by an all-gather is an all-reduce."""
    note(r"""
        An [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) leaves the sum of all ranks'
        tensors on every rank. What if each rank needs only a part of that sum?

        Cut a tensor into equal parts, one for each rank: such a part is a *shard*. A
        *reduce-scatter* adds up the ranks' tensors and leaves each rank with only its own shard of
        the sum.

        Rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, rank 2 has `[100, 200, 300, 400]`,
        and rank 3 has `[1000, 2000, 3000, 4000]`. So a shard is one element: rank 0 gets `1111`,
        the sum of the first elements, rank 1 gets `2222`, the sum of the second elements, and so
        on:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = 10**rank * torch.arange(1, 5)  # @inspect mine
    start = from_all_ranks(mine.tolist())  # @hide
    parts = list(mine.chunk(ranks))  # four equal parts
    shard = torch.empty_like(parts[0])  # memory for the result
    dist.reduce_scatter(shard, parts)  # @inspect shard
    scattered = from_all_ranks(shard.tolist())  # a list of all shards
    assert scattered == [[1111], [2222], [3333], [4444]], \
        "After the reduce-scatter, each rank has one of the four sums."
    note(r"""
        An *all-gather* collects the shards of all ranks on every rank. After the reduce-scatter it
        completes an all-reduce, because each sum is already on one rank, and the all-gather brings
        it to the others:
    """)
    whole = [torch.empty_like(shard) for _ in range(ranks)]  # memory
    dist.all_gather(whole, shard)
    gathered = from_all_ranks(torch.cat(whole).tolist())  # on each rank
    dist.all_reduce(mine)  # for comparison  # @inspect mine
    assert gathered == 4 * [mine.tolist()], \
        "After the all-gather, all ranks have what an all-reduce gives."
    figure(plot_held({"at first": start, "after a reduce-scatter": scattered, "after an all-gather": gathered}),
        caption=r"""
            What each rank holds at first, after a reduce-scatter, and after an all-gather of its
            results. The two together are an all-reduce.
        """,
        alt=r"""
            Three panels. After the reduce-scatter each rank has one value, in all four colors.
            After the all-gather each rank has all four of these values.
        """)
    note(r"""
        So an all-reduce has two halves. Between them, each rank has a part of the sum that no other
        rank has. That is a good moment for element-wise work, such as a square root: each rank does
        it only for its own part, and the all-gather brings the results to all ranks.
    """)
    question(r"""
        Eight ranks sum up their tensors of `4096` elements, and need the square root of each sum.
        After an all-reduce, every rank would compute `4096` roots. How many does each rank compute,
        if the roots are taken between the two halves?
    """, answer=4096 // 8, check=torch.empty(4096).chunk(8)[0].numel(), unit="roots",
        wrong={"That is after a whole all-reduce.": 4096},
        hint="What does a rank have after the reduce-scatter?",
        why=r"""
            After the reduce-scatter a rank has a shard of `4096 / 8 = 512` sums. It computes their
            roots, and the all-gather collects the roots of all ranks. The traffic is that of an
            all-reduce.
        """)


def parts_sent(ranks: int, reduce: bool) -> int:  # @hide
    """How many parts a rank sends round a ring until all ranks have all parts; with `reduce`, their sums over all ranks."""
    everyone = set(range(ranks))
    # For each rank, whose values are in each part:
    held = [[{r} if reduce else everyone if part == r else set[int]()
             for part in range(ranks)] for r in range(ranks)]
    sent = 0
    while any(part != everyone for row in held for part in row):
        for r in range(ranks):  # each passes on what has just arrived
            part = (r - sent - reduce) % ranks
            held[(r + 1) % ranks][part] |= held[r][part]
        sent += 1
    return sent


@requires("linux, ranks=4")
def the_kernel_counts_what_a_rank_sends() -> None:
    """If G ranks share an all-gather equally, each of them sends G - 1 shards."""
    note(r"""
        Each of four ranks holds one *shard*, a quarter of a tensor. An
        [all-gather](#an_all_reduce_has_two_halves) collects all four shards on every rank. How much
        does a rank send in it?

        Each rank lacks three shards, because it already has its own. So `4 * 3 = 12` shards have to
        arrive. Four ranks send them. If they share this work equally, each sends `12 / 4 = 3`: its
        own, and two that it has received and passes on.

        In the same way, each of $G$ ranks sends $G-1$ shards. A shard is a $G$th of the tensor:

        [@eq:gather]: $$
        \frac{G-1}{G} \times \text{bytes of the tensor}
        $$

        Now we measure it. The operating system counts the bytes that a rank sends. `Wire` reads
        this count before and after a block of code, and `wire.sent` is the difference:
    """)
    ranks = dist.get_world_size()
    shard = torch.randn(60_000)
    whole = [torch.empty_like(shard) for _ in range(ranks)]  # for all shards
    with Wire() as wire:
        dist.all_gather(whole, shard)
    shards = wire.sent / shard.nbytes  # @inspect shards as .3f
    assert round(shards, 2) == ranks - 1 == 3, \
        "Each of the four ranks sends three shards, plus headers."
    by_gather = from_all_ranks(wire.to)  # @hide
    extra = wire.sent - 3 * shard.nbytes  # @hide
    assert extra == 18 * HEADER, "The rest is 18 headers."  # @hide
    note(rf"""
        Why slightly more than `3`? *gloo*, the library that carries data between CPUs, adds control
        messages of {HEADER} bytes, called *headers*, which announce what is coming: here
        {extra // HEADER} of them. So byte counts on these pages are slightly above the formulas.
    """)
    figure(plot_traffic({"an all-gather": by_gather}),
        caption=r"""
            Bytes that each rank (row) sent to each other rank (column). A rank sends three shards
            to one neighbor in a ring, and only headers to its other neighbor.
        """,
        alt="A table in which each rank sends nearly all of its bytes to one neighbor.")
    sizes = [parts_sent(n, reduce=False) * torch.empty(48_000).chunk(n)[0].nbytes for n in (8, 16)]  # @hide
    question(r"""
        `8` ranks all-gather a tensor. Then `16` ranks all-gather the same tensor, in shards half as
        large. By what factor does the number of bytes that each rank sends change?
    """, answer=(15 / 16) / (7 / 8), check=sizes[1] / sizes[0], unit="times", within=0.02,
        hint="How many shards does a rank send, and how large are they?",
        why=r"""
            A rank sends `15` shards instead of `7`, and they are half as large: `7.5 / 7`, about
            `1.07`. Every rank has to receive the whole tensor except its own shard, so more ranks
            hardly change what each one sends.
        """,
        wrong={"More shards are sent, and they are smaller.": 0.5,
               "The number of shards grows, but they are smaller.": 15 / 7})


def pass_on(part: Tensor) -> Tensor:
    """Sends `part` to the next rank in the ring; returns what the previous rank has sent."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    incoming = torch.empty_like(part)
    both = [dist.P2POp(dist.isend, part, (rank + 1) % ranks),
            dist.P2POp(dist.irecv, incoming, (rank - 1) % ranks)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    return incoming


@requires("ranks=4")
def a_ring_passes_sums_to_the_next_rank() -> None:
    """In a ring, ranks can all-reduce although each sends only to the next one."""
    note(r"""
        Four ranks want the sum of their tensors on every rank, an
        [all-reduce](#an_all_reduce_leaves_the_sum_everywhere). Can they get it if each sends to
        only one other rank?

        Yes, because a sum can be built up on the way: each rank adds its own values to what arrives
        and passes on the result. Put the ranks in a *ring*: each sends to the next, and the last to
        the first. Each rank cuts its tensor into four parts, part `0` to part `3`.

        Rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, rank 2 has `[100, 200, 300, 400]`,
        and rank 3 has `[1000, 2000, 3000, 4000]`. Follow part `0`, which begins its way on rank 1:

        | step | who sends its part `0` | what the receiver then has |
        |---|---|---|
        | `1` | rank 1 sends $10$ | rank 2 has `10 + 100 = 110` |
        | `2` | rank 2 sends $110$ | rank 3 has `110 + 1000 = 1110` |
        | `3` | rank 3 sends $1110$ | rank 0 has `1110 + 1 = 1111` |

        After three steps, rank 0 has the sum of part `0` over all ranks. The other three parts
        travel in the same steps. In step `1`, the ranks do this:

        | | sends its part | adds what arrives to its part |
        |---|---|---|
        | rank 0 | `3` | `2` |
        | rank 1 | `0` | `3` |
        | rank 2 | `1` | `0` |
        | rank 3 | `2` | `1` |

        In the next step, each rank sends the part to which it has just added something. So from
        step to step, the two part numbers in each row become smaller by one, and after `0` comes
        `3`. In the code, `parts` are this rank's four parts. The rank sends part `rank - step` and
        adds what arrives to part `rank - step - 1`. (In Python, negative indices count from the
        end: `parts[-1]` is the last part, `parts[-4]` the first.) `pass_on` sends a part to the
        next rank and returns what the previous rank has sent:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @hide
    mine = 10**rank * torch.arange(1, 5)  # @hide
    parts = mine.chunk(4)  # @hide
    states = {}  # @hide
    for step in (1, 2, 3):
        arrived = pass_on(parts[rank - step])
        parts[rank - step - 1].add_(arrived)
        states[f"add {step}"] = from_all_ranks(mine.tolist())  # @hide
    # Part 0 of rank 0, part 1 of rank 1, and so on:
    finished = from_all_ranks(parts[rank].item())  # @inspect finished
    assert finished == [1111, 2222, 3333, 4444], \
        "After three steps, rank r has the sum of part r over all ranks."
    note(r"""
        Now rank $r$ has part $r$ of the sum, complete: this was a *reduce-scatter*. In three more
        steps, the complete parts travel around the ring, and each rank *copies* what arrives
        instead of adding it. This is an *all-gather*. Rank $r$ first sends its complete part $r$,
        so here `step` begins at `0`:
    """)
    for step in (0, 1, 2):
        arrived = pass_on(parts[rank - step])
        parts[rank - step - 1].copy_(arrived)
        states[f"copy {step + 1}"] = from_all_ranks(mine.tolist())  # @hide
    assert [part.item() for part in parts] == finished, \
        "After six steps, every rank has all four complete parts."
    assert states["copy 3"] == ranks * [finished], \
        "They are the same on all ranks."  # @hide
    assert len(states) == 2 * (ranks - 1), \
        "Adding takes three steps, and copying takes three."  # @hide
    start = [[10**r * n for n in range(1, 5)] for r in range(ranks)]  # @hide
    held = explore(lambda step: [start, *states.values()][step], over={"step": range(7)}, at={"step": 2},
        module="pictures/ring.js", still=plot_held({"after the second step": states["add 2"]}),
        do="Follow part `0`, the upper row, through the six steps. Which rank has its sum first?",
        see="Rank 0 has the sum of the parts `0` after three steps. In each step every rank sends one part, and after six steps all ranks have all sums.",
        caption="What each rank holds after each step. Values that have just arrived are gold, and a sum over all four ranks has a tick.",
        alt=r"""
            Four columns, one for each rank, of four cells each. In each step, one cell of each
            column changes: it gets what the previous rank has sent.
        """)  # @hide
    changed = [sum(a != b for one, two in zip(held[s], held[s + 1]) for a, b in zip(one, two)) for s in range(6)]  # @hide
    assert changed == [ranks] * 6, \
        "In each of the six steps, one part of each rank changes."  # @hide
    assert (held[0][rank], held[6]) == ([10**rank * n for n in (1, 2, 3, 4)], states["copy 3"]), \
        "The picture begins with each rank's own elements, and ends with the sums on all ranks."  # @hide
    question(r"""
        In the second half of the ring, somebody adds what arrives instead of copying it. Rank 1
        receives the complete part `0`, which is `1111`. Its own part `0` is still `10`. What is its
        part `0` after the mistake?
    """,
        answer=10 + 1111, check=states["add 3"][1][0] + finished[0], within=0.001,
        wrong={"That is what copying gives.": 1111},
        hint="Is what rank 1 has already in the complete sum?",
        why=r"""
            Rank 1 has `10`, and receives `1111`, which already contains this `10`. After the
            addition, the `10` is in the sum twice: `1121`.
        """)


ROUNDING = 1e-5  # tolerance for another summation order in float32


def difference(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference between two tensors, as a share of the second's largest value."""
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def ring_reduce_scatter(parts: Sequence[Tensor]) -> Tensor:
    """Adds up the ranks' `parts` round the ring, in place; returns this rank's part of the sum.

    The other parts are left as incomplete sums.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in range(1, ranks):
        sent = (rank - step) % ranks
        parts[(sent - 1) % ranks].add_(pass_on(parts[sent]))
    return parts[rank]


def ring_all_gather(parts: Sequence[Tensor]) -> None:
    """Fills in, in place, the parts that the other ranks have; part r is that of rank r."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in range(ranks - 1):
        sent = (rank - step) % ranks
        parts[(sent - 1) % ranks].copy_(pass_on(parts[sent]))


@requires("linux, ranks=4")
def a_ring_sends_less_than_twice_the_tensor() -> None:
    """In a ring all-reduce, each rank sends less than two copies of its tensor, however many ranks there are."""
    note(r"""
        How many bytes does a rank send in an all-reduce? If each of $1000$ ranks sent its tensor to
        all others, it would send $999$ copies. The [ring](#a_ring_passes_sums_to_the_next_rank)
        does it with less than two.

        Count for four ranks. In each step a rank sends one of four parts, a quarter of its tensor,
        to the next rank. In the first half, a reduce-scatter, each part passes through the three
        other ranks, one in each step. Each of them adds its own values, so that one sum is sent on
        and not several parts, and the last of them keeps the sum: three steps. In the second half,
        an all-gather, each sum goes to the three ranks that lack it: three more steps. So a rank
        sends `6 / 4 = 1.5` copies of its tensor.

        On $G$ ranks there are $G-1$ steps in each half, and in each step a rank sends a $G$th of
        the tensor:

        [@eq:all-reduce]: $$
        \underbrace{2}_{\text{halves}} \times \frac{G-1}{G} \times \text{bytes of the tensor}
        $$

        With more ranks this approaches two copies, but never reaches them.

        We count the bytes of two all-reduces on four ranks: of our own ring, in its two halves, and
        of PyTorch's `all_reduce` on CPUs. `Wire` counts what this rank sends, with
        [headers](#the_kernel_counts_what_a_rank_sends):
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = (rank + 1) * torch.randn(240_000)  # different on each rank
    formula = 2 * (ranks - 1) * x.nbytes // ranks  # @hide
    assert formula == 1.5 * 960_000, \
        "By the formula, a rank sends one and a half times the 960000 bytes of its tensor."  # @hide
    parts = x.clone().chunk(ranks)
    with Wire() as ring_wire:
        ring_reduce_scatter(parts)
        ring_all_gather(parts)
    with Wire() as pytorch_wire:
        dist.all_reduce(x)
    assert difference(torch.cat(parts), x) < ROUNDING, \
        "Our ring and PyTorch give the same sums, up to rounding."  # @hide
    ring_copies = ring_wire.sent / x.nbytes  # @inspect ring_copies as .3f
    pytorch_copies = pytorch_wire.sent / x.nbytes  # @inspect pytorch_copies as .3f
    assert round(ring_copies, 2) == 1.5, \
        "With our ring, a rank sends one and a half copies of its tensor."
    assert round(pytorch_copies, 2) == 1.5, \
        "With PyTorch's all-reduce, it also sends one and a half copies."
    figure(plot_traffic({"our ring": from_all_ranks(ring_wire.to), "PyTorch's all-reduce": from_all_ranks(pytorch_wire.to)}),
        caption=r"""
            Bytes that each rank (row) sent to each other rank (column). In both, a rank sends
            nearly all of its bytes to one neighbor: to the next rank in our ring, to the previous
            rank in PyTorch's. The small numbers are headers.
        """,
        alt=r"""
            Two tables. In both, every rank sends nearly all of its bytes to one neighbor, and the
            amounts are nearly the same.
        """)
    note("So if the GPUs of data parallelism all-reduce their gradients in a ring, each sends less than two copies of them, however many GPUs there are.")
    question(r"""
        Instead of a ring, each of `8` ranks sends its whole tensor to each of the others. By what
        factor is the number of bytes that a rank sends larger than with the ring?
    """, answer=7 / (2 * 7 / 8),
        check=sum(other != 0 for other in range(8)) / (parts_sent(8, reduce=True) / 8), unit="times",
        wrong={"The ring sends nearly two copies, not one.": 7 / (7 / 8)},
        hint="How many copies does a rank send in each of the two ways?",
        why=r"""
            A rank that sends its tensor to all others sends `7` copies. With the ring, it sends
            `2 * 7 / 8` copies. In general the factor is $G/2$: the more ranks, the more the ring
            saves.
        """)


@requires("linux, ranks=4")
def an_all_to_all_transposes() -> None:
    """In an all-to-all, each rank sends a different part to every other rank."""
    note(r"""
        Sometimes a rank has different data for each of the other ranks. In
        [expert parallelism](#the_router_decides_the_bytes), for example, each token goes to the
        rank with the weights that it needs. How can all ranks exchange such data at once?

        In an *all-to-all*, each rank cuts its tensor into one part for each rank, and part $i$ goes
        to rank $i$. Take two ranks: rank 0 has `[1, 2]`, and rank 1 has `[10, 20]`. The first
        elements go to rank 0, which then has `[1, 10]`. The second elements go to rank 1, which
        then has `[2, 20]`. Nothing is added up.

        Now four ranks: rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, rank 2 has
        `[100, 200, 300, 400]`, and rank 3 has `[1000, 2000, 3000, 4000]`:
    """)
    mine = 10 ** dist.get_rank() * torch.arange(1, 5)  # @inspect mine
    start = from_all_ranks(mine.tolist())  # @hide
    received = torch.empty_like(mine)  # memory for the result
    dist.all_to_all_single(received, mine)  # @inspect received
    exchanged = from_all_ranks(received.tolist())  # what each rank has
    assert exchanged[0] == [1, 10, 100, 1000], \
        "Rank 0 has the first element of every rank."
    assert exchanged[3] == [4, 40, 400, 4000], \
        "Rank 3 has the last element of every rank."
    columns = [list(column) for column in zip(*start)]  # @hide
    assert exchanged == columns, \
        "Element i of all ranks, a column of the table, is now the row of rank i."  # @hide
    figure(plot_held({"at first": start, "after an all-to-all": exchanged}),
        caption=r"""
            What each rank holds before and after an all-to-all. The columns of the upper table have
            become the rows of the lower one: an all-to-all transposes the table.
        """,
        alt="Two panels. At first each row has one color; afterwards each column has one.")
    x = torch.randn(240_000)  # @unnoticed: 240_000: a tensor of any size  # @hide
    with Wire() as wire:  # @hide
        dist.all_to_all_single(torch.empty_like(x), x)  # @unnoticed: arguments swapped: any numbers
    assert round(wire.sent / x.nbytes, 2) == 3 / 4, \
        "Each rank sends three quarters of its tensor."  # @hide
    note(r"""
        The part that a rank keeps for itself is not sent. So each of four ranks sends three
        quarters of its tensor.
    """)
    question(r"""
        All ranks call an all-to-all, and then another one with the result. What share of its
        original elements does a rank then hold, each in its original position?
    """, answer=1.0, check=torch.arange(16).view(4, 4).T.T.eq(torch.arange(16).view(4, 4)).float().mean().item(), unit="%", within=0.02,
        hint="What does an all-to-all do to the table of all ranks' parts?",
        why=r"""
            An all-to-all transposes the table of parts. Transposed twice, it is as it was. So the
            second all-to-all brings back what the first one sent away: tokens go out, and results
            come back in the same order.
        """,
        wrong={"That is after a single all-to-all: only the diagonal stays where it is.": 0.25})


def doubling_all_reduce(x: Tensor) -> int:
    """An all-reduce of `x`, in place, in which pairs of ranks exchange whole tensors; returns the number of exchanges.

    The partner `rank ^ distance` is 1, 2, 4, … ranks away: twice as far each time. The number of ranks is a power of two.
    """
    rank, distance, exchanges = dist.get_rank(), 1, 0
    while distance < dist.get_world_size():
        partner, incoming = rank ^ distance, torch.empty_like(x)
        both = [dist.P2POp(dist.isend, x.clone(), partner),
                dist.P2POp(dist.irecv, incoming, partner)]
        for work in dist.batch_isend_irecv(both):
            work.wait()
        x.add_(incoming)
        distance, exchanges = 2 * distance, exchanges + 1
    return exchanges


@aside
@requires("linux, ranks=4")
def few_messages_or_few_bytes() -> None:
    """By an estimate for 64 ranks, a ring all-reduce is slow for a small tensor and fast for a large one."""
    note(r"""
        Why can an all-reduce of a small tensor take long? Because each exchange between ranks takes
        a few microseconds, its *latency*, however little it sends, and in
        [a ring](#a_ring_passes_sums_to_the_next_rank) many exchanges follow one another.

        *Recursive doubling* has fewer. By hand, on four ranks: first, ranks 0 and 1 send each other
        their whole tensors and add them up, and so do ranks 2 and 3. Then ranks 0 and 2 send each
        other these sums, and so do ranks 1 and 3. After two exchanges, each rank has the sum of all
        four. In the ring, a rank sends a quarter of the tensor at a time, in three exchanges to add
        up and three more to pass the sums on:

        | on four ranks | exchanges | sent by each rank |
        |---|---|---|
        | ring | `3 + 3 = 6` | `6 / 4 = 1.5` tensors |
        | recursive doubling | `2` | `2` tensors |

        So doubling has fewer exchanges, and the ring sends fewer bytes. On $64$ ranks, the ring
        needs `63 + 63 = 126` exchanges, each of a $64$th of the tensor. Recursive doubling needs
        only $6$, each of the whole tensor, because each exchange doubles the number of ranks in a
        sum, and `2**6 = 64`.

        To estimate the times, assume a latency of $5$ microseconds and a bandwidth of `100` GB a
        second. An exchange takes the latency, plus its bytes divided by the bandwidth:
    """)
    ranks = dist.get_world_size()  # @hide
    x = torch.randn(ranks, 60_000)[dist.get_rank()]  # @unnoticed: 60_000: a tensor of any size  # @hide
    total = x.clone()  # @hide
    dist.all_reduce(total)  # @hide
    with Wire() as wire:  # @hide
        exchanges = doubling_all_reduce(x)
    assert difference(x, total) < ROUNDING, \
        "Recursive doubling gives the sum of an all-reduce, up to rounding."  # @hide
    tensors = wire.sent / x.nbytes  # @hide
    assert round(tensors, 2) == exchanges == 2, \
        "Four ranks need two exchanges, and each rank sends its whole tensor twice."  # @hide
    latency, bandwidth = 5e-6, 100e9  # @inspect latency as s, bandwidth as B/s

    def ring_seconds(size: float) -> float:  # of a tensor of `size` bytes
        return 126 * (latency + size / 64 / bandwidth)

    def doubling_seconds(size: float) -> float:
        return 6 * (latency + size / bandwidth)

    small = ring_seconds(1e6) / doubling_seconds(1e6)  # @inspect small as times
    assert 7.2 < small < 7.25, \
        "In this estimate, a ring takes 7.2 times as long as recursive doubling for a megabyte."
    large = ring_seconds(1e9) / doubling_seconds(1e9)  # @inspect large as times
    assert 0.33 < large < 0.34, \
        "For a gigabyte, it takes a third of the time of recursive doubling."
    note(rf"""
        For a megabyte, the ring spends `126 * 5` = {126 * latency * 1e6:.0f} of its
        {ring_seconds(1e6) * 1e6:.0f} microseconds on latency, so the method with fewer exchanges is
        faster. For a gigabyte, nearly all of the time is spent on the bytes. There a rank of the
        ring sends `126 / 64`, about {126 / 64:.2f} tensors, instead of six.

        There are other methods. *Recursive halving and doubling*, for example, sends the same
        number of bytes as the ring, in only `12` exchanges [@thakur2005]. In a real network, the
        time also depends on which ranks share a link, and the estimate leaves that out. So the
        library NCCL has several methods, and chooses by the size of the tensor and by the network
        [@nccl-tuning].
    """)
    halves = [Fraction(1, 2**k) for k in range(1, 7)]  # @hide
    assert (2 * len(halves), 2 * sum(halves)) == (12, Fraction(126, 64)), \
        "Halving six times and doubling six times takes 12 exchanges, which send 126/64 tensors in all."  # @hide
    question(r"""
        A training step all-reduces `100` small tensors in turn, by a ring on `64` ranks. An
        exchange has a latency of `5` microseconds, and the time for the bytes is negligible.
        Somebody packs all tensors into one. How many milliseconds does that save?
    """, answer=99 * 126 * latency * 1e3, check=(100 * ring_seconds(0) - ring_seconds(0)) * 1e3, unit="ms", within=0.02,
        hint="How many exchanges does each all-reduce need, however small its tensor is?",
        why=r"""
            Each of the `100` all-reduces needs `126` exchanges, of `5` microseconds each. Packed
            into one, `126` exchanges are enough, so `99 * 126` are saved.
        """)


@aside
@requires("ranks=4")
def a_collective_needs_every_rank() -> None:
    """If one rank does not call an all-reduce, the others wait until a timeout."""
    note(r"""
        A program on several ranks may hang for minutes before any message appears. Why?

        A [collective](#an_all_reduce_leaves_the_sum_everywhere) is an exchange that all ranks call
        together. Often one rank has not called it and the others have, for instance because it took
        a different branch of an `if`. The others wait for it, because they cannot know that it will
        never come. They wait until a *timeout*, which is minutes long unless you set it.

        Here, on CPUs, ranks 0, 1 and 3 call an all-reduce and rank 2 does not. The timeout is half
        a second, set for a group of the same four ranks:
    """)
    group = dist.new_group(timeout=timedelta(seconds=0.5))  # @unnoticed: 0.5: any short time
    rank = dist.get_rank()
    message = ""
    if rank != 2:
        try:
            dist.all_reduce(torch.ones(4), group=group)  # @unnoticed: 4: any size
        except RuntimeError as error:
            message = str(error)
    failed = message != ""  # @inspect failed
    assert failed == (rank != 2), \
        "The three ranks that called the all-reduce get an error, and rank 2 gets none."
    late = "Timed out" in str(from_all_ranks(message))  # @hide
    assert late, "The error says that the call has timed out."
    note(r"""
        While you develop such a program, run it with `TORCH_DISTRIBUTED_DEBUG=DETAIL`. By its
        documentation, PyTorch then checks before each collective that all ranks call the same one,
        and reports ranks whose call is missing.
    """)
    question(r"""
        In which of these programs on four ranks does a rank wait for a call that never comes? Give
        `1` or `0` for each: rank 0 alone calls an all-reduce; all ranks call it, rank 0 later than
        the others; rank 0 all-reduces twice and the others once.
    """, answer=[1, 0, 1], check=[int(calls != [1] * 4) for calls in ([1, 0, 0, 0], [1, 1, 1, 1], [2, 1, 1, 1])],
        hint="For each call of a collective, do all other ranks make the same call, sooner or later?",
        why=r"""
            A rank that is late makes the others wait, and then all go on. If a rank calls a
            collective that another rank never calls, it waits until the timeout.
        """)
