"""Other plugins of MkDocs beside litbook: each that is installed builds a new book strictly, as the docs say."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import LITBOOK, REPO

NOTEBOOK = """{"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "source": ["1 + 1"], "outputs": [],
 "execution_count": null}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"""
PLUGINS = {  # module -> what stands below `plugins:`, a page of the author's, and what it then shows
    "mkdocs_jupyter": (
        'litbook: {workbook: true}\n  - mkdocs-jupyter: {ignore: ["*.md", "*.py"]}',
        "",
        "",
    ),
    "mkdocs_macros": (
        "litbook\n  - macros: {render_by_default: false}",
        "---\nrender_macros: true\n---\n# Sum\n\nIt is {{ 3 + 4 }}.\n",
        "It is 7.",
    ),
    "mkdocs_bibtex": (
        "litbook\n  - bibtex: {bib_file: lectures/references.bib}",
        "# Cited\n\nAs [@goldberg1991] says.\n\n\\\\bibliography\n",
        "Goldberg",
    ),
    "mkdocs_print_site_plugin": ("litbook\n  - print-site", "", ""),
    "mkdocs_git_revision_date_localized_plugin": ("litbook\n  - git-revision-date-localized", "", ""),
    "mkdocs_static_i18n": (
        "litbook\n  - i18n: {languages: [{locale: en, default: true, name: English}, {locale: de, name: Deutsch}]}",
        "",
        "",
    ),
}


def book(folder: Path, plugins: str, page: str) -> Path:
    """A new book in git, with these plugins, a notebook of the author's, and a page."""
    made = folder / "book"
    subprocess.run([*LITBOOK, "new", str(made)], check=True, capture_output=True)
    (made / "docs" / "own.ipynb").write_text(NOTEBOOK)
    (made / "docs" / "more.md").write_text(page or "# More\n")
    (made / "mkdocs.yml").write_text(
        f"site_name: A book\ntheme: {{name: material}}\nplugins:\n  - search\n  - {plugins}\n"
    )
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "A book"]):
        subprocess.run([*git, *words], cwd=made, check=True, capture_output=True)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("module", PLUGINS)
def test_a_book_builds_strictly_beside_it(tmp_path: Path, module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs a tool beside: {module} is not installed")
    plugins, page, shown = PLUGINS[module]
    made = book(tmp_path, plugins, page)
    done = subprocess.run([*LITBOOK, "build"], cwd=made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert shown in (made / "site" / "more" / "index.html").read_text()
    assert (made / "site" / "lectures" / "lecture_01" / "index.html").is_file()


@pytest.mark.slow
def test_mike_publishes_a_version(tmp_path: Path) -> None:
    if importlib.util.find_spec("mike") is None:
        pytest.skip("needs a tool beside: mike is not installed")
    made = book(tmp_path, "litbook\n  - mike", "")
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, **names, "PATH": path, "PYTHONPATH": str(REPO / "tools")}
    assert shutil.which("mkdocs", path=path)
    done = subprocess.run(
        [Path(sys.executable).with_name("mike"), "deploy", "1.0"],
        cwd=made,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "gh-pages"],
        cwd=made,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1.0/lectures/lecture_01/index.html" in listed.stdout
