"""`python -m litbook`: the command line, also where no `litbook` is on the PATH."""

import sys

from litbook.cli import litbook

if __name__ == "__main__":
    sys.exit(litbook())
