"""`litbook pdf`: the site, printed by a browser."""

from __future__ import annotations

from pathlib import Path

import click

from litbook.cli.build import build_site, require_mkdocs
from litbook.cli.output import harmless, say
from litbook.cli.parameters import CONFIG_FILE, FILE, find_book
from litbook.errors import LitbookError


@click.command(params=[CONFIG_FILE])
@click.argument("file", metavar="FILE.pdf", type=FILE)
@click.option("--asides", type=click.Choice(["open", "out"]), default="open", help="Default: open.")
@click.option("--browser", metavar="PROGRAM", default="", help="Default: the first Chromium here.")
def pdf(file: Path, asides: str, browser: str, config_file: Path | None) -> int:
    """Build the site, strictly, and print all of it as one PDF."""
    project = find_book(config_file)
    config = project.config
    require_mkdocs(config, "pypdf")
    from litbook.site import pdf as book

    if not file.resolve().parent.is_dir():
        raise LitbookError(f"{file}: there is no folder {file.parent}\n    create it first")
    program = book.browser(browser)  # before the build, which takes its time
    from litbook.run import process

    with process.private_folder() as folder:
        menu = folder / "menu.json"
        if status := build_site(config, folder / "site", menu):
            return status
        title, address = book.title_and_address(config)
        pages = book.menu(menu, project.names())
        count = book.write(folder / "site", file, program, title, pages, asides=asides, address=address)
    say(harmless(f"{file} has {count} pages"))
    return 0
