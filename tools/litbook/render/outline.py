"""A section's text as the reader meets it: prose, code, calls of further sections, in source order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from litbook.record.model import Section, Statement
from litbook.render.code import Line
from litbook.render.evidence import body, statements


@dataclass
class Code:
    """Lines that are shown as code."""

    lines: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Told:
    """Lines whose statement is not shown, because what it says is."""

    first: int
    last: int


@dataclass(frozen=True)
class Call:
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
    own = sorted(statements(section), key=lambda s: (s.first, -_end(s)))
    calls = [s for s in own if s.kind == "section"]
    inside = [(a, b) for a, b in hidden if a <= section.last and section.first <= b]
    found: list[Item] = [Code()]
    at = body(section) - 1
    for statement in own:
        if statement.first <= at or statement.kind == "doc":
            at = max(at, _end(statement))
            continue
        _take(found, range(at + 1, statement.first), lines, inside)
        _add(found, statement, lines, inside, tells, _calls(calls, statement))
        at = _end(statement)
    _take(found, range(at + 1, section.last + 1), lines, inside)
    return [item for item in found if not isinstance(item, Code) or _trim(item.lines, lines)]


def _end(statement: Statement) -> int:
    return max(statement.end, statement.last)


def _calls(calls: Sequence[Statement], around: Statement) -> list[Call]:
    """The calls of sections inside of a statement; `calls` are in the order of their lines."""
    start = bisect_left(calls, around.first, key=lambda s: s.first)
    inside = takewhile(lambda s: s.first <= _end(around), islice(calls, start, None))
    return [Call(s.first, s.target) for s in inside]


def _add(
    found: list[Item],
    statement: Statement,
    lines: Sequence[Line],
    hidden: Spans,
    tells: Callable[[int, int], bool],
    calls: Sequence[Call],
) -> None:
    """Append what one statement of the section's own body is to a reader."""
    first, last = statement.first, _end(statement)
    if statement.kind == "section":
        found += [*calls, Code()]
    elif statement.kind in ("piece", "hidden") and tells(first, last):
        found += [Told(first, last), Code()]
    elif statement.kind == "hidden":
        return
    else:
        _take(found, range(first, last + 1), lines, hidden)
        if tells(first, last) or calls:
            found += [Told(first, last), *calls, Code()]


def _take(found: list[Item], wanted: range, lines: Sequence[Line], hidden: Spans) -> None:
    """Put lines into the block of code at the end, without directives and hidden lines."""
    block = found[-1]
    assert isinstance(block, Code)
    for number in wanted:
        line = lines[number - 1]
        shown = line.text.strip() or line.was_blank
        if shown and not any(a <= number <= b for a, b in hidden):
            block.lines.append(number)


def _trim(block: list[int], lines: Sequence[Line]) -> list[int]:
    """The block, without the blank lines at its start and end."""
    while block and lines[block[0] - 1].was_blank:
        block.pop(0)
    while block and lines[block[-1] - 1].was_blank:
        block.pop()
    return block
