"""`make serve`: save, and the page is new; what is wrong stands on the page and in the terminal."""

from __future__ import annotations

import contextlib
import functools
import http.client
import http.server
import json
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
from tests.records import unsealed
from tests.running import LITBOOK, uncoded, until

from litbook.page import highlight
from litbook.site.preview import server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SERVE = [*LITBOOK, "serve"]
PATIENCE = 240.0  # seconds; on an idle machine all of it takes less than one
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
        return self.until(lambda text: shows(text, value) and not banner(text) and not running(text))

    def news(self, text: str, path: str = PAGE) -> dict[str, object]:
        """What a browser hears that has this text of the page open, as soon as there is something to hear."""
        seen = re.search(r'data-news="([0-9-]+)"', text)
        assert seen, text[-300:]
        told: dict[str, object] = json.loads(self.page(f"livereload/{seen[1]}?/{path}"))
        return told

    def run_of(self, text: str) -> dict[str, object]:
        """The first news that a run is under way; on a busy machine the page before it may come in between."""
        until = time.monotonic() + PATIENCE
        while not running(str((told := self.news(text))["notice"])) and time.monotonic() < until:
            time.sleep(0.02)
        return told


def running(text: str) -> str:
    """What a page says of runs that are under way."""
    notice = re.search(r'<div id="litbook-running"[^>]*>(.*?)</div>', text, re.DOTALL)
    return notice[1] if notice else ""


def banner(text: str) -> str:
    found = re.search(r'<div id="litbook-trouble"[^>]*>(.*?)</div>', text, re.DOTALL)
    return uncoded(found[1]) if found else ""


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
        ".venv/bin/python -m litbook serve --port 8003" in done.stdout.splitlines()
    )  # make may say more in make


def test_a_saved_section_runs_alone_and_its_page_is_new(served: Served) -> None:
    served.good(1002)
    served.printed = ""
    start = time.monotonic()
    served.good(1003)
    assert time.monotonic() - start < 60  # two seconds on an idle machine
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


def test_from_a_save_to_its_page_every_page_of_the_lecture_says_that_it_runs_and_of_which_run_its_verdict_is(
    served: Served, tmp_path: Path
) -> None:
    text = served.good(1040)
    first = served.page("")
    assert not running(text) and not running(first)
    start = time.monotonic()
    end = tmp_path / "end"
    waiting = f"import pathlib, time\n    while not pathlib.Path({str(end)!r}).exists(): time.sleep(0.05)"
    served.file.write_text(lecture(f"-1041\n    {waiting}"))
    told = served.run_of(text)  # an open page hears of it at once, and is not another yet
    assert time.monotonic() - start < 20  # 0.15 s on an idle machine; the run takes until it is let go
    older = (
        r"lecture_01\.py is running: what stands here is of the run of \d\d:\d\d:\d\d, before the last save"
    )
    assert re.fullmatch(older, running(str(told["notice"])))
    assert served.news(first, "")["notice"] == told["notice"]
    for path in (PAGE, "lectures/", ""):
        assert re.fullmatch(older, running(served.page(path))), path
    old = served.page()
    assert shows(old, 1040) and not banner(old)  # what the notice is about: its claim still holds there
    end.touch()
    again = served.news(old)
    assert again["pages"] != told["pages"]  # the browser asks for the page anew
    text = served.page()
    assert "claim fails" in banner(text) and not running(text)
    served.good(1042)


def test_while_a_text_without_a_record_is_mended_its_page_says_that_the_mended_one_runs(
    served: Served,
) -> None:
    served.good(1043)
    served.file.write_text(lecture("(1044"))
    text = served.until(banner)
    assert not running(text)  # it has been judged
    served.file.write_text(lecture("1045\n    import time\n    time.sleep(2)"))
    assert "what stands here is of the run of" in running(str(served.run_of(text)["notice"]))
    served.good(1046)


def test_a_file_that_lectures_may_read_is_a_save_of_each(served: Served) -> None:
    text = served.good(1047)
    beside = served.file.with_name("beside.txt")
    beside.write_text("read me")
    assert "lecture_01.py is running" in running(str(served.run_of(text)["notice"]))
    served.until(lambda text: not running(text))
    beside.unlink()
    served.good(1048)


