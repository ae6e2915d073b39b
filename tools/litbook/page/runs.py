"""A lecture as readers get it: its record, and the recordings of the same lecture beside it. Data alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from litbook.lecture.model import Lecture
from litbook.lecture.parse import parse_sources
from litbook.page import sitemap
from litbook.page.sitemap import Sitemap
from litbook.record.model import Record


class LectureRuns(Struct, frozen=True, dict=True):
    """One lecture: the folder of its pages, its record, and the recordings beside it.

    `recordings` are those of other devices, and of this one the sections that this build leaves to it;
    `recorded` is all of this device's, on the lines of now; `as_kept` is the same as it was read.
    """

    folder: str
    record: Record
    recordings: Sequence[Record] = ()
    recorded: Record | None = None
    as_kept: Record | None = None

    @cached_property
    def lecture(self) -> Lecture:
        """Its text as it ran, parsed. Raises `UnusableLecture` where an edit made it no lecture."""
        return parse_sources(self.record.sources)

    @cached_property
    def sitemap(self) -> Sitemap:
        """Its pages, without what they cite."""
        return sitemap.build_sitemap(self.record, sitemap.NOTHING_CITED, self.recordings, [])

    def runs(self) -> list[Record]:
        """This build, then every recording, this device's first."""
        return [self.record, *([self.recorded] if self.recorded else []), *self.other_recordings()]

    def other_recordings(self) -> list[Record]:
        """The recordings of other devices, newest first."""
        here = self.record.environment.device.slug
        others = [recording for recording in self.recordings if recording.environment.device.slug != here]
        return sorted(others, key=lambda recording: recording.environment.date, reverse=True)
