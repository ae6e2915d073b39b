"""Pictures with sliders in a browser: by keys and by pointer, at every point what the run computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import markdown
import pytest
from tests.running import record

from litbook.explore.chart import chart
from litbook.html import page as pages
from litbook.record.model import Grid

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TEXT = '''"""Sliders."""
from litbook import explore


def rate(batch, context):
    if (batch, context) == (3, 300):
        raise ValueError("<b>nothing</b>")
    return {"all": batch / (1 + batch * context / 1000), "each": 1 / (1 + batch * context / 1000)}


def main():
    over = {"batch": range(1, 21), "context": range(100, 1300, 100)}
    explore(rate, over=over, at={"batch": 4, "context": 200}, kind="curve", caption="Rate.", alt="Two lines.",
            do="Raise the batch.", see="It flattens.", limit=("roof", 2))
    explore(rate, over=over, at={"batch": 4, "context": 200}, unit="s", caption="Bars.", alt="Two bars.")
    explore(lambda size: {"a": len(size), "b": 2}, over={"size": ["s", "mm", "lll"]}, at={"size": "mm"},
            kind="stack", caption="Stack.", alt="A bar.", unit="B", limit=("card", 4))
'''


@pytest.fixture(scope="module")
def made(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Grid]]:
    """The page, and the grids of its pictures."""
    kept = record(tmp_path_factory.mktemp("explored"), TEXT)
    grids = [piece.grid for section in kept.sections for piece in section.pieces if piece.grid]
    body = markdown.markdown(pages.pages(kept)["index.md"], extensions=["attr_list", "md_in_html"])
    assets = repo / "tools/litbook/html/assets"
    style, script = ((assets / name).read_text(encoding="utf-8") for name in ("litbook.css", "explore.js"))
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>q</title><style>{style}</style>'
    return f'{head}<article class="md-typeset">{body}</article><script>{script}</script>', grids


@pytest.fixture
def page(browser: Browser, made: tuple[str, list[Grid]]) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.set_content(made[0])
    yield page
    page.close()


MARKS = """(figure) => [...figure.querySelectorAll('.lb-bar, .lb-dot')].map(
    (it) => Math.round(10 * parseFloat(it.style.getPropertyValue(it.matches('.lb-dot') ? '--y' : '--w'))))"""
SET = """(figure, at) => [...figure.querySelectorAll('input, select')].forEach((field, i) => {
    field.value = at[i]; field.dispatchEvent(new Event('input')); })"""


def test_every_point_is_the_one_that_the_run_computed(page: Page, made: tuple[str, list[Grid]]) -> None:
    seen = 0
    for figure, grid in zip(page.locator(".lb-explore").all(), made[1], strict=True):
        drawn = chart(grid)
        sizes = [len(slider.places) for slider in grid.sliders]
        for index, point in enumerate(drawn.points):
            at = [index] if len(sizes) == 1 else [*divmod(index, sizes[1])]
            figure.evaluate(SET, at)
            texts = figure.locator(".lb-text").all_text_contents()
            assert texts == ([*point.texts] or ["–", "–"])
            gap = figure.locator(".lb-gap")
            assert gap.is_visible() == bool(point.gap)
            if point.gap:
                assert gap.text_content() == "no value: <b>nothing</b>"
            else:
                assert figure.evaluate(MARKS) == [*point.marks]
            seen += 1
    assert seen == 2 * 240 + 3


def test_arrows_home_and_end_move_a_slider_and_say_what_is_there(page: Page) -> None:
    field = page.locator(".lb-explore input").first
    field.focus()
    page.keyboard.press("ArrowRight")
    output = page.locator(".lb-explore output").first
    assert output.text_content() == "5" and field.get_attribute("aria-valuetext") == "5: all 2.5, each 0.5"
    page.keyboard.press("End")
    assert output.text_content() == "20"
    page.keyboard.press("Home")
    assert output.text_content() == "1"


def test_a_pointer_drags_a_slider(page: Page) -> None:
    field = page.locator(".lb-explore input").first
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 3 / 19, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    assert page.locator(".lb-explore output").first.text_content() == "20"


def test_the_second_slider_draws_another_line_with_a_gap_where_there_is_no_value(page: Page) -> None:
    figure = page.locator(".lb-explore").first
    figure.evaluate(SET, [0, 2])
    path = figure.locator(".lb-line").first.get_attribute("d")
    assert path and path.count("M") == 2 and path.count("L") == 17


def test_without_a_script_the_authors_point_stands_there(
    browser: Browser, made: tuple[str, list[Grid]]
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(made[0])
    assert page.locator(".lb-explore .lb-text").all_text_contents()[:2] == ["2.222", "0.5556"]
    assert page.locator(".lb-innumbers").first.locator("td").all_text_contents()[1:4] == [
        "2.222",
        "0.9091",
        "0.8",
    ]
    assert page.locator(".lb-try").count() and not page.locator(".lb-try:visible").count()  # nothing to move
    context.close()


def test_nothing_is_wider_than_a_phone_and_paper_has_the_numbers(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator(".lb-try").first.is_visible()
    page.emulate_media(media="print")
    assert not page.locator(":is(.lb-sliders, .lb-try):visible").count()
    assert page.locator(".lb-innumbers table").first.is_visible()
