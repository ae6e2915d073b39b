"""What fits beside a line of code, so that the code keeps its rhythm and no value stands beside another line.

The notes of a line have the rows of its own statement, and blank ones after it. What needs more is clipped to
these rows by the style sheet, and opens where it stands. How wide the margin is, only the reader's window
knows: so this is worked out for each width that `litbook.css` tells apart, and becomes classes.

This module knows notes as HTML and rows as characters of a monospaced font, but not what a note says.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Sequence

from litbook.render import markup
from litbook.render.markup import Html, tag

# Characters of a row: the margin's width over .6 em, the advance of common monospaced fonts. litbook.css says
# from which width of the page on they hold.
MARGINS = {"m": 42, "w": 56}  # middle, wide
PICTURE = 12  # characters that a sparkline takes
BETWEEN = 3  # characters between notes that share a row
SMALL, BADGE, FRAME = 0.92, 0.85, 1.9  # sizes of type in litbook.css, and a badge's frame in characters
_UNSEEN = re.compile(r'<span class="lb-said"[^>]*>.*?</span>')
_WORDS = re.compile(r'(?<=</span>)<span class="lb-words">.*?</span>')  # of a tick that follows its value
_SMALL = re.compile(r"<small[^>]*>.*?</small>")
_BADGE = re.compile(r'<span class="lb-badge">.*?</span>')
_ELSEWHERE = '<div class="lb-else">'


def fit(notes: Sequence[Html], rows: int) -> Html:
    """The notes of a line that has `rows`: in rows, else side by side, else to be opened in place."""
    if all(sum(_rows(note, room) for note in notes) <= rows for room in MARGINS.values()):
        return markup.join(notes, " ")
    tight = [name for name, room in MARGINS.items() if _running(notes, room) > rows]
    running = tag("div", markup.join(notes, " "), class_="lb-run")
    if not tight:
        return running
    shown = " ".join(["lb-more", *(f"lb-{name}" for name in tight)])
    return tag("details", tag("summary", running), class_=shown)


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


def _running(notes: Sequence[str], room: int) -> int:
    """Rows of all notes in one run of text; what other devices say of a value has rows there, too."""
    wide = sum(map(width, notes)) + BETWEEN * (len(notes) - 1)
    return max(1, math.ceil(wide / room)) + sum(note.count(_ELSEWHERE) for note in notes)
