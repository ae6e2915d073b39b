"""Runs a lecture and, behind every section, that section again with one thing changed. `changes` says what.

The lecture runs once, instrumented as always. When a section has run, its entry is made as for a record.
Then each of its changes is tried in a fork of this process: the tree is changed there, the section compiled
and run again, and the entry that comes of it compared with the first one, as a recording is. A *claim*
notices a change where it no longer holds, something is raised, or the section does not end in several times
its time; a *value* where what is shown differs, and then only a recording would tell. The first fork changes
nothing: what differs all the same is of the clock or of an earlier run, and says nothing. What nothing
notices is tried once more beside what it was (`same`), and does not count where both come to the very same.

Until the time is up, every section gets an equal part of what is left; its changes are drawn by the seed. As
many forks run side by side as there are processors.
"""

from __future__ import annotations

import base64
import bisect
import builtins
import itertools
import json
import os
import pickle
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from msgspec import structs

from litbook.errors import LitbookError, UnusableLecture
from litbook.finding import Finding, Place
from litbook.lecture import parse
from litbook.lecture.model import Lecture
from litbook.mutants import forks, same
from litbook.mutants.changes import CodeChange, Excuse, changes
from litbook.probe.instrument import instrument_files
from litbook.probe.protocols import Listener
from litbook.probe.recorder import Recorder
from litbook.record import compare, encoding, model
from litbook.record.device_kinds import needs
from litbook.record.ranks import LostRank, join_ranks
from litbook.run import process, run
from litbook.run.environment import environment
from litbook.run.mailbox import Mailbox
from litbook.run.ranks import launch as launches

LAUNCH = 300.0  # seconds that the sections of a launch may take as they are
TIMES, MORE = 5.0, 3.0  # what a changed section may take: so many times its own time, and seconds more
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2  # bytes that it may ask for
RAISED, CLAIM = "raised: ", "claim: "
_now = time.monotonic  # also where a lecture replaces it


@dataclass
class SectionTrials:
    """What became of the changes of one section, which has `made` in all."""

    section: str
    made: int
    again: bool = True  # whether it runs a second time, with nothing changed; else none is tried
    unnoticed: list[CodeChange] = field(default_factory=list)  # by claims and values
    unclaimed: list[CodeChange] = field(default_factory=list)  # by claims: a value differs
    noticed: list[CodeChange] = field(default_factory=list)  # by a claim
    same: list[CodeChange] = field(default_factory=list)  # what comes to the very same, which is not counted

    @property
    def count(self) -> int:
        """How many of them are counted: all that were tried, but for those that come to the same."""
        return len(self.unnoticed) + len(self.unclaimed) + len(self.noticed)

    def take(self, change: CodeChange, differing: set[str] | None, same: Callable[[], bool]) -> None:
        """One that was tried, and what differed only then; None where the section did not come to its end.

        `same` is asked where nothing did.
        """
        if differing is None or any(text.startswith((RAISED, CLAIM)) for text in differing):
            its = self.noticed
        elif differing:
            its = self.unclaimed
        else:
            its = self.same if same() else self.unnoticed
        bisect.insort(its, change, key=lambda other: (other.line, other.column, other.change))

    @property
    def excused_changes(self) -> list[CodeChange]:
        """Those of the others of which the text says why no claim need notice them."""
        return [change for change in (*self.unnoticed, *self.unclaimed) if change.excuse]

    @property
    def unused_excuses(self) -> list[Excuse]:
        """The excuses of changes that a claim notices, every one of them that was tried."""
        needed = {change.excuse for change in self.excused_changes}
        return [*{c.excuse: None for c in self.noticed if c.excuse and c.excuse not in needed}]


@dataclass
class _TrialPlan:
    """Which changes are tried: until when, of how many sections that are still to come, drawn by what."""

    place: model.Environment
    owner: Mailbox | None
    texts: dict[str, str]
    until: float
    sections: int
    seed: int
    sample: dict[str, list[int]] | None  # of some sections, by key, which of their changes; None: of all
    at_once: int  # forks
    tried: dict[int, SectionTrials] = field(default_factory=dict)  # of a section's function


