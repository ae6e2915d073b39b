"""Every page's Content-Security-Policy: what the site ships works, and what anybody puts into a page does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

STORAGE = "lectures/lecture_02/storage-and-views/"
NOTEBOOKS = "lectures/lecture_02/notebooks/"
POLICY = '<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; '
INJECTED = """
<script>hacked.push('script')</script>
<script src="https://example.org/x.js"></script>
<script src="data:text/javascript,hacked.push('data')"></script>
<img src="https://example.org/x.png"> <img src="nowhere.png" onerror="hacked.push('attribute')">
<a id="lure" href="javascript:hacked.push('address')">here</a>
<iframe src="https://example.org/"></iframe> <object data="https://example.org/"></object>
<style>body { background: url(https://example.org/b.png) }</style>
<link rel="stylesheet" href="https://example.org/x.css">
<base href="https://example.org/">
"""


@pytest.fixture
def page(browser: Browser) -> Page:
    """A page with a list of what it complained of: `complaints`, by its policy and in its console."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(
        "window.hacked = []; window.complaints = [];"
        "addEventListener('securitypolicyviolation', e => complaints.push(`${e.violatedDirective} ${e.blockedURI}`))"
    )
    return context.new_page()


def complaints(page: Page) -> list[str]:
    found: list[str] = page.evaluate("complaints")
    return found


def test_every_page_has_its_policy_before_anything_else(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for file in pages:
        text = file.read_text(encoding="utf-8")
        assert 0 < text.find(POLICY) < text.index("<script"), file
        assert text.find("<meta charset") < 200, file
        assert "'unsafe-inline'" not in text[: text.index("<title")].replace("&#39;", "'").replace(
            "style-src-attr 'unsafe-inline'", ""
        )


def test_what_the_site_ships_works_under_its_policy(page: Page, address: str) -> None:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.goto(address + STORAGE)
    page.get_by_role("button", name="Step through").first.click()
    page.keyboard.press("ArrowRight")
    assert page.locator(".lbp-stack, .lb-player, [class^=lbp]").first.is_visible()
    page.keyboard.press("Escape")
    before = page.locator("body").get_attribute("data-md-color-media")
    page.locator("label.md-header__button[for^=__palette]:visible").click()
    assert page.locator("body").get_attribute("data-md-color-media") != before
    assert complaints(page) == []
    page.goto(address + "calculator/")
    page.locator("#lb-calc input").first.wait_for(state="visible")
    assert complaints(page) == []
    for name in ("ledger/lecture_02/tensors", "misbeliefs"):
        page.goto(f"{address}lectures/{name}/")
        page.locator("#lb-find, .lb-filters").first.wait_for(state="visible")
        assert complaints(page) == []
    page.goto(address)
    page.keyboard.press("/")
    page.keyboard.type("bfloat16")
    page.locator(".md-search-result__link").first.wait_for(state="visible", timeout=15_000)
    page.keyboard.press("Enter")
    page.wait_for_url("**/lecture_02/**", timeout=15_000)
    assert complaints(page) == []
    assert said == []
    page.context.close()


def test_notebooks_pages_and_the_page_for_lost_addresses_keep_it_too(
    page: Page, site: Path, address: str
) -> None:
    notebooks = sorted((site / NOTEBOOKS).glob("*/index.html"))
    for name in (f"{NOTEBOOKS}{notebooks[0].parent.name}/", "404.html", "lectures/devices/"):
        page.goto(address + name)
        assert complaints(page) == []
    page.context.close()


@pytest.mark.parametrize("name", [STORAGE, "lectures/devices/", "404.html"])
def test_what_is_put_into_a_page_neither_runs_nor_asks_elsewhere(page: Page, address: str, name: str) -> None:
    asked, policies = list[str](), re.compile(r"<meta http-equiv=[^<>]*>")

    def elsewhere(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    def inject(route: Route) -> None:
        answer = route.fetch()
        text = answer.text().replace("<article", f"{INJECTED}<article", 1)
        route.fulfill(response=answer, body=text if guarded else policies.sub("", text))

    page.context.route("https://**", elsewhere)
    page.route(address + name, inject)
    for guarded in (False, True):  # first that it would
        asked.clear()
        page.goto(address + name)
        page.locator("#lure").evaluate("link => link.click()")
        page.wait_for_timeout(200)
        assert (page.evaluate("hacked") == []) == guarded
        page.evaluate("fetch('https://example.org/fetched').catch(() => null)")
        assert (asked == []) == guarded, asked
    refused = {it.partition(" ")[0] for it in complaints(page)}
    assert {"script-src-elem", "script-src-attr", "img-src", "style-src-elem", "connect-src"} <= refused
    page.context.close()
