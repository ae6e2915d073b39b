"""Two waits: for the first token and for each further one, and what a batch does to them."""
import math
from functools import partial

import torch
from counters import flops
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
    the_first_token_waits_for_arithmetic()
    a_step_is_a_sum()
    a_latency_limit_picks_the_batch()
    low_precision_weights_help_small_batches()


def the_first_token_waits_for_arithmetic() -> None:
    """Prefill is compute-bound, and decode is memory-bound."""
    note(rf"""
        You send a prompt to a language model. For a moment nothing happens. Then the answer
        appears, token by token. Why are there two different waits?

        The model first processes all tokens of the prompt in one pass, called *prefill*. The time
        until prefill ends is the *time to first token* (TTFT). Then each pass processes a single
        token and generates the next one. This is *decode*, and the time of one such pass is the
        *time per output token* (TPOT).

        Take a tiny model by hand: $1000$ weights of $2$ bytes. Each weight costs $2$ FLOPs per
        token, a multiplication and an addition. The GPU reads $100$ bytes per microsecond, and does
        $1000$ FLOPs in that time.

        - Prefill of $50$ tokens: reading the weights takes $2000 / 100 = 20$ µs. The arithmetic
          takes $50 \cdot 2000 / 1000 = 100$ µs.
        - One decode pass: reading takes $20$ µs again. The arithmetic takes $2000 / 1000 = 2$ µs.

        Reading and arithmetic run at the same time, so a pass takes the longer of the two: $100$ µs
        for all $50$ tokens of the prompt, then $20$ µs for each single token.

        Prefill is *compute-bound*: its arithmetic takes longer than reading the weights. Decode is
        *memory-bound*: its reading takes longer. They differ because a pass reads each weight once,
        however many tokens it processes, while the arithmetic grows with the number of tokens.

        Now Llama-3-8B and a prompt of `2048` tokens, on an H100. It does `PEAK` = `989.5e12` FLOPs
        per second, and reads `BANDWIDTH` = `3.35e12` bytes per second [@{GPU.source}].

        - A pass reads `WEIGHTS` = {WEIGHTS:,} weights of $2$ bytes. These are the weights of all
          matrices except the embedding, because a token needs only one row of the embedding.
        - A decode pass also reads the *KV cache*, the keys and values of earlier tokens. Per token
          the cache has a key and a value, in $32$ layers, for $8$ KV heads of $128$ elements of $2$
          bytes: $2 \cdot 32 \cdot 8 \cdot 128 \cdot 2$, or `KV_BYTES` = {KV_BYTES:,} bytes.
        - `prefill_flops` adds up the FLOPs of a prefill: the FLOPs of attention, and $2$ per weight
          and token. The *head*, the last matrix, is an exception: it processes only the last token,
          because only the token after it is needed.
    """)
    prompt = 2048
    first = prefill_flops(prompt) / PEAK  # TTFT  # @inspect first as s
    read = 2 * WEIGHTS + prompt * KV_BYTES  # @inspect read as B
    following = read / BANDWIDTH  # TPOT  # @inspect following as s
    assert 6.5 < first / following < 6.6, \
        "The first token takes 6.6 times as long as the next one."
    assert (PEAK, BANDWIDTH, MEMORY) == (GPU.bfloat16, GPU.bandwidth, 0.9 * GPU.memory), \
        "Both rates are those of the datasheet, and so is the memory, of which a tenth is kept free."  # @hide
    blocks = LLAMA_3_8B.layers * block_weights(LLAMA_3_8B)  # @hide
    head = 128256 * 4096  # @hide
    assert blocks + head == WEIGHTS, \
        "The matrices of 32 blocks and of the head have this number of weights."  # @hide
    assert parameter_count(LLAMA_3_8B) == PARAMETERS, \
        "With the embedding and the norms, there are 8,030,261,248 parameters."  # @hide
    assert cache_bytes(LLAMA_3_8B, prompt) == prompt * KV_BYTES, \
        "These are the bytes of the KV cache."  # @hide
    matmuls, attention = 2 * blocks * prompt, 4 * 32 * 4096 * (prompt * (prompt + 1) // 2)  # @hide
    assert [round(1e3 * part / PEAK, 1) for part in (matmuls, attention, matmuls + attention)] == [28.9, 1.1, 30], \
        "The matmuls of the blocks take 28.9 ms at the peak, and attention 1.1 ms, together 30 ms."  # @hide
    assert matmuls + attention + 2 * head == prefill_flops(prompt), \
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
    assert prefill_seconds(prompt) == first, \
        "Later sections compute with the same time of a prefill."  # @hide
    assert math.isclose(step_seconds(1, prompt), following), \
        "Later sections compute with the same time of a decode pass."  # @hide
    a100 = CARDS["A100 SXM 80GB"].bandwidth  # @hide
    bound = a100 / (2 * 6_607_077_376)  # @hide
    matrices = parameter_count(LLAMA_2_7B) - 32000 * 4096 - 65 * 4096  # @hide
    assert matrices == 6_607_077_376, \
        "The matrices of Llama-2-7B have 6,607,077,376 weights."  # @hide
    assert 1.4 < bound / 104.9 < 1.5, \
        "The measured 104.9 tokens per second are within a factor of 1.5 of the bound."  # @hide
    note(rf"""
        The blocks have {blocks / 1e9:.2f} billion weights. For `2048` tokens they need
        $2 \cdot {blocks / 1e9:.2f} \cdot 10^9 \cdot 2048 = {matmuls / 1e12:.1f} \cdot 10^{{12}}$
        FLOPs, which take {1e3 * matmuls / PEAK:.1f} ms at the peak. Attention takes the other
        {1e3 * attention / PEAK:.1f} ms.

        These times are lower bounds: a real pass takes longer. In a published measurement,
        Llama-2-7B generated `104.9` tokens per second on an A100 [@gpt-fast]. That GPU reads
        {a100 / 1e12:.2f}e12 bytes per second [@nvidia-a100], and the model's matrices have
        {2 * matrices / 1e9:.1f}e9 bytes. So the bound is {a100 / 1e12:.2f}e12 /
        {2 * matrices / 1e9:.1f}e9 = {bound:.0f} tokens per second, {bound / 104.9:.1f} times the
        measured number.
    """)
    question(r"""
        A provider replaces its GPU with one that does twice as many FLOPs per second, with the same
        bandwidth. The prompt has `2048` tokens. Divide the old time to first token by the new one,
        and the old time per output token by the new one. What are the two ratios?
    """, answer=[2 * PEAK / PEAK, BANDWIDTH / BANDWIDTH],
        check=[first / (prefill_flops(prompt) / (2 * PEAK)),
               following / max(read / BANDWIDTH, 2 * WEIGHTS / (2 * PEAK))],
        unit="times", hint="What limits each of the two passes?",
        why=r"""
            Prefill is compute-bound, so it takes half the time. Decode is memory-bound: it waits
            until the weights are read, and faster arithmetic does not change that.
        """)


def a_step_is_a_sum() -> None:
    """A decode step reads the weights once for the whole batch, and one cache per sequence."""
    note(rf"""
        One GPU serves $10$ users. Does each of them wait $10$ times as long as one user alone?

        Decode for several sequences at once is a *step*: one pass that gives each of them its next
        token. The sequences of a step are the *batch*. Suppose that reading the weights takes $10$
        ms, and reading the KV cache of one sequence takes $1$ ms. By hand:

        - A step for one sequence takes $10 + 1 = 11$ ms.
        - A step for $10$ sequences takes $10 + 10 \cdot 1 = 20$ ms, not $110$ ms.

        Each of the $10$ users waits less than twice as long for a token, and together they get $10$
        tokens instead of one. The weights are read once for all sequences, because all of them are
        multiplied by the same weights. But each sequence has its own keys and values, which are of
        no use to the other sequences.

        With $N$ weights of $w$ bytes, $B$ sequences, and caches of $C$ bytes each,

        [@eq:decode]: $$
        \text{{step}} = \max\left(\frac{{N w}}{{\text{{bandwidth}}}},\;
        \frac{{2 N B}}{{\text{{peak}}}}\right) + \frac{{B\,C}}{{\text{{bandwidth}}}}.
        $$

        The formula has a maximum because reading the weights and multiplying by them happen at the
        same time: in a small batch the reading takes longer, and in a large batch the arithmetic
        does. The time for the caches is added, because attention is a separate operation between
        the matmuls.

        Now Llama-3-8B on an H100, with `2048` tokens in each cache. A cache uses `KV_BYTES` =
        {KV_BYTES:,} bytes per token. `throughput` is in tokens per second, for the whole batch:
    """)
    weights = 2 * WEIGHTS / BANDWIDTH  # @inspect weights as s
    cache = 2048 * KV_BYTES / BANDWIDTH  # @inspect cache as s
    batches = [1, 8, 32, 64, 128, 208]
    steps = [max(weights, 2 * WEIGHTS * b / PEAK) + b * cache
             for b in batches]
    throughput = [b / step for b, step in zip(batches, steps)]
    # 64 sequences against 1:
    longer = steps[3] / steps[0]  # @inspect round(longer, 1) as times
    more = throughput[3] / throughput[0]  # @inspect round(more, 1) as times
    assert (round(longer, 1), round(more, 1)) == (2.1, 30.4), \
        "With 64 sequences, a step takes 2.1 times as long, and the batch gets 30 times as many tokens per second."
    expected = [decoding_seconds(2 * WEIGHTS, 2 * WEIGHTS, 2048 * KV_BYTES, b, BANDWIDTH, PEAK) for b in batches]  # @hide
    assert steps == expected == [step_seconds(b, 2048) for b in batches], \
        "The calculator's formula, and the one of later sections, give the same seconds."  # @hide
    note("| sequences | ms per step | tokens/s in total |\n|--:|--:|--:|\n"
         + "\n".join(f"| {b} | {1e3 * t:.1f} | {p:,.0f} |" for b, t, p in zip(batches, steps, throughput)))
    tpot = [round(1e3 * step, 1) for step in steps]  # @hide
    assert tpot == [4.6, 5.1, 7, 9.6, 14.7, 21.1], \
        "Steps take from 4.6 ms for one sequence to 21.1 ms for 208."  # @hide
    assert [round(p) for p in throughput] == [219, 1562, 4543, 6661, 8686, 9836], \
        "The throughput grows from 219 to 9,836 tokens per second."  # @hide
    assert round(208e3 * cache, 1) == 16.7, \
        "With 208 sequences, reading caches takes 16.7 ms of a step."  # @hide
    fits = sequences_that_fit(2048)  # @hide
    assert fits == 208 == batches[-1] == (MEMORY - 2 * PARAMETERS) // (KV_BYTES << 11), \
        "The weights and 208 such caches fit together in nine tenths of the memory."  # @hide
    misbelief("The wait for a token is proportional to the number of users.", rf"""
        With {batches[3]} sequences a step takes {longer:.1f} times as long as with one, not
        {batches[3]} times. And the batch gets {more:.0f} times as many tokens per second.
    """)
    note(rf"""
        The throughput grows more and more slowly, because only the reading of the weights is
        shared: with `208` sequences, caches take
        $208 \cdot {1e3 * cache:.4f} = {208e3 * cache:.1f}$ of the {tpot[-1]} ms.

        No more than `208` caches fit in memory. Of {GPU.memory / 1e9:.0f} GB a tenth is
        [kept free](#lecture_03.checkpointing_lets_a_large_model_fit), and all parameters, with the
        embedding, use {2 * PARAMETERS / 1e9:.1f} GB. The rest is
        $72 - {2 * PARAMETERS / 1e9:.1f} = {(MEMORY - 2 * PARAMETERS) / 1e9:.1f}$ GB, and a cache
        uses {2048 * KV_BYTES / 1e9:.3f} GB. In vLLM, `max_num_seqs` limits the batch [@vllm-args].
    """)
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


def a_latency_limit_picks_the_batch() -> None:
    """A latency target determines the batch size, and so the throughput."""
    note(r"""
        A service sets a *latency target* (service-level objective, SLO): the time per output token
        (TPOT) must be at most $20$ ms. How many sequences should one GPU decode at once?

        By hand: reading the weights takes $10$ ms, and reading one cache takes $1$ ms.

        - With $5$ sequences a step takes $10 + 5 = 15$ ms: $5 / 0.015 = 333$ tokens per second.
        - The target leaves $20 - 10 = 10$ ms for caches. So $10$ sequences meet the target, with
          $10 / 0.020 = 500$ tokens per second in total.
        - If sequences are $4$ times as long, reading a cache takes $4$ ms. Then $10 / 4 = 2.5$, so
          only $2$ sequences meet the target.

        Take as many sequences as the target allows, because each further sequence gets one token
        per step, and lengthens the step only by the time to read its own cache: as long as the step
        is memory-bound, the weights are read once in any case. So the throughput grows, but so does
        the wait. And the longer the sequences, the fewer users a GPU can serve.

        For Llama-3-8B on an H100, `step_seconds` is the time of a [decode step](#a_step_is_a_sum),
        and `sequences_that_fit` is the number of caches that fit in memory together with the
        weights:
    """)
    target = 0.020  # s
    contexts = [512, 2048, 8192]
    by_target = [max(b for b in range(1, 1000)
                     if step_seconds(b, context) <= target)
                 for context in contexts]  # @inspect by_target
    by_memory = [sequences_that_fit(context) for context in contexts]  # @inspect by_memory
    assert by_target == [568, 193, 48], \
        "For sequences of 512, 2048 and 8192 tokens, the largest batches that meet the target are 568, 193 and 48."
    assert all(a < b for a, b in zip(by_target, by_memory)), \
        "In each case the memory has room for more."
    weights, cache = 2 * WEIGHTS / BANDWIDTH, 512 * KV_BYTES / BANDWIDTH  # @hide
    rule = [int((target - weights) / (n * cache)) for n in (1, 4, 16)]  # @hide
    assert rule[1:] == by_target[1:], "The rule by hand gives the same for the longer two."  # @hide
    arithmetic = 2 * WEIGHTS / PEAK  # @hide
    assert int(target / (arithmetic + cache)) == by_target[0], \
        "For the short ones, each sequence adds its arithmetic and its cache."  # @hide
    busy, left = by_target[0] * arithmetic, by_target[0] * cache  # @hide
    assert [round(1e3 * part, 1) for part in (busy, left, busy + left)] == [8.6, 11.4, 20], \
        "With 568 sequences, the arithmetic takes 8.6 ms and reading caches takes 11.4 ms, the larger part of the step."  # @hide
    note(rf"""
        As in the example by hand, the batch size is the time left for caches divided by the time
        for one cache, rounded down:

        | tokens | weights or matmuls, ms | left for caches, ms | one cache, ms | batch |
        |--:|--:|--:|--:|--:|
        | `512` | {1e3 * busy:.2f} | {1e3 * (target - busy):.2f} | {1e3 * cache:.5f} | `568` |
        | `2048` | {1e3 * weights:.2f} | {1e3 * (target - weights):.2f} | {4e3 * cache:.5f} | `193` |
        | `8192` | {1e3 * weights:.2f} | {1e3 * (target - weights):.2f} | {16e3 * cache:.5f} | `48` |

        With `2048` and `8192` tokens, reading the weights takes longer than the matmuls. In a batch
        of `568`, the matmuls take longer. They need `2` FLOPs per weight and sequence:
        $2 \cdot {WEIGHTS / 1e9:.3f} \cdot 10^9 \cdot 568 / (989.5 \cdot 10^{{12}})$ s is
        {1e3 * busy:.2f} ms.
    """)
    paces = [b / step_seconds(b, c) for b, c in zip(by_target, contexts)]  # @hide
    assert [round(p, -2) for p in paces] == [28400, 9700, 2400], \
        "Together they get about 28,400, 9,700 and 2,400 tokens per second."  # @hide
    figure(plot_limit({c: [(1e3 * step_seconds(b, c), b / step_seconds(b, c))
                           for b in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if b <= sequences_that_fit(c)]
                       for c in contexts}, 1e3 * target),
        caption=r"""
            Throughput against the time per output token (lower bound), as long as weights and
            caches fit in memory together. From each point to the next the batch doubles; the dashed
            line is the latency target.
        """,
        alt=r"""
            Three rising curves that bend to the right, the one for short sequences highest. A
            vertical dashed line cuts all three; left of it the target is met.
        """)

    def tpot(sequences: int, context: int) -> dict[str, float]:  # @hide
        if sequences > sequences_that_fit(context):
            raise ValueError("weights and caches do not fit in memory together")
        return {"time per output token": 1e3 * step_seconds(sequences, context)}

    grid = explore(tpot, over={"sequences": [1, 2, 4, 8, 16, 32, 48, 52, 64, 128, 192, 208, 512, 640],
                               "context": contexts},
        at={"sequences": 64, "context": 2048}, kind="curve", unit="ms", limit=("target", 20),
        do="For each context, find the largest batch on the slider that stays below the line.",
        see="With `8192` tokens it is `48`, with `2048` it is `192`, and with `512` it is `512`: the slider's largest values that do not exceed the batches above.",
        caption="The time per output token of Llama-3-8B on an H100 (lower bound) against the batch.",
        alt="A rising curve and a horizontal line, the target. The longer the context, the earlier they cross.")  # @hide
    below = {c: max(b for b, k in grid if k == c and grid[b, c].get("time per output token", 99) < 20) for c in contexts}  # @hide
    assert below == {8192: 48, 2048: 192, 512: 512}, \
        "These are the largest batches of the slider within 20 ms."  # @hide
    question(r"""
        The latency target is relaxed from `20` ms to `40` ms. Reading the weights takes `10` ms and
        a cache takes `1` ms. By what factor can the batch grow, and by what factor does the
        throughput grow? Give two numbers.
    """, answer=[(40 - 10) / (20 - 10), (30 / 40) / (10 / 20)], check=[3.0, 1.5], unit="times",
        hint="The weights are read once per step, in both cases.",
        why=r"""
            After the weights there are `30` ms instead of `10` for caches. But a step takes twice
            as long, so `3` times as many sequences get only `1.5` times as many tokens per second.
        """)
    question(r"""
        Within a target of `20` ms, a GPU decodes `193` sequences of `2048` tokens. It gets more
        memory, so that twice as many caches fit; its bandwidth stays the same. How many sequences
        can it decode then?
    """, answer=by_target[1], check=int((20 - 1e3 * weights) / (1e3 * 4 * cache)), unit="sequences",
        hint="Was it the memory that limited the batch?",
        wrong={"There was room for more sequences before; the latency target limits the batch.": 2 * 193},
        why="The latency target limits the batch, and more memory makes no step shorter. More bandwidth would.")


@aside
def low_precision_weights_help_small_batches() -> None:
    """The fewer bytes a weight has, the smaller the batch at which decode becomes compute-bound."""
    note(r"""
        With one sequence, a decode step waits until all weights are read. So weights of $1$ byte
        instead of $2$ halve the wait. Do they help a large batch equally?

        Reading the weights takes the same time for any batch, and the arithmetic grows with the
        batch. The *critical batch* is the batch size at which both take equally long. By hand: a
        GPU does $200$ FLOPs while it reads one byte.

        - While it reads a weight of $2$ bytes, it can do $400$ FLOPs. The weight costs $2$ FLOPs
          per sequence, so the critical batch is $400 / 2 = 200$.
        - While it reads a weight of $1$ byte, it can do $200$ FLOPs. The critical batch is $100$.

        With fewer bytes the critical batch is smaller, because the weights are read faster, while
        the arithmetic takes as long as before: the weights are converted to `bfloat16` before they
        are multiplied. On an H100, with $2$, $1$ and half a byte per weight:
    """)
    ridge = PEAK / BANDWIDTH  # FLOPs per byte  # @inspect round(ridge)
    critical = [round(size * ridge / 2) for size in (2, 1, 0.5)]  # @inspect critical as sequences
    assert critical == [295, 148, 74], \
        "The critical batch is 295 sequences, then 148, then 74."
    turns = [next(b for b in range(1, 999) if step_seconds(b, 0, size) > step_seconds(1, 0, size))
             for size in (2, 1, 0.5)]  # @hide
    assert turns == [296, 148, 74], \
        "Steps without caches get longer there."  # @hide
    note(r"""
        How much faster is a step with weights in $4$ bits than with weights in $16$ bits?
        `step_seconds(b, 0, 0.5)` is the time of a step with `b` sequences, `0` tokens in each cache
        and `0.5` bytes per weight; without a third argument, a weight has `2` bytes:
    """)
    batches = [1, 64, 128, 296]
    gains = [round(step_seconds(b, 0) / step_seconds(b, 0, 0.5), 2)
             for b in batches]  # @inspect gains as times
    assert gains == [4, 4, 2.31, 1], \
        "Weights in 4 bits: 4 times as fast for one sequence and for 64, 2.3 times for 128, and no faster for 296."
    assert math.isclose(gains[2], 2 * WEIGHTS / BANDWIDTH / (128 * 2 * WEIGHTS / PEAK), rel_tol=0.003), \
        "For 128 it is the time of reading in 16 bits divided by the time of the arithmetic."  # @hide
    misbelief("If the weights have a quarter of the bytes, the model is served in a quarter of the time.", rf"""
        That is so for one sequence, without its cache. With `128` sequences and $4$ bits, a step is
        compute-bound: it takes as long as the arithmetic of `128` sequences. With $16$ bits the
        step is memory-bound: reading the weights takes as long as the arithmetic of {ridge:.1f}
        sequences. So $4$ bits are only {ridge:.1f} / {batches[2]}, or {gains[2]} times as fast.
    """)
    question(r"""
        A GPU does `160` FLOPs while it reads one byte. From what batch size on is a step with
        weights of `1` byte no longer shorter than a step with weights of `2` bytes?
    """, answer=2 * 160 / 2, check=next(b for b in range(1, 999) if max(1 / 160, b * 2 / 160**2) >= 2 / 160),
        unit="sequences", hint="When does the arithmetic take as long as reading `2` bytes?",
        wrong={"From there on the step is compute-bound with 1 byte; it is still shorter than reading 2 bytes.": 80},
        why=r"""
            Up to `80` sequences, weights of `1` byte halve the step. Then the arithmetic is the
            bottleneck, and the gain shrinks. From `160` on, the step is compute-bound with `2`
            bytes as well, and both take the same time.
        """)
