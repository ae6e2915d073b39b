"""A section's text as the reader meets it: prose, code, calls of further sections, in source order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from msgspec import Struct

from litbook.document.code import Line
from litbook.document.evidence import body, statements
from litbook.record.model import Section, Statement


@dataclass
class Code:
    """Lines that are shown as code."""

    lines: list[int] = field(default_factory=list)


class Told(Struct, frozen=True):
    """Lines whose statement is not shown, because what it says is."""

    first: int
    last: int


class Call(Struct, frozen=True):
    """A call of a further section."""

    line: int
    target: str  # the section's key


Item = Code | Told | Call
Spans = Sequence[tuple[int, int]]


def outline(
    section: Section, lines: Sequence[Line], hidden: Spans, tells: Callable[[int, int], bool]
) -> list[Item]:
    """The items of a section; `lines` are those of its file, `hidden` those of them that no page shows.

    `tells(first, last)` says whether prose or a picture came from there; what has nothing to tell stays code.
    """
    in_order = sorted(statements(section), key=lambda s: (s.first, -_end(s)))
    calls = [Call(s.first, s.target) for s in in_order if s.kind == "section"]
    unseen = [(a, b) for a, b in hidden if a <= section.last and section.first <= b]
    items: list[Item] = []
    block: list[int] = []  # the lines of code since the last item

    def take(first: int, end: int) -> None:
        """Lines of code, without directives and hidden lines."""
        for number in range(first, end):
            line = lines[number - 1]
            if line.text.strip() or line.was_blank:
                if not any(a <= number <= b for a, b in unseen):
                    block.append(number)

    def put(*between: Item) -> None:
        """What stands between blocks of code; the one above ends without blank lines around it."""
        shown = [i for i, number in enumerate(block) if not lines[number - 1].was_blank]
        items.extend([Code(block[shown[0] : shown[-1] + 1])] if shown else [])
        items.extend(between)
        block.clear()

    at = body(section) - 1
    for statement in in_order:
        first, last = statement.first, _end(statement)
        if first <= at or statement.kind == "doc":
            at = max(at, last)
            continue
        take(at + 1, first)
        at = last
        start = bisect_left(calls, first, key=lambda call: call.line)
        inside = tuple(takewhile(lambda call, last=last: call.line <= last, islice(calls, start, None)))  # type: ignore[misc]
        if statement.kind == "section":
            put(*inside)
        elif statement.kind in ("piece", "hidden") and tells(first, last):
            put(Told(first, last))
        elif statement.kind != "hidden":
            take(first, last + 1)
            if tells(first, last) or inside:
                put(Told(first, last), *inside)
    take(at + 1, section.last + 1)
    put()
    return items


def _end(statement: Statement) -> int:
    return max(statement.end, statement.last)
