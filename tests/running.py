"""Ways to run a lecture in a test: in this process, or through the real command line.

`LITBOOK_BLESS=1 pytest tests/test_report.py tests/test_terminal.py` rewrites the golden files beside
`tests/samples/*.py`; read the difference before you commit it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

from litbook.record import model
from litbook.run.run import run

REPO = Path(__file__).resolve().parent.parent
SAMPLES = REPO / "tests" / "samples"
COMMAND = [sys.executable, str(REPO / "tools" / "run_lecture.py")]

HEAD = '"""A lecture."""\nfrom litbook import figure, image, link, misbelief, note, question, requires\n'


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


def command(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """`python tools/run_lecture.py WORDS` in a process of its own; `env` adds to the environment."""
    env = {**os.environ, "PYTHONIOENCODING": "utf-8", **options.pop("env", {})}
    env = {name: value for name, value in env.items() if value is not None}
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        env=env,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        **options,
    )


def one(made: model.Record, key: str = "one") -> model.Section:
    """The section of that key."""
    return made.by_key[key]


def shown(made: model.Record, text: str) -> list[Any]:
    """What the inspected expression `text` was each time: the number, the text, or the whole snapshot."""
    found: list[Any] = []
    for section in made.sections:
        places = (value.value for value in section.values if value.text == text)
        found += [plain(section.snapshots[place]) for place in places if place is not None]
    return found


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
    called = (made.called(section, frame) for frame, _ in section.steps)
    return [
        it.first + it.statements[statement].first
        for it, (_, statement) in zip(called, section.steps, strict=True)
    ]


def called(made: model.Record) -> list[str]:
    """The names of what the kept frames are of, in order, section by section."""
    return [
        made.called(section, frame).name for section in made.sections for frame in range(len(section.frames))
    ]


def silent(made: model.Record) -> list[int]:
    """The lines of statements that were never reached, though what they stand in was entered."""
    found = []
    for section in made.sections:
        called = (made.definition_of[key] for key in section.calls)
        entered: list[model.Section | model.Definition] = [section, *called]
        places = ((entered[place], number) for place, number in section.unreached)
        found += [it.first + it.statements[number].first for it, number in places]
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
