"""The whole model: its tables and its blocks, and a small one trained, and predicted before it is."""
import math
from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from counters import Alive, flops, saved_bytes_of, tensors_in
from jaxtyping import Int
from timing import one_thread
from torch import Tensor, nn
from plots import stacks

from litbook import aside, figure, note, question

from .block import Transformer
from .counts import Config, block_weights, forward_flops, parameter_count
from .figures import plot_loss
from .published import LLAMA_32_1B


def the_whole_model() -> None:
    """The whole model."""
    note(r"""
        A whole Transformer consists of its blocks and two tables: the embedding, which turns tokens
        into vectors, and the head, which turns vectors into scores for tokens. This part tests the
        formulas of this lecture on a training run. Before the run starts, three things are
        predicted: its first loss and a lower bound on its loss, its FLOPs, and an upper bound on
        its memory.
    """)
    one_table_costs_flops_and_the_other_none()
    a_language_with_a_known_entropy()
    the_run_is_predicted()
    its_memory_has_a_bound()
    the_run()
    its_memory_is_measured()


# --- tables and blocks


@aside
def one_table_costs_flops_and_the_other_none() -> None:
    """In the forward pass of a token, the embedding costs no FLOPs, and the head costs two for each element of its table."""
    note(r"""
        A language model has two tables with a row of $d$ elements for every token of the
        vocabulary. (Some models use one table for both.) The *embedding*, at the beginning, turns a
        token into its row. The *head*, at the end, multiplies the last block's output for a token
        by every row, and so gives a score for every token of the vocabulary. Do both cost the same
        in the forward pass?

        By hand, take a vocabulary of $3$ tokens and rows of $2$ elements. The embedding copies one
        row, and multiplies nothing. The head multiplies $2$ elements by each of $3$ rows: $6$
        multiplications and, if each sum starts at zero, $6$ additions.

        Now count for the smallest Llama-3.2 [@llama-32], in which one table does both. `table` has
        a row of `2048` elements for each of `128256` tokens, `token` is one token, and `x` is the
        output of the last block:
    """)
    d, rows = 2048, 128256  # @hide
    assert (d, rows) == (LLAMA_32_1B.width, LLAMA_32_1B.vocabulary), \
        "These are the width and the vocabulary of Llama-3.2-1B."  # @hide
    with torch.device("meta"):  # @hide
        table = torch.empty(rows, d)
        token = torch.zeros(1, dtype=torch.int64)
        x = torch.empty_like(table[:1])
    embedding_flops = flops(lambda: table[token])  # @inspect embedding_flops as FLOP
    head_flops = flops(lambda: x @ table.t())  # @inspect head_flops as FLOP
    assert embedding_flops == 0, "Looking up a row costs no FLOP."  # @zero: a lookup multiplies nothing
    assert head_flops == 2 * 128256 * 2048, \
        "For one token, the head costs two FLOPs for each element of its table."
    weights = forward_flops(LLAMA_32_1B, 1, 0) // 2  # @hide
    share = head_flops / (2 * weights)  # @hide
    assert 0.21 < share < 0.22, \
        "Without attention's scores and weighted sums, more than a fifth of the forward FLOPs are in the head."  # @hide
    note(rf"""
        Of the {weights:,} weights that take part in matmuls of this small model, the head has
        `128256 * 2048`, or {share:.0%}. So in a count of forward FLOPs, leave out the embedding,
        but count the head for each token whose scores are computed.
    """)
    with torch.device("meta"):  # @hide
        embedding, head = (torch.empty(20_000, 1000) for _ in range(2))
        matrices = [torch.empty(1000, 1000) for _ in range(100)]

    def scores_of(token: Tensor) -> Tensor:  # @hide
        x = embedding[token]
        for matrix in matrices:
            x = x @ matrix
        return x @ head.t()

    question(r"""
        A model has `100e6` weights in blocks, an embedding of `20e6` elements and a head of `20e6`.
        How many FLOPs does a token cost in the forward pass, without attention?
    """, answer=2 * (100e6 + 20e6), check=flops(lambda: scores_of(token)), unit="FLOP", within=0.01, wrong={
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


def a_language_with_a_known_entropy() -> None:
    """For a made-up language one can compute the lowest loss that a model can reach."""
    words: Int[Tensor, "word letter"] = lexicon()  # @hide
    draws = torch.Generator().manual_seed(0)  # @hide
    batch: Int[Tensor, "sequences seq"] = draw_sequences(words, 1, draws)  # @hide
    line = spelled(batch[0, 1:])  # @hide
    sample = line.split()  # @hide
    assert len(sample) == 8, \
        "The sequence has 8 words."  # @hide
    note(r"""
        How low can the loss of a language model get? For human language nobody knows. For a made-up
        language one can compute it.

        A model gives each token that may come next a probability. Its *surprise* at the token that
        does come is $-\log p$, where $p$ is the probability that it gave to this token. The loss is
        the mean surprise per token.

        Take a language of only four words, `aa`, `ab`, `ba` and `bb`, all equally likely, and let
        each word be one token. Nobody can know which word comes next, so the best model gives each
        word the probability $1/4$. Its surprise is $\log 4$ at every word. Another model prefers
        `aa`:
    """)
    even = [1 / 4, 1 / 4, 1 / 4, 1 / 4]
    prefers_aa = [1 / 2, 1 / 6, 1 / 6, 1 / 6]
    # each word comes equally often, so take the plain mean
    best_loss = sum(-math.log(p) for p in even) / 4  # @inspect round(best_loss, 2) as nats
    other_loss = sum(-math.log(p) for p in prefers_aa) / 4  # @inspect round(other_loss, 2) as nats
    assert best_loss == math.log(4) < other_loss, \
        "The model that prefers a word has the higher loss."
    assert math.isclose(sum(prefers_aa), 1), "Its probabilities add up to one."  # @hide
    note(rf"""
        The second model is less surprised at `aa`, but more surprised at the three other words. So
        the lowest possible loss is $\log 4$, because the words are drawn at random and no model can
        know more than their probabilities. This lowest loss is the *entropy* of the language. With
        natural logarithms its unit is the *nat*.

        Now let each letter be a token, so a word has two. Each letter has the probability $1/2$ and
        the surprise $\log 2$. Together the letters have the surprise of the word,
        $\log 2 + \log 2 = \log 4$, so the entropy per token is $(\log 4) / 2$. In any word, the
        surprises of its tokens add up to the surprise of the word. So if all words have the same
        number of tokens, divide the surprise of a word by this number.

        The language of the next sections has `32` words of three letters, all equally likely, and a
        space after each, for example “{sample[0]} {sample[1]} {sample[2]}”. A word has the
        probability $1/32$, so its surprise is $\log 32$. It has `4` tokens, three letters and a
        space:
    """)
    spellings = {spelled(word) for word in words}  # @hide
    assert len(spellings) == WORDS == 32, "The lexicon has 32 different words."  # @hide

    def fits(start: str) -> int:  # @hide
        return sum(word.startswith(start) for word in spellings)

    surprises = [
        [-math.log(fits(w[:i + 1]) / fits(w[:i])) for i in range(4)]
        for w in sorted(spellings)
    ]  # @hide
    totals = {round(sum(s), 9) for s in surprises}  # @hide
    assert totals == {round(math.log(32), 9)}, \
        "For every word, the surprises of its four tokens add up to log 32."  # @hide
    entropy = math.log(32) / 4  # @inspect round(entropy, 3) as nats
    assert round(entropy, 2) == 0.87, \
        "The entropy of a token is 0.87 nats."  # @hide
    note(rf"""
        So no model of this language gets a loss below {entropy:.3f} nats per token in the long run.
        A training run can be compared with this number.
    """)
    question(r"""
        Another language also has `32` words, all equally likely. But each has seven letters and a
        space after it. What is the lowest loss that a model can reach, in nats per token?
    """, answer=math.log(32) / 8, check=entropy / 2, unit="nats per token", within=0.02, wrong={
            "The words are longer: the surprise of a word is shared by more tokens.": math.log(32) / 4,
            "That is for a word; a word has eight tokens.": math.log(32),
            "The space is a token too.": math.log(32) / 7,
        }, hint="Divide the surprise of a word by its tokens.",
        why=r"A word again has the surprise $\log 32$, because there are `32` words. It now has `8` tokens, twice as many as before, so the loss per token is half as large.")


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


def the_run_is_predicted() -> None:
    """The FLOPs of a training run can be computed from its sizes before the first step."""
    note(r"""
        What will a training run cost? Its FLOPs can be computed before it starts, because a run is
        one step repeated, and each token of a step costs the same number of FLOPs:

        $$
        \text{FLOPs of a run} = \text{steps} \times \text{tokens in a step} \times
        \text{FLOPs per token}
        $$

        In the forward and backward passes together, a token
        [costs](#training_costs_six_per_weight_and_twelve_per_pair) $6N + 12\,L\,d\,T$ FLOPs, if
        only matmuls are counted: $6$ for each of the $N$ weights of the matrices, and, for
        attention, $12\,d$ in each of $L$ layers for each of the $T$ tokens of its sequence. The
        model dimension $d$ is the number of elements in the vector of a token. By hand, take
        $N = 10$, $L = 1$, $d = 2$ and $T = 3$. A token costs
        $6 \cdot 10 + 12 \cdot 1 \cdot 2 \cdot 3 = 132$ FLOPs. So a run of $5$ steps of $6$ tokens,
        two sequences of $3$, costs $5 \cdot 6 \cdot 132 = 3960$.

        Now a small Transformer, which is trained [below](#the_run) on a
        [made-up language](#a_language_with_a_known_entropy). A token is a letter or a space, so the
        vocabulary has `27` tokens. The sizes are:

        | of the model and the run | |
        |---|---|
        | model dimension $d$ | `128` |
        | layers $L$ | `2` |
        | weights of a layer, in its seven matrices | `184320` |
        | weights of the output matrix, for `27` tokens | `27 * 128` |
        | weights $N$ in all matrices | `2 * 184320 + 27 * 128 = 372096` |
        | tokens in a sequence, $T$ | `32` |
        | steps | `240` |
        | tokens in a step: `4` sequences of `32` | `128` (that $d$ is the same number is a coincidence) |

        The formula, and a count by PyTorch of one step:
    """)
    count, model = parameter_count(RUN), fresh_model()  # @hide
    assert count == 376_192 == sum(p.numel() for p in model.parameters()), \
        "The built model has the same number of parameters."  # @hide
    assert count - forward_flops(RUN, 1, 0) // 2 == 27 * 128 + 5 * 128, \
        "All parameters but N are 27 * 128 of the embedding and 5 * 128 gains."  # @hide
    assert (RUN.layers, RUN.width, RUN.vocabulary, RUN.context, BATCH) == (2, 128, 27, 32, 4), \
        "These are the sizes of the table."  # @hide
    assert block_weights(RUN) == 184320, \
        "The matrices of a layer have 184320 weights."  # @hide
    weights = forward_flops(RUN, 1, 0) // 2  # @hide
    assert weights == 372_096, \
        "The matrices of the blocks and the output matrix have 372,096 weights."  # @hide
    per_token = 6 * 372_096 + 12 * 2 * 128 * 32  # @inspect per_token as FLOP
    total = 240 * 128 * per_token  # @inspect round(total / 1e9, 1) as GFLOP
    assert STEPS * TOKENS == 240 * 128, \
        "The run has 240 steps of 128 tokens."  # @hide
    batch = draw_sequences(lexicon(), BATCH, torch.Generator())  # @hide
    counted = flops(lambda: loss_of(model, batch).backward())  # @inspect counted as FLOP
    assert counted == 128 * per_token, \
        "For one step of 128 tokens, PyTorch counts the FLOPs of the formula."
    assert counted == 3 * forward_flops(RUN, TOKENS, RUN.context), \
        "A step costs three times the FLOPs of a forward pass."  # @hide
    rule = 6 * count * TOKENS * STEPS / total  # @hide
    assert 0.95 < rule < 0.97, \
        "Six FLOPs for each parameter and token would be a little less."  # @hide
    note(rf"""
        So before its first step you know that this run costs {total / 1e9:.1f} GFLOP. To estimate
        its time, divide by the FLOP/s that your machine reaches in training.
    """)
    longer = torch.zeros(2, 1 + 64, dtype=torch.int64)  # the last token is only a target  # @hide
    step = flops(lambda: loss_of(model, longer).backward())  # @hide
    question(r"""
        In the same run, the sequences are now `64` tokens long instead of `32`, and a step has `2`
        of them instead of `4`. How many GFLOP does the run cost?
    """, answer=240 * 128 * (6 * 372_096 + 12 * 2 * 128 * 64) / 1e9, check=240 * step / 1e9, unit="GFLOP", within=0.01, wrong={
            "Attention costs more: each token meets twice as many others.": 240 * 128 * (6 * 372_096 + 12 * 2 * 128 * 32) / 1e9,
            "Only attention costs twice as much per token, and the number of tokens is the same.": 2 * 240 * 128 * (6 * 372_096 + 12 * 2 * 128 * 32) / 1e9,
        }, hint="What changes in the FLOPs of a token, and what in the number of tokens?",
        why="A step again has `128` tokens. The weights cost each of them the same, and attention costs twice as much, because $T$ is `64`.")


@aside
def its_memory_has_a_bound() -> None:
    """One forward pass gives an upper bound on a run's memory for parameters, averages, gradients and activations."""
    note(r"""
        Will a training run fit into memory? For the tensors that a step keeps, an upper bound can
        be computed before the run starts. Add two things:

        - Four numbers for each parameter, of `4` bytes each in `float32`: its value, its gradient,
          and two averages that the optimizer AdamW keeps, of the gradient and of its square.
        - The *activations*: all that the forward pass of a batch saves for the backward pass. One
          forward pass is enough to count them.

        The sum is an upper bound for these tensors, because each of them is counted in full, though
        they are not all there at once. After the forward pass all activations are there, but no
        gradients, if they were cleared before. After the backward pass all gradients are there, but
        no activations. By hand, take $10$ parameters, and a forward pass that saves $100$ bytes.
        The bound is $10 \cdot 4 \cdot 4 + 100 = 260$ bytes. After the forward pass there are
        $10 \cdot 3 \cdot 4 + 100 = 220$; after the backward pass $10 \cdot 4 \cdot 4 = 160$.

        Now a small Transformer, `model`, with `376192` parameters, and a `batch` of `4` sequences
        of `32` tokens. `saved_bytes_of` runs the forward pass and adds up the bytes of all tensors
        that PyTorch saves in it, without the parameters:
    """)
    model = fresh_model()  # @hide
    batch = draw_sequences(lexicon(), BATCH, torch.Generator())  # @hide
    parameters = [*model.parameters()]  # @hide
    state = 4 * 4 * 376_192  # @inspect round(state / 1e6, 1) as MB
    forward_pass = partial(loss_of, model, batch)  # @hide
    activations = saved_bytes_of(forward_pass, parameters)  # @inspect round(activations / 1e6, 1) as MB
    bound = state + activations  # @inspect round(bound / 1e6, 1) as MB
    assert (BATCH, RUN.context) == (4, 32), \
        "A batch has 4 sequences of 32 tokens."  # @hide
    assert state == 4 * sum(p.nbytes for p in parameters), \
        "Parameters, gradients and two averages are four times the model."  # @hide
    held_out = draw_sequences(lexicon(), 64, torch.Generator().manual_seed(9))  # @hide
    view = saved_bytes_of(partial(loss_of, model, held_out[:BATCH]), parameters)  # @hide
    assert view - activations == held_out.nbytes - batch.nbytes, \
        "A batch that is a view of more sequences would keep all of them."  # @hide
    sizes = [round(size / 1e6, 1) for size in (state, activations, bound)]  # @hide
    assert sizes == [6.0, 3.0, 9.0], \
        "The four numbers of all parameters need 6.0 MB, the activations 3.0 MB, and both 9.0 MB."
    note(rf"""
        So with batches of this shape, the run needs at most {bound / 1e6:.1f} MB for these tensors.
        An operation may briefly need more, for results that it does not save. How far the peak of a
        step is below the bound is [measured](#its_memory_is_measured) at the end of this part.
    """)
    plain = torch.optim.SGD(parameters)  # keeps no averages  # @hide
    loss_of(model, batch).backward()  # @hide
    plain.step()  # @hide
    left = tensors_in((parameters, [p.grad for p in parameters], [*plain.state.values()]))  # @hide
    question(r"""
        The same run uses an optimizer that keeps no averages. The parameters, gradients and
        averages above need `6.0` MB together, and the activations `3.0` MB. What is the upper bound
        now, in MB?
    """, answer=6.0 / 2 + 3.0, check=6.0 * sum(t.nbytes for t in left) / state + 3.0, unit="MB", within=0.02,
        wrong={
            "Two of the four numbers for each parameter are no longer stored.": 9.0,
            "The activations also need memory.": 3.0,
            "There are two averages for each parameter, not one.": 7.5,
        }, hint="How many of the four numbers for each parameter are left?",
        why=r"""
            Values and gradients are left, two of four numbers for each parameter: `6.0 / 2` MB. The
            activations do not depend on the optimizer.
        """)


class Run(NamedTuple):
    """What a training run produced: its model, and the loss of every step."""

    model: Transformer
    losses: list[float]


def rate_at(step: int) -> float:
    """The learning rate of a step: rises over ten steps, stays constant, and falls to zero over the last two fifths."""
    return RATE * min((step + 1) / 10, 1, (STEPS - step) / (0.4 * STEPS))


@cache
@one_thread()
def trained() -> Run:  # @stepover
    """Trains the model, once; returns it with the loss of each step."""
    model, words = fresh_model(), lexicon()
    data = torch.Generator().manual_seed(2)
    parameters = model.parameters()
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.95), fused=True)
    losses = []
    for step in range(STEPS):
        batch = draw_sequences(words, BATCH, data)
        optimizer.param_groups[0]["lr"] = rate_at(step)
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return Run(model, losses)


