"""Courses in edtrace's or lectrace's words, as they are: does each lecture run, do its pages build strictly?

    python -m benchmarks.foreign FOLDER … [--words lectrace] [--only NAME …] [--limit SECONDS] [--stubs]

Each FOLDER is a checkout of a course: github.com/stanford-cs336/spring2025-lectures and
github.com/stanford-cs336/lectures, say. What its lectures import is installed beside litbook. Nothing is
fetched, and nothing in FOLDER is changed: each lecture is built in a copy, a book of its own. Prints a table
for `docs/coming-from.md`, and below it the first problems of each lecture that does not build.

`--stubs` puts `benchmarks/stubs` first: modules that stand in for what asks the network.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

CONFIG = """\
site_name: Foreign
theme: {{name: material}}
plugins:
  - litbook: {{words: {words}, unbacked: "off"}}
"""
STUBS = Path(__file__).resolve().parent / "stubs"
SHOWN = 3  # problems of a lecture that does not build
PROBLEM = re.compile(r"^(?:ERROR|WARNING) +- +", re.MULTILINE)


@dataclass
class Outcome:
    """What became of one lecture."""

    name: str
    run: bool
    pages: bool
    seconds: float
    problems: list[str] = field(default_factory=list)


def main(arguments: list[str]) -> int:
    """Print the table. Exit status 1 where some lecture does not build."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", metavar="FOLDER", nargs="+", type=Path)
    parser.add_argument("--words", default="edtrace")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--limit", type=int, default=1800, metavar="SECONDS")
    parser.add_argument("--stubs", action="store_true")
    asked = parser.parse_args(arguments)
    outcomes = []
    print("| lecture | runs | pages, strictly | seconds |\n|---|---|---|--:|")
    for folder in asked.folders:
        for file in lectures(folder):
            if asked.only and file.stem not in asked.only:
                continue
            outcome = tried(file, asked.words, asked.limit, asked.stubs)
            outcomes.append(outcome)
            marks = ["yes" if it else "no" for it in (outcome.run, outcome.pages)]
            print(f"| {outcome.name} | {marks[0]} | {marks[1]} | {outcome.seconds:.0f} |", flush=True)
    for outcome in outcomes:
        if outcome.problems:
            print(f"\n{outcome.name}:", *outcome.problems[:SHOWN], sep="\n  ")
    return int(not all(it.run and it.pages for it in outcomes))


def lectures(folder: Path) -> list[Path]:
    """The files with a `main()` that `main` is called for: `lecture_02.py`, `02_vectors.py`."""
    files = sorted(file for file in folder.glob("*.py") if re.fullmatch(r"lecture_\d+|\d+_\w+", file.stem))
    return [file for file in files if re.search(r"^def main\b", file.read_text("utf-8"), re.MULTILINE)]


def tried(file: Path, words: str, limit: int, stubs: bool) -> Outcome:
    """Run the lecture, and build its pages strictly, in a copy of its course where it is the only lecture."""
    outcome = Outcome(f"{file.parent.name}/{file.stem}", run=False, pages=False, seconds=0.0)
    with tempfile.TemporaryDirectory() as place:
        book = Path(place)
        (book / "mkdocs.yml").write_text(CONFIG.format(words=words), encoding="utf-8")
        (book / "docs").mkdir()
        (book / "docs" / "index.md").write_text("# Foreign\n", encoding="utf-8")
        skip = shutil.ignore_patterns(".git", "*.json", "nonexecutable", "trace-viewer")
        shutil.copytree(file.parent, book / "lectures", symlinks=True, ignore=skip)
        imported = set(re.findall(r"^\s*(?:from|import)\s+(\w+)", file.read_text("utf-8"), re.MULTILINE))
        for other in (book / "lectures").glob("*.py"):
            if re.match(r"lecture_\d|\d", other.stem) and other.stem not in {file.stem, *imported}:
                other.unlink()
        path = [str(STUBS)] * stubs + [os.environ.get("PYTHONPATH", "")]
        search = os.pathsep.join(filter(None, path))
        environment = {**os.environ, "PYTHONPATH": search, "NO_MKDOCS_2_WARNING": "true"}
        begun = time.monotonic()
        asked = ["litbook", "run", f"lectures/{file.name}", "--quiet", "--timeout", str(limit)]
        status, said = command(asked, book, environment, limit)
        outcome.seconds, outcome.run = time.monotonic() - begun, status == 0
        if not outcome.run:
            outcome.problems = ["run:", *(line for line in said.splitlines() if line.strip())]
        status, said = command(["mkdocs", "build", "--strict", "--quiet"], book, environment, limit)
        outcome.pages = status == 0
        if outcome.run and not outcome.pages:
            outcome.problems = ["pages:", *(it.strip() for it in PROBLEM.split(said) if it.strip())]
    return outcome


def command(words: list[str], folder: Path, environment: dict[str, str], limit: int) -> tuple[int, str]:
    """The status of a module called with these words, and what it says; -1 beyond twice `limit`."""
    call = [sys.executable, "-m", *words]
    try:
        done = subprocess.run(
            call, cwd=folder, env=environment, capture_output=True, text=True, timeout=2 * limit, check=False
        )
    except subprocess.TimeoutExpired as error:
        return -1, str(error)
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
