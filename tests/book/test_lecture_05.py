"""Lecture 05: its formulas and schedules against plain Python that adds up tokens, steps and bytes one by one."""

from __future__ import annotations

import heapq
import importlib
import itertools
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.book.test_lecture_04 import value

from litbook.record.model import Record

PEAK, BANDWIDTH = Fraction("989.5e12"), Fraction("3.35e12")  # of an H100
MATRICES = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)  # weights of the blocks of Llama-3-8B
HEAD = 128256 * 4096
TOKEN = sum(
    2 for _ in range(32) for _ in ("key", "value") for _ in range(8 * 128)
)  # bytes of a token in the cache


@pytest.fixture(scope="module")
def lecture(repo: Path) -> Any:
    """Makes a module of the lecture from its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(repo / "lectures"), *sys.path])
        yield lambda name: importlib.import_module(f"lecture_05.{name}")


def step(
    batch: int, context: int, weight: Fraction = Fraction(2), element: Fraction = Fraction(2)
) -> Fraction:
    """Seconds of a decode step, from bytes and FLOPs."""
    reading = weight * (MATRICES + HEAD) / BANDWIDTH
    arithmetic = Fraction(batch * 2 * (MATRICES + HEAD)) / PEAK
    return max(reading, arithmetic) + batch * context * TOKEN * element / 2 / BANDWIDTH


# ---------------------------------------------------------------------------- passes


@pytest.mark.parametrize("tokens, earlier", [(1, 0), (7, 0), (5, 9)])
def test_a_prefill_costs_what_its_tokens_cost_one_by_one(lecture: Any, tokens: int, earlier: int) -> None:
    flops = sum(
        2 * MATRICES + sum(4 * 32 * 4096 for _ in range(position + 1))
        for position in range(earlier, earlier + tokens)
    )
    assert lecture("llama").prefill_flops(tokens, earlier) == flops + 2 * HEAD


@pytest.mark.parametrize("batch", [1, 64, 295, 296, 600])
@pytest.mark.parametrize("context", [0, 2048])
def test_a_step_takes_the_longer_of_weights_and_arithmetic_and_then_all_caches(
    lecture: Any, batch: int, context: int
) -> None:
    made = lecture("llama").step_seconds(batch, context)
    assert made == pytest.approx(float(step(batch, context)), rel=1e-12)
    smaller = lecture("llama").step_seconds(batch, context, weight=1, element=0.5)
    assert smaller == pytest.approx(float(step(batch, context, Fraction(1), Fraction(1, 2))), rel=1e-12)


def test_the_caches_that_fit_are_put_in_one_by_one(lecture: Any) -> None:
    left, count = 72 * 10**9 - 2 * (MATRICES + 2 * HEAD + 65 * 4096), 0
    while (left := left - 8192 * TOKEN) >= 0:
        count += 1
    assert lecture("llama").sequences_that_fit(8192) == count


def test_the_batches_of_a_limit_are_the_largest_that_keep_it(record_05: Record) -> None:
    expected = []
    for context in (2048, 4096, 8192):
        batch = next(b for b in itertools.count(1) if step(b + 1, context) > Fraction(20, 1000))
        expected.append(batch)
    assert value(record_05, "a_latency_target_sets_the_batch", "by_target") == expected


def test_steps_of_the_table_are_these_seconds(record_05: Record) -> None:
    shown = value(record_05, "a_step_is_a_sum", "tpot")
    assert shown == [round(float(1000 * step(b, 2048)), 1) for b in (1, 8, 32, 64, 128)]


# ---------------------------------------------------------------------------- schedules


def finished(lengths: list[int], slots: int) -> int:
    """When the last answer ends, if the slot that is free first takes the next one: a queue of events."""
    free = [0] * slots
    for length in lengths:
        heapq.heapreplace(free, free[0] + length)
    return max(free)


def test_the_answers_by_hand_end_when_a_queue_of_events_ends(record_05: Record) -> None:
    fixed = max(1, 3) + 2
    assert value(record_05, "a_slot_is_refilled_at_once", "by_hand") == [fixed, finished([1, 3, 2], 2)]


def test_the_gain_is_that_of_other_lengths_of_the_same_kind(record_05: Record) -> None:
    fixed, refilled = (value(record_05, "a_slot_is_refilled_at_once", it) for it in ("fixed", "refilled"))
    draw = random.Random(5)
    lengths = [int(draw.expovariate(1 / 20)) + 1 for _ in range(8000)]
    groups = [lengths[i : i + 32] for i in range(0, len(lengths), 32)]
    assert fixed / refilled == pytest.approx(sum(map(max, groups)) / finished(lengths, 32), rel=0.08)


def test_prompts_that_queue_one_by_one_wait_as_long_as_the_formula_says(record_05: Record) -> None:
    draw, time, free, stays = random.Random(7), 0.0, 0.0, 0.0
    for _ in range(300_000):
        time += draw.expovariate(0.8)
        free = max(free, time) + draw.expovariate(1)
        stays += free - time
    formula = value(record_05, "waiting_grows_with_the_load", "[round(f, 2) for f in formula]")
    assert formula[1] == pytest.approx(stays / 300_000, rel=0.06)


@pytest.mark.parametrize("chunk, name", [(192, "chunk_of_192"), (512, "chunk_of_512"), (4096, "at_once")])
def test_a_chunk_takes_what_its_tokens_take_one_by_one(record_05: Record, chunk: int, name: str) -> None:
    """The longest step of a prompt of 4096 tokens beside 64 users; the lecture leaves out the prompt's attention."""
    reading, users = 2 * (MATRICES + HEAD) / BANDWIDTH, 64 * 2048 * TOKEN / BANDWIDTH
    steps = []
    for first in range(0, 4096, chunk):
        positions = range(first, min(4096, first + chunk))
        work = sum(2 * MATRICES + 4 * 32 * 4096 * (position + 1) for position in positions)
        work += 2 * HEAD + 64 * 2 * (MATRICES + HEAD)
        steps.append(max(reading, work / PEAK) + users + first * TOKEN / BANDWIDTH)
    made = value(record_05, "chunks_of_a_prompt_share_steps", name)
    assert made == pytest.approx(float(max(steps)), rel=0.06)
    alone = max(reading, 2 * (MATRICES + HEAD) * (64 + chunk) / PEAK) + users  # of its matmuls with weights
    assert made == pytest.approx(float(alone), rel=1e-9)


