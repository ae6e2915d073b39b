"""What guards a book: the verdict of a build; numbers that nothing backs, answers that nothing checks,
measured values that no claim reads, claims that never ran or say nothing.

In goes a lecture, out come lines for people and whether something is wrong. It prints nothing. `CHECKS` names
the checks; each takes a lecture, and what is wanted of it. A lecture runs in a process of its own. Changes of
claims and of code are checks of the package `mutants`, which adds them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

from litbook import project
from litbook.errors import LitbookError
from litbook.lecture import parse
from litbook.markdown import bibliography
from litbook.markdown.links import Citations
from litbook.project import NoBook, Project
from litbook.record import model, recordings
from litbook.rules import judge as whole
from litbook.rules import never_ran as reached
from litbook.rules import outcome, prose
from litbook.rules import unbacked_number as numbers
from litbook.rules import unchecked_answer as answers
from litbook.rules import unclaimed_measure as loose
from litbook.rules import vacuous as nothing
from litbook.run import process


def _mathml(source: str, display: str) -> tuple[str, str]:
    from litbook.markdown import (
        mathml,  # half as long as all else of a short lecture: where there is a formula
    )

    return mathml.mathml(source, display)


def judged(path: Path, record: model.Record, *, writing: bool = False, words: str = "") -> whole.Findings:
    """The verdict on a run of the lecture at `path`: what a build refuses in it, in the same words.

    Of its prose as much as can be read with what is installed. Outside a book citations need a
    bibliography beside the lecture. Who is `writing` has recordings that are older than the text, and in
    another tool's `words` numbers that nothing backs, unless the book says otherwise.
    """
    folder = path.resolve().parent
    try:
        book = project.Project.find(folder)
    except project.NoBook:
        book = project.Project(folder, "")
    findings, citations, formula = whole.Findings(), None, None
    if find_spec("bibtexparser") and (book.bibliography.exists() or book.config.exists()):
        try:
            works = bibliography.read(book.bibliography) if book.has_bibliography else {}
            citations = Citations(works, file=book.bibliography.name)
        except LitbookError as error:
            findings.wrong.append(str(error))
    if find_spec("latex2mathml"):
        formula = _mathml
    edition = whole.edition(path, record, None)
    strict = whole.Strict.of(({"words": words, "unbacked": "off"} if words else {}) | {**book.options})
    strict = replace(strict, recordings=whole.UNSAID) if writing else strict
    whole.problems(edition, findings, strict, prose.problems(edition, folder, citations, formula))
    return findings


@dataclass(frozen=True)
class Checked:
    """What one check of one lecture has found."""

    lines: list[str]
    summary: str
    wrong: bool


@dataclass(frozen=True, eq=False)
class Wanted:
    """What to look at: the claims and code of some sections, and how much of it, drawn by a seed."""

    sections: Sequence[str] = ()
    sample: int | None = None  # claims, or changes of the code
    seed: int = 0
    everything: bool = False  # all changes of the code, however long it takes
    least: float | None = None  # percent of these that claims have to notice


@functools.lru_cache(maxsize=1)
def record_of(path: Path, _: Wanted) -> model.Record:
    """The record of a run of the lecture, which runs once for all that is wanted of it."""
    return process.record_of(path)


def verdict(path: Path, wanted: Wanted) -> Checked:
    """All that a strict build refuses, but for what differs from a recording, which a run tells."""
    record = record_of(path, wanted)
    findings = judged(path, record)
    count = len(findings.wrong)
    text = f"{count or 'nothing'} that a strict build refuses; this run: {outcome.summary(record)}"
    return Checked([*findings.wrong, *findings.remarks], text, bool(findings.wrong))


def unbacked(path: Path, _: Wanted) -> Checked:
    """The numbers in prose that are neither computed nor cited, and braces that a forgotten `f` leaves."""
    problems = numbers.unbacked(parse.read(path, project.shown(path)))
    braces = sum(problem.slug == "forgotten-f" for problem in problems)
    count = len(problems) - braces
    text = f"{count or 'no'} unbacked number{'' if count == 1 else 's'}"
    text += f", {braces} forgotten f{'' if braces == 1 else 's'}" if braces else ""
    return Checked(list(map(str, problems)), text, bool(problems))


def unrun(path: Path, wanted: Wanted) -> Checked:
    """The claims and `@inspect`s that no run on this machine has reached, nor a recording that is current."""
    kept = [recordings.read(file, project.name_of(path)) for file in project.recordings_of(path)]
    record = record_of(path, wanted)
    unreached = reached.unrun(record, kept)
    older = [f"{text}\n    {whole.LET_WAIT}" for text in outcome.older(record, kept)]
    dead = sum(never.dead for never in unreached)
    summary = f"{dead} that no run reaches, {len(unreached) - dead} that wait for a recording"
    if not outcome.holds(record):
        summary += f"; this run: {outcome.summary(record)}"
    lines = [*outcome.problems(record), *older, *(str(never.problem) for never in unreached)]
    foreign = bool(Project.words_around(path.resolve()))  # whose author has meant no assert for a claim
    return Checked(lines, summary, bool((dead and not foreign) or older) or not outcome.holds(record))


def vacuous(path: Path, wanted: Wanted) -> Checked:
    """The claims that hold and say nothing."""
    record = record_of(path, wanted)
    problems = nothing.vacuous(record)
    lines = [*outcome.problems(record), *map(str, problems)]
    count = f"{len(problems)} claim{' says' if len(problems) == 1 else 's say'} nothing"
    foreign = bool(Project.words_around(path.resolve()))
    return Checked(lines, count, bool(problems and not foreign) or not outcome.holds(record))


def unchecked(path: Path, _: Wanted) -> Checked:
    """The questions whose answer is computed in one way only; wrong where the book says so."""
    lecture = parse.read(path, project.shown(path))
    problems, asked = answers.unchecked(lecture), answers.count(lecture)
    try:
        refused = whole.Strict.of(Project.find(path.parent).options).unchecked == "error"
    except NoBook:
        refused = False
    summary = f"{len(problems)} of {asked} answer{'' if asked == 1 else 's'} computed in one way only"
    return Checked(list(map(str, problems)), summary, refused and bool(problems))


def unbounded(path: Path, _: Wanted) -> Checked:
    """The measured values that no claim reads. One may be an illustration, so that is no error."""
    problems = loose.unbounded(parse.read(path, project.shown(path)))
    count = f"{len(problems)} measured value{'' if len(problems) == 1 else 's'} that no claim reads"
    return Checked(list(map(str, problems)), count, wrong=False)


CHECKS: dict[str, Callable[[Path, Wanted], Checked]] = {
    "verdict": verdict, "unbacked": unbacked, "unchecked": unchecked, "unbounded": unbounded, "unrun": unrun,
    "vacuous": vacuous,
}  # fmt: skip
