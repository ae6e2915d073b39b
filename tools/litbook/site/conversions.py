"""Notebooks become pages in processes of their own, while MkDocs is at other pages.

Converting them is half of a build and needs no more than their files. mkdocs-jupyter looks into its cache
before it converts: so it is told to keep one, and workers run it on each notebook ahead of time. What a
worker cannot convert, MkDocs converts itself, and says what is wrong.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from litbook.run import process

PLUGIN = "mkdocs-jupyter"
FEWEST = 4  # notebooks for which starting processes pays


class Conversions:
    """The notebooks of a build on their way; the pages come back through the plugin's cache."""

    def __init__(self, config: Any, notebooks: Iterable[Path]) -> None:
        self._folder = contextlib.ExitStack()  # of this build alone, private, and swept where it was killed
        cache = self._folder.enter_context(process.private_folder())
        options = config["plugins"][PLUGIN].config
        options.update(cache=True, cache_dir=str(cache))
        spawn = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(os.cpu_count() or 1, mp_context=spawn)
        self._running: dict[str, Future[None]] = {
            str(path): self._pool.submit(convert, str(path), dict(options)) for path in notebooks
        }

    def wait_for(self, notebook: str) -> None:
        """Until the notebook at this path is a page, or cannot become one there."""
        if future := self._running.get(notebook):
            with contextlib.suppress(Exception):  # MkDocs meets the same error, and has the words for it
                future.result()

    def close(self) -> None:
        """The build is over."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._folder.close()


def begun(config: Any, notebooks: list[Path]) -> Conversions | None:
    """The conversions of a build; None where it has too few notebooks, or nothing that shows them."""
    pays = PLUGIN in config["plugins"] and len(notebooks) >= FEWEST
    return Conversions(config, notebooks) if pays else None


def convert(notebook: str, options: dict[str, Any]) -> None:
    """Let the plugin convert one notebook as for a page, and keep that in its cache."""
    from mkdocs_jupyter.plugin import Plugin

    plugin = Plugin()
    plugin.load_config(options)
    plugin.on_pre_build(config=None)
    file = SimpleNamespace(src_path=notebook, abs_src_path=notebook)
    page = SimpleNamespace(file=file, abs_url="", title=None)
    plugin.on_pre_page(page, None, None).render(None, None)
