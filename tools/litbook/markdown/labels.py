"""The names of figures, tables and equations, `fig:rate`: how they are said, their anchors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from litbook.i18n import _, later
from litbook.markdown.nodes import Box, Display, Fold, Name, Note, kind, walk

KINDS = {"fig": later("Figure {n}"), "tab": later("Table {n}"), "eq": later("Equation {n}")}

BOXES = (later("Note"), later("Info"), later("Tip"), later("Important"), later("Example"), later("Question"),
         later("Warning"), later("Danger"), later("Quote"), later("Abstract"), later("Success"))  # fmt: skip


def boxed(box: Box | Fold) -> str:
    """`Tip`, in the site's language: what stands above a box that has no title."""
    return _(kind(box))


def named(label: str, number: int | None = None) -> str:
    """`Figure 2` for `fig:rate`; `Figure rate` where it has no number."""
    kind, name = label.split(":", 1)
    return _(KINDS[kind], n=number or name)


def anchor(label: str) -> str:
    """The id of a figure, table or equation on its page."""
    return re.sub(r"[^\w-]", "-", label)


def given(note: Note) -> Iterator[str]:
    """The names that a note gives, in its order."""
    for node in walk(note):
        match node:
            case Name(label=label) | Display(label=label) if label:
                yield label
