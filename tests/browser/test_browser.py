"""The pages in a real browser: both themes, phone and laptop, with and without scripts, on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.running import sampled, until

from litbook.markdown import grammar, to_html
from litbook.markdown.links import Citations, NoteContext

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PAGES = (
    "",
    "how-to-read/",
    "guide/",
    "how-it-works/",
    "record/",
    "lectures/",
    "lectures/lecture_02/",
    "lectures/lecture_02/number-formats/",
    "lectures/lecture_02/storage-and-views/",
    "lectures/lecture_02/tensors-on-a-gpu/",
    "lectures/ledger/",
    "lectures/misbeliefs/",
    "calculator/",
)
LECTURE = "lectures/lecture_02/"
STORAGE = f"{LECTURE}storage-and-views/"


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=str)
def context(browser: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    yield context
    context.close()


@pytest.fixture
def laptop(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield page
    page.close()


@pytest.mark.parametrize("context", [(1280, "light"), (390, "dark")], ids=str, indirect=True)
def test_no_page_scrolls_sideways_complains_or_asks_elsewhere(context: BrowserContext, address: str) -> None:
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(f"{page.url}: {m.text}") if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    page.on(
        "request",
        lambda r: None if r.url.startswith((address, "data:", "blob:")) else complaints.append(r.url),
    )
    for name in sampled(PAGES, 2):
        page.goto(address + name)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{name} is {wide} px too wide"
    assert complaints == []


def test_what_a_reader_does_on_a_page_asks_nobody_elsewhere(laptop: Page, address: str) -> None:
    found: list[str] = []
    laptop.on("console", lambda m: found.append(m.text) if m.type == "error" else None)
    laptop.on(
        "request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else found.append(r.url)
    )
    laptop.goto(address + STORAGE)
    laptop.get_by_role("button", name="Step through").first.click()
    laptop.keyboard.press("ArrowRight")
    assert laptop.locator(".lbp-stack, .lb-player, [class^=lbp]").first.is_visible()
    laptop.keyboard.press("Escape")
    laptop.locator("label.md-header__button[for^=__palette]:visible").click()
    for name in (
        "calculator",
        "lectures/ledger/lecture_02/tensors",
        "lectures/misbeliefs",
        "lectures/devices",
    ):
        laptop.goto(f"{address}{name}/")
    laptop.goto(f"{address}404.html")
    laptop.goto(address)
    laptop.keyboard.press("/")
    laptop.keyboard.type("bfloat16")
    laptop.locator(".md-search-result__link").first.wait_for(state="visible", timeout=15_000)
    laptop.keyboard.press("Enter")
    laptop.wait_for_url("**/lecture_02/**", timeout=15_000)
    assert found == []


def test_text_of_twice_the_size_stays_on_the_screen_of_a_phone(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    for name in ("", "lectures/", "lectures/misbeliefs/", STORAGE):
        page.goto(address + name)
        page.evaluate("document.documentElement.style.fontSize = '250%'")  # Material's own is 125 %
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    page.close()


def test_values_stand_beside_their_line_on_a_laptop_and_under_it_on_a_phone(
    browser: Browser, address: str
) -> None:
    for width, beside in ((1280, True), (390, False)):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(address + STORAGE)
        code = page.locator(".lb-code .lb-c").first.bounding_box()
        value = page.locator(".lb-code .lb-v").first.bounding_box()
        assert code is not None
        assert value is not None
        if beside:
            assert abs(code["y"] - value["y"]) < 8
            assert value["x"] > code["x"] + code["width"] - 1
        else:
            assert value["y"] >= code["y"] + code["height"] - 1
        page.close()


def test_the_page_is_complete_without_scripts(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(address + STORAGE)
    article = page.locator("article").inner_text()
    assert "Transposing a matrix moves none of its elements" in article
    assert "strides swap" in article or "swapped" in article
    assert page.locator(".lb-holds").count() > 50
    assert page.locator("article svg[role=img]").first.is_visible()
    context.close()


def test_a_citation_opens_beside_its_line_without_scripts(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(address + LECTURE)
    number = page.locator(".lb-cite button").first
    card = page.locator(f"#{number.get_attribute('popovertarget')}")
    assert not card.is_visible()
    number.click()
    assert card.is_visible() and "In the list" in card.inner_text()
    there, below = number.bounding_box(), card.bounding_box()
    assert there and below
    gaps = below["y"] - there["y"] - there["height"], there["y"] - below["y"] - below["height"]
    assert 0 <= max(gaps) < 40  # below its line, or above where there is more room
    assert page.url.endswith(LECTURE)
    context.close()


def test_a_line_number_is_a_link_that_leads_to_its_line(laptop: Page, address: str) -> None:
    laptop.goto(address + STORAGE)
    last = laptop.locator("a.lb-n").last
    name = last.get_attribute("href")
    assert name is not None
    laptop.goto(address + STORAGE + name)
    box = laptop.locator(name).bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900


def test_the_search_finds_a_section_and_opens_it(laptop: Page, address: str) -> None:
    laptop.goto(address)
    laptop.keyboard.press("/")
    laptop.keyboard.type("bfloat16")
    found = laptop.locator(".md-search-result__link").first
    found.wait_for(state="visible", timeout=15_000)
    found.click()
    laptop.wait_for_url("**/lecture_02/**", timeout=15_000)
    assert "bfloat16" in laptop.locator("article").inner_text()


def test_the_theme_can_be_switched_and_is_remembered(laptop: Page, address: str) -> None:
    laptop.goto(address)
    schemes = set()
    for _ in range(3):
        schemes.add(laptop.locator("body").get_attribute("data-md-color-scheme"))
        laptop.locator("label.md-header__button[for^=__palette]:visible").click()
    assert schemes == {"default", "slate"}
    laptop.locator("label.md-header__button[for^=__palette]:visible").click()
    chosen = laptop.locator("body").get_attribute("data-md-color-scheme")
    laptop.goto(address + STORAGE)
    assert laptop.locator("body").get_attribute("data-md-color-scheme") == chosen


def test_text_has_enough_contrast_in_both_themes(context: BrowserContext, address: str) -> None:
    page = context.new_page()
    page.goto(address + "lectures/lecture_02/number-formats/")
    low = page.evaluate(CONTRAST)
    assert low == []


# Every piece of text of the article against what lies behind it, by the formula of WCAG 2.2 (1.4.3): at
# least 4.5, or 3 for large text. Text inside drawings is left out: it is repeated in words.
CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (css) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const low = new Set();
  const walker = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || node.closest('svg, math, .lb-dim') || !node.offsetParent) continue;
    const style = getComputedStyle(node), back = behind(node);
    const front = over(rgba(style.color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(style.fontSize);
    const enough = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700) ? 3 : 4.5;
    if (ratio < enough - 0.01) low.add(`${node.tagName}.${node.className} ${style.color} ${ratio.toFixed(2)}`);
  }
  return [...low];
}"""


