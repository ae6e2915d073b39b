"""The recorder: a running lecture's sections, values, words and errors, and the record made of them all.

In go the calls that instrumented code makes (see `instrument`); out comes a `model.Record`. The probes
that run on every line stand in `probes`, the judging of claims in `verdicts`, the making of a section's entry
in `making`.

Every call of a section has a log of its own, which holds what happens until it ends. So nothing of one
section gets into another's. The logs are on a stack: the module's own lines, `main`, a part, its section.
When the run is over, and the process as it was, the entries are made from them.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from inspect import cleandoc
from sys import _getframe
from types import CodeType, FrameType
from typing import Any

from msgspec.structs import replace

from litbook.errors import AuthorError
from litbook.lecture import answers
from litbook.lecture.model import Lecture
from litbook.probe import tracebacks
from litbook.probe.asserts import Asserts
from litbook.probe.axes import axes_annotation
from litbook.probe.events import FirstIterations, Log, MissedWatch, PieceEvent, add_output
from litbook.probe.holes import typed_texts, with_holes
from litbook.probe.judge import Judge
from litbook.probe.messages import cut_message
from litbook.probe.probes import hot_probes
from litbook.probe.protocols import Listener
from litbook.probe.record_keys import RecordKeys
from litbook.probe.section_builder import SectionBuilder
from litbook.probe.silent_calls import SilentCalls
from litbook.record import model
from litbook.record.limits import OUTPUT
from litbook.snapshot import inspected
from litbook.snapshot.snapshot import snapshot

_STDLIB = sys.stdlib_module_names - {"__main__"}
# A warning of what is old, and one of torch's C++ code, which names the line that called it.
_OF_A_LIBRARY = re.compile(r"^.+:\d+: \w*Deprecation\w*: |\(Triggered internally at ")
PASSED_OVER: list[type[BaseException]] = []  # by an inspected expression, in another tool's words


class Recorder(Judge):
    """The probes of `instrument`, and everything they saw. One per run."""

    def __init__(self, lecture: Lecture, listener: Listener | None = None) -> None:
        self.lecture, self.listener = lecture, listener
        self._thread = threading.get_ident()
        # id of a thread that the lecture started -> in which call of a section, in which frame and line
        self._threads: dict[int, tuple[Log, int, int]] = {}
        self.numbering = RecordKeys(lecture)
        self.active = {}
        self.functions: list[int] = []  # frame -> its function
        self.codes: list[CodeType | None] = [None] * len(lecture.functions)
        self.turns = {loop: FirstIterations() for loop in self.numbering.loop_around}
        self.makings: dict[int, SectionBuilder] = {}  # function of a section -> what is made of it
        self.needs: dict[int, str] = {}  # function -> device that is not here
        self.open_claims = []
        self.seconds, self.peak = 0.0, 0  # of the whole lecture
        self._typed_in: dict[int, frozenset[str]] = {}  # function of a section -> see `_typed`
        self.asking = 0  # the line of a question that is put while its section does not run
        self.run_section: Callable[[int, Callable[[], object]], object] = lambda _, call: call()
        self.asserts, self.spoken = Asserts(self), SilentCalls(lecture, self.numbering, listener)
        self.false, self.message = self.asserts.false, self.asserts.message
        self.reach = self.asserts.reach
        self.truth, self.tolerance = self.asserts.truth, self.asserts.tolerance
        self.apart, self.in_step = self.asserts.apart, self.asserts.in_step
        self.side, self.watch_elements = self.asserts.side, self.asserts.watch_elements
        self.log = Log(0, self.making(0).storages)  # of the module's own lines
        hot = hot_probes(self, self.asserts)
        self.step, self.enter, self.loop, self.turn = hot.step, hot.enter, hot.loop, hot.turn
        self.local, self.watch, self.clear = hot.local, hot.watch, hot.clear
        self.pause, self.resume, self.recover = hot.pause, hot.resume, hot.recover
        self._begin, self._end = hot.begin, hot.end

    # -- sections

    def section(self, function: int, call: Callable[[], object]) -> None:
        """The statement `name()` of a section: `run` decides how a section is run."""
        self.run_section(function, call)

    @contextlib.contextmanager
    def section_log(self, function: int) -> Iterator[None]:
        """What runs in here is a call of the section `function`, `main` or a module: it has its own log."""
        making = self.making(function)
        self._begin(Log(function, making.storages))
        start = time.perf_counter()
        try:
            yield
        finally:
            making.seconds += time.perf_counter() - start
            making.put(self._end())

    def file_log(self, file: int) -> contextlib.AbstractContextManager[None]:
        """What runs in here are a file's own lines. Those of the first have the log that is there anyway."""
        return self.section_log(self.numbering.module_of[file]) if file else contextlib.nullcontext()

    def making(self, function: int) -> SectionBuilder:
        """The section `function` while it is made."""
        if function not in self.makings:
            self.makings[function] = SectionBuilder(self.numbering, self.functions, function)
        return self.makings[function]

    # -- values

    def check_annotation(self, statement: int, annotation: object) -> None:
        """An annotation that is no claim as it is written: where it means one of axes, nothing checks it."""
        if meant := axes_annotation(annotation):
            function = self.lecture.statements[statement].function
            first = self.lecture.statements[statement].first
            message = f"this annotation checks nothing: it is another name for {meant}"
            message += "\nwrite that itself where a value is assigned to a plain name, outside of `try`"
            error = self.error(function, "author", first, message, ())
            if error not in self.making(function).errors:  # once, also in a loop
                self.keep(function, error)

    def miss(self, number: int) -> None:
        """An inspected expression raised: reported at its line, and the run goes on."""
        watch, error = self.lecture.watches[number], sys.exc_info()[1]
        if isinstance(error, tuple(PASSED_OVER)):
            return
        message = f"@{watch.kind} {watch.text} raised {tracebacks.text_of(error)}"
        if isinstance(error, inspected.Changes):
            message = f"@{watch.kind} {watch.text} {error}: what is shown must not change the lecture\n"
            message += f"compute it on a line of its own: shown = {watch.text}  # @{watch.kind} shown"
        caller, running = _getframe(1), self.log.function
        base = self.active.get(id(caller))
        if base is not None:
            self.log.events.append(MissedWatch(base, number, message))
        making = self.making(running)
        if (number, message) in making.missed:
            return  # once, also when it raises in every iteration
        making.missed.add((number, message))
        trace: tuple[tracebacks.TraceLine, ...] = ()
        owner, line = self.numbering.owner_of_watch[number], watch.line
        if owner != running:
            place = self.lecture.file_of_function(owner).place(line)
            trace = ((place.path, line, self.lecture.functions[owner].name, place.text.strip()),)
            _, line = self.site(caller)
        self.keep(running, self.error(running, "inspect", line, message, trace))

    # -- the author's words

    def piece(self, given: model.Piece) -> None:
        """Take a piece of prose, a figure ... from the statement that is running."""
        frame, line = self.site(_getframe(1))
        if frame is None:
            return  # from another thread, or from stepped-over code
        self.spoken.hear(_getframe(1))
        piece = replace(given, frame=frame, line=self._line(line))
        self.log.events.append(PieceEvent(piece))
        if self.listener is not None:
            self.listener.piece(piece)

    def say(self, word: str, text: str) -> None:
        """A text for readers, with marks around what holes put into it: kept with the place of its word."""
        frame: FrameType | None = _getframe(1)
        if not text or (self.site(frame)[0] is None and not self.asking):
            return  # no page shows it
        file = None
        while frame is not None and file is None:
            called, frame = frame, frame.f_back
            file = self.lecture.file_of(called.f_code.co_filename)
        number = None if file is None else self.numbering.statement_at.get((file, called.f_lineno))
        if number is None or self.numbering.is_untouched(number):
            return
        function = self.lecture.statements[number].function
        at = next(itertools.islice(called.f_code.co_positions(), called.f_lasti // 2, None))
        line = self.numbering.line(function, at[0] or called.f_lineno)
        said = model.Wording(
            self.numbering.keys[function], line, at[2] or 0, word, cleandoc(with_holes(text, self._typed()))
        )
        self.making(self.log.function).say(said)

    def question(self, asked: model.Piece, answer: object) -> None:
        """Take a question, and a snapshot of its answer as it is now."""
        frame, line = (-1, self.asking) if self.asking else self.site(_getframe(1))
        if frame is None:
            return
        piece = replace(asked, frame=frame, line=self._line(line))
        shown = snapshot(answer, self.log.storages)
        if self.asking:
            self.making(self.log.function).ask(piece, shown)
        else:
            self.log.events.append(PieceEvent(piece, shown))
        if self.listener is not None:
            self.listener.question(piece, shown)

    def _typed(self) -> frozenset[str]:
        """The texts of the running section, and of what no section is, that hold a number."""
        running = self.log.function
        if running not in self._typed_in:
            kinds = (
                (index, node, self.lecture.functions[index].kind)
                for node, index in self.lecture.function_of.items()
            )
            others = {node for index, node, kind in kinds if kind == "section" and index != running}
            self._typed_in[running] = typed_texts(self.lecture.files, others)
        return self._typed_in[running]

    @cached_property
    def _free_answers(self) -> dict[int, list[ast.expr]]:
        return answers.free(self.lecture)

    def ask(self, function: int, module: dict[str, object], *, judged: bool) -> None:
        """Put those questions of a section that does not run whose answers need nothing of it.

        `module` is the namespace of its file. A question that raises is not put. `judged`: what the word
        itself refuses, such as two ways that differ, is an error of the section: nothing else will say it.
        """
        file = self.lecture.files[self.lecture.functions[function].file].filename
        with self.section_log(function):
            for call in self._free_answers[function]:
                self.asking = call.lineno
                try:
                    eval(compile(ast.Expression(call), file, "eval"), module)
                except AuthorError as error:
                    if judged:
                        self.keep(
                            function,
                            self.error(function, "author", call.lineno, tracebacks.text_of(error), ()),
                        )
                except Exception:
                    continue
            self.asking = 0

    def output(self, text: str, kind: model.PieceKind = "output") -> None:
        """Printed text. Consecutive prints of one line are one piece; the amount is bounded."""
        log, (frame, line) = self.log, self.site(_getframe(1))
        if frame is None:  # of another thread: of the section that started it, where that has ended
            began = self._threads.get(id(threading.current_thread()))
            if began is not None and began[0].ended:
                log, frame, line = began
        if frame is None:  # else beside the line at which the lecture itself is
            frame, line = self.site(sys._current_frames().get(self._thread))
        if frame is None:
            frame, line = self._last_site()
        if not text:
            return
        making = self.making(log.function)
        log.printed = True
        used = making.printed[kind]
        making.printed[kind] = used + len(text)
        if used > OUTPUT:
            return  # it was cut, and says so
        if used + len(text) > OUTPUT:
            text = text[: OUTPUT - used] + "\n… more was printed; it is cut here\n"
        piece = model.Piece(kind, 0, frame, self.numbering.line(log.function, line), text)
        add_output(log.events, PieceEvent(piece))
        if self.listener is not None and kind == "output":
            self.listener.piece(piece)

    def hear_stderr(self, text: object) -> None:
        """Text that goes to stderr, and to no page: what the lecture's own code writes, warns of or logs.

        What a library says to whoever uses it is none of the lecture's, nor what Python says is old.
        """
        frame: FrameType | None = _getframe(2)
        while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in _STDLIB:
            frame = frame.f_back
        own = frame is not None and self.lecture.file_of(frame.f_code.co_filename) is not None
        if own and type(text) is str and not _OF_A_LIBRARY.search(text):
            self.output(text, "stderr")

    def hear_thread(self, thread: threading.Thread) -> None:
        """A thread is started: what it prints after the end of its section is still that section's."""
        pool = getattr(getattr(thread, "_target", None), "__module__", "") == "concurrent.futures.thread"
        frame, line = self.site(_getframe(1))
        began = self._threads.get(id(threading.current_thread()))  # one thread may start another
        if frame is not None:
            began = self.log, frame, line
        if began is not None and not pool:  # whose threads work for whoever comes
            self._threads[id(thread)] = began

    def _last_site(self) -> tuple[int, int]:
        """The frame and the line that the running section came to last; its first line where none is kept."""
        running = self.log.function
        for event in reversed(self.log.events):
            if isinstance(event, int):
                frame, statement = divmod(event, self.numbering.scale)
                if self.functions[frame] == running:
                    return frame, self.lecture.statements[statement].first
        return -1, self.lecture.functions[running].first

    def _line(self, line: int) -> int:
        """A line of the file, counted from the first of the section that runs."""
        return self.numbering.line(self.log.function, line)

    def site(self, caller: FrameType | None) -> tuple[int | None, int]:
        """The frame of the running section, and the line of the file where its statement began that led here.

        Where the section itself is not recorded it is frame -1, which stands for it, and the section's first
        line. None for what no frame of the lecture leads to: another thread.
        """
        running = self.log.function
        led = False
        while caller is not None:
            base = self.active.get(id(caller))
            number = None if base is None else base // self.numbering.scale
            function = self.functions[number] if number is not None else 0
            if number is not None and caller.f_code is self.codes[function]:
                led = True
                if function == running:
                    place = self.lecture.functions[function].file, caller.f_lineno
                    statement = self.numbering.statement_at.get(place)
                    here = None if statement is None else self.lecture.statements[statement].first
                    return number, caller.f_lineno if here is None else here
            caller = caller.f_back
        return (-1, self.lecture.functions[running].first) if led else (None, 0)

    # -- errors

    def error(
        self, function: int, kind: Any, line: int, message: str, trace: tuple[tracebacks.TraceLine, ...]
    ) -> model.Error:
        """An error of a section, which surfaced on a line of its file, as the record has it."""
        place = self.lecture.file_of_function(function).place(line)
        relative = self.numbering.line(function, line)
        return model.Error(kind, relative, place.text.strip(), cut_message(message), trace)

    def keep(self, function: int, error: model.Error) -> None:
        """Keep an error of a section, and tell who listens."""
        self.making(function).errors.append(error)
        if self.listener is not None:
            line = error.line + self.lecture.functions[function].first
            self.listener.error(error, self.lecture.file_of_function(function).place(line))

    def keep_exception(self, function: int, error: BaseException) -> None:
        """An exception that ended a section (or `main`, or the module)."""
        self.asserts.hear_exception(error)
        line = (
            tracebacks.surfacing_line(self.lecture, function, error) or self.lecture.functions[function].first
        )
        kind = "author" if isinstance(error, AuthorError) else "exception"
        message = tracebacks.text_of(error) + tracebacks.way_out(self.lecture, error)
        message += self.asserts.way_out(error)
        if isinstance(error, SystemExit):
            kind = "exit"
            call = getattr(error, "call", "sys.exit")
            message = f"{call}({error.code!r}) ends no lecture: it is an error like any exception"
        trace = tracebacks.trace(self.lecture, error)
        self.keep(function, self.error(function, kind, line, message, trace))

    # -- the record

    def finish(self, environment: model.Environment, asked: tuple[str, ...]) -> model.Record:
        """Everything that was seen, as a record. `asked` are the keys of the sections that were to run."""
        self.making(0).put(self._end())
        numbering, lecture = self.numbering, self.lecture
        order = numbering.order()
        self.pause()  # what still runs is heard only of its asserts
        self.asserts.late = True
        reached = set[int]().union(*(making.all_reached() for making in self.makings.values()))
        for function, error in self.asserts.errors(reached):
            self.keep(function, error)
        # The device that kept a section, or a part above it, from running.
        missing: dict[int | None, str] = {}
        for function in order:
            above = lecture.functions[function].parent
            missing[function] = self.needs.get(function) or missing.get(above, "")
        made = tuple(self.making(function).section(missing[function]) for function in order)
        called = {function for making in self.makings.values() for function in making.called}
        shown = (i for i, is_section in enumerate(numbering.is_section) if not is_section or i in called)
        definitions = tuple(numbering.definition(function, reached) for function in shown)
        return model.Record(
            schema=model.SCHEMA,
            lecture=lecture.name,
            title=lecture.title,
            environment=environment,
            sources=lecture.sources(),
            definitions=definitions,
            sections=made,
            seconds=round(self.seconds, 4),
            peak=self.peak,
            asked=asked,
            asserts=self.asserts.entries(reached),
        )
