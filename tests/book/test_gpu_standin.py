"""The sections that need a GPU, run on a STAND-IN for one (`tests/standin.py`): no number here is any card's.

What is tested is that their code runs to its end, with names, shapes, dtypes, devices and the order of the
allocator's calls as on a GPU, at the sizes of a large card and on a card that is too small for them.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from tests.running import LECTURE_02, LECTURE_03
from tests.standin import Card as StandIn
from tests.standin import MiB, standin

from litbook.html import page
from litbook.lecture import parse
from litbook.record import model, recordings
from litbook.run import run

BIG = StandIn(memory=150_100_000_000, context=600 * MiB, cache=60 * MiB, tick=1e-4, data=False)
SMALL = StandIn(
    name="STAND-IN", memory=40 * MiB, context=8 * MiB, cache=MiB, launch=1e-4, bandwidth=2e9, link=1e9,
    rates={"float32": 5e10, "tf32": 2e11, "16": 5e11, "8": 8e11},
)  # fmt: skip
# On the small stand-in, whose tensors have values: the sections that make claims about these.
WITH_VALUES = [
    "deleting_returns_blocks_to_a_cache", "the_driver_knows_how_much_memory_there_is",
    "a_pinned_copy_does_not_wait", "the_bill_is_measured_on_the_gpu",
]  # fmt: skip
NEED_VALUES = {
    "five_formats_are_measured_here": {"mixed.sum().item() == 32**3", "plain.sum().item() == 32**3"},
    "a_pinned_copy_does_not_wait": {"torch.equal(there.cpu(), pageable)"},
}


def on(card: StandIn, path: Path, names: list[str]) -> model.Record:
    with standin(card):
        return run.run(path, sections=names, device="cuda")


def sections(path: Path) -> list[str]:
    return [f.name for f in parse.read(path, path.name).functions if f.requires == "cuda"]


def unmet(record: model.Record, names: list[str]) -> dict[str, set[str]]:
    """Claims of these sections that do not hold, by section."""
    found: dict[str, set[str]] = {}
    for section, claim in record.claims():
        if section.name in names and claim.verdict != "holds":
            found.setdefault(section.name, set()).add(claim.text)
    return found


@pytest.fixture(scope="module")
def lecture() -> Path:
    return LECTURE_02


@pytest.fixture(scope="module")
def big(lecture: Path) -> model.Record:
    return on(BIG, lecture, sections(lecture))


def measured(record: model.Record, section: str, text: str) -> list[model.Snapshot]:
    it = record.by_key[section]
    return [
        it.snapshots[v.value] for v in it.values if not v.frame and v.text == text and v.value is not None
    ]


@pytest.mark.slow  # below, on the small card, the sections that claim something about values run
def test_every_gpu_section_runs_to_its_end_at_the_sizes_of_a_large_card(
    lecture: Path, big: model.Record
) -> None:
    assert list(big.errors()) == []
    assert [v.text for section in big.sections for v in section.values if v.error] == []
    # Shown with what does not hold: they tell whether something was freed in the middle of a step.
    watched = measured(big, "the_bill_is_measured_on_the_gpu", "bills")
    assert unmet(big, sections(lecture)) == NEED_VALUES, watched
    (shape,) = measured(big, "five_formats_are_measured_here", "shape")
    assert isinstance(shape, model.Sequence)
    assert [getattr(n, "number", None) for n in shape.items] == [16384, 32768, 8192]
    assert big.main.seconds < 100  # of the stand-in's clock; a recording has five minutes


def test_what_cycles_hold_is_in_no_bill(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full collection may come in the middle of a step; the first optimizer of a process waits for one."""
    from lecture_02 import models, step

    batch = models.linear_batch
    monkeypatch.setattr(step, "linear_batch", lambda *of: (gc.collect(), batch(*of))[1])
    with standin(BIG):
        held: list[object] = [torch.empty(2**20, device="cuda")]
        held.append(held)
        del held
        found, _ = step.bill_on_card("Adam", width=64, layers=2, batch=4)
    assert found["optimizer state"] == 2 * found["parameters"] > 0
    assert found["activations"] > 0


def test_products_of_ones_in_one_byte_add_up() -> None:
    from lecture_02 import rates

    with standin(SMALL):
        sums = [product.sum().item() for product in rates.products_of_ones()]
    assert sums == [32**3, 32**3]


THEME = 20_500  # bytes that the theme adds to a part of a lecture at most, without blank lines


def heavy(record: model.Record, recording: model.Record) -> dict[str, int]:
    """The pages with the recorded values, by their bytes, that weigh more than a page may, and 2 % of it."""
    drawn = page.pages(record, recordings=[recording])
    return {name: size for name, text in drawn.items() if (size := len(text.encode()) + THEME) > 250_000}


@pytest.mark.slow
def test_with_a_cards_values_no_page_is_too_heavy(big: model.Record, record_02: model.Record) -> None:
    assert heavy(record_02, big) == {}


