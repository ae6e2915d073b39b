"""Sections that lean on each other: one reads a name of the module whose object an earlier one changes.

In go a lecture's text, out come pairs of sections with the lines at which one changes and the other reads. A
change is an assignment to `global`, to an attribute or an item, a call of a method that changes what it is
called on, and any of these on what was got from it: `for p in MODEL.parameters(): p.data -= …`,
`SGD(MODEL.parameters()).step()`, or in a helper to which it was given. Nothing runs here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from litbook.lecture.calls import LectureCalls
from litbook.lecture.model import Lecture
from litbook.python import scopes
from litbook.python.nodes import FunctionNode, parameters

CHANGES = frozenset(  # methods that change what they are called on; torch's end in `_`
    "add append appendleft clear discard extend fit insert load_state_dict partial_fit pop popitem popleft"
    " remove reverse setdefault sort step train_step update".split()
)
GlobalName = tuple[int, str]
"""A file's number and a name at its top."""


@dataclass(frozen=True)
class Leaning:
    """A section reads what another one, before it, has changed."""

    reader: int
    changer: int
    name: str
    read: tuple[int, ast.AST]  # number of the file, and where in it
    changed: tuple[int, ast.AST]


@dataclass
class _Summary:
    """What a function, and all that it calls, does with names of the module and with its parameters."""

    changed: dict[GlobalName, tuple[int, ast.AST]] = field(default_factory=dict)
    read: dict[GlobalName, tuple[int, ast.AST]] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)  # those whose object it changes


class Leanings:
    """The sections of a lecture that lean on each other."""

    def __init__(self, lecture: Lecture) -> None:
        self.lecture, self.calls = lecture, LectureCalls(lecture)
        self._summaries: dict[ast.AST, _Summary] = {}
        self._values = [
            {
                name
                for node in file.tree.body
                if isinstance(node, ast.Assign | ast.AnnAssign)
                for name in scopes.sets(node)
            }
            for file in lecture.files
        ]

    @cached_property
    def all(self) -> list[Leaning]:
        """Each reader with each name and the last section before it that changes it, in their order."""
        found, changed = list[Leaning](), dict[GlobalName, list[tuple[int, tuple[int, ast.AST]]]]()
        if not any(self._values):
            return found
        for index in self.lecture.order:
            spec, node = self.lecture.functions[index], self.lecture.node_of[index]
            if (
                spec.kind != "section"
                or not isinstance(node, FunctionNode)
                or "ranks" in (spec.requires or "")
            ):
                continue
            summary = self._summary(node, spec.file)
            for name, read in summary.read.items():
                for changer, at in changed.get(name, [])[-1:]:
                    found.append(Leaning(index, changer, name[1], read, at))
            for name, at in summary.changed.items():
                changed.setdefault(name, []).append((index, at))
        return found

    def before(self, sections: Iterable[int]) -> list[int]:
        """The sections that have to run before some, in the order of the book; none that is among them."""
        order, wanted = list(self.lecture.order), {*sections}
        for index in order:  # what stands in a part, too
            above = self.lecture.functions[index].parent
            wanted |= {index} if above in wanted else set()
        needed, todo = set[int](), [*wanted]
        while todo:
            reader = todo.pop()
            earlier = {one.changer for one in self.all if one.reader == reader} - needed - wanted
            needed |= earlier
            todo += earlier
        return [index for index in order if index in needed]

    def _summary(self, node: FunctionNode, file: int) -> _Summary:
        if node not in self._summaries:
            summary = self._summaries[node] = _Summary()  # before it is filled: it may call itself
            given, inside = [name for _, name in parameters(node)], [*ast.walk(node)]
            origins = _Origins(node, inside, self._values[file])
            for base, at in _changes(inside):
                for name in origins.of(base):
                    self._note(summary, name, given, file, at)
            for call in inside:
                for helper, home in self._called(call, file, origins.local):
                    self._take(summary, self._summary(helper, home))
                    for argument in _given(call, helper, self._summary(helper, home).parameters):
                        for name in origins.of(argument):
                            self._note(summary, name, given, file, call)
            for inner in inside:
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                    key = None if inner.id in origins.local else self._key(file, inner.id)
                    if key is not None:
                        summary.read.setdefault(key, (file, inner))
        return self._summaries[node]

    def _take(self, summary: _Summary, called: _Summary) -> None:
        """What a helper does is done by who calls it."""
        for key, where in called.changed.items():
            summary.changed.setdefault(key, where)
        for key, where in called.read.items():
            summary.read.setdefault(key, where)

    def _note(self, summary: _Summary, name: str, given: Sequence[str], file: int, at: ast.AST) -> None:
        if name in given:
            summary.parameters.add(name)
        elif (key := self._key(file, name)) is not None:
            summary.changed.setdefault(key, (file, at))

    def _key(self, file: int, name: str) -> GlobalName | None:
        """A name of the lecture that holds a value; None for functions, classes, imports of others."""
        home, source = self.calls.program.source(file, name)
        inside = 0 <= home < len(self._values) and source in self._values[home]
        return (home, source) if inside else None

    def _called(self, call: ast.AST, file: int, local: frozenset[str]) -> Iterator[tuple[FunctionNode, int]]:
        """The helper of the lecture that a call calls by its name; no section."""
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id not in local:
            binding = self.calls.program.binding(file, call.func.id)
            index = self.lecture.function_of.get(binding.node) if binding else None
            if binding and index is not None and isinstance(binding.node, FunctionNode):
                if self.lecture.functions[index].kind not in ("main", "part", "section"):
                    yield binding.node, self.lecture.functions[index].file


