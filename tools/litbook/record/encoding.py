"""The record's JSON: structs -> text and back, strictly, by msgspec.

In goes a `Record` or the text that `dumps` wrote; out comes the other. What is cut short, was changed by
hand, or is of another schema is refused with the place in it and the way to record anew. What JSON makes of
a struct says `model`; here every element of a list gets a line of its own, so that a diff of two records is
readable.
"""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from litbook.errors import RecordError
from litbook.record.limits import FILE
from litbook.record.model import SCHEMA, Definition, Grid, JsonObject, Live, Record, Section
from litbook.record.ranks import LISTS, ranks_of

IndexReference = tuple[str, int | None, int]
"""What an index counts, the index, and the length of the list that it points into."""

AGAIN = "record it again"
_ENTRIES = ("definitions", "sections")
_ON_ONE_LINE = ("steps", "calls", "unreached", "asked")  # lists that nobody reads element by element
_ENCODER = msgspec.json.Encoder()
_fields = cache(msgspec.structs.fields)


# ---------------------------------------------------------------------------- writing


def dumps(record: Record) -> str:
    """The record as JSON text; the same for the same record."""
    return text_of(record) + "\n"


def text_of(whole: JsonObject) -> str:
    """The record, or one entry of it, as JSON: an element of a list a line."""
    fields = []
    for field in _fields(type(whole)):
        value = getattr(whole, field.name)
        if value == field.default:
            continue
        if field.name in _ENTRIES:
            text = "[\n" + ",\n".join(map(text_of, value)) + "\n]"
        elif type(value) is tuple and field.name not in _ON_ONE_LINE:
            text = "[\n" + _lines(value) + "\n]"
        else:
            text = _lines((value,))
        fields.append(f'"{field.name}":{text}')
    return "{\n" + ",\n".join(fields) + "\n}"


def _lines(values: tuple[Any, ...]) -> str:
    """The JSON of each value on a line, commas between them."""
    try:
        text = _ENCODER.encode_lines(values).decode()
    except UnicodeEncodeError:  # half a surrogate pair is a character of Python's, but none of UTF-8's
        text = "".join(json.dumps(value) + "\n" for value in msgspec.to_builtins(values))
    return text[:-1].replace("\n", ",\n")  # inside of texts, JSON writes \n


# ---------------------------------------------------------------------------- reading


class _Head(msgspec.Struct):
    """All that is read of a record before its schema is known."""

    schema: Annotated[int, msgspec.Meta(ge=1)]


# msgspec looks through a type when it first reads one, and two threads that do so at once crash the process.
# A build reads the records of its lectures in threads; so it is done here, where one thread imports.
_LOOKED_THROUGH = msgspec.json.Decoder(_Head), msgspec.json.Decoder(Record)


def loads(text: str, where: str = "record", schemas: Collection[int] = (SCHEMA,)) -> Record:
    """The record that `dumps` wrote.

    Raises `RecordError`, naming `where`, for text that is cut short, was changed by hand into something that
    no run writes, or is of an older or a newer schema.
    """
    read: Callable[..., Any] = partial(msgspec.json.decode, text)
    try:
        if "\\ud" in text:  # half a surrogate pair, see `_lines`; but json takes NaN, and 1e999 for infinity
            strictly = msgspec.json.decode
            read = partial(msgspec.convert, json.loads(text, parse_float=strictly, parse_constant=strictly))
        schema = read(type=_Head).schema
    except msgspec.ValidationError:
        raise RecordError(f"{where} is not a record: it has no schema number\n    {AGAIN}") from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where} is not a whole record: {error}\n    {AGAIN}") from None
    if schema not in schemas:
        way_out = "update litbook, or record it again with this one" if schema > SCHEMA else AGAIN
        raise RecordError(f"{where} has schema {schema}; this litbook reads {SCHEMA}\n    {way_out}")
    try:
        record: Record = read(type=Record)
        _check(record)
    except (ValueError, RecursionError) as error:
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


