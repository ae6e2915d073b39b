"""Small drawings as inline SVG, each with its words: a sparkline, and storage with the views on it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence

from litbook.document import amounts
from litbook.record.model import Number, Series, Tensor
from litbook.render import markup, values
from litbook.render.catalogue import _
from litbook.render.markup import Html, tag

SMALL_STORAGE = 16  # elements that fit side by side on a phone
CELL, ROW = 34, 26  # width and height of one element, in SVG units

PHONE = 340  # pixels that any screen has for a drawing


def svg(
    width: float, height: float, label: str, *children: Html, class_: str, box: str | None = None
) -> Html:
    """An SVG of this size that a screen reader reads as `label`."""
    return tag(
        "svg",
        *children,
        class_=class_,
        viewBox=box or f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        role="img",
        aria_label=label,
    )


def zoom(drawn: Html) -> Html:
    """A switch between a drawing that fits a phone and one in its own size; nothing where both are the same.

    The style sheet does all of it, and shows the switch on a phone alone.
    """
    widths = [float(width) for width in re.findall(r'<svg [^<>]* width="([\d.]+)"', drawn)]
    if max(widths, default=0) <= PHONE:
        return markup.NOTHING
    box = tag("input", type="checkbox"), markup.text(_("full size"))
    return tag("label", *box, class_="lb-zoom")


def as_float(value: Number) -> float:
    """A number of the record as a float; what does not fit is infinite, a complex number its magnitude."""
    try:
        if isinstance(value, str) and value.rstrip(")").endswith("j"):
            return abs(complex(value))
        return float(value)
    except OverflowError:
        return math.inf


# ---------------------------------------------------------------------------- a number over a loop


def sparkline(series: Series, width: int = 96, height: int = 18) -> Html:
    """The course of a number over a loop; empty with fewer than three finite points."""
    exact = [v for v in series.values if math.isfinite(as_float(v))]
    points = [(i, as_float(v)) for i, v in zip(series.at, series.values, strict=False)]
    points = [(i, v) for i, v in points if math.isfinite(v)]
    if len(points) < 3:
        return markup.NOTHING
    low, high = min(v for _, v in points), max(v for _, v in points)
    start, span = points[0][0], max(1, points[-1][0] - points[0][0])
    scale = (height - 4) / (high - low) if math.isfinite(high - low) and high > low else 0
    path = " ".join(
        f"{2 + (i - start) / span * (width - 4):.1f},{height - 2 - (v - low) * scale:.1f}" for i, v in points
    )
    first, last = values.number(exact[0]), values.number(exact[-1])
    least, most = values.number(min(exact, key=as_float)), values.number(max(exact, key=as_float))
    label = _(
        "{name} over the loop: from {first} to {last}, lowest {least}, highest {most}",
        name=series.text, first=first, last=last, least=least, most=most,
    )  # fmt: skip
    return svg(width, height, label, tag("polyline", points=path, fill="none"), class_="lb-spark")


# ---------------------------------------------------------------------------- storage and its views

View = tuple[str, Tensor]  # what the lecture calls it, and what it is


def drawable(tensor: Tensor) -> bool:
    """Whether the record holds all that a drawing of this tensor's storage needs."""
    memory, strides = tensor.memory, tensor.strides
    if (
        memory is None
        or strides is None
        or not 0 < len(memory) <= SMALL_STORAGE
        or not 0 < len(tensor.shape) <= 4
    ):
        return False
    return all(0 <= i < len(memory) for i in indices(tensor)) and 0 < math.prod(tensor.shape) <= 64


def indices(tensor: Tensor) -> list[int]:
    """The storage index of every element, in row-major order of the tensor."""
    strides = tensor.strides or ()
    if math.prod(tensor.shape) > 64:
        return [-1]
    places = itertools.product(*(range(size) for size in tensor.shape))
    return [tensor.offset + sum(i * s for i, s in zip(place, strides, strict=False)) for place in places]


def storage(views: Sequence[View]) -> Html:
    """One storage, drawn once per view on it: what the view touches, and how it walks."""
    rows = [_row(name, tensor) for name, tensor in views]
    words = tag("figcaption", _caption(views))
    return tag("figure", *rows, zoom(markup.join(rows)), words, class_="lb-storage")


