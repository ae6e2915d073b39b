"""A fresh record against a recording: what differs, and by how much.

Sections are matched by name. Within a section, values are matched by the text of their expression and the
order in which they came, so that lines which moved and edits elsewhere disturb nothing. A section whose text
changed since the recording is one difference of its own, not a hundred.

Compared are `@inspect` values and claims, as `compare_values` does. Never compared: what `@measure` shows and
claims that mention it (of these only the verdict), floats of which a claim says only what they are above or
below, prose, figures and printed output. `docs/maintain.md` says the same to people. This module executes
nothing and formats nothing but differences.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from litbook.errors import RecordError
from litbook.finding import Finding, Place
from litbook.record import model
from litbook.record.compare_values import (
    ValueChange,
    alike_json,
    changes,
    count_change,
    cut_text,
    largest_magnitude,
    number_changes,
    number_format,
)
from litbook.record.model import GroupItem, GroupKey, Section, group_by
from litbook.record.ranks import names, ranks_of

FIRST = 3  # turns at the start of a loop that every record keeps
SHOWN = 4  # changes of one value that are spelled out


@dataclass(frozen=True)
class Difference:
    """Something of a section that is not what was recorded: a value, a claim, or the section itself."""

    kind: Literal["value", "claim", "text", "section"]
    section: str
    place: Place
    what: str  # the expression or claim; of a section, what happened to it
    changes: tuple[ValueChange, ...] = ()

    @property
    def contradicts(self) -> bool:
        """Whether run and recording say different things; where the text is new, it says a new thing."""
        return self.kind in ("value", "claim")

    @property
    def title(self) -> str:
        """What differs, in a line."""
        if self.kind in ("text", "section"):
            return f"{cut_text(self.section)} {self.what}"
        return f"{cut_text(self.section)}: {cut_text(self.what)} is not what was recorded"

    def finding(self, *ways_out: str) -> Finding:
        """The same as a finding; `ways_out` are what may have led to it, and what to do."""
        more = len(self.changes) - SHOWN
        details = (*map(str, self.changes[:SHOWN]), *((f"and {more} more",) if more > 0 else ()))
        *others, way_out = [*filter(None, ways_out)] or [""]
        place = replace(self.place, column=0)
        return Finding("differs", self.title, place, way_out, details=(*details, *others))

    def __str__(self) -> str:
        return str(self.finding())


@dataclass(frozen=True)
class Comparison:
    """All differences in the order of the lines, and how much was compared to find them."""

    differences: tuple[Difference, ...]
    values: int
    claims: int


def compare(fresh: model.Record, recording: model.Record) -> Comparison:
    """What of `fresh` differs from `recording`; of a run of some sections, those sections only.

    Raises `RecordError` if the two are not of the same lecture.
    """
    if fresh.lecture != recording.lecture:
        what = f"a record of {recording.lecture!r} cannot be compared with one of {fresh.lecture!r}"
        raise RecordError(f"{what}\n    compare two records of one lecture")
    paths = [source.path for source in fresh.sources] or [fresh.lecture]
    # What stopped before its sections, at an import that fails, says nothing of them.
    stopped = any(section.errors for section in fresh.sections if section.kind in ("module", "main"))
    differences, pairs, changed = list[Difference](), list[_SectionPair](), list[Difference]()
    for now in filter(fresh.was_asked, fresh.sections):
        was, place = recording.by_key.get(now.key), Place(paths[now.file], now.first)
        if recording.asked and not fresh.asked and (was is None or not recording.was_asked(was)):
            continue  # a recording of some sections says nothing of others
        if was is None:
            differences.append(Difference("section", now.key, place, "is not in the recording"))
        elif was.digest != now.digest:
            differences.append(Difference("text", now.key, place, "was recorded from an older text"))
        else:
            if was.has_run and was.depends != now.depends:
                what = "was recorded before a change of what it calls or reads"
                changed.append(Difference("text", now.key, place, what))
            if now.has_run or not (now.requires or stopped):  # else there is nothing of this run to compare
                pairs.append(_SectionPair(fresh, now, was))
    if not fresh.asked:
        gone = (section.key for section in recording.sections if section.key not in fresh.by_key)
        what = "was recorded and is no longer there"
        differences += [Difference("section", key, Place(paths[0], 1), what) for key in gone]
    try:
        differences += [difference for pair in pairs for difference in pair.compare()]
    except RecursionError:
        raise RecordError("a value in the recording is nested too deep\n    record it again") from None
    told = {change.section for change in differences}
    differences += [change for change in changed if change.section not in told]
    differences.sort(key=lambda change: (paths.index(change.place.path), change.place.line))
    values, claims = sum(pair.values for pair in pairs), sum(pair.claims for pair in pairs)
    return Comparison(tuple(differences), values, claims)


def outdated_sections(
    fresh: model.Record, recordings: Sequence[model.Record]
) -> Iterator[tuple[model.Record, str]]:
    """The recordings, each with the keys of sections of which something has changed since.

    Of this device's recording all; of others the sections that wait here for a device or for time, and that
    no recording has as they are now.
    """
    current = {(section.key, section.depends) for recording in recordings for section in recording.sections}
    for recording in recordings:
        alike = recording.environment.device.slug == fresh.environment.device.slug
        for now in filter(fresh.was_asked, fresh.sections):
            was, waits = recording.by_key.get(now.key), now.requires and not now.has_run
            if was is not None and was.has_run and was.depends != now.depends:
                if alike or (waits and (now.key, now.depends) not in current):
                    yield recording, now.key


# ---------------------------------------------------------------------------- one section, now and then

ExpressionKey = tuple[str, str]
"""What showed a value (the key of a helper, "" for the section itself), and the expression."""


@dataclass
class _ValueRun:
    """Values of one expression from one place in time: one alone, or the turns of one loop by number."""

    frame: int
    loop: int | None
    turns: dict[int, model.Value] = field(default_factory=dict)


def _runs(section: Section) -> dict[ExpressionKey, list[_ValueRun]]:
    """What is compared of a section's values: neither what is measured nor an address."""
    by_text: dict[ExpressionKey, list[_ValueRun]] = {}
    for value in section.values:
        if value.kind != "inspect" or value.address:
            continue
        runs = by_text.setdefault((_shower(section, value.frame), value.text), [])
        place = value.frame, value.loop
        same = runs and value.loop is not None and (runs[-1].frame, runs[-1].loop) == place
        if not same or value.turn in runs[-1].turns:
            runs.append(_ValueRun(*place))
        runs[-1].turns[value.turn] = value
    return by_text


