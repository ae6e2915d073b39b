"""A fresh record against a recording: what differs, and by how much.

Sections are matched by name. Within a section, values are matched by the text of their expression and the
order in which they came, so that lines which moved and edits elsewhere disturb nothing. A section whose text
changed since the recording is one difference of its own, not a hundred.

Compared are `@inspect` values and claims: integers, booleans, shapes, strides, dtypes and strings exactly,
floats within `TOLERANCES`. Never compared: what `@measure` shows and claims that mention it (of these only
the verdict), prose, figures, printed output, storage numbers, and addresses, paths and dates inside texts.
`docs/maintain.md` says the same to people. This room executes nothing and formats nothing but differences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from litbook.errors import Place, RecordError
from litbook.record import model

# How far apart two floats may be, relative to the larger one. Sums run in another order on another CPU, with
# other threads and in another release, and what is rounded afterwards may land on the next float. So there is
# room for reordered sums in the wide formats, and for two steps between neighbours in the narrow ones. Seen
# in one lecture, between torch's AVX2 kernels with four threads and its plain ones with one: up to 8e-5.
TOLERANCES: dict[str, float] = {
    "float64": 1e-9,
    "float32": 1e-4,
    "float": 1e-4,  # Python's: mostly `.item()` of a float32, and nothing says which
    "float16": 2 * 2.0**-10,
    "bfloat16": 2 * 2.0**-7,
    "float8_e4m3fn": 2 * 2.0**-3,
    "float8_e4m3fnuz": 2 * 2.0**-3,
    "float8_e5m2": 2 * 2.0**-2,
    "float8_e5m2fnuz": 2 * 2.0**-2,
    "float8_e8m0fnu": 0.5,  # powers of two: the next one is half or twice as large
}
ALIASES = {"complex": "float", "complex64": "float32", "complex128": "float64", "longdouble": "float64"}
UNKNOWN = TOLERANCES["float32"]  # a format that this table does not have yet

# Inside a tensor, small elements carry the rounding noise of large ones: they may be off by this part of what
# the tensor's largest element may be off.
NOISE = 0.1

UNITS = ("module", "main", "part", "section")  # what a comparison goes by
FIRST = 3  # turns at the start of a loop that every record keeps
WIDEST = 90  # characters of one value
SHOWN = 4  # changes of one value that are spelled out

Scale = float | None  # a tensor's largest magnitude, where there is one


@dataclass(frozen=True)
class Change:
    """One thing about a value: `at` says which (`.shape`, `[0, 3]`; empty for the value itself)."""

    at: str
    was: str
    now: str
    by: str = ""

    def __str__(self) -> str:
        return f"{self.at}{': ' if self.at else ''}was {self.was}, is {self.now}" + (
            f", by {self.by}" if self.by else ""
        )


@dataclass(frozen=True)
class Difference:
    """Something of a section that is not what was recorded: a value, a claim, or the section itself."""

    kind: Literal["value", "claim", "text", "section"]
    section: str
    place: Place
    what: str  # the expression or claim; of a section, what happened to it
    changes: tuple[Change, ...] = ()

    @property
    def contradicts(self) -> bool:
        """Whether run and recording say different things; where the text is new, it says a new thing."""
        return self.kind in ("value", "claim")

    def __str__(self) -> str:
        at = f"{self.place.path}:{self.place.line}: {_bounded(self.section)}"
        if self.kind in ("text", "section"):
            return f"{at} {self.what}"
        lines = [f"{at}: {_bounded(self.what)} is not what was recorded"]
        lines += [f"    {change}" for change in self.changes[:SHOWN]]
        if len(self.changes) > SHOWN:
            lines.append(f"    and {len(self.changes) - SHOWN} more")
        return "\n".join(lines)


@dataclass(frozen=True)
class Comparison:
    """All differences in the order of the lines, and how much was compared to find them."""

    differences: tuple[Difference, ...]
    values: int
    claims: int


def compare(fresh: model.Record, recording: model.Record) -> Comparison:
    """What of `fresh` differs from `recording`; of a run of some sections, those sections only.

    Raises `RecordError` if the two are not of the same lecture.
    """
    if fresh.lecture != recording.lecture:
        raise RecordError(
            f"a record of {recording.lecture!r} cannot be compared with one of {fresh.lecture!r}\n"
            "    compare two records of one lecture"
        )
    try:
        return _Comparing(fresh, recording).all()
    except RecursionError:
        raise RecordError("a value in the recording is nested too deep\n    record it again") from None


# ---------------------------------------------------------------------------- what a record holds, by section


@dataclass
class _Run:
    """Values of one expression from one place in time: one alone, or the turns of one loop by number."""

    frame: int
    loop: int | None
    turns: dict[int, model.Value] = field(default_factory=dict)


@dataclass
class _Unit:
    """One section of a record, with what its own code and the helpers that it called left."""

    function: int
    runs: dict[tuple[str, str], list[_Run]] = field(default_factory=dict)  # by function and expression
    claims: dict[str, list[model.Claim]] = field(default_factory=dict)
    series: dict[tuple[str, str], list[model.Series]] = field(default_factory=dict)
    questions: dict[str, list[model.Piece]] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)  # measured expressions
    names: set[str] = field(default_factory=set)  # and the names in them
    raised: bool = False

    @classmethod
    def of(cls, record: model.Record) -> dict[int, _Unit]:
        """Every unit of the record by the number of its function."""
        found = {i: cls(i) for i, f in enumerate(record.functions) if f.kind in UNITS}
        if not found:
            return {}
        owner = _owners(record, next(iter(found)))
        for value in record.values:
            found[owner[value.frame]].take(record, value)
        for claim in record.claims:
            if claim.function in found:
                found[claim.function].claims.setdefault(claim.text, []).append(claim)
        for series in record.series:
            frame = record.loops[series.loop].frame
            key = record.functions[record.frames[frame].function].name, series.text
            found[owner[frame]].series.setdefault(key, []).append(series)
        for piece in record.pieces:
            if piece.kind == "question":
                found[owner[piece.frame]].questions.setdefault(piece.text, []).append(piece)
        for error in record.errors:
            if error.function in found:
                found[error.function].raised = True
        return found

    def take(self, record: model.Record, value: model.Value) -> None:
        if value.kind == "measure":
            self.texts.add(value.text)
            self.names |= _names(value.text)
        if value.kind != "inspect" or is_address(value.text):
            return
        key = record.functions[record.frames[value.frame].function].name, value.text
        runs = self.runs.setdefault(key, [])
        last = runs[-1] if runs else None
        same = (
            last is not None
            and value.loop is not None
            and (last.frame, last.loop) == (value.frame, value.loop)
        )
        if last is None or not same or value.turn in last.turns:
            runs.append(last := _Run(value.frame, value.loop))
        last.turns[value.turn] = value

    def mentions(self, text: str) -> bool:
        if not self.names.isdisjoint(_words(text)):
            return True
        composed = (measured for measured in self.texts if not measured.isidentifier())
        return any(re.search(rf"(?<![\w.]){re.escape(measured)}(?!\w)", text) for measured in composed)


def _owners(record: model.Record, module: int) -> list[int]:
    """For every frame, the section in whose time it ran."""
    owner: list[int] = []
    for frame in record.frames:
        if record.functions[frame.function].kind in UNITS:
            owner.append(frame.function)
        else:
            owner.append(module if frame.parent is None else owner[frame.parent])
    return owner


_CHAIN = re.compile(r"(?<![\w.])([^\W\d]\w*)(?:\s*\.\s*\w+)*(\s*\()?")
_STRINGS = re.compile(r"'[^']*'|\"[^\"]*\"")


def _names(text: str) -> set[str]:
    """Names that an expression reads; what it calls (`round(...)`, `torch.cuda.now()`) is none of them."""
    return {
        name
        for name, called in _CHAIN.findall(_STRINGS.sub("''", text))
        if not called and name not in _KEYWORDS
    }


def _words(text: str) -> set[str]:
    """All names in a text, called or not, that do not follow a dot."""
    return {name for name, _ in _CHAIN.findall(_STRINGS.sub("''", text))}


_KEYWORDS = {
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "for",
    "lambda",
    "None",
    "True",
    "False",
    "await",
    "async",
}


_ADDRESS = re.compile(r"(?:hex\()?(?:[\w.\[\]()]+\.data_ptr\(\)|id\([^()]*\))\)?")


def is_address(text: str) -> bool:
    """Whether an expression is nothing but an address: `x.data_ptr()`, `id(x)`, `hex(id(x))`."""
    return _ADDRESS.fullmatch(text) is not None


# ---------------------------------------------------------------------------- comparing two records


class _Comparing:
    """Two records side by side; everything found goes into `found`."""

    def __init__(self, fresh: model.Record, recording: model.Record) -> None:
        self.fresh, self.recording = fresh, recording
        self.path = fresh.sources[0].path if fresh.sources else fresh.lecture
        self.lines = fresh.sources[0].text.splitlines() if fresh.sources else []
        self.found: list[Difference] = []
        self.said: set[tuple[str, str, tuple[Change, ...]]] = set()
        self.values = self.claims = 0

    def all(self) -> Comparison:
        here, there = _named(self.fresh), _named(self.recording)
        for name, now in here.items():
            if self.fresh.asked(now.function):
                self._unit(name, now, there.get(name))
        if not self.fresh.ran:
            gone = [name for name in there if name not in here]
            self.found += [
                Difference("section", name, Place(self.path, 1), "was recorded and is no longer there")
                for name in gone
            ]
        found = sorted(self.found, key=lambda d: d.place.line)
        return Comparison(tuple(found), self.values, self.claims)

    def _unit(self, name: str, now: _Unit, was: _Unit | None) -> None:
        spec = self.fresh.functions[now.function]
        place = Place(self.path, spec.first)
        if was is None:
            self.found.append(Difference("section", name, place, "is not in the recording"))
        elif self.recording.functions[was.function].digest != spec.digest:
            self.found.append(Difference("text", name, place, "was recorded from an older text"))
        else:
            self._values(name, now, was)
            self._series(name, now, was)
            self._questions(name, now, was)
            self._claims(name, now, was)

    def _add(
        self, kind: Literal["value", "claim"], section: str, line: int, what: str, changes: list[Change]
    ) -> None:
        """Keep a difference, once: a value and the claim about it may both show the same change."""
        key = section, what, tuple(changes)
        if changes and key not in self.said:
            self.said.add(key)
            self.found.append(Difference(kind, section, Place(self.path, line), what, tuple(changes)))

    # -- values

    def _values(self, section: str, now: _Unit, was: _Unit) -> None:
        for key in [*now.runs, *(k for k in was.runs if k not in now.runs)]:
            here, there = now.runs.get(key, []), was.runs.get(key, [])
            if len(here) != len(there) and not now.raised:
                line = next(
                    (v.line for run in here for v in run.turns.values()),
                    self.fresh.functions[now.function].first,
                )
                self._add("value", section, line, key[1], [_times(len(there), len(here))])
            for run, before in zip(here, there, strict=False):
                self._run(section, key[1], run, before, now.raised)

    def _run(self, section: str, what: str, now: _Run, was: _Run, raised: bool) -> None:
        turns = sorted(set(now.turns) & set(was.turns))
        line = next(iter(now.turns.values())).line
        if now.loop is not None and was.loop is not None:
            loop, before = self.fresh.loops[now.loop], self.recording.loops[was.loop]
            if loop.count != before.count:  # folded differently: only the first turns are the same turns
                turns = [turn for turn in turns if turn < FIRST]
                if self._counts(loop) and not raised:
                    self._add(
                        "value", section, line, what, [_change("turns of its loop", before.count, loop.count)]
                    )
            elif set(now.turns) != set(was.turns) and not raised:
                change = Change("turns that showed it", _listed(was.turns), _listed(now.turns))
                self._add("value", section, line, what, [change])
        for turn in turns:
            value, before_ = now.turns[turn], was.turns[turn]
            self.values += 1
            at = f"turn {turn}" if now.loop is not None and len(now.turns) > 1 else ""
            self._add("value", section, value.line, what, self._shown(before_, value, at))

    def _shown(self, was: model.Value, now: model.Value, at: str) -> list[Change]:
        if was.value is None or now.value is None:
            texts = was.error or "a value", now.error or "a value"
            return [] if texts[0] == texts[1] else [Change(at, *map(_bounded, texts))]
        return _at(at, changes(self.recording.snapshots[was.value], self.fresh.snapshots[now.value]))

    def _counts(self, loop: model.Loop) -> bool:
        """Whether how often the loop turns is the lecture's doing: a `while` may watch the clock."""
        text = self.lines[loop.line - 1].split() if 0 < loop.line <= len(self.lines) else []
        return text[:1] != ["while"]

    def _series(self, section: str, now: _Unit, was: _Unit) -> None:
        for key, here in now.series.items():
            if key not in now.runs:
                continue  # measured
            for series, before in zip(here, was.series.get(key, []), strict=False):
                if series.at == before.at:
                    name = self._format_of(series)
                    self.values += len(series.at)
                    found = [
                        Change(f"turn {turn}", _text(a), _text(b), by)
                        for turn, a, b in zip(series.at, before.values, series.values, strict=True)
                        if (by := apart(a, b, name)) is not None
                    ]
                    known = [
                        c for d in self.found if d.what == key[1] and d.section == section for c in d.changes
                    ]
                    self._add("value", section, series.line, key[1], [c for c in found if c not in known])

    def _format_of(self, series: model.Series) -> str:
        """The format of a watched number: of the tensor that held it, or Python's."""
        for value in self.fresh.values:
            if (value.loop, value.text) == (series.loop, series.text) and value.value is not None:
                return _format(self.fresh.snapshots[value.value])
        return "float"

    def _questions(self, section: str, now: _Unit, was: _Unit) -> None:
        """What the machine answers to a question of the author's."""
        for text, here in now.questions.items():
            for piece, before in zip(here, was.questions.get(text, []), strict=False):
                if piece.answer is not None and before.answer is not None:
                    self.values += 1
                    found = changes(
                        self.recording.snapshots[before.answer], self.fresh.snapshots[piece.answer]
                    )
                    self._add("value", section, piece.line, "the answer to a question", found)

    # -- claims

    def _claims(self, section: str, now: _Unit, was: _Unit) -> None:
        for text, here in now.claims.items():
            there = was.claims.get(text, [])
            if len(here) != len(there):  # the text of the section is the same: somebody edited the recording
                self._add("claim", section, here[0].line, text, [_times(len(there), len(here))])
            for claim, before in zip(here, there, strict=False):
                self.claims += 1
                if claim.verdict != before.verdict:
                    change = Change("verdict", before.verdict, claim.verdict)
                    self._add("claim", section, claim.line, text, [change])
                if not (now.mentions(text) or was.mentions(text)):
                    self._operands(section, claim, before)

    def _operands(self, section: str, now: model.Claim, was: model.Claim) -> None:
        for operand, before in zip(now.operands, was.operands, strict=False):
            if operand.value is not None and before.value is not None and not is_address(operand.text):
                found = changes(self.recording.snapshots[before.value], self.fresh.snapshots[operand.value])
                self._add("claim", section, now.line, operand.text, found)


