"""The record of one run: frozen dataclasses, and their JSON.

This is the waist of the house. Everything left of it (source, instrument, snapshot, run) makes a
`Record` and formats nothing; everything right of it (compare, render, site) reads a `Record` and
executes nothing. It knows no torch, no `ast` and no HTML. `docs/record.md` explains every field.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import types
import typing
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from litbook.errors import RecordError

# History of the format, newest first. A reader refuses what is newer than itself.
#   2  a statement's lines are counted from the statement before it; claims leave out what they say anyway
#   1  first published form, still read; since 2026-11-20 a frame may have `arguments`
SCHEMA = 2

Number = int | float | bool | str
"""A number as JSON holds it; `"nan"`, `"inf"`, `"-inf"` and integers beyond 2**53 are text."""

BITS = 2000  # an integer up to 640 digits is written in decimal under every `sys.set_int_max_str_digits`


# ---------------------------------------------------------------------------- snapshots


@dataclass(frozen=True)
class Scalar:
    """A value that one short text says whole: numbers, strings, `None`, dtypes, devices."""

    type: str
    text: str  # Python's repr, bounded
    number: Number | None = None  # for int, float and bool: the value itself
    cut: bool = False  # the text was too long and ends early
    kind: Literal["scalar"] = "scalar"


@dataclass(frozen=True)
class Sequence:
    """A list, tuple, set or `torch.Size`: the first items, and how many there were."""

    type: str
    length: int
    items: tuple[Snapshot, ...] = ()
    kind: Literal["sequence"] = "sequence"


@dataclass(frozen=True)
class Mapping:
    """A dict, dataclass, named tuple, `torch.finfo`: names or keys with their values."""

    type: str
    length: int
    keys: tuple[Snapshot, ...] = ()
    items: tuple[Snapshot, ...] = ()
    kind: Literal["mapping"] = "mapping"


@dataclass(frozen=True)
class Stats:
    """What reading a tensor once tells. `mean` and `std` leave NaN and inf out."""

    min: Number | None = None
    max: Number | None = None
    mean: Number | None = None
    std: Number | None = None
    nan: int = 0
    inf: int = 0


@dataclass(frozen=True)
class Tensor:
    """A tensor or array: its metadata, and a corner of its values, never the whole of a large one.

    Sizes, strides and offsets count elements; `bytes` and `storage_bytes` count bytes. Two tensors
    of one record share memory exactly when their `storage` numbers are equal.
    """

    type: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None  # None where the layout has none (sparse)
    offset: int = 0
    device: str = "cpu"
    bytes: int = 0
    storage: int | None = None
    storage_bytes: int | None = None
    contiguous: bool = True
    requires_grad: bool = False
    axes: tuple[str, ...] | None = None  # names from a jaxtyping annotation
    stats: Stats | None = None
    corner: tuple[int, ...] | None = None  # how far `values` reaches along each axis
    values: tuple[Number, ...] = ()  # the corner, row-major
    memory: tuple[Number, ...] | None = None  # the whole storage, flat, when it is small
    bits: tuple[str, ...] | None = None  # of floats inspected `as bits`: the first values' bits, hexadecimal
    kind: Literal["tensor"] = "tensor"


@dataclass(frozen=True)
class Opaque:
    """Any other object: its type and a bounded text, or why there is none."""

    type: str
    text: str
    cut: bool = False
    why: str = ""  # "repr raised ValueError", "repr took too long", "nested too deep" ...
    kind: Literal["opaque"] = "opaque"


Snapshot = Scalar | Sequence | Mapping | Tensor | Opaque


# ---------------------------------------------------------------------------- where it ran


@dataclass(frozen=True)
class Device:
    """The device that a run computed on. `slug` names its recordings: `cpu`, `nvidia-h200`."""

    kind: str  # "cpu" or "cuda"
    slug: str
    name: str
    memory: int | None = None  # bytes
    driver: str | None = None
    cuda: str | None = None
    capability: str | None = None
    count: int | None = None  # how many the program saw; it computed on the first of them


@dataclass(frozen=True)
class Environment:
    """Where, when and with what a record was made."""

    python: str
    os: str
    machine: str
    cpu: str
    cores: int
    threads: int  # of torch; 0 when torch was not imported
    memory: int  # bytes of main memory
    device: Device
    versions: dict[str, str]
    commit: str | None  # ends in "+" when the working tree had changes
    date: str  # UTC, ISO 8601, to the second
    seed: int


# ---------------------------------------------------------------------------- the text


@dataclass(frozen=True)
class Source:
    """One file of the lecture. `cuts` says where a shown line ends, before its directive."""

    path: str
    sha256: str
    text: str
    cuts: tuple[tuple[int, int], ...] = ()  # (line, column), column 0-based in characters


FunctionKind = Literal["module", "main", "part", "section", "helper", "class"]


@dataclass(frozen=True)
class Function:
    """A function or class of the lecture; sections and parts are functions too.

    `digest` is the hash of its text. `parent` is, for a section, the part or main that calls it first.
    """

    name: str
    kind: FunctionKind
    first: int
    last: int
    heading: str = ""
    body: int = 0  # first line of the body after the docstring
    parent: int | None = None
    requires: str | None = None
    hidden: bool = False
    digest: str = ""


StatementKind = Literal["code", "claim", "piece", "section", "def", "doc", "hidden"]


@dataclass(frozen=True)
class Statement:
    """One statement: its lines, and what it is to a reader. `function` owns it."""

    function: int
    first: int
    last: int  # of a compound statement: the last line of its header
    kind: StatementKind = "code"
    end: int = 0  # last line with the whole body
    target: int | None = None  # for "section": the function called; for "def": the function defined
    prose: str = ""  # of a note that never ran: its text, with an ellipsis where a value would stand


# ---------------------------------------------------------------------------- what happened


@dataclass(frozen=True)
class Frame:
    """One call of a lecture function. `line` is where `parent` called from."""

    function: int
    parent: int | None = None
    line: int = 0
    arguments: tuple[tuple[str, int], ...] = ()  # (name, index into `snapshots`), as they were at the call


PieceKind = Literal["note", "misbelief", "question", "figure", "image", "link", "output", "speaker"]


@dataclass(frozen=True)
class Piece:
    """Something the author handed over: prose, a picture, a link, printed output.

    `line` is the line of the *section* that the piece belongs to, also when a helper made it.
    """

    kind: PieceKind
    step: int
    frame: int
    line: int
    text: str  # prose, question, caption, link text or output
    data: str = ""  # SVG of a figure, target of a link, "run" of a misbelief, hint, data URI of an image
    alt: str = ""
    rows: tuple[str, ...] = ()  # inventory ids that a misbelief settles
    answer: int | None = None  # of a question: index into `snapshots`
    unit: str | None = None  # of that answer


@dataclass(frozen=True)
class Value:
    """What one inspected expression was, after the statement on `line` had run for the `turn`-th time."""

    step: int
    frame: int
    line: int
    text: str
    value: int | None = None  # index into `snapshots`
    kind: Literal["inspect", "measure", "clear"] = "inspect"
    unit: str | None = None
    error: str = ""
    loop: int | None = None  # index into `loops`
    turn: int = 0  # which iteration of that loop, from 0


@dataclass(frozen=True)
class Loop:
    """One run of a loop: how many iterations there were, and which of them were kept."""

    frame: int
    line: int
    count: int
    kept: tuple[int, ...] = ()


@dataclass(frozen=True)
class Series:
    """A number watched over a loop, thinned evenly: what a sparkline is drawn from."""

    loop: int
    line: int
    text: str
    at: tuple[int, ...] = ()  # iterations
    values: tuple[Number, ...] = ()


Verdict = Literal["holds", "fails", "not-reached", "needs-device"]


@dataclass(frozen=True)
class Operand:
    """One side of a comparison, or an argument of a test: its source and what it was."""

    text: str
    value: int | None = None  # None: never evaluated


@dataclass(frozen=True)
class Claim:
    """An `assert` of a section, or an annotation that promises dtype and axes.

    `form` is the test's source around its operands: `("", " == ", "")` for `a == b`.
    `count` says how often it ran; the operands are those of the first failure, else of the first run.
    """

    function: int
    line: int
    last: int
    text: str
    caption: str = ""
    verdict: Verdict = "not-reached"
    kind: Literal["assert", "axes"] = "assert"
    count: int = 0
    form: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()
    why: str = ""  # for a failed annotation, or a claim on a device that is not here


@dataclass(frozen=True)
class Error:
    """Something that went wrong while the lecture ran. `trace` holds its own lines and its modules' only."""

    kind: Literal["exception", "exit", "inspect", "author"]
    function: int
    line: int
    text: str  # the user's line
    message: str
    trace: tuple[tuple[str, int, str, str], ...] = ()  # (path, line, function, source line)


