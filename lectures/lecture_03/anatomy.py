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
        Llama, Mistral and the Qwen models up to version 2.5 are built from one block, and it is no
        longer that of the first Transformer [@vaswani2017]:

        - the norm is another one, and it stands at another place: before attention and before the
          feed-forward part, where it stood after each addition;
        - positions are told by turning queries and keys, no longer by adding to the tokens;
        - several heads of queries share one head of keys and values;
        - the feed-forward part has a gate;
        - dropout is gone, and so are nearly all biases.

        Each is a few lines of code. Together they decide every number in this lecture.
        [Later models](#later_models) change more, and have a part of their own.
    """)
    note(r"""
        A token is a row of $d$ numbers. A block adds to it twice, `x + attention(norm(x))` and then
        `x + feed_forward(norm(x))`. What runs through all blocks, and is only ever added to, is the
        *residual stream*. In attention each token makes a query, a key and a value. A *score* is
        the product of a query and a key, and the softmax of a token's scores says how much of each
        value it takes.
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
    """A block is seven matrices, and most of its weights are not attention's."""
    note(r"""
        How many parameters has a block, and where are they? Queries and what leaves attention are
        as wide as the model, $d$; keys and values are narrower, $d_{kv}$; inside the feed-forward
        part a token is $h$ numbers wide. Each norm has $d$ *gains*, the factors that it learns. In
        the matrices and gains of one block there are

        [@eq:block]: $$
        \underbrace{2d^2 + 2\,d\,d_{kv}}_{\text{attention}} +
        \underbrace{3\,d\,h}_{\text{feed-forward}}
        + \underbrace{2d}_{\text{gains}}
        $$

        parameters. A small one, to be counted:
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
        There is not one bias, no parameter says where a token stands, and of the weights the
        feed-forward part has most:
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
    """RMSNorm forgets how large the numbers of a token were."""
    note(r"""
        LayerNorm subtracts the mean, divides by the standard deviation, multiplies by gains and
        adds biases. RMSNorm keeps the second and third step, and divides by the root of the mean
        square [@rmsnorm]. What does that do to a token? As long as all gains are one, the mean
        square becomes one. Then a token of `64` numbers, taken as an arrow, has the root of `64` as
        its length:
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
        Gains that are learned give each number another weight, and then lengths differ. What stays
        true with any gains: multiply the stream by a hundred, and the matrices behind a norm do not
        notice.
    """)
    learned = RMSNorm(64, eps=0).double()
    nn.init.uniform_(learned.gain, 0.5, 1.5)
    spread = learned(x).norm(dim=-1)  # @inspect spread
    assert spread.max() > 1.02 * spread.min(), "lengths differ"
    loud = 100 * x
    assert torch.allclose(learned(loud), learned(x), rtol=1e-12), "the scale is gone"
    note(r"""
        So far a small number was left out, `eps`. It is added to the mean square, so that a token
        of zeros is not divided by zero, and it is felt where numbers are small. Of the size with
        which models begin, `0.02`, and with `1e-5`:
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
    note("LayerNorm differs by the mean alone. Where it is zero, the two agree.")
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
    """Rotary embedding turns queries and keys, so that a score depends on their distance alone."""
    note(r"""
        Does attention know the order of tokens? A score does not. Take the rotation out, and
        exchange the first words of a text. After a single layer, its last token is what it was.
        After two it is not: the causal mask lets the second token see one token less than the third
        sees, so that what it passes on depends on its place.
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
        That is a weak hint, so models are told positions. The first Transformer added waves to the
        tokens [@vaswani2017], others a learned vector for each place. Rotary embedding learns
        nothing: it takes the numbers of a head in pairs, as points in a plane, and turns each pair
        by an angle that grows with the position, every pair at its own speed [@rope].
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
        A rotation keeps lengths, so nothing grows or shrinks with the position. And since it is
        fixed, a model has as many parameters with it as without.
    """)
    turned = rotate(q, turn[:, [39]])
    assert torch.allclose(turned.norm(), q.norm()), "as long as before"
    assert not torch.allclose(turned, q), "and elsewhere"
    note(r"""
        Attention as a whole turns queries and keys, and no values. So it gives the same result
        wherever a text begins:
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
    """Sharing keys among heads saves memory, and not one FLOP of attention."""
    note(r"""
        A model that writes text has to keep the keys and values of every token so far. What if four
        heads of queries share one head of keys? It keeps a quarter [@gqa]; this is *grouped-query
        attention*. What is computed is attention as ever, with keys and values repeated, only that
        nobody repeats them:
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
        Every head of queries still scores every token: those products cost what they did. What gets
        smaller are two of the four matrices, and the memory of keys and values.
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
        few, all_ = (replace(LLAMA_3_8B, kv_heads=heads) for heads in (key_heads, 32))
        weights = [sum(math.prod(matrices(c)[m]) for m in ("query", "key", "value", "out"))
                   for c in (few, all_)]
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
    """SwiGLU has three matrices where there were two, so they are made narrower."""
    note(r"""
        What does a gate cost? The feed-forward part was: a matrix up to the width $4d$, a
        nonlinearity, a matrix down. SwiGLU has two matrices up, one of which decides how much of
        the other passes, through SiLU, a number times its sigmoid [@swiglu].
    """)
    part, x = SwiGLU(SMALL).double(), torch.randn(3, 5, 64).double()
    gate, up = part.gate(x), part.up(x)
    passed = gate * gate.sigmoid() * up  # @inspect passed.shape
    assert torch.allclose(part(x), part.down(passed)), "the code is this"
    note(r"""
        Three matrices of width $h$ weigh as much as two of width $4d$ if $h$ is $\tfrac{8}{3}d$.
        Llama-2-7B rounds that up to a multiple of 256; Llama-3-8B multiplies by $1.3$ first, and
        rounds up to one of 1024 [@llama-code].
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
             answer=rounded(8 * 5120 / 3, 256), check=54 * 256)


def each_matrix_costs_two_flops_per_weight() -> None:
    """Each matrix costs two FLOPs per weight and token, and the counter agrees matrix by matrix."""
    note(r"""
        What does a token cost in each of the seven matrices of a block? `FlopCounterMode` counts,
        from the shapes of every product, what each module would compute. Beside it, what the shapes
        of the weights say: rows times columns, times two, times tokens. Nothing is allocated; the
        model lives on `meta`.
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
    note("A product and a sum for each of these weights, then:")
    weights = {n: by_hand[n] // (2 * tokens) for n in by_hand}  # @inspect weights
    assert sum(weights.values()) == block_weights(config), "those of the block"
    note(r"""
        Attention's own products, scores and weighted sums, belong to no matrix. They are the rest
        of the count, nearly half of which the mask then throws away:
    """)
    rest = found["Global"] - sum(by_hand.values())  # @inspect rest as FLOP
    assert rest == 2 * 2 * tokens * tokens * config.width, "two products"
    share = rest / found["Global"]  # @inspect share as %
    assert 0.071 < share < 0.072, "at this length"
    note(r"""
        Norms, rotations, the softmax and the multiplication by the gate are in no count. They are a
        few operations per number, where a matrix does thousands; in *time* they are not free.
    """)
    question("Another token passes through a block of Llama-3-8B. How many FLOPs do its seven matrices take?",
             answer=2 * block_weights(config), check=sum(by_hand.values()) // tokens, unit="FLOP")


@aside
def a_counter_may_overlook_attention() -> None:
    """A counter that does not know a kernel reports nothing for it."""
    note(r"""
        The same model, once with attention written out and once in one call. The numbers agree; the
        bills do not.
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
        It counts the operations on its list. The fused kernel that PyTorch runs on a CPU is not on
        it, and there attention costs nothing, it says. The fused kernels for CUDA are. Count with
        attention written out, or on a device whose kernel you know.
    """)
    question("What does the counter say for one sequence of `32` tokens through the written model?",
             answer=flops(lambda: written(torch.zeros(1, 32, dtype=torch.int64))), check=formula / 3, unit="FLOP")


def published_counts_follow_from_eight_numbers() -> None:
    """Published parameter counts follow, to the last digit, from a handful of numbers."""
    note(r"""
        The whole model has a table of a row for each token of the vocabulary at one end, the
        embedding, and one of the same shape at the other, the head. With $L$ blocks, a vocabulary
        of $V$ and biases $b$ where a block has any, it has

        [@eq:parameters]: $$
        P = L\,(2d^2 + 2\,d\,d_{kv} + 3\,d\,h + 2d + b) + d + 2Vd
        $$

        parameters, or $Vd$ fewer where one table serves at both ends. If the block above really is
        that of Llama, Mistral and Qwen2.5, this must give their published sizes exactly. Four
        models, as their `config.json` describes them
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
        Two details decide the last one. Qwen's queries, keys and values have biases, and its small
        models use one matrix for embedding and head. With one of its own the head would be counted
        twice:
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
    """, answer=parameter_count(LLAMA_3_70B), check=70_553_706_496, unit="parameters")
