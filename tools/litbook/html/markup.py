"""Text -> HTML that can only be text, wherever on a page it lands.

`Html` is a type of its own: whatever else is put into an element becomes text, so that nothing that a program
produced gets into a page as markup. Whoever makes an `Html` in another way says there why it is harmless.

A page is Markdown, and its HTML blocks pass through Python-Markdown untouched only while they stay on
one line and hold nothing that a preprocessor reacts to. So every block is built here: line ends become
character references, controls become visible, and every attribute is quoted and escaped.

What others need to know of finished HTML it carries with it, so that nobody reads it: the ids in it, a
heading its element, a drawing its width, a page its blocks and what a search finds there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from litbook.document.search import Passage
from litbook.document.visible import spell


class Html(str):
    """HTML on one line, finished. `ids` are those of its elements, which links may lead to."""

    __slots__ = ()
    ids: tuple[str, ...] = ()


class _Named(Html):
    """HTML with ids in it."""

    __slots__ = ("ids",)
    ids: tuple[str, ...]


class Heading(Html):
    """A heading of a page, as Markdown has it; `element` is the same as HTML, for the inside of another."""

    __slots__ = ("element",)
    element: Html


class Drawing(_Named):
    """A drawing, so many pixels wide in its own size."""

    __slots__ = ("width",)
    width: float


class Page(str):
    """The Markdown of a page; `blocks` are the headings and blocks of HTML that it is made of.

    `passages` are what a search finds on it.
    """

    __slots__ = ("blocks", "passages")
    blocks: tuple[Html, ...]
    passages: tuple[Passage, ...]


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
    "\r": "&#9229;",
}
_SPECIAL = re.compile(r"[&<>\"'`]|[^ -~\u00a1-\u00ac\u00ae-\u05ff\u2010-\u2027\u2030-\u205e\u2070-\u2bff]")

# Letters and their points that are read from right to left, and the words that hold one.
_LEFT = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
# From the start of a word only: else a long one would be looked through from each of its letters.
_TURNED = re.compile(rf"(?<![\w{_LEFT}])\w*[{_LEFT}](?:[\w{_LEFT}]| (?=[{_LEFT}]))*")


def text(value: object) -> Html:
    """`value` as HTML text or a quoted attribute: never markup, always on one line, nothing hidden."""
    return Html(_SPECIAL.sub(lambda sign: _ESCAPES.get(sign[0]) or spell(sign[0]), str(value)))


def html(child: object) -> Html:
    """`child` as it is where it is HTML, else its text.

    Words from right to left stand alone: else they turn what is beside them around, `x - 2` into `2 - x`.
    """
    if isinstance(child, Html):
        return child
    made = text(child)
    return made if made.isascii() else Html(_TURNED.sub(r"<bdi>\g<0></bdi>", made))


def join(parts: Iterable[object], between: object = NOTHING) -> Html:
    """Pieces of HTML and texts one after the other."""
    made = [*map(html, parts)]
    return _named(html(between).join(made), [name for part in made for name in part.ids])


def _named(text: str, ids: Sequence[str]) -> Html:
    """The text as HTML with these ids in it."""
    if not ids:
        return Html(text)
    made = _Named(text)
    made.ids = (*ids,)
    return made


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


_EMPTY = frozenset("br hr img track path rect circle polyline line".split())


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element with its attributes, as in `opening`, and what stands in it: HTML, all else as its text."""
    start, ident = opening(name, **attributes), attributes.get("id")
    inside = [*map(html, children)]
    ids = [name for part in inside for name in part.ids]
    if isinstance(ident, str):
        ids.insert(0, ident)
    if name in _EMPTY:
        return _named(f"{start[:-1]} />", ids)
    return _named(start if name == "input" else f"{start}{''.join(inside)}</{name}>", ids)


def page(blocks: Iterable[Html], passages: Iterable[Passage] = (), meta: str = "") -> Page:
    """The page of these blocks, below the lines of YAML that say what MkDocs is to make of it.

    Without `passages` it is a page that no search finds.
    """
    shown, passages = (*filter(None, blocks),), (*passages,)
    meta += "" if passages else "search:\n  exclude: true\n"
    made = Page((f"---\n{meta}---\n\n" if meta else "") + "\n\n".join(shown) + "\n")
    made.blocks, made.passages = shown, passages
    return made


def heading(level: int, inside: object, name: str = "", class_: str = "", label: str = "") -> Heading:
    """A heading of the page, which Python-Markdown makes, so that its table of contents has it.

    `label`, words and spaces, is what the table of contents says instead.
    """
    depth, content = min(6, level), for_heading(html(inside))
    mark = re.sub(r"[^\w.:-]", "-", name)  # anything else would be further attributes
    short = f'data-toc-label="{label}"'
    attributes = " ".join([f"#{mark}"] * bool(mark) + [f".{class_}"] * bool(class_) + [short] * bool(label))
    made = Heading(f"{'#' * depth} {content}{f' {{{attributes}}}' if attributes else ''}")
    made.element = tag(f"h{depth}", content, id=mark or None)
    return made


def unlisted(block: Html) -> Html:
    """A block of a page for the inside of an element: of a heading its element."""
    return block.element if isinstance(block, Heading) else block


# What Python-Markdown, its attribute lists and the table of contents would react to inside a heading.
_MARKDOWN = re.compile(r"[\\`*_{}\[\]()#+\-.!|:~^=$@]")


def for_heading(inside: str) -> Html:
    """Inline HTML so that Markdown around it changes nothing: `# ` + this is a heading with that HTML."""
    pieces = re.split(r"(<[^<>]*>|&#?\w+;)", inside)
    # Every second piece is an element or a reference.
    joined = (re.sub(r"(?<=\w)-(?=\w)", "-\u2060", text) for text in pieces[::2])  # no line ends there
    pieces[::2] = (_MARKDOWN.sub(lambda sign: f"&#{ord(sign[0])};", text) for text in joined)
    return Html("".join(pieces))
