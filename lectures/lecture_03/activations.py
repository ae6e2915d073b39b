"""What a block keeps for the backward pass, in bytes per token, and what recomputing saves."""
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from counters import Alive, Watching, flops, flops_by_operation, saved_bytes_of
from einops import rearrange
from jaxtyping import Float
from timing import one_thread
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from units import GB

from litbook import aside, figure, misbelief, note, question

from .block import Block, How, RMSNorm, Transformer, turns
from .counts import Config, activation_bytes
from .figures import plot_lines
from .published import LLAMA_2_7B, LLAMA_3_8B, SMALL


def the_activations_of_a_block() -> None:
    """The activations of a block."""
    note(r"""
        A training step keeps *activations*: results of the forward pass that the backward pass
        needs. Parameters, gradients and moments take the same memory however long the text is.
        Activations grow with every token, and with written-out attention even with every *pair* of
        tokens. So activations decide how large a batch can be. How many bytes does a token leave in
        a layer?
    """)
    a_published_formula_counts_thirty_four_bytes()
    the_block_of_today_keeps_other_tensors()
    a_norm_in_pieces_keeps_float32_copies()
    written_attention_keeps_a_weight_per_pair()
    checkpointing_keeps_the_input_alone()
    memory_can_grow_with_the_root_of_the_depth()
    recomputing_attention_alone_is_nearly_free()
    logits_weigh_as_much_as_layers()


class PaperBlock(nn.Module):
    """The block whose activations Korthikanti et al. count: LayerNorm, GELU, biases, three dropouts."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Float[Tensor, "b s d"]) -> Tensor:
        split, a = "b s (n a c) -> n b a s c", self.heads
        q, k, v = rearrange(self.qkv(self.norms[0](x)), split, n=3, a=a)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        mixed = dropped(scores.softmax(dim=-1)) @ v
        x = x + dropped(self.out(rearrange(mixed, "b a s c -> b s (a c)")))
        return x + dropped(self.down(F.gelu(self.up(self.norms[1](x)))))


def dropped(x: Tensor) -> Tensor:
    """Dropout that keeps one byte a number, as CUDA's does; on a CPU `F.dropout` would keep as many as `x` has."""
    y: Tensor = torch.native_dropout(x, 0.1, True)[0]
    return y


@one_thread()
def kept_per_token(
    block: nn.Module, width: int, batch: int, context: int, head: int = 0
) -> float:
    """Bytes that a block in bfloat16 keeps for each token; `head` where it wants rotations, too."""
    block, shape = block.bfloat16(), (batch, context, width)
    x = torch.randn(shape, dtype=torch.bfloat16, requires_grad=True)
    given = [turns(head, context, like=x)] if head else []
    known = [*block.parameters(), *given]
    return saved_bytes_of(lambda: block(x, *given), known) / (batch * context)


