"""A page of a lecture -> what a search finds it by: the words of its prose, and the names in its code.

Code, values, questions and their answers are not among the words: who searches for one of these means its
thesis. It knows no form of an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct

from litbook.document import captions, grammar, note
from litbook.document import section as document
from litbook.document.blocks import (
    Absence,
    Block,
    Call,
    Code,
    Explore,
    Failure,
    Figure,
    Fold,
    Guards,
    Image,
    Legend,
    Link,
    Loose,
    Misbelief,
    Output,
    Prose,
    Question,
    Ranks,
    Shelf,
    Speech,
    Trouble,
    Unshown,
    Video,
)
from litbook.document.books import Book
from litbook.document.catalogue import _
from litbook.document.code import Line
from litbook.document.evidence import statements

# Of a line of code: what in it is no name, by the class of its colour; and the names in the rest: of what is
# called, of attributes, of arguments.
NO_NAMES = frozenset(["s", "c", "k", "kc", "m", "nb"])
_WORD = re.compile(r"[^\W\d_]{2}")
_NAME = re.compile(r"(?<=\.)[A-Za-z_]\w{2,}|[A-Za-z_]\w{2,}(?=\(|=[^=\s])")


class Passage(Struct, frozen=True):
    """One passage of a page: its id there, "" for the top; its title as Markdown; paragraphs, and names.

    `core` is a section that the main path leads through.
    """

    anchor: str
    title: str
    words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    core: bool = False


def passages(book: Book, page: str) -> Iterator[Passage]:
    """The top of the page, with its imports and constants; its sections; the definitions that stand there."""
    margins = [
        book.lines[module.file][number - 1]
        for module in book.preambles.get(page, ())
        for s in statements(module)
        if s.kind in ("code", "claim")
        for number in range(s.first, max(s.end, s.last) + 1)
    ]
    for i, section in enumerate(book.sections(page)):
        title = book.record.title if section is book.record.main else section.heading or section.name
        blocks = document.blocks(book, section)
        lines = [book.lines[section.file][number - 1] for number in _code(blocks)]
        lines += [] if i else margins
        anchor, core = book.anchor(section) if i else "", i > 0 and not section.aside
        yield Passage(anchor, title, tuple(_words(blocks)), _names(lines), core)
    if definitions := book.definitions(page):
        lines = [line for e in definitions for line in book.lines[e.file][e.first - 1 : e.last]]
        yield Passage("definitions", _("Definitions"), names=_names(lines))


def _words(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Prose(_line, text) | Link(_line, text):
                yield from _paragraphs(text)
            case Misbelief(_line, common, run):
                yield "✗ “" + " ".join(_paragraphs(common)) + "”"
                yield from _paragraphs(run)
            case Figure(caption=caption) | Image(caption=caption) | Explore(caption=caption):
                yield from _paragraphs(caption)
            case Video(caption=caption, track=track):
                yield from (*_paragraphs(caption), *captions.said(track))
            case Fold(inside=inside):
                yield from _words(inside)
            case Question() | Output() | Speech() | Legend() | Code() | Guards() | Loose() | Shelf():
                pass
            case Failure() | Trouble() | Unshown() | Call() | Ranks() | Absence():
                pass
            case _:
                assert_never(block)


def _paragraphs(text: str) -> Iterator[str]:
    """What a note says, one line for each of its paragraphs, titles and cells."""
    for node in note.walk(grammar.read(text)):
        match node:
            case note.Paragraph(children=line) | note.Heading(children=line) | note.Term(children=line):
                words = _readable(line)
            case note.Cell(children=line):
                words = _readable(line)
                words = words if _WORD.search(words) else ""  # a number by itself says nothing
            case note.Tab(title=line):
                words = _readable(line)
            case note.Box(title=title) | note.Fold(title=title):
                words = note.kind(node) if title is None else note.plain(title)
            case _:
                continue
        words = " ".join(words.split())
        if words := re.sub(r" (?=[,.;:](?: |$))", "", words):  # what stood there was the number of a work
            yield words


def _readable(line: Sequence[note.Inline]) -> str:
    """A line's words. LaTeX that a reader would have to spell out, a fraction's, is no word."""
    spelled = (isinstance(node, note.Math) and "\\" in node.latex for node in line)
    return "".join("…" if skip else note.plain([node]) for node, skip in zip(line, spelled, strict=True))


def _code(blocks: Iterable[Block]) -> Iterator[int]:
    """The numbers of the lines that are shown as code."""
    for block in blocks:
        if isinstance(block, Code):
            yield from (row.number for row in block.rows)
        elif isinstance(block, Fold):
            yield from _code(block.inside)


def _names(lines: Iterable[Line]) -> tuple[str, ...]:
    """What is named in code, each name once, in the order of the lines."""
    texts = ("".join("''" if kind in NO_NAMES else text for kind, text in line.runs) for line in lines)
    return tuple(dict.fromkeys(name for text in texts for name in _NAME.findall(text)))
