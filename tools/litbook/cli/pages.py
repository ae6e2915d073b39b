"""`litbook pages`: the book as plain Markdown."""

from __future__ import annotations

from pathlib import Path

import click

from litbook.cli.build import require_mkdocs
from litbook.cli.output import harmless, say
from litbook.cli.parameters import CONFIG_FILE, FILE, find_book
from litbook.project import CONFIG


@click.command(params=[CONFIG_FILE])
@click.argument("folder", metavar="DIR", type=FILE)
def pages(folder: Path, config_file: Path | None) -> int:
    """Write the pages as plain Markdown, for any generator of sites.

    With all they need, into DIR: a folder that is empty, or not there yet.
    """
    config = find_book(config_file).config
    require_mkdocs(config)
    from litbook.site import export

    problems = export.pages(config, folder)
    for text in problems:
        say(text)
    say(harmless(f"{folder} holds the book as Markdown, with {CONFIG}"))
    return int(bool(problems))
