"""The record of one run: frozen dataclasses, and their JSON.

This is the waist of the house. Everything left of it (source, instrument, snapshot, run) makes a
`Record` and formats nothing; everything right of it (compare, render, site) reads a `Record` and
executes nothing. It knows no torch, no `ast` and no HTML. `docs/record.md` explains every field.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

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
    """The device that a run computed on. `slug` names its recordings: `cpu`, `some-gpu`."""

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


# ---------------------------------------------------------------------------- numbers


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
