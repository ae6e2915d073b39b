"""The whole model: its tables and its blocks, and a small one trained, with every number predicted first."""
import math
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import NamedTuple

import torch
import torch.nn.functional as F
from counters import Alive, flops, saved_bytes_of
from jaxtyping import Int
from timing import one_thread
from torch import Tensor, nn

from litbook import aside, figure, note, question

from .block import Transformer
from .counts import Config, forward_flops, parameter_count
from .figures import plot_loss, plot_shares
from .published import LLAMA_3_8B, LLAMA_32_1B, MODELS, QWEN_25_HALF_B
from .regimes import operations_of, quickest, shares


def the_whole_model() -> None:
    """The whole model."""
    note(r"""
        A Transformer is its blocks, and a table at either end: one that turns tokens into numbers,
        one that turns numbers into scores for tokens. A small model is to a good part table. Then
        the test of all the counting: a model is trained here, on text whose entropy is known, and
        before it starts, its loss, its FLOPs and its memory are written down.
    """)
    small_models_are_largely_tables()
    one_table_costs_flops_and_the_other_none()
    a_text_with_a_known_entropy()
    the_run_is_predicted()
    the_run()
    its_memory_is_measured()
    it_writes_what_it_read()


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
    """Tables grow with the width of a model, blocks with its square."""
    note(r"""
        Where are the parameters of a whole model? The tables have a row of the model's width for
        each token of the vocabulary, so they grow with the width. A block grows with its square,
        and larger models have more blocks. Six published models with large vocabularies, each built
        without data [@qwen25-05b; @llama-32; @llama3]:
    """)
    models = {n: c for n, c in MODELS.items() if c.vocabulary > 100_000}
    found = {name: parts_of(config) for name, config in models.items()}
    totals = {name: sum(parts.values()) for name, parts in found.items()}  # @inspect totals
    formula = {name: parameter_count(config) for name, config in models.items()}
    assert totals == formula, "by building, by formula"
    table = {name: shares(parts)["tables"] for name, parts in found.items()}  # @inspect table as %
    falling = [table[name] for name in models if not models[name].tied]
    assert falling == sorted(falling, reverse=True), "larger, less of a table"
    assert 0.27 < table["Qwen2.5-0.5B"] < 0.28, "the smallest"
    assert round(table["Llama-3-405B"], 2) == 0.01, "the largest"
    figure(plot_shares({name: shares(parts) for name, parts in found.items()}),
        caption="Where the parameters are, from the smallest of six models to the largest.",
        alt=r"""
            Six stacked bars. The share of tables falls from more than a quarter to next to nothing,
            and the feed-forward part takes most of the rest, with attention a narrow band.
        """)
    note("The small ones are *tied*: one table serves at both ends. Untied, it would be there twice:")
    untied = parts_of(replace(LLAMA_32_1B, tied=False))
    twice = untied["tables"] / sum(untied.values())  # @inspect twice as %
    assert 0.35 < twice < 0.36, "of a model of that size"
    question(r"""
        The smallest of these with a vocabulary of `32000` tokens instead, still tied. What share of
        its parameters is the table then?
    """, answer=32000 * 896 / parameter_count(replace(QWEN_25_HALF_B, vocabulary=32000)), unit="%")


@aside
def one_table_costs_flops_and_the_other_none() -> None:
    """Looking up a row is no work; scoring every token is a product."""
    note(r"""
        Both tables are of one shape. A token picks its row from the first, and all rows of the
        second are multiplied with what comes out. The smaller Llama-3.2 [@llama-32], a single
        token, without data:
    """)
    d, rows = LLAMA_32_1B.width, LLAMA_32_1B.vocabulary  # @inspect d, rows
    with torch.device("meta"):
        table = torch.empty(rows, d, dtype=torch.bfloat16)
        token = torch.zeros(1, dtype=torch.int64)
        x = torch.empty_like(table[:1])
    lookup = operations_of(lambda: F.embedding(token, table))[0]
    scores = operations_of(lambda: x @ table.t())[-1]
    assert lookup.flops == 0, "looked up"  # @zero
    assert scores.flops == 2 * rows * d, "two for each number of the table"
    assert lookup.read == lookup.written + token.nbytes, "one row moves"
    assert scores.read > table.nbytes, "the whole table does"
    share = scores.flops / forward_flops(LLAMA_32_1B, 1, 0)  # @inspect share as %
    assert 0.21 < share < 0.22, "of all FLOPs of a forward pass"
    note(r"""
        So which parameters belong into the rule of two FLOPs for each of them [@kaplan2020]? Those
        of the head and the blocks. A tied table counts once, and rightly. Of two tables one is too
        many:
    """)
    over = {name: 2 * parameter_count(c) / forward_flops(c, 1, 0)
            for name, c in {"1B": LLAMA_32_1B, "8B": LLAMA_3_8B}.items()}  # @inspect over as times
    assert round(over["1B"], 4) == 1.0001, "tied: the gains alone are too many"
    assert 1.06 < over["8B"] < 1.08, "untied: the rule says more than is done"
    question("How many FLOPs does the head of Llama-3-8B take for a single token?",
             answer=2 * LLAMA_3_8B.vocabulary * LLAMA_3_8B.width, unit="FLOP")


