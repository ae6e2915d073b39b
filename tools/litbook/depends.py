"""What the outcome of a section depends on, as far as the lecture's text tells. Runs nothing.

A section depends on its own text, on everything of the module that it names, and on what these name in turn:
helpers, classes, constants, imports. An import of a file of the project (anything that is neither Python's
own nor installed) stands for the whole file and for what that imports. What is installed is covered by its
version, which is no business of this room.

    item     one statement of the module: its text, the names that it binds, the names that it loads
    touches  name -> the items that bind it or may change what it is bound to. A statement with a call that is
             not known to be harmless may change everything that it reaches; it also depends on all such
             statements above it, since these may have drawn random numbers or set a default.
    dynamic  why the text alone cannot say what something depends on: `exec`, `globals()`, line numbers, the
             clock, the network, the folders of the disk. What names such a thing is never reused.

Where the text leaves a doubt, the answer is "depends": an edit may run a section for nothing, never the
reverse.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from litbook.source import INSTALLED, LEAVES, Definition, Lecture, blocks, children, uncollected

# Builtins that only make a value out of their arguments.
HARMLESS = set(
    "abs bool bytes chr complex dict divmod enumerate float frozenset int len list max min ord pow range "
    "repr reversed round set slice sorted str sum tuple zip".split()
)

# Names and attributes through which code reaches what its text does not name, or its own place in the text.
REACHING = set(
    "exec eval compile globals vars dir __import__ input breakpoint help __file__ __spec__".split()
)
REACHING_ATTRIBUTES = set(
    "__globals__ __code__ __traceback__ __subclasses__ __builtins__ __import__ f_lineno f_back "
    "f_globals f_code tb_lineno tb_frame tb_next co_firstlineno co_lines lineno getsource getsourcelines "
    "getsourcefile _getframe environ getenv environb getcwd cwd home expanduser exists is_file is_dir "
    "isfile isdir listdir scandir iterdir glob rglob now today utcnow".split()
)

# Of these modules only what is named here is harmless; of those with an empty set, nothing.
REACHING_MODULES: dict[str, set[str]] = {
    "os": set("path sysconf cpu_count sep linesep fspath remove unlink urandom".split()),
    "sys": set(
        "getsizeof float_info int_info hash_info maxsize byteorder version version_info getrefcount stdout "
        "stderr getrecursionlimit getdefaultencoding".split()
    ),
    "inspect": set("signature Parameter Signature isfunction isclass ismethod cleandoc".split()),
    "gc": set("collect enable disable isenabled".split()),
    "time": set("perf_counter perf_counter_ns process_time monotonic monotonic_ns sleep".split()),
    "importlib": {"metadata"},
    **{
        name: set[str]()
        for name in "runpy traceback linecache dis subprocess socket urllib http requests multiprocessing "
        "glob shutil getpass pty asyncio signal builtins __main__".split()
    },
}

CLOCKS = {"perf_counter", "perf_counter_ns", "process_time", "monotonic", "monotonic_ns", "timeit"}


@dataclass
class Item:
    """One statement of the module, and what its text says."""

    text: str
    binds: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()  # loaded, and not bound by the function itself
    modules: tuple[tuple[int, str, tuple[str, ...]], ...] = ()  # imported: level, module, names
    dynamic: str = ""
    clock: bool = False  # it reads a clock, or shows something with @measure
    acts: bool = False  # it may change what it reaches


@dataclass
class Needs:
    """What one section depends on. `digest` is None where the text cannot say; then `why` does."""

    digest: str | None
    why: str = ""
    clock: bool = False
    names: frozenset[str] = frozenset()  # of the module
    files: frozenset[Path] = frozenset()  # of the project


class Dependencies:
    """The dependencies of every section of `lecture`, whose file is `path`."""

    @uncollected()
    def __init__(self, lecture: Lecture, path: Path) -> None:
        self.lecture = lecture
        self.path = path
        self.items = [_item(lecture, node) for node in lecture.tree.body]
        self.defined = frozenset[str]().union(*(item.binds for item in self.items))
        self.touches: dict[str, list[int]] = {}
        for number, item in enumerate(self.items):
            for name in item.binds:
                self.touches.setdefault(name, []).append(number)
        self._files: dict[Path, tuple[str, frozenset[Path], str, bool]] = {}
        self._spread()

    @property
    def acts_outright(self) -> bool:
        """Whether the module, or a file that it imports, does more at the top level than name things."""
        both = zip(self.items, self.lecture.tree.body, strict=True)
        binding = [it.binds for it, node in both if isinstance(node, Definition) or self._ours(it)]
        ours = set[str]().union(*binding)
        if any(self.items[number].names & ours for number in self.acting):
            return True  # a constant that a function of ours makes: it may do anything else besides
        statements = [*self.lecture.tree.body]
        for file in set[Path]().union(*(self._below(f) for m in self._modules() for f in self._files_of(*m))):
            with suppress(OSError, ValueError, SyntaxError, RecursionError):
                statements += ast.parse(file.read_bytes()).body
        return any(_acts_outright(statement) for statement in statements)

    def _ours(self, item: Item) -> bool:
        return any(self._files_of(module, self.path.parent) for module in item.modules)

    def _modules(self) -> list[tuple[tuple[int, str, tuple[str, ...]], Path]]:
        return [(module, self.path.parent) for item in self.items for module in item.modules]

    def _spread(self) -> None:
        """A statement that acts touches whatever it reaches, and depends on those that acted before it."""
        self.acting = [number for number, item in enumerate(self.items) if item.acts]
        reached = [self._names_reached(number) for number in self.acting]
        for number, names in zip(self.acting, reached, strict=True):
            for name in names:
                touching = self.touches.setdefault(name, [])
                if number not in touching:
                    touching.append(number)

    def _names_reached(self, start: int) -> set[str]:
        todo, names = [start], set[str]()
        while todo:
            for name in (self.items[todo.pop()].names & self.defined) - names:
                names.add(name)
                todo.extend(self.touches.get(name, ()))
        return names

    def of(self, name: str, everything: bool = False) -> Needs:
        """What the function called `name` depends on; `everything` adds what the module does by itself."""
        start = list(self.touches.get(name, ()))
        if everything:
            start += [i for i, item in enumerate(self.items) if item.acts or item.modules]
        seen, names = set[int](), set[str]()
        while start:
            number = start.pop()
            if number in seen:
                continue
            seen.add(number)
            item = self.items[number]
            names |= item.names & self.defined
            for used in item.names & self.defined:
                start.extend(self.touches.get(used, ()))
            if item.acts:
                start.extend(i for i in self.acting if i < number)
        return self._needs([self.items[number] for number in sorted(seen)], frozenset(names))

    def _needs(self, items: list[Item], names: frozenset[str]) -> Needs:
        dynamic = next((item.dynamic for item in items if item.dynamic), "")
        clock = any(item.clock for item in items)
        texts = [item.text for item in items]
        files = set[Path]()
        for module in dict.fromkeys(module for item in items for module in item.modules):
            for file in self._files_of(module, self.path.parent):
                files |= self._below(file)
        for file in sorted(files):
            digest, _, why, reads_clock = self._file(file)
            texts.append(f"{file.name} {digest}")
            dynamic = dynamic or why
            clock = clock or reads_clock
        whole = sha256("\0".join(texts).encode()).hexdigest()
        return Needs(None if dynamic else whole, dynamic, clock, names, frozenset(files))

    # -- files of the project

    def _below(self, file: Path) -> set[Path]:
        """The file and everything of the project that it imports, directly or not."""
        seen, todo = set[Path](), [file]
        while todo:
            file = todo.pop()
            if file not in seen:
                seen.add(file)
                todo.extend(self._file(file)[1])
        return seen

    def _file(self, file: Path) -> tuple[str, frozenset[Path], str, bool]:
        """Of a file: its hash, the project's files that it imports, why it is dynamic, whether a clock."""
        if file not in self._files:
            try:
                content = file.read_bytes()
                tree = ast.parse(content)
            except (OSError, ValueError, SyntaxError, RecursionError) as error:
                self._files[file] = "", frozenset(), f"{file.name} cannot be read: {error}", False
                return self._files[file]
            item = _read(_Nodes(tree), file.name)
            imported = {
                found
                for module in item.modules
                for found in self._files_of(module, file.parent)
                if found != file
            }
            digest = sha256(content).hexdigest()
            self._files[file] = digest, frozenset(imported), item.dynamic, item.clock
        return self._files[file]

    def _files_of(self, module: tuple[int, str, tuple[str, ...]], beside: Path) -> list[Path]:
        """The files of the project that an import of the module runs; none for what is installed."""
        level, name, names = module
        start = beside
        for _ in range(level - 1):
            start = start.parent
        parts = name.split(".") if name else []
        roots = [start] if level else [self.path.parent]
        head = parts[0] if parts else ""
        if not level and not _lies_in(self.path.parent, head):
            root = _root_of(head)
            if root is None:
                return []
            roots = [root]
        found = [file for root in roots for file in _modules(root, parts, names)]
        return list(dict.fromkeys(found))


