"""The one loop over the rules: `run`, `check`, `serve` and `build` judge a lecture here, in the same words.

In goes a subject, out come findings, errors and warnings apart. It prints nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from litbook.errors import NotFound
from litbook.finding import Finding
from litbook.lecture.model import Allowance
from litbook.record.model import Record
from litbook.rules.recorded import read_runs
from litbook.rules.registry import DRAWN, Rule, Severity, all_rules, find, find_rule, severities
from litbook.rules.subject import Subject

OF_RECORDINGS: tuple[str, ...] = ("older", "differs", "unreadable-recording")
FAILURES = ("claim-fails", "raised")
UNUSED, UNKNOWN = "unused-allow", "unknown-allow"

UNASKED = ("unbacked", "forgotten-f")  # where other tools' words are named, unless the book says otherwise


@dataclass
class Findings:
    """What is wrong with a lecture, and what is only worth a word."""

    errors: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)

    def add(self, severity: Severity, findings: Iterable[Finding]) -> None:
        """Keep findings of that severity, each once."""
        into = self.errors if severity == "error" else self.warnings
        into += (finding for finding in dict.fromkeys(findings) if finding not in into)


def rules_of(
    select: Collection[str] = (), ignore: Collection[str] = (), *, trials: bool = False
) -> list[Rule]:
    """The rules that are chosen by code; where nothing is selected all of a lecture, and with `trials` those.

    Raises `NotFound` for a code that is none, with the nearest.
    """
    for code in (*select, *ignore):
        find_rule(code)
    every = all_rules().values()
    if select:  # what is wrong with the run itself is told by whoever reads one
        reads_run = any(find_rule(code).reads == "run" for code in select)
        wanted = {*select, *(FAILURES if reads_run else ())}
        return [rule for rule in every if rule.code in wanted and rule.code not in ignore]
    left_out = {"book"} if trials else {"book", "trials"}
    quick = (rule for rule in every if rule.reads not in left_out and rule.code not in ignore)
    return [rule for rule in quick if not (rule.reads == "trials" and rule.severity == "off")]


def judge(
    subject: Subject,
    severity: Mapping[str, Severity] = {},
    *,
    rules: Collection[Rule] | None = None,
    selected: bool = False,
    drawn: Iterable[Finding] = (),
) -> Findings:
    """All that the rules find of a subject, in their order, but for what the text allows.

    `severity` is what the book chooses; where the rules were `selected` by hand none is off. `drawn` is what
    drawing its pages has found. An `@allow` that excuses nothing is a finding itself.
    """
    findings, rules = Findings(), rules_of() if rules is None else rules
    drawn, ran, used = [one for one in drawn if one.code in DRAWN], set[str](), set[Allowance]()
    # Rules that one function serves are judged together, so that what they find keeps its order.
    for _, group in itertools.groupby(rules, key=attrgetter("find")):
        several = [*group]
        levels = {
            rule.code: level for rule in several if (level := _level(rule, severity, selected, subject))
        }
        ran |= levels.keys()
        mine = find(several[0], subject) if levels else []
        found = [one for one in (*drawn, *mine) if one.code in levels]
        allowances = _allowances(subject) if found else []
        for finding in found:
            if all_rules()[finding.code].reads == "text" and not subject.was_asked(finding):
                continue  # a run of some sections says nothing of the text of others
            excuse = next((allowed for allowed in allowances if allowed.excuses(finding)), None)
            if excuse is None:
                findings.add(levels[finding.code], [finding])
            else:
                used.add(excuse)
    if UNUSED in ran or UNKNOWN in ran:
        _judge_allowances(subject, findings, ran, used, severity)
    return findings


def judge_run(
    path: Path, record: Record, *, words: str = "", formula: Callable[[str, str], object] | None = None
) -> Findings:
    """What a build refuses of the lecture at `path`, of which this is the record, in the same words.

    But for its recording, with which a run compares itself. In another tool's `words` numbers need no backing
    unless the book says otherwise.
    """
    edition, _ = read_runs(path, record)
    subject = Subject(path, edition=edition, words=words or None, formula=formula)
    levels, _ = severities(subject.project.options)
    unasked = UNASKED if words else ()
    return judge(subject, {**dict.fromkeys(unasked, "off"), **levels, **dict.fromkeys(OF_RECORDINGS, "off")})


def _level(rule: Rule, severity: Mapping[str, Severity], selected: bool, subject: Subject) -> Severity | None:
    """How severe what a rule finds is here; None where it is not asked."""
    level = severity.get(rule.code, rule.severity)
    if level == "off":
        if not selected:
            return None
        level = "error" if rule.reads == "trials" or rule.severity == "error" else "warn"
    return "warn" if rule.lenient and level == "error" and subject.foreign else level


def _allowances(subject: Subject) -> list[Allowance]:
    return [] if subject.refusals else subject.lecture.allowances


def _judge_allowances(
    subject: Subject,
    findings: Findings,
    ran: Collection[str],
    used: Collection[Allowance],
    severity: Mapping[str, Severity],
) -> None:
    """Excuses with a code that is none, and those that excuse nothing that was looked for."""
    for allowed in _allowances(subject):
        if allowed.code not in all_rules():
            error = NotFound("rule", allowed.code, list(all_rules()))
            what, _, way_out = str(error).partition("\n    ")
            finding = Finding(UNKNOWN, f"@allow: {what}", allowed.place, way_out)
        elif allowed.general and allowed.code in ran and allowed not in used:
            what = f"this @allow {allowed.code} excuses nothing"
            finding = Finding(UNUSED, what, allowed.place, "take it away")
        else:
            continue
        level = severity.get(finding.code, all_rules()[finding.code].severity)
        if finding.code in ran and level != "off" and subject.was_asked(finding):
            findings.add(level, [finding])
