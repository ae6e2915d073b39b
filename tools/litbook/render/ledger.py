"""The ledger: every claim of the book on one page, with its place, both sides, and its verdict per device.

It is a plain table. Filtering by verdict needs no script: radio buttons, and style rules that hide what was
not asked for. `assets/ledger.js` adds sorting, and filters by section and device. `claims.json` is the same
as data; `docs/maintain.md` documents its fields.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from litbook.record.model import Claim, Environment, Record, Section
from litbook.render import badge, books, margin, markup, prose, values, verdicts
from litbook.render.books import Book
from litbook.render.edition import Edition
from litbook.render.evidence import Evidence, day, here
from litbook.render.markup import Html, tag

SCHEMA = 1  # of claims.json
SCRIPT = "../../assets/litbook/ledger.js"  # from the ledger's page

FILTERS = (
    ("all", "all"),
    ("holds", "hold"),
    ("fails", "fail"),
    ("not-reached", "not reached"),
    ("needs-device", "not run"),
)


@dataclass(frozen=True)
class Verdict:
    """What became of a claim in one run; `run` counts the edition's runs."""

    run: int
    claim: Claim
    evidence: Evidence  # what that run says of the claim's section
    current: bool  # whether its section had the same text then


@dataclass(frozen=True)
class Entry:
    """One claim of the book: its section, its line today, and what became of it in each run that has it."""

    section: Section
    claim: Claim
    verdicts: list[Verdict]


def page(lectures: Sequence[Edition]) -> str:
    """The ledger as Markdown. It stands beside the lectures' folders."""
    found = [ruling for it in lectures for ruling in verdicts.rulings(it.record, it.recordings)]
    summary = [tag("p", verdicts.counts(found), class_="lb-summary")] if found else []
    download = tag("a", "claims.json", href="../claims.json")
    words = "Every claim of every section; as data: "
    parts = [markup.heading(1, "Ledger"), *summary, tag("p", words, download, "."), _filters()]
    for it in lectures:
        title = prose.inline(it.record.title, prose.Setting(prose.Citations(books.NOTHING_CITED)))
        parts += [markup.heading(2, title, it.folder), _runs(it), _table(it)]
    return markup.page([*parts, tag("script", type="module", src=SCRIPT)])


# ---------------------------------------------------------------------------- as data


