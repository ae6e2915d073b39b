"""The probes that run on every line of a lecture, and nothing else.

They are closures over shared variables, not methods: that halves their cost. State, all of it, while a
lecture runs. What belongs to the section that is running is exchanged when one begins and ends:

    log       of the section. `events` is a list in order of execution; folding a loop deletes slices near its
              end, so memory does not grow with iterations. `reached` says of every statement whether it ever
              ran; folding does not forget this. `glimpsed` counts, per function, calls whose arguments were
              looked at.
    limit     of its events; -1 while nothing is recorded, so that a step has one thing to ask
    spare     of it: function -> a frame that stands for all its calls beyond the limit; no page shows it
    outer     what the sections around it will go on with

and for the whole run:

    active    id of a live frame object -> number of its frame. A frame enters itself, so a reused address is
              overwritten before it can be mistaken.
    functions frame -> its function
    loops     (id of a live frame object, statement) -> the loop now running there
    calls     id of a live frame object -> (function, line) -> how often it called; after `CALLS` of them,
              calls are only counted
    folded    id of a live frame object -> its code, of calls that were only counted: what they call is, too
    codes     per function, its code: at the address of a frame that ended, one of untouched code may stand,
              which enters nothing, and is no caller that is known
    sites     (id of a code object, place of a call in it) -> its line, and the code, so that its id stays
    told      per watch, how often the listener heard of it
    paused    how many stepped-over lines are running
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from sys import _getframe
from types import CodeType, FrameType
from typing import Protocol

from msgspec.structs import replace

from litbook.probe.asserts import Asserts
from litbook.probe.events import Begun, Event, Log, LoopState
from litbook.probe.recording import Recording
from litbook.record import model
from litbook.record.limits import CALLS, FIRST, GLIMPSES, LAST, STEPS
from litbook.snapshot.snapshot import as_snapshot, is_immediate, snapshot


class Recorded(Recording, Protocol):
    """A recorder, as its probes know it."""

    asserts: Asserts
    is_section: list[bool]
    enclosing_loop: list[int]

    def glimpse(self, value: object) -> model.Snapshot: ...
    def type_of(self, value: object) -> model.Snapshot: ...
    def sample(self, state: LoopState, number: int, kept: object) -> None: ...
    def axes_for(self, frame: int, text: str, value: object) -> tuple[str, ...] | None: ...
    def value_of(self, number: int, frame: int) -> model.Value: ...


@dataclass(frozen=True)
class HotProbes:
    """The probes themselves, and how a section begins and ends."""

    step: Callable[[int], None]
    enter: Callable[..., None]
    loop: Callable[[int], None]
    turn: Callable[[int], None]
    watch: Callable[[int, object], None]
    pause: Callable[[], None]
    resume: Callable[[], None]
    recover: Callable[[], None]  # from the pauses of a section that an exception ended
    begin: Callable[[Log], None]
    end: Callable[[], Log]


def hot_probes(recorder: Recorded) -> HotProbes:  # noqa: C901, PLR0915  long, so that the closures share their state without a lookup
    """The probes of a run. What they meet stands in `recorder`: its log, `active`, `functions`, `codes`."""
    log: Log = recorder.log
    events: list[Event] = log.events
    append, reached, glimpsed = events.append, log.reached, log.glimpsed
    limit, limit_before, paused = STEPS, STEPS, 0
    spare: dict[int, int] = {}
    outer: list[tuple[Log, int, int, int, dict[int, int]]] = []
    began = 0  # the first frame of the section's since it runs without one inside it

    active, functions, codes = recorder.active, recorder.functions, recorder.codes
    lecture, listener, sections = recorder.lecture, recorder.listener, recorder.is_section
    heard = [function.kind in ("main", "part", "section") for function in lecture.functions]
    statements, watches, enclosing = lecture.statements, lecture.watches, recorder.enclosing_loop
    asserts = recorder.asserts.nodes
    loops: dict[tuple[int, int], LoopState] = {}
    calls: dict[int, dict[tuple[int, int], int]] = {}
    folded: dict[int, CodeType] = {}
    sites: dict[tuple[int, int], tuple[int, CodeType]] = {}
    home, ident = threading.get_ident(), threading.get_ident
    told = [0] * len(watches)

    def step(statement: int) -> None:
        if not reached[statement]:
            reached[statement] = 1
            if listener is not None and not paused and heard[statements[statement].function]:
                listener.line(statement)
            if statement in asserts:
                recorder.asserts.ran(statement)
        if len(events) < limit:
            frame = active.get(id(_getframe(1)))
            if frame is not None:
                append((frame, statement))
        elif not paused:
            log.dropped += 1

    def enter(function: int, *arguments: object) -> None:
        frame = _getframe(1)
        address = id(frame)
        if paused or ident() != home:
            active.pop(address, None)
            return
        if address in calls:  # of an earlier frame there; asking is quicker than `pop`
            del calls[address]  # noqa: RUF051
        if len(events) >= limit and not sections[function]:
            if function not in spare:
                spare[function] = len(functions)
                functions.append(function)
            active[address], codes[function] = spare[function], frame.f_code
            return
        caller, parent, line, above = frame.f_back, None, 0, 0
        while caller is not None:
            above = id(caller)
            parent = active.get(above)
            if parent is not None or above in folded:
                code = caller.f_code
                if code is (folded[above] if parent is None else codes[functions[parent]]):
                    line = line_of(caller, code)
                    break
            parent, caller = None, caller.f_back
        if caller is not None and not sections[function]:
            site = function, line
            of_parent = calls.get(above)
            if of_parent is None:
                calls[above] = {site: 1}
                times = 1
            else:
                of_parent[site] = times = of_parent.get(site, 0) + 1
            if times > CALLS or parent is None:
                # a sort key, a comprehension: the same call over and over
                active.pop(address, None)
                folded[address] = frame.f_code
                log.dropped += 1
                return
        number = len(functions)
        functions.append(function)
        active[address], codes[function] = number, frame.f_code
        if len(events) < limit:
            append((number, parent, line, arguments and looked_at(function, arguments)))

    def line_of(frame: FrameType, code: CodeType) -> int:
        """`f_lineno`, once for each place: it reads a table of the whole code from its start."""
        at = id(code), frame.f_lasti
        found = sites.get(at)
        if found is None:
            found = sites[at] = frame.f_lineno, code
        return found[0]

    def looked_at(function: int, arguments: tuple[object, ...]) -> Iterable[object]:
        seen = glimpsed[function]
        glimpsed[function] = seen + 1
        for value in arguments:  # most often all are numbers
            kind = type(value)
            if kind is not int and kind is not float:
                look = recorder.glimpse if seen < GLIMPSES else recorder.type_of
                return [value if is_immediate(value) else look(value) for value in arguments]
        return arguments

    def loop(statement: int) -> None:
        address = id(_getframe(1))
        frame = active.get(address)
        if frame is not None and not paused:
            state = loops[address, statement] = LoopState(frame, statement)
            append(Begun(state))
        else:  # an earlier frame may have had this address
            loops.pop((address, statement), None)

    def turn(statement: int) -> None:
        address = id(_getframe(1))
        state = loops.get((address, statement))
        if state is None or paused:
            return
        count = state.count
        state.count = count + 1
        if calls:  # each iteration may call anew
            calls.pop(address, None)
        if count >= FIRST:
            now, last = len(events), state.last
            if count >= FIRST + LAST:  # the iteration before the last one goes
                before = state.before
                del events[before:last]
                log.dropped += last - before
                state.last = now - last + before
            else:
                state.before, state.last = last, now
        if count and len(events) < limit:
            append((state.frame, statement))

    def watch(number: int, value: object) -> None:
        address = id(_getframe(1))
        frame = active.get(address)
        if frame is None or paused:
            return
        asked = watches[number]
        state = loops.get((address, enclosing[number]))
        turned = state.count - 1 if state is not None else 0
        if asked.kind == "clear":
            append((frame, number, None, state, turned, ""))
            return
        kept = value
        if not is_immediate(value):
            axes = recorder.axes_for(frame, asked.text, value)
            on_page = state is None and sections[functions[frame]]
            kept = snapshot(value, log.storages, axes=axes, bits=asked.unit == "bits", shows=on_page)
        if state is not None:
            series = state.series.get(number)
            if series is None or not turned % series.every:
                recorder.sample(state, number, kept)
        if len(events) > limit + STEPS and not sections[functions[frame]]:
            log.dropped += 1
            return
        append((frame, number, kept, state, turned, ""))
        if listener is not None and told[number] <= FIRST and heard[functions[frame]]:
            told[number] += 1  # in all, so that inner loops of long ones do not flood a terminal
            more = told[number] > FIRST
            named = replace(recorder.value_of(number, frame), turn=turned)
            listener.value(named, None if more else as_snapshot(kept))

    def pause() -> None:
        nonlocal paused, limit, limit_before
        if not paused:
            limit_before, limit = limit, -1
        paused += 1

    def resume() -> None:
        nonlocal paused, limit
        if paused:  # else the section that just ended has recovered from the pause already
            paused -= 1
            if not paused:
                limit = limit_before

    def recover() -> None:
        while paused:
            resume()

    def begin(inner: Log) -> None:
        """`inner` is the section that runs from now on."""
        nonlocal log, events, append, reached, glimpsed, limit, limit_before, spare, began
        outer.append((log, limit, limit_before, paused, spare))
        log.spans.append((began, len(functions)))
        began = len(functions)
        log, spare = inner, {}
        events, reached, glimpsed = inner.events, inner.reached, inner.glimpsed
        append = events.append
        limit_before = STEPS
        limit = -1 if paused else STEPS
        recorder.log = inner

    def end() -> Log:
        """The section that ran ends, and the one around it goes on; the former's log."""
        nonlocal log, events, append, reached, glimpsed, limit, limit_before, paused, spare, began
        ended = log
        ended.spans.append((began, len(functions)))
        began = len(functions)
        if outer:
            log, limit, limit_before, paused, spare = outer.pop()
            events, reached, glimpsed = log.events, log.reached, log.glimpsed
            append = events.append
            recorder.log = log
        return ended

    return HotProbes(step, enter, loop, turn, watch, pause, resume, recover, begin, end)
