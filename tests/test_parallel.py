"""Sections side by side: the record is that of a run in one process, whatever the forks do or suffer.

Lectures that compute with torch run through the real command line here: this process cannot be forked safely
once any test has computed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.running import COMMAND, SAMPLES, command, write
from tests.test_reuse import ALL, BOOK, a_project, same

from litbook import parallel, reuse, trace
from litbook import run as runs
from litbook.run import run
from litbook.store import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one lecture and two modules beside it."""
    return a_project(tmp_path)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The teams of workers of this test's runs; this process counts as new."""
    monkeypatch.setattr(runs, "_is_new", lambda: True)
    teams: list[Any] = []

    class Watched(parallel.Workers):
        def __init__(self, tasks: Any, *rest: Any) -> None:
            self.asked, self.came = list(tasks), list[int]()
            teams.append(self)
            super().__init__(tasks, *rest)
            self.forks = len(self.team)

        def outcome(self, task: int) -> Any:
            found = super().outcome(task)
            if found is not None and found[1]:
                self.came.append(task)
            return found

    monkeypatch.setattr(reuse, "Workers", Watched)
    yield teams
    for team in teams:
        assert team.team == [], "no fork is left behind"


def book(*sections: str, before: str = "") -> str:
    """A lecture with the sections `one`, `two` ..., of these bodies."""
    names = "one two three four five six".split()[: len(sections)]
    calls = "\n".join(f"    {name}()" for name in names)
    texts = [
        f"\n\ndef {name}():\n    '''{name}.'''\n" + "\n".join(f"    {line}" for line in body.splitlines())
        for name, body in zip(names, sections, strict=True)
    ]
    return f"'''A book.'''\nfrom litbook import note\n{before}\n\ndef main():\n{calls}\n{''.join(texts)}\n"


def agree(path: Path, workers: int = 2) -> trace.Record:
    """Run the lecture with forks and without; both say the same, which comes back."""
    beside = run(path, device="cpu", store=Store(None), workers=workers)
    alone = run(path, device="cpu", store=Store(None))
    assert same(beside) == same(alone)
    assert beside.reused == (), "what a fork has run just now is not reused"
    assert beside.seconds.keys() == alone.seconds.keys()
    return beside


def names(numbers: list[int], record: trace.Record) -> list[str]:
    return [record.functions[number].name for number in numbers]


def test_the_record_is_that_of_one_process(project: Path, made: list[Any]) -> None:
    record = agree(project)
    (team,) = made
    assert names(team.came, record) == ALL, "all came from forks"


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_there_are_no_more_forks_than_sections(project: Path, made: list[Any], workers: int) -> None:
    agree(project, workers)
    assert [team.forks for team in made] == [min(workers, len(ALL))]


@pytest.mark.parametrize("sample", ["tour", "failing"])
def test_samples_with_claims_that_fail_and_errors(project: Path, made: list[Any], sample: str) -> None:
    text = (SAMPLES / f"{sample}.py").read_text(encoding="utf-8")
    agree(write(project.parent, text, "lecture_03.py"))


def test_only_what_has_to_run_is_given_to_forks(project: Path, made: list[Any]) -> None:
    store = Store(None)
    run(project, store=store, workers=2)
    project.write_text(
        BOOK.replace("2 < d < 4", "2 <= d < 4").replace("for i in range(10)", "for i in range(9)")
    )
    record = run(project, store=store, workers=2)
    assert names(made[1].asked, record) == ["second", "third"]
    assert [name for name, _ in record.reused] == ["first", "last"]


def test_one_section_is_not_worth_a_fork(project: Path, made: list[Any]) -> None:
    store = Store(None)
    run(project, store=store, workers=2)
    project.write_text(BOOK.replace("2 < d < 4", "2 <= d < 4"))
    run(project, store=store, workers=2)
    assert len(made) == 1


