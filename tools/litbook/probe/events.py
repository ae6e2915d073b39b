"""What a running section leaves, event by event, and the log that holds it until the section is made.

The events of one call of a section stand in one list, in order of execution, told apart by type. Those that
come with every line are of the types that Python makes quickest: a step is an `int` (a tuple takes up to
300 ns longer: the garbage collector looks at it), a value that was seen is the only plain tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from litbook.record import model
from litbook.record.limits import SPARK
from litbook.snapshot.storages import Storages

PRINTED: tuple[model.PieceKind, ...] = ("output", "stderr")  # kinds of pieces

Step = int
"""A statement that ran: the base of its frame, plus its index in `Lecture.statements`.

The base of a frame is its number times how many statements the lecture has.
"""

ValueEvent = tuple[int, int, object, "LoopState | None", int]
"""A watched expression: base of its frame, number of the watch, what is kept of its value, the loop around
it and how often that had turned. Of `@clear` nothing is kept."""


LocalEvent = list[Any]
"""A local name that a line has touched: base of its frame, name, what is kept of its value. The only list."""


class CallEvent(NamedTuple):
    """A call: the number of its frame, that of the caller's, the line that called, and the arguments."""

    number: int
    parent: int | None
    line: int
    arguments: Iterable[object]


@dataclass(slots=True)
class MissedWatch:
    """A watched expression that raised: base of its frame, number of the watch, and what it raised."""

    base: int
    watch: int
    error: str


@dataclass(slots=True)
class PieceEvent:
    """A piece of the author's, with the answer where it is a question. `piece.frame` is a frame's number."""

    piece: model.Piece
    answer: model.Snapshot | None = None


@dataclass
class ThinnedSamples:
    """Evenly spaced samples of a growing series: when there are too many, every second one goes."""

    every: int = 1
    at: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, index: int, value: object) -> None:
        if index % self.every:
            return
        self.at.append(index)
        self.values.append(value)
        if len(self.at) > SPARK:
            del self.at[1::2], self.values[1::2]
            self.every *= 2


@dataclass(slots=True, eq=False)  # it is a constant of code, which asks for its hash
class FirstIterations:
    """Whether a loop, with those around it, is in its first iterations, whose local names are looked at."""

    first: bool = True


@dataclass(slots=True)
class LoopState:
    """A loop that is running: how far it is, and where its last iterations start in the log's events.

    As an event it is the loop's beginning. `before` and `last` mean something once there are more than
    `FIRST` iterations.
    """

    base: int  # of its frame
    statement: int
    count: int = 0
    before: int = 0  # where the last iteration but one starts
    last: int = 0  # and the last one
    series: dict[int, ThinnedSamples] = field(default_factory=dict)

    def sample(self, watch: int, kept: object) -> None:
        """Add a number that was watched in the loop to its series, if it is one."""
        value: Any = kept
        if type(kept) is model.Tensor and kept.values and len(kept.values) == 1:
            value = kept.values[0]
        elif type(kept) not in (int, float, bool):
            return
        series = self.series.get(watch)
        if series is None:
            series = self.series[watch] = ThinnedSamples()
        series.add(self.count - 1, value)


def add_output(events: list[Event], printed: PieceEvent) -> None:
    """Add printed text: what one line printed in a row is one piece."""
    if events and isinstance(events[-1], PieceEvent):
        before, piece = events[-1].piece, printed.piece
        alike = (before.kind, before.frame, before.line) == (piece.kind, piece.frame, piece.line)
        if before.kind in PRINTED and alike:
            events[-1] = PieceEvent(replace(before, text=before.text + piece.text))
            return
    events.append(printed)


Event = Step | ValueEvent | LocalEvent | CallEvent | MissedWatch | PieceEvent | LoopState


@dataclass
class Log:
    """One call of a section: filled by the probes while it runs, and put aside when it ends.

    Frames are numbered through the whole run. Those of this call lie in `spans`: while a section inside it
    runs, that one has the next numbers. A frame from elsewhere, of a generator say, is one that the section
    is handed.
    """

    function: int  # of the section
    storages: Storages  # of the section, in all its calls
    reached: set[int] = field(default_factory=set)  # statements of the lecture that ran in here
    glimpsed: dict[int, int] = field(default_factory=dict)  # function -> calls whose arguments were looked at
    looked: dict[int, int] = field(default_factory=dict)  # statement -> local names that were looked at
    events: list[Event] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    dropped: int = 0
    printed: bool = False  # whether a line of it has
    ended: bool = False  # whether the call has
    full: bool = False  # whether a step came for which there was no room
    sizes: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)  # base -> name -> size, line
    axes: dict[tuple[int, str], tuple[tuple[str, ...], Callable[[], object], object]] = field(
        default_factory=dict
    )

    def owns(self, frame: int) -> bool:
        """Whether the frame was entered in here."""
        return any(first <= frame < end for first, end in self.spans)
