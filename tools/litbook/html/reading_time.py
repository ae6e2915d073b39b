"""A record -> the path through its lecture: the core without its asides, and how long that takes to read."""

from __future__ import annotations

from collections.abc import Sequence

from litbook.html import elements
from litbook.html.elements import Html
from litbook.i18n import _, ngettext, number
from litbook.lecture.author_words import SEEN
from litbook.page import section as document
from litbook.page.blocks import CodeBlock
from litbook.page.sitemap import Sitemap
from litbook.page.view import gather, statements
from litbook.record.model import Section

WORDS, LINES = 200, 10  # read a minute: prose, somewhat below the usual 238; code, line by line
ANSWER = 1  # minutes for a question
_TAGS = 300  # characters: a picture's data are no words


def line(book: Sitemap) -> Html:
    """How long the core takes to read, and how many asides there are; nothing where there are none.

    Pages are no sections, but what they say and do is read, too, as is what the contents page says.
    """
    every = [section for section in book.record.sections if section.kind != "module"]
    leaves = [section for section in every if section.kind != "main" and section not in book.parts]
    asides = sum(section.aside for section in leaves)
    if not asides:
        return elements.NOTHING
    there = _("The core takes {time} to read.", time=hours(book))
    beside = ngettext("{n} aside is folded, and can wait.", "{n} asides are folded, and can wait.", asides)
    return elements.tag("p", there, " ", beside, class_="lb-path")


def hours(book: Sitemap) -> str:
    """How long the core takes to read: `about 2.5 hours`."""
    quarters = max(1, round(_minutes(book, book.record.sections) / 15))
    if quarters < 4:
        return _("about {n} minutes", n=15 * quarters)
    if quarters == 4:
        return _("about 1 hour")
    places = 0 if quarters % 4 == 0 else 1 if quarters % 2 == 0 else 2
    return _("about {n} hours", n=number(quarters / 4, places))


def minutes(book: Sitemap, mine: Sequence[Section], *, short: bool = False) -> Html:
    """How long the core of these takes: `About 8 minutes to read, without the asides`, or `8 min`."""
    time = max(1, round(_minutes(book, mine)))
    if short:
        return elements.text(_("{n} min", n=time))
    words = ngettext("About {n} minute to read", "About {n} minutes to read", time)
    if any(section.aside for section in mine):
        words = _("{time}, without the asides", time=words)
    return elements.text(words)


def _minutes(book: Sitemap, sections: Sequence[Section]) -> float:
    core = [section for section in sections if section.kind != "module" and not section.aside]
    words, code, asked = _count_content(book, core)
    return words / WORDS + code / LINES + asked * ANSWER


def _count_content(book: Sitemap, core: Sequence[Section]) -> tuple[int, int, int]:
    """Words, lines of code that are in sight, and questions.

    Words are those of headings, notes, questions, captions and claims; of notes that never ran, as written.
    """
    words = code = asked = 0
    for section in core:
        seen = gather(book.record, section, book.recordings)
        told = [piece for piece in seen.pieces if piece.kind in SEEN]
        texts = [f"{piece.text} {piece.data if len(piece.data) < _TAGS else ''}" for piece in told]
        texts += [] if seen.entry.has_run else [s.prose for s in statements(seen.entry) if s.prose]
        rows = [
            row
            for block in document.blocks(book, section)
            if isinstance(block, CodeBlock)
            for row in block.rows
        ]
        folded = {row.proof for row in rows} - {0}
        texts += [claim.caption or claim.text for claim in seen.claims if claim.line in folded]
        words += len(" ".join([seen.entry.heading, *texts]).split())
        code += sum(
            1 for row in rows if not row.proof and book.lines[section.file][row.number - 1].text.strip()
        )
        asked += sum(piece.kind == "question" for piece in seen.pieces)
    return words, code, asked
