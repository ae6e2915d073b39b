"""`litbook check` and `litbook rule`: all rules over one lecture or all, and what each rule is about.

Findings are printed as text, as one JSON value, or as annotations of a pull request on GitHub.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from litbook import plugins
from litbook.cli import completion
from litbook.cli.program import _lecture, _say, harmless
from litbook.errors import LitbookError, UnusableLecture
from litbook.finding import Finding
from litbook.project import Project, name_of
from litbook.rules import outcome
from litbook.rules.judge import Findings, judge, rules_of
from litbook.rules.registry import Explanation, Rule, Severity, all_rules, find_rule, severities
from litbook.rules.subject import Subject, TrialOptions
from litbook.run import process

FORMATS = ("text", "json", "github")


def command(words: Sequence[str]) -> int:
    """Check a lecture, or all of the book; 1 where something is wrong, 2 where one cannot be used."""
    plugins.bring_in("mutants")
    parser = completion.Parser(
        prog="litbook check",
        description="Look for all that a strict build refuses of a lecture; --select asks for more.",
        epilog="exit status: 0 nothing is found; 1 something is; 2 a lecture or an option cannot be used",
    )
    add = parser.add_argument
    add(
        "lecture", metavar="LECTURE", nargs="?", help="a name (lecture_01) or a path (default: every lecture)"
    )
    add("sections", metavar="SECTION", nargs="*", help="with mutant, unnoticed: only what stands in these")
    codes = "the code of a rule, several with commas; `litbook rule` lists them"
    add("--select", metavar="CODE", action="append", default=[], help=f"only these rules: {codes}")
    add("--ignore", metavar="CODE", action="append", default=[], help=f"all but these: {codes}")
    add("--format", choices=FORMATS, default="text", help="how findings are printed (default: text)")
    add("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    add(
        "--sample",
        metavar="N",
        type=int,
        help="try only N changes of claims, or of the code, drawn at random",
    )
    add("--seed", metavar="S", type=int, default=0, help="of the draw (default: 0)")
    add("--all", action="store_true", help="try every change of the code, not what five minutes allow")
    least = "find fault where claims notice less than P percent of the code's changes"
    add("--least", metavar="P", type=float, help=f"{least} (default: where nothing notices one)")
    asked = parser.parse_intermixed_args(words)
    select, ignore = (
        [code for text in several for code in text.split(",")] for several in (asked.select, asked.ignore)
    )
    rules = rules_of(select, ignore)
    whole = [rule.code for rule in rules if rule.reads != "trials"]
    if asked.sections and whole:
        raise LitbookError(
            f"{whole[0]} is asked of a whole lecture, not of {' '.join(asked.sections)} alone\n"
            "    leave the sections out; --select mutant and --select unnoticed take some"
        )
    trials = TrialOptions(asked.sections, asked.sample, asked.seed, asked.all, asked.least)
    results, status = list[dict[str, Any]](), 0
    if asked.lecture is None:
        project = Project.find(Path.cwd())
        levels, _ = severities(project.options)
        book = Subject(project.folder, book=project)
        of_book = [rule for rule in all_rules().values() if rule.reads == "book" and rule.code not in ignore]
        findings = judge(book, levels, rules=[rule for rule in of_book if not select or rule.code in select])
        status = _tell("", findings, [], asked.format, results)
        paths = project.lectures()
    else:
        paths = [_lecture(asked.lecture)]
    for path in paths:
        status = max(status, _check(path.resolve(), rules, bool(select), trials, asked.format, results))
    if asked.format == "json":
        _say(json.dumps(results, ensure_ascii=False))
    return status


def _check(
    path: Path,
    rules: Collection[Rule],
    selected: bool,
    trials: TrialOptions,
    form: str,
    results: list[dict[str, Any]],
) -> int:
    """Judge one lecture and say what was found."""
    from litbook.rules.judge import mathml

    subject = Subject(path, run=lambda: process.record_of(path), formula=mathml, trials=trials)
    subject.words = Project.words_around(path) or None
    levels, _ = severities(subject.project.options)
    if subject.refusals:
        wanted = {rule.code for rule in rules}
        found = [finding for finding in subject.refusals if finding.code in wanted or not selected]
        _tell(name_of(path), Findings(found), ["it cannot run as it stands"], form, results, status=2)
        return 2
    try:
        findings = judge(subject, levels, rules=rules, selected=selected)
    except UnusableLecture as error:  # while it ran
        _tell(
            name_of(path), Findings(error.findings), ["it cannot run as it stands"], form, results, status=2
        )
        return 2
    if "runs" in subject.__dict__:
        subject.notes.append(f"this run: {outcome.summary(subject.record)}")
    return _tell(name_of(path), findings, subject.notes, form, results)


def _tell(
    name: str,
    findings: Findings,
    notes: Sequence[str],
    form: str,
    results: list[dict[str, Any]],
    status: int | None = None,
) -> int:
    """Print findings in the form that was asked for, or keep them for the one JSON value."""
    status = int(bool(findings.errors)) if status is None else status
    told: list[tuple[Severity, Finding]] = [("error", finding) for finding in findings.errors]
    told += [("warn", finding) for finding in findings.warnings]
    if form == "json":
        rows = [{**finding.as_data(), "severity": severity} for severity, finding in told]
        if name or rows:
            results.append({"lecture": name, "findings": rows, "notes": [*notes], "status": status})
        return status
    if form == "github":
        for severity, finding in told:
            _say(harmless(finding.as_annotation(severity)))
        return status
    counted = ", ".join(f"{count} {code}" for code, count in findings.counts().items())
    several = f"{len(told)} finding{'' if len(told) == 1 else 's'}: {counted}" if told else "nothing is found"
    lines = [finding.text(coded=True) for _, finding in told]
    if name or told:
        summary = "; ".join(filter(None, [f"{name}: {several}" if name else several, *notes[-1:]]))
        _say("\n\n".join(map(harmless, [*lines, *notes[:-1], summary])))
    return status


def explain(words: Sequence[str]) -> int:
    """Say what a rule finds, why that is wrong, an example and the way out; without a code, list all."""
    plugins.bring_in("mutants")
    parser = completion.Parser(prog="litbook rule", description="Explain a rule; without a code, list all.")
    parser.add_argument("code", metavar="CODE", nargs="?", help="of a rule")
    code = parser.parse_args(words).code
    if code is None:
        rules = list(all_rules().values())
        width = max(len(rule.code) for rule in rules)
        for rule in rules:
            _say(f"{rule.code:{width}}  {rule.severity:5}  {rule.about}")
        return 0
    rule = find_rule(code)
    told: Explanation = rule.explanation
    fixed = ", which no severity changes" if rule.refuses else ""
    parts = [f"{rule.code} ({rule.severity}{fixed})", told.what, told.why and f"Why: {told.why}"]
    for title, text in (("Example", told.example), ("Later", told.then)):
        if text:
            parts.append(f"{title}:\n" + "\n".join(f"    {line}".rstrip() for line in text.split("\n")))
    parts.append(told.way_out and f"Way out: {told.way_out}")
    _say("\n\n".join(filter(None, parts)))
    return 0
