"""One exception tree. Every error knows where it happened, what was expected, and the way out."""

from __future__ import annotations

from litbook.finding import Finding, Place


class LitbookError(Exception):
    """Base of everything that litbook raises on purpose."""

    slug = "litbook"
    exit_status = 2

    def printed(self) -> str:
        """What a command prints of it."""
        return str(self)


class UnusableLecture(LitbookError):
    """The lecture cannot run as it stands; `findings` holds all that was found, in order."""

    slug = "unusable-lecture"

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = sorted(
            findings, key=lambda f: (f.place.path, f.place.line, f.place.column) if f.place else ("", 0, 0)
        )
        super().__init__("\n".join(map(str, self.findings)))

    def printed(self) -> str:
        """Each finding with its code."""
        return "\n".join(finding.text(coded=True) for finding in self.findings)


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
