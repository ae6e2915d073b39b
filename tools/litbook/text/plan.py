"""A lecture's text -> what one notebook of it holds, and which of its sections lie open in it.

In goes a `Lecture`; out come sections, the statements that they need of any of its files, and for a section
that stays a function the reason why. It knows nothing of cells and lines.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from functools import cache, cached_property

from litbook.errors import Problem, UnusableLecture
from litbook.text import scopes
from litbook.text.lecture import Lecture
from litbook.text.program import Key, Program, Unit
from litbook.text.tree import (
    FunctionNode,
    blocks,
    body_of,
    children,
    dotted,
    everything,
    first_line,
    mark_of,
    own_nodes,
)
from litbook.text.words import STATED, calls, later

Import = ast.Import | ast.ImportFrom
SECTIONS = ("main", "part", "section")
_SCOPE = {"locals", "vars", "dir", "exec", "eval", "currentframe", "_getframe", "stack"}


class Text:
    """What is worked out once for all notebooks of a lecture."""

    def __init__(self, lecture: Lecture) -> None:
        self.lecture = lecture
        self.node_of = {index: node for node, index in lecture.function_of.items()}
        self.main = next((i for i, f in enumerate(lecture.functions) if f.kind == "main"), None)
        self.reads, self.own = cache(self._reads), cache(self._own)  # notebooks ask for the same again
        self.program = Program(lecture.names, self.reads)
        self.unit_of = {unit.node: unit for unit in self.program.units}

    def file(self, function: int) -> int:
        """The number of the file in which a function stands."""
        return self.lecture.functions[function].file

    def function(self, index: int) -> FunctionNode:
        """The definition of a section."""
        node = self.node_of[index]
        assert isinstance(node, FunctionNode)
        return node

    def body(self, index: int) -> list[ast.stmt]:
        """The statements of a section without its docstring."""
        return body_of(self.function(index))

    def _own(self, index: int) -> frozenset[str]:
        """The names that a section has to itself."""
        return scopes.own(self.function(index))

    def _reads(self, node: ast.stmt) -> frozenset[str]:
        """The names of the module, and builtins, that a statement needs to run, be called and be shown."""
        own = scopes.own(node) if isinstance(node, FunctionNode | ast.ClassDef) else frozenset[str]()
        watches = (i for it in (node, *blocks(node)) for i in self.lecture.watches_of.get(it, ()))
        shown = (scopes.reads(self.lecture.watches[i].node) - own for i in watches)
        return scopes.reads(node).union(*shown)

    def target(self, statement: ast.stmt) -> int | None:
        """The section that a statement calls and does nothing else; a hidden call is still one."""
        spec = self.lecture.statements[self.lecture.statement_of[statement]]
        return spec.target if spec.kind in ("section", "hidden") and isinstance(statement, ast.Expr) else None

    def word(self, statement: ast.stmt) -> str:
        """The author's word by which a statement tells what the record has, else nothing.

        The first of several on one line; nothing where a question, whose answer runs, is one of these.
        """
        spec = self.lecture.statements[self.lecture.statement_of[statement]]
        found = [self._word(call, spec.function) for call in calls(statement) if spec.kind == "piece"]
        told = [it for it in found if it != "speaker_note"] or found
        is_told = STATED.issuperset(told) and not _binds(statement)
        return told[0] if told and is_told and (len(found) == 1 or "question" not in found) else ""

    def _word(self, call: ast.Call, function: int) -> str:
        head, _, name = dotted(call.func).rpartition(".")
        full = name if head else self.program.origin(self.file(function), name)
        return full.rpartition(".")[2]


class Plan:
    """What one notebook holds: the part or lecture `root`, and all that this leans on.

    `why` says for each section that stays a function why it does. `raised` are sections that ended with an
    exception. Raises `UnusableLecture` where one namespace cannot hold it all.
    """

    def __init__(self, text: Text, root: int, raised: frozenset[str] = frozenset()) -> None:
        self.text, self.root = text, root
        self.lecture, self.program = text.lecture, text.program
        self.sections = [*dict.fromkeys(self._below(root))]
        self.why = {i: why for i in self.sections if (why := self._reason_of_text(i, raised))}
        while found := {i: why for i in self.sections if i not in self.why and (why := self._reason(i))}:
            self.why |= found
            for known in ("reads", "needed", "read"):
                self.__dict__.pop(known, None)
        problems = [*self._clashes(), *self._whole_modules()]
        if problems:
            raise UnusableLecture(problems)

    def _below(self, index: int, above: tuple[int, ...] = ()) -> Iterator[int]:
        """A section and all that it calls, in reading order."""
        yield index
        for it in self.lecture.statements:
            if it.kind == "section" and it.function == index and it.target not in (None, *above, index):
                yield from self._below(it.target, (*above, index))  # type: ignore[arg-type]  # it is not None

    def opened(self, statement: ast.stmt) -> int | None:
        """The section that lies open where a statement calls it."""
        target = self.text.target(statement)
        return None if target in self.why else target

    def code(self, index: int) -> list[ast.stmt]:
        """What a section that lies open does itself, other than calling others and telling something."""
        return [it for it in self.text.body(index) if self.opened(it) is None and not self.text.word(it)]

    @cached_property
    def before(self) -> list[ast.stmt]:
        """What `main` does before it calls this part, other than telling and calling."""
        main, found = self.text.main, list[ast.stmt]()
        for statement in self.text.body(main) if main is not None and main != self.root else ():
            target = self.text.target(statement)
            if target == self.root:
                break
            if target is None and not self.text.word(statement):
                found.append(statement)
        return found

    # -- what it needs

    def answer(self, statement: ast.stmt) -> tuple[ast.expr, str | None] | None:
        """What computes the answer of a question, and in which unit it is."""
        match statement:
            case ast.Expr(ast.Call(keywords=keywords)) if self.text.word(statement) == "question":
                given = {it.arg: it.value for it in keywords}
                unit = getattr(given.get("unit"), "value", None)
                return (given["answer"], unit) if "answer" in given else None
        return None

    def keys(self, index: int, *statements: ast.stmt) -> list[Key]:
        """The names of a section's file that some of its statements read."""
        own, file = self.text.own(index), self.text.file(index)
        return [(file, name) for it in statements for name in self.text.reads(it) - own]

    @cached_property
    def reads(self) -> dict[int, list[Key]]:
        """What each section that lies open reads."""
        asked = {i: [*filter(None, map(self.answer, self.text.body(i)))] for i in self.sections}
        return {
            i: self.keys(i, *self.code(i), *(ast.Expr(node) for node, _ in asked[i]))
            for i in self.sections
            if i not in self.why
        }

    def _keys_before(self) -> list[Key]:
        file = self.text.file(self.text.main) if self.text.main is not None else 0
        return [(file, name) for it in self.before for name in self.text.reads(it) | scopes.sets(it)]

    @cached_property
    def needed(self) -> dict[Unit, None]:
        """The statements of the files that it holds: what has an effect, and what is read."""
        here = self.program.reached(self.text.file(i) for i in self.sections) | {0}
        chosen = [unit for unit in self.program.units if unit.file in here and self._has_effect(unit)]
        closed = [(self.text.file(i), self.lecture.functions[i].name) for i in self.why]
        self.start = [*closed, *self._keys_before(), *(key for keys in self.reads.values() for key in keys)]
        found = self.program.needed(self.start + [key for unit in chosen for key in unit.keys])
        found |= dict.fromkeys(chosen)
        return {unit: None for unit in self.program.units if unit in found}

    @cached_property
    def read(self) -> set[Key]:
        """The names that the notebook's code reads, by the file that it stands in."""
        return {key for unit in self.needed for key in unit.keys} | {*self.start}

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

    # -- which sections lie open

    def _reason_of_text(self, index: int, raised: frozenset[str]) -> str:
        """Why a section's own text must stay a function."""
        node = self.text.function(index)
        if self.lecture.functions[index].name in raised:
            return later("it raised when it was recorded")
        if others := [it for it in node.decorator_list if not mark_of(it)]:
            return later("it has a decorator") + f": @{ast.unparse(others[0])}"
        if any(isinstance(it, ast.Return) for it in own_nodes(node)):
            return later("it returns early")
        for inner in everything(node):
            if isinstance(inner, ast.Nonlocal) and scopes.own(node) & set(inner.names):
                return later("a function in it assigns its names (nonlocal)")
            if isinstance(inner, ast.Call) and dotted(inner.func).split(".")[-1] in _SCOPE:
                if not inner.args or dotted(inner.func).split(".")[-1] in ("exec", "eval"):
                    return f"it asks for its own scope ({dotted(inner.func)})"
        noted = (it.annotation for it in own_nodes(node) if isinstance(it, ast.AnnAssign))
        undefined = {name for it in noted for name in scopes.reads(it)} - scopes.own(node) - {*dir(builtins)}
        origins = {self.program.origin(self.text.file(index), name) for name in {*undefined, "annotations"}}
        late = "__future__.annotations" in origins
        if not late and any(it.startswith("builtins.") for it in origins - {"builtins.annotations"}):
            # At the top level Python looks it up.
            return later("it annotates with a name that nothing defines")
        return ""

    def _reason(self, index: int) -> str:
        """Why a section must stay a function where it stands in this notebook."""
        me = self.text.file(index), self.lecture.functions[index].name
        callers = [i for i in self.reads for it in self.text.body(i) if self.opened(it) == index]
        read = any(name == me[1] and self.program.source(file, name) == me for file, name in self.read)
        if index != self.root and (len(callers) != 1 or read):
            return later("it is called from more than one place, or used as a value")
        others = [self._keys_before(), *(keys for i, keys in self.reads.items() if i != index)]
        names = {name for keys in others for _, name in keys}.union(*(unit.reads for unit in self.needed))
        if clash := self.text.own(index) & names:
            return later("its name is also one of other code here") + f": {min(clash)}"
        goes_on = bool(callers) and self._goes_on(callers[0], index)
        return later("the section around it goes on after it") if goes_on else ""

    def _goes_on(self, parent: int, index: int) -> bool:
        """Whether a section runs code of its own after calling another."""
        body = self.text.body(parent)
        at = next(i for i, it in enumerate(body) if self.text.target(it) == index)
        return any(self.text.target(it) is None and not self.text.word(it) for it in body[at + 1 :])

    # -- one namespace

    def _clashes(self) -> Iterator[Problem]:
        """Two things of two files under one name."""
        plain = (it for it in self.needed if it.text or not isinstance(it.node, Import))
        bound = [(it.file, name) for it in plain for name in it.binds]
        first: dict[str, Key] = {}
        for key in sorted({*self.read, *bound}):
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

    @property
    def _notebook(self) -> str:
        return f"the notebook of {self.lecture.functions[self.root].name}()"

    def _whole_modules(self) -> Iterator[Problem]:
        """Modules of the lecture that are used as values, or imported where no statement of the module is."""
        top, inside = "import what you need: from {} import …", "import it at the top of the file"
        read = (it for it in self.program.whole.items() if it[0] in self.read)
        found = [(file, node, name, top.format(name if isinstance(node, ast.Import) else f".{name}"))
                 for (file, name), node in read]  # fmt: skip
        for unit in self.needed:
            inner = (it for it in blocks(unit.node) if isinstance(it, ast.ImportFrom))
            found += [(unit.file, it, str(it.module), inside)
                      for it in inner if any(self.program.names.imports(unit.file, it))]  # fmt: skip
        for file, node, name, way_out in found:
            what = f"{self._notebook} has no module {name}: its files become one"
            yield Problem("clash", what, self.lecture.files[file].at(node), way_out)


def _calls(node: ast.AST) -> bool:
    """Whether evaluating `node` calls anything; the body of a lambda waits."""
    if isinstance(node, ast.Lambda):
        return False
    return isinstance(node, ast.Call | ast.Await) or any(map(_calls, children(node)))


def _binds(node: ast.AST) -> bool:
    return any(isinstance(it, ast.NamedExpr) for it in everything(node))


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
