"""A run is a process, and a verdict comes from a run: the side of whoever asks for one.

In goes a lecture, out comes its record, made by `child` in a process of its own. Whatever the lecture does
to that process (logging, `sys.exit` replaced, `os._exit`, `execv`, switches of libraries, threads) stays
there. The child leaves its record, or what went wrong, in a folder that ends with the run; where it left
neither whole, there is no verdict. This side imports neither torch nor the lecture.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import hashlib
import json
import multiprocessing
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import IO, Any

from litbook.errors import LitbookError
from litbook.project import shown
from litbook.record import encoding, model

TOOLS = str(Path(__file__).resolve().parents[2])  # where litbook lies, installed or not
START = (  # without the working directory, where a file may be called `math.py`
    f"import sys; sys.path[:] = filter(None, sys.path); "
    f"{TOOLS!r} in sys.path or sys.path.insert(0, {TOOLS!r}); from litbook.run import child; child.main()"
)
PREFIX = "litbook-"  # of temporary folders, with `LOCK` in each
LOCK = "in-use"
AT, LATE, LEFT = "at", "late", "left"  # files: the section it is at; asserts in no record; what it leaves
PRELOADED: tuple[str, ...] = (
    "torch",
    "numpy",
    "einops",
    "jaxtyping",
    "matplotlib.pyplot",
)  # where lectures import them
WHOLE: dict[str, Any] = {
    "sections": [],
    "device": "auto",
    "timeout": None,
    "seed": 0,
    "slow": False,
    "words": "",
    "listener": "",
}  # as `run.run` has it
GRACE = 3.0  # seconds that a lecture which swallows Ctrl-C or the time-out gets before its process ends


End = Callable[[float | None], tuple[int, bool]]
"""Seconds that a process may take -> its exit status, and whether Ctrl-C came."""


class Reported(LitbookError):
    """What ended a run before there was a record, as its own process reports it."""

    def __init__(self, message: str, slug: str, exit_status: int) -> None:
        super().__init__(message)
        self.slug, self.exit_status = slug, exit_status


class Died(LitbookError):
    """The process of a run ended and left no whole record."""

    slug = "died"
    exit_status = 1


def record_of(
    path: Path,
    *,
    sections: Sequence[str] = (),
    device: str = "auto",
    timeout: float | None = None,
    seed: int = 0,
    slow: bool = False,
    words: str = "",
    listener: str = "",
) -> model.Record:
    """The record of the lecture in the file `path`, from a process that runs nothing else.

    The arguments are those of `run.run`. `listener` names, as `module:function`, what makes the one who
    listens in that process; it prints to this process's stdout.

    Raises what ended the run early as `Reported`, with exit status 130 for Ctrl-C; `Died` where the process
    left no whole record.
    """
    how = {"sections": [*sections], "device": device, "timeout": timeout, "seed": seed,
           "slow": slow, "words": words, "listener": listener}  # fmt: skip
    with _begun({"path": str(path.resolve()), **how}) as (asked, end):
        return judged(asked, *end(timeout))


def records_of(paths: Sequence[Path]) -> Generator[Callable[[], model.Record], None, None]:
    """For each lecture, in turn, what waits for its record and raises as `record_of` does.

    As many run side by side as there are cores, and torch gets its share of these: with all cores for each,
    two lectures at once take twice as long as one after the other.
    """
    cores = os.cpu_count() or 1
    at_once = max(1, min(cores, len(paths)))
    todo, running = deque(paths), deque[tuple[contextlib.ExitStack, Callable[[], model.Record]]]()
    try:
        while todo or running:
            while todo and len(running) < at_once:
                how, run = {**WHOLE, "path": str(todo.popleft().resolve())}, contextlib.ExitStack()
                asked, end = run.enter_context(_begun(how, cores // at_once))
                running.append((run, partial(lambda asked, end: judged(asked, *end(None)), asked, end)))
            with running[0][0]:
                yield running.popleft()[1]
    finally:
        for run, _ in running:
            run.close()


def answer(path: Path, function: str, /, **given: Any) -> Any:
    """What `module:function`, called with `given` in a process of its own, returns as JSON data.

    It runs the lecture in the file `path`, and is first given who owns that process. Raises as `record_of`.
    """
    with _begun({"path": str(path.resolve()), "function": function, "given": given}) as (asked, end):
        return json.loads(_content(asked, "answer", *end(None)))


class Warm:
    """The same for an author who waits: a process is a fork of one with the large libraries that they import.

    It is the standard library's fork server, which begins with what the files in `lectures` may import. A
    lecture finds the world as in a fresh process.
    """

    def __init__(self, lectures: Path) -> None:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [TOOLS, os.environ.get("PYTHONPATH")]))
        os.environ.setdefault("MPLBACKEND", "Agg")  # read when it is imported
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // 2)))  # two run at once
        self.context = multiprocessing.get_context("forkserver")
        files = (it for it in lectures.rglob("*.py") if ".venv" not in it.parts)
        texts = "\n".join(it.read_text(encoding="utf-8", errors="replace") for it in files)
        imported = set(re.findall(r"\b(?:import|from)\s+(\w+)", texts))
        heavy = [name for name in PRELOADED if name.partition(".")[0] in imported]
        self.context.set_forkserver_preload(["litbook.run.child", *heavy])
        forkserver.ensure_running()
        self.pids: set[int] = set()  # of the processes that run

    def record_of(self, path: Path, timeout: float, sections: Sequence[str] = ()) -> model.Record:
        """The record of the lecture in the file `path`; raises as the function above does."""
        asked = {**WHOLE, "path": str(path.resolve()), "timeout": timeout, "sections": [*sections]}
        with private_folder() as folder:
            asked |= {"folder": str(folder), "key": secrets.token_hex()}
            process = self.context.Process(target=_work, args=(asked,))
            process.start()
            pid = process.pid or 0
            self.pids.add(pid)
            process.join(timeout + 4 * GRACE)
            _end_group(pid)
            process.join()
            self.pids.discard(pid)
            return judged(asked, process.exitcode or 0)

    def stop(self) -> None:
        """End what runs now, and whatever it has started."""
        for pid in [*self.pids]:
            _end_group(pid)


def _end_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # it may not lead its group yet
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def _work(asked: dict[str, Any]) -> None:
    """In the fork: what `child` does with what it is asked."""
    from litbook.run import child

    os.setpgid(0, 0)
    if not asked["sections"]:
        os.nice(10)  # a reader waits for the other
    os.environ["TMPDIR"] = tempfile.tempdir = asked["folder"]
    child.work(asked)


@contextlib.contextmanager
def _begun(asked: dict[str, Any], threads: int = 0) -> Iterator[tuple[dict[str, Any], End]]:
    """Start a process that does what is asked, in a folder of its own; it ends with the block at the latest.

    `threads` is how many torch may have, where nobody has said it in the environment; 0: as it likes.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONOPTIMIZE"}
    if threads:
        environment.setdefault("OMP_NUM_THREADS", str(threads))
    stdout = _stdout()
    if stdout == subprocess.PIPE:
        environment["PYTHONIOENCODING"] = "utf-8"
    with private_folder() as folder:
        asked = {**asked, "folder": str(folder), "key": secrets.token_hex()}
        process = subprocess.Popen(
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=None if sys.stderr is not None else subprocess.DEVNULL,
            env={**environment, "TMPDIR": str(folder)},
            process_group=0,  # Ctrl-C comes here, and once; and what the lecture has started ends with it
        )
        with process, _passed_on(process.stdout):
            try:
                assert process.stdin is not None
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(asked).encode())
                    process.stdin.close()
                yield asked, partial(_ended, process, folder)
            finally:
                _kill(process)


