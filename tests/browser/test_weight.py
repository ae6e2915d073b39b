"""What a page weighs, and that it works wherever it lies: below a path, or in a folder without a server."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LECTURE = "lectures/lecture_02"
STORAGE = f"{LECTURE}/storage-and-views/index.html"


def test_no_page_weighs_more_than_250_kilobytes_or_has_more_than_5000_elements(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 60
    heavy = dict[str, tuple[int, int]]()
    for it in pages:
        text = it.read_text(encoding="utf-8")
        size, elements = len(text.encode()), len(re.findall(r"<[a-zA-Z]", text))
        limit = (
            1_300_000 if it.parent.name == "workbook" else 250_000
        )  # most of it is mkdocs-jupyter's styles
        if size > limit or elements > 5000:
            heavy[str(it.relative_to(site))] = size, elements
    assert heavy == {}


def test_a_search_loads_at_most_560_kilobytes_and_a_page_none_of_them(browser: Browser, address: str) -> None:
    """What every page asks for says where the index is; the worker of the theme comes with it."""
    page = browser.new_page()
    asked: list[tuple[str, int]] = []
    page.on("requestfinished", lambda r: asked.append((r.url, r.sizes()["responseBodySize"])))
    page.goto(f"{address}{LECTURE}/storage-and-views/")
    page.wait_for_load_state("networkidle")
    before = {url.rpartition("/")[2]: size for url, size in asked if "search" in url}
    assert set(before) == {"search.js", "search_index.json"} and sum(before.values()) < 10_000
    asked.clear()
    with page.expect_event("requestfinished", lambda it: it.url.endswith("search/index.js")):
        page.keyboard.press("/")
        page.keyboard.type("stride")
        page.locator(".md-search-result__link").first.wait_for(state="visible")
    after = {url.removeprefix(address): size for url, size in asked}
    assert all(not url.startswith("http") for url in after), "from this site alone"
    assert after["search/index.js"] <= 560_000, (
        "four lectures: a third of it comes over the wire, once somebody searches"
    )
    page.close()


def test_our_scripts_on_a_page_of_a_lecture_weigh_at_most_30_kilobytes(site: Path) -> None:
    """Data is no script: the player's steps are left out, and so are Material's own scripts."""
    ours = {it.name: it.stat().st_size for it in (site / "assets" / "litbook").glob("*.js")}
    text = (site / STORAGE).read_text(encoding="utf-8")
    asked = set(re.findall(r'src="[^"]*/litbook/([\w.-]+\.js)"', text))
    assert {"player.js", "answers.js", "folder.js"} <= asked
    assert sum(ours[name] for name in asked) <= 30_000


MOVED = (
    "window.moved = 0; new PerformanceObserver((all) => all.getEntries().forEach((it) => { if (!it.hadRecentInput)"
    " window.moved += it.value; })).observe({type: 'layout-shift', buffered: true})"
)


def kinds(page: str) -> set[str]:
    """Which elements the article of a page is made of: their names, and our own classes."""
    article = page[page.index("<article") : page.rindex("</article")]
    classes = re.findall(r'class="?([^">]*)', article)
    return {*re.findall(r"<([a-z]\w*)", article)} | {
        it for its in classes for it in its.split() if "lb-" in it
    }


def fewest(pages: list[Path]) -> list[Path]:
    """Few of the pages that together have every kind of element that any of them has."""
    held = {page: kinds(page.read_text(encoding="utf-8")) for page in pages}
    missing, found = set[str]().union(*held.values()), list[Path]()
    while missing:
        found.append(max(held, key=lambda page: len(held[page] & missing)))
        missing -= held[found[-1]]
    return found


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_moves_while_a_page_comes(browser: Browser, address: str, site: Path, width: int) -> None:
    """Not when the font of its formulas has come, either: each page is opened as by who comes first to the site.

    Whatever a page may hold stands on one of these pages. On a busy machine that font may come after the first
    paint, so what moved is opened again.
    """

    def moved(name: str) -> float:
        with browser.new_page(viewport={"width": width, "height": 844}) as page:
            page.add_init_script(MOVED)
            page.goto(address + name)
            page.wait_for_load_state("networkidle")
            before = float(page.evaluate("window.moved"))
            if name == names[0]:  # what does move is seen
                page.evaluate("document.querySelector('article').style.marginTop = '200px'")
                page.wait_for_function(f"window.moved > {before} + 0.02")
            return before

    files = sorted((site / "lectures").glob("lecture_*/*/index.html"))
    assert len(files) > 30
    names = [str(file.relative_to(site)).removesuffix("index.html") for file in fewest(files)]
    assert len(names) > 5
    assert [name for name in names if all(moved(name) > 0.02 for _ in range(3))] == []


@pytest.fixture(scope="module")
def below_a_path(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("server")
    (root / "some").mkdir()
    (root / "some" / "book").symlink_to(site, target_is_directory=True)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
            """Nothing: a request is no news."""

    handler = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/some/book/"
        server.shutdown()


def test_the_site_works_below_any_path(below_a_path: str, browser: Browser) -> None:
    page = browser.new_page()
    missing: list[str] = []
    page.on("response", lambda r: missing.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    page.on(
        "request",
        lambda r: None if r.url.startswith((below_a_path, "data:", "blob:")) else missing.append(r.url),
    )
    for name in ("", STORAGE, "calculator/", "lectures/ledger/"):
        page.goto(below_a_path + name)
        page.wait_for_load_state("networkidle")
    page.goto(below_a_path + STORAGE)
    page.locator(".lb-around a[rel=next]").last.click()
    assert page.locator("article h1").is_visible()
    assert missing == []
    page.close()


def test_a_page_can_be_read_from_a_folder(site: Path, browser: Browser, tmp_path: Path) -> None:
    """Moved, too: what it needs is named relative to it. Its address may hold spaces."""
    moved = tmp_path / "my books"
    shutil.copytree(site / "assets", moved / "assets")
    (moved / LECTURE / "storage-and-views").mkdir(parents=True)
    shutil.copyfile(site / STORAGE, moved / STORAGE)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((moved / STORAGE).as_uri())
    assert page.locator("article h1").inner_text() == "Storage, strides and views"
    assert (
        page.locator(".lb-code .lb-c").first.evaluate("(it) => getComputedStyle(it).whiteSpace") == "pre-wrap"
    )
    code, value = page.locator(".lb-c").first.bounding_box(), page.locator(".lb-v").first.bounding_box()
    assert code is not None
    assert value is not None
    assert value["x"] > code["x"] + code["width"] - 1, "styled: the value is in the margin"
    page.close()


def test_links_lead_from_page_to_page_in_a_folder(site: Path, browser: Browser) -> None:
    """Without a server a browser shows a folder's files, so the click names the page in it."""
    page = browser.new_page()
    page.goto((site / STORAGE).as_uri())
    page.locator(".lb-around a[rel=next]").last.click()
    page.wait_for_url("**/elementwise/index.html")
    assert page.locator("article h1").inner_text() == "Elementwise operations and the causal mask"
    page.locator(".lb-around a[rel=prev]").last.click()
    page.wait_for_url("**/storage-and-views/index.html")
    page.close()


