"""The record's JSON: dataclasses -> text and back, strictly.

In goes a `Record` or the text that `dumps` wrote; out comes the other. What is cut short, was changed by
hand, or is of another schema is refused, with what to do. It knows the model's dataclasses alone.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from litbook.errors import RecordError
from litbook.record.model import (
    SCHEMA,
    Frame,
    Loop,
    Mapping,
    Number,
    Opaque,
    Operand,
    Record,
    Scalar,
    Sequence,
    Snapshot,
    Statement,
    Tensor,
)

_SNAPSHOTS: dict[str, type] = {
    "scalar": Scalar,
    "sequence": Sequence,
    "mapping": Mapping,
    "tensor": Tensor,
    "opaque": Opaque,
}


# What there is most of is kept as rows: values in the order of the fields.
_ROWS = (Statement, Frame, Loop, Operand)


def to_data(thing: Any) -> Any:
    """Dataclasses as dicts without the fields that hold their default; tuples as lists."""
    if type(thing) in _ROWS:
        return _row(thing)
    if type(thing) is Scalar and _speaks_for_itself(thing):
        return thing.text if thing.type == "str" else thing.number
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        data = {}
        for f in dataclasses.fields(thing):
            value = getattr(thing, f.name)
            tag = f.name == "kind" and type(thing) in _SNAPSHOTS.values()
            if not tag and value == f.default and type(value) is type(f.default):
                continue
            data[f.name] = to_data(value)
        return data
    if isinstance(thing, (list, tuple)):
        return [to_data(item) for item in thing]
    if isinstance(thing, dict):
        return {key: to_data(value) for key, value in thing.items()}
    return thing


def _speaks_for_itself(scalar: Scalar) -> bool:
    """Whether the bare JSON value says all: plain ints, floats, bools, None, and a string's whole repr."""
    if scalar.cut:
        return False
    if scalar.type == "str":
        return scalar.number is None
    return scalar == _bare(scalar.number)


def _bare(value: Number | None) -> Scalar:
    """The scalar that a bare JSON value stands for."""
    if isinstance(value, str):
        return Scalar("str", value)
    return Scalar(type(value).__name__, repr(value), value)


def _row(thing: Any) -> list[Any]:
    """The values of a dataclass in field order, without defaults at the end."""
    fields = dataclasses.fields(thing)
    row = [getattr(thing, f.name) for f in fields]
    while row and row[-1] == fields[len(row) - 1].default:
        row.pop()
    return row


def dumps(record: Record) -> str:
    """The record as JSON text, one list element a line, so that a diff of two records is readable."""
    data = to_data(record)
    data["statements"] = [_row(statement) for statement in _counted(record.statements)]
    data["steps"] = _grouped(record.steps)
    if record.claims:
        data["claims"] = [_short_claim(claim) for claim in data["claims"]]
    lines = []
    for key, value in data.items():
        if isinstance(value, list) and value:
            items = ",\n".join(_compact(item) for item in value)
            lines.append(f"{json.dumps(key)}: [\n{items}\n]")
        else:
            lines.append(f"{json.dumps(key)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def loads(text: str, where: str = "record") -> Record:
    """The record that `dumps` wrote.

    Raises `RecordError`, naming `where`, for text that is cut short, was changed by hand into something
    that no run writes, or comes from a newer schema.
    """
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where} is not a whole record: {error}\n    record it again") from None
    if not isinstance(data, dict) or type(data.get("schema")) is not int or data["schema"] < 1:
        raise RecordError(f"{where} is not a record: it has no schema number\n    record it again")
    if data["schema"] > SCHEMA:
        raise RecordError(
            f"{where} has schema {data['schema']}; this litbook reads up to {SCHEMA}\n"
            "    update litbook, or record it again with this one"
        )
    try:
        record = _record(data)
        _check_references(record)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RecordError(f"{where} was changed by hand or damaged: {error}\n    record it again") from None
    return record


