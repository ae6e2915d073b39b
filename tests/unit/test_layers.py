"""The house has one-way streets: text -> probe (+ snapshot) -> run -> record -> compare -> document -> {html, notebook, terminal} -> site.

Twelve rows, one for each box of `tools/litbook`: what it may import of the engine, what of the world it has
no business with, and why. Every import is read with `ast`, wherever it stands: at the top, inside a
function, under TYPE_CHECKING, or as `import_module("...")`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from litbook import optional

ENGINE = Path(__file__).resolve().parents[2] / "tools" / "litbook"

FORMATS = {"html", "rich", "markdown"}
LIBRARIES = {"torch", "numpy", "einops", "jaxtyping", "matplotlib"}


@dataclass(frozen=True)
class Box:
    """What a package may import of the engine, and what it has no business with."""

    may: set[str]
    banned: set[str]
    why: str = ""


BOXES = {
    "errors": Box(
        set(), LIBRARIES | FORMATS | {"ast"}, "it is everybody's"
    ),  # and project, files: see SHARED
    "record": Box({"errors"}, LIBRARIES | FORMATS | {"ast"}, "it needs neither torch nor a lecture's text"),
    "text": Box({"errors", "record"}, LIBRARIES | FORMATS, "it knows no values and formats nothing"),
    "snapshot": Box({"errors", "record"}, LIBRARIES | FORMATS, "libraries are looked up in sys.modules"),
    "probe": Box({"errors", "record", "text", "snapshot"}, FORMATS, "it formats nothing"),
    "run": Box({"errors", "record", "text", "snapshot", "probe"}, FORMATS, "it formats nothing"),
    "document": Box({"errors", "record", "text"}, {"torch", "ast", "html"}, "it executes no lecture"),
    "html": Box({"errors", "record", "text", "document"}, {"torch", "ast"}, "it executes no lecture"),
    "notebook": Box(  # what a cell puts out may be HTML, too, and SVG: `html` writes them
        {"errors", "record", "text", "document", "html"}, {"torch", "ast"}, "it executes no lecture"
    ),
    "terminal": Box({"errors", "record", "text", "document"}, {"torch", "ast"}, "it executes no lecture"),
    "site": Box(
        {"errors", "record", "text", "run", "document", "html", "notebook"},
        {"torch", "ast"},
        "lectures run elsewhere",
    ),
    "cli": Box(
        {"errors", "record", "text", "run", "document", "html", "notebook", "terminal", "site"},
        {"torch", "ast"},
        "lectures run elsewhere",
    ),
}
# Modules and packages that share another one's row.
SHARED = {
    "project": "errors",
    "optional": "errors",
    "files": "errors",
    "origin": "errors",
    "checks": "cli",
    "completion": "cli",
    "__main__": "cli",
}
OPTIONAL = {  # what nothing in the boxes imports, and what each of these may import of them
    # It reads HTML, that of pages which edtrace has kept, and writes none.
    "edtrace": Box(
        {"errors", "record", "text", "probe", "snapshot"}, FORMATS - {"html"}, "it formats nothing"
    ),
    "display": Box(
        {"errors", "record", "snapshot", "document", "html"}, LIBRARIES | {"ast"}, "it executes no lecture"
    ),
    "translations": Box({"errors", "document"}, LIBRARIES | {"ast"}, "it executes no lecture"),
    "mutants": Box(
        {"errors", "record", "text", "snapshot", "probe", "run", "document", "cli"},
        {"html", "rich"},
        "it prints nothing",
    ),
}
ROWS = BOXES | OPTIONAL
FACADE = {"__init__": "probe"}  # the author's words, re-exported: no box, and nobody imports it

STANDIN = Path("document/standin.py")  # a notebook's own file: what it imports of libraries, it does there
# Loading these loads no torch, whatever they import in turn.
LIGHT = ("errors", "record", "text", "snapshot", "probe", "cli")


@dataclass(frozen=True)
class Import:
    """One imported module, by its full dotted name, and where the import stands."""

    name: str
    file: Path
    line: int


def box_of(file: Path, engine: Path) -> str:
    """The box that a file belongs to: the package, or the module directly in the engine."""
    name = file.relative_to(engine).with_suffix("").parts[0]
    return SHARED.get(name, name)


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


def why_not(box: str, imported: str) -> str | None:
    """Why the box may not import the dotted name; None if it may."""
    head, *parts = imported.split(".")
    if head != "litbook":
        row = ROWS.get(box)
        return row.why if row and head in row.banned else None
    other = SHARED.get(parts[0], parts[0]) if parts else "__init__"
    other = other if other in ROWS else "__init__"
    if other == box:
        return None
    if box in FACADE:
        return None if other == FACADE[box] else f"it hands on names of {FACADE[box]} alone"
    if other in OPTIONAL:
        return "the package may not be there; what it does is in a table that it fills: see optional.py"
    may = ROWS[box].may
    return None if other in may else f"it may import {', '.join(sorted(may)) or 'the standard library'}"


def problems(engine: Path) -> list[str]:
    """Every import that goes against the flow, as `file:line: what: which rule`."""
    found = []
    for file in sorted(engine.rglob("*.py")):
        box, where = box_of(file, engine), file.relative_to(engine.parent.parent)
        if file.stem in ("utils", "util", "helpers", "misc"):
            found.append(f"{where}:1: a file called {file.name}: name it after what it does")
        if box not in ROWS and box not in FACADE:
            found.append(
                f"{where}:1: {box!r} is no box of the house: give it a row in tests/unit/test_layers.py"
            )
            continue
        found += [
            f"{where}:{it.line}: {box} imports {it.name}: {why}"
            for it in imports_of(file, engine)
            if (why := why_not(box, it.name)) and file.relative_to(engine) != STANDIN
        ]
    return found


# ------------------------------------------------------------------------------------- the real tree


def test_every_import_goes_with_the_flow() -> None:
    found = problems(ENGINE)
    assert not found, "imports against the flow:\n" + "\n".join(found)


def test_the_engine_names_no_book_and_nothing_that_one_is_about() -> None:
    words = r"lecture[_ ]02|hardware\.py|napkin|calculator|Count Everything|CS336|\bMFU\b"
    names = r"\b[ABHV][1-9]00\b|\bGPT|LLaMA|AdamW"  # of cards and models
    files = [path for path in ENGINE.rglob("*") if path.suffix in (".py", ".js", ".css")]
    assert len(files) > 50
    found = [
        f"{path.relative_to(ENGINE)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(f"{words}|{names}", line, re.IGNORECASE)
    ]
    assert found == []


def test_there_are_twelve_boxes_and_each_is_there() -> None:
    assert len(BOXES) == 12
    assert BOXES.keys() <= {box_of(file, ENGINE) for file in ENGINE.rglob("*.py")}


def test_what_is_optional_is_named_in_one_file_and_each_is_there() -> None:
    assert (
        optional.PACKAGES.keys() == OPTIONAL.keys() <= {box_of(file, ENGINE) for file in ENGINE.rglob("*.py")}
    )


def test_the_rows_allow_for_no_circle() -> None:
    above: set[str] = set()
    for name, box in BOXES.items():
        assert box.may <= above, f"{name} stands below what it may import"
        above.add(name)


@pytest.mark.parametrize("box", LIGHT)
def test_loading_the_box_loads_no_torch(box: str) -> None:
    files = [file for file in ENGINE.rglob("*.py") if box_of(file, ENGINE) == box]
    names = [".".join(file.relative_to(ENGINE.parent).with_suffix("").parts) for file in files]
    code = (
        f"import sys, importlib; [importlib.import_module(n) for n in {names}]; print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ENGINE.parent, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False", f"importing litbook.{box} loads torch"


# ------------------------------------------------------------------------------- the test can fail


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small engine that keeps every rule."""
    engine = tmp_path / "tools" / "litbook"
    for name, text in {
        "__init__": "from litbook.probe.author import note\n",
        "errors": "",
        "project": "from litbook.errors import NotFound\n",
        "record/model": "from litbook.errors import RecordError\n",
        "text/source": "import ast\nfrom litbook.record import model\nfrom litbook.errors import Place\n",
        "probe/author": "from ..errors import AuthorError\n",
        "run/run": "import torch\nfrom litbook.text import source\nfrom litbook.snapshot import snapshot\n",
        "document/values": "from litbook.record.model import Record\n",
        "html/page": "import html\nfrom litbook.document.values import draw\nfrom . import markup\n",
        "site/plugin": "from litbook.run import run\nfrom litbook.html import page\n",
        "cli": "import rich\nfrom litbook.run import run\n",
    }.items():
        (engine / name).parent.mkdir(parents=True, exist_ok=True)
        (engine / f"{name}.py").write_text(text, encoding="utf-8")
    return engine