@pytest.mark.slow
def test_two_recordings_with_every_section_stay_below_a_megabyte_and_a_half(
    lecture: Path, big: model.Record
) -> None:
    committed = lecture.parent / "recordings" / "lecture_02.cpu.json"
    assert (
        len(recordings.dumps(big)) + committed.stat().st_size < 3 * 2**19
    )  # format 4 spells out what format 3 left out


def test_a_card_that_is_too_small_gets_smaller_sizes_and_the_record_says_so(lecture: Path) -> None:
    record = on(SMALL, lecture, WITH_VALUES)
    assert list(record.errors()) == []
    short = {
        "the_driver_knows_how_much_memory_there_is": {"0.98 < ratio < 1.08", "0.95 < part <= 1"}
    }  # of cards that are known
    assert unmet(record, WITH_VALUES) == short
    (width,) = measured(record, "the_bill_is_measured_on_the_gpu", "width")
    assert isinstance(width, model.Scalar)
    assert 64 <= int(str(width.number)) < 2048
    said = [p.text for section in record.sections for p in section.pieces if p.kind == "note"]
    assert [text for text in said if f"This GPU has room for `{width.number}` only, not for `2048`." in text]
    (card,) = measured(record, "the_driver_knows_how_much_memory_there_is", "card")
    assert getattr(card, "text", "") == "None"  # nobody knows it: no peak, and no share of one


def test_a_card_without_fp8_units_times_four_formats(lecture: Path) -> None:
    older = StandIn(name="NVIDIA A100-SXM4-80GB", memory=85_000_000_000, capability=(8, 0), data=False)
    older.rates = {"float32": 18e12, "tf32": 120e12, "16": 250e12, "8": 0.0}
    older.bandwidth = 1.8e12
    names = ["five_formats_are_measured_here", "the_roof_is_measured_here"]
    record = on(older, lecture, names)
    assert list(record.errors()) == []
    timed = measured(record, names[0], "timed[name]")
    assert len(timed) == 4
    missing = {t for texts in unmet(record, names).values() for t in texts}
    assert "mixed.sum().item() == 32**3" in missing  # not reached
    assert "max(known.values()) <= 1" not in missing


def test_the_gpu_sections_of_lecture_03_run_to_their_end_at_the_sizes_of_a_large_card(
    record_03: model.Record,
) -> None:
    names = sections(LECTURE_03)
    assert names == ["eager_compiled_and_in_a_graph", "decoding_is_timed_on_the_gpu"]
    record = on(replace(BIG, tick=5e-3), LECTURE_03, names)
    assert [(section.key, error) for section, error in record.errors()] == []
    assert unmet(record, names) == {}
    assert heavy(record_03, record) == {}
    (paces,) = measured(record, names[1], "paces")
    assert isinstance(paces, model.Sequence) and len(paces.items) == 3
    (between,) = measured(record, names[0], "between")  # of this card's clock: bytes over bandwidth
    assert (
        isinstance(between, model.Scalar) and isinstance(between.number, float) and 0.3 < between.number < 0.6
    )
    texts = [p.text for s in record.sections if s.key in names for p in s.pieces if p.kind == "note"]
    assert [text for text in texts if text.startswith("NVIDIA H200")] == [
        "NVIDIA H200, in µs:",
        "NVIDIA H200:",
    ]
    assert [1 + text.count("\n|") for text in texts if text.startswith("| ")] == [2 + 4, 2 + 3]
    committed = LECTURE_03.parent / "recordings" / "lecture_03.cpu.json"
    assert (
        len(recordings.dumps(record)) + committed.stat().st_size < 3 * 2**19
    )  # format 4 spells out what format 3 left out


# ---------------------------------------------------------------------------- the stand-in itself


def test_the_stand_in_refuses_what_a_gpu_refuses() -> None:
    with standin(StandIn(data=True)) as state:
        x, y = torch.ones(4, 4, device="cuda"), torch.ones(4, 4)
        assert (x.device, y.device) == (torch.device("cuda", 0), torch.device("cpu"))
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            x @ y
        assert torch.equal((x @ y.to("cuda")).cpu(), torch.full((4, 4), 4.0))
        with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
            torch.empty(2**30, device="cuda")
        with pytest.raises(TypeError, match="can't convert cuda:0"):
            x.numpy()
        narrow = torch.ones(32, 32, device="cuda").to(torch.float8_e4m3fn)
        one = torch.ones((), device="cuda")
        with pytest.raises(AssertionError, match="row-major times column-major"):
            torch._scaled_mm(narrow, narrow, one, one, out_dtype=torch.bfloat16)
        assert state.allocated() > 0
        narrow_too = x.half()
        late = torch.cuda.Event(enable_timing=True)
        late.record()
        for asks in (
            torch.cuda.synchronize, torch.cuda.empty_cache, late.query, late.synchronize, x.cpu, x.sum().item,
            lambda: torch.ones(4).to("cuda"), partial(torch.matmul, narrow_too, narrow_too),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
                with torch.cuda.graph(torch.cuda.CUDAGraph()):
                    asks()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x @ x  # a product of a kind that has run before
        del x, y, narrow, narrow_too, one, late, asks
        assert state.allocated() == 0
    assert not torch.cuda.is_available()
