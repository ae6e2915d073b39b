"""A process that has imported the libraries and run nothing: each lecture runs in a fork of it.

So a run starts at once, finds the world as a fresh process would, and may do what it likes: leak, change
everything, end the process. `preview` starts this one and talks to it over two pipes, in pickles that each
follow their length.

    in      ("read", path)                   it may have to run soon; nothing is done while something runs
            ("run", number, path, timeout)   whatever still runs is killed: the newer text counts
    out     ("at", number, section)          the section that begins
            ("record", number, pickle)       the record, which this process passes on unread
            ("trouble", number, text)        instead, where there is none
            ("remarks", number, texts)       what else is wrong: numbers in prose that nothing backs

It has one thread, so it may fork. After a run it imports what the lecture imported late, for the next one.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import select
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from litbook.errors import LitbookError
from litbook.project import shown
from litbook.run import run
from litbook.run.messages import Inbox, end, packed, send
from litbook.text import unbacked

GRACE = 4.0  # seconds after the time-out until a lecture that does not stop is killed


class _Run:
    """A lecture that runs in a child process."""

    def __init__(self, number: int, path: Path, timeout: float | None) -> None:
        self.number, self.path, self.timeout = number, path, timeout
        self.at = ""
        self.answered = False
        self.inbox = Inbox()
        self.folder = tempfile.TemporaryDirectory(prefix="litbook-preview-", ignore_cleanup_errors=True)
        self.out, into = os.pipe()
        gc.freeze()  # else the child walks, and so copies, every object of torch whenever it collects
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.out)
            _child(into, number, path, timeout, self.folder.name)
        os.close(into)

    def end(self) -> int:
        """Kill it and whatever it started; its exit status."""
        os.close(self.out)
        status = end(self.pid)
        self.folder.cleanup()
        return status


def main() -> None:
    """Serve the pipes until the other side closes them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the preview, which then closes the pipe
    answers = os.dup(1)
    os.dup2(2, 1)  # what native code of a lecture prints is no message
    inbox, late = Inbox(), set[str]()
    running: _Run | None = None
    while True:
        sources = [0] if running is None else [0, running.out]
        ready, _, _ = select.select(sources, [], [])
        if running is not None and running.out in ready:
            running = _relay(running, answers, late)
        if running is None and late:
            _import(late)
        if 0 not in ready:
            continue
        arrived = os.read(0, 2**16)
        for message in inbox.take(arrived):
            match message:
                case ("read", Path() as path) if running is None:
                    _prepare(path)
                case ("run", int(number), Path() as path, timeout):
                    if running is not None:
                        running.end()
                    _prepare(path)
                    running = _Run(number, path, timeout)
        if not arrived:
            if running is not None:
                running.end()
            return


def _relay(running: _Run, answers: int, late: set[str]) -> _Run | None:
    """Pass on what the child says; None when it has nothing more to say."""
    arrived = os.read(running.out, 2**20)
    for message in running.inbox.take(arrived):
        match message:
            case ("late", names):
                late |= set(names)
                continue
            case ("at", _, section):
                running.at = section
            case ("record" | "trouble", *_):
                running.answered = True
        send(answers, packed(message))
    if arrived:
        return running
    status = running.end()
    if not running.answered:
        send(answers, packed(("trouble", running.number, _last_words(running, status))))
    return None


def _last_words(running: _Run, status: int) -> str:
    """What to say of a child that ended without a word."""
    how = (
        f"was killed by signal {os.WTERMSIG(status)} ({signal.Signals(os.WTERMSIG(status)).name})"
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL
        else f"ended with exit status {os.WEXITSTATUS(status)}"
    )
    where = f"in the section {running.at}" if running.at else "before its first section"
    return f"{shown(running.path)}: the process {how}, {where}\n    nothing of this run can be shown"


def _prepare(path: Path) -> None:
    """Import the large libraries that the lecture wants, and read its text: a fork finds what was read."""
    with contextlib.suppress(LitbookError, OSError):
        lecture = run.usable(path)
        run.import_libraries(lecture.tree, path.parent, ())


def _import(names: set[str]) -> None:
    """Import what a lecture imported while it ran; none of it is the project's."""
    for name in sorted(names):
        with contextlib.suppress(BaseException):
            importlib.import_module(name)
    names.clear()


# ---------------------------------------------------------------------------- in the child


class _Progress:
    """Listens to a run for the names of its sections alone."""

    def __init__(self, to: int, number: int) -> None:
        self.to, self.number = to, number
        self.functions: list[Any] = []

    def begin(self, lecture: Any, environment: Any) -> None:
        del environment
        self.functions = lecture.functions

    def section(self, function: int) -> None:
        """A section begins."""
        send(self.to, packed(("at", self.number, self.functions[function].name)))

    def __getattr__(self, event: str) -> Any:
        return lambda *_: None


def _child(to: int, number: int, path: Path, timeout: float | None, folder: str) -> None:
    """Run the lecture and say what came of it. Never returns."""
    try:
        os.setpgid(0, 0)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        before = set(sys.modules)
        try:
            record = run.run(path, timeout=timeout, listener=_Progress(to, number))
        except LitbookError as error:
            send(to, packed(("trouble", number, str(error))))
        else:
            send(to, packed(("record", number, pickle.dumps(record, protocol=5))))
            send(to, packed(("late", _installed(set(sys.modules) - before))))
            source = record.sources[0]
            remarks = [str(it) for it in unbacked.in_text(source.text, source.path)]
            send(to, packed(("remarks", number, remarks)))
    except BaseException as error:
        send(to, packed(("trouble", number, f"{path.name}: {type(error).__name__}: {error}")))
    finally:
        os._exit(0)


def _installed(names: set[str]) -> list[str]:
    """Those of the imported modules that are Python's own or installed."""
    files = {name: getattr(sys.modules[name], "__dict__", {}).get("__file__") for name in names}
    roots = (sys.prefix, sys.base_prefix)
    return sorted(name for name, file in files.items() if isinstance(file, str) and file.startswith(roots))


if __name__ == "__main__":
    main()
