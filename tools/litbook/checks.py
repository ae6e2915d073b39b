"""What guards a book beside its claims: numbers that nothing backs, claims that never ran or cannot fail.

In goes a lecture, out come lines for people and whether something is wrong. It prints nothing. `ALL` names
the checks; each takes a lecture, and what is wanted of it. A lecture runs in a process of its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from litbook import project
from litbook.record import recordings
from litbook.render import report, values
from litbook.run import noticed, process, run, trials
from litbook.run.trials import Outcome
from litbook.text import source
from litbook.text import unbacked as numbers
from litbook.text import unrun as reached
from litbook.text import vacuous as nothing
from litbook.text.changes import Change
from litbook.text.lecture import Assertion, Lecture
from litbook.text.mutants import Trial


@dataclass(frozen=True)
class Checked:
    """What one check of one lecture has found."""

    said: list[str]
    summary: str
    wrong: bool


@dataclass(frozen=True)
class Wanted:
    """What to look at: the claims and code of some sections, and how much of it, drawn by a seed."""

    sections: Sequence[str] = ()
    sample: int | None = None  # claims
    seed: int = 0
    everything: bool = False  # all changes of the code, however long it takes


def unbacked(path: Path, *_: object) -> Checked:
    """The numbers in prose that are neither computed nor cited, and braces that a forgotten `f` leaves."""
    found = numbers.unbacked(source.read(path, project.shown(path)))
    braces = sum(problem.slug == "forgotten-f" for problem in found)
    count = len(found) - braces
    text = f"{count or 'no'} unbacked number{'' if count == 1 else 's'}"
    text += f", {braces} forgotten f{'' if braces == 1 else 's'}" if braces else ""
    return Checked([str(it) for it in found], text, bool(found))


def unrun(path: Path, *_: object) -> Checked:
    """The claims and `@inspect`s that neither a run on this machine nor a recording has reached."""
    kept = [recordings.read(file, project.name_of(path)) for file in project.recordings_of(path)]
    record = process.record_of(path)
    found = reached.unrun(record, kept)
    dead = sum(it.dead for it in found)
    summary = f"{dead} of no known device, {len(found) - dead} that wait for a recording"
    if not report.holds(record):
        summary += f"; this run: {report.summary(record)}"
    said = [*report.problems(record), *(str(it.problem) for it in found)]
    return Checked(said, summary, bool(dead) or not report.holds(record))


def vacuous(path: Path, *_: object) -> Checked:
    """The claims that hold and say nothing."""
    record = process.record_of(path)
    found = nothing.vacuous(record)
    said = [*report.problems(record), *map(str, found)]
    count = f"{_claims(len(found))} {'says' if len(found) == 1 else 'say'} nothing"
    return Checked(said, count, bool(found) or not report.holds(record))


# ---------------------------------------------------------------------------- mutants


def mutants(path: Path, wanted: Wanted) -> Checked:
    """The changes of claims that hold all the same: each claim is changed a little, where it stands.

    The lecture runs once, on the CPU. What survives is a defect of the lecture, unless its source excuses it.
    """
    return Checked(**process.answer(path, "litbook.checks:tried", path=str(path), wanted=asdict(wanted)))


def tried(owner: run.Owner, path: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """In the process of its own: what `mutants` finds."""
    asked = Wanted(**wanted)
    lecture = source.usable(Path(path), asked.sections)
    claims = _drawn(lecture, asked.sample, asked.seed) if asked.sample is not None else None
    sections = _sections(lecture, claims) if claims is not None else list(asked.sections)
    found, record = trials.tried(Path(path), sections=tuple(sections), claims=claims, owner=owner)
    excuses = trials.unreadable(lecture)
    said = [line for outcome in found for line in _lines(lecture, outcome)]
    some = claims is not None or bool(asked.sections)
    wrong = excuses or any(outcome.survivors or outcome.idle or outcome.unsteady for outcome in found)
    said = [*report.problems(record), *said, *map(str, excuses)]
    wrong = bool(wrong) or not report.holds(record)
    return asdict(Checked(said, _summary(lecture, found, some), wrong))


def _drawn(lecture: Lecture, count: int, seed: int) -> set[int]:
    """Some of the claims that run on a CPU, drawn at random."""
    here = [i for i, claim in enumerate(lecture.claims) if not _device(lecture, claim)]
    return set(random.Random(seed).sample(here, min(count, len(here))))


def _sections(lecture: Lecture, claims: set[int]) -> list[str]:
    """The sections of these claims; all, where one of them stands in `main`."""
    owners = {lecture.statements[lecture.claims[i].statement].function for i in sorted(claims)}
    if any(lecture.functions[i].kind == "main" for i in owners):
        return []
    return [lecture.section_name(i) for i in sorted(owners)]


def _device(lecture: Lecture, claim: Assertion) -> str | None:
    """What the section of a claim requires."""
    return lecture.functions[lecture.statements[claim.statement].function].requires


def _lines(lecture: Lecture, outcome: Outcome) -> Iterator[str]:
    """What there is to say of one claim: survivors, excused ones, idle excuses."""
    claim = lecture.claims[outcome.claim]
    line, place = lecture.statements[claim.statement].first, lecture.file_of_statement(claim.statement).path
    if outcome.unsteady and outcome.failed:
        return  # the run itself says so, with its values
    if outcome.unsteady:
        yield f"{place}:{line}: the claim itself does not hold when it is tried: {outcome.unsteady}"
    else:
        for trial in outcome.left:
            excuse = outcome.excuse(trial)
            fate = f"excused: {excuse}" if excuse else "survives"
            at = f"{place}:{trial.line or line}:{trial.column}"
            yield "\n".join([f"{at}: {fate}: {_changes(trial)}", *_text(claim, outcome, trial)])
    for change in outcome.idle:
        yield f"{place}:{line}: the excuse for {change!r} excuses nothing: remove it"


def _changes(trial: Trial) -> str:
    return f"{trial.kind} {' and '.join(mutant.change for mutant in trial.mutants)}"


def _text(claim: Assertion, outcome: Outcome, trial: Trial) -> Iterator[str]:
    """The claim, what it was changed into, and what its names were."""
    if trial.kind == "annotation":
        yield f"    {claim.text}"
        return
    yield f"    assert {claim.text}"
    yield from (f"    assert {mutant.text}" for mutant in trial.mutants)
    yield from (f"      {name} is {values.line(value)}" for name, value in outcome.names.items())


def _summary(lecture: Lecture, found: list[Outcome], some: bool) -> str:
    """`12 claims, 40 mutants in 31 trials: 30 passed, …`; where not only some were tried, what was left."""
    made = sum(len(trial.mutants) for outcome in found for trial in outcome.trials)
    count = sum(len(outcome.trials) for outcome in found)
    alive = sum(len(outcome.survivors) for outcome in found)
    excused = sum(len(outcome.left) for outcome in found) - alive
    text = f"{_claims(len(found))}, {made} mutants in {count} trials: {count - alive - excused} passed, "
    text += f"{excused} excused, {alive} survive{'s' * (alive == 1)}"
    device = [claim for claim in lecture.claims if _device(lecture, claim)]
    if device and not some:
        text += f"; {_claims(len(device))} not run (another device)"
    rest = len(lecture.claims) - len(device) - len(found)
    if rest and not some:
        text += f"; {_claims(rest)} {'was' if rest == 1 else 'were'} not reached"
    return text


def _claims(count: int) -> str:
    return f"{count} claim{'' if count == 1 else 's'}"


# ---------------------------------------------------------------------------- the code above the claims

SECONDS = 280.0  # for a lecture: within five minutes, with what it takes to start and end


def code(path: Path, wanted: Wanted) -> Checked:
    """The changes of a section's code that none of its claims and shown values notices."""
    return Checked(**process.answer(path, "litbook.checks:changed", path=str(path), wanted=asdict(wanted)))


