"""The recorder: the probes of a running lecture, and the record made of what they saw.

State, all of it, while a lecture runs:

    events    one list of tuples in order of execution: a step `(frame, statement)`, or a frame, value,
              loop or piece with its tag first. Folding a loop deletes slices near the end of this list,
              so memory does not grow with iterations.
    active    id of a live frame object -> number of its frame. A frame enters itself, so a reused
              address is overwritten before it can be mistaken.
    reached   per statement, whether it ever ran; folding does not forget this.
    loops     (id of a live frame object, statement) -> the loop now running there.
    calls     id of a live frame object -> (function, line) -> how often it called; after `CALLS` of them,
              calls are only counted.
    folded    id of a live frame object -> its code, of calls that were only counted: what they call is, too.
    spare     function -> a frame that stands for all its calls beyond the budget; no page shows it.
    codes     per function, its code: at the address of a frame that ended, one of untouched code may stand,
              which enters nothing, and is no caller that is known.
    sites     (id of a code object, place of a call in it) -> its line, and the code, so that its id stays.
    glimpsed  function -> how many of its calls had their arguments looked at.
    verdicts  per claim: how often it ran, and its first failure or first run.

The probes that run on every line are closures over these, not methods: that halves their cost.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
import threading
import tokenize
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from sys import _getframe
from types import CodeType, FrameType, ModuleType
from typing import Any, Protocol

from litbook.errors import AuthorError
from litbook.probe.axes import axis_names, mismatch, remember
from litbook.record import model
from litbook.snapshot.snapshot import Storages, glimpse, is_immediate, snapshot, spelled, type_alone
from litbook.text.source import INSTALLED, Assertion, Function, FunctionNode, Lecture, parameters, unspoken

FIRST, LAST = 3, 2  # iterations of a loop that are kept, from its start and its end (`turn` knows the 2)
GLIMPSES = 64  # calls of one function whose arguments are looked at; of later ones what is immediate is kept
CALLS = 5  # calls of one function from one line that are kept, in one frame and one iteration
STEPS = 5_000  # steps kept per section, then only counted
SPARK = 48  # points kept of a watched number
OUTPUT = 20_000  # characters of printed output kept per section
NAMES, BRIEF = 6, 120  # names of a failing claim that are listed, and the characters of each value
LONGEST_LINE = 300  # characters kept of a line of another file than the lecture

_RAISED = object()  # stands for a caption that could not be computed
_FRAME, _VALUE, _LOOP, _PIECE = "frame", "value", "loop", "piece"


class Listener(Protocol):
    """Who wants to hear of a run while it goes on: the terminal."""

    def begin(self, lecture: Lecture, environment: model.Environment) -> None: ...
    def section(self, function: int) -> None: ...
    def skipped(self, function: int, device: str) -> None: ...
    def line(self, statement: int) -> None: ...
    def piece(self, piece: model.Piece) -> None: ...
    def question(self, piece: model.Piece, answer: model.Snapshot) -> None: ...
    def value(self, value: model.Value, shown: model.Snapshot | None) -> None: ...
    def claim(self, claim: model.Claim, snapshots: list[model.Snapshot]) -> None: ...
    def error(self, error: model.Error) -> None: ...
    def end(self) -> None: ...


@dataclass
class _LoopState:
    """A loop that is running: how far it is, and where its last iterations start in `events`.

    `before` and `last` mean something once there are more than `FIRST` iterations.
    """

    frame: int
    statement: int
    count: int = 0
    before: int = 0  # where in `events` the last iteration but one starts
    last: int = 0  # and the last one
    series: dict[int, _Thinned] = field(default_factory=dict)


@dataclass
class _Thinned:
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
class _Verdict:
    """What a claim came to. `operands` holds snapshots; None for an operand that was never evaluated."""

    count: int = 0
    failed: bool = False
    caption: str = ""
    why: str = ""
    operands: list[model.Snapshot | None] = field(default_factory=list)


class Recorder:
    """The probes of `instrument.Probes`, and everything they saw. One per run."""

    # bound below, per instance, as closures
    step: Callable[[int], None]
    enter: Callable[..., None]
    loop: Callable[[int], None]
    turn: Callable[[int], None]
    watch: Callable[[int, object], None]
    pause: Callable[[], None]
    resume: Callable[[], None]

    def __init__(self, lecture: Lecture, filename: str, listener: Listener | None = None) -> None:
        self.lecture = lecture
        self.filename = filename  # what the lecture's code objects are called
        self.listener = listener
        self.lecture_name = lecture.name if lecture.files[0].module else Path(filename).stem
        self.events: list[tuple[Any, ...]] = []
        self.active: dict[int, int] = {}
        self.function_of_frame: list[int] = []
        self.codes: list[CodeType | None] = [None] * len(lecture.functions)
        self.reached = bytearray(len(lecture.statements))
        self.verdicts: dict[int, _Verdict] = {}
        self.needs: dict[int, str] = {}  # function -> device that is not here
        self.errors: list[model.Error] = []
        self.storages = Storages()
        self.types: dict[int, tuple[weakref.ref[type], model.Opaque]] = {}
        self.axes_of: dict[tuple[int, str], tuple[tuple[str, ...], Callable[[], object]]] = {}
        self.sizes: dict[int, dict[str, tuple[int, int]]] = {}  # frame -> name -> (size, line)
        self.open_claims: list[tuple[int, dict[int, object]]] = []
        self.dropped = 0
        self.seconds: dict[str, float] = {}
        self.printed: dict[int, int] = {}  # section function -> characters of output so far
        self.run_section: Callable[[int, Callable[[], object]], None] = lambda _, call: (call(), None)[1]
        self._enclosing_loop = _enclosing_loops(lecture)
        self._statement_at = _statements_by_line(lecture)
        self._sections = [f.kind in ("main", "part", "section") for f in lecture.functions]
        self._bind()

    # -- probes that run on every line

    def _bind(self) -> None:  # noqa: C901, PLR0915  long, so that the closures share their state without a lookup
        events, active, reached = self.events, self.active, self.reached
        functions = self.function_of_frame
        loops = dict[tuple[int, int], _LoopState]()  # by id of the frame object, and statement
        listener, sections = self.listener, self._sections
        statements, watches = self.lecture.statements, self.lecture.watches
        enclosing = self._enclosing_loop
        calls = dict[int, dict[tuple[int, int], int]]()
        folded = dict[int, CodeType]()
        spare = dict[int, int]()
        codes = self.codes
        sites = dict[tuple[int, int], tuple[int, CodeType]]()
        home, ident = threading.get_ident(), threading.get_ident
        recorder, append = self, events.append
        limit, limit_before, paused = STEPS, STEPS, 0
        glimpsed = [0] * len(self.lecture.functions)
        told = [0] * len(watches)  # how often the listener heard of each

        def step(statement: int) -> None:
            if not reached[statement]:
                reached[statement] = 1
                if listener is not None and not paused and sections[statements[statement].function]:
                    listener.line(statement)
            if len(events) < limit:
                frame = active.get(id(_getframe(1)))
                if frame is not None:
                    append((frame, statement))
            elif not paused:
                recorder.dropped += 1

        def enter(function: int, *arguments: object) -> None:
            frame = _getframe(1)
            address = id(frame)
            if paused or ident() != home:
                active.pop(address, None)
                return
            if address in calls:  # of an earlier frame at this address
                del calls[address]
            if len(events) >= limit and not sections[function]:
                if function not in spare:
                    spare[function] = len(functions)
                    functions.append(function)
                active[address], codes[function] = spare[function], frame.f_code
                return
            caller, parent, line, above = frame.f_back, None, 0, 0
            while caller is not None:
                above = id(caller)
                parent = active.get(above)
                if parent is not None or above in folded:
                    code = caller.f_code
                    if code is (folded[above] if parent is None else codes[functions[parent]]):
                        line = line_of(caller, code)
                        break
                parent, caller = None, caller.f_back
            if caller is not None and not sections[function]:
                site = function, line
                of_parent = calls.get(above)
                if of_parent is None:
                    calls[above] = {site: 1}
                    times = 1
                else:
                    of_parent[site] = times = of_parent.get(site, 0) + 1
                if times > CALLS or parent is None:
                    # a sort key, a comprehension: the same call over and over
                    active.pop(address, None)
                    folded[address] = frame.f_code
                    recorder.dropped += 1
                    return
            number = len(functions)
            functions.append(function)
            active[address], codes[function] = number, frame.f_code
            if len(events) < limit:
                append((_FRAME, number, parent, line, arguments and looked_at(function, arguments)))

        def line_of(frame: FrameType, code: CodeType) -> int:
            """`f_lineno`, once for each place: it reads a table of the whole code from its start."""
            at = id(code), frame.f_lasti
            found = sites.get(at)
            if found is None:
                found = sites[at] = frame.f_lineno, code
            return found[0]

        def looked_at(function: int, arguments: tuple[object, ...]) -> Iterable[object]:
            seen = glimpsed[function]
            glimpsed[function] = seen + 1
            for value in arguments:  # most often all are numbers
                kind = type(value)
                if kind is not int and kind is not float:
                    look = recorder.glimpse if seen < GLIMPSES else recorder.type_of
                    return [value if is_immediate(value) else look(value) for value in arguments]
            return arguments

        def loop(statement: int) -> None:
            address = id(_getframe(1))
            frame = active.get(address)
            if frame is not None and not paused:
                state = loops[address, statement] = _LoopState(frame, statement)
                append((_LOOP, state))
            else:  # an earlier frame may have had this address
                loops.pop((address, statement), None)

        def turn(statement: int) -> None:
            address = id(_getframe(1))
            state = loops.get((address, statement))
            if state is None or paused:
                return
            count = state.count
            state.count = count + 1
            if calls:  # each iteration may call anew
                calls.pop(address, None)
            if count >= FIRST:
                now, last = len(events), state.last
                if count >= FIRST + LAST:  # the iteration before the last one goes
                    before = state.before
                    del events[before:last]
                    recorder.dropped += last - before
                    state.last = now - last + before
                else:
                    state.before, state.last = last, now
            if count and len(events) < limit:
                append((state.frame, statement))

        def watch(number: int, value: object) -> None:
            address = id(_getframe(1))
            frame = active.get(address)
            if frame is None or paused:
                return
            asked = watches[number]
            state = loops.get((address, enclosing[number]))
            if asked.kind == "clear":
                append((_VALUE, frame, number, None, state, state.count - 1 if state else 0, ""))
                return
            kept = value
            if not is_immediate(value):
                axes = recorder.axes_for(frame, asked.text, value)
                kept = snapshot(value, recorder.storages, axes=axes, bits=asked.unit == "bits")
            turned = state.count - 1 if state is not None else 0
            if state is not None:
                series = state.series.get(number)
                if series is None or not turned % series.every:
                    recorder.sample(state, number, kept)
            if len(events) > limit + STEPS and not sections[functions[frame]]:
                recorder.dropped += 1
                return
            append((_VALUE, frame, number, kept, state, turned, ""))
            if listener is not None and told[number] <= FIRST and sections[functions[frame]]:
                told[number] += 1  # in all, so that inner loops of long ones do not flood a terminal
                more = told[number] > FIRST
                named = replace(recorder.value_of(number, frame), turn=turned)
                listener.value(named, None if more else as_snapshot(kept))

        def pause() -> None:
            nonlocal paused, limit, limit_before
            if not paused:
                limit_before, limit = limit, -1  # so that a step has one thing to ask
            paused += 1

        def resume() -> None:
            nonlocal paused, limit
            if paused:  # else the section that just ended has recovered from the pause already
                paused -= 1
                if not paused:
                    limit = limit_before

        def allow(more: int) -> None:
            nonlocal limit
            limit = len(events) + more
            glimpsed[:] = bytes(len(glimpsed))  # each section anew: its outcome depends on no other

        def recover() -> None:
            while paused:
                resume()

        self.step, self.enter, self.loop, self.turn, self.watch = step, enter, loop, turn, watch
        self.pause, self.resume, self.allow_steps, self.recover = pause, resume, allow, recover

    # -- probes that run now and then

    def section(self, function: int, call: Callable[[], object]) -> None:
        """The statement `name()` of a section: `run` decides how a section is run."""
        self.run_section(function, call)

    def sample(self, state: _LoopState, number: int, kept: object) -> None:
        """Add a number watched in a loop to its series, if it is one."""
        if type(kept) in (int, float, bool):
            value: Any = kept
        elif type(kept) is model.Tensor and kept.values and len(kept.values) == 1:
            value = kept.values[0]
        else:
            return
        series = state.series.get(number)
        if series is None:
            series = state.series[number] = _Thinned()
        series.add(state.count - 1, value)

    def glimpse(self, value: object) -> model.Snapshot:
        """An argument, in one of the first calls of its function."""
        return glimpse(value, self.storages)

    def type_of(self, value: object) -> model.Snapshot:
        """An argument in later calls. What there is to say of a type is said once, while the type lives."""
        kind = type(value)
        known, alone = self.types.get(id(kind), (None, None))
        if alone is None or known is None or known() is not kind:
            alone = type_alone(value, f"only the first {GLIMPSES} calls were looked at")
            self.types[id(kind)] = weakref.ref(kind), alone
        return alone

    def missed(self, number: int) -> None:
        """An inspected expression raised: reported at its line, and the run goes on."""
        asked, error = self.lecture.watches[number], sys.exc_info()[1]
        message = f"@{asked.kind} {asked.text} raised {_said(error)}"
        frame = self.active.get(id(_getframe(1)))
        if frame is not None:
            self.events.append((_VALUE, frame, number, None, None, 0, message))
        function = self.function_of_frame[frame] if frame is not None else 0
        known = Error(self.lecture, "inspect", function, asked.line, message)
        if asked.file:  # else the record's first file is meant
            file = self.lecture.files[asked.file]
            spot = file.path, asked.line, self.lecture.functions[function].name, known.text
            known = replace(known, trace=(spot,))
        if known not in self.errors:  # once, also when it raises in every iteration
            self.fail(known)

    def claim(self, number: int) -> None:
        """A claim's test is about to be evaluated."""
        self.open_claims.append((number, {}))

    def operand(self, number: int, value: Any) -> Any:
        """One operand of the claim being evaluated, handed back as it came."""
        self.open_claims[-1][1][number] = value
        return value

    def holds(self, number: int, caption: object = None) -> None:
        self._judge(number, False, caption)

    def fails(self, number: int, caption: object = _RAISED) -> None:
        asked = self.lecture.claims[number]
        computed = isinstance(asked.node, ast.Assert) and not isinstance(asked.node.msg, ast.Constant | None)
        if caption is _RAISED:  # or there is none; of a claim that holds, nobody computes it in plain Python
            error = sys.exc_info()[1]
            caption = f"{asked.text} (its caption raised {_said(error)})" if computed else None
        self._judge(number, True, caption, _getframe(1))

    def _judge(self, number: int, failed: bool, caption: object, frame: FrameType | None = None) -> None:
        asked = self.lecture.claims[number]
        said = asked.caption if caption is None else _caption(caption)
        _, seen = self.open_claims.pop()
        verdict = self.verdicts.setdefault(number, _Verdict())
        verdict.count += 1
        if verdict.count > 1 and not (failed and not verdict.failed):
            return
        verdict.failed = verdict.failed or failed
        verdict.caption = said
        verdict.operands = [
            snapshot(seen[i], self.storages) if i in seen else None for i in range(len(asked.operands))
        ]
        if frame is not None and all(map(_says_little, verdict.operands)):
            told = {text for text, seen in zip(asked.operand_texts, verdict.operands, strict=True) if seen}
            verdict.why = _named(asked, frame, told)
        self._tell_claim(number)

    def axes(self, number: int, annotation: Any, value: Any) -> None:
        """`x: Float[Tensor, "batch seq"] = ...`: dtype and rank hold, and names keep their sizes."""
        text = getattr(annotation, "dim_str", None)
        frame = self.active.get(id(_getframe(1)))
        if isinstance(text, str) and frame is not None:  # else of another library: none of our business
            self.check_axes(number, frame, annotation, value, text)

    def check_axes(self, number: int, frame: int, annotation: Any, value: Any, text: str) -> None:
        """Judge the annotation `text` of a value, in the call of a section that is `frame`."""
        asked = self.lecture.claims[number]
        names = axis_names(text, getattr(value, "ndim", None))
        sizes = self.sizes.setdefault(frame, {})
        why = mismatch(annotation, value, text, sizes)
        if not why and names is not None:
            remember(text, tuple(value.shape), sizes, self.lecture.statements[asked.statement].first)
            self.axes_of[frame, asked.text.split(":")[0]] = names, _weakly(value)
        verdict = self.verdicts.setdefault(number, _Verdict())
        verdict.count += 1
        if verdict.count == 1 or (why and not verdict.failed):
            verdict.failed, verdict.why = bool(why), why
            verdict.caption = "" if why else "dtype and axes are as annotated"
            self._tell_claim(number)

    def axes_for(self, frame: int, text: str, value: object) -> tuple[str, ...] | None:
        """The axes' names of the value called `text`, while it is still the annotated one."""
        names, annotated = self.axes_of.get((frame, text), (None, None))
        return names if annotated is not None and annotated() is value else None

    def unread(self, number: int) -> None:
        """The annotation itself raised; plain Python would never have evaluated it."""
        error = sys.exc_info()[1]
        verdict = self.verdicts.setdefault(number, _Verdict())
        verdict.count += 1
        verdict.failed = True
        verdict.why = f"the annotation cannot be read: {_said(error)}"
        self._tell_claim(number)

    def _tell_claim(self, number: int) -> None:
        if self.listener is not None:
            snapshots: list[model.Snapshot] = []
            claim = self.claim_of(number, snapshots.append, lambda: len(snapshots) - 1)
            self.listener.claim(claim, snapshots)

    # -- the author's words

    def piece(self, kind: model.PieceKind, text: str, data: str = "", alt: str = "") -> None:
        """Take a piece of prose, a figure ... from the statement that is running."""
        frame, line = self._site(_getframe(1))
        if frame is None:
            return  # from another thread, or from stepped-over code
        piece = model.Piece(kind, 0, frame, line, text, data, alt)
        self.events.append((_PIECE, piece))
        if self.listener is not None:
            self.listener.piece(piece)

    def question(self, text: str, answer: object, unit: str | None, hint: str) -> None:
        """Take a question, and a snapshot of its answer as it is now."""
        frame, line = self._site(_getframe(1))
        if frame is None:
            return
        piece = model.Piece("question", 0, frame, line, text, hint, unit=unit)
        shown = snapshot(answer, self.storages)
        self.events.append((_PIECE, piece, shown))
        if self.listener is not None:
            self.listener.question(piece, shown)

    def output(self, text: str) -> None:
        """Printed text. Consecutive prints of one line are one piece; the amount is bounded."""
        frame, line = self._site(_getframe(1))
        if frame is None or not text:
            return
        function = self.function_of_frame[frame]
        used = self.printed.get(function, 0)
        self.printed[function] = used + len(text)
        if used >= OUTPUT:
            return
        if used + len(text) > OUTPUT:
            text = text[: OUTPUT - used] + "\n… more was printed; it is cut here\n"
        piece = model.Piece("output", 0, frame, line, text)
        if self.events and self.events[-1][0] == _PIECE:
            last = self.events[-1][1]
            if (last.kind, last.frame, last.line) == ("output", frame, line):
                piece = model.Piece("output", 0, frame, line, last.text + text)
                self.events.pop()
        self.events.append((_PIECE, piece))
        if self.listener is not None:
            self.listener.piece(model.Piece("output", 0, frame, line, text))

    def _site(self, caller: FrameType | None) -> tuple[int | None, int]:
        """The frame that a piece belongs to, and the line of the section's statement that led to it."""
        first: tuple[int, int] | None = None
        while caller is not None:
            number = self.active.get(id(caller))
            function = self.function_of_frame[number] if number is not None else 0
            if number is not None and caller.f_code is self.codes[function]:
                file = self.lecture.functions[function].file
                statement = self._statement_at.get((file, caller.f_lineno))
                line = self.lecture.statements[statement].first if statement is not None else caller.f_lineno
                if self._sections[function]:
                    return number, line
                first = first or (number, line)
            caller = caller.f_back
        return first or (None, 0)

    # -- errors

    def file_of(self, filename: str) -> int | None:
        """The number of the lecture's file whose code objects are called that; None for other code."""
        return 0 if filename == self.filename else self.lecture.file_of(filename)

    def fail(self, error: model.Error) -> None:
        """Keep an error, and tell who listens."""
        self.errors.append(error)
        if self.listener is not None:
            self.listener.error(error)

    def raised(self, function: int, error: BaseException) -> None:
        """An exception that ended a section (or `main`, or the module)."""
        own = _own_lines(self, error)
        paths = {file.path for file in self.lecture.files}
        here = [line for path, line, *_ in own if path in paths]
        line = here[-1] if here else self.lecture.functions[function].first
        kind: Any = "author" if isinstance(error, AuthorError) else "exception"
        message = _said(error) + self._way_out(error, line)
        if isinstance(error, SystemExit):
            kind = "exit"
            call = getattr(error, "call", "sys.exit")
            message = f"{call}({error.code!r}) ends no lecture: it is an error like any exception"
        texts = [text for path, _, _, text in own if path in paths]
        text = texts[-1] if texts else Error(self.lecture, kind, function, line, message).text
        self.fail(model.Error(kind, function, line, text, _bounded(message), tuple(own)))

    def _way_out(self, error: BaseException, line: int) -> str:
        """Of a tensor of many truths that was asked for one: how to ask for all."""
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        file = None if where is None else self.file_of(where.tb_frame.f_code.co_filename)
        if file is None or not _AMBIGUOUS.match(_said(error)):
            return ""
        for asked in self.lecture.claims:
            test = asked.node.test if isinstance(asked.node, ast.Assert) else None
            at = self.lecture.statements[asked.statement]
            there = self.lecture.functions[at.function].file, at.first
            if there == (file, line) and test is not None:
                inner = f"({asked.text})" if isinstance(test, ast.Compare) else asked.text
                if not isinstance(test, ast.BoolOp | ast.UnaryOp):
                    return f"\nwrite: assert {inner}.all()"
        return "\nsay which are meant: (…).all() or (…).any()"

    # -- from indices to the record's own things

    def value_of(self, number: int, frame: int) -> model.Value:
        """A watched expression without its value, as the record and the listener name it."""
        asked = self.lecture.watches[number]
        kind: Any = asked.kind
        return model.Value(0, frame, asked.line, asked.text, None, kind, asked.unit)

    def claim_of(
        self, number: int, keep: Callable[[model.Snapshot], object], last: Callable[[], int]
    ) -> model.Claim:
        """A claim with its verdict. `keep` takes each operand's snapshot, `last` says where it went."""
        asked, verdict = self.lecture.claims[number], self.verdicts.get(number)
        statement = self.lecture.statements[asked.statement]
        operands = []
        for i, text in enumerate(asked.operand_texts):
            seen = verdict.operands[i] if verdict and i < len(verdict.operands) else None
            if seen is not None:
                keep(seen)
            operands.append(model.Operand(text, last() if seen is not None else None))
        device = self._missing_device(statement.function)
        kind: Any = asked.kind
        return model.Claim(
            function=statement.function,
            line=statement.first,
            last=statement.end,
            text=asked.text,
            caption=(verdict.caption if verdict else "") or asked.caption,
            verdict=(
                "fails" if verdict and verdict.failed
                else "holds" if verdict and verdict.count
                else "needs-device" if device
                else "not-reached"
            ),
            kind=kind,
            count=verdict.count if verdict else 0,
            form=asked.form,
            operands=tuple(operands),
            why=(verdict.why if verdict else "") or (f"needs {device}" if device else ""),
        )  # fmt: skip

    def _missing_device(self, function: int | None) -> str:
        """The device that kept this function, or a part above it, from running."""
        while function is not None:
            if function in self.needs:
                return self.needs[function]
            function = self.lecture.functions[function].parent
        return ""

    # -- the record

    def finish(self, environment: model.Environment, ran: tuple[str, ...]) -> model.Record:
        """Everything that was seen, as a record. Frames and loops are renumbered: folding left gaps."""
        made = _Made(self)
        for event in self.events:
            made.take(event)
        lecture = self.lecture
        return model.Record(
            schema=model.SCHEMA,
            lecture=self.lecture_name,
            title=lecture.title,
            environment=environment,
            sources=lecture.sources(),
            functions=tuple(_recorded(function) for function in lecture.functions),
            statements=tuple(self._statements()),
            frames=tuple(made.frames),
            steps=tuple(made.steps),
            dropped=self.dropped,
            unreached=self._unreached(),
            pieces=tuple(made.pieces),
            values=tuple(made.values),
            loops=tuple(made.loop(state) for state in made.states),
            series=tuple(made.series()),
            claims=tuple(self.claim_of(i, made.keep, lambda: made.last) for i in range(len(lecture.claims))),
            errors=tuple(self.errors),
            snapshots=tuple(made.snapshots),
            seconds={name: round(seconds, 4) for name, seconds in self.seconds.items()},
            ran=ran,
        )

    def _statements(self) -> list[model.Statement]:
        """The lecture's statements; a note that never ran carries its text, which pages then show."""
        found = []
        nodes = self.lecture.statement_of.items()
        for (node, number), it in zip(nodes, self.lecture.statements, strict=True):
            silent = it.kind == "piece" and not self.reached[number]
            prose = unspoken(node) if silent else ""
            found.append(model.Statement(it.function, it.first, it.last, it.kind, it.end, it.target, prose))
        return found

    def _unreached(self) -> tuple[int, ...]:
        """Statements that could have run, in functions that did, and never were."""
        entered = set(self.function_of_frame)
        silent = _silent(self.lecture)
        return tuple(
            number
            for number, statement in enumerate(self.lecture.statements)
            if not self.reached[number]
            and statement.function in entered
            and statement.kind != "doc"
            and number not in silent
        )