# --- a run

RUN = Config(layers=2, width=256, heads=4, kv_heads=2, hidden=704, vocabulary=27, context=32)
STEPS, BATCH, RATE = 120, 4, 2e-3  # steps, sequences in each, the highest learning rate
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
    """Text made of words drawn at random has an entropy that can be written down."""
    note(r"""
        How low can a loss get? For human language nobody knows. So this model reads a language made
        for it: a lexicon of words of three letters, each word as likely as any other, whatever came
        before. A line of it:
    """)
    words: Int[Tensor, "word letter"] = lexicon()
    draws = torch.Generator().manual_seed(0)
    text: Int[Tensor, "sequences seq"] = write_text(words, 1, draws)
    line = spelled(text[0, 1:])  # @inspect line
    different = {spelled(word) for word in words}
    assert len(different) == WORDS, "all words different"
    note(r"""
        Whoever knows the lexicon guesses a word with one chance in as many as there are. Within a
        word the first token is hard, and the last, a space, is certain. But *surprises*, the
        negative logarithms of chances, add up, and over any word they come to the logarithm of the
        number of words. With natural logarithms the unit is the *nat*:
    """)

    def fits(prefix: str) -> int:
        return sum(word.startswith(prefix) for word in different)

    surprise = [
        [math.log(fits(w[:i]) / fits(w[:i + 1])) for i in range(4)]
        for w in sorted(different)
    ]
    by_letter = [sum(s[i] for s in surprise) / WORDS for i in range(4)]  # @inspect by_letter
    assert by_letter[3] == 0, "the space is certain"  # @zero
    totals = {round(sum(s), 9) for s in surprise}  # @inspect totals
    assert totals == {round(math.log(WORDS), 9)}, "the same for every word"
    floor = math.log(WORDS) / 4  # @inspect floor
    assert round(floor, 2) == 0.87, "for a token, on average"
    question(r"""
        With `256` words of three letters and a space, which loss is the lowest that a model can
        reach?
    """, answer=math.log(256) / 4, unit="nats a token", within=0.02,
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


def the_run_is_predicted() -> None:
    """Loss, FLOPs and memory are known before the first step."""
    note(rf"""
        What follows is written before the run. The *model* is the block of this lecture,
        `{RUN.layers}` of them, `{RUN.width}` wide. Each of `{STEPS}` steps reads `{TOKENS}` tokens
        that were never seen before.
    """)
    count = parameter_count(RUN)  # @inspect count
    model = fresh_model()
    assert count == sum(p.numel() for p in model.parameters()), "parameters"
    note(r"""
        **Loss.** The loss is the mean surprise. A model that knows nothing gives each of `27`
        tokens the same chance and loses the logarithm of their number. It ends above the entropy of
        the text.
    """)
    start, floor = math.log(RUN.vocabulary), math.log(WORDS) / 4  # @inspect start, floor
    held_out = write_text(lexicon(), 64, torch.Generator().manual_seed(9))
    with torch.no_grad():
        untrained = loss_of(model, held_out).item()  # @inspect untrained
    assert math.isclose(untrained, start, rel_tol=0.05), "knows nothing yet"
    note(r"""
        **FLOPs.** Forward, and twice that backward. There is no first product whose input is data:
        below the first block lies the embedding, and it wants its gradient.
    """)
    step = 3 * forward_flops(RUN, TOKENS, RUN.context)  # @inspect step as FLOP
    counted = flops(lambda: loss_of(model, held_out[:BATCH]).backward())
    assert counted == step, "as PyTorch counts"
    total = STEPS * step  # @inspect total as FLOP
    rule = 6 * count * TOKENS * STEPS / total  # @inspect rule as %
    assert 0.97 < rule < 0.99, "six for each parameter and token, against it"
    note("**Memory.** Parameters, gradients and two moments, `4` bytes each, and what autograd keeps:")
    state = 4 * 4 * count  # @inspect state as B
    text, known = held_out[:BATCH], model.parameters()
    kept = saved_bytes_of(lambda: loss_of(model, text), known)  # @inspect kept as B
    assert kept < state, "the batch is small"
    question(r"""
        How many FLOPs will a run over the same number of tokens take if the sequences are `4` times
        as long?
    """, answer=STEPS * 3 * forward_flops(RUN, TOKENS, 4 * RUN.context), unit="FLOP", within=0.05,
        why="Only attention looks at the length; the matrices do not.")


class Run(NamedTuple):
    """What a training run left: its model, the loss and the seconds of every step."""

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
        started = perf_counter()
        optimizer.param_groups[0]["lr"] = rate_at(step)
        optimizer.zero_grad()
        loss = loss_of(model, text)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(perf_counter() - started)
    return Run(model, losses, seconds)


def the_run() -> None:
    """The loss falls from the logarithm of the vocabulary to the entropy of the text."""
    note("Now it runs, on the processor that built this page. Is the loss what it was said to be?")
    run = trained()
    first, last = run.losses[0], sum(run.losses[-20:]) / 20  # @measure first, last
    start, floor = math.log(RUN.vocabulary), math.log(WORDS) / 4
    held_out = write_text(lexicon(), 64, torch.Generator().manual_seed(9))
    with torch.no_grad():
        reached = loss_of(run.model, held_out).item()  # @measure reached
    assert floor < reached < 1.1 * floor, "just above, on text it never saw"
    figure(plot_loss(run.losses, start, floor), caption=r"""
        Loss of each step. Dashed, what was predicted: the logarithm of the vocabulary, and the
        entropy of the text.
    """, alt=r"""
        A curve that starts at the upper dashed line, falls steeply at first, and comes down close
        to the lower one.
    """)
    note(r"""
        And the time? It ran on a single thread, so that the same sums are added up in the same
        order anywhere. No such run can be faster than its FLOPs at the rate of the best product:
    """)
    a = torch.randn(512, 512)
    peak = 2 * 512**3 / quickest(lambda: a @ a)  # @measure peak as FLOP/s
    work = STEPS * 3 * forward_flops(RUN, TOKENS, RUN.context)  # @inspect work as FLOP
    least, spent = work / peak, sum(run.seconds)  # @measure least as s, spent as s
    assert least < spent, "as long as its products, and longer"
    mfu = least / spent  # @measure mfu as %
    note(r"""
        The rest goes to what was counted [earlier](#the_largest_of_three_times_decides): small
        products, passes over memory, calls, and the optimizer, which touches every parameter for so
        few tokens.
    """)
    question("The same run on a card with an MFU of `40` % of `989.5e12` FLOP/s: how many seconds?",
             answer=work / (0.4 * 989.5e12), unit="s")


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
    """In a plain step the four kinds of memory are never all there in full."""
    note(r"""
        How much memory does a step take at its fullest? In this run less than the four kinds added
        up: parameters, gradients, optimizer state and activations. `most_alive` watches one step of
        the run. It returns the most bytes that tensors made in it hold at any moment, and the bytes
        of Adam's two averages.
    """)
    model = fresh_model()
    text = write_text(lexicon(), BATCH, torch.Generator().manual_seed(2))
    weights = sum(p.nbytes for p in model.parameters())  # @inspect weights as B
    kept = saved_bytes_of(lambda: loss_of(model, text), model.parameters())  # @inspect kept as B
    made, averages = most_alive(model, text)  # @measure made as B
    assert averages == 2 * weights, "two for each parameter"
    assert kept < made, "all that autograd kept, and more"
    assert made < kept + weights, "but not the gradients besides"
    peak = weights + averages + made  # @measure peak as B
    predicted = 4 * weights + kept  # @inspect predicted as B
    below = 1 - peak / predicted  # @measure below as %
    assert peak < predicted, "less than the four together"
    note(r"""
        While the backward pass runs, gradients come and activations go. The last gradient arrives
        when hardly an activation is left. So the peak lies below the sum, by at most about the
        smaller of the two, gradients or activations; passing tensors take some of it back.
        Gradients left from an earlier batch are there from the start, and the gap is gone.
    """)
    question("The batch is `8` times as large. How many bytes does autograd keep then?",
             answer=saved_bytes_of(lambda: loss_of(model, text.repeat(8, 1)), model.parameters()), unit="B",
             within=0.05,
             why="As many times as the batch, or nearly: what is kept is kept for each token.")


@aside
def it_writes_what_it_read() -> None:
    """The trained model writes words of the language, and hardly any that are not."""
    note(rf"""
        A loss is an average. Did the model learn the language? That has no grammar: it is a row of
        words, drawn from `lexicon`, which has {WORDS} of three letters and a space. A token is one
        letter or the space. Let the model write, with the cache of this lecture, each token drawn
        with the probability that the model gives it:
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
    assert 0.85 < right < 1, "words of the lexicon, among all that it wrote"
    unwritten = sum(word not in words for word in known)  # @measure unwritten
    assert unwritten == 0, "and each of them was written"  # @zero
    question(r"""
        How many words of three letters and a space could a model write that has learned only where
        the spaces are?
    """, answer=26**3, unit="words", why="Any letter could stand in each of the three places.")
