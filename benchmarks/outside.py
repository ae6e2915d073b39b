"""The environment of the contestants: ours with edtrace beside it, made on first use where git ignores it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
PLACE = REPO / "build" / "bench"
EDTRACE = "edtrace==0.1.20"


class NoContestants(Exception):
    """The environment could not be made; the text says why."""


def python() -> Path:
    """The interpreter that has what ours has, and edtrace. Raises `NoContestants` where pip cannot get it."""
    home = PLACE / "venv"
    found = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (home / ".complete").exists():
        venv.create(home, clear=True, with_pip=True)
        inside = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        (inside / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        pip = [str(found), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
        constraints = ["-c", str(REPO / "constraints.txt")]  # what edtrace asks for is there, or comes pinned
        done = subprocess.run([*pip, *constraints, EDTRACE], capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            raise NoContestants(f"{EDTRACE} cannot be installed into {home.relative_to(REPO)}: {last}")
        (home / ".complete").touch()
    return found


def environment() -> dict[str, str]:
    """The variables of a contestant's process: our modules can be imported, and nothing is drawn on a screen.

    Torch gets one thread: where several share the cores with other work, their waiting is what is measured.
    """
    paths = os.pathsep.join(map(str, (REPO / "tools", REPO / "lectures", REPO)))
    return {**os.environ, "PYTHONPATH": paths, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}


def call(command: list[str], folder: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    """Run a contestant in `folder`. Raises `subprocess.TimeoutExpired`; the caller judges a failure."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=timeout,
        check=False,
    )