def test_no_note_makes_a_gap_between_lines_of_code(browser: Browser, address: str) -> None:
    """At each width every line that does not wrap is as high as any other, whatever stands beside it."""
    for width in (1280, 1440, 1920):
        page = browser.new_page(viewport={"width": width, "height": 900})
        for name in (STORAGE, f"{LECTURE}/number-formats/", f"{LECTURE}/peaks-and-mfu/"):
            page.goto(address + name)
            page.evaluate(OPEN)
            gaps = page.evaluate(GAPS)
            assert gaps == [], f"{name} at {width}"
        page.close()


OPEN = "document.querySelectorAll('.lb-aside, .lb-claims, .lb-guards').forEach((it) => { it.open = true; })"
# Lines of one row whose row of the grid is higher than the row itself.
GAPS = """() => [...document.querySelectorAll('.lb-code:not(.lb-plain)')].flatMap((block) => {
  const lines = [...block.querySelectorAll(':scope > .lb-c')].map((it) => [it, it.getBoundingClientRect().height]);
  const one = Math.min(...lines.map(([, height]) => height));
  return lines.filter(([it, height]) => height > 1.5 * one && it.textContent.length < 60)
    .map(([it, height]) => `${it.previousElementSibling.textContent}: ${it.textContent} is ${(height / one).toFixed(1)} lines high`);
})"""


