"""Text -> HTML that can only be text, wherever on a page it lands.

`Html` is a type of its own: whatever else is put into an element becomes text, so that nothing that a program
produced gets into a page as markup. Whoever makes an `Html` in another way says there why it is harmless.

A page is Markdown, and its HTML blocks pass through Python-Markdown untouched only while they stay on
one line and hold nothing that a preprocessor reacts to. So every block is built here: line ends become
character references, controls become visible, and every attribute is quoted and escaped.

What others need to know of finished HTML it carries with it, so that nobody reads it: the ids in it and the
parts it was made of, a heading its element, a drawing its width, a page its blocks and what a search finds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from litbook.markdown.escape import spell
from litbook.page.search import SearchPassage


class Html(str):
    """HTML on one line, finished. `ids` are those of its elements, which links may lead to.

    `parts` are what it was made of, where it may stand in a line and is more than one thing.
    """

    __slots__ = ()
    ids: tuple[str, ...] = ()
    parts: tuple[Html, ...] = ()


class PlainHtml(Html):
    """HTML that is text alone."""

    __slots__ = ()


class _Markup(Html):
    """HTML that was made of other HTML."""

    __slots__ = ("ids", "parts")
    ids: tuple[str, ...]
    parts: tuple[Html, ...]


class PageHeading(Html):
    """A heading of a page, as Markdown has it; `element` is the same as HTML, for the inside of another."""

    __slots__ = ("element",)
    element: Html


class Drawing(Html):
    """A drawing, so many pixels wide in its own size."""

    __slots__ = ("ids", "width")
    ids: tuple[str, ...]
    width: float


class Page(str):
    """The Markdown of a page; `blocks` are the headings and blocks of HTML that it is made of.

    `passages` are what a search finds on it.
    """

    __slots__ = ("blocks", "passages")
    blocks: tuple[Html, ...]
    passages: tuple[SearchPassage, ...]


NOTHING, SPACE = Html(""), Html(" ")

_ESCAPES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "'": "&#39;",
    "`": "&#96;",
    "\n": "&#10;",
    "\t": "&#9;",
    "\r": "&#9229;",
}
_SPECIAL = re.compile(r"[&<>'`]|[^ -~\u00a1-\u00ac\u00ae-\u05ff\u2010-\u2027\u2030-\u205e\u2070-\u2bff]")

# Letters and their points that are read from right to left, and the words that hold one.
_LEFT = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
# From the start of a word only: else a long one would be looked through from each of its letters.
_TURNED = re.compile(rf"((?<![\w{_LEFT}])\w*[{_LEFT}](?:[\w{_LEFT}]| (?=[{_LEFT}]))*)")


def text(value: object) -> Html:
    """`value` as HTML text: never markup, always on one line, nothing hidden."""
    return PlainHtml(_SPECIAL.sub(lambda sign: _ESCAPES.get(sign[0]) or spell(sign[0]), str(value)))


def attribute(value: object) -> Html:
    """`value` as what stands between the quotes of an attribute."""
    return Html(text(value).replace('"', "&quot;"))


def html(child: object) -> Html:
    """`child` as it is where it is HTML, else its text.

    Words from right to left stand alone: else they turn what is beside them around, `x - 2` into `2 - x`.
    """
    if isinstance(child, Html):
        return child
    made = text(child)
    if made.isascii():
        return made
    pieces = map(PlainHtml, _TURNED.split(made))  # every second one is turned
    return join(tag("bdi", piece) if turned % 2 else piece for turned, piece in enumerate(pieces))


def join(parts: Iterable[object], between: object = NOTHING) -> Html:
    """Pieces of HTML and texts one after the other."""
    made, gap = [*map(html, parts)], html(between)
    return _join_parts([part for piece in made for part in (gap, piece)][1:] if gap else made)


def _join_parts(parts: Sequence[Html], ident: object = None) -> _Markup:
    """HTML of these parts; `ident` is the id of its own element."""
    made = _Markup("".join(parts))
    made.parts = (*parts,)
    made.ids = (*([ident] if isinstance(ident, str) else ()), *[n for p in parts if p.ids for n in p.ids])
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
        parts.append(label if value is True else f'{label}="{attribute(value)}"')
    return Html(f"<{' '.join(parts)}>")


def closing(name: str) -> Html:
    """The end of an element."""
    return Html(f"</{name}>")


def data(thing: object, *, ours: bool = False) -> Html:
    """JSON as the value of an attribute, in single quotes: it holds many double ones.

    In ASCII, where nothing hides and no line ends; words that are `ours` as they are.
    """
    text = json.dumps(thing, ensure_ascii=not ours, separators=(",", ":"))
    return Html("'" + text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;") + "'")


# None stands in a heading, and to keep the parts of each would keep a page many times over.
_BLOCKS = frozenset("p div section figure table tr td li ul ol dl dd dt details nav pre svg g".split())
_EMPTY = frozenset("br hr img path rect circle polyline line".split())


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element with its attributes, as in `opening`, and what stands in it: HTML, all else as its text."""
    start, ident = opening(name, **attributes), attributes.get("id")
    if name in _EMPTY:
        return _join_parts([Html(f"{start[:-1]} />")], ident)
    made = _join_parts([start] if name == "input" else [start, *map(html, children), closing(name)], ident)
    if name in _BLOCKS:
        made.parts = ()
    return made


def page(blocks: Iterable[Html], passages: Iterable[SearchPassage] = (), meta: str = "") -> Page:
    """The page of these blocks, below the lines of YAML that say what MkDocs is to make of it.

    Without `passages` it is a page that no search finds.
    """
    shown, passages = (*filter(None, blocks),), (*passages,)
    meta += "" if passages else "search:\n  exclude: true\n"
    made = Page((f"---\n{meta}---\n\n" if meta else "") + "\n\n".join(shown) + "\n")
    made.blocks, made.passages = shown, passages
    return made


def heading(level: int, inside: object, name: str = "", class_: str = "", label: str = "") -> PageHeading:
    """A heading of the page, which Python-Markdown makes, so that its table of contents has it.

    `label`, words and spaces, is what the table of contents says instead.
    """
    depth, content = min(6, level), for_heading(html(inside))
    mark = re.sub(r"[^\w.:-]", "-", name)  # anything else would be further attributes
    short = f'data-toc-label="{label}"'
    attributes = " ".join([f"#{mark}"] * bool(mark) + [f".{class_}"] * bool(class_) + [short] * bool(label))
    made = PageHeading(f"{'#' * depth} {content}{f' {{{attributes}}}' if attributes else ''}")
    made.element = tag(f"h{depth}", content, id=mark or None)
    return made


def without_heading(block: Html) -> Html:
    """A block of a page for the inside of an element: of a heading its element."""
    return block.element if isinstance(block, PageHeading) else block


# What Python-Markdown, its attribute lists and the table of contents would react to inside a heading, and
# what is left as it is: a character reference.
_MARKDOWN = re.compile(r"(?P<made>&#?\w+;)|(?<=\w)(?P<joining>-)(?=\w)|[\\`*_{}\[\]()#+\-.!|:~^=$@]")


def for_heading(inside: Html) -> Html:
    """Inline HTML so that Markdown around it changes nothing: `# ` + this is a heading with that HTML.

    Within a word no line of a heading ends at a hyphen.
    """

    def reference(sign: re.Match[str]) -> str:
        return sign["made"] or f"&#{ord(sign[0])};" + "\u2060" * bool(sign["joining"])

    if isinstance(inside, PlainHtml):
        return Html(_MARKDOWN.sub(reference, inside))
    return Html("".join(map(for_heading, inside.parts))) if inside.parts else inside
