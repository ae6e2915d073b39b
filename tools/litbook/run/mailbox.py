"""Where the process of a run leaves what it has to say, and how who started it reads that.

    at      the section that begins
    late    asserts and errors that are in no record: of forks of the process, or after its record
    left    the record, an answer, or what went wrong instead: whole, signed with the run's key, or not there

Three files in a folder that ends with the run. What is written here is trusted no further than it is whole
and has the key: a lecture, or a fork of it, may write there, too.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from msgspec.structs import replace

from litbook.errors import LitbookError
from litbook.record import encoding, model

AT, LATE, LEFT = "at", "late", "left"

# What `os` had before the lecture, which may replace any of it.
_open, _write, _close, _rename, _getpid, _exit = os.open, os.write, os.close, os.replace, os.getpid, os._exit


def grace(seconds: float) -> float:
    """So many seconds, on a busy machine as many times more as it is slower.

    Each side asks as it begins to wait, so that who ends a process never has less patience than the process.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return seconds * max(1.0, load / (os.cpu_count() or 1))


class Mailbox:
    """The side of the process that runs the lecture."""

    def __init__(self, folder: str, key: str) -> None:
        self.folder, self.key, self.pid = folder, key, os.getpid()

    def is_own_process(self) -> bool:
        """Whether this is still the process that was started, and no fork of it."""
        return _getpid() == self.pid

    def enter_section(self, section: str) -> None:
        """A section begins. A fork of the process that comes here ends."""
        if not self.is_own_process():
            _exit(0)
        self._put(AT, section.encode())

    def leave_late(self, line: tuple[object, ...]) -> None:
        """Say what no record of this process will say, from a fork of it or after its record."""
        self._put(LATE, repr(line).encode(errors="backslashreplace") + b"\n", os.O_APPEND)

    def leave(self, kind: str, content: bytes) -> None:
        """Leave a record or a trouble, whole or not at all; the first that is left counts."""
        if not self.is_own_process() or self.key == "":
            return
        head = {"key": self.key, "kind": kind, "sha256": hashlib.sha256(content).hexdigest()}
        self._put(f"{LEFT}.new", json.dumps(head).encode() + b"\n" + content)
        _rename(f"{self.folder}/{LEFT}.new", f"{self.folder}/{LEFT}")
        self.key = ""

    def trouble(self, slug: str, message: str, exit_status: int) -> None:
        """Leave what ended the run instead of a record."""
        trouble = {"slug": slug, "message": message, "exit_status": exit_status}
        self.leave("trouble", json.dumps(trouble).encode())

    def give_up(self, error: LitbookError) -> NoReturn:
        """The lecture does not stop at the end of its time: from another thread, the end of the process."""
        self.trouble(error.slug, error.printed(), error.exit_status)
        _exit(0)

    def end(self) -> NoReturn:
        """The end, which no `atexit` of the lecture's and no thread delays."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # a reader that has gone away
                stream.flush()
        _exit(0)

    def _put(self, name: str, content: bytes, how: int = os.O_TRUNC) -> None:
        file = _open(f"{self.folder}/{name}", os.O_WRONLY | os.O_CREAT | how, 0o600)
        while content:
            content = content[_write(file, content) :]
        _close(file)


# ---------------------------------------------------------------------------- the side that started it


def read_result(folder: Path, key: str) -> tuple[str, str]:
    """The kind and the content of what the process left; "" where that is not whole or not its own."""
    try:
        first, _, content = encoding.content(folder / LEFT).partition(b"\n")
        head = json.loads(first)
        if head["key"] == key and head["sha256"] == hashlib.sha256(content).hexdigest():
            return head["kind"], content.decode()
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return "", ""


def read_progress(folder: Path) -> str:
    """How far the process has come, as messages say it."""
    with contextlib.suppress(OSError, ValueError):
        if section := encoding.content(folder / AT).decode():
            return f"in the section {section[:200]}"
    return "before its first section"


def describe_exit(status: int) -> str:
    """How a process ended, by its exit status."""
    with contextlib.suppress(ValueError):  # a signal without a name
        if status < 0:
            return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    return f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"


def read_late(folder: Path) -> str:
    """What was left beside the record."""
    with contextlib.suppress(OSError):
        return (folder / LATE).read_text(encoding="utf-8")
    return ""


def with_late(record: model.Record, text: str) -> model.Record:
    """The record with the asserts of forked children, and of what ran after it was made.

    Raises `ValueError`, `SyntaxError` or `TypeError` where the lines of `text` are not whole.
    """
    asserts, errors = dict.fromkeys(record.asserts), dict[str, dict[model.Error, None]]()
    for kind, *fields in map(ast.literal_eval, dict.fromkeys(text.splitlines())):
        if kind == "ran":
            asserts[model.Assert(*fields)] = None
        else:
            errors.setdefault(fields[0], {})[model.Error(*fields[1:])] = None
    sections = (replace(s, errors=(*s.errors, *errors.get(s.key, ()))) for s in record.sections)
    return replace(record, sections=tuple(sections), asserts=tuple(asserts))
