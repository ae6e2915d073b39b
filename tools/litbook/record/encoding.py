"""The record's JSON: a record -> text and back, strictly.

In goes a `Record` or the text that `dumps` wrote; out comes the other. What is cut short, was changed by
hand, or is of another schema is refused, with the way to record anew. How a section's parts are written short
stands in `rows`, how snapshots are in `shots`; it knows nothing of how a record came about.

Every element of a list has a line of its own, so that a diff of two records is readable. Where the sections
and definitions stand in their files says one table, `places`: so moving a section changes no byte of its
entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from litbook.errors import RecordError
from litbook.record import checked, rows, told
from litbook.record.checked import Misfit, within
from litbook.record.model import SCHEMA, Definition, Record, Section, Source
from litbook.record.shots import read_shot, shot

Entry = Section | Definition
Made = TypeVar("Made", Record, Section, Definition)
AGAIN = "record it again"


def dumps(record: Record) -> str:
    """The record as JSON text; the same for the same record."""
    lines = [source.text.split("\n") for source in record.sources]
    data = _object(record)
    entries: tuple[Entry, ...] = (*record.definitions, *record.sections)
    data["places"] = [_place(entry) for entry in entries]
    data["definitions"] = [_definition(entry, _own(lines, entry)) for entry in record.definitions]
    data["sections"] = [_section(entry, _own(lines, entry)) for entry in record.sections]
    known = (name for name in ("places", "definitions", "sections") if not data[name])
    for name in tuple(known):
        del data[name]
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
        way_out = (
            f"{AGAIN} with this one"
            if data["schema"] < SCHEMA
            else f"update litbook, or {AGAIN} with this one"
        )
        raise RecordError(f"{where} has schema {data['schema']}; this litbook reads {SCHEMA}\n    {way_out}")
    try:
        record: Record = within("record", _record, data)
        _check(record)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"{where} was changed by hand or damaged: {error}\n    {AGAIN}") from None
    return record


def read(path: Path) -> Record:
    """The record in the file `path`; errors as for `loads`, with the file's name."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}\n    {AGAIN}") from None
    except UnicodeDecodeError:
        raise RecordError(f"{path} is not a record: it is not UTF-8 text\n    {AGAIN}") from None
    return loads(text, str(path))


# ---------------------------------------------------------------------------- writing


def _object(it: Any, without: Sequence[str] = ()) -> dict[str, Any]:
    """A dataclass as an object, without the fields that hold their default, and some others."""
    data: dict[str, Any] = {}
    for field in fields(it):
        value = getattr(it, field.name)
        usual = value == field.default and type(value) is type(field.default)
        if not usual and field.name not in without:
            data[field.name] = _data(value)
    return data


def _data(value: Any) -> Any:
    if isinstance(value, tuple):
        return (
            [_data(item) for item in value] if value and hasattr(value[0], "__dataclass_fields__") else value
        )
    return _object(value) if hasattr(value, "__dataclass_fields__") else value


def _own(lines: list[list[str]], entry: Entry) -> list[str]:
    """The lines of a section or definition; none where the record has not the text."""
    source = lines[entry.file] if entry.file < len(lines) else []
    return source[max(0, entry.first - 1) : max(0, entry.last)]


def _place(entry: Entry) -> Any:
    """The first line, and the file where it is not the first of them."""
    return [entry.first, entry.file] if entry.file else entry.first


_PLACED = ("file", "first")
_ROWS = ("statements", "frames", "steps", "pieces", "values", "loops", "claims", "snapshots")


def _head(entry: Entry, source: list[str], without: Sequence[str]) -> dict[str, Any]:
    """The fields of an entry that are one value each, without what its text says."""
    data = _object(entry, (*_PLACED, *without))
    for name, value in _implied(source).items():
        data.pop(name, None)
        if getattr(entry, name) != value:
            data[name] = getattr(entry, name)
    return data


def _implied(source: list[str]) -> dict[str, str]:
    """What the text of a section or definition says of it."""
    return {"heading": told.heading(source), "digest": told.digest(source)} if source else {}


def _definition(it: Definition, source: list[str]) -> dict[str, Any]:
    data = _head(it, source, ("statements",))
    if it.kind == "helper":
        del data["kind"]
    if it.statements:
        data["statements"] = rows.statements(it.statements, source)
    return data


