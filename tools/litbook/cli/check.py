"""`litbook check`: all rules over one lecture or all of a book; findings as text, JSON or annotations.

Of several lectures each is judged in turn; what is found is printed at once, JSON as one value at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from litbook import plugins
from litbook.cli.output import complain, formula_renderer, harmless, say, say_json
from litbook.cli.parameters import ANY_LECTURE, CONFIG_FILE, FOREIGN, SECTIONS, find_book, find_lecture
from litbook.errors import LitbookError, UnusableLecture
from litbook.finding import Finding
from litbook.project import Project, name_of

INTERRUPTED = 130  # the exit status of Ctrl-C
CODES = "by code, several with commas; `litbook rule` lists them."


@click.command(params=[ANY_LECTURE, SECTIONS, CONFIG_FILE])
@click.option("--select", metavar="CODE", multiple=True, help=f"Only these rules, {CODES}")
@click.option("--ignore", metavar="CODE", multiple=True, help=f"All but these rules, {CODES}")
@click.option(
    "--text", "only_text", is_flag=True, help="Only rules that read a lecture's text: nothing runs."
)
@click.option("--format", "form", type=click.Choice(["text", "json", "github"]), default="text",
              show_default=True, help="How findings are printed.")  # fmt: skip
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@click.option("--words", type=FOREIGN, help="Whose words it is written in (default: as its book says).")
@click.option("--sample", metavar="N", type=int, help="Change only N claims or places, drawn at random.")
@click.option("--seed", metavar="S", default=0, show_default=True, help="Of the draw.")
@click.option("--all", "everything", is_flag=True, help="Try every change of the code, not for five minutes.")
@click.option("--least", metavar="P", type=float, help="Find fault where claims notice less than P percent.")
def check(
    lecture: str | None,
    sections: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
    only_text: bool,
    form: str,
    words: str | None,
    config_file: Path | None,
    **options: Any,
) -> int:
    """Look for all that a strict build refuses, and with --select for more.

    Of every lecture without LECTURE. SECTION is for the rules that make trials, `mutant` and `unnoticed`:
    only what is in these. exit status: 0 nothing is found; 1 something is; 2 something cannot be used
    """
    from litbook.rules.judge import rules_of
    from litbook.rules.registry import all_rules

    chosen, left_out = (
        [code for text in several for code in text.split(",")] for several in (select, ignore)
    )
    if "mutant" not in all_rules():  # the package that registers it is not here
        missing = plugins.Missing("mutants")
        if sections or {"mutant", "unnoticed"}.intersection(chosen):
            raise missing
        if not chosen:
            complain(str(missing))
    if only_text and chosen:
        raise LitbookError("--text chooses the rules itself\n    leave out --select, or --text")
    rules = rules_of(chosen, left_out, trials=True)
    rules = [rule for rule in rules if rule.reads == "text" or not only_text]
    if sections and not chosen:
        rules = [rule for rule in rules if rule.reads == "trials"]
    whole = [rule.code for rule in rules if rule.reads != "trials"]
    whole = [code for code in whole if code in chosen] or whole
    if sections and whole:
        raise LitbookError(
            f"{whole[0]} is asked of a whole lecture, not of {' '.join(sections)} alone\n"
            "    leave the sections out; --select mutant and --select unnoticed take some"
        )
    report = _CheckReport(form)
    if lecture is not None:
        paths = [find_lecture(lecture, config_file)]
    else:
        project = find_book(config_file)
        project.require_names()  # raises where there is none
        paths = project.lectures()
        if not chosen or "overlooked" in chosen:
            report.tell("", [("error", finding) for finding in project.overlooked_files()], [])
    rules = [rule for rule in rules if rule.reads != "book"]
    for path in paths:
        try:
            _check(
                path.resolve(), rules, bool(chosen), {"sections": sections, **options}, report, words or ""
            )
        except LitbookError as error:  # of several lectures the others are judged all the same
            if lecture is not None or error.exit_status == INTERRUPTED:
                raise
            told = [("error", Finding(error.slug, str(error)))]
            report.tell(name_of(path), told, ["no verdict"], status=error.exit_status)
    if form == "json":
        say_json(report.results)
    return report.status


class _CheckReport:
    """What is printed, in one of three forms, and what all of it comes to."""

    def __init__(self, form: str) -> None:
        self.form, self.status, self.results = form, 0, list[dict[str, Any]]()

    def tell(
        self, name: str, told: Sequence[tuple[str, Finding]], notes: Sequence[str], status: int | None = None
    ) -> None:
        """Print the findings of a lecture with their severities, or keep them for the one JSON value."""
        if status is None:
            status = int(any(severity == "error" for severity, _ in told))
        self.status = max(self.status, status)
        if self.form == "json":
            rows = [{**finding.as_data(), "severity": severity} for severity, finding in told]
            if name or rows:
                row = {"lecture": name, "findings": rows, "notes": [*notes], "exit_status": status}
                self.results.append(row)
        elif self.form == "github":
            for severity, finding in told:
                say(harmless(finding.as_annotation(severity)))
        elif name or told:
            codes = [finding.code for _, finding in told]
            counted = ", ".join(f"{codes.count(code)} {code}" for code in dict.fromkeys(codes))
            several = f"{len(told)} finding{'' if len(told) == 1 else 's'}: {counted}" if told else "nothing"
            summary = "; ".join([f"{name}: {several}" if name else several, *notes[-1:]])
            lines = [finding.text(coded=True) for _, finding in told]
            say("\n\n".join(map(harmless, [*lines, *notes[:-1], summary])))


def _check(
    path: Path,
    rules: Collection[Any],
    selected: bool,
    trials: dict[str, Any],
    report: _CheckReport,
    words: str,
) -> None:
    """Judge one lecture; where `words` of another tool are named, as `litbook run --words` does."""
    from litbook.rules import outcome
    from litbook.rules.judge import UNASKED, judge
    from litbook.rules.registry import severities
    from litbook.rules.subject import Subject, TrialOptions
    from litbook.run import process

    name = name_of(path)
    subject = Subject(
        path,
        run=lambda: process.record_of(path, words=words),
        words=words or Project.words_around(path) or None,
        formula=formula_renderer(),
        trials=TrialOptions(**trials),
    )
    levels, _ = severities(subject.project.options)
    levels = {**dict.fromkeys(UNASKED if words else (), "off"), **levels}
    try:
        if subject.refusals:
            raise UnusableLecture(subject.refusals)
        findings = judge(subject, levels, rules=rules, selected=selected)
    except UnusableLecture as error:
        told = [("error", finding) for finding in error.findings]
        report.tell(name, told, ["it cannot run as it stands"], status=2)
        return
    if "runs" in subject.__dict__:
        subject.notes.append(f"this run: {outcome.summary(subject.record)}")
    told = [("error", finding) for finding in findings.errors]
    report.tell(name, [*told, *(("warn", finding) for finding in findings.warnings)], subject.notes)
