"""Napkin math: the book's formulas, and the calculator page that has to give the same in a real browser."""

from __future__ import annotations

import html
import json
import logging
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import PluginCollection
from mkdocs.structure.files import Files
from tests.book.test_preview import CONFIG, lecture, serving
from tests.browser.test_browser import CONTRAST
from tests.running import REPO, sampled

import calculator
import hardware
import napkin
from litbook.markdown.bibliography import BibliographyEntry

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# ------------------------------------------------------------------------ the formulas


def test_the_run_of_lecture_02_takes_144_days() -> None:
    rate = hardware.peak(hardware.CARDS["H100 SXM"], "bfloat16")
    found = napkin.days(70 * 10**9, 15 * 10**12, 1024, rate, 0.5)
    assert found == pytest.approx(143.9266, abs=1e-4)
    assert napkin.work(70 * 10**9, 15 * 10**12) == 63 * 10**23


@given(
    n=st.floats(1e6, 1e13).map(round), tokens=st.floats(1e6, 1e15).map(round),
    within=st.floats(0.001, 1e6), peak=st.floats(1e12, 1e16), mfu=st.floats(0.001, 1),
)  # fmt: skip
def test_as_many_devices_as_needed_are_done_in_time_and_one_fewer_are_not(
    n: int, tokens: int, within: float, peak: float, mfu: float
) -> None:
    needed = napkin.devices_for(n, tokens, within, peak, mfu)
    assert needed is not None and needed >= 1
    if needed < 1e7:
        taken = napkin.days(n, tokens, needed, peak, mfu)
        assert taken is not None and taken <= within * (1 + 1e-12)
    if 1 < needed < 1e7:
        longer = napkin.days(n, tokens, needed - 1, peak, mfu)
        assert longer is not None and longer > within * (1 - 1e-9)


def test_the_run_of_lecture_02_in_a_month_needs_almost_five_thousand_devices() -> None:
    rate = hardware.peak(hardware.CARDS["H100 SXM"], "bfloat16")
    assert napkin.devices_for(70 * 10**9, 15 * 10**12, 30, rate, 0.5) == 4913
    assert napkin.devices_for(1, 1, 30, None, 0.5) is None


def test_without_a_peak_there_are_no_days() -> None:
    assert napkin.days(1, 1, 1, hardware.peak(hardware.CARDS["T4"], "bfloat16"), 0.5) is None


def test_sharding_divides_the_state_and_nothing_else_does() -> None:
    assert napkin.memory_per_device(1e9, 16, 8, sharded=False) == 16e9
    assert napkin.memory_per_device(1e9, 16, 8, sharded=True) == 2e9
    assert napkin.largest_model(80e9, 16, 8, sharded=False) == 5 * 10**9
    assert napkin.largest_model(80e9, 16, 8, sharded=True) == 40 * 10**9


def test_every_input_of_every_formula_changes_its_outcome() -> None:
    one = {"parameters": 1e9, "tokens": 1e12, "devices": 8, "peak": 1e15, "mfu": 0.4}
    for name, value in one.items():
        assert napkin.days(**{**one, name: value / 2}) != napkin.days(**one), name
    assert napkin.memory_per_device(2, 16, 4, sharded=True) != napkin.memory_per_device(
        1, 16, 4, sharded=True
    )
    assert napkin.memory_per_device(1, 16, 4, sharded=True) != napkin.memory_per_device(1, 8, 4, sharded=True)
    assert napkin.largest_model(80e9, 16, sharded=False) != napkin.largest_model(40e9, 16, sharded=False)


def test_what_the_largest_model_keeps_fits_and_one_more_parameter_does_not() -> None:
    for per in (16, 18, 12, 0.5, 3.7):
        most = napkin.largest_model(80e9, per, sharded=False)
        assert most * per <= 80e9 * (1 + 1e-12)
        assert (most + 1) * per > 80e9


def test_the_recipes_weigh_what_lecture_02_weighs() -> None:
    assert {it.key: it.total for it in napkin.RECIPES} == {
        "adamw": 16, "adamw-mixed": 16, "adamw-mixed-grad32": 18, "adamw-mixed-state16": 12,
        "adamw-bfloat16-state32": 12, "adamw-bfloat16": 8, "momentum": 12, "sgd": 8,
    }  # fmt: skip


