"""Running a lecture: the one impure module. Seeds, working directory, device, execution -> a record."""

from __future__ import annotations

import codecs
import contextlib
import contextvars
import ctypes
import faulthandler
import functools
import importlib
import io
import math
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from traceback import clear_frames, walk_stack, walk_tb
from types import FrameType
from typing import Any, BinaryIO, NoReturn, cast

from litbook.errors import Interrupted, LitbookError, TimedOut, UnusableLecture
from litbook.finding import Place
from litbook.lecture import dependencies, parse, siblings
from litbook.lecture.leaning import Leanings
from litbook.lecture.model import INSTALLED, Lecture
from litbook.plugins import Missing
from litbook.probe import author, tracebacks
from litbook.probe.instrument import instrument_files
from litbook.probe.protocols import Listener
from litbook.probe.recorder import Recorder
from litbook.project import WORDS, Project
from litbook.python.nodes import freeze_garbage, modules_in
from litbook.python.scopes import binds
from litbook.record import model
from litbook.record.device_kinds import KINDS, Needs, devices, needs
from litbook.run import out_of_memory as device_memory
from litbook.run import restore, settings, shutdown, subprocesses, working_folder
from litbook.run.descriptors import Descriptors
from litbook.run.environment import environment, peak, why_none
from litbook.run.mailbox import Mailbox, grace
from litbook.run.modules import Modules
from litbook.snapshot.timeout import alarm

_END = os._exit  # what really ends this process, also while a lecture runs
GRACE = 3.0  # seconds that a lecture which swallows the time-out gets before the process ends


class NoDevice(LitbookError):
    """The device that was asked for is not here."""

    slug = "no-device"


def run(  # noqa: PLR0913  all that one may ask of a run
    path: Path,
    *,
    sections: Sequence[str] = (),
    device: str = "auto",
    timeout: float | None = None,
    seed: int = 0,
    slow: bool = False,
    words: str = "",
    ranks: int = 0,
    listener: Listener | None = None,
    owner: Mailbox | None = None,
    descriptors: Descriptors | None = None,
    recorded_by: Callable[[Lecture, Listener | None], Recorder] = Recorder,
) -> model.Record:
    """Run the lecture in the file or folder `path` and return its record.

    `sections` limits the run to those functions; `device` is `auto`, `cpu` or one of `KINDS`; `timeout` is in
    seconds; every section starts from `seed`. Sections that are slow run where `slow` says so. `words` says
    in whose words it is written, "edtrace" or "lectrace"; "" as its book says. `ranks` says that this process
    is one of so many, and runs sections that require them. Failed claims and exceptions are in the record,
    not raised. `owner` is who owns this process, where it has nothing else to do: it
    hears of sections, and ends it when the lecture does not stop in time. What arrives at its `descriptors`
    past Python is printed by the lecture. `recorded_by` may make a recorder
    that also does something else at each claim.

    Raises `UnusableLecture`, `NotFound` or `NoDevice` before anything runs; `TimedOut` or `Interrupted`,
    each naming the line reached, when the run ends early.
    """
    path = parse.lecture_path(path).resolve()
    words = words or Project.words_around(path)
    if words and words not in WORDS:
        raise Missing("edtrace")
    lecture = parse.read_usable(path, sections)
    # What the text says, and what lies beside it, as it is now.
    files = [*lecture.files, *siblings.modules(lecture, path.parent)]
    imported = {name for file in files for name in modules_in(file.tree)}
    if namesakes := working_folder.find_namesakes(lecture, path.parent, imported):
        raise UnusableLecture(namesakes)
    digests = dependencies.digests(lecture, path.parent)
    with contextlib.ExitStack() as afterwards:
        # Environment variables that libraries read when they are imported.
        afterwards.callback(restore.set_environment, dict(os.environ))
        os.environ.setdefault("MPLBACKEND", "Agg")  # figures are kept, not shown
        if device == "cpu" and "torch" not in sys.modules:
            os.environ.update({kind.hidden_by: "" for kind in devices() if kind.hidden_by})
        # Of the large libraries those that it wants, so that their state can be noted before it runs.
        for name in model.LIBRARIES:
            if name in imported or (name == "torch" and device in KINDS):
                with contextlib.suppress(ImportError):  # the lecture's own import will say so, with its line
                    importlib.import_module(name)
        if device in KINDS and not (kind := KINDS[device]).count():
            what = f"no {kind.label} device here: {why_none(kind)}"
            raise NoDevice(f"{what}, or leave --device out to run what this machine can")
        recorder = recorded_by(lecture, listener)
        recorder.numbering.digests = digests
        place = environment(path, device, seed, imported)
        if listener is not None:
            listener.begin(lecture, place)
        with (
            freeze_garbage(),
            restore.temporary_folder() as folder,
            _own_modules(path.parent),
            WORDS[words](path) if words else contextlib.nullcontext(),
            _deadline(timeout, recorder, owner),
            restore.restore_state(),  # innermost: what leaves the others finds the world as it was
        ):
            working_folder.copy_named((file.text for file in files), path.parent, folder)
            execution = Execution(recorder, path, sections, device, seed, slow, ranks, owner, descriptors)
            if descriptors is not None:
                descriptors.attach(recorder)
            if owner is not None:
                subprocesses.hear(path, lecture, execution.codes, words, recorder.asserts, owner.folder)
            execution.run_all()
        asked = dict.fromkeys(lecture.section_name(lecture.section(name)) for name in sections)
        return recorder.finish(place, tuple(asked))


