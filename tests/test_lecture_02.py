"""Lecture 02: every statement of the inventory has its place, every claim holds, every section stands alone."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from litbook import compare, recordings, run, source, trace

# How many statements on each topic the lecture settles: N napkin math, T tensors, D dtypes, G GPU, S storage,
# E elementwise, M products, F FLOPs, J gradients, K parameters, L randomness, P data, O optimizers, A accounting,
# Q training, C checkpoints, X mixed precision, Z summary.
STATEMENTS = {"N": 15, "T": 7, "D": 39, "G": 6, "S": 23, "E": 5, "M": 31, "F": 42, "J": 19, "K": 16, "L": 5, "P": 12,
              "O": 11, "A": 8, "Q": 5, "C": 5, "X": 12, "Z": 2}  # fmt: skip
COLUMNS = 76  # of code that stand beside a margin of values without wrapping


@pytest.fixture(scope="module")
def lecture(repo: Path) -> source.Lecture:
    return source.read(repo / "lectures" / "lecture_02.py", "lectures/lecture_02.py")


@pytest.fixture(scope="module")
def record(repo: Path) -> trace.Record:
    return run.run(repo / "lectures" / "lecture_02.py", device="cpu")


@pytest.fixture(scope="module")
def rows(repo: Path) -> list[list[str]]:
    """Statement id, the section that settles it, and the text there that does."""
    table = (repo / "tests" / "lecture_02_rows.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in table.splitlines() if line]


def test_every_statement_of_the_inventory_has_a_place(rows: list[list[str]]) -> None:
    expected = [f"{topic}{i:02}" for topic, count in STATEMENTS.items() for i in range(1, count + 1)]
    assert sorted(row[0] for row in rows) == sorted(expected)


def test_what_settles_a_statement_stands_in_the_section_that_the_table_names(
    lecture: source.Lecture, rows: list[list[str]]
) -> None:
    sections = {f.name: f for f in lecture.functions if f.kind in ("part", "section")}
    gone = []
    for statement, name, text in rows:
        if name == "-":  # an opinion that the book leaves out; the text says why
            assert len(text) > 10, statement
            continue
        section = sections.get(name)
        lines = lecture.lines[section.first - 1 : section.last] if section else []
        if not any(text in line for line in lines):
            gone.append(f"{statement}: {name}: {text}")
    assert gone == []


def test_every_misbelief_row_is_marked_in_the_source(lecture: source.Lecture, record: trace.Record) -> None:
    marked = [row for piece in record.pieces if piece.kind == "misbelief" for row in piece.rows]
    assert {"N08", "N11", "N15", "T06", "D19", "D21", "S11", "S17", "S20", "S22", "E05", "M18"} <= set(
        marked
    )
    assert [row for row, times in Counter(marked).items() if times > 1] == []


def test_every_claim_holds_or_needs_a_device_that_is_not_here(record: trace.Record) -> None:
    assert [(c.line, c.text) for c in record.claims if c.verdict not in ("holds", "needs-device")] == []
    assert record.errors == ()
    assert record.count().holds > 750
    needing = {record.functions[c.function].requires for c in record.claims if c.verdict == "needs-device"}
    assert needing == {"cuda"}


def test_every_section_makes_claims_and_says_something_first(record: trace.Record) -> None:
    sections = [i for i, f in enumerate(record.functions) if f.kind == "section"]
    claims = Counter(claim.function for claim in record.claims)
    assert [record.functions[i].name for i in sections if not claims[i]] == []
    assert [record.functions[i].name for i in sections if len(record.functions[i].heading.split()) < 3] == []


def test_a_section_alone_gives_the_claims_and_values_that_it_gives_in_the_whole(
    repo: Path, lecture: source.Lecture, record: trace.Record
) -> None:
    sections = [f.name for f in lecture.functions if f.kind == "section" and not f.requires]
    for name in sections[::4]:  # a quarter of them: each run repeats the imports' share of the work
        alone = run.run(repo / "lectures" / "lecture_02.py", sections=[name], device="cpu")
        assert alone.errors == ()
        assert outcome(alone, name) == outcome(record, name)


def outcome(record: trace.Record, section: str) -> list[object]:
    """Claims with their operands, and inspected values, of one section; storages are numbered per run."""
    function = next(i for i, f in enumerate(record.functions) if f.name == section)
    frames = {i for i, f in enumerate(record.frames) if f.function == function}
    measured = {v.text for v in record.values if v.frame in frames and v.kind == "measure"}
    shown = [
        without_storage(record.snapshots[o.value])
        for claim in record.claims
        for o in claim.operands
        if claim.function == function
        and o.value is not None
        and not set(re.findall(r"\w+", o.text)) & measured
    ]
    values = [
        (v.line, v.text, without_storage(record.snapshots[v.value]))
        for v in record.values
        if v.frame in frames and v.kind == "inspect" and v.value is not None
    ]
    return [[(c.line, c.verdict) for c in record.claims if c.function == function], shown, values]


def without_storage(shown: trace.Snapshot) -> str:
    """A snapshot without what differs from run to run: storage numbers and addresses."""
    return re.sub(r"storage=\d+|0x[0-9a-f]+|<.*?>", "", repr(shown))


def test_every_section_ends_with_a_question_whose_answer_the_run_computes(
    lecture: source.Lecture, record: trace.Record
) -> None:
    sections = [f for f in lecture.functions if f.kind == "section"]
    asking = {record.frames[p.frame].function for p in record.pieces if p.kind == "question"}
    asked = {record.functions[i].name for i in asking}
    assert [f.name for f in sections if f.name not in asked and not f.requires] == []
    for section in sections:
        text = "\n".join(lecture.lines[section.first - 1 : section.last])
        assert "question(" in text, section.name


def test_the_committed_recording_is_of_this_text_and_says_the_same(repo: Path, record: trace.Record) -> None:
    """Otherwise: make record ARGS=--approve."""
    recording = recordings.read(repo / "lectures" / "recordings" / "lecture_02.cpu.json", "lecture_02")
    found = compare.compare(record, recording)
    assert [str(difference) for difference in found.differences] == []
    assert found.values > 300
    assert found.claims > 700


def test_code_fits_beside_its_margin(lecture: source.Lecture) -> None:
    cuts = dict(reversed(lecture.cuts))
    hidden = {n for f in lecture.functions if f.hidden for n in range(f.first, f.last + 1)}
    prose = {
        n
        for s in lecture.statements
        if s.kind in ("piece", "doc", "hidden")
        for n in range(s.first, s.end + 1)
    }
    wide = [
        (number, len(line[: cuts.get(number)].rstrip()))
        for number, line in enumerate(lecture.lines, 1)
        if number not in hidden | prose
        and not line.lstrip().startswith('"')
        and len(line[: cuts.get(number)].rstrip()) > COLUMNS + 4
    ]
    inside_functions = {n for f in lecture.functions[1:] for n in range(f.first, f.last + 1)}
    assert [w for w in wide if w[0] in inside_functions] == []


def test_every_citation_has_its_entry_and_every_entry_is_cited(repo: Path, lecture: source.Lecture) -> None:
    library = (repo / "lectures" / "references.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{([^,]+),", library, re.MULTILINE)
    hardware = (repo / "lectures" / "hardware.py").read_text(encoding="utf-8")
    cited = set(re.findall(r"(?<=[\[;\s])@([\w:.-]+\w)(?=[\];,])", lecture.text))
    assert len(entries) == len(set(entries))
    assert cited - set(entries) == set()
    assert {key for key in entries if key not in cited and key not in hardware} == set()


def test_every_figure_says_what_it_shows(record: trace.Record) -> None:
    figures = [piece for piece in record.pieces if piece.kind == "figure"]
    assert len(figures) >= 6
    assert [f.line for f in figures if len(f.alt.split()) < 8 or len(f.text.split()) < 4] == []
    assert [f.line for f in figures if len(f.data) > 60_000] == []


def test_plain_python_prints_the_lectures_prose(repo: Path) -> None:
    import os
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "lecture_02"], cwd=repo / "lectures", capture_output=True, text=True, check=False,
        timeout=200, env={**os.environ, "PYTHONPATH": str(repo / "tools")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Transposing a matrix moves none of its numbers." in done.stdout
