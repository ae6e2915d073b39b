"""`__beside__`: a module beside a lecture becomes its text, and is recorded, shown, linked and judged as such."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.running import failures, unrun
from tests.unit.test_folder import folder, plainly

from litbook.errors import LitbookError, UnusableLecture
from litbook.finding import Finding
from litbook.html import page, player
from litbook.lecture import parse
from litbook.lecture.model import Lecture
from litbook.notebook import ipynb
from litbook.run import process
from litbook.run.run import run

# Of a name that no module of the book has: one that another test has imported would be found in its place.
TALLIES = '''"""Tallies"""

TERMS = 2


def product(n):
    """Of a square."""
    assert n < 5, "small"
    total = TERMS * n**3
    return total
'''
SECTION = '''"""A book"""
from litbook import link
from tallies import product
__beside__ = ("tallies",)


def main():
    part()


def part():
    link(product)
    count = product(3)  # @inspect count
    assert count == 54, "by hand"
'''
UNREAD = "__beside__ is said once, at the left margin, as strings that stand there"
PLACE = 'write the names of modules beside the lecture: __beside__ = ("counters",)'


def alone(at: Path, text: str = SECTION, **beside: str) -> Path:
    """A lecture that is one file, and modules beside it."""
    for name, body in {"book": text, **(beside or {"tallies": TALLIES})}.items():
        (at / f"{name}.py").write_text(body, encoding="utf-8")
    return at / "book.py"


def in_folder(at: Path, init: str = SECTION, **files: str) -> Path:
    """The same lecture as a folder."""
    (at / "tallies.py").write_text(TALLIES, encoding="utf-8")
    return folder(at, init=init, **files)


def names(found: Lecture) -> list[tuple[str, str, str]]:
    return [(file.path, file.module, file.name) for file in found.files]


# ------------------------------------------------------------------------------- the text


def test_a_module_beside_the_lecture_is_one_of_its_files(tmp_path: Path) -> None:
    found = parse.read(alone(tmp_path))
    assert names(found) == [("book.py", "", ""), ("tallies.py", "tallies", "tallies")]
    assert [file.filename for file in found.files] == [str(tmp_path / it) for it in ("book.py", "tallies.py")]
    assert [it.key for it in found.functions] == [
        "<module>", "main", "part", "tallies.<module>", "tallies.product",
    ]  # fmt: skip
    assert names(parse.outline(tmp_path / "book.py")) == names(found)
    assert names(parse.parse_sources(found.sources())) == names(found)


def test_it_stands_above_a_folder_and_behind_the_modules_in_it(tmp_path: Path) -> None:
    made = in_folder(tmp_path, models="x = 1\n")
    found = parse.read(made, "lectures/book")
    assert names(found) == [
        ("lectures/book/__init__.py", "book", ""),
        ("lectures/book/models.py", "book.models", "models"),
        ("lectures/tallies.py", "tallies", "tallies"),
    ]
    assert names(parse.parse_sources(found.sources())) == names(found)
    assert found.files[2].filename == str(tmp_path / "tallies.py")


def test_without_the_word_a_module_beside_the_lecture_is_plain(tmp_path: Path) -> None:
    text = SECTION.replace("__beside__", "beside")
    assert len(parse.read(alone(tmp_path, text)).files) == 1


@pytest.mark.parametrize(
    "imported, called",
    [
        ("from tallies import product", "product"),
        ("from tallies import product as cubed", "cubed"),
        ("from tallies import *", "product"),
        ("import tallies", "tallies.product"),
        ("import tallies as c", "c.product"),
    ],
)
def test_every_form_of_import_means_the_same_definition(tmp_path: Path, imported: str, called: str) -> None:
    text = SECTION.replace("from tallies import product", imported).replace("product(", f"{called}(")
    text = text.replace("link(product)", f"link({called})")
    for made in (alone(tmp_path, text), in_folder(tmp_path, text)):
        found = parse.read(made)
        meant = found.names.meaning(0, called)
        assert isinstance(meant, ast.AST)
        assert found.functions[found.function_of[meant]].key == "tallies.product"
        record = run(made)
        assert [c.verdict for _, c in record.claims()] == ["holds"]
        problems: list[Finding] = []
        [body] = page.pages(record, {}, (), problems).values()
        assert problems == []
        assert 'href="#tallies-L6"' in body


def test_a_lecture_has_no_attribute_for_what_stands_beside_it(tmp_path: Path) -> None:
    made = in_folder(tmp_path, SECTION + "import book\n")
    assert parse.read(made).names.meaning(0, "book.tallies.product") is None
    assert parse.read(made).names.meaning(0, "book.part") is not None


SAID = {  # what is said, and of it: the column, what is wrong, the way out
    '("counter",)': (
        15,
        "there is no module 'counter' beside the lecture",
        "beside it stand: tallies, types",
    ),
    '("tallies", "tallies")': (26, "__beside__ names 'tallies' twice", "name it once"),
    '["lecture_03"]': (
        15,
        "'lecture_03' is a lecture itself",
        "move what both need into a module beside them",
    ),
    '("book",)': (15, "the lecture itself has a module 'book'", "give one of them another name"),
    '("types",)': (15, "'types' is a module of Python's own", "give yours another name"),
    '("tallies")': (1, UNREAD, PLACE),
    '("tallies", 3)': (1, UNREAD, PLACE),
    'tuple(["tallies"])': (1, UNREAD, PLACE),
    "NAMES": (1, UNREAD, PLACE),
}


@pytest.mark.parametrize("said", SAID)
def test_what_cannot_be_meant_is_said_with_its_place(tmp_path: Path, said: str) -> None:
    made = alone(tmp_path, f"__beside__ = {said}\ndef main(): pass\n", tallies="", lecture_03="", types="")
    column, what, way_out = SAID[said]
    with pytest.raises(UnusableLecture) as caught:
        parse.read(made)
    mark = " " * (column + 3) + "^"
    assert str(caught.value) == f"book.py:1:{column}: {what}\n    __beside__ = {said}\n{mark}\n    {way_out}"


def test_a_second_statement_and_one_in_a_block_are_refused(tmp_path: Path) -> None:
    text = '__beside__ = ("tallies",)\nif True:\n    __beside__ = ()\n__beside__ += ()\ndef main(): pass\n'
    with pytest.raises(UnusableLecture) as caught:
        parse.read(alone(tmp_path, text, tallies=""))
    assert re.findall(r"^book\.py:\d+:\d+", str(caught.value), re.MULTILINE) == ["book.py:3:5", "book.py:4:1"]


def test_a_module_of_the_folder_has_its_name_to_itself(tmp_path: Path) -> None:
    made = in_folder(tmp_path, tallies="")
    with pytest.raises(UnusableLecture, match="the lecture itself has a module 'tallies'"):
        parse.read(made)


def test_what_is_wrong_with_its_text_is_said_with_its_own_path(tmp_path: Path) -> None:
    made = alone(tmp_path, SECTION, tallies="def product(:\n")
    with pytest.raises(UnusableLecture, match=r"^tallies\.py:1:13: syntax error: invalid syntax"):
        parse.read(made)


# ------------------------------------------------------------------------------- the run


def test_it_is_recorded_shown_linked_and_entered_under_its_own_lines(tmp_path: Path) -> None:
    record = run(alone(tmp_path))
    assert [it.path for it in record.sources] == ["book.py", "tallies.py"]
    [definition] = record.definitions
    assert (definition.key, definition.file, definition.first) == ("tallies.product", 1, 6)
    problems: list[Finding] = []
    [body] = page.pages(record, {}, (), problems).values()
    assert problems == []
    assert re.search(r'id="tallies-L8" href="#tallies-L8"', body)
    assert '<p class="lb-link"><a href="#product">product</a></p>' in body
    assert "__beside__" not in body
    [steps] = player.data(record, ()).values()
    assert '["tallies-","tallies.py"]' in steps
    assert record.by_key["part"].calls == ("tallies.product",)


def test_the_notebook_has_what_it_needs_of_it(tmp_path: Path) -> None:
    record = run(alone(tmp_path))
    [text] = ipynb.files(record, modules={"tallies.py": TALLIES}).values()
    assert "def product(n):" in text and "TERMS = 2" in text
    assert "tallies" not in text.partition("# Imports")[2].partition("def product")[0]


def test_a_notebook_says_which_import_it_needs(tmp_path: Path) -> None:
    text = SECTION.replace("from tallies import product", "import tallies").replace(
        "product(", "tallies.product("
    )
    record = run(alone(tmp_path, text.replace("link(product)", "pass")))
    with pytest.raises(UnusableLecture, match="import what you need: from tallies import …"):
        ipynb.files(record)


def test_its_false_assert_fails_the_run_whoever_catches_it(tmp_path: Path) -> None:
    text = SECTION.replace(
        "    link(product)\n", "    try:\n        product(7)\n    except AssertionError:\n        pass\n"
    )
    [said] = failures(process.record_of(in_folder(tmp_path, text)))
    assert said.startswith("tallies.py:8: assert fails: small\n")
    assert "its exception ended nothing" in said


def test_its_exception_and_its_dead_assert_have_their_own_lines(tmp_path: Path) -> None:
    text = TALLIES + "\n\ndef unused(n):\n    assert n\n"
    record = run(alone(tmp_path, SECTION.replace("product(3)", "product(9)"), tallies=text))
    [(_, error)] = record.errors()
    assert [(path, line) for path, line, *_ in error.trace] == [("book.py", 13), ("tallies.py", 8)]
    dead = [it.finding.place for it in unrun(record) if "n" in it.finding.what]
    assert ("tallies.py", 14) in [(it.path, it.line) for it in dead if it]


def test_a_plain_module_that_imports_it_gets_the_lectures_own(tmp_path: Path) -> None:
    text = SECTION.replace(
        "from tallies import product", "import tallies, plain\nfrom tallies import product"
    )
    text = text.replace("    link(product)", "    assert plain.tallies is tallies, 'one module'")
    made = in_folder(tmp_path, text)
    (tmp_path / "plain.py").write_text("import tallies\n")
    assert {c.verdict for _, c in run(made).claims()} == {"holds"}


def test_plain_python_runs_the_lecture_as_ever(tmp_path: Path) -> None:
    made = in_folder(tmp_path)
    (made / "__main__.py").write_text("from . import main\nmain()\n")
    done = plainly(made)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_link_to_a_plain_module_says_how_to_take_it_in(tmp_path: Path) -> None:
    text = SECTION.replace("__beside__", "beside")
    problems: list[Finding] = []
    made = run(alone(tmp_path, text))
    assert [*made.errors()] == []
    page.pages(made, {}, (), problems)
    assert str(problems[0]) == (
        "book.py:12:5: no page shows a section, helper, class or line 'product' to link to\n"
        "    link(product)\n    ^\n"
        "    link to a function or class that this lecture defines, without @hide, or name its module in __beside__"
    )


# ------------------------------------------------------------------------ named like one of Python's


@pytest.mark.parametrize("name", ["calendar", "random", "types", "queue", "fractions", "torch", "rich"])
def test_a_module_beside_that_is_named_like_one_that_is_there_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("MINE = 1\n", encoding="utf-8")
    text = f"import {name}\ndef main():\n    one()\ndef one():\n    assert getattr({name}, 'MINE', 5) == 5\n"
    lecture = tmp_path / "lecture_x.py"
    lecture.write_text(text, encoding="utf-8")
    said = (
        f"lecture_x.py:1:1: {name}.py beside the lecture is named like a module that is there already [namesake]\n"
        f"    import {name}\n    ^\n    give yours another name"
    )
    # A process that draws on a terminal has imported more: rich, and what that imports.
    for listener in (
        "",
        *(["litbook.terminal.transcript:quiet"] if name in ("rich", "random", "queue") else []),
    ):
        with pytest.raises(LitbookError) as refused:
            process.record_of(lecture, listener=listener)
        assert str(refused.value).endswith(said) and refused.value.exit_status == 2
    lecture.write_text(text.replace(f"import {name}", "import others"), encoding="utf-8")
    (tmp_path / "others.py").write_text(f"from {name} import MINE\n", encoding="utf-8")
    with pytest.raises(UnusableLecture, match=f"{name}.py beside the lecture is named like"):
        run(lecture)


def test_a_module_of_that_name_that_nobody_imports_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "test.py").write_text("", encoding="utf-8")
    lecture = tmp_path / "lecture_x.py"
    lecture.write_text("def main():\n    one()\ndef one():\n    assert len('a') == 1\n", encoding="utf-8")
    assert failures(run(lecture)) == []
