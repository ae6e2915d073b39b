"""The ledger: every claim of the book, a page for each page of a lecture, with its verdict per device.

Each is a plain table under the theses of the sections. Filtering by verdict needs no script: radio buttons,
and style rules that hide what was not asked for and say so where that is all. The first page counts, and has
what fails. `claims.json` is all of it as data; `docs/maintain.md` has its fields. A badge counts it all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Any

from msgspec import Struct

from litbook.html import elements, verdicts
from litbook.html.elements import Html, Page, tag
from litbook.i18n import _, day, gettext_noop, ngettext, number
from litbook.markdown import to_html
from litbook.markdown.links import Citations, NoteContext
from litbook.page import margin, sitemap
from litbook.page.runs import LectureRuns
from litbook.page.search import SearchPassage
from litbook.page.view import SectionView, view_of_run
from litbook.record.model import Claim, Record, Section, group_by
from litbook.values import formatting

SCHEMA = 1  # of claims.json

FILTERS = (
    ("all", gettext_noop("all")),
    ("holds", gettext_noop("hold")),
    ("fails", gettext_noop("fail")),
    ("not-reached", gettext_noop("not reached")),
    ("needs-device", gettext_noop("not run")),
)


# Of the badge: pixels, and colours that are each at least 4.5:1 against the white text.
HEIGHT, PADDING = 20, 7
GOOD, PART, BAD = "#1a7f37", "#8a5a00", "#b3261e"


class RunVerdict(Struct, frozen=True):
    """What became of a claim in one run; `run` counts the edition's runs."""

    run: int
    claim: Claim
    evidence: SectionView  # what that run says of the claim's section
    current: bool  # whether its section had the same text then

    @property
    def words(self) -> str:
        """`holds · 24 == 24`, and whether that is of an older text."""
        sides = margin.side_values(self.claim, self.evidence.entry.snapshots)
        older = "" if self.current else _("older text")
        return " · ".join(filter(None, (_(margin.WORDS[self.claim.verdict]), sides, older)))


class LedgerEntry(Struct, frozen=True):
    """One claim of the book: its section, its line today, and what became of it in each run that has it."""

    section: Section
    claim: Claim
    verdicts: list[RunVerdict]

    @property
    def verdict(self) -> str:
        """That of this build, or of a recording of the same text where this build could not run it."""
        current = [judged.claim.verdict for judged in self.verdicts if judged.current]
        return next((verdict for verdict in ("fails", "holds") if verdict in current), current[0])


def page(lectures: Sequence[LectureRuns]) -> Page:
    """The ledger's first page as Markdown. It stands beside the lectures' folders."""
    rulings = [ruling for e in lectures for ruling in verdicts.rulings(e.record, e.recordings)]
    words = _("Every claim of every section, a list for each page of a lecture; as data: ")
    lead = tag("p", words, tag("a", "claims.json", href="../claims.json"), ".")
    parts = [elements.heading(1, _("Ledger")), verdicts.summary(rulings), lead]
    for edition in lectures:
        record, links = edition.record, []
        for name, title in titles(edition):
            sections = edition.sitemap.sections(name)
            counts = verdicts.counts(verdicts.rulings(record, edition.recordings, sections))
            link = tag("a", title, href=_page_url(edition, name))
            links.append(tag("li", link, " ", tag("small", counts)))
        head = to_html.inline(record.title, NoteContext(Citations(sitemap.NOTHING_CITED)))
        parts += [
            elements.heading(2, head, edition.folder),
            _runs(edition),
            tag("ul", *links, class_="lb-parts"),
        ]
        if failing := [entry for entry in _entries(edition) if entry.verdict == "fails"]:
            parts.append(_table(edition, failing, ".."))
    return elements.page(parts, [SearchPassage("", _("Ledger"), (words.strip(),))])


def titles(edition: LectureRuns) -> list[tuple[str, str]]:
    """The pages of a lecture on which claims stand, in reading order, with their titles."""
    record, book = edition.record, edition.sitemap
    every = [
        (sitemap.INDEX, record.title),
        *((book.page(part), sitemap.plain_title(part)) for part in book.parts),
    ]
    there = {book.place.get(section.key, sitemap.INDEX) for section in record.sections if section.claims}
    return [(name, title) for name, title in every if name in there]