def _named(record: model.Record) -> dict[str, _Unit]:
    found: dict[str, _Unit] = {}
    for index, unit in _Unit.of(record).items():
        name = record.functions[index].name
        if name not in found or record.functions[index].kind != "module":
            found.setdefault(name, unit)
    return found


def _times(was: int, now: int) -> Change:
    return Change("times shown", f"{was:,}", f"{now:,}", f"{abs(was - now):,}")


def _change(at: str, was: int, now: int) -> Change:
    return Change(at, f"{was:,}", f"{now:,}", f"{abs(was - now):,}")


def _listed(turns: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(turns)))


def _at(at: str, found: list[Change]) -> list[Change]:
    return (
        [Change(f"{at}{change.at}", change.was, change.now, change.by) for change in found] if at else found
    )


# ---------------------------------------------------------------------------- comparing two snapshots


def changes(was: model.Snapshot, now: model.Snapshot, at: str = "") -> list[Change]:
    """What differs between two snapshots of one expression; nothing where they agree within `TOLERANCES`."""
    if type(was) is not type(now) or was.type != now.type:
        return [Change(at, _said(was), _said(now))]
    match was, now:
        case (model.Scalar(), model.Scalar()):
            return _scalars(was, now, at)
        case (model.Sequence(), model.Sequence()):
            return _sequences(was, now, at)
        case (model.Mapping(), model.Mapping()):
            return _mappings(was, now, at)
        case (model.Tensor(), model.Tensor()):
            return _tensors(was, now, at)
        case (model.Opaque(), model.Opaque()):
            return _texts(was.text, now.text, at)
    return []


