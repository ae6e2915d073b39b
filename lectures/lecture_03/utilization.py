"""Which FLOPs enter MFU: the same run by the conventions of well-known codebases."""
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from counters import flops
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from plots import BLUE, GOLD, stacks

from litbook import aside, explore, figure, misbelief, note, question

from .block import Transformer, written_attention
from .counts import Config, attention_flops, forward_flops, parameter_count
from .figures import cells, plot_lines
from .published import LLAMA_3_70B, LLAMA_3_8B, QWEN_3, SMALL


def which_flops_enter_mfu() -> None:
    """Which FLOPs enter MFU."""
    note(r"""
        *Model FLOPs utilization*, MFU, says what share of a GPU's peak a training run uses. It
        divides the FLOPs per second that the model needs by the FLOPs per second that the GPU can
        do at best:

        [@eq:mfu]: $$
        \text{MFU} = \frac{\text{tokens per second} \times \text{FLOPs per token}}{\text{peak}}
        $$

        The *peak* is the highest FLOP/s of the GPU, by its datasheet. The tokens per second are
        measured. But the FLOPs per token come from a formula, and codebases use different formulas.
        So two runs that report the same MFU on the same GPUs may differ in speed by half.
    """)
    training_costs_six_per_weight_and_twelve_per_pair()
    palm_published_both_numbers()
    a_causal_mask_needs_half_the_pairs()
    codebases_count_differently()
    recomputation_is_work_but_not_the_models()


