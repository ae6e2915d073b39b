"""Text -> HTML that can only be text, wherever on a page it lands.

`Html` is a type of its own, which the type checker tells from `str`: nothing that a program produced gets
into a page but through `text`, or as an attribute of `opening`. Whoever makes an `Html` in another way says
there why it is harmless.

A page is Markdown, and its HTML blocks pass through Python-Markdown untouched only while they stay on
one line and hold nothing that a preprocessor reacts to. So every block is built here: line ends become
character references, controls become visible, and every attribute is quoted and escaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NewType

Html = NewType("Html", str)
NOTHING, SPACE = Html(""), Html(" ")

_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
    "`": "&#96;",
    "\n": "&#10;",
    "\t": "&#9;",
}
_SPECIAL = re.compile(r"[&<>\"'`]|[^ -~\u00a1-\u00ac\u00ae-\u05ff\u2010-\u2027\u2030-\u205e\u2070-\u2bff]")
# The value of `data_search_exclude`: Material's search takes the attribute off the page where it has one.
UNSEARCHED = "1"
_KEPT_FORMATS = "\u200d\ufe0f"  # what joins emoji


def text(value: object) -> Html:
    """`value` as HTML text or a quoted attribute: never markup, always on one line, nothing hidden."""
    return Html(_SPECIAL.sub(_escape, str(value)))


def join(parts: Iterable[Html], between: Html = NOTHING) -> Html:
    """Pieces of HTML one after the other."""
    return Html(between.join(parts))


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character in _KEPT_FORMATS or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    return "&#9229;" if character == "\r" else f"⟨U+{ord(character):04X}⟩"


def opening(name: str, /, **attributes: object) -> Html:
    """The start of an element. What the attributes hold is text.

    `class_` and `for_` lose the underscore, others become hyphens; None and False leave an attribute out.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        parts.append(label if value is True else f'{label}="{text(value)}"')
    return Html(f"<{' '.join(parts)}>")


def closing(name: str) -> Html:
    """The end of an element."""
    return Html(f"</{name}>")


_EMPTY = frozenset("br hr img path rect circle polyline line".split())


def tag(name: str, /, *children: Html, **attributes: object) -> Html:
    """An element with its attributes, as in `opening`, and what stands in it."""
    start = opening(name, **attributes)
    if name in _EMPTY:
        return Html(f"{start[:-1]} />")
    return start if name == "input" else Html(f"{start}{''.join(children)}</{name}>")


def page(blocks: Iterable[Html]) -> str:
    """The Markdown of a page."""
    return "\n\n".join(filter(None, blocks)) + "\n"


def heading(level: int, inside: Html, name: str = "") -> Html:
    """A heading of the page, which Python-Markdown makes, so that its table of contents has it."""
    mark = re.sub(r"[^\w.:-]", "-", name)  # anything else would be further attributes
    return Html(f"{'#' * min(6, level)} {for_heading(inside)}" + (f" {{#{mark}}}" if mark else ""))


# What Python-Markdown, its attribute lists and the table of contents would react to inside a heading.
_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#+\-.!|:~^=$@]|(?<=[hH])(?=ttp)")


def for_heading(html: Html) -> Html:
    """Inline HTML so that Markdown around it changes nothing: `# ` + this is a heading with that HTML."""
    pieces = re.split(r"(<[^<>]*>|&#?\w+;)", html)
    return Html("".join(p if i % 2 else _MARKDOWN.sub(_reference, p) for i, p in enumerate(pieces)))


def _reference(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};" if match[0] else ""
