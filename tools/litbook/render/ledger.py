"""The ledger: every claim of the book, a page for each page of a lecture, with its verdict per device.

Each is a plain table under the theses of the sections. Filtering by verdict needs no script: radio buttons,
and style rules that hide what was not asked for and say so where that is all. The first page counts, and has
what fails. `claims.json` is all of it as data; `docs/maintain.md` documents its fields.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from litbook.document import margin
from litbook.document.search import Passage
from litbook.html import finished
from litbook.html.finished import Page
from litbook.record.model import Claim, Environment, Record, Section, grouped
from litbook.render import badge, books, markup, prose, values, verdicts
from litbook.render.books import Book
from litbook.render.catalogue import _, day, later, ngettext, number
from litbook.render.edition import Edition
from litbook.render.evidence import Evidence, here
from litbook.render.markup import Html, tag

SCHEMA = 1  # of claims.json

FILTERS = (
    ("all", later("all")),
    ("holds", later("hold")),
    ("fails", later("fail")),
    ("not-reached", later("not reached")),
    ("needs-device", later("not run")),
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

    @property
    def verdict(self) -> str:
        """That of this build, or of a recording of the same text where this build could not run it."""
        found = [it.claim.verdict for it in self.verdicts if it.current]
        return next((it for it in ("fails", "holds") if it in found), found[0])


def page(lectures: Sequence[Edition]) -> Page:
    """The ledger's first page as Markdown. It stands beside the lectures' folders."""
    found = [ruling for it in lectures for ruling in verdicts.rulings(it.record, it.recordings)]
    summary = [tag("p", verdicts.counts(found), class_="lb-summary")] if found else []
    download = tag("a", "claims.json", href="../claims.json")
    words = _("Every claim of every section, a list for each page of a lecture; as data: ")
    parts = [markup.heading(1, _("Ledger")), *summary, tag("p", words, download, ".")]
    for it in lectures:
        title = prose.inline(it.record.title, prose.Setting(prose.Citations(books.NOTHING_CITED)))
        book = books.of(it.record, books.NOTHING_CITED, it.recordings, [])
        links = [_counted(it, book, name, title) for name, title in titles(it)]
        failing = [entry for entry in _entries(it) if entry.verdict == "fails"]
        parts += [markup.heading(2, title, it.folder), _runs(it), tag("ul", *links, class_="lb-parts")]
        parts += [_table(it, book, failing, "..")] if failing else []
    return finished.page(parts, [Passage("", _("Ledger"), (words.strip(),))])


def titles(it: Edition) -> list[tuple[str, str]]:
    """The pages of a lecture on which claims stand, in reading order, with their titles."""
    book = books.of(it.record, books.NOTHING_CITED, (), [])
    names = [(books.INDEX, it.record.title), *((book.page(part), books.plain(part)) for part in book.parts)]
    there = {book.place.get(section.key, books.INDEX) for section in it.record.sections if section.claims}
    return [(name, title) for name, title in names if name in there]


def _counted(it: Edition, book: Book, name: str, title: str) -> Html:
    found = verdicts.rulings(it.record, it.recordings, book.sections(name))
    return tag("li", tag("a", title, href=_way(it, name)), " ", tag("small", verdicts.counts(found)))


def part(it: Edition, name: str) -> Page:
    """The claims of one page of a lecture as Markdown. It stands in a folder of the lecture's name."""
    book = books.of(it.record, books.NOTHING_CITED, it.recordings, [])
    up = "../.." if name == books.INDEX else "../../.."
    sections = book.sections(name)
    entries = list(_entries(it, {section.key for section in sections}))
    counts = verdicts.counts(verdicts.rulings(it.record, it.recordings, sections))
    lead = tag(
        "p", counts, " · ", tag("a", _("the page"), href=f"{up}/{_way(it, name)}"), class_="lb-summary"
    )
    every = tag("p", tag("a", _("All pages of the ledger"), href=f"{up}/ledger/"))
    none = tag("p", _("No claim here has this verdict."), class_="lb-nothing", role="status")
    title = markup.heading(1, _("Ledger: {page}", page=dict(titles(it))[name]))
    blocks = [title, lead, _runs(it), _filters(), _table(it, book, entries, up), none, every]
    return finished.page(blocks)


def _way(it: Edition, name: str) -> str:
    """The address of a lecture's page, from where the lectures' folders are."""
    return f"{it.folder}/{books.way(books.INDEX, name).removeprefix('./')}"


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
        "address": _address(it, book, entry),
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


def _entries(it: Edition, keys: Set[str] | None = None) -> Iterator[Entry]:
    """Every claim of these sections, of all by default, with what became of it in each run that has it."""
    recorded = [_by_place(recording, keys) for recording in it.runs()[1:]]
    for place, (own, claim) in _by_place(it.record, keys).items():
        found = [Verdict(0, claim, own, True)]
        for run, claims in enumerate(recorded, 1):
            if place in claims:
                there, same = claims[place]
                found.append(Verdict(run, same, there, there.entry.digest == own.entry.digest))
        yield Entry(own.entry, claim, found)