# ---------------------------------------------------------------------------- the search


FIRST = "its => its.slice(0, 3).map((it) => it.getAttribute('href'))"


def found(page: Page, words: str) -> list[str]:
    """The addresses of the first results of a search, from the page that is open."""
    page.fill(".md-search__input", "")
    page.locator(".md-search__input").press_sequentially(words)
    page.wait_for_timeout(400)
    page.locator(".md-search-result__link").first.wait_for(state="visible", timeout=15_000)
    addresses: list[str] = page.locator(".md-search-result__link").evaluate_all(FIRST)
    return addresses


def test_a_search_knows_the_books_synonyms_and_forgives_spelling(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}{LECTURE}/storage-and-views/")
    page.keyboard.press("/")
    assert any("calculator/" in it for it in found(page, "how many GPUs"))
    right = found(page, "bfloat16")
    for asked in ("bf16", "bfloat61", "bflaot16"):
        assert found(page, asked) == right or "bfloat16" in " ".join(found(page, asked)), asked
    assert found(page, "mometum")[0].partition("?")[0] == found(page, "momentum")[0].partition("?")[0]
    page.fill(".md-search__input", "")
    page.locator(".md-search__input").press_sequentially("xqzwvk")
    page.wait_for_timeout(400)
    assert page.locator(".md-search-result__meta").inner_text().strip() == "No matching documents"
    page.close()


@pytest.mark.parametrize("name", ["enable_gqa", "memory_stats", "pin_memory"])
def test_a_name_that_stands_in_code_alone_is_found_there(
    site: Path, browser: Browser, address: str, name: str
) -> None:
    page = browser.new_page()
    page.goto(f"{address}{LECTURE}/storage-and-views/")
    page.keyboard.press("/")
    pages = site.rglob("index.html")
    holding = [page for page in pages if name in re.sub("<[^<>]*>", "", page.read_text(encoding="utf-8"))]
    first = [site / it.partition("?")[0].removeprefix(address) / "index.html" for it in found(page, name)]
    assert first[0] in holding
    assert set(first[: len(holding)]) <= set(holding), (
        "pages that hold it come before those with a part of it"
    )
    assert name in page.locator(".md-search-result__article mark").first.inner_text().replace("\n", "")
    page.close()


def test_from_a_folder_the_search_works_too(site: Path, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto((site / STORAGE).as_uri())
    page.keyboard.press("/")
    assert found(page, "bf16")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "storage-and-views" not in url)
    assert "/index.html" in page.url
    assert page.locator("article h1").is_visible()
    assert errors == []
    page.close()


# ---------------------------------------------------------------------------- lost addresses


def test_the_page_for_lost_addresses_names_the_nearest_and_all_pages(browser: Browser, address: str) -> None:
    page = browser.new_page()
    lost = f"{address}lectures/lecture_02/storage-and-view/"
    page.route(lost, lambda route: route.fulfill(status=404, response=page.request.get(f"{address}404.html")))
    page.goto(lost)
    near = page.locator("#lb-near a").first
    assert near.get_attribute("href") == "/lectures/lecture_02/storage-and-views/"
    assert page.locator(".lb-lost a").count() > 30
    page.locator(".lb-search").click()
    page.keyboard.type("stride")
    page.locator(".md-search-result__link").first.wait_for(state="visible", timeout=15_000)
    page.goto(lost)
    near.click()
    page.wait_for_url("**/storage-and-views/")
    page.close()
