"""Build what a release consists of, into build/release: wheel, sdist, notes. Nothing here uses a network.

    make release             build, check, and say what is missing
    make release ARGS=--tag  the same, and tag the commit

The one setting that depends on an address is `Repository` below `[project.urls]` in pyproject.toml.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "release"
BACKEND = "import sys; from setuptools import build_meta as b; b.build_{}(sys.argv[1])"


def notes(changelog: str, version: str) -> str:
    """The section of a version, without its heading; "" where there is none."""
    found = re.search(
        rf"^## {re.escape(version)} [^\n]*\n+(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    return found[1].strip() + "\n" if found else ""


def missing(project: dict[str, object], said: str, *, clean: bool) -> list[str]:
    """What a release still lacks, each with what to do."""
    lacks = []
    if not project.get("urls"):
        lacks.append('an address: Repository = "https://…" below [project.urls] in pyproject.toml')
    if not said:
        lacks.append(f"a section {project['version']} in CHANGELOG.md")
    if not clean:
        lacks.append("a clean tree: commit what has changed")
    if not find_spec("twine"):
        lacks.append("twine, which checks the packages, beside this Python")
    return lacks


def main() -> int:
    """Build, check, tag where that is asked for; the exit status."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for kind in ("wheel", "sdist"):
        command = [sys.executable, "-c", BACKEND.format(kind), str(OUT)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    said = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    (OUT / "notes.md").write_text(said, encoding="utf-8")
    git = ["git", "-C", str(ROOT)]
    status = subprocess.run(
        [*git, "status", "--porcelain"], capture_output=True, text=True, check=True
    ).stdout
    lacks = missing(project, said, clean=not status)
    files = [str(file) for file in sorted(OUT.iterdir()) if file.suffix in (".whl", ".gz")]
    if find_spec("twine"):
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], check=True)
    if "--tag" in sys.argv[1:] and not lacks:
        subprocess.run([*git, "tag", "-a", f"v{version}", "-F", str(OUT / "notes.md")], check=True)
    print(*files, OUT / "notes.md", sep="\n")
    for lack in lacks:
        print(f"missing: {lack}")
    return int("--tag" in sys.argv[1:] and bool(lacks))


if __name__ == "__main__":
    sys.exit(main())
