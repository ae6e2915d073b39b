"""The margins of lecture 02, drawn from its record: they say what is not said beside them, and say it once."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

import pytest

from litbook.html import page
from litbook.record import model

LARGEST = 222_000  # bytes; the site puts 28 kB around each page, and one may have 250 kB


@pytest.fixture(scope="module")
def pages(record_02: model.Record) -> Mapping[str, str]:
    return page.pages(record_02)


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def margins(text: str) -> list[tuple[int, str, str]]:
    """The lines that have something beside them: number, code, margin."""
    row = r'id="L(\d+)"[^>]*>\d+</a><code class="lb-c[^"]*">((?:(?!</code>).)*)</code> <div class="lb-v"[^>]*>(.*?)</div> (?=<a |</div>|</section>)'
    return [(int(n), words(code), beside) for n, code, beside in re.findall(row, text)]


def test_no_caption_is_repeated_beside_the_line_that_has_it(
    record_02: model.Record, pages: Mapping[str, str]
) -> None:
    captions = tuple({c.caption for _, c in record_02.claims() if c.caption})
    beside = [words(it) for text in pages.values() for _, _, it in margins(text)]
    assert len(beside) > 800, "the pattern finds the margins"
    assert len(captions) > 200
    assert not [it for it in beside if any(caption in it for caption in captions)]
    # What a sentence opens has both sides alone: the sentence has the verdict.
    opened = [
        it for text in pages.values() for it in re.findall('<details class="lb-claims".*?</details>', text)
    ]
    rows = [words(it) for text in opened for _, _, it in margins(text.partition("</summary>")[2])]
    assert len(rows) > 100
    assert not [it for it in rows if "holds:" in it or "✓" in it]


def test_every_claim_that_holds_shows_its_values(record_02: model.Record, pages: Mapping[str, str]) -> None:
    held = [c for _, c in record_02.claims() if c.verdict == "holds" and c.kind == "assert"]
    shown = [
        it for text in pages.values() for it in re.findall('<div class="lb-claim lb-holds">(.*?)</div>', text)
    ]
    assert len(shown) == len(held)
    assert all(re.search(r'<span class="lb-sides">[^<]', it) for it in shown)


def test_nothing_of_the_margin_stands_below_the_block_again(pages: Mapping[str, str]) -> None:
    for text in pages.values():
        for block in re.split('<(?:section|div) class="lb-code"', text)[1:]:
            code, _, after = block.partition("\n\n")
            long = re.findall(r'<span class="lb-(?:sides|text)">([^<]{40,})</span>', code)
            assert not [it for it in long if it in after.partition('class="lb-whole"')[0]]


def test_no_page_is_too_large(pages: Mapping[str, str]) -> None:
    sizes = {name: len(text.encode()) for name, text in pages.items()}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