class _Made:
    """The lists of a record while they are filled from the events."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.frames: list[model.Frame] = []
        self.steps: list[tuple[int, int]] = []
        self.pieces: list[model.Piece] = []
        self.values: list[model.Value] = []
        self.states: list[_LoopState] = []
        self.snapshots: list[model.Snapshot] = []
        self.last = 0  # where the snapshot that was kept last went
        self._frame: dict[int, int] = {}
        self._loop: dict[int, int] = {}
        self._known: dict[str, int] = {}
        self._parameters = _parameters(recorder.lecture)

    def take(self, event: tuple[Any, ...]) -> None:
        match event:
            case (tag, state) if tag == _LOOP:
                if state.frame in self._frame:
                    self._loop[id(state)] = len(self.states)
                    self.states.append(state)
            case (tag, piece) if tag == _PIECE:
                self._take_piece(piece)
            case (tag, piece, answer) if tag == _PIECE:
                self._take_piece(piece, answer)
            case (int(frame), int(statement)):
                if frame in self._frame:
                    self.steps.append((self._frame[frame], statement))
            case (tag, number, parent, line, values) if tag == _FRAME:
                self._frame[number] = len(self.frames)
                function = self.recorder.function_of_frame[number]
                arguments = self._arguments(function, values)
                self.frames.append(model.Frame(function, self._frame.get(parent), line, arguments))
            case (_, frame, number, kept, state, turn, error):
                self._take_value(frame, number, kept, state, turn, error)

    def _arguments(self, function: int, values: list[object]) -> tuple[tuple[str, int], ...]:
        found = []
        for name, value in zip(self._parameters.get(function, []), values, strict=True):
            self.keep(as_snapshot(value))
            found.append((name, self.last))
        return tuple(found)

    def keep(self, shown: model.Snapshot) -> None:
        """Store a snapshot once; `last` is then its index. `repr` tells -0.0 from 0.0, `==` does not."""
        key = repr(shown)
        if key not in self._known:
            self._known[key] = len(self.snapshots)
            self.snapshots.append(shown)
        self.last = self._known[key]

    def _take_piece(self, piece: model.Piece, answer: model.Snapshot | None = None) -> None:
        if piece.frame in self._frame:
            if answer is not None:
                self.keep(answer)
                piece = replace(piece, answer=self.last)
            frame, step = self._frame[piece.frame], max(0, len(self.steps) - 1)
            self.pieces.append(replace(piece, frame=frame, step=step))

    def _take_value(
        self, frame: int, number: int, kept: object, state: _LoopState | None, turn: int, error: str
    ) -> None:
        if frame not in self._frame:
            return
        value = self.recorder.value_of(number, self._frame[frame])
        shown = value.kind != "clear" and not error
        if shown:
            self.keep(as_snapshot(kept))
        self.values.append(
            replace(
                value,
                step=max(0, len(self.steps) - 1),
                value=self.last if shown else None,
                error=_bounded(error),
                loop=self._loop.get(id(state)) if state is not None else None,
                turn=turn,
            )
        )

    def loop(self, state: _LoopState) -> model.Loop:
        line = self.recorder.lecture.statements[state.statement].first
        first = range(min(FIRST, state.count))
        last = range(max(FIRST, state.count - LAST), state.count)
        return model.Loop(self._frame[state.frame], line, state.count, (*first, *last))

    def series(self) -> list[model.Series]:
        return [
            model.Series(
                index,
                self.recorder.lecture.watches[number].line,
                self.recorder.lecture.watches[number].text,
                tuple(thinned.at),
                tuple(model.number(v) if not isinstance(v, str) else v for v in thinned.values),
            )
            for index, state in enumerate(self.states)
            for number, thinned in state.series.items()
            if state.count > 1
        ]


def _recorded(it: Function) -> model.Function:
    """A function of the text as the record has it."""
    known = {field.name: getattr(it, field.name) for field in fields(model.Function)}
    return model.Function(**known)


def _silent(lecture: Lecture) -> set[int]:
    """Statements without a step probe: inside compiled functions and stepped-over statements."""
    inside = {
        child
        for anchor in [*lecture.untouched, *lecture.stepover]
        for child in ast.walk(anchor)
        if child is not anchor
    }
    return {number for statement, number in lecture.statement_of.items() if statement in inside}


def Error(lecture: Lecture, kind: Any, function: int, line: int, message: str) -> model.Error:  # noqa: N802  a constructor
    """A `trace.Error` with the user's own line."""
    text = lecture.file_of_function(function).place(line).text.strip()
    return model.Error(kind, function, line, text, _bounded(message))


