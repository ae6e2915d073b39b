"""What a record says about one section, by the line numbers of the text on the page.

This module alone adds up lines: an entry of a record counts them from its section's first one, a page counts
those of the file. A section that ran here speaks from this record. One that needs another device speaks from
the newest recording of such a device whose text is the same, wherever that stood then, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from litbook.i18n import _, day
from litbook.record import model
from litbook.record.device_kinds import needs
from litbook.record.ranks import ranks_of


class SectionView(Struct, frozen=True, dict=True):
    """One run's entry of a section, read at the lines of a page: `first` is the section's line there.

    Values and pieces are those of the section's first call. `stamp` names the recording that it is from.
    """

    record: model.Record
    entry: model.Section
    first: int
    stamp: str = ""

    def snapshot(self, index: int) -> model.Snapshot:
        """The snapshot that something of this entry refers to."""
        return self.entry.snapshots[index]

    def snapshot_of(self, value: model.Value) -> model.Snapshot | None:
        """What a value was; None where there is none."""
        return None if value.value is None else self.entry.snapshots[value.value]

    @cached_property
    def rank_views(self) -> list[SectionView]:
        """What each rank says of a section that ran on several; of another one itself."""
        if not self.entry.shares:
            return [self]
        return [SectionView(self.record, entry, self.first, self.stamp) for entry in ranks_of(self.entry)]

    @cached_property
    def calls(self) -> list[int]:
        """The frames in which the section itself was called from outside."""
        return calls(self.entry)

    @cached_property
    def values(self) -> list[model.Value]:
        """What was shown in the section's own lines."""
        shown = self.entry.values_of.get(self.calls[0], ()) if self.calls else ()
        return [replace(value, line=value.line + self.first) for value in shown if value.kind != "clear"]

    @cached_property
    def series(self) -> list[model.Series]:
        """The numbers that were watched over loops in the section's own lines."""
        loops = {i for i, loop in enumerate(self.entry.loops) if loop.frame in self.calls[:1]}
        return [replace(s, line=s.line + self.first) for s in self.entry.series if s.loop in loops]

    @cached_property
    def pieces(self) -> list[model.Piece]:
        """What the section handed over, itself or through a helper."""
        call_of = calls_of_frames(self.entry)
        handed = (p for p in self.entry.pieces if p.frame < 0 or call_of[p.frame] in (None, *self.calls[:1]))
        return [replace(piece, line=piece.line + self.first) for piece in handed]

    @cached_property
    def claims(self) -> list[model.Claim]:
        """The section's claims with what became of them in this run."""
        first = self.first
        return [replace(c, line=c.line + first, last=c.last + first) for c in self.entry.claims]

    @cached_property
    def statements(self) -> list[model.Statement]:
        """The section's statements."""
        return statements(replace(self.entry, first=self.first))

    @cached_property
    def errors(self) -> list[model.Error]:
        """What went wrong; nothing of a recording, whose errors nobody here can mend."""
        raised = () if self.stamp else self.entry.errors
        return [replace(error, line=error.line + self.first) for error in raised]

    @cached_property
    def unreached_lines(self) -> frozenset[int]:
        """Lines that the run did not reach; none of a recording."""
        entry, ran = self.entry, set[int]()
        for rank in self.rank_views:  # on any of them
            ran |= rank.entry.ran_in.get(rank.calls[0], set()) if rank.calls else set()
        if self.stamp or not ran:
            return frozenset()
        # Nor those of loops, where the run may have folded away what ran.
        loops = {loop.line for loop in entry.loops if not entry.frames[loop.frame].called}
        folded = [s for s in entry.statements if entry.dropped and s.first in loops]
        inside = {n for s in folded for n in range(s.first + 1, max(s.end, s.last) + 1)}
        lines, reached = set[int](), set[int]()
        for i, s in enumerate(entry.statements):
            if i in ran:
                reached |= {*range(s.first, s.last + 1)}
            elif s.kind in ("code", "claim", "piece") and s.first not in inside:
                lines |= {*range(s.first, s.last + 1)}
        return frozenset(self.first + line for line in lines - reached)


class RecordedSection(Struct, frozen=True):
    """The same section in a recording; `current` if nothing that it depends on has changed since."""

    record: model.Record
    entry: model.Section
    current: bool

    @property
    def stamp(self) -> str:
        """Device and date, and whether the text was another then."""
        older = "" if self.current else _(", from an older text")
        return stamp(self.entry.run or self.record.environment) + older

    def view_at(self, first: int) -> SectionView:
        """What the recording says, for a section that begins on line `first` today."""
        return SectionView(self.record, self.entry, first, self.stamp)


def view_of_run(record: model.Record, section: model.Section) -> SectionView:
    """What this run alone says of a section."""
    return SectionView(record, section, section.first)


def error_origin(record: model.Record, section: model.Section, error: model.Error) -> tuple[int, int]:
    """The file and line of the lecture where an error of a section came up: the innermost of its trace."""
    files = {source.path: file for file, source in enumerate(record.sources)}
    lines = [(files[path], line) for path, line, *_ in error.trace if path in files]
    return lines[-1] if lines else (section.file, section.first + error.line)


def gather(
    record: model.Record, section: model.Section, recordings: Sequence[model.Record] = ()
) -> SectionView:
    """The evidence for a section: from this run, else from the newest recording that is current."""
    fresh = view_of_run(record, section)
    if fresh.calls or not needs(section.requires).device:
        return fresh
    for other in recorded_sections(section, recordings):
        if other.current and other.entry.has_run:
            return other.view_at(section.first)
    return fresh


def recorded_sections(section: model.Section, recordings: Sequence[model.Record]) -> list[RecordedSection]:
    """This section in each recording that has it, newest first."""
    newest = sorted(recordings, key=lambda r: r.environment.date, reverse=True)
    there = ((r, r.by_key[section.key]) for r in newest if section.key in r.by_key)
    return [RecordedSection(recording, entry, entry.depends == section.depends) for recording, entry in there]


def statements(entry: model.Section | model.Definition) -> list[model.Statement]:
    """The statements of a section or definition at their lines of its file."""
    return [
        replace(s, first=s.first + entry.first, last=s.last + entry.first, end=s.end + entry.first)
        for s in entry.statements
    ]


def silent_statements(section: model.Section, spoken: Set[int]) -> list[model.Statement]:
    """The statements that say something where they never ran: none of their lines has `spoken`."""
    lines = ((s, range(s.first, s.last + 1)) for s in statements(section) if s.prose)
    return [statement for statement, its in lines if spoken.isdisjoint(its)]


def calls(section: model.Section) -> list[int]:
    """The frames in which a section was called, but for calls that it made of itself."""
    return [i for i, frame in enumerate(section.frames) if not frame.called and frame.parent is None]


def calls_of_frames(section: model.Section) -> list[int | None]:
    """For every frame of a section the call in which it ran; None where its caller is not known."""
    calls: list[int | None] = []
    for i, frame in enumerate(section.frames):
        call = None if frame.called else i
        calls.append(call if frame.parent is None else calls[frame.parent])
    return calls


def stamp(run: model.Environment) -> str:
    """`Some GPU, 21 Nov 2026, torch 2.11.0`."""
    torch = run.versions.get("torch", "").partition("+")[0]
    parts = [run.device.name, day(run.date), f"torch {torch}" if torch else ""]
    return ", ".join(filter(None, parts))
