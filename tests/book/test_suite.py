"""How the suite itself runs: no skip is silent, a worker takes whole files, Ctrl-C reaches what tests start."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import LONGEST
from tests.running import WORKERS


@pytest.fixture
def suite(repo: Path, tmp_path: Path) -> Path:
    """A folder with this suite's conftest, and no test yet."""
    shutil.copy(repo / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def pytest_says(suite: Path, *words: str, ci: str = "", ignoring: bool = False) -> tuple[int, str]:
    """The exit status and the output of pytest in `suite`; `ignoring`: as a shell's background job."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, suite],
        cwd=suite, env={**os.environ, "CI": ci}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN if ignoring else signal.SIG_DFL),
    )  # fmt: skip
    return done.returncode, done.stdout


# ------------------------------------------------------------------------------------------- skips

SKIPPING = """
import pytest

def test_browser():
    pytest.skip("no browser")

@pytest.mark.skipif(True, reason="needs Python 3.99")
def test_version():
    pass

def test_fine():
    pass
"""


@pytest.mark.parametrize(("ci", "status", "line"), [
    ("", 0, "test_sample.py::test_browser: no browser"),
    ("true", 1, "test_sample.py::test_browser would be skipped, and CI skips nothing: no browser"),
])  # fmt: skip
def test_no_skip_is_silent(suite: Path, ci: str, status: int, line: str) -> None:
    (suite / "test_sample.py").write_text(SKIPPING)
    ended, said = pytest_says(suite, ci=ci)
    assert ended == status, said
    assert line in said
    assert "test_sample.py::test_version: needs Python 3.99" in said


# ----------------------------------------------------------------------------------------- workers

# Each test leaves a line: its worker's process, its file, and what it is.
NOTING = """
import os, pathlib, pytest

def note(what):
    with open(pathlib.Path(__file__).with_name("notes"), "a") as file:
        print(os.getpid(), pathlib.Path(__file__).stem, what, file=file)

@pytest.fixture(scope="module")
def costly():
    note("costly")

@pytest.mark.parametrize("number", range(4))
def test_number(costly, number):
    note("test")

def test_that_fails(costly):
    note("test")
    assert not "this one"
"""


def test_a_worker_takes_whole_files_and_sets_up_each_once(suite: Path) -> None:
    files = [f"test_{letter}" for letter in "abcdef"]
    for file in files:
        (suite / f"{file}.py").write_text(NOTING)
    ended, said = pytest_says(suite, *WORKERS)
    assert ended == 1
    assert "6 failed, 24 passed" in said
    notes = [line.split() for line in (suite / "notes").read_text().splitlines()]
    assert len({worker for worker, _, _ in notes}) == int(WORKERS[1])
    for file in files:
        of_file = [(worker, what) for worker, name, what in notes if name == file]
        assert sorted(what for _, what in of_file) == ["costly", *["test"] * 5]
        assert len({worker for worker, _ in of_file}) == 1


def test_the_longest_files_begin_and_each_is_there(suite: Path, repo: Path) -> None:
    assert {f"{name}.py" for name in LONGEST} <= {file.name for file in (repo / "tests").rglob("test_*.py")}
    for file in ("test_a", *LONGEST[:2][::-1]):
        (suite / f"{file}.py").write_text("def test(): pass")
    _, said = pytest_says(suite, "--collect-only", "-q")
    assert re.findall(r"^(test_\w+)\.py::test$", said, re.MULTILINE) == [*LONGEST[:2], "test_a"]


DRIVING = """
import asyncio

def test_page(browser):
    page = browser.new_page()
    assert page.evaluate("1 + 1") == 2
    page.close()

async def three():
    return 3

def test_loop():
    assert asyncio.run(three()) == 3
"""


def test_a_browser_leaves_no_event_loop_to_the_tests_of_its_file_or_of_another(
    suite: Path, chromium: str
) -> None:
    for file in ("test_a.py", "test_b.py"):
        (suite / file).write_text(DRIVING)
    ended, said = pytest_says(suite, "-v")
    assert ended == 0, said
    order = re.findall(r"^test_(\w)\.py::test_(\w+) PASSED", said, re.MULTILINE)
    assert order == [("a", "loop"), ("a", "page"), ("b", "loop"), ("b", "page")]


# ----------------------------------------------------------------------------------------- signals

INTERRUPTING = """
import os, signal, subprocess, sys
import pytest

def test_ctrl_c_reaches_this_process():
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)

def test_ctrl_c_reaches_a_child():
    ask = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    assert b"KeyboardInterrupt" in subprocess.run([sys.executable, "-c", ask], stderr=-1).stderr
"""


@pytest.mark.parametrize("workers", [[], WORKERS], ids=["one", "several"])
def test_ctrl_c_is_no_longer_ignored_where_a_shell_started_the_suite_in_the_background(
    suite: Path, workers: list[str]
) -> None:
    (suite / "test_sample.py").write_text(INTERRUPTING)
    ended, said = pytest_says(suite, *workers, ignoring=True)
    assert ended == 0, said
    assert "2 passed" in said
