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
from plots import BLUE, GOLD, stacks

from litbook import aside, explore, figure, misbelief, note, question

from .block import Block, Transformer, turns, written_attention
from .counts import Config, attention_flops, forward_flops, parameter_count
from .figures import cells, plot_lines
from .published import LLAMA_3_70B, LLAMA_3_8B, QWEN_3, SMALL


def which_flops_enter_mfu() -> None:
    """Which FLOPs enter MFU."""
    note(r"""
        *Model FLOPs utilization*, MFU, says which part of a card's arithmetic a training run uses.
        It divides the FLOPs that the model needs in a second by the FLOPs that the card promises:

        [@eq:mfu]: $$
        \text{MFU} = \frac{\text{tokens per second} \times \text{FLOPs per token}}{\text{peak}}
        $$

        The *peak* is the promise; it stands on the card's datasheet. The tokens per second are
        measured. But the FLOPs of a token come from a formula, and codebases use different ones. So
        runs with the same MFU on the same cards may differ in speed by half.
    """)
    training_costs_six_per_weight_and_twelve_per_pair()
    palm_published_both_numbers()
    a_causal_mask_needs_half_the_pairs()
    a_fused_backward_pass_recomputes_scores()
    codebases_count_differently()
    mfu_is_measured_here()
    recomputation_is_work_but_not_the_models()
    a_long_context_can_lift_mfu_above_one()


