"""The whole model: its tables and its blocks, and a small one trained, and predicted before it is."""
import math
from dataclasses import replace
from functools import cache
from time import thread_time
from typing import NamedTuple

import torch
import torch.nn.functional as F
from counters import Alive, flops, saved_bytes_of
from jaxtyping import Int
from timing import BUSY, SLACK, one_thread, quickest
from torch import Tensor, nn

from litbook import aside, figure, note, question

from .block import Transformer
from .counts import Config, activation_bytes, block_weights, cache_bytes, forward_flops, parameter_count
from .figures import plot_loss, plot_shares
from .published import LLAMA_3_8B, LLAMA_32_1B, MODELS, QWEN_25_HALF_B
from .generate import step_seconds
from .regimes import BANDWIDTH, PEAK, Operation, Traffic, operations_of, shares, waits


def the_whole_model() -> None:
    """The whole model."""
    note(r"""
        A whole Transformer has its blocks and two tables: the embedding, which turns tokens into
        rows of numbers, and the head, which turns rows into scores for tokens. This part first
        counts the tables. Then it tests all the counting of this lecture on a training run. Before
        the run starts, four things are predicted: its first loss and a loss that it cannot go
        below, its FLOPs, a bound on its memory, and its seconds.
    """)
    small_models_are_largely_tables()
    one_table_costs_flops_and_the_other_none()
    a_text_with_a_known_entropy()
    the_run_is_predicted()
    the_run()
    its_memory_is_measured()
    it_writes_what_it_read()
    the_formulas_of_a_transformer()


# --- tables and blocks


def parts_of(config: Config) -> dict[str, float]:
    """Parameters of the model built without data: in tables, in attention, in feed-forward parts."""
    with torch.device("meta"):
        model = Transformer(config)
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    ends = "embedding", "head"
    tables = sum(n for name, n in sizes.items() if name.startswith(ends))
    attention = sum(n for name, n in sizes.items() if ".attention." in name)
    rest = sum(sizes.values()) - tables - attention  # gains are lost in it
    return {"tables": tables, "attention": attention, "feed-forward": rest}


def small_models_are_largely_tables() -> None:
    """Small models are largely tables, because blocks grow with the square of the width."""
    note(r"""
        Where are the parameters of a whole model? A table has one row of the model's width for each
        token of the vocabulary, so it grows with the width. A block's matrices grow with the square
        of the width, and larger models have more blocks. So the share of the tables falls.
        Published models with large vocabularies, built without
        data [@qwen25-05b; @qwen3-06b; @llama-32; @llama3]:
    """)
    models = {n: c for n, c in MODELS.items() if c.vocabulary > 100_000}
    found = {name: parts_of(config) for name, config in models.items()}
    totals = {name: sum(parts.values()) for name, parts in found.items()}  # @inspect totals
    formula = {name: parameter_count(config) for name, config in models.items()}
    assert totals == formula, "by building, by formula"
    table = {name: shares(parts)["tables"] for name, parts in found.items()}  # @inspect table as %
    for tied in (True, False):
        falling = [table[name] for name in models if models[name].tied == tied]  # @inspect falling as %
        assert falling == sorted(falling, reverse=True), "larger, less of it"
    assert table["Llama-3.2-3B"] < table["Llama-3-8B"], "one table, two"
    d, kv = LLAMA_3_8B.width, LLAMA_3_8B.kv_width
    by_hand = LLAMA_3_8B.layers * (2 * d * d + 2 * d * kv)
    assert found["Llama-3-8B"]["attention"] == by_hand, "in attention"
    assert 0.27 < table["Qwen2.5-0.5B"] < 0.28, "the smallest"
    assert round(table["Llama-3-405B"], 2) == 0.01, "the largest"
    figure(plot_shares({name: shares(parts) for name, parts in found.items()}),
        caption="Where the parameters are, from the smallest of these models to the largest.",
        alt=r"""
            A stacked bar for each model. The share of tables falls from more than a quarter to next
            to nothing, with one step up where the models begin to have two tables. The feed-forward
            part takes most of the rest, with attention a narrow band.
        """)
    note("The small models are *tied*: one table serves as embedding and head. With two tables, their share would be larger still. For the smaller Llama-3.2:")
    untied = parts_of(replace(LLAMA_32_1B, tied=False))
    twice = untied["tables"] / sum(untied.values())  # @inspect twice as %
    assert 0.35 < twice < 0.36, "of a model of that size"
    question(r"""
        The smallest of these with a vocabulary of `32000` tokens instead, still tied. What share of
        its parameters is the table then?
    """, answer=32000 * 896 / parameter_count(replace(QWEN_25_HALF_B, vocabulary=32000)),
        check=32000 * 896 / (totals["Qwen2.5-0.5B"] - (151936 - 32000) * 896), unit="%",
        why="The blocks stay, and the table has a fifth of its rows.")


