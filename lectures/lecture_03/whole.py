"""The whole model: its tables and its blocks, and a small one trained, and predicted before it is."""
import math
from functools import cache
from time import thread_time
from typing import NamedTuple

import torch
import torch.nn.functional as F
from counters import Alive, flops, saved_bytes_of
from jaxtyping import Int
from timing import one_thread, quickest
from torch import Tensor, nn
from plots import stacks

from units import MiB

from litbook import aside, figure, note, question

from .block import Transformer
from .counts import Config, activation_bytes, cache_bytes, forward_flops, parameter_count
from .figures import plot_loss
from .published import LLAMA_3_8B, LLAMA_32_1B
from .generate import step_seconds
from .regimes import BANDWIDTH, PEAK, Operation, Traffic, operations_of


def the_whole_model() -> None:
    """The whole model."""
    note(r"""
        A whole Transformer consists of its blocks and two tables: the embedding, which turns tokens
        into vectors, and the head, which turns vectors into scores for tokens. This part tests the
        formulas of this lecture on a training run. Before the run starts, four things are
        predicted: its first loss and a lower bound on its loss, its FLOPs, an upper bound on its
        memory, and its time.
    """)
    one_table_costs_flops_and_the_other_none()
    a_text_with_a_known_entropy()
    the_run_is_predicted()
    the_run()
    its_time_is_measured()
    its_memory_is_measured()
    it_writes_what_it_read()
    the_formulas_of_a_transformer()


# --- tables and blocks


@aside
def one_table_costs_flops_and_the_other_none() -> None:
    """The embedding costs no FLOPs, and the head costs two for each element of its table."""
    note(r"""
        At each of its two ends, a language model uses a table with a vector of $d$ elements for
        each token of the vocabulary. The *embedding*, at the beginning, turns a token into its row.
        The *head*, at the end, multiplies the token's $d$ elements by every row, and so gives a
        score for each token of the vocabulary. Do both tables cost the same?

        Count for one token in the smallest Llama-3.2 [@llama-32], with $d = 2048$ and a vocabulary
        of `128256` tokens. `operations_of` lists the operations that PyTorch runs, with the FLOPs
        of each. `lookup` is the operation of the embedding, and `scores` is the operation of the
        head:
    """)
    d, rows = 2048, 128256
    assert (d, rows) == (LLAMA_32_1B.width, LLAMA_32_1B.vocabulary), \
        "These are the width and the vocabulary of Llama-3.2-1B."  # @hide
    with torch.device("meta"):
        table = torch.empty(rows, d)
        token = torch.zeros(1, dtype=torch.int64)  # @unnoticed: 1, int64: a lookup of any rows costs nothing
        x = torch.empty_like(table[:1])
    lookup = operations_of(lambda: F.embedding(token, table))[0]
    scores = operations_of(lambda: x @ table.t())[-1]
    assert lookup.flops == 0, "Looking up a row costs no FLOP."  # @zero: a lookup multiplies nothing
    assert scores.flops == 2 * rows * d, \
        "The head costs two FLOPs for each element of its table."
    share = scores.flops / forward_flops(LLAMA_32_1B, 1, 0)  # @inspect share as %  # @unnoticed: 0: a token of context costs hardly anything
    assert 0.21 < share < 0.22, \
        "Without attention's scores and sums, more than a fifth of the forward FLOPs are in the head."
    note(rf"""
        So the embedding costs nothing, because a lookup multiplies nothing. The head costs
        `2 * 128256 * 2048` FLOPs, because each element of its table costs a multiplication and an
        addition. That is {share:.0%} of the forward pass of this small model, without attention's
        scores and sums.
    """)
    question(r"""
        A model has `100e6` weights in blocks, an embedding of `20e6` elements and a head of `20e6`.
        The two tables are not tied. How many FLOPs does a token cost in the forward pass, without
        attention?
    """, answer=2 * (100e6 + 20e6), check=240e6, unit="FLOP", within=0.01, wrong={
            "The embedding is looked up, and multiplies nothing.": 2 * 140e6,
            "The head is also a matmul.": 2 * 100e6,
            "A weight costs a multiplication and an addition.": 120e6,
        }, hint="By which of the three is a token multiplied?",
        why="A token is multiplied by the weights of the blocks and by the head, `120e6` in all, with `2` FLOPs each.")


# --- a run

RUN = Config(layers=2, width=128, heads=4, kv_heads=2, hidden=352, vocabulary=27, context=32)
STEPS, BATCH, RATE = 240, 4, 3e-3  # steps, sequences in each, the highest learning rate
WORDS = 32  # in the lexicon of the made-up language
TOKENS = BATCH * RUN.context  # in a step