def _lies_in(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (folder / name).is_dir()


def _modules(root: Path, parts: list[str], names: tuple[str, ...]) -> Iterator[Path]:
    """The files that `from parts import names` runs, below `root`: packages, the module, and submodules."""
    place = root
    for part in parts:
        place /= part
        yield from (file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file())
    for name in names:
        inner = place / name
        yield from (file for file in (inner / "__init__.py", inner.with_suffix(".py")) if file.is_file())


_ROOTS: dict[str, Path | None] = {}


def _root_of(name: str) -> Path | None:
    """The folder from which the package `name` is imported; None where it is Python's own or installed."""
    if name in sys.stdlib_module_names or name in sys.builtin_module_names or name == "litbook" or not name:
        return None
    if name not in _ROOTS:
        origin = None
        with suppress(ImportError, ValueError, AttributeError):
            spec = importlib.util.find_spec(name)
            places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
            origin = next((Path(place) for place in places if place and Path(place).exists()), None)
        installed = origin is None or INSTALLED.intersection(origin.parts)
        if origin is not None and not installed:
            folder = origin.parent if origin.name != "__init__.py" else origin.parent.parent
            _ROOTS[name] = folder
        else:
            _ROOTS[name] = None
    return _ROOTS[name]


# ---------------------------------------------------------------------------- reading statements

_READ: dict[str, Item] = {}  # by text: of a lecture that is edited, all but one statement are known
_KNOWN = 5000  # of them are remembered


def _item(lecture: Lecture, node: ast.stmt) -> Item:
    text = lecture.text_of(node)
    if text not in _READ:
        if len(_READ) >= _KNOWN:
            _READ.clear()
        nodes = _Nodes(node)
        item = _read(nodes, text)
        numbers = [number for it in [node, *blocks(node)] for number in lecture.watches_of.get(it, ())]
        shown = [_Nodes(lecture.watches[number].node) for number in numbers]
        item.names |= frozenset[str]().union(*(it.names for it in shown)) - nodes.bound_inside
        item.clock = item.clock or any(lecture.watches[number].kind == "measure" for number in numbers)
        item.dynamic = item.dynamic or next(filter(None, (it.dynamic for it in shown)), "")
        _READ[text] = item
    return _READ[text]


def _read(nodes: _Nodes, text: str) -> Item:
    """What the statement (or a whole file) binds, loads and imports."""
    if _is_only_for_plain_python(nodes.root):
        return Item("")
    return Item(
        text=text,
        binds=nodes.binds,
        names=nodes.names - nodes.bound_inside,
        modules=nodes.imports,
        dynamic=nodes.dynamic,
        clock=not CLOCKS.isdisjoint(nodes.words),
        acts=_acts(nodes.root),
    )


def _is_only_for_plain_python(node: ast.AST) -> bool:
    """`if __name__ == "__main__":` runs only as plain Python."""
    match node:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()])):
            return True
    return False