@aside
def one_table_costs_flops_and_the_other_none() -> None:
    """The embedding takes no FLOPs; the head takes two for each number of its table."""
    note(r"""
        The embedding and the head have the same shape. Do they cost the same? A token takes one row
        from the embedding, which computes nothing. Its last row of numbers is multiplied with every
        row of the head. Count both in the smaller Llama-3.2 [@llama-32], for a single token:
    """)
    d, rows = LLAMA_32_1B.width, LLAMA_32_1B.vocabulary  # @inspect d, rows
    with torch.device("meta"):
        table = torch.empty(rows, d, dtype=torch.bfloat16)
        token = torch.zeros(1, dtype=torch.int64)
        x = torch.empty_like(table[:1])
    lookup = operations_of(lambda: F.embedding(token, table))[0]
    scores = operations_of(lambda: x @ table.t())[-1]
    assert lookup.flops == 0, "looked up"  # @zero: a lookup multiplies nothing
    assert scores.flops == 2 * rows * d, "two for each number of the table"
    assert lookup.read == lookup.written + token.nbytes, "one row moves"
    assert scores.read == 2 * (rows + 1) * d, \
        "the whole table does, and a token"
    share = scores.flops / forward_flops(LLAMA_32_1B, 1, 0)  # @inspect share as %
    assert 0.21 < share < 0.22, "of all FLOPs of a forward pass"
    note(r"""
        A rule of thumb says that a token takes two FLOPs for each parameter [@kaplan2020]. Which
        parameters should be counted? Those that a token is multiplied by: the blocks and the head.
        In a tied model all parameters are right, because its table counts once, as the head. In a
        model with two tables the embedding is too many. (The paper leaves out both tables, and so
        counts too little for a small model.)
    """)
    over = {name: 2 * parameter_count(c) / forward_flops(c, 1, 0)
            for name, c in {"1B": LLAMA_32_1B, "8B": LLAMA_3_8B}.items()}  # @inspect over as times
    assert round(over["1B"], 4) == 1.0001, "one table: only gains too many"
    assert 1.06 < over["8B"] < 1.08, "two tables: too many"
    blocks = LLAMA_32_1B.layers * block_weights(LLAMA_32_1B)
    kaplan = 2 * blocks / forward_flops(LLAMA_32_1B, 1, 0)  # @inspect kaplan as times
    assert 0.78 < kaplan < 0.79, "without the head: too little"
    table = torch.empty(128256, 4096, device="meta")
    question(r"""
        Llama-3-8B is `4096` wide and has a vocabulary of `128256`. How many FLOPs does its head
        take for a single token?
    """, answer=2 * 128256 * 4096, check=flops(lambda: table[:1] @ table.t()), unit="FLOP",
        why="A multiplication and an addition for each number of its table.")


# --- a run

RUN = Config(layers=2, width=128, heads=4, kv_heads=2, hidden=352, vocabulary=27, context=32)
STEPS, BATCH, RATE = 240, 4, 3e-3  # steps, sequences in each, the highest learning rate
WORDS = 32
TOKENS = BATCH * RUN.context  # in a step


