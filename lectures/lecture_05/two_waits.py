"""Two waits: for the first token and for each further one, and what a batch does to them."""
import math
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from counters import Watching, flops, flops_by_operation
from hardware import CARDS
from lecture_03.block import Transformer
from lecture_03.counts import block_weights, cache_bytes, parameter_count
from lecture_03.published import LLAMA_2_7B, LLAMA_3_8B, SMALL
from napkin import decoding_seconds

from litbook import aside, explore, figure, misbelief, note, question

from .figures import plot_limit
from .llama import (
    BANDWIDTH,
    GPU,
    KV_BYTES,
    MEMORY,
    PARAMETERS,
    PEAK,
    WEIGHTS,
    prefill_flops,
    prefill_seconds,
    sequences_that_fit,
    step_seconds,
)


def two_waits() -> None:
    """Two waits."""
    note(r"""
        A user of a language model waits twice: until the answer begins, and then for each further
        token. The two waits have different causes, so different things shorten them.
    """)
    prefill_is_compute_bound()
    a_step_is_a_sum()
    a_latency_target_sets_the_batch()
    low_precision_weights_help_small_batches()


def prefill_is_compute_bound() -> None:
    """Prefill of a long prompt is compute-bound, and decode for one user is memory-bound."""
    note(r"""
        You send a prompt to a language model. For a moment nothing happens. Then the answer
        appears, token by token. Why are there two different waits?

        The model first processes all tokens of the prompt in one pass, called *prefill*. This pass
        also gives the first token of the answer, so the time until it ends is the *time to first
        token* (TTFT). Then each pass processes a single token and generates the next one. This is
        *decode*, and the time of one such pass is the *time per output token* (TPOT).

        In any pass the GPU reads the model's weights from its memory, and multiplies each token's
        vector by them. It does both at the same time, so a pass takes as long as the slower of the
        two. By hand, let reading all weights take $20$ ms, and the arithmetic $2$ ms per token.

        - Prefill of $50$ tokens: reading takes $20$ ms and the arithmetic $50 \cdot 2 = 100$ ms.
          The pass takes $100$ ms.
        - Decode of one token: reading takes $20$ ms again and the arithmetic $2$ ms. The pass takes
          $20$ ms.

        Prefill is *compute-bound*: its arithmetic takes longer than reading the weights. Decode is
        *memory-bound*: reading takes longer. They differ because a pass reads each weight once,
        however many tokens it processes, while the arithmetic grows with the number of tokens. (In
        the example, a prompt of fewer than $10$ tokens would be memory-bound as well.)
    """)
    blocks = LLAMA_3_8B.layers * block_weights(LLAMA_3_8B)  # @hide
    head = 128256 * 4096  # @hide
    matmuls, attention = 2 * blocks * 2048, 4 * 32 * 4096 * (2048 * 2049 // 2)  # @hide
    note(rf"""
        Now Llama-3-8B on an H100, with a prompt of `2048` tokens. The model has `WEIGHTS` =
        {WEIGHTS:,} weights of $2$ bytes in its matrices. Each of them costs $2$ FLOPs per token, a
        multiplication and an addition. The GPU reads `BANDWIDTH` = `3.35e12` bytes per second, and
        does `PEAK` = `989.5e12` FLOPs per second [@{GPU.source}]. `prefill_flops` returns the FLOPs
        of a prompt: here {matmuls / 1e12:.1f} TFLOP for the weights of the layers, and
        {attention / 1e12:.1f} for attention. The output matrix, which turns a token's vector into
        logits for the next token, runs only for the last token, because prefill needs no other
        prediction. Reading the KV cache, the stored keys and values of earlier tokens, is left out:
    """)
    reading = 2 * WEIGHTS / BANDWIDTH  # 2 bytes each  # @inspect reading as s
    prompt_arithmetic = prefill_flops(2048) / PEAK  # @inspect prompt_arithmetic as s
    token_arithmetic = 2 * WEIGHTS / PEAK  # 2 FLOPs each  # @inspect token_arithmetic as s
    assert prompt_arithmetic > reading > token_arithmetic, \
        "This prefill is compute-bound, and decode for one user is memory-bound."
    assert 6.6 < prompt_arithmetic / reading < 6.8, \
        "So the first token takes 6.7 times as long as the next one."
    first = max(reading, prompt_arithmetic)  # TTFT  # @hide
    following = max(reading, token_arithmetic)  # TPOT  # @hide
    assert (PEAK, BANDWIDTH, MEMORY) == (GPU.bfloat16, GPU.bandwidth, 0.9 * GPU.memory), \
        "Both rates are those of the datasheet, and so is the memory, of which a tenth is kept free."  # @hide
    assert blocks + head == WEIGHTS, \
        "The matrices of 32 blocks and of the head have this number of weights."  # @hide
    assert parameter_count(LLAMA_3_8B) == PARAMETERS, \
        "With the embedding and the norms, there are 8,030,261,248 parameters."  # @hide
    with torch.device("meta"):  # shapes without memory  # @hide
        whole = Transformer(LLAMA_3_8B)
    assert sum(p.numel() for p in whole.parameters()) == PARAMETERS, \
        "Built with PyTorch, the model has the same number."  # @hide
    token = torch.zeros(1, 1, dtype=torch.int64, device="meta")  # @hide
    with torch.no_grad():  # @hide
        per_operation = flops_by_operation(partial(whole, token))
    assert per_operation["aten.mm"] == 2 * WEIGHTS, \
        "For one token, PyTorch counts 2 FLOPs for each weight in the matmuls of the whole model."  # @hide
    assert cache_bytes(LLAMA_3_8B, 2048) == 2048 * KV_BYTES, \
        "These are the bytes of the KV cache."  # @hide
    assert matmuls + attention + 2 * head == prefill_flops(2048), \
        "With the head for a single token, these are all FLOPs of the prefill."  # @hide
    tiny, tokens = Transformer(SMALL, "written"), torch.zeros(1, 24).long()  # @hide
    caches = tiny.caches(1)  # @hide
    with torch.no_grad():  # @hide
        steps = [flops(partial(tiny, tokens[:, n : n + 1], caches)) for n in range(24)]
    logits = 2 * SMALL.vocabulary * SMALL.width  # @hide
    assert sum(steps[1:]) - 22 * logits == prefill_flops(23, 1, SMALL), \
        "PyTorch counts the formula's FLOPs in a small model that gets one token at a time, with one row of logits."  # @hide
    assert sum(steps[8:]) - 15 * logits == prefill_flops(16, 8, SMALL), \
        "It also counts them where 8 tokens are in the cache already."  # @hide
    assert prefill_seconds(2048) == first, \
        "Later sections compute with the same time of a prefill."  # @hide
    alone = step_seconds(1, 0)  # @hide
    assert math.isclose(alone, following), \
        "Later sections compute with the same time of a decode pass."  # @hide
    a100 = CARDS["A100 SXM 80GB"].bandwidth  # @hide
    bound = a100 / (2 * 6_607_077_376)  # @hide
    matrices = parameter_count(LLAMA_2_7B) - 32000 * 4096 - 65 * 4096  # @hide
    assert matrices == 6_607_077_376, \
        "The matrices of Llama-2-7B have 6,607,077,376 weights."  # @hide
    assert 1.4 < bound / 104.9 < 1.5, \
        "The measured 104.9 tokens per second are within a factor of 1.5 of the bound."  # @hide
    note(rf"""
        While one user's answer is generated, the GPU's arithmetic units work for only
        {1e3 * token_arithmetic:.3f} of every {1e3 * following:.2f} ms.

        Both times are lower bounds, and a real pass takes longer. In a published measurement on an
        A100, Llama-2-7B generated `104.9` tokens per second [@gpt-fast], one in
        $1000 / 104.9 = {1000 / 104.9:.1f}$ ms. By its datasheet, that GPU reads the model's
        {2 * matrices / 1e9:.1f} GB of weights in {1e3 / bound:.1f} ms [@nvidia-a100]. The
        measurement took {bound / 104.9:.1f} times as long.
    """)
    question(r"""
        A provider replaces its GPU with one that does twice as many FLOPs per second, with the same
        bandwidth. The prompt has `2048` tokens. Divide the old time to first token by the new one,
        and the old time per output token by the new one. What are the two ratios?
    """, answer=[2 * PEAK / PEAK, BANDWIDTH / BANDWIDTH],
        check=[first / max(reading, prompt_arithmetic / 2), following / max(reading, token_arithmetic / 2)],
        unit="times", hint="What limits each of the two passes?",
        why=r"""
            Prefill is compute-bound, so it takes half the time. Decode is memory-bound: it waits
            until the weights are read, and faster arithmetic does not change that.
        """)


class Operands(Watching):  # @hide
    """Counts the bytes of the weights that matmuls get, and of all that attention's products get."""

    weights = attention = 0

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        if "aten.mm" in str(operation):
            self.weights += args[1].nbytes
        if "aten.bmm" in str(operation):
            self.attention += args[0].nbytes + args[1].nbytes


def operand_bytes(model: Transformer, batch: int, context: int) -> Operands:  # @hide
    """Counts them in a decode step of a model for `batch` sequences with `context` tokens in each cache."""
    caches = model.caches(batch)
    for cache in caches:
        cache.memory.zero_()
        cache.length = context
    with torch.no_grad(), Operands() as counted:
        model(torch.zeros(batch, 1).long(), caches)
    return counted


def a_step_is_a_sum() -> None:
    """A decode step reads the weights once for the whole batch, and one cache per sequence."""
    arithmetic = 128 * 2 * WEIGHTS / PEAK  # 2 FLOPs per weight and sequence  # @hide
    note(rf"""
        One GPU serves $10$ users. Does each of them wait $10$ times as long as one user alone?

        A *step* is one pass of decode: it gives each of one or more sequences its next token. The
        sequences of a step are the *batch*. A step reads the weights, and for each sequence its *KV
        cache*, the keys and values of its earlier tokens. By hand, let reading the weights take
        $10$ ms, and reading one cache $1$ ms.

        - A step for one sequence takes $10 + 1 = 11$ ms.
        - A step for $10$ sequences takes $10 + 10 \cdot 1 = 20$ ms, not $110$ ms.

        Each of the $10$ users waits less than twice as long for a token. The weights are read once
        for all sequences, because all of them are multiplied by the same weights. But here each
        sequence has its own keys and values.

        In a large batch the arithmetic can take longer than reading the weights. Both happen at the
        same time, so the longer of the two counts:

        [@eq:decode]: $$
        \text{{step}} = \max(\text{{reading the weights}},\; \text{{arithmetic}})
        + \text{{batch}} \cdot \text{{reading one cache}}.
        $$

        Reading the caches is added, because a layer multiplies by some of its weights, then
        attends, and then multiplies by the others: while it attends, no weights are read.

        Now Llama-3-8B on an H100, with `2048` tokens in each cache. For each token the cache holds
        a key and a value, in `32` layers with `8` KV heads, of `128` elements of `2` bytes
        [@llama-3-8b]. These are `KV_BYTES` $= 2 \cdot 32 \cdot 8 \cdot 128 \cdot 2$ = {KV_BYTES:,}
        bytes. The model has `WEIGHTS` = {WEIGHTS:,} weights, and the GPU reads `BANDWIDTH` =
        `3.35e12` bytes per second. Up to `128` sequences the arithmetic takes at most
        {1e3 * arithmetic:.1f} ms, less than reading the weights, so `step` leaves it out:
    """)
    reading = 2 * WEIGHTS / BANDWIDTH  # 2 bytes each  # @inspect reading as s
    one_cache = 2048 * KV_BYTES / BANDWIDTH  # @inspect one_cache as s

    def step(batch: int) -> float:  # @stepover
        return reading + batch * one_cache

    longer = step(64) / step(1)  # @inspect round(longer, 1) as times
    # Each step now gives 64 tokens instead of one.
    more = 64 / longer  # the gain in tokens per second  # @inspect round(more, 1) as times
    assert (round(longer, 1), round(more, 1)) == (2.1, 30.4), \
        "With 64 sequences, a step takes 2.1 times as long, and the batch gets 30 times as many tokens per second."
    assert arithmetic < reading, \
        "For 128 sequences, the arithmetic takes less time than reading the weights."  # @hide
    small = Transformer(SMALL, "written").double()  # @hide
    operands = [operand_bytes(small, batch, 20) for batch in (1, 64)]  # @hide
    assert operands[0].weights == operands[1].weights, \
        "In a small model, the matmuls of a step get the same bytes of weights for 64 sequences as for one."  # @hide
    assert operands[1].attention == 64 * operands[0].attention, \
        "Attention gets 64 times the bytes."  # @hide
    batches = [1, 8, 32, 64, 128]  # @hide
    steps = [step(b) for b in batches]  # @hide
    expected = [decoding_seconds(2 * WEIGHTS, 2 * WEIGHTS, 2048 * KV_BYTES, b, BANDWIDTH, PEAK) for b in batches]  # @hide
    assert steps == expected == [step_seconds(b, 2048) for b in batches], \
        "The calculator's formula, and the one of later sections, give the same seconds."  # @hide
    throughput = [b / seconds for b, seconds in zip(batches, steps)]  # @hide
    note("| sequences | ms per step | tokens/s in total |\n|--:|--:|--:|\n"
         + "\n".join(f"| {b} | {1e3 * t:.1f} | {p:,.0f} |" for b, t, p in zip(batches, steps, throughput)))
    tpot = [round(1e3 * seconds, 1) for seconds in steps]  # @hide
    assert tpot == [4.6, 5.1, 7, 9.6, 14.7], \
        "Steps take from 4.6 ms for one sequence to 14.7 ms for 128."  # @hide
    assert [round(p) for p in throughput] == [219, 1562, 4543, 6661, 8686], \
        "The throughput grows from 219 to 8,686 tokens per second."  # @hide
    misbelief("The wait for a token is proportional to the number of users.", rf"""
        With {batches[3]} sequences a step takes {longer:.1f} times as long as with one, not
        {batches[3]} times. And the batch gets {more:.0f} times as many tokens per second.
    """)
    note(rf"""
        The throughput grows more and more slowly, because only the reading of the weights is
        shared: with {batches[4]} sequences, reading caches takes
        $128 \cdot {1e3 * one_cache:.4f} = {128e3 * one_cache:.1f}$ of the {tpot[4]} ms.
    """)
    assert round(128e3 * one_cache, 1) == 10.3, \
        "With 128 sequences, reading caches takes 10.3 ms of a step."  # @hide
    question(r"""
        On another GPU, reading the weights takes `12` ms and reading the cache of one sequence
        takes `0.5` ms. A step for one sequence takes `12.5` ms. With how many sequences does each
        user wait exactly twice as long?
    """, answer=(2 * 12.5 - 12) / 0.5, check=next(b for b in range(1, 99) if 12 + b * 0.5 == 25.0),
        unit="sequences", hint="How many ms of the doubled step are left for caches?",
        wrong={"The weights are read once, not once per sequence.": 2},
        why=r"""
            A step of `25` ms leaves `13` ms for caches, and one takes `0.5` ms. So each of `26`
            users waits only twice as long as a user who has the GPU alone.
        """)
    question(r"""
        Which of these is read once for the whole batch: `1`, the weights of the feed-forward part;
        `2`, the keys of a sequence's own tokens; `3`, the output matrix, which turns the last
        hidden vector into logits? Add up the numbers of the correct options.
    """, answer=1 + 3, check=sum(i for i, once in enumerate([True, False, True], 1) if once),
        hint="Which of them is the same for all users?",
        wrong={"No other sequence attends to these keys.": 6},
        why="All sequences are multiplied by the same weights. Only a sequence's own tokens attend to its keys.")


def a_latency_target_sets_the_batch() -> None:
    """If memory has room, a latency target determines the batch size, and so the throughput."""
    note(r"""
        A service sets a *latency target* (service-level objective, SLO): the time per output token
        (TPOT) must be at most $20$ ms. How many sequences should one GPU decode at once?

        Each step gives every sequence one token, so the TPOT is the time of a step. By hand, let
        reading the weights take $10$ ms, and reading one cache $1$ ms.

        - With $5$ sequences a step takes $10 + 5 = 15$ ms, so the GPU generates $5 / 0.015 = 333$
          tokens per second.
        - With $10$ sequences a step takes $10 + 10 = 20$ ms, just within the target, and the GPU
          generates $10 / 0.020 = 500$ tokens per second.
        - If sequences are $4$ times as long, reading a cache takes $4$ ms. The target leaves
          $20 - 10 = 10$ ms for caches, and $10 / 4 = 2.5$, so only $2$ sequences meet it.

        A service decodes as many sequences at once as the target allows, because the weights are
        read in every step anyway: each further sequence gives one more token per step, and makes
        the step longer only by the time to read its own cache. So if memory has room, the target
        sets the batch size: the time left for caches divided by the time for one cache, rounded
        down.

        Now Llama-3-8B on an H100. (The arithmetic runs while the weights are read, and for these
        batches takes less time than that, so it adds nothing.) `sequences_that_fit` is the number
        of caches that fit in memory: of $80$ GB, let a tenth be kept free. The model, with its
        embedding, uses $16$ GB, which leaves $72 - 16 = 56$ GB for caches.
    """)
    target = 0.020  # s
    weights = 2 * WEIGHTS / BANDWIDTH  # 2 bytes each  # @inspect weights as s
    contexts = [2048, 4096, 8192]  # tokens in each cache
    caches = [context * KV_BYTES / BANDWIDTH
              for context in contexts]  # @inspect caches as s
    by_target = [int((target - weights) / cache)
                 for cache in caches]  # @inspect by_target as sequences
    by_memory = [sequences_that_fit(context)
                 for context in contexts]  # @inspect by_memory as sequences
    assert by_target == [193, 96, 48], \
        "For sequences of 2048, 4096 and 8192 tokens, the target allows 193, 96 and 48 sequences."
    assert all(a < b for a, b in zip(by_target, by_memory)), \
        "In each case the memory has room for more sequences than the target allows."
    largest = [max(b for b in range(1, 1000) if step_seconds(b, context) <= target) for context in contexts]  # @hide
    assert largest == by_target, \
        "With the arithmetic counted as well, the largest batches are the same."  # @hide
    assert 208 == by_memory[0] == (MEMORY - 2 * PARAMETERS) // (KV_BYTES << 11), \
        "The weights and 208 caches of 2048 tokens fit together in nine tenths of the memory."  # @hide
    with torch.device("meta"):  # shapes without memory  # @hide
        model = Transformer(replace(LLAMA_3_8B, context=2048)).bfloat16()
    tensors = [*model.parameters(), *(cache.memory for cache in model.caches(208))]  # @hide
    free = MEMORY - sum(t.nbytes for t in tensors)  # @hide
    assert 0 <= free < sum(cache.memory.nbytes for cache in model.caches(1)), \
        "Made with PyTorch, the model's tensors and 208 caches leave less memory than one more cache needs."  # @hide
    paces = [b / step_seconds(b, c) for b, c in zip(by_target, contexts)]  # @hide
    assert [round(p, -2) for p in paces] == [9700, 4800, 2400], \
        "Together they get about 9,700, 4,800 and 2,400 tokens per second."  # @hide
    note(r"""
        So at this target, sequences that are twice as long halve the number of users that a GPU can
        serve, and its throughput. In vLLM, `max_num_seqs` limits the batch [@vllm-args].
    """)
    figure(plot_limit({c: [(1e3 * step_seconds(b, c), b / step_seconds(b, c))
                           for b in (1, 2, 4, 8, 16, 32, 64, 128, 256) if b <= sequences_that_fit(c)]
                       for c in contexts}, 1e3 * target),
        caption=r"""
            Throughput against the time per output token (lower bound), as long as weights and
            caches fit in memory together. From each point to the next the batch doubles; the dashed
            line is the latency target.
        """,
        alt=r"""
            Three rising curves that bend to the right, the one for short sequences highest. A
            vertical dashed line is the target.
        """)

    def tpot(sequences: int, context: int) -> dict[str, float]:  # @hide
        if sequences > sequences_that_fit(context):
            raise ValueError("weights and caches do not fit in memory together")
        return {"time per output token": 1e3 * step_seconds(sequences, context)}

    grid = explore(tpot, over={"sequences": [1, 2, 4, 8, 16, 32, 48, 52, 64, 96, 104, 128, 192, 208],
                               "context": contexts},
        at={"sequences": 64, "context": 2048}, kind="curve", unit="ms", limit=("target", 20),
        do="For each context, find the largest batch on the slider that stays below the line.",
        see="With `8192` tokens it is `48`, with `4096` it is `96`, and with `2048` it is `192`: the slider's largest values that do not exceed the batches above.",
        caption="The time per output token of Llama-3-8B on an H100 (lower bound) against the batch.",
        alt="A rising curve and a horizontal line, the target. The longer the context, the earlier they cross.")  # @hide
    below = {c: max(b for b, k in grid if k == c and grid[b, c].get("time per output token", 99) < 20) for c in contexts}  # @hide
    assert below == {8192: 48, 4096: 96, 2048: 192}, \
        "These are the largest batches of the slider within 20 ms."  # @hide
    batches = [max(b for b in range(1, 999) if 10 + b <= ms) for ms in (20, 40)]  # @hide
    rates = [b / (10 + b) for b in batches]  # tokens per ms  # @hide
    question(r"""
        The latency target is relaxed from `20` ms to `40` ms. Reading the weights takes `10` ms and
        a cache takes `1` ms. By what factor can the batch grow, and by what factor does the
        throughput grow? Give two numbers.
    """, answer=[(40 - 10) / (20 - 10), (30 / 40) / (10 / 20)],
        check=[batches[1] / batches[0], rates[1] / rates[0]], unit="times",
        hint="The weights are read once per step, in both cases.",
        why=r"""
            After the weights there are `30` ms instead of `10` for caches. But a step takes twice
            as long, so `3` times as many sequences get only `1.5` times as many tokens per second.
        """)
    question(r"""
        Within a target of `20` ms, a GPU decodes `193` sequences of `2048` tokens. It gets more
        memory, so that twice as many caches fit; its bandwidth stays the same. How many sequences
        can it decode then?
    """, answer=by_target[0], check=int((20 - 1e3 * weights) / (1e3 * caches[0])), unit="sequences",
        hint="Was it the memory that limited the batch?",
        wrong={"There was room for more sequences before; the latency target limits the batch.": 2 * 193},
        why="The latency target limits the batch, and more memory makes no step shorter. More bandwidth would.")


@aside
def low_precision_weights_help_small_batches() -> None:
    """With fewer bytes per weight and the same arithmetic, a smaller batch already makes decode compute-bound."""
    note(rf"""
        With one sequence, a decode step waits until all weights are read. So weights of $1$ byte
        instead of $2$ halve the wait. Do they help a large batch equally?

        A step takes the longer of reading the weights and the arithmetic. (Leave out the KV
        caches.) By hand: weights of $2$ bytes are read in $10$ ms, and weights of $1$ byte in $5$
        ms. The arithmetic takes $0.05$ ms per sequence.

        - With $1$ sequence, a step takes $10$ ms with $2$ bytes, and $5$ ms with $1$ byte.
        - With $100$ sequences the arithmetic takes $100 \cdot 0.05 = 5$ ms. A step still takes $10$
          ms with $2$ bytes, and $5$ ms with $1$ byte.
        - With $200$ sequences the arithmetic takes $10$ ms. A step takes $10$ ms with both.

        The *critical batch* is the batch size at which decode becomes *compute-bound*: the
        arithmetic takes as long as reading the weights. It is $200$ with $2$ bytes, and $100$ with
        $1$ byte. With fewer bytes it is smaller, because the weights are read faster, while the
        arithmetic takes as long as before. Assume that, as in many implementations, the weights are
        converted back to $2$ bytes before they are multiplied.

        Llama-3-8B on an H100, with {WEIGHTS / 1e9:.1f} billion weights of $2$, $1$ and half a byte,
        `3.35e12` bytes and `989.5e12` FLOPs per second:
    """)
    # Each weight costs 2 FLOPs per sequence.
    arithmetic = 2 * WEIGHTS / PEAK  # @inspect arithmetic as s
    reading = [size * WEIGHTS / BANDWIDTH
               for size in (2, 1, 0.5)]  # @inspect reading as s
    critical = [round(seconds / arithmetic)
                for seconds in reading]  # @inspect critical as sequences
    assert critical == [295, 148, 74], \
        "The critical batch is 295 sequences, then 148, then 74."
    turns = [next(b for b in range(1, 999) if step_seconds(b, 0, size) > step_seconds(1, 0, size))
             for size in (2, 1, 0.5)]  # @hide
    assert turns == [296, 148, 74], \
        "Steps without caches get longer there."  # @hide
    gains = [round(step_seconds(b, 0) / step_seconds(b, 0, 0.5), 2) for b in (1, 64, 128, 296)]  # @hide
    assert gains == [4, 4, 2.31, 1], \
        "Weights in 4 bits: 4 times as fast for one sequence and for 64, 2.3 times for 128, and no faster for 296."  # @hide
    assert math.isclose(gains[2], reading[0] / (128 * arithmetic), rel_tol=0.003), \
        "For 128 it is the time of reading weights of 2 bytes divided by the time of the arithmetic."  # @hide
    misbelief("If the weights have a quarter of the bytes, decode takes a quarter of the time.", rf"""
        That is nearly true for a small batch with small caches. With `128` sequences the arithmetic
        takes $128 \cdot {1e3 * arithmetic:.5f} = {128e3 * arithmetic:.2f}$ ms, longer than reading
        weights of half a byte. Reading weights of $2$ bytes takes {1e3 * reading[0]:.2f} ms. So
        without caches the step becomes only
        ${1e3 * reading[0]:.2f} / {128e3 * arithmetic:.2f} = {gains[2]}$ times as fast.
    """)
    question(r"""
        A GPU reads weights of `2` bytes in `8` ms, and weights of `1` byte in `4` ms. The
        arithmetic takes `0.05` ms per sequence. From what batch size on is a step with weights of
        `1` byte no longer shorter than a step with weights of `2` bytes?
    """, answer=8 / 0.05, check=next(b for b in range(1, 999) if max(4, b / 20) >= max(8, b / 20)),
        unit="sequences", hint="When does the arithmetic take as long as reading `2` bytes?",
        wrong={"From there on the step is compute-bound with 1 byte; it is still shorter than reading 2 bytes.": 80},
        why=r"""
            Up to `80` sequences, weights of `1` byte halve the step. Then the arithmetic is the
            bottleneck, and the gain shrinks. From `160` on, the step is compute-bound with `2`
            bytes as well, and both take the same time.
        """)
