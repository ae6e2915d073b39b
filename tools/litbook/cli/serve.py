"""`litbook serve`: the preview."""

from __future__ import annotations

from pathlib import Path

import click

from litbook.cli.build import require_mkdocs
from litbook.cli.parameters import FILE, seconds
from litbook.project import Project


@click.command
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(1, 65535),
    default=8000,
    show_default=True,
    help="Of localhost, to serve at.",
)
@click.option(
    "--config-file", metavar="FILE", type=FILE, help="Of the site (default: the mkdocs.yml of this book)."
)
@click.option(
    "--timeout",
    metavar="S",
    type=seconds,
    default=300,
    show_default=True,
    help="Stop a lecture after S seconds.",
)
def serve(port: int, config_file: Path | None, timeout: float) -> int:
    """Show the site while lectures are written: what is saved runs."""
    config = config_file or Project.find(Path.cwd()).config
    require_mkdocs(config)
    from litbook.run import process

    # It imports what lectures need while this process imports MkDocs.
    warm = process.Warm(Project.of(config.resolve()).folder)
    from litbook.site.preview import preview

    return preview.serve(config, port, warm, timeout)
