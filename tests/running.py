"""Ways to run a lecture in a test: in this process, through the command line in it, or through a real process.

`LITBOOK_BLESS=1 pytest tests/unit/test_report.py tests/unit/test_terminal.py` rewrites the golden files beside
`tests/samples/*.py`; read the difference before you commit it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeVar

from litbook import cli, plugins
from litbook.errors import LitbookError
from litbook.lecture.parse import parse_sources
from litbook.page.runs import LectureRuns
from litbook.record import model
from litbook.rules import never_ran
from litbook.rules import run as rules_run
from litbook.rules.judge import Findings, judge
from litbook.rules.registry import Severity, all_rules
from litbook.rules.subject import Subject
from litbook.run.run import run

if TYPE_CHECKING:
    from playwright.sync_api import Page

REPO = Path(__file__).resolve().parent.parent
SAMPLES = REPO / "tests" / "samples"
LECTURE_02 = REPO / "lectures" / "lecture_02"
LECTURE_03 = REPO / "lectures" / "lecture_03"
LECTURE_04 = REPO / "lectures" / "lecture_04"
LECTURE_05 = REPO / "lectures" / "lecture_05"
COMMAND = [sys.executable, str(REPO / "tools" / "run_lecture.py")]
LITBOOK = [  # `litbook` where it is not installed
    sys.executable,
    "-c",
    f"import sys; sys.path.insert(0, {str(REPO / 'tools')!r}); from litbook.cli import litbook; sys.exit(litbook())",
]

plugins.bring_in("edtrace", "display.asking")  # as the process of a run does, for those in this one

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")  # as in conftest.py
T = TypeVar("T")
WORKERS = ["-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"]  # what `make test` gives to pytest

Done = subprocess.CompletedProcess[str]
Env = Mapping[str, str | None]  # None: not set

HEAD = '"""A lecture."""\nfrom litbook import figure, image, link, misbelief, note, question, requires\n'


def examples(count: int) -> int:
    """How many examples to draw where a test asks for `count`: all in CI, elsewhere a tenth a run."""
    return count if IN_CI else max(20, count // 10)


def sampled(things: Sequence[T], share: int) -> Sequence[T]:
    """All of them in CI, elsewhere one in `share`."""
    return things if IN_CI else things[::share]


def write(folder: Path, text: str, name: str = "lecture_sample.py") -> Path:
    """The lecture `text` as a file in `folder`."""
    file = folder / name
    file.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return file


def section(body: str, before: str = "") -> str:
    """A lecture with one section, `one`, whose body is `body`; `before` stands above it."""
    indented = "\n".join(f"    {line}" if line else "" for line in dedent(body).strip("\n").splitlines())
    return f'{HEAD}{dedent(before)}\n\ndef main():\n    one()\n\n\ndef one():\n    """One."""\n{indented}\n'


def record(folder: Path, text: str, name: str = "lecture_sample.py", **options: Any) -> model.Record:
    """The record of the lecture `text`, run in this process."""
    return run(write(folder, text, name), **options)


def command(
    *words: object,
    env: Env | None = None,
    cwd: Path | None = None,
    program: Callable[[Sequence[str]], int] = cli.run_lecture,
    coded: bool = False,
) -> Done:
    """What `python tools/run_lecture.py WORDS` says and how it ends, asked in this process: no wait for one.

    `program` may be `cli.litbook`, whose first word is a command. Unless `coded`, without the codes of rules.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.ExitStack() as stack:
        stack.enter_context(_environment(env or {}))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(contextlib.chdir(cwd or Path.cwd()))
        status = program([str(word) for word in words])
    texts = [text if coded else uncoded(text) for text in map(text_of, (out, err))]
    return subprocess.CompletedProcess([str(word) for word in words], status, *texts)


def uncoded(text: str) -> str:
    """What a command printed, without the codes of rules behind the first lines of findings.

    Most tests are about the words; that each finding is printed with its code `test_rules` holds.
    """
    return re.sub(rf" \[(?:{'|'.join(all_rules())})\]$", "", text, flags=re.MULTILINE)


def text_of(stream: io.TextIOWrapper) -> str:
    """What was written into `stream`, which lies in memory."""
    stream.seek(0)
    return stream.read()


def process(*words: object, python: str | Path = sys.executable, **options: Any) -> Done:
    """The same in a process of its own, for tests of what only a process has; `env` adds to the environment."""
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", **options.pop("env", {})}
    env = {name: value for name, value in env.items() if value is not None}
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    done = subprocess.run(
        [python, *COMMAND[1:], *map(str, words)],
        env=env,
        text=True,
        encoding="utf-8",
        timeout=600,  # on a busy machine ranks take minutes to import torch
        check=False,
        **options,
    )
    texts = (text if text is None else uncoded(text) for text in (done.stdout, done.stderr))
    done.stdout, done.stderr = texts
    return done


