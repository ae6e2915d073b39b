"""Asserts: which of them ran, which were false or left unjudged, and whether anybody has heard of it.

In go the probes of an assert, which run only where it is false or its test is left, and the exceptions that
ended sections; out come the errors of those that ended none: caught, or swallowed by Python itself, as in
threads, `__del__` and `atexit`. A test is left by whatever is raised in it, by `GeneratorExit` and
`CancelledError`, too; and where its frame still stands in it when all else is over. A forked child, and what
runs after the record is made, `tell` at once.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import mmap
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from sys import _getframe
from traceback import walk_stack
from types import FrameType
from typing import Any, cast

from msgspec.structs import astuple

from litbook.lecture.claims import claim_of_assert
from litbook.lecture.model import Assertion
from litbook.probe import tracebacks
from litbook.probe.always_true import (
    ROUNDED,
    always_true,
    equals_everything,
    function_in,
    is_boundless,
    is_empty,
    length_of,
    never_python_bool,
    takes_zero,
)
from litbook.probe.messages import caption_of, names_in
from litbook.probe.protocols import Recording
from litbook.python.nodes import segment
from litbook.record import model
from litbook.rules.tautology import why_same
from litbook.rules.vacuous import CUT, VAST, why_nothing
from litbook.snapshot.snapshot import as_snapshot, glimpse, is_immediate

WAY_OUT = "if it is meant to fail, say so on its line: # @allow claim-fails: WHY"
WAY_OUT_MEANT = "an assert that is meant to fail raises all the same: catch it, try: … except AssertionError:"
WAY_OUT_LEFT = "let it be judged; if it is meant to raise, say so on its line: # @allow claim-fails: WHY"
WAY_OUT_TRUE = "claim something that can be false"
WAY_OUT_UNHEARD = (
    "call its function in a child of multiprocessing, whose asserts are heard; or run another file"
)
ITERATED = ("all", "any", "sum", "max", "min")  # of Python's own, what may look at an iterator
# Kinds of tolerances: what is below an exclusive one is within; and one that nobody has given.
ABSOLUTE, RELATIVE, EXCLUSIVE, BY_DEFAULT = range(4)
_DEFAULT = 1e-8  # numpy's and torch's
MISSING = object()  # stands for an operand that was not asked for

AssertSite = tuple[int, int, tuple[tracebacks.TraceLine, ...]]
"""The section that shows an assert, the line of its file there, and the assert's own where it is another."""


@dataclass
class _AssertFailure:
    """An assert that was false, was left, or cannot fail: the place that shows it, and how it came about."""

    where: str
    what: str = ""  # all there is to say of one that was not false
    site: AssertSite | None = None
    why: str = ""
    caption: str = ""
    count: int = 1
    heard: int = 0  # of its exceptions, how many ended a section


