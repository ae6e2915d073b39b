"""Without the packages that may be left out litbook runs, checks and builds a book, and says what it lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import REPO, section, write

from litbook import plugins
from litbook.site import scaffold

BODY = """
class Table:
    def _repr_html_(self):
        return "<table></table>"

    def __repr__(self):
        return "a table"

table = Table()  # @inspect table
assert 1 + 1 == 2, "two"
"""
COMMAND = "import sys; from litbook.cli import litbook; sys.exit(litbook())"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with litbook in it, but none of what is optional."""
    tools = tmp_path_factory.mktemp("core")
    left_out = shutil.ignore_patterns("__pycache__", *plugins.PACKAGES)
    shutil.copytree(REPO / "tools" / "litbook", tools / "litbook", ignore=left_out)
    return tools


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of one small lecture."""
    scaffold.begin(tmp_path / "book")
    shutil.rmtree(tmp_path / "book" / "lectures")
    (tmp_path / "book" / "lectures").mkdir()
    write(tmp_path / "book" / "lectures", section(BODY), "lecture_01.py")
    return tmp_path / "book"


def litbook(core: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What that litbook says in the folder."""
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder, capture_output=True, text=True, timeout=200, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(core)},
    )  # fmt: skip


def missing(package: str) -> str:
    return f"litbook: {plugins.Missing(package)}\n"


def test_the_core_runs_checks_and_builds_a_book(core: Path, book: Path) -> None:
    done = litbook(core, book, "run", "lecture_01")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("1 claim holds, 0 fail, 0 not run\n") and "table = a table" in done.stdout
    done = litbook(core, book, "check", "lecture_01")
    assert (done.returncode, done.stderr) == (0, missing("mutants"))
    assert done.stdout == "lecture_01: nothing; this run: 1 claim holds, 0 fail, 0 not run\n"
    done = litbook(core, book, "build")
    assert done.returncode == 0, done.stderr
    [page] = (book / "site" / "lectures").glob("lecture_01/index.html")
    assert "a table" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("check", ["mutant", "unnoticed"])
def test_a_check_that_is_not_there_says_so(core: Path, book: Path, check: str) -> None:
    done = litbook(core, book, "check", "lecture_01", "--select", check)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", missing("mutants"))
    assert missing("mutants") == (
        "litbook: changes of claims and of code are in the package litbook.mutants, which is not here\n"
        "    install litbook whole, from where you have it\n"
    )


def test_other_tools_words_that_are_not_there_say_so(core: Path, book: Path) -> None:
    done = litbook(core, book, "run", "--words", "edtrace", "lecture_01")
    assert (done.returncode, done.stderr) == (2, missing("edtrace"))
    config = (book / "mkdocs.yml").read_text(encoding="utf-8")
    (book / "mkdocs.yml").write_text(config.replace("litbook]", "litbook: {words: edtrace}]"))
    assert litbook(core, book, "run", "lecture_01").stderr == missing("edtrace")
    assert "litbook.edtrace, which is not here" in litbook(core, book, "build").stderr
