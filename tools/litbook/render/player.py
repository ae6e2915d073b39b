"""A record -> what the player of one page steps through: a small script of data beside the page.

The data is a classic script, because `fetch` and modules fail where a site is opened from a folder. It holds
no HTML: the player puts every text into the page as text. Steps and values are rows of numbers, each row
stored as its difference to the row before, in the base64 numbers of source maps; 50,000 steps take some
100 kB so. The reverse is in `assets/player.js`, and in `unpack` for who wants to check.

A step is a statement that has just run. A value that a caller took after a call returned would belong to the
last line of the helper; so the caller's line is inserted as one more step there. Where steps are missing, a
remark says so: a section that did not run in this build, calls and iterations that were only counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from litbook.record.model import Claim, Record, Statement, Value
from litbook.render import books, margin, markup, values
from litbook.render.books import Book
from litbook.render.evidence import gather, others

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
SUFFIX = ".player.js"
REGISTER = "litbookSteps"  # the object of the page that data puts itself into
UNITS = ("main", "part", "section")
CALLS, STEPS = (
    5,
    5_000,
)  # calls from one line, events of a section: so many the recorder keeps, and counts the rest

Row = tuple[int, ...]


# ---------------------------------------------------------------------------- rows of numbers as text


def pack(rows: Iterable[Row]) -> str:
    """Rows of one width as text: for each number, the difference to the one above it."""
    found: list[str] = []
    above: Row = ()
    for row in rows:
        found += map(_digits, (b - a for a, b in zip(above or (0,) * len(row), row, strict=True)))
        above = row
    return "".join(found)


def unpack(text: str, width: int) -> list[Row]:
    """The rows that `pack` wrote; `width` numbers in each."""
    flat: list[int] = []
    number = shift = 0
    for letter in text:
        digit = DIGITS.index(letter)
        number |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            flat.append(-(number >> 1) if number & 1 else number >> 1)
            number = shift = 0
    rows: list[Row] = []
    for at in range(0, len(flat), width):
        above = rows[-1] if rows else (0,) * width
        rows.append(tuple(a + b for a, b in zip(above, flat[at : at + width], strict=True)))
    return rows


def _digits(number: int) -> str:
    """Sign in the lowest bit, then five bits a digit, lowest first; 32 says that more digits follow."""
    left = abs(number) << 1 | (number < 0)
    text = ""
    while left > 31:
        text += DIGITS[left & 31 | 32]
        left >>= 5
    return text + DIGITS[left]


# ---------------------------------------------------------------------------- what one page steps through


@dataclass
class Track:
    """The steps of one page. Indices count from 0 into the lists of this track."""

    frames: list[list[object]] = field(
        default_factory=list
    )  # [called, parent or -1, line of the call, arguments]
    lines: list[Row] = field(default_factory=list)  # (first, last, claim or -1) of each statement that ran
    steps: list[Row] = field(default_factory=list)  # (frame, line)
    values: list[Row] = field(default_factory=list)  # (step, frame, name, text or -1 where cleared)
    turns: list[Row] = field(default_factory=list)  # (step, iteration from 1, of how many)
    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    claims: list[list[str]] = field(default_factory=list)  # [verdict, caption, both sides]
    sections: list[list[object]] = field(default_factory=list)  # [step, heading, anchor]
    notes: list[list[object]] = field(default_factory=list)  # [step, what the speaker says]
    remarks: list[list[object]] = field(default_factory=list)  # [step, what is missing there]
    errors: list[list[object]] = field(default_factory=list)  # [step, message]
    code: list[list[object]] = field(
        default_factory=list
    )  # [first line, its lines] of helpers on other pages


def data(record: Record, recordings: Sequence[Record] = ()) -> dict[str, str]:
    """File names below the lecture's folder to scripts: one for each page that has steps.

    All steps are those of `record`. Of sections that did not run it is told which of the `recordings` their
    page shows.
    """
    book = books.of(record, books.NOTHING_CITED, recordings, [])
    found = {}
    for page in _pages(book):
        track = _Maker(book, page).made()
        if track.steps:
            found[file_of(page)] = script(page, track)
    return found


def file_of(page: str) -> str:
    """The data's file beside the Markdown file `page`."""
    return page.removesuffix(".md") + SUFFIX


def host(book: Book, page: str) -> str:
    """Where the player is opened. Hidden until its script comes, so that nothing dead is shown."""
    if page not in _pages(book) or not _Maker(book, page).any():
        return ""
    way = ("" if page == books.INDEX else "../") + file_of(page)
    return markup.tag("div", class_="lb-player", data_steps=way, data_page=page, hidden=True)


def script(page: str, track: Track) -> str:
    """The track as a script that registers it under the page's name."""
    plain = {
        name: pack(value) if name in ("steps", "values", "turns") else value
        for name, value in vars(track).items()
    }
    text = json.dumps(plain, separators=(",", ":")).replace("<", "\\u003c")
    return f"(window.{REGISTER}=window.{REGISTER}||{{}})[{json.dumps(page)}]={text};\n"


