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
from litbook.probe.events import Recording
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
        self.nodes = {
            number: node for node, number in self.lecture.statement_of.items() if isinstance(node, ast.Assert)
        }
        self.meant = {number for number, node in self.nodes.items() if node in self.lecture.fails}
        self.tell: Callable[[tuple[object, ...]], None] = lambda _: None
        self.late = False
        self._false: dict[int, _False] = {}
        self._raised: dict[int, str] = {}  # statement -> what its test raised, while nobody has heard of it
        self._process, self._thread = os.getpid, threading.get_ident  # a lecture may replace them
        self._home_process, self._home_thread = os.getpid(), threading.get_ident()

    # -- what the probes say

    def ran(self, statement: int) -> None:
        """An assert was reached, for the first time in its section."""
        if self._is_away():
            self.tell(("ran", *astuple(self._entry(statement))))

    def false(self, statement: int) -> None:
        """An assert is false; what it raises comes next."""
        if statement in self._false:
            self._false[statement].count += 1
        else:
            self._keep(statement, _getframe(1))

    def lost(self, statement: int, frame: FrameType) -> None:
        """A claim fails; where no record will say so, it is told as an assert."""
        if self._is_away():
            self._keep(statement, frame)

    def _keep(self, statement: int, frame: FrameType) -> None:
        """The first failure of an assert, in a function that is running."""
        if self._process() != self._home_process:
            where = "it was raised in a child process"
        elif self._thread() != self._home_thread:
            where = f"it was raised in the thread {threading.current_thread().name}"
        elif self.late:
            where = "it was raised after the lecture's end"
        else:
            where = "its exception ended nothing: it was caught, or Python swallowed it"
        failure = self._false[statement] = _False(where)
        with contextlib.suppress(Exception):  # at the end of the stack that is all that can be kept
            failure.site = self._site(statement, frame)
            failure.why = names_in(self.nodes[statement], frame)  # last: a `__repr__` may come by here
        if self._is_away() and statement not in self.meant:
            section, error = self._error(statement, failure)
            self.tell(("false", self.lecture.key(section), *astuple(error)))

    def message(self, statement: int, given: object) -> object:
        """The message of a false assert, handed back as it came."""
        if not self._false[statement].caption:
            self._false[statement].caption = caption_of(given)
        return given

    def stumbled(self, statement: int) -> None:
        """An exception comes out of an assert: it is false, as is known, or its test raised."""
        if statement not in self._false:
            self._raised.setdefault(statement, raised.text_of(sys.exc_info()[1]))

    def ended(self, error: BaseException) -> None:
        """An exception ended a section: whatever assert it came from, all hear of it."""
        for statement in raised.statements(self.recorder.numbering, error):
            self._raised.pop(statement, None)
            if statement in self._false and isinstance(error, AssertionError):
                self._false[statement].heard += 1

    # -- what is said of them

    def errors(self, reached: set[int]) -> Iterator[tuple[int, model.Error]]:
        """Section and error of each that was false and not heard of, or is marked and was never false."""
        for statement, failure in [*self._false.items()]:
            if statement not in self.meant and failure.count > failure.heard:
                yield self._error(statement, failure)
        for statement in sorted(self.meant & reached - {*self._false, *self._raised}):
            section, line, trace = self._site(statement, None)
            what = f"marked @fails, but it held: {self._text(statement)}"
            yield section, self.recorder.error(section, "assert", line, what, trace)

    def entries(self, reached: set[int]) -> tuple[model.Assert, ...]:
        """What the record keeps of them."""
        claims = {claim.statement for claim in self.lecture.claims}
        kept = {*self._raised, *(self.nodes.keys() & reached - claims)} - self.meant
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
        shown = self.lecture.statements[statement]
        why = "" if statement in self.meant else self._raised.get(statement, "")
        line = self.recorder.numbering.line(shown.function, shown.first)
        return model.Assert(self.lecture.key(shown.function), line, self._text(statement), why)

    def _error(self, statement: int, failure: _False) -> tuple[int, model.Error]:
        section, line, trace = failure.site or self._site(statement, None)
        message = self.nodes[statement].msg
        plain = str(message.value) if isinstance(message, ast.Constant) else ""
        lines = [f"assert fails: {failure.caption or plain or self._text(statement)}"]
        lines += [*failure.why.splitlines(), failure.where, WAY_OUT]
        return section, self.recorder.error(section, "assert", line, "\n".join(lines), trace)

    def _text(self, statement: int) -> str:
        return segment(self.lecture.file_of_statement(statement).text, self.nodes[statement].test)

    def _site(self, statement: int, frame: FrameType | None) -> Site:
        """The section that shows an assert is the one it stands in, else the one that runs."""
        lecture = self.lecture
        function, first = lecture.statements[statement].function, lecture.statements[statement].first
        around = lecture.section_around(function)
        if lecture.functions[around].kind != "module" or around == function:
            return around, first, ()
        place = lecture.file_of_function(function).place(first)
        inner = place.path, first, lecture.functions[function].name, place.text.strip()
        running, line = self.recorder.log.function, 0
        if frame is not None and self._thread() == self._home_thread:
            line = self.recorder.site(frame)[1]
        return running, line or lecture.functions[running].first, (inner,)

    def _is_away(self) -> bool:
        """Whether no record will say what happens now."""
        return self.late or self._process() != self._home_process