@pytest.mark.parametrize(("key", "kind", "options"), [
    ("adamw", "AdamW", {}), ("momentum", "SGD", {"momentum": 0.9}), ("sgd", "SGD", {}),
])  # fmt: skip
def test_a_real_optimizer_keeps_as_many_bytes(key: str, kind: str, options: dict[str, float]) -> None:
    import torch

    p = torch.nn.Parameter(torch.randn(1000))
    p.grad = torch.randn(1000)
    optimizer = getattr(torch.optim, kind)([p], **options)
    optimizer.step()
    state = sum(v.nbytes for v in optimizer.state[p].values() if torch.is_tensor(v) and v.ndim)
    recipe = next(it for it in napkin.RECIPES if it.key == key)
    assert (p.nbytes + p.grad.nbytes + state) / p.numel() == recipe.total
    assert state / p.numel() == recipe.state


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("mfu", 1.5, "mfu has to be from 0.0001 to 1, not 1.5"),
        ("mfu", 0, "mfu has to be"),
        ("parameters", -1, "parameters has to be from 1 to 1e+15, not -1"),
        ("tokens", 1e99, "tokens has to be from 1 to 1e+18, not 1e+99"),
        ("devices", 1.5, "devices has to be a whole number, not 1.5"),
        ("devices", math.nan, "devices has to be from 1 to 1e+07, not nan"),
        ("bytes", math.inf, "bytes has to be from 0.01 to 1000, not inf"),
    ],
)
def test_an_impossible_number_is_refused_with_its_limits(name: str, value: float, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        napkin.checked(name, value)


# ------------------------------------------------------------------------ the data of the page

CARD = {
    "name": "<b>",
    "memory": 10**9,
    "bandwidth": 1e12,
    "source": "x",
    "date": "2024",
    **dict.fromkeys(calculator.FORMATS, 1e12),
}
RECIPE = {"key": "k", "name": "</script><script>", "parameter": 4, "gradient": 4, "master": 0, "state": 8}


def constants(text: str) -> dict[str, Any]:
    return {
        name: json.loads(value) for name, value in re.findall(r"^export const (\w+) = (.*);$", text, re.M)
    }


def test_the_data_are_the_books_own() -> None:
    cards = [asdict(card) for card in hardware.CARDS.values()]
    limits = {name: asdict(limit) for name, limit in napkin.LIMITS.items()}
    found = constants(calculator.data(cards, [asdict(it) for it in napkin.RECIPES], limits, {}))
    assert found["LIMITS"] == limits
    assert found["RECIPES"] == [
        {"key": it.key, "name": it.name, "bytes": it.total, "weight": it.parameter, "gradient": it.gradient}
        for it in napkin.RECIPES
    ]
    for card in found["CARDS"]:
        own = hardware.CARDS[card["name"]]
        assert card["memory"] == own.memory
        assert card["peaks"] == {name: hardware.peak(own, name) for name in calculator.FORMATS}


def test_what_the_books_files_hold_is_text_on_the_page() -> None:
    script = calculator.data(
        [CARD], [RECIPE], {}, {"x": BibliographyEntry("x", "<i>", url="https://example.org/")}
    )
    assert "<" not in script
    page = calculator.cards_table(
        [CARD], {"x": BibliographyEntry("x", "<i>", url="https://example.org/?a&b")}
    )
    assert "&lt;b&gt;" in page and "<b>" not in page and "<i>" not in page
    assert '<a href="https://example.org/?a&amp;b">' in page
    assert "<script>" not in calculator.recipes_table([RECIPE])


def test_a_card_without_a_peak_says_not_available() -> None:
    page = calculator.cards_table([{**CARD, "float8": None}], {})
    assert page.count("not available") == 1


def test_every_source_on_the_page_is_linked(site: Path) -> None:
    body = (site / "calculator" / "index.html").read_text(encoding="utf-8")
    table = body[body.index("Dense peak rates") :]
    rows = re.findall(r"<tr>\s*<th scope=.?row.*?</tr>", table, re.S)
    assert len(rows) == len(hardware.CARDS)
    assert all(re.search(r'<a href="?https://', row) for row in rows)


def collected(root: Path) -> list[str]:
    """The files that the hook adds for the book in `root`."""
    config = MkDocsConfig(str(root / "mkdocs.yml"))
    config.plugins = PluginCollection()
    hook: Any = calculator  # MkDocs takes a module for a plugin
    config.plugins["calculator"] = hook
    return [file.src_uri for file in config.plugins.on_files(Files([]), config=config)]


def test_this_book_has_calculator_data_and_puts_them_on_its_page(repo: Path) -> None:
    assert collected(repo) == ["assets/calculator-data.js"]
    page = calculator.on_page_markdown((repo / "docs" / "calculator.md").read_text(encoding="utf-8"))
    assert "<!--" not in page and "989.5" in page


def test_the_preview_has_the_calculator_and_shows_a_saved_card(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "lectures").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "lectures" / calculator.BLOCK).mkdir()
    block_files = [str(calculator.BLOCK / name) for name in ("counts.py", "published.py")]
    for name in ("hardware.py", "napkin.py", "units.py", "references.bib", *block_files):
        shutil.copyfile(repo / "lectures" / name, tmp_path / "lectures" / name)
    (tmp_path / "lectures" / "lecture_01.py").write_text(lecture())
    (tmp_path / "docs" / "index.md").write_text("<!-- cards -->\n\n<!-- formulas -->\n")
    (tmp_path / "mkdocs.yml").write_text(f"{CONFIG}hooks: [{repo}/docs/hooks/calculator.py]\n")
    with serving(tmp_path) as served:
        assert "989.5" in served.page("") and ">largest_model<" in served.page("")
        assert served.page("assets/calculator-data.js").count("H100 SXM") == 1
        cards = tmp_path / "lectures" / "hardware.py"
        cards.write_text(cards.read_text(encoding="utf-8").replace('"H100 SXM"', '"H100 XXL"'))
        served.until(lambda text: "H100 XXL" in text, "assets/calculator-data.js")
        assert "H100 XXL" in served.page("")


def test_another_book_has_no_calculator_data(repo: Path, tmp_path: Path) -> None:
    collected(repo)
    assert collected(tmp_path) == []
    assert calculator.on_page_markdown("<!-- cards -->") == "<!-- cards -->"  # nothing of the first is left


def test_the_hook_of_the_calculator_is_no_page_of_the_site(site: Path) -> None:
    assert not (site / "hooks").exists()


@pytest.mark.parametrize("text", ["CARDS = {", "raise SystemExit(0)", "x = 1", "CARDS = {'a': 3}"])
def test_a_broken_card_file_is_a_warning(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "lectures").mkdir()
    (tmp_path / "lectures" / "hardware.py").write_text(text)
    (tmp_path / "lectures" / "napkin.py").write_text("RECIPES, LIMITS = (), {}")
    assert collected(tmp_path) == []
    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert "the calculator has no data: " in caplog.text


# ------------------------------------------------------------------------ the formulas of the page

COUNTS, PUBLISHED = calculator._of_the_block(REPO / "lectures")
MODELS = PUBLISHED["MODELS"]
FORMULAS = calculator.formulas_of(vars(napkin), COUNTS)
SHAPE = {"layers": 200, "kv_heads": 64, "hidden": 10**5, "vocabulary": 10**6, "context": 10**7}
MACHINE = {"tokens": 10**14, "parameters": 10**13, "devices": 10**6}


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """A configuration in which heads divide the width, and heads of keys those of queries."""
    row: dict[str, Any] = {name: draw(st.integers(1, most)) for name, most in SHAPE.items()}
    row["heads"] = row["kv_heads"] * draw(st.integers(1, 32))
    row["width"] = row["heads"] * draw(st.integers(1, 256))
    row["head_size"] = draw(st.integers(1, 512))
    row["experts"] = draw(st.integers(1, 512))
    row["active"] = draw(st.integers(1, row["experts"]))
    row["window"] = draw(st.integers(1, 10**7))
    return {**row, **{name: draw(st.booleans()) for name in ("tied", "bias", "normed")}}


