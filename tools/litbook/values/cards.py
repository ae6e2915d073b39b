"""What is taller than a line: cards of tensors, tables of names and values, values that show themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from litbook.html import elements
from litbook.html.elements import Html, tag
from litbook.i18n import _, number
from litbook.record.model import Mapping, Number, Opaque, Snapshot, Tensor
from litbook.values import formatting, units
from litbook.values.drawings import as_float

SHADES = 10
MOST_SLICES = 4
ONE_ROW, ROW = 10, 8  # values of one dimension that stand in one row; how many stand in each row of more
TableRow = tuple[str, Mapping]

# MIME type -> what draws a form in which a value showed itself, given its alternative text, a prefix for ids,
# and the way to the folder of the lecture. A form is whatever a library wrote, perhaps into a recording made
# elsewhere: what draws it makes it harmless, and returns nothing where it may not stand in a page.
DRAW: dict[str, Callable[[str, str, str, str], Html]] = {}


def display(name: str, value: Opaque, prefix: str, up: str) -> Html:
    """What the value of `name` showed of itself; its text, where that may not stand in a page.

    The ids of a drawing begin with `prefix`; from the page `up` leads to the folder of its lecture.
    """
    draw = DRAW.get(value.media)
    alt = f"{name}: {value.text or value.type}"
    drawing = draw(value.form, alt, prefix, up) if draw else elements.NOTHING
    caption = tag("figcaption", tag("b", name), f" · {value.type.rpartition('.')[2]}")
    return tag("figure", caption, " ", drawing or tag("pre", value.text), class_="lb-shown")


def table(rows: Sequence[TableRow], unit: str | None = None) -> Html:
    """Mappings of one kind as one table: a row for each, a column for each key. Numbers are in `unit`."""
    titles = [tag("td"), *(tag("th", _bare(key), scope="col") for key in rows[0][1].keys)]
    body = []
    for name, mapping in rows:
        cells = [tag("td", _bare(item, unit)) for item in mapping.items]
        # the spaces here and below part the words for the search
        body.append(tag("tr", elements.join([tag("th", name, scope="row"), *cells, ""], " ")))
    head = tag("thead", tag("tr", elements.join(titles, " ")))
    drawn = tag("table", head, tag("tbody", *body), class_="lb-table")
    return tag("div", drawn, class_="lb-scroll", tabindex="0")


def pairs(name: str, mapping: Mapping, unit: str | None = None) -> Html:
    """One mapping as a table of two columns. Numbers are in `unit`."""
    body = [
        tag("tr", tag("th", _bare(key), scope="row"), " ", tag("td", _bare(item, unit)), " ")
        for key, item in zip(mapping.keys, mapping.items, strict=False)
    ]
    if mapping.length > len(body):
        body.append(tag("tr", tag("td", _("… {n} in all", n=number(mapping.length)), colspan="2")))
    drawn = tag("table", tag("caption", name), " ", tag("tbody", *body), class_="lb-table lb-pairs")
    return tag("div", drawn, class_="lb-scroll", tabindex="0")


def _bare(cell: Snapshot, unit: str | None = None) -> str:
    """A cell's text; a string without its quotes."""
    text = formatting.plain_line(formatting.part_line(cell, unit))
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == "'" else text


# ---------------------------------------------------------------------------- a tensor


def tensor(name: str, snapshot: Tensor) -> Html:
    """The card of one tensor: what it is called, how it lies in memory, and a corner of its values."""
    facts = [
        f"{snapshot.dtype} {formatting.shape(snapshot)}",
        units.size(snapshot.bytes),
        "" if snapshot.strides is None else _("strides {strides}", strides=snapshot.strides),
        _("offset {n}", n=snapshot.offset) if snapshot.offset else "",
        "" if snapshot.contiguous else _("not contiguous"),
        "" if snapshot.device == "cpu" else snapshot.device,
        _("requires grad") if snapshot.requires_grad else "",
    ]
    head = tag("figcaption", tag("b", name), *(elements.text(f" · {fact}") for fact in filter(None, facts)))
    parts = [head, elements.SPACE, _grids(name, snapshot)]
    # What reading the whole tensor told, where the card shows only a corner of it.
    if (stats := snapshot.stats) is not None and len(snapshot.values) != math.prod(snapshot.shape):
        named = [("min", stats.min), ("mean", stats.mean), ("max", stats.max), ("std", stats.std)]
        told = [f"{what} {formatting.number(value)}" for what, value in named if value is not None]
        told += [f"{count:,} {what}" for what, count in (("nan", stats.nan), ("inf", stats.inf)) if count]
        parts += [tag("div", " · ".join(told), class_="lb-stats"), elements.SPACE] if told else []
    many = math.prod(snapshot.shape[:-2]) > 1
    return tag("figure", *parts, class_="lb-card lb-many" if many else "lb-card")


