"""`breakpoint()` in a lecture: Python's debugger, at the terminal of whoever has asked for the run.

The process of a run has nobody at its stdin, and another group of processes has the terminal: while the
debugger asks, the terminal is ours. Where there is none (a build, a preview, a pipe), the line is an error
with the way out. It knows nothing of recording.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

from litbook.errors import LitbookError


class NoTerminal(LitbookError, RuntimeError):
    """`breakpoint()` ran where nobody can answer a debugger."""

    slug = "no-terminal"

    def __init__(self) -> None:
        super().__init__("breakpoint() stops in a terminal alone\nin one: litbook run LECTURE SECTION")


def hook(at: str) -> Callable[..., Any]:
    """What `breakpoint()` calls in a run: the debugger at the terminal `at`; "" for none."""

    def stop(*given: Any, **named: Any) -> Any:
        if "PYTHONBREAKPOINT" in os.environ:  # another debugger, or none
            return sys.__breakpointhook__(*given, **named)
        try:
            terminal = os.open(at, os.O_RDWR) if at else -1
        except OSError:
            terminal = -1
        if terminal < 0:
            raise NoTerminal
        return _debugger(terminal).set_trace(sys._getframe(1))

    return stop


def _debugger(terminal: int) -> Any:
    import pdb

    class Debugger(pdb.Pdb):
        """Asks at the terminal, and takes no step into what records the lecture."""

        def interaction(self, *given: Any) -> None:
            """Ask, and have the terminal as long; whose it was has it again."""
            before = os.tcgetpgrp(terminal)
            os.tcsetpgrp(terminal, os.getpgrp())
            try:
                super().interaction(*given)
            finally:
                with contextlib.suppress(OSError):  # that group has ended
                    os.tcsetpgrp(terminal, before)

    # Two files, as one that reads and writes cannot be buffered: a terminal has no places.
    stdin, stdout = os.fdopen(os.dup(terminal)), os.fdopen(os.dup(terminal), "w")
    return Debugger(stdin=stdin, stdout=stdout, skip=["litbook", "litbook.*"], nosigint=True, readrc=False)
