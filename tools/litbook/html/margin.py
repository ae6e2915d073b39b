"""What stands beside a line of code -> HTML, and how wide it is."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from litbook.html import elements
from litbook.html.elements import SPACE, Html, tag
from litbook.i18n import _
from litbook.markdown import to_html
from litbook.markdown.links import NoteContext
from litbook.page.blocks import AxesPromise, ClaimVerdict, MarginEntry, RaisedError, ShownValue
from litbook.page.margin import SIGNS, WORDS
from litbook.values import drawings

# Characters of a row: the margin's width over .6 em, the advance of common monospaced fonts. litbook.css says
# from which width of the page on they hold.
MARGINS = {"m": 42, "w": 56}  # middle, wide
PICTURE = 12  # characters that a sparkline takes
BETWEEN = 3  # characters between notes that share a row
SMALL, BADGE, FRAME = 0.92, 0.85, 1.9  # sizes of type in litbook.css, and a badge's frame in characters


def fit(entries: Sequence[MarginEntry], rows: int, setting: NoteContext) -> Html:
    """The entries of a line that has `rows`: in rows, else side by side, else to be opened in place.

    They have the rows of their own statement, and blank ones after it: so the code keeps its rhythm, and no
    value stands beside another line. What needs more is clipped to these rows by the style sheet, and opens
    where it stands. How wide the margin is, only the reader's window knows: so this is worked out for each
    width that `litbook.css` tells apart, and becomes classes.
    """
    pairs = [_entry(entry, setting) for entry in entries]
    drawn, widths = elements.join((made for made, _ in pairs), " "), [several for _, several in pairs]
    if all(
        sum(max(1, math.ceil(width / room)) for entry in widths for width in entry) <= rows
        for room in MARGINS.values()
    ):
        return drawn
    # In one run of text; what other devices say of a value has rows of its own there, too.
    wide = sum(map(sum, widths)) + BETWEEN * (len(widths) - 1)
    below = sum(len(entry) - 1 for entry in widths)
    tight = [name for name, room in MARGINS.items() if max(1, math.ceil(wide / room)) + below > rows]
    running = tag("div", drawn, class_="lb-run")
    if not tight:
        return running
    class_ = " ".join(["lb-more", *(f"lb-{name}" for name in tight)])
    return tag("details", tag("summary", running), class_=class_)


def html(entry: MarginEntry, setting: NoteContext) -> Html:
    """One entry."""
    return _entry(entry, setting)[0]


def _entry(entry: MarginEntry, setting: NoteContext) -> tuple[Html, list[float]]:
    """An entry, and about how many characters of code wide it is on one row, and each row always its own."""
    match entry:
        case ShownValue():
            parts = [tag("b", entry.name), SPACE, tag("span", entry.text, class_="lb-text")]
            width, below = _advance(f"{entry.name} {entry.text}"), list[float]()
            if entry.ranks:  # a row has their values in their order; where these look alike, they are not
                ranks = _("by rank") if len(set(entry.ranks)) > 1 else _("another on each rank")
                parts.append(tag("small", " ", ranks))
                width += 1 + SMALL * _advance(ranks)
            if entry.turns:
                parts.append(tag("small", f" {entry.turns}"))
                width += SMALL * _advance(f" {entry.turns}")
            if entry.series and (drawn := drawings.sparkline(entry.series)):
                parts += [SPACE, drawn]
                width += 1 + PICTURE
            if entry.badge:
                parts += [SPACE, tag("span", entry.badge, class_="lb-badge")]
                width += 1 + BADGE * _advance(entry.badge) + FRAME
            if entry.measured:
                parts += [SPACE, tag("small", entry.measured, class_="lb-measured")]
                width += 1 + SMALL * _advance(entry.measured) + BETWEEN  # the style sheet puts dots before it
            for text, stamp in entry.elsewhere:
                value = tag("span", text, class_="lb-text")
                parts.append(tag("div", value, " ", tag("small", stamp), class_="lb-else"))
                below.append(_advance(text) + 1 + SMALL * _advance(stamp))
            drawn = tag("div", *parts, class_="lb-val lb-bad" if entry.failed else "lb-val")
            kept = [_promise(entry.promise)] if entry.promise else []
            return elements.join([drawn, *kept]), [width + len(kept), *below]
        case AxesPromise(text):
            return _promise(text), [_advance("✓ " + _("dtype and axes"))]
        case ClaimVerdict(verdict=verdict):
            word, sign = _(WORDS[verdict]), SIGNS[verdict]
            shown = {"holds": tag("span", f"{word}:", class_="lb-said"), "fails": tag("strong", word)}
            parts = [tag("span", sign, class_="lb-sign", aria_hidden="true"), SPACE]
            parts += [shown.get(verdict, elements.text(word)), SPACE]
            if entry.said:
                parts, entry = [], replace(entry, caption="", times="", remark="")
            words = [sign, "" if verdict == "holds" else word, *([entry.caption] if entry.caption else [])]
            width = _advance(" ".join([*words, entry.sides]).strip())
            parts += [to_html.inline(entry.caption, setting), SPACE] if entry.caption else []
            parts += [tag("span", entry.sides, class_="lb-sides")] if entry.sides else []
            if entry.times:
                parts.append(tag("small", " · ", entry.times))
                width += SMALL * _advance(f" · {entry.times}")
            if entry.remark:
                parts += [SPACE, tag("small", entry.remark, class_="lb-measured" if entry.sides else None)]
                width += 1 + SMALL * _advance(entry.remark) + (BETWEEN if entry.sides else 0)
            return tag("div", *parts, class_=f"lb-claim lb-{verdict}"), [width]
        case RaisedError(message):
            drawn = tag("div", tag("strong", "✗ ", _("error")), " ", message, class_="lb-val lb-bad")
            return drawn, [_advance("✗ " + _("error") + " " + message)]
    assert_never(entry)


def _promise(text: str) -> Html:
    """A kept promise of dtype and axes, in few words."""
    sign = tag("span", "✓", class_="lb-sign", title=text)
    words = tag("span", " ", _("dtype and axes"), class_="lb-words")
    return tag("span", sign, words, class_="lb-claim lb-axes")


def _advance(text: str) -> float:
    """How many characters of a monospaced font a text takes."""
    wide = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return wide - sum(unicodedata.combining(c) > 0 for c in text)
