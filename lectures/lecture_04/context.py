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
        A text of `256` tokens is cut into four parts, one for each of four ranks. In attention,
        each token needs the keys and values of all tokens before it, and most of these are on other
        ranks. *Ring attention* lets them come by [@liu2023]. Each rank keeps the queries of its own
        tokens. Keys and values go round in a ring. In each turn a rank scores its queries against
        the keys that are there now, adds up the values, and hands keys and values on to the next
        rank. After four turns it has seen all of them.

        But the softmax divides by a sum over *all* keys, which is known only at the end. So a rank
        keeps the sum so far, and the result so far, divided by that sum. When new keys come, the
        sum grows, and the result is multiplied by the old sum over the new one before the new
        values are added. `ring_attention` does that; `places` says which tokens each rank has:
    """)
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
        "A rank has the result of its own tokens, as one process computes it."
    turns = from_all_ranks(pairs)
    assert sum(map(sum, turns)) == 256 * 257 // 2, \
        "Together, the ranks score each of the 256 tokens against itself and all before it."
    figure(plot_turns(turns),
        caption=r"""
            The pairs of a query and a key that are scored in each turn: queries of a rank down,
            keys of a rank across.
        """,
        alt=r"""
            Four tables of four ranks by four, one for each turn. First each rank scores its own
            keys: the diagonal. Turn by turn the keys come from one rank further back, and to the
            first rank from the last. Keys of later tokens than the queries give no pair.
        """)
    note(r"""
        No rank ever holds all keys. How much does the ring send? In each turn but the last, every
        rank hands on as many keys and values as it has tokens:
    """)
    formula = (ranks - 1) * (k[:, at].nbytes + v[:, at].nbytes)  # @inspect formula as B
    ratio = wire.sent / formula  # @inspect ratio
    assert 1 <= ratio < 1.01, \
        "A rank sends as many keys and values as it has, three times, and headers."
    next_one = (rank + 1) % ranks
    assert wire.to[next_one] > 0.99 * wire.sent, \
        "A rank sends keys and values to the next rank, and to no other."
    misbelief("Attention over a split text is an approximation.", r"""
        It need not be. Ring attention adds up the same numbers in another order, and so its results
        agree with attention in one process, up to rounding.
    """)
    question(r"""
        A model with grouped heads has a key and a value of `1024` numbers each for a token. A text
        of `131072` tokens is shared by `16` ranks. How many bytes does each rank hand on in the
        forward pass of one layer, in `bfloat16`?
    """, answer=15 * 2 * (131072 // 16) * 1024 * 2, check=2 * 131072 * 1024 * 2 * 15 // 16, unit="B", within=0.05,
        wrong={"The last turn sends nothing.": 16 * 2 * (131072 // 16) * 1024 * 2,
               "Keys and values.": 15 * (131072 // 16) * 1024 * 2},
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
        With a causal mask a token looks at all tokens before it, and at itself. So late tokens have
        more *pairs* of a query and a key to score than early ones. If ranks share a text in order,
        the last rank has the late tokens, and the others wait for it. Four ranks share `256`
        tokens. `ring_attention` computes attention while keys and values go round from rank to
        rank, and counts the pairs that each rank scored:
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
        "The last rank scores 1.75 times as many pairs as the mean of all."
    note(r"""
        Why `1.75`? The first $n$ tokens of a text have about $n^2/2$ pairs together. So of $G$
        ranks, all but the last have a share of $(1 - 1/G)^2$ of the pairs. The last has the rest,
        $1 - (1 - 1/G)^2$. Divided by the mean share, $1/G$, that is $2 - 1/G$.

        The cure is to give each rank early tokens and late ones. Cut the text into $2G$ pieces. The
        first rank gets the first and the last piece. The second rank gets the second and the last
        but one, and so on, in a *zigzag*. Llama 3 was trained on long texts in this way [@llama3]:
    """)
    folded = zigzag(tokens, ranks)
    at = folded[rank]
    mine, turns = ring_attention(q[:, at], k[:, at], v[:, at], folded)  # @inspect turns
    assert difference(mine, whole[:, at]) < ROUNDING, \
        "The result is that of attention in one process."
    even = [sum(t) for t in from_all_ranks(turns)]  # @inspect even as pairs
    assert even == [sum(work) // ranks] * ranks, \
        "In a zigzag, all four ranks score equally many pairs."
    different = [len(set(now)) for now in zip(*from_all_ranks(turns))]  # @inspect different
    assert different == [1, 1, 1, 1], \
        "In every single turn, too, all ranks score equally many pairs."
    figure(plot_pairs(tokens, {"in order": (in_order, work), "zigzag": (folded, even)}),
        caption=r"""
            Which rank scores which pairs: queries down, keys across. The bars below are the pairs
            of each rank.
        """,
        alt=r"""
            Two lower triangles of pairs in the colors of the ranks. In order, the colors are four
            bands, and the lowest is the widest. In a zigzag each color has a band near the top and
            one near the bottom, and the bars of pairs below are equal.
        """)
    question(r"""
        A text is cut in order among `16` ranks, and attention is causal. The last of $G$ ranks has
        $1 - (1 - 1/G)^2$ of all pairs. How many times the mean of all ranks does it have?
    """, answer=2 - 1 / 16, check=(16**2 - 15**2) / 16, unit="times", within=0.02,
        why=r"""
            The last rank has `1 - (15/16)**2 = 31/256` of all pairs, and the mean is `16/256`. The
            ratio is `31/16`.
        """)


@aside
@requires("linux, ranks=4")
def a_gather_sends_as_much_as_a_ring() -> None:
    """An all-gather of keys and values sends as much as the ring, and keeps all of them."""
    note(r"""
        In [ring attention](#keys_and_values_can_go_round) each rank has some tokens of a long text,
        and keys and values go round from rank to rank. Why go round at all? Each rank could
        all-gather all keys and values, and then compute attention as usual. Llama 3 does just that
        [@llama3]. A rank sends as many bytes, because in both ways the keys and values of all other
        ranks have to come to it. We try both on four ranks with a text of `256` tokens:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    q, k, v = torch.randn(3, 4, 256, 32).double()  # @unnoticed: 4, 32: any heads
    places = zigzag(q.shape[1], ranks)
    at = places[rank]
    both = torch.stack([k[:, at], v[:, at]])
    with Wire() as ring:
        by_ring, _ = ring_attention(q[:, at], k[:, at], v[:, at], places)
    parts = [torch.empty_like(both) for _ in range(ranks)]
    with Wire() as gather:
        dist.all_gather(parts, both)
    ratio = gather.sent / ring.sent  # @inspect ratio
    assert 0.98 < ratio < 1.02, "A gather sends as many bytes as the ring."
    keys, values = torch.cat(parts, dim=2)
    order = torch.cat(places)
    seen = at[:, None] >= order
    assert seen.shape == (64, 256), "A rank has 64 of the 256 tokens."
    mine = F.scaled_dot_product_attention(
        q[:, at], keys, values, attn_mask=seen
    )
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert difference(mine, whole[:, at]) < ROUNDING, \
        "The result is that of attention in one process."
    assert difference(mine, by_ring) < ROUNDING, "The ring has it, too."
    held = sum(part.nbytes for part in parts) / (2 * both.nbytes)  # @inspect held as times
    assert held == ranks / 2, \
        "A gather holds the keys and values of 4 ranks, the ring of 2: here, and on the way."
    note(r"""
        The gather is simpler, and works with any mask. But it takes memory: a rank now holds the
        keys and values of the whole text in one layer. Where many heads of queries share one head
        of keys, that is little. In the 405B model of Llama 3, queries have `16384` numbers for each
        token, and keys and values `1024` each [@llama3]. Take `16` ranks and a text of `131072`
        tokens, with `2` bytes for each number:
    """)
    tokens, width, kv = 131072, 16384, 1024  # of Llama 3 405B  # @unnoticed: 131072: any text
    gathered = 2 * tokens * kv * 2  # @inspect gathered as B
    queries = tokens // 16 * width * 2  # @inspect queries as B
    assert gathered == 2 * queries, \
        "The keys and values of all take twice the bytes of a rank's own queries."
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
