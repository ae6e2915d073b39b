"""`python -m litbook.cli`, where the command `litbook` is not on the path."""

import sys

from litbook.cli.program import litbook

if __name__ == "__main__":
    sys.exit(litbook())