def _pages(book: Book) -> list[str]:
    """Every page but the contents of a lecture in parts: nothing but calls runs there."""
    return [books.file_of(book, part) for part in book.parts] or [books.INDEX]


class _Maker:
    """One track in the making."""

    def __init__(self, book: Book, page: str) -> None:
        self.book, self.page, self.record = book, page, book.record
        self.track = Track()
        self.home = _homes(self.record)
        self.frame_of: dict[int, int] = {}
        self.line_of: dict[int, int] = {}
        self.last: dict[int, int] = {}  # frame -> the statement that ran there last
        self.known: dict[tuple[str, str], int] = {}  # ("names" or "texts", what) -> index
        self.claim_at = {(c.function, c.line): i for i, c in enumerate(self.record.claims)}
        self.turns = _turns(self.record)
        self.calls: dict[
            int, dict[tuple[int, int], int]
        ] = {}  # frame -> (line, function) -> calls from there

    def any(self) -> bool:
        """Whether there is a step."""
        return any(self._shown(frame, statement) for frame, statement in self.record.steps)

    def made(self) -> Track:
        """The track, from all that happened on the page, in order."""
        after: dict[int, list[Value]] = {}
        for value in self.record.values:
            after.setdefault(value.step, []).append(value)
        for i, (frame, statement) in enumerate(self.record.steps):
            if self._shown(frame, statement):
                self._step(frame, statement)
                self._turn(i)
            for value in after.get(i, ()):
                if self._on_page(value.frame):
                    self._value(value)
        self._full()
        self._said()
        self._errors()
        self._elsewhere()
        return self.track

    def _on_page(self, frame: int) -> bool:
        section = self.home[frame]
        return section is not None and self.book.place.get(section) == self.page

    def _shown(self, frame: int, statement: int) -> bool:
        functions = self.record.functions
        hidden = functions[self.record.frames[frame].function].hidden
        return self._on_page(frame) and not hidden and self.record.statements[statement].kind != "hidden"

    def _step(self, frame: int, statement: int) -> None:
        self.last[frame] = statement
        function = self.record.frames[frame].function
        if frame not in self.frame_of:
            self._called(frame)
            self._frame(frame)
            if self.record.functions[function].kind in UNITS:
                it = self.record.functions[function]
                self.track.sections.append([len(self.track.steps), books.plain(it), it.name])
        self.track.steps.append((self.frame_of[frame], self._line(statement)))
        self._absent(self.record.statements[statement])

    def _absent(self, call: Statement) -> None:
        """A section that did not run has no step; its call says why, and whose values the page shows."""
        functions, target = self.record.functions, call.target
        if call.kind != "section" or target is None or self.record.frames_of.get(target):
            return
        it, recordings = functions[target], self.book.recordings
        if it.requires:
            evidence = gather(self.record, target, recordings)
            why = margin.absence(it.requires, evidence, others(self.record, target, recordings))
            at = len(self.track.steps) - 1
            self.track.sections.append([at, books.plain(it), it.name])
            self.track.remarks.append([at, values.plain(why)])

    def _called(self, frame: int) -> None:
        """The last call of a helper that was kept, where more of them may have been only counted.

        The recorder counts them by line, and anew in each iteration; in all it says whether there were any.
        """
        it = self.record.frames[frame]
        function = self.record.functions[it.function]
        if it.parent is None or function.kind in UNITS or not self.record.dropped:
            return
        of_parent, key = self.calls.setdefault(it.parent, {}), (it.line, it.function)
        of_parent[key] = of_parent.get(key, 0) + 1
        if of_parent[key] == CALLS:
            text = f"… call {CALLS} of {function.name} on line {it.line}: any after it were only counted"
            self.track.remarks.append([len(self.track.steps), text])

    def _frame(self, frame: int) -> int:
        """The frame's own index, after that of its callers."""
        if frame not in self.frame_of:
            it = self.record.frames[frame]
            function = self.record.functions[it.function]
            inner = function.kind not in UNITS and it.parent is not None
            parent = self._frame(it.parent) if inner and it.parent is not None else -1
            snapshots = self.record.snapshots
            arguments = [
                [name, self._index("texts", values.line(snapshots[at]))] for name, at in it.arguments
            ]
            self.frame_of[frame] = len(self.track.frames)
            self.track.frames.append([function.name, parent, it.line, arguments])
        return self.frame_of[frame]

    def _line(self, statement: int) -> int:
        if statement not in self.line_of:
            it = self.record.statements[statement]
            self.line_of[statement] = len(self.track.lines)
            self.track.lines.append((it.first, it.last, self._claim(it)))
        return self.line_of[statement]

    def _claim(self, statement: Statement) -> int:
        at = self.claim_at.get((statement.function, statement.first))
        if at is None:
            return -1
        self.track.claims.append(_judged(self.record.claims[at], self.record))
        return len(self.track.claims) - 1

    def _turn(self, step: int) -> None:
        if step in self.turns:
            self.calls.pop(self.record.steps[step][0], None)
            turn, count, folded = self.turns[step]
            at = len(self.track.steps) - 1
            self.track.turns.append((at, turn + 1, count))
            if folded:
                self.track.remarks.append([at, f"… {folded:,} iteration{'s' if folded > 1 else ''} folded"])

    def _value(self, value: Value) -> None:
        frame, steps = value.frame, self.track.steps
        if frame not in self.last:
            return  # taken where nothing is shown
        if not steps or steps[-1][0] != self.frame_of[frame]:
            self._step(frame, self.last[frame])
        gone = value.kind == "clear"
        text = -1 if gone else self._index("texts", self._text(value))
        name = self._index("names", values.plain(value.text))
        self.track.values.append((len(steps) - 1, self.frame_of[frame], name, text))

    def _text(self, value: Value) -> str:
        if value.error or value.value is None:
            return f"✗ {value.error or 'no value'}"
        text = values.line(self.record.snapshots[value.value], value.unit)
        return f"{text} · measured" if value.kind == "measure" else text

    def _index(self, kind: str, text: str) -> int:
        table: list[str] = getattr(self.track, kind)
        at = self.known.setdefault((kind, text), len(table))
        if at == len(table):
            table.append(text)
        return at

    def _full(self) -> None:
        """The last step of a section that had more than the recorder keeps of one."""
        record = self.record
        if not record.dropped:
            return
        kept = Counter(self.home[frame] for frame, _ in record.steps)
        kept.update(self.home)
        kept.update(self.home[value.frame] for value in record.values)
        back = {own: frame for frame, own in self.frame_of.items()}
        last = {self.home[back[own]]: at for at, (own, _) in enumerate(self.track.steps)}
        for section, at in last.items():
            if kept[section] >= STEPS:
                self.track.remarks.append([at, "… from here on the steps of this section were only counted"])

    def _said(self) -> None:
        """A speaker note comes with the first step that it stands before; at the end, with the last one."""
        starts = [self.track.lines[line][0] for _, line in self.track.steps]
        for piece in self.record.pieces:
            if piece.kind == "speaker" and self._on_page(piece.frame):
                frame = self.frame_of.get(piece.frame)
                of_frame = [i for i, (f, _) in enumerate(self.track.steps) if f == frame]
                at = next((i for i in of_frame if starts[i] > piece.line), of_frame[-1] if of_frame else 0)
                self.track.notes.append([at, piece.text])

    def _errors(self) -> None:
        """An exception stands at the last step of its line."""
        for error in self.record.errors:
            for at in range(len(self.track.steps) - 1, -1, -1):
                first, last, _ = self.track.lines[self.track.steps[at][1]]
                if error.kind != "inspect" and first <= error.line <= last:
                    self.track.errors.append([at, values.plain(error.message)])
                    break

    def _elsewhere(self) -> None:
        """Source lines of helpers whose listing is on another page, or on none."""
        functions = self.record.functions
        mine = [functions[i] for i, page in self.book.place.items() if page == self.page]
        ran = {first for first, _, _ in self.track.lines}
        lost = {n for n in ran if not any(f.first <= n <= f.last for f in mine)}
        for it in functions:
            if it.kind == "helper" and lost & set(range(it.first, it.last + 1)):
                shown = [values.plain(self.book.lines[n - 1].text) for n in range(it.first, it.last + 1)]
                self.track.code.append([it.first, shown])


