"""Pictures that an author's script draws: it is held to what the run gave, and drawn when it comes into view."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import markdown
import pytest
import torch
from tests.running import record

from litbook.html import media
from litbook.html import page as pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TEXT = '''"""Drawn."""
from litbook import explore
from matplotlib.figure import Figure


def sums(a, b):
    if (a, b) == (2, 2):
        raise ValueError("nothing here")
    return {"sum": a + b, "far": float("inf"), "all": [a, b]}


def main():
    explore(sums, over={"a": range(3), "b": range(100)}, at={"a": 1, "b": 7}, module="sum.js", still=Figure(),
            caption="<b>Sum</b>.", alt="A sum.", do="Add.", see="More.")
'''
SCRIPT = """window.litbookPicture = {
  values: ({ a, b }) => (a === 2 && b === 2 ? "none" : { sum: a + b, far: Infinity, all: [a, b] }),
  draw(stage, { place, values, move, make }) {
    const more = make("button", { type: "button", onclick: () => move({ a: 2, b: place.b + 1 }) }, "more");
    stage.replaceChildren(make("svg", {}, make("text", {}, String(values.sum))), more);
    return `${place.a} and ${place.b} make ${values.sum ?? values}`;
  },
};
"""


def made(repo: Path, folder: Path, script: str = SCRIPT, below: int = 0) -> str:
    """The address of a page with one picture, so many pixels below its head."""
    (folder / "sum.js").write_text(script, encoding="utf-8")
    kept = record(folder, TEXT)
    at = folder / "lectures" / "one"
    for name, content in media.files([kept]).items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(content)
    assets = folder / "assets" / "litbook"
    assets.parent.mkdir()
    assets.symlink_to(repo / "tools/litbook/html/assets", target_is_directory=True)
    body = markdown.markdown(pages.pages(kept)["index.md"], extensions=["attr_list", "md_in_html"])
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>q</title>'
    style = '<link rel="stylesheet" href="../../assets/litbook/litbook.css">'
    text = f'{head}{style}<article class="md-typeset"><p style="height:{below}px"></p>{body}</article>'
    (at / "index.html").write_text(text, encoding="utf-8")
    return (at / "index.html").as_uri()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    yield page
    page.close()


def test_the_script_comes_when_the_picture_comes_into_view_and_draws_every_point(
    repo: Path, tmp_path: Path, page: Page
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(made(repo, tmp_path, below=3000))
    assert page.locator(".lb-stage > svg.lb-plot").count() == 1, "the still picture has its place"
    assert not page.locator(".lb-stage > svg.lb-plot").is_visible(), (
        "no other drawing before the one that moves"
    )
    assert not any("/pictures/" in url for url in asked)
    page.emulate_media(media="print")
    assert page.locator(".lb-stage > svg.lb-plot").is_visible(), (
        "paper has the still one, also of what was not in view"
    )
    page.emulate_media(media="screen")
    page.locator(".lb-sliders input").first.focus()  # scrolls there
    page.locator(".lb-begun").wait_for()
    assert page.evaluate("document.activeElement.id") == "explore-1-0", "the focus stays where it was"
    says = page.locator(".lb-verdict")
    order = page.evaluate("[...document.querySelector('.lb-live').children].map((it) => it.classList[0])")
    assert order[-5:] == ["lb-verdict", "lb-stage", "lb-sliders", "lb-says", "lb-open"]
    assert says.text_content() == "1 and 7 make 8"
    assert sum("/pictures/" in url for url in asked) == 1
    fields = page.locator(".lb-sliders input")
    fields.first.focus()
    page.keyboard.press("ArrowRight")
    assert says.text_content() == "2 and 7 make 9"
    assert fields.first.get_attribute("aria-valuetext") == "2: 2 and 7 make 9"
    fields.nth(1).focus()
    page.keyboard.press("End")
    assert says.text_content() == "2 and 99 make 101" and page.locator("output").nth(1).text_content() == "99"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.locator(".lb-stage button").click()
    assert says.text_content() == "2 and 2 make none", "the script moves the sliders, too"
    assert fields.nth(1).input_value() == "2"
    box = fields.nth(1).bounding_box()
    assert box
    page.mouse.move(box["x"] + 5, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    assert says.text_content() == "2 and 99 make 101"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize(
    ("good", "bad", "place"),
    [
        ("sum: a + b,", "sum: a + b + (a === 1 && b === 50),", '{"a":1,"b":50}'),
        ("far: Infinity", "far: 1e308", '{"a":0,"b":0}'),
        ("all: [a, b]", "all: [a]", '{"a":0,"b":0}'),
        ('? "none" :', "? { sum: 4 } :", '{"a":2,"b":2}'),
        ("a === 2 && b === 2", "a === 2 && b === 3", '{"a":2,"b":2}'),
    ],
)
def test_a_script_that_says_something_else_than_the_run_draws_nothing(
    repo: Path, tmp_path: Path, page: Page, good: str, bad: str, place: str
) -> None:
    assert SCRIPT.count(good) == 1
    page.goto(made(repo, tmp_path, SCRIPT.replace(good, bad)))
    page.get_by_text(f"The script of this picture differs from the run here: {place}.").wait_for()
    assert page.locator(".lb-stage > svg.lb-plot").is_visible(), "the still picture stays"


def test_a_script_that_is_lost_is_told_and_without_scripts_the_picture_is_whole(
    repo: Path, tmp_path: Path, page: Page, browser: Browser
) -> None:
    address = made(repo, tmp_path)
    for script in (tmp_path / "lectures/one/pictures").iterdir():
        script.unlink()
    page.goto(address)
    page.get_by_text("The script of this picture could not be loaded.").wait_for()
    context = browser.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto(address)
    assert still.locator(".lb-stage > svg.lb-plot").is_visible()
    assert not still.locator(".lb-sliders").is_visible()
    context.close()


SAID = "(it) => [...it.querySelectorAll('.lb-verdict, .lb-says')].map((one) => one.textContent).join(' ')"
# What is drawn outside the frame of its drawing, and text below 12 pixels.
CUT = """(it) => [...it.querySelectorAll('.lb-stage svg[viewBox]:not(.lb-plot)')].flatMap((svg) => {
    const box = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text, rect, circle')].filter((one) => {
        const { left, right, top, bottom, width } = one.getBoundingClientRect();
        const small = one.matches('text') && parseFloat(getComputedStyle(one).fontSize) * box.width < 12 * svg.viewBox.baseVal.width;
        return width && (small || left < box.left - 2 || right > box.right + 2 || top < box.top - 2 || bottom > box.bottom + 2);
    }).map((one) => one.outerHTML); })"""
# How high the result, the picture and its controls are together; and what a finger would miss.
HIGH = """(it) => it.querySelector('.lb-sliders').getBoundingClientRect().bottom
    - it.querySelector('.lb-verdict').getBoundingClientRect().top"""
MISSED = """(it) => [...it.querySelectorAll('input, select, button')].filter((one) => {
    const { width, height } = one.getBoundingClientRect(); return width < 24 || height < 24; }).map((one) => one.outerHTML)"""


def test_every_picture_of_the_book_is_held_to_its_run_and_drawn(
    site: Path, browser: Browser, address: str
) -> None:
    """Each that computes agrees with Python at 200 points or more, and each is drawn without an error."""
    found, computing = [it for it in site.rglob("index.html") if "data-script=" in it.read_text("utf-8")], 0
    assert found
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.add_init_script(
        "Object.defineProperty(window, 'litbookPicture', { configurable: true,"
        "set(it) { Object.defineProperty(window, 'litbookPicture', { configurable: true, writable: true, value: it });"
        "(window.pictures = window.pictures || []).push(it); } })"
    )
    for it in found:
        page.goto(f"{address}{it.parent.relative_to(site).as_posix()}/")
        page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })")  # asides
        for figure in page.locator(".lb-live").all():
            height = "(it) => it.querySelector('.lb-stage').getBoundingClientRect().height"
            before = figure.evaluate(height)
            figure.scroll_into_view_if_needed()
            figure.locator(":scope.lb-begun").wait_for()
            assert abs(figure.evaluate(height) - before) < 1, (
                "the drawn picture has the place of the still one"
            )
            assert figure.evaluate(CUT) == [], "all of a picture is inside its frame"
            page.set_viewport_size({"width": 390, "height": 844})
            figure.evaluate("async () => new Promise(requestAnimationFrame)")
            assert figure.evaluate(CUT) == [], "also on a phone, where all text has 12 pixels"
            assert figure.evaluate(HIGH) <= 844 and figure.evaluate(MISSED) == []
            page.set_viewport_size({"width": 1280, "height": 900})
            verdict = figure.locator(".lb-verdict").text_content()
            assert verdict and len(verdict) <= 100, verdict
            for field in figure.locator(".lb-sliders input").all()[:1]:  # where there is one
                field.focus()
                page.keyboard.press("Home")
                first = figure.evaluate(SAID)
                field.evaluate("(it) => it.scrollIntoView({ block: 'center' })")
                box = field.bounding_box()
                assert box
                page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
                last = figure.evaluate(SAID)
                assert first and last and first != last, "the pointer moves it to its other end"
                page.keyboard.press("Home")
                assert figure.evaluate(SAID) == first, "and a key moves it back"
        points = page.evaluate("window.pictures.filter((it) => it.values).map((it) => it.run.points.length)")
        assert min(points, default=200) >= 200, (it, points)
        computing += len(points)
    assert wrong == [] and computing >= 5
    page.close()


def test_bits_keep_their_number_in_another_format_and_a_typed_one_is_rounded_as_torch_does(
    address: str, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}lectures/lecture_02/number-formats/")
    page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
    figure = page.locator(".lb-live", has=page.locator(".lb-sliders", has_text="dtype"))
    figure.scroll_into_view_if_needed()
    figure.locator(":scope.lb-begun").wait_for()
    says, formats = figure.locator(".lb-verdict"), figure.locator(".lb-sliders select")
    told = {}
    for i, dtype in enumerate(
        (torch.bfloat16, torch.float32, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2)
    ):
        formats.select_option(index=i)
        words = says.text_content() or ""
        assert words.startswith("256 + 1 ="), f"another format keeps the number: {words}"
        for typed in (1e39, -65520.0, 464.5, 0.1, -1e-30):
            number = figure.get_by_label("a number", exact=True)
            number.fill(str(typed))
            number.press("Enter")
            value = float(re.split(r" \+ 1 = | in ", says.text_content() or "")[0].replace("Infinity", "inf"))
            told[dtype, typed] = value, torch.tensor(typed, dtype=torch.float64).to(dtype).double().item()
        number.fill("256")
        number.press("Enter")
    assert len(told) == 25
    assert [it for it, (value, right) in told.items() if value != pytest.approx(right, rel=1e-8)] == []
    page.close()