def lexicon(count: int = WORDS) -> Int[Tensor, "word letter"]:
    """Words of three letters and a space, all different; the space is 0, the letters are 1 to 26."""
    draws = torch.Generator().manual_seed(3)
    chosen = torch.randperm(26**3, generator=draws)[:count]
    letters = [1 + chosen // 26**place % 26 for place in (2, 1, 0)]
    return torch.stack([*letters, torch.zeros_like(chosen)], dim=1)


def write_text(
    words: Int[Tensor, "word letter"], sequences: int, draws: torch.Generator
) -> Int[Tensor, "sequences seq"]:
    """Sequences of words drawn at random, each after a space, one token longer than the context."""
    shape = sequences, RUN.context // 4
    drawn = torch.randint(len(words), shape, generator=draws)
    body = words[drawn].flatten(1)
    return torch.cat([torch.zeros_like(body[:, :1]), body], dim=1)


def spelled(tokens: Int[Tensor, "seq"]) -> str:
    """The letters of tokens."""
    return "".join(" abcdefghijklmnopqrstuvwxyz"[i] for i in tokens.tolist())


def a_text_with_a_known_entropy() -> None:
    """A made-up language tells how low its loss can get."""
    note(r"""
        How low can a loss get? For human language nobody knows. So the model of this part reads a
        made-up language. It has a lexicon of words of three letters, and each word of a text is
        drawn at random from the lexicon. A line of it:
    """)
    words: Int[Tensor, "word letter"] = lexicon()
    draws = torch.Generator().manual_seed(0)
    text: Int[Tensor, "sequences seq"] = write_text(words, 1, draws)
    line = spelled(text[0, 1:])  # @inspect line
    different = {spelled(word) for word in words}
    assert len(different) == WORDS, "all words different"
    note(r"""
        The best that a reader can do is to know the lexicon. Then each word has the same
        probability, one over the number of words. The *surprise* of a token is the negative
        logarithm of its probability. Within a word the first letter is hard to guess, and the space
        at its end is certain. But the surprises of a word's tokens add up to that of the word: the
        logarithm of the number of words. Their mean over the tokens is the *entropy* of the text,
        and no model's loss can be lower. With natural logarithms its unit is the *nat*:
    """)

    def fits(prefix: str) -> int:
        return sum(word.startswith(prefix) for word in different)

    surprise = [
        [math.log(fits(w[:i]) / fits(w[:i + 1])) for i in range(4)]
        for w in sorted(different)
    ]
    by_letter = [sum(s[i] for s in surprise) / WORDS for i in range(4)]  # @inspect by_letter
    assert math.isclose(sum(by_letter), math.log(WORDS)), "of a word"
    assert by_letter[3] == 0, "the space is certain"  # @zero: what is certain surprises nobody
    totals = {round(sum(s), 9) for s in surprise}  # @inspect totals
    assert totals == {round(math.log(WORDS), 9)}, "the same for every word"
    floor = math.log(WORDS) / 4  # @inspect floor
    assert round(floor, 2) == 0.87, "for a token, on average"
    question(r"""
        With `256` words of three letters and a space, which loss is the lowest that a model can
        reach?
    """, answer=math.log(256) / 4, check=8 / 5 * floor, unit="nats a token", within=0.02,
        why="So many more words, and hardly more loss: it grows with their logarithm.")


def loss_of(model: Transformer, text: Int[Tensor, "sequences seq"]) -> Tensor:
    """Mean surprise of the model at every token but the first."""
    scores = model(text[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())


def fresh_model() -> Transformer:  # @stepover
    """The model before its first step, the same every time."""
    model, start = Transformer(RUN, "written"), torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02, generator=start)
    return model


class Prices(NamedTuple):
    """What this machine takes on one thread: FLOPs and bytes in a second, and seconds of a call."""

    rate: float
    bandwidth: float
    call: float


@cache
def prices() -> Prices:  # @stepover
    """The rate of a product, the bandwidth of an addition, and the time of adding one number."""
    a, many, one = torch.randn(512, 512), torch.randn(2**18), torch.zeros(1)
    rate = 2 * 512**3 / quickest(lambda: a @ a, 10)
    bandwidth = 2 * many.nbytes / quickest(lambda: many + 1)
    return Prices(rate, bandwidth, quickest(lambda: one + 1))


@one_thread()
def operations_of_a_step() -> list[Operation]:  # @stepover
    """What the second step of a run does, forward, backward and in the optimizer."""
    model = fresh_model()
    text = write_text(lexicon(), BATCH, torch.Generator().manual_seed(2))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    operations: list[Operation] = []
    for _ in range(2):  # the first step makes the averages
        optimizer.zero_grad()
        with Traffic() as traffic:
            loss_of(model, text).backward()
            optimizer.step()
        operations = traffic.operations
    return operations


@cache
def step_at_best() -> float:  # @stepover
    """Seconds of a step: each operation takes a call, and its arithmetic or its bytes, whichever takes longer."""
    here = prices()
    return sum(
        max(op.flops / here.rate, op.moved / here.bandwidth) + here.call
        for op in operations_of_a_step()
    )


def the_run_is_predicted() -> None:
    """Before the first step, a loss, FLOPs, memory and time are predicted."""
    note(rf"""
        What can be said before the run? The *model* has blocks of this lecture, `{RUN.layers}` of
        them, `{RUN.width}` wide. Each of `{STEPS}` steps reads `{TOKENS}` tokens that were never
        seen before.
    """)
    count = parameter_count(RUN)  # @inspect count
    model = fresh_model()
    assert count == sum(p.numel() for p in model.parameters()), "parameters"
    note(r"""
        **Loss.** The loss is the mean surprise. A model that knows nothing gives each of `27`
        tokens the same probability, so its loss is the logarithm of their number. It cannot end
        below the entropy of the text. How close to it the model comes, is not predicted here.
    """)
    start, floor = math.log(RUN.vocabulary), math.log(WORDS) / 4  # @inspect start, floor
    assert round(floor, 2) == 0.87, "as counted above"
    held_out = write_text(lexicon(), 64, torch.Generator().manual_seed(9))
    with torch.no_grad():
        untrained = loss_of(model, held_out).item()  # @inspect untrained
    assert math.isclose(untrained, start, rel_tol=0.05), "knows nothing yet"
    note(r"""
        **FLOPs.** The backward pass takes twice the FLOPs of the forward pass: each product has a
        gradient for its weights and one for its input. This holds for the first block too, because
        its input comes from the embedding, which needs a gradient.
    """)
    step = 3 * forward_flops(RUN, TOKENS, RUN.context)  # @inspect step as FLOP
    text = held_out[:BATCH].clone()
    counted = flops(lambda: loss_of(model, text).backward())
    assert counted == step, "as PyTorch counts"
    total = STEPS * step  # @inspect total as FLOP
    rule = 6 * count * TOKENS * STEPS / total  # @inspect rule as %
    assert 0.95 < rule < 0.97, "six for each parameter and token, against it"
    note(r"""
        **Memory.** Each parameter takes `4` bytes, and so do its gradient and its two moments.
        Besides there is what autograd keeps for the backward pass. (The batch is a copy. A view of
        `64` sequences would keep all of them.)
    """)
    state = 4 * 4 * count  # @inspect state as B
    weights = sum(p.nbytes for p in model.parameters())
    assert state == 4 * weights, "four times the model"
    kept = saved_bytes_of(lambda: loss_of(model, text), model.parameters())  # @inspect kept as B
    part, known = held_out[:BATCH], [*model.parameters()]
    view = saved_bytes_of(lambda: loss_of(model, part), known)
    assert view - kept == held_out.nbytes - text.nbytes, "more, with a view"
    bound = state + kept  # @inspect bound as B
    assert state < bound < 2 * state, "more than half of it for the state"
    note(r"""
        **Seconds.** A processor runs one operation after the other. Each takes the time of its
        FLOPs or of its bytes, and a call besides. `operations_of_a_step` lists the operations of a
        step. `prices` measures what a product, an addition and a call take on one thread of this
        machine. What the program does between the operations is left out:
    """)
    calls = len(operations_of_a_step())  # @measure calls
    here = prices()  # @measure here
    seconds = STEPS * step_at_best()  # @measure seconds as s
    question(r"""
        How many FLOPs will a run over the same number of tokens take if the sequences are `4` times
        as long?
    """, answer=STEPS * 3 * forward_flops(RUN, TOKENS, 4 * RUN.context),
        check=total + STEPS * 12 * RUN.layers * RUN.width * TOKENS * 3 * RUN.context, unit="FLOP", within=0.05,
        why="Only attention looks at the length; the matrices do not.")


class Run(NamedTuple):
    """What a training run left: its model, the loss of every step, and the seconds that its thread computed on it."""

    model: Transformer
    losses: list[float]
    seconds: list[float]


def rate_at(step: int) -> float:
    """The learning rate: up over ten steps, level, and down to nothing over the last two fifths."""
    return RATE * min((step + 1) / 10, 1, (STEPS - step) / (0.4 * STEPS))


@cache
@one_thread()
def trained() -> Run:  # @stepover
    """The run, done once for all sections that look at it, on one thread."""
    model, words = fresh_model(), lexicon()
    data = torch.Generator().manual_seed(2)
    parameters = model.parameters()
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.95), fused=True)
    losses, seconds = [], []
    for step in range(STEPS):
        text = write_text(words, BATCH, data)
        started = thread_time()
        optimizer.param_groups[0]["lr"] = rate_at(step)
        optimizer.zero_grad()
        loss = loss_of(model, text)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(thread_time() - started)
    return Run(model, losses, seconds)


