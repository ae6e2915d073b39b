"""What a lecture's prose refers to: other lectures, known by their text alone, and what does not exist.

In goes a folder of lectures, or a record; out come the pages of a lecture that need not have run, and the
problems that a run tells before anybody builds a page. It runs nothing, and draws nothing that is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from litbook.document import books, grammar
from litbook.document.bibliography import Bibliography
from litbook.document.books import INDEX, NOTHING_CITED, Book
from litbook.document.evidence import here
from litbook.document.note import Citation, Link, Reference, walk
from litbook.document.setting import FAR, Citations, Setting
from litbook.errors import Place, Problem, UnusableLecture
from litbook.project import is_lecture
from litbook.record.model import SCHEMA, Definition, Device, Environment, Record, Section
from litbook.text import source

_NOWHERE = Environment("", "", "", "", 0, 0, 0, Device("", "", ""), {}, None, "", 0)


def beside(folder: Path) -> Callable[[str], Book | None]:
    """Where the pages of the lectures in `folder` are found by name, each read when it is first asked for."""

    @functools.cache
    def find(name: str) -> Book | None:
        there = [path for path in (folder / name, folder / f"{name}.py") if is_lecture(path)]
        try:
            lecture = source.outline(there[0]) if there else None
        except UnusableLecture:  # its own run says so
            lecture = None
        if lecture is None:
            return None
        # The lecture as it is before any run: where its sections and definitions stand.
        keys = [lecture.key(number) for number in range(len(lecture.functions))]
        sections, definitions = list[Section](), list[Definition]()
        for key, function in zip(keys, lecture.functions, strict=True):
            place = function.file, function.first, function.last - function.first + 1
            if function.kind in ("module", "main", "part", "section"):
                parent = "" if function.parent is None else keys[function.parent]
                sections.append(Section(key, function.kind, *place, function.name, function.heading, parent))
            else:
                kind: Literal["class", "helper"] = "class" if function.kind == "class" else "helper"
                definitions.append(Definition(key, kind, *place, function.heading, hidden=function.hidden))
        order = {keys[number]: place for place, number in enumerate(lecture.order)}  # as main reaches them
        sections.sort(key=lambda section: order.get(section.key, -1))
        texts = lecture.sources()
        parts = _NOWHERE, texts, tuple(definitions), tuple(sections)
        return books.of(Record(SCHEMA, lecture.name, lecture.title, *parts), NOTHING_CITED, (), [])

    return find


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
        # All prose of the section, with its line.
        texts = [(section.first, section.heading)]
        texts += [(section.first + claim.line, claim.caption) for claim in section.claims]
        for piece in here(record, section).pieces:
            kind, _, name = piece.data.partition(":")
            if piece.kind == "link":
                texts.append((piece.line, {"cite": f"[@{name}]", "function": f"[.](#{name})"}.get(kind, "")))
            elif piece.kind != "output":
                data = "" if piece.kind in ("figure", "image") else piece.data
                texts += [(piece.line, text) for text in (piece.text, data, piece.why)]
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
    if all(s.ran or s.requires for s in record.sections):  # else a name may be in what did not run
        told.append("unknown-name")
    return [problem for problem in problems if problem.slug in told]
