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
        Decode is memory-bound: while it waits for memory, the GPU's arithmetic units are mostly
        idle. Speculative decoding uses these units: a small model guesses several tokens, and the
        large model verifies all of them in one pass. This part is about when that pays off, and
        about what it does to the output.
    """)
    guesses_pay_while_arithmetic_is_idle()
    the_output_stays_the_models_own()
    decode_is_timed_on_a_gpu()


def guesses_pay_while_arithmetic_is_idle() -> None:
    """Guesses pay off as long as a decode step leaves arithmetic units idle."""
    note(r"""
        In *speculative decoding* a small *draft model* guesses the next few tokens, one at a time.
        The large model *verifies* all guesses in one pass. Like a short prefill, the pass processes
        the last token and all guesses, and gives the large model's own next token at each position.
        So each guess can be compared with the token that the large model would have generated
        there. The guesses before the first wrong one are kept, and the large model's own token
        follows them. Does that make a service faster?

        By hand: $2$ guesses, each right with probability $1/2$, independently of each other. A
        verification always gives one token of the large model. In half of the cases the first guess
        is kept as well, and in $1/2 \cdot 1/2 = 1/4$ of the cases also the second:
        $1 + 1/2 + 1/4 = 1.75$ tokens. Suppose that a guess takes a tenth of the time of a pass for
        one token.

        - One user: the pass is memory-bound, so it takes as long for $3$ tokens (the last token and
          two guesses) as for one. So two guesses and their verification take
          $2 \cdot 0.1 + 1 = 1.2$ passes, and decode is $1.75 / 1.2 = 1.46$ times as fast.
        - A batch so large that decode is compute-bound: verifying $3$ tokens per sequence takes as
          long as $3$ passes. Together with the guesses, that is $2 \cdot 0.1 + 3 = 3.2$ passes, and
          decode is $1.75 / 3.2 = 0.55$ times as fast.

        So guessing pays off while arithmetic units are idle, because more tokens in a pass need
        more arithmetic, but the weights are still read once. In a large batch, the tokens of other
        users already keep these units busy.

        Take Llama-3-8B as the large model. The smallest Llama-3.2 makes the guesses, and every
        sequence has `512` tokens in its caches. `draft_weights` is the number of weights of the
        small model, and `draft_kv` the bytes of its cache per token.

        - `pass_seconds` is a lower bound of the time of a pass with `tokens` new tokens for each
          sequence of the `batch`. Only the arithmetic grows with these tokens: the weights are read
          once for all of them, and a sequence's cache is read once as well.
        - `gain` is the factor by which decode becomes faster if a guess is right with probability
          `right`. `expected` is the mean number of tokens that a verification gives, and `alone` is
          the time of a pass without guesses, which gives one token:
    """)
    draft_weights, draft_kv = 1_235_746_816, 32_768

    def pass_seconds(batch: int, tokens: int, weights: int, kv: int) -> float:
        reading = 2 * weights / BANDWIDTH
        arithmetic = 2 * weights * batch * tokens / PEAK
        return max(reading, arithmetic) + batch * 512 * kv / BANDWIDTH

    def gain(batch: int, guesses: int, right: float) -> float:
        expected = sum(right**k for k in range(guesses + 1))
        drafting = guesses * pass_seconds(batch, 1, draft_weights, draft_kv)
        verification = pass_seconds(batch, guesses + 1, WEIGHTS, KV_BYTES)
        alone = pass_seconds(batch, 1, WEIGHTS, KV_BYTES)
        return expected * alone / (drafting + verification)

    batches = [1, 32, 64, 128, 256]
    gains = [round(gain(b, 4, 0.8), 2) for b in batches]  # @inspect gains as times
    assert gains == [2.02, 1.98, 1.87, 1.33, 0.99], \
        "With 4 guesses, right 80 % of the time, decode is twice as fast for one user, and no faster for 256."
    draft = LLAMA_32_1B.layers * block_weights(LLAMA_32_1B) + 128256 * 2048  # @hide
    assert (draft, cache_bytes(LLAMA_32_1B, 1)) == (draft_weights, draft_kv), \
        "These are the sizes of Llama-3.2-1B."  # @hide
    assert pass_seconds(300, 1, WEIGHTS, KV_BYTES) == step_seconds(300, 512), \
        "With one token per sequence, a pass is a decode step."  # @hide
    accepted = (torch.rand(100_000, 4) < 0.8).cumprod(dim=1).sum(dim=1)  # off by at most 0.3 % with ten seeds  # @hide
    drawn = 1 + accepted.double().mean().item()  # @hide
    expected = sum(0.8**k for k in range(5))  # @hide
    assert math.isclose(drawn, expected, rel_tol=0.01), \
        "Drawn at random, verification gives as many tokens as the sum, to within 1 %."  # @hide
    assert 2 < gains[0] < 3, \
        "For one user, that is within the published range of 2 to 3 times."  # @hide
    drafted, passed = pass_seconds(1, 1, draft_weights, draft_kv), pass_seconds(1, 1, WEIGHTS, KV_BYTES)  # @hide
    guess = drafted / passed  # @hide
    assert round(expected / (1 + 4 * guess), 2) == gains[0], \
        "For one user, the gain is the tokens of a verification divided by the passes that it takes."  # @hide
    bounds = bounds_of(EIGHT_LAYERS, BANDWIDTH, PEAK)  # @hide
    assert [round(1e3 * seconds, 2) for seconds in bounds] == [1.36, 2, 1.36, 9.68], \
        "For 8 layers, whose passes a later section times on a GPU, these are the lower bounds in ms."  # @hide
    note(rf"""
        For one user, a pass of the draft model takes {1e3 * drafted:.3f} ms and one of the large
        model {1e3 * passed:.3f} ms, so a guess takes
        ${1e3 * drafted:.3f} / {1e3 * passed:.3f} = {guess:.4f}$ of a pass. With $4$ guesses and
        their verification that is $4 \cdot {guess:.4f} + 1 = {1 + 4 * guess:.4f}$ passes for
        $1 + 0.8 + 0.8^2 + 0.8^3 + 0.8^4 = {expected:.4f}$ tokens: {gains[0]} times as fast.
        Published gains, for other models, are `2` to `3` times [@leviathan2023].
    """)

    def speedup(batch: int, guesses: int) -> dict[str, float]:  # @hide
        return {"80 % right": gain(batch, guesses, 0.8), "60 % right": gain(batch, guesses, 0.6)}

    grid = explore(speedup, over={"batch": [1, 8, 16, 32, 64, 96, 128, 192, 256, 384], "guesses": [1, 2, 3, 4, 6]},
        at={"batch": 1, "guesses": 4}, kind="curve", unit="times", limit=("no gain", 1),
        do="At what batch size of the slider do `4` guesses stop paying off? And a single guess?",
        see=r"""
            With $4$ guesses it is `256` sequences if they are right with probability `0.8` (with
            `192` they still pay off), and `128` with `0.6`. A single guess, right with probability
            `0.8`, still pays off a little with `384`.
        """,
        caption="The factor by which guesses make decode faster, computed from the lower bounds, against the batch size.",
        alt="Two falling curves and a line at one. Both cross the line, the lower one at a smaller batch.")  # @hide
    pays = {(n, name): [b for b, m in grid if m == n and grid[b, m][name] > 1] for _, n in grid for name in grid[1, 4]}  # @hide
    assert max(pays[4, "80 % right"]) == 192, "With 4 guesses, 80 % right, 192 sequences still gain."  # @hide
    assert max(pays[4, "60 % right"]) == 96, "With 60 % right, 96 sequences still gain."  # @hide
    assert max(pays[1, "80 % right"]) == 384, "One guess still pays off for 384 sequences."  # @hide
    misbelief("Speculative decoding always pays off.", rf"""
        It needs spare arithmetic, and a large batch has none. With `256` sequences and `4` guesses
        that are right $80$ percent of the time, decode runs at only {gains[-1]} times its speed
        without guesses. If they are right $60$ percent of the time, it is {gain(256, 4, 0.6):.2f}
        times.
    """)
    question(r"""
        The draft model is always wrong. A guess takes a tenth of the time of a pass, and there is
        one user, so that verification takes as long as a pass for one token. With `5` guesses at a
        time, how many times as fast is decode as without guesses?
    """, answer=1 / (1 + 5 * 0.1), check=sum(0.0**k for k in range(6)) / (1 + 5 / 10), unit="times", within=0.02,
        hint="How many tokens does a verification give, and how long does it take with the guesses?",
        wrong={"Verification still gives one token.": 0.0, "The guesses take time, even if they are wrong.": 1.0},
        why="Each verification gives the large model's own token, and takes `1.5` passes with its guesses. So decode becomes slower, and the output stays the same.")
    question(r"""
        At night a service has `2` users at once, by day `300`. With which of these numbers of users
        is the gain from four guesses larger, `2` or `300`?
    """, answer=max((2, 300), key=lambda users: gain(users, 4, 0.8)),
        check=min((2, 300), key=lambda users: pass_seconds(users, 5, WEIGHTS, KV_BYTES) / pass_seconds(users, 1, WEIGHTS, KV_BYTES)),
        unit="users", hint="When are the arithmetic units idle?",
        why="With few users a step is memory-bound, so verifying four guesses takes barely longer.")


def the_output_stays_the_models_own() -> None:
    """Whatever the draft model guesses, the output has the large model's distribution."""
    note(r"""
        A small model guesses, and the large one accepts or rejects each guess. Does the answer
        become a mixture of both models?

        If the large model always took its most probable token, a guess would be either right or
        wrong. But usually the next token is drawn at random, with the probabilities that the model
        gives. Then a guess is accepted with a certain probability.

        By hand, with the tokens A and B: the large model gives them $0.6$ and $0.4$, the draft
        model $0.9$ and $0.1$. A is guessed in $0.9$ of the cases, but should be the output in only
        $0.6$. So accept a guessed A with probability $0.6 / 0.9 = 2/3$. B is guessed too rarely, so
        accept it always. If an A is rejected, the output is B.

        - The output is A with probability $0.9 \cdot 2/3 = 0.6$.
        - The output is B if B is guessed, $0.1$, or if an A is rejected, $0.9 \cdot 1/3 = 0.3$.
          Together that is $0.4$.

        These are exactly the large model's probabilities, because each model's probabilities add up
        to $1$. So the draft model's excess on A, $0.9 - 0.6 = 0.3$, equals its shortfall on B,
        $0.4 - 0.1 = 0.3$: the excess is rejected, and every rejected A becomes a B.

        With more tokens, let $p$ be the large model's probability of a token and $q$ the draft
        model's [@leviathan2023].

        - A guess is accepted with probability $\min(1, p/q)$. So the token is output as an accepted
          guess with probability $q \cdot \min(1, p/q) = \min(q, p)$.
        - After a rejection, a token is drawn in proportion to its shortfall, $\max(0, p - q)$. The
          probability of a rejection is the sum of all excesses, $\max(0, q - p)$, which equals the
          sum of all shortfalls. So the probability that the token is output in this way is exactly
          its shortfall.

        Together that is $\min(q, p) + \max(0, p - q) = p$.

        In the code, `model[t]` and `draft[t]` are the probabilities of the next token after token
        `t`, and `choose` draws a token with given weights. One pass of the large model verifies all
        guesses: it gives `model[t]` for the last token and for each guess. `speculate` accepts
        guesses up to the first rejection. Later guesses are dropped, because they were made to
        follow the rejected one. If all are accepted, the large model adds one more token:
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
            # Rejected. (A ratio of 1 or more never is.)
            if random.random() >= p[guess] / q[guess]:
                rest = [max(0, a - b) for a, b in zip(p, q)]
                return [*new, choose(rest)]
            new.append(guess)
            token = guess
        return [*new, choose(model[token])]  # all accepted

    tokens = [0]
    while len(tokens) < 20_000:  # @unnoticed: 20_000: more tokens come nearer
        tokens += speculate(tokens[-1], guesses=3)
    counts = torch.zeros(3, 3)
    for before, after in pairwise(tokens):
        counts[before, after] += 1
    frequencies = counts / counts.sum(dim=1, keepdim=True)  # @inspect frequencies
    expected = torch.tensor(model)
    assert [sum(Fraction(str(x)) for x in row) for row in [*model, *draft]] == [1] * 6, \
        "In each row, the probabilities add up to 1."  # @hide
    # Drawn with ten seeds, none was off by more than 7.1 %.
    assert torch.allclose(frequencies, expected, rtol=0.15), \
        "After each token, the next one has the large model's probabilities, each to within 15 %."
    apart = (torch.tensor(draft) - expected).abs().max().item()  # @hide
    assert math.isclose(apart, 0.4, rel_tol=1e-6), \
        "The draft model's probabilities differ by up to 0.4."  # @hide
    p, q = ([Fraction(str(x)) for x in table[0]] for table in (model, draft))  # @hide
    accepted = sum(min(a, b) for a, b in zip(p, q))  # @hide
    rest = [max(Fraction(0), a - b) for a, b in zip(p, q)]  # @hide
    exact = [min(a, b) + (1 - accepted) * r / sum(rest) for a, b, r in zip(p, q, rest)]  # @hide
    assert exact == p, \
        "Computed with exact fractions, the first token has the model's probabilities."  # @hide
    note("In vLLM, `speculative_config` names the draft model and the number of guesses.")
    misbelief("Speculative decoding trades quality for speed.", rf"""
        The draft model's probabilities here differ by up to {apart:.1f} from the large model's, but
        the output has the large model's probabilities. With a worse draft model more guesses are
        rejected. Then decode is slower than with a better one, but the distribution of the output
        stays the same.
    """)
    question(r"""
        After some token, the large model's probabilities are `0.5`, `0.3` and `0.2`, and the draft
        model's are `0.2`, `0.3` and `0.5`. With what probability is a guess accepted?
    """, answer=min(0.5, 0.2) + min(0.3, 0.3) + min(0.2, 0.5),
        check=0.2 * 1 + 0.3 * 1 + 0.5 * (0.2 / 0.5),
        hint="How often is each token guessed, and how often is such a guess accepted?",
        why="The first two are always accepted: `0.2 + 0.3`. The third is guessed with probability `0.5` and then accepted with `0.2 / 0.5`, which adds `0.2`.")
    question(r"""
        Someone simplifies the code: a rejected guess is replaced by a draw from the large model's
        probabilities. With A and B as above, what is the probability of A in the output then?
    """, answer=0.9 * (0.6 / 0.9) + 0.9 * (1 - 0.6 / 0.9) * 0.6, check=0.6 + 0.3 * 0.6,
        hint="A can be guessed and accepted, or drawn after a rejection.",
        wrong={"A can also be drawn after a rejection.": 0.6},
        why="Accepted guesses already give A its `0.6`. The draws of A after rejections are extra, so A is output too often.")


def random_model(config: Config) -> Transformer:  # @stepover
    """Returns a Transformer with the dimensions of `config`, on the GPU, in bfloat16, with random weights."""
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
    """Measures a pass over `batch` sequences: `tokens` new tokens each, and `context` tokens in each cache.

    The pass runs in a CUDA graph: its kernels are recorded once and replayed, so Python does not slow them down.
    """
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
    """Measures a pass over one prompt of `tokens` tokens, also in a CUDA graph."""
    prompt = torch.zeros(1, tokens, dtype=torch.int64, device="cuda")
    with torch.no_grad():
        return time_graph(lambda: model(prompt))


EIGHT_LAYERS = replace(LLAMA_3_8B, layers=8, context=4096)


def bounds_of(model: Config, bandwidth: float, peak: float) -> list[float]:
    """Returns four lower bounds in seconds: a step for 1 sequence, a step for 32, a verification of 4 guesses, a prefill of 2048."""
    head = model.vocabulary * model.width
    matrices = model.layers * block_weights(model) + head
    reading = 2 * matrices / bandwidth
    short, long = (cache_bytes(model, n) / bandwidth for n in (512, 2048))
    verification = max(reading, 5 * 2 * matrices / peak) + short
    logits = 2047 * 2 * head  # FLOPs: here of every token of the prompt
    prefill = (prefill_flops(2048, model=model) + logits) / peak
    return [reading + short, reading + 32 * long, verification, prefill]


@aside
@requires("cuda")
def decode_is_timed_on_a_gpu() -> None:
    """On a GPU, decode, verification and prefill take up to a few times their lower bounds."""
    note(r"""
        All times in this lecture are lower bounds, and a real GPU takes longer. What does that mean
        for a service?

        By hand: the latency target is $20$ ms. By the bound, reading the weights takes $4$ ms and
        each cache takes $0.1$ ms, so a [step](#a_step_is_a_sum) for $B$ sequences takes $4 + 0.1 B$
        ms. Solved for the batch, $(20 - 4) / 0.1 = 160$ sequences meet the target. Suppose that a
        real step takes $1.25$ times its bound. Then the bound must be at most $20 / 1.25 = 16$ ms,
        and $(16 - 4) / 0.1 = 120$ sequences meet the target. The bound shrinks by a fifth, but the
        batch by a quarter, because the weights have to be read in any case: all of the lost time
        comes out of the time for the caches.

        So the factor has to be measured. Take `8` layers of Llama-3-8B and its head, with random
        weights (the time does not depend on their values). `bounds_of` computes the bounds. For an
        H100 they are

        | pass | lower bound, ms | limited by |
        |---|---|---|
        | a step for one sequence, after `512` tokens | `1.36` | weights |
        | a step for `32` sequences, after `2048` tokens | `2.00` | weights and caches |
        | verification of `4` guesses, after `512` tokens | `1.36` | weights |
        | prefill of `2048` tokens, with all logits | `9.68` | arithmetic |

        If a GPU is available, the code below times the same passes. `time_decode` and
        `time_prefill` run them in a *CUDA graph*: all operations are recorded once, and replayed
        without Python launching each of them. The code checks generous limits: the first step takes
        less than `2.5` times its bound, and prefill less than `4` times. Verification should take
        barely longer than a step for one token, because both are memory-bound and read the same
        weights:
    """)
    bounds = bounds_of(EIGHT_LAYERS, BANDWIDTH, PEAK)  # of an H100
    assert [round(1e3 * s, 2) for s in bounds] == [1.36, 2.00, 1.36, 9.68], \
        "These are the bounds of the table."
    model = random_model(EIGHT_LAYERS)
    one = time_decode(model, batch=1, context=512)  # @measure one.seconds as s
    many = time_decode(model, batch=32, context=2048)  # @measure many.seconds as s
    # The last accepted token and 4 guesses run together.
    verification = time_decode(model, 1, 512, tokens=5)  # @measure verification.seconds as s
    prefill = time_prefill(model, 2048)  # @measure prefill.seconds as s
    assert verification.seconds < 1.5 * one.seconds, \
        "Verifying 4 guesses takes less than 1.5 times as long as a step for one token."
    card = find(torch.cuda.get_device_name())
    if card is not None and card.bfloat16 is not None:
        bounds = bounds_of(EIGHT_LAYERS, card.bandwidth, card.bfloat16)
        timed = [one, many, verification, prefill]
        factors = [time.seconds / bound
                   for time, bound in zip(timed, bounds)]  # @measure factors as times
        assert min(factors) >= 1, \
            "No pass is faster than its bound."
        assert factors[0] < 2.5, \
            "A step for one sequence takes less than 2.5 times its bound."
        assert factors[3] < 4, \
            "Prefill takes less than 4 times its bound."
    question(r"""
        Real steps of a service take `1.5` times their bounds. The service was planned with the
        bounds, for a latency target of `20` ms. By the bound, reading the weights takes `4` ms, and
        each cache `0.1` ms. To what fraction must the batch shrink?
    """, answer=((20 / 1.5 - 4) / 0.1) / ((20 - 4) / 0.1), check=(40 / 3 - 4) / 16, within=0.02,
        hint="How large can the bound of a step be, so that the real step meets the target?",
        wrong={"That is the factor for the time. The weights need their part of the time in any case.": 1 / 1.5},
        why="The bound may be `20 / 1.5` ms. The weights need `4` ms of it, so `9.3` ms instead of `16` ms are left for caches.")
