"""What a running section leaves, event by event, and the log that holds it until the section is made.

The events of one call of a section stand in one list, in order of execution, told apart by type. Those that
come with every line are of the types that Python makes quickest: a step is an `int` (a tuple takes up to
300 ns longer: the garbage collector looks at it), a value that was seen is the only plain tuple. This module
also says, as protocols, who is told of a run, and what the parts of a recorder know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

from litbook.errors import Place
from litbook.probe.numbering import Numbering
from litbook.record import model
from litbook.record.limits import SPARK
from litbook.snapshot.storages import Storages
from litbook.text.lecture import Lecture

Step = int
"""A statement that ran: the base of its frame, plus its index in `Lecture.statements`.

The base of a frame is its number times how many statements the lecture has.
"""

Seen = tuple[int, int, object, "LoopState | None", int]
"""A watched expression: base of its frame, number of the watch, what is kept of its value, the loop around
it and how often that had turned. Of `@clear` nothing is kept."""


class Entered(NamedTuple):
    """A call: the number of its frame, that of the caller's, the line that called, and the arguments."""

    number: int
    parent: int | None
    line: int
    arguments: Iterable[object]


@dataclass(slots=True)
class Missed:
    """A watched expression that raised: base of its frame, number of the watch, and what it raised."""

    base: int
    watch: int
    error: str


@dataclass(slots=True)
class Handed:
    """A piece of the author's, with the answer where it is a question. `piece.frame` is a frame's number."""

    piece: model.Piece
    answer: model.Snapshot | None = None


@dataclass
class Thinned:
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
    series: dict[int, Thinned] = field(default_factory=dict)

    def sample(self, watch: int, kept: object) -> None:
        """Add a number that was watched in the loop to its series, if it is one."""
        value: Any = kept
        if type(kept) is model.Tensor and kept.values and len(kept.values) == 1:
            value = kept.values[0]
        elif type(kept) not in (int, float, bool):
            return
        series = self.series.get(watch)
        if series is None:
            series = self.series[watch] = Thinned()
        series.add(self.count - 1, value)


Event = Step | Seen | Entered | Missed | Handed | LoopState


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
    events: list[Event] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    dropped: int = 0
    sizes: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)  # base -> name -> size, line
    axes: dict[tuple[int, str], tuple[tuple[str, ...], Callable[[], object]]] = field(default_factory=dict)

    def owns(self, frame: int) -> bool:
        """Whether the frame was entered in here."""
        return any(first <= frame < end for first, end in self.spans)


class Listener(Protocol):
    """Who wants to hear of a run while it goes on: the terminal."""

    def begin(self, lecture: Lecture, environment: model.Environment) -> None: ...
    def section(self, function: int) -> None: ...
    def skipped(self, function: int, device: str) -> None: ...
    def line(self, statement: int) -> None: ...
    def word(self, statement: int, whole: bool) -> None: ...
    def piece(self, piece: model.Piece) -> None: ...
    def question(self, piece: model.Piece, answer: model.Snapshot) -> None: ...
    def value(self, value: model.Value, shown: model.Snapshot | None) -> None: ...
    def claim(self, claim: model.Claim, snapshots: list[model.Snapshot]) -> None: ...
    def error(self, error: model.Error, place: Place) -> None: ...
    def end(self) -> None: ...


class Recording(Protocol):
    """A recorder, as its parts know it: the lecture, what is running, and where an error is kept."""

    lecture: Lecture
    numbering: Numbering
    listener: Listener | None
    log: Log  # of the section that runs
    active: dict[int, int]  # id of a live frame object -> base of its frame
    functions: list[int]  # frame -> its function
    codes: list[CodeType | None]  # per function, its code

    def site(self, caller: FrameType | None) -> tuple[int | None, int]:
        """The frame of the running section, and the line of the file where its statement began."""

    def axes_for(self, base: int, text: str, value: object) -> tuple[str, ...] | None:
        """The names of the axes of the value called `text`, while it is still the annotated one."""

    def error(
        self, function: int, kind: Any, line: int, message: str, trace: tuple[tuple[str, int, str, str], ...]
    ) -> model.Error:
        """An error of a section, which surfaced on a line of its file."""

    def keep(self, function: int, error: model.Error) -> None:
        """Keep an error of a section, and tell who listens."""