@dataclass(frozen=True)
class Counts:
    """The last line of every run."""

    holds: int = 0
    fails: int = 0
    not_reached: int = 0
    needs_device: int = 0


@dataclass(frozen=True)
class Record:
    """Everything that one run left, enough for a renderer that has neither the lecture nor torch."""

    schema: int
    lecture: str
    title: str
    environment: Environment
    sources: tuple[Source, ...]
    functions: tuple[Function, ...]
    statements: tuple[Statement, ...]
    frames: tuple[Frame, ...] = ()
    steps: tuple[tuple[int, int], ...] = ()  # (frame, statement), in order of execution
    dropped: int = 0  # steps that ran but were folded away or over the budget
    unreached: tuple[int, ...] = ()  # statements of what ran that were never reached
    pieces: tuple[Piece, ...] = ()
    values: tuple[Value, ...] = ()
    loops: tuple[Loop, ...] = ()
    series: tuple[Series, ...] = ()
    claims: tuple[Claim, ...] = ()
    errors: tuple[Error, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)  # wall time per section name
    ran: tuple[str, ...] = ()  # the sections asked for; empty: the whole lecture

    # What renderers ask for section by section: looked up, so that pages cost in proportion to the lecture.

    @functools.cached_property
    def frames_of(self) -> dict[int, list[int]]:
        """Function -> its frames, in order."""
        found: dict[int, list[int]] = {}
        for i, frame in enumerate(self.frames):
            found.setdefault(frame.function, []).append(i)
        return found

    @functools.cached_property
    def statements_of(self) -> dict[int, list[tuple[int, Statement]]]:
        """Function -> its statements with their indices, in order."""
        found: dict[int, list[tuple[int, Statement]]] = {}
        for i, statement in enumerate(self.statements):
            found.setdefault(statement.function, []).append((i, statement))
        return found

    @functools.cached_property
    def hidden(self) -> list[Statement]:
        """The statements that no page shows."""
        return [statement for statement in self.statements if statement.kind == "hidden"]

    @functools.cached_property
    def values_of(self) -> dict[int, list[Value]]:
        """Frame -> what was shown in it, in order."""
        found: dict[int, list[Value]] = {}
        for value in self.values:
            found.setdefault(value.frame, []).append(value)
        return found

    @functools.cached_property
    def claims_of(self) -> dict[int, list[Claim]]:
        """Function -> its claims, in order."""
        found: dict[int, list[Claim]] = {}
        for claim in self.claims:
            found.setdefault(claim.function, []).append(claim)
        return found

    @functools.cached_property
    def _pieces_by_line(self) -> list[tuple[int, int]]:
        return sorted((piece.line, number) for number, piece in enumerate(self.pieces))

    def pieces_between(self, first: int, last: int) -> list[Piece]:
        """Pieces that came from these lines, both included, in the order in which they came."""
        by_line = self._pieces_by_line
        inside = by_line[bisect_left(by_line, (first, 0)) : bisect_left(by_line, (last + 1, 0))]
        return [self.pieces[number] for number in sorted(number for _, number in inside)]

    @functools.cached_property
    def ran_in(self) -> dict[int, set[int]]:
        """Frame -> the statements that ran in it."""
        found: dict[int, set[int]] = {}
        for frame, statement in self.steps:
            found.setdefault(frame, set()).add(statement)
        return found

    def count(self) -> Counts:
        """How many claims hold, fail, were not reached, and need a device that was not here.

        Of a run of some sections, those sections' claims only.
        """
        found = [claim.verdict for claim in self.claims if self.asked(claim.function)]
        return Counts(
            holds=found.count("holds"),
            fails=found.count("fails"),
            not_reached=found.count("not-reached"),
            needs_device=found.count("needs-device"),
        )

    def taken(self) -> float | None:
        """Seconds that the whole lecture took; None where the record does not say."""
        if "main" in self.seconds:  # a recording keeps the sum alone
            return self.seconds["main"]
        parts = [self.functions[i].name for i in self.sections()]
        return sum(self.seconds.get(name, 0.0) for name in parts) if self.seconds else None

    def asked(self, function: int | None) -> bool:
        """Whether `function` was to run: always, or because it or a part above it was asked for."""
        while self.ran and function is not None:
            if self.functions[function].name in self.ran:
                return True
            function = self.functions[function].parent
        return not self.ran

    def sections(self, parent: int | None = None) -> list[int]:
        """Indices of the functions that `parent` (default: main) calls as sections, in order."""
        if parent is None:
            parent = next((i for i, f in enumerate(self.functions) if f.kind == "main"), None)
        return list(self._sections.get(parent, ()))

    @cached_property
    def _sections(self) -> dict[int | None, list[int]]:
        """For every function, the sections that are its own: pages ask for them again and again."""
        found: dict[int | None, list[int]] = {}
        for statement in self.statements:
            caller, called = statement.function, statement.target
            if statement.kind == "section" and called is not None and self.functions[called].parent == caller:
                found.setdefault(caller, []).append(called)
        return {caller: list(dict.fromkeys(several)) for caller, several in found.items()}


# ---------------------------------------------------------------------------- JSON

_SNAPSHOTS: dict[str, type] = {
    "scalar": Scalar,
    "sequence": Sequence,
    "mapping": Mapping,
    "tensor": Tensor,
    "opaque": Opaque,
}


# What there is most of is kept as rows: values in the order of the fields.
_ROWS = (Statement, Frame, Loop, Operand)


def number(value: float | int | bool) -> Number:
    """`value` as strict JSON holds it without loss; see `Number`. Beyond `BITS`, integers are infinite."""
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) <= 2**53):
        return value
    if isinstance(value, int) and value.bit_length() > BITS:
        return "inf" if value > 0 else "-inf"
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    return float(value)


def python_number(value: Number) -> int | float | complex | None:
    """The number that a record holds as `value`, also one that it keeps as text; None for any other text."""
    if not isinstance(value, str):
        return value
    for kind in (int, float, complex):
        try:
            return kind(value)
        except ValueError:
            continue
    return None


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
