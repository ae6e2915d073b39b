"""axe-core over the site: no page leaves out those who read with other eyes, or with none.

The checker comes inside the package axe-playwright-python. Every rule of it runs on every kind of page, in the
light theme; in the dark theme the rules about colours run again, because nothing else differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from litbook.markdown import to_html
from litbook.markdown.links import Citations, NoteContext

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGES = (
    "",
    "guide/",
    "lectures/",
    "lectures/lecture_02/",
    "lectures/lecture_02/number-formats/",
    "lectures/lecture_02/tensors-on-a-gpu/",
    "lectures/lecture_02/workbook/",
    "lectures/ledger/",
    "lectures/ledger/lecture_02/storage-and-views/",
    "lectures/misbeliefs/",
    "lectures/devices/",
    "calculator/",
    "404.html",
)
PHONE = ("lectures/lecture_02/tensors-on-a-gpu/", "lectures/lecture_02/napkin-math/", "calculator/")
COLOURS = ["color-contrast", "link-in-text-block"]

# Material's script puts a <nav> without a name around the copy button of every block of code, and no option or
# template reaches it. That one rule is off for that one element; the button itself has a name.
EXCEPT = ("landmark-unique", ".md-code__nav")

# What repeats is checked four times a page, and no more: axe needs a minute for a thousand rows. Such are rows of the
# ledger and of the list of misbeliefs, some of each verdict; and whatever else is built of the same elements with the
# same classes, in the same place: rows of tables, fields of the calculator, cells of a notebook, pieces of code.
FEW = """(inside) => {
  const seen = {}, often = (it) => (seen[it] = (seen[it] || 0) + 1) > 4;
  const kind = (it) => `${it.tagName}.${it.getAttribute('class')}.${it.getAttribute('style')}.${it.getAttribute('fill')}`;
  const path = (it) => it ? `${path(it.parentElement)} ${kind(it)}` : '';
  if (inside !== 'html') document.querySelectorAll('body *').forEach((it) => {
    const kept = `${inside}, .md-header, style`;
    if (!it.closest(kept) && !it.querySelector(kept)) it.remove(); });
  document.querySelectorAll('.lb-entry, .lb-sayings > li, .lb-part').forEach((row) => {
    if (often(row.className)) row.remove(); });
  document.querySelectorAll('tbody tr, .lb-field, .lb-result, .lb-claim, .jp-Cell, article p, option').forEach((it) => {
    if (often([path(it), ...[...it.querySelectorAll('*')].map(kind)].join())) it.remove(); });
  document.querySelectorAll('code span, pre span, .lb-c span, svg text').forEach((it) => {
    if (!it.children.length && !it.id && often(path(it))) it.remove(); });
}"""


# What a mouse may click that neither takes the focus, nor lies in what does, nor is the label of a field that does.
CLICKS = """() => [...document.querySelectorAll('body *')].filter((it) => it.checkVisibility()
    && getComputedStyle(it).cursor === 'pointer' && getComputedStyle(it.parentElement).cursor !== 'pointer'
    && it.getBoundingClientRect().width > 0
    && !it.closest('a[href], button, summary, input, select, label, [tabindex="0"]'))
  .map((it) => it.outerHTML.slice(0, 120))"""


def kind(page: str) -> str:
    """What a page is one of many of; of those that were written by hand, a document."""
    page = re.sub(r"lecture_\d+", "lecture", page.removesuffix("index.html"))
    if not page.startswith("lectures/"):
        return page if page in ("", "404.html", "calculator/") else "document"
    return re.sub(r"(lecture/)[\w-]+/$", r"\1*/", page)


def test_a_page_of_every_kind_is_checked(site: Path) -> None:
    every = {kind(str(it.relative_to(site))) for it in site.rglob("*.html")}
    assert every <= {kind(it) for it in PAGES}
    assert {"lectures/lecture/*/", "lectures/ledger/lecture/*/"} <= every


def test_whatever_a_mouse_can_click_the_tab_key_reaches(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    found = {}
    for name in PAGES:
        page.goto(address + name)
        found[name] = page.evaluate(CLICKS)
    page.close()
    assert {name: it for name, it in found.items() if it} == {}


@pytest.mark.parametrize(
    "name", ["", "lectures/lecture_02/", "lectures/lecture_02/napkin-math/", "calculator/"]
)
def test_few_stops_of_the_tab_key_lead_from_the_start_to_the_article(
    browser: Browser, address: str, name: str
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address + name)
    stops = 0
    while not page.evaluate("!!document.activeElement.closest('article')"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops <= 20, name
    box = "(it) => document.querySelector(it).getBoundingClientRect().left"
    assert page.evaluate(box, ".md-sidebar--primary") < page.evaluate(box, "article")
    page.close()


def test_the_calculator_on_paper_has_no_field_and_keeps_its_answers(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 800, "height": 1100})
    page.goto(address + "calculator/")
    page.locator("#lb-rows > *").first.wait_for()
    page.emulate_media(media="print")
    assert page.locator(".lb-calc :is(input, select, textarea):visible").count() == 0
    assert page.locator("#lb-rows").is_visible()
    page.close()


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core."""
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    assert source.startswith("/*! axe v4."), "another axe-core: read what its rules are"
    return source


