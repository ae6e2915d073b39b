"""Guesses: speculative decoding at a batch, and why the output stays the model's own."""
import math
import random
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction

import torch
from hardware import find
from lecture_03.block import Transformer
from lecture_03.counts import Config, block_weights, cache_bytes
from lecture_03.published import LLAMA_3_8B, LLAMA_32_1B, SMALL
from timing import Timing, time_graph
from torch import Tensor

from litbook import aside, explore, misbelief, note, question, requires

from .llama import BANDWIDTH, PEAK, WEIGHTS, prefill_flops, step_seconds


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
    decode_steps_are_timed()


def guesses_pay_while_arithmetic_is_idle() -> None:
    """Guesses pay off only if a decode step leaves enough arithmetic units idle."""
    note(r"""
        A small *draft model* guesses the next few tokens, one at a time, and the large model
        *verifies* all guesses in one pass. This is *speculative decoding*. When does it make decode
        faster?

        As long as the pass waits for weights to be read, because then more tokens in the pass take
        hardly any more time. Once the arithmetic takes longer than the reading, each guess makes
        the pass longer, and may cost more than it gains.

        As in prefill, one pass gives a prediction after each of its tokens. So for each guess, the
        verifying pass also shows which token the large model would have given there. In this
        section, a guess that differs from it counts as wrong. The guesses before the first wrong
        one are kept, and the large model's own token follows them.

        By hand, take $2$ guesses, each right with probability $1/2$. The large model's own token
        always comes. The first guess is kept in half of the cases, and the second in a quarter, if
        both are right. So a verification gives $1 + 1/2 + 1/4 = 1.75$ tokens on average.

        Suppose that a guess takes a tenth of the time of a pass of the large model. The
        verification processes $3$ tokens for each user: the last one so far and two guesses.

        - *One user*: the pass waits for the weights, so $3$ tokens take as long as one. Guesses and
          verification take $0.1 + 0.1 + 1 = 1.2$ passes: decode is $1.75 / 1.2 = 1.46$ times as
          fast.
        - *Many users*: even with one token per user, the arithmetic takes longer than reading the
          weights. So $3$ tokens per user take $3$ times as long. That is $0.1 + 0.1 + 3 = 3.2$
          passes: decode is only $1.75 / 3.2 = 0.55$ times as fast.
    """)
    draft_weights = 1_235_746_816  # of Llama-3.2-1B  # @hide
    note(rf"""
        Now an estimate for Llama-3-8B on an H100, from the lower bounds of each pass. The draft
        model is the smallest Llama-3.2. Its matrices have `draft_weights` = {draft_weights:,}
        weights [@llama-32], a sixth of the large model's `WEIGHTS` = {WEIGHTS:,}. Sequences are
        short, so that their KV caches do not count. The draft model makes `4` guesses for each of
        the `users`. Assume that a guess is right with probability `0.8` if the guesses before it
        are right, so $k$ guesses in a row are right with probability $0.8^k$:
    """)

    def pass_seconds(weights: int, tokens: int) -> float:  # @stepover
        # Reading, 2 bytes per weight, or arithmetic, 2 FLOPs per token.
        return max(2 * weights / BANDWIDTH, 2 * weights * tokens / PEAK)

    def speedup(users: int, guesses: int, right: float) -> float:  # @stepover
        gained = sum(right**k for k in range(guesses + 1))  # 1 + right + ...
        guessing = guesses * pass_seconds(draft_weights, users)
        verifying = pass_seconds(WEIGHTS, users * (guesses + 1))
        return gained * pass_seconds(WEIGHTS, users) / (guessing + verifying)

    gains = [round(speedup(users, guesses=4, right=0.8), 2)
             for users in (1, 32, 64, 128, 256)]  # @inspect gains as times
    assert gains == [2.03, 2.03, 1.93, 1.19, 0.67], \
        "4 guesses, right 80 % of the time, make decode twice as fast for one user and for 32, and slower for 256."
    kept_of = [1 + first + first * second for first in (0, 1) for second in (0, 1)]  # 1: right  # @hide
    assert sum(kept_of) / 4 == 1.75, \
        "By hand: over the four equally likely outcomes of 2 guesses, a verification gives 1.75 tokens."  # @hide
    draft = LLAMA_32_1B.layers * block_weights(LLAMA_32_1B) + 128256 * 2048  # @hide
    assert draft == draft_weights, \
        "This is the number of weights of Llama-3.2-1B."  # @hide
    assert pass_seconds(WEIGHTS, 300) == step_seconds(300, 0), \
        "With one token per sequence, a pass is a decode step without caches."  # @hide
    accepted = (torch.rand(100_000, 4) < 0.8).cumprod(dim=1).sum(dim=1)  # off by at most 0.3 % with ten seeds  # @hide
    drawn = 1 + accepted.double().mean().item()  # @hide
    expected = sum(0.8**k for k in range(5))  # @hide
    assert math.isclose(drawn, expected, rel_tol=0.01), \
        "Drawn at random, verification gives as many tokens as the sum, to within 1 %."  # @hide
    assert 2 < gains[0] < 3, \
        "For one user, that is within the published range of 2 to 3 times."  # @hide
    bounds = bounds_of(EIGHT_LAYERS, BANDWIDTH, PEAK)  # @hide
    assert [round(1e3 * seconds, 2) for seconds in bounds] == [1.36, 2, 1.36, 9.68], \
        "For 8 layers, of which a later section times two steps on a GPU, these are lower bounds in ms."  # @hide
    assert [round(bound * BANDWIDTH / 1e9, 3) for bound in bounds[:2]] == [4.557, 6.688], \
        "The two steps read 4.56 GB and 6.69 GB."  # @hide
    late = [(20 / factor - 1e3 * step_seconds(1, 0)) / (1e3 * (step_seconds(1, 2048) - step_seconds(1, 0)))
            for factor in (1, 1.5)]  # @hide
    assert [int(batch) for batch in late] == [193, 110], \
        "If all steps take 1.5 times their bounds, 110 sequences instead of 193 meet a target of 20 ms."  # @hide
    longer = pass_seconds(WEIGHTS, 128 * 5) / pass_seconds(WEIGHTS, 128)  # @hide
    guessed = 4 * pass_seconds(draft_weights, 128) / pass_seconds(WEIGHTS, 128)  # @hide
    assert [round(x, 2) for x in (guessed, longer, expected)] == [0.66, 2.17, 3.36], \
        "With 128 users, 4 guesses take 0.66 passes and their verification 2.17, and that gives 3.36 tokens."  # @hide
    caches = [128 * cache_bytes(model, 2048) / BANDWIDTH for model in (LLAMA_3_8B, LLAMA_32_1B)]  # @hide
    with_caches = pass_seconds(WEIGHTS, 128 * 5) + caches[0] + 4 * (pass_seconds(draft_weights, 128) + caches[1])  # @hide
    long_step = step_seconds(128, 2048)  # @hide
    long_gain = expected * long_step / with_caches  # @hide
    assert 1.45 < long_gain < 1.55, \
        "With 2048 tokens in each cache of both models, 4 guesses for 128 users make decode 1.5 times as fast."  # @hide
    small, prompt = Transformer(SMALL).double(), torch.randint(100, (1, 12))  # @hide
    kept = small.caches(1)  # @hide
    with torch.no_grad():  # @hide
        one_pass = small(prompt)
        in_turn = torch.cat([small(token, kept) for token in prompt.split(1, dim=1)], dim=1)
    assert torch.equal(one_pass.argmax(dim=-1), in_turn.argmax(dim=-1)), \
        "In a small model, one pass over 12 tokens gives the same next token after each as 12 passes do."  # @hide
    note(rf"""
        For example, take `128` users. `4` guesses take {guessed:.2f} times as long as a pass of the
        large model with one token per user, and the verification of `128 * 5` tokens {longer:.2f}
        times, because reading the weights takes as long as the arithmetic for
        {PEAK / BANDWIDTH:.0f} tokens: together {guessed + longer:.2f} passes. They give
        $1 + 0.8 + \dots + 0.8^4 = {expected:.2f}$ tokens, so decode is
        ${expected:.2f} / {guessed + longer:.2f} = {gains[3]}$ times as fast.
    """)

    def speedups(batch: int, guesses: int) -> dict[str, float]:  # @hide
        return {"80 % right": speedup(batch, guesses, 0.8), "60 % right": speedup(batch, guesses, 0.6)}

    grid = explore(speedups, over={"batch": [1, 8, 16, 32, 64, 96, 128, 192, 256, 384], "guesses": [1, 2, 3, 4, 6]},
        at={"batch": 1, "guesses": 4}, kind="curve", unit="times", limit=("no gain", 1),
        do="At what batch size of the slider do `4` guesses stop paying off? And a single guess?",
        see=r"""
            With $4$ guesses it is `192` sequences if they are right with probability `0.8` (with
            `128` they still pay off), and `128` with `0.6`. A single guess, right with probability
            `0.8`, still pays off with `192`.
        """,
        caption="The factor by which guesses make decode faster, estimated from the lower bounds of the passes, against the batch size.",
        alt="Two falling curves and a line at one. Both cross the line, the lower one at a smaller batch.")  # @hide
    pays = {(n, name): [b for b, m in grid if m == n and grid[b, m][name] > 1] for _, n in grid for name in grid[1, 4]}  # @hide
    assert max(pays[4, "80 % right"]) == 128, "With 4 guesses, 80 % right, 128 sequences still gain."  # @hide
    assert max(pays[4, "60 % right"]) == 96, "With 60 % right, 96 sequences still gain."  # @hide
    assert max(pays[1, "80 % right"]) == 192, "One guess still pays off for 192 sequences."  # @hide
    misbelief("Speculative decoding always pays off.", rf"""
        It needs idle arithmetic units. In a large batch of short sequences, the tokens of other
        users keep them busy: with `256` users and `4` guesses as above, decode runs at only
        {gains[-1]} times its speed without guesses. (With long sequences, a step also waits for the
        caches. With `2048` tokens in each, decode for `128` users becomes {long_gain:.1f} times as
        fast, instead of {gains[3]} times.)
    """)
    contrary = deepcopy(small)  # its likeliest token is the large model's least likely  # @hide
    contrary.head.weight.data.neg_()  # @hide
    tokens, passes = generate_with_guesses(small, contrary, [5], 21, guesses=5)  # @hide
    question(r"""
        The draft model is always wrong. A guess takes a tenth of the time of a pass, and there is
        one user, so that verification takes as long as a pass for one token. With `5` guesses at a
        time, how many times as fast is decode as without guesses?
    """, answer=1 / (1 + 5 * 0.1),
        check=len(tokens[1:]) / (passes * (1 + 5 / 10)), unit="times", within=0.02,
        hint="How many tokens does a verification give, and how long does it take with the guesses?",
        wrong={"Verification still gives one token.": 0.0, "The guesses take time, even if they are wrong.": 1.0},
        why="Each verification gives the large model's own token, and takes `1.5` passes with its guesses. So decode becomes slower, and the output stays the same.")
    question(r"""
        At night a service has `2` users at once, by day `300`. With which of these numbers of users
        is the gain from four guesses larger, `2` or `300`, if all sequences are short?
    """, answer=max((2, 300), key=lambda users: speedup(users, 4, 0.8)),
        check=min((2, 300), key=lambda users: pass_seconds(WEIGHTS, users * 5) / pass_seconds(WEIGHTS, users)),
        unit="users", hint="When are the arithmetic units idle?",
        why="With few users a pass waits for the weights, so verifying four guesses takes barely longer than one token.")