def _series(section: Section) -> dict[ExpressionKey, list[model.Series]]:
    return group_by(section.series, lambda s: (_shower(section, section.loops[s.loop].frame), s.text))


def _shower(section: Section, frame: int) -> str:
    """The key of what runs in a frame; "" for the section itself."""
    number = section.frames[frame].called
    return section.calls[number - 1] if number else ""


def _match(
    now: dict[GroupKey, list[GroupItem]], was: dict[GroupKey, list[GroupItem]]
) -> Iterator[tuple[GroupKey, GroupItem, GroupItem]]:
    """What stands under one key in both, in its order."""
    for key, several in now.items():
        yield from ((key, one, before) for one, before in zip(several, was.get(key, []), strict=False))


class _SectionPair:
    """One section of a run, and its entry in a recording; counts the values and claims that are compared."""

    def __init__(self, record: model.Record, now: Section, was: Section) -> None:
        self.record, self.now, self.was = record, now, was
        self.differences: list[Difference] = []
        self.kept: set[tuple[str, tuple[ValueChange, ...]]] = set()
        self.values = self.claims = 0

    def compare(self) -> list[Difference]:
        """What differs, in the order of the lines; of a section on ranks what does on each of them."""
        world = len(self.now.shares)
        if world != len(self.was.shares):
            number = [count_change("ranks", max(1, len(self.was.shares)), max(1, world))]
            self.add("value", None, 0, "what ran", number)
            return self.differences
        if world:
            both = zip(ranks_of(self.now), ranks_of(self.was), strict=True)
            pairs = [_SectionPair(self.record, *of_rank) for of_rank in both]
            on = dict[Difference, list[int]]()
            for rank, pair in enumerate(pairs):
                for difference in pair.compare():
                    on.setdefault(difference, []).append(rank)
            self.values, self.claims = sum(pair.values for pair in pairs), sum(pair.claims for pair in pairs)
            return [
                d if len(ranks) == world else replace(d, what=f"{d.what}, on {names(ranks, world)},")
                for d, ranks in sorted(on.items(), key=lambda item: item[0].place.line)
            ]
        runs = _runs(self.now)
        self.compare_values(runs, _runs(self.was))
        self.compare_series(runs.keys())
        self.compare_pieces()
        self.compare_claims()
        return sorted(self.differences, key=lambda change: change.place.line)

    def add(
        self,
        kind: Literal["value", "claim"],
        frame: int | None,
        line: int,
        what: str,
        changes: list[ValueChange],
    ) -> None:
        """Keep a difference, once: a value and the claim about it may both show the same change.

        `line` counts from the first of what runs in `frame`, or of the section where that is None.
        """
        key = what, tuple(changes)
        if changes and key not in self.kept:
            self.kept.add(key)
            entry = self.now if frame is None else self.record.callee(self.now, frame)
            place = Place(self.record.sources[entry.file].path, entry.first + line)
            self.differences.append(Difference(kind, self.now.key, place, what, tuple(changes)))

    def changes(self, was: int, now: int, at: str = "", largest: float = 0.0) -> list[ValueChange]:
        """What differs between two snapshots of the section, by their indices."""
        return changes(self.was.snapshots[was], self.now.snapshots[now], at, largest)

    def compare_values(
        self, runs: dict[ExpressionKey, list[_ValueRun]], earlier: dict[ExpressionKey, list[_ValueRun]]
    ) -> None:
        """Values by what showed them, in the order in which they came; of a loop those of each turn."""
        raised = bool(self.now.errors)  # what is missing then has its reason
        for shown in [*runs, *(shown for shown in earlier if shown not in runs)]:
            what, here, there = shown[1], runs.get(shown, []), earlier.get(shown, [])
            if len(here) != len(there) and not raised:
                first = next((value for run in here for value in run.turns.values()), None)
                frame, line = (first.frame, first.line) if first else (None, 0)
                self.add("value", frame, line, what, [count_change("times shown", len(there), len(here))])
            for now, was in zip(here, there, strict=False):
                turns = sorted(set(now.turns) & set(was.turns))
                line = next(iter(now.turns.values())).line
                if now.loop is not None and was.loop is not None:
                    loop, before = self.now.loops[now.loop], self.was.loops[was.loop]
                    if loop.count != before.count:  # folded differently: only the first turns are the same
                        turns = [turn for turn in turns if turn < FIRST]
                        if loop.kind == "for" and not raised:  # a `while` may watch the clock
                            change = count_change("turns of its loop", before.count, loop.count)
                            self.add("value", now.frame, line, what, [change])
                    elif set(now.turns) != set(was.turns) and not raised:
                        texts = (", ".join(map(str, sorted(run.turns))) for run in (was, now))
                        self.add(
                            "value", now.frame, line, what, [ValueChange("turns that showed it", *texts)]
                        )
                self.values += len(turns)
                shots = (self.was.snapshots[v.value] for v in was.turns.values() if v.value is not None)
                numbers = (shot.number for shot in shots if isinstance(shot, model.Scalar))
                largest = largest_magnitude(numbers) if now.loop is not None else 0.0
                for turn in turns:
                    at = f"turn {turn}" if now.loop is not None and len(now.turns) > 1 else ""
                    value, recorded = now.turns[turn], was.turns[turn]
                    if value.value is not None and recorded.value is not None:
                        changes = self.changes(recorded.value, value.value, at, largest)
                    else:
                        errors = [shown.error or "a value" for shown in (recorded, value)]
                        changes = [ValueChange(at, *map(cut_text, errors))] if errors[0] != errors[1] else []
                    self.add("value", value.frame, value.line, what, changes)

    def compare_series(self, inspected: Collection[ExpressionKey]) -> None:
        """Numbers watched over a loop, unless they are measured, where both kept the same turns."""
        for shown, series, before in _match(_series(self.now), _series(self.was)):
            if shown not in inspected or series.at != before.at:
                continue
            held = (  # a number may come out of a tensor: what that keeps of it says how close it can be
                number_format(self.now.snapshots[value.value])
                for value in self.now.values
                if (value.loop, value.text) == (series.loop, series.text) and value.value is not None
            )
            rows = zip((f"turn {turn}" for turn in series.at), before.values, series.values, strict=False)
            told = [change for d in self.differences if d.what == series.text for change in d.changes]
            differing = number_changes(rows, next(held, "float"), largest_magnitude(before.values))
            changes = [change for change in differing if change not in told]
            self.values += len(series.at)
            self.add("value", self.now.loops[series.loop].frame, series.line, series.text, changes)

    def compare_pieces(self) -> None:
        """What the machine answers to a question of the author's, and what readers explore."""
        both = self.now, self.was
        pieces, earlier = (group_by(s.pieces, lambda piece: (piece.kind, piece.text)) for s in both)
        for _, piece, before in _match(pieces, earlier):
            if piece.answer is not None and before.answer is not None:
                self.values += 1
                changes = self.changes(before.answer, piece.answer)
                self.add("value", None, piece.line, "the answer to a question", changes)
            if piece.grid is not None and before.grid is not None:
                self.compare_grid(piece.line, piece.grid, before.grid)
            if piece.live is not None and before.live is not None:
                self.compare_live(piece.line, piece.live, before.live)

    def compare_grid(self, line: int, now: model.Grid, was: model.Grid) -> None:
        """What a function gave, point by point, where both have the same sliders and names."""
        moved, earlier = ((grid.sliders, grid.names) for grid in (now, was))
        if self.moves(line, earlier, moved, earlier == moved):
            return
        self.values += len(now.points)
        for place, there, here in zip(now.places(), was.points, now.points, strict=True):
            if isinstance(there, str) or isinstance(here, str):
                changes = [ValueChange(place, str(there), str(here))] if there != here else []
            else:
                names = (f"{place} {name}".strip() for name in now.names)
                changes = number_changes(zip(names, there, here, strict=True), "float")
            self.add("value", None, line, "what is explored", changes)

    def compare_live(self, line: int, now: model.Live, was: model.Live) -> None:
        """What a picture's script is held to, point by point, where both have the same points."""
        moved, earlier = ((one.sliders, [at for at, *_ in one.points]) for one in (now, was))
        if self.moves(line, was.sliders, now.sliders, earlier == moved):
            return
        self.values += len(now.points)
        both = zip(now.places(), was.points, now.points, strict=True)
        for place, (_, there, before), (_, here, why) in both:
            alike = here == there or alike_json(json.loads(there or "0"), json.loads(here or "0"))
            if before != why or not alike:
                change = ValueChange(place, cut_text(before or there), cut_text(why or here))
                self.add("value", None, line, "what is explored", [change])

    def moves(self, line: int, was: object, now: object, same: bool) -> bool:
        """Whether what readers explore has other sliders, which is one difference."""
        if not same:
            change = ValueChange("", cut_text(str(was)), cut_text(str(now)))
            self.add("value", None, line, "the sliders of what is explored", [change])
        return not same

    def compare_claims(self) -> None:
        """Verdicts, and both sides of every comparison where the claim mentions nothing measured."""
        claims, earlier = (group_by(s.claims, lambda claim: claim.text) for s in (self.now, self.was))
        for text, here in claims.items():
            there = earlier.get(text, [])
            if len(here) != len(there):  # the text of the section is the same: somebody edited the recording
                self.add(
                    "claim", None, here[0].line, text, [count_change("times shown", len(there), len(here))]
                )
            for claim, before in zip(here, there, strict=False):
                self.claims += 1
                if claim.verdict == "not-reached" and self.now.errors:
                    continue  # the error says why
                if claim.verdict != before.verdict:
                    change = ValueChange("verdict", before.verdict, claim.verdict)
                    self.add("claim", None, claim.line, text, [change])
                if claim.measured or before.measured:
                    continue
                signs = ["", *(word.strip()[:1] for word in claim.form[1:-1]), ""]
                for i, (side, recorded) in enumerate(zip(claim.operands, before.operands, strict=False)):
                    if side.address or side.value is None or recorded.value is None:
                        continue
                    # Of a float that it only bounds a claim says no more.
                    shot = self.now.snapshots[side.value]
                    is_float = isinstance(shot, model.Scalar) and isinstance(shot.number, float)
                    if not (is_float and {"<", ">"} & {*signs[i : i + 2]}):
                        changed = self.changes(recorded.value, side.value)
                        self.add("claim", None, claim.line, side.text, changed)
