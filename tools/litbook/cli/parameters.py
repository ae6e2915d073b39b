"""Parameters that several commands take: a lecture, its sections, `--json`, and all that a run takes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from litbook import plugins
from litbook.errors import LitbookError
from litbook.lecture import parse
from litbook.project import WORDS, NoBook, Project
from litbook.record.device_kinds import devices

plugins.bring_in("edtrace")


def find_book(config: Path | None) -> Project:
    """The book of a `--config-file`, else the one around the current folder. Raises `NoBook`."""
    if config is None:
        return Project.find(Path.cwd())
    if not config.is_file():
        raise LitbookError(f"--config-file {config}: there is no such file")
    return Project.from_config(config.resolve())


def find_lecture(name: str, config: Path | None = None) -> Path:
    """The lecture of that name or path; one that is named by its path needs no book around it."""
    try:
        return find_book(config).lecture(name)
    except NoBook:
        if os.path.lexists(name) or os.sep in name:
            return Project(Path.cwd()).lecture(name)
        raise


def seconds(text: str) -> float:
    """A number of seconds, off the command line."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < 10**8:
            return float(text)
    raise click.BadParameter(f"{text!r} is no number of seconds above 0")


def _lectures(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """For a shell, what a word may become: a lecture's name, else a path, which the shell knows itself."""
    names = list[str]()
    with contextlib.suppress(LitbookError, OSError):
        names = [name for name in Project.find(Path.cwd()).names() if name.startswith(begun)]
    return [*map(CompletionItem, names)] or [CompletionItem(begun, type="file")]


def _sections(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """The same of a section of the lecture before it."""
    with contextlib.suppress(LitbookError, OSError):
        names = parse.outline(find_lecture(context.params["lecture"])).section_names()
        return [name for name in names if name.startswith(begun)]
    return []


FILE = click.Path(path_type=Path)
LECTURE = click.Argument(["lecture"], shell_complete=_lectures)
ANY_LECTURE = click.Argument(["lecture"], required=False, shell_complete=_lectures)
SECTIONS = click.Argument(["sections"], metavar="[SECTION]...", nargs=-1, shell_complete=_sections)
JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON value, for programs.")
CONFIG_FILE = click.Option(
    ["--config-file"], type=FILE, help="Of the book (default: the mkdocs.yml around this folder)."
)
FOREIGN = click.Choice([*WORDS]) if WORDS else click.STRING
DEVICES = ["auto", "cpu", *(kind.name for kind in devices())]
RUN = [
    SECTIONS,
    click.Option(["--device"], type=click.Choice(DEVICES), default="auto", show_default=True),
    click.Option(
        ["-q", "--quiet"], is_flag=True, help="Print only what went wrong, and the count of claims."
    ),
    click.Option(["--out"], metavar="FILE", type=FILE, help="Write the record of the run to FILE, as JSON."),
    click.Option(["--timeout"], metavar="S", type=seconds, help="Stop after S seconds, at the line reached."),
    CONFIG_FILE,
    click.Option(["--words"], type=FOREIGN, help="Whose words it is written in (default: as its book says)."),
    JSON,
]
