"""The end of a lecture, as plain Python ends a program: threads, then `atexit`, then what its modules hold.

So what fails there is seen before the record is made. In go the recorder and the modules; out comes nothing.
Plain Python waits for threads however long they take; here they get some seconds.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import sys
import threading
from traceback import walk_stack
from types import FrameType, ModuleType

from litbook.probe.recorder import Recorder

PATIENCE = 3.0  # seconds for threads that are no daemons; one that is in the lecture's code then is an error


def end(recorder: Recorder, modules: list[ModuleType]) -> None:
    """Let everything come to its end. A lecture may have replaced whatever this uses."""
    with contextlib.suppress(Exception):
        waiting = threading.Thread(target=_end_threads, daemon=True)
        waiting.start()
        waiting.join(PATIENCE)
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        busy = _busy(recorder)
        for thread, frame in busy:
            if not thread.daemon:
                recorder.asserts.unfinished(thread.name, frame)
        if not busy:  # else it would find its names gone
            # The last goes first: a `__del__` still finds what stood above it.
            for module in reversed(modules):
                while names := module.__dict__:
                    names.popitem()
            gc.collect()


def _end_threads() -> None:
    """Wait for threads, and let executors finish what was submitted."""
    for executors_end in reversed(getattr(threading, "_threading_atexits", ())):
        executors_end()
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()


def _busy(recorder: Recorder) -> list[tuple[threading.Thread, FrameType]]:
    """The other threads that are in code of the lecture, with the innermost such frame."""
    threads = {it.ident: it for it in threading.enumerate() if it is not threading.current_thread()}
    busy = []
    for ident, innermost in sys._current_frames().items():
        frames = (frame for frame, _ in walk_stack(innermost))
        inside = (it for it in frames if recorder.lecture.file_of(it.f_code.co_filename) is not None)
        if (frame := next(inside, None)) is not None and ident in threads:
            busy.append((threads[ident], frame))
    return busy