# ---------------------------------------------------------------------------- the cache


@pytest.mark.parametrize("seed", range(10))
def test_pages_hold_what_one_piece_of_memory_holds_whoever_comes_and_goes(lecture: Any, seed: int) -> None:
    cache, draw = lecture("cache"), random.Random(seed)
    pool, free = torch.zeros(2, 12, cache.PAGE, 2, 3).double(), list(range(12))
    draw.shuffle(free)
    sequences = [cache.PagedCache(pool, free) for _ in range(3)]
    kept: list[list[torch.Tensor]] = [[], [], []]
    for _ in range(9):
        i = draw.randrange(3)
        new = torch.randn(2, 1, draw.randint(1, 2), 2, 3).double()
        kept[i].append(new)
        keys, values = sequences[i].extended(*new)
        whole = torch.cat(kept[i], dim=2)
        assert torch.equal(torch.stack([keys, values]), whole)
    tables = [page for sequence in sequences for page in sequence.table]
    assert len(set(tables + free)) == len(tables + free) == 12, "each page is in one table, or free"
    assert [len(s.table) for s in sequences] == [-(-s.length // cache.PAGE) for s in sequences]


def test_sequences_that_share_a_prefix_write_to_pages_of_their_own(lecture: Any) -> None:
    cache = lecture("cache")
    pool, free = torch.zeros(2, 8, cache.PAGE, 1, 1).double(), list(range(8))
    first = cache.PagedCache(pool, free)
    first.extended(*torch.ones(2, 1, 2 * cache.PAGE, 1, 1).double())
    (one,), (other,) = cache.share([first]), cache.share([first])
    one.extended(*torch.full((2, 1, 1, 1, 1), 2.0).double())
    keys, _ = other.extended(*torch.full((2, 1, 1, 1, 1), 3.0).double())
    assert keys.flatten().tolist() == [1.0] * 8 + [3.0]
    assert one.table[:2] == other.table[:2] == first.table
    assert one.table[2] != other.table[2]


def test_unused_room_of_pages_is_what_is_left_on_the_last_page(record_05: Record) -> None:
    draw = random.Random(3)
    lengths = [min(8192, int(draw.expovariate(1 / 600)) + 1) for _ in range(50_000)]
    unused = sum(-length % 16 for length in lengths) / len(lengths)
    assert value(record_05, "pages_waste_half_a_page", "unused") == pytest.approx(unused, rel=0.03)


def test_the_batches_of_smaller_caches_are_the_largest_that_keep_the_limit(record_05: Record) -> None:
    for name, weight, element in (("neither", 2, 2), ("only_weights", 1, 2), ("only_cache", 2, 1)):
        batch = next(
            b
            for b in itertools.count(1)
            if step(b + 1, 8192, Fraction(weight), Fraction(element)) > Fraction(1, 50)
        )
        assert value(record_05, "a_smaller_cache_lets_more_sequences_in", name) == batch, name


# ---------------------------------------------------------------------------- guesses and the bill


def test_the_gain_of_guesses_is_that_of_steps_one_by_one(record_05: Record) -> None:
    """For 128 users: checks are drawn until many tokens are there, each with its guesses' time."""
    draw, tokens, checks = random.Random(1), 0, 50_000
    for _ in range(checks):
        guesses = list(itertools.takewhile(lambda right: right, (draw.random() < 0.8 for _ in range(4))))
        tokens += 1 + len(guesses)
    small = 16 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192) + 128256 * 2048
    guess = max(2 * small / BANDWIDTH, 2 * small * 128 / PEAK)
    check = 2 * (MATRICES + HEAD) * 128 * 5 / PEAK
    alone = step(128, 0)
    gain = tokens * alone / (checks * (4 * guess + check))
    assert value(record_05, "guesses_pay_while_arithmetic_is_idle", "gains")[3] == pytest.approx(
        float(gain), abs=0.02
    )


def test_the_output_of_any_two_models_has_the_large_ones_distribution() -> None:
    """The rule of the page, with exact fractions: accept by p over q, else draw from what is missing."""
    draw = random.Random(2)
    for _ in range(50):
        p, q = ([Fraction(draw.randint(1, 9)) for _ in range(4)] for _ in range(2))
        p, q = [x / sum(p) for x in p], [x / sum(q) for x in q]
        kept = [b * min(Fraction(1), a / b) for a, b in zip(p, q, strict=True)]
        rest = [max(Fraction(0), a - b) for a, b in zip(p, q, strict=True)]
        refused = 1 - sum(kept)
        out = [k + (refused * r / sum(rest) if refused else 0) for k, r in zip(kept, rest, strict=True)]
        assert out == p


def test_a_million_tokens_cost_the_seconds_of_their_steps(record_05: Record) -> None:
    cents = {}
    for context, batch in ((2048, 193), (8192, 48)):
        steps = Fraction(10**6, batch)
        cents[context] = round(float(100 * steps * step(batch, context) * 2 / 3600), 2)
    prices = record_05.by_key["a_generated_token_costs_more"]
    claims = {claim.caption: claim for claim in prices.claims}
    assert f"cost {cents[2048]} cents" in next(it for it in claims if "generated" in it)
    assert list(cents.values()) == [5.74, 22.99]


@pytest.mark.parametrize("batch, context, tokens", [(1, 512, 1), (32, 2048, 1), (1, 512, 5)])
def test_the_bounds_that_a_gpu_is_compared_with_are_bytes_and_flops_one_by_one(
    lecture: Any, batch: int, context: int, tokens: int
) -> None:
    guesses = lecture("guesses")
    weights = sum(MATRICES // 32 for _ in range(8)) + HEAD
    seconds = max(2 * weights / BANDWIDTH, 2 * weights * batch * tokens / PEAK)
    seconds += batch * context * Fraction(TOKEN, 4) / BANDWIDTH
    bounds = guesses.bounds_of(guesses.EIGHT_LAYERS, float(BANDWIDTH), float(PEAK))
    assert any(bound == pytest.approx(float(seconds), rel=1e-9) for bound in bounds[:3])
    pairs = sum(position + 1 for position in range(2048))
    prefill = (2048 * 2 * weights + 8 * 4 * 4096 * pairs) / PEAK
    assert bounds[3] == pytest.approx(float(prefill), rel=1e-9)


@pytest.mark.parametrize("shared", [1, 4])
def test_query_heads_of_one_kv_head_share_its_state(shared: int) -> None:
    """Grouped-query attention without softmax, from one state per KV head: the page counts 8, and not 32."""
    draw = torch.Generator().manual_seed(6)
    queries = torch.randn(2 * shared, 30, 4, generator=draw).double()
    keys, values = torch.randn(2, 2, 30, 4, generator=draw).double()
    all_keys, all_values = (x.repeat_interleave(shared, dim=0) for x in (keys, values))
    pairs = (queries @ all_keys.mT).tril() @ all_values
    states = torch.einsum("htk,htv->htkv", keys, values).cumsum(dim=1)  # of each KV head, after each token
    made = torch.einsum("hstk,htkv->hstv", queries.unflatten(0, (2, shared)), states)
    assert torch.allclose(made.flatten(0, 1), pairs)


def test_experts_that_a_batch_reads_are_counted_one_by_one(record_05: Record) -> None:
    draw = random.Random(4)
    runs = [{e for _ in range(64) for e in draw.sample(range(256), 8)} for _ in range(50)]
    read = sum(map(len, runs)) / (50 * 256)
    assert value(record_05, "a_batch_reads_most_experts", "formula")[2] == pytest.approx(read, rel=0.02)


# ---------------------------------------------------------------------------- figures


def test_the_bars_of_slots_are_as_long_as_the_answers_and_never_overlap(lecture: Any) -> None:
    spans = [(0, 0, 3), (1, 0, 1), (1, 1, 3), (0, 3, 5)]
    (axes,) = lecture("figures").plot_slots({"a": spans}).axes
    boxes = [patch.get_bbox() for patch in axes.patches]
    assert [round(box.width + 0.08, 6) for box in boxes] == [end - start for _, start, end in spans]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_pages_are_drawn_with_as_many_tokens_as_sequences_have(lecture: Any) -> None:
    (axes,) = lecture("figures").plot_pages({"A": 9, "B": 6, "C": 3}, 4, order="ABACBA").axes
    tokens = [label.get_text() for label in axes.texts]
    assert sorted(tokens) == sorted(
        [f"A{i}" for i in range(9)] + [f"B{i}" for i in range(6)] + [f"C{i}" for i in range(3)]
    )
    assert len(axes.patches) == 6 * 4
