"""A strict build of the whole site, and where its time goes: `python -m benchmarks.builds RESULT`.

RESULT is a JSON file: the seconds of the build without the imports before it, and those of its stages. What
no stage accounts for is MkDocs': Markdown to HTML, templates, the search index, files.
"""

from __future__ import annotations

import json
import sys
import tempfile
from concurrent.futures import Future
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import outside
from benchmarks.one import Found, timed


def stages() -> list[tuple[Any, str, str]]:
    """The functions that are timed, in the thread that builds: where they are, their names, what they do."""
    from litbook.html import page, player
    from litbook.notebook import build
    from litbook.record import compare

    return [
        (Future, "result", "waiting for the lectures, each in its process"),
        (compare, "compare", "comparing with recordings"),
        (page, "pages", "drawing pages"),
        (player, "data", "what the player steps through"),
        (build, "notebooks", "notebooks"),
    ]


def built(folder: str) -> Found:
    """The site of this book, built into `folder`.

    Raises MkDocs' `Abort` where the strict build fails, `ValueError` where stages overlap.
    """
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
    rest = seconds - sum(parts.values())
    if rest < 0:
        raise ValueError(f"the stages of a build overlap by {-rest:.1f} s: one is timed in several threads")
    return {"seconds": seconds, "parts": parts | {"MkDocs": rest}}


def main(result: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(result).write_text(json.dumps(built(folder)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