def the_run() -> None:
    """The loss falls from the logarithm of the vocabulary to the entropy of the text."""
    note(r"""
        Now the run, on the processor that built this page. Does the loss begin as predicted, and
        does it end above the entropy?
    """)
    run = trained()
    first, last = run.losses[0], sum(run.losses[-20:]) / 20  # @measure first, last
    start, floor = math.log(RUN.vocabulary), math.log(WORDS) / 4
    held_out = write_text(lexicon(), 64, torch.Generator().manual_seed(9))
    with torch.no_grad():
        reached = loss_of(run.model, held_out).item()  # @measure reached
    assert math.isclose(first, start, rel_tol=0.05), "as predicted"
    # Ten runs from other beginnings end at 1.014 to 1.018 times the floor.
    assert floor < reached < 1.05 * floor, "just above, on text it never saw"
    assert last < 1.1 * floor, "the mean of the last steps"
    figure(plot_loss(run.losses, start, floor), caption=r"""
        Loss of each step. Dashed, what was predicted: the logarithm of the vocabulary, and the
        entropy of the text.
    """, alt=r"""
        A curve that starts at the upper dashed line, falls steeply at first, and comes down close
        to the lower one.
    """)
    note(r"""
        Was the time predicted? It ran on a single thread, so that sums are added up in the same
        order on any machine. (The time is what this thread computed; waiting for other programs
        does not count.) Compare the quickest step with the prediction for one step:
    """)
    work = STEPS * 3 * forward_flops(RUN, TOKENS, RUN.context)  # @inspect work as FLOP
    one_step = sum(op.flops for op in operations_of_a_step())
    assert work == STEPS * one_step, "by the operations of a step"
    spent, quickest_step = sum(run.seconds), min(run.seconds)  # @measure spent as s, quickest_step as s
    predicted = step_at_best()  # @measure predicted as s
    off = quickest_step / predicted  # @measure off as times
    assert 1 / SLACK < off < SLACK, "about as predicted"
    assert STEPS * quickest_step < spent, "no step is quicker"
    mfu = one_step / prices().rate / quickest_step  # @measure mfu as %
    assert 1 / BUSY < mfu < 1, "of the rate of a product, in that step"
    note(r"""
        The run used only a part of the rate of a large product. The rest of the time went to what
        was counted [earlier](#operations_run_in_turn): small products, passes over memory, calls,
        and the optimizer, which touches every parameter for so few tokens.
    """)
    question("The same run on a card with an MFU of `40` % of `989.5e12` FLOP/s: how many seconds?",
             answer=work / (0.4 * 989.5e12), check=work / 3.958e14, unit="s",
             why="The FLOPs of the run, divided by the FLOPs that the card does in a second.")


