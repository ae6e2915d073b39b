"""Asserts: which of them ran, which raised because they were false, and whether anybody has heard of it.

In go the probes of an assert, which run only where it is false or its test raises, and the exceptions that
ended sections; out come the errors of those that ended none: caught, or swallowed by Python itself, as in
threads, `__del__` and `atexit`. A forked child, and what runs after the record is made, `tell` at once.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from sys import _getframe
from types import FrameType

from msgspec.structs import astuple

from litbook.probe import raised
from litbook.probe.captions import caption_of, names_in
from litbook.probe.recording import Recording
from litbook.record import model
from litbook.text.tree import segment

WAY_OUT = "if it is meant to fail, mark its line: # @fails"

Site = tuple[int, int, tuple[raised.Line, ...]]
"""The section that shows an assert, the line of its file there, and the assert's own where it is another."""


@dataclass
class _False:
    """A false assert: the place that shows it, how it came about, and how often."""

    where: str
    site: Site | None = None
    why: str = ""
    caption: str = ""
    count: int = 1
    heard: int = 0  # of its exceptions, how many ended a section


class Asserts:
    """The asserts of one run. `late` says that its record is made; `tell` takes what is then left to say."""

    def __init__(self, recorder: Recording) -> None:
        self.recorder, self.lecture = recorder, recorder.lecture
        self.nodes = {i: it for it, i in self.lecture.statement_of.items() if isinstance(it, ast.Assert)}
        self.meant = {i for i, it in self.nodes.items() if it in self.lecture.fails}
        self.tell: Callable[[tuple[object, ...]], None] = lambda _: None
        self.late = False
        self._false: dict[int, _False] = {}
        self._raised: dict[int, str] = {}  # statement -> what its test raised, while nobody has heard of it
        self._ids = os.getpid, threading.get_ident
        self._home = os.getpid(), threading.get_ident()

    # -- what the probes say

    def ran(self, statement: int) -> None:
        """An assert was reached, for the first time in its section."""
        if self._away():
            self.tell(("ran", *astuple(self._entry(statement))))

    def false(self, statement: int) -> None:
        """An assert is false; what it raises comes next."""
        if statement in self._false:
            self._false[statement].count += 1
        else:
            self.found_false(statement, _getframe(1))

    def found_false(self, statement: int, frame: FrameType) -> None:
        """The first failure of an assert, in a function that is running."""
        found = self._false[statement] = _False(self._where())
        with contextlib.suppress(Exception):  # at the end of the stack that is all that can be kept
            found.site = self._site(statement, frame)
            found.why = names_in(self.nodes[statement], frame)  # last: a `__repr__` may come by here
        if self._away() and statement not in self.meant:
            section, error = self._error(statement, found)
            self.tell(("false", self.lecture.key(section), *astuple(error)))

    def lost(self, statement: int, frame: FrameType) -> None:
        """A claim fails; where no record will say so, it is told as an assert."""
        if self._away():
            self.found_false(statement, frame)

    def said(self, statement: int, message: object) -> object:
        """The message of a false assert, handed back as it came."""
        if not self._false[statement].caption:
            self._false[statement].caption = caption_of(message)
        return message

    def stumbled(self, statement: int) -> None:
        """An exception comes out of an assert: it is false, as is known, or its test raised."""
        if statement not in self._false:
            self._raised.setdefault(statement, raised.said(sys.exc_info()[1]))

    def ended(self, error: BaseException) -> None:
        """An exception ended a section: whatever assert it came from, all hear of it."""
        for statement in raised.statements(self.recorder.numbering, error):
            self._raised.pop(statement, None)
            if statement in self._false and isinstance(error, AssertionError):
                self._false[statement].heard += 1

    # -- what is said of them

    def errors(self, reached: set[int]) -> Iterator[tuple[int, model.Error]]:
        """Section and error of each that was false and not heard of, or is marked and was never false."""
        for statement, found in [*self._false.items()]:
            if statement not in self.meant and found.count > found.heard:
                yield self._error(statement, found)
        for statement in sorted(self.meant & reached - {*self._false, *self._raised}):
            section, line, trace = self._site(statement, None)
            what = f"marked @fails, but it held: {self._text(statement)}"
            yield section, self.recorder.error(section, "assert", line, what, trace)

    def entries(self, reached: set[int]) -> tuple[model.Assert, ...]:
        """What the record keeps of them."""
        claims = {it.statement for it in self.lecture.claims}
        kept = {*self._raised, *(i for i in self.nodes if i in reached and i not in claims)} - self.meant
        return tuple(map(self._entry, sorted(kept | self.meant & reached)))

    def unfinished(self, thread: str, frame: FrameType) -> None:
        """A thread is at a line of the lecture, and nobody waits for it any longer."""
        file = self.lecture.file_of(frame.f_code.co_filename)
        statement = self.recorder.numbering.statement_at.get((file or 0, frame.f_lineno))
        if statement is not None:
            section, line, trace = self._site(statement, None)
            what = f"the thread {thread} still runs after the end: nobody sees what it has yet to assert"
            error = self.recorder.error(section, "assert", line, f"{what}\njoin it in its section", trace)
            self.recorder.keep(section, error)

    def _entry(self, statement: int) -> model.Assert:
        it = self.lecture.statements[statement]
        line = self.recorder.numbering.line(it.function, it.first)
        said = "" if statement in self.meant else self._raised.get(statement, "")
        return model.Assert(self.lecture.key(it.function), line, self._text(statement), said)

    def _error(self, statement: int, found: _False) -> tuple[int, model.Error]:
        section, line, trace = found.site or self._site(statement, None)
        message = self.nodes[statement].msg
        plain = str(message.value) if isinstance(message, ast.Constant) else ""
        lines = [f"assert fails: {found.caption or plain or self._text(statement)}"]
        lines += [*found.why.splitlines(), found.where, WAY_OUT]
        return section, self.recorder.error(section, "assert", line, "\n".join(lines), trace)

    def _text(self, statement: int) -> str:
        return segment(self.lecture.file_of_statement(statement).text, self.nodes[statement].test)

    def _site(self, statement: int, frame: FrameType | None) -> Site:
        """The section that shows an assert is the one it stands in, else the one that runs."""
        lecture = self.lecture
        it = lecture.statements[statement]
        file = lecture.functions[it.function].file
        around = lecture.section_around(it.function)
        if lecture.functions[around].kind != "module" or around == it.function:
            return around, it.first, ()
        place = lecture.files[file].place(it.first)
        inner = place.path, it.first, lecture.functions[it.function].name, place.text.strip()
        running, line = self.recorder.log.function, 0
        if frame is not None and self._ids[1]() == self._home[1]:
            line = self.recorder.site(frame)[1]
        return running, line or lecture.functions[running].first, (inner,)

    def _where(self) -> str:
        if self._ids[0]() != self._home[0]:
            return "it was raised in a child process"
        if self._ids[1]() != self._home[1]:
            return f"it was raised in the thread {threading.current_thread().name}"
        if self.late:
            return "it was raised after the lecture's end"
        return "its exception ended nothing: it was caught, or Python swallowed it"

    def _away(self) -> bool:
        return self.late or self._ids[0]() != self._home[0]
