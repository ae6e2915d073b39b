"""The verdict on one lecture: its record with its recordings, and everything that is wrong with it.

`run`, `check`, `serve` and `build` ask here, so what one of them refuses all do, in the same words. In goes
a lecture with the record of its run, out come texts for people. It runs nothing and makes no page.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from litbook.errors import LitbookError, Problem
from litbook.page import rebase
from litbook.page.runs import Edition
from litbook.project import name_of, recordings_of
from litbook.record import compare, model, recordings
from litbook.rules import never_ran, outcome, unbacked_number, unchecked_answer, vacuous

CURRENT, MAY_BE_OLDER = "current", "may-be-older"  # what a book says of its recordings
UNSAID = "unsaid"  # of them: a run compares itself, and says what differs
LET_WAIT = f"or let them wait: `recordings: {MAY_BE_OLDER}` below litbook, in mkdocs.yml"


@dataclass
class Findings:
    """What is wrong with an edition, and what is only worth a word."""

    wrong: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def edition(path: Path, record: model.Record, findings: Findings | None) -> Edition:
    """The edition of a lecture whose run gave `record`. What its recordings say against it joins `findings`.

    Without one nothing is compared, and a recording that cannot be read is left out. A section that something
    has changed since it was recorded contradicts nothing: see `problems`.
    """
    recorded, others, now = None, [], {section.key: section.depends for section in record.sections}
    for file in recordings_of(path):
        try:
            recording = _recording(file, name_of(path), file.stat().st_mtime_ns)
            if recording.environment.device.slug != record.environment.device.slug:
                others.append(rebase.onto(recordings.as_of(recording, now), record))
                continue
            recorded = rebase.onto(recordings.as_of(recording, now), record)
            # What a build leaves to it, because it is slow.
            waits = {section.key for section in record.sections if section.requires and not section.ran}
            left = [section for section in recorded.sections if section.ran and section.key in waits]
            others += [replace(recorded, sections=tuple(left))] if left else []
            if findings is None:
                continue
            anew = outcome.record_anew(name_of(path), record.environment.device.kind)
            ways_out = [outcome.interpreters(record, recording), f"if that is right: {anew}"]
            for difference in compare.compare(record, recording).differences:
                into = findings.wrong if difference.contradicts else findings.remarks
                if difference.kind != "text":
                    into.append("\n    ".join([str(difference), *filter(None, ways_out)]))
        except (LitbookError, OSError) as error:
            if findings:
                findings.wrong.append(str(error))
    return Edition(name_of(path), record, others, recorded)


@functools.lru_cache(maxsize=8)  # the preview asks at every save
def _recording(file: Path, lecture: str, _changed: int) -> model.Record:
    return recordings.read(file, lecture)


class Strict(Struct, frozen=True):
    """What a book has chosen to be strict about.

    `unbacked` numbers are an "error", a remark ("warn"), or nothing ("off"), and so are answers that nothing
    checks. `recordings` that something has changed since are wrong, or, where they may be older, a remark. So
    is what never ran or says nothing in a lecture in `foreign` words, whose author has meant no claim by it.
    """

    unbacked: str = "error"
    unchecked: str = "off"
    recordings: str = CURRENT
    foreign: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Strict:
        """What stands below `litbook:` in `mkdocs.yml`; in YAML a bare `off` is False."""
        names = ("unbacked", "unchecked", "recordings")
        given = {name: options[name] or "off" for name in names if name in options}
        return cls(**given, foreign=bool(options.get("words")))


AS_BUILT = Strict()  # where a book says nothing


def problems(
    edition: Edition, findings: Findings, strict: Strict = AS_BUILT, prose: Sequence[Problem] = ()
) -> None:
    """What is wrong with the record, with its `prose`, and with the text behind it, goes into `findings`."""
    record, kept = edition.record, edition.runs()[1:]
    if strict.recordings != UNSAID:
        into = findings.remarks if strict.recordings == MAY_BE_OLDER else findings.wrong
        into += (f"{text}\n    {LET_WAIT}" for text in outcome.older(record, kept))
    findings.wrong += outcome.problems(record)
    findings.wrong += outcome.failed(record, kept)
    findings.remarks += outcome.remarks(record)
    findings.remarks += map(str, never_ran.uncalled(record))
    findings.wrong += (str(problem) for problem in prose if _asked(record, problem))
    into = findings.remarks if strict.foreign else findings.wrong
    into += [str(never.problem) for never in never_ran.unrun(record, kept) if never.dead]
    into += map(str, vacuous.vacuous(record))
    for severity, of in (
        (strict.unbacked, unbacked_number.in_sources),
        (strict.unchecked, unchecked_answer.in_sources),
    ):
        if severity != "off":
            into = findings.wrong if severity == "error" else findings.remarks
            into += (str(problem) for problem in of(record.sources) if _asked(record, problem))


def _asked(record: model.Record, problem: Problem) -> bool:
    """Whether a problem stands in what this run was asked for."""
    place, ran = problem.place, [s for s in record.sections if s.ran and s.kind in ("part", "section")]
    return not record.asked or any(
        place and record.sources[s.file].path == place.path and s.first <= place.line <= s.last for s in ran
    )
