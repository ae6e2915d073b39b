"""A book from nothing: `litbook new`, and every command in what it leaves; also where no torch is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.running import LITBOOK, REPO, section

from litbook import version as litbook_version
from litbook.site import scaffold
from litbook.site.pages import fill_nav

EXTRA = ("torch", "numpy", "einops", "jaxtyping", "matplotlib")
USES = re.compile(r"uses: (\S+@\w{40})")


def litbook(folder: Path, *words: str, without: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What `litbook WORDS` says in the folder; modules in `without` hide installed ones."""
    hidden = [str(without)] if without else []
    path = os.pathsep.join([*hidden, str(REPO / "tools")])
    return subprocess.run(
        [*LITBOOK, *words],
        cwd=folder, capture_output=True, text=True, timeout=200, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": path},
    )  # fmt: skip


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose modules say that the libraries of the extra are not installed."""
    folder = tmp_path_factory.mktemp("without")
    for name in EXTRA:
        (folder / name).mkdir()
        text = f"raise ModuleNotFoundError(\"No module named '{name}'\", name={name!r})\n"
        (folder / name / "__init__.py").write_text(text)
    return folder


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A new book, in a folder with spaces and umlauts, and without git."""
    scaffold.begin(tmp_path / "Mein schönes Buch")
    return tmp_path / "Mein schönes Buch"


def files(folder: Path) -> list[str]:
    return sorted(it.relative_to(folder).as_posix() for it in folder.rglob("*") if it.is_file())


def test_a_new_book_is_its_files_and_the_next_command(tmp_path: Path) -> None:
    done = litbook(tmp_path, "new", "my book")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(
        "\nTo see it, and each change when you save it:\n    cd 'my book' && litbook serve\n"
    )
    assert files(tmp_path / "my book") == sorted(scaffold.FILES)
    config = (tmp_path / "my book" / "mkdocs.yml").read_text()
    assert config.splitlines() == [
        'site_name: "my book"',
        "theme: {name: material}",
        "plugins: [search, litbook]",
    ]


def test_a_folder_that_is_not_empty_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d", "e"):
        (tmp_path / "full" / name).mkdir(parents=True)
    done = litbook(tmp_path, "new", "full")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "litbook: full is not empty, and nothing was written: it holds a, b, c and 2 more\n    name another folder\n"
    )
    assert files(tmp_path) == []
    (tmp_path / "file").touch()
    done = litbook(tmp_path, "new", "file")
    assert (done.returncode, done.stderr) == (
        2,
        "litbook: no book can be begun in file: Not a directory\n    a file stands where a folder belongs: move it away\n",
    )


def test_an_empty_folder_that_is_there_will_do(tmp_path: Path) -> None:
    done = litbook(tmp_path, "new", ".")
    assert done.returncode == 0
    assert done.stdout.endswith(":\n    litbook serve\n"), "one is there already"


def test_every_command_works_in_a_new_book(book: Path) -> None:
    done = litbook(book, "run", "lecture_01")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n3 claims hold, 0 fail, 0 not run\n")
    assert litbook(book, "list").stdout == "lecture_01  Lecture 01: what a float keeps of a decimal\n"
    done = litbook(book, "check")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    done = litbook(book, "record")
    assert done.returncode == 0 and "recorded in" in done.stdout
    assert litbook(book / "docs", "build").returncode == 0
    page = (book / "site" / "lectures" / "lecture_01" / "index.html").read_text()
    assert "Goldberg" in page and "the roundings do not cancel" in page
    assert "3 claims, all hold" in (book / "site" / "index.html").read_text()


