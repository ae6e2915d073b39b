"""The bill: what a million tokens cost, in and out, and experts at a batch."""
import itertools
import math

import torch

from litbook import aside, explore, misbelief, note, question
from units import HOUR

from .llama import (
    PEAK,
    prefill_flops,
    sequences_that_fit,
    step_seconds,
)


def the_bill() -> None:
    """The bill."""
    note(r"""
        A GPU costs the same in each hour, whatever it does. So the price of a token follows from
        the number of tokens per hour. This part puts together what this lecture has counted.
    """)
    a_generated_token_costs_more()
    a_batch_reads_most_experts()


def a_generated_token_costs_more() -> None:
    """After a long context or in a small batch, a generated token costs more than one of the prompt."""
    weights = step_seconds(1, 0)  # @hide
    cache = step_seconds(1, 2048) - weights  # @hide
    note(rf"""
        Providers charge several times as much for an *output token*, which the model generates, as
        for an *input token*, which is part of the prompt. Both run through the same weights. Why
        does an output token cost more to compute?

        Because all input tokens of a prompt share one pass, but each output token of a sequence
        needs a further *decode step*. The sequences of such a step share the reading of the
        weights, but each of them reads a KV cache of its own.

        By hand, let a GPU cost $3.60$ dollars per hour, which is $0.001$ dollars per second.

        - *Input*: a pass over a prompt (*prefill*) is limited by its arithmetic, $0.02$ ms per
          token. So $10^6$ tokens take $20$ s and cost $0.02$ dollars.
        - *Output*: a step reads the weights in $10$ ms and each cache in $0.1$ ms. With $100$
          sequences, a token takes $10 / 100 = 0.1$ ms for its share of the weights and $0.1$ ms for
          its own cache. So $10^6$ tokens take $200$ s and cost $0.2$ dollars, $10$ times as much.

        A larger batch makes the share of the weights smaller, but not the time for the cache. A
        longer context makes the time for the cache longer.

        Now Llama-3-8B on an H100. Assume that the GPU costs $2$ dollars, or $200$ cents, per hour,
        that prefill reaches half of the peak FLOP/s, and that decode reaches the full bandwidth. A
        prompt of `2048` tokens needs `prefill_flops(2048)` = {prefill_flops(2048) / 1e12:.1f}e12
        FLOPs: $2$ for each token and each weight of the layers, and those of attention. In decode,
        reading the weights takes {1e3 * weights:.2f} ms (`weights`), and a cache of `2048` tokens
        {1e3 * cache:.4f} ms (`cache`). In the code, both are in seconds.

        Let [users wait no longer than](#a_latency_target_sets_the_batch) $20$ ms for each token.
        Then `193` sequences of `2048` tokens share a step:
        ${1e3 * weights:.2f} + 193 \cdot {1e3 * cache:.4f} = {1e3 * (weights + 193 * cache):.1f}$
        ms. With `8192` tokens, a cache takes {8192 // 2048} times as long to read, and only `48`
        sequences share a step. How many seconds do $10^6$ tokens of each kind take?
    """)
    prefill = prefill_flops(2048) / (0.5 * PEAK)  # s, for 2048 tokens
    input_seconds = 1e6 / 2048 * prefill  # @inspect input_seconds as s
    # Number of steps times seconds per step:
    short_seconds = 1e6 / 193 * (weights + 193 * cache)  # @inspect short_seconds as s
    long_seconds = 1e6 / 48 * (weights + 48 * 4 * cache)  # @inspect long_seconds as s
    input_price = 200 / 3600 * input_seconds  # @inspect round(input_price, 2) as cents
    short_price = 200 / 3600 * short_seconds  # @inspect round(short_price, 2) as cents
    long_price = 200 / 3600 * long_seconds  # @inspect round(long_price, 2) as cents
    prices = [round(p, 2) for p in (input_price, short_price, long_price)]  # @hide
    assert prices == [1.63, 5.74, 22.99], \
        "A million input tokens cost 1.63 cents, and a million generated tokens cost 5.74 cents after 2048 tokens and 22.99 cents after 8192."
    assert HOUR == 3600, "An hour has 3600 seconds."  # @hide
    cents_per_second = 200 / HOUR  # @hide
    assert math.isclose(weights + 193 * cache, step_seconds(193, 2048)), \
        "The step for 193 sequences is the sum of reading the weights and 193 caches."  # @hide
    assert math.isclose(weights + 48 * 4 * cache, step_seconds(48, 8192)), \
        "The step for 48 longer sequences is the sum of reading the weights and 48 caches of four times the size."  # @hide
    within = [max(b for b in range(1, 999) if step_seconds(b, c) <= 0.020) for c in (2048, 8192)]  # @hide
    assert within == [193, 48], \
        "These are the largest batches within 20 ms."  # @hide
    alone = 1e6 * step_seconds(1, 2048) * cents_per_second  # @hide
    assert 253 < alone < 254, \
        "If one user has the GPU alone, a million tokens cost 253 cents."  # @hide
    seconds, made = 0.0, 0  # @hide
    while made < 1_000_000:  # @hide
        seconds += step_seconds(193, 2048)
        made += 193
    assert math.isclose(seconds, short_seconds, rel_tol=0.001), \
        "Adding up the steps until a million tokens are generated gives the same time."  # @hide
    own_cache = short_seconds - 1e6 / 193 * step_seconds(193, 0)  # @hide
    assert (round(own_cache), round(short_seconds)) == (80, 103), \
        "After 2048 tokens, 80 of the 103 µs of an output token go to its own cache."  # @hide
    note(rf"""
        Per token, these are {input_seconds:.0f} µs for input and {short_seconds:.0f} µs for output
        after `2048` tokens: {own_cache:.0f} µs for its own cache and
        {short_seconds - own_cache:.0f} µs for its share of the weights. After `8192` tokens, its
        cache takes {8192 // 2048} times as long to read, and only about a quarter of the sequences
        share the weights, so an output token costs {long_price / short_price:.0f} times as much. A
        small batch is dear as well: if a single user with `2048` tokens had the GPU alone, $10^6$
        tokens would cost {alone:.0f} cents.
    """)

    def price(batch: int, context: int) -> dict[str, float]:  # @hide
        if batch > sequences_that_fit(context):
            raise ValueError("weights and caches do not fit in memory together")
        return {"output": 1e6 * step_seconds(batch, context) / batch * cents_per_second,
                "input": input_seconds * cents_per_second}

    grid = explore(price, over={"batch": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512], "context": [512, 2048, 8192]},
        at={"batch": 64, "context": 2048}, kind="curve", unit="cents",
        do="For each context, find the smallest batch for which doubling the batch saves less than a quarter.",
        see=r"""
            With `8192` tokens it is `16`, with `2048` it is `64`, and with `512` it is `256`. The
            shorter the sequences, the closer the price of output tokens in a large batch comes to
            that of input tokens.
        """,
        caption="Cents for `1e6` tokens of Llama-3-8B on an H100 at `2` dollars per hour: decode at its lower bound, prefill at half of the peak.",
        alt="A falling curve for output tokens that levels off above a flat line, that of input tokens.")  # @hide
    turn = {c: next(b for b, k in grid if k == c and (2 * b, c) in grid and grid[2 * b, c]["output"] > 0.75 * grid[b, c]["output"])
            for c in (512, 2048, 8192)}  # @hide
    assert turn == {512: 256, 2048: 64, 8192: 16}, \
        "From these batches on, twice the batch saves less than a quarter."  # @hide
    misbelief("A token costs the same, whether it is part of the prompt or generated.", rf"""
        Both run through the same weights. But under these assumptions an output token after `2048`
        others costs {short_price / input_price:.1f} times as much as an input token of a prompt of
        `2048`. (Here decode reaches the full bandwidth. If prefill reached the full peak as well,
        it would be {2 * short_price / input_price:.1f} times.)
    """)
    def gpu_ms(target: int) -> float:  # per token, in the largest batch within the target  # @hide
        batch = max(b for b in range(1, 999) if 4 + b / 10 <= target)
        return (4 + batch / 10) / batch

    question(r"""
        A provider lowers its latency target from `20` ms to `10` ms per token. Reading the weights
        takes `4` ms and a cache takes `0.1` ms. Divide the new cost of an output token by the old
        one. What is the ratio?
    """, answer=(10 / ((10 - 4) / 0.1)) / (20 / ((20 - 4) / 0.1)),
        check=gpu_ms(10) / gpu_ms(20), unit="times",
        hint="How many sequences share a step in each case?",
        wrong={"A step takes half the time; look at how many sequences share it.": 2.0, "Half the step does not mean the same price: look at the batch.": 1.0},
        why="A step of `10` ms leaves `6` ms for `60` caches, and a step of `20` ms left `16` ms for `160`. So a token costs `10/60 = 1/6` ms of the GPU instead of `20/160 = 1/8` ms.")


