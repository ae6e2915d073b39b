"""Running a lecture: the one impure module. Seeds, working directory, device, execution -> a record."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import io
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from traceback import clear_frames, walk_stack, walk_tb
from types import FrameType
from typing import NoReturn, Protocol

from litbook.errors import Interrupted, LitbookError, Place, TimedOut
from litbook.optional import Missing
from litbook.probe import author, raised
from litbook.probe.instrument import instrument_files
from litbook.probe.recorder import Recorder
from litbook.probe.recording import Listener
from litbook.project import WORDS, Project
from litbook.record import model
from litbook.run import beside, ending, state
from litbook.run import device as device_memory
from litbook.run.environment import environment, has_cuda, peak, why_no_cuda
from litbook.run.modules import Modules
from litbook.snapshot.foreign import alarm
from litbook.text import source
from litbook.text.lecture import INSTALLED, Lecture
from litbook.text.tree import frozen

_END = os._exit  # what really ends this process, also while a lecture runs
GRACE = 3.0  # seconds that a lecture which swallows the time-out gets before the process ends


class Owner(Protocol):
    """Who owns a process that runs one lecture and nothing else."""

    def at(self, section: str) -> None: ...
    def here(self) -> bool: ...
    def late(self, said: tuple[object, ...]) -> None: ...
    def give_up(self, error: LitbookError) -> NoReturn: ...


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
    listener: Listener | None = None,
    owner: Owner | None = None,
    recorded_by: Callable[[Lecture, Listener | None], Recorder] = Recorder,
) -> model.Record:
    """Run the lecture in the file or folder `path` and return its record.

    `sections` limits the run to those functions; `device` is `auto`, `cpu` or `cuda`; `timeout` is in
    seconds; every section starts from `seed`. Sections that are slow run where `slow` says so. `words` says
    in whose words it is written, "edtrace" or "lectrace"; "" as its book says. Failed claims and exceptions
    are in the record, not raised. `owner` is who owns this process, where it has nothing else to do: it
    hears of sections, and ends it when the lecture does not stop in time. `recorded_by` may make a recorder
    that also does something else at each claim.

    Raises `UnusableLecture`, `NotFound` or `NoDevice` before anything runs; `TimedOut` or `Interrupted`,
    each naming the line reached, when the run ends early.
    """
    path = source.lecture_path(path).resolve()
    words = words or Project.words_around(path)
    if words and words not in WORDS:
        raise Missing("edtrace")
    lecture = source.usable(path, sections)
    texts, imported = beside.texts(lecture, path.parent)
    with _settings(device):
        # Of the large libraries those that it wants, so that their state can be noted before it runs.
        for name in model.LIBRARIES:
            if name in imported or (name == "torch" and device == "cuda"):
                with contextlib.suppress(ImportError):  # the lecture's own import will say so, with its line
                    importlib.import_module(name)
        if device == "cuda" and not has_cuda():
            raise NoDevice(
                f"no CUDA device here: {why_no_cuda()}, or leave --device out to run what this machine can"
            )
        recorder = recorded_by(lecture, listener)
        place = environment(path, device, seed)
        if listener is not None:
            listener.begin(lecture, place)
        with (
            frozen(),
            state.temporary_folder() as folder,
            _own_modules(path.parent),
            WORDS[words](path) if words else contextlib.nullcontext(),
            _deadline(timeout, recorder, owner),
            state.restored(),  # innermost: what leaves the others finds the world as it was
        ):
            beside.copy_named(texts, path.parent, folder)
            _execute(recorder, path, sections, device, seed, slow, owner)
        asked = dict.fromkeys(lecture.section_name(lecture.section(name)) for name in sections)
        return recorder.finish(place, tuple(asked))


# ---------------------------------------------------------------------------- preparing


@contextlib.contextmanager
def _settings(device: str) -> Iterator[None]:
    """Environment variables that libraries read when they are imported."""
    before = dict(os.environ)
    os.environ.setdefault("MPLBACKEND", "Agg")  # figures are kept, not shown
    if device == "cpu" and "torch" not in sys.modules:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        yield
    finally:
        state.set_environment(before)


def _seed(seed: int) -> None:
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


# ---------------------------------------------------------------------------- executing


def _execute(
    recorder: Recorder,
    path: Path,
    sections: Sequence[str],
    device: str,
    seed: int,
    slow: bool,
    owner: Owner | None,
) -> None:
    lecture = recorder.lecture
    modules = Modules(path, lecture, instrument_files(lecture, recorder), recorder.inside_file)
    # What a compiler of long lectures has freed, the C library keeps; and Python's objects lie elsewhere.
    with contextlib.suppress(OSError, AttributeError, TypeError):  # there is no such library, or not this one
        ctypes.CDLL(None).malloc_trim(0)
    if owner is not None:
        recorder.asserts.tell = owner.late

    def missing(required: str | None) -> str | None:
        here = slow if required == "slow" else required == "cuda" and device != "cpu" and has_cuda()
        return None if here else required

    process = os.getpid()

    def exit_(status: int) -> NoReturn:
        if os.getpid() == process:
            raise _Exit(status)
        _END(status)  # what it always was, in a child of this process

    recorder.run_section = partial(_run_section, recorder, modules, missing, seed, owner)
    sys.path.insert(0, str(path.parent))
    sys.argv = [str(path / "__main__.py" if path.is_dir() else path)]
    sys.stdin, sys.stdout = io.StringIO(), _Output(recorder)  # nobody answers `input()`
    os._exit = exit_
    sys.dont_write_bytecode = True  # no __pycache__ beside the lecture
    before = author.hand_to(recorder)
    start = time.perf_counter()
    try:
        _seed(seed)
        if _survives(recorder, 0, modules.load):
            # Each section that was asked for, or the whole lecture through `main`.
            for number in dict.fromkeys(map(lecture.section, sections)):
                recorder.section(number, partial(modules.call, number))
            if not sections:
                main = next(i for i, f in enumerate(lecture.functions) if f.kind == "main")
                _seed(seed)
                with recorder.inside(main):
                    _survives(recorder, main, partial(modules.call, main))
        if owner is not None and owner.here():  # else the process, and its `atexit`, is somebody else's
            ending.end(recorder, modules.loaded())
    finally:
        recorder.seconds, recorder.peak = time.perf_counter() - start, peak()
        author.hand_to(before)
        if pyplot := sys.modules.get("matplotlib.pyplot"):
            pyplot.close("all")


class _Exit(SystemExit):
    """A lecture called `os._exit`, which would end this process with a status of its choice, unreported."""

    call = "os._exit"


def _run_section(
    recorder: Recorder,
    modules: Modules,
    missing: Callable[[str | None], str | None],
    seed: int,
    owner: Owner | None,
    function: int,
    call: Callable[[], object],
) -> None:
    """One section: from its own seed, unrecorded where what it requires is missing, its exceptions kept."""
    spec = recorder.lecture.functions[function]
    if owner is not None:
        owner.at(spec.name)
    needed = missing(spec.requires)
    if needed:
        recorder.needs[function] = needed
        if recorder.listener is not None:
            recorder.listener.skipped(function, needed)
        recorder.ask(function, modules.of(function).__dict__)
        return
    if recorder.listener is not None:
        recorder.listener.section(function)
    with recorder.inside(function):
        before = [(entry, entry.read()) for entry in state.randomness()]
        _seed(seed)
        try:
            _survives(recorder, function, call)
        finally:  # what runs after it sees the random state from before it
            for entry, value in before:
                entry.write(value)


def _survives(recorder: Recorder, function: int, call: Callable[[], object]) -> bool:
    """Call, and keep what it raises as an error of `function`. False when it raised.

    Ctrl-C and the time-out pass through; `sys.exit()` does not: it is an error like any other.
    """
    claims = len(recorder.open_claims)
    full = False
    try:
        call()
    except (KeyboardInterrupt, _Deadline):
        raise
    except BaseException as error:  # the lecture's, whatever it is
        shortage = device_memory.ran_out(error)
        recorder.raised(function, shortage or error)
        if shortage is None:
            return False
        clear_frames(error.__traceback__)  # they hold the tensors of the section
        full = True
    finally:
        del recorder.open_claims[claims:]
        recorder.recover()
    if full:  # only here the error is gone, and with it what it kept alive
        device_memory.give_back()
    return not full


class _Output(io.TextIOBase):
    """What a lecture prints goes into the record, beside the line that printed it; it cannot be closed."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._recorder.output(text)
        return len(text)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Others print after this lecture's line."""


