"""A record -> the numbers of its figures, tables and equations: those that have a name, in reading order.

A caption, or a formula between `$$`, gets a name by what stands before it, `[@fig:rate]:`; `[@fig:rate]` in
other prose refers to it. A figure that waits for another device is counted, so that all devices number alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from litbook.finding import Finding, Place
from litbook.markdown import grammar, nodes
from litbook.markdown.unexecuted import DRAWING
from litbook.page.view import gather, silent_statements, statements
from litbook.record.model import Record, Section


class NumberedLabel(Struct, frozen=True):
    """A figure, table or equation: its number, the section it is in, and whether a page shows it."""

    number: int
    section: str
    shown: bool


def number_labels(
    record: Record, recordings: Sequence[Record], problems: list[Finding]
) -> dict[str, NumberedLabel]:
    """By its name, `fig:rate`, everything that is numbered. A name that is given twice is a problem."""
    numbered: dict[str, NumberedLabel] = {}
    counts: Counter[str] = Counter()
    for section, line, text, shown in _prose(record, record.main, recordings, set()):
        note = grammar.read(text.replace(DRAWING, "")) if "[@" in text else None
        for node in nodes.walk(note) if note else ():
            label = node.label if isinstance(node, nodes.Name | nodes.DisplayMath) else ""
            if not label:
                continue
            if label in numbered:
                source = record.sources[section.file]
                code = source.text.split("\n")[line - 1]
                place = Place(source.path, line, len(code) - len(code.lstrip()) + 1, code)
                what = f"[@{label}]: is the name of something else already"
                problems.append(Finding("twice", what, place, "give each figure, table and equation its own"))
                continue
            kind = label.partition(":")[0]
            counts[kind] += 1
            numbered[label] = NumberedLabel(counts[kind], section.key, shown)
    return numbered


def _prose(
    record: Record, section: Section, recordings: Sequence[Record], done: set[str]
) -> Iterator[tuple[Section, int, str, bool]]:
    """Prose and captions with their lines: of a section, and of those that it calls, where it calls them."""
    done.add(section.key)
    pieces, kinds = gather(record, section, recordings).pieces, ("note", "figure", "image")
    texts = [(piece.line, piece.text, True) for piece in pieces if piece.kind in kinds]
    unheard = silent_statements(section, {line for line, *_ in texts})
    texts += [(s.first, s.prose, not s.prose.startswith(DRAWING)) for s in unheard]
    calls = {s.first: s.target for s in statements(section) if s.kind == "section"}
    for line in sorted({*calls, *(line for line, *_ in texts)}):
        yield from ((section, *text) for text in texts if text[0] == line)
        target = record.by_key.get(calls.get(line, ""))
        if target is not None and target.key not in done:
            yield from _prose(record, target, recordings, done)
