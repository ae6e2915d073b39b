"""A lecture's text -> where it names one of its own functions and classes. Runs nothing.

A name means the definition where no scope around it binds that name: it is no parameter, no local variable,
no target of a comprehension. An attribute or a keyword argument of that name is no name at all.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass

from litbook.text import scopes
from litbook.text.tree import Definition, own_nodes, uncollected


@dataclass(frozen=True)
class Mention:
    """One place: `line` counts from 1, `column` in characters from 0; None where the tree cannot tell."""

    name: str
    line: int
    column: int | None


@functools.lru_cache(maxsize=64)  # every page of a lecture asks, of each of its files
@uncollected()
def mentions(text: str, defined: frozenset[str] | None = None) -> tuple[Mention, ...]:
    """Where `text` reads one of the names `defined`, in order. Of what cannot be parsed, nothing.

    Without `defined`: the functions and classes of its own top level.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # as Python counts lines
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    if defined is None:
        defined = frozenset(node.name for node in own_nodes(tree) if isinstance(node, Definition))
    lines = text.split("\n")
    named = (name for name in scopes.outer(tree) if name.id in defined and isinstance(name.ctx, ast.Load))
    return tuple(sorted((_mention(lines, name) for name in named), key=lambda it: (it.line, it.column or 0)))


def _mention(lines: list[str], node: ast.Name) -> Mention:
    """Inside an f-string older Pythons give columns of something else; these are left out."""
    line = lines[node.lineno - 1]
    column = len(line.encode()[: node.col_offset].decode(errors="replace"))
    right = line.startswith(node.id, column)
    return Mention(node.id, node.lineno, column if right else None)
