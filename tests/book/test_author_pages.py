"""The pages for authors are executed: in a new book their files are written, their commands run and print what stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import LITBOOK, REPO

from litbook.site import scaffold

FENCE = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL
)
COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
PAGES = {"exercises": 2, "folder-lectures": 3, "debugging": 2}  # with how many commands
ENV = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPO / "tools")}


@pytest.fixture(params=PAGES)
def book(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A new book with the files of a page, and the page."""
    text = (REPO / "docs" / f"{request.param}.md").read_text(encoding="utf-8")
    folder = tmp_path / "mybook"
    scaffold.begin(folder)
    for fence in FENCE.finditer(text):
        if fence["title"]:
            (folder / fence["title"]).parent.mkdir(exist_ok=True)
            (folder / fence["title"]).write_text(fence["body"], encoding="utf-8")
    return folder, text


def test_each_command_prints_what_the_page_says(book: tuple[Path, str]) -> None:
    folder, text = book
    commands = [
        command
        for fence in FENCE.finditer(text)
        if fence["language"] == "console"
        for command in COMMAND.findall(fence["body"])
    ]
    for words, expected in commands:
        program, *rest = shlex.split(words)
        command = [*LITBOOK, *rest] if program == "litbook" else [sys.executable, *rest]
        done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True, check=False)
        if "pdb" in rest:
            assert re.search(r"^3$", done.stdout, re.MULTILINE), done.stdout + done.stderr
        else:
            assert (done.stdout, done.stderr) == (expected, ""), words
    assert len(commands) in PAGES.values()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_nav_leads_there(name: str) -> None:
    assert f": {name}.md\n" in (REPO / "mkdocs.yml").read_text(encoding="utf-8")
