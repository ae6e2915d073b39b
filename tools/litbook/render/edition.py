"""A lecture as readers get it: its record, and the recordings of the same lecture beside it. Data alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from litbook.record.model import Record


@dataclass(frozen=True)
class Edition:
    """One lecture: the folder of its pages, its record, recordings of other devices and of this one."""

    folder: str
    record: Record
    recordings: Sequence[Record] = ()
    own: Record | None = None

    def runs(self) -> list[Record]:
        """This build, then every recording, this device's first."""
        newest = sorted(self.recordings, key=lambda r: r.environment.date, reverse=True)
        return [self.record, *([self.own] if self.own else []), *newest]
