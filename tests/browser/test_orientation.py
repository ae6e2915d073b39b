"""Where am I: the contents follow the reading, a definition opens beside its use, and Back leads to the line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.running import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LECTURE = "lectures/lecture_02/"
LONGEST = f"{LECTURE}number-formats/"
PEAKS = f"{LECTURE}peaks-and-mfu/"


@pytest.fixture
def laptop(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 700})
    yield page
    page.close()


# A heading comes under the header; then its entry is the last of those that Material calls active.
SCROLL = "(id) => { const it = document.getElementById(id); scrollTo(0, it.getBoundingClientRect().top + scrollY - 60); }"
IN_VIEW = """(id) => {
  const entry = [...document.querySelectorAll('[data-md-component=toc] .md-nav__link--active')].pop();
  if (!entry || !entry.hash.endsWith('#' + id)) return false;
  const box = document.querySelector('.md-sidebar--primary .md-sidebar__scrollwrap').getBoundingClientRect();
  const its = entry.getBoundingClientRect();
  return its.top >= box.top - 1 && its.bottom <= Math.min(box.bottom, innerHeight) + 1;
}"""


@pytest.mark.parametrize("name", [LONGEST, f"{LECTURE}data-and-randomness/"])
def test_the_contents_keep_the_section_that_is_read_in_view(laptop: Page, address: str, name: str) -> None:
    laptop.goto(address + name)
    read = laptop.evaluate("[...document.querySelectorAll('article h2[id]')].map((it) => it.id)")
    read = [it for it in read if it not in ("definitions", "references")]  # both end below the last screen
    assert len(read) > 6
    for section in read:
        laptop.evaluate(SCROLL, section)
        until(laptop, IN_VIEW, arg=section)


def test_the_contents_say_a_section_in_few_words_and_the_heading_says_its_thesis(
    laptop: Page, address: str
) -> None:
    laptop.goto(address + PEAKS)
    laptop.locator("h2#mfu_counts_what_the_model_needs").wait_for()
    entry = laptop.locator("[data-md-component=toc] a[href='#mfu_counts_what_the_model_needs']")
    assert entry.inner_text() == "MFU counts what the model needs"
    entries = laptop.locator("[data-md-component=toc] a").all_inner_texts()
    assert sum(map(len, entries)) / len(entries) < 40


def test_previous_and_next_stand_above_the_title_too(laptop: Page, address: str) -> None:
    laptop.goto(address + PEAKS)
    above = laptop.get_by_role("navigation", name="place in this lecture")
    assert above.bounding_box()["y"] < laptop.locator("h1").bounding_box()["y"]  # type: ignore[index]
    above.locator("a[rel=next]").click()
    laptop.wait_for_url("**/measuring-a-rate/")


# ------------------------------------------------------------------------------- a helper's definition

OWN = ".lb-c a[href^='#']:visible"
OTHER = ".lb-c a[href^='../']:visible"


@pytest.mark.parametrize("use", [OWN, OTHER], ids=["of this page", "of another page"])
def test_a_definition_opens_beside_its_use_and_the_place_is_kept(
    laptop: Page, address: str, use: str
) -> None:
    laptop.goto(address + PEAKS)
    link = laptop.locator(use).nth(2)
    link.scroll_into_view_if_needed()
    name, before = link.inner_text(), laptop.evaluate("scrollY")
    link.focus()
    laptop.keyboard.press("Enter")
    box = laptop.get_by_role("dialog", name=name)
    box.wait_for()
    assert re.search(rf"(def|class) {name}\b", box.inner_text())
    assert box.get_by_role("link", name="Go there").evaluate("(it) => it == document.activeElement")
    place, line = box.bounding_box(), link.bounding_box()
    assert place and line
    assert (
        min(abs(place["y"] - line["y"] - line["height"]), abs(place["y"] + place["height"] - line["y"])) < 10
    )
    assert laptop.evaluate("scrollY") == before
    assert laptop.evaluate("document.querySelectorAll('#lb-beside [id]').length") == 0
    laptop.keyboard.press("Escape")
    assert box.count() == 0 or box.is_hidden()
    assert link.evaluate("(it) => it == document.activeElement")


@pytest.mark.parametrize("scripts", [True, False])
def test_back_returns_to_the_line(browser: Browser, address: str, scripts: bool) -> None:
    context = browser.new_context(java_script_enabled=scripts, viewport={"width": 1280, "height": 700})
    page = context.new_page()
    page.goto(address + PEAKS)
    link = page.locator(OWN).nth(2)
    link.scroll_into_view_if_needed()
    line = link.bounding_box()
    link.click()
    if scripts:
        page.get_by_role("link", name="Go there").click()
    page.wait_for_url("**#*L*")
    page.wait_for_timeout(300)
    page.go_back()
    page.wait_for_timeout(300)
    now = link.bounding_box()
    assert line and now
    assert abs(now["y"] - line["y"]) < 3
    context.close()


def test_without_a_server_a_definition_of_another_page_is_a_link(site: Path, laptop: Page) -> None:
    laptop.goto((site / PEAKS / "index.html").as_uri())
    laptop.locator(OTHER).first.click()
    laptop.wait_for_url("**/index.html#*L*")
    assert laptop.locator("details.lb-def:has(:target)").is_visible()


# ------------------------------------------------------------------------------- keys


def test_the_keys_of_the_site_are_those_that_how_to_read_names(laptop: Page, address: str) -> None:
    laptop.goto(address + "how-to-read/")
    keys = laptop.locator("#where-you-are ~ .md-typeset__scrollwrap td:first-child code").all_inner_texts()
    assert {"n", "p", "/", "Esc"} <= set(keys)
    laptop.goto(address + PEAKS)
    laptop.keyboard.press("n")
    laptop.wait_for_url("**/measuring-a-rate/")
    laptop.keyboard.press("p")
    laptop.wait_for_url("**/peaks-and-mfu/")
    laptop.keyboard.press("/")
    until(laptop, "() => document.activeElement.closest('.md-search')")


# ------------------------------------------------------------------------------- paper

KEPT = """() => [...document.querySelectorAll('article :is(h1, h2, h3, figure, svg, .lb-at), article details > summary')]
  .filter((it) => { const style = getComputedStyle(it), drawn = it.matches('figure, svg'), place = it.matches('.lb-at');
    return !(place || style.breakInside == 'avoid') || !(drawn || style.breakAfter == 'avoid'); })
  .map((it) => it.tagName + '.' + it.className)"""


def test_on_paper_no_heading_stands_alone_and_no_drawing_is_cut(laptop: Page, address: str) -> None:
    """The rules are asked for, and the pages counted: asides that are kept whole leave a third of them empty."""
    laptop.goto(address + f"{LECTURE}storage-and-views/")
    laptop.emulate_media(media="print")
    assert laptop.evaluate(KEPT) == []
    assert laptop.locator(".lb-aside > summary:visible").count() == 0, "nothing between heading and text"
    pages = len(re.findall(rb"/Type\s*/Page\b", laptop.pdf(format="A4")))
    assert 12 < pages < 34


# ---------------------------------------------------------------------------- a part begins with its prose

BELOW = """() => {
  const title = document.querySelector('article h1').getBoundingClientRect().bottom;
  const first = [...document.querySelectorAll('article > .lb-prose, article > .lb-code, article > h2')];
  return Math.min(...first.map((it) => it.getBoundingClientRect().top)) - title;
}"""


def test_a_part_begins_below_its_title_and_its_machine_stands_at_the_foot(
    browser: Browser, address: str, site: Path
) -> None:
    page = browser.new_page()
    others = "questions", "workbook"
    pages = [it.parent for it in site.glob("lectures/lecture_0*/*/index.html")]
    parts = [it for it in pages if it.name not in others]
    assert len(parts) > 20
    for part in parts:
        page.goto(address + part.relative_to(site).as_posix() + "/")
        page.locator("article .lb-path").first.wait_for()
        foot = page.locator("article .lb-nb-way")
        for width, most in ((1280, 200), (390, 300)):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate(BELOW) <= most, (part.name, width)
            assert foot.bounding_box()["y"] > page.locator("article h2").last.bounding_box()["y"]  # type: ignore[index]
    page.close()


def test_tab_goes_from_link_to_link_and_not_from_line_to_line(laptop: Page, address: str) -> None:
    laptop.goto(address + PEAKS)
    stops = "[...document.querySelectorAll('article a[href]')].filter((it) => it.tabIndex >= 0)"
    assert laptop.evaluate(f"{stops}.filter((it) => it.classList.contains('lb-n')).length") == 0
    assert laptop.evaluate("document.querySelectorAll('a.lb-n[href]').length") > 100
