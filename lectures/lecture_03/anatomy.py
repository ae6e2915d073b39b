"""The block of a Transformer of today: its matrices, its FLOPs, and the models that are made of it."""

import math
from dataclasses import replace
from functools import partial
from typing import Any, get_args

import torch
import torch.nn.functional as F
from counters import flops, flops_by_operation
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from litbook import aside, explore, figure, misbelief, note, question

from .block import (
    Attention,
    Block,
    Cache,
    How,
    RMSNorm,
    SwiGLU,
    Transformer,
    Turns,
    fused_attention,
    rotate,
    turns,
    written_attention,
)
from .counts import Config, attention_flops, block_weights, cache_bytes, forward_flops, matrices, parameter_count
from .figures import plot_block, plot_matrices
from .published import LLAMA_2_7B, LLAMA_3_8B, LLAMA_3_70B, MISTRAL_7B, QWEN_25_HALF_B, SMALL


def a_block_of_today() -> None:
    """A block of today."""
    note(r"""
        Llama, Mistral and Qwen2.5 are built from the same kind of block. It differs from the block
        of the first Transformer [@vaswani2017] in five ways:

        - the norm is RMSNorm instead of LayerNorm, and it comes before attention and before the
          feed-forward part; it used to come after each addition;
        - a token's position turns its queries and keys; it used to be added to the token;
        - several heads of queries share one head of keys and values, which used to be as many;
        - the feed-forward part has a gate, a third matrix beside its two;
        - there is no dropout, and nearly no bias.

        This part explains them one by one. [Later models](#later_models) change more, and have a
        part of their own.
    """)
    note(r"""
        First the whole block in short. Each token is a row of $d$ numbers; $d$ is the *width* of
        the model. A block adds to it twice: `x = x + attention(norm(x))`, then
        `x = x + feed_forward(norm(x))`. The row that runs through all blocks, and that they only
        add to, is the *residual stream*.

        In attention, three matrices turn each token into a query, a key and a value. Each of these
        rows is cut into *heads*, pieces that work apart from each other. A *score* is the product
        of a query and a key in one head. The *causal mask* removes the scores of later tokens. The
        softmax of a token's scores says how much of each value it takes. The *feed-forward part*
        then works on each token alone.
    """)
    a_block_is_seven_matrices()
    rmsnorm_forgets_the_scale()
    rotary_embedding_tells_distances()
    a_mask_alone_hints_at_the_order()
    heads_of_queries_share_keys()
    a_gate_costs_a_third_matrix()
    each_matrix_costs_two_flops_per_weight()
    a_counter_may_overlook_attention()
    published_counts_follow_from_eight_numbers()


def a_block_is_seven_matrices() -> None:
    """A block is seven matrices, and most of its weights are in the feed-forward part."""
    note(r"""
        How many parameters does a Transformer block have, and where are they? Attention has four
        matrices: for queries, for keys, for values and for its result. All queries of a token
        together have $d$ numbers, as many as the token itself. All its keys together have $d_{kv}$
        numbers, and so have its values; $d_{kv}$ is smaller than $d$ where heads share keys. The
        feed-forward part has three matrices between the width $d$ and a larger width $h$. Each of
        the two norms has $d$ *gains*, factors that it learns. Together the matrices and gains of
        one block have

        [@eq:block]: $$
        \underbrace{2d^2 + 2\,d\,d_{kv}}_{\text{attention}} +
        \underbrace{3\,d\,h}_{\text{feed-forward}}
        + \underbrace{2d}_{\text{gains}}
        $$

        parameters. `SMALL` is a model that is small enough to be counted by hand. `Block` builds
        one of its blocks, and PyTorch lists the parameters of that block by name:
    """)
    config = SMALL  # @inspect config
    block = Block(config)
    by_name = {name: p.numel() for name, p in block.named_parameters()}  # @inspect by_name
    assert len(by_name) == 9, \
        "The block has seven matrices and two rows of gains."  # @hide
    d, kv, h = config.width, config.kv_width, config.hidden  # @inspect d, kv, h
    by_hand = 2 * d * d + 2 * d * kv + 3 * d * h  # @inspect by_hand
    assert by_hand == block_weights(config) == 40960, \
        "The matrices have 40960 weights."
    gains = sum(by_name.values()) - by_hand
    assert gains == 2 * d == 128, "128 parameters are gains."
    share = 3 * d * h / by_hand  # @inspect share as %
    assert share == 0.75, "75 % of the weights are in gate, up and down."
    note(rf"""
        With the numbers of this block the formula is `2 * 64**2 + 2 * 64 * 16 + 3 * 64 * 160`,
        which is {by_hand:,} weights, and {gains} gains. No parameter is a bias. {share:.0%} of the
        weights are in the feed-forward part, because its three matrices are wider than those of
        attention.
    """)
    figure(plot_block(matrices(config)), caption=r"""
        The seven matrices of this block to one scale, a row of weights for each number that goes
        in; `down` is turned on its side. The feed-forward part has three quarters of the area.
    """, alt=r"""
        Seven rectangles. Query and out are squares, key and value a quarter as wide. Gate, up and
        down are two and a half times as long as the squares.
    """)
    question(r"""
        A block has width `128`, as many heads of keys as of queries, and is `512` wide inside the
        feed-forward part. How many weights are in its seven matrices?
    """, answer=4 * 128 * 128 + 3 * 128 * 512, check=block_weights(Config(1, 128, 8, 8, 512, 100, 32)), unit="weights",
        wrong={
            "The feed-forward part has three matrices, not two.": 4 * 128 * 128 + 2 * 128 * 512,
            "Attention has four matrices: do not forget the one for its result.": 3 * 128 * 128 + 3 * 128 * 512,
        }, why=r"""
            Attention has four matrices of `128 * 128`, since the keys are as wide as the queries.
            The feed-forward part has three matrices of `128 * 512`.
        """, hint="Without sharing, $d_{kv}$ is $d$.")


