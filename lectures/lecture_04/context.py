"""Context parallelism: one long sequence shared among ranks, in attention as well."""
import math
from functools import partial

import torch
import torch.distributed as dist
import torch.nn.functional as F
from counters import flops
from jaxtyping import Float, Int
from torch import Tensor
from wire import Wire

from litbook import aside, figure, note, question, requires

from .collectives import parts_sent, pass_on
from .drawings import plot_pairs


def context_parallelism() -> None:
    """Context parallelism."""
    note(r"""
        What if a single sequence is too long for one GPU? Most operations of a block process each
        token separately, so each rank can take some tokens of the sequence and all weights. Only in
        attention does a token need other tokens, and their keys and values are on other ranks.
    """)
    a_mean_can_be_corrected()
    keys_and_values_can_go_round()
    in_order_the_last_rank_works_most()


def ring_attention(
    q: Float[Tensor, "h t c"], k: Float[Tensor, "h t c"],
    v: Float[Tensor, "h t c"], positions: list[Tensor],
) -> Float[Tensor, "h t c"]:
    """Causal attention of this rank's queries `q` to the keys of all ranks.

    `positions` lists for each rank which tokens of the sequence it has.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mean = weight_sum = torch.tensor(0.0)  # of no values yet
    arrived = torch.stack([k, v])  # first this rank's own keys and values
    for turn in range(ranks):
        keys, values = arrived
        sender = (rank - turn) % ranks  # the rank whose keys these are
        # A token sees itself and earlier tokens, a row for each query:
        visible = positions[rank][:, None] >= positions[sender]
        scores = q @ keys.mT / math.sqrt(q.shape[-1])
        weights = scores.exp() * visible
        new_sum = weight_sum + weights.sum(dim=-1, keepdim=True)
        mean = (mean * weight_sum + weights @ values) / new_sum
        weight_sum = new_sum
        if turn < ranks - 1:
            arrived = pass_on(arrived)
    return mean


def a_mean_can_be_corrected() -> None:
    """A weighted mean can be computed from pieces, if their sums of weights are kept."""
    note(r"""
        The result of attention is a weighted mean of values. What if the values arrive in pieces?
        Can the mean be computed before all of them are there, and corrected later?

        Yes, because a mean times its sum of weights is the weighted sum again, and more values can
        be added to a sum. So two numbers have to be kept: the mean so far, and the sum of weights
        so far.

        By hand: the values `8` and `4` come first, with the weights `1` and `3`.

        - The sum of weights is `1 + 3 = 4`, and the mean is `(1 * 8 + 3 * 4) / 4 = 5`.
        - Then the value `9` comes, with the weight `4`. The sum of weights grows to `4 + 4 = 8`.
        - The corrected mean is `(5 * 4 + 9 * 4) / 8 = 7`.

        The code does the last two steps, and the claim compares the result with the mean of all
        three values:
    """)
    mean, weight_sum = 5.0, 4.0  # of the first two values
    value, weight = 9.0, 4.0  # arrives
    new_sum = weight_sum + weight
    mean = (mean * weight_sum + value * weight) / new_sum  # @inspect mean
    assert mean == (1 * 8 + 3 * 4 + 4 * 9) / (1 + 3 + 4) == 7, \
        "The corrected mean is the mean of all three values."
    note(r"""
        In attention, each value comes with a *key*, which gives its weight: the exponential of a
        score. So attention can take in keys and values piece by piece: a piece with several values
        is added like the `9`, with its own mean and its own sum of weights.
    """)
    inputs = torch.tensor([8.0] + 3 * [4] + 12 * [9])  # each as often as its weight  # @hide
    question(r"""
        Somebody forgets to keep the sum of weights, and takes the unweighted mean of the two means:
        `5`, with weight `4`, and `9`, with weight `4`. That happens to be correct here. How large
        is the error, the result minus the correct mean, if the weight of `9` is `12`?
    """, answer=(5 + 9) / 2 - (5 * 4 + 9 * 12) / 16,
        check=((inputs[:4].mean() + inputs[4:].mean()) / 2 - inputs.mean()).item(),
        wrong={"The two means have different sums of weights now.": 0},
        hint="What share of the total weight does the new value have?",
        why=r"""
            The sum of weights is `4 + 12 = 16`, and the mean is `(5 * 4 + 9 * 12) / 16 = 8`. The
            mean of the means is still `7`.
        """)


@requires("linux, ranks=4")
def keys_and_values_can_go_round() -> None:
    """In ring attention, keys and values pass through the ranks, and each rank updates a running weighted mean."""
    note(r"""
        A sequence is too long for one GPU, so several ranks share it. In attention, a token needs
        its own key and value and those of all earlier tokens. Except on the first rank, some of
        them are on other ranks. Does a rank have to hold them all at once?

        No, because the result is a weighted mean of values, and
        [a mean can be corrected](#a_mean_can_be_corrected) when more values arrive. So keys and
        values can pass through the ranks, one rank's share at a time. This is *ring attention*
        [@liu2023].

        By hand, take two ranks with one token each. Rank 1 has the second token, which needs both
        values. How much a value counts, its *weight*, follows from the token's *query* and the
        value's *key*.

        - Rank 1 begins with its own key and value. Suppose the weight is $3$, and the value is
          $10$. So its mean is $10$, and its sum of weights is $3$.
        - Then the key and value of rank 0 arrive. The weight is $1$, and the value is $2$. The mean
          becomes `(10 * 3 + 2 * 1) / (3 + 1) = 8`, and the sum of weights `4`.

        Four ranks do the same with `256` tokens, `64` on each, for all of a rank's queries at once,
        each with its own mean. The ranks form a [ring](#a_ring_passes_sums_to_the_next_rank):
        `pass_on` sends keys and values to the next rank, and returns what the previous rank sent.
        So in turn `0` a rank has its own, in turn `1` those of the previous rank, and so on.

        A weight is the exponential of a *score*, the dot product of a query and a key, here divided
        by the square root of their number of elements, `32`. `visible[turn]` is `0` where the key
        belongs to a later token than the query, and `1` otherwise. `queries` are those of this
        rank's tokens, and `arrived` starts with the keys and values of the same tokens:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @hide
    q, k, v = torch.randn(3, 4, 256, 32).double()  # @unnoticed: 4, 32: any heads  # @hide
    positions = list(torch.arange(256).chunk(ranks))  # @hide
    own = positions[rank]  # @hide
    queries, arrived = q[:, own], torch.stack([k[:, own], v[:, own]])  # @hide
    visible = [own[:, None] >= positions[(rank - turn) % ranks] for turn in range(ranks)]  # @hide
    mean = weight_sum = torch.tensor(0.0)  # of no values yet
    for turn in range(4):
        keys, values = arrived
        weights = (queries @ keys.mT / 32**0.5).exp() * visible[turn]
        new_sum = weight_sum + weights.sum(dim=-1, keepdim=True)
        mean = (mean * weight_sum + weights @ values) / new_sum
        weight_sum = new_sum
        if turn < 3:
            arrived = pass_on(arrived)
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # @hide
    agrees = torch.allclose(mean, whole[:, own])  # @hide
    assert agrees, \
        "For its own tokens, a rank has the same result as one process, up to rounding."
    assert len(own) == 64, "A rank has 64 tokens."  # @hide
    with Wire() as wire:  # @hide
        y = ring_attention(q[:, own], k[:, own], v[:, own], positions)
    assert torch.equal(y, mean), \
        "The function of the next section computes the same."  # @hide
    own_bytes = 2 * k[:, own].nbytes  # of keys and values  # @hide
    passes = wire.sent / own_bytes  # the .003 are headers  # @hide
    assert round(passes, 2) == ranks - 1 == 3, \
        "A rank sends the keys and values of 64 tokens three times."  # @hide
    next_rank = (rank + 1) % ranks  # @hide
    assert wire.to[next_rank] > 0.99 * wire.sent, \
        "More than 99 % of what a rank sends goes to the next rank."  # @hide
    note(r"""
        In addition to its own keys and values, a rank holds at most two other shares: the one that
        it passes on, and the one that is arriving. So twice as many ranks have room for the keys
        and values of a sequence twice as long. (Real implementations first subtract the largest
        score so far, so that no exponential overflows.)
    """)
    tokens = [torch.empty(131072).chunk(n)[0].numel() for n in (16, 32)]  # of a rank  # @hide
    turns = [parts_sent(n, reduce=False) for n in (16, 32)]  # @hide
    question(r"""
        A sequence of `131072` tokens is split among `16` ranks. Now it is split among `32`. By what
        factor does the memory for keys and values on each rank change, and by what factor does the
        number of bytes that a rank sends in all turns change? Give two numbers.
    """, answer=[0.5, (31 / 32) / (15 / 16)],
        check=[tokens[1] / tokens[0], turns[1] * tokens[1] / (turns[0] * tokens[0])],
        within=0.02,
        hint="How many tokens does a rank have, and how often does it pass on keys and values?",
        why=r"""
            A rank then has half the tokens, so it holds half the keys and values. It sends half as
            much in a turn, but in `31` turns instead of `15`: nearly the same, because the keys and
            values of nearly the whole sequence still have to reach every rank.
        """)


def zigzag(tokens: int, ranks: int) -> list[Int[Tensor, " t"]]:
    """For each rank its tokens: a piece from the front of the sequence and one from the back, for equal work.

    There are two pieces for each rank; the second is the mirror image of the first.
    """
    pieces = torch.arange(tokens).chunk(2 * ranks)
    last = 2 * ranks - 1
    return [torch.cat([pieces[r], pieces[last - r]]) for r in range(ranks)]


@aside
@requires("ranks=4")
def in_order_the_last_rank_works_most() -> None:
    """In causal attention, if a sequence is cut in order, the last rank has the most work; in a zigzag, all have the same."""
    note(r"""
        Four ranks share a sequence, and each computes attention for its own tokens. Do all of them
        have the same work?

        No. In *causal* attention, a token has one score for itself and one for each earlier token,
        so later tokens need more work. Take `8` tokens, two for each rank. The first token has one
        score, and the last has `8`. If the tokens are cut in order, the ranks compute `1 + 2 = 3`,
        `3 + 4 = 7`, `5 + 6 = 11` and `7 + 8 = 15` scores. Three ranks wait for the last one.

        The fix is to give each rank early tokens and late ones, in a *zigzag*. Rank 0 gets the
        first and the last, `1 + 8 = 9` scores. Rank 1 gets the second and the second-to-last,
        `2 + 7 = 9`, and so on. All ranks have the same number of scores, because from one rank to
        the next, the early token has one score more and the late token has one score fewer.

        Llama 3 was trained on long sequences in this way [@llama3]. Here are `256` tokens on four
        ranks. `zigzag` cuts them into `8` pieces of `32` tokens. Rank 0 gets the first and the last
        piece, rank 1 the second and the second-to-last, and so on:
    """)
    ways = {"in order": list(torch.arange(256).chunk(4)),
            "zigzag": zigzag(256, ranks=4)}
    work = {}  # @hide
    for name, positions in ways.items():
        # The token at position p, counted from 0, has p + 1 scores.
        work[name] = [int((own + 1).sum()) for own in positions]  # @inspect work[name]
    mean = sum(work["in order"]) / 4
    assert round(work["in order"][3] / mean, 2) == 1.75, \
        "In order, the last rank has about 1.75 times as many scores as the mean of all four."
    assert work["zigzag"] == 4 * [mean], \
        "In a zigzag, all four ranks have the same number of scores."
    eight = [own.tolist() for own in zigzag(8, 4)]  # @hide
    assert eight == [[0, 7], [1, 6], [2, 5], [3, 4]], \
        "Of 8 tokens, counted from 0, rank 0 gets the first and the last, and so on."  # @hide
    assert sum(work["in order"]) == 256 * 257 // 2, \
        "Together, the ranks compute every score once."  # @hide
    q, k, v = torch.randn(3, 4, 256, 32).double()  # @unnoticed: 4, 32: any heads  # @hide
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # @hide
    for positions in ways.values():  # @hide
        own = positions[dist.get_rank()]
        y = ring_attention(q[:, own], k[:, own], v[:, own], positions)
        assert torch.allclose(y, whole[:, own]), \
            "The result equals that of attention in one process, up to rounding."
    figure(plot_pairs(256, {name: (ways[name], work[name]) for name in ways}),
        caption=r"""
            Which rank computes which scores: a row for each token, a column for each token that it
            is scored against. The bars below count the scores of each rank: unequal in order, equal
            in a zigzag.
        """,
        alt=r"""
            Two lower triangles of scores in the colors of the ranks. In order, the colors are four
            bands, and the lowest is the widest. In a zigzag each color has a band near the top and
            one near the bottom, and the bars of scores below are equal.
        """)
    full = [flops(partial(torch.matmul, q[:, own], k.mT)) for own in ways["in order"]]  # @hide
    question(r"""
        Attention is *not* causal: every token is scored against all tokens. If the sequence is cut
        in order, how many times the mean work does the last of `4` ranks have?
    """, answer=1.0, check=full[3] / (sum(full) / 4), unit="times",
        wrong={"That is causal attention.": 1.75},
        hint="How many scores does each token have?",
        why=r"""
            Every token then has as many scores as there are tokens, the first as well as the last
            one. So all ranks have the same work, and no zigzag is needed.
        """)
