"""What a run came to: the last lines in a terminal, and the same as data for programs (`--json`).

In go the record of a run, the verdict on it and the recording that it was compared with; out come texts and
plain values. It prints nothing. Lines count from 1, seconds are seconds, and a name in the data keeps its
meaning: what is added later gets a name of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from litbook.errors import LitbookError
from litbook.page.view import view_of_run
from litbook.record.model import Record
from litbook.record.recordings import Baseline
from litbook.rules import outcome, recorded
from litbook.rules.judge import Findings
from litbook.values.formatting import many


@dataclass(frozen=True)
class Report:
    """The end of a run.

    `kept` says how the recording was written, which accepts what differs; `problems` are of the files that it
    was to read or write. `command` runs the lecture again, and with `--approve` accepts what differs.
    """

    record: Record
    baseline: Baseline
    findings: Findings
    kept: str
    problems: Sequence[LitbookError]
    command: str

    @property
    def contradictions(self) -> int:
        """In how many places the recording says something else, and goes on saying it."""
        return 0 if self.kept else sum(difference.contradicts for difference in self.baseline.differences)

    @property
    def status(self) -> int:
        """The exit status. What is wrong with the lecture comes before what is wrong with its recording."""
        if self.findings.errors or self.contradictions or not outcome.holds(self.record):
            return 1
        return self.problems[0].exit_status if self.problems else 0

    def text(self, *, quiet: bool) -> str:
        """The failures in full, then what differs from the recording, then the line that counts."""
        record, recording = self.record, self.baseline.recording
        differences, contradictions = self.baseline.differences, self.contradictions
        told = [*self.findings.errors, *self.findings.warnings, *recorded.join_differences(differences)]
        lines = [finding.text(coded=True) for finding in told]
        if differences and recording:
            lines.append(outcome.releases(record, recording))
        if any(difference.contradicts for difference in differences) and recording:
            lines.append(outcome.interpreters(record, recording))
        if differences and not self.kept and outcome.holds(record):  # else --approve would refuse
            device = record.environment.device.kind
            lines.append(f"If the new values are the right ones: {self.command} --device {device} --approve")
        lines += [self.kept, "" if quiet else outcome.longest([record])]
        summary = outcome.summary(record)
        beside = sum(finding.code not in ("claim-fails", "raised") for finding in self.findings.errors)
        if beside:
            summary += f"; {many(beside, 'problem')} beside claims"
        if contradictions:
            summary += f"; {many(contradictions, 'difference')} from {self.baseline.name}"
        elif differences and not self.kept:  # else the recording is this run
            summary += f"; {many(len(differences), 'section')} newer than {self.baseline.name}"
        return "\n\n".join(filter(None, [*lines, summary]))

    def data(self) -> dict[str, Any]:
        """How many claims, each claim with its verdict, and what is wrong, as data."""
        record, counted = self.record, self.record.count()
        claims = [
            {"section": section.key, "file": record.sources[section.file].path}
            | {name: getattr(claim, name) for name in ("line", "text", "caption", "verdict")}
            for section in filter(record.was_asked, record.sections)
            for claim in view_of_run(record, section).claims
        ]
        told = [("error", finding) for finding in self.findings.errors]
        told += [("warn", finding) for finding in self.findings.warnings]
        return {
            "schema": 2,
            "lecture": record.lecture,
            "title": record.title,
            "device": record.environment.device.slug,
            "python": record.environment.python,
            "versions": record.environment.versions,
            "seconds": round(record.seconds, 3),
            "counts": {name: counted[name] for name in ("holds", "fails", "needs-device", "not-reached")},
            "claims": claims,
            "findings": [{**finding.as_data(), "severity": severity} for severity, finding in told],
            "differences": [difference.finding().as_data() for difference in self.baseline.differences],
            "recorded": bool(self.kept),
            "exit_status": self.status,
        } | ({"error": "\n".join(map(str, self.problems))} if self.problems else {})