def training_costs_six_per_weight_and_twelve_per_pair() -> None:
    """Training on a token costs six FLOPs per weight, and 12 d FLOPs per layer and token of context."""
    note(r"""
        How many FLOPs does it cost to train a Transformer on one token? Some are for the weights,
        and some for attention.

        *The weights.* Take a matrix with a single weight $w$. In the forward pass, a token's input
        $x$ gives $w \cdot x$. In the backward pass, the gradient $g$ of this result gives two
        gradients: $g \cdot x$ for the weight, and $g \cdot w$ for the input, which the previous
        layer needs. In a larger matrix each of these three products becomes a matmul, in which each
        weight costs a multiplication and an addition per token. So each of $N$ weights costs
        $3 \cdot 2 = 6$ FLOPs.

        *Attention.* In each layer, attention has two matmuls without parameters: queries times
        keys, and softmax weights times values. Take queries times keys. The token's query is
        multiplied by the keys of all $T$ tokens of its sequence. In all heads together, a query and
        a key have $d$ elements each, so each pair costs $d$ multiplications and $d$ additions:
        $2\,d\,T$ FLOPs for the token. This includes later tokens: a plain matmul computes these
        products before the causal mask hides them.

        The other matmul costs the same. In the backward pass each of the two becomes two matmuls,
        one for the gradient of each factor, as with the weights: $2 \cdot 2\,d\,T$. So forward and
        backward together cost $2 \cdot (2\,d\,T + 2 \cdot 2\,d\,T) = 12\,d\,T$ FLOPs in each of $L$
        layers. In total:

        [@eq:training]: $$
        \text{training FLOPs per token} = 6N + 12\,L\,d\,T
        $$

        Here $N$ is the number of weights in the matrices of the blocks and in the model's last
        matrix, the output matrix, which gives a score to each token of the vocabulary. The
        embedding is left out, because looking up a row multiplies nothing.

        Check the formula on a small model with $L = 2$ layers, $d = 64$ and a vocabulary of `100`
        tokens. A block has [`40960` weights](#a_block_is_seven_matrices), and the output matrix
        `100 * 64`, so $N = 2 \cdot 40960 + 100 \cdot 64 = 88320$. The model processes `3` sequences
        of $T = 32$ tokens. `step` is a training step, forward and backward, and `flops` adds up
        what PyTorch counts for it. (Only shapes matter here, so the tokens are their own targets.)
    """)
    sequences, context = 3, 32
    with torch.device("meta"):
        model = Transformer(SMALL, "written")
        tokens = torch.zeros(sequences, context, dtype=torch.int64)

    def step() -> None:
        logits = model(tokens).flatten(0, 1)
        F.cross_entropy(logits, tokens.flatten()).backward()

    counted = flops(step)  # @inspect counted as FLOP
    weights = sum(
        p.numel() for name, p in model.named_parameters()
        if p.dim() == 2 and not name.startswith("embedding")
    )  # @hide
    assert weights == 2 * 40960 + 100 * 64 == 88320, \
        "The matrices of two blocks and the output matrix have 88,320 weights."  # @hide
    per_token = 6 * 88320 + 12 * 2 * 64 * 32  # @inspect per_token as FLOP
    assert per_token == 579_072, \
        "The formula gives 579,072 FLOPs for a token."  # @hide
    assert counted == sequences * context * per_token, \
        "For 3 * 32 tokens, the counter agrees with the formula."
    forward = forward_flops(SMALL, sequences * context, context)  # @hide
    assert counted == 3 * forward, \
        "A training step costs three times the FLOPs of a forward pass."  # @hide
    too_many = model.embedding.weight.numel() / weights  # @hide
    assert round(too_many, 3) == 0.072, \
        "With the embedding, 7.2 % more weights would be counted."  # @hide
    note(rf"""
        So the counter agrees with the formula: `6 * 88320` FLOPs for the weights and
        `12 * 2 * 64 * 32` for attention, together {per_token:,} for each token. The first term is
        the same for any sequence length, and the second grows with the context $T$. Which is
        larger?
    """)
    models = {"Llama-3-8B": LLAMA_3_8B, "Llama-3-70B": LLAMA_3_70B}  # @hide

    def training(context: int, model: str) -> dict[str, int]:  # @hide
        config = models[model]
        weights = forward_flops(config, 1, 0)
        pairs = attention_flops(config, 1, context)
        return {"weights, 6N": 3 * weights, "attention, 12LdT": 3 * pairs}

    contexts = [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]  # @hide
    grid = explore(training, over={"context": contexts, "model": [*models]},
        at={"context": 8192, "model": "Llama-3-8B"}, kind="stack", unit="FLOP",
        do="Double the context until attention costs more than the weights. Then choose the larger model.",
        see=r"""
            Of the contexts in this figure, `32768` is the first at which attention costs more in
            Llama-3-8B; in Llama-3-70B it is `65536`. The FLOPs of the weights grow with the square
            of the model dimension $d$, those of attention only in proportion to $d$. So in the
            larger model, attention overtakes the weights at a longer context.
        """,
        caption="Training FLOPs per token: those of the weights, and those of attention.",
        alt="A bar of two parts, the FLOPs of weights and those of attention.")  # @hide
    below = [
        point for point, cost in grid.items()
        if cost["attention, 12LdT"] < cost["weights, 6N"]
    ]  # @hide
    longest = {
        model: max(c for c, m in below if m == model) for model in models
    }  # @hide
    assert longest == {"Llama-3-8B": 16384, "Llama-3-70B": 32768}, \
        "Up to 16384 tokens the weights cost more in Llama-3-8B, and up to 32768 in Llama-3-70B."  # @hide
    part = grid[8192, "Llama-3-8B"]  # @hide
    assert 32 * 218103808 + 128256 * 4096 == forward_flops(LLAMA_3_8B, 1, 0) / 2 == 7504658432, \
        "In Llama-3-8B, blocks and output matrix have 7504658432 weights."  # @hide
    assert [*part.values()] == [6 * 7504658432, 12 * 32 * 4096 * 8192], \
        "With 8192 tokens of context, these are the two terms of Llama-3-8B."  # @hide
    note(rf"""
        In short sequences the weights cost more, and in long ones attention does. Llama-3-8B has
        `32` blocks of `218103808` weights and an output matrix of `128256 * 4096`, so $N$ is
        `7504658432`. With `8192` tokens of context, the weights cost `6 * 7504658432` FLOPs per
        token, {part["weights, 6N"] / 1e9:.1f} GFLOP, and attention `12 * 32 * 4096 * 8192`,
        {part["attention, 12LdT"] / 1e9:.1f} GFLOP.
    """)
    question(r"""
        Llama-3-8B has `7504658432` weights in the matrices of its blocks and its output matrix,
        `32` layers and a model dimension of `4096`. At how many tokens of context does attention
        cost the same FLOPs as all these weights?
    """, answer=6 * 7504658432 / (12 * 32 * 4096),
        check=forward_flops(LLAMA_3_8B, 1, 0) / attention_flops(LLAMA_3_8B, 1, 1), unit="tokens", within=0.05,
        wrong={"A weight costs 6 FLOPs, and attention costs 12 for each layer, element of the model dimension and token of context.": 7504658432 / (32 * 4096)},
        hint="Set the two terms equal, and solve for $T$.",
        why="The two are equal if $6N = 12LdT$, so at $T = N / (2Ld)$, with $N = 7504658432$, $L = 32$ and $d = 4096$. Today's contexts are several times as long [@llama-32].")


