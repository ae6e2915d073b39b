"""The page of what is commonly said and measured otherwise: every misbelief of the book, with its line.

It is complete as it stands; `assets/misbeliefs.js` adds a filter by text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from litbook.record.model import Function, Piece
from litbook.render import books, markup, prose
from litbook.render.bibliography import Bibliography
from litbook.render.books import Book
from litbook.render.edition import Edition
from litbook.render.evidence import gather

TITLE = "Commonly said, measured otherwise"
SPOKEN = ("main", "part", "section")  # what a reader meets; what a helper says belongs to its section


@dataclass(frozen=True)
class _Said:
    """One misbelief and the section that it stands in."""

    piece: Piece
    function: Function
    page: str
    stamp: str


def page(lectures: Sequence[Edition], bibliography: Bibliography = books.NOTHING_CITED) -> str:
    """The page as Markdown. It stands beside the lectures' folders."""
    citations = prose.Citations(bibliography)
    groups: list[str] = []
    total = 0
    for it in lectures:
        book = books.of(it.record, bibliography, it.recordings, [])
        setting = prose.Setting(citations, [])
        setting.resolve = _resolver(book, it.folder)
        shared = [f"## {_heading(it.record.title, setting)} {{#{it.folder}}}"] if len(lectures) > 1 else []
        level = "#" * (2 + len(shared))
        for where, title in _pages(book):
            found = list(_found(book, where))
            total += len(found)
            if found:
                name = f"{it.folder}-{where.removesuffix('.md')}"
                groups += [*shared, f"{level} {_heading(title, setting)} {{#{name}}}"]
                groups.append(_list(it.folder, found, setting))
                shared = []
    references = citations.references()
    parts = [
        f"# {TITLE}",
        markup.tag("p", _counted(total), class_="lb-summary"),
        _finder(total) if total else "",
        *groups,
        *(["## References {#references}", references] if references else []),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _counted(total: int) -> str:
    if not total:
        return "No lecture has marked a statement yet."
    one = "1 statement that circulates about this subject and does not survive being run as it stands"
    more = (
        f"{total:,} statements that circulate about this subject and do not survive being run as they stand"
    )
    return f"{one if total == 1 else more}. Under each: what the machine says, and the line that shows it."


def _heading(text: str, setting: prose.Setting) -> str:
    return markup.for_heading(prose.inline(text, setting))


def _pages(book: Book) -> Iterator[tuple[str, str]]:
    """The lecture's pages in reading order, with their titles."""
    yield books.INDEX, book.record.title
    for part in book.parts:
        function = book.record.functions[part]
        yield books.file_of(book, part), function.heading or function.name


def _found(book: Book, where: str) -> Iterator[_Said]:
    """The misbeliefs of one page, in the order of its lines."""
    found = []
    for index, function in enumerate(book.record.functions):
        if book.place.get(index) == where and function.kind in SPOKEN:
            evidence = gather(book.record, index, book.recordings)
            found += [
                _Said(piece, function, where, evidence.stamp)
                for piece in evidence.pieces
                if piece.kind == "misbelief"
            ]
    yield from sorted(found, key=lambda said: said.piece.line)


def _resolver(book: Book, folder: str) -> prose.Resolve:
    """Links to the lecture's functions, from this page."""

    def resolve(name: str) -> str | None:
        found = books.address(book, books.INDEX, name)
        return None if found is None else f"../{folder}/{found.removeprefix('./')}"

    return resolve


# ---------------------------------------------------------------------------- as HTML


def _finder(total: int) -> str:
    """A box to filter with; it appears where the script runs."""
    field = '<input type="search" id="lb-find" autocomplete="off" spellcheck="false" maxlength="80" />'
    label = '<label for="lb-find">Show only statements with these words</label>'
    count = markup.tag("span", f"{total} of {total}", class_="lb-shown", role="status")
    script = '<script type="module" src="../../assets/litbook/misbeliefs.js"></script>'
    return markup.tag("div", label, field, count, class_="lb-find", hidden=True) + "\n\n" + script


def _list(folder: str, found: Sequence[_Said], setting: prose.Setting) -> str:
    return markup.tag("ul", *(_entry(folder, said, setting) for said in found), class_="lb-sayings")


def _entry(folder: str, said: _Said, setting: prose.Setting) -> str:
    line = said.piece.line
    way = books.way(books.INDEX, said.page).removeprefix("./")
    section = prose.inline(said.function.heading or said.function.name, setting)
    where = markup.tag("a", f"line {line}", href=f"../{folder}/{way}#L{line}")
    stamp = markup.text(f" · {said.stamp}") if said.stamp else ""
    return markup.tag(
        "li",
        markup.tag("p", "“", prose.inline(said.piece.text, setting), "”", class_="lb-saying"),
        markup.tag("p", prose.inline(said.piece.data, setting)),
        markup.tag("p", section, " · ", where, stamp, class_="lb-where"),
        id=f"{folder}-L{line}",
    )
