"""What a block keeps for the backward pass, in bytes per token, and what recomputing saves."""
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from counters import flops, saved_bytes_of
from hardware import CARDS
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
        needs. Parameters, gradients and the optimizer's running averages need the same memory for
        any sequence length. The activations grow with every token, so they decide how large a batch
        can be. How many bytes of activations does one token need in one layer?
    """)
    the_block_of_today_keeps_other_tensors()
    written_attention_keeps_a_weight_per_pair()
    checkpointing_keeps_the_input_alone()
    checkpointing_lets_a_large_model_fit()
    logits_weigh_as_much_as_layers()


@one_thread()
def kept_per_token(
    block: nn.Module, width: int, batch: int, context: int, head: int = 0
) -> float:
    """Bytes per token that a block keeps for the backward pass, in bfloat16, counted in a run."""
    block, shape = block.bfloat16(), (batch, context, width)
    x = torch.randn(shape, dtype=torch.bfloat16, requires_grad=True)
    given = [turns(head, context, like=x)] if head else []
    known = [*block.parameters(), *given]
    return saved_bytes_of(lambda: block(x, *given), known) / (batch * context)


def the_block_of_today_keeps_other_tensors() -> None:
    """In Llama-3-8B, two thirds of a block's activations belong to its feed-forward part."""
    note(r"""
        How many bytes per token does a block of Llama-3 keep for the backward pass? A token has $d$
        elements, $d_{kv}$ elements in all its keys together, and $h$ elements inside the
        feed-forward part. There are $a$ heads. Each element has `2` bytes in `bfloat16`. Attention
        is *fused*: a single kernel computes it and does not keep the softmax weights. In a product
        $w \cdot x$ the gradient of $w$ contains $x$, so a matmul keeps what it multiplies: a weight
        matrix keeps its input, and attention keeps the queries, keys and values. A nonlinearity
        keeps its input. The nonlinearity of this block is SiLU: $\text{SiLU}(z)$ is $z$ times the
        sigmoid of $z$. From the block's input to its output, these tensors are kept:

        | kept for each token | bytes |
        |---|---|
        | inputs of both norms | $4d$ |
        | input of the query, key and value matrices | $2d$ |
        | queries, keys and values | $2d + 4d_{kv}$ |
        | input of attention's output matrix | $2d$ |
        | input of the gate and up matrices | $2d$ |
        | in the feed-forward part: the result of gate, its SiLU, the result of up, and the product of the last two: four tensors of $2h$ bytes | $8h$ |
        | a `float32` of `4` bytes for each of the two norms (its root mean square) and for each head (from which attention recomputes its softmax weights) | $8 + 4a$ |

        The terms with $d$ are $4$ (both norms) $+\,2$ (into query, key and value) $+\,2$ (queries)
        $+\,2$ (into output) $+\,2$ (into gate and up), together $12d$. Without the last row, which
        is small, the rows add up to

        [@eq:activations]: $$
        \text{bytes a token keeps in a layer} \approx 12\,d + 4\,d_{kv} + 8\,h
        $$

        Compare the whole list with what autograd keeps, for a small block with the sizes in `SMALL`
        that processes `2` sequences of `32` tokens. `kept_per_token` adds up the bytes that
        autograd keeps per token. `with_lean_norms` gives the block norms that keep only what a
        kernel on a GPU keeps, the input and one value per token; on a CPU, PyTorch runs a norm as
        several operations and keeps more:
    """)
    d, kv, h, a = SMALL.width, SMALL.kv_width, SMALL.hidden, SMALL.heads  # @inspect d, kv, h, a
    rounded = 12 * d + 4 * kv + 8 * h  # @inspect rounded as B
    listed = rounded + 8 + 4 * a  # @inspect listed as B
    block = with_lean_norms(Block(SMALL, "fused"))
    # Model dimension, sequences, tokens per sequence, head dimension:
    kept = kept_per_token(block, d, 2, 32, SMALL.head)  # @inspect kept as B  # @unnoticed: 2, 32: bytes per token are the same in any batch
    assert kept == listed, \
        "Autograd keeps exactly the bytes in the list."
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
        So each layer keeps {layer / 1e3:.0f} kB per token, {share:.0%} of it inside the
        feed-forward part, because four tensors of the large size $h$ are kept there. Each of the
        four is the input of an operation.
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
            Bytes kept per token in a layer of two models, by the three terms of the formula.
        """, alt=r"""
            Two stacked bars. In both the part inside the feed-forward part is the longest; keys and
            values are a quarter as long in Llama-3-8B as in Llama-2-7B.
        """)
    question(r"""
        Llama-3-8B has `32` layers, $d = 4096$, $d_{kv} = 1024$ and $h = 14336$. How many bytes per
        token are kept in all layers together, by the approximate formula?
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
def written_attention_keeps_a_weight_per_pair() -> None:
    """Unfused attention keeps a weight for every pair of tokens; fused attention keeps none."""
    note(r"""
        In each head of attention, each token has a *softmax weight* for each token of the sequence.
        The weight says how much of the other token's value goes into the result. The backward pass
        needs all these weights. Do they have to be kept?

        - *Unfused* attention runs as separate operations and keeps the weights: `2` bytes each in
          `bfloat16`.
        - *Fused* attention runs as a single program, a kernel. It keeps only one `float32`, `4`
          bytes, for each head and token. From this, and from the queries and keys, which are kept
          anyway, it recomputes the weights in the backward pass [@dao2022].

        With `8` heads and `16` tokens that is $8 \cdot 16 \cdot 2 = 256$ bytes per token unfused,
        and $8 \cdot 4 = 32$ fused: `224` more. Measure it with a small block of `8` heads that
        processes sequences of `16` to `128` tokens. `kept` returns the bytes that the whole block
        keeps per token:
    """)
    lengths = [16, 32, 64, 128]

    def kept(length: int, how: How) -> float:
        block = with_lean_norms(Block(SMALL, how))
        return kept_per_token(block, SMALL.width, 1, length, SMALL.head)

    fused = [kept(n, "fused") for n in lengths]  # @inspect fused as B
    unfused = [kept(n, "written") for n in lengths]  # @inspect unfused as B
    assert max(fused) == min(fused), \
        "Fused, the bytes per token are the same in a long sequence and in a short one."
    more = [u - f for u, f in zip(unfused, fused)]  # @inspect more as B
    assert more == [224, 480, 992, 2016], \
        "Unfused, the block keeps 224, 480, 992 and 2016 bytes per token more."  # @hide
    assert more == [2 * 8 * n - 4 * 8 for n in lengths], \
        "Unfused, each of 8 heads keeps 2 bytes for each of n tokens, instead of 4 bytes."
    tokens, heads = 8192, LLAMA_3_8B.heads  # @hide
    token = activation_bytes(LLAMA_3_8B, tokens)  # @hide
    layer = tokens * token  # @hide
    out = tokens * activation_bytes(LLAMA_3_8B, tokens, fused=False)  # @hide
    assert 4.1 < out / layer < 4.2, \
        "Unfused, a layer of Llama-3-8B keeps 4.1 times as much as fused."  # @hide
    assert LLAMA_3_8B.context == tokens, \
        "Llama-3-8B has a context of 8192 tokens."  # @hide
    note(rf"""
        So with unfused attention, twice the sequence length means twice as many weights for *each*
        token, because each token has a weight for every token of the sequence. With fused attention
        the bytes per token are the same at any length.

        Llama-3-8B has `32` heads and a context of `8192` tokens [@llama3]. Fused, a layer
        [keeps](#the_block_of_today_keeps_other_tensors) {token / 1e3:.0f} kB per token. Unfused, it
        keeps another `2 * 32 * 8192` bytes, {2 * heads * tokens / 1e3:.0f} kB. For all tokens of
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
            Bytes kept per token in a layer of Llama-3-8B. Unfused, they grow with the length of the
            sequence; fused, they do not.
        """, alt=r"""
            Two curves against the length of the sequence. The curve of unfused attention bends
            upwards and rises more than fortyfold; the curve of fused attention is flat.
        """)
    question(r"""
        Llama-3-8B has `32` heads, and with fused attention a layer keeps `168072` bytes per token.
        The sequence has `131072` tokens. How many times as many bytes per token does the layer keep
        with unfused attention? (Ignore the `float32` of a fused kernel: it is too small to matter.)
    """, answer=(32 * 2 * 131072 + 168072) / 168072,
        check=(lines["unfused"][-1] + 4 * 32) / lines["fused"][-1],
        unit="times", within=0.01, wrong={
            "Those are the weights alone; the rest is also kept.": 32 * 2 * 131072 / 168072,
            "A weight has two bytes.": 1 + 32 * 131072 / 168072,
        }, hint="How many bytes are the softmax weights of one token?", why=r"""
            Each of `32` heads keeps `2` bytes for each of the `131072` tokens, `8388608` bytes. Add
            the `168072` bytes that are kept in any case, and divide the sum by `168072`.
        """)


