"""The recordings are of today's text: told without a run, in seconds, so that nobody commits one that is older."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running import REPO

from litbook.lecture import dependencies, parse
from litbook.project import name_of, recordings_of
from litbook.record import recordings

LECTURES = sorted(path for path in (REPO / "lectures").glob("lecture_??") if path.is_dir())


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.name)
def test_a_recording_is_of_the_text_that_lies_beside_it(path: Path) -> None:
    lecture = parse.read(path, path.relative_to(REPO).as_posix())
    now = {key: digests.all for key, digests in dependencies.digests(lecture, path.parent).items()}
    for file in recordings_of(path):
        was = recordings.read(file, name_of(path)).sections
        older = [it.key for it in was if it.has_run and it.depends != now.get(it.key)]
        assert older == [], f"{file.name}: record it anew (litbook record {path.name} --approve)"