def block(row: dict[str, Any]) -> dict[str, float]:
    """What lecture 03's functions say of a configuration, under the names of the page's outputs."""
    config = COUNTS["Config"](**row)
    context, layers = config.context, config.layers
    return {
        "block-parameters": COUNTS["parameter_count"](config),
        "block-active": COUNTS["parameter_count"](config) - COUNTS["idle_weights"](config),
        "block-forward": COUNTS["forward_flops"](config, 1, context),
        "block-training": 3 * COUNTS["forward_flops"](config, 1, context),
        "block-activations": context * layers * COUNTS["activation_bytes"](config, context),
        "block-written": context * layers * COUNTS["activation_bytes"](config, context, fused=False),
        "block-kept": COUNTS["activation_bytes"](config, context),
        "block-read": COUNTS["forward_flops"](config, 1, 0),
        "block-token": COUNTS["cache_bytes"](config, 1),
        "block-cache": COUNTS["cache_bytes"](config, context),
    }


class Math:
    """What the page's formulas know besides arithmetic: so they are Python, too."""

    floor, ceil, min, max = math.floor, math.ceil, min, max


def worked_out(told: dict[str, Any]) -> dict[str, Any]:
    """What the page's formulas give, one after the other as the page takes them, where all that they need is there."""
    known = dict(told)
    for name, term in FORMULAS.items():
        if term.names <= known.keys():
            needed = {key: known[key] for key in term.names}  # no more than the page is told to wait for
            known[name.replace("-", "_")] = eval(term.text, {"Math": Math, "Number": int}, needed)
    return {name: known[name.replace("-", "_")] for name in FORMULAS if name.replace("-", "_") in known}


@given(row=shapes())
def test_the_formulas_of_the_block_on_the_page_are_those_of_lecture_03(row: dict[str, Any]) -> None:
    given_by_page = worked_out(row)
    for name, value in block(row).items():
        assert given_by_page[name] == value, name


@given(
    whole=st.fixed_dictionaries({name: st.integers(1, most) for name, most in MACHINE.items()}),
    peak=st.floats(1e9, 1e17), mfu=st.floats(0.0001, 1), per=st.floats(0.01, 1000),
    within=st.floats(0.001, 1e6), memory=st.integers(1, 10**13),
)  # fmt: skip
def test_the_other_formulas_on_the_page_are_those_of_napkin(
    whole: dict[str, int], peak: float, mfu: float, per: float, within: float, memory: int
) -> None:
    n, tokens, k = whole["parameters"], whole["tokens"], whole["devices"]
    told = {**whole, "peak": peak, "mfu": mfu, "bytes": per, "within": within, "memory": memory}
    given_by_page = worked_out(told)
    for name, value in {
        "work": napkin.work(n, tokens),
        "days": napkin.days(n, tokens, k, peak, mfu),
        "needed": napkin.devices_for(n, tokens, within, peak, mfu),
        "largest-replicated": napkin.largest_model(memory, per, k, sharded=False),
        "largest-sharded": napkin.largest_model(memory, per, k, sharded=True),
    }.items():
        assert given_by_page[name] == value, name


RUN: dict[str, Any] = {
    "parameters": 70 * 10**9, "tokens": 15 * 10**12, "devices": 1024, "within": 30, "mfu": 0.5, "bytes": 16,
    "spread": 1, "sequences": 1, "again": 0, "reserve": 0.1, "price": 2, "watts": 700, "serving": 4,
    "peak": 1979e12 / 2, "memory": 80 * 10**9, "bandwidth": 3.35e12,
    "weight": 4, "gradient": 4, "zero": 0, "tensor": 1, "stages": 1, "microbatches": 1, "inside": 450, "between": 50,
}  # fmt: skip


def test_seventy_billion_parameters_on_a_thousand_cards_do_not_fit_for_want_of_room_for_activations() -> None:
    """Lecture 03's figures: 1.1 GB of sharded state, 217.6 GB of activations of one sequence."""
    page = worked_out({**RUN, **asdict(MODELS["Llama-3-70B"]), "head_size": 128})
    assert page["state"] == 70e9 * 16 / 1024
    assert round(page["activations"] / 1e9, 1) == 217.6
    assert page["softmax"] == 8192 * 128256 * 4
    assert page["fit"] == page["state"] + page["activations"] + page["softmax"] > 72e9
    assert page["batch"] == 0
    again = worked_out({**RUN, **asdict(MODELS["Llama-3-70B"]), "head_size": 128, "again": 1})
    # Each of 80 blocks keeps its input, 2 bytes a number; one block at a time keeps all.
    assert again["activations"] == 8192 * (80 * 8192 * 2) + page["activations"] / 80
    assert again["fit"] < 72e9 and again["batch"] == 4
    whole = worked_out({**RUN, **asdict(MODELS["Llama-3-70B"]), "head_size": 128, "spread": 0})
    assert whole["state"] == 70e9 * 16


def test_a_run_is_paid_for_in_hours_of_its_devices() -> None:
    page = worked_out(RUN)
    assert page["hours"] == pytest.approx(143.9266 * 24 * 1024, rel=1e-6)
    assert page["cost"] == 2 * page["hours"] and page["energy"] == pytest.approx(0.7 * page["hours"])
    assert worked_out({**RUN, "devices": 7})["hours"] == pytest.approx(page["hours"]), (
        "on any number of devices"
    )


@pytest.mark.parametrize("context", [128, 8192])
def test_the_pace_of_writing_is_the_one_of_lecture_03(context: int) -> None:
    """There attention's FLOPs count too: they take less time than its bytes."""
    from lecture_03.generate import MEMORY, pace_of, room_for
    from lecture_03.published import LLAMA_3_8B

    config = replace(LLAMA_3_8B, context=context)
    one = {**RUN, **asdict(config), "head_size": 128, "serving": 1, "reserve": 0, "memory": MEMORY}
    page = worked_out(one)
    assert page["texts"] == room_for(config, context)
    assert page["alone"] == pytest.approx(pace_of(config, 1, context))
    assert page["all"] == pytest.approx(pace_of(config, page["texts"], context))
    several = worked_out({**one, "serving": 4, "memory": 80e9})
    assert several["alone"] == pytest.approx(4 * page["alone"]), "four times the bandwidth"


