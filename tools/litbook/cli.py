"""The command line: arguments, exit codes, all printing.

    python tools/run_lecture.py LECTURE [SECTION ...]

Nothing heavy is imported before the lecture is known to be usable: `--help`, `--list` and errors of the
command line or the lecture's text must come at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from litbook import source
from litbook.errors import LitbookError, NotFound, Stopped

if TYPE_CHECKING:
    from litbook import trace

LECTURES = Path(__file__).resolve().parents[2] / "lectures"

EXIT = """\
exit status: 0 every claim holds; 1 a claim failed or the lecture raised; 2 the lecture or the
command line cannot be used; 130 interrupted"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with `arguments` (default: the process's own). Returns the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        if asked.lecture is None:
            return _list_lectures()
        path = find_lecture(asked.lecture)
        if asked.list:
            return _list_sections(path)
        return _run(path, asked)
    except Stopped as error:
        _complain(str(error))
        return error.exit_status
    except LitbookError as error:
        _complain(str(error))
        return error.exit_status
    except BrokenPipeError:  # `| head` has seen enough
        sys.stdout = open("/dev/null", "w") if Path("/dev/null").exists() else sys.__stdout__  # noqa: PTH123, SIM115
        return 0
    except KeyboardInterrupt:  # before or after the lecture itself ran
        _complain("interrupted")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run_lecture.py",
        description="Run a lecture, check its claims, and print prose, code and values as they come.",
        epilog=EXIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("lecture", metavar="LECTURE", nargs="?", help="a name (lecture_02) or the path of any lecture file")
    add("sections", metavar="SECTION", nargs="*", help="run only these sections (default: all)")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="what to run on (default: auto)")
    add("--list", action="store_true", help="list the sections (without LECTURE: the lectures), run nothing")
    add("--quiet", action="store_true", help="print only what went wrong, and the count of claims")
    add("--out", metavar="FILE", type=Path, help="write the record of the run to FILE, as JSON")
    add("--timeout", metavar="S", type=_seconds, help="stop after S seconds, naming the line reached")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 10**8:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def find_lecture(name: str) -> Path:
    """The file of the lecture called `name`, or at the path `name`. Raises `NotFound`."""
    path = Path(name)
    if path.suffix == ".py" or path.parent != Path():
        if path.is_file():
            return path
        if path.parent not in (Path(), LECTURES) or not (LECTURES / path.name).is_file():
            there = sorted(str(p) for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
            raise NotFound("lecture", name, there)
    if (LECTURES / f"{path.stem}.py").is_file():
        return LECTURES / f"{path.stem}.py"
    raise NotFound("lecture", name, _names())


def _names() -> list[str]:
    return sorted(p.stem for p in LECTURES.glob("lecture_*.py"))


def _list_lectures() -> int:
    names = _names()
    for name in names:
        print(f"{name}  {source.read(LECTURES / f'{name}.py').title}")
    if not names:
        print("there are no lectures yet")
    return 0


def _list_sections(path: Path) -> int:
    from litbook.run import shown_path

    lecture = source.read(path, shown_path(path.resolve()))
    by_name = {f.name: f for f in lecture.functions if f.kind in ("part", "section")}
    print(lecture.title)
    for name in lecture.section_names():
        function = by_name[name]
        inside = function.parent is not None and lecture.functions[function.parent].kind == "part"
        device = f"  [{function.requires}]" if function.requires else ""
        print(f"{'    ' if inside else '  '}{name}  {function.heading}{device}")
    return 0


def _run(path: Path, asked: argparse.Namespace) -> int:
    from litbook.run import shown_path

    source.read(path, shown_path(path.resolve()))  # errors of the text come before anything heavy
    _check_writable(asked.out)
    from rich.console import Console

    from litbook import run
    from litbook.render.terminal import Terminal

    terminal = Terminal(Console(file=sys.stdout), quiet=asked.quiet)  # bound now: a lecture prints elsewhere
    try:
        record = run.run(
            path, sections=asked.sections, device=asked.device, timeout=asked.timeout, listener=terminal
        )
    finally:
        terminal.end()
    if asked.out is not None:
        _write(asked.out, record)
    return _close(record, asked)


def _close(record: trace.Record, asked: argparse.Namespace) -> int:
    """The failures in full, then the line that counts."""
    from litbook.render import report

    for text in report.problems(record):
        print(f"\n{text}")
    if not asked.quiet or report.problems(record):
        print()
    print(report.summary(record))
    return 0 if report.holds(record) else 1


def _check_writable(out: Path | None) -> None:
    if out is not None and (out.is_dir() or not out.resolve().parent.is_dir()):
        raise LitbookError(f"--out {out}: not a file in a folder that exists\n    create the folder first")


def _write(out: Path, record: trace.Record) -> None:
    """Write the record whole or not at all: a temporary file beside it, then a rename."""
    import os
    import tempfile

    from litbook import trace

    handle, name = tempfile.mkstemp(dir=out.resolve().parent, prefix=f".{out.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(trace.dumps(record))
        Path(name).replace(out)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise LitbookError(f"--out {out}: {error.strerror}; nothing was written") from None


def _complain(text: str) -> None:
    print(f"run_lecture.py: {text}", file=sys.stderr)