def read(path: Path) -> Record:
    """The record in the file `path`; errors as for `loads`, with the file's name."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}\n    record it again") from None
    except UnicodeDecodeError:
        raise RecordError(f"{path} is not a record: it is not UTF-8 text\n    record it again") from None
    return loads(text, str(path))


def _compact(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # half a surrogate pair is a character of Python's, but none of UTF-8's
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not strict JSON")


def _record(data: dict[str, Any]) -> Record:
    """The record in `data`, which may be of an older schema; in memory all are of the newest."""
    data["steps"] = _ungrouped(data.get("steps", []))
    if data["schema"] == 1:
        record: Record = _decode(Record, data, "record")
        return dataclasses.replace(record, schema=SCHEMA)
    if isinstance(claims := data.get("claims"), list):
        data["claims"] = [_whole_claim(claim) for claim in claims]
    record = _decode(Record, data, "record")
    return dataclasses.replace(record, statements=tuple(_placed(record.statements)))


def _counted(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Statements as they are written: `first` counts lines from the statement before, `last` from `first`,
    `end` from `last`. So most rows are alike, and a line that is added to a lecture changes one of them.
    """
    before = 0
    for it in statements:
        first, last, end = it.first - before, it.last - it.first, it.end - it.last
        yield Statement(it.function, first, last, it.kind, end, it.target, it.prose)
        before = it.first


