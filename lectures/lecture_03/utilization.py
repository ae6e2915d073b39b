"""Which FLOPs enter MFU: the same run by the conventions of well-known codebases."""
import math
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from counters import flops, flops_by_operation
from jaxtyping import Float
from timing import BUSY, one_thread, quickest
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from litbook import aside, figure, misbelief, note, question

from .block import Block, Transformer, turns, written_attention
from .counts import Config, attention_flops, forward_flops, parameter_count
from .figures import plot_lines
from .published import LLAMA_3_8B, SMALL


def which_flops_enter_mfu() -> None:
    """Which FLOPs enter MFU."""
    note(r"""
        *Model FLOPs utilization*, MFU, says which part of a card's arithmetic a training run uses.
        It is the rate at which the model's FLOPs are done, divided by the rate that the card
        promises:

        [@eq:mfu]: $$
        \text{MFU} = \frac{\text{tokens per second} \times \text{FLOPs per token}}{\text{peak}}
        $$

        The peak stands on a datasheet, and the tokens per second are measured. But the FLOPs of a
        token come from a formula, and there are several such formulas. So two runs with the same
        MFU on the same cards may differ in speed by half.
    """)
    training_costs_six_per_weight_and_twelve_per_pair()
    palm_published_both_numbers()
    a_causal_mask_needs_half_the_pairs()
    a_fused_backward_pass_recomputes_scores()
    codebases_count_differently()
    recomputation_is_work_but_not_the_models()
    a_long_context_can_lift_mfu_above_one()


def training_costs_six_per_weight_and_twelve_per_pair() -> None:
    """Training takes six FLOPs per weight and token, and attention adds twelve per layer, width and token of context."""
    note(r"""
        How many FLOPs does a token take in training? First the matrices. A token meets each weight
        in three products: one in the forward pass, and two in the backward pass, for the gradient
        of the weight and for that of the input. Each is a multiplication and an addition, which
        makes six. Then attention. It has two products of its own, scores and sums. For each token
        that is looked at, each takes $d$ multiplications and additions forward, and twice as many
        backward, which makes twelve. With $L$ layers, width $d$, a context of $T$ tokens and $N$
        weights in matrices, that is

        [@eq:training]: $$
        \text{FLOPs of training on a token} = 6N + 12\,L\,d\,T
        $$

        (Where heads together are not as wide as a token, $d$ is the width of the heads.)
    """)
    config, batch, context = SMALL, 3, 32
    with torch.device("meta"):
        model = Transformer(config, "written")
        tokens = torch.zeros(batch, context, dtype=torch.int64)

    def step() -> None:
        logits = model(tokens).flatten(0, 1)
        F.cross_entropy(logits, tokens.flatten()).backward()

    counted = flops(step)  # @inspect counted as FLOP
    table = model.embedding.weight.numel()
    gains = sum(p.numel() for p in model.parameters() if p.dim() == 1)
    weights = sum(p.numel() for p in model.parameters()) - table - gains
    per_token = 6 * weights + 12 * config.layers * config.width * context
    assert counted == batch * context * per_token, "the counter agrees"
    forward = forward_flops(config, batch * context, context)
    assert counted == 3 * forward, "three passes' worth"
    note(r"""
        The embedding is not in $N$, because looking up a row multiplies nothing. The head is in
        $N$. Where one table serves as both, it counts once, as the head.
    """)
    too_many = 6 * (weights + table) / (6 * weights) - 1  # @inspect too_many as %
    assert round(too_many, 3) == 0.072, "too many, if both tables are counted"
    question(r"""
        Llama-3-8B has `7504658432` weights in the matrices of its blocks and its head, `32` layers
        and width `4096`. At how many tokens of context does attention cost as much as all of them?
    """, answer=6 * 7504658432 / (12 * 32 * 4096),
        check=forward_flops(LLAMA_3_8B, 1, 0) / attention_flops(LLAMA_3_8B, 1, 1), unit="tokens", within=0.05,
        why="Contexts of today are several times as long [@llama-32].")


