"""Citations and references as HTML: a number that opens a work, and the list at the end of a page."""

from __future__ import annotations

import re

from litbook.html import elements
from litbook.html.elements import Html, tag
from litbook.i18n import _
from litbook.markdown.bibliography import BibliographyEntry, names
from litbook.markdown.links import Citations


def citation(number: int, entry: BibliographyEntry, *, opens: bool) -> Html:
    """A work's number, which opens it or leads to it."""
    label = _("reference {n}: {work}", n=number, work=f"{names(entry)} {entry.year}".strip())
    place = anchor(entry.key)
    if opens:
        return tag("button", number, type="button", popovertarget=f"cited-{place}", aria_label=label)
    return tag("a", number, href=f"#{place}", aria_label=label)


def references(citations: Citations) -> list[Html]:
    """The works that a page cites, under a heading, with what citations open; nothing where it cites none."""
    items, cards = [], []
    for key in citations.cited:
        entry, place = citations.bibliography[key], anchor(key)
        title = tag("cite", entry.title)
        title = tag("a", title, href=entry.url) if entry.url else title
        tail = ", ".join(part for part in (entry.venue, entry.year) if part)
        work = elements.join(filter(None, [elements.text(names(entry)), title, elements.text(tail)]), ". ")
        work = elements.join([work, "."])
        items.append(tag("li", work, id=place))
        if citations.opens:
            back = tag("a", _("In the list"), href=f"#{place}")
            cards.append(tag("div", work, " ", back, class_="lb-cited", id=f"cited-{place}", popover="auto"))
    if not items:
        return []
    works = tag("div", tag("ol", *items, class_="lb-references"), *cards)
    return [elements.heading(2, _("References"), "references"), works]


def anchor(key: str) -> str:
    """The id of a reference on its page."""
    return "ref-" + re.sub(r"[^\w-]", "-", key)