def data(lectures: Sequence[Edition]) -> str:
    """The ledger as JSON, one run and one claim a line."""
    runs, claims = list[dict[str, Any]](), list[dict[str, Any]]()
    for it in lectures:
        book = books.of(it.record, books.NOTHING_CITED, (), [])
        claims += [_claim(it, book, entry, len(runs)) for entry in _entries(it)]
        runs += [_run(it, record, i) for i, record in enumerate(it.runs())]
    counts = _counts([claim for it in lectures for _, claim in it.record.claims()])
    lines = [f'"schema": {SCHEMA}', f'"counts": {_json(counts)}']
    for name, rows in (("runs", runs), ("claims", claims)):
        lines.append(f'"{name}": [\n' + ",\n".join(map(_json, rows)) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(thing: Any) -> str:
    return json.dumps(thing, ensure_ascii=True, allow_nan=False)


def _counts(claims: Sequence[Claim]) -> dict[str, int]:
    found: list[str] = [claim.verdict for claim in claims]
    return {"claims": len(found)} | {verdict: found.count(verdict) for verdict in margin.SIGNS}


def _run(it: Edition, record: Record, number: int) -> dict[str, Any]:
    environment = record.environment
    return {
        "lecture": it.folder,
        "kind": "recording" if number else "build",
        "device": environment.device.slug,
        "name": environment.device.name,
        "date": environment.date,
        "python": environment.python,
        "versions": environment.versions,
        "commit": environment.commit,
        "counts": _counts([claim for _, claim in record.claims()]),
    }


def _claim(it: Edition, book: Book, entry: Entry, first: int) -> dict[str, Any]:
    claim = entry.claim
    return {
        "lecture": it.folder,
        "section": entry.section.key,
        "address": _address(it, book, entry).removeprefix("../"),
        "file": book.path(entry.section),
        "line": claim.line,
        "claim": claim.text,
        "caption": claim.caption,
        "kind": claim.kind,
        "verdicts": [
            {
                "run": first + v.run,
                "verdict": v.claim.verdict,
                "current": v.current,
                "operands": [{"text": o.text, "value": _side(v, o.value)} for o in v.claim.operands],
            }
            for v in entry.verdicts
        ],
    }


def _side(verdict: Verdict, value: int | None) -> str | None:
    return None if value is None else values.line(verdict.evidence.snapshot(value))


def _entries(it: Edition) -> Iterator[Entry]:
    """Every claim, with what became of it in this build and in the recordings that have the same claim."""
    recorded = [_by_place(recording) for recording in it.runs()[1:]]
    for place, (own, claim) in _by_place(it.record).items():
        found = [Verdict(0, claim, own, True)]
        for number, claims in enumerate(recorded, 1):
            if place in claims:
                there, same = claims[place]
                found.append(Verdict(number, same, there, there.entry.digest == own.entry.digest))
        yield Entry(own.entry, claim, found)


def _by_place(record: Record) -> dict[tuple[str, str, int], tuple[Evidence, Claim]]:
    """Claims by section, text, and which of those with the same text it is."""
    found: dict[tuple[str, str, int], tuple[Evidence, Claim]] = {}
    for section in record.sections:
        evidence, often = here(record, section), Counter[str]()
        for claim in evidence.claims:
            found[section.key, claim.text, often[claim.text]] = evidence, claim
            often[claim.text] += 1
    return found


def tally(lectures: Sequence[Edition]) -> str:
    """A badge that counts the claims which hold, here or on a recorded device: the text of an SVG file.

    What a recording says of an older text counts nowhere: see `verdicts`.
    """
    entries = [entry for it in lectures for entry in _entries(it)]
    seen = [{v.claim.verdict for v in entry.verdicts if v.current} for entry in entries]
    failing, holding = (sum(verdict in found for found in seen) for verdict in ("fails", "holds"))
    if failing:
        return badge.svg("claims", f"{failing:,} of {len(seen):,} fail", badge.BAD)
    rest = len(seen) - holding
    if rest:
        return badge.svg("claims", f"{holding:,} hold, {rest:,} not run", badge.PART)
    return badge.svg("claims", f"{holding:,} hold", badge.GOOD)


# ---------------------------------------------------------------------------- as HTML


def _filters() -> Html:
    """Radio buttons, for which the style sheet does the rest; the script puts more beside them."""
    buttons = [
        tag(
            "label",
            tag("input", type="radio", name="lb-filter", value=key, checked=key == "all"),
            f" {label}",
        )
        for key, label in FILTERS
    ]
    return tag("div", *buttons, class_="lb-filters", role="group", aria_label="show claims that")


def _runs(it: Edition) -> Html:
    """Where and with what each column was made."""
    lines = [
        tag("li", tag("b", "this build" if not i else "recorded"), " ", _facts(r.environment))
        for i, r in enumerate(it.runs())
    ]
    return tag("ul", *lines, class_="lb-runs")


def _facts(environment: Environment) -> str:
    versions = [f"{name} {version}" for name, version in environment.versions.items()]
    commit = [f"commit {environment.commit}"] if environment.commit else []
    words = [
        environment.device.name,
        day(environment.date),
        f"Python {environment.python}",
        *versions,
        *commit,
    ]
    return " · ".join(words)


def _table(it: Edition) -> Html:
    entries = list(_entries(it))
    if not entries:
        return markup.NOTHING
    book = books.of(it.record, books.NOTHING_CITED, (), [])
    names = ["Claim", "Section", "This build", *(f"{_short(r)}, recorded" for r in it.runs()[1:])]
    rows = [_row(it, book, entry, len(names) - 2) for entry in entries]
    table = markup.table(names, rows, class_="lb-ledger")
    label = f"claims of {it.record.title}"
    return tag("div", table, class_="lb-scroll", tabindex="0", role="region", aria_label=label)


def _short(record: Record) -> str:
    return f"{record.environment.device.name}, {day(record.environment.date)}"


def _row(it: Edition, book: Book, entry: Entry, columns: int) -> Html:
    claim = entry.claim
    words = map(markup.text, _place(book, entry).split("_"))
    breaking = markup.join(words, markup.join(["_", markup.opening("wbr")]))
    link = tag("a", breaking, href=_address(it, book, entry))  # long names break between words
    setting = prose.Setting(prose.Citations(book.bibliography))
    caption = [tag("span", prose.inline(claim.caption, setting)), markup.SPACE]
    test = tag("code", claim.text)
    by_run = {v.run: v for v in entry.verdicts}
    cells = [_cell(by_run.get(i)) for i in range(columns)]
    return tag(
        "tr",
        tag("td", *(caption if claim.caption else []), test),
        tag("td", link),
        *cells,
        class_=f"lb-entry lb-{claim.verdict}",
    )


def _place(book: Book, entry: Entry) -> str:
    """`a_view:12`; of a lecture in several files also which of them that is a line of."""
    name, line = entry.section.name, entry.claim.line
    if len(book.record.sources) == 1:
        return f"{name}:{line}"
    return f"{name} · {book.path(entry.section).rpartition('/')[2]}:{line}"


def _address(it: Edition, book: Book, entry: Entry) -> str:
    section = entry.section
    page = book.place.get(section.key, books.INDEX)
    line = book.line(page, section.file, entry.claim.line)
    return f"../{it.folder}/{books.way(books.INDEX, page).removeprefix('./')}#{line}"


def _cell(it: Verdict | None) -> Html:
    if it is None:
        return tag("td", "–", data_verdict="none")
    verdict = it.claim.verdict
    sign = tag("b", margin.SIGNS[verdict], aria_hidden="true")
    sides = margin.sides(it.claim, it.evidence.entry.snapshots)
    text = " · ".join(filter(None, (margin.WORDS[verdict], sides, "" if it.current else "older text")))
    return tag("td", sign, " ", text, class_=f"lb-ruling lb-{verdict}")