def palm_published_both_numbers() -> None:
    """PaLM's two published MFUs, with attention and without, follow from its report."""
    note(r"""
        The report on PaLM introduced MFU [@palm]. It also states everything that is needed to
        compute it again: `540.35` billion parameters, `118` layers, `48` heads of `256` numbers,
        `2048` tokens of context (attention is as wide as its heads together, although a token has
        `18432` numbers), `6144` chips of `275` TFLOP/s each, and `238.3` thousand tokens per second
        [@palm].
    """)
    parameters, layers, width, context = 540.35e9, 118, 48 * 256, 2048
    promised = 6144 * 275e12  # @inspect promised as FLOP/s
    speed = 238.3e3
    plain = speed * 6 * parameters / promised  # @inspect plain as %
    assert round(plain, 3) == 0.457, "published: 45.7 % without attention"
    pairs = 12 * layers * width * context  # @inspect pairs as FLOP
    full = speed * (6 * parameters + pairs) / promised  # @inspect full as %
    assert round(full, 3) == 0.462, "published: 46.2 % with attention"
    note(r"""
        Attention adds only half a point, because the model is so wide and the context so short.
        Contexts are longer today. What if the same chips did as many FLOPs with weights each
        second, and the context were much longer?
    """)
    long = plain * (1 + 12 * layers * width * 131072 / (6 * parameters))  # @inspect long as %
    assert 0.77 < long < 0.78, "the same chips, the same weights per second"
    question("At how many tokens of context would attention cost as many FLOPs as PaLM's parameters?",
             answer=540.35e9 / (2 * 118 * 48 * 256), check=6 * parameters * context / pairs, unit="tokens",
             within=0.05,
             why="At `2048` it was nearly nothing: that is why half a point was all.")


def a_causal_mask_needs_half_the_pairs() -> None:
    """A causal mask hides half of all pairs, and a program can skip them."""
    note(r"""
        No token looks at a later one, so a causal mask hides about half of all pairs of a query and
        a key. Are their scores computed all the same? In written-out attention they are, and then
        thrown away. To skip most of them, cut the queries into blocks. Each block is scored only
        against the keys up to its own end:
    """)
    b, t, h, n = 1, 64, 2, 8
    q, k, v = torch.randn(3, b, t, h, n).double()

    def in_blocks(size: int) -> Float[Tensor, "b t h n"]:
        ends = range(size, t + 1, size)
        rows = [(q[:, e - size:e], k[:, :e], v[:, :e]) for e in ends]
        return torch.cat([written_attention(*row) for row in rows], dim=1)

    whole = written_attention(q, k, v)
    assert torch.allclose(in_blocks(16), whole), "the same result"
    full = flops(lambda: written_attention(q, k, v))  # @inspect full as FLOP
    shares = [flops(partial(in_blocks, s)) / full for s in (64, 32, 16, 2)]  # @inspect shares
    assert shares == [1, 3 / 4, 5 / 8, 33 / 64], "in 1, 2, 4 and 32 blocks"
    note(r"""
        With $m$ blocks, the share of pairs that are scored is $(m+1)/2m$, which approaches one
        half. Fused kernels work in such blocks, and skip what is hidden if they are told that the
        mask is causal. So the [twelve](#training_costs_six_per_weight_and_twelve_per_pair) counts
        every pair, as the formula of attention has it. Half of that, six, counts the pairs that the
        task needs.
    """)
    question("Into how many blocks must the queries be cut for less than `51%` of the pairs?",
             answer=next(m for m in range(1, 200) if (m + 1) / (2 * m) < 0.51), check=1 + 50, unit="blocks",
             why="The last hundredths are dear: to halve what is wasted takes twice the blocks.")


