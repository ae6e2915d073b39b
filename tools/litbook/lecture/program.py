"""Files that import one another -> their statements as one program, and which of these some names need.

In go the files with their names, out come statements in an order that runs from top to bottom, with what each
binds and reads, and where every name comes from. It knows no sections and no notebook.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import filterfalse

from litbook.lecture.sections import is_formal
from litbook.python import scopes
from litbook.python.imports import NameResolver
from litbook.python.nodes import (
    DefinitionNode,
    all_nodes,
    body_of,
    closure,
    dotted,
    mark_of,
    own_nodes,
)

NameInFile = tuple[int, str]  # a file's number, and a name in it
ASSIGNMENT = ast.Assign | ast.AnnAssign | ast.AugAssign


@dataclass(frozen=True, eq=False)
class TopLevelStatement:
    """A statement of a file: the names that it binds, and those whose objects it changes.

    An import of another file's name under a new one (`renames`) becomes the assignment `text`.
    """

    file: int
    node: ast.stmt
    binds: frozenset[str]
    fills: frozenset[str]
    needs: Callable[[ast.stmt], frozenset[str]]
    renames: NameInFile | None = None
    text: str = ""

    @cached_property
    def reads(self) -> frozenset[str]:
        """The names of its file, and builtins, that it needs to run or to be called."""
        return frozenset() if self.renames else self.needs(self.node)

    @cached_property
    def keys(self) -> list[NameInFile]:
        """What it reads, by file."""
        return [self.renames] if self.renames else [(self.file, name) for name in self.reads]


class Program:
    """All statements of some files, in the order in which Python runs them.

    What they import from each other is no statement: both mean the same name. `needs` says what one reads.
    """

    def __init__(
        self, names: NameResolver, needs: Callable[[ast.stmt], frozenset[str]] = scopes.reads
    ) -> None:
        self.names, self.needs = names, needs
        self.foreign: dict[NameInFile, str] = {}  # what an import from elsewhere binds: its full name
        self.whole: dict[NameInFile, ast.stmt] = {}  # names that stand for a file, and where that is imported
        self.units: list[TopLevelStatement] = []
        self.imports: dict[int, list[int]] = {}  # the other files that one imports
        for file in range(len(names.files)):
            self._add(file)
        self._about: dict[NameInFile, list[TopLevelStatement]] = {}
        for unit in self.units:
            for name in unit.binds | unit.fills:
                self._about.setdefault(self.source(unit.file, name), []).append(unit)

    def _add(self, file: int) -> None:
        """The statements of a file, those of the files that it imports before them."""
        if file in self.imports:
            return
        self.imports[file] = []
        units: list[TopLevelStatement] = []
        for node in filterfalse(is_formal, body_of(self.names.files[file].tree)):
            borrowed = [*self.names.imports(file, node)]
            if not borrowed:
                units.append(TopLevelStatement(file, node, scopes.sets(node), scopes.fills(node), self.needs))
            # The name of another file is this file's name too; under another name it is given that here.
            for alias, other, name in borrowed:
                key = other, name
                whole = alias.name if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
                here = alias.asname or whole
                home, original = self.names.source(*key) if name else key
                self.imports[file].append(home)
                self._add(home)
                if not original:
                    self.whole[file, here] = node
                elif here not in (original, "*"):
                    text = f"{here} = {original}"
                    units.append(
                        TopLevelStatement(file, node, frozenset({here}), frozenset(), self.needs, key, text)
                    )
            # For every name that another import binds, what it stands for.
            match node:
                case ast.Import(names=aliases) if not borrowed:
                    for alias in aliases:
                        top = alias.name.partition(".")[0]
                        self.foreign[file, alias.asname or top] = alias.name if alias.asname else top
                case ast.ImportFrom(module=module, names=aliases, level=level) if not borrowed:
                    for alias in aliases:
                        full = f"{'.' * level}{module or ''}.{alias.name}"
                        self.foreign[file, alias.asname or alias.name] = full
        self.units += units

    def source(self, file: int, name: str) -> NameInFile:
        """The file that a name of a file really comes from, and its name there."""
        key = self.names.source(file, name)
        return key if name == key[1] else (file, name)

    def statements_for(self, key: NameInFile) -> list[TopLevelStatement]:
        """The statements that give a name its value, or change its object."""
        return self._about.get(key, [])

    def origin(self, file: int, name: str) -> str:
        """What a name stands for, by its full name: `lecture.measure.flops`, `torch.nn`, `builtins.len`."""
        key = self.source(file, name)
        if key in self._about and key not in self.foreign:
            return f"{self.names.files[key[0]].module}.{key[1]}"
        return self.foreign.get(key, f"builtins.{key[1]}")

    def binding(self, file: int, name: str) -> TopLevelStatement | None:
        """The last statement that gives a name its value."""
        key = self.source(file, name)
        return next((unit for unit in reversed(self._about.get(key, [])) if key[1] in unit.binds), None)

    def imported_files(self, files: Iterable[int]) -> set[int]:
        """These files, and those that they import in turn."""
        return {*closure(files, self.imports.__getitem__)}

    def needed_statements(
        self, keys: Iterable[NameInFile], may: Callable[[TopLevelStatement], bool] = lambda _: True
    ) -> dict[TopLevelStatement, None]:
        """The statements that bind or change these names, and what those read in turn; in order.

        `may` says which statements count; the others, and what they read, are left out.
        """
        units, seen, waiting = set[TopLevelStatement](), set[NameInFile](), [*keys]
        while waiting:
            key = self.source(*waiting.pop())
            for unit in () if key in seen else self._about.get(key, ()):
                if unit not in units and may(unit):
                    units.add(unit)
                    waiting += unit.keys
            seen.add(key)
        return {unit: None for unit in self.units if unit in units}


def is_definition(unit: TopLevelStatement) -> bool:
    """Whether a statement defines a function or a class: nothing of it runs before it is called."""
    return isinstance(unit.node, DefinitionNode)


def called_at_import(node: ast.stmt) -> tuple[list[ast.expr], list[ast.expr]]:
    """A definition's decorators, and what else of it, or of an assignment, calls something when it runs."""
    decorators, others = list[ast.expr](), list[ast.expr | None]()
    inside = [node, *own_nodes(node)] if isinstance(node, ast.ClassDef) else [node]
    for inner in inside:
        match inner:
            case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.AugAssign(value=value):
                others.append(value)
            case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
                others += [*args.defaults, *args.kw_defaults]
        if isinstance(inner, DefinitionNode):
            decorators += (mark for mark in inner.decorator_list if not mark_of(mark))
    calls = (it for it in others if it and any(isinstance(part, ast.Call) for part in all_nodes(it)))
    return decorators, [*calls]


def hears_of_subclasses(unit: TopLevelStatement) -> bool:
    """Whether a class that is named above others runs when those are defined: it, or as their metaclass."""
    if not isinstance(unit.node, ast.ClassDef):
        return False
    names = (inner.name for inner in unit.node.body if isinstance(inner, DefinitionNode))
    bases = {dotted(base).rpartition(".")[2] for base in unit.node.bases}
    return "__init_subclass__" in names or not bases.isdisjoint(_METACLASSES)


_METACLASSES = ("type", "ABCMeta", "EnumMeta", "EnumType")  # what others are made of
