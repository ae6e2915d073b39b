"""What is wrong with a lecture's prose: what no page can show, and what cites or links to nothing.

In goes the record of a run, out come problems with their places in the lecture's files, before anybody draws
a page. Every command tells them, and a page draws what is told here as text.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path

from litbook.finding import Finding, Place
from litbook.lecture.author_words import ASKED
from litbook.markdown import grammar
from litbook.markdown.links import FAR, Citations, NoteContext
from litbook.markdown.nodes import Citation, DisplayMath, LabelReference, Link, Math, Name, Note, walk
from litbook.markdown.unexecuted import static_prose
from litbook.page import other_lectures, pieces, sitemap
from litbook.page.runs import LectureRuns
from litbook.page.sitemap import INDEX, NOTHING_CITED
from litbook.page.view import gather, silent_statements
from litbook.record.model import Definition, Section

FormulaRenderer = Callable[[str, str], object]
"""LaTeX, and `block` or `inline`; raises where it cannot be shown."""


def problems(
    edition: LectureRuns, folder: Path, citations: Citations | None, formula: FormulaRenderer | None
) -> list[Finding]:
    """Each problem once, in the order of the lecture; `folder` is that of the lectures.

    Without `citations` nothing is said of any, and without `formula` nothing of LaTeX.
    """
    several, record = list[Finding](), edition.record
    book = sitemap.build_sitemap(record, NOTHING_CITED, edition.recordings, several)
    book.others = other_lectures.sitemap_finder(folder)
    _ = book.numbers  # finds names that are given twice
    shown: list[Section | Definition] = [record.definition_of[key] for key in book.defined]
    for section in [*record.sections, *shown]:
        page = book.place.get(section.key) or book.defined.get(section.key, INDEX)
        setting = NoteContext(
            citations or Citations(NOTHING_CITED),
            several,
            resolve=functools.partial(sitemap.resolve_name, book, page),
            number=functools.partial(sitemap.resolve_label, book, page),
        )
        lines = record.sources[section.file].text.split("\n")
        texts = sorted(_texts(edition, section), key=itemgetter(0))
        starts = [line for line, _, _ in texts]
        for line, read, text in texts:
            note, later = read(text), bisect_right(starts, line)
            below = starts[later] if later < len(starts) else line + FAR
            setting.place = Place(book.path(section), line, 1, lines[line - 1])
            setting.ahead = lines[line - 1 : below - 1]
            # Everything in it that may lead nowhere, or that no page can show.
            setting.refuse(note)
            for node in walk(note):
                match node:
                    case Link(address=address):
                        setting.address(address)
                    case Citation(keys=keys):
                        for key in keys:
                            setting.cite(key)
                    case LabelReference(label=label):
                        setting.refer(label)
                    case Name(label=label):
                        setting.name(label)
                    case Math(latex=latex) if formula:
                        setting.formula(latex, "block" if node.display else "inline", formula)
                    case DisplayMath(latex=latex, label=label) if formula:
                        setting.formula(latex, "block", formula, label)
    untold = {"unknown-citation"} if citations is None else set()
    if not all(section.has_run or section.requires for section in record.sections):
        untold.add("unknown-name")  # what did not run may have it
    return [problem for problem in dict.fromkeys(several) if problem.code not in untold]


def _texts(
    edition: LectureRuns, section: Section | Definition
) -> Iterator[tuple[int, Callable[[str], Note], str]]:
    """All prose of a section, or of a definition: its line, how it is read, and the text.

    It is read when its turn comes: the trees of a long section take megabytes.
    """
    yield section.first, grammar.phrase, section.heading
    if isinstance(section, Definition):
        return
    yield from ((section.first + claim.line, grammar.phrase, claim.caption) for claim in section.claims)
    told = gather(edition.record, section, edition.recordings).pieces
    for piece in told:
        match piece.kind:
            case "link":
                yield piece.line, functools.partial(pieces.link, target=piece.data), piece.text
            case "figure" | "image":
                yield piece.line, grammar.phrase, piece.text
            case "misbelief" | "explore":
                yield from ((piece.line, grammar.phrase, text) for text in (piece.text, piece.data))
                yield piece.line, grammar.read, piece.why  # of a picture to play with
            case "note" | "question" | "speaker":
                texts = filter(None, (piece.text, piece.data, piece.why))
                yield from ((piece.line, grammar.read, text) for text in texts)
    for statement in silent_statements(section, {piece.line for piece in told}):
        yield statement.first, grammar.read, static_prose(statement.prose).removeprefix(ASKED).strip()
