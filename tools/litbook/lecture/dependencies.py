"""A lecture's text, and what lies beside it -> digests of all that the claims of each section depend on.

A section depends on its own statements; on what these name of any file of the lecture or of a module beside
it, and what that names in turn; on functions that change such a thing, and on what registers itself there; on
what its part and `main` do before they call it; on what files do when they are imported; and on the files
that all of this quotes. Prose is no part of it: comments, docstrings, captions, and what the author's words
say. It runs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from litbook.lecture import siblings
from litbook.lecture.author_words import UNKNOWN, WORDS, arguments, calls
from litbook.lecture.model import SECTIONS, Lecture
from litbook.lecture.program import (
    ASSIGNMENT,
    NameInFile,
    Program,
    TopLevelStatement,
    called_at_import,
    hears_of_subclasses,
    is_definition,
)
from litbook.lecture.sections import words_in
from litbook.python import scopes
from litbook.python.file import with_modules
from litbook.python.imports import NameResolver
from litbook.python.nodes import (
    Anchor,
    DefinitionNode,
    FunctionNode,
    blocks,
    body_of,
    closure,
    dotted,
    has_docstring,
    head_of,
    mark_of,
    parameters,
)

# What finds names or files that no text says, or reads the text itself: then all that there is counts.
_HIDING = frozenset(
    "__dict__ __doc__ __file__ __globals__ __import__ __path__ __spec__ __subclasses__ _getframe argv"
    " currentframe cwd f_lineno get_data get_objects getcomments getcwd getdoc getsource getsourcelines"
    " glob globals iglob import_module iterdir listdir rglob run_module run_path scandir tb_lineno".split()
)
_HIDING_NAMES = _HIDING | {"eval", "exec"}  # as an attribute `eval` is torch's
_CHANGES = frozenset(  # methods that change what they are called on; torch's end in `_`
    "add append appendleft clear discard extend insert load_state_dict manual_seed pop popitem popleft remove"
    " reverse seed setdefault sort step update write".split()
)
_SKIPPED = {"ctx", "type_comment", "type_ignores"}  # fields of a node that say nothing of the program
_UNNAMED = 1 << 26  # bytes of a file that no text names, and that counts where nothing tells what is read
_LONGEST = 200  # characters of a text that may name a file


class Digests(NamedTuple):
    """Of a section, helper or class, each 16 hexadecimal digits; "" for a module, whose lines hold no claims.

    `text` changes with its own text. Of a section `all` changes with anything that its claims depend on, as
    far as this can be told; where that cannot be told, with any file that lies beside the lecture.
    """

    text: str = ""
    all: str = ""


def digests(lecture: Lecture, folder: Path | None = None) -> dict[str, Digests]:
    """The digests of all sections, helpers, classes and modules of a lecture that lies in `folder`."""
    grounds, by_key = _DependencyGraph(lecture, folder), dict[str, Digests]()
    for node, index in lecture.function_of.items():
        function = lecture.functions[index]
        wording = "" if function.kind == "module" else grounds.digest_of(function.file, node).digest
        whole = grounds.of_section(index, node) if function.kind in SECTIONS else ""
        by_key[lecture.key(index)] = Digests(wording, whole)
    return by_key


class _CodeDigest:
    """Statements of one file without their prose: a digest of them, and what they mention.

    It is the same whatever the other files say: `calling` are those of the file's statements that are a
    section's call, and of `lecture` it asks for directives alone.
    """

    def __init__(
        self, lecture: Lecture, words: dict[str, str], calling: frozenset[ast.AST], nodes: Iterable[ast.AST]
    ) -> None:
        self.words, self.calling = words, calling
        self.quoted: set[str] = set()  # texts that may name files
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.hides = False  # whether it may read what no text says
        self._text: list[str] = []
        self._silent: set[int] = set()  # the names, by their ids, that stand in prose, or call a section
        self._members: dict[int, str] = {}  # name, by its id -> the attribute that is read of it
        self._changed: list[ast.expr] = []  # what is changed in place
        self._watched: set[str] = set()  # names in what directives show
        self._nodes = list(nodes)
        for node in self._nodes:
            self._add(lecture, node)
        self.is_empty = not self._text
        self.digest = sha256("\0".join(self._text).encode(errors="backslashreplace")).hexdigest()[:16]

    @cached_property
    def _outer_names(self) -> list[ast.Name]:
        """The places that mean a name of the module."""
        return [
            name for node in self._nodes for name in scopes.outer_names(node) if id(name) not in self._silent
        ]

    @cached_property
    def reads(self) -> set[tuple[str, str]]:
        """The names of the module that it reads, each with an attribute where it asks for that alone."""
        names = {(name.id, self._members.get(id(name), "")) for name in self._outer_names}
        if self._watched:
            local = (scopes.local_names(node) for node in self._nodes if isinstance(node, DefinitionNode))
            names |= {(name, "") for name in self._watched.difference(*local)}
        return names

    @cached_property
    def changes(self) -> set[tuple[str, str]]:
        """The names of the module to which it gives another value, or whose objects it changes."""
        bases = {id(base) for base in self._changed_bases}
        names = (it for it in self._outer_names if id(it) in bases or not isinstance(it.ctx, ast.Load))
        return {(name.id, self._members.get(id(name), "")) for name in names}

    @cached_property
    def changes_arguments(self) -> bool:
        """Whether a function may change what it is given."""
        bases = {base.id for base in self._changed_bases if isinstance(base, ast.Name)}
        functions = (it for node in self._nodes for it in ast.walk(node) if isinstance(it, FunctionNode))
        return bool(bases) and any(name in bases for it in functions for _, name in parameters(it))

    @cached_property
    def _changed_bases(self) -> list[ast.expr]:
        bases = [*self._changed]
        for base in bases:  # which grows
            bases += [base.value] if isinstance(base, ast.Attribute | ast.Subscript) else []
        return bases

    def _add(self, lecture: Lecture, root: ast.AST) -> None:
        text, todo = self._text, list[ast.AST | str]([root])  # no recursion: expressions are of any depth
        while todo:
            node = todo.pop()
            if isinstance(node, str):
                text.append(node)
                continue
            if isinstance(node, ast.Name):
                text.append(node.id)
                self.hides |= node.id in _HIDING_NAMES
                continue
            if isinstance(node, ast.Constant):
                text.append(hex(node.value) if type(node.value) is int else repr(node.value))  # of any length
                self._quote(node.value)
                continue
            if isinstance(node, Anchor) and self._add_directives(lecture, node):
                continue
            self._visit(node)
            parts: list[ast.AST | str] = [type(node).__name__]
            for name in node._fields:
                value = node.__dict__.get(name)
                if name == "decorator_list":
                    # What says where a section runs or stands is nothing that a claim depends on.
                    marks = [mark for mark in value if mark_of(mark)]  # type: ignore[union-attr]
                    self._silent.update(id(inner) for mark in marks for inner in ast.walk(mark))
                    value = [decorator for decorator in value if decorator not in marks]  # type: ignore[union-attr]
                elif name == "body" and isinstance(node, DefinitionNode):
                    parts.append("told" if has_docstring(node) else "")
                    value = body_of(node)
                if value is None or value == [] or name in _SKIPPED:
                    continue
                parts.append(name)
                items = value if isinstance(value, list) else [value]
                parts += (item if isinstance(item, ast.AST) else repr(item) for item in items)
            todo += [")", *reversed(parts)]

    def _visit(self, node: ast.AST) -> None:
        """What a node changes, imports, quotes or hides."""
        match node:
            case ast.Attribute(value=value, attr=attr):
                self.hides |= attr in _HIDING or dotted(node) == "sys.modules"
                self._members[id(value)] = attr
                self._changed += [] if isinstance(node.ctx, ast.Load) else [value]
            case ast.Subscript(value=value):
                self._changed += [] if isinstance(node.ctx, ast.Load) else [value]
            case ast.Call(func=ast.Attribute(attr=attr, value=value)):
                changes = attr in _CHANGES or (attr.endswith("_") and not attr.endswith("__"))
                self._changed += [value] if changes else []
            case ast.JoinedStr(values=values):
                parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in values)
                self._quote("".join(parts))
            case ast.Import() | ast.ImportFrom():
                self.imports.append(node)

    def _quote(self, value: object) -> None:
        if isinstance(value, str) and len(value) <= _LONGEST and "\n" not in value:
            self.quoted.add(value)

    def _add_directives(self, lecture: Lecture, node: Anchor) -> bool:
        """Add what directives say of a statement, and of prose what is computed; True where that is all."""
        for number in lecture.watches_of.get(node, ()):
            watch = lecture.watches[number]
            self._text += [watch.kind, watch.unit or ""]
            self._add(lecture, watch.node)
            self._watched |= scopes.reads(watch.node)
        self._text += ["stepover"] * (node in lecture.stepover) + ["fails"] * (node in lecture.fails)
        match node:
            case ast.Expr(ast.Constant()):
                self._text.append("said")
                return True
            case ast.Assert(test=test, msg=ast.Constant()):
                self._text.append("Assert")
                self._add(lecture, test)
                return True
            case ast.Expr(ast.Call(func=called)) if node in self.calling:
                self._silent.add(id(head_of(called)))
            case ast.Expr():
                told = calls(node)
                if told and all(dotted(call.func) in self.words for call in told):
                    for call in told:
                        self._tell(lecture, call)
                    return True
        return False

    def _tell(self, lecture: Lecture, call: ast.Call) -> None:
        """A call of an author's word. A text that stands there is prose; one that is computed is code."""
        name = self.words[dotted(call.func)]
        word = WORDS.get(name, UNKNOWN)
        self._text.append(name)
        self._silent.add(id(head_of(call.func)))
        for place, argument in arguments(call):
            if name == "link":
                self._silent.update(id(node) for node in ast.walk(argument))
            if not (isinstance(argument, ast.Constant) and place in word.fields):
                self._text.append(str(place))
                self._add(lecture, argument)


