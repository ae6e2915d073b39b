"""A section's text as the reader meets it: prose, code, calls of further sections, in source order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from litbook.record.model import Record, Statement
from litbook.render.code import Line


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
    target: int


Item = Code | Told | Call


def outline(
    record: Record, index: int, lines: Sequence[Line], tells: Callable[[int, int], bool]
) -> list[Item]:
    """The items of function `index`. `tells(first, last)` says whether prose or a picture came from there;
    what has nothing to tell stays code.
    """
    function = record.functions[index]
    own = sorted((s for _, s in record.statements_of.get(index, [])), key=lambda s: (s.first, -_end(s)))
    calls = [s for s in own if s.kind == "section"]
    hidden = [
        (s.first, _end(s)) for s in record.hidden if s.first <= function.last and function.first <= _end(s)
    ]
    found: list[Item] = [Code()]
    at = max(function.body, function.first) - 1 if function.kind != "module" else 0
    for statement in own:
        if statement.first <= at or statement.kind == "doc":
            at = max(at, _end(statement))
            continue
        _take(found, range(at + 1, statement.first), lines, hidden)
        _add(found, statement, lines, hidden, tells, _calls(calls, statement))
        at = _end(statement)
    _take(found, range(at + 1, function.last + 1), lines, hidden)
    return [item for item in map(_trimmed(lines), found) if not isinstance(item, Code) or item.lines]


def _end(statement: Statement) -> int:
    return max(statement.end, statement.last)


def _calls(calls: Sequence[Statement], around: Statement) -> list[Call]:
    """The calls of sections inside of a statement; `calls` are in the order of their lines."""
    start = bisect_left(calls, around.first, key=lambda s: s.first)
    inside = takewhile(lambda s: s.first <= _end(around), islice(calls, start, None))
    return [Call(s.first, s.target) for s in inside if s.target is not None]


def _add(
    found: list[Item],
    statement: Statement,
    lines: Sequence[Line],
    hidden: Sequence[tuple[int, int]],
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


def _take(found: list[Item], wanted: range, lines: Sequence[Line], hidden: Sequence[tuple[int, int]]) -> None:
    """Put lines into the block of code at the end, without directives and hidden lines."""
    block = found[-1]
    assert isinstance(block, Code)
    for number in wanted:
        line = lines[number - 1]
        shown = line.text.strip() or line.was_blank
        if shown and not any(a <= number <= b for a, b in hidden):
            block.lines.append(number)


def _trimmed(lines: Sequence[Line]) -> Callable[[Item], Item]:
    def trim(item: Item) -> Item:
        if isinstance(item, Code):
            while item.lines and lines[item.lines[0] - 1].was_blank:
                item.lines.pop(0)
            while item.lines and lines[item.lines[-1] - 1].was_blank:
                item.lines.pop()
        return item

    return trim
