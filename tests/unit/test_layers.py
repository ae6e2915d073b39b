"""The house has one-way streets: text -> probe -> run -> record -> rules -> page -> html, notebook, terminal -> site.

A table by module: each row names modules or whole packages, what they may have nothing to do with, and why. A module
imports from its own row and from the rows above it, which stand below it in the house. A feature's package
may have modules in several rows: `explore` samples a function while a lecture runs, and draws much later. Every import is
read with `ast`, wherever it stands: at the top, inside a function, under TYPE_CHECKING, or as `import_module("...")`.
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

from litbook import plugins

ENGINE = Path(__file__).resolve().parents[2] / "tools" / "litbook"

FORMATS = {"html", "rich", "markdown"}
LIBRARIES = {"torch", "numpy", "einops", "jaxtyping", "matplotlib"}
MOST = 17  # modules side by side in a package


@dataclass(frozen=True)
class Row:
    """Modules on one floor, by their dotted names or those of their packages; the longest name wins."""

    name: str
    modules: str
    banned: set[str]
    why: str


HOUSE = (
    Row(
        "ground",
        "errors finding project files plugins version i18n",
        LIBRARIES | FORMATS | {"ast"},
        "it is everybody's",
    ),
    Row("record", "record", LIBRARIES | FORMATS | {"ast"}, "it needs neither torch nor a lecture's text"),
    Row("python", "python", LIBRARIES | FORMATS, "it knows no values and formats nothing"),
    Row("snapshot", "snapshot", LIBRARIES | FORMATS, "libraries are looked up in sys.modules"),
    Row(
        "lecture",
        "lecture rules.refused rules.tautology rules.shown_nowhere rules.vacuous rules.never_ran rules.unchecked_answer"
        " rules.unclaimed_measure rules.leaning rules.false_equation",
        LIBRARIES | FORMATS,
        "it knows no values and formats nothing",
    ),
    Row("probe", "probe explore.sampling", FORMATS, "it formats nothing"),
    Row("run", "run", FORMATS, "it formats nothing"),
    Row(
        "page",
        "markdown values page explore.chart rules",
        {"torch", "ast", "html"},
        "it executes no lecture and writes no HTML",
    ),
    Row(
        "html",
        "html markdown.to_html markdown.citations_html markdown.mathml values.cards values.bits values.drawings"
        " explore.html",
        {"torch", "ast"},
        "it executes no lecture",
    ),
    Row("notebook", "notebook", {"torch"}, "it executes no lecture"),
    Row("terminal", "terminal", {"torch", "ast"}, "it executes no lecture"),
    Row("site", "site", {"torch", "ast"}, "lectures run elsewhere"),
    Row("cli", "cli __main__", {"torch", "ast"}, "lectures run elsewhere"),
)
OPTIONAL = (  # what nothing in the house imports; each may import all of it
    # It reads HTML, that of pages which edtrace has kept, and writes none.
    Row("edtrace", "edtrace", FORMATS - {"html"}, "it formats nothing"),
    Row("display", "display", LIBRARIES | {"ast"}, "it executes no lecture"),
    Row("translations", "translations", LIBRARIES | {"ast"}, "it executes no lecture"),
    Row("mutants", "mutants", {"html", "rich"}, "it prints nothing"),
)
FACADE = Row("__init__", "", set(), "")  # the author's words, re-exported from `probe`: nobody imports it
FLOOR = {row.name: number for number, row in enumerate((*HOUSE, *OPTIONAL))}
ROW_OF = {module: row for row in (*HOUSE, *OPTIONAL) for module in row.modules.split()}

# What imports of libraries, it does in a notebook, whose own file it is.
RUNTIME = Path("notebook/runtime.py")
# Loading these loads no torch, whatever they import in turn.
LIGHT = ("ground", "record", "python", "lecture", "snapshot", "probe", "cli")


@dataclass(frozen=True)
class Import:
    """One imported module, by its full dotted name, and where the import stands."""

    name: str
    file: Path
    line: int


def row_of(module: str) -> Row | None:
    """The row of a module, or of what stands in it, by its dotted name in the engine; None where it has none."""
    while module:
        if module in ROW_OF:
            return ROW_OF[module]
        module = module.rpartition(".")[0]
    return None


def module_of(file: Path, engine: Path) -> str:
    """A file's dotted name in the engine; a package's own is that of its `__init__`."""
    return ".".join(file.relative_to(engine).with_suffix("").parts)


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


def why_not(row: Row, imported: str) -> str | None:
    """Why a module of the row may not import the dotted name; None if it may."""
    head, _, module = imported.partition(".")
    if head != "litbook":
        return row.why if head in row.banned else None
    other = row_of(module) or FACADE
    if other is row:
        return None
    if row is FACADE:
        return None if other.name == "probe" else "it hands on names of probe alone"
    if other in OPTIONAL:
        return "the package may not be there; what it does is in a table that it fills: see plugins.py"
    if other is FACADE:
        return "the author's words are for lectures"
    return None if FLOOR[other.name] < FLOOR[row.name] else f"{row.name} stands below {other.name}"


def problems(engine: Path) -> list[str]:
    """Every import that goes against the flow, as `file:line: what: which rule`."""
    found = []
    for file in sorted(engine.rglob("*.py")):
        module, where = module_of(file, engine), file.relative_to(engine.parent.parent)
        if file.stem in ("utils", "util", "helpers", "misc"):
            found.append(f"{where}:1: a file called {file.name}: name it after what it does")
        row = FACADE if module == "__init__" else row_of(module.removesuffix(".__init__"))
        if row is None:
            if file.name == "__init__.py":  # of a package whose modules stand on several floors
                continue
            found.append(f"{where}:1: {module!r} has no row: give it one in tests/unit/test_layers.py")
            continue
        found += [
            f"{where}:{it.line}: {module} imports {it.name}: {why}"
            for it in imports_of(file, engine)
            if (why := why_not(row, it.name)) and file.relative_to(engine) != RUNTIME
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


def test_every_row_is_of_something_that_is_there() -> None:
    modules = [module_of(file, ENGINE) for file in ENGINE.rglob("*.py")]
    nowhere = [n for n in ROW_OF if not any(m == n or m.startswith(f"{n}.") for m in modules)]
    assert nowhere == []


def test_what_is_optional_is_named_in_one_file() -> None:
    assert plugins.PACKAGES.keys() == {row.name for row in OPTIONAL}


def test_a_package_has_at_most_seventeen_modules() -> None:
    crowded = {
        str(folder.relative_to(ENGINE)): len(modules)
        for folder in [ENGINE, *(path for path in ENGINE.rglob("*") if path.is_dir())]
        if len(modules := [file for file in folder.glob("*.py") if file.stem != "__init__"]) > MOST
    }
    assert crowded == {}


@pytest.mark.parametrize("name", LIGHT)
def test_loading_the_row_loads_no_torch(name: str) -> None:
    modules = [module_of(file, ENGINE) for file in ENGINE.rglob("*.py")]
    names = [
        f"litbook.{module.removesuffix('.__init__')}"
        for module in modules
        if (row := row_of(module.removesuffix(".__init__"))) and row.name == name
    ]
    code = (
        f"import sys, importlib; [importlib.import_module(n) for n in {names}]; print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ENGINE.parent, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False", f"importing {names} loads torch"


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
        "lecture/parse": "import ast\nfrom litbook.record import model\nfrom litbook.errors import Place\n",
        "probe/author": "from ..errors import AuthorError\nfrom litbook.explore import sampling\n",
        "explore/sampling": "from litbook.lecture import parse\n",
        "run/run": "import torch\nfrom litbook.lecture import parse\nfrom litbook.snapshot import snapshot\n",
        "values/formatting": "from litbook.record.model import Record\n",
        "values/cards": "import html\nfrom litbook.values import formatting\nfrom litbook.html import elements\n",
        "html/page": "import html\nfrom litbook.values.cards import draw\nfrom . import elements\n",
        "site/plugin": "from litbook.run import run\nfrom litbook.html import page\n",
        "cli/run": "import rich\nfrom litbook.run import run\n",
    }.items():
        (engine / name).parent.mkdir(parents=True, exist_ok=True)
        (engine / f"{name}.py").write_text(text, encoding="utf-8")
    return engine


def test_a_house_in_order_has_no_problems(house: Path) -> None:
    assert problems(house) == []


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("record/model", "import torch", "model.py:1: record.model imports torch: it needs neither torch nor"),
        ("record/model", "import html.parser", "model.py:1: record.model imports html.parser: it needs neither"),
        ("record/model", "\n\ndef f():\n    from ast import parse", "model.py:4: record.model imports ast.parse: "),
        ("errors", "from litbook.record import model", "errors.py:1: errors imports litbook.record.model: ground st"),
        ("project", "import torch", "project.py:1: project imports torch: it is everybody's"),
        ("lecture/parse", "if TYPE_CHECKING:\n    import torch", "parse.py:2: lecture.parse imports torch: it knows no"),
        ("lecture/parse", "from litbook.probe import axes", "imports litbook.probe.axes: lecture stands below probe"),
        ("lecture/parse", "from .. import run", "parse.py:1: lecture.parse imports litbook.run: lecture stands below run"),
        ("lecture/parse", "import_module('torch')", "parse.py:1: lecture.parse imports torch: it knows no values"),
        ("lecture/parse", "importlib.import_module('litbook.run')", "imports litbook.run: lecture stands below run"),
        ("lecture/parse", "from litbook import note", "imports litbook.note: the author's words are for lectures"),
        ("run/run", "from litbook.html import page", "run.py:1: run.run imports litbook.html.page: run stands below"),
        ("run/run", "import html", "run.py:1: run.run imports html: it formats nothing"),
        ("snapshot/kinds", "import numpy", "kinds.py:1: snapshot.kinds imports numpy: libraries are looked up in"),
        ("html/page", "import ast", "page.py:1: html.page imports ast: it executes no lecture"),
        ("html/page", "from litbook.notebook import ipynb", "html stands below notebook"),
        ("values/formatting", "import html", "values.formatting imports html: it executes no lecture"),
        ("values/formatting", "from litbook.values import cards", "imports litbook.values.cards: page stands below html"),
        ("explore/sampling", "from litbook.explore import chart", "explore.sampling imports litbook.explore.chart: probe"),
        ("explore/new", "", "new.py:1: 'explore.new' has no row: give it one in tests/unit/test_layers.py"),
        ("__init__", "from litbook.run import run", "__init__ imports litbook.run.run: it hands on names of probe"),
        ("run/run", "from litbook.edtrace import words", "litbook.edtrace.words: the package may not be there"),
        ("translations/__init__", "import torch", "translations.__init__ imports torch: it executes no lecture"),
        ("utils", "", "utils.py:1: a file called utils.py: name it after what it does"),
    ],
)  # fmt: skip
def test_an_import_against_the_flow_is_named(house: Path, module: str, text: str, expected: str) -> None:
    (house / module).parent.mkdir(exist_ok=True)
    (house / f"{module}.py").write_text(text, encoding="utf-8")
    assert expected in "\n".join(problems(house))
