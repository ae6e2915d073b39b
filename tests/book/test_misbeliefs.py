"""Commonly said, measured otherwise: every misbelief of every lecture, with the line that shows it."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import markdown
import pytest
from msgspec.structs import replace
from tests.book.test_page import REFERENCES, lived, recorded, words
from tests.records import fill
from tests.running import record, section

from litbook.html import misbeliefs
from litbook.page.runs import LectureRuns
from litbook.record import model

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PLACE = "lectures/misbeliefs/"
SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "litbook" / "html" / "assets" / "misbeliefs.js"


def entries(body: str) -> list[str]:
    return [words(entry) for entry in re.findall(r'<li id="[^"]+">(.*?)</li>', body)]


def said(*texts: tuple[str, str]) -> model.Record:
    """The record of `lived` with these misbeliefs in the place of its own."""
    it = lived()
    own, _ = marked_in(it)
    return fill(it, "transpose", pieces=tuple(replace(own, text=text, data=run) for text, run in texts))


def marked_in(it: model.Record) -> tuple[model.Piece, int]:
    """The one misbelief of `lived`, and its line."""
    section = it.by_key["transpose"]
    own = next(piece for piece in section.pieces if piece.kind == "misbelief")
    return own, section.first + own.line


def test_a_statement_stands_with_the_machines_answer_its_section_and_its_line() -> None:
    _, line = marked_in(lived())
    body = misbeliefs.page([LectureRuns("lecture_02", lived())])
    assert [entry.replace(" ”", "”").replace("“ ", "“") for entry in entries(body)] == [
        f"“t() copies.” It does not. A transpose rewrites strides · line {line}"
    ]
    assert f'href="../lecture_02/memory/#L{line}"' in body
    assert "## Memory" in body
    assert "## Compute" not in body  # a part without any has no heading


def test_the_count_at_the_top_is_the_number_of_entries() -> None:
    assert "1 statement that circulates" in words(misbeliefs.page([LectureRuns("a", lived())]))
    two = misbeliefs.page([LectureRuns("a", said(("one", "x"), ("two", "y")))])
    assert "2 statements that circulate" in words(two)
    assert len(entries(two)) == 2
    assert "No lecture has marked a statement yet." in words(misbeliefs.page([LectureRuns("a", said())]))


def test_two_lectures_have_a_heading_each() -> None:
    body = misbeliefs.page([LectureRuns("a", lived()), LectureRuns("b", said()), LectureRuns("c", lived())])
    assert re.findall(r"^#+ .*\{#(.*)\}$", body, re.M) == ["a", "a-memory", "c", "c-memory"]


def test_a_lecture_without_parts_is_one_group(tmp_path: Path) -> None:
    made = record(tmp_path, section('misbelief("A", "B")'))
    assert "{#x-index}" in misbeliefs.page([LectureRuns("x", made)])


def test_what_only_another_device_ran_is_listed_with_its_recording() -> None:
    it, there = lived(), recorded()
    piece, _ = marked_in(it)
    pieces = there.by_key["speed"].pieces
    there = fill(there, "speed", pieces=(*pieces, replace(piece, line=pieces[0].line, text="Fast.")))
    body = misbeliefs.page([LectureRuns("a", it, [there])])
    assert any("Fast." in entry and "NVIDIA H200, 19 Nov 2026" in entry for entry in entries(body))


def test_citations_and_links_lead_somewhere_from_this_page() -> None:
    body = misbeliefs.page([LectureRuns("a", said(("s", "See [@glu] and [how fast](#speed).")))], REFERENCES)
    assert 'href="../a/compute/#speed"' in body
    assert "{#references}" in body
    assert 'id="ref-glu"' in body


def test_statements_are_text_whatever_they_hold() -> None:
    hostile = (
        "</li><script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1))\n\n# h {#id}"
    )
    body = misbeliefs.page([LectureRuns("a", said((hostile, hostile)))])
    assert len(entries(body)) == 1
    assert body.count("<script") == 1  # our own
    assert not re.search(r"<[^>]+\son\w+=", body)
    assert 'href="javascript' not in body


def marked(lecture: Path) -> tuple[int, int]:
    """How many misbeliefs the text of a lecture marks: in sections that every machine runs, and in all."""
    files = lecture.rglob("*.py") if lecture.is_dir() else [lecture]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    marks = [(ast.dump(f).count("func=Name(id='misbelief'"), bool(f.decorator_list)) for f in functions]
    return sum(count for count, special in marks if not special), sum(count for count, _ in marks)


def linked(body: str) -> list[str]:
    """The lectures that the entries of the page lead to, one for each entry."""
    return re.findall(r'<p class="?lb-where.*?href="?\.\./(lecture_\w+)/[^">]*#L\d+', body, re.S)


def test_every_entry_leads_to_a_lecture_also_where_there_are_several() -> None:
    body = misbeliefs.page(
        [LectureRuns("lecture_02", lived()), LectureRuns("lecture_03", said(("one", "x"), ("two", "y")))]
    )
    assert linked(body) == ["lecture_02", "lecture_03", "lecture_03"]


def test_the_site_lists_every_statement_that_a_lecture_marks(site: Path, repo: Path) -> None:
    body = (site / PLACE / "index.html").read_text(encoding="utf-8")
    count = re.search(r"(\d+) statements that circulate", body)
    assert count is not None
    assert len(re.findall(r'<p class="?lb-saying', body)) == int(count[1]) == len(linked(body)) > 0
    for lecture in (repo / "lectures").glob("lecture_*"):
        here, everywhere = marked(lecture)
        # those of a GPU's sections come with its recording
        assert here <= linked(body).count(lecture.stem) <= everywhere, lecture.stem


def test_every_link_of_the_page_leads_to_a_line_that_shows_that_statement(site: Path) -> None:
    body = (site / PLACE / "index.html").read_text(encoding="utf-8")
    found = re.findall(r'lb-saying"?>“(.*?)”</p>.*?href="?\.\./(lecture_\w+/[^"#>]*)#(L\d+)', body, re.S)
    assert len(found) == len(linked(body)) > 0
    for said_, where, line in found:
        page = (site / "lectures" / where / "index.html").read_text(encoding="utf-8")
        after = (
            page[page.index(f'id="{line}"') :] if f'id="{line}"' in page else page[page.index(f"id={line}") :]
        )
        # A citation has another number on each page.
        there, here = (
            re.sub('<span class="?lb-cite.*?</span>|<[^>]*>', "", it) for it in (after[:16000], said_)
        )
        assert html.unescape(here) in html.unescape(there), line


# ------------------------------------------------------------------------ in a browser


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address + PLACE)
    yield page
    page.close()


def shown(page: Page) -> int:
    return page.locator(".lb-sayings > li:visible").count()


def test_the_filter_leaves_what_holds_every_word(opened: Page) -> None:
    everything = shown(opened)
    field = opened.get_by_label("Show only statements with these words")
    field.fill("bFLOAT16  adamw")
    left = opened.locator(".lb-sayings > li:visible").all_inner_texts()
    assert 0 < len(left) < everything
    assert all("bfloat16" in text.lower() and "adamw" in text.lower() for text in left)
    assert opened.get_by_role("status").inner_text() == f"{len(left)} of {everything}"
    headings = opened.locator("article :is(h2, h3)")  # h3 is a group where there are several lectures
    assert sum(heading.is_visible() for heading in headings.all()) < headings.count()
    field.fill("no such words <b>")
    assert shown(opened) == 0
    field.press("Escape")
    assert shown(opened) == everything


def test_a_heading_is_hidden_with_the_last_entry_below_it(browser: Browser) -> None:
    """Of a lecture, of a page of it, and not of its neighbours. The page is small and made here."""
    shelves = [
        LectureRuns("a", said(("cats", "x"))),
        LectureRuns("b", said(("dogs", "x"), ("cats too", "y"))),
        LectureRuns("c", lived()),
    ]
    text = misbeliefs.page([*shelves, LectureRuns("d", said(("A work [@glu].", "x")))], REFERENCES)
    body = markdown.markdown(text, extensions=["attr_list", "md_in_html"])
    page = browser.new_page()
    page.set_content(re.sub("<script.*?</script>", "", body))
    page.add_script_tag(content=SCRIPT.read_text(encoding="utf-8"), type="module")
    page.wait_for_selector(".lb-find:visible")
    for words_, left in [
        ("", ["a", "a-memory", "b", "b-memory", "c", "c-memory", "d", "d-memory", "references"]),
        ("cats", ["a", "a-memory", "b", "b-memory", "references"]),
        ("dogs", ["b", "b-memory", "references"]),
        ("work", ["d", "d-memory", "references"]),
        ("mice", ["references"]),
    ]:
        page.locator("#lb-find").fill(words_)
        headings = page.locator(":is(h2, h3):visible")
        assert headings.evaluate_all("found => found.map((it) => it.id)") == left, words_
    page.close()


def test_the_filter_is_in_the_address(opened: Page) -> None:
    opened.get_by_label("Show only statements with these words").fill("stride & <b>")
    opened.keyboard.press("Tab")
    assert opened.url.endswith("?q=stride+%26+%3Cb%3E")
    opened.reload()
    assert opened.get_by_label("Show only statements with these words").input_value() == "stride & <b>"
    assert shown(opened) == 0


def test_without_scripts_everything_is_there_and_no_dead_filter(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + PLACE)
    assert shown(page) == page.locator(".lb-sayings > li").count() > 0
    assert not page.locator("#lb-find").is_visible()
    context.close()


def test_the_front_page_leads_here(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.get_by_role("link", name="Commonly said, measured otherwise").last.click()
    assert page.url == address + PLACE
    page.close()
