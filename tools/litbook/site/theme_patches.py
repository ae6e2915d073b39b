"""What Material's templates leave nameless, named: its pages get names that a screen reader can say.

Material for MkDocs 9.8 has a dialog without a name, and with `navigation.indexes` the name of a section's
navigation is that of an empty label. Templates of our own would have to follow every release, so its HTML is
amended instead; what a later release names itself is left alone. The accessibility test says when a pattern
no longer matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from litbook.html import elements
from litbook.i18n import _

_DIALOG = re.compile(r'<div class="md-search" data-md-component="search" role="dialog">')
_SECTION = re.compile(
    r'(<nav class="md-nav" data-md-level="\d+") aria-labelledby="(__nav[\d_]+)_label"'
    r'( aria-expanded="\w+">\s*<label class="md-nav__title" for="\2">\s*'
    r'<span class="md-nav__icon md-icon"></span>)'
    r"(.*?)</label>",
    re.DOTALL,
)

_MENU = re.compile(
    r'(<div class="md-sidebar md-sidebar--primary".*?)'
    r'(<div class="md-content".*?</article>\s*</div>)',
    re.DOTALL,
)


def name_landmarks(page: str) -> str:
    """A page of the site, its search dialog and the navigation of each section with a name."""
    name = elements.attribute(_("Search"))
    page = _DIALOG.sub(lambda m: f'{m[0][:-1]} aria-label="{name}">', page)
    return _SECTION.sub(_with_title, page)


def put_article_first(page: str) -> str:
    """A page whose menu comes after its article, where the Tab key leads; a style puts it on the left."""
    return _MENU.sub(r"\2\1", page, count=1)


def announce_formulas(page: str) -> str:
    """A page with formulas, whose first script is told so: it asks for their font before all is drawn."""
    return page.replace('/folder.js">', '/folder.js" data-formulas>', 1) if "<math" in page else page


def drop_indents(page: str) -> str:
    """A page without the blank lines and indents around its article: a thirtieth of its weight."""
    start, end = page.find("<article"), page.rfind("</article>")
    if not 0 <= start < end:
        return page
    around = (re.sub(r"\n\s+", "\n", it) for it in (page[:start], page[end:]))
    return page[start:end].join(around)


def _with_title(match: re.Match[str]) -> str:
    """The section's title is already HTML: without its tags it may be an attribute."""
    opening, _, inside, title = match.groups()
    words = " ".join(re.sub(r"<[^>]*>", " ", title).split()).replace('"', "&quot;")
    return f'{opening} aria-label="{words}"{inside}{title}</label>'


def title(text: str) -> str:
    """A title as text: Material prints titles as HTML. What is escaped already stays as it is."""
    text = re.sub(r"&(?!#?\w+;)", "&amp;", text)
    return text.replace("<", "&lt;").replace(">", "&gt;")


def escape_titles(items: Iterable[Any]) -> None:
    """The items of a MkDocs navigation, and what is below them, with titles that are text."""
    for item in items:
        given = item.__dict__.get("title")  # a page without one takes its heading, which Markdown has escaped
        if isinstance(given, str):
            item.title = title(given)
        escape_titles(item.children or ())


def escape_heading(page: Any) -> None:
    """The browser's tab and the header: for these Material takes all tags away, and unescapes the rest."""
    text = title(page.title or "")
    if "&" in text:
        page.meta.setdefault("title", text)
