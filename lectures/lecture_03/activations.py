"""What a block keeps for the backward pass, in bytes per token, and what recomputing saves."""
import math
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from counters import flops, saved_bytes_of
from hardware import CARDS
from jaxtyping import Float
from napkin import DAY, MFU, RESERVE, kept_activations, logits_bytes, memory_per_device, room, training_seconds
from timing import one_thread
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from units import GB, TERA
from plots import stacks

from litbook import aside, explore, figure, note, question

from .block import Block, How, RMSNorm, Transformer, turns, written_attention
from .counts import Config, activation_bytes, attention_flops, block_weights, forward_flops, parameter_count
from .figures import plot_fit, plot_lines
from .published import LLAMA_3_8B, LLAMA_3_70B, MODELS, SMALL


def the_activations_of_a_block() -> None:
    """The activations of a block."""
    note(r"""
        A training step keeps *activations*: results of the forward pass that the backward pass
        needs. Parameters, gradients and the optimizer's running averages need the same memory for
        any sequence length. The activations grow with every token, so they decide how large a batch
        can be. How many bytes of activations does one token need in one layer?
    """)
    most_activations_are_feed_forward()
    unfused_attention_keeps_a_weight_per_pair()
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


def kept_by(
    config: Config, context: int, attention: Literal["fused", "unfused"]
) -> float:
    """Bytes per token that a block keeps for the backward pass, counted in a run; `context`: tokens per sequence.

    Its norms keep what a GPU's kernel keeps, their input and one value per token. On a CPU, PyTorch runs a norm as several
    operations and keeps more.
    """
    how: How = "fused" if attention == "fused" else "written"
    block = with_lean_norms(Block(config, how))
    return kept_per_token(block, config.width, 2, context, config.head)


