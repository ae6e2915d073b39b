"""What a compiler reads from source or bytecode stays exactly as the author wrote it: here it is found."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from litbook.text import scopes
from litbook.text.imports import Names
from litbook.text.lecture import Lecture
from litbook.text.tree import Definition, dotted, everything

# Decorators and calls that read a function's source or bytecode: torch.compile, torch.jit.script,
# triton.jit, numba.njit. What they get stays exactly as the author wrote it.
COMPILERS = {"compile", "jit", "script", "njit", "trace_fn"}
_FOREIGN = re.compile(r"[^\W\x00-\x7f]")  # a letter that Python may read as an ASCII one in a name


def leave_compiled_code_alone(found: Lecture, names: Names) -> None:
    """Find what a compiler will read from source or bytecode, and what that calls in turn.

    What is named in `torch.compile(f)` or decorated with `@triton.jit` is known by name; for a call on
    anything else (a module object, say) every class of the lecture is left alone.
    """
    named = _definitions(found, names)
    found.compiled = _with_called(found, named, _compiled(found, named))
    found.untouched = found.compiled | _with_called(found, named, found.untouched)


Named = list[dict[str, list[ast.AST]]]


def _with_called(found: Lecture, named: Named, first: Iterable[ast.AST]) -> set[ast.AST]:
    """These definitions, and what they call in turn."""
    done, todo = set[ast.AST](), [*first]
    while todo:
        node = todo.pop()
        done.add(node)
        there, outer = named[found.functions[found.function_of[node]].file], {*scopes.outer(node)}
        for used in everything(node):
            if not isinstance(used, ast.Name) or used in outer:
                todo.extend(it for it in there.get(_called(used), []) if it not in done)
    return done


def _definitions(found: Lecture, names: Names) -> Named:
    """For every file, the definitions of the lecture by their names there: its own, and what it imports."""
    named: Named = [{name: [it] for name, it in names.known(file.number).items()} for file in found.files]
    for node, number in found.function_of.items():
        if isinstance(node, Definition):
            named[found.functions[number].file].setdefault(node.name, []).append(node)
    return named


def _compiled(found: Lecture, named: Named) -> Iterator[ast.AST]:
    """The functions and classes that are handed to a compiler, by a decorator or a call."""
    classes = [node for node in found.function_of if isinstance(node, ast.ClassDef)]
    for file, there in zip(found.files, named, strict=True):
        suspects = [node for node in file.tree.body if _may_name_a_compiler(file.text_of(node))]
        for node in (inner for suspect in suspects for inner in everything(suspect)):
            if isinstance(node, Definition):
                if any(_compiles(decorator) for decorator in node.decorator_list):
                    yield node
            elif isinstance(node, ast.Call) and _compiles(node.func):
                yield from _handed_over(node, there, classes)


def _handed_over(
    call: ast.Call, named: dict[str, list[ast.AST]], classes: list[ast.ClassDef]
) -> Iterator[ast.AST]:
    """What a call gives a compiler to read."""
    match [*call.args[:1], *(k.value for k in call.keywords if k.arg == "model")]:
        case [ast.Name() | ast.Attribute() as given] if dotted(given) in named:
            yield from named[dotted(given)]
        case [ast.Constant() | ast.JoinedStr()]:
            pass  # text: a pattern or a program, no function
        case given:  # a module object, or nothing at all in `model.compile()`
            inner = [n for expression in given for n in ast.walk(expression)]
            yield from (n for used in inner for n in named.get(_called(used), []))
            yield from classes


def _may_name_a_compiler(text: str) -> bool:
    return any(word in text for word in COMPILERS) or bool(not text.isascii() and _FOREIGN.search(text))


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
