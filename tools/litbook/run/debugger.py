"""`breakpoint()` and `pdb.set_trace()` in a lecture: Python's debugger at the terminal of who runs it.

The process of a run has nobody at its stdin, and another group of processes has the terminal: while the
debugger asks, the terminal is ours. Where there is none (a build, a preview, a pipe), the line is an error
with the way out. It knows nothing of recording.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FrameType, ModuleType
from typing import Any

from litbook.errors import LitbookError


class NoTerminal(LitbookError, RuntimeError):
    """A debugger was called where nobody can answer it."""

    slug = "no-terminal"

    def __init__(self) -> None:
        super().__init__("a debugger stops in a terminal alone\nin one: litbook run LECTURE SECTION")


def ask_at(
    at: str, make_way: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
) -> None:
    """From here on `breakpoint()` and `pdb.set_trace()` ask at the terminal `at`; "" for none.

    While `make_way()` is open, nobody else draws there.
    """

    def stop(frame: FrameType, header: str | None = None) -> None:
        try:
            terminal = os.open(at, os.O_RDWR) if at else -1
        except OSError:
            terminal = -1
        if terminal < 0:
            raise NoTerminal
        import pdb

        class Debugger(pdb.Pdb):
            """Asks at the terminal, and takes no step into what records the lecture."""

            def interaction(self, *given: Any) -> None:
                """Ask, and have the terminal as long; whose it was has it again."""
                before = os.tcgetpgrp(terminal)
                os.tcsetpgrp(terminal, os.getpgrp())
                try:
                    with make_way():
                        super().interaction(*given)
                finally:
                    with contextlib.suppress(OSError):  # that group has ended
                        os.tcsetpgrp(terminal, before)

        # Two files, as one that reads and writes cannot be buffered: a terminal has no places.
        stdin, stdout = os.fdopen(os.dup(terminal)), os.fdopen(os.dup(terminal), "w")
        debugger = Debugger(
            stdin=stdin, stdout=stdout, skip=["litbook", "litbook.*"], nosigint=True, readrc=False
        )
        if header is not None:
            debugger.message(header)
        debugger.set_trace(frame)

    def breakpointhook(*given: Any, **named: Any) -> Any:
        if "PYTHONBREAKPOINT" in os.environ:  # another debugger, or none
            return sys.__breakpointhook__(*given, **named)
        return stop(sys._getframe(1))

    class PdbLoader(SourceFileLoader):
        """Loads pdb, whose own `set_trace` would ask nobody and end the run."""

        def exec_module(self, module: ModuleType) -> None:
            super().exec_module(module)
            vars(module)["set_trace"] = lambda *, header=None: stop(sys._getframe(1), header)

    class PdbFinder:
        """Finds pdb when somebody imports it: until then no run waits for that."""

        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG004
            spec = PathFinder.find_spec(name) if name == "pdb" else None
            if spec is not None and spec.origin:
                spec.loader = PdbLoader(name, spec.origin)
            return spec

    sys.breakpointhook = breakpointhook
    sys.meta_path.insert(0, PdbFinder)