def _placed(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Statements with the numbers of their lines: undoes `_counted`."""
    before = 0
    for it in statements:
        first = before + it.first
        last = first + it.last
        yield Statement(it.function, first, last, it.kind, last + it.end, it.target, it.prose)
        before = first


def _short_claim(data: dict[str, Any]) -> dict[str, Any]:
    """A claim's data without what `_whole_claim` puts back."""
    bare = {name: value for name, value in data.items() if name not in ("last", "text")}
    known = _whole_claim(bare)
    return {name: value for name, value in data.items() if name in bare or known.get(name) != value}


def _whole_claim(data: Any) -> Any:
    """A claim's data with what need not be written: most stand on one line, and their form and operands
    together are their text. What makes no sense is left to `_decode`.
    """
    if not isinstance(data, dict):
        return data
    known = {"last": data["line"]} if "line" in data else {}
    try:
        operands = [text for text, *_ in data["operands"]]
        known["text"] = "".join(map(str.__add__, data["form"], [*operands, ""]))
    except (KeyError, TypeError, ValueError):
        pass  # no operands, or none that a run writes
    return known | data


def _grouped(steps: tuple[tuple[int, int], ...]) -> list[list[int]]:
    """Steps as runs `[frame, statement, statement, ...]`: most steps stay in their frame."""
    runs: list[list[int]] = []
    for frame, statement in steps:
        if not runs or runs[-1][0] != frame:
            runs.append([frame])
        runs[-1].append(statement)
    return runs


def _ungrouped(runs: Any) -> list[list[int]]:
    if not isinstance(runs, list) or not all(isinstance(run, list) for run in runs):
        raise TypeError("record.steps: a list of lists was expected")
    return [[run[0], statement] for run in runs for statement in run[1:]]


def _decode(kind: Any, data: Any, at: str) -> Any:
    """`data` as the annotated type `kind`; TypeError with the place `at` where it does not fit."""
    if kind == Snapshot:
        return _decode_snapshot(data, at)
    if dataclasses.is_dataclass(kind):
        return _decode_fields(kind, _named(kind, data, at) if kind in _ROWS else data, at)
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _decode_tuple(args, data, at)
    if origin is dict:
        if not isinstance(data, dict):
            raise TypeError(f"{at}: an object was expected")
        return {key: _decode(args[1], value, f"{at}.{key}") for key, value in data.items()}
    if origin is Literal:
        if data not in args:
            raise TypeError(f"{at}: {data!r} is none of {', '.join(map(repr, args))}")
        return data
    if origin in (Union, types.UnionType):
        return _decode_union(args, data, at)
    return _decode_plain(kind, data, at)


def _decode_snapshot(data: Any, at: str) -> Snapshot:
    if data is None or type(data) in (int, float, bool, str):
        bare: Snapshot = _bare(_decode_plain(type(data), data, at))
        return bare
    tag = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(tag, str) or tag not in _SNAPSHOTS:
        raise TypeError(f"{at}: {tag!r} is no kind of snapshot")
    shown: Snapshot = _decode(_SNAPSHOTS[tag], data, at)
    return shown


def _decode_union(args: tuple[Any, ...], data: Any, at: str) -> Any:
    if data is None and type(None) in args:
        return None
    choices = [arg for arg in args if arg is not type(None)]
    if len(choices) == 1:
        return _decode(choices[0], data, at)
    if type(data) in choices:
        return _decode_plain(type(data), data, at)
    raise TypeError(f"{at}: {data!r} is no number")


def _decode_plain(kind: Any, data: Any, at: str) -> Any:
    if kind is float and type(data) is int:
        return float(data)
    if type(data) is not kind:
        raise TypeError(f"{at}: {data!r} is no {kind.__name__}")
    if kind is float and not math.isfinite(data):  # 1e999; infinity itself is text
        raise TypeError(f"{at}: {data!r} is too large for a number")
    return data


def _named(kind: Any, row: Any, at: str) -> dict[str, Any]:
    """A row of `_ROWS` as names with values."""
    names = [f.name for f in dataclasses.fields(kind)]
    if not isinstance(row, list) or len(row) > len(names):
        raise TypeError(f"{at}: a list of at most {len(names)} values was expected")
    return dict(zip(names, row, strict=False))


def _decode_fields(kind: Any, data: Any, at: str) -> Any:
    if not isinstance(data, dict):
        raise TypeError(f"{at}: an object was expected")
    hints = _hints(kind)
    unknown = sorted(set(data) - set(hints))
    if unknown:
        raise TypeError(f"{at}: unknown field {unknown[0]!r}")
    missing = [f.name for f in dataclasses.fields(kind) if f.name not in data and _must_be_there(f)]
    if missing:
        raise TypeError(f"{at}: the field {missing[0]!r} is missing")
    return kind(**{name: _decode(hints[name], value, f"{at}.{name}") for name, value in data.items()})


def _must_be_there(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _decode_tuple(args: tuple[Any, ...], data: Any, at: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise TypeError(f"{at}: a list was expected")
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(_decode(args[0], item, f"{at}[{i}]") for i, item in enumerate(data))
    if len(args) != len(data):
        raise TypeError(f"{at}: {len(args)} items were expected, {len(data)} are there")
    return tuple(_decode(a, item, f"{at}[{i}]") for i, (a, item) in enumerate(zip(args, data, strict=True)))


_HINTS: dict[Any, dict[str, Any]] = {}


def _hints(kind: Any) -> dict[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = typing.get_type_hints(kind)
    return _HINTS[kind]


Reference = tuple[str, int | None, int]
"""What an index counts, the index, and the length of the list that it points into."""


def _check_references(record: Record) -> None:
    """Every index points into its list, so that renderers need not check again."""
    for references in (_text_references, _run_references, _found_references):
        for what, index, size in references(record):
            if index is not None and not 0 <= index < size:
                raise ValueError(f"{what} {index} does not exist")
    for index in range(len(record.functions)):
        _check_parents(record, index)


def _text_references(record: Record) -> Iterator[Reference]:
    functions = len(record.functions)
    for statement in record.statements:
        yield "function", statement.function, functions
        yield "function", statement.target, functions
    for function in record.functions:
        yield "function", function.parent, functions
    for claim in record.claims:
        yield "function", claim.function, functions
        for operand in claim.operands:
            yield "snapshot", operand.value, len(record.snapshots)


def _run_references(record: Record) -> Iterator[Reference]:
    frames, statements = len(record.frames), len(record.statements)
    for i, frame in enumerate(record.frames):
        yield "function", frame.function, len(record.functions)
        yield "frame", frame.parent, i
        for _, argument in frame.arguments:
            yield "snapshot", argument, len(record.snapshots)
    for index in record.unreached:
        yield "statement", index, statements
    for step_frame, step_statement in record.steps:
        yield "frame", step_frame, frames
        yield "statement", step_statement, statements
    for loop in record.loops:
        yield "frame", loop.frame, frames
    for error in record.errors:
        yield "function", error.function, len(record.functions)


def _found_references(record: Record) -> Iterator[Reference]:
    frames, loops = len(record.frames), len(record.loops)
    steps = max(1, len(record.steps))  # what came before the first step carries the number 0
    for piece in record.pieces:
        yield "frame", piece.frame, frames
        yield "step", piece.step, steps
        yield "snapshot", piece.answer, len(record.snapshots)
    for value in record.values:
        yield "frame", value.frame, frames
        yield "step", value.step, steps
        yield "snapshot", value.value, len(record.snapshots)
        yield "loop", value.loop, loops
    for series in record.series:
        yield "loop", series.loop, loops


def _check_parents(record: Record, index: int) -> None:
    """Following `parent` ends."""
    start, parent = index, record.functions[index].parent
    for _ in record.functions:
        if parent is None:
            return
        parent = record.functions[parent].parent
    raise ValueError(f"function {start} is a part of itself")