def test_git_ignores_what_a_build_writes(book: Path) -> None:
    before = files(book)
    assert litbook(book, "build").returncode == 0
    subprocess.run(["git", "init", "--quiet"], cwd=book, check=True)
    asked = ["git", "ls-files", "--others", "--exclude-standard"]
    done = subprocess.run(asked, cwd=book, capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == before


def test_the_workflow_of_a_new_book_uses_the_actions_of_this_one(book: Path) -> None:
    ours = set(USES.findall((REPO / ".github" / "workflows" / "site.yml").read_text()))
    its = USES.findall((book / ".github" / "workflows" / "pages.yml").read_text())
    assert len(its) == 4 and set(its) <= ours


COMMIT = "0123456789" * 4
LITBOOK_AT = re.compile(r"^litbook.*$", re.MULTILINE)


@pytest.mark.parametrize(
    "remote, pushed, place",
    [
        ("https://example.org/o/book.git", True, f"git+https://example.org/o/book.git@{COMMIT}"),
        ("git@example.org:o/book.git", True, f"git+https://example.org/o/book.git@{COMMIT}"),
        ("ssh://git@example.org/o/book", True, f"git+https://example.org/o/book@{COMMIT}"),
        ("https://name:secret@example.org/o/book", True, f"git+https://example.org/o/book@{COMMIT}"),
        ("https://example.org/o/book.git", False, ""),
        ("/srv/git/book", True, ""),
        ("", True, ""),
    ],
)
def test_a_book_needs_the_litbook_that_began_it_from_where_its_clone_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: str, pushed: bool, place: str
) -> None:
    said = {"rev-parse": COMMIT, "remote": remote, "branch": "  origin/main" if pushed else ""}
    monkeypatch.setattr(litbook_version, "_git", lambda *words: said[words[0]])
    assert litbook_version.pip_source() == place
    assert litbook_version.pip_source_here("site") == [f"{REPO}[site]"]
    scaffold.begin(tmp_path / "mybook")
    text = (tmp_path / "mybook" / "requirements.txt").read_text()
    assert LITBOOK_AT.findall(text) == [f"litbook[site] @ {place or '${LITBOOK}'}"]
    assert ("git+https://HOST/OWNER/REPOSITORY@COMMIT" in text) == (not place)
    version = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]["version"]
    assert f"# litbook {version} began this book." in text
    assert "secret" not in text


@pytest.mark.parametrize(
    "note, here, elsewhere",
    [
        ({"url": "https://h.org/o/b", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, f"litbook[site] @ git+https://h.org/o/b@{COMMIT}", f"git+https://h.org/o/b@{COMMIT}"),
        ({"url": "file:///a%20clone", "dir_info": {}}, "/a clone[site]", ""),
        ({"url": "file:///dist/litbook-1.0-py3-none-any.whl", "archive_info": {}}, "/dist/litbook-1.0-py3-none-any.whl[site]", ""),
        (None, "mkdocs<2,>=1.6 nh3", ""),
    ],
    ids=["a repository", "a folder", "a file", "an index"],
)  # fmt: skip
def test_an_installed_litbook_is_installed_again_from_where_pip_had_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: dict[str, object] | None, here: str, elsewhere: str
) -> None:
    (tmp_path / "litbook-1.0.dist-info").mkdir()
    (tmp_path / "litbook-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: litbook\nVersion: 1.0\nRequires-Dist: rich\nRequires-Dist: numpy; extra == 'torch'\n"
        "Requires-Dist: mkdocs<2,>=1.6; extra == 'site'\nRequires-Dist: nh3; extra == 'site'\n"
    )
    if note:
        (tmp_path / "litbook-1.0.dist-info" / "direct_url.json").write_text(json.dumps(note))
    monkeypatch.setattr(litbook_version, "PROJECT", tmp_path / "none")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert (
        " ".join(litbook_version.pip_source_here("site")),
        litbook_version.pip_source(),
        litbook_version.version(),
    ) == (here, elsewhere, "1.0")