class Asserts:
    """The asserts of one run. `late` says that its record is made; `tell` takes what is then left to say."""

    def __init__(self, recorder: Recording) -> None:
        self.recorder, self.lecture = recorder, recorder.lecture
        numbered = self.lecture.statement_of.items()
        self.nodes = {number: node for node, number in numbered if isinstance(node, ast.Assert)}
        self.meant = {number for number, node in self.nodes.items() if node in self.lecture.fails}
        self.tell: Callable[[tuple[object, ...]], None] = lambda _: None
        self.late = False
        self._false: dict[int, _AssertFailure] = {}
        self._left: dict[int, _AssertFailure] = {}
        self._true: dict[int, _AssertFailure] = {}
        # Memory that forks share: what one of them could not say, as it could open or write no file.
        self._unsaid = mmap.mmap(-1, len(self.lecture.statements) + 1)
        self._began = set[int]()  # those without a step
        self._unheard = list[model.Error]()  # see `report_unheard`
        self._sides: dict[int, dict[int, Any]] = {}  # of those that are no claims, operands as they were once
        self._again = set[int]()  # see `side`
        self._odd: dict[int, dict[int, str]] = {}  # of an assert, why each part of it says nothing
        self._apart: dict[int, dict[int, Any]] = {}  # of a part, what is to be close, and how close
        self._handed: dict[int, tuple[Any, str]] = {}  # see `watch_elements`
        self._before = set[int]()  # in a fork: ids of the frames in which the parent's asserts go on
        self._process, self._thread = os.getpid, threading.get_ident  # a lecture may replace them
        self._home_process, self._home_thread = os.getpid(), threading.get_ident()

    # -- what the probes say

    def mark_reached(self, statement: int) -> None:
        """An assert was reached, for the first time in its section."""
        if self._is_away():
            self._say(statement, ("ran", *astuple(self._entry(statement))))

    def reach(self, statement: int) -> None:
        """An assert of a definition that is stepped over was reached."""
        if statement not in self._began:
            self._began.add(statement)
            self.mark_reached(statement)

    def enter_fork(self) -> None:
        """This process is a new fork: what is being judged now is judged in the parent."""
        frames = (frame for frame, _ in walk_stack(_getframe(1)))
        self._before = {id(frame) for frame in frames if self.judging(frame) is not None}

    def belong_to(self, run: int, tell: Callable[[tuple[object, ...]], None]) -> None:
        """This process is a child that began afresh, of the process of a run."""
        self._home_process, self.tell = run, tell

    def report_unheard(self, command: str) -> None:
        """A command runs the lecture in a Python of its own: nobody judges what is asserted there."""
        section, line = self.recorder.log.function, self.recorder.site(_getframe(1))[1]
        what = f"never judged: what the lecture asserts in another Python, started by {command}"
        what += f"\n{WAY_OUT_UNHEARD}"
        first = line or self.lecture.functions[section].first
        error = self.recorder.error(section, "assert", first, what, ())
        if self._is_away():
            self.tell(("wrong", self.lecture.key(section), *astuple(error)))
        elif error not in self._unheard:  # once, also in a loop
            self._unheard.append(error)
            self.recorder.keep(section, error)

    def false(self, statement: int) -> None:
        """An assert is false; what it raises comes next."""
        if statement in self._false:
            self._false[statement].count += 1
        else:
            self._keep(statement, _getframe(1))

    def report_failed_claim(self, statement: int, frame: FrameType) -> None:
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
        failure = self._false[statement] = _AssertFailure(where)
        with contextlib.suppress(Exception):  # at the end of the stack that is all that can be kept
            failure.site = self._site(statement, frame)
            failure.why = names_in(self.nodes[statement], frame)  # last: a `__repr__` may come by here
        self._tell_wrong(statement, failure)

    def message(self, statement: int, given: object) -> object:
        """The message of a false assert, handed back as it came."""
        if not self._false[statement].caption:
            self._false[statement].caption = caption_of(given)
        return given

    def leave_by_exception(self, statement: int, frame: FrameType) -> None:
        """An exception comes out of an assert: it is false, as is known, or its test is left."""
        if id(frame) in self._before:
            self._before.discard(id(frame))
        elif statement not in self._false:
            self.leave(statement, tracebacks.text_of(sys.exc_info()[1]), frame)

    def leave(self, statement: int, by: str, frame: FrameType) -> None:
        """The test of an assert is left, and not judged."""
        if statement in self._left:
            self._left[statement].count += 1
            return
        what = f"never judged: the assert {self._text(statement)} was left by {by}\n{WAY_OUT_LEFT}"
        self._left[statement] = self._failure_at(statement, what, frame)

    def truth(self, statement: int, part: int, value: object, named: str) -> object:
        """What decides an assert, handed back as it came. It is `named` so where it comes from."""
        iterator = self._handed.pop(statement, None)
        if iterator is not None and inspect.getgeneratorstate(iterator[0]) == inspect.GEN_CREATED:
            self.cannot_fail(statement, f"{iterator[1]}(…) took nothing from the generator", _getframe(1))
        kind, sure = ("", False) if type(value) is bool else always_true(value, named)
        if kind and sure:
            self.cannot_fail(statement, f"it asserts {kind}", _getframe(1))
        else:
            self._note(statement, part, f"it asserts {kind}" if kind else "")
        return value

    def watch_elements(self, statement: int, part: int, value: Any, named: str) -> Any:
        """What `all` or `sum` looks at, handed on: an iterator as one of which each element is noticed.

        What a method `.all` belongs to, or takes, is handed on as it is: it may be more than an iterator.
        """
        why = f"{named}(…) looked at nothing"
        if named not in ITERATED or not hasattr(type(value), "__next__"):
            uncalled = function_in(value) if named.rpartition(".")[2] in ("all", "any") else ""
            self._note(statement, part, why if is_empty(value) else uncalled and f"it asserts {uncalled}")
            if type(value) is types.GeneratorType and not named.startswith("."):
                self._handed[statement] = value, named  # to who may not know what to do with it: `np.all`
            return value
        self._odd.setdefault(statement, {}).setdefault(part, why)  # until it gives something
        return map(partial(self._take_element, statement, part), value)

    def _take_element(self, statement: int, part: int, element: object) -> object:
        self._odd[statement][part] = ""
        return element

    def _note(self, statement: int, part: int, why: str) -> None:
        """Why a part of an assert says nothing this time; it says something if it ever did."""
        parts = self._odd.setdefault(statement, {})
        if why != parts.setdefault(part, why):
            parts[part] = ""

    def side(self, statement: int, number: int, value: Any) -> Any:
        """An operand of an assert that is no claim, handed back as it came; of one time it is kept."""
        if statement not in self._again:
            sides = self._sides.setdefault(statement, {})
            if number in sides:
                self._again.add(statement)
            else:
                sides[number] = value if is_immediate(value) else glimpse(value)
                self.equal(statement, number, value, _getframe(1))
        return value

    def equal(self, statement: int, number: int, value: Any, frame: FrameType) -> None:
        """An assert whose operand equals everything cannot fail, nor that NumPy's bool is not Python's."""
        asked = self._assertion(statement)
        beside = asked.form[number].strip().endswith("=="), asked.form[number + 1].strip().startswith("==")
        if any(beside) and equals_everything(value):
            self.cannot_fail(statement, f"everything equals {asked.operand_texts[number]}", frame)
        other = asked.operand_texts[number + 1 : number + 2]
        between = asked.form[number + 1].strip()
        denied = between == "is not" or (between == "is" and asked.form[number].rstrip(" (").endswith("not"))
        if denied and other in (("False",), ("True",)) and (kind := never_python_bool(value)):
            self.cannot_fail(statement, f"what is of type {kind} never is {other[0]}", frame)

    def tolerance(self, statement: int, value: object, kind: int, part: int, sides: int) -> object:
        """A tolerance in the test of an assert, handed back as it came."""
        if is_boundless(value):
            self.cannot_fail(statement, "everything is within an infinite tolerance", _getframe(1))
        elif kind != RELATIVE and sides:
            self.apart(statement, part, sides, -1 - kind, value)
        elif kind == RELATIVE and type(value) in (int, float) and cast(float, value) >= 1:
            why = f"nothing at all is within a relative tolerance of {value:g}"
            self.cannot_fail(statement, why, _getframe(1))
        return value

    def apart(self, statement: int, part: int, sides: int, place: int, value: object) -> object:
        """One of the `sides` that a part of an assert calls close, or how close, handed back as it came.

        What is as large as each side takes zero for close to both, and so says nothing of them.
        """
        seen = self._apart.setdefault(part, {})
        seen[place] = value
        if sides == BY_DEFAULT:
            seen[-1 - BY_DEFAULT], sides = _DEFAULT, 2
        # Taken out once, whichever thread is the last; and it keeps nothing alive.
        if len(seen) > sides and self._apart.pop(part, None) is seen:
            kind, tolerance = next((-1 - at, seen.pop(at)) for at in [*seen] if at < 0)
            at_least = 0 if kind == BY_DEFAULT else ROUNDED
            vast = takes_zero(tolerance, seen.values(), kind == EXCLUSIVE, at_least)
            self._note(statement, part, VAST if vast else "")
        return value

    def in_step(self, statement: int, part: int, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """What `zip` takes from in an assert, handed back as it came: it stops at the shortest."""
        lengths = [length for length in map(length_of, values) if length is not None]
        cut = lengths and min(lengths) < max(lengths)
        self._note(statement, part, f"{CUT} {min(lengths)} of {max(lengths)} elements" if cut else "")
        return values

    def cannot_fail(self, statement: int, why: str, frame: FrameType) -> None:
        """An assert holds whatever it is about, as its value shows. That is said once."""
        if statement not in self._true:
            what = f"this assert cannot fail: {why}\n{WAY_OUT_TRUE}"
            self._true[statement] = self._failure_at(statement, what, frame)

    def _failure_at(self, statement: int, what: str, frame: FrameType) -> _AssertFailure:
        """There is something to say of an assert in a function that is running."""
        noticed = _AssertFailure("", what)
        with contextlib.suppress(Exception):  # at the end of the stack
            noticed.site = self._site(statement, frame)
        self._tell_wrong(statement, noticed)
        return noticed

    def judging(self, frame: FrameType) -> int | None:
        """The assert of the lecture whose test is being evaluated in a frame."""
        file = self.lecture.file_of(frame.f_code.co_filename)
        if file is None or frame.f_lasti < 0:
            return None
        line, _, column, _ = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
        for statement, node in self.nodes.items() if line is not None and column is not None else ():
            end = node.end_lineno or 0, node.end_col_offset or 0
            if self.lecture.file_of_statement(statement).number == file:
                if (node.lineno, node.col_offset) <= (line, column) < end:
                    return statement
        return None

    def abandon_frames(self, frames: Iterable[FrameType], by: str) -> None:
        """Nothing goes on in these frames any more: what is being judged in them never will be."""
        for frame in frames:
            statement = None if id(frame) in self._before else self.judging(frame)
            if statement is not None:
                self.leave(statement, by, frame)

    def hear_exception(self, error: BaseException) -> None:
        """An exception ended a section: whatever assert it came from, all hear of it."""
        for statement in tracebacks.statements(self.recorder.numbering, error):
            if statement in self._false and isinstance(error, AssertionError):
                self._false[statement].heard += 1
        for cause in tracebacks.exception_chain(error):
            for statement in tracebacks.statements(self.recorder.numbering, cause):
                if statement in self._left:
                    self._left[statement].heard += 1

    def way_out(self, error: BaseException) -> str:
        """What to do about an exception that ended a section, of an assert that is meant to fail."""
        raised = tracebacks.statements(self.recorder.numbering, error)
        meant = isinstance(error, AssertionError) and not self.meant.isdisjoint(raised)
        return f"\n{WAY_OUT_MEANT}" if meant else ""

    # -- what is said of them

    def errors(self, reached: set[int]) -> Iterator[tuple[int, model.Error]]:
        """Section and error of each that was wrong and not heard of, or is marked and held."""
        for statement, failure in [*self._false.items(), *self._left.items(), *self._true.items()]:
            if statement not in self.meant and failure.count > failure.heard:
                yield self._error(statement, failure)
        for statement in (i for i in self.nodes if self._unsaid[i] > 1):
            what = f"wrong in a child process, which could not say how: {self._text(statement)}"
            yield self._error(statement, _AssertFailure("", what))
        for statement in sorted(self.meant & (reached | self._began) - {*self._false, *self._left}):
            section, line, trace = self._site(statement, None)
            what = f"marked @fails, but it held: {self._text(statement)}"
            yield section, self.recorder.error(section, "assert", line, what, trace)

    def entries(self, reached: set[int]) -> tuple[model.Assert, ...]:
        """What the record keeps of them: those that ran and are no claims, or were left."""
        claims = {claim.statement for claim in self.lecture.claims}
        there = {i for i in self.nodes if self._unsaid[i]} | self._began | self._left.keys()
        there |= {i for i, parts in self._odd.items() if any(parts.values()) and self._why_vacuous(i)}
        return tuple(map(self._entry, sorted(self.nodes.keys() & reached - claims | there)))

    def report_unfinished(self, thread: str, file: int | None, line: int) -> None:
        """A thread is at a line of the lecture, or will be, and nobody waits for it any longer."""
        section = self.lecture.main
        assert section is not None, "else the lecture would not run"
        site: AssertSite = (
            section,
            self.lecture.functions[section].first,
            (),
        )  # where it is in no line of ours
        if file is not None and (file, line) in self.recorder.numbering.statement_at:
            site = self._site(self.recorder.numbering.statement_at[file, line], None)
        what = f"the thread {thread} still runs after the end: nobody sees what it has yet to assert"
        error = self.recorder.error(site[0], "assert", site[1], f"{what}\njoin it in its section", site[2])
        self.recorder.keep(site[0], error)

    def _assertion(self, statement: int) -> Assertion:
        return claim_of_assert(self.lecture.file_of_statement(statement).text, self.nodes[statement])

    def _why_vacuous(self, statement: int) -> str:
        """Why an assert holds and says nothing, as its values tell; "" of one that may say something."""
        wrong = (*self._false, *self._left, *self._true)
        if statement in wrong or self.nodes[statement] in self.lecture.zeros:
            return ""
        if why := next(filter(None, self._odd.get(statement, {}).values()), ""):
            return why
        sides, asked = self._sides.get(statement, {}), self._assertion(statement)
        shots = list[model.Snapshot | None]()
        for number, node in enumerate(asked.operands):
            value = sides.get(number, node.value if isinstance(node, ast.Constant) else MISSING)
            shots.append(None if value is MISSING else as_snapshot(value))
        once = statement not in self._again
        return next(why_nothing(asked.form, asked.operand_texts, shots, once), "") or why_same(asked.text)

    def _entry(self, statement: int) -> model.Assert:
        shown, column = self.lecture.statements[statement], self.nodes[statement].col_offset
        line = self.recorder.numbering.line(shown.function, shown.first)
        key, nothing = self.lecture.key(shown.function), self._why_vacuous(statement)
        return model.Assert(key, line, self._text(statement), column, nothing)

    def _tell_wrong(self, statement: int, failure: _AssertFailure) -> None:
        """Where no record will say so, say at once what is wrong."""
        if self._is_away() and statement not in self.meant:
            section, error = self._error(statement, failure)
            self._say(statement, ("wrong", self.lecture.key(section), *astuple(error)))

    def _say(self, statement: int, line: tuple[object, ...]) -> None:
        try:
            self.tell(line)
        except OSError:
            self._unsaid[statement] = max(self._unsaid[statement], 1 + (line[0] == "wrong"))

    def _error(self, statement: int, failure: _AssertFailure) -> tuple[int, model.Error]:
        section, line, trace = failure.site or self._site(statement, None)
        if failure.what:
            return section, self.recorder.error(section, "assert", line, failure.what, trace)
        message = self.nodes[statement].msg
        plain = str(message.value) if isinstance(message, ast.Constant) else ""
        lines = [f"assert fails: {failure.caption or plain or self._text(statement)}"]
        lines += [*failure.why.splitlines(), failure.where, WAY_OUT]
        return section, self.recorder.error(section, "assert", line, "\n".join(lines), trace)

    def _text(self, statement: int) -> str:
        return segment(self.lecture.file_of_statement(statement).text, self.nodes[statement].test)

    def _site(self, statement: int, frame: FrameType | None) -> AssertSite:
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
