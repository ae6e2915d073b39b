"""What differs between two records, as a table for a terminal: a line per change, under its section."""

from __future__ import annotations

from collections.abc import Sequence

from litbook.record.compare import Change, Comparison
from litbook.record.model import Record, grouped

WIDE = 60  # characters of an expression in the table


def lines(old: Record, new: Record, names: Sequence[str], comparison: Comparison) -> list[str]:
    """The two environments as far as they differ, under `names`, then a line per change, by section."""
    places: list[tuple[str, ...]] = [("", *names)]
    sides: list[dict[str, str]] = []  # where and with what each was made
    for where in (old.environment, new.environment):
        device = where.device
        more = {"python": where.python, "os": where.os, "cpu": where.cpu, "threads": str(where.threads)}
        more |= {"device": device.name, "driver": device.driver or "-", "cuda": device.cuda or "-"}
        sides.append({**where.versions, **more, "date": where.date})
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        was, now = (side.get(name, "-") for side in sides)
        if was != now or name == "torch":
            places.append((name, was, now))

    rows = [("line", "what", "was", "is", "by")]
    heads: dict[int, str] = {}  # above which row the name of a section stands
    for section, differences in grouped(comparison.differences, lambda d: d.section).items():
        heads[len(rows)] = section[:WIDE]
        for difference in differences:
            what = difference.what[:WIDE]
            for change in difference.changes or (Change("", "", ""),):
                at = f"{' ' * change.at[:1].isalpha()}{change.at}"
                row = str(difference.place.line), f"{what}{at}", change.was, change.now, change.by
                rows.append(row)
    table: list[str] = []
    for number, line in enumerate(_columns(rows) if comparison.differences else []):
        table += ["", heads[number], line] if number in heads else [line]
    return [*_columns(places), "", *table, ""]


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
