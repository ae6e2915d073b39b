"""The command line, a module a command."""

from litbook.cli.main import group, litbook, run_lecture

__all__ = ["group", "litbook", "run_lecture"]