def test_what_reads_a_clock_runs_when_all_others_are_done(project: Path, made: list[Any]) -> None:
    clocked = "import time\nstart = time.perf_counter()\nb = 2  # @inspect b"
    measured = "c = 3.5  # @measure c as s"
    path = write(
        project.parent, book("a = 1  # @inspect a", clocked, measured, "d = 4  # @inspect d"), "lecture_02.py"
    )
    seen: list[tuple[str, int]] = []
    before = reuse.Reuse._run

    def watched(self: Any, function: int, *rest: Any) -> None:
        if made and os.getpid() == here:
            seen.append((self.lecture.functions[function].name, len(made[-1].team)))
        before(self, function, *rest)

    here = os.getpid()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reuse.Reuse, "_run", watched)
        record = run(path, store=Store(None), workers=2)
    assert names(made[0].asked, record) == ["one", "four"]
    assert seen == [("two", 0), ("three", 0)], "with the machine for themselves"


@pytest.mark.parametrize(
    "sections",
    [
        ("TAKEN.append(1)", "n = len(TAKEN)  # @inspect n", "TAKEN.append(3)", "n = list(TAKEN)  # @inspect n"),
        ("global COUNT\nCOUNT = 5", "n = COUNT  # @inspect n", "n = COUNT + 1  # @inspect n", "assert COUNT == 5, 'set'"),
        ("import sys\nsys.setrecursionlimit(900)", "n = 1  # @inspect n", "n = 2  # @inspect n"),
        ("raise ValueError('no')", "n = 1  # @inspect n", "n = 1 / 0", "assert 1 == 2, 'no'"),
        ("import json\nn = json.dumps([1])  # @inspect n", "import json\nn = json.dumps([2])  # @inspect n"),
        ("print('first')", "print('second')", "note('third')", "print('fourth')"),
        ("next(TURNS)", "n = next(TURNS)  # @inspect n", "m = 3  # @inspect m"),
    ],
    ids=["a list", "a global", "a setting", "errors", "imports", "output", "an iterator"],
)  # fmt: skip
def test_what_a_section_hands_on_reaches_those_after_it(
    project: Path, made: list[Any], sections: tuple[str, ...]
) -> None:
    before = "TAKEN = []\nCOUNT = 0\nTURNS = iter(range(9))"
    agree(write(project.parent, book(*sections, before=before), "lecture_02.py"))


def test_each_fork_has_files_of_its_own(project: Path, made: list[Any]) -> None:
    body = (
        "with open('kept.txt', 'x') as file:\n    file.write('{0}')\n"
        "with open('kept.txt') as file:\n    text = file.read()  # @inspect text\nimport os\nos.remove('kept.txt')"
    )
    path = write(project.parent, book(*(body.format(n) for n in range(5))), "lecture_02.py")
    record = agree(path)
    assert len(made[0].came) == 5
    assert [v.error for v in record.values] == [""] * 5


def test_a_file_that_the_module_wrote_is_there_for_all(project: Path, made: list[Any]) -> None:
    before = "with open('data.txt', 'w') as file:\n    file.write('17')"
    bodies = [
        f"with open('data.txt') as file:\n    n = int(file.read()) + {n}  # @inspect n" for n in range(4)
    ]
    agree(write(project.parent, book(*bodies, before=before), "lecture_02.py"))