def checkpointing_keeps_the_input_alone() -> None:
    """A checkpointed block keeps only its input, and is recomputed in the backward pass."""
    note(r"""
        *Activations*, the results of the forward pass that the backward pass needs, use a lot of
        memory. In *activation checkpointing* [@chen2016], also called recomputation, a block keeps
        only its input. When the backward pass reaches the block, the block runs again from this
        input, and so recomputes its activations.

        PyTorch's `checkpoint` does this; `use_reentrant=False` selects the variant that PyTorch
        recommends. `partial` binds the arguments, so that the call can be made later. Try it with a
        small block that processes `2` sequences of `32` tokens of `64` elements. `given` lists what
        is in memory in any case, the parameters and the angles. `saved_bytes_of` adds up what
        autograd keeps in addition to these:
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
        In Llama-3-8B, the input of a block has `4096` elements of `2` bytes per token. Without
        checkpointing the block keeps the inputs of all its matmuls and nonlinearities,
        [about `12 * 4096 + 4 * 1024 + 8 * 14336` bytes](#the_block_of_today_keeps_other_tensors).
        That is {usual_bytes:,} bytes instead of {input_bytes:,}, or {usual_bytes / input_bytes}
        times as many.

        The price is time: in the backward pass, most of the forward pass runs a second time.
        `large` is a block of Llama-3-8B on the device `meta`, where a tensor has a shape but no
        data, and `tokens` is one sequence of `4096` tokens. `.sum()` stands for a loss, and `flops`
        counts the FLOPs:
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
        the block's last matmul, `down`, because the backward pass needs the input of this matmul
        and not its result.
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
        Llama-3-8B has `32` blocks and a model dimension of `4096`. Every block is checkpointed, and
        an element has `2` bytes. How many bytes do the inputs of all blocks need for one sequence
        of `8192` tokens?
    """, answer=32 * 2 * 4096 * 8192, check=2 * 2**30, unit="B", wrong={
            "An element of bfloat16 has two bytes.": 32 * 4096 * 8192,
            "Each of the 32 blocks keeps its input.": 2 * 4096 * 8192,
        }, hint="How many elements does the input of one block have?",
        why="The input of a block has `8192 * 4096` elements of `2` bytes, and each of the `32` blocks keeps its own.")


