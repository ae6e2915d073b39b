"""List claims and `@inspect`s that never ran: `python tools/unrun.py [LECTURE …]` (default: all).

Runs each lecture on this machine and reads its recordings. Exit status: 0 nothing is dead; 1 a claim stands
where no known device can reach it; 2 a lecture or a recording cannot be used.
"""

from __future__ import annotations

import sys

from litbook import recordings, run, unrun
from litbook.cli import LECTURES, find_lecture
from litbook.errors import LitbookError


def main(names: list[str]) -> int:
    """Print what never ran in the lectures called `names`; the exit status."""
    status = 0
    for name in names or sorted(path.stem for path in LECTURES.glob("lecture_*.py")):
        try:
            path = find_lecture(name).resolve()
            kept = [recordings.read(file, path.stem) for file in recordings.of(path)]
            found = unrun.unrun(run.run(path), kept)
        except LitbookError as error:
            print(error, file=sys.stderr)
            return error.exit_status
        print(*(it.problem for it in found), sep="\n\n", end="\n\n" if found else "")
        dead = sum(it.dead for it in found)
        print(f"{name}: {dead} of no known device, {len(found) - dead} that wait for a recording")
        status |= bool(dead)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
