"""The ledger in a real browser: complete without a script, sorted and filtered with one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

VISIBLE = "rows => rows.filter(row => row.offsetParent !== null).length"


@pytest.fixture
def ledger(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}lectures/ledger/")
    page.wait_for_selector(".lb-shown")
    yield page
    page.close()
    assert errors == []


def visible(page: Page) -> int:
    return int(page.eval_on_selector_all(".lb-entry", VISIBLE))


def test_without_a_script_every_claim_is_a_row_and_verdicts_filter(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}lectures/ledger/")
    rows = page.locator(".lb-entry")
    holding = page.locator(".lb-entry.lb-holds").count()
    assert rows.count() > holding > 0
    page.check('input[value="holds"]')
    assert sum(row.is_visible() for row in rows.all()[:60]) <= holding
    assert not page.locator(".lb-entry:not(.lb-holds)").first.is_visible()
    assert page.locator(".lb-entry.lb-holds").first.is_visible()
    context.close()


def test_verdict_and_section_filter_together_and_the_count_is_said(ledger: Page) -> None:
    every = visible(ledger)
    assert ledger.inner_text(".lb-shown") == f"{every} of {every}"
    name = ledger.locator(".lb-entry").nth(10).get_attribute("data-section")
    ledger.locator(".lb-filters select").first.select_option(name)
    own = ledger.locator(f'.lb-entry[data-section="{name}"]').count()
    assert visible(ledger) == own < every
    assert ledger.inner_text(".lb-shown") == f"{own} of {every}"
    ledger.check('input[value="fails"]')
    assert visible(ledger) == 0
    assert ledger.inner_text(".lb-shown") == f"0 of {every}"


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_the_order_around(ledger: Page) -> None:
    table = ledger.locator("table.lb-ledger").first  # each lecture has one of its own
    lines = "rows => rows.map(row => row.dataset.section)"
    before = table.locator(".lb-entry").evaluate_all(lines)
    head = table.locator("th").nth(1)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    up = table.locator(".lb-entry").evaluate_all(lines)
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert table.locator(".lb-entry").evaluate_all(lines)[0] == up[-1]
    assert sorted(before) == sorted(up) != before
    table.locator("th").nth(2).locator("button").click()
    verdicts = table.locator(".lb-entry").evaluate_all(
        "rows => rows.map(row => row.classList.contains('lb-holds'))"
    )
    assert verdicts == sorted(verdicts)  # what holds comes last


def test_the_verdicts_of_another_device_can_be_chosen(browser: Browser, address: str) -> None:
    """A column is put in by hand, in the first lecture's table: no recording of another device has to exist."""
    page = browser.new_page()

    def with_a_column(route: object) -> None:
        response = route.fetch()  # type: ignore[attr-defined]
        text = response.text().replace("</tr></thead>", '<th scope="col">GPU</th></tr></thead>', 1)
        text = text.replace("</tr></tbody>", '<td data-verdict="fails">fails</td></tr></tbody>', 1)
        route.fulfill(response=response, body=text)  # type: ignore[attr-defined]

    page.route("**/lectures/ledger/", with_a_column)
    page.goto(f"{address}lectures/ledger/")
    page.wait_for_selector(".lb-shown")
    page.check('input[value="fails"]')
    assert visible(page) == 0
    page.locator(".lb-filters select").nth(1).select_option("GPU")
    assert visible(page) == 1
    assert page.inner_text(".lb-shown").startswith("1 of ")
    page.close()


def test_on_a_phone_the_table_needs_no_sideways_scrolling(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 700})
    page.goto(f"{address}lectures/ledger/")
    page.wait_for_selector(".lb-shown")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert page.evaluate("document.querySelector('.lb-scroll').scrollWidth") <= 375
    page.close()


def test_the_badge_is_on_the_front_page_and_leads_to_the_ledger(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    badge = page.locator('a[href="lectures/ledger/"] img')
    assert badge.evaluate("it => it.complete && it.naturalWidth > 100")
    page.close()