def lexicon(count: int = WORDS) -> Int[Tensor, "word letter"]:
    """The words of the made-up language, a row for each; a word is four tokens: three letters, 1 to 26, and a space, 0."""
    draws = torch.Generator().manual_seed(3)
    chosen = torch.randperm(26**3, generator=draws)[:count]
    letters = [1 + chosen // 26**place % 26 for place in (2, 1, 0)]
    return torch.stack([*letters, torch.zeros_like(chosen)], dim=1)


def draw_sequences(
    words: Int[Tensor, "word letter"], sequences: int, draws: torch.Generator
) -> Int[Tensor, "sequences seq"]:
    """Draws random words, a row for each sequence; `sequences`: how many rows. Each row begins with a space, token 0."""
    shape = sequences, RUN.context // 4
    drawn = torch.randint(len(words), shape, generator=draws)
    body = words[drawn].flatten(1)
    return torch.cat([torch.zeros_like(body[:, :1]), body], dim=1)


def spelled(tokens: Int[Tensor, "seq"]) -> str:
    """Turns tokens into characters: the first of the vocabulary into a space, the others into the letters a to z."""
    return "".join(" abcdefghijklmnopqrstuvwxyz"[i] for i in tokens.tolist())


def a_text_with_a_known_entropy() -> None:
    """For a made-up language one can compute the lowest loss that a model can reach."""
    note(r"""
        How low can the loss of a language model get? For human language nobody knows. For a made-up
        language one can compute it. Take a language with `32` three-letter words, all equally
        likely, and a space after each word. A token is one letter or one space. `lexicon` makes the
        list of words. `draw_sequences` draws words from it at random, here for `1` sequence of `8`
        words, `32` tokens; `draws` is a random generator with a fixed seed. This is the sequence,
        without the space that it begins with:
    """)
    words: Int[Tensor, "word letter"] = lexicon()
    draws = torch.Generator().manual_seed(0)
    batch: Int[Tensor, "sequences seq"] = draw_sequences(words, 1, draws)
    line = spelled(batch[0, 1:])  # @inspect line
    assert len(line.split()) == 8, \
        "The sequence has 8 words."  # @hide
    lopsided = (math.log(2) + 3 * math.log(6)) / 4  # @hide
    assert lopsided > math.log(4), \
        "A model that prefers one of four equally likely words has a higher loss than one that prefers none."  # @hide
    assert len(line) == RUN.context == 32, \
        "The sequence has 32 letters and spaces."  # @hide
    note(rf"""
        The *surprise* of an event with probability $p$ is $-\log p$: zero if the event was certain,
        and the larger the less likely it was. The loss of a model is its mean surprise per token.

        By hand, take the words `aa`, `ab`, `ba` and `bb`, equally likely. A word has probability
        $1/4$, so its surprise is $\log 4$. Each of its two letters has probability $1/2$ and
        surprise $\log 2$. The surprises of the letters add up to that of the word,
        $\log 2 + \log 2 = \log 4$, because their probabilities multiply, $1/2 \cdot 1/2 = 1/4$, and
        the logarithm of a product is a sum.

        Now the `32` words. Even a reader who knows all of them cannot know which comes next. Each
        has probability $1/32$, so the surprise of a word is $-\log(1/32) = \log 32$. A word has `4`
        tokens, three letters and a space, so the mean surprise per token is

        $$
        \frac{{\log 32}}{{4}}.
        $$

        This is the *entropy* of the language. No model's loss is lower in the long run, because the
        words are drawn at random: nobody knows more about the next one than its probability, and a
        model that gives other probabilities has a higher loss. In the example by hand, let a model
        give `aa` a probability of $1/2$ and each of `ab`, `ba` and `bb` a probability of $1/6$. Its
        mean surprise per word is $(\log 2 + 3 \log 6)/4$, which is {lopsided:.2f}, more than
        $\log 4$, which is {math.log(4):.2f}. With natural logarithms, the unit of the entropy is
        the *nat*.

        Check that the surprises of the `4` tokens of a word add up to $\log 32$. `fits(start)` is
        the number of words that begin with the letters `start`; with no letters it is `32`. If `2`
        of the `32` words begin with `r`, this `r` has probability `2 / 32`. If one of these two
        continues with `s`, this `s` has probability `1 / 2`. `surprises` has a row for each word:
    """)
    spellings = {spelled(word) for word in words}
    assert len(spellings) == WORDS == 32, "The lexicon has 32 different words."  # @hide

    def fits(start: str) -> int:
        return sum(word.startswith(start) for word in spellings)

    surprises = [
        [-math.log(fits(w[:i + 1]) / fits(w[:i])) for i in range(4)]
        for w in sorted(spellings)
    ]
    totals = {round(sum(s), 9) for s in surprises}
    assert totals == {round(math.log(32), 9)}, \
        "For every word, the surprises of its four tokens add up to log 32."
    entropy = math.log(32) / 4  # @inspect round(entropy, 3) as nats
    assert round(entropy, 2) == 0.87, \
        "The entropy of a token is 0.87 nats."  # @hide
    note(rf"""
        So a word has a surprise of $\log 32$, and each of its `4` tokens has a quarter of that on
        average: the entropy is {entropy:.3f} nats per token.
    """)
    question(r"""
        Another lexicon has `256` three-letter words, all equally likely, each followed by a space.
        What is the lowest loss that a model can reach on sequences of them?
    """, answer=math.log(256) / 4, check=8 / 5 * entropy, unit="nats per token", within=0.02, wrong={
            "That is for a word; a word has four tokens.": math.log(256),
            "The space is a token too: divide by four.": math.log(256) / 3,
            "Take the natural logarithm, not the logarithm to base 2.": 2.0,
        }, hint="Divide the surprise of a word by its tokens.",
        why=r"A word has the surprise $\log 256$, which is `5.545`. It has `4` tokens, three letters and a space.")


def loss_of(model: Transformer, batch: Int[Tensor, "sequences seq"]) -> Tensor:
    """The model's loss on sequences, its mean surprise per token in nats; the first token of a sequence is only an input."""
    scores = model(batch[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())


def fresh_model() -> Transformer:  # @stepover
    """Builds the untrained model of the run; its random weights are the same every time."""
    model, start = Transformer(RUN, "written"), torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02, generator=start)
    return model


class Speeds(NamedTuple):
    """Speeds of this machine on one thread: FLOP/s, bytes/s, and the seconds that a call itself needs."""

    rate: float
    bandwidth: float
    call: float


@cache
def measured_speeds() -> Speeds:  # @stepover
    """Measures this machine on one thread: FLOP/s of a matmul, bytes/s of an addition in the processor's cache, seconds of a call."""
    a, many, one = torch.randn(512, 512), torch.randn(2**18), torch.zeros(1)
    rate = 2 * 512**3 / quickest(lambda: a @ a, 10)
    bandwidth = 2 * many.nbytes / quickest(lambda: many + 1)
    return Speeds(rate, bandwidth, quickest(lambda: one + 1))


@one_thread()
def operations_of_a_step() -> list[Operation]:  # @stepover
    """The operations of one training step: those of the forward pass, of the backward pass and of the optimizer."""
    model = fresh_model()
    batch = draw_sequences(lexicon(), BATCH, torch.Generator().manual_seed(2))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    operations: list[Operation] = []
    for _ in range(2):  # the first step makes the averages
        optimizer.zero_grad()
        with Traffic() as traffic:
            loss_of(model, batch).backward()
            optimizer.step()
        operations = traffic.operations
    return operations


@cache
def step_at_best() -> float:  # @stepover
    """Predicts the seconds of a training step: for each operation, the longer of the times of its FLOPs and its bytes, and the time of its call."""
    here = measured_speeds()
    return sum(
        max(op.flops / here.rate, op.moved / here.bandwidth) + here.call
        for op in operations_of_a_step()
    )


def the_run_is_predicted() -> None:
    """Loss, FLOPs, memory and time can be predicted before the first step."""
    note(rf"""
        How much about a training run can be predicted before its first step? Take a small
        Transformer that is to be trained on a [made-up language](#a_text_with_a_known_entropy) of
        `32` words, all equally likely. A word has three letters and a space, and a token is a
        letter or a space. These are the sizes:

        | model and run | |
        |---|---|
        | layers $L$, model dimension $d$ | {RUN.layers}, {RUN.width} |
        | vocabulary: `26` letters and the space | {RUN.vocabulary} tokens |
        | a sequence, $T$ | {RUN.context} tokens |
        | a batch | {BATCH} sequences, {TOKENS} tokens |
        | steps | {STEPS} |
        | parameters | {parameter_count(RUN):,} |
        | of these, in the matrices of the blocks and the output matrix: $N$ | {forward_flops(RUN, 1, 0) // 2:,} |

        (The other parameters are the `27 * 128` of the embedding and the `5 * 128` gains of the
        norms.)
    """)
    count, model = parameter_count(RUN), fresh_model()  # @hide
    assert count == 376_192 == sum(p.numel() for p in model.parameters()), \
        "The built model has the same number of parameters."  # @hide
    assert count - forward_flops(RUN, 1, 0) // 2 == 27 * 128 + 5 * 128, \
        "All parameters but N are 27 * 128 of the embedding and 5 * 128 gains."  # @hide
    note(r"""
        **Loss.** The loss is the mean of $-\log p$, where $p$ is the probability that the model
        gave to the token that actually came next. An untrained model gives each of the `27` tokens
        the probability $1/27$, so the loss begins near $\log 27$. It cannot end below the entropy
        of the language, the loss of a reader who knows all words. For this reader a word has a
        surprise of $\log 32$, because all words are equally likely, and a word has `4` tokens. So
        the loss ends above $\tfrac{1}{4} \log 32$ per token.
    """)
    start, floor = math.log(27), math.log(32) / 4  # @inspect round(start, 2) as nats, round(floor, 2) as nats
    assert (RUN.vocabulary, WORDS) == (27, 32), \
        "The run has 27 tokens and 32 words."  # @hide
    assert round(floor, 2) == 0.87, \
        "The lowest loss is the entropy of the language, 0.87 nats per token."  # @hide
    held_out = draw_sequences(lexicon(), 64, torch.Generator().manual_seed(9))  # @hide
    with torch.no_grad():  # @hide
        untrained = loss_of(model, held_out).item()
    assert math.isclose(untrained, start, rel_tol=0.05), \
        "The untrained model's loss is within 5 % of log 27."  # @hide
    note(r"""
        **FLOPs.** Training on a token
        [costs $6N + 12\,L\,d\,T$ FLOPs](#training_costs_six_per_weight_and_twelve_per_pair): six
        for each of $N$ weights, and $12\,d\,T$ in each of $L$ layers for attention. There are `240`
        steps of `128` tokens:
    """)
    weights = forward_flops(RUN, 1, 0) // 2  # @hide
    assert weights == 372_096, \
        "The matrices of the blocks and the output matrix have 372,096 weights."  # @hide
    per_token = 6 * 372_096 + 12 * 2 * 128 * 32  # @inspect per_token as FLOP
    total = 240 * 128 * per_token  # @inspect round(total / 1e9, 1) as GFLOP
    assert STEPS * TOKENS == 240 * 128, \
        "The run has 240 steps of 128 tokens."  # @hide
    batch = held_out[:BATCH].clone()  # @hide
    counted = flops(lambda: loss_of(model, batch).backward())  # @hide
    assert counted == TOKENS * per_token == 3 * forward_flops(RUN, TOKENS, RUN.context), \
        "PyTorch counts the same FLOPs for a step."  # @hide
    rule = 6 * count * TOKENS * STEPS / total  # @hide
    assert 0.95 < rule < 0.97, \
        "Six FLOPs for each parameter and token would be a little less."  # @hide
    note(r"""
        **Memory.** Each parameter needs `4` bytes, and so do its gradient and each of its two
        averages in the optimizer: `4 * 4` bytes per parameter. The activations of one batch also
        need memory: `fresh_model` builds the model, and `saved_bytes_of` adds up its activations.
        The sum is an upper bound, because the backward pass frees activations while it makes
        gradients:
    """)
    state = 4 * 4 * 376_192  # @inspect round(state / 1e6, 1) as MB
    in_model = sum(p.nbytes for p in model.parameters())  # @hide
    assert state == 4 * in_model, \
        "Parameters, gradients and two averages are four times the model."  # @hide
    model = fresh_model()
    batch = draw_sequences(lexicon(), BATCH, torch.Generator())
    kept = saved_bytes_of(lambda: loss_of(model, batch), model.parameters())  # @inspect round(kept / 1e6, 1) as MB
    part, given = held_out[:BATCH], [*model.parameters()]  # @hide
    view = saved_bytes_of(lambda: loss_of(model, part), given)  # @hide
    assert view - kept == held_out.nbytes - batch.nbytes, \
        "A batch that is a view of more sequences would keep all of them."  # @hide
    bound = state + kept  # @inspect round(bound / 1e6, 1) as MB
    assert state < bound < 2 * state, \
        "More than half of the bound is for parameters, gradients and averages."  # @hide
    note(r"""
        **Time.** The processor runs the operations one after another. An operation takes the time
        to compute its FLOPs or the time to move its bytes, whichever is longer, and a little more
        for the call itself. If its FLOPs take $40$ µs to compute, its bytes $10$ µs to move, and
        the call takes $2$ µs, the operation takes $\max(40, 10) + 2 = 42$ µs. `step_at_best` adds
        this up over all operations of a step, with speeds measured on this machine:
    """)
    calls = len(operations_of_a_step())  # @hide
    here = measured_speeds()  # @hide
    seconds = 240 * step_at_best()  # @measure seconds as s
    alone = total / here.rate  # of its FLOPs, at the rate of a large matmul  # @hide
    most = 16 * alone  # @hide
    assert alone < seconds < most, \
        "The predicted time is more than that of the FLOPs alone, and less than 16 times as long."  # @hide
    note(rf"""
        So these are the predictions: the loss falls from {start:.2f} towards {floor:.2f} nats per
        token; the run costs {total / 1e9:.1f} GFLOP and needs no more than {bound / 1e6:.1f} MB;
        and it takes the time in the margin, which depends on the machine. The
        [next section](#the_run) compares the predicted losses with those of the run.
    """)
    question(rf"""
        Now let each sequence have $T = 128$ tokens instead of $T = 32$, and let a batch have only
        one sequence, so that a step has {TOKENS} tokens as before. How many FLOPs does the run cost
        in all? (With $T = 32$ it costs {total / 1e9:.1f} GFLOP.)
    """, answer=240 * 128 * (6 * 372_096 + 12 * 2 * 128 * 128),
        check=STEPS * 3 * forward_flops(RUN, TOKENS, 4 * RUN.context), unit="FLOP", within=0.02,
        wrong={
            "Only attention's part grows with the length, not the matrices' part.": 4 * total,
            "Attention costs more: each token attends to four times as many tokens.": total,
        }, hint="Which of the two terms has $T$ in it?",
        why=rf"""
            Only the term $12LdT$ grows, in proportion to $T$. A token costs
            $6 \cdot 372096 + 12 \cdot 2 \cdot 128 \cdot 128$ FLOPs, and there are
            {STEPS * TOKENS:,} tokens in all.
        """)


class Run(NamedTuple):
    """What a training run produced: its model, and for every step its loss and its seconds."""

    model: Transformer
    losses: list[float]
    seconds: list[float]


def rate_at(step: int) -> float:
    """The learning rate of a step: rises over ten steps, stays constant, and falls to zero over the last two fifths."""
    return RATE * min((step + 1) / 10, 1, (STEPS - step) / (0.4 * STEPS))


@cache
@one_thread()
def trained() -> Run:  # @stepover
    """Trains the model, once; returns it with the loss and the seconds of each step."""
    model, words = fresh_model(), lexicon()
    data = torch.Generator().manual_seed(2)
    parameters = model.parameters()
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.95), fused=True)
    losses, seconds = [], []
    for step in range(STEPS):
        batch = draw_sequences(words, BATCH, data)
        started = thread_time()
        optimizer.param_groups[0]["lr"] = rate_at(step)
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(thread_time() - started)
    return Run(model, losses, seconds)


