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
from hardware import CARDS
from jaxtyping import Float
from napkin import DAY, MFU, RESERVE, kept_activations, logits_bytes, memory_per_device, room, training_seconds
from timing import one_thread
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from units import GB, TERA
from plots import stacks

from litbook import aside, explore, figure, misbelief, note, question

from .block import Block, How, RMSNorm, Transformer, turns
from .counts import Config, activation_bytes, attention_flops, block_weights, forward_flops, parameter_count
from .figures import plot_fit, plot_lines
from .published import LLAMA_2_7B, LLAMA_3_8B, LLAMA_3_70B, MODELS, SMALL


def the_activations_of_a_block() -> None:
    """The activations of a block."""
    note(r"""
        A training step keeps *activations*: results of the forward pass that the backward pass
        needs. Parameters, gradients and the optimizer's averages need the same memory however long
        the sequence is. Activations grow with every token, so they decide how large a batch can be.
        How many bytes does one token keep in one layer?
    """)
    a_published_formula_counts_thirty_four_bytes()
    the_block_of_today_keeps_other_tensors()
    a_norm_in_pieces_keeps_float32_copies()
    written_attention_keeps_a_weight_per_pair()
    checkpointing_keeps_the_input_alone()
    checkpointing_lets_a_large_model_fit()
    memory_can_grow_with_the_root_of_the_depth()
    recomputing_attention_alone_is_nearly_free()
    logits_weigh_as_much_as_layers()


class PaperBlock(nn.Module):
    """An older block, as GPT-3 has it: with LayerNorm, GELU, biases and three dropouts."""

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
    """Applies dropout to `x`; autograd keeps its mask, one byte for each element, as on a GPU."""
    y: Tensor = torch.native_dropout(x, 0.1, True)[0]
    return y


@one_thread()
def kept_per_token(
    block: nn.Module, width: int, batch: int, context: int, head: int = 0
) -> float:
    """Bytes for each token that a block keeps for the backward pass, in bfloat16, counted in a run."""
    block, shape = block.bfloat16(), (batch, context, width)
    x = torch.randn(shape, dtype=torch.bfloat16, requires_grad=True)
    given = [turns(head, context, like=x)] if head else []
    known = [*block.parameters(), *given]
    return saved_bytes_of(lambda: block(x, *given), known) / (batch * context)


