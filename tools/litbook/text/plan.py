"""A lecture's text -> what one notebook of it holds, and which of its sections lie open in it.

In goes a `Lecture`; out come sections, the statements that they need of any of its files, and for a section
that stays a function the reason why. It knows nothing of cells and lines.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from litbook.errors import Problem, UnusableLecture
from litbook.text import scopes
from litbook.text.imports import Names
from litbook.text.lecture import Lecture
from litbook.text.program import Key, Program, Unit
from litbook.text.tree import (
    Definition,
    FunctionNode,
    blocks,
    children,
    dotted,
    everything,
    first_line,
    mark_of,
    own_nodes,
)

Import = ast.Import | ast.ImportFrom
STATED = ("note", "misbelief", "question", "image", "link", "speaker_note")  # told by the record, not by code
WORDS = (*STATED, "figure", "requires", "aside")
SECTIONS = ("main", "part", "section")
_SCOPE = {"locals", "vars", "dir", "exec", "eval", "currentframe", "_getframe", "stack"}


class Text:
    """What is worked out once for all notebooks of a lecture."""

    def __init__(self, lecture: Lecture) -> None:
        self.lecture = lecture
        self.node_of = {index: node for node, index in lecture.function_of.items()}
        trees = [file.tree for file in lecture.files]
        self.words = [_words(tree) for tree in trees]
        self.names = frozenset(name for tree in trees for name in _names(tree))
        self.main = next((i for i, f in enumerate(lecture.functions) if f.kind == "main"), None)
        self.calls: dict[int, list[int]] = {}  # the sections that a section calls, in order, each as often
        for it in lecture.statements:
            if it.kind == "section" and it.target is not None:
                self.calls.setdefault(it.function, []).append(it.target)
        self.own = functools.cache(lambda index: scopes.own(self.function(index)))
        self._linked = self._names_in_calls_of_sections_and_links()
        self.program = Program(lecture.names or Names(lecture.files), self.reads)
        self.unit_of = {unit.node: unit for unit in self.program.units}

    def file(self, function: int) -> int:
        """The number of the file in which a function stands."""
        return self.lecture.functions[function].file

    def function(self, index: int) -> FunctionNode:
        """The definition of a section."""
        node = self.node_of[index]
        assert isinstance(node, FunctionNode)
        return node

    def file_of(self, statement: ast.stmt) -> int:
        """The number of the file in which a statement stands."""
        return self.file(self.lecture.statements[self.lecture.statement_of[statement]].function)

    def _names_in_calls_of_sections_and_links(self) -> set[ast.AST]:
        """Places that name a section, or its file, and are no use of it as a value."""
        found = set[ast.AST]()
        for node in self.lecture.statement_of:
            if self.target(node) is not None:
                found |= {it for it in everything(node) if isinstance(it, ast.Name)}
            elif (
                self.word(node) == "link" and isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            ):
                found |= {it for arg in node.value.args for it in everything(arg) if isinstance(it, ast.Name)}
        return found

    def reads(self, node: ast.stmt) -> frozenset[str]:
        """The names of the module, and builtins, that a statement needs to run, be called and be shown."""
        found = {name.id for name in scopes.outer(node) if name not in self._linked}
        own = scopes.own(node) if isinstance(node, Definition) else frozenset[str]()
        watches = (i for it in (node, *blocks(node)) for i in self.lecture.watches_of.get(it, ()))
        shown = (scopes.reads(self.lecture.watches[i].node) for i in watches)
        return frozenset(found.union(*(names - own for names in shown)))

    def target(self, node: ast.AST) -> int | None:
        """The section that a statement calls; a hidden call is still one."""
        number = self.lecture.statement_of.get(node) if isinstance(node, ast.stmt) else None
        if number is None or isinstance(node, Definition):
            return None
        spec = self.lecture.statements[number]
        return spec.target if spec.kind in ("section", "hidden") else None

    def word(self, node: ast.AST) -> str:
        """The author's word that a statement is a call of, else nothing."""
        match node:
            case ast.Expr(ast.Call(func=called)):
                words = self.words[self.file_of(node)]
                head, _, tail = dotted(called).rpartition(".")
                if head and words.get(head) == "":
                    return tail if tail in WORDS else ""
                return words.get(dotted(called), "")
        return ""