def a_published_formula_counts_thirty_four_bytes() -> None:
    """A dense block of GPT-3's shape keeps 34 bytes per token and width, and five per head and pair."""
    note(r"""
        A paper of 2022 counted the activations of the block that GPT-3 used [@korthikanti2022].
        With $s$ tokens in each of $b$ sequences, $a$ heads and width $h$, a layer keeps
        $34\,sbh + 5\,as^2b$ bytes in a 16-bit format [@korthikanti2022]. (These letters are the
        paper's: its $h$ is the width, which this lecture calls $d$.) The formula adds up a list, in
        which a number that the backward pass needs takes two bytes, and a place of a dropout mask
        one byte [@korthikanti2022]. Here is the list:
    """)
    linear = {
        "inputs of the norms": 2 + 2, "input of queries, keys, values": 2,
        "queries, keys, values": 2 + 2 + 2, "input of out": 2, "two masks": 1 + 1,
        "input of up": 2, "input of GELU": 8, "input of down": 8,
    }
    square = {"softmax": 2, "mask": 1, "what the mask left": 2}
    assert sum(linear.values()) == 34, "per token and number of width"
    assert sum(square.values()) == 5, "per head and pair"
    note("Is the formula right? `PaperBlock` is that block. Run it, and add up the bytes that autograd keeps:")
    sizes = (64, 4, 2, 32), (64, 8, 2, 32), (96, 4, 3, 48)  # @inspect sizes
    exact = [34 * h + 5 * a * s for h, a, _, s in sizes]  # @inspect exact as B
    found = [kept_per_token(PaperBlock(h, a), h, b, s) for h, a, b, s in sizes]
    over = [f - e for f, e in zip(found, exact)]  # @inspect over as B
    assert over == [8.0] * 3, "the formula, and two means and two deviations"
    note(r"""
        A little more is kept: each norm also keeps a mean and a deviation for every token. The
        paper leaves them out, because they are so few. On a processor each takes `2` bytes. A card
        keeps them in `float32`. The device `meta` knows the formats of a card's kernels, and can be
        asked:
    """)
    x = torch.empty(2, 32, 64, dtype=torch.bfloat16, device="meta")
    _, mean, deviation = torch.native_layer_norm(x, [64], None, None, 1e-5)
    on_card = 2 * (mean.nbytes + deviation.nbytes) / (2 * 32)  # @inspect on_card as B
    assert on_card == 16.0, "for a token, on a card"
    note(r"""
        GPT-3 has `96` heads, width `12288`, and reads `2048` tokens [@gpt3]. The paper takes all
        its layers as dense. Then the second term, of attention's pairs, is much larger than the
        first. (GPT-3 itself alternates dense attention with one that looks at fewer pairs [@gpt3].)
    """)
    h, a, s = 12288, 96, 2048
    share = 5 * a * s / (34 * h + 5 * a * s)  # @inspect share as %
    assert round(share, 2) == 0.70, "is kept by attention's weights"
    question("From how many tokens on does the second term outweigh the first in GPT-3?",
             answer=next(s for s in range(1, 9999) if 5 * a * s > 34 * h), check=34 * 12288 // (5 * 96) + 1, unit="tokens",
             why="GPT-3 was trained on more than twice as many at a time.")


def the_block_of_today_keeps_other_tensors() -> None:
    """Of what a block of today keeps, two thirds belong to its feed-forward part."""
    note(r"""
        What does a block of today keep? It has no dropout masks, and its keys and values are
        narrow. Its feed-forward part keeps more: four tensors of the inner width instead of two.
        They are the gate, its SiLU, the result of the matrix up, and the product of these two. The
        whole list, in `bfloat16`, for each token in one layer:

        - each norm keeps its input and one number, $2d + 4$ bytes;
        - the projections, `out`, and gate with up keep an input each, $6d$;
        - attention keeps queries, keys and values, $2d + 4d_{kv}$,
        - and if it is fused one `float32` for each of $a$ heads, $4a$; if not, a weight for each of
          the $T$ tokens of the text, $2aT$;
        - the feed-forward part keeps $8h$.

        With fused attention, and without the few numbers of norms and heads, that is

        [@eq:activations]: $$
        \text{bytes a token leaves in a layer} \approx 12\,d + 4\,d_{kv} + 8\,h
        $$
    """)
    rounded = 12 * SMALL.width + 4 * SMALL.kv_width + 8 * SMALL.hidden
    d, kv, h, a = SMALL.width, SMALL.kv_width, SMALL.hidden, SMALL.heads
    listed = 2 * (2 * d + 4) + 6 * d + (2 * d + 4 * kv) + 8 * h + 4 * a  # @inspect listed as B
    assert listed == activation_bytes(SMALL, SMALL.context) == 2152, "fused"
    assert listed - rounded == 2 * 4 + 4 * a, "and the few numbers"
    note(r"""
        Compare the formula with what autograd keeps. The norms of this block keep exactly what the
        list says; the aside below shows that not all norms do:
    """)

    def kept(config: Config, context: int, how: How) -> float:
        block = with_lean_norms(Block(config, how))
        return kept_per_token(block, config.width, 2, context, config.head)

    wide = Config(1, 96, 6, 3, 200, 100, 64)
    cases = (SMALL, 32), (SMALL, 64), (wide, 16)
    found = [kept(c, s, "fused") for c, s in cases]  # @inspect found as B
    exact = [activation_bytes(c, s) for c, s in cases]
    assert found == exact, "fused: to the byte"
    found = [kept(c, s, "written") for c, s in cases]  # @inspect found as B
    exact = [activation_bytes(c, s, fused=False) for c, s in cases]
    assert found == exact, "written out: to the byte"
    note(r"""
        Divided by the width, a block of Llama-3-8B keeps more than the paper's block, even without
        attention's weights. The cause is not a wider feed-forward part: it is narrower. The cause
        is the number of tensors of that width. Here four are kept. In the paper's block only two
        are, the input of GELU and its result:
    """)
    each = activation_bytes(LLAMA_3_8B, 8192) / LLAMA_3_8B.width  # @inspect each as B
    assert 41 < each < 41.1, "instead of 34"
    inner = LLAMA_3_8B.hidden / LLAMA_3_8B.width  # @inspect inner
    assert inner == 3.5, "times the width, where the paper's block has 4"
    four, two = 4 * 2 * inner, 2 * 2 * 4  # @inspect four, two as B
    assert four - two == 12, "bytes more"
    fewer = each - four / 2  # @inspect fewer as B
    assert 27 < fewer < 27.1, "with two such tensors it would keep less than 34"
    older = activation_bytes(LLAMA_2_7B, 4096) / LLAMA_2_7B.width  # @inspect older as B
    assert 37.5 < older < 37.6, "more than 34, too, with 2.7 times d"
    share = 8 * LLAMA_3_8B.hidden / activation_bytes(LLAMA_3_8B, 8192)  # @inspect share as %
    assert 0.68 < share < 0.69, "in gate, SiLU, up and product"
    question(r"""
        How many bytes does a token leave in all `32` layers of Llama-3-8B, with fused attention?
    """, answer=32 * activation_bytes(LLAMA_3_8B, 8192),
        check=32 * (2 * (2 * 4096 + 4) + 6 * 4096 + 2 * 4096 + 4 * 1024 + 4 * 32 + 8 * 14336), unit="B",
        why="The bytes of one layer, as the formula lists them, times the layers.")


