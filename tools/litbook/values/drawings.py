"""Small drawings as inline SVG, each with its words: a sparkline, and storage with the views on it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from litbook.html import elements
from litbook.html.elements import Drawing, Html, tag
from litbook.i18n import _
from litbook.record.model import Number, Series, Tensor
from litbook.values import formatting, units
from litbook.values.drawable import indices

CELL, ROW = 34, 26  # width and height of one element, in SVG units

PHONE = 410  # pixels of a drawing that any screen shows with a fifth less at most


def svg(
    width: float, height: float, label: str, *children: Html, class_: str, box: str | None = None
) -> Drawing:
    """An SVG of this size that a screen reader reads as `label`."""
    size = {"width": f"{width:g}", "height": f"{height:g}"}
    box = box or f"0 0 {width:g} {height:g}"
    element = tag("svg", *children, class_=class_, viewBox=box, **size, role="img", aria_label=label)
    drawing = Drawing(element)
    drawing.ids, drawing.width = element.ids, width
    return drawing


def zoom(width: float) -> Html:
    """A switch between a drawing that fits a phone and one in its own width; nothing where both are the same.

    The style sheet does all of it, and shows the switch on a phone alone.
    """
    if width <= PHONE:
        return elements.NOTHING
    return tag("label", tag("input", type="checkbox"), elements.text(_("full size")), class_="lb-zoom")


def as_float(value: Number) -> float:
    """A number of the record as a float; what does not fit is infinite, a complex number its magnitude."""
    try:
        if isinstance(value, str) and value.rstrip(")").endswith("j"):
            return abs(complex(value))
        return float(value)
    except OverflowError:
        return math.inf


# ---------------------------------------------------------------------------- a number over a loop


def sparkline(series: Series) -> Html:
    """The course of a number over a loop; empty with fewer than three finite points."""
    width, height = 96, 18
    exact = [v for v in series.values if math.isfinite(as_float(v))]
    points = [(i, as_float(v)) for i, v in zip(series.at, series.values, strict=False)]
    points = [(i, v) for i, v in points if math.isfinite(v)]
    if len(points) < 3:
        return elements.NOTHING
    low, high = min(v for _, v in points), max(v for _, v in points)
    start, span = points[0][0], max(1, points[-1][0] - points[0][0])
    scale = (height - 4) / (high - low) if math.isfinite(high - low) and high > low else 0
    path = " ".join(
        f"{2 + (i - start) / span * (width - 4):.1f},{height - 2 - (v - low) * scale:.1f}" for i, v in points
    )
    first, last = formatting.number(exact[0]), formatting.number(exact[-1])
    least, most = formatting.number(min(exact, key=as_float)), formatting.number(max(exact, key=as_float))
    label = _(
        "{name} over the loop: from {first} to {last}, lowest {least}, highest {most}",
        name=series.text, first=first, last=last, least=least, most=most,
    )  # fmt: skip
    return svg(width, height, label, tag("polyline", points=path, fill="none"), class_="lb-spark")


# ---------------------------------------------------------------------------- storage and its views

StorageView = tuple[str, Tensor]  # what the lecture calls it, and what it is


def storage(views: Sequence[StorageView]) -> Html:
    """One storage, drawn once per view on it: what the view touches, and how it walks."""
    first = views[0][1]
    count = len(first.memory or ())
    caption = _(
        "One storage of {n} elements, {size}, and {ways} ways of walking it.",
        n=count, size=units.size(first.storage_bytes or 0), ways=len(views),
    )  # fmt: skip
    width = count * CELL + 4
    pairs = [(value, formatting.number(value).removesuffix(".0")) for value in first.memory or ()]
    texts = [text if len(text) <= 5 else f"{as_float(value):.2g}" for value, text in pairs]
    drawn = []
    for name, tensor in views:
        strides, last, walk = tensor.strides or (), tensor.shape[-1], indices(tensor)
        rows = [walk[start : start + last] for start in range(0, len(walk), last)]
        label = _(
            "Storage in order: {memory}. {name}, shape {shape}, strides {strides}, offset {offset}, "
            "reads the elements at {rows}.",
            memory=" ".join(texts), name=name, shape=formatting.shape(tensor), strides=strides,
            offset=tensor.offset, rows=_("; then ").join(" ".join(map(str, row)) for row in rows),
        )  # fmt: skip
        parts = []
        for index, text in enumerate(texts):
            x, touched = 2 + index * CELL, "on" if index in walk else "off"
            parts.append(tag("rect", x=x, y=24, width=CELL, height=ROW, class_=touched))
            parts.append(tag("text", text, x=x + CELL / 2, y=24 + 17))
        # Above it the steps along the last axis, and upside down below it the first step to the next row.
        parts += [_arc(*step) for step in sorted({step for row in rows for step in itertools.pairwise(row)})]
        jumps = len(tensor.shape) > 1 and tensor.shape[-2] > 1
        if jumps:
            turned = f"matrix(1 0 0 -1 0 {48 + ROW})"
            parts.append(tag("g", _arc(walk[0], walk[last]), class_="lb-jump", transform=turned))
        drawing = svg(width, 24 + ROW + (24 if jumps else 2), label, *parts, class_="lb-strip")
        way = _("strides {strides}", strides=strides)
        if tensor.axes and len(tensor.axes) == len(strides):
            steps = zip(tensor.axes, strides, strict=True)
            way = ", ".join(_("+{n} to the next {axis}", n=stride, axis=axis) for axis, stride in steps)
        way += _(", from {n}", n=tensor.offset) if tensor.offset else ""
        words = tag("b", name), elements.text(f" {formatting.shape(tensor)} {way}")
        drawn.append(tag("div", tag("span", *words, class_="lb-striplabel"), drawing, class_="lb-striprow"))
    return tag("figure", *drawn, zoom(width), tag("figcaption", caption), class_="lb-storage")


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
    return elements.join([bow, tag("path", d=head, class_="arc")])
