"""The probes that run on every line of a lecture, and nothing else.

They are closures over shared variables, not methods: that halves their cost. State, all of it, while a
lecture runs. What belongs to the section that is running is exchanged when one begins and ends:

    log       of the section. `events` is a list in order of execution; folding a loop deletes slices near its
              end, so memory does not grow with iterations. `reached` has every statement that ever ran, also
              where folding forgets the step. `glimpsed` counts, per function, calls whose arguments were
              looked at; `looked`, per statement, local names that were.
    limit     of its events; -1 while nothing is recorded, so that a step has one thing to ask
    dropped   how many of them are not kept
    spare     of it: function -> the base of a frame that stands for all its calls beyond the limit; no page
              shows it
    resumed   the last three as they were when a pause began
    outer     what the sections around it will go on with

and for the whole run:

    active    id of a live frame object -> base of its frame: its number times `scale`, the count of
              statements, so that a step is one sum. A frame enters itself, so a reused address is overwritten
              before it can be mistaken.
    functions frame -> its function
    loops     loop statement -> id of a live frame object -> the loop now running there
    around    per watch, that of the loop around it
    turns     loop statement -> whether it is in its first iterations; `within`, that of the loop around it
    calls     id of a live frame object -> function and line, in one number, -> how often it called; after
              `CALLS` of them, calls are only counted. While it called from one place once, that alone
    folded    id of a live frame object -> its code, of calls that were only counted: what they call is, too
    codes     per function, its code: at the address of a frame that ended, one of untouched code may stand,
              which enters nothing, and is no caller that is known
    lines     per function, place of a call in its code -> its line
    types     id of a type -> the type, while it lives, and what there is to say of it alone
    told      per watch, how often the listener heard of it
    paused    how many stepped-over lines are running
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sys import _getframe
from types import CodeType, FrameType
from typing import Any

from litbook.probe.asserts import Asserts
from litbook.probe.events import PRINTED, CallEvent, Event, Log, LoopState, PieceEvent, add_output
from litbook.probe.protocols import Recording
from litbook.python.nodes import LoopNode
from litbook.record import model
from litbook.record.limits import CALLS, FIRST, GLIMPSES, LAST, LOCAL_NODES, STEPS
from litbook.snapshot.snapshot import as_snapshot, glimpse, is_immediate, snapshot, type_alone

LINES = 2**24  # more than any file has: a place of a call is told by one number


@dataclass(frozen=True)
class HotProbes:
    """The probes themselves, and how a section begins and ends."""

    step: Callable[[int], None]
    enter: Callable[..., None]  # (function, first statement, arguments ...)
    loop: Callable[[int], None]
    turn: Callable[[int, int], None]
    local: Callable[[int, str, object], None]
    watch: Callable[[int, object], None]
    clear: Callable[[int], None]
    pause: Callable[[], None]
    resume: Callable[[], None]
    recover: Callable[[], None]  # from the pauses of a section that an exception ended
    begin: Callable[[Log], None]
    end: Callable[[], Log]


def hot_probes(recorder: Recording, asserts: Asserts) -> HotProbes:  # noqa: C901, PLR0915  long, so that the closures share their state without a lookup
    """The probes of a run. What they meet stands in `recorder`: its log, `active`, `functions`, `codes`."""
    log: Log = recorder.log
    events: list[Event] = log.events
    append, reached, glimpsed, looked = events.append, log.reached, log.glimpsed, log.looked
    limit, dropped, paused = STEPS, 0, 0
    spare: dict[int, int] = {}
    resumed = limit, dropped, spare
    outer: list[tuple[Log, int, int, dict[int, int], tuple[int, int, dict[int, int]], int]] = []
    began = 0  # the first frame of the section's since it runs without one inside it

    active, functions, codes = recorder.active, recorder.functions, recorder.codes
    base_of = active.get
    lecture, listener, sections = recorder.lecture, recorder.listener, recorder.numbering.is_section
    statements, watches, scale = lecture.statements, lecture.watches, recorder.numbering.scale
    heard = [function.kind in ("main", "part", "section") for function in lecture.functions]
    noted = {*asserts.nodes, *(range(len(statements)) if listener is not None else ())}
    loops: dict[int, dict[int, LoopState]] = {
        number: {} for node, number in lecture.statement_of.items() if isinstance(node, LoopNode)
    }
    around = [loops.get(number, {}) for number in recorder.numbering.loop_of_watch]
    turns = recorder.turns
    within = {inner: turns.get(outer_loop) for inner, outer_loop in recorder.numbering.loop_around.items()}
    calls: dict[int, int | dict[int, int]] = {}
    folded: dict[int, CodeType] = {}
    lines: list[dict[int, int]] = [{} for _ in codes]
    types: dict[int, tuple[weakref.ref[type], model.Opaque]] = {}
    told = [0] * len(watches)
    home, ident = threading.get_ident(), threading.get_ident
    first_turns, all_turns, most, new_tuple = FIRST, FIRST + LAST, 2 * STEPS, tuple.__new__

    def step(statement: int) -> None:
        nonlocal dropped
        if statement not in reached:
            reached.add(statement)
            if statement in noted:
                note(statement)
        if len(events) < limit:
            base = base_of(id(_getframe(1)))
            if base is not None:
                append(base + statement)
        else:
            dropped += 1
            log.full = True

    def note(statement: int) -> None:
        """A statement runs for the first time in its section, and somebody wants to know."""
        if listener is not None and not paused and heard[statements[statement].function]:
            listener.line(statement)
        if statement in asserts.nodes:
            asserts.mark_reached(statement)

    def enter(function: int, first: int, *arguments: object) -> None:  # noqa: C901, PLR0912, PLR0915  a call in it would cost a tenth
        """A call begins; `first` is the statement that it begins with, -1 where a probe says so."""
        nonlocal dropped
        if first >= 0 and first not in reached:
            reached.add(first)
            if first in noted:
                note(first)
        frame = _getframe(1)
        address = id(frame)
        if ident() != home:
            active.pop(address, None)
            return
        if len(events) >= limit:
            spared = spare.get(function)
            if spared is not None:
                active[address] = spared
                dropped += 1
                log.full = True
                return
            if paused:
                active.pop(address, None)
                return
            if not sections[function]:
                spare[function] = register_frame(function, frame, address)
                return
        if address in calls:  # of an earlier frame there; asking is quicker than `pop`
            del calls[address]  # noqa: RUF051
        caller, parent, line = frame.f_back, None, 0
        while caller is not None:  # the nearest that is known, above those of other code
            above = id(caller)
            base = base_of(above)
            if base is not None:
                number = base // scale
                by = functions[number]
                if caller.f_code is codes[by]:
                    parent, place = number, caller.f_lasti
                    line = lines[by].get(place, 0)
                    if not line:  # once for each place: it reads a table of the whole code from its start
                        line = lines[by][place] = caller.f_lineno
                    break
            elif above in folded and folded[above] is caller.f_code:
                break
            caller = caller.f_back
        if caller is not None and not sections[function]:
            times = 1
            if parent is not None:
                site = function * LINES + line
                made = calls.get(above)
                if made is None:
                    calls[above] = site
                else:
                    if isinstance(made, int):
                        made = calls[above] = {made: 1}
                    made[site] = times = made.get(site, 0) + 1
            if times > CALLS or parent is None:
                # a sort key, a comprehension: the same call over and over
                active.pop(address, None)
                folded[address] = frame.f_code
                dropped += 1
                return
        base = register_frame(function, frame, address)
        if len(events) < limit:
            for value in arguments:  # most often all are numbers
                if type(value) is not int and type(value) is not float:
                    arguments = snapshot_arguments(function, arguments)
                    break
            append(new_tuple(CallEvent, (base // scale, parent, line, arguments)))
            if first >= 0:
                append(base + first)

    def register_frame(function: int, frame: FrameType, address: int) -> int:
        """The base of a new frame. Its code is another than before where a decorator has changed it."""
        if frame.f_code is not codes[function]:
            codes[function], lines[function] = frame.f_code, {}
        # On one line: between two of them a trace function may run that enters, too.
        number, _ = len(functions), functions.append(function)  # type: ignore[func-returns-value]
        active[address] = base = scale * number
        return base

    def snapshot_arguments(function: int, arguments: tuple[object, ...]) -> tuple[object, ...]:
        """What is kept of the arguments of a call: numbers and short texts, else a glimpse."""
        seen = glimpsed.get(function, 0)
        glimpsed[function] = seen + 1
        return tuple(value if is_immediate(value) else snapshot_argument(value, seen) for value in arguments)

    def snapshot_argument(value: object, seen: int) -> model.Snapshot:
        """A glimpse of an argument; in later calls of its type alone, once for all while the type lives."""
        if seen < GLIMPSES:
            return glimpse(value, log.storages)
        kind = type(value)
        kept, alone = types.get(id(kind), (None, None))
        if alone is None or kept is None or kept() is not kind:
            alone = type_alone(value, f"only the first {GLIMPSES} calls were looked at")
            types[id(kind)] = weakref.ref(kind), alone
        return alone

    def loop(statement: int) -> None:
        address = id(_getframe(1))
        base = base_of(address)
        if base is not None and not paused:
            state = loops[statement][address] = LoopState(base, statement)
            around_it = within[statement]
            turns[statement].first = around_it is None or around_it.first
            append(state)
        else:  # an earlier frame may have had this address
            loops[statement].pop(address, None)

    def turn(statement: int, first: int) -> None:
        """An iteration begins; `first` is the statement that it begins with, -1 where a probe says so."""
        nonlocal dropped
        address = id(_getframe(1))
        state = loops[statement].get(address)
        if state is None or paused:
            began_with(first, address)
            return
        count = state.count
        state.count = count + 1
        if calls:  # each iteration may call anew
            calls.pop(address, None)
        if count >= all_turns:  # the iteration before the last one goes
            before, last = state.before, state.last
            gone = events[before:last] if log.printed else ()
            del events[before:last]
            dropped += last - before
            if gone:
                keep_output(gone, state)
            state.last = size = len(events)
        else:
            if count == 0:
                began_with(first, address)
                return
            size = len(events)
            if count >= first_turns:
                turns[statement].first = False
                state.before, state.last = state.last, size
        if size < limit:
            base = state.base
            append(base + statement)
            if first >= 0:
                append(base + first)
        elif first >= 0:
            dropped += 1
            log.full = True

    def keep_output(gone: Sequence[Event], state: LoopState) -> None:
        """What an iteration printed stays where the iteration goes: it is bounded for the whole section."""
        printed = [event for event in gone if type(event) is PieceEvent and event.piece.kind in PRINTED]
        if printed:
            rest = events[state.before :]
            del events[state.before :]
            for event in printed:
                add_output(events, event)
            state.before = len(events)
            events.extend(rest)

    def began_with(first: int, address: int) -> None:
        """The step of an iteration's first statement, where no step of its loop comes before."""
        nonlocal dropped
        if first < 0:
            return
        if first not in reached:
            reached.add(first)
            if first in noted:
                note(first)
        base = base_of(address)
        if len(events) >= limit:
            dropped += 1
            log.full = True
        elif base is not None:
            append(base + first)

    def local(statement: int, name: str, value: object) -> None:
        """A local name that the statement has touched."""
        if len(events) < limit:
            base = base_of(id(_getframe(1)))
            if base is not None:
                if not is_immediate(value):
                    looked[statement] = seen = looked.get(statement, 0) + 1
                    if seen > GLIMPSES:
                        return
                    value = glimpse(value, log.storages, LOCAL_NODES)
                append([base, name, value])

    def watch(number: int, value: object) -> None:
        nonlocal dropped
        address = id(_getframe(1))
        state = around[number].get(address)
        base = base_of(address) if state is None else state.base
        if base is None or paused:
            return
        kept, kind = value, type(value)
        if kind is not int and kind is not float and not is_immediate(value):
            asked = watches[number]
            axes = recorder.axes_for(base, asked.text, value)
            on_page = state is None and sections[functions[base // scale]]
            kept = snapshot(value, log.storages, axes=axes, bits=asked.unit == "bits", shows=on_page)
        turned = 0
        if state is not None:
            turned = state.count - 1
            series = state.series.get(number)
            if series is None or not turned % series.every:
                state.sample(number, kept)
        if len(events) > most and not sections[functions[base // scale]]:
            dropped += 1
            return
        append((base, number, kept, state, turned))
        if listener is not None and told[number] <= FIRST and heard[functions[base // scale]]:
            told[number] += 1  # in all, so that inner loops of long ones do not flood a terminal
            asked, frame = watches[number], base // scale
            line = recorder.numbering.line(functions[frame], asked.line)
            kind_of: Any = asked.kind
            named = model.Value(0, frame, line, asked.text, kind=kind_of, unit=asked.unit, turn=turned)
            listener.value(named, None if told[number] > FIRST else as_snapshot(kept))

    def clear(number: int) -> None:
        address = id(_getframe(1))
        base = base_of(address)
        if base is not None and not paused:
            state = around[number].get(address)
            append((base, number, None, state, state.count - 1 if state is not None else 0))

    def pause() -> None:
        nonlocal paused, limit, dropped, spare, resumed
        if not paused:
            resumed = limit, dropped, spare
            limit, spare = -1, {}
        paused += 1

    def resume() -> None:
        nonlocal paused, limit, dropped, spare
        if paused:  # else the section that just ended has recovered from the pause already
            paused -= 1
            if not paused:
                limit, dropped, spare = resumed

    def recover() -> None:
        while paused:
            resume()

    def begin(inner: Log) -> None:
        """`inner` is the section that runs from now on."""
        nonlocal log, events, append, reached, glimpsed, looked, limit, dropped, spare, resumed, began
        outer.append((log, limit, dropped, spare, resumed, paused))
        log.spans.append((began, len(functions)))
        began = len(functions)
        log, recorder.log = inner, inner
        events, append, reached = inner.events, inner.events.append, inner.reached
        glimpsed, looked = inner.glimpsed, inner.looked
        limit, dropped, spare = resumed = STEPS, 0, {}
        if paused:
            limit, spare = -1, {}

    def end() -> Log:
        """The section that ran ends, and the one around it goes on; the former's log."""
        nonlocal log, events, append, reached, glimpsed, looked, limit, dropped, spare, resumed, paused, began
        ended, log.ended = log, True
        ended.dropped = resumed[1] if paused else dropped
        ended.spans.append((began, len(functions)))
        began = len(functions)
        if outer:
            log, limit, dropped, spare, resumed, paused = outer.pop()
            events, append, reached = log.events, log.events.append, log.reached
            glimpsed, looked = log.glimpsed, log.looked
            recorder.log = log
        return ended

    return HotProbes(step, enter, loop, turn, local, watch, clear, pause, resume, recover, begin, end)
