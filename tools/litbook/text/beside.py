"""`__beside__ = ("counters",)` -> the modules beside a lecture that are lecture text, too.

In goes the file that has `main`; out come the names that stand there, or what is wrong with them. It looks
for the modules' files and opens none.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeGuard

from litbook.errors import Problem
from litbook.project import PATTERN
from litbook.text.lecture import File

WORD = "__beside__"


def modules_beside(file: File, folder: Path, own: Collection[str], problems: list[Problem]) -> list[str]:
    """The names of the modules in `folder` that the lecture takes as text; `own` are those that it has."""
    found: list[str] = []
    for name, node in _named(file, problems):
        if name in found:
            what, way_out = f"{WORD} names {name!r} twice", "name it once"
        elif fnmatch(name, PATTERN):
            what, way_out = f"{name!r} is a lecture itself", "move what both need into a module beside them"
        elif name in own:
            what, way_out = f"the lecture itself has a module {name!r}", "give one of them another name"
        elif name in sys.stdlib_module_names:
            what, way_out = f"{name!r} is a module of Python's own", "give yours another name"
        elif not name.isidentifier() or not (folder / f"{name}.py").is_file():
            there = {it.stem for it in folder.glob("*.py") if not fnmatch(it.stem, PATTERN)}
            what = f"there is no module {name!r} beside the lecture"
            way_out = f"beside it stand: {', '.join(sorted(there.difference(own))) or 'none'}"
        else:
            found.append(name)
            continue
        problems.append(Problem("beside", what, file.at(node), way_out))
    return found


def _named(file: File, problems: list[Problem]) -> Iterator[tuple[str, ast.expr]]:
    """What `__beside__` holds, read from the tree: each name, and where it stands."""
    if WORD not in file.text:
        return
    said = {node.targets[0]: node.value for node in file.tree.body if is_beside(node)}
    stated = (node for node in ast.walk(file.tree) if isinstance(node, ast.Name) and node.id == WORD)
    for number, node in enumerate(it for it in stated if isinstance(it.ctx, ast.Store)):
        match said.get(node):
            case ast.Tuple(elts=names) | ast.List(elts=names) if number == 0 and all(map(_is_text, names)):
                yield from ((it.value, it) for it in names)  # type: ignore[attr-defined]  # all are constants
            case _:
                what = f"{WORD} is said once, at the left margin, as strings that stand there"
                way_out = f'write the names of modules beside the lecture: {WORD} = ("counters",)'
                problems.append(Problem("beside", what, file.at(node), way_out))


def is_beside(node: ast.stmt) -> TypeGuard[ast.Assign]:
    """`__beside__ = …`, which says nothing to a reader."""
    match node:
        case ast.Assign(targets=[ast.Name(id="__beside__")]):
            return True
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
