"""The processes that are measured, and the environment that has the peers which ours has not."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

import pyperf

REPO = Path(__file__).resolve().parent.parent
PLACE = REPO / "build" / "bench"
PEERS = {"edtrace": "edtrace==0.1.20", "lectrace": "lectrace==1.1.30"}
PYPERF = [sys.executable, "-m", "pyperf", "command", "--quiet", "--copy-env", "--processes=1", "--values=1"]


class Failed(Exception):
    """A contestant did not end well, or took too long."""


@functools.cache
def python() -> tuple[Path, dict[str, str]]:
    """The interpreter that has what ours has, and the peers; and why some of them are not there."""
    home, missing = PLACE / "venv", dict[str, str]()
    found = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not found.exists():
        venv.create(home, clear=True, with_pip=True)
        inside = home / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        (inside / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    for name, pinned in PEERS.items():
        if not list(home.glob(f"lib/*/site-packages/{pinned.replace('==', '-')}.dist-info")):
            pip = [str(found), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
            constraints = ["-c", str(REPO / "constraints.txt")]
            done = subprocess.run([*pip, *constraints, pinned], capture_output=True, text=True, check=False)
            if done.returncode:
                missing[name] = (
                    f"not installable here: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}"
                )
    return found, missing


def environment(root: Path = REPO) -> dict[str, str]:
    """The variables of a contestant's process: our modules can be imported, and nothing is drawn on a screen.

    Torch gets one thread: where several share the cores with other work, their waiting is what is measured.
    """
    paths = os.pathsep.join(map(str, (root / "tools", root / "lectures", root)))
    jupyter = {"JUPYTER_PATH": os.environ.get("JUPYTER_PATH", f"{sys.prefix}/share/jupyter")}  # its templates
    return {**os.environ, "PYTHONPATH": paths, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", **jupyter}


def call(command: list[str], folder: Path, patience: float) -> tuple[float, int]:
    """Seconds of a process, and bytes of the largest among it and its children. Raises `Failed`."""
    with tempfile.TemporaryDirectory() as place:
        kept, told = Path(place, "command.json"), Path(place, "stderr.txt")
        shell = ["sh", "-c", 'exec "$@" 2>"$TOLD"', "sh"]  # pyperf throws away what a command complains
        with subprocess.Popen(
            [*PYPERF, "--loops=1", "--warmups=0", "-o", str(kept), "--", *shell, *command],
            cwd=folder, env=environment() | {"TOLD": str(told)}, start_new_session=True,  # to be ended whole
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            try:
                process.wait(timeout=patience)
            except subprocess.TimeoutExpired:
                raise Failed(f"not finished after {patience:.0f} s") from None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            complaint = told.read_text(encoding="utf-8", errors="replace")
            raise Failed((complaint.strip().splitlines() or ["no message"])[-1])
        it = pyperf.Benchmark.load(str(kept))
        return it.get_values()[0], int(it.get_metadata().get("command_max_rss", 0))