def test_what_looks_like_a_lecture_is_named_until_it_is_one(served: Served) -> None:
    served.good(1055)
    draft = served.file.with_name("lecture-b.py")
    draft.write_text(lecture(1056))
    served.until(lambda text: "lectures/lecture-b.py looks like a lecture and is none" in banner(text))
    draft.unlink()
    served.until(lambda text: not banner(text) and not running(text))


def test_the_folder_of_lectures_is_missed_and_its_return_seen(served: Served) -> None:
    served.good(1049)
    folder, aside = served.file.parent, served.file.parent.with_name("aside")
    folder.rename(aside)
    text = served.until(banner)
    assert (
        "there is no folder lectures/\n    bring it back, or mkdocs.yml says where the lectures are"
        in banner(text)
    )
    assert shows(text, 1049)
    (aside / served.file.name).write_text(
        lecture(1050)
    )  # the watch of the folder that was there is at its end
    shutil.copytree(aside, folder)
    served.until(lambda text: shows(text, 1050) and not banner(text) and not running(text))
    shutil.rmtree(aside)
    served.good(1051)


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


def test_an_open_page_says_that_its_lecture_runs_and_stays_until_there_is_another(
    served: Served, browser: Browser
) -> None:
    served.good(1052)
    page = browser.new_page(viewport={"width": 1000, "height": 600})
    try:
        page.goto(f"http://localhost:{served.port}/{PAGE}")
        until(page, "document.body.innerText.includes('1,052')")
        page.evaluate("window.old = true")
        top = page.evaluate("document.querySelector('h1').getBoundingClientRect().top")
        served.file.write_text(lecture("1053\n    import time\n    time.sleep(4)"))
        notice = page.wait_for_selector("#litbook-running", timeout=3000)
        assert notice is not None and "lecture_01.py is running" in notice.inner_text()
        assert page.evaluate("window.old && document.body.innerText.includes('1,052')")
        assert page.evaluate("document.querySelector('h1').getBoundingClientRect().top") == top
        until(page, "document.body.innerText.includes('1,053') && !window.old", seconds=PATIENCE)
        assert page.locator("#litbook-running").count() == 0
    finally:
        page.close()


def test_a_page_of_another_site_has_neither_the_players_data_nor_a_frame(
    served: Served, browser: Browser, tmp_path: Path
) -> None:
    served.good(1054)
    ours = f"http://localhost:{served.port}/{PAGE}"
    with urllib.request.urlopen(f"{ours}index.player.js", timeout=30) as said:
        assert b"litbookSteps" in said.read()
    (tmp_path / "index.html").write_text(
        f'<script src="{ours}index.player.js"></script><iframe src="{ours}"></iframe><a href="{ours}">there</a>'
    )
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    page = browser.new_page()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        for name in ("127.0.0.1", "localhost"):  # another site; another port of the same
            page.goto(f"http://{name}:{elsewhere.server_port}/")
            assert page.evaluate("typeof litbookSteps") == "undefined"
            assert len(page.frames) == 2
            assert "1,054" not in page.frames[1].content()
        page.click("a")
        until(page, "document.body.innerText.includes('1,054')")
        page.close()
        elsewhere.shutdown()


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
    assert {"lectures/devices", "lectures/lecture_02/first"} < set(pages)
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
        for name in ("search/search_index.json", "search/index.js"):
            assert searched(made.page(name)) == searched((site / name).read_text(encoding="utf-8")), name


def searched(text: str) -> object:
    """What a file of the search says; a page is found wherever it stands in it."""
    index = unescape(text).partition("self.__litbook = ")[2].partition("\n")[0]
    content = json.loads(index or unescape(text))
    return sorted(content) if isinstance(content, list) else content


