"""A book -> which of its files are saved, made, moved or removed, when saves in a row have settled.

watchfiles watches the folders of lectures and docs. A watch stays with its folder, wherever that is moved,
and knows nothing of one that takes its place: whether they are still there is looked up once a second, as is
the book's configuration, whose folder holds too much to be watched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from watchfiles import Change, watch

from litbook.project import Project

SETTLED = 50  # milliseconds without another save, then a lecture runs
LONGEST = 1600  # milliseconds that saves are waited for, however many follow
LOOK = 1000  # milliseconds until somebody looks whether the watched folders are still there


def saves(project: Project) -> Iterator[set[Path]]:
    """What was saved; where nothing was in `LOOK`, an empty set. Forever."""
    ours = {project.pages, project.assets}

    def counts(_: Change, name: str) -> bool:
        path = Path(name)
        hidden = path.name.startswith(".") or path.name.endswith(("~", ".swp", ".pyc"))
        return not (hidden or "__pycache__" in path.parts or ours & set(path.parents))

    def files(kind: Change, name: str) -> list[Path]:
        """The file; of a new folder all that is in it, since some may have come before it was watched."""
        if not (path := Path(name)).is_dir():
            return [path]
        inside = path.rglob("*") if kind == Change.added else ()
        return [file for file in inside if counts(kind, str(file)) and file.is_file()]

    def look() -> dict[Path, int]:
        """Which folders those of lectures and docs are, and when the configuration was saved; 0 for none."""
        found = dict.fromkeys((project.folder, project.docs, project.config), 0)
        for path in found:
            with contextlib.suppress(OSError):
                found[path] = path.stat().st_mtime_ns if path == project.config else path.stat().st_ino
        return found

    before, late = look(), set[Path]()
    while True:
        folders = [folder for folder in (project.folder, project.docs) if folder.is_dir()]
        watched = watch(
            *folders,
            watch_filter=counts,
            debounce=LONGEST,
            step=SETTLED,
            rust_timeout=LOOK,
            yield_on_timeout=True,
        )
        with contextlib.suppress(FileNotFoundError):  # one goes just now
            for changes in watched:
                now = look()
                moved = {path for path, number in now.items() if number != before[path]}
                late |= moved.union(*(files(*change) for change in changes))
                before = now
                if moved - {project.config}:
                    break  # first a watch that sees what is saved from now on
                yield late
                late = set()