def test_paper_has_the_text_and_not_the_frame(laptop: Page, address: str) -> None:
    laptop.goto(address + STORAGE)
    laptop.emulate_media(media="print")
    assert laptop.locator(".md-header").is_hidden()
    assert laptop.locator(".md-sidebar--primary").is_hidden()
    assert laptop.locator("article h1").is_visible()
    assert laptop.locator(".lb-v").first.is_visible()


# ------------------------------------------------------------------------------- copying

CODE = """() => { const block = [...document.querySelectorAll('section.lb-code')].find((b) => b.querySelectorAll('.lb-c').length > 1 && b.querySelector('.lb-v .lb-text'));
  return [block.querySelector('.lb-n').id, [...block.querySelectorAll('.lb-c')].map((c) => c.textContent.trimEnd())]; }"""
LONG = """() => { const block = [...document.querySelectorAll('section.lb-code:has(> .lb-copy)')].find((b) => b.checkVisibility());
  return [block.querySelector('.lb-n').id, [...block.querySelectorAll('.lb-c')].map((c) => c.textContent.trimEnd())]; }"""
SELECT = """([from, to]) => { const [a, b] = [from, to].map((at) => document.querySelector(at));
  getSelection().setBaseAndExtent(a, 0, b, b.childNodes.length); }"""


