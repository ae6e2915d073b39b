"""What fits beside a line of code, so that the code keeps its rhythm.

A note in the margin may take as many rows as there are lines of code before the next note, and no more.
What needs more shares a row, is cut to one row, or leaves the margin; whatever is not whole there stands
whole below the block. How wide the margin is, only the reader's window knows: so all this is worked out for
each width that `litbook.css` tells apart, and becomes classes.

This room knows notes as HTML and rows as characters of a monospaced font. It does not know what a note says.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from litbook.render import markup
from litbook.render.markup import Html, tag

# Characters of a row: the margin's width over .6 em, the advance of common monospaced fonts. litbook.css says
# from which width of the page on they hold.
MARGINS = {"m": 42, "w": 56}  # middle, wide
PICTURE = 12  # characters that a sparkline takes
BETWEEN = 3  # characters between notes that share a row
MARK = 5  # characters of the mark that says how many notes stand below
SMALL, BADGE, FRAME = 0.92, 0.85, 1.9  # sizes of type in litbook.css, and a badge's frame in characters
_UNSEEN = re.compile(r'<span class="lb-said"[^>]*>.*?</span>')
_WORDS = re.compile(r'(?<=</span>)<span class="lb-words">.*?</span>')  # of a tick that follows its value
_SMALL = re.compile(r"<small[^>]*>.*?</small>")
_BADGE = re.compile(r'<span class="lb-badge">.*?</span>')
_SIDES = re.compile(r'<small class="lb-sides">.*?</small>')
_ELSEWHERE = '<div class="lb-else">'


@dataclass(frozen=True)
class Fitted:
    """The notes of one line: as the margin has them, and what stands whole below the block."""

    beside: Html
    below: Html


def fit(notes: Sequence[Html], free: int, line: int) -> Fitted:
    """`notes` stand beside `line`, and so do `free` rows until the next note or the end of the block."""
    places = {name: _places(notes, free, room) for name, room in MARGINS.items()}
    classes = [[f"lb-{n}-{p[i]}" for n, p in places.items() if p[i]] for i in range(len(notes))]
    beside: list[Html] = []
    below: list[Html] = []
    numbered: set[str] = set()
    for note, its in zip(notes, classes, strict=True):
        beside.append(tag("div", note, class_=" ".join(["lb-fit", *its])) if its else note)
        missing = {name for name in MARGINS if {f"lb-{name}-cut", f"lb-{name}-gone"} & set(its)}
        if missing:
            number = tag("span", "" if missing <= numbered else line, class_="lb-k")
            shown = " ".join(f"lb-{name}" for name in MARGINS if name in missing)
            below.append(tag("div", number, tag("div", _repeat(note)), class_=shown))
            numbered |= missing
    more = [
        tag(
            "span",
            f"+{p.count('gone')} ↓",
            class_=f"lb-on lb-{name}",
            aria_hidden="true",
            data_search_exclude=markup.UNSEARCHED,
        )
        for name, p in places.items()
        if "gone" in p
    ]
    return Fitted(markup.join([*beside, *more], " "), markup.join(below))


def _repeat(note: Html) -> Html:
    """A note said a second time, for the eye alone: nothing in it is a link or has a name.

    Of a claim whose caption fits into any margin, only the two sides.
    """
    sides = _SIDES.findall(note)
    if len(sides) == 1 and width(_SIDES.sub("", note)) < min(MARGINS.values()):
        note = Html(sides[0])  # an element of the note
    unlinked = re.sub(r"<(/?)a\b[^>]*>", r"<\1span>", note)
    return Html(re.sub(r"\sid=\"[^\"]*\"", "", unlinked))  # the note, with elements and attributes less


def width(note: str) -> float:
    """About how many characters of code wide a note is on one row."""
    note = re.sub(r"<svg.*?</svg>", "·" * PICTURE, _UNSEEN.sub("", note))
    if "lb-val" in note:
        note = _WORDS.sub("", note)
    saved = (1 - SMALL) * sum(map(_characters, _SMALL.findall(note)))
    framed = sum(FRAME - (1 - BADGE) * _characters(badge) for badge in _BADGE.findall(note))
    dots = BETWEEN * note.count('class="lb-measured"')  # put before it by the style sheet
    return _characters(note) - saved + framed + dots


def _characters(note: str) -> int:
    return sum(map(_advance, html.unescape(re.sub(r"<[^>]*>", "", note)).strip()))


def _advance(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _rows(note: str, room: int) -> int:
    """Rows of a note that may wrap; what other devices say of a value has rows of its own."""
    return sum(max(1, math.ceil(width(part) / room)) for part in note.split(_ELSEWHERE))


def _places(notes: Sequence[str], free: int, room: int) -> list[str]:
    """Of each note: "" as it is, "in" beside the one before it, "cut" to one row, "gone" from the margin."""
    whole = [_rows(note, room) for note in notes]
    if sum(whole) <= free:
        return [""] * len(notes)
    rows: list[list[int]] = []
    left = 0.0
    for i, note in enumerate(notes):
        wide = width(note) if whole[i] == 1 else room
        if rows and wide + BETWEEN <= left:
            rows[-1].append(i)
            left -= wide + BETWEEN
        else:
            rows.append([i])
            left = room - wide
    found = [""] * len(notes)
    spare = free - len(rows)
    for place, row in enumerate(rows):
        for i in row:
            if place >= free:
                found[i] = "gone"
            elif len(row) > 1:
                found[i] = "in"
            elif place == free - 1 < len(rows) - 1 and width(notes[i]) + MARK > room:
                found[i] = "cut"
            elif 1 < whole[i] <= spare + 1:
                spare -= whole[i] - 1
            elif whole[i] > 1:
                found[i] = "cut"
    return found