@aside
def palm_published_both_numbers() -> None:
    """PaLM's two published MFUs, with attention and without, follow from its report."""
    note(r"""
        Can you compute a published MFU yourself? *MFU* says what share of its chips' peak a
        training run uses. Multiply the tokens that the run processes per second by the FLOPs that
        the model needs for each token, and divide by the *peak*, the FLOPs that the chips can do
        per second at best. With $N$ parameters, a token costs $6N$ FLOPs without attention. With
        attention it costs $6N + 12LdT$, for $L$ layers, $d$ elements in all heads together and $T$
        tokens of context. The report on PaLM, a large model from Google, gives both MFUs [@palm],
        and everything that one needs to compute them:

        - $N = 540.35$ billion parameters, $L = 118$ layers, and `48` heads of `256` elements, so
          $d = 48 \cdot 256$ [@palm];
        - $T = 2048$ tokens of context;
        - `6144` TPU v4 chips of `275` TFLOP/s each, and `238.3` thousand tokens per second [@palm].
    """)
    N, L, d, T = 540.35e9, 118, 48 * 256, 2048
    peak = 6144 * 275e12  # @inspect peak as FLOP/s
    speed = 238.3e3  # tokens per second
    without = speed * 6 * N / peak  # @inspect without as %
    assert round(without, 3) == 0.457, \
        "Without attention the MFU is 45.7 %, as in the report."
    attention = 12 * L * d * T
    full = speed * (6 * N + attention) / peak  # @inspect full as %
    assert round(full, 3) == 0.462, \
        "With attention the MFU is 46.2 %, as in the report."
    note(rf"""
        Attention adds only half a point, from {without:.1%} to {full:.1%}, because its
        `12 * 118 * 12288 * 2048` FLOPs are few compared with the `6 * 540.35e9` FLOPs of the
        parameters.
    """)
    question("PaLM has `540.35e9` parameters, `118` layers and `48 * 256` elements in all heads together. At how many tokens of context would attention cost the same FLOPs as the parameters?",
             answer=540.35e9 / (2 * 118 * 48 * 256), check=6 * N * T / attention, unit="tokens",
             within=0.05, hint="Set $6N$ equal to $12LdT$.",
             wrong={"In the formula d is the number of elements of all heads together, 48 times 256.": 540.35e9 / (2 * 118 * 18432)},
             why="$6N = 12LdT$ holds at $T = N / (2Ld)$. PaLM's context of `2048` tokens is a small part of that, so attention added only half a point.")