def the_run() -> None:
    """The loss falls from the logarithm of the vocabulary size to the entropy of the language."""
    note(r"""
        A small Transformer is trained on a [made-up language](#a_text_with_a_known_entropy) of `32`
        words, all equally likely. A word has three letters and a space, and a token is one of the
        `26` letters or the space. Two losses were [predicted](#the_run_is_predicted), in nats:

        - At the beginning, the model gives each of the `27` tokens the same probability, $1/27$. So
          the loss is $-\log(1/27) = \log 27$.
        - At the end, the loss is above the *entropy* of the language, the loss of a reader who
          knows all words. For this reader each word has a surprise of $\log 32$ nats, and a word
          has `4` tokens: $\tfrac{1}{4} \log 32$ per token.

        `trained` runs `240` steps on the processor that built this page and returns the loss of
        each; `first` is the loss of the first step. `held_out_loss` is the loss of the trained
        model on `held_out`, sequences that it never saw:
    """)
    run = trained()
    first = run.losses[0]  # @measure round(first, 2) as nats
    start, entropy = math.log(27), math.log(32) / 4  # @inspect round(start, 2) as nats, round(entropy, 2) as nats
    last = sum(run.losses[-20:]) / 20  # @hide
    held_out = draw_sequences(lexicon(), 64, torch.Generator().manual_seed(9))
    with torch.no_grad():
        held_out_loss = loss_of(run.model, held_out).item()  # @measure round(held_out_loss, 2) as nats
    assert (RUN.vocabulary, WORDS, STEPS, len(run.losses)) == (27, 32, 240, 240), \
        "The run has 27 tokens, 32 words and 240 steps."  # @hide
    assert math.isclose(first, start, rel_tol=0.05), \
        "The loss of the first step is within 5 % of log 27."
    # Ten runs with other seeds end at 1.014 to 1.018 times the entropy.
    assert entropy < held_out_loss < 1.05 * entropy, \
        "After training, the loss on new sequences is above the entropy, by less than 5 %."
    assert last < 1.1 * entropy, \
        "The mean loss of the last twenty steps is also near the entropy."  # @hide
    figure(plot_loss(run.losses, start, entropy), caption=r"""
        Loss of each step. The dashed lines are the predictions: above, the logarithm of the
        vocabulary size; below, the entropy of the language.
    """, alt=r"""
        A curve that starts at the upper dashed line, falls steeply at first, and comes down close
        to the lower one.
    """)
    note(rf"""
        Both predictions hold. The loss begins near $\log 27$, because the untrained model knows
        nothing. On new sequences it ends at {held_out_loss / entropy:.2f} times the entropy. It
        cannot end below the entropy, because nobody can know which word comes next. It ends a
        little above, because the model has not learned the language perfectly.
    """)
    question(r"""
        Another made-up language has `64` two-letter words, all equally likely, each followed by a
        space. Its letters are the first `10` of the alphabet. A model is trained on it and learns
        it perfectly. At what loss does it begin, and at what loss does it end? Write both numbers
        with a comma between them, in nats per token.
    """, answer=[math.log(11), math.log(64) / 3], check=[-math.log(1 / 11), 2 * math.log(2)], within=0.02,
        hint="How many different tokens are there, and how many tokens does a word have?",
        why=r"The space is also a token. So there are `11` tokens, and an untrained model begins near $\log 11$. A word has `3` tokens and a surprise of $\log 64$, so the loss ends at $\tfrac{1}{3} \log 64$.")