def read(path: Path, shown: str = "", schemas: Collection[int] = (SCHEMA,)) -> Record:
    """The record in the file `path`; errors as for `loads`, with the file's name, or as it is `shown`."""
    shown = shown or str(path)
    try:
        text = content(path).decode()
    except OSError as error:
        raise RecordError(f"{shown} cannot be read: {error.strerror}\n    {AGAIN}") from None
    except UnicodeDecodeError:
        raise RecordError(f"{shown} is not a record: it is not UTF-8 text\n    {AGAIN}") from None
    return loads(text, shown, schemas)


# ---------------------------------------------------------------------------- what points where


def _check(record: Record) -> None:
    """Keys are keys, parents end, and every index points into its list, so that no renderer checks again."""
    entries: tuple[Section | Definition, ...] = (*record.definitions, *record.sections)
    for each in (record.definitions, record.sections):  # a section may also be called as a helper is
        if twice := [key for key, count in Counter(entry.key for entry in each).items() if count > 1]:
            raise ValueError(f"{twice[0]!r} is there twice")
    for entry in entries:
        if not 0 <= entry.file < len(record.sources):
            raise ValueError(f"file {entry.file} of {entry.key!r} does not exist")
        lost = {statement.target for statement in entry.statements} - record.by_key.keys()
        lost -= {"", *record.definition_of}
        if isinstance(entry, Section):
            lost |= set(entry.calls) - record.definition_of.keys()
            lost |= {entry.parent} - {"", *record.by_key}
        if lost:
            raise ValueError(f"{min(lost)!r}, which {entry.key!r} names, does not exist")
    for section in record.sections:
        above, steps = section, 0
        while above.parent:  # following it ends
            above, steps = record.by_key[above.parent], steps + 1
            if steps > len(record.sections):
                raise ValueError(f"section {section.key!r} is a part of itself")
        if not all(_fits(piece.grid) and _fits(piece.live) for piece in section.pieces):
            raise ValueError(f"points and places of what {section.key!r} explores do not fit")
        # First its own, which those of its ranks may stand for: only then are these made.
        of_ranks = (ranks_of(shared) for shared in [section] if shared.shares)
        for entry in itertools.chain([section], itertools.chain.from_iterable(of_ranks)):
            for what, index, size in _references(record, entry):
                if index is not None and not 0 <= index < size:
                    raise ValueError(f"{what} {index} of {section.key!r} does not exist")


def _fits(explored: Grid | Live | None) -> bool:
    """Whether points and places belong together."""
    if explored is None:
        return True
    sizes = [slider.size for slider in explored.sliders]
    ats = [explored.at]
    if isinstance(explored, Live):
        ats += [at for at, _json, _why in explored.points]
        complete = True
    else:
        rows = all(isinstance(point, str) or len(point) == len(explored.names) for point in explored.points)
        complete = rows and len(explored.points) == math.prod(sizes)
    within = all(
        len(at) == len(sizes) and all(i in range(n) for i, n in zip(at, sizes, strict=True)) for at in ats
    )
    return bool(sizes) and complete and within


def _references(record: Record, section: Section) -> Iterator[IndexReference]:
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
        yield "frame", None if piece.frame == -1 else piece.frame, frames
        yield "step", piece.step, steps
        yield "snapshot", piece.answer, snapshots
    for value in section.values:
        yield from (("frame", value.frame, frames), ("step", value.step, steps))
        yield from (("snapshot", value.value, snapshots), ("loop", value.loop, loops))
    for local in section.locals:
        yield from (("frame", local.frame, frames), ("step", local.step, steps))
        yield "snapshot", local.value, snapshots
    yield from (("snapshot", side.value, snapshots) for claim in section.claims for side in claim.operands)
    for share, name in itertools.product(section.shares, LISTS):
        size, items = len(getattr(section, name)), getattr(share, name) or ()
        yield from ((f"{name} of a rank:", item, size) for item in items if type(item) is int)
