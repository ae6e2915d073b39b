"""What a record says about one function, by the line numbers of the text on the page.

A section that ran here speaks from this record. A section that needs another device speaks from the
newest recording of such a device, moved to where its text stands today, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from litbook.record.model import Claim, Error, Function, Piece, Record, Value

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


@dataclass(frozen=True)
class Evidence:
    """Values, pieces, claims and errors of one function. `stamp` names the recording they are from."""

    record: Record
    values: tuple[Value, ...] = ()
    pieces: tuple[Piece, ...] = ()
    claims: tuple[Claim, ...] = ()
    errors: tuple[Error, ...] = ()
    dimmed: frozenset[int] = frozenset()  # lines that the run did not reach
    calls: int = 0
    stamp: str = ""


@dataclass(frozen=True)
class Other:
    """The same function in a recording of another device; `current` if its text is unchanged."""

    record: Record
    function: int
    current: bool

    @property
    def stamp(self) -> str:
        """Device and date, and whether the text was another then."""
        return stamp(self.record) + ("" if self.current else ", an older text of this section")


def gather(record: Record, index: int, recordings: Sequence[Record] = ()) -> Evidence:
    """The evidence for function `index`: from this run, else from the newest recording of the same text."""
    own = _own(record, index)
    if own.calls or record.functions[index].requires is None:
        return own
    for other in others(record, index, recordings):
        if other.current and _frames(other.record, other.function):
            shift = record.functions[index].first - other.record.functions[other.function].first
            return _moved(_own(other.record, other.function), shift, own.claims, other.stamp)
    return own


def others(record: Record, index: int, recordings: Sequence[Record]) -> list[Other]:
    """This function in each recording that has it, newest first."""
    here = record.functions[index]
    found = []
    for recording in sorted(recordings, key=lambda r: r.environment.date, reverse=True):
        for i, there in enumerate(recording.functions):
            if there.name == here.name and there.kind == here.kind:
                found.append(Other(recording, i, bool(there.digest) and there.digest == here.digest))
    return found


HOLE = "…"  # in prose that never ran: what running would have put there
_ENDED = re.compile(rf"(?<=[.:!?]){HOLE}$")


def unspoken(prose: str) -> str:
    """What prose that never ran says anyway: no end that a value decides, no table without rows.

    `A copy.…` is `A copy.`; of a table remains which columns it is going to have. A value inside a sentence
    stays an ellipsis.
    """
    kept: list[str] = []
    for block in prose.split("\n\n"):
        lines = block.splitlines()
        if lines[-1:] == [HOLE] and len(lines) == 3 and set(lines[1]) <= set("|-: "):
            if kept and kept[-1].startswith(HOLE):  # it introduced the table
                kept.pop()
            columns = " · ".join(cell.strip() for cell in lines[0].strip("| ").split("|"))
            kept.append(f"*A recording puts a table here: {columns}*")
        else:
            kept.append(_ENDED.sub("", block))
    return "\n\n".join(kept)


def stamp(record: Record) -> str:
    """`Some GPU, 21 Nov 2026, torch 2.11.0`."""
    torch = record.environment.versions.get("torch", "").partition("+")[0]
    parts = [record.environment.device.name, day(record.environment.date), f"torch {torch}" if torch else ""]
    return ", ".join(filter(None, parts))


def day(date: str) -> str:
    """An ISO date as `20 Nov 2026`; anything else as it stands."""
    parts = date[:10].split("-")
    if len(parts) != 3 or not all(p.isdecimal() for p in parts) or not 1 <= int(parts[1]) <= 12:
        return date
    return f"{int(parts[2])} {MONTHS[int(parts[1]) - 1]} {parts[0]}"


def _own(record: Record, index: int) -> Evidence:
    frames = _frames(record, index)
    first = frames[0] if frames else None
    function = record.functions[index]
    values = () if first is None else record.values_of.get(first, ())
    return Evidence(
        record,
        values=tuple(v for v in values if v.kind != "clear"),
        pieces=tuple(
            p
            for p in record.pieces_between(function.first, function.last)
            if _belongs(record, p, index, first)
        ),
        claims=tuple(record.claims_of.get(index, ())),
        errors=tuple(e for e in record.errors if _line_in(record, e, function) is not None),
        dimmed=frozenset(_dimmed(record, index, first)),
        calls=len(frames),
    )


def _moved(own: Evidence, shift: int, claims: Iterable[Claim], where: str) -> Evidence:
    """A recording's evidence at today's lines; the claims' verdicts are those of the recording."""
    return replace(
        own,
        values=tuple(replace(v, line=v.line + shift) for v in own.values),
        pieces=tuple(replace(p, line=p.line + shift) for p in own.pieces),
        claims=tuple(replace(c, line=c.line + shift, last=c.last + shift) for c in own.claims)
        or tuple(claims),
        errors=(),
        dimmed=frozenset(),
        stamp=where,
    )


def _frames(record: Record, index: int) -> list[int]:
    return record.frames_of.get(index, [])


def _within(line: int, function: Function) -> bool:
    return function.first <= line <= function.last


def _belongs(record: Record, piece: Piece, index: int, first: int | None) -> bool:
    """Whether the piece came out of the section's first call, perhaps through a helper."""
    at: int | None = piece.frame
    while at is not None and record.frames[at].function != index:
        at = record.frames[at].parent
    return at is None or at == first


def _line_in(record: Record, error: Error, function: Function) -> int | None:
    """The line of `function` at which an error surfaced: its own, or that of the call."""
    here = record.sources[0].path  # the trace may end in another file
    for path, line, name, _ in error.trace:
        if path == here and name == function.name and _within(line, function):
            return line
    return error.line if _within(error.line, function) else None


def surfaced(record: Record, error: Error, function: Function) -> int:
    """The line of `function` beside which an error is shown."""
    return _line_in(record, error, function) or error.line


def _dimmed(record: Record, index: int, frame: int | None) -> list[int]:
    """Lines of statements that never ran; none where the run may have folded them away."""
    ran = record.ran_in.get(frame, set()) if frame is not None else set()
    if not ran:
        return []
    own = record.statements_of.get(index, [])
    loops = {loop.line for loop in record.loops}
    folded = [(s.first, max(s.end, s.last)) for _, s in own if record.dropped and s.first in loops]
    found: list[int] = []
    for i, s in own:
        if i in ran or s.kind not in ("code", "claim", "piece") or any(a < s.first <= b for a, b in folded):
            continue
        found += range(s.first, s.last + 1)
    reached = {line for i, s in own if i in ran for line in range(s.first, s.last + 1)}
    return [line for line in found if line not in reached]
