"""Sections that lean on each other: one reads a name of the module whose object an earlier one changes.

In go a lecture's text, out come pairs of sections with the lines at which one changes and the other reads. A
change is

    an assignment to `global`, to an attribute or an item, of a class, a function or a module too, and of
    what others made (`math.pi = 3`);
    a call of a method whose result nobody takes (`MODEL.eval()`, `SEEN.append(1)`), or of a method of the
    lecture's that changes its `self`; a function that changes what it is given (`heappush`, `out=`);
    any use of what is spent by use: an iterator, an open file, a generator of random numbers, a closure
    with `nonlocal`;
    through an object what only its class has (`class A: items = []`), through a call a default that is kept;
    a file that is written, by its name;

and any of these on what was got from it: `for p in MODEL.parameters(): p.data -= …`, an optimizer of its
parameters, in a shallow copy, or in a helper to which it was given. Nothing runs here, and what `exec` does
nobody sees; nor does a decorator's own state count, since most of these only remember or measure.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from litbook.lecture.author_words import WORDS
from litbook.lecture.calls import LectureCalls
from litbook.lecture.model import Lecture
from litbook.python import scopes
from litbook.python.nodes import FunctionNode, all_nodes, blocks, dotted, own_nodes, parameters

CHANGES = frozenset(  # methods that change what they are called on; torch's end in `_`
    "add append appendleft clear discard extend fit insert load_state_dict partial_fit pop popitem popleft"
    " remove reverse setdefault sort step train_step update".split()
)
# Functions that change their first argument. So do those whose names end in `_`.
GIVEN = frozenset(
    "__delattr__ __setattr__ copyto delattr delitem fill_diagonal heapify heappop heappush heappushpop"
    " heapreplace insort insort_left insort_right next place put putmask setattr setitem shuffle".split()
)
# What makes an object that is another one after each use.
SPENT = frozenset(
    "Generator Random RandomState accumulate chain count cycle default_rng enumerate filter iter map open"
    " product repeat reversed zip".split()
)
# Calls that leave a file of the name that they are given.
WRITES = frozenset(
    "dump makedirs mkdir rename save save_file save_model savefig savetxt savez savez_compressed to_csv"
    " to_json to_parquet touch write_bytes write_text".split()
)
# Methods that are called for what they print or draw, and settings of modules that are put back.
_SPEAKS = frozenset(
    "close flush plot print scatter show bar hist info warning debug summary cache_clear".split()
)
_RESTORED = ("os.", "sys.", "torch.backends.", "warnings.", "threading.", "logging.")
_MAKERS = ("__init__", "__post_init__")
_LOOKS = frozenset("dict enumerate iter list reversed set sorted tuple vars zip".split())  # have its parts
_PLAIN = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
_LASTING = _PLAIN | ast.Call  # made once and kept: a default's, a class's
_FILES = -1  # stands for the number of a file where a name is that of a file on disk
_OTHERS = -2  # and where it is the full name of what others made: `math.pi`
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
    of_others: bool = False  # a name of a module that is not the lecture's


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
        self._shared_of: dict[ast.ClassDef, dict[str, tuple[GlobalName, ast.expr]]] = {}
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
        self._blocks = [
            {node.name: node for node in file.tree.body if isinstance(node, ast.ClassDef | FunctionNode)}
            for file in lecture.files
        ]
        program = self.calls.program
        self._others = [  # what imports of others stand for, by the names of each file
            {name: full for (home, name), full in program.foreign.items() if home == file.number}
            | {name: name for home, name in program.whole if home == file.number}
            for file in lecture.files
        ]
        self._cached = [
            {name for name, block in defined.items() if any(map(_is_cache, block.decorator_list))}
            | {
                name
                for name, value in _made(file.tree)
                if isinstance(value, ast.Call) and _is_cache(value.func)
            }
            for file, defined in zip(lecture.files, self._blocks, strict=True)
        ]
        self._class_of: dict[ast.AST, tuple[ast.ClassDef, int]] = {}  # of a method
        self._methods: dict[str, list[tuple[FunctionNode, int]]] = {}  # of the lecture's classes, by name
        for file, named in enumerate(self._blocks):
            for block in named.values():
                for method in block.body if isinstance(block, ast.ClassDef) else ():
                    if isinstance(method, FunctionNode) and isinstance(block, ast.ClassDef):
                        self._class_of[method] = block, file
                        self._methods.setdefault(method.name, []).append((method, file))
        self._counting = [  # where asking for an item makes one
            {name for name, value in _made(file.tree) if _callee(value) == "defaultdict"}
            for file in lecture.files
        ]
        self._plain = [  # whose copies share what is in them
            {name for name, value in _made(file.tree) if isinstance(value, _PLAIN)} for file in lecture.files
        ]
        every = {name: block for blocks in self._blocks for name, block in blocks.items()}
        keeps = {  # of what is called, not of the function itself
            f"{name}()" for name, one in every.items() if isinstance(one, FunctionNode) and _keeps(one)
        }
        self._spent = [{*keeps} for _ in lecture.files]
        for text in lecture.files:
            for name, value in _made(text.tree):
                if _is_spent(value, self._spent[text.number]):
                    self._spent[text.number].add(name)
        makes = {name for name, one in every.items() if isinstance(one, FunctionNode) and [*_inner(one)]}
        self._functions = {  # names of what is no object of a class of the lecture's with `__call__`
            *every,
            *(
                name
                for text in lecture.files
                for name, value in _made(text.tree)
                if isinstance(value, ast.Lambda)
                or _callee(value) in {*makes, "cache", "lru_cache", "partial"}
            ),
        }
        self._learns = [
            {name for name, value in _made(file.tree) if _learns(value, every)} for file in lecture.files
        ]

    @cached_property
    def _parts(self) -> dict[GlobalName, set[GlobalName]]:
        """Names whose objects are parts of each other."""
        found: dict[GlobalName, set[GlobalName]] = {}
        for file, named in enumerate(self._blocks):
            for block in named.values():  # what a class has, those that are made from it have
                for base, home in self._line(block, file)[1:] if isinstance(block, ast.ClassDef) else ():
                    found.setdefault((home, base.name), set()).add((file, block.name))
        for text in self.lecture.files:
            together: dict[int, str] = {}  # `more, total = counter()`
            for name, value in _made(text.tree):
                parts = _parts_of(value)
                if name in self._spent[text.number]:
                    parts = parts | {together.setdefault(id(value), name)}
                for part in parts & self._values[text.number] - {name}:
                    pair = (text.number, name), (text.number, part)
                    for one, other in (pair, pair[::-1]):
                        found.setdefault(one, set()).add(other)
        return found

    @cached_property
    def all(self) -> list[Leaning]:
        """Each reader with each name and the last section before it that changes it, in their order."""
        found, changed = list[Leaning](), dict[GlobalName, list[tuple[int, tuple[int, ast.AST]]]]()
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
                    if name[0] != _FILES or name not in summary.changed:  # it writes its own
                        found.append(Leaning(index, changer, name[1], read, at, name[0] == _OTHERS))
            for name, at in summary.changed.items():
                for one in (name, *self._parts.get(name, ())):
                    changed.setdefault(one, []).append((index, at))
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
            given, inside = [name for _, name in parameters(node)], [*self._watched(node)]
            inside[:0] = (inner for statement in node.body for inner in all_nodes(statement))
            origins = _Origins(node, inside, self._values[file], self._plain[file])
            for base, at in (*_changes(inside, self._is_word), *_writes_through(inside, origins)):
                for name in origins.of(base):
                    self._note(summary, name, given, file, at)
            for key, at in self._of_classes(node, inside, file):
                summary.changed.setdefault(key, (file, at))
            for call in (one for one in inside if isinstance(one, ast.Call)):
                for helper, home in self._called(call, file, origins.local):
                    self._take(summary, self._summary(helper, home))
                    self._hand_over(summary, call, (helper, home), given, file, origins)
            for one in inside if self._methods else ():
                for owner, method in self._own_changes(one, summary):
                    for name in origins.of(owner) if owner else ():
                        self._note(summary, name, given, file, owner or one)
                    if isinstance(one, ast.Call):
                        self._hand_over(summary, one, method, given, file, origins)
            for inner in inside:
                self._read(summary, inner, file, origins)
            self._of_others(summary, inside, file, origins.local)
            self._of_caches(summary, inside, file, origins.local)
        return self._summaries[node]

    def _watched(self, node: FunctionNode) -> Iterator[ast.AST]:
        """What comments show in a function, as if it stood on their lines."""
        for anchor in (node, *blocks(node)):
            for number in self.lecture.watches_of.get(anchor, ()):
                watch = self.lecture.watches[number]
                for inner in ast.walk(copy.deepcopy(watch.node)) if watch.kind != "clear" else ():
                    if isinstance(inner, ast.expr):
                        inner.lineno, inner.col_offset = watch.line, 0
                    yield inner

    def _hand_over(
        self,
        summary: _Summary,
        call: ast.Call,
        called: tuple[FunctionNode, int],
        given: Sequence[str],
        file: int,
        origins: _Origins,
    ) -> None:
        """What a helper changes of what it is given, or of what its parameters are where nothing is given."""
        (helper, home), changed = called, self._summary(*called).parameters
        is_bound = helper in self._class_of and "staticmethod" not in map(dotted, helper.decorator_list)
        for argument in _given(call, helper, changed, is_bound):
            for name in origins.of(argument):
                self._note(summary, name, given, file, call)
        for name, default in _kept_defaults(call, helper, is_bound):
            is_spent = _is_spent(default, self._spent[home])
            if is_spent or name in changed:
                key = self._key(home, _root(default))
                if key is None and (is_spent or isinstance(default, _LASTING)):
                    key = home, f"{helper.name}({name}=…)"
                if key is not None:
                    summary.changed.setdefault(key, (file, call))
            else:
                key = self._key(home, _root(default))
            if key is not None:
                summary.read.setdefault(key, (file, call))

    def _line(self, block: ast.ClassDef, file: int) -> list[tuple[ast.ClassDef, int]]:
        """A class and those of the lecture's that it is made from, each with its file."""
        line = [(block, file)]
        for one, home in line:  # which grows
            for base in one.bases:
                made = self.calls.program.binding(home, base.id) if isinstance(base, ast.Name) else None
                if made and isinstance(made.node, ast.ClassDef) and (made.node, made.file) not in line:
                    line.append((made.node, made.file))
        return line

    def _shared(self, block: ast.ClassDef, file: int) -> dict[str, tuple[GlobalName, ast.expr]]:
        """The attributes that only the class has, and no object of its own; whose they are, and their value.

        So has an attribute that is a parameter's default: `def __init__(self, items=[]): self.items = items`.
        """
        if block in self._shared_of:
            return self._shared_of[block]
        found, own = dict[str, tuple[GlobalName, ast.expr]](), set[str]()
        for one, home in self._line(block, file):
            for name, value in _made(one):
                if isinstance(value, _LASTING) and _callee(value) != "field":
                    found.setdefault(name, ((home, one.name), value))
            for maker in one.body:
                if isinstance(maker, FunctionNode) and maker.name in _MAKERS:
                    defaults = _defaults(maker)
                    for target, value in _bindings(all_nodes(maker)):
                        if not isinstance(target, ast.Attribute) or _root(target) != _first(maker):
                            continue
                        default = defaults.get(value.id) if isinstance(value, ast.Name) else None
                        if isinstance(default, _LASTING):
                            found[target.attr] = (home, one.name), default
                        else:
                            own.add(target.attr)
        kept = self._shared_of[block] = {name: what for name, what in found.items() if name not in own}
        return kept

    def _of_classes(
        self, node: FunctionNode, inside: Sequence[ast.AST], file: int
    ) -> Iterator[tuple[GlobalName, ast.AST]]:
        """The classes that a function changes through an object: `self.items.append(x)`, `cls.n += 1`."""
        bound = {target.id: value for target, value in _bindings(inside) if isinstance(target, ast.Name)}
        mine = {
            t.attr for t, _ in _bindings(inside) if isinstance(t, ast.Attribute) and _root(t) == _first(node)
        }
        marks = {dotted(mark) for mark in node.decorator_list}

        def owned(base: ast.expr) -> tuple[GlobalName, ast.expr | None] | None:
            root, attribute = _head(base)
            if root in bound and not isinstance(bound[root], ast.Call):  # `items = self.items`
                root, attribute = _head(bound[root])
            maker, of = bound.get(root), self._class_of.get(node)
            if of and root == _first(node):
                if attribute == "__class__" or "classmethod" in marks:
                    return (of[1], of[0].name), None
                return None if attribute in mine else self._shared(*of).get(attribute)
            name = maker.func.id if isinstance(maker, ast.Call) and isinstance(maker.func, ast.Name) else root
            made = self.calls.program.binding(file, name)
            if made and isinstance(made.node, ast.ClassDef):
                return self._shared(made.node, made.file).get(attribute)
            return None

        whole = ((target, one) for one in inside for target in _longer(one))
        for base, at in (*_changes(inside, self._is_word), *whole):
            if owner := owned(base):
                yield owner[0], at
        for one in inside:
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load):
                owner = owned(one)
                if owner and owner[1] and _is_spent(owner[1], self._spent[file]):
                    yield owner[0], one

    def _is_word(self, call: ast.Call) -> bool:
        """Whether a call says something, and changes nothing: a word of an author's, `print`, a plot."""
        name = dotted(call.func).rpartition(".")[2]
        return name in WORDS or name in _SPEAKS or name.startswith("assert")

    def _own_changes(
        self, call: ast.AST, summary: _Summary
    ) -> Iterator[tuple[ast.expr | None, tuple[FunctionNode, int]]]:
        """The methods of the lecture's classes that a form or a name calls, with what they change."""
        match call:
            case ast.Call(ast.Attribute(value=base, attr=name)):
                forms = [(name, base)]
            case ast.Call(ast.Name(name) as base) if name not in self._functions:
                forms = [("__call__", base)]
            case ast.withitem(base):
                forms = [("__enter__", base)]
            case ast.Subscript(value=base, ctx=ast.Load()):
                forms = [("__getitem__", base)]
            case _:
                return
        for name, base in forms:
            for method, home in self._methods.get(name, ()):
                does, given = self._summary(method, home), [name for _, name in parameters(method)]
                self._take(summary, does)
                changes = given[:1] and given[0] in does.parameters
                yield base if changes else None, (method, home)

    def _read(self, summary: _Summary, inner: ast.AST, file: int, origins: _Origins) -> None:
        """What a part of a function reads, and what it changes by reading it."""
        match inner:
            case ast.Name(name, ast.Load()) if name not in origins.local:
                key = self._key(file, name)
                if key is not None:
                    summary.read.setdefault(key, (file, inner))
                    if key[1] in self._spent[key[0]]:
                        summary.changed.setdefault(key, (file, inner))
            case ast.Subscript(value=ast.Name(name), ctx=ast.Load()) if name not in origins.local:
                key = self._key(file, name)
                if key is not None and key[1] in self._counting[key[0]]:
                    summary.changed.setdefault(key, (file, inner))
            case ast.Call(ast.Attribute(value=base, attr="backward")):
                for name in origins.made_of(base):
                    key = self._key(file, name)
                    if key is not None and key[1] in self._learns[key[0]]:
                        summary.changed.setdefault(key, (file, inner))
            case ast.Call():
                for path in _paths(inner):
                    kept = summary.changed if _writes(inner) else summary.read
                    kept.setdefault((_FILES, path), (file, inner))

    def _of_others(
        self, summary: _Summary, inside: Sequence[ast.AST], file: int, local: frozenset[str]
    ) -> None:
        """What is read and changed of modules and classes of others: `math.pi = 3`, `Fraction.__str__ = …`.

        Who uses a class need not name it, so who uses its module is taken to use the class. What is written
        back in the same function, `old = math.pi` and later `math.pi = old`, is not changed.
        """
        imports = {name: full for name, full in self._others[file].items() if name not in local}
        imported = list[tuple[str, ast.AST]]()
        for one in inside:
            match one:
                case ast.Import(names):
                    imports |= {
                        alias.asname or top: alias.name if alias.asname else top
                        for alias in names
                        for top in [alias.name.partition(".")[0]]
                    }
                case ast.ImportFrom(str(module), names, 0):
                    imports |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in names}
                    imported += ((f"{module}.{alias.name}", one) for alias in names)

        def full(node: ast.expr) -> str:
            head, dot, rest = dotted(node).partition(".")
            return f"{imports[head]}{dot}{rest}" if head in imports else ""

        for one in inside:
            if isinstance(one, ast.Attribute | ast.Name) and isinstance(one.ctx, ast.Load):
                name = full(one)  # of what an import has brought, the import has read
                imported.append((name if isinstance(one, ast.Attribute) else name.rpartition(".")[0], one))
            owner, attribute = _set_attribute(one)
            if owner is None or not (of := full(owner)):
                continue
            target, name = f"{ast.unparse(owner)}.{attribute}", f"{of}.{attribute}"
            bindings = {(ast.unparse(to), ast.unparse(value)) for to, value in _bindings(inside)}
            is_put_back = any(to == target and (old, target) in bindings for to, old in bindings)
            if not is_put_back and not name.startswith(_RESTORED):
                is_class = of.rpartition(".")[2][:1].isupper()
                key = _OTHERS, of.partition(".")[0] if is_class else name
                summary.changed.setdefault(key, (file, one))
        for name, at in imported:
            parts = name.split(".") if name else []
            for end in range(1, len(parts) + 1):
                summary.read.setdefault((_OTHERS, ".".join(parts[:end])), (file, at))

    def _of_caches(
        self, summary: _Summary, inside: Sequence[ast.AST], file: int, local: frozenset[str]
    ) -> None:
        """What `functools.cache` keeps is read by `cache_info()` alone, and each call changes it."""
        cleared = {
            dotted(one.value)
            for one in inside
            if isinstance(one, ast.Attribute) and one.attr == "cache_clear"
        }
        for one in inside:
            name = one.id if isinstance(one, ast.Name) else ""
            if isinstance(one, ast.Attribute) and one.attr == "cache_info":
                name = dotted(one.value)
            key = self._key(file, name) if name and name not in local else None
            if key is not None and key[1] in self._cached[key[0]]:
                told = key[0], f"{key[1]}.cache_info()"
                if isinstance(one, ast.Name):
                    summary.changed.setdefault(told, (file, one))
                elif name not in cleared:
                    summary.read.setdefault(told, (file, one))

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
        """A name of the lecture that holds a value, a function or a class; None for imports of others."""
        home, source = self.calls.program.source(file, name)
        inside = 0 <= home < len(self._values) and (
            source in self._values[home] or source in self._blocks[home]
        )
        return (home, source) if inside else None

    def _called(self, call: ast.AST, file: int, local: frozenset[str]) -> Iterator[tuple[FunctionNode, int]]:
        """The helper of the lecture that a call calls by its name; no section."""
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id not in local:
            binding = self.calls.program.binding(file, call.func.id)
            index = self.lecture.function_of.get(binding.node) if binding else None
            if binding and index is not None and isinstance(binding.node, FunctionNode):
                if self.lecture.functions[index].kind not in ("main", "part", "section"):
                    yield binding.node, self.lecture.functions[index].file
            elif binding and isinstance(binding.node, ast.ClassDef):
                for method in binding.node.body:
                    if isinstance(method, FunctionNode) and method.name in _MAKERS:
                        yield method, binding.file


