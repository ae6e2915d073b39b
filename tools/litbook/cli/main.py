"""The two programs: `litbook COMMAND`, and `python tools/run_lecture.py LECTURE` where nothing is installed.

Nothing heavy is imported before the lecture is known to be usable: `--help`, lists and errors of the command
line or the lecture's text must come at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import shell_complete

from litbook.cli import exits
from litbook.cli.badge import badge
from litbook.cli.build import build
from litbook.cli.check import check
from litbook.cli.compare import compare, compare_files
from litbook.cli.list import list_command, list_lectures, list_sections
from litbook.cli.new import new
from litbook.cli.output import say
from litbook.cli.pages import pages
from litbook.cli.parameters import ANY_LECTURE, FILE, RUN, find_book
from litbook.cli.pdf import pdf
from litbook.cli.record import record
from litbook.cli.rule import rule
from litbook.cli.run import run, run_and_report
from litbook.cli.serve import serve
from litbook.errors import LitbookError, NotFound
from litbook.project import CHECKOUT, TOOLS, Project

SETTINGS = {"help_option_names": ["-h", "--help"]}


class Commands(click.Group):
    """The commands in the order of an author's work; of one that does not exist the nearest is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's name
        """Their names, as added."""
        return [*self.commands]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The command that the line begins with."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            ctx.fail(str(NotFound("command", args[0], [*self.commands])))
        return super().resolve_command(ctx, args)


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from litbook import version

        python = sys.version.partition(" ")[0]
        say(f"litbook {version.version()} ({TOOLS}, Python {python})")
        context.exit()


@click.group(cls=Commands, context_settings=SETTINGS)
@click.option("-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
              help="Say which litbook this is, and where it is.")  # fmt: skip
def group() -> None:
    """Lectures whose every claim is executed."""


for each in (new, run, record, compare, list_command, check, rule, build, pages, pdf, serve, badge):
    group.add_command(each)


def litbook(arguments: Sequence[str] | None = None) -> int:
    """`litbook` with `arguments` (default: the process's own), the first of which is the command."""
    if instruction := os.environ.get("_LITBOOK_COMPLETE"):  # a shell asks
        return shell_complete(group, {}, "litbook", "_LITBOOK_COMPLETE", instruction)
    return exits.status_of(group, "litbook", arguments)


@click.command(params=[ANY_LECTURE, *RUN], epilog=exits.STATUSES, context_settings=SETTINGS)
@click.option("--list", "outline", is_flag=True, help="List its sections, without LECTURE the lectures.")
@click.option("--record", is_flag=True, help="Keep the run as the recording of this kind of device.")
@click.option("--approve", is_flag=True, help="As --record, also where values differ from the recording.")
@click.option("--compare", "files", nargs=2, type=FILE, metavar="OLD NEW", help="As `litbook compare`.")
def _run_lecture(lecture: str | None, outline: bool, files: tuple[Path, Path] | None, **options: Any) -> int:
    """Run a lecture, check its claims, and print prose, code and values."""
    if files and lecture:
        raise LitbookError("--compare runs no lecture\n    leave the name of the lecture out")
    if files:
        return compare_files(*files, as_json=options["as_json"])
    config = options.pop("config_file")
    project = find_book(config) if config else Project.find(CHECKOUT)
    if lecture is None:
        return list_lectures(project)
    path = project.lecture(lecture)
    return (
        list_sections(path)
        if outline
        else run_and_report(path, f"python tools/run_lecture.py {lecture}", **options)
    )


def run_lecture(arguments: Sequence[str] | None = None) -> int:
    """`run_lecture.py` with `arguments` (default: the process's own). Returns the exit status."""
    return exits.status_of(_run_lecture, "run_lecture.py", arguments)