class LeanNorm(torch.autograd.Function):
    """RMSNorm that keeps its input and one number a token, and computes the rest again on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gain: Tensor, eps: float) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scale = (wide.square().mean(dim=-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, gain, scale)
        return (wide * scale * gain).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, gain, scale = ctx.saved_tensors
        unit, pulled = x * scale, grad * gain
        along = (pulled * unit).mean(dim=-1, keepdim=True)
        to_gain = (grad * unit).flatten(0, -2).sum(dim=0)
        to_x = scale * (pulled - unit * along)
        return to_x.to(x.dtype), to_gain.to(gain.dtype), None


class Lean(RMSNorm):
    """An RMSNorm with the same result that keeps less."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = LeanNorm.apply(x, self.gain, self.eps)
        return y


def with_lean_norms(block: Block) -> Block:
    """The same block with norms that keep their input and one number a token."""
    block.before_attention = Lean(len(block.before_attention.gain))
    block.before_feed_forward = Lean(len(block.before_feed_forward.gain))
    if isinstance(block.attention.query_norm, RMSNorm):
        head = block.attention.head
        block.attention.query_norm = Lean(head)
        block.attention.key_norm = Lean(head)
    return block


@aside
def a_norm_in_pieces_keeps_float32_copies() -> None:
    """A norm that runs as several operations keeps float32 copies, more than fused attention keeps."""
    note(r"""
        A norm computes next to nothing. Can it still keep more for the backward pass than
        attention? A norm of `bfloat16` numbers computes in `float32`, because its sum would lose
        digits otherwise. If PyTorch has one kernel for the norm, that kernel keeps its input and
        one `float32` for each token, and computes the rest again. If not, PyTorch runs single
        operations: convert, square, divide, convert back. Autograd then keeps what passes between
        them, and that is two copies in `float32`. `Lean` is a norm that keeps only what the kernel
        keeps:
    """)
    x = torch.randn(4, 8, 64, dtype=torch.float64, requires_grad=True)
    pieces, lean = RMSNorm(64).double(), Lean(64).double()
    assert torch.allclose(lean(x), pieces(x)), "the same result"

    def gradients(norm: RMSNorm) -> Tensor:
        both = torch.autograd.grad(norm(x).sin().sum(), [x, norm.gain])
        return torch.cat([g.flatten() for g in both])

    theirs = gradients(pieces)
    assert torch.allclose(gradients(lean), theirs), "the same gradients"
    kept = [kept_per_token(n, 64, 2, 16) for n in (RMSNorm(64), Lean(64))]
    in_pieces = (kept[0] - 4) / 64  # @measure in_pieces as B
    in_one = (kept[1] - 4) / 64  # @inspect in_one as B
    assert in_one == 2.0, "bytes a number in one piece"
    assert in_pieces >= in_one, "and where it runs as operations, no less"
    config = LLAMA_3_8B
    with_pieces = activation_bytes(config, 8192, norm=8)  # @inspect with_pieces as B
    more = with_pieces / activation_bytes(config, 8192) - 1  # @inspect more as %
    assert 0.29 < more < 0.30, "more for the whole block"
    note(r"""
        Compare the two norms of a block with all that fused attention keeps: queries, keys and
        values, and a `float32` for each head:
    """)
    norms = 2 * (8 * config.width + 4)
    attention = 2 * config.width + 4 * config.kv_width + 4 * config.heads
    assert 5.2 < norms / attention < 5.3, "times what its attention keeps"
    note(r"""
        PyTorch has such a kernel for CUDA and none for the CPU. `activation_bytes` assumes the
        kernel; without one, call it with `norm=8`.
    """)
    question(rf"""
        How many bytes do the two norms of a block of Llama-3-8B, `{config.width}` wide, keep for
        each token if they run in pieces?
    """, answer=norms, check=2 * (in_pieces * 4096 + 4) if in_pieces == 8 else None, unit="B",
        why="Two norms, each with `8` bytes for each number and a `float32` for the token.")