def training_costs_six_per_weight_and_twelve_per_pair() -> None:
    """Training takes six FLOPs per weight and token, and attention adds twelve per layer, width and token of context."""
    note(r"""
        How many FLOPs does a Transformer take to train on one token? First the matrices. A token
        meets each weight in three products: one in the forward pass, and two in the backward pass,
        for the gradient of the weight and for the gradient of the input. Each time it is a
        multiplication and an addition. So a weight takes $3 \cdot 2 = 6$ FLOPs.

        Then attention. It has two products without weights: scores (queries by keys) and sums
        (softmax weights by values). In each of them a token meets the $T$ tokens of its context,
        with $d$ numbers each, the width of the model: $2\,d\,T$ FLOPs. There are `2` products, and
        each costs `3` times that, once in the forward pass and twice in the backward pass. So in
        each layer attention takes $2 \cdot 3 \cdot 2\,d\,T = 12\,d\,T$ FLOPs. With $L$ layers, and
        $N$ weights in the matrices of blocks and head:

        [@eq:training]: $$
        \text{FLOPs of training on a token} = 6N + 12\,L\,d\,T
        $$

        The embedding does not belong to $N$, because looking up a row multiplies nothing. Check the
        formula on a small model with $L = 2$ and $d = 64$, which reads `3` texts of $T = 32$
        tokens. `flops` adds up what PyTorch counts for a step, forward and backward:
    """)
    config, texts, context = SMALL, 3, 32
    with torch.device("meta"):  # @hide
        model = Transformer(config, "written")
        tokens = torch.zeros(texts, context, dtype=torch.int64)

    def step() -> None:
        logits = model(tokens).flatten(0, 1)
        F.cross_entropy(logits, tokens.flatten()).backward()

    counted = flops(step)  # @inspect counted as FLOP
    weights = sum(
        p.numel() for name, p in model.named_parameters()
        if p.dim() == 2 and not name.startswith("embedding")
    )  # @inspect weights
    per_token = 6 * weights + 12 * 2 * 64 * context  # @inspect per_token as FLOP
    assert per_token == 579_072, \
        "The formula gives 579,072 FLOPs for a token."  # @hide
    assert counted == texts * context * per_token, \
        "For 3 * 32 tokens, the counter agrees with the formula."
    forward = forward_flops(config, texts * context, context)  # @hide
    assert counted == 3 * forward, \
        "A training step takes three times the FLOPs of a forward pass."  # @hide
    too_many = model.embedding.weight.numel() / weights  # @hide
    assert round(too_many, 3) == 0.072, \
        "With the embedding, 7.2 % more weights would be counted."  # @hide
    note(rf"""
        So each token takes `6 * {weights} + 12 * 2 * 64 * 32` FLOPs, which is {per_token:,}, and
        the counter agrees.

        The first term does not depend on the context, the second grows with it. In which models and
        texts is attention the larger part? Choose both:
    """)
    models = {"Llama-3-8B": LLAMA_3_8B, "Llama-3-70B": LLAMA_3_70B}  # @hide

    def training(context: int, model: str) -> dict[str, int]:  # @hide
        config = models[model]
        weights = forward_flops(config, 1, 0)
        pairs = attention_flops(config, 1, context)
        return {"weights, 6N": 3 * weights, "attention, 12LdT": 3 * pairs}

    grid = explore(training, over={"context": [2**i for i in range(10, 18)], "model": [*models]},
        at={"context": 8192, "model": "Llama-3-8B"}, kind="stack", unit="FLOP",
        do="Double the context until attention takes more than the weights. Then choose the larger model.",
        see=r"""
            In Llama-3-8B attention takes more at `32768` tokens. In Llama-3-70B it takes more only
            at `65536`: its weights grow with the square of the width, attention with the width.
        """,
        caption="FLOPs of training on one token: those of the weights, and those of attention, where each token meets all tokens of the context.",
        alt="A bar of two parts, the FLOPs of weights and those of attention.")  # @hide
    below = [
        place for place, cost in grid.items()
        if cost["attention, 12LdT"] < cost["weights, 6N"]
    ]  # @hide
    longest = {
        model: max(c for c, m in below if m == model) for model in models
    }  # @hide
    assert longest == {"Llama-3-8B": 16384, "Llama-3-70B": 32768}, \
        "Up to 16384 tokens the weights take more in Llama-3-8B, and up to 32768 in Llama-3-70B."  # @hide
    part = grid[8192, "Llama-3-8B"]  # @hide
    note(rf"""
        So in short texts the weights take more, and in long ones attention. With `8192` tokens of
        context, the weights of Llama-3-8B take {part["weights, 6N"] / 1e9:.1f} GFLOP for a token,
        and attention {part["attention, 12LdT"] / 1e9:.1f} GFLOP.
    """)
    question(r"""
        Llama-3-8B has `7504658432` weights in the matrices of its blocks and its head, `32` layers
        and width `4096`. At how many tokens of context does attention take as many FLOPs as all
        these weights?
    """, answer=6 * 7504658432 / (12 * 32 * 4096),
        check=forward_flops(LLAMA_3_8B, 1, 0) / attention_flops(LLAMA_3_8B, 1, 1), unit="tokens", within=0.05,
        wrong={"A weight takes 6 FLOPs, and attention 12 per layer and number of the width.": 7504658432 / (32 * 4096)},
        hint="Set the two terms equal, and solve for $T$.",
        why="Where $6N = 12LdT$, the context is $T = N / (2Ld)$. Contexts of today are several times as long [@llama-32].")


