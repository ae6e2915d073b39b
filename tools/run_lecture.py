"""Run a lecture: `python tools/run_lecture.py lecture_01`. `litbook run` where nothing is installed."""

import sys

try:
    from litbook.cli import run_lecture
except ModuleNotFoundError as error:  # docs/maintain.md says which libraries a lecture needs
    print(f"run_lecture.py: the library {error.name} is not installed", file=sys.stderr)
    command = f"    pip install {error.name}"
    print(command, file=sys.stderr)
    sys.exit(2)

if __name__ == "__main__":
    sys.exit(run_lecture())
