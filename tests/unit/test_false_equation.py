"""Equations between numbers in prose: which are read, and which of them hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.running import judged, record, section

from litbook.rules.false_equation import false_equations, find_false


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A table of 3 rows has 3 × 4 = 13 cells.", ("3 * 4 = 13", "12")),
        ("It has `3 * 4 = 13` cells.", ("3 * 4 = 13", "12")),
        (r"It has $3 \cdot 4 = 13$ cells.", ("3 * 4 = 13", "12")),
        ("**By hand:** 3 · 4 = 13.", ("3 * 4 = 13", "12")),
        ("- 6 − 2 = 3\n- 6 − 2 = 4", ("6 - 2 = 3", "4")),
        ("| a | 2 + 2 = 5 |", ("2 + 2 = 5", "4")),
        ("so x = 3 × 4 = 13", ("3 * 4 = 13", "12")),
        ("(2 + 3) × 4 = 24", ("(2 + 3) * 4 = 24", "20")),
        ("2^10 = 1,023", ("2**10 = 1,023", "1,024")),
        ("2¹⁰ = 1,023", ("2**10 = 1,023", "1,024")),
        ("Two thirds, or 2 / 3 = 0.7, of it, 2 / 3 = 0.6.", ("2 / 3 = 0.6", "0.666667")),
        ("at most 3 · 7 = 21 = 4 · 6 of them", ("21 = 4 * 6", "21")),
        ("1 / 3 = 43 %", ("1 / 3 = 43", "0.333333")),
        ("4096 × 4 = 17 KiB", ("4096 * 4 = 17", "16,384")),
        ("1000 / 10 ≈ 3.2", ("1000 / 10 ≈ 3.2", "100")),
        ("So 3 < 2 here", ("3 < 2", "3")),
        (r"It is $3 \cdot 4 \ge 13$.", ("3 * 4 ≥ 13", "12")),
        ("0.21 < 0.25 < 0.22", ("0.25 < 0.22", "0.25")),
        ("2 * 3 <= 5", ("2 * 3 ≤ 5", "6")),
        ("7 × 10^9 × 2 = 15 GB", ("7 * 10**9 * 2 = 15", "14,000,000,000")),
    ],
)
def test_an_equation_that_does_not_hold_is_found(text: str, said: tuple[str, str]) -> None:
    assert [*false_equations(text)] == [said]


@pytest.mark.parametrize(
    "text",
    [
        "It has 3 × 4 = 12 cells, and `2**10 = 1,024` bytes.",
        "n × 3 × 4 = 13, 3 × 4 = 13n, 3 × 4 = 13 · n and 6N = 12",  # names
        "√1000 / 10 = 3.2, `flops(2048)` = 29.7e12, f(3) * 4 = 13, x[3] * 4 = 13, 5 % of 20 × 2 = 2",
        "1 / 3 = 33.33 %, 1/3 = 0.333, 2 / 3 ≈ 0.7, 0.5 / (4 / 3) = 0.5 / 1.33333 = 37.5 %",
        "5.13 × 1.2 = 6.15 s of rounded numbers, 1e-8 × 65536 = 6.6e-4",
        "4096 × 4 = 16 KiB = 16,384 B, 7 × 10^9 × 2 = 14 GB, 0.00712 × 2 = 14.24 ms",
        "123 × 1000 = 123,000 and about 999 × 12 = 12,000",
        "x = 3, y == 4 and 2024 = 2024, 3 -> 2, 3 != 4, 1 << 3 = 8, x < 3 > 2",
        "0.21 < 0.215 < 0.22, 3 <= 3, 0.5 < 0.5 by rounding, 12 < 3 × 5, n < 3, 5 > 4",
        "> 5 of them, <3 ms, a->b, 512 < 1 KiB",
        "3 × 4\n\n= 13",
        "1. 3 × 4 = 12\n2. 5 × 4 = 20",
        "2 ** 99999999 = 3, 1 / 0 = 3, 3 ** 0.5 ** 99 ** 99 = 1",
    ],
)
def test_what_holds_and_what_is_no_equation_between_numbers_is_let_be(text: str) -> None:
    assert [*false_equations(text)] == []


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(1, 50))
def test_of_whole_numbers_each_is_right_or_found(a: int, b: int, off: int) -> None:
    assert [*false_equations(f"It is {a} × {b} = {a * b:,}, or {a} + {b} = {a + b}.")] == []
    wrong = a + b + off
    if wrong % 10:  # else its zeros may be rounded
        assert len([*false_equations(f"It is {a} + {b} = {wrong:,}.")]) == 1


@given(st.text(alphabet="0123456789 +-*/()=≈^×.,%$`eknm|\\n", max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert len([*false_equations(text)]) < 60


def test_the_problem_names_its_line_and_a_misbelief_may_be_false(tmp_path: Path) -> None:
    body = (
        'n = 13\nnote(f"It has 3 × 4 = {n} cells.")\nmisbelief("It is 2 + 2 = 5.", f"It is {n}.")\n'
        'question("How many?", answer=n, check=12 + 1, why=f"It is 6 + 6 = {n}.")\n'
        'assert n > 0, "some, as 3 + 3 = 7"'
    )
    made = record(tmp_path, section(body))
    first, second, third = find_false(made)
    assert str(first) == (
        "lecture_sample.py:12:5: 3 * 4 = 13 does not hold: it is 12\n"
        '    note(f"It has 3 × 4 = {n} cells.")\n'
        "    ^\n"
        "    compute both sides in an f-string's {…}; where it is meant, say so: # @allow false-equation: WHY"
    )
    assert second.what == "6 + 6 = 13 does not hold: it is 12" and third.what.startswith("3 + 3 = 7")
    assert "false-equation" in {problem.code for problem in judged(made).errors}
    allowed = record(
        tmp_path,
        section(f"{body.splitlines()[0]}\n{body.splitlines()[1]}  # @allow false-equation: meant\nassert n"),
    )
    assert not [problem for problem in judged(allowed).errors if problem.code == "false-equation"]
