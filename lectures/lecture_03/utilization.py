"""Which FLOPs enter MFU: the same run by the conventions of well-known codebases."""
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from counters import flops
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
    """Training on a token costs six FLOPs per weight, and for attention FLOPs in proportion to the context."""
    note(r"""
        How many FLOPs does it cost to train a Transformer on one token? Count the multiplications
        of the forward pass, and count $6$ FLOPs for each, for two reasons:

        - Each multiplication comes with an addition, because a matmul adds up its products: $2$
          FLOPs.
        - Each product $a \cdot b$ of the forward pass needs two more in the backward pass:
          $g \cdot b$ for the gradient of $a$, and $g \cdot a$ for the gradient of $b$, where $g$ is
          the gradient of the result. So $3 \cdot 2 = 6$ FLOPs.

        In the forward pass, a token takes part in two kinds of multiplications:

        - *Weights.* It is multiplied once by each of the $N$ weights of the model's matrices: $N$
          multiplications.
        - *Attention.* In each of $L$ layers, the token's query is multiplied by the keys of all $T$
          tokens of the sequence, its *context*. (This count includes later tokens, whose results a
          mask hides afterwards.) The softmax turns the results into $T$ attention weights, and
          these are multiplied by the $T$ values. Taken over all heads, the token's query has $d$
          elements, and so has each key and each value that is multiplied for it; query heads that
          share a key each multiply by it. So these are $d\,T + d\,T = 2\,d\,T$ multiplications in a
          layer.

        With $6$ FLOPs for each:

        [@eq:training]: $$
        \text{training FLOPs per token} = 6\,(N + L \cdot 2\,d\,T) = 6N + 12\,L\,d\,T
        $$

        By hand, with $N = 10$ weights, $L = 1$ layer, $d = 2$ elements and $T = 3$ tokens, the
        weights cost $6 \cdot 10 = 60$ FLOPs per token, and attention costs
        $12 \cdot 1 \cdot 2 \cdot 3 = 72$.

        $N$ includes the output matrix, which scores each token of the vocabulary, but not the
        embedding, because looking up a row needs no multiplication. Check the formula on a small
        `model` with $d = 64$, $L = 2$ layers of `40960` weights and an output matrix of `100 * 64`,
        so $N$ is `2 * 40960 + 100 * 64 = 88320`. `tokens` are `3` sequences of $T = 32$ tokens, and
        `.sum()` stands for a loss:
    """)
    sequences, context = 3, 32  # @hide
    with torch.device("meta"):  # @hide
        model = Transformer(SMALL, "written")
        tokens = torch.zeros(sequences, context, dtype=torch.int64)

    counted = flops(lambda: model(tokens).sum().backward())  # @inspect counted as FLOP
    weights = sum(
        p.numel() for name, p in model.named_parameters()
        if p.dim() == 2 and not name.startswith("embedding")
    )  # @hide
    assert weights == 2 * 40960 + 100 * 64 == 88320, \
        "The matrices of two blocks and the output matrix have 88,320 weights."  # @hide
    per_token = 6 * 88320 + 12 * 2 * 64 * 32  # @inspect per_token as FLOP
    assert per_token == 579_072, \
        "The formula gives 579,072 FLOPs for a token."  # @hide
    assert counted == 3 * 32 * per_token, \
        "For 3 * 32 tokens, PyTorch counts the FLOPs of the formula."
    forward = forward_flops(SMALL, sequences * context, context)  # @hide
    assert counted == 3 * forward, \
        "A training step costs three times the FLOPs of a forward pass."  # @hide
    too_many = model.embedding.weight.numel() / weights  # @hide
    assert round(too_many, 3) == 0.072, \
        "With the embedding, 7.2 % more weights would be counted."  # @hide
    note(r"""
        Which of the two terms is larger? $6N$ is the same for any context, and attention's term
        grows with $T$. They are equal at $T = N / (2\,L\,d)$. Llama-3-8B has `32` layers with
        $d = 4096$ [@llama-3-8b]. Its layers have `218103808` weights each and its output matrix
        `128256 * 4096`, so $N$ is `32 * 218103808 + 128256 * 4096 = 7504658432`:
    """)
    equal = 7504658432 / (2 * 32 * 4096)  # @inspect round(equal) as tokens
    assert round(equal, -2) == 28_600, \
        "In Llama-3-8B, both terms are equal at a context of about 28,600 tokens."
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
        With `8192` tokens of context, the weights cost Llama-3-8B {part["weights, 6N"] / 1e9:.0f}
        GFLOP per token, and attention costs {part["attention, 12LdT"] / 1e9:.0f} GFLOP more. So
        $6N$ alone is a good estimate only if the context is much shorter than {equal:,.0f} tokens.
    """)
    weights_cost, attention_cost = 45, 13  # @hide
    question(r"""
        With `8192` tokens of context, a token costs Llama-3-8B `45` GFLOP for the weights and `13`
        GFLOP for attention. The context is doubled. How many GFLOP does a token then cost in all?
    """, answer=weights_cost + 2 * attention_cost, check=71, unit="GFLOP", within=0.02,
        wrong={
            "Only attention grows with the context.": 2 * (45 + 13),
            "Attention grows with the context.": 45 + 13,
            "For one token, attention grows in proportion to the context, not with its square.": 45 + 4 * 13,
        },
        hint="Which of the two terms contains $T$?",
        why="The weights cost the same, and attention costs twice as much, because the query is multiplied with twice as many keys. Today's contexts are several times as long [@llama-32].")


@aside
def palm_published_both_numbers() -> None:
    """PaLM's two published MFUs, with attention and without, follow from its report."""
    note(r"""
        Can you compute a published MFU yourself? *MFU*, model FLOPs utilization, says what share of
        its chips' peak a training run uses. Multiply the tokens that the run processes per second
        by the FLOPs that the model needs for each token. Divide by the *peak*, the FLOPs that all
        chips can do per second at best.

        A token [costs](#training_costs_six_per_weight_and_twelve_per_pair) `6` FLOPs for each of
        $N$ parameters. Attention costs $12LdT$ more: in each of $L$ layers two matmuls of $2dT$
        FLOPs in the forward pass, and twice that in the backward pass, with $d$ elements of a query
        in all heads together and $T$ tokens of context. Many estimates leave attention out. The
        report on PaLM, a large model from Google, gives the MFU with attention and without, and all
        that one needs to compute both [@palm]:

        - $N = 540.35$ billion parameters, $L = 118$ layers, and `48` heads of `256` elements, so
          $d = 48 \cdot 256$ [@palm];
        - $T = 2048$ tokens of context;
        - `6144` TPU v4 chips of `275` TFLOP/s each, and `238.3` thousand tokens per second [@palm].
    """)
    peak = 6144 * 275e12  # @inspect peak as FLOP/s
    speed = 238.3e3  # tokens per second
    for_weights = 6 * 540.35e9  # FLOPs per token
    for_attention = 12 * 118 * (48 * 256) * 2048  # FLOPs per token
    without = speed * for_weights / peak  # @inspect without as %
    full = speed * (for_weights + for_attention) / peak  # @inspect full as %
    assert (round(without, 3), round(full, 3)) == (0.457, 0.462), \
        "The MFU is 45.7 % without attention and 46.2 % with it, as in the report."
    note(rf"""
        Attention adds only half a percentage point, from {without:.1%} to {full:.1%}, because in a
        context of `2048` tokens its FLOPs are few compared with those of the parameters. So to
        compare the MFUs of two runs, first find out whether both count attention.
    """)
    question("PaLM has `540.35e9` parameters, `118` layers and `48 * 256` elements in all heads together. At how many tokens of context would attention cost the same FLOPs as the parameters?",
             answer=round(540.35e9 / (2 * 118 * 48 * 256)), check=round(for_weights * 2048 / for_attention), unit="tokens",
             within=0.05, hint="Set $6N$ equal to $12LdT$.",
             wrong={"In the formula d is the number of elements of all heads together, 48 times 256.": 540.35e9 / (2 * 118 * 18432)},
             why="$6N = 12LdT$ holds at $T = N / (2Ld)$. PaLM's context of `2048` tokens is a small part of that, so attention added only half a point.")


