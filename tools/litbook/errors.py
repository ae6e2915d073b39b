"""One exception tree. Every error knows where it happened, what was expected, and the way out."""

from __future__ import annotations

import re
from dataclasses import dataclass

TAB = "→"  # how a tab is shown that indents, with three spaces behind it


@dataclass(frozen=True)
class Place:
    """A position in a lecture's text: 1-based line and column, and the user's own line."""

    path: str
    line: int
    column: int = 1
    text: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a lecture or a command line.

    `slug` names the kind of problem for programs; `what` and `way_out` are for people. `above` is the line
    above, where indentation is what is wrong: both lines are then shown with theirs.
    """

    slug: str
    what: str
    place: Place | None = None
    way_out: str = ""
    above: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.what}" if self.place else self.what]
        if self.place and self.place.text.strip():
            code = self.place.text.rstrip()
            if self.above is None:  # the line without its indentation, and a mark below the column
                indent = len(code) - len(code.lstrip())
                lines += [f"    {code.strip()}", "    " + " " * max(0, self.place.column - 1 - indent) + "^"]
            else:  # both lines as they stand there, with tabs that are seen, and a mark where the line begins
                both = [
                    re.sub(r"^\s+", lambda blank: blank[0].replace("\t", f"{TAB}   "), line)
                    for line in (self.above.rstrip(), code)
                ]
                indent = len(both[1]) - len(both[1].lstrip(f" {TAB}"))
                lines += [f"    {line}" for line in (*both, " " * indent + "^") if line]
        if self.way_out:
            lines.append(f"    {self.way_out}")
        return "\n".join(lines)


class LitbookError(Exception):
    """Base of everything that litbook raises on purpose."""

    slug = "litbook"
    exit_status = 2


class UnusableLecture(LitbookError):
    """The lecture cannot run as it stands; `problems` holds all that was found, in order."""

    slug = "unusable-lecture"

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(
            problems, key=lambda p: (p.place.path, p.place.line, p.place.column) if p.place else ("", 0, 0)
        )
        super().__init__("\n".join(str(p) for p in self.problems))


class NotFound(LitbookError):
    """A lecture or section that was asked for does not exist. Of more than `MOST` the nearest are named.

    `hint` is what else the author may have meant.
    """

    slug = "not-found"
    MOST = 12

    def __init__(self, what: str, name: str, there: list[str], hint: str = "") -> None:
        from difflib import get_close_matches

        self.name, self.there = name, there
        near = get_close_matches(name, there, n=5, cutoff=0.5)
        lines = [f"no {what} named {name!r}"]
        if near and not hint:
            lines[0] += f"; did you mean {near[0]!r}?"
        lines += [f"    {hint}"] * bool(hint)
        if len(there) > self.MOST and what in ("lecture", "section"):
            lines += [f"    near it: {', '.join(near)}"] * (len(near) > 1)
            lines.append(f"    `litbook list{' LECTURE' * (what == 'section')}` shows all {len(there)}")
        else:
            lines.append(f"    there are: {', '.join(there)}" if there else f"    there is no {what} here")
        super().__init__("\n".join(lines))


class Ambiguous(NotFound):
    """Several sections have the name that was asked for; `there` holds the names that tell them apart."""

    def __init__(self, what: str, name: str, there: list[str]) -> None:
        self.name, self.there = name, there
        lines = [f"{len(there)} {what}s are named {name!r}", f"    say which: {', '.join(there)}"]
        LitbookError.__init__(self, "\n".join(lines))


class AuthorError(LitbookError, ValueError):
    """An author's word (`note`, `figure`, ...) was called with something it cannot show."""

    slug = "author"
    exit_status = 1


class RecordError(LitbookError):
    """A record file cannot be read: cut short, edited by hand, or of another schema."""

    slug = "record"


class Stopped(LitbookError):
    """A run ended before the lecture did. `where` is the line it had reached, `way_out` what may help."""

    slug = "stopped"
    exit_status = 1

    def __init__(self, why: str, where: Place | None, way_out: str = "") -> None:
        self.where = where
        at = f"; it had reached {where.path}:{where.line}" if where else " before the first line ran"
        code = f"\n    {where.text.strip()}" if where and where.text.strip() else ""
        super().__init__(f"{why}{at}{code}" + f"\n    {way_out}" * bool(way_out))


class TimedOut(Stopped):
    """The time given with `--timeout` ran out."""

    slug = "timed-out"


class Interrupted(Stopped):
    """Ctrl-C."""

    slug = "interrupted"
    exit_status = 130
