"""Collectives: what each rank holds before and after, and what crosses the wire."""
import math
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor
from wire import HEADER, Wire, from_all_ranks

from litbook import aside, figure, misbelief, note, question, requires

from .figures import plot_held, plot_traffic


def collectives() -> None:
    """Collectives."""
    note(r"""
        Several cards that train one model have to exchange numbers. They do it with a handful of
        operations, the *collectives*. Each is known by what every card holds before it and after
        it. Two questions go with each of them: what is it good for, and how many bytes does it
        send?
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
        To train on several cards, we start several processes, one for each card. Such a process is
        called a *rank*. All ranks run the same program, and each has a number: rank 0, rank 1, and
        so on. All ranks together are a *process group*. Can one rank see what another one has in
        memory?

        Four ranks ran the code of this section, on processors in place of cards. `rank` is the
        number of the rank that runs the line, and `ranks` is how many there are. Each rank makes a
        tensor of four numbers. Rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, and ranks
        2 and 3 have hundreds and thousands. Where a value differs from rank to rank, the page shows
        all four:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @inspect rank, ranks
    mine = 10**rank * torch.arange(1, 5)  # @inspect mine
    note(r"""
        In `from_all_ranks`, each rank sends a copy of its value to all others, and makes a list of
        what it gets, in the order of ranks. We look at the values of ranks 0 and 3:
    """)
    start = from_all_ranks(mine.tolist())
    assert start[0] == [1, 2, 3, 4], "Rank 0 has the numbers 1 to 4."
    assert start[3] == [1000, 2000, 3000, 4000], \
        "Rank 3 has a thousand times these numbers."
    note("Now rank 0 writes a `9` into its tensor. Does that change the tensor of another rank?")
    if rank == 0:
        mine[0] = 9  # @unnoticed: 0: any place
    changed = from_all_ranks(mine.tolist())
    untouched = [changed[r] == start[r] for r in range(ranks)]  # @inspect untouched
    assert untouched == [False, True, True, True], \
        "The tensor of rank 0 has changed, and those of the other ranks have not."
    note(r"""
        It does not, because each process has memory of its own. What another rank needs must be
        sent to it. Here rank 0 sends its tensor (`send`), and rank 1 receives it (`recv`), which
        overwrites what rank 1 had:
    """)
    if rank == 0:
        dist.send(mine, dst=1)
    if rank == 1:
        dist.recv(mine, src=0)  # @unnoticed: src= dropped: rank 0 alone sends
    sent = from_all_ranks(mine.tolist())
    assert sent[1] == changed[0] != changed[1], \
        "After the message, rank 1 has the numbers of rank 0."
    assert sent[2:] == start[2:], "Ranks 2 and 3 still have their own numbers."
    figure(plot_held({"at first": start, "rank 0 writes": changed, "and sends to 1": sent}),
        caption=r"""
            What each rank holds at first, after rank 0 has written a `9`, and after rank 1 has
            received the tensor of rank 0. The colour of a number says which rank made it.
        """,
        alt=r"""
            Three panels with a row of four numbers for each rank. In the second panel the first
            number of rank 0 has changed. In the third, rank 1 has the numbers of rank 0.
        """)
    question(r"""
        Ranks 0 and 1 now hold a `9`. Next, rank 1 sends its tensor to rank 2. After that, rank 2
        sends its own to rank 3. How many ranks hold a `9` in the end?
    """, answer=sum(9 in row for row in [sent[0], sent[1], sent[1], sent[1]]), check=ranks, unit="ranks",
        wrong={"Rank 3 gets what rank 2 has just received, not what it had at first.": 3},
        hint="What does rank 2 hold at the moment when it sends?",
        why="Sending leaves the sender's tensor as it is. So ranks 0 and 1 keep the `9`, rank 2 gets it from rank 1, and rank 3 gets it from rank 2, which already holds it when it sends.")


@requires("ranks=4")
def an_all_reduce_leaves_the_sum_everywhere() -> None:
    """A reduce leaves the sum on one rank, an all-reduce leaves it on every rank."""
    note(r"""
        Four [ranks](#a_rank_sees_its_own_memory_alone), processes for one card each, hold four
        numbers each, and need the sum of all of them, number by number. An exchange that all ranks
        enter together is called a *collective*. Two collectives add up.

        Rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, and ranks 2 and 3 have hundreds
        and thousands. So the sum of the four first numbers is `1 + 10 + 100 + 1000 = 1111`, and
        each of its digits comes from another rank. A *reduce* leaves the sum on a single rank.
        `dst` says on which, here on rank 0. (`from_all_ranks` shows what each rank has, in a list
        for each rank.)
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = 10**rank * torch.arange(1, 5)
    start = from_all_ranks(mine.tolist())
    total = [sum(column) for column in zip(*start)]  # @inspect total
    at_one = mine.clone()
    dist.reduce(at_one, dst=0)
    reduced = from_all_ranks(at_one.tolist())
    assert reduced[0] == total == [1111, 2222, 3333, 4444], \
        "After the reduce, rank 0 has the sum of the four ranks' numbers."
    note("An *all-reduce* leaves the same sum on every rank:")
    everywhere = mine.clone()
    dist.all_reduce(everywhere)
    summed = from_all_ranks(everywhere.tolist())
    assert summed == ranks * [total], \
        "After the all-reduce, each of the four ranks has the sum."
    figure(plot_held({"at first": start, "after a reduce": reduced, "after an all-reduce": summed}),
        caption=r"""
            What each rank holds at first, after a reduce to rank 0, and after an all-reduce. A
            number has the colours of all ranks whose numbers are in it.
        """,
        alt=r"""
            Three panels. At first each rank has numbers of its own colour. After the reduce, rank 0
            has numbers of all four colours. After the all-reduce all ranks have them.
        """)
    misbelief("A reduce changes nothing on the ranks that do not get the sum.", rf"""
        It may overwrite their numbers. Only the rank in `dst` is promised a result. Here rank 1 had
        {start[1]} before the reduce and {reduced[1]} after it, because sums pass through it on
        their way to rank 0.
    """)
    lost = [reduced[r] != start[r] for r in range(ranks)]  # @inspect lost
    assert all(lost), \
        "After this reduce, no rank has the numbers that it began with."
    question(r"""
        Each of eight ranks has its own number: rank 0 has `0`, rank 1 has `1`, and so on up to rank
        7, which has `7`. They all-reduce these numbers. Which number does rank 5 have then?
    """, answer=sum(range(8)), check=8 * 7 // 2,
        hint="Does it matter which rank one asks?",
        why="An all-reduce leaves the sum of all ranks' numbers on every rank: `0 + 1 + … + 7 = 28`.",
        wrong={"That is what rank 5 had; an all-reduce replaces it on every rank.": 5})


@requires("ranks=4")
def an_all_reduce_has_two_halves() -> None:
    """A reduce-scatter followed by an all-gather is an all-reduce."""
    note(r"""
        An [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) leaves the sum of all ranks'
        tensors on every rank. Often a rank needs only a part of that sum. Cut a tensor into as many
        equal parts as there are ranks, and give one part to each rank: such a part is a *shard*. A
        *reduce-scatter* adds up, too, but leaves each rank only its shard of the sum.

        Four ranks have four numbers each: rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`,
        and ranks 2 and 3 have hundreds and thousands. So a shard is one number: `1111` for rank 0,
        `2222` for rank 1, and so on. In the code, `chunk` cuts a tensor into equal parts, and
        `empty_like` makes room for a result. `from_all_ranks` shows what each rank has:
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
    note("An *all-gather* collects the shards of all ranks, in the order of ranks, on every rank:")
    whole = [torch.empty_like(shard) for _ in range(ranks)]
    dist.all_gather(whole, shard)
    gathered = from_all_ranks(torch.cat(whole).tolist())
    dist.all_reduce(mine)
    reduced = from_all_ranks(mine.tolist())
    assert gathered == reduced, \
        "After the all-gather, all ranks have what an all-reduce gives."
    figure(plot_held({"at first": start, "after a reduce-scatter": scattered, "after an all-gather": gathered}),
        caption=r"""
            What each rank holds at first, after a reduce-scatter, and after an all-gather of its
            results. The two together are an all-reduce.
        """,
        alt=r"""
            Three panels. After the reduce-scatter each rank has one number, in all four colours.
            After the all-gather each rank has all four of these numbers.
        """)
    note(r"""
        So an all-reduce has two halves. Between them, each rank has a part of the sum that no other
        rank has. A rank can work on its part there, and the all-gather brings the results to all.
    """)
    question(r"""
        Sixteen ranks reduce-scatter a tensor of `4096` numbers in `float32`, `4` bytes each. How
        many bytes is the result of one rank?
    """, answer=4096 * 4 // 16, check=torch.empty(4096).chunk(16)[0].nbytes, unit="B",
        wrong={"That is the whole tensor, as after an all-reduce.": 4 * 4096,
               "That counts numbers, which have `4` bytes each.": 256},
        hint="How many numbers does a shard have?",
        why="A shard has `4096 / 16 = 256` numbers, of `4` bytes each.")


@requires("linux, ranks=4")
def the_kernel_counts_what_a_rank_sends() -> None:
    """An all-gather sends one shard fewer than there are ranks."""
    note(r"""
        Each of four ranks holds one *shard*, a fourth of a tensor. An
        [all-gather](#an_all_reduce_has_two_halves) collects all four shards on every rank. How many
        bytes does a rank send for that?

        We measure it. The operating system counts the bytes that a rank writes to each other rank,
        and `Wire` reads these counts before and after a block of code. First we try `Wire` on a
        single message: rank 0 sends rank 3 a tensor of `1000` numbers in `float32`, which has
        `4 * 1000` bytes. `by_send` has a row for each rank that sends, and in it the bytes to each
        rank:
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
        So `Wire` counts right. The *headers* are little notes of {HEADER} bytes which *gloo* adds,
        the library that carries the data between processors: rank 3 says that it is ready, and rank
        0 says what is coming. Now the all-gather, with a shard of `60000` numbers on each rank:
    """)
    shard = torch.randn(60_000)
    whole = [torch.empty_like(shard) for _ in range(ranks)]
    with Wire() as wire:
        dist.all_gather(whole, shard)
    by_gather = from_all_ranks(wire.to)  # @inspect by_gather
    shards, rest = divmod(wire.sent, shard.nbytes)  # @inspect shards, rest as B
    assert shards == ranks - 1, \
        "Each of the four ranks sends three shards. The rest are headers."
    assert wire.sent - rest == 720_000, \
        "Three shards of 60000 numbers take 720000 bytes."
    assert rest == 18 * HEADER, \
        "The rest are 18 headers: two with each of the six messages that a rank sends, one in return for each of the six that it gets."  # @hide
    note(r"""
        Each rank sends shards to one neighbour only: first its own, and then those that come in
        from its other neighbour, to which it returns headers alone. It sends three of the four,
        because the fourth is the neighbour's own. In general, $G$ ranks have shards of a $G$th of
        the tensor, and each sends $G-1$ of them:

        [@eq:gather]: $$
        \frac{G-1}{G} \times \text{bytes of the tensor}
        $$

        On four ranks that is three quarters of the tensor. With many ranks it is nearly all of it.
    """)
    figure(plot_traffic({"a send from 0 to 3": by_send, "an all-gather": by_gather}),
        caption=r"""
            Bytes that each rank (row) sent to each other rank (column), in one message and in an
            all-gather. In the all-gather, each rank sends shards to one neighbour only, and six
            headers to the other.
        """,
        alt=r"""
            Two tables. In the first, only rank 0 sends some thousand bytes to rank 3, and a header
            comes back. In the second, each rank sends nearly all of its bytes to one neighbour.
        """)
    question(r"""
        Eight ranks hold the weights of a model in shards of `1` GB. An all-gather gives each of
        them all `8` GB. How many GB does each rank send?
    """, answer=(8 - 1) / 8 * 8, check=(8 - 1) * 1, unit="GB", hint="Which of the eight shards does the neighbour have already?",
        why="A rank sends its neighbour all shards but the one that the neighbour held from the start: seven of `1` GB.",
        wrong={"The neighbour has one of the shards already.": 8,
               "Other ranks' shards pass through a rank, too.": 1})


def pass_on(part: Tensor) -> Tensor:
    """Sends `part` to the next rank in the ring; returns what the rank before has sent."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    incoming = torch.empty_like(part)
    both = [dist.P2POp(dist.isend, part, (rank + 1) % ranks),
            dist.P2POp(dist.irecv, incoming, (rank - 1) % ranks)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    return incoming


@requires("ranks=4")
def a_ring_passes_sums_to_the_next_rank() -> None:
    """In a ring, each rank sends to the next one only."""
    note(r"""
        Four ranks want the sum of their tensors on every rank, an
        [all-reduce](#an_all_reduce_leaves_the_sum_everywhere). How can they get it if each sends to
        one other rank only? Put them in a *ring*: each sends to the next, and the last to the
        first.

        Each rank cuts its four numbers into parts `0` to `3`, of one number each. Rank 0 has
        `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`, and ranks 2 and 3 have hundreds and
        thousands. So the parts `0` are `[1]`, `[10]`, `[100]` and `[1000]`. Follow them:

        | step | who sends its part `0` | what the receiver has after adding |
        |---|---|---|
        | first | rank 1 sends `[10]` | rank 2 has `10 + 100 = 110` |
        | second | rank 2 sends `[110]` | rank 3 has `110 + 1000 = 1110` |
        | third | rank 3 sends `[1110]` | rank 0 has `1110 + 1 = 1111` |

        After three steps, rank 0 has the finished sum of all parts `0`. Parts `1` go round at the
        same time, one rank ahead, and are finished at rank 1, and so on. So in step `s`, rank `r`
        sends its part `r - s`, and adds what comes in to its part `r - s - 1`. (`% ranks` counts on
        from the end below zero: part `-1` is part `3`.) `pass_on` sends a part to the next rank and
        returns what came from the rank before:
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
        Each rank now has one part of the sum: this was a *reduce-scatter*. In three more steps, the
        finished parts go round the ring. What comes in is copied now, not added. This is an
        *all-gather*:
    """)
    for step in range(ranks - 1):
        incoming = pass_on(parts[(rank - step) % ranks])
        parts[(rank - step - 1) % ranks].copy_(incoming)
        states[f"copy {step + 1}"] = from_all_ranks(mine.tolist())
    assert states["copy 3"] == ranks * [finished], \
        "After six steps, each of the four ranks has all four finished parts."
    assert len(states) == 2 * (ranks - 1), \
        "Adding takes three steps, and copying takes three."
    figure(plot_held(states),
        caption=r"""
            What each rank holds after each step. In the first three steps one number of each rank
            gets one colour more, and in the last three the finished numbers are copied.
        """,
        alt=r"""
            Six panels. In each of the first three steps, one number of each rank gets one colour
            more. Then each rank has one number of four colours. In the last three steps these
            numbers are copied from rank to rank until all ranks have all.
        """)
    question(r"""
        In a ring of four ranks, an all-reduce takes three steps to add up and three to copy. How
        many steps does it take in a ring of `64` ranks?
    """,
        answer=2 * (64 - 1), check=len(range(1, 64)) + len(range(64 - 1)), unit="steps",
        wrong={"That is one half; the sums still have to be copied.": 63,
               "A part that goes all the way round is back where it began.": 128},
        hint="How many other ranks does a part have to meet?",
        why="A part has to meet the `63` other ranks, which takes `63` steps. Then the finished part goes to the `63` others.")


ROUNDING = 1e-5  # what adding in another order may change in float32


def difference(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference between two tensors, as a share of the second's largest number."""
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def ring_reduce_scatter(parts: Sequence[Tensor]) -> Tensor:
    """Adds up the ranks' `parts` round the ring, in place; returns this rank's part of the sum.

    The other parts are left as sums on their way.
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
    """Each rank sends less than twice the tensor in an all-reduce, however many ranks there are."""
    note(r"""
        How many bytes does a rank send in an all-reduce, which leaves the sum of all ranks' tensors
        on every rank? Take four ranks in [a ring](#a_ring_passes_sums_to_the_next_rank), where each
        sends to the next one only, and tensors of `240000` numbers in `float32`. Each rank cuts its
        tensor into four parts, of `240000` bytes each, and sends one part in each step. Adding up
        takes three steps (a *reduce-scatter*), and copying the sums takes three (an *all-gather*).
        So each rank sends six parts, `6 * 240000` bytes. In general, on $G$ ranks there are
        $2\,(G-1)$ steps with a $G$th of the tensor in each:

        [@eq:all-reduce]: $$
        2 \times \frac{G-1}{G} \times \text{bytes of the tensor}
        $$

        With more ranks this comes near to twice the tensor, and never reaches it. Does a count of
        the bytes agree? `Wire` counts what a rank sends. First comes our own ring:
        `ring_reduce_scatter` adds up, and `ring_all_gather` copies. Then comes the all-reduce of
        *gloo*, the library that carries the data between processors:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = torch.randn(ranks, 240_000)[rank]
    formula = 2 * (ranks - 1) * x.nbytes // ranks  # @inspect formula as B
    assert formula == 6 * 240_000, \
        "By the formula, a rank sends six parts of 240000 bytes."
    by_hand, by_gloo = x.clone(), x.clone()
    parts = by_hand.chunk(ranks)
    with Wire() as ring:
        ring_reduce_scatter(parts)
        ring_all_gather(parts)
    with Wire() as gloo:
        dist.all_reduce(by_gloo)
    assert difference(by_hand, by_gloo) < ROUNDING, \
        "Our ring and gloo give the same sums, up to rounding."
    ratios = ring.sent / formula, gloo.sent / formula  # @inspect ratios
    assert [round(ratio, 2) for ratio in ratios] == [1.0, 1.0], \
        "Our ring and gloo both send the bytes of the formula, within 1 %."
    assert ring.sent - formula == 18 * HEADER, \
        "Beside the formula, our ring sends 18 headers of gloo: three for each of six messages."  # @hide
    assert gloo.sent - formula == 36 * HEADER, \
        "Beside the formula, gloo's all-reduce sends 36 headers, as of twelve messages."  # @hide
    note(r"""
        Both send what the formula says, and short headers that gloo adds to each message.

        The reduce-scatter is the first half of the ring. So alone it should send half as many bytes
        as an all-reduce. Ours does, and gloo's does not:
    """)
    parts, shard = x.clone().chunk(ranks), torch.empty(x.numel() // ranks)
    with Wire() as ours:
        ring_reduce_scatter(parts)
    with Wire() as theirs:
        dist.reduce_scatter(shard, list(x.chunk(ranks)))
    shares = ours.sent / formula, theirs.sent / formula  # @inspect shares as %
    assert [round(share, 2) for share in shares] == [0.5, 1.0], \
        "Our reduce-scatter sends half of the formula's bytes, and gloo's sends all of them."
    misbelief("A reduce-scatter always sends half as much as an all-reduce.", r"""
        gloo's sends as much as an all-reduce: it makes the whole sum on every rank, and throws away
        what the rank did not ask for. Only with a ring like ours it is half. The name of a
        collective says what each rank gets, not what is sent.
    """)
    figure(plot_traffic({"our ring": from_all_ranks(ring.to), "gloo's all-reduce": from_all_ranks(gloo.to),
                         "gloo's reduce-scatter": from_all_ranks(theirs.to)}),
        caption=r"""
            Bytes that each rank (row) sent to each other rank (column). Each rank sends to one
            neighbour; gloo's ring turns the other way than ours.
        """,
        alt=r"""
            Three tables. In each of them every rank sends nearly all of its bytes to one neighbour,
            and the amounts are nearly the same in all three.
        """)
    question(r"""
        The gradients of `8` billion parameters take `2` bytes each. How many GB does each of `64`
        ranks send to all-reduce them?
    """, answer=2 * 63 / 64 * 8 * 2, check=(64 - 1 + 64 - 1) * (8 * 2 / 64), unit="GB",
        wrong={"That is one half of the ring.": 63 / 64 * 16,
               "A rank sends to the next one only, not to all others.": 63 * 16},
        hint="How many GB are the gradients, and what share of them does each half of the ring send?",
        why="The gradients take `16` GB. Each half of the ring sends `63 / 64` of that, so both together send nearly twice `16` GB. On `1024` ranks it would be hardly more.")


@requires("linux, ranks=4")
def an_all_to_all_transposes() -> None:
    """In an all-to-all, each rank sends another part to every rank."""
    note(r"""
        A rank may have something different for each of the other ranks: tokens, for example, that
        go to different ranks because each rank keeps other parts of the model. The exchange for
        that is the *all-to-all*. Each rank cuts its tensor into one part for each rank, and part
        $i$ goes to rank $i$. Nothing is added.

        Four ranks have four numbers each: rank 0 has `[1, 2, 3, 4]`, rank 1 has `[10, 20, 30, 40]`,
        and ranks 2 and 3 have hundreds and thousands. A part is one number. So rank 0 gets the
        first number of every rank, rank 1 the second, and so on:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = 10**rank * torch.arange(1, 5)
    start = from_all_ranks(mine.tolist())
    received = torch.empty_like(mine)
    dist.all_to_all_single(received, mine)
    exchanged = from_all_ranks(received.tolist())
    columns = [list(column) for column in zip(*start)]
    assert exchanged[0] == [1, 10, 100, 1000], \
        "Rank 0 has the first number of every rank."
    assert exchanged == columns, \
        "The numbers i of all ranks, a column of the table, are now those of rank i, a row."
    figure(plot_held({"at first": start, "after an all-to-all": exchanged}),
        caption=r"""
            What each rank holds before and after an all-to-all. Written as a table with a row for
            each rank, the numbers are transposed.
        """,
        alt="Two panels. At first each row has one colour; afterwards each column has one.")
    note(r"""
        How many bytes does a rank send? It sends all parts but one, because its own part stays. Try
        a tensor of `240000` numbers on four ranks. A part is a fourth of it, `240000` bytes in
        `float32`, so a rank should send `3 * 240000` bytes. `Wire` counts what it sends:
    """)
    x = torch.randn(240_000)
    with Wire() as wire:
        dist.all_to_all_single(torch.empty_like(x), x)  # @unnoticed: arguments swapped: any numbers
    part = x.nbytes // ranks  # @inspect part as B
    assert part == 240_000, "A part of 60000 numbers takes 240000 bytes."
    parts_sent = wire.sent / part  # @inspect parts_sent
    assert round(parts_sent, 2) == ranks - 1, \
        "Each of the four ranks sends three parts."
    extra = [sent - part for sent in wire.to if sent]  # @hide
    assert extra == (ranks - 1) * [3 * HEADER], \
        "Each rank sends one part and three headers of 48 bytes to each other rank."  # @hide
    question(r"""
        Each of `8` ranks has `16384` tokens of `4096` numbers in `2` bytes. Each token has to go to
        one of the `8` ranks, to any of them with equal chance. How many MB does a rank send in an
        all-to-all, on average?
    """, answer=7 / 8 * 16384 * 4096 * 2 / 1e6,
        check=sum(16384 / 8 * 4096 * 2 for other in range(7)) / 1e6, unit="MB", within=0.05,
        hint="How many MB do all tokens of a rank take, and what share of them goes to another rank?",
        why="`16384` tokens of `4096 * 2` bytes are `134` MB. One token in eight goes to the rank where it is already, so seven eighths are sent.",
        wrong={"A token that stays is not sent.": 16384 * 4096 * 2 / 1e6})


def doubling_all_reduce(x: Tensor) -> int:
    """Makes `x` the sum of all ranks' `x`, in place; returns how many exchanges it took.

    Each exchange is of the whole tensor, with a rank twice as far away as before.
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
    """A ring sends few bytes in many steps, and for a small tensor the steps decide."""
    note(r"""
        Each time that ranks exchange something, it takes some microseconds, however little they
        send: the *latency*. In [a ring](#a_ring_passes_sums_to_the_next_rank), each rank sends to
        the next one only. There an all-reduce takes three exchanges on four ranks to add up, and
        three to copy the sums. On `64` ranks it takes `2 * 63`. Can ranks do with fewer?

        They can, by *recursive doubling*. In the first exchange, ranks 0 and 1 send each other
        their whole tensors, and so do ranks 2 and 3. Both add up, and have the sum of two ranks. In
        the second exchange, ranks two apart send each other these sums: ranks 0 and 2, and ranks 1
        and 3. Now all four ranks have the sum of four. Each exchange doubles the number of ranks in
        a sum, so `64` ranks take `6` exchanges, because `2**6 = 64`. `doubling_all_reduce` does
        that, and `Wire` counts the bytes:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = torch.randn(ranks, 60_000)[rank]  # @unnoticed: 60_000: a tensor of any size
    total = x.clone()
    dist.all_reduce(total)
    with Wire() as wire:
        exchanges = doubling_all_reduce(x)  # @inspect exchanges
    assert difference(x, total) < ROUNDING, \
        "Recursive doubling gives the sum of an all-reduce, up to rounding."
    tensors = wire.sent / x.nbytes  # @inspect tensors
    assert round(tensors, 2) == exchanges == 2, \
        "Four ranks take two exchanges, and each rank sends its whole tensor twice."
    note(r"""
        On `64` ranks, a ring cuts the tensor into `64` parts and sends one in each of `2 * 63`
        exchanges. Doubling sends the whole tensor in each of `6`. Which one is faster? `ring` and
        `doubling` give the seconds for a tensor of `size` bytes: the `latency` of each exchange,
        and the bytes that are sent, divided by the `bandwidth` of a link:
    """)
    latency, bandwidth = 5e-6, 100e9  # @inspect latency as s, bandwidth as B/s

    def ring(size: float, ranks: int = 64) -> float:
        steps = 2 * (ranks - 1)
        return steps * latency + steps / ranks * size / bandwidth

    def doubling(size: float, ranks: int = 64) -> float:
        steps = math.log2(ranks)
        return steps * latency + steps * size / bandwidth

    small = ring(1e6) / doubling(1e6)  # @inspect small as times
    assert 7.2 < small < 7.25, \
        "For a megabyte, a ring takes 7.2 times as long as doubling."
    large = doubling(1e9) / ring(1e9)  # @inspect large as times
    assert 2.95 < large < 2.96, \
        "For a gigabyte, doubling takes nearly 3 times as long as a ring."
    note(rf"""
        For a megabyte, latency is most of the ring's time: `126 * 5 = 630` microseconds of
        {ring(1e6) * 1e6:.0f}. Doubling takes {doubling(1e6) * 1e6:.0f}. For a gigabyte, nearly all
        of the time goes to bytes, and doubling sends `6` tensors, the ring fewer than `2`.
    """)
    question(r"""
        On `64` ranks, a ring takes `126` exchanges and sends `126/64` tensors. Doubling takes `6`
        exchanges and sends `6` tensors. An exchange has a latency of `5` microseconds, and a link
        carries `100` GB/s. Up to which size of the tensor, in MB, is doubling faster?
    """, answer=(126 - 6) * latency / (6 - 126 / 64) * bandwidth / 1e6,
        check=doubling(0) * (126 - 6) / 6 / (doubling(1e6) - doubling(0) - ring(1e6) + ring(0)), unit="MB", within=0.05,
        hint="How many exchanges does doubling save, and how many tensors more does it send?",
        why=r"""
            Doubling saves `120` exchanges of `5` microseconds, which is `600` microseconds. It
            sends `6 - 126/64`, about `4`, tensors more. In `600` microseconds a link carries `60`
            MB, which is about `4` tensors of `15` MB.
        """)


@aside
@requires("ranks=4")
def a_collective_needs_every_rank() -> None:
    """If one rank does not enter a collective, the others wait."""
    note(r"""
        A program on several ranks may hang without any message. Often the reason is a
        [collective](#an_all_reduce_leaves_the_sum_everywhere), an exchange that all ranks have to
        enter. If one rank does not come, for instance because it did not take the same `if`, the
        others wait for it until a *time-out*, which is minutes long unless one sets it. Here three
        of four ranks enter an all-reduce and rank 2 does not. `impatient` is a group of the same
        ranks with a time-out of half a second:
    """)
    rank, ranks, message = dist.get_rank(), dist.get_world_size(), ""
    short = timedelta(seconds=0.5)  # @unnoticed: 0.5: any short time
    impatient = dist.new_group(timeout=short)
    if rank != 2:
        try:
            dist.all_reduce(torch.ones(4), group=impatient)  # @unnoticed: 4: any size
        except RuntimeError as error:
            message = str(error)
    failed = from_all_ranks(message != "")  # @inspect failed
    assert failed == [True, True, False, True], \
        "The three ranks that came get an error, and rank 2 gets none."
    late = "Timed out" in str(from_all_ranks(message))
    assert late, "The error says that the time is out."
    note(r"""
        Tensors of different shapes are worse, because nobody gets an error. Three ranks all-reduce
        the table `[[1, 2, 3], [4, 5, 6]]`. Rank 3 has transposed it by mistake, and holds
        `[[1, 4], [2, 5], [3, 6]]`. `right` is what each rank would have if all had the first table:
    """)
    table = torch.arange(1, 7).view(2, 3)
    mine = table if rank != 3 else table.T.contiguous()
    right = from_all_ranks((ranks * table).tolist())
    assert right == ranks * [[[4, 8, 12], [16, 20, 24]]], \
        "Four equal tables would add up to four times the table."
    dist.all_reduce(mine)
    sums = from_all_ranks(mine.tolist())
    wrong = [sums[r] != right[r] for r in range(ranks)]  # @inspect wrong
    assert all(wrong), "Every rank has wrong sums, and no rank has an error."
    assert sums[0] == [[4, 10, 11], [17, 18, 24]], \
        "The sums are those of numbers at the same place in memory."
    note(r"""
        `gloo`, the library that carries the data here, does not compare shapes. It adds what lies
        at the same place in memory: `[1, 2, 3, 4, 5, 6]` on three ranks and `[1, 4, 2, 5, 3, 6]` on
        rank 3. While you write such a program, run it with `TORCH_DISTRIBUTED_DEBUG=DETAIL`. Then
        PyTorch first compares the collectives and shapes of all ranks.
    """)
    question(r"""
        Ranks 0, 1 and 2 have the table `[[1, 2, 3], [4, 5, 6]]`, and rank 3 has it transposed,
        which lies in memory as `1, 4, 2, 5, 3, 6`. They all-reduce. Which sum do all get for the
        fifth of the six numbers in memory?
    """, answer=mine.flatten()[-2].item(), check=3 * 5 + 3, why="The fifth number in memory is a `5` on three ranks and a `3` on rank 3: `3 * 5 + 3`.",
        wrong={"That would be so without the transpose.": 4 * 5})
