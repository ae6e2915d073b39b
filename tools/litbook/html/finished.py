"""Blocks of HTML and headings -> a finished page: its Markdown, and what others need to know of it."""

from __future__ import annotations

from collections.abc import Iterable

from litbook.document.search import Passage
from litbook.render.markup import Html


class Page(str):
    """The Markdown of a page; `blocks` are the headings and blocks of HTML that it is made of.

    `passages` are what a search finds on it.
    """

    __slots__ = ("blocks", "passages")
    blocks: tuple[Html, ...]
    passages: tuple[Passage, ...]


def page(blocks: Iterable[Html], passages: Iterable[Passage] = (), meta: str = "") -> Page:
    """The page of these blocks, below the lines of YAML that say what MkDocs is to make of it.

    Without `passages` it is a page that no search finds.
    """
    shown, found = (*filter(None, blocks),), (*passages,)
    meta += "" if found else "search:\n  exclude: true\n"
    made = Page((f"---\n{meta}---\n\n" if meta else "") + "\n\n".join(shown) + "\n")
    made.blocks, made.passages = shown, found
    return made
