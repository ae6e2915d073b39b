"""List claims and `@inspect`s that never ran: `python tools/unrun.py [LECTURE …]` (default: all).

Runs each lecture on this machine and reads its recordings. Exit status: 0 nothing is dead; 1 a claim stands
where no known device can reach it, a claim failed or the lecture raised; 2 a lecture or a recording cannot be
used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from litbook.cli import named_lectures
from litbook.errors import LitbookError
from litbook.project import CHECKOUT, Project, name_of, recordings_of
from litbook.record import recordings
from litbook.render import report
from litbook.run import run
from litbook.text import unrun


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what never ran in the lectures that are named, and what went wrong; the exit status."""
    status = 0
    for name in named_lectures(
        arguments, "unrun.py", "Run lectures, and list the claims and @inspects that no run has reached."
    ):
        try:
            path = Project.find(CHECKOUT).lecture(name).resolve()
            kept = [recordings.read(file, name_of(path)) for file in recordings_of(path)]
            record = run.run(path)
        except LitbookError as error:
            print(error, file=sys.stderr)
            return error.exit_status
        found = unrun.unrun(record, kept)
        said = [*report.problems(record), *(report.harmless(str(it.problem)) for it in found)]
        print(*said, sep="\n\n", end="\n\n" if said else "")
        dead = sum(it.dead for it in found)
        summary = f"{name}: {dead} of no known device, {len(found) - dead} that wait for a recording"
        if not report.holds(record):
            summary += f"; this run: {report.summary(record)}"
        print(summary)
        status |= bool(dead) or not report.holds(record)
    return status


if __name__ == "__main__":
    sys.exit(main())