@contextlib.contextmanager
def _environment(changes: Env) -> Iterator[None]:
    """The environment with `changes`; None takes a variable away."""
    before = dict(os.environ)
    try:
        for name, value in changes.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def failures(made: model.Record) -> list[str]:
    """Failed claims and errors of a run, as people read them."""
    return [str(finding) for finding in rules_run.failures(made)]


def remarks(made: model.Record) -> list[str]:
    """What is only worth a word, as people read it."""
    return [str(finding) for finding in (*rules_run.large_pictures(made), *rules_run.shown_nowhere(made))]


def unrun(made: model.Record, recordings: Sequence[model.Record] = ()) -> list[never_ran.UnreachedCheck]:
    """What never ran; nothing where somebody has changed the text into no lecture."""
    try:
        return never_ran.find_never_ran(parse_sources(made.sources), made, recordings)
    except (LitbookError, IndexError):
        return []


def judged(made: model.Record, levels: dict[str, Severity] | None = None, words: str = "") -> Findings:
    """All that the rules find of a run without recordings."""
    subject = Subject(Path("lecture_sample.py"), edition=LectureRuns("lecture_sample", made), words=words)
    return judge(subject, levels or {})


def one(made: model.Record, key: str = "one") -> model.Section:
    """The section of that key."""
    return made.by_key[key]


def shown(made: model.Record, text: str) -> list[Any]:
    """What the inspected expression `text` was each time: the number, the text, or the whole snapshot."""
    return [
        plain(section.snapshots[value.value])
        for section in made.sections
        for value in section.values
        if value.text == text and value.value is not None
    ]


def plain(shot: model.Snapshot) -> Any:
    """A scalar's number or text; any other snapshot itself."""
    if not isinstance(shot, model.Scalar):
        return shot
    return shot.text if shot.number is None else shot.number


def claims(made: model.Record) -> dict[str, str]:
    """Verdicts by the text of their claims."""
    return {claim.text: claim.verdict for _, claim in made.claims()}


def messages(made: model.Record) -> list[str]:
    """What went wrong, as `line: message`, with the innermost of the lecture's lines."""
    return [f"{where(made, section, error)}: {error.message}" for section, error in made.errors()]


def where(made: model.Record, section: model.Section, error: model.Error) -> int:
    """The innermost of the lecture's lines in an error's trace, else the line where it surfaced."""
    paths = {source.path for source in made.sources}
    inner = [line for path, line, *_ in error.trace if path in paths]
    return inner[-1] if inner else section.first + error.line


def steps(made: model.Record) -> list[int]:
    """The first line of every statement that was stepped through, in order, section by section."""
    return [line for section in made.sections for line in steps_of(made, section)]


def steps_of(made: model.Record, section: model.Section) -> list[int]:
    """The first line in its file of every statement that was stepped through in a section."""
    called = (made.callee(section, frame) for frame, _ in section.steps)
    return [
        it.first + it.statements[statement].first
        for it, (_, statement) in zip(called, section.steps, strict=True)
    ]


def called(made: model.Record) -> list[str]:
    """The names of what the kept frames are of, in order, section by section."""
    return [
        made.callee(section, frame).name for section in made.sections for frame in range(len(section.frames))
    ]


def silent(made: model.Record) -> list[int]:
    """The lines of statements that were never reached, though what they stand in was entered."""
    found = []
    for section in made.sections:
        entered: list[model.Section | model.Definition] = [
            section,
            *(made.definition_of[key] for key in section.calls),
        ]
        found += [
            entered[place].first + entered[place].statements[number].first
            for place, number in section.unreached
        ]
    return found


def line_of(text: str, part: str) -> int:
    """The number of the first line of `text` that holds `part`."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def golden(file: Path, actual: str, clean: Callable[[str], str] = str) -> None:
    """Compare with the golden file, or write it where `LITBOOK_BLESS` is set."""
    actual = clean(actual)
    if os.environ.get("LITBOOK_BLESS"):
        file.write_text(actual, encoding="utf-8")
    assert file.exists(), f"{file} is missing: LITBOOK_BLESS=1 writes it"
    assert actual == file.read_text(encoding="utf-8")


def until(page: Page, expression: str, arg: object = None, seconds: float = 30) -> None:
    """Wait until the expression is true in the page.

    From without: what Playwright's `wait_for_function` evaluates within a page goes with it.
    """
    from playwright.sync_api import Error

    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(Error):  # it is on its way to another page
            if page.evaluate(expression, arg):
                return
        assert time.monotonic() < end, f"never true: {expression}"
        page.wait_for_timeout(50)


def searched(site: Path) -> dict[str, str]:
    """What the search's index of a built site holds: the text of each section by its address, and its names."""
    text = (site / "search" / "index.js").read_text(encoding="utf-8")
    pages = json.loads(text.partition("\n")[0].removeprefix("self.__litbook = "))
    return {page + own[0]: " | ".join(own[2:4]) for page, sections in pages for own in sections}
