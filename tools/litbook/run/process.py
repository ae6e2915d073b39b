"""A run is a process, and a verdict comes from a run: the side of whoever asks for one.

In goes a lecture, out comes its record, made by `child` in a process of its own. Whatever the lecture does
to that process (logging, `sys.exit` replaced, `os._exit`, `execv`, switches of libraries, threads) stays
there. The child leaves its record, or what went wrong, in a folder that ends with the run; where it left
neither whole (see `desk`), there is no verdict. This side imports neither torch nor the lecture.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
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
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from litbook.errors import LitbookError
from litbook.files import NotWritten
from litbook.project import display_path
from litbook.record import encoding, model, ranks, recordings
from litbook.record.device_kinds import needs
from litbook.run import descriptors, mailbox
from litbook.run.ranks import launcher_env

TOOLS = str(Path(__file__).resolve().parents[2])  # where litbook lies, installed or not
START = (  # without the working directory, where a file may be called `math.py`
    f"import sys; sys.path[:] = filter(None, sys.path); "
    f"{TOOLS!r} in sys.path or sys.path.insert(0, {TOOLS!r}); from litbook.run import child; child.main()"
)
PREFIX = "litbook-"  # of temporary folders, with `LOCK` in each
LOCK = "in-use"
# For an author, where lectures import them.
PRELOADED: tuple[str, ...] = (*model.LIBRARIES, "matplotlib.pyplot")
WHOLE: dict[str, Any] = {  # a run of all of a lecture, as `run.run` has it
    "sections": [], "device": "auto", "timeout": None, "seed": 0, "slow": False, "words": "", "ranks": 0,
    "listener": "", "terminal": "",
}  # fmt: skip
AT_ONCE, MOST_WAITING = 2, 4  # processes that wait to run one lecture, and any: each has its text in memory
LAUNCH = 300.0  # seconds that the ranks of a section may take, where nobody says how long a run may
LATER = 2.0  # seconds after a run, when a browser shows its page, the next ones begin to wait
GRACE = 3.0  # seconds that a lecture which swallows Ctrl-C or the time-out gets before its process ends

_running = set[int]()  # processes that run lectures for this one, in whichever thread

End = Callable[[float | None], tuple[int, bool]]
"""Seconds that a process may take -> its exit status, and whether Ctrl-C came."""


class ReportedError(LitbookError):
    """What ended a run before there was a record, as its own process reports it."""

    def __init__(self, message: str, slug: str, exit_status: int) -> None:
        super().__init__(message)
        self.slug, self.exit_status = slug, exit_status


class NotFirstRank(Exception):
    """This process is a rank whose part of the run is done; what comes of it, rank 0 says."""


class ProcessDied(LitbookError):
    """The process of a run ended and left no whole record."""

    slug = "died"
    exit_status = 1


def record_of(  # noqa: PLR0913  (all are of one run)
    path: Path,
    *,
    sections: Sequence[str] = (),
    device: str = "auto",
    timeout: float | None = None,
    seed: int = 0,
    slow: bool = False,
    words: str = "",
    listener: str = "",
    terminal: str = "",
) -> model.Record:
    """The record of the lecture in the file `path`, from a process that runs nothing else.

    The arguments are those of `run.run`. `listener` names, as `module:function`, what makes the one who
    listens in that process; it prints to this process's stdout. At the `terminal`, a path, `breakpoint()`
    stops.

    Raises what ended the run early as `ReportedError`, with exit status 130 for Ctrl-C; `ProcessDied` where
    the process left no whole record.
    """
    how = {"sections": [*sections], "device": device, "timeout": timeout, "seed": seed,
           "slow": slow, "words": words, "ranks": 0, "listener": listener, "terminal": terminal}  # fmt: skip
    launches = None
    if launcher_env.size():  # first what all ranks do together
        again = {**how, "path": str(path.resolve()), "timeout": timeout or LAUNCH, "listener": ""}
        launches = answer(path, "litbook.run.ranks.launch:run_as_rank", asked=again)
        if launcher_env.rank():
            raise NotFirstRank
    with _start_process({"path": str(path.resolve()), **how}) as (asked, end):
        record = _record(asked, *end(timeout))
    return _with_ranks(record, path, how, launches)


def records_of(paths: Sequence[Path]) -> Generator[Callable[[], model.Record], None, None]:
    """For each lecture, in turn, what waits for its record and raises as `record_of` does.

    As many run side by side as there are cores, and torch gets its share of these: with all cores for each,
    two lectures at once take twice as long as one after the other. Which took longest when it was recorded
    begins first, so that no core waits for it at the end.
    """
    cores = os.cpu_count() or 1
    at_once = max(1, min(cores, len(paths)))

    def run(path: Path) -> model.Record:
        with _start_process({**WHOLE, "path": str(path.resolve())}, cores // at_once) as (asked, end):
            record = _record(asked, *end(None))
        return _with_ranks(record, path, WHOLE)

    pool = ThreadPoolExecutor(at_once)
    waiting = {
        path: pool.submit(run, path) for path in sorted(paths, key=recordings.recorded_seconds, reverse=True)
    }
    try:
        for path in paths:
            yield waiting[path].result
    finally:  # whoever asked is gone: Ctrl-C, or an error between two lectures
        pool.shutdown(wait=False, cancel_futures=True)
        while not all(one.done() for one in waiting.values()):
            for pid in list(_running):
                _kill(pid)
            time.sleep(0.02)


def answer(path: Path, function: str, /, **given: Any) -> Any:
    """What `module:function`, called with `given` in a process of its own, returns as JSON data.

    It runs the lecture in the file `path`, and is first given who owns that process. Raises as `record_of`.
    """
    with _start_process({"path": str(path.resolve()), "function": function, "given": given}) as (asked, end):
        return json.loads(_content(asked, "answer", *end(None)))


class ForkServerRunner:
    """The same for an author who waits: a process is a fork of one with the large libraries that they import.

    It is the standard library's fork server, which begins with what the files in `lectures` may import. A
    lecture finds the world as in a fresh process. Each runs once; what somebody waits for runs in one that
    has read the lecture before it is asked, so that it reads again only what was saved since.
    """

    def __init__(self, lectures: Path) -> None:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [TOOLS, os.environ.get("PYTHONPATH")]))
        os.environ.setdefault("MPLBACKEND", "Agg")  # read when it is imported
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // 2)))  # two run at once
        self.context, self.folder = multiprocessing.get_context("forkserver"), contextlib.ExitStack()
        # Its sockets lie where also those of a process that was killed are swept; nothing else says where.
        config: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
        config["tempdir"] = str(self.folder.enter_context(private_folder()))
        files = (file for file in lectures.rglob("*.py") if ".venv" not in file.parts)
        texts = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
        imported = set(re.findall(r"\b(?:import|from)\s+(\w+)", texts))
        heavy = [name for name in PRELOADED if name.partition(".")[0] in imported]
        self.context.set_forkserver_preload(["litbook.run.child", *heavy])
        forkserver.ensure_running()
        self.pids: set[int] = set()  # of the processes that run
        self.waiting: list[_WaitingProcess] = []  # those that will, the one that waits longest first
        self.in_parts: set[Path] = set()  # lectures of which somebody waits for a part, and not for the whole
        self.lock, self.ended = threading.Lock(), False
        atexit.register(self.end)  # before `multiprocessing`, which would wait for them, too

    def record_of(self, path: Path, timeout: float, sections: Sequence[str] = ()) -> model.Record:
        """The record of the lecture in the file `path`; raises as the function above does."""
        path = path.resolve()
        asked = {**WHOLE, "path": str(path), "timeout": timeout, "sections": [*sections]}
        with private_folder() as folder:
            asked |= {"folder": str(folder), "key": secrets.token_hex()}
            process = self._ask(path, asked)
            pid = process.pid or 0
            self.pids.add(pid)
            process.join(timeout + mailbox.grace(4 * GRACE))
            _kill(pid, fork=True)
            process.join()
            if pid in self.pids:  # it was not ended for another one, which is now in a hurry
                self.pids.discard(pid)
                later = threading.Timer(LATER, self._prepare, (path,))
                later.daemon = True
                later.start()
            record = _record(asked, process.exitcode or 0)
        return _with_ranks(record, path, {**WHOLE, "timeout": timeout})

    def stop(self) -> None:
        """End what runs now, and whatever it has started."""
        while self.pids:
            _kill(self.pids.pop(), fork=True)

    def end(self) -> None:
        """End what runs, and what waits."""
        self.stop()
        with self.lock:
            self.ended = True
            while self.waiting:
                self.waiting.pop().leave()
        self.folder.close()

    def _ask(self, path: Path, asked: dict[str, Any]) -> BaseProcess:
        """The process that has been asked: one that waits for this lecture, else a new one."""
        while True:
            with self.lock:
                if asked["sections"]:
                    self.in_parts.add(path)
                urgent = asked["sections"] or path not in self.in_parts
                ready = [process for process in self.waiting if process.path == path and urgent]
                waiting = ready[0] if ready else self._start(path)
                self.waiting = [process for process in self.waiting if process is not waiting]
            with contextlib.suppress(OSError):  # it was ended from elsewhere while it waited
                waiting.line.send(asked)
                waiting.line.close()
                return waiting.process
            waiting.leave()

    def _prepare(self, path: Path) -> None:
        """Let as many processes wait for the lecture as are asked in a short time."""
        with self.lock:
            while not self.ended and sum(process.path == path for process in self.waiting) < AT_ONCE:
                self.waiting.append(self._start(path))
                if len(self.waiting) > MOST_WAITING:
                    self.waiting.pop(0).leave()

    def _start(self, path: Path) -> _WaitingProcess:
        line, theirs = self.context.Pipe()
        process = self.context.Process(target=_wait, args=(str(path), theirs))
        process.start()
        theirs.close()
        return _WaitingProcess(path, process, line)


@dataclass(frozen=True)
class _WaitingProcess:
    """A process that has read a lecture, and hears through the line what it is asked."""

    path: Path
    process: BaseProcess
    line: Connection

    def leave(self) -> None:
        """Let it end: nobody will ask it."""
        self.line.close()
        _kill(self.process.pid or 0, fork=True)
        self.process.join()


def _wait(path: str, line: Connection) -> None:
    """In the fork: read the lecture, which `read` and its like then know; do as `child` what one is asked."""
    from litbook.run import child, run

    os.setpgid(0, 0)
    if not line.poll():  # else it is too late for that
        with contextlib.suppress(Exception):  # what is wrong with the text is said when it is to run
            run.read_ahead(Path(path))
    try:
        asked = line.recv()
    except EOFError:  # whoever would have asked is gone
        os._exit(0)
    line.close()
    if not asked["sections"]:
        os.nice(10)  # a reader waits for the other
    os.environ["TMPDIR"] = tempfile.tempdir = _temporary(Path(asked["folder"]))
    multiprocessing.current_process()._config.pop("tempdir", None)  # type: ignore[attr-defined]
    child.work(asked)


def _kill(pid: int, *, fork: bool = False) -> None:
    """End the process, and whatever it has started; a fork may not lead its group yet."""
    for kill in (os.killpg, os.kill) if fork else (os.killpg,):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def _start_process(asked: dict[str, Any], threads: int = 0) -> Iterator[tuple[dict[str, Any], End]]:
    """Start a process that does what is asked, in a folder of its own; it ends with the block at the latest.

    `threads` is how many torch may have, where nobody has said it in the environment; 0: as it likes.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONOPTIMIZE"}
    if threads:
        environment.setdefault("OMP_NUM_THREADS", str(threads))
    # It prints where we print, or into a pipe where our stdout is no file, as in a test.
    stdout = subprocess.DEVNULL
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
            stdout = sys.stdout.fileno()
        except (OSError, ValueError):
            stdout = subprocess.PIPE
            environment["PYTHONIOENCODING"] = "utf-8"
    with private_folder() as folder:
        asked = {**asked, "folder": str(folder), "key": secrets.token_hex()}
        process = subprocess.Popen(
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=None if sys.stderr is not None else subprocess.DEVNULL,
            env={**environment, "TMPDIR": _temporary(folder)},
            process_group=0,  # Ctrl-C comes here, and once; and what the lecture has started ends with it
        )

        def pass_on() -> None:
            """What comes out of the pipe goes to our stdout."""
            for line in process.stdout or ():
                sys.stdout.write(line.decode("utf-8", "replace"))

        passing_on = threading.Thread(target=pass_on, daemon=True)
        passing_on.start()
        with process:
            try:
                assert process.stdin is not None
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(json.dumps(asked).encode())
                    process.stdin.close()
                _running.add(process.pid)
                yield asked, partial(_end, process, folder)
            finally:
                _running.discard(process.pid)
                _kill(process.pid)
                passing_on.join(mailbox.grace(GRACE))
                descriptors.pass_on_rest(folder)