@aside
def a_fused_backward_pass_recomputes_scores() -> None:
    """A fused backward pass has five products where the forward pass has two."""
    note(r"""
        How many FLOPs does fused attention take in the backward pass? Each of its two products has
        two gradients, which makes four products. A fused kernel kept no weights, so it also
        computes the scores again: five products. PyTorch's counter has a formula for the CUDA
        kernel, and on `meta` it can be asked without a card:
    """)
    t, width = 4096, 32 * 128
    with torch.device("meta"):
        q, k, v = torch.empty(3, 1, 32, t, 128, requires_grad=True).bfloat16()
    kernel = torch.ops.aten._scaled_dot_product_flash_attention

    def attend(causal: bool) -> Tensor:
        mixed: Tensor = kernel(q, k, v, 0.0, causal)[0]
        return mixed

    bill = flops_by_operation(lambda: attend(True).sum().backward())  # @inspect bill as FLOP
    forward, backward = bill.values()
    assert backward / forward == 2.5, "five products to two"
    per_pair = (forward + backward) / (t * t * width)  # @inspect per_pair as FLOP
    assert per_pair == 14.0, "instead of twelve"
    ignored = flops(lambda: attend(False)) - flops(lambda: attend(True))
    assert ignored == 0, "the counter does not look at the mask"  # @zero: the difference of two equal counts
    own = per_pair * 6 / 7  # @inspect own as FLOP
    assert own == 12.0, "six products of the seven"
    note(rf"""
        So there are four numbers for attention, in FLOPs per layer, width and token of context.
        Each is right about something:

        | | every pair | pairs that the mask leaves |
        |---|---|---|
        | the model's own products | {own:.0f} | {own / 2:.0f} |
        | with scores computed again | {per_pair:.0f} | {per_pair / 2:.0f} |

        FlashAttention's benchmark counts what the kernel computes: 7 with a causal mask, and 14
        without [@flash-benchmark].
    """)
    assert per_pair / 2 == 7.0, "with the mask"
    question(r"""
        Written-out attention in a block that is checkpointed runs its two products once more, the
        scores and the sums. How many FLOPs per layer, width and token seen is that in all?
    """, answer=2 * (2 + 4 + 2), check=per_pair_checkpointed(64), unit="FLOP",
        why="Two products forward, four backward and two again, each with a multiplication and an addition.")


def per_pair_checkpointed(tokens: int) -> float:
    """FLOPs of attention per width and pair of tokens in a step of a checkpointed block, as the counter has it.

    What grows with the pairs alone is left when the step of half a text is taken twice from that of the whole.
    """
    with torch.device("meta"):
        block = Checkpointed(Block(SMALL, "written"))

        def step(length: int) -> None:
            x = torch.empty(1, length, SMALL.width, requires_grad=True)
            block(x, turns(SMALL.head, length), None).sum().backward()

        whole, half = (flops(partial(step, n)) for n in (2 * tokens, tokens))
    return (whole - 2 * half) / (2 * tokens**2 * SMALL.width)


class Convention(NamedTuple):
    """How a codebase counts the FLOPs of training: six per parameter, and something for attention.

    The gains of the norms, which some leave out, are counted here: they are too few to be seen.
    """

    embedding: bool  # whether its rows count as weights that are multiplied by
    attention: int   # FLOPs per layer, width and token of context

    def flops_per_token(self, config: Config, context: int) -> int:
        """FLOPs of training on one token."""
        weights, pairs = parameter_count(config), config.layers * context
        if not (self.embedding or config.tied):
            weights -= config.vocabulary * config.width
        return 6 * weights + self.attention * pairs * config.width


CONVENTIONS = {
    "6N": Convention(True, 0),
    "nanoGPT": Convention(True, 12),
    "torchtitan": Convention(False, 12),
    "Megatron-LM": Convention(False, 6),
}


