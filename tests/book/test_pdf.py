"""`litbook pdf FILE.pdf`: the whole book on paper, printed by the browser that is there."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.running import IN_CI, LITBOOK

ASIDE = """
from litbook import aside


@aside
def a_detour():
    \"\"\"A detour by hand.\"\"\"
    note("It stands in the aside.")
    detour = 3
    assert detour == 3, "three"
"""


def ran(folder: Path, *words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "true"}
    env |= {} if path is None else {"PATH": path}
    return subprocess.run(
        [*LITBOOK, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def book(tmp_path: Path) -> Path:
    if importlib.util.find_spec("pypdf") is None:
        pytest.skip("needs a tool beside: pypdf is not installed")
    assert ran(tmp_path, "new", "book").returncode == 0
    lecture = tmp_path / "book" / "lectures" / "lecture_01.py"
    text = lecture.read_text()
    main = text[text.index("def main()") :].partition("\n\n\n")[0]
    guard = text.index('if __name__ == "__main__"')
    lecture.write_text(
        text[:guard].replace(main, f"{main}\n    a_detour()") + ASIDE.strip() + "\n\n\n" + text[guard:]
    )
    return tmp_path / "book"


@pytest.mark.slow
def test_the_book_on_paper_has_contents_with_pages_answers_and_asides(book: Path) -> None:
    from pypdf import PdfReader

    from litbook.site import pdf

    try:
        pdf.browser()
    except pdf.NoBrowser:
        if IN_CI:
            raise
        pytest.skip("needs a browser: no Chromium is here")
    with (book / "docs" / "index.md").open("a", encoding="utf-8") as start:
        start.write('\n<a href="https://…">An address that is none</a> ends no book.\n')
    done = ran(book, "pdf", "../book.pdf")
    assert done.returncode == 0, done.stderr
    file = book.parent / "book.pdf"
    texts = [page.extract_text() for page in PdfReader(file).pages]
    assert done.stdout.endswith(f"../book.pdf has {len(texts)} pages\n")
    entries = re.findall(r"^(.*?\w)\s+(\d+)$", texts[1], re.MULTILINE)
    assert {"A quarter is kept whole, so quarters add up", "A detour by hand"} <= {it[0] for it in entries}
    for title, number in entries:  # each begins where the contents say
        words = "".join(title.split())
        assert words in "".join(texts[int(number) - 1].split()), (title, number)
    whole = "".join("".join(texts).split())
    assert "Itstandsintheaside." in whole and "Eachsumisroundedanew." in whole  # an answer
    assert PdfReader(file).outline

    assert ran(book, "pdf", "../short.pdf", "--asides", "out").returncode == 0
    pages = [page.extract_text() for page in PdfReader(book.parent / "short.pdf").pages]
    short = "".join("".join(pages).split())
    assert "Itstandsintheaside." not in short and "A detour" not in pages[1]
    assert "Eachsumisroundedanew." in short


def test_what_cannot_be_printed_is_said_before_the_build(book: Path) -> None:
    done = ran(book, "pdf", "book.pdf", path="/nowhere")
    assert (done.returncode, done.stderr) == (
        2,
        (
            "litbook: litbook pdf prints with Chromium or Chrome, and no Chromium or Chrome is here\n"
            "    install one, or name one: --browser /path/to/chrome\n"
        ),
    )
    done = ran(book, "pdf", "book.pdf", "--browser", "no-such-browser")
    assert done.returncode == 2 and "--browser no-such-browser: there is no such program" in done.stderr
    done = ran(book, "pdf", "nowhere/book.pdf")
    assert (done.returncode, done.stderr) == (
        2,
        "litbook: nowhere/book.pdf: there is no folder nowhere\n    create it first\n",
    )
    assert not (book / "book.pdf").exists()


def test_a_browser_that_prints_nothing_is_told_and_a_false_claim_prints_nothing(book: Path) -> None:
    done = ran(book, "pdf", "book.pdf", "--browser", "/bin/false")
    assert done.returncode == 2 and "/bin/false printed nothing; it ended with 1" in done.stderr
    lecture = book / "lectures" / "lecture_01.py"
    lecture.write_text(lecture.read_text().replace("total == 0.75", "total == 0.5"))
    done = ran(book, "pdf", "book.pdf", "--browser", "/bin/false")
    assert done.returncode == 1 and "claim fails: exactly" in done.stderr
    assert not (book / "book.pdf").exists()


def test_the_pages_on_paper_are_those_of_the_builds_navigation(tmp_path: Path) -> None:
    from litbook.errors import LitbookError
    from litbook.site import pdf

    built = tmp_path / "menu.json"
    built.write_text(
        '["", "lectures/lecture_01/", "lectures/ledger/", "lectures/lecture_02/a-part/", "about/"]'
    )
    pages = pdf.menu(built, ["lecture_01", "lecture_02"])
    assert pages == ["/", "/lectures/lecture_01/", "/lectures/lecture_02/a-part/", "/about/"]
    with pytest.raises(LitbookError, match="lecture_03 is in no menu of the site, and would be missing"):
        pdf.menu(built, ["lecture_01", "lecture_03"])


def test_a_build_leaves_its_navigation_where_the_theme_prunes_it(book: Path) -> None:
    """The menu of a page has a part of it then."""
    config = book / "mkdocs.yml"
    theme = "theme: {name: material, features: [navigation.prune, navigation.indexes]}"
    config.write_text(config.read_text().replace("theme: {name: material}", theme))
    menu = book / "menu.json"
    env = {**os.environ, "LITBOOK_MENU": str(menu), "NO_MKDOCS_2_WARNING": "true"}
    done = subprocess.run([*LITBOOK, "build"], cwd=book, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"lectures/lecture_01/"' in menu.read_text()