@one_thread()
def most_alive(  # @stepover
    model: Transformer, text: Int[Tensor, "sequences seq"]
) -> tuple[int, int]:
    """Bytes of what a second training step makes, when they are most, and of Adam's averages."""
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    watch = Alive()
    for _ in range(2):  # the first step makes the averages
        optimizer.zero_grad()
        watch = Alive()
        with watch:
            loss_of(model, text).backward()
            optimizer.step()
    states = [t for state in optimizer.state.values() for t in state.values()]
    return watch.most, sum(t.nbytes for t in states if t.dim() > 0)


def its_memory_is_measured() -> None:
    """In a training step the four kinds of memory are never all full at once."""
    note(r"""
        How much memory does a step take at its peak? There are four kinds: parameters, gradients,
        optimizer state and activations. In this run the peak is less than their sum. `most_alive`
        watches one step of the run. It returns the most bytes that the tensors made in this step
        take at any moment, and the bytes of Adam's two averages.
    """)
    model = fresh_model()
    text = write_text(lexicon(), BATCH, torch.Generator().manual_seed(2))
    weights = sum(p.nbytes for p in model.parameters())  # @inspect weights as B
    kept = saved_bytes_of(lambda: loss_of(model, text), model.parameters())  # @inspect kept as B
    made, averages = most_alive(model, text)  # @measure made as B
    assert weights == 4 * parameter_count(RUN), "four bytes for each parameter"
    assert averages == 2 * weights, "two averages for each"
    assert kept < made, "all that autograd kept, and more"
    assert made < kept + weights, "but not the gradients besides"
    peak = weights + averages + made  # @measure peak as B
    predicted = 4 * weights + kept  # @inspect predicted as B
    below = 1 - peak / predicted  # @measure below as %
    assert round(below, 1) == 0.1, "less than the four together"
    note(r"""
        The cause is the order of the backward pass: it makes gradients one after the other, and
        frees activations on the way. When the last gradient is made, hardly any activation is left.
        So the peak is below the sum, by at most about the smaller of the two, gradients or
        activations. But if the gradients of an earlier batch are still there, they take their
        memory from the start, and this saving is gone.
    """)
    double, known = text.repeat(2, 1), [*model.parameters()]
    added = saved_bytes_of(lambda: loss_of(model, double), known) - kept
    question("The batch is `8` times as large. How many bytes does autograd keep then?",
        answer=saved_bytes_of(lambda: loss_of(model, text.repeat(8, 1)), known),
        check=kept + 7 * added, unit="B", within=0.05,
        why="As many times as the batch, or nearly: what is kept is kept for each token.")


