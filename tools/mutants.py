"""Whether a lecture's claims can fail: `python tools/mutants.py LECTURE [SECTION …]`.

Every claim is changed a little, in every way that should make it fail, and evaluated where it stands while
the lecture runs once (on the CPU). What holds all the same is a survivor: a defect of the lecture, unless its
source excuses it. `litbook.text.mutants` says what is changed; `litbook.run.trials` how it is tried.

Exit status: 0 every trial passed or excused; 1 a survivor, an idle or unreadable excuse, a claim that fails
or is not steady, or a lecture that raised; 2 the lecture or the command line cannot be used.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from time import perf_counter

from litbook.cli import find_lecture
from litbook.errors import LitbookError
from litbook.render import report, values
from litbook.render.report import harmless
from litbook.run import run, trials
from litbook.run.trials import Outcome
from litbook.text import source
from litbook.text.mutants import Trial

LONG = 10.0  # seconds from which on it is worth saying how long it took


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the claims that are asked for, print what survives; the exit status."""
    parser = argparse.ArgumentParser(
        prog="mutants.py",
        usage="%(prog)s [-h] [--sample N] [--seed S] LECTURE [SECTION ...]",
        description=(__doc__ or "").split("\n\n")[1],
    )
    parser.add_argument(
        "lecture", metavar="LECTURE", nargs="?", help="a name (lecture_01) or the path of any lecture file"
    )
    parser.add_argument("sections", metavar="SECTION", nargs="*", help="try only these sections' claims")
    parser.add_argument("--sample", metavar="N", type=int, help="try N claims, drawn at random")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="of that draw (default: 0)")
    asked = parser.parse_intermixed_args(arguments)
    if asked.lecture is None:  # `nargs="?"`: else argparse would say that SECTION is required, too
        parser.error("the following arguments are required: LECTURE")
    try:
        path = find_lecture(asked.lecture).resolve()
        lecture = run.usable(path, asked.sections)
        claims = _drawn(lecture, asked.sample, asked.seed) if asked.sample is not None else None
        sections = _sections(lecture, claims) if claims is not None else asked.sections
        start = perf_counter()
        found, record = trials.tried(path, sections=tuple(sections), claims=claims)
    except LitbookError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    excuses = trials.unreadable(lecture)
    said = [line for outcome in found for line in _said(lecture, outcome)]
    said = [*report.problems(record), *map(harmless, [*said, *map(str, excuses)])]
    print(*said, sep="\n\n", end="\n\n" if said else "")
    print(_summary(lecture, found, claims, asked.sections))
    if (seconds := perf_counter() - start) > LONG:
        print(f"{seconds:.0f} s", file=sys.stderr)
    wrong = excuses or any(outcome.survivors or outcome.idle or outcome.unsteady for outcome in found)
    return int(bool(wrong) or not report.holds(record))


def _drawn(lecture: source.Lecture, count: int, seed: int) -> set[int]:
    """Some of the claims that run on a CPU, drawn at random."""
    here = [i for i, claim in enumerate(lecture.claims) if not _device(lecture, claim)]
    return set(random.Random(seed).sample(here, min(count, len(here))))


def _sections(lecture: source.Lecture, claims: set[int]) -> list[str]:
    """The sections of these claims; all, where one of them stands in `main`."""
    owners = {lecture.statements[lecture.claims[i].statement].function for i in sorted(claims)}
    if any(lecture.functions[i].kind == "main" for i in owners):
        return []
    return [lecture.section_name(i) for i in sorted(owners)]


def _device(lecture: source.Lecture, claim: source.Assertion) -> str | None:
    """What the section of a claim, or a part above it, requires."""
    function: int | None = lecture.statements[claim.statement].function
    while function is not None:
        if needed := lecture.functions[function].requires:
            return needed
        function = lecture.functions[function].parent
    return None


def _said(lecture: source.Lecture, outcome: Outcome) -> Iterator[str]:
    """What there is to say of one claim: survivors, excused ones, idle excuses."""
    claim = lecture.claims[outcome.claim]
    line, path = lecture.statements[claim.statement].first, lecture.file_of_statement(claim.statement).path
    if outcome.unsteady and outcome.failed:
        return  # the run itself says so, with its values
    if outcome.unsteady:
        yield f"{path}:{line}: the claim itself does not hold when it is tried: {outcome.unsteady}"
    else:
        for trial in outcome.left:
            excuse = outcome.excuse(trial)
            verdict = f"excused: {excuse}" if excuse else "survives"
            place = f"{path}:{trial.line or line}:{trial.column}"
            yield "\n".join([f"{place}: {verdict}: {_changes(trial)}", *_shown(claim, outcome, trial)])
    for change in outcome.idle:
        yield f"{path}:{line}: the excuse for {change!r} excuses nothing: remove it"


def _changes(trial: Trial) -> str:
    return f"{trial.kind} {' and '.join(mutant.change for mutant in trial.mutants)}"


def _shown(claim: source.Assertion, outcome: Outcome, trial: Trial) -> Iterator[str]:
    import ast

    if trial.kind == "annotation":
        yield f"    {claim.text}"
        return
    yield f"    assert {claim.text}"
    yield from (f"    assert {ast.unparse(mutant.test)}" for mutant in trial.mutants)
    yield from (f"      {name} is {values.line(value)}" for name, value in outcome.names.items())


def _summary(
    lecture: source.Lecture, found: list[Outcome], claims: set[int] | None, sections: Sequence[str]
) -> str:
    made = sum(len(trial.mutants) for outcome in found for trial in outcome.trials)
    count = sum(len(outcome.trials) for outcome in found)
    alive = sum(len(outcome.survivors) for outcome in found)
    excused = sum(len(outcome.left) for outcome in found) - alive
    passed = count - alive - excused
    text = f"{_claims(len(found))}, {made} mutants in {count} trials: {passed} passed, "
    text += f"{excused} excused, {alive} survive{'s' * (alive == 1)}"
    device = [claim for claim in lecture.claims if _device(lecture, claim)]
    if device and claims is None and not sections:
        text += f"; {_claims(len(device))} {'needs' if len(device) == 1 else 'need'} another device"
    rest = len(lecture.claims) - len(device) - len(found)
    if rest and claims is None and not sections:
        text += f"; {_claims(rest)} {'was' if rest == 1 else 'were'} not reached"
    return text


def _claims(count: int) -> str:
    return f"{count} claim{'' if count == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main())
