"""What needs no lecture to run comes at once: nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import REPO, SAMPLES, process, write

from litbook.cli import group
from litbook.lecture import parse

HEAVY = {"torch", "numpy", "matplotlib", "mkdocs", "rich", "pygments", "asyncio"}
SPY = """
import sys
sys.argv[0] = "run_lecture.py"
from litbook.cli import run_lecture as program
status = program()
sys.stdout.flush()
print(status, *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def modules(*words: str) -> tuple[int, set[str]]:
    """The exit status of the command line, and the packages that it has imported by then."""
    done = subprocess.run(
        [sys.executable, "-c", SPY, *words],
        cwd=REPO, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(REPO / "tools")},
    )  # fmt: skip
    status, *names = done.stderr.splitlines()[-1].split()
    return int(status), set(names)


@pytest.mark.parametrize(
    "words, status",
    [
        (["--help"], 0),
        (["--list"], 0),
        (["lecture_02", "--list"], 0),
        ([str(SAMPLES / "parts"), "--list"], 0),
        ([str(SAMPLES / "parts"), "no_such_section"], 2),
        (["no_such_lecture"], 2),
        ([str(SAMPLES / "tour.py"), "no_such_section"], 2),
        (["--device", "abacus"], 2),
    ],
)
def test_nothing_heavy_is_imported_before_a_lecture_runs(words: list[str], status: int) -> None:
    ended, names = modules(*words)
    assert ended == status
    assert names & HEAVY == set()
    assert "litbook" in names


def test_a_library_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['click'] = None\n")
    done = process("--help", env={"PYTHONPATH": str(tmp_path)})
    says = "run_lecture.py: the library click is not installed\n    pip install click\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", says)


@pytest.mark.parametrize("name", group.commands)
def test_help_is_help_in_every_command_and_comes_at_once(name: str, tmp_path: Path) -> None:
    code = SPY.replace("import run_lecture", "import litbook").replace("run_lecture.py", "litbook")
    done = subprocess.run(
        [sys.executable, "-c", code, name, "--help"],
        cwd=tmp_path, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(REPO / "tools")},
    )  # fmt: skip
    status, *names = done.stderr.split()
    assert status == "0"
    assert done.stdout.startswith(f"Usage: litbook {name} ")
    assert set(names) & HEAVY == set()
    assert list(tmp_path.iterdir()) == []  # `badge --help` once drew a badge into a file of that name


def test_errors_of_the_text_come_before_anything_heavy(tmp_path: Path) -> None:
    ended, names = modules(str(write(tmp_path, "def main():\n    pass  # @inspekt x\n")))
    assert ended == 2
    assert names & HEAVY == set()


@pytest.mark.parametrize("sample", ["tour", "failing"])
def test_the_outline_is_that_of_the_whole_text(sample: str) -> None:
    path = SAMPLES / f"{sample}.py"
    outline, whole = parse.outline(path), parse.read(path)
    assert outline.section_names() == whole.section_names()
    shown = [(f.name, f.kind, f.heading, f.parent, f.requires, f.aside) for f in whole.functions]
    assert [(f.name, f.kind, f.heading, f.parent, f.requires, f.aside) for f in outline.functions] == shown
    assert outline.title == whole.title