def read_ahead(path: Path) -> None:
    """Ask of a lecture's text what a run asks of it; one that follows reads anew only what was saved since.

    Raises what a run raises before anything runs.
    """
    lecture = parse.read_usable(path)
    dependencies.digests(lecture, path.parent)
    for statement in lecture.statement_of:
        binds(statement)


# ---------------------------------------------------------------------------- executing


@dataclass
class Execution:
    """A lecture that runs: `run_all` runs it, `section` each section that it comes to."""

    recorder: Recorder
    path: Path
    sections: Sequence[str]
    device: str
    seed: int
    slow: bool
    ranks: int
    owner: Mailbox | None
    descriptors: Descriptors | None = None

    def __post_init__(self) -> None:
        recorder = self.recorder
        self.asked = dict.fromkeys(map(recorder.lecture.section, self.sections))
        # Those that change what these read run first.
        before = Leanings(recorder.lecture).before(self.asked) if self.asked else []
        self.first = [*dict.fromkeys((*before, *self.asked))]
        self.stdout = _CapturedStdout(recorder, self.descriptors)
        self.codes = instrument_files(recorder.lecture, recorder, self.first)
        self.modules = Modules(self.path, recorder.lecture, self.codes, recorder.file_log)
        # What a compiler of long lectures has freed, the C library keeps; and Python's objects lie elsewhere.
        with contextlib.suppress(OSError, AttributeError, TypeError):  # no such library, or not this one
            ctypes.CDLL(None).malloc_trim(0)
        recorder.run_section = self.section
        if self.owner is not None:
            recorder.asserts.tell = self.owner.leave_late

    def run_all(self) -> None:
        """The sections that were asked for, or all of the lecture through `main`, as Python would run it."""
        process, path, recorder, modules = os.getpid(), self.path, self.recorder, self.modules

        def exit_(status: int) -> NoReturn:
            if os.getpid() == process:
                raise _Exit(status)
            recorder.asserts.abandon_frames((frame for frame, _ in walk_stack(None)), f"os._exit({status!r})")
            _END(status)  # what it always was, in a child of this process

        sys.path.insert(0, str(path.parent))
        sys.argv = [str(path / "__main__.py" if path.is_dir() else path)]
        sys.stdin = io.StringIO()  # nobody answers `input()`
        sys.stdout = sys.__stdout__ = self.stdout  # type: ignore[misc]
        os._exit = exit_
        sys.dont_write_bytecode = True  # no __pycache__ beside the lecture
        before, start_thread = author.hand_to(recorder), threading.Thread.start

        @functools.wraps(start_thread)
        def heard_start(thread: threading.Thread) -> None:
            recorder.hear_thread(thread)
            start_thread(thread)

        stderr, write = sys.stderr, getattr(sys.stderr, "write", None)

        def heard_write(text: str) -> int:
            if os.getpid() == process:
                recorder.hear_stderr(text)
            return write(text) if write is not None else len(text)

        with contextlib.suppress(AttributeError):  # whatever stands there
            stderr.write = heard_write  # type: ignore[method-assign]
        threading.Thread.start = heard_start  # type: ignore[method-assign, assignment]
        if self.owner is not None and self.owner.is_own_process():
            shutdown.begin()
        start = time.perf_counter()
        try:
            self._begin_from_seed()
            if self._survives(0, modules.load):
                for number in self.first:
                    recorder.section(number, partial(modules.call, number))
                if not self.asked:
                    main = recorder.lecture.main
                    assert main is not None, "else the lecture would not be usable"
                    self._begin_from_seed()
                    with recorder.section_log(main):
                        self._survives(main, partial(modules.call, main))
            if self.owner is not None and self.owner.is_own_process():  # else the process is somebody else's
                shutdown.end(recorder, modules.loaded())
        finally:
            recorder.seconds, recorder.peak = time.perf_counter() - start, peak()
            author.hand_to(before)
            with contextlib.suppress(AttributeError):
                del stderr.write
            threading.Thread.start = start_thread  # type: ignore[method-assign]
            if pyplot := sys.modules.get("matplotlib.pyplot"):
                pyplot.close("all")

    def section(self, function: int, call: Callable[[], object]) -> None:
        """One section: from its own seed, not run where what it requires is missing, its exceptions kept."""
        recorder, spec = self.recorder, self.recorder.lecture.functions[function]
        if self.descriptors is not None:
            self.descriptors.end_section(recorder)  # so far it came from the lines around the section
        if self.owner is not None:
            self.owner.enter_section(spec.name)
        # Of a part its own lines run here, on however many ranks its sections do.
        need = needs(spec.requires) if spec.kind != "part" else Needs(needs(spec.requires).device)
        count = need.kind.count() if self.device in ("auto", need.device) else 0
        torch = sys.modules.get("torch")
        alone = need.simulated and not (torch and torch.distributed.is_available())
        waits = alone or need.waits(slow=self.slow, count=count)
        if waits or need.ranks != (self.ranks if need.ranks else 0):
            recorder.needs[function] = spec.requires or ""
            # One that a launch awaits is told of when that is over.
            if recorder.listener is not None and waits:
                recorder.listener.skip(function, spec.requires or "")
            recorder.ask(function, self.modules.module_of(function).__dict__, judged=waits)
            return
        if recorder.listener is not None:
            recorder.listener.section(function)
        with recorder.section_log(function):
            before = [(entry, entry.read()) for entry in settings.settings()]
            self._begin_from_seed()
            try:
                # The process group in which it begins, with what leaves it; for most there is none.
                group: contextlib.AbstractContextManager[Callable[[], object]] = contextlib.nullcontext(
                    lambda: None
                )
                if need.ranks or need.simulated:
                    from litbook.run.ranks import groups  # it imports torch

                    group = groups.group(spec.key) if need.ranks else groups.simulate_group(need.simulated)
                with group as leave:
                    if not self._survives(function, call):
                        leave()
            finally:  # what runs after it sees the settings and the random state from before it
                settings.put_back(before)

    def _begin_from_seed(self) -> None:
        random.seed(self.seed)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed(self.seed)
        if torch := sys.modules.get("torch"):
            torch.manual_seed(self.seed)

    def _survives(self, function: int, call: Callable[[], object]) -> bool:
        """Call, and keep what it raises as an error of `function`. False when it raised.

        Ctrl-C and the time-out pass through; `sys.exit()` does not: it is an error like any other.
        """
        claims = len(self.recorder.open_claims)
        full = False
        if self.descriptors is not None:
            self.descriptors.skip()
        try:
            contextvars.copy_context().run(call)
        except (KeyboardInterrupt, _Deadline):
            raise
        except BaseException as error:  # the lecture's, whatever it is
            shortage = device_memory.ran_out(error)
            self.recorder.keep_exception(function, shortage or error)
            if shortage is None:
                return False
            clear_frames(error.__traceback__)  # they hold the tensors of the section
            full = True
        finally:
            del self.recorder.open_claims[claims:]
            self.recorder.recover()
            self.stdout.end_section()
            if self.descriptors is not None:
                self.descriptors.end_section(self.recorder)
        if full:  # only here the error is gone, and with it what it kept alive
            device_memory.give_back()
        return not full