def _temporary(folder: Path) -> str:
    """Where a lecture puts temporary files: beside what the run has to say, which it may not empty."""
    (folder / "tmp").mkdir(exist_ok=True)
    return str(folder / "tmp")


def _end(process: subprocess.Popen[bytes], folder: Path, timeout: float | None) -> tuple[int, bool]:
    """Wait for the end of the process. Its exit status, and whether Ctrl-C came."""
    interrupted = False
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(None if timeout is None else timeout + mailbox.grace(4 * GRACE))
    except KeyboardInterrupt:
        interrupted = True
        # It is handed on, once the process knows what to do with it; a second one ends it at once.
        with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            if (folder / mailbox.AT).exists():
                process.send_signal(signal.SIGINT)
                process.wait(mailbox.grace(2 * GRACE))
    _kill(process.pid)
    return process.wait(), interrupted


# ---------------------------------------------------------------------------- on several ranks


def _with_ranks(
    record: model.Record, path: Path, how: dict[str, Any], launches: list[Any] | None = None
) -> model.Record:
    """The record with the sections that run on several ranks: of one number in one launch, if possible.

    Where somebody else has started the ranks, `launches` is what came of those.
    """
    for done, several in launches or ():
        record = ranks.join_ranks(record, [_rank_result(path, *one) for one in enumerate(several)], done)
    if launches is not None:
        return record
    for size, keys in worlds(record, slow=how["slow"]).items():
        again = {"sections": keys, "ranks": size, "timeout": how["timeout"] or LAUNCH, "listener": ""}
        given = {"ranks": size, "asked": {**how, **again, "path": str(path.resolve())}}
        for done, several in answer(path, "litbook.run.ranks.launch:launch", **given):
            record = ranks.join_ranks(record, [_rank_result(path, *one) for one in enumerate(several)], done)
    return record


