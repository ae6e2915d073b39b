"""List the numbers in prose that nothing backs: `python tools/unbacked.py [LECTURE …]` (default: all).

Braces that a forgotten `f` leaves in prose are listed with them. `litbook.text.unbacked` says what counts.
Exit status: 0 none; 1 there are some; 2 a lecture cannot be read.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from litbook.cli import named_lectures
from litbook.errors import LitbookError, Problem
from litbook.project import CHECKOUT, Project, shown
from litbook.text import source, unbacked


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every unbacked number of the lectures that are named; the exit status."""
    status = 0
    for name in named_lectures(
        arguments, "unbacked.py", "List the numbers in a lecture's prose that nothing backs."
    ):
        try:
            path = Project.find(CHECKOUT).lecture(name).resolve()
            found = unbacked.unbacked(source.read(path, shown(path)))
        except LitbookError as error:
            print(error, file=sys.stderr)
            return error.exit_status
        print(*found, sep="\n\n", end="\n\n" if found else "")
        print(f"{name}: {_counted(found)}")
        status |= bool(found)
    return status


def _counted(found: Sequence[Problem]) -> str:
    """`2 unbacked numbers`, and how many braces were left where there are any."""
    braces = sum(problem.slug == "forgotten-f" for problem in found)
    numbers = len(found) - braces
    text = f"{numbers or 'no'} unbacked number{'' if numbers == 1 else 's'}"
    return text + (f", {braces} forgotten f{'' if braces == 1 else 's'}" if braces else "")


if __name__ == "__main__":
    sys.exit(main())
