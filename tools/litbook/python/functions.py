"""A text and the lines of a function in it -> its syntax tree, and where it touches its names."""

from __future__ import annotations

import ast
import bisect
import functools
from collections.abc import Mapping, Sequence

from litbook.python import scopes
from litbook.python.nodes import blocks, own_nodes, parse_text, pause_collection


def find_function(text: str, path: str, first: int, last: int) -> ast.FunctionDef | None:
    """The outermost function on these lines of the file; None where there is none, or no Python."""
    functions = _functions(text, path)
    for node in functions[bisect.bisect_left(functions, first, key=lambda it: it.lineno) :]:
        if node.lineno > last:
            break
        if (node.end_lineno or 0) <= last:
            return node
    return None


@functools.lru_cache(maxsize=64)  # asked for every section of a file
@pause_collection()
def _functions(text: str, path: str) -> Sequence[ast.FunctionDef]:
    """All functions of a text, in the order of their lines."""
    try:
        tree = parse_text(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = (node for node in blocks(tree) if isinstance(node, ast.FunctionDef))
    return sorted(found, key=lambda node: node.lineno)


@functools.lru_cache(maxsize=1024)
def touched_lines(text: str, path: str, first: int, last: int) -> Mapping[str, tuple[int, ...]]:
    """For each name of a function, the lines that give it a value or may change what it names, in order."""
    function = find_function(text, path, first, last)
    lines = dict[str, list[int]]()
    for node in own_nodes(function) if function else ():
        if isinstance(node, ast.stmt):
            for name in scopes.touched_names(node, arguments=False):
                lines.setdefault(name, []).append(node.lineno)
    return {name: tuple(sorted(some)) for name, some in lines.items()}
