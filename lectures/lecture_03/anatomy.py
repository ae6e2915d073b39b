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
from plots import BLUE, GREEN, stacks
from tiles import rectangles

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

        This part says what each of these changes costs. [Later models](#later_models) have a part
        of their own.
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
        each token by itself.
    """)
    a_block_is_seven_matrices()
    rmsnorm_forgets_the_scale()
    rotary_embedding_tells_distances()
    heads_of_queries_share_keys()
    a_gate_costs_a_third_matrix()
    each_matrix_costs_two_flops_per_weight()
    a_counter_may_overlook_attention()
    published_counts_follow_from_eight_numbers()


def a_block_is_seven_matrices() -> None:
    """A block is seven matrices, and most of its weights are in the feed-forward part."""
    note(r"""
        A *block* of a Transformer has two parts: attention and the feed-forward part. How many
        parameters does a block have, and which part has most of them? A token comes in as a vector
        of $d$ elements, and each matrix turns one vector into another. A matrix that turns $r$
        elements into $c$ elements has $r \cdot c$ weights.

        - *Attention* lets a token take in information from other tokens. It has four matrices. The
          query, key and value matrices turn a token into what it looks for, what it is found by,
          and what it passes on. The output matrix turns the result back into a vector of $d$
          elements. The query and output matrices turn $d$ elements into $d$. The key and value
          matrices turn $d$ elements into $d_{kv}$, which is $d$
          [or less](#heads_of_queries_share_keys).
        - The *feed-forward part* has three matrices. Gate and up each turn $d$ elements into $h$.
          The two results are multiplied, element by element, so that the gate decides how much of
          up's result passes. Down turns the $h$ products back into $d$ elements. The *intermediate
          size* $h$, or inner width, is larger than $d$.
        - A *norm* precedes each of the two parts. It has $d$ *gains*, which are learned factors.

        In total, a block has this many parameters:

        [@eq:block]: $$
        \underbrace{2d^2 + 2\,d\,d_{kv}}_{\text{attention}} +
        \underbrace{3\,d\,h}_{\text{feed-forward}}
        + \underbrace{2d}_{\text{gains}}
        $$

        Check the formula on a small block with $d = 64$, $d_{kv} = 16$ and $h = 160$. `SMALL` holds
        these sizes, `Block` builds the block, and PyTorch lists its parameters by name; `out` is
        the output matrix. `weights` is the formula without its last term. If the formula is right,
        the remaining parameters are the $2d$ gains:
    """)
    block = Block(SMALL)
    by_name = {name: p.numel() for name, p in block.named_parameters()}  # @inspect by_name
    assert len(by_name) == 9, \
        "The block has seven matrices and two vectors of gains."  # @hide
    d, kv, h = SMALL.width, SMALL.kv_width, SMALL.hidden  # @inspect d, kv, h
    weights = 2 * d * d + 2 * d * kv + 3 * d * h  # @inspect weights
    gains = sum(by_name.values()) - weights  # @inspect gains
    assert gains == 2 * d, \
        "The remaining parameters that PyTorch lists are 2 * 64 gains."
    assert weights == block_weights(SMALL) == 40960, \
        "The seven matrices have 40,960 weights."  # @hide
    share = 3 * d * h / weights  # @inspect share as %
    assert share == 0.75, \
        "75 % of the block's weights are in the feed-forward part."
    note(rf"""
        Attention has `2 * 64 * 64 + 2 * 64 * 16` weights, which is {2 * d * d + 2 * d * kv:,}. The
        feed-forward part has `3 * 64 * 160`, which is {3 * d * h:,}, or {share:.0%} of all
        {weights:,} weights.
    """)
    figure(plot_block(matrices(SMALL)), caption=r"""
        The seven matrices of this block, drawn to the same scale. The area of a matrix is its
        number of weights.
    """, alt=r"""
        Seven rectangles. Query and out are squares, key and value a quarter as wide. Gate, up and
        down are two and a half times as long as the squares.
    """)
    of_eight = 3 * 14336 / (3 * 14336 + 2 * 4096 + 2 * 1024)  # @hide
    assert of_eight == 3 * LLAMA_3_8B.width * LLAMA_3_8B.hidden / block_weights(LLAMA_3_8B), \
        "With d of 4096, d_kv of 1024 and h of 14336, this is the feed-forward part's share in Llama-3-8B."  # @hide
    note(rf"""
        In Llama-3-8B, $d$ is `4096`, $d_{{kv}}$ is `1024` and $h$ is `14336`. So the feed-forward
        part has `3 * 14336` of `3 * 14336 + 2 * 4096 + 2 * 1024`, or {of_eight:.0%} of a block's
        weights.
    """)
    question(r"""
        In another block $d$ is `128`, $d_{kv}$ is `128` as well, and $h$ is `640`. How many weights
        do its seven matrices have?
    """, answer=4 * 128 * 128 + 3 * 128 * 640, check=block_weights(Config(1, 128, 8, 8, 640, 100, 32)), unit="weights",
        wrong={
            "The feed-forward part has three matrices, not two.": 4 * 128 * 128 + 2 * 128 * 640,
            "Attention has four matrices: do not forget the output.": 3 * 128 * 128 + 3 * 128 * 640,
            "The four matrices of attention are missing.": 3 * 128 * 640,
        }, why=r"""
            Attention has four matrices of `128 * 128`, since $d_{kv}$ is as large as $d$. The
            feed-forward part has three matrices of `128 * 640`.
        """, hint="Use the formula without its last term.")


@aside
def rmsnorm_forgets_the_scale() -> None:
    """RMSNorm removes the scale of a token's elements."""
    note(r"""
        Why does a Transformer have norms? A token is a vector that runs through all blocks of the
        model. Each block adds its results to this vector, so its elements grow from block to block.
        A *norm* brings the elements back to one scale before a matrix is applied.

        RMSNorm divides each element of a token by the *root mean square* of all its elements:
        square the elements, take the mean of the squares, and then the square root of the mean.
        Then it multiplies each element by a learned factor, its gain [@rmsnorm]. Take a token of
        two elements, `1` and `7`. The squares $1$ and $49$ have the mean $25$, whose root is $5$.
        With gains of one, the norm returns `1/5` and `7/5`.

        The code below compares PyTorch's norm with this rule, for random tokens of `64` elements. A
        new norm has gains of one. (`eps`, a tiny number that prevents a division by zero, is left
        out here.)
    """)
    norm = RMSNorm(64, eps=0).double()  # @unnoticed: .double(): any format
    x: Float[Tensor, "b t d"] = torch.randn(2, 5, 64).double()
    root = x.square().mean(dim=-1, keepdim=True).sqrt()
    y: Float[Tensor, "b t d"] = norm(x)  # @hide
    assert torch.allclose(norm(x), x / root), \
        "With gains of one, the norm divides each token by its root mean square."
    lengths = y.norm(dim=-1)  # @hide
    eight = torch.full_like(lengths, 8)  # @hide
    assert torch.allclose(lengths, eight), \
        "The squares of 64 elements with mean square 1 add up to 64: each token has length 8."  # @hide
    note(r"""
        What happens if the token of `1` and `7` is multiplied by $100$? The root mean square of
        $100$ and $700$ is $500$, so the norm returns $100/500$ and $700/500$: the same `1/5` and
        `7/5` as before. The factor appears in both the element and the root mean square, so it
        cancels. This holds for any gains. Test it with `learned`, a norm with random gains:
    """)
    learned = RMSNorm(64, eps=0).double()  # @unnoticed: .double(): any format
    nn.init.uniform_(learned.gain, 0.5, 1.5)  # @unnoticed: 0.5, 1.5: any gains that differ
    spread = learned(x).norm(dim=-1)  # @hide
    assert spread.max() > 1.02 * spread.min(), \
        "With gains that differ, the lengths of the tokens differ."  # @hide
    loud = 100 * x  # @unnoticed: 100, doubled, factor 100 left out: any factor
    assert torch.allclose(learned(loud), learned(x)), \
        "Tokens a hundred times as large give the same result."
    block, turn = Block(SMALL).double(), turns(SMALL.head, 5).double()  # @hide
    middle = x + block.attention(block.before_attention(x), turn)  # @hide
    after = middle + block.feed_forward(block.before_feed_forward(middle))  # @hide
    assert torch.allclose(block(x, turn), after), \
        "A block is x + attention(norm(x)), and then x + feed_forward(norm(x))."  # @hide
    centered = x - x.mean(dim=-1, keepdim=True)  # @hide
    layer_norm = partial(F.layer_norm, normalized_shape=(64,), eps=0)  # @hide
    layered = layer_norm(centered)  # @hide
    assert torch.allclose(norm(centered), layered), \
        "RMSNorm and LayerNorm agree where a token's mean is zero."  # @hide
    assert not torch.allclose(norm(x), layer_norm(x)), \
        "RMSNorm and LayerNorm differ where it is not."  # @hide
    two = [sum(p.numel() for p in n.parameters()) for n in (RMSNorm(64), nn.LayerNorm(64))]  # @hide
    assert two == [64, 2 * 64], \
        "RMSNorm has a gain for each element, and LayerNorm a gain and a bias."  # @hide
    note(r"""
        So, except for the tiny `eps`, the matrix after a norm receives the ratios between a token's
        elements, but never their scale.
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
    """Rotary embedding makes a score depend on how far apart two tokens are, not on their positions."""
    note(r"""
        In attention, each token has a *query* and a *key*, vectors of $c$ elements. The *score*
        says how much one token attends to another. It is the dot product of the first token's query
        and the second token's key: multiply the two element by element, and add up. Nothing in this
        product says how far apart the tokens are. How can attention take their distance into
        account?

        *Rotary embedding* rotates queries and keys before they are multiplied [@rope]. It groups
        the $c$ elements in pairs, and treats each pair as an arrow in a plane. At position $t$ of
        the sequence, the first arrow is rotated by $t$ radians. Each further arrow is rotated by
        less: arrow $i$ by the angle

        $$
        t \cdot 10000^{-2i/c}, \qquad i = 0, 1, \dots, c/2 - 1.
        $$

        Why does the score then depend on the distance alone? The dot product of two arrows depends
        only on their lengths and on the angle between them. Suppose the query is at position `5`
        and the key at position `2`. The first arrow of the query is rotated by `5` radians and the
        first arrow of the key by `2`, so the angle between the two changes by `5 - 2 = 3`. At
        positions `35` and `32` the angle changes by `35 - 32`, which is `3` again.

        Try it with a random query and a random key of $c = 16$ elements. `turns` computes the
        cosines and sines of all angles for `40` positions; `turn[:, [p]]` holds those of position
        `p`. `rotate` rotates the pairs of a row by these angles, and `score` computes the dot
        product:
    """)
    turn = turns(16, tokens=40).double()  # @unnoticed: 40, .double(): as many as are asked for, in any format
    q, k = torch.randn(2, 1, 1, 1, 16).double()  # @unnoticed: 1, 16, .double(): any rows

    def score(query_position: int, key_position: int) -> float:
        turned_query = rotate(q, turn[:, [query_position]])
        turned_key = rotate(k, turn[:, [key_position]])
        return float((turned_query * turned_key).sum())

    early, late = score(5, 2), score(35, 32)  # @inspect early, late
    # The angles are float32, so not all digits agree.
    assert math.isclose(early, late, abs_tol=1e-4), \
        "At positions 5 and 2 the score is the same as at 35 and 32."
    closer = score(5, 3)  # @inspect closer
    assert math.isclose(closer, score(35, 33), abs_tol=1e-4), \
        "Two tokens apart, the score is also the same at both positions."  # @hide
    assert not math.isclose(early, closer), \
        "At positions 5 and 3, the score differs from that at positions 5 and 2."
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
        So the score depends on how far apart the tokens are, not on their positions, because moving
        both tokens by the same distance rotates both arrows by the same additional angle.
    """)
    question(r"""
        A query at position `12` and a key at position `5` have some score. Now the same query is at
        position `39`. At what position does the same key have the same score?
    """, answer=39 - (12 - 5), check=next(p for p in range(40) if math.isclose(score(39, p), score(12, 5), abs_tol=1e-4)),
        wrong={"The key does not stay where it is: the distance has to.": 5},
        hint="How far apart are they at first?",
        why="The score depends on the distance alone. It was `12 - 5 = 7` tokens, so the key has to be `7` tokens before the query.")


def heads_of_queries_share_keys() -> None:
    """Grouped-query attention keeps fewer keys and values, but compares the same pairs of tokens."""
    note(r"""
        A model that generates a sequence keeps the *keys* and *values* of all tokens so far,
        because later tokens attend to them. How can it keep fewer?

        Attention works in *heads*. In its plain form, each head has its own query, key and value
        for every token. But a query can be multiplied by any key of the same length: nothing in the
        computation requires that both come from the same head. So in *grouped-query attention*
        [@gqa], several query heads use the same keys and values. If $4$ query heads share one key
        and one value, only a quarter of the keys and values has to be kept. The remaining key and
        value heads are called *KV heads*.

        Here `8` query heads share `2` KV heads. There are `2` sequences of `6` tokens, and a head
        has `16` elements for each token. `few` has the shape of the keys, which is also the shape
        of the values, and `many` has the shape without sharing. All tensors are on the device
        `meta`, where they have no data:
    """)
    b, t, heads, kv_heads, c = 2, 6, 8, 2, 16  # @unnoticed: 2 -> 3, 2 -> 4: any batch, and any heads that share
    with torch.device("meta"):
        q = torch.empty(b, t, heads, c)
        few = torch.empty(b, t, kv_heads, c)
        many = torch.empty(b, t, heads, c)
    kept = few.nbytes + few.nbytes  # @inspect kept as B
    without = many.nbytes + many.nbytes  # @inspect without as B
    assert without == 4 * kept, \
        "Without sharing, keys and values need 4 times as many bytes."
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
    caches = [Cache(c, 1, q).memory.nbytes for c in (SMALL, alone)]  # @hide
    assert caches[1] / caches[0] == 4.0, \
        "In a model with 8 query heads, 2 KV heads are a quarter of the bytes to keep."  # @hide
    note(rf"""
        `few` has `2 * 6 * 2 * 16` elements of `4` bytes, {few.nbytes:,} bytes. Keys and values
        together need twice that, {kept:,}. Without sharing they need `4` times as many bytes,
        because the keys and values of `8` heads have to be kept instead of those of `2`.

        Do scores and weighted sums also cost less? No. Each query head has `t * t` pairs of a query
        and a key, with and without sharing, because every query head still attends to every token.
        A pair costs `2 * c` FLOPs for its *score*, a multiplication and an addition for each of `c`
        elements, and `2 * c` for its contribution to the *weighted sum* of the values. So `b`
        sequences have `b * heads * t * t` pairs, and each pair costs `2 * 2 * c` FLOPs. Here that
        is `2 * 8 * 6 * 6` times `2 * 2 * 16`. `written_attention` computes attention, and `flops`
        is PyTorch's counter:
    """)
    grouped = flops(lambda: written_attention(q, few, few))  # @inspect grouped as FLOP
    separate = flops(lambda: written_attention(q, many, many))  # @inspect separate as FLOP
    assert grouped == separate == 2 * 2 * b * t * t * heads * c, \
        "Scores and weighted sums cost the same FLOPs with sharing and without."
    misbelief("Grouped-query attention makes attention cheaper to compute.", r"""
        Scores and weighted sums cost the same FLOPs as before, because every query head still
        attends to every token.
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
    part = eight["cache"] / thirty_two["cache"]  # @hide
    assert part == 0.25, \
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
            matrix is its number of weights. The KV cache holds the keys and values of all tokens of
            a sequence.
        """, alt=r"""
            Seven rectangles. With a KV head for each query head, the four of attention are squares
            of one size. Gate, up and down are three and a half times as long as they are high.
        """)  # @hide
    note(rf"""
        So with `8` KV heads instead of `32`, Llama-3-8B keeps {part:.0%} of the keys and values,
        but scores and weighted sums cost the same FLOPs.
    """)
    with torch.device("meta"):  # @hide
        layer = Attention(LLAMA_3_8B, "fused")  # @hide
    assert layer.key.weight.numel() == 4096 * 8 * 128, \
        "The matrix that makes the keys of Llama-3-8B has 4096 * 8 * 128 weights."  # @hide
    question(r"""
        Llama-3-8B has `32` query heads and `8` KV heads, and every head has `128` elements. How
        many elements does it keep for each token in one layer, keys and values together?
    """, answer=2 * 8 * 128, check=layer.key.out_features + layer.value.out_features, unit="elements", wrong={
            "Only KV heads are kept, and there are 8 of them.": 2 * 32 * 128,
            "Keys and values are both kept.": 8 * 128,
        }, why="Each of the `8` KV heads has a key and a value of `128` elements. Without sharing, it would be `4` times as many.",
        hint="How many keys does a token have, and how many elements does a key have?")


@aside
def a_gate_costs_a_third_matrix() -> None:
    """SwiGLU has three matrices instead of two, so they are made narrower."""
    note(r"""
        The feed-forward part of a Transformer block processes each token by itself. In the first
        Transformer it had two matrices: *up* turned the $d$ elements of a token into $4d$, and
        *down* turned these back into $d$. Llama has a third matrix, the *gate*. It decides, element
        by element, how much of up's result passes. This is *SwiGLU* [@swiglu]:

        - up and gate each turn the $d$ elements of a token into $h$;
        - each element from the gate is multiplied by its sigmoid, which is between zero and one;
          this operation is called *SiLU*;
        - the $h$ results are multiplied by the $h$ elements of up, one by one;
        - down turns the $h$ products into $d$ elements.

        In code, for `3` sequences of `5` tokens with $d = 64$ and $h = 160$:
    """)
    part, x = SwiGLU(SMALL).double(), torch.randn(3, 5, 64).double()  # @unnoticed: 3, 5: any batch
    gate, up = part.gate(x), part.up(x)
    passed = gate * gate.sigmoid() * up  # @inspect passed.shape
    assert torch.allclose(part(x), part.down(passed)), \
        "SwiGLU computes these four steps."
    note(r"""
        Three matrices have more weights than two of the same size. To keep the block from growing,
        the intermediate size $h$ is made smaller than $4d$. Two matrices between $d$ and $4d$ have
        $2 \cdot d \cdot 4d = 8d^2$ weights, and three between $d$ and $h$ have $3dh$. These are
        equal if $h = \tfrac{8}{3}d$. Llama-2-7B has $d = 4096$. Its $h$ is eight thirds of $d$,
        rounded up to a multiple of `256` [@llama-code]:
    """)
    d = 4096
    exact = 8 * d / 3  # @inspect round(exact)

    def rounded_up(size: float, multiple: int) -> int:
        return math.ceil(size / multiple) * multiple

    h = rounded_up(exact, 256)  # @inspect h
    assert h == LLAMA_2_7B.hidden == 11008, \
        "The intermediate size of Llama-2-7B is 11,008."
    wider = 1.3 * exact  # @hide
    assert rounded_up(wider, 1024) == LLAMA_3_8B.hidden == 14336, \
        "1.3 times eight thirds, rounded up to a multiple of 1024, is the intermediate size of Llama-3-8B."  # @hide
    two_plain = 2 * d * 4 * d  # @hide
    ratio = 3 * d * h / two_plain  # @hide
    assert 1 < ratio < 1.01, \
        "Its three matrices have the weights of two plain ones, up to the rounding."  # @hide
    wide = 3 * d * LLAMA_3_8B.hidden / two_plain  # @hide
    assert wide == 1.3125, \
        "The three matrices of Llama-3-8B have almost a third more weights than two plain ones."  # @hide
    note(rf"""
        So the third matrix adds hardly any weights to Llama-2-7B: its three matrices have
        {ratio:.3f} times the weights of two with $4d$, because each of the three is a third
        narrower. The small excess comes from rounding up.
    """)
    narrow = {"gate": (d, h), "up": (d, h), "down, turned": (d, h)}  # @hide
    plain = {"up, 4d wide": (d, 4 * d), "down, 4d wide, turned": (d, 4 * d)}  # @hide
    areas = [sum(high * wide for high, wide in row.values()) for row in (plain, narrow)]  # @hide
    assert areas == [two_plain, 3 * d * h], "Areas are weights."  # @hide
    hues = dict.fromkeys(plain, BLUE) | dict.fromkeys(narrow, GREEN)  # @hide
    figure(rectangles([plain, narrow], hues), caption=r"""
        Two plain matrices (above) and the three of Llama-2-7B (below), drawn to the same scale. The
        area of a matrix is its number of weights.
    """, alt=r"""
        Two rows of rectangles of the same height. Two long ones above; below three, each two thirds
        as long.
    """)
    question("Llama-2-13B has a model dimension of `5120`. Its intermediate size follows the same rule as in Llama-2-7B: eight thirds of the model dimension, rounded up to a multiple of `256`. What is its intermediate size?",
             answer=rounded_up(8 * 5120 / 3, 256), check=54 * 256, wrong={
                 "That is rounded down: round up to the next multiple.": 53 * 256,
                 "That is four times the model dimension, as with two matrices.": 4 * 5120,
             }, hint="How often does `256` go into eight thirds of `5120`?",
             why="Eight thirds of `5120` are `13653` and a third. `53 * 256` is `13568`, which is less, so the next multiple is `54 * 256`.")


def each_matrix_costs_two_flops_per_weight() -> None:
    """Each matrix costs two FLOPs per weight and token; attention's matmuls cost extra."""
    note(r"""
        How many FLOPs does a Transformer block cost per token? Take a token of `2` elements and a
        matrix that turns them into `3`. Each of the `2 * 3` weights is multiplied by one element,
        and the product is added to an output. So a matrix costs `2` FLOPs per weight and token.

        Test this on a block of Llama-3-8B that processes `2048` tokens. `Block` builds it on the
        device `meta`, where a tensor has a shape but no data. With `"written"`, attention runs as
        plain matmuls that a counter can see. PyTorch's `FlopCounterMode` does not know our rule: it
        looks at the shapes of every matmul that runs. `by_counter` holds its count for each part of
        the block, and `matrices` gives the rows and columns of the seven matrices:
    """)
    tokens = 2048
    with torch.device("meta"):
        block = Block(LLAMA_3_8B, "written")
        x = torch.empty(1, tokens, LLAMA_3_8B.width)
        # Rotary position angles are an input of the block:
        turn = turns(LLAMA_3_8B.head, tokens)
    with FlopCounterMode(display=False) as counter:
        block(x, turn)
    # Keys are full names of parts, such as Block.feed_forward.gate:
    counts = counter.get_flop_counts()
    by_counter = {
        name.split(".")[-1]: sum(counts[name].values()) for name in counts
    }

    total = counter.get_total_flops()
    shapes = matrices(LLAMA_3_8B)  # @inspect shapes
    by_formula = {name: 2 * tokens * r * c for name, (r, c) in shapes.items()}
    assert [by_counter[name] for name in shapes] == [*by_formula.values()], \
        "For each of the seven matrices, the counter reports 2 FLOPs per weight and token."
    weights = sum(r * c for r, c in shapes.values())  # @hide
    assert weights == block_weights(LLAMA_3_8B), \
        "These are all weights of a block of Llama-3-8B."  # @hide
    note(rf"""
        Rows times columns, summed over the seven matrices, give {weights / 1e6:.0f} million
        weights. So they cost `2 * {weights / 1e6:.0f}` million FLOPs per token.

        But the counter's total is larger. The rest does not come from the weight matrices:
        attention also multiplies queries by keys, and the attention weights, the results of the
        softmax, by values. In each of these two matmuls, each of $T$ tokens is combined with all
        $T$ tokens: a plain matmul also computes the pairs that the causal mask then discards. In
        the first matmul a pair costs a multiplication and an addition for each element of the key,
        in the second for each element of the value. In each of the `32` query heads, a key and a
        value have `128` elements, in all heads together `32 * 128 = 4096`, which is the model
        dimension $d$. (The model computes only `8` keys and values per token, and several query
        heads share each. But every query head does its own pairs.) So each of the two matmuls costs
        $2\,T^2 d$ FLOPs. Here $T$ is `2048`, and $d$ is `4096`:
    """)
    rest = total - sum(by_formula.values())  # @inspect total as FLOP, rest as FLOP
    assert rest == 2 * (2 * 2048**2 * 4096), \
        "The rest is 2 * 2048**2 * 4096 FLOPs for each of the two matmuls."
    assert LLAMA_3_8B.query_width == 32 * 128 == LLAMA_3_8B.width, \
        "The heads of a query have 32 * 128 elements together, and that is the width."  # @hide
    assert total == by_counter["Global"], \
        "The total is what the counter says for the whole block."  # @hide
    share = rest / total  # @inspect share as %
    assert 0.071 < share < 0.072, \
        "At 2048 tokens, attention's two matmuls are 7 % of the block's FLOPs."  # @hide
    note(rf"""
        With `2048` tokens the two matmuls are {share:.1%} of the block's FLOPs. In a longer
        sequence their share is larger, because their FLOPs grow with the square of the number of
        tokens, while the FLOPs of the weight matrices grow only in proportion to it.
    """)
    parts = {
        f"{length:,} tokens": {
            "attention's matrices": 2 * length * (weights - expert_weights(LLAMA_3_8B)),
            "gate, up and down": 2 * length * expert_weights(LLAMA_3_8B),
            "scores and sums": attention_flops(LLAMA_3_8B, length, length) // LLAMA_3_8B.layers,
        }
        for length in (2048, 8192, 32768, 131072)
    }  # @hide
    assert sum(parts["2,048 tokens"].values()) == total, \
        "The parts are what the counter counts."  # @hide
    each = {length: {n: part / sum(all_.values()) for n, part in all_.items()} for length, all_ in parts.items()}  # @hide
    longest = each["131,072 tokens"]["scores and sums"]  # @hide
    figure(stacks(each, "share of the block's FLOPs"), caption=r"""
        FLOPs of a block of Llama-3-8B by part, for sequences of four lengths. Scores and sums are
        attention's two matmuls.
    """, alt=rf"""
        Four stacked bars. In the first, scores and sums are {share:.0%}; in the last,
        {longest:.0%}.
    """)
    question("A block has `3e6` weights in its seven matrices. How many FLOPs do the matrices cost for a sequence of `10` tokens?",
             answer=10 * 2 * 3e6, check=10 * 3e6 * sum(by_formula.values()) / (tokens * weights), unit="FLOP", within=0.01, wrong={
                 "Each weight costs a multiplication and an addition.": 10 * 3e6,
                 "That is one token.": 2 * 3e6,
                 "That is a training step, with the backward pass.": 10 * 6 * 3e6,
             }, hint="What does one weight cost for one token?", why="Each weight costs a multiplication and an addition for each of the `10` tokens.")


@aside
def a_counter_may_overlook_attention() -> None:
    """A counter that does not know a kernel reports nothing for it."""
    note(r"""
        You count the FLOPs of a model with PyTorch's counter. Does it count all of them? The
        counter has a list of operations, with a formula for each. An operation that is not on the
        list adds nothing to the count. Attention can run in two ways: *unfused*, as two matmuls and
        a softmax, or *fused* into a single operation, one program called a *kernel*.

        Build a small model in both ways, with the same weights. It processes `3` sequences of `32`
        tokens. `flops_by_operation` returns the counter's result for each operation. First the
        unfused model:
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
        "With unfused attention, the counter agrees with the formula for a forward pass."
    note(r"""
        `aten.mm` stands for the matmuls with weights, and `aten.bmm` for attention's two matmuls.
        Here the counter sees both. Now count the fused model. `attention_flops` is the formula for
        attention's two matmuls, and `listed` says whether the kernel that PyTorch runs on a CPU is
        on the counter's list:
    """)
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    listed = kernel in flop_registry  # @inspect listed
    seen = flops(lambda: fused(tokens))  # @inspect seen as FLOP
    attention = attention_flops(SMALL, 3 * 32, 32)  # @inspect attention as FLOP
    assert seen == (whole if listed else whole - attention), \
        "Without the kernel on its list, the counter misses attention's FLOPs, and no others."
    misbelief("`FlopCounterMode` counts all FLOPs of a model.", rf"""
        It counts the operations on its list, and each release of PyTorch has its own list. If the
        fused kernel for a CPU is not on it, {attention:,} of this model's {whole:,} FLOPs, those of
        attention, are not counted. So count with unfused attention.
    """)
    question(r"""
        On a CPU, another model with unfused attention costs `50e6` FLOPs by the counter, of which
        `8e6` are attention's two matmuls. The same model runs with fused attention, whose kernel is
        not on the counter's list. How many FLOPs does the counter report?
    """, answer=50e6 - 8e6, check=42e6, unit="FLOP", within=0.01, wrong={
            "The model needs these FLOPs, but the counter does not see attention's.": 50e6,
        }, hint="Which of the operations does the counter not see?",
        why="The fused kernel does attention's two matmuls, and none of their FLOPs is counted. The matmuls with weights are counted as before.")


@aside
def published_counts_follow_from_eight_numbers() -> None:
    """One formula gives published parameter counts to the last digit."""
    note(r"""
        How many parameters does a whole Transformer have? Add up what it is built from:

        - $L$ equal *blocks*. A block has seven matrices and two norms. With $d$ elements in a
          token, $d_{kv}$ elements in all its keys, and $h$ elements inside the feed-forward part,
          these have [$2d^2 + 2\,d\,d_{kv} + 3\,d\,h + 2d$ parameters](#a_block_is_seven_matrices).
          Some models also have $b$ biases in each block.
        - *A last norm*, which multiplies each of the $d$ elements by a learned factor, its gain.
        - *Two tables* with a row of $d$ elements for each of the $V$ tokens of the vocabulary. The
          *embedding* turns a token into its row, and the *head* gives a score for each token at the
          end. In a *tied* model one table serves as both, so $2Vd$ becomes $Vd$.

        Together:

        [@eq:parameters]: $$
        P = L\,\underbrace{(2d^2 + 2\,d\,d_{kv} + 3\,d\,h + 2d + b)}_{\text{a block}}
        + \underbrace{d}_{\text{last norm}} + \underbrace{2Vd}_{\text{tables}}
        $$

        `parameter_count` computes it. Compare its results with the published sizes of four models
        [@keras-hub]. Their $L$, $d$ and so on are also published
        [@llama-2-7b; @llama-3-8b; @mistral-7b; @qwen25-05b]:
    """)
    published = {
        "Llama-2-7B": (LLAMA_2_7B, 6_738_415_616),
        "Llama-3-8B": (LLAMA_3_8B, 8_030_261_248),
        "Mistral-7B": (MISTRAL_7B, 7_241_732_096),
        "Qwen2.5-0.5B": (QWEN_25_HALF_B, 494_032_768),
    }
    computed = {n: parameter_count(c) for n, (c, _) in published.items()}  # @inspect computed
    sizes = [size for _, size in published.values()]
    assert [*computed.values()] == sizes, \
        "The formula gives all four published sizes, to the last digit."
    built = {}  # @hide
    for name, (config, _) in published.items():  # @hide
        with torch.device("meta"):
            model = Transformer(config)
        built[name] = sum(p.numel() for p in model.parameters())
    assert built == computed, \
        "The four models, built without data, have the same numbers of parameters."  # @hide
    assert parameter_count(LLAMA_3_70B) == 70_553_706_496, \
        "Llama-3-70B has 70,553,706,496 parameters by the formula."  # @hide
    note(rf"""
        All four agree to the last digit, because a Transformer has no other parameters. Take
        Llama-3-8B, with $L = 32$, $d = 4096$, $d_{{kv}} = 1024$, $h = 14336$ and $V = 128256$. By
        the expression in brackets, a block has `218,112,000` parameters, so all blocks have
        `32 * 218,112,000`. The tables have `2 * 128256 * 4096`. Together with the `4096` gains of
        the last norm that is {computed["Llama-3-8B"]:,}.
    """)
    assert 2 * computed["Llama-3-8B"] == 16_060_522_496, \
        "Two bytes a parameter give the size of the file of Llama-3-8B's weights."  # @hide
    block = block_weights(LLAMA_3_8B) + 2 * LLAMA_3_8B.width  # @hide
    assert block == 218_112_000, \
        "A block of Llama-3-8B has 218,112,000 parameters."  # @hide
    table = QWEN_25_HALF_B.vocabulary * QWEN_25_HALF_B.width  # @hide
    share = table / built["Qwen2.5-0.5B"]  # @hide
    assert 0.27 < share < 0.28, \
        "More than a quarter of Qwen2.5-0.5B is its one table."  # @hide
    question(r"""
        A small model has $L = 2$ blocks, $d = 64$, $d_{kv} = 16$, $h = 160$ and a vocabulary of
        $V = 100$. It has no biases and is not tied. How many parameters does it have?
    """, answer=2 * (2 * 64**2 + 2 * 64 * 16 + 3 * 64 * 160 + 2 * 64) + 64 + 2 * 100 * 64,
        check=sum(p.numel() for p in Transformer(SMALL).parameters()), unit="parameters",
        within=0.001, wrong={
            "It has two tables: the embedding and the head.": 95040 - 100 * 64,
            "There are two blocks.": 95040 - 41088,
            "Each block has two norms with 64 gains each, and there is a last norm.": 95040 - 5 * 64,
        }, hint="First compute one block, by the expression in brackets.", why=r"""
            One block has `41088` parameters: `2 * 64**2 + 2 * 64 * 16 + 3 * 64 * 160 + 2 * 64`.
            There are two blocks, `64` gains of the last norm, and two tables of `100 * 64`.
        """)
