"""The bill: what a million tokens cost, in and out, in money and energy, and experts at a batch."""
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
        the number of tokens per hour, and all that this lecture has counted comes together here.
    """)
    a_generated_token_costs_more()
    a_batch_saves_energy()
    a_batch_reads_most_experts()


def a_generated_token_costs_more() -> None:
    """A generated token costs more than a token of the prompt."""
    note(r"""
        Providers ask several times as much for a token that the model generates as for one that it
        is given. Both run through the same weights. Why the difference?

        By hand: a GPU costs $3.60$ dollars per hour, which is $0.001$ dollars per second. If it
        gives $1000$ tokens per second, $10^6$ tokens take $1000$ s and cost $1$ dollar. Twice the
        tokens per second is half the price.

        So the price is in the pace. Tokens of a prompt are prefilled at the pace of the arithmetic,
        many in one pass. Generated tokens come one per sequence and step, and a step waits for
        weights and caches. A generated token costs more, because the limit on the time per token
        and the caches keep the batch too small to use the arithmetic.

        Take `2` dollars per hour for an H100, an assumption, and a prefill at half of the peak.
        `step_seconds` is the time of a decode step at best; its batch is
        [what a limit of $20$ ms allows](#a_latency_limit_picks_the_batch):
    """)
    per_second = 2 / HOUR  # dollars
    prefill = prefill_flops(2048) / (0.5 * PEAK)  # seconds for 2048 tokens
    given = 1e6 * prefill / 2048 * per_second  # @inspect round(given, 3) as dollars
    batches = {512: 568, 2048: 193, 8192: 48}  # by context
    generated = {c: 1e6 * step_seconds(b, c) / b * per_second
                 for c, b in batches.items()}
    prices = {context: round(price, 3) for context, price in generated.items()}  # @inspect prices as dollars
    assert round(given, 4) == 0.0163, \
        "A million tokens of prompts cost 1.6 cents."
    assert prices == {512: 0.02, 2048: 0.057, 8192: 0.23}, \
        "A million generated tokens cost 2 cents after 512 tokens, 5.7 after 2048, and 23 after 8192."
    alone = 1e6 * step_seconds(1, 2048) * per_second  # @inspect round(alone, 2) as dollars
    assert 2.5 < alone < 2.6, \
        "If one user has the GPU alone, a million tokens cost 2.53 dollars."
    limited = [max(b for b in range(1, 999) if step_seconds(b, c) <= 0.020) for c in generated]  # @hide
    assert limited == [568, 193, 48], \
        "These are the batches that 20 ms allow."  # @hide
    seconds, made = 0.0, 0  # @hide
    while made < 1_000_000:  # @hide
        seconds += step_seconds(193, 2048)
        made += 193
    assert math.isclose(seconds * per_second, generated[2048], rel_tol=0.001), \
        "Adding up the steps until a million tokens are there gives the same price."  # @hide
    caches = (step_seconds(193, 2048) - step_seconds(193, 0)) / step_seconds(193, 2048)  # @hide
    assert 0.77 < caches < 0.78, \
        "With 193 sequences of 2048 tokens, 77 % of a step goes to reading caches."  # @hide
    note(rf"""
        At the same pace for the user, a token after `8192` others costs
        {generated[8192] / generated[512]:.0f} times as much as one after `512`: the batch is
        smaller, because most of a step goes to reading caches. And a user alone pays for a GPU that
        hardly computes.
    """)

    def price(batch: int, context: int) -> dict[str, float]:  # @hide
        if batch > sequences_that_fit(context):
            raise ValueError("the caches do not fit beside the weights")
        return {"generated": 1e6 * step_seconds(batch, context) / batch * per_second, "prompt": given}

    grid = explore(price, over={"batch": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512], "context": [512, 2048, 8192]},
        at={"batch": 64, "context": 2048}, kind="curve", unit="dollars",
        do="Find the batch from which a doubling saves less than a quarter, for each context.",
        see=r"""
            With `8192` tokens it is `16`, with `2048` it is `64`. With short contexts the price
            falls until the arithmetic decides, and comes near the price of a prompt.
        """,
        caption="Dollars for `1e6` tokens of Llama-3-8B on an H100 at `2` dollars per hour, at best.",
        alt="A falling curve for generated tokens that levels off above a flat line, that of prompts.")  # @hide
    turn = {c: next(b for b, k in grid if k == c and (2 * b, c) in grid and grid[2 * b, c]["generated"] > 0.75 * grid[b, c]["generated"])
            for c in (2048, 8192)}  # @hide
    assert turn == {2048: 64, 8192: 16}, \
        "From these batches on, twice the batch saves less than a quarter."  # @hide
    misbelief("A token costs the same, whether it is given or generated.", rf"""
        Both take about the same arithmetic. But here a generated token after `2048` others costs
        {generated[2048] / given:.1f} times as much as one of the prompt, and after `8192` it is
        {generated[8192] / given:.0f} times, though prefill is counted at half of the peak and
        decode at its best.
    """)
    question(r"""
        A GPU for `3` dollars per hour generates `5000` tokens per second for all users together.
        What do $10^6$ tokens cost, in dollars?
    """, answer=3 / 3600 * (1e6 / 5000), check=3 / (5000 * HOUR / 1e6), unit="dollars",
        hint="How many seconds do $10^6$ tokens take?",
        why="$10^6$ tokens take `200` s, and a second costs `3 / 3600` dollars.")
    question(r"""
        A provider promises a faster pace: `10` ms per token in place of `20`. Reading the weights
        takes `4` ms and a cache takes `0.1` ms. By what factor does the price of a generated token
        change?
    """, answer=(10 / ((10 - 4) / 0.1)) / (20 / ((20 - 4) / 0.1)), check=(16 / 20) / (6 / 10), unit="times",
        hint="How many sequences share a step in each case?",
        wrong={"The batch shrinks by more than the step does.": 2.0, "Half the step does not mean the same price: look at the batch.": 1.0},
        why="The step of `10` ms has `60` sequences, and that of `20` ms had `160`. So a token costs `1/6` ms of the GPU instead of `1/8` ms.")


@aside
def a_batch_saves_energy() -> None:
    """A batch shares the energy of a step."""
    note(r"""
        How much energy does a token cost?

        A GPU has a power rating, in watts, joules per second. By hand: a GPU of $500$ W that
        generates $100$ tokens per second uses $500 / 100 = 5$ J per token. With $1000$ tokens per
        second it is $0.5$ J.

        Energy per token falls with the batch just as the price does, because both pay for the time
        of a step, which all sequences share. (A GPU draws less than its rating while it waits for
        memory; the rating bounds what it draws.) An H100 is rated at `700` W [@nvidia-h100]:
    """)
    watts = 700
    alone = watts * step_seconds(1, 2048)  # @inspect round(alone, 2) as J
    shared = watts * step_seconds(64, 2048) / 64  # @inspect round(shared, 3) as J
    assert [round(alone, 2), round(shared, 3)] == [3.19, 0.105], \
        "A token costs 3.19 J at most for one sequence, and 0.105 J in a batch of 64."
    prompt = watts * prefill_flops(2048) / PEAK / 2048  # @hide
    assert round(prompt, 2) == 0.01, "A token of a prompt costs 0.01 J at peak."  # @hide
    answers = 600 * shared / HOUR  # watt hours  # @inspect round(answers, 4) as Wh
    assert math.isclose(answers * HOUR, 600 * 0.105, rel_tol=0.001), \
        "An answer of 600 tokens costs 600 times 0.105 J at most: 0.0175 watt hours."
    per_hour = 64 / step_seconds(64, 2048) * HOUR  # tokens  # @hide
    assert math.isclose(watts * HOUR / per_hour, shared), \
        "The energy of an hour, divided by its tokens, is the same."  # @hide
    question(r"""
        Two requests could share a step, but run on two GPUs that each serve one user. Reading the
        weights dominates. By what factor is the energy per token higher than on one shared GPU?
    """, answer=2.0, check=(2 * 700 * 1.0) / (700 * 1.0), unit="times",
        hint="How often are the weights read for both tokens?",
        why="Both GPUs read all weights for a single token. Shared, one reading serves both tokens.")


@aside
def a_batch_reads_most_experts() -> None:
    """A batch of a mixture of experts reads most of its weights, not only the active ones."""
    note(r"""
        In a *mixture of experts* each token goes through a few of many feed-forward parts, the
        experts. So decode for one user reads only few of the weights. Is that so for a batch?

        By hand: $4$ experts, and each token picks one. One token reads $1$ of $4$. A second token
        picks another one in three of four cases, so both together read $1 + 3/4 = 1.75$ of them on
        average.

        The tokens of a batch pick different experts, and a weight is read if any of them picks its
        expert. An expert is left out only if all tokens leave it out, because each picks on its
        own. If a token picks $k$ of $E$ experts evenly, the share that a batch of $B$ reads is

        [@eq:experts_read]: $$
        1 - \left(1 - \frac{k}{E}\right)^B.
        $$

        DeepSeek-V3 has `256` experts per layer, of which a token picks `8` [@deepseek-v3]. `topk`
        picks those with the highest random scores:
    """)
    batches = [1, 8, 64, 256]

    def drawn(batch: int) -> float:  # @stepover
        picks = (torch.rand(batch, 256).topk(8).indices for _ in range(40))
        read: list[int] = [pick.unique().numel() for pick in picks]
        return sum(read) / (40 * 256)

    formula = [1 - (1 - 8 / 256) ** b for b in batches]  # @inspect formula as %
    simulated = [drawn(b) for b in batches]  # @inspect simulated as %
    # Drawn with ten seeds, none was off by more than 1 %.
    shares, expected = torch.tensor([simulated, formula])  # @hide
    assert torch.allclose(shares, expected, rtol=0.03), \
        "Drawn at random, as many experts are read as the formula says, up to 3 %."
    assert [round(share, 3) for share in formula] == [0.031, 0.224, 0.869, 1], \
        "One token reads 3 % of the experts, 64 read 87 %, and 256 nearly all."
    by_hand = [len({a, b}) for a in range(4) for b in range(4)]  # @hide
    assert sum(by_hand) / 16 == 1.75, \
        "Over all 16 pairs of picks, two tokens read 1.75 of 4 experts."  # @hide
    needed = next(b for b in range(1, 999) if 1 - (1 - 8 / 256) ** b > 0.5)  # @inspect needed as tokens
    assert needed == 22, \
        "From 22 tokens on, more than half of the experts are read."
    per_expert = 64 * 8 / 256  # @inspect per_expert as tokens
    assert per_expert == 2, \
        "With 64 tokens in the batch, an expert gets two of them on average."
    misbelief("A mixture of experts decodes as fast as a model of its active parameters.", rf"""
        For one user it does: {formula[0]:.0%} of the experts are read. A batch of `64` reads
        {formula[2]:.0%} of them, nearly the bytes of all, and uses each for few tokens.
    """)
    question(r"""
        A layer has `8` experts, and each token picks `2` of them, evenly. What share of the experts
        does a batch of `4` tokens read, in percent?
    """, answer=1 - (1 - 2 / 8) ** 4, check=1 - 3**4 / 4**4, unit="%",
        hint="With what probability does one token leave out a certain expert?",
        wrong={"Some tokens pick the same experts.": 1},
        why="A token leaves out an expert with probability `3/4`, and all four do with `81/256`.")
