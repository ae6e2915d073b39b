"""Editions: a lecture's record with its recordings, and what is wrong with it; for builds and the preview.

In goes a lecture and the record of its run, out comes the edition that pages are made of, and every reason
why a strict build of it fails, as text. It runs nothing and makes no page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from litbook.errors import LitbookError, Problem
from litbook.project import Project, name_of, recordings_of
from litbook.record import compare, model, recordings
from litbook.render import devices, ledger, report
from litbook.render.edition import Edition
from litbook.text import unbacked, unrun, vacuous


@dataclass
class Found:
    """What is wrong with an edition, and what is only worth a word."""

    wrong: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def edition(path: Path, record: model.Record, found: Found) -> Edition:
    """The edition of a lecture whose run gave `record`. What its recordings say against it goes into `found`.

    A section whose text is newer than its recording's contradicts nothing: its author is at work, and a test
    holds that a committed recording is current.
    """
    own, others = None, []
    for file in recordings_of(path):
        try:
            recording = recordings.read(file, name_of(path))
            if recording.environment.device.slug != record.environment.device.slug:
                others.append(recording)
                continue
            own = recording
            others += _left_to(recording, record)
            for difference in compare.compare(record, recording).differences:
                into = found.wrong if difference.contradicts else found.remarks
                into.append(f"{difference}\n    {_way_out(path, record)}")
        except LitbookError as error:
            found.wrong.append(str(error))
    return Edition(name_of(path), record, others, own)


def _left_to(own: model.Record, here: model.Record) -> list[model.Record]:
    """Of this device's recording the sections that a build leaves to it, because they are slow."""
    left = [it for it in own.sections if it.ran and it.key in here.by_key and not here.by_key[it.key].ran]
    left = [it for it in left if here.by_key[it.key].requires]
    return [replace(own, sections=tuple(left))] if left else []


def _way_out(path: Path, here: model.Record) -> str:
    device = here.environment.device.kind
    return f"if that is right: litbook record {name_of(path)} --device {device} --approve"


def problems(it: Edition, found: Found, numbers: str = "error", prose: Sequence[Problem] = ()) -> None:
    """What is wrong with the record, with its `prose`, and with the text behind it, goes into `found`.

    `numbers` that nothing backs are an "error", a remark ("warn"), or nothing ("off").
    """
    kept = [*it.recordings, *([it.own] if it.own else [])]
    found.wrong += report.problems(it.record)  # the command line prints the same
    found.remarks += report.remarks(it.record)
    found.wrong += map(str, prose)
    found.wrong += [str(never.problem) for never in unrun.unrun(it.record, kept) if never.dead]
    found.wrong += map(str, vacuous.vacuous(it.record))
    if numbers != "off":
        into = found.wrong if numbers == "error" else found.remarks
        into += map(str, unbacked.in_sources(it.record.sources))


def differing(editions: Sequence[Edition]) -> devices.Found:
    """What each recording of another device says differently, in sections that both have run."""
    found: dict[tuple[str, str], list[devices.Difference]] = {}
    for it in editions:
        special = {section.key for section in it.record.sections if section.requires}
        for recording in it.elsewhere():
            found[it.folder, recording.environment.device.slug] = [
                devices.Difference(
                    d.section, d.place.line, d.what, tuple((c.at, c.was, c.now, c.by) for c in d.changes)
                )
                for d in compare.compare(it.record, recording).differences
                if d.contradicts and d.section not in special
            ]
    return found


def badge(project: Project) -> str:
    """The README's badge: an SVG that counts the claims that hold in the recordings of all lectures.

    It is committed, because a README is read where nothing was built. It counts recordings and not a run, so
    that a test can tell whether it is current without running anything: every strict build already compares
    a run with the recording.
    """
    editions = []
    for path in project.lectures():
        found = sorted(
            (recordings.read(file, name_of(path)) for file in recordings_of(path)),
            key=lambda record: (record.environment.device.slug != "cpu", record.environment.date),
        )
        if found:
            editions.append(Edition(name_of(path), found[0], found[1:]))
    return ledger.tally(editions)
