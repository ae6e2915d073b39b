"""The page about a book of one's own is executed: its commands run in an empty folder and print what stands there."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from tests.running import LITBOOK, REPO

from litbook.site.plugin import Options

PAGE = (REPO / "docs" / "your-own-book.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
ENV = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPO / "tools")}
OLDER = ("unbacked", "unchecked", "recordings")  # options of before `rules`
PATIENCE = 60.0  # seconds for the first page; on an idle machine three


def test_every_command_of_the_page_does_what_the_page_says(tmp_path: Path) -> None:
    """Installing is what the tests of the wheel do; the preview ends when its page has come."""
    commands = [found for block in CONSOLE.findall(PAGE) for found in COMMAND.findall(block)]
    assert [words for words, _ in commands][:4] == [
        "pip install '.[site]'",
        "litbook new mybook",
        "cd mybook",
        "litbook serve",
    ]
    folder = tmp_path
    for text, expected in commands[1:]:
        program, *words = shlex.split(text)
        if program == "cd":
            folder /= words[0]
        elif words == ["serve"]:
            assert "what a float keeps" in first_page(folder)
        else:
            command = [*LITBOOK, *words] if program == "litbook" else [program, *words]
            done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            assert done.stdout == expected, text
    assert (folder / "site" / "lectures" / "lecture_01" / "index.html").is_file()


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
                    page = str(answer.read().decode())
                    print(f"first page after {time.monotonic() - since:.1f} s")
                    return page
            time.sleep(0.05)
        raise AssertionError(f"no page after {PATIENCE} s")
    finally:
        served.send_signal(signal.SIGINT)
        served.wait(20)


def test_the_page_lists_each_option_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `?([\w.]+)`?", PAGE, re.MULTILINE))
    options = {name: option.default for name, option in Options._schema if name not in OLDER}
    options["bibliography"] = "references.bib"
    assert rows == {name: str(value or "none").replace("True", "true") for name, value in options.items()}
    assert [name for name in OLDER if f"`{name}: " not in PAGE] == []


def test_a_page_of_the_nav_says_so() -> None:
    assert "  - Your own book: your-own-book.md\n" in (REPO / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_configuration_on_the_page_is_that_of_a_new_book() -> None:
    first, second = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    text = (REPO / "tools" / "litbook" / "site" / "new" / "mkdocs.yml.txt").read_text(encoding="utf-8")
    assert first == text.replace("$name", '"mybook"')
    (given,) = (it["litbook"] for it in yaml.safe_load(second)["plugins"] if isinstance(it, dict))
    assert set(given) <= {name for name, _ in Options._schema}
