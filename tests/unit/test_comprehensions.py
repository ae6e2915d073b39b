"""No function binds a name in one comprehension that another of its comprehensions reads as a global.

Python 3.12.0 to 3.12.3 (CPython gh-118513) raises UnboundLocalError there, and Ubuntu 24.04 ships 3.12.3. `_` is
the engine's translator, so it is the name that this happens to.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
INLINED = (ast.ListComp, ast.SetComp, ast.DictComp)  # into their function, since 3.12
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes in it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, SCOPES):
            yield from inside(child)


def targets(node: ast.AST) -> set[str]:
    """The names that the comprehensions in a node bind."""
    bound = (generator.target for it in ast.walk(node) for generator in getattr(it, "generators", ()))
    return {it.id for target in bound for it in ast.walk(target) if isinstance(it, ast.Name)}


def clashes(text: str) -> list[tuple[int, str]]:
    """The line of each comprehension that reads a global which another one of the function binds."""
    module, found = ast.parse(text), []
    margin = symtable.symtable(text, "", "exec")
    globals_ = {it.get_name() for it in margin.get_symbols() if it.is_local()} | {*dir(builtins)}
    for function in ast.walk(module):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        arguments = {it.arg for it in ast.walk(function.args) if isinstance(it, ast.arg)}
        comprehensions = [it for it in inside(function) if isinstance(it, INLINED)]
        for one in comprehensions:
            reads = {
                it.id for it in ast.walk(one) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load)
            }
            others = set[str]().union(*(targets(other) for other in comprehensions if other is not one))
            names = (reads & globals_ & others) - targets(one) - arguments
            found += [(one.lineno, name) for name in sorted(names)]
    return found


def test_no_function_of_the_engine_does() -> None:
    files = sorted(TOOLS.rglob("*.py"))
    assert len(files) > 100
    found = [
        f"{file}:{line}: another comprehension binds {name}: call one of them otherwise"
        for file in files
        for line, name in clashes(file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_such_a_function_is_found() -> None:
    one = '_ = str\ndef f():\n    first = [x for x, _ in pairs]\n    return [{_("a"): x} for x in first]\n'
    assert clashes(one) == [(4, "_")]
    own = "_ = str\ndef f(_):\n    first = [x for x, _ in pairs]\n    return [_(x) for x in first]\n"
    assert clashes(own) == [], "of an argument no global is read"
    apart = (
        '_ = str\ndef f():\n    return [x for x, _ in pairs]\ndef g():\n    return [_("a") for x in pairs]\n'
    )
    assert clashes(apart) == []
    lazy = '_ = str\ndef f():\n    first = (x for x, _ in pairs)\n    return [_("a") for x in first]\n'
    assert clashes(lazy) == [], "what yields is a function of its own"
