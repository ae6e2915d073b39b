"""A lecture may be a folder: all its modules are its text, and it runs as the package that it is."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from tests.running import REPO, SAMPLES, called, claims, messages, shown

from litbook import project
from litbook.errors import Ambiguous, NotFound, TimedOut, UnusableLecture
from litbook.lecture import parse
from litbook.lecture.model import Lecture
from litbook.record import model
from litbook.run.run import run

PARTS = SAMPLES / "parts"


def folder(at: Path, name: str = "book", **files: str) -> Path:
    """The lecture of these files, each by the name of its module; `init` is `__init__`."""
    made = at / name
    made.mkdir()
    for module, text in files.items():
        file = made / f"{'__init__' if module == 'init' else module}.py"
        file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return made


def read(at: Path, **files: str) -> Lecture:
    return parse.read(folder(at, **files))


def refused(at: Path, **files: str) -> str:
    """All that is said about files that cannot be used."""
    with pytest.raises(UnusableLecture) as caught:
        read(at, **files)
    return str(caught.value)


def output(record: model.Record) -> str:
    return "".join(piece.text for it in record.sections for piece in it.pieces if piece.kind == "output")


# ------------------------------------------------------------------------------- the text


def test_hide_at_the_docstring_of_a_file_hides_all_of_that_file(tmp_path):
    found = read(
        tmp_path,
        init="""\
            \"\"\"A lecture.\"\"\"
            from .figures import plot
            def main():
                section()
            def section():
                plot(1)
        """,
        figures="""\
            \"\"\"What the pages
            do not show.\"\"\"  # @hide
            import math
            WIDTH = 7
            def plot(n):
                return math.sqrt(n * WIDTH)
        """,
    )
    kinds: dict[str, set[str]] = {
        found.file_of_statement(i).name: set() for i in range(len(found.statements))
    }
    for i, statement in enumerate(found.statements):
        kinds[found.file_of_statement(i).name].add(statement.kind)
    assert kinds == {"": {"doc", "code", "def", "section"}, "figures": {"hidden"}}
    assert [f.name for f in found.functions if f.hidden] == ["plot"]


def test_hide_at_the_docstring_of_a_file_with_sections_is_refused(tmp_path):
    sections = """\
        \"\"\"A lecture.\"\"\"  # @hide
        def main():
            section()
        def section():
            x = 1
    """
    assert (
        "__init__.py:1:19: @hide on the docstring of a file with sections would leave nothing to show"
        in refused(tmp_path, init=sections)
    )


def test_the_files_stand_in_the_order_in_which_main_reaches_them():
    found = parse.read(PARTS)
    assert [file.name for file in found.files] == ["", "storage", "compute", "models"]
    assert [file.module for file in found.files][:2] == ["parts", "parts.storage"]
    assert [file.path for file in found.files][2:] == ["parts/compute.py", "parts/models.py"]
    assert [file.number for file in found.files] == [0, 1, 2, 3]
    assert found.files[3].filename == str(PARTS / "models.py")
    assert (found.name, found.title) == ("parts", "A lecture in a folder")


def test_everything_is_numbered_over_all_files_and_knows_its_file():
    found = parse.read(PARTS)
    assert sorted(found.function_of.values()) == list(range(len(found.functions)))
    assert sorted(found.statement_of.values()) == list(range(len(found.statements)))
    keys = [(f.file, f.key) for f in found.functions]
    assert keys == [
        (0, "<module>"), (0, "main"), (0, "in_short"),
        (1, "storage.<module>"), (1, "storage.storage"), (1, "storage.first_steps"),
        (1, "storage.a_pair_is_two_numbers"),
        (2, "compute.<module>"), (2, "compute.compute"), (2, "compute.first_steps"),
        (3, "models.<module>"), (3, "models.Pair"), (3, "models.Pair.__init__"), (3, "models.Pair.total"),
        (3, "models.twice"),
    ]  # fmt: skip
    assert [(w.text, w.file) for w in found.watches] == [
        ("numbers", 1), ("sum(numbers)", 1), ("pair.total()", 1), ("both", 3),
    ]  # fmt: skip
    assert [found.file_of_statement(claim.statement).name for claim in found.claims] == [
        "storage", "storage", "storage", "compute",
    ]  # fmt: skip
    assert found.files[3].place(7).text == "    def __init__(self, first: int, second: int) -> None:"
    assert [f.kind for f in found.functions if f.file == 3] == [
        "module",
        "class",
        "helper",
        "helper",
        "helper",
    ]


def test_keys_of_one_file_have_no_prefix_and_further_definitions_of_a_name_a_number():
    found = parse.parse(
        "def main(): pass\nclass A:\n    def f(self):\n        def g(): pass\n"
        "    f.x = property(f)\n    def f(self): pass\n"
    )
    assert [f.key for f in found.functions] == ["<module>", "main", "A", "A.f", "A.f.g", "A.f#2"]


IMPORTS = [
    ("from .one import section", "section()"),
    ("from .one import section as s", "s()"),
    ("from book.one import section", "section()"),
    ("from . import one", "one.section()"),
    ("from . import one as o", "o.section()"),
    ("from book import one", "one.section()"),
    ("import book.one", "book.one.section()"),
    ("import book.one as o", "o.section()"),
    ("from .one import *", "section()"),
    ("from .more import section", "section()"),
    ("from . import more", "more.one.section()"),
    ("try:\n    from .one import section\nexcept ImportError:\n    pass", "section()"),
    ("", "from .one import section\n    section()"),
    ("", "from . import one\n    one.section()"),
]


@pytest.mark.parametrize("imports, call", IMPORTS)
def test_a_section_is_found_through_the_imports_of_the_calling_file(tmp_path, imports, call):
    made = folder(
        tmp_path,
        init=f"{imports}\ndef main():\n    {call}\n",
        one="def section():\n    assert 1 + 1 == 2\n",
        more="from . import one\nfrom .one import section\n",
    )
    assert parse.read(made).section_names() == ["section"]
    assert claims(run(made)) == {"1 + 1 == 2": "holds"}


@pytest.mark.parametrize(
    "imports, call",
    [
        ("from .one import section", "section = print\n    section()"),
        ("from elsewhere.one import section", "section()"),
        ("from .. import one", "one.section()"),
        ("from .one import other", "other()"),
        ("one = print", "one.section()"),
        ("if TYPE_CHECKING:\n    from .one import section", "section()"),
    ],
)
def test_what_comes_from_elsewhere_is_no_section(tmp_path, imports, call):
    found = read(tmp_path, init=f"{imports}\ndef main():\n    {call}\n", one="def section(): pass\n")
    assert found.section_names() == []


def test_names_that_differ_in_their_file_only_do_not_clash():
    found = parse.read(PARTS)
    assert found.section_names() == [
        "storage", "storage.first_steps", "a_pair_is_two_numbers", "compute", "compute.first_steps",
    ]  # fmt: skip
    assert found.functions[found.section("compute.first_steps")].key == "compute.first_steps"
    assert found.section("storage.a_pair_is_two_numbers") == found.section("a_pair_is_two_numbers")
    with pytest.raises(Ambiguous) as caught:
        found.section("first_steps")
    assert str(caught.value) == (
        "2 sections are named 'first_steps'\n    say which: storage.first_steps, compute.first_steps"
    )
    with pytest.raises(NotFound, match="no section named 'first_step'; did you mean"):
        found.section("first_step")


def test_what_a_compiler_reads_is_left_alone_in_every_file(tmp_path):
    found = read(
        tmp_path,
        init="from .one import f\nfrom . import two\nimport torch\n"
        "def main(): torch.compile(f); torch.jit.script(two.g)\n",
        one="from .two import helper as h\ndef f(): h()\ndef g(): pass\nclass A: pass\n",
        two="def helper(): pass\ndef g(): pass\ndef f(): pass\nclass B: pass\n",
    )
    left = {found.functions[found.function_of[node]].key for node in found.untouched}
    assert left == {"one.f", "two.helper", "two.g"}


def test_a_model_given_to_a_compiler_may_be_of_any_class_in_any_file(tmp_path):
    found = read(
        tmp_path,
        init="import torch\nfrom .one import A\ndef main(): torch.compile(A())\n",
        one="from .two import B, C\nclass A(B): pass\nclass D(C): pass\n",
        two="import torch\nclass B(torch.nn.Module): pass\nclass C: pass\n",
    )
    left = {found.functions[found.function_of[node]].key for node in found.untouched}
    assert left == {"one.A", "two.B"}


def test_a_save_parses_only_the_file_that_was_saved(tmp_path):
    made = folder(tmp_path, init="from .one import a\ndef main(): a()\n", one="def a(): pass\n")
    before = parse.read(made)
    assert parse.read(made).functions is before.functions
    (made / "one.py").write_text("def a(): return\n")
    after = parse.read(made)
    assert after.files[0].tree is before.files[0].tree
    assert after.files[1].tree is not before.files[1].tree


@pytest.mark.parametrize("path", [PARTS, PARTS / "__init__.py", PARTS / ".." / "parts"])
def test_a_folder_is_found_by_its_path_and_by_that_of_its_first_file(path):
    assert parse.lecture_path(path) == PARTS
    assert project.Project(REPO).lecture(str(path)).samefile(PARTS)
    names = [file.name for file in parse.lecture_files(path)]
    assert names == ["__init__.py", "compute.py", "models.py", "storage.py"]


def test_a_folder_is_found_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "lectures").mkdir()
    made = folder(tmp_path / "lectures", "lecture_parts", init="def main(): pass\n")
    assert project.Project(tmp_path).lecture("lecture_parts") == made
    assert parse.lecture_files(SAMPLES / "tour.py") == [SAMPLES / "tour.py"]


def test_the_outline_is_that_of_the_whole_text():
    outline, whole = parse.outline(PARTS), parse.read(PARTS)
    assert outline.section_names() == whole.section_names()
    told = [(f.key, f.kind, f.heading, f.parent) for f in whole.functions]
    assert [(f.key, f.kind, f.heading, f.parent) for f in outline.functions] == told


# ------------------------------------------------------------------------------- what cannot be used


MAIN = "def main(): pass\n"


@pytest.mark.parametrize(
    "files, message",
    [
        ({"one": MAIN}, "book is a folder without __init__.py\n    a lecture that is a folder has its main() there"),
        (
            {"init": "", "one": MAIN},
            ("book/__init__.py has no function main()\n"
            "    a lecture starts at `def main() -> None:`, which calls its sections"),
        ),
        (
            {"init": "from .b import one\n" + MAIN, "b": "def one(:\n", "c": "x = 1  # @inspekt x\n"},
            ("book/b.py:1:9: syntax error: invalid syntax\n    def one(:\n            ^\n"
            "book/c.py:1:8: unknown directive @inspekt\n    x = 1  # @inspekt x\n           ^\n"
            "    did you mean @inspect?"),
        ),
        (
            {"init": "def main(\n", "b": "x = 1  # @inspect )\n"},
            ("book/__init__.py:1:9: syntax error: '(' was never closed\n    def main(\n            ^\n"
            "book/b.py:1:8: @inspect cannot read ')': unmatched ')'\n    x = 1  # @inspect )\n           ^\n"
            "    write Python expressions, separated by commas, each with an optional `as UNIT`"),
        ),
        (
            {
                "init": "from .b import part\nfrom .c import part\ndef main():\n    part()\n",
                "b": "def part(): pass\n",
                "c": "def part(): pass\n",
            },
            ("book/__init__.py:2:16: part is imported on line 1 already, and what is imported here replaces it\n"
            "    from .c import part\n                   ^\n"
            "    import one of them under another name: import part as …"),
        ),
        (
            {"init": "from .b import part\ndef main():\n    part()\ndef part(): pass\n", "b": "def part(): pass\n"},
            ("book/__init__.py:4:1: part is imported on line 1 already, and what is defined here replaces it\n"
            "    def part(): pass\n    ^\n    import one of them under another name: import part as …"),
        ),
        (
            {"init": "from .b import a\ndef main():\n    a()\n", "b": "def a(): pass\ndef a(): pass\n"},
            ("book/b.py:2:1: a() is defined on line 1 already, and this one replaces it\n"
            "    def a(): pass\n    ^\n    give one of them another name"),
        ),
        (
            {
                "init": "from .storage import a\ndef main():\n    a()\n",
                "storage": "from .compute import b\ndef a(): pass\n",
                "compute": "from . import models, storage\ndef b(): pass\n",
                "models": "",
            },
            ("book/storage.py:1:22: a circular import: storage -> compute -> storage\n"
            "    from .compute import b\n                         ^\n"
            "    move what they need of each other into a file of its own"),
        ),
        (
            {"init": "from .b import a\nSIZE = 3\n" + MAIN, "b": "from . import SIZE\ndef a(): pass\n"},
            ("book/__init__.py:1:16: a circular import: __init__ -> b -> __init__\n"
            "    from .b import a\n                   ^\n"
            "    move what they need of each other into a file of its own"),
        ),
        (
            {"init": "from . import b\ndef main():\n    b.claims(3)\n    b.later()\n", "b": "async def later(): pass\n"},
            ("book/b.py:1:1: b.later() is async, and main() calls it in book/__init__.py:4: a section is a plain "
            "function without parameters\n    async def later(): pass\n    ^\n"
            "    write `def later():`, with asyncio.run(…) around what it awaits"),
        ),
        (
            {"init": "from .b import a\ndef main():\n    a()\n", "b": "def a():\n    assert (1, 'one')\n"},
            ("book/b.py:2:12: this assert is always true: it asserts a tuple\n    assert (1, 'one')\n"
            "           ^\n    take the parentheses away: assert 1, 'one'"),
        ),
    ],
)  # fmt: skip
def test_the_problems_of_all_files_are_said_at_once_each_with_its_place(tmp_path, files, message):
    assert refused(tmp_path, **files) == message


def test_files_that_are_no_text_are_said_with_what_is_wrong_elsewhere(tmp_path):
    made = folder(tmp_path, init=MAIN, b="x = 1  # @inspekt x\n")
    (made / "c.py").write_bytes(b"\xff\xfe")
    with pytest.raises(UnusableLecture) as caught:
        parse.read(made)
    assert "book/c.py is not Python text: " in str(caught.value)
    assert "book/b.py:1:8: unknown directive @inspekt" in str(caught.value)


def test_a_circle_that_does_not_close_while_files_are_imported_is_none(tmp_path):
    found = read(
        tmp_path,
        init="from .a import x\nimport book\ndef main(): pass\n",
        a="from typing import TYPE_CHECKING\nfrom . import c\nif TYPE_CHECKING:\n    from .b import y\nx = 1\n",
        b="from .a import x\ny = 1\ndef f():\n    from .c import z\n",
        c="z = 1\ndef g():\n    from .b import y\n",
    )
    assert len(found.files) == 4


def test_what_cannot_stand_where_it_is_shown_is_refused_in_every_file(tmp_path):
    text = "def {0}():\n    v = 1  # @inspect v, x\n    global x\n"
    made = folder(
        tmp_path, init="from .b import b\nfrom .c import c\ndef main():\n    b()\n    c()\n",
        b=text.format("b"), c=text.format("c"),
    )  # fmt: skip
    with pytest.raises(UnusableLecture) as caught:
        run(made)
    assert [p.place.path for p in caught.value.findings if p.place] == ["book/b.py", "book/c.py"]
    assert "book/c.py:3:1: what is to be shown here cannot stand here: name 'x' is used" in str(caught.value)


# ------------------------------------------------------------------------------- the run


def test_all_that_its_files_say_is_recorded():
    record = run(PARTS)
    assert record.lecture == "parts"
    assert [Path(it.path).name for it in record.sources] == [
        "__init__.py", "storage.py", "compute.py", "models.py",
    ]  # fmt: skip
    assert claims(record) == {
        "sum(numbers) == 6": "holds",
        "pair.total() == 7": "holds",
        "copy.total() == pair.total()": "holds",
        "parts.models.twice(Two(1, 2)) == 6": "holds",
    }
    assert shown(record, "sum(numbers)") == [6] and shown(record, "pair.total()") == [7]
    assert set(shown(record, "both")) == {7, 3}
    assert output(record) == "6\n"
    assert {"Pair", "__init__", "total", "twice"} <= set(called(record))
    assert not messages(record)


@pytest.mark.parametrize(
    "asked, held", [("compute.first_steps", 1), ("a_pair_is_two_numbers", 2), ("storage", 3)]
)
def test_one_section_runs_alone(asked, held):
    record = run(PARTS, sections=[asked])
    assert record.count()["holds"] == held and not messages(record)


STATE = """
    import inspect, pickle, sys
    from litbook import note
    from . import parts
    from .parts import Kept
    def main():
        there = [sys.modules[name] for name in sorted(sys.modules) if name.split(".")[0] == "book"]
        for module in there:
            if module.__name__.endswith("__main__"):
                continue
            spec = module.__spec__
            print(module.__name__, module.__package__, module.__file__, getattr(module, "__path__", None))
            print(module.__doc__, module.__cached__, spec.name, spec.origin, spec.parent, spec.has_location)
            print(spec.submodule_search_locations, spec.cached, type(spec.loader).__mro__[-4:])
            print(inspect.getsource(module)[:20], spec.loader.get_source(spec.name)[:20])
        print(inspect.getsource(Kept), inspect.getsourcelines(Kept)[1], inspect.getfile(Kept))
        print(pickle.loads(pickle.dumps(Kept(3))).x, Kept.__module__, Kept.__qualname__)
        print(sys.path[0], parts.data(), [name for name in dir(parts) if name != "__builtins__"])
        import importlib, pkgutil
        print(importlib.reload(parts) is parts, [m.name for m in pkgutil.iter_modules(sys.modules["book"].__path__)])
        print(pkgutil.get_data("book", "text.txt"))
        from .late import value
        from .inner import deep
        print(value, deep.where)
    """
KEPT = '''
    """Parts."""
    import os
    class Kept:
        def __init__(self, x): self.x = x
    def data():
        return sorted(os.listdir(os.path.dirname(__file__)))
    '''


def plainly(made: Path) -> subprocess.CompletedProcess[str]:
    """What plain Python makes of the package."""
    (made / "__main__.py").write_text("from . import main\nmain()\n")
    env = {**os.environ, "PYTHONPATH": str(REPO / "tools"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", made.name]
    return subprocess.run(command, cwd=made.parent, env=env, capture_output=True, text=True, check=False)


def test_the_package_sees_itself_as_in_plain_python(tmp_path):
    made = folder(tmp_path, init=STATE, parts=KEPT, late="value = 1\n")
    (made / "text.txt").write_text("kept beside")
    (made / "inner").mkdir()
    (made / "inner" / "__init__.py").write_text("")
    (made / "inner" / "deep.py").write_text("where = __name__\n")
    plain = plainly(made)
    assert plain.returncode == 0, plain.stderr
    record = run(made)
    assert not messages(record)
    assert output(record).splitlines() == plain.stdout.splitlines()
    assert not list(tmp_path.rglob("__pycache__")), "bytecode was written"


def test_an_exception_names_the_lines_of_all_files_as_in_plain_python(tmp_path):
    made = folder(
        tmp_path,
        init="from .one import section\ndef main():\n    section()\n",
        one="from .two import helper\n\n\ndef section():\n    helper(0)\n",
        two="import beside\ndef helper(x):\n    # a comment\n    return beside.divide(x)\n",
    )
    (tmp_path / "beside.py").write_text("def divide(x):\n    return 1 / x\n")
    plain = plainly(made)
    record = run(made)
    [(section, error)] = record.errors()
    assert error.message == "ZeroDivisionError: division by zero" == plain.stderr.splitlines()[-1]
    assert [(file, line) for file, line, _, _ in error.trace] == [
        ("book/one.py", 5), ("book/two.py", 4), ("beside.py", 2),
    ]  # fmt: skip
    for file, line, *_ in error.trace:
        assert f'File "{tmp_path / file}", line {line}, in ' in plain.stderr
    assert (section.key, section.first + error.line, error.text) == ("section", 5, "helper(0)")


def test_an_exception_while_a_file_is_imported_is_an_error_of_the_lecture(tmp_path):
    made = folder(
        tmp_path, init="from .one import a\ndef main():\n    a()\n", one="x = 1\ny = [][x]\ndef a(): pass\n"
    )
    [(_, error)] = run(made).errors()
    assert error.message == "IndexError: list index out of range"
    assert [it[:2] for it in error.trace] == [("book/__init__.py", 1), ("book/one.py", 2)]
    assert (error.line, error.text) == (0, "from .one import a")


def test_an_inspected_expression_that_raises_names_its_file(tmp_path):
    made = folder(
        tmp_path,
        init="from .one import a\ndef main():\n    a()\n",
        one="def a():\n    x = 0  # @inspect 1 / x\n",
    )
    found = run(made)
    [(section, error)] = found.errors()
    assert found.sources[section.file].path == "book/one.py"
    assert (section.first + error.line, error.text) == (2, "x = 0  # @inspect 1 / x")


def test_a_timeout_names_the_line_of_the_file_it_reached(tmp_path):
    made = folder(
        tmp_path,
        init="from .one import a\ndef main():\n    a()\n",
        one="import time\ndef a():\n    time.sleep(60)\n",
    )
    with pytest.raises(TimedOut, match=r"it had reached book/one.py:3\n    time.sleep\(60\)"):
        run(made, timeout=3)


def test_nothing_of_the_package_stays_behind(tmp_path):
    before = set(sys.modules), list(sys.meta_path), list(sys.path)
    assert run(PARTS).count()["holds"] == 4
    assert (set(sys.modules) - before[0], sys.meta_path, sys.path) == (set(), before[1], before[2])


def test_a_section_that_was_deleted_from_its_file_is_an_error_and_no_claim_holds(tmp_path):
    made = folder(
        tmp_path,
        init="import sys\nfrom . import one\ndef main():\n    del one.a\n    del sys.modules['book.one']\n    one.a()\n",
        one="def a():\n    assert 1 + 1 == 2\n",
    )
    record = run(made)
    assert claims(record) == {"1 + 1 == 2": "not-reached"}
    assert "AttributeError" in messages(record)[0]


def test_a_module_that_is_imported_again_is_instrumented_again(tmp_path):
    made = folder(
        tmp_path,
        init="import sys\nfrom . import one\ndef main():\n    del sys.modules['book.one']\n"
        "    from .one import a\n    a()\n",
        one="def a():\n    assert 1 + 1 == 2\n",
    )
    assert claims(run(made)) == {"1 + 1 == 2": "holds"}


def test_a_package_may_have_the_name_of_another_that_is_imported(tmp_path):
    import json.decoder

    made = folder(
        tmp_path, name="json", init="from .decoder import a\ndef main():\n    a()\n", decoder="def a():\n    assert 1 + 1 == 2\n"
    )  # fmt: skip
    assert claims(run(made)) == {"1 + 1 == 2": "holds"}
    assert sys.modules["json"] is json and sys.modules["json.decoder"] is json.decoder


def test_plain_python_prints_the_prose_and_what_is_printed():
    env = {**os.environ, "PYTHONPATH": str(REPO / "tools"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "parts"]
    done = subprocess.run(command, cwd=SAMPLES, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == (
        "Two parts, each a file, and the models they share.\n\nIts class is a definition of the lecture.\n\n6\n"
    )


@pytest.mark.parametrize(
    "name, file, key",
    [
        ("storage", 0, "storage.storage"), ("work.compute", 0, "compute.compute"), ("work.Two", 0, "models.Pair"),
        ("Pair", 1, "models.Pair"), ("Two", 2, "models.Pair"), ("parts.models.twice", 2, "models.twice"),
        ("parts.main", 2, "main"), ("Pair", 2, None), ("work", 0, None), ("pickle", 1, None),
    ],
)  # fmt: skip
def test_a_name_means_a_definition_of_any_file(name, file, key):
    found = parse.read(PARTS)
    meant = found.names.meaning(file, name)
    assert (found.functions[found.function_of[meant]].key if isinstance(meant, ast.AST) else None) == key
