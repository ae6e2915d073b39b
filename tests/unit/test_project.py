"""Where a book is: its lectures by name and by path, its recordings, the names that people read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running import section, write

from litbook.cli import litbook
from litbook.errors import LitbookError, NotFound
from litbook.project import NoBook, Project, display_path, name_of, recording_of, recordings_of


@pytest.fixture
def book(tmp_path: Path) -> Project:
    """A book of two files and a folder."""
    (tmp_path / "mkdocs.yml").touch()
    folder = tmp_path / "lectures"
    (folder / "lecture_03").mkdir(parents=True)
    write(folder, section("pass"), "lecture_01.py")
    write(folder, section("pass"), "lecture_02b.py")
    write(folder / "lecture_03", section("pass"), "__init__.py")
    write(folder / "lecture_03", "x = 1\n", "models.py")
    write(folder, "FLOPS = 1\n", "hardware.py")
    (folder / "lecture_04").mkdir()  # begun, and empty
    return Project(tmp_path)


def test_a_lecture_is_a_file_or_a_folder_that_begins_with_one(book: Project) -> None:
    assert book.names() == ["lecture_01", "lecture_02b", "lecture_03"]
    assert [path.relative_to(book.folder).as_posix() for path in book.lectures()] == [
        "lecture_01.py",
        "lecture_02b.py",
        "lecture_03",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "import lecture_05_words",
        "import os, lecture_05_words as words",
        "    from lecture_05_words import told",
        "from .lecture_05_words import told",
        "from . import lecture_05_words",
    ],
)
@pytest.mark.parametrize("importer", ["lecture_01.py", "lecture_03/models.py"])
def test_a_lecture_without_main_that_another_one_imports_is_a_module(
    book: Project, line: str, importer: str
) -> None:
    words = write(book.folder, "told = 1\n", "lecture_05_words.py")
    write(book.folder, "# import lecture_05_words\n" + section("pass"), importer)
    assert "lecture_05_words" in book.names(), "nobody imports it: it is a lecture, and a broken one"
    write(book.folder, f"if True:\n    pass\n{line}\n" + section("pass"), importer)
    assert book.names() == ["lecture_01", "lecture_02b", "lecture_03"]
    with pytest.raises(NotFound):
        book.lecture("lecture_05_words")
    assert book.lecture(str(words)) == words, "whoever names the file hears what it lacks"
    write(book.folder, section("pass"), "lecture_05_words.py")
    assert "lecture_05_words" in book.names(), "with a main() it is a lecture, imported or not"


def test_a_file_and_a_folder_of_one_name_are_refused(book: Project) -> None:
    write(book.folder, section("pass"), "lecture_03.py")
    both = (
        "two lectures have one name: lectures/lecture_03.py and lectures/lecture_03/\n    rename one of them"
    )
    for ask in (book.lectures, book.names, lambda: book.lecture("lecture_03")):
        with pytest.raises(LitbookError) as caught:
            ask()
        assert str(caught.value) == both


ALONE = "\n    what begins with _ is left alone, and so is a module that a lecture imports"
RENAME = "a lecture is called lecture_*.py, or so is its folder: rename it "
THERE = "lectures stand in lectures/ itself: move it there"


@pytest.mark.parametrize(
    "name, way_out",
    [
        ("lecture-b.py", RENAME + "lecture_b.py"),
        ("Lecture_b.py", RENAME + "lecture_b.py"),
        ("LECTURE 5.py", RENAME + "lecture_5.py"),
        ("lecture5.py", RENAME + "lecture_5.py"),
        ("lecture_b.pyw", RENAME + "lecture_b.py"),
        ("lecture.py", RENAME + "lecture_NAME.py"),
        ("week2/lecture_b.py", THERE),
        ("week2/deep/b.py", THERE),
        ("week2/lecture_b/__init__.py", THERE),
        ("lecture_b/main.py", "a lecture that is a folder begins with __init__.py"),
        ("lecture-b/__init__.py", RENAME + "lecture_b"),
    ],
)
def test_what_looks_like_a_lecture_and_is_none_is_named_with_the_way_out(
    book: Project, name: str, way_out: str
) -> None:
    assert book.overlooked_files() == []
    (book.folder / name).parent.mkdir(parents=True, exist_ok=True)
    write(book.folder, section("assert 1 == 2"), name)
    (problem,) = book.overlooked_files()
    folder = name.rpartition("/")[0]
    called = f"{folder}/" if "lecture" in folder else name
    assert str(problem) == (
        f"lectures/{called} looks like a lecture and is none: nothing in it runs\n    {way_out}{ALONE}"
    )
    assert book.names() == ["lecture_01", "lecture_02b", "lecture_03"]


@pytest.mark.parametrize(
    "name, text",
    [
        ("lectures.py", "x = 1\n"),
        ("lecturer.py", "def main():\n    print()\n"),
        ("counting.py", "from litbook import note\n"),
        ("_lecture_draft.py", section("pass")),
        ("_drafts/lecture_b.py", section("pass")),
        (".hidden/lecture_b.py", section("pass")),
        ("recordings/lecture_b.py", section("pass")),
        ("lecture_03/lecture-b.py", section("pass")),
        ("lecture_05/notes.txt", "begun\n"),
        ("lecture-notes.md", "# Notes\n"),
        ("lecture_05.ipynb", "{}"),
    ],
)
def test_a_module_a_draft_and_what_is_no_python_are_left_alone(book: Project, name: str, text: str) -> None:
    (book.folder / name).parent.mkdir(parents=True, exist_ok=True)
    write(book.folder, text, name)
    assert book.overlooked_files() == []


def test_asserts_in_a_folder_within_a_lectures_folder_are_named(
    book: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run as plain Python: `litbook list`, `check` and a strict build say so."""
    inner = book.folder / "lecture_03" / "tools"
    (inner / "deep").mkdir(parents=True)
    (book.folder / "lecture_03" / "_kept").mkdir()
    for at, text in {
        "tools/plain.py": "def checked(x):\n    return x\n",
        "tools/told.py": "TEXT = 'we assert'  # assert\n",
        "_kept/check.py": "assert 1 == 2\n",
    }.items():
        (book.folder / "lecture_03" / at).write_text(text)
    assert book.overlooked_files() == []
    for name in ("__init__.py", "__main__.py"):  # any other module's asserts are looked at, and theirs
        (inner / "deep" / name).write_text("assert 1 == 2\n")
        (problem,) = book.overlooked_files()
        assert problem.what.startswith(f"lectures/lecture_03/tools/deep/{name} asserts something")
        (inner / "deep" / name).unlink()
    (inner / "deep" / "check.py").write_text("try:\n    assert 1 == 2\nexcept AssertionError:\n    pass\n")
    (problem,) = book.overlooked_files()
    assert str(problem) == (
        "lectures/lecture_03/tools/deep/check.py asserts something, and is no text of lecture_03: it runs as plain"
        " Python, and nobody hears of an assert there that is caught\n"
        "    move it into lectures/lecture_03/ itself\n    what begins with _ is left alone"
    )
    monkeypatch.chdir(book.root)
    litbook(["list"])
    assert str(problem) in capsys.readouterr().err