def a_causal_mask_needs_half_the_pairs() -> None:
    """A causal mask hides half of all pairs, and a program can skip most of these."""
    note(r"""
        In attention, the query of a token is multiplied by the keys of the tokens that it attends
        to; each result is a *score*. No token attends to a later one: the *causal mask* hides these
        pairs, about half of all pairs of a query and a key. Can a program skip them?

        Most of them. Split the queries into groups, and multiply each group only by the keys up to
        its own last token, because no query of the group attends to later ones. Here are `4`
        queries $q$ in two groups, with `4` keys $k$:

        | | $k_1$ | $k_2$ | $k_3$ | $k_4$ |
        |---|---|---|---|---|
        | $q_1$ | needed | hidden | skipped | skipped |
        | $q_2$ | needed | needed | skipped | skipped |
        | $q_3$ | needed | needed | needed | hidden |
        | $q_4$ | needed | needed | needed | needed |

        One of the four quarters is skipped, so $3/4$ of the scores are computed. In general, split
        the queries into $m$ groups, and the keys at the same tokens. This gives $m^2$ squares of
        the same size. In the first row of squares one is computed, in the second two, and in the
        last all $m$: together $1 + 2 + \dots + m$, which is $m(m+1)/2$. Divided by the $m^2$
        squares, the share of the scores that are computed is

        $$
        \frac{m + 1}{2m}.
        $$

        With $m = 2$ that is $3/4$, and with more groups it approaches one half. Check it with `64`
        tokens. `in_groups` computes attention in groups of `size` queries, so `64 // m` for `m`
        groups, and concatenates the results. `written_attention` assumes that its queries belong to
        the last of the tokens whose keys it gets, so the mask stays the same. `flops` counts the
        FLOPs:
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
        "With 1, 2, 4 and 32 groups, (m + 1) / 2m of the FLOPs are left."
    note(rf"""
        In one piece, attention has `64 * 64` pairs. Its two matmuls cost a multiplication and an
        addition for each pair and each of `2 * 8` elements: `2 * 2 * 64 * 64 * 16`, which is
        {full:,} FLOPs. In groups fewer pairs are computed, at the same cost per pair.

        A *fused kernel*, a program that computes all of attention in one call, works in such
        groups. So it computes about half of the scores.
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
        All pairs of `8` queries and `8` keys, in `2`, `4` and `8` groups. The smaller the groups,
        the fewer scores are computed and then hidden.
    """, alt=rf"""
        Three grids. The same triangle is needed in each. {scored[0]:.0%}, {scored[1]:.0%} and
        {scored[2]:.0%} of the cells are scored, in steps that get smaller.
    """)
    question("With $m$ groups of queries, the share $(m+1)/2m$ of the scores is computed. What is the smallest number of groups with which it is less than `51%`?",
             answer=1 + 50, check=next(m for m in range(1, 200) if (m + 1) / (2 * m) < 0.51), unit="groups",
             wrong={"With 50 groups it is exactly 51 %, not less.": 50},
             hint="The share is $1/2 + 1/2m$.",
             why="The share $(m+1)/2m$ is $1/2 + 1/2m$. So $1/2m$ has to be less than `0.01`, and $m$ more than `50`.")


class Convention(NamedTuple):
    """How a codebase counts the FLOPs of training: which weights count, and how many FLOPs attention has.

    The gains of the norms, which some leave out, are counted here: they are too few to matter.
    """

    embedding: bool  # whether its rows count as weights that are multiplied by
    attention: int   # FLOPs per layer, element of a query, and token of context

    def flops_per_token(self, config: Config, context: int) -> int:
        """FLOPs of training on one token of a sequence of `context` tokens."""
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
    """The same training run has a different MFU in each codebase."""
    note(r"""
        Does a training run have the same MFU in every codebase? *MFU* is the tokens per second
        times the FLOPs per token, divided by the GPU's peak. The FLOPs per token come from a
        formula, and codebases use different formulas. A model has $L$ layers and $T$ tokens of
        context, and $d$ is the number of heads times the head dimension, in most models the model
        dimension. The codebases use these formulas:

        | codebase | FLOPs per token | $N$ counts |
        |---|---|---|
        | rule of thumb | $6N$ | all parameters |
        | *nanoGPT* [@nanogpt] | $6N + 12LdT$ | all parameters except the position embeddings |
        | *torchtitan* [@torchtitan] | $6N + 12LdT$ | all parameters except the embedding |
        | *Megatron-LM* [@megatron-lm], *MaxText* [@maxtext] | $6N + 6LdT$ | the weights of the matrices in matmuls (no embedding) |

        The second term is the cost of attention. $12LdT$ counts every pair of tokens. $6LdT$ counts
        only the half that the causal mask leaves.

        `CONVENTIONS` holds the formulas, and `relative` divides each formula's FLOPs by those of
        torchtitan. First Llama-3-8B with `8192` tokens of context, then with `131072`:
    """)

    def relative(config: Config, context: int) -> dict[str, float]:
        counts = {
            name: formula.flops_per_token(config, context)
            for name, formula in CONVENTIONS.items()
        }
        base = counts["torchtitan"]
        return {name: round(count / base, 2) for name, count in counts.items()}

    short = relative(LLAMA_3_8B, 8192)  # @inspect short as times
    assert [*short.values()] == [0.83, 1.05, 1, 0.89], \
        "With 8192 tokens of context, Megatron-LM's formula gives 0.89 times torchtitan's FLOPs."
    long = relative(LLAMA_3_8B, 131072)  # @inspect long as times
    assert [*long.values()] == [0.19, 1.01, 1, 0.59], \
        "With 131072 tokens of context, Megatron-LM's formula gives 0.59 times torchtitan's FLOPs."
    counted = CONVENTIONS["torchtitan"].flops_per_token(QWEN_3, 8192)  # @hide
    gains = counted - 3 * forward_flops(QWEN_3, 1, 8192)  # @hide
    assert gains == 6 * (28 * 2 * (1024 + 128) + 1024), \
        "Qwen3's heads are twice as wide as the model, and torchtitan's count is right but for the norms."  # @hide
    note(rf"""
        The MFU of a run is proportional to these numbers. Suppose that it is one half by
        torchtitan's formula. By Megatron-LM's formula, the same run has an MFU of `0.5 * 0.89`,
        {0.5 * short["Megatron-LM"]:.1%}, if its context is `8192` tokens, and of `0.5 * 0.59`,
        {0.5 * long["Megatron-LM"]:.1%}, if it is `131072`. The longer the context, the further
        apart the two MFUs are, because attention is a larger part of the count.
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
            Training FLOPs of Llama-3-8B per token, by four conventions, against the tokens of
            context.
        """, alt=r"""
            Four lines against the context. All begin near fifty GFLOP per token. The one without
            attention stays there, the one with half of the pairs rises to about a hundred and
            fifty, and the two that count all pairs rise to two hundred and fifty.
        """)
    pairs = 6 * 32 * 4096 * 32768  # @hide
    share = (6 * 7504658432 + pairs) / (6 * 7504658432 + 2 * pairs)  # @hide
    by_code = {name: c.flops_per_token(LLAMA_3_8B, 32768) for name, c in CONVENTIONS.items()}  # @hide
    question(r"""
        Llama-3-8B has $L = 32$, $d = 4096$, and by both formulas $N$ is about `7.5e9`. A run with
        `32768` tokens of context reports an MFU of `40%` by torchtitan's formula. What is its MFU
        by Megatron-LM's formula, in percent?
    """, answer=round(0.4 * share, 3), check=round(0.4 * by_code["Megatron-LM"] / by_code["torchtitan"], 3), unit="%", within=0.02, wrong={
            "Only attention's part is halved, not the whole count.": 0.2,
        }, hint="Divide $6N + 6LdT$ by $6N + 12LdT$.",
        why=r"""
            By hand, $6N$ is `4.5e10` and $6LdT$ is `2.58e10`. So Megatron-LM counts `7.08e10` FLOPs
            for a token, and torchtitan `9.66e10`: `0.73` times as many. The run is as fast as
            before, so its MFU is `0.73 * 40%`.
        """)


def recomputation_is_work_but_not_the_models() -> None:
    """Recomputing keeps a GPU busy but does not train the model faster."""
    note(r"""
        With *checkpointing*, a training run saves memory: it discards what a block computed, and
        recomputes it in the backward pass. That adds most of a forward pass to each step. Does it
        raise the utilization of a GPU, the share of its peak that is used? That depends on which of
        two utilizations is meant:

        - *MFU*, model FLOPs utilization, counts only what the model needs: each matmul of the
          forward and of the backward pass once.
        - *HFU*, *Hardware FLOPs utilization*, counts all FLOPs that the GPU computed, including
          those that it computed a second time [@palm].

        Both are divided by the same time and the same peak. So HFU is MFU times

        $$
        \frac{\text{FLOPs that the GPU computed}}{\text{FLOPs that the model needs}}.
        $$

        By hand: forward costs `1` unit and backward `2`, so the model needs `3`. If a whole forward
        pass were recomputed, the GPU would compute `4`, and HFU would be `4 / 3` of MFU. Now count
        both for a training step of a small model. `lean` is a model of the same sizes with each
        block `Checkpointed`, so that it keeps only its input:
    """)
    with torch.device("meta"):
        model = Transformer(SMALL, "written")
        tokens = torch.zeros(1, 32, dtype=torch.int64)  # @unnoticed: int64: a format of indices
        lean = Transformer(SMALL, "written")  # @unnoticed: 'written': on `meta` a fused call is counted by its products
    for i, block in enumerate(lean.blocks):
        lean.blocks[i] = Checkpointed(block)

    needed = flops(lambda: model(tokens).sum().backward())
    computed = flops(lambda: lean(tokens).sum().backward())
    factor = computed / needed  # @inspect round(factor, 2) as times
    assert 1.24 < factor < 1.241, \
        "With checkpointing, the GPU computes 1.24 times the FLOPs that the model needs."
    forward = flops(lambda: model(tokens))  # @hide
    tail = 2 * 32 * 64 * (SMALL.vocabulary + 2 * SMALL.hidden)  # @hide
    assert (needed, computed - needed) == (3 * forward, forward - tail), \
        "Everything except the head and the last matmul of both blocks is recomputed."  # @hide
    palm = 57.8 / 46.2  # @hide
    assert 1.25 < palm < 4 / 3, \
        "In PaLM's run a quarter was computed again, less than a whole forward pass."  # @hide
    note(rf"""
        So with checkpointing HFU is {factor:.2f} times MFU: the GPU is busier, but with work that
        does not train the model faster. The factor is less than `4 / 3`, because part of the
        forward pass is not recomputed: the head, which is in no checkpointed block, and the last
        matmul of each block, because the backward pass needs the input of this matmul but not its
        result.

        PaLM, a large model from Google, was trained on TPUs with an HFU of `57.8%` and an MFU of
        `46.2%` [@palm]. So its chips computed `57.8 / 46.2`, or {palm:.2f} times the FLOPs that the
        model needs.
    """)
    misbelief("A higher utilization means a faster run.", r"""
        Not if it is HFU: a run with a higher HFU may be slower, because it computes things twice.
    """)
    step = {"what the model needs": 1.0}  # @hide
    figure(stacks({"usual": step, "checkpointed": {**step, "computed again": factor - 1}}, "FLOPs of a step, of what the model needs"),
        caption="What the GPU computes in a step of the small model. MFU counts the first part of a bar, HFU all of it.",
        alt="Two bars. The second has an additional part, a quarter as long as the first.")
    question(r"""
        Without checkpointing, a run has an MFU of `40%`. With checkpointing the GPU computes four
        thirds of the FLOPs that the model needs, and HFU is `50%`. What is the MFU then, in
        percent?
    """, answer=0.5 / (4 / 3), check=0.5 - 0.5 / 4, unit="%", wrong={
            "That is HFU; MFU counts only what the model needs.": 0.5,
            "HFU is the larger of the two: divide, do not multiply.": 0.5 * 4 / 3,
        }, hint="HFU is four thirds of MFU.",
        why="HFU is four thirds of MFU, so MFU is three quarters of HFU. That is less than `40%`: the GPUs are busier, and training is slower.")


class Checkpointed(nn.Module):
    """Wraps a block: returns what the block returns, but keeps only the input for the backward pass and runs the block again."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor, turn: Tensor, cache: None) -> Tensor:
        y: Tensor = checkpoint(self.block, x, turn, cache, use_reentrant=False)
        return y
