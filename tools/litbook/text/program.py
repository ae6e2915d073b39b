"""Modules that import one another -> their statements as one program: which of them some names need.

In go trees by the names of their modules, and out come statements in an order that runs from top to bottom,
with what each binds and reads, and where every name comes from. It knows no lecture and no notebook.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from litbook.text import scopes
from litbook.text.tree import Definition, first_line

Key = tuple[int, str]  # a module's number, and a name in it


@dataclass(frozen=True, eq=False)
class Unit:
    """A statement of a module: the names that it binds, whose objects it changes, and that it needs.

    `text` is what stands in its place in a program of one namespace, where that is another.
    """

    module: int
    node: ast.stmt
    binds: frozenset[str]
    fills: frozenset[str]
    reads: frozenset[str]
    text: str = ""

    @property
    def keys(self) -> list[Key]:
        """What it reads, by module."""
        return [(self.module, name) for name in self.reads]


class Program:
    """All statements of some modules, in the order in which Python runs them.

    What modules of the program import from each other is no statement of it: both mean the same name.
    """

    def __init__(
        self,
        modules: Sequence[tuple[str, ast.Module]],
        reads: Callable[[ast.stmt], frozenset[str]] = scopes.reads,
    ) -> None:
        self.names = [name for name, _ in modules]
        self.trees = [tree for _, tree in modules]
        self.number = {name: i for i, name in enumerate(self.names)}
        self._reads = reads
        self._borrowed: dict[Key, Key] = {}
        self._foreign: dict[Key, str] = {}  # what an import from elsewhere binds: its full name
        self.whole: dict[Key, ast.stmt] = {}  # names that stand for a module of the program
        self.units: list[Unit] = []
        self.imports: dict[int, list[int]] = {}  # the modules of the program that one imports
        for module in range(len(self.trees)):
            self._add(module)
        self._about: dict[Key, list[Unit]] = {}
        for unit in self.units:
            for name in unit.binds | unit.fills:
                self._about.setdefault(self.source(unit.module, name), []).append(unit)

    # -- reading the modules

    def _add(self, module: int) -> None:
        """The statements of a module, those of the modules that it imports before them."""
        if module in self.imports:
            return
        self.imports[module] = []
        mine: list[Unit] = []
        for node in _statements(self.trees[module]):
            if isinstance(node, ast.ImportFrom) and (other := self.own(module, node)) is not None:
                mine += self._borrow(module, node, other)
            else:
                self._note_imports(module, node)
                binds, fills = scopes.sets(node), scopes.fills(node)
                mine.append(Unit(module, node, binds, fills, self._reads(node)))
        self.units += mine

    def _borrow(self, module: int, node: ast.ImportFrom, other: int) -> Iterator[Unit]:
        """Names of another module are that module's names; under another name they are given it here."""
        for alias in node.names:
            submodule = self.number.get(f"{self.names[other]}.{alias.name}")
            if submodule is not None and not node.module:
                self._import(module, submodule)
                self.whole[module, alias.asname or alias.name] = node
                continue
            self._import(module, other)
            if alias.name == "*":
                public = (it for unit in self.units if unit.module == other for it in unit.binds)
                self._borrowed |= {(module, it): (other, it) for it in public if not it.startswith("_")}
            elif alias.asname in (None, alias.name):
                self._borrowed[module, alias.name] = other, alias.name
            else:
                text = f"{alias.asname} = {alias.name}"
                yield Unit(module, node, frozenset({str(alias.asname)}), frozenset(), frozenset({text}), text)
                self._borrowed[module, text] = other, alias.name  # a name that nobody can write

    def _import(self, module: int, other: int) -> None:
        self.imports[module].append(other)
        self._add(other)

    def _note_imports(self, module: int, node: ast.stmt) -> None:
        for name, whole in _imported(node):
            self._foreign[module, name] = whole
            if whole in self.number:
                self.whole[module, name] = node

    def own(self, module: int, node: ast.ImportFrom) -> int | None:
        """The module of this program that a statement imports from; None for all others."""
        here = self.names[module]
        if not node.level or not here:
            return self.number.get(node.module) if node.module else None
        is_package = any(name.startswith(f"{here}.") for name in self.names)
        parts = [*here.split("."), ""] if is_package else here.split(".")
        base = parts[: len(parts) - node.level]
        return self.number.get(".".join([*base, *([node.module] if node.module else [])]))

    # -- asking

    def source(self, module: int, name: str) -> Key:
        """The module that a name of a module really comes from, and its name there."""
        key, seen = (module, name), set[Key]()
        while key in self._borrowed and key not in seen:
            seen.add(key)
            key = self._borrowed[key]
        return key

    def origin(self, module: int, name: str) -> str:
        """What a name stands for, by its full name: `lecture.measure.flops`, `torch.nn`, `builtins.len`."""
        key = self.source(module, name)
        if key in self._about and key not in self._foreign:
            return f"{self.names[key[0]]}.{key[1]}"
        return self._foreign.get(key, f"builtins.{key[1]}")

    def binding(self, module: int, name: str) -> Unit | None:
        """The last statement that gives a name its value."""
        key = self.source(module, name)
        return next((it for it in reversed(self._about.get(key, [])) if key[1] in it.binds), None)

    def is_foreign(self, module: int, name: str) -> bool:
        """Whether an import from elsewhere binds the name."""
        return self.source(module, name) in self._foreign

    def reached(self, modules: Iterable[int]) -> set[int]:
        """These modules, and those that they import in turn."""
        found, waiting = set[int](), [*modules]
        while waiting:
            module = waiting.pop()
            if module not in found:
                found.add(module)
                waiting += self.imports[module]
        return found

    def needed(self, keys: Iterable[Key], may: Callable[[Unit], bool] = lambda _: True) -> dict[Unit, None]:
        """The statements that bind or change these names, and what those read in turn; in order.

        `may` says which statements count; the others, and what they read, are left out.
        """
        found, seen, waiting = set[Unit](), set[Key](), [*keys]
        while waiting:
            key = self.source(*waiting.pop())
            for unit in () if key in seen else self._about.get(key, ()):
                if unit not in found and may(unit):
                    found.add(unit)
                    waiting += unit.keys
            seen.add(key)
        return {unit: None for unit in self.units if unit in found}


