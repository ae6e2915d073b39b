"""`make coverage` sees a run's child process to its end, where the record is made."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.running import HEAD, REPO, write

from litbook.probe.section_builder import SectionBuilder
from litbook.record import compare, encoding

CONFIG = f"""
[run]
source = {REPO / "tools" / "litbook"}
data_file = data
parallel = true
patch = subprocess, _exit
disable_warnings = no-data-collected, module-not-measured
"""
TEXT = f"""{HEAD}
import atexit


def main():
    one()


def one():
    atexit.register(open, BYE, "w")
    assert 1 + 1 == 2, "there"
"""


def counted(function: Callable[..., object], measured: Any) -> bool:
    """Whether the last `return` of a function was reached, as coverage saw it."""
    lines, first = inspect.getsourcelines(function)
    end = max(number for number, line in enumerate(lines, first) if line.lstrip().startswith("return"))
    return end in (measured.get_data().lines(inspect.getsourcefile(function)) or ())


def test_what_runs_after_the_lectures_last_line_is_counted(tmp_path: Path) -> None:
    coverage = pytest.importorskip("coverage")
    (tmp_path / ".coveragerc").write_text(CONFIG, "utf-8")
    lecture = write(tmp_path, TEXT.replace("BYE", repr(str(tmp_path / "bye"))))
    command = [sys.executable, "-m", "coverage", "run", "-m", "litbook", "run", str(lecture), "--quiet"]
    env = {**os.environ, "PYTHONPATH": str(REPO / "tools")}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bye").exists(), "what the lecture registered is run"
    measured = coverage.Coverage(config_file=tmp_path / ".coveragerc", data_file=tmp_path / "data")
    measured.combine([str(tmp_path)])
    assert counted(SectionBuilder.section, measured)
    assert counted(encoding.dumps, measured)
    assert not counted(compare.compare, measured), "nobody asked for that"