class _Nodes:
    """The nodes of a tree, each looked at once and put to those of its class: a question is about a few."""

    def __init__(self, root: ast.AST) -> None:
        self.root = root
        self.own: dict[type[ast.AST], list[Any]] = {}  # the root, and what `source.own_nodes` gives
        self.inner: dict[type[ast.AST], list[Any]] = {}  # what is in functions, classes and lambdas in it
        todo, below = [root], list[ast.AST]()
        for node in todo:  # which grows
            self.own.setdefault(type(node), []).append(node)
            if type(node) not in LEAVES:
                (todo if node is root or type(node) not in _SCOPES else below).extend(children(node))
        for node in below:  # likewise
            self.inner.setdefault(type(node), []).append(node)
            if type(node) not in LEAVES:
                below.extend(children(node))

    def of(self, kind: type[ast.AST]) -> list[Any]:
        """All nodes of this class."""
        return [*self.own.get(kind, ()), *self.inner.get(kind, ())]

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name and attribute."""
        return frozenset(n.id for n in self.of(ast.Name)).union(n.attr for n in self.of(ast.Attribute))

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name, without the function that a `link(...)` leads to: it takes the name alone."""
        led_to = set()
        for call in self.of(ast.Call):
            match call:
                case ast.Call(func=ast.Name(id="link"), args=[ast.Name() as name, *_]):
                    led_to.add(name)
        return frozenset(n.id for n in self.of(ast.Name) if n not in led_to)

    @cached_property
    def bound_inside(self) -> frozenset[str]:
        """The names that a function binds for itself, and never declares `global`."""
        node = self.root
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return frozenset()
        a = node.args
        bound = {arg.arg for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg] if arg}
        bound |= {n.id for n in self.own.get(ast.Name, ()) if isinstance(n.ctx, ast.Store)}
        bound |= {n.name for n in self._definitions() if n is not node} | self._imported()
        bound |= {n.name for n in self.own.get(ast.ExceptHandler, ()) if n.name}
        outer = {name for n in self.own.get(ast.Global, ()) for name in n.names}
        evaluated_outside = [*node.decorator_list, *a.defaults, *(d for d in a.kw_defaults if d)]
        before = set[str]().union(*(_Nodes(n).names for n in evaluated_outside))
        return frozenset(bound - outer - before)

    @property
    def binds(self) -> frozenset[str]:
        """The names of the module that a statement of it binds or deletes."""
        if isinstance(self.root, Definition):
            return frozenset([self.root.name])
        changed = {n.id for n in self.own.get(ast.Name, ()) if not isinstance(n.ctx, ast.Load)}
        return frozenset(changed | {n.name for n in self._definitions()} | self._imported())

    def _definitions(self) -> list[Any]:
        kinds = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
        return [node for kind in kinds for node in self.own.get(kind, ())]

    def _imported(self) -> set[str]:
        """The names that its imports bind."""
        nodes = [*self.own.get(ast.Import, ()), *self.own.get(ast.ImportFrom, ())]
        return {(alias.asname or alias.name).split(".")[0] for node in nodes for alias in node.names}

    @cached_property
    def imports(self) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
        """Every import: level, module, and what is taken from it."""
        whole = [(0, alias.name, ()) for node in self.of(ast.Import) for alias in node.names]
        parts = [
            (node.level or 0, node.module or "", tuple(alias.name for alias in node.names))
            for node in self.of(ast.ImportFrom)
        ]
        return (*whole, *parts)

    @property
    def dynamic(self) -> str:
        """Why the text does not say what it depends on; "" where it does."""
        heads = {module.split(".")[0] for _, module, _ in self.imports}
        if _SUSPECT.isdisjoint(self.words) and _SUSPECT.isdisjoint(heads):
            return ""  # nearly always
        # what a module is called in the text: `import os as o`
        pairs = [(a.asname or a.name, a.name) for node in self.of(ast.Import) for a in node.names]
        return _dynamic(self.root, dict(pairs))


