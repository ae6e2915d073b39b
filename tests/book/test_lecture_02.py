"""Lecture 02: every statement of the inventory has its place, every claim holds, every section stands alone."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.running import LECTURE_02, sampled

from litbook.record import compare, model, recordings
from litbook.render import books, path
from litbook.run import run
from litbook.text import source, unbacked, unrun

# How many statements on each topic the lecture settles: N napkin math, T tensors, D dtypes, G GPU, S
# storage, E elementwise, M products, F FLOPs, J gradients, K parameters, L randomness, P data, O
# optimizers, A accounting, Q training, C checkpoints, X mixed precision, Z summary.
STATEMENTS = {"N": 15, "T": 7, "D": 39, "G": 6, "S": 23, "E": 5, "M": 31, "F": 42, "J": 19, "K": 16, "L": 5, "P": 12,
              "O": 11, "A": 8, "Q": 5, "C": 5, "X": 12, "Z": 2}  # fmt: skip
COLUMNS = 76  # of code that stand beside a margin of values without wrapping


@pytest.fixture(scope="module")
def lecture(repo: Path) -> source.Lecture:
    return source.read(LECTURE_02, LECTURE_02.relative_to(repo).as_posix())


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
    lecture: source.Lecture, rows: list[list[str]]
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


def text_of(lecture: source.Lecture, function: source.Function) -> str:
    return "\n".join(lecture.files[function.file].lines[function.first - 1 : function.last])


def boxes(lecture: source.Lecture) -> list[tuple[str, str]]:
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
            found.append((getattr(function, "name", "<module>"), "".join(texts)))
    return found


def in_reading_order(lecture: source.Lecture) -> list[source.File]:
    """The files as `main` reaches their sections, each once."""
    return [lecture.files[n] for n in dict.fromkeys(lecture.functions[i].file for i in lecture.order)]


def test_every_misbelief_stands_in_the_table_and_in_the_lecture(
    lecture: source.Lecture, misbeliefs: list[list[str]]
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
    assert refuted.total() == 74


def test_every_claim_holds_or_needs_a_device_that_is_not_here(record: model.Record) -> None:
    unmet = [(it.key, c.text) for it, c in record.claims() if c.verdict not in ("holds", "needs-device")]
    assert unmet == []
    assert [*record.errors()] == []
    assert record.count().holds > 750
    needing = {section.requires for section, claim in record.claims() if claim.verdict == "needs-device"}
    assert needing == {"cuda"}


def test_every_section_makes_claims_and_says_something_first(record: model.Record) -> None:
    sections = [section for section in record.sections if section.kind == "section"]
    assert [section.key for section in sections if not section.claims] == []
    assert [section.key for section in sections if len(section.heading.split()) < 3] == []


def test_a_section_alone_gives_the_claims_and_values_that_it_gives_in_the_whole(
    record: model.Record,
) -> None:
    sections = [it.key for it in record.sections if it.kind == "section" and not it.requires]
    for name in sampled(sections[::4], 5):  # each run repeats the imports' share of the work
        alone = run.run(LECTURE_02, sections=[name], device="cpu")
        assert [*alone.errors()] == []
        assert outcome(alone.by_key[name]) == outcome(record.by_key[name])


def outcome(section: model.Section) -> list[object]:
    """Claims with their operands, and inspected values, of one section."""
    measured = {v.text for v in section.values if v.kind == "measure"}
    shown = [
        without_address(section.snapshots[o.value])
        for claim in section.claims
        for o in claim.operands
        if o.value is not None and not set(re.findall(r"\w+", o.text)) & measured
    ]
    values = [
        (v.line, v.text, without_address(section.snapshots[v.value]))
        for v in section.values
        if v.kind == "inspect" and v.value is not None
    ]
    return [[(c.line, c.verdict) for c in section.claims], shown, values]


def without_address(shown: model.Snapshot) -> str:
    """A snapshot without what differs from run to run."""
    return re.sub(r"0x[0-9a-f]+|<.*?>", "", repr(shown))


def test_every_section_ends_with_a_question_whose_answer_the_run_computes(
    lecture: source.Lecture, record: model.Record
) -> None:
    sections = [section for section in record.sections if section.kind == "section"]
    silent = [it.key for it in sections if not any(p.kind == "question" for p in it.pieces)]
    assert [key for key in silent if not record.by_key[key].requires] == []
    asked = [f for f in lecture.functions if f.kind == "section" and "question(" in text_of(lecture, f)]
    assert len(asked) == len(sections)


def test_the_committed_recording_is_of_this_text_and_says_the_same(repo: Path, record: model.Record) -> None:
    """Otherwise: make record ARGS=--approve."""
    recording = recordings.read(repo / "lectures" / "recordings" / "lecture_02.cpu.json", "lecture_02")
    found = compare.compare(record, recording)
    assert [str(difference) for difference in found.differences] == []
    assert found.values > 300
    assert found.claims > 700


def test_every_number_in_prose_is_computed_cited_or_structural(lecture: source.Lecture) -> None:
    assert [str(problem) for file in lecture.by_file() for problem in unbacked.unbacked(file)] == []


def test_no_claim_is_dead_and_what_did_not_run_needs_a_gpu(record: model.Record) -> None:
    found = unrun.unrun(record)
    assert [str(it.problem) for it in found if it.dead] == []
    assert {it.problem.what.rsplit(": ", 1)[1] for it in found} <= {"it needs cuda"}


def test_code_fits_beside_its_margin(lecture: source.Lecture) -> None:
    wide = [place for file in lecture.files for place in too_wide(lecture, file)]
    assert wide == []


def too_wide(lecture: source.Lecture, file: source.File) -> list[str]:
    """Lines of code in functions that do not fit, but for prose and what is hidden."""
    cuts = dict(reversed(file.cuts))
    functions = [f for f in lecture.functions if f.file == file.number and f.kind != "module"]
    hidden = {n for f in functions if f.hidden for n in range(f.first, f.last + 1)}
    inside = {n for f in functions for n in range(f.first, f.last + 1)}
    prose = {
        n
        for s in lecture.statements
        if s.kind in ("piece", "doc", "hidden") and lecture.functions[s.function].file == file.number
        for n in range(s.first, s.end + 1)
    }
    return [
        f"{file.path}:{number}"
        for number, line in enumerate(file.lines, 1)
        if number in inside - hidden - prose
        and not line.lstrip().startswith('"')
        and len(line[: cuts.get(number)].rstrip()) > COLUMNS + 4
    ]


def test_every_citation_has_its_entry_and_every_entry_is_cited(repo: Path, lecture: source.Lecture) -> None:
    library = (repo / "lectures" / "references.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{([^,]+),", library, re.MULTILINE)
    whole = "\n".join(file.text for file in lecture.files)
    hardware = (repo / "lectures" / "hardware.py").read_text(encoding="utf-8")
    cited = set(re.findall(r"(?<=[\[;\s])@([\w:.-]+\w)(?=[\];,])", whole))
    assert len(entries) == len(set(entries))
    assert cited - set(entries) == set()
    assert {key for key in entries if key not in cited and key not in hardware} == set()


def test_every_figure_says_what_it_shows(record: model.Record) -> None:
    figures = [piece for section in record.sections for piece in section.pieces if piece.kind == "figure"]
    assert len(figures) >= 6
    assert [f.line for f in figures if len(f.alt.split()) < 8 or len(f.text.split()) < 4] == []
    assert [f.line for f in figures if len(f.data) > 60_000] == []


@pytest.mark.slow  # test_author has the same for a small one
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


def test_the_core_fits_into_an_evening(record: model.Record) -> None:
    leaves = [section for section in record.sections if section.kind == "section"]
    core = [section for section in leaves if not section.aside]
    assert 55 <= len(core) <= 70
    assert len(leaves) > 2 * len(core)
    said = path.line(books.of(record, books.NOTHING_CITED, (), []))
    (hours,) = re.findall(r"about ([\d.]+) hours to read", said)
    assert float(hours) <= 3


def test_every_section_of_the_core_opens_with_prose(record: model.Record) -> None:
    core = [section for section in record.sections if section.kind == "section" and not section.aside]
    opening = {it.key: next(s for s in it.statements if s.kind not in ("doc", "hidden")) for it in core}
    assert [key for key, first in opening.items() if first.kind != "piece"] == []