def as_snapshot(kept: object) -> model.Snapshot:
    """What a watch kept: a snapshot, or an immediate value that is one only now."""
    if isinstance(kept, model.Scalar | model.Sequence | model.Mapping | model.Tensor | model.Opaque):
        return kept
    return snapshot(kept)


def _parameters(lecture: Lecture) -> dict[int, list[str]]:
    """For every function, how a reader sees its parameters."""
    return {
        number: [shown for shown, _ in parameters(node)]
        for node, number in lecture.function_of.items()
        if isinstance(node, FunctionNode)
    }


def _said(error: BaseException | None) -> str:
    """Type and text of an exception, also of one whose text raises."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception as raised:
        text = f"(its text raised {type(raised).__name__})"
    return _bounded(f"{name}: {text}") if text else name


def _weakly(value: object) -> Callable[[], object]:
    """A way to get at `value` that does not keep it alive, where its type allows that."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _caption(given: object) -> str:
    """A claim's message as text: of what is no string its `str`, which may raise or never end."""
    if isinstance(given, str):
        return _bounded(str.__str__(given))
    return _bounded(spelled(given))


_AMBIGUOUS = re.compile(r"RuntimeError: Boolean value of Tensor with more than one value is ambiguous")


def _says_little(operand: model.Snapshot | None) -> bool:
    """Whether an operand is no more than true or false, or something that yields what nobody has kept."""
    if isinstance(operand, model.Tensor):
        return not operand.shape and operand.dtype == "bool"
    return operand is None or operand.type in ("bool", "generator") or operand.kind == "opaque"


