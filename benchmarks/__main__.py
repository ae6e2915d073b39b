"""`make bench`: measure, write the page, compare with the last results, fail where a limit is passed.

What a stage has found is kept in build/bench at once. `--only` measures a stage again and keeps all else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from benchmarks import contestants, page, stages
from benchmarks.goals import judged
from benchmarks.results import Results, add, dump, load, merge

PAGE = contestants.REPO / "docs" / "benchmarks.md"
RESULTS = contestants.REPO / "benchmarks" / "results.json"
RUN = "this run"  # the group of the stages themselves


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every limit holds; 1: one is passed; 2: something could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look: into build/bench")
    parser.add_argument("--only", default="", metavar="STAGE,…", help=f"of {', '.join(stages.STAGES)}")
    parser.add_argument(
        "--page-only", action="store_true", help="measure nothing: the page of the last results"
    )
    asked = parser.parse_args(arguments)
    kept = contestants.PLACE / ("quick.json" if asked.quick else "full.json")
    wanted = asked.only.split(",") if asked.only else list(stages.STAGES)
    if unknown := [name for name in wanted if name not in stages.STAGES]:
        parser.error(f"no stage named {', '.join(unknown)}; there are: {', '.join(stages.STAGES)}")
    if asked.page_only:
        page.write(PAGE, PAGE, load(RESULTS))
        return 0
    earlier = [file for file in (kept, RESULTS) if file.exists()] if asked.only and not asked.quick else []
    results = load(earlier[0]) if earlier else {}  # a run that was interrupted goes on
    failed = measure(results, wanted, stages.QUICK if asked.quick else stages.Size(), kept)
    if not failed:
        page.write(PAGE, kept.with_suffix(".md") if asked.quick else PAGE, results)
        if not asked.quick:
            compare(kept)
            dump(RESULTS, results)
            kept.unlink()
    return max(report(results), 2 if failed else 0)


def measure(results: Results, wanted: list[str], size: stages.Size, kept: Path) -> list[str]:
    """Measure the stages into `results`; the names of those that failed, which stop no other."""
    failed, began = [], perf_counter()

    def say(text: str) -> None:
        print(f"{perf_counter() - began:6.0f} s  {text}", flush=True)

    for name in wanted:
        say(name)
        it, start, load_before = stages.Measuring(size, say), perf_counter(), os.getloadavg()[0]
        date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        try:
            stages.STAGES[name](it)
        except (contestants.Failed, OSError) as error:
            failed.append(name)
            say(f"FAILED: {error}")
            continue
        for other in [*it.results, f"{RUN} / {name} / seconds"]:
            results.pop(other, None)  # of an earlier run
        merge(results, list(it.results.values()))
        about = {
            **machine(),
            "load": f"{load_before:.1f} / {os.getloadavg()[0]:.1f}",
            "absent": json.dumps(it.absent),
        }
        add(results, f"{RUN} / {name}", {"seconds": perf_counter() - start}, date=date, **about)
        dump(kept, results)
    for name in failed:
        print(f"make bench: {name} was not measured: make bench ARGS=--only={name}", file=sys.stderr)
    return failed


def machine() -> dict[str, str]:
    from litbook.run.environment import environment

    it = environment(stages.LECTURE_02, "cpu", 0)
    about = f"{it.cpu}, {it.cores} cores, {it.memory / 2**30:.0f} GiB, {it.os}, Python {it.python}"
    return {"machine": about, "commit": it.commit or "none"}


def compare(kept: Path) -> None:
    """Print what has changed by 5 % or more since the last results, by pyperf's test of significance."""
    if RESULTS.exists():
        command = [sys.executable, "-m", "pyperf", "compare_to", "--group-by-speed", "--min-speed=5"]
        subprocess.run([*command, str(RESULTS), str(kept)], check=False)


def report(results: Results) -> int:
    """Print each goal with what was measured; 1 where a limit is passed."""
    verdicts = judged(results)
    for goal, found, verdict in verdicts:
        measured = f"{found.middle:10.3g} {goal.unit:2}  goal {goal.goal:<6g} limit {goal.limit:<6g}"
        print(f"{measured} {verdict:16}  {goal.what}")
        if verdict == "beyond the limit":
            print(
                f"make bench: beyond the limit: {goal.what}: {found.middle:.3g} {goal.unit}", file=sys.stderr
            )
    return int(any(verdict == "beyond the limit" for *_, verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
