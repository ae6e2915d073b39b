"""The house has one-way streets: source -> instrument -> run -> record -> compare -> render -> site.

Every import of the engine is read with `ast`, wherever it stands: at the top, inside a function, under
TYPE_CHECKING, or as `import_module("...")`. A *room* is a module or package of `tools/litbook`, written
`run` or `render/page`; the modules inside the package `page` are parts of the room `render/page`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parent.parent / "tools" / "litbook"

# What each room may import of the engine. A name that ends in "/" stands for everything in that package.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "trace": {"errors"},
    # snapshot and its side rooms: it asks them, they do not ask it
    "kinds": set(),
    "libraries": {"kinds"},
    "foreign": {"kinds", "errors"},
    "storages": {"libraries", "kinds"},
    "moments": {"trace"},
    "plain": {"moments", "libraries", "kinds", "trace"},
    "containers": {"plain", "kinds"},
    "objects": {"containers", "foreign", "libraries", "kinds", "trace"},
    "tensors": {"moments", "storages", "libraries", "kinds", "trace", "errors"},
    "snapshot": {
        "plain",
        "containers",
        "objects",
        "tensors",
        "storages",
        "foreign",
        "libraries",
        "kinds",
        "trace",
        "errors",
    },
    "source": {"trace", "errors"},
    # what is said of the text alone
    "literals": set(),
    "unbacked": {"literals", "source", "errors"},
    "mutants": {"source"},
    "trials": {"mutants", "run", "recorder", "snapshot", "axes", "source", "trace", "errors"},
    "unrun": {"source", "trace", "errors"},
    "cells": {"source"},
    "mentions": {"source"},
    "instrument": {"source", "trace", "errors"},
    "vector": set(),
    "author": {"vector", "trace", "errors"},
    # run and its side rooms: what it asks, what it puts back, what listens while a lecture runs
    "axes": {"errors"},
    "environment": {"trace", "errors"},
    "device": {"errors"},
    "state": {"errors"},
    "recorder": {"source", "snapshot", "axes", "trace", "errors"},
    # what of a run is taken from an earlier one: the text's part, the recorder's, the disk's, the process's; the policy
    "depends": {"source"},
    "fragment": {"recorder", "source", "trace"},
    "store": {"fragment", "recorder", "trace"},
    "world": {"state"},
    "messages": set(),
    "parallel": {"messages"},
    "reuse": {"depends", "fragment", "parallel", "store", "world", "recorder", "source", "trace"},
    # the preview: a process that runs lectures, pages on demand, and the server, which is a front door like site
    "warm": {"run", "depends", "messages", "store", "reuse", "unbacked", "errors"},
    "ondemand": {"render/", "trace", "errors"},
    "preview": {"messages", "ondemand", "site", "recordings", "render/", "trace", "errors"},
    "run": {
        "fragment",
        "parallel",
        "reuse",
        "store",
        "source",
        "instrument",
        "snapshot",
        "author",
        "environment",
        "device",  # memory that ran out is given back before the next section
        "state",
        "recorder",
        "trace",
        "errors",
    },
    "compare": {"trace", "errors"},
    "recordings": {"trace", "errors"},
    "site": {"run", "compare", "unbacked", "unrun", "recordings", "render/", "trace", "errors"},
    "__init__": {"author"},
}
ANYTHING = {"cli", "__main__"}  # the front door

# Views do not know each other. All else in render/ is a leaf that views and leaves share.
VIEWS = {"render/page", "render/notebook", "render/terminal"}
RENDER = {"trace", "errors"}
# A notebook is made of the lecture's text as much as of its record; `cells` takes text apart and runs nothing.
# Likewise `mentions` says where the text names a definition, which is where pages put it and link to it.
ALSO = {"render/notebook": {"cells"}, "render/books": {"mentions"}}

# Libraries that a room has no business with, and why.
VALUES = "it knows no values"
FORMAT = "left of the record nobody formats"
EXECUTE = "right of the record nobody executes lecture code"
WAIST = "the record needs no torch, ast or HTML"
LOOKED_UP = "it is looked up in sys.modules, never imported"
SNAPSHOTS = [
    "kinds",
    "libraries",
    "foreign",
    "storages",
    "moments",
    "plain",
    "containers",
    "objects",
    "tensors",
    "snapshot",
]
BANNED: dict[str, dict[str, str]] = {
    "errors": {"torch": WAIST, "ast": WAIST, "html": WAIST},
    "trace": {"torch": WAIST, "ast": WAIST, "html": WAIST},
    "source": {"torch": VALUES, "html": FORMAT, "rich": FORMAT, "markdown": FORMAT},
    **{
        room: {"torch": VALUES, "html": FORMAT, "rich": FORMAT, "markdown": FORMAT}
        for room in ("unbacked", "mutants", "unrun", "cells", "mentions")
    },
    "instrument": {"torch": VALUES, "html": FORMAT, "rich": FORMAT, "markdown": FORMAT},
    **{
        room: {"torch": LOOKED_UP, "numpy": LOOKED_UP, "html": FORMAT, "rich": FORMAT, "markdown": FORMAT}
        for room in SNAPSHOTS
    },
    "device": {"torch": LOOKED_UP, "html": FORMAT, "rich": FORMAT, "markdown": FORMAT},
    "recorder": {"html": FORMAT, "rich": FORMAT, "markdown": FORMAT},
    "world": {"torch": LOOKED_UP, "numpy": LOOKED_UP, "html": FORMAT},
    "reuse": {"torch": LOOKED_UP, "html": FORMAT, "rich": FORMAT, "markdown": FORMAT},
    "ondemand": {"torch": EXECUTE, "ast": EXECUTE},
    "preview": {"torch": "lectures run in another process", "ast": EXECUTE},
    "run": {"html": FORMAT, "rich": FORMAT, "markdown": FORMAT},
    "compare": {"torch": EXECUTE, "ast": EXECUTE, "html": "it compares; rendering is next door"},
    "recordings": {"torch": EXECUTE, "ast": EXECUTE, "html": "it keeps files; rendering is next door"},
}
BANNED_IN_RENDER = {"torch": EXECUTE, "ast": EXECUTE}

# Rooms that must be there: a rule about a room that does not exist would hold for ever.
EXPECTED = [
    "source",
    "instrument",
    *SNAPSHOTS,
    "trace",
    "run",
    "author",
    "errors",
    "cells",
    "mentions",
    "render/page",
    "render/notebook",
    "render/terminal",
    "compare",
    "recordings",
    "site",
    "cli",
]

# Loading these loads no torch, whatever they import in turn.
LIGHT = [
    "errors",
    "trace",
    "source",
    "unbacked",
    "unrun",
    "cells",
    "mentions",
    "mutants",
    "instrument",
    "author",
    "compare",
    "recordings",
    *SNAPSHOTS,
]


@dataclass(frozen=True)
class Import:
    """One imported module, by its full dotted name, and where the import stands."""

    name: str
    file: Path
    line: int


# ------------------------------------------------------------------------------------------ reading


def room_of(file: Path, engine: Path) -> str:
    """The room that `file` belongs to: `run`, `render/page`, `render` for its `__init__`, `__init__`."""
    parts = list(file.relative_to(engine).with_suffix("").parts)
    depth = 2 if parts[0] == "render" else 1
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return "/".join(parts[:depth])


def target_room(name: str, engine: Path) -> str | None:
    """The room that the dotted name `litbook.a.b` means; None for a module outside the engine."""
    head, *parts = name.split(".")
    if head != "litbook":
        return None
    place = engine
    found: list[str] = []
    for part in parts:
        place /= part
        if not (place.is_dir() or place.with_suffix(".py").is_file()):
            break  # from here on it is a name inside a module, or a module that is not written yet
        found.append(part)
    if not found:
        planned = set(ROOMS) | ANYTHING
        return parts[0] if parts and parts[0] in planned else "__init__"
    if found == ["render"] and len(parts) > 1 and f"render/{parts[1]}" in VIEWS:
        return f"render/{parts[1]}"
    return "/".join(found[: 2 if found[0] == "render" else 1])


def imports_of(file: Path, engine: Path) -> Iterator[Import]:
    """Every import of `file`. `from a import b` counts as `a.b`, since `b` may be a module."""
    package = ["litbook", *file.relative_to(engine).parent.parts]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        match node:
            case ast.Import(names):
                yield from (Import(alias.name, file, node.lineno) for alias in names)
            case ast.ImportFrom(module, names, level):
                base = package[: len(package) - level + 1] if level else []
                start = ".".join([*base, *([module] if module else [])])
                yield from (Import(f"{start}.{alias.name}", file, node.lineno) for alias in names)
            case ast.Call(
                ast.Name("import_module" | "__import__") | ast.Attribute(attr="import_module"),
                [ast.Constant(str(name)), *_],
            ):
                yield Import(name, file, node.lineno)


def files_of(engine: Path) -> list[Path]:
    return sorted(file for file in engine.rglob("*.py") if "assets" not in file.parts)


# -------------------------------------------------------------------------------------------- rules


def allowed(room: str, other: str) -> str | None:
    """Why `room` may not import `other`; None if it may."""
    if room == other or room in ANYTHING:
        return None
    if room.startswith("render"):
        if other in RENDER or other in ALSO.get(room, ()):
            return None
        if other in VIEWS or not other.startswith("render/"):
            kind = "a view" if room in VIEWS else "a leaf of render/"
            return f"{kind} imports trace, errors and the leaves of render/, no other view"
        return None if room != "render" else "render/__init__ imports no view and no leaf"
    may = ROOMS[room]
    if other in may or any(entry.endswith("/") and other.startswith(entry) for entry in may):
        return None
    return f"{room} imports only {', '.join(sorted(may)) or 'the standard library'}"


def problems(engine: Path) -> list[str]:
    """Every import that goes against the flow, as `file:line: what: which rule`."""
    found = []
    for file in files_of(engine):
        room = room_of(file, engine)
        where = file.relative_to(engine.parent.parent)
        if file.stem in ("utils", "util", "helpers", "misc"):
            found.append(f"{where}:1: a file called {file.name}: name it after what it does")
        if room not in ROOMS and room not in ANYTHING and not room.startswith("render"):
            found.append(f"{where}:1: a room without a rule: give {room!r} one in tests/test_layers.py")
            continue
        banned = BANNED_IN_RENDER if room.startswith("render") else BANNED.get(room, {})
        for item in imports_of(file, engine):
            other = target_room(item.name, engine)
            top = item.name.split(".")[0]
            why = banned.get(top) if other is None else allowed(room, other)
            if why:
                found.append(f"{where}:{item.line}: {room} imports {item.name}: {why}")
    return found


def circles(engine: Path) -> list[str]:
    """Rooms that import each other, directly or through others, as `a -> b -> a`."""
    graph: dict[str, set[str]] = {}
    for file in files_of(engine):
        room = room_of(file, engine)
        others = {target_room(item.name, engine) for item in imports_of(file, engine)}
        graph.setdefault(room, set()).update(o for o in others if o is not None and o != room)

    found: list[str] = []
    done: set[str] = set()

    def visit(room: str, path: list[str]) -> None:
        if room in path:
            found.append(" -> ".join([*path[path.index(room) :], room]))
        elif room not in done:
            for other in sorted(graph.get(room, ())):
                visit(other, [*path, room])
            done.add(room)

    for room in sorted(graph):
        visit(room, [])
    return found


# ------------------------------------------------------------------------------------- the real tree


def test_every_import_goes_with_the_flow() -> None:
    found = problems(ENGINE)
    assert not found, "imports against the flow:\n" + "\n".join(found)


def test_no_two_rooms_import_each_other() -> None:
    assert circles(ENGINE) == []


@pytest.mark.parametrize("room", EXPECTED)
def test_the_room_exists(room: str) -> None:
    there = {room_of(file, ENGINE) for file in files_of(ENGINE)}
    assert room in there, f"tools/litbook/{room} is not written: the rules about it hold for nothing"


@pytest.mark.parametrize("room", LIGHT)
def test_loading_the_room_loads_no_torch(room: str) -> None:
    if not (ENGINE / f"{room}.py").exists():
        if room in EXPECTED:
            pytest.fail(f"tools/litbook/{room}.py is not written")
        return  # not promised yet; the file's arrival turns this test on
    code = f"import sys; import litbook.{room}; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ENGINE.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False", f"importing litbook.{room} loads torch"


# ------------------------------------------------------------------------------- the test can fail


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small engine that keeps every rule."""
    engine = tmp_path / "tools" / "litbook"
    (engine / "render").mkdir(parents=True)
    for name, text in {
        "__init__": "from litbook.author import note\n",
        "errors": "",
        "trace": "from litbook.errors import RecordError\n",
        "source": "import ast\nfrom litbook import trace\nfrom litbook.errors import Place\n",
        "author": "from .errors import AuthorError\n",
        "run": "import torch\nfrom litbook import source, snapshot\n",
        "render/__init__": "",
        "render/values": "from litbook.trace import Record\n",
        "render/page": "import html\nfrom litbook.render.values import draw\nfrom . import values\n",
        "site": "from litbook import run\nfrom litbook.render import page\n",
        "cli": "import rich\nfrom litbook import run, site\n",
    }.items():
        (engine / f"{name}.py").write_text(text, encoding="utf-8")
    return engine


