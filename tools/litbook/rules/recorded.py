"""What recordings say against a run: values that differ, claims that fail there, sections that are older.

In go a lecture's path and the record of its run, out come its runs and findings. Nothing is run.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from litbook.errors import LitbookError
from litbook.finding import Finding, Place
from litbook.page import rebase
from litbook.page.runs import LectureRuns
from litbook.page.view import view_of_run
from litbook.project import name_of, recordings_of
from litbook.record import compare, model, recordings
from litbook.record.model import Record
from litbook.rules import outcome

NAMED = 5  # sections that a line names; the rest is counted
MAY_BE_OLDER = "may-be-older"  # what a book says of its recordings
LET_WAIT = "or let them wait: `rules: {older: warn}` below litbook, in mkdocs.yml"


def read_runs(path: Path, record: Record) -> tuple[LectureRuns, list[Finding]]:
    """A lecture whose run gave `record` with its recordings, and those of them that cannot be read."""
    recorded, as_kept, others, unreadable = None, None, [], list[Finding]()
    now = {section.key: section.depends for section in record.sections}
    for file in recordings_of(path):
        try:
            recording = _read(file, name_of(path), file.stat().st_mtime_ns)
            rebased = rebase.rebase_recording(recordings.as_of(recording, now), record)
        except (LitbookError, OSError) as error:
            unreadable.append(Finding("unreadable-recording", str(error)))
            continue
        if recording.environment.device.slug != record.environment.device.slug:
            others.append(rebased)
            continue
        recorded, as_kept = rebased, recording
        # What a build leaves to it, because it is slow.
        waits = {section.key for section in record.sections if section.requires and not section.has_run}
        left = [section for section in recorded.sections if section.has_run and section.key in waits]
        others += [replace(recorded, sections=tuple(left))] if left else []
    return LectureRuns(name_of(path), record, others, recorded, as_kept), unreadable


@functools.lru_cache(maxsize=8)  # the preview asks at every save
def _read(file: Path, lecture: str, _changed: int) -> model.Record:
    return recordings.read(file, lecture)


def differences(edition: LectureRuns) -> list[Finding]:
    """What a run says and its recording does not; nothing of sections whose text is another since."""
    record, recording = edition.record, edition.as_kept
    if recording is None:
        return []
    anew = outcome.record_anew(record.lecture, record.environment.device.kind)
    interpreters = outcome.interpreters(record, recording)
    return [
        difference.finding(interpreters, f"if that is right: {anew}")
        for difference in compare.compare(record, recording).differences
        if difference.kind != "text"
    ]


def older(edition: LectureRuns) -> Iterator[Finding]:
    """The sections of each recording that something has changed since, and how they are recorded anew."""
    record, kept = edition.record, edition.runs()[1:]
    for recording, pairs in itertools.groupby(compare.outdated_sections(record, kept), lambda pair: pair[0]):
        device, keys = recording.environment.device, [key for _, key in pairs]
        some = f"{outcome.count_of(len(keys), 'section')} recorded from an older text: {section_names(keys)}"
        anew = f"to record anew: {outcome.record_anew(record.lecture, device.kind)}"
        yield Finding(
            "older", f"{record.lecture}.{device.slug}.json: {some}", None, LET_WAIT, details=(anew,)
        )


def failed(edition: LectureRuns) -> Iterator[Finding]:
    """The claims that fail as they were recorded: no run leaves such a recording."""
    record = edition.record
    for recording in edition.runs()[1:]:
        device = recording.environment.device
        anew = f"to record anew: {outcome.record_anew(record.lecture, device.kind)}"
        for section in recording.sections:
            for claim in view_of_run(recording, section).claims:
                if claim.verdict == "fails":
                    place = Place(recording.sources[section.file].path, claim.line, 0)
                    what = (
                        f"claim fails in {record.lecture}.{device.slug}.json: {claim.caption or claim.text}"
                    )
                    yield Finding("recorded-failure", what, place, anew, details=(f"assert {claim.text}",))


def join_differences(differences: Sequence[compare.Difference]) -> list[Finding]:
    """A finding for each value and claim that differs, and one for all sections that are alike."""
    found = [difference.finding() for difference in differences if difference.contradicts]
    sections = [difference for difference in differences if not difference.contradicts]
    for what, alike in model.group_by(sections, lambda difference: difference.what).items():
        some = f"each of {len(alike)} sections {what}: {section_names([one.section for one in alike])}"
        found.append(Finding("differs", some) if len(alike) > 1 else alike[0].finding())
    return found


def section_names(keys: Sequence[str]) -> str:
    """The first of several sections by name, and how many more there are."""
    return ", ".join(keys[:NAMED]) + (f" and {len(keys) - NAMED} more" if len(keys) > NAMED else "")
