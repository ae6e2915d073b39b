"""The block of a Transformer of today: its matrices, its FLOPs, and the models that are made of it."""

import math
from dataclasses import replace
from functools import partial
from typing import get_args

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
from .figures import plot_matrices
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
    heads_of_queries_share_keys()
    a_gate_costs_a_third_matrix()
    each_matrix_costs_two_flops_per_weight()
    a_counter_may_overlook_attention()
    published_counts_follow_from_eight_numbers()


def a_block_is_seven_matrices() -> None:
    """A block is seven matrices, and most of its weights are in the feed-forward part."""
    note(r"""
        How many parameters does a block have, and where are they? Attention has four matrices: for
        queries, for keys, for values and for its result. The queries of a token are as wide as the
        model, $d$ numbers. Its keys and values are narrower, $d_{kv}$ numbers, where heads share
        them. The feed-forward part has three matrices between the width $d$ and a larger width $h$.
        Each of the two norms has $d$ *gains*, factors that it learns. Together the matrices and
        gains of one block have

        [@eq:block]: $$
        \underbrace{2d^2 + 2\,d\,d_{kv}}_{\text{attention}} +
        \underbrace{3\,d\,h}_{\text{feed-forward}}
        + \underbrace{2d}_{\text{gains}}
        $$

        parameters. Count those of a small block:
    """)
    config = SMALL  # @inspect config
    block = Block(config)
    by_name = {name: p.numel() for name, p in block.named_parameters()}  # @inspect by_name
    assert len(by_name) == 9, "seven matrices, two gains"
    d, kv, h = config.width, config.kv_width, config.hidden  # @inspect d, kv, h
    by_hand = 2 * d * d + 2 * d * kv + 3 * d * h  # @inspect by_hand
    assert by_hand == block_weights(config) == 40960, "in the matrices"
    gains = sum(by_name.values()) - by_hand
    assert gains == 2 * d == 128, "in the gains"
    note(r"""
        No parameter is a bias, and none says where a token stands. Most weights are in the
        feed-forward part:
    """)
    share = 3 * d * h / by_hand  # @inspect share as %
    assert share == 0.75, "gate, up and down"
    question(r"""
        A block has width `128`, as many heads of keys as of queries, and is `512` wide inside the
        feed-forward part. How many weights are in its seven matrices?
    """, answer=4 * 128 * 128 + 3 * 128 * 512, check=block_weights(Config(1, 128, 8, 8, 512, 100, 32)), unit="weights",
        why="For attention four squares of the width, and the rest for the feed-forward part.",
        hint="Without sharing, $d_{kv}$ is $d$.")


