"""The record's JSON: dataclasses -> text and back, strictly.

In goes a `Record` or the text that `dumps` wrote; out comes the other. What is cut short, was changed by
hand, or is of another schema is refused, with the way to record anew. `reading` makes dataclasses of data.

Fields that hold their default are left out; what there is most of is a row of values instead of an object.
Every element of a list has a line of its own, so that a diff of two records is readable. Where sections and
definitions stand in their files says one table, `places`: so moving a section changes no byte of its entry.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from litbook.errors import RecordError
from litbook.record.limits import FILE
from litbook.record.model import SCHEMA, Definition, Record, Scalar, Section, Statement
from litbook.record.reading import ROWS, SHOTS, Misfit, objects, plain_scalar, reader, within

Entry = Section | Definition
Reference = tuple[str, int | None, int]
"""What an index counts, the index, and the length of the list that it points into."""

AGAIN = "record it again"
_ENTRIES = ("definitions", "sections")
_ON_ONE_LINE = ("steps", "calls", "unreached", "asked")  # lists that nobody reads element by element


def dumps(record: Record) -> str:
    """The record as JSON text; the same for the same record."""
    entries: tuple[Entry, ...] = (*record.definitions, *record.sections)
    data = {"places": [[entry.file, entry.first] for entry in entries], **plain_data(record)}
    for entry, written in zip(entries, chain(*(data.get(name, []) for name in _ENTRIES)), strict=True):
        _shorten(entry, written)
    return _text(data) + "\n"


def loads(text: str, where: str = "record") -> Record:
    """The record that `dumps` wrote.

    Raises `RecordError`, naming `where`, for text that is cut short, was changed by hand into something that
    no run writes, or is of an older or a newer schema.
    """
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where} is not a whole record: {error}\n    {AGAIN}") from None
    if type(data) is not dict or type(data.get("schema")) is not int or data["schema"] < 1:
        raise RecordError(f"{where} is not a record: it has no schema number\n    {AGAIN}")
    if data["schema"] != SCHEMA:
        way_out = "update litbook, or record it again with this one" if data["schema"] > SCHEMA else AGAIN
        raise RecordError(f"{where} has schema {data['schema']}; this litbook reads {SCHEMA}\n    {way_out}")
    try:
        record = _record(data)
        _check(record)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"{where} was changed by hand or damaged: {error}\n    {AGAIN}") from None
    return record


def content(path: Path) -> bytes:
    """What the file holds. `OSError` also for what is no file, and for more than a record's file may hold.

    A pipe would keep a reader waiting for ever, and a device may have no end: neither is read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if about.st_size > FILE:
            raise OSError(errno.EFBIG, f"it has {about.st_size:,} bytes, and may have {FILE:,}")
        return open(handle, "rb", closefd=False).read(FILE)
    finally:
        os.close(handle)


def read(path: Path, shown: str = "") -> Record:
    """The record in the file `path`; errors as for `loads`, with the file's name, or as it is `shown`."""
    shown = shown or str(path)
    try:
        text = content(path).decode()
    except OSError as error:
        raise RecordError(f"{shown} cannot be read: {error.strerror}\n    {AGAIN}") from None
    except UnicodeDecodeError:
        raise RecordError(f"{shown} is not a record: it is not UTF-8 text\n    {AGAIN}") from None
    return loads(text, shown)


# ---------------------------------------------------------------------------- writing


def plain_data(it: Any) -> Any:
    """What JSON holds of a record or of a part of one: dataclasses as objects or rows, tuples as lists."""
    kind = type(it)
    if kind is Scalar and plain_scalar(it.text if it.type == "str" else it.number) == it:
        return it.text if it.type == "str" else it.number
    if kind in ROWS:
        return _row(it)
    if is_dataclass(kind):
        tag = {"kind": it.kind} if kind in SHOTS.values() else {}
        known = ((field.name, getattr(it, field.name), field.default) for field in fields(it))
        return tag | {n: plain_data(v) for n, v, usual in known if v != usual or type(v) is not type(usual)}
    if kind is tuple:
        return [plain_data(item) for item in it]
    return {key: plain_data(value) for key, value in it.items()} if kind is dict else it


def _row(it: Any) -> list[Any]:
    """The values of a dataclass in the order of its fields, without defaults at the end."""
    several = fields(it)
    row = [getattr(it, field.name) for field in several]
    while row and row[-1] == several[len(row) - 1].default:
        row.pop()
    return [plain_data(value) for value in row]


def _shorten(entry: Entry, data: dict[str, Any]) -> None:
    """Leave out of an entry's data where it stands, and what need not be written."""
    del data["file"], data["first"]
    if entry.statements:
        data["statements"] = [_row(statement) for statement in _counted(entry.statements)]
    if isinstance(entry, Section) and entry.steps:
        data["steps"] = _grouped(entry.steps)
    if isinstance(entry, Section) and entry.claims:
        data["claims"] = [_short_claim(claim) for claim in data["claims"]]