@pytest.fixture
def desk(browser: Browser, address: str) -> Iterator[Page]:
    """A page with code and values, and a clipboard that can be read."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(address + STORAGE)
    yield page
    context.close()


def copied(page: Page, first: str, last: str) -> list[str]:
    """The lines of what is copied from the beginning of one element to the end of another."""
    page.evaluate(SELECT, [first, last])
    page.keyboard.press("Control+c")
    text: str = page.evaluate("navigator.clipboard.readText()")
    return [line.rstrip() for line in text.splitlines()]


def test_a_block_of_code_can_be_copied_without_what_stands_beside_it(desk: Page, address: str) -> None:
    desk.goto(address + "lectures/lecture_05/guesses/")
    number, lines = desk.evaluate(LONG)
    block = desk.locator(f".lb-code:has(#{number})")
    button = block.get_by_role("button", name="Copy the code")
    opacity = "(it) => getComputedStyle(it).opacity"
    assert button.evaluate(opacity) == "0"
    block.hover()
    assert button.evaluate(opacity) == "1"
    place, code = button.bounding_box(), block.locator(".lb-c").first.bounding_box()
    assert place and code
    assert code["x"] < place["x"] and place["x"] + place["width"] <= code["x"] + code["width"], (
        "not on values"
    )
    button.click()
    desk.locator(".md-dialog--active").wait_for()
    text = desk.evaluate("navigator.clipboard.readText()")
    assert [line.rstrip() for line in text.splitlines()] == lines


OVERLAPS = """(button) => { const its = button.getBoundingClientRect(), text = document.createRange();
  text.selectNodeContents(button.parentElement.querySelector('.lb-c'));
  return [...text.getClientRects()].some((r) => r.right > its.left && r.top < its.bottom && r.bottom > its.top); }"""


def test_on_a_touch_screen_the_button_is_there_and_covers_no_code(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(address + "lectures/lecture_05/guesses/")
    buttons = page.locator(".lb-code:visible > .lb-copy")
    assert buttons.count() >= 1, "one block of eight lines is in sight"
    for button in buttons.all():
        assert button.evaluate("(it) => getComputedStyle(it).opacity") == "1"
        assert not button.evaluate(OVERLAPS)
    context.close()


def test_a_selection_of_code_is_copied_as_code_and_one_of_values_as_values(desk: Page) -> None:
    number, lines = desk.evaluate(CODE)
    block = f".lb-code:has(#{number})"
    assert copied(desk, f"{block} .lb-c", f"{block} .lb-c:nth-last-child(1 of .lb-c)") == lines
    value = desk.locator(f"{block} .lb-v .lb-text").first.inner_text()
    assert copied(desk, f"{block} .lb-v .lb-text", f"{block} .lb-v .lb-text") == [value]
    around = copied(desk, "article h1", f"{block} .lb-v")
    assert around[0] == desk.locator("article h1").inner_text()
    assert value in " ".join(around), "a selection that begins in prose is what it is anywhere"


# ------------------------------------------------------------------------------- figures on a phone

TYPE = """(figure) => Math.min(...[...figure.querySelectorAll('svg text')].map((text) => {
  const matrix = text.getScreenCTM(); return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b); }).filter((size) => size))"""


@pytest.mark.parametrize("lecture", [f"lecture_0{n}" for n in (2, 3, 4, 5)])
def test_a_phone_shows_every_plot_of_the_book_whole_with_text_of_12_pixels(
    browser: Browser, site: Path, address: str, lecture: str
) -> None:
    page, small, seen = browser.new_page(viewport={"width": 390, "height": 844}), [], 0
    for part in sorted((site / "lectures" / lecture).glob("*/index.html")):
        page.goto(f"{address}lectures/{lecture}/{part.parent.name}/")
        page.evaluate("document.querySelectorAll('.lb-aside').forEach((it) => { it.open = true })")
        for figure in page.locator(".lb-figure:not(.lb-explore):has(> svg.lb-plot)").all():
            seen, size = seen + 1, figure.evaluate(TYPE)
            caption = figure.locator("figcaption").inner_text()[:40]
            small += [(part.parent.name, caption, size)] if 0 < size < 11.95 else []
    assert small == [] and seen
    page.close()


@pytest.mark.parametrize(("name", "drawn"), [(STORAGE, ".lb-storage")])
def test_a_drawing_is_fitted_to_a_phone_or_shown_in_its_own_size(
    browser: Browser, address: str, name: str, drawn: str
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=True)
    page = context.new_page()
    page.goto(address + name)
    page.evaluate("document.querySelectorAll('.lb-aside').forEach((it) => { it.open = true })")
    figures = page.locator(f"article {drawn}:has(.lb-zoom)").all()
    assert figures
    for figure in figures:
        slack = "(it) => it.scrollWidth - it.clientWidth"
        box, caption = figure.get_by_role("checkbox", name="full size"), figure.locator("figcaption")
        assert figure.evaluate(slack) <= 0, "fitted at first"
        small = figure.evaluate(TYPE)
        box.check()
        assert figure.evaluate(TYPE) >= 9 > small
        assert figure.evaluate(slack) > 50
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.keyboard.press("ArrowRight")  # the box has the focus, and the figure scrolls by keys
        until(page, "(it) => it.scrollLeft > 0", arg=figure.element_handle())
        figure.evaluate("(it) => { it.scrollLeft = 9999; }")
        for it in (box, caption):
            place = it.bounding_box()
            assert place and place["x"] >= 0 and place["x"] + place["width"] <= 390, (
                "what is said stays in view"
            )
        page.emulate_media(media="print")
        assert not box.is_visible()
        page.emulate_media(media="screen")
    context.close()


def test_on_a_laptop_nothing_asks_for_the_size_of_a_drawing(laptop: Page, address: str) -> None:
    laptop.goto(address + STORAGE)
    assert laptop.locator(".lb-zoom").count() > 0
    assert laptop.locator(".lb-zoom:visible").count() == 0


def test_a_note_in_the_margin_keeps_off_the_edge_of_its_box(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(address + f"{LECTURE}parameters/")
    gaps = page.evaluate(
        """() => [...document.querySelectorAll('.lb-v :is(.lb-text, .lb-claim small)')].filter((it) => it.offsetParent).map((it) =>
          it.closest('.lb-code').getBoundingClientRect().right - it.getBoundingClientRect().right)"""
    )
    assert gaps
    assert min(gaps) > 8
    page.close()


def test_every_row_of_the_devices_is_ruled_all_along(laptop: Page, address: str) -> None:
    laptop.goto(address + "lectures/devices/")
    rules = laptop.eval_on_selector_all(
        "tbody tr",
        "all => all.map((row) => [...row.children].map((cell) => getComputedStyle(cell).borderTop))",
    )
    assert len(rules) > 5
    assert all(len(set(row)) == 1 and not row[0].startswith("0px") for row in rules)


def test_every_picture_and_control_has_a_name(laptop: Page, address: str) -> None:
    for name in sampled(PAGES, 2):
        laptop.goto(address + name)
        nameless = laptop.evaluate(
            """() => [...document.querySelectorAll('article svg[role=img], article img, article button, article input')]
              .filter((n) => !(n.getAttribute('aria-label') || n.getAttribute('aria-labelledby') || n.getAttribute('alt')
                || n.title || n.textContent.trim() || n.closest('label') || (n.id && document.querySelector(`label[for="${n.id}"]`))))
              .map((n) => n.outerHTML.slice(0, 80))"""
        )
        assert nameless == [], name
        twice = laptop.evaluate(
            """() => { const seen = {}; document.querySelectorAll('[id]').forEach((n) => { seen[n.id] = (seen[n.id] || 0) + 1; });
              return Object.keys(seen).filter((id) => seen[id] > 1); }"""
        )
        assert twice == [], name


@pytest.mark.parametrize("depth", [grammar.DEEPEST, 150])
@pytest.mark.parametrize("unit", ["list", "quotation"])
def test_a_note_nested_as_deeply_as_can_be_is_no_wider_than_a_phone(
    browser: Browser, address: str, unit: str, depth: int
) -> None:
    lines = [f"{'    ' * level}- sixteen words" for level in range(depth)]
    text = "\n".join(lines) if unit == "list" else "> " * depth + "sixteen words"
    body = "".join(to_html.blocks(text, NoteContext(Citations({}))))
    assert (depth > grammar.DEEPEST) == (body.count("<ul>") + body.count("<blockquote>") == 0)
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(address + STORAGE)
    page.evaluate("body => document.querySelector('article').insertAdjacentHTML('afterbegin', body)", body)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
