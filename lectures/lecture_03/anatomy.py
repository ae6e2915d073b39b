"""The block of a Transformer of today: its matrices, its FLOPs, and the models that are made of it."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from counters import flops, flops_by_operation
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode, flop_registry
from plots import stacks

from litbook import aside, explore, figure, misbelief, note, question

from .block import (
    Attention,
    Block,
    Cache,
    RMSNorm,
    SwiGLU,
    Transformer,
    fused_attention,
    rotate,
    turns,
    written_attention,
)
from .counts import Config, attention_flops, block_weights, cache_bytes, expert_weights, forward_flops, matrices, parameter_count
from .figures import plot_block
from .published import LLAMA_2_7B, LLAMA_3_8B, LLAMA_3_70B, MISTRAL_7B, QWEN_25_HALF_B, SMALL


def a_block_of_today() -> None:
    """A block of today."""
    note(r"""
        Llama, Mistral and Qwen2.5 are built from the same kind of block. It differs from the block
        of the first Transformer [@vaswani2017] in five ways:

        - its norm is RMSNorm, not LayerNorm, and comes before attention and before the feed-forward
          part, not after each addition;
        - a token's position rotates its queries and keys; it used to be added to the token's
          vector;
        - several query heads share one key and one value; each head used to have its own;
        - the feed-forward part has three matrices; it used to have two;
        - it has no dropout and hardly any biases.

        This part says what most of these changes cost. [Later models](#later_models) have a part of
        their own.
    """)
    note(r"""
        Each token is a vector of $d$ elements; $d$ is the *model dimension*, or width. A block adds
        to this vector twice: `x = x + attention(norm(x))`, then `x = x + feed_forward(norm(x))`.
        This vector runs through all blocks, which only add to it; it is called the *residual
        stream*.

        In attention, three matrices turn each token into a query, a key and a value. These vectors
        are split into *heads*, pieces that work independently of each other. In each head, a
        *score* is the dot product of one token's query and another token's key. The *causal mask*
        removes the scores of later tokens. The softmax turns the remaining scores into weights, and
        for each token the head returns the sum of the values with these weights. A fourth matrix,
        the output matrix, combines the results of all heads. The *feed-forward part* then processes
        each token by itself. In Llama it is *SwiGLU* [@swiglu]: two matrices, *gate* and *up*, turn
        the $d$ elements of a token into $h$ elements each. An element $x$ from gate becomes
        $x \cdot \text{sigmoid}(x)$ and is multiplied by the element from up, and *down* turns the
        $h$ products into $d$ elements.
    """)
    a_block_is_seven_matrices()
    rmsnorm_forgets_the_scale()
    rotary_embedding_tells_distances()
    query_heads_share_keys()
    each_matrix_costs_two_flops_per_weight()
    a_counter_may_overlook_attention()
    published_counts_follow_from_eight_numbers()


def a_block_is_seven_matrices() -> None:
    """A block of Llama is seven matrices, and most of its weights are in the feed-forward part."""
    note(r"""
        How many parameters does a block of Llama have, and where are most of them?

        A *block* has two parts. In *attention*, a token takes in information from other tokens. The
        *feed-forward part* processes each token by itself. Both parts consist of matrices. A matrix
        that turns $2$ elements into $3$ has $2 \cdot 3 = 6$ weights, one for each pair of an input
        and an output.

        A token comes in as a vector of $d$ elements. Seven matrices process it:

        | matrices | each turns | weights of all |
        |---|---|---|
        | attention: query and output | $d$ elements into $d$ | $2d^2$ |
        | attention: key and value | $d$ elements into $d_{kv}$ | $2\,d\,d_{kv}$ |
        | feed-forward: gate and up | $d$ elements into $h$ | $2\,d\,h$ |
        | feed-forward: down | $h$ elements into $d$ | $d\,h$ |

        Here $d_{kv}$ is $d$ [or less](#query_heads_share_keys), and $h$, the *intermediate size*,
        is larger than $d$. Each part begins with a *norm*. It multiplies each of the $d$ elements
        by a learned factor; these factors are its *gains*. In total, a block has this many
        parameters:

        [@eq:block]: $$
        \underbrace{2d^2 + 2\,d\,d_{kv}}_{\text{attention}} +
        \underbrace{3\,d\,h}_{\text{feed-forward}}
        + \underbrace{2d}_{\text{gains}}
        $$

        By hand, take $d = 2$, $d_{kv} = 1$ and $h = 6$:

        - Attention has $2 \cdot 2 \cdot 2 + 2 \cdot 2 \cdot 1 = 12$ weights.
        - The feed-forward part has $3 \cdot 2 \cdot 6 = 36$ weights.
        - The two norms have $2 \cdot 2 = 4$ gains.

        The feed-forward part has most of the weights, because each of its matrices has one side of
        length $h$, here $3$ times $d$, and the matrices of attention have no such side. In general
        it has more than attention if $3h$ is larger than $2d + 2\,d_{kv}$.

        Does the formula find all parameters? Compare it with PyTorch's own list of the parameters
        of a small block:
    """)
    # A block with d = 64, d_kv = 16 and h = 160:
    block = Block(SMALL)
    by_name = {name: p.numel() for name, p in block.named_parameters()}  # @inspect by_name
    assert len(by_name) == 9, \
        "The block has seven matrices and two vectors of gains."  # @hide
    attention = 2 * 64 * 64 + 2 * 64 * 16  # @inspect attention
    feed_forward = 3 * 64 * 160  # @inspect feed_forward
    assert sum(by_name.values()) == attention + feed_forward + 2 * 64, \
        "PyTorch lists the number of parameters that the formula gives."
    assert attention + feed_forward == block_weights(SMALL) == 40960, \
        "The seven matrices have 40,960 weights."  # @hide
    share = feed_forward / (attention + feed_forward)  # @hide
    assert share == 0.75, \
        "75 % of the block's weights are in the feed-forward part."  # @hide
    part, token = SwiGLU(SMALL), torch.randn(64)  # @hide
    gate = part.gate(token)  # @hide
    products = gate * gate.sigmoid() * part.up(token)  # @hide
    assert torch.allclose(part(token), part.down(products), atol=1e-5), \
        "SwiGLU is down of gate, times its sigmoid, times up."  # @hide
    figure(plot_block(matrices(SMALL)), caption=r"""
        The seven matrices of this block, drawn to the same scale. The area of a matrix is its
        number of weights; `out` is the output matrix.
    """, alt=r"""
        Seven rectangles. Query and out are squares, key and value a quarter as wide. Gate, up and
        down are two and a half times as long as the squares.
    """)
    note("The same for a block of Llama-3-8B, with $d = 4096$, $d_{kv} = 1024$ and $h = 14336$:")
    attention_8b = 2 * 4096 * 4096 + 2 * 4096 * 1024  # @inspect attention_8b
    feed_forward_8b = 3 * 4096 * 14336  # @inspect feed_forward_8b
    share_8b = feed_forward_8b / (attention_8b + feed_forward_8b)  # @inspect share_8b as %
    assert attention_8b + feed_forward_8b == block_weights(LLAMA_3_8B), \
        "These are all weights of a block of Llama-3-8B."  # @hide
    assert round(share_8b, 2) == 0.81, \
        "81 % of the weights of a block of Llama-3-8B are in the feed-forward part."
    note("So to make such a block much smaller, shrink the feed-forward part.")
    question(r"""
        In a block, attention has `4` million weights and the feed-forward part has `12` million.
        Someone doubles $h$ and leaves $d$ and $d_{kv}$ as they are. How many million weights do the
        seven matrices have then?
    """, answer=4 + 2 * 12, check=block_weights(Config(1, 1000, 10, 10, 8000, 100, 32)) / 10**6, unit="million",
        wrong={
            "No matrix of attention has a side of length h, so attention stays as it is.": 2 * 4 + 2 * 12,
            "All three matrices of the feed-forward part have a side of length h.": 4 + 12 + 4,
        }, why=r"""
            Each of the three matrices of the feed-forward part has a side of length $h$, so they
            have twice as many weights, `24` million. No matrix of attention has such a side.
        """, hint="Which of the matrices have a side of length $h$?")


@aside
def rmsnorm_forgets_the_scale() -> None:
    """RMSNorm removes the scale of a token's elements."""
    note(r"""
        Why does a Transformer have norms? A token is a vector that runs through all blocks of the
        model. Each block adds its results to this vector, so its elements tend to grow. A *norm*
        brings them back to one scale before the next matrix is applied.

        RMSNorm divides each element of a token by the *root mean square* of all its elements
        [@rmsnorm]. Take a token of two elements, `1` and `7`:

        - The squares of the elements are $1$ and $49$.
        - The mean of the squares is $25$.
        - The root of the mean is $5$, so the norm returns `1/5` and `7/5`.

        Now multiply the token by `10`. The squares are $100$ and $4900$, their mean is $2500$, and
        the root of the mean is $50$. So the norm returns `10/50` and `70/50`, the same as before.
        The scale disappears because the factor `10` is in both the element and the root mean
        square, and cancels.

        PyTorch agrees. Its norm also adds `eps`, a tiny number that prevents a division by zero;
        here `eps` is zero:
    """)
    norm = RMSNorm(2, eps=0)
    small = norm(torch.tensor([1.0, 7.0])).tolist()
    large = norm(torch.tensor([10.0, 70.0])).tolist()  # @unnoticed: 10.0, 70.0: any multiple of the token
    rounded = [[round(x, 3) for x in token] for token in (small, large)]  # @inspect rounded
    assert rounded == [[1 / 5, 7 / 5], [1 / 5, 7 / 5]], \
        "For both tokens, the norm returns 1/5 and 7/5."
    x: Float[Tensor, "b t d"] = torch.randn(2, 5, 64).double()  # @hide
    wide = RMSNorm(64, eps=0).double()  # @hide
    root = x.square().mean(dim=-1, keepdim=True).sqrt()  # @hide
    y: Float[Tensor, "b t d"] = wide(x)  # @hide
    assert torch.allclose(y, x / root), \
        "With gains of one, the norm divides each token by its root mean square."  # @hide
    lengths = y.norm(dim=-1)  # @hide
    eight = torch.full_like(lengths, 8)  # @hide
    assert torch.allclose(lengths, eight), \
        "The squares of 64 elements with mean square 1 add up to 64: each token has length 8."  # @hide
    learned = RMSNorm(64, eps=0).double()  # @hide
    nn.init.uniform_(learned.gain, 0.5, 1.5)  # @hide
    spread = learned(x).norm(dim=-1)  # @hide
    assert spread.max() > 1.02 * spread.min(), \
        "With gains that differ, the lengths of the tokens differ."  # @hide
    loud = 100 * x  # @unnoticed: 100, doubled, factor 100 left out: any factor  # @hide
    assert torch.allclose(learned(loud), learned(x)), \
        "With any gains, tokens a hundred times as large give the same result."  # @hide
    block, turn = Block(SMALL).double(), turns(SMALL.head, 5).double()  # @hide
    middle = x + block.attention(block.before_attention(x), turn)  # @hide
    after = middle + block.feed_forward(block.before_feed_forward(middle))  # @hide
    assert torch.allclose(block(x, turn), after), \
        "A block is x + attention(norm(x)), and then x + feed_forward(norm(x))."  # @hide
    centered = x - x.mean(dim=-1, keepdim=True)  # @hide
    layer_norm = partial(F.layer_norm, normalized_shape=(64,), eps=0)  # @hide
    layered = layer_norm(centered)  # @hide
    assert torch.allclose(wide(centered), layered), \
        "RMSNorm and LayerNorm agree where a token's mean is zero."  # @hide
    assert not torch.allclose(wide(x), layer_norm(x)), \
        "RMSNorm and LayerNorm differ where it is not."  # @hide
    two = [sum(p.numel() for p in n.parameters()) for n in (RMSNorm(64), nn.LayerNorm(64))]  # @hide
    assert two == [64, 2 * 64], \
        "RMSNorm has a gain for each element, and LayerNorm a gain and a bias."  # @hide
    note(r"""
        At the end, the norm multiplies each element by a learned factor, its *gain*. In a new norm
        all gains are one. The gains are the same for every token, so they do not bring the scale
        back: the next matrix receives the ratios between a token's elements, but never their scale.
    """)
    four = RMSNorm(4, eps=0)  # @hide
    question(r"""
        A token has the four elements `1`, `5`, `5` and `7`. It is multiplied by `10` and goes
        through RMSNorm, with gains of one and without `eps`. What is the first element of the
        result?
    """, answer=1 / 5, check=round(four(10 * torch.tensor([1.0, 5.0, 5.0, 7.0]))[0].item(), 6), within=0.01, wrong={
            "The root mean square also became ten times as large.": 2.0,
            "Divide by the root of the mean square, not by the mean square.": 1 / 25,
            "Take the mean of the squares, not their sum.": 0.1,
        }, hint="What is the mean of the four squares?",
        why="The squares are `1`, `25`, `25` and `49`; their mean is `25`, and its root is `5`. The factor `10` is in the element and in the root, so it cancels: `10 / 50` is `1 / 5`.")


@aside
def rotary_embedding_tells_distances() -> None:
    """Rotary embedding makes a score depend on the difference of two positions, not on each position."""
    note(r"""
        In attention, each token has a *query* and a *key*. The *score* says how much one token
        attends to another: it is the dot product of the first token's query and the second token's
        key. Nothing in this product says how far apart the tokens are. How can attention take their
        distance into account?

        *Rotary embedding* rotates queries and keys before they are multiplied [@rope]. Take a query
        and a key of two elements each, and think of them as two arrows in a plane. At position `p`
        of the sequence, an arrow is rotated by `p` radians.

        - The query is at position `5`, so it is rotated by `5`. The key is at position `2`, so it
          is rotated by `2`. The angle between the two arrows changes by `5 - 2 = 3`.
        - At positions `35` and `32`, the angle changes by `35 - 32 = 3`, the same.

        The dot product of two arrows depends only on their lengths and on the angle between them,
        and a rotation changes no length. So, for a given query and key, the score depends only on
        the difference of their positions.

        Try it with a random query and a random key:
    """)
    query, key = torch.randn(2, 2).double()  # @unnoticed: .double(): any format

    def rotated(arrow: Tensor, position: int) -> Tensor:
        x, y = arrow
        cos, sin = math.cos(position), math.sin(position)
        return torch.stack([x * cos - y * sin, x * sin + y * cos])

    def score(query_position: int, key_position: int) -> float:
        return float(
            rotated(query, query_position) @ rotated(key, key_position)
        )

    early, late = score(5, 2), score(35, 32)  # @inspect round(early, 6), round(late, 6)
    assert math.isclose(early, late), \
        "At positions 5 and 2 the score is the same as at 35 and 32."
    closer = score(5, 3)  # @inspect round(closer, 6)
    assert not math.isclose(early, closer), \
        "At positions 5 and 3, the score differs from that at positions 5 and 2."
    turn = turns(16, tokens=40).double()  # @hide
    q, k = torch.randn(2, 1, 1, 1, 16).double()  # @hide

    def whole_score(query_position: int, key_position: int) -> float:  # @hide
        turned_query = rotate(q, turn[:, [query_position]])
        turned_key = rotate(k, turn[:, [key_position]])
        return float((turned_query * turned_key).sum())

    assert math.isclose(whole_score(5, 2), whole_score(35, 32), abs_tol=1e-4), \
        "With 16 elements, the score is also the same at both positions."  # @hide
    turned = rotate(q, turn[:, [39]])  # @hide
    assert torch.allclose(turned.norm(), q.norm()), \
        "A rotated query is as long as before."  # @hide
    assert not torch.allclose(turned, q), \
        "A rotated query points elsewhere."  # @hide
    layer = Attention(SMALL, "written").double()  # @hide
    x = torch.randn(1, 8, 64).double()  # @hide
    here = layer(x, turns(8, 8).double())  # @hide
    there = layer(x, turns(8, 8, start=30).double())  # @hide
    assert torch.allclose(here, there), \
        "Attention gives the same result for a sequence that begins thirty positions later."  # @hide
    still = torch.zeros(2, 8, 4).double()  # @hide
    still[0] = 1  # @hide
    assert not torch.allclose(here, layer(x, still)), \
        "Without rotation, attention gives a different result."  # @hide
    note(r"""
        A real query has more than two elements. They are grouped in pairs, and each pair is one
        arrow. The first arrow is rotated by `p` radians, and each following arrow by a smaller
        fraction of `p`. The score is the sum over all pairs, and each term depends on the
        difference alone, so the sum does.
    """)
    question(r"""
        A query at position `12` and a key at position `5` have some score. Now the same query is at
        position `39`. At what position does the same key have the same score?
    """, answer=39 - (12 - 5), check=next(p for p in range(40) if math.isclose(score(39, p), score(12, 5))),
        wrong={"The key does not stay where it is: the difference has to.": 5},
        hint="What is the difference of the two positions at first?",
        why="The score depends on the difference of the positions alone. It was `12 - 5 = 7`, so the key has to be `7` tokens before the query.")


def query_heads_share_keys() -> None:
    """Grouped-query attention keeps fewer keys and values, but compares the same pairs of tokens."""
    note(r"""
        A model that generates a sequence stores the *keys* and *values* of all tokens so far,
        because later tokens attend to them. How can it store fewer? And does it then also compare
        fewer pairs of tokens?

        Attention works in *heads*. In standard multi-head attention, each token has a query, a key
        and a value in each head. In *grouped-query attention* [@gqa], several query heads use the
        same key and the same value. By hand, take one token and `4` query heads:

        - Without sharing, `4` keys and `4` values are stored for the token.
        - If all `4` query heads share one key and one value, only these `2` vectors are stored.

        The stored keys and values belong to the *KV heads*: each has one key and one value for each
        token. Now `8` query heads share `2` KV heads, in `1` sequence of `6` tokens. Each query,
        key and value has `16` elements. `key_8` and `value_8` are keys and values without sharing,
        with `8` KV heads:
    """)
    # Sequences, tokens, heads, elements:
    query = torch.randn(1, 6, 8, 16)
    key, value = torch.randn(1, 6, 2, 16), torch.randn(1, 6, 2, 16)
    key_8, value_8 = torch.randn(1, 6, 8, 16), torch.randn(1, 6, 8, 16)

    stored = key.nbytes + value.nbytes  # @inspect stored as B
    stored_8 = key_8.nbytes + value_8.nbytes  # @inspect stored_8 as B
    assert stored_8 == 4 * stored, \
        "With 8 KV heads, keys and values need 4 times as many bytes as with 2."
    b, t, heads, kv_heads, c = 2, 6, 8, 2, 16  # @hide
    queries: Float[Tensor, "b t heads c"] = torch.randn(b, t, heads, c).double()  # @hide
    k: Float[Tensor, "b t kv_heads c"] = torch.randn(b, t, kv_heads, c).double()  # @hide
    v: Float[Tensor, "b t kv_heads c"] = torch.randn(b, t, kv_heads, c).double()  # @hide
    shared = written_attention(queries, k, v)  # @hide
    times = heads // kv_heads  # @hide
    keys, values = (x.repeat_interleave(times, dim=2) for x in (k, v))  # @hide
    repeated = written_attention(queries, keys, values)  # @hide
    assert torch.allclose(shared, repeated), \
        "Shared KV heads give the same result as KV heads that are repeated for each query head."  # @hide
    assert torch.allclose(shared, fused_attention(queries, k, v)), \
        "A fused kernel also gives the same result."  # @hide
    alone = replace(SMALL, kv_heads=8)  # every head has keys of its own  # @hide
    caches = [Cache(config, 1, queries).memory.nbytes for config in (SMALL, alone)]  # @hide
    assert caches[1] / caches[0] == 4.0, \
        "In a model with 8 query heads, 2 KV heads are a quarter of the bytes to keep."  # @hide
    note(r"""
        Does attention also compare fewer pairs? No, because each query head still compares the
        query of every token with the key of every token. (The causal mask hides later tokens only
        afterwards.) In each of `8` heads that is `6 * 6` pairs of a query and a key, whether a key
        is shared or not. For each pair, the dot product of query and key costs `2 * 16` FLOPs, and
        adding the weighted value to the result another `2 * 16`: `8 * 6 * 6 * 2 * 2 * 16` FLOPs in
        total. `flops` counts those of `written_attention`, which computes attention in separate
        operations:
    """)
    grouped = flops(lambda: written_attention(query, key, value))  # @inspect grouped as FLOP
    separate = flops(lambda: written_attention(query, key_8, value_8))  # @inspect separate as FLOP
    assert grouped == separate, \
        "Attention's two matmuls cost the same FLOPs with sharing and without."
    assert grouped == 8 * (6 * 6) * (2 * 2 * 16), \
        "Each pair costs 2 FLOPs for each element, of the key and of the value."  # @hide
    misbelief("Grouped-query attention makes attention's two matmuls cheaper to compute.", r"""
        They cost the same FLOPs as before, because every query head still compares the same pairs.
        Only the weight matrices that make keys and values become smaller and cheaper. Generating
        can be faster for another reason: fewer keys and values are read from memory.
    """)

    note("Llama-3-8B has `32` query heads and `8` KV heads. Try other numbers of KV heads:")

    def shared_by(  # @hide
        kv_heads: int, inner_width: int, context: int
    ) -> dict[str, Any]:
        c = replace(LLAMA_3_8B, kv_heads=kv_heads, hidden=inner_width)
        return {
            "matrices": [list(shape) for shape in matrices(c).values()],
            "weights": block_weights(c),
            "attention": attention_flops(c, 1, context) // c.layers,
            "cache": cache_bytes(c, context),
        }

    thirty_two, eight = (shared_by(g, 14336, 8192) for g in (32, 8))  # @hide
    assert thirty_two["cache"] == 4 * eight["cache"], \
        "With 8 KV heads instead of 32, a quarter is kept."  # @hide
    assert eight["attention"] == thirty_two["attention"], \
        "With 8 KV heads instead of 32, attention costs the same FLOPs."  # @hide
    left = eight["weights"] / thirty_two["weights"]  # @hide
    assert 0.89 < left < 0.9, \
        "With 8 KV heads instead of 32, nine tenths of the block's weights are left."  # @hide
    alone = replace(LLAMA_3_8B, kv_heads=1)  # @hide
    names = "query", "key", "value", "out"  # @hide
    single = sum(math.prod(matrices(alone)[m]) for m in names)  # @hide
    assert 0.5 < single / (4 * 4096**2) < 0.52, \
        "With one KV head, more than half of attention's weights are left."  # @hide
    explore(shared_by, over={
        "kv_heads": [1, 2, 4, 8, 16, 32], "inner_width": [4096, 8192, 11008, 14336, 16384],
        "context": [2**i for i in range(10, 17)],
    }, at={"kv_heads": 32, "inner_width": 14336, "context": 8192}, module="pictures/block.js",
        still=plot_block(matrices(replace(LLAMA_3_8B, kv_heads=32))),
        do="Go from `32` KV heads to `8`, the number in Llama-3-8B, and on to `1`. What stays the same?",
        see=r"""
            The KV cache shrinks with the number of KV heads. The FLOPs of attention stay the same,
            and so does most of the block: only the key and value matrices shrink.
        """, caption=r"""
            The seven matrices of a block of Llama-3-8B, drawn to the same scale: the area of a
            matrix is its number of weights. Gate, up and down belong to the feed-forward part, and
            inner width is their longer side. The KV cache holds the keys and values of all tokens
            of a sequence, and context is the number of these tokens.
        """, alt=r"""
            Seven rectangles. With a KV head for each query head, the four of attention are squares
            of one size. Gate, up and down are three and a half times as long as they are high.
        """)  # @hide
    note(r"""
        So with `8` KV heads instead of `32`, Llama-3-8B stores a quarter of the keys and values. In
        the same memory, a server can store them for `4` times as many tokens.
    """)
    fewer, before = (shared_by(g, 14336, 8192) for g in (4, 8))  # @hide
    question(r"""
        A model has `32` query heads and `8` KV heads. Its next version has `32` query heads and `4`
        KV heads. By what factor do the bytes of the stored keys and values change, and by what
        factor the FLOPs of comparing queries with keys? Write two numbers with a comma between
        them.
    """, answer=[4 / 8, 1], check=[fewer["cache"] / before["cache"], fewer["attention"] / before["attention"]],
        within=0.01, hint="Which heads store something, and which heads compare?",
        why="Only KV heads have keys and values to store, and half of them are left. All `32` query heads still compare every token with every token.")


def each_matrix_costs_two_flops_per_weight() -> None:
    """In the forward pass, each matrix costs two FLOPs per weight and token, and attention's matmuls come on top."""
    note(r"""
        How many FLOPs does a Transformer block cost for a sequence of tokens?

        Take one token of `2` elements and a matrix that turns them into `3`. The matrix has
        `2 * 3 = 6` weights. Each weight is multiplied by one element, and the product is added to
        one output. So the matrix costs `2` FLOPs per weight and token.

        Attention's two matmuls come on top, and no weight takes part in them. The first multiplies
        each query by the key of each token. The second multiplies each result of the softmax by a
        value. `3` tokens have `3 * 3 = 9` pairs of a query and a key. In the first matmul a pair
        costs `2` FLOPs for each element of the query, and in the second `2` for each element of the
        value. With $5$ elements each, that is $9 \cdot (2 \cdot 5 + 2 \cdot 5) = 180$ FLOPs.
        (Unfused attention computes a pair even if the causal mask hides it.)

        In a block of Llama-3-8B, a token's query has `4096` elements, over all heads together, and
        so does the result of attention for it. Let PyTorch count the FLOPs. `run_block` runs the
        block for a sequence of `2048` tokens. PyTorch lists matmuls with weights as `mm` and those
        of attention as `bmm`. The block's [matrices](#a_block_is_seven_matrices) have $d = 4096$,
        $d_{kv} = 1024$ and $h = 14336$:
    """)
    with torch.device("meta"):  # @hide
        block = Block(LLAMA_3_8B, "written")
        x = torch.empty(1, 2048, LLAMA_3_8B.width)
        run_block = partial(block, x, turns(LLAMA_3_8B.head, 2048))
    counted = flops_by_operation(run_block)  # @inspect counted as FLOP
    # query and out, key and value, gate and up and down
    weights = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336  # @inspect weights
    assert weights == block_weights(LLAMA_3_8B), \
        "The matrices of this block have so many weights."  # @hide
    matrices_flops = 2 * weights * 2048  # @inspect matrices_flops as FLOP
    assert counted["aten.mm"] == matrices_flops, \
        "The matrices cost 2 FLOPs per weight and token."
    attention_extra = 2 * (2 * 2048 * 2048 * 4096)  # @inspect attention_extra as FLOP
    assert counted["aten.bmm"] == attention_extra, \
        "Each of attention's two matmuls costs 2 FLOPs per pair and element."
    with FlopCounterMode(display=False) as counter:  # @hide
        run_block()
    counts = counter.get_flop_counts()  # @hide
    by_counter = {name.split(".")[-1]: sum(counts[name].values()) for name in counts}  # @hide
    shapes = matrices(LLAMA_3_8B)  # @hide
    by_formula = {name: 2 * 2048 * r * c for name, (r, c) in shapes.items()}  # @hide
    assert [by_counter[name] for name in shapes] == [*by_formula.values()], \
        "For each of the seven matrices, the counter reports 2 FLOPs per weight and token."  # @hide
    total = by_counter["Global"]  # @hide
    assert total == sum(counted.values()), \
        "The total is what the counter says for the whole block."  # @hide
    assert LLAMA_3_8B.query_width == 32 * 128 == LLAMA_3_8B.width, \
        "The heads of a query have 32 * 128 elements together, and that is the width."  # @hide
    share = counted["aten.bmm"] / total  # @hide
    assert 0.071 < share < 0.072, \
        "At 2048 tokens, attention's two matmuls are 7 % of the block's FLOPs."  # @hide
    note(rf"""
        With `2048` tokens, attention's two matmuls are {share:.1%} of all these FLOPs. In a longer
        sequence their share is larger: twice as many tokens are multiplied by the weights, but
        there are `4` times as many pairs.
    """)
    parts = {
        f"{length:,} tokens": {
            "attention's matrices": 2 * length * (weights - expert_weights(LLAMA_3_8B)),
            "gate, up and down": 2 * length * expert_weights(LLAMA_3_8B),
            "attention's two matmuls": attention_flops(LLAMA_3_8B, length, length) // LLAMA_3_8B.layers,
        }
        for length in (2048, 8192, 32768, 131072)
    }  # @hide
    assert sum(parts["2,048 tokens"].values()) == total, \
        "The parts are what the counter counts."  # @hide
    each = {length: {n: part / sum(all_.values()) for n, part in all_.items()} for length, all_ in parts.items()}  # @hide
    longest = each["131,072 tokens"]["attention's two matmuls"]  # @hide
    figure(stacks(each, "share of the block's FLOPs"), caption=r"""
        FLOPs of a block of Llama-3-8B by part, for sequences of four lengths. Gate, up and down are
        the matrices of the feed-forward part.
    """, alt=rf"""
        Four stacked bars. In the first, attention's two matmuls are {share:.0%}; in the last,
        {longest:.0%}.
    """)
    note(r"""
        So for a prompt of `2048` tokens, `2` FLOPs per weight and token are a good estimate. For a
        much longer one, count attention's matmuls as well.
    """)
    question(r"""
        For one sequence, the matrices of a block cost `90` GFLOP and attention's two matmuls cost
        `10` GFLOP. How many GFLOP does the block cost for a sequence of twice the length?
    """, answer=2 * 90 + 4 * 10,
        check=2 * 90 + 10 * attention_flops(LLAMA_3_8B, 200, 200) / attention_flops(LLAMA_3_8B, 100, 100), unit="GFLOP",
        within=0.001, wrong={
            "There are four times as many pairs of tokens, not twice as many.": 2 * 100,
            "Only the pairs of tokens become four times as many; the matrices cost twice as much.": 4 * 100,
        }, hint="How many pairs does a sequence of twice the length have?",
        why="The matrices process twice as many tokens, and cost `180` GFLOP. Attention has `4` times as many pairs, and costs `40` GFLOP.")


@aside
def a_counter_may_overlook_attention() -> None:
    """A counter counts zero FLOPs for a kernel that it does not know."""
    note(r"""
        Does PyTorch's FLOP counter count all FLOPs of a model? It has a list of operations, with a
        formula for each. A kernel, a program for one operation, that is not on the list adds
        nothing to the count, because the counter has no formula for it.

        Attention can run in two ways: *unfused*, as two matmuls and a softmax, or *fused* into a
        single kernel. Build a small model in both ways, with the same weights, and let it process
        `3` sequences of `32` tokens. `flops_by_operation` returns the counter's result for each
        operation. It lists matmuls with weights as `mm`, and attention's two matmuls as `bmm`:
    """)
    unfused = Transformer(SMALL, "written").double()
    fused = Transformer(SMALL, "fused").double()
    fused.load_state_dict(unfused.state_dict())
    tokens = torch.randint(0, SMALL.vocabulary, (3, 32))  # @unnoticed: 0: any tokens
    assert torch.allclose(unfused(tokens), fused(tokens)), \
        "Both models give the same scores for the next token."
    by_operation = flops_by_operation(lambda: unfused(tokens))  # @inspect by_operation as FLOP
    whole = sum(by_operation.values())  # @inspect whole as FLOP
    assert whole == forward_flops(SMALL, 3 * 32, 32), \
        "With unfused attention, the counter agrees with the formula for a forward pass."  # @hide
    note(r"""
        With unfused attention, the counter sees both kinds of matmuls. Now the fused model, with
        its kernel for a CPU. Is this on the counter's list, `flop_registry`?
    """)
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    listed = kernel in flop_registry  # @inspect listed
    assert not listed, \
        "The kernel is not on the list."  # @hide
    on_gpu = ("flash", "efficient", "cudnn")  # @hide
    for_gpus = [getattr(torch.ops.aten, f"_scaled_dot_product_{name}_attention") for name in on_gpu]  # @hide
    assert all(it in flop_registry for it in for_gpus), \
        "Three fused kernels for GPUs are on the list."  # @hide
    missed = whole - flops(lambda: fused(tokens))  # @inspect missed as FLOP
    attention = attention_flops(SMALL, 3 * 32, 32)  # @hide
    assert attention == by_operation["aten.bmm"], \
        "Attention's two matmuls cost what the formula says."  # @hide
    assert missed == by_operation["aten.bmm"], \
        "The count misses exactly the FLOPs of attention's two matmuls."
    misbelief("`FlopCounterMode` counts all FLOPs of a model.", rf"""
        It counts the operations on its list, and each release of PyTorch has its own list. With
        fused attention on a CPU, it misses {missed:,} of a small model's {whole:,} FLOPs, those of
        attention. (PyTorch's fused kernels for NVIDIA's GPUs are on the list.) So first look for
        the kernel in `flop_registry`; if it is missing, count with unfused attention.
    """)
    another = Config(layers=2, width=100, heads=5, kv_heads=5, hidden=200, vocabulary=100, context=100)  # @hide
    given = torch.zeros(1, 100, dtype=torch.int64)  # @hide
    asked = flops_by_operation(lambda: Transformer(another, "written")(given))  # @hide
    assert (sum(asked.values()), asked["aten.bmm"]) == (50e6, 8e6), \
        "A model of suitable sizes costs 50e6 FLOPs, of which 8e6 are attention's two matmuls."  # @hide
    question(r"""
        On a CPU, another model with unfused attention costs `50e6` FLOPs by the counter, of which
        `8e6` are attention's two matmuls. The same model runs with fused attention, whose kernel is
        not on the counter's list. How many FLOPs does the counter report?
    """, answer=50e6 - 8e6, check=flops(lambda: Transformer(another, "fused")(given)), unit="FLOP", within=0.01, wrong={
            "The model needs these FLOPs, but the counter does not see attention's.": 50e6,
        }, hint="Which of the operations does the counter not see?",
        why="The fused kernel does attention's two matmuls, and none of their FLOPs is counted. The matmuls with weights are counted as before.")


@aside
def published_counts_follow_from_eight_numbers() -> None:
    """One formula gives the published parameter counts of three models, Llama and Mistral, exactly."""
    note(r"""
        How many parameters does a whole Transformer have? Add up what it is built from:

        - $L$ equal *blocks*. A token has $d$ elements, its keys together have $d_{kv}$, and the
          feed-forward part has $h$ inside. A block has [two matrices](#a_block_is_seven_matrices)
          of $d \cdot d$ weights (query, output), two of $d \cdot d_{kv}$ (key, value) and three of
          $d \cdot h$ (gate, up, down), and two norms with $d$ factors each.
        - *A last norm*, with a learned factor for each of the $d$ elements.
        - *Two tables* with a row of $d$ elements for each of the $V$ tokens of the vocabulary. The
          *embedding* turns a token into its row, and the *head* gives a score for each token at the
          end.

        Together:

        [@eq:parameters]: $$
        P = L\,\underbrace{(2d^2 + 2\,d\,d_{kv} + 3\,d\,h + 2d)}_{\text{a block}}
        + \underbrace{d}_{\text{last norm}} + \underbrace{2Vd}_{\text{tables}}
        $$

        Compute it for Llama-3-8B [@llama-3-8b]. `kv` is $d_{kv}$:
    """)

    def count(L: int, d: int, kv: int, h: int, V: int) -> int:
        block = 2 * d * d + 2 * d * kv + 3 * d * h + 2 * d
        return L * block + d + 2 * V * d

    total = count(L=32, d=4096, kv=1024, h=14336, V=128256)  # @inspect total
    assert total == 8_030_261_248, \
        "These are the 8,030,261,248 parameters of Llama-3-8B."
    assert total == parameter_count(LLAMA_3_8B), \
        "The formula is that of `parameter_count`."  # @hide
    note(r"""
        That is exactly the published number [@keras-hub], because a Transformer of this kind has no
        other parameters. The sizes are in each model's `config.json`. Two more published
        numbers [@llama-2-7b; @mistral-7b]:
    """)
    llama_2 = count(L=32, d=4096, kv=4096, h=11008, V=32000)  # @inspect llama_2
    assert llama_2 == 6_738_415_616, \
        "These are the 6,738,415,616 parameters of Llama-2-7B."
    mistral = count(L=32, d=4096, kv=1024, h=14336, V=32000)  # @inspect mistral
    assert mistral == 7_241_732_096, \
        "These are the 7,241,732,096 parameters of Mistral-7B."
    assert (llama_2, mistral) == (parameter_count(LLAMA_2_7B), parameter_count(MISTRAL_7B)), \
        "Their configurations have the sizes of the two calls."  # @hide
    qwen = parameter_count(QWEN_25_HALF_B)  # @hide
    assert qwen == 494_032_768, \
        "With biases and one table less, these are the 494,032,768 parameters of Qwen2.5-0.5B."  # @hide
    computed = {"Llama-2-7B": llama_2, "Mistral-7B": mistral, "Qwen2.5-0.5B": qwen}  # @hide
    shapes = {"Llama-2-7B": LLAMA_2_7B, "Mistral-7B": MISTRAL_7B, "Qwen2.5-0.5B": QWEN_25_HALF_B}  # @hide
    computed["Llama-3-8B"] = total  # @hide
    built = {}  # @hide
    for name, config in (shapes | {"Llama-3-8B": LLAMA_3_8B}).items():  # @hide
        with torch.device("meta"):
            model = Transformer(config)
        built[name] = sum(p.numel() for p in model.parameters())
    assert built == computed, \
        "The four models, built without data, have the same numbers of parameters."  # @hide
    assert parameter_count(LLAMA_3_70B) == 70_553_706_496, \
        "Llama-3-70B has 70,553,706,496 parameters by the formula."  # @hide
    assert 2 * total == 16_060_522_496, \
        "Two bytes a parameter give the size of the file of Llama-3-8B's weights."  # @hide
    assert block_weights(LLAMA_3_8B) + 2 * LLAMA_3_8B.width == 218_112_000, \
        "A block of Llama-3-8B has 218,112,000 parameters."  # @hide
    table = QWEN_25_HALF_B.vocabulary * QWEN_25_HALF_B.width  # @hide
    share = table / built["Qwen2.5-0.5B"]  # @hide
    assert 0.27 < share < 0.28, \
        "More than a quarter of Qwen2.5-0.5B is its one table."  # @hide
    note(r"""
        So for such a model, the sizes in its `config.json` tell how much memory its weights need,
        before anything is downloaded. (Some models add biases. In others the embeddings are *tied*:
        one table serves as embedding and head [@qwen25-05b].)
    """)
    sizes = Config(10, 1000, 5, 1, 200, 5000, 1, tied=True)  # @hide
    with torch.device("meta"):  # @hide
        tied = [p.numel() for p in Transformer(sizes).parameters() if p.dim() == 2]
    assert block_weights(sizes) == 3e6, \
        "With these sizes, the matrices of a block have 3 million parameters."  # @hide
    question(r"""
        A model has `10` blocks with `3` million parameters each, and each of its two tables has `5`
        million. What remains is small enough to ignore. Someone ties the embedding, so that one
        table serves as both. How many million parameters does the model have then?
    """, answer=10 * 3 + 5, check=sum(tied) / 1e6, unit="million", within=0.001, wrong={
            "That is with two tables.": 10 * 3 + 2 * 5,
            "One table remains.": 10 * 3,
        }, hint="How many tables are left?",
        why="The blocks have `10 * 3` million parameters, and the one table that is left has `5` million.")
