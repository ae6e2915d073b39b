"""What is taller than a line: tensor cards with a shaded corner of values, and tables of names and values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from litbook.document import amounts
from litbook.record.model import Mapping, Number, Snapshot, Tensor
from litbook.render import markup, values
from litbook.render.catalogue import _, number
from litbook.render.drawings import as_float
from litbook.render.markup import Html, tag

SHADES = 10
MOST_SLICES = 4
ONE_ROW, ROW = 10, 8  # values of one dimension that stand in one row; how many stand in each row of more
Row = tuple[str, Mapping]


def has_card(snapshot: Snapshot) -> bool:
    """Whether a tensor has more to show than its line."""
    return (
        isinstance(snapshot, Tensor)
        and bool(snapshot.shape and snapshot.values)
        and not values.is_short(snapshot)
    )


def tensor(name: str, it: Tensor) -> Html:
    """The card of one tensor: what it is called, how it lies in memory, and a corner of its values."""
    head = tag("b", name), *(markup.text(f" · {fact}") for fact in _facts(it))
    class_ = "lb-card lb-many" if math.prod(it.shape[:-2]) > 1 else "lb-card"
    return tag("figure", tag("figcaption", *head), " ", _slices(name, it), _statistics(it), class_=class_)


def table(rows: Sequence[Row], unit: str | None = None) -> Html:
    """Mappings of one kind as one table: a row for each, a column for each key. Numbers are in `unit`."""
    keys = [_bare(key) for key in rows[0][1].keys]
    cells = [[_bare(item, unit) for item in it.items] for _, it in rows]
    titles = [tag("td"), *(tag("th", k, scope="col") for k in keys)]
    head = tag("tr", markup.join(titles, " "))  # the spaces here and below part the words for the search
    body = [
        tag("tr", markup.join([tag("th", name, scope="row"), *markup.cells(row), ""], " "))
        for (name, _), row in zip(rows, cells, strict=True)
    ]
    return _scrolling(tag("table", tag("thead", head), tag("tbody", *body), class_="lb-table"))


def pairs(name: str, it: Mapping, unit: str | None = None) -> Html:
    """One mapping as a table of two columns. Numbers are in `unit`."""
    body = [
        tag("tr", tag("th", _bare(k), scope="row"), " ", tag("td", _bare(v, unit)), " ")
        for k, v in zip(it.keys, it.items, strict=False)
    ]
    if it.length > len(body):
        body.append(tag("tr", tag("td", _("… {n} in all", n=number(it.length)), colspan="2")))
    caption = tag("caption", name), markup.SPACE
    return _scrolling(tag("table", *caption, tag("tbody", *body), class_="lb-table lb-pairs"))


def _bare(cell: Snapshot, unit: str | None = None) -> str:
    """A cell's text; a string without its quotes."""
    text = values.plain(values.part(cell, unit))
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == "'" else text


def same_keys(a: Mapping, b: Mapping) -> bool:
    """Whether two mappings are rows of one table."""
    return a.type == b.type and a.keys == b.keys and a.length == len(a.items)


def _scrolling(body: Html) -> Html:
    return tag("div", body, class_="lb-scroll", tabindex="0")


# ---------------------------------------------------------------------------- a tensor's parts


def _facts(it: Tensor) -> list[str]:
    facts = [f"{it.dtype} {values.shape(it)}", amounts.size(it.bytes)]
    if it.strides is not None:
        comma = "," if len(it.strides) == 1 else ""
        facts.append(_("strides {strides}", strides=f"({', '.join(map(str, it.strides))}{comma})"))
    if it.offset:
        facts.append(_("offset {n}", n=it.offset))
    if not it.contiguous:
        facts.append(_("not contiguous"))
    if it.device != "cpu":
        facts.append(it.device)
    if it.requires_grad:
        facts.append(_("requires grad"))
    return facts


def _slices(name: str, it: Tensor) -> Html:
    """The corner as one grid, or as the first few two-dimensional slices of it."""
    corner = it.corner or it.shape
    if len(corner) != len(it.shape) or math.prod(corner) != len(it.values):
        return markup.NOTHING
    words = _numbers(it.values)
    shades = _shades(it.values)
    rows, columns = (1, corner[0]) if len(corner) == 1 else (corner[-2], corner[-1])
    if len(corner) == 1 and columns > ONE_ROW:
        return tag("div", _rows(name, words, shades, it), class_="lb-slices", tabindex="0")
    found = []
    for i, place in enumerate(itertools.product(*(range(n) for n in corner[:-2]))):
        part = slice(i * rows * columns, (i + 1) * rows * columns)
        label = f"[{', '.join(map(str, place))}]" if place else ""
        found.append(_grid(f"{name}{label}", label, words[part], shades[part], columns, it))
    hidden = math.prod(it.shape[:-2]) - min(len(found), MOST_SLICES)
    if hidden > 0:
        found[MOST_SLICES:] = [tag("span", _("… {n} more", n=number(hidden)), class_="lb-more")]
    return tag("div", *found[: MOST_SLICES + 1], class_="lb-slices", tabindex="0")


