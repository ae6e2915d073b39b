"""What came of changes of a lecture's claims, or of its code: findings, and notes that count.

Each runs in a process of its own, which the rule starts; what it returns is data.
"""

from __future__ import annotations

import random
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from litbook.finding import Finding, Place
from litbook.lecture import parse
from litbook.lecture.model import Lecture
from litbook.mutants import changes, noticed, order, trials
from litbook.record.device_kinds import needs
from litbook.rules import run
from litbook.rules.subject import TrialOptions
from litbook.run.mailbox import Mailbox
from litbook.values import formatting

_APART = "make what both need in a helper that each calls, or put it back where it is changed"
_TOLD = 3  # differences of a section
SECONDS = 280.0  # for a lecture's code: within five minutes, with what it takes to start and end


def of_claims(owner: Mailbox, path: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """The changes of claims that hold all the same: each claim is changed a little, where it stands.

    The lecture runs once, on the CPU. What survives is a defect of the lecture, unless its source excuses it.
    """
    asked = TrialOptions(**wanted)
    lecture = parse.read_usable(Path(path), asked.sections)
    sections, claims = tuple(asked.sections), None
    if asked.sample is not None:
        # Of the claims that run on a CPU, drawn at random, and the sections that they stand in; all sections
        # where one stands in `main`.
        here = [i for i in range(len(lecture.claims)) if not _device(lecture, i)]
        claims = set(random.Random(asked.seed).sample(here, min(asked.sample, len(here))))
        owners = {lecture.statements[lecture.claims[i].statement].function for i in claims}
        in_main = any(lecture.functions[i].kind == "main" for i in owners)
        sections = () if in_main else tuple(lecture.section_name(i) for i in sorted(owners))
    outcomes, record = trials.try_claims(Path(path), sections=sections, claims=claims, owner=owner)
    outcomes, record = trials.try_on_ranks(Path(path), claims, outcomes, record)
    found, notes = [*run.failures(record)], list[str]()
    for outcome in outcomes:  # survivors, excused ones, idle excuses
        claim = lecture.claims[outcome.claim]
        file = lecture.file_of_statement(claim.statement).path
        line = lecture.statements[claim.statement].first
        if outcome.unsteady and outcome.failed:
            continue  # the run itself says so, with its values
        if outcome.unsteady:
            what = f"the claim itself does not hold when it is tried: {outcome.unsteady}"
            function = lecture.functions[lecture.statements[claim.statement].function]
            alone = "it is tried on each rank alone: what talks to others stands above the assert"
            way_out = alone if needs(function.requires).ranks else ""
            found.append(Finding("mutant", what, Place(file, line, 0), way_out))
        for trial in [] if outcome.unsteady else outcome.unfailed_trials:
            excuse = outcome.excuse(trial)
            fate = f"excused: {excuse}" if excuse else "survives"
            change = " and ".join(mutant.change for mutant in trial.mutants)
            place = Place(file, trial.line or line, trial.column)
            details = [claim.text]
            if trial.kind != "annotation":  # the claim, what it was changed into, and what its names were
                tests = claim.text, *(mutant.text for mutant in trial.mutants)
                details = [f"assert {test}" for test in tests]
                names = outcome.names.items()
                details += [f"  {name} is {formatting.line(value)}" for name, value in names]
            way_out = f"claim more closely, or say on its line why it may: # @allow mutant: {change}: WHY"
            what, way_out = f"{fate}: {trial.kind} {change}", "" if excuse else way_out
            finding = Finding("mutant", what, place, way_out, details=tuple(details))
            if excuse:
                notes.append(str(finding))
            else:
                found.append(finding)
        idle = (f"the excuse for {change!r} excuses nothing: remove it" for change in outcome.unused_excuses)
        found += [Finding("mutant", what, Place(file, line, 0)) for what in idle]

    # `12 claims, 40 mutants in 31 trials: 30 passed, …`; where not only some were tried, what was left.
    made = sum(len(trial.mutants) for outcome in outcomes for trial in outcome.trials)
    count = sum(len(outcome.trials) for outcome in outcomes)
    alive = sum(len(outcome.survivors) for outcome in outcomes)
    excused = sum(len(outcome.unfailed_trials) for outcome in outcomes) - alive
    passed = count - alive - excused
    text = f"{len(outcomes)} claim{'s' * (len(outcomes) != 1)}, {made} mutants in {count} trials: "
    text += f"{passed} passed, {excused} excused, {alive} survive{'s' * (alive == 1)}"
    elsewhere = sum(bool(_device(lecture, i)) for i in range(len(lecture.claims)))
    rest = len(lecture.claims) - elsewhere - len(outcomes)
    if claims is None and not asked.sections:
        text += f"; {elsewhere} claim{'s' * (elsewhere != 1)} not run here" if elsewhere else ""
        text += f"; {rest} claim{' was' if rest == 1 else 's were'} not reached" if rest else ""

    return _answer("mutant", [*found, *trials.find_bad_excuses(lecture)], [*notes, text])


def _answer(code: str, found: list[Finding], notes: list[str]) -> dict[str, Any]:
    """Findings and notes as another process reads them; what the run itself says is under the same code."""
    return {"findings": [asdict(replace(finding, code=code)) for finding in found], "notes": notes}


def _device(lecture: Lecture, number: int) -> str | None:
    """The device, or the time, that the section of a claim requires."""
    function = lecture.statements[lecture.claims[number].statement].function
    need = needs(lecture.functions[function].requires)
    return None if need.is_plain else need.device


def of_code(owner: Mailbox, path: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """The changes of a section's code that none of its claims notices, and how many do, by section.

    Wrong is what neither claim nor value notices and the text does not excuse; where a least share is wanted,
    that claims notice fewer of those that it does not excuse. Wrong is also an excuse that excuses nothing.
    """
    asked, start = TrialOptions(**wanted), time.monotonic()
    lecture = parse.read_usable(Path(path), asked.sections)
    seconds, which = None if asked.everything or asked.sample else SECONDS, tuple(asked.sections)
    sections, record = noticed.try_changes(
        Path(path), sections=which, seconds=seconds, seed=asked.seed, sample=asked.sample, owner=owner
    )
    found, notes, shares = [*run.failures(record)], list[str](), list[str]()
    for section in sections:
        several = ((section.unnoticed, "nothing"), (section.unclaimed, "no claim, only a value shown"))
        for what, change in ((what, change) for unclaimed, what in several for change in unclaimed):
            file = lecture.file_of_statement(change.statement)
            code = file.lines[change.line - 1].strip()
            unheard = f"{what} in {section.section} notices"
            fate = f"excused: {change.excuse.reason}" if change.excuse else unheard
            place = Place(file.path, change.line, change.column)
            finding = Finding("unnoticed", f"{fate}: {change.change}", place, details=(code,))
            # Where a least share is wanted, what counts is the share; what a value notices is no fault.
            if change.excuse or asked.least is not None or change not in section.unnoticed:
                notes.append(str(finding))
            else:
                found.append(finding)
        every = asked.sample is None and section.count + len(section.same) == section.made
        for excuse in section.unused_excuses if every else ():  # where all was tried
            what = f"the excuse for {excuse.name!r} excuses nothing: remove it"
            found.append(Finding("unnoticed", what, replace(excuse.place, column=0, text="")))
        if section.count:
            share = f"{len(section.noticed) / section.count:7.1%}  {len(section.noticed)} of {section.count}"
            shares.append(f"{share}  {section.section}")
    count, made = sum(s.count for s in sections), sum(s.made for s in sections)
    silent, claimed = sum(len(s.unnoticed) for s in sections), sum(len(s.noticed) for s in sections)
    excused, unreadable = [c for s in sections for c in s.excused_changes], changes.find_bad_excuses(lecture)
    judged = count - len(excused)
    text = f"{count:,} of {made:,} changes in {len(sections)} section{'s' * (len(sections) != 1)} tried"
    text += f" in {time.monotonic() - start:,.0f} s: {claimed:,} noticed by a claim"
    if count:
        rest = f"; {claimed / max(1, judged):.1%} without {len(excused)} that the text excuses"
        text += f" ({claimed / count:.1%}{rest * bool(excused and judged)})"
    text += f", {count - silent - claimed:,} by a value alone, {silent:,} by nothing"
    if same := sum(len(s.same) for s in sections):
        text += f"; not counted: {same} that come{'s' * (same == 1)} to the very same"
    if once := sum(not s.again for s in sections):
        text += f"; {once} section{'s' * (once != 1)} cannot be run again"
    if asked.least is not None and claimed < asked.least / 100 * judged:
        what = f"claims notice {claimed / max(1, judged):.1%} of the changes, {asked.least:g} % are wanted"
        found.append(Finding("unnoticed", what))
    if len(shares) > 1:
        notes.append("Noticed by a claim, by section:\n" + "\n".join(shares))
    return _answer("unnoticed", [*found, *unreadable], [*notes, text])


def of_order(owner: Mailbox, path: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """The sections that show something else when they run alone, each with what differs there."""
    asked = TrialOptions(**wanted)
    lecture = parse.read_usable(Path(path), asked.sections)
    found = list[Finding]()
    for name, differing in order.find_dependent(Path(path), asked.sections, owner).items():
        spec = lecture.functions[lecture.section(name)]
        place = lecture.files[spec.file].place(spec.first)
        what = f"{name} shows something else when it runs alone: a section before it changes what it reads"
        found.append(Finding("order-dependent", what, place, _APART, details=tuple(differing[:_TOLD])))
    return _answer("order-dependent", found, [])
