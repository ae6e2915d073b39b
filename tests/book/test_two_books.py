"""Two books in one environment: each has its own recordings, and a build of one leaves the other as it was."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.running import LITBOOK


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LITBOOK, *words], cwd=folder, capture_output=True, text=True, check=False)


def files(book: Path) -> dict[str, bytes]:
    return {str(it.relative_to(book)): it.read_bytes() for it in sorted(book.rglob("*")) if it.is_file()}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_books_with_lectures_of_one_name_keep_apart(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for book in (first, second):
        assert ran(tmp_path, "new", str(book)).returncode == 0
    lecture = second / "lectures" / "lecture_01.py"
    lecture.write_text(
        lecture.read_text().replace("0.25 + 0.5", "0.25 + 0.25").replace("total == 0.75", "total == 0.5")
    )
    for book in (first, second):
        done = ran(book, "record", "--quiet")
        assert done.returncode == 0, done.stdout + done.stderr
    recordings = [*first.glob("lectures/recordings/*.json"), *second.glob("lectures/recordings/*.json")]
    assert len(recordings) == 2 and recordings[0].name == recordings[1].name
    assert recordings[0].read_text() != recordings[1].read_text()

    building = [
        subprocess.Popen([*LITBOOK, "build"], cwd=book, stderr=subprocess.PIPE) for book in (first, second)
    ]
    for one in building:  # both at once
        with one:
            said = one.communicate()[1].decode()
        assert one.returncode == 0, said
    shown = [
        (book / "site" / "lectures" / "lecture_01" / "index.html").read_text() for book in (first, second)
    ]
    assert [bool(re.search(r"0\.75 = 0\.75", text)) for text in shown] == [True, False]
    # What the first has now is of no concern to the second: its claim fails, and that of the other does not.
    before = files(first)
    lecture.write_text(lecture.read_text().replace("total == 0.5", "total == 0.75"))
    assert ran(second, "build").returncode == 1
    assert files(first) == before
    assert ran(first, "run", "lecture_01", "--quiet").returncode == 0
