"""Runs every section of a lecture alone, too, and says which show something else than in their order.

The lecture runs once, instrumented as always. Before its first section a fork of this process runs each of
them alone, as `litbook run LECTURE SECTION` would: after those that its text is known to lean on. What comes
of it is compared with what the lecture shows, as a recording is. Each runs alone twice, and what differs
between the two is of the clock or of chance, and says nothing.

It needs no list of what may change something: that is why it finds what a text does not show (`leaning`).
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from litbook.lecture import parse
from litbook.lecture.leaning import Leanings
from litbook.lecture.model import Lecture
from litbook.mutants import forks, noticed
from litbook.probe.protocols import Listener
from litbook.probe.recorder import Recorder
from litbook.record import model
from litbook.record.device_kinds import needs
from litbook.run import run
from litbook.run.environment import environment
from litbook.run.mailbox import Mailbox

PATIENCE = 120.0  # seconds that a section may take alone
_NO_END = f"alone it has no end: its process died, or it took {PATIENCE:.0f} s"
_Work = Callable[[], Iterator[str]]


@dataclass
class _Alone:
    """What sections are when they run alone, and what they are in their order."""

    sections: Sequence[int]
    place: model.Environment
    owner: Mailbox | None
    alone: dict[int, list[model.Record]] = field(default_factory=dict)  # twice each
    in_order: dict[int, model.Record] = field(default_factory=dict)


def find_dependent(
    path: Path, sections: Sequence[str] = (), owner: Mailbox | None = None
) -> dict[str, list[str]]:
    """The sections that show something else when they run alone, and what: `61 total == 3` for a line.

    One that does not come to its end alone is among them: nothing that was not judged passes in silence.

    On the CPU only, as a GPU does not survive a fork; sections on ranks have processes of their own anyway.
    """
    lecture = parse.read_usable(path, tuple(sections))
    wanted = {lecture.section(name) for name in sections}
    here = [
        number
        for number in lecture.order
        if lecture.functions[number].kind == "section"
        and needs(lecture.functions[number].requires).is_plain
        and not needs(lecture.functions[number].requires).ranks
    ]
    seen = _Alone(here, environment(path, "cpu", 0), owner)
    with forks.one_thread():
        run.run(path, device="cpu", recorded_by=partial(_OrderRecorder, seen))
    found = dict[str, list[str]]()
    for number, in_order in seen.in_order.items():
        records = seen.alone.get(number, [])
        if wanted and number not in wanted:
            continue
        if len(records) < 2:
            found[lecture.section_name(number)] = [_NO_END]
        else:
            once, again = records
            first = lecture.functions[number].first
            differing = _differences(in_order, once, first) - _differences(again, once, first)
            if differing:
                found[lecture.section_name(number)] = sorted(differing)
    return found


def _differences(now: model.Record, was: model.Record, first: int) -> set[str]:
    """What differs of a section, whose first line is `first`: what a recording tells, and what is said."""
    said, before = (
        {
            f"{first + piece.line} {piece.text.strip()}"
            for section in record.sections
            for piece in section.pieces
        }
        for record in (now, was)
    )
    return noticed.differences(now, was) | (said - before)


class _OrderRecorder(Recorder):
    """A recorder that has each section run alone, in forks, before the first one runs in its order."""

    def __init__(self, seen: _Alone, lecture: Lecture, listener: Listener | None) -> None:
        super().__init__(lecture, listener)
        self.seen, self.begun = seen, False

    def section(self, function: int, call: Callable[[], object]) -> None:
        if not self.begun:
            self.begun = True
            self._run_each_alone()
        if self.seen.owner is not None:
            self.seen.owner.enter_section(self.lecture.functions[function].name)
        super().section(function, call)
        if function in self.seen.sections and function not in self.seen.in_order:
            self.seen.in_order[function] = self._record(function)

    def _run_each_alone(self) -> None:
        at_once = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        leanings = Leanings(self.lecture)
        # The last one first: a file that an earlier section leaves is not there yet.
        twice = [function for function in reversed(self.seen.sections) for _ in range(2)]
        works: list[_Work] = [self._work(function, leanings.before([function])) for function in twice]
        for number, answers in forks.run_in_forks(works, PATIENCE, noticed.MEMORY // at_once, at_once):
            if answers:
                record = pickle.loads(base64.b64decode(answers[0]))
                self.seen.alone.setdefault(twice[number], []).append(record)

    def _work(self, function: int, before: Sequence[int]) -> _Work:
        """What a fork does: run the section alone, and say what came of it."""

        def work() -> Iterator[str]:
            for number in (*before, function):
                Recorder.section(self, number, self._function(number))
            yield base64.b64encode(pickle.dumps(self._record(function))).decode()

        return work

    def _function(self, number: int) -> Callable[[], object]:
        file = self.lecture.file_of_function(number)
        module = sys.modules[file.module or Path(file.filename).stem]
        section: Callable[[], object] = vars(module)[self.lecture.functions[number].name]
        return section

    def _record(self, function: int) -> model.Record:
        return noticed.record_of_section(self, function, self.seen.place)
