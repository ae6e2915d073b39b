"""A lecture's text -> where it names one of its own functions and classes. Runs nothing.

A name means the definition where no scope around it binds that name: it is no parameter, no local variable,
no target of a comprehension. An attribute or a keyword argument of that name is no name at all.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from litbook.text.source import Definition, first_line, own_nodes, uncollected

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Nodes = list[
    tuple[ast.AST, frozenset[str]]
]  # what is still to be read, with the names that are hidden there


@dataclass(frozen=True)
class Mention:
    """One place: `line` counts from 1, `column` in characters from 0; None where the tree cannot tell."""

    name: str
    line: int
    column: int | None


@functools.lru_cache(maxsize=4)  # every page of a lecture asks
@uncollected()
def mentions(text: str) -> tuple[Mention, ...]:
    """Where `text` loads a name that its top level defines, in order. Of what cannot be parsed, nothing."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # as Python counts lines
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    defined = {node.name for node in own_nodes(tree) if isinstance(node, Definition)}
    lines = text.split("\n")
    found = [it for node in tree.body for it in _within(lines, node) if it.name in defined]
    return tuple(sorted(found, key=lambda it: (it.line, it.column or 0)))


# By text, and where in it: the names of one statement of the module, its first line counted as 0. Of a text
# that is edited, all but one statement are known.
_NAMES: dict[tuple[str, int, int], tuple[Mention, ...]] = {}
_KNOWN = 5000  # of them are remembered


def _within(lines: list[str], node: ast.stmt) -> Iterator[Mention]:
    """Every name that a statement of the module loads from the module."""
    first = first_line(node)
    text = "\n".join(lines[first - 1 : node.end_lineno])
    key = text, node.col_offset, node.end_col_offset or 0
    if key not in _NAMES:
        if len(_NAMES) >= _KNOWN:
            _NAMES.clear()
        found = (_mention(lines, name) for name in _free(node))
        _NAMES[key] = tuple(replace(it, line=it.line - first) for it in found)
    return (replace(it, line=it.line + first) for it in _NAMES[key])


def _mention(lines: list[str], node: ast.Name) -> Mention:
    """Inside an f-string older Pythons give columns of something else; these are left out."""
    line = lines[node.lineno - 1]
    column = len(line.encode()[: node.col_offset].decode(errors="replace"))
    right = line.startswith(node.id, column)
    return Mention(node.id, node.lineno, column if right else None)


def _free(tree: ast.stmt) -> Iterator[ast.Name]:
    """The loaded names that mean something of the module."""
    todo: _Nodes = [(tree, frozenset())]
    while todo:
        node, hidden = todo.pop()
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in hidden:
                yield node
        elif isinstance(node, _Function):
            todo += _in_function(node, hidden)
        elif isinstance(node, ast.ClassDef):
            todo += _in_class(node, hidden)
        elif isinstance(node, _Comprehension):
            own = {n.id for c in node.generators for n in ast.walk(c.target) if isinstance(n, ast.Name)}
            todo += [(child, hidden | own) for child in ast.iter_child_nodes(node)]
        else:
            todo += [(child, hidden) for child in ast.iter_child_nodes(node)]


def _in_function(node: _Function, hidden: frozenset[str]) -> _Nodes:
    """Its body has names of its own; decorators, defaults and annotations stand outside."""
    body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
    inside = {id(n) for n in body}
    own = hidden | _bound(node)
    return [(n, own if id(n) in inside else hidden) for n in ast.iter_child_nodes(node)]


def _in_class(node: ast.ClassDef, hidden: frozenset[str]) -> _Nodes:
    """What a class binds is hidden in its own statements, and not in its methods."""
    own = hidden | _bound(node)
    plain = {id(n) for n in node.body if not isinstance(n, Definition)}
    return [(n, own if id(n) in plain else hidden) for n in ast.iter_child_nodes(node)]


def _bound(node: _Function | ast.ClassDef) -> frozenset[str]:
    """The names that a function or class binds for itself."""
    bound, outer, elsewhere = set[str](), set[str](), set[int]()
    if isinstance(node, _Function):
        a = node.args
        bound |= {arg.arg for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg] if arg}
    for inner in own_nodes(node):
        match inner:
            case ast.comprehension(target=target):
                elsewhere |= {id(n) for n in ast.walk(target)}
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if id(inner) not in elsewhere:
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                bound.add(name)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case ast.Import(names) | ast.ImportFrom(names=names):
                bound |= {(alias.asname or alias.name).split(".")[0] for alias in names}
            case ast.Global(names=names):
                outer |= set(names)
    return frozenset(bound - outer)