class _Origins:
    """Of which names the objects in a function are part: parameters, and names of the module."""

    def __init__(
        self, node: FunctionNode, inside: Sequence[ast.AST], values: set[str], plain: set[str]
    ) -> None:
        self.local = scopes.local_names(node)
        bindings = [*_bindings(inside)]
        self._names: dict[str, set[str]] = {name: {name} for _, name in parameters(node)}
        self._made: dict[str, set[str]] = {}  # all names that stand in what a name was computed from
        self._parts: dict[str, set[str]] = {}  # what is not the name's own below its top: of shallow copies
        for _ in range(2):  # what is got of what was got
            for target, value in bindings:
                shared = set[str]().union(*map(self.of, _shares(value, plain)))
                for name in _stored(target):
                    self._parts.setdefault(name, set()).update(shared)
                if _copies(value):
                    continue
                got = self.of(value)
                if isinstance(value, ast.Call) and not got & {*self._names, *values}:
                    parts = (
                        one for one in value.args if isinstance(one, ast.Attribute | ast.Subscript | ast.Call)
                    )
                    got = set[str]().union(*map(self.of, parts))
                for name in _stored(target):
                    self._names.setdefault(name, set()).update(got)
        for target, value in bindings:
            stands = {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
            for name in _stored(target):
                self._made.setdefault(name, set()).update(stands)

    def of(self, base: ast.expr) -> set[str]:
        """The names of whose objects an expression is part."""
        name = _root(base)
        if name not in self.local:
            return {name} - {""}
        below = set[str]() if isinstance(base, ast.Name) else self._parts.get(name, set[str]())
        return self._names.get(name, set[str]()) | below

    def made_of(self, base: ast.expr) -> set[str]:
        """The names from which an expression was computed, through others."""
        waiting, found = {inner.id for inner in ast.walk(base) if isinstance(inner, ast.Name)}, set[str]()
        while waiting:
            name = waiting.pop()
            found.add(name)
            waiting |= (self._made.get(name, set()) if name in self.local else set()) - found
        return found - self.local


def _root(node: ast.expr) -> str:
    """The name that an expression takes a part of, `MODEL` of `MODEL.layers[0].parameters()`; else ""."""
    while True:
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case ast.Call(func=ast.Name(called), args=[inner, *_]) if called in _LOOKS:
                node = inner
            case ast.Name(name):
                return name
            case _:
                return ""


def _head(node: ast.expr) -> tuple[str, str]:
    """The name that an expression takes a part of, and the first attribute that it takes."""
    attribute = ""
    while True:
        match node:
            case ast.Attribute(inner, name):
                node, attribute = inner, name
            case ast.Subscript(inner) | ast.Starred(inner):
                node, attribute = inner, ""
            case ast.Call(func=ast.Attribute() as inner):
                node = inner
            case ast.Call(ast.Name("type"), [inner]):
                node, attribute = inner, "__class__"
            case ast.Call(ast.Name(called), [inner, *_]) if called in _LOOKS:
                node = inner
            case ast.Name(name):
                return name, attribute
            case _:
                return "", ""


def _first(node: FunctionNode) -> str:
    """The first parameter of a method: its `self` or `cls`."""
    return next((name for _, name in parameters(node)), "")


def _longer(node: ast.AST) -> Iterator[ast.expr]:
    """What `self.items += [x]` makes longer where it is."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
        if isinstance(node.value, ast.List | ast.ListComp | ast.Set | ast.Dict):
            yield node.target


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


def _item(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Subscript(node, ast.Constant(0), ast.Load()), node)


def _shares(value: ast.expr, plain: set[str]) -> list[ast.expr]:
    """What a new container has in it, and others too: items of `dict(TREE)`, of `[*ROWS]`, `A` of `[A, 1]`.

    `X.copy()` of an array is new all through; so only where `X` is one of the lecture's plain containers.
    """
    match value:
        case (
            ast.Call(ast.Name("list" | "tuple" | "dict" | "set" | "sorted" | "copy"), [inner, *_])
            | ast.Call(ast.Attribute(ast.Name("copy"), "copy"), [inner])
            | ast.Subscript(inner, ast.Slice())
            | ast.Starred(inner)
        ):
            return [_item(inner)]
        case ast.Call(ast.Attribute(inner, "copy")) if _root(inner) in plain:
            return [_item(inner)]
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            return [one for item in items for one in (_shares(item, plain) or [item])]
        case ast.Dict(keys, values):
            return [value if key else _item(value) for key, value in zip(keys, values, strict=True)]
        case (
            ast.ListComp(ast.Name(name), [*loops])
            | ast.SetComp(ast.Name(name), [*loops])
            | ast.DictComp(value=ast.Name(name), generators=[*loops])
        ):
            return [_item(loop.iter) for loop in loops if name in _stored(loop.target)]
        case ast.BinOp(left, ast.Add() | ast.BitOr(), right):
            both = left, right
            if any(isinstance(one, ast.List | ast.Dict) or _root(one) in plain for one in both):
                return [*map(_item, both)]
    return []


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with what they get."""
    for node in nodes:
        match node:
            case ast.Assign(targets, value):
                for target in targets:
                    pairs = [(target, value)]
                    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):  # `a, b = [], 0`
                        if not any(isinstance(one, ast.Starred) for one in (*target.elts, *value.elts)):
                            pairs = [*zip(target.elts, value.elts, strict=False)]
                    yield from pairs
            case ast.AnnAssign(target, value=ast.expr() as value) | ast.NamedExpr(target, value):
                yield target, value
            case ast.Match(subject, cases):
                for inner in (inner for case in cases for inner in ast.walk(case.pattern)):
                    if isinstance(inner, ast.MatchAs | ast.MatchStar) and inner.name:
                        yield ast.Name(inner.name, ast.Store()), subject
            case ast.For(target, value) | ast.comprehension(target, value):
                yield target, _item(value) if _copies(value) else value
            case ast.withitem(value, ast.expr() as target):
                yield target, value


