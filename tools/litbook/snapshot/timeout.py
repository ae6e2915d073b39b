"""Foreign code, run on a clock.

The only module that calls methods which somebody else wrote: a `repr`, a `str`, a tensor's own dispatch. It
knows seconds and signals. It does not know what the call is for, nor what becomes of the answer.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from litbook.errors import Stopped
from litbook.snapshot.safe_types import name_of

BEGUN = list[weakref.ref[threading.Thread]]()  # threads that foreign code began; see `is_foreign`
AGAIN = 0.001  # a repr that swallows its interruption is interrupted anew after so many seconds
PATIENCE = 3  # and after so many times much sooner


class _TimeUp(BaseException):
    """Not an `Exception`, so that `except Exception` in a foreign repr lets it through."""


@contextlib.contextmanager
def alarm(seconds: float, ring: Callable[..., None], again: float = 0.0) -> Iterator[None]:
    """In here `ring` is called after so many seconds, and anew after `again`.

    It borrows SIGALRM and ITIMER_REAL and gives both back as they were, an outer time limit with the time
    that then remains. An outer alarm that was due meanwhile rings right after.
    """
    started, handler = time.monotonic(), signal.getsignal(signal.SIGALRM)
    outer, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, again)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:
            left = outer - (time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), interval)


class Clock:
    """Calls foreign code, and stops it when its seconds are used up.

    Signals reach the main thread only, so elsewhere, and where the platform has no interval timer, nothing
    foreign is called.
    """

    def __init__(
        self,
        seconds: float,
        otherwise: str = "was not called: no time was left",
        late: str = "took too long",
    ) -> None:
        self.left = seconds
        self.otherwise = otherwise  # why nothing is called once the seconds are used up
        self.late = late  # what is said of a call that was stopped

    def call(self, function: Callable[[Any], Any], value: object, what: str = "repr") -> tuple[Any, str]:
        """`function(value)` and "", or None and why there is nothing, in words about `what`.

        Raises `KeyboardInterrupt` and `Stopped`, nothing else.
        """
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            return None, f"{what} is called in the main thread only"
        if signal.getsignal(signal.SIGALRM) is None:  # set by C code: it could not be given back
            return None, f"{what} is not called while other code holds SIGALRM"
        if self.left <= 0.001:
            return None, f"{what} {self.otherwise}"
        started, threads = time.monotonic(), threading.enumerate()
        try:
            with alarm(self.left, _Bell(), AGAIN):
                return _foreign(function, value), ""
        except _TimeUp:
            return None, f"{what} {self.late}"
        except (KeyboardInterrupt, Stopped):
            raise
        except BaseException as error:
            return None, f"{what} raised {name_of(type(error))}"
        finally:
            self.left -= time.monotonic() - started
            there = {id(thread) for thread in threads}  # by identity: a thread may have a hostile __eq__
            BEGUN[:] = [begun for begun in BEGUN if begun() is not None]
            BEGUN.extend(weakref.ref(thread) for thread in threading.enumerate() if id(thread) not in there)


def is_foreign(thread: threading.Thread) -> bool:
    """Whether it began while foreign code was called: of a browser, say, that was to draw a value."""
    return any(thread is begun() for begun in BEGUN)


def _foreign(function: Callable[[Any], Any], value: object) -> Any:
    """The one place where foreign code runs; a `_Bell` raises only below this frame."""
    return function(value)


class _Bell:
    """Raises inside the foreign call, wherever that is; rung after the call returned, it does nothing.

    Code that swallows the exception is inside its `try` again a microsecond later. So after a few rings the
    next one follows that quickly, at varied distances, until one falls between `except` and `try`.
    """

    def __init__(self) -> None:
        self.rings = 0

    def __call__(self, _signal: int, frame: types.FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is _foreign.__code__:
                self.rings += 1
                if self.rings > PATIENCE:
                    signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + self.rings % 30), AGAIN)
                raise _TimeUp
            frame = frame.f_back
