"""What a block keeps for the backward pass, in bytes per token, and what recomputing saves."""
import math
from collections.abc import Callable
from dataclasses import replace
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

from litbook import aside, explore, figure, misbelief, note, question

from .block import Block, How, RMSNorm, Transformer, turns
from .counts import Config, activation_bytes, parameter_count
from .figures import plot_lines
from .published import LLAMA_2_7B, LLAMA_3_70B, LLAMA_3_8B, SMALL


def the_activations_of_a_block() -> None:
    """The activations of a block."""
    note(r"""
        A training step keeps *activations*: results of the forward pass that the backward pass
        needs. Parameters, gradients and the optimizer's averages take the same memory however long
        the text is. Activations grow with every token, and with written-out attention even with
        every *pair* of tokens. So activations decide how large a batch can be. How many bytes does
        one token leave in one layer?
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
    """A block of GPT-3's kind keeps 34 bytes for each token and number of the width, and five for each head and pair of tokens."""
    note(r"""
        A paper of 2022 counted the activations of the block that GPT-3 used [@korthikanti2022].
        That block has LayerNorm, a nonlinearity called GELU, and *dropout*, which sets numbers to
        zero at random and keeps a mask of which. Take $s$ tokens in each of $b$ sequences, $a$
        heads and width $d$. (The paper writes $h$ for the width.) Then a layer keeps
        $34\,sbd + 5\,as^2b$ bytes in a 16-bit format [@korthikanti2022].

        The formula adds up a list. In it, a number that the backward pass needs takes two bytes,
        and a place of a dropout mask takes one [@korthikanti2022]. The first part grows with the
        tokens: so many bytes for each token and each number of its width. Inside the feed-forward
        part a token has $4d$ numbers, so a tensor there counts `8` instead of `2`. The second
        part grows with the pairs of tokens that attention scores, in each head
        [@korthikanti2022]:
    """)
    linear = {
        "inputs of the norms": 2 + 2, "input of queries, keys, values": 2,
        "queries, keys, values": 2 + 2 + 2, "input of out": 2, "two masks": 1 + 1,
        "input of up": 2, "input of GELU": 8, "input of down": 8,
    }
    square = {"softmax": 2, "mask": 1, "what the mask left": 2}
    assert sum(linear.values()) == 34, \
        "These are the bytes for each token and number of its width."
    assert sum(square.values()) == 5, \
        "These are the bytes for each head and pair of tokens."
    note("Is the formula right? `PaperBlock` is that block. `kept_per_token` runs it, and adds up the bytes that autograd keeps, for each token. Three sizes, with width, heads, sequences and tokens:")
    sizes = (64, 4, 2, 32), (64, 8, 2, 32), (96, 4, 3, 48)  # @inspect sizes  # @unnoticed: 2, 3: bytes per token are the same in any batch
    exact = [34 * d + 5 * a * s for d, a, _, s in sizes]  # @inspect exact as B
    assert exact == [2816, 3456, 4224], \
        "The formula gives these bytes for a token."  # @hide
    found = [kept_per_token(PaperBlock(d, a), d, b, s) for d, a, b, s in sizes]  # @inspect found as B
    over = [f - e for f, e in zip(found, exact)]
    assert over == [8.0] * 3, \
        "Autograd keeps 8 bytes more: two means and two deviations, which the paper leaves out."
    x = torch.empty(2, 32, 64, dtype=torch.bfloat16, device="meta")  # @hide
    _, mean, deviation = torch.native_layer_norm(x, [64], None, None, 1e-5)  # @hide
    on_card = 2 * (mean.nbytes + deviation.nbytes) / (2 * 32)  # @hide
    assert on_card == 16.0, "A card would keep these four numbers in float32."  # @hide
    d, a, s = 12288, 96, 2048
    share = 5 * a * s / (34 * d + 5 * a * s)
    assert round(share, 2) == 0.70, \
        "In GPT-3, 70 % is kept for pairs of tokens."
    note(rf"""
        The formula is right, up to {over[0]:.0f} bytes for a token: each of the two norms also
        keeps a mean and a deviation.

        GPT-3 has `96` heads, width `12288`, and reads `2048` tokens [@gpt3]. So a token leaves
        `34 * 12288 + 5 * 96 * 2048` bytes in a layer. {share:.0%} of them are the second term, of
        pairs of tokens. (The paper takes all of GPT-3's layers as dense; GPT-3 itself alternates
        them with layers that look at fewer pairs [@gpt3].)
    """)
    question("GPT-3 has width `12288` and `96` heads. From how many tokens on does the second term, $5as$ bytes for a token, exceed the first, $34d$?",
             answer=next(s for s in range(1, 9999) if 5 * a * s > 34 * d), check=34 * 12288 // (5 * 96) + 1, unit="tokens",
             within=0.01, hint="Set both terms equal, and solve for $s$.",
             wrong={"There are 96 heads: each keeps 5 bytes for a pair.": 34 * 12288 // 5 + 1},
             why="Equal they are at $34d / 5a$ tokens. GPT-3 was trained on more than twice as many at a time.")


def the_block_of_today_keeps_other_tensors() -> None:
    """Of what a block of today keeps, two thirds belong to its feed-forward part."""
    note(r"""
        What does a block of Llama-3 keep for the backward pass? Let $d$ be its width, $d_{kv}$ the
        width of all keys of a token, $h$ the width inside the feed-forward part, and $a$ the number
        of heads. In `bfloat16`, a number takes `2` bytes. Each token leaves in one layer:

        - for two norms, their input and one `float32` each: $2\,(2d + 4)$ bytes;
        - the input of the three matrices of queries, keys and values, the input of the matrix
          `out`, and the input of gate and up: $6d$;
        - queries, keys and values: $2d + 4d_{kv}$;
        - with a fused kernel of attention, one `float32` for each head: $4a$;
        - in the feed-forward part four tensors, $8h$: the gate, its SiLU, the result of the matrix
          up, and the product of the last two.

        Without the few numbers of norms and heads, that is

        [@eq:activations]: $$
        \text{bytes a token leaves in a layer} \approx 12\,d + 4\,d_{kv} + 8\,h
        $$
    """)
    rounded = 12 * SMALL.width + 4 * SMALL.kv_width + 8 * SMALL.hidden
    d, kv, h, a = SMALL.width, SMALL.kv_width, SMALL.hidden, SMALL.heads
    listed = 2 * (2 * d + 4) + 6 * d + (2 * d + 4 * kv) + 8 * h + 4 * a  # @inspect listed as B
    assert listed == activation_bytes(SMALL, SMALL.context) == 2152, \
        "The list gives 2152 bytes for a small block."
    assert listed - rounded == 2 * 4 + 4 * a, \
        "The formula leaves out the few numbers of norms and heads."  # @hide
    note(r"""
        Compare the list with what autograd keeps, for three blocks. `with_lean_norms` makes the
        norms of a block keep what the list says; the aside below shows that not all norms do.
        Written-out attention keeps more: its softmax weights, $2aT$ bytes for a text of $T$ tokens:
    """)

    def kept(config: Config, context: int, how: How) -> float:
        block = with_lean_norms(Block(config, how))
        return kept_per_token(block, config.width, 2, context, config.head)

    wide = Config(1, 96, 6, 3, 200, 100, 64)  # @unnoticed: 100, 64, 1: a block has no vocabulary, context and layers
    cases = (SMALL, 32), (SMALL, 64), (wide, 16)
    found = [kept(c, s, "fused") for c, s in cases]  # @inspect found as B
    exact = [activation_bytes(c, s) for c, s in cases]
    assert exact == [2152, 2152, 2976], \
        "Fused, the formula gives these bytes for a token."  # @hide
    assert found == exact, \
        "With fused attention, the list is right to the byte."
    found = [kept(c, s, "written") for c, s in cases]  # @inspect found as B
    exact = [activation_bytes(c, s, fused=False) for c, s in cases]
    assert exact == [2632, 3144, 3144], \
        "Written out, the formula gives these bytes for a token."  # @hide
    assert found == exact, \
        "Written out, it is right with the softmax weights added."
    each = activation_bytes(LLAMA_3_8B, 8192) / LLAMA_3_8B.width  # @hide
    assert 41 < each < 41.1, \
        "Llama-3-8B keeps so many bytes for each number of its width, instead of 34."  # @hide
    inner = LLAMA_3_8B.hidden / LLAMA_3_8B.width  # @hide
    assert inner == 3.5, \
        "Its feed-forward part is 3.5 times as wide, where the paper's block has 4."  # @hide
    four, two = 4 * 2 * inner, 2 * 2 * 4  # @hide
    assert four - two == 12, \
        "Four tensors of that width keep 12 bytes more than two of the paper's."  # @hide
    fewer = each - four / 2  # @hide
    assert 27 < fewer < 27.1, \
        "With two such tensors it would keep less than 34."  # @hide
    older = activation_bytes(LLAMA_2_7B, 4096) / LLAMA_2_7B.width  # @hide
    assert 37.5 < older < 37.6, "Llama-2-7B keeps more than 34, too."  # @hide
    share = 8 * LLAMA_3_8B.hidden / activation_bytes(LLAMA_3_8B, 8192)  # @inspect share as %
    assert 0.68 < share < 0.69, \
        "In Llama-3-8B, this share is in gate, SiLU, up and product."
    note(rf"""
        In Llama-3-8B, {share:.0%} of the bytes are the four tensors inside the feed-forward part.
        For each number of its width, this block keeps {each:.0f} bytes, where the block of the
        paper keeps 34 [@korthikanti2022]. Its feed-forward part is not wider. But it keeps four
        tensors where the older one keeps two, the input of its nonlinearity and the result.
    """)
    question(r"""
        Llama-3-8B has `32` layers, $d = 4096$, $d_{kv} = 1024$ and $h = 14336$. How many bytes does
        a token leave in all layers, with fused attention? Use the formula with the $\approx$.
    """, answer=32 * (12 * 4096 + 4 * 1024 + 8 * 14336),
        check=32 * (activation_bytes(LLAMA_3_8B, 8192) - 2 * 4 - 4 * 32), unit="B", within=0.02, wrong={
            "That is one layer.": 12 * 4096 + 4 * 1024 + 8 * 14336,
            "Each number takes two bytes; the formula has that in it already.": 2 * 32 * (12 * 4096 + 4 * 1024 + 8 * 14336),
        }, hint="First one layer, then all of them.",
        why="One layer keeps $12d + 4d_{kv} + 8h$ bytes. All layers are alike, so multiply by `32`.")


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
        RMSNorm computes next to nothing. Can it still keep more for the backward pass than
        attention? A norm of `bfloat16` numbers computes in `float32`, because its sum would lose
        digits otherwise. On a GPU, PyTorch has one kernel for the norm. That kernel keeps its input
        and one `float32` for each token, and computes the rest again in the backward pass. On a CPU
        there is no such kernel, and PyTorch runs single operations: convert, square, divide,
        convert back. Autograd keeps what passes between them: two copies of the input in `float32`.
        `Lean` is a norm that keeps only what the kernel keeps:
    """)
    x = torch.randn(4, 8, 64, dtype=torch.float64, requires_grad=True)  # @unnoticed: 4, 8, float64, dtype= dropped: any tokens
    pieces, lean = RMSNorm(64).double(), Lean(64).double()
    assert torch.allclose(lean(x), pieces(x)), \
        "Both norms give the same result."

    def gradients(norm: RMSNorm) -> Tensor:
        both = torch.autograd.grad(norm(x).sin().sum(), [x, norm.gain])
        return torch.cat([g.flatten() for g in both])

    in_parts = gradients(pieces)
    assert torch.allclose(gradients(lean), in_parts), \
        "Both give the same gradients."
    kept = [kept_per_token(n, 64, 2, 16) for n in (RMSNorm(64), Lean(64))]
    in_pieces = (kept[0] - 4) / 64  # @measure in_pieces as B
    in_one = (kept[1] - 4) / 64  # @inspect in_one as B
    assert in_one == 2.0, "In one kernel, a norm keeps 2 bytes for each number."
    assert in_pieces >= in_one, "As single operations, it keeps no less."
    config = LLAMA_3_8B
    with_pieces = activation_bytes(config, 8192, norm=8)
    more = with_pieces / activation_bytes(config, 8192) - 1  # @inspect more as %
    assert 0.29 < more < 0.30, \
        "With norms in pieces, a block of Llama-3-8B keeps 29 % more."
    norms = 2 * (8 * config.width + 4)  # @inspect norms as B
    # Queries in bfloat16, keys and values, and one float32 for each head:
    attention = 2 * config.width + 4 * config.kv_width + 4 * config.heads  # @inspect attention as B
    assert round(norms / attention, 2) == 5.28, \
        "In pieces, its norms keep 5.28 times what fused attention keeps."
    note(rf"""
        Two copies in `float32` are `8` bytes for each number, instead of the `2` of the kernel. So
        in pieces the two norms of a block of Llama-3-8B keep {norms / attention:.1f} times as much
        as its fused attention, and the whole block keeps {more:.0%} more.
    """)
    other = replace(config, width=2048)
    question(r"""
        Another block is `2048` wide and has two norms, on numbers in `bfloat16`. How many bytes
        fewer does it keep for a token if each norm runs in one kernel, and not in pieces?
    """, answer=2 * (8 - 2) * 2048, check=activation_bytes(other, 8192, norm=8) - activation_bytes(other, 8192), unit="B", wrong={
            "The block has two norms.": (8 - 2) * 2048,
            "The kernel still keeps its input.": 2 * 8 * 2048,
        }, hint="How many bytes for each number does a norm keep in pieces, and how many in one kernel?",
        why="In pieces a norm keeps two copies in `float32`, `8` bytes for each number. In one kernel it keeps its input, `2` bytes. The `float32` for the token is kept both ways.")


def written_attention_keeps_a_weight_per_pair() -> None:
    """Written-out attention keeps a weight for every pair of tokens; fused attention keeps none."""
    note(r"""
        Which activations of a block grow faster than the text? The softmax weights of attention:
        there is one for each head and each pair of tokens, and the backward pass needs them.
        Written-out attention keeps them all. A fused kernel keeps one `float32` for each head and
        token, and computes the weights again from that, piece by piece [@dao2022]. Let the context
        of a small block with `8` heads grow, and add up what autograd keeps for each token:
    """)
    contexts = [16, 32, 64, 128]

    def kept(context: int, how: How) -> float:
        block = with_lean_norms(Block(SMALL, how))
        return kept_per_token(block, SMALL.width, 1, context, SMALL.head)

    written = [kept(s, "written") for s in contexts]  # @inspect written as B
    fused = [kept(s, "fused") for s in contexts]  # @inspect fused as B
    assert max(fused) == min(fused), \
        "Fused, a token keeps the same at any length."
    growth = [w - f for w, f in zip(written, fused)]
    assert growth == [224, 480, 992, 2016], \
        "Written out, a token keeps these bytes more."  # @hide
    per_pair = [(g / SMALL.heads + 4) / s for g, s in zip(growth, contexts)]
    assert per_pair == [2.0] * 4, \
        "Written out, each head keeps 2 bytes for each pair of tokens."
    s = LLAMA_3_8B.context
    layer = s * activation_bytes(LLAMA_3_8B, s)  # @inspect layer as B
    out = s * activation_bytes(LLAMA_3_8B, s, fused=False)  # @inspect out as B
    assert 4.1 < out / layer < 4.2, \
        "Written out, a layer of Llama-3-8B keeps so many times as much."
    note(rf"""
        Written out, a token keeps `2` bytes for each head and each other token of its text. Fused,
        it keeps the same at any length. Llama-3-8B was trained on `8192` tokens at a time
        [@llama3]. For one such sequence, one layer keeps {out / 1e9:.1f} GB with written-out
        attention, and {layer / 1e9:.1f} GB with fused attention.
    """)
    lengths = [2**n for n in range(9, 18)]  # @hide
    lines = {
        "written out": [activation_bytes(LLAMA_3_8B, n, fused=False) for n in lengths],
        "fused": [activation_bytes(LLAMA_3_8B, n) for n in lengths],
        "only the input": [2 * LLAMA_3_8B.width for _ in lengths],
    }  # @hide
    least = lines["fused"][0] / lines["only the input"][0]  # @hide
    assert 20 < least < 21, \
        "Fused attention keeps so many times what the input of a layer alone takes."  # @hide
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
        Llama-3-8B has `32` heads, and with fused attention a token leaves `168072` bytes in a
        layer. The text has `131072` tokens. How many times as much does a token leave with
        written-out attention? (Leave out the `float32` of a fused kernel: it is too small to
        matter.)
    """, answer=lines["written out"][-1] / lines["fused"][-1],
        check=1 + 32 * (2 * 131072 - 4) / (12 * 4096 + 4 * 1024 + 8 * 14336 + 8 + 4 * 32),
        unit="times", within=0.05, wrong={
            "That is the weights alone: the rest is kept too.": 32 * 2 * 131072 / 168072,
            "A weight takes two bytes.": 1 + 32 * 131072 / 168072,
        }, hint="How many bytes are the softmax weights of one token?", why=r"""
            Each of `32` heads keeps `2` bytes for each of the `131072` tokens. That comes on top of
            what fused attention keeps.
        """)


def checkpointing_keeps_the_input_alone() -> None:
    """A checkpointed block keeps its input alone, and is computed once more."""
    note(r"""
        Activations that are not kept can be computed again. This is *activation checkpointing*
        [@chen2016]. PyTorch's `checkpoint` runs a block and keeps only its input. When the backward
        pass reaches the block, the block runs once more from that input. Add up the bytes that
        autograd keeps for a small block and two sequences of `32` tokens:
    """)
    block = Block(SMALL).bfloat16()
    x = torch.randn(2, 32, 64, dtype=torch.bfloat16, requires_grad=True)
    turn = turns(SMALL.head, 32, like=x)

    def again(x: Tensor) -> Tensor:
        y: Tensor = checkpoint(block, x, turn, use_reentrant=False)
        return y

    kept = saved_bytes_of(lambda: again(x), [*block.parameters(), turn])  # @inspect kept as B
    assert kept == x.nbytes == 2 * 64 * (2 * 32), \
        "Autograd keeps the bytes of the input, no more."
    expected, = torch.autograd.grad(block(x, turn).sum(), x)
    found, = torch.autograd.grad(again(x).sum(), x)
    assert torch.equal(found, expected), \
        "The gradient is the same, bit for bit."
    note("What does it cost? Count the FLOPs of a block of Llama-3-8B with `4096` tokens, on `meta`: a forward pass, a usual step, and a step with checkpointing.")
    with torch.device("meta"):
        large = Block(LLAMA_3_8B, "written")
        x = torch.empty(1, 4096, 4096)
        turn = turns(LLAMA_3_8B.head, 4096)
    forward = flops(lambda: large(x, turn))  # @inspect forward as FLOP
    usual = flops(lambda: large(x, turn).sum().backward())  # @inspect usual as FLOP
    assert usual == 3 * forward, \
        "A usual step takes three times the FLOPs of a forward pass."
    run = partial(checkpoint, large, x, turn, use_reentrant=False)
    twice = flops(lambda: run().sum().backward())  # @inspect twice as FLOP
    more = twice / usual - 1  # @inspect more as %
    assert 0.25 < more < 0.26, "Checkpointing takes 26 % more FLOPs."
    down = 2 * 4096 * LLAMA_3_8B.hidden * LLAMA_3_8B.width
    assert twice - usual == forward - down, \
        "What runs again is the forward pass without its last product."
    misbelief("Checkpointing every block costs a third more.", rf"""
        It costs {more:.0%} more here. A third would be the whole forward pass. But the result of
        the last product of a block, `down`, is not needed in the backward pass, so PyTorch stops
        before it.
    """)
    saved = activation_bytes(LLAMA_3_8B, 4096) / (2 * 4096)
    assert 20 < saved < 21, \
        "Without checkpointing, fused attention keeps 21 times as much."
    note(rf"""
        For that price, a token keeps {saved:.0f} times less in each layer than with fused attention
        and no checkpointing. Two things still take memory. The inputs of all blocks are kept, so
        memory grows with the number of layers. And while a block is computed again, all activations
        of this one block are there.
    """)
    note(r"""
        Does Llama-3-70B fit? Sharding divides its state by the number of cards, AdamW with a
        `float32` master copy at `16` bytes a parameter. It does not divide the activations of a
        sequence of `8192` tokens.
    """)
    config = LLAMA_3_70B
    whole = activation_bytes(config, 8192) * 8192  # of a block and a sequence

    def on_a_card(cards: int, activations_kept: str) -> dict[str, float]:
        inputs = 2 * config.width * 8192 * config.layers
        everything = activations_kept == "all"
        activations = config.layers * whole if everything else inputs + whole
        return {
            "state per card (parameters, gradients, moments)": 16 * parameter_count(config) / cards,
            "activations per card": activations,
        }

    fits = explore(on_a_card, over={
        "cards": [2**i for i in range(3, 11)], "activations_kept": ["all", "inputs of blocks"],
    },
        at={"cards": 8, "activations_kept": "all"}, kind="stack", unit="B", limit=("memory of one H100", 80 * GB),
        do="Make the bar end before the dashed mark. With which settings does the model fit, and what does each slider change?",
        see=r"""
            With `1024` cards the state is about a gigabyte a card, and the activations of one
            sequence still need more than two cards. Checkpointed, they fit beside the state of
            `32`.
        """,
        caption="What one card keeps of Llama-3-70B: its share of the state, and the activations of one sequence of `8192` tokens.",
        alt="A bar of two parts, state and activations, beside the memory of one card.")  # @hide
    # Both parts of the bar in the picture, at 1024 cards:
    most, least = fits[1024, "all"], fits[1024, "inputs of blocks"]  # @inspect most as B, least as B
    state, activations = most.values()
    assert activations > 2 * 80 * GB > 100 * state, \
        "No number of cards makes it fit."
    inputs_alone = "inputs of blocks"
    needs = {n: sum(fits[n, inputs_alone].values()) for n in (8, 16, 32, 64)}
    share = [n for n, need in needs.items() if need < 80 * GB]
    assert share == [32, 64], "Checkpointed, it fits from 32 cards on."
    question(r"""
        Llama-3-8B is `4096` wide and has `32` blocks. Every block is checkpointed, in `bfloat16`.
        How many bytes do the inputs of all blocks take for one sequence of `8192` tokens?
    """, answer=32 * 2 * 4096 * 8192, check=2 * 2**30, unit="B", wrong={
            "A number of bfloat16 takes two bytes.": 32 * 4096 * 8192,
            "Each of the 32 blocks keeps its input.": 2 * 4096 * 8192,
        }, hint="How many numbers is the input of one block?",
        why="The input of a block has `8192 * 4096` numbers of `2` bytes, and each of the `32` blocks keeps its own.")


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
        How little memory do the activations of a deep model need? Take $L$ equal layers, one after
        the other. Here each layer is a sine, and needs its input for the backward pass. There are
        three ways:

        - keep every input: memory grows with $L$, and each layer runs once;
        - cut the row into $\sqrt{L}$ segments of $\sqrt{L}$ layers, and keep the input of each
          segment: on the way back, one segment at a time runs again [@chen2016]. Memory grows with
          $\sqrt{L}$, and each layer runs about twice;
        - keep the first input alone: for each layer everything before it runs again. Memory does
          not grow, and the row runs about $L^2/2$ layers.
    """)
    x = torch.randn(1000).double().requires_grad_()
    rows = kept_all, kept_in_segments, KeptNone.apply
    sums = [row(16, x).sum() for row in rows]
    first, *others = [torch.autograd.grad(total, x)[0] for total in sums]
    assert all(torch.allclose(g, first) for g in others), \
        "All three ways give the same gradient."
    note("Measure all three for `4`, `16` and `64` layers. `peak_and_forwards` counts the most tensors alive at once, and how often a layer runs forward:")
    depths = [4, 16, 64]
    every, segments, none = (
        [peak_and_forwards(row, n) for n in depths] for row in rows)
    named = {"every": every, "segments": segments, "none": none}
    peaks = {name: [round(p) for p, _ in row] for name, row in named.items()}  # @inspect peaks
    assert peaks == {"every": [5, 17, 65], "segments": [4, 8, 16], "none": [3, 3, 3]}, \
        "So many tensors are alive at once."  # @hide
    assert 3.7 < peaks["every"][2] / peaks["every"][1] < 3.9, \
        "Every input kept: four times the layers take about four times the memory."
    assert peaks["segments"][2] == 2 * peaks["segments"][1], \
        "In segments: they take about twice the memory."
    assert set(peaks["none"]) == {3}, \
        "One input kept: they take no more memory."
    runs = [row[2][1] for row in (every, segments, none)]  # @inspect runs
    assert runs[0] == 64, "Every input kept: each of 64 layers runs once."
    assert runs[1] == 2 * 64 - 8, \
        "In segments: each runs twice, but for the last of each segment."
    assert runs[2] == 64 + 64 * 63 // 2, \
        "One input kept: all that comes before a layer runs again for it."
    note(rf"""
        With `64` layers, the three ways keep at most {peaks["every"][2]}, {peaks["segments"][2]}
        and {peaks["none"][2]} tensors, and run {runs[0]}, {runs[1]} and {runs[2]:,} layers.

        Checkpointing every block of a Transformer is like the first way, with a block as a layer:
        what is kept grows with the number of blocks. But the input of a block is small against what
        the block makes inside, so segments are seldom needed.
    """)
    question(r"""
        A row of `100` layers is cut into `10` segments of `10` layers. On the way back it keeps the
        inputs of all segments, and those of all layers of the segment that runs again. How many
        inputs is that at most?
    """, answer=10 + 10, check=100 // math.isqrt(100) + math.isqrt(100), unit="inputs", within=0.1,
        why="Ten for the segments and ten within one. Longer segments would be fewer, but each would keep more.")


def recomputing_attention_alone_is_nearly_free() -> None:
    """Recomputing attention alone gives back most of the bytes for few of the FLOPs."""
    note(r"""
        Which activations of a block are the cheapest to compute again? The softmax weights of
        attention: of all activations they take the most bytes, and few FLOPs make them. So keep
        queries, keys and values, and compute only the weights again [@korthikanti2022]. This is
        *selective recomputation*. Here a small block with `8` heads reads `128` tokens, and
        `checkpoint` wraps its attention alone:
    """)
    block = with_lean_norms(Block(SMALL, "written"))
    turn = turns(SMALL.head, 128).bfloat16()
    x = torch.randn(1, 128, 64, dtype=torch.bfloat16, requires_grad=True)

    def step() -> None:
        block(x, turn).sum().backward()

    whole = kept_per_token(block, 64, 1, 128, SMALL.head)  # @inspect whole as B  # @unnoticed: 1: bytes per token are the same in any batch
    fused = activation_bytes(SMALL, 128)  # @inspect fused as B
    before = flops(step)  # @inspect before as FLOP
    attend = block.attention.attend
    block.attention.attend = partial(checkpoint, attend, use_reentrant=False)
    selective = kept_per_token(block, 64, 1, 128, SMALL.head)  # @inspect selective as B  # @unnoticed: 1: bytes per token are the same in any batch
    assert whole - selective == 2 * 8 * 128, \
        "The softmax weights are no longer kept: 2 bytes for each head and pair."
    assert selective == fused - 4 * 8, \
        "What is kept is a little less than with fused attention."  # @hide
    extra = flops(step) - before  # @inspect extra as FLOP
    assert extra == 2 * 128 * 128 * 64, \
        "The scores are computed once more, and nothing else."
    share = extra / before  # @inspect share as %
    with torch.device("meta"):  # @hide
        layer = PaperBlock(12288, 96)
        x = torch.empty(1, 2048, 12288)
    bill = flops_by_operation(lambda: layer(x))  # @hide
    forward, again = sum(bill.values()), bill["aten.bmm"]  # @hide
    of_forward = again / forward  # @hide
    assert round(of_forward, 3) == 0.027, \
        "In GPT-3, scores and sums are this share of a forward pass."  # @hide
    of_step = again / (3 * forward)  # @hide
    assert round(of_step, 3) == 0.009, "They are this share of a step."  # @hide
    published = 2048 / (6 * 12288)  # @hide
    assert round(published, 3) == 0.028, \
        "The paper's appendix has the share of a forward pass."  # @hide
    assert round(published / of_step) == 3, \
        "That is three times the share of a step."  # @hide
    note(rf"""
        In this small block the bytes for a token fall from {whole:,.0f} to {selective:,.0f}, and
        the step takes {share:.1%} more FLOPs.

        In GPT-3 the softmax weights are `70%` of all activations [@korthikanti2022]. To compute
        them again, the paper runs scores and sums once more. Counted with PyTorch, these two
        products are {of_forward:.1%} of a forward pass, and {of_step:.1%} of a training step, which
        has `3` times the FLOPs. (The paper gives 2.7 % for a step [@korthikanti2022], but that is
        the share of a forward pass.) A fused kernel of attention makes the same trade: it keeps no
        weights, and computes them again.
    """)
    question(r"""
        In a forward pass of GPT-3's layer, the matrices take $24d^2$ FLOPs for a token, and scores
        with sums take $4sd$. A training step takes `3` times as many. Scores and sums run once
        more. What share of the step's FLOPs is that, with $d = 12288$ and $s = 8192$ tokens?
    """, answer=4 * 8192 / (3 * (24 * 12288 + 4 * 8192)),
        check=16 * again / (3 * (4 * (forward - again) + 16 * again)), unit="%", within=0.05, wrong={
            "That is the share of a forward pass.": 4 * 8192 / (24 * 12288 + 4 * 8192),
            "The step has attention's FLOPs too.": 4 * 8192 / (3 * 24 * 12288),
        }, hint="Divide $4sd$ by the FLOPs of a step; $d$ cancels once.",
        why="The share is $4s / 3(24d + 4s)$. It is still small, although the text is longer than GPT-3's.")


@aside
def logits_weigh_as_much_as_layers() -> None:
    """The logits of a large vocabulary take as much memory as several layers."""
    note(r"""
        After the last block, the head turns each token of a text into *logits*: a score for each
        token of the vocabulary. The vocabulary of Llama-3 has `128256` tokens. The loss takes the
        softmax of the scores in `float32`, and keeps it for the backward pass. How many bytes are
        that? Run a small model with a vocabulary of `100` and of `1100`, and add up what autograd
        keeps for each token of the text:
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
    assert per_word == 4.0, \
        "Each token of the text keeps 4 bytes for each token of the vocabulary."
    words, layer = LLAMA_3_8B.vocabulary, activation_bytes(LLAMA_3_8B, 8192)
    layers = per_word * words / layer  # @inspect layers
    assert 3 < layers < 3.1, \
        "In Llama-3-8B the loss keeps as much as three layers."
    held = 8192 * words * per_word  # @inspect held as B
    blocks = 8192 * 32 * layer  # @inspect blocks as B
    assert 0.09 < held / blocks < 0.1, \
        "That is a tenth of what all its blocks keep, or nearly."
    note(rf"""
        So for a text of `8192` tokens, the loss of Llama-3-8B keeps {held / 1e9:.1f} GB, as much as
        {layers:.0f} of its layers. While it is computed, the logits, their copy in `float32` and
        the gradients of both take memory besides.

        Training code can save this memory: it cuts the sequence into pieces before the head, and
        computes loss and gradient for one piece after the other.
    """)
    question(r"""
        Llama-2 has a vocabulary of `32000`. How many GB does the softmax of `8192` tokens take in
        `float32`?
    """, answer=8192 * 32000 * 4 / GB, check=held / 128256 * 32000 / GB, unit="GB", within=0.03,
        why="A number of `4` bytes for each token of the text and each token of the vocabulary.")
