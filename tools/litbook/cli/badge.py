"""`litbook badge`: the recordings, counted in a picture."""

from __future__ import annotations

from pathlib import Path

import click

from litbook.cli.parameters import FILE
from litbook.files import NotWritten, replace_whole
from litbook.project import Project


@click.command
@click.argument("file", metavar="FILE.svg", type=FILE)
def badge(file: Path) -> int:
    """Draw the badge that counts what the recordings hold."""
    from litbook.site import badge as picture

    drawn = picture.badge(Project.find(Path.cwd())).encode()
    try:
        replace_whole(file, drawn)
    except OSError as error:
        raise NotWritten(file, error) from None
    return 0
