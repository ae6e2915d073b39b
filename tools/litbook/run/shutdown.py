"""The end of a lecture, as plain Python ends a program: threads, then `atexit`, then what its modules hold.

So what fails there is seen before the record is made. In go the recorder and the modules; out comes nothing.
Plain Python waits for threads however long they take; here they get some seconds.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import inspect
import sys
import threading
from operator import attrgetter
from traceback import walk_stack
from types import AsyncGeneratorType, CoroutineType, GeneratorType, ModuleType
from typing import Any

from litbook.probe.recorder import Recorder
from litbook.snapshot.timeout import is_foreign

_FRAMES = {GeneratorType: "gi_frame", CoroutineType: "cr_frame", AsyncGeneratorType: "ag_frame"}
PATIENCE = 3.0  # seconds for threads that are no daemons; one that is in the lecture's code then is an error


def begin() -> None:
    """Before the lecture: what others registered with `atexit` is not run at the lecture's end.

    One of them ends coverage's measuring. Python's own stay, which end what a lecture begins.
    """
    atexit._clear()
    for module, function in (("logging", "shutdown"), ("weakref", "finalize._exitfunc"),
                             ("multiprocessing.util", "_exit_function")):  # fmt: skip
        if module in sys.modules:
            atexit.register(attrgetter(function)(sys.modules[module]))


def end(recorder: Recorder, modules: list[ModuleType]) -> None:
    """Let everything come to its end. A lecture may have replaced whatever this uses."""
    with contextlib.suppress(Exception):
        waiting = threading.Thread(target=_end_threads, daemon=True)
        waiting.start()
        waiting.join(PATIENCE)
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        # The other threads that are in code of the lecture, with their frames there, the innermost first.
        threads = {t.ident: t for t in threading.enumerate() if t is not threading.current_thread()}
        busy = []
        for ident, innermost in sys._current_frames().items():
            frames = ((frame, frame.f_code.co_filename) for frame, _ in walk_stack(innermost))
            inside = [frame for frame, file in frames if recorder.lecture.file_of(file) is not None]
            if inside and ident in threads:
                busy.append((threads[ident], inside))
        for thread, inside in busy:
            if not thread.daemon:
                at = recorder.lecture.file_of(inside[0].f_code.co_filename)
                recorder.asserts.report_unfinished(thread.name, at, inside[0].f_lineno)
            recorder.asserts.abandon_frames(inside, "the end of the run, which waits for no daemon")
        lecture, seen = recorder.lecture, {thread for thread, _ in busy}
        for thread in threading.enumerate():
            if not (thread.daemon or thread in seen or thread is threading.main_thread()):
                # It sleeps or waits elsewhere, as a timer does; plain Python would wait for it.
                calls: Any = getattr(thread, "function", None) or getattr(thread, "_target", None)
                code: Any = getattr(inspect.unwrap(getattr(calls, "func", calls)), "__code__", end.__code__)
                file = lecture.file_of(code.co_filename)
                # What a library began to show a value is not the lecture's, unless its code is to run there.
                if file is None and is_foreign(thread):
                    continue
                recorder.asserts.report_unfinished(thread.name, file, code.co_firstlineno)
        if not busy:  # else it would find its names gone
            # The last goes first: a `__del__` still finds what stood above it.
            for module in reversed(modules):
                while names := module.__dict__:
                    names.popitem()
            gc.collect()
        # What is suspended and never closed: a generator that something beyond the lecture holds.
        kinds = ((thing, _FRAMES.get(type(thing), "")) for thing in gc.get_objects())
        suspended = (getattr(thing, name) for thing, name in kinds if name)
        by = "the end of the run: nothing has resumed it"
        recorder.asserts.abandon_frames(filter(None, suspended), by)


def _end_threads() -> None:
    """Wait for threads, and let executors finish what was submitted."""
    for executors_end in reversed(getattr(threading, "_threading_atexits", ())):
        executors_end()
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()
