"""What differs between two records, as a table for a terminal: a line per change, under its section."""

from __future__ import annotations

from collections.abc import Sequence

from litbook.record.compare import Change, Comparison
from litbook.record.model import Record, grouped

WIDE = 60  # characters of an expression in the table


def lines(old: Record, new: Record, names: Sequence[str], found: Comparison) -> list[str]:
    """The two environments as far as they differ, under `names`, then the table."""
    return [*_columns(_environments(old, new, names)), "", *_table(found), ""]


def _environments(old: Record, new: Record, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Where and with what the two records were made, as far as that differs."""
    rows: list[tuple[str, ...]] = [("", *names)]
    sides = [_environment(record) for record in (old, new)]
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        a, b = (side.get(name, "-") for side in sides)
        if a != b or name == "torch":
            rows.append((name, a, b))
    return rows


def _environment(record: Record) -> dict[str, str]:
    it = record.environment
    known = {**it.versions, "python": it.python, "os": it.os, "cpu": it.cpu, "threads": str(it.threads)}
    device = it.device
    return known | {
        "device": device.name,
        "driver": device.driver or "-",
        "cuda": device.cuda or "-",
        "date": it.date,
    }


def _table(found: Comparison) -> list[str]:
    """A line per change, under the name of its section."""
    rows = [("line", "what", "was", "is", "by")]
    heads: dict[int, str] = {}
    for section, differences in grouped(found.differences, lambda it: it.section).items():
        heads[len(rows)] = section[:WIDE]
        for it in differences:
            changes = it.changes or (Change("", "", ""),)
            what = it.what[:WIDE]
            rows += [
                (str(it.place.line), f"{what}{' ' * c.at[:1].isalpha()}{c.at}", c.was, c.now, c.by)
                for c in changes
            ]
    lines: list[str] = []
    for number, line in enumerate(_columns(rows) if found.differences else []):
        lines += ["", heads[number], line] if number in heads else [line]
    return lines


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
