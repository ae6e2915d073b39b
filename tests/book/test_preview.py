"""`make serve`: save, and the page is new; what is wrong stands on the page and in the terminal."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pygments.lexers import PythonLexer
from tests.running import LITBOOK, until

from litbook.render import code

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SERVE = [*LITBOOK, "serve"]
PATIENCE = 40.0  # seconds; on an idle machine all of it takes less than one
TIMEOUT = 6  # of a lecture

CONFIG = """
site_name: A book
theme:
  name: material
  font: false
plugins: [litbook]
markdown_extensions: [attr_list, md_in_html]
nav:
  - Start: index.md
  - Lectures: []
"""
GOOD = '''"""Lecture 01: saving."""
from litbook import note


def main():
    long_one()
    short_one()


def long_one():
    """A long section."""
    note("{prose}")
    y = 17  # @inspect y


def short_one():
    """A short section."""
    x = {value}  # @inspect x
    assert x > 0, "positive"
'''
PROSE = "\\n\\n".join("One paragraph of many." for _ in range(60))
PAGE = "lectures/lecture_01/"


def lecture(value: object = 1001, prose: str = PROSE) -> str:
    return GOOD.replace("{prose}", prose).replace("{value}", str(value))


class Served:
    """A preview that runs, its lecture, and what it has printed."""

    def __init__(self, folder: Path, process: subprocess.Popen[str], port: int) -> None:
        self.folder, self.process, self.port = folder, process, port
        self.file = folder / "lectures" / "lecture_01.py"
        self.printed = ""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.printed += line

    def close(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=20)
        finally:
            self.process.kill()  # nothing where it has ended
        self.reader.join(timeout=20)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def page(self, path: str = PAGE) -> str:
        """The text of a page; "" where there is none yet."""
        try:
            with urllib.request.urlopen(f"http://localhost:{self.port}/{path}", timeout=30) as answer:
                return unescape(answer.read().decode())
        except urllib.error.HTTPError as error:
            return f"status {error.code} " + unescape(error.read().decode())
        except OSError:
            return ""

    def until(self, holds: Callable[[str], object], path: str = PAGE) -> str:
        """The page, as soon as it is as asked."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self.process.poll() is None, self.printed
            text = self.page(path)
            if text and holds(text):
                return text
            time.sleep(0.05)
        raise AssertionError(f"not in {PATIENCE} s\n{self.printed[-2000:]}\n{banner(self.page(path))}")

    def good(self, value: int) -> str:
        """Save a good text with this value, and wait for its page."""
        self.file.write_text(lecture(value))
        return self.until(lambda text: shows(text, value) and not banner(text))


def banner(text: str) -> str:
    found = re.search(r'<div id="litbook-trouble"[^>]*>(.*?)</div>', text, re.DOTALL)
    return found[1] if found else ""


