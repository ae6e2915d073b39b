"""The command line: arguments, exit codes, all printing.

    python tools/run_lecture.py LECTURE [SECTION ...]

Nothing heavy is imported before the lecture is known to be usable: `--help`, `--list` and errors of the
command line or the lecture's text must come at once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from litbook import run, source
from litbook.errors import LitbookError, NotFound
from litbook.render import report
from litbook.render.report import harmless

if TYPE_CHECKING:
    from litbook import trace

LECTURES = Path(__file__).resolve().parents[2] / "lectures"

EXIT = """\
exit status: 0 every claim holds; 1 a claim failed or the lecture raised; 2 the lecture or the
command line cannot be used; 130 interrupted"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with `arguments` (default: the process's own). Returns the exit status."""
    _prepare_streams()
    asked = _parser().parse_intermixed_args(arguments)  # sections may stand behind options, too
    try:
        if asked.lecture is None:
            return _list_lectures()
        path = find_lecture(asked.lecture)
        return _list_sections(path) if asked.list else _run(path, asked)
    except LitbookError as error:
        _complain(str(error))
        return error.exit_status
    except KeyboardInterrupt:  # before or after the lecture itself ran
        _complain("interrupted")
        return 130
    except (OSError, ValueError) as error:  # a full disk behind `>`; a lecture that closed the real stdout
        _complain(f"cannot print: {getattr(error, 'strerror', None) or error}")
        _leave_stdout()
        return 2


def _prepare_streams() -> None:
    """Printing never fails for a character that the terminal lacks, nor when there is no terminal at all."""
    if sys.stdout is None:  # closed by the shell: `>&-`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  kept open for the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _leave_stdout() -> None:
    """What is still held back for a stdout that nobody reads goes nowhere, so that Python's end is quiet."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _say(text: str = "") -> None:
    """Print. A reader that has gone away (`| head`) is no fault of the lecture: the run's verdict stands."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _leave_stdout()


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
    with contextlib.suppress(OSError):  # a name that is too long is no lecture
        if path.is_dir():
            raise NotFound("lecture", name, sorted(str(p) for p in path.glob("*.py")))
        if path.is_file() and (path.suffix == ".py" or os.sep in name):
            return path
        if os.sep not in name and (LECTURES / f"{path.stem}.py").is_file():
            return LECTURES / f"{path.stem}.py"
    if path.suffix != ".py" and os.sep not in name:
        raise NotFound("lecture", name, _names())
    there = sorted(str(p) for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
    raise NotFound("lecture", name, there or _names())


def _names() -> list[str]:
    return sorted(p.stem for p in LECTURES.glob("lecture_*.py"))


def _list_lectures() -> int:
    names = _names()
    width = max(map(len, names), default=0)
    status = 0
    for name in names:
        try:
            _say(f"{name:{width}}  {harmless(source.read(LECTURES / f'{name}.py').title)}")
        except LitbookError as error:  # the others are listed all the same
            _complain(str(error))
            status = error.exit_status
    if not names:
        _say("there are no lectures yet")
    return status


def _list_sections(path: Path) -> int:
    lecture = run.usable(path)
    by_name = {f.name: f for f in lecture.functions if f.kind in ("part", "section")}
    _say(harmless(lecture.title))
    lines = []
    for name in lecture.section_names():
        function = by_name[name]
        inside = function.parent is not None and lecture.functions[function.parent].kind == "part"
        device = f"  [{function.requires}]" if function.requires else ""
        lines.append(("  " * (1 + inside) + name, harmless(function.heading) + device))
    width = max((len(name) for name, _ in lines), default=0)
    for name, heading in lines:
        _say(f"{name:{width}}  {heading}")
    return 0


def _run(path: Path, asked: argparse.Namespace) -> int:
    run.usable(path, asked.sections)  # errors of the text come before anything heavy
    _check_writable(asked.out)
    from litbook.render.terminal import Screen, Terminal

    terminal = Terminal(Screen(file=sys.stdout), quiet=asked.quiet)  # bound now: a lecture prints elsewhere
    try:
        record = run.run(
            path, sections=asked.sections, device=asked.device, timeout=asked.timeout, listener=terminal
        )
    finally:
        terminal.end()
    status = _close(record, asked)
    if asked.out is not None:
        _write(asked.out, record)
    return status


def _close(record: trace.Record, asked: argparse.Namespace) -> int:
    """The failures in full, then the line that counts."""
    if not asked.quiet:
        _say()
    _say("\n\n".join([*report.problems(record), report.summary(record)]))
    return 0 if report.holds(record) else 1


def _check_writable(out: Path | None) -> None:
    if out is not None and out.is_dir():
        raise LitbookError(f"--out {out}: this is a folder\n    name a file in it")
    if out is not None and not out.resolve().parent.is_dir():
        raise LitbookError(f"--out {out}: there is no folder {out.parent}\n    create it first")


def _write(out: Path, record: trace.Record) -> None:
    """Write the record whole or not at all: a temporary file beside it, then a rename.

    What is there and no file (a pipe, `/dev/stdout`) is written to, not replaced.
    """
    from litbook import trace

    content = trace.dumps(record).encode(errors="backslashreplace")  # a lone surrogate as JSON spells it
    try:
        if out.exists() and not out.is_file():
            out.write_bytes(content)
        else:
            _replace(out.resolve(), content)
    except OSError as error:
        raise LitbookError(f"--out {out}: {error.strerror}; nothing was written") from None


def _replace(file: Path, content: bytes) -> None:
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def _complain(text: str) -> None:
    print(f"run_lecture.py: {harmless(text)}", file=sys.stderr)
