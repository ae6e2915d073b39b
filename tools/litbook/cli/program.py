"""The command line: arguments, exit codes, all printing.

    litbook COMMAND ...                                   every command, see `COMMANDS`
    python tools/run_lecture.py LECTURE [SECTION ...]     `litbook run` where nothing is installed

Nothing heavy is imported before the lecture is known to be usable: `--help`, `--list` and errors of the
command line or the lecture's text must come at once.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from litbook import plugins
from litbook.cli import completion
from litbook.errors import LitbookError, NotFound
from litbook.files import NotWritten, replace_whole, way_out
from litbook.lecture import parse
from litbook.project import CHECKOUT, CONFIG, WORDS, NoBook, Project, name_of, recording_of, shown
from litbook.record import encoding, model
from litbook.record.device_kinds import devices, needs

if TYPE_CHECKING:
    from litbook.record import compare
    from litbook.rules import judge

EXIT = """\
exit status: 0 every claim holds; 1 a claim failed, a value differs from its recording, the lecture
raised, or a strict build would refuse something else; 2 the lecture, its recording or the command line
cannot be used; 130 interrupted (143 by SIGTERM)"""


RAW = argparse.RawDescriptionHelpFormatter

plugins.bring_in("edtrace")


class NotKept(LitbookError):
    """The run is not recorded, because of what it found."""

    slug = "not-recorded"
    exit_status = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """`run_lecture.py` with `arguments` (default: the process's own). Returns the exit status."""
    parser = _parser("run_lecture.py", "Run a lecture, check its claims, and print prose, code and values.")
    add = parser.add_argument
    add("--list", action="store_true", help="list the sections (without LECTURE: the lectures), run nothing")
    add("--record", action="store_true", help=KEEPS)
    add("--approve", action="store_true", help=APPROVES)
    add("--compare", metavar=("OLD", "NEW"), nargs=2, type=Path, help=f"run nothing; {COMPARES}")

    def answer() -> int:
        asked = parser.parse_intermixed_args(arguments)  # sections may stand behind options, too
        project = Project.find(CHECKOUT)
        if asked.compare and asked.lecture is not None:
            raise LitbookError("--compare runs no lecture\n    leave the name of the lecture out")
        if asked.compare:
            return _compare(asked.compare)
        if asked.lecture is None:
            return _list_lectures(project)
        path = project.lecture(asked.lecture)
        return _list_sections(path) if asked.list else _run(path, asked)

    return _status("run_lecture.py", answer)


def litbook(arguments: Sequence[str] | None = None) -> int:
    """`litbook` with `arguments` (default: the process's own), the first of which is the command."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--complete"]:
        acts = {name: act for name, (act, _) in COMMANDS.items()}
        completion.complete(acts, os.environ.get("COMP_LINE", ""))
        return 0
    commands = "\n".join(f"  {name:8} {text}" for name, (_, text) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="litbook",
        usage="litbook COMMAND [-h] ...",
        description=f"Lectures whose every claim is executed. The commands:\n{commands}",
        formatter_class=RAW,
    )
    parser.add_argument("command", metavar="COMMAND", help="what to do; -h behind it says more")
    parser.add_argument("--version", action=_Version, help="say which litbook this is, and where it is")
    if not words:
        parser.print_help(sys.stderr)
        return 2
    name = parser.parse_args(words[:1]).command
    if name not in COMMANDS:
        parser.error(str(NotFound("command", name, list(COMMANDS))))
    return _status("litbook", lambda: COMMANDS[name][0](words[1:]))


class _Version(argparse.Action):
    """`--version`: what a report of an error begins with."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002 argparse's name
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from litbook import version

        _say(f"litbook {version.version()} ({TOOLS}, Python {sys.version.partition(' ')[0]})")
        parser.exit()


def _status(program: str, answer: Callable[[], int]) -> int:
    """What a command ends with, whatever stops it; errors are printed here."""
    # Printing never fails for a character that the terminal lacks, nor when there is no terminal at all.
    if sys.stdout is None:  # closed by the shell: `>&-`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  kept open for the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    atexit.register(gc.freeze)  # else Python looks through a whole record for garbage before it ends
    terminated = 0

    def terminate(number: int, _: object) -> NoReturn:
        """SIGTERM ends what runs as Ctrl-C does, and leaves as little."""
        nonlocal terminated
        terminated = 128 + number
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        return answer()
    except LitbookError as error:
        _complain(str(error), program)
        return terminated or error.exit_status
    except KeyboardInterrupt:  # before or after the lecture itself ran
        _complain("interrupted", program)
        return terminated or 130
    except ModuleNotFoundError as error:  # of what draws pages; a lecture's ends its run
        from litbook import version

        library = (error.name or "").partition(".")[0]
        way_out = f"pip install {shlex.join(version.here('site'))}"
        _complain(f"the library {library} is not installed\n    {way_out}", program)
        return 2
    except (OSError, ValueError) as error:  # a full disk behind `>`; a lecture that closed the real stdout
        file = getattr(error, "filename", None)
        _complain(f"{file or 'cannot print'}: {getattr(error, 'strerror', None) or error}", program)
        _leave_stdout()
        return 2
    finally:
        signal.signal(signal.SIGTERM, before)


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


def _say_json(value: object) -> None:
    """Print for programs."""
    _say(json.dumps(value, ensure_ascii=False))


# ---------------------------------------------------------------------------- the commands

TOOLS = str(Path(__file__).resolve().parents[2])  # where litbook lies, installed or not
KEEPS = "keep the run as the recording of this kind of device"
APPROVES = "as --record, also where values differ from the recording there is"
COMPARES = "list what differs between two files written with --out"
JSON = "print one JSON value for programs, and nothing else"
LECTURE = "a name (lecture_01) or the path of any lecture"


def _number(kind: type[float], end: float, what: str) -> Callable[[str], float]:
    """What reads a number between 0 and `end` off a command line."""

    def read(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = kind(0)
        if not 0 < number < end:
            raise argparse.ArgumentTypeError(f"{text!r} is no {what}")
        return number

    return read


SECONDS = _number(float, 10**8, "number of seconds above 0")
PORT = _number(int, 65536, "port: these are the numbers from 1 to 65535")


def _parser(program: str, text: str) -> completion.Parser:
    """What every command that runs a lecture takes."""
    parser = completion.Parser(prog=program, description=text, epilog=EXIT, formatter_class=RAW)
    parser.set_defaults(program=program.partition(" ")[0], record=False, approve=False)
    add = parser.add_argument
    add("lecture", metavar="LECTURE", nargs="?", help=LECTURE)
    add("sections", metavar="SECTION", nargs="*", help="run only these sections (default: all)")
    kinds = ("auto", "cpu", *(kind.name for kind in devices()))
    add("--device", choices=kinds, default="auto", help="what to run on (default: auto)")
    add("--quiet", action="store_true", help="print only what went wrong, and the count of claims")
    add("--out", metavar="FILE", type=Path, help="write the record of the run to FILE, as JSON")
    add("--timeout", metavar="S", type=SECONDS, help="stop after S seconds, naming the line reached")
    add("--json", action="store_true", help=JSON)
    tools, whose = WORDS or None, "in whose words it is written (default: as its book says)"
    add("--words", choices=tools, default="", help=whose)
    return parser


def _lecture(name: str) -> Path:
    """The lecture of that name or path; one that is named by its path needs no book around it."""
    try:
        return Project.find(Path.cwd()).lecture(name)
    except NoBook:
        if os.path.lexists(name) or os.sep in name:
            return Project(Path.cwd()).lecture(name)
        raise


def _run_command(words: list[str]) -> int:
    parser = _parser("litbook run", "Run a lecture, check its claims, and print prose, code and values.")
    asked = parser.parse_intermixed_args(words)
    if asked.lecture is None:
        parser.error("the following arguments are required: LECTURE")
    return _run(_lecture(asked.lecture), asked)


def _record_command(words: list[str]) -> int:
    """One lecture or all; the first that is not recorded is the last that runs."""
    parser = _parser("litbook record", f"Run lectures (default: all), and {KEEPS}.")
    differ = "also where values differ from the one there is"
    parser.add_argument("--approve", action="store_true", help=differ)
    asked = parser.parse_intermixed_args(words)
    asked.record = asked.quiet = True
    for name in [asked.lecture] if asked.lecture else Project.find(Path.cwd()).every():
        asked.lecture = name
        if status := _run(_lecture(name), asked):
            return status
    return 0


def _compare_command(words: list[str]) -> int:
    parser = completion.Parser(prog="litbook compare", description=COMPARES.capitalize() + ".")
    for name in ("old", "new"):
        parser.add_argument(name, metavar=name.upper(), type=Path)
    asked = parser.parse_args(words)
    return _compare([asked.old, asked.new])


def _list_command(words: list[str]) -> int:
    parser = completion.Parser(prog="litbook list", description="List lectures, or one's sections.")
    parser.add_argument("lecture", metavar="LECTURE", nargs="?", help=LECTURE)
    parser.add_argument("--json", action="store_true", help=JSON)
    asked = parser.parse_args(words)
    if asked.json:
        from litbook.cli import json_output

        outlines = [
            json_output.outline(name_of(path), parse.outline(path), str(Path(shown(path)).parent))
            for path in ([_lecture(asked.lecture)] if asked.lecture else Project.find(Path.cwd()).lectures())
        ]
        _say_json(outlines[0] if asked.lecture else outlines)
        return 0
    if asked.lecture:
        return _list_sections(_lecture(asked.lecture))
    return _list_lectures(Project.find(Path.cwd()))


def _check_command(words: list[str]) -> int:
    from litbook.cli import check

    return check.command(words)


def _rule_command(words: list[str]) -> int:
    from litbook.cli import check

    return check.explain(words)


def _new_command(words: list[str]) -> int:
    parser = completion.Parser(prog="litbook new", description="Begin a book, in a folder of its own.")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder that is empty, or not there yet")
    folder = parser.parse_args(words).folder
    from litbook.site import scaffold

    files = scaffold.begin(folder)
    go = "" if folder.samefile(Path.cwd()) else f"cd {shlex.quote(str(folder))} && "
    _say("\n    ".join([f"{harmless(str(folder))} holds a book of one lecture:", *files]))
    _say(f"\nTo see it, and each change when you save it:\n    {harmless(go)}litbook serve")
    return 0


def _needs_mkdocs(config: Path, *others: str) -> None:
    """Raises where what draws a site is not installed, or its configuration leaves us out.

    From then on Material says nothing of its own end: docs/maintain.md says what then.
    """
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "true")
    for name in ("mkdocs", *others):
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(name=name)
    if not Project.is_drawn(config):  # MkDocs would build a site without them, and find nothing wrong
        what = f"{config.name} names no plugin litbook: no lecture runs"
        raise LitbookError(f"{what}\n    add it: plugins: [search, litbook]")


def _build_command(words: list[str]) -> int:
    parser = completion.Parser(prog="litbook build", description="Build the site; every problem fails it.")
    parser.add_argument("--site-dir", metavar="DIR", help="where to (default: as mkdocs.yml says)")
    asked, project = parser.parse_args(words), Project.find(Path.cwd())
    _needs_mkdocs(project.config)
    command = [sys.executable, *"-m mkdocs build --strict --config-file".split(), str(project.config)]
    command += ["--site-dir", asked.site_dir] if asked.site_dir else []
    return subprocess.run(command, check=False).returncode


def _pdf_command(words: list[str]) -> int:
    does = "Build the site, strictly, and print all of it as one PDF."
    parser = completion.Parser(prog="litbook pdf", description=does)
    parser.add_argument("file", metavar="FILE.pdf", type=Path)
    become = "what becomes of them (default: open)"
    parser.add_argument("--asides", choices=("open", "out"), default="open", help=become)
    parser.add_argument("--browser", metavar="PROGRAM", default="", help="default: the first Chromium here")
    asked, project = parser.parse_args(words), Project.find(Path.cwd())
    _needs_mkdocs(project.config, "pypdf")
    from litbook.site import pdf

    if not asked.file.resolve().parent.is_dir():
        raise LitbookError(f"{asked.file}: there is no folder {asked.file.parent}\n    create it first")
    program = pdf.browser(asked.browser)  # before the build, which takes its time
    from litbook.run import process

    with process.private_folder() as folder:
        if status := _build_command(["--site-dir", str(folder / "site")]):
            return status
        title, address = pdf.named(project.config)
        pages = pdf.write(folder / "site", asked.file, program, title, asides=asked.asides, address=address)
    _say(harmless(f"{asked.file} has {pages} pages"))
    return 0


def _pages_command(words: list[str]) -> int:
    does = "Write the pages as plain Markdown, with all they need, for any generator of sites."
    parser = completion.Parser(prog="litbook pages", description=does)
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder that is empty, or not there yet")
    asked, project = parser.parse_args(words), Project.find(Path.cwd())
    _needs_mkdocs(project.config)
    from litbook.site import export

    problems = export.pages(project.config, asked.folder)
    for text in problems:
        _say(text)
    _say(harmless(f"{asked.folder} holds the book as Markdown, with {CONFIG}"))
    return int(bool(problems))


def _serve_command(words: list[str]) -> int:
    parser = completion.Parser(prog="litbook serve", description="Show the site and what is saved.")
    parser.add_argument("--port", type=PORT, default=8000, help="of localhost (default: 8000)")
    parser.add_argument("--config-file", type=Path, help="of the site (default: the mkdocs.yml of this book)")
    parser.add_argument("--timeout", type=SECONDS, default=300.0, help="seconds that a lecture may take")
    asked = parser.parse_args(words)
    config = asked.config_file or Project.find(Path.cwd()).config
    _needs_mkdocs(config)
    from litbook.run import process

    # It imports what lectures need while this process imports MkDocs.
    warm = process.Warm(Project.of(config.resolve()).folder)
    from litbook.site.preview import preview

    return preview.serve(config, asked.port, warm, asked.timeout)


def _badge_command(words: list[str]) -> int:
    parser = completion.Parser(prog="litbook badge", description="Draw the badge of the recordings.")
    parser.add_argument("file", metavar="FILE.svg", type=Path, help="where to: docs/images/claims.svg")
    asked = parser.parse_args(words)
    from litbook.site.badge import badge

    drawn = badge(Project.find(Path.cwd())).encode()
    try:
        replace_whole(asked.file, drawn)
    except OSError as error:
        raise NotWritten(asked.file, error) from None
    return 0


COMMANDS: dict[str, tuple[Callable[[list[str]], int], str]] = {
    "new": (_new_command, "begin a book: one lecture, and all that publishes it"),
    "run": (_run_command, "run a lecture, or some of its sections, and count its claims"),
    "record": (_record_command, KEEPS),
    "compare": (_compare_command, COMPARES),
    "list": (_list_command, "list the lectures, or the sections of one"),
    "check": (_check_command, "look for all that a strict build refuses, and for claims that cannot fail"),
    "rule": (_rule_command, "explain what a rule finds, why, and the way out"),
    "build": (_build_command, "build the site, strictly"),
    "pages": (_pages_command, "write the pages as plain Markdown, for any generator of sites"),
    "pdf": (_pdf_command, "build the site, and print all of it as one PDF"),
    "serve": (_serve_command, "show the site while lectures are written"),
    "badge": (_badge_command, "draw the badge that counts what the recordings hold"),
}


def _list_lectures(project: Project) -> int:
    lectures = project.lectures()
    width = max((len(name_of(path)) for path in lectures), default=0)
    status = 0
    for path in lectures:
        try:
            _say(f"{name_of(path):{width}}  {harmless(parse.outline(path).title)}")
        except LitbookError as error:  # the others are listed all the same
            _complain(str(error))
            status = error.exit_status
    if not lectures:
        _say("there are no lectures yet")
    for problem in project.overlooked():
        _complain(str(problem))
    return status


def _list_sections(path: Path) -> int:
    lecture = parse.outline(path)
    _say(harmless(lecture.title))
    lines = []
    for number in lecture.order:
        name, function = lecture.section_name(number), lecture.functions[number]
        inside = function.parent is not None and lecture.functions[function.parent].kind == "part"
        device = f"  [{function.requires}]" if function.requires else ""
        heading = "aside: " * function.aside + harmless(function.heading) + device
        lines.append(("  " * (1 + inside) + name, heading))
    width = max((len(name) for name, _ in lines), default=0)
    for name, heading in lines:
        _say(f"{name:{width}}  {heading}")
    return 0


def _run(path: Path, asked: argparse.Namespace) -> int:
    """Run a lecture, compare what it says with its recording, keep it where that is asked for, and say so."""
    keep, out = asked.record or asked.approve, asked.out
    if out is not None and out.is_dir():
        raise LitbookError(f"--out {out}: this is a folder\n    name a file in it")
    if out is not None and not out.resolve().parent.is_dir():
        raise LitbookError(f"--out {out}: there is no folder {out.parent}\n    create it first")
    from litbook.run import process

    try:
        record = process.record_of(
            path,
            sections=asked.sections,
            device=asked.device,
            timeout=asked.timeout,
            slow=keep or bool(asked.sections),
            words=asked.words,
            terminal=os.ttyname(0) if sys.stdin is not None and sys.stdin.isatty() else "",
            listener=f"litbook.terminal.transcript:{'quiet' if asked.quiet or asked.json else 'loud'}",
        )
    except process.NotFirst:  # rank 0 says what comes of it
        return 0
    if not asked.quiet and not asked.json and any(needs(s.requires).ranks for s in record.sections):
        from litbook.terminal import ranks, transcript

        ranks.of_ranks(transcript.loud(), record)
    device = record.environment.device
    against = Against(recording_of(path, device.slug or device.kind))
    if os.path.lexists(against.file):
        from litbook.record import compare, recordings

        try:
            recording = recordings.read(against.file, record.lecture)
            against = Against(against.file, recording, compare.compare(record, recording))
        except LitbookError as error:
            against = Against(against.file, unusable=error)
    kept, trouble = "", against.unusable
    if keep:
        try:
            kept, trouble = _keep(against, record, asked.approve), None
        except LitbookError as error:
            trouble = error
    from litbook.rules.judge import judge_run

    findings = judge_run(path, record, words=asked.words)
    status = _close(record, against, kept, trouble, asked, findings)
    if out is not None:  # written whole or not at all
        content = encoding.dumps(record).encode()
        try:
            if out.exists() and not out.is_file():  # a pipe, `/dev/stdout`: written to, not replaced
                out.write_bytes(content)
            else:
                replace_whole(out, content)
        except OSError as error:
            why = f"--out {out}: {error.strerror}; nothing was written{way_out(error)}"
            raise LitbookError(why) from None
    return status


def _close(
    record: model.Record,
    against: Against,
    kept: str,
    trouble: LitbookError | None,
    asked: argparse.Namespace,
    findings: judge.Findings,
) -> int:
    """Say what a run came to, and return its exit status.

    First the failures in full, then what differs from the recording, then the line that counts. `kept` says
    how the recording was written, which accepts what differs; `trouble` is a recording that cannot be read,
    or why none was written.
    """
    from litbook.rules import outcome, recorded
    from litbook.values import formatting

    holds, differing = outcome.holds(record), against.differing(record)
    contradicting = [difference for difference in differing if difference.contradicts]
    told = [*findings.errors, *findings.warnings, *recorded.joined(differing)]
    lines = [harmless(finding.text(coded=True)) for finding in told]
    if differing and against.recording and (releases := outcome.releases(record, against.recording)):
        lines.append(releases)
    if contradicting and against.recording and (other := outcome.interpreters(record, against.recording)):
        lines.append(other)
    if differing and not kept and holds:  # else --approve would refuse
        program = "litbook record" if asked.program == "litbook" else "python tools/run_lecture.py"
        command = f"{program} {asked.lecture} --device {record.environment.device.kind} --approve"
        lines.append(harmless(f"If the new values are the right ones: {command}"))
    if kept:
        lines.append(kept)
    # What is wrong with the lecture comes before what is wrong with its recording.
    wrong = bool(findings.errors or not holds or (contradicting and not kept))
    status = 1 if wrong else trouble.exit_status if trouble else 0
    if asked.json:
        from litbook.cli import json_output

        more: dict[str, object] = {"schema": 2, "recorded": bool(kept)}
        more["findings"] = [
            {**finding.as_data(), "severity": severity}
            for severity, several in (("error", findings.errors), ("warn", findings.warnings))
            for finding in several
        ]
        more["differences"] = [difference.finding().as_data() for difference in differing]
        _say_json(json_output.run(record) | more | {"status": status})
        if trouble:
            _complain(str(trouble), asked.program)
        return status
    if not asked.quiet:
        _say()
    if not asked.quiet and (took := outcome.longest([record])):
        lines.append(harmless(took))
    summary = outcome.summary(record)
    beside = sum(finding.code not in ("claim-fails", "raised") for finding in findings.errors)
    if beside:
        summary += f"; {formatting.many(beside, 'problem')} beside claims"
    if contradicting and not kept:  # else the recording is this run
        summary += f"; {formatting.many(len(contradicting), 'difference')} from {against.shown}"
    elif differing and not kept:
        summary += f"; {formatting.many(len(differing), 'section')} newer than {against.shown}"
    _say("\n\n".join([*lines, summary]))
    if trouble:
        _complain(str(trouble), asked.program)
    return status


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
        differences = self.comparison.differences if self.comparison else ()
        return [d for d in differences if not (record.asked and d.kind in ("text", "section"))]


def _keep(against: Against, record: model.Record, approve: bool) -> str:
    """Write the recording, and say so. Raises `LitbookError` where it may not, or cannot, be written."""
    from litbook.record import recordings
    from litbook.rules import outcome

    if not outcome.holds(record):
        way_out = "a recording is of a run in which every claim holds"
        raise NotKept(f"not recorded: a claim fails or the lecture raised\n    {way_out}")
    if not approve and against.unusable:
        raise against.unusable
    if not approve and against.differing(record):
        way_out = "--approve accepts what differs"
        raise NotKept(f"not recorded: {against.shown} says something else\n    {way_out}")
    more = bool(against.recording and against.recording.asked and not record.asked)  # than some sections
    if against.comparison and not against.comparison.differences and not more:
        same = "no value, claim or section differs (delete it to record afresh)"
        return f"{against.shown} stays as it is: {same}"
    if record.asked:
        record = recordings.renewed(against.recording, record)
    recordings.write(against.file, record)
    return f"recorded in {against.shown}"


def _compare(files: Sequence[Path]) -> int:
    """One table of what differs between two records, section by section."""
    from litbook.record import compare
    from litbook.terminal import differences
    from litbook.values import formatting

    old, new = map(encoding.read, files)
    result = compare.compare(new, old)
    _say(harmless("\n".join(differences.lines(old, new, [*map(str, files)], result))))
    values, claims = formatting.many(result.values, "value"), formatting.many(result.claims, "claim")
    counted = f"{values} and {claims} were compared"
    differing = (
        formatting.many(len(result.differences), "difference") if result.differences else "no difference"
    )
    _say(f"{differing}; {counted}")
    return 1 if result.differences else 0


# ---------------------------------------------------------------------------- what is said


def harmless(text: str) -> str:
    """What a terminal may show of a text; `report` comes only for what may not stay as it is."""
    if text.replace("\n", "").isprintable():
        return text
    from litbook.rules import outcome

    return outcome.harmless(text)


def _complain(text: str, program: str = "litbook") -> None:
    print(f"{program}: {harmless(text)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(litbook())
