"""Run a lecture: `python tools/run_lecture.py lecture_01`. `litbook run` where nothing is installed."""

import sys

from litbook.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
