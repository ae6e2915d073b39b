"""Workbooks: what they ask, that `check` judges as the page does, and that nothing a reader writes is an error of ours."""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from textwrap import dedent
from typing import Any

import nbformat
import numpy
import pytest
import torch
from tests import notebooks
from tests.answers import ASKED, RIGHT, WRONG
from tests.running import HEAD, record, section

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


# ---------------------------------------------------------------------------- whatever an answer is


class Raises:
    """Whatever one asks of it, it raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError


NO_ANSWER = r"This is no answer \({}\): give a number, several as \(1, 2\), or a text such as '2 GiB'\."
SELF: list[Any] = []
SELF.append(SELF)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 1024),
        ("count", 1024.0),
        ("count", Fraction(2048, 2)),
        ("count", Decimal("1024")),
        ("count", [1024]),
        ("count", torch.tensor(1024)),
        ("count", torch.tensor([1024.0], dtype=torch.bfloat16, requires_grad=True)),
        ("count", numpy.int64(1024)),
        ("half", Fraction(1, 2)),
        ("bytes", 8 * 2**30),
        ("share", 11 / 24),
        ("share", 45.83),
        ("short", 5e-3),
        ("pair", (70, 71)),
        ("pair", numpy.array([70.0, 71.0])),
        ("pair", torch.tensor([70, 71])),
        ("sizes", ("40 GB", "80 GB")),
        ("shape", torch.Size([3, 4, 5])),
        ("shape", (3, (4, 5))),
        ("zero", 0.0),
        ("dtype", torch.bfloat16),
        ("yes", True),
        ("minus", -3),
    ],
    ids=str,
)
def test_what_python_computes_is_read_as_if_it_were_typed(
    asked: checking.Workbook, name: str, value: Any
) -> None:
    assert said(asked, name, value) == "✓ Right."


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (..., "Write an answer first."),
        (None, "Write an answer first."),
        ("", "Write an answer first."),
        ([], "Write an answer first."),
        (math.nan, NO_ANSWER.format("nan")),
        (-math.inf, NO_ANSWER.format("-inf")),
        (10**5000, NO_ANSWER.format("int")),
        (Decimal("sNaN"), "That cannot be read: .*"),
        ("x" * 2000, NO_ANSWER.format("2,000 characters")),
        ("many", "That cannot be read: .*"),
        (True, "That cannot be read: .*"),
        (1j, NO_ANSWER.format("complex")),
        ({}, NO_ANSWER.format("dict")),
        ({1024}, NO_ANSWER.format("set")),
        (print, NO_ANSWER.format("builtin_function_or_method")),
        (b"1024", NO_ANSWER.format("bytes")),
        (range(10**9), NO_ANSWER.format("range")),
        (SELF, NO_ANSWER.format("list")),
        ([1024, ...], NO_ANSWER.format("list")),
        (torch.zeros(1000), NO_ANSWER.format(r"Tensor \(1000,\)")),
        (torch.tensor(math.nan), NO_ANSWER.format("nan")),
        (torch.empty(1, device="meta"), "That cannot be read: .*"),
        (Raises(), "That cannot be read: .*"),
        (numpy.array(["a"]), "That cannot be read: .*"),
        (("a", "b"), "That cannot be read: .*"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_no_answer_is_told_in_a_sentence(asked: checking.Workbook, value: Any, words: str) -> None:
    assert re.fullmatch(words, said(asked, "count", value))


@pytest.mark.parametrize("number", [0, -1, 999, 1.5, "1", None])
def test_a_question_that_is_not_there_is_a_sentence(
    asked: checking.Workbook, number: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.check(number)
    asked.reveal(number)
    assert capsys.readouterr().out == f"There is no question {number} here.\n" * 2


# ---------------------------------------------------------------------------- the notebook

LECTURE = """
    import torch

    def main():
        part()
        bare()

    def part():
        "A part."
        one()
        beside()

    def bare():
        "No questions."
        inner()

    def inner():
        "Nothing to ask."
        note("Nothing.")

    def one():
        "How `many` <b>bytes</b>?"
        note("See [@glu2020].")
        question("How many, if $a_1 < b$ and $c*d*e$? See [below](#inner).", answer=2**20, unit="B",
                 hint="$a_1 < b$", why="It is $2^{20}$, **exactly**.", wrong={"Half of it.": 2**19})
        question("Which two?", answer=(1.5, 3))
        question("What is seen?", answer=None)

    @litbook.aside
    def beside():
        "Off the path."
        question("Not here?", answer=1)
    """


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> model.Record:
    folder = tmp_path_factory.mktemp("made")
    return record(folder, f'"""A lecture."""\nimport litbook\n{HEAD.partition(chr(10))[2]}{dedent(LECTURE)}')


@pytest.fixture(scope="module")
def text(made: model.Record) -> str:
    return workbook.write_workbook(sitemap_of(made)).text


def sources(text: str) -> list[str]:
    return [cell.source for cell in nbformat.reads(text, as_version=4).cells]


def answered(text: str, answers: dict[int, str]) -> str:
    """The workbook with code typed in the place of `...`."""
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if found := re.match(r"answers\[(\d+)\] = ", cell.source):
            cell.source = found[0] + answers.get(int(found[1]), "...")
    return str(nbformat.writes(notebook))


def test_a_workbook_asks_what_the_main_path_asks_and_names_what_nobody_can_type(text: str) -> None:
    opening, helpers, part, first, answer, check, second, *_, tally, last = sources(text)
    assert opening.startswith("# Workbook · A lecture\n\n2 questions from the main path of [A lecture](../)")
    assert len(helpers.splitlines()) == 5 and helpers.startswith("# @title Helpers: run once\n")
    assert part == "## A part"
    assert first == (
        "### 1. How many &#60;b&#62;bytes&#60;/b&#62;?\n\n"
        "How many, if $a_1 < b$ and $c*d*e$? See [below](../bare/#inner).\n\n"
        "<details><summary>Hint</summary>\n\n$a_1 < b$\n\n</details>\n\n"
        "[This section in the book](../part/#one)"
    )
    assert (answer, check) == ("answers[1] = ...  # in B", "check(1)")
    assert second.startswith("### 2. ") and "Hint" not in second
    assert "1 question is not asked here" in tally and "](../part/#one)" in tally
    assert last == "tally()"
    assert "Not here?" not in text and "exactly" not in text, "answers are packed"


def test_its_links_lead_to_the_site_where_its_address_is_known(made: model.Record) -> None:
    text = workbook.write_workbook(sitemap_of(made), "https://book.example/lectures/one/workbook/").text
    assert "[This section in the book](https://book.example/lectures/one/part/#one)" in text


def test_a_workbook_of_a_book_is_the_same_in_every_build(made: model.Record, text: str) -> None:
    assert workbook.write_workbook(sitemap_of(made)).text == text


def test_where_a_part_is_called_workbook_its_page_keeps_its_name(tmp_path: Path) -> None:
    body = "def main():\n    workbook()\n\ndef workbook():\n    'W.'\n    one()\n\ndef one():\n    'One.'\n    question('?', answer=1)\n"
    made = record(tmp_path, f"{HEAD}\n{body}")
    assert workbook.file_name(sitemap_of(made)) == "workbook-of-the-lecture.ipynb"


def test_a_lecture_without_questions_that_can_be_typed_has_no_workbook(tmp_path: Path) -> None:
    assert not workbook.has_questions(sitemap_of(record(tmp_path, section("note('Nothing.')"))))
    assert not workbook.has_questions(sitemap_of(record(tmp_path, section("question('?', answer=None)"))))


def test_a_page_has_its_formulas_drawn_wherever_they_stand(made: model.Record) -> None:
    formulas = workbook.write_workbook(sitemap_of(made)).formulas
    assert [*formulas] == ["$a_1 < b$", "$c*d*e$"]
    drawn = workbook.draw_formulas("<p>If $a_1 &lt; b$, $5 or $c*d*e$</p>", formulas)
    assert "$5 or <math" in drawn and drawn.count("<math") == 2 and "a_1" not in drawn


def test_a_workbook_runs_where_nothing_is_and_no_answer_is_an_error_of_ours(
    text: str, tmp_path: Path
) -> None:
    done = notebooks.run(
        {
            "clean": text,
            "right": answered(text, {1: "'1 MiB'", 2: "1.5, 3"}),
            "wrong": answered(text, {1: "2**19", 2: "1.5, 6"}),
            "raises": answered(text, {1: "1 / 0", 2: "float('nan')"}),
        },
        tmp_path,
    )
    outputs = {
        name: [notebooks.said(cell.get("outputs", [])) for cell in it.cells] for name, it in done.items()
    }
    checks = {name: [out for out in said if out] for name, said in outputs.items()}
    first = "Write an answer first.\n"
    left = "{} of 2 questions answered.\nNot answered yet: {}.\n"
    assert checks["clean"] == [first, first, left.format(0, "1, 2")]
    assert checks["right"] == [
        "✓ Right.\n<It is $2^{20}$, **exactly**.>\n",
        "✓ Right.\n",
        "2 of 2 questions answered.\n",
    ]
    assert checks["wrong"] == [
        "✗ 2 × too small. Half of it.\n",
        "✗ Part 1 is right, part 2 is 2 × too large.\n",
        left.format(0, "1, 2"),
    ]
    error, *rest = checks["raises"]
    assert error == "<ZeroDivisionError: division by zero>\n", "the reader's own"
    nan = "This is no answer (nan): give a number, several as (1, 2), or a text such as '2 GiB'.\n"
    assert rest == [first, nan, left.format(0, "1, 2")]


def test_where_litbook_is_installed_the_workbook_uses_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (helpers,) = (source for source in sources(text) if source.startswith("# @title"))
    names: dict[str, Any] = {}
    exec(helpers, names)
    assert type(names["check"].__self__) is checking.Workbook
    monkeypatch.setitem(sys.modules, "litbook.notebook.checking", None)
    exec(helpers, names)
    assert type(names["check"].__self__) is not checking.Workbook
    assert names["answers"] == {}


def test_reveal_shows_the_answer_and_why(
    asked: checking.Workbook, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.reveal([*ASKED].index("bytes") + 1)
    assert capsys.readouterr().out == "Answer: 8,589,934,592 B · 8 GiB · 8.59 GB\n"


def test_in_another_language_a_number_is_written_as_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook, "number", lambda value, places: "10.000,5")
    made = record(tmp_path, section("question('?', answer=10)"))
    book = checking.Workbook(_WorkbookBuilder(sitemap_of(made), "").helpers_data())
    assert [book.format_factor(value) for value in (1234.5, 2.226, 20.0)] == ["1.230", "2,23", "20"]


# ---------------------------------------------------------------------------- the lectures


@pytest.fixture(scope="module", params=["02", "03", "04", "05"])
def lecture(request: pytest.FixtureRequest) -> sitemap.Sitemap:
    return sitemap_of(request.getfixturevalue(f"record_{request.param}"))


def test_each_answer_of_a_lecture_is_right_and_each_mistake_is_told_by_its_name(
    lecture: sitemap.Sitemap, tmp_path: Path
) -> None:
    data = _WorkbookBuilder(lecture, "").helpers_data()
    asked = data["questions"]
    assert len(asked) >= 20
    right = {
        n: repr(it["values"] if len(it["values"]) > 1 else it["values"][0]) for n, it in enumerate(asked, 1)
    }
    wrong = {n: repr(it["wrong"][0][1]) for n, it in enumerate(asked, 1) if it["wrong"]}
    text = workbook.write_workbook(lecture).text
    texts = {"clean": text, "right": answered(text, right), "wrong": answered(text, wrong)}
    done = notebooks.run(texts, tmp_path)
    said = {name: [notebooks.said(cell.get("outputs", [])) for cell in it.cells] for name, it in done.items()}
    assert [it for name in said for it in said[name] if "Error" in it] == []
    checks = {name: [it for it in said[name] if it] for name in said}
    assert checks["clean"][-1].startswith(f"0 of {len(asked)} questions answered.\n")
    assert checks["right"][-1] == f"{len(asked)} of {len(asked)} questions answered.\n"
    for n, it in enumerate(asked):
        if it["wrong"]:
            mistake = it["wrong"][0][0].removesuffix(".")
            assert checks["wrong"][n].startswith("✗ ") and mistake in checks["wrong"][n]