def _stored(target: ast.expr) -> Iterator[str]:
    """The names that an assignment to it binds; of `model.w` none."""
    match target:
        case ast.Name(name):
            yield name
        case ast.Tuple(items) | ast.List(items):
            for item in items:
                yield from _stored(item)
        case ast.Starred(inner):
            yield from _stored(inner)


def _changes(
    nodes: Sequence[ast.AST], is_word: Callable[[ast.Call], bool]
) -> Iterator[tuple[ast.expr, ast.AST]]:
    """The expressions whose objects are changed, each with where."""
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    for node in nodes:
        match node:
            case ast.Subscript(
                value=ast.Call(ast.Name("globals")),
                slice=ast.Constant(str() as name),
                ctx=ast.Store() | ast.Del(),
            ):
                yield ast.Name(name), node
            case ast.Call(ast.Attribute(ast.Call(ast.Name("globals")), "update"), keywords=keywords):
                yield from ((ast.Name(keyword.arg), node) for keyword in keywords if keyword.arg)
            case ast.Attribute(value=value) | ast.Subscript(value=value) if not isinstance(
                node.ctx, ast.Load
            ):
                yield value, node
            case ast.Expr(ast.Call(func=ast.Attribute(value=value)) as call) if not is_word(call):
                yield value, call  # nobody takes what it returns: it is called for what it does
            case ast.Call(func=func, args=args, keywords=keywords):
                name = dotted(func).rpartition(".")[2]
                if isinstance(func, ast.Attribute) and _is_change(func.attr):
                    yield func.value, node
                    if args and dotted(func.value) in ("list", "dict", "set"):  # `list.append(X, 1)`
                        yield args[0], node
                if args and (name in GIVEN or (_is_change(name) and name.endswith("_"))):
                    yield args[0], node
                yield from ((keyword.value, node) for keyword in keywords if keyword.arg == "out")
                # `map(SEEN.append, …)`: a method is given away.
                yield from (
                    (given.value, node)
                    for given in args
                    if isinstance(given, ast.Attribute) and _is_change(given.attr)
                )
            case ast.AugAssign(target=ast.Name(name) as target, value=value):
                # Of a number it is another one; of a list or a tensor the same.
                own = (n for n in ast.walk(value) if isinstance(n, ast.Attribute) and _root(n) == name)
                if isinstance(value, ast.List | ast.ListComp | ast.Set) or any(own):
                    yield target, node
            case ast.Name(name) if name in shared and not isinstance(node.ctx, ast.Load):
                yield node, node
            case ast.Import(names) | ast.ImportFrom(names=names):
                bound = {(alias.asname or alias.name).partition(".")[0] for alias in names}
                yield from ((ast.Name(name), node) for name in bound & shared)


