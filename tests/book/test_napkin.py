"""Napkin math: the book's formulas, and the calculator page that has to give the same in a real browser."""

from __future__ import annotations

import html
import json
import logging
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import PluginCollection
from mkdocs.structure.files import Files
from tests.book.test_preview import CONFIG, lecture, serving
from tests.browser.test_browser import CONTRAST
from tests.running import sampled

import calculator
import hardware
import napkin
from litbook.render.bibliography import Entry

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# ------------------------------------------------------------------------ the formulas


def test_the_run_of_lecture_02_takes_144_days() -> None:
    rate = hardware.peak(hardware.CARDS["H100 SXM"], "bfloat16")
    found = napkin.days(70 * 10**9, 15 * 10**12, 1024, rate, 0.5)
    assert found == pytest.approx(143.9266, abs=1e-4)
    assert napkin.work(70 * 10**9, 15 * 10**12) == 63 * 10**23


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
    assert found["RECIPES"] == [{"key": it.key, "name": it.name, "bytes": it.total} for it in napkin.RECIPES]
    for card in found["CARDS"]:
        own = hardware.CARDS[card["name"]]
        assert card["memory"] == own.memory
        assert card["peaks"] == {name: hardware.peak(own, name) for name in calculator.FORMATS}


def test_what_the_books_files_hold_is_text_on_the_page() -> None:
    script = calculator.data([CARD], [RECIPE], {}, {"x": Entry("x", "<i>", url="https://example.org/")})
    assert "<" not in script
    page = calculator.cards_table([CARD], {"x": Entry("x", "<i>", url="https://example.org/?a&b")})
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
    for name in ("hardware.py", "napkin.py", "references.bib"):
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


# ------------------------------------------------------------------------ in a browser


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1200})
    page.goto(address + "calculator/")
    page.locator("#lb-calc").wait_for()
    yield page
    page.close()


@pytest.fixture(scope="module")
def form(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 1200})
    page.goto(address + "calculator/")
    page.locator("#lb-calc").wait_for()
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
        "work": napkin.work(n, float(row["tokens"])),
        "replicated": napkin.memory_per_device(n, b, k, sharded=False),
        "sharded": napkin.memory_per_device(n, b, k, sharded=True),
        "largest-replicated": napkin.largest_model(card.memory, b, k, sharded=False),
        "largest-sharded": napkin.largest_model(card.memory, b, k, sharded=True),
    }


def test_the_page_and_python_agree_on_a_grid(opened: Page) -> None:
    grid = [
        dict(zip(("parameters", "tokens", "devices", "device", "format", "mfu", "bytes"), row, strict=True))
        for row in product(
            ("1", "124000000", "7e10", "1e15"), ("1", "1.5e13", "1e18"), ("1", "1024", "10000000"),
            ("H100 SXM", "T4", "B200"), ("bfloat16", "float32", "float8"), ("0.0001", "0.38", "1"), ("0.01", "16", "1000"),
        )
    ]  # fmt: skip
    assert len(grid) == 4 * 3**6
    for row, (outputs, wrong) in zip(grid, opened.evaluate(SET, grid), strict=True):
        assert wrong == {}, row
        for name, value in expected(row).items():
            found = outputs[name][0]
            assert (found is None) == (value is None), (row, name)
            assert value is None or found == pytest.approx(value, rel=1e-12), (row, name)
        assert (outputs["days"][1] == "not available") == (outputs["days"][0] is None)


def test_every_card_in_every_format_agrees(opened: Page) -> None:
    for name, format_ in product(hardware.CARDS, calculator.FORMATS):
        outputs, _ = told(opened, device=name, format=format_)
        rate = hardware.peak(hardware.CARDS[name], format_)
        assert outputs["days"][0] == (
            None if rate is None else pytest.approx(napkin.days(7e10, 15e12, 1024, rate, 0.5))
        )


def test_every_recipe_sets_its_bytes_and_a_number_of_ones_own_is_a_recipe(opened: Page) -> None:
    for recipe in napkin.RECIPES:
        outputs, _ = told(opened, recipe=recipe.key)
        assert opened.locator("#lb-bytes").input_value() == str(recipe.total)
        assert outputs["replicated"][0] == recipe.total * 7e10
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
    outputs, wrong = told(afresh, parameters=text, bytes="1")
    assert wrong == {}
    assert outputs["replicated"][0] == value


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
    needs = {"parameters": 4, "tokens": 2, "devices": 3, "mfu": 1, "bytes": 4}[name]
    assert [shown for _, shown in outputs.values()].count("–") == needs
    assert all(value is None for value, shown in outputs.values() if shown == "–")
    assert "NaN" not in afresh.locator(".lb-results").inner_text()
    assert afresh.locator(f"#lb-{name}-wrong").is_visible()
    _, wrong = told(afresh, **{name: "1"})
    assert wrong == {}


def test_what_is_out_of_bounds_here_is_out_of_bounds_in_python(opened: Page) -> None:
    for name, limit in napkin.LIMITS.items():
        for value in (limit.least, limit.most, limit.least / 2, limit.most * 2, 0.0, -1.0):
            _, wrong = told(opened, **{name: repr(value)})
            try:
                napkin.checked(name, value)
            except ValueError:
                assert name in wrong, (name, value)
            else:
                assert wrong == {}, (name, value)
        told(opened, **{name: "1"})


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
        text = opened.locator(".lb-results").inner_text()
        assert not re.search(r"NaN|undefined|Infinity|null", text), text
        assert max(map(len, opened.locator(".lb-results output").all_inner_texts())) < 30


def test_the_keyboard_is_enough(opened: Page) -> None:
    opened.locator("#lb-parameters").focus()
    opened.keyboard.press("Control+A")
    opened.keyboard.type("7B")
    assert opened.locator("#lb-out-days").inner_text() == "14.39 days"
    names = []
    for _ in range(8):
        opened.keyboard.press("Tab")
        names.append(opened.evaluate("document.activeElement.name || document.activeElement.textContent"))
    assert names == ["tokens", "recipe", "bytes", "device", "devices", "format", "mfu", "Start over"]
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
    results = opened.locator(".lb-results").inner_text()
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
    assert opened.locator(".lb-results").inner_text() == results
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
    ):  # fmt: skip
        assert opened.get_by_label(name, exact=True).count() == 1, name
    assert opened.get_by_role("group", name="The machines").count() == 1
    assert opened.get_by_role("group", name="Results").get_by_role("status").count() == 6
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


def test_the_script_is_a_few_kilobytes(repo: Path) -> None:
    assert (repo / "docs/assets/calculator.js").stat().st_size < 12_000
