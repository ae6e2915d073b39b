"""Guesses: speculative decoding at a batch, and why the output stays the model's own."""
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import torch
from hardware import find
from lecture_03.block import Transformer
from lecture_03.counts import Config, block_weights, cache_bytes
from lecture_03.published import LLAMA_3_8B, LLAMA_32_1B
from timing import Timing, time_graph
from torch import Tensor

from litbook import aside, explore, misbelief, note, question, requires

from .llama import BANDWIDTH, KV_BYTES, PEAK, WEIGHTS, prefill_flops, step_seconds


def guesses() -> None:
    """Guesses."""
    note(r"""
        Decode waits for memory, and its arithmetic units are mostly idle. Guessing lets them work:
        a small model guesses several tokens, and the large model checks all of them in one pass.
        This part is about when that pays, and about what it does to the output.
    """)
    guesses_pay_while_arithmetic_is_idle()
    the_output_stays_the_models_own()
    decode_is_timed_on_a_gpu()


def guesses_pay_while_arithmetic_is_idle() -> None:
    """Guesses pay as long as the arithmetic of a decode step is idle."""
    note(r"""
        In *speculative decoding* a small *draft model* guesses the next few tokens in turn. The
        large model checks them in one pass, which shows what it would have generated at each
        position. The guesses before the first wrong one are kept, and the large model adds one
        token of its own. Does that make a service faster?

        By hand: $2$ guesses, each right with probability $1/2$. A pass always gives the model's own
        token, in half of the cases also the first guess, and in a quarter the second as well:
        $1 + 1/2 + 1/4 = 1.75$ tokens. Say that a guess takes a tenth of a pass.

        - One user: the pass waits until the weights are read, with $3$ tokens as with one. So two
          guesses and the check take $1.2$ passes, and decode is $1.75 / 1.2 = 1.46$ times as fast.
        - A batch so large that the arithmetic decides: a check of $3$ tokens per sequence takes $3$
          passes. With the guesses it is $3.2$, and decode is $1.75 / 3.2 = 0.55$ times as fast.

        So guesses pay while arithmetic is idle, because the additional tokens of a check cost only
        arithmetic. In a large batch, other users' tokens already need it.

        Let the smallest Llama-3.2 guess for Llama-3-8B, with `512` tokens in each cache. Its
        matrices have `1_235_746_816` weights, and its cache has `32_768` bytes per token.
        `pass_seconds` is the time of a pass with so many `tokens` per sequence of a batch, at best:
    """)
    draft_weights, draft_kv = 1_235_746_816, 32_768

    def pass_seconds(batch: int, tokens: int, weights: int, kv: int) -> float:
        reading = 2 * weights / BANDWIDTH
        arithmetic = 2 * weights * batch * tokens / PEAK
        return max(reading, arithmetic) + batch * 512 * kv / BANDWIDTH

    def gain(batch: int, guesses: int, right: float) -> float:
        tokens = sum(right**k for k in range(guesses + 1))
        drafting = guesses * pass_seconds(batch, 1, draft_weights, draft_kv)
        check = pass_seconds(batch, guesses + 1, WEIGHTS, KV_BYTES)
        alone = pass_seconds(batch, 1, WEIGHTS, KV_BYTES)
        return tokens * alone / (drafting + check)

    batches = [1, 32, 64, 128, 256]
    gains = [round(gain(b, 4, 0.8), 2) for b in batches]  # @inspect gains as times
    assert gains == [2.02, 1.98, 1.87, 1.33, 0.99], \
        "With 4 guesses, right in 80 %, decode is twice as fast for one user, and no faster for 256."
    best = [max(range(12), key=lambda n: gain(b, n, 0.8)) for b in batches]  # @inspect best as guesses
    assert best == [4, 4, 3, 2, 1], \
        "The larger the batch, the fewer guesses are best."
    draft = LLAMA_32_1B.layers * block_weights(LLAMA_32_1B) + 128256 * 2048  # @hide
    assert (draft, cache_bytes(LLAMA_32_1B, 1)) == (draft_weights, draft_kv), \
        "These are the sizes of Llama-3.2-1B."  # @hide
    assert pass_seconds(300, 1, WEIGHTS, KV_BYTES) == step_seconds(300, 512), \
        "With one token per sequence, a pass is a decode step."  # @hide
    accepted = (torch.rand(100_000, 4) < 0.8).cumprod(dim=1).sum(dim=1)  # @hide
    drawn = 1 + accepted.double().mean().item()  # @hide
    # Drawn with ten seeds, it was off by at most 0.3 %.
    assert math.isclose(drawn, sum(0.8**k for k in range(5)), rel_tol=0.01), \
        "Drawn at random, a check gives as many tokens as the sum, up to 1 %."  # @hide
    assert 2 < gains[0] < 3, \
        "For one user, that is within the published range of 2 to 3 times."  # @hide
    note(r"""
        For one user the gain is as published: `2` to `3` times, for other models [@leviathan2023].
        With `256` users, `4` guesses make decode slower.
    """)

    def speedup(batch: int, guesses: int) -> dict[str, float]:  # @hide
        return {"right in 80 %": gain(batch, guesses, 0.8), "right in 60 %": gain(batch, guesses, 0.6)}

    grid = explore(speedup, over={"batch": [1, 8, 16, 32, 64, 96, 128, 192, 256, 384], "guesses": [1, 2, 3, 4, 6]},
        at={"batch": 1, "guesses": 4}, kind="curve", unit="times", limit=("no gain", 1),
        do="For each number of guesses, from what batch size on do they no longer pay?",
        see=r"""
            With `4` guesses it is `256` sequences if they are right in 80 % of the cases, and `128`
            if in 60 %. One guess at a time still pays a little there.
        """,
        caption="By what factor guesses make decode faster, against the batch, at best.",
        alt="Two falling curves and a line at one. Both cross the line, the lower one at a smaller batch.")  # @hide
    pays = {(n, name): [b for b, m in grid if m == n and grid[b, m][name] > 1] for _, n in grid for name in grid[1, 4]}  # @hide
    assert max(pays[4, "right in 80 %"]) == 192, "With 4 guesses, right in 80 %, 192 sequences still gain."  # @hide
    assert max(pays[4, "right in 60 %"]) == 96, "With 60 % right, 96 sequences still gain."  # @hide
    assert max(pays[1, "right in 80 %"]) == 384, "One guess still pays for 384 sequences."  # @hide
    misbelief("Speculative decoding always pays.", rf"""
        It costs arithmetic, which a large batch does not have to spare. With `256` sequences and
        `4` guesses, right in $80$ percent of the cases, decode takes longer than without:
        {gains[-1]} times the pace. If they are right in $60$ percent, it is {gain(256, 4, 0.6):.2f}
        times.
    """)
    question(r"""
        The draft model is always wrong. A guess takes a tenth of a pass, and there is one user, so
        that a check takes as long as a pass. With `5` guesses at a time, what factor of the old
        pace is left?
    """, answer=1 / (1 + 5 * 0.1), check=sum(0.0**k for k in range(6)) / (1 + 5 / 10), unit="times", within=0.02,
        hint="How many tokens does a check give, and how long does it take with the guesses?",
        wrong={"The check itself still gives one token.": 0.0, "The guesses take time, even if they are wrong.": 1.0},
        why="Each check gives the model's own token, and takes `1.5` passes with its guesses. The output is never worse, only slower.")
    question(r"""
        At night a service has `2` users, by day `300`. When should it guess? Answer with the number
        of users at which four guesses pay more.
    """, answer=max((2, 300), key=lambda users: gain(users, 4, 0.8)),
        check=min((2, 300), key=lambda users: pass_seconds(users, 5, WEIGHTS, KV_BYTES) / pass_seconds(users, 1, WEIGHTS, KV_BYTES)),
        unit="users", hint="When are the arithmetic units idle?",
        why="With few users the weights take the time, and checking four guesses is nearly free.")


