"""The command line: arguments, exit codes, all printing.

    python tools/run_lecture.py LECTURE [SECTION ...]
    python tools/run_lecture.py --compare OLD.json NEW.json

Nothing heavy is imported before the lecture is known to be usable: `--help`, `--list` and errors of the
command line or the lecture's text must come at once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from litbook.errors import LitbookError, RecordError
from litbook.project import CHECKOUT, Project, name_of, recording_of
from litbook.record import encoding, model
from litbook.text import source

if TYPE_CHECKING:
    from litbook.record import compare

EXIT = """\
exit status: 0 every claim holds; 1 a claim failed, a value differs from its recording, or the lecture
raised; 2 the lecture, its recording or the command line cannot be used; 130 interrupted"""


class NotKept(LitbookError):
    """The run is not recorded, because of what it found."""

    slug = "not-recorded"
    exit_status = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with `arguments` (default: the process's own). Returns the exit status."""
    _prepare_streams()
    asked = _parser().parse_intermixed_args(arguments)  # sections may stand behind options, too
    try:
        if asked.compare:
            return _compare(asked)
        if asked.lecture is None:
            return _list_lectures()
        path = Project.find(CHECKOUT).lecture(asked.lecture)
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
    add("lecture", metavar="LECTURE", nargs="?", help="a name (lecture_01) or the path of any lecture file")
    add("sections", metavar="SECTION", nargs="*", help="run only these sections (default: all)")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="what to run on (default: auto)")
    add("--list", action="store_true", help="list the sections (without LECTURE: the lectures), run nothing")
    add("--quiet", action="store_true", help="print only what went wrong, and the count of claims")
    add("--out", metavar="FILE", type=Path, help="write the record of the run to FILE, as JSON")
    add("--timeout", metavar="S", type=_seconds, help="stop after S seconds, naming the line reached")
    add("--record", action="store_true", help="keep the run as the recording of this kind of device")
    add(
        "--approve",
        action="store_true",
        help="as --record, also where values differ from the recording there is",
    )
    add(
        "--compare",
        metavar=("OLD", "NEW"),
        nargs=2,
        type=Path,
        help="run nothing; list what differs between two files written with --out",
    )
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 10**8:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def named_lectures(arguments: Sequence[str] | None, prog: str, description: str) -> list[str]:
    """The lectures that the command line of a tool names, which takes nothing else; all by default."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    words = "a name (lecture_01) or a path (default: every lecture)"
    parser.add_argument("lectures", metavar="LECTURE", nargs="*", help=words)
    return parser.parse_args(arguments).lectures or Project.find(CHECKOUT).names()


def _list_lectures() -> int:
    lectures = Project.find(CHECKOUT).lectures()
    width = max((len(name_of(path)) for path in lectures), default=0)
    status = 0
    for path in lectures:
        try:
            _say(f"{name_of(path):{width}}  {harmless(source.outline(path).title)}")
        except LitbookError as error:  # the others are listed all the same
            _complain(str(error))
            status = error.exit_status
    if not lectures:
        _say("there are no lectures yet")
    return status


def _list_sections(path: Path) -> int:
    lecture = source.outline(path)
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
    keep = asked.record or asked.approve
    source.usable(path, asked.sections)  # errors of the text come before anything heavy
    _check_writable(asked.out)
    if keep and asked.sections:
        raise LitbookError("a recording is of a whole lecture\n    leave the sections out")
    from litbook.run import process

    record = process.record_of(
        path,
        sections=asked.sections,
        device=asked.device,
        timeout=asked.timeout,
        listener=f"litbook.render.terminal:{'quiet' if asked.quiet else 'loud'}",
    )
    against = _against(path, record)
    kept = _keep(against, record, asked) if keep else None
    status = _close(record, against, kept, asked)
    if asked.out is not None:
        _write(asked.out, record)
    return status


def _close(
    record: model.Record, against: Against, kept: str | LitbookError | None, asked: argparse.Namespace
) -> int:
    """The failures in full, what differs from the recording, then the line that counts."""
    from litbook.render import report

    if not asked.quiet:
        _say()
    summary = report.summary(record)
    differing = against.differing(record)
    accepted = isinstance(kept, str)
    said = report.problems(record) + [harmless(str(found)) for found in differing]
    contradicting = [d for d in differing if d.contradicts]
    if contradicting:
        summary += f"; {_count(len(contradicting), 'difference')} from {against.shown}"
    elif differing:
        summary += f"; {_count(len(differing), 'section')} newer than {against.shown}"
    if differing and against.recording and (releases := report.releases(record, against.recording)):
        said.append(releases)
    if differing and not accepted and report.holds(record):  # else --approve would refuse
        said.append(_way_out(asked, record))
    if isinstance(kept, str):
        said.append(kept)
    _say("\n\n".join([*said, summary]))
    if isinstance(kept, LitbookError):
        _complain(str(kept))
    elif against.unusable and not accepted:
        _complain(str(against.unusable))
    if not report.holds(record) or (contradicting and not accepted):
        return 1
    trouble = kept if isinstance(kept, LitbookError) else None if accepted else against.unusable
    return trouble.exit_status if trouble else 0


# ---------------------------------------------------------------------------- recordings


@dataclass(frozen=True)
class Against:
    """The recording of this kind of device, as far as there is one, and what the run has to say about it."""

    file: Path
    recording: model.Record | None = None
    comparison: compare.Comparison | None = None
    unusable: LitbookError | None = None

    @property
    def shown(self) -> str:
        return harmless("/".join(self.file.parts[-3:]))

    def differing(self, record: model.Record) -> list[compare.Difference]:
        """What differs. That a section's text is new is no difference while sections are run alone."""
        found = self.comparison.differences if self.comparison else ()
        return [d for d in found if not (record.ran and d.kind in ("text", "section"))]


