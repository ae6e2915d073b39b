"""What the ranks of a section left -> one entry: what all agree on once, and by rank what they do not.

A rank is a run: it leaves a record of its own. In go these records, and of ranks that left none how they
ended; out come the entries of the sections, each with the `shares` of its ranks. It knows no torch, and runs
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import fields, replace

from litbook.record.model import Claim, Definition, Error, Operand, Record, Section, Share, Snapshot

FIELDS = tuple(field.name for field in fields(Share))
LISTS = {"pieces", "values", "locals", "series", "claims"}  # an item of the entry's own is its number
WITH_OTHERS = "was ended with the others"
NOT_HERE = "did not come to the section"
# An error that says no more than that another rank has gone, or did not come in time.
FOLLOWS = ("closed by peer", "Timed out waiting", "Connection reset", "Broken pipe", WITH_OTHERS, NOT_HERE)


@dataclass(frozen=True, slots=True)
class LostRank:
    """A rank that left no record: how it ended, and where, as far as that is known."""

    message: str
    path: str = ""  # of a file of the lecture, and the line that it had reached there
    line: int = 0


def join_ranks(record: Record, left: Sequence[Record | LostRank], keys: Iterable[str]) -> Record:
    """The record with these sections as all ranks left them, in the place of its own, which did not run."""
    whole = [other for other in left if isinstance(other, Record)]
    entries, definitions = dict[str, Section](), dict[str, Definition]()
    for section in record.sections:
        if section.key in keys:
            entry = _join_section(record, section, left)
            entries[section.key] = replace(entry, file=section.file, first=section.first)
            called = {key for other in whole for key in other.by_key[section.key].calls}
            definitions |= {key: other.definition_of[key] for other in whole[::-1] for key in called}
        else:  # the lines that every rank ran before its sections, and what it did at its end
            own = dict.fromkeys(section.errors)
            met = [[e for e in other.by_key[section.key].errors if e not in own] for other in whole]
            if any(met):
                entries[section.key] = replace(section, errors=(*section.errors, *_errors(met)))
    seen_here = {key for section in record.sections for key in section.calls}
    fresh = {key: entry for key, entry in definitions.items() if key not in seen_here}
    known = {definition.key for definition in record.definitions}
    return replace(
        record,
        sections=tuple(entries.get(section.key, section) for section in record.sections),
        definitions=(
            *(fresh.get(definition.key, definition) for definition in record.definitions),
            *(entry for key, entry in fresh.items() if key not in known),
        ),
        asserts=tuple(dict.fromkeys((*record.asserts, *(check for r in whole for check in r.asserts)))),
        seconds=record.seconds + max((other.seconds for other in whole), default=0.0),
        peak=max(record.peak, *(other.peak for other in whole), 0),
    )


def of_rank(section: Section, rank: int) -> Section:
    """The entry as this rank left it: whatever reads a section reads that of a rank."""
    own = dict[str, Any]()
    for name in FIELDS:
        value = getattr(section.shares[rank], name)
        if value is not None:
            items = getattr(section, name)
            own[name] = tuple(items[i] if type(i) is int else i for i in value) if name in LISTS else value
    return replace(section, **own, shares=())


def ranks_of(section: Section) -> list[Section]:
    """The entries of all ranks; of a section that ran in one process its only one."""
    return [of_rank(section, rank) for rank in range(len(section.shares))] or [section]


def names(ranks: Sequence[int], world: int) -> str:
    """`rank 2`, `ranks 0, 1 and 3`, `all 4 ranks`."""
    if len(ranks) == world:
        return f"all {world} ranks"
    *most, last = map(str, ranks)
    return f"ranks {', '.join(most)} and {last}" if most else f"rank {last}"


# ---------------------------------------------------------------------------- one entry


def _join_section(record: Record, section: Section, left: Sequence[Record | LostRank]) -> Section:
    """The entry of a section that some ranks may not have survived: then none of its claims was reached."""
    entries = [other.by_key[section.key] for other in left if isinstance(other, Record)]
    if len(entries) == len(left):
        return merge_entries(entries)
    met = list[Sequence[Error]]()
    for other in left:
        if isinstance(other, Record):
            met.append(other.by_key[section.key].errors)
            continue
        inside = section.first <= other.line <= section.last
        inside &= other.path in ("", record.sources[section.file].path)
        line = other.line if inside else section.first
        texts = record.sources[section.file].text.split("\n")
        text = texts[line - 1].strip() if 0 < line <= len(texts) else ""
        met.append([Error("exception", line - section.first, text, other.message)])
    claims = (replace(claim, verdict="not-reached", why="") for claim in section.claims)
    return replace(section, errors=_errors(met), claims=tuple(claims))


def merge_entries(entries: Sequence[Section]) -> Section:
    """One entry of the entries of all ranks, in their order; their snapshots become one table."""
    table = dict[str, int]()
    snapshots = list[Snapshot]()
    own = list[Section]()
    calls = tuple(dict.fromkeys(key for entry in entries for key in entry.calls))
    for entry in entries:
        at = list[int]()
        for shot in entry.snapshots:
            text = repr(shot)  # tells -0.0 from 0.0
            if text not in table:
                table[text] = len(snapshots)
                snapshots.append(shot)
            at.append(table[text])
        called = [0, *(1 + calls.index(key) for key in entry.calls)]
        own.append(renumber(entry, at, called))
    whole = replace(
        own[0],
        calls=calls,
        claims=tuple(map(_join_claim, zip(*(entry.claims for entry in own), strict=True))),
        errors=_errors([entry.errors for entry in own]),
        unreached=tuple(p for p in own[0].unreached if all(p in entry.unreached for entry in own)),
        seconds=max(entry.seconds for entry in own),
        wordings=tuple(dict.fromkeys(said for entry in own for said in entry.wordings)),
        full=any(entry.full for entry in own),
        snapshots=tuple(snapshots),
    )
    shares = list[Share]()
    for entry in own:
        share = {n: getattr(entry, n) for n in FIELDS if getattr(entry, n) != getattr(whole, n)}
        for name in LISTS & share.keys():
            place = {repr(item): number for number, item in enumerate(getattr(whole, name))}
            share[name] = tuple(place.get(repr(item), item) for item in share[name])
        shares.append(Share(**share))
    return replace(whole, shares=tuple(shares))


def renumber(section: Section, at: Mapping[int, int] | Sequence[int], called: Sequence[int]) -> Section:
    """The entry without its snapshots: each stands where `at` says, what it calls where `called` does."""

    def operand(side: Operand) -> Operand:
        return side if side.value is None else replace(side, value=at[side.value])

    return replace(
        section,
        frames=tuple(
            replace(f, called=called[f.called], arguments=tuple((name, at[i]) for name, i in f.arguments))
            for f in section.frames
        ),
        unreached=tuple((called[place], statement) for place, statement in section.unreached),
        pieces=tuple(p if p.answer is None else replace(p, answer=at[p.answer]) for p in section.pieces),
        values=tuple(v if v.value is None else replace(v, value=at[v.value]) for v in section.values),
        locals=tuple(v if v.value is None else replace(v, value=at[v.value]) for v in section.locals),
        claims=tuple(replace(c, operands=tuple(map(operand, c.operands))) for c in section.claims),
        snapshots=(),
    )


def _join_claim(of_ranks: tuple[Claim, ...]) -> Claim:
    """A claim as all ranks together judge it: false if any does, with what that one saw.

    Where not all ranks came to it, or not all find it false, `why` says which.
    """
    world = len(of_ranks)
    wrong = [rank for rank, claim in enumerate(of_ranks) if claim.verdict == "fails"]
    came = [rank for rank, claim in enumerate(of_ranks) if claim.verdict in ("holds", "fails")]
    claim = of_ranks[wrong[0] if wrong else came[0] if came else 0]
    if wrong:
        where = f"on {names(wrong, world)}" + (f" of {world}" if len(wrong) < world else "")
        return replace(claim, why="\n".join(filter(None, [where, claim.why])))
    return replace(claim, why=f"on {names(came, world)} alone") if 0 < len(came) < world else claim


def _errors(of_ranks: Sequence[Sequence[Error]]) -> tuple[Error, ...]:
    """Each error once, with the ranks that met it; what a rank met for want of another comes last."""
    met = dict[tuple[Any, ...], tuple[Error, list[int]]]()
    for rank, errors in enumerate(of_ranks):
        for error in errors:
            message = "" if _follows(error) else error.message
            met.setdefault((error.kind, error.line, error.trace, message), (error, []))[1].append(rank)
    errors, world = list[Error](), len(of_ranks)
    for error, ranks in met.values():
        why = ""
        if any(words in error.message for words in FOLLOWS[:-2]):
            others = [rank for rank in range(world) if rank not in ranks]
            missing = f"{names(others, world)} did not" if others else "they did not all"
            why = f"{missing} come here, came with another size, or had gone: "
        errors.append(replace(error, message=f"on {names(ranks, world)}: {why}{error.message}"))
    return tuple(sorted(errors, key=_follows))


def _follows(error: Error) -> bool:
    return any(words in error.message for words in FOLLOWS)
