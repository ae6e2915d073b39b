"""Kills at random moments of a run, a recording and a build: no broken recording, and the next command tidies up.

`LITBOOK_KILLS=200 pytest tests/book/test_kills.py -s` is what issue 14 asks for; by default there are few.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.running import LITBOOK, REPO

from litbook.record import encoding
from litbook.site import scaffold

KILLS = int(os.environ.get("LITBOOK_KILLS", "10"))
MARK = "LITBOOK_KILLED"  # in the environment of all that a command starts
RECORDING = "lectures/recordings/lecture_01.cpu.json"
COMMANDS = {"run": ("run", "lecture_01"), "record": ("record",), "build": ("build",)}


class Book:
    """A new book, whose commands keep their temporary files in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tmp = folder / "book", folder / "tmp"
        self.tmp.mkdir()
        scaffold.begin(self.folder)
        self.text = (self.folder / "lectures/lecture_01.py").read_text()
        self.env = {
            **os.environ,
            "NO_MKDOCS_2_WARNING": "1",
            "PYTHONPATH": str(REPO / "tools"),
            "TMPDIR": str(self.tmp),
            MARK: str(self.folder),
        }

    def change(self, number: int) -> None:
        """Another text, so that a recording has something to write."""
        (self.folder / "lectures/lecture_01.py").write_text(f"{self.text}\n\nVERSION = {number}\n")

    def started(self, command: str) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        words = [*LITBOOK, *COMMANDS[command]]
        return subprocess.Popen(words, cwd=self.folder, env=self.env, stdout=quiet, stderr=quiet)

    def seconds(self, command: str) -> float:
        """How long the command takes when nobody kills it."""
        start = time.monotonic()
        assert self.started(command).wait(100) == 0
        return time.monotonic() - start

    def files(self) -> set[str]:
        """What is in the folder, a build of it included."""
        return {it.relative_to(self.folder).as_posix() for it in self.folder.rglob("*") if it.is_file()}

    def living(self) -> list[str]:
        """The processes that commands of this book have started."""
        mark = f"{MARK}={self.folder}".encode()
        found = []
        for it in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (it / "environ").read_bytes().split(b"\0"):
                    found.append(it.name)
            except OSError:
                pass
        return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only there a process is told of its parent's end")
def test_kills_at_random_moments_break_no_recording_and_leave_nothing_after_the_next_command(
    tmp_path: Path,
) -> None:
    book, dice = Book(tmp_path), random.Random(os.environ.get("LITBOOK_SEED", "14"))
    takes = {command: book.seconds(command) for command in COMMANDS}  # in the order of a new book
    whole, seen = book.files(), Counter[tuple[str, str]]()
    for number in range(KILLS):
        command = dice.choices([*COMMANDS], [2, 2, 1])[0]
        book.change(number)
        process = book.started(command)
        time.sleep(dice.uniform(0, 1.1 * takes[command]))
        process.send_signal(signal.SIGKILL)
        killed = process.wait() == -signal.SIGKILL
        seen[command, "killed" if killed else "had ended"] += 1
        deadline = time.monotonic() + 20
        while book.living():
            assert time.monotonic() < deadline, f"{command}: {book.living()} go on"
            time.sleep(0.02)
        seen[command, "left temporary files"] += any(book.tmp.iterdir())
        encoding.read(book.folder / RECORDING)  # whole, old or new: else it raises
        book.seconds("run" if command == "run" else "record")
        assert [it.name for it in book.tmp.iterdir()] == [], command
        if command != "build":
            assert book.files() == whole, command
    book.seconds("build")
    assert book.files() == whole
    print(*(f"{command:8} {what:22} {count}" for (command, what), count in sorted(seen.items())), sep="\n")