def test_a_link_to_a_lecture_that_has_not_run_yet_is_no_wrong_link_and_a_wrong_one_is(tmp_path: Path) -> None:
    for name in ("docs", "lectures"):
        (tmp_path / name).mkdir()
    (tmp_path / "mkdocs.yml").write_text(CONFIG)
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n[All](lectures/index.md)\n")
    slow = "import time\ntime.sleep(2)\nfrom litbook"
    (tmp_path / "lectures" / "lecture_01.py").write_text(lecture().replace("from litbook", slow, 1))
    with serving(tmp_path) as made:
        made.until(lambda text: "Start" in text, "")
        assert "is not found" not in made.printed
        (tmp_path / "docs" / "index.md").write_text("# Start\n\n[All](lectures/nowhere.md)\n")
        made.until(lambda text: "nowhere" in text, "")
        made.until(lambda _: "'lectures/nowhere.md', but the target is not found" in made.printed, "")


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
        assert running(text) == "lecture_02.py is running: of its text of now only this page has run"
        late = made.page("lectures/lecture_02/first/")
        assert late.startswith("status 503")
        assert "This page is not ready: lecture_02.py is running. It comes by itself." in late
        assert "lectures/lecture_02/second/" in made.page("")  # a menu leads there
        assert running(late) == "lecture_02.py is running for the first time"
        made.until(lambda text: "One is none." in text and not running(text), "lectures/lecture_02/first/")


def article(text: str) -> str:
    """What a page says, without the moment of its run, and what memory it took."""
    body = unescape(text.partition("<article")[2].partition("</article")[0])
    assert "<h1" in body
    body = re.sub(r"\d+ \w{3} \d{4}(, [\d.]+ s)?|<td>\d+ s</td>|at most [\d.]+ of its", "", body)
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
    for tail in ("%C2%B2-1", "x", "1", "-1", "1-", "1" * 40 + "-1", ""):
        assert asked(served.port, f"/livereload/{tail}", f"localhost:{served.port}")[0] == 404
    told = json.loads(asked(served.port, "/livereload/0-0", f"localhost:{served.port}")[1])
    assert [*told] == ["pages", "notices", "notice"]


# ------------------------------------------------------------------------------- the server alone


