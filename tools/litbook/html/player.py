"""A record -> what the player of one page steps through: a small script of data beside the page.

The data is a classic script, because `fetch` and modules fail where a site is opened from a folder. It is
JSON and holds no HTML: the player puts every text into the page as text. Steps and values are rows of
numbers, each stored as its difference to the one above it, so that most have one digit; `assets/stepping.js`
adds them up.

A step is a statement that has just run. A value that a caller took after a call returned would belong to the
last line of the helper; so the caller's line is inserted as one more step there. Where steps are missing, a
remark says so: a section that did not run in this build, calls and iterations that were only counted.

No value is shown as what a name holds unless that is known. What no object can become (a number, a text, a
dtype) is known until the name is given another value, is deleted, or a fold of a loop that does so lies
between. What can be changed in place (`Track.passing`) is known in the step that looked at it, and is said
afterwards with the line that it was seen at. A generator's frame is told anew each time that it goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import structs

from litbook.html import elements
from litbook.html.elements import Html, tag
from litbook.i18n import _, ngettext
from litbook.page import margin, sitemap
from litbook.page.sitemap import LinkTarget, Sitemap
from litbook.page.timeline import Moment, moments
from litbook.page.view import error_origin, gather, recorded_sections
from litbook.python import liveness
from litbook.python.nodes import lines_of
from litbook.record.device_kinds import needs
from litbook.record.limits import CALLS, STEPS
from litbook.record.model import (
    Definition,
    Local,
    Record,
    Section,
    Snapshot,
    Statement,
    Tensor,
    Value,
    is_constant,
)
from litbook.record.ranks import of_rank
from litbook.values import formatting
from litbook.values.drawable import has_storage, indices, reread

SUFFIX = ".player.js"
REGISTER = "litbookSteps"  # the object of the page that data puts itself into

ValueRow = tuple[int, ...]
# A side of a claim that is a name, or what is asked of one: `x`, `x.stride()`, `x[0]`.
_NAMED = re.compile(
    r"(?!(?:True|False|None)\b)[A-Za-z_][\w.]*(?:\(\)|\[[\w:, -]{1,12}\])*(?:\.\w+(?:\(\))?)?"
)


_NAMES = re.compile(r"(?<![\w.])[^\W\d]\w*")
_OF_CONSTANTS = re.compile(
    r"(?:[\w\s+*/%<>=!-]|(?<=\d)\.(?=\d))+"
)  # names and numbers, and no call, item or bracket
# What gives a tensor another shape, other strides or another storage in its place.
_LAYOUT = re.compile(
    r"\.(?:t|transpose|swapaxes|swapdims|squeeze|unsqueeze|resize|resize_as|set|as_strided)_\("
    r"|\.(?:data|shape|strides|dtype)\s*=[^=]|\.resize\(|swap_tensors"
)


# What may change an object where no statement says so: an operator of a class, a thread, a dict that fills
# itself; and where an attribute is read.
_LOUD = re.compile(
    r"def __(?!init__|repr__|str__|post_init__|call__|get)|defaultdict|thread|concurrent|asyncio|weakref"
    r"|signal|multiprocessing|atexit|settrace|hook"
)
_GETTING = re.compile(r"property|def __get")
_GOT = re.compile(r"[\w)\]]\.[^\W\d]")


@dataclass
class Track:
    """The steps of one page. Indices count from 0 into the lists of this track."""

    files: list[list[str]] = field(default_factory=list)  # [start of its lines' ids, name; "" for the page's]
    # [name, caller or -1, its line, arguments, file]
    frames: list[list[object]] = field(default_factory=list)
    lines: list[ValueRow] = field(
        default_factory=list
    )  # (first, last, claim or -1) of each statement that ran
    steps: list[ValueRow] = field(default_factory=list)  # (frame, line)
    values: list[ValueRow] = field(default_factory=list)  # (step, frame, name, text or -1 where cleared)
    # (of which row of `values`, storage read as one dtype, index into `reads`, into `cells`)
    memories: list[ValueRow] = field(default_factory=list)
    # (step, iteration from 1, of how many, the loop's last line)
    turns: list[ValueRow] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    passing: list[int] = field(
        default_factory=list
    )  # of the texts those that only their own step vouches for
    quiet: list[int] = field(default_factory=list)  # the steps that change no object
    cells: list[list[str]] = field(default_factory=list)  # what storages held
    reads: list[list[list[int]]] = field(
        default_factory=list
    )  # [elements of a storage in the order of a tensor, its last two sizes]
    asked: list[int] = field(default_factory=list)  # of the names those inspected, or a claim's
    texts: list[str] = field(default_factory=list)
    claims: list[list[str]] = field(default_factory=list)  # [verdict, caption, both sides]
    sections: list[list[object]] = field(default_factory=list)  # [step, heading, anchor]
    notes: list[list[object]] = field(default_factory=list)  # [step, what the speaker says]
    remarks: list[list[object]] = field(default_factory=list)  # [step, what is missing there]
    errors: list[list[object]] = field(default_factory=list)  # [step, message]
    code: list[list[object]] = field(default_factory=list)  # [file, first line, lines] of what is elsewhere


def data(record: Record, recordings: Sequence[Record] = ()) -> dict[str, str]:
    """File names below the lecture's folder to scripts: one for each page that has steps.

    All steps are those of `record`. Of sections that did not run it is told which of the `recordings` their
    page shows.
    """
    made = dict[str, str]()
    for rank in range(max([1, *(len(section.shares) for section in record.sections)])):
        # The record as this rank has it; a section that ran on fewer as it is.
        of = _("rank {n}", n=rank)
        sections = (
            structs.replace(of_rank(section, rank), heading=f"{section.heading or section.name} ({of})")
            if rank < len(section.shares)
            else section
            for section in record.sections
        )
        ours = structs.replace(record, sections=tuple(sections))
        book = sitemap.build_sitemap(ours, sitemap.NOTHING_CITED, recordings, [])
        for page, track in tracks(book).items():
            if track.steps and rank < max(1, _ranks(record, book.sections(page))):
                made[file_of(page, rank)] = script(page, track)
    return made


def _ranks(record: Record, sections: Iterable[Section]) -> int:
    """On how many ranks sections of a page ran at most; 0: on none."""
    return max((len(record.by_key[section.key].shares) for section in sections), default=0)


def tracks(book: Sitemap) -> dict[str, Track]:
    """The track of each page, from all that happened, in order."""
    makers = {page: _TrackBuilder(book, page) for page in _pages(book)}
    for moment in moments(book.record):
        maker = makers.get(book.place.get(moment.section.key, ""))
        if maker is not None:
            maker.take(moment)
    return {page: maker.finish() for page, maker in makers.items()}


def file_of(page: str, rank: int = 0) -> str:
    """The data's file beside the Markdown file `page`, as this rank has it."""
    return page.removesuffix(".md") + (f".rank{rank}" if rank else "") + SUFFIX


