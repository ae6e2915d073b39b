"""Floats as their bits: sign, exponent and fraction in three hues, and under them what they come to.

Everything is drawn from the bits that the record holds. Hue is never alone: the fields stand in order, apart
from each other, and are named above the first drawing; the text alternative says them all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from litbook.html import elements
from litbook.html.elements import Html, tag
from litbook.i18n import _, gettext_noop, number
from litbook.record.model import Tensor
from litbook.values import floats
from litbook.values.drawings import svg

MOST = 8  # values of one drawing
CELL, HEIGHT, GAP = 12, 19, 5
ROW = 32  # cells of a row: what a phone can show
HEAD = 15  # height of the fields' names
FIELDS = (gettext_noop("sign"), gettext_noop("exponent"), gettext_noop("fraction"))
KINDS = {
    "normal": gettext_noop("Normal"),
    "subnormal": gettext_noop("Subnormal"),
    "zero": gettext_noop("Zero"),
}


def stack(values: Sequence[tuple[str, Tensor]]) -> Html:
    """These values under each other, their signs in one column."""
    shown: list[tuple[str, str, floats.Float]] = []  # what the lecture calls it, its dtype, and its bits
    for name, tensor in values:
        places = itertools.product(*map(range, tensor.shape))  # the first ones, row by row
        for place, pattern in zip(places, tensor.bits or (), strict=False):
            if (value := floats.read(pattern, tensor.dtype)) is not None:
                shown.append((f"{name}{[*place]}" if place else name, tensor.dtype, value))
    del shown[MOST:]
    width = max(min(value.format.bits, ROW) for _name, _dtype, value in shown) * CELL + 2 * GAP + 2
    rows = []
    for nth, (name, dtype, value) in enumerate(shown):
        label = tag("span", tag("b", name), elements.text(f" {dtype}"), class_="lb-bitname")
        # One square for each bit; rows of 32. The first drawing of a stack has the names of the fields.
        top, at, parts = 1 if nth else HEAD, 0, list[Html]()
        for index, (field, digits) in enumerate(zip(FIELDS, value.fields, strict=True)):
            for i, digit in enumerate(digits):
                line, column = divmod(at, ROW)
                x, y = 1 + column * CELL + (0 if line else index * GAP), top + line * (HEIGHT + 5)
                if nth == 0 and i == 0:
                    parts.append(tag("text", _(field) if index else "±", x=x, y=10, class_="lb-bithead"))
                parts.append(
                    tag("rect", x=x, y=y, width=CELL, height=HEIGHT, class_=f"lb-{field} lb-{digit}")
                )
                parts.append(tag("text", digit, x=x + CELL / 2, y=y + 14))
                at += 1
        tall, spelled = (
            top + -(-value.format.bits // ROW) * (HEIGHT + 5),
            f"{name}, {dtype}: {describe_float(value)}",
        )
        cells = svg(width, tall, spelled, *parts, class_="lb-cells")
        words = tag("span", sum_(value), class_="lb-bitsum")
        rows.append(tag("div", label, cells, words, class_="lb-bitrow"))
    more = sum(math.prod(tensor.shape) for _name, tensor in values) - len(shown)
    caption = tag("figcaption", _("… and {n} more", n=number(more))) if more else elements.NOTHING
    return tag("figure", *rows, caption, class_="lb-bits")


# ---------------------------------------------------------------------------- words


def sum_(number: floats.Float) -> Html:
    """`+1 × 2^(123 − 127) × 1.6 = 0.1` as HTML; of what is no number, why."""
    if number.kind in ("infinite", "not a number"):
        return elements.text(_special(number))
    sign = "−1" if number.negative else "+1"
    power = tag("sup", f"{max(number.exponent, 1)} − {number.format.bias}")
    value = ("−" if number.negative else "") + _decimal(number, number.magnitude)
    note = {
        "subnormal": _("subnormal: no leading 1"),
        "zero": _("zero has a sign, too") if number.negative else "",
    }
    rest = f" × {_decimal(number, number.significand)} = {value}"
    rest += f" · {note[number.kind]}" if note.get(number.kind) else ""
    return elements.join([f"{sign} × 2", power, rest])


def describe_float(number: floats.Float) -> str:
    """The fields and what they come to, for those who do not see them."""
    sign, exponent, fraction = number.fields
    fields = _(
        "sign {sign}, exponent {exponent}, fraction {fraction}",
        sign=sign, exponent=exponent, fraction=fraction,
    )  # fmt: skip
    if number.kind in ("infinite", "not a number"):
        return f"{fields}. {_special(number)}"
    value = _decimal(number, number.magnitude)
    value = _("minus {number}", number=value) if number.negative else value
    product = _(
        "2 to the power of {power}, times {number}, is {value}",
        power=number.power, number=_decimal(number, number.significand), value=value,
    )  # fmt: skip
    kind = _(KINDS[number.kind])
    return f"{fields}. {kind}: {product}"


def _decimal(number: floats.Float, value: Fraction) -> str:
    """Enough digits to tell a value from its neighbours and from the decimal that it was meant to be."""
    return floats.text(value, 10 if number.format.bits <= 32 else 19)


def _special(number: floats.Float) -> str:
    if number.kind == "infinite":
        return _("exponent all ones, fraction zero: {number}", number="−∞" if number.negative else "∞")
    if number.format.infinities:
        return _("exponent all ones, fraction not zero: not a number")
    return _("exponent and fraction all ones: not a number")
