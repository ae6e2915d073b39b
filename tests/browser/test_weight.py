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
    from playwright.sync_api import Browser

LECTURE = "lectures/lecture_02"
STORAGE = f"{LECTURE}/storage-and-views/index.html"


def test_no_page_of_a_lecture_weighs_more_than_400_kilobytes(site: Path) -> None:
    pages = [*(site / LECTURE).glob("*/index.html"), site / LECTURE / "index.html"]
    assert len(pages) > 15
    heavy = {str(it.relative_to(site)): it.stat().st_size for it in pages if it.stat().st_size > 400_000}
    assert heavy == {}


def test_no_other_page_weighs_more_than_twice_that(site: Path) -> None:
    heavy = {
        str(it.relative_to(site)): it.stat().st_size
        for it in site.rglob("*.html")
        if it.stat().st_size > 800_000
    }
    assert heavy == {}


def test_our_scripts_on_a_page_of_a_lecture_weigh_at_most_30_kilobytes(site: Path) -> None:
    """Data is no script: the player's steps are left out, and so are Material's own scripts."""
    ours = {it.name: it.stat().st_size for it in (site / "assets" / "litbook").glob("*.js")}
    text = (site / STORAGE).read_text(encoding="utf-8")
    asked = set(re.findall(r'src="[^"]*/litbook/([\w.-]+\.js)"', text))
    assert {"player.js", "answers.js", "folder.js"} <= asked
    assert sum(ours[name] for name in asked) <= 30_000


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
    page.locator(".lb-around a[rel=next]").click()
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
    page.locator(".lb-around a[rel=next]").click()
    page.wait_for_url("**/elementwise/index.html")
    assert page.locator("article h1").inner_text() == "Elementwise operations and the causal mask"
    page.locator(".lb-around a[rel=prev]").click()
    page.wait_for_url("**/storage-and-views/index.html")
    page.close()


def test_no_note_makes_a_gap_between_lines_of_code(browser: Browser, address: str) -> None:
    """At each width every line that does not wrap is as high as any other, whatever stands beside it."""
    for width in (1280, 1440, 1920):
        page = browser.new_page(viewport={"width": width, "height": 900})
        for name in (STORAGE, f"{LECTURE}/number-formats/", f"{LECTURE}/peaks-and-mfu/"):
            page.goto(address + name)
            gaps = page.evaluate(GAPS)
            assert gaps == [], f"{name} at {width}"
        page.close()


# Lines of one row whose row of the grid is higher than the row itself.
GAPS = """() => [...document.querySelectorAll('.lb-code:not(.lb-plain)')].flatMap((block) => {
  const lines = [...block.querySelectorAll(':scope > .lb-c')].map((it) => [it, it.getBoundingClientRect().height]);
  const one = Math.min(...lines.map(([, height]) => height));
  return lines.filter(([it, height]) => height > 1.5 * one && it.textContent.length < 60)
    .map(([it, height]) => `${it.previousElementSibling.textContent}: ${it.textContent} is ${(height / one).toFixed(1)} lines high`);
})"""