@aside
def palm_published_both_numbers() -> None:
    """PaLM's two published MFUs, with attention and without, follow from its report."""
    note(r"""
        *MFU* is the share of the promised FLOP/s that a run uses: the FLOPs that the model needs
        for the tokens of a second, divided by the FLOPs that the chips promise in a second. The
        report on PaLM, a large model of Google, introduced it [@palm]. It publishes two MFUs for
        the same run. One is without attention: $6N$ FLOPs a token, for $N$ weights. The other is
        with attention: $6N + 12LdT$, for $L$ layers of width $d$ and $T$ tokens of context. The
        report states all that is needed to compute both again [@palm]:

        - a model of `540.35` billion parameters, `118` layers and `48` heads of `256` numbers,
          which are the $d$ of the formula here [@palm];
        - a context of `2048` tokens;
        - `6144` chips of `275` TFLOP/s each, and `238.3` thousand tokens per second [@palm].
    """)
    parameters, layers, width, context = 540.35e9, 118, 48 * 256, 2048
    promised = 6144 * 275e12  # @inspect promised as FLOP/s
    speed = 238.3e3
    plain = speed * 6 * parameters / promised  # @inspect plain as %
    assert round(plain, 3) == 0.457, \
        "The report has the same 45.7 % without attention."
    pairs = 12 * layers * width * context  # @inspect pairs as FLOP
    full = speed * (6 * parameters + pairs) / promised  # @inspect full as %
    assert round(full, 3) == 0.462, \
        "The report has the same 46.2 % with attention."
    long = plain * (1 + 12 * layers * width * 131072 / (6 * parameters))  # @inspect long as %
    assert 0.77 < long < 0.78, \
        "With 131072 tokens of context and the same speed, it would be 78 %."
    note(rf"""
        Both agree with the report: {plain:.1%} and {full:.1%}. Attention adds only half a point,
        because the model is so large and the context so short. With a context of `131072` tokens
        and the same tokens per second, the two would be {plain:.1%} and {long:.1%}. So with long
        contexts an MFU says little unless one knows whether attention is in it.
    """)
    question("At how many tokens of context would attention take as many FLOPs as PaLM's parameters?",
             answer=540.35e9 / (2 * 118 * 48 * 256), check=6 * parameters * context / pairs, unit="tokens",
             within=0.05, hint="Set $6N$ equal to $12LdT$.",
             wrong={"In the formula d is the width of all heads together, 48 times 256.": 540.35e9 / (2 * 118 * 18432)},
             why="$T = N / (2Ld)$. PaLM's context of `2048` tokens is a small part of that, so attention added only half a point.")


