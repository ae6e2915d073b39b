"""Where a run takes place: machine, versions, device, commit. Asks; changes nothing."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from litbook.record.device_kinds import DeviceKind, devices
from litbook.record.model import Device, Environment


def environment(lecture: Path, device: str, seed: int, imported: Collection[str] = ()) -> Environment:
    """The environment of a run of the file `lecture` that starts now, with versions of what it imports."""
    torch = sys.modules.get("torch")
    beside = {path.stem for path in lecture.parent.iterdir()}
    names = {*imported, *(["torch"] if torch and device in {kind.name for kind in devices()} else [])}
    packages = filter(None, map(_package, sorted(names - sys.stdlib_module_names - beside - {"litbook"})))
    versions = dict(packages)
    if torch and "torch" in versions:  # with its build
        versions["torch"] = str(torch.__version__)
    # The commit that the lecture's folder is at, with a `+` where the working tree has changes. Outside of a
    # repository no process is started to hear that there is none.
    commit = None
    if "GIT_DIR" in os.environ or any(Path(folder, ".git").exists() for folder in lecture.parents):
        commit = _first_line(["git", "rev-parse", "--short=12", "HEAD"], lecture.parent)
        status = ["git", "--no-optional-locks", "status", "--porcelain"]  # it asks, and writes nothing
        if commit is not None and _first_line(status, lecture.parent):
            commit += "+"
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # the system does not say
        memory = 0
    processors = list[str]()  # of the processor, as the system gives it
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        processors = re.findall(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    cpu = next(filter(None, map(str.strip, processors)), platform.processor() or platform.machine())
    place = Device("cpu", "cpu", cpu, memory)
    for kind in devices():
        if torch and device in ("auto", kind.name) and kind.module:
            properties = kind.module.get_device_properties(0)  # the first of those that are visible
            place = Device(
                kind=kind.name,
                slug=re.sub(r"[^a-z0-9]+", "-", properties.name.lower()).strip("-"),
                name=properties.name,
                memory=properties.total_memory,
                driver=_first_line([*kind.driver], Path.cwd()) if kind.driver else None,
                cuda=torch.version.cuda,
                capability=f"{properties.major}.{properties.minor}" if hasattr(properties, "major") else None,
                count=kind.count(),
            )
            break
    return Environment(
        python=platform.python_version(),
        os=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        cpu=cpu,
        cores=os.cpu_count() or 1,
        threads=torch.get_num_threads() if torch else 0,
        memory=memory,
        device=place,
        versions=versions,
        commit=commit,
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seed=seed,
    )


def why_none(kind: DeviceKind) -> str:
    """Why there is no device of the kind, and after a line break what to do about it."""
    torch = sys.modules.get("torch")
    install = f"\n    install a build of it that has {kind.label}"
    if torch is None:
        return f"torch is not installed{install}"
    if getattr(torch.version, kind.name, None) is None:
        return f"torch {torch.__version__} is built without {kind.label}{install}"
    hidden = os.environ.get(kind.hidden_by)
    seen = f"; {kind.hidden_by} is {hidden!r}" if hidden is not None else ""
    look = ", and at ".join(filter(None, [*kind.driver[:1], kind.hidden_by])) or "the driver's own tool"
    return f"torch {torch.__version__} sees none{seen}\n    look at {look}"


# A tenth of a second: asked only where a module is not called as its package.
_packages = functools.cache(metadata.packages_distributions)


@functools.cache  # packages' own files are searched for it
def _package(module: str) -> tuple[str, str] | None:
    """The package that a module comes from, and its version; None where none is installed."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return module, metadata.version(module)
    for package in _packages().get(module, ()):  # one that is called otherwise: `PIL` is of pillow
        with contextlib.suppress(metadata.PackageNotFoundError):
            return package, metadata.version(package)
    return None


def peak() -> int:
    """Bytes of main memory that this process has held at most."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _first_line(command: list[str], folder: Path) -> str | None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = done.stdout.splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None
