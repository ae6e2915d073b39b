"""`litbook compare`: one table of what differs between two records, section by section."""

from __future__ import annotations

from pathlib import Path

import click

from litbook.cli.output import harmless, say, say_json
from litbook.cli.parameters import FILE, JSON
from litbook.record import encoding


@click.command(params=[click.Argument(["old"], type=FILE), click.Argument(["new"], type=FILE), JSON])
def compare(old: Path, new: Path, *, as_json: bool) -> int:
    """List what differs between two files written with --out.

    exit status: 0 nothing differs; 1 something does; 2 a file cannot be used
    """
    return compare_files(old, new, as_json=as_json)


def compare_files(old: Path, new: Path, *, as_json: bool) -> int:
    """Print what differs between two records. Returns the exit status."""
    from litbook.record.compare import compare as compare_records
    from litbook.terminal import differences
    from litbook.values.formatting import many

    was, now = encoding.read(old), encoding.read(new)
    result = compare_records(now, was)
    count, status = len(result.differences), int(bool(result.differences))
    if as_json:
        rows = [difference.finding().as_data() for difference in result.differences]
        say_json(
            {"differences": rows, "values": result.values, "claims": result.claims, "exit_status": status}
        )
    else:
        say(harmless("\n".join(differences.lines(was, now, [str(old), str(new)], result))))
        compared = f"{many(result.values, 'value')} and {many(result.claims, 'claim')} were compared"
        say(f"{many(count, 'difference') if count else 'no difference'}; {compared}")
    return status