def try_changes(
    path: Path,
    *,
    sections: tuple[str, ...] = (),
    seconds: float | None = None,
    seed: int = 0,
    sample: int | None = None,
    owner: Mailbox | None = None,
) -> tuple[list[SectionTrials], model.Record]:
    """Run the lecture (or some of its sections), and try the changes of each section that runs here.

    It ends within about `seconds`, where they are given. Of a `sample`, drawn from all changes, only the
    sections run in which one stands. On the CPU only, as a GPU does not survive a fork.
    """
    lecture = parse.read_usable(path, sections)
    texts = {file.path: file.text for file in lecture.files}
    drawn: dict[str, list[int]] | None = None
    if sample is not None:
        here = [i for i in lecture.order if needs(lecture.functions[i].requires).is_plain]
        here = [i for i in here if not sections or lecture.section_name(i) in sections]
        made = changes(lecture)
        every = [(i, at) for i in here for at in range(len(made[i]))]
        drawn = {}
        for i, at in random.Random(seed).sample(every, min(sample, len(every))):
            drawn.setdefault(lecture.section_name(i), []).append(at)
        sections = tuple(drawn)
    until = float("inf") if seconds is None else _now() + seconds
    # The sections that run here: those asked for, and what they call.
    asked, count = {lecture.section(name) for name in sections}, 0
    for number in lecture.order:
        above = [number]
        while (parent := lecture.functions[above[-1]].parent) is not None:
            above.append(parent)
        is_asked = not asked or not asked.isdisjoint(above)
        count += is_asked and needs(lecture.functions[number].requires).is_plain
    at_once = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    plan = _TrialPlan(environment(path, "cpu", 0), owner, texts, until, count, seed, drawn, at_once)
    with forks.one_thread():
        record = run.run(path, sections=sections, device="cpu", recorded_by=partial(_ChangeRecorder, plan))
    tried = list(plan.tried.values())
    for size, keys in process.worlds(record, slow=False).items():
        # A section on ranks runs anew with each change, in a launch of its own.
        left = None if seconds is None else until - _now()
        given = {"ranks": size, "keys": keys, "seconds": left, "seed": seed, "sample": drawn, "texts": texts}
        answer = process.answer(path, "litbook.mutants.noticed:on_ranks", **given, path=str(path))
        # It comes from a process that ran nothing of the lecture.
        several, text = pickle.loads(base64.b64decode(answer))
        tried += several
        unchanged = encoding.loads(text, "what the ranks left")
        entries = {section.key: section for section in unchanged.sections if section.key in keys}
        record = structs.replace(record, sections=tuple(entries.get(s.key, s) for s in record.sections))
    _refuse_edited(parse.read_usable(path), texts)
    return tried, record


def _refuse_edited(lecture: Lecture, texts: dict[str, str]) -> None:
    """Raises `UnusableLecture` at the first line that is not in `texts`, of which the changes were made."""
    for file in lecture.files:
        lines = itertools.zip_longest(texts.get(file.path, "").split("\n"), file.text.split("\n"))
        for number, (was, now) in enumerate(lines, 1):
            if was != now:
                what = "edited while its changes were tried: from this line on it is another text"
                place = Place(file.path, number, 1, now or "")
                way_out = "run again, and save nothing meanwhile"
                raise UnusableLecture([Finding("edited", what, place, way_out)])


def on_ranks(
    owner: Mailbox,
    *,
    path: str,
    texts: dict[str, str],
    ranks: int,
    keys: list[str],
    seconds: float | None,
    seed: int,
    sample: dict[str, list[int]] | None,
) -> str:
    """The changes of sections on ranks, and the record of all of these unchanged, for `try_changes`."""
    launcher = Launcher(owner, Path(path), ranks)
    lecture, until = launcher.lecture, _now() + (float("inf") if seconds is None else seconds)
    made, done, whole = (
        changes(lecture),
        list[SectionTrials](),
        launcher.launch_record(keys, {"change": None}, LAUNCH),
    )
    for number, key in enumerate(keys):
        _refuse_edited(parse.read_usable(launcher.path), texts)
        share = _now() + (until - _now()) / (len(keys) - number)
        start, was = _now(), launcher.launch_record([key], {"change": None}, LAUNCH)
        took = _now() - start
        patience = TIMES * took + MORE
        os.environ["LITBOOK_PATIENCE"] = f"{2 * took + 1:.1f}"  # who waits in vain need not wait for that
        again = launcher.launch_record([key], {"change": None}, patience)
        every = made[lecture.section(key)]
        chosen = list(range(len(every))) if sample is None else sample.get(key, [])
        tried = SectionTrials(key, len(chosen))
        done.append(tried)
        steady = differences(again, was)
        if any(text.startswith(RAISED) for text in steady) or any(was.errors()):
            tried.again = not chosen
            continue
        for at in random.Random(f"{seed} {key}").sample(chosen, len(chosen)):
            if _now() > share:
                break
            differing = differences(launcher.launch_record([key], {"change": at}, patience), was) - steady
            tried.take(every[at], differing, partial(launcher.same, key, at, patience))
    return base64.b64encode(pickle.dumps((done, encoding.dumps(whole)))).decode()


