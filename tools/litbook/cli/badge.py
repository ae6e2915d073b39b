"""`litbook badge`: the recordings, counted in a picture."""

from __future__ import annotations

from pathlib import Path

import click

from litbook.cli.parameters import CONFIG_FILE, FILE, find_book
from litbook.files import NotWritten, replace_whole


@click.command(params=[CONFIG_FILE])
@click.argument("file", metavar="FILE.svg", type=FILE)
def badge(file: Path, config_file: Path | None) -> int:
    """Draw the badge that counts what the recordings hold."""
    from litbook.site import badge as picture

    drawn = picture.badge(find_book(config_file)).encode()
    try:
        replace_whole(file, drawn)
    except OSError as error:
        raise NotWritten(file, error) from None
    return 0
