"""Whether a section left the world as it found it.

A section that changes what lies outside of it (an object of the module, a default of a library, a file in
the working directory) hands something on to the sections after it. Such a one may not be left out of a run.
The text cannot always tell; so the world is looked at before and after. Looked at are

    the module's own names, and those of the project's modules that it imported, through lists, dicts,
    instances, defaults of functions and attributes of classes
    everything in `state.entries()`, but for random states: every section is seeded
    the files in the working directory, and Python's threads

What cannot be looked at (an iterator, a tensor, a model, an open file) is *opaque*: a name from which one can
be reached makes every section that uses the name one that may change it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import threading
import types
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litbook import state

# Where compiled code is to be kept: torch says so for all its parts when it first asks, whoever makes it ask.
SET_BY_LIBRARIES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
MOST = 20_000  # objects that are looked at below one name; then it is opaque
_ATOMS = (str, bytes, int, float, complex, bool, type(None), type(...), range, slice, re.Pattern, Path)
_BUILT = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ModuleType,
)
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, type(vars(namedtuple("_", "a"))["a"]))


@dataclass
class World:
    """What could be seen of the world at one moment; equal to another where nothing of it changed."""

    names: dict[str, Any]  # of the modules
    entries: dict[str, Any]
    files: list[tuple[str, int, int]]
    threads: int
    opaque: frozenset[str] = frozenset()  # names of the modules whose value hides something

    def differs(self, other: World) -> list[str]:
        """What is not the same in the other: names of the modules; what belongs to no name, in brackets."""
        found = [
            name
            for name in {**self.names, **other.names}
            if not _same(self.names.get(name), other.names.get(name))
        ]
        found += [
            f"[{name}]"
            for name in {**self.entries, **other.entries}
            if not _same(self.entries.get(name), other.entries.get(name))
        ]
        found += ["[files in the working directory]"] * (self.files != other.files)
        return found + ["[threads]"] * (self.threads != other.threads)


def look(modules: Iterable[types.ModuleType], folder: Path) -> World:
    """The world now. `modules` are the lecture and the project's; `folder` is the working directory."""
    names: dict[str, Any] = {}
    opaque = set[str]()
    own = list(modules)
    for module in own:
        looking = _Looking(own)
        for name, value in list(vars(module).items()):
            if name.startswith("__"):
                continue
            looking.begin()
            key = name if module is own[0] else f"{module.__name__}.{name}"
            names[key] = looking.at(value)
            if looking.opaque:
                opaque.add(key)
    entries = {e.name: _read(e.read) for e in state.entries() if not e.name.endswith("random")}
    if "environment variables" in entries:
        entries["environment variables"] = {
            name: value for name, value in os.environ.items() if not name.startswith(SET_BY_LIBRARIES)
        }
    if "warning filters" in entries:  # a library that is imported late sets those of its own warnings
        ours = {"builtins", *(module.__name__ for module in own)}
        entries["warning filters"] = [it for it in entries["warning filters"] if it[2].__module__ in ours]
    return World(names, entries, list(_files(folder)), threading.active_count(), frozenset(opaque))


def _read(read: Callable[[], Any]) -> Any:
    with contextlib.suppress(Exception):
        return read()
    return None


def _same(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other) or repr(one) == repr(other)
    except Exception:  # of foreign objects: what cannot be compared is not the same
        return False


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    with contextlib.suppress(OSError):
        for place in sorted(folder.rglob("*")):
            seen = place.lstat()
            yield str(place), seen.st_size, seen.st_mtime_ns