def test_a_text_alone_reads_the_experts_that_it_meets_and_a_batch_all() -> None:
    page = worked_out({**RUN, **asdict(MODELS["Mixtral-8x7B"]), "head_size": 128, "serving": 8})
    cache, read = page["block-cache"], page["block-read"]
    assert page["alone"] == pytest.approx(8 * 3.35e12 / (read + cache))
    idle = 2 * COUNTS["idle_weights"](MODELS["Mixtral-8x7B"])
    each = (read + idle) / (8 * 3.35e12) + page["texts"] * cache / (8 * 3.35e12)
    assert page["all"] == pytest.approx(page["texts"] / each)


@given(
    sequences=st.integers(1, 100), again=st.sampled_from((0, 1)), spread=st.sampled_from((0, 1)),
    reserve=st.floats(0, 0.9), devices=st.integers(1, 5000), row=shapes(),
)  # fmt: skip
def test_most_sequences_fit_and_one_more_does_not(
    sequences: int, again: int, spread: int, reserve: float, devices: int, row: dict[str, Any]
) -> None:
    told = {
        **RUN,
        **row,
        "sequences": sequences,
        "again": again,
        "spread": spread,
        "devices": devices,
        "reserve": reserve,
    }
    page = worked_out(told)
    room, most = 80e9 * (1 - reserve), page["batch"]
    if most >= 1:
        assert worked_out({**told, "sequences": most})["fit"] <= room * (1 + 1e-9)
    assert worked_out({**told, "sequences": max(most + 1, 1)})["fit"] > room * (1 - 1e-9)


@pytest.mark.parametrize(
    ("zero", "kept", "units"), [(0, (16, 0), 2), (1, (8, 8), 2), (2, (4, 12), 2), (3, (0, 16), 3)]
)
@pytest.mark.parametrize("ranks", [1, 4, 64])
def test_a_stage_keeps_and_sends_what_lecture_04_measures(
    zero: int, kept: tuple[int, int], units: int, ranks: int
) -> None:
    """Its table of stages: bytes for each parameter on every rank and in shards, and all-gathers of the parameters."""
    page = worked_out({**RUN, "devices": ranks, "zero": zero})
    assert page["layout-state"] == pytest.approx(70e9 * (kept[0] + kept[1] / ranks))
    assert page["layout-weights"] == pytest.approx(units * 4 * 70e9 * (ranks - 1) / ranks)


def test_the_third_stage_gathers_weights_twice_for_each_microbatch() -> None:
    sent = [napkin.sent_for_state(1e9, 2, 4, 3, 8, microbatches) for microbatches in (1, 2, 5)]
    assert sent == [pytest.approx((2 * 2 * m + 4) * 1e9 * 7 / 8) for m in (1, 2, 5)]


def test_a_layout_costs_what_lecture_04_says_of_the_run_of_llama_3() -> None:
    from lecture_04 import pipeline, tensor_parallel, together

    layout = together.Layout(8, 1, 16, 128, 8192, 16, 0.0)
    share, tokens = 8 * 16, 16 * 8192
    state = napkin.state_on_rank(together.N / share, 18, 2, 4, 2, 128)
    assert state == pytest.approx(together.gpu_bytes(replace(layout, sequences=0), 3))
    sent = napkin.sent_for_products(tokens, together.WIDTH, together.LAYERS / 16, 8)
    one = tensor_parallel.all_reduce_bytes(tokens * together.WIDTH * 2, 8)
    assert sent == pytest.approx(together.LAYERS / 16 * 4 * one)
    assert napkin.bubble(16, 16) == float(pipeline.bubble(16, 16))
    attention = 12 * together.LAYERS * together.WIDTH * 8192 / 2
    computing = (6 * together.N + attention) * tokens / share / together.PEAK
    weights = napkin.sent_for_state(together.N / share, 2, 4, 2, 128, 16) / together.NETWORK
    step = napkin.step_seconds(computing, sent / together.NVLINK, weights, napkin.bubble(16, 16))
    assert step == pytest.approx(together.step_seconds(layout))
    slow = napkin.step_seconds(computing, 0, 3 * computing, 0)
    assert slow == pytest.approx(3 * computing), "what arithmetic does not hide is waited for"


def test_a_layout_divides_what_a_device_computes_and_keeps() -> None:
    one = {**RUN, **asdict(MODELS["Llama-3-70B"]), "head_size": 128, "microbatches": 16}
    alone, cut = worked_out(one), worked_out({**one, "tensor": 8, "stages": 4})
    assert alone["layout-data"] == 1024 and cut["layout-data"] == 32
    assert cut["layout-computing"] == pytest.approx(alone["layout-computing"] / 32)
    # An eighth of a fourth of the layers, of four microbatches that are open at once.
    assert cut["layout-activations"] == pytest.approx(alone["layout-activations"] / 8)
    assert alone["layout-stages"] == alone["layout-products"] == alone["layout-bubble"] == 0
    assert cut["layout-stages"] == 2 * (2 * 16 * 8192 * 8192), "to both neighbours"
    again = worked_out({**one, "stages": 4, "again": 1})["layout-activations"]
    assert again == 8192 * (4 * 20 * 8192 * 2 + alone["block-kept"]), "inputs of four, one block of one"
    for name, slower in (("inside", "layout-products-time"), ("between", "layout-weights-time")):
        half = worked_out({**one, "tensor": 8, "stages": 4, name: RUN[name] / 2})
        assert (
            half[slower] == pytest.approx(2 * cut[slower])
            and half["layout-step"] > cut["layout-step"] * 0.999
        )


def test_each_output_of_the_page_has_a_formula_and_each_formula_an_output(repo: Path) -> None:
    page = (repo / "docs" / "calculator.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r'id="lb-out-([\w-]+)"', page)) == sorted(FORMULAS)


# ------------------------------------------------------------------------ in a browser


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1200})
    page.goto(address + "calculator/")
    page.locator("#lb-calc.lb-ready").wait_for()
    yield page
    page.close()


@pytest.fixture(scope="module")
def form(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1200})
    page.goto(address + "calculator/")
    page.locator("#lb-calc.lb-ready").wait_for()
    yield page
    page.close()


@pytest.fixture
def afresh(form: Page) -> Page:
    """The calculator as it opens, on a page that tests which only type into it share."""
    form.get_by_role("button", name="Start over").click()
    return form