def _caption(views: Sequence[View]) -> str:
    count = len(views[0][1].memory or ())
    held = amounts.size(views[0][1].storage_bytes or 0)
    return _(
        "One storage of {n} elements, {size}, and {ways} ways of walking it.",
        n=count,
        size=held,
        ways=len(views),
    )


def _row(name: str, tensor: Tensor) -> Html:
    memory = tensor.memory or ()
    walk = indices(tensor)
    jump = _jump(tensor, walk)
    height = 24 + ROW + (24 if jump else 2)
    cells = markup.join(_cell(i, value, i in set(walk)) for i, value in enumerate(memory))
    arrows = markup.join(_arc(a, b) for a, b in sorted(set(_steps(tensor, walk))))
    drawing = svg(
        len(memory) * CELL + 4, height, _spoken(name, tensor, walk), cells, arrows, jump, class_="lb-strip"
    )
    label = tag("b", name), markup.SPACE, markup.text(_walk(tensor))
    return tag("div", tag("span", *label, class_="lb-striplabel"), drawing, class_="lb-striprow")


def _cell(index: int, value: Number, touched: bool) -> Html:
    x, y = 2 + index * CELL, 24
    box = tag("rect", x=x, y=y, width=CELL, height=ROW, class_="on" if touched else "off")
    words = tag("text", _short(value), x=x + CELL / 2, y=y + 17)
    return markup.join([box, words])


def _short(value: Number) -> str:
    text = values.number(value)
    text = text.removesuffix(".0")
    return text if len(text) <= 5 else f"{as_float(value):.2g}"


def _steps(tensor: Tensor, walk: list[int]) -> Iterable[tuple[int, int]]:
    """Pairs of neighbours along the last axis."""
    last = tensor.shape[-1]
    for start in range(0, len(walk), last):
        row = walk[start : start + last]
        yield from itertools.pairwise(row)


def _jump(tensor: Tensor, walk: list[int]) -> Html:
    """The first step of the axis before the last, from a row to the next one, below the strip."""
    if len(tensor.shape) < 2 or tensor.shape[-2] < 2:
        return markup.NOTHING
    arc = _arc(walk[0], walk[tensor.shape[-1]])
    return tag("g", arc, class_="lb-jump", transform=f"matrix(1 0 0 -1 0 {48 + ROW})")  # upside down


def _arc(a: int, b: int) -> Html:
    """An arrow from element `a` to `b` above the strip."""
    x1, x2 = 2 + a * CELL + CELL / 2, 2 + b * CELL + CELL / 2
    if a == b:
        return tag("path", d=f"M{x1 - 5:g} 22c-8 -16 18 -16 10 0", class_="arc")
    rise = min(20, 8 + 4 * abs(b - a))
    inset = 4 if b > a else -4
    start, end, middle = x1 + inset, x2 - inset, (x1 + x2) / 2
    bow = tag("path", d=f"M{start:g} 22Q{middle:g} {22 - 2 * rise:g} {end:g} 22", class_="arc")
    head = f"M{end:g} 22l{-inset:g} -5M{end:g} 22l{-1.6 * inset:g} 0"
    return markup.join([bow, tag("path", d=head, class_="arc")])


def _walk(tensor: Tensor) -> str:
    strides = tensor.strides or ()
    names = tensor.axes if tensor.axes and len(tensor.axes) == len(strides) else ()
    if names:
        walk = ", ".join(_("+{n} along {axis}", n=s, axis=n) for n, s in zip(names, strides, strict=True))
    else:
        walk = _("strides {strides}", strides=_tuple(strides))
    return f"{values.shape(tensor)} {walk}" + (_(", from {n}", n=tensor.offset) if tensor.offset else "")


def _tuple(numbers: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, numbers)) + ("," if len(numbers) == 1 else "") + ")"


def _spoken(name: str, tensor: Tensor, walk: list[int]) -> str:
    last = tensor.shape[-1]
    rows = [" ".join(str(i) for i in walk[s : s + last]) for s in range(0, len(walk), last)]
    memory = " ".join(_short(value) for value in tensor.memory or ())
    strides = _tuple(tensor.strides or ())
    return _(
        "Storage in order: {memory}. {name}, shape {shape}, strides {strides}, offset {offset}, "
        "reads the elements at {rows}.",
        memory=memory, name=name, shape=values.shape(tensor), strides=strides, offset=tensor.offset,
        rows=_("; then ").join(rows),
    )  # fmt: skip
