"""A fresh record against a recording: what differs, and by how much.

Sections are matched by name. Within a section, values are matched by the text of their expression and the
order in which they came, so that lines which moved and edits elsewhere disturb nothing. A section whose text
changed since the recording is one difference of its own, not a hundred.

Compared are `@inspect` values and claims: integers, booleans, shapes, strides, dtypes and strings exactly,
floats within `TOLERANCES`. Never compared: what `@measure` shows and claims that mention it (of these only
the verdict), prose, figures, printed output, storage numbers, and addresses, paths and dates inside texts.
`docs/maintain.md` says the same to people. This module executes nothing and formats nothing but differences.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from litbook.errors import Place, RecordError
from litbook.record import model
from litbook.record.model import Section, grouped

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
        return _compared(fresh, recording)
    except RecursionError:
        raise RecordError("a value in the recording is nested too deep\n    record it again") from None


# ---------------------------------------------------------------------------- what a section holds


@dataclass
class _Run:
    """Values of one expression from one place in time: one alone, or the turns of one loop by number."""

    frame: int
    loop: int | None
    turns: dict[int, model.Value] = field(default_factory=dict)


def _runs(section: Section) -> dict[tuple[str, str], list[_Run]]:
    """What is compared of a section's values: by what showed them (itself, a helper) and expression."""
    found: dict[tuple[str, str], list[_Run]] = {}
    for value in section.values:
        if value.kind != "inspect" or value.address:
            continue
        runs = found.setdefault((_called(section, value.frame), value.text), [])
        last = runs[-1] if runs else None
        place = (value.frame, value.loop)
        same = last is not None and value.loop is not None and (last.frame, last.loop) == place
        if last is None or not same or value.turn in last.turns:
            runs.append(last := _Run(*place))
        last.turns[value.turn] = value
    return found


def _called(section: Section, frame: int) -> str:
    """The key of what runs in a frame; "" for the section itself."""
    number = section.frames[frame].called
    return section.calls[number - 1] if number else ""


def _series(section: Section) -> dict[tuple[str, str], list[model.Series]]:
    """The watched numbers of a section, by what watched them and expression."""
    return grouped(section.series, lambda it: (_called(section, section.loops[it.loop].frame), it.text))


def _questions(section: Section) -> dict[str, list[model.Piece]]:
    return grouped((it for it in section.pieces if it.kind == "question"), lambda it: it.text)


# ---------------------------------------------------------------------------- comparing two records


def _compared(fresh: model.Record, recording: model.Record) -> Comparison:
    paths = [source.path for source in fresh.sources] or [fresh.lecture]
    found: list[Difference] = []
    pairs: list[_Pair] = []
    for now in filter(fresh.was_asked, fresh.sections):
        was, place = recording.by_key.get(now.key), Place(paths[now.file], now.first)
        if was is None:
            found.append(Difference("section", now.key, place, "is not in the recording"))
        elif was.digest != now.digest:
            found.append(Difference("text", now.key, place, "was recorded from an older text"))
        elif now.ran or not now.requires:  # else there is nothing of this run to compare
            pairs.append(_Pair(fresh, now, was))
            found += pairs[-1].compare()
    if not fresh.asked:
        gone = (it.key for it in recording.sections if it.key not in fresh.by_key)
        what = "was recorded and is no longer there"
        found += [Difference("section", key, Place(paths[0], 1), what) for key in gone]
    order = {path: number for number, path in enumerate(paths)}
    found.sort(key=lambda it: (order.get(it.place.path, 0), it.place.line))
    return Comparison(tuple(found), sum(it.values for it in pairs), sum(it.claims for it in pairs))


