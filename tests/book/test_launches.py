"""Sections on ranks, launched: what a terminal says of them, and that no process and no folder stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from textwrap import indent

import pytest
from msgspec.structs import replace
from tests.running import COMMAND, HEAD, LITBOOK, Done, claims, line_of, process, section, write

from litbook.record import encoding, ranks

TORCH = "import os, time\nimport torch\nimport torch.distributed as dist\n"
MARK = "LITBOOK_RANKS_TEST"


def on_ranks(body: str, need: str = "ranks=2") -> str:
    """A lecture whose section runs on ranks."""
    return section(body, TORCH).replace("def one():", f'@requires("{need}")\ndef one():')


def left_running() -> list[str]:
    """The command lines of processes that a test's own commands have started."""
    mark = f"{MARK}={os.getpid()}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def ran(folder: Path, text: str, *words: object, **env: str) -> Done:
    """The run of a lecture, after which no process and no temporary folder of it is left."""
    tmp = folder / "tmp"
    tmp.mkdir()
    done = process(
        write(folder, text),
        *words,
        env={MARK: str(os.getpid()), "TMPDIR": str(tmp), "LITBOOK_PATIENCE": "8"} | env,
    )
    assert left_running() == []
    assert [path.name for path in tmp.iterdir()] == []
    return done


def test_a_section_on_ranks_says_what_each_of_them_had(tmp_path: Path) -> None:
    body = """
    note("Each has a number.")
    rank = dist.get_rank()  # @inspect rank
    x = torch.tensor([float(rank)])
    dist.all_reduce(x)  # @inspect x.item()
    print("I am", rank)
    assert x.item() == 1, "the sum"
    assert rank < 1, "the first"
    """
    done = ran(tmp_path, on_ranks(body), "--out", out := tmp_path / "out.json")
    assert done.returncode == 1, done.stderr
    for line in (
        "2 ranks",
        "→ rank = 0 · 1   (by rank)",
        "→ x.item() = 1.0",
        "✓    1.0 = 1",
        "✗    1 < 1   on rank 1 of 2",
        "│ rank 0: I am 0",
        "│ rank 1: I am 1",
        "lecture_sample.py:21: claim fails: the first",
        "      on rank 1 of 2",
        "1 claim holds, 1 fails, 0 not run",
    ):
        assert line in done.stdout, done.stdout
    made = encoding.read(out)
    assert claims(made) == {"x.item() == 1": "holds", "rank < 1": "fails"}
    second = ranks.of_rank(made.by_key["one"], 1)
    assert [claim.verdict for claim in second.claims] == ["holds", "fails"]


def test_a_text_and_an_answer_that_differ_between_ranks_are_found(tmp_path: Path) -> None:
    body = """
    rank = dist.get_rank()  # @inspect rank
    total = torch.ones(1)
    dist.all_reduce(total)
    note(f"Together they hold {total.item():.0f}.")
    note(f"Every rank holds {rank}.")
    print("rank", rank)
    question("How many hold it?", answer=total.item(), check=1 + 1)
    question("What does a rank hold?", answer=rank, check=int(str(rank)))
    """
    done = ran(tmp_path, on_ranks(body), "-q")
    found = [line.partition(": ")[2] for line in done.stdout.splitlines() if "rank 0 says" in line]
    assert found == [
        "rank 0 says 'Every rank holds 0.', and rank 1 'Every rank holds 1.'",
        "rank 0 says 'What does a rank hold? 0', and rank 1 'What does a rank hold? 1'",
    ]
    assert done.returncode == 1 and 'note(f"Every rank holds {rank}.")' in done.stdout


def test_simulated_ranks_are_one_process_and_say_so(tmp_path: Path) -> None:
    body = "world = dist.get_world_size()  # @inspect world\nassert world == 1024, 'as many'"
    done = ran(tmp_path, on_ranks(body, "simulated ranks=1024"))
    assert done.returncode == 0, done.stderr
    assert "1,024 simulated ranks" in done.stdout
    assert "→ world = 1,024" in done.stdout


