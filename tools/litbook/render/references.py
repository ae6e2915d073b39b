"""What a lecture's prose refers to: other lectures, known by their text alone, and what does not exist.

In goes a folder of lectures, or a record; out come the pages of a lecture that need not have run, and the
problems that a run tells before anybody builds a page. It runs nothing, and draws nothing that is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from litbook.document import grammar
from litbook.document.bibliography import Bibliography
from litbook.document.note import Citation, Link, Reference, walk
from litbook.document.setting import Citations, Setting
from litbook.errors import Place, Problem, UnusableLecture
from litbook.project import is_lecture
from litbook.record.model import SCHEMA, Definition, Device, Environment, Piece, Record, Section
from litbook.render import books
from litbook.render.books import INDEX, NOTHING_CITED, Book
from litbook.render.evidence import here
from litbook.render.sheet import FAR
from litbook.text import source

_NOWHERE = Environment("", "", "", "", 0, 0, 0, Device("", "", ""), {}, None, "", 0)


def beside(folder: Path) -> Callable[[str], Book | None]:
    """Where the pages of the lectures in `folder` are found by name, each read when it is first asked for."""

    @functools.cache
    def find(name: str) -> Book | None:
        there = [path for path in (folder / name, folder / f"{name}.py") if is_lecture(path)]
        try:
            return books.of(_unrun(there[0]), NOTHING_CITED, (), []) if there else None
        except UnusableLecture:
            return None  # its own run says so

    return find


def _unrun(path: Path) -> Record:
    """The lecture at `path` as it is before any run: where its sections and definitions stand."""
    lecture = source.outline(path)
    keys = [lecture.key(number) for number in range(len(lecture.functions))]
    sections, definitions = list[Section](), list[Definition]()
    for key, it in zip(keys, lecture.functions, strict=True):
        place = it.file, it.first, it.last - it.first + 1
        if it.kind in ("module", "main", "part", "section"):
            parent = "" if it.parent is None else keys[it.parent]
            sections.append(Section(key, it.kind, *place, it.name, it.heading, parent))
        else:
            kind: Literal["class", "helper"] = "class" if it.kind == "class" else "helper"
            definitions.append(Definition(key, kind, *place, it.heading, hidden=it.hidden))
    order = {keys[number]: place for place, number in enumerate(lecture.order)}  # as main reaches them
    sections.sort(key=lambda it: order.get(it.key, -1))
    texts = lecture.sources()
    return Record(SCHEMA, lecture.name, lecture.title, _NOWHERE, texts, tuple(definitions), tuple(sections))


def lost(record: Record, folder: Path, bibliography: Bibliography | None) -> list[Problem]:
    """What the prose of a run links to or cites, and that does not exist; `folder` is that of the lectures.

    Without a bibliography citations are left to the build, which says so.
    """
    problems: list[Problem] = []
    book = books.of(record, NOTHING_CITED, (), [])
    book.others = beside(folder)
    for section in record.sections:
        page = book.place.get(section.key, INDEX)
        setting = Setting(
            Citations(bibliography or NOTHING_CITED),
            problems,
            resolve=functools.partial(books.address, book, page),
            number=functools.partial(books.numbered, book, page),
        )
        lines = record.sources[section.file].text.split("\n")
        texts = list(_prose(section, here(record, section).pieces))
        for line, text in texts:
            below = min((other for other, _ in texts if other > line), default=line + FAR)
            setting.place = Place(book.path(section), line, 1, lines[line - 1])
            setting.ahead = lines[line - 1 : below - 1]
            for node in walk(grammar.read(text)) if "[" in text else ():
                match node:
                    case Link(address=address):
                        setting.address(address)
                    case Citation(keys=keys):
                        for key in keys:
                            setting.cite(key)
                    case Reference(label=label):
                        setting.refer(label)
    told = ["broken-link"] if bibliography is None else ["broken-link", "unknown-citation"]
    if all(it.ran or it.requires for it in record.sections):  # else a name may be in what did not run
        told.append("unknown-name")
    return [it for it in problems if it.slug in told]


def _prose(section: Section, pieces: list[Piece]) -> Iterator[tuple[int, str]]:
    """All prose of a section, with its line."""
    yield section.first, section.heading
    yield from ((section.first + it.line, it.caption) for it in section.claims)
    for it in pieces:
        kind, _, name = it.data.partition(":")
        if it.kind == "link":
            yield it.line, {"cite": f"[@{name}]", "function": f"[.](#{name})"}.get(kind, "")
        elif it.kind != "output":
            data = "" if it.kind in ("figure", "image") else it.data
            yield from ((it.line, text) for text in (it.text, data, it.why))