class Fixed:
    """A site that is there, for a server in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tidings, self.lock = folder, server.NewsChannel(1.0), threading.RLock()
        (folder / "page").mkdir()
        (folder / "page" / "index.html").write_text("<body><p>secret</p></body>")
        (folder / "steps.js").write_text("steps = 'secret'")

    def make(self, address: str) -> str:
        return ""

    def banner(self, address: str) -> str:
        return ""

    notice = make


@pytest.fixture
def fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[server.Server]:
    monkeypatch.setattr(server.Handler, "timeout", 0.3)
    with server.Server(Fixed(tmp_path), ("localhost", 0)) as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield made
        made.shutdown()


def answer(made: server.Server, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    with contextlib.closing(
        http.client.HTTPConnection("localhost", made.server_port, timeout=30)
    ) as connection:
        connection.request(
            "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        said = connection.getresponse()
        return said.status, said.headers, said.read()


@pytest.mark.parametrize(
    ("host", "asked", "status"),
    [
        ("localhost", "author.example", 403),
        ("0.0.0.0", "author.example", 200),
        ("127.0.0.1", "localhost", 200),
    ],
)
def test_a_preview_answers_by_other_names_only_where_it_serves_other_machines(
    tmp_path: Path, host: str, asked: str, status: int
) -> None:
    with server.Server(Fixed(tmp_path), (host, 0)) as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        said = answer(made, "/page/", Host=f"{asked}:{made.server_port}")
        made.shutdown()
    assert said[0] == status


FRAMED = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"}
VISIT = {"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
SCRIPT = {"Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "script"}
FETCH = {"Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty"}


@pytest.mark.parametrize("path", ["/page/", "/steps.js", "/livereload/0-0?/page/"])
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("how", [SCRIPT, FETCH, FRAMED, {}], ids=["script", "fetch", "frame", "unsaid"])
def test_the_page_of_another_site_reads_nothing(
    fixed: server.Server, path: str, site: str, how: dict[str, str]
) -> None:
    status, _, content = answer(fixed, path, Sec_Fetch_Site=site, **how)
    assert (status, content) == (403, b"this preview answers to its own pages alone\n")


@pytest.mark.parametrize("asking", [{}, {"Sec_Fetch_Site": "none", **VISIT}, {"Sec_Fetch_Site": "same-origin", **FETCH}, {"Sec_Fetch_Site": "cross-site", **VISIT}], ids=["no browser", "typed", "its own", "a link"])  # fmt: skip
def test_its_own_pages_and_whoever_follows_a_link_are_answered(
    fixed: server.Server, asking: dict[str, str]
) -> None:
    status, _, content = answer(fixed, "/page/", **asking)
    assert status == 200 and b"secret" in content


@pytest.mark.parametrize("path, status", [("/page/", 200), ("/page", 301), ("/steps.js", 200), ("/none.html", 404), ("/livereload/0-0", 200), ("/livereload/script.js", 200)])  # fmt: skip
def test_every_answer_says_that_no_other_site_may_hold_it(
    fixed: server.Server, path: str, status: int
) -> None:
    told, headers, _ = answer(fixed, path)
    assert told == status
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["/" + "a" * 256, "/" + "a" * 256 + "/", "/a/" + "%F0%9F%98%80" * 64 + "/b", "/%00", "/" + "a/" * 5000],
)
def test_a_name_that_no_file_has_is_a_page_that_is_not_there(fixed: server.Server, path: str) -> None:
    status, _, content = answer(fixed, path)
    assert status == 404
    assert b"There is no such page." in content


def test_a_page_and_its_banner_are_of_one_moment(tmp_path: Path) -> None:
    """A run that ends while a page is answered waits: else a banner of now stood above a page of before."""

    class Changing(Fixed):
        run, moment = threading.Thread(), "before"

        def make(self, address: str) -> str:
            (self.folder / "page" / "index.html").write_text(f"<body><p>page {self.moment}</p></body>")
            self.run = threading.Thread(target=self.end_run)
            self.run.start()
            self.run.join(0.2)  # time for it, if nothing held it
            return ""

        def end_run(self) -> None:
            with self.lock:
                self.moment = "after"

        def banner(self, address: str) -> str:
            return f"<p>banner {self.moment}</p>"

    site = Changing(tmp_path)
    with server.Server(site, ("localhost", 0)) as made:
        threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        _, _, content = answer(made, "/page/")
        site.run.join()
        made.shutdown()
    assert b"page before" in content
    assert b"banner before" in content
    assert site.moment == "after"


def test_a_connection_that_says_nothing_or_half_is_ended(fixed: server.Server) -> None:
    for said in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: loc"):
        with socket.create_connection(("localhost", fixed.server_port), timeout=20) as connection:
            connection.sendall(said)
            assert connection.recv(100) == b""  # the other end has closed, long before these 20 s
    assert answer(fixed, "/page/")[0] == 200
    assert server.SILENCE <= 10


def test_many_browsers_at_once_are_answered(served: Served) -> None:
    start = time.monotonic()
    with ThreadPoolExecutor(100) as pool:
        found = list(pool.map(lambda _: asked(served.port, "/", f"localhost:{served.port}")[0], range(200)))
    assert found == [200] * 200
    assert time.monotonic() - start < 60  # where only five could wait, some were never answered in that time


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
    text = unsealed(recording.read_text())
    recording.write_text(re.sub(r'"text":"1032","number":1032', '"text":"1033","number":1033', text, count=1))
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
    "file",
    [
        "lectures/lecture_02/peaks.py",
        "tests/samples/tour.py",
        "tests/unit/test_source.py",
        "tests/unit/test_instrument.py",  # every statement of the language
    ],
)
def test_a_text_coloured_in_pieces_is_the_text_coloured_whole(repo: Path, file: str) -> None:
    text = (repo / file).read_text(encoding="utf-8")
    whole = highlight.color_lines(text, PythonLexer(stripnl=False, ensurenl=False))
    assert [(line.runs, line.in_string) for line in highlight.lines(text)] == [
        (tuple(r), i) for r, i in whole
    ]
