"""What readers explore, as data: where each mark stands at every point, and what is said there.

Scales and texts are made here alone. A back end draws one point, and the page's script draws another by
putting its marks in place of these: it computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from msgspec import Struct

from litbook.i18n import _
from litbook.record.model import Grid, Live, Number, Slider, python_number
from litbook.values import units

WHOLE = 1000  # marks are counted in thousandths of the picture's width or height
MOST = 2.5  # bars are drawn whole up to so many times their limit
FAR = 100  # where the largest number is so many times the smallest, a curve's axis is logarithmic


class Point(Struct, frozen=True):
    """One point: a mark and a text for each name; where there is no value, why, and neither.

    `limit` is where the limit stands, -1 without one; `total` is what a stack adds up to.
    """

    marks: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    limit: int = -1
    total: str = ""
    gap: str = ""


class Chart(Struct, frozen=True):
    """All points of a grid as they are drawn, in its order.

    Of a curve `across` has the place of each column, `bottom` and `top` are what its upright axis reaches,
    `between` has round numbers in between with their marks, and `far` says which axis is logarithmic, the
    level one or the upright one.
    """

    grid: Grid
    points: tuple[Point, ...]
    limit: str = ""  # its name and number
    across: tuple[int, ...] = ()
    bottom: str = ""
    top: str = ""
    between: tuple[tuple[int, str], ...] = ()
    far: tuple[bool, bool] = (False, False)

    @property
    def start(self) -> Point:
        """The author's point."""
        return self.points[self.grid.index(self.grid.at)]

    def ends(self) -> list[tuple[str, Point]]:
        """The author's point, and both ends of all sliders together, each with its place in words."""
        last = [len(slider.places) - 1 for slider in self.grid.sliders]
        chosen = dict.fromkeys([self.grid.at, (0,) * len(last), (*last,)])
        return [(place_text(self.grid, at), self.points[self.grid.index(at)]) for at in chosen]

    def in_words(self, point: Point) -> str:
        """A point in words."""
        if point.gap:
            return _("no value: {why}", why=point.gap)
        pairs = zip(self.grid.names, point.texts, strict=True)
        texts = [f"{name} {text}".strip() for name, text in pairs]
        return ", ".join([*texts, *([_("together {amount}", amount=point.total)] if point.total else [])])


def chart(grid: Grid) -> Chart:
    """The chart of a grid."""
    rows = [None if isinstance(point, str) else [*map(_float, point)] for point in grid.points]
    limit = None if grid.limit is None else _float(grid.limit[1])
    named = "" if grid.limit is None else f"{grid.limit[0]}: {format_value(grid.limit[1], grid.unit)}"
    curve, stack = grid.kind == "curve", grid.kind == "stack"
    numbers = [number for row in rows for number in row or ()] + ([] if limit is None else [limit])
    highest = max((sum(row) if stack else max(row) for row in rows if row), default=0.0)
    # A limit is a size to compare with: it has one place at all points, and a bar that is longer is torn off.
    widest = (
        highest if limit is None else 1.25 * limit if highest > MOST * limit else max(highest, 1.1 * limit)
    )
    up, points = _scale(numbers), list[Point]()
    for row, kept in zip(rows, grid.points, strict=True):
        if row is None or isinstance(kept, str):
            points.append(Point(gap=str(kept)))
            continue
        every = row if limit is None else [*row, limit]
        marks = tuple(map(up, every)) if curve else _lengths(row, limit, WHOLE / (widest or 1), stack)
        plain = [n for n in map(python_number, kept) if isinstance(n, int | float)]
        texts = tuple(format_value(number, grid.unit) for number in kept)
        whole = format_value(sum(plain), grid.unit) if stack and len(kept) > 1 else ""
        points.append(Point(marks[: len(row)], texts, -1 if limit is None else marks[-1], whole))
    if not curve:
        return Chart(grid, (*points,), named)
    columns = grid.sliders[0].places
    numeric = not any(isinstance(place, str) for place in columns)
    positions = [_float(place) for place in columns] if numeric else [*map(float, range(len(columns)))]
    bottom, top = (format_value(bound(numbers, default=0.0), grid.unit) for bound in (min, max))
    across, far = map(_scale(positions), positions), (_is_logarithmic(positions), _is_logarithmic(numbers))
    between = ((up(number), format_value(number, grid.unit)) for number in _round(numbers))
    return Chart(grid, (*points,), named, (*across,), bottom, top, (*between,), far)


def _lengths(row: Sequence[float], limit: float | None, scale: float, stack: bool) -> tuple[int, ...]:
    """The length of each bar, of a stack each part, up to the frame's end; then the place of the limit."""
    ends, marks = [round(min(WHOLE, amount * scale)) for amount in accumulate(row)], list[int]()
    if stack:
        marks = [end - start for start, end in pairwise((0, *ends))]
    else:
        marks = [round(min(WHOLE, amount * scale)) for amount in row]
    return (*marks, *(() if limit is None else (round(limit * scale),)))


def _is_logarithmic(numbers: Sequence[float]) -> bool:
    return min(numbers, default=0.0) > 0 and max(numbers) / min(numbers) >= FAR


def _round(numbers: Sequence[float]) -> list[float]:
    """Up to four round numbers between the least and the greatest: powers of ten on a logarithmic axis."""
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    if _is_logarithmic(numbers):
        powers = range(math.floor(math.log10(low)) + 1, math.ceil(math.log10(high)))
        return [10**power for power in powers[:: max(1, -(-len(powers) // 4))]]
    if not low < high:
        return []
    small = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(small * factor for factor in (1, 2, 5, 10) if (high - low) / 4 <= small * factor)
    return [n * step for n in range(math.floor(low / step) + 1, math.ceil(high / step))]


def _scale(numbers: Sequence[float]) -> Callable[[float], int]:
    """Where a number stands between the least and the greatest of these."""
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    turn: Callable[[float], float] = math.log if _is_logarithmic(numbers) else float
    low, span = turn(low), turn(high) - turn(low)
    return lambda number: round((turn(number) - low) / span * WHOLE) if span else WHOLE // 2


def lines(grid: Grid | Live) -> list[str]:
    """Where the author starts, and both ends, in words; what a script draws has none."""
    if isinstance(grid, Live):
        return []
    drawn = chart(grid)
    return [f"{where}: {drawn.in_words(point)}" for where, point in drawn.ends()]


def place_text(grid: Grid, at: Sequence[int]) -> str:
    """A place of the sliders in words: `batch 8, context 1,024`."""
    return ", ".join(
        f"{slider_label(s)} {place_label(s, index)}" for s, index in zip(grid.sliders, at, strict=True)
    )


def slider_label(slider: Slider) -> str:
    """What a reader calls a slider: its name is that of a parameter."""
    return slider.name.replace("_", " ")


def place_label(slider: Slider, index: int) -> str:
    """One place of a slider as it is read."""
    return format_value(slider.places[index], None)


def format_value(value: Number, unit: str | None) -> str:
    """A number in one short form, a text as it is."""
    number = python_number(value)
    if isinstance(value, str) or not isinstance(number, int | float):
        return str(value)
    return units.short(number, unit or "")


def _float(value: Number) -> float:
    number = python_number(value)
    return float(number) if isinstance(number, int | float) else math.nan