@pytest.mark.parametrize("place", ["", "git+https://example.org/o/book@0123"])
def test_the_workflow_installs_what_the_book_lists_and_asks_where_litbook_is(
    book: Path, tmp_path: Path, place: str
) -> None:
    workflow = yaml.safe_load((book / ".github" / "workflows" / "pages.yml").read_text())
    assert workflow["env"] == {"LITBOOK": "${{ vars.LITBOOK }}"}
    steps = workflow["jobs"]["build"]["steps"]
    (python,) = (it["with"]["python-version"] for it in steps if "setup-python" in it.get("uses", ""))
    assert python == ".".join(map(str, sys.version_info[:2])), "that of the recordings"
    install, build, annotate = (it["run"] for it in steps if "run" in it)
    assert (build, annotate) == ("litbook build", "litbook check --format github")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pip").write_text("#!/bin/sh\necho pip $*\n")
    (tmp_path / "bin" / "pip").chmod(0o755)
    done = subprocess.run(
        ["sh", "-ec", install], cwd=book, capture_output=True, text=True, check=False,
        env={**os.environ, "LITBOOK": place, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
    )  # fmt: skip
    if place:
        assert (done.returncode, done.stdout) == (0, "pip install -r requirements.txt\n")
    else:
        assert (done.returncode != 0, done.stdout) == (True, "")
        assert "LITBOOK: requirements.txt says what to set" in done.stderr


@pytest.mark.parametrize(
    "imported, listed, way_out",
    [
        ("nosuchlib", "", "pip install nosuchlib\n        and list it in requirements.txt, from which others install"),
        ("skimage.io", "", "pip install scikit-image\n        and list it in requirements.txt, from which others install"),
        ("nosuch_lib", "Nosuch.Lib >= 2", "requirements.txt lists it: pip install -r requirements.txt"),
        ("shopp", "", "did you mean shop, which lies beside the lecture?"),
    ],
)  # fmt: skip
def test_an_import_that_fails_is_said_once_and_contradicts_no_recording(
    book: Path, imported: str, listed: str, way_out: str
) -> None:
    (book / "lectures" / "shop.py").write_text("X = 1\n")
    lecture = book / "lectures" / "lecture_01.py"
    assert litbook(book, "record").returncode == 0
    with (book / "requirements.txt").open("a") as file:
        file.write(f"{listed}\n")
    lecture.write_text(lecture.read_text().replace("\n\n", f"\n\nimport {imported}\n", 1))
    name = imported.partition(".")[0]
    said = f"lectures/lecture_01.py:3: ModuleNotFoundError: No module named '{name}' [raised]\n        {way_out}\n    import {imported}\n"
    done = litbook(book, "run", "lecture_01", "--quiet")
    assert done.returncode == 1
    assert done.stdout == f"{said}\n0 claims hold, 0 fail, 0 not run, 3 were not reached; 1 error\n"
    done = litbook(book, "build")
    assert done.returncode == 1
    printed = done.stderr + done.stdout
    assert said in printed and "\n1 problem in the lectures:\n" in printed
    assert "approve" not in printed and "is not what was recorded" not in printed


def test_what_several_sections_import_and_is_missing_is_said_once(book: Path) -> None:
    text = "".join(f'def {n}():\n    "{n.title()}."\n    import nosuchlib\n\n\n' for n in ("one", "two"))
    (book / "lectures" / "lecture_01.py").write_text(f"def main():\n    one()\n    two()\n\n\n{text}")
    done = litbook(book, "run", "lecture_01", "--quiet")
    assert done.stdout.count("No module named") == 1
    assert "    import nosuchlib\n    and at lectures/lecture_01.py:13\n" in done.stdout


def test_the_versions_of_all_that_a_lecture_imports_are_recorded(book: Path) -> None:
    (book / "lectures" / "shop.py").write_text("import json, yaml\n")
    text = section("import numpy, shop\nx = numpy.ones(2)\nassert x.sum() == 2")
    (book / "lectures" / "lecture_01.py").write_text(text)
    assert litbook(book, "run", "lecture_01", "--out", "record.json").returncode == 0
    versions = json.loads((book / "record.json").read_text())["environment"]["versions"]
    assert {name: bool(version) for name, version in versions.items()} == {"PyYAML": True, "numpy": True}


# ---------------------------------------------------------------------------- without the extra

ARRAYS = section('text = ",".join(map(str, range(3)))  # @inspect text\nassert text == "0,1,2", "in order"')
CUDA = '\n\n@requires("cuda")\ndef two():\n    "Two."\n    assert 1 + 1 == 2, "there"\n'
PLAIN = ARRAYS.replace("    one()\n", "    one()\n    two()\n", 1) + CUDA


def test_a_book_without_torch_runs_records_checks_and_builds(book: Path, without: Path) -> None:
    (book / "lectures" / "lecture_02.py").write_text(PLAIN)
    done = litbook(book, "run", "lecture_02", without=without)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n1 claim holds, 0 fail, 1 not run\n")
    for words in (
        ["record"],
        ["check", "lecture_02", "--select", "mutant"],
        ["check", "lecture_01", "--select", "unnoticed"],
        ["build"],
    ):
        done = litbook(book, *words, without=without)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "in order" in (book / "site" / "lectures" / "lecture_02" / "index.html").read_text()


@pytest.mark.parametrize("place", ["at the top", "in a section"])
def test_a_lecture_that_imports_torch_where_it_is_missing_says_so(
    book: Path, without: Path, place: str
) -> None:
    text = section("x = 1", "import torch") if place == "at the top" else section("import torch\nx = 1")
    (book / "lectures" / "lecture_02.py").write_text(text)
    done = litbook(book, "run", "lecture_02", "--quiet", without=without)
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'torch' [raised]\n        pip install torch\n" in done.stdout


def test_the_extra_is_what_the_error_says_it_brings() -> None:
    from litbook.record.model import LIBRARIES as BRINGS

    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    assert {re.split(r"\W", it)[0] for it in project["optional-dependencies"]["torch"]} == {*BRINGS}
    # markdown-it-py comes with rich anyway: it is named because notes are read by it.
    needed = {re.split(r"[<>=!~ ]", it)[0] for it in project["dependencies"]}
    assert needed == {"click", "markdown-it-py", "msgspec", "pyyaml", "rich"}


# ---------------------------------------------------------------------------- outside a book


@pytest.mark.parametrize(
    "words", [["list"], ["build"], ["serve"], ["record"], ["check"], ["run", "lecture_01"]]
)
def test_outside_a_book_a_command_says_so_and_how_to_begin_one(tmp_path: Path, words: list[str]) -> None:
    done = litbook(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "litbook: this is no book: there is no mkdocs.yml here or in a folder above\n"
        "    go into a book, or begin one: litbook new DIR\n"
        "    a lecture can also be named by its path: litbook run path/to/lecture.py\n"
    )


def test_outside_a_book_a_lecture_is_found_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "any.py").write_text(ARRAYS)
    assert litbook(tmp_path, "run", "any.py", "--quiet").stdout.endswith("1 claim holds, 0 fail, 0 not run\n")


