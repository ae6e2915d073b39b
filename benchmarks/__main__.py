"""`python -m benchmarks`: measure, write the page, fail where a limit is passed.

What a stage has found is kept in build/bench at once. A run that was interrupted goes on with `--resume`; a
stage that fails does not stop the others; `--only` measures a stage again and keeps all else.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import cases, goals, outside, page

PAGE = outside.REPO / "docs" / "benchmarks.md"
RESULTS = outside.REPO / "benchmarks" / "results.json"
KEPT = outside.PLACE / "unfinished.json"
Found = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every limit holds; 1: one is passed; 2: something could not be measured."""
    asked = _parser().parse_args(arguments)
    size = replace(cases.QUICK if asked.quick else cases.FULL, edtrace=not asked.alone)
    whole = not (asked.quick or asked.alone)
    to_results, to_page = (
        asked.results or (RESULTS if whole else None),
        asked.page or (PAGE if whole else None),
    )
    try:
        if asked.page_only:
            results = read(to_results or RESULTS)
        else:
            results, failed = _measured(asked, size, to_results)
            if failed:
                print(_not_measured(failed, whole), file=sys.stderr)
                return 2
            results = rounded(results)  # the page says what the file says
            if to_results is not None:
                _keep(to_results, results)
        if to_page is not None:
            page.write(to_page, results)
    except KeyboardInterrupt:
        print(
            "\nmake bench: interrupted; finished stages are kept: make bench ARGS=--resume", file=sys.stderr
        )
        return 130
    except (outside.NoContestants, OSError, ValueError) as error:
        print(f"make bench: {error}", file=sys.stderr)
        return 2
    if whole and not asked.page_only:
        KEPT.unlink(missing_ok=True)
    return report(results)


def report(results: Found) -> int:
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


# ---------------------------------------------------------------------------- measuring


def _measured(asked: argparse.Namespace, size: cases.Size, to: Path | None) -> tuple[Found, dict[str, str]]:
    """The results, those of earlier stages included; and why stages failed."""
    stages = cases.stages(size)
    names = [stage.name for stage in stages]
    wanted = [name for given in asked.only for name in given.split(",")] or names
    if unknown := [name for name in wanted if name not in names]:
        raise ValueError(f"no stage named {', '.join(unknown)}; there are: {', '.join(names)}")
    kept = KEPT.with_name("quick.json") if asked.quick else KEPT
    results = _begin(asked, to, kept)
    if asked.resume:
        wanted = [name for name in wanted if name not in results["stages"]]
    if size.edtrace and wanted:
        outside.python()  # made now, so that no stage's time has it
    start, failed = perf_counter(), dict[str, str]()

    def say(text: str) -> None:
        print(f"{perf_counter() - start:6.0f} s  {text}", flush=True)

    for stage in stages:
        if stage.name in wanted:
            say(f"{stage.name}: {stage.what}")
            try:
                part, told = _one(stage, lambda text: say(f"    {text}"))
            except (outside.TooLong, RuntimeError, OSError, LookupError, ValueError) as error:
                failed[stage.name] = str(error).partition("\n")[0]
                say(f"    FAILED: {error}")
                continue
            cases.merged(results, part | {"stages": {stage.name: told}})
            _keep(kept, results)
            say(f"    took {told['took']:.0f} s")
    missing = {name: "not measured yet" for name in names if name not in results["stages"]}
    say("done")
    return _in_order(results, names), missing | failed if not asked.quick else failed


def _one(stage: cases.Stage, say: Callable[[str], object]) -> tuple[Found, Found]:
    """What the stage finds; and when, at which load, in which time."""
    date, load, start = _now(), os.getloadavg()[0], perf_counter()
    part = stage.measure(say)
    took = perf_counter() - start
    told = {"date": date, "took": took, "load": [load, os.getloadavg()[0]], "commit": _machine()["commit"]}
    return part, told


def _begin(asked: argparse.Namespace, to: Path | None, kept: Path) -> Found:
    """What is there already, if it is asked for; it must be of this machine."""
    machine = _machine()
    places = [kept] if asked.resume else [kept, *([to] if to else [])] if asked.only else []
    for place in places:
        if place.exists():
            results = read(place)
            if any(results["machine"][name] != machine[name] for name in ("cpu", "cores", "versions")):
                raise ValueError(
                    f"{place} is of another machine or of other versions: measure all stages here"
                )
            return results
    return {"date": _now(), "machine": machine, "stages": {}}


def _not_measured(failed: dict[str, str], whole: bool) -> str:
    lines = [f"make bench: {name} was not measured: {why}" for name, why in failed.items()]
    if whole:
        lines.append(f"    what was measured is kept: make bench ARGS=--only={','.join(failed)}")
    return "\n".join(lines)


def _in_order(results: Found, names: list[str]) -> Found:
    """The stages as a whole run has them, also when one was measured later."""
    told = results["stages"]
    return results | {"stages": {name: told[name] for name in names if name in told}}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _machine() -> Found:
    from litbook.run.environment import environment

    it = environment(cases.LECTURES["lecture 02"], "cpu", 0)
    known = {"cpu": it.cpu, "cores": it.cores, "memory": it.memory, "os": it.os, "python": it.python}
    versions = it.versions | {
        "edtrace": outside.EDTRACE.partition("==")[2],
        "nbconvert": _version("nbconvert"),
    }
    return known | {"versions": versions, "commit": it.commit}


def _version(name: str) -> str:
    from importlib.metadata import version

    return version(name)


# ---------------------------------------------------------------------------- files


def read(results: Path) -> Found:
    found: Found = json.loads(results.read_text(encoding="utf-8"))
    return found


def _keep(file: Path, results: Found) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rounded(results), indent=1) + "\n", encoding="utf-8")


def rounded(thing: Any) -> Any:
    """Five digits of each number: more are noise, and make a diff of two results long."""
    if isinstance(thing, float):
        return float(f"{thing:.5g}")
    if isinstance(thing, dict):
        return {name: rounded(value) for name, value in thing.items()}
    return [rounded(value) for value in thing] if isinstance(thing, list | tuple) else thing


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="smaller sizes, fewer rounds, for a look: nothing is written")
    add(
        "--only",
        action="append",
        default=[],
        metavar="STAGE",
        help="measure only this stage, or A,B; keep the rest",
    )
    add("--resume", action="store_true", help="measure the stages that an interrupted run has left")
    add(
        "--alone",
        action="store_true",
        help="without edtrace, where nothing can be installed: nothing is written",
    )
    add("--page-only", action="store_true", help="measure nothing: write the page from the results there are")
    add("--page", type=Path, help=f"the page to write into (docs/{PAGE.name})")
    add("--results", type=Path, help=f"where the measurements go, as JSON (benchmarks/{RESULTS.name})")
    return parser


if __name__ == "__main__":
    sys.exit(main())
