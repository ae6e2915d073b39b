"""The page of what is commonly said and measured otherwise: every misbelief of the book, with its line.

It is complete as it stands; `assets/misbeliefs.js` adds a filter by text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from litbook.document import books
from litbook.document.bibliography import Bibliography
from litbook.document.books import Book
from litbook.document.catalogue import _, later, ngettext
from litbook.document.edition import Edition
from litbook.document.evidence import gather
from litbook.document.search import Passage
from litbook.document.setting import Citations, Setting
from litbook.html import markup, note
from litbook.html.bibliography import references
from litbook.html.markup import Html, Page, tag

TITLE = later("Commonly said, measured otherwise")


def page(lectures: Sequence[Edition], bibliography: Bibliography = books.NOTHING_CITED) -> Page:
    """The page as Markdown. It stands beside the lectures' folders."""
    citations = Citations(bibliography, opens=True)
    groups: list[Html] = []
    total = 0
    for edition in lectures:
        record, folder = edition.record, edition.folder
        book = books.of(record, bibliography, edition.recordings, [])
        setting = Setting(citations, resolve=partial(_address, book, folder))
        head = markup.heading(2, note.inline(record.title, setting), folder)
        heads = [head] if len(lectures) > 1 else []
        level = 2 + len(heads)
        titles = [record.title, *(part.heading or part.name for part in book.parts)]
        for name, title in zip(book.pages, titles, strict=True):
            misbeliefs = [
                (section, piece, evidence.stamp)
                for section in book.sections(name)
                for evidence in [gather(record, section, book.recordings)]
                for piece in evidence.pieces
                if piece.kind == "misbelief"
            ]
            if misbeliefs:
                place = f"{folder}-{name.removesuffix('.md')}"
                groups += [*heads, markup.heading(level, note.inline(title, setting), place)]
                misbeliefs.sort(key=lambda m: (m[0].file, m[1].line))
                entries = []
                for section, piece, stamp in misbeliefs:  # and what the machine says
                    way = books.way(books.INDEX, name).removeprefix("./")
                    address = f"../{folder}/{way}#{book.line(name, section.file, piece.line)}"
                    where, ident = _("line {n}", n=piece.line), f"L{piece.line}"
                    if len(record.sources) > 1:
                        where = f"{book.path(section).rpartition('/')[2]}, {where}"
                        ident = f"{book.name(section.file)}-{ident}"
                    thesis = note.inline(section.heading or section.name, setting)
                    saying = markup.text("“"), note.inline(piece.text, setting), markup.text("”")
                    source = thesis, " · ", tag("a", where, href=address), f" · {stamp}" if stamp else ""
                    parts = [
                        tag("p", *saying, class_="lb-saying"),
                        tag("p", note.inline(piece.data, setting)),
                        tag("p", *source, class_="lb-where"),
                    ]
                    entries.append(tag("li", *parts, id=f"{folder}-{ident}"))
                groups.append(tag("ul", *entries, class_="lb-sayings"))
                total, heads = total + len(misbeliefs), []
    summary = ngettext(
        "{n} statement that circulates about this subject and does not survive being run as it stands. "
        "Under each: what the machine says, and the line that shows it.",
        "{n} statements that circulate about this subject and do not survive being run as they stand. "
        "Under each: what the machine says, and the line that shows it.",
        total,
    )
    # A box to filter with; it appears where the script runs.
    field = tag("input", type="search", id="lb-find", autocomplete="off", spellcheck="false", maxlength="80")
    label = tag("label", markup.text(_("Show only statements with these words")), for_="lb-find")
    pattern = _("{n} of {all}")
    shown = pattern.format(n=total, all=total)
    count = tag("span", shown, class_="lb-shown", role="status", data_words=pattern)
    script = tag("script", type="module", src="../../assets/litbook/misbeliefs.js")
    parts = [
        markup.heading(1, _(TITLE)),
        tag("p", summary if total else _("No lecture has marked a statement yet."), class_="lb-summary"),
        *([tag("div", label, field, count, class_="lb-find", hidden=True), script] if total else []),
        *groups,
        *references(citations),
    ]
    return markup.page(parts, [Passage("", _(TITLE))])


def _address(book: Book, folder: str, name: str) -> str | None:
    """Where a function of the lecture stands, from this page."""
    address = books.address(book, books.INDEX, name)
    return None if address is None else f"../{folder}/{address.removeprefix('./')}"
