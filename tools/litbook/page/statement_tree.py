"""A section's text as the reader meets it: prose, code, calls of further sections, in source order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import islice, takewhile

from msgspec import Struct

from litbook.page.highlight import CodeLine
from litbook.page.view import statements
from litbook.record.model import Section


class SourceItem(Struct, frozen=True):
    """Lines that are shown as `code`; else a call of the section `target`; else lines whose words are told.

    A statement whose words are told is not shown, because what it says is.
    """

    first: int
    last: int
    code: tuple[int, ...] = ()
    target: str = ""


Spans = Sequence[tuple[int, int]]


def outline(
    section: Section, lines: Sequence[CodeLine], hidden: Spans, tells: Callable[[int, int], bool]
) -> list[SourceItem]:
    """The items of a section; `lines` are those of its file, `hidden` those of them that no page shows.

    `tells(first, last)` says whether prose or a picture came from there; what has nothing to tell stays code.
    """
    in_order = sorted(statements(section), key=lambda s: (s.first, -s.line_range[-1]))
    calls = [SourceItem(s.first, s.first, target=s.target) for s in in_order if s.kind == "section"]
    unseen = [(a, b) for a, b in hidden if a <= section.last and section.first <= b]
    items: list[SourceItem] = []
    block: list[int] = []  # the lines of code since the last item

    def take(first: int, end: int) -> None:
        """Lines of code, without directives and hidden lines."""
        for number in range(first, end):
            line = lines[number - 1]
            if line.text.strip() or line.was_blank:
                if not any(a <= number <= b for a, b in unseen):
                    block.append(number)

    def put(*between: SourceItem) -> None:
        """What stands between blocks of code; the one above ends without blank lines around it."""
        shown = [i for i, number in enumerate(block) if not lines[number - 1].was_blank]
        if shown:
            code = block[shown[0] : shown[-1] + 1]
            items.append(SourceItem(code[0], code[-1], tuple(code)))
        items.extend(between)
        block.clear()

    at = section.first + section.body - 1  # the text begins after the docstring
    for statement in in_order:
        first, last = statement.first, statement.line_range[-1]
        if first <= at or statement.kind == "doc":
            at = max(at, last)
            continue
        take(at + 1, first)
        at = last
        start = bisect_left(calls, first, key=lambda call: call.first)
        inside = tuple(takewhile(lambda call, last=last: call.first <= last, islice(calls, start, None)))  # type: ignore[misc]
        if statement.kind == "section":
            put(*inside)
        elif statement.kind in ("piece", "hidden") and tells(first, last):
            put(SourceItem(first, last))
        elif statement.kind != "hidden":
            take(first, last + 1)
            if tells(first, last) or inside:
                put(SourceItem(first, last), *inside)
    take(at + 1, section.last + 1)
    put()
    return items