def rmsnorm_forgets_the_scale() -> None:
    """RMSNorm removes the scale of a token's numbers."""
    note(r"""
        Why does a block need norms? The row of numbers that runs through all blocks is the residual
        stream. Each block adds to it, so its numbers grow from block to block. A norm brings them
        back to one scale before a matrix sees them. RMSNorm divides the numbers of a token by the
        root of their mean square, and multiplies each by a learned gain [@rmsnorm]. At the start
        all gains are one. Then the mean square of the result is one, and so the squares of `64`
        numbers add up to `64`. The length of the row is the root of that sum:
    """)
    norm = RMSNorm(64, eps=0).double()
    x: Float[Tensor, "b t d"] = torch.randn(2, 5, 64).double()
    root = x.square().mean(dim=-1, keepdim=True).sqrt()
    y: Float[Tensor, "b t d"] = norm(x)
    assert torch.allclose(y, x / root), \
        "The norm divides by the root mean square, no more."
    lengths = y.norm(dim=-1)  # @inspect lengths
    eight = torch.full_like(lengths, 8)
    assert torch.allclose(lengths, eight), \
        "Each token has length 8, the root of 64."
    note(r"""
        Now multiply a token by a hundred. Its root mean square then grows by the same factor and
        the norm divides by it. So the result does not change, whatever the gains are:
    """)
    learned = RMSNorm(64, eps=0).double()
    nn.init.uniform_(learned.gain, 0.5, 1.5)  # @unnoticed: 0.5, 1.5: any gains that differ
    spread = learned(x).norm(dim=-1)  # @hide
    assert spread.max() > 1.02 * spread.min(), \
        "With such gains the lengths differ."  # @hide
    loud = 100 * x  # @unnoticed: 100, doubled: any factor
    assert torch.allclose(learned(loud), learned(x)), \
        "A hundred times the input gives the same result."
    note(r"""
        One small number was left out so far. The norm adds `eps`, usually `1e-5`, to the mean
        square, so that it never divides by zero. A model begins with numbers of about `0.02`. Their
        mean square is `0.02**2`, and `eps` is a fortieth of it. Measure how much `eps` changes
        there, by multiplying the same token by a hundred:
    """)
    quiet, usual = 0.02 * y, RMSNorm(64).double()  # @unnoticed: .double(): any format of so many digits
    lengths = usual(quiet).norm(dim=-1)  # @inspect lengths
    assert 7.90 < lengths.min() < lengths.max() < 7.91, \
        "The lengths are not quite 8."  # @hide
    before, after = usual(quiet), usual(100 * quiet)  # @unnoticed: 100: any large factor
    change = ((after - before).norm() / before.norm()).item()  # @inspect change as %
    assert round(change, 2) == 0.01, \
        "With eps, the scale changes the result by so much."
    block, turn = Block(SMALL).double(), turns(SMALL.head, 5).double()  # @hide
    middle = x + block.attention(block.before_attention(x), turn)  # @hide
    after = middle + block.feed_forward(block.before_feed_forward(middle))  # @hide
    assert torch.allclose(block(x, turn), after), \
        "A block is x + attention(norm(x)), and so on."  # @hide
    note(rf"""
        So `eps` changes {change:.1%} of a small token, and next to nothing of a large one.

        The older LayerNorm does more. It also subtracts the mean of a token's numbers before it
        divides, and adds a learned bias to each number. Where the mean is zero and so are the
        biases, the two norms agree:
    """)
    centered = x - x.mean(dim=-1, keepdim=True)
    layer_norm = partial(F.layer_norm, normalized_shape=(64,), eps=0)
    layered = layer_norm(centered)
    assert torch.allclose(norm(centered), layered), \
        "They agree where the mean is zero."
    assert not torch.allclose(norm(x), layer_norm(x)), \
        "They differ where it is not."
    question("RMSNorm has a gain for each number of the width, and LayerNorm a gain and a bias. How many parameters do the two have at width `4096`, RMSNorm first?",
             answer=[
                 sum(p.numel() for p in norm.parameters())
                 for norm in (RMSNorm(4096), nn.LayerNorm(4096))
             ],
             check=[4096, 2 * 4096], unit="parameters", why=r"""
                 RMSNorm has `4096` gains. LayerNorm has `4096` gains and `4096` biases, twice as
                 many.
             """, hint="Write both numbers with a comma between them.")