def the_output_stays_the_models_own() -> None:
    """Whatever the draft model guesses, the output has the model's own distribution."""
    note(r"""
        A small model guesses, and the large one accepts or refuses. Does the answer become a
        mixture of both models?

        A model does not give one next token but a probability for each, and the next token is drawn
        from these. By hand, with the tokens A and B: the model says $0.6$ and $0.4$, the draft
        model $0.9$ and $0.1$. It guesses A too often. So accept the guess A only with probability
        $0.6 / 0.9$, and B always. If a guess is refused, the output is B.

        - A comes out with probability $0.9 \cdot 0.6 / 0.9 = 0.6$.
        - B comes out if guessed, $0.1$, or in place of a refused A,
          $0.9 \cdot (1 - 0.6/0.9) = 0.3$. Together $0.4$.

        That is exactly what the model says. In general, a guess is accepted with probability
        $\min(1, p/q)$, where $p$ is the model's probability and $q$ the draft's. After a refusal, a
        token is drawn in proportion to $\max(0, p - q)$ [@leviathan2023]. What the draft model
        guesses too often, here $0.3$ of A, is refused. The refusals make up exactly what it guesses
        too rarely, $0.3$ of B, because the probabilities of both models add up to one.

        In the code, `model[t]` and `draft[t]` are the probabilities of the next token after token
        `t`. `choose` draws a token with given weights:
    """)
    model = [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]
    draft = [[0.4, 0.4, 0.2], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]

    def choose(weights: Sequence[float]) -> int:  # @stepover
        return random.choices(range(3), weights)[0]

    def speculate(token: int, guesses: int) -> list[int]:  # @stepover
        guessed, last = [], token
        for _ in range(guesses):
            last = choose(draft[last])
            guessed.append(last)
        new: list[int] = []
        for guess in guessed:
            p, q = model[token], draft[token]
            if random.random() >= p[guess] / q[guess]:  # refused
                rest = [max(0, a - b) for a, b in zip(p, q)]
                return [*new, choose(rest)]
            new.append(guess)
            token = guess
        return [*new, choose(model[token])]  # all accepted

    tokens, checks = [0], 0
    while len(tokens) < 20_000:  # @unnoticed: 20_000: more tokens come nearer
        tokens += speculate(tokens[-1], guesses=3)
        checks += 1
    counts = torch.zeros(3, 3)
    for before, after in pairwise(tokens):
        counts[before, after] += 1
    frequencies = counts / counts.sum(dim=1, keepdim=True)  # @inspect frequencies
    expected = torch.tensor(model)
    # Drawn with ten seeds, none was off by more than 7.1 %.
    assert torch.allclose(frequencies, expected, rtol=0.15), \
        "What follows each token has the model's probabilities, up to 15 % of each."
    apart = (torch.tensor(draft) - expected).abs().max().item()  # @hide
    assert math.isclose(apart, 0.4, rel_tol=1e-6), \
        "The draft model's probabilities are off by up to 0.4."  # @hide
    per_check = (len(tokens) - 1) / checks  # @inspect round(per_check, 2) as tokens
    assert 2.3 < per_check < 2.6, \
        "A check gives 2.4 tokens on average."
    p, q = ([Fraction(str(x)) for x in table[0]] for table in (model, draft))  # @hide
    accepted = sum(min(a, b) for a, b in zip(p, q))  # @hide
    rest = [max(Fraction(0), a - b) for a, b in zip(p, q)]  # @hide
    exact = [min(a, b) + (1 - accepted) * r / sum(rest) for a, b, r in zip(p, q, rest)]  # @hide
    assert exact == p, \
        "Computed with exact fractions, the first token has the model's probabilities."  # @hide
    assert accepted == Fraction(4, 5), \
        "After token 0, a guess is accepted with probability 0.4 + 0.3 + 0.1 = 0.8."  # @hide
    misbelief("Speculative decoding trades quality for speed.", rf"""
        The draft model here is off by up to {apart:.1f}, and the output follows the large model all
        the same. A worse draft model has more of its guesses refused. It makes decode slower, never
        worse.
    """)
    question(r"""
        After some token, the model's probabilities are `0.5`, `0.3` and `0.2`, and the draft
        model's are `0.2`, `0.3` and `0.5`. With what probability is a guess accepted?
    """, answer=min(0.5, 0.2) + min(0.3, 0.3) + min(0.2, 0.5),
        check=0.2 * 1 + 0.3 * 1 + 0.5 * (0.2 / 0.5),
        hint="How often is each token guessed, and how often is it accepted then?",
        why="The first two are always accepted. The third is guessed in half of the cases, and accepted in two of five.")
    question(r"""
        Somebody simplifies the code: a refused guess is replaced by a draw from the model's own
        probabilities. By hand, with A and B as above, what is the probability of A in the output?
    """, answer=0.9 * (0.6 / 0.9) + 0.9 * (1 - 0.6 / 0.9) * 0.6, check=0.6 + 0.3 * 0.6,
        hint="A can be guessed and accepted, or drawn after a refusal.",
        wrong={"A comes out after refusals as well.": 0.6},
        why="A already has its `0.6` from accepted guesses. Every A after a refusal is too much: the output would be wrong.")


