"""The book's pages as plain Markdown with what they need, for generators of sites that know no plugin.

In goes the configuration of a book, out comes a folder with `mkdocs.yml` and `docs/`: the author's pages and
those of the lectures, with styles, scripts, notebooks and pictures. A generator that reads Python-Markdown's
extensions and MkDocs' configuration (Zensical, MkDocs itself without this plugin) builds the site from it.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import yaml
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from mkdocs.utils.yaml import yaml_load

from litbook.errors import LitbookError
from litbook.files import write
from litbook.html.elements import Page
from litbook.project import CONFIG
from litbook.rules.outcome import harmless
from litbook.site.plugin import LitbookPlugin

KEPT = tuple("site_name site_url site_description site_author copyright repo_url repo_name extra".split())


def pages(config_file: Path, folder: Path) -> list[str]:
    """Write the book's pages into a folder that is empty or not there; what is wrong with it comes back.

    Raises `LitbookError` where anything is in the folder, and where the book cannot be built at all.
    """
    if folder.exists() and any(folder.iterdir()):
        raise LitbookError(f"{folder} is not empty, and nothing was written\n    name another folder")
    logging.basicConfig(format="%(message)s")
    logging.getLogger("mkdocs").setLevel(logging.CRITICAL)  # what is wrong comes back
    try:
        config = load_config(str(config_file))
        ours = config.plugins.get("litbook")
        if not isinstance(ours, LitbookPlugin):
            raise LitbookError(f"{CONFIG} has no plugin litbook\n    plugins: [search, litbook]")
        ours.config["workbook"] = False  # a plugin draws them
        ours.on_startup(command="build", dirty=False)
        try:
            ours.on_config(config)
            # Every file of the docs; on the author's pages what comes out of the records is put in its place.
            docs = Path(config.docs_dir)
            for source in sorted(path for path in docs.rglob("*") if path.is_file()):
                uri, copy = source.relative_to(docs).as_posix(), folder / "docs" / source.relative_to(docs)
                if source.suffix == ".md" and not isinstance(ours.made.get(uri), Page):
                    write(copy, ours.fill_places(source.read_text(encoding="utf-8")).encode())
                else:
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, copy)
        finally:
            ours.on_build_error(error=LitbookError("done"))  # lets go of the book
    except Abort as error:
        raise LitbookError(str(error)) from None
    with config_file.open(encoding="utf-8") as file:
        given = yaml_load(file)
    # What a generator without our plugin has to be told: pages, styles, scripts, Markdown's extensions.
    theme = given.get("theme") or {}
    theme = {"name": theme} if isinstance(theme, str) else dict(theme)
    settings = {name: given[name] for name in KEPT if name in given}
    settings |= {
        "docs_dir": "docs",
        "theme": theme | {"features": config.theme["features"], "font": False},
        "extra_css": [str(style) for style in config.extra_css],
        "extra_javascript": [{"path": str(script), "defer": True} for script in config.extra_javascript],
        "markdown_extensions": [
            {name: options} if (options := config.mdx_configs.get(name)) else name
            for name in config.markdown_extensions
        ],
        "nav": config.nav
        or ours.menu(file.relative_to(docs).as_posix() for file in sorted(docs.rglob("*.md"))),
    }
    text = yaml.dump(settings, sort_keys=False, allow_unicode=True)
    write(folder / CONFIG, text.encode())
    return [harmless(finding.text(coded=True)) for finding in ours.findings]
