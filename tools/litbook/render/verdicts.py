"""What a page says about its claims: how many hold, and, before all else, what fails.

A claim that this build could not run has the verdict of the newest recording of the same text, under the name
of the recorded device; where there is none, it has not run, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from litbook.record.model import Claim, Record, Verdict
from litbook.render import books, markup
from litbook.render.books import Book
from litbook.render.evidence import day, others
from litbook.render.margin import SIGNS
from litbook.render.section import failures

WORST: tuple[Verdict, ...] = ("fails", "not-reached", "needs-device", "holds")  # first


@dataclass(frozen=True)
class Ruling:
    """What became of a claim, and where: `device` is that of the recording, or the one it still needs."""

    verdict: Verdict
    device: str = ""


def rulings(
    record: Record, recordings: Sequence[Record], functions: Iterable[int] | None = None
) -> list[Ruling]:
    """The ruling on every claim of these functions, of all by default."""
    wanted = range(len(record.functions)) if functions is None else functions
    return [ruling for index in wanted for ruling in _of_function(record, recordings, index)]


def _of_function(record: Record, recordings: Sequence[Record], index: int) -> list[Ruling]:
    claims = record.claims_of.get(index, [])
    own = [Ruling(claim.verdict) for claim in claims]
    if Ruling("needs-device") not in own:
        return own
    recorded = _recorded(record, recordings, index, len(claims))
    return [
        there if here.verdict == "needs-device" else here for here, there in zip(own, recorded, strict=True)
    ]


def _recorded(record: Record, recordings: Sequence[Record], index: int, count: int) -> list[Ruling]:
    """The rulings of the newest recording that ran the same text; else what is missing."""
    for other in others(record, index, recordings):
        there: Sequence[Claim] = other.record.claims_of.get(other.function, [])
        if other.current and len(there) == count and any(c.verdict != "needs-device" for c in there):
            return [Ruling(c.verdict, other.record.environment.device.name) for c in there]
    return [Ruling("needs-device", record.functions[index].requires or "")] * count


def summary(book: Book, mine: Sequence[int]) -> str:
    """`41 claims, all hold`, of these functions."""
    found = rulings(book.record, book.recordings, mine)
    return markup.tag("p", counted(found), class_="lb-summary") if found else ""


def counted(found: Sequence[Ruling]) -> str:
    """How many claims there are, and how many of them hold, fail, and so on, and where."""
    if all(ruling == Ruling("holds") for ruling in found):
        tick = markup.tag("span", "✓", class_="lb-ok")
        return f"{tick} {_claims(len(found))}, {'it holds' if len(found) == 1 else 'all hold'}"
    parts = [
        markup.tag(
            "span", f"{SIGNS[it.verdict]} {markup.text(_said(it, n))}", class_=f"lb-tally lb-{it.verdict}"
        )
        for it, n in sorted(Counter(found).items(), key=lambda it: _rank(it[0]))
    ]
    return f"{_claims(len(found))}: " + " · ".join(parts)


def _rank(ruling: Ruling) -> tuple[bool, bool, int, str]:
    """This build's first, and in the order of the signs; then recordings', then what has not run."""
    waits = ruling.verdict == "needs-device"
    return waits, bool(ruling.device), list(SIGNS).index(ruling.verdict), ruling.device


def _said(ruling: Ruling, count: int) -> str:
    """`19 hold, as recorded on Some GPU`, `55 not run (need a GPU)`."""
    if ruling.verdict == "needs-device":
        device = {"cuda": "a GPU", "": "another device"}.get(ruling.device, ruling.device)
        return f"{count:,} not run ({'needs' if count == 1 else 'need'} {device})"
    word = {"holds": "hold", "fails": "fail", "not-reached": "not reached"}[ruling.verdict]
    return f"{count:,} {word}" + (f", as recorded on {ruling.device}" if ruling.device else "")


def _claims(count: int) -> str:
    return f"{count:,} claim" + ("" if count == 1 else "s")


def alarm(book: Book, page: str, mine: Sequence[int]) -> str:
    """A box at the top that names every failure, with links to the lines."""
    claims, errors = failures(book.record, mine)
    if not claims and not errors:
        return ""
    items = [_alarm_item(book, page, c.function, c.line, c.caption or c.text) for c in claims]
    items += [_alarm_item(book, page, e.function, e.line, e.message) for e in errors]
    head = f"{_claims(len(claims))} {'fails' if len(claims) == 1 else 'fail'}" if claims else ""
    tail = f"{len(errors)} error{'' if len(errors) == 1 else 's'}" if errors else ""
    title = markup.tag("p", markup.tag("strong", " and ".join(filter(None, (head, tail)))))
    return markup.tag("div", title, markup.tag("ul", *items), class_="lb-alarm", role="note")


def _alarm_item(book: Book, page: str, function: int, line: int, what: str) -> str:
    where = book.place.get(function, page)
    label = markup.text(f"{book.record.sources[0].path}:{line}")
    link = markup.tag("a", label, href=("" if where == page else books.way(page, where)) + f"#L{line}")
    return markup.tag("li", link, " ", markup.text(what))


def tick(record: Record, index: int, recordings: Sequence[Record] = ()) -> str:
    """The claims of a section and of those below it as one mark."""
    found = rulings(record, recordings, sorted({*books.tree(record, index)}))
    if not found:
        return ""
    worst = min((ruling.verdict for ruling in found), key=WORST.index)
    count = Counter(ruling for ruling in found if ruling.verdict == worst)
    said = "; ".join(_said(ruling, n) for ruling, n in count.items())
    mark = f"{SIGNS[worst]} {count.total()}"
    return markup.tag("span", mark, class_=f"lb-tally lb-{worst}", title=said)


def tally(lectures: Sequence[tuple[Record, Sequence[Record]]]) -> str:
    """One line on all lectures, each with its recordings: how many claims hold, where and when they ran."""
    found = [ruling for record, recordings in lectures for ruling in rulings(record, recordings)]
    if not found:
        return ""
    environment = lectures[0][0].environment
    machine = environment.cpu if environment.device.kind == "cpu" else environment.device.name
    torch = environment.versions.get("torch", "")
    where = f"run on {machine}{', torch ' + torch if torch else ''}, {day(environment.date)}"
    return markup.tag("p", f"{counted(found)} · {markup.text(where)}", class_="lb-tallies")
