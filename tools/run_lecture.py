"""Run a lecture: `python tools/run_lecture.py lecture_01`. `litbook run` where nothing is installed."""

import sys

from litbook.cli import run_lecture

if __name__ == "__main__":
    sys.exit(run_lecture())
