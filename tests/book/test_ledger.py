"""The ledger in a real browser: complete without a script, filtered by the style sheet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PART = "lectures/ledger/lecture_02/tensors-on-a-gpu/"


@pytest.fixture
def ledger(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(address + PART)
    yield page
    context.close()


def test_without_a_script_every_claim_is_a_row_below_its_thesis_and_verdicts_filter(ledger: Page) -> None:
    rows, heads = ledger.locator(".lb-entry"), ledger.locator(".lb-ledger tbody th")
    holding = ledger.locator(".lb-entry.lb-holds")
    assert rows.count() > holding.count() > 0
    assert 1 < heads.count() < rows.count()
    ledger.check('input[value="holds"]')
    assert all(it.is_visible() for it in holding.all())
    assert not ledger.locator(".lb-entry:not(.lb-holds)").first.is_visible()
    for head in heads.all():
        assert head.is_visible() == (head.locator("xpath=../..").locator(".lb-holds.lb-entry").count() > 0)
    assert not ledger.locator(".lb-nothing").is_visible()


def test_a_filter_that_finds_nothing_says_so(ledger: Page) -> None:
    assert not ledger.locator(".lb-nothing").is_visible()
    ledger.check('input[value="fails"]')
    assert not any(it.is_visible() for it in ledger.locator(".lb-ledger tbody tr").all())
    assert ledger.locator(".lb-nothing").inner_text() == "No claim here has this verdict."
    ledger.check('input[value="all"]')
    assert not ledger.locator(".lb-nothing").is_visible()


def test_the_first_page_leads_to_every_other_and_each_row_to_its_line(ledger: Page, address: str) -> None:
    target = ledger.locator(".lb-entry a").first.get_attribute("href")
    assert target and target.startswith("../../../lecture_02/tensors-on-a-gpu/#")
    ledger.goto(f"{address}lectures/ledger/")
    assert ledger.locator(".lb-parts a").count() > 20
    ledger.locator('.lb-parts a[href="lecture_02/tensors-on-a-gpu/"]').click()
    assert ledger.url == address + PART


def test_on_a_phone_the_table_needs_no_sideways_scrolling(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 700})
    for name in (PART, "lectures/ledger/"):
        page.goto(address + name)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.goto(address + PART)
    assert page.evaluate("document.querySelector('.lb-scroll').scrollWidth") <= 375
    page.close()


def test_the_front_page_counts_the_claims_once(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    assert len(re.findall(r"\d[\d,]* claims", page.locator("main").inner_text())) == 1
    page.close()
