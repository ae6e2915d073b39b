"""`litbook new`: a book in a folder of its own."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from litbook.cli.output import harmless, say
from litbook.cli.parameters import FILE
from litbook.project import CONFIG


@click.command
@click.argument("folder", metavar="DIR", type=FILE)
def new(folder: Path) -> int:
    """Begin a book: one lecture, and all that publishes it.

    In DIR, a folder that is empty, or not there yet. Beside an mkdocs.yml it adds the lecture alone, and
    says what else to write.
    """
    from litbook.site import scaffold

    if (folder / CONFIG).is_file():
        added = scaffold.add(folder)
        say(
            "\n    ".join(["added:", *added]) if added else "nothing is missing beside the lectures there are"
        )
        if lacks := scaffold.lacks(folder):
            say("\nTo be written by you:\n    " + "\n    ".join(lacks))
        return 0

    files = scaffold.begin(folder)
    go = "" if folder.samefile(Path.cwd()) else f"cd {shlex.quote(str(folder))} && "
    say("\n    ".join([f"{harmless(str(folder))} holds a book of one lecture:", *files]))
    say(f"\nTo see it, and each change when you save it:\n    {harmless(go)}litbook serve")
    return 0