def rotary_embedding_tells_distances() -> None:
    """Rotary embedding turns queries and keys, so that positions enter a score by their distance alone."""
    note(r"""
        How does attention know how far a token is from another? The score of a query and a key is
        the sum of the products of their numbers. It does not depend on where these tokens stand. So
        a model has to be told positions, and *rotary embedding* is the usual way. It takes the $c$
        numbers of a head in pairs, each pair as a point in a plane. It turns pair $i$ of a token at
        position $t$ by the angle

        $$
        t \cdot 10000^{-2i/c}, \qquad i = 0, 1, \dots, c/2 - 1
        $$

        [@rope]. The first pair turns by one radian from each token to the next, and each further
        pair turns more slowly. When a query and a key are turned, their score changes by the
        difference of their angles alone. That difference depends on the distance of the tokens
        alone. `turns` computes the cosines and sines of the angles, and `rotate` turns the pairs:
    """)
    turn = turns(16, tokens=40).double()  # @inspect turn.shape  # @unnoticed: 40: as many as are asked for
    q, k = torch.randn(2, 1, 1, 1, 16).double()  # @unnoticed: 1, 16, .double(): any rows

    def score(place_of_query: int, place_of_key: int) -> float:
        at = turn[:, [place_of_query]], turn[:, [place_of_key]]
        return float((rotate(q, at[0]) * rotate(k, at[1])).sum())

    early, late = score(5, 2), score(35, 32)  # @inspect early, late
    same = math.isclose(early, late, abs_tol=1e-4)  # of float32
    assert same, "Three tokens apart, the score is the same at both places."
    closer = score(5, 3)  # @inspect closer
    assert math.isclose(closer, score(35, 33), abs_tol=1e-4), \
        "Two tokens apart, the score is the same elsewhere, too."  # @hide
    assert not math.isclose(early, closer), \
        "Two tokens apart, the score is another."
    turned = rotate(q, turn[:, [39]])  # @hide
    assert torch.allclose(turned.norm(), q.norm()), \
        "A turned query is as long as before."  # @hide
    assert not torch.allclose(turned, q), "It points elsewhere."  # @hide
    note(r"""
        So the score tells the distance and not the place. Rotary embedding has no parameters. It
        turns queries and keys, and leaves values as they are. So attention gives the same result
        wherever in the context a text begins:
    """)
    layer = Attention(SMALL, "written").double()
    x = torch.randn(1, 8, 64).double()
    here = layer(x, turns(8, 8).double())
    there = layer(x, turns(8, 8, start=30).double())
    assert torch.allclose(here, there), \
        "Thirty places later, the result is the same."
    still = torch.zeros(2, 8, 4).double()  # @hide
    still[0] = 1  # @hide
    assert not torch.allclose(here, layer(x, still)), \
        "Without turning, it is another."  # @hide
    slow = turns(128, 2)[1, 1].asin().min()  # @hide
    question(r"""
        A head has `128` numbers, which are `64` pairs. By how many radians does the slowest pair,
        with $i = 63$, turn from one token to the next?
    """, answer=10000 ** (-126 / 128), check=math.exp(-63 / 64 * math.log(10000)), unit="rad",
        hint="Put $t = 1$, $i = 63$ and $c = 128$ into the formula above.", within=0.05,
        wrong={"The exponent is minus 2i/c, not minus i/c.": 10000 ** (-63 / 128)},
        why=rf"""
            The angle is `10000 ** (-126 / 128)`. A full turn takes this pair
            {2 * math.pi / slow:,.0f} tokens, so it can tell far from near in texts of that length.
        """)
    least = 10000 ** (-126 / 128)  # @hide
    assert math.isclose(slow, least, rel_tol=1e-5), \
        "The cosine and sine say the same speed."  # @hide


