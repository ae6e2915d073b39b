"""The events of a section's calls -> its entry in the record.

In go the logs that the probes filled, one for each call of the section; out comes a `model.Section`, whole in
itself: frames, loops and snapshots get numbers of their own, as folding left gaps, and lines are counted from
the first of what they stand in. It does not know how anything was seen.

While the lecture runs a log is only put aside: a lecture may leave a recursion limit, or builtins, with which
nothing can be made. Everything is made when the run is over and the process is as it was.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from litbook.lecture.claims import is_address
from litbook.probe.events import CallEvent, Event, Log, LoopState, MissedWatch, PieceEvent, ValueEvent
from litbook.probe.messages import cut_message
from litbook.probe.record_keys import RecordKeys
from litbook.python.scopes import reads
from litbook.record import model
from litbook.record.limits import CALLS, FIRST, LAST, WORDINGS
from litbook.snapshot.snapshot import as_snapshot
from litbook.snapshot.storages import Storages


@dataclass(slots=True)
class JudgedClaim:
    """What a claim came to. `operands` holds snapshots; None for an operand that was never evaluated."""

    count: int = 0
    failed: bool = False
    caption: str = ""
    why: str = ""
    nothing: str = ""
    operands: list[model.Snapshot | None] = field(default_factory=list)


@dataclass
class SnapshotTable:
    """Snapshots of one section, each once."""

    snapshots: list[model.Snapshot] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)

    def keep(self, shown: model.Snapshot) -> int:
        """Where the snapshot stands now. `repr` tells -0.0 from 0.0, `==` does not."""
        key = repr(shown)
        if key not in self._known:
            self._known[key] = len(self.snapshots)
            self.snapshots.append(shown)
        return self._known[key]


class SectionBuilder:
    """One section while it is made: what its calls so far have left."""

    def __init__(self, numbering: RecordKeys, functions: list[int], function: int) -> None:
        self.numbering = numbering
        self.lecture = numbering.lecture
        self.functions = functions  # of every frame of the run
        self.function = function
        self.storages = Storages()
        self.judged: dict[int, JudgedClaim] = {}
        self.errors: list[model.Error] = []
        self.missed: set[tuple[int, str]] = set()  # watches that raised, with what they said
        self.printed = Counter[model.PieceKind]()  # characters
        self.seconds = 0.0
        self.reached: set[int] = set()  # statements of the lecture
        self.called: list[int] = []  # functions, in the order of `Section.calls`
        self._logs: list[Log] = []  # of its calls
        self._entered: set[int] = set()  # functions, in calls of which no log is kept
        self._dropped = 0
        self._full = False
        self._kept = SnapshotTable()
        self._frames: list[model.Frame] = []
        self._steps: list[tuple[int, int]] = []
        self._pieces: list[model.Piece] = []
        self._values: list[model.Value] = []
        self._locals: list[model.Local] = []
        self._local: dict[tuple[int, str], int] = {}  # (frame, name) -> the snapshot that it has now
        # frame -> the names that its last step touched, and when; whether that one is a loop
        self._touched: dict[int, tuple[dict[str, int], bool]] = {}
        self._loops: list[LoopState] = []
        self._wordings: dict[model.Wording, None] = {}
        self._at = Counter[tuple[str, int, int, str]]()  # the place of a word -> its wordings
        self._frame_at: dict[int, int] = {}  # number of a frame of the run -> its place here
        self._loop_at: dict[int, int] = {}  # by id of its state, which is kept

    def say(self, said: model.Wording) -> None:
        """Take a text for readers, once; of those of one word the first."""
        self._at[said.key, said.line, said.column, said.word] += said not in self._wordings
        if self._at[said.key, said.line, said.column, said.word] <= WORDINGS:
            self._wordings[said] = None

    def ask(self, piece: model.Piece, answer: model.Snapshot) -> None:
        """Take a question that is put though the section does not run."""
        self._pieces.append(replace(piece, frame=-1, answer=self._kept.keep(answer)))

    # -- one call

    def put(self, log: Log) -> None:
        """A call has ended. Of a section that is called again and again the first calls are kept."""
        log.axes.clear()  # they may keep values alive
        log.glimpsed.clear()
        log.looked.clear()
        if len(self._logs) < CALLS:
            self._logs.append(log)
            return
        self.reached |= log.reached
        self._entered.update(*(self.functions[first:end] for first, end in log.spans))
        self._dropped += log.dropped + sum(1 for event in log.events if type(event) is int)

    def all_reached(self) -> set[int]:
        """The statements of the lecture that ran in it."""
        return self.reached.union(*(log.reached for log in self._logs))

    def _take(self, log: Log, event: Event) -> None:
        """One event of a call."""
        match event:
            case int():
                number, statement = divmod(event, self.numbering.scale)
                frame = self._frame_of(log, number)
                if frame is not None:
                    self._forget_locals(frame, statement)
                    self._steps.append((frame, self.numbering.within[statement]))
            case CallEvent(number, parent, line, values):
                function, caller = self.functions[number], None
                if parent is not None:
                    caller = self._frame_of(log, parent)
                    line = self.numbering.line(self.functions[parent], line)
                names = self.numbering.parameters.get(function, [])
                shots = (self._kept.keep(as_snapshot(value)) for value in values)
                arguments = tuple(zip(names, shots, strict=True))
                self._frame_at[number] = len(self._frames)
                line = 0 if caller is None else line
                self._frames.append(model.Frame(self._number_of(function), caller, line, arguments))
            case LoopState():
                if self._frame_of(log, event.base // self.numbering.scale) is not None:
                    self._loop_at[id(event)] = len(self._loops)
                    self._loops.append(event)
            case PieceEvent():
                frame = self._own_frame() if event.piece.frame < 0 else self._frame_of(log, event.piece.frame)
                if frame is not None:
                    answer = None if event.answer is None else self._kept.keep(event.answer)
                    self._pieces.append(replace(event.piece, frame=frame, step=self._step, answer=answer))
            case list():
                self._take_local(log, *event)
            case MissedWatch():
                self._take_value(log, (event.base, event.watch, None, None, 0), event.error)
            case _:
                self._take_value(log, event)

    @property
    def _step(self) -> int:
        return max(0, len(self._steps) - 1)

    # -- frames

    def _number_of(self, function: int) -> int:
        """What `Frame.called` says of a function: 0 for the section itself."""
        if function == self.function:
            return 0
        if function not in self.called:
            self.called.append(function)
        return self.called.index(function) + 1

    def _frame_of(self, log: Log, number: int) -> int | None:
        """Where a frame of the run stands here; None for one of a call that was folded.

        One that another section has entered, of a generator say, is entered here anew, called by what
        ran last.
        """
        place = self._frame_at.get(number)
        if place is not None or log.owns(number):
            return place
        function = self.functions[number]
        if self.numbering.is_section[function]:
            return None
        parent, line = 0 if self._frames else None, 0
        if self._steps:  # the frame of the last one here, and its line
            parent, statement = self._steps[-1]
            called = self._frames[parent].called
            caller = self.called[called - 1] if called else self.function
            first = self.lecture.statements[self.numbering.statements_of[caller][statement]].first
            line = self.numbering.line(caller, first)
        self._frame_at[number] = len(self._frames)
        self._frames.append(model.Frame(self._number_of(function), parent, line))
        return self._frame_at[number]

    def _own_frame(self) -> int:
        """A frame of the section itself, for what it was handed while none was recorded."""
        frame = next((i for i, frame in enumerate(self._frames) if not frame.called), None)
        if frame is None:
            frame = len(self._frames)
            self._frames.append(model.Frame())
        return frame

    # -- values

    def _take_value(self, log: Log, seen: ValueEvent, error: str = "") -> None:
        base, watch, kept, loop, turn = seen
        number = base // self.numbering.scale
        frame = self._frame_of(log, number)
        if frame is None:
            return
        asked = self.lecture.watches[watch]
        shown = asked.kind != "clear" and not error
        self._values.append(
            model.Value(
                step=self._step,
                frame=frame,
                line=self.numbering.line(self.functions[number], asked.line),
                text=asked.text,
                value=self._kept.keep(as_snapshot(kept)) if shown else None,
                reads=() if isinstance(asked.node, ast.Name) else tuple(sorted(reads(asked.node))),
                kind=asked.kind,  # type: ignore[arg-type]  # one of the three
                unit=asked.unit,
                error=cut_message(error),
                loop=self._loop_at.get(id(loop)) if loop is not None else None,
                turn=turn,
                address=is_address(asked.node),
            )
        )

    def _forget_locals(self, frame: int, statement: int) -> None:
        """Before a step: of what the frame's last one touched, names that nobody looked at are not known."""
        names, header = self._touched.get(frame, ({}, False))
        if not header:  # what a loop gives its names is seen after the first statement inside it
            for name, step in names.items():
                if self._local.pop((frame, name), None) is not None:
                    self._locals.append(model.Local(step, frame, name))
            names = {}
        touches = dict.fromkeys(self.numbering.touched_names(statement), len(self._steps))
        if names or touches or header:
            self._touched[frame] = names | touches, statement in self.numbering.loop_around

    def _take_local(self, log: Log, base: int, name: str, value: object) -> None:
        """A local name that a line has touched: kept where it is not what it was, or might have become so."""
        frame = self._frame_of(log, base // self.numbering.scale)
        if frame is None:
            return
        shown = self._kept.keep(as_snapshot(value))
        self._touched.get(frame, ({}, False))[0].pop(name, None)
        constant = model.is_constant(self._kept.snapshots[shown])
        if self._local.get((frame, name)) != shown or not constant:
            self._local[frame, name] = shown
            self._locals.append(model.Local(self._step, frame, name, shown))

    # -- the whole

    def section(self, missing: str) -> model.Section:
        """The entry. `missing` names the device that kept the section from running, or is empty."""
        # All that the logs hold, once.
        self.reached = self.all_reached()
        for log in self._logs:
            self._dropped += log.dropped
            self._full |= log.full
            for event in log.events:
                self._take(log, event)
            for first, end in log.spans:
                self._entered.update(self.functions[first:end])
        self._logs.clear()
        for function in sorted(self._entered):
            self._number_of(function)
        numbering, spec = self.numbering, self.lecture.functions[self.function]
        loops, series = list[model.Loop](), list[model.Series]()
        for place, state in enumerate(self._loops):
            number, statement = state.base // numbering.scale, self.lecture.statements[state.statement]
            kept = *range(min(FIRST, state.count)), *range(max(FIRST, state.count - LAST), state.count)
            line = numbering.line(statement.function, statement.first)
            is_while = isinstance(numbering.node_of[state.statement], ast.While)
            kind: Literal["for", "while"] = "while" if is_while else "for"
            loops.append(model.Loop(self._frame_at[number], line, state.count, kept, kind))
            for watch, thinned in state.series.items() if state.count > 1 else ():
                asked = self.lecture.watches[watch]
                line = numbering.line(self.functions[number], asked.line)
                values = (model.number(v) if not isinstance(v, str) else v for v in thinned.values)
                series.append(model.Series(place, line, asked.text, tuple(thinned.at), tuple(values)))
        numbers, keep = numbering.claims.get(self.function, ()), self._kept.keep
        claims = [claim_of(numbering, number, self.judged.get(number), missing, keep) for number in numbers]
        entered, digests = dict(enumerate(self.called, 1)), numbering.digests[numbering.keys[self.function]]
        if any(not frame.called for frame in self._frames):
            entered = {0: self.function, **entered}
        return model.Section(
            key=numbering.keys[self.function],
            kind=spec.kind,  # type: ignore[arg-type]  # never that of a helper or class
            file=spec.file,
            first=spec.first,
            lines=spec.last - spec.first + 1,
            name=spec.name,
            heading=spec.heading,
            parent=numbering.keys[spec.parent] if spec.parent is not None else "",
            body=numbering.line(self.function, spec.body) if spec.body else 0,
            requires=spec.requires,
            aside=spec.aside,
            hidden=spec.hidden,
            digest=digests.text,
            depends=digests.all,
            seconds=round(self.seconds, 4),
            statements=numbering.statements(self.function, self.reached),
            calls=tuple(numbering.keys[function] for function in self.called),
            frames=tuple(self._frames),
            steps=tuple(self._steps),
            dropped=self._dropped,
            full=self._full,
            unreached=numbering.unreached_statements(entered, self.reached),
            pieces=tuple(self._pieces),
            values=tuple(self._values),
            locals=tuple(self._locals),
            loops=tuple(loops),
            series=tuple(series),
            claims=tuple(claims),
            errors=tuple(self.errors),
            wordings=tuple(self._wordings),
            snapshots=tuple(self._kept.snapshots),
        )


def claim_of(
    numbering: RecordKeys,
    number: int,
    judged: JudgedClaim | None,
    missing: str,
    keep: Callable[[model.Snapshot], int],
) -> model.Claim:
    """A claim with its verdict. `keep` takes each operand's snapshot and says where it went."""
    asked = numbering.lecture.claims[number]
    statement = numbering.lecture.statements[asked.statement]
    judged = judged or JudgedClaim()
    seen = [*judged.operands, *[None] * len(asked.operand_texts)]
    kind: model.Verdict = "not-reached"
    if judged.count:
        kind = "fails" if judged.failed else "holds"
    elif missing:
        kind = "needs-device"
    return model.Claim(
        line=numbering.line(statement.function, statement.first),
        last=numbering.line(statement.function, statement.end),
        text=asked.text,
        caption=judged.caption or asked.caption,
        verdict=kind,
        kind=asked.kind,  # type: ignore[arg-type]  # "assert" or "axes"
        count=judged.count,
        form=asked.form,
        measured=asked.measured,
        zero=asked.zero,
        shown=asked.shown,
        nothing=judged.nothing if kind == "holds" else "",
        operands=tuple(
            model.Operand(text, None if shown is None else keep(shown), is_address(node))
            for text, shown, node in zip(asked.operand_texts, seen, asked.operands, strict=False)
        ),
        why=judged.why or (f"needs {missing}" if missing else ""),
    )
