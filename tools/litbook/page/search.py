"""A page of a lecture -> what a search finds it by: the words of its prose, and the names in its code.

Code, values, questions and their answers are not among the words: who searches for one of these means its
thesis. It knows no form of an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from msgspec import Struct

from litbook.i18n import _
from litbook.markdown import grammar, nodes
from litbook.page import blocks as forms
from litbook.page import section as document
from litbook.page.highlight import CodeLine
from litbook.page.sitemap import Sitemap
from litbook.page.view import statements

# Of a line of code: what in it is no name, by the class of its colour; and the names in the rest: of what is
# called, of attributes, of arguments.
NO_NAMES = frozenset(["s", "c", "k", "kc", "m", "nb"])
_WORD = re.compile(r"[^\W\d_]{2}")
_NAME = re.compile(r"(?<=\.)[A-Za-z_]\w{2,}|[A-Za-z_]\w{2,}(?=\(|=[^=\s])")


class SearchPassage(Struct, frozen=True):
    """One passage of a page: its id there, "" for the top; its title as Markdown; paragraphs, and names.

    `core` is a section that the main path leads through, `waits` one that has not run.
    """

    anchor: str
    title: str
    words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    core: bool = False
    waits: bool = False


def passages(book: Sitemap, page: str) -> Iterator[SearchPassage]:
    """The top of the page, with its imports and constants; its sections; the definitions that stand there."""
    margins = [
        book.lines[module.file][number - 1]
        for module in book.preambles.get(page, ())
        for s in statements(module)
        if s.kind in ("code", "claim")
        for number in s.line_range
    ]
    for i, section in enumerate(book.sections(page)):
        title = book.record.title if section is book.record.main else section.heading or section.name
        blocks = [*_unfold_blocks(document.blocks(book, section))]
        rows = [row for block in blocks if isinstance(block, forms.CodeBlock) for row in block.rows]
        lines = [book.lines[section.file][row.number - 1] for row in rows] + ([] if i else margins)
        words = [text for block in blocks if isinstance(block, forms.PieceBlock) for text in _words(block)]
        anchor, core = book.anchor(section) if i else "", i > 0 and not section.aside
        waits = i > 0 and document.waits(book, section)
        yield SearchPassage(anchor, title, tuple(words), _names(lines), core and not waits, waits)
    if definitions := book.definitions(page):
        lines = [line for e in definitions for line in book.lines[e.file][e.first - 1 : e.last]]
        yield SearchPassage("definitions", _("Definitions"), names=_names(lines))


def _unfold_blocks(blocks: Iterable[forms.Block]) -> Iterator[forms.Block]:
    """These blocks, and those inside the ones that are folded."""
    for block in blocks:
        yield block
        yield from _unfold_blocks(block.inside if isinstance(block, forms.WaitingSection) else ())


def _words(told: forms.PieceBlock) -> Iterator[str]:
    """What a piece says, by paragraphs."""
    match told:
        case forms.Prose(_line, text) | forms.LinkBlock(_line, text):
            yield from _paragraphs(text)
        case forms.Misbelief(_line, common, run):
            yield "✗ “" + " ".join(_paragraphs(common)) + "”"
            yield from _paragraphs(run)
        case forms.Figure() | forms.Image() | forms.Explore():
            yield from _paragraphs(told.caption)
        case forms.Question() | forms.PrintedOutput() | forms.SpeakerNote():
            pass
        case _:
            assert_never(told)


def _paragraphs(text: str) -> Iterator[str]:
    """What a note says, one line for each of its paragraphs, titles and cells."""
    for node in nodes.walk(grammar.read(text)):
        match node:
            case nodes.Paragraph(children=line) | nodes.Heading(children=line):
                words = _readable(line)
            case nodes.TableCell(children=line):
                words = _readable(line)
                words = words if _WORD.search(words) else ""  # a number by itself says nothing
            case nodes.Box(title=title) | nodes.FoldBox(title=title):
                words = nodes.box_kind(node) if title is None else nodes.plain_text(title)
            case _:
                continue
        words = " ".join(words.split())
        if words := re.sub(r" (?=[,.;:](?: |$))", "", words):  # what stood there was the number of a work
            yield words


def _readable(line: Sequence[nodes.Inline]) -> str:
    """A line's words. LaTeX that a reader would have to spell out, a fraction's, is no word."""
    spelled = (isinstance(node, nodes.Math) and "\\" in node.latex for node in line)
    return "".join(
        "…" if skip else nodes.plain_text([node]) for node, skip in zip(line, spelled, strict=True)
    )


def _names(lines: Iterable[CodeLine]) -> tuple[str, ...]:
    """What is named in code, each name once, in the order of the lines."""
    texts = ("".join("''" if kind in NO_NAMES else text for kind, text in line.runs) for line in lines)
    return tuple(dict.fromkeys(name for text in texts for name in _NAME.findall(text)))
