"""What a page says about its claims: how many hold, and, before all else, what fails.

A claim that this build could not run has the verdict of the newest recording of the same text, under the name
of the recorded device; where there is none, it has not run, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from litbook.document.margin import DEVICES, SIGNS
from litbook.record.model import Record, Section, Verdict
from litbook.render import books, markup
from litbook.render.books import Book
from litbook.render.catalogue import _, day, ngettext, number
from litbook.render.evidence import here, others
from litbook.render.markup import Html, tag

WORST: tuple[Verdict, ...] = ("fails", "not-reached", "needs-device", "holds")  # first


@dataclass(frozen=True)
class Ruling:
    """What became of a claim, and where: `device` is that of the recording, or the one it still needs."""

    verdict: Verdict
    device: str = ""


def rulings(
    record: Record, recordings: Sequence[Record], sections: Iterable[Section] | None = None
) -> list[Ruling]:
    """The ruling on every claim of these sections, of all by default."""
    wanted = record.sections if sections is None else sections
    return [ruling for section in wanted for ruling in _of_section(section, recordings)]


def _of_section(section: Section, recordings: Sequence[Record]) -> list[Ruling]:
    own = [Ruling(claim.verdict) for claim in section.claims]
    if Ruling("needs-device") not in own:
        return own
    recorded = _in_recordings(section, recordings)
    return [
        there if here.verdict == "needs-device" else here for here, there in zip(own, recorded, strict=True)
    ]


def _in_recordings(section: Section, recordings: Sequence[Record]) -> list[Ruling]:
    """The rulings of the newest recording that ran the same text; else what is missing."""
    for other in others(section, recordings):
        there = other.entry.claims
        ran = any(claim.verdict != "needs-device" for claim in there)
        if other.current and ran and len(there) == len(section.claims):
            return [Ruling(claim.verdict, other.record.environment.device.name) for claim in there]
    return [Ruling("needs-device", section.requires or "")] * len(section.claims)


def summary(book: Book, mine: Sequence[Section]) -> Html:
    """`41 claims, all hold`, of these sections."""
    found = rulings(book.record, book.recordings, mine)
    return tag("p", counts(found), class_="lb-summary") if found else markup.NOTHING


def counts(found: Sequence[Ruling]) -> Html:
    """How many claims there are, and how many of them hold, fail, and so on, and where."""
    if all(ruling == Ruling("holds") for ruling in found):
        tick = tag("span", "✓", class_="lb-ok")
        return markup.join([tick, " ", ngettext("{n} claim, it holds", "{n} claims, all hold", len(found))])
    parts = [
        tag("span", f"{SIGNS[it.verdict]} {_words(it, n)}", class_=f"lb-tally lb-{it.verdict}")
        for it, n in sorted(Counter(found).items(), key=lambda it: _rank(it[0]))
    ]
    return markup.join([ngettext("{n} claim", "{n} claims", len(found)), ": ", markup.join(parts, " · ")])


def _rank(ruling: Ruling) -> tuple[bool, bool, int, str]:
    """This build's first, and in the order of the signs; then recordings', then what has not run."""
    waits = ruling.verdict == "needs-device"
    return waits, bool(ruling.device), list(SIGNS).index(ruling.verdict), ruling.device


def _words(ruling: Ruling, count: int) -> str:
    """`19 hold, as recorded on Some GPU`, `55 not run (need a GPU)`."""
    if ruling.verdict == "needs-device":
        device = _(DEVICES.get(ruling.device, ruling.device))
        return ngettext("{n} not run (needs {device})", "{n} not run (need {device})", count, device=device)
    text = {
        "holds": ngettext("{n} hold", "{n} hold", count),
        "fails": ngettext("{n} fail", "{n} fail", count),
        "not-reached": ngettext("{n} not reached", "{n} not reached", count),
    }[ruling.verdict]
    return text + (_(", as recorded on {device}", device=ruling.device) if ruling.device else "")


def alarm(book: Book, page: str, mine: Sequence[Section]) -> Html:
    """A box at the top that names every failure, with links to the lines."""
    ours = [(section, here(book.record, section)) for section in mine]
    failing = [(section, claim) for section, it in ours for claim in it.claims if claim.verdict == "fails"]
    errors = [(section, error) for section, it in ours for error in it.errors]
    if not failing and not errors:
        return markup.NOTHING
    items = [_alarm_item(book, page, it, c.line, c.caption or c.text) for it, c in failing]
    items += [_alarm_item(book, page, it, e.line, e.message) for it, e in errors]
    head = ngettext("{n} claim fails", "{n} claims fail", len(failing)) if failing else ""
    tail = ngettext("{n} error", "{n} errors", len(errors)) if errors else ""
    title = tag("p", tag("strong", _(" and ").join(filter(None, (head, tail)))))
    return tag("div", title, tag("ul", *items), class_="lb-alarm", role="note")


def _alarm_item(book: Book, page: str, section: Section, line: int, what: str) -> Html:
    where = book.place.get(section.key, page)
    label = markup.text(f"{book.path(section)}:{line}")
    address = ("" if where == page else books.way(page, where)) + f"#{book.line(where, section.file, line)}"
    return tag("li", tag("a", label, href=address), " ", what)


def tick(record: Record, section: Section, recordings: Sequence[Record] = ()) -> Html:
    """How many claims of a section and of those below it hold, of how many: `✓ 44`, `○ 44 of 47`."""
    found = rulings(record, recordings, record.tree(section))
    if not found:
        return markup.NOTHING
    worst = min((ruling.verdict for ruling in found), key=WORST.index)
    count = Counter(ruling for ruling in found if ruling.verdict == worst)
    words = "; ".join(_words(ruling, n) for ruling, n in count.items())
    holding = sum(ruling.verdict == "holds" for ruling in found)
    mark = f"{SIGNS[worst]} {number(holding)}" + (
        "" if worst == "holds" else _(" of {n}", n=number(len(found)))
    )
    return tag("span", mark, class_=f"lb-tally lb-{worst}", title=words)


def tally(lectures: Sequence[tuple[Record, Sequence[Record]]]) -> Html:
    """One line on all lectures, each with its recordings: how many claims hold, where and when they ran."""
    found = [ruling for record, recordings in lectures for ruling in rulings(record, recordings)]
    if not found:
        return markup.NOTHING
    environment = lectures[0][0].environment
    machine = environment.machine_name
    torch = environment.versions.get("torch", "")
    where = _(
        "run on {machine}, {day}", machine=machine + (torch and f", torch {torch}"), day=day(environment.date)
    )
    return tag("p", counts(found), f" · {where}", class_="lb-tallies")