class Launcher:
    """Launches sections of a lecture with one thing changed, one launch after the other."""

    def __init__(self, owner: Mailbox, path: Path, size: int) -> None:
        self.owner, self.path, self.size, self.count = owner, path, size, 0
        self.record: model.Record | None = None
        self.lecture = parse.read_usable(path)
        launches.prepare(path, self.lecture, size)

    def launch_ranks(self, keys: list[str], given: dict[str, Any], seconds: float) -> list[dict[str, Any]]:
        """What each rank left."""
        given = {"path": str(self.path), "keys": keys, "ranks": self.size, "seconds": seconds, **given}
        function = "litbook.mutants.noticed:on_rank"
        asked = {"path": str(self.path), "timeout": seconds, "function": function, "given": given}
        self.count += 1
        folder = Path(self.owner.folder, str(self.count))
        return launches.launch_once(folder, self.owner.key, self.size, asked, self.lecture)

    def launch_record(self, keys: list[str], given: dict[str, Any], seconds: float) -> model.Record:
        """The record of these sections as all ranks left them."""
        several = [
            encoding.loads(json.loads(one["answer"]), "what a rank left")
            if "answer" in one
            else LostRank(**one)
            for one in self.launch_ranks(keys, given, seconds)
        ]
        self.record = next((one for one in several if isinstance(one, model.Record)), self.record)
        if self.record is None:
            raise LitbookError(f"no rank left a record: {several[-1]}")
        return join_ranks(self.record, several, keys)

    def same(self, key: str, change: int, seconds: float) -> bool:
        """Whether on every rank a change comes to the very same value each time."""
        every = self.launch_ranks([key], {"change": change, "both": True}, seconds)
        return all(one.get("answer") == '"same"' for one in every)


def on_rank(
    owner: Mailbox,
    *,
    path: str,
    keys: list[str],
    ranks: int,
    seconds: float,
    change: int | None,
    both: bool = False,
) -> str:
    """One rank of a section with that change: its record; of `both`, whether they come to the same."""
    twice = same.ValuePair()

    def make_recorder(lecture: Lecture, listener: Listener | None) -> Recorder:
        recorder = Recorder(lecture, listener)
        if change is not None:
            made = changes(lecture)[lecture.section(keys[0])][change]
            if not both:
                made.make(lecture)
            elif same.compare(made, lecture):
                vars(builtins)[same.TWICE] = twice.evaluate
        return recorder

    start = partial(run.run, Path(path), sections=tuple(keys), device="cpu", timeout=seconds)
    record = start(ranks=ranks, owner=owner, recorded_by=make_recorder)
    if both:
        return "same" if twice.same and all(twice.same) else ""
    return encoding.dumps(record)


def differences(now: model.Record, was: model.Record) -> set[str]:
    """What differs between a section and itself: values, what is raised, and claims that no longer hold."""
    differing = {f"{d.place.line} {d.what}" for d in compare.compare(now, was).differences}
    before, after = ({f"{RAISED}{e.line} {e.message}" for _, e in r.errors()} for r in (was, now))
    claims = ([claim for _, claim in r.claims() if claim.verdict == "holds"] for r in (was, now))
    held, holds = ({f"{CLAIM}{claim.line} {claim.text}" for claim in several} for several in claims)
    return differing | (before ^ after) | (held - holds)