def _scalars(was: model.Scalar, now: model.Scalar, at: str) -> list[Change]:
    name = _format(was)
    if was.number is not None and now.number is not None:
        by = apart(was.number, now.number, name)
        return [] if by is None else [Change(at, _text(was.number), _text(now.number), by)]
    if name.startswith("complex") or was.type == "complex":
        by = apart(was.text, now.text, name)
        return [] if by is None else [Change(at, _bounded(was.text), _bounded(now.text), by)]
    if was.type.startswith("datetime."):
        return []
    return _texts(was.text, now.text, at)


def _sequences(was: model.Sequence, now: model.Sequence, at: str) -> list[Change]:
    if was.length != now.length:
        return [_change(f"{at}.length", was.length, now.length)]
    pairs = zip(was.items, now.items, strict=False)
    return [c for i, (a, b) in enumerate(pairs) for c in changes(a, b, f"{at}[{i}]")]


def _mappings(was: model.Mapping, now: model.Mapping, at: str) -> list[Change]:
    names, others = [[getattr(key, "text", None) or _said(key) for key in it.keys] for it in (was, now)]
    if was.length != now.length or names != others:
        return [Change(f"{at} keys", _bounded(", ".join(names)), _bounded(", ".join(others)))]
    pairs = zip(names, was.items, now.items, strict=False)
    return [c for name, a, b in pairs for c in changes(a, b, f"{at}[{_bounded(name)}]")]


