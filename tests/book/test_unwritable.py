"""What cannot be written ends with a sentence, and no traceback: the file, why, and the way out."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mkdocs.exceptions import Abort
from tests.running import LITBOOK, REPO

from litbook import cli
from litbook.files import WAYS_OUT, NotWritten, write
from litbook.run import process
from litbook.site import scaffold
from litbook.site.plugin import LitbookPlugin

ENV = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPO / "tools")}
READ_ONLY = "make it writable, or work in a copy of the book"
KEPT_FROM = [(30, "Read-only file system", READ_ONLY), (13, "Permission denied", READ_ONLY),
             (28, "No space left on device", "make room there, and try again")]  # fmt: skip


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Path]:
    """A new book, in which the commands run."""
    scaffold.begin(tmp_path / "book")
    with contextlib.chdir(tmp_path / "book"):
        yield tmp_path / "book"


@pytest.mark.parametrize(("number", "why", "way_out"), KEPT_FROM)
def test_a_badge_and_a_recording(
    book: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    why: str,
    way_out: str,
) -> None:
    def refuse(_: int) -> None:
        raise OSError(number, why)

    monkeypatch.setattr(os, "fsync", refuse)
    assert cli.litbook(["badge", "docs/claims.svg"]) == 2
    assert capfd.readouterr().err == f"litbook: docs/claims.svg cannot be written: {why}\n    {way_out}\n"
    assert cli.litbook(["record", "--device", "cpu"]) == 2
    recording = "lectures/recordings/lecture_01.cpu.json"
    said = f"litbook: {recording}: {why}; nothing was written\n    {way_out}\n"
    assert capfd.readouterr().err == said
    assert not (book / recording).exists()
    # What writes nothing into the book works all the same.
    assert cli.litbook(["run", "lecture_01", "--quiet"]) == 0
    assert cli.litbook(["check", "lecture_01", "--select", "vacuous"]) == 0


@pytest.mark.parametrize(("number", "why", "way_out"), KEPT_FROM)
def test_a_temporary_folder_and_a_new_book(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, why: str, way_out: str
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError(number, why)

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(NotWritten) as raised, process.private_folder():
        pass
    assert str(raised.value) == f"a temporary folder cannot be written: {why}\n    {way_out}"
    monkeypatch.setattr(Path, "write_text", refuse)
    assert cli.litbook(["new", str(tmp_path / "book")]) == 2


@pytest.mark.parametrize(("number", "why", "way_out"), KEPT_FROM)
def test_what_mkdocs_writes_itself(number: int, why: str, way_out: str) -> None:
    plugin = LitbookPlugin()
    plugin.site = "/book/site"
    for error, file in (
        (OSError(number, why), "/book/site"),  # while it is written nobody says which
        (OSError(number, why, "/book/site/index.html"), "/book/site/index.html"),
        (OSError(number, why, "/theme/cli.css", None, "/book/site/cli.css"), "/book/site/cli.css"),
    ):
        with pytest.raises(Abort) as raised:
            plugin.on_build_error(error=error)
        assert str(raised.value) == f"{file} cannot be written: {why}\n    {way_out}"
    plugin.on_build_error(error=OSError(2, "No such file or directory", "/book/docs/a.md"))  # MkDocs says it


def test_a_build_that_may_write_no_large_file(book: Path) -> None:
    """As on a disk that is full: the pages are written, and then a font does not fit."""
    limit = 60_000
    assert max(path.stat().st_size for path in book.rglob("*") if path.is_file()) < limit
    done = subprocess.run(
        [*LITBOOK, "build"],
        env=ENV,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(
        " cannot be written: File too large\n    let files be larger (ulimit -f), and try again"
    )


def test_a_build_and_a_preview_where_a_file_stands_in_the_way(book: Path) -> None:
    (book / "docs" / "assets").write_text("in the way")
    said = "docs/assets/litbook/"
    way_out = "\n    a file stands where a folder belongs: move it away\n"
    done = subprocess.run([*LITBOOK, "build"], env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stdout and way_out in done.stdout and "Traceback" not in done.stdout + done.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [*LITBOOK, "serve", "--port", port]
    with subprocess.Popen(command, env=ENV, stderr=subprocess.PIPE, text=True) as served:
        assert served.stderr is not None
        lines = [next(served.stderr) for _ in range(2)]
        served.send_signal(signal.SIGINT)
        rest = served.stderr.read()
    assert said in lines[0] and lines[1] == way_out[1:]
    assert "Traceback" not in rest


def test_every_reason_has_its_way_out(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for file in (tmp_path / "folder", tmp_path / "file" / "a.md", tmp_path / "file" / "b" / "a.md"):
        with pytest.raises(NotWritten) as raised:
            write(file, b"")
        first, _, second = str(raised.value).partition("\n    ")
        assert first.startswith(f"{file} cannot be written: ") and second in WAYS_OUT.values()


def test_folders_of_a_preview_that_was_killed_are_swept_by_the_next_run(tmp_path: Path) -> None:
    """Also those of `multiprocessing`, whose fork server a preview has."""
    (tmp_path / "lectures").mkdir()
    begins = "import os, sys; from pathlib import Path; from litbook.run.process import ForkServerRunner; w = ForkServerRunner(Path('lectures'))"
    sweeps = "from litbook.run import process\nwith process.private_folder(): pass"
    ends = {"killed": "os.kill(os.getpid(), 9)", "ended": "w.end()", "left": "pass"}
    with tempfile.TemporaryDirectory(prefix="sw-") as short:  # a socket's path may have a hundred letters
        env = {**ENV, "TMPDIR": short}
        for how, end in ends.items():
            command = [sys.executable, "-c", f"{begins}; {end}"]
            subprocess.run(command, cwd=tmp_path, env=env, check=how != "killed")
            names = [path.name for path in Path(short).iterdir()]
            assert [name[:8] for name in names] == (["litbook-"] if how == "killed" else []), how
            subprocess.run([sys.executable, "-c", sweeps], env=env, check=True)
            assert [*Path(short).iterdir()] == [], how
