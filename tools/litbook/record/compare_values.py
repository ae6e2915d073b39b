"""Two snapshots or numbers, now and then -> what differs between them, as data, and by how much.

Integers, booleans, shapes, strides, dtypes and strings are compared exactly, floats within `TOLERANCES`.
Never compared are storage numbers, and addresses, paths and dates inside texts. No section is known here.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

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
# the tensor's largest element may be off. So do the small numbers of a loop: a loss that falls to zero
# ends in the rounding of where it began.
NOISE = 0.1

WIDEST = 90  # characters of one value


@dataclass(frozen=True)
class ValueChange:
    """One thing about a value: `at` says which (`.shape`, `[0, 3]`; empty for the value itself).

    Of a number, `by` is how much it differs, and `tolerated` how much it might.
    """

    at: str
    was: str
    now: str
    by: str = ""
    tolerated: str = ""

    @property
    def element(self) -> str:
        """`at` where it names a part of the value; "" where it says something about it, as `times shown`."""
        return self.at if self.at[:1] in (".", "[") else ""

    @property
    def aspect(self) -> str:
        """`at` where it is no part of the value."""
        return "" if self.element else self.at.strip()

    def __str__(self) -> str:
        at, by = f"{self.at}: " if self.at else "", "; ".join(filter(None, (self.by, self.tolerated)))
        return f"{at}was {self.was}, is {self.now}" + f", by {by}" * bool(by)


def count_change(at: str, was: int, now: int) -> ValueChange:
    """Of a count: what it was, is, and by how much."""
    return ValueChange(at, f"{was:,}", f"{now:,}", f"{abs(was - now):,}")


def changes(
    was: model.Snapshot, now: model.Snapshot, at: str = "", largest: float = 0.0
) -> list[ValueChange]:
    """What differs between two snapshots of one expression; nothing where they agree within `TOLERANCES`.

    `at` says where they stand in the value, `largest` is the largest magnitude among the turns of a loop.
    """
    if type(was) is not type(now) or was.type != now.type:
        return [ValueChange(at, _summary(was), _summary(now))]
    match was, now:
        case model.Scalar(), model.Scalar():
            a, b, name = was.number, now.number, number_format(was)
            if (a is None or b is None) and name.startswith("complex"):
                a, b = was.text, now.text
            if a is None or b is None:
                return [] if was.type.startswith("datetime.") else _text_changes(was.text, now.text, at)
            return number_changes([(at, a, b)], name, largest)
        case model.Sequence(), model.Sequence():
            if was.length != now.length:
                return [count_change(f"{at}.length", was.length, now.length)]
            items = enumerate(zip(was.items, now.items, strict=False))
            return [change for i, (a, b) in items for change in changes(a, b, f"{at}[{i}]")]
        case model.Mapping(), model.Mapping():
            both = was.keys, now.keys
            names, others = ([getattr(key, "text", None) or _summary(key) for key in keys] for keys in both)
            if was.length != now.length or names != others:
                return [ValueChange(f"{at} keys", cut_text(", ".join(names)), cut_text(", ".join(others)))]
            named = zip(names, was.items, now.items, strict=False)
            return [change for name, a, b in named for change in changes(a, b, f"{at}[{cut_text(name)}]")]
        case model.Tensor(), model.Tensor():
            return _tensor_changes(was, now, at)
        case model.Opaque(), model.Opaque():
            return _text_changes(was.text, now.text, at)
    return []


_EXACT = "dtype shape strides offset device bytes storage_bytes contiguous requires_grad axes".split()


def _tensor_changes(was: model.Tensor, now: model.Tensor, at: str) -> list[ValueChange]:
    """Metadata exactly (but never the storage's number), then statistics, then the values that both kept."""
    changes = []
    for name in _EXACT:
        a, b = getattr(was, name), getattr(now, name)
        if a != b:
            whole = type(a) is int and type(b) is int
            changes.append(
                count_change(f"{at}.{name}", a, b) if whole else ValueChange(f"{at}.{name}", str(a), str(b))
            )
    if was.dtype != now.dtype or was.shape != now.shape:
        return changes  # the values are others, then

    # the largest finite magnitude in both
    kept = [(*((t.stats.min, t.stats.max) if t.stats else t.values),) for t in (was, now)]
    largest = largest_magnitude(itertools.chain(*kept))

    # Where every value was kept, statistics say nothing more.
    if was.values and now.values and was.corner is None and now.corner is None:
        pass
    elif was.stats is None or now.stats is None:
        if was.stats is not now.stats:
            some = ("none" if tensor.stats is None else "some" for tensor in (was, now))
            changes.append(ValueChange(f"{at} statistics", *some))
    else:
        for name in ("min", "max", "mean", "std", "nan", "inf"):
            a, b = getattr(was.stats, name), getattr(now.stats, name)
            # of integers, mean and deviation are float64; of floats of any width they inherit its noise
            of = was.dtype if was.dtype in TOLERANCES or name in ("min", "max") else "float64"
            missing = None if a is b else ("one is missing",)
            by = missing if a is None or b is None else number_difference(a, b, of, largest)
            if by is not None:
                changes.append(ValueChange(f"{at}.{name}", _text(a), _text(b), *by))

    if was.corner == now.corner and len(was.values) == len(now.values):
        # Where each element stands, row by row: `[0, 0]`, `[0, 1]` ...
        shape = now.corner or now.shape
        indices = itertools.product(*map(range, shape))
        places = (f"{at}[{', '.join(map(str, index))}]" if shape else at for index in indices)
        changes += number_changes(zip(places, was.values, now.values, strict=False), was.dtype, largest)
    elif was.values or now.values:
        changes.append(ValueChange(f"{at} values kept", f"{len(was.values):,}", f"{len(now.values):,}"))
    return changes


# ---------------------------------------------------------------------------- comparing two numbers


def number_difference(
    was: model.Number, now: model.Number, name: str, largest: float = 0.0
) -> tuple[str, ...] | None:
    """By how much two numbers of the format `name` differ, and what is tolerated; None where they do not.

    `largest` is the largest magnitude of the tensor that holds them.
    """
    if was == now and type(was) is type(now):
        return None
    a, b = model.python_number(was), model.python_number(now)
    if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
        return ("another value",)
    if not (_finite(a) and _finite(b)):
        return None if a == b or (a != a and b != b) else ("one is not finite",)
    if isinstance(a, int) and isinstance(b, int):
        return None if a == b else (_relative(_text(abs(a - b)), a, b),)
    try:
        gap, bigger = abs(a - b), max(abs(a), abs(b))
    except OverflowError:
        return ("more than a float can hold",)
    tolerance = TOLERANCES.get(ALIASES.get(name, name), UNKNOWN)
    if gap <= tolerance * max(bigger, NOISE * largest):
        return None
    return _relative(f"{gap:.3g}", a, b), f"{name} may differ by {tolerance:.2g} of it"


def number_changes(
    rows: Iterable[tuple[str, model.Number, model.Number]], name: str, largest: float = 0.0
) -> list[ValueChange]:
    """The numbers that differ, of rows that say where each stands, what it was and what it is."""
    several = ((at, a, b, number_difference(a, b, name, largest)) for at, a, b in rows)
    return [ValueChange(at, _text(a), _text(b), *by) for at, a, b, by in several if by is not None]


def alike_json(was: object, now: object) -> bool:
    """Whether two values of JSON are the same, their floats within tolerance."""
    match was, now:
        case dict(), dict():
            return was.keys() == now.keys() and all(alike_json(was[name], now[name]) for name in was)
        case list(), list():
            return len(was) == len(now) and all(map(alike_json, was, now))
        case float(), float():
            return number_difference(was, now, "float") is None
    return was == now


def largest_magnitude(numbers: Iterable[model.Number | None]) -> float:
    """The largest finite magnitude of the floats and integers among these."""
    known = (model.python_number(number) for number in numbers if number is not None)
    return max((float(abs(n)) for n in known if n is not None and _finite(n)), default=0.0)


def _relative(gap: str, a: complex, b: complex) -> str:
    try:
        part = abs(a - b) / max(abs(a), abs(b))
    except (OverflowError, ZeroDivisionError):
        return gap
    return f"{gap} ({part:.3g} of it)"


def _finite(value: complex) -> bool:
    return isinstance(value, int) or (math.isfinite(value.real) and math.isfinite(value.imag))


def number_format(snapshot: model.Snapshot) -> str:
    """The name of a number's format: a dtype, `float`, `int`."""
    return snapshot.dtype if isinstance(snapshot, model.Tensor) else snapshot.type.rpartition(".")[2]


# ---------------------------------------------------------------------------- texts

# What a text may hold that is of this machine and this hour, not of the lecture.
_ELSEWHERE = (
    (re.compile(r"\bat 0x[0-9a-fA-F]{6,}"), "at 0x…"),
    (re.compile(r"(?<![\w./:*-])/(?:[^\s'\"<>,;:()\[\]]+/)+[^\s'\"<>,;:()\[\]]*(?::\d+)?"), "/…"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "…-…-…"),
)


def _text_changes(was: str, now: str, at: str) -> list[ValueChange]:
    """What differs between two texts, both cut so that the place where they part is in sight."""
    plain = was, now
    for pattern, instead in _ELSEWHERE:
        plain = pattern.sub(instead, plain[0]), pattern.sub(instead, plain[1])
    if plain[0] == plain[1]:
        return []
    parted = (i for i, (a, b) in enumerate(zip(was, now, strict=False)) if a != b)
    same = next(parted, min(len(was), len(now)))
    start = same - WIDEST // 2 if max(len(was), len(now)) > WIDEST and same > WIDEST // 2 else 0
    return [ValueChange(at, *(cut_text(("…" if start else "") + text[start:]) for text in (was, now)))]


def _text(value: model.Number | None) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value.bit_length() < 256 else f"an integer of {value.bit_length()} bits"
    return cut_text(value if isinstance(value, str) else repr(value))


def _summary(snapshot: model.Snapshot) -> str:
    """What a snapshot is, in a few words."""
    match snapshot:
        case model.Scalar():
            plain = snapshot.type in ("str", "bool", "NoneType")
            return cut_text(snapshot.text if plain else f"{snapshot.type} {snapshot.text}")
        case model.Tensor():
            return f"{snapshot.type} {snapshot.dtype} {snapshot.shape}"
        case model.Opaque():
            return cut_text(f"{snapshot.type} {snapshot.text}")
    return f"{snapshot.type} of {snapshot.length:,}"


def cut_text(text: str) -> str:
    text = text.replace("\n", " ⏎ ")
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
