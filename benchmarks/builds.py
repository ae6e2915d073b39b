"""A strict build of the whole site, and where its time goes: `python -m benchmarks.builds RESULT`.

RESULT is a JSON file: the seconds of the build without the imports before it, and those of its stages. What
no stage accounts for is MkDocs': Markdown to HTML, templates, the search index, files.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from types import ModuleType

from benchmarks import outside
from benchmarks.one import Found, timed


def stages() -> list[tuple[ModuleType, str, str]]:
    """The functions that are timed: their modules, their names there, and what they do."""
    from litbook.document import notebook
    from litbook.html import page, player
    from litbook.record import compare
    from litbook.run import process

    return [
        (process, "_end", "waiting for the lectures, each in its process"),
        (compare, "compare", "comparing with recordings"),
        (page, "pages", "drawing pages"),
        (player, "data", "what the player steps through"),
        (notebook, "notebooks", "notebooks"),
    ]


def built(folder: str) -> Found:
    """The site of this book, built into `folder`. Raises MkDocs' `Abort` where the strict build fails."""
    from mkdocs.commands import build
    from mkdocs.config import load_config

    parts: dict[str, float] = {}
    for room, name, stage in stages():
        setattr(room, name, timed(getattr(room, name), parts, stage))
    start = perf_counter()
    config = load_config(str(outside.REPO / "mkdocs.yml"), strict=True, site_dir=folder)
    config.plugins.on_startup(command="build", dirty=False)
    build.build(config)
    seconds = perf_counter() - start
    return {"seconds": seconds, "parts": parts | {"MkDocs": seconds - sum(parts.values())}}


def main(result: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(result).write_text(json.dumps(built(folder)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