def test_a_house_in_order_has_no_problems(house: Path) -> None:
    assert problems(house) == []
    assert circles(house) == []


@pytest.mark.parametrize(
    ("room", "text", "expected"),
    [
        ("trace", "import torch", "trace.py:1: trace imports torch: the record needs no torch, ast or HTML"),
        ("trace", "import html.parser", "trace.py:1: trace imports html.parser: the record needs no"),
        ("trace", "\n\ndef f():\n    from ast import parse", "trace.py:4: trace imports ast.parse: the"),
        ("errors", "from litbook.trace import Record", "errors.py:1: errors imports litbook.trace.Record: "),
        ("source", "if TYPE_CHECKING:\n    import torch", "source.py:2: source imports torch: it knows no"),
        ("source", "from litbook import instrument", "source.py:1: source imports litbook.instrument: "),
        ("source", "from . import run", "source imports litbook.run: source imports only errors, trace"),
        ("source", "import_module('torch')", "source.py:1: source imports torch: it knows no values"),
        ("source", "importlib.import_module('litbook.run')", "source.py:1: source imports litbook.run: "),
        ("source", "from litbook import note", "source.py:1: source imports litbook.note: "),
        ("author", "from litbook.run import current", "author.py:1: author imports litbook.run.current: "),
        ("run", "from litbook.render import page", "run.py:1: run imports litbook.render.page: run imports"),
        ("run", "import html", "run.py:1: run imports html: left of the record nobody formats"),
        ("tensors", "import torch", "tensors.py:1: tensors imports torch: it is looked up in sys.modules"),
        ("storages", "import numpy", "storages.py:1: storages imports numpy: it is looked up in sys.modules"),
        ("kinds", "from litbook import trace", "kinds.py:1: kinds imports litbook.trace: kinds imports only"),
        ("compare", "from litbook import run", "compare.py:1: compare imports litbook.run: compare imports"),
        ("render/page", "import ast", "page.py:1: render/page imports ast: right of the record nobody"),
        ("render/page", "from litbook.render import terminal", "no other view"),
        (
            "render/page",
            "from .notebook import cells",
            "page.py:1: render/page imports litbook.render.notebook",
        ),
        ("render/page", "from litbook import run", "a view imports trace, errors and the leaves"),
        ("render/values", "from .page import Page", "a leaf of render/ imports trace, errors and"),
        ("render/__init__", "from . import values", "render/__init__ imports no view and no leaf"),
        ("site", "from litbook import source", "site.py:1: site imports litbook.source: site imports only"),
        ("__init__", "from litbook.run import run", "__init__.py:1: __init__ imports litbook.run.run: "),
        ("utils", "", "utils.py:1: a file called utils.py: name it after what it does"),
        ("attic", "", "attic.py:1: a room without a rule: give 'attic' one in tests/test_layers.py"),
    ],
)
def test_an_import_against_the_flow_is_named(house: Path, room: str, text: str, expected: str) -> None:
    (house / f"{room}.py").write_text(text, encoding="utf-8")
    found = "\n".join(problems(house))
    assert expected in found


def test_a_circle_is_named(house: Path) -> None:
    (house / "render" / "values.py").write_text("from litbook.render import prose\n", encoding="utf-8")
    (house / "render" / "prose.py").write_text("from litbook.render import values\n", encoding="utf-8")
    assert circles(house) == ["render/values -> render/prose -> render/values"]


def test_a_part_of_a_view_belongs_to_the_view(house: Path) -> None:
    (house / "render" / "page.py").unlink()
    (house / "render" / "page").mkdir()
    (house / "render" / "page" / "__init__.py").write_text("from . import cards\n", encoding="utf-8")
    (house / "render" / "page" / "cards.py").write_text("from ..values import draw\n", encoding="utf-8")
    assert problems(house) == []