def _homes(record: Record) -> list[int | None]:
    """For every frame, the section in whose call it ran."""
    found: list[int | None] = []
    for frame in record.frames:
        unit = record.functions[frame.function].kind in UNITS
        found.append(frame.function if unit else None if frame.parent is None else found[frame.parent])
    return found


def _turns(record: Record) -> dict[int, tuple[int, int, int]]:
    """By step: the iteration that begins there, of how many, and how many were folded right before it.

    A loop's header is a step before the first iteration and before each further one that was kept.
    """
    headers: dict[tuple[int, int], list[int]] = {}
    looped = {(loop.frame, loop.line) for loop in record.loops}
    for i, (frame, statement) in enumerate(record.steps):
        key = frame, record.statements[statement].first
        if key in looped:
            headers.setdefault(key, []).append(i)
    found, used = {}, dict.fromkeys(headers, 0)
    for loop in record.loops:
        key = loop.frame, loop.line
        at = used.get(key, 0)
        for before, turn, step in zip((-1, *loop.kept), loop.kept, headers.get(key, [])[at:], strict=False):
            found[step] = turn, loop.count, turn - before - 1
        if key in used:
            used[key] += max(1, len(loop.kept))
    return found


def _judged(claim: Claim, record: Record) -> list[str]:
    """Verdict, caption and both sides of a claim, as plain text."""
    caption = re.sub(r"[`*]", "", claim.caption) or claim.text
    return [claim.verdict, values.plain(caption), margin.tested(claim, record)]
