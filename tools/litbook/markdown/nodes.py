"""A note as a tree: what `grammar` makes of its Markdown, once, and what every reader of prose walks.

The author's text -> `Note`, which has the text as it was read, `blocks`, and `refusals`: what the text holds
and no page can. Blocks hold blocks or inline nodes, as tuples:

    blocks    Paragraph  Heading  Quote  List(Item)  Fence  Display  Table(Cell)  Box  Fold  Rule
    inline    Text  Hole  Code  Math  Link  Citation  Reference  Name  Emphasis  Strong  Break

A node's `at` is where it stands, as an offset into `Note.text`.
Nodes are frozen and hold nothing that depends on a page: the same tree serves page, notebook, terminal and
checks. A back end is one `match` over blocks and one over inline nodes, closed by `assert_never`; who looks
for one kind of node takes `walk`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from litbook.i18n import _, gettext_noop


class NoteNode(Struct, frozen=True):
    """Anything in a note: `at` is the offset of its first character, of code that of the code itself."""

    at: int


# ---------------------------------------------------------------------------- inline


class TextNode(NoteNode, frozen=True):
    """Words. `written` is how the note has them, where that differs: a character escaped, or as an entity."""

    text: str
    written: str = ""


class Hole(NoteNode, frozen=True):
    """What a run puts there: an f-string's `{…}` in a lecture's text, an ellipsis in prose that never ran."""


class InlineCode(NoteNode, frozen=True):
    """Code between backticks."""

    text: str


class Math(NoteNode, frozen=True):
    """LaTeX between dollars in a line of text; `display` between two of them on each side."""

    latex: str
    display: bool = False


class Link(NoteNode, frozen=True):
    """A link as the author wrote it: `#name` for what the book has, `https://…`, or what a back end refuses.

    `form` is `text` for `[text](address)`, `angle` for `<address>`, `bare` for an address in running text.
    """

    children: tuple[Inline, ...]
    address: str
    title: str = ""
    form: Literal["text", "angle", "bare"] = "text"


class Citation(NoteNode, frozen=True):
    """`[@glu; @relu]`: keys of the bibliography."""

    keys: tuple[str, ...]


class LabelReference(NoteNode, frozen=True):
    """`[@fig:rate]`: a figure, table or equation that has this name."""

    label: str


class Name(NoteNode, frozen=True):
    """`[@fig:rate]:` at the start of a caption: it gives the figure or table its name."""

    label: str


class Emphasis(NoteNode, frozen=True):
    """`*text*` or `_text_`; `mark` is which."""

    children: tuple[Inline, ...]
    mark: str = "*"


class Strong(NoteNode, frozen=True):
    """`**text**` or `__text__`."""

    children: tuple[Inline, ...]
    mark: str = "**"


class Break(NoteNode, frozen=True):
    """The end of a line inside a paragraph; a `hard` one is seen."""

    hard: bool = False


Inline: TypeAlias = (
    TextNode | Hole | InlineCode | Math | Link | Citation | LabelReference | Name | Emphasis | Strong | Break
)

# ---------------------------------------------------------------------------- blocks


class Paragraph(NoteNode, frozen=True):
    """A paragraph; a `tight` one stands in a list without blank lines."""

    children: tuple[Inline, ...]
    tight: bool = False


class Heading(NoteNode, frozen=True):
    """A heading of level 1 to 6 within the note."""

    level: int
    children: tuple[Inline, ...]


class Quote(NoteNode, frozen=True):
    """`> text`."""

    children: tuple[BlockNode, ...]


class ListItem(NoteNode, frozen=True):
    """One item of a list."""

    children: tuple[BlockNode, ...]


class List(NoteNode, frozen=True):
    """A list; `start` is the first number of a numbered one, `mark` the sign before or behind each."""

    items: tuple[ListItem, ...]
    start: int | None = None
    mark: str = "-"


class Fence(NoteNode, frozen=True):
    """A block of code: fenced, perhaps with the name of its language, or indented."""

    text: str
    language: str = ""


class DisplayMath(NoteNode, frozen=True):
    """A formula of its own between `$$`, as it is written; `label` is the name that `[@eq:loss]:` gives."""

    latex: str
    label: str = ""


class TableCell(NoteNode, frozen=True):
    """A cell of a table."""

    children: tuple[Inline, ...]


class Table(NoteNode, frozen=True):
    """A table: its columns' titles and edges (`left`, `center`, `right` or nothing), rows of as many cells.

    `caption` begins with a `Name`, where the paragraph above the table did.
    """

    head: tuple[TableCell, ...]
    edges: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    caption: tuple[Inline, ...] = ()


class Box(NoteNode, frozen=True):
    """`!!! tip "Title"`: `kinds` are its words. Without a title, None, `box_kind` says what stands there."""

    kinds: tuple[str, ...]
    title: tuple[Inline, ...] | None
    children: tuple[BlockNode, ...]


class FoldBox(NoteNode, frozen=True):
    """`??? note "Title"`: a box that opens, `???+` one that is open."""

    kinds: tuple[str, ...]
    title: tuple[Inline, ...] | None
    children: tuple[BlockNode, ...]
    open: bool = False


class ThematicBreak(NoteNode, frozen=True):
    """A line across."""


BlockNode: TypeAlias = (
    Paragraph | Heading | Quote | List | Fence | DisplayMath | Table | Box | FoldBox | ThematicBreak
)

# ---------------------------------------------------------------------------- the note


class Refusal(Struct, frozen=True):
    """What a note holds and a page cannot: a finding's code and words, the way out, the text it is about."""

    code: str
    what: str
    way_out: str
    about: str = ""


