"""A lecture's text -> the order of a notebook: which text goes into which cell. Knows no values.

A section is a function; in a notebook its body lies open, statement by statement, so that a reader can stop
anywhere, look at every name and change a line. Opening a function moves its names to the top level. That is
the same program only where nothing can tell the difference, so a section stays a function, followed by its
call, where it

- returns early, or is called from more than one place, inside a loop or branch, or used as a value;
- holds a function with `nonlocal`, or asks for its scope (`locals()`, `exec`, `inspect.currentframe` ...);
- has a decorator other than `@requires`, or annotates a name with what is not defined at the top level;
- binds a name that other code of the same notebook reads: `mean = ...` beside `from statistics import mean`;
- raised when it was recorded: then the rest of it must not run.

`Section.why` says which. `docs/how-it-works.md` tells readers.
"""

from __future__ import annotations

import ast
import builtins
import io
import symtable
import sys
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from litbook.text.source import Definition, FunctionNode, Lecture, first_line, own_nodes, parse

STATED = ("note", "misbelief", "question", "image", "link", "speaker_note")  # told by the record, not by code
WORDS = (*STATED, "figure", "requires")
_SCOPE = {"locals", "vars", "dir", "exec", "eval", "currentframe", "_getframe", "stack"}
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True)
class Show:
    """An expression that the lecture shows: `kind` is "inspect", "measure", or "answer" of a question."""

    kind: str
    text: str
    unit: str | None
    line: int


@dataclass(frozen=True)
class Row:
    """A line of a cell. With a `show`, the renderer writes the call behind the spaces of `text`, or none."""

    text: str
    show: Show | None = None
    inline: bool = False  # the call follows the line above after a semicolon


@dataclass(frozen=True)
class Code:
    """One statement, or several that share lines, of the function `function` (None: of the module).

    `end` is where a semicolon keeps a notebook from showing the value of the last expression:
    row and column, None where there is nothing to keep.
    """

    function: int | None
    first: int
    last: int
    rows: tuple[Row, ...]
    hidden: bool = False
    device: str | None = None
    end: tuple[int, int] | None = None
    spaced: bool = False  # an empty line stands above
    role: str = ""  # "definition" or "call": its cell holds nothing else


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
    words: Mapping[
        str, str
    ]  # the name in the text -> the author's word that it stands for; "" for the package
    names: frozenset[str]  # every name in the lecture's text: a notebook's own helpers avoid them
    asyncio: bool = False  # `asyncio.run` is called; a notebook already has a running loop


def layouts(
    text: str,
    path: str,
    roots: Sequence[int],
    *,
    beside: Collection[str] = (),
    reserved: Collection[str] = (),
    raised: Collection[str] = (),
) -> list[Layout]:
    """A notebook for each function in `roots` (`main`, or parts), numbered as `source` numbers them.

    `beside` names the modules in the lecture's folder, `reserved` what the notebook's own helpers read,
    `raised` the sections that ended with an exception. Raises `UnusableLecture` for what is no lecture.
    """
    found = _Text(parse(text, path))
    return [
        _Writer(found, root, frozenset(beside), frozenset(reserved), frozenset(raised)).layout()
        for root in roots
    ]


def reads(text: str) -> frozenset[str]:
    """The global names, builtins included, that functions of Python `text` read."""
    table = symtable.symtable(text, "<text>", "exec")
    return frozenset(name for child in table.get_children() for name in _globals(child))


# ---------------------------------------------------------------------------- names


def _globals(table: symtable.SymbolTable) -> set[str]:
    """The names that a scope, or one inside it, takes from the module or the builtins."""
    found = {s.get_name() for s in table.get_symbols() if s.is_global()}
    for child in table.get_children():
        found |= _globals(child)
    return found


def _locals(table: symtable.SymbolTable) -> set[str]:
    return {s.get_name() for s in table.get_symbols() if s.is_local()}


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _tables(child)


