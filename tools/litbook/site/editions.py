"""Editions: a lecture's record with its recordings, and what is wrong with it; for builds and the preview.

In goes a lecture and the record of its run, out comes the edition that pages are made of, and every reason
why a strict build of it fails, as text. It runs nothing and makes no page.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from litbook.document import laid, report, unbacked
from litbook.document.edition import Edition
from litbook.errors import LitbookError, Problem
from litbook.html import devices, ledger
from litbook.project import Project, name_of, recordings_of
from litbook.record import compare, model, recordings
from litbook.text import depends, source, unchecked, unrun, vacuous

CURRENT, MAY_BE_OLDER = "current", "may-be-older"  # what a book says of its recordings
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
                others.append(laid.onto(recordings.as_of(recording, now), record))
                continue
            recorded = laid.onto(recordings.as_of(recording, now), record)
            # What a build leaves to it, because it is slow.
            left = [
                s
                for s in recorded.sections
                if s.ran and s.key in record.by_key and not record.by_key[s.key].ran
            ]
            left = [s for s in left if record.by_key[s.key].requires]
            others += [replace(recorded, sections=tuple(left))] if left else []
            if findings is None:
                continue
            anew = report.record_anew(name_of(path), record.environment.device.kind)
            ways_out = [report.interpreters(record, recording), f"if that is right: {anew}"]
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


def problems(
    edition: Edition,
    findings: Findings,
    numbers: str = "error",
    older: str = CURRENT,
    prose: Sequence[Problem] = (),
    answers: str = "off",
    *,
    foreign: bool = False,
) -> None:
    """What is wrong with the record, with its `prose`, and with the text behind it, goes into `findings`.

    `numbers` that nothing backs are an "error", a remark ("warn"), or nothing ("off"), and so are `answers`
    that nothing checks. Recordings that something has changed since are wrong, or where `older` is
    `MAY_BE_OLDER` a remark. So is what never ran or says nothing in a lecture in `foreign` words, whose
    author has meant no assert for a claim.
    """
    kept = edition.runs()[1:]
    into = findings.remarks if older == MAY_BE_OLDER else findings.wrong
    into += (f"{text}\n    {LET_WAIT}" for text in report.older(edition.record, kept))
    findings.wrong += report.problems(edition.record)  # the command line prints the same
    findings.wrong += report.failed(edition.record, kept)
    findings.remarks += report.remarks(edition.record)
    findings.wrong += map(str, prose)
    into = findings.remarks if foreign else findings.wrong
    into += [str(never.problem) for never in unrun.unrun(edition.record, kept) if never.dead]
    into += map(str, vacuous.vacuous(edition.record))
    for severity, of in ((numbers, unbacked.in_sources), (answers, unchecked.in_sources)):
        if severity != "off":
            into = findings.wrong if severity == "error" else findings.remarks
            into += map(str, of(edition.record.sources))


def differing(editions: Sequence[Edition]) -> devices.Differences:
    """What each recording of another device says differently, in sections that both have run."""
    differences: dict[tuple[str, str], list[compare.Difference]] = {}
    for edition in editions:
        special = {section.key for section in edition.record.sections if section.requires}
        for recording in edition.elsewhere():
            differences[edition.folder, recording.environment.device.slug] = [
                difference
                for difference in compare.compare(edition.record, recording).differences
                if difference.contradicts and difference.section not in special
            ]
    return differences


def badge(project: Project) -> str:
    """The README's badge: an SVG that counts the claims that hold in the recordings of all lectures.

    It is committed, because a README is read where nothing was built. It counts recordings and not a run, so
    that a test can tell whether it is current without running anything: every strict build already compares
    a run with the recording. What something has changed since counts as not run.
    """
    editions = []
    for path in project.lectures():
        files = recordings_of(path)
        digests = depends.digests(source.read(path), path.resolve().parent) if files else {}
        now = {key: digest.all for key, digest in digests.items()}
        kept = sorted(
            (recordings.as_of(recordings.read(file, name_of(path)), now) for file in files),
            key=lambda record: (record.environment.device.slug != "cpu", record.environment.date),
        )
        if kept:
            editions.append(Edition(name_of(path), kept[0], kept[1:]))
    return ledger.tally(editions)