def _set_attribute(node: ast.AST) -> tuple[ast.expr | None, str]:
    """The object of which a node sets or deletes an attribute, and this: also by `setattr` or `vars`."""
    match node:
        case ast.Attribute(owner, name, ast.Store() | ast.Del()):
            return owner, name
        case (
            ast.Subscript(
                ast.Call(ast.Name("vars"), [owner]) | ast.Attribute(owner, "__dict__"),
                ast.Constant(str(name)),
                ast.Store() | ast.Del(),
            )
            | ast.Call(ast.Name("setattr" | "delattr"), [owner, ast.Constant(str(name)), *_])
            | ast.Call(ast.Attribute(attr="__setattr__"), [owner, ast.Constant(str(name)), *_])
        ):
            return owner, name
    return None, ""


def _is_cache(decorator: ast.expr) -> bool:
    """Whether it is `functools.cache`, or `lru_cache` with or without a size."""
    marked = decorator.func if isinstance(decorator, ast.Call) else decorator
    return dotted(marked).rpartition(".")[2] in ("cache", "lru_cache")


def _is_change(method: str) -> bool:
    return method in CHANGES or (method.endswith("_") and not method.endswith("__"))


def _writes_through(nodes: Sequence[ast.AST], origins: _Origins) -> Iterator[tuple[ast.expr, ast.AST]]:
    """`add = SEEN.append; add(1)`: what is called by a name that was got from it."""
    for node in nodes:
        match node:
            case ast.Expr(ast.Call(func=ast.Name(name) as func) as call) if name in origins.local:
                yield func, call