def _named(asked: Assertion, frame: FrameType, told: set[str]) -> str:
    """The data that a failing claim names, but for what is `told`, a line for each: `x is tensor([1, 2])`."""
    nodes = list(ast.walk(asked.node)) if asked.node is not None else []
    names = sorted((n for n in nodes if isinstance(n, ast.Name)), key=lambda n: (n.lineno, n.col_offset))
    bound = {n.id for n in names if isinstance(n.ctx, ast.Store)} | {
        n.arg for n in nodes if isinstance(n, ast.arg)
    }
    known = _values(frame, [name.id for name in names if name.id not in bound | told])
    data = [(n, v) for n, v in known.items() if not callable(v) and not issubclass(type(v), ModuleType)]
    return "\n".join(f"{name} is {_briefly(value)}" for name, value in data[:NAMES])


def _values(frame: FrameType, names: list[str]) -> dict[str, object]:
    """What the names are in a function that is running. It keeps nothing alive for having been asked."""
    here, around = frame.f_locals, frame.f_globals
    found = {
        name: here[name] if name in here else around[name] for name in names if name in here or name in around
    }
    # Up to Python 3.12 a copy that stays with the frame. Three know it: the frame, this function, the count.
    if type(here) is dict and sys.getrefcount(here) == 3:
        here.clear()
    return found