@pytest.mark.parametrize(
    "command, library",
    [("build", "mkdocs"), ("serve", "mkdocs"), ("pages out", "mkdocs"), ("badge claims.svg", "latex2mathml")],
)
def test_without_a_library_of_the_site_its_extra_is_named(
    book: Path, tmp_path: Path, command: str, library: str
) -> None:
    hides = f"import sys\nsys.modules[{library!r}] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hides)
    done = litbook(book, *command.split(), without=tmp_path)
    assert (done.returncode, done.stderr) == (
        2, f"litbook: the library {library} is not installed\n    pip install '{REPO}[site]'\n",
    )  # fmt: skip


def test_the_package_is_a_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "litbook"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(REPO / "tools")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: litbook [OPTIONS] COMMAND")


def test_a_new_lecture_runs_as_plain_python_and_ruff_lets_names_be_that_inspect_reads(book: Path) -> None:
    lecture = book / "lectures" / "lecture_01.py"
    environment = {**os.environ, "PYTHONPATH": str(REPO / "tools")}
    done = subprocess.run(
        [sys.executable, str(lecture)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "A tenth is none: it is rounded" in done.stdout
    text = lecture.read_text(encoding="utf-8")
    lecture.write_text(
        text.replace("    total = 0.25", "    half = 0.5  # @inspect half\n    total = 0.25"),
        encoding="utf-8",
    )
    ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "concise", "."]
    assert subprocess.run(ruff, cwd=book, capture_output=True, text=True, check=False).returncode == 0
    (book / "ruff.toml").write_text("", encoding="utf-8")
    unhelped = subprocess.run(ruff, cwd=book, capture_output=True, text=True, check=False)
    assert "F841" in unhelped.stdout


SITE = """\
site_name: Mine
theme: {name: material}
nav:
  - Home: index.md
plugins:
  - search
"""


def test_beside_a_site_that_is_there_a_lecture_is_added_and_nothing_else_changes(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    before = {
        "mkdocs.yml": SITE,
        "docs/index.md": "# Mine\n",
        ".gitignore": "site/\n",
        "docs/other.md": "# Other\n",
    }
    for name, text in before.items():
        (tmp_path / name).write_text(text)
    done = litbook(tmp_path, "new", ".")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "added:\n    lectures/lecture_01.py\n    lectures/references.bib\n\nTo be written by you:\n"
        "    mkdocs.yml: `- litbook` below `plugins:`, behind `- search`\n"
        "    mkdocs.yml: `- Lectures: []` in `nav:`, where the lectures' pages are to come\n"
        f"    requirements.txt: litbook[site] @ {litbook_version.pip_source() or '${LITBOOK}'}, "
        "and each package that a lecture imports\n"
        "    .gitignore: /docs/lectures/\n    .gitignore: /docs/assets/litbook/\n    .gitignore: .litbook/\n"
        "    .gitignore: /lectures/recordings/.*\n"
    )
    assert {name: (tmp_path / name).read_text() for name in before} == before
    assert files(tmp_path) == sorted([*before, "lectures/lecture_01.py", "lectures/references.bib"])

    (tmp_path / "mkdocs.yml").write_text(SITE + "  - litbook\n")  # the menu is forgotten
    done = litbook(tmp_path, "build")
    assert done.returncode == 1
    assert "no menu names lecture_01\n    write into nav, in mkdocs.yml: - Lectures: []" in done.stderr
    course = "  - Course:\n      - Plan: other.md\n      - Lectures: []\nplugins:"
    menu = SITE.replace("plugins:", course) + "  - litbook\n"
    (tmp_path / "mkdocs.yml").write_text(menu)
    ignored = "".join(f"{line.split(': ')[1]}\n" for line in done_lines(litbook(tmp_path, "new", ".").stdout))
    (tmp_path / ".gitignore").write_text(before[".gitignore"] + ignored)
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["mkdocs"]\n')
    assert "    pyproject.toml: litbook[site] @ " in litbook(tmp_path, "new", ".").stdout
    (tmp_path / "requirements.txt").write_text("mkdocs\nlitbook[site] @ file:///somewhere\n")
    assert litbook(tmp_path, "new", ".").stdout == "nothing is missing beside the lectures there are\n"
    done = litbook(tmp_path, "build")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "lectures" / "lecture_01" / "index.html").is_file()
    assert 'href="lectures/lecture_01/"' in (tmp_path / "site" / "index.html").read_text()