def claims_page(edition: LectureRuns, name: str) -> Page:
    """The claims of one page of a lecture as Markdown. It stands in a folder of the lecture's name."""
    up = "../.." if name == sitemap.INDEX else "../../.."
    sections = edition.sitemap.sections(name)
    counts = verdicts.counts(verdicts.rulings(edition.record, edition.recordings, sections))
    link = tag("a", _("the page"), href=f"{up}/{_page_url(edition, name)}")
    # Radio buttons, for which the style sheet does the rest.
    buttons = (
        (tag("input", type="radio", name="lb-filter", value=key, checked=key == "all"), " ", _(label))
        for key, label in FILTERS
    )
    labels = (tag("label", *button) for button in buttons)
    blocks = [
        elements.heading(1, _("Ledger: {page}", page=dict(titles(edition))[name])),
        tag("p", counts, " · ", link, class_="lb-summary"),
        _runs(edition),
        tag("div", *labels, class_="lb-filters", role="group", aria_label=_("show claims that")),
        _table(edition, [*_entries(edition, {section.key for section in sections})], up),
        tag("p", _("No claim here has this verdict."), class_="lb-nothing", role="status"),
        tag("p", tag("a", _("All pages of the ledger"), href=f"{up}/ledger/")),
    ]
    return elements.page(blocks)


# ---------------------------------------------------------------------------- as data


def data(lectures: Sequence[LectureRuns]) -> str:
    """The ledger as JSON, one run and one claim a line."""
    runs, claims = list[dict[str, Any]](), list[dict[str, Any]]()
    for edition in lectures:
        first = len(runs)
        for i, record in enumerate(edition.runs()):
            environment = record.environment
            runs.append({
                "lecture": edition.folder,
                "kind": "recording" if i else "build",
                "device": environment.device.slug,
                "name": environment.device.name,
                "date": environment.date,
                "python": environment.python,
                "versions": environment.versions,
                "commit": environment.commit,
                "counts": _counts([claim for _, claim in record.claims()]),
            })  # fmt: skip
        for entry in _entries(edition):
            claim = entry.claim
            judged = []
            for v in entry.verdicts:
                operands = list[dict[str, str | None]]()
                for side in v.claim.operands:
                    value = None if side.value is None else formatting.line(v.evidence.snapshot(side.value))
                    operands.append({"text": side.text, "value": value})
                told = {"run": first + v.run, "verdict": v.claim.verdict, "current": v.current}
                judged.append(told | {"operands": operands})
            claims.append({
                "lecture": edition.folder,
                "section": entry.section.key,
                "address": _claim_url(edition, entry),
                "file": edition.sitemap.path(entry.section),
                "line": claim.line,
                "claim": claim.text,
                "caption": claim.caption,
                "kind": claim.kind,
                "requires": entry.section.requires,
                "verdicts": judged,
            })  # fmt: skip
    counts = _counts([claim for e in lectures for _, claim in e.record.claims()])
    lines = [f'"schema": {SCHEMA}', f'"counts": {_json(counts)}']
    for name, rows in (("runs", runs), ("claims", claims)):
        lines.append(f'"{name}": [\n' + ",\n".join(map(_json, rows)) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(thing: Any) -> str:
    return json.dumps(thing, ensure_ascii=True, allow_nan=False)


def _counts(claims: Sequence[Claim]) -> dict[str, int]:
    often = Counter[str](claim.verdict for claim in claims)
    return {"claims": len(claims)} | {verdict: often[verdict] for verdict in margin.SIGNS}


def _entries(edition: LectureRuns, keys: Set[str] | None = None) -> Iterator[LedgerEntry]:
    """Every claim of these sections, of all by default, with what became of it in each run that has it."""
    recorded = [_by_place(recording, keys) for recording in edition.runs()[1:]]
    for place, (evidence, claim) in _by_place(edition.record, keys).items():
        judged = [RunVerdict(0, claim, evidence, True)]
        for run, claims in enumerate(recorded, 1):
            if place in claims:
                there, same = claims[place]
                judged.append(RunVerdict(run, same, there, there.entry.depends == evidence.entry.depends))
        yield LedgerEntry(evidence.entry, claim, judged)


def _by_place(record: Record, keys: Set[str] | None) -> dict[tuple[str, str, int], tuple[SectionView, Claim]]:
    """Claims by section, text, and which of those with the same text it is."""
    claims: dict[tuple[str, str, int], tuple[SectionView, Claim]] = {}
    for section in record.sections:
        if keys is not None and section.key not in keys:
            continue
        evidence, often = view_of_run(record, section), Counter[str]()
        for claim in evidence.claims:
            claims[section.key, claim.text, often[claim.text]] = evidence, claim
            often[claim.text] += 1
    return claims


# ---------------------------------------------------------------------------- as a badge


def claims_badge(lectures: Sequence[LectureRuns]) -> str:
    """A badge that counts the claims which hold, here or on a recorded device: the text of an SVG file.

    What a recording says of an older text counts nowhere: see `recordings.as_of`.
    """
    often = Counter(entry.verdict for e in lectures for entry in _entries(e))
    every, holding, failing = number(often.total()), number(often["holds"]), often["fails"]
    if failing:
        return badge(_("claims"), _("{n} of {all} fail", n=number(failing), all=every), BAD)
    if rest := often.total() - often["holds"]:
        return badge(_("claims"), _("{n} hold, {rest} not run", n=holding, rest=number(rest)), PART)
    return badge(_("claims"), ngettext("{n} hold", "{n} hold", often["holds"]), GOOD)


def badge(label: str, text: str, color: str) -> str:
    """A small picture as the text of an SVG file, which needs no font and no network.

    `label` stands on grey, `text` on `color`.
    """
    # The pixels of both in Verdana at 11 pixels, about, with room on both sides.
    widths = ([4 if c in " ,.:il|'" else 7 for c in words] for words in (label, text))
    left, right = (2 * PADDING + sum(each) for each in widths)
    whole = elements.attribute(f"{label}: {text}")
    size = f'width="{left + right}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{whole}">',
        f"<title>{whole}</title>",
        f'<clipPath id="r"><rect {size} rx="3"/></clipPath>',
        '<g clip-path="url(#r)">',
        f'<rect width="{left}" height="{HEIGHT}" fill="#444"/>',
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{color}"/>',
        "</g>",
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">',
    ]
    for words, start, width in ((label, 0, left), (text, left, right)):
        # textLength: the same width with every font
        place = f'x="{start + PADDING}" y="14" textLength="{width - 2 * PADDING}"'
        parts.append(f"<text {place}>{elements.text(words)}</text>")
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