def _loaded(node: ast.AST) -> set[str]:
    """The names that `node` takes from outside: not the arguments of its lambdas and comprehensions."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Lambda(args=args, body=body):
            own = {a.arg for a in ast.walk(args) if isinstance(a, ast.arg)}
            outside = set().union(*map(_loaded, [*args.defaults, *filter(None, args.kw_defaults)]))
            return outside | (_loaded(body) - own)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            own = set().union(*(_loaded(g.target) for g in node.generators))
            inner = set().union(*map(_loaded, ast.iter_child_nodes(node))) - own
            return inner | _loaded(node.generators[0].iter)
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        found |= _loaded(child)
    return found


def _bound(statement: ast.stmt) -> set[str]:
    """The module's names that a statement outside every function gives a value."""
    found: set[str] = set()
    for node in [statement, *_around(statement)]:
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add((other or name).split(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                found.add(name)
    return found


def _around(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, Definition):
        yield from own_nodes(node)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _calls(node: ast.AST) -> bool:
    """Whether evaluating `node` calls anything; the body of a lambda waits."""
    if isinstance(node, ast.Lambda):
        return False
    return isinstance(node, ast.Call | ast.Await) or any(map(_calls, ast.iter_child_nodes(node)))


# ---------------------------------------------------------------------------- one notebook


@dataclass
class _Unit:
    """A statement of the module: what it binds, and what it reads when it runs or is called."""

    node: ast.stmt
    binds: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)


class _Text:
    """What is worked out once for all notebooks of a lecture."""

    def __init__(self, lecture: Lecture) -> None:
        self.lecture = lecture
        self.inside = _lines_in_strings(lecture.text)
        self.cuts = dict(reversed(lecture.cuts))
        self.node_of = {index: node for node, index in lecture.function_of.items()}
        self.words = _words(lecture.tree)
        self.names = frozenset(_names(lecture.tree))
        self.tables: dict[tuple[str, str, int], symtable.SymbolTable] = {}
        for table in _tables(symtable.symtable(lecture.text, lecture.path, "exec")):
            kind = "class" if table.get_type() == "class" else "function"
            self.tables[kind, table.get_name(), table.get_lineno()] = table
        kinds = ("main", "part", "section")
        self.sections = {f.name for f in lecture.functions if f.kind in kinds}
        self.units = [self.unit(node) for node in self._statements()]
        imports = [u for u in self.units if isinstance(u.node, ast.Import | ast.ImportFrom)]
        self.imported = {name for unit in imports for name in unit.binds}
        self.by_name: dict[str, list[_Unit]] = {}
        for unit in self.units:
            for name in unit.binds:
                self.by_name.setdefault(name, []).append(unit)

    def _statements(self) -> list[ast.stmt]:
        """The module's, but for the docstring and the `if` around `main()`, which no notebook has."""
        body = self.lecture.tree.body
        first = 1 if ast.get_docstring(self.lecture.tree, clean=False) is not None else 0
        return [s for s in body[first:] if not _is_entry(s)]

    def unit(self, node: ast.stmt) -> _Unit:
        """What a statement binds and reads; of a definition, what its body reads of the module."""
        found = _loaded(node)
        if isinstance(node, Definition):
            table = self.table(node)
            found = _globals(table) if table is not None else found
            outside: list[ast.AST] = [*node.decorator_list]
            if isinstance(node, ast.ClassDef):
                outside += [*node.bases, *(k.value for k in node.keywords)]
            else:
                outside += [a for a in ast.walk(node.args) if isinstance(a, ast.expr)]
                outside += [node.returns] if node.returns else []
            outside += [n.annotation for n in ast.walk(node) if isinstance(n, ast.AnnAssign)]
            for part in outside:
                found |= _loaded(part)
        found |= self._shown(node)
        linked = {name for name in found & self.sections if not self.mentions(node, name)}
        return _Unit(node, _bound(node), found - linked)

    def _shown(self, node: ast.AST) -> set[str]:
        """The names in the expressions that `node` shows, but for a definition's own."""
        watches = [
            self.lecture.watches[i]
            for inner in ast.walk(node)
            for i in self.lecture.watches_of.get(inner, ())
        ]
        table = self.table(node) if isinstance(node, Definition) else None
        found: set[str] = set().union(*(_loaded(watch.node) for watch in watches))
        return found - (_locals(table) if table is not None else set())

    def table(self, node: ast.AST) -> symtable.SymbolTable | None:
        """The scope of a definition."""
        kind, name = "class" if isinstance(node, ast.ClassDef) else "function", getattr(node, "name", "")
        found = self.tables.get((kind, name, getattr(node, "lineno", 0)))
        decorators = getattr(node, "decorator_list", [])
        return found or (self.tables.get((kind, name, decorators[0].lineno)) if decorators else None)

    def mentions(self, node: ast.AST, name: str) -> bool:
        """Whether `node` uses the function `name` other than by calling it as a section or linking to it."""
        if isinstance(node, ast.stmt) and (self.target(node) is not None or self.word(node) == "link"):
            return False
        if isinstance(node, ast.Name) and node.id == name:
            return True
        return any(self.mentions(child, name) for child in ast.iter_child_nodes(node))

    def target(self, node: ast.stmt) -> int | None:
        """The section that a statement calls; a hidden call is still one."""
        number = self.lecture.statement_of.get(node)
        spec = self.lecture.statements[number] if number is not None else None
        return (
            spec.target
            if spec is not None and spec.kind in ("section", "hidden") and not isinstance(node, Definition)
            else None
        )

    def word(self, node: ast.AST) -> str:
        """The author's word that a statement is a call of, else nothing."""
        match node:
            case ast.Expr(ast.Call(func=called)):
                head, _, tail = _dotted(called).rpartition(".")
                if head and self.words.get(head) == "":
                    return tail if tail in WORDS else ""
                return self.words.get(_dotted(called), "")
        return ""


class _Writer:
    """Works one notebook out: what is needed, which sections lie open, then the items in order."""

    def __init__(
        self,
        text: _Text,
        root: int,
        beside: frozenset[str],
        reserved: frozenset[str],
        raised: frozenset[str],
    ) -> None:
        self.text, self.lecture, self.root, self.beside = text, text.lecture, root, beside
        self.reserved, self.raised = reserved, raised
        self.lines, self.inside, self.cuts = text.lecture.lines, text.inside, text.cuts
        self.node_of, self.words = text.node_of, text.words
        self.units, self.by_name = text.units, text.by_name
        self.emitted: set[ast.AST] = set()
        self.items: list[Item] = []

    def layout(self) -> Layout:
        self.sections = self._reached(self.root)
        self.before = self._before_root()
        self.needed = self._needed()
        self.why = self._reasons()
        imports, setting = self._settings()
        self._section(self.root, 1, None)
        used = [unit for unit in self.units if unit.node in self.needed]
        modules, packages = self._imported(used, imports)
        return Layout(
            root=self.root,
            imports=tuple(imports),
            setting=tuple(setting),
            items=tuple(self.items),
            modules=modules,
            packages=packages,
            words=self.words,
            names=self.text.names,
            asyncio=any(_dotted(n.func).endswith("asyncio.run") or _dotted(n.func) == "run"
                        for unit in used for n in ast.walk(unit.node) if isinstance(n, ast.Call))
            and "asyncio" in self.lecture.text,
        )  # fmt: skip

    # -- what the notebook is about

    def _reached(self, root: int) -> list[int]:
        """`root` and the sections below it, in reading order."""
        found: list[int] = []

        def walk(index: int) -> None:
            if index not in found:
                found.append(index)
                for statement in self.lecture.statements:
                    if statement.kind == "section" and statement.function == index:
                        if statement.target is not None:
                            walk(statement.target)

        walk(root)
        return found

    def _before_root(self) -> list[ast.stmt]:
        """What `main` does before it calls this part, other than telling and calling."""
        main = next((i for i, f in enumerate(self.lecture.functions) if f.kind == "main"), None)
        if main is None or main == self.root:
            return []
        found: list[ast.stmt] = []
        for statement in _body(self._function(main)):
            if self.text.target(statement) == self.root:
                return found
            if self.text.target(statement) is None and self.text.word(statement) not in STATED:
                found.append(statement)
        return found

    def _needed(self) -> set[ast.AST]:
        """The module's statements that the notebook holds: its sections, what has an effect, what is read."""
        mine: set[ast.AST] = {self.node_of[i] for i in self.sections}
        chosen = mine | {
            unit.node
            for unit in self.units
            if _has_effect(unit.node) or _filled(unit.node) & self.text.imported  # a library's setting
        }
        wanted = {name for statement in self.before for name in _loaded(statement)}
        wanted |= {name for unit in self.units if unit.node in chosen for name in unit.reads}
        grows = True
        while grows:
            grows = False
            for unit in self.units:  # what binds a name, and what fills it: `TABLE["x"] = f`
                if unit.node not in chosen and (unit.binds | _filled(unit.node)) & wanted:
                    chosen.add(unit.node)
                    wanted |= unit.reads
                    grows = True
        return chosen

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
        node = self._function(index)
        if self.lecture.functions[index].name in self.raised:
            return "it raised when it was recorded"
        others = [d for d in node.decorator_list if not self._is_requires(d)]
        if others:
            return f"it has the decorator @{ast.unparse(others[0])}"
        own = list(own_nodes(node))
        if any(isinstance(n, ast.Return) for n in own):
            return "it returns early"
        bound = _locals(table) if (table := self.text.table(node)) else set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Nonlocal) and bound & set(inner.names):
                return "a function in it assigns its names (nonlocal)"
            if isinstance(inner, ast.Call) and _dotted(inner.func).split(".")[-1] in _SCOPE:
                if not inner.args or _dotted(inner.func).split(".")[-1] in ("exec", "eval"):
                    return f"it asks for its own scope ({_dotted(inner.func)})"
        known = set(self.by_name) | bound | set(dir(builtins))
        for inner in own:
            if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name) and inner.simple:
                if not self._postponed() and _loaded(inner.annotation) - known:
                    return "it annotates with a name that nothing defines"
        return ""

    def _postponed(self) -> bool:
        return any(
            isinstance(s, ast.ImportFrom) and s.module == "__future__"
            and any(a.name == "annotations" for a in s.names)
            for s in self.lecture.tree.body
        )  # fmt: skip

    def _reason_of_calls(self, index: int) -> str:
        if index == self.root:
            return ""
        name = self.lecture.functions[index].name
        sites = [s for s in self.lecture.statements if s.kind == "section" and s.target == index
                 and s.function in self.sections]  # fmt: skip
        if len(sites) > 1:
            return "it is called from more than one place"
        caller = self._function(sites[0].function) if sites else None
        if caller is None or not any(self.text.target(s) == index for s in _body(caller)):
            return "it is called inside another statement"
        if len(self._sharing(caller, index)) > 1:
            return "its call shares a line with other code"
        for unit in self.units:
            if unit.node in self.needed and name in unit.reads:
                return "it is used as a value"
        return ""

    def _sharing(self, caller: FunctionNode, index: int) -> list[ast.stmt]:
        groups = _groups(_body(caller))
        return next((g for g in groups if any(self.text.target(s) == index for s in g)), [])

    def _reason_of_names(self, index: int) -> str:
        """A name of the section that other code of the notebook would find changed."""
        table = self.text.table(self._function(index))
        mine = _locals(table) if table is not None else set()
        clash = mine & (self.reserved | set(self.words))
        for unit in self.units:
            if unit.node in self.needed and unit.node is not self._function(index):
                clash |= mine & unit.reads
        for statement in self.before:
            clash |= mine & _loaded(statement)
        parent = self.lecture.functions[index].parent
        if parent in self.sections and parent is not None and self._goes_on(parent, index):
            above = self.text.table(self._function(parent))
            clash |= mine & (_locals(above) if above is not None else set())
        if not clash:
            return ""
        name = min(clash)
        return f"its name {name!r} is also a name of other code here"

    def _goes_on(self, parent: int, index: int) -> bool:
        """Whether the parent runs code of its own after calling the section."""
        found = False
        for statement in _body(self._function(parent)):
            if self.text.target(statement) == index:
                found = True
            elif found and self.text.target(statement) is None and self.text.word(statement) not in STATED:
                return True
        return False

    # -- what comes before the sections

    def _settings(self) -> tuple[list[Code], list[Code]]:
        """The needed statements of the module that are no definitions, and the definitions that they need."""
        imports: list[Code] = []
        setting: list[Code] = []
        wanted: set[str] = set()
        for unit in self.units:
            if unit.node in self.needed and not isinstance(unit.node, Definition):
                wanted |= unit.reads
        early = self._closure(wanted)
        read = {name for unit in self.units if unit.node in self.needed for name in unit.reads}
        for index in self.sections:
            read |= self.text.unit(self._function(index)).reads
        read |= {name for statement in self.before for name in _loaded(statement)}
        for unit in self.units:
            node = unit.node
            if node not in self.needed:
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                if code := self._import(node, read):
                    imports.append(code)
                self.emitted.add(node)
            elif not isinstance(node, Definition) or node in early:
                setting.append(self._whole(node, None))
                self.emitted.add(node)
        setting += [self._code(group, None, group[0].col_offset, None) for group in _groups(self.before)]
        return imports, setting

    def _closure(self, names_: set[str]) -> set[ast.AST]:
        found: set[ast.AST] = set()
        waiting, seen = list(names_), set(names_)
        while waiting:
            for unit in self.by_name.get(waiting.pop(), ()):
                if unit.node in found or not isinstance(unit.node, Definition):
                    continue
                found.add(unit.node)
                waiting += unit.reads - seen
                seen |= unit.reads
        return found

    def _import(self, node: ast.Import | ast.ImportFrom, read: set[str]) -> Code | None:
        """The import without what this notebook never names; None where nothing of it is left."""
        if isinstance(node, ast.ImportFrom):
            if node.module == "litbook":
                return None
            kept = [a for a in node.names if (a.asname or a.name) in read or a.name == "*"]
            if node.module == "__future__":
                kept = node.names
        else:
            kept = [
                a for a in node.names
                if (a.asname or a.name).split(".")[0] in read and a.name.split(".")[0] != "litbook"
            ]  # fmt: skip
        if not kept:
            return None
        last = node.end_lineno or node.lineno
        if len(kept) == len(node.names):
            return self._code([node], None, 0, None)
        new = (
            ast.Import(kept)
            if isinstance(node, ast.Import)
            else ast.ImportFrom(node.module, kept, node.level)
        )
        return Code(None, node.lineno, last, tuple(Row(line) for line in _wrapped(ast.unparse(new))))

    def _imported(
        self, used: Sequence[_Unit], imports: Sequence[Code]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Modules beside the lecture and third-party packages that the kept statements import, anywhere."""
        kept = [unit.node for unit in used if not isinstance(unit.node, ast.Import | ast.ImportFrom)]
        whole = [ast.parse(row) for row in ("\n".join(r.text for r in code.rows) for code in imports)]
        found = list(dict.fromkeys(_imports([*whole, *kept])))
        own = tuple(name for name in found if name in self.beside)
        strangers = [n for n in found if n not in self.beside and n not in sys.stdlib_module_names]
        return own, tuple(sorted(n for n in strangers if n not in ("litbook", "__future__")))

    # -- sections

    def _section(self, index: int, level: int, device: str | None) -> None:
        node = self._function(index)
        device = self.lecture.functions[index].requires or device
        why = self.why.get(index, "")
        called = self._kept_below(index) if why else []
        self.items.append(Section(index, level, device, why))
        for below in called:
            self._section_as_definition(below, level + 1, device)
        if why:
            self._helpers(node)
            self._define(node)
            self.items.append(Random("seed", device))
            self._call(index, device)
            return
        self.items.append(Random("seed", device))
        for group in _groups(_body(node)):
            self._group(group, index, level, device)

    def _kept_below(self, index: int) -> list[int]:
        """Sections that a section which stays a function calls: they are defined before it."""
        found: list[int] = []
        for statement in self.lecture.statements:
            target = statement.target
            if statement.kind == "section" and statement.function == index and target is not None:
                if self._function(target) not in self.emitted:
                    found.append(target)
        return list(dict.fromkeys(found))

    def _section_as_definition(self, index: int, level: int, device: str | None) -> None:
        node = self._function(index)
        if node in self.emitted:
            return
        self.emitted.add(node)
        device = self.lecture.functions[index].requires or device
        self.items.append(Section(index, level, device, "it is called inside another statement"))
        for below in self._kept_below(index):
            self._section_as_definition(below, level + 1, device)
        self._helpers(node)
        self._define(node, again=True)

    def _group(self, group: list[ast.stmt], index: int, level: int, device: str | None) -> None:
        """Statements of an open section that share lines; most often one."""
        node = group[0]
        target = self.text.target(node) if len(group) == 1 else None
        if target is not None and target in self.sections:
            if self._function(target) in self.emitted:  # a further call
                self._call(target, device)
                return
            goes_on = self._goes_on(index, target)
            if goes_on:
                self.items.append(Random("keep", device))
            self.emitted.add(self._function(target))
            self._section(target, level + 1, device)
            if goes_on:
                self.items.append(Random("back", device))
            return
        if len(group) == 1 and self.text.word(node) in STATED and not _binds(node):
            self._told(node, index, device)
            return
        for inner in (n for s in group for n in ast.walk(s)):  # calls of sections inside it
            below = self.text.target(inner) if isinstance(inner, ast.stmt) else None
            if below is not None and below in self.sections:
                self._section_as_definition(below, level + 1, device)
        self._helpers(*group)
        self.items.append(self._code(group, index, 0 if device else node.col_offset, device))

    def _told(self, node: ast.stmt, index: int, device: str | None) -> None:
        first, last = _span([node])
        answer = None
        if (
            self.text.word(node) == "question"
            and isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
        ):
            given = {k.arg: k.value for k in node.value.keywords}
            if "answer" in given:
                text = self._segment(given["answer"])
                unit = given.get("unit")
                said = unit.value if isinstance(unit, ast.Constant) and isinstance(unit.value, str) else None
                show = Show("answer", text, said, first)
                indent = " " * (4 if device else 0)
                answer = Code(index, first, last, (Row(indent, show),), True, device)
                self._helpers(node)
        if self.text.word(node) != "speaker_note":
            self.items.append(Told(index, first, last, answer))

    def _call(self, index: int, device: str | None) -> None:
        name = self.lecture.functions[index].name
        indent = "    " if device else ""
        it = self.lecture.functions[index]
        self.items.append(
            Code(index, it.first, it.last, (Row(f"{indent}{name}()"),), device=device, role="call")
        )

    def _helpers(self, *nodes: ast.stmt) -> None:
        """Define what these statements call, perhaps through other helpers, unless it has been."""
        wanted: set[str] = set()
        for node in nodes:
            wanted |= self.text.unit(node).reads | (
                _loaded(node) if not isinstance(node, Definition) else set()
            )
        closure = self._closure(wanted)
        for unit in self.units:
            if unit.node in closure and unit.node not in self.emitted and unit.node in self.needed:
                if not any(unit.node is self._function(i) for i in self.sections):
                    self._define(unit.node)

    def _define(self, node: ast.stmt, again: bool = False) -> None:
        if node not in self.emitted or again or any(node is self._function(i) for i in self.sections):
            self.emitted.add(node)
            index = self.lecture.function_of.get(node)
            self.items.append(self._whole(node, index))

    # -- text

    def _whole(self, node: ast.stmt, index: int | None) -> Code:
        """A statement of the module with the comment right above it; a section's own with what it shows."""
        index = index if index is not None and isinstance(node, Definition) else None
        role = "definition" if isinstance(node, Definition) else ""
        return replace(self._code([node], index, 0, None), role=role)

    def _code(self, group: Sequence[ast.stmt], index: int | None, dedent: int, device: str | None) -> Code:
        first, last = _span(group)
        top = self._comment_above(first)
        without = self._lines_of_requires(group)
        before, after, inline = self._shows(group, index)
        rows: list[Row] = []
        for number in range(top, last + 1):
            if number in without:
                continue
            rows += [self._row(text, show, dedent) for text, show in before.get(number, ())]
            rows.append(Row(self._dedented(number, dedent)))
            rows += [
                replace(self._row(text, show, dedent), inline=True) for text, show in inline.get(number, ())
            ]
            rows += [self._row(text, show, dedent) for text, show in after.get(number, ())]
        hidden = all(s in self.lecture.hidden for s in group)
        spaced = top > 1 and not self.lines[top - 2].strip()
        end = self._end(group, top, rows, dedent)
        return Code(index, first, last, tuple(rows), hidden, device, end, spaced)

    def _row(self, indent: str, show: Show, dedent: int) -> Row:
        return Row(indent[dedent:], show)

    def _dedented(self, number: int, dedent: int) -> str:
        line = self.lines[number - 1]
        if number in self.cuts:
            line = line[: self.cuts[number]].rstrip()
        if number in self.inside:
            return line
        return line[min(dedent, len(line) - len(line.lstrip())) :]

    def _comment_above(self, first: int) -> int:
        """The first line of the comment that stands right above a statement, if any."""
        top = first
        while top > 1 and self.lines[top - 2].strip().startswith("#") and top - 1 not in self.inside:
            if self.lines[top - 2].strip().startswith("# ---"):  # the lecture's own headings
                break
            top -= 1
        return top

    def _lines_of_requires(self, group: Sequence[ast.stmt]) -> set[int]:
        return {
            line
            for node in group if isinstance(node, Definition)
            for d in node.decorator_list if self._is_requires(d)
            for line in range(d.lineno, (d.end_lineno or d.lineno) + 1)
        }  # fmt: skip

    def _is_requires(self, decorator: ast.expr) -> bool:
        return isinstance(decorator, ast.Call) and _dotted(decorator.func).split(".")[-1] == "requires"

    def _end(
        self, group: Sequence[ast.stmt], top: int, rows: Sequence[Row], dedent: int
    ) -> tuple[int, int] | None:
        """Where the value of a last expression would be shown: its row, and the column behind it."""
        node = group[-1]
        if not isinstance(node, ast.Expr) or node.end_lineno is None or rows[-1].show is not None:
            return None
        line = self.lines[node.end_lineno - 1]
        column = len(line.encode()[: node.end_col_offset].decode())
        lost = 0 if node.end_lineno in self.inside else min(dedent, len(line) - len(line.lstrip()))
        row = len(rows) - 1
        return (row, column - lost) if node.end_lineno >= top else None

    # -- what is shown

    def _shows(
        self, group: Sequence[ast.stmt], index: int | None
    ) -> tuple[
        dict[int, list[tuple[str, Show]]],
        dict[int, list[tuple[str, Show]]],
        dict[int, list[tuple[str, Show]]],
    ]:
        """Calls to be written before, after and on lines, each with its indentation."""
        before: dict[int, list[tuple[str, Show]]] = {}
        after: dict[int, list[tuple[str, Show]]] = {}
        inline: dict[int, list[tuple[str, Show]]] = {}
        is_section = index is not None and self.lecture.functions[index].kind in ("main", "part", "section")
        if not is_section:
            return before, after, inline
        anchors = [n for s in group for n in _showing(s, self.lecture)]
        for anchor, quiet in anchors:
            shows = [
                Show(w.kind, w.text, w.unit, w.line)
                for w in (self.lecture.watches[i] for i in self.lecture.watches_of.get(anchor, ()))
                if w.kind != "clear"
            ]
            if shows and not quiet:
                self._place(anchor, shows, before, after, inline)
        return before, after, inline

    def _place(
        self,
        anchor: ast.AST,
        shows: Sequence[Show],
        before: dict[int, list[tuple[str, Show]]],
        after: dict[int, list[tuple[str, Show]]],
        inline: dict[int, list[tuple[str, Show]]],
    ) -> None:
        """After a simple statement; at the start of a block; before what leaves the block."""
        if isinstance(anchor, ast.Match):
            for case in anchor.cases:
                self._place(case, shows, before, after, inline)
            return
        body: list[ast.stmt] = getattr(anchor, "body", None) or []
        stepped = anchor in self.lecture.stepover
        if body and not isinstance(anchor, ast.ClassDef) and not stepped:
            line = _span(body[:1])[0]
            before.setdefault(line, []).extend((self._indent(line), s) for s in shows)
            return
        assert isinstance(anchor, ast.stmt)
        last = anchor.end_lineno or anchor.lineno
        alone = not self.lines[anchor.lineno - 1].encode()[: anchor.col_offset].strip()
        indent = self._indent(anchor.lineno)
        if isinstance(anchor, _LEAVES):
            before.setdefault(anchor.lineno, []).extend((indent, s) for s in shows)
        elif alone or self._at_block_start(anchor):
            after.setdefault(last, []).extend((indent, s) for s in shows)
        else:
            inline.setdefault(last, []).extend(("", s) for s in shows)

    def _at_block_start(self, anchor: ast.stmt) -> bool:
        """Whether a statement of the same block stands before `anchor` on its line: `a = 1; b = 2`."""
        text = self.lines[anchor.lineno - 1].encode()[: anchor.col_offset].decode().strip()
        try:
            ast.parse(text)
        except SyntaxError:
            return False  # `if x:` ...
        return True

    def _segment(self, node: ast.expr) -> str:
        """The author's own text of an expression. `ast.get_source_segment` reads the whole file each time."""
        last, column = node.end_lineno or node.lineno, node.end_col_offset
        lines = [line.encode() for line in self.lines[node.lineno - 1 : last]]
        lines[-1] = lines[-1][:column]
        lines[0] = lines[0][node.col_offset :]
        return b"\n".join(lines).decode()

    def _indent(self, line: int) -> str:
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip())]

    def _function(self, index: int) -> FunctionNode:
        node = self.node_of[index]
        assert isinstance(node, FunctionNode)
        return node


