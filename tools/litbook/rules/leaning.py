"""Sections that read what another section changes: told with both lines. Reads the text alone."""

from __future__ import annotations

import ast

from litbook.finding import Finding, Place
from litbook.lecture.leaning import Leanings
from litbook.lecture.model import Lecture

WAY_OUT = (
    "make it in a helper that both call; until then the other section runs first, whichever is asked for"
)
PUT_BACK = (
    "set it with unittest.mock.patch, or put it back at the section's end; until then the other section runs"
    " first, whichever is asked for"
)


def find_leaning(lecture: Lecture) -> list[Finding]:
    """The sections that lean on another one, each with the line that reads and the line that changes."""
    found = list[Finding]()
    for one in Leanings(lecture).all:
        reader, changer = (lecture.functions[index].name for index in (one.reader, one.changer))
        what = f"{reader} reads {one.name}, which {changer} changes"
        changed = _place(lecture, *one.changed)
        details = (f"changed at {changed.path}:{changed.line}: {changed.text.strip()}",)
        way_out = PUT_BACK if one.of_others else WAY_OUT
        found.append(Finding("leans", what, _place(lecture, *one.read), way_out, details=details))
    return found


def _place(lecture: Lecture, file: int, node: ast.AST) -> Place:
    assert isinstance(node, ast.expr | ast.stmt)
    return lecture.files[file].place_of(node)
