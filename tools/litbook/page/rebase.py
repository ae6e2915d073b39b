"""A recording -> the same on the lines, and with the prose, of today's text.

Of a section whose claims depend on the same as then, comments and texts may be others by now, and lines may
have moved. Its statements are the same, one by one; so what was recorded finds its line by its statement. It
knows no form in which anything is shown.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable

from msgspec.structs import replace

from litbook.lecture.author_words import piece_texts
from litbook.lecture.parse import parse_sources
from litbook.lecture.sections import words_in
from litbook.record.model import Definition, Piece, Record, Section


def rebase_recording(recording: Record, record: Record) -> Record:
    """The recording, as far as pages show it, on the text that `record` has."""

    @functools.cache  # of a recording that is as today nobody asks
    def texts() -> dict[str, StatementTexts]:
        """By the key of a section, its texts in the record's own text."""
        lecture, by_key = parse_sources(record.sources), dict[str, StatementTexts]()
        for node, number in lecture.statement_of.items():
            key = lecture.key(lecture.statements[number].function)
            words = words_in(lecture.file_of_statement(number).tree)
            by_key.setdefault(key, []).append(piece_texts(node, words))
        return by_key

    def rebase_section(was: Section) -> Section:
        now = record.by_key.get(was.key)
        same = now is not None and was.has_run and was.requires and was.depends == now.depends
        entry = _RebasedSection(was, now, texts).section() if now is not None and same else was
        # A recording has the place of its day.
        return entry if now is None else replace(entry, file=now.file, first=now.first)

    if len(record.sources) < len(recording.sources):  # its files are others
        return replace(recording, sections=tuple(map(rebase_section, recording.sections)))
    definitions = list[Definition]()
    for was in recording.definitions:
        today = record.definition_of.get(was.key)
        definitions.append(was if today is None else replace(was, file=today.file, first=today.first))
    return replace(
        recording,
        sources=record.sources,
        definitions=tuple(definitions),
        sections=tuple(map(rebase_section, recording.sections)),
    )


StatementTexts = list[list[tuple[str, dict[str, str]]]]
"""For each statement of a section what its words say, as far as it stands there."""


class _RebasedSection:
    """One recorded section, and its entry in today's record."""

    def __init__(self, was: Section, now: Section, told: Callable[[], dict[str, StatementTexts]]) -> None:
        self.was, self.now, self.told = was, now, told

    def section(self) -> Section:
        """The recorded entry, with the lines and the prose of today."""
        was, now = self.was, self.now
        if len(was.statements) != len(now.statements) or len(was.claims) != len(now.claims):
            return was
        both = zip(was.statements, now.statements, strict=True)
        frames = (
            f if f.parent is None or was.frames[f.parent].called else replace(f, line=self.line(f.line))
            for f in was.frames
        )
        local = {number for number, loop in enumerate(was.loops) if not was.frames[loop.frame].called}
        return replace(
            was,
            lines=now.lines,
            body=now.body,
            heading=now.heading,
            statements=tuple(replace(here, kind=there.kind, prose=there.prose) for there, here in both),
            frames=tuple(frames),
            pieces=tuple(self.pieces()),
            values=tuple(
                v if was.frames[v.frame].called else replace(v, line=self.line(v.line)) for v in was.values
            ),
            loops=tuple(
                replace(loop, line=self.line(loop.line)) if number in local else loop
                for number, loop in enumerate(was.loops)
            ),
            series=tuple(replace(s, line=self.line(s.line)) if s.loop in local else s for s in was.series),
            claims=tuple(
                replace(there, line=here.line, last=here.last, caption=here.caption or there.caption)
                for there, here in zip(was.claims, now.claims, strict=True)
            ),
        )

    def statement_at(self, line: int) -> int | None:
        """The number of the innermost statement on a recorded line."""
        around = [i for i, s in enumerate(self.was.statements) if s.first <= line <= s.last]
        return max(around, key=lambda i: self.was.statements[i].first, default=None)

    def line(self, line: int) -> int:
        """Where a recorded line is today."""
        number = self.statement_at(line)
        if number is None:
            return line
        there, here = self.was.statements[number], self.now.statements[number]
        ends = line == there.last != there.first
        return here.last if ends else min(here.first + line - there.first, here.last)

    def pieces(self) -> list[Piece]:
        """The pieces at their lines; a text that stands in a statement is that of today."""
        told, often = self.told()[self.now.key], Counter[tuple[int | None, str]]()
        pieces = list[Piece]()
        for piece in self.was.pieces:
            number = self.statement_at(piece.line)
            direct = piece.frame < 0 or not self.was.frames[piece.frame].called
            texts = (
                [fields for kind, fields in told[number] if kind == piece.kind]
                if number is not None and direct
                else []
            )
            now = texts[often[number, piece.kind] % len(texts)] if texts else {}
            often[number, piece.kind] += 1
            pieces.append(replace(piece, line=self.line(piece.line), **now))
        return pieces