def host(book: Sitemap, page: str) -> Html:
    """Where the player is opened. Hidden until its script comes, so that nothing dead is shown."""
    steps = ((section, *step) for section in book.sections(page) for step in section.steps)
    if page not in _pages(book) or not any(_is_shown(book.record, *step) for step in steps):
        return elements.NOTHING
    way = ("" if page == sitemap.INDEX else "../") + file_of(page)
    ranks = _ranks(book.record, book.sections(page)) or None
    from_ = [
        book.anchor(section)
        for section in book.sections(page)
        if section.has_run and any(_is_shown(book.record, section, *step) for step in section.steps)
    ]
    told = {"data_steps": way, "data_page": page, "data_ranks": ranks, "data_from": " ".join(from_)}
    return tag("div", class_="lb-player", **told, hidden=True)


def script(page: str, track: Track) -> str:
    """The track as a script that registers it under the page's name."""
    plain = {
        name: differences(value) if name in ("steps", "values", "turns", "memories") else value
        for name, value in vars(track).items()
    }
    text = json.dumps(plain, separators=(",", ":")).replace("<", "\\u003c")
    return f"(window.{REGISTER}=window.{REGISTER}||{{}})[{json.dumps(page)}]={text};\n"


def differences(rows: Iterable[ValueRow]) -> list[int]:
    """Rows of one width in one list: for each number, the difference to the one above it."""
    numbers: list[int] = []
    above: ValueRow = ()
    for row in rows:
        numbers += (b - a for a, b in zip(above or (0,) * len(row), row, strict=True))
        above = row
    return numbers