@pytest.fixture
def laptop(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield page
    page.close()


def violations(page: Page, axe: str, rules: list[str] | None = None, inside: str = "html") -> list[str]:
    """What axe finds, one line for each element; of a part of the page, the rest taken away, if a selector says which."""
    page.evaluate(FEW, inside)
    page.evaluate(axe)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    found = page.evaluate("([inside, options]) => axe.run(inside, options)", [inside, options])
    return [
        f"{page.url}: {it['id']} ({it['help']}): {node['target']} {node['failureSummary']}"
        for it in found["violations"]
        for node in it["nodes"]
        if not (it["id"] == EXCEPT[0] and node["target"][0].endswith(EXCEPT[1]))
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_axe_finds_nothing(laptop: Page, address: str, axe: str) -> None:
    page = laptop
    found: list[str] = []
    for name in PAGES:
        page.emulate_media(color_scheme="light")
        page.goto(address + name)
        found += violations(page, axe)
        found += in_the_dark(page, axe)
    assert found == []


def in_the_dark(page: Page, axe: str, inside: str = "html") -> list[str]:
    """What axe finds against the colours when the reader's system turns dark."""
    page.emulate_media(color_scheme="dark")
    page.locator("[data-md-color-scheme=slate]").first.wait_for()
    return violations(page, axe, COLOURS, inside)


def test_axe_finds_nothing_beside_the_open_player(laptop: Page, address: str, axe: str) -> None:
    page = laptop
    page.goto(address + "lectures/lecture_02/tensors/")
    page.locator(".lb-player button").click()
    page.locator(".lbp").wait_for()
    page.keyboard.press("ArrowRight")
    assert violations(page, axe) + in_the_dark(page, axe) == []


def test_axe_finds_nothing_where_everything_is_open(laptop: Page, address: str, axe: str) -> None:
    """Asides, answers, definitions, and the results of a search above them."""
    page = laptop
    page.goto(address + "lectures/lecture_02/checkpoints/")
    page.evaluate("document.querySelectorAll('article details').forEach((it) => { it.open = true; })")
    page.locator(".lb-ask input").first.fill("3")
    page.locator(".lb-ask input").first.press("Enter")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    page.keyboard.type("stride")
    page.locator(".md-search-result__link").first.wait_for(state="visible", timeout=15_000)
    assert violations(page, axe) + in_the_dark(page, axe) == []


def test_axe_finds_nothing_in_pictures_that_were_moved(
    laptop: Page, address: str, site: Path, axe: str
) -> None:
    """Each with its sliders at their ends, in asides too, and one of them with the player open beside it."""
    page = laptop
    seen, opened, found = 0, False, list[str]()
    for file in sorted(site.rglob("index.html")):
        if 'class="lb-explore' not in file.read_text(encoding="utf-8"):
            continue
        page.emulate_media(color_scheme="light")
        page.goto(address + str(file.relative_to(site)).removesuffix("index.html"))
        page.evaluate("document.querySelectorAll('article details').forEach((it) => { it.open = true; })")
        seen += page.locator(".lb-explore").count()
        for slider in page.locator(".lb-explore input[type=range]:visible").all():
            slider.press("End")
        if not opened and page.locator(".lb-player button").count():
            page.locator(".lb-player button").click()
            page.locator(".lbp").wait_for()
            opened = True
        found += violations(page, axe, inside=".lb-explore, .lbp")
        found += in_the_dark(page, axe, inside=".lb-explore, .lbp")
    assert seen >= 16 and opened
    assert found == []


@pytest.mark.slow
def test_axe_finds_nothing_on_a_phone(browser: Browser, address: str, axe: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    found: list[str] = []
    for name in PHONE:
        page.goto(address + name)
        found += violations(page, axe)
    page.close()
    assert found == []


def test_axe_finds_nothing_in_what_a_note_may_hold(browser: Browser, axe: str) -> None:
    text = """A [@tab:t].\n\n??? note "More"\n    text\n\n!!! tip "A"\n    a\n\n[@tab:t]: Caption.\n\n| a |\n|---|\n| b |
\n[@eq:e]: $$ x $$"""
    setting = NoteContext(Citations({}), number=lambda label: ("Table 1", f"#{label.replace(':', '-')}"))
    again = text.replace(":t]", ":u]").replace(":e]", ":f]")
    inside = "".join(to_html.blocks(text, setting) + to_html.blocks(again, setting))
    assert setting.problems == []
    page = browser.new_page()
    page.set_content(f'<html lang="en"><title>t</title><main><h1>h</h1>{inside}</main></html>')
    assert violations(page, axe) == []
    page.close()


def test_axe_does_find_what_is_wrong(browser: Browser, axe: str) -> None:
    page = browser.new_page()
    page.set_content('<html lang="en"><title>t</title><main><h1>h</h1><img src="data:,"></main></html>')
    assert any("image-alt" in line for line in violations(page, axe))
    page.close()
