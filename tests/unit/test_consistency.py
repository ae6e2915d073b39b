"""Recordings that contradict themselves, and that merge."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.records import unsealed
from tests.running import HEAD, record, write

from litbook.errors import RecordError
from litbook.record import model, recordings
from litbook.record.recordings import Baseline

LECTURE = f"""{HEAD}
def main():
    one()
    two()
    three()


def one():
    x = 3  # @inspect x
    assert x == 3, "three"
    assert 2 < x <= 4 and x > 0, "between"
    assert 1 < x < 5


def two():
    name, rows = "a", [1, 2.5]  # @inspect name, rows
    assert name == "a"
    assert rows == [1, 2.5]
    assert rows != [1, 2]


def three():
    total = 0.5  # @inspect total
    assert total <= 0.5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = record(tmp_path, LECTURE)
    kept = tmp_path / "recordings" / "lecture_sample.cpu.json"
    recordings.write(kept, replace(made, lecture="lecture_sample"))
    assert recordings.read(kept, "lecture_sample").count()["holds"] == made.count()["holds"]
    return kept


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ('"text":"3","number":3', '"text":"3","number":9', "says 3 and is 9"),
        ('"text":"3","number":3', '"text":"9","number":3', "says 9 and is 3"),
        ('"text":"3","number":3', '"text":"9","number":9', "has 3, which is another value there"),
        ('"text":"0.5","number":0.5', '"text":"0.75","number":0.75', "has 0.5, which is another value there"),
        ('"text":"2.5","number":2.5', '"text":"2.25","number":2.25', "has [1, 2.5], which is another value there"),
        ('"verdict":"holds"', '"verdict":"fails"', "fails, and is true"),
        ('"lecture":"lecture_sample"', '"lecture":"lecture_sample","lecture":"lecture_sample"', "'lecture' stands twice"),
        ('"verdict":"holds"', '"verdict":"fails","verdict":"holds"', "'verdict' stands twice"),
        ('"date":"20', '"date":"30', "lies ahead"),
        ('"date":"20', '"date":"soon 20', "is no date"),
    ],
)  # fmt: skip
def test_a_recording_that_contradicts_itself_is_refused(file: Path, was: str, now: str, says: str) -> None:
    text = file.read_text()
    assert was in text
    file.write_text(text.replace(was, now, 1))
    with pytest.raises(RecordError) as raised:
        recordings.read(file, "lecture_sample")
    assert says in str(raised.value) and "changed by hand or damaged" in str(raised.value)


