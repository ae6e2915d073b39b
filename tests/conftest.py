"""What every test may use, and the rule that nothing skips in silence.

In CI (`CI` is set) a skip is a failure, because a machine that lacks a browser or a library would otherwise
look healthy. Two reasons are exempt, since no machine meets all of them: a reason that begins with
"needs CUDA" or with "needs Python".
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from litbook.record.model import Record

REPO = Path(__file__).resolve().parent.parent
TOOLS = str(REPO / "tools")
if TOOLS not in sys.path:
    sys.path.insert(0, TOOLS)  # the suite also runs where litbook is not installed

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")
MAY_SKIP_IN_CI = ("needs cuda", "needs python", "needs a tool beside")  # the last: what other books use

os.environ.setdefault("MPLBACKEND", "Agg")  # no test opens a window
# Two workers with as many threads of torch as there are cores take twice as long as with one each.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Two cores shared with a browser make times per example meaningless. CI draws twice as many examples, and the same ones
# each time; elsewhere each run draws others.
settings.register_profile("local", deadline=None, max_examples=20)
settings.register_profile("ci", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("ci" if IN_CI else "local")

MARKERS = (
    "browser: drives Chromium; run last in its file, because Playwright keeps an event loop running",
    "cuda: needs a CUDA device; skipped where there is none",
    "slow: run in CI alone; elsewhere -m slow asks for it",
)

# Files that take more than ten seconds, the longest first: at the end no worker sits on one of them alone.
LONGEST = (
    "test_notebook", "test_accessibility", "test_player", "test_launches", "test_napkin", "test_failures", "test_browser",
    "test_interpreter", "test_weight", "test_swallowed", "test_gpu_standin", "test_napkin_formulas", "test_kills",
    "test_preview", "test_lectures", "test_recordings", "test_benchmarks", "test_devices_command", "test_new",
    "test_mutants", "test_lecture_04", "test_site", "test_older", "test_pdf", "test_process", "test_growth", "test_prose",
    "test_lecture_02", "test_suite",
)  # fmt: skip

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the working tree."""
    return REPO


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the system's Chromium. Without one: a skip, in CI a failure."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    return found


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A Playwright browser, one for each file. Each test opens its own page or context and closes it."""
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install -e .[dev]")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(BROWSER_ARGS))
        yield browser
        browser.close()


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background job starts so, and hands it on: no Ctrl-C would reach what the tests start.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the longest files. Marks the users of the browser, and puts them at the end of their file.

    There the browser closes. While Playwright's synchronous interface is open, this thread has a running event
    loop, and `asyncio.run` in any other test would be refused.
    """
    paths = dict.fromkeys(item.path for item in items)
    order = {name: number for number, name in enumerate(LONGEST)}
    files = {path: (order.get(path.stem, len(order)), number) for number, path in enumerate(paths)}
    for item in items:
        if {"browser", "chromium"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("browser")
    items.sort(key=lambda item: (files[item.path], item.get_closest_marker("browser") is not None))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs CUDA: torch sees no such device")


# ------------------------------------------------------------------------------------------- skips


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    """Why `report` was skipped; None if it was not. An expected failure is no skip."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return None
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI turns a skip into a failure, unless its reason is one of `MAY_SKIP_IN_CI`."""
    reason = skip_reason(report)
    if IN_CI and reason is not None and not reason.lower().startswith(MAY_SKIP_IN_CI):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} would be skipped, and CI skips nothing: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_skipped(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Every skipped test by name, with its reason."""
    skipped = [(r.nodeid, skip_reason(r)) for r in terminalreporter.stats.get("skipped", [])]
    terminalreporter.section(f"skipped: {len(skipped)}")
    for name, reason in skipped:
        terminalreporter.write_line(f"{name}: {reason}")


# ---------------------------------------------------------------------------------- made once for all


@pytest.fixture(scope="session")
def record_02(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The record of lecture 02 on the CPU, from one run for the session and all its workers."""
    return _recorded("lecture_02", tmp_path_factory)


@pytest.fixture(scope="session")
def record_03(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The same of lecture 03."""
    return _recorded("lecture_03", tmp_path_factory)


@pytest.fixture(scope="session")
def record_04(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The same of lecture 04, whose ranks are launched by the command."""
    return _recorded("lecture_04", tmp_path_factory)


@pytest.fixture(scope="session")
def record_05(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The same of lecture 05."""
    return _recorded("lecture_05", tmp_path_factory)


def _recorded(name: str, folders: pytest.TempPathFactory) -> Record:
    """The record of a lecture: from the strict build that `make test` has made just before, else from a run."""
    from tests.running import COMMAND, REPO

    from litbook.record import encoding

    def make(file: Path) -> None:
        words = [*COMMAND, str(REPO / "lectures" / name), "--quiet", "--device", "cpu", "--out", str(file)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        assert file.is_file(), done.stdout + done.stderr

    if built := os.environ.get("LITBOOK_RECORDS"):
        return encoding.read(Path(built) / f"{name}.json")
    return encoding.read(_once(folders, f"{name}.json", make))


@pytest.fixture(scope="session")
def site(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this tree, built strictly, once for the session and all its workers.

    `make test` has built it just before, and says where; else it is built into a folder of its own.
    """
    if built := os.environ.get("LITBOOK_SITE"):
        return Path(built)

    def make(target: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
            cwd=repo, env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
            capture_output=True, text=True, check=False, timeout=840,
        )  # fmt: skip
        assert done.returncode == 0, f"mkdocs build --strict\n{done.stdout}{done.stderr}"

    return _once(tmp_path_factory, "site", make)


def _once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The file or folder `name`, made by the first worker that asks for it; the others wait."""
    from filelock import FileLock

    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # workers have folders beside each other
    target, whole = shared / name, shared / f"{name}.whole"
    with FileLock(f"{target}.lock"):
        if not whole.exists():
            make(target)
            whole.touch()
    return target


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The site, served on this machine: `http://127.0.0.1:PORT/`."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
            """Nothing: a request is no news."""

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