@aside
def it_writes_what_it_read() -> None:
    """The trained model writes words of the language, and few that are not."""
    note(rf"""
        The loss is an average. Does the trained model also write the language? The language is a
        row of words from `lexicon`, which has {WORDS} of three letters and a space. A token is one
        letter or the space. Let the model write with its KV cache. Each token is drawn with the
        probability that the model gives it:
    """)
    model, draws = trained().model, torch.Generator().manual_seed(4)
    caches, token = model.caches(64), torch.zeros(64, 1, dtype=torch.int64)
    written = []
    with torch.no_grad(), one_thread():
        for _ in range(RUN.context):
            chances = model(token, caches)[:, -1].softmax(dim=-1)
            token = torch.multinomial(chances, 1, generator=draws)
            written.append(token)
    text: Int[Tensor, "sequences seq"] = torch.cat(written, dim=1)
    line = spelled(text[0])  # @measure line
    known = {spelled(word) for word in lexicon()}
    words = [spelled(word) for word in text.reshape(-1, 4)]
    right = sum(word in known for word in words) / len(words)  # @measure right as %
    chance = len(known) / 27**4  # @inspect chance as %
    assert 6.0e-5 < chance < 6.1e-5, "by chance"
    # Ten runs from other beginnings: 0.926 to 0.961.
    assert 0.9 < right < 0.98, "words of the lexicon, among all that it wrote"
    unwritten = sum(word not in words for word in known)  # @measure unwritten
    assert unwritten == 0, "and each of them was written"  # @zero: none is missing
    question(r"""
        How many words of three letters and a space could a model write that has learned only where
        the spaces are?
    """, answer=26**3, check=len({(a, b, c) for a in range(26) for b in range(26) for c in range(26)}), unit="words", why="Any letter could stand in each of the three places.")