class Note(Struct, frozen=True):
    """A note, read. `text` is the author's, with controls made visible and tabs as spaces."""

    text: str
    blocks: tuple[BlockNode, ...]
    refusals: tuple[Refusal, ...] = ()

    @property
    def line(self) -> tuple[Inline, ...]:
        """What the first paragraph holds: of a phrase, all of it."""
        first = self.blocks[0] if self.blocks else None
        return first.children if isinstance(first, Paragraph) else ()


def walk(note: Note) -> Iterator[NoteNode]:
    """Every node of a note in the order of its text, those around others first."""
    return _walk(note.blocks)


def _walk(values: Iterable[object]) -> Iterator[NoteNode]:
    for value in values:
        if isinstance(value, NoteNode):
            yield value
            yield from _walk(getattr(value, name) for name in value.__struct_fields__)
        elif isinstance(value, tuple):
            yield from _walk(value)


KINDS = {
    "fig": gettext_noop("Figure {n}"),
    "tab": gettext_noop("Table {n}"),
    "eq": gettext_noop("Equation {n}"),
}

BOXES = (
    gettext_noop("Note"),
    gettext_noop("Info"),
    gettext_noop("Tip"),
    gettext_noop("Important"),
    gettext_noop("Example"),
    gettext_noop("Question"),
    gettext_noop("Warning"),
    gettext_noop("Danger"),
    gettext_noop("Quote"),
    gettext_noop("Abstract"),
    gettext_noop("Success"),
)


def label_text(label: str, number: int | None = None) -> str:
    """`Figure 2` for `fig:rate`; `Figure rate` where it has no number."""
    prefix, name = label.split(":", 1)
    return _(KINDS[prefix], n=number or name)


def label_anchor(label: str) -> str:
    """The id of a figure, table or equation on its page."""
    return re.sub(r"[^\w-]", "-", label)


def box_title(box: Box | FoldBox) -> str:
    """`Tip`, in the site's language: what stands above a box that has no title."""
    return _(box_kind(box))


def box_kind(box: Box | FoldBox) -> str:
    """`Tip`: what stands above a box that has no title."""
    return box.kinds[0].capitalize() if box.kinds else ""


def plain_text(children: Iterable[Inline]) -> str:
    """What inline nodes say in words alone: code and formulas as they are written, no marks around them."""
    words = ""
    for node in children:
        match node:
            case TextNode(text=text) | InlineCode(text=text):
                words += text
            case Math(latex=latex):
                words += latex
            case Link(children=inside) | Emphasis(children=inside) | Strong(children=inside):
                words += plain_text(inside)
            case Break():
                words += "\n"
            case Hole():
                words += "…"
            case Citation() | LabelReference() | Name():
                pass
    return words