def rmsnorm_forgets_the_scale() -> None:
    """RMSNorm removes the scale of a token's numbers."""
    note(r"""
        Why does a block need norms? Blocks add to the residual stream again and again, so its
        numbers grow. A norm brings them back to one scale before a matrix sees them. LayerNorm
        subtracts the mean of a token's numbers, divides by their standard deviation, multiplies by
        gains and adds biases. RMSNorm does less: it divides by the root of the mean square, and
        multiplies by gains [@rmsnorm]. While all gains are one, the mean square of the result is
        one. Then a token of `64` numbers, taken as an arrow, has a length of the root of `64`:
    """)
    norm = RMSNorm(64, eps=0).double()
    x: Float[Tensor, "b t d"] = torch.randn(2, 5, 64).double()
    root = x.square().mean(dim=-1, keepdim=True).sqrt()
    y: Float[Tensor, "b t d"] = norm(x)
    assert torch.allclose(y, x / root, rtol=1e-12), "divided, no more"
    lengths = y.norm(dim=-1)  # @inspect lengths
    eight = torch.full_like(lengths, 8)
    assert torch.allclose(lengths, eight), "8, the root of 64"
    note(r"""
        Learned gains weigh each number differently, so that lengths differ. One thing stays true
        with any gains. Multiply a token by a hundred: its root mean square is then as much larger,
        the norm divides by it, and the result does not change.
    """)
    learned = RMSNorm(64, eps=0).double()
    nn.init.uniform_(learned.gain, 0.5, 1.5)
    spread = learned(x).norm(dim=-1)  # @inspect spread
    assert spread.max() > 1.02 * spread.min(), "lengths differ"
    loud = 100 * x
    assert torch.allclose(learned(loud), learned(x), rtol=1e-12), \
        "the scale is gone"
    note(r"""
        So far a small number was left out. It is called `eps` and is added to the mean square, so
        that a token of zeros is not divided by zero. It matters where a token's numbers are small.
        A model begins with numbers of about `0.02`. With those, and an `eps` of `1e-5`:
    """)
    quiet, usual = 0.02 * y, RMSNorm(64).double()
    lengths = usual(quiet).norm(dim=-1)  # @inspect lengths
    assert 7.90 < lengths.min() < lengths.max() < 7.91, "not quite 8"
    before, after = usual(quiet), usual(100 * quiet)
    change = ((after - before).norm() / before.norm()).item()  # @inspect change as %
    assert round(change, 2) == 0.01, "changed by a hundredfold stream"
    note(r"""
        A norm stands before attention and before the feed-forward part, and what these return is
        added to a stream that is not normalized. Written out:
    """)
    block, turn = Block(SMALL).double(), turns(SMALL.head, 5).double()
    middle = x + block.attention(block.before_attention(x), turn)
    after = middle + block.feed_forward(block.before_feed_forward(middle))
    assert torch.allclose(block(x, turn), after), "a block is this"
    note("Apart from biases, LayerNorm differs from RMSNorm by the mean alone. Where the mean is zero, the two agree.")
    centered = x - x.mean(dim=-1, keepdim=True)
    layer_norm = partial(F.layer_norm, normalized_shape=(64,), eps=0)
    layered = layer_norm(centered)
    assert torch.allclose(norm(centered), layered), "without a mean"
    assert not torch.allclose(norm(x), layer_norm(x)), "with one"
    question("How many parameters has a norm of width `4096`, and how many would LayerNorm have?",
             answer=[
                 sum(p.numel() for p in norm.parameters())
                 for norm in (RMSNorm(4096), nn.LayerNorm(4096))
             ],
             check=[4096, 2 * 4096], unit="parameters", why="Gains for both, and biases for LayerNorm.")