def test_a_house_in_order_has_no_problems(house: Path) -> None:
    assert problems(house) == []


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("record/model", "import torch", "model.py:1: record imports torch: it needs neither torch nor"),
        ("record/model", "import html.parser", "model.py:1: record imports html.parser: it needs neither"),
        ("record/model", "\n\ndef f():\n    from ast import parse", "model.py:4: record imports ast.parse: "),
        ("errors", "from litbook.record import model", "errors.py:1: errors imports litbook.record.model: "),
        ("project", "import torch", "project.py:1: errors imports torch: it is everybody's"),
        (
            "text/source",
            "if TYPE_CHECKING:\n    import torch",
            "source.py:2: text imports torch: it knows no",
        ),
        (
            "text/source",
            "from litbook.probe import axes",
            "source.py:1: text imports litbook.probe.axes: it may",
        ),
        ("text/source", "from .. import run", "source.py:1: text imports litbook.run: it may import errors"),
        ("text/source", "import_module('torch')", "source.py:1: text imports torch: it knows no values"),
        ("text/source", "importlib.import_module('litbook.run')", "text imports litbook.run: it may import"),
        (
            "text/source",
            "from litbook import note",
            "text imports litbook.note: it may import errors, record",
        ),
        ("run/run", "from litbook.html import page", "run.py:1: run imports litbook.html.page: it may"),
        ("run/run", "import html", "run.py:1: run imports html: it formats nothing"),
        ("snapshot/kinds", "import numpy", "kinds.py:1: snapshot imports numpy: libraries are looked up in"),
        ("html/page", "import ast", "page.py:1: html imports ast: it executes no lecture"),
        (
            "html/page",
            "from litbook.run import run",
            "html imports litbook.run.run: it may import document",
        ),
        ("html/page", "from litbook.notebook import ipynb", "html imports litbook.notebook.ipynb: it may"),
        ("document/values", "from litbook.html import page", "document imports litbook.html.page: it may"),
        ("__init__", "from litbook.run import run", "__init__ imports litbook.run.run: it hands on names of"),
        (
            "run/run",
            "from litbook.edtrace import words",
            "run.py:1: run imports litbook.edtrace.words: the package may not be there",
        ),
        (
            "edtrace/words",
            "from litbook.display import asking",
            "edtrace imports litbook.display.asking: the pack",
        ),
        (
            "translations/__init__",
            "import torch",
            "__init__.py:1: translations imports torch: it executes no",
        ),
        ("utils", "", "utils.py:1: a file called utils.py: name it after what it does"),
        (
            "attic",
            "",
            "attic.py:1: 'attic' is no box of the house: give it a row in tests/unit/test_layers.py",
        ),
    ],
)
def test_an_import_against_the_flow_is_named(house: Path, module: str, text: str, expected: str) -> None:
    (house / module).parent.mkdir(exist_ok=True)
    (house / f"{module}.py").write_text(text, encoding="utf-8")
    assert expected in "\n".join(problems(house))
