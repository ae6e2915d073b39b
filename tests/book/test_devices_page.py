"""The devices page, drawn from a real CPU run and a STAND-IN: the same run with another machine's name on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.records import fill
from tests.running import HEAD, record, write

from litbook.finding import Place
from litbook.html import devices
from litbook.page.runs import LectureRuns
from litbook.project import Project, recording_of
from litbook.record import encoding, model, recordings
from litbook.record.compare import Difference
from litbook.record.compare_values import ValueChange
from litbook.site.plugin import LitbookPlugin

LECTURE = f"""{HEAD}
def main():
    here()
    there()


def here():
    "Here."
    note("Both run this.")
    n = 3  # @inspect n
    seconds = 0.5  # @measure seconds as s
    assert n == 3, "three"


def there():
    "There."
    note("Only a GPU runs this.")
    fast = 2.0  # @measure fast as s
    assert fast > 1, "fast"
"""
NEEDS = LECTURE.replace("def there", '@requires("cuda")\ndef there')
H200 = model.Device("cuda", "nvidia-h200", "NVIDIA <H200>", 150_100_000_000, "580.1", "13.0", "9.0", 2)


@pytest.fixture
def build(tmp_path: Path) -> model.Record:
    return record(tmp_path, NEEDS, device="cpu")


@pytest.fixture
def stand_in(tmp_path: Path) -> model.Record:
    """A run of everything on this CPU, relabelled: no GPU was near it."""
    folder = tmp_path / "gpu"
    folder.mkdir()
    text = NEEDS.replace('@requires("cuda")', "# a stand-in").replace("fast = 2.0", "fast = 2.5")
    made = record(folder, text, device="cpu")
    versions = {**made.environment.versions, "torch": "2.11.0+cu130"}
    where = replace(
        made.environment, device=H200, versions=versions, date="2026-11-19T10:00:00Z", commit="abc123+"
    )
    return replace(fill(made, "there", requires="cuda"), environment=where, seconds=123.0)


def test_without_a_recording_the_page_says_what_waits_for_one(build: model.Record) -> None:
    page = devices.page([LectureRuns("lecture_sample", build)], {})
    assert "Not run (needs a GPU)." in page
    assert "1 claim in 1 section wait for one: " in page
    assert "<code>litbook record lecture_sample --device cuda</code>" in page
    assert build.environment.python in page


def test_each_machine_has_a_column_with_what_is_known_of_it(
    build: model.Record, stand_in: model.Record
) -> None:
    page = devices.page([LectureRuns("lecture_sample", build, [stand_in])], {})
    assert "Not run" not in page
    rows = {row.split("</th>")[0].rsplit(">", 1)[-1]: row for row in page.split("<tr>")}
    for name, expected in {
        "device": "NVIDIA &lt;H200&gt;", "its memory": "139.8 GiB", "driver": "580.1", "CUDA": "13.0", "date": "19 Nov 2026",
        "compute capability": "9.0", "GPUs visible, the first used": "2", "torch": "2.11.0+cu130", "commit": "abc123+",
        "time taken": "123 s", "claims that hold": "2", "sections of an older text": "1",
    }.items():  # fmt: skip
        assert rows[name].rstrip("\n").split("<td>")[2].startswith(f"{expected}</td>"), name


@pytest.mark.parametrize(
    "at, shown",
    [
        ("", "<code>n</code>"),
        (".shape[0]", "<code>n.shape[0]</code>"),
        ("times shown", "<code>n</code> times shown"),
    ],
)
def test_what_differed_is_listed_with_both_values(
    build: model.Record, stand_in: model.Record, at: str, shown: str
) -> None:
    change = ValueChange(at, "4", "3", "1")
    found = {
        ("lecture_sample", "nvidia-h200"): [Difference("value", "here", Place("a.py", 12), "n", (change,))]
    }
    build = replace(build, environment=replace(build.environment, versions={"torch": "2.13.0"}))
    page = devices.page([LectureRuns("lecture_sample", build, [stand_in])], found)
    assert "This recording was made by torch 2.11.0+cu130, this build by torch 2.13.0." in page
    assert "1 difference in what both runs are to agree on:" in page
    assert f"<td>here, line 12</td><td>{shown}</td><td>4</td><td>3</td><td>1</td>" in page
    same = devices.page([LectureRuns("lecture_sample", build, [stand_in])], {})
    assert "is the same, within the tolerances" in same


def test_a_build_writes_the_page_and_compares_what_both_have_run(
    tmp_path: Path, build: model.Record, stand_in: model.Record
) -> None:
    folder = tmp_path / "book"
    folder.mkdir()
    lecture = write(folder, NEEDS)
    changed = encoding.dumps(recordings.trim(stand_in))
    data = json.loads(changed)
    data["lecture"] = "lecture_sample"
    file = recording_of(lecture, H200.slug)
    file.parent.mkdir()
    file.write_text(json.dumps(data), encoding="utf-8")
    docs = tmp_path / "docs"
    plugin = LitbookPlugin()
    plugin.load_config({})
    entries = plugin.build(Project(tmp_path, folder, docs), lambda paths: ((lambda: build) for _ in paths))
    assert {"Devices": "lectures/devices.md"} in entries
    page = (docs / "lectures" / "devices.md").read_text(encoding="utf-8")
    assert "123 s" in page  # the sum is all that a recording keeps of its seconds
    assert "is the same, within the tolerances" in page
    shown = (docs / "lectures" / "lecture_sample" / "index.md").read_text(encoding="utf-8")
    assert "measured on " in shown  # this build's value, and beside it the recorded one
    assert "NVIDIA &lt;H200&gt;, 19 Nov 2026, torch 2.11.0</small>" in shown


def test_a_recording_keeps_how_long_the_whole_took(stand_in: model.Record) -> None:
    assert recordings.trim(stand_in).seconds == 123.0
    assert recordings.trim(replace(stand_in, seconds=4.4)).seconds == 4.0
    assert recordings.trim(replace(stand_in, seconds=0.1)).seconds == 0.0
    page = devices.page([LectureRuns("lecture_sample", replace(stand_in, seconds=0.0))], {})
    assert "time taken" not in page
