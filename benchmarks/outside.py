"""The environment of the contestants: ours with edtrace beside it, made on first use where git ignores it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import venv
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

REPO = Path(__file__).resolve().parent.parent
PLACE = REPO / "build" / "bench"
EDTRACE = "edtrace==0.1.20"


class NoContestants(Exception):
    """The environment could not be made; the text says why."""


class TooLong(Exception):
    """A contestant did not finish in its time."""


def python() -> Path:
    """The interpreter that has what ours has, and edtrace. Raises `NoContestants` where pip cannot get it."""
    home = PLACE / "venv"
    found = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (home / ".complete").exists():
        venv.create(home, clear=True, with_pip=True)
        inside = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        (inside / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        pip = [str(found), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
        constraints = ["-c", str(REPO / "constraints.txt")]  # what edtrace asks for is there, or comes pinned
        done = subprocess.run([*pip, *constraints, EDTRACE], capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            raise NoContestants(f"{EDTRACE} cannot be installed into {home.relative_to(REPO)}: {last}")
        (home / ".complete").touch()
    return found


def environment(root: Path = REPO) -> dict[str, str]:
    """The variables of a contestant's process: our modules can be imported, and nothing is drawn on a screen.

    Torch gets one thread: where several share the cores with other work, their waiting is what is measured.
    """
    paths = os.pathsep.join(map(str, (root / "tools", root / "lectures", root)))
    return {**os.environ, "PYTHONPATH": paths, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    seconds: float
    memory: int  # bytes, of the largest process among it and those it waited for
    status: int
    complaint: str  # what it wrote to stderr


def call(command: list[str], folder: Path, timeout: float) -> Ended:
    """Run a contestant in `folder`. Raises `TooLong`; the caller judges a failure."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaint:
        start = perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaint,
            start_new_session=True,  # so that what it started ends with it
        )
        late = threading.Event()

        def too_long() -> None:
            late.set()
            _end(process.pid)

        timer = threading.Timer(timeout, too_long)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            _end(process.pid)
            process.wait()
            raise
        finally:
            timer.cancel()
        seconds = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)  # `wait4` has taken it, `Popen` cannot
        if late.is_set():
            raise TooLong(f"not finished after {timeout:.0f} s")
        complaint.seek(0)
        memory = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return Ended(seconds, memory, process.returncode, complaint.read())


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
