"""`litbook serve` with its stages timed: `python -m benchmarks.watched LOG [arguments of serve]`.

LOG gets one line of JSON for each stage that ends: its name, and when it began and ended by the clock that
all processes of a machine share. The process that runs lectures is watched too: it is this module again, with
`warm` for arguments.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def timed(room: Any, name: str, stage: str, log: Path) -> None:
    """From now on `room.name` writes a line when it ends; one that calls itself writes for the outermost."""
    call: Callable[..., Any] = getattr(room, name)
    depth = 0

    def watched(*arguments: Any, **named: Any) -> Any:
        nonlocal depth
        depth += 1
        start = time.time()
        try:
            return call(*arguments, **named)
        finally:
            depth -= 1
            if not depth:
                with log.open(
                    "a", encoding="utf-8"
                ) as file:  # at once: the child of a fork ends without closing
                    file.write(json.dumps([stage, start, time.time()]) + "\n")

    setattr(room, name, watched)


def serve(log: Path, arguments: list[str]) -> int:
    from litbook import cli
    from litbook.site import preview

    timed(preview.Preview, "changed", "noticed", log)
    timed(preview.Preview, "_show", "shown", log)
    timed(preview.Preview, "make", "page", log)
    start = subprocess.Popen

    def with_a_watch(command: Any, **named: Any) -> Any:
        """The process that runs lectures, started as this module."""
        if command[1:] == ["-m", "litbook.run.warm"]:
            command = [command[0], "-m", "benchmarks.watched", str(log), "warm"]
        return start(command, **named)

    subprocess.Popen = with_a_watch  # type: ignore[assignment, misc]  # for this process, which is a measurement
    return cli.litbook(["serve", *arguments])


def warm(log: Path) -> None:
    from litbook.run import run
    from litbook.run import warm as runs
    from litbook.text import source

    timed(run, "run", "run", log)
    timed(source, "parse", "read", log)
    timed(run, "instrument", "probes", log)
    timed(run, "_run_section", "sections", log)
    runs.main()


if __name__ == "__main__":
    if sys.argv[2:] == ["warm"]:
        warm(Path(sys.argv[1]))
    else:
        sys.exit(serve(Path(sys.argv[1]), sys.argv[2:]))