def worlds(record: model.Record, *, slow: bool) -> dict[int, list[str]]:
    """How many ranks -> the sections that a run was asked for and that run on so many of them here."""
    sizes, device = dict[int, list[str]](), record.environment.device
    for section in record.sections:
        need = needs(section.requires)
        waits = need.waits(slow=slow, count=(device.count or 0) if device.kind == need.device else 0)
        if need.ranks and section.kind == "section" and not waits and record.was_asked(section):
            sizes.setdefault(need.ranks, []).append(section.key)
    return sizes


def _rank_result(path: Path, rank: int, one: dict[str, Any]) -> model.Record | ranks.LostRank:
    """What one rank left: its record, or how it ended."""
    if "record" not in one:
        return ranks.LostRank(**one)
    record = encoding.loads(one["record"], f"what rank {rank} of {display_path(path)} left")
    try:
        return mailbox.with_late(record, one["late"])
    except (ValueError, SyntaxError, TypeError):
        return ranks.LostRank("what the rank left beside its record is not whole")


# ---------------------------------------------------------------------------- what it left


def _record(asked: dict[str, Any], status: int, interrupted: bool = False) -> model.Record:
    """The record that the process left; raises what it reported instead, or `ProcessDied`."""
    content = _content(asked, "record", status, interrupted)
    record = encoding.loads(content, f"what the process of {display_path(Path(asked['path']))} left")
    try:
        return mailbox.with_late(record, mailbox.read_late(Path(asked["folder"])))
    except (ValueError, SyntaxError, TypeError):  # its last lines are not whole
        raise _died(asked, status) from None


