"""From saving a section to its new page in `make serve`: `python -m benchmarks.saves ROUNDS RESULT`.

A copy of the book is served. Each round adds a line with a value that nobody has seen yet to another section
of lecture 02, saves, and asks as a browser does: it waits for news, then fetches the page, until the value is
there. Where there is a Chromium, a second series waits until the browser shows the value. The lecture's first
run is not part of it.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import outside

LECTURE = "lecture_02"
PART = "storage"  # the file in which the saves are made
PATIENCE = 150.0  # seconds for the first page, which waits for the whole lecture; and for a save
NOT_READY = 503  # the preview's answer for a page that comes
ENOUGH = 130.0  # seconds after which no further save follows, once there are LEAST
LEAST = 7
FIRST = 80_000_000  # no lecture shows a number like it
NOT_COPIED = (".git", ".venv", ".litbook", "build", "__pycache__", ".*_cache", "*.egg-info")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What no copy needs, and the book's built site: the engine has a package of that name, too."""
    built = {"site"} if Path(folder) == outside.REPO else set[str]()
    return built | shutil.ignore_patterns(*NOT_COPIED)(folder, names)


class Served:
    """A preview of a copy of the book, and its log."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.address = folder, f"http://localhost:{port}/"
        self.lecture, self.log = folder / "lectures" / LECTURE / f"{PART}.py", folder / "watched.jsonl"

    def get(self, path: str) -> str:
        """The page, waited for while it is not ready; "" where there is none."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(self.address + path, timeout=60) as answer:
                    return str(answer.read().decode())
            except urllib.error.HTTPError as error:
                if error.code != NOT_READY:
                    return ""
            except OSError:
                return ""
            time.sleep(0.1)
        return ""

    def until(self, there: Callable[[str], object], path: str) -> str:
        """The page as soon as it is as asked: the news are waited for, as the page's own script does."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            text = self.get(path)
            if there(text):
                return text
            news = re.search(r'data-news="(\d+-\d+)"', text)
            if news:
                self.get(f"livereload/{news[1]}?/{path}")
            else:
                time.sleep(0.1)
        raise RuntimeError(f"{path} did not become new within {PATIENCE:.0f} s")

    def stages(self, since: float) -> dict[str, list[tuple[float, float]]]:
        """What was done since then for who waits: when each stage began and ended. {} if it is not all told.

        The whole lecture runs beside it, for the other pages; that does not count.
        """
        lines = map(json.loads, self.log.read_text(encoding="utf-8").splitlines())
        later = [(stage, start, end, pid) for stage, start, end, pid in lines if start >= since]
        runs = {pid for stage, *_, pid in later if stage == "run"}
        found: dict[str, list[tuple[float, float]]] = {}
        for stage, start, end, pid in later:
            if stage in ("noticed", "asked", "page") or pid in runs:
                found.setdefault(stage, []).append((start, end))
        return found if {"noticed", "run", "asked"} <= found.keys() else {}


@contextlib.contextmanager
def served() -> Iterator[Served]:
    """The book, copied and served until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="bench-serve-", ignore_cleanup_errors=True) as place:
        folder = Path(place, "book")
        shutil.copytree(outside.REPO, folder, ignore=_left_out)
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            port: int = probe.getsockname()[1]
        book = Served(folder, port)
        command = [sys.executable, "-m", "benchmarks.watched", str(book.log), "--port", str(port)]
        with Path(place, "said.txt").open("w+", encoding="utf-8") as said:
            process = subprocess.Popen(
                [*command, "--config-file", str(folder / "mkdocs.yml")],
                cwd=folder,
                stdout=said,
                stderr=said,
                env=outside.environment(folder),
            )
            try:
                yield book
            except RuntimeError as error:
                said.seek(0)
                raise RuntimeError(f"{error}\n{said.read()[-2000:]}") from None
            finally:
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=20)
                process.kill()
                process.wait()


# ---------------------------------------------------------------------------- the sections