def random_model(config: Config) -> Transformer:  # @stepover
    """A model of these sizes on the GPU, in bfloat16, with random weights."""
    with torch.device("meta"):
        model = Transformer(config).bfloat16()
    model.to_empty(device="cuda")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.02)
    return model


def time_decode(  # @stepover
    model: Transformer, batch: int, context: int, tokens: int = 1
) -> Timing:
    """The time of a pass over `tokens` tokens of each of `batch` sequences, after `context` others, in a graph."""
    new = torch.zeros(batch, tokens, dtype=torch.int64, device="cuda")
    caches = model.caches(batch)
    for cache in caches:
        cache.memory.normal_()

    def step() -> Tensor:
        for cache in caches:
            cache.length = context
        logits: Tensor = model(new, caches)
        return logits

    with torch.no_grad():
        return time_graph(step)


def time_prefill(model: Transformer, tokens: int) -> Timing:  # @stepover
    """The time of a pass over a prompt of `tokens` tokens, in a graph."""
    prompt = torch.zeros(1, tokens, dtype=torch.int64, device="cuda")
    with torch.no_grad():
        return time_graph(lambda: model(prompt))


@aside
@requires("cuda")
def decode_is_timed_on_a_gpu() -> None:
    """On a GPU, decode, prefill and a check of guesses take up to a few times their bounds."""
    note(r"""
        All times in this lecture are bounds: no GPU is faster, and a real one is slower. How much
        slower? Where there is a GPU, the code below measures it.

        The model has `8` layers of the sizes of Llama-3-8B, with random weights; time does not
        depend on their values. For each batch and context, `share` is the bytes of a decode step,
        divided by its time and by the bandwidth in the datasheet. Expect $0.5$ to $1$ for one
        sequence, and less for large batches of long sequences, where PyTorch's attention copies
        keys and values for the heads that share them.

        Prefill of `2048` tokens should take $1$ to $4$ times the time of its FLOPs at peak. And a
        check of `4` guesses should take hardly longer than a step for one token, at most `1.5`
        times as long:
    """)
    config = replace(LLAMA_3_8B, layers=8, context=4096)
    model = random_model(config)
    matrices = 8 * block_weights(config) + 128256 * 4096
    card = find(torch.cuda.get_device_name())
    shares = {}
    for batch in (1, 8, 32):
        for context in (512, 2048):
            timed = time_decode(model, batch, context)
            caches = batch * cache_bytes(config, context)
            moved = 2 * matrices + caches
            shares[batch, context] = moved / timed.seconds
    one = time_decode(model, 1, 512)  # @measure one.seconds as s
    check = time_decode(model, 1, 512, tokens=5)  # @measure check.seconds as s
    assert check.seconds < 1.5 * one.seconds, \
        "A check of 4 guesses takes less than 1.5 times as long as a step for one token."
    prefill = time_prefill(model, 2048)  # @measure prefill.seconds as s
    assert prefill.seconds > 2 * one.seconds, \
        "Prefill of 2048 tokens takes longer than two steps."
    if card is not None:
        share = [rate / card.bandwidth for rate in shares.values()]  # @measure share as %
        assert max(share) <= 1, \
            "No step moves its bytes faster than the datasheet promises."
        assert share[0] > 0.4, \
            "For one sequence, decode uses more than 0.4 of the bandwidth."
        if card.bfloat16 is not None:
            bound = prefill_flops(2048, model=config) / card.bfloat16  # @measure bound as s
            assert 1 <= prefill.seconds / bound < 4, \
                "Prefill takes 1 to 4 times its bound."
    question(r"""
        A real decode step takes `1.5` times the time of its bound. The service was planned with the
        bound, for a promise of `20` ms. Reading the weights takes `4` ms by the bound, and a cache
        `0.1` ms. By what factor does the batch have to shrink?
    """, answer=((20 / 1.5 - 4) / 0.1) / ((20 - 4) / 0.1), check=(40 / 3 - 4) / 16, unit="times", within=0.02,
        hint="What may the bound of a step be, so that the real step keeps the promise?",
        why="The bound may be `20 / 1.5` ms. The weights need `4` ms of it, so `9.3` ms instead of `16` ms are left for caches.")
