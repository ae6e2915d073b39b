"""The command line, a module a command."""

from litbook.cli.program import COMMANDS, litbook, main

__all__ = ["COMMANDS", "litbook", "main"]
