"""The record of one run: frozen structs, which msgspec writes and reads.

This is the waist of the house. What stands before it (text, probe, run) makes a `Record` and formats
nothing; what stands behind it (compare, document, site) reads a `Record` and executes nothing. It knows no
torch, no `ast` and no HTML. `docs/record.md` explains every field.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeVar

import msgspec

# History of the format: a reader takes this one alone, and says of any other how to record anew.
#   5  a section says what its claims depend on
#   4  places, lines, steps, claims and numbers are written as they are, a row with all of its values
#   3  a list of sections, each whole in itself
#   2  a statement's lines are counted from the statement before it; claims leave out what they say anyway
#   1  first published form
SCHEMA = 5
COMPARABLE = (4, 5)  # of these the values are still read, so that `--approve` can say what changes

Number = int | float | bool | str
"""A number as JSON holds it; `"nan"`, `"inf"`, `"-inf"` and integers beyond 2**53 are text."""

BITS = 2000  # an integer up to 640 digits is written in decimal under every `sys.set_int_max_str_digits`


class JsonObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A JSON object. A field that holds its default is left out, and one that is unknown is refused."""


class JsonArray(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A JSON list of the values of all fields, in their order: what there is most of."""


# ---------------------------------------------------------------------------- snapshots


class SnapshotBase(JsonObject, frozen=True, tag_field="kind", tag=str.lower):
    """A bounded copy of a value; in JSON its `kind` says which form it has."""

    @property
    def kind(self) -> str:
        """`scalar`, `sequence`, `mapping`, `tensor` or `opaque`."""
        return type(self).__name__.lower()


class Scalar(SnapshotBase, frozen=True):
    """A value that one short text says whole: numbers, strings, `None`, dtypes, devices."""

    type: str
    text: str  # Python's repr, bounded
    number: Number | None = None  # for int, float and bool: the value itself
    cut: bool = False  # the text was too long and ends early


class Sequence(SnapshotBase, frozen=True):
    """A list, tuple, set or `torch.Size`: the first items, and how many there were."""

    type: str
    length: int
    items: tuple[Snapshot, ...] = ()


class Mapping(SnapshotBase, frozen=True):
    """A dict, dataclass, named tuple, `torch.finfo`: names or keys with their values."""

    type: str
    length: int
    keys: tuple[Snapshot, ...] = ()
    items: tuple[Snapshot, ...] = ()


class Stats(JsonObject, frozen=True):
    """What reading a tensor once tells. `mean` and `std` leave NaN and inf out."""

    min: Number | None = None
    max: Number | None = None
    mean: Number | None = None
    std: Number | None = None
    nan: int = 0
    inf: int = 0


class Tensor(SnapshotBase, frozen=True):
    """A tensor or array: its metadata, and a corner of its values, never the whole of a large one.

    Sizes, strides and offsets count elements; `bytes` and `storage_bytes` count bytes. Two tensors
    of one section share memory exactly when their `storage` numbers are equal.
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


class Opaque(SnapshotBase, frozen=True):
    """Any other object: its type and a bounded text, or why there is none."""

    type: str
    text: str
    cut: bool = False
    why: str = ""  # "repr raised ValueError", "repr took too long", "nested too deep" ...
    media: str = ""  # of a value that shows itself: "image/svg+xml", "image/png", "text/latex" or "text/html"
    form: str = ""  # what it shows, as it gave it: not harmless; of a PNG in base64


Snapshot = Scalar | Sequence | Mapping | Tensor | Opaque

# Types of which no object is ever another value than it was, as a snapshot names them.
_CONSTANT_SEQUENCES = ("tuple", "frozenset", "range", "torch.Size")
_CONSTANT_MAPPINGS = ("torch.finfo", "torch.iinfo")
_CONSTANT_OPAQUES = ("type", "module", "function", "method", "builtin_function_or_method")


def is_constant(snapshot: Snapshot) -> bool:
    """Whether what was looked at will always look so: a number, a text, a dtype, a tuple of such."""
    match snapshot:
        case Scalar():  # of numpy's two the fields can be set
            changes = ("bytearray", "numpy.void", "numpy.record")
            return snapshot.type not in changes and not snapshot.text.startswith("bytearray(")
        case Sequence():
            return snapshot.type in _CONSTANT_SEQUENCES and all(map(is_constant, snapshot.items))
        case Mapping():
            return snapshot.type in _CONSTANT_MAPPINGS
        case Opaque():
            return snapshot.type in _CONSTANT_OPAQUES and not snapshot.why
    return False


# ---------------------------------------------------------------------------- where it ran


class Device(JsonObject, frozen=True):
    """The device that a run computed on. `slug` names its recordings: `cpu`, `some-gpu`."""

    kind: str  # "cpu", or a row of `device_kinds`
    slug: str
    name: str
    memory: int | None = None  # bytes
    driver: str | None = None
    cuda: str | None = None
    capability: str | None = None
    count: int | None = None  # how many the program saw; it computed on the first of them


# What lectures compute with, as the extra `torch` in pyproject.toml brings it.
LIBRARIES = ("torch", "numpy", "einops", "jaxtyping", "matplotlib")


class Environment(JsonObject, frozen=True):
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

    @property
    def machine_name(self) -> str:
        """What readers know the machine by: its GPU, or where the run used none its processor."""
        return self.device.name if self.device.kind != "cpu" else self.cpu or self.device.name


# ---------------------------------------------------------------------------- the text


class Source(JsonObject, frozen=True):
    """One file of the lecture. `cuts` says where a shown line ends, before its directive."""

    path: str
    sha256: str
    text: str
    cuts: tuple[tuple[int, int], ...] = ()  # (line, column), column 0-based in characters


StatementKind = Literal["code", "claim", "piece", "section", "def", "doc", "hidden"]


class Statement(JsonArray, frozen=True):
    """One statement: its lines, counted from the first of its section or definition, and what it is."""

    first: int
    last: int  # of a compound statement: the last line of its header
    kind: StatementKind = "code"
    end: int = 0  # last line with the whole body
    target: str = ""  # for "section": the key of the section called; for "def": of the definition
    prose: str = ""  # of a note that never ran: its text, with an ellipsis where a value would stand
    binds: tuple[str, ...] = ()  # the names to which its header gives a new value

    @property
    def line_range(self) -> range:
        """Its lines with the whole body."""
        return range(self.first, max(self.end, self.last) + 1)


class Definition(JsonObject, frozen=True):
    """A helper or class of the lecture. It stands once, however many sections call it.

    `key` names it within the lecture: `mean`, `Decoder.forward`, and in a folder `models.Decoder.forward`.
    """

    key: str
    kind: Literal["helper", "class"]
    file: int  # index into `sources`
    first: int  # line of that file
    lines: int  # how many it takes
    heading: str = ""
    body: int = 0  # first line of the body after the docstring, counted from `first`
    hidden: bool = False
    shown: bool = False  # its lines stand in the section that first names it
    digest: str = ""  # hash of its text, without prose
    statements: tuple[Statement, ...] = ()

    @property
    def name(self) -> str:
        """The name that its `def` or `class` gives it."""
        return self.key.rpartition(".")[2].partition("#")[0]

    @property
    def last(self) -> int:
        """Its last line in the file."""
        return self.first + self.lines - 1


# ---------------------------------------------------------------------------- what happened


class Frame(JsonArray, frozen=True):
    """One call, of the section itself or of a definition. `line` of its `parent` is where it came from."""

    called: int = 0  # 0: the section; n: the n-th of the section's `calls`
    parent: int | None = None
    line: int = 0
    arguments: tuple[tuple[str, int], ...] = ()  # (name, index into `snapshots`), as they were at the call


PICTURES = {  # how the files begin of the kinds of picture that a record may hold, as image/KIND
    "png": rb"\x89PNG\r\n\x1a\n",
    "jpeg": rb"\xff\xd8\xff",
    "gif": rb"GIF8[79]a",
    "webp": rb"RIFF....WEBP",
    "svg+xml": rb"[^\x00]{0,4000}?<svg\b",
}
WITHIN = 0.01  # how far off an answer may be, unless its author says
PieceKind = Literal[
    "note", "misbelief", "question", "figure", "image", "link", "output", "stderr", "speaker", "explore"
]
ChartKind = Literal["bars", "stack", "curve"]


class Slider(JsonObject, frozen=True):
    """What a reader moves: its name, and the places it has, in order. Texts make a choice.

    Of more places than a slider can have, which a script alone moves to, `span` is the range.
    """

    name: str
    places: tuple[Number, ...] = ()
    span: tuple[int, int, int] | None = None  # as Python's `range` has it: start, stop, step

    @property
    def size(self) -> int:
        """How many places there are."""
        return len(range(*self.span)) if self.span else len(self.places)


class Grid(JsonObject, frozen=True):
    """What a function came to at every place of one slider or two; the second moves fastest.

    `points` holds at each place one number for each of `names`, or in words why there is none. `at` is the
    author's place, counted along each slider; `limit` a name and a number that is drawn across.
    """

    kind: ChartKind
    sliders: tuple[Slider, ...]
    at: tuple[int, ...]
    names: tuple[str, ...]
    points: tuple[tuple[Number, ...] | str, ...]
    unit: str | None = None
    limit: tuple[str, Number] | None = None

    def index(self, at: Iterable[int]) -> int:
        """Where in `points` a place is."""
        index = 0
        for slider, place in zip(self.sliders, at, strict=True):
            index = index * len(slider.places) + place
        return index

    def places(self) -> Iterator[str]:
        """Each point in words, `batch=8, context=1024`, in the order of `points`."""
        for several in itertools.product(*(slider.places for slider in self.sliders)):
            yield ", ".join(f"{s.name}={place}" for s, place in zip(self.sliders, several, strict=True))


class Live(JsonObject, frozen=True):
    """A picture that a script of the author's draws; `still` is the SVG that stands there without it.

    `points` are places, counted along each slider, with what the lecture's function gave there as JSON, or
    why it gave nothing. The page shows nothing of a script that says something else at one of them.
    """

    still: str
    script: str
    sliders: tuple[Slider, ...]
    at: tuple[int, ...]
    points: tuple[tuple[tuple[int, ...], str, str], ...]

    def places(self) -> Iterator[str]:
        """Each point in words, `batch=8, context=1024`, in the order of `points`."""
        for at, _json, _why in self.points:
            both = zip(self.sliders, at, strict=True)
            yield ", ".join(f"{s.name}={range(*s.span)[i] if s.span else s.places[i]}" for s, i in both)


class Piece(JsonObject, frozen=True):
    """Something the author handed over: prose, a picture, a link, printed output.

    `line` is the line of the section's own statement, also when a helper made it.
    """

    kind: PieceKind
    step: int
    frame: int  # -1: a question of a section that did not run, and whose answer needs nothing of it
    line: int
    text: str  # prose, question, caption, link text, output, or what no page shows: output past stdout
    # SVG of a figure, target of a link, "run" of a misbelief, hint or what to try, data URI of a file
    data: str = ""
    alt: str = ""
    answer: int | None = None  # of a question: index into `snapshots`
    unit: str | None = None  # of that answer
    why: str = ""  # it is so, in a sentence; of a grid: what one should have seen
    width: int = 0  # of an image, in pixels of the page; 0: its own
    within: float = WITHIN  # right is what is at most 1 + this times too large or too small
    wrong: tuple[tuple[str, float], ...] = ()  # a mistake in a sentence, and the number that comes of it
    grid: Grid | None = None  # of what readers explore
    live: Live | None = None  # or the picture of it, which a script draws


class Value(JsonArray, frozen=True):
    """What one inspected expression was, after the statement on `line` had run for the `turn`-th time.

    `line` counts from the first line of what `frame` calls.
    """

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
    address: bool = False  # the expression is nothing but an address: another one in every run
    reads: tuple[str, ...] = ()  # the names in the expression, where it is more than a name


class Local(JsonArray, frozen=True):
    """What a local name was after a step that gave it a value, or may have changed its object."""

    step: int
    frame: int
    name: str
    value: int | None = None  # index into `snapshots`; None: past a loop's first iterations nobody looks


class Loop(JsonArray, frozen=True):
    """One run of a loop: how many iterations there were, and which of them were kept."""

    frame: int
    line: int
    count: int
    kept: tuple[int, ...] = ()
    kind: Literal["for", "while"] = "for"


class Series(JsonObject, frozen=True):
    """A number watched over a loop, thinned evenly: what a sparkline is drawn from."""

    loop: int
    line: int
    text: str
    at: tuple[int, ...] = ()  # iterations
    values: tuple[Number, ...] = ()


Verdict = Literal["holds", "fails", "not-reached", "needs-device"]


class Operand(JsonArray, frozen=True):
    """One side of a comparison, or an argument of a test: its source and what it was."""

    text: str
    value: int | None = None  # None: never evaluated
    address: bool = False  # as of a `Value`


class Claim(JsonObject, frozen=True):
    """An `assert` of a section, or an annotation that promises dtype and axes.

    `form` is the test's source around its operands: `("", " == ", "")` for `a == b`.
    `count` says how often it ran; the operands are those of the first failure, else of the first run.
    """

    line: int
    last: int
    text: str
    caption: str
    verdict: Verdict
    kind: Literal["assert", "axes"] = "assert"
    count: int = 0
    form: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()
    why: str = ""  # for a failed annotation, or a claim on a device that is not here
    measured: bool = False  # it mentions what its section measures: two runs agree on its verdict alone
    zero: bool = False  # its author says that zero, or nothing, is the point
    shown: bool = False  # its author says that the comparison is the lesson: a page shows it as code
    nothing: str = ""  # why it holds and says nothing, where only the run could see that


class Assert(JsonObject, frozen=True):
    """An assert that ran and is no claim, or any whose test was left, or is true whatever it is about.

    `key` is that of the section or definition it stands in, from whose first line `line` counts; `column`
    counts the bytes before it in its line.
    """

    key: str
    line: int
    text: str
    column: int = 0
    nothing: str = ""  # why it holds and says nothing


class Wording(JsonArray, frozen=True):
    """A text that a word was given for readers, with U+E000 for each hole of its own f-string.

    `key` is that of the section or definition in which the word stands, from whose first line `line` counts;
    `column` counts the bytes before the call in its line.
    """

    key: str
    line: int
    column: int
    word: str
    text: str


class Error(JsonObject, frozen=True):
    """Something that went wrong while a section ran.

    `line` is the section's own line beside which it is shown. `trace` holds the lecture's lines and those of
    modules beside it, outermost first, with the lines that the files had then: it ends where it went wrong.
    """

    kind: Literal["exception", "exit", "inspect", "author", "assert"]
    line: int
    text: str  # the user's line
    message: str
    trace: tuple[tuple[str, int, str, str], ...] = ()  # (path, line, function, source line)


# ---------------------------------------------------------------------------- sections, and all of them

SectionKind = Literal["module", "main", "part", "section"]


class Share(JsonObject, frozen=True):
    """What one rank of a section left; None for what stands in the entry, since this rank agrees with it.

    In a list, a number stands for the item of the entry's own list that has it.
    """

    frames: tuple[Frame, ...] | None = None
    steps: tuple[tuple[int, int], ...] | None = None
    dropped: int | None = None
    unreached: tuple[tuple[int, int], ...] | None = None
    pieces: tuple[Piece | int, ...] | None = None
    values: tuple[Value | int, ...] | None = None
    locals: tuple[Local | int, ...] | None = None
    loops: tuple[Loop, ...] | None = None
    series: tuple[Series | int, ...] | None = None
    claims: tuple[Claim | int, ...] | None = None
    errors: tuple[Error, ...] | None = None


class Section(JsonObject, frozen=True, dict=True):
    """One section of a run, whole in itself: its text's lines, and all that happened while it ran.

    Nothing in it points outside: statements, frames, steps, values, snapshots and storages are numbered
    within it, and its lines count from its first, which is 0. Only `parent`, `calls` and the targets of
    statements name others, by key. So a section is reused, compared, kept or shown by taking its entry, and
    moving it changes none of it but `file` and `first`.
    """

    key: str  # its name; where two parts have a section of one name, in a folder: `storage.a_view`
    kind: SectionKind
    file: int  # index into `sources`
    first: int  # line of that file
    lines: int  # how many it takes
    name: str = ""
    heading: str = ""
    parent: str = ""  # key of the part or main that calls it first
    body: int = 0  # first line of the body after the docstring, counted from `first`
    requires: str | None = None
    run: Environment | None = None  # that it was recorded in, where that is not the record's own
    aside: bool = False  # off the main path; so is what it calls
    hidden: bool = False
    digest: str = ""  # hash of its text, without prose
    depends: str = ""  # hash of all that its claims depend on: see `text.depends`
    seal: str = ""  # of a recording: hash of this entry and of where it ran, see `consistency.seal`
    seconds: float = 0.0  # wall time, with the sections inside it
    statements: tuple[Statement, ...] = ()
    calls: tuple[str, ...] = ()  # keys of the definitions that it calls
    frames: tuple[Frame, ...] = ()
    steps: tuple[tuple[int, int], ...] = ()  # (frame, statement of what it calls), in order of execution
    dropped: int = 0  # steps that ran but were folded away or over the budget
    full: bool = False  # once at least steps were over the budget: some may be missing anywhere after that
    unreached: tuple[tuple[int, int], ...] = ()  # (as `Frame.called`, statement): never reached
    pieces: tuple[Piece, ...] = ()
    values: tuple[Value, ...] = ()
    locals: tuple[Local, ...] = ()
    loops: tuple[Loop, ...] = ()
    series: tuple[Series, ...] = ()
    claims: tuple[Claim, ...] = ()
    errors: tuple[Error, ...] = ()
    wordings: tuple[Wording, ...] = ()  # each once; a recording has none
    snapshots: tuple[Snapshot, ...] = ()
    shares: tuple[Share, ...] = ()  # of a section that ran on several ranks: what each of them left, in order

    @property
    def last(self) -> int:
        """Its last line in the file."""
        return self.first + self.lines - 1

    @property
    def has_run(self) -> bool:
        """Whether it was entered at all."""
        return bool(self.frames)

    @functools.cached_property
    def values_of(self) -> dict[int, list[Value]]:
        """Frame -> what was shown in it, in order."""
        return group_by(self.values, lambda value: value.frame)

    @functools.cached_property
    def ran_in(self) -> dict[int, set[int]]:
        """Frame -> the statements that ran in it."""
        ran: dict[int, set[int]] = {}
        for frame, statement in self.steps:
            ran.setdefault(frame, set()).add(statement)
        return ran


class Record(JsonObject, frozen=True, dict=True):
    """Everything that one run left, enough for a renderer that has neither the lecture nor torch.

    `sections` stand in the order of the book: what the modules' own lines do, `main`, then every part with
    its sections as `main` reaches them.
    """

    schema: int
    lecture: str
    title: str
    environment: Environment
    sources: tuple[Source, ...]
    definitions: tuple[Definition, ...] = ()
    sections: tuple[Section, ...] = ()
    seconds: float = 0.0  # wall time of the whole lecture
    peak: int = 0  # bytes of main memory that its process held at most
    asked: tuple[str, ...] = ()  # keys of the sections asked for; empty: the whole lecture
    asserts: tuple[Assert, ...] = ()

    @functools.cached_property
    def by_key(self) -> dict[str, Section]:
        """Key -> section."""
        return {section.key: section for section in self.sections}

    @functools.cached_property
    def definition_of(self) -> dict[str, Definition]:
        """Key -> definition."""
        return {definition.key: definition for definition in self.definitions}

    @functools.cached_property
    def main(self) -> Section:
        """The section that is the lecture's table of contents."""
        return next(section for section in self.sections if section.kind == "main")

    @functools.cached_property
    def _children_of(self) -> dict[str, list[Section]]:
        return group_by(self.sections, lambda section: section.parent)

    def children(self, section: Section | None = None) -> list[Section]:
        """The sections that a part or main (the default) calls as its own, in order."""
        return self._children_of.get((section or self.main).key, [])

    def tree(self, section: Section) -> list[Section]:
        """A section and all that it reaches, in order."""
        return [section, *(deeper for child in self.children(section) for deeper in self.tree(child))]

    def callee(self, section: Section, frame: int) -> Section | Definition:
        """What runs in a frame of the section: the section itself, or a definition."""
        number = section.frames[frame].called
        return self.definition_of[section.calls[number - 1]] if number else section

    def was_asked(self, section: Section) -> bool:
        """Whether the section was to run: always, or because it or a part above it was asked for."""
        above: Section | None = section
        while self.asked and above is not None:
            if above.key in self.asked:
                return True
            above = self.by_key.get(above.parent)
        return not self.asked

    def claims(self) -> Iterator[tuple[Section, Claim]]:
        """Every claim with its section, in the order of the book."""
        return ((section, claim) for section in self.sections for claim in section.claims)

    def errors(self) -> Iterator[tuple[Section, Error]]:
        """Every error with its section, in the order of the book."""
        return ((section, error) for section in self.sections for error in section.errors)

    def count(self) -> Counter[str]:
        """How many claims hold, fail, were not reached, and need a device that was not here.

        Of a run of some sections, those sections' claims only.
        """
        return Counter[str](claim.verdict for section, claim in self.claims() if self.was_asked(section))


GroupKey = TypeVar("GroupKey")
GroupItem = TypeVar("GroupItem")


def group_by(
    items: Iterable[GroupItem], key: Callable[[GroupItem], GroupKey]
) -> dict[GroupKey, list[GroupItem]]:
    """The items of each key, in their order."""
    groups: dict[GroupKey, list[GroupItem]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


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
