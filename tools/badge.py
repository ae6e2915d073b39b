"""Draw the README's badge from the recordings: `python tools/badge.py docs/images/claims.svg`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the badge into the file that is named; the exit status."""
    parser = argparse.ArgumentParser(
        prog="badge.py", description="Draw the README's badge from the recordings."
    )
    parser.add_argument("file", metavar="FILE.svg", type=Path, help="where to: docs/images/claims.svg")
    asked = parser.parse_args(arguments)
    from litbook.project import CHECKOUT, Project
    from litbook.site.plugin import badge  # not for --help: it brings the site's tools along

    asked.file.write_text(badge(Project.find(CHECKOUT)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