def most_activations_are_feed_forward() -> None:
    """In Llama-3-8B with fused attention, two thirds of what a block keeps for the backward pass are four feed-forward tensors."""
    note(r"""
        Which results of the forward pass need most of the memory in training? A block keeps some of
        them, its *activations*, for the backward pass. In a block of Llama-3-8B, four tensors
        inside the feed-forward part need two thirds of these bytes, because each of them has `3.5`
        times as many elements as a token's vector, and no other tensor has more elements than the
        vector.

        *Autograd*, the part of PyTorch that computes gradients, keeps what it computes them from.
        Here that is:

        - for a matmul, its input (the weights are in memory anyway, and are not counted);
        - for a product $a \cdot b$, both factors, because the gradient of $a$ is computed from $b$,
          and that of $b$ from $a$;
        - for a norm and for the nonlinearity *SiLU*, the input;
        - for attention, the queries, keys and values. It is *fused*: it runs as one program on the
          GPU, which keeps no softmax weights.

        The feed-forward part computes
        $\text{down}(\text{SiLU}(\text{gate}(x)) \cdot \text{up}(x))$. The matrices *gate* and *up*
        turn a token's vector of $d$ elements into $h$ elements each, and the matrix *down* turns
        $h$ elements back into $d$. By hand, take $d = 2$, $h = 7$ and $d_{kv} = 1$, the elements of
        a token's keys in all heads together:

        | kept for a token | elements | by hand |
        |---|---|---|
        | inputs of the two norms | $2d$ | $4$ |
        | input of the query, key and value matrices | $d$ | $2$ |
        | queries | $d$ | $2$ |
        | keys and values | $2d_{kv}$ | $2$ |
        | result of attention, the input of its output matrix | $d$ | $2$ |
        | $x$, the input of gate and up | $d$ | $2$ |
        | $\text{gate}(x)$, the input of SiLU | $h$ | $7$ |
        | $\text{SiLU}(\text{gate}(x))$, a factor of the product | $h$ | $7$ |
        | $\text{up}(x)$, the other factor | $h$ | $7$ |
        | the product, the input of down | $h$ | $7$ |

        The last four have $4 \cdot 7 = 28$ of all $42$ elements. In `bfloat16` an element has `2`
        bytes, so in general:

        [@eq:activations]: $$
        \text{bytes kept per token and block} \approx 2\,(6d + 2d_{kv} + 4h) = 12\,d + 4\,d_{kv} + 8\,h
        $$

        Left out are `4` bytes per token for each norm and for each head of attention. Check this on
        a small block with $d = 64$, $d_{kv} = 16$, $h = 160$, `2` norms and `8` heads. `kept_by`
        runs its forward pass and returns the bytes that autograd keeps, without the weights,
        divided by the number of tokens:
    """)
    formula = 12 * 64 + 4 * 16 + 8 * 160  # @inspect formula as B
    kept = kept_by(SMALL, 32, "fused")  # @inspect kept as B
    assert kept == formula + 4 * (2 + 8), \
        "Autograd keeps what the formula says, and 4 bytes for each of 2 norms and 8 heads."
    assert kept == activation_bytes(SMALL, SMALL.context) == 2152, \
        "The list gives 2152 bytes for a token of the small block."  # @hide
    wide = Config(1, 96, 6, 3, 200, 100, 64)  # @hide
    cases = (SMALL, 32), (SMALL, 64), (wide, 16)  # @hide
    fused = [kept_by(c, s, "fused") for c, s in cases]  # @hide
    exact = [activation_bytes(c, s) for c, s in cases]  # @hide
    assert exact == [2152, 2152, 2976], \
        "For three sizes, the list gives 2152, 2152 and 2976 bytes for a token."  # @hide
    assert fused == exact, \
        "For three sizes, fused, the list is right to the byte."  # @hide
    unfused = [kept_by(c, s, "unfused") for c, s in cases]  # @hide
    exact = [activation_bytes(c, s, fused=False) for c, s in cases]  # @hide
    assert exact == [2632, 3144, 3144], \
        "Unfused, with the softmax weights added, the list gives 2632, 3144 and 3144."  # @hide
    assert unfused == exact, \
        "For three sizes, unfused, the list is right to the byte."  # @hide
    note("Now Llama-3-8B, with $d = 4096$, $d_{kv} = 1024$ and $h = 14336$ [@llama-3-8b]:")
    four_tensors = 8 * 14336  # @inspect four_tensors as B
    layer = 12 * 4096 + 4 * 1024 + four_tensors  # @inspect layer as B
    share = four_tensors / layer  # @inspect share as %
    assert round(share, 2) == 0.68, \
        "In Llama-3-8B, the four tensors have 68 % of the bytes that a block keeps."
    sizes = LLAMA_3_8B.width, LLAMA_3_8B.kv_width, LLAMA_3_8B.hidden  # @hide
    assert sizes == (4096, 1024, 14336), \
        "These are the sizes of Llama-3-8B."  # @hide
    assert LLAMA_3_8B.hidden / LLAMA_3_8B.width == 3.5, \
        "In Llama-3-8B, h is 3.5 times d."  # @hide
    exact_layer = activation_bytes(LLAMA_3_8B, 8192)  # @hide
    assert exact_layer - layer == 2 * 4 + 4 * 32, \
        "The formula leaves out the few elements of norms and heads."  # @hide
    by_part = {
        "six tensors of d elements": 12 * LLAMA_3_8B.width,
        "keys and values": 4 * LLAMA_3_8B.kv_width,
        "four tensors of h elements": 8 * LLAMA_3_8B.hidden,
    }  # @hide
    assert sum(by_part.values()) == layer, \
        "The parts add up to the formula."  # @hide
    figure(stacks({"Llama-3-8B": {part: size / 1000 for part, size in by_part.items()}}, "kB per token and block"),
        caption=r"""
            Bytes that a block of Llama-3-8B keeps per token, by the three terms of the formula.
        """, alt=r"""
            A bar of three parts. The four tensors of h elements are about twice as long as the
            rest.
        """)
    note(rf"""
        So to keep fewer activations in such a block, start with these four tensors: they are
        {share:.0%} of what it keeps.
    """)
    question(r"""
        Someone writes a kernel for the feed-forward part that keeps only the results of gate and
        up. In the backward pass it recomputes SiLU and the product from these two. How many bytes
        per token does that save in a block of Llama-3-8B, where $h$ is `14336`?
    """, answer=2 * 2 * 14336, check=layer - (12 * 4096 + 4 * 1024 + 4 * 14336), unit="B", wrong={
            "Each element has two bytes.": 2 * 14336,
            "Two of the four tensors are still kept.": 4 * 2 * 14336,
        }, hint="How many of the four tensors are no longer kept?",
        why="SiLU's result and the product are no longer kept: two tensors of `14336` elements of `2` bytes.")


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


