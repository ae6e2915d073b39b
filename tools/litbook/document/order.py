"""A record's sections, each with steps of its own -> all that happened in one order, that of the run.

A section's steps come at the step that called it; the values of that step come when the section is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from litbook.document.evidence import calls_of_frames
from litbook.record.model import Local, Record, Section, Value, grouped


class Moment(NamedTuple):
    """A step of a section, or a value that was shown or a local name had after it.

    `step` is an index into the section's steps.
    """

    section: Section
    step: int
    value: Value | Local | None = None


def moments(record: Record) -> Iterator[Moment]:
    """All that happened, section by section, each at the step that called it."""
    walk = _Walk(record)
    yield from walk.call(record.main)
    for section in record.sections:  # and what was called in another way than by such a step
        while walk.waits(section):
            yield from walk.call(section)


class _Walk:
    """How far every section has been told."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.told: dict[str, int] = {}  # key -> how many of its calls
        self.steps_of: dict[str, list[list[int]]] = {}  # key -> the steps of each call

    def waits(self, section: Section) -> bool:
        """Whether there is a call of the section that was not told yet."""
        return self.told.get(section.key, 0) < len(self.steps(section))

    def steps(self, section: Section) -> list[list[int]]:
        """The steps of each call of a section, with those of the helpers that it called."""
        if section.key not in self.steps_of:
            call_of = calls_of_frames(section)
            by_call: dict[int | None, list[int]] = {call: [] for call in call_of}
            for step, (frame, _) in enumerate(section.steps):
                by_call[call_of[frame]].append(step)
            by_call.pop(None, None)  # of helpers that were called from elsewhere, such as a thread
            self.steps_of[section.key] = list(by_call.values())
        return self.steps_of[section.key]

    def call(self, section: Section) -> Iterator[Moment]:
        """The next call of a section, with the calls of sections in it."""
        if not self.waits(section):
            return
        number = self.told.get(section.key, 0)
        self.told[section.key] = number + 1
        values: list[Value | Local] = [*section.locals, *section.values]
        after = grouped(values, lambda value: value.step)
        for step in self.steps(section)[number]:
            frame, statement = section.steps[step]
            yield Moment(section, step)
            row = self.record.called(section, frame).statements[statement]
            if row.kind == "section":
                yield from self.call(self.record.by_key[row.target])
            for value in after.get(step, ()):
                yield Moment(section, step, value)
