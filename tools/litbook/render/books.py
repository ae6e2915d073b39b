"""What stands where: a lecture's pages, and on which of them each function is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from litbook.errors import Problem
from litbook.record.model import Function, Record
from litbook.render import code
from litbook.render.bibliography import Bibliography
from litbook.render.section import anchor
from litbook.text.mentions import Mention, mentions

NOTHING_CITED: Bibliography = {}
INDEX = "index.md"


@dataclass
class Book:
    """A lecture's pages: which function stands where."""

    record: Record
    bibliography: Bibliography
    recordings: Sequence[Record]
    problems: list[Problem]
    lines: Sequence[code.Line]
    main: int
    parts: list[int]
    place: dict[int, str] = field(default_factory=dict)  # function -> page


def of(
    record: Record, bibliography: Bibliography, recordings: Sequence[Record], problems: list[Problem]
) -> Book:
    functions = record.functions
    main = next((i for i, f in enumerate(functions) if f.kind == "main"), 0)
    top = record.sections()
    parts = top if any(record.sections(i) for i in top) else []
    lines = code.lines(record.sources[0].text, record.sources[0].cuts)
    book = Book(record, bibliography, recordings, problems, lines, main, parts)
    book.place[main] = INDEX
    for child in top:
        for index in tree(record, child):
            book.place[index] = file_of(book, child) if parts else INDEX
    _place_helpers(book)
    return book


def tree(record: Record, index: int) -> list[int]:
    """A section and all that it reaches."""
    return [index, *(deeper for child in record.sections(index) for deeper in tree(record, child))]


def file_of(book: Book, part: int) -> str:
    name = book.record.functions[part].name.replace("_", "-").strip("-")
    return f"{'part-index' if name == 'index' else name}.md"


def _place_helpers(book: Book) -> None:
    """Each helper goes to the page of the first part that names it, perhaps through another helper."""
    functions = book.record.functions
    order = [
        book.main,
        *(i for part in (book.parts or book.record.sections()) for i in tree(book.record, part)),
    ]
    inner = _inner(functions)
    helpers = [
        i
        for i, f in enumerate(functions)
        if f.kind in ("helper", "class") and i not in inner and not f.hidden
    ]
    waiting = list(order)
    while waiting:
        index = waiting.pop(0)
        named = _named(book, functions[index])
        for helper in helpers:
            if helper not in book.place and functions[helper].name in named:
                book.place[helper] = _first_part(book, book.place[index])
                waiting.insert(0, helper)
    for helper in helpers:
        book.place.setdefault(helper, file_of(book, book.parts[-1]) if book.parts else INDEX)


def _named(book: Book, function: Function) -> set[str]:
    """What a function names of the lecture: prose that says "train" does not, nor does a local `train`."""
    found = _mentions(book)  # in the order of their lines
    start = bisect_left(found, function.first, key=lambda it: it.line)
    return {it.name for it in takewhile(lambda it: it.line <= function.last, islice(found, start, None))}


def links(book: Book, page: str) -> dict[int, list[code.Link]]:
    """By line: the places in code where a helper is named, each with the address of its definition.

    That is its first line, inside what is folded: a browser opens the fold for it, without a script.
    """
    functions = book.record.functions
    helpers = {
        functions[i].name: (functions[i], ("" if where == page else way(page, where)))
        for i, where in book.place.items()
        if functions[i].kind in ("helper", "class")
    }
    found: dict[int, list[code.Link]] = {}
    for it in _mentions(book):
        if it.column is None or it.name not in helpers:
            continue
        function, where = helpers[it.name]
        if not function.first <= it.line <= function.last:  # one need not be told the way to where one is
            place = (it.column, len(it.name), f"{where}#L{function.first}")
            found.setdefault(it.line, []).append(place)
    return found


def _mentions(book: Book) -> tuple[Mention, ...]:
    return mentions(book.record.sources[0].text)


def _first_part(book: Book, page: str) -> str:
    return file_of(book, book.parts[0]) if page == INDEX and book.parts else page


def _inner(functions: Sequence[Function]) -> set[int]:
    """The functions that another one holds. They come after it, as in the text."""
    found, last = set[int](), 0
    for index, function in enumerate(functions):
        if function.kind != "module":
            if function.first <= last:
                found.add(index)
            last = max(last, function.last)
    return found


def address(book: Book, page: str, name: str) -> str | None:
    """From `page`, the address of the function called `name`; None where it is on no page."""
    for index, where in book.place.items():
        if book.record.functions[index].name == name:
            return ("" if where == page else way(page, where)) + f"#{anchor(name)}"
    return None


def way(page: str, other: str) -> str:
    """The relative address between two pages; every page is a folder of its own, the index is theirs."""
    up = "" if page == INDEX else "../"
    return up + ("" if other == INDEX else other.removesuffix(".md") + "/") or "./"


def plain(function: Function) -> str:
    return function.heading.replace("`", "") or function.name
