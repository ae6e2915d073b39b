"""Editions of a book side by side: where devices differ, and what the README's badge counts.

In go editions and recordings. It runs nothing and makes no page.
"""

from __future__ import annotations

from collections.abc import Sequence

from litbook.html import devices, ledger
from litbook.lecture import dependencies, parse
from litbook.page.runs import LectureRuns
from litbook.project import Project, name_of, recordings_of
from litbook.record import compare, recordings


def device_differences(editions: Sequence[LectureRuns]) -> devices.Differences:
    """What each recording of another device says differently, in sections that both have run."""
    differences: dict[tuple[str, str], list[compare.Difference]] = {}
    for edition in editions:
        special = {section.key for section in edition.record.sections if section.requires}
        for recording in edition.other_recordings():
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
        digests = dependencies.digests(parse.read(path), path.resolve().parent) if files else {}
        now = {key: digest.all for key, digest in digests.items()}
        kept = sorted(
            (recordings.as_of(recordings.read(file, name_of(path)), now) for file in files),
            key=lambda record: (record.environment.device.slug != "cpu", record.environment.date),
        )
        if kept:
            editions.append(LectureRuns(name_of(path), kept[0], kept[1:]))
    return ledger.claims_badge(editions)