def a_causal_mask_needs_half_the_pairs() -> None:
    """A causal mask hides about half of all scores, and a forward pass in many groups of queries skips most of these."""
    note(r"""
        In a language model, the *causal mask* keeps every token from attending to later ones. Does
        it make attention cheaper? Not by itself: a program can compute everything, and hide about
        half of it afterwards. But a program that works on the queries in groups can skip most of
        that half, because no query of a group needs the keys after the group's end.

        The query of each token is multiplied by the key of each token; each result is a *score*.
        The mask hides every score whose key comes after its query. By hand, take `4` queries $q$ in
        two groups, and `4` keys $k$. Each group is multiplied only by the keys up to its own last
        token:

        | | $k_1$ | $k_2$ | $k_3$ | $k_4$ |
        |---|---|---|---|---|
        | $q_1$ | needed | hidden | skipped | skipped |
        | $q_2$ | needed | needed | skipped | skipped |
        | $q_3$ | needed | needed | needed | hidden |
        | $q_4$ | needed | needed | needed | needed |

        The first group computes $2 \cdot 2$ scores and the second $2 \cdot 4$, together $12$ of
        $16$, or $3/4$. Four groups of one query compute $1 + 2 + 3 + 4 = 10$ of $16$. Only the
        scores on and below the diagonal are needed, so more groups come closer to one half, but
        never below it.

        Count the FLOPs for `64` tokens. `q`, `k` and `v` hold their queries, keys and values; the
        second axis counts the tokens. `attention` computes a score for each query and key that it
        gets, and then applies the mask. It assumes that the last query and the last key belong to
        the same token, which holds in each group:
    """)
    q, k, v = torch.randn(3, 1, 64, 2, 8).double()  # @hide
    attention = written_attention  # @hide

    def in_groups(groups: int) -> Tensor:
        size = 64 // groups
        results = []
        for end in range(size, 65, size):
            group = q[:, end - size:end]  # the queries of one group
            results.append(attention(group, k[:, :end], v[:, :end]))
        return torch.cat(results, dim=1)

    whole = attention(q, k, v)  # @hide
    grouped = in_groups(16)  # @hide  # @unnoticed: 16: any number of groups gives the same result
    assert torch.allclose(grouped, whole), \
        "In 16 groups, attention gives the same results as in one piece."
    full = flops(lambda: in_groups(1))  # @hide
    assert full == 2 * 2 * 64 * 64 * 16, \
        "In one piece, two matmuls cost a multiplication and an addition for each pair and each of 16 elements."  # @hide
    cost = {m: flops(partial(in_groups, m)) for m in (1, 2, 4, 32)}
    shares = {m: cost[m] / cost[1] for m in cost}  # @inspect shares
    assert [*shares.values()] == [1, 3 / 4, 10 / 16, 33 / 64], \
        "In 2 groups attention costs 3/4 of the FLOPs, and in 32 groups a little more than half."
    note(r"""
        So in the forward pass, the FLOPs of attention depend on the program. *Fused* attention, a
        single program on the GPU, works on groups of queries and of keys anyway [@dao2022], so it
        can skip scores that would be hidden. (Its backward pass computes the scores once more
        [@dao2022], so training saves less than a count of the forward pass says.) When FLOPs of
        attention are quoted, ask whether the hidden scores are counted.
    """)
    tiles = {
        f"{m} groups": [
            [2 if k <= q else 1 if k < (q * m // 8 + 1) * 8 // m else 0 for k in range(8)] for q in range(8)
        ] for m in (2, 4, 8)
    }  # @hide
    scored = [sum(kind > 0 for row in rows for kind in row) / 8**2 for rows in tiles.values()]  # @hide
    assert scored == [(m + 1) / (2 * m) for m in (2, 4, 8)], \
        "With m groups, the share that is computed is (m + 1) / (2 m)."  # @hide
    figure(cells(tiles, [("skipped", "none"), ("computed, then hidden", GOLD), ("needed", BLUE)], ("query", "key")), caption=r"""
        All pairs of `8` queries and `8` keys, in `2`, `4` and `8` groups. The smaller the groups,
        the fewer scores are computed and then hidden.
    """, alt=rf"""
        Three grids. The same triangle is needed in each. {scored[0]:.0%}, {scored[1]:.0%} and
        {scored[2]:.0%} of the cells are computed, in steps that get smaller.
    """)
    question("A program splits `9` queries into `3` groups of `3`. How many of the `9 * 9` scores does it compute?",
             answer=3 * (3 + 6 + 9), check=sum(3 * end for end in (3, 6, 9)), unit="scores",
             wrong={"The program computes whole groups; within a group, some scores are computed and then hidden.": 45,
                    "The first group needs only 3 keys, and the second only 6.": 81},
             hint="How many keys does each of the three groups need?",
             why="The groups need `3`, `6` and `9` keys, for `3` queries each. Of these `54` scores, `45` are needed and `9` are computed and then hidden.")


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
    """Codebases can report different MFUs for one training run, because they count attention differently."""
    note(r"""
        Would every codebase report the same MFU for one training run? *MFU* is the tokens per
        second times the FLOPs per token, divided by the GPU's peak. The FLOPs per token come from a
        formula, and codebases use different formulas. In each row, $N$ counts something else:

        | codebase | FLOPs per token | $N$ counts |
        |---|---|---|
        | rule of thumb | $6N$ | all parameters |
        | *nanoGPT* [@nanogpt] | $6N + 12LdT$ | all parameters except the position embeddings |
        | *torchtitan* [@torchtitan] | $6N + 12LdT$ | all parameters except the embedding |
        | *Megatron-LM* [@megatron-lm], *MaxText* [@maxtext] | $6N + 6LdT$ | the weights of the matrices in matmuls (no embedding) |

        The second term is the cost of attention, for $L$ layers, $d$ elements of a query in all
        heads together and $T$ tokens of context. $12LdT$ counts every pair of tokens. $6LdT$ counts
        only the half that the causal mask keeps.

        How far apart are the counts of Megatron-LM and torchtitan? Divide them for Llama-3-8B, with
        $L$ = `32`, $d$ = `4096` and, in its matrices,
        [`7504658432` weights](#training_costs_six_per_weight_and_twelve_per_pair). (For torchtitan,
        $N$ also counts the norms' factors, too few to matter.) Take its own context of `8192`
        tokens and one of `131072`:
    """)
    matmul_flops = 6 * 7504658432  # per token

    def ratio(context: int) -> float:
        all_pairs = 12 * 32 * 4096 * context  # FLOPs per token
        return (matmul_flops + all_pairs / 2) / (matmul_flops + all_pairs)

    short, long = ratio(8192), ratio(131072)  # @inspect round(short, 2) as times, round(long, 2) as times
    assert (round(short, 2), round(long, 2)) == (0.89, 0.59), \
        "Megatron-LM's count is 0.89 or 0.59 times torchtitan's."
    by_code = {
        name: [c.flops_per_token(LLAMA_3_8B, n) for n in (8192, 131072)] for name, c in CONVENTIONS.items()
    }  # @hide
    relative = {
        name: [round(n / base, 2) for n, base in zip(counts, by_code["torchtitan"])] for name, counts in by_code.items()
    }  # @hide
    assert relative == {"6N": [0.83, 0.19], "nanoGPT": [1.05, 1.01], "torchtitan": [1, 1], "Megatron-LM": [0.89, 0.59]}, \
        "With the norms, the ratios of the four formulas are the same to a hundredth."  # @hide
    counted = CONVENTIONS["torchtitan"].flops_per_token(QWEN_3, 8192)  # @hide
    gains = counted - 3 * forward_flops(QWEN_3, 1, 8192)  # @hide
    assert gains == 6 * (28 * 2 * (1024 + 128) + 1024), \
        "Qwen3's heads are twice as wide as the model, and torchtitan's count is right but for the norms."  # @hide
    note(rf"""
        Suppose a run has an MFU of $50$ % by torchtitan's formula. By Megatron-LM's formula, the
        same run has `0.5 * 0.89`, or {0.5 * round(short, 2):.1%}, if its context is `8192` tokens,
        and only `0.5 * 0.59`, or {0.5 * round(long, 2):.1%}, if it is `131072`. The longer the
        context, the further apart the two are, because attention is a larger part of the count. So
        compare two MFUs only if they come from the same formula.
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
    sizes, tokens = replace(SMALL, vocabulary=99), 346  # @hide
    megatron, titan, alone = (
        it.flops_per_token(sizes, tokens) for it in (CONVENTIONS["Megatron-LM"], CONVENTIONS["torchtitan"], Convention(False, 0))
    )  # @hide
    assert titan == 2 * alone, \
        "With suitable sizes, 6N and 12LdT are equal."  # @hide
    question(r"""
        For some model and context, $6N$ is `40` GFLOP and $12LdT$ is `40` GFLOP. A run reports an
        MFU of `40%` by torchtitan's formula. What is its MFU by Megatron-LM's formula, in percent?
    """, answer=0.4 * (40 + 20) / (40 + 40), check=0.4 * megatron / titan, unit="%", within=0.02, wrong={
            "Only attention's part is halved, not the whole count.": 0.2,
            "Megatron-LM counts only half of attention's FLOPs.": 0.4,
        }, hint="How many GFLOP does each of the two formulas count?",
        why=r"""
            Megatron-LM counts `40 + 20` GFLOP for a token, and torchtitan `80`. The run is as fast
            as before, so its MFU is `60 / 80` of `40%`.
        """)


def recomputation_is_work_but_not_the_models() -> None:
    """FLOPs that are computed again count in HFU but not in MFU."""
    note(r"""
        With *checkpointing*, a training run saves memory: it discards what a block computed, and
        computes it again in the backward pass. Does that raise the utilization of a GPU, the share
        of its peak FLOP/s that is used? There are two utilizations:

        - *MFU*, model FLOPs utilization, counts only the FLOPs that the model needs: one forward
          and one backward pass.
        - *HFU*, *Hardware FLOPs utilization*, counts all FLOPs that the GPU computes, including
          those that it repeats [@palm].

        By hand, let a forward pass cost `1` unit and a backward pass `2`. The model needs
        `1 + 2 = 3` units. A GPU that repeats the forward pass computes `4`, so its HFU is `4 / 3`
        of its MFU. So with repeats HFU can rise while MFU does not. Only MFU measures progress,
        because the repeated FLOPs add nothing to the training. In general, HFU is MFU times

        $$
        \frac{\text{FLOPs that the GPU computes}}{\text{FLOPs that the model needs}}.
        $$

        Count both for a training step of a small `model`. `checkpointed` is the same model, but
        each of its blocks saves only its input and is computed again:
    """)
    with torch.device("meta"):  # @hide
        model = Transformer(SMALL, "written")
        tokens = torch.zeros(1, 32, dtype=torch.int64)
        checkpointed = Transformer(SMALL, "written")
    for i, block in enumerate(checkpointed.blocks):  # @hide
        checkpointed.blocks[i] = Checkpointed(block)
    needed = flops(lambda: model(tokens).sum().backward())
    computed = flops(lambda: checkpointed(tokens).sum().backward())
    factor = computed / needed  # @inspect round(factor, 2) as times
    assert round(factor, 2) == 1.24, \
        "With checkpointing, the GPU computes 1.24 times the FLOPs that the model needs."
    forward = flops(lambda: model(tokens))  # @hide
    tail = 2 * 32 * 64 * (SMALL.vocabulary + 2 * SMALL.hidden)  # @hide
    assert (needed, computed - needed) == (3 * forward, forward - tail), \
        "Everything except the head and the last matmul of both blocks is recomputed."  # @hide
    palm = 57.8 / 46.2  # @hide
    assert 1.25 < palm < 4 / 3, \
        "In PaLM's run a quarter was computed again, less than a whole forward pass."  # @hide
    note(rf"""
        So HFU is {factor:.2f} times MFU. That is less than `4 / 3`, because two kinds of matmul are
        not computed again: that of the output matrix, which is in no block, and each block's last
        one. Its result is only added to the block's input, and the gradient of a sum does not need
        the terms.

        PaLM, a large model from Google, was trained on TPUs with an HFU of `57.8%` and an MFU of
        `46.2%` [@palm]. So its chips computed `57.8 / 46.2`, or {palm:.2f} times the FLOPs that the
        model needs. To compare the speed of two runs of one model on the same GPUs, compare their
        MFU, not their HFU.
    """)
    misbelief("A higher utilization means a faster run.", r"""
        Not if it is HFU, because it also counts what is computed twice: PaLM's HFU is `57.8%`, its
        MFU only `46.2%` [@palm].
    """)
    step = {"what the model needs": 1.0}  # @hide
    figure(stacks({"usual": step, "checkpointed": {**step, "computed again": factor - 1}}, "FLOPs of a step, of what the model needs"),
        caption="What the GPU computes in a step of the small model. MFU counts the first part of a bar, HFU all of it.",
        alt="Two bars. The second has an additional part, a quarter as long as the first.")
    with torch.device("meta"):  # @hide
        x, matrix = torch.empty(2, 8, 8, requires_grad=True)

    def waves(x: Tensor) -> Tensor:  # @hide
        result: Tensor = x @ matrix
        return result.sin()  # its gradient needs the result of the matmul, so this is repeated, too

    usual = flops(lambda: waves(x).sum().backward())  # @hide
    repeated = flops(lambda: checkpoint(waves, x, use_reentrant=False).sum().backward())  # @hide
    assert repeated / usual == 4 / 3, \
        "If the whole forward pass is repeated, the GPU computes four thirds of the FLOPs."  # @hide
    question(r"""
        Without checkpointing, a run has an MFU of `40%`. With checkpointing the GPU computes four
        thirds of the FLOPs that the model needs, and HFU is `50%`. What is the MFU then, in
        percent?
    """, answer=0.5 / (4 / 3), check=0.5 * usual / repeated, unit="%", wrong={
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