_EXACT = (
    "dtype",
    "shape",
    "strides",
    "offset",
    "device",
    "bytes",
    "storage_bytes",
    "contiguous",
    "requires_grad",
    "axes",
)


def _tensors(was: model.Tensor, now: model.Tensor, at: str) -> list[Change]:
    """Metadata exactly (but never the storage's number), then statistics, then the values that both kept."""
    found = []
    for name in _EXACT:
        a, b = getattr(was, name), getattr(now, name)
        if a != b:
            whole = type(a) is int and type(b) is int
            found.append(_change(f"{at}.{name}", a, b) if whole else Change(f"{at}.{name}", str(a), str(b)))
    if was.dtype != now.dtype or was.shape != now.shape:
        return found  # the values are others, then
    largest = _largest(was, now)
    found += _statistics(was, now, largest, at)
    if was.corner == now.corner and len(was.values) == len(now.values):
        places = _places(now.corner or now.shape)
        for a, b, place in zip(was.values, now.values, places, strict=False):
            by = apart(a, b, was.dtype, largest)
            if by is not None:
                found.append(Change(f"{at}{place}", _text(a), _text(b), by))
    elif was.values or now.values:
        found.append(Change(f"{at} values kept", f"{len(was.values):,}", f"{len(now.values):,}"))
    return found


