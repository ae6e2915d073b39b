"""A run is a process: the side that runs the lecture and leaves its record. `process` starts it.

    in      on stdin, as JSON: the arguments of `process.record_of`, a folder, and a key that says who wrote
    out     in the folder: the name of the section that begins; what asserts have to say that are in no
            record; at last the record, or what went wrong, whole

What it needs after the lecture is put back or was bound before it, so nothing that the lecture replaces
decides what is left. A process that the lecture forked and that comes back to this code ends there.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from litbook.errors import LitbookError
from litbook.record import encoding
from litbook.run import run
from litbook.run.process import AT, LATE, LEFT

_END = os._exit


def main() -> NoReturn:
    """All of the life of a process that is started for one run."""
    work(json.loads(sys.stdin.buffer.read()))


def work(asked: dict[str, Any]) -> NoReturn:
    """Run what is asked for, leave what came of it, and end the process."""
    desk = Desk(asked["folder"], asked["key"])
    try:
        _prepare()
        desk.at("")
        if "function" in asked:
            said = _named(asked["function"])(desk, **asked["given"])
            desk.leave("answer", json.dumps(said).encode())
            desk.end()
        listener = _listener(asked["listener"])
        try:
            record = run.run(
                Path(asked["path"]),
                sections=asked["sections"],
                device=asked["device"],
                timeout=asked["timeout"],
                seed=asked["seed"],
                slow=asked["slow"],
                words=asked["words"],
                listener=listener,
                owner=desk,
            )
        finally:
            if listener is not None and desk.here():
                listener.end()
        _leave(desk, encoding.dumps(record).encode(errors="backslashreplace"))
    except LitbookError as error:
        desk.trouble(error.slug, str(error), error.exit_status)
    except KeyboardInterrupt:
        desk.trouble("interrupted", "interrupted before the first line ran", 130)
    except OSError as error:  # of the one who listens: a full disk behind `>`
        desk.trouble("cannot-print", f"cannot print: {error.strerror or error}", 2)
    except BaseException as error:  # ours, or a lack of memory: a lecture's own are in its record
        traceback.print_exc()
        what = f"litbook failed while it ran the lecture: {type(error).__name__}: {error}"
        desk.trouble("failed", what, 2)
    desk.end()


def _leave(desk: Desk, content: bytes) -> None:
    try:
        desk.leave("record", content)
    except OSError as error:  # a full disk
        why = f"the record of the run cannot be kept among temporary files: {error.strerror}"
        desk.trouble("cannot-keep", f"{why}; no verdict without it", 1)


class Desk:
    """Where this process leaves what it has to say."""

    def __init__(self, folder: str, key: str) -> None:
        self.folder, self.key, self.pid = folder, key, os.getpid()
        self._system = os.open, os.write, os.close, os.replace, os.getpid

    def here(self) -> bool:
        """Whether this is still the process that was started, and no fork of it."""
        return self._system[4]() == self.pid

    def at(self, section: str) -> None:
        """A section begins."""
        if not self.here():
            _END(0)
        self._write(AT, section.encode())

    def late(self, said: tuple[object, ...]) -> None:
        """Say what no record of this process will say, from a fork of it or after its record."""
        self._write(LATE, repr(said).encode(errors="backslashreplace") + b"\n", os.O_APPEND)

    def leave(self, kind: str, content: bytes) -> None:
        """Leave a record or a trouble, whole or not at all; the first that is left counts."""
        if not self.here() or self.key == "":
            return
        head = {"key": self.key, "kind": kind, "sha256": hashlib.sha256(content).hexdigest()}
        self._write(f"{LEFT}.new", json.dumps(head).encode() + b"\n" + content)
        self._system[3](f"{self.folder}/{LEFT}.new", f"{self.folder}/{LEFT}")
        self.key = ""

    def trouble(self, slug: str, message: str, exit_status: int) -> None:
        """Leave what ended the run instead of a record."""
        said = {"slug": slug, "message": message, "exit_status": exit_status}
        self.leave("trouble", json.dumps(said).encode())

    def give_up(self, error: LitbookError) -> NoReturn:
        """The lecture does not stop at the end of its time: from another thread, the end of the process."""
        self.trouble(error.slug, str(error), error.exit_status)
        _END(0)

    def end(self) -> NoReturn:
        """The end, which no `atexit` of the lecture's and no thread delays."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # a reader that has gone away
                stream.flush()
        _END(0)

    def _write(self, name: str, content: bytes, how: int = os.O_TRUNC) -> None:
        """Write with what `os` was before the lecture."""
        open_, write, close, *_ = self._system
        file = open_(f"{self.folder}/{name}", os.O_WRONLY | os.O_CREAT | how, 0o600)
        while content:
            content = content[write(file, content) :]
        close(file)


def _prepare() -> None:
    """Make the process one that ends with its parent, hears Ctrl-C once, and has nobody at its stdin."""
    signal.signal(signal.SIGINT, _interrupted)  # a background job of a shell inherits it as ignored
    if hasattr(signal, "SIGTTOU"):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # it prints to a terminal that another group has
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _interrupted(_: int, __: FrameType | None) -> NoReturn:
    """Ctrl-C, once: a second one must not disturb what is left on account of the first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _listener(name: str) -> Any:
    """The one who listens, made by the function that `module:function` names; None for ""."""
    return _named(name)() if name else None


def _named(name: str) -> Any:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)
