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
        Whoever asks a language model a question waits twice: until the answer begins, and then for
        each further token. The two waits have different causes, so different things shorten them.
    """)
    the_first_token_waits_for_arithmetic()
    a_step_is_a_sum()
    a_latency_limit_picks_the_batch()
    low_precision_weights_help_small_batches()


def the_first_token_waits_for_arithmetic() -> None:
    """The first token waits for arithmetic, each further token waits for memory."""
    note(rf"""
        You send a prompt to a language model. For a moment nothing happens. Then the answer
        appears, token by token. Why are there two different waits?

        The model first runs over all tokens of the prompt in one pass, called *prefill*. The wait
        until its end is the *time to first token* (TTFT). Then each pass runs over a single token
        and gives the next one. This is *decode*, and one such wait is the *time per output token*
        (TPOT).

        Take a tiny model by hand: $1000$ weights of $2$ bytes. Each weight costs $2$ FLOPs per
        token, a multiplication and an addition. The GPU reads $100$ bytes per microsecond, and does
        $1000$ FLOPs in that time.

        - Prefill of $50$ tokens: reading the weights takes $2000 / 100 = 20$ µs. The arithmetic
          takes $50 \cdot 2000 / 1000 = 100$ µs.
        - One decode pass: reading takes $20$ µs again. The arithmetic takes $2000 / 1000 = 2$ µs.

        Reading and arithmetic run at the same time, so a pass takes the longer of the two: $100$ µs
        for all $50$ tokens of the prompt, then $20$ µs for each single token.

        Prefill waits for arithmetic and decode waits for memory, because a pass reads each weight
        once, however many tokens it runs over, while the arithmetic grows with the tokens.

        Now Llama-3-8B and a prompt of `2048` tokens. A pass reads `WEIGHTS` = {WEIGHTS:,} weights
        of `2` bytes. Decode also reads the *KV cache*, where the keys and values of earlier tokens
        are kept. Per token these are a key and a value, in $32$ layers, for $8$ KV heads of $128$
        elements of $2$ bytes: $2 \cdot 32 \cdot 8 \cdot 128 \cdot 2$, or `KV_BYTES` = {KV_BYTES:,}
        bytes. `prefill_flops` adds up the FLOPs of a prefill, $2$ per weight and token and those of
        attention. An H100 does `PEAK` = `989.5e12` FLOPs and reads `BANDWIDTH` = `3.35e12` bytes
        per second [@{GPU.source}]:
    """)
    prompt = 2048
    first = prefill_flops(prompt) / PEAK  # TTFT  # @inspect first as s
    read = 2 * WEIGHTS + prompt * KV_BYTES  # @inspect read as B
    following = read / BANDWIDTH  # TPOT  # @inspect following as s
    assert 6.5 < first / following < 6.6, \
        "The first token takes 6.6 times as long as the next one."
    per_token = first / prompt  # @inspect per_token as s
    assert 311 < following / per_token < 312, \
        "But a token of the prompt takes less than 1/300 of the time of a generated one."
    assert (PEAK, BANDWIDTH, MEMORY) == (GPU.bfloat16, GPU.bandwidth, GPU.reported), \
        "Both rates are those of the datasheet."  # @hide
    weights = LLAMA_3_8B.layers * block_weights(LLAMA_3_8B) + 128256 * 4096  # @hide
    assert weights == WEIGHTS, \
        "The matrices of 32 blocks and of the head have this number of weights."  # @hide
    assert parameter_count(LLAMA_3_8B) == PARAMETERS, \
        "With the embedding and the norms, there are 8,030,261,248 parameters."  # @hide
    assert cache_bytes(LLAMA_3_8B, prompt) == prompt * KV_BYTES, \
        "These are the bytes of the KV cache."  # @hide
    tiny, tokens = Transformer(SMALL, "written"), torch.zeros(1, 24).long()  # @hide
    caches = tiny.caches(1)  # @hide
    with torch.no_grad():  # @hide
        steps = [flops(partial(tiny, tokens[:, n : n + 1], caches)) for n in range(24)]
    logits = 2 * SMALL.vocabulary * SMALL.width  # @hide
    assert sum(steps[1:]) - 22 * logits == prefill_flops(23, 1, SMALL), \
        "PyTorch counts the formula's FLOPs in a small model that takes one token at a time, with one row of logits."  # @hide
    assert sum(steps[8:]) - 15 * logits == prefill_flops(16, 8, SMALL), \
        "It counts them, too, where 8 tokens are in the cache already."  # @hide
    assert prefill_seconds(prompt) == first, \
        "Later sections compute with the same time."  # @hide
    assert math.isclose(step_seconds(1, prompt), following), \
        "So they do for a token."  # @hide
    long = prefill_seconds(131072)  # @hide
    pairs = 4 * 32 * 4096 * (131072 * 131073 // 2)  # @hide
    assert round(long, 1) == 6.4, \
        "A prompt of 131,072 tokens takes 6.4 seconds."  # @hide
    assert 0.71 < pairs / PEAK / long < 0.72, \
        "Of these, attention takes 71 %, because each token looks at all tokens before it."  # @hide
    bound = CARDS["A100 SXM 80GB"].bandwidth / (2 * 6_607_077_376)  # @hide
    matrices = parameter_count(LLAMA_2_7B) - 32000 * 4096 - 65 * 4096  # @hide
    assert matrices == 6_607_077_376, \
        "The matrices of Llama-2-7B have 6,607,077,376 weights."  # @hide
    assert 1.4 < bound / 104.9 < 1.5, \
        "The measured 104.9 tokens per second are within a factor of 1.5 of the bound."  # @hide
    note(rf"""
        So the answer begins after {1e3 * first:.0f} ms, and each further token takes
        {1e3 * following:.2f} ms. These times are bounds: no pass is faster, and a real one is
        slower. In a published measurement, Llama-2-7B generated `104.9` tokens per second on an
        A100 [@gpt-fast]. Its weights divided by the bandwidth of that GPU [@nvidia-a100] give
        {bound:.0f}, which is {bound / 104.9:.1f} times the measured pace.
    """)
    question(r"""
        A provider replaces its GPU by one that does twice the same number of FLOPs per second, with
        the same bandwidth. By what factor do the TTFT and the TPOT of this model shrink, for a
        prompt of `2048` tokens? Give two numbers.
    """, answer=[2 * PEAK / PEAK, BANDWIDTH / BANDWIDTH],
        check=[first / (prefill_flops(prompt) / (2 * PEAK)),
               following / max(read / BANDWIDTH, 2 * WEIGHTS / (2 * PEAK))],
        unit="times", hint="For what does each of the two passes wait?",
        why=r"""
            Prefill waits for arithmetic, so it takes half the time. A decode pass waits until the
            weights are read, which no arithmetic unit speeds up.
        """)


def a_step_is_a_sum() -> None:
    """A decode step reads the weights once for the whole batch, and one cache per sequence."""
    note(rf"""
        One GPU serves $10$ users. Does each of them wait $10$ times as long as one user alone?

        Decode for several sequences at once is a *step*: one pass that gives each of them its next
        token. The sequences of a step are the *batch*. Say that reading the weights takes $10$ ms,
        and reading the KV cache of one sequence takes $1$ ms. By hand:

        - A step for one sequence takes $10 + 1 = 11$ ms.
        - A step for $10$ sequences takes $10 + 10 \cdot 1 = 20$ ms, and not $110$ ms.

        Each of the $10$ users waits less than twice as long for a token, and together they get $10$
        tokens instead of one. The weights are read once for all sequences, because all of them are
        multiplied by the same weights; but a sequence's keys and values are its own, and serve
        nobody else.

        With $N$ weights of $w$ bytes, $B$ sequences, and caches of $C$ bytes each,

        [@eq:decode]: $$
        \text{{step}} = \max\left(\frac{{N w}}{{\text{{bandwidth}}}},\;
        \frac{{2 N B}}{{\text{{peak}}}}\right) + \frac{{B\,C}}{{\text{{bandwidth}}}}.
        $$

        The maximum is there because the arithmetic grows with the batch, and at some batch it takes
        longer than reading the weights. Now Llama-3-8B on an H100, with `2048` tokens in each
        cache. A cache costs `KV_BYTES` = {KV_BYTES:,} bytes per token:
    """)
    weights = 2 * WEIGHTS / BANDWIDTH  # @inspect weights as s
    cache = 2048 * KV_BYTES / BANDWIDTH  # @inspect cache as s
    batches = [1, 8, 32, 64, 128, 256]
    steps = [max(weights, 2 * WEIGHTS * b / PEAK) + b * cache
             for b in batches]
    pace = [b / step for b, step in zip(batches, steps)]
    gains = [steps[3] / steps[0], pace[3] / pace[0]]  # of 64 over 1  # @inspect [round(g, 1) for g in gains] as times
    assert [round(g, 1) for g in gains] == [2.1, 30.4], \
        "With 64 sequences, each waits 2.1 times as long, and all get 30 times as many tokens."
    expected = [decoding_seconds(2 * WEIGHTS, 2 * WEIGHTS, 2048 * KV_BYTES, b, BANDWIDTH, PEAK) for b in batches]  # @hide
    assert steps == expected == [step_seconds(b, 2048) for b in batches], \
        "The calculator's formula, and the one of later sections, give the same seconds."  # @hide
    note("| sequences | ms per step | tokens/s together |\n|--:|--:|--:|\n"
         + "\n".join(f"| {b} | {1e3 * t:.1f} | {p:,.0f} |" for b, t, p in zip(batches, steps, pace)))
    tpot = [round(1e3 * step, 1) for step in steps]  # @hide
    assert tpot == [4.6, 5.1, 7, 9.6, 14.7, 25], \
        "Steps take from 4.6 ms for one sequence to 25 ms for 256."  # @hide
    assert [round(p) for p in pace] == [219, 1562, 4543, 6661, 8686, 10243], \
        "The throughput grows from 219 to 10,243 tokens per second."  # @hide
    reading_caches = 256 * cache / steps[-1]  # @hide
    assert round(reading_caches, 2) == 0.82, \
        "With 256 sequences, 82 % of a step goes to reading caches."  # @hide
    fits = sequences_that_fit(2048)  # @hide
    assert fits == 258 == (MEMORY - 2 * PARAMETERS) // (KV_BYTES << 11), \
        "258 such caches fit beside the weights."  # @hide
    turn = next(b for b in range(1, 999) if 2 * WEIGHTS * b / PEAK > weights)  # @hide
    assert turn == 296, "From 296 sequences on, the arithmetic takes longer than reading the weights."  # @hide
    misbelief("Batching makes everyone slower by the number of users.", rf"""
        With {batches[3]} sequences a step takes {steps[3] / steps[0]:.1f} times as long as with
        one, not {batches[3]} times. And in total they get {pace[3] / pace[0]:.0f} times as many
        tokens per second.
    """)
    note(rf"""
        The throughput grows more and more slowly, because the caches become the larger part of a
        step: with `256` sequences they take {reading_caches:.0%} of it. The table ends where the
        memory does: {fits} caches of `2048` tokens fit beside the weights. In serving engines such
        as vLLM, `max_num_seqs` limits the batch, and `gpu_memory_utilization` the memory that
        weights and caches may use [@vllm-args].
    """)
    question(r"""
        On another GPU, reading the weights takes `12` ms and reading the cache of one sequence
        takes `0.5` ms. A step for one sequence takes `12.5` ms. With how many sequences does each
        user wait exactly twice as long?
    """, answer=(2 * 12.5 - 12) / 0.5, check=next(b for b in range(1, 99) if 12 + b * 0.5 == 25.0),
        unit="sequences", hint="How many ms of the doubled step are left for caches?",
        wrong={"The weights are read once, not once per sequence.": 2},
        why=r"""
            A step of `25` ms leaves `13` ms for caches, and one takes `0.5` ms. So `26` users wait
            only twice as long as one user, who would have the GPU alone.
        """)
    question(r"""
        A colleague wants to make reading the *caches* cheaper by batching, as with the weights. For
        which of these does one reading serve the whole batch: `1`, the weights of the feed-forward
        part; `2`, the keys of a sequence's own tokens; `3`, the matrix of the head? Answer with the
        sum of the numbers that you choose.
    """, answer=1 + 3, check=sum(i for i, once in enumerate([True, False, True], 1) if once),
        hint="Which of them is the same for all users?",
        wrong={"No other sequence attends to these keys.": 6},
        why="Weights are shared by all sequences. The keys of a sequence are looked at by its own tokens alone.")


def a_latency_limit_picks_the_batch() -> None:
    """A promised time per token picks the batch, and with it the throughput."""
    note(r"""
        A service promises its users a pace: a time per output token (TPOT) of `20` ms at most. How
        many sequences should one GPU decode at once?

        As many as the promise allows, because every further sequence raises the throughput and the
        wait alike. By hand: reading the weights takes $10$ ms, and reading one cache takes $1$ ms.
        Under a limit of $20$ ms there is time for $(20 - 10) / 1 = 10$ caches. If the sequences are
        $4$ times as long, a cache takes $4$ ms, and the same limit allows only $2$.

        So the length of the sequences decides how many users a GPU has. For Llama-3-8B on an H100,
        `step_seconds` gives the time of a [decode step](#a_step_is_a_sum), and `sequences_that_fit`
        says for how many caches there is memory:
    """)
    limit = 0.020  # s
    contexts = [512, 2048, 8192]
    by_limit = [max(b for b in range(1, 1000)
                    if step_seconds(b, context) <= limit)
                for context in contexts]  # @inspect by_limit
    by_memory = [sequences_that_fit(context) for context in contexts]  # @inspect by_memory
    assert by_limit == [568, 193, 48], \
        "Sequences of 512, 2048 and 8192 tokens: 568, 193 and 48 are allowed."
    assert all(a < b for a, b in zip(by_limit, by_memory)), \
        "In each case the memory has room for more."
    weights, cache = 2 * WEIGHTS / BANDWIDTH, 512 * KV_BYTES / BANDWIDTH  # @hide
    solved = [int((limit - weights) / (n * cache)) for n in (4, 16)]  # @hide
    assert solved == by_limit[1:], "Solving the formula for the batch gives the same for the longer two."  # @hide
    assert int(limit / (2 * WEIGHTS / PEAK + cache)) == by_limit[0], \
        "For the short ones the arithmetic counts in place of the weights."  # @hide
    paces = [b / step_seconds(b, c) for b, c in zip(by_limit, contexts)]  # @hide
    assert [round(p, -2) for p in paces] == [28400, 9700, 2400], \
        "Together they get about 28,400, 9,700 and 2,400 tokens per second."  # @hide
    figure(plot_limit({c: [(1e3 * step_seconds(b, c), b / step_seconds(b, c))
                           for b in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if b <= sequences_that_fit(c)]
                       for c in contexts}, 1e3 * limit),
        caption=r"""
            Throughput against the time per output token, at best, while the caches fit. Each point
            has twice the batch of the one before; the dashed line is the limit of the promise.
        """,
        alt=r"""
            Three rising curves that bend to the right, the one for short sequences highest. A
            vertical dashed line cuts all three; left of it the promise is kept.
        """)

    def tpot(sequences: int, context: int) -> dict[str, float]:  # @hide
        if sequences > sequences_that_fit(context):
            raise ValueError("the caches do not fit beside the weights")
        return {"time per output token": 1e3 * step_seconds(sequences, context)}

    grid = explore(tpot, over={"sequences": [1, 2, 4, 8, 16, 32, 48, 64, 128, 192, 256, 512],
                               "context": contexts},
        at={"sequences": 64, "context": 2048}, kind="curve", unit="ms", limit=("promise", 20),
        do="For each context, find the largest batch below the line.",
        see=rf"""
            With `8192` tokens it is {by_limit[2]}, with `2048` it is just above `192`. With `512`
            tokens the line is not reached here.
        """,
        caption="The time per output token of Llama-3-8B on an H100, at best, against the batch.",
        alt="A rising curve and a horizontal line, the promise. The longer the context, the earlier they cross.")  # @hide
    assert grid[48, 8192]["time per output token"] < 20 < grid[64, 8192]["time per output token"], \
        "With 8192 tokens the curve crosses the line between 48 and 64 sequences."  # @hide
    assert grid[192, 2048]["time per output token"] < 20 < grid[256, 2048]["time per output token"], \
        "With 2048 tokens it crosses it after 192."  # @hide
    question(r"""
        The promise is relaxed from `20` ms to `40` ms. Reading the weights takes `10` ms and a
        cache takes `1` ms. By what factor may the batch grow, and by what factor does the
        throughput grow? Give two numbers.
    """, answer=[(40 - 10) / (20 - 10), (30 / 40) / (10 / 20)], check=[3.0, 1.5], unit="times",
        hint="The weights are paid once per step, in both cases.",
        why=r"""
            After the weights there are `30` ms instead of `10` for caches. But a step takes twice
            as long, so `3` times the sequences give only `1.5` times the tokens per second.
        """)
    question(r"""
        Under the limit of `20` ms, a GPU decodes `193` sequences of `2048` tokens. Somebody adds
        memory to it, so that twice as many caches fit. How many sequences may it decode then?
    """, answer=by_limit[1], check=int((20 - 1e3 * weights) / (1e3 * 4 * cache)), unit="sequences",
        hint="Was it the memory that limited the batch?",
        wrong={"There was room for more sequences before; it is the limit that binds.": 2 * 193},
        why="The limit binds, and more memory makes no step shorter. More bandwidth would.")


@aside
def low_precision_weights_help_small_batches() -> None:
    """The fewer bytes a weight has, the earlier the arithmetic decides."""
    note(r"""
        With one sequence, a decode step waits until all weights are read. So weights of $1$ byte
        instead of $2$ halve the wait. Do they help a full GPU as much?

        Reading takes the same time for any batch, and the arithmetic grows with it. Where both take
        equally long is the *critical batch*. Say that the GPU does $200$ FLOPs while it reads one
        byte. A weight of $2$ bytes gives time for $400$ FLOPs. It costs $2$ FLOPs per sequence, so
        the critical batch is $400 / 2 = 200$. A weight of $1$ byte gives time for $200$ FLOPs, and
        the critical batch is $100$.

        It falls with the bytes of a weight, because they are read sooner, and the arithmetic takes
        as long as before. (The weights are converted to `bfloat16` before they are multiplied.) On
        an H100, with $2$, $1$ and half a byte:
    """)
    ridge = PEAK / BANDWIDTH  # FLOPs per byte  # @inspect round(ridge)
    critical = [round(width * ridge / 2) for width in (2, 1, 0.5)]  # @inspect critical
    assert critical == [295, 148, 74], \
        "The critical batch is 295 sequences, then 148, then 74."
    turns = [next(b for b in range(1, 999) if step_seconds(b, 0, width) > step_seconds(1, 0, width))
             for width in (2, 1, 0.5)]  # @hide
    assert turns == [296, 148, 74], \
        "Steps without caches get longer there."  # @hide
    batches = [1, 64, 128, 296]
    gains = [round(step_seconds(b, 0) / step_seconds(b, 0, 0.5), 2)
             for b in batches]  # @inspect gains as times
    assert gains == [4, 4, 2.31, 1], \
        "Weights in 4 bits: 4 times as fast for one sequence, 2.3 times for 128, and no faster for 296."
    misbelief("If the weights have a quarter of the bytes, the model is served in a quarter of the time.", rf"""
        That is so for one sequence, without its cache. A batch of `128` is {gains[2]} times as
        fast, and one of `296` is no faster at all: there the arithmetic decides, and it stays the
        same.
    """)
    question(r"""
        A GPU does `160` FLOPs while it reads one byte. From what batch size on do weights of `1`
        byte no longer shorten the step, compared with weights of `2` bytes?
    """, answer=2 * 160 / 2, check=next(b for b in range(1, 999) if max(1 / 160, b * 2 / 160**2) >= 2 / 160),
        unit="sequences", hint="When does the arithmetic take as long as reading `2` bytes?",
        wrong={"From there on the arithmetic decides for 1 byte; it still takes less time than reading 2 bytes.": 80},
        why=r"""
            Up to `80` sequences, the byte halves the step. Then the arithmetic decides, and the
            gain shrinks. From `160` on the arithmetic decides with `2` bytes as well, and both are
            equal.
        """)
