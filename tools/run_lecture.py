"""Run a lecture: `python tools/run_lecture.py lecture_01`. `litbook run` where nothing is installed."""

import sys

try:
    from litbook.cli import run_lecture
except ModuleNotFoundError as error:  # docs/maintain.md says which libraries a lecture needs
    missing = f"run_lecture.py: the library {error.name} is not installed"
    sys.stderr.write(f"{missing}\n    pip install {error.name}\n")
    sys.exit(2)

if __name__ == "__main__":
    sys.exit(run_lecture())