def _content(asked: dict[str, Any], wanted: str, status: int, interrupted: bool) -> str:
    """What the process left, of the kind that is wanted; raises as `_record` does."""
    folder = Path(asked["folder"])
    kind, content = mailbox.read_result(folder, asked["key"])
    if kind == wanted and not interrupted:
        return content
    if kind == "trouble":
        raise ReportedError(**json.loads(content))
    if interrupted:
        raise ReportedError(f"interrupted; it was {mailbox.read_progress(folder)}", "interrupted", 130)
    raise _died(asked, status)


def _died(asked: dict[str, Any], status: int) -> ProcessDied:
    """How the process ended and where."""
    where = mailbox.read_progress(Path(asked["folder"]))
    return ProcessDied(
        f"{display_path(Path(asked['path']))}: the process {mailbox.describe_exit(status)}, {where}; "
        "no verdict without a whole record\n"
        "    a lecture ends by coming to its end: let nothing in it end or replace its process"
    )


# ---------------------------------------------------------------------------- folders of our own


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A temporary folder, gone afterwards. Those of processes that were killed go first.

    Raises `NotWritten` where there can be none.
    """
    with contextlib.suppress(OSError):
        for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
            with contextlib.suppress(OSError), lock.open("r+") as file:  # whose process holds it no more
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        raise NotWritten("a temporary folder", error) from None
    try:
        with (folder / "new").open("w") as lock_of_ours:
            fcntl.flock(lock_of_ours, fcntl.LOCK_EX)
            (folder / "new").rename(folder / LOCK)  # seen only when it is held
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
