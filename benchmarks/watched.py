"""`litbook serve` with its stages timed: `python -m benchmarks.watched LOG [arguments of serve]`.

LOG gets one line of JSON for each stage that ends: its name, and when it began and ended by the clock that
all processes of a machine share. The processes that run lectures are watched too: the one that they are forks
of imports this module, and finds LOG in its environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
LOG = "LITBOOK_WATCHED"


def timed(room: Any, name: str, stage: str, log: Path, counts: Callable[..., object] | None = None) -> None:
    """From now on `room.name` writes a line when it ends; one that calls itself writes for the outermost.

    Where `counts` is given, only calls count whose arguments it is content with.
    """
    call: Callable[..., Any] = getattr(room, name)
    depth = 0

    def watched(*arguments: Any, **named: Any) -> Any:
        nonlocal depth
        if counts is not None and not counts(*arguments, **named):
            return call(*arguments, **named)
        depth += 1
        start = time.time()
        try:
            return call(*arguments, **named)
        finally:
            depth -= 1
            if not depth:  # at once: the child of a fork ends without closing
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([stage, start, time.time(), os.getpid()]) + "\n")

    setattr(room, name, watched)


def serve(log: Path, arguments: list[str]) -> int:
    """The preview, watched. Of its runs those count that a reader waits for: of one part of a lecture."""
    from litbook import cli
    from litbook.run import process
    from litbook.site.preview import render, worker

    timed(worker.Worker, "take_changes", "noticed", log)
    timed(process.ForkServerRunner, "record_of", "asked", log, lambda _, __, ___, sections=(): sections)
    timed(render.Renderer, "make", "page", log)
    os.environ[LOG] = str(log)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPO), os.environ.get("PYTHONPATH", "")])
    process.PRELOADED = (*process.PRELOADED, "benchmarks.watched")
    return cli.litbook(["serve", *arguments])


def within(log: Path) -> None:
    """In the process that those which run lectures are forks of."""
    from litbook.lecture import parse
    from litbook.run import run

    timed(run, "run", "run", log, lambda *_, sections, **__: sections)
    timed(parse, "read_usable", "read", log)
    timed(run, "instrument_files", "probes", log)
    timed(run.Execution, "section", "sections", log)


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2:]))
elif LOG in os.environ:
    within(Path(os.environ[LOG]))