def changed(owner: run.Owner, path: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """In the process of its own: what `code` finds."""
    asked = Wanted(**wanted)
    lecture = source.usable(Path(path), asked.sections)
    seconds = None if asked.everything else SECONDS
    found, record = noticed.noticed(
        Path(path), sections=tuple(asked.sections), seconds=seconds, seed=asked.seed, owner=owner
    )
    said = [_unnoticed(lecture, it.section, change) for it in found for change in it.unnoticed]
    tried, made = sum(it.count for it in found), sum(it.made for it in found)
    left = len(said)
    text = f"{tried:,} of {made:,} changes in {len(found)} section{'s' * (len(found) != 1)} tried: "
    text += f"{tried - left:,} noticed" + (f" ({(tried - left) / tried:.1%})" if tried else "")
    text += f", {left:,} not"
    if alone := sum(not it.again for it in found):
        text += f"; {alone} section{'s' * (alone != 1)} cannot be run again"
    wrong = bool(said) or not report.holds(record)
    return asdict(Checked([*report.problems(record), *said], text, wrong))


def _unnoticed(lecture: Lecture, section: str, change: Change) -> str:
    file = lecture.file_of_statement(change.statement)
    at = f"{file.path}:{change.line}:{change.column}"
    return f"{at}: nothing in {section} notices: {change.change}\n    {file.lines[change.line - 1].strip()}"


Check = Callable[[Path, Wanted], Checked]
ALL: dict[str, Check] = {"unbacked": unbacked, "unrun": unrun, "vacuous": vacuous, "mutants": mutants}
ASKED: dict[str, Check] = {**ALL, "code": code}  # minutes, and a list to read: only where it is asked for
