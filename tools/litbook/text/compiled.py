"""What a compiler reads from source or bytecode stays exactly as the author wrote it: here it is found."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator

from litbook.text import scopes
from litbook.text.file import File
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
    # For every file, the definitions of the lecture by their names there: its own, and what it imports.
    named = [{name: [it] for name, it in found.names.known(file.number).items()} for file in found.files]
    for node, number in found.function_of.items():
        if isinstance(node, Definition):
            named[found.functions[number].file].setdefault(node.name, []).append(node)
    read = [node for file in found.files for node in _read_by_compilers(found, file, named[file.number])]
    found.compiled = _with_called(found, named, read)
    found.untouched = found.compiled | _with_called(found, named, found.untouched)


Named = dict[str, list[Definition]]


def _with_called(found: Lecture, named: list[Named], first: Iterable[ast.AST]) -> set[ast.AST]:
    """These definitions, and what they call in turn."""
    done, todo = set[ast.AST](), [*first]
    while todo:
        node = todo.pop()
        if node not in done:
            done.add(node)
            there = named[found.functions[found.function_of[node]].file]
            todo += [callee for name in names_called(node) for callee in there.get(name, ())]
    return done


@functools.lru_cache(maxsize=4096)  # a save changes one file of a lecture
def names_called(node: ast.AST) -> frozenset[str]:
    """The names by which a definition may call others."""
    outer = {*scopes.outer(node)}
    used = (it for it in everything(node) if not isinstance(it, ast.Name) or it in outer)
    return frozenset(map(_called, used)) - {""}


def _read_by_compilers(found: Lecture, file: File, named: Named) -> Iterator[ast.AST]:
    """The functions and classes that a file hands to a compiler, by a decorator or a call."""
    for statement in file.tree.body:
        text = file.text_of(statement)
        if not any(word in text for word in COMPILERS) and (text.isascii() or not _FOREIGN.search(text)):
            continue
        for node in everything(statement):
            if isinstance(node, Definition) and any(map(_compiles, node.decorator_list)):
                yield node
            elif isinstance(node, ast.Call) and _compiles(node.func):
                match [*node.args[:1], *(k.value for k in node.keywords if k.arg == "model")]:
                    case [ast.Name() | ast.Attribute() as given] if dotted(given) in named:
                        yield from named[dotted(given)]
                    case [ast.Constant() | ast.JoinedStr()]:
                        pass  # text: a pattern or a program, no function
                    case given:  # a module object, or nothing at all in `model.compile()`
                        inner = [used for expression in given for used in ast.walk(expression)]
                        yield from (it for used in inner for it in named.get(_called(used), ()))
                        yield from (it for it in found.function_of if isinstance(it, ast.ClassDef))


def _called(node: ast.AST) -> str:
    """The name by which an expression may mean a definition: `f`, or `f` of `self.f`, or `models.f`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return name
        case ast.Attribute():
            return dotted(node)
    return ""


def _compiles(node: ast.expr) -> bool:
    """Whether `node` names a compiler: `torch.compile`, `triton.jit(...)`, `partial(torch.compile, ...)`."""
    if isinstance(node, ast.Call):
        if dotted(node.func).endswith("partial") and node.args:
            return _compiles(node.args[0])
        node = node.func
    head, _, tail = dotted(node).rpartition(".")
    return (tail in COMPILERS and head not in ("re", "regex", "")) or dotted(node) in ("njit", "jit")
