"""`litbook serve`: the preview."""

from __future__ import annotations

from pathlib import Path

import click

from litbook.cli.build import require_mkdocs
from litbook.cli.parameters import CONFIG_FILE, find_book, seconds
from litbook.project import Project


@click.command(params=[CONFIG_FILE])
@click.option("--port", type=click.IntRange(1, 65535), default=8000, help="Of HOST (default: 8000).")
@click.option("--host", default="localhost", show_default=True, help="0.0.0.0 serves other machines, too.")
@click.option("--open", "opens", is_flag=True, help="Show the site in a browser.")
@click.option(
    "--timeout", metavar="S", type=seconds, default=300, help="Of a lecture (default: 300 seconds)."
)
def serve(port: int, host: str, opens: bool, config_file: Path | None, timeout: float) -> int:
    """Show the site while lectures are written: what is saved runs."""
    config = config_file or find_book(None).config
    require_mkdocs(config)
    from litbook.run import process

    # It imports what lectures need while this process imports MkDocs.
    warm = process.ForkServerRunner(Project.from_config(config.resolve()).folder)
    from litbook.site.preview import preview

    return preview.serve(config, (host, port), warm, timeout, opens=opens)
