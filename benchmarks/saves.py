"""From saving a lecture to its new page: `python -m benchmarks.saves ROUNDS WHO,… RESULT`.

Each save gives a line a value that nobody has seen yet, and asks for the page until it has it: first of a
small lecture, served in turn by each WHO, then of lecture 02 in a copy of this book, and where there is a
Chromium until a browser shows it. The first run of a lecture is no part of it.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from benchmarks import contestants, texts
from benchmarks.results import Results, add, dump, interleaved

GROUP = "from a save to the new page"
PATIENCE = 150.0  # seconds for the first page, which waits for the whole lecture; and for a save
MODULE, SECTION = "storage", "a_transpose_swaps_strides"  # of lecture 02, where the saves are made
FIRST = 80_000_000  # no lecture shows a number like it
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SMALL = f'''"""Lecture 01: pi from random points."""
import numpy as np
from litbook import note

def main():
    points_inside_a_circle()

def points_inside_a_circle():
    """The share of points inside a circle gives pi."""
    note("Points, drawn uniformly from a square, and the share of them inside a circle:")
    points = np.random.default_rng(0).random((1000, 2))  # @inspect points
    inside = (points**2).sum(axis=1) <= 1
    share = inside.mean()  # @inspect share
    assert abs(4 * share - np.pi) < 0.2, "close to pi"
    saved_now = {FIRST}  # @inspect saved_now
'''
CELLS = f"# %%\n{SMALL.replace('  # @inspect saved_now', '; print(saved_now)')}\n# %%\nmain()\n"
SITE = "site_name: Saved\ntheme: {name: material}\nplugins:\n  - "
NOTEBOOKS = "mkdocs-jupyter: {execute: true, allow_errors: false}"
LECTRACE = ["-c", "from lectrace.cli import main; main()", "serve", "lecture_01.py", "--port"]
# who: the lecture's file and text, the configuration, the page, the command; a port follows it
SERVED = {
    "litbook": ("lectures/lecture_01.py", SMALL, f"{SITE}litbook", "lectures/lecture_01/",
                ["-m", "litbook", "serve", "--port"]),
    "mkdocs-jupyter": ("docs/lecture_01.py", CELLS, SITE + NOTEBOOKS, "lecture_01/",
                       ["-m", "mkdocs", "serve", "--quiet", "-a"]),
    "lectrace": ("lecture_01.py", texts.renamed(SMALL, "lectrace"), "", "traces/lecture_01.json", LECTRACE),
}  # fmt: skip


class Preview:
    """A lecture's file, and the server of its page."""

    def __init__(self, file: Path, address: str) -> None:
        self.file, self.address, self.value = file, address, FIRST

    def get(self, page: str) -> str:
        """The page as it is; "" where there is none, or none yet."""
        unreadable = contextlib.suppress(OSError, http.client.HTTPException)  # or written just now
        with unreadable, urllib.request.urlopen(self.address + page, timeout=60) as answer:
            return str(answer.read().decode())
        return ""

    def until(self, page: str, *there: str) -> str:
        """The page, as soon as it has one of the texts."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            text = self.get(page)
            if any(it in text for it in there):
                return text
            time.sleep(0.02)
        raise RuntimeError(f"{page} did not become new within {PATIENCE:.0f} s")

    def save(self, text: str) -> float:
        """Write the text with the next value in it; when it was written."""
        time.sleep(0.5)  # nothing of the last save still runs
        self.value += 1
        start = time.perf_counter()
        self.file.write_text(text.replace(str(FIRST), str(self.value)), encoding="utf-8")
        return start

    def seconds(self, text: str, page: str) -> float:
        start = self.save(text)
        self.until(page, str(self.value), f"{self.value:,}")
        return time.perf_counter() - start


@contextlib.contextmanager
def served(file: Path, folder: Path, command: list[str]) -> Iterator[Preview]:
    """What `command` serves at the port that follows it, until the end of the block."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    last = f"localhost:{port}" if command[-1] == "-a" else str(port)
    environment = contestants.environment(folder if (folder / "tools").exists() else contestants.REPO)
    environment |= {"BROWSER": "true", "NO_MKDOCS_2_WARNING": "true"}  # the command `true` opens nothing
    process = subprocess.Popen(
        [sys.executable, *command, last], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        yield Preview(file, f"http://localhost:{port}/")
    finally:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
        process.kill()
        process.wait()


def small(names: list[str], rounds: int, found: Results) -> None:
    """A small lecture: all serve it, and it is saved for one after the other."""
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as until_the_end:
        ways = {}
        for who in names:
            name, text, config, page, command = SERVED[who]
            folder = Path(place, who)
            for file, content in (("docs/index.md", "# Saved\n"), ("mkdocs.yml", config), (name, text)):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_text(content, encoding="utf-8")
            preview = until_the_end.enter_context(served(folder / name, folder, command))
            preview.until(page, str(FIRST), f"{FIRST:,}")
            ways[who] = lambda it=preview, text=text, page=page: it.seconds(text, page)
        add(found, f"{GROUP} / a small lecture", interleaved(ways, rounds))


def book(rounds: int, found: Results) -> None:
    """A section of lecture 02, saved in a copy of this book."""
    with tempfile.TemporaryDirectory(prefix="bench-serve-", ignore_cleanup_errors=True) as place:
        folder, home = Path(place), "lectures/lecture_02/"
        for part in ("docs", "lectures", "tools", "mkdocs.yml", "pyproject.toml"):
            source = contestants.REPO / part
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, folder / part)
        file = folder / "lectures" / "lecture_02" / f"{MODULE}.py"
        command = ["-m", "litbook", "serve", "--config-file", str(folder / "mkdocs.yml"), "--port"]
        with served(file, folder, command) as preview:
            contents = preview.until(home, "</html>")
            names = dict.fromkeys(re.findall(r'href="(?:\./|\.\./lecture_02/)?([\w-]+)/', contents))
            pages = (f"{home}{name}/" for name in names)
            page = next(it for it in pages if f'id="{SECTION}"' in preview.get(it))
            text = with_a_value(file.read_text(encoding="utf-8"))
            seconds = [preview.seconds(text, page) for _ in range(rounds)]
            add(found, f"{GROUP} / lecture 02", {"litbook": seconds})
            if seconds := in_a_browser(preview, text, page, rounds):
                add(found, f"{GROUP} / lecture 02, in a browser", {"litbook": seconds})