def _made(tree: ast.Module | ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """The names at the top of a file or a class, with what each of them gets."""
    for target, value in _bindings(tree.body):
        yield from ((name, value) for name in _stored(target))


def _callee(value: ast.expr) -> str:
    return dotted(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""


def _is_spent(value: ast.expr, spent: set[str]) -> bool:
    """Whether each use of it leaves another object; so do those in `spent`, and calls of functions there."""
    match value:
        case ast.Name(name):
            return name in spent
        case ast.Attribute(inner) | ast.Call(ast.Attribute(ast.Call() as inner, "manual_seed")):
            return _is_spent(inner, spent)  # `SOURCE.__next__`
        case ast.Lambda():
            return bool(_changed_outside(value))
        case ast.Call(args=args) if _callee(value) == "partial":
            return any(_is_spent(one, spent) for one in args)
        case ast.Call(ast.Name(name)) if f"{name}()" in spent:
            return True
    return isinstance(value, ast.GeneratorExp) or _callee(value) in SPENT


def _changed_outside(node: ast.Lambda | FunctionNode) -> set[str]:
    """The names from outside a function whose objects it changes; not where it looks up what it keeps."""
    inside = all_nodes(node)
    asked = {
        (ast.unparse(one.comparators[0]), ast.unparse(one.left))
        for one in inside
        if isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.In | ast.NotIn)
    }
    kept = [  # `if n not in seen: seen[n] = f(n)`
        target
        for target, _ in _bindings(inside)
        if isinstance(target, ast.Subscript)
        and (ast.unparse(target.value), ast.unparse(target.slice)) in asked
    ]
    found = {_root(base) for base, at in _changes(inside, lambda _: False) if at not in kept}
    found.update(name for one in inside if isinstance(one, ast.Nonlocal) for name in one.names)
    return found - scopes.local_names(node) - {""}


def _keeps(node: FunctionNode) -> bool:
    """Whether what a function makes is another one after each use: a generator, or what changes its names."""
    if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in own_nodes(node)):
        return True
    own = scopes.local_names(node)
    return any(_changed_outside(one) & own for one in _inner(node))


