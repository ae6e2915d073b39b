"""An excuse that `litbook check` prints is known to each command, whoever makes the trials that it excuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import section, write


@pytest.mark.parametrize("code", ["mutant", "unnoticed"])
def test_an_excuse_of_a_trial_is_no_unknown_rule_of_a_run(tmp_path: Path, code: str) -> None:
    lines = f'size = 7\nassert size < 100, "small"  # @allow {code}: 100 -> 99: any size does'
    path = write(tmp_path, section(lines))
    done = subprocess.run(
        [sys.executable, "-m", "litbook", "run", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "unknown-allow" in done.stdout + done.stderr) == (0, False), done.stdout
