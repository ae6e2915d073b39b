"""How answers come about: expressions of the source, with values put in, and arithmetic worked out."""

from __future__ import annotations

import pytest

from litbook.text import working


def test_an_answer_shows_its_expression_and_the_same_with_its_values() -> None:
    source = 'question("How many?", answer=2 * n + x.n, unit="B")'
    assert working.steps(source, {"n": "8", "x": "5"}) == ["2 * n + x.n", "2 * 8 + x.n"]


@pytest.mark.parametrize("source", ['question("How many?", answer=24)', "x = 3", "question(", ""])
def test_what_has_no_expression_has_no_working(source: str) -> None:
    assert working.steps(source, {}) == []


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("0.08 * 19.5 / 312", 0.005),
        ("[8 * (3 + 5), 3 + 8 * max(3, 5)]", [64, 43]),
        ("2 * GiB * SHAPE[1]", 2 * 2**30 * 8),
        ("round(2 / 3, 2)", 0.67),
        ("-7 // 2", -4),
        ("1 / 0", None),
        ("9 ** 9 ** 9", None),
        ("unknown + 1", None),
        ("TWICE", None),
        ("[1] * 2", None),
        ("open('x')", None),
        ("CIRCLE", None),
    ],
)
def test_arithmetic_on_numbers_of_the_text_is_worked_out_and_nothing_else(answer: str, value: object) -> None:
    names = working.constants(
        ["MiB, GiB = 2**20, 2**30\nSHAPE = 4, 8\nTWICE = 1\nTWICE = 2\nCIRCLE = CIRCLE + 1"]
    )
    assert working.work_out(f"question('How many?', answer={answer}, unit='B')", names) == (value, "B")
