"""Asking a copy of this process: a fork that may do anything to itself, says what came of it, and is gone.

In goes what to do there, out come the lines that it said as data. It knows no lecture. Threads do not survive
a fork, so torch runs on one meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_END, _FORK = os._exit, os.fork if hasattr(os, "fork") else None  # what they are also while a lecture runs


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch. A pool of threads is not there in a forked child, which would wait for it."""
    if (torch := sys.modules.get("torch")) is None:
        # A lecture that imports it has it read the environment; one that does not need not wait for it.
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ["OMP_NUM_THREADS"]
            else:
                os.environ["OMP_NUM_THREADS"] = before
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def asked(work: Callable[[], Iterable[Any]], patience: float, memory: int | None = None) -> list[Any]:
    """What `work` yields in a fork of this process; less where it dies, or takes `patience` seconds for one.

    `memory` is how many bytes it may have beyond what this process has.
    """
    if _FORK is None:
        raise OSError("this needs forked processes, and this system has none")
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
    written, until = b"", time.monotonic() + patience
    try:
        # Everything that it writes, as long as it goes on writing.
        while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
            more = os.read(reading, 1 << 16)
            if not more:
                break
            written, until = written + more, time.monotonic() + patience
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return [json.loads(line) for line in written.decode().splitlines(keepends=True) if line.endswith("\n")]