def excerpt(text: str, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """What of a module's text some of its names need: lines of imports, and the texts of its statements.

    What only a type checker imports counts as imported.
    """
    program = _alone(text)
    lines = text.split("\n")
    units = program.needed([(0, name) for name in names])
    read = {name for unit in units if not isinstance(unit.node, ast.If) for name in unit.reads}
    imports, found = list[str](), list[str]()
    for unit in units:
        within = unit.node.body if isinstance(unit.node, ast.If) else [unit.node]
        for node in within:
            if isinstance(node, ast.Import | ast.ImportFrom):
                kept = [it for it in node.names if (it.asname or it.name) in read]
                imports += [ast.unparse(only(node, kept))] if kept else []
            else:
                found.append("\n".join(lines[first_line(node) - 1 : node.end_lineno]))
    return imports, found


@functools.lru_cache(maxsize=1)  # every notebook asks for the same
def _alone(text: str) -> Program:
    return Program([("", ast.parse(text))])


def defined(text: str) -> list[str]:
    """The names that the statements of a module's text bind, in order; what it imports is none of them."""
    program = _alone(text)
    return [name for unit in program.units for name in sorted(unit.binds) if not program.is_foreign(0, name)]


def reads(text: str) -> frozenset[str]:
    """The builtins, and other names that it does not bind, that a module's text reads."""
    program = _alone(text)
    names = {name for unit in program.units for name in unit.reads}
    return frozenset(name for name in names if program.origin(0, name).startswith("builtins."))


def only(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.Import | ast.ImportFrom:
    """The same import, of these names."""
    return (
        ast.Import(names) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, names, node.level)
    )


def _statements(tree: ast.Module) -> list[ast.stmt]:
    """A module's, but for its docstring and the `if __name__ == ...`: no other program has them."""
    first = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    return [node for node in tree.body[first:] if not _is_entry(node)]


def _is_entry(node: ast.stmt) -> bool:
    match node:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return False


def _imported(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """For every name that an import binds, what it stands for."""
    match node:
        case ast.Import(names=aliases):
            for it in aliases:
                yield (it.asname, it.name) if it.asname else (it.name.partition(".")[0],) * 2
        case ast.ImportFrom(module=module, names=aliases, level=level):
            for it in aliases:
                yield it.asname or it.name, f"{'.' * level}{module or ''}.{it.name}"


def definition(unit: Unit) -> bool:
    """Whether a statement defines a function or a class: nothing of it runs before it is called."""
    return isinstance(unit.node, Definition)
