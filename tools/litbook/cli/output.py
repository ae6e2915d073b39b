"""What a command prints: texts without characters that steer a terminal, and JSON for programs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec

import click


def say(text: str) -> None:
    """Print. A reader that has gone away (`| head`) is no fault of the lecture: the run's verdict stands."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        leave_stdout()


def say_json(value: object) -> None:
    """Print for programs."""
    say(json.dumps(value, ensure_ascii=False))


def complain(text: str, program: str = "") -> None:
    """Print on stderr, behind the name of the program that runs."""
    print(
        f"{program or click.get_current_context().find_root().info_name}: {harmless(text)}", file=sys.stderr
    )


def harmless(text: str) -> str:
    """What a terminal may show of a text; `outcome` comes only for what may not stay as it is."""
    if text.replace("\n", "").isprintable():
        return text
    from litbook.rules import outcome

    return outcome.harmless(text)


def leave_stdout() -> None:
    """What is still held back for a stdout that nobody reads goes nowhere, so that Python's end is quiet."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def formula_renderer() -> Callable[[str, str], object] | None:
    """What writes a formula as MathML, imported with the first one; None where its library is missing."""

    def draw_formula(source: str, display: str) -> object:
        from litbook.markdown import mathml

        return mathml.mathml(source, display)

    return draw_formula if find_spec("latex2mathml") else None
