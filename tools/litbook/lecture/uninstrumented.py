"""What a compiler reads from source or bytecode stays exactly as the author wrote it: here it is found."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterable, Iterator

from litbook.lecture.model import Lecture
from litbook.python import scopes
from litbook.python.file import File
from litbook.python.nodes import DefinitionNode, all_nodes, blocks, closure, dotted

# What reads a function's source or bytecode is called so, in one of these libraries: torch.compile,
# torch.jit.script, triton.jit, numba.cuda.jit. What it gets stays exactly as the author wrote it.
COMPILERS = {"compile", "jit", "njit", "optimize", "script", "trace", "vectorize", "guvectorize"}
LIBRARIES = {"jax", "mlx", "numba", "torch", "triton"}
# Bases of what is no module of a network.
_PLAIN = {"ABC", "Enum", "Flag", "Generic", "IntEnum", "NamedTuple", "Protocol", "StrEnum", "TypedDict"}
_FOREIGN = re.compile(r"[^\W\x00-\x7f]")  # a letter that Python may read as an ASCII one in a name


def leave_compiled_code_alone(lecture: Lecture) -> None:
    """Find what a compiler will read from source or bytecode, and what that calls in turn.

    What is named in `torch.compile(f)` or decorated with `@triton.jit` is known by name; for a call on
    anything else (a module object, say) every class that may be a module's is left alone. A method of another
    object that is called `compile` or `jit` compiles nothing.
    """
    # For every file, the definitions of the lecture by their names there: its own, and what it imports.
    borrowed = (lecture.names.imported_definitions(file.number) for file in lecture.files)
    named = [{name: [node] for name, node in names.items()} for names in borrowed]
    for node, number in lecture.function_of.items():
        if isinstance(node, DefinitionNode):
            named[lecture.functions[number].file].setdefault(node.name, []).append(node)
    read = [node for file in lecture.files for node in _read_by_compilers(lecture, file, named)]
    lecture.compiled = _with_callees(lecture, named, read)
    lecture.untouched = lecture.compiled | _with_callees(lecture, named, lecture.untouched)


DefinitionsByName = dict[str, list[DefinitionNode]]


def _with_callees(lecture: Lecture, named: list[DefinitionsByName], first: Iterable[ast.AST]) -> set[ast.AST]:
    """These definitions, and what they call in turn."""

    def callees(node: ast.AST) -> Iterator[ast.AST]:
        there = named[lecture.functions[lecture.function_of[node]].file]
        return (callee for name in names_called(node) for callee in there.get(name, ()))

    return {*closure(first, callees)}


@functools.lru_cache(maxsize=4096)  # a save changes one file of a lecture
def names_called(node: ast.AST) -> frozenset[str]:
    """The names by which a definition may call others."""
    outer = {*scopes.outer_names(node)}
    used = (inner for inner in all_nodes(node) if not isinstance(inner, ast.Name) or inner in outer)
    return frozenset(map(_callee_name, used)) - {""}


def _read_by_compilers(lecture: Lecture, file: File, every: list[DefinitionsByName]) -> Iterator[ast.AST]:
    """The functions and classes that a file hands to a compiler, by a decorator or a call."""
    words, origins, named = COMPILERS, dict[str, str](), every[file.number]
    if any(library in file.text for library in LIBRARIES) or not file.text.isascii():
        origins = _origins(file)
        known = (name for name, full in origins.items() if full.rpartition(".")[2] in COMPILERS)
        words = COMPILERS.union(known)
    compiles = functools.partial(_compiles, origins)
    for statement in file.tree.body if origins else ():
        text = file.text_of(statement)
        if not any(word in text for word in words) and (text.isascii() or not _FOREIGN.search(text)):
            continue
        for node in all_nodes(statement):
            if isinstance(node, DefinitionNode) and any(map(compiles, node.decorator_list)):
                yield node
            elif isinstance(node, ast.Call):
                # `model.compile()`, as `torch.nn.Module` has it: on some object, with nothing but options.
                options = not node.args and {keyword.arg for keyword in node.keywords} <= _OPTIONS
                itself = isinstance(node.func, ast.Attribute) and node.func.attr == "compile"
                if not (compiles(node.func) or (itself and options)):
                    continue
                match [*node.args[:1], *(k.value for k in node.keywords if k.arg == "model")]:
                    case [ast.Name() | ast.Attribute() as given] if dotted(given) in named:
                        yield from named[dotted(given)]
                    case [ast.Constant() | ast.JoinedStr()]:
                        pass  # text: a pattern or a program, no function
                    case given:  # a module object, or nothing at all in `model.compile()`
                        inner = [used for expression in given for used in ast.walk(expression)]
                        yield from (callee for used in inner for callee in named.get(_callee_name(used), ()))
                        yield from (d for d in lecture.function_of if _may_be_module(lecture, every, d))


def _callee_name(node: ast.AST) -> str:
    """The name by which an expression may mean a definition: `f`, or `f` of `self.f`, or `models.f`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return name
        case ast.Attribute():
            return dotted(node)
    return ""


def _origins(file: File) -> dict[str, str]:
    """What the names of a file come from: `tc` of `from torch import compile as tc` from "torch.compile"."""
    origins = {library: library for library in LIBRARIES}  # where nobody imports it, its name means it
    for node in blocks(file.tree):
        match node:
            case ast.Import(names):
                for alias in names:
                    top = alias.name.partition(".")[0]
                    origins[alias.asname or top] = alias.name if alias.asname else top
            case ast.ImportFrom(module=str() as module, names=names, level=0):
                origins |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in names}
                if names[0].name == "*" and module.partition(".")[0] in LIBRARIES:
                    origins |= {name: f"{module}.{name}" for name in COMPILERS}
            case ast.Assign(targets=[ast.Name(name)], value=ast.Name() | ast.Attribute() as value):
                head, dot, rest = dotted(value).partition(".")
                origins[name] = f"{origins.get(head, '')}{dot}{rest}"
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) if name in origins:
                del origins[name]
    return origins


def _compiles(origins: dict[str, str], node: ast.expr) -> bool:
    """Whether `node` names a compiler: `torch.compile`, `triton.jit(...)`, `partial(torch.compile, ...)`."""
    if isinstance(node, ast.Call):
        if dotted(node.func).endswith("partial") and node.args:
            return _compiles(origins, node.args[0])
        node = node.func
    head, dot, rest = dotted(node).partition(".")
    full = f"{origins.get(head, '')}{dot}{rest}".split(".")
    return full[0] in LIBRARIES and len(full) > 1 and full[-1] in COMPILERS


_OPTIONS = {"backend", "disable", "dynamic", "fullgraph", "mode", "options"}  # of `torch.compile`


def _may_be_module(lecture: Lecture, named: list[DefinitionsByName], node: ast.AST) -> bool:
    """Whether a class may be one of `torch.nn.Module`: that, or something that is not known, is its base."""
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        name = dotted(base.value if isinstance(base, ast.Subscript) else base)
        there = named[lecture.functions[lecture.function_of[node]].file]
        bases = [definition for definition in there.get(name, ()) if definition is not node]
        if any(_may_be_module(lecture, named, definition) for definition in bases):
            return True
        if not bases and not hasattr(builtins, name) and name.rpartition(".")[2] not in _PLAIN:
            return True
    return False