def written_attention_keeps_a_weight_per_pair() -> None:
    """Written-out attention keeps a weight for every pair of tokens; fused attention keeps none."""
    note(r"""
        Which activations grow faster than the text? Those of attention. Its *weights*, the softmax
        of the scores, are one number for each head and each pair of tokens. The backward pass needs
        them. Written-out attention keeps them all. A fused kernel keeps one number for each head
        and token, and computes the weights again from that, piece by piece [@dao2022]. Let the
        context grow, and weigh both:
    """)
    contexts = [16, 32, 64, 128]

    def kept(context: int, how: How) -> float:
        block = with_lean_norms(Block(SMALL, how))
        return kept_per_token(block, SMALL.width, 1, context, SMALL.head)

    written = [kept(s, "written") for s in contexts]  # @inspect written as B
    fused = [kept(s, "fused") for s in contexts]  # @inspect fused as B
    assert max(fused) == min(fused), "per token, at any length"
    growth = [w - f for w, f in zip(written, fused)]  # @inspect growth as B
    per_pair = [(g / SMALL.heads + 4) / s for g, s in zip(growth, contexts)]
    assert per_pair == [2.0] * 4, "bytes per head and pair"
    note("Llama-3-8B was trained on `8192` tokens at a time [@llama3]. One layer, one sequence:")
    s = LLAMA_3_8B.context
    layer = s * activation_bytes(LLAMA_3_8B, s)  # @inspect layer as B
    out = s * activation_bytes(LLAMA_3_8B, s, fused=False)  # @inspect out as B
    assert 4.1 < out / layer < 4.2, "times as much, written out"
    lengths = [2**n for n in range(9, 18)]
    lines = {
        "written out": [activation_bytes(LLAMA_3_8B, n, fused=False) for n in lengths],
        "fused": [activation_bytes(LLAMA_3_8B, n) for n in lengths],
        "only the input": [2 * LLAMA_3_8B.width for _ in lengths],
    }
    least = lines["fused"][0] / lines["only the input"][0]  # @inspect least as times
    assert 20 < least < 21, "what the input alone would take"
    figure(plot_lines(lengths, lines, "tokens in the sequence", "bytes per token and layer", log=True),
        caption=r"""
            What a token leaves in a layer of Llama-3-8B. Written-out attention keeps what grows
            with the context; the two other ways do not.
        """, alt=r"""
            Three curves against the length of the sequence. The one of written-out attention bends
            upwards and rises more than fortyfold, the one of fused attention is level, and far
            below lies the level line of a layer that keeps its input alone.
        """)
    question(r"""
        At `131072` tokens, how many times as much does written-out attention keep in a layer of
        Llama-3-8B as fused attention?
    """, answer=lines["written out"][-1] / lines["fused"][-1],
        check=1 + 32 * (2 * 131072 - 4) / (12 * 4096 + 4 * 1024 + 8 * 14336 + 8 + 4 * 32),
        unit="times", within=0.05, why=r"""
            Each of `32` heads keeps a weight of `2` bytes for each of the `131072` tokens. Fused
            attention keeps `4` bytes for each head instead.
        """)