@pytest.mark.parametrize("how", ["killed", "raises", "ends", "says nothing"])
def test_a_fork_that_fails_costs_nothing_but_time(
    project: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    before = reuse.Reuse._in_a_worker

    def fails(self: Any, call: Any, function: int) -> Any:
        if self.lecture.functions[function].name == "second":
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif how == "raises":
                raise RuntimeError("broken")
            elif how == "ends":
                parallel._END(3)
            return ("", b""), True
        return before(self, call, function)

    monkeypatch.setattr(reuse.Reuse, "_in_a_worker", fails)
    record = agree(project)
    assert "second" not in names(made[0].came, record)


@pytest.mark.parametrize("first", [0, 1])
def test_where_no_process_can_be_made_fewer_do_or_none(
    project: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    fork, left = os.fork, [first]

    def full() -> int:
        if not left[0]:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        left[0] -= 1
        return fork()

    monkeypatch.setattr(os, "fork", full)
    record = agree(project)
    assert names(made[0].came, record) == ALL[: 4 * first]


def test_a_process_in_which_torch_may_have_computed_is_not_forked(
    project: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_is_new", lambda: False)
    agree(project)
    assert made == []


def test_a_module_that_starts_threads_is_not_forked(project: Path, made: list[Any]) -> None:
    before = (
        "import threading\nSTOP = threading.Event()\nthreading.Thread(target=STOP.wait, daemon=True).start()"
    )
    path = write(
        project.parent, book("a = 1  # @inspect a", "b = 2  # @inspect b", before=before), "lecture_02.py"
    )
    run(path, store=Store(None), workers=2)
    assert made == []


# ---------------------------------------------------------------------------- the command

TORCH = book(
    "x = torch.ones(1000, 1000)\ny = (x @ x).sum().item()  # @inspect y\nassert y == 1e9, 'so many'",
    "x = torch.arange(1e6).sum().item()  # @inspect x",
    "w = torch.ones(3, requires_grad=True)\n(w * w).sum().backward()\ng = w.grad  # @inspect g",
    "x = torch.randn(500, 500).std().item()  # @inspect x",
    before="import torch",
)


def test_torch_computes_in_forks_what_it_computes_alone(project: Path, tmp_path: Path) -> None:
    path = write(project.parent, TORCH, "lecture_02.py")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from litbook import parallel\n"
        "parallel.cores = lambda: int(sys.argv[2])\n"
        "from litbook.cli import main\n"
        "sys.exit(main(sys.argv[3:]))\n"
    )
    tools = str(Path(COMMAND[1]).parent)
    kept = []
    for workers in ("1", "3"):
        out = tmp_path / f"{workers}.json"
        words = [
            sys.executable,
            "-c",
            program,
            tools,
            workers,
            str(path),
            "--device",
            "cpu",
            "--fresh",
            "--out",
            str(out),
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        kept.append((same(trace.loads(out.read_text(encoding="utf-8"))), done.stdout))
    assert kept[0] == kept[1], "record and what the terminal shows"


LOOP = "while True:\n    b = 2"
STUBBORN = "while True:\n    try:\n        b = sum(range(1000))\n    except BaseException:\n        pass"
IN_THE_LOOP = r"it had reached lectures/lecture_02\.py:\d+\n\s+(while True:|b = 2)\n"


def endless(project: Path, loop: str) -> tuple[Path, Path]:
    """A lecture of which a section never ends, and the file that it makes when it comes to that."""
    mark = project.parent.parent / "reached"
    body = f"open({str(mark)!r}, 'w').close()\n{loop}"
    sections = ("a = 1  # @inspect a", body, "c = 3  # @inspect c", "d = 4  # @inspect d")
    return write(project.parent, book(*sections), "lecture_02.py"), mark


def forks_of(pid: int) -> list[int]:
    """The children of a process."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def is_gone(pid: int) -> bool:
    try:
        return " Z " in re.sub(r"\(.*\)", "", Path(f"/proc/{pid}/stat").read_text(encoding="ascii"))
    except OSError:
        return True


def wait_for(what: Any, seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_the_time_out_names_the_line_that_a_fork_had_reached(project: Path) -> None:
    path, _ = endless(project, LOOP)
    done = command(path, "--timeout", "3", "--quiet")
    assert done.returncode == 1
    assert re.search(rf"timed out after 3 s; {IN_THE_LOOP}", done.stderr), done.stderr


def test_a_fork_that_swallows_the_time_out_is_ended(project: Path) -> None:
    path, _ = endless(project, STUBBORN)
    done = command(path, "--timeout", "3", "--quiet")
    assert done.returncode == 1
    assert "timed out after 3 s; it had reached lectures/lecture_02.py:7\n    two()\n" in done.stderr


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_forks_end_with_the_run(project: Path, ending: signal.Signals) -> None:
    path, mark = endless(project, LOOP)
    process = subprocess.Popen(
        [*COMMAND, str(path), "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    forks = wait_for(lambda: forks_of(process.pid))
    assert forks
    assert wait_for(mark.exists)
    process.send_signal(ending)
    _, errors = process.communicate(timeout=60)
    assert wait_for(lambda: all(map(is_gone, forks)))
    if ending == signal.SIGINT:
        assert process.returncode == 130
        assert re.search(rf"interrupted; {IN_THE_LOOP}", errors), errors