def _section(it: Section, source: list[str]) -> dict[str, Any]:
    data = _head(it, source, _ROWS)
    if it.kind == "section":
        del data["kind"]
    if it.name == it.key:
        del data["name"]
    else:
        data.setdefault("name", it.name)
    data |= {
        "statements": rows.statements(it.statements, source, _asserted(it.claims)),
        "frames": rows.frames(it.frames),
        "steps": rows.steps(it.steps),
        "pieces": [rows.piece(piece, it.steps, it.statements, source) for piece in it.pieces],
        "values": [rows.value(value, it.steps) for value in it.values],
        "loops": [rows.loop(loop) for loop in it.loops],
        "claims": [rows.claim(claim, source) for claim in it.claims],
        "snapshots": [shot(snapshot) for snapshot in it.snapshots],
    }
    return {name: value for name, value in data.items() if value != []}


def _asserted(claims: Sequence[Any]) -> Iterator[tuple[int, int]]:
    return ((claim.line, claim.last) for claim in claims if claim.kind == "assert")


_ON_ONE_LINE = ("steps", "unreached", "calls", "asked")  # lists that nobody reads element by element
_ENTRIES = ("definitions", "sections")


def _text(data: dict[str, Any]) -> str:
    """The object as JSON, an element of a list a line; entries likewise."""
    lines = []
    for key, value in data.items():
        if type(value) is list and value and key not in _ON_ONE_LINE:
            write = _text if key in _ENTRIES else _compact
            items = ",\n".join(write(item) for item in value)
            lines.append(f"{_compact(key)}:[\n{items}\n]")
        else:
            lines.append(f"{_compact(key)}:{_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def _compact(value: Any) -> str:
    text = _ENCODER.encode(value)
    # half a surrogate pair is a character of Python's, but none of UTF-8's
    return text if text.isascii() else _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_HALF = re.compile("[\ud800-\udfff]")


# ---------------------------------------------------------------------------- reading


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not strict JSON")


def _record(data: dict[str, Any]) -> Record:
    sources = within(".sources", checked.reader(tuple[Source, ...]), data.get("sources", []))
    lines = [source.text.split("\n") for source in sources]
    places = within(".places", partial(checked.each, _read_place), data.get("places", []))
    several = {name: data.get(name, []) for name in _ENTRIES}
    for name, entries in several.items():
        if type(entries) is not list:
            raise Misfit("a list was expected").under(f".{name}")
    expected = sum(map(len, several.values()))
    if len(places) != expected:
        raise Misfit(f"{expected} places were expected, {len(places)} are there").under(".places")
    at = iter(places)
    definitions = [
        within(f".definitions[{i}]", partial(_read_definition, next(at), lines), entry)
        for i, entry in enumerate(several["definitions"])
    ]
    sections = [
        within(f".sections[{i}]", partial(_read_section, next(at), lines), entry)
        for i, entry in enumerate(several["sections"])
    ]
    rest = {name: value for name, value in data.items() if name not in ("sources", "places", *_ENTRIES)}
    head: Record = checked.fields(Record, {**rest, "sources": []})
    return _with(head, sources=sources, definitions=tuple(definitions), sections=tuple(sections))


def _with(it: Made, **given: Any) -> Made:
    """`it` with fields that have been read already. Only for what nobody else has seen yet."""
    for name, value in given.items():
        object.__setattr__(it, name, value)
    return it


def _read_place(data: Any) -> tuple[int, int]:
    """First line and file."""
    first, file = data if type(data) is list and len(data) == 2 else (data, 0)
    if type(first) is not int or type(file) is not int:
        raise Misfit("a line was expected, or a line and a file")
    return first, file


def _lines_of(place: tuple[int, int], lines: list[list[str]], data: Any) -> list[str]:
    """The lines of the entry in `data`."""
    if type(data) is not dict:
        raise Misfit("an object was expected")
    first, file = place
    source = lines[file] if 0 <= file < len(lines) else []
    many = data.get("lines")
    return source[max(0, first - 1) : max(0, first - 1 + many)] if type(many) is int else []


def _read_definition(place: tuple[int, int], lines: list[list[str]], data: Any) -> Definition:
    source = _lines_of(place, lines, data)
    known = {"kind": "helper", "first": place[0], "file": place[1], **_implied(source)}
    head = {name: value for name, value in data.items() if name != "statements"}
    it: Definition = checked.fields(Definition, {**known, **head})
    return _with(
        it,
        statements=within(
            ".statements", partial(rows.read_statements, source=source), data.get("statements", [])
        ),
    )


def _read_section(place: tuple[int, int], lines: list[list[str]], data: Any) -> Section:
    source = _lines_of(place, lines, data)
    known = {
        "kind": "section",
        "first": place[0],
        "file": place[1],
        "name": data.get("key", ""),
        **_implied(source),
    }
    head = {name: value for name, value in data.items() if name not in _ROWS}
    it: Section = checked.fields(Section, {**known, **head})

    def part(name: str, read: Callable[[Any], Any]) -> Any:
        return within(f".{name}", read, data.get(name, []))

    claims = part("claims", partial(checked.each, partial(rows.read_claim, source=source)))
    steps = part("steps", rows.read_steps)
    statements = part(
        "statements", partial(rows.read_statements, source=source, claims=tuple(_asserted(claims)))
    )
    return _with(
        it,
        claims=claims,
        steps=steps,
        statements=statements,
        frames=part("frames", rows.read_frames),
        pieces=part(
            "pieces",
            partial(checked.each, partial(rows.read_piece, taken=steps, several=statements, source=source)),
        ),
        values=part("values", partial(checked.each, partial(rows.read_value, taken=steps))),
        loops=part("loops", partial(checked.each, rows.read_loop)),
        snapshots=part("snapshots", partial(checked.each, read_shot)),
    )


# ---------------------------------------------------------------------------- what points where

Reference = tuple[str, int | None, int]
"""What an index counts, the index, and the length of the list that it points into."""


def _check(record: Record) -> None:
    """Keys are keys, parents end, and every index points into its list, so that no renderer checks again."""
    sections = _by_key("section", record.sections)
    definitions = _by_key("definition", record.definitions)
    entries: tuple[Entry, ...] = (*record.definitions, *record.sections)
    for entry in entries:
        if not 0 <= entry.file < max(1, len(record.sources)):
            raise ValueError(f"file {entry.file} of {entry.key!r} does not exist")
        for statement in entry.statements:
            target = statement.target
            if target and target not in sections and target not in definitions:
                raise ValueError(f"{target!r}, which {entry.key!r} calls or defines, does not exist")
    for section in record.sections:
        _check_section(section, sections, definitions)


def _by_key(what: str, entries: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for it in entries:
        if found.setdefault(it.key, it) is not it:
            raise ValueError(f"there are two {what}s {it.key!r}")
    return found


def _check_section(section: Section, keys: dict[str, Section], definitions: dict[str, Definition]) -> None:
    for key in section.calls:
        if key not in definitions:
            raise ValueError(f"{key!r}, which {section.key!r} calls, does not exist")
    _check_parents(section, keys)
    for what, index, size in chain(_run_references(section, definitions), _found_references(section)):
        if index is not None and not 0 <= index < size:
            raise ValueError(f"{what} {index} of {section.key!r} does not exist")


def _check_parents(section: Section, keys: dict[str, Section]) -> None:
    """Following `parent` ends."""
    it, seen = section, set[str]()
    while it.parent:
        if it.key in seen:
            raise ValueError(f"section {section.key!r} is a part of itself")
        seen.add(it.key)
        if it.parent not in keys:
            raise ValueError(f"{it.parent!r}, the parent of {it.key!r}, does not exist")
        it = keys[it.parent]


def _run_references(section: Section, definitions: dict[str, Definition]) -> Iterator[Reference]:
    called = [section.statements, *(definitions[key].statements for key in section.calls)]
    frames, snapshots = len(section.frames), len(section.snapshots)
    for i, frame in enumerate(section.frames):
        yield "definition", frame.called, len(called)
        yield "frame", frame.parent, i
        for _, argument in frame.arguments:
            yield "snapshot", argument, snapshots
    for place, statement in section.unreached:
        yield "definition", place, len(called)
        yield "statement", statement, len(called[place])
    sizes = [len(called[frame.called]) if 0 <= frame.called < len(called) else 0 for frame in section.frames]
    for step_frame, step_statement in section.steps:
        if not 0 <= step_frame < frames:
            yield "frame", step_frame, frames
        elif not 0 <= step_statement < sizes[step_frame]:
            yield "statement", step_statement, sizes[step_frame]


def _found_references(section: Section) -> Iterator[Reference]:
    frames, snapshots, loops = len(section.frames), len(section.snapshots), len(section.loops)
    steps = max(1, len(section.steps))  # what came before the first step carries the number 0
    for loop in section.loops:
        yield "frame", loop.frame, frames
    for piece in section.pieces:
        yield "frame", piece.frame, frames
        yield "step", piece.step, steps
        yield "snapshot", piece.answer, snapshots
    for value in section.values:
        yield "frame", value.frame, frames
        yield "step", value.step, steps
        yield "snapshot", value.value, snapshots
        yield "loop", value.loop, loops
    for series in section.series:
        yield "loop", series.loop, loops
    for claim in section.claims:
        for operand in claim.operands:
            yield "snapshot", operand.value, snapshots
