"""A lecture's text -> the order of a notebook: which text goes into which cell. Knows no values.

A section is a function; in a notebook its body lies open, statement by statement, so that a reader can stop
anywhere, look at every name and change a line. Opening a function moves its names to the top level. That is
the same program only where nothing can tell the difference, so a section stays a function, followed by its
call, where it

- returns early, or is called from more than one place, inside a loop or branch, or used as a value;
- holds a function with `nonlocal`, or asks for its scope (`locals()`, `exec`, `inspect.currentframe` ...);
- has a decorator other than `@requires` and `@aside`;
- annotates a name with what is not defined at the top level;
- binds a name that other code of the same notebook reads: `mean = ...` beside `from statistics import mean`;
- raised when it was recorded: then the rest of it must not run.

`Section.why` says which. `docs/how-it-works.md` tells readers.

The files of a lecture become one namespace: what they import from each other is already there.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from litbook.text.lecture import Lecture
from litbook.text.plan import STATED, WORDS, Import, Plan, Text, body_of, groups_of, span
from litbook.text.program import Unit, defined, definition, excerpt, reads
from litbook.text.rows import Code, Row, Rows, Show
from litbook.text.tree import blocks, dotted, everything

__all__ = ["STATED", "WORDS", "Code", "Item", "Layout", "Random", "Row", "Section", "Show", "Told", "defined",
           "excerpt",
           "imported", "layouts", "reads"]  # fmt: skip


@dataclass(frozen=True)
class Told:
    """A statement whose prose, picture or link the record has."""

    function: int
    first: int
    last: int
    answer: Code | None = None  # of a question: what computes it


@dataclass(frozen=True)
class Section:
    """A section begins. `why` is empty where its body lies open, else the reason why it stays a function."""

    function: int
    level: int
    device: str | None = None
    why: str = ""


@dataclass(frozen=True)
class Random:
    """Random numbers start anew, are put aside, or come back for what a parent goes on with."""

    kind: str  # "seed", "keep" or "back"
    device: str | None = None


Item = Code | Told | Section | Random


@dataclass(frozen=True)
class Layout:
    """One notebook: the text of its cells in order, and what that text leans on."""

    root: int
    imports: tuple[Code, ...]
    setting: tuple[Code, ...]  # constants, and what they need
    items: tuple[Item, ...]
    modules: tuple[str, ...]  # names of the modules beside the lecture, in the order of their first use
    packages: tuple[str, ...]  # third-party, by import name
    words: Mapping[str, str]  # the name in the text -> the author's word that it means; "" for the package
    used: frozenset[str]  # the author's words that the cells call
    names: frozenset[str]  # every name in the lecture's text: a notebook's own helpers avoid them
    asyncio: bool = False  # `asyncio.run` is called; a notebook already has a running loop


def layouts(
    lecture: Lecture,
    roots: Sequence[int],
    *,
    beside: Collection[str] = (),
    reserved: Collection[str] = (),
    raised: Collection[str] = (),
) -> list[Layout]:
    """A notebook for each function in `roots`: `main`, or parts.

    `beside` names the modules in the lecture's folder, `reserved` what the notebook's own helpers read,
    `raised` the sections that ended with an exception. Raises `UnusableLecture` where two files of the
    lecture give one name to two things that a notebook needs.
    """
    text = Text(lecture)
    rows = [Rows(lecture, file) for file in lecture.files]
    plans = (Plan(text, root, frozenset(reserved), frozenset(raised)) for root in roots)
    return [_Writer(plan, rows).layout(frozenset(beside)) for plan in plans]


class _Writer:
    """Puts the items of one notebook in order. Definitions come right before what first needs them."""

    def __init__(self, plan: Plan, rows: Sequence[Rows]) -> None:
        self.plan, self.rows = plan, rows
        self.text, self.lecture, self.program = plan.text, plan.text.lecture, plan.text.program
        self.emitted: set[ast.AST] = set()
        self.modules: list[str] = []  # that the notebook imports
        self.written: list[ast.AST] = []  # whose text stands in cells
        self.items: list[Item] = []

    def layout(self, beside: frozenset[str]) -> Layout:
        imports, setting = self._imports(), self._setting()
        self._section(self.plan.root, 1, None)
        inner = _imported(unit.node for unit in self.plan.needed)
        named = list(dict.fromkeys([*self.modules, *inner]))
        strangers = {*named} - beside - sys.stdlib_module_names - {"litbook", "__future__"}
        words = {name: word for it in self.text.words for name, word in it.items()}
        return Layout(
            root=self.plan.root,
            imports=tuple(imports),
            setting=tuple(setting),
            items=tuple(self.items),
            modules=tuple(name for name in named if name in beside),
            packages=tuple(sorted(strangers)),
            words=words,
            used=frozenset(self._words_used(words)),
            names=self.text.names,
            asyncio=any(map(self._runs_a_loop, self.plan.needed)),
        )

    def _words_used(self, words: Mapping[str, str]) -> Iterator[str]:
        for node in (inner for it in self.written for inner in everything(it)):
            match node:
                case ast.Name(id=name):
                    yield words.get(name) or ""
                case ast.Attribute(ast.Name(id=name), word) if words.get(name) == "":
                    yield word

    def _runs_a_loop(self, unit: Unit) -> bool:
        called = (dotted(it.func) for it in everything(unit.node) if isinstance(it, ast.Call))
        return any(
            it == "asyncio.run" or self.program.origin(unit.file, it) == "asyncio.run" for it in called
        )

    # -- what comes before the sections

    def _imports(self) -> list[Code]:
        """The imports of all files, put together and sorted, without what this notebook never names."""
        whole, parts = set[str](), dict[str, set[str]]()
        for unit in self.plan.needed:
            match unit.node:
                case ast.Import(names=aliases):
                    named = [it for it in aliases if self._names(unit, it)]
                    whole |= {ast.unparse(it) for it in named if it.name != "litbook"}
                case ast.ImportFrom(names=aliases, level=level) as node if not unit.text:
                    module = f"{'.' * level}{node.module or ''}"
                    named = [it for it in aliases if self._names(unit, it) or module == "__future__"]
                    if named and module != "litbook":
                        parts.setdefault(module, set()).update(map(ast.unparse, named))
        lines = [(name, False, f"import {name}") for name in whole]
        lines += [
            (name, True, f"from {name} import {', '.join(sorted(parts[name], key=_kind))}") for name in parts
        ]
        self.modules = list(dict.fromkeys(name.split(" ")[0].split(".")[0] for name, _, _ in lines))
        lines.sort(key=lambda it: (it[0] != "__future__", not _is_standard(it[0]), it[1], it[0].lower()))
        return [Code(0, 0, 0, tuple(map(Row, _wrapped(line)))) for _, _, line in lines]

    def _names(self, unit: Unit, alias: ast.alias) -> bool:
        name = (alias.asname or alias.name).partition(".")[0]
        return name == "*" or (unit.file, name) in self.plan.read

    def _setting(self) -> list[Code]:
        """The needed statements of the files that are no definitions, and the definitions that they need."""
        plain = [unit for unit in self.plan.needed if not definition(unit)]
        early = self.program.needed((key for unit in plain for key in unit.keys), may=definition)
        found: list[Code] = []
        for unit in self.plan.needed:
            if unit in early if definition(unit) else unit.text or not isinstance(unit.node, Import):
                self.emitted.add(unit.node)
                found.append(self._whole(unit))
        groups = groups_of(self.plan.before)
        return found + [self._code(it, self.text.main or 0, it[0].col_offset, None) for it in groups]

    # -- sections

    def _section(self, index: int, level: int, device: str | None) -> None:
        """A section with its heading: open, or as a function that is then called."""
        self.emitted.add(self.text.function(index))
        device = self.lecture.functions[index].requires or device
        why = self.plan.why.get(index, "")
        self.items.append(Section(index, level, device, why))
        if why:
            self._as_function(index, level, device)
            self.items.append(Random("seed", device))
            self._call(index, device)
        else:
            self.items.append(Random("seed", device))
            for group in groups_of(body_of(self.text.function(index))):
                self._group(group, index, level, device)

    def _as_function(self, index: int, level: int, device: str | None) -> None:
        """The definition of a section, behind those of what it calls."""
        for below in self.text.calls.get(index, ()):
            self._define_section(below, level + 1, device)
        node = self.text.function(index)
        self._helpers(index, node)
        self.items.append(self._whole(self.text.unit_of[node]))

    def _define_section(self, index: int, level: int, device: str | None) -> None:
        """A section that is called from inside another statement: its heading and definition, once."""
        node = self.text.function(index)
        if node not in self.emitted:
            self.emitted.add(node)
            device = self.lecture.functions[index].requires or device
            self.items.append(Section(index, level, device, self.plan.why.get(index, "")))
            self._as_function(index, level, device)

    def _group(self, group: list[ast.stmt], index: int, level: int, device: str | None) -> None:
        """Statements of an open section that share lines; most often one."""
        node = group[0]
        target = self.text.target(node) if len(group) == 1 else None
        if target is not None:
            self._called(target, index, level, device)
        elif len(group) == 1 and self.text.word(node) in STATED and not _binds(node):
            self._told(node, index, device)
        else:
            for inner in (it for statement in group for it in (statement, *blocks(statement))):
                if (below := self.text.target(inner)) is not None:
                    self._define_section(below, level + 1, device)
            self._helpers(index, *group)
            self.items.append(self._code(group, index, 0 if device else node.col_offset, device))

    def _called(self, target: int, index: int, level: int, device: str | None) -> None:
        """A section where an open one calls it; a second time, its call."""
        if self.text.function(target) in self.emitted:
            self._call(target, device)
        elif self.plan.goes_on(index, target):
            self.items.append(Random("keep", device))
            self._section(target, level + 1, device)
            self.items.append(Random("back", device))
        else:
            self._section(target, level + 1, device)

    def _call(self, index: int, device: str | None) -> None:
        it = self.lecture.functions[index]
        row = Row(f"{'    ' if device else ''}{it.name}()")
        self.items.append(Code(index, it.first, it.last, (row,), device=device, role="call"))

    def _told(self, node: ast.stmt, index: int, device: str | None) -> None:
        first, last = span([node])
        answer = None
        match node:
            case ast.Expr(ast.Call(keywords=keywords)) if self.text.word(node) == "question":
                given = {it.arg: it.value for it in keywords}
                if "answer" in given:
                    unit = getattr(given.get("unit"), "value", None)
                    text = self.rows[self.text.file(index)].segment(given["answer"])
                    show = Show("answer", text, unit if isinstance(unit, str) else None, first)
                    row = Row(" " * (4 if device else 0), show)
                    answer = Code(index, first, last, (row,), True, device)
                    self.written.append(given["answer"])
                    self._helpers(index, node)
        if self.text.word(node) != "speaker_note":
            self.items.append(Told(index, first, last, answer))

    # -- text

    def _helpers(self, index: int, *nodes: ast.stmt) -> None:
        """Define what these statements of a section call, in turn too, unless it has been."""
        names = {name for node in nodes for name in self.text.reads(node)} - self.text.own(index)
        keys = [(self.text.file(index), name) for name in names]
        for unit in self.program.needed(keys, may=definition):
            if unit.node not in self.emitted and unit.node not in self.plan.mine:
                self.emitted.add(unit.node)
                self.items.append(self._whole(unit))

    def _whole(self, unit: Unit) -> Code:
        """A statement of a module with the comment right above it; a section's own with what it shows."""
        function = self.lecture.function_of[self.lecture.files[unit.file].tree]
        if unit.text:
            return Code(function, unit.node.lineno, unit.node.lineno, (Row(unit.text),))
        function = self.lecture.function_of.get(unit.node, function)
        role = "definition" if definition(unit) else ""
        return replace(self._code([unit.node], function, 0, None), role=role)

    def _code(self, group: Sequence[ast.stmt], function: int, dedent: int, device: str | None) -> Code:
        self.written += group
        return self.rows[self.text.file(function)].code(group, function, dedent, device)


