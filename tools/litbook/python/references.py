"""A lecture's text -> where it names its own functions, classes and constants. Runs nothing.

A name means the definition where no scope around it binds that name: it is no parameter, no local variable,
no target of a comprehension. A keyword argument of that name is no name at all, and an attribute only behind
the name of a file: `models.Decoder`.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from litbook.python import scopes
from litbook.python.file import File, with_modules
from litbook.python.imports import NameResolver
from litbook.python.nodes import (
    DefinitionNode,
    dotted,
    head_of,
    normalize_newlines,
    own_nodes,
    parse_text,
    pause_collection,
)


@dataclass(frozen=True)
class Mention:
    """One place: `line` counts from 1, `column` in characters from 0; None where the tree cannot tell.

    Of `models.Decoder` the column is that of `Decoder`.
    """

    name: str
    line: int
    column: int | None


@functools.lru_cache(maxsize=64)  # every page of a lecture asks, of each of its files
@pause_collection()
def mentions(text: str, defined: frozenset[str] | None = None, path: str = "<text>") -> tuple[Mention, ...]:
    """Where `text` reads one of the names `defined`, in order. Of what cannot be parsed, nothing.

    Without `defined`: the functions and classes of its own top level.
    """
    tree = _parse(text, path)
    if tree is None:
        return ()
    if defined is None:
        defined = frozenset(_definitions(tree))
    names = [name for name in scopes.outer_names(tree) if isinstance(name.ctx, ast.Load)]
    places: list[tuple[str, ast.Name | ast.Attribute]] = [
        (name.id, name) for name in names if name.id in defined
    ]
    if any("." in name for name in defined):
        heads = {id(name) for name in names}
        members = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        places += [
            (dotted(node), node) for node in members if dotted(node) in defined and id(head_of(node)) in heads
        ]
    read, lines = list[Mention](), normalize_newlines(text).split("\n")
    for name, node in places:
        last = name.rpartition(".")[2]
        number, at = node.lineno, node.col_offset
        if isinstance(node, ast.Attribute):
            number, at = node.end_lineno or number, (node.end_col_offset or 0) - len(last.encode())
        line = lines[number - 1]
        column = len(line.encode()[:at].decode(errors="replace"))
        # Inside an f-string older Pythons give columns of something else; these are left out.
        read.append(Mention(name, number, column if line.startswith(last, column) else None))
    return tuple(sorted(read, key=lambda mention: (mention.line, mention.column or 0)))


Files = tuple[tuple[str, str], ...]  # of a lecture: each a path and a text


@functools.lru_cache(maxsize=4)
def meanings(files: Files) -> tuple[dict[str, tuple[int, str]], ...]:
    """For each file of a lecture: which definition of which file it means by a name."""
    trees, names = _read(files)
    return tuple(
        {name: (names.home[node], node.name) for name, node in names.imported_definitions(file).items()}
        | {name: (file, name) for name in _definitions(tree)}
        for file, tree in enumerate(trees)
    )


@functools.lru_cache(maxsize=4)
def constants(files: Files) -> tuple[dict[str, tuple[int, int]], ...]:
    """For each file of a lecture: names that a line at the left margin gives a value, its file and line.

    That may be another file, from which the name is imported.
    """
    trees, resolved = _read(files)
    given = list[dict[str, tuple[int, int]]]()
    for file, tree in enumerate(trees):
        often = Counter(name for node in tree.body for name in scopes.binds(node))
        lines = (n for n in tree.body if isinstance(n, ast.Assign) and n.lineno == n.end_lineno)
        names = {name: node.lineno for node in lines for name in scopes.binds(node) if often[name] == 1}
        given.append({name: (file, line) for name, line in names.items()})
    imported = []
    for file, tree in enumerate(trees):
        nodes = (node for node in tree.body if isinstance(node, ast.ImportFrom))
        names_here = (alias.asname or alias.name for node in nodes for alias in node.names)
        homes = {name: resolved.source(file, name) for name in names_here}
        imported.append({name: given[i][home] for name, (i, home) in homes.items() if home in given[i]})
    return tuple(own | others for own, others in zip(given, imported, strict=True))


@functools.lru_cache(maxsize=4)
@pause_collection()
def _read(files: Files) -> tuple[list[ast.Module], NameResolver]:
    """The trees of the files, and what names mean between them."""
    trees = [_parse(text, path) or ast.Module([], []) for path, text in files]
    return trees, NameResolver(
        with_modules([File(*file, tree) for file, tree in zip(files, trees, strict=True)])
    )


def _parse(text: str, path: str) -> ast.Module | None:
    try:
        return parse_text(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _definitions(tree: ast.Module) -> Iterable[str]:
    return (node.name for node in own_nodes(tree) if isinstance(node, DefinitionNode))