def the_formulas_of_a_transformer() -> None:
    """The formulas of a Transformer, with one model's numbers."""
    note(r"""
        Which formulas are worth remembering? These seven. The table below gives each of them with
        its value for Llama-3-8B, with `8192` tokens in `bfloat16`. The letters are those of the
        whole lecture:

        | letter | is |
        |---|---|
        | $L$, $d$, $h$ | layers; width of a token; width inside the feed-forward part |
        | $a$, $c$, $d_{kv}$ | heads of queries; numbers in a head; numbers in all keys of a token |
        | $V$, $T$, $B$ | tokens in the vocabulary; tokens of context; sequences |
        | $P$, $N$ | all parameters; weights in the matrices of blocks and head |
    """)
    config, tokens = LLAMA_3_8B, 8192
    layers, d, kv = config.layers, config.width, config.kv_width
    h, vocabulary = config.hidden, config.vocabulary
    blocks = layers * (2 * d * d + 2 * d * kv + 3 * d * h)
    parameters = blocks + layers * 2 * d + d + 2 * vocabulary * d  # @inspect parameters
    assert parameters == parameter_count(config), "parameters"
    weights = blocks + vocabulary * d  # @inspect weights
    training = 6 * weights + 12 * layers * d * tokens  # @inspect training as FLOP
    assert training == 3 * forward_flops(config, 1, tokens), "a token"
    kept = 12 * d + 4 * kv + 8 * h  # @inspect kept as B
    exact = activation_bytes(config, tokens)
    assert round(kept / exact, 2) == 1, "left by a token in a layer"
    cache = 2 * layers * kv * tokens * 2  # @inspect cache as B
    assert cache == cache_bytes(config, tokens), "of KV cache"
    sequences = 16
    reading, working = 2 * weights / BANDWIDTH, 2 * sequences * weights / PEAK
    waits_for = reading / working  # @inspect waits_for as times
    assert 18 < waits_for < 19, "as long for weights as for arithmetic"
    step = max(reading, working) + sequences * cache / BANDWIDTH  # @inspect step as s
    expected = step_seconds(config, sequences, tokens)
    assert math.isclose(step, expected), "for a token in each of them"
    mfu = 0.4
    speed = mfu * PEAK / training  # @inspect speed as tokens/s
    assert 6800 < speed < 6900, "on a card, at an MFU of 40 %"
    note(rf"""
        | what | formula | here | shown in |
        |---|---|---|---|
        | parameters | $L(2d^2 + 2d\,d_{{kv}} + 3dh + 2d) + d + 2Vd$ | {parameters:,} | [@eq:parameters] |
        | FLOPs of training, a token | $6N + 12LdT$ | {training / 1e9:.1f} GFLOP | [@eq:training] |
        | kept for the backward pass, a token and layer | $12d + 4d_{{kv}} + 8h$ | {kept:,} B | [@eq:activations] |
        | KV cache | $2L\,d_{{kv}}\,T \cdot 2$ | {cache:,} B | [@eq:cache] |
        | decoding step, {sequences} texts | $\max(2N/\text{{bandwidth}}, 2BN/\text{{peak}}) + B \cdot \text{{cache}}/\text{{bandwidth}}$ | {1e3 * step:.1f} ms | [@eq:step] |
        | time of a block | $\sum \max(\text{{FLOPs}}/\text{{peak}}, \text{{bytes}}/\text{{bandwidth}})$ | {1e3 * waits(tokens).card:.1f} ms | [@eq:block-time] |
        | tokens a second, training | $\text{{MFU}} \cdot \text{{peak}} / (6N + 12LdT)$ | {speed:,.0f} at {mfu:.0%} | [@eq:mfu] |
    """)
    question(r"""
        How many tokens a second does one card train on at an MFU of `40` %, if it promises
        `989.5e12` FLOP/s, and the model is Llama-3-8B with a short context? It has `7504658432`
        weights in matrices.
    """, answer=0.4 * 989.5e12 / (6 * 7504658432), check=0.4 * PEAK / (3 * forward_flops(config, 1, 0)),
        unit="tokens/s", within=0.05,
        why="With a short context attention is left out, and a token takes $6N$ FLOPs.")