def codebases_count_differently() -> None:
    """The same run has a different MFU in each codebase."""
    note(r"""
        The rule of thumb is $6N$ FLOPs for a token, with $N$ all parameters. Well-known codebases
        add attention, each in its own way:

        - *nanoGPT* takes PaLM's formula, $6N + 12LdT$, with $N$ all parameters but the positions'
          [@nanogpt]. Its head and embedding are one matrix, so that is right for it.
        - *torchtitan* leaves the embedding out of $N$, counts every pair, and says why: masks and
          recomputation do not count, by convention [@torchtitan].
        - *Megatron-LM* adds up the matrices, and halves attention for the mask [@megatron-lm]. So
          does *MaxText* today [@maxtext].
    """)
    names = list(CONVENTIONS)  # @inspect names

    def relative(config: Config, context: int) -> list[float]:
        counts = [
            c.flops_per_token(config, context) for c in CONVENTIONS.values()
        ]
        base = counts[names.index("torchtitan")]
        return [round(count / base, 2) for count in counts]

    short = relative(LLAMA_3_8B, 8192)  # @inspect short
    assert short == [0.83, 1.05, 1, 0.89], "of what torchtitan counts"
    note(rf"""
        That is Llama-3-8B with `8192` tokens. What is an MFU of one half for torchtitan is
        {0.5 * short[-1]:.0%} for Megatron-LM. And with a context of `131072`:
    """)
    long = relative(LLAMA_3_8B, 131072)  # @inspect long
    assert long == [0.19, 1.01, 1, 0.59], "the same, with a long context"
    lengths = [2**n for n in range(11, 18)]
    lines = {
        name: [c.flops_per_token(LLAMA_3_8B, n) / 1e9 for n in lengths]
        for name, c in reversed(CONVENTIONS.items())
    }
    ends = [(round(line[0]), round(line[-1])) for line in lines.values()]  # @inspect ends
    assert ends == [(47, 148), (48, 251), (51, 254), (48, 48)], \
        "GFLOP, from the shortest to the longest"
    figure(plot_lines(lengths, lines, "tokens of context", "GFLOP per token", log=False),
        caption=r"""
            FLOPs of training Llama-3-8B on a token, by four formulas. At the same speed, MFU is
            proportional to these.
        """, alt=r"""
            Four lines against the context. All begin near fifty GFLOP per token. The one without
            attention stays there, the one with half of the pairs rises to about a hundred and
            fifty, and two that count all pairs rise to two hundred and fifty.
        """)
    note(r"""
        Now measure it here. The small model takes training steps with a context that is long for
        its width. Instead of a datasheet's peak, take the rate that a product of matrices reaches
        on this machine:
    """)
    config, context = SMALL, 256
    model, tokens = Transformer(config), torch.randint(0, 100, (1, context))

    def step() -> None:
        logits = model(tokens).flatten(0, 1)
        F.cross_entropy(logits, tokens.flatten()).backward()

    x = torch.randn(512, 512)
    with one_thread():
        products = flops(step)  # @measure products as FLOP
    product = quickest(lambda: x @ x, 10)  # @measure product as s
    pace = quickest(step, 10)  # @measure pace as s
    least = 3 * forward_flops(config, context, 0)
    assert products >= least, "forward and backward are timed"
    reached = flops(lambda: x @ x) / product  # @measure reached as FLOP/s
    rate = context / pace  # @measure rate as tokens/s
    mfu = {
        name: rate * c.flops_per_token(config, context) / reached
        for name, c in CONVENTIONS.items()
    }  # @measure mfu
    above = mfu["nanoGPT"] / mfu["Megatron-LM"] - 1  # @measure above as %
    assert round(above, 2) == 0.32, "more by nanoGPT's than by Megatron-LM's"
    with torch.device("meta"):
        model = Transformer(config, "written")
        tokens = torch.zeros(1, context, dtype=torch.int64)
    counted = flops(step)
    busy = counted / pace / reached  # @measure busy as %
    near = math.isclose(busy, mfu["torchtitan"], rel_tol=0.01)
    assert near, "torchtitan's, by the counter"
    quick = counted / reached  # @measure quick as s
    assert quick < pace < BUSY * quick, "longer than its products"
    pairs = 6 * 32 * 4096 * 8192
    share = (6 * 7504658432 + pairs) / (6 * 7504658432 + 2 * pairs)
    question(r"""
        A run with Llama-3-8B and `8192` tokens of context reports an MFU of `40%` by torchtitan's
        formula. How many percent would Megatron-LM's give?
    """, answer=0.4 * short[-1], check=0.4 * round(share, 2), unit="%", within=0.02,
        why="And the run is as fast as before.")