@aside
def a_batch_reads_most_experts() -> None:
    """A large batch reads most of the experts, not only those of one token."""
    note(r"""
        In a *mixture of experts* each token goes through a few of many feed-forward networks, the
        experts. So decode for one user reads only a small part of the weights. Does that also hold
        for a batch?

        By hand: $4$ experts, and each token picks one at random. One token reads $1$ of $4$. A
        second token picks a different one with probability $3/4$, so both together read
        $1 + 3/4 = 1.75$ of them on average.

        A large batch reads most experts, because an expert is read if at least one token picks it.
        It stays unread only if all tokens miss it. In the example, both tokens miss a given expert
        with probability $3/4 \cdot 3/4 = 9/16$. So it is read with probability $7/16$, and of the
        $4$ experts, $4 \cdot 7/16 = 1.75$ are read on average.

        In general, let each token pick $k$ of $E$ experts at random. One token misses a given
        expert with probability $1 - k/E$, and a batch of $B$ tokens reads, on average, this share
        of the experts:

        [@eq:experts_read]: $$
        1 - \left(1 - \frac{k}{E}\right)^B.
        $$

        DeepSeek-V3 has `256` experts per layer, and each token picks `8` of them [@deepseek-v3]. To
        check the formula, draw random picks for `40` batches of each size, and count the different
        experts in each:
    """)
    batches = [1, 8, 64, 256]  # tokens

    def drawn(batch: int) -> float:  # @stepover
        # Random scores: each token picks the 8 highest.
        picks = torch.rand(40, batch, 256).topk(8).indices
        read = [one_batch.unique().numel() for one_batch in picks]
        return float(sum(read)) / (40 * 256)

    formula = [1 - (1 - 8 / 256) ** b for b in batches]  # @inspect formula as %
    simulated = [drawn(b) for b in batches]  # @inspect simulated as %
    # Drawn with ten seeds, none was off by more than 1 %.
    shares, expected = torch.tensor([simulated, formula])  # @hide
    assert torch.allclose(shares, expected, rtol=0.03), \
        "The simulated share of experts that is read agrees with the formula to within 3 %."
    assert [round(share, 3) for share in formula] == [0.031, 0.224, 0.869, 1], \
        "One token reads 3 % of the experts, 64 read 87 %, and 256 nearly all."
    by_hand = [len({a, b}) for a in range(4) for b in range(4)]  # @hide
    assert sum(by_hand) / 16 == 1.75, \
        "Over all 16 pairs of picks, two tokens read 1.75 of 4 experts."  # @hide
    pairs = list(itertools.combinations(range(4), 2))  # @hide
    read = [len({*one, *other}) for one in pairs for other in pairs]  # @hide
    assert sum(read) / 36 == 4 * (1 - (1 - 2 / 4) ** 2), \
        "Over all 36 ways in which two tokens pick 2 of 4 experts each, they read as many as the formula says."  # @hide
    favor = torch.randn(256) / 4  # the same for all tokens  # @hide
    uneven = (torch.rand(40, 64, 256) + favor).topk(8).indices  # @hide
    fewer = sum(one_batch.unique().numel() for one_batch in uneven) / (40 * 256)  # @hide
    assert fewer < 0.5, \
        "If all tokens favor the same experts, 64 tokens read less than half of them."  # @hide
    misbelief("A mixture of experts decodes as fast as a model without experts that has only its active parameters, those that a token uses.", rf"""
        For one user it does: {formula[0]:.0%} of the experts are read. If picks are random, a batch
        of `64` reads {formula[2]:.0%} of them, almost as many bytes as if every token used all the
        experts.
    """)
    two_of_8 = list(itertools.combinations(range(8), 2))  # @hide
    by_one = torch.tensor([[expert in picked for expert in range(8)] for picked in two_of_8])  # @hide
    by_two = (by_one[:, None] | by_one).flatten(0, 1)  # for all picks of two tokens, what they read  # @hide
    by_four = by_two[:, None] | by_two  # @hide
    question(r"""
        A layer has `8` experts, and each token picks `2` of them, all with equal probability. What
        share of the experts does a batch of `4` tokens read on average, in percent?
    """, answer=1 - (1 - 2 / 8) ** 4, check=by_four.double().mean().item(), unit="%",
        hint="With what probability does one token not pick a given expert?",
        wrong={"Some tokens pick the same experts.": 1},
        why="One token does not pick a given expert with probability `3/4`. None of the four does with `(3/4)^4 = 81/256`. In all other cases the expert is read.")
