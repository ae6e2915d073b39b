"""Lecture 02: every statement of the inventory has its place, every misbelief refutes one."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.running import LECTURE_02, LITBOOK

from litbook.html import reading_time
from litbook.lecture import parse
from litbook.lecture.model import Lecture, LectureFunction
from litbook.page import sitemap
from litbook.python.file import File
from litbook.record import model

# How many statements on each topic the lecture settles: N napkin math, T tensors, D dtypes, G GPU, S
# storage, E elementwise, M products, F FLOPs, J gradients, K parameters, L randomness, P data, O
# optimizers, A accounting, Q training, C checkpoints, X mixed precision, Z summary.
STATEMENTS = {"N": 15, "T": 7, "D": 39, "G": 6, "S": 23, "E": 5, "M": 31, "F": 42, "J": 19, "K": 16, "L": 5, "P": 12,
              "O": 11, "A": 8, "Q": 5, "C": 5, "X": 12, "Z": 2}  # fmt: skip


@pytest.fixture(scope="module")
def lecture(repo: Path) -> Lecture:
    return parse.read(LECTURE_02, LECTURE_02.relative_to(repo).as_posix())


@pytest.fixture(scope="module")
def record(record_02: model.Record) -> model.Record:
    return record_02


@pytest.fixture(scope="module")
def rows(repo: Path) -> list[list[str]]:
    """Statement id, the section that settles it, and the text there that does."""
    table = (repo / "tests" / "book" / "lecture_02_rows.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in table.splitlines() if line]


@pytest.fixture(scope="module")
def misbeliefs(repo: Path) -> list[list[str]]:
    """The section of each misbelief, what is said, and the ids of the statements that it refutes."""
    table = (repo / "tests" / "book" / "lecture_02_misbeliefs.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in table.splitlines()]


def test_every_statement_of_the_inventory_has_a_place(rows: list[list[str]]) -> None:
    expected = [f"{topic}{i:02}" for topic, count in STATEMENTS.items() for i in range(1, count + 1)]
    assert sorted(row[0] for row in rows) == sorted(expected)


def test_what_settles_a_statement_stands_in_the_section_that_the_table_names(
    lecture: Lecture, rows: list[list[str]]
) -> None:
    sections = {f.name: f for f in lecture.functions if f.kind in ("part", "section")}
    gone = []
    for statement, name, text in rows:
        if name == "-":  # an opinion that the book leaves out; the text says why
            assert len(text) > 10, statement
            continue
        if name not in sections or text not in text_of(lecture, sections[name]):
            gone.append(f"{statement}: {name}: {text}")
    assert gone == []


def text_of(lecture: Lecture, function: LectureFunction) -> str:
    """The text of a function, however its notes are wrapped: a blank for each run of white space."""
    text = " ".join(lecture.files[function.file].lines[function.first - 1 : function.last])
    return " ".join(text.replace(" \\ ", " ").split())


def boxes(lecture: Lecture) -> list[tuple[str, str]]:
    """The section of each misbelief in the lecture's text, and what is said there, with … for what is computed."""
    found = []
    for function in (node for file in in_reading_order(lecture) for node in file.tree.body):
        calls = [
            n for n in ast.walk(function) if isinstance(n, ast.Call) and ast.unparse(n.func) == "misbelief"
        ]
        for call in sorted(calls, key=lambda call: call.lineno):
            said = call.args[0]
            parts = said.values if isinstance(said, ast.JoinedStr) else [said]
            texts = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts]
            found.append((getattr(function, "name", "<module>"), " ".join("".join(texts).split())))
    return found


def in_reading_order(lecture: Lecture) -> list[File]:
    """The files as `main` reaches their sections, each once."""
    return [lecture.files[n] for n in dict.fromkeys(lecture.functions[i].file for i in lecture.order)]


def test_every_misbelief_stands_in_the_table_and_in_the_lecture(
    lecture: Lecture, misbeliefs: list[list[str]]
) -> None:
    assert boxes(lecture) == [(section, said) for section, said, _ in misbeliefs]


def test_every_misbelief_is_shown_by_the_run_unless_its_section_needs_a_device(
    record: model.Record, misbeliefs: list[list[str]]
) -> None:
    kept = [section.key for section in record.sections for p in section.pieces if p.kind == "misbelief"]
    apart = {section.key for section in record.sections if section.requires}
    assert Counter(kept) == Counter(name for name, _, _ in misbeliefs if name not in apart)


def test_a_misbelief_refutes_statements_of_the_inventory_and_each_is_refuted_once(
    rows: list[list[str]], misbeliefs: list[list[str]]
) -> None:
    refuted = Counter(row for _, _, settled in misbeliefs if settled != "-" for row in settled.split())
    assert set(refuted) - {row[0] for row in rows if row[1] != "-"} == set()
    assert [row for row, times in refuted.items() if times > 1] == []
    # two boxes are this book's own; a statement that is refuted by a claim alone needs none
    assert sum(settled == "-" for _, _, settled in misbeliefs) == 2
    assert refuted.total() == 69


def test_the_core_fits_into_two_evenings_questions_counted(record: model.Record) -> None:
    leaves = [section for section in record.sections if section.kind == "section"]
    core = [section for section in leaves if not section.aside]
    assert 40 <= len(core) <= 60
    assert len(leaves) - len(core) <= 80, "an aside is what its lecture can spare"
    said = reading_time.line(sitemap.build_sitemap(record, sitemap.NOTHING_CITED, (), []))
    (hours,) = re.findall(r"about ([\d.]+) hours to read", said)
    assert float(hours) <= 4


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="changes are tried in forked processes")
def test_claims_notice_a_sample_of_changes_of_the_code(repo: Path) -> None:
    words = "check --select unnoticed lecture_02 --sample 12 --least 75".split()
    done = subprocess.run([*LITBOOK, *words], cwd=repo, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"lecture_02: .*; \d+ of \d+ changes", done.stdout), done.stdout