class _Looking:
    """Walks what a name holds, and makes something of it that can be compared later."""

    def __init__(self, modules: list[types.ModuleType]) -> None:
        self.own = {module.__name__ for module in modules}
        self.files = {vars(module).get("__file__") for module in modules}
        self.begin()

    def begin(self) -> None:
        self.opaque = False
        self.left = MOST
        self.inside: dict[int, Any] = {}

    def at(self, value: Any) -> Any:
        """A stand-in for `value` that differs once the value has."""
        kind = type(value)
        if kind is types.FunctionType and not (
            value.__defaults__
            or value.__kwdefaults__
            or value.__closure__
            or (value.__dict__ and _hung_on(value))
        ):
            return value  # most are: nothing hangs on them
        if kind in _ATOMS or isinstance(value, _BUILT):
            return value if kind not in (float, complex) else repr(value)  # NaN is not equal to itself
        if id(value) in self.inside:
            return ("again", id(value))
        self.left -= 1
        if self.left < 0:
            self.opaque = True
            return None
        self.inside[id(value)] = value
        return (id(value), kind, self._inner(value, kind))

    def _inner(self, value: Any, kind: type) -> Any:  # noqa: PLR0911  one kind of value, one return
        if kind in (tuple, list):
            return [self.at(item) for item in value]
        if kind is dict:
            return [(self.at(key), self.at(item)) for key, item in value.items()]
        if kind in (set, frozenset):
            return sorted(map(repr, value))
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if kind is functools.partial:
            return [self.at(value.func), self.at(value.args), self.at(value.keywords)]
        if isinstance(value, types.MethodType):
            return [self.at(value.__func__), self.at(value.__self__)]
        if isinstance(value, staticmethod | classmethod | property):
            parts = [getattr(value, n, None) for n in ("__func__", "fget", "fset")]
            return [self.at(part) for part in parts if part is not None]
        if kind in _DESCRIPTORS:
            return None
        if kind.__module__ in ("typing", "types", "__future__", "jaxtyping", "collections.abc"):
            return None
        if type(kind).__module__ == "jaxtyping" or kind.__name__ in (
            "dtype",
            "device",
            "layout",
            "Size",
            "finfo",
        ):
            return repr(value)
        return self._instance(value, kind)

    def _function(self, value: types.FunctionType) -> Any:
        if value.__module__ not in self.own:
            return None
        cells = [cell.cell_contents for cell in value.__closure__ or () if not _is_empty(cell)]
        if value.__code__.co_filename not in self.files:  # a library's wrapper, and its switches
            cells = [held for held in cells if type(held) is not bool]
        kept = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *cells]
        return [self.at(part) for part in kept] + [
            (name, self.at(held)) for name, held in _hung_on(value).items()
        ]

    def _class(self, value: type) -> Any:
        if value.__module__ not in self.own:
            return None
        return [
            (name, self.at(held))
            for name, held in list(vars(value).items())
            if not name.startswith(("__", "_abc_")) or isinstance(held, types.FunctionType)
        ]

    def _instance(self, value: Any, kind: type) -> Any:
        """Of the project's own classes the attributes; of others nothing is known."""
        known = kind.__module__ in self.own
        if (
            known
            and type(vars_of := getattr(value, "__dict__", None)) is dict
            and not hasattr(kind, "__slots__")
        ):
            if all(base.__module__ in self.own or base is object for base in kind.__mro__):
                return self.at(vars_of)
            if issubclass(kind, tuple):
                return [self.at(item) for item in tuple.__iter__(value)]
        if known and isinstance(value, tuple):
            return [self.at(item) for item in tuple.__iter__(value)]
        if kind.__module__ == "enum" or any(base.__module__ == "enum" for base in kind.__mro__):
            return None
        self.opaque = True
        return None


def _hung_on(function: types.FunctionType) -> dict[str, Any]:
    """The attributes of a function, without what torch keeps there when it first calls it."""
    return {name: held for name, held in vars(function).items() if not name.startswith("__dynamo")}


def _is_empty(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return True
    return False


# ---------------------------------------------------------------------------- files that a section reads


_opened: list[tuple[str, bool]] | None = None
_hooked = False


@contextlib.contextmanager
def opened() -> Iterator[list[tuple[str, bool]]]:
    """The files that are opened meanwhile: path, and whether to write. Python can watch, but not unwatch."""
    global _opened, _hooked
    if not _hooked:
        sys.addaudithook(_hear)
        _hooked = True
    before, _opened = _opened, []
    try:
        yield _opened
    finally:
        _opened = before


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open":
        path, mode, flags = arguments
        writes = (
            bool(set(mode) & set("wax+"))
            if isinstance(mode, str)
            else bool(flags & (os.O_WRONLY | os.O_RDWR))
        )
        if isinstance(path, str | bytes):
            _opened.append((os.fsdecode(path), writes))