def _words(tree: ast.Module) -> dict[str, str]:
    """The names under which a text calls the author's words, anywhere in it; "" for the package."""
    found: dict[str, str] = {}
    for node in blocks(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "litbook":
            for alias in node.names:
                if alias.name == "*":
                    found.update({word: word for word in WORDS})
                else:
                    found[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.Import):
            found.update({a.asname or a.name: "" for a in node.names if a.name == "litbook"})
    return found


def _names(tree: ast.Module) -> Iterator[str]:
    """Every name in a text, whatever it means there."""
    for node in everything(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield (other or name).partition(".")[0]
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


# ---------------------------------------------------------------------------- one notebook


@dataclass
class Plan:
    """What one notebook holds: the part or lecture `root`, and all that this leans on.

    `reserved` are names that the notebook's own helpers read, `raised` sections that ended with an exception.
    Raises `UnusableLecture` where one namespace cannot hold it all.
    """

    text: Text
    root: int
    reserved: frozenset[str]
    raised: frozenset[str]

    def __post_init__(self) -> None:
        self.lecture, self.program = self.text.lecture, self.text.program
        self.why = self._reasons()
        self._refuse_what_one_namespace_cannot_hold()

    @cached_property
    def sections(self) -> list[int]:
        """`root` and the sections below it, in reading order."""
        found: list[int] = []

        def walk(index: int) -> None:
            if index not in found:
                found.append(index)
                for target in self.text.calls.get(index, ()):
                    walk(target)

        walk(self.root)
        return found

    @cached_property
    def before(self) -> list[ast.stmt]:
        """What `main` does before it calls this part, other than telling and calling."""
        main, found = self.text.main, list[ast.stmt]()
        if main is None or main == self.root:
            return found
        for statement in body_of(self.text.function(main)):
            if self.text.target(statement) == self.root:
                return found
            if self.is_code(statement):
                found.append(statement)
        return found

    def is_code(self, statement: ast.stmt) -> bool:
        """Whether a statement of a section does more than call a section or tell something."""
        return self.text.target(statement) is None and self.text.word(statement) not in STATED

    @cached_property
    def needed(self) -> dict[Unit, None]:
        """The statements of the files that it holds: its sections, what has an effect, what is read."""
        here = self.program.reached(self.text.file(i) for i in self.sections) | {0}
        chosen = [unit for unit in self.program.units
                  if unit.node in self.mine or (unit.file in here and self._has_effect(unit))]  # fmt: skip
        start = [key for unit in chosen for key in unit.keys] + self._keys_before()
        found = self.program.needed(start) | dict.fromkeys(chosen)
        return {unit: None for unit in self.program.units if unit in found}

    def _has_effect(self, unit: Unit) -> bool:
        """Whether a statement of a module does more than bind a name: a call, a loop, a library's setting."""
        if any(self.program.source(unit.file, name) in self.program.foreign for name in unit.fills):
            return True
        match unit.node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import():
                return False
            case ast.ImportFrom(module=module, names=names):
                return not unit.text and (module == "__future__" or any(it.name == "*" for it in names))
            case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.AugAssign(value=value):
                return _calls(unit.node) if unit.fills else value is not None and _calls(value)
        return True

    def _keys_before(self) -> list[Key]:
        main = self.text.file(self.text.main) if self.text.main is not None else 0
        return [(main, name) for it in self.before for name in self.text.reads(it) | scopes.sets(it)]

    @cached_property
    def read(self) -> set[Key]:
        """The names that the notebook's code reads, by the file that it stands in."""
        return {key for unit in self.needed for key in unit.keys} | {*self._keys_before()}

    @cached_property
    def used(self) -> set[Key]:
        """The same names, by the file that they come from."""
        return {self.program.source(*key) for key in self.read}

    # -- which sections lie open

    def _reasons(self) -> dict[int, str]:
        """For each section why it stays a function; no entry where it lies open."""
        found: dict[int, str] = {}
        for index in self.sections:
            if why := self._reason_of_text(index) or self._reason_of_calls(index):
                found[index] = why
        for index in self.sections:
            if index not in found and (why := self._reason_of_names(index)):
                found[index] = why
        return found

    def _reason_of_text(self, index: int) -> str:
        node, own = self.text.function(index), self.text.own(index)
        if self.lecture.functions[index].name in self.raised:
            return "it raised when it was recorded"
        if others := [it for it in node.decorator_list if not mark_of(it)]:
            return f"it has the decorator @{ast.unparse(others[0])}"
        if any(isinstance(it, ast.Return) for it in own_nodes(node)):
            return "it returns early"
        for inner in everything(node):
            if isinstance(inner, ast.Nonlocal) and own & set(inner.names):
                return "a function in it assigns its names (nonlocal)"
            if isinstance(inner, ast.Call) and dotted(inner.func).split(".")[-1] in _SCOPE:
                if not inner.args or dotted(inner.func).split(".")[-1] in ("exec", "eval"):
                    return f"it asks for its own scope ({dotted(inner.func)})"
        return self._reason_of_annotations(index, own)

    def _reason_of_annotations(self, index: int, own: frozenset[str]) -> str:
        """Of a function's variables nobody evaluates annotations; at the top level Python does."""
        file = self.text.file(index)
        if self.program.origin(file, "annotations") == "__future__.annotations":
            return ""
        for inner in own_nodes(self.text.function(index)):
            if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name) and inner.simple:
                for name in scopes.reads(inner.annotation) - own - set(dir(builtins)):
                    if self.program.origin(file, name).startswith("builtins."):
                        return "it annotates with a name that nothing defines"
        return ""

    def _reason_of_calls(self, index: int) -> str:
        if index == self.root:
            return ""
        callers = [i for i in self.sections for target in self.text.calls.get(i, ()) if target == index]
        if len(callers) > 1:
            return "it is called from more than one place"
        body = body_of(self.text.function(callers[0])) if callers else []
        group = next((it for it in groups_of(body) if any(self.text.target(s) == index for s in it)), None)
        if group is None:
            return "it is called inside another statement"
        if len(group) > 1:
            return "its call shares a line with other code"
        if (self.text.file(index), self.lecture.functions[index].name) in self.used:
            return "it is used as a value"
        return ""

    def _reason_of_names(self, index: int) -> str:
        """A name of the section that other code of the notebook would find changed."""
        mine, me = self.text.own(index), self.text.unit_of[self.text.function(index)]
        clash = mine & (self.reserved | set(self.text.words[me.file]))
        for unit in self.needed:
            clash |= mine & unit.reads if unit is not me else frozenset()
        clash |= mine & {name for _, name in self._keys_before()}
        parent = self.lecture.functions[index].parent
        if parent in self.sections and parent is not None and self.goes_on(parent, index):
            clash |= mine & self.text.own(parent)
        return f"its name {min(clash)!r} is also a name of other code here" if clash else ""

    def goes_on(self, parent: int, index: int) -> bool:
        """Whether the parent runs code of its own after calling the section."""
        found = False
        for statement in body_of(self.text.function(parent)):
            if self.text.target(statement) == index:
                found = True
            elif found and self.is_code(statement):
                return True
        return False

    # -- one namespace

    def _refuse_what_one_namespace_cannot_hold(self) -> None:
        problems = [*self._clashes(), *self._whole_modules()]
        if problems:
            raise UnusableLecture(problems)

    def _clashes(self) -> Iterator[Problem]:
        """Two things of two files under one name."""
        kept = [(self.text.file(i), self.lecture.functions[i].name) for i in self.why]
        others = (it for it in self.needed if it.node not in self.mine)
        bound = [(it.file, name) for it in others if it.text or not isinstance(it.node, Import)
                 for name in it.binds]  # fmt: skip
        first: dict[str, Key] = {}
        for key in sorted({*self.read, *kept, *bound}):
            other = first.setdefault(key[1], key)
            if self.program.origin(*other) != self.program.origin(*key):
                here, there = (self._where(it) for it in (other, key))
                what = f"{self._notebook} needs two things that are called {key[1]!r}: {here} and {there}"
                yield Problem("clash", what, None, "give one of them another name")

    def _where(self, key: Key) -> str:
        """`that of lecture/models.py:12`."""
        unit = self.program.binding(*key)
        if unit is None:
            return f"Python's own, in {self.lecture.files[key[0]].path}"
        return f"that of {self.lecture.files[unit.file].path}:{first_line(unit.node)}"

    @cached_property
    def mine(self) -> set[ast.AST]:
        """The definitions of its sections."""
        return {self.text.function(i) for i in self.sections}

    @property
    def _notebook(self) -> str:
        return f"the notebook of {self.lecture.functions[self.root].name}()"

    def _whole_modules(self) -> Iterator[Problem]:
        """Modules of the lecture that are used as values, or imported where no statement of the module is."""
        for module, name in sorted(self.read):
            if node := self.program.whole.get((module, name)):
                what = f"{self._notebook} has no module {name}: its files become one"
                yield Problem(
                    "clash",
                    what,
                    self.lecture.files[module].at(node),
                    f"import what you need: from .{name} import …",
                )
        for unit in self.needed:
            inner = (it for it in blocks(unit.node) if isinstance(it, ast.ImportFrom))
            for node in (it for it in inner if any(self.program.names.imports(unit.file, it))):
                what = f"{self._notebook} has no module {node.module}: its files become one"
                yield Problem(
                    "clash",
                    what,
                    self.lecture.files[unit.file].at(node),
                    "import it at the top of the file",
                )


def _calls(node: ast.AST) -> bool:
    """Whether evaluating `node` calls anything; the body of a lambda waits."""
    if isinstance(node, ast.Lambda):
        return False
    return isinstance(node, ast.Call | ast.Await) or any(map(_calls, children(node)))


def body_of(node: FunctionNode) -> list[ast.stmt]:
    """The statements of a function without its docstring, and without imports of the author's words."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return [it for it in body if not _imports_words(it)]


def _imports_words(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "litbook"
    return isinstance(node, ast.Import) and all(it.name == "litbook" for it in node.names)


def span(group: Sequence[ast.stmt]) -> tuple[int, int]:
    """First line, decorators included, and last line."""
    return min(map(first_line, group)), max(node.end_lineno or node.lineno for node in group)


def groups_of(body: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """Neighbouring statements that share a line belong together."""
    groups: list[list[ast.stmt]] = []
    for node in body:
        if groups and span(groups[-1])[1] >= span([node])[0]:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups
