"""What a lecture may read beside it: a copy, in the folder where it runs.

In plain Python a relative path means what stands beside the lecture. Here it runs in a folder of its own, so
that what it writes reaches nobody's tree. What its text, or a module beside it that it imports, quotes
is copied there first: for `"images/a.png"` that file, for `f"images/{name}.png"` the folder, and
for `f"{name}.csv"` every file that ends so.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from litbook.finding import Finding
from litbook.lecture import siblings
from litbook.lecture.model import Lecture
from litbook.python.nodes import blocks, modules_in
from litbook.record.model import LIBRARIES


def find_namesakes(lecture: Lecture, folder: Path, imported: Iterable[str]) -> list[Finding]:
    """Modules in `folder` that are imported, and named like one of Python's or of a library that runs us.

    Which of both an `import` finds then depends on what has been imported before: in plain Python, in a run
    that somebody watches, and in a build.
    """
    problems = list[Finding]()
    for name in sorted({*imported} & {*sys.stdlib_module_names, *LIBRARIES, "litbook", "msgspec", "rich"}):
        beside = next((at for at in (f"{name}.py", f"{name}/__init__.py") if (folder / at).is_file()), None)
        if beside is not None:
            nodes = ((file, node) for file in lecture.files for node in blocks(file.tree))
            imports = ((file, node) for file, node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
            place = next((file.place_of(node) for file, node in imports if name in modules_in(node)), None)
            what = f"{beside} beside the lecture is named like a module that is there already"
            problems.append(Finding("namesake", what, place, "give yours another name"))
    return problems


def copy_named(texts: Iterable[str], folder: Path, to: Path) -> None:
    """Copy what these texts may read of `folder` into `to`: no links to folders, nothing hidden."""
    quoted = set[str]().union(*map(siblings.QUOTED.findall, texts))
    for place in sorted(siblings.quoted_files(quoted, folder)):
        with contextlib.suppress(OSError, shutil.Error):  # reading it will say so
            entry = folder / place
            # Files, counted until there are too many bytes.
            files = (f"{at}/{name}" for at, _, names in os.walk(entry) for name in names)
            sizes = (os.stat(file, follow_symlinks=False).st_size for file in files)  # noqa: PTH116
            one = [entry.stat().st_size] if entry.is_file() else []
            if any(total > siblings.LARGEST for total in itertools.accumulate(itertools.chain(one, sizes))):
                continue
            (to / place).parent.mkdir(parents=True, exist_ok=True)
            if entry.is_dir():
                copy, out = shutil.copyfile, siblings.left_out
                shutil.copytree(entry, to / place, ignore=out, copy_function=copy, dirs_exist_ok=True)
            else:
                shutil.copyfile(entry, to / place)