@aside
def a_mask_alone_hints_at_the_order() -> None:
    """Without positions, one layer does not see the order of tokens, and two see it through the mask."""
    note(r"""
        Can a model without any positions tell the order of tokens? Exchange the first tokens of a
        text, and look at the last token. One layer of attention adds up the values of all earlier
        tokens, so their order does not matter. A second layer does see it. The cause is the causal
        mask: each token of the text sees one token more than the one before it. So what a token
        passes on to the second layer depends on its place. Here no pair is turned:
    """)
    config = replace(SMALL, layers=2)
    model, tokens = Transformer(config, "written").double(), torch.arange(8)
    still = torch.zeros(2, 8, 4).double()
    still[0] = 1  # cosines and sines of no angle
    head = torch.randn(1, 8, 1, 8).double()  # @unnoticed: 1, 8, .double(): any head
    assert torch.equal(rotate(head, still), head), \
        "These cosines and sines turn nothing."

    def last(order: list[int], layers: int, turn: Turns) -> Tensor:
        x: Tensor = model.embedding(tokens[[*order, 5, 6, 7]])[None]
        for block in model.blocks[:layers]:
            x = block(x, turn)
        return x[0, -1]

    def both(layers: int, turn: Turns) -> tuple[Tensor, Tensor]:
        usual = last([0, 1, 2, 3, 4], layers, turn)
        return usual, last([4, 2, 0, 1, 3], layers, turn)

    assert torch.allclose(*both(1, still)), \
        "After one layer, the last token is the same."
    assert not torch.allclose(*both(2, still)), "After two layers, it is not."
    usual, mixed = both(2, still)
    change = ((mixed - usual).norm() / usual.norm()).item()  # @inspect change as %
    assert 0.1 < change < 2, "The order changes the last token by much."
    turn = turns(8, 8).double()
    assert not torch.allclose(*both(1, turn)), \
        "With rotation, one layer sees the order."
    note(rf"""
        So the mask alone changes the last token by {change:.0%} of its length. That is a hint and
        no measure of distance, so models are told positions besides. The first Transformer added
        sines and cosines to the tokens [@vaswani2017]; others added a learned row for each
        position; rotary embedding turns queries and keys.
    """)
    question(r"""
        Through the causal mask, how many tokens does the last of `8` tokens see, itself included,
        and how many does the first?
    """, answer=[8, 1], check=torch.ones(8, 8).tril().sum(dim=1)[[-1, 0]].int().tolist(), unit="tokens",
        why="A token sees itself and all earlier tokens, and the first has none before it.")