@aside
def its_time_is_measured() -> None:
    """The quickest step takes the predicted time, up to a small factor."""
    note(r"""
        How long does a step of a training run take? One can [predict it](#the_run_is_predicted)
        from the operations of the step: forward, backward and the optimizer's. A processor runs
        them one after another. Each takes the time to compute its FLOPs or the time to move its
        bytes, whichever is longer, and a little more for the call itself.

        `step_at_best` adds these times up for a step of a small Transformer. It uses three speeds
        measured on this machine: the FLOP/s of a large matmul, the bytes per second of an addition
        whose tensors stay in the processor's cache, and the time of one call of PyTorch. `trained`
        measured each step. Compare the quickest step, the one that other programs disturbed least:
    """)
    run = trained()
    quickest_step = min(run.seconds)  # @measure quickest_step as s
    predicted = step_at_best()  # @measure predicted as s
    off = quickest_step / predicted  # @measure round(off, 1) as times
    least, most = 1 / 4, 4
    assert least < off < most, \
        "The quickest step took 1/4 to 4 times the predicted time."
    work = STEPS * 3 * forward_flops(RUN, TOKENS, RUN.context)  # @hide
    one_step = sum(op.flops for op in operations_of_a_step())  # @hide
    assert work == STEPS * one_step, \
        "The operations of a step add up to the FLOPs that were predicted."  # @hide
    spent = sum(run.seconds)  # @hide
    assert STEPS * quickest_step < spent, \
        "The run took longer than its steps times the quickest."  # @hide
    rate = measured_speeds().rate  # @hide
    least = 1 / 16  # @hide
    assert least < one_step / rate / quickest_step <= 1, \
        "The quickest step reaches 1/16 to all of the rate of a large matmul; that is no MFU, which is divided by a peak."  # @hide
    note(rf"""
        The quickest step took {off:.1f} times the predicted time. Nothing in the prediction was
        measured on the run itself.
    """)
    two = [Operation("mm", 4_000_000, 100_000, 0), Operation("add", 1_000_000, 800_000, 0)]  # @hide
    question(r"""
        A step has two operations. The first does `4e6` FLOPs and moves `0.1e6` bytes, the second
        does `1e6` FLOPs and moves `0.8e6` bytes. The processor does `100e9` FLOPs a second and
        moves `10e9` bytes a second, and a call takes `2e-6` seconds. How many µs does the step take
        by this prediction?
    """, answer=(4e6 / 100e9 + 2e-6 + 0.8e6 / 10e9 + 2e-6) * 1e6,
        check=sum(max(op.flops / 1e5, op.moved / 1e4) + 2 for op in two), unit="µs", within=0.01, wrong={
            "Of the times of FLOPs and bytes, take only the longer one.": 40 + 10 + 10 + 80 + 4,
            "Each of the two calls also takes time.": 120,
        }, hint="How long do the FLOPs of the first take, and how long its bytes?",
        why="The first takes `40` µs for its FLOPs and only `10` for its bytes. The second takes `10` µs for its FLOPs and `80` for its bytes. Each call takes `2` µs more.")


