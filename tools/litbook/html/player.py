"""A record -> what the player of one page steps through: a small script of data beside the page.

The data is a classic script, because `fetch` and modules fail where a site is opened from a folder. It is
JSON and holds no HTML: the player puts every text into the page as text. Steps and values are rows of
numbers, each stored as its difference to the one above it, so that most have one digit; `assets/stepping.js`
adds them up.

A step is a statement that has just run. A value that a caller took after a call returned would belong to the
last line of the helper; so the caller's line is inserted as one more step there. Where steps are missing, a
remark says so: a section that did not run in this build, calls and iterations that were only counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from litbook.html import elements
from litbook.html.elements import Html, tag
from litbook.i18n import _, ngettext
from litbook.page import margin, sitemap
from litbook.page.sitemap import LinkTarget, Sitemap
from litbook.page.timeline import Moment, moments
from litbook.page.view import error_origin, gather, recorded_sections
from litbook.record.device_kinds import needs
from litbook.record.limits import CALLS, STEPS
from litbook.record.model import Local, Record, Section, Statement, Tensor, Value
from litbook.record.ranks import of_rank
from litbook.values import formatting
from litbook.values.drawable import has_storage, indices

SUFFIX = ".player.js"
REGISTER = "litbookSteps"  # the object of the page that data puts itself into

ValueRow = tuple[int, ...]
# A side of a claim that is a name, or what is asked of one: `x`, `x.stride()`, `x[0]`.
_NAMED = re.compile(
    r"(?!(?:True|False|None)\b)[A-Za-z_][\w.]*(?:\(\)|\[[\w:, -]{1,12}\])*(?:\.\w+(?:\(\))?)?"
)


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
    # [of which row of `values`, storage, elements of it in the order of the tensor, all of its elements,
    # the last two sizes of its shape]
    memories: list[list[object]] = field(default_factory=list)
    # (step, iteration from 1, of how many, the loop's last line)
    turns: list[ValueRow] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
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
    return tag("div", class_="lb-player", data_steps=way, data_page=page, data_ranks=ranks, hidden=True)


def script(page: str, track: Track) -> str:
    """The track as a script that registers it under the page's name."""
    plain = {
        name: differences(value) if name in ("steps", "values", "turns") else value
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

    def __init__(self, record: Record, section: Section) -> None:
        self.section = section
        self.called = [record.callee(section, frame) for frame in range(len(section.frames))]
        self.claims = {claim.line: claim for claim in section.claims}
        # By step: the iteration that begins there, of how many, and how many were folded right before it. A
        # loop's header is a step before the first iteration and before each further one that was kept.
        headers: dict[tuple[int, int], list[int]] = {(loop.frame, loop.line): [] for loop in section.loops}
        for i, (frame, statement) in enumerate(section.steps):
            headers.get((frame, self.statement(frame, statement).first), []).append(i)
        self.turns: dict[int, tuple[int, int, int]] = {}
        for loop in section.loops:
            steps = headers[loop.frame, loop.line]
            for before, turn, step in zip((-1, *loop.kept), loop.kept, steps, strict=False):
                self.turns[step] = turn, loop.count, turn - before - 1
            del steps[: max(1, len(loop.kept))]
        self.frame_of: dict[int, int] = {}
        self.last: dict[int, int] = {}  # frame -> the statement that ran there last
        self.end = 0  # the last step of the track that is the section's
        self.calls: dict[int, dict[tuple[int, int], int]] = {}  # frame -> (line, called) -> calls from there

    def statement(self, frame: int, number: int) -> Statement:
        """What ran at a step."""
        return self.called[frame].statements[number]


class _TrackBuilder:
    """One track in the making."""

    def __init__(self, book: Sitemap, page: str) -> None:
        self.book, self.page, self.record = book, page, book.record
        self.track = Track()
        self.entries: dict[str, _Progress] = {}
        self.storages: dict[tuple[str, int], int] = {}  # (section, its storage) -> storage
        self.index_of: dict[tuple[str, str], int] = {}  # ("names" or "texts", what) -> index
        # (whether of a section, its key, statement) -> index
        self.line_of: dict[tuple[bool, str, int], int] = {}
        self.file_of: dict[int, int] = {}
        self.latest: dict[tuple[int, int], int] = {}  # (frame, name) -> the text that it has now
        self.places: list[tuple[int, int, int]] = []  # of each of the track's lines: file, first, last
        self._file(book.file[page])

    def take(self, moment: Moment) -> None:
        """The next moment of one of the page's sections."""
        section, step, value = moment
        if section.key not in self.entries:
            self.entries[section.key] = _Progress(self.record, section)
        entry = self.entries[section.key]
        if isinstance(value, Local):  # a local name that has another value than before
            if self._is_in(entry, value.frame):
                self._add_shown_value(entry, value.frame, value.name, value.value)
        elif value is not None:
            self._value(entry, value)
        elif _is_shown(self.record, section, *section.steps[step]):
            self._step(entry, *section.steps[step])
            if step in entry.turns:  # an iteration begins, perhaps after some that were folded
                entry.calls.pop(section.steps[step][0], None)
                turn, count, folded = entry.turns[step]
                at = len(self.track.steps) - 1
                frame, number = section.steps[step]
                loop, first = entry.statement(frame, number), entry.called[frame].first
                self.track.turns.append((at, turn + 1, count, first + max(loop.last, loop.end)))
                if folded:
                    text = ngettext("… {n} iteration folded", "… {n} iterations folded", folded)
                    self.track.remarks.append([at, text])

    def finish(self) -> Track:
        """The track, when all moments were taken."""
        track = self.track
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
        entry.last[frame] = number
        section, track = entry.section, self.track
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
            call, called = entry.section.frames[frame], entry.called[frame]
            parent, line = -1, 0
            if call.called and call.parent is not None:
                parent, line = self._frame(entry, call.parent), entry.called[call.parent].first + call.line
            texts = ((name, formatting.line(entry.section.snapshots[at])) for name, at in call.arguments)
            arguments = [[name, self._index("texts", text)] for name, text in texts]
            entry.frame_of[frame] = len(self.track.frames)
            self.track.frames.append([called.name, parent, line, arguments, self._file(called.file)])
        return entry.frame_of[frame]

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
                track.claims.append(
                    [claim.verdict, caption, margin.side_values(claim, entry.section.snapshots)]
                )
        return self.line_of[key]

    def _is_in(self, entry: _Progress, frame: int) -> bool:
        """Whether anything is shown of a frame; if so it is the one of the last step from now on."""
        steps = self.track.steps
        if frame in entry.last and (not steps or steps[-1][0] != entry.frame_of[frame]):
            self._step(entry, frame, entry.last[frame])
        return frame in entry.last

    def _value(self, entry: _Progress, value: Value) -> None:
        """A value that was inspected, where anything is shown of its frame."""
        frame, steps = value.frame, self.track.steps
        if not self._is_in(entry, frame):
            return
        name, index = self._asked_name(value.text), -1
        if value.kind != "clear":
            text = "✗ " + (value.error or _("no value"))
            if not value.error and value.value is not None:
                kept = entry.section.snapshots[value.value]
                self.latest[entry.frame_of[frame], name] = self._index("texts", formatting.line(kept))
                text = formatting.line(kept, value.unit)
                text += " · " + _("measured") if value.kind == "measure" else ""
            index = self._index("texts", text)
        self._memory(entry, value.value)
        self.track.values.append((len(steps) - 1, entry.frame_of[frame], name, index))

    def _add_shown_value(self, entry: _Progress, frame: int, text: str, value: int | None) -> None:
        """A value that the step which has just been told looked at, unless it is shown already."""
        at = entry.frame_of[frame], self._index("names", formatting.plain_line(text))
        index = -1
        if value is not None:
            index = self._index("texts", formatting.line(entry.section.snapshots[value]))
        if self.latest.get(at, -1) != index:
            self._memory(entry, value)
            self.track.values.append((len(self.track.steps) - 1, *at, index))
            self.latest[at] = index

    def _asked_name(self, text: str) -> int:
        """The index of a name or expression that somebody asked for: it stands above other local names."""
        name = self._index("names", formatting.plain_line(text))
        if name not in self.track.asked:
            self.track.asked.append(name)
        return name

    def _memory(self, entry: _Progress, value: int | None) -> None:
        """The storage under a small tensor, which the next row of values shows."""
        shown = None if value is None else entry.section.snapshots[value]
        if isinstance(shown, Tensor) and shown.storage is not None and has_storage(shown):
            at = self.storages.setdefault((entry.section.key, shown.storage), len(self.storages))
            texts = [formatting.number(number).removesuffix(".0") for number in shown.memory or ()]
            row = len(self.track.values)
            self.track.memories.append([row, at, indices(shown), texts, [*shown.shape][-2:]])

    def _index(self, kind: str, text: str) -> int:
        table: list[str] = getattr(self.track, kind)
        at = self.index_of.setdefault((kind, text), len(table))
        if at == len(table):
            table.append(text)
        return at


def _lines(entry: LinkTarget) -> Iterator[tuple[int, int]]:
    """Its lines, each with the number of their file."""
    return ((entry.file, line) for line in range(entry.first, entry.last + 1))