@one_thread()
def in_tiles(  # @stepover
    rows: int,
    q: Float[Tensor, "n d"],
    k: Float[Tensor, "n d"],
    v: Float[Tensor, "n d"],
) -> Float[Tensor, "n d"]:
    """Causal attention of one head in tiles; `rows`: tokens of a tile."""
    n, d = q.shape
    mask = torch.full((rows, rows), -torch.inf).triu(1)
    mixed = torch.empty_like(q)
    for end in range(rows, n + 1, rows):
        tile, result = q[end - rows:end], torch.zeros(rows, d)
        top, total = torch.full((rows, 1), -torch.inf), torch.zeros(rows, 1)
        for start in range(0, end, rows):
            keys, values = (x[start:start + rows] for x in (k, v))
            scores = tile @ keys.T / math.sqrt(d)
            if start + rows == end:
                scores = scores + mask
            # Sums so far are scaled anew when a larger score comes.
            before, top = top, scores.amax(1, keepdim=True).maximum(top)
            weights, scale = (scores - top).exp(), (before - top).exp()
            total = total * scale + weights.sum(1, keepdim=True)
            result = result * scale + weights @ values
        mixed[end - rows:end] = result / total
    return mixed


@aside
def unfused_attention_keeps_a_weight_per_pair() -> None:
    """In each head, unfused attention keeps a weight for every pair of tokens, fused attention only one value per token."""
    note(r"""
        In each head of attention, each token has a *score* for each token of the sequence, and the
        softmax turns it into a *softmax weight*. The weight says how much of the other token's
        value goes into the result. The backward pass needs all these weights. Do they have to be
        kept?

        - *Unfused* attention runs as separate operations and keeps the weights: `2` bytes each in
          `bfloat16`.
        - *Fused* attention, FlashAttention for example, runs as a single program, a kernel, and
          holds the weights of only a few tokens at a time. This works because its result is the sum
          of $\exp(\text{score}) \cdot \text{value}$ divided by the sum of $\exp(\text{score})$:
          each token adds a term to both, and then its weight can be forgotten. It keeps only one
          value of `4` bytes for each head and token, the logarithm of the softmax's denominator.
          From this value, and from the queries and keys, which are kept anyway, it recomputes the
          weights in the backward pass [@dao2022].

        By hand, take one head. In a sequence of $10$ tokens, a token has $10$ weights and keeps
        $10 \cdot 2 = 20$ bytes unfused. In a sequence of $20$ tokens it keeps $20 \cdot 2 = 40$.
        Fused, it keeps $4$ bytes in both.

        Measure it with a small block of `8` heads (`SMALL`). `kept_by` runs the block, adds up the
        bytes of all tensors that autograd keeps, without the model's parameters, and divides them
        by the number of tokens:
    """)
    lengths = [16, 32, 64, 128]  # tokens in the sequence
    fused = [kept_by(SMALL, n, "fused") for n in lengths]  # @inspect fused as B
    unfused = [kept_by(SMALL, n, "unfused") for n in lengths]  # @inspect unfused as B
    assert max(fused) == min(fused), \
        "Fused, the bytes per token are the same in a long sequence and in a short one."
    more = [u - f for u, f in zip(unfused, fused)]  # @hide
    assert more == [224, 480, 992, 2016], \
        "Unfused, the block keeps 224, 480, 992 and 2016 bytes per token more."  # @hide
    assert more == [8 * 2 * n - 8 * 4 for n in lengths], \
        "Unfused, each head keeps 2 * n bytes per token; fused, it keeps 4 bytes for any n."
    q, k, v = torch.randn(3, 512, 64)  # @hide
    one_head = [x[None, :, None] for x in (q, k, v)]  # one sequence, one head  # @hide
    whole = written_attention(*one_head).flatten(0, 2)  # @hide
    tiled = in_tiles(16, q, k, v)  # @unnoticed: 16: tiles of any size  # @hide
    assert torch.allclose(tiled, whole, atol=1e-5), \
        "With the weights of 16 tokens at a time, the result is that of unfused attention."  # @hide
    tokens, heads = 8192, LLAMA_3_8B.heads  # @hide
    token = activation_bytes(LLAMA_3_8B, tokens)  # @hide
    layer = tokens * token  # @hide
    out = tokens * activation_bytes(LLAMA_3_8B, tokens, fused=False)  # @hide
    assert 4.1 < out / layer < 4.2, \
        "Unfused, a layer of Llama-3-8B keeps 4.1 times as much as fused."  # @hide
    assert LLAMA_3_8B.context == tokens, \
        "Llama-3-8B has a context of 8192 tokens."  # @hide
    note(rf"""
        So unfused, twice the sequence length means twice as many weights for *each* token, because
        each token has a weight for every token of the sequence.

        Llama-3-8B has `32` heads and a context of `8192` tokens [@llama3]. Fused, a layer keeps
        about {token / 1e3:.0f} kB per token, by its [formula](#most_activations_are_feed_forward).
        Unfused, each of `32` heads also keeps `8192` weights of `2` bytes: `32 * 8192 * 2` bytes,
        another {2 * heads * tokens / 1e3:.0f} kB. This is a reason to train on long sequences with
        fused attention.
    """)
    more_lengths = [2**n for n in range(9, 18)]  # @hide
    lines = {
        "unfused": [activation_bytes(LLAMA_3_8B, n, fused=False) for n in more_lengths],
        "fused": [activation_bytes(LLAMA_3_8B, n) for n in more_lengths],
    }  # @hide
    least = lines["fused"][0] / (2 * LLAMA_3_8B.width)  # @hide
    assert 20 < least < 21, \
        "With fused attention, a layer keeps more than 20 times what its input alone takes."  # @hide
    in_kb = {name: [size / 1000 for size in line] for name, line in lines.items()}  # @hide
    figure(plot_lines(more_lengths, in_kb, "tokens in the sequence", "kB per token and layer", log=True),
        caption=r"""
            Bytes kept per token in a layer of Llama-3-8B. Unfused, they grow with the length of the
            sequence; fused, they do not.
        """, alt=r"""
            Two curves against the length of the sequence. The curve of unfused attention bends
            upwards and rises more than fortyfold; the curve of fused attention is flat.
        """)

    def of_softmax(length: int) -> float:  # @hide
        logarithms = 4 * SMALL.heads  # which only fused attention keeps
        return length * (kept_by(SMALL, length, "unfused") - kept_by(SMALL, length, "fused") + logarithms)

    question(r"""
        With unfused attention, a layer keeps the softmax weights of a sequence of `1000` tokens.
        The sequence becomes `3` times as long. How many times as many bytes do the softmax weights
        of the whole sequence need then?
    """, answer=3**2, check=of_softmax(300) / of_softmax(100), unit="times", wrong={
            "That is for each token, and there are also three times as many tokens.": 3,
        }, hint="How many tokens are there, and how many weights does each have?", why=r"""
            Each token has `3` times as many weights, and there are `3` times as many tokens.
        """)