@aside
def a_published_formula_counts_thirty_four_bytes() -> None:
    """An older block keeps 34 bytes for each element of a token, and 5 for each pair of tokens and head."""
    note(r"""
        How many bytes does a block of GPT-3 keep for the backward pass, for each token? The block
        is older than that of Llama: it has LayerNorm, a nonlinearity called GELU, and *dropout*,
        which sets random elements to zero and keeps a *mask* that says which. A token has $d$
        elements, attention has $a$ heads, and a sequence has $s$ tokens. In `bfloat16`, with `2`
        bytes for an element, a paper counts for each token and layer

        $$
        34\,d + 5\,a\,s \quad\text{bytes}
        $$

        [@korthikanti2022]. Where do `34` and `5` come from? The backward pass needs what goes into
        each operation of the block:

        - `per_element` lists their bytes for each of the $d$ elements of a token: `2` for a tensor,
          `1` for a mask, and `8` inside the feed-forward part, where a token has $4d$ elements of
          `2` bytes.
        - `per_pair` lists their bytes in attention, where a token makes a pair with each of $s$
          tokens, in each of $a$ heads: for the pair's softmax weight, its mask of dropout, and the
          weight after dropout.
    """)
    per_element = {
        "inputs of the norms": 2 + 2, "input of queries, keys, values": 2,
        "queries, keys, values": 2 + 2 + 2, "input of the output matrix": 2,
        "dropout masks after attention and after the feed-forward part": 1 + 1,
        "input of up": 2, "input of GELU": 8, "input of down": 8,
    }
    per_pair = {"weight": 2, "mask": 1, "weight after dropout": 2}
    assert sum(per_element.values()) == 34, \
        "A token keeps 34 bytes for each of its elements."
    assert sum(per_pair.values()) == 5, \
        "A token keeps 5 bytes for each head and each token that it is paired with."
    note("Are the lists complete? `PaperBlock` builds a small block of this kind, with $d = 64$ and $a = 4$. It reads `2` sequences of $s = 32$ tokens. `kept_per_token` adds up the bytes that autograd keeps for each token:")
    d, a, s = 64, 4, 32
    by_formula = 34 * d + 5 * a * s  # @inspect by_formula as B
    kept = kept_per_token(PaperBlock(d, a), d, 2, s)  # @inspect kept as B  # @unnoticed: 2: bytes per token are the same in any batch
    over = kept - by_formula  # @inspect over as B
    assert over == 8.0, \
        "For a token, autograd keeps 8 bytes more than the formula says."
    others = (64, 8, 2, 32), (96, 4, 3, 48)  # d, a, sequences and s  # @hide
    more = [kept_per_token(PaperBlock(d, a), d, b, s) for d, a, b, s in others]  # @hide
    assert more == [34 * 64 + 5 * 8 * 32 + 8, 34 * 96 + 5 * 4 * 48 + 8], \
        "For two other sizes, autograd also keeps 8 bytes more than the formula says."  # @hide
    x = torch.empty(2, 32, 64, dtype=torch.bfloat16, device="meta")  # @hide
    _, mean, deviation = torch.native_layer_norm(x, [64], None, None, 1e-5)  # @hide
    on_card = 2 * (mean.nbytes + deviation.nbytes) / (2 * 32)  # @hide
    assert on_card == 16.0, \
        "On a GPU, two LayerNorms keep 16 bytes for a token: a mean and a deviation each, in float32."  # @hide
    note(rf"""
        The lists are complete but for {over:.0f} bytes: each of the two norms also keeps a mean and
        a deviation for each token, which the paper leaves out. Now GPT-3, which has $d = 12288$,
        $a = 96$ and reads $s = 2048$ tokens at a time [@gpt3]:
    """)
    d, a, s = 12288, 96, 2048
    share = 5 * a * s / (34 * d + 5 * a * s)  # @inspect share as %
    assert round(share, 2) == 0.70, \
        "In GPT-3, 70 % of the bytes are those of pairs, 5 a s."
    note(rf"""
        So in each layer a token keeps `34 * 12288` bytes, {34 * d / 1e3:.0f} kB, for its own
        elements, and `5 * 96 * 2048` bytes, {5 * a * s / 1e3:.0f} kB, for its pairs. The pairs are
        {share:.0%} of all, because in each of `96` heads a token makes a pair with all `2048`
        tokens.
    """)
    question("GPT-3 has width `12288` and `96` heads. What is the smallest number of tokens in a sequence with which the second term, $5as$ bytes for a token, is larger than the first, $34d$?",
             answer=34 * 12288 // (5 * 96) + 1, check=next(s for s in range(1, 9999) if 5 * a * s > 34 * d), unit="tokens",
             within=0.01, hint="Set both terms equal, and solve for $s$.",
             wrong={"There are 96 heads: each keeps 5 bytes for a pair.": 34 * 12288 // 5 + 1},
             why=r"The terms are equal where $34d = 5as$, so at $s = 34d / (5a) = 870.4$. GPT-3 was trained on `2048` tokens at a time: $5 \cdot 96 \cdot 2048 = 983040$ bytes for the pairs of a token, and only $34 \cdot 12288 = 417792$ for its elements.")


def the_block_of_today_keeps_other_tensors() -> None:
    """Of what a block of Llama-3-8B keeps, two thirds belong to its feed-forward part."""
    note(r"""
        How many bytes does a block of Llama-3 keep for the backward pass, for each token? A token
        has $d$ elements, all its keys together have $d_{kv}$, and inside the feed-forward part it
        has $h$. There are $a$ heads. Each element has `2` bytes in `bfloat16`. Attention is
        *fused*: a single kernel computes it, and does not keep its softmax weights. For a matmul
        the backward pass needs what was multiplied: for a matrix its input, and for attention the
        queries, keys and values. For a nonlinearity it needs what went into it. The nonlinearity of
        this block is SiLU: $\text{SiLU}(z)$ is $z$ times the sigmoid of $z$. From the block's input
        to its output, a token keeps

        | kept for each token | bytes |
        |---|---|
        | inputs of both norms | $4d$ |
        | input of the matrices of queries, keys and values | $2d$ |
        | queries, keys and values | $2d + 4d_{kv}$ |
        | input of attention's output matrix | $2d$ |
        | input of the matrices gate and up | $2d$ |
        | in the feed-forward part: the result of gate, its SiLU, the result of up, and the product of the last two, four tensors of $2h$ bytes | $8h$ |
        | a `float32` of `4` bytes for each of the two norms, its root mean square, and one for each head, from which attention computes its softmax weights again | $8 + 4a$ |

        The terms with $d$ are $4$ (both norms) $+\,2$ (into query, key and value) $+\,2$ (queries)
        $+\,2$ (into output) $+\,2$ (into gate and up), together $12d$. Without the last row, which
        is small, a token keeps

        [@eq:activations]: $$
        \text{bytes a token keeps in a layer} \approx 12\,d + 4\,d_{kv} + 8\,h
        $$

        Compare the whole list with what autograd keeps, for a small block of the sizes `SMALL` that
        reads `2` sequences of `32` tokens. `kept_per_token` adds up the bytes that autograd keeps
        for each token. On a CPU, PyTorch runs a norm as several operations, of which each
        [keeps something](#a_norm_in_pieces_keeps_float32_copies). On a GPU, one kernel does it and
        keeps the input and one number. `with_lean_norms` gives the block norms of this second kind,
        and changes nothing else:
    """)
    d, kv, h, a = SMALL.width, SMALL.kv_width, SMALL.hidden, SMALL.heads  # @inspect d, kv, h, a
    rounded = 12 * d + 4 * kv + 8 * h  # @inspect rounded as B
    listed = rounded + 8 + 4 * a  # @inspect listed as B
    block = with_lean_norms(Block(SMALL, "fused"))
    # Width, sequences, tokens of a sequence, and the size of a head:
    kept = kept_per_token(block, d, 2, 32, SMALL.head)  # @inspect kept as B  # @unnoticed: 2, 32: bytes per token are the same in any batch
    assert kept == listed, \
        "Autograd keeps the bytes that the list says."
    assert listed == activation_bytes(SMALL, SMALL.context) == 2152, \
        "The list gives 2152 bytes for a token of the small block."  # @hide

    def kept_by(config: Config, context: int, how: How) -> float:  # @hide
        block = with_lean_norms(Block(config, how))
        return kept_per_token(block, config.width, 2, context, config.head)

    wide = Config(1, 96, 6, 3, 200, 100, 64)  # @hide
    cases = (SMALL, 32), (SMALL, 64), (wide, 16)  # @hide
    fused = [kept_by(c, s, "fused") for c, s in cases]  # @hide
    exact = [activation_bytes(c, s) for c, s in cases]  # @hide
    assert exact == [2152, 2152, 2976], \
        "For three sizes, the list gives 2152, 2152 and 2976 bytes for a token."  # @hide
    assert fused == exact, \
        "For three sizes, fused, the list is right to the byte."  # @hide
    written = [kept_by(c, s, "written") for c, s in cases]  # @hide
    exact = [activation_bytes(c, s, fused=False) for c, s in cases]  # @hide
    assert exact == [2632, 3144, 3144], \
        "Unfused, with the softmax weights added, the list gives 2632, 3144 and 3144."  # @hide
    assert written == exact, \
        "For three sizes, unfused, the list is right to the byte."  # @hide
    each = activation_bytes(LLAMA_3_8B, 8192) / LLAMA_3_8B.width  # @hide
    assert 41 < each < 41.1, \
        "Llama-3-8B keeps 41 bytes for each element of its width, where the paper's block keeps 34."  # @hide
    inner = LLAMA_3_8B.hidden / LLAMA_3_8B.width  # @hide
    assert inner == 3.5, \
        "Its feed-forward part is 3.5 times as wide, where the paper's block has 4."  # @hide
    four, two = 4 * 2 * inner, 2 * 2 * 4  # @hide
    assert four - two == 12, \
        "Four tensors of that width keep 12 bytes more than two of the paper's."  # @hide
    fewer = each - four / 2  # @hide
    assert 27 < fewer < 27.1, \
        "With two such tensors, Llama-3-8B would keep less than 34."  # @hide
    older = activation_bytes(LLAMA_2_7B, 4096) / LLAMA_2_7B.width  # @hide
    assert 37.5 < older < 37.6, \
        "Llama-2-7B also keeps more than 34 bytes for each element of its width."  # @hide
    note("Now the formula for a layer of Llama-3-8B, which has $d = 4096$, $d_{kv} = 1024$ and $h = 14336$:")
    layer = 12 * 4096 + 4 * 1024 + 8 * 14336  # @inspect layer as B
    inside = 8 * 14336  # @inspect inside as B
    share = inside / layer  # @inspect share as %
    assert 0.68 < share < 0.69, \
        "In Llama-3-8B, 68 % of the bytes are kept inside the feed-forward part."  # @hide
    exact_layer = activation_bytes(LLAMA_3_8B, 8192)  # @hide
    assert exact_layer - layer == 2 * 4 + 4 * 32, \
        "The formula leaves out the few elements of norms and heads."  # @hide
    note(rf"""
        So each token keeps {layer / 1e3:.0f} kB in each layer, and {share:.0%} of it inside the
        feed-forward part. The cause is the gate. Its result, the SiLU of this, the result of up,
        and the product of the last two are each the input of some operation, so all four tensors of
        the large width $h$ are kept. A feed-forward part without a gate keeps two: what goes into
        its nonlinearity, and what goes into down.
    """)
    by_part = {
        name: {
            "12d": 12 * c.width, "keys and values": 4 * c.kv_width, "inside the feed-forward part": 8 * c.hidden,
        }
        for name, c in (("Llama-2-7B", LLAMA_2_7B), ("Llama-3-8B", LLAMA_3_8B))
    }  # @hide
    assert sum(by_part["Llama-3-8B"].values()) == layer, \
        "The parts add up to the formula."  # @hide
    figure(stacks({n: {p: b / 1000 for p, b in of.items()} for n, of in by_part.items()}, "kB for each token and layer"),
        caption=r"""
            What a token keeps in a layer of two models, by the three terms of the formula.
        """, alt=r"""
            Two stacked bars. In both the part inside the feed-forward part is the longest; keys and
            values are a quarter as long in Llama-3-8B as in Llama-2-7B.
        """)
    question(r"""
        Llama-3-8B has `32` layers, $d = 4096$, $d_{kv} = 1024$ and $h = 14336$. How many bytes does
        a token keep in all layers together, by the formula with the $\approx$?
    """, answer=32 * (12 * 4096 + 4 * 1024 + 8 * 14336),
        check=32 * (activation_bytes(LLAMA_3_8B, 8192) - 2 * 4 - 4 * 32), unit="B", within=0.02, wrong={
            "That is one layer.": 12 * 4096 + 4 * 1024 + 8 * 14336,
            "Each element has two bytes; the formula includes that already.": 2 * 32 * (12 * 4096 + 4 * 1024 + 8 * 14336),
        }, hint="First one layer, then all of them.",
        why="One layer keeps $12d + 4d_{kv} + 8h$ bytes. All layers are alike, so multiply by `32`.")


class LeanNorm(torch.autograd.Function):
    """Forward and backward pass of an RMSNorm that keeps its input and one number for each token, as a GPU's kernel does."""

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
    """The layer that runs `LeanNorm` with learned gains; its result is that of `RMSNorm`."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = LeanNorm.apply(x, self.gain, self.eps)
        return y


def with_lean_norms(block: Block) -> Block:
    """Replaces the norms of a block by `Lean` ones, which keep only their input and one number for each token."""
    block.before_attention = Lean(len(block.before_attention.gain))
    block.before_feed_forward = Lean(len(block.before_feed_forward.gain))
    if isinstance(block.attention.query_norm, RMSNorm):
        head = block.attention.head
        block.attention.query_norm = Lean(head)
        block.attention.key_norm = Lean(head)
    return block


@aside
def a_norm_in_pieces_keeps_float32_copies() -> None:
    """A norm that runs in pieces keeps two `float32` copies of its input."""
    note(r"""
        How much memory does a norm need in training? RMSNorm divides the elements of a token by
        their root mean square. Its input is in `bfloat16`, `2` bytes per element, but it computes
        in `float32`, `4` bytes, because its sum would lose digits otherwise. What it keeps for the
        backward pass depends on how it runs:

        - *As one kernel*, a single program, as on a GPU. It keeps its input and one `float32` for
          each token, and computes the rest again in the backward pass.
        - *In pieces*, as on a CPU. PyTorch runs one operation after the other: convert, square,
          divide, convert back. Autograd keeps what passes between them: two copies of the input in
          `float32`, `2 * 4` bytes per element.

        In the code, `RMSNorm` runs in pieces, and `Lean` is a norm that keeps only what the kernel
        keeps. Both compute the same, here for `4` sequences of `8` tokens of `64` elements:
    """)
    x = torch.randn(4, 8, 64, dtype=torch.float64, requires_grad=True)  # @unnoticed: 4, 8: any tokens
    pieces, lean = RMSNorm(64).double(), Lean(64).double()  # @unnoticed: .double(): any format
    assert torch.allclose(lean(x), pieces(x)), \
        "Both norms give the same result."

    def gradients(norm: RMSNorm) -> Tensor:  # @hide
        both = torch.autograd.grad(norm(x).sin().sum(), [x, norm.gain])
        return torch.cat([g.flatten() for g in both])

    in_parts = gradients(pieces)  # @hide
    assert torch.allclose(gradients(lean), in_parts), \
        "Both norms give the same gradients."  # @hide
    note("`kept_per_token` adds up the bytes that a norm keeps for a token of `64` elements. Subtract the `4` bytes of the one `float32`, and divide by `64` elements:")
    in_pieces = (kept_per_token(RMSNorm(64), 64, 2, 16) - 4) / 64  # @measure in_pieces as B
    in_one = (kept_per_token(Lean(64), 64, 2, 16) - 4) / 64  # @inspect in_one as B
    assert in_one == 2.0, \
        "As one kernel, a norm keeps 2 bytes for each element."
    assert in_pieces >= in_one, "In pieces, it keeps no less."
    note(r"""
        How much is that in a whole block? A block of Llama-3-8B is `4096` wide and has two norms.
        `activation_bytes` gives the bytes that the block keeps for a token, first with `8` bytes
        per element of a norm, those of two copies, then with `2`:
    """)
    config = LLAMA_3_8B
    with_pieces = activation_bytes(config, 8192, norm=8)
    more = with_pieces / activation_bytes(config, 8192) - 1  # @inspect more as %
    assert 0.29 < more < 0.30, \
        "With norms in pieces, the whole block keeps 29 % more."
    norms = 2 * (8 * config.width + 4)  # @hide
    attention = 2 * config.width + 4 * config.kv_width + 4 * config.heads  # @hide
    assert round(norms / attention, 2) == 5.28, \
        "In pieces, the two norms keep 5.28 times what fused attention keeps."  # @hide
    note(rf"""
        So with norms in pieces the whole block keeps {more:.0%} more, because two copies in
        `float32` have `8` bytes per element, where a kernel keeps the input alone, `2` bytes.
    """)
    other = replace(config, width=2048)  # @hide
    question(r"""
        Another block is `2048` wide and has two norms, on elements in `bfloat16`. How many fewer
        bytes does it keep for a token if each norm runs in one kernel, and not in pieces?
    """, answer=2 * (8 - 2) * 2048, check=activation_bytes(other, 8192, norm=8) - activation_bytes(other, 8192), unit="B", wrong={
            "The block has two norms.": (8 - 2) * 2048,
            "The kernel still keeps its input.": 2 * 8 * 2048,
        }, hint="How many bytes per element does a norm keep in pieces, and how many in one kernel?",
        why="In pieces a norm keeps two copies in `float32`, `8` bytes per element. In one kernel it keeps its input, `2` bytes. The `float32` for the token is kept both ways.")


@aside
def written_attention_keeps_a_weight_per_pair() -> None:
    """Unfused attention keeps a weight for every pair of tokens; fused attention keeps none."""
    note(r"""
        In attention, each token has a *softmax weight* for each token of the sequence, in every
        head. The weight says how much of that other token's value goes into the result. The
        backward pass needs all these weights. Do they have to be kept?

        - *Unfused* attention runs as separate operations, and keeps them: `2` bytes each in
          `bfloat16`.
        - *Fused* attention runs as a single program, a kernel. It keeps only one `float32`, `4`
          bytes, for each head and token. From this, and from the queries and keys, which are kept
          anyway, it computes the weights again in the backward pass [@dao2022].

        With `8` heads and `16` tokens that is $8 \cdot 16 \cdot 2 = 256$ bytes per token unfused,
        and $8 \cdot 4 = 32$ fused: `224` more. Measure it with a small block of `8` heads that
        reads sequences of `16` to `128` tokens. `fused` and `unfused` are the bytes that the whole
        block keeps for each token:
    """)
    lengths = [16, 32, 64, 128]

    def kept(length: int, how: How) -> float:  # @hide
        block = with_lean_norms(Block(SMALL, how))
        return kept_per_token(block, SMALL.width, 1, length, SMALL.head)

    fused = [kept(n, "fused") for n in lengths]  # @inspect fused as B
    unfused = [kept(n, "written") for n in lengths]  # @inspect unfused as B
    assert max(fused) == min(fused), \
        "Fused, a token keeps the same bytes in a long sequence and in a short one."
    more = [u - f for u, f in zip(unfused, fused)]  # @inspect more as B
    assert more == [224, 480, 992, 2016], \
        "Unfused, a token keeps 224, 480, 992 and 2016 bytes more."  # @hide
    assert more == [2 * 8 * n - 4 * 8 for n in lengths], \
        "Unfused, each of 8 heads keeps 2 bytes for each of n tokens, instead of 4 bytes."
    tokens, heads = 8192, LLAMA_3_8B.heads  # @hide
    token = activation_bytes(LLAMA_3_8B, tokens)  # @hide
    layer = tokens * token  # @hide
    out = tokens * activation_bytes(LLAMA_3_8B, tokens, fused=False)  # @hide
    assert 4.1 < out / layer < 4.2, \
        "Unfused, a layer of Llama-3-8B keeps 4.1 times as much as fused."  # @hide
    assert LLAMA_3_8B.context == tokens, \
        "Llama-3-8B reads 8192 tokens."  # @hide
    note(rf"""
        So with unfused attention, *each* token keeps twice as many weights if the sequence is twice
        as long, because it has a weight for each token of the sequence. With fused attention a
        token keeps the same bytes in any sequence.

        Llama-3-8B has `32` heads and reads sequences of `8192` tokens [@llama3]. Fused, a token
        [keeps](#the_block_of_today_keeps_other_tensors) {token / 1e3:.0f} kB in a layer. Unfused,
        it keeps `2 * 32 * 8192` bytes more, {2 * heads * tokens / 1e3:.0f} kB. For all tokens of
        one sequence, a layer keeps {out / 1e9:.1f} GB unfused, and {layer / 1e9:.1f} GB fused.
    """)
    more_lengths = [2**n for n in range(9, 18)]  # @hide
    lines = {
        "unfused": [activation_bytes(LLAMA_3_8B, n, fused=False) for n in more_lengths],
        "fused": [activation_bytes(LLAMA_3_8B, n) for n in more_lengths],
    }  # @hide
    least = lines["fused"][0] / (2 * LLAMA_3_8B.width)  # @hide
    assert 20 < least < 21, \
        "With fused attention, a layer keeps more than 20 times what its input alone takes."  # @hide
    figure(plot_lines(more_lengths, lines, "tokens in the sequence", "bytes per token and layer", log=True),
        caption=r"""
            Bytes that a token keeps in a layer of Llama-3-8B. Unfused, they grow with the length of
            the sequence; fused, they do not.
        """, alt=r"""
            Two curves against the length of the sequence. The one of unfused attention bends
            upwards and rises more than fortyfold, the one of fused attention is level.
        """)
    question(r"""
        Llama-3-8B has `32` heads, and with fused attention a token keeps `168072` bytes in a layer.
        The sequence has `131072` tokens. How many times as much does a token keep with unfused
        attention? (Leave out the `float32` of a fused kernel: it is too small to matter.)
    """, answer=(32 * 2 * 131072 + 168072) / 168072,
        check=(lines["unfused"][-1] + 4 * 32) / lines["fused"][-1],
        unit="times", within=0.01, wrong={
            "That is the weights alone: the rest is also kept.": 32 * 2 * 131072 / 168072,
            "A weight has two bytes.": 1 + 32 * 131072 / 168072,
        }, hint="How many bytes are the softmax weights of one token?", why=r"""
            Each of `32` heads keeps `2` bytes for each of the `131072` tokens, `8388608` bytes.
            They come on top of the `168072`. Divide the sum by `168072`.
        """)


def checkpointing_keeps_the_input_alone() -> None:
    """A checkpointed block keeps its input alone, and is computed once more."""
    note(r"""
        *Activations*, the results of the forward pass that the backward pass needs, fill much
        memory. In *activation checkpointing* [@chen2016] a block keeps only its input. When the
        backward pass reaches the block, the block runs once more from this input, and so makes its
        activations again.

        PyTorch's `checkpoint` does this, with `use_reentrant=False` in the way that PyTorch
        recommends. `partial` binds its arguments, so that the call can be made later. Try it with a
        small block that reads `2` sequences of `32` tokens of `64` elements. `given` lists what is
        there in any case, parameters and angles. `saved_bytes_of` adds up what autograd keeps apart
        from these:
    """)
    block = Block(SMALL).bfloat16()
    x = torch.randn(2, 32, 64, dtype=torch.bfloat16, requires_grad=True)
    turn = turns(SMALL.head, 32, like=x)  # angles of the positions
    given = [*block.parameters(), turn]
    checkpointed = partial(checkpoint, block, x, turn, use_reentrant=False)
    kept = saved_bytes_of(checkpointed, given)  # @inspect kept as B
    assert kept == x.nbytes == 2 * 64 * (2 * 32), \
        "Autograd keeps 2 bytes for each element of the block's input, and nothing else."
    expected, = torch.autograd.grad(block(x, turn).sum(), x)  # @hide
    gradient, = torch.autograd.grad(checkpointed().sum(), x)  # @hide
    assert torch.equal(gradient, expected), \
        "The gradient is the same, bit for bit."  # @hide
    usual_bytes, input_bytes = 12 * 4096 + 4 * 1024 + 8 * 14336, 2 * 4096  # @hide
    exact = activation_bytes(LLAMA_3_8B, 4096)  # @hide
    assert round(exact / input_bytes, 1) == usual_bytes / input_bytes == 20.5, \
        "A block of Llama-3-8B that is not checkpointed keeps 20.5 times the bytes of its input."  # @hide
    note(rf"""
        In a block of Llama-3-8B, which is `4096` wide, the input has `4096` elements of `2` bytes
        for each token. Without checkpointing the block keeps what goes into each of its matmuls and
        nonlinearities,
        [about `12 * 4096 + 4 * 1024 + 8 * 14336` bytes](#the_block_of_today_keeps_other_tensors).
        These are {usual_bytes:,} bytes instead of {input_bytes:,}, or {usual_bytes / input_bytes}
        times as many.

        The price is time: in the backward pass, most of the forward pass runs a second time.
        `large` is a block of Llama-3-8B on the device `meta`, where a tensor has a shape and no
        data, and `tokens` is one sequence of `4096` tokens. `.sum()` stands for a loss, and `flops`
        counts:
    """)
    with torch.device("meta"):
        large = Block(LLAMA_3_8B, "written")  # @unnoticed: 'written': on `meta` a fused call is counted by its matmuls
        tokens = torch.empty(1, 4096, 4096)
        angles = turns(LLAMA_3_8B.head, 4096)
    forward = flops(lambda: large(tokens, angles))  # @inspect forward as FLOP
    usual = flops(lambda: large(tokens, angles).sum().backward())  # @inspect usual as FLOP
    assert usual == 3 * forward, \
        "A step without checkpointing costs three times the FLOPs of a forward pass."
    run = partial(checkpoint, large, tokens, angles, use_reentrant=False)
    longer = flops(lambda: run().sum().backward())  # @inspect longer as FLOP
    more = longer / usual - 1  # @inspect more as %
    assert 0.25 < more < 0.26, \
        "With checkpointing, a step costs 26 % more FLOPs."
    down = 2 * 4096 * 4096 * 14336  # @hide
    assert longer - usual == forward - down, \
        "What runs again is the forward pass without its last matmul."  # @hide
    misbelief("Checkpointing every block costs a third more.", rf"""
        A step costs {more:.0%} more FLOPs here. A whole forward pass would be a third of a step,
        because the backward pass costs twice as much as the forward pass. But PyTorch stops before
        the block's last matmul, `down`, because the backward pass needs what goes into this matmul
        and not its result. `down` costs `2 * 4096 * 4096 * 14336` FLOPs, {down / TERA:.3f} TFLOP.
        So {forward / TERA:.3f} − {down / TERA:.3f} = {(longer - usual) / TERA:.3f} TFLOP are added
        to {usual / TERA:.3f}.
    """)
    step = {"forward pass": forward, "backward pass": usual - forward}  # @hide
    both = {"usual": step, "checkpointed": {**step, "forward once more": longer - usual}}  # @hide
    figure(stacks({n: {p: w / TERA for p, w in of.items()} for n, of in both.items()}, "TFLOP"), caption=r"""
        FLOPs of a training step of one block of Llama-3-8B with `4096` tokens. Checkpointing adds a
        forward pass without its last matmul.
    """, alt=r"""
        Two stacked bars. The backward pass is twice as long as the forward pass; the bar of the
        checkpointed step has a third part, a little shorter than the forward pass.
    """)
    question(r"""
        Llama-3-8B is `4096` wide and has `32` blocks. Every block is checkpointed, and an element
        has `2` bytes. How many bytes do the inputs of all blocks need for one sequence of `8192`
        tokens?
    """, answer=32 * 2 * 4096 * 8192, check=2 * 2**30, unit="B", wrong={
            "An element of bfloat16 has two bytes.": 32 * 4096 * 8192,
            "Each of the 32 blocks keeps its input.": 2 * 4096 * 8192,
        }, hint="How many elements does the input of one block have?",
        why="The input of a block has `8192 * 4096` elements of `2` bytes, and each of the `32` blocks keeps its own.")


def checkpointing_lets_a_large_model_fit() -> None:
    """In data parallelism, sharding divides a model's state, and checkpointing shrinks its activations."""
    note(r"""
        Llama-3-70B has `80` blocks and is `8192` wide. Can it be trained on GPUs of `80` GB, one
        sequence of `8192` tokens on each? (That `80` and `8192` come twice is chance.) This is
        *data parallelism*: each GPU trains on sequences of its own. Mainly two things have to fit
        on a GPU:

        - The *state* of the model: parameters, gradients and the optimizer's averages, `16` bytes
          per parameter. *Sharding* gives each GPU a slice, so with more GPUs, each holds less.
        - The *activations* of its sequence. In data parallelism more GPUs do not make these
          smaller, because the other GPUs train on other sequences. Checkpointing does: a GPU then
          keeps the inputs of all blocks, and the activations of the one block that is computed
          again.

        Take two blocks by hand, whose inputs have `1` GB each, and let a block keep `10` GB of
        activations. Without checkpointing a GPU keeps `10 + 10` GB. With it, it keeps both inputs
        and one block's activations: `1 + 1 + 10` GB.

        Now the real size. A tenth of a GPU's memory is kept free for buffers and temporary results,
        so `72` of `80` GB may be planned for. `activation_bytes` gives the bytes that a block keeps
        per token. The input of a block has `8192` elements of `2` bytes per token:
    """)
    config, tokens = LLAMA_3_70B, 8192
    of_a_block = tokens * activation_bytes(config, tokens) / GB  # @inspect round(of_a_block, 1) as GB
    inputs = config.layers * tokens * config.width * 2 / GB  # @inspect round(inputs, 1) as GB
    assert inputs == 80 * 8192 * 8192 * 2 / GB, \
        "80 blocks have inputs of 8192 tokens of 8192 elements of 2 bytes."  # @hide
    activations = config.layers * of_a_block
    checkpointed = inputs + of_a_block
    assert round(activations, 1) == 217.6, \
        "Without checkpointing, the activations of one sequence need 217.6 GB."
    assert round(checkpointed, 1) == 13.5, \
        "With checkpointing, they need 13.5 GB."
    assert activations > 3 * 72, \
        "Three GPUs may plan for less than the activations of one sequence."  # @hide
    note(rf"""
        Without checkpointing, the activations of one sequence need {activations:.1f} GB, and even
        three GPUs together may plan for only `3 * 72` GB. With checkpointing they need
        {checkpointed:.1f} GB. Add each GPU's slice of `state`, the state of the whole model:
    """)
    state = 16 * parameter_count(config) / GB  # @inspect round(state) as GB
    needs = {gpus: state / gpus + checkpointed for gpus in (8, 16, 32, 64)}
    needed = {gpus: round(need) for gpus, need in needs.items()}  # @inspect needed as GB
    enough = [gpus for gpus, need in needs.items() if need < 72]
    assert enough == [32, 64], \
        "Of 8, 16, 32 and 64 GPUs, 32 and 64 hold state and activations in 72 GB each."
    planned = room(CARDS["H100 SXM"].memory, RESERVE, 0)  # @hide
    assert planned == 72 * GB, \
        "Nine tenths of the memory of an H100 are 72 GB."  # @hide
    logits = 2 * config.vocabulary * tokens * 2 / GB  # logits and softmax in bfloat16  # @hide
    assert 4 < logits < 4.3, \
        "The logits and their softmax, which the table leaves out, add 4 GB in bfloat16."  # @hide
    assert round(needs[32] + logits, 1) == 52.9, \
        "With 32 GPUs and the logits, a GPU holds 52.9 GB."  # @hide
    without = state / 1024, activations  # @hide
    assert round(without[0], 1) == 1.1, \
        "With 1024 GPUs, a slice of the state is 1.1 GB."  # @hide
    inputs_alone = "inputs of blocks"  # @hide
    card = CARDS["H100 SXM"]  # @hide

    def in_training(  # @hide
        model: str, devices: int, context: int, activations_kept: str
    ) -> dict[str, Any]:
        shape, again = MODELS[model], float(activations_kept == inputs_alone)
        # Without the last matmul of a block, whose result nobody needs.
        second = 2 * shape.layers * (block_weights(shape) - shape.width * shape.hidden)
        second += attention_flops(shape, 1, context)
        executed = 3 * forward_flops(shape, 1, context) + again * second
        days = training_seconds(15e12 * executed, devices, card.bfloat16 or 0, MFU) / DAY
        return {
            "state": memory_per_device(parameter_count(shape), 16, devices, sharded=True),
            "activations": kept_activations(
                activation_bytes(shape, context), shape.layers, shape.width, context, again),
            "softmax": logits_bytes(shape.vocabulary, context),
            "days": days, "gpu_hours": 24 * devices * days,
        }

    drawn = in_training("Llama-3-70B", 1024, tokens, "all")  # @hide
    in_picture = [round(drawn[kind] / GB, 6) for kind in ("state", "activations")]  # @hide
    assert in_picture == [round(size, 6) for size in without], \
        "The picture shows the same numbers."  # @hide
    assert (round(drawn["days"]), round(drawn["gpu_hours"], -4)) == (206, 5_070_000), \
        "Of 1024 GPUs that reach 40 % of their peak, 15e12 tokens take 206 days, 5.07 million GPU-hours."  # @hide
    explore(in_training, over={
        "model": ["Llama-3.2-1B", "Llama-3-8B", "Llama-3-70B", "Llama-3-405B"],
        "devices": [2**i for i in range(15)], "context": [part * 2**i for i in range(9, 18) for part in (2, 3)],
        "activations_kept": ["all", inputs_alone],
    }, at={
        "model": "Llama-3-70B", "devices": 1024, "context": 8192, "activations_kept": "all",
    }, module="pictures/fit.js", still=plot_fit(drawn, card.memory),
        do="Make the bar end inside the frame of the GPU. What helps, and what does not?",
        see=r"""
            More GPUs shrink the state, and the activations not at all. A shorter sequence helps,
            and so does keeping only the inputs of blocks.
        """, caption=r"""
            What one GPU holds in data parallelism: its slice of the state, `16` bytes for each
            parameter, the activations of one sequence, and the softmax
            [of its logits](#logits_weigh_as_much_as_layers); the dashed tenth is kept free. It
            begins with `1024` GPUs and without checkpointing. Training is on `15e12` tokens, at
            `40 %` of the peak, with [attention](#training_costs_six_per_weight_and_twelve_per_pair)
            and what is recomputed.
        """, alt=r"""
            It does not fit. A frame, the memory of one H100, and a bar that runs far out of it: a
            sliver of state, activations, and the softmax of the logits.
        """)  # @hide
    note(rf"""
        So in data parallelism without checkpointing, no number of GPUs is enough, because each
        holds {activations:.0f} GB of activations. With checkpointing these are {checkpointed:.1f}
        GB, and {enough[0]} GPUs are the first of those tried that are enough: a slice of the state
        is then {state / enough[0]:.0f} GB. (The softmax of the logits, {logits:.1f} GB, is left out
        here; the figure has it.)

        There is another way. If several GPUs share one *sequence*, more GPUs do make its
        activations smaller, because each GPU computes a part of every block.
        [Tensor and sequence parallelism](#lecture_04.a_sum_can_be_left_scattered) do this. Take
        `64` GPUs, eight for each sequence. The state is still divided by all `64`:
    """)
    share = activations / 8  # @inspect round(share, 1) as GB
    slice_of_state = state / 64  # @inspect round(slice_of_state, 1) as GB
    assert round(share + slice_of_state, 1) == 44.8, \
        "If eight of 64 GPUs share each sequence, a GPU holds 44.8 GB of state and activations, without checkpointing."
    note(rf"""
        So each GPU holds {slice_of_state:.1f} GB of state and {share:.1f} GB of activations,
        {share + slice_of_state:.1f} GB in all, which is less than `72`. Llama 3's largest model was
        trained like that on sequences of `8192` tokens, without checkpointing [@llama3].
    """)
    question(r"""
        A model has `2e9` parameters, and its state has `16` bytes for each. It is sharded over `8`
        GPUs, in data parallelism. The activations of a sequence are `50` GB, and `3` GB with
        checkpointing. How many GB does a GPU hold with checkpointing?
    """, answer=16 * 2e9 / 8 / GB + 3, check=2 * 2 + 3, unit="GB", within=0.01, wrong={
            "Sharding does not divide activations.": 16 * 2e9 / 8 / GB + 3 / 8,
            "With sharding, a GPU holds an eighth of the state.": 16 * 2e9 / GB + 3,
            "That is without checkpointing.": 16 * 2e9 / 8 / GB + 50,
        }, hint="First the slice of the state.",
        why="The state is `32` GB, and `8` GPUs hold `4` GB of it each. The `3` GB of activations are there on each GPU.")


def kept_all(layers: int, x: Tensor) -> Tensor:  # @stepover
    """Applies the sine to `x`, as often as `layers` says; autograd keeps the input of every sine."""
    for _ in range(layers):
        x = x.sin()
    return x


def kept_in_segments(layers: int, x: Tensor) -> Tensor:
    """Applies the sine to `x`, as often as `layers` says; autograd keeps only the input of each segment."""
    size = math.isqrt(layers)
    for _ in range(layers // size):
        x = checkpoint(kept_all, size, x, use_reentrant=False)
    return x


class KeptNone(torch.autograd.Function):
    """Applies the sine to `x`, as often as `layers` says; keeps only `x`, and computes every later input again from it."""

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
    """Counts how often a sine, the layer of these functions, runs in the forward direction."""

    count = 0

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        self.count += operation is torch.ops.aten.sin.default


def peak_and_forwards(  # @stepover
    row: Callable[[int, Tensor], Tensor], layers: int
) -> tuple[float, int]:
    """Runs a forward and a backward pass; returns the peak number of tensors in memory, and how often a layer ran."""
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
        A deep model has many layers, and the backward pass needs the input of each. How little
        memory can that need? Take `64` equal layers in a row. There are three ways:

        - *Keep every input.* These are `64` tensors, and each layer runs once.
        - *Keep the input of each segment* [@chen2016]. Cut the layers into `8` segments of `8`, and
          keep the `8` inputs of the segments. In the backward pass one segment at a time runs
          again, and meanwhile keeps the inputs of its other layers. These are `8 + 7` tensors, and
          nearly every layer runs twice.
        - *Keep the first input alone.* To get the input of a layer, all layers before it run again:
          $63$ for the last layer, $62$ for the one before, and so on. One tensor is kept, and for
          $L$ layers there are about $L^2/2$ runs of a layer.

        In the code `kept_all`, `kept_in_segments` and `KeptNone` are the three ways. A layer is the
        sine of its input. `peak_and_forwards` runs a forward and a backward pass, and counts the
        most tensors that are in memory at once, and how often a layer runs:
    """)
    ways = kept_all, kept_in_segments, KeptNone.apply
    measured = [peak_and_forwards(way, 64) for way in ways]
    tensors = [round(most) for most, _ in measured]  # @inspect tensors
    runs = [count for _, count in measured]  # @inspect runs
    assert tensors == [65, 16, 3], \
        "The three ways have no more than 65, 16 and 3 tensors in memory."
    assert runs[0] == 64, "With every input kept, each of 64 layers runs once."
    assert runs[1] == 2 * 64 - 8, \
        "In segments, all layers run twice but the last one of each of 8 segments."
    assert runs[2] == 64 + 64 * 63 // 2, \
        "With the first input alone, for each of 64 layers all layers before it run again."
    x = torch.randn(1000).double().requires_grad_()  # @hide
    sums = [way(16, x).sum() for way in ways]  # @hide
    first, *others = [torch.autograd.grad(total, x)[0] for total in sums]  # @hide
    assert all(torch.allclose(g, first) for g in others), \
        "All three ways give the same gradient."  # @hide
    fewer = [[round(peak_and_forwards(way, n)[0]) for n in (4, 16)] for way in ways]  # @hide
    assert fewer == [[5, 17], [4, 8], [3, 3]], \
        "Of 4 and of 16 layers, the three ways have 5 and 17, 4 and 8, and 3 and 3 tensors in memory."  # @hide
    note(rf"""
        | `64` layers | tensors in memory | runs of a layer |
        |---|---|---|
        | every input | {tensors[0]} | {runs[0]} |
        | input of each segment | {tensors[1]} | {runs[1]} |
        | first input alone | {tensors[2]} | {runs[2]:,} |

        (The first input is not counted. Another `2` or `3` tensors are results that are just being
        computed.)

        So segments save three quarters of the memory, and each layer runs no more than once again.
        It is best to have the same number of segments as layers in a segment: fewer segments are
        longer, so more inputs are kept within one, and more segments have more inputs of their own.
        With $L$ layers, $\sqrt{{L}}$ segments of $\sqrt{{L}}$ layers then keep about $2\sqrt{{L}}$
        inputs.
    """)
    question(r"""
        `100` layers are cut into `10` segments of `10` layers. Kept are the input of each segment
        and, in the backward pass, those of the other layers of the segment that runs again. What is
        the largest number of inputs kept at a time?
    """, answer=10 + 9, check=2 * math.isqrt(100) - 1, unit="inputs", within=0.01, wrong={
            "The first layer's input is that of the segment: it is kept once.": 10 + 10,
        }, hint="How many layers of a segment have an input that is not kept yet?",
        why="`10` inputs of segments, and `9` more within the segment that runs again. Longer segments would be fewer, but each would keep more.")


@aside
def recomputing_attention_alone_is_nearly_free() -> None:
    """Recomputing attention's softmax weights saves many bytes and costs few FLOPs."""
    note(r"""
        Which of the tensors that a block keeps for the backward pass are the cheapest to compute
        again? The softmax weights of attention. They need many bytes, because each head has one for
        each pair of tokens. And they cost few FLOPs, because a single matmul, queries times keys,
        makes them. So a block can keep queries, keys and values, and compute the weights again when
        the backward pass needs them. This is *selective recomputation* [@korthikanti2022].

        Try it on a small block, `64` wide with `8` heads, that reads `128` tokens. `attend` is the
        step of its attention that turns queries, keys and values into a result. PyTorch's
        `checkpoint` makes this step keep only what goes into it. `kept_per_token` adds up the bytes
        that the whole block keeps for a token, and `flops` counts a forward and a backward pass:
    """)
    block = with_lean_norms(Block(SMALL, "written"))
    turn = turns(SMALL.head, 128).bfloat16()
    x = torch.randn(1, 128, 64, dtype=torch.bfloat16, requires_grad=True)

    def step() -> None:
        block(x, turn).sum().backward()

    kept_before = kept_per_token(block, 64, 1, 128, SMALL.head)  # @inspect kept_before as B  # @unnoticed: 1: bytes per token are the same in any batch
    flops_before = flops(step)  # @inspect flops_before as FLOP
    attend = block.attention.attend
    block.attention.attend = partial(checkpoint, attend, use_reentrant=False)
    kept_after = kept_per_token(block, 64, 1, 128, SMALL.head)  # @inspect kept_after as B  # @unnoticed: 1: bytes per token are the same in any batch
    assert kept_before - kept_after == 2 * 8 * 128, \
        "A token keeps less, by 2 bytes for each of 8 heads and 128 tokens: its softmax weights."
    fused = activation_bytes(SMALL, 128)  # @hide
    assert kept_after == fused - 4 * 8, \
        "The block keeps a little less than with fused attention."  # @hide
    extra = flops(step) - flops_before  # @inspect extra as FLOP
    assert extra == 2 * 128 * 128 * 64, \
        "Another matmul, of queries and keys, is computed."
    share = extra / flops_before  # @inspect share as %
    assert round(share, 3) == 0.048, \
        "The step costs less than 5 % more FLOPs."  # @hide
    with torch.device("meta"):  # @hide
        layer = PaperBlock(12288, 96)
        x = torch.empty(1, 2048, 12288)
    bill = flops_by_operation(lambda: layer(x))  # @hide
    forward, again = sum(bill.values()), bill["aten.bmm"]  # @hide
    of_forward = again / forward  # @hide
    assert round(of_forward, 3) == 0.027, \
        "In GPT-3, scores and sums are 2.7 % of the FLOPs of a forward pass."  # @hide
    of_step = again / (3 * forward)  # @hide
    assert round(of_step, 3) == 0.009, \
        "In GPT-3, scores and sums of one forward pass are 0.9 % of the FLOPs of a step."  # @hide
    published = 2048 / (6 * 12288)  # @hide
    assert round(published, 3) == 0.028, \
        "The paper's appendix has the share of a forward pass."  # @hide
    assert round(published / of_step) == 3, \
        "The share of a forward pass is three times that of a step."  # @hide
    d, s = 12288, 2048  # @hide
    assert forward == s * (24 * d**2 + 4 * s * d), \
        "A forward pass of GPT-3's layer costs 24 d**2 + 4 s d FLOPs for a token."  # @hide
    note(rf"""
        The bytes for a token fall from {kept_before:,.0f} to {kept_after:,.0f}, because the `2`
        bytes × `8` heads × `128` tokens of its weights are gone. The FLOPs rise by only
        {share:.1%}, because a single matmul runs once more.

        In a large model the price is even lower. GPT-3 has width $d = 12288$ and reads $s = 2048$
        tokens. In a forward pass, a token costs $24d^2$ FLOPs in the matrices of a layer, `2` for
        each of their $12d^2$ weights, and $4sd$ in attention's two matmuls, queries times keys and
        weights times values. A training step costs `3` times that. If both matmuls run once more, a
        step costs this share more:

        $$
        \frac{{4sd}}{{3\,(24d^2 + 4sd)}}
        = \frac{{4 \cdot 2048}}{{3\,(24 \cdot 12288 + 4 \cdot 2048)}}
        $$

        That is {of_step:.1%}. It is so little because $24d$ is much larger than $4s$: the matrices
        are nearly all of the FLOPs.
    """)
    question(r"""
        GPT-3 has width $d = 12288$. Let it read sequences of $s = 8192$ tokens, `4` times as long.
        By what share do the FLOPs of a step grow if both matmuls of attention run once more, in
        percent?
    """, answer=4 * 8192 / (3 * (24 * 12288 + 4 * 8192)),
        check=16 * again / (3 * (4 * (forward - again) + 16 * again)), unit="%", within=0.05, wrong={
            "That is the share of a forward pass.": 4 * 8192 / (24 * 12288 + 4 * 8192),
            "The step also has attention's FLOPs.": 4 * 8192 / (3 * 24 * 12288),
        }, hint="Put both numbers into the formula above; one $d$ cancels.",
        why="The share is $4s / 3(24d + 4s)$. It is still small, although the sequence is longer than GPT-3's.")


@aside
def logits_weigh_as_much_as_layers() -> None:
    """The loss over a large vocabulary keeps as much memory as several layers."""
    note(r"""
        How much memory does the loss of a language model need? After the last block, the model
        gives each token of a sequence a score for each token of its vocabulary; these scores are
        the *logits*. In training, the loss computes their softmax in `float32`, `4` bytes per
        score, and keeps it, because the gradient of a score is its softmax (less one for the token
        that did come). So a token of the sequence should keep `4` bytes for each token of the
        vocabulary.

        Test this on a small model, once with a vocabulary of `100` tokens and once with `1100`.
        `kept` builds it, and adds up the bytes that autograd keeps for each token of the sequence:
    """)

    def kept(vocabulary: int) -> float:
        config = Config(1, 64, 8, 2, 160, vocabulary, 32)
        model = Transformer(config).bfloat16()
        tokens = torch.randint(0, vocabulary, (2, 32))

        def loss() -> Tensor:
            logits = model(tokens).float().flatten(0, 1)
            return F.cross_entropy(logits, tokens.flatten())

        return saved_bytes_of(loss, [*model.parameters()]) / tokens.numel()

    small, large = kept(100), kept(1100)  # @inspect round(small) as B, round(large) as B
    per_score = (large - small) / 1000  # @inspect per_score as B
    assert per_score == 4.0, \
        "Each token of the sequence keeps 4 bytes for each token of the vocabulary."
    note(r"""
        Is that much? The vocabulary of Llama-3-8B has `128256` tokens. Compare what its loss keeps
        for a token with what one layer keeps for a token, which `activation_bytes` gives:
    """)
    vocabulary, layer = 128256, activation_bytes(LLAMA_3_8B, 8192)  # @inspect layer as B
    assert vocabulary == LLAMA_3_8B.vocabulary, \
        "This is the vocabulary of Llama-3-8B."  # @hide
    loss = 4 * vocabulary  # @inspect loss as B
    layers = loss / layer  # @inspect round(layers, 1) as layers
    assert 3 < layers < 3.1, \
        "In Llama-3-8B, the loss keeps as much as three layers."
    held = 8192 * loss
    blocks = 8192 * 32 * layer  # @hide
    assert 0.09 < held / blocks < 0.1, \
        "In Llama-3-8B, the loss keeps nearly a tenth of what all blocks keep."  # @hide
    note(rf"""
        So the loss of Llama-3-8B keeps as much as {layers:.0f} of its layers, because a token has
        `128256` scores and only `4096` elements of its own. For a sequence of `8192` tokens,
        `8192 * 128256 * 4` bytes are {held / 1e9:.1f} GB. A program can save this memory: it cuts
        the sequence into pieces after the last block, and computes scores, loss and gradients piece
        by piece.
    """)
    question(r"""
        Llama-2 has a vocabulary of `32000` tokens. How many GB does the softmax for a sequence of
        `8192` tokens need in `float32`, `4` bytes per score?
    """, answer=8192 * 32000 * 4 / GB, check=held / 128256 * 32000 / GB, unit="GB", within=0.03, wrong={
            "A score in float32 has four bytes.": 8192 * 32000 / GB,
        }, hint="How many scores does the sequence have?",
        why="Each of `8192` tokens has a score for each of `32000` tokens of the vocabulary, of `4` bytes.")