def _statistics(was: model.Tensor, now: model.Tensor, largest: Scale, at: str) -> list[Change]:
    if was.stats is None or now.stats is None:
        both = was.stats is now.stats
        return [] if both else [Change(f"{at} statistics", _there(was.stats), _there(now.stats))]
    found = []
    is_float = _format(was) in TOLERANCES
    for name in ("min", "max", "mean", "std", "nan", "inf"):
        a, b = getattr(was.stats, name), getattr(now.stats, name)
        # Of integers, mean and deviation are float64; of floats of any width they inherit its noise.
        by = _none_apart(a, b, was.dtype if is_float or name in ("min", "max") else "float64", largest)
        if by is not None:
            found.append(Change(f"{at}.{name}", _text(a), _text(b), by))
    return found


def _there(thing: object) -> str:
    return "none" if thing is None else "some"


def _none_apart(a: model.Number | None, b: model.Number | None, name: str, largest: Scale) -> str | None:
    if a is None or b is None:
        return None if a is b else "one is missing"
    return apart(a, b, name, largest)


def _largest(*tensors: model.Tensor) -> Scale:
    """The largest finite magnitude in two tensors."""
    found = [
        abs(x)
        for it in tensors
        for raw in ((it.stats.min, it.stats.max) if it.stats else it.values)
        if raw is not None and (x := model.python_number(raw)) is not None and _finite(x)
    ]
    return float(max(found)) if found else None


