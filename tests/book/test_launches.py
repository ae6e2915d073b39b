"""Sections on ranks, launched: what a terminal says of them, and that no process and no folder stays."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.running import Done, claims, process, section, write

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


def test_simulated_ranks_are_one_process_and_say_so(tmp_path: Path) -> None:
    body = "world = dist.get_world_size()  # @inspect world\nassert world == 1024, 'as many'"
    done = ran(tmp_path, on_ranks(body, "simulated ranks=1024"))
    assert done.returncode == 0, done.stderr
    assert "1,024 simulated ranks" in done.stdout
    assert "→ world = 1,024" in done.stdout


def test_a_run_in_plain_python_says_what_a_section_on_ranks_needs(tmp_path: Path) -> None:
    import subprocess
    import sys

    file = write(tmp_path, on_ranks("assert False") + "\n\nif __name__ == '__main__':\n    main()\n")
    env = {**os.environ, "PYTHONPATH": str(Path(ranks.__file__).parents[2]), "TMPDIR": tempfile.gettempdir()}
    done = subprocess.run([sys.executable, file], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[one needs ranks=2: `litbook run` gives it these]\n")


def test_the_parent_imports_no_torch() -> None:
    import subprocess
    import sys

    code = "import sys; import litbook.cli, litbook.run.process; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
