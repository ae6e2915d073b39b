"""What a lecture may read beside it: a copy, in the folder where it runs.

In plain Python a relative path means what stands beside the lecture. Here it runs in a folder of its own, so
that what it writes reaches nobody's tree; what its text, or that of a module beside it, names in quotes is
copied there first: `"images/a.png"` the folder `images`, `f"{name}.csv"` every file that ends so.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from litbook.text.lecture import INSTALLED, Lecture

LARGEST = 1 << 30  # bytes of one entry of the folder
_NEVER = {*INSTALLED, "__pycache__", "node_modules"}


def copy_named(lecture: Lecture, folder: Path, to: Path) -> None:
    """Copy what the lecture may read of `folder` into `to`: no links to folders, nothing hidden."""
    for entry in _named(lecture, folder):
        with contextlib.suppress(OSError, shutil.Error):  # reading it will say so
            if _bytes(entry) > LARGEST:
                continue
            if entry.is_dir():
                shutil.copytree(entry, to / entry.name, ignore=_left_out, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(entry, to / entry.name)


def _named(lecture: Lecture, folder: Path) -> Iterator[Path]:
    texts = [file.text for file in lecture.files]
    for module in folder.glob("*.py"):
        with contextlib.suppress(OSError):
            texts.append(module.read_text(encoding="utf-8", errors="replace"))
    said = "\n".join(texts)
    for entry in folder.iterdir():
        name, suffix = entry.name, entry.suffix
        named = any(f"{quote}{name}" in said for quote in "\"'/")
        alike = suffix not in ("", ".py") and any(f"{suffix}{quote}" in said for quote in "\"'")
        if (named or (alike and entry.is_file())) and not name.startswith(".") and name not in _NEVER:
            yield entry


def _left_out(folder: str, names: list[str]) -> list[str]:
    """What is not copied of a folder: installed libraries, and links to folders, which may lead anywhere."""
    if "pyvenv.cfg" in names:
        return names
    return [it for it in names if it in _NEVER or it.startswith(".") or _leads_away(f"{folder}/{it}")]


def _leads_away(path: str) -> bool:
    return os.path.islink(path) and not os.path.isfile(path)  # noqa: PTH114, PTH113  for each of many files


def _bytes(entry: Path) -> int:
    """The bytes of a file, or of all in a folder; it stops counting where there are too many."""
    if entry.is_file():
        return entry.stat().st_size
    total = 0
    for folder, _, files in os.walk(entry):
        total += sum(os.stat(f"{folder}/{it}", follow_symlinks=False).st_size for it in files)  # noqa: PTH116
        if total > LARGEST:
            break
    return total