@contextlib.contextmanager
def _own_modules(folder: Path) -> Iterator[None]:
    """Modules from the lecture's folder are read afresh; afterwards the modules are those from before."""
    before = dict(sys.modules)
    for name in _modules_in(folder):
        del sys.modules[name]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for name in _modules_in(folder):
            del sys.modules[name]
        for name, module in before.items():
            sys.modules[name] = module


def _modules_in(folder: Path) -> list[str]:
    """Names of the imported modules whose file lies in `folder`, but not in a `.venv` there."""
    prefix, names = f"{folder}{os.sep}", []
    for name, module in list(sys.modules.items()):
        # Its file, or the first folder of a package without one. No attributes: some modules import when
        # they are asked for one.
        values = getattr(module, "__dict__", {})
        place = values.get("__file__") or next(iter(values.get("__path__") or ()), "")
        if isinstance(place, str) and place.startswith(prefix) and name.split(".")[0] != "litbook":
            if INSTALLED.isdisjoint(Path(place[len(prefix) :]).parts):
                names.append(name)
    return names


# ---------------------------------------------------------------------------- ending early


class _Deadline(BaseException):
    """Raised inside the lecture when its time is up. No `except Exception` of a lecture catches it."""


@contextlib.contextmanager
def _deadline(timeout: float | None, recorder: Recorder, owner: Owner | None) -> Iterator[None]:
    """Turns the time-out and Ctrl-C into errors that name the line reached."""
    stop = threading.Event()

    def ring(*_: object) -> None:
        raise _Deadline

    ends = timeout is not None and owner is not None  # else the process has more to do, and goes on
    if ends:
        watched = (timeout, stop, recorder, threading.get_ident(), owner)
        threading.Thread(target=_watchdog, args=watched, daemon=True).start()
        # Last, for native code that holds the interpreter, so that no thread of Python's can do anything:
        faulthandler.dump_traceback_later((timeout or 0) + 2 * GRACE, exit=True, file=2)
    try:
        in_main_thread = threading.current_thread() is threading.main_thread()
        rings = timeout is not None and hasattr(signal, "setitimer") and in_main_thread
        with alarm(timeout or 0, ring) if rings else contextlib.nullcontext():
            yield
    except _Deadline as error:
        raise TimedOut(
            f"timed out after {timeout:g} s", _reached(recorder, walk_tb(error.__traceback__))
        ) from None
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted", _reached(recorder, walk_tb(error.__traceback__))) from None
    finally:
        stop.set()
        if ends:
            faulthandler.cancel_dump_traceback_later()


def _watchdog(timeout: float, stop: threading.Event, recorder: Recorder, runner: int, owner: Owner) -> None:
    """Ends a process whose lecture swallows the time-out, or sits in native code."""
    if stop.wait(timeout + GRACE):
        return
    frame = sys._current_frames().get(runner)
    stack = [*walk_stack(frame)][::-1] if frame is not None else []
    error = TimedOut(f"timed out after {timeout:g} s and would not stop", _reached(recorder, stack))
    if recorder.listener is not None:  # in a thread, because the one that we end may hold its lock
        last_words = threading.Thread(target=recorder.listener.end, daemon=True)
        last_words.start()
        last_words.join(1.0)
    owner.give_up(error)


def _reached(recorder: Recorder, frames: Iterable[tuple[FrameType, int]]) -> Place | None:
    """The innermost line of the lecture in a traceback, or on a stack from its outermost frame."""
    *_, found = None, *raised.own_lines(recorder.lecture, frames)
    return found and recorder.lecture.files[found[0]].place(found[1])