SET = """(rows) => rows.map((row) => {
  const form = document.getElementById('lb-calc');
  for (const [name, value] of Object.entries(row)) {
    if (form.elements[name].value === value) continue;  // typed already: each event works all out and draws it
    form.elements[name].value = value;
    form.elements[name].dispatchEvent(new Event('input', {bubbles: true}));
  } const outputs = Object.fromEntries([...form.querySelectorAll('output')].map((o) =>
  [o.id.replace('lb-out-', ''),
    [o.dataset.value === undefined ? null : Number(o.dataset.value), o.textContent]]));
  const wrong = Object.fromEntries([...form.querySelectorAll('[aria-invalid=true]')].map((it) =>
    [it.name, document.getElementById(`lb-${it.name}-wrong`).textContent]));
  return [outputs, wrong];
})"""


def told(page: Page, **row: object) -> tuple[dict[str, Any], dict[str, str]]:
    """The outputs after typing these, and what is wrong."""
    outputs, wrong = page.evaluate(SET, [{name: str(value) for name, value in row.items()}])[0]
    return outputs, wrong


def expected(row: dict[str, Any]) -> dict[str, float | None]:
    card = hardware.CARDS[row["device"]]
    n, k, b = float(row["parameters"]), float(row["devices"]), float(row["bytes"])
    return {
        "days": napkin.days(
            n, float(row["tokens"]), k, hardware.peak(card, row["format"]), float(row["mfu"])
        ),
        "needed": napkin.devices_for(
            n,
            float(row["tokens"]),
            float(row["within"]),
            hardware.peak(card, row["format"]),
            float(row["mfu"]),
        ),
        "work": napkin.work(n, float(row["tokens"])),
        "state": napkin.memory_per_device(n, b, k, sharded=True),
        "largest-replicated": napkin.largest_model(card.memory, b, k, sharded=False),
        "largest-sharded": napkin.largest_model(card.memory, b, k, sharded=True),
    }


def test_the_page_and_python_agree_on_a_grid(opened: Page) -> None:
    grid = [
        dict(zip(("parameters", "tokens", "devices", "device", "format", "mfu", "bytes", "within"), row, strict=True))
        for row in product(
            ("1", "124000000", "7e10", "1e15"), ("1", "1.5e13", "1e18"), ("1", "1024", "10000000"),
            ("H100 SXM", "T4", "B200"), ("bfloat16", "float32", "float8"), ("0.0001", "0.38", "1"), ("0.01", "16", "1000"), ("30",),
        )
    ]  # fmt: skip
    assert len(grid) == 4 * 3**6
    some = [*sampled(grid, 7)]  # 7 shares no factor with the grid, so every value of each field comes
    for row, (outputs, wrong) in zip(some, opened.evaluate(SET, some), strict=True):
        assert wrong == {}, row
        for name, value in expected(row).items():
            found = outputs[name][0]
            assert (found is None) == (value is None), (row, name)
            assert value is None or found == pytest.approx(value, rel=1e-12), (row, name)
        assert (outputs["days"][1] == "not available") == (outputs["days"][0] is None)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(row=shapes(), within=st.floats(0.001, 1e6))