def _inner(node: FunctionNode) -> Iterator[FunctionNode | ast.Lambda]:
    yield from (o for o in all_nodes(node) if isinstance(o, FunctionNode | ast.Lambda) and o is not node)


def _learns(value: ast.expr, blocks: Mapping[str, ast.stmt]) -> bool:
    """Whether gradients may be written into it: a tensor that asks for them, or a module of torch's."""
    if any(isinstance(node, ast.keyword) and node.arg == "requires_grad" for node in ast.walk(value)):
        return True
    made, full = _callee(value), dotted(value.func) if isinstance(value, ast.Call) else ""
    block = blocks.get(made)
    bases = block.bases if isinstance(block, ast.ClassDef) else []
    is_module = any(dotted(base).rpartition(".")[2] == "Module" for base in bases)
    return made in ("requires_grad_", "Parameter") or full.startswith(("nn.", "torch.nn.")) or is_module


def _parts_of(value: ast.expr) -> set[str]:
    """The names whose objects are part of what a name at the top of a file gets, or the other way round."""
    match value:
        case ast.Name(name):
            return {name}
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            return set[str]().union(*map(_parts_of, items))
        case ast.Dict(values=items):
            return set[str]().union(*map(_parts_of, items))
        case ast.Attribute(value=inner):
            return _parts_of(inner)
        case ast.Call(ast.Attribute(value=inner, attr="parameters")):
            return _parts_of(inner)
        case ast.Lambda():
            return _changed_outside(value)
        case ast.Call(args=args) if _callee(value) == "partial":
            return set[str]().union(*map(_parts_of, args))
        case ast.Call(args=args) if _callee(value)[:1].isupper():
            return set[str]().union(*map(_parts_of, args))
    return set()


