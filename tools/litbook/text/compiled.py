"""What a compiler reads from source or bytecode stays exactly as the author wrote it: here it is found."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from litbook.text.lecture import Lecture
from litbook.text.tree import Definition, dotted, everything

# Decorators and calls that read a function's source or bytecode: torch.compile, torch.jit.script,
# triton.jit, numba.njit. What they get stays exactly as the author wrote it.
COMPILERS = {"compile", "jit", "script", "njit", "trace_fn"}
_FOREIGN = re.compile(r"[^\W\x00-\x7f]")  # a letter that Python may read as an ASCII one in a name


def leave_compiled_code_alone(found: Lecture) -> None:
    """Find what a compiler will read from source or bytecode, and what that calls in turn.

    What is named in `torch.compile(f)` or decorated with `@triton.jit` is known by name; for a call on
    anything else (a module object, say) every class of the lecture is left alone.
    """
    named: dict[str, list[ast.AST]] = {}
    for node in found.function_of:
        if isinstance(node, Definition):
            named.setdefault(node.name, []).append(node)
    todo = [*found.untouched, *_compiled(found, named)]
    while todo:
        node = todo.pop()
        found.untouched.add(node)
        inner = everything(node)
        own = _variables(inner)
        for used in inner:
            if not (isinstance(used, ast.Name) and used.id in own):
                todo.extend(it for it in named.get(_called(used), []) if it not in found.untouched)


def _variables(nodes: list[ast.AST]) -> set[str]:
    """Parameters and variables of a function: where it says `gradients`, it does not mean the section."""
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    taken = {n.arg for n in nodes if isinstance(n, ast.arg)}
    shared = {n for it in nodes if isinstance(it, ast.Global | ast.Nonlocal) for n in it.names}
    return (stored | taken) - shared


def _compiled(found: Lecture, named: dict[str, list[ast.AST]]) -> Iterator[ast.AST]:
    """The functions and classes that are handed to a compiler, by a decorator or a call."""
    classes = [node for several in named.values() for node in several if isinstance(node, ast.ClassDef)]
    suspects = [node for node in found.tree.body if _may_name_a_compiler(found.text_of(node))]
    for node in (inner for suspect in suspects for inner in everything(suspect)):
        if isinstance(node, Definition):
            if any(_compiles(decorator) for decorator in node.decorator_list):
                yield node
        elif isinstance(node, ast.Call) and _compiles(node.func):
            match [*node.args[:1], *(k.value for k in node.keywords if k.arg == "model")]:
                case [ast.Name(id=name)] if name in named:
                    yield from named[name]
                case [ast.Constant() | ast.JoinedStr()]:
                    pass  # text: a pattern or a program, no function
                case given:  # a module object, or nothing at all in `model.compile()`
                    inner = [n for expression in given for n in ast.walk(expression)]
                    yield from (n for used in inner for n in named.get(_called(used), []))
                    yield from classes


def _may_name_a_compiler(text: str) -> bool:
    return any(word in text for word in COMPILERS) or bool(not text.isascii() and _FOREIGN.search(text))


def _called(node: ast.AST) -> str:
    """The name by which an expression may mean a definition of this file: `f`, or `f` of `self.f`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return name
    return ""


def _compiles(node: ast.expr) -> bool:
    """Whether `node` names a compiler: `torch.compile`, `triton.jit(...)`, `partial(torch.compile, ...)`."""
    if isinstance(node, ast.Call):
        if dotted(node.func).endswith("partial") and node.args:
            return _compiles(node.args[0])
        node = node.func
    head, _, tail = dotted(node).rpartition(".")
    return (tail in COMPILERS and head not in ("re", "regex", "")) or dotted(node) in ("njit", "jit")