@pytest.mark.parametrize("words", [["new", "."], ["build"], ["run", "lecture_01"]])
def test_the_other_name_of_mkdocs_configuration_is_told(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "mkdocs.yaml").write_text(SITE)
    done = litbook(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(
        "\n    its file is called mkdocs.yaml, and litbook reads mkdocs.yml: rename it\n"
    )
    assert files(tmp_path) == ["mkdocs.yaml"]


MENU: list[Any] = [{"Lectures": []}]


@pytest.mark.parametrize(
    ("nav", "filled"),
    [
        (["index.md", *MENU], ["index.md", "here"]),
        ([{"Course": [{"Plan": "plan.md"}, *MENU]}, "end.md"], [{"Course": [{"Plan": "plan.md"}, "here"]}, "end.md"]),
        ([{"A": [{"B": MENU}]}], [{"A": [{"B": ["here"]}]}]),
        ([{"Lectures elsewhere": "https://x"}, {"A": "lectures.md"}], [{"Lectures elsewhere": "https://x"}, {"A": "lectures.md"}]),
        (None, []),
    ],
)  # fmt: skip
def test_the_lectures_come_where_the_menu_has_their_entry_at_any_depth(nav: Any, filled: list[Any]) -> None:
    assert fill_nav(nav, "Lectures", ["here"]) == filled


def done_lines(printed: str) -> list[str]:
    """What is left to be written into .gitignore."""
    return [line.strip() for line in printed.splitlines() if line.strip().startswith(".gitignore")]