def with_a_value(text: str) -> str:
    """The module with one more line below the docstring of the section, which shows what is saved."""
    before, head, rest = text.partition(f"def {SECTION}() -> None:\n")
    _, _, body = rest.partition('"""')
    docstring, _, body = body.partition('"""\n')
    line = f"    saved_now = {FIRST}  # @inspect saved_now\n"
    return f'{before}{head}    """{docstring}"""\n{line}{body}'


def in_a_browser(preview: Preview, text: str, at: str, rounds: int) -> list[float]:
    """Seconds until a browser that has the page open shows the new value; none where there is no browser."""
    browser_at = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_at is None or importlib.util.find_spec("playwright") is None:
        return []
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        page = playwright.chromium.launch(executable_path=browser_at, args=arguments).new_page()
        for _ in range(rounds):
            page.goto(preview.address + at, wait_until="load")
            start = preview.save(text)
            shown = f"() => document.body && document.body.textContent.includes('{preview.value:,}')"
            page.wait_for_function(shown, timeout=1000 * PATIENCE)
            found.append(time.perf_counter() - start)
    return found


if __name__ == "__main__":
    results: Results = {}
    small(sys.argv[2].split(","), int(sys.argv[1]), results)
    book(int(sys.argv[1]), results)
    dump(Path(sys.argv[3]), results)
