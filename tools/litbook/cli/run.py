"""`litbook run`: a lecture runs in a process of its own; its record is compared, judged and reported."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from litbook.cli.exits import STATUSES
from litbook.cli.output import complain, formula_renderer, harmless, say, say_json
from litbook.cli.parameters import LECTURE, RUN, find_lecture
from litbook.errors import LitbookError
from litbook.files import replace_whole, way_out
from litbook.record import encoding
from litbook.record.device_kinds import needs


@click.command(params=[LECTURE, *RUN], epilog=STATUSES)
def run(lecture: str, config_file: Path | None, **options: Any) -> int:
    """Run a lecture, or some of its sections, and count its claims.

    It prints prose, code and values. LECTURE is a name (lecture_01) or the path of any lecture.
    """
    return run_and_report(find_lecture(lecture, config_file), f"litbook record {lecture}", **options)


def run_and_report(
    path: Path,
    again: str,
    *,
    out: Path | None,
    quiet: bool,
    as_json: bool,
    record: bool = False,
    approve: bool = False,
    told: list[Any] | None = None,
    **how: Any,
) -> int:
    """Run a lecture, compare what it says with its recording, keep it where that is asked for, and say so.

    `how` it runs are options of `process.record_of`; `again` is the command that records it.
    What would be printed as JSON goes to `told`, where there is such a list.
    """
    if out is not None and out.is_dir():
        raise LitbookError(f"--out {out}: this is a folder\n    name a file in it")
    if out is not None and not out.resolve().parent.is_dir():
        raise LitbookError(f"--out {out}: there is no folder {out.parent}\n    create it first")
    from litbook.run import process

    how |= {"words": how["words"] or "", "slow": record or approve or bool(how["sections"])}
    terminal = os.ttyname(0) if sys.stdin is not None and sys.stdin.isatty() else ""
    listener = f"litbook.terminal.transcript:{'quiet' if quiet or as_json else 'loud'}"
    try:
        result = process.record_of(path, **how, terminal=terminal, listener=listener)
    except process.NotFirstRank:  # rank 0 says what comes of it
        return 0
    if not quiet and not as_json and any(needs(section.requires).ranks for section in result.sections):
        from litbook.terminal import ranks, transcript

        ranks.of_ranks(transcript.loud(), result)
    from litbook.record.recordings import Baseline
    from litbook.rules.judge import judge_run
    from litbook.terminal.report import Report

    baseline, kept = Baseline.for_run(path, result), ""
    problems = [baseline.unusable] if baseline.unusable else []  # of the files that are read or written
    if record or approve:
        try:
            kept, problems = baseline.keep(approve=approve), []
        except LitbookError as error:
            problems = [error]
    if out is not None:  # written whole or not at all
        content = encoding.dumps(result).encode()
        try:
            if out.exists() and not out.is_file():  # a pipe, `/dev/stdout`: written to, not replaced
                out.write_bytes(content)
            else:
                replace_whole(out, content)
        except OSError as error:
            why = f"--out {out}: {error.strerror}; nothing was written{way_out(error)}"
            problems.append(LitbookError(why))
    findings = judge_run(path, result, words=how["words"], formula=formula_renderer())
    report = Report(result, baseline, findings, kept, problems, again)
    if as_json and told is not None:
        told.append(report.data())
    elif as_json:
        say_json(report.data())
    else:
        say("\n" * (not quiet) + harmless(report.text(quiet=quiet)))
    for problem in problems:
        complain(str(problem))
    return report.status
