"""What holds for each lecture: its claims, its sections alone, its questions, its numbers, figures and sources."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import LECTURE_02, LECTURE_03, LECTURE_04, LECTURE_05, REPO, sampled, unrun

from litbook.lecture import parse
from litbook.lecture.model import Lecture, LectureFunction
from litbook.python.file import File
from litbook.record import compare, model, recordings
from litbook.rules import unbacked_number
from litbook.run import run

LECTURES = [LECTURE_02, LECTURE_03, LECTURE_04, LECTURE_05]
COLUMNS = 76  # of code that stand beside a margin of values without wrapping


@pytest.fixture(scope="module", params=LECTURES, ids=lambda path: path.name)
def path(request: pytest.FixtureRequest) -> Path:
    """The lecture's folder."""
    folder: Path = request.param
    return folder


@pytest.fixture(scope="module")
def lecture(path: Path) -> Lecture:
    return text(path)


@pytest.fixture(scope="module")
def record(path: Path, request: pytest.FixtureRequest) -> model.Record:
    made: model.Record = request.getfixturevalue(f"record_{path.name[-2:]}")
    return made


def text(path: Path) -> Lecture:
    return parse.read(path, path.relative_to(REPO).as_posix())


def test_every_lecture_is_held_to_this(repo: Path) -> None:
    assert sorted(repo.glob("lectures/lecture_*")) == LECTURES


def text_of(lecture: Lecture, function: LectureFunction) -> str:
    return "\n".join(lecture.files[function.file].lines[function.first - 1 : function.last])


def test_every_claim_holds_or_needs_a_device_that_is_not_here(record: model.Record) -> None:
    unmet = [(it.key, c.text) for it, c in record.claims() if c.verdict not in ("holds", "needs-device")]
    assert unmet == []
    assert [*record.errors()] == []
    needing = {section.requires for section, claim in record.claims() if claim.verdict == "needs-device"}
    assert needing <= {"cuda"}


def test_every_section_makes_claims_and_says_something_first(record: model.Record) -> None:
    sections = [section for section in record.sections if section.kind == "section"]
    assert [section.key for section in sections if not section.claims] == []
    assert [section.key for section in sections if len(section.heading.split()) < 3] == []


def test_a_section_alone_gives_the_claims_and_values_that_it_gives_in_the_whole(
    path: Path, record: model.Record
) -> None:
    sections = [it.key for it in record.sections if it.kind == "section" and not it.requires]
    for name in sampled(sections[::12], 5):  # each run repeats the imports' share of the work
        alone = run.run(path, sections=[name], device="cpu")
        assert [*alone.errors()] == []
        found = compare.compare(alone, record)  # sums in another order may end in another digit
        assert [str(difference) for difference in found.differences] == []
        assert found.claims > 0


def test_every_section_ends_with_a_question_whose_answer_the_run_computes(
    lecture: Lecture, record: model.Record
) -> None:
    sections = [section for section in record.sections if section.kind == "section"]
    silent = [it.key for it in sections if not any(p.kind == "question" for p in it.pieces)]
    assert [key for key in silent if not record.by_key[key].requires] == []
    asked = [f for f in lecture.functions if f.kind == "section" and "question(" in text_of(lecture, f)]
    assert len(asked) == len(sections)


def test_the_committed_recording_is_of_this_text_and_says_the_same(path: Path, record: model.Record) -> None:
    """Otherwise: make record ARGS=--approve."""
    recorded = path.parent / "recordings" / f"{path.name}.cpu.json"
    found = compare.compare(record, recordings.read(recorded, path.name))
    assert [str(difference) for difference in found.differences] == []
    assert found.claims > 0.9 * record.count()["holds"]


def test_every_number_in_prose_is_computed_cited_or_structural(lecture: Lecture) -> None:
    assert [str(problem) for problem in unbacked_number.find_unbacked(lecture)] == []


def test_no_claim_is_dead_and_what_did_not_run_needs_a_gpu(record: model.Record) -> None:
    found = unrun(record)
    assert [str(it.finding) for it in found if it.dead] == []
    assert {it.finding.what.rsplit(": ", 1)[1] for it in found} <= {"it needs cuda"}


def test_code_fits_beside_its_margin(lecture: Lecture) -> None:
    wide = [place for file in lecture.files for place in too_wide(lecture, file)]
    assert wide == []


def too_wide(lecture: Lecture, file: File) -> list[str]:
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


def test_every_citation_has_its_entry_and_every_entry_is_cited(repo: Path) -> None:
    library = (repo / "lectures" / "references.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{([^,]+),", library, re.MULTILINE)
    whole = "\n".join(file.text for path in LECTURES for file in text(path).files)
    # A module beside cites in comments, what it gives the page in the rows of its tables.
    beside = "".join(file.read_text(encoding="utf-8") for file in (repo / "lectures").glob("*.py"))
    cited = set(re.findall(r"(?<=[\[;\s])@(?!eq:|fig:|tab:)([\w:.-]+\w)(?=[\];,])", whole))
    assert len(entries) == len(set(entries))
    assert cited - set(entries) == set()
    assert {key for key in entries if key not in cited and key not in beside} == set()


def test_every_figure_says_what_it_shows(record: model.Record) -> None:
    figures = [piece for section in record.sections for piece in section.pieces if piece.kind == "figure"]
    assert len(figures) >= 3
    assert [f.line for f in figures if len(f.alt.split()) < 8 or len(f.text.split()) < 4] == []
    assert [f.line for f in figures if len(f.data) > 60_000] == []


@pytest.mark.slow
def test_plain_python_prints_the_lectures_prose(repo: Path) -> None:
    """The shortest stands for all: test_notebook runs every section of each lecture in plain Python."""
    done = subprocess.run(
        [sys.executable, "-m", LECTURE_04.name], cwd=LECTURE_04.parent, capture_output=True, text=True, check=False,
        timeout=200, env={**os.environ, "PYTHONPATH": str(repo / "tools")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) > 3_000, "its ranks are not launched here"


def test_every_section_of_the_core_opens_with_prose(record: model.Record) -> None:
    core = [section for section in record.sections if section.kind == "section" and not section.aside]
    opening = {it.key: next(s for s in it.statements if s.kind not in ("doc", "hidden")) for it in core}
    assert [key for key, first in opening.items() if first.kind != "piece"] == []