def _briefly(value: object) -> str:
    """A value on one line; of one that is too long for that the kind and the beginning."""
    text = repr(value[: BRIEF + 1]) if type(value) is str else " ".join(spelled(value).split())
    if len(text) <= BRIEF:
        return text
    shown = snapshot(value)
    kind = f"{shown.dtype} {list(shown.shape)}" if isinstance(shown, model.Tensor) else shown.type
    return f"{kind}: {text[:BRIEF]} …"


def _bounded(message: str, most: int = 2000) -> str:
    return message if len(message) <= most else message[:most] + " … cut"


_ENGINE = Path(__file__).resolve().parents[1]


def _own_lines(recorder: Recorder, error: BaseException) -> list[tuple[str, int, str, str]]:
    """The own lines of a traceback, outermost first; at most the first and last ten.

    They are the lecture's, and what that calls of the files in its folder. Of a syntax error in such a file
    the last one is the line that cannot be read: that ran nothing, and so has no place in a traceback.
    """
    lecture, filename = recorder.lecture, recorder.filename
    own: list[tuple[str, int, str, str]] = []
    traceback = error.__traceback__
    while traceback is not None:
        code, line = traceback.tb_frame.f_code, traceback.tb_lineno
        number = recorder.file_of(code.co_filename)
        if number is not None:
            place = lecture.place(line, file=number)
            own.append((place.path, line, code.co_name, place.text.strip()))
        elif own and (shown := _beside(lecture, filename, code.co_filename)):
            own.append((shown, line, code.co_name, _text_of(code.co_filename, line)))
        traceback = traceback.tb_next
    if own and isinstance(error, SyntaxError):
        file, at = error.filename, error.lineno
        if isinstance(file, str) and isinstance(at, int) and (shown := _beside(lecture, filename, file)):
            own.append((shown, at, "<module>", _text_of(file, at)))
    return own if len(own) <= 20 else [*own[:10], *own[-10:]]


