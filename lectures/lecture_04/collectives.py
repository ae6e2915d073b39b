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
        To use many cards, we start many processes, one for each card. Such a process is called a
        *rank*. All ranks run the same program, and each has a number, counted from zero: rank 0,
        rank 1, and so on. All ranks together are a *process group*.

        Four ranks ran the code of this section, on processors in place of cards. Where a value
        differs from rank to rank, the page shows all four:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @inspect rank, ranks
    mine = 10**rank * torch.arange(1, 5)  # @inspect mine
    note(r"""
        Each rank made a tensor of its own: rank 0 has ones, rank 1 tens, rank 2 hundreds and rank 3
        thousands. So a number says by its digits which rank made it. `from_all_ranks` collects a
        value from every rank, in the order of ranks:
    """)
    start = from_all_ranks(mine.tolist())
    assert start[0] == [1, 2, 3, 4], "Rank 0 has ones."
    assert start[3] == [1000, 2000, 3000, 4000], "Rank 3 has thousands."
    note("Now rank 0 writes into its tensor. Do the other ranks see it?")
    if rank == 0:
        mine[0] = 9  # @unnoticed: 0: any place
    changed = from_all_ranks(mine.tolist())
    untouched = [changed[r] == start[r] for r in range(ranks)]  # @inspect untouched
    assert untouched == [False, True, True, True], \
        "Only rank 0 sees what it has written."
    note(r"""
        They do not, because each process has memory of its own. What another rank needs must be
        sent to it. Rank 0 sends its tensor, and rank 1 receives it into its own:
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
        caption="What each rank holds. The colour of a number says which rank made it.",
        alt=r"""
            Three panels with a row of four numbers for each rank. In the second panel the first
            number of rank 0 has changed. In the third, rank 1 has the numbers of rank 0.
        """)
    question(r"""
        After that, rank 1 sends its tensor to rank 2. Then rank 2 sends its own to rank 3. How many
        ranks hold a `9`?
    """, answer=sum(9 in row for row in [sent[0], sent[1], sent[1], sent[1]]), check=ranks, unit="ranks",
        wrong={"Rank 3 gets what rank 2 has just received, not what it had at first.": 3},
        hint="What does rank 2 hold at the moment when it sends?",
        why="The `9` goes from rank 0 to rank 1, from there to rank 2, and on to rank 3. When rank 2 sends, it already holds what rank 1 had.")


@requires("ranks=4")
def an_all_reduce_leaves_the_sum_everywhere() -> None:
    """A reduce leaves the sum on one rank, an all-reduce leaves it on every rank."""
    note(r"""
        A *collective* is an operation that all ranks of a group enter together. The first two add
        up tensors of the same shape, one from each rank, number by number. Here each of four ranks
        has four numbers: rank 0 ones, rank 1 tens, rank 2 hundreds, rank 3 thousands. So each digit
        of a sum says which rank it came from. A *reduce* leaves the sum on a single rank, here on
        rank 0:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = 10**rank * torch.arange(1, 5)
    start = from_all_ranks(mine.tolist())
    total = [sum(column) for column in zip(*start)]  # @inspect total
    at_one = mine.clone()
    dist.reduce(at_one, dst=0)
    reduced = from_all_ranks(at_one.tolist())
    assert reduced[0] == total == [1111, 2222, 3333, 4444], \
        "After the reduce, rank 0 has the sum."
    note("An *all-reduce* leaves the same sum on all ranks:")
    everywhere = mine.clone()
    dist.all_reduce(everywhere)
    summed = from_all_ranks(everywhere.tolist())
    assert summed == ranks * [total], \
        "After the all-reduce, every rank has the sum."
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
        The others' numbers may be overwritten. Only the rank in `dst` gets a result, and nothing is
        promised about the rest. Here rank 1 had {start[1]} and was left with {reduced[1]}: sums on
        their way to rank 0.
    """)
    lost = [reduced[r] != start[r] for r in range(ranks)]  # @inspect lost
    assert all(lost), "After the reduce, no rank has its own numbers any more."
    question(r"""
        Each of eight ranks has its own number: rank 0 has `0`, rank 1 has `1`, and rank 7 has `7`.
        They all-reduce these. Which number does rank 5 have then?
    """, answer=sum(range(8)), check=8 * 7 // 2,
        hint="Does it matter which rank one asks?",
        why="An all-reduce leaves the sum of all ranks' numbers on every rank: `0 + 1 + … + 7 = 28`.",
        wrong={"That is what rank 5 had; an all-reduce replaces it on every rank.": 5})


@requires("ranks=4")
def an_all_reduce_has_two_halves() -> None:
    """A reduce-scatter followed by an all-gather is an all-reduce."""
    note(r"""
        After an all-reduce, every rank has the whole sum of all ranks' tensors. Often no rank needs
        all of it. Cut a tensor into as many parts as there are ranks, and give each rank one of
        them: such a part is a *shard*. A *reduce-scatter* adds up like an all-reduce, but leaves on
        each rank only one shard of the sum. Here four ranks have four numbers each, ones on rank 0,
        tens on rank 1, and so on:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = 10**rank * torch.arange(1, 5)
    start = from_all_ranks(mine.tolist())
    shard = torch.empty_like(mine[:1])
    dist.reduce_scatter(shard, list(mine.chunk(ranks)))
    scattered = from_all_ranks(shard.tolist())
    assert scattered == [[1111], [2222], [3333], [4444]], \
        "After the reduce-scatter, each rank has one number of the sum."
    note(r"""
        An *all-gather* collects shards. Each rank has one, and afterwards all ranks have all of
        them:
    """)
    whole = [torch.empty_like(shard) for _ in range(ranks)]
    dist.all_gather(whole, shard)
    gathered = from_all_ranks(torch.cat(whole).tolist())
    dist.all_reduce(mine)
    reduced = from_all_ranks(mine.tolist())
    assert gathered == reduced, \
        "After the all-gather, all ranks have what an all-reduce gives."
    figure(plot_held({"at first": start, "after a reduce-scatter": scattered, "after an all-gather": gathered}),
        caption="What each rank holds: the two halves of an all-reduce, one after the other.",
        alt=r"""
            Three panels. After the reduce-scatter each rank has one number, in all four colours.
            After the all-gather each rank has all four of these numbers.
        """)
    note(r"""
        Between the two halves, each rank holds a part of the result that no other rank holds. Much
        of this lecture happens there: each rank updates its own shard of the parameters.
    """)
    question(r"""
        Sixteen ranks reduce-scatter a tensor of `4096` numbers in `float32`. How many bytes are the
        result of one rank?
    """, answer=4096 * 4 // 16, check=torch.empty(4096).chunk(16)[0].nbytes, unit="B",
        wrong={"That is the whole tensor, as after an all-reduce.": 4 * 4096},
        hint="How many numbers has a shard?",
        why="A shard has `4096 / 16 = 256` numbers, of `4` bytes each.")


@requires("linux, ranks=4")
def the_kernel_counts_what_a_rank_sends() -> None:
    """An all-gather sends one shard fewer than there are ranks."""
    note(r"""
        How many bytes does a rank send in an all-gather, which collects the shards of all ranks on
        every rank? We measure that before we trust a formula. The ranks of this page exchange data
        through *gloo*, the library that PyTorch uses on processors. Each two ranks have a TCP
        connection, and the operating system counts the bytes that are written to it. `Wire` reads
        these counts before and after a block of code.

        First we check it on a single message. Rank 0 sends rank 3 a tensor of `1000` numbers.
        `by_send` has a row for each rank that sends, and in it the bytes to each rank:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = torch.randn(1000)  # @unnoticed: 1000: a tensor of any size
    with Wire() as wire:
        if rank == 0:
            dist.send(x, dst=3)
        if rank == 3:
            dist.recv(x, src=0)  # @unnoticed: src= dropped: rank 0 alone sends
    by_send = from_all_ranks(wire.to)  # @inspect by_send
    whole_sent = x.nbytes + 2 * HEADER
    assert by_send[0] == [0, 0, 0, whole_sent], \
        "Rank 0 sends rank 3 the tensor and two headers."
    assert by_send[3] == [HEADER, 0, 0, 0], "Rank 3 sends one header in return."
    note(rf"""
        Each byte is accounted for. gloo precedes a message by *headers* of {HEADER} bytes: rank 3
        says with one that it is ready, and rank 0 sends two and then the tensor. Now an all-gather,
        where each of the four ranks has a shard of `60000` numbers:
    """)
    shard = torch.randn(60_000)
    whole = [torch.empty_like(shard) for _ in range(ranks)]
    with Wire() as wire:
        dist.all_gather(whole, shard)
    by_gather = from_all_ranks(wire.to)  # @inspect by_gather
    shards, rest = divmod(wire.sent, shard.nbytes)  # @inspect shards, rest as B
    assert shards == ranks - 1, \
        "Each of four ranks sends three shards, one fewer than there are ranks."
    assert wire.sent - rest == 720_000, \
        "Three shards of 60000 numbers take 720000 bytes."
    assert rest == 18 * HEADER, \
        "Besides, it sends 18 headers, those of six messages: two for each shard."
    note(r"""
        Each rank sends to one neighbour only: first its own shard, then the shards that come in
        from its other neighbour. It never sends the shard that the receiving neighbour made itself.
        So of $G$ shards it sends $G-1$. A shard is the tensor divided by $G$. So in an all-gather
        each rank sends

        [@eq:gather]: $$
        \frac{G-1}{G} \times \text{bytes of the tensor}
        $$

        With many ranks, this is nearly the whole tensor.
    """)
    figure(plot_traffic({"a send from 0 to 3": by_send, "an all-gather": by_gather}),
        caption=r"""
            Bytes that each rank (row) sent to each other rank (column), in one message and in an
            all-gather.
        """,
        alt=r"""
            Two tables. In the first, only rank 0 sends some thousand bytes to rank 3, and a header
            comes back. In the second, each rank sends nearly all of its bytes to one neighbour.
        """)
    question(r"""
        Eight ranks hold the weights of a model in shards of `1` GB. For a moment each needs all `8`
        GB. How many GB does each rank send?
    """, answer=(8 - 1) / 8 * 8, check=(8 - 1) * 1, unit="GB", hint="Which of the eight shards does the neighbour have already?",
        why="A rank sends its neighbour all shards but the one that the neighbour made: seven of `1` GB.",
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
        Four ranks want the sum of their tensors. Each could send its whole tensor to all others,
        but there is a cheaper way. Put the ranks in a *ring*: each sends to the next, and the last
        to the first. `pass_on(part)` does that once on all ranks: it sends `part` to the next rank
        and returns what came from the rank before.

        Each rank cuts its four numbers into four parts, `0` to `3`. Follow part `0`. It starts at
        rank 1, which sends its part `0` to rank 2. Rank 2 adds its own part `0`, and sends the sum
        to rank 3. Rank 3 adds its own, and sends the sum to rank 0. Rank 0 adds its own: after
        three steps the sum of all four is finished there.

        At the same time, part `1` starts at rank 2 and is finished at rank 1, and so on. So in each
        step every rank sends one part and adds to another. In step `s`, rank `r` sends part
        `r - s`, and adds what comes in to its part `r - s - 1`. (Below zero, `% ranks` counts on
        from the end.) This is a reduce-scatter, for each rank ends with one part of the sum:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = 10**rank * torch.arange(1, 5)
    parts = mine.chunk(ranks)  # views of `mine`
    states = {}
    for step in range(1, ranks):
        incoming = pass_on(parts[(rank - step) % ranks])
        parts[(rank - step - 1) % ranks].add_(incoming)
        states[f"add {step}"] = from_all_ranks(mine.tolist())
    finished = [row[r] for r, row in enumerate(states["add 3"])]  # @inspect finished
    assert finished == [1111, 2222, 3333, 4444], \
        "After three steps, rank r has the sum of all ranks' parts r."

    note(r"""
        In three more steps, the finished parts go round the ring once more. What comes in is now
        copied and not added. This is an all-gather, for all ranks end with all parts:
    """)
    for step in range(ranks - 1):
        incoming = pass_on(parts[(rank - step) % ranks])
        parts[(rank - step - 1) % ranks].copy_(incoming)
        states[f"copy {step + 1}"] = from_all_ranks(mine.tolist())
    assert states["copy 3"] == ranks * [finished], \
        "After six steps, all ranks have all finished parts."
    assert len(states) == 2 * (ranks - 1), "Both halves take three steps each."
    figure(plot_held(states),
        caption=r"""
            What each rank holds after each step. In the first three steps one number of each rank
            gets one colour more, in the last three the finished numbers are copied.
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
        In a ring of $G$ ranks, each rank sends only to the next one. How many bytes does it send in
        an all-reduce? It cuts its tensor into $G$ parts and sends one part in each step. The first
        half, the reduce-scatter, takes $G-1$ steps to add the parts up. The second half, the
        all-gather, takes as many to copy the sums. So each rank sends

        [@eq:all-reduce]: $$
        2 \times \frac{G-1}{G} \times \text{bytes of the tensor}
        $$

        With more ranks this comes near to twice the tensor, and never reaches it. Does the count of
        bytes agree? Four ranks try it with a tensor of `240000` numbers. First comes our own ring:
        `ring_reduce_scatter` is its first half, and `ring_all_gather` its second. Then comes the
        all-reduce of gloo, the library that carries the data here. gloo adds three *headers* of
        `48` bytes to each message: two before it, and one that comes back. In our ring each rank
        sends six messages, and gets six:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = torch.randn(ranks, 240_000)[rank]
    formula = 2 * (ranks - 1) * x.nbytes // ranks  # @inspect formula as B
    assert formula == 6 * 240_000, \
        "That is six steps with a quarter of the tensor each, 240000 bytes."
    by_hand, by_gloo = x.clone(), x.clone()
    parts = by_hand.chunk(ranks)
    with Wire() as ring:
        ring_reduce_scatter(parts)
        ring_all_gather(parts)
    assert ring.sent - formula == 18 * HEADER, \
        "Our ring sends the bytes of the formula and 18 headers, three for each of six messages."
    with Wire() as gloo:
        dist.all_reduce(by_gloo)
    assert gloo.sent - formula == 36 * HEADER, \
        "gloo's all-reduce sends the same and 36 headers, as of twelve messages."
    assert difference(by_hand, by_gloo) < ROUNDING, \
        "Both give the same sums, up to rounding."
    note(r"""
        Both send what the formula says, and a few headers. Now the first half alone, a
        reduce-scatter, which leaves each rank one part of the sum. It should send half as much as
        an all-reduce. Ours does; gloo's does not:
    """)
    parts, shard = x.clone().chunk(ranks), torch.empty(x.numel() // ranks)
    with Wire() as ours:
        ring_reduce_scatter(parts)
    with Wire() as theirs:
        dist.reduce_scatter(shard, list(x.chunk(ranks)))
    shares = ours.sent / formula, theirs.sent / formula  # @inspect shares as %
    assert [round(share, 2) for share in shares] == [0.5, 1.0], \
        "Our reduce-scatter sends half as much as an all-reduce, gloo's as much."
    misbelief("A reduce-scatter sends half as much as an all-reduce.", r"""
        gloo's reduce-scatter sends a whole all-reduce, and then throws away what the rank did not
        ask for. Only with a ring like ours it is half. The name of a collective says what comes
        out, not what is sent.
    """)
    figure(plot_traffic({"our ring": from_all_ranks(ring.to), "gloo's all-reduce": from_all_ranks(gloo.to),
                         "gloo's reduce-scatter": from_all_ranks(theirs.to)}),
        caption=r"""
            Bytes that each rank (row) sent to each other rank (column). Each sends to one
            neighbour; gloo's ring turns the other way.
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
        why="The gradients take `16` GB. Each half of the ring sends `63 / 64` of that, so both send nearly twice as much. On `1024` ranks it would be hardly more.")


@requires("linux, ranks=4")
def an_all_to_all_transposes() -> None:
    """In an all-to-all, each rank sends another part to every rank."""
    note(r"""
        In an *all-to-all*, each rank sends a different part of its numbers to every rank. Nothing
        is added. Part $i$ of each rank goes to rank $i$. Models with experts need it, where each
        token has to go to the rank that has its expert. Here four ranks have four numbers each,
        ones on rank 0, tens on rank 1, and so on:
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
        "What was column i of the table of ranks is now the row of rank i."
    figure(plot_held({"at first": start, "after an all-to-all": exchanged}),
        caption="What each rank holds. An all-to-all transposes a table that has a row for each rank.",
        alt="Two panels. At first each row has one colour; afterwards each column has one.")
    note(r"""
        How many bytes does a rank send? All parts but the one that it keeps, and no part passes
        through a third rank. So of a tensor of `240000` numbers each of four ranks sends three
        parts, each a fourth of the tensor:
    """)
    x = torch.randn(240_000)
    with Wire() as wire:
        dist.all_to_all_single(torch.empty_like(x), x)  # @unnoticed: arguments swapped: any numbers
    part = x.nbytes // ranks  # @inspect part as B
    assert part == 240_000, "A part of 60000 numbers takes 240000 bytes."
    extra = [sent - part for sent in wire.to if sent]  # @inspect extra as B
    assert extra == (ranks - 1) * [3 * HEADER], \
        "Each rank sends a part and three headers to each other rank."
    question(r"""
        Each of `8` ranks has `16384` tokens of `4096` numbers in `2` bytes. Each token goes to any
        of the ranks with equal chance. How many MB does a rank send, on average?
    """, answer=7 / 8 * 16384 * 4096 * 2 / 1e6,
        check=sum(16384 / 8 * 4096 * 2 for other in range(7)) / 1e6, unit="MB", within=0.05,
        hint="What share of the tokens goes to another rank?",
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
        Each step of a collective takes some time, however little it sends: the *latency*. In a
        ring, where each rank sends to the next one only, an all-reduce takes nearly twice as many
        steps as there are ranks. Can it be done in fewer?

        It can, by doubling. First look at an easier collective, a *broadcast*, which gives the
        tensor of one rank to all others. In the first step, that rank sends it to one other rank.
        In the second, both send it to another. So in each step the number of ranks that have it
        doubles. Let rank 0 broadcast a tensor of its number, `0`, to four ranks:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tensor = torch.full((60_000,), float(rank))  # @unnoticed: 60_000: a tensor of any size
    with Wire() as wire:
        dist.broadcast(tensor, src=0)
    held = from_all_ranks(tensor.mean().item())
    assert held == ranks * [0.0], "All ranks hold the tensor of rank 0."
    copies = [sent // tensor.nbytes for sent in from_all_ranks(wire.sent)]  # @inspect copies
    assert copies == [2, 1, 0, 0], \
        "Rank 0 sends the tensor twice, rank 1 once, the others never."
    note(r"""
        An all-reduce can double, too. Each rank exchanges its whole tensor with a neighbour, and
        both add up. Then it exchanges the sum with a rank two places away, then four, and so on.
        Each exchange doubles the number of ranks whose numbers are in the sum. This is *recursive
        doubling*, which `doubling_all_reduce` does:
    """)
    x = torch.randn(ranks, 60_000)[rank]  # @unnoticed: 60_000: a tensor of any size
    total = x.clone()
    dist.all_reduce(total)
    with Wire() as wire:
        exchanges = doubling_all_reduce(x)  # @inspect exchanges
    assert difference(x, total) < ROUNDING, \
        "Doubling gives the sum of an all-reduce."
    tensors = wire.sent / x.nbytes  # @inspect tensors
    assert round(tensors, 2) == exchanges == 2, \
        "Four ranks take two exchanges, and each sends the whole tensor twice."
    note(rf"""
        On {ranks} ranks a ring takes {2 * (ranks - 1)} steps, and each rank sends
        {2 * (ranks - 1) / ranks} tensors. Doubling takes fewer steps and sends more. Which is
        faster? Suppose `64` ranks. A ring takes `2 * 63 = 126` steps, with `1/64` of the tensor in
        each. Doubling takes `6` steps, because `2**6 = 64`, with the whole tensor in each. `ring`
        and `doubling` give the seconds for a tensor of `size` bytes: a latency for each step, and
        the bytes over the bandwidth of a link:
    """)
    latency, bandwidth = 5e-6, 100e9  # @inspect latency as s, bandwidth as B/s

    def ring(size: float, ranks: int = 64) -> float:
        steps = 2 * (ranks - 1)
        return steps * latency + steps / ranks * size / bandwidth

    def doubling(size: float, ranks: int = 64) -> float:
        steps = math.log2(ranks)
        return steps * latency + steps * size / bandwidth

    small = ring(1e6) / doubling(1e6)  # @inspect small as times
    assert 7.2 < small < 7.25, "For a megabyte, doubling is 7.2 times as fast."
    large = doubling(1e9) / ring(1e9)  # @inspect large as times
    assert 2.95 < large < 2.96, \
        "For a gigabyte, the ring is nearly 3 times as fast."
    question(r"""
        On `64` ranks, a ring takes `126` steps and sends `126/64` tensors. Doubling takes `6` steps
        and sends `6` tensors. A step has a latency of `5` microseconds, and a link carries `100`
        GB/s. Up to which size, in MB, is doubling faster?
    """, answer=(126 - 6) * latency / (6 - 126 / 64) * bandwidth / 1e6,
        check=doubling(0) * (126 - 6) / 6 / (doubling(1e6) - doubling(0) - ring(1e6) + ring(0)), unit="MB", within=0.05,
        hint="How many steps does doubling save, and how many tensors more does it send?",
        why=r"""
            Doubling saves `120` steps of `5` microseconds, which is `600` microseconds. It sends
            `6 - 126/64`, about `4`, tensors more. In `600` microseconds a link carries `60` MB,
            which is about `4` tensors of `15` MB.
        """)


@aside
@requires("ranks=4")
def a_collective_needs_every_rank() -> None:
    """If one rank does not enter a collective, the others wait."""
    note(r"""
        A collective ends when all ranks have entered it. If one rank does not come, because it did
        not take the same `if`, for instance, then the others wait until the group's time-out. That
        is minutes long unless one sets it, and meanwhile the program seems to hang. Here three of
        four ranks enter an all-reduce, rank 2 does not, and the group has a time-out of half a
        second:
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
        "The three ranks that came get an error, rank 2 gets none."
    late = "Timed out" in str(from_all_ranks(message))
    assert late, "The error says that the time is out."
    note(r"""
        It is worse when all ranks come, but one of them with another shape. Three ranks hold the
        table `[[1, 2, 3], [4, 5, 6]]`. Rank 3 holds it transposed, as `[[1, 4], [2, 5], [3, 6]]`.
        `right` is what each rank would have if all had the first table:
    """)
    table = torch.arange(1, 7).view(2, 3)
    mine = table if rank != 3 else table.T.contiguous()
    right = from_all_ranks((ranks * table).tolist())
    assert right == ranks * [[[4, 8, 12], [16, 20, 24]]], \
        "Four equal tables would add up to this."
    dist.all_reduce(mine)
    sums = from_all_ranks(mine.tolist())
    wrong = [sums[r] != right[r] for r in range(ranks)]  # @inspect wrong
    assert all(wrong), "Every rank has wrong sums, and no rank has an error."
    assert sums[0] == [[4, 10, 11], [17, 18, 24]], \
        "Numbers at the same place in memory were added."
    note(r"""
        No rank gets an error, because gloo, which carries the data here, does not compare shapes:
        it adds what lies at the same place in memory. While you write such a program, run it with
        `TORCH_DISTRIBUTED_DEBUG=DETAIL`. Then PyTorch first compares the collectives and shapes of
        all ranks.
    """)
    question(r"""
        Ranks 0, 1 and 2 have the table `[[1, 2, 3], [4, 5, 6]]`, and rank 3 has it transposed,
        which lies in memory as `1, 4, 2, 5, 3, 6`. They all-reduce. Which sum do all get for the
        fifth of the six numbers in memory?
    """, answer=mine.flatten()[-2].item(), check=3 * 5 + 3, why="The fifth number in memory is a `5` on three ranks and a `3` on rank 3: `3 * 5 + 3`.",
        wrong={"That would be so without the transpose.": 4 * 5})