@one_thread()
def most_alive(  # @stepover
    model: Transformer, batch: Int[Tensor, "sequences seq"]
) -> tuple[int, int]:
    """Runs a training step; returns the peak of the bytes of its results, and the bytes of AdamW's two averages."""
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    watch = Alive()
    for _ in range(2):  # the first step makes the averages
        optimizer.zero_grad()
        watch = Alive()
        with watch:
            loss_of(model, batch).backward()
            optimizer.step()
    states = [t for state in optimizer.state.values() for t in state.values()]
    return watch.most, sum(t.nbytes for t in states if t.dim() > 0)


@aside
def its_memory_is_measured() -> None:
    """In a training step, gradients and activations are never all in memory at once."""
    note(r"""
        How much memory does a training step need at its peak? It holds four kinds of data: the
        parameters; two averages that the optimizer AdamW keeps for each parameter; the
        *activations*, which the forward pass leaves for the backward pass; and the gradients. But
        these are not all in memory at the same time:

        | moment | parameters, averages | activations | gradients |
        |---|---|---|---|
        | before the forward pass | all | none | none |
        | after the forward pass | all | all | none |
        | in the middle of the backward pass | all | some | some |
        | after the backward pass | all | none | all |

        The backward pass computes the gradients one after another, and frees the activations that
        are no longer needed. Take two layers, each with activations of `1` MB and a gradient of `1`
        MB. After the forward pass there are `2` MB of activations. The backward pass computes the
        last layer's gradient, which makes `2 + 1` MB, and only then frees this layer's activations.
        So the peak is `3` MB, and never `4`.

        Measure it for a small Transformer in `float32`. `fresh_model` builds it, and `loss_of` is
        its loss on a batch of sequences. `saved_bytes_of` adds up all activations of the forward
        pass. `most_alive` runs a step. It returns `alive`, the most bytes that activations and
        gradients need together at any moment, and the bytes of AdamW's averages:
    """)
    model = fresh_model()
    batch = draw_sequences(lexicon(), BATCH, torch.Generator().manual_seed(2))
    parameters = [*model.parameters()]
    weights = sum(p.nbytes for p in parameters)  # @inspect round(weights / 1e6, 1) as MB
    activations = saved_bytes_of(lambda: loss_of(model, batch), parameters)  # @inspect round(activations / 1e6, 1) as MB
    alive, averages = most_alive(model, batch)  # @measure round(alive / 1e6, 1) as MB
    assert weights == 4 * parameter_count(RUN), \
        "Each parameter needs four bytes."  # @hide
    assert averages == 2 * weights, \
        "AdamW's averages need twice as many bytes as the parameters."
    gradients = weights  # one for each parameter, of 4 bytes, too
    assert activations < alive < activations + gradients, \
        "At the peak there is less in memory than all activations and all gradients."  # @hide
    peak = weights + averages + alive  # @measure round(peak / 1e6, 1) as MB
    bound = weights + averages + activations + gradients  # @inspect round(bound / 1e6, 1) as MB
    below = 1 - peak / bound  # @measure below as %
    assert round(below, 1) == 0.1, \
        "At its peak, the step needs about a tenth less than the sum of the four."
    note("So at its peak the step needs about a tenth less than the sum, because some activations are freed before the last gradients are computed.")
    always = {"parameters": weights / MiB, "averages": averages / MiB}  # @hide
    figure(stacks({
        "sum of the four": {**always, "gradients": gradients / MiB, "activations": activations / MiB},
        "at the peak": {**always, "gradients and activations": alive / MiB},
    }, "MiB"), caption=r"""
        The four kinds of memory of a training step of this model added up, and what is in memory
        together at the peak.
    """, alt=r"""
        Two stacked bars. Parameters and averages are the same in both. Gradients and activations
        together are shorter at the peak than in the sum.
    """)
    question(r"""
        Another model has parameters of `2` MB and is trained with AdamW, with two averages for each
        parameter, all in `float32`. Its activations are `4` MB. Gradients and activations together
        need no more than `5` MB at any moment. How many MB does a training step need at its peak?
    """, answer=2 + 2 * 2 + 5, check=2 + 2 + 2 * 2 + 4 - (2 + 4 - 5), unit="MB", within=0.01, wrong={
            "That is the sum of all four; gradients and activations are never all in memory at once.": 2 + 2 + 2 * 2 + 4,
            "AdamW keeps two averages for each parameter.": 2 + 2 + 5,
            "AdamW's averages are also in memory.": 2 + 5,
        }, hint="What is in memory during the whole step?",
        why="Parameters and AdamW's two averages are in memory all the time, `2 + 4` MB. At the peak, gradients and activations need `5` MB more, and not `2 + 4`.")


