"""`python -m benchmarks`: measure, write the page, fail where a limit is passed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import cases, goals, outside, page

PAGE = outside.REPO / "docs" / "benchmarks.md"
RESULTS = outside.REPO / "benchmarks" / "results.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every limit holds; 1: one is passed; 2: nothing could be measured."""
    asked = _parser().parse_args(arguments)
    try:
        size = replace(cases.QUICK if asked.quick else cases.FULL, edtrace=not asked.alone)
        results = _read(asked.results) if asked.page_only else _measured(size)
    except (outside.NoContestants, RuntimeError, OSError, ValueError) as error:
        print(f"make bench: {error}", file=sys.stderr)
        return 2
    if not (asked.quick or asked.page_only or asked.alone):
        asked.results.write_text(json.dumps(_rounded(results), indent=1) + "\n", encoding="utf-8")
    if not (asked.quick or asked.alone):
        page.write(asked.page, results)
    return report(results)


def report(results: dict[str, Any]) -> int:
    """Print each goal with what was measured, then each limit that is passed."""
    judged = goals.judged(results)
    for it in judged:
        verdict = "BEYOND THE LIMIT" if it.failed else "met" if it.met else "missed"
        measured = (
            f"{it.found.middle:10.3g} {it.goal.unit:2}  goal {it.goal.goal:<6g} limit {it.goal.limit:<6g}"
        )
        print(f"{measured} {verdict:16}  {it.goal.what}")
    failed = [it.failed for it in judged if it.failed]
    for text in failed:
        print(f"make bench: slower than the limit: {text}", file=sys.stderr)
    return 1 if failed else 0


def _measured(size: cases.Size) -> dict[str, Any]:
    start, date, load = perf_counter(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), os.getloadavg()[0]
    results = cases.measured(size, lambda text: print(f"{perf_counter() - start:6.0f} s  {text}", flush=True))
    machine = _machine() | {"load": [load, os.getloadavg()[0]]}
    return {"date": date, "machine": machine, "took": perf_counter() - start, **results}


def _machine() -> dict[str, Any]:
    from litbook.environment import environment

    it = environment(cases.LECTURES["lecture 02"], "cpu", 0)
    known = {"cpu": it.cpu, "cores": it.cores, "memory": it.memory, "os": it.os, "python": it.python}
    return known | {
        "versions": it.versions | {"edtrace": outside.EDTRACE.partition("==")[2]},
        "commit": it.commit,
    }


def _rounded(thing: Any) -> Any:
    """Five digits of each number: more are noise, and make a diff of two results long."""
    if isinstance(thing, float):
        return float(f"{thing:.5g}")
    if isinstance(thing, dict):
        return {name: _rounded(value) for name, value in thing.items()}
    return [_rounded(value) for value in thing] if isinstance(thing, list | tuple) else thing


def _read(results: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="smaller sizes, fewer rounds, for a look: nothing is written")
    add(
        "--alone",
        action="store_true",
        help="without edtrace, where nothing can be installed: nothing is written",
    )
    add("--page-only", action="store_true", help="measure nothing: write the page from the results there are")
    add("--page", type=Path, default=PAGE, help="the page to write into")
    add("--results", type=Path, default=RESULTS, help="where the measurements go, as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