class _Origins:
    """Of which names the objects in a function are part: parameters, and names of the module."""

    def __init__(self, node: FunctionNode, inside: Sequence[ast.AST], values: set[str]) -> None:
        self.local = scopes.local_names(node)
        self._names: dict[str, set[str]] = {name: {name} for _, name in parameters(node)}
        for _ in range(2):  # what is got of what was got
            for target, value in _bindings(inside):
                got = self.of(value)
                if isinstance(value, ast.Call) and not got & {*self._names, *values}:
                    parts = (
                        one for one in value.args if isinstance(one, ast.Attribute | ast.Subscript | ast.Call)
                    )
                    got = set[str]().union(*map(self.of, parts))
                for name in (inner.id for inner in ast.walk(target) if isinstance(inner, ast.Name)):
                    self._names.setdefault(name, set()).update(got)

    def of(self, base: ast.expr) -> set[str]:
        """The names of whose objects an expression is part."""
        name = _root(base)
        return self._names.get(name, set[str]()) if name in self.local else {name} - {""}


def _root(node: ast.expr) -> str:
    """The name that an expression takes a part of, `MODEL` of `MODEL.layers[0].parameters()`; else ""."""
    while True:
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case ast.Call(
                func=ast.Name("enumerate" | "zip" | "list" | "iter" | "reversed"), args=[inner, *_]
            ):
                node = inner
            case ast.Name(name):
                return name
            case _:
                return ""


def _copies(node: ast.expr) -> bool:
    """Whether an expression is an object of its own, though it is made of another one."""
    match node:
        case ast.Call(func=ast.Name("list" | "tuple" | "dict" | "set" | "sorted" | "deepcopy" | "copy")):
            return True
        case ast.Call(func=ast.Attribute(attr="copy" | "clone" | "deepcopy" | "tolist" | "item")):
            return True
        case ast.Subscript(value=value, slice=ast.Slice()):
            return not isinstance(value, ast.Call)
    return False


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with what they get."""
    for node in nodes:
        match node:
            case ast.Assign(targets, value) if not _copies(value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target, value=ast.expr() as value) | ast.NamedExpr(target, value):
                if not _copies(value):
                    yield target, value
            case ast.For(target, value) | ast.comprehension(target, value):
                yield target, value
            case ast.withitem(value, ast.expr() as target):
                yield target, value


def _changes(nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, ast.AST]]:
    """The expressions whose objects are changed, each with where."""
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    for node in nodes:
        match node:
            case ast.Attribute(value=value) | ast.Subscript(value=value) if not isinstance(
                node.ctx, ast.Load
            ):
                yield value, node
            case ast.Call(func=ast.Attribute(attr=attr, value=value)):
                if attr in CHANGES or (attr.endswith("_") and not attr.endswith("__")):
                    yield value, node
            case ast.AugAssign(target=ast.Name(name) as target, value=value):
                # Of a number it is another one; of a list or a tensor the same.
                own = (n for n in ast.walk(value) if isinstance(n, ast.Attribute) and _root(n) == name)
                if isinstance(value, ast.List | ast.ListComp | ast.Set) or any(own):
                    yield target, node
            case ast.Name(name) if name in shared and not isinstance(node.ctx, ast.Load):
                yield node, node


def _given(call: ast.AST, helper: FunctionNode, changed: set[str]) -> Iterator[ast.expr]:
    """The arguments of a call that its helper changes."""
    if not isinstance(call, ast.Call):
        return
    names = [argument.arg for argument in (*helper.args.posonlyargs, *helper.args.args)]
    yield from (value for name, value in zip(names, call.args, strict=False) if name in changed)
    yield from (keyword.value for keyword in call.keywords if keyword.arg in changed)