def _against(path: Path, record: model.Record) -> Against:
    from litbook.record import compare, recordings

    device = record.environment.device
    file = recording_of(path, device.slug or device.kind)
    if not os.path.lexists(file):
        return Against(file)
    try:
        recording = recordings.read(file, record.lecture)
        return Against(file, recording, compare.compare(record, recording))
    except LitbookError as error:
        return Against(file, unusable=error)


def _keep(against: Against, record: model.Record, asked: argparse.Namespace) -> str | LitbookError:
    """Write the recording, and say so; or why not."""
    from litbook.record import recordings
    from litbook.render import report

    if not report.holds(record):
        return NotKept(
            "not recorded: a claim fails or the lecture raised\n"
            "    a recording is of a run in which every claim holds"
        )
    if not asked.approve and against.unusable:
        return against.unusable
    if not asked.approve and against.differing(record):
        return NotKept(
            f"not recorded: {against.shown} says something else\n    --approve accepts what differs"
        )
    if against.comparison and not against.comparison.differences:
        return (
            f"{against.shown} stays as it is: no value, claim or section differs (delete it to record afresh)"
        )
    try:
        recordings.write(against.file, record)
    except RecordError as error:
        return error
    return f"recorded in {against.shown}"


def _way_out(asked: argparse.Namespace, record: model.Record) -> str:
    device = record.environment.device.kind
    command = f"python tools/run_lecture.py {asked.lecture} --device {device} --approve"
    return harmless(f"If the new values are the right ones: {command}")


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _compare(asked: argparse.Namespace) -> int:
    """`--compare OLD NEW`: one table of what differs between two records, section by section."""
    if asked.lecture is not None:
        raise LitbookError("--compare runs no lecture\n    leave the name of the lecture out")
    from litbook.record import compare

    old, new = (encoding.read(file) for file in asked.compare)
    found = compare.compare(new, old)
    _say(harmless("\n".join([*_columns(_environments(old, new, asked.compare)), "", *_table(found), ""])))
    counted = f"{_count(found.values, 'value')} and {_count(found.claims, 'claim')} were compared"
    _say(
        f"{_count(len(found.differences), 'difference') if found.differences else 'no difference'}; {counted}"
    )
    return 1 if found.differences else 0


def _environments(old: model.Record, new: model.Record, files: Sequence[Path]) -> list[tuple[str, ...]]:
    """Where and with what the two records were made, as far as that differs."""
    rows = [("", *map(str, files))]
    sides = [_environment(record) for record in (old, new)]
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        a, b = (side.get(name, "-") for side in sides)
        if a != b or name == "torch":
            rows.append((name, a, b))
    return rows


def _environment(record: model.Record) -> dict[str, str]:
    it = record.environment
    known = {**it.versions, "python": it.python, "os": it.os, "cpu": it.cpu, "threads": str(it.threads)}
    device = it.device
    return known | {
        "device": device.name,
        "driver": device.driver or "-",
        "cuda": device.cuda or "-",
        "date": it.date,
    }


def _table(found: compare.Comparison) -> list[str]:
    """A line per change, under the name of its section."""
    from litbook.record import compare

    rows = [("line", "what", "was", "is", "by")]
    heads: dict[int, str] = {}
    by_section: dict[str, list[compare.Difference]] = {}
    for difference in found.differences:
        by_section.setdefault(difference.section, []).append(difference)
    for section, differences in by_section.items():
        heads[len(rows)] = section[:WIDE]
        for it in differences:
            changes = it.changes or (compare.Change("", "", ""),)
            what = it.what[:WIDE]
            rows += [
                (str(it.place.line), f"{what}{' ' * c.at[:1].isalpha()}{c.at}", c.was, c.now, c.by)
                for c in changes
            ]
    lines: list[str] = []
    for number, line in enumerate(_columns(rows) if found.differences else []):
        lines += ["", heads[number], line] if number in heads else [line]
    return lines


WIDE = 60  # characters of an expression in the table


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


# ---------------------------------------------------------------------------- the record in a file


def _check_writable(out: Path | None) -> None:
    if out is not None and out.is_dir():
        raise LitbookError(f"--out {out}: this is a folder\n    name a file in it")
    if out is not None and not out.resolve().parent.is_dir():
        raise LitbookError(f"--out {out}: there is no folder {out.parent}\n    create it first")


def _write(out: Path, record: model.Record) -> None:
    """Write the record whole or not at all.

    What is there and no file (a pipe, `/dev/stdout`) is written to, not replaced.
    """
    from litbook.record import recordings

    content = encoding.dumps(record).encode(errors="backslashreplace")  # a lone surrogate as JSON spells it
    try:
        if out.exists() and not out.is_file():
            out.write_bytes(content)
        else:
            recordings.replace_whole(out, content)
    except OSError as error:
        raise LitbookError(f"--out {out}: {error.strerror}; nothing was written") from None


def harmless(text: str) -> str:
    """What a terminal may show of a text; `report` comes only for what may not stay as it is."""
    if text.replace("\n", "").isprintable():
        return text
    from litbook.render import report

    return report.harmless(text)


def _complain(text: str) -> None:
    print(f"run_lecture.py: {harmless(text)}", file=sys.stderr)
