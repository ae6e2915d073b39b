"""What is wrong, as data: a code, a place, what was found, details, the way out. Text is made to be printed.

In goes what a rule, or a reader of a lecture's text, has found. `str()` gives it as people read it, `as_data`
as programs do, `as_annotation` as a pull request on GitHub shows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

TAB = "→"  # how a tab is shown that indents, with three spaces behind it


@dataclass(frozen=True)
class Place:
    """A position in a lecture's text: 1-based line and column, and the user's own line.

    Where only the line is known, `column` is 0.
    """

    path: str
    line: int
    column: int = 1
    text: str = ""

    @classmethod
    def of_line(cls, path: str, text: str, line: int) -> Place:
        """Where a line begins behind its indentation. Of a recording the `text` may be no longer there."""
        lines = text.split("\n")
        own = lines[line - 1] if line <= len(lines) else ""
        return cls(path, line, len(own) - len(own.lstrip()) + 1, own)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" + f":{self.column}" * bool(self.column)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a lecture or a book.

    `code` is that of its rule; `what`, `details` and `way_out` are for people. `above` is the line above,
    where indentation is what is wrong: both lines are then shown with theirs.
    """

    code: str
    what: str
    place: Place | None = None
    way_out: str = ""
    above: str | None = None
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text()

    def text(self, *, coded: bool = False) -> str:
        """The lines that people read; with its code behind the first one, where it is `coded`."""
        head = f"{self.place}: {self.what}" if self.place else self.what
        first, *more = head.split("\n")
        lines = [f"{first} [{self.code}]" if coded else first, *more]
        if self.place and self.place.text.strip():
            code = self.place.text.rstrip()
            if self.above is None:  # the line without its indentation, and a mark below the column
                indent = len(code) - len(code.lstrip())
                lines.append(f"    {code.strip()}")
                if self.place.column:
                    lines.append("    " + " " * max(0, self.place.column - 1 - indent) + "^")
            else:  # both lines as they stand there, with tabs that are seen, and a mark where the line begins
                both = [
                    re.sub(r"^\s+", lambda blank: blank[0].replace("\t", f"{TAB}   "), line)
                    for line in (self.above.rstrip(), code)
                ]
                indent = len(both[1]) - len(both[1].lstrip(f" {TAB}"))
                lines += [f"    {line}" for line in (*both, " " * indent + "^") if line]
        lines += [f"    {detail}" for detail in self.details]
        lines += [f"    {self.way_out}"] if self.way_out else []
        return "\n".join(lines)

    def as_data(self) -> dict[str, Any]:
        """The same for programs; a line or column of 0 is not known."""
        place = self.place or Place("", 0, 0)
        return {
            "code": self.code,
            "path": place.path,
            "line": place.line,
            "column": place.column,
            "text": place.text.strip(),
            "what": self.what,
            "details": list(self.details),
            "way_out": self.way_out,
        }

    def as_annotation(self, severity: str) -> str:
        """A workflow command of GitHub Actions, which shows the finding at its line in a pull request."""
        place, kind = self.place, "error" if severity == "error" else "warning"
        options = {"title": self.code}
        if place:
            options = {"file": place.path, "line": str(place.line), "col": str(place.column or 1)} | options
        given = ",".join(f"{name}={_escape(value, ':,')}" for name, value in options.items())
        message = "\n".join(filter(None, [self.what, *self.details, self.way_out]))
        return f"::{kind} {given}::{_escape(message)}"


def _escape(text: str, more: str = "") -> str:
    """A text in a workflow command: percent-encoded where it would end the line, or one of its options."""
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text
