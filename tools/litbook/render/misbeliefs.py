"""The page of what is commonly said and measured otherwise: every misbelief of the book, with its line.

It is complete as it stands; `assets/misbeliefs.js` adds a filter by text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from litbook.document.bibliography import Bibliography
from litbook.document.search import Passage
from litbook.html import finished
from litbook.html.bibliography import references
from litbook.html.finished import Page
from litbook.record.model import Piece, Section
from litbook.render import books, markup, prose
from litbook.render.books import Book
from litbook.render.catalogue import _, later, ngettext
from litbook.render.edition import Edition
from litbook.render.evidence import gather
from litbook.render.markup import Html, tag

TITLE = later("Commonly said, measured otherwise")


@dataclass(frozen=True)
class _Misbelief:
    """One misbelief, and where it stands: in words, as an address below the lecture's, and as an id here."""

    piece: Piece
    section: Section
    where: str
    address: str
    id: str
    stamp: str


def page(lectures: Sequence[Edition], bibliography: Bibliography = books.NOTHING_CITED) -> Page:
    """The page as Markdown. It stands beside the lectures' folders."""
    citations = prose.Citations(bibliography, opens=True)
    groups: list[Html] = []
    total = 0
    for it in lectures:
        book = books.of(it.record, bibliography, it.recordings, [])
        setting = prose.Setting(citations, [])
        setting.resolve = _resolver(book, it.folder)
        head = markup.heading(2, prose.inline(it.record.title, setting), it.folder)
        shared = [head] if len(lectures) > 1 else []
        level = 2 + len(shared)
        for where, title in _pages(book):
            found = list(_misbeliefs(book, where))
            total += len(found)
            if found:
                name = f"{it.folder}-{where.removesuffix('.md')}"
                groups += [*shared, markup.heading(level, prose.inline(title, setting), name)]
                groups.append(_list(it.folder, found, setting))
                shared = []
    works = references(citations)
    parts = [
        markup.heading(1, _(TITLE)),
        tag("p", _summary(total), class_="lb-summary"),
        *(_finder(total) if total else []),
        *groups,
        *([markup.heading(2, _("References"), "references"), works] if works else []),
    ]
    return finished.page(parts, [Passage("", _(TITLE))])


def _summary(total: int) -> str:
    if not total:
        return _("No lecture has marked a statement yet.")
    return ngettext(
        "{n} statement that circulates about this subject and does not survive being run as it stands. "
        "Under each: what the machine says, and the line that shows it.",
        "{n} statements that circulate about this subject and do not survive being run as they stand. "
        "Under each: what the machine says, and the line that shows it.",
        total,
    )


def _pages(book: Book) -> Iterator[tuple[str, str]]:
    """The lecture's pages in reading order, with their titles."""
    yield books.INDEX, book.record.title
    for part in book.parts:
        yield book.page(part), part.heading or part.name


def _misbeliefs(book: Book, page: str) -> Iterator[_Misbelief]:
    """The misbeliefs of one page, in the order of its lines."""
    found = []
    for section in book.sections(page):
        evidence = gather(book.record, section, book.recordings)
        found += [(section, it, evidence.stamp) for it in evidence.pieces if it.kind == "misbelief"]
    for section, piece, stamp in sorted(found, key=lambda found: (found[0].file, found[1].line)):
        address = (
            f"{books.way(books.INDEX, page).removeprefix('./')}#{book.line(page, section.file, piece.line)}"
        )
        where, name = _("line {n}", n=piece.line), f"L{piece.line}"
        if len(book.record.sources) > 1:
            where, name = (
                f"{book.path(section).rpartition('/')[2]}, {where}",
                f"{book.name(section.file)}-{name}",
            )
        yield _Misbelief(piece, section, where, address, name, stamp)


def _resolver(book: Book, folder: str) -> prose.Resolve:
    """Links to the lecture's functions, from this page."""

    def resolve(name: str) -> str | None:
        found = books.address(book, books.INDEX, name)
        return None if found is None else f"../{folder}/{found.removeprefix('./')}"

    return resolve


# ---------------------------------------------------------------------------- as HTML


def _finder(total: int) -> list[Html]:
    """A box to filter with; it appears where the script runs."""
    field = tag("input", type="search", id="lb-find", autocomplete="off", spellcheck="false", maxlength="80")
    words = markup.text(_("Show only statements with these words"))
    label = tag("label", words, for_="lb-find")
    pattern = _("{n} of {all}")
    count = tag(
        "span", pattern.format(n=total, all=total), class_="lb-shown", role="status", data_words=pattern
    )
    script = tag("script", type="module", src="../../assets/litbook/misbeliefs.js")
    return [tag("div", label, field, count, class_="lb-find", hidden=True), script]


def _list(folder: str, found: Sequence[_Misbelief], setting: prose.Setting) -> Html:
    return tag("ul", *(_entry(folder, it, setting) for it in found), class_="lb-sayings")


def _entry(folder: str, it: _Misbelief, setting: prose.Setting) -> Html:
    section = prose.inline(it.section.heading or it.section.name, setting)
    where = tag("a", it.where, href=f"../{folder}/{it.address}")
    stamp = markup.text(f" · {it.stamp}" if it.stamp else "")
    saying = markup.text("“"), prose.inline(it.piece.text, setting), markup.text("”")
    return tag(
        "li",
        tag("p", *saying, class_="lb-saying"),
        tag("p", prose.inline(it.piece.data, setting)),
        tag("p", section, " · ", where, stamp, class_="lb-where"),
        id=f"{folder}-{it.id}",
    )