def test_a_run_in_plain_python_says_what_a_section_on_ranks_needs(tmp_path: Path) -> None:
    file = write(tmp_path, on_ranks("assert False") + "\n\nif __name__ == '__main__':\n    main()\n")
    env = {**os.environ, "PYTHONPATH": str(Path(ranks.__file__).parents[2]), "TMPDIR": tempfile.gettempdir()}
    done = subprocess.run([sys.executable, file], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[one needs ranks=2: `litbook run` gives it these]\n")


def test_the_parent_imports_no_torch() -> None:
    code = "import sys; import litbook.cli, litbook.run.process; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------------ ranks that others started

TALK = """
rank = dist.get_rank()  # @inspect rank
x = torch.tensor([float(rank)])
dist.all_reduce(x)
assert x.item() == 1, "the sum"
"""


def slurm(folder: Path, port: int, *words: str | Path, **more: str) -> list[subprocess.Popen[str]]:
    """Two tasks as Slurm starts them, whose first rank's place is a port of this machine."""
    tasks = []
    for task in range(2):
        names = {"SLURM_PROCID": str(task), "SLURM_NTASKS": "2", "SLURM_LOCALID": str(task)}
        env = {**os.environ, **names, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **more}
        run: list[str | Path] = [*COMMAND, folder / "lecture_sample.py", *words]
        pipe = subprocess.PIPE
        tasks.append(subprocess.Popen(run, env=env, stdout=pipe, stderr=pipe, text=True))
    return tasks


def test_ranks_that_slurm_has_started_leave_the_record_of_a_launch(tmp_path: Path) -> None:
    text = on_ranks(TALK)
    alone, together = tmp_path / "alone.json", tmp_path / "together.json"
    assert ran(tmp_path, text, "--out", alone, "--quiet").returncode == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tasks = slurm(tmp_path, port, "--quiet", "--out", together)
    told = [task.communicate(timeout=600)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0]
    assert told == ["1 claim holds, 0 fail, 0 not run\n", ""]
    entries = [
        [replace(section, seconds=0.0) for section in encoding.read(file).sections]
        for file in (alone, together)
    ]
    assert entries[0] == entries[1] and len(entries[0][-1].shares) == 2


def test_ranks_whose_port_another_program_has_say_so_and_wait_no_longer(tmp_path: Path) -> None:
    write(tmp_path, on_ranks(TALK))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()  # and never answers
        at = taken.getsockname()[1]
        tasks = slurm(tmp_path, at, "--quiet", **{MARK: str(os.getpid()), "LITBOOK_PATIENCE": "3"})
        told = [task.communicate(timeout=600)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [2, 2]
    for rank, why in enumerate(("EADDRINUSE", "nothing came from there within 3 s")):
        (line,) = (line for line in told[rank].splitlines() if line.startswith("run_lecture.py: "))
        assert line.startswith(
            f"run_lecture.py: rank {rank} of 2 did not meet the others at 127.0.0.1:{at}: "
        )
        assert why in line
        assert (
            "MASTER_ADDR and MASTER_PORT name the first rank's machine, and a port that is free" in told[rank]
        )
    assert left_running() == []


def test_a_rank_that_cannot_know_of_the_others_says_what_is_missing(tmp_path: Path) -> None:
    done = ran(tmp_path, on_ranks(TALK), RANK="0", WORLD_SIZE="2")
    assert done.returncode == 2
    assert done.stderr == (
        "run_lecture.py: RANK and WORLD_SIZE say that this is one of several ranks, and MASTER_ADDR is not set\n"
        "    torchrun sets it; elsewhere it is the first rank's machine, and a free port there\n"
    )


# ------------------------------------------------------------------------ what goes wrong

WAITED = "rank 1 did not come here, came with another size, or had gone: RuntimeError: "

# Sections of one lecture, which a launch each would make four times as dear: what each does, and what is said of it,
# with the line of the body that is named. The first four lose no rank; each of the others does.
WRONG: dict[str, tuple[str, dict[int, str]]] = {
    "raises": (
        "if rank == 1:\n    raise ValueError('mine')\ndist.barrier()",
        {2: "on rank 1: ValueError: mine", 3: f"on rank 0: {WAITED}"},
    ),
    "skips": ("if rank == 0:\n    dist.barrier()", {2: f"on rank 0: {WAITED}"}),
    "init": (
        "dist.init_process_group('gloo')",
        {1: "on all 2 ranks: ValueError: trying to initialize the default process group twice!"},
    ),
    "exits": (
        "if rank == 1:\n    os._exit(0)\ndist.barrier()",
        {2: "on rank 1: os._exit(0) ends no lecture: it is an error like any exception"},
    ),
    "killed": (
        "if rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\nassert rank < 2, 'never'\ndist.barrier()",
        {0: "on rank 1: the process of the rank was killed by signal 9 (SIGKILL), in the section killed"},
    ),
    "silent": (
        "if rank == 1:\n    ctypes.CDLL(None)._exit(0)\ndist.barrier()",
        {0: "on rank 1: the process of the rank ended without a word, in the section silent"},
    ),
    "native": (
        "if rank == 1:\n    ctypes.string_at(0)\ndist.barrier()",
        {2: "on rank 1: the process of the rank was killed by signal 11 (SIGSEGV), in the section native"},
    ),
    "shapes": (
        "dist.all_reduce(torch.ones(8 if rank else 4))",
        {1: "on rank 0: the process of the rank was killed by signal 6 (SIGABRT), in the section shapes"},
    ),
}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Done]:
    """The lecture of these, with a section behind them, and what its run says."""
    bodies = {name: f"rank = dist.get_rank()\n{body}" for name, (body, _) in WRONG.items()}
    bodies["behind"] = "assert dist.get_world_size() == 2, 'both'"
    text = f"{HEAD}import ctypes, signal\n{TORCH}\ndef main():\n"
    text += "".join(f"    {name}()\n" for name in bodies)
    for name, body in bodies.items():
        text += f'\n\n@requires("ranks=2")\ndef {name}():\n{indent(body, "    ")}\n'
    return text, ran(tmp_path_factory.mktemp("wrong"), text, "--quiet")


@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_on_a_rank_is_named_and_nothing_is_left(wrong: tuple[str, Done], name: str) -> None:
    text, done = wrong
    assert done.returncode == 1
    for line, message in WRONG[name][1].items():
        at = f":{line_of(text, f'def {name}(') + 1 + line}: " if line else ""
        assert f"{at}{message}" in done.stdout, done.stdout


def test_a_section_behind_one_that_loses_a_rank_runs_all_the_same(wrong: tuple[str, Done]) -> None:
    assert "1 claim holds, 0 fail, 0 not run, 1 was not reached" in wrong[1].stdout


def test_a_rank_that_never_ends_is_ended_with_its_line(tmp_path: Path) -> None:
    body = (
        "if dist.get_rank() == 1:\n    while True:\n        time.sleep(0.01)\nassert True is not None, 'all'"
    )
    done = ran(tmp_path, on_ranks(body), "--quiet", "--timeout", "30")
    at = "on rank 1: timed out after 30 s; it had reached lecture_sample.py"
    assert f"{at}:16" in done.stdout or f"{at}:17" in done.stdout, "either line of the loop"
    assert done.returncode == 1


@pytest.mark.parametrize(("ending", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_end_all_ranks_and_name_their_section(
    tmp_path: Path, ending: signal.Signals, status: int
) -> None:
    there = tmp_path / "there"
    body = f"dist.barrier()\nif dist.get_rank() == 0:\n    open({str(there)!r}, 'w').close()\ntime.sleep(60)"
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    env = {**os.environ, MARK: str(os.getpid()), "TMPDIR": str(tmp)}
    words: list[str | Path] = [*COMMAND, write(tmp_path, on_ranks(body)), "--quiet"]
    run = subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while not there.exists() and time.monotonic() < until:
        time.sleep(0.05)
    run.send_signal(ending)
    told = run.communicate(timeout=300)[1]
    assert (run.returncode, told) == (status, "run_lecture.py: interrupted on 2 ranks, in the section one\n")
    assert left_running() == [] and [*tmp.iterdir()] == []


# ------------------------------------------------------------------------ what guards a lecture

GUARDED = '''
def total(x):
    dist.all_reduce(x)
    return x.item()


@requires("ranks=2")
def one():
    """One."""
    rank = dist.get_rank()
    mine = torch.tensor([rank + 1.0])
    both = total(mine)
    left = 3 - rank
    assert both == 3, "the sum"
    assert rank < 2, "a number below two"
    assert left > -5, "more than that"
    assert total(torch.ones(1)) == 2, "it talks"
'''


@pytest.mark.slow
def test_claims_and_code_of_sections_on_ranks_are_changed_and_tried(tmp_path: Path) -> None:
    text = f"{HEAD}{TORCH}\ndef main():\n    one()\n\n{GUARDED}"
    file, book = write(tmp_path, text), {**os.environ, "LITBOOK_PATIENCE": "20"}

    def check(what: str) -> str:
        words: list[str | Path] = [*LITBOOK, "check", file, "--select", what]
        done = subprocess.run(words, env=book, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr  # of a rank, whose changed section left no record
        return done.stdout

    claims_ = check("mutant")
    at = {line: str(number) for number, line in enumerate(text.splitlines(), 1)}
    survives = at['    assert left > -5, "more than that"']
    talks = at['    assert total(torch.ones(1)) == 2, "it talks"']
    assert f"lecture_sample.py:{survives}:19: survives: number -5 -> -6 and -5 -> -4" in claims_
    assert f"lecture_sample.py:{talks}: the claim itself does not hold when it is tried" in claims_
    assert "it is tried on each rank alone: what talks to others stands above the assert" in claims_
    assert "a number below two" not in claims_ and "the sum" not in claims_
    code = check("unnoticed")
    assert (
        f"lecture_sample.py:{at['    left = 3 - rank']}:12: no claim, only a value shown in one notices: - -> +"
        in code
    )
    assert "noticed by a claim" in code
