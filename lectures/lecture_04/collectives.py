"""Collectives: what each rank holds before and after, and what crosses the wire."""
from collections.abc import Sequence
from datetime import timedelta

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
        To train on several GPUs, we start several processes, one for each GPU. Such a process is
        called a *rank*. All ranks run the same program, and each has a number: rank 0, rank 1, and
        so on. Can one rank read the memory of another?

        Four ranks ran the code of this section, on CPUs instead of GPUs. `dist` is
        `torch.distributed`, PyTorch's module for exchanges between ranks. `rank` is the number of
        the rank that runs the line, and `ranks` is how many there are. Each rank makes a tensor of
        four elements. Rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, and ranks 2 and 3
        have hundreds and thousands. Where a value differs from rank to rank, the page shows all
        four:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @inspect rank, ranks
    mine = 10**rank * torch.arange(1, 5)  # @inspect mine
    note(r"""
        To see what all ranks have, we use `from_all_ranks`: each rank sends its value to all
        others, and gets a list of all values, in rank order:
    """)
    start = from_all_ranks(mine.tolist())
    assert start[0] == [1, 2, 3, 4], "Rank 0 has the values 1 to 4."
    assert start[3] == [1000, 2000, 3000, 4000], \
        "Rank 3 has a thousand times these values."
    note("Now rank 0 sets an element of its tensor to `9`. Does that change the tensor of another rank?")
    if rank == 0:
        mine[0] = 9  # @unnoticed: 0: any element
    changed = from_all_ranks(mine.tolist())
    untouched = [changed[r] == start[r] for r in range(ranks)]  # @inspect untouched
    assert untouched == [False, True, True, True], \
        "The tensor of rank 0 has changed, and the tensors of the other ranks have not."
    note(r"""
        No, because the operating system gives each process its own memory. So a rank has to send
        what another rank needs. Here rank 0 sends its tensor to rank 1 (`send`; `dst` is the
        destination). Rank 1 receives it from rank 0 (`recv`; `src` is the source). The received
        values overwrite what rank 1 had:
    """)
    if rank == 0:
        dist.send(mine, dst=1)
    if rank == 1:
        dist.recv(mine, src=0)  # @unnoticed: src= dropped: rank 0 alone sends
    sent = from_all_ranks(mine.tolist())
    assert sent[1] == changed[0] != changed[1], \
        "After the message, rank 1 has the values of rank 0."
    assert sent[2:] == start[2:], "Ranks 2 and 3 still have their own values."
    figure(plot_held({"at first": start, "rank 0 sets a 9": changed, "and sends to 1": sent}),
        caption=r"""
            What each rank holds at first, after rank 0 has set an element to `9`, and after rank 1
            has received the tensor of rank 0. The color of a value shows which rank made it.
        """,
        alt=r"""
            Three panels with a row of four values for each rank. In the second panel the first
            value of rank 0 has changed. In the third, rank 1 has the values of rank 0.
        """)
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
        Four [ranks](#a_rank_sees_its_own_memory_alone) have a tensor each, and all of them need the
        sum of the four tensors. How do they get it? An exchange that all ranks call together is a
        *collective*. Here are two collectives that add up the tensors of all ranks.

        Rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, and ranks 2 and 3 have hundreds
        and thousands. The sum of the first elements is `1 + 10 + 100 + 1000 = 1111`: each of its
        four digits comes from a different rank. A *reduce* leaves the sum on a single rank, the one
        given as `dst`. Here this is rank 0:
    """)
    rank = dist.get_rank()
    mine = 10**rank * torch.arange(1, 5)
    start = from_all_ranks(mine.tolist())
    total = [sum(column) for column in zip(*start)]  # @inspect total
    on_rank_0 = mine.clone()
    dist.reduce(on_rank_0, dst=0)
    reduced = from_all_ranks(on_rank_0.tolist())
    assert reduced[0] == total == [1111, 2222, 3333, 4444], \
        "After the reduce, rank 0 has the sum of the four ranks' tensors."
    note("An *all-reduce* leaves the same sum on every rank:")
    on_all_ranks = mine.clone()
    dist.all_reduce(on_all_ranks)  # adds up over ranks, in place
    summed = from_all_ranks(on_all_ranks.tolist())
    assert summed == [total, total, total, total], \
        "After the all-reduce, each of the four ranks has the sum."
    figure(plot_held({"at first": start, "after a reduce": reduced, "after an all-reduce": summed}),
        caption=r"""
            What each rank holds at first, after a reduce to rank 0, and after an all-reduce. A
            value has the colors of all ranks that contributed to it. After the reduce, only rank 0
            has a result: the others hold partial sums that passed through them.
        """,
        alt=r"""
            Three panels. At first each rank has values of its own color. After the reduce, rank 0
            has values of all four colors. After the all-reduce all ranks have them.
        """)
    question(r"""
        Eight ranks have the values `0` to `7`, in order. They all-reduce these values, and then
        all-reduce the result once more. What does rank 5 have in the end?
    """, answer=8 * sum(range(8)), check=8 * (8 * 7 // 2),
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

        Cut a tensor into as many equal parts as there are ranks, and give one part to each rank:
        such a part is a *shard*. A *reduce-scatter* adds up the ranks' tensors and leaves each rank
        with only its own shard of the sum.

        Rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, and ranks 2 and 3 have hundreds
        and thousands. So a shard is one element: rank 0 gets `1111`, the sum of the first elements,
        rank 1 gets `2222`, and so on. `chunk` cuts a tensor into equal parts, and `empty_like`
        allocates memory for a result:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = 10**rank * torch.arange(1, 5)
    start = from_all_ranks(mine.tolist())
    parts = list(mine.chunk(ranks))
    shard = torch.empty_like(parts[0])
    dist.reduce_scatter(shard, parts)
    scattered = from_all_ranks(shard.tolist())
    assert scattered == [[1111], [2222], [3333], [4444]], \
        "After the reduce-scatter, each rank has one of the four sums."
    note("An *all-gather* collects the shards of all ranks on every rank, in rank order:")
    whole = [torch.empty_like(shard) for _ in range(ranks)]
    dist.all_gather(whole, shard)
    gathered = from_all_ranks(torch.cat(whole).tolist())
    dist.all_reduce(mine)
    all_reduced = from_all_ranks(mine.tolist())  # @inspect all_reduced
    assert gathered == all_reduced, \
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
        Each of `8` ranks needs the square root of every element of the sum of all tensors, and the
        tensors have `4096` elements. After an all-reduce, every rank would compute `4096` roots.
        How many does each rank compute, if the roots are taken between the two halves?
    """, answer=4096 // 8, check=torch.empty(4096).chunk(8)[0].numel(), unit="roots",
        wrong={"That is after a whole all-reduce.": 4096},
        hint="What does a rank have after the reduce-scatter?",
        why=r"""
            After the reduce-scatter a rank has a shard of `4096 / 8 = 512` sums. It computes their
            roots, and the all-gather collects the roots of all ranks. The traffic is the same.
        """)


