"""Which names a statement gives a new value. Read off the tree, once, for the record."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_LATER = ("body", "handlers", "orelse", "finalbody", "cases")  # fields that hold statements of their own


def binds(statement: ast.stmt) -> tuple[str, ...]:
    """The names to which the statement, of a compound one its header, gives a new value, in order.

    Assigned, also by `:=`, `for`, `with`, `import`, `def` and `class`. Attributes and items are no names, and
    `x += 1` may change what `x` already is.
    """
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Import(names) | ast.ImportFrom(names=names):
            return tuple(a.asname or a.name.partition(".")[0] for a in names if a.name != "*")
        case ast.AnnAssign(value=None):
            return ()
        case ast.AugAssign(value=value):
            return tuple(dict.fromkeys(_stored(value)))
        case ast.Expr(ast.Call(func=ast.Name(), args=[], keywords=[])) | ast.Pass():
            return ()
    return tuple(dict.fromkeys(_stored(statement)))


def _stored(node: ast.AST) -> Iterator[str]:
    for name, value in ast.iter_fields(node):
        if name in _LATER and isinstance(node, ast.stmt | ast.Lambda):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Name):
                if isinstance(child.ctx, ast.Store):
                    yield child.id
            elif isinstance(child, ast.comprehension):  # its own names are nobody else's
                yield from _walrus(child)
            elif isinstance(child, ast.AST):
                yield from _stored(child)


def _walrus(node: ast.comprehension) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.NamedExpr):
            yield inner.target.id
