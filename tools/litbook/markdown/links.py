"""What surrounds a note: where it stands, what it may cite and link to, and where its problems go.

A back end asks it for every link, citation and reference of a tree. What does not exist is a problem with the
place in the lecture's file, the same whoever asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from litbook.finding import Finding, Place
from litbook.markdown.bibliography import Bibliography, BibliographyEntry, BibliographyError, find
from litbook.markdown.nodes import Note, label_text

LINKED = (
    "link to a function or class that this lecture defines, without @hide, or name its module in __beside__"
)

T = TypeVar("T")

FAR = 200  # lines of a note in which a problem's place is looked for

NameResolution = Callable[[str], str | None]
"""A function's name -> the address of its section, from the page in hand; None where it has none."""

LabelResolver = Callable[[str], tuple[str, str] | None]
"""`fig:rate` -> `Figure 2` and its address from the page in hand, if it has one; None for an unknown name."""


@dataclass
class Citations:
    """The works that one page cites, in the order of their first citation.

    `opens` says that a citation opens beside its line, for pages that end in the list of references; `file`
    is what the book calls its bibliography.
    """

    bibliography: Bibliography
    cited: list[str] = field(default_factory=list)
    opens: bool = False
    file: str = "references.bib"

    def number(self, key: str) -> tuple[int, BibliographyEntry]:
        """A work and its number on the page, from 1. `BibliographyError` for an unknown key."""
        entry = find(self.bibliography, key)
        if key not in self.cited:
            self.cited.append(key)
        return self.cited.index(key) + 1, entry


@dataclass
class NoteContext:
    """Where notes stand, and what the page has counted so far."""

    citations: Citations
    problems: list[Finding] = field(default_factory=list)
    place: Place | None = None
    ahead: Sequence[str] = ()  # the lines of the file from `place` on
    resolve: NameResolution = lambda _: None
    number: LabelResolver = lambda _: None
    ids: str = "note"  # headings of notes become f"{ids}-1", ...
    level: int = 2  # the heading above the note
    headings: int = 0

    def report(self, code: str, what: str, way_out: str = "", at: str = "") -> None:
        """Keep a problem of the note in hand: where its lines say `at`, else where it begins."""
        place, first = self.place, at.partition("\n")[0]
        line = next((n for n, text in enumerate(self.ahead) if first and first in text), None)
        if place is not None and line is not None:
            text = self.ahead[line]
            place = replace(place, line=place.line + line, column=text.index(first) + 1, text=text)
        elif place is not None and place.column == 1:  # only the line is known
            place = replace(place, column=len(place.text) - len(place.text.lstrip()) + 1)
        self.problems.append(Finding(code, what, place, way_out))

    def refuse(self, note: Note) -> None:
        """Keep what a note holds and no page can."""
        for refusal in note.refusals:
            self.report(refusal.code, refusal.what, refusal.way_out, refusal.about)

    def address(self, written: str) -> str:
        """Where a link leads from the page in hand; "" and a problem where a note cannot lead there."""
        if re.fullmatch(r"#\w[\w.:]*", written):
            address = self.resolve(written[1:])
            if address is None:
                what = f"no page shows a section, helper, class or line {written[1:]!r} to link to"
                self.report("broken-link", what, LINKED, written)
            return address or ""
        if re.fullmatch(r"(https?://|mailto:)[^\s<>\"'`]+", written, re.IGNORECASE):
            return written
        what = f"a note cannot link to {written[:80]!r}"
        self.report("bad-link", what, "use https://… or #section")
        return ""

    def cite(self, key: str) -> tuple[int, BibliographyEntry] | None:
        """A work's number on the page, and the work; None and a problem for an unknown key."""
        try:
            return self.citations.number(key)
        except BibliographyError as error:
            self.report("unknown-citation", str(error), f"add it to {self.citations.file}", f"@{key}")
            return None

    def refer(self, label: str) -> tuple[str, str]:
        """`Figure 2`, and where it stands; without an address and with a problem for an unknown name."""
        target = self.number(label)
        if target is None:
            what = f"no figure, table or equation of this lecture is named {label!r}"
            self.report("unknown-name", what, f"begin its caption with [@{label}]:", f"[@{label}]")
        return target or (label_text(label), "")

    def formula(self, latex: str, display: str, make: Callable[[str, str], T], label: str = "") -> T | None:
        """What `make` makes of LaTeX; None and a problem where that cannot be shown."""
        source = latex.strip()
        try:
            if label and r"\tag" in source:
                raise ValueError(rf"it has a \tag and is named [@{label}]:, which numbers it, too")
            return make(source, display)
        except Exception as error:  # who writes LaTeX in other words raises whatever it likes
            why = str(error) or type(error).__name__
            what = f"this is not LaTeX that can be shown: ${source[:80]}$ ({why})"
            self.report("bad-math", what, "write it in other words, or cut it into several formulas", source)
            return None

    def name(self, label: str) -> str:
        """`Figure 2` for what has this name here."""
        target = self.number(label)
        return target[0] if target else label_text(label)