@requires("linux, ranks=4")
def the_kernel_counts_what_a_rank_sends() -> None:
    """In an all-gather, each rank sends one shard fewer than there are ranks."""
    note(r"""
        Each of four ranks holds one *shard*, a fourth of a tensor. An
        [all-gather](#an_all_reduce_has_two_halves) collects all four shards on every rank. How many
        bytes does a rank send in it?

        By hand: each of the four ranks lacks three shards, so `4 * 3` shards have to arrive. Four
        ranks send them. If they share this work equally, each rank sends three.

        Now we measure it. The operating system counts the bytes that a rank sends to each other
        rank. `Wire` reads these counts before and after a block of code: `wire.to` lists the bytes
        to each rank, and `wire.sent` is their sum. First we try `Wire` on a single message: rank 0
        sends rank 3 a tensor of `1000` elements in `float32`, which has `4 * 1000` bytes. `by_send`
        has a row for each sender, with the bytes to each receiver:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = torch.randn(1000)  # @unnoticed: 1000: a tensor of any size
    with Wire() as wire:
        if rank == 0:
            dist.send(x, dst=3)
        if rank == 3:
            dist.recv(x, src=0)  # @unnoticed: src= dropped: rank 0 alone sends
    by_send = from_all_ranks(wire.to)  # @inspect by_send
    assert by_send[0] == [0, 0, 0, x.nbytes + 2 * HEADER], \
        "Rank 0 sends rank 3 the 4000 bytes of the tensor and two headers of 48 bytes."
    assert by_send[3] == [HEADER, 0, 0, 0], \
        "Rank 3 sends rank 0 one header of 48 bytes."
    note(rf"""
        Why more than `4 * 1000` bytes? The *headers* are control messages of {HEADER} bytes
        (`HEADER`) that are added by *gloo*, the library that carries data between CPUs. For each
        message, the sender sends two headers, which say what is coming, and the receiver returns
        one, which says that it is ready. Here that is `4000 + 2 * 48 = 4096` bytes. Because of
        these headers, byte counts on these pages are slightly above the formulas.

        Now the all-gather, with a shard of `60000` elements on each rank:
    """)
    shard = torch.randn(60_000)
    whole = [torch.empty_like(shard) for _ in range(ranks)]
    with Wire() as wire:
        dist.all_gather(whole, shard)
    by_gather = from_all_ranks(wire.to)  # @inspect by_gather
    shards = wire.sent / shard.nbytes  # @inspect shards as .4f
    assert round(shards, 2) == ranks - 1, \
        "Each of the four ranks sends three shards, and headers add less than 1 %."
    note(r"""
        Each rank sends shards to one neighbor only, as the picture below shows. Rank 0 first sends
        rank 1 its own shard. Then it passes on the shards of ranks 3 and 2, as they arrive from
        rank 3. It does not send the shard of rank 1, because rank 1 already has it. So each of $G$
        ranks sends all shards but one, and a shard is a $G$th of the tensor:

        [@eq:gather]: $$
        \frac{G-1}{G} \times \text{bytes of the tensor}
        $$
    """)
    figure(plot_traffic({"a send from 0 to 3": by_send, "an all-gather": by_gather}),
        caption=r"""
            Bytes that each rank (row) sent to each other rank (column), in one message and in an
            all-gather. In the all-gather, each rank sends shards to one neighbor only, and headers
            to the other.
        """,
        alt=r"""
            Two tables. In the first, only rank 0 sends some thousand bytes to rank 3, and a header
            comes back. In the second, each rank sends nearly all of its bytes to one neighbor.
        """)
    question(r"""
        `8` ranks all-gather a tensor. Then `16` ranks all-gather the same tensor, in shards half as
        large. By what factor does the number of bytes that each rank sends change?
    """, answer=(15 / 16) / (7 / 8), check=15 * 0.5 / 7, unit="times", within=0.02,
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
    """In a ring, each rank sends only to the next one."""
    note(r"""
        Four ranks want the sum of their tensors on every rank, an
        [all-reduce](#an_all_reduce_leaves_the_sum_everywhere). Can they get it if each sends to
        only one other rank? Put the ranks in a *ring*: each sends to the next, and the last to the
        first.

        Each rank cuts its four elements into parts `0` to `3`, of one element each. Rank 0 has
        `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, and ranks 2 and 3 have hundreds and
        thousands. So the parts `0` are `[1]`, `[10]`, `[100]` and `[1000]`. Follow these parts:

        | step | who sends its part `0` | what the receiver has after adding |
        |---|---|---|
        | first | rank 1 sends `[10]` | rank 2 has `10 + 100 = 110` |
        | second | rank 2 sends `[110]` | rank 3 has `110 + 1000 = 1110` |
        | third | rank 3 sends `[1110]` | rank 0 has `1110 + 1 = 1111` |

        After three steps, rank 0 has the complete sum of all parts `0`. Parts `1` travel at the
        same time: they start on rank 2, and their sum is complete on rank 1. Parts `2` and `3`
        travel in the same way. So all ranks are busy in each step, because each passes on a
        different part.

        In step `s`, rank `r` sends its part `r - s`, and adds what it receives to its part
        `r - s - 1`. (With `% ranks`, part `-1` is part `3`.) Check the first step, `s = 1`, against
        the table: rank 1 sends its part `1 - 1 = 0`, and rank 2 adds it to its own part
        `2 - 1 - 1 = 0`. `pass_on` sends a part to the next rank and returns what the previous rank
        has sent:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = 10**rank * torch.arange(1, 5)
    parts = mine.chunk(ranks)  # views: changing a part changes `mine`
    states = {}
    for step in range(1, ranks):
        incoming = pass_on(parts[(rank - step) % ranks])
        parts[(rank - step - 1) % ranks].add_(incoming)
        states[f"add {step}"] = from_all_ranks(mine.tolist())
    finished = [row[r] for r, row in enumerate(states["add 3"])]  # @inspect finished
    assert finished == [1111, 2222, 3333, 4444], \
        "After three steps, rank r has the sum of all parts r."
    note(r"""
        Each rank now has one complete part of the sum: this was a *reduce-scatter*. In three more
        steps, the complete parts travel round the ring. A rank now copies what it receives, and
        does not add it. This is an *all-gather*. Here `step` begins at `0`, so rank `r` first sends
        part `r`, the one that is complete on this rank:
    """)
    for step in range(ranks - 1):
        incoming = pass_on(parts[(rank - step) % ranks])
        parts[(rank - step - 1) % ranks].copy_(incoming)
        states[f"copy {step + 1}"] = from_all_ranks(mine.tolist())
    assert states["copy 3"] == ranks * [finished], \
        "After six steps, each of the four ranks has all four complete parts."
    assert len(states) == 2 * (ranks - 1), \
        "Adding takes three steps, and copying takes three."
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
        In the second half of the ring, somebody adds what a rank receives instead of copying it. In
        the first step of that half, rank 1 receives the complete part `0` from rank 0. Its own part
        `0` still has its first value, because nothing has been added to it. What is its part `0`
        after the mistake?
    """,
        answer=10 + 1111, check=states["add 3"][1][0] + finished[0], within=0.001,
        wrong={"That is what copying gives.": 1111},
        hint="Does the complete sum already contain what rank 1 has?",
        why=r"""
            Rank 1 has `10`, and receives `1111`, which already contains this `10`. After the
            addition, the `10` is in the sum twice: `1121`.
        """)


ROUNDING = 1e-5  # tolerance for another summation order in float32


def difference(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference between two tensors, as a share of the second's largest value."""
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def ring_reduce_scatter(parts: Sequence[Tensor]) -> Tensor:  # @show
    """Adds up the ranks' `parts` round the ring, in place; returns this rank's part of the sum.

    The other parts are left as incomplete sums.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in range(1, ranks):
        incoming = pass_on(parts[(rank - step) % ranks])
        parts[(rank - step - 1) % ranks].add_(incoming)
    return parts[rank]


def ring_all_gather(parts: Sequence[Tensor]) -> None:
    """Fills in, in place, the parts that the other ranks have; part r is that of rank r."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for step in range(ranks - 1):
        incoming = pass_on(parts[(rank - step) % ranks])
        parts[(rank - step - 1) % ranks].copy_(incoming)


@requires("linux, ranks=4")
def a_ring_sends_less_than_twice_the_tensor() -> None:
    """In a ring, each rank sends less than twice the tensor for an all-reduce, however many ranks there are."""
    note(r"""
        How many bytes does a rank send in an all-reduce? If each of $1000$ ranks sent its tensor to
        all others, it would send $999$ copies. The [ring](#a_ring_passes_sums_to_the_next_rank)
        does it with less than two.

        Count for four ranks. Each cuts its tensor into four parts and sends one part in each step.
        Adding up takes three steps and copying takes three. So a rank sends six parts, each a
        fourth of the tensor: one and a half copies. On $G$ ranks there are $G-1$ steps in each
        half, and in each step a rank sends a $G$th of the tensor:

        [@eq:all-reduce]: $$
        \underbrace{2}_{\text{halves}} \times \frac{G-1}{G} \times \text{bytes of the tensor}
        $$

        With more ranks this approaches two copies, but never reaches them. The ring saves most of
        the copies because a rank adds what it receives to its own part, and then passes on one sum
        instead of several parts.

        Four ranks have tensors of `240000` elements in `float32`, which are `4 * 240000 = 960000`
        bytes. `ring_reduce_scatter` and `ring_all_gather` are the two halves of our own ring. We
        compare them with the all-reduce of *gloo*, the library that carries data between CPUs:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = torch.randn(ranks, 240_000)[rank]  # another row on each rank
    formula = 2 * (ranks - 1) * x.nbytes // ranks  # @inspect formula as B
    assert formula == 1.5 * 960_000, \
        "By the formula, a rank sends one and a half times the 960000 bytes of its tensor."
    by_hand, by_gloo = x.clone(), x.clone()
    parts = by_hand.chunk(ranks)
    with Wire() as ring_wire:
        ring_reduce_scatter(parts)
        ring_all_gather(parts)
    with Wire() as gloo_wire:
        dist.all_reduce(by_gloo)
    assert difference(by_hand, by_gloo) < ROUNDING, \
        "Our ring and gloo give the same sums, up to rounding."
    ratios = ring_wire.sent / formula, gloo_wire.sent / formula  # @inspect ratios
    assert [round(ratio, 2) for ratio in ratios] == [1.0, 1.0], \
        "Our ring and gloo both send the bytes of the formula, and headers add less than 1 %."
    figure(plot_traffic({"our ring": from_all_ranks(ring_wire.to), "gloo's all-reduce": from_all_ranks(gloo_wire.to)}),
        caption=r"""
            Bytes that each rank (row) sent to each other rank (column). Each rank sends to one
            neighbor; gloo's ring runs in the other direction.
        """,
        alt=r"""
            Two tables. In both, every rank sends nearly all of its bytes to one neighbor, and the
            amounts are nearly the same.
        """)
    question(r"""
        Instead of a ring, each of `8` ranks sends its whole tensor to each of the others. How many
        times as many bytes does a rank send as with the ring?
    """, answer=7 / (2 * 7 / 8), check=8 / 2, unit="times",
        wrong={"The ring sends nearly two copies, not one.": 7 / (7 / 8)},
        hint="How many copies does a rank send in each of the two ways?",
        why=r"""
            A rank that sends its tensor to all others sends `7` copies. With the ring, it sends
            `2 * 7 / 8` copies. In general the factor is $G/2$: the more ranks, the more the ring
            saves.
        """)


@requires("linux, ranks=4")
def an_all_to_all_transposes() -> None:
    """In an all-to-all, each rank sends a different part to every rank."""
    note(r"""
        A rank may have different data for each of the other ranks. (In
        [expert parallelism](#the_router_decides_the_bytes) these data are tokens, and each token
        goes to the rank with the weights that it needs.) How can all ranks exchange such data at
        once?

        In an *all-to-all*, each rank cuts its tensor into one part for each rank, and part $i$ goes
        to rank $i$. Nothing is added. Rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, and
        ranks 2 and 3 have hundreds and thousands. A part is one element. So rank 0 gets the first
        element of every rank, rank 1 the second, and so on. Put the tensor of each rank into a row
        of a table: `columns` lists the columns of this table:
    """)
    rank = dist.get_rank()
    mine = 10**rank * torch.arange(1, 5)
    start = from_all_ranks(mine.tolist())
    received = torch.empty_like(mine)
    dist.all_to_all_single(received, mine)
    exchanged = from_all_ranks(received.tolist())
    columns = [list(column) for column in zip(*start)]  # @inspect columns
    assert exchanged[0] == [1, 10, 100, 1000], \
        "Rank 0 has the first element of every rank."
    assert exchanged == columns, \
        "Element i of all ranks, a column of the table, is now the row of rank i."
    figure(plot_held({"at first": start, "after an all-to-all": exchanged}),
        caption=r"""
            What each rank holds before and after an all-to-all. The all-to-all transposes the table
            that has a row for each rank.
        """,
        alt="Two panels. At first each row has one color; afterwards each column has one.")
    note(r"""
        How many bytes does a rank send? It sends three of its four parts, because its own part
        stays: three quarters of its tensor.
    """)
    x = torch.randn(240_000)  # @unnoticed: 240_000: a tensor of any size
    with Wire() as wire:
        dist.all_to_all_single(torch.empty_like(x), x)  # @unnoticed: arguments swapped: any numbers
    sent_share = wire.sent / x.nbytes  # @inspect sent_share as %
    assert round(sent_share, 2) == 3 / 4, \
        "Each rank sends three quarters of its tensor, and headers add less than 1 %."
    question(r"""
        Each rank cuts its tensor into parts and calls an all-to-all. Then it calls an all-to-all
        with the result. What share of its original elements does a rank then hold again, each in
        its original position?
    """, answer=1.0, check=torch.arange(16).view(4, 4).T.T.eq(torch.arange(16).view(4, 4)).float().mean().item(), unit="%", within=0.02,
        hint="What does an all-to-all do to the table of all ranks' parts?",
        why=r"""
            An all-to-all transposes the table of parts. Transposed twice, it is as it was. So the
            second all-to-all brings back what the first one sent away: tokens go out, and results
            come back in the same order.
        """,
        wrong={"That is after a single all-to-all: only the diagonal stays where it is.": 0.25})


def doubling_all_reduce(x: Tensor) -> int:  # @show
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
    """A ring sends few bytes in many steps, and for a small tensor the steps determine the time."""
    note(r"""
        Each exchange takes a few microseconds, however little it sends. This time is its *latency*.
        In [a ring](#a_ring_passes_sums_to_the_next_rank), an all-reduce on four ranks needs three
        exchanges to add up, and three to copy the sums. On `64` ranks it needs `2 * 63`. Can it be
        done in fewer?

        Yes, by *recursive doubling*. In the first exchange, ranks 0 and 1 send each other their
        whole tensors, and so do ranks 2 and 3. Each rank adds what it receives, and has the sum
        over two ranks. In the second exchange, ranks 0 and 2 send each other these sums, and so do
        ranks 1 and 3. Now all four ranks have the sum over four. Each exchange doubles the number
        of ranks in a sum, so `64` ranks need `6` exchanges, because `2**6 = 64`:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = torch.randn(ranks, 60_000)[rank]  # @unnoticed: 60_000: a tensor of any size
    total = x.clone()
    dist.all_reduce(total)
    with Wire() as wire:
        exchanges = doubling_all_reduce(x)  # @inspect exchanges
    assert difference(x, total) < ROUNDING, \
        "Recursive doubling gives the sum of an all-reduce, up to rounding."
    tensors = wire.sent / x.nbytes  # @inspect tensors as .2f
    assert round(tensors, 2) == exchanges == 2, \
        "Four ranks need two exchanges, and each rank sends its whole tensor twice."
    note(r"""
        Recursive doubling sends the whole tensor in each exchange, `6` times on `64` ranks. A ring
        sends a `64`th of the tensor in each exchange, `2 * 63 / 64` tensors in total. Which one is
        faster?

        Suppose that an exchange takes its `latency` plus its bytes divided by the `bandwidth` of a
        link. With the values below, a megabyte takes $10$ microseconds to send. The ring needs
        `126 * 5 = 630` microseconds for the latencies of its exchanges, and `126 / 64 * 10`, about
        $20$, for the bytes. Recursive doubling needs `6 * 5 = 30` for the latencies and
        `6 * 10 = 60` for the bytes.

        In the code, each algorithm is a pair: the number of exchanges, and the number of tensors
        that a rank sends:
    """)
    latency, bandwidth = 5e-6, 100e9  # @inspect latency as s, bandwidth as B/s
    ways = {"ring": (2 * 63, 2 * 63 / 64), "recursive doubling": (6, 6)}

    def seconds(way: str, size: float) -> float:
        exchanges, tensors = ways[way]
        return exchanges * latency + tensors * size / bandwidth

    small = {way: seconds(way, 1e6) for way in ways}  # @inspect small as s
    large = {way: seconds(way, 1e9) for way in ways}  # @inspect large as s
    assert 7.2 < small["ring"] / small["recursive doubling"] < 7.25, \
        "For a megabyte, a ring takes 7.2 times as long as recursive doubling."
    assert 2.95 < large["recursive doubling"] / large["ring"] < 2.96, \
        "For a gigabyte, recursive doubling takes nearly 3 times as long as a ring."
    note("So libraries have several algorithms, and choose one by the size of the tensor.")
    question(r"""
        A step all-reduces `100` small tensors one after another, by a ring on `64` ranks. An
        exchange has a latency of `5` microseconds, and the time for the bytes is negligible.
        Somebody packs all tensors into one. How many milliseconds does that save?
    """, answer=99 * 126 * latency * 1e3, check=(100 * seconds("ring", 0) - seconds("ring", 0)) * 1e3, unit="ms", within=0.02,
        hint="How many exchanges does each all-reduce need, however small its tensor is?",
        why=r"""
            Each of the `100` all-reduces needs `126` exchanges, of `5` microseconds each. Packed
            into one, `126` exchanges are enough, so `99 * 126` are saved.
        """)


@aside
@requires("ranks=4")
def a_collective_needs_every_rank() -> None:
    """If one rank does not call a collective, the others wait."""
    note(r"""
        A program on several ranks may hang without any message. Why? Often the reason is a
        [collective](#an_all_reduce_leaves_the_sum_everywhere), which all ranks have to call.
        Suppose that one rank does not, for instance because it took another branch of an `if`. Then
        the others wait for it until a *timeout*, because they cannot know that it will never call
        the collective. The timeout is minutes long unless you set it.

        Here three of four ranks call an all-reduce and rank 2 does not. `impatient` is a group of
        the same ranks with a timeout of half a second:
    """)
    rank, message = dist.get_rank(), ""
    short = timedelta(seconds=0.5)  # @unnoticed: 0.5: any short time
    impatient = dist.new_group(timeout=short)
    if rank != 2:
        try:
            dist.all_reduce(torch.ones(4), group=impatient)  # @unnoticed: 4: any size
        except RuntimeError as error:
            message = str(error)
    failed = from_all_ranks(message != "")  # @inspect failed
    assert failed == [True, True, False, True], \
        "The three ranks that called the all-reduce get an error, and rank 2 gets none."
    late = "Timed out" in str(from_all_ranks(message))
    assert late, "The error says that the call has timed out."
    note(r"""
        While you develop such a program, run it with `TORCH_DISTRIBUTED_DEBUG=DETAIL`. Then PyTorch
        checks before each collective that all ranks call the same one.
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