class _Exit(SystemExit):
    """A lecture called `os._exit`, which would end this process with a status of its choice, unreported."""

    call = "os._exit"


class _CapturedBytes(io.RawIOBase):
    """Below `_CapturedStdout`, as the file below Python's own stdout: what is written as bytes, at once."""

    name = "<stdout>"

    def __init__(self, recorder: Recorder, descriptors: Descriptors | None) -> None:
        super().__init__()
        self.recorder, self.descriptors, self._process = recorder, descriptors, os.getpid()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: Any) -> int:
        content = bytes(memoryview(data))  # a text is a TypeError here, as in plain Python
        if os.getpid() == self._process:
            self._let_others_speak()
            self.recorder.output(self._decoder.decode(content))
        else:
            os.write(1, content)
        return len(content)

    def write_text(self, text: str) -> None:
        """A text, after the bytes before it."""
        if os.getpid() == self._process:
            self.complete()
            self._let_others_speak()
            self.recorder.output(text)
        else:
            os.write(1, text.encode("utf-8", "backslashreplace"))

    def _let_others_speak(self) -> None:
        """What children and C code have written by now stands before what Python writes next."""
        if self.descriptors is not None:
            self.descriptors.read(self.recorder)

    def complete(self) -> None:
        """What began as a character and never became one is shown as a mark for that."""
        if rest := self._decoder.decode(b"", final=True):
            self.recorder.output(rest)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1  # what children write there is captured, too: see `descriptors`

    def close(self) -> None:
        """Others print after this lecture's line."""