def _counted(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Statements as they are written: `first` counts lines from the statement before, `last` from `first`,
    `end` from `last`. So most rows are alike, and a line that is added to a section changes one of them.
    """
    before = 0
    for it in statements:
        yield replace(it, first=it.first - before, last=it.last - it.first, end=it.end - it.last)
        before = it.first


def _grouped(steps: tuple[tuple[int, int], ...]) -> list[list[int]]:
    """Steps as runs `[frame, statement, statement, ...]`: most stay in their frame."""
    runs: list[list[int]] = []
    for frame, statement in steps:
        if not runs or runs[-1][0] != frame:
            runs.append([frame])
        runs[-1].append(statement)
    return runs


def _short_claim(data: dict[str, Any]) -> dict[str, Any]:
    """A claim's data without what `_whole_claim` puts back."""
    bare = {name: value for name, value in data.items() if name not in ("last", "text")}
    known = _whole_claim(bare)
    return {name: value for name, value in data.items() if name in bare or known.get(name) != value}


def _text(data: dict[str, Any]) -> str:
    """The object as JSON, an element of a list a line; entries likewise."""
    lines = []
    for key, value in data.items():
        if type(value) is list and value and key not in _ON_ONE_LINE:
            write = _text if key in _ENTRIES else _compact
            lines.append(f"{json.dumps(key)}:[\n" + ",\n".join(write(item) for item in value) + "\n]")
        else:
            lines.append(f"{json.dumps(key)}:{_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}"


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _compact(value: Any) -> str:
    text = _ENCODER.encode(value)
    # half a surrogate pair is a character of Python's, but none of UTF-8's
    return text if text.isascii() else re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


# ---------------------------------------------------------------------------- reading


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not strict JSON")


def _record(data: dict[str, Any]) -> Record:
    places = within(".places", reader(tuple[tuple[int, int], ...]), data.pop("places", []))
    entries = [entry for name in _ENTRIES for entry in within(f".{name}", objects, data.get(name, []))]
    if len(places) != len(entries):
        raise Misfit(f"{len(places)} places for {len(entries)} sections and definitions")
    for entry, (file, first) in zip(entries, places, strict=True):
        _lengthen(entry | {"file": file, "first": first}, entry)
    record: Record = reader(Record)(data)
    return replace(
        record,
        definitions=tuple(replace(it, statements=_placed(it.statements)) for it in record.definitions),
        sections=tuple(replace(it, statements=_placed(it.statements)) for it in record.sections),
    )


def _lengthen(whole: dict[str, Any], into: dict[str, Any]) -> None:
    """Undoes `_shorten` but for the statements' lines. What makes no sense is left to the reader."""
    into.update(whole)
    if type(steps := whole.get("steps")) is list and all(type(run) is list and run for run in steps):
        into["steps"] = [[run[0], statement] for run in steps for statement in run[1:]]
    if type(claims := whole.get("claims")) is list:
        into["claims"] = [_whole_claim(claim) for claim in claims]


def _placed(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Statements with the numbers of their lines: undoes `_counted`."""
    found, before = [], 0
    for it in statements:
        before += it.first
        last = before + it.last
        found.append(Statement(before, last, it.kind, last + it.end, it.target, it.prose, it.binds))
    return tuple(found)


def _whole_claim(data: Any) -> Any:
    """A claim's data with what need not be written: most stand on one line, and their form and operands
    together are their text. What makes no sense is left to the reader.
    """
    if type(data) is not dict:
        return data
    known = {"last": data["line"]} if "line" in data else {}
    try:
        operands = [text for text, *_ in data["operands"]]
        known["text"] = "".join(map(str.__add__, data["form"], [*operands, ""]))
    except (KeyError, TypeError, ValueError):
        pass  # no operands, or none that a run writes
    return known | data


# ---------------------------------------------------------------------------- what points where


def _check(record: Record) -> None:
    """Keys are keys, parents end, and every index points into its list, so that no renderer checks again."""
    entries: list[Entry] = [*record.definitions, *record.sections]
    for each in (record.definitions, record.sections):  # a section may also be called as a helper is
        if twice := [key for key, count in Counter(entry.key for entry in each).items() if count > 1]:
            raise ValueError(f"{twice[0]!r} is there twice")
    keys = {entry.key for entry in entries}
    for entry in entries:
        if not 0 <= entry.file < len(record.sources):
            raise ValueError(f"file {entry.file} of {entry.key!r} does not exist")
        called = [statement.target for statement in entry.statements if statement.target]
        called += [*entry.calls, *filter(None, [entry.parent])] if isinstance(entry, Section) else []
        if lost := set(called) - keys:
            raise ValueError(f"{min(lost)!r}, which {entry.key!r} names, does not exist")
    for section in record.sections:
        _check_parents(record, section)
        for what, index, size in _references(record, section):
            if index is not None and not 0 <= index < size:
                raise ValueError(f"{what} {index} of {section.key!r} does not exist")


def _check_parents(record: Record, section: Section) -> None:
    """Following `parent` ends."""
    it = section
    for _ in record.sections:
        if not it.parent:
            return
        it = record.by_key[it.parent]
    raise ValueError(f"section {section.key!r} is a part of itself")


def _references(record: Record, section: Section) -> Iterator[Reference]:
    """Every index in a section. What several of them depend on comes first."""
    called = [section.statements, *(record.definition_of[key].statements for key in section.calls)]
    frames, snapshots, loops = len(section.frames), len(section.snapshots), len(section.loops)
    for i, frame in enumerate(section.frames):
        yield "definition", frame.called, len(called)
        yield "frame", frame.parent, i
        yield from (("snapshot", argument, snapshots) for _, argument in frame.arguments)
    for place, statement in section.unreached:
        yield "definition", place, len(called)
        yield "statement", statement, len(called[place])
    for at, statement in section.steps:
        yield "frame", at, frames
        yield "statement", statement, len(called[section.frames[at].called])
    for loop in section.loops:
        yield "frame", loop.frame, frames
    for series in section.series:
        yield "loop", series.loop, loops
    steps = max(1, len(section.steps))  # what came before the first step carries the number 0
    for piece in section.pieces:
        yield from (("frame", piece.frame, frames), ("step", piece.step, steps))
        yield "snapshot", piece.answer, snapshots
    for value in section.values:
        yield from (("frame", value.frame, frames), ("step", value.step, steps))
        yield from (("snapshot", value.value, snapshots), ("loop", value.loop, loops))
    yield from (("snapshot", side.value, snapshots) for claim in section.claims for side in claim.operands)
