"""Who is told of a run, and what the parts of a recorder know of it: forms, and nothing that runs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import CodeType, FrameType
from typing import Any, Protocol

from litbook.finding import Place
from litbook.lecture.model import Lecture
from litbook.probe.events import FirstIterations, Log
from litbook.probe.record_keys import RecordKeys
from litbook.record import model


class Listener(Protocol):
    """Who wants to hear of a run while it goes on: the terminal."""

    def begin(self, lecture: Lecture, environment: model.Environment) -> None: ...
    def section(self, function: int) -> None: ...
    def skip(self, function: int, device: str) -> None: ...
    def line(self, statement: int) -> None: ...
    def word(self, statement: int, whole: bool) -> None: ...
    def piece(self, piece: model.Piece) -> None: ...
    def question(self, piece: model.Piece, answer: model.Snapshot) -> None: ...
    def value(self, value: model.Value, shown: model.Snapshot | None) -> None: ...
    def claim(self, claim: model.Claim, snapshots: list[model.Snapshot]) -> None: ...
    def error(self, error: model.Error, place: Place) -> None: ...
    def make_way(self) -> AbstractContextManager[None]: ...
    def end(self) -> None: ...


class Recording(Protocol):
    """A recorder, as its parts know it: the lecture, what is running, and where an error is kept."""

    lecture: Lecture
    numbering: RecordKeys
    listener: Listener | None
    log: Log  # of the section that runs
    active: dict[int, int]  # id of a live frame object -> base of its frame
    functions: list[int]  # frame -> its function
    codes: list[CodeType | None]  # per function, its code
    turns: dict[int, FirstIterations]  # by loop statement

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
