"""What one section added to a recorder, cut out so that it can be put into another.

A fragment outlives its run: it may be put into the recorder of a later run, of a lecture whose other
sections have moved or changed, or into that of another process. So it holds no number of the whole lecture.
Statements, watches and claims are counted within their function, lines from its first line, frames and
storages from the section's first; `put` turns them into those of the lecture and the run at hand. Nothing of
a record is numbered here, and nothing compared: `Recorder.finish` makes the record of what was put in as of
what was run.

    events    as the recorder keeps them, with the section's own numbers
    tape      what the listener was told, to be told again

Functions are named by their qualified name, so the texts of all functions that a fragment mentions must be
what they were: `depends` sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from litbook import trace
from litbook.recorder import _FRAME, _LOOP, _PIECE, _VALUE, Listener, Recorder
from litbook.recorder import _LoopState as LoopState
from litbook.recorder import _Thinned as Thinned
from litbook.recorder import _Verdict as Verdict
from litbook.source import Lecture

Key = tuple[str, int]  # qualified name of a function, and which of that name
At = tuple[int, int]  # index into `functions`, and a number within that function


class Tag:
    """The first item of an event that is no step."""

    FRAME, VALUE, LOOP, PIECE = _FRAME, _VALUE, _LOOP, _PIECE


class NotPortable(Exception):
    """What the section did refers to what is outside of it: it cannot be cut out."""


@dataclass
class Fragment:
    """One section's share of a recorder. Every `int` in `events` and `tape` is an index into a table here."""

    functions: list[Key] = field(default_factory=list)
    statements: list[At] = field(default_factory=list)
    watches: list[At] = field(default_factory=list)
    claims: list[At] = field(default_factory=list)
    lines: list[At] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)  # the function of each frame
    entered: list[int] = field(default_factory=list)  # functions of which no frame was kept
    loops: list[tuple[int, int, int, dict[int, Thinned]]] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    errors: list[trace.Error] = field(default_factory=list)
    tape: list[tuple[Any, ...]] = field(default_factory=list)
    dropped: int = 0
    storages: int = 0  # how many numbers it took
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing went wrong in it."""
        return not self.errors and not any(verdict.failed for verdict in self.verdicts.values())


class Tape:
    """A listener that keeps what it hears and passes it on."""

    def __init__(self, listener: Listener | None) -> None:
        self.listener = listener
        self.heard: list[tuple[Any, ...]] = []

    def __getattr__(self, event: str) -> Callable[..., None]:
        def hear(*told: Any) -> None:
            self.heard.append((event, *told))
            if self.listener is not None:
                getattr(self.listener, event)(*told)

        self.__dict__[event] = hear
        return hear


class Places:
    """Where everything of one lecture stands, counted within its functions; and back."""

    def __init__(self, lecture: Lecture) -> None:
        self.lecture = lecture
        self.keys = list(_keys(lecture.functions))
        self.function_of = {key: index for index, key in enumerate(self.keys)}
        self.statements = _counted([s.function for s in lecture.statements])
        self.claims = _counted([lecture.statements[c.statement].function for c in lecture.claims])
        self._innermost = _innermost(lecture.functions)
        self.watches = _counted([self._innermost[w.line] for w in lecture.watches])
        self.statement_at = {at: number for number, at in enumerate(self.statements)}
        self.claim_at = {at: number for number, at in enumerate(self.claims)}
        self.watch_at = {at: number for number, at in enumerate(self.watches)}

    def line(self, line: int) -> At:
        """The function that the line stands in, and how far below its first line."""
        function = self._innermost.get(line, 0)
        return function, line - self.lecture.functions[function].first


def _keys(functions: list[trace.Function]) -> Iterator[Key]:
    """Qualified names; functions come in the order of their text, those inside of others after them."""
    around: list[tuple[int, str]] = []
    seen: dict[str, int] = {}
    for function in functions:
        while around and around[-1][0] < function.first:
            around.pop()
        name = ".".join([*(outer for _, outer in around), function.name])
        if function.kind != "module":
            around.append((function.last, function.name))
        seen[name] = seen.get(name, -1) + 1
        yield name, seen[name]


def _innermost(functions: list[trace.Function]) -> dict[int, int]:
    """Line -> the innermost function around it. Inner functions come after the outer ones."""
    return {line: index for index, f in enumerate(functions) for line in range(f.first, f.last + 1)}


def _counted(owners: list[int]) -> list[At]:
    """Owner of each thing -> (owner, how many of the owner's came before)."""
    seen: dict[int, int] = {}
    found = []
    for owner in owners:
        number = seen.get(owner, 0)
        seen[owner] = number + 1
        found.append((owner, number))
    return found


# ---------------------------------------------------------------------------- cutting out


class Mark:
    """The state of a recorder before a section."""

    def __init__(self, recorder: Recorder, tape: Tape) -> None:
        self.recorder, self.tape = recorder, tape
        self.events = len(recorder.events)
        self.frames = len(recorder.function_of_frame)
        self.errors = len(recorder.errors)
        self.heard = len(tape.heard)
        self.dropped = recorder.dropped
        self.storages = recorder.storages.taken
        self.verdicts = {number: verdict.count for number, verdict in recorder.verdicts.items()}
        self.reached = bytes(recorder.reached)
        recorder.reached[:] = bytes(len(self.reached))  # so that what this section reaches can be told

    def close(self) -> bytes:
        """Give the recorder back what others had reached. What this section reached comes back."""
        mine = bytes(self.recorder.reached)
        if any(self.reached):
            both = int.from_bytes(mine, "little") | int.from_bytes(self.reached, "little")
            self.recorder.reached[:] = both.to_bytes(len(mine), "little")
        return mine

    def forget(self) -> None:
        """What was heard so far is needed no more."""
        del self.tape.heard[self.heard :]


def cut(mark: Mark, mine: bytes, places: Places) -> Fragment:
    """What the recorder saw since `mark`. Raises `NotPortable` where that reaches outside of the section."""
    return _Cutter(mark, places).cut(mine)


class _Table:
    """Numbers of the lecture -> indices into a table of the fragment."""

    def __init__(self, into: list[At], at: Callable[[int], At], function: Callable[[int], int]) -> None:
        self.into, self.at, self.function = into, at, function
        self.known: dict[int, int] = {}

    def __call__(self, number: int) -> int:
        if number not in self.known:
            owner, within = self.at(number)
            if owner == 0:
                raise NotPortable("it refers to the module's own lines")
            self.known[number] = len(self.into)
            self.into.append((self.function(owner), within))
        return self.known[number]


class _Cutter:
    def __init__(self, mark: Mark, places: Places) -> None:
        self.mark, self.recorder, self.places = mark, mark.recorder, places
        self.made = made = Fragment()
        self._functions: dict[int, int] = {}
        self._frames: dict[int, int] = {}
        self._loops: dict[int, int] = {}
        self.statement = _Table(made.statements, places.statements.__getitem__, self.function)
        self.watch = _Table(made.watches, places.watches.__getitem__, self.function)
        self.claim = _Table(made.claims, places.claims.__getitem__, self.function)
        self.line = _Table(made.lines, places.line, self.function)
        self.moved = Moved(-mark.storages)

    def cut(self, mine: bytes) -> Fragment:
        recorder, mark, made = self.recorder, self.mark, self.made
        for event in recorder.events[mark.events :]:
            made.events.extend(self.event(event))
        made.entered = [
            self.function(f)
            for f in sorted(set(recorder.function_of_frame[mark.frames :]))
            if self._functions.get(f) not in made.frames
        ]
        made.reached = [self.statement(number) for number, ran in enumerate(mine) if ran]
        for number, verdict in recorder.verdicts.items():
            if mark.verdicts.get(number) == verdict.count:
                continue
            if number in mark.verdicts:
                raise NotPortable("a claim of another section ran in it")
            operands = [self.moved(operand) if operand else None for operand in verdict.operands]
            made.verdicts[self.claim(number)] = replace(verdict, operands=operands)
        made.errors = [self.error(error) for error in recorder.errors[mark.errors :]]
        made.tape = [self.told(*heard) for heard in mark.tape.heard[mark.heard :]]
        made.dropped = recorder.dropped - mark.dropped
        made.storages = recorder.storages.taken - mark.storages
        if self.moved.outside:
            raise NotPortable("it shows memory that another section has shown")
        return made

    def function(self, number: int) -> int:
        if number not in self._functions:
            self._functions[number] = len(self.made.functions)
            self.made.functions.append(self.places.keys[number])
        return self._functions[number]

    def event(self, event: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        match event:
            case (Tag.FRAME, number, parent, line, *rest):
                if not self._frames:  # the section's own: called from outside
                    parent, line = None, 0
                elif parent not in self._frames:
                    raise NotPortable("it called through a function that another section had entered")
                else:
                    parent, line = self._frames[parent], self.line(line)
                self._frames[number] = len(self.made.frames)
                self.made.frames.append(self.function(self.recorder.function_of_frame[number]))
                yield (Tag.FRAME, self._frames[number], parent, line, *self._given(rest))
            case (Tag.LOOP, state):
                frame = self.frame(state.frame)
                if frame is not None:
                    self._loops[id(state)] = len(self.made.loops)
                    series = {self.watch(number): thinned for number, thinned in state.series.items()}
                    self.made.loops.append((frame, self.statement(state.statement), state.count, series))
                    yield (Tag.LOOP, self._loops[id(state)])
            case (Tag.PIECE, piece, *answer):
                if self.frame(piece.frame) is not None:
                    yield (Tag.PIECE, self.piece(piece), *(self.moved(shown) for shown in answer))
            case (Tag.VALUE, frame, number, kept, state, turn, error):
                if self.frame(frame) is not None:
                    loop = self._loops.get(id(state)) if state is not None else None
                    shown = self.moved(kept)
                    yield (Tag.VALUE, self.frame(frame), self.watch(number), shown, loop, turn, error)
            case (int(frame), int(statement)):
                if self.frame(frame) is not None:
                    yield (self.frame(frame), self.statement(statement))
            case _:
                raise NotPortable(f"an event of an unknown kind: {event[0]!r}")

    def _given(self, rest: list[Any]) -> list[Any]:
        """The values of a call's arguments."""
        return [[self.moved(value) for value in values] for values in rest]

    def frame(self, number: int) -> int | None:
        """A frame of this section; None for one that was folded away."""
        if number < self.mark.frames:
            raise NotPortable("something in it belongs to a call from before it")
        return self._frames.get(number)

    def piece(self, piece: trace.Piece) -> trace.Piece:
        frame = self.frame(piece.frame)
        return replace(piece, frame=0 if frame is None else frame, line=self.line(piece.line))

    def error(self, error: trace.Error) -> trace.Error:
        here = self.recorder.lecture.path
        own = tuple((at, self.line(n) if at == here else n, name, text) for at, n, name, text in error.trace)
        return replace(error, function=self.function(error.function), line=self.line(error.line), trace=own)

    def told(self, event: str, *told: Any) -> tuple[Any, ...]:
        """What the listener heard. Of what it is told it needs no frame and no step."""
        match event, told:
            case "line", (statement,):
                return event, self.statement(statement)
            case "piece", (piece,):
                return event, self.piece(piece)
            case "question", (piece, answer):
                return event, self.piece(piece), self.moved(answer)
            case "value", (value, shown):
                return event, replace(value, frame=0, line=self.line(value.line)), self.moved(shown)
            case "claim", (claim, snapshots):
                moved = replace(
                    claim,
                    function=self.function(claim.function),
                    line=self.line(claim.line),
                    last=self.line(claim.last),
                )
                return event, moved, [self.moved(shown) for shown in snapshots]
            case "error", (error,):
                return event, self.error(error)
        raise NotPortable(f"the listener heard {event}")


class Moved:
    """Snapshots with their storage numbers moved; the same snapshot comes back the same."""

    def __init__(self, by: int) -> None:
        self.by = by
        self.outside = False  # whether a number belonged to an earlier section
        self._known: dict[int, tuple[Any, Any]] = {}

    def __call__(self, shown: Any) -> Any:
        match shown:
            case trace.Tensor() if shown.storage is None:
                return shown
            case trace.Tensor() | trace.Sequence() | trace.Mapping():
                if id(shown) not in self._known:
                    self._known[id(shown)] = shown, self._moved(shown)
                return self._known[id(shown)][1]
        return shown

    def _moved(self, shown: Any) -> Any:
        if isinstance(shown, trace.Tensor):
            number = (shown.storage or 0) + self.by
            self.outside = self.outside or number <= 0
            return replace(shown, storage=number)
        items = tuple(map(self, shown.items))
        if isinstance(shown, trace.Mapping):
            keys = tuple(map(self, shown.keys))
            same = all(a is b for a, b in zip([*keys, *items], [*shown.keys, *shown.items], strict=True))
            return shown if same else replace(shown, keys=keys, items=items)
        same = all(a is b for a, b in zip(items, shown.items, strict=True))
        return shown if same else replace(shown, items=items)


# ---------------------------------------------------------------------------- putting in


def put(
    fragment: Fragment, recorder: Recorder, places: Places, parent: int | None, line: int, tape: Tape | None
) -> None:
    """Add the fragment to the recorder, as a call from `line` of the frame `parent`; tell the listener.

    Raises `KeyError` for a fragment that mentions what the lecture no longer has.
    """
    _Putter(fragment, recorder, places).put(parent, line, tape)


class _Putter:
    def __init__(self, fragment: Fragment, recorder: Recorder, places: Places) -> None:
        self.fragment, self.recorder = fragment, recorder
        self.functions = [places.function_of[key] for key in fragment.functions]
        self.statements = [places.statement_at[self.functions[f], n] for f, n in fragment.statements]
        self.watches = [places.watch_at[self.functions[f], n] for f, n in fragment.watches]
        self.claims = [places.claim_at[self.functions[f], n] for f, n in fragment.claims]
        functions = places.lecture.functions
        self.lines = [functions[self.functions[f]].first + n for f, n in fragment.lines]
        self.first = len(recorder.function_of_frame)
        self.moved = Moved(recorder.storages.taken)
        self.loops = [
            LoopState(
                self.first + frame,
                self.statements[statement],
                count,
                series={self.watches[number]: thinned for number, thinned in series.items()},
            )
            for frame, statement, count, series in fragment.loops
        ]

    def put(self, parent: int | None, line: int, tape: Tape | None) -> None:
        fragment, recorder = self.fragment, self.recorder
        recorder.function_of_frame += [self.functions[f] for f in [*fragment.frames, *fragment.entered]]
        recorder.events += [self.event(event, parent, line) for event in fragment.events]
        for number in fragment.reached:
            recorder.reached[self.statements[number]] = 1
        for number, verdict in fragment.verdicts.items():
            operands = [self.moved(operand) if operand else None for operand in verdict.operands]
            recorder.verdicts[self.claims[number]] = replace(verdict, operands=operands)
        recorder.errors += [self.error(error) for error in fragment.errors]
        recorder.dropped += fragment.dropped
        recorder.storages.taken += fragment.storages
        if tape is not None and tape.listener is not None:
            for event, *told in fragment.tape:
                getattr(tape.listener, event)(*self.told(event, told))

    def event(self, event: tuple[Any, ...], parent: int | None, line: int) -> tuple[Any, ...]:
        match event:
            case (Tag.FRAME, number, of, at, *rest):
                if of is not None:
                    parent, line = self.first + of, self.lines[at]
                given = [[self.moved(value) for value in values] for values in rest]
                return (Tag.FRAME, self.first + number, parent, line, *given)
            case (Tag.LOOP, loop):
                return (Tag.LOOP, self.loops[loop])
            case (Tag.PIECE, piece, *answer):
                return (Tag.PIECE, self.piece(piece), *(self.moved(shown) for shown in answer))
            case (Tag.VALUE, frame, number, kept, loop, turn, error):
                state = None if loop is None else self.loops[loop]
                shown = self.moved(kept)
                return (Tag.VALUE, self.first + frame, self.watches[number], shown, state, turn, error)
        frame, statement = event
        return (self.first + frame, self.statements[statement])

    def piece(self, piece: trace.Piece) -> trace.Piece:
        return replace(piece, frame=self.first + piece.frame, line=self.lines[piece.line])

    def error(self, error: trace.Error) -> trace.Error:
        here = self.recorder.lecture.path
        own = tuple((at, self.lines[n] if at == here else n, name, text) for at, n, name, text in error.trace)
        function, line = self.functions[error.function], self.lines[error.line]
        return replace(error, function=function, line=line, trace=own)

    def told(self, event: str, told: list[Any]) -> list[Any]:
        match event, told:
            case "line", [statement]:
                return [self.statements[statement]]
            case "piece" | "question", [piece, *answer]:
                return [self.piece(piece), *answer]
            case "value", [value, shown]:
                return [replace(value, line=self.lines[value.line]), shown]
            case "claim", [claim, snapshots]:
                function = self.functions[claim.function]
                line, last = self.lines[claim.line], self.lines[claim.last]
                return [replace(claim, function=function, line=line, last=last), snapshots]
            case "error", [error]:
                return [self.error(error)]
        return told