def heads_of_queries_share_keys() -> None:
    """Sharing KV heads saves memory, but no FLOP of attention."""
    note(r"""
        A model that writes text has to keep the keys and values of all tokens so far. How can it
        keep fewer? Let several heads of queries use the same head of keys and values [@gqa]. This
        is *grouped-query attention*, and the shared heads are the *KV heads*. If four heads of
        queries share one KV head, the model keeps a quarter of the keys and values. The result is
        the same as that of ordinary attention in which each KV head is repeated for every head that
        shares it. But the repeats are never stored:
    """)
    b, t, h, g, n = 2, 6, 8, 2, 16  # @unnoticed: 2 -> 3, 2 -> 4: any batch, and any heads that share
    q: Float[Tensor, "b t h n"] = torch.randn(b, t, h, n).double()
    k: Float[Tensor, "b t g n"] = torch.randn(b, t, g, n).double()
    v: Float[Tensor, "b t g n"] = torch.randn(b, t, g, n).double()
    shared = written_attention(q, k, v)  # @inspect shared.shape
    keys, values = (x.repeat_interleave(h // g, dim=2) for x in (k, v))
    plain = written_attention(q, keys, values)
    assert torch.allclose(shared, plain), \
        "Shared and repeated give the same result."
    assert torch.allclose(shared, fused_attention(q, k, v)), \
        "So does a fused kernel."  # @hide
    alone = replace(SMALL, kv_heads=8)  # every head has keys of its own
    caches = [Cache(c, 1, q).memory.nbytes for c in (SMALL, alone)]  # @inspect caches as B
    assert caches[1] / caches[0] == 4.0, \
        "Without sharing, there are 4 times the bytes to keep."
    misbelief("Grouped-query attention makes attention cheaper to compute.", r"""
        Scores and sums cost the same FLOPs as before, because every head of queries still scores
        every token. What becomes smaller is the memory for keys and values, and the two matrices
        that make them: a quarter, if four heads share one.
    """)
    note("Count the FLOPs of attention with shared and with separate heads, on `meta`:")
    with torch.device("meta"):
        q = torch.empty(b, t, h, n)
        few, many = torch.empty(b, t, g, n), torch.empty(b, t, h, n)
    grouped = flops(lambda: written_attention(q, few, few))  # @inspect grouped as FLOP
    full = flops(lambda: written_attention(q, many, many))  # @inspect full as FLOP
    assert grouped == full == 2 * 2 * b * t * t * h * n, \
        "Scores and sums take as many FLOPs with sharing as without."

    def key_weights(config: Config) -> int:  # @hide
        return math.prod(matrices(config)["key"])

    assert key_weights(SMALL) == 64 * 16, \
        "So many weights make the keys with sharing."  # @hide
    assert key_weights(alone) == 64 * 64, "So many make them without."  # @hide

    note(r"""
        Llama-3-8B has `32` heads of queries and `8` KV heads. `shared_by` gives its block another
        number of KV heads. It returns the shapes of the seven matrices, their weights, the FLOPs of
        scores and sums for a token, and the bytes of the KV cache. Compare `32` KV heads with `8`,
        for a text of `8192` tokens:
    """)

    def shared_by(
        kv_heads: int, inner_width: int, context: int
    ) -> dict[str, Any]:
        c = replace(LLAMA_3_8B, kv_heads=kv_heads, hidden=inner_width)
        return {
            "matrices": [list(shape) for shape in matrices(c).values()],
            "weights": block_weights(c),
            "attention": attention_flops(c, 1, context) // c.layers,
            "cache": cache_bytes(c, context),
        }

    separate, eight = (shared_by(g, 14336, 8192) for g in (32, 8))
    assert eight["cache"] / separate["cache"] == 0.25, \
        "With 8 KV heads, the cache is a quarter."
    assert eight["attention"] == separate["attention"], \
        "The FLOPs of scores and sums stay."
    left = eight["weights"] / separate["weights"]  # @inspect left as %
    assert 0.89 < left < 0.9, "Nine tenths of the block's weights stay."
    explore(shared_by, over={
        "kv_heads": [1, 2, 4, 8, 16, 32], "inner_width": [4096, 8192, 11008, 14336, 16384],
        "context": [2**i for i in range(10, 17)],
    }, at={"kv_heads": 32, "inner_width": 14336, "context": 8192}, module="pictures/block.js",
        still=plot_block(matrices(replace(LLAMA_3_8B, kv_heads=32))),
        do="Go from `32` KV heads to `8`, as Llama-3-8B has them, and on to `1`. What stays?",
        see=r"""
            The cache shrinks as the KV heads do. The FLOPs of scores and sums stay, and so does
            most of the block: only the matrices of keys and of values shrink.
        """, caption=r"""
            The seven matrices of a block of Llama-3-8B to one scale, a row of weights for each
            number that goes in; `down` is turned on its side. Sliders change the number of KV heads,
            the width inside the feed-forward part, and the tokens of the text.
        """, alt=r"""
            Seven rectangles. With 32 KV heads the four of attention are squares of one size. Gate,
            up and down are three and a half times as long as they are high.
        """)  # @hide
    with torch.device("meta"):  # @hide
        layer = Attention(LLAMA_3_8B, "fused")  # @hide
    question(r"""
        Llama-3-8B is `4096` wide. Its `32` heads of queries have `128` numbers each and share `8`
        heads of keys. How many weights does the matrix that makes keys have?
    """, answer=4096 * 8 * 128, check=layer.key.weight.numel(), unit="weights", wrong={
            "That is the matrix of queries: only 8 heads have keys.": 4096 * 32 * 128,
            "Count keys alone, not keys and values.": 2 * 4096 * 8 * 128,
        }, why=r"""
            It turns `4096` numbers into `8 * 128`. The matrix of queries makes `32 * 128` of them,
            so this one is a quarter as large.
        """, hint="Rows times columns: from the width to all keys of a token.")


def a_gate_costs_a_third_matrix() -> None:
    """SwiGLU has three matrices instead of two, so they are made narrower."""
    note(r"""
        The feed-forward part of the first Transformer has two matrices. One goes up from the width
        $d$ to $4d$, and one goes down to $d$ again, with a nonlinearity between them. Llama's
        feed-forward part, *SwiGLU*, has a third matrix, also up. Its result is the *gate*. The gate
        goes through SiLU, which multiplies a number by its sigmoid. Then it is multiplied by the
        result of the other matrix up, and so decides how much of that passes [@swiglu]:
    """)
    part, x = SwiGLU(SMALL).double(), torch.randn(3, 5, 64).double()
    gate, up = part.gate(x), part.up(x)
    passed = gate * gate.sigmoid() * up  # @inspect passed.shape
    assert torch.allclose(part(x), part.down(passed)), \
        "SwiGLU computes exactly this."
    note(r"""
        What does the third matrix cost? Nothing, if all three are made narrower. Two matrices of
        $d \times 4d$ have $8d^2$ weights, and three of $d \times h$ have $3dh$. The two are equal
        if $h = \tfrac{8}{3}d$. Llama-2-7B rounds that up to a multiple of 256 [@llama-code].
        Llama-3-8B first multiplies it by $1.3$, and then rounds up to a multiple of 1024
        [@llama-code]. Both are `4096` wide:
    """)
    d, two = 4096, 2 * 4096 * 4 * 4096
    exact = 8 * d / 3  # @inspect exact

    def rounded(size: float, multiple: int) -> int:
        return math.ceil(size / multiple) * multiple

    assert rounded(exact, 256) == LLAMA_2_7B.hidden == 11008, \
        "The rule gives the inner width of Llama-2-7B."
    wider = 1.3 * exact  # @inspect wider
    assert rounded(wider, 1024) == LLAMA_3_8B.hidden == 14336, \
        "The rule gives the inner width of Llama-3-8B."
    shares = [3 * d * c.hidden / two for c in (LLAMA_2_7B, LLAMA_3_8B)]  # @inspect shares
    assert shares[0] < 1.01, \
        "Llama-2-7B has as many weights here as with two plain matrices."
    assert shares[1] == 1.3125, "Llama-3-8B has almost a third more."
    note(rf"""
        So the gate costs Llama-2-7B no weights. Llama-3-8B chose to be wider, with {shares[1]:.2f}
        times the weights of two plain matrices.
    """)
    question("Llama-2-13B is `5120` wide, and rounds eight thirds of its width up to a multiple of `256`, as Llama-2-7B does. How wide is it inside the feed-forward part?",
             answer=rounded(8 * 5120 / 3, 256), check=54 * 256, wrong={
                 "That is rounded down: the next multiple is wanted.": 53 * 256,
                 "That is four times the width, for two matrices.": 4 * 5120,
             }, hint="How often does `256` go into eight thirds of `5120`?",
             why="Eight thirds of the width are `13653` and a third, and the next multiple of `256` is `54 * 256`.")


def each_matrix_costs_two_flops_per_weight() -> None:
    """Each matrix costs two FLOPs per weight and token, and the counter agrees matrix by matrix."""
    note(r"""
        How many FLOPs does a token cost in each of the seven matrices of a block? A token uses each
        weight once, in a multiplication and an addition. So a matrix of $r$ rows and $c$ columns
        should cost $2rc$ FLOPs for each token. PyTorch's `FlopCounterMode` does not know this
        formula: it counts from the shapes of every product that runs. Here it watches a block of
        Llama-3-8B with `2048` tokens. The block is on the device `meta`, so nothing is allocated:
    """)
    config, batch, tokens = LLAMA_3_8B, 1, 2048
    with torch.device("meta"):
        block = Block(config, "written")
        x = torch.empty(batch, tokens, config.width)
        turn = turns(config.head, tokens)
    with FlopCounterMode(display=False) as counter:
        block(x, turn)
    counts = counter.get_flop_counts()
    found = {n.split(".")[-1]: sum(counts[n].values()) for n in counts}
    by_hand = {n: 2 * tokens * r * c for n, (r, c) in matrices(config).items()}
    assert [found[n] for n in by_hand] == [*by_hand.values()], \
        "Formula and counter agree for each of the seven matrices."
    weights = sum(rows * cols for rows, cols in matrices(config).values())  # @inspect weights
    assert weights == block_weights(config), \
        "These are the weights of the block."  # @hide
    note(rf"""
        So the seven matrices with {weights:,} weights take {2 * weights:,} FLOPs for each token.

        The counter found more than that. The rest belongs to no matrix of weights: it is
        attention's own two products, queries by keys and weights by values. Each of them takes
        $2\,T^2 d$ FLOPs for $T$ tokens and width $d$:
    """)
    rest = found["Global"] - sum(by_hand.values())  # @inspect rest as FLOP
    assert rest == 2 * 2 * tokens * tokens * config.width, \
        "The rest is attention's two products."
    share = rest / found["Global"]  # @inspect share as %
    assert 0.071 < share < 0.072, \
        "Attention's products are this share at 2048 tokens."
    note(rf"""
        With `2048` tokens that is {share:.1%} of all FLOPs of the block. The norms, the rotations
        and the softmax are not counted. They do a few operations for each number, where a matrix
        does thousands. But they take *time*, as a [later part](#three_regimes) shows.
    """)
    question("A block of Llama-3-8B has `218103808` weights in its seven matrices. How many FLOPs do they take for one more token?",
             answer=2 * 218103808, check=sum(by_hand.values()) // tokens, unit="FLOP", wrong={
                 "Each weight takes a multiplication and an addition.": 218103808,
                 "That is a training step, with the backward pass.": 6 * 218103808,
             }, hint="What does one weight cost?", why="A token meets each weight once, in a multiplication and an addition, so take two for each.")


@aside
def a_counter_may_overlook_attention() -> None:
    """A counter that does not know a kernel reports nothing for it."""
    note(r"""
        Can PyTorch's FLOP counter be trusted? Take the same small model twice: once with attention
        written out as products, and once with attention in a single call, a *fused kernel*. Both
        give the same *logits*, the scores for the next token. They read three sequences of `32`
        tokens. `flops_by_operation` lists what the counter says for each operation:
    """)
    written, fused = (Transformer(SMALL, how).double() for how in get_args(How))
    fused.load_state_dict(written.state_dict())
    tokens = torch.randint(0, SMALL.vocabulary, (3, 32))
    assert torch.allclose(written(tokens), fused(tokens)), \
        "Both give the same logits."
    bill = flops_by_operation(lambda: written(tokens))  # @inspect bill as FLOP
    formula = forward_flops(SMALL, 3 * 32, 32)
    assert sum(bill.values()) == formula, \
        "Written out, the counter agrees with the formula."
    note(rf"""
        Written out, the model takes {formula:,} FLOPs. Now the model with the fused kernel:
    """)
    products = flops(lambda: fused(tokens))  # @measure products as FLOP
    missing = sum(bill.values()) - products  # @measure missing as FLOP
    attention = attention_flops(SMALL, 3 * 32, 32)  # @inspect attention as FLOP
    assert missing % attention == 0, "All of attention is missing, or nothing."  # @zero: a remainder
    assert missing <= attention, "No more than attention is missing."
    misbelief("`FlopCounterMode` counts what a model does.", rf"""
        It counts only the operations on its list. The fused kernel that PyTorch runs on a CPU is
        not on the list, so the {attention:,} FLOPs of attention seem to cost nothing there. The
        fused kernels for CUDA are on the list. So count with attention written out, or on a device
        whose kernel the counter knows.
    """)
    question("What does the counter say for one sequence of `32` tokens through the written model?",
             answer=flops(lambda: written(torch.zeros(1, 32, dtype=torch.int64))), check=formula / 3, unit="FLOP",
             why="The count above was for three sequences of that length, so one takes a third of it.")


def published_counts_follow_from_eight_numbers() -> None:
    """A handful of numbers gives published parameter counts to the last digit."""
    note(r"""
        How many parameters does a whole model have? It has $L$ blocks and two tables. The
        *embedding* has a row of $d$ numbers for each of the $V$ tokens of the vocabulary. The
        *head*, of the same shape, turns the last block's result into a score for each of these
        tokens. A last norm before the head has $d$ gains. With $b$ biases in each block (zero in
        most models), the model has

        [@eq:parameters]: $$
        P = L\,(2d^2 + 2\,d\,d_{kv} + 3\,d\,h + 2d + b) + d + 2Vd
        $$

        parameters. In a *tied* model one table serves as embedding and as head; it has $Vd$ fewer.
        If this is the block of Llama, Mistral and Qwen2.5, the formula must give their published
        sizes exactly. Here are four models, as their `config.json` describes them
        [@llama-2-7b; @llama-3-8b; @mistral-7b; @qwen25-05b], and their numbers of parameters as
        KerasHub lists them [@keras-hub]. `parameter_count` is the formula:
    """)
    published = {
        "Llama-2-7B": (LLAMA_2_7B, 6_738_415_616),
        "Llama-3-8B": (LLAMA_3_8B, 8_030_261_248),
        "Mistral-7B": (MISTRAL_7B, 7_241_732_096),
        "Qwen2.5-0.5B": (QWEN_25_HALF_B, 494_032_768),
    }
    computed = {n: parameter_count(c) for n, (c, _) in published.items()}
    right = [count for _, count in published.values()]
    assert [*computed.values()] == right, \
        "The formula gives all four published sizes, to the last digit."
    built = {}  # @hide
    for name, (config, _) in published.items():  # @hide
        with torch.device("meta"):
            model = Transformer(config)
        built[name] = sum(p.numel() for p in model.parameters())
    assert built == computed, \
        "The models, built without data, have as many parameters."  # @hide
    note(rf"""
        All four agree to the last digit. Qwen2.5-0.5B needs both extra terms: its queries, keys and
        values have biases, and it is tied [@qwen25-05b].

        The file that lists Llama-3-8B's weights gives their size as 16,060,522,496 bytes
        [@llama-3-8b]. That is the same number of parameters, {computed["Llama-3-8B"]:,}, with `2`
        bytes for each.
    """)
    assert 2 * computed["Llama-3-8B"] == 16_060_522_496, \
        "Two bytes a parameter give the size of the download."
    table = QWEN_25_HALF_B.vocabulary * QWEN_25_HALF_B.width  # @hide
    share = table / built["Qwen2.5-0.5B"]  # @hide
    assert 0.27 < share < 0.28, "This share of Qwen2.5-0.5B is its table."  # @hide
    parts = {name: matrices(c) for name, (c, _) in published.items()}
    figure(plot_matrices(parts), caption=r"""
        The weights of one block by matrix, as shares of the block. Where heads share keys, the two
        matrices of keys and values are thin, and the feed-forward part is a larger share.
    """, alt=r"""
        Four stacked bars, one for each model. In Llama-2-7B the four matrices of attention are a
        third of the block. In the other three, keys and values are thin slices, and gate, up and
        down fill four fifths and more.
    """)
    question(r"""
        Llama-3-70B has `80` layers, width `8192`, `64` heads of queries and `8` of keys with `128`
        numbers each, an inner width of `28672`, and a vocabulary of `128256`. It is not tied and
        has no biases. How many parameters does it have?
    """, answer=parameter_count(LLAMA_3_70B), check=70_553_706_496, unit="parameters", wrong={
            "It has two tables: the embedding and the head.": 70_553_706_496 - 128256 * 8192,
            "Keys and values are 1024 wide, not 8192.": 70_553_706_496 + 80 * 2 * 8192 * (8192 - 1024),
        }, hint="Keys are `8 * 128` numbers wide.", why=r"""
            Put the numbers into the formula above, with $d_{kv} = 8 \cdot 128 = 1024$ and $b = 0$.
            Nearly all are in the blocks; the two tables have $2Vd$.
        """)
