"""List the numbers in prose that nothing backs: `python tools/unbacked.py [LECTURE …]` (default: all).

Exit status: 0 none; 1 there are some; 2 a lecture cannot be read. `litbook.unbacked` says what counts.
"""

from __future__ import annotations

import sys

from litbook import source, unbacked
from litbook.cli import LECTURES, find_lecture
from litbook.errors import LitbookError
from litbook.run import shown_path


def main(names: list[str]) -> int:
    """Print every unbacked number of the lectures called `names`; the exit status."""
    status = 0
    for name in names or sorted(path.stem for path in LECTURES.glob("lecture_*.py")):
        try:
            path = find_lecture(name).resolve()
            found = unbacked.unbacked(source.read(path, shown_path(path)))
        except LitbookError as error:
            print(error, file=sys.stderr)
            return error.exit_status
        print(*found, sep="\n\n", end="\n\n" if found else "")
        print(f"{name}: {len(found) or 'no'} unbacked number{'' if len(found) == 1 else 's'}")
        status |= bool(found)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
