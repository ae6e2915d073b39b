"""What a command answers, as data for programs: `--json` of `list`, `check` and `run` prints it.

In go a lecture's text or the record of a run, out come dictionaries of plain values. It prints nothing. Lines
count from 1, seconds are seconds, and a name keeps its meaning: what is added later gets a name of its own.
"""

from __future__ import annotations

from typing import Any

from litbook.lecture.model import Lecture
from litbook.page.view import here
from litbook.record.model import Record


def outline(name: str, lecture: Lecture, folder: str) -> dict[str, Any]:
    """A lecture's name, title and file, and its sections in reading order. `folder` is where it lies."""
    sections, files = [], [f"{folder}/{file.path}".removeprefix("./") for file in lecture.files]
    for number in lecture.order:
        function = lecture.functions[number]
        sections.append(
            {
                "name": lecture.section_name(number),
                "heading": function.heading,
                "kind": function.kind,
                "aside": function.aside,
                "requires": function.requires,
                "parent": None
                if function.parent is None or lecture.functions[function.parent].kind != "part"
                else lecture.section_name(function.parent),
                "file": files[function.file],
                "line": function.first,
            }
        )
    return {"lecture": name, "title": lecture.title, "file": files[0], "sections": sections}


def run(record: Record) -> dict[str, Any]:
    """What came of a run: how many claims, each claim with its verdict, and what is wrong, as texts."""
    claims = [
        {
            "section": section.key,
            "file": record.sources[section.file].path,
            "line": claim.line,
            "text": claim.text,
            "caption": claim.caption,
            "verdict": claim.verdict,
        }
        for section in filter(record.was_asked, record.sections)
        for claim in here(record, section).claims
    ]
    counted = record.count()
    return {
        "lecture": record.lecture,
        "title": record.title,
        "device": record.environment.device.slug,
        "python": record.environment.python,
        "versions": record.environment.versions,
        "seconds": round(record.seconds, 3),
        "counts": {name: counted[name] for name in ("holds", "fails", "needs-device", "not-reached")},
        "claims": claims,
    }
