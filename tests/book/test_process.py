"""A run is a process, and a verdict comes from a run: whatever a lecture does to its process, no verdict is false.

Each of these lectures ended well, or took the next one with it, when lectures ran in the process that judges.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.running import HEAD, REPO, claims, line_of, messages, sampled, section, shown, write
from tests.running import process as command

from litbook.errors import LitbookError
from litbook.record import encoding
from litbook.run import process
from litbook.run.run import run

FALSE = "assert 1 == 2, 'false'"
NO_VERDICT = (
    "; no verdict without a whole record\n"
    "    a lecture ends by coming to its end: let nothing in it end or replace its process"
)


def two(first: str, before: str = "") -> str:
    """A lecture whose second section is never to be taken for done by what the first does."""
    indented = "\n".join(f"    {line}" for line in first.splitlines())
    return f"{HEAD}{before}\ndef main():\n    one()\n    two()\ndef one():\n{indented}\ndef two():\n    {FALSE}\n"


def ended(folder: Path, text: str) -> str:
    """What is said of a lecture that leaves no whole record."""
    with pytest.raises(process.ProcessDied) as caught:
        process.record_of(write(folder, text))
    assert caught.value.exit_status == 1
    return str(caught.value)


def test_a_process_makes_the_record_that_a_run_here_makes(tmp_path: Path) -> None:
    path = write(tmp_path, section("x = [1.5, 'two']  # @inspect x\nassert x[0] == 1.5\nnote('Prose.')"))
    there, here = process.record_of(path), run(path)
    assert (there.sources, there.definitions) == (here.sources, here.definitions)
    for other, it in zip(there.sections, here.sections, strict=True):
        assert replace(other, seconds=0.0) == replace(it, seconds=0.0)
    assert 2**22 < there.peak < there.environment.memory, "bytes of main memory"
    assert there.asked == () and process.record_of(path, sections=["one"]).asked == ("one",)


# ------------------------------------------------------------------------ it ends, or is replaced


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ctypes.CDLL(None)._exit(7)", "ended with exit status 7"),
        ("ctypes.CDLL(None)._exit(0)", "ended with exit status 0"),
        ("os.execv('/bin/true', ['true'])", "ended with exit status 0"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by signal 9 (SIGKILL)"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "was killed by signal 15 (SIGTERM)"),
        ("posix._exit(0)", "ended with exit status 0"),
        ("subprocess.run(['kill', '-9', str(os.getppid())]); os._exit(0)", None),
    ],
)
def test_a_process_that_ends_early_gives_no_verdict(tmp_path: Path, line: str, says: str | None) -> None:
    text = two(line, "import ctypes, json, os, posix, signal, subprocess")
    if says is None:  # it kills the process that judges: there is nobody to say that all is well
        done = command(write(tmp_path, text))
        assert done.returncode == -signal.SIGKILL
        return
    assert ended(tmp_path, text) == f"lecture_sample.py: the process {says}, in the section one{NO_VERDICT}"


def test_a_module_that_ends_the_process_did_so_before_the_first_section(tmp_path: Path) -> None:
    text = section("pass", "import ctypes\nctypes.CDLL(None)._exit(0)")
    assert "ended with exit status 0, before its first section; no verdict" in ended(tmp_path, text)


def test_what_a_lecture_leaves_in_the_place_of_its_record_is_none(tmp_path: Path) -> None:
    whole = json.dumps(encoding.dumps(run(write(tmp_path, section("n = 1\nassert n == 1")))))
    head = '{"key": "", "kind": "record", "sha256": ""}'
    forged = f"open(os.environ['TMPDIR'] + '/../left', 'w').write({head!r} + chr(10) + {whole})\nctypes.CDLL(None)._exit(0)"
    assert "no verdict without a whole record" in ended(tmp_path, two(forged, "import ctypes, os"))
    cut = "open(os.environ['TMPDIR'] + '/../left.new', 'w').write('x')\nctypes.CDLL(None)._exit(0)"
    assert "no verdict without a whole record" in ended(tmp_path, two(cut, "import ctypes, os"))


def test_a_record_that_the_process_cannot_write_as_it_is_gives_no_verdict(tmp_path: Path) -> None:
    assert "in the section two; no verdict" in ended(
        tmp_path, two("json.JSONEncoder.encode = lambda *_: '{}'", "import json")
    )


def test_a_fork_that_comes_back_to_this_code_leaves_nothing(tmp_path: Path) -> None:
    text = two(
        "pid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: open(OUT, 'w').close()",
        f"import os\nOUT = {str(tmp_path / 'ran')!r}",
    )
    made = process.record_of(write(tmp_path, text))
    assert (tmp_path / "ran").exists()
    assert claims(made) == {"1 == 2": "fails"}


# ------------------------------------------------------------------------ it changes what judges

CHANGES = {
    "dictConfig": "logging.config.dictConfig({'version': 1, 'root': {'level': 'INFO'}})",
    "setLevel": "logging.disable(99); [it.setLevel(99) for it in map(logging.getLogger, ['', 'mkdocs'])]",
    "Logger.handle": "logging.Logger.handle = lambda *_: None",
    "sys.exit": "sys.exit = os._exit = lambda *_: None",
    "json": "json.dumps = json.JSONEncoder.default = lambda *a, **k: '{}'",
    "os": "os.replace = os.open = os.write = os.getpid = os.close = None",
    "io": "import io; io.open = io.TextIOWrapper = None; os.fsync = print",
    "trace": "sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None)",
    "limits": "sys.setrecursionlimit(60); sys.set_int_max_str_digits(640)",
    "modules": "[sys.modules.pop(it) for it in list(sys.modules) if it.startswith(('litbook', 'json'))]",
    "hooks": "sys.meta_path.clear(); sys.path_hooks.clear(); sys.path.clear(); sys.excepthook = print",
    "stdout": "os.close(1); os.close(2); sys.stdout = sys.stderr = sys.__stdout__ = None",
    "files": "os.closerange(0, 200)",
    "folder": "shutil.rmtree(os.getcwd()); os.chdir('/'); os.environ.clear()",
    "threads": "threading.Thread(target=time.sleep, args=(600,)).start()",
    "atexit": "atexit.register(os._exit, 0)",
}


@pytest.mark.parametrize("name", sampled([*CHANGES], 3))
def test_a_false_claim_fails_whatever_the_section_before_it_has_changed(tmp_path: Path, name: str) -> None:
    text = two(
        CHANGES[name], "import atexit, json, logging, logging.config, os, shutil, sys, threading, time"
    )
    made = process.record_of(write(tmp_path, text))
    assert claims(made) == {"1 == 2": "fails"}
    still = "still runs after the end: nobody sees what it has yet to assert\njoin it in its section"
    says = [f"the thread Thread-1 (sleep) {still}"] if name == "threads" else []
    assert [error.message for _, error in made.errors()] == says


@pytest.mark.parametrize(
    "line", ["builtins.len = None", "builtins.isinstance = lambda *_: True", "del builtins.print"]
)
def test_builtins_that_are_replaced_are_an_error_without_a_traceback_of_ours(
    tmp_path: Path, line: str
) -> None:
    done = command(write(tmp_path, two(line, "import builtins")))
    assert done.returncode == 1
    name = line.replace("del ", "").split()[0].split(".")[1]
    assert done.stderr.startswith(
        f"run_lecture.py: the lecture replaces {name} of builtins, and so the recorder"
    )
    assert "Traceback" not in done.stdout + done.stderr


def test_nothing_of_one_run_reaches_the_next(tmp_path: Path) -> None:
    before = "import math, os"
    first = write(tmp_path, section("os.umask(0o777)\nmath.tau = 7", before), "lecture_01.py")
    holds = "assert os.umask(0o22) != 0o777\nassert math.tau < 6.3"
    second = write(tmp_path, section(holds, before), "lecture_02.py")
    process.record_of(first)
    assert set(claims(process.record_of(second)).values()) == {"holds"}


DEEP = """
import sys