_SUSPECT = REACHING | REACHING_ATTRIBUTES | set(REACHING_MODULES)


_SCOPES = {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda}


def _acts(node: ast.AST) -> bool:
    """Whether a statement of the module may do more than bind a value to a name."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Pass():
            return False
        case ast.Expr(value=ast.Constant()):
            return False
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            a = node.args
            return any(map(_calls, [*node.decorator_list, *a.defaults, *(d for d in a.kw_defaults if d)]))
        case ast.ClassDef():
            # what runs when a class is made: decorators, bases with __init_subclass__, its own statements
            rest = [inner for inner in node.body if not isinstance(inner, Definition)]
            return any(map(_calls, [*node.decorator_list, *node.keywords, *rest]))
        case ast.Assign(targets=targets, value=value):
            return _calls(value) or not all(isinstance(n, ast.Name | ast.Tuple) for n in targets)
        case ast.AnnAssign(target=ast.Name(), value=value):
            return value is not None and _calls(value)
    return not isinstance(node, ast.Module)


def _acts_outright(node: ast.stmt) -> bool:
    """Whether a statement of the module is there for its effect, and not for the name that it binds."""
    match node:
        case ast.Assign(targets=targets):
            return not all(isinstance(n, ast.Name | ast.Tuple) for n in targets)
        case ast.AnnAssign() | ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef():
            return False
    return _acts(node) and not _is_only_for_plain_python(node)


def _calls(node: ast.AST) -> bool:
    """Whether evaluating it calls something that is not known to be harmless. `@requires("cuda")` is."""
    todo = [node]
    while todo:
        match todo.pop():
            case ast.Lambda():
                continue
            case ast.Call(func=called, args=args, keywords=keywords):
                if _last(called) not in HARMLESS | PURE:
                    return True
                todo += [*args, *keywords]
            case other:
                todo += ast.iter_child_nodes(other)
    return False


# Called by name, these make a value or a function and touch nothing else.
PURE = {
    "requires",
    "dataclass",
    "field",
    "partial",
    "compile",
    "TypeVar",
    "NewType",
    "namedtuple",
    "no_grad",
    "Path",
}


def _last(node: ast.AST) -> str:
    """`c` of `a.b.c`, of `c` and of `c(...)`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=called):
            return _last(called)
    return ""


def _dynamic(node: ast.AST, aliases: dict[str, str]) -> str:
    """Why the text of `node` does not say what it depends on; "" where it does."""
    stores = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) if name in REACHING and name not in stores:
                return f"{name} may reach anything"
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                module = aliases.get(name, name if name in REACHING_MODULES else "").split(".")[0]
                if module in REACHING_MODULES and name not in stores:
                    if attribute not in REACHING_MODULES[module]:
                        return f"{name}.{attribute} may reach anything"
                if attribute in REACHING_ATTRIBUTES:
                    return f"{attribute} may reach anything"
            case ast.Attribute(attr=attribute) if attribute in REACHING_ATTRIBUTES:
                return f"{attribute} may reach anything"
            case ast.ImportFrom(module=str(module), names=names, level=0):
                known = REACHING_MODULES.get(module.split(".")[0])
                if known is not None and module != "importlib.metadata":
                    strange = [alias.name for alias in names if alias.name not in known]
                    if strange:
                        return f"{module}.{strange[0]} may reach anything"
    return ""
