"""The ledger: every claim of the book on one page, with its place, both sides, and its verdict per device.

Filtering needs no script: five radio buttons, and style rules that hide what was not asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from litbook.render import books, margin, markup, prose, values, verdicts
from litbook.render.books import Book
from litbook.render.evidence import others, stamp
from litbook.trace import Claim, Record

FILTERS = (
    ("all", "all"),
    ("holds", "hold"),
    ("fails", "fail"),
    ("not-reached", "not reached"),
    ("needs-device", "on another device"),
)


@dataclass(frozen=True)
class Shelf:
    """One lecture: the folder of its pages, its record, and recordings of other devices."""

    folder: str
    record: Record
    recordings: Sequence[Record] = ()


@dataclass(frozen=True)
class Verdict:
    """What became of a claim on one machine."""

    where: str
    verdict: str
    sides: str


def page(lectures: Sequence[Shelf]) -> str:
    """The ledger as Markdown. It stands beside the lectures' folders."""
    claims = [claim for it in lectures for claim in it.record.claims]
    summary = markup.tag("p", verdicts.counted(claims), class_="lb-summary") if claims else ""
    download = 'Every claim of every section; as data: <a href="../ledger.json">ledger.json</a>.'
    parts = ["# Ledger", summary, markup.tag("p", download), _filters()]
    for it in lectures:
        title = prose.inline(it.record.title, prose.Setting(prose.Citations(books.NOTHING_CITED)))
        parts += [f"## {markup.for_heading(title)} {{#{it.folder}}}", _entries(it)]
    return "\n\n".join(part for part in parts if part) + "\n"


def data(lectures: Sequence[Shelf]) -> str:
    """The ledger as JSON: a list of claims."""
    rows = [_data(it, claim) for it in lectures for claim in it.record.claims]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def _data(it: Shelf, claim: Claim) -> dict[str, Any]:
    return {
        "lecture": it.folder,
        "section": it.record.functions[claim.function].name,
        "line": claim.line,
        "claim": claim.text,
        "caption": claim.caption,
        "operands": {o.text: _side(it.record, o.value) for o in claim.operands},
        "verdicts": {v.where: v.verdict for v in _verdicts(it, claim)},
    }


def _side(record: Record, value: int | None) -> str | None:
    return None if value is None else values.line(record.snapshots[value])


def _verdicts(it: Shelf, claim: Claim) -> list[Verdict]:
    """On this machine first, then in every recording that has the same claim."""
    found = [Verdict(stamp(it.record), claim.verdict, margin.tested(claim, it.record))]
    for other in others(it.record, claim.function, it.recordings):
        for there in other.record.claims:
            if there.function == other.function and there.text == claim.text:
                found.append(Verdict(other.stamp, there.verdict, margin.tested(there, other.record)))
                break
    return found


# ---------------------------------------------------------------------------- as HTML


def _filters() -> str:
    """Radio buttons; the style sheet does the rest."""
    buttons = [
        f'<label><input type="radio" name="lb-filter" value="{key}"> {label}</label>'
        for key, label in FILTERS
    ]
    buttons[0] = buttons[0].replace('"all"', '"all" checked')
    return markup.tag("div", *buttons, class_="lb-filters", role="group", aria_label="show claims that")


def _entries(it: Shelf) -> str:
    book = books.of(it.record, books.NOTHING_CITED, (), [])
    rows = [_entry(it, book, claim) for claim in it.record.claims]
    return markup.tag("ul", *rows, class_="lb-ledger") if rows else ""


def _entry(it: Shelf, book: Book, claim: Claim) -> str:
    function = it.record.functions[claim.function]
    where = book.place.get(claim.function, books.INDEX)
    address = f"../{it.folder}/{books.way(books.INDEX, where).removeprefix('./')}#L{claim.line}"
    link = markup.tag("a", markup.text(f"{function.name}:{claim.line}"), href=address)
    setting = prose.Setting(prose.Citations(book.bibliography))
    caption = markup.tag("span", prose.inline(claim.caption, setting)) if claim.caption else ""
    test = markup.tag("code", markup.text(claim.text))
    lines = "".join(_verdict(v) for v in _verdicts(it, claim))
    return markup.tag("li", caption, test, lines, link, class_=f"lb-entry lb-{claim.verdict}")


def _verdict(it: Verdict) -> str:
    sign = markup.tag("b", margin.SIGNS[it.verdict], aria_hidden="true")
    words: Iterable[str] = (margin.WORDS[it.verdict], it.sides, it.where)
    text = markup.text(" · ".join(word for word in words if word))
    return markup.tag("div", sign, " ", text, class_=f"lb-ruling lb-{it.verdict}")