class _CapturedStdout(io.TextIOWrapper):
    """What a lecture prints goes into the record, beside the line that printed it; it cannot be closed.

    A text stream with all that Python's own has: `buffer`, `fileno`, `reconfigure`. Nothing is held back, so
    that text and bytes stand in the order in which they were written. In a fork of the process, whose record
    nobody reads, both go to the descriptor, as in plain Python.
    """

    def __init__(self, recorder: Recorder, descriptors: Descriptors | None = None) -> None:
        self._captured = _CapturedBytes(recorder, descriptors)
        super().__init__(cast("BinaryIO", self._captured), encoding="utf-8", write_through=True)
        self.mode = "w"  # type: ignore[misc]

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._captured.write_text(text)
        return len(text)

    def end_section(self) -> None:
        """A section ends: what a stream of the lecture's own above this one holds back belongs to it."""
        with contextlib.suppress(Exception):  # whatever stands there
            if sys.stdout is not self:
                sys.stdout.flush()
        self._captured.complete()

    def close(self) -> None:
        """Others print after this lecture's line."""


@contextlib.contextmanager
def _own_modules(folder: Path) -> Iterator[None]:
    """Modules from the lecture's folder are read afresh; afterwards the modules are those from before."""
    before = dict(sys.modules)
    for name in _modules_in(folder, before):
        del sys.modules[name]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for name in _modules_in(folder, sys.modules.keys() - before.keys()):
            del sys.modules[name]
        sys.modules.update(before)


def _modules_in(folder: Path, names: Iterable[str]) -> list[str]:
    """Those of the imported modules whose file lies in `folder`, but not in a `.venv` there."""
    prefix, inside = f"{folder}{os.sep}", []
    for name in names:
        # Its file, or the first folder of a package without one. No attributes: some modules import when
        # they are asked for one.
        values = getattr(sys.modules.get(name), "__dict__", {})
        place = values.get("__file__") or next(iter(values.get("__path__") or ()), "")
        if isinstance(place, str) and place.startswith(prefix) and name.split(".")[0] != "litbook":
            if INSTALLED.isdisjoint(Path(place[len(prefix) :]).parts):
                inside.append(name)
    return inside


# ---------------------------------------------------------------------------- ending early


class _Deadline(BaseException):
    """Raised inside the lecture when its time is up. No `except Exception` of a lecture catches it."""


@contextlib.contextmanager
def _deadline(timeout: float | None, recorder: Recorder, owner: Mailbox | None) -> Iterator[None]:
    """Turns the time-out and Ctrl-C into errors that name the line reached."""
    stop, runner = threading.Event(), threading.get_ident()
    longer = f"if it needs longer: --timeout {math.ceil(4 * (timeout or 0))}"

    def ring(*_: object) -> None:
        raise _Deadline

    def watch(timeout: float, owner: Mailbox) -> None:
        """End a process whose lecture swallows the time-out, or sits in native code."""
        if stop.wait(timeout + grace(GRACE)):
            return
        frame = sys._current_frames().get(runner)
        stack = [*walk_stack(frame)][::-1] if frame is not None else []
        what = f"timed out after {timeout:g} s and would not stop"
        error = TimedOut(what, _innermost_place(recorder, stack), longer)
        if recorder.listener is not None:  # in a thread, because the one that we end may hold its lock
            last_words = threading.Thread(target=recorder.listener.end, daemon=True)
            last_words.start()
            last_words.join(1.0)
        owner.give_up(error)

    ends = timeout is not None and owner is not None  # else the process has more to do, and goes on
    if ends:
        threading.Thread(target=watch, args=(timeout, owner), daemon=True).start()
        # Last, for native code that holds the interpreter, so that no thread of Python's can do anything:
        faulthandler.dump_traceback_later((timeout or 0) + grace(2 * GRACE), exit=True, file=2)
    try:
        in_main_thread = threading.current_thread() is threading.main_thread()
        rings = timeout is not None and hasattr(signal, "setitimer") and in_main_thread
        with alarm(timeout or 0, ring) if rings else contextlib.nullcontext():
            yield
    except _Deadline as error:
        reached = _innermost_place(recorder, walk_tb(error.__traceback__))
        raise TimedOut(f"timed out after {timeout:g} s", reached, longer) from None
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted", _innermost_place(recorder, walk_tb(error.__traceback__))) from None
    finally:
        stop.set()
        if ends:
            faulthandler.cancel_dump_traceback_later()


def _innermost_place(recorder: Recorder, frames: Iterable[tuple[FrameType, int]]) -> Place | None:
    """The innermost line of the lecture in a traceback, or on a stack from its outermost frame."""
    *_, last = None, *tracebacks.own_lines(recorder.lecture, frames)
    return last and recorder.lecture.files[last[0]].place(last[1])