def _kept_defaults(call: ast.Call, helper: FunctionNode, is_bound: bool) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that a call leaves to their defaults, with these."""
    names = [argument.arg for argument in (*helper.args.posonlyargs, *helper.args.args)][is_bound:]
    given = {*names[: len(call.args)], *(keyword.arg for keyword in call.keywords)}
    yield from ((name, default) for name, default in _defaults(helper).items() if name not in given)


def _defaults(helper: FunctionNode) -> dict[str, ast.expr]:
    """The parameters that have a default, with it."""
    names = [argument.arg for argument in (*helper.args.posonlyargs, *helper.args.args)]
    defaults = dict(zip(names[::-1], helper.args.defaults[::-1], strict=False))
    pairs = zip(helper.args.kwonlyargs, helper.args.kw_defaults, strict=True)
    return defaults | {one.arg: default for one, default in pairs if default}


def _paths(call: ast.Call) -> Iterator[str]:
    """The names of files that a call is given, or what it is called on: `Path("a.txt").read_text()`."""
    base = call.func.value if isinstance(call.func, ast.Attribute) else None
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    given += base.args if isinstance(base, ast.Call) and _callee(base) == "Path" else []
    for one in given:
        text = one.value if isinstance(one, ast.Constant) else None
        if isinstance(text, str) and _PATH.fullmatch(text):
            yield text


_PATH = re.compile(r"[\w./-]*\w\.[a-z]\w{0,8}")


def _writes(call: ast.Call) -> bool:
    """Whether a call leaves a file of a name that it is given."""
    name = dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")
    modes = [
        *call.args[(name == "open" and isinstance(call.func, ast.Name)) :],
        *(k.value for k in call.keywords if k.arg == "mode"),
    ]
    texts = (mode.value for mode in modes if isinstance(mode, ast.Constant))
    opened = name == "open" and any(
        isinstance(t, str) and re.fullmatch("[rwaxbt+]+", t) and {*t} & {*"wax+"} for t in texts
    )
    return name in WRITES or opened


def _given(call: ast.Call, helper: FunctionNode, changed: set[str], is_bound: bool) -> Iterator[ast.expr]:
    """The arguments of a call that its helper changes."""
    names = [argument.arg for argument in (*helper.args.posonlyargs, *helper.args.args)][is_bound:]
    yield from (value for name, value in zip(names, call.args, strict=False) if name in changed)
    yield from (keyword.value for keyword in call.keywords if keyword.arg in changed)