def _pages(book: Sitemap) -> list[str]:
    """Every page but the contents of a lecture in parts: nothing but calls runs there."""
    return book.pages[1:] or book.pages


def _is_shown(record: Record, section: Section, frame: int, statement: int) -> bool:
    called = record.callee(section, frame)
    return not called.hidden and called.statements[statement].kind != "hidden"


# ---------------------------------------------------------------------------- a track in the making


class _Progress:
    """One section's part of a track."""

    def __init__(self, book: Sitemap, section: Section) -> None:
        record, self.section = book.record, section
        self.called = [record.callee(section, frame) for frame in range(len(section.frames))]
        self.claims = {claim.line: claim for claim in section.claims}
        # By step: the iteration that begins there, of how many, and how many were folded right before it. A
        # loop's header is a step before the first iteration and before each further one that was kept.
        headers: dict[tuple[int, int], list[int]] = {(loop.frame, loop.line): [] for loop in section.loops}
        for i, (frame, statement) in enumerate(section.steps):
            headers.get((frame, self.statement(frame, statement).first), []).append(i)
        self.turns: dict[int, tuple[int, int, int]] = {}
        counts = dict.fromkeys(headers, 0)
        for loop in section.loops:
            counts[loop.frame, loop.line] += max(1, len(loop.kept))
        # Where a header's steps are not those of all iterations, none can be told from another.
        self.uncounted = {step for at, steps in headers.items() if len(steps) != counts[at] for step in steps}
        for loop in section.loops:
            steps = headers[loop.frame, loop.line]
            for before, turn, step in zip((-1, *loop.kept), loop.kept, steps, strict=False):
                if step not in self.uncounted:
                    self.turns[step] = turn, loop.count, turn - before - 1
            del steps[: max(1, len(loop.kept))]
        # By frame, which names only its own steps exchange, and whether it stops half-way.
        facts = {called.key: _liveness(record, called) for called in self.called}
        self.liveness = [facts[called.key] for called in self.called]
        self.frame_of: dict[int, int] = {}
        self.last: dict[int, int] = {}  # frame -> the statement that ran there last, of those that are shown
        self.told: set[tuple[int, int, int, str]] = set()  # values, where some steps were not kept
        self.here: dict[int, int] = {}  # frame -> the statement that ran there last, shown or not
        self.running = -1  # the frame of the last step
        self.end = 0  # the last step of the track that is the section's
        # The frame, the statement and the step after which nothing ran that is not shown.
        self.settled: tuple[int, int, int] | None = None
        self.calls: dict[int, dict[tuple[int, int], int]] = {}  # frame -> (line, called) -> calls from there

    def statement(self, frame: int, number: int) -> Statement:
        """What ran at a step."""
        return self.called[frame].statements[number]

    def is_hidden(self, frame: int) -> bool:
        """Whether no page shows the statement that ran last in a frame."""
        called = self.called[frame]
        return frame in self.here and (called.hidden or called.statements[self.here[frame]].kind == "hidden")

    def callers(self, frame: int) -> Iterator[int]:
        """The frame, the one that called it, and so on."""
        at: int | None = frame
        while at is not None and at >= 0:
            yield at
            at = self.section.frames[at].parent

    def bound_in(self, frame: int, loop: Statement) -> set[str]:
        """The names to which statements of a loop, or its header, give another value."""
        given, lines = self.liveness[frame].given, loop.line_range
        return {name for line, names in given.items() if line in lines for name in names}

    def is_of_step(self, value: Value) -> bool:
        """Whether a value was taken after the step that it is told at, where some steps were not kept."""
        if not self.section.full:
            return True
        told = value.step, value.frame, value.line, value.text
        if value.frame not in self.here or told in self.told:
            return False
        self.told.add(told)
        ran = self.statement(value.frame, self.here[value.frame])
        return ran.first <= value.line <= ran.last