def test_the_page_and_lecture_03_agree_on_any_shape(opened: Page, row: dict[str, Any], within: float) -> None:
    said = {name: {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
            for name, value in row.items()}  # fmt: skip
    outputs, wrong = told(opened, **said, within=within)
    assert wrong == {}
    for name, value in block(row).items():
        assert outputs[name][0] == pytest.approx(value, rel=1e-12), name
    rate = hardware.peak(hardware.CARDS["H100 SXM"], "bfloat16")
    assert outputs["needed"][0] == napkin.devices_for(70e9, 15e12, within, rate, 0.5)
    assert opened.locator("#lb-model").input_value() == "own"


def test_the_page_works_a_layout_out_and_says_what_it_waits_for(opened: Page) -> None:
    row = {
        "devices": 1024,
        "zero": "3",
        "tensor": 8,
        "stages": 16,
        "microbatches": 32,
        "recipe": "adamw-mixed-grad32",
    }
    outputs, wrong = told(opened, **row)
    assert wrong == {} and opened.locator("#lb-weight").input_value() == "2"
    assert outputs["layout-data"][0] == 8
    assert outputs["layout-bubble"][0] == napkin.bubble(16, 32)
    state = napkin.state_on_rank(70e9 / 128, 18, 2, 4, 3, 8)
    assert outputs["layout-state"][0] == pytest.approx(state)
    sent = napkin.sent_for_state(70e9 / 128, 2, 4, 3, 8, 32)
    assert outputs["layout-weights-time"][0] == pytest.approx(sent / 50e9)
    outputs, wrong = told(opened, devices=1000)
    assert wrong == {} and outputs["layout-data"] == [None, "–"] and outputs["layout-bubble"][0] is not None
    remark = opened.locator("#lb-out-layout-state + small").text_content()
    assert remark == "waits for: a multiple of 128 devices"
    told(opened, devices=1024, bytes="5")
    assert opened.locator("#lb-out-layout-state + small").text_content() == (
        "waits for: a weight and its gradient of at most 5 B"
    )


def test_each_published_model_fills_the_fields_and_has_its_published_size(opened: Page) -> None:
    for name, config in MODELS.items():
        outputs, wrong = told(opened, model=name)
        assert wrong == {}
        assert opened.locator("#lb-hidden").input_value() == str(config.hidden)
        assert outputs["block-parameters"][0] == COUNTS["parameter_count"](config)
        assert outputs["block-parameters"][1] == f"{COUNTS['parameter_count'](config):,}"
    told(opened, layers="3")
    assert opened.locator("#lb-model").input_value() == "own"
    opened.get_by_role("button", name="Train a model of this size, above").click()
    layers = COUNTS["parameter_count"](replace(MODELS["Llama-3-405B"], layers=3))
    assert opened.locator("#lb-parameters").input_value() == str(layers)
    assert opened.evaluate("document.activeElement.name") == "parameters"


def test_heads_that_do_not_divide_are_refused_as_in_python(opened: Page) -> None:
    usual = {**dict.fromkeys(SHAPE, 2), "head_size": 8}
    for change, field, said in (
        ({"width": 64, "heads": 8, "kv_heads": 3}, "kv_heads", "3 does not divide 8, the heads of queries."),
        (
            {"width": 64, "heads": 8, "experts": 2, "active": 3},
            "active",
            "3 is more than 2, the experts in a layer.",
        ),
    ):
        with pytest.raises(ValueError, match=r"are (no multiple of|more than)"):
            COUNTS["Config"](**{**usual, **change})
        outputs, wrong = told(opened, **{**usual, **change})
        assert wrong == {field: said}
        assert outputs["block-parameters"][0] is None and outputs["days"][0] is not None
        assert opened.get_by_role("button", name="Train a model").is_disabled()


def test_the_curve_goes_through_what_was_typed_and_what_was_asked_for(opened: Page) -> None:
    says = opened.locator("#lb-curve-says")
    assert says.inner_text() == (
        "Half the days take twice the devices. ● 1,024 devices take 143.9 days; ○ 30 days take 4,913 devices."
    )
    assert opened.get_by_role("img", name=re.compile("^Half the days")).count() == 1
    line, given_at, asked = opened.evaluate(
        """[document.querySelector('.lb-line').getAttribute('d').match(/[\\d.]+/g).map(Number),
            ...['.lb-given', '.lb-asked'].map((it) => ['cx', 'cy'].map((k) =>
            Number(document.querySelector(it).getAttribute(k))))]"""
    )
    x0, y0, x1, y1 = line
    for x, y in (given_at, asked):
        assert x0 <= x <= x1
        assert y == pytest.approx(y0 + (y1 - y0) * (x - x0) / (x1 - x0), abs=0.3)
    told(opened, device="T4")  # it promises no bfloat16
    assert not opened.locator("#lb-curve").is_visible()
    told(opened, device="H100 SXM", within="0")
    assert not opened.locator("#lb-curve").is_visible()
    told(opened, within="1e6", parameters="1", tokens="1", devices="1e7")
    assert not re.search(r"NaN|Infinity", opened.locator("#lb-curve").inner_html())


def test_the_verdict_says_what_to_do(opened: Page) -> None:
    def verdict(**row: object) -> str:
        told(opened, **row)
        return opened.locator("#lb-verdict").inner_text().replace("\n", " ")

    assert verdict() == (
        "✗ It does not fit. 222.9 GB of 72 GB on each H100 SXM. 143.9 days, 3.537 million device-hours. "
        "Blocks that are computed again keep 13.46 GB of a sequence. In the layout below it fits."
    )
    assert opened.locator("#lb-stack-says").inner_text() == (
        "The frame is the 80 GB of one H100 SXM. In it: state 1.094 GB, activations 217.6 GB, softmax 4.203 GB; 8 GB kept free."
    )
    assert verdict(again="yes").startswith("✓ It fits. 18.75 GB of 72 GB on each H100 SXM.")
    assert verdict(sequences="9").endswith("4 sequences would fit. In the layout below it fits.")
    assert verdict(sequences="1", spread="no").endswith(
        "Divide its state among the devices. In the layout below it fits."
    )
    assert verdict(devices="2").endswith("Its state alone takes 16 devices among which it is divided.")
    assert verdict(spread="yes").endswith("Its state alone takes 16 devices.")
    assert verdict(devices="1024", context="1000000").endswith(
        "Not one sequence fits: take fewer tokens, or divide activations among devices, too."
    )
    assert verdict(parameters="") == "– Waits for: Parameters"
    small = verdict(model="Qwen2.5-0.5B", parameters="1.5B", devices="1", device="RTX 4090", context="4096")
    assert small.endswith("Its state alone takes 2 devices.")
    assert "of the shape below, 494" in opened.locator("#lb-calc").inner_text(), (
        "the shape has fewer parameters"
    )
    assert verdict(device="T4").startswith("✗ It does not fit.") and "hours" not in verdict(), (
        "no promise, no days"
    )


def test_a_model_sets_the_parameters_and_a_slider_its_field(opened: Page) -> None:
    told(opened, model="Llama-3-8B")
    assert opened.locator("#lb-parameters").input_value() == "8030261248"
    slider = opened.get_by_label("Training tokens, slider", exact=True)
    slider.focus()
    opened.keyboard.press("Home")
    assert opened.locator("#lb-tokens").input_value() == "100M"
    assert opened.locator("#lb-out-work").get_attribute("data-value") == str(6 * 8030261248 * 10**8)
    opened.keyboard.press("End")
    assert opened.locator("#lb-tokens").input_value() == "100T"
    assert slider.get_attribute("aria-valuetext") == "100T"
    opened.locator("#lb-tokens").fill("1T")
    assert 600 < int(slider.input_value()) < 700, "the slider follows the field"
    box = slider.bounding_box()
    assert box is not None
    opened.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert opened.locator("#lb-tokens").input_value() == "100B"


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_moves_when_the_script_has_run_and_the_verdict_stays_in_sight(
    browser: Browser, address: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver((all) => all.getEntries().forEach((it) => { if (!it.hadRecentInput)"
        " window.moved += it.value; })).observe({type: 'layout-shift', buffered: true})"
    )
    page.goto(address + "calculator/")
    page.locator("#lb-calc.lb-ready").wait_for()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.moved") <= 0.02
    for name in ("parameters", "tokens", "mfu"):
        page.locator(f"#lb-{name}").scroll_into_view_if_needed()
        page.locator(f"#lb-{name}").focus()
        top, bottom, height = page.evaluate(
            "(({top, bottom}) => [top, bottom, innerHeight])(document.getElementById('lb-verdict').getBoundingClientRect())"
        )
        assert 0 <= top < bottom <= height + 1, name
    page.close()


def test_every_card_in_every_format_agrees(opened: Page) -> None:
    for name, format_ in product(hardware.CARDS, calculator.FORMATS):
        outputs, _ = told(opened, device=name, format=format_)
        rate = hardware.peak(hardware.CARDS[name], format_)
        assert outputs["days"][0] == (
            None if rate is None else pytest.approx(napkin.days(7e10, 15e12, 1024, rate, 0.5))
        )


def test_every_recipe_sets_its_bytes_and_a_number_of_ones_own_is_a_recipe(opened: Page) -> None:
    for recipe in napkin.RECIPES:
        outputs, _ = told(opened, recipe=recipe.key, spread="no")
        assert opened.locator("#lb-bytes").input_value() == str(recipe.total)
        assert outputs["state"][0] == recipe.total * 7e10
    told(opened, bytes="10")
    assert opened.locator("#lb-recipe").input_value() == "own"


@pytest.mark.parametrize(
    ("text", "value"),
    sampled([
        ("70B", 70e9), ("70 b", 70e9), ("1.1B", 1.1e9), ("7e10", 7e10), ("7E+10", 7e10), ("70,000,000,000", 70e9),
        ("70_000_000_000", 70e9), ("70 000 000 000", 70e9), ("124M", 124e6), (".5k", 500), ("1.75 trillion", 1.75e12),
        ("  5  ", 5), ("+5", 5), ("5.", 5), ("5.0", 5), ("1e15", 1e15), ("1", 1),
    ], 3),
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(afresh: Page, text: str, value: float) -> None:
    outputs, wrong = told(afresh, parameters=text, bytes="1", spread="no")
    assert wrong == {}
    assert outputs["state"][0] == value


@pytest.mark.parametrize(
    ("name", "text", "said"),
    sampled([
        ("parameters", "", "Give a number, such as 70B."),
        ("tokens", "   ", "Give a number, such as 15T."),
        ("parameters", "0", "“0” is too small: at least 1."),
        ("parameters", "-7B", "“-7B” is too small: at least 1."),
        ("parameters", "−7B", "“−7B” is too small: at least 1."),
        ("parameters", "1e99", "“1e99” is too large: at most 1,000 trillion."),
        ("tokens", "1e9999", "“1e9999” is too large: at most 1e18."),
        ("tokens", "1e99999", "is not a number that this field knows; write it like 15T."),
        ("parameters", "seventy", "“seventy” is not a number that this field knows; write it like 70B."),
        ("parameters", "1,5B", "“1,5B” is not a number that this field knows; write it like 70B. Decimals take a point."),
        ("parameters", "1,0000", "is not a number"),
        ("parameters", "0x10", "is not a number"),
        ("parameters", "NaN", "is not a number"),
        ("parameters", "Infinity", "is not a number"),
        ("parameters", "5constructor", "is not a number"),
        ("parameters", "5__proto__", "is not a number"),
        ("parameters", "5%", "is not a number"),
        ("parameters", "1 2", "is not a number"),
        ("parameters", ".", "is not a number"),
        ("parameters", "e5", "is not a number"),
        ("parameters", "٧", "is not a number"),
        ("parameters", "0.5", "“0.5” is too small: at least 1."),
        ("parameters", "1.5", "“1.5” is not a whole number."),
        ("parameters", "<img src=x onerror=alert(1)>", "“<img src=x onerror=alert…” is not a number"),
        ("devices", "2.5", "“2.5” is not a whole number."),
        ("devices", "1e8", "“1e8” is too large: at most 10 million."),
        ("mfu", "0", "“0” is too small: at least 0.0001."),
        ("mfu", "1.01", "MFU cannot exceed 1: nothing does more than its peak. For 1.01 percent write 0.0101."),
        ("mfu", "50", "MFU cannot exceed 1: nothing does more than its peak. For 50 percent write 0.5."),
        ("mfu", "120%", "MFU cannot exceed 1: nothing does more than its peak."),
        ("mfu", "1e99", "MFU cannot exceed 1: nothing does more than its peak."),
        ("bytes", "0", "“0” is too small: at least 0.01."),
        ("bytes", "16G", "“16G” is not a number that this field knows; write it like 16."),
        ("bytes", "1e4", "“1e4” is too large: at most 1,000."),
    ], 4),
)  # fmt: skip
def test_impossible_input_is_said_at_its_field_and_gives_no_number(
    afresh: Page, name: str, text: str, said: str
) -> None:
    outputs, wrong = told(afresh, **{name: text})
    assert list(wrong) == [name]
    assert said in wrong[name]
    needs = {"parameters": 14, "tokens": 6, "devices": 14, "mfu": 7, "bytes": 7}[
        name
    ]  # directly, or through another result
    assert [shown for _, shown in outputs.values()].count("–") == needs
    assert all(value is None for value, shown in outputs.values() if shown == "–")
    assert all("NaN" not in it for it in afresh.locator(".lb-results").all_inner_texts())
    assert afresh.locator(f"#lb-{name}-wrong").is_visible()
    _, wrong = told(afresh, **{name: "1"})
    assert wrong == {}


def test_what_is_out_of_bounds_here_is_out_of_bounds_in_python(opened: Page) -> None:
    for name, limit in napkin.LIMITS.items():
        one = {**dict.fromkeys(("heads", "kv_heads", "active"), "1"), "experts": "100000"}
        for value in (limit.least, limit.most, limit.least / 2, limit.most * 2, 0.0, -1.0):
            told(opened, width="1000000", **one if name != "kv_heads" else {"heads": "1000000"})
            told(opened, experts="1" if name != "active" else "100000", active="1")
            _, wrong = told(opened, **{name: repr(value)})
            try:
                napkin.checked(name, value)
            except ValueError:
                assert name in wrong, (name, value)
            else:
                assert wrong == {}, (name, value)
        told(opened, **{name: "1" if limit.most >= 1 else "0.5"})


@pytest.mark.parametrize(
    ("text", "value"), [("50%", 0.5), ("40 %", 0.4), ("1", 1.0), (".38", 0.38), ("100%", 1.0)]
)
def test_an_mfu_may_be_a_percentage(afresh: Page, text: str, value: float) -> None:
    outputs, _ = told(afresh, mfu=text)
    rate = hardware.peak(hardware.CARDS["H100 SXM"], "bfloat16")
    assert outputs["days"][0] == pytest.approx(napkin.days(7e10, 15e12, 1024, rate, value), rel=1e-12)


def test_the_extremes_are_short_and_no_prefix_fails(opened: Page) -> None:
    for parameters, tokens, devices, mfu in product(
        ("1", "1e15"), ("1", "1e18"), ("1", "1e7"), ("0.0001", "1")
    ):
        told(opened, parameters=parameters, tokens=tokens, devices=devices, mfu=mfu)
        text = opened.locator("#lb-calc").inner_text()
        assert not re.search(r"NaN|undefined|Infinity|null", text), text
        assert max(map(len, opened.locator(".lb-results output").all_inner_texts())) < 30


def test_the_keyboard_is_enough(opened: Page) -> None:
    opened.locator("#lb-parameters").focus()
    opened.keyboard.press("Control+A")
    opened.keyboard.type("7B")
    assert opened.locator("#lb-out-days").inner_text() == "14.39 days"
    names = []
    for _ in range(22):
        opened.keyboard.press("Tab")
        names.append(
            opened.evaluate("(it => it.name || it.ariaLabel || it.textContent)(document.activeElement)")
        )
    sliders = [name for name in names if name.endswith(", slider")]
    assert len(sliders) == 6
    assert [name for name in names if name not in sliders] == [
        "tokens", "recipe", "bytes", "device", "devices", "format", "mfu", "within", "spread", "sequences", "again",
        "reserve", "price", "watts", "serving", "Start over",
    ]  # fmt: skip
    opened.keyboard.press("Enter")
    assert opened.locator("#lb-parameters").input_value() == "70B"
    opened.locator("#lb-devices").press("Enter")  # submits nothing
    assert opened.locator("#lb-out-days").inner_text() == "143.9 days"


def test_the_address_keeps_what_was_typed_and_back_goes_back(opened: Page, address: str) -> None:
    plain = opened.url
    opened.locator("#lb-parameters").fill("7B")
    opened.locator("#lb-parameters").press("Tab")
    opened.locator("#lb-device").select_option("T4")
    opened.locator("#lb-bytes").fill("10")
    opened.locator("#lb-bytes").press("Tab")
    assert opened.url == plain + "?" + urlencode(
        {"parameters": "7B", "device": "T4", "recipe": "own", "bytes": "10"}
    ) or (
        set(opened.url.split("?")[1].split("&")) == {"parameters=7B", "device=T4", "recipe=own", "bytes=10"}
    )
    shared = opened.url
    results = opened.locator("#lb-calc").inner_text()
    opened.go_back()
    assert opened.locator("#lb-recipe").input_value() == "adamw"
    assert opened.locator("#lb-bytes").input_value() == "16"
    opened.go_back()
    assert opened.locator("#lb-device").input_value() == "H100 SXM"
    opened.go_back()
    assert opened.url == plain
    assert opened.locator("#lb-parameters").input_value() == "70B"
    assert opened.locator("#lb-out-days").inner_text() == "143.9 days"
    opened.goto(shared)
    assert opened.locator("#lb-calc").inner_text() == results
    opened.get_by_role("button", name="Start over").click()
    assert opened.url == plain


@pytest.mark.parametrize(
    "query",
    [
        {"parameters": "<script>alert(1)</script>", "device": "<img src=x onerror=alert(1)>"},
        {"device": "__proto__", "format": "constructor", "recipe": "toString"},
        {"parameters": "9" * 10_000, "mfu": "-1", "unknown": "1"},
        {"parameters": "", "tokens": "", "devices": "", "mfu": "", "bytes": ""},
    ],
)
def test_a_hostile_address_is_text(browser: Browser, address: str, query: dict[str, str]) -> None:
    page = browser.new_page()
    raised: list[str] = []
    page.on("pageerror", lambda error: raised.append(str(error)))
    page.on("dialog", lambda dialog: raised.append(dialog.message))
    page.goto(address + "calculator/?" + urlencode(query))
    assert raised == []
    assert page.locator("#lb-calc").is_visible()
    assert page.locator("#lb-device").input_value() == "H100 SXM"
    assert page.locator("[aria-invalid=true]").count() >= 1
    if "device" in query:
        assert "is not in this list; H100 SXM is shown." in page.locator("#lb-device-wrong").inner_text()
    page.close()


def test_bytes_alone_in_an_address_are_ones_own(opened: Page) -> None:
    opened.goto(opened.url + "?bytes=10")
    assert opened.locator("#lb-recipe").input_value() == "own"
    assert opened.locator("#lb-bytes").input_value() == "10"


def test_fields_and_results_have_names_for_a_screen_reader(opened: Page) -> None:
    for name in (
        "Parameters", "Training tokens", "What training keeps per parameter", "Bytes per parameter", "Device",
        "Number of devices", "Format of the matrix products", "MFU, the part of the peak that is used",
        "Done within, in days", "Model", "Layers", "Width", "Width inside the feed-forward part", "Heads of queries",
        "Heads of keys and values", "Vocabulary", "Tokens of context", "One table for embedding and head",
        "Biases of queries, keys and values", "Numbers in a head", "Experts in a layer", "Experts for each token",
        "Window, tokens that a token looks at", "Norms of queries and keys", "Parameters, gradients, optimizer",
        "Sequences on each device", "Activations", "Kept free", "Price of a device-hour", "Power of a device, in watts",
        "Devices that serve one copy", "Parameters, slider",
    ):  # fmt: skip
        assert opened.get_by_label(name, exact=True).count() == 1, name
    assert opened.get_by_role("group", name="The machines").count() == 1
    for group, results in {
        "Training, on each device": 5, "The run": 6, "Writing with the trained model": 4, "What this Transformer costs": 12,
    }.items():  # fmt: skip
        assert opened.get_by_role("group", name=group).get_by_role("status").count() == results
    told(opened, mfu="2")
    described = opened.locator("#lb-mfu").get_attribute("aria-describedby")
    assert described is not None and "lb-mfu-wrong" in described


def test_without_scripts_the_page_says_so_and_shows_formulas_and_numbers(
    browser: Browser, address: str
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + "calculator/")
    assert page.get_by_text("The calculator itself needs JavaScript").is_visible()
    assert not page.locator("#lb-calc").is_visible()
    text = html.unescape(page.locator("article").inner_text())
    assert "return 6 * checked" in text
    assert "989.5" in text and "AdamW, float32 throughout" in text
    assert "<!--" not in text
    context.close()


@pytest.mark.parametrize(("width", "scheme"), list(product((1280, 390), ("light", "dark"))))
def test_it_fits_and_is_readable_everywhere_also_with_mistakes(
    browser: Browser, address: str, width: int, scheme: Any
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in ("calculator/?mfu=3&parameters=" + "x" * 40, "lectures/misbeliefs/"):
        page.goto(address + path)
        page.wait_for_load_state("networkidle")
        assert (
            page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        )
        assert page.evaluate(CONTRAST) == []
    assert [url for url in asked if not url.startswith(address)] == []
    page.close()


def test_the_calculators_own_scripts_are_a_few_kilobytes(site: Path) -> None:
    sizes = [(site / "assets" / name).stat().st_size for name in ("calculator.js", "calculator-data.js")]
    assert sizes[0] < 24_000
    assert sum(sizes) < 45_000