# ---------------------------------------------------------------------------- helpers on trees and text


def _names(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add((other or name).split(".")[0])
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
    return found


def imported(text: str) -> list[str]:
    """The first names of the modules that Python `text` imports, anywhere; none where it is no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return list(dict.fromkeys(_imports([tree])))


def _imports(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import):
                yield from (a.name.split(".")[0] for a in inner.names)
            elif isinstance(inner, ast.ImportFrom) and inner.module and not inner.level:
                yield inner.module.split(".")[0]


def _words(tree: ast.Module) -> dict[str, str]:
    """The names under which a text calls the author's words, anywhere in it."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "litbook":
            for alias in node.names:
                if alias.name == "*":
                    found.update({word: word for word in WORDS})
                else:
                    found[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.Import):
            found.update({a.asname or a.name: "" for a in node.names if a.name == "litbook"})
    return found


def _body(node: FunctionNode) -> list[ast.stmt]:
    """The statements of a function without its docstring, and without imports of the author's words."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return [s for s in body if not _imports_words(s)]


def _imports_words(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "litbook"
    return isinstance(node, ast.Import) and all(a.name == "litbook" for a in node.names)


def _span(group: Sequence[ast.stmt]) -> tuple[int, int]:
    """First line, decorators included, and last line."""
    return min(map(first_line, group)), max(node.end_lineno or node.lineno for node in group)


def _groups(body: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """Neighbouring statements that share a line belong together."""
    groups: list[list[ast.stmt]] = []
    for node in body:
        if groups and _span(groups[-1])[1] >= _span([node])[0]:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _showing(node: ast.AST, lecture: Lecture, quiet: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """The statements and parts of `node` that may show something, and whether they are stepped over.

    For a section that stays a function `node` is its definition: its body shows, its signature does not.
    """
    if not isinstance(node, FunctionNode):
        yield node, quiet
        if isinstance(node, ast.ClassDef):
            return
    quiet = quiet or (node in lecture.stepover and not isinstance(node, Definition))
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(
            child, FunctionNode
        ):
            yield from _showing(child, lecture, quiet)


def _is_entry(node: ast.stmt) -> bool:
    match node:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return False


def _has_effect(node: ast.stmt) -> bool:
    """Whether a statement of the module does more than bind a name: a call, a loop."""
    if isinstance(node, Definition):
        return False
    if isinstance(node, ast.Import | ast.ImportFrom):
        return isinstance(node, ast.ImportFrom) and (
            node.module == "__future__" or any(a.name == "*" for a in node.names)
        )
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        if _filled(node):
            return _calls(node)
        return node.value is not None and _calls(node.value)
    return True


def _filled(node: ast.stmt) -> set[str]:
    """The tables and objects that an assignment fills: `TABLE["x"] = ...` names TABLE."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    return {
        name
        for target in targets
        if isinstance(target, ast.Attribute | ast.Subscript) or isinstance(node, ast.AugAssign)
        for name in _loaded(target)
    }


def _binds(node: ast.stmt) -> bool:
    return any(isinstance(n, ast.NamedExpr) for n in ast.walk(node))


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


def _lines_in_strings(text: str) -> set[int]:
    """The lines that begin inside a string: their spaces are part of it."""
    found: set[int] = set()
    opened: list[int] = []
    start = getattr(tokenize, "FSTRING_START", None)
    end = getattr(tokenize, "FSTRING_END", None)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            found |= set(range(token.start[0] + 1, token.end[0] + 1))
        elif start is not None and token.type == start:
            opened.append(token.start[0])
        elif end is not None and token.type == end:
            found |= set(range(opened.pop() + 1, token.end[0] + 1))
    return found
