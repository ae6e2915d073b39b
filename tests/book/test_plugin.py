"""The plugin in a book of its own: two lines of `mkdocs.yml` suffice, options choose, a wrong one is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import REPO, section

BOOK = """\
site_name: A book
theme: {name: material}
plugins:
  - search
  - litbook
"""
BACKED = section('note("Adds.")\ntwo = 1 + 1  # @inspect two\nassert two == 2, "it holds"').replace(
    "One.", "Sums."
)
UNBACKED = BACKED.replace("Adds.", "Adds 17.")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of one lecture, with nothing in `mkdocs.yml` that is not needed."""
    (tmp_path / "lectures").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n<!-- claims -->\n")
    (tmp_path / "docs" / "about.md").write_text("# About\n")
    (tmp_path / "lectures" / "lecture_01.py").write_text(BACKED)
    (tmp_path / "mkdocs.yml").write_text(BOOK)
    return tmp_path


def built(book: Path, *options: str, config: str = BOOK) -> subprocess.CompletedProcess[str]:
    """What a strict build of the book says, with these lines below `litbook:`."""
    given = "".join(f"      {line}\n" for line in options)
    (book / "mkdocs.yml").write_text(config.replace("litbook\n", f"litbook:\n{given}") if options else config)
    return subprocess.run(
        [sys.executable, "-P", "-m", "mkdocs", "build", "--strict"],
        cwd=book, capture_output=True, text=True, timeout=200, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPO / "tools")},
    )  # fmt: skip


def page(book: Path, place: str = "lectures/lecture_01/") -> str:
    return (book / "site" / place / "index.html").read_text(encoding="utf-8")


def test_a_book_that_names_the_plugin_and_nothing_else_has_its_pages_dressed(book: Path) -> None:
    done = built(book)
    assert done.returncode == 0, done.stderr
    text = page(book)
    for name in (
        "litbook.css",
        "player.css",
        "player.js",
        "answers.js",
        "folder.js",
        "copy.js",
    ):
        assert f"assets/litbook/{name}" in text
    assert text.count('defer src="../../assets/litbook/') + text.count("defer></script>") >= 3
    assert "fonts.googleapis.com" not in text, "no page asks elsewhere"
    assert "it holds" in text
    start = page(book, ".")
    assert start.count("1 claim, it holds") == 1, "counted once"
    assert start.index('href="about/"') < start.index('href="lectures/"'), "without a nav there is one"
    assert "notebooks" not in start, "which shows no notebook"


def test_options_choose_which_pages_there_are(book: Path) -> None:
    done = built(
        book, "ledger: false", "misbeliefs: false", "devices: false", "notebooks: false", "title: Parts"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(it.name for it in (book / "site" / "lectures").iterdir()) == [
        "claims.json",
        "claims.svg",
        "index.html",
        "lecture_01",
    ]
    assert not (book / "site" / "lectures" / "lecture_01" / "notebooks").exists()
    assert "Parts" in page(book, ".") and "lectures/ledger" not in page(book, ".")


def test_a_bibliography_that_is_named_has_to_be_there(book: Path) -> None:
    done = built(book, "bibliography: refs.bib")
    assert done.returncode == 1
    assert "/refs.bib does not exist [bibliography]\n    [@key] cites an entry of this file" in done.stderr


def test_lectures_bibliography_and_docs_may_lie_elsewhere(book: Path) -> None:
    (book / "lectures").rename(book / "chapters")
    (book / "docs").rename(book / "pages")
    (book / "sources.bib").write_text("@misc{sum, title={Sums}, year=2020}")
    cited = BACKED.replace("Adds.", "Adds [@sum].")
    (book / "chapters" / "lecture_01.py").write_text(cited)
    config = f"docs_dir: pages\n{BOOK}"
    done = built(book, "lectures: chapters", "bibliography: sources.bib", config=config)
    assert done.returncode == 0, done.stderr
    assert "Sums" in page(book)
    assert not (book / "docs").exists()


@pytest.mark.parametrize(
    ("option", "status", "said"),
    [("error", 1, "1 problem in the lectures"), ("warn", 0, "unbacked: the number '17'"), ("off", 0, "")],
)
def test_an_unbacked_number_is_as_severe_as_the_author_says(
    book: Path, option: str, status: int, said: str
) -> None:
    (book / "lectures" / "lecture_01.py").write_text(UNBACKED)
    done = built(book, f"unbacked: {option}")  # in YAML a bare `off` is False
    assert done.returncode == status, done.stderr
    assert said in done.stdout + done.stderr
    assert ("unbacked: the number" in done.stderr) is (option != "off")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("ledgr: true", "Plugin 'litbook' option 'ledgr': no option named 'ledgr'; did you mean 'ledger'?"),
        ("ledger: 3", "Plugin 'litbook' option 'ledger': Expected type: <class 'bool'> but received"),
        ("unbacked: maybe", "Plugin 'litbook' option 'unbacked': Expected one of: ('error', 'warn', 'off')"),
    ],
)
def test_a_wrong_option_is_named(book: Path, option: str, said: str) -> None:
    done = built(book, option)
    assert done.returncode == 1
    assert said in done.stderr


def test_another_theme_is_a_warning_with_the_way_out(book: Path) -> None:
    done = built(book, config=BOOK.replace("{name: material}", "{name: mkdocs}"))
    assert done.returncode == 1
    assert (
        "the theme is mkdocs: the lectures' pages are made for Material\n    theme: {name: material}"
        in done.stderr
    )


def test_an_authors_own_settings_stay(book: Path) -> None:
    (book / "docs" / "own.css").write_text("p {}")
    own = "extra_css: [own.css]\nmarkdown_extensions: [{toc: {permalink: true}}]\n"
    done = built(book, config=BOOK + own)
    assert done.returncode == 0, done.stderr
    assert 'class="headerlink"' in page(book)
    assert page(book).index("litbook/litbook.css") < page(book).index("own.css")


def test_two_lectures_of_one_name_end_the_build_before_one_runs(book: Path) -> None:
    (book / "lectures" / "lecture_01").mkdir()
    (book / "lectures" / "lecture_01" / "__init__.py").write_text(BACKED)
    done = built(book)
    assert done.returncode == 1
    both = "two lectures have one name: lectures/lecture_01.py and lectures/lecture_01/"
    assert (done.stdout + done.stderr).strip() == f"{both}\n    rename one of them"
    assert not (book / "docs" / "lectures").exists()


def test_a_build_that_takes_its_time_says_what_it_is_at(book: Path) -> None:
    (book / "lectures" / "lecture_01.py").write_text(
        BACKED.replace("\n\n", "\nimport time\n\n", 1) + "\n\ntime.sleep(1.5)\n"
    )
    quick = (
        "from litbook.site import plugin; plugin.TELLS = 0.3; from mkdocs.__main__ import cli; cli(['build'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", quick], cwd=book, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"INFO +-  \d s: lecture_01\.py runs, lecture 1 of 1\n", done.stderr), done.stderr