def a_causal_mask_needs_half_the_pairs() -> None:
    """A causal mask hides half of all pairs, and a program can skip them."""
    note(r"""
        No token looks at a later one. So a *causal mask* hides about half of all pairs of a query
        and a key. Written-out attention computes the hidden scores all the same, and then throws
        them away. Most of them can be skipped: cut the queries into groups, and score each group
        only against the keys up to its own end. Here are `4` queries $q$ in two groups, with `4`
        keys $k$. The first group is scored against two keys, the second against all four:

        | | $k_1$ | $k_2$ | $k_3$ | $k_4$ |
        |---|---|---|---|---|
        | $q_1$ | needed | hidden | skipped | skipped |
        | $q_2$ | needed | needed | skipped | skipped |
        | $q_3$ | needed | needed | needed | hidden |
        | $q_4$ | needed | needed | needed | needed |

        So $3/4$ of the pairs are scored. With $m$ groups, the first is scored against one group of
        keys, the second against two, and the last against all $m$. That is $1 + 2 + \dots + m$,
        which is $m(m+1)/2$, of $m^2$ pairs of groups. So the share of pairs that are scored is

        $$
        \frac{m + 1}{2m}.
        $$

        With more and more groups it comes near one half. Check it with `64` tokens. `in_groups`
        computes attention in groups of some size, and `flops` counts:
    """)
    b, t, h, n = 1, 64, 2, 8  # @unnoticed: 1, 2, 8: any batch and heads
    q, k, v = torch.randn(3, b, t, h, n).double()  # @unnoticed: .double(): any format

    def in_groups(size: int) -> Float[Tensor, "b t h n"]:
        ends = range(size, t + 1, size)  # of each group
        parts = [
            written_attention(q[:, end - size:end], k[:, :end], v[:, :end])
            for end in ends
        ]
        return torch.cat(parts, dim=1)

    whole = written_attention(q, k, v)  # @hide
    assert torch.allclose(in_groups(16), whole), \
        "In groups, the result is the same."  # @hide
    full = flops(lambda: written_attention(q, k, v))  # @inspect full as FLOP
    shares = [flops(partial(in_groups, 64 // m)) / full for m in (1, 2, 4, 32)]  # @inspect shares
    assert shares == [1, 3 / 4, 5 / 8, 33 / 64], \
        "With 1, 2, 4 and 32 groups, these shares of the FLOPs are left, as the rule says."
    note(r"""
        A *fused kernel*, one program that computes attention without storing the scores, works in
        such groups. So it computes about half of what written-out attention does.

        That is why there are two ways to count attention in training. The formula $6N + 12LdT$ of
        an [earlier section](#training_costs_six_per_weight_and_twelve_per_pair) counts every pair,
        also the hidden ones. With $6LdT$ instead, only the pairs that the mask leaves are counted.
    """)
    tiles = {
        f"{m} groups": [
            [2 if k <= q else 1 if k < (q * m // 8 + 1) * 8 // m else 0 for k in range(8)] for q in range(8)
        ] for m in (2, 4, 8)
    }  # @hide
    scored = [sum(kind > 0 for row in rows for kind in row) / 8**2 for rows in tiles.values()]  # @hide
    assert scored == [(m + 1) / (2 * m) for m in (2, 4, 8)], \
        "What is not skipped is the share of the rule."  # @hide
    figure(cells(tiles, [("skipped", "none"), ("scored and hidden", GOLD), ("needed", BLUE)], ("query", "key")), caption=r"""
        All pairs of `8` queries and keys, in `2`, `4` and `8` groups. The smaller the groups, the
        fewer scores are computed only to be hidden.
    """, alt=rf"""
        Three grids. The same triangle is needed in each. Scored are {scored[0]:.0%},
        {scored[1]:.0%} and {scored[2]:.0%} of the cells, in steps that get smaller.
    """)
    question("With $m$ groups of queries, $(m+1)/2m$ of the pairs are scored. Into how many groups must the queries be cut at least so that it is less than `51%`?",
             answer=1 + 50, check=next(m for m in range(1, 200) if (m + 1) / (2 * m) < 0.51), unit="groups",
             wrong={"With 50 groups it is exactly 51 %, not less.": 50},
             hint="Write the share as one half and a rest.",
             why="The share is $1/2 + 1/2m$. So $1/2m$ has to be less than `0.01`, and $m$ more than `50`.")


@aside
def a_fused_backward_pass_recomputes_scores() -> None:
    """A fused backward pass has five products where the forward pass has two."""
    note(r"""
        How many FLOPs does a fused kernel of attention take in the backward pass? Attention has two
        products, scores and sums. Each has two gradients, and each gradient is a product: four
        products. A fused kernel did not keep the softmax weights, so it also computes the scores
        again: a fifth product. PyTorch's counter has a formula for the CUDA kernel, and on `meta`
        it can be asked without a card:
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
    assert forward == 2 * 2 * t * t * width == 2**38, \
        "Two products of all pairs go forward."  # @hide
    assert backward / forward == 2.5, \
        "Backward takes five products where forward takes two."
    per_pair = (forward + backward) / (t * t * width)  # @inspect per_pair as FLOP
    assert per_pair == 14.0, \
        "Seven products are 14 FLOPs per token of context and number of the width."
    ignored = flops(lambda: attend(False)) - flops(lambda: attend(True))
    assert ignored == 0, "The counter does not look at the mask."  # @zero: the difference of two equal counts
    own = per_pair * 6 / 7  # @inspect own as FLOP
    assert own == 12.0, "Without the repeated scores, six products are 12."
    note(rf"""
        So attention in training can be counted in four ways, as FLOPs for each layer, each number
        of the width and each token of context. Each of the four is right about something:

        | | every pair | pairs that the mask leaves |
        |---|---|---|
        | the model's own products | {own:.0f} | {own / 2:.0f} |
        | with scores computed again | {per_pair:.0f} | {per_pair / 2:.0f} |

        FlashAttention's benchmark counts what the kernel computes: 7 with a causal mask, and 14
        without [@flash-benchmark].
    """)
    assert per_pair / 2 == 7.0, "With the mask, the kernel computes half."
    question(r"""
        A checkpointed block runs its forward pass once more, so written-out attention computes
        scores and sums a second time. How many FLOPs is that in all, for each layer, each number of
        the width and each token of context, if every pair is counted?
    """, answer=2 * (2 + 4 + 2), check=per_pair_checkpointed(64), unit="FLOP",
        why="Two products forward, four backward and two again are eight, each with a multiplication and an addition.")


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
    attention: int   # FLOPs per layer, number in a token's queries, and token of context

    def flops_per_token(self, config: Config, context: int) -> int:
        """FLOPs of training on one token."""
        weights, pairs = parameter_count(config), config.layers * context
        if not (self.embedding or config.tied):
            weights -= config.vocabulary * config.width
        return 6 * weights + self.attention * pairs * config.query_width


CONVENTIONS = {
    "6N": Convention(True, 0),
    "nanoGPT": Convention(True, 12),
    "torchtitan": Convention(False, 12),
    "Megatron-LM": Convention(False, 6),
}


@aside
def codebases_count_differently() -> None:
    """The same run has a different MFU in each codebase."""
    note(r"""
        Does a training run have the same MFU by everyone's formula? MFU is tokens per second, times
        FLOPs per token, divided by the peak; and the FLOPs per token are counted in different ways.
        Let $L$ be the layers of a model, $T$ the tokens of context, and $d$ the numbers in all
        heads of a token together, mostly its width. The rule of thumb is $6N$ FLOPs for a token,
        with $N$ all parameters. Well-known codebases add attention, each in its own way:

        - *nanoGPT* takes PaLM's formula, $6N + 12LdT$, with $N$ all parameters but the positions'
          [@nanogpt]. Its head and embedding are one matrix, so that is right for it.
        - *torchtitan* leaves the embedding out of $N$, and counts every pair of tokens, $12LdT$,
          also those that the mask hides [@torchtitan].
        - *Megatron-LM* adds up the matrices, and counts half of the pairs, $6LdT$, because of the
          mask [@megatron-lm]. So does *MaxText* today [@maxtext].

        `flops_per_token` counts by one of these conventions. Llama-3-8B with `8192` tokens of
        context, relative to torchtitan's count:
    """)
    names = list(CONVENTIONS)  # @inspect names

    def relative(config: Config, context: int) -> list[float]:
        counts = [
            c.flops_per_token(config, context) for c in CONVENTIONS.values()
        ]
        base = counts[names.index("torchtitan")]
        return [round(count / base, 2) for count in counts]

    short = relative(LLAMA_3_8B, 8192)  # @inspect short
    assert short == [0.83, 1.05, 1, 0.89], \
        "With 8192 tokens of context, the four counts are 0.83, 1.05, 1 and 0.89 times torchtitan's."
    long = relative(LLAMA_3_8B, 131072)  # @inspect long
    assert long == [0.19, 1.01, 1, 0.59], \
        "With 131072 tokens, they are 0.19, 1.01, 1 and 0.59 times torchtitan's."
    counted = CONVENTIONS["torchtitan"].flops_per_token(QWEN_3, 8192)  # @hide
    near = counted / (3 * forward_flops(QWEN_3, 1, 8192))  # @hide
    assert round(near, 3) == 1, \
        "In Qwen3 the heads together are twice as wide as the model, and torchtitan's count is right."  # @hide
    note(rf"""
        At the same speed, MFU is proportional to this count. So a run that has an MFU of one half
        by torchtitan's formula has {0.5 * short[-1]:.0%} by Megatron-LM's, with `8192` tokens. With
        `131072` tokens it has only {0.5 * long[-1]:.0%}, because attention is then most of the
        count.
    """)
    lengths = [2**n for n in range(11, 18)]  # @hide
    lines = {
        name: [c.flops_per_token(LLAMA_3_8B, n) / 1e9 for n in lengths]
        for name, c in reversed(CONVENTIONS.items())
    }  # @hide
    ends = [(round(line[0]), round(line[-1])) for line in lines.values()]  # @hide
    assert ends == [(47, 148), (48, 251), (51, 254), (48, 48)], \
        "The lines of the figure begin at 47, 48, 51 and 48 GFLOP and end at 148, 251, 254 and 48."  # @hide
    figure(plot_lines(lengths, lines, "tokens of context", "GFLOP per token", log=False),
        caption=r"""
            FLOPs of training Llama-3-8B on a token, by four conventions, against the tokens of
            context.
        """, alt=r"""
            Four lines against the context. All begin near fifty GFLOP per token. The one without
            attention stays there, the one with half of the pairs rises to about a hundred and
            fifty, and two that count all pairs rise to two hundred and fifty.
        """)
    pairs = 6 * 32 * 4096 * 8192  # @hide
    share = (6 * 7504658432 + pairs) / (6 * 7504658432 + 2 * pairs)  # @hide
    question(r"""
        Llama-3-8B has `32` layers, width `4096` and `7504658432` weights without its embedding. A
        run with `8192` tokens of context reports an MFU of `40%` by torchtitan's formula. How many
        percent would Megatron-LM's give?
    """, answer=0.4 * short[-1], check=0.4 * round(share, 2), unit="%", within=0.02, wrong={
            "Only attention's part is halved, not the whole count.": 0.2,
        }, hint="Divide $6N + 6LdT$ by $6N + 12LdT$.",
        why="The run is as fast as before, and Megatron-LM counts fewer FLOPs for each token, so its MFU is lower in proportion.")


@aside
def mfu_is_measured_here() -> None:
    """One training run on this machine has three MFUs, and only one formula agrees with the counter."""
    note(r"""
        How large is the MFU of a training step on this machine? A small model with `64` numbers of
        width takes steps with `256` tokens of context. `quickest` measures the shortest time of a
        step. In the place of a datasheet's peak stands the rate that a product of two matrices of
        `512 * 512` reaches here:
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
    assert least <= products < 2 * least, \
        "What is timed is forward and backward."
    reached = flops(lambda: x @ x) / product  # @measure reached as FLOP/s
    rate = context / pace  # @measure rate as tokens/s
    mfu = {
        name: rate * c.flops_per_token(config, context) / reached
        for name, c in CONVENTIONS.items()
    }  # @measure mfu
    above = mfu["nanoGPT"] / mfu["Megatron-LM"] - 1  # @measure above as %
    assert round(above, 2) == 0.32, \
        "NanoGPT's MFU is higher than Megatron-LM's by so much."
    note(r"""
        All four are MFUs of the same steps, and the highest is a third above the lowest that counts
        attention. Which of them says what the machine does? Let PyTorch count the products of a
        step with attention written out:
    """)
    with torch.device("meta"):
        model = Transformer(config, "written")
        tokens = torch.zeros(1, context, dtype=torch.int64)  # @unnoticed: int64: any type of tokens
    counted = flops(step)
    busy = counted / pace / reached  # @measure busy as %
    near = math.isclose(busy, mfu["torchtitan"], rel_tol=0.01)
    assert near, "By the counter, it is torchtitan's."
    quick = counted / reached  # @measure quick as s
    assert quick < pace < BUSY * quick, \
        "A step takes longer than its products would at that rate."
    note(r"""
        The counter agrees with torchtitan's formula, which counts every pair of tokens. None of the
        four is near one: the products of so small a model are small, and much else takes time.
    """)
    question(r"""
        A step has `256` tokens and takes `8` ms. How many tokens a second is that?
    """, answer=256 / 8e-3, check=256 * 125, unit="tokens/s",
        why="There are `125` such steps in a second, each with `256` tokens.")


def recomputation_is_work_but_not_the_models() -> None:
    """Recomputing keeps a card busy but does not train the model faster."""
    note(r"""
        Checkpointing keeps fewer activations and computes them again, almost a forward pass more in
        every step. Does that raise utilization? There are two kinds of utilization. MFU counts only
        what the model needs, each product once. *Hardware FLOPs utilization*, HFU, counts all that
        the card computed, also what it computed twice [@palm]. Both are divided by the same peak
        and the same time. So HFU is larger than MFU by the factor

        $$
        \frac{\text{FLOPs that the card computed}}{\text{FLOPs that the model needs}}.
        $$

        Count both for one training step of a small model. In `lean`, every block is checkpointed:
    """)
    with torch.device("meta"):
        model = Transformer(SMALL, "written")
        tokens = torch.zeros(1, 32, dtype=torch.int64)  # @unnoticed: 1, 32, int64: shares are the same for any tokens
        lean = Transformer(SMALL, "written")  # @unnoticed: 'written': on `meta` a fused call is counted by its products
    for i, block in enumerate(lean.blocks):
        lean.blocks[i] = Checkpointed(block)

    needed = flops(lambda: model(tokens).sum().backward())  # @inspect needed as FLOP
    computed = flops(lambda: lean(tokens).sum().backward())  # @inspect computed as FLOP
    factor = computed / needed  # @inspect factor as times
    assert 1.24 < factor < 1.241, \
        "With checkpointing, the card computes 1.24 times what the model needs."
    palm = 57.8 / 46.2  # @hide
    assert 1.25 < palm < 4 / 3, \
        "In PaLM's run a quarter was computed again, less than a whole forward pass."  # @hide
    note(rf"""
        With checkpointing, HFU is {factor:.2f} times MFU: the cards are busier by that factor, with
        work that the model did not ask for. PaLM reports both for its largest model, an HFU of
        `57.8%` and an MFU of `46.2%` [@palm]. So its cards computed {palm:.2f} times what the model
        needs.
    """)
    misbelief("A higher utilization means a faster run.", r"""
        With HFU that is wrong. A run with the higher HFU may be slower, because it computes things
        twice. With MFU it is right, on the same cards and with the same formula, because MFU is the
        tokens per second times a constant.
    """)
    step = {"what the model needs": 1.0}  # @hide
    figure(stacks({"usual": step, "checkpointed": {**step, "computed again": factor - 1}}, "FLOPs of a step, of what the model needs"),
        caption="What the card computes in a step of the small model. MFU counts the first part of a bar, HFU all of it.",
        alt="Two bars. The second has a part more, a quarter as long as the first.")
    question(r"""
        A run without checkpointing reaches an MFU of `40%`. With checkpointing the card computes
        four thirds of the FLOPs that the model needs, and HFU is `50%`. How many percent is MFU
        now?
    """, answer=0.5 / (4 / 3), check=0.5 - 0.5 / 4, unit="%", wrong={
            "That is HFU; MFU counts only what the model needs.": 0.5,
            "HFU is the larger of the two: divide, do not multiply.": 0.5 * 4 / 3,
        }, hint="HFU is four thirds of MFU.",
        why="MFU is three quarters of HFU. That is less than `40%`: the cards are busier, and training is slower.")


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
        Can an MFU exceed one? The usual formula counts $12LdT$ FLOPs for attention, with $L$
        layers, width $d$ and $T$ tokens of context: six products of $2LdT$ each. A kernel that
        skips what the causal mask hides needs half of the pairs. It does seven products, because it
        computes the scores a second time: $7 \cdot 2LdT$, halved, is $7LdT$. So the longer the
        context, the more of the counted FLOPs were never computed. Suppose that what a card does
        compute for Llama-3-8B runs at the same `share` of its peak, whatever the context:
    """)
    share = 0.65  # @inspect share as %
    usual, true = CONVENTIONS["torchtitan"], Convention(False, 7)
    lengths = [2**n for n in range(13, 21)]
    counts = [
        [c.flops_per_token(LLAMA_3_8B, n) for n in lengths]
        for c in (usual, true)
    ]
    reported = [share * u / t for u, t in zip(*counts)]  # @inspect reported
    assert reported[0] < 0.72, \
        "With 8192 tokens, the reported MFU is less than 72 %."
    assert 1.09 < reported[-1] < 1.1, \
        "With a million tokens, it is more than 109 %."
    first = next(n for n, m in zip(lengths, reported) if m > 1)  # @inspect first
    assert first == 262144, \
        "Of these lengths, the first at which the reported MFU exceeds one."
    note(rf"""
        Of the lengths that were tried, each twice the one before, {first:,} tokens is the first at
        which the reported MFU exceeds one. The card does not exceed its peak: the formula counts
        FLOPs that were skipped. So when you report an MFU, say which formula you used, and give the
        tokens per second too.
    """)
    far = [c.flops_per_token(LLAMA_3_8B, 2**60) for c in (usual, true)]  # @unnoticed: 2, 60: any context without end
    question(r"""
        With a very long context only attention counts. The card computes $7LdT$ FLOPs at `65%` of
        its peak, and the formula counts $12LdT$. How many percent does the usual MFU come to?
    """, answer=0.65 * 12 / 7, check=share * far[0] / far[1], unit="%", within=0.02,
        why="For each `7` FLOPs that are computed, `12` are reported, so the share grows by that factor.")