def checkpointing_keeps_the_input_alone() -> None:
    """A checkpointed block keeps its input alone, and is computed once more."""
    note(r"""
        Activations that are not kept can be computed again. This is *activation checkpointing*
        [@chen2016]. PyTorch's `checkpoint` runs a block and keeps only its input. When the backward
        pass reaches the block, it runs once more from that input:
    """)
    block = Block(SMALL).bfloat16()
    x = torch.randn(2, 32, 64, dtype=torch.bfloat16, requires_grad=True)
    turn = turns(SMALL.head, 32, like=x)

    def again(x: Tensor) -> Tensor:
        y: Tensor = checkpoint(block, x, turn, use_reentrant=False)
        return y

    kept = saved_bytes_of(lambda: again(x), [*block.parameters(), turn])  # @inspect kept as B
    assert kept == x.nbytes == 2 * 64 * (2 * 32), "the input"
    expected, = torch.autograd.grad(block(x, turn).sum(), x)
    found, = torch.autograd.grad(again(x).sum(), x)
    assert torch.equal(found, expected), "the same gradient, bit for bit"
    note("The price is another forward pass, or nearly. For a block of Llama-3-8B with a long sequence, on `meta`:")
    with torch.device("meta"):
        large = Block(LLAMA_3_8B, "written")
        x = torch.empty(1, 4096, 4096, requires_grad=True)
        turn = turns(LLAMA_3_8B.head, 4096)
    forward = flops(lambda: large(x, turn))  # @inspect forward as FLOP
    usual = flops(lambda: large(x, turn).sum().backward())  # @inspect usual as FLOP
    assert usual == 3 * forward, "one pass forward, two back"
    run = partial(checkpoint, large, x, turn, use_reentrant=False)
    twice = flops(lambda: run().sum().backward())  # @inspect twice as FLOP
    more = twice / usual - 1  # @inspect more as %
    assert 0.25 < more < 0.26, "more FLOPs"
    misbelief("Checkpointing every block costs a third more.", r"""
        A third would be the whole forward pass. PyTorch computes less again: it stops when it has
        the last tensor that the backward pass needs. The result of `down`, the last product of a
        block, is not needed, so that product does not run again.
    """)
    down = 2 * 4096 * LLAMA_3_8B.hidden * LLAMA_3_8B.width  # @inspect down as FLOP
    assert twice - usual == forward - down, "without its last product"
    saved = activation_bytes(LLAMA_3_8B, 4096) / (2 * 4096)  # @inspect saved
    assert 20 < saved < 21, "times less than with fused attention"
    note(r"""
        Two things still take memory. The inputs of all blocks are kept, so memory still grows with
        the number of layers. And while a block is computed again, all its activations are there,
        those of one block at a time.
    """)
    question(r"""
        Every block of Llama-3-8B is checkpointed. How many bytes do the inputs of its `32` blocks
        take for one sequence of `8192` tokens?
    """, answer=32 * 2 * 4096 * 8192, check=2 * 2**30, unit="B", why="A number takes `2` bytes, and each block keeps its input.")


def kept_all(layers: int, x: Tensor) -> Tensor:  # @stepover
    """A row of layers as they are: each keeps its input."""
    for _ in range(layers):
        x = x.sin()
    return x