def checkpointing_lets_a_large_model_fit() -> None:
    """In data parallelism, sharding divides a model's state, and checkpointing shrinks its activations."""
    note(r"""
        Llama-3-70B has `80` blocks and a model dimension of `8192`. Can it be trained on GPUs of
        `80` GB, with one sequence of `8192` tokens on each? This is *data parallelism*: each GPU
        trains on its own sequences. Two things need most of a GPU's memory:

        - The *state* of the model: parameters, gradients and the optimizer's running averages, `16`
          bytes per parameter. *Sharding* gives each GPU a slice of the state, so with more GPUs
          each holds less.
        - The *activations* of the GPU's sequence. In data parallelism more GPUs do not make these
          smaller, because the other GPUs train on other sequences. Checkpointing does: a GPU then
          keeps the inputs of all blocks, and the activations of only the block that is being
          recomputed.

        By hand, take two blocks whose inputs need `1` GB each and whose activations need `10` GB
        each. Without checkpointing a GPU keeps `10 + 10` GB. With checkpointing it keeps both
        inputs and one block's activations: `1 + 1 + 10` GB.

        Now the real size. A tenth of a GPU's memory is kept free for buffers and temporary results,
        so `72` of `80` GB are available. `activation_bytes` gives the bytes that a block keeps per
        token, [about `12 * 8192 + 4 * 1024 + 8 * 28672`](#the_block_of_today_keeps_other_tensors).
        The input of a block has `8192` elements of `2` bytes per token:
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
    note(rf"""
        Without checkpointing, the activations of one sequence need {activations:.1f} GB; with
        checkpointing, {checkpointed:.1f} GB. Add each GPU's slice of `state`, the `16` bytes of
        each of {parameter_count(config) / 1e9:.1f} billion parameters:
    """)
    state = 16 * parameter_count(config) / GB  # @inspect round(state) as GB
    needs = {gpus: state / gpus + checkpointed for gpus in (8, 16, 32, 64)}
    needed = {gpus: round(need) for gpus, need in needs.items()}  # @inspect needed as GB
    enough = [gpus for gpus, need in needs.items() if need < 72]
    assert enough == [32, 64], \
        "Of 8, 16, 32 and 64 GPUs, 32 and 64 are enough to fit state and activations into 72 GB each."
    planned = room(CARDS["H100 SXM"].memory, RESERVE, 0)  # @hide
    assert planned == 72 * GB, \
        "Nine tenths of the memory of an H100 are 72 GB."  # @hide
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
            More GPUs shrink the state, but not the activations. A shorter sequence helps, and so
            does keeping only the inputs of blocks.
        """, caption=r"""
            What one GPU holds in data parallelism with a sharded state: its slice of the `16` bytes
            for each parameter, the activations of one sequence, and the softmax
            [of its logits](#logits_weigh_as_much_as_layers); the dashed tenth is kept free. The
            picture begins with `1024` GPUs and without checkpointing. The model is trained on
            `15e12` tokens, at `40 %` of the peak; the FLOPs include those of
            [attention](#training_costs_six_per_weight_and_twelve_per_pair) and of recomputation.
        """, alt=r"""
            It does not fit. A frame, the memory of one H100, and a bar that runs far out of it: a
            sliver of state, activations, and the softmax of the logits.
        """)  # @hide
    note(rf"""
        So in data parallelism without checkpointing, no number of GPUs is enough, because each
        holds {activations:.0f} GB of activations, regardless of their number. With checkpointing
        each holds {checkpointed:.1f} GB of activations, and {enough[0]} is the smallest of the
        numbers tried that is enough: a slice of the state is then {state / enough[0]:.0f} GB.
    """)
    question(r"""
        A model has `2e9` parameters, and its state has `16` bytes for each. The state is sharded
        over `8` GPUs, in data parallelism. The activations of a sequence are `50` GB, and `3` GB
        with checkpointing. How many GB does a GPU hold with checkpointing?
    """, answer=16 * 2e9 / 8 / GB + 3, check=2 * 2 + 3, unit="GB", within=0.01, wrong={
            "Sharding does not divide activations.": 16 * 2e9 / 8 / GB + 3 / 8,
            "With sharding, a GPU holds an eighth of the state.": 16 * 2e9 / GB + 3,
            "That is without checkpointing.": 16 * 2e9 / 8 / GB + 50,
        }, hint="First the slice of the state.",
        why="The state is `32` GB, and `8` GPUs hold `4` GB of it each. Each GPU also holds its `3` GB of activations.")


