"""Runs a lecture and, behind every section, that section again with one thing changed. `changes` says what.

The lecture runs once, instrumented as always. When a section has run, its entry is made as for a record.
Then each of its changes is tried in a fork of this process: the tree is changed there, the section compiled
and run again, and the entry that comes of it compared with the first one, as a recording is. A change is
*noticed* where a claim or a shown value differs, something is raised, or the section does not end in several
times its time. The first fork changes nothing: what differs all the same is of the clock or of an earlier
run, and says nothing.

Until the time is up, every section gets an equal part of what is left; its changes are drawn by the seed.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType

from litbook.mutants import forks
from litbook.mutants.changes import Change, changes
from litbook.probe.instrument import instrument_files
from litbook.probe.recorder import Recorder
from litbook.probe.recording import Listener
from litbook.record import compare, model
from litbook.run import run
from litbook.run.environment import environment
from litbook.text import source
from litbook.text.lecture import Lecture

TIMES, MORE = 5.0, 3.0  # what a changed section may take: so many times its own time, and seconds more
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2  # bytes that it may ask for
RAISED = "raised: "
_now = time.monotonic  # also where a lecture replaces it


@dataclass
class Tried:
    """What became of the changes of one section, which has `made` in all."""

    section: str
    made: int
    count: int = 0  # of those tried
    again: bool = True  # whether it runs a second time, with nothing changed; else none is tried
    unnoticed: list[Change] = field(default_factory=list)


@dataclass
class _Plan:
    """Which changes are tried: until when, of how many sections that are still to come, drawn by what."""

    place: model.Environment
    owner: run.Owner | None
    until: float
    sections: int
    seed: int
    tried: dict[int, Tried] = field(default_factory=dict)  # of a section's function


def try_changes(
    path: Path,
    *,
    sections: tuple[str, ...] = (),
    seconds: float | None = None,
    seed: int = 0,
    owner: run.Owner | None = None,
) -> tuple[list[Tried], model.Record]:
    """Run the lecture (or some of its sections), and try the changes of each section that runs here.

    It ends within about `seconds`, where they are given. On the CPU only, as a GPU does not survive a fork.
    """
    lecture = source.usable(path, sections)
    until = float("inf") if seconds is None else _now() + seconds
    # The sections that run here: those asked for, and what they call.
    asked, count = {lecture.section(name) for name in sections}, 0
    for number in lecture.order:
        above = [number]
        while (parent := lecture.functions[above[-1]].parent) is not None:
            above.append(parent)
        count += not lecture.functions[number].requires and (not asked or not asked.isdisjoint(above))
    plan = _Plan(environment(path, "cpu", 0), owner, until, count, seed)
    with forks.one_thread():
        record = run.run(path, sections=sections, device="cpu", recorded_by=partial(_Changing, plan))
    return list(plan.tried.values()), record


class _Changing(Recorder):
    """A recorder that runs a section again and again, in forks."""

    def __init__(self, plan: _Plan, lecture: Lecture, listener: Listener | None) -> None:
        super().__init__(lecture, listener)
        self.plan = plan
        self.again = False  # whether this is a fork, where a section runs again

    def section(self, function: int, call: Callable[[], object]) -> None:
        if self.again:
            return  # what a changed part calls
        plan, section = self.plan, self.lecture.functions[function]
        if plan.owner is not None:
            plan.owner.at(section.name)
        start = _now()
        super().section(function, call)
        if function not in plan.tried and not section.requires:
            # Every section gets an equal part of the time that is left.
            until = _now() + (plan.until - _now()) / max(1, plan.sections)
            plan.sections -= 1
            plan.tried[function] = self._try(function, TIMES * (_now() - start) + MORE, until)

    def _try(self, function: int, patience: float, until: float) -> Tried:
        """Try the changes of a section that has run; each may take `patience` seconds."""
        every, key = changes(self.lecture, function), self.numbering.keys[function]
        tried, was = Tried(key, len(every)), self.alone(function)
        steady = self._differing(function, None, was, patience) if every else set()
        if steady is None or any(text.startswith(RAISED) for text in steady):
            tried.again = False
            return tried
        for change in random.Random(f"{self.plan.seed} {key}").sample(every, len(every)):
            if _now() > until:
                break
            differing = self._differing(function, change, was, patience)
            tried.count += 1
            if differing is not None and differing <= steady:
                tried.unnoticed.append(change)
        tried.unnoticed.sort(key=lambda change: (change.line, change.column))
        return tried

    def _differing(
        self, function: int, change: Change | None, was: model.Record, patience: float
    ) -> set[str] | None:
        """What the section says differently after the change; None where it did not come to its end."""

        def work() -> Iterator[list[str]]:
            self.again = True
            if change is not None:
                change.make(self.lecture)
            # The section as the tree is now. It leaves nothing else of its file, and so is for a fork.
            name, file = self.lecture.functions[function].name, self.lecture.file_of_function(function)
            futures = [node for node in file.tree.body if getattr(node, "module", "") == "__future__"]
            sections = [node for node in file.tree.body if self.lecture.function_of.get(node) == function]
            file.tree.body = [*futures, *sections]
            [module] = instrument_files(replace(self.lecture, files=[file]), self)
            code = next(c for c in module.co_consts if isinstance(c, CodeType) and c.co_name == name)
            call = FunctionType(code, vars(sys.modules[file.module or Path(file.filename).stem]))
            del self.makings[function]
            Recorder.section(self, function, call)
            now = self.alone(function)
            differing = {f"{d.place.line} {d.what}" for d in compare.compare(now, was).differences}
            before, after = ({f"{RAISED}{e.line} {e.message}" for _, e in r.errors()} for r in (was, now))
            yield sorted(differing | (before ^ after))

        lines = forks.asked(work, patience, MEMORY)
        return set(lines[0]) if lines else None

    def alone(self, function: int) -> model.Record:
        """The record of a section alone, as it is now."""
        making = self.making(function)
        entry = making.section("")
        return model.Record(
            schema=model.SCHEMA,
            lecture=self.lecture.name,
            title=self.lecture.title,
            environment=self.plan.place,
            sources=self.lecture.sources(),
            definitions=tuple(self.numbering.definition(number, making.reached) for number in making.called),
            sections=(entry,),
        )
