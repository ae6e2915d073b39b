"""What a lecture may read beside it: a copy, in the folder where it runs.

In plain Python a relative path means what stands beside the lecture. Here it runs in a folder of its own, so
that what it writes reaches nobody's tree. What its text, or a module beside it that it imports, quotes
is copied there first: for `"images/a.png"` that file, for `f"images/{name}.png"` the folder, and
for `f"{name}.csv"` every file that ends so.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
import shutil
import tokenize
from collections.abc import Iterable
from pathlib import Path

from litbook.text.lecture import INSTALLED, Lecture
from litbook.text.tree import modules_in

LARGEST = 1 << 30  # bytes of one entry of the folder
_NEVER = {*INSTALLED, "__pycache__", "node_modules"}
_QUOTED = re.compile(r"""["']([^"'\n]{1,200})["']""")


def texts(lecture: Lecture, folder: Path) -> tuple[list[str], set[str]]:
    """Texts: the lecture's and those of modules in `folder` that it imports in turn; and what they import."""
    said, imported = [file.text for file in lecture.files], set[str]()
    todo = [file.tree for file in lecture.files]
    while todo:
        for name in {*modules_in(todo.pop())} - imported:
            imported.add(name)
            with contextlib.suppress(OSError, ValueError, SyntaxError):  # the lecture's import will say so
                with tokenize.open(folder / f"{name}.py") as file:
                    said.append(file.read())
                todo.append(ast.parse(said[-1]))
    return said, imported


def copy_named(texts: Iterable[str], folder: Path, to: Path) -> None:
    """Copy what these texts may read of `folder` into `to`: no links to folders, nothing hidden."""
    # The files and folders that they name, by their paths from there; of `"a/{b}.c"` the folder `a`, and of
    # `f"{b}.c"` every file that ends so.
    quoted = set[str]().union(*map(_QUOTED.findall, texts))
    endings = {Path(it).suffix for it in quoted} - {"", ".py"}
    places = {Path(it.name) for it in folder.iterdir() if it.suffix in endings and it.is_file()}
    for text in quoted:
        with contextlib.suppress(OSError, ValueError):  # a text that is no path
            place = Path(text)
            while place.name and not (folder / place).exists():
                place = place.parent
            inside = place.name and ".." not in place.parts and not place.is_absolute()
            if inside and not any(it in _NEVER or it.startswith(".") for it in place.parts):
                places.add(place)
    for place in sorted(it for it in places if places.isdisjoint(it.parents)):
        with contextlib.suppress(OSError, shutil.Error):  # reading it will say so
            entry = folder / place
            if _bytes(entry) > LARGEST:
                continue
            (to / place).parent.mkdir(parents=True, exist_ok=True)
            if entry.is_dir():
                copy = shutil.copyfile
                shutil.copytree(entry, to / place, ignore=_left_out, copy_function=copy, dirs_exist_ok=True)
            else:
                shutil.copyfile(entry, to / place)


def _left_out(folder: str, names: list[str]) -> list[str]:
    """What is not copied of a folder: installed libraries, and links to folders, which may lead anywhere."""
    if "pyvenv.cfg" in names:
        return names
    return [
        name
        for name in names
        if name in _NEVER
        or name.startswith(".")
        or (os.path.islink(f"{folder}/{name}") and not os.path.isfile(f"{folder}/{name}"))  # noqa: PTH114, PTH113  for each of many files
    ]


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
