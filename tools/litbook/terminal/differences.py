"""What differs between two records, as a table for a terminal: a line per change, under its section."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from litbook.record.compare import SHOWN, Comparison
from litbook.record.compare_values import ValueChange
from litbook.record.model import Record, group_by
from litbook.rules import outcome

WIDE = 60  # characters of an expression in the table
LONG = 30  # characters of a value that still stands in a column


def lines(old: Record, new: Record, names: Sequence[str], comparison: Comparison) -> list[str]:
    """The two environments as far as they differ, under `names`, then a line per change, by section."""
    places: list[tuple[str, ...] | str] = [("", *names)]
    sides: list[dict[str, str]] = []  # where and with what each was made
    for record in (old, new):
        where, device = record.environment, record.environment.device
        more = {"python": where.python, "os": where.os, "cpu": where.cpu, "threads": str(where.threads)}
        more |= {"device": device.name, "driver": device.driver or "-", "cuda": device.cuda or "-"}
        sides.append({**where.versions, **more, "claims": outcome.summary(record), "date": where.date})
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        was, now = (side.get(name, "-") for side in sides)
        if was != now or name == "torch":
            places.append((name, was, now))

    rows: list[tuple[str, ...] | str] = [("line", "what", "was", "is", "by")]
    places_of = group_by(comparison.differences, lambda d: (d.section, d.place.path))
    for (section, path), differences in places_of.items():
        rows += ["", f"{section[:WIDE]}  {path}"]
        for difference in differences:
            what, line = difference.what[:WIDE], str(difference.place.line)
            for change in difference.changes[:SHOWN] or (ValueChange("", "", ""),):
                what_of_it = f"{what}{change.element} {change.aspect}".rstrip()
                if max(len(change.was), len(change.now)) > LONG:
                    rows += [(line, what_of_it), f"        was  {change.was}", f"        is   {change.now}"]
                else:
                    rows.append((line, what_of_it, change.was, change.now, change.by))
            if len(difference.changes) > SHOWN:
                rows.append((line, f"{what}: and {len(difference.changes) - SHOWN} more"))
    return [*_columns(places), "", *(_columns(rows) if comparison.differences else ()), ""]


def _columns(rows: Sequence[tuple[str, ...] | str]) -> list[str]:
    """Rows of cells below each other; what is no row stands as it is."""
    columns = zip_longest(*(row for row in rows if not isinstance(row, str)), fillvalue="")
    widths = [max(map(len, column)) for column in columns]
    return [row if isinstance(row, str) else "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