def down(n):
    return 0 if n == 0 else 1 + down(n - 1)


class Deep:
    def __init__(self, inside=None):
        self.inside = inside

    def __repr__(self):
        return repr([self.inside])
"""


def test_a_recursion_beyond_every_limit_is_a_verdict_or_says_in_which_section_it_ended(
    tmp_path: Path,
) -> None:
    limit = "sys.setrecursionlimit(10**6)\n"
    path = write(
        tmp_path, section(f"{limit}x = down(50_000)  # @inspect x\nassert x == 50_000\n{FALSE}", DEEP)
    )
    assert list(claims(process.record_of(path)).values()) == ["holds", "fails"]
    crash = "it = None\nfor _ in range(400_000):\n    it = Deep(it)\nrepr(it)\n"
    path = write(tmp_path, section(f"{limit}{crash}{FALSE}", DEEP))
    try:
        made = process.record_of(path)
    except process.ProcessDied as died:
        assert "lecture_sample.py: the process was killed by signal" in str(died)  # noqa: PT017  or none at all
        assert "in the section one; no verdict without a whole record" in str(died)  # noqa: PT017
    else:  # an interpreter that counts its C stack raises
        assert "recursion" in messages(made)[0]


def test_what_a_helper_read_while_it_was_imported_is_read_again_by_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "known.py").write_text(
        "import pathlib\nn = int(pathlib.Path(__file__).with_name('n').read_text())\n"
    )
    path = write(tmp_path, section("known.n  # @inspect known.n\nassert known.n == 1", "import known"))
    verdicts = {1: "holds", 2: "fails"}
    for value, verdict in verdicts.items():
        (tmp_path / "n").write_text(str(value))
        made = process.record_of(path)
        assert (shown(made, "known.n"), list(claims(made).values())) == ([value], [verdict])


def test_sections_run_one_after_the_other_as_plain_python_runs_them(tmp_path: Path) -> None:
    text = section("math.tau = 7", "import math").replace("    one()\n", "    one()\n    two()\n", 1)
    path = write(tmp_path, f"{text}\ndef two():\n    assert math.tau < 6.3\n")
    verdicts = {tuple(claims(process.record_of(path)).values()) for _ in range(3)}
    assert verdicts == {("fails",)}  # `python -c "…"` says so, too: one process, from top to bottom


def test_asserts_are_checked_where_python_would_leave_them_out(tmp_path: Path) -> None:
    write(tmp_path, "def wrong():\n    assert 1 == 2, 'beside'\n", "beside.py")
    text = section("helper(1)", f"import beside\ndef helper(x):\n    {FALSE}\n").replace(
        "    one()\n", "    one()\n    two()\n", 1
    )
    path = write(tmp_path, f"{text}\ndef two():\n    beside.wrong()\n")
    for words in ([], ["-O"]):
        env = {**os.environ, "PYTHONOPTIMIZE": "2"}
        done = subprocess.run(
            [sys.executable, *words, str(REPO / "tools" / "run_lecture.py"), str(path), "--quiet"],
            env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stdout.splitlines()[-1].endswith("; 2 errors"), done.stdout
        assert "AssertionError: beside" in done.stdout


# ------------------------------------------------------------------------ it is stopped


def began(file: Path) -> None:
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} never came"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z" if Path("/proc").exists() else True


def started(path: Path, tmp: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(REPO / "tools" / "run_lecture.py"), str(path), "--record"],
        env={**os.environ, "TMPDIR": str(tmp)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


@pytest.mark.skipif(
    sys.platform != "linux", reason="needs Linux: only there a process is told of its parent's end"
)
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_killed_leaves_no_process_and_the_next_run_its_folder(
    tmp_path: Path, ending: signal.Signals
) -> None:
    """SIGTERM leaves no folder either."""
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    pid = tmp_path / "pid"
    text = section(
        f"Path({str(pid)!r}).write_text(str(os.getpid()))\ntime.sleep(600)",
        "import os, time\nfrom pathlib import Path",
    )
    run_ = started(write(tmp_path, text), tmp)
    began(pid)
    time.sleep(0.1)
    run_.send_signal(ending)
    _, told = run_.communicate(timeout=20)
    if ending == signal.SIGTERM:
        at = f"lecture_sample.py:{line_of(text, 'sleep')}\n    time.sleep(600)"
        assert (run_.returncode, told) == (143, f"run_lecture.py: interrupted; it had reached {at}\n")
    deadline = time.monotonic() + 20
    while alive(int(pid.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert len(list(tmp.iterdir())) == (ending == signal.SIGKILL)
    done = command(write(tmp_path, section("n = 1\nassert n == 1")), "--record", env={"TMPDIR": str(tmp)})
    assert done.returncode == 0, done.stderr
    assert list(tmp.iterdir()) == []
    assert [it.name for it in (tmp_path / "recordings").iterdir()] == ["lecture_sample.cpu.json"]


def test_folders_of_runs_that_go_on_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with process.private_folder() as first, process.private_folder() as second:
        assert first.is_dir() and second.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_what_a_lecture_has_started_ends_with_it(tmp_path: Path) -> None:
    text = section(
        "it = subprocess.Popen(['sleep', '600'])\npid = it.pid  # @inspect pid\nassert it.poll() is None",
        "import subprocess",
    )
    made = process.record_of(write(tmp_path, text))
    (pid,) = shown(made, "pid")
    deadline = time.monotonic() + 20
    while alive(int(str(pid))):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_lectures_of_a_build_begin_with_the_longest_and_come_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long they took their recordings say; one whose recording nobody can read begins last."""
    text = section(f"with open({str(tmp_path / 'begun')!r}, 'a') as file:\n    print(__name__, file=file)")
    paths = [write(tmp_path, text, name) for name in ("lecture_a.py", "lecture_b.py", "lecture_c.py")]
    (tmp_path / "recordings").mkdir()
    for name, content in (("a.cpu", "{"), ("b.cpu", '{"seconds": 1}'), ("c.cpu", '{"seconds": 2}')):
        (tmp_path / "recordings" / f"lecture_{name}.json").write_text(content)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert [record().lecture for record in process.records_of(paths)] == [
        "lecture_a",
        "lecture_b",
        "lecture_c",
    ]
    assert (tmp_path / "begun").read_text().split() == ["lecture_c", "lecture_b", "lecture_a"]


