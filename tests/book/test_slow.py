"""Slow sections: a build takes them from the recording and says so; chosen sections are recorded into the one there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.book.test_recordings import Place
from tests.running import HEAD

from litbook.html import page
from litbook.record import model, recordings
from litbook.rules.judge import Findings, judge
from litbook.rules.subject import Subject
from litbook.run import process

LECTURE = f"""{HEAD}

def doubled(x: int) -> int:
    return 2 * x


def main() -> None:
    quick()
    patient()


def quick() -> None:
    four = doubled(2)  # @inspect four
    assert four == 4, "quick"


@requires("slow")
def patient() -> None:
    note(f"It took {{doubled(21)}} turns.")
    six = doubled(3)  # @inspect six
    assert six == 6, "patient"
"""
FILE = "lecture_sample.cpu.json"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    it = Place(tmp_path)
    it.lecture.write_text(LECTURE, encoding="utf-8")
    return it


def recording(place: Place) -> model.Record:
    return recordings.read(place.file, "lecture_sample")


def built(place: Place) -> tuple[str, Findings]:
    """The page of a build on this machine, and what is wrong with it."""
    subject = Subject(place.lecture, run=lambda: process.record_of(place.lecture, device="cpu"))
    found, it = judge(subject), subject.runs
    return "\n".join(page.pages(it.record, recordings=it.recordings).values()), found


def test_a_run_leaves_a_slow_section_out_unless_it_is_asked_for_by_name(place: Place) -> None:
    assert place.run().stdout == "1 claim holds, 0 fail, 1 not run\n"
    assert place.run("patient").stdout == "1 claim holds, 0 fail, 0 not run\n"


def test_a_build_takes_a_slow_section_from_the_recording_and_says_so(place: Place) -> None:
    html, found = built(place)
    assert "<summary>Not run (needs minutes)</summary>" in html
    assert "Shows 1 claim: <code>litbook run lecture_sample patient</code>" in html
    assert found.errors == []
    assert place.run("--record").stdout.endswith("2 claims hold, 0 fail, 0 not run\n")
    html, found = built(place)
    assert "Not run (needs minutes). What stands here was recorded: " in html
    assert "It took 42 turns." in html
    assert found.errors == found.warnings == []


def test_what_contradicts_a_recorded_slow_section_is_seen_when_it_runs(place: Place) -> None:
    place.run("--record")
    place.damage('"six"', '"sixth"')
    assert place.run().returncode == 0, "it did not run: nothing to compare"
    done = place.run("patient")
    assert done.returncode == 1
    assert "patient: six is not what was recorded" in done.stdout


def test_chosen_sections_are_recorded_into_the_recording_with_commit_and_date_of_each(place: Place) -> None:
    place.run("--record")
    before = recording(place)
    place.edit("six = doubled(3)", "six = doubled(1) + 4")
    done = place.run("patient", "--record")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"recorded in book/recordings/{FILE}" in done.stdout
    after = recording(place)
    assert (after.environment, after.by_key["quick"]) == (before.environment, before.by_key["quick"])
    run = after.by_key["patient"].run
    assert run is not None and run.date >= before.environment.date
    assert after.by_key["patient"].digest != before.by_key["patient"].digest
    assert place.run().stdout == "1 claim holds, 0 fail, 1 not run\n"
    assert place.run("patient", "--record").stdout.startswith(f"book/recordings/{FILE} stays as it is")


def test_one_section_is_recorded_alone_and_others_are_neither_asked_for_nor_compared(place: Place) -> None:
    done = place.run("patient", "--record")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"recorded in book/recordings/{FILE}" in done.stdout
    kept = recording(place)
    assert (kept.asked, [section.key for section in kept.sections]) == (("patient",), ["main", "patient"])
    assert place.run().stdout == "1 claim holds, 0 fail, 1 not run\n"
    html, found = built(place)
    assert "Not run (needs minutes). What stands here was recorded: " in html and "It took 42 turns." in html
    assert found.errors == found.warnings == []
    place.edit("six = doubled(3)", "six = doubled(2) + 2")
    assert "1 section recorded from an older text: patient" in str(built(place)[1].errors[0])


def test_what_is_recorded_alone_is_joined_by_others_and_replaced_by_the_whole(place: Place) -> None:
    place.run("patient", "--record")
    assert place.run("quick", "--record").returncode == 0
    kept = recording(place)
    assert kept.asked == ("patient", "quick")
    assert sorted(section.key for section in kept.sections if section.has_run) == ["patient", "quick"]
    assert place.run("--record").returncode == 0
    assert recording(place).asked == () and recording(place).by_key["quick"].has_run


def test_a_section_is_not_recorded_beside_others_that_used_an_older_helper(place: Place) -> None:
    place.run("--record")
    kept = place.file.read_bytes()
    place.edit("return 2 * x", "return x + x")
    place.edit("six = doubled(3)", "six = doubled(1) + 4")
    done = place.run("patient", "--record", "--approve")
    assert done.returncode == 2
    said = "doubled has changed, and sections that are not recorded now use it\n    record the whole lecture"
    assert said in done.stderr
    assert place.file.read_bytes() == kept


def test_plain_python_runs_a_slow_section(place: Place) -> None:
    text = place.lecture.read_text(encoding="utf-8").replace("doubled(21)", "doubled(4)")
    space: dict[str, object] = {"__name__": "plain"}
    exec(compile(text, "plain", "exec"), space)
    patient = space["patient"]
    assert callable(patient)
    assert patient() is None