@lru_cache(maxsize=128)
def _code_digests(_tree: ast.Module, _calling: frozenset[ast.AST]) -> dict[ast.AST, _CodeDigest]:
    """What is known of statements of a file. A save changes one file; what the others say, stays."""
    return {}


class _DependencyGraph:
    """What each statement of a lecture, and of modules beside it, leads to."""

    def __init__(self, lecture: Lecture, folder: Path | None) -> None:
        self.lecture, self.folder = lecture, folder
        beside = siblings.modules(lecture, folder) if folder else []
        self.files = with_modules([*lecture.files, *beside])
        self.program = Program(NameResolver(self.files), lambda _: frozenset())
        self.words = [words_in(file.tree) for file in self.files]
        calling = [set[ast.AST]() for _ in self.files]
        for node, number in lecture.statement_of.items():
            row = lecture.statements[number]
            if row.target is not None and isinstance(node, ast.Expr):
                calling[lecture.functions[row.function].file].add(node)
        self._calling = [*map(frozenset, calling)]
        self._wordings = [*map(_code_digests, (file.tree for file in self.files), self._calling)]
        self._steps: dict[TopLevelStatement, tuple[list[str], list[TopLevelStatement]]] = {}
        self._units: dict[ast.AST, TopLevelStatement] = {unit.node: unit for unit in self.program.units}
        self._done: dict[int, tuple[list[ast.stmt], dict[int, int]]] = {}
        self._lead: dict[tuple[int, int], tuple[list[str], list[TopLevelStatement]]] = {}
        self._packages: dict[str, str] = {}  # the first name of an import -> what it finds beside the lecture
        self._contents: dict[str, str] = {}  # a quoted text -> what the files hold that it names

    def digest_of(self, file: int, node: ast.AST) -> _CodeDigest:
        """A statement without its prose."""
        kept = self._wordings[file]
        if node not in kept:
            kept[node] = _CodeDigest(self.lecture, self.words[file], self._calling[file], [node])
        return kept[node]

    def of_section(self, index: int, node: ast.AST) -> str:
        """The digest of all that a section depends on."""
        lines, waiting = set[str](), [self._units[node], *self.effects]
        while (parent := self.lecture.functions[index].parent) is not None:
            told, needed = self._lead_in(parent, index)
            lines.update(told)
            waiting += needed
            index = parent

        def leads(unit: TopLevelStatement) -> list[TopLevelStatement]:
            """Which statements it leads to; what it says is kept beside that."""
            if unit not in self._steps:
                wording = self.digest_of(unit.file, unit.node)
                self._steps[unit] = self._dependencies(unit.file, wording, frozenset(), unit)
            return self._steps[unit][1]

        lines.update(line for unit in closure(waiting, leads) for line in self._steps[unit][0])
        return sha256("\n".join(sorted(lines)).encode(errors="backslashreplace")).hexdigest()[:16]

    def _lead_in(self, parent: int, index: int) -> tuple[list[str], list[TopLevelStatement]]:
        """What a part, or `main`, does before it calls a section, as `_dependencies` says it."""
        node = self.lecture.node_of[parent]
        assert isinstance(node, FunctionNode)
        if parent not in self._done:
            self._done[parent] = self._own_code(node)
        done, calls_at = self._done[parent]
        count = calls_at.get(index, len(done))
        if (parent, count) not in self._lead:
            at = self.lecture.functions[parent].file
            wording = _CodeDigest(self.lecture, self.words[at], self._calling[at], done[:count])
            self._lead[parent, count] = self._dependencies(at, wording, scopes.local_names(node))
        return self._lead[parent, count]

    def _own_code(self, node: FunctionNode) -> tuple[list[ast.stmt], dict[int, int]]:
        """What a part does other than telling and calling, and how much of it before each section."""
        lecture, done, calls_at = self.lecture, list[ast.stmt](), dict[int, int]()
        for statement in body_of(node):
            inside = [inner for inner in (statement, *blocks(statement)) if isinstance(inner, ast.stmt)]
            targets = {lecture.statements[lecture.statement_of[inner]].target for inner in inside}
            for target in targets:
                if target is not None:
                    calls_at.setdefault(target, len(done))
            calling = any(isinstance(inner, ast.Call) for inner in ast.walk(statement))
            if calling and not isinstance(statement, ast.Assert | DefinitionNode) and targets == {None}:
                done.append(statement)
        return done, calls_at

    @cached_property
    def effects(self) -> list[TopLevelStatement]:
        """The statements of files that do more than give a name its value, when they are imported."""
        units = list[TopLevelStatement]()
        for unit in self.program.units:
            foreign = any(self.program.source(unit.file, name) in self.program.foreign for name in unit.fills)
            star = isinstance(unit.node, ast.ImportFrom) and unit.node.names[0].name == "*" and not unit.text
            targets = [*scopes.targets(unit.node)]
            for target in targets:  # which grows
                targets += [target.value] if isinstance(target, ast.Attribute | ast.Subscript) else []
            foreign |= any(isinstance(target, ast.Call) for target in targets)  # `globals()["x"] = 1`
            plain = is_definition(unit) or isinstance(unit.node, ast.Import | ast.ImportFrom | ASSIGNMENT)
            if foreign or star or not plain:
                units.append(unit)
        return units

    @cached_property
    def changers(self) -> dict[NameInFile, list[TopLevelStatement]]:
        """For each name of a file what changes its value, or gives it another.

        That is a function that does when it is called, and a definition or an assignment that does when its
        file is imported. What else a file runs then is among `effects`.
        """
        by_name = dict[NameInFile, list[TopLevelStatement]]()
        for unit in self.program.units:
            if is_definition(unit) or isinstance(unit.node, ASSIGNMENT):
                changed = self._changed_by(unit) | self._registered_with(unit)
                for key in changed - {(unit.file, name) for name in unit.binds}:
                    by_name.setdefault(key, []).append(unit)
        return by_name

    def _changed_by(self, unit: TopLevelStatement) -> set[NameInFile]:
        changes = self.digest_of(unit.file, unit.node).changes
        return {self._meant(unit.file, name, member) for name, member in changes}

    def _registered_with(self, unit: TopLevelStatement) -> set[NameInFile]:
        """What a definition or an assignment changes by what it calls when its file is imported.

        That is what these functions change; what they are handed, where they change that; an object whose
        method decorates it; and the classes above it, where they are told of their subclasses.
        """
        decorators, others = called_at_import(unit.node)
        told, names = set[NameInFile](), self._names_in(unit.file, *decorators, *others)
        for mark in decorators:
            called = mark
            while isinstance(called, ast.Call):
                called = called.func
            if not isinstance(self.program.names.meaning(unit.file, dotted(called)), FunctionNode):
                told |= self._names_in(unit.file, called)
        above = closure([unit], self._classes_above)[1:] if isinstance(unit.node, ast.ClassDef) else []
        if any(map(hears_of_subclasses, above)):
            bases = {(it.file, name) for it in above for name in it.binds}
            told, names = told | bases, names | bases
        called_units = closure(self._statements(names), self._statements_in)
        if any(self.digest_of(it.file, it.node).changes_arguments for it in called_units):
            told |= names
        return told.union(*map(self._changed_by, called_units))

    def _classes_above(self, unit: TopLevelStatement) -> list[TopLevelStatement]:
        if not isinstance(unit.node, ast.ClassDef):
            return []
        keywords = (keyword.value for keyword in unit.node.keywords)
        return self._statements(self._names_in(unit.file, *unit.node.bases, *keywords))

    def _names_in(self, file: int, *nodes: ast.AST) -> set[NameInFile]:
        """What expressions at the left margin name of the lecture."""
        if not nodes:
            return set()
        reads = _CodeDigest(self.lecture, self.words[file], self._calling[file], nodes).reads
        names = {self._meant(file, name, member) for name, member in reads}
        return {name for name in names if self.program.statements_for(name)} - self.program.foreign.keys()

    def _statements(self, names: Iterable[NameInFile]) -> list[TopLevelStatement]:
        return [unit for name in names for unit in self.program.statements_for(name)]

    def _statements_in(self, unit: TopLevelStatement) -> list[TopLevelStatement]:
        reads = self.digest_of(unit.file, unit.node).reads
        return self._statements({self._meant(unit.file, name, member) for name, member in reads})

    def _meant(self, file: int, name: str, member: str) -> NameInFile:
        """Where the name is at home that statements of a file call `name`, or `name.member`."""
        home, name = self.program.names.source(file, name)
        return self.program.names.source(home, member) if name in ("", "*") and member else (home, name)

    def _dependencies(
        self,
        file: int,
        wording: _CodeDigest,
        local: frozenset[str] = frozenset(),
        unit: TopLevelStatement | None = None,
    ) -> tuple[list[str], list[TopLevelStatement]]:
        """What statements of a file say, and which statements they lead to, without the names in `local`."""
        names, program, units = self.program.names, self.program, list[TopLevelStatement]()
        if unit is not None and unit.renames:  # an import of another file's name under a new one
            lines, keys = [unit.text], {(unit.renames, "")}
        else:
            lines = [] if wording.is_empty else [wording.digest]
            keys = {((file, name), member) for name, member in wording.reads if name not in local}
            for node in wording.imports:
                borrowed = {((other, name), "") for _, other, name in names.imports(file, node)}
                keys |= borrowed
                if not borrowed:  # the full names of what it brings, of a relative one with its dots
                    start = "" if isinstance(node, ast.Import) else "." * node.level + (node.module or "")
                    fulls = (start if start.strip(".") else f"{start}{alias.name}" for alias in node.names)
                    lines += filter(None, map(self._package, fulls))
        for key, member in keys:
            source = program.source(*key)
            if source in program.foreign:
                full = program.foreign[source]
                lines.append(f"{wording.digest} {key[1]} {full} {self._package(full)}")
                continue
            home, name = self._meant(*key, member)
            source = (home, name) if names.source(*key)[1] in ("", "*") else source
            if name in ("", "*"):  # all of a file
                leads = [unit for unit in program.units if unit.file == home]
                leads += (unit for at, several in self.changers.items() if at[0] == home for unit in several)
            else:
                leads = [*program.statements_for(source), *self.changers.get((home, name), ())]
                if not leads and home != file:
                    leads = program.statements_for(program.source(home, "__getattr__"))
            digests = (unit.text or self.digest_of(unit.file, unit.node).digest for unit in leads)
            lines += [f"{wording.digest} {key[1]}.{member} {digest}" for digest in digests]
            units += leads
        return [*lines, *self._read(wording)], units

    def _package(self, full: str) -> str:
        """What lies beside the lecture under the name of an import that is no module of one file."""
        top = full.lstrip(".").partition(".")[0]
        if self.folder is None or not top.isidentifier():
            return ""
        if full not in self._packages:
            inside = Path(self.lecture.files[0].filename).parent
            at = {self.folder / top, *self.folder.glob(f"{top}.*")}
            at |= {inside / top} if full.startswith(".") else set()
            taken = {file.filename for file in self.files}
            there = [path for path in sorted(at) if path.exists() and str(path) not in taken]
            there = there or siblings.modules_above(top, self._modules_around)
            self._packages[full] = " ".join(map(siblings.content, there))
        return self._packages[full]

    @cached_property
    def _modules_around(self) -> dict[str, list[Path]]:
        assert self.folder is not None
        return siblings.modules_around(self.folder)

    def _read(self, wording: _CodeDigest) -> Iterator[str]:
        """What the files hold that statements name, or where that cannot be told all that there are."""
        if self.folder is None:
            return
        if wording.hides:
            yield self._all_contents
        for text in wording.quoted:
            if text not in self._contents:
                places = sorted(siblings.quoted_files([text], self.folder, self._sibling_files))
                read = [(str(at), self.folder / at) for at in places]
                named = (word.rpartition("/")[2] for word in text.split() if "." in word)
                read += ((at.name, at) for name in named for at in self._files_around.get(name, ()))
                self._contents[text] = "".join(f"{name} {siblings.content(at)}\n" for name, at in read)
            if self._contents[text]:
                yield self._contents[text]

    @cached_property
    def _files_around(self) -> dict[str, list[Path]]:
        assert self.folder is not None
        return siblings.files_around(self.folder)

    @cached_property
    def _sibling_files(self) -> list[Path]:
        assert self.folder is not None
        return [*self.folder.iterdir()]

    @cached_property
    def _all_contents(self) -> str:
        """What all files hold that lie beside the lecture, and all that its text quotes."""
        assert self.folder is not None
        files = [Path(file.filename) for file in self.files]
        quoted = {text for file in self.files for text in siblings.QUOTED.findall(file.text)}
        beside = [path for path in self.folder.iterdir() if path.is_file() and not path.name.startswith(".")]
        beside = [path for path in beside if path.stat().st_size <= _UNNAMED]
        named = [self.folder / place for place in siblings.quoted_files(quoted, self.folder)]
        return " ".join(sorted(f"{path.name} {siblings.content(path)}" for path in {*files, *beside, *named}))