class _Pair:
    """One section of a run, and its entry in a recording."""

    def __init__(self, record: model.Record, now: Section, was: Section) -> None:
        self.record, self.now, self.was = record, now, was
        self.found: list[Difference] = []
        self.said: set[tuple[str, tuple[Change, ...]]] = set()
        self.values = self.claims = 0

    def compare(self) -> list[Difference]:
        """What differs, in the order of the lines."""
        runs = _runs(self.now)
        self._values(runs, _runs(self.was))
        self._series(runs)
        self._questions()
        self._claims()
        return sorted(self.found, key=lambda it: it.place.line)

    def _add(
        self, kind: Literal["value", "claim"], frame: int | None, line: int, what: str, changes: list[Change]
    ) -> None:
        """Keep a difference, once: a value and the claim about it may both show the same change.

        `line` counts from the first of what runs in `frame`, or of the section where that is None.
        """
        key = what, tuple(changes)
        if changes and key not in self.said:
            self.said.add(key)
            it = self.now if frame is None else self.record.called(self.now, frame)
            place = Place(self.record.sources[it.file].path, it.first + line)
            self.found.append(Difference(kind, self.now.key, place, what, tuple(changes)))

    @property
    def _raised(self) -> bool:
        return bool(self.now.errors)

    # -- values

    def _values(self, now: dict[tuple[str, str], list[_Run]], was: dict[tuple[str, str], list[_Run]]) -> None:
        for key in [*now, *(key for key in was if key not in now)]:
            here, there = now.get(key, []), was.get(key, [])
            if len(here) != len(there) and not self._raised:
                first = next((v for run in here for v in run.turns.values()), None)
                frame, line = (first.frame, first.line) if first else (None, 0)
                self._add("value", frame, line, key[1], [_change("times shown", len(there), len(here))])
            for run, before in zip(here, there, strict=False):
                self._run(key[1], run, before)

    def _run(self, what: str, now: _Run, was: _Run) -> None:
        turns = sorted(set(now.turns) & set(was.turns))
        line = next(iter(now.turns.values())).line
        if now.loop is not None and was.loop is not None:
            loop, before = self.now.loops[now.loop], self.was.loops[was.loop]
            if loop.count != before.count:  # folded differently: only the first turns are the same turns
                turns = [turn for turn in turns if turn < FIRST]
                if loop.kind == "for" and not self._raised:  # a `while` may watch the clock
                    change = _change("turns of its loop", before.count, loop.count)
                    self._add("value", now.frame, line, what, [change])
            elif set(now.turns) != set(was.turns) and not self._raised:
                change = Change("turns that showed it", _listed(was.turns), _listed(now.turns))
                self._add("value", now.frame, line, what, [change])
        for turn in turns:
            value, earlier = now.turns[turn], was.turns[turn]
            self.values += 1
            at = f"turn {turn}" if now.loop is not None and len(now.turns) > 1 else ""
            self._add("value", value.frame, value.line, what, self._shown(earlier, value, at))

    def _shown(self, was: model.Value, now: model.Value, at: str) -> list[Change]:
        if was.value is None or now.value is None:
            texts = was.error or "a value", now.error or "a value"
            return [] if texts[0] == texts[1] else [Change(at, *map(_bounded, texts))]
        return _at(at, changes(self.was.snapshots[was.value], self.now.snapshots[now.value]))

    def _series(self, runs: dict[tuple[str, str], list[_Run]]) -> None:
        earlier = _series(self.was)
        for key, here in _series(self.now).items():
            if key not in runs:
                continue  # measured
            for series, before in zip(here, earlier.get(key, []), strict=False):
                if series.at == before.at:
                    self._thinned(key[1], series, before)

    def _thinned(self, what: str, series: model.Series, before: model.Series) -> None:
        name = self._format_of(series)
        self.values += len(series.at)
        found = [
            Change(f"turn {turn}", _text(a), _text(b), by)
            for turn, a, b in zip(series.at, before.values, series.values, strict=True)
            if (by := apart(a, b, name)) is not None
        ]
        known = [change for it in self.found if it.what == what for change in it.changes]
        frame = self.now.loops[series.loop].frame
        self._add("value", frame, series.line, what, [change for change in found if change not in known])

    def _format_of(self, series: model.Series) -> str:
        """The format of a watched number: of the tensor that held it, or Python's."""
        for value in self.now.values:
            if (value.loop, value.text) == (series.loop, series.text) and value.value is not None:
                return _format(self.now.snapshots[value.value])
        return "float"

    def _questions(self) -> None:
        """What the machine answers to a question of the author's."""
        earlier = _questions(self.was)
        for text, here in _questions(self.now).items():
            for piece, before in zip(here, earlier.get(text, []), strict=False):
                if piece.answer is not None and before.answer is not None:
                    self.values += 1
                    found = changes(self.was.snapshots[before.answer], self.now.snapshots[piece.answer])
                    self._add("value", None, piece.line, "the answer to a question", found)

    # -- claims

    def _claims(self) -> None:
        now, earlier = (grouped(it.claims, lambda claim: claim.text) for it in (self.now, self.was))
        for text, here in now.items():
            there = earlier.get(text, [])
            if len(here) != len(there):  # the text of the section is the same: somebody edited the recording
                self._add("claim", None, here[0].line, text, [_change("times shown", len(there), len(here))])
            for claim, before in zip(here, there, strict=False):
                self.claims += 1
                if claim.verdict != before.verdict:
                    change = Change("verdict", before.verdict, claim.verdict)
                    self._add("claim", None, claim.line, text, [change])
                if not (claim.measured or before.measured):
                    self._operands(claim, before)

    def _operands(self, now: model.Claim, was: model.Claim) -> None:
        for operand, before in zip(now.operands, was.operands, strict=False):
            if operand.value is not None and before.value is not None and not operand.address:
                found = changes(self.was.snapshots[before.value], self.now.snapshots[operand.value])
                self._add("claim", None, now.line, operand.text, found)


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


_EXACT = "dtype shape strides offset device bytes storage_bytes contiguous requires_grad axes".split()


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
        some = ["none" if it.stats is None else "some" for it in (was, now)]
        return [] if was.stats is now.stats else [Change(f"{at} statistics", *some)]
    found = []
    is_float = _format(was) in TOLERANCES
    for name in ("min", "max", "mean", "std", "nan", "inf"):
        a, b = getattr(was.stats, name), getattr(now.stats, name)
        # Of integers, mean and deviation are float64; of floats of any width they inherit its noise.
        of = was.dtype if is_float or name in ("min", "max") else "float64"
        missing = None if a is b else "one is missing"
        by = missing if a is None or b is None else apart(a, b, of, largest)
        if by is not None:
            found.append(Change(f"{at}.{name}", _text(a), _text(b), by))
    return found


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
    for index in itertools.product(*map(range, shape)):
        yield f"[{', '.join(map(str, index))}]" if shape else ""


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
            said = snapshot.type in ("str", "bool", "NoneType")
            return _bounded(snapshot.text if said else f"{snapshot.type} {snapshot.text}")
        case model.Tensor():
            return f"{snapshot.type} {snapshot.dtype} {snapshot.shape}"
        case model.Opaque():
            return _bounded(f"{snapshot.type} {snapshot.text}")
    return f"{snapshot.type} of {snapshot.length:,}"


def _bounded(text: str) -> str:
    text = text.replace("\n", " ⏎ ")
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
