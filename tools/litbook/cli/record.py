"""`litbook record`: the runs of lectures are kept as recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from litbook.cli.exits import STATUSES
from litbook.cli.output import say_json
from litbook.cli.parameters import ANY_LECTURE, RUN, find_book, find_lecture
from litbook.cli.run import run_and_report


@click.command(params=[ANY_LECTURE, *RUN], epilog=STATUSES)
@click.option("--approve", is_flag=True, help="Also where values differ from the recording there is.")
def record(lecture: str | None, config_file: Path | None, **options: Any) -> int:
    """Keep the run as the recording of this kind of device.

    Of all lectures without LECTURE; the first that is not recorded is the last that runs.
    """
    options |= {"record": True, "quiet": True}
    told = None if lecture or not options["as_json"] else list[Any]()  # of all lectures one JSON value
    status = 0
    for name in [lecture] if lecture else find_book(config_file).require_names():
        path = find_lecture(name, config_file)
        if status := run_and_report(path, f"litbook record {name}", told=told, **options):
            break
    if told is not None:
        say_json(told)
    return status