def _places(shape: Sequence[int]) -> Iterator[str]:
    """Indices of a tensor's elements, row by row: `[0, 0]`, `[0, 1]` ..."""
    for flat in range(math.prod(shape)):
        index, rest = [], flat
        for size in reversed(shape):
            index.append(rest % size)
            rest //= size
        yield f"[{', '.join(map(str, reversed(index)))}]" if shape else ""


# ---------------------------------------------------------------------------- comparing two numbers


def apart(was: model.Number, now: model.Number, name: str, largest: Scale = None) -> str | None:
    """By how much two numbers of the format `name` differ, in words; None where that is within tolerance.

    `largest` is the largest magnitude of the tensor that holds them.
    """
    if was == now and type(was) is type(now):
        return None
    a, b = model.python_number(was), model.python_number(now)
    if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
        return "another value"
    if not (_finite(a) and _finite(b)):
        return None if a == b or (a != a and b != b) else "one is not finite"
    if isinstance(a, int) and isinstance(b, int):
        return None if a == b else _relative(_text(abs(a - b)), a, b)
    try:
        gap, bigger = abs(a - b), max(abs(a), abs(b))
    except OverflowError:
        return "more than a float can hold"
    tolerance = TOLERANCES.get(ALIASES.get(name, name), UNKNOWN)
    if gap <= tolerance * max(bigger, NOISE * (largest or 0.0)):
        return None
    return f"{_relative(f'{gap:.3g}', a, b)}; {name} may differ by {tolerance:.2g} of it"


def _relative(gap: str, a: complex, b: complex) -> str:
    try:
        part = abs(a - b) / max(abs(a), abs(b))
    except (OverflowError, ZeroDivisionError):
        return gap
    return f"{gap} ({part:.3g} of it)"


def _finite(value: complex) -> bool:
    return isinstance(value, int) or (math.isfinite(value.real) and math.isfinite(value.imag))


def _format(snapshot: model.Snapshot) -> str:
    """The name of a number's format: a dtype, `float`, `int`."""
    return snapshot.dtype if isinstance(snapshot, model.Tensor) else snapshot.type.rpartition(".")[2]


# ---------------------------------------------------------------------------- texts

# What a text may hold that is of this machine and this hour, not of the lecture.
_ELSEWHERE = (
    (re.compile(r"\bat 0x[0-9a-fA-F]{6,}"), "at 0x…"),
    (re.compile(r"(?<![\w./:*-])/(?:[^\s'\"<>,;:()\[\]]+/)+[^\s'\"<>,;:()\[\]]*"), "/…"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "…-…-…"),
)


def _texts(was: str, now: str, at: str) -> list[Change]:
    if was == now or _plain(was) == _plain(now):
        return []
    return [Change(at, *_around(was, now))]


def _plain(text: str) -> str:
    for pattern, instead in _ELSEWHERE:
        text = pattern.sub(instead, text)
    return text


def _around(was: str, now: str) -> tuple[str, str]:
    """Both texts, cut so that the place where they part is in sight."""
    same = next(
        (i for i, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now))
    )
    start = same - WIDEST // 2 if max(len(was), len(now)) > WIDEST and same > WIDEST // 2 else 0
    a, b = (_bounded(("…" if start else "") + it[start:]) for it in (was, now))
    return a, b


def _text(value: model.Number | None) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value.bit_length() < 256 else f"an integer of {value.bit_length()} bits"
    return _bounded(value if isinstance(value, str) else repr(value))


def _said(snapshot: model.Snapshot) -> str:
    """What a snapshot is, in a few words."""
    match snapshot:
        case model.Scalar():
            return _bounded(
                f"{snapshot.text}"
                if snapshot.type in ("str", "bool", "NoneType")
                else f"{snapshot.type} {snapshot.text}"
            )
        case model.Tensor():
            return f"{snapshot.type} {snapshot.dtype} {snapshot.shape}"
        case model.Opaque():
            return _bounded(f"{snapshot.type} {snapshot.text}")
    return f"{snapshot.type} of {snapshot.length:,}"


def _bounded(text: str) -> str:
    text = text.replace("\n", " ⏎ ")
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
