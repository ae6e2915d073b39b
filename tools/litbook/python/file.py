"""One file of a lecture: its text, its tree, and where in it something stands.

In go texts with their paths, out come files with what Python calls them. It knows
nothing of what the names in them mean.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from litbook.finding import Place
from litbook.python.nodes import first_line, lines_of


@dataclass
class File:
    """One file of a lecture: its text and its tree.

    `filename` is where it lies, or is said to, and what its code objects are called; `module` is what Python
    calls it, `name` what it is called within the lecture: "" for the only file and for `__init__`, else
    `models`.
    """

    path: str  # as messages and the record name it
    text: str
    tree: ast.Module
    filename: str = ""
    module: str = ""
    name: str = ""
    number: int = 0
    cuts: list[tuple[int, int]] = field(default_factory=list)  # where a shown line ends, before its directive
    warns: bool = True  # whether the compiler may have something to say about the text

    lines: list[str] = field(init=False, repr=False)  # without their ends, counted as Python counts them

    def __post_init__(self) -> None:
        self.lines = lines_of(self.text)

    def place(self, line: int, column: int = 1) -> Place:
        """The position `line`:`column` (1-based) with the user's own text."""
        lines = self.lines
        return Place(self.path, line, column, lines[line - 1] if 0 < line <= len(lines) else "")

    def place_of(self, node: ast.stmt | ast.expr | ast.alias) -> Place:
        """Where a node begins. The tree counts columns in bytes, and so no reader does."""
        line = self.lines[node.lineno - 1]
        return self.place(node.lineno, len(line.encode()[: node.col_offset].decode()) + 1)

    def text_of(self, statement: ast.stmt) -> str:
        """The physical lines of a statement, with its decorators."""
        return "\n".join(self.lines[first_line(statement) - 1 : statement.end_lineno])


def with_modules(files: Sequence[File]) -> list[File]:
    """The files of a lecture with their names, for Python and within the lecture; the first has `main`.

    A file in the folder of an `__init__.py` is a module of that package. Any other one stands beside the
    lecture. A lecture that is one file goes without a name of either kind.
    """
    paths = [PurePosixPath(file.path) for file in files]
    package = paths[0].parent.name if paths and paths[0].name == "__init__.py" else ""
    named = list[File]()
    for file, path in zip(files, paths, strict=True):
        inside = package and path.parent == paths[0].parent
        name = "" if path == paths[0] else path.stem
        named.append(replace(file, module=f"{package}.{name}".rstrip(".") if inside else name, name=name))
    return named