def test_a_module_may_be_called_like_a_lecture_where_one_imports_it(book: Project) -> None:
    write(book.folder, "told = 1\n", "lecture5.py")
    assert len(book.overlooked_files()) == 1
    write(book.folder / "lecture_03", "from lecture5 import told\n", "models.py")
    assert book.overlooked_files() == []


def test_a_book_without_a_folder_of_lectures_overlooks_none(tmp_path: Path) -> None:
    assert Project(tmp_path).overlooked_files() == []


def test_a_book_without_lectures_says_what_one_is(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").touch()
    assert Project(tmp_path).names() == []
    with pytest.raises(LitbookError) as caught:
        Project(tmp_path).require_names()
    said = "there are no lectures in lectures\n    a lecture is a file called lecture_*.py, or a folder"
    assert str(caught.value) == said


def test_a_lecture_is_found_by_name_and_by_path(book: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = book.folder / "lecture_01.py"
    for name in ("lecture_01", "lecture_01.py", str(expected)):
        assert book.lecture(name) == expected
    for name in ("lecture_03", str(book.folder / "lecture_03"), str(book.folder / "lecture_03/__init__.py")):
        assert book.lecture(name) == book.folder / "lecture_03"
    monkeypatch.chdir(book.root)
    assert book.lecture("lectures/lecture_01.py").resolve() == expected
    other = write(book.root, section("pass"), "lecture_01.py")
    assert book.lecture("lecture_01.py").resolve() == other  # a file that is here comes first
    assert book.lecture("lecture_01") == expected
    odd = book.root / "no_suffix"
    odd.write_text(section("pass"))
    assert book.lecture("./no_suffix") == Path("no_suffix")
    for name in ("no_suffix", "hardware"):  # a bare name is a lecture of the book
        with pytest.raises(NotFound):
            book.lecture(name)


def test_a_lecture_that_is_not_there_names_those_there_are(book: Project) -> None:
    with pytest.raises(NotFound) as caught:
        book.lecture("lecture_02")
    assert str(caught.value) == (
        "no lecture named 'lecture_02'; did you mean 'lecture_02b'?\n"
        "    there are: lecture_01, lecture_02b, lecture_03"
    )


def test_a_file_of_a_lecture_in_several_names_the_lecture(book: Project) -> None:
    file = book.folder / "lecture_03" / "models.py"
    with pytest.raises(LitbookError) as caught:
        book.lecture(str(file))
    assert (
        str(caught.value) == f"{file} is a file of a lecture in several\n    name its folder: {file.parent}"
    )


def test_a_folder_without_its_first_file_says_so(book: Project) -> None:
    (book.folder / "lecture_09").mkdir()
    (book.folder / "lecture_09" / "parts.py").touch()
    with pytest.raises(NotFound) as caught:
        book.lecture("lecture_09")
    assert "no lecture named 'lecture_09'\n    a lecture that is a folder begins with __init__.py\n" in str(
        caught.value
    )


def test_a_folder_that_is_no_lecture_names_its_files(book: Project) -> None:
    with pytest.raises(NotFound, match=r"there are: .*hardware.py, .*lecture_01.py"):
        book.lecture(str(book.folder))


def test_a_book_is_found_from_anywhere_in_it_and_nowhere_else(book: Project) -> None:
    assert Project.find(book.folder / "lecture_03" / "models.py") == book
    with pytest.raises(NoBook) as caught:
        Project.find(Path("/"))
    assert str(caught.value) == (
        "this is no book: there is no mkdocs.yml here or in a folder above\n"
        "    go into a book, or begin one: litbook new DIR\n"
        "    a lecture can also be named by its path: litbook run path/to/lecture.py"
    )


OPTIONS = """
docs_dir: pages
theme: {name: material, x: !ENV [X, 1], y: !!python/name:material.emoji.twemoji }
plugins:
  - search
  - litbook: {lectures: chapters, bibliography: sources.bib}
"""


def test_a_books_folders_are_those_that_its_configuration_names(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text(OPTIONS)
    book = Project.find(tmp_path)
    assert (book.folder, book.docs) == (tmp_path / "chapters", tmp_path / "pages")
    assert book.bibliography == tmp_path / "sources.bib"
    (tmp_path / "mkdocs.yml").write_text("plugins: {litbook: {lectures: chapters}}\n")
    assert Project.find(tmp_path).bibliography == tmp_path / "chapters" / "references.bib"
    (tmp_path / "mkdocs.yml").write_text("plugins: [")
    with pytest.raises(LitbookError, match=r"^mkdocs.yml cannot be read: while parsing a flow"):
        Project.find(tmp_path)


def test_a_folder_of_docs_may_lie_elsewhere(book: Project) -> None:
    assert book.pages == book.root / "docs" / "lectures"
    assert Project(book.root, docs_at=Path("/elsewhere")).assets == Path("/elsewhere/assets/litbook")


def test_recordings_lie_beside_the_lecture_under_its_name_and_device(book: Project) -> None:
    file, folder = book.lecture("lecture_01"), book.lecture("lecture_03")
    assert recording_of(file, "cpu") == book.folder / "recordings" / "lecture_01.cpu.json"
    assert recording_of(folder, "nvidia-h200") == book.folder / "recordings" / "lecture_03.nvidia-h200.json"
    assert recordings_of(folder) == []
    for name in ("lecture_03.cpu.json", "lecture_03.h100.json", "lecture_030.cpu.json"):
        (book.folder / "recordings").mkdir(exist_ok=True)
        (book.folder / "recordings" / name).touch()
    assert [it.name for it in recordings_of(folder)] == ["lecture_03.cpu.json", "lecture_03.h100.json"]
    assert (name_of(file), name_of(folder)) == ("lecture_01", "lecture_03")


def test_paths_are_named_from_the_root_of_the_project(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert display_path(tmp_path / "lectures" / "lecture_02.py") == "lectures/lecture_02.py"
    assert display_path(Path("/lecture_02.py")) == "lecture_02.py"
