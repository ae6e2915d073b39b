"""Draw the README's badge from the recordings: python tools/badge.py docs/images/claims.svg."""

import sys
from pathlib import Path

from litbook.site import badge

if __name__ == "__main__":
    made = badge(Path(__file__).resolve().parent.parent / "lectures")
    Path(sys.argv[1]).write_text(made, encoding="utf-8")