def rotary_embedding_tells_distances() -> None:
    """Rotary embedding turns queries and keys, so that positions enter a score by their distance alone."""
    note(r"""
        Does attention know the order of tokens? A score does not: it is computed from a query and a
        key, wherever they stand. So leave positions out, and exchange the first words of a text.
        After one layer the last token is the same as before. After two layers it is not. Under the
        causal mask the second token sees one token less than the third. So what a token passes on
        depends on its place.
    """)
    config = replace(SMALL, layers=2)
    model, tokens = Transformer(config, "written").double(), torch.arange(8)
    still = torch.zeros(2, 8, 4).double()
    still[0] = 1  # cosines and sines of no angle
    head = torch.randn(1, 8, 1, 8).double()
    assert torch.equal(rotate(head, still), head), "turned by nothing"

    def last(order: list[int], layers: int, turn: Turns) -> Tensor:
        x: Tensor = model.embedding(tokens[[*order, 5, 6, 7]])[None]
        for block in model.blocks[:layers]:
            x = block(x, turn)
        return x[0, -1]

    def both(layers: int, turn: Turns) -> tuple[Tensor, Tensor]:
        usual = last([0, 1, 2, 3, 4], layers, turn)
        return usual, last([4, 2, 0, 1, 3], layers, turn)

    assert torch.allclose(*both(1, still)), "one layer: the order is not seen"
    assert not torch.allclose(*both(2, still)), "two layers under a mask: it is"
    usual, mixed = both(2, still)
    change = ((mixed - usual).norm() / usual.norm()).item()  # @inspect change as %
    assert 0.1 < change < 2, "by much"
    turn = turns(8, 8).double()
    assert not torch.allclose(*both(1, turn)), "and with rotation"
    note(r"""
        The mask gives only a weak hint, so most models are told positions. The first Transformer
        added sines and cosines to the tokens [@vaswani2017]. Others added a learned row for each
        position. *Rotary embedding* adds nothing and learns nothing. It takes the numbers of a head
        in pairs, as points in a plane. It turns each pair by an angle that grows with the position,
        every pair at its own speed [@rope]. A score of two turned rows depends on the difference of
        their angles, and so on the distance of the tokens:
    """)
    turn = turns(16, tokens=40).double()  # @inspect turn.shape
    q, k = torch.randn(2, 1, 1, 1, 16).double()

    def score(place_of_query: int, place_of_key: int) -> float:
        at = turn[:, [place_of_query]], turn[:, [place_of_key]]
        return float((rotate(q, at[0]) * rotate(k, at[1])).sum())

    early, late = score(5, 2), score(35, 32)  # @inspect early, late
    same = math.isclose(early, late, abs_tol=1e-4)  # of float32
    assert same, "three tokens apart, wherever"
    closer = score(5, 3)  # @inspect closer
    assert not math.isclose(early, closer), "two apart: another score"
    note(r"""
        A rotation keeps the length of a row, so nothing grows or shrinks with the position. It also
        has no parameters.
    """)
    turned = rotate(q, turn[:, [39]])
    assert torch.allclose(turned.norm(), q.norm()), "as long as before"
    assert not torch.allclose(turned, q), "and elsewhere"
    note(r"""
        Attention turns queries and keys, and leaves values as they are. So it gives the same result
        wherever in the context a text begins:
    """)
    layer = Attention(SMALL, "written").double()
    x = torch.randn(1, 8, 64).double()
    here = layer(x, turns(8, 8).double())
    there = layer(x, turns(8, 8, start=30).double())
    assert torch.allclose(here, there), "thirty places on: the same"
    assert not torch.allclose(here, layer(x, still)), "not turned: another"
    slow = turns(128, 2)[1, 1].asin().min()
    question(r"""
        The slowest of the `64` pairs in a head of `128` turns by how many radians from a token to
        the next? The base is `10000`.
    """, answer=10000 ** (-126 / 128), check=math.exp(-63 / 64 * math.log(10000)), unit="rad",
        hint="The speeds are powers of the base, from `1` down to nearly `1/10000`.", within=0.05,
        why=rf"""
            A full turn takes it {2 * math.pi / slow:,.0f} tokens, so it tells far from near in
            texts of that length.
        """)
    least = 10000 ** (-126 / 128)
    assert math.isclose(slow, least, rel_tol=1e-5), "by its cosine and sine"