def least_loss(words: Sequence[str]) -> float:  # @hide
    """Mean surprise per token, in nats, of a model that knows these equally likely words; a token is a character."""
    surprises = []
    for word in words:
        fitting = [*words]
        for place, token in enumerate(word):
            still = [it for it in fitting if it[place] == token]
            surprises.append(-math.log(len(still) / len(fitting)))
            fitting = still
    return sum(surprises) / len(surprises)


def the_run() -> None:
    """On a made-up language, the loss falls from about the logarithm of the vocabulary size to nearly the entropy."""
    note(r"""
        A small Transformer is trained on a [made-up language](#a_language_with_a_known_entropy) of
        `32` words, all equally likely. A word has three letters and a space, and a token is one of
        `26` letters or the space. Where does the loss start, and where does it end?

        - It starts near $\log 27$ (the natural logarithm, in *nats*), because the untrained model
          gives each of the `27` tokens about the same probability, $1/27$, and the loss is the mean
          of $-\log p$, where $p$ is the probability given to the token that came next.
        - It ends near the *entropy*: averaged over very many new sequences, no model has a lower
          loss. The best model gives each word the probability $1/32$. The probabilities of its `4`
          tokens multiply to $1/32$, so their losses add up to $\log 32$: $\tfrac{1}{4} \log 32$ per
          token.

        `trained` runs `240` steps. `loss_of` computes the trained model's loss on `held_out`,
        sequences it was not trained on:
    """)
    run = trained()
    first_loss = run.losses[0]  # @measure round(first_loss, 2) as nats
    start, entropy = math.log(27), math.log(32) / 4  # @inspect round(start, 2) as nats, round(entropy, 2) as nats
    last = sum(run.losses[-20:]) / 20  # @hide
    held_out = draw_sequences(lexicon(), 64, torch.Generator().manual_seed(9))  # @hide
    held_out_loss = loss_of(run.model, held_out).item()  # @measure round(held_out_loss, 2) as nats
    assert (RUN.vocabulary, WORDS, STEPS, len(run.losses)) == (27, 32, 240, 240), \
        "The run has 27 tokens, 32 words and 240 steps."  # @hide
    assert math.isclose(first_loss, start, rel_tol=0.05), \
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
        Both predictions hold. On new sequences the loss ends at {held_out_loss:.2f}, a little above
        the entropy of {entropy:.2f}, the loss of the best model. The first prediction is a test of
        your own training code: a first loss far from the logarithm of the vocabulary size may point
        to a mistake.
    """)
    two_letters = [one + other + " " for one in "abcdefghij" for other in "abcdefghij"][:64]  # @hide
    equal = torch.zeros(len({*"".join(two_letters)}))  # a score for each token  # @hide
    question(r"""
        Another made-up language has `64` two-letter words, all equally likely, each followed by a
        space. Its letters are the first `10` of the alphabet. A model is trained on it and learns
        it perfectly. At what loss does it begin, and at what loss does it end? Write both numbers
        with a comma between them, in nats per token.
    """, answer=[math.log(11), math.log(64) / 3], check=[-equal.double().log_softmax(0)[0].item(), least_loss(two_letters)], within=0.02,
        hint="How many different tokens are there, and how many tokens does a word have?",
        why=r"The space is also a token. So there are `11` tokens, and an untrained model begins near $\log 11$. A word has `3` tokens and a surprise of $\log 64$, so the loss ends at $\tfrac{1}{3} \log 64$.")


@one_thread()
def measured_step(  # @stepover
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


def most_alive(model: Transformer, batch: Int[Tensor, "sequences seq"]) -> int:  # @stepover
    """Runs a training step; returns the peak of the bytes of its results: of all tensors that it has made and not yet freed."""
    return measured_step(model, batch)[0]


@aside
def its_memory_is_measured() -> None:
    """In a small Transformer, the backward pass frees activations as it makes gradients, so the peak of a step is below the sum of both."""
    note(r"""
        Does a training step need memory for all activations and all gradients at the same time? Not
        if it starts without gradients, because the backward pass frees activations while it makes
        gradients. The *activations*, which the forward pass saves for the backward pass, are all
        there before the first gradient is computed. Then the backward pass goes through the layers,
        from the last to the first. It computes the gradient of a layer's weights, and frees the
        activations of this layer, because nothing needs them any more.

        By hand, take two layers, each with activations of $1$ MB and a gradient of $1$ MB:

        | moment | activations, MB | gradients, MB | together, MB |
        |---|---|---|---|
        | after the forward pass | $2$ | $0$ | $2$ |
        | gradient of layer 2 computed | $2$ | $1$ | $3$ |
        | activations of layer 2 freed | $1$ | $1$ | $2$ |
        | gradient of layer 1 computed | $1$ | $2$ | $3$ |
        | activations of layer 1 freed | $0$ | $2$ | $2$ |

        At the peak there are $3$ MB, not $4$. Now measure it for a small Transformer, `model`, with
        `376192` parameters. Each parameter has a gradient of `4` bytes. `saved_bytes_of` runs the
        forward pass on a batch, and returns the bytes of the activations that it saves.
        `most_alive` runs a whole training step, and returns the most bytes that tensors allocated
        in this step occupied at any one moment. This includes short-lived tensors that the table
        leaves out, such as gradients of activations:
    """)
    model = fresh_model()  # @hide
    batch = draw_sequences(lexicon(), BATCH, torch.Generator().manual_seed(2))  # @hide
    parameters = [*model.parameters()]  # @hide
    weights = sum(p.nbytes for p in parameters)  # @hide
    forward_pass = partial(loss_of, model, batch)  # @hide
    activations = saved_bytes_of(forward_pass, parameters)  # @inspect round(activations / 1e6, 1) as MB
    gradients = 4 * 376_192  # @inspect round(gradients / 1e6, 1) as MB
    peak_of_step = most_alive(model, batch)  # @inspect round(peak_of_step / 1e6, 1) as MB
    averages = measured_step(model, batch)[1]  # @hide
    assert weights == 4 * parameter_count(RUN) == 4 * 376_192, \
        "Each parameter needs four bytes."  # @hide
    assert averages == 2 * weights, \
        "AdamW's averages need twice as many bytes as the parameters."  # @hide
    assert activations < peak_of_step < activations + gradients, \
        "At the peak, what the step has allocated needs less memory than all activations plus all gradients."
    peak = weights + averages + peak_of_step  # @hide
    bound = weights + averages + activations + gradients  # @hide
    below = 1 - peak / bound  # @hide
    assert round(1 / below) == 8, \
        "At its peak, the step needs about an eighth less than the sum of the four."  # @hide
    note(rf"""
        So at the peak, the step has allocated {peak_of_step / 1e6:.1f} MB, less than the
        {(activations + gradients) / 1e6:.1f} MB of all activations and all gradients. The
        parameters, {weights / 1e6:.1f} MB, and the optimizer's state, two running averages for each
        parameter, {averages / 1e6:.1f} MB, were there before. With them, the total peak is
        {peak / 1e6:.1f} MB, and the sum of all four kinds is {bound / 1e6:.1f} MB. If a step starts
        with the gradients of earlier batches, its peak is higher.
    """)
    always = {"parameters": weights / 1e6, "averages": averages / 1e6}  # @hide
    figure(stacks({
        "sum of the four": {**always, "gradients": gradients / 1e6, "activations": activations / 1e6},
        "at the peak": {**always, "allocated in the step": peak_of_step / 1e6},
    }, "MB"), caption=r"""
        The four kinds of memory of a training step of this model added up, and the total peak.
    """, alt=r"""
        Two stacked bars. Parameters and averages are the same in both. What the step allocates is
        less at the peak than gradients and activations in the sum.
    """)
    computed, watch = list[Tensor](), Alive()  # @hide
    with watch:  # kB for MB  # @hide
        in_layers = [torch.empty(2000, dtype=torch.uint8) for _ in range(3)]
        while in_layers:
            computed.append(torch.empty(1000, dtype=torch.uint8))
            in_layers.pop()
    question(r"""
        A model has three layers, each with activations of `2` MB and a gradient of `1` MB. A step
        starts without gradients. The backward pass computes a layer's gradient and then frees the
        layer's activations. How many MB do activations and gradients need at the peak?
    """, answer=3 * 2 + 1, check=watch.most / 1000, unit="MB", within=0.01, wrong={
            "Before the third gradient is computed, some activations are freed.": 3 * 2 + 3 * 1,
            "The first gradient is computed before any activations are freed.": 6,
        }, hint="What is in memory when the first gradient has just been computed?",
        why="All `3 * 2` MB of activations and the first gradient make `6 + 1` MB. Then each layer frees `2` MB and adds only `1`.")
