"""Sections side by side: forks of the process that has run the module, each running section after section.

The run itself goes through the lecture in its order; here it finds what a worker has made of a section ahead
of its turn. Nobody has to believe a worker: `reuse` takes an outcome only where its key is the one that it
finds itself, and runs the section where there is none. So a worker may fail, or die, in any way.

    tasks    one pipe that all workers read: the numbers of functions, four bytes each, in reading order
    answers  a pipe for each worker: ("at", function), ("outcome", function, outcome), ("reached", line)

A worker that has run a section which left the world changed goes home: nothing may run in such a world. Why
no pool of a library: those have threads, which a lecture would see, and no answer to "which line, when
Ctrl-C came".

A process may be forked only while nothing in it computes in threads of its own: a fork has the locks of
these threads, and not the threads. `threads` tells.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from litbook.messages import Inbox, end, packed, send

MOST = 8  # workers: each may hold what its section holds, and a machine's memory is one
TASK = struct.Struct("<i")
PR_SET_PDEATHSIG = 1  # prctl(2)
LAST_WORDS = 1.0  # seconds that a worker has to say which line it had reached
_END = os._exit  # what really ends a process, also while a lecture runs


def cores() -> int:
    """How many workers this machine has room for; 1 where processes cannot be forked safely."""
    return min(MOST, len(os.sched_getaffinity(0))) if sys.platform == "linux" else 1


def threads() -> int:
    """How many threads this process has, those of native code included; 0 where nobody can tell."""
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    except OSError:
        return 0


@dataclass(frozen=True)
class Job:
    """What a fork does: all of it is called there."""

    prepare: Callable[[Path], None]  # gets a working directory of its own
    work: Callable[[int], tuple[Any, bool]]  # task -> its outcome, and whether the world is as it was
    line: Callable[[BaseException], int | None]  # the line of the lecture that an exception came from


class Worker:
    """One fork, as the run sees it."""

    def __init__(self, pid: int, answers: int) -> None:
        self.pid, self.answers = pid, answers
        self.inbox = Inbox()
        self.at: int | None = None  # the function that it runs


class Workers:
    """`count` forks that work on `tasks`, which are numbers of functions."""

    def __init__(self, tasks: Sequence[int], count: int, job: Job) -> None:
        self.open = set(tasks)  # whose outcome is not here yet
        self.outcomes: dict[int, Any] = {}
        self.folder = tempfile.TemporaryDirectory(prefix="litbook-", ignore_cleanup_errors=True)
        self.team: list[Worker] = []
        here = Path.cwd()
        source, into = os.pipe()
        send(into, b"".join(map(TASK.pack, tasks)))
        os.close(into)
        try:
            for number in range(count):
                folder = Path(self.folder.name, str(number))
                shutil.copytree(here, folder, symlinks=True)
                self.team.append(_forked(source, folder, job))
        except OSError:  # no room for another process, or for its files: fewer will do, or none
            pass
        finally:
            os.close(source)

    # -- what the run asks

    def outcome(self, task: int) -> Any:
        """What a worker made of the task, as soon as it is done; None where none will."""
        self._until(lambda: task not in self.open, task)
        return self.outcomes.pop(task, None)

    def rest(self) -> None:
        """Wait until all are done and gone: what comes now is to have the machine for itself."""
        self._until(lambda: not self.team, None)

    def close(self) -> None:
        """Kill whoever still works."""
        for worker in list(self.team):
            self._dismiss(worker)
        self.folder.cleanup()

    # -- waiting

    def _until(self, done: Callable[[], bool], task: int | None) -> None:
        try:
            while self.team and not done():
                self._hear(None)
        except BaseException as error:  # Ctrl-C, or the time is up
            error.reached = self._ask_where(task)  # type: ignore[attr-defined]
            raise

    def _hear(self, seconds: float | None) -> list[int]:
        """Read what has arrived, waiting for something if need be; the lines that were reached."""
        lines = []
        ready, _, _ = select.select([worker.answers for worker in self.team], [], [], seconds)
        for worker in [it for it in self.team if it.answers in ready]:
            arrived = os.read(worker.answers, 2**20)
            for message in worker.inbox.take(arrived):
                match message:
                    case ("at", task):
                        worker.at = task
                    case ("outcome", task, outcome):
                        self.outcomes[task] = outcome
                        self.open.discard(task)
                    case ("reached", int(line)):
                        lines.append(line)
            if not arrived:
                self._dismiss(worker)
        return lines

    def _dismiss(self, worker: Worker) -> None:
        self.team.remove(worker)
        os.close(worker.answers)
        end(worker.pid)
        if worker.at is not None:
            self.open.discard(worker.at)  # it died over this one
        if not self.team:
            self.open.clear()

    def _ask_where(self, task: int | None) -> int | None:
        """The line that the worker on `task` has reached, else the first one; stops them all."""
        asked = [w for w in self.team if w.at == task and w.at is not None] or sorted(
            (w for w in self.team if w.at in self.open), key=lambda w: w.at or 0
        )[:1]
        for worker in asked:
            with contextlib.suppress(OSError):
                os.kill(worker.pid, signal.SIGINT)
        lines: list[int] = []
        until = time.monotonic() + LAST_WORDS
        while asked and not lines and self.team and (left := until - time.monotonic()) > 0:
            lines = self._hear(left)
        return lines[0] if lines else None


def _forked(tasks: int, folder: Path, job: Job) -> Worker:
    """A fork at work."""
    answers, out = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # "use of fork() may lead to deadlocks"
            pid = os.fork()
    except OSError:
        os.close(answers)
        os.close(out)
        raise
    if pid == 0:
        _work(tasks, out, folder, job)
    os.close(out)
    return Worker(pid, answers)


def _work(tasks: int, out: int, folder: Path, job: Job) -> NoReturn:
    """In a fork: work until there is nothing left to do; the process ends here."""
    try:
        os.setpgid(0, 0)  # Ctrl-C is for the run, which asks for the line and then kills
        _end_with_parent()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        job.prepare(folder)
        clean = True
        while clean and (task := os.read(tasks, TASK.size)):
            (number,) = TASK.unpack(task)
            send(out, packed(("at", number)))
            outcome, clean = job.work(number)
            send(out, packed(("outcome", number, outcome)))
    except KeyboardInterrupt as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if (line := job.line(error)) is not None:
            send(out, packed(("reached", line)))
    finally:
        _END(0)


def _end_with_parent() -> None:
    """Let this process be killed when the run is: nobody would hear of an endless section any more."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
