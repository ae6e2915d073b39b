"""Asides on pages and in notebooks: heading in sight, the rest folded, and counted apart."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import markdown
import pytest
from tests.book.test_page import SITE, ids
from tests.running import REPO, record

from litbook.html import page
from litbook.html.reading_time import LINES, WORDS
from litbook.notebook import ipynb
from litbook.page import sitemap
from litbook.record import model

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TEXT = '''
"""A lecture."""
from litbook import aside, note, requires


def main() -> None:
    note("Three words here.")
    part()
    other()


def part() -> None:
    """A part."""
    core()
    beside()


def core() -> None:
    """The core"""
    note("Read this, it takes ten words with its own heading.")
    x = 1  # @inspect x
    assert x == 1, "one"


@aside
def beside() -> None:
    """Off the path"""
    note("## A *heading*\\n\\nSome prose.")
    y = 2
    assert y == 2, "two"
    below()


def below() -> None:
    """Below"""
    z = 3
    assert z == 3, "three"


def other() -> None:
    """Another part."""
    far()


@aside
@requires("cuda")
def far() -> None:
    """Far off"""
    note("On a card.")
    w = 4
    assert w == 4
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> model.Record:
    return record(tmp_path_factory.mktemp("aside"), TEXT, device="cpu")


def fold_of(body: str) -> str:
    """The one aside of a page, with the folds of its claims."""
    (start,) = re.finditer(r'<details class="lb-aside(?: lb-waits)?">', body)
    depth = 0
    for it in re.finditer(r"<(/?)details\b", body[start.start() :]):
        depth += -1 if it[1] else 1
        if not depth:
            return body[start.start() : start.start() + it.end()] + ">"
    raise AssertionError("an aside that does not end")


def test_a_page_folds_an_aside_to_its_heading_and_says_how_its_claims_stand(made: model.Record) -> None:
    text = page.pages(made)["part.md"]
    fold = fold_of(text)
    assert text.index('## Off the path {#beside .lb-off data-toc-label="Beside"}\n\n' + fold) > text.index(
        '## The core {#core data-toc-label="Core"}'
    )
    assert fold.startswith(
        '<details class="lb-aside"><summary>Aside · <span class="lb-ok">✓</span> 2 claims, all hold</summary>'
    )
    assert "Some prose." in fold and "three" in fold and "Read this" not in fold


def test_what_an_aside_holds_is_whole_html_with_its_headings_and_anchors(made: model.Record) -> None:
    body = markdown.markdown(page.pages(made)["part.md"], extensions=SITE)
    fold = fold_of(body)
    assert '<h4 id="beside-1">A <em>heading</em></h4>' in fold and '<h3 id="below">Below</h3>' in fold
    assert '<h2 class="lb-off" id="beside">Off the path</h2>' in body  # which the table of contents lists
    assert sorted(ids(body)) == sorted(set(ids(body)))
    book = sitemap.build_sitemap(made, sitemap.NOTHING_CITED, [], [])
    for key in ("beside", "below"):
        it = made.by_key[key]
        lines = {n: book.line("part.md", it.file, n) for n in range(it.first + 1, it.last + 1)}
        assert {n: place for n, place in lines.items() if f'id="{place}"' not in fold} == {}
        assert len({*lines.values()}) > 1


def test_an_aside_of_an_aside_is_folded_once(made: model.Record) -> None:
    assert page.pages(made)["part.md"].count('<details class="lb-aside">') == 1


def test_an_aside_of_another_device_says_so_on_its_fold(made: model.Record) -> None:
    fold = fold_of(page.pages(made)["other.md"])
    assert (
        "<summary>Aside · Not run (needs a GPU)</summary>" in fold
        and "Shows 1 claim: " in fold
        and "On a card." in fold
    )


def test_the_contents_mark_asides_and_say_how_long_the_core_takes(made: model.Record) -> None:
    body = page.pages(made)["index.md"]
    assert '<li class="lb-off"><a href="part/#beside">Off the path</a> <small>aside </small>' in body
    assert '<li><a href="part/#core">The core</a>' in body
    assert (
        '<p class="lb-path">The core takes about 15 minutes to read. 3 asides are folded, and can wait.</p>'
    ) in body


def test_the_docs_say_by_what_reading_is_counted() -> None:
    told = " ".join((REPO / "docs" / "how-to-read.md").read_text(encoding="utf-8").split())
    assert f"({WORDS} words a minute, {LINES} lines of code a minute, a minute for a question)" in told


def test_a_lecture_without_asides_counts_none(tmp_path: Path) -> None:
    body = "".join(page.pages(record(tmp_path, TEXT.replace("@aside\n", ""), device="cpu")).values())
    assert "The core takes" not in body and "lb-aside" not in body and "lb-off" not in body


def test_a_part_says_on_top_how_many_minutes_its_core_takes(made: model.Record) -> None:
    body = page.pages(made)["part.md"]
    top = '<p class="lb-path">About 1 minute to read, without the asides</p>'
    assert top in body and body.index(top) < body.index("lb-foot") and "lb-summary" not in body


def test_a_long_core_is_read_in_hours(tmp_path: Path) -> None:
    long = TEXT.replace("Three words here.", "word " * 200 * 60)
    assert "about 1 hour to read" in page.pages(record(tmp_path, long, device="cpu"))["index.md"]
    longer = TEXT.replace("Three words here.", "word " * 200 * 150)
    assert "about 2.5 hours to read" in page.pages(record(tmp_path, longer, device="cpu"))["index.md"]


def test_a_notebook_says_aside_in_the_heading(made: model.Record) -> None:
    cells = json.loads(ipynb.files(made)["part.ipynb"])["cells"]
    headings = ["".join(it["source"]) for it in cells if it["cell_type"] == "markdown"]
    assert [it for it in headings if it.startswith("##") and "heading" not in it] == [
        "## The core", "## Off the path (aside)", "### Below (aside)",
    ]  # fmt: skip


# ------------------------------------------------------------------------ in a browser

CSS = (REPO / "tools/litbook/html/assets/litbook.css").read_text("utf-8")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_an_aside_opens_by_a_click_by_a_link_and_on_paper(
    browser: Browser, made: model.Record, tmp_path: Path, scripts: bool
) -> None:
    body = markdown.markdown(page.pages(made)["part.md"], extensions=SITE)
    file = tmp_path / "page.html"
    file.write_text(
        f"<style>{CSS}</style><article class='md-typeset'>{body}<p style='height: 999em'></p></article>",
        "utf-8",
    )
    context = browser.new_context(java_script_enabled=scripts)
    try:
        tab = context.new_page()
        inside = tab.get_by_text("Some prose.")
        tab.goto(file.as_uri())
        assert tab.get_by_role("heading", name="Off the path").is_visible() and not inside.is_visible()
        tab.get_by_text("Aside ·").click()
        assert inside.is_visible()
        tab.goto(f"{file.as_uri()}?#beside")  # the heading above the fold
        assert inside.is_visible()
        tab.get_by_text("Aside ·").click()
        tab.get_by_text("Aside ·").click()
        assert not inside.is_visible()
        for anchor in ("below", f"L{made.by_key['below'].last}"):  # inside
            tab.goto(f"{file.as_uri()}?{anchor}#{anchor}")
            assert inside.is_visible()
        tab.goto(f"{file.as_uri()}?print")
        assert not inside.is_visible()
        tab.emulate_media(media="print")
        assert inside.is_visible()
    finally:
        context.close()