class _TrackBuilder:
    """One track in the making."""

    def __init__(self, book: Sitemap, page: str) -> None:
        self.book, self.page, self.record = book, page, book.record
        self.track = Track()
        self.entries: dict[str, _Progress] = {}
        self.storages: dict[tuple[str, int, str], int] = {}  # (section, its storage, dtype) -> storage
        self.index_of: dict[tuple[object, ...], int] = {}  # (list of the track, what stands in it) -> index
        # (whether of a section, its key, statement) -> index
        self.line_of: dict[tuple[bool, str, int], int] = {}
        self.file_of: dict[int, int] = {}
        self.latest: dict[int, dict[int, _Known]] = {}  # frame -> name -> what is shown of it now
        self.pending: list[ValueRow] = []  # rows that come with the next step
        self.layout_lines: dict[int, set[int]] = {}  # file -> those that `_LAYOUT` finds
        self.ends: dict[tuple[int, int], int] = {}  # (frame, name) -> the step after which it is not known
        self.passing: set[int] = set()
        self.loud = any(_LOUD.search(source.text) for source in book.record.sources)
        self.getting = any(_GETTING.search(source.text) for source in book.record.sources)
        self.places: list[tuple[int, int, int]] = []  # of each of the track's lines: file, first, last
        self._file(book.file[page])

    def take(self, moment: Moment) -> None:
        """The next moment of one of the page's sections."""
        section, step, value = moment
        if section.key not in self.entries:
            self.entries[section.key] = _Progress(self.book, section)
        entry = self.entries[section.key]
        if isinstance(value, Local):  # a local name that was looked at
            if self._is_in(entry, value.frame):
                self._add_shown_value(entry, value.frame, value.name, value.value)
        elif value is not None:
            self._value(entry, value)
        else:
            self._take_step(entry, step)

    def _take_step(self, entry: _Progress, step: int) -> None:
        """A statement runs: it is a step of the track, or hidden; and some names are not known any more."""
        frame, number = entry.section.steps[step]
        statement, called = entry.statement(frame, number), entry.called[frame]
        if step in entry.uncounted or entry.turns.get(step, (0, 0, 0))[2]:
            entry.settled = None
        if hidden := not _is_shown(self.record, entry.section, frame, number):
            entry.here[frame], entry.running, entry.settled = number, frame, None
        else:
            self._step(entry, frame, number)
        if frame not in entry.frame_of:
            return
        at = len(self.track.steps) - 1 + hidden
        turn, count, folded = entry.turns.get(step, (0, 0, 0))
        names = {*entry.liveness[frame].given.get(statement.first, statement.binds)}
        if folded or step in entry.uncounted or (turn and entry.section.full):
            names |= entry.bound_in(frame, statement)
        self._forget(entry.frame_of[frame], names, at)
        if statement.first + called.first in self._layout_lines(called.file):
            self._forget_layouts(entry, at)
        if not hidden and step in entry.turns:  # an iteration begins, perhaps after some that were folded
            entry.calls.pop(frame, None)
            self.track.turns.append((at, turn + 1, count, called.first + max(statement.last, statement.end)))
            if folded:
                text = ngettext("… {n} iteration folded", "… {n} iterations folded", folded)
                self.track.remarks.append([at, text])

    def _forget(self, frame: int, names: Collection[str], at: int) -> None:
        """From a step on these names of a frame are not known, and no constant expression that reads one."""
        for name, known in self.latest.get(frame, {}).items() if names else ():
            if (known.lasts or known.is_name) and not known.reads.isdisjoint(names):
                self.ends.setdefault((frame, name), at)

    def _forget_layouts(self, entry: _Progress, at: int) -> None:
        """From a step on no tensor is known to have the shape and strides that it had."""
        for frame in entry.frame_of.values():
            for name, known in self.latest.get(frame, {}).items():
                if known.tensor:
                    self.ends.setdefault((frame, name), at)

    def _layout_lines(self, file: int) -> set[int]:
        """The lines that may give a tensor another layout in place, of whatever name."""
        if file not in self.layout_lines:
            lines = enumerate(lines_of(self.record.sources[file].text), 1)
            self.layout_lines[file] = {number for number, line in lines if _LAYOUT.search(line)}
        return self.layout_lines[file]

    def _end_values(self) -> None:
        """Before the next step: what hidden lines left comes with it, and what is not known any more goes."""
        self.track.values += self.pending
        self.pending.clear()
        for (frame, name), at in self.ends.items():
            self.track.values.append((at, frame, name, -1))
            self.latest[frame].pop(name, None)
        self.ends.clear()

    def finish(self) -> Track:
        """The track, when all moments were taken."""
        track = self.track
        self.pending.clear()
        self.ends = {key: at for key, at in self.ends.items() if at < len(track.steps)}
        self._end_values()
        for entry in self.entries.values():
            section = entry.section
            kept = len(section.steps) + len(section.frames) + len(section.values)
            if entry.frame_of and section.dropped and kept >= STEPS:
                text = _("… from here on the steps of this section were only counted")
                track.remarks.append([entry.end, text])
        places = [self.places[line] for _, line in track.steps]  # of each step: file, first, last
        for section in (s for s in self.book.sections(self.page) if s.key in self.entries):
            # A speaker note comes with the first step that it stands before; at the end, with the last one.
            frames = self.entries[section.key].frame_of
            for piece in (piece for piece in section.pieces if piece.kind == "speaker"):
                steps = [i for i, (frame, _) in enumerate(track.steps) if frame == frames.get(piece.frame)]
                later = (i for i in steps if places[i][1] > section.first + piece.line)
                track.notes.append([next(later, steps[-1] if steps else 0), piece.text])
            # An exception stands at the last step of its line: of its trace the last that is the lecture's.
            for error in (error for error in section.errors if error.kind != "inspect"):
                file, line = error_origin(self.record, section, error)
                at = [i for i, (its, a, b) in enumerate(places) if its == file and a <= line <= b]
                track.errors += [[at[-1], formatting.plain_line(error.message)]] if at else []
        # Source lines of helpers whose listing is on another page, or on none.
        listed: list[LinkTarget] = [*self.book.sections(self.page), *self.book.definitions(self.page)]
        lost = {place[:2] for place in self.places}.difference(*map(_lines, listed))
        for definition in self.record.definitions:
            if definition.kind == "helper" and not lost.isdisjoint(_lines(definition)):
                lines = self.book.lines[definition.file][definition.first - 1 : definition.last]
                code = [formatting.plain_line(line.text) for line in lines]
                track.code.append([self._file(definition.file), definition.first, code])
        return track

    def _step(self, entry: _Progress, frame: int, number: int) -> None:
        """A statement that has run."""
        self._end_values()
        section, track = entry.section, self.track
        goes_on = frame in entry.frame_of and entry.liveness[frame].suspends
        if goes_on and frame not in entry.callers(entry.running):
            self._resume(entry, frame)
        entry.last[frame] = entry.here[frame] = number
        entry.running = frame
        if frame not in entry.frame_of:
            self._count(entry, frame)
            self._frame(entry, frame)
            if needs(section.requires).simulated and not section.frames[frame].called:
                track.remarks.append([len(track.steps), _(margin.SIMULATED)])
            if not section.frames[frame].called:
                track.sections.append(
                    [len(track.steps), sitemap.plain_title(section), self.book.anchor(section)]
                )
        entry.end = len(track.steps)
        if self._is_quiet(entry, frame, number):
            track.quiet.append(entry.end)
        entry.settled = None if entry.section.full else (frame, number, entry.end)
        track.steps.append((entry.frame_of[frame], self._line(entry, frame, number)))
        # What a claim has looked at is known there, too: names and what is asked of them, not constants.
        called = section.frames[frame].called
        claim = None if called else entry.claims.get(entry.statement(frame, number).first)
        for side in claim.operands if claim is not None and claim.count == 1 else ():
            if side.value is not None and _NAMED.fullmatch(side.text):
                self._asked_name(side.text)
                self._add_shown_value(entry, frame, side.text, side.value)
        # A section that did not run has no step; its call says why, and whose values the page shows.
        call, recordings = entry.statement(frame, number), self.book.recordings
        missing = self.record.by_key.get(call.target) if call.kind == "section" else None
        if missing is not None and missing.requires and not missing.has_run:
            evidence = gather(self.record, missing, recordings)
            why = margin.absence(missing.requires, evidence, recorded_sections(missing, recordings))
            track.sections.append([entry.end, sitemap.plain_title(missing), self.book.anchor(missing)])
            track.remarks.append([entry.end, formatting.plain_line(why)])

    def _is_quiet(self, entry: _Progress, frame: int, number: int) -> bool:
        """Whether no object has changed since the step before, which was one of this frame and settled."""
        if self.loud or entry.settled is None:
            return False
        of, before, at = entry.settled
        if of != frame or at != len(self.track.steps) - 1:
            return False
        called, quiet = entry.called[frame], entry.liveness[frame].quiet
        lines = self.book.lines[called.file]
        for which in (before, number):
            ran = called.statements[which]
            texts = [lines[called.first + line - 1].text for line in range(ran.first, ran.last + 1)]
            asks = any(re.search(r"# *@.*\(", text) for text in texts)  # it may change what it asks
            asks |= self.getting and which == number and any(map(_GOT.search, texts))
            claims = called is entry.section and ran.first in entry.claims
            if asks or (ran.first not in quiet and (which == number or claims)):
                return False
        return True

    def _count(self, entry: _Progress, frame: int) -> None:
        """The last call of a helper that was kept, where more of them may have been only counted.

        The recorder counts them by line, and anew in each iteration; in all it says whether there were any.
        """
        call = entry.section.frames[frame]
        if call.parent is None or not call.called or not entry.section.dropped:
            return
        of_parent, key = entry.calls.setdefault(call.parent, {}), (call.line, call.called)
        of_parent[key] = of_parent.get(key, 0) + 1
        if of_parent[key] == CALLS:
            text = _(
                "… call {n} of {name} on line {line}: any after it were only counted",
                n=CALLS, name=entry.called[frame].name, line=entry.called[call.parent].first + call.line,
            )  # fmt: skip
            self.track.remarks.append([len(self.track.steps), text])

    def _frame(self, entry: _Progress, frame: int) -> int:
        """The frame's own index, after that of its callers."""
        if frame not in entry.frame_of:
            call = entry.section.frames[frame]
            parent, line = -1, 0
            if call.called and call.parent is not None:
                parent, line = self._frame(entry, call.parent), entry.called[call.parent].first + call.line
            texts = ((name, formatting.line(entry.section.snapshots[at])) for name, at in call.arguments)
            arguments = [[name, self._index("texts", text, True)] for name, text in texts]
            self._add_frame(entry, frame, parent, line, arguments)
        return entry.frame_of[frame]

    def _resume(self, entry: _Progress, frame: int) -> None:
        """A frame that had stopped goes on: what its names hold is not known, perhaps not who asked it."""
        *_rest, arguments, _file = self.track.frames[entry.frame_of[frame]]
        caller, parent, line = entry.section.frames[frame].parent, -1, 0
        if caller is not None and caller in entry.callers(entry.running) and caller in entry.last:
            parent = entry.frame_of[caller]
            line = entry.called[caller].first + entry.statement(caller, entry.last[caller]).first
        self._add_frame(entry, frame, parent, line, arguments)

    def _add_frame(self, entry: _Progress, frame: int, parent: int, line: int, arguments: object) -> None:
        called = entry.called[frame]
        entry.frame_of[frame] = len(self.track.frames)
        self.track.frames.append([called.name, parent, line, arguments, self._file(called.file)])

    def _file(self, file: int) -> int:
        if file not in self.file_of:
            self.file_of[file] = len(self.track.files)
            prefix = self.book.prefix(self.page, file)
            name = self.record.sources[file].path.rpartition("/")[2] if prefix else ""
            self.track.files.append([prefix, name])
        return self.file_of[file]

    def _line(self, entry: _Progress, frame: int, number: int) -> int:
        """The index of a statement; beside it stands its claim: verdict, caption, both sides."""
        called, track = entry.called[frame], self.track
        key = isinstance(called, Section), called.key, number
        if key not in self.line_of:
            statement = entry.statement(frame, number)
            claim = entry.claims.get(statement.first) if called is entry.section else None
            self.line_of[key] = len(track.lines)
            first, last = called.first + statement.first, called.first + statement.last
            self.places.append((called.file, first, last))
            track.lines.append((first, last, -1 if claim is None else len(track.claims)))
            if claim is not None:
                caption = formatting.plain_line(re.sub(r"[`*]", "", margin.caption(claim)) or claim.text)
                sides = margin.side_values(claim, entry.section.snapshots)
                if claim.count > 1:  # they are those of one time, and the line's step is told at each
                    sides = _("judged {n} times", n=claim.count)
                track.claims.append([claim.verdict, caption, sides])
        return self.line_of[key]

    def _is_in(self, entry: _Progress, frame: int) -> bool:
        """Whether anything is shown of a frame; if so it is the one of the last step from now on."""
        steps = self.track.steps
        if frame in entry.last and not entry.is_hidden(frame):  # else the step that is shown came before
            if not steps or steps[-1][0] != entry.frame_of[frame]:
                self._step(entry, frame, entry.last[frame])
        return frame in entry.last

    def _value(self, entry: _Progress, value: Value) -> None:
        """A value that was inspected, where anything is shown of its frame."""
        if not entry.is_of_step(value) or not self._is_in(entry, value.frame):
            return
        self._asked_name(value.text)
        if value.kind == "clear" or value.error or value.value is None:
            text = "" if value.kind == "clear" else "✗ " + (value.error or _("no value"))
            self._add_value(entry, value.frame, value.text, text)
            return
        kept = entry.section.snapshots[value.value]
        text = formatting.line(kept, value.unit)
        text += " · " + _("measured") if value.kind == "measure" else ""
        self._add_value(entry, value.frame, value.text, text, kept, value.reads)

    def _add_shown_value(self, entry: _Progress, frame: int, text: str, value: int | None) -> None:
        """A value that the step which has just been told looked at."""
        if value is None:
            self._add_value(entry, frame, text, "")
        else:
            kept = entry.section.snapshots[value]
            self._add_value(entry, frame, text, formatting.line(kept), kept, again=True)

    def _add_value(
        self,
        entry: _Progress,
        frame: int,
        called: str,
        text: str,
        kept: Snapshot | None = None,
        reads: Collection[str] = (),
        again: bool = False,
    ) -> None:
        """What a name or expression of a frame is from now on; nothing is known of it where there is no text.

        A value that was looked at `again`, and is what is shown, stays as it is shown: perhaps in a unit.
        """
        of, steady = entry.frame_of[frame], entry.liveness[frame].steady
        key = of, self._index("names", formatting.plain_line(called))
        hidden = entry.is_hidden(frame)
        known = self.latest.setdefault(of, {})
        at, before = len(self.track.steps) - 1 + hidden, known.get(key[1])
        names = frozenset(reads or _NAMES.findall(called))
        lasts = kept is not None and is_constant(kept) and names <= steady
        if lasts and called not in names:  # of an expression all that it is made of must be known to last
            held = [self._index("names", name) for name in names] if _OF_CONSTANTS.fullmatch(called) else [-1]
            lasts = all(one in known and known[one].lasts and (of, one) not in self.ends for one in held)
        if hidden and not lasts:  # the next step that is shown may have changed it, and its own is not shown
            text = ""
        if not text:
            if before is not None:
                self.ends.setdefault(key, at)
            return
        plain = text if kept is None else formatting.line(kept)
        if again and before is not None and before.plain == plain:
            if before.lasts and lasts and key not in self.ends:
                return
            text = before.text
        ended = self.ends.pop(key, None)
        if ended is not None and ended < at:
            self.track.values.append((ended, *key, -1))
        tensor = kept if isinstance(kept, Tensor) else None
        known[key[1]] = _Known(text, plain, lasts, names, called in names, tensor)
        index = self._index("texts", text, lasts)
        if not lasts and index not in self.passing:
            self.passing.add(index)
            self.track.passing.append(index)
        if hidden:
            self.pending.append((at, *key, index))
        else:
            self._memory(entry, kept)
            self.track.values.append((at, *key, index))
            if isinstance(kept, Tensor) and not entry.section.full:
                self._redraw(entry, key, kept, at)

    def _redraw(self, entry: _Progress, looked: tuple[int, int], seen: Tensor, at: int) -> None:
        """The storage of a tensor was looked at: what other names read of it is known again, too."""
        if seen.storage is None or not has_storage(seen):
            return
        for frame in entry.callers(entry.running):
            of, steady = entry.frame_of.get(frame, -1), entry.liveness[frame].steady
            for name, known in self.latest.get(of, {}).items():
                before = known.tensor
                if (of, name) == looked or (of, name) in self.ends or before is None or before is seen:
                    continue
                same = (before.storage, before.storage_bytes) == (seen.storage, seen.storage_bytes)
                if not (same and known.is_name and known.reads <= steady and has_storage(before)):
                    continue
                if (now := reread(before, seen)) is None:
                    continue
                text = formatting.line(now)
                if known.plain not in (text, known.text):
                    continue  # it is shown in a unit
                text = known.text if text == known.plain else text
                self.latest[of][name] = known._replace(text=text, plain=formatting.line(now), tensor=now)
                index = self._index("texts", text, known.lasts)
                if index not in self.passing:
                    self.passing.add(index)
                    self.track.passing.append(index)
                self._memory(entry, now)
                self.track.values.append((at, of, name, index))

    def _asked_name(self, text: str) -> int:
        """The index of a name or expression that somebody asked for: it stands above other local names."""
        name = self._index("names", formatting.plain_line(text))
        if name not in self.track.asked:
            self.track.asked.append(name)
        return name

    def _memory(self, entry: _Progress, shown: Snapshot | None) -> None:
        """The storage under a small tensor, read as its dtype, which the next row of values shows."""
        if isinstance(shown, Tensor) and shown.storage is not None and has_storage(shown):
            of = entry.section.key, shown.storage, shown.dtype
            at = self.storages.setdefault(of, len(self.storages))
            texts = [formatting.number(number).removesuffix(".0") for number in shown.memory or ()]
            reads = self._index("reads", [indices(shown), [*shown.shape][-2:]])
            self.track.memories.append((len(self.track.values), at, reads, self._index("cells", texts)))

    def _index(self, kind: str, what: object, *more: object) -> int:
        """Where in a list of the track something stands, each once; `more` tells apart what looks alike."""
        table: list[object] = getattr(self.track, kind)
        at = self.index_of.setdefault((kind, str(what), *more), len(table))
        if at == len(table):
            table.append(what)
        return at


class _Known(NamedTuple):
    """What is shown of a name or expression."""

    text: str
    plain: str  # the same without a unit
    lasts: bool  # it is constant, and only steps of its own frame give the name another value
    reads: frozenset[str]  # the names in it
    is_name: bool
    tensor: Tensor | None  # where it is one


def _liveness(record: Record, called: Section | Definition) -> liveness.Liveness:
    """Which of a function's names only its own statements exchange."""
    if called.kind in ("module", "class"):  # whose names anybody may set
        return liveness.Liveness()
    lines = lines_of(record.sources[called.file].text)[called.first - 1 : called.last]
    return liveness.of_function("\n".join(lines))


def _lines(entry: LinkTarget) -> Iterator[tuple[int, int]]:
    """Its lines, each with the number of their file."""
    return ((entry.file, line) for line in range(entry.first, entry.last + 1))