@aside
def logits_weigh_as_much_as_layers() -> None:
    """The loss over a large vocabulary needs as much memory as several layers."""
    note(r"""
        How much memory does the loss of a language model need? After the last block, the model
        gives each token of a sequence a score for each token of its vocabulary; these scores are
        the *logits*. In training, the loss computes their softmax in `float32`, `4` bytes per
        score, and keeps it, because the backward pass computes the gradients of the scores from it.
        So for each token of the sequence, the loss should keep `4` bytes for each token of the
        vocabulary.

        Test this on a small model, once with a vocabulary of `100` tokens and once with `1100`.
        `kept` builds the model, and adds up the bytes that autograd keeps for each token of the
        sequence:
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
        "For each token of the sequence, the loss keeps 4 bytes for each token of the vocabulary."
    note(r"""
        Is that much? The vocabulary of Llama-3-8B has `128256` tokens. Compare the bytes per token
        that its loss keeps with those that one layer keeps, which `activation_bytes` returns:
    """)
    vocabulary, layer = 128256, activation_bytes(LLAMA_3_8B, 8192)  # @inspect layer as B
    assert vocabulary == LLAMA_3_8B.vocabulary, \
        "This is the vocabulary of Llama-3-8B."  # @hide
    loss = 4 * vocabulary  # @inspect loss as B
    layers = loss / layer  # @inspect round(layers, 1) as layers
    assert 3 < layers < 3.1, \
        "In Llama-3-8B, the loss keeps as much as three layers."
    held = 8192 * loss
    note(rf"""
        So the loss of Llama-3-8B keeps as much as {layers:.0f} of its layers, because a token has
        `128256` scores and only `4096` elements of its own. For a sequence of `8192` tokens, the
        loss keeps `8192 * 128256 * 4` bytes, which is {held / 1e9:.1f} GB.
    """)
    question(r"""
        Llama-2 has a vocabulary of `32000` tokens. How many GB does the softmax for a sequence of
        `8192` tokens need in `float32`, `4` bytes per score?
    """, answer=8192 * 32000 * 4 / GB, check=held / 128256 * 32000 / GB, unit="GB", within=0.03, wrong={
            "A score in float32 has four bytes.": 8192 * 32000 / GB,
        }, hint="How many scores does the sequence have?",
        why="Each of `8192` tokens has a score for each of `32000` tokens of the vocabulary, of `4` bytes.")
