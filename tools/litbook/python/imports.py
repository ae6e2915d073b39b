"""What a name at the left margin of a file means within the lecture, through the imports between its files.

In go the files of a lecture, out come definitions and files by name, and the circles in which files import
each other. It knows nothing of what a function does, and nothing of modules outside the lecture.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from litbook.finding import Finding
from litbook.python import scopes
from litbook.python.file import File
from litbook.python.nodes import (
    Anchor,
    DefinitionNode,
    blocks,
    closure,
    directly_in,
    dotted,
    own_statements,
)

Meaning = DefinitionNode | int  # a definition of the lecture, or the number of one of its files


@dataclass(frozen=True)
class _Import:
    """What an import binds: a name in a file of the lecture, or that file itself where `name` is ""."""

    file: int
    name: str
    node: ast.alias


@dataclass
class _Margin:
    """What the left margin of one file binds; and the files that it imports whole, the last one first."""

    bound: dict[str, DefinitionNode | _Import] = field(default_factory=dict)
    stars: list[int] = field(default_factory=list)


class NameResolver:
    """What names mean in each file of a lecture."""

    def __init__(self, files: list[File]) -> None:
        self.files = files
        self._numbers = {file.module: i for i, file in enumerate(files) if file.module}
        self._margins = [self._margin(i, _at_margin(file.tree)) for i, file in enumerate(files)]
        self.home: dict[ast.AST, int] = {
            n: i for i, file in enumerate(files) for n in file.tree.body if isinstance(n, DefinitionNode)
        }
        self._own: dict[DefinitionNode, _Margin] = {}
        self._shared: dict[int, frozenset[str]] = {}

    def meaning(self, file: int, name: str, function: DefinitionNode | None = None) -> Meaning | None:
        """What `name` (also `models.Decoder`) means in the file; None for what is not the lecture's.

        What the `function` itself imports of the lecture comes first.
        """
        first, *rest = name.split(".")
        margin = self._imports_of(file, function) if function is not None else None
        meaning = self._find_in(margin, first, ()) if margin is not None else None
        if meaning is None:
            meaning = self._member(file, first, ())
        for part in rest:
            meaning = self._attribute(meaning, part) if isinstance(meaning, int) else None
        return meaning

    def imported_names(self, function: DefinitionNode) -> set[str]:
        """The names that a function at the left margin itself imports of the lecture."""
        return set(self._imports_of(self.home[function], function).bound)

    def imported_definitions(self, file: int) -> dict[str, DefinitionNode]:
        """The definitions of other files by every name that an import anywhere in the file gives them."""
        definitions: dict[str, DefinitionNode] = {}
        for node in blocks(self.files[file].tree):
            imports = isinstance(node, ast.Import | ast.ImportFrom)
            for name, bound in self._bound(file, node) if imports else ():
                meaning = self._follow(bound, ())
                if isinstance(meaning, DefinitionNode):
                    definitions[name] = meaning
                elif isinstance(meaning, int):
                    definitions |= self._members(meaning, name)
                elif name == "*" and isinstance(bound, _Import):
                    members = self._members(bound.file, "").items()
                    definitions |= {key.removeprefix("."): node for key, node in members}
        return definitions

    def _members(self, file: int, name: str) -> dict[str, DefinitionNode]:
        """The definitions of a file called `name`, as `name.definition`; of `__init__` the others' too."""
        bound = {key: self._member(file, key, ()) for key in self._margins[file].bound}
        node = {f"{name}.{key}": node for key, node in bound.items() if isinstance(node, DefinitionNode)}
        for other in self.files[1:] if file == 0 else []:
            if other.module == f"{self.files[0].module}.{other.name}":  # and not beside the lecture
                node |= self._members(self._numbers[other.module], f"{name}.{other.name}")
        return node

    def clashes(
        self, file: int
    ) -> Iterator[tuple[str, ast.alias | DefinitionNode, ast.alias | DefinitionNode]]:
        """Names that mean one definition first and then another, one of them through an import."""
        first: dict[str, tuple[DefinitionNode, ast.alias | DefinitionNode]] = {}
        for node in self.files[file].tree.body:
            for name, bound in self._bound(file, node):
                meaning, at = self._follow(bound, ()), bound.node if isinstance(bound, _Import) else bound
                before, above = first.get(name, (meaning, at))
                if before is not meaning and (isinstance(at, ast.alias) or isinstance(above, ast.alias)):
                    yield name, above, at
                elif isinstance(meaning, DefinitionNode):
                    first[name] = meaning, at

    def edges(self, file: int) -> dict[int, ast.alias]:
        """The other files that a file imports from while it is imported itself, each with the first place."""
        edges: dict[int, ast.alias] = {}
        for node in _at_margin(self.files[file].tree):
            for alias, other, name in self.imports(file, node):
                if isinstance(node, ast.ImportFrom) or alias.name.count("."):
                    inside = self._numbers.get(f"{self.files[0].module}.{name}") if other == 0 else None
                    edges.setdefault(other if inside is None else inside, alias)
        return edges

    def source(self, file: int, name: str) -> tuple[int, str]:
        """The file that a name comes from, and its name there: "" where it means that file itself."""
        seen: set[tuple[int, str]] = set()
        while (file, name) not in seen:
            seen.add((file, name))
            bound = self._margins[file].bound.get(name)
            if isinstance(bound, _Import):
                file, name = bound.file, bound.name
            elif bound is None:
                file = next((star for star in self._margins[file].stars if self._gives(star, name)), file)
        inside = self._numbers.get(f"{self.files[0].module}.{name}") if file == 0 and name else None
        return (file, name) if inside is None or name in self._margins[0].bound else (inside, "")

    # -- bindings

    def _gives(self, file: int, name: str) -> bool:
        """Whether `from … import *` brings a name: the file's own, or one of those that it imports whole."""
        return any(name in self._own_names(it) for it in closure([file], lambda it: self._margins[it].stars))

    def _own_names(self, file: int) -> frozenset[str]:
        """The names that a file gives a value and shares, and those that its `__all__` lists."""
        if file not in self._shared:
            tree, listed = self.files[file].tree, set[str]()
            names = {name for node in tree.body for name in scopes.sets(node)}
            names.update(
                name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names
            )
            for node in tree.body:
                if "__all__" in scopes.sets(node) | scopes.fills(node):
                    listed.update(str(it.value) for it in ast.walk(node) if isinstance(it, ast.Constant))
            self._shared[file] = frozenset({name for name in names if not name.startswith("_")} | listed)
        return self._shared[file]

    def _imports_of(self, file: int, function: DefinitionNode) -> _Margin:
        """What a function itself imports of the lecture."""
        if function not in self._own:
            statements = own_statements(function) if self._numbers else ()
            imports = (node for node in statements if isinstance(node, ast.Import | ast.ImportFrom))
            self._own[function] = self._margin(file, imports)
        return self._own[function]

    def _margin(self, file: int, nodes: Iterable[Anchor]) -> _Margin:
        margin = _Margin()
        for node in nodes:
            for name, bound in self._bound(file, node):
                if name == "*" and isinstance(bound, _Import):
                    margin.stars.insert(0, bound.file)
                else:
                    margin.bound[name] = bound
        return margin

    def _bound(self, file: int, node: Anchor) -> Iterator[tuple[str, DefinitionNode | _Import]]:
        if isinstance(node, DefinitionNode):
            yield node.name, node
        for alias, other, name in self.imports(file, node):
            if isinstance(node, ast.Import) and alias.asname is None:
                top = alias.name.partition(".")[0]
                yield top, _Import(self._numbers[top], "", alias)
            else:
                yield alias.asname or alias.name, _Import(other, name, alias)

    def imports(self, file: int, node: Anchor) -> Iterator[tuple[ast.alias, int, str]]:
        """Every name that a statement imports of the lecture: from which file, and its name there."""
        if isinstance(node, ast.Import):
            numbered = ((alias, self._numbers.get(alias.name)) for alias in node.names)
            yield from ((alias, other, "") for alias, other in numbered if other is not None)
        elif isinstance(node, ast.ImportFrom):
            # The full name of the module that is imported from; "" for what lies above the lecture.
            package, module = self.files[0].module, node.module or ""
            if node.level:
                inside = node.level == 1 and package and self.files[file].module
                module = f"{package}.{module}".rstrip(".") if inside else ""
            other = self._numbers.get(module)
            if other is not None:
                yield from ((alias, other, alias.name) for alias in node.names)

    # -- meanings

    def _member(self, file: int, name: str, seen: tuple[tuple[int, str], ...]) -> Meaning | None:
        if (file, name) in seen:
            return None
        return self._find_in(self._margins[file], name, (*seen, (file, name)))

    def _find_in(self, margin: _Margin, name: str, seen: tuple[tuple[int, str], ...]) -> Meaning | None:
        if name in margin.bound:
            return self._follow(margin.bound[name], seen)
        meanings = (self._member(file, name, seen) for file in margin.stars if not name.startswith("_"))
        return next((meaning for meaning in meanings if meaning is not None), None)

    def _follow(self, bound: DefinitionNode | _Import, seen: tuple[tuple[int, str], ...]) -> Meaning | None:
        if not isinstance(bound, _Import):
            return bound
        return self._attribute(bound.file, bound.name, seen) if bound.name else bound.file

    def _attribute(self, file: int, name: str, seen: tuple[tuple[int, str], ...] = ()) -> Meaning | None:
        """What `name` is in a file; of `__init__` its other files are attributes too."""
        meaning = self._member(file, name, seen)
        if meaning is None and file == 0:
            return self._numbers.get(f"{self.files[0].module}.{name}")
        return meaning


def _at_margin(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when a file is imported: definitions at the left margin, and imports anywhere.

    What stands below `if TYPE_CHECKING:` does not run.
    """
    todo = directly_in(tree)[::-1]
    while todo:
        node = todo.pop()
        if isinstance(node, DefinitionNode):
            if node.col_offset == 0:
                yield node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and dotted(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            todo += node.orelse[::-1]
        else:
            todo += directly_in(node)[::-1]


def find_circles(names: NameResolver, problems: list[Finding]) -> None:
    """Files that cannot be imported, because each waits for the other: `storage -> compute -> storage`."""
    edges = [names.edges(i) for i in range(len(names.files))]
    done: set[int] = set()

    def follow(file: int, path: list[int]) -> None:
        if file in path:
            circle = [*path[path.index(file) :], file]
            what = f"a circular import: {' -> '.join(names.files[i].name or '__init__' for i in circle)}"
            place = names.files[file].place_of(edges[file][circle[1]])
            way_out = "move what they need of each other into a file of its own"
            problems.append(Finding("circular-import", what, place, way_out))
        elif file not in done:
            for other in edges[file]:
                follow(other, [*path, file])
            done.add(file)

    for file in range(len(edges)):
        follow(file, [])
