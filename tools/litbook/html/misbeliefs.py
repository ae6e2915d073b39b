"""The page of what is commonly said and measured otherwise: every misbelief of the book, with its line.

It is complete as it stands; `assets/misbeliefs.js` adds a filter by text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from litbook.html import elements
from litbook.html.elements import Html, Page, tag
from litbook.i18n import _, gettext_noop, ngettext
from litbook.markdown import to_html
from litbook.markdown.bibliography import Bibliography
from litbook.markdown.citations_html import references
from litbook.markdown.links import Citations, NoteContext
from litbook.page import sitemap
from litbook.page.runs import LectureRuns
from litbook.page.search import SearchPassage
from litbook.page.sitemap import Sitemap
from litbook.page.view import gather

TITLE = gettext_noop("Commonly said, measured otherwise")


def page(lectures: Sequence[LectureRuns], bibliography: Bibliography = sitemap.NOTHING_CITED) -> Page:
    """The page as Markdown. It stands beside the lectures' folders."""
    citations = Citations(bibliography, opens=True)
    groups: list[Html] = []
    total = 0
    for edition in lectures:
        record, folder = edition.record, edition.folder
        book = sitemap.build_sitemap(record, bibliography, edition.recordings, [])
        setting = NoteContext(citations, resolve=partial(_address, book, folder))
        head = elements.heading(2, to_html.inline(record.title, setting), folder)
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
                groups += [*heads, elements.heading(level, to_html.inline(title, setting), place)]
                misbeliefs.sort(key=lambda m: (m[0].file, m[1].line))
                entries = []
                for section, piece, stamp in misbeliefs:  # and what the machine says
                    way = sitemap.relative_url(sitemap.INDEX, name).removeprefix("./")
                    address = f"../{folder}/{way}#{book.line(name, section.file, piece.line)}"
                    where, ident = _("line {n}", n=piece.line), f"L{piece.line}"
                    if len(record.sources) > 1:
                        where = f"{book.path(section).rpartition('/')[2]}, {where}"
                        ident = f"{book.name(section.file)}-{ident}"
                    thesis = to_html.inline(section.heading or section.name, setting)
                    saying = elements.text("“"), to_html.inline(piece.text, setting), elements.text("”")
                    source = thesis, " · ", tag("a", where, href=address), f" · {stamp}" if stamp else ""
                    parts = [
                        tag("p", *saying, class_="lb-saying"),
                        tag("p", to_html.inline(piece.data, setting)),
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
    label = tag("label", elements.text(_("Show only statements with these words")), for_="lb-find")
    pattern = _("{n} of {all}")
    shown = pattern.format(n=total, all=total)
    count = tag("span", shown, class_="lb-shown", role="status", data_words=pattern)
    script = tag("script", type="module", src="../../assets/litbook/misbeliefs.js")
    parts = [
        elements.heading(1, _(TITLE)),
        tag("p", summary if total else _("No lecture has marked a statement yet."), class_="lb-summary"),
        *([tag("div", label, field, count, class_="lb-find", hidden=True), script] if total else []),
        *groups,
        *references(citations),
    ]
    return elements.page(parts, [SearchPassage("", _(TITLE))])


def _address(book: Sitemap, folder: str, name: str) -> str | None:
    """Where a function of the lecture stands, from this page."""
    address = sitemap.resolve_name(book, sitemap.INDEX, name)
    return None if address is None else f"../{folder}/{address.removeprefix('./')}"