def recomputation_is_work_but_not_the_models() -> None:
    """Recomputing keeps a card busy but does not train the model faster."""
    note(r"""
        Checkpointing adds almost a forward pass to every step. Does that raise utilization? There
        are two kinds. *Hardware FLOPs utilization*, HFU, counts all that the card computed, so it
        rises with every FLOP that is done twice. MFU counts only what the model needs once. So MFU
        can compare two ways to train the same model [@palm].
    """)
    with torch.device("meta"):
        model = Transformer(SMALL, "written")
        tokens = torch.zeros(1, 32, dtype=torch.int64)
        lean = Transformer(SMALL, "written")
    for i, block in enumerate(lean.blocks):
        lean.blocks[i] = Checkpointed(block)

    def work(of: Transformer) -> int:
        return flops(lambda: of(tokens).sum().backward())

    model_flops, hardware_flops = work(model), work(lean)  # @inspect model_flops, hardware_flops
    busy = hardware_flops / model_flops  # @inspect busy
    assert 1.24 < busy < 1.241, "HFU is that much higher than MFU"
    note(r"""
        PaLM reports both for its largest model, an HFU of `57.8%` and an MFU of `46.2%` [@palm].
        The ratio tells how much was recomputed:
    """)
    palm = 57.8 / 46.2  # @inspect palm
    assert 1.25 < palm < 4 / 3, "a quarter more work, not quite a forward pass"
    misbelief("A higher utilization means a faster run.", r"""
        That is wrong for HFU: a run with the higher HFU may be slower, because it computes things
        twice. It is right for MFU, on the same cards and with the same formula: MFU is tokens per
        second times a constant of the model.
    """)
    question(r"""
        A run without checkpointing reaches an MFU of `40%`. With it, the batch can be larger, and
        HFU is `50%`, at four thirds of the FLOPs. How many percent is MFU now?
    """, answer=0.5 / (4 / 3), check=0.5 - 0.5 / 4, unit="%",
        why="Less than before: the cards are busier, and training has become slower.")


class Checkpointed(nn.Module):
    """A block that keeps its input alone."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor, turn: Tensor, cache: None) -> Tensor:
        y: Tensor = checkpoint(self.block, x, turn, cache, use_reentrant=False)
        return y


@aside
def a_long_context_can_lift_mfu_above_one() -> None:
    """With a very long context, the usual MFU can exceed one hundred percent."""
    note(r"""
        Can MFU exceed one? The usual formula counts $12LdT$ FLOPs for attention. A kernel that
        skips what the mask hides computes only $7LdT$. So the longer the context, the more of the
        counted FLOPs were never computed. Suppose that all that a card does compute for Llama-3-8B
        runs at the same share of its peak:
    """)
    share = 0.65  # @inspect share as %
    usual, true = CONVENTIONS["torchtitan"], Convention(False, 7)
    lengths = [2**n for n in range(13, 21)]
    counts = [
        [c.flops_per_token(LLAMA_3_8B, n) for n in lengths]
        for c in (usual, true)
    ]
    reported = [share * u / t for u, t in zip(*counts)]  # @inspect reported
    assert reported[0] < 0.72, "at 8192 tokens"
    assert reported[-1] > 1.09, "at a million"
    first = next(n for n, m in zip(lengths, reported) if m > 1)  # @inspect first
    assert first == 262144, "tokens, and the promise is broken"
    note(r"""
        The card does not exceed its peak: the formula counts FLOPs that were skipped. So when you
        report an MFU, say which formula you used, and give the tokens per second too.
    """)
    far = [c.flops_per_token(LLAMA_3_8B, 2**60) for c in (usual, true)]
    question(r"""
        What can the usual MFU come to at most, if everything runs at `65%`, and the context has no
        end?
    """, answer=0.65 * 12 / 7, check=share * far[0] / far[1], unit="%", within=0.02,
        why="With so long a context the weights no longer count, and what is left is twelve for seven.")