@aside
def it_writes_what_it_read() -> None:
    """The trained model generates words of the language, and few other strings."""
    note(rf"""
        A small Transformer was [trained](#the_run) on sequences of a made-up language. Can it now
        generate this language? The language has {WORDS} three-letter words, which `lexicon` lists,
        and a space after each word. A token is a letter or a space.

        In each step the model gives each of the `27` tokens a probability. `multinomial` samples
        one token from these `probabilities`, and this token is the input of the next step. The
        newest token is enough, because `caches` keep the keys and values of earlier tokens.

        The model generates `64` sequences of {RUN.context} tokens. Each begins after a space, token
        `0`, and has {RUN.context // 4} words of `4` tokens. `right` is the share of generated words
        that are in the lexicon:
    """)
    model, draws = trained().model, torch.Generator().manual_seed(4)
    caches, token = model.caches(64), torch.zeros(64, 1, dtype=torch.int64)
    sampled = []
    with torch.no_grad(), one_thread():
        for _ in range(RUN.context):
            probabilities = model(token, caches)[:, -1].softmax(dim=-1)
            token = torch.multinomial(probabilities, 1, generator=draws)
            sampled.append(token)
    generated: Int[Tensor, "sequences seq"] = torch.cat(sampled, dim=1)
    line = spelled(generated[0])  # @measure line
    assert len(line) == RUN.context, \
        "A sequence has a letter or space for each token of the context."  # @hide
    known = {spelled(word) for word in lexicon()}
    words = [spelled(word) for word in generated.reshape(-1, 4)]
    right = sum(word in known for word in words) / len(words)  # @measure right as %
    chance = len(known) / 27**4  # @inspect chance as %
    assert 6.0e-5 < chance < 6.1e-5, \
        "Of all strings of four tokens, 0.006 % are a word and its space."
    # Ten runs with other seeds: 0.926 to 0.961.
    assert 0.9 < right < 0.98, \
        "More than nine in ten of the generated words are in the lexicon."
    missing = sum(word not in words for word in known)  # @measure missing as words
    assert missing == 0, "Each word of the lexicon is generated at least once."  # @zero: none is missing
    note(rf"""
        More than nine in ten of the generated words are words of the language. If each token were
        drawn at random, {chance:.3%} would be: there are `27**4` strings of `4` tokens, and `32` of
        them are a word and its space. So the model has learned the words themselves, although it
        was only trained to give the next token a high probability.
    """)
    question(r"""
        Another model has learned only that every fourth token is a space, and that the three before
        it are any of `26` letters. How many different words can it generate?
    """, answer=26**3, check=len({(a, b, c) for a in range(26) for b in range(26) for c in range(26)}), unit="words", wrong={
            "The space is certain: three positions are free, not four.": 26**4,
        }, hint="How many letters are possible at each of the three positions?", why="Any of `26` letters can be at each of three positions, and the space is certain: `26**3`.")


