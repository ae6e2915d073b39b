"""`litbook pages DIR`: the book as plain Markdown, from which a generator without the plugin builds the same."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import LITBOOK


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "true"}
    return subprocess.run(words, cwd=folder, env=quiet, capture_output=True, text=True, check=False)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    assert ran(tmp_path, *LITBOOK, "new", "book").returncode == 0
    (tmp_path / "book" / "docs" / "index.md").write_text(
        "# A book\n\n<!-- claims -->\n\n[All](lectures/index.md)\n"
    )
    return tmp_path / "book"


def content(site: Path) -> str:
    """What a lecture's page shows, without what the theme puts around it."""
    text = (site / "lectures" / "lecture_01" / "index.html").read_text(encoding="utf-8")
    return " ".join(re.search(r"<article.*?</article>", text, re.DOTALL)[0].split())  # type: ignore[index]


def test_mkdocs_without_the_plugin_builds_the_same_page_of_it(book: Path) -> None:
    done = ran(book, *LITBOOK, "pages", "../plain")
    assert (done.returncode, done.stdout) == (0, "../plain holds the book as Markdown, with mkdocs.yml\n"), (
        done
    )
    plain = book.parent / "plain"
    assert "plugins" not in (plain / "mkdocs.yml").read_text()
    assert "3 claims" in (plain / "docs" / "index.md").read_text()  # what comes out of the records is there
    assert (plain / "docs" / "lectures" / "lecture_01" / "notebooks" / "index.ipynb").is_file()
    done = ran(plain, sys.executable, "-m", "mkdocs", "build", "--strict")
    assert done.returncode == 0, done.stderr
    assert ran(book, *LITBOOK, "build").returncode == 0
    times = re.compile(r"took .*? on|\d\d:\d\d|[\d.]+ s\b")
    assert times.sub("", content(plain / "site")) == times.sub("", content(book / "site"))


def test_a_folder_that_holds_something_stays_as_it_is_and_a_failing_claim_is_told(book: Path) -> None:
    done = ran(book, *LITBOOK, "pages", "docs")
    assert done.returncode == 2 and "docs is not empty, and nothing was written" in done.stderr
    lecture = book / "lectures" / "lecture_01.py"
    lecture.write_text(lecture.read_text().replace("total == 0.75", "total == 0.5"))
    done = ran(book, *LITBOOK, "pages", "../plain")
    assert done.returncode == 1 and "claim fails: exactly" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("zensical") is None, reason="needs a tool beside: Zensical is not installed"
)
def test_zensical_builds_it_with_its_styles(book: Path) -> None:
    assert ran(book, *LITBOOK, "pages", "../plain").returncode == 0
    plain = book.parent / "plain"
    assert ran(plain, sys.executable, "-m", "zensical", "build").returncode == 0
    text = (plain / "site" / "lectures" / "lecture_01" / "index.html").read_text(encoding="utf-8")
    assert "assets/litbook/litbook.css" in text and 'class="lb-code"' in text