SLOW = f"""{HEAD}
import numpy as np
import torch


def main():
    one()


@requires("slow")
def one():
    name = "alpha"  # @inspect name
    w = np.float64(0.25)  # @inspect w as s
    x = torch.tensor([1.0, 2.0, 4.0])  # @inspect x
    for i in range(9):
        s = i * i  # @inspect s
    print("printed here")
    note(f"It is {{x.sum()}}.")
    question("What is it?", answer=w, check=1 / 4, why="because")
    assert x.sum() == 7, "seven in all"
    assert w == 0.25, "a quarter"
"""
CHANGED = {  # what a run would not have written, and no other value of the file gainsays
    "a text that is shown": ("alpha", "omega"),
    "a number of NumPy's": ("0.25", "0.75"),
    "an element of a tensor": ("[1.0,2.0,4.0]", "[1.0,2.0,5.0]"),
    "a caption": ("seven in all", "eight in all"),
    "a claim's own text": ("x.sum() == 7", "x.sum() == 8"),
    "what was printed": ("printed here", "printed there"),
    "prose": ("It is 7.0.", "It is 8.0."),
    "why": ("because", "perhaps"),
    "a unit": (',"s"', ',"ms"'),
    "how often": (",9", ",8"),
    "a device": ('"name":"', '"name":"another '),
    "a date": ('"date":"20', '"date":"19'),
    "what it depends on": ('"depends":"', '"depends":"0'),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_what_nothing_else_in_it_gainsays_breaks_the_seal(kind: str, tmp_path: Path) -> None:
    file, (was, now) = tmp_path / "recordings" / "lecture_sample.cpu.json", CHANGED[kind]
    recordings.write(file, replace(record(tmp_path, SLOW, slow=True), lecture="lecture_sample"))
    text = file.read_text()
    assert recordings.read(file, "lecture_sample").count() == {"holds": 2}
    assert was in text
    file.write_text(text.replace(was, now, 1))
    with pytest.raises(RecordError, match="is not what was recorded there"):
        recordings.read(file, "lecture_sample")


@pytest.mark.parametrize("what", ["claims", "values", "pieces", "loops"])
@pytest.mark.parametrize("how", ["doubled", "left out", "exchanged"])
def test_what_a_merge_doubles_leaves_out_or_exchanges_breaks_the_seal(
    what: str, how: str, tmp_path: Path
) -> None:
    """So it is with `merge=union`, which keeps the lines of both sides."""
    file = tmp_path / "recordings" / "lecture_sample.cpu.json"
    recordings.write(file, replace(record(tmp_path, SLOW, slow=True), lecture="lecture_sample"))
    data = json.loads(file.read_text())
    (entry,) = (it for it in data["sections"] if it["key"] == "one")
    rows = entry[what]
    entry[what] = {"doubled": [*rows, rows[-1]], "left out": rows[:-1], "exchanged": rows[::-1]}[how]
    if entry[what] == rows:
        return  # there is one
    file.write_text(json.dumps(data))
    with pytest.raises(RecordError, match="was changed by hand or damaged"):
        recordings.read(file, "lecture_sample")


def test_a_recording_from_before_there_were_seals_is_read(file: Path) -> None:
    file.write_text(unsealed(file.read_text()))
    assert recordings.read(file, "lecture_sample").count()["holds"] > 0


def test_marks_of_a_merge_are_named(file: Path) -> None:
    lines = file.read_text().splitlines(keepends=True)
    lines[3:4] = ["<<<<<<< HEAD\n", lines[3], "=======\n", lines[3], ">>>>>>> other\n"]
    file.write_text("".join(lines))
    with pytest.raises(
        RecordError, match="has marks of a merge\n    take one side, with `git checkout --ours`"
    ):
        recordings.read(file, "lecture_sample")


def recorded(folder: Path, text: str) -> str:
    """The recording in `folder` after a run of `text` was recorded there."""
    lecture = write(folder, text)
    made = record(folder, text)
    Baseline.for_run(lecture, made).keep(approve=True)
    return (folder / "recordings" / "lecture_sample.cpu.json").read_text()


def test_two_branches_that_record_different_sections_merge(tmp_path: Path) -> None:
    start, texts = recorded(tmp_path, LECTURE), dict[str, str]()
    first = LECTURE.replace("x = 3 ", "# more lines\n    # and more\n    x = 1 + 2 ")
    other = LECTURE.replace("total = 0.5 ", "total = 0.25 * 2\n    assert total ==").replace(
        "== # @", "== 0.5  # @"
    )
    other = LECTURE.replace("total = 0.5 ", "total = 0.25 + 0.25 ")
    for name, text in (("ours", first), ("theirs", other)):
        folder = tmp_path / name
        (folder / "recordings").mkdir(parents=True)
        (folder / "recordings" / "lecture_sample.cpu.json").write_text(start)
        texts[name] = recorded(folder, text)
        assert texts[name] != start
        (tmp_path / f"{name}.json").write_text(texts[name])
    (tmp_path / "base.json").write_text(start)
    done = subprocess.run(
        ["git", "merge-file", "-p", "ours.json", "base.json", "theirs.json"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    merged = tmp_path / "recordings" / "lecture_sample.cpu.json"
    merged.write_text(done.stdout)
    both = recordings.read(merged, "lecture_sample")
    assert both.count() == json.loads(json.dumps(both.count()))
    whole = LECTURE.replace("x = 3 ", "# more lines\n    # and more\n    x = 1 + 2 ")
    whole = whole.replace("total = 0.5 ", "total = 0.25 + 0.25 ")
    again = Baseline.for_run(write(tmp_path, whole), record(tmp_path, whole))
    assert [change.kind for change in again.all_differences] == []


def test_a_recording_of_the_format_before_is_compared_and_replaced(tmp_path: Path) -> None:
    text = recorded(tmp_path, LECTURE)
    file = tmp_path / "recordings" / "lecture_sample.cpu.json"
    file.write_text(text.replace(f'"schema":{model.SCHEMA}', f'"schema":{model.SCHEMA - 1}'))
    changed = LECTURE.replace("x = 3 ", "x = 4 ").replace("x == 3", "x == 4")
    baseline = Baseline.for_run(write(tmp_path, changed), record(tmp_path, changed))
    assert baseline.unusable is not None and "has schema" in str(baseline.unusable)
    assert "one" in {change.section for change in baseline.all_differences}
    with pytest.raises(RecordError):
        baseline.keep(approve=False)
    assert baseline.keep(approve=True).startswith("recorded in")
    assert f'"schema":{model.SCHEMA}' in file.read_text()