def best_after(model: Transformer, tokens: list[int]) -> list[int]:  # @hide
    """Returns the model's likeliest next token after each of the tokens, from one pass."""
    with torch.no_grad():
        best: list[int] = model(torch.tensor([tokens]))[0].argmax(dim=-1).tolist()
    return best


def generate_with_guesses(
    large: Transformer, draft: Transformer, tokens: list[int], count: int, guesses: int = 4
) -> tuple[list[int], int]:  # @hide
    """Generates up to `count` tokens, with `guesses` guesses at a time, and returns them and the number of the large model's passes."""
    passes = 0
    while len(tokens) < count:
        guessed = list(tokens)
        for _ in range(guesses):
            guessed.append(best_after(draft, guessed)[-1])
        own, end, passes = best_after(large, guessed), len(tokens), passes + 1
        while end < len(guessed) and guessed[end] == own[end - 1]:
            end += 1
        tokens = [*guessed[:end], own[end - 1]]
    return tokens[:count], passes


def the_output_stays_the_models_own() -> None:
    """Whatever the draft model guesses, the output has the large model's distribution."""
    note(r"""
        In *speculative decoding* a small model guesses, and the large one accepts or rejects each
        guess. Does the answer become a mixture of both models?

        Usually the next token is drawn at random, with the probabilities that the model gives. So a
        guess is not simply right or wrong: it is accepted with a certain probability. By hand, with
        the tokens A and B:

        | | A | B |
        |---|---|---|
        | draft model | $0.9$ | $0.1$ |
        | large model | $0.6$ | $0.4$ |

        A is guessed with probability $0.9$, but should be output with only $0.6$. So accept a
        guessed A with probability $0.6 / 0.9 = 2/3$, and output B if it is rejected. B is guessed
        too rarely, so accept it always.

        - The output is A with probability $0.9 \cdot 2/3 = 0.6$.
        - The output is B if B is guessed, $0.1$, or if an A is rejected, $0.9 \cdot 1/3 = 0.3$.
          Together that is $0.4$.

        These are the large model's probabilities. With any number of tokens there are two rules
        [@leviathan2023]. Let $p$ be the large model's probability of a token, and $q$ the draft
        model's.

        - Accept a guess with probability $p / q$, or always if $p$ is larger than $q$.
        - After a rejection, draw one of the tokens that are guessed too rarely, in proportion to
          what each lacks, $p - q$.

        This gives the large model's distribution. A token with $q > p$ is guessed and accepted with
        probability $q \cdot p / q = p$: rejections take away $q - p$. A token with $q < p$ is
        always accepted, and $p - q$ is missing. By hand, A loses $0.3$ to rejections, and B lacks
        $0.3$. Also with more tokens, what rejections take away is in total what is missing, because
        both models' probabilities add up to $1$. Each rejection is followed by one draw, in
        proportion to the gaps, so each gap is filled exactly.

        Now in code, with more tokens. `random.choices` draws a list of one token, in proportion to
        the given numbers:
    """)
    large = [0.6, 0.3, 0.1]  # probabilities of tokens 0, 1 and 2
    draft = [0.4, 0.4, 0.2]

    def next_token() -> int:  # @stepover
        guess = random.choices(range(3), draft)[0]
        if random.random() < large[guess] / draft[guess]:
            return guess
        lacking = [max(0, p - q) for p, q in zip(large, draft)]
        return random.choices(range(3), lacking)[0]

    output = [next_token() for _ in range(20_000)]  # @unnoticed: 20_000: more tokens come nearer
    shares = [output.count(token) / 20_000 for token in range(3)]  # @inspect shares
    # Drawn with ten seeds, none was off by more than 4 %.
    drawn, expected = torch.tensor([shares, large])  # @hide
    assert torch.allclose(drawn, expected, rtol=0, atol=0.02), \
        "Each of the three tokens is output with the large model's probability, to within 0.02."
    assert all(sum(Fraction(str(x)) for x in row) == 1 for row in (large, draft)), \
        "In each row, the probabilities add up to 1."  # @hide
    apart = max(abs(p - q) for p, q in zip(large, draft))  # @hide
    assert math.isclose(apart, 0.2, rel_tol=1e-6), \
        "The draft model's probabilities differ by up to 0.2."  # @hide
    p, q = ([Fraction(str(x)) for x in row] for row in (large, draft))  # @hide
    accepted = sum(min(a, b) for a, b in zip(p, q))  # @hide
    rest = [max(Fraction(0), a - b) for a, b in zip(p, q)]  # @hide
    exact = [min(a, b) + (1 - accepted) * r / sum(rest) for a, b, r in zip(p, q, rest)]  # @hide
    assert exact == p, \
        "Computed with exact fractions, the output has the large model's probabilities."  # @hide
    worse = [Fraction(1, 10), Fraction(1, 10), Fraction(8, 10)]  # @hide
    kept = [min(a, b) for a, b in zip(p, worse)]  # @hide
    assert sum(kept) < accepted, \
        "A draft model that guesses token 2 too often has more guesses rejected."  # @hide
    models = [Transformer(SMALL).double() for _ in range(2)]  # @hide
    alone = [5]  # @hide
    while len(alone) < 21:  # @hide
        alone.append(best_after(models[0], alone)[-1])
    helped = [generate_with_guesses(models[0], guessing, [5], 21) for guessing in models]  # @hide
    assert [tokens for tokens, _ in helped] == [alone, alone], \
        "A small model that always outputs its likeliest token outputs the same 20 tokens with guesses, right or wrong."  # @hide
    assert helped[0][1] == 20 / 5 < helped[1][1], \
        "If every guess is right, 4 passes give these 20 tokens; with another draft model it takes more."  # @hide
    note(r"""
        If several tokens are guessed, the large model applies these rules to the guesses in order.
        After the first rejection it drops the remaining guesses, because they were made to follow
        the rejected one. In vLLM, `speculative_config` names the draft model and the number of
        guesses.
    """)
    misbelief("Speculative decoding trades quality for speed.", rf"""
        The draft model's probabilities in the code differ by up to {apart:.1f} from the large
        model's, but the output has the large model's probabilities. With a worse draft model of the
        same size, more guesses are rejected. Then decode is slower, but the distribution of the
        output stays the same.
    """)
    guessed = 2 * [0] + 3 * [1] + 5 * [2]  # in ten equally likely cases  # @hide
    ratios = [p / q for p, q in zip((0.5, 0.3, 0.2), (0.2, 0.3, 0.5))]  # @hide
    taken = [coin / 10 < ratios[guess] for guess in guessed for coin in range(10)]  # @hide
    question(r"""
        After some token, the large model's probabilities are `0.5`, `0.3` and `0.2`, and the draft
        model's are `0.2`, `0.3` and `0.5`. With what probability is a guess accepted?
    """, answer=min(0.5, 0.2) + min(0.3, 0.3) + min(0.2, 0.5),
        check=sum(taken) / len(taken),
        hint="How often is each token guessed, and how often is such a guess accepted?",
        why="The first two are always accepted: `0.2 + 0.3`. The third is guessed with probability `0.5` and then accepted with `0.2 / 0.5`, which adds `0.2`.")
    a_or_b = [guess if guess == "B" or coin < 2 else again  # in equally likely cases
              for guess in 9 * "A" + "B" for coin in range(3) for again in 6 * "A" + 4 * "B"]  # @hide
    question(r"""
        Someone simplifies the code: a rejected guess is replaced by a draw from the large model's
        probabilities. With A and B as above, what is the probability of A in the output then?
    """, answer=0.9 * (0.6 / 0.9) + 0.9 * (1 - 0.6 / 0.9) * 0.6, check=a_or_b.count("A") / len(a_or_b),
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
    model: Transformer, batch: int, context: int
) -> Timing:
    """Measures a decode step for `batch` sequences with `context` tokens in each cache.

    The pass runs in a CUDA graph: its kernels are recorded once and replayed, so Python does not slow them down.
    """
    new = torch.zeros(batch, 1, dtype=torch.int64, device="cuda")
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
def decode_steps_are_timed() -> None:
    """If all steps take longer than their bounds by the same factor, the batch that meets a latency target shrinks by a larger factor."""
    note(r"""
        All times in this lecture are lower bounds, and a real GPU takes longer. What does that mean
        for a service that has to meet a latency target?

        By hand: the target is $20$ ms. At the bound, reading the weights takes $4$ ms and reading
        each KV cache takes $0.1$ ms, so $(20 - 4) / 0.1 = 160$ sequences meet the target.

        Suppose that every real step takes $1.25$ times its bound. A real step of $20$ ms then has a
        bound of $20 / 1.25 = 16$ ms, so $(16 - 4) / 0.1 = 120$ sequences meet the target. This
        bound is a fifth less than $20$ ms, but the batch shrinks by a quarter, because the weights
        have to be read in any case: all of the lost time comes out of the time for the caches.

        For Llama-3-8B on an H100 with `2048` tokens in each cache, $(20 - 4.48) / 0.0801$ gives
        $193$ sequences. In a [published measurement](#prefill_is_compute_bound) of another model,
        Llama-2-7B on an A100, decode for one user took about $1.5$ times its bound [@gpt-fast].
        With this factor for every step, $(20 / 1.5 - 4.48) / 0.0801$ gives $110$: the bound shrinks
        by a third, and the batch by $43$ percent.

        The *factor*, the time of a real [step](#a_step_is_a_sum) divided by its bound, may differ
        from batch to batch. The code measures it for two steps of a `model` of `8` layers of
        Llama-3-8B and its head, with random weights. (The time hardly depends on the weights'
        values.) By the datasheet of an H100, their bounds are

        | step | lower bound, ms |
        |---|---|
        | one sequence, after `512` tokens | $4.56\,\text{GB} / 3.35\,\text{TB/s} = 1.36$ |
        | `32` sequences, after `2048` tokens | $6.69\,\text{GB} / 3.35\,\text{TB/s} = 2.00$ |

        `time_decode` runs a step in a *CUDA graph*: all operations are recorded once, and replayed
        without Python launching each of them.
    """)
    model = random_model(EIGHT_LAYERS)  # @hide
    one = time_decode(model, batch=1, context=512)  # @measure one.seconds as s
    many = time_decode(model, batch=32, context=2048)  # @measure many.seconds as s
    # The bounds of the GPU that runs this, if its datasheet is known:
    card = find(torch.cuda.get_device_name())
    if card is not None and card.bfloat16 is not None:
        bounds = bounds_of(EIGHT_LAYERS, card.bandwidth, card.bfloat16)
        factors = [one.seconds / bounds[0], many.seconds / bounds[1]]  # @measure factors as times
        assert min(factors) >= 1, \
            "Neither step is faster than its bound."
        assert factors[0] < 2.5, \
            "A step for one sequence takes less than 2.5 times its bound."
    question(r"""
        Real steps of a service take `2` times their bounds. The service was planned with the
        bounds, for a latency target of `20` ms. At the bound, reading the weights takes `4` ms, and
        each cache `0.1` ms. To what fraction must the batch shrink?
    """, answer=((20 / 2 - 4) / 0.1) / ((20 - 4) / 0.1),
        check=max(b for b in (40, 60, 61, 80) if 2 * (4 + b / 10) <= 20) / max(b for b in (80, 160, 161, 200) if 4 + b / 10 <= 20),
        hint="How large can the bound of a step be, so that the real step meets the target?",
        wrong={"That is the factor for the time. The weights need their part of the time in any case.": 1 / 2},
        why="The bound may be `20 / 2 = 10` ms. The weights need `4` ms of it, so `6` ms instead of `16` ms are left for caches.")
