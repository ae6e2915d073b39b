"""Context parallelism: one long text shared among ranks, in attention too."""
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from wire import Wire, from_all_ranks

from litbook import aside, figure, misbelief, note, question, requires

from .collectives import difference, pass_on
from .drawings import plot_pairs, plot_turns
from .tensor_parallel import ROUNDING


def context_parallelism() -> None:
    """Context parallelism."""
    note(r"""
        What if a single text is too long for one device? In most of a block tokens do not meet, so
        each rank can take some tokens of the text and all weights. Only in attention a token looks
        at others, and their keys and values are at other ranks.
    """)
    keys_and_values_can_go_round()
    in_order_the_last_rank_works_most()
    a_gather_sends_as_much_as_a_ring()


def ring_attention(
    q: Float[Tensor, "h t c"], k: Float[Tensor, "h t c"],
    v: Float[Tensor, "h t c"], places: list[Tensor],
) -> tuple[Float[Tensor, "h t c"], list[int]]:
    """Causal attention of this rank's queries to all keys, and the pairs scored in each turn.

    `places` says for each rank which tokens of the text it has.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mixed, pairs = torch.zeros_like(v), []
    log_total = q.new_full((*q.shape[:2], 1), -torch.inf)
    both = torch.stack([k, v])
    for turn in range(ranks):
        at = places[(rank - turn) % ranks]  # whose keys and values are here
        seen = places[rank][:, None] >= at
        scores = q @ both[0].mT / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~seen, -torch.inf)
        here = scores.logsumexp(dim=-1, keepdim=True)
        log_sum = torch.logaddexp(log_total, here)
        mixed = mixed * (log_total - log_sum).exp()
        mixed = mixed + (scores - log_sum).exp() @ both[1]
        log_total = log_sum
        pairs.append(int(seen.sum()))
        if turn < ranks - 1:
            both = pass_on(both)
    return mixed, pairs


@requires("linux, ranks=4")
def keys_and_values_can_go_round() -> None:
    """Ring attention is attention: keys and values go round, and a running sum is kept."""
    note(r"""
        A text of `256` tokens is too long for one card, so each of four ranks has `64` of them. In
        attention, a token's query is scored against the keys of all tokens up to it, and the result
        is a weighted mean of their values. But most keys and values are on other ranks. *Ring
        attention* lets them come by [@liu2023]. Each rank keeps its own queries. Keys and values go
        round in a ring: in each of four turns a rank works with those that are there, and hands
        them on to the next rank.

        How can a rank take a mean of values that it sees one after the other? The weights are the
        exponentials of the scores, divided by their sum (the *softmax*), and that sum is known only
        at the end. So a rank keeps the mean so far and the sum so far, and corrects the mean in
        each turn. Say that the weights `1` and `3` come first, with the values `8` and `4`. Their
        sum is `1 + 3 = 4` and the mean is `(1 * 8 + 3 * 4) / 4 = 5`. In the next turn comes the
        weight `4` with the value `9`. The sum grows to `4 + 4 = 8`, and the mean becomes
        `5 * 4 / 8 + 9 * 4 / 8 = 7`. That is the mean of all three: `(8 + 12 + 36) / 8 = 7`. In
        code:
    """)
    weights, values = torch.tensor([1.0, 3, 4]), torch.tensor([8.0, 4, 9])
    before, after = weights[:2].sum(), weights.sum()
    mean = (weights[:2] * values[:2]).sum() / before  # @inspect mean
    mean = mean * before / after + weights[2] * values[2] / after
    assert mean == (weights * values).sum() / after == 7, \
        "The corrected mean is the mean of all three values."
    note("`ring_attention` does that for attention. `places` has the tokens of each rank:")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tokens = 256
    q, k, v = torch.randn(3, 4, tokens, 32).double()  # @unnoticed: 4, 32: any heads
    whole: Float[Tensor, "h all c"] = F.scaled_dot_product_attention(
        q, k, v, is_causal=True
    )
    places = [*torch.arange(tokens).chunk(ranks)]
    at = places[rank]  # @inspect at[0].item(), at[-1].item()
    with Wire() as wire:
        mine, pairs = ring_attention(q[:, at], k[:, at], v[:, at], places)
    assert difference(mine, whole[:, at]) < ROUNDING, \
        "A rank has the result of its own tokens, as one process computes it, up to rounding."
    turns = from_all_ranks(pairs)
    assert sum(map(sum, turns)) == 256 * 257 // 2, \
        "Together, the ranks score each of the 256 tokens against itself and all before it."
    figure(plot_turns(turns),
        caption=r"""
            How many pairs of a query and a key are scored in each turn: queries of a rank down,
            keys of a rank across. Keys of later tokens than the queries give none.
        """,
        alt=r"""
            Four tables of four ranks by four, one for each turn. First each rank scores its own
            keys: the diagonal. Turn by turn the keys come from one rank further back, and to the
            first rank from the last. Keys of later tokens than the queries give no pair.
        """)
    note(r"""
        So the result is exact, and no rank ever holds all keys. How much does a rank send? In each
        turn but the last, it hands on keys and values of `64` tokens:
    """)
    formula = (ranks - 1) * (k[:, at].nbytes + v[:, at].nbytes)  # @inspect formula as B
    assert len(at) == 64, "A rank has 64 tokens."  # @hide
    ratio = wire.sent / formula  # @inspect ratio
    assert 1 <= ratio < 1.01, \
        "Three times, a rank sends the keys and values of as many tokens as it has, and headers."
    next_one = (rank + 1) % ranks
    assert wire.to[next_one] > 0.99 * wire.sent, \
        "More than 99 % of what a rank sends goes to the next rank."
    misbelief("Attention over a text on several ranks is only an approximation.", r"""
        It need not be. Ring attention adds up the same numbers in another order, so its results
        agree with attention in one process, up to rounding.
    """)
    question(r"""
        In one layer, each token has a key and a value of `1024` numbers each, with `2` bytes for
        each number. A text of `131072` tokens is shared by `16` ranks. In the forward pass, how
        many bytes does each rank hand on in all turns together?
    """, answer=15 * 2 * (131072 // 16) * 1024 * 2, check=2 * 131072 * 1024 * 2 * 15 // 16, unit="B", within=0.05,
        wrong={"The last turn sends nothing.": 16 * 2 * (131072 // 16) * 1024 * 2,
               "Both keys and values are sent.": 15 * (131072 // 16) * 1024 * 2},
        hint="How many bytes of keys and values has a rank, and in how many turns does it hand some on?",
        why="A rank has `131072 / 16 = 8192` tokens. Their keys and values are `2 * 1024` numbers of `2` bytes a token, and they are handed on in all turns but the last, `15` times.")


def zigzag(tokens: int, ranks: int) -> list[Int[Tensor, " t"]]:
    """For each rank its tokens: one piece from the front of the text, and one from the back.

    There are two pieces for each rank; the second is the mirror image of the first.
    """
    pieces = torch.arange(tokens).chunk(2 * ranks)
    last = 2 * ranks - 1
    return [torch.cat([pieces[r], pieces[last - r]]) for r in range(ranks)]


@aside
@requires("ranks=4")
def in_order_the_last_rank_works_most() -> None:
    """Cut in order, the last rank has nearly twice the work; cut in a zigzag, all have the same."""
    note(r"""
        Four ranks share a text, and each computes attention for its own tokens. A token looks at
        itself and at all tokens before it, so late tokens have more to do. Take `8` tokens, two for
        each rank. The first token has one *pair* of a query and a key to score, and the last has
        `8`. Cut in order, the ranks have `1 + 2 = 3`, `3 + 4 = 7`, `5 + 6 = 11` and `7 + 8 = 15`
        pairs. Three ranks wait for the last one. How much longer does that take with `256` tokens?
        [`ring_attention`](#keys_and_values_can_go_round) computes attention while keys and values
        go round from rank to rank, and counts the pairs that each rank scores:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    tokens = 256
    q, k, v = torch.randn(3, 4, tokens, 32).double()  # @unnoticed: 4, 32: any heads
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    in_order = [*torch.arange(tokens).chunk(ranks)]
    at = in_order[rank]
    _, pairs = ring_attention(q[:, at], k[:, at], v[:, at], in_order)
    work = [sum(turns) for turns in from_all_ranks(pairs)]  # @inspect work as pairs
    assert sum(work) == 256 * 257 // 2, \
        "Together, the ranks score every pair once."
    slowest = max(work) / (sum(work) / ranks)  # @inspect slowest as times
    assert round(slowest, 2) == 1.75, \
        "The last rank scores 1.75 times as many pairs as the mean of all four."
    note(r"""
        Why `1.75`? Half the tokens have a fourth of the pairs, because they have half as many
        queries and half as many keys. So the first three of four ranks have a share of
        $(3/4)^2 = 9/16$ of all pairs, and the last has the other $7/16$. The mean share is $4/16$,
        and $7/4$ is `1.75`. On $G$ ranks it is $2 - 1/G$, nearly twice the mean.

        The cure is to give each rank early tokens and late ones, in a *zigzag*. Of `8` tokens rank
        0 gets the first and the last, `1 + 8 = 9` pairs, rank 1 the second and the last but one,
        `2 + 7 = 9`, and so on. A longer text is cut into `8` pieces, which are given out in the
        same way. Llama 3 was trained on long texts like that [@llama3]. `zigzag` gives each rank's
        tokens:
    """)
    folded = zigzag(tokens, ranks)
    eight = [at.tolist() for at in zigzag(8, ranks)]  # @inspect eight
    assert eight == [[0, 7], [1, 6], [2, 5], [3, 4]], \
        "Of 8 tokens, counted from 0, rank 0 gets the first and the last, and so on."
    at = folded[rank]
    mine, turns = ring_attention(q[:, at], k[:, at], v[:, at], folded)  # @inspect turns
    assert difference(mine, whole[:, at]) < ROUNDING, \
        "The result is that of attention in one process, up to rounding."
    even = [sum(t) for t in from_all_ranks(turns)]  # @inspect even as pairs
    assert even == [sum(work) // ranks] * ranks, \
        "In a zigzag, all four ranks score equally many pairs."
    different = [len(set(now)) for now in zip(*from_all_ranks(turns))]  # @hide
    assert different == [1, 1, 1, 1], \
        "In every single turn, too, all four ranks score equally many pairs."  # @hide
    figure(plot_pairs(tokens, {"in order": (in_order, work), "zigzag": (folded, even)}),
        caption=r"""
            Which rank scores which pairs: queries down, keys across. The bars below are the pairs
            of each rank: unequal in order, equal in a zigzag.
        """,
        alt=r"""
            Two lower triangles of pairs in the colors of the ranks. In order, the colors are four
            bands, and the lowest is the widest. In a zigzag each color has a band near the top and
            one near the bottom, and the bars of pairs below are equal.
        """)
    question(r"""
        A text is cut in order among `16` ranks. How many times as many pairs as the mean of all
        ranks does the last one score, if the last of $G$ ranks has $2 - 1/G$ times the mean?
    """, answer=2 - 1 / 16, check=(16**2 - 15**2) / 16, unit="times", within=0.02,
        why=r"""
            `2 - 1/16 = 1.9375`. By shares: the first `15` ranks have `(15/16)**2 = 225/256` of all
            pairs, the last has the other `31/256`, and the mean is `16/256`. The ratio is `31/16`.
        """)


@aside
@requires("linux, ranks=4")
def a_gather_sends_as_much_as_a_ring() -> None:
    """An all-gather of keys and values sends as much as the ring, and keeps all of them."""
    note(r"""
        Four ranks share a long text, and for attention each needs the keys and values of the
        others. In [ring attention](#keys_and_values_can_go_round) these go round from rank to rank,
        so that no rank ever holds all of them. Would it not be simpler if each rank first collected
        all keys and values, in an [all-gather](#an_all_reduce_has_two_halves), and then computed
        attention as usual? Llama 3 does just that [@llama3]. We try both with `256` tokens, and
        `Wire` counts the bytes:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    q, k, v = torch.randn(3, 4, 256, 32).double()  # @unnoticed: 4, 32: any heads
    places = zigzag(q.shape[1], ranks)  # which tokens each rank has
    at = places[rank]
    both = torch.stack([k[:, at], v[:, at]])
    with Wire() as ring:
        by_ring, _ = ring_attention(q[:, at], k[:, at], v[:, at], places)
    parts = [torch.empty_like(both) for _ in range(ranks)]
    with Wire() as gather:
        dist.all_gather(parts, both)
    ratio = gather.sent / ring.sent  # @inspect ratio
    assert 0.98 < ratio < 1.02, \
        "The all-gather sends as many bytes as the ring, within 2 %."
    keys, values = torch.cat(parts, dim=2)
    order = torch.cat(places)
    # Which keys each of this rank's queries may see.
    seen = at[:, None] >= order
    assert seen.shape == (64, 256), \
        "A rank has the queries of 64 tokens, and now the keys of all 256."
    mine = F.scaled_dot_product_attention(
        q[:, at], keys, values, attn_mask=seen
    )
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert difference(mine, whole[:, at]) < ROUNDING, \
        "The result is that of attention in one process, up to rounding."
    assert difference(mine, by_ring) < ROUNDING, \
        "The ring has the same result, up to rounding."
    held = sum(part.nbytes for part in parts) / (2 * both.nbytes)  # @inspect held as times
    assert held == ranks / 2, \
        "An all-gather holds keys and values of 4 ranks, the ring of 2: those here, and those on the way."
    note(r"""
        Both send as much, because either way the keys and values of all other ranks have to come to
        a rank. The all-gather is simpler, but takes more memory: a rank then holds the keys and
        values of the whole text for one layer. Where several heads of queries share one head of
        keys, that is not much. In the 405B model of Llama 3, a token's queries in a layer have
        `16384` numbers, and its keys and values `1024` each [@llama3]. Take `16` ranks and a text
        of `131072` tokens, with `2` bytes for each number:
    """)
    tokens, width, kv = 131072, 16384, 1024  # of Llama 3 405B  # @unnoticed: 131072: any text
    gathered = 2 * tokens * kv * 2  # @inspect gathered as B
    queries = tokens // 16 * width * 2  # @inspect queries as B
    assert gathered == 2 * queries, \
        "The keys and values of the whole text take twice the bytes of a rank's own queries."
    question(r"""
        In a layer, a token has a query, a key and a value, and all three have `16384` numbers. `16`
        ranks share a long text. Each has the queries of its own tokens, and gathers the keys and
        values of all tokens. How many times the bytes of its queries do the gathered keys and
        values take?
    """, answer=2 * 16 * 128 / 128, check=2 * tokens * width / (tokens // 16 * width), unit="times",
        why=r"""
            A rank has the queries of a sixteenth of the tokens. The keys of all tokens take `16`
            times as much, and so do the values: `2 * 16`.
        """)