def _rows(name: str, words: list[str], shades: list[int | None], it: Tensor) -> Html:
    """Many values of one dimension in rows, read like text; dots where the tensor goes on."""
    cells = list(map(_cell, words, shades))
    cells += [_DOTS] if len(words) < it.shape[0] else []
    rows = [tag("tr", *cells[start : start + ROW]) for start in range(0, len(cells), ROW)]
    return _table(_("{name}, {n} a row", name=name, n=ROW), rows)


def _table(label: str, rows: Sequence[Html], caption: Html = markup.NOTHING) -> Html:
    body = tag("tbody", *rows)
    label = _("values of {label}", label=label)
    return tag("table", caption, body, class_="lb-grid", aria_label=label)


_DOTS = tag("td", "…", class_="cut")


def _cell(word: str, shade: int | None) -> Html:
    return tag("td", word, class_=f"s{shade}" if shade is not None else "odd")


def _grid(
    label: str, shown: str, words: list[str], shades: list[int | None], columns: int, it: Tensor
) -> Html:
    """One two-dimensional table of values; where the tensor goes on, so do dots."""
    wide = columns < it.shape[-1]
    tall = len(it.shape) > 1 and len(words) // max(1, columns) < it.shape[-2]
    body = []
    for start in range(0, len(words), columns):
        cells = map(_cell, words[start : start + columns], shades[start : start + columns])
        body.append(tag("tr", *cells, _DOTS if wide else ""))
    if tall:
        corner = tag("td", "⋱", class_="cut") if wide else ""
        body.append(tag("tr", *[tag("td", "⋮", class_="cut")] * columns, corner))
    return _table(label, body, tag("caption", shown) if shown else markup.NOTHING)


def _numbers(found: Sequence[Number]) -> list[str]:
    """The values as short texts with as many decimals as they need together."""
    floats = [as_float(v) for v in found]
    finite = [f for f in floats if math.isfinite(f)]
    if any(isinstance(v, bool) for v in found):
        return [str(v) for v in found]
    if any(isinstance(v, str) and v.rstrip(")").endswith("j") for v in found):
        return [_pair(complex(v)) for v in found]
    if all(f.is_integer() and abs(f) < 1e6 for f in finite):
        return [_whole(v, f) for v, f in zip(found, floats, strict=True)]
    largest = max((abs(f) for f in finite), default=1.0)
    if not 1e-3 <= largest < 1e5:
        return [f"{f:.2e}" if math.isfinite(f) else str(f) for f in floats]
    places = 1 if largest >= 1000 else 2 if largest >= 10 else 3
    return [f"{f:.{places}f}".replace("-", "−") if math.isfinite(f) else str(f) for f in floats]


def _pair(value: complex) -> str:
    """Both parts of a complex number, three digits each."""
    return f"{value.real:.3g}{value.imag:+.3g}j".replace("-", "−")


def _whole(value: Number, as_number: float) -> str:
    if not math.isfinite(as_number):
        return str(value)
    negative_zero = as_number == 0 and math.copysign(1, as_number) < 0
    return "−0" if negative_zero else f"{int(as_number)}".replace("-", "−")


def _shades(found: Sequence[Number]) -> list[int | None]:
    """A shade from 0 to 9 for every value, by its place between least and greatest; None for NaN and inf."""
    floats = [as_float(v) for v in found]
    finite = [f for f in floats if math.isfinite(f)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    span = high - low
    step = (SHADES - 1) / span if math.isfinite(span) and span > 0 else 0.0
    return [round((f - low) * step) if math.isfinite(f) else None for f in floats]


def _statistics(it: Tensor) -> Html:
    """What reading the whole tensor told, where the card shows only a corner of it."""
    if it.stats is None or len(it.values) == math.prod(it.shape):
        return markup.NOTHING
    stats = it.stats
    named = [("min", stats.min), ("mean", stats.mean), ("max", stats.max), ("std", stats.std)]
    parts = [f"{name} {values.number(value)}" for name, value in named if value is not None]
    parts += [f"{count:,} {name}" for name, count in (("nan", stats.nan), ("inf", stats.inf)) if count]
    if not parts:
        return markup.NOTHING
    return markup.join([tag("div", " · ".join(parts), class_="lb-stats"), " "])
