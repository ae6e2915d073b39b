"""A record's sections, each with steps of its own -> all that happened in one order, that of the run.

A section's steps come at the step that called it; the values of that step come when the section is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from litbook.page.view import calls_of_frames
from litbook.record.model import Local, Record, Section, Value, group_by


class Moment(NamedTuple):
    """A step of a section, or a value that was shown or a local name had after it.

    `step` is an index into the section's steps.
    """

    section: Section
    step: int
    value: Value | Local | None = None


def moments(record: Record) -> Iterator[Moment]:
    """All that happened, section by section, each at the step that called it."""
    # By section, the steps of each call that is to come, with those of the helpers that it called.
    waiting: dict[str, deque[list[int]]] = {}
    for section in record.sections:
        call_of = calls_of_frames(section)
        by_call: dict[int | None, list[int]] = {call: [] for call in call_of}
        for step, (frame, _) in enumerate(section.steps):
            by_call[call_of[frame]].append(step)
        by_call.pop(None, None)  # of helpers that were called from elsewhere, such as a thread
        waiting[section.key] = deque(by_call.values())

    def call(section: Section) -> Iterator[Moment]:
        """The next call of a section, with the calls of sections in it."""
        values: list[Value | Local] = [*section.locals, *section.values]
        after = group_by(values, lambda value: value.step)
        for step in waiting[section.key].popleft() if waiting[section.key] else ():
            frame, statement = section.steps[step]
            yield Moment(section, step)
            row = record.callee(section, frame).statements[statement]
            if row.kind == "section":
                yield from call(record.by_key[row.target])
            for value in after.get(step, ()):
                yield Moment(section, step, value)

    for section in [record.main, *record.sections]:  # what main calls, and what another way has called
        while waiting[section.key]:
            yield from call(section)
