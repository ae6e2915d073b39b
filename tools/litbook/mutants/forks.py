"""Asking a copy of this process: a fork that may do anything to itself, says what came of it, and is gone.

In goes what to do there, out come the lines that it said as data. It knows no lecture. Threads do not survive
a fork, so torch runs on one meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from litbook.run.restore import set_environment

_END, _FORK = os._exit, os.fork if hasattr(os, "fork") else None  # what they are also while a lecture runs


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch. A pool of threads is not there in a forked child, which would wait for it."""
    if (torch := sys.modules.get("torch")) is None:
        # A lecture that imports it has it read the environment; one that does not need not wait for it.
        before = dict(os.environ)
        os.environ["OMP_NUM_THREADS"] = "1"
        try:
            yield
        finally:
            set_environment(before)
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def run_in_fork(work: Callable[[], Iterable[Any]], patience: float, memory: int | None = None) -> list[Any]:
    """What `work` yields in a fork of this process; less where it dies, or takes `patience` seconds for one.

    `memory` is how many bytes it may have beyond what this process has.
    """
    [(_, answers)] = run_in_forks([work], patience, memory)
    return answers


def run_in_forks(
    works: Iterable[Callable[[], Iterable[Any]]],
    patience: float,
    memory: int | None = None,
    at_once: int = 1,
) -> Iterator[tuple[int, list[Any]]]:
    """The same of several, `at_once` forks side by side: the number of each and what it said, as they end.

    The next of `works` is asked for when a fork has ended.
    """
    if _FORK is None:
        raise OSError("this needs forked processes, and this system has none")
    waiting = enumerate(works)
    running: dict[int, _Fork] = {}
    try:
        while True:
            for number, work in itertools.islice(waiting, at_once - len(running)):
                fork = _Fork(number, *_start_fork(work, memory), time.monotonic() + patience)
                running[fork.reading] = fork
            if not running:
                return
            until = min(fork.until for fork in running.values())
            ready, _, _ = select.select([*running], [], [], max(0.0, until - time.monotonic()))
            for fork in [*running.values()]:
                more = os.read(fork.reading, 1 << 16) if fork.reading in ready else b""
                if more:
                    fork.written, fork.until = fork.written + more, time.monotonic() + patience
                elif fork.reading in ready or fork.until <= time.monotonic():
                    del running[fork.reading]
                    fork.end()
                    yield fork.number, fork.answers
    finally:
        for fork in running.values():
            fork.end()


@dataclass
class _Fork:
    """One that runs: which it is, what it has written, and until when it may go on without a word."""

    number: int
    process: int
    reading: int
    until: float
    written: bytes = b""

    @property
    def answers(self) -> list[Any]:
        lines = self.written.decode().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def end(self) -> None:
        os.close(self.reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def _start_fork(work: Callable[[], Iterable[Any]], memory: int | None) -> tuple[int, int]:
    """The process of a fork that does the work, and where what it says can be read."""
    assert _FORK is not None
    reading, writing = os.pipe()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks beside threads; torch has one, and it waits
        child = _FORK()
    if not child:
        # All of the child's life: what it holds of its parent must not be tidied up twice.
        try:
            for name in ("SIGALRM", "SIGINT"):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            if memory is not None:
                import resource

                # Of what the process has as its own: a mapped file of any size is not counted.
                with contextlib.suppress(OSError, ValueError):  # where there is no /proc nothing is limited
                    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  a lecture may replace pathlib
                        used = int(file.read().split()[5]) * resource.getpagesize()
                    _, most = resource.getrlimit(resource.RLIMIT_DATA)
                    resource.setrlimit(resource.RLIMIT_DATA, (used + memory, most))
            for answer in work():
                os.write(writing, f"{json.dumps(answer)}\n".encode())
        finally:
            _END(0)
    os.close(writing)
    return child, reading