def strip(name: str, tensors: Sequence[Tensor | None]) -> Html:
    """A tensor as each rank has it: narrow cards beside each other, in the order of the ranks."""
    drawn = []
    for rank, snapshot in enumerate(tensors):
        whose = _("{name}, rank {n}", name=name, n=rank)
        missing = tag("figure", tag("figcaption", tag("b", whose)), tag("p", "–"), class_="lb-card")
        drawn += [missing if snapshot is None else tensor(whose, snapshot), elements.SPACE]
    return tag("div", *drawn, class_="lb-strip", tabindex="0", role="group", aria_label=name)


_DOTS = tag("td", "…", class_="cut")


def _grids(name: str, snapshot: Tensor) -> Html:
    """The corner as one table, or the first few two-dimensional slices of it; dots where it goes on."""
    corner = snapshot.corner or snapshot.shape
    if len(corner) != len(snapshot.shape) or math.prod(corner) != len(snapshot.values):
        return elements.NOTHING
    # A cell for each value, shaded by its place between least and greatest; NaN and inf stand out.
    floats = [as_float(value) for value in snapshot.values]
    finite = [value for value in floats if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    step = (SHADES - 1) / (high - low) if math.isfinite(high - low) and high > low else 0.0
    cells = [
        tag("td", word, class_=f"s{round((value - low) * step)}" if math.isfinite(value) else "odd")
        for word, value in zip(_words(snapshot.values, floats, finite), floats, strict=True)
    ]
    if len(corner) == 1 and corner[0] > ONE_ROW:  # many values of one dimension are read like text
        cells += [_DOTS] if len(cells) < snapshot.shape[0] else []
        lines = [tag("tr", *cells[start : start + ROW]) for start in range(0, len(cells), ROW)]
        return _slices([_grid(_("{name}, {n} a row", name=name, n=ROW), lines)])
    rows, columns = (1, corner[0]) if len(corner) == 1 else corner[-2:]
    wide, tall = columns < snapshot.shape[-1], len(snapshot.shape) > 1 and rows < snapshot.shape[-2]
    below = [*[tag("td", "⋮", class_="cut")] * columns, tag("td", "⋱", class_="cut") if wide else ""]
    grids = []
    places = itertools.islice(itertools.product(*map(range, corner[:-2])), MOST_SLICES)
    for i, place in enumerate(places):
        starts = range(i * rows * columns, (i + 1) * rows * columns, columns)
        lines = [tag("tr", *cells[start : start + columns], _DOTS if wide else "") for start in starts]
        lines += [tag("tr", *below)] if tall else []
        label = f"{[*place]}" if place else ""
        grids.append(_grid(f"{name}{label}", lines, tag("caption", label) if label else elements.NOTHING))
    if hidden := math.prod(snapshot.shape[:-2]) - len(grids):
        grids.append(tag("span", _("… {n} more", n=number(hidden)), class_="lb-more"))
    return _slices(grids)


def _slices(grids: Sequence[Html]) -> Html:
    return tag("div", *grids, class_="lb-slices", tabindex="0")


def _grid(label: str, rows: Sequence[Html], caption: Html = elements.NOTHING) -> Html:
    label = _("values of {label}", label=label)
    return tag("table", caption, tag("tbody", *rows), class_="lb-grid", aria_label=label)


def _words(numbers: Sequence[Number], floats: Sequence[float], finite: Sequence[float]) -> list[str]:
    """The values as short texts with as many decimals as they need together."""
    if any(isinstance(value, bool) for value in numbers):
        return [str(value) for value in numbers]
    if any(isinstance(value, str) and value.rstrip(")").endswith("j") for value in numbers):
        pairs = map(complex, numbers)  # both parts, three digits each
        return [f"{pair.real:.3g}{pair.imag:+.3g}j".replace("-", "−") for pair in pairs]
    if all(value.is_integer() and abs(value) < 1e6 for value in finite):
        whole = zip(numbers, floats, strict=True)  # -0.0 keeps its sign
        return [f"{f:.0f}".replace("-", "−") if math.isfinite(f) else str(value) for value, f in whole]
    largest = max(map(abs, finite))
    if not 1e-3 <= largest < 1e5:
        return [f"{f:.2e}" if math.isfinite(f) else str(f) for f in floats]
    places = 1 if largest >= 1000 else 2 if largest >= 10 else 3
    return [f"{f:.{places}f}".replace("-", "−") if math.isfinite(f) else str(f) for f in floats]
