"""Citations and references as HTML: a number that opens a work, and the list at the end of a page."""

from __future__ import annotations

import re

from litbook.document.bibliography import Entry, names
from litbook.document.setting import Citations
from litbook.render import markup
from litbook.render.catalogue import _
from litbook.render.markup import Html, tag


def citation(number: int, entry: Entry, *, opens: bool) -> Html:
    """A work's number, which opens it or leads to it."""
    label = _("reference {n}: {work}", n=number, work=f"{names(entry)} {entry.year}".strip())
    if opens:
        return tag("button", number, type="button", popovertarget=_card(entry.key), aria_label=label)
    return tag("a", number, href=f"#{anchor(entry.key)}", aria_label=label)


def reference(entry: Entry) -> Html:
    """The reference as HTML: authors, title (linked), venue, year."""
    title = tag("cite", entry.title)
    if entry.url:
        title = tag("a", title, href=entry.url)
    tail = ", ".join(part for part in (entry.venue, entry.year) if part)
    parts = [markup.text(names(entry)), title, markup.text(tail)]
    return markup.join([markup.join(filter(None, parts), ". "), "."])


def references(citations: Citations) -> Html:
    """The list at the page's end, with what citations open, as one line of HTML; else empty."""
    works = [(key, reference(citations.bibliography[key])) for key in citations.cited]
    items = [tag("li", work, id=anchor(key)) for key, work in works]
    cards = [
        tag(
            "div",
            work,
            " ",
            tag("a", _("In the list"), href=f"#{anchor(key)}"),
            class_="lb-cited",
            id=_card(key),
            popover="auto",
        )
        for key, work in works
        if citations.opens
    ]
    return tag("div", tag("ol", *items, class_="lb-references"), *cards) if items else markup.NOTHING


def anchor(key: str) -> str:
    """The id of a reference on its page."""
    return "ref-" + re.sub(r"[^\w-]", "-", key)


def _card(key: str) -> str:
    return f"cited-{anchor(key)}"
