"""Workbooks on the site: mkdocs-jupyter draws them below their lecture, where a book has that plugin."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from tests.running import REPO, section

DRAWN = '  - mkdocs-jupyter: {ignore: ["*.md", "*.py"]}\n'
BOOK = "site_name: A book\ntheme: {name: material}\nplugins:\n  - search\n  - litbook\n"
ASKED = section(
    'question("How many if $a_1 < b$?", answer=1 + 1, check=2, hint="Not $b$.", why="It is $c^2$.")\n'
    'question("And then?", answer=3, check=1 + 2, unit="B")'
)
SILENT = section('two = 1 + 1\nassert two == 2, "it holds"')
OWN = nbformat.v4.new_notebook(
    cells=[
        nbformat.v4.new_markdown_cell("# Mine\n\nCosts $a_1 < b$.", id="a"),
        nbformat.v4.new_code_cell("20 + 22", id="b"),
    ]
)


def build(book: Path, config: str, *words: str) -> subprocess.CompletedProcess[str]:
    (book / "mkdocs.yml").write_text(config)
    return subprocess.run(
        [sys.executable, "-P", "-m", *(words or ("mkdocs", "build", "--strict"))],
        cwd=book, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPO / "tools")},
    )  # fmt: skip


def written(book: Path) -> Path:
    for name, text in {
        "lectures/lecture_01.py": ASKED,
        "lectures/lecture_02.py": SILENT,
        "docs/index.md": "# Start\n",
        "docs/own.ipynb": nbformat.writes(OWN),
    }.items():
        (book / name).parent.mkdir(exist_ok=True)
        (book / name).write_text(text)
    return book


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    book = written(tmp_path_factory.mktemp("book"))
    done = build(
        book,
        f"site_url: https://book.example/\nextra: {{colab: https://github.com/a/b/blob/c}}\n{BOOK}{DRAWN}",
    )
    assert done.returncode == 0, done.stderr
    return book / "site"


@pytest.fixture(scope="module")
def page(site: Path) -> str:
    return (site / "lectures/lecture_01/workbook/index.html").read_text(encoding="utf-8")


def test_a_workbook_is_a_page_with_its_file(site: Path, page: str) -> None:
    assert re.search(r'<a [^>]*href="workbook.ipynb"[^>]*download="lecture_01-workbook.ipynb"', page)
    assert (
        'href="https://colab.research.google.com/github/a/b/blob/c/lectures/lecture_01/workbook.ipynb"'
        in page
    )
    file = nbformat.read(site / "lectures/lecture_01/workbook/workbook.ipynb", as_version=4)
    link = "(https://book.example/lectures/lecture_01/#one)"
    assert sum(link in cell.source for cell in file.cells) == 2
    assert sum(cell.source.startswith("# @title Helpers") for cell in file.cells) == 1
    assert "HELPERS" not in page, "which a page has no use for"


def test_its_formulas_are_drawn_and_it_asks_for_nothing_elsewhere(page: str) -> None:
    assert page.count("<math") == 2 and "$a_1" not in page and "$b$" not in page
    loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="([^"]*)"', page)
    assert [it for it in loaded if "//" in it and not it.startswith("https://book.example/")] == []
    assert len(page) <= 1_300_000 and len(gzip.compress(page.encode())) <= 200_000


def test_the_menu_has_it_below_its_lecture_and_the_search_by_its_title(site: Path, page: str) -> None:
    other = (site / "lectures/lecture_02/index.html").read_text(encoding="utf-8")
    assert re.search(r'href="\.\./lecture_01/workbook/"[^>]*>\s*<span[^>]*>\s*Workbook\s', other)
    assert "<title>Workbook · A lecture - A book</title>" in page
    index = json.loads(
        (site / "search/index.js").read_text(encoding="utf-8").splitlines()[0].partition(" = ")[2].rstrip(";")
    )
    assert dict(index)["lectures/lecture_01/workbook/"] == [["", "Workbook · A lecture", ""]]


def test_a_lecture_that_asks_nothing_has_none_and_parts_notebooks_stay_files(site: Path) -> None:
    assert not (site / "lectures/lecture_02/workbook").exists()
    assert [it.name for it in (site / "lectures/lecture_01/notebooks").iterdir()] == ["index.ipynb"]


def test_a_notebook_of_the_authors_is_drawn_as_the_plugin_does(site: Path) -> None:
    own = (site / "own/index.html").read_text(encoding="utf-8")
    assert "Costs $a_1 &lt; b$." in own and "lb-workbook" not in own and "clipboard-copy" in own


def test_who_asks_for_one_without_the_plugin_is_told_how_and_who_wants_none_has_none(tmp_path: Path) -> None:
    book = written(tmp_path)
    done = build(book, BOOK.replace("- litbook", "- litbook: {workbook: true}"))
    assert done.returncode == 1
    assert (
        "mkdocs.yml: workbook: true needs a plugin that draws it\n    pip install mkdocs-jupyter\n"
        in done.stdout
    )
    assert build(book, BOOK.replace("- litbook", "- litbook: {workbook: false}") + DRAWN).returncode == 0
    assert not (book / "site/lectures/lecture_01/workbook").exists()


def test_plain_markdown_has_none(tmp_path: Path) -> None:
    done = build(written(tmp_path), BOOK + DRAWN, "litbook", "pages", "plain")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "plain/docs/lectures/lecture_01/workbook.ipynb").exists()
    assert "workbook" not in (tmp_path / "plain/mkdocs.yml").read_text()