def test_whoever_asks_for_no_more_lectures_leaves_none_running(tmp_path: Path) -> None:
    text = section(
        f"Path({str(tmp_path)!r}, f'{{os.getpid()}}.pid').touch()\ntime.sleep(600)",
        "import os, time\nfrom pathlib import Path",
    )
    quick = write(tmp_path, section("n = 1\nassert n == 1"), "lecture_a.py")
    records = process.records_of([quick, *(write(tmp_path, text, f"lecture_{n}.py") for n in "bcd")])
    assert next(records)().lecture == "lecture_a"
    deadline = time.monotonic() + 60
    while not (pids := [int(file.stem) for file in tmp_path.glob("*.pid")]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    records.close()
    assert not any(map(alive, pids))


def test_ctrl_c_that_a_lecture_swallows_ends_it_all_the_same(tmp_path: Path) -> None:
    text = section(
        f"open({str(tmp_path / 'reached')!r}, 'w').close()\nwhile True:\n    try:\n        time.sleep(600)\n"
        "    except BaseException:\n        pass",
        "import time",
    )
    run_ = started(write(tmp_path, text), tmp_path)
    began(tmp_path / "reached")
    time.sleep(0.1)
    run_.send_signal(signal.SIGINT)
    _, said = run_.communicate(timeout=60)
    assert (run_.returncode, said) == (130, "run_lecture.py: interrupted; it was in the section one\n")


def test_a_time_out_is_reported_with_the_line(tmp_path: Path) -> None:
    text = section("time.sleep(600)", "import time")
    with pytest.raises(LitbookError) as caught:
        process.record_of(write(tmp_path, text), timeout=0.5)
    assert str(caught.value) == (
        f"timed out after 0.5 s; it had reached lecture_sample.py:{line_of(text, 'sleep')}\n    time.sleep(600)\n"
        "    if it needs longer: --timeout 2"
    )
    assert (caught.value.slug, caught.value.exit_status) == ("timed-out", 1)