def _ended(process: subprocess.Popen[bytes], folder: Path, timeout: float | None) -> tuple[int, bool]:
    """Wait for the end of the process. Its exit status, and whether Ctrl-C came."""
    interrupted = False
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(None if timeout is None else timeout + 4 * GRACE)
    except KeyboardInterrupt:
        interrupted = True
        _interrupt(process, folder)
    _kill(process)
    return process.wait(), interrupted


def _interrupt(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Hand Ctrl-C on, once the process knows what to do with it; a second one ends it at once."""
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
        if (folder / AT).exists():
            process.send_signal(signal.SIGINT)
            process.wait(2 * GRACE)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process, and whatever it has started."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _stdout() -> int:
    """What the process has for its stdout: ours, or a pipe where ours is no file, as in a test."""
    if sys.stdout is None:
        return subprocess.DEVNULL
    try:
        sys.stdout.flush()
        return sys.stdout.fileno()
    except (OSError, ValueError):
        return subprocess.PIPE


@contextlib.contextmanager
def _passed_on(stream: IO[bytes] | None) -> Iterator[None]:
    """What comes out of the pipe goes to our stdout."""

    def copy() -> None:
        for line in stream or ():
            sys.stdout.write(line.decode("utf-8", "replace"))

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(GRACE)


# ---------------------------------------------------------------------------- what it left


def judged(asked: dict[str, Any], status: int, interrupted: bool = False) -> model.Record:
    """The record that the process left; raises what it reported instead, or `Died`."""
    content = _content(asked, "record", status, interrupted)
    record = encoding.loads(content, f"what the process of {shown(Path(asked['path']))} left")
    try:
        return _with_late(record, Path(asked["folder"]))
    except (ValueError, SyntaxError, TypeError):  # its last lines are not whole
        raise _died(asked, status) from None


def _content(asked: dict[str, Any], wanted: str, status: int, interrupted: bool) -> str:
    """What the process left, of the kind that is wanted."""
    folder = Path(asked["folder"])
    kind, content = _left(folder, asked["key"])
    if kind == wanted and not interrupted:
        return content
    if kind == "trouble":
        said = json.loads(content)
        raise Reported(said["message"], said["slug"], said["exit_status"])
    if interrupted:
        raise Reported(f"interrupted; it was {_where(folder)}", "interrupted", 130)
    raise _died(asked, status)


def _died(asked: dict[str, Any], status: int) -> Died:
    path, folder = Path(asked["path"]), Path(asked["folder"])
    return Died(
        f"{shown(path)}: the process {_end(status)}, {_where(folder)}; no verdict without a whole record\n"
        "    a lecture ends by coming to its end: let nothing in it end or replace its process"
    )


def _with_late(record: model.Record, folder: Path) -> model.Record:
    """The record with the asserts of forked children, and of what ran after it was made."""
    try:
        lines = (folder / LATE).read_text(encoding="utf-8").splitlines()
    except OSError:
        return record
    asserts, errors = dict.fromkeys(record.asserts), dict[str, dict[model.Error, None]]()
    for kind, *said in map(ast.literal_eval, dict.fromkeys(lines)):
        if kind == "ran":
            asserts[model.Assert(*said)] = None
        else:
            errors.setdefault(said[0], {})[model.Error(*said[1:])] = None
    sections = (replace(it, errors=(*it.errors, *errors.get(it.key, ()))) for it in record.sections)
    return replace(record, sections=tuple(sections), asserts=tuple(asserts))


def _left(folder: Path, key: str) -> tuple[str, str]:
    """What the process left, and its kind; "" where that is not whole or not the process's own."""
    try:
        head, _, content = encoding.content(folder / LEFT).partition(b"\n")
        said = json.loads(head)
        if said["key"] == key and said["sha256"] == hashlib.sha256(content).hexdigest():
            return said["kind"], content.decode()
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return "", ""


def _where(folder: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        if section := encoding.content(folder / AT).decode():
            return f"in the section {section[:200]}"
    return "before its first section"


def _end(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"was killed by signal {-status}"


# ---------------------------------------------------------------------------- folders of our own


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A temporary folder, gone afterwards. Those of processes that were killed go first."""
    _sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (folder / "new").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "new").rename(folder / LOCK)  # seen only when it is held
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(place: Path) -> None:
    """Remove the folders in `place` whose process holds their lock no more."""
    with contextlib.suppress(OSError):
        for lock in place.glob(f"{PREFIX}*/{LOCK}"):
            with contextlib.suppress(OSError), lock.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
