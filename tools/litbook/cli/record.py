"""`litbook record`: the runs of lectures are kept as recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from litbook.cli.exits import STATUSES
from litbook.cli.parameters import ANY_LECTURE, RUN, find_lecture
from litbook.cli.run import run_and_report
from litbook.project import Project


@click.command(params=[ANY_LECTURE, *RUN], epilog=STATUSES)
@click.option("--approve", is_flag=True, help="Also where values differ from the recording there is.")
def record(lecture: str | None, **options: Any) -> int:
    """Keep the run as the recording of this kind of device.

    Of all lectures without LECTURE; the first that is not recorded is the last that runs.
    """
    options |= {"record": True, "quiet": True}
    for name in [lecture] if lecture else Project.find(Path.cwd()).require_names():
        if status := run_and_report(find_lecture(name), f"litbook record {name}", **options):
            return status
    return 0