def checkpointing_keeps_the_input_alone() -> None:
    """A checkpointed block keeps only its input, and is recomputed in the backward pass."""
    note(r"""
        *Activations*, the results of the forward pass that the backward pass needs, use a lot of
        memory. Do they all have to be kept?

        No, because they can be recomputed from the block's input. In *activation checkpointing*
        [@chen2016], also called recomputation, a block keeps only its input. When the backward pass
        reaches the block, the block runs again from this input. If every block is checkpointed,
        only one block at a time holds all its activations.

        Try it with a small `block` and an input `x` of `48` tokens of `64` elements, `2` bytes
        each. PyTorch's `checkpoint` runs a block in this way; `use_reentrant=False` is the setting
        that PyTorch recommends. `saved_bytes` adds up what autograd then keeps, apart from the
        weights:
    """)
    small = Block(SMALL).bfloat16()  # @hide
    x = torch.randn(2, 24, 64, dtype=torch.bfloat16, requires_grad=True)  # @hide
    turn = turns(SMALL.head, 24, like=x)  # @hide
    block = partial(small, turn=turn)  # @hide
    saved_bytes = partial(saved_bytes_of, given=[*small.parameters(), turn])  # @hide

    kept = saved_bytes(
        lambda: checkpoint(block, x, use_reentrant=False)
    )  # @inspect kept as B
    assert kept == 48 * 64 * 2, \
        "Autograd keeps the bytes of the block's input, and nothing else."
    expected, = torch.autograd.grad(block(x).sum(), x)  # @hide
    gradient, = torch.autograd.grad(checkpoint(block, x, use_reentrant=False).sum(), x)  # @hide
    assert torch.equal(gradient, expected), \
        "The gradient is the same, bit for bit."  # @hide
    usual_bytes, input_bytes = 12 * 4096 + 4 * 1024 + 8 * 14336, 2 * 4096  # @hide
    exact = activation_bytes(LLAMA_3_8B, 4096)  # @hide
    assert round(exact / input_bytes, 1) == usual_bytes / input_bytes == 20.5, \
        "A block of Llama-3-8B that is not checkpointed keeps 20.5 times the bytes of its input."  # @hide
    note(rf"""
        In Llama-3-8B, the input of a block has `4096` elements of `2` bytes per token:
        {input_bytes:,} bytes. Without checkpointing and with fused attention, the block
        [keeps](#most_activations_are_feed_forward) {usual_bytes:,} bytes per token,
        {usual_bytes / input_bytes} times as many.

        The price is arithmetic. Let the FLOPs of a block's forward pass be $1$ unit. Its backward
        pass costs $2$, because each matmul has two gradients, of its weights and of its input. So a
        step costs $1 + 2 = 3$ units. With checkpointing it costs at most $1 + 1 + 2 = 4$, a third
        more.

        Count the FLOPs of a block of Llama-3-8B, `large`, for `8192` tokens. `.sum()` stands for a
        loss:
    """)
    with torch.device("meta"):  # @hide
        large = partial(Block(LLAMA_3_8B, "written"), turn=turns(LLAMA_3_8B.head, 8192))  # @unnoticed: 'written': on `meta` a fused call is counted by its matmuls
        tokens = torch.empty(1, 8192, 4096)

    def checkpointed_step() -> None:
        y = checkpoint(large, tokens, use_reentrant=False)
        y.sum().backward()

    usual = flops(lambda: large(tokens).sum().backward())  # @inspect usual as FLOP
    checkpointed = flops(checkpointed_step)  # @inspect checkpointed as FLOP
    more = checkpointed / usual - 1  # @inspect more as %
    assert round(more, 2) == 0.26, \
        "With checkpointing, a step of a block costs 26 % more FLOPs."
    forward = flops(lambda: large(tokens))  # @hide
    assert usual == 3 * forward, \
        "A step without checkpointing costs three times the FLOPs of a forward pass."  # @hide
    down = 2 * 8192 * 4096 * 14336  # @hide
    assert checkpointed - usual == forward - down, \
        "What runs again is the forward pass without its last matmul."  # @hide
    note(rf"""
        It is {more:.0%} and not a third, because PyTorch stops before the block's last matmul: the
        backward pass needs the input of this matmul, but not its result.
    """)
    step = {"forward pass": forward, "backward pass": usual - forward}  # @hide
    both = {"usual": step, "checkpointed": {**step, "forward once more": checkpointed - usual}}  # @hide
    figure(stacks({n: {p: w / TERA for p, w in of.items()} for n, of in both.items()}, "TFLOP"), caption=r"""
        FLOPs of a training step of one block of Llama-3-8B with `8192` tokens. Checkpointing adds a
        forward pass without its last matmul.
    """, alt=r"""
        Two stacked bars. The backward pass is twice as long as the forward pass; the bar of the
        checkpointed step has a third part, a little shorter than the forward pass.
    """)

    def sines(x: Tensor) -> Tensor:  # @hide
        """Keeps 20 tensors: the input of each sine."""
        for _ in range(20):
            x = x.sin()
        return x

    def pairs_of_blocks() -> Tensor:  # @hide
        y = x
        for _ in range(16):
            y = checkpoint(sines, sines(y), use_reentrant=False)
        return y

    question(r"""
        Checkpointing can also be used for only some of the blocks. Of `32` equal blocks, `16` are
        checkpointed. The input of a block needs `1` GB, and all activations of a block need `20`
        GB, its input included. How many GB does the model keep at the end of the forward pass?
    """, answer=16 * 1 + 16 * 20, check=saved_bytes_of(pairs_of_blocks) / x.nbytes, unit="GB", wrong={
            "A checkpointed block still keeps its input.": 16 * 20,
            "That is with checkpointing in every block.": 32,
        }, hint="What does each of the two kinds of blocks keep?",
        why="The `16` checkpointed blocks keep `1` GB each, and the other `16` blocks keep `20` GB each.")


