"""A record -> the path through its lecture: the core without its asides, and how long that takes to read."""

from __future__ import annotations

from litbook.record.model import Section
from litbook.render import markup
from litbook.render.books import Book
from litbook.render.catalogue import _, ngettext, number
from litbook.render.evidence import Evidence, gather, statements
from litbook.render.markup import Html
from litbook.text.words import SEEN

WORDS, LINES = 200, 10  # read a minute: prose, somewhat below the usual 238; code, line by line
_TAGS = 300  # characters: a picture's data are no words


def line(book: Book) -> Html:
    """`60 sections, 3 hours to read`, and how many asides there are; nothing where there are none.

    Pages are no sections, but what they say and do is read, too, as is what the contents page says.
    """
    every, core = _read(book)
    leaves = [it for it in every if it.kind != "main" and it not in book.parts]
    asides = sum(it.aside for it in leaves)
    if not asides:
        return markup.NOTHING
    words, code = _counted(book, core)
    sections = len(leaves) - asides
    there = ngettext(
        "The core: {n} section, {time} to read", "The core: {n} sections, {time} to read", sections,
        time=hours(book),
    )  # fmt: skip
    rate = _(
        "({words} words at {fast} a minute, {lines} lines of code at {slow}).",
        words=number(words), fast=WORDS, lines=number(code), slow=LINES,
    )  # fmt: skip
    beside = ngettext(
        "Beside it: {n} aside, folded on the pages.", "Beside it: {n} asides, folded on the pages.", asides
    )
    return markup.tag("p", there, " ", rate, " ", beside, class_="lb-path")


def hours(book: Book) -> str:
    """How long the core takes to read: `about 2.5 hours`."""
    words, code = _counted(book, _read(book)[1])
    return _duration(words / WORDS + code / LINES)


def _read(book: Book) -> tuple[list[Section], list[Section]]:
    """All that a reader meets, and what of it is no aside."""
    every = [it for it in book.record.sections if it.kind != "module"]
    return every, [it for it in every if not it.aside]


def _counted(book: Book, core: list[Section]) -> tuple[int, int]:
    """Words and lines of code."""
    words = sum(_words(gather(book.record, it, book.recordings)) for it in core)
    return words, sum(map(_lines, core))


def _words(seen: Evidence) -> int:
    """Words of a section's heading, notes, questions and captions; of notes that never ran, as written."""
    told = [f"{it.text} {it.data if len(it.data) < _TAGS else ''}" for it in seen.pieces if it.kind in SEEN]
    silent = [] if seen.entry.ran else [it.prose for it in statements(seen.entry) if it.prose]
    return len(" ".join([seen.entry.heading, *told, *silent]).split())


def _lines(section: Section) -> int:
    """Lines of code of a section."""
    found = {n for it in statements(section) if it.kind in ("code", "claim", "def")
             for n in range(it.first, max(it.end, it.last) + 1)}  # fmt: skip
    return len(found)


def _duration(minutes: float) -> str:
    quarters = max(1, round(minutes / 15))
    if quarters < 4:
        return _("about {n} minutes", n=15 * quarters)
    if quarters == 4:
        return _("about 1 hour")
    places = 0 if quarters % 4 == 0 else 1 if quarters % 2 == 0 else 2
    return _("about {n} hours", n=number(quarters / 4, places))