def _beside(lecture: Lecture, filename: str, file: str) -> str:
    """What a file in the lecture's folder is called in messages; "" for any other, and for the lecture."""
    folder, shown = Path(filename).parent, Path(lecture.path).parent
    if lecture.files[0].module:  # the files of the lecture have a folder of their own in it
        folder, shown = folder.parent, shown.parent
    try:
        inside = Path(file).relative_to(folder)
    except ValueError:
        return ""
    other = INSTALLED.isdisjoint(inside.parts) and _ENGINE not in Path(file).parents and file != filename
    return (shown / inside).as_posix() if other else ""


def _text_of(file: str, line: int) -> str:
    """A line of a file as it stands there now; "" where there is none."""
    try:
        with tokenize.open(file) as lines:
            return next(itertools.islice(lines, max(0, line - 1), None), "").strip()[:LONGEST_LINE]
    except (OSError, ValueError, SyntaxError):
        return ""


def _enclosing_loops(lecture: Lecture) -> list[int]:
    """For every watch, the innermost loop statement around it in its own function, or -1."""
    from litbook.text.source import Definition

    found = [-1] * len(lecture.watches)

    def walk(node: ast.AST, loop: int) -> None:
        inside = lecture.statement_of[node] if isinstance(node, ast.For | ast.AsyncFor | ast.While) else loop
        for number in lecture.watches_of.get(node, []):
            found[number] = inside
        for name, value in ast.iter_fields(node):
            within = loop if name == "orelse" else inside
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    walk(child, -1 if isinstance(child, Definition) else within)

    for file in lecture.files:
        walk(file.tree, -1)
    return found


def _statements_by_line(lecture: Lecture) -> dict[tuple[int, int], int]:
    """File and line -> the innermost statement on it (the one that starts last)."""
    found: dict[tuple[int, int], int] = {}
    for number, statement in enumerate(lecture.statements):
        file = lecture.functions[statement.function].file
        for line in range(statement.first, statement.end + 1):
            found[file, line] = number
    return found
