"""A run is a process: the side that runs the lecture and leaves its record. `process` starts it.

    in      on stdin, as JSON: the arguments of `process.record_of`, a folder, and a key that says who wrote
    out     in the folder, as `desk` says: the section that begins, what asserts have to say that are in no
            record, and at last the record, or what went wrong, whole

What it needs after the lecture is put back or was bound before it, so nothing that the lecture replaces
decides what is left. A process that the lecture forked and that comes back to this code ends there.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from litbook import plugins
from litbook.errors import LitbookError
from litbook.record import encoding
from litbook.run import debugger, run
from litbook.run.descriptors import Descriptors
from litbook.run.mailbox import Mailbox

plugins.bring_in("edtrace", "display.asking")


def main() -> NoReturn:
    """All of the life of a process that is started for one run."""
    work(json.loads(sys.stdin.buffer.read()))


def work(asked: dict[str, Any]) -> NoReturn:
    """Run what is asked for, leave what came of it, and end the process."""
    desk = Mailbox(asked["folder"], asked["key"])
    carry_out(desk, asked)
    desk.end()


def carry_out(desk: Mailbox, asked: dict[str, Any]) -> None:
    """Run what is asked for, and leave what came of it."""
    try:
        # A process that ends with its parent, hears Ctrl-C once, and has nobody at its stdin.
        signal.signal(signal.SIGINT, _interrupt)  # a background job of a shell inherits it as ignored
        if hasattr(signal, "SIGTTOU"):
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # it prints to a terminal that another group has
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        os.close(nowhere)
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        end_with_parent()
        desk.enter_section("")
        if "function" in asked:
            answer = _find(asked["function"])(desk, **asked["given"])
            desk.leave("answer", json.dumps(answer).encode())
            return
        descriptors = Descriptors(desk.folder)  # before anybody keeps our stdout
        listener = _find(asked["listener"])() if asked["listener"] else None
        try:
            debugger.ask_at(asked["terminal"], *([listener.make_way] if listener is not None else []))
            how = {name: asked[name] for name in "sections device timeout seed slow words ranks".split()}
            record = run.run(
                Path(asked["path"]), **how, listener=listener, owner=desk, descriptors=descriptors
            )
        finally:
            if listener is not None and desk.is_own_process():
                listener.end()
        content = encoding.dumps(record).encode()
        try:
            desk.leave("record", content)
        except OSError as error:  # a full disk
            why = f"the record of the run cannot be kept among temporary files: {error.strerror}"
            desk.trouble("cannot-keep", f"{why}; no verdict without it", 1)
    except LitbookError as error:
        desk.trouble(error.slug, error.printed(), error.exit_status)
    except KeyboardInterrupt:
        desk.trouble("interrupted", "interrupted before the first line ran", 130)
    except OSError as error:  # of the one who listens: a full disk behind `>`
        desk.trouble("cannot-print", f"cannot print: {error.strerror or error}", 2)
    except BaseException as error:  # ours, or a lack of memory: a lecture's own are in its record
        traceback.print_exc()
        what = f"litbook failed while it ran the lecture: {type(error).__name__}: {error}"
        desk.trouble("failed", what, 2)


def end_with_parent() -> None:
    """Let this process be killed when the one that started it ends, where a system can do that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    """Ctrl-C, once: a second one must not disturb what is left on account of the first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _find(name: str) -> Any:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)
