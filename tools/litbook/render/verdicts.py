"""What a page says about its claims: how many hold, and, before all else, what fails."""

from __future__ import annotations

from collections.abc import Sequence

from litbook.render import books, markup
from litbook.render.books import Book
from litbook.render.evidence import day
from litbook.render.margin import SIGNS
from litbook.render.section import failures
from litbook.trace import Claim, Record, Verdict


def summary(book: Book, mine: Sequence[int]) -> str:
    """`41 claims on this page, all holding.`"""
    claims = [c for c in book.record.claims if c.function in mine]
    return markup.tag("p", counted(claims), class_="lb-summary") if claims else ""


def counted(claims: Sequence[Claim]) -> str:
    """How many claims there are, and how many of them hold, fail, and so on."""
    counts = {verdict: sum(c.verdict == verdict for c in claims) for verdict in SIGNS}
    if counts["holds"] == len(claims):
        tick = markup.tag("span", "✓", class_="lb-ok")
        return f"{tick} {_claims(len(claims))}, {'it holds' if len(claims) == 1 else 'all hold'}"
    named = {
        "holds": "hold",
        "fails": "fail",
        "not-reached": "not reached",
        "needs-device": "on another device",
    }
    parts = [
        markup.tag("span", f"{SIGNS[v]} {n} {named[v]}", class_=f"lb-tally lb-{v}")
        for v, n in counts.items()
        if n
    ]
    return f"{_claims(len(claims))}: " + " · ".join(parts)


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


def tick(record: Record, index: int) -> str:
    """The claims of a section and of those below it as one mark."""
    below = set(books.tree(record, index))
    verdicts = [c.verdict for c in record.claims if c.function in below]
    if not verdicts:
        return ""
    order: tuple[Verdict, ...] = ("fails", "not-reached", "needs-device", "holds")
    worst = next(v for v in order if v in verdicts)
    count = verdicts.count(worst)
    word = {
        "holds": "hold",
        "fails": "fail",
        "not-reached": "not reached",
        "needs-device": "need another device",
    }[worst]
    return markup.tag(
        "span", f"{SIGNS[worst]} {count}", class_=f"lb-tally lb-{worst}", title=f"{count} {word}"
    )


def tally(lectures: Sequence[Record]) -> str:
    """One line on all lectures: how many claims hold, where and when they ran."""
    claims = [claim for record in lectures for claim in record.claims]
    if not claims:
        return ""
    environment = lectures[0].environment
    machine = environment.cpu if environment.device.kind == "cpu" else environment.device.name
    torch = environment.versions.get("torch", "")
    where = f"run on {machine}{', torch ' + torch if torch else ''}, {day(environment.date)}"
    return markup.tag("p", f"{counted(claims)} · {markup.text(where)}", class_="lb-tallies")
