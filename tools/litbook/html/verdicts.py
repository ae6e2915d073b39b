"""What a page says about its claims: how many hold, and, before all else, what fails.

A claim that this build could not run has the verdict of the newest recording of the same text, under the name
of the recorded device; where there is none, it has not run, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from litbook.html import elements
from litbook.html.elements import Html, tag
from litbook.i18n import _, day, ngettext, number
from litbook.markdown import to_html
from litbook.markdown.links import NoteContext
from litbook.page import sitemap
from litbook.page.margin import OLDER, SIGNS, describe_need
from litbook.page.runs import LectureRuns
from litbook.page.sitemap import Sitemap
from litbook.page.view import recorded_sections, view_of_run
from litbook.record.model import Record, Section, Verdict

WORST: tuple[Verdict, ...] = ("fails", "not-reached", "needs-device", "holds")  # first


class Ruling(Struct, frozen=True):
    """What became of a claim, and where: `device` is that of the recording, or the one it still needs."""

    verdict: Verdict
    device: str = ""


def rulings(
    record: Record, recordings: Sequence[Record], sections: Iterable[Section] | None = None
) -> list[Ruling]:
    """The ruling on every claim of these sections, of all by default."""
    made: list[Ruling] = []
    for section in record.sections if sections is None else sections:
        here = [claim.verdict for claim in section.claims]
        recorded = recorded_sections(section, recordings) if "needs-device" in here else []
        missing = OLDER if any(other.entry.has_run for other in recorded) else section.requires or ""
        elsewhere = [Ruling("needs-device", missing)] * len(here)
        # The newest recording that is current has the verdicts which this build does not.
        for other in recorded:
            there = other.entry.claims
            ran = any(claim.verdict != "needs-device" for claim in there)
            if other.current and ran and len(there) == len(here):
                elsewhere = [Ruling(claim.verdict, other.record.environment.device.name) for claim in there]
                break
        made += (
            there if verdict == "needs-device" else Ruling(verdict)
            for verdict, there in zip(here, elsewhere, strict=True)
        )
    return made


def summary(rulings: Sequence[Ruling]) -> Html:
    """`41 claims, all hold`, as the first thing on a page that has any."""
    return tag("p", counts(rulings), class_="lb-summary") if rulings else elements.NOTHING


def counts(rulings: Sequence[Ruling]) -> Html:
    """How many claims there are, and how many of them hold, fail, and so on, and where."""
    if all(ruling == Ruling("holds") for ruling in rulings):
        words = ngettext("{n} claim, it holds", "{n} claims, all hold", len(rulings))
        return elements.join([tag("span", "✓", class_="lb-ok"), " ", words])

    def rank(ruling: Ruling) -> tuple[bool, bool, int, str]:
        """This build's first, and in the order of the signs; then recordings', then what has not run."""
        waits = ruling.verdict == "needs-device"
        return waits, bool(ruling.device), list(SIGNS).index(ruling.verdict), ruling.device

    often = Counter(rulings)
    parts = [
        tag("span", f"{SIGNS[r.verdict]} {_words(r, often[r])}", class_=f"lb-tally lb-{r.verdict}")
        for r in sorted(often, key=rank)
    ]
    return elements.join(
        [ngettext("{n} claim", "{n} claims", len(rulings)), ": ", elements.join(parts, " · ")]
    )


def _words(ruling: Ruling, count: int) -> str:
    """`19 hold, as recorded on Some GPU`, `55 not run (need a GPU)`."""
    if ruling.verdict == "needs-device":
        device = describe_need(ruling.device)
        return ngettext("{n} not run (needs {device})", "{n} not run (need {device})", count, device=device)
    text = {
        "holds": ngettext("{n} hold", "{n} hold", count),
        "fails": ngettext("{n} fail", "{n} fail", count),
        "not-reached": ngettext("{n} not reached", "{n} not reached", count),
    }[ruling.verdict]
    return text + (_(", as recorded on {device}", device=ruling.device) if ruling.device else "")


def failures_box(book: Sitemap, page: str, mine: Sequence[Section], setting: NoteContext) -> Html:
    """A box at the top that names every failure, with links to the lines."""
    ours = [(section, view_of_run(book.record, section)) for section in mine]
    failing = [(section, claim) for section, e in ours for claim in e.claims if claim.verdict == "fails"]
    errors = [(section, error) for section, e in ours for error in e.errors]
    if not failing and not errors:
        return elements.NOTHING
    items = []
    for section, line, what in [
        *(
            (section, claim.line, to_html.inline(claim.caption, setting) if claim.caption else claim.text)
            for section, claim in failing
        ),
        *((section, error.line, error.message) for section, error in errors),
    ]:
        where = book.place.get(section.key, page)
        label = elements.text(f"{book.path(section)}:{line}")
        way = sitemap.relative_url(page, where, book.line(where, section.file, line))
        items.append(tag("li", tag("a", label, href=way), " ", what))
    head = ngettext("{n} claim fails", "{n} claims fail", len(failing)) if failing else ""
    tail = ngettext("{n} error", "{n} errors", len(errors)) if errors else ""
    title = tag("p", tag("strong", _(" and ").join(filter(None, (head, tail)))))
    return tag("div", title, tag("ul", *items), class_="lb-alarm", role="note")


def claims_mark(record: Record, section: Section, recordings: Sequence[Record] = ()) -> Html:
    """How many claims of a section and of those below it hold, of how many: `✓ 44`, `○ 44 of 47`."""
    every = rulings(record, recordings, record.tree(section))
    if not every:
        return elements.NOTHING
    worst = min((ruling.verdict for ruling in every), key=WORST.index)
    often = Counter(ruling for ruling in every if ruling.verdict == worst)
    words = "; ".join(_words(ruling, n) for ruling, n in often.items())
    holding = number(sum(ruling.verdict == "holds" for ruling in every))
    of = "" if worst == "holds" else _(" of {n}", n=number(len(every)))
    return tag("span", f"{SIGNS[worst]} {holding}{of}", class_=f"lb-tally lb-{worst}", title=words)


def claims_line(lectures: Sequence[LectureRuns]) -> Html:
    """One line on all lectures, how many claims hold, where and when they ran."""
    every = [ruling for e in lectures for ruling in rulings(e.record, e.recordings)]
    if not every:
        return elements.NOTHING
    environment = lectures[0].record.environment
    torch = environment.versions.get("torch")
    machine = environment.machine_name + (f", torch {torch}" if torch else "")
    where = _("run on {machine}, {day}", machine=machine, day=day(environment.date))
    return tag("p", counts(every), f" · {where}", class_="lb-tallies")