def checkpointing_lets_a_large_model_fit() -> None:
    """In data parallelism, sharding divides a model's state, and checkpointing shrinks its activations."""
    note(r"""
        A model does not fit into the memory of a GPU. Do more GPUs help? Not alone, because in
        *data parallelism*, where each GPU trains on its own sequences, more GPUs make only one of
        two things smaller:

        - The *state* of the model: parameters, gradients and the optimizer's two running averages,
          `4 + 4 + 8 = 16` bytes per parameter. *Sharding* gives each GPU a slice of the state, so
          with more GPUs each slice is smaller.
        - The *activations*, the results of the forward pass that the backward pass needs. They
          belong to a GPU's own sequence, and other GPUs do not hold any of them. *Checkpointing*
          makes them smaller: a block keeps only its input, and computes its activations again when
          the backward pass reaches it.

        By hand, take a model of two blocks with a state of `80` GB, on `4` GPUs. Each GPU has a
        slice of `80 / 4 = 20` GB. The input of a block needs `1` GB, and its activations need `10`
        GB. Without checkpointing a GPU keeps `10 + 10` GB of activations, with checkpointing both
        inputs and the activations of one block: `1 + 1 + 10`. On `8` GPUs the slice is `10` GB, and
        the activations are the same.

        Now Llama-3-70B [@llama3] with one sequence of `8192` tokens per GPU. It has `80` blocks. A
        block [keeps](#most_activations_are_feed_forward), per token and with fused attention,

        - `12` bytes for each of the `8192` elements of a token's vector (six tensors of `2` bytes
          per element),
        - `4` bytes for each of the `1024` elements of its keys (the keys and the values),
        - `8` bytes for each of the `28672` elements inside the feed-forward part (four tensors),
        - `4` bytes for each of `2` norms and `64` heads.

        The block's input has `2` bytes for each of the `8192` elements:
    """)
    tokens = 8192
    per_token = 12 * 8192 + 4 * 1024 + 8 * 28672 + 4 * (2 + 64)  # B  # @inspect per_token as B
    assert per_token == activation_bytes(LLAMA_3_70B, tokens), \
        "A list of all tensors gives the same bytes per token."  # @hide
    block_gb = tokens * per_token / GB  # @inspect round(block_gb, 2) as GB
    input_gb = tokens * 8192 * 2 / GB  # @inspect round(input_gb, 2) as GB
    usual_gb = 80 * block_gb  # @inspect round(usual_gb, 1) as GB
    checkpointed_gb = 80 * input_gb + block_gb  # @inspect round(checkpointed_gb, 1) as GB
    assert round(usual_gb) == 218, \
        "Without checkpointing, the activations of one sequence need 218 GB."
    assert round(checkpointed_gb, 1) == 13.5, \
        "With checkpointing, they need 13.5 GB."
    assert (LLAMA_3_70B.layers, LLAMA_3_70B.width) == (80, 8192), \
        "Llama-3-70B has 80 blocks and a model dimension of 8192."  # @hide
    logits_gb = logits_bytes(LLAMA_3_70B.vocabulary, tokens) / GB  # @hide
    parameters = parameter_count(LLAMA_3_70B)  # @hide
    note(rf"""
        So in data parallelism without checkpointing, no number of GPUs of `80` GB is enough: each
        would hold {usual_gb:.0f} GB of activations. (GPUs that divide the activations of one
        sequence among them do not do data parallelism: an eighth, {usual_gb / 8:.0f} GB, would
        fit.)

        With checkpointing, how many GPUs are enough? A tenth of the `80` GB is kept free for
        temporary data, an assumption, so `72` GB are left for the activations and the slice. The
        state is `16` bytes for each of {parameters / 1e9:.2f} billion parameters:
    """)
    state_gb = 16 * parameters / GB  # @inspect round(state_gb) as GB
    needs = {n: state_gb / n + checkpointed_gb for n in range(1, 65)}
    fewest = min(n for n, need in needs.items() if need < 72)  # @inspect fewest as GPUs
    assert fewest == 20, \
        "With checkpointing, 20 GPUs are enough, and fewer are not."
    with_loss = min(n for n, need in needs.items() if need + logits_gb < 72)  # @hide
    assert with_loss == 21, \
        "With the softmax of the logits, 21 GPUs are needed."  # @hide
    planned = room(CARDS["H100 SXM"].memory, RESERVE, 0)  # @hide
    assert planned == 72 * GB, \
        "Nine tenths of the memory of an H100 are 72 GB."  # @hide
    without = state_gb / 1024, usual_gb  # @hide
    assert round(without[0], 1) == 1.1, \
        "With 1024 GPUs, a slice of the state is 1.1 GB."  # @hide
    assert usual_gb / 8 < 72 < usual_gb, \
        "The activations of a sequence do not fit on one GPU, and an eighth of them does."  # @hide
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

    drawn, all_kept = (in_training("Llama-3-70B", 1024, tokens, kept) for kept in (inputs_alone, "all"))  # @hide
    in_picture = [round(all_kept[kind] / GB, 6) for kind in ("state", "activations")]  # @hide
    assert in_picture == [round(size, 6) for size in without], \
        "The picture shows the same numbers."  # @hide
    assert round(drawn["activations"] / GB, 6) == round(checkpointed_gb, 6), \
        "It begins with checkpointing."  # @hide
    assert (round(drawn["days"]), round(drawn["gpu_hours"], -4)) == (258, 6_340_000), \
        "With checkpointing, 1024 GPUs at 40 % of their peak take 258 days for 15e12 tokens, 6.34 million GPU-hours."  # @hide
    assert (round(all_kept["days"]), round(all_kept["gpu_hours"], -4)) == (206, 5_070_000), \
        "Without it, they would take 206 days, 5.07 million GPU-hours."  # @hide
    explore(in_training, over={
        "model": ["Llama-3.2-1B", "Llama-3-8B", "Llama-3-70B", "Llama-3-405B"],
        "devices": [2**i for i in range(15)], "context": [part * 2**i for i in range(9, 18) for part in (2, 3)],
        "activations_kept": ["all", inputs_alone],
    }, at={
        "model": "Llama-3-70B", "devices": 1024, "context": 8192, "activations_kept": inputs_alone,
    }, module="pictures/fit.js", still=plot_fit(drawn, card.memory),
        do="Let blocks keep all activations. What makes the bar fit into the frame again, and what does not?",
        see=r"""
            More GPUs shrink the state, but not the activations. A shorter sequence helps, and so
            does keeping only the inputs of blocks.
        """, caption=r"""
            What one GPU holds in data parallelism: its slice of the state, the activations of one
            sequence, and the softmax [of its logits](#logits_weigh_as_much_as_layers); the dashed
            tenth is kept free. Days and GPU-hours are for `15e12` tokens at `40 %` of the peak.
        """, alt=r"""
            It fits. A frame, the memory of one H100, and in it a bar that fills about a quarter: a
            sliver of state, activations, and the softmax of the logits.
        """)  # @hide
    note(rf"""
        (The picture includes the softmax of the logits, {logits_gb:.1f} GB, which the code leaves
        out. With it, {with_loss} GPUs are needed.) So in data parallelism the two problems have
        different fixes. If the state is too large, shard it over more GPUs. If the activations are
        too large, use checkpointing or shorter sequences.
    """)
    question(r"""
        The state of a model needs `320` GB and is sharded, in data parallelism. With checkpointing,
        the activations of a GPU's sequence need `8` GB. Each GPU has `40` GB available. What is the
        smallest number of GPUs that is enough?
    """, answer=320 / (40 - 8), check=next(n for n in range(1, 99) if 320 / n + 8 <= 40), unit="GPUs", within=0.01, wrong={
            "Each GPU also holds its activations.": 320 / 40,
            "Sharding does not divide activations.": (320 + 8) / 40,
        }, hint="How many GB of a GPU are left for its slice of the state?",
        why="The activations leave `40 - 8 = 32` GB for the slice of the state, and `10` slices of `32` GB are `320` GB.")