def record_of_section(recorder: Recorder, function: int, place: model.Environment) -> model.Record:
    """The record of one section alone, as it is now."""
    making = recorder.making(function)
    entry = making.section("")
    return model.Record(
        schema=model.SCHEMA,
        lecture=recorder.lecture.name,
        title=recorder.lecture.title,
        environment=place,
        sources=recorder.lecture.sources(),
        definitions=tuple(recorder.numbering.definition(number, making.reached) for number in making.called),
        sections=(entry,),
    )


class _ChangeRecorder(Recorder):
    """A recorder that runs a section again and again, in forks."""

    def __init__(self, plan: _TrialPlan, lecture: Lecture, listener: Listener | None) -> None:
        _refuse_edited(lecture, plan.texts)
        super().__init__(lecture, listener)
        self.plan = plan
        self.changes = changes(lecture)
        self.again = False  # whether this is a fork, where a section runs again

    def section(self, function: int, call: Callable[[], object]) -> None:
        if self.again:
            return  # what a changed part calls
        plan, section = self.plan, self.lecture.functions[function]
        if plan.owner is not None:
            plan.owner.enter_section(section.name)
        start = _now()
        super().section(function, call)
        need = needs(section.requires)
        if function not in plan.tried and need.is_plain and not (need.ranks and section.kind == "section"):
            # Every section gets an equal part of the time that is left.
            until = _now() + (plan.until - _now()) / max(1, plan.sections)
            plan.sections -= 1
            plan.tried[function] = self._try(function, TIMES * (_now() - start) + MORE, until)

    def _try(self, function: int, patience: float, until: float) -> SectionTrials:
        """Try the changes of a section that has run; each may take `patience` seconds."""
        plan, key = self.plan, self.numbering.keys[function]
        every = self.changes[function]
        if plan.sample is not None:
            every = [every[at] for at in plan.sample.get(key, ())]
        tried, was = SectionTrials(key, len(every)), self.section_record(function)
        steady = forks.run_in_fork(self._work(function, None, was), patience, MEMORY) if every else []
        if not steady or any(text.startswith(RAISED) for text in steady[0]):
            tried.again = not every
            return tried
        order = random.Random(f"{plan.seed} {key}").sample(every, len(every))
        in_time = itertools.takewhile(lambda _: _now() < until, order)
        works = (self._work(function, change, was) for change in in_time)
        memory, patience = MEMORY // plan.at_once, patience * plan.at_once
        for number, answers in forks.run_in_forks(works, patience, memory, plan.at_once):
            differing = {*answers[0]} - {*steady[0]} if answers else None
            change = order[number]
            tried.take(change, differing, partial(self._same, function, change, patience, memory))
        return tried

    def _work(
        self, function: int, change: CodeChange | None, was: model.Record
    ) -> Callable[[], Iterator[list[str]]]:
        """What a fork does: run the section after the change, and say what differs."""

        def work() -> Iterator[list[str]]:
            if change is not None:
                change.make(self.lecture)
            self._run(function)
            yield sorted(differences(self.section_record(function), was))

        return work

    def _same(self, function: int, change: CodeChange, patience: float, memory: int) -> bool:
        """Whether in a fork that runs the section the changed expression comes to what its own comes to."""

        def work() -> Iterator[bool]:
            twice = same.ValuePair()
            if same.compare(change, self.lecture):
                self._run(function, **{same.TWICE: twice.evaluate})
            yield bool(twice.same) and all(twice.same)

        return forks.run_in_fork(work, patience, memory) == [True]

    def _run(self, function: int, **more: object) -> None:
        """Run the section as the tree is now. It leaves nothing else of its file, and so is for a fork."""
        self.again = True
        name, file = self.lecture.functions[function].name, self.lecture.file_of_function(function)
        futures = [node for node in file.tree.body if getattr(node, "module", "") == "__future__"]
        sections = [node for node in file.tree.body if self.lecture.function_of.get(node) == function]
        file.tree.body = [*futures, *sections]
        [module] = instrument_files(replace(self.lecture, files=[file]), self)
        code = next(c for c in module.co_consts if isinstance(c, CodeType) and c.co_name == name)
        names = vars(sys.modules[file.module or Path(file.filename).stem])
        names.update(more)
        del self.makings[function]
        Recorder.section(self, function, FunctionType(code, names))

    def section_record(self, function: int) -> model.Record:
        """The record of a section alone, as it is now."""
        return record_of_section(self, function, self.plan.place)