# ---------------------------------------------------------------------------- helpers on trees and text


def imported(text: str) -> list[str]:
    """The first names of the modules that Python `text` imports, anywhere; none where it is no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return list(dict.fromkeys(_imported([tree])))


def _imported(nodes: Iterable[ast.Module | ast.stmt]) -> Iterator[str]:
    for node in (inner for it in nodes for inner in blocks(it)):
        if isinstance(node, ast.Import):
            yield from (a.name.split(".")[0] for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def _binds(node: ast.stmt) -> bool:
    return any(isinstance(n, ast.NamedExpr) for n in everything(node))


def _is_standard(module: str) -> bool:
    return module.replace(" ", ".").partition(".")[0] in sys.stdlib_module_names


def _kind(name: str) -> tuple[bool, bool, str]:
    """Constants, classes, functions: as imports are sorted."""
    return not name.isupper(), not name[0].isupper(), name.lower()


def _wrapped(text: str) -> list[str]:
    """A long import in brackets, at most 88 columns wide."""
    if len(text) <= 88 or " import " not in text:
        return [text]
    head, _, names_ = text.partition(" import ")
    rows = [f"{head} import ("]
    line = "   "
    for name in names_.split(", "):
        if len(line) + len(name) > 84:
            rows.append(line)
            line = "   "
        line += f" {name},"
    return [*rows, line, ")"]