def _by_place(record: Record, keys: Set[str] | None) -> dict[tuple[str, str, int], tuple[Evidence, Claim]]:
    """Claims by section, text, and which of those with the same text it is."""
    found: dict[tuple[str, str, int], tuple[Evidence, Claim]] = {}
    for section in record.sections:
        if keys is not None and section.key not in keys:
            continue
        evidence, often = here(record, section), Counter[str]()
        for claim in evidence.claims:
            found[section.key, claim.text, often[claim.text]] = evidence, claim
            often[claim.text] += 1
    return found


def tally(lectures: Sequence[Edition]) -> str:
    """A badge that counts the claims which hold, here or on a recorded device: the text of an SVG file.

    What a recording says of an older text counts nowhere: see `verdicts`.
    """
    seen = [entry.verdict for it in lectures for entry in _entries(it)]
    failing, holding, label = seen.count("fails"), seen.count("holds"), _("claims")
    if failing:
        return badge.svg(label, _("{n} of {all} fail", n=number(failing), all=number(len(seen))), badge.BAD)
    rest = len(seen) - holding
    if rest:
        return badge.svg(
            label, _("{n} hold, {rest} not run", n=number(holding), rest=number(rest)), badge.PART
        )
    return badge.svg(label, ngettext("{n} hold", "{n} hold", holding), badge.GOOD)


# ---------------------------------------------------------------------------- as HTML


def _filters() -> Html:
    """Radio buttons, for which the style sheet does the rest."""
    buttons = [
        tag(
            "label",
            tag("input", type="radio", name="lb-filter", value=key, checked=key == "all"),
            " ",
            _(label),
        )
        for key, label in FILTERS
    ]
    return tag("div", *buttons, class_="lb-filters", role="group", aria_label=_("show claims that"))


def _runs(it: Edition) -> Html:
    """Where and with what each column was made."""
    lines = [
        tag("li", tag("b", _("recorded") if i else _("this build")), " ", _facts(r.environment))
        for i, r in enumerate(it.runs())
    ]
    return tag("ul", *lines, class_="lb-runs")


def _facts(environment: Environment) -> str:
    versions = [f"{name} {version}" for name, version in environment.versions.items()]
    commit = [_("commit {id}", id=environment.commit)] if environment.commit else []
    words = [
        environment.device.name,
        day(environment.date),
        f"Python {environment.python}",
        *versions,
        *commit,
    ]
    return " · ".join(words)


def _table(it: Edition, book: Book, entries: Sequence[Entry], up: str) -> Html:
    """These claims under the theses of their sections; `up` leads to where the lectures' folders are."""
    names = [_("Claim"), _("This build"), *(_("{device}, recorded", device=_short(r)) for r in it.runs()[1:])]
    setting = prose.Setting(prose.Citations(book.bibliography))
    bodies = []
    for key, rows in grouped(entries, lambda entry: entry.section.key).items():
        section = it.record.by_key[key]
        thesis = prose.inline(section.heading or section.name, setting)
        head = tag("tr", tag("th", thesis, colspan=len(names), scope="rowgroup"))
        bodies.append(tag("tbody", head, *(_row(it, book, entry, len(names) - 1, up) for entry in rows)))
    heads = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in names)))
    label = _("claims of {title}", title=it.record.title)
    table = tag("table", heads, *bodies, class_="lb-ledger")
    return tag("div", table, class_="lb-scroll", tabindex="0", role="region", aria_label=label)


def _short(record: Record) -> str:
    return f"{record.environment.device.name}, {day(record.environment.date)}"


def _row(it: Edition, book: Book, entry: Entry, columns: int, up: str) -> Html:
    claim = entry.claim
    setting = prose.Setting(prose.Citations(book.bibliography))
    said = prose.inline(margin.caption(claim), setting) if claim.caption else tag("code", claim.text)
    test = [markup.SPACE, tag("code", claim.text)] if claim.caption else []
    by_run = {v.run: v for v in entry.verdicts}
    cells = [_cell(by_run.get(i), entry.verdicts[0] if i else None) for i in range(columns)]
    link = tag("a", said, href=f"{up}/{_address(it, book, entry)}")
    return tag("tr", tag("td", link, *test), *cells, class_=f"lb-entry lb-{entry.verdict}")


def _address(it: Edition, book: Book, entry: Entry) -> str:
    section = entry.section
    page = book.place.get(section.key, books.INDEX)
    line = book.line(page, section.file, entry.claim.line)
    return f"{_way(it, page)}#{line}"


def _cell(it: Verdict | None, first: Verdict | None) -> Html:
    """What one run says; `first` is what this build says, which needs no second time."""
    if it is None:
        return tag("td", "–")
    text = _said(it)
    sign = tag("b", margin.SIGNS[it.claim.verdict], aria_hidden="true")
    words = _("the same") if first and _said(first) == text else text
    return tag("td", sign, " ", words, class_=f"lb-ruling lb-{it.claim.verdict}")


def _said(it: Verdict) -> str:
    sides = margin.sides(it.claim, it.evidence.entry.snapshots)
    older = "" if it.current else _("older text")
    return " · ".join(filter(None, (_(margin.WORDS[it.claim.verdict]), sides, older)))
