"""`__beside__ = ("counters",)` -> the modules beside a lecture that are lecture text, too.

In goes the file that has `main`; out come the names that stand there, or what is wrong with them. It looks
for the modules' files and opens none.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeGuard

from litbook.finding import Finding
from litbook.project import PATTERN
from litbook.python.file import File

WORD = "__beside__"


def modules_beside(file: File, folder: Path, taken: Collection[str], problems: list[Finding]) -> list[str]:
    """The names of the modules in `folder` that the lecture takes as text; `taken` are those that it has."""
    stated, modules = list[tuple[str, ast.expr]](), list[str]()
    values = {node.targets[0]: node.value for node in file.tree.body if is_beside(node)}
    names = (node for node in ast.walk(file.tree) if isinstance(node, ast.Name) and node.id == WORD)
    for number, node in enumerate(name for name in names if isinstance(name.ctx, ast.Store)):
        match values.get(node):
            case ast.Tuple(elts=texts) | ast.List(elts=texts) if number == 0 and all(
                isinstance(text, ast.Constant) and isinstance(text.value, str) for text in texts
            ):
                stated += [(text.value, text) for text in texts]  # type: ignore[attr-defined]
            case _:
                what = f"{WORD} is said once, at the left margin, as strings that stand there"
                way_out = f'write the names of modules beside the lecture: {WORD} = ("counters",)'
                problems.append(Finding("extra-module", what, file.place_of(node), way_out))
    for name, at in stated:
        if name in modules:
            what, way_out = f"{WORD} names {name!r} twice", "name it once"
        elif fnmatch(name, PATTERN):
            what, way_out = f"{name!r} is a lecture itself", "move what both need into a module beside them"
        elif name in taken:
            what, way_out = f"the lecture itself has a module {name!r}", "give one of them another name"
        elif name in sys.stdlib_module_names:
            what, way_out = f"{name!r} is a module of Python's own", "give yours another name"
        elif not name.isidentifier() or not (folder / f"{name}.py").is_file():
            others = {path.stem for path in folder.glob("*.py") if not fnmatch(path.stem, PATTERN)}
            what = f"there is no module {name!r} beside the lecture"
            way_out = f"beside it stand: {', '.join(sorted(others.difference(taken))) or 'none'}"
        else:
            modules.append(name)
            continue
        problems.append(Finding("extra-module", what, file.place_of(at), way_out))
    return modules


def is_beside(node: ast.stmt) -> TypeGuard[ast.Assign]:
    """`__beside__ = …`, which says nothing to a reader."""
    match node:
        case ast.Assign(targets=[ast.Name(id="__beside__")]):
            return True
    return False
