"""The live preview: `python tools/serve.py`, or `make serve`. All of it is in `litbook.site.preview`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # also where litbook is not installed

from litbook.site.preview import main

if __name__ == "__main__":
    sys.exit(main())