# ---------------------------------------------------------------------------- as HTML


def _runs(edition: LectureRuns) -> Html:
    """Where and with what each column was made."""
    lines = []
    for i, run in enumerate(edition.runs()):
        environment = run.environment
        facts = [environment.device.name, day(environment.date), f"Python {environment.python}"]
        facts += [f"{name} {version}" for name, version in environment.versions.items()]
        facts += [_("commit {id}", id=environment.commit)] if environment.commit else []
        kind = tag("b", _("recorded") if i else _("this build"))
        lines.append(tag("li", kind, " ", " · ".join(facts)))
    return tag("ul", *lines, class_="lb-runs")


def _table(edition: LectureRuns, entries: Sequence[LedgerEntry], up: str) -> Html:
    """These claims under the theses of their sections; `up` leads to where the lectures' folders are."""
    names = [_("Claim"), _("This build")]
    for run in edition.runs()[1:]:
        device = f"{run.environment.device.name}, {day(run.environment.date)}"
        names.append(_("{device}, recorded", device=device))
    setting = NoteContext(Citations(sitemap.NOTHING_CITED))
    bodies = []
    for key, group in group_by(entries, lambda entry: entry.section.key).items():
        section = edition.record.by_key[key]
        thesis = to_html.inline(section.heading or section.name, setting)
        if "ranks=" in (section.requires or ""):
            badge = tag("span", margin.describe_need(section.requires or ""), class_="lb-badge")
            thesis = elements.join([thesis, badge], " ")
        rows = [tag("tr", tag("th", thesis, colspan=len(names), scope="rowgroup"))]
        for entry in group:
            words = test = tag("code", entry.claim.text)
            if entry.claim.caption:
                words = to_html.inline(margin.caption(entry.claim), setting)
            link = tag("a", words, href=f"{up}/{_claim_url(edition, entry)}")
            claim = tag("td", link, *([elements.SPACE, test] if entry.claim.caption else []))
            # What each run says of the claim; what this build says stands there once.
            cells, by_run = list[Html](), {one.run: one for one in entry.verdicts}
            for nth in range(len(names) - 1):
                if nth not in by_run:
                    cells.append(tag("td", "–"))
                    continue
                ruling, spoken = by_run[nth].claim.verdict, by_run[nth].words
                sign = tag("b", margin.SIGNS[ruling], aria_hidden="true")
                same = nth and spoken == by_run[0].words
                says = _("the same") if same else spoken
                cells.append(tag("td", sign, " ", says, class_=f"lb-ruling lb-{ruling}"))
            rows.append(tag("tr", claim, *cells, class_=f"lb-entry lb-{entry.verdict}"))
        bodies.append(tag("tbody", *rows))
    heads = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in names)))
    label = _("claims of {title}", title=edition.record.title)
    table = tag("table", heads, *bodies, class_="lb-ledger")
    return tag("div", table, class_="lb-scroll", tabindex="0", role="region", aria_label=label)


def _page_url(edition: LectureRuns, name: str) -> str:
    """The address of a lecture's page, from where the lectures' folders are."""
    return f"{edition.folder}/{sitemap.relative_url(sitemap.INDEX, name).removeprefix('./')}"


def _claim_url(edition: LectureRuns, entry: LedgerEntry) -> str:
    """The address of a claim's line, from there."""
    book = edition.sitemap
    page = book.place.get(entry.section.key, sitemap.INDEX)
    return f"{_page_url(edition, page)}#{book.line(page, entry.section.file, entry.claim.line)}"