@aside
def the_formulas_of_a_transformer() -> None:
    """From the sizes of a model, seven formulas give its memory, its time and its speed."""
    note(r"""
        How large is a model, how fast does it train, and how fast does it generate? All this can be
        computed before anything runs. Take Llama-3-8B on an H100, with sequences of $T = 8192$
        tokens in `bfloat16`. The model has $L = 32$ layers. A token has $d = 4096$ elements,
        $h = 14336$ inside the feed-forward part, and $d_{kv} = 1024$ in all its keys. The
        vocabulary has $V = 128256$ tokens.

        **How large is it?** `blocks` adds up the weights of all blocks: four matrices of attention
        and three of the feed-forward part in each layer. $N$ is the number of weights that a token
        is multiplied by: those of the blocks and of the head. $P$ is the number of all parameters,
        which also include the embedding and the gains of the norms:
    """)
    L, d, kv, h, V, T = 32, 4096, 1024, 14336, 128256, 8192
    config = LLAMA_3_8B  # @hide
    assert (L, d, kv, h, V, T) == (
        config.layers, config.width, config.kv_width, config.hidden, config.vocabulary, config.context), \
        "These are the numbers of Llama-3-8B."  # @hide
    blocks = L * (2 * d * d + 2 * d * kv + 3 * d * h)
    N = blocks + V * d  # @inspect N
    P = blocks + L * 2 * d + d + 2 * V * d  # @inspect P
    assert P == parameter_count(config), \
        "P is the number of parameters of Llama-3-8B."  # @hide
    note(r"""
        **How fast does it train?** Training on a token costs $6N$ FLOPs, because each weight is
        used in one matmul forward and in two backward, each time in a multiplication and an
        addition. Attention costs $12LdT$ more. Suppose the run uses `0.4` of the GPU's peak; this
        share is its *MFU*. Divide the FLOPs per second by the FLOPs per token:
    """)
    training = 6 * N + 12 * L * d * T  # @inspect training as FLOP
    assert training == 3 * forward_flops(config, 1, T), \
        "Training on a token costs three times the FLOPs of a forward pass."  # @hide
    speed = 0.4 * PEAK / training  # @inspect round(speed) as tokens/s
    assert 6800 < speed < 6900, \
        "At an MFU of 40 %, a GPU trains on 6,834 tokens a second."  # @hide
    note(r"""
        For the backward pass, each layer keeps $12d + 4d_{kv} + 8h$ bytes of activations per token:
    """)
    kept = 12 * d + 4 * kv + 8 * h  # @inspect kept as B
    exact = activation_bytes(config, T)  # @hide
    assert round(kept / exact, 2) == 1, \
        "To a hundredth, a token keeps the same bytes in a layer when they are added up tensor by tensor."  # @hide
    activations = L * T * kept / 1e9  # @inspect round(activations, 1) as GB
    assert 44 < activations < 45, \
        "For one sequence, the 32 layers keep 44 GB."  # @hide
    note(r"""
        **How fast does it generate?** A step generates one token of each of `16` sequences. It is
        memory-bound, so it takes the time to read its bytes: all weights once, and each sequence's
        *KV cache*, its keys and values, $2L\,d_{kv}\,T$ elements of `2` bytes:
    """)
    cache = 2 * L * kv * T * 2  # @inspect cache as B
    assert cache == cache_bytes(config, T), \
        "The KV cache of one sequence needs one GiB."  # @hide
    step = (2 * N + 16 * cache) / BANDWIDTH  # @inspect round(1e3 * step, 1) as ms
    expected = step_seconds(config, 16, T)  # @hide
    assert math.isclose(step, expected), \
        "A decoding step of 16 sequences takes the same time as in an earlier part."  # @hide
    reading, working = 2 * N / BANDWIDTH, 2 * 16 * N / PEAK  # @hide
    waits_for = reading / working  # @hide
    assert 18 < waits_for < 19, \
        "With 16 sequences, reading the weights takes 18 times as long as the arithmetic."  # @hide
    note(rf"""
        So before anything runs you know: {P / 1e9:.2f} billion parameters; {speed:,.0f} tokens a
        second in training, with {activations:.0f} GB of activations for a sequence; and
        {16 / step:,.0f} tokens a second when the model generates `16` sequences at once.

        Here are the formulas for reference. Sizes are in bytes, and times in seconds. The last
        formula adds up the operations of a block:

        | what | formula | shown in |
        |---|---|---|
        | parameters | $L(2d^2 + 2d\,d_{{kv}} + 3dh + 2d) + d + 2Vd$ | [@eq:parameters] |
        | training FLOPs per token | $6N + 12LdT$ | [@eq:training] |
        | training tokens per second | $\text{{MFU}} \cdot \text{{peak}} / (6N + 12LdT)$ | [@eq:mfu] |
        | activations per token and layer | $12d + 4d_{{kv}} + 8h$ | [@eq:activations] |
        | KV cache of a sequence | $2L\,d_{{kv}}\,T \cdot 2$ | [@eq:cache] |
        | decoding step of $B$ sequences | $\max(2N/\text{{bandwidth}}, 2BN/\text{{peak}}) + B \cdot \text{{cache}}/\text{{bandwidth}}$ | [@eq:step] |
        | time of a block | $\sum \max(\text{{FLOPs}}/\text{{peak}}, \text{{bytes}}/\text{{bandwidth}})$ | [@eq:block-time] |
    """)
    question(r"""
        Llama-3-8B has $N = 7504658432$ weights in its matrices. A GPU with a peak of `989.5e12`
        FLOP/s trains it at an MFU of `40` %, with a context so short that attention can be left
        out. How many tokens a second is that?
    """, answer=0.4 * 989.5e12 / (6 * 7504658432), check=0.4 * PEAK / (3 * forward_flops(config, 1, 0)),
        unit="tokens/s", within=0.05, wrong={
            "That is a forward pass; training costs three times as many FLOPs.": 0.4 * 989.5e12 / (2 * 7504658432),
            "That is at the whole peak; the MFU is 40 %.": 989.5e12 / (6 * 7504658432),
        }, hint="What is $6N$?",
        why="Without attention a token costs $6N$ FLOPs. The GPU does `40` % of its peak, so divide that by $6N$.")
