"""Floats as their bits: sign, exponent and fraction in three hues, and under them what they come to.

Everything is drawn from the bits that the record holds. Hue is never alone: the fields stand in order, apart
from each other, and are named above the first drawing; the text alternative says them all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from litbook.record.model import Tensor
from litbook.render import floats, markup
from litbook.render.catalogue import _, later, number
from litbook.render.drawings import svg
from litbook.render.markup import Html, tag

MOST = 8  # values of one drawing
CELL, HEIGHT, GAP = 12, 19, 5
ROW = 32  # cells of a row: what a phone can show
HEAD = 15  # height of the fields' names
FIELDS = (later("sign"), later("exponent"), later("fraction"))
KINDS = {"normal": later("Normal"), "subnormal": later("Subnormal"), "zero": later("Zero")}
Named = tuple[str, str, floats.Float]  # what the lecture calls it, its dtype, and its bits


def drawable(tensor: Tensor) -> bool:
    """Whether the record holds bits of this tensor that are drawn."""
    return bool(tensor.bits) and tensor.dtype in floats.FORMATS


def stack(values: Sequence[tuple[str, Tensor]]) -> Html:
    """These values under each other, their signs in one column."""
    every = [one for name, tensor in values for one in _floats(name, tensor)]
    shown = every[:MOST]
    width = max(_width(it.format) for _, _, it in shown)
    rows = [_row(*one, width, first=i == 0) for i, one in enumerate(shown)]
    more = sum(math.prod(tensor.shape) for _, tensor in values) - len(shown)
    caption = tag("figcaption", _("… and {n} more", n=number(more))) if more else markup.NOTHING
    return tag("figure", *rows, caption, class_="lb-bits")


def _floats(name: str, tensor: Tensor) -> Iterator[Named]:
    places = itertools.product(*map(range, tensor.shape))  # the first ones, row by row
    for place, pattern in zip(places, tensor.bits or (), strict=False):
        it = floats.read(pattern, tensor.dtype)
        if it is not None:
            yield f"{name}[{', '.join(map(str, place))}]" if place else name, tensor.dtype, it


def _row(name: str, dtype: str, it: floats.Float, width: float, first: bool) -> Html:
    label = tag("b", name), markup.SPACE, markup.text(dtype)
    return tag(
        "div",
        tag("span", *label, class_="lb-bitname"),
        _cells(it, width, f"{name}, {dtype}: {spoken(it)}", first),
        tag("span", sum_(it), class_="lb-bitsum"),
        class_="lb-bitrow",
    )


# ---------------------------------------------------------------------------- cells


def _width(format_: floats.Format) -> float:
    return min(format_.bits, ROW) * CELL + 2 * GAP + 2


def _cells(it: floats.Float, width: float, label: str, first: bool) -> Html:
    """One square for each bit; rows of 32. The first drawing of a stack names the fields."""
    top = HEAD if first else 1
    parts: list[Html] = []
    at = 0
    for index, (name, digits) in enumerate(zip(FIELDS, it.fields, strict=True)):
        if first:
            x = _place(at, index)[0]
            parts.append(tag("text", "±" if index == 0 else _(name), x=x, y=10, class_="lb-bithead"))
        for digit in digits:
            x, y = _place(at, index)
            parts.append(_cell(digit, x, top + y, name))
            at += 1
    lines = -(-it.format.bits // ROW)
    return svg(width, top + lines * (HEIGHT + 5), label, *parts, class_="lb-cells")


def _place(at: int, field: int) -> tuple[float, float]:
    line, column = divmod(at, ROW)
    gap = field * GAP if not line else 0
    return 1 + column * CELL + gap, line * (HEIGHT + 5)


def _cell(digit: str, x: float, y: float, field: str) -> Html:
    box = tag("rect", x=x, y=y, width=CELL, height=HEIGHT, class_=f"lb-{field} lb-{digit}")
    return markup.join([box, tag("text", digit, x=x + CELL / 2, y=y + 14)])


# ---------------------------------------------------------------------------- words


def sum_(it: floats.Float) -> Html:
    """`+1 × 2^(123 − 127) × 1.6 = 0.1` as HTML; of what is no number, why."""
    if it.kind in ("infinite", "not a number"):
        return markup.text(_special(it))
    sign = "−1" if it.negative else "+1"
    power = tag("sup", f"{max(it.exponent, 1)} − {it.format.bias}")
    value = ("−" if it.negative else "") + _decimal(it, it.magnitude)
    note = {
        "subnormal": _("subnormal: no leading 1"),
        "zero": _("zero has a sign, too") if it.negative else "",
    }
    rest = f" × {_decimal(it, it.significand)} = {value}"
    rest += f" · {note[it.kind]}" if note.get(it.kind) else ""
    return markup.join([f"{sign} × 2", power, rest])


def spoken(it: floats.Float) -> str:
    """The fields and what they come to, for those who do not see them."""
    sign, exponent, fraction = it.fields
    fields = _(
        "sign {sign}, exponent {exponent}, fraction {fraction}",
        sign=sign,
        exponent=exponent,
        fraction=fraction,
    )
    if it.kind in ("infinite", "not a number"):
        return f"{fields}. {_special(it)}"
    value = _decimal(it, it.magnitude)
    value = _("minus {number}", number=value) if it.negative else value
    product = _(
        "2 to the power of {power}, times {number}, is {value}",
        power=it.power, number=_decimal(it, it.significand), value=value,
    )  # fmt: skip
    kind = _(KINDS[it.kind])
    return f"{fields}. {kind}: {product}"


def _decimal(it: floats.Float, value: Fraction) -> str:
    """Enough digits to tell a value from its neighbours and from the decimal that it was meant to be."""
    return floats.text(value, 10 if it.format.bits <= 32 else 19)


def _special(it: floats.Float) -> str:
    if it.kind == "infinite":
        return _("exponent all ones, fraction zero: {number}", number="−∞" if it.negative else "∞")
    if it.format.infinities:
        return _("exponent all ones, fraction not zero: not a number")
    return _("exponent and fraction all ones: not a number")