def heads_of_queries_share_keys() -> None:
    """Sharing KV heads saves memory, but no FLOP of attention."""
    note(r"""
        A model that writes text has to keep the keys and values of all tokens so far. How can it
        keep fewer? Let several heads of queries use the same head of keys and values [@gqa]. This
        is *grouped-query attention*, and the shared heads are the *KV heads*. If four heads share
        one, the model keeps a quarter. The result is that of ordinary attention with each KV head
        repeated, without storing the repeats:
    """)
    b, t, h, g, n = 2, 6, 8, 2, 16
    q: Float[Tensor, "b t h n"] = torch.randn(b, t, h, n).double()
    k: Float[Tensor, "b t g n"] = torch.randn(b, t, g, n).double()
    v: Float[Tensor, "b t g n"] = torch.randn(b, t, g, n).double()
    shared = written_attention(q, k, v)  # @inspect shared.shape
    keys, values = (x.repeat_interleave(h // g, dim=2) for x in (k, v))
    plain = written_attention(q, keys, values)
    assert torch.allclose(shared, plain), "the same result"
    assert torch.allclose(shared, fused_attention(q, k, v)), "fused as well"
    alone = replace(SMALL, kv_heads=8)  # every head has keys of its own
    caches = [Cache(c, 1, q).memory.nbytes for c in (SMALL, alone)]  # @inspect caches as B
    assert caches[1] / caches[0] == 4.0, "times as much to keep without sharing"
    misbelief("Grouped-query attention makes attention cheaper to compute.", r"""
        It does not. Every head of queries still scores every token, at the same cost. Two of the
        four matrices get smaller, and the memory for keys and values.
    """)
    with torch.device("meta"):
        q = torch.empty(b, t, h, n)
        few, many = torch.empty(b, t, g, n), torch.empty(b, t, h, n)
    grouped = flops(lambda: written_attention(q, few, few))  # @inspect grouped as FLOP
    full = flops(lambda: written_attention(q, many, many))  # @inspect full as FLOP
    assert grouped == full == 2 * 2 * b * t * t * h * n, "scores and sums"

    def key_weights(config: Config) -> int:
        return math.prod(matrices(config)["key"])

    assert key_weights(SMALL) == 64 * 16, "weights with sharing"
    assert key_weights(alone) == 64 * 64, "and without"

    def share(key_heads: int) -> dict[str, float]:
        few, all_ = (replace(LLAMA_3_8B, kv_heads=h) for h in (key_heads, 32))
        names = "query", "key", "value", "out"
        weights = [
            sum(math.prod(matrices(c)[m]) for m in names) for c in (few, all_)]
        return {
            "weights of attention": weights[0] / weights[1],
            "cache of a token": cache_bytes(few, 1) / cache_bytes(all_, 1),
            "FLOPs over the cache": attention_flops(few, 1, 1024) / attention_flops(all_, 1, 1024),
        }

    note(r"""
        Llama-3-8B has `32` heads of queries. Here it gets other numbers of heads of keys, and each
        part is compared with what it would be if no head shared.
    """)
    grid = explore(share, over={"key_heads": [1, 2, 4, 8, 16, 32]}, at={"key_heads": 32}, unit="%",
        do="Go from `32` heads of keys to `8`, as Llama-3-8B has them, and on to `1`. What stays?",
        see=r"""
            The cache shrinks as the heads of keys do. The FLOPs over it stay. Of the weights more
            than half remain, since the matrices of queries and of the output are as large as ever.
        """,
        caption="Llama-3-8B with fewer heads of keys, against one head of keys for each of queries.",
        alt="Three bars: of the cache, which shrinks, of FLOPs, which stay, and of weights, between.")  # @hide
    assert grid[8]["cache of a token"] == 0.25, "a quarter"
    assert grid[1]["FLOPs over the cache"] == 1, "as ever"
    assert 0.5 < grid[1]["weights of attention"] < 0.52, "more than half"
    with torch.device("meta"):
        layer = Attention(LLAMA_3_8B, "fused")
    question(r"""
        In Llama-3-8B `32` heads of queries of `128` numbers share `8` heads of keys. How many
        weights does the matrix that makes keys have?
    """, answer=4096 * 8 * 128, check=layer.key.weight.numel(), unit="weights",
        why="A quarter of what the matrix that makes queries has.")


def a_gate_costs_a_third_matrix() -> None:
    """SwiGLU has three matrices instead of two, so they are made narrower."""
    note(r"""
        What does a gate cost? The feed-forward part of the first Transformer has two matrices: one
        up to the width $4d$, and one down to $d$, with a nonlinearity between them. SwiGLU has two
        matrices up. The result of the first, the *gate*, goes through SiLU, which multiplies a
        number by its sigmoid. Multiplied with the result of the second, it decides how much of that
        passes [@swiglu].
    """)
    part, x = SwiGLU(SMALL).double(), torch.randn(3, 5, 64).double()
    gate, up = part.gate(x), part.up(x)
    passed = gate * gate.sigmoid() * up  # @inspect passed.shape
    assert torch.allclose(part(x), part.down(passed)), "the code is this"
    note(r"""
        Three matrices of width $h$ have as many weights as two of width $4d$ if $h$ is
        $\tfrac{8}{3}d$. Llama-2-7B rounds that up to a multiple of 256 [@llama-code]. Llama-3-8B
        first multiplies it by $1.3$, and then rounds up to a multiple of 1024 [@llama-code].
    """)
    d, two = 4096, 2 * 4096 * 4 * 4096
    exact = 8 * d / 3  # @inspect exact

    def rounded(size: float, multiple: int) -> int:
        return math.ceil(size / multiple) * multiple

    assert rounded(exact, 256) == LLAMA_2_7B.hidden == 11008, "Llama-2-7B"
    wider = 1.3 * exact  # @inspect wider
    assert rounded(wider, 1024) == LLAMA_3_8B.hidden == 14336, "Llama-3-8B"
    shares = [3 * d * c.hidden / two for c in (LLAMA_2_7B, LLAMA_3_8B)]  # @inspect shares
    assert shares[0] < 1.01, "the weights of two plain matrices"
    assert shares[1] == 1.3125, "almost a third more"
    question("Llama-2-13B is `5120` wide. How wide is it inside the feed-forward part, by the same rule?",
             answer=rounded(8 * 5120 / 3, 256), check=54 * 256,
             why="Eight thirds of the width are `13653` and a third, and the next multiple of `256` is `54 * 256`.")


def each_matrix_costs_two_flops_per_weight() -> None:
    """Each matrix costs two FLOPs per weight and token, and the counter agrees matrix by matrix."""
    note(r"""
        How many FLOPs does a token cost in each of the seven matrices of a block? A token uses each
        weight once, in a multiplication and an addition. So tokens times rows times columns times
        two should be the count. PyTorch's `FlopCounterMode` counts independently, from the shapes
        of every product that runs. The block is on `meta`, so nothing is allocated:
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
    assert [found[n] for n in by_hand] == [*by_hand.values()], "all seven"
    note("So each token takes a multiplication and an addition for each of these weights:")
    weights = {n: by_hand[n] // (2 * tokens) for n in by_hand}  # @inspect weights
    assert sum(weights.values()) == block_weights(config), "those of the block"
    note(r"""
        The rest of the count belongs to no matrix of weights. It is attention's own two products,
        queries by keys and weights by values. (The mask then throws nearly half of them away.)
    """)
    rest = found["Global"] - sum(by_hand.values())  # @inspect rest as FLOP
    assert rest == 2 * 2 * tokens * tokens * config.width, "two products"
    share = rest / found["Global"]  # @inspect share as %
    assert 0.071 < share < 0.072, "at this length"
    note(r"""
        Norms, rotations, the softmax and the gate's multiplication are not counted. They do a few
        operations for each number, a matrix does thousands. Their *time* does matter, as a
        [later part](#three_regimes) shows.
    """)
    question("Another token passes through a block of Llama-3-8B. How many FLOPs do its seven matrices take?",
             answer=2 * block_weights(config), check=sum(by_hand.values()) // tokens, unit="FLOP",
             why="Two for each of the weights in its matrices.")


@aside
def a_counter_may_overlook_attention() -> None:
    """A counter that does not know a kernel reports nothing for it."""
    note(r"""
        Can the counter be trusted? Take the same model twice: once with attention written out as
        products, once with attention in a single call, a *fused kernel*. Both give the same logits,
        the scores for the next token. The counter reports different FLOPs for them:
    """)
    written, fused = (Transformer(SMALL, how).double() for how in get_args(How))
    fused.load_state_dict(written.state_dict())
    tokens = torch.randint(0, SMALL.vocabulary, (3, 32))
    assert torch.allclose(written(tokens), fused(tokens)), "the same logits"
    bill = flops_by_operation(lambda: written(tokens))  # @inspect bill as FLOP
    formula = forward_flops(SMALL, 3 * 32, 32)
    assert sum(bill.values()) == formula, "formula and counter"
    products = flops(lambda: fused(tokens))  # @measure products as FLOP
    missing = sum(bill.values()) - products  # @measure missing as FLOP
    attention = attention_flops(SMALL, 3 * 32, 32)  # @inspect attention as FLOP
    assert missing % attention == 0, "all of attention is missing, or none"  # @zero: a remainder
    assert missing <= attention, "and no more than that"
    misbelief("`FlopCounterMode` counts what a model does.", r"""
        It counts only the operations on its list. The fused kernel that PyTorch runs on a CPU is
        not on the list, so attention seems to cost nothing there. The fused kernels for CUDA are on
        the list. Count with attention written out, or on a device whose kernel you know.
    """)
    question("What does the counter say for one sequence of `32` tokens through the written model?",
             answer=flops(lambda: written(torch.zeros(1, 32, dtype=torch.int64))), check=formula / 3, unit="FLOP",
             why="A third of the count above, which was for three sequences.")


def published_counts_follow_from_eight_numbers() -> None:
    """A handful of numbers gives published parameter counts to the last digit."""
    note(r"""
        A whole model has blocks and two tables. The *embedding* has a row of $d$ numbers for each
        token of the vocabulary. The *head*, of the same shape, turns the last block's result into a
        score for each token of the vocabulary. With $L$ blocks, a vocabulary of $V$ tokens, and $b$
        biases in a block, the model has

        [@eq:parameters]: $$
        P = L\,(2d^2 + 2\,d\,d_{kv} + 3\,d\,h + 2d + b) + d + 2Vd
        $$

        parameters. It has $Vd$ fewer where one table serves as both, in a *tied* model. Is this
        really the block of Llama, Mistral and Qwen2.5? Then the formula gives their published sizes
        exactly. Here are four models, as their `config.json` describes them
        [@llama-2-7b; @llama-3-8b; @mistral-7b; @qwen25-05b], and their numbers of parameters as
        KerasHub lists them [@keras-hub]:
    """)
    published = {
        "Llama-2-7B": (LLAMA_2_7B, 6_738_415_616),
        "Llama-3-8B": (LLAMA_3_8B, 8_030_261_248),
        "Mistral-7B": (MISTRAL_7B, 7_241_732_096),
        "Qwen2.5-0.5B": (QWEN_25_HALF_B, 494_032_768),
    }
    computed = {n: parameter_count(c) for n, (c, _) in published.items()}
    right = [count for _, count in published.values()]
    assert [*computed.values()] == right, "to the last digit"
    built = {}
    for name, (config, _) in published.items():
        with torch.device("meta"):
            model = Transformer(config)
        built[name] = sum(p.numel() for p in model.parameters())  # @inspect built
    assert built == computed, "counted in the model itself"
    note(r"""
        The last of them needs two details more [@qwen25-05b]. Its queries, keys and values have
        biases, and it is tied: one table serves as embedding and head. That table is a large part
        of so small a model:
    """)
    table = QWEN_25_HALF_B.vocabulary * QWEN_25_HALF_B.width  # @inspect table
    share = table / built["Qwen2.5-0.5B"]  # @inspect share as %
    assert 0.27 < share < 0.28, "of the model is the table of words"
    note(r"""
        The file that lists Llama-3-8B's weights gives their size as 16,060,522,496
        bytes [@llama-3-8b]: in `bfloat16`, two for each parameter.
    """)
    assert 2 * built["Llama-3-8B"] == 16_060_522_496, "the size of the download"
    parts = {name: matrices(c) for name, (c, _) in published.items()}
    figure(plot_matrices(parts), caption=r"""
        The weights of one block by matrix, as shares of the block. Sharing keys shrinks two
        matrices; the feed-forward part takes what they leave.
    """, alt=r"""
        Four stacked bars, one for each model. In Llama-2-7B the four matrices of attention are a
        third of the block. In the other three, keys and values are thin slices, and gate, up and
        down fill four fifths and more.
    """)
    question(r"""
        Llama-3-70B has `80` layers, width `8192`, `64` heads, `8` of them with keys, an inner width
        of `28672`, and the vocabulary of `128256`. How many parameters?
    """, answer=parameter_count(LLAMA_3_70B), check=70_553_706_496, unit="parameters",
        why="Put the numbers into the formula above: keys are `8 * 128` wide, and nothing is tied or has biases.")
