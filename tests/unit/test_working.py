"""How answers come about: expressions of the source, and the same with values put in."""

from __future__ import annotations

import pytest

from litbook.lecture import answers


def test_an_answer_shows_its_expression_and_the_same_with_its_values() -> None:
    source = 'question("How many?", answer=2 * n + x.n, unit="B")'
    assert answers.steps(source, {"n": "8", "x": "5"}) == ["2 * n + x.n", "2 * 8 + x.n"]


@pytest.mark.parametrize("source", ['question("How many?", answer=24)', "x = 3", "question(", ""])
def test_what_has_no_expression_has_no_working(source: str) -> None:
    assert answers.steps(source, {}) == []
