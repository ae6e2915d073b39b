"""The manual is executed: its files are written into a new book, its commands run, and they print what is shown there.

LITBOOK_BLESS=1 writes what the commands print now into the page; read the diff.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import msgspec
import pytest
import yaml
from tests.running import LITBOOK, REPO

from litbook.record import model
from litbook.site import scaffold
from litbook.site.plugin import Options

FENCE = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL
)
COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
PAGES = {"first-lecture": 9, "guide": 9, "writing-questions": 2}  # with how many commands
ENV = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPO / "tools")}
OLDER = ("unbacked", "unchecked", "recordings")  # options of before `rules`
PATIENCE = 240.0  # seconds for the first page; on an idle machine three
FIRST = 150  # lines of the first lecture at most


def text_of(page: str) -> str:
    return (REPO / "docs" / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_each_command_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    """Installing is what the tests of the wheel do; the preview ends when its page has come."""
    folder, ran, status, text = tmp_path, 0, 0, text_of(page)
    if page != "first-lecture":  # which begins the book itself
        scaffold.begin(folder := tmp_path / "mybook")
    for fence in FENCE.finditer(text):
        if fence["title"]:  # in the order of the page, so that a file may be corrected further down
            (folder / fence["title"]).parent.mkdir(exist_ok=True)
            (folder / fence["title"]).write_text(fence["body"], encoding="utf-8")
        for words, expected in COMMAND.findall(fence["body"]) if fence["language"] == "console" else ():
            program, *rest = shlex.split(words)
            ran += 1
            if program == "pip":
                assert rest == ["install", ".[site]"]
            elif program == "cd":
                folder /= rest[0]
            elif program == "echo":
                assert expected.strip() == str(status), f"exit status of the command before {words!r}"
            elif rest == ["serve"]:
                assert "what a float keeps" in first_page(folder)
            else:
                assert program == "litbook"
                done = subprocess.run(
                    [*LITBOOK, *rest], cwd=folder, env=ENV, capture_output=True, text=True, check=False
                )
                status = done.returncode
                if os.environ.get("LITBOOK_BLESS") and rest != ["build"]:
                    told = f"$ {words}\n"
                    written = text_of(page).replace(told + expected, told + done.stdout)
                    (REPO / "docs" / f"{page}.md").write_text(written, encoding="utf-8")
                elif rest == ["build"]:  # what MkDocs says of it is MkDocs' own
                    assert done.returncode == 0, done.stdout + done.stderr
                else:
                    assert (done.stdout, done.stderr) == (expected, ""), words
    assert ran == PAGES[page]
    if page == "first-lecture":
        assert (folder / "site" / "lectures" / "lecture_02" / "index.html").is_file()


def first_page(folder: Path) -> str:
    """The lecture's page as the preview serves it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    since = time.monotonic()
    served = subprocess.Popen([*LITBOOK, "serve", "--port", str(port)], cwd=folder, env=ENV)

    try:
        while time.monotonic() - since < PATIENCE:
            with contextlib.suppress(urllib.error.URLError):
                with urllib.request.urlopen(f"http://localhost:{port}/lectures/lecture_01/") as answer:
                    return str(answer.read().decode())
            time.sleep(0.05)
        raise AssertionError(f"no page after {PATIENCE} s")
    finally:
        served.send_signal(signal.SIGINT)
        served.wait(20)


def test_the_lectures_of_the_manual_pass_what_make_check_demands_of_a_lecture(tmp_path: Path) -> None:
    """Types and lint, as `pyproject.toml` sets them."""
    files = {
        fence["title"].partition("/")[2]: fence["body"]
        for page in PAGES
        for fence in FENCE.finditer(text_of(page))
        if (fence["title"] or "").endswith(".py")
    }
    assert len(files) >= 10
    for name, body in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    config, tools = str(REPO / "pyproject.toml"), str(REPO / "tools")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", str(REPO / ".mypy_cache"), *files],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": tools}, capture_output=True, text=True, check=False, timeout=400,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (
        0,
        f"Success: no issues found in {len(files)} source files\n",
    )
    for (
        name,
        body,
    ) in files.items():  # as if it stood among the lectures, where other rules hold than for tests
        done = subprocess.run(
            [sys.executable, "-m", "ruff", "check", "--no-cache", "--stdin-filename", f"lectures/{name}"],
            cwd=REPO, input=body, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, name + done.stdout + done.stderr


def test_the_first_lecture_is_short_and_needs_python_alone() -> None:
    text = text_of("first-lecture")
    assert len(text.splitlines()) <= FIRST
    imported = set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE))
    assert imported - {"litbook"} <= sys.stdlib_module_names
    assert set(re.findall(r"^\$ (\w+)", text, re.MULTILINE)) == {"pip", "litbook", "cd", "echo"}


def test_the_navigation_has_the_book_first_and_its_authors_pages_apart() -> None:
    text = (REPO / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(text[text.index("\nnav:") :])["nav"]
    titles = [next(iter(entry)) for entry in nav]
    assert titles == [
        "Start", "How to read", "Lectures", "Calculator", "Glossary", "For authors", "Behind the pages",
    ]  # fmt: skip
    pages = {title: page for row in nav[5]["For authors"] for title, page in row.items()}
    assert [*pages][:3] == ["Your first lecture", "Guide", "Writing questions"]
    assert "Reference" in pages
    for entry in nav[5]["For authors"] + nav[6]["Behind the pages"]:
        for page in entry.values():
            if isinstance(page, str):  # the search of a reader leaves it out
                head = text_of(page.removesuffix(".md")).partition("\n# ")[0]
                assert "search:\n  exclude: true\n" in head, page


def test_the_reference_lists_each_option_with_its_default() -> None:
    page = text_of("reference")
    page = page[page.index("## Options") : page.index("## Rules")]
    rows = dict(re.findall(r"^\| `(\w+)` \| `?([\w.]+)`?", page, re.MULTILINE))
    options = {name: option.default for name, option in Options._schema if name not in OLDER}
    options["bibliography"] = "references.bib"
    assert rows == {name: str(value or "none").replace("True", "true") for name, value in options.items()}
    assert [name for name in OLDER if f"`{name}: " not in page] == []


def test_the_configuration_in_the_reference_is_that_of_a_new_book() -> None:
    first, second = re.findall(r"^```yaml\n(.*?)^```$", text_of("reference"), re.MULTILINE | re.DOTALL)
    text = (REPO / "tools" / "litbook" / "site" / "new" / "mkdocs.yml.txt").read_text(encoding="utf-8")
    assert first == text.replace("$name", '"mybook"')
    (given,) = (it["litbook"] for it in yaml.safe_load(second)["plugins"] if isinstance(it, dict))
    assert set(given) <= {name for name, _ in Options._schema}


def test_the_record_page_names_every_field() -> None:
    text = text_of("record")
    kinds = [t for t in vars(model).values() if isinstance(t, type) and issubclass(t, msgspec.Struct)]
    missing = [
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name in kind.__struct_fields__
        if f"`{name}`" not in text
    ]
    assert missing == []
