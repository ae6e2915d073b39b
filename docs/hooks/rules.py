"""The rules in the reference, as a MkDocs hook: what each finds, why that is wrong, an example, the way out.

In go the explanations of all rules of the engine, in the order in which a verdict lists them; out comes the
text of `docs/reference.md` in the place of its comment. A test runs each example.
"""

from __future__ import annotations

from typing import Any

from litbook import plugins
from litbook.rules.registry import Rule, all_rules

COMMENT = "<!-- rules -->"
READS = {
    "text": "Before anything runs",
    "run": "Of a run",
    "pages": "While pages are drawn",
    "book": "Of the book as a whole",
    "trials": "By trying changes",
}
SEVERITY = {"error": "an error", "warn": "a remark", "off": "off, unless a book or `--select` asks for it"}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page with the rules in the place of its comment."""
    return markdown.replace(COMMENT, rules()) if COMMENT in markdown else markdown


def rules() -> str:
    """A part for each thing that rules read, in it a heading and an explanation for each rule."""
    plugins.bring_in("mutants")
    parts = []
    for reads, title in READS.items():
        those = [rule for rule in all_rules().values() if rule.reads == reads]
        parts += [f"### {title}", *map(explained, those)]
    return "\n\n".join(parts)


def explained(rule: Rule) -> str:
    """One rule: its code as a heading, then what, why, an example and the way out."""
    told, severity = rule.explanation, SEVERITY[rule.severity]
    fixed = ": the lecture cannot run" if rule.refuses else ""
    lines = [
        f"#### {rule.code}",
        f"{plain(told.what)} *By default {severity}{fixed}.*",
        plain(f"{told.why[:1].upper()}{told.why[1:]}"),
    ]
    for title, text in (("", told.example), ("Recorded, and then changed into this:", told.then)):
        if text:
            lines += [*([title] if title else []), f"```python\n{text}\n```"]
    return "\n\n".join([*lines, f"The way out: {plain(told.way_out)}"])


def plain(text: str) -> str:
    """A text for a terminal, in which a link and a tag are none, as Markdown."""
    return text.replace("<", "&lt;").replace("](", "]&#40;")
