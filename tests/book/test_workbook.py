"""Workbooks: what they ask, that `check` judges as the page does, and that nothing a reader writes is an error of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.answers import ASKED, RIGHT, WRONG
from tests.running import record, section

from litbook.notebook import checking, workbook
from litbook.notebook.workbook import _WorkbookBuilder
from litbook.page import sitemap
from litbook.record import model


def sitemap_of(made: model.Record) -> sitemap.Sitemap:
    return sitemap.build_sitemap(made, sitemap.NOTHING_CITED, (), [])


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> checking.Workbook:
    """The questions of the table, as a workbook has them."""
    lines = ["אורך = 14  # @inspect אורך", *(f"question('{name}?', {rest})" for name, rest in ASKED.items())]
    made = record(tmp_path_factory.mktemp("asked"), section("\n".join(lines), "import torch"))
    builder = _WorkbookBuilder(sitemap_of(made), "")
    return checking.Workbook(builder.helpers_data())


def said(book: checking.Workbook, name: str, answer: Any) -> str:
    number = [*ASKED].index(name) + 1
    book.answers[number] = answer
    return book.judge(number)[1]


@pytest.mark.parametrize(("name", "text"), RIGHT)
def test_what_the_page_takes_for_right_is_right(asked: checking.Workbook, name: str, text: str) -> None:
    assert said(asked, name, text) == "✓ Right."


@pytest.mark.parametrize(("name", "text", "words"), WRONG)
def test_what_is_wrong_or_cannot_be_read_is_told_in_the_words_of_the_page(
    asked: checking.Workbook, name: str, text: str, words: str
) -> None:
    assert said(asked, name, text) == words
