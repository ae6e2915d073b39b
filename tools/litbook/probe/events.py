"""What a running section leaves, event by event, and the log that holds it until the section is made.

The events of one call of a section stand in one list, in order of execution. What comes with every line is a
plain tuple, told apart by its length, because a named one takes 90 ns longer to make: a step has two places,
a frame four, a value six. `Entered` and `Seen` name the places of the last two for whoever takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from litbook.record import model
from litbook.record.limits import SPARK
from litbook.snapshot.storages import Storages

Step = tuple[int, int]
"""A statement that ran: number of its frame, index in `Lecture.statements`."""


class Entered(NamedTuple):
    """A call: the number of its frame, that of the caller's, the line that called, and the arguments."""

    number: int
    parent: int | None
    line: int
    arguments: Iterable[object]


class Seen(NamedTuple):
    """A watched expression: what is kept of its value, or why there is none."""

    frame: int
    watch: int
    kept: object
    loop: LoopState | None
    turn: int
    error: str


class Begun(NamedTuple):
    """A loop that begins."""

    loop: LoopState


class Handed(NamedTuple):
    """A piece of the author's, with the answer where it is a question. `piece.frame` is a frame's number."""

    piece: model.Piece
    answer: model.Snapshot | None = None


Event = tuple[Any, ...]  # Step | Entered | Seen | Begun | Handed, the first three as plain tuples


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


@dataclass
class LoopState:
    """A loop that is running: how far it is, and where its last iterations start in the log's events.

    `before` and `last` mean something once there are more than `FIRST` iterations.
    """

    frame: int
    statement: int
    count: int = 0
    before: int = 0  # where the last iteration but one starts
    last: int = 0  # and the last one
    series: dict[int, Thinned] = field(default_factory=dict)


@dataclass
class Log:
    """One call of a section: filled by the probes while it runs, and put aside when it ends.

    Frames are numbered through the whole run. Those of this call lie in `spans`: while a section inside it
    runs, that one has the next numbers. A frame from elsewhere, of a generator say, is one that the section
    is handed.
    """

    function: int  # of the section
    storages: Storages  # of the section, in all its calls
    reached: bytearray  # per statement of the lecture, whether it ran in here
    glimpsed: list[int]  # per function, how many of its calls had their arguments looked at
    events: list[Event] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    dropped: int = 0
    sizes: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)  # frame -> name -> size, line
    axes: dict[tuple[int, str], tuple[tuple[str, ...], Callable[[], object]]] = field(default_factory=dict)

    def owns(self, frame: int) -> bool:
        """Whether the frame was entered in here."""
        return any(first <= frame < end for first, end in self.spans)