def shows(text: str, value: int) -> bool:
    return f"{value:,}" in text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A preview of a small book, one for all tests of this file; each saves its own text."""
    folder = tmp_path_factory.mktemp("book")
    (folder / "lectures").mkdir()
    (folder / "docs").mkdir()
    (folder / "mkdocs.yml").write_text(CONFIG)
    (folder / "docs" / "index.md").write_text("# Start\n\nHello.\n")
    (folder / "lectures" / "lecture_01.py").write_text(lecture())
    with serving(folder) as made:
        yield made


@contextlib.contextmanager
def serving(folder: Path, by: Sequence[str] = ()) -> Iterator[Served]:
    """A preview of the book in `folder`, started `by` a command, from when it shows its first lecture; it ends well."""
    port = free_port()
    process = subprocess.Popen(
        [*by, *SERVE, "--config-file", str(folder / "mkdocs.yml"), "--port", str(port), "--timeout", str(TIMEOUT)],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
    )  # fmt: skip
    made = Served(folder, process, port)
    try:
        made.until(lambda text: shows(text, 1001))
        yield made
    finally:
        made.close()
    assert process.returncode == 0, made.printed
    assert "Traceback" not in made.printed


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_what_a_script_starts_in_the_background_can_be_ended(ending: signal.Signals, tmp_path: Path) -> None:
    """There SIGINT is ignored, and a process inherits that."""
    for name in ("docs", "lectures"):
        (tmp_path / name).mkdir()
    (tmp_path / "mkdocs.yml").write_text(CONFIG)
    (tmp_path / "docs" / "index.md").write_text("# Start\n")
    (tmp_path / "lectures" / "lecture_01.py").write_text(lecture())
    with serving(tmp_path, by=["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]) as made:
        made.process.send_signal(ending)
        made.process.wait(timeout=20)
    assert made.printed.endswith("done\n")


def test_make_serve_starts_what_these_tests_start(repo: Path) -> None:
    done = subprocess.run(
        ["make", "-n", "serve", "PORT=8003"], cwd=repo, capture_output=True, text=True, check=True
    )
    assert (
        ".venv/bin/python -m litbook.cli serve --port 8003" in done.stdout.splitlines()
    )  # make may say more in make


def test_a_saved_section_runs_alone_and_its_page_is_new(served: Served) -> None:
    served.good(1002)
    served.printed = ""
    start = time.monotonic()
    served.good(1003)
    assert time.monotonic() - start < 20  # two seconds on an idle machine
    assert re.search(r"lecture_01\.py: 1 claim holds, .*; \d", served.printed)


def test_the_page_of_the_docs_follows_its_file(served: Served) -> None:
    page = served.folder / "docs" / "index.md"
    page.write_text("# Start\n\nGood day.\n")
    served.until(lambda text: "Good day." in text, "")


def test_a_syntax_error_is_on_the_page_and_in_the_terminal_above_the_last_good_run(served: Served) -> None:
    served.good(1004)
    served.file.write_text(lecture("(1005"))
    text = served.until(banner)
    said = banner(text)
    assert "lectures/lecture_01.py:18:9: syntax error: '(' was never closed\n    x = (1005" in said
    assert re.search(r"Below: the run of \d\d:\d\d:\d\d, the last that could be shown\.", said)
    assert shows(text, 1004)
    served.until(lambda _: "lecture_01.py:18:9: syntax error" in served.printed)
    assert "syntax error" in banner(served.page("lectures/"))
    served.good(1006)


def test_a_failed_claim_and_an_exception_are_on_the_page(served: Served) -> None:
    served.file.write_text(lecture(-1007))
    text = served.until(lambda text: "-1,007" in text)
    assert "lectures/lecture_01.py:19: claim fails: positive\n    assert x > 0" in banner(text)
    served.file.write_text(lecture("1 / 0"))
    text = served.until(lambda text: "ZeroDivisionError" in banner(text))
    assert "lectures/lecture_01.py:18: ZeroDivisionError: division by zero\n    x = 1 / 0" in banner(text)
    assert not shows(text, 1007)  # nothing stale among what is new
    served.good(1008)


def test_a_half_written_file_is_no_crash(served: Served) -> None:
    served.good(1009)
    whole = lecture(1010)
    served.file.write_text(whole[: len(whole) // 2])
    assert shows(served.until(banner), 1009)
    served.file.write_bytes(b"\x00\xff\xfe")
    assert shows(served.until(lambda text: "not Python text" in banner(text)), 1009)
    served.file.write_text(whole)
    served.until(lambda text: shows(text, 1010) and not banner(text))


def test_a_lecture_that_is_removed_or_renamed_goes_and_comes_back(served: Served) -> None:
    served.good(1011)
    other = served.file.with_name("lecture_07.py")
    served.file.rename(other)
    served.until(lambda text: text.startswith("status 404"))
    assert shows(served.until(lambda text: not text.startswith("status"), "lectures/lecture_07/"), 1011)
    other.unlink()
    served.until(lambda text: text.startswith("status 404"), "lectures/lecture_07/")
    served.good(1012)


def test_a_folder_with_the_name_of_a_lecture_is_named_until_it_has_another(served: Served) -> None:
    served.good(1033)
    folder = served.file.with_name("lecture_01")
    folder.mkdir()
    (folder / "__init__.py").write_text(lecture(1034))
    both = "two lectures have one name: lectures/lecture_01.py and lectures/lecture_01/"
    assert shows(served.until(lambda text: both in banner(text)), 1033)
    shutil.rmtree(folder)
    served.good(1035)


def test_of_two_quick_saves_the_newer_counts(served: Served) -> None:
    served.good(1013)
    seen: list[str] = []
    served.file.write_text(lecture(1014))
    time.sleep(0.05)
    served.file.write_text(lecture(1015))

    def newer(text: str) -> bool:
        seen.append(text)
        return shows(text, 1015)

    served.until(newer)
    assert not any(shows(text, 1014) for text in seen)


def test_a_section_that_never_ends_is_stopped_by_the_next_save(served: Served) -> None:
    served.good(1016)
    served.file.write_text(lecture("1017\n    while True: pass"))
    time.sleep(1.5)
    assert shows(served.page(), 1016)
    served.good(1018)


def test_a_section_that_never_ends_is_stopped_by_the_time_out(served: Served) -> None:
    served.good(1019)
    served.file.write_text(lecture("1020\n    while True: pass"))
    text = served.until(banner)
    assert f"timed out after {TIMEOUT} s; it had reached lectures/lecture_01.py:19" in banner(text)
    assert shows(text, 1019)
    served.good(1021)


def test_a_lecture_that_ends_its_process_ends_its_own(served: Served) -> None:
    served.good(1022)
    served.file.write_text(lecture("1023\n    import ctypes\n    ctypes.CDLL(None)._exit(3)"))
    text = served.until(banner)
    assert "the process ended with exit status 3, in the section short_one" in banner(text)
    assert shows(text, 1022)
    served.file.write_text(lecture("1024\n    import os\n    os.kill(os.getpid(), 11)"))
    served.until(lambda text: "was killed by signal 11 (SIGSEGV), in the section short_one" in banner(text))
    served.good(1025)


def test_text_of_a_lecture_is_text_on_the_banner(served: Served) -> None:
    served.file.write_text(lecture('open("<script>alert(1)</script>")'))
    raw = urllib.request.urlopen  # the page as it travels, not as it reads
    served.until(lambda text: "FileNotFoundError" in banner(text))
    with raw(f"http://localhost:{served.port}/{PAGE}", timeout=30) as answer:
        assert "<script>alert(1)" not in answer.read().decode()
    served.good(1026)


def test_the_browser_shows_the_new_value_where_the_reader_was(served: Served, browser: Browser) -> None:
    served.good(1027)
    page = browser.new_page(viewport={"width": 1000, "height": 600})
    try:
        page.goto(f"http://localhost:{served.port}/{PAGE}")
        until(page, "document.body.innerText.includes('1,027')")
        page.evaluate("window.scrollTo(0, document.body.scrollHeight / 2)")
        before = page.evaluate("scrollY")
        assert before > 500
        page.evaluate("window.old = true")
        served.file.write_text(lecture(1028))
        until(page, "document.body.innerText.includes('1,028') && !window.old", seconds=PATIENCE)
        until(page, f"Math.abs(scrollY - {before}) < 3", seconds=5)
        served.file.write_text(lecture("(1029"))
        page.wait_for_selector("#litbook-trouble", timeout=PATIENCE * 1000)
        assert page.locator("#litbook-trouble").is_visible()
        assert "1,028" in page.inner_text("body")
        served.file.write_text(lecture(1030))
        until(page, "document.body.innerText.includes('1,030')", seconds=PATIENCE)
        assert page.locator("#litbook-trouble").count() == 0
    finally:
        page.close()


# ------------------------------------------------------------------------- the same pages as a build

PARTS = '''"""Lecture 02: parts."""
from litbook import misbelief, note, requires


def main():
    first()
    second()


def first():
    """First."""
    one()


def one():
    """One."""
    misbelief("One is none.", "one")
    n = 1  # @inspect n
    assert n == 1, "one"


def second():
    """Second."""
    far()


@requires("cuda")
def far():
    """Far."""
    assert 2 > 1, "on a GPU"
'''
SHAPE = """
nav:
  - Start: index.md
  - Lectures: []