def sections(text: str, count: int) -> list[str]:
    """So many of the lecture's sections, spread over it; those that run on any device."""
    tree = ast.parse(text)
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    called = {
        line.value.func.id
        for n in functions.values()
        for line in n.body
        if isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Call)
        and isinstance(line.value.func, ast.Name)
    }
    found = [
        name
        for name, n in functions.items()
        if name in called
        and ast.get_docstring(n)
        and not n.args.args
        and all(ast.unparse(mark) == "aside" for mark in n.decorator_list)
        and "# @inspect" in "\n".join(text.split("\n")[n.lineno : n.end_lineno])
    ]
    return [found[(2 * i + 1) * len(found) // (2 * count)] for i in range(count)]


def changed(text: str, section: str, value: int) -> str:
    """The lecture with one more line in that section, which shows the value."""
    tree = ast.parse(text)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == section)
    lines = text.split("\n")
    lines.insert(function.body[0].end_lineno or 0, f"    saved_now = {value}  # @inspect saved_now")
    return "\n".join(lines)


# ---------------------------------------------------------------------------- the rounds


def measured(rounds: int) -> dict[str, Any]:
    """Seconds of each save, until the page is there and until a browser shows it; stages; pages' weights."""
    began = time.monotonic()
    with served() as book:
        contents = book.until(lambda text: text, f"lectures/{LECTURE}/")
        names = dict.fromkeys(re.findall(r'href="(?:\./|\.\./lecture_02/)?([\w-]+)/(?:#[^"]*)?"', contents))
        paths = [f"lectures/{LECTURE}/{name}/" for name in names]
        pages = {path: text for path in paths if (text := book.get(path))}
        text = book.lecture.read_text(encoding="utf-8")
        found: dict[str, Any] = {"seconds": {"page": []}, "stages": [], "sections": []}
        weights = {path: len(it.encode()) for path, it in pages.items()}
        found["largest page"], found["pages"] = max(weights.values()), len(weights)
        found["scripts"] = _scripts(book, pages)
        homes = {
            name: next(path for path, it in pages.items() if f'id="{name}"' in it)
            for name in sections(text, rounds)
        }
        for i, (name, path) in enumerate(homes.items()):
            text = changed(text, name, FIRST + i)
            start = _saved(book, text)
            book.until(lambda it, i=i: f"{FIRST + i:,}" in it, path)  # type: ignore[misc]
            end = time.time()
            found["seconds"]["page"].append(end - start)
            stages = book.stages(start)
            if stages:
                found["stages"].append(_by_stage(stages, start, end))
            found["sections"].append(name)
            if time.monotonic() - began > ENOUGH and i + 1 >= LEAST:
                break
        shown = _in_a_browser(book, text, homes, began + ENOUGH)
        if shown:
            found["seconds"]["browser"] = shown
        return found


def _saved(book: Served, text: str) -> float:
    time.sleep(0.5)  # nothing of the last round still runs: after a page come remarks on the text
    start = time.time()
    book.lecture.write_text(text, encoding="utf-8")
    return start


def _by_stage(stages: dict[str, list[tuple[float, float]]], start: float, end: float) -> dict[str, float]:
    """Where a save's time went; the parts add up to the whole."""
    total = {name: sum(b - a for a, b in spans) for name, spans in stages.items()}
    noticed, (began, ended), shown = stages["noticed"][0][0], stages["run"][0], stages["asked"][0][1]
    inner = {
        "reading the text": total.get("read", 0.0),
        "compiling probes in": total.get("probes", 0.0),
        "sections": total.get("sections", 0.0),
    }
    page = max((b for _, b in stages.get("page", [])), default=shown) - shown
    parts = {
        "until the save is noticed and has settled": noticed - start,
        "until the run of the part begins, in a fork": began - noticed,
        **inner,
        "the rest of the run: the record": ended - began - sum(inner.values()),
        "the record on its way to the preview": shown - ended,
        "making the page": page,
    }
    return parts | {"the page on its way": end - start - sum(parts.values())}


def _scripts(book: Served, pages: dict[str, str]) -> int:
    """Bytes of our scripts that the page with the most of them asks for; its data are no scripts."""
    asked = [
        {re.sub(r"^[./]*", "", name) for name in re.findall(r'src="([^"]*assets/litbook/[\w.-]+\.js)"', it)}
        for it in pages.values()
    ]
    weight = {name: len(book.get(name).encode()) for name in set().union(*asked)}
    return max(sum(weight[name] for name in names) for names in asked)


def _in_a_browser(book: Served, text: str, homes: dict[str, str], until: float) -> list[float]:
    """Seconds until a browser that has the page open shows the new value; none where there is no browser.

    After the time `until` no further save begins; there is one in any case.
    """
    browser_at = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_at is None or importlib.util.find_spec("playwright") is None:
        return []
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=browser_at, args=arguments)
        page = browser.new_page()
        for i, (name, path) in enumerate(homes.items(), len(homes)):
            page.goto(book.address + path)
            page.wait_for_load_state("load")
            text = changed(text, name, FIRST + i)
            start = _saved(book, text)
            shown = f"() => document.body && document.body.textContent.includes('{FIRST + i:,}')"
            page.wait_for_function(shown, timeout=1000 * PATIENCE)
            found.append(time.time() - start)
            if time.monotonic() > until:
                break
        browser.close()
    return found


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(measured(int(sys.argv[1]))), encoding="utf-8")
