"""Context parallelism: one long sequence shared among ranks, in attention as well."""
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from wire import Wire, from_all_ranks

from litbook import aside, figure, note, question, requires

from .collectives import pass_on
from .drawings import plot_pairs, plot_turns


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
    a_gather_sends_as_much_as_a_ring()


def ring_attention(  # @show
    q: Float[Tensor, "h t c"], k: Float[Tensor, "h t c"],
    v: Float[Tensor, "h t c"], positions: list[Tensor],
) -> tuple[Float[Tensor, "h t c"], list[int]]:
    """Causal attention of this rank's queries to all keys, and the pairs scored in each turn.

    `positions` says for each rank which tokens of the sequence it has.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mean, pairs = torch.zeros_like(v), []
    log_sum = q.new_full((*q.shape[:2], 1), -torch.inf)
    keys_values = torch.stack([k, v])
    for turn in range(ranks):
        source = positions[(rank - turn) % ranks]  # whose keys are here
        visible = positions[rank][:, None] >= source
        scores = q @ keys_values[0].mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~visible, -torch.inf)
        turn_sum = scores.logsumexp(dim=-1, keepdim=True)
        new_sum = torch.logaddexp(log_sum, turn_sum)
        mean = mean * (log_sum - new_sum).exp()  # correct the mean so far
        mean = mean + (scores - new_sum).exp() @ keys_values[1]
        log_sum = new_sum
        pairs.append(int(visible.sum()))
        if turn < ranks - 1:
            keys_values = pass_on(keys_values)
    return mean, pairs


def a_mean_can_be_corrected() -> None:
    """A weighted mean can be computed from pieces, if their sums of weights are kept."""
    note(r"""
        The result of attention is a weighted mean of values. The weights are exponentials of the
        scores, divided by their sum (the *softmax*). What if the values arrive in pieces, and the
        sum is known only at the end?

        Suppose that the values `8` and `4` come first, with the weights `1` and `3`. Their sum is
        `1 + 3 = 4`, and the mean so far is `(1 * 8 + 3 * 4) / 4 = 5`. Then comes the value `9` with
        the weight `4`. The sum grows to `4 + 4 = 8`. The old mean gets half of the total weight,
        and the new value the other half: `5 * 4 / 8 + 9 * 4 / 8 = 7`.

        That is the mean of all three, `(8 + 12 + 36) / 8 = 7`. It works because a mean times its
        sum of weights is the weighted sum again, and weighted sums can be added in any order. So
        two things have to be kept: the mean so far, and the sum of weights so far.
    """)
    weights = torch.tensor([1.0, 3, 4])
    values = torch.tensor([8.0, 4, 9])
    old_sum, new_sum = weights[:2].sum(), weights.sum()
    mean = (weights[:2] * values[:2]).sum() / old_sum  # @inspect mean
    mean = mean * old_sum / new_sum + values[2] * weights[2] / new_sum
    assert mean == (weights * values).sum() / new_sum == 7, \
        "The corrected mean is the mean of all three values."
    question(r"""
        Somebody forgets to keep the sum of weights, and takes the unweighted mean of the two means:
        `5`, with weight `4`, and `9`, with weight `4`. That happens to be correct here. How large
        is the error, the result minus the correct mean, if the weight of `9` is `12`?
    """, answer=(5 + 9) / 2 - (5 * 4 + 9 * 12) / 16, check=7 - (0.25 * 5 + 0.75 * 9),
        wrong={"The two means have different sums of weights now.": 0},
        hint="What share of the total weight does the new value have?",
        why=r"""
            The sum of weights is `4 + 12 = 16`, and the mean is `(5 * 4 + 9 * 12) / 16 = 8`. The
            mean of the means is still `7`.
        """)


@requires("linux, ranks=4")
def keys_and_values_can_go_round() -> None:
    """Ring attention computes the same as attention: keys and values go round, and means are corrected."""
    note(r"""
        Suppose that a sequence of `256` tokens is too long for one GPU, so each of four ranks has
        `64` of them. In attention, a token's query is scored against its own key and the keys of
        all earlier tokens, and the result is a weighted mean of their values. But most keys and
        values are on other ranks. Does every rank have to collect them all?

        No, because [a mean can be corrected](#a_mean_can_be_corrected) when more values come, if
        the sum of weights is kept. So it is enough if all keys and values pass through each rank,
        some at a time.

        Take two ranks with one token each. Rank 1 has the second token, which needs the keys and
        values of both tokens. Its query gives its own key a weight of `3`, and its own value is
        `10`. So after the first turn its mean is `10`, and its sum of weights is `3`. Then rank 0
        passes on its key, which gets a weight of `1`, and its value, `2`. The weighted sum becomes
        `3 * 10 + 1 * 2 = 32`, the sum of weights `3 + 1 = 4`, and the mean `32 / 4 = 8`. That is
        the mean over both tokens that one process computes.

        This is *ring attention* [@liu2023]: each rank keeps its own queries, and keys and values go
        round the ring. After four turns, each of four ranks has used all keys and values, but in
        each turn only those of one rank.

        `ring_attention` does that, and also returns how many `pairs` of a query and a key it has
        scored in each turn. `positions` lists the tokens of each rank. The example has four heads
        of dimension `32`, in `float64`:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    q, k, v = torch.randn(3, 4, 256, 32).double()  # @unnoticed: 4, 32: any heads
    positions = [*torch.arange(256).chunk(ranks)]
    own = positions[rank]  # @inspect own[0].item(), own[-1].item()
    with Wire() as wire:
        y, pairs = ring_attention(q[:, own], k[:, own], v[:, own], positions)
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(y, whole[:, own]), \
        "For its own tokens, a rank has the same result as one process, up to rounding."
    turns = from_all_ranks(pairs)
    assert sum(map(sum, turns)) == 256 * 257 // 2, \
        "Together, the ranks score each of the 256 tokens against itself and all earlier tokens."
    figure(plot_turns(turns),
        caption=r"""
            How many pairs of a query and a key are scored in each turn. The row is the rank with
            the queries, the column the rank that the keys come from. Among its own `64` tokens, a
            rank scores `64 * 65 / 2 = 2080` pairs, and with `64` earlier tokens `64 * 64 = 4096`.
            If the keys are of later tokens than the queries, there are no pairs.
        """,
        alt=r"""
            Four tables of four ranks by four, one for each turn. First each rank scores its own
            keys: the diagonal. Turn by turn the keys come from one rank further back, and to the
            first rank from the last. Keys of later tokens than the queries give no pair.
        """)
    turn_counts = {n for row in turns for n in row}  # @hide
    assert turn_counts == {0, 64 * 65 // 2, 64 * 64} == {0, 2080, 4096}, \
        "In a turn, a rank scores no pair, 2080 or 4096."  # @hide
    note(r"""
        How many bytes does a rank send? It passes on the keys and values of `64` tokens in every
        turn but the last, because after that no rank needs them. The keys of `64` tokens have
        `4 * 64 * 32 * 8 = 65536` bytes, and so do the values. So a rank should send
        `3 * 2 * 65536 = 393216` bytes, plus a little for the headers of messages:
    """)
    formula = (ranks - 1) * (k[:, own].nbytes + v[:, own].nbytes)  # @inspect formula as B
    assert formula == 3 * 2 * 65536 == 393_216, \
        "Three times the keys and values of 64 tokens have 393216 bytes."  # @hide
    assert len(own) == 64, "A rank has 64 tokens."  # @hide
    ratio = wire.sent / formula  # @inspect ratio
    assert 1 <= ratio < 1.01, \
        "In every turn but the last, a rank sends the keys and values of 64 tokens. Headers add less than 1 %."
    next_rank = (rank + 1) % ranks  # @hide
    assert wire.to[next_rank] > 0.99 * wire.sent, \
        "More than 99 % of what a rank sends goes to the next rank."  # @hide
    question(r"""
        A sequence of `131072` tokens is split among `16` ranks. Now it is split among `32`. By what
        factor does the memory for keys and values on each rank change, and by what factor does the
        number of bytes that a rank sends in all turns change? Give two numbers.
    """, answer=[0.5, (31 / 32) / (15 / 16)], check=[(131072 / 32) / (131072 / 16), 31 * 4096 / (15 * 8192)],
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
    """If a sequence is cut in order, the last rank has the most work; in a zigzag, all have the same."""
    note(r"""
        Four ranks share a sequence, and each computes attention for its own tokens. Do all of them
        have the same work?

        A token is scored against itself and all earlier tokens, so later tokens need more work.
        Take `8` tokens, two for each rank. The first token has one *pair* of a query and a key, and
        the last has `8`. If the tokens are cut in order, the ranks have `1 + 2 = 3`, `3 + 4 = 7`,
        `5 + 6 = 11` and `7 + 8 = 15` pairs. Three ranks wait for the last one.

        The fix is to give each rank early tokens and late ones, in a *zigzag*. Rank 0 gets the
        first and the last, `1 + 8 = 9` pairs, rank 1 the second and the second to last,
        `2 + 7 = 9`, and so on. All ranks have the same sum, because from one rank to the next, the
        early token has one pair more and the late token has one pair fewer. A longer sequence is
        cut into `8` pieces, which `zigzag` distributes in the same way. Llama 3 was trained on long
        sequences in this way [@llama3].

        [`ring_attention`](#keys_and_values_can_go_round) computes attention for a rank's own
        tokens, and counts the `pairs` that it scores in each turn of the ring. `work` has their sum
        for each rank, with a sequence of `256` tokens:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    q, k, v = torch.randn(3, 4, 256, 32).double()  # @unnoticed: 4, 32: any heads
    ways = {"in order": [*torch.arange(256).chunk(ranks)],
            "zigzag": zigzag(256, ranks)}
    eight = [own.tolist() for own in zigzag(8, ranks)]  # @hide
    assert eight == [[0, 7], [1, 6], [2, 5], [3, 4]], \
        "Of 8 tokens, counted from 0, rank 0 gets the first and the last, and so on."  # @hide
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # @hide
    work = {}
    turns = {}  # @hide
    for name, positions in ways.items():
        own = positions[rank]
        y, pairs = ring_attention(q[:, own], k[:, own], v[:, own], positions)
        work[name] = from_all_ranks(sum(pairs))  # @inspect work[name] as pairs
        turns[name] = from_all_ranks(pairs)  # @hide
        assert torch.allclose(y, whole[:, own]), \
            "The result equals that of attention in one process, up to rounding."  # @hide
    assert sum(work["in order"]) == 256 * 257 // 2, \
        "Together, the ranks score every pair once."  # @hide
    slowest = max(work["in order"]) / (sum(work["in order"]) / ranks)  # @inspect slowest as times
    assert round(slowest, 2) == 1.75, \
        "In order, the last rank scores 1.75 times as many pairs as the mean of all four."
    assert work["zigzag"] == [sum(work["in order"]) // ranks] * ranks, \
        "In a zigzag, all four ranks score the same number of pairs."
    assert all(len(set(now)) == 1 for now in zip(*turns["zigzag"])), \
        "In every single turn, all four ranks also score the same number of pairs."  # @hide
    figure(plot_pairs(256, {name: (ways[name], work[name]) for name in ways}),
        caption=r"""
            Which rank scores which pairs: queries down, keys across. The bars below are the pairs
            of each rank: unequal in order, equal in a zigzag.
        """,
        alt=r"""
            Two lower triangles of pairs in the colors of the ranks. In order, the colors are four
            bands, and the lowest is the widest. In a zigzag each color has a band near the top and
            one near the bottom, and the bars of pairs below are equal.
        """)
    note(r"""
        Why `1.75`? The first three of four ranks have three quarters of the queries, and score them
        only against the first three quarters of the keys. So they have $(3/4)^2 = 9/16$ of all
        pairs. The last rank has the other $7/16$, while the mean is $4/16$.
    """)
    question(r"""
        Attention is *not* causal: every token is scored against all tokens. If the sequence is cut
        in order, how many times the mean work does the last of `4` ranks have?
    """, answer=1.0, check=(64 * 256) / (256 * 256 / 4), unit="times",
        wrong={"That is causal attention.": 1.75},
        hint="How many pairs does each token have?",
        why=r"""
            Every token then has as many pairs as there are tokens, the first as well as the last
            one. So all ranks have the same work, and no zigzag is needed.
        """)


@aside
@requires("linux, ranks=4")
def a_gather_sends_as_much_as_a_ring() -> None:
    """An all-gather of keys and values sends the same bytes as the ring, and keeps all of them."""
    note(r"""
        Four ranks share a long sequence, and for attention each needs the keys and values of the
        others. In [ring attention](#keys_and_values_can_go_round) these go round from rank to rank.
        Would it not be simpler if each rank first collected all keys and values, in an
        [all-gather](#an_all_reduce_has_two_halves), and then computed attention as usual?

        Call the keys and values of one rank a *piece*. With the ring, a rank passes a piece on in
        every turn but the last, $3$ pieces on four ranks. With the all-gather, it also sends $3$
        pieces, because here too its own piece has to reach the three others. But afterwards a rank
        holds all $4$ pieces. With the ring it holds only $2$: the one that it works on, and the one
        that is arriving. Llama 3 was trained with the all-gather [@llama3]. Here are both ways with
        `256` tokens:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    q, k, v = torch.randn(3, 4, 256, 32).double()  # @unnoticed: 4, 32: any heads
    positions = zigzag(256, ranks)  # which tokens each rank has
    own = positions[rank]
    with Wire() as ring:
        by_ring, _ = ring_attention(q[:, own], k[:, own], v[:, own], positions)
    keys_values = torch.stack([k[:, own], v[:, own]])
    parts = [torch.empty_like(keys_values) for _ in range(ranks)]
    with Wire() as gather:
        dist.all_gather(parts, keys_values)
    keys, values = torch.cat(parts, dim=2)
    visible = own[:, None] >= torch.cat(positions)
    by_gather = F.scaled_dot_product_attention(
        q[:, own], keys, values, attn_mask=visible
    )
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(by_gather, whole[:, own]), \
        "The result equals that of attention in one process, up to rounding."
    assert torch.allclose(by_ring, by_gather), \
        "The ring gives the same result, up to rounding."  # @hide
    assert visible.shape == (64, 256), \
        "A rank has the queries of 64 tokens, and now the keys of all 256."  # @hide
    ratio = gather.sent / ring.sent  # @inspect ratio
    assert 0.98 < ratio < 1.02, \
        "The all-gather sends the same number of bytes as the ring, within 2 % for headers."
    held = sum(part.nbytes for part in parts) / keys_values.nbytes  # @inspect held as pieces
    assert held == ranks, \
        "After the all-gather, a rank holds the pieces of all 4 ranks."
    note(r"""
        Is there room for all keys and values in a real model? In the 405B model of Llama 3, a
        token's queries in a layer have `16384` elements, and its keys and values only `1024` each,
        because several query heads share one KV head [@llama3]. With `16` ranks and a sequence of
        `131072` tokens, in `bfloat16`:
    """)
    tokens, width, kv = 131072, 16384, 1024  # of Llama 3 405B  # @unnoticed: 131072: any sequence
    gathered = 2 * tokens * kv * 2  # @inspect gathered as B
    queries = tokens // 16 * width * 2  # @inspect queries as B
    assert gathered == 2 * queries, \
        "The keys and values of the whole sequence have only twice as many bytes as a rank's own queries."
    note(rf"""
        So there is room: for one layer at a time, the gathered keys and values need
        {gathered / 1e9:.1f} GB.
    """)
    question(r"""
        Suppose that the model did not share KV heads, so that keys and values had `16384` elements
        each. How many times as many bytes as a rank's own queries would the gathered keys and
        values have, on `16` ranks?
    """, answer=2 * 16, check=2 * tokens * width / (tokens // 16 * width), unit="times",
        wrong={"That is with shared KV heads.": 2},
        hint="For how many tokens does a rank have the queries, and for how many the keys and values?",
        why=r"""
            A rank has the queries of a sixteenth of the tokens. The keys of all tokens are `16`
            times that, and so are the values. If they do not fit, the ring is the better way.
        """)