plugins: [search, litbook]
markdown_extensions: [attr_list, md_in_html, tables, admonition]
"""


def test_the_preview_offers_the_pages_of_a_build_and_they_say_the_same(tmp_path: Path) -> None:
    for name in ("docs", "lectures"):
        (tmp_path / name).mkdir()
    (tmp_path / "mkdocs.yml").write_text(CONFIG.partition("plugins:")[0] + SHAPE)
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n<!-- claims -->\n")
    heavy = (
        "from litbook",
        "import torch\nfrom litbook",
    )  # the preview has imported it, and counts its threads
    (tmp_path / "lectures" / "lecture_01.py").write_text(lecture().replace(*heavy))
    (tmp_path / "lectures" / "lecture_02.py").write_text(PARTS.replace(*heavy))
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", "site"]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "true"}
    built = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    site = tmp_path / "site"
    pages = sorted(it.parent.relative_to(site).as_posix() for it in site.rglob("index.html"))
    assert {"lectures/devices", "lectures/lecture_02/notebooks/first"} < set(pages)
    data = [it for it in (site / "lectures").rglob("*.*") if it.suffix in (".js", ".json", ".svg", ".ipynb")]
    assert {it.suffix for it in data} == {".js", ".json", ".svg", ".ipynb"}

    with serving(tmp_path) as made:
        made.until(lambda text: "3 claims" in text, "")  # the whole of both has run
        for name in pages:
            address = "" if name == "." else f"{name}/"
            shown, expected = made.page(address), (site / name / "index.html").read_text(encoding="utf-8")
            assert article(shown) == article(expected), address
            assert nav(shown) == nav(unescape(expected)), address
        for file in data:
            assert not made.page(file.relative_to(site).as_posix()).startswith("status"), file


def test_the_page_asked_for_is_there_before_its_lecture_has_run_and_others_say_that_they_are_not(
    tmp_path: Path,
) -> None:
    for name in ("docs", "lectures"):
        (tmp_path / name).mkdir()
    (tmp_path / "mkdocs.yml").write_text(CONFIG)
    (tmp_path / "docs" / "index.md").write_text("# Start\n")
    (tmp_path / "lectures" / "lecture_01.py").write_text(lecture())
    long = 'def first():\n    """First."""\n    import time\n\n    time.sleep(3)'
    file = tmp_path / "lectures" / "lecture_02.py"
    file.write_text(PARTS.replace('def first():\n    """First."""', long).replace("n == 1", "n > 0"))
    with serving(tmp_path) as made:
        text = made.until(lambda text: not text.startswith("status"), "lectures/lecture_02/second/")
        assert (
            "lecture_02.py is running: of its text of now only the page that was asked for has run"
            in banner(text)
        )
        late = made.page("lectures/lecture_02/first/")
        assert late.startswith("status 503")
        assert "This page is not ready: lecture_02.py is running. It comes by itself." in late
        assert "lectures/lecture_02/second/" in made.page("")  # a menu leads there
        made.until(lambda text: "One is none." in text and not banner(text), "lectures/lecture_02/first/")


def article(text: str) -> str:
    """What a page says, without the moment of its run."""
    body = unescape(text.partition("<article")[2].partition("</article")[0])
    assert "<h1" in body
    body = re.sub(r"\d+ \w{3} \d{4}(, [\d.]+ s)?|<td>\d+ s</td>", "", body)
    body = body.replace(' data-search-exclude="1"', "")  # for the search of a build, which takes it away
    return " ".join(body.split())


def nav(text: str) -> list[str]:
    """The addresses in the menu, in order."""
    found = re.findall(r'<a href="([^"]*)" class="md-nav__link', text)
    assert found
    return found


def asked(port: int, path: str, host: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("localhost", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_it_answers_to_the_names_of_this_machine_alone(served: Served) -> None:
    for name in ("localhost", "127.0.0.1", "[::1]"):
        assert asked(served.port, "/", f"{name}:{served.port}")[0] == 200
    for name in (f"evil.example:{served.port}", "localhost", f"localhost:{served.port + 1}", ""):
        status, said = asked(served.port, "/", name)
        assert (status, said) == (403, b"this preview answers to localhost alone\n")


def test_an_odd_question_for_news_is_a_page_that_is_not_there(served: Served) -> None:
    for tail in ("%C2%B2", "x", "-1", "1" * 40, ""):
        assert asked(served.port, f"/livereload/{tail}", f"localhost:{served.port}")[0] == 404
    assert asked(served.port, "/livereload/0", f"localhost:{served.port}")[1].isdigit()


def test_many_browsers_at_once_are_answered(served: Served) -> None:
    start = time.monotonic()
    with ThreadPoolExecutor(100) as pool:
        found = list(pool.map(lambda _: asked(served.port, "/", f"localhost:{served.port}")[0], range(200)))
    assert found == [200] * 200
    assert time.monotonic() - start < 12  # one of them waited longer, where only five could


def test_a_recording_that_says_something_else_is_in_the_banner_as_in_a_build(served: Served) -> None:
    served.good(1031)
    subprocess.run(
        [*LITBOOK, "record", "--device", "cpu"], cwd=served.folder, check=True, capture_output=True
    )
    served.file.write_text(lecture("1031  # as before\n    return"))
    text = served.until(lambda text: "never ran: the claim x > 0" in banner(text))
    shutil.rmtree(served.folder / "lectures" / "recordings")
    served.good(1032)
    subprocess.run(
        [*LITBOOK, "record", "--device", "cpu"], cwd=served.folder, check=True, capture_output=True
    )
    recording = served.folder / "lectures" / "recordings" / "lecture_01.cpu.json"
    recording.write_text(
        re.sub(r'"text":"1032","number":1032', '"text":"1033","number":1033', recording.read_text(), count=1)
    )
    text = served.until(lambda text: "x is not what was recorded" in banner(text))
    assert "was 1,033, is 1,032" in banner(text)
    shutil.rmtree(served.folder / "lectures" / "recordings")
    served.good(1034)


def test_a_port_that_is_taken_is_named_with_a_way_out(served: Served) -> None:
    done = subprocess.run(
        [*SERVE, "--config-file", str(served.folder / "mkdocs.yml"), "--port", str(served.port)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"cannot listen on http://localhost:{served.port}/" in done.stderr
    assert f"another port: litbook serve --port {served.port + 1}" in done.stderr


@pytest.mark.parametrize(
    "file", ["lectures/lecture_02/peaks.py", "tests/samples/tour.py", "tests/unit/test_source.py"]
)
def test_a_text_coloured_in_pieces_is_the_text_coloured_whole(repo: Path, file: str) -> None:
    text = (repo / file).read_text(encoding="utf-8")
    whole = code._color(text, PythonLexer(stripnl=False, ensurenl=False))
    assert [(line.runs, line.in_string) for line in code.lines(text)] == [(tuple(r), i) for r, i in whole]
