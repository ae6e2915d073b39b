"""What arrives at the process's own stdout and stderr past Python: of C libraries, of children.

While a lecture runs, file descriptors 1 and 2 are files in the run's folder. What arrives there is read when
a child has ended, before Python prints, and when a section has ended; of stdout it is printed text of the
section, of stderr it goes on to the terminal and leaves a remark. Python's own streams keep the descriptors
from before. What nobody has read when the process ends, whoever started it passes on.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from litbook.probe.recorder import Recorder
from litbook.record.limits import OUTPUT

STREAMS = {1: "stdout", 2: "stderr"}
HIGH = 1000  # numbers from which on our own descriptors lie, away from those that a lecture closes
MOST = 4 * (OUTPUT + 1)  # bytes read at once: one more character than a section keeps, of four bytes each
REST = 2**20  # bytes passed on at the end

_write, _getpid, _stat = os.write, os.getpid, os.stat  # what they are also while a lecture runs


class Descriptors:
    """Both descriptors of a process that runs a lecture, as files in `folder`."""

    def __init__(self, folder: str) -> None:
        self.folder, self.process = folder, _getpid()
        self.before, self.seen = dict[int, int](), {1: 0, 2: 0}
        high = min(HIGH, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - len(STREAMS))
        for number, name in STREAMS.items():
            stream: TextIO | None = getattr(sys, name)
            if stream is not None:
                stream.flush()
            try:
                self.before[number] = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, high)
            except OSError:  # whoever started this process has closed it
                nowhere = os.open(os.devnull, os.O_WRONLY)
                self.before[number] = fcntl.fcntl(nowhere, fcntl.F_DUPFD_CLOEXEC, high)
                os.close(nowhere)
            file = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o600)
            os.dup2(file, number)
            os.set_inheritable(number, True)
            if file != number:
                os.close(file)
            if stream is not None:
                python = os.fdopen(
                    self.before[number],
                    "w",
                    encoding=stream.encoding,
                    errors=stream.errors,
                    buffering=1 if getattr(stream, "line_buffering", False) else -1,
                    closefd=False,
                )
                setattr(sys, name, python)
                setattr(sys, f"__{name}__", python)

    def attach(self, recorder: Recorder) -> None:
        """From now on what a call that waits for a child or writes leaves there is read when it is over."""

        def reading(call: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(call)
            def called(*given: Any, **named: Any) -> Any:
                try:
                    return call(*given, **named)
                finally:
                    self.read(recorder)

            return called

        def write(number: int, data: bytes) -> int:
            written = _write(number, data)
            if number in STREAMS:
                self.read(recorder)
            return written

        for name in ("system", "waitpid"):
            if hasattr(os, name):
                setattr(os, name, reading(getattr(os, name)))
        os.write = functools.wraps(_write)(write)  # type: ignore[assignment]
        subprocess.Popen.wait = reading(subprocess.Popen.wait)  # type: ignore[method-assign]

    def read(self, recorder: Recorder) -> None:
        """Hand what has arrived to the recorder."""
        for number in STREAMS:
            if content := self._new(number):
                text = content.decode("utf-8", "replace")
                if number == 1:
                    recorder.output(text)
                else:
                    recorder.output(text, "stderr")
                    self._pass_on(number, content)

    def end_section(self, recorder: Recorder) -> None:
        """A section ends: what C code still holds back belongs to it."""
        with contextlib.suppress(OSError, AttributeError, TypeError):  # no such library, or not this one
            ctypes.CDLL(None).fflush(None)
        self.read(recorder)

    def skip(self) -> None:
        """What has arrived is of no section: it goes to the terminal."""
        for number in STREAMS:
            self._pass_on(number, self._new(number))

    def _new(self, number: int) -> bytes:
        if _getpid() != self.process:
            return b""
        name = f"{self.folder}/{STREAMS[number]}"
        with contextlib.suppress(OSError):
            end, seen = _stat(name).st_size, self.seen[number]
            if end > seen:
                self.seen[number] = end
                Path(f"{name}.seen").write_text(str(end), encoding="ascii")
                with open(name, "rb") as file:  # noqa: PTH123  a lecture may replace pathlib
                    file.seek(seen)
                    return file.read(min(end - seen, MOST))
        return b""

    def _pass_on(self, number: int, content: bytes) -> None:
        with contextlib.suppress(OSError):  # nobody reads it
            while content:
                content = content[_write(self.before[number], content) :]


def pass_on_rest(folder: Path) -> None:
    """In the process that started it: what it left unread goes to our own streams."""
    for name in STREAMS.values():
        stream: TextIO | None = getattr(sys, name)
        with contextlib.suppress(OSError, ValueError):
            seen = folder / f"{name}.seen"
            start = int(seen.read_text(encoding="ascii")) if seen.exists() else 0
            with (folder / name).open("rb") as file:
                file.seek(start)
                if (rest := file.read(REST)) and stream is not None:
                    stream.write(rest.decode("utf-8", "replace"))
                    stream.flush()