def kept_in_segments(layers: int, x: Tensor) -> Tensor:
    """The same row in as many segments as each has layers; a segment keeps its input alone."""
    size = math.isqrt(layers)
    for _ in range(layers // size):
        x = checkpoint(kept_all, size, x, use_reentrant=False)
    return x


class KeptNone(torch.autograd.Function):
    """The same row; on the way back each layer's input is computed anew from the very first one."""

    @staticmethod
    def forward(ctx: Any, layers: int, x: Tensor) -> Tensor:
        ctx.layers = layers
        ctx.save_for_backward(x)
        return kept_all(layers, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        x, = ctx.saved_tensors
        for before in reversed(range(ctx.layers)):
            grad = grad * kept_all(before, x).cos()
        return None, grad


class Forwards(Watching):
    """Counts how often a layer of these rows runs forward."""

    count = 0

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        self.count += operation is torch.ops.aten.sin.default


def peak_and_forwards(  # @stepover
    row: Callable[[int, Tensor], Tensor], layers: int
) -> tuple[float, int]:
    """Of a step through a row of layers: tensors alive at once, at most, and forward passes of a layer."""
    x = torch.randn(1000, requires_grad=True)
    with Alive() as alive:
        row(layers, x).sum().backward()
    with Forwards() as forwards:
        row(layers, x).sum().backward()
    return alive.most / x.nbytes, forwards.count


@aside
def memory_can_grow_with_the_root_of_the_depth() -> None:
    """What layers keep can grow with their number, with its root, or not at all."""
    note(r"""
        How little memory can a deep model do with? Take a row of $L$ equal layers, here sines, each
        of which needs its input for the backward pass. There are three ways:

        - keep every input: memory grows with $L$, and each layer runs once;
        - keep the input of every $\sqrt{L}$-th layer: on the way back, one segment of $\sqrt{L}$
          layers at a time runs again [@chen2016]. Memory grows with $\sqrt{L}$, and each layer runs
          about twice;
        - keep the first input alone: for each layer everything before it runs again. Memory does
          not grow, and the row runs about $L^2/2$ layers.
    """)
    x = torch.randn(1000).double().requires_grad_()
    rows = kept_all, kept_in_segments, KeptNone.apply
    gradients = [torch.autograd.grad(row(16, x).sum(), x)[0] for row in rows]
    assert all(torch.allclose(g, gradients[0]) for g in gradients), \
        "the same gradient"
    note("The most tensors alive at once, and how often a layer runs forward, for `4`, `16` and `64` layers:")
    depths = [4, 16, 64]
    every, segments, none = (
        [peak_and_forwards(row, n) for n in depths] for row in rows)
    named = {"every": every, "segments": segments, "none": none}
    peaks = {name: [round(p) for p, _ in row] for name, row in named.items()}  # @inspect peaks
    assert 3.5 < every[2][0] / every[1][0] < 4.1, \
        "four times the layers: four times the memory"
    assert 1.7 < segments[2][0] / segments[1][0] < 2.1, "in segments: twice"
    assert none[2][0] == none[0][0] < 5, "and nothing kept: as much as ever"
    runs = [row[2][1] for row in (every, segments, none)]  # @inspect runs
    assert runs[0] == 64, "once each"
    assert runs[1] == 2 * 64 - 8, "once more, but for the last of each segment"
    assert runs[2] == 64 + 64 * 63 // 2, "and all that comes before, each time"
    note(r"""
        Checkpointing every block of a Transformer is in between. What it keeps grows with the
        number of layers. But a block's input is small against what the block makes, so the root is
        seldom needed.
    """)
    question(r"""
        A row of `100` layers is cut into segments of `10`. How many inputs does it keep at most, at
        the segments' starts and within the one that runs again?
    """, answer=10 + 10, check=100 // math.isqrt(100) + math.isqrt(100), unit="inputs", within=0.1,
        why="Longer segments would have fewer starts and more within: with the root both are equal.")


def recomputing_attention_alone_is_nearly_free() -> None:
    """Recomputing attention alone gives back most of the bytes for few of the FLOPs."""
    note(r"""
        Which activations are the cheapest to compute again? Attention's weights: they take the most
        bytes and few FLOPs. So keep queries, keys and values, and compute only the weights again
        [@korthikanti2022]. This is *selective* recomputation:
    """)
    block = with_lean_norms(Block(SMALL, "written"))
    turn = turns(SMALL.head, 128).bfloat16()
    x = torch.randn(1, 128, 64, dtype=torch.bfloat16, requires_grad=True)

    def step() -> None:
        block(x, turn).sum().backward()

    whole = kept_per_token(block, 64, 1, 128, SMALL.head)  # @inspect whole as B
    fused = activation_bytes(SMALL, 128)  # @inspect fused as B
    before = flops(step)  # @inspect before as FLOP
    attend = block.attention.attend
    block.attention.attend = partial(checkpoint, attend, use_reentrant=False)
    selective = kept_per_token(block, 64, 1, 128, SMALL.head)  # @inspect selective as B
    assert whole - selective == 2 * 8 * 128, "the weights are gone"
    assert selective == fused - 4 * 8, "a little less than fused attention"
    extra = flops(step) - before  # @inspect extra as FLOP
    assert extra == 2 * 128 * 128 * 64, "for the scores alone"
    note(r"""
        The paper says that this saves `70%` of GPT-3's activations and costs `2.7%` more FLOPs,
        because both products of attention run a second time [@korthikanti2022]. The first number is
        the share of attention's weights that was found above. Is the second number right? Count one
        layer of GPT-3 on `meta`. The operations called `bmm` are the two products of attention:
    """)
    with torch.device("meta"):
        layer = PaperBlock(12288, 96)
        x = torch.empty(1, 2048, 12288)
    bill = flops_by_operation(lambda: layer(x))  # @inspect bill as FLOP
    forward, again = sum(bill.values()), bill["aten.bmm"]
    of_forward = again / forward  # @inspect of_forward as %
    assert round(of_forward, 3) == 0.027, "of a forward pass"
    of_step = again / (3 * forward)  # @inspect of_step as %
    assert round(of_step, 3) == 0.009, "of a step"
    published = 2048 / (6 * 12288)  # @inspect published as %
    assert round(published, 3) == 0.028, "by the appendix"
    assert round(published / of_step) == 3, "times too much"
    note(rf"""
        So `{of_forward:.1%}` is a share of a forward pass. A step has three passes' worth of FLOPs,
        so its share of a step is a third of that. The paper's appendix prints a factor of
        $1 + s/6h$ for a step [@korthikanti2022]. That adds too much: it is the share of a forward
        pass, as if what is computed again had a backward pass of its own. Where the sums are not
        run again, as above, it is even less. Fused attention makes the same trade: it keeps no
        weights, and computes them again.
    """)
    question(r"""
        What share of a step of GPT-3's layer are both products if the sequence is `8192` tokens
        long? The matrices take $24h^2$ FLOPs per token, attention $4sh$, forward.
    """, answer=4 * 8192 / (3 * (24 * 12288 + 4 * 8192)),
        check=16 * again / (3 * (4 * (forward - again) + 16 * again)), unit="%", within=0.05,
        why="The share grows hardly less than the context did.")


@aside
def logits_weigh_as_much_as_layers() -> None:
    """The logits of a large vocabulary take as much memory as several layers."""
    note(r"""
        After the last block, the head turns each token into *logits*: a score for each token of the
        vocabulary. The vocabulary of Llama-3 has `128256`. The loss takes the softmax of these
        scores in `float32`, and keeps it for the backward pass. How many bytes are that?
    """)

    def kept(vocabulary: int) -> float:
        config = Config(1, 64, 8, 2, 160, vocabulary, 32)
        model = Transformer(config).bfloat16()
        tokens = torch.randint(0, vocabulary, (2, 32))

        def loss() -> Tensor:
            logits = model(tokens).float().flatten(0, 1)
            return F.cross_entropy(logits, tokens.flatten())

        return saved_bytes_of(loss, [*model.parameters()]) / tokens.numel()

    small, large = kept(100), kept(1100)  # @inspect small, large as B
    per_word = (large - small) / 1000  # @inspect per_word as B
    assert per_word == 4.0, "bytes per token and word"
    words, layer = LLAMA_3_8B.vocabulary, activation_bytes(LLAMA_3_8B, 8192)
    layers = per_word * words / layer  # @inspect layers
    assert 3 < layers < 3.1, "layers' worth, for the loss alone"
    held = 8192 * words * per_word  # @inspect held as B
    blocks = 8192 * 32 * layer  # @inspect blocks as B
    assert 0.09 < held / blocks < 0.1, "of what all blocks keep"
    note(r"""
        While the loss is computed, more is there: the logits themselves, their copy in `float32`,
        and the gradients of both.
    """)
    note(r"""
        To save this memory, training code can cut the sequence into pieces before the head, and
        compute loss and gradient for one piece after the other.
    """)
    question(r"""
        How many GB does the softmax of `8192` tokens take in `float32`, with the vocabulary of
        Llama-2, `32000`?
    """, answer=8192 * 32000 * 4 / GB, check=held / 128256 * 32000 / GB, unit="GB",
        why="A number of `4` bytes for each token of the text and each token of the vocabulary.")
