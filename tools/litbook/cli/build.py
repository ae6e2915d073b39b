"""`litbook build`: MkDocs builds the site, strictly."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import click

from litbook.cli.parameters import CONFIG_FILE, FILE, find_book
from litbook.errors import LitbookError
from litbook.project import MENU, Project


@click.command(params=[CONFIG_FILE])
@click.option("--site-dir", metavar="DIR", type=FILE, help="Where to (default: as mkdocs.yml says).")
def build(site_dir: Path | None, config_file: Path | None) -> int:
    """Build the site; every problem fails it."""
    project = find_book(config_file)
    require_mkdocs(project.config)
    return build_site(project.config, site_dir)


def build_site(config: Path, site_dir: Path | None, menu: Path | None = None) -> int:
    """The exit status of MkDocs. The file `menu` gets the pages of the navigation, in its order."""
    command = [sys.executable, *"-m mkdocs build --strict --config-file".split(), str(config)]
    command += ["--site-dir", str(site_dir)] if site_dir else []
    env = {**os.environ, MENU: str(menu)} if menu else None
    return subprocess.run(command, check=False, env=env).returncode


def require_mkdocs(config: Path, *others: str) -> None:
    """Raises where what draws a site is not installed, or its configuration leaves us out.

    From then on Material says nothing of its own end: docs/maintain.md says what then.
    """
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "true")
    for name in ("mkdocs", *others):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(name=name)
    if not Project.is_drawn(config):  # MkDocs would build a site without them, and find nothing wrong
        what = f"{config.name} names no plugin litbook: no lecture runs"
        raise LitbookError(f"{what}\n    add it: plugins: [search, litbook]")