@aside
def logits_weigh_as_much_as_layers() -> None:
    """In Llama-3-8B, a `float32` loss keeps as much memory as three layers."""
    note(r"""
        How much memory does the loss of a language model keep for the backward pass? After the last
        block, the model gives each token of a sequence a score for each token of its vocabulary;
        these scores are the *logits*. PyTorch's `cross_entropy` computes the logarithm of their
        softmax and keeps it, because the backward pass computes the gradients of the scores from
        it. In `float32` that is `4` bytes per score.

        By hand, a sequence of `3` tokens and a vocabulary of $10$ have `3 * 10` scores, so the loss
        keeps `3 * 10 * 4 = 120` bytes.

        Test this on a small model. `kept` runs it with a vocabulary of some size, adds up the bytes
        that autograd keeps in the model and in the loss, and divides them by the number of tokens.
        The difference between two vocabularies is what `1000` more scores need:
    """)

    def kept(vocabulary: int) -> float:  # @hide
        config = Config(1, 64, 8, 2, 160, vocabulary, 32)
        model = Transformer(config).bfloat16()
        tokens = torch.randint(0, vocabulary, (2, 32))

        def loss() -> Tensor:
            logits = model(tokens).float().flatten(0, 1)
            return F.cross_entropy(logits, tokens.flatten())

        return saved_bytes_of(loss, [*model.parameters()]) / tokens.numel()

    per_score = (kept(1100) - kept(100)) / 1000  # @inspect per_score as B
    assert per_score == 4.0, \
        "For each token of the sequence, the loss keeps 4 bytes for each token of the vocabulary."
    note(r"""
        The vocabulary of Llama-3-8B has `128256` tokens. Compare its loss with one layer. With
        fused attention, a layer [keeps](#most_activations_are_feed_forward)
        $12\,d + 4\,d_{kv} + 8\,h$ bytes per token; here $d = 4096$, $d_{kv} = 1024$ and
        $h = 14336$:
    """)
    loss = 4 * 128256  # @inspect loss as B
    layer = 12 * 4096 + 4 * 1024 + 8 * 14336  # @inspect layer as B
    exact = activation_bytes(LLAMA_3_8B, 8192)  # @hide
    assert exact - layer == 2 * 4 + 4 * 32, \
        "Added up tensor by tensor, a layer keeps only 136 bytes more."  # @hide
    assert LLAMA_3_8B.vocabulary == 128256, \
        "This is the vocabulary of Llama-3-8B."  # @hide
    layers = loss / layer  # @inspect round(layers, 1) as layers
    assert round(layers) == 3, \
        "In Llama-3-8B, the loss keeps as much as three layers."
    held = 8192 * loss  # @hide
    note(rf"""
        So the loss keeps as much as {layers:.0f} layers, because a token has `128256` scores of `4`
        bytes, and a layer keeps only {layer:,} bytes for it. For a sequence of `8192` tokens that
        is `8192 * 128256 * 4` bytes, {held / 1e9:.1f} GB. A memory estimate that counts only layers
        overlooks it.
    """)
    x = torch.randn(4000, dtype=torch.bfloat16, requires_grad=True)  # @hide
    one_input = saved_bytes_of(lambda: checkpoint(torch.sin, x, use_reentrant=False))  # @hide
    question(r"""
        A model is checkpointed: each layer keeps only its input, `2` bytes for each of `4000`
        elements per token. The loss still keeps `4` bytes for each of `128000` scores per token.
        The loss keeps as much as the inputs of how many layers?
    """, answer=4 * 128000 / (2 * 4000), check=(kept(128_100) - kept(100)) / one_input, unit="layers", within=0.01, wrong={
            "A score has 4 bytes, and an element of the input has 2.": 32,
        }, hint="How many bytes per token are the scores, and how many is one input?",
        why="The scores of a token are `512000` bytes, and one input is `8000`.")
