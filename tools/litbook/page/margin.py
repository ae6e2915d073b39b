"""What stands beside a line of code, as data: values, claims, errors. One short line each."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from litbook.i18n import _, gettext_noop, ngettext, number
from litbook.page.blocks import AxesPromise, ClaimVerdict, MarginEntry, RaisedError, ShownValue
from litbook.page.view import RecordedSection, SectionView
from litbook.record.device_kinds import needs
from litbook.record.model import Claim, Mapping, Opaque, Section, Series, Snapshot, Tensor, Value, group_by
from litbook.values import formatting
from litbook.values.drawable import has_bits

LONGEST = 90  # characters of an error beside its line
ROOM = 40  # characters of a claim that fit on one line of the margin
SHORT = 48  # characters up to which a mapping needs no table
PLAIN = ("True", "False", "None")  # sides that are said once
# Calls that compare two values, how the margin writes them, and the tolerance where none is named.
AS_SIGNS = {
    "torch.equal(": (" = ", ""),
    "not torch.equal(": (" ≠ ", ""),
    "torch.allclose(": (" ≈ ", "rtol=1e-5"),
    "math.isclose(": (" ≈ ", "rel_tol=1e-9"),
}
COMPARED = {" == ": " = ", " != ": " ≠ ", " <= ": " ≤ ", " >= ": " ≥ "}
SIGNS = {"holds": "✓", "fails": "✗", "not-reached": "–", "needs-device": "○"}
OLDER = "older"  # what a claim needs that was recorded, but from another text than today's
WORDS = {
    "holds": gettext_noop("holds"),
    "fails": gettext_noop("fails"),
    "not-reached": gettext_noop("not reached"),
    "needs-device": gettext_noop("not run"),
}
Badges = dict[tuple[int, str], str]  # (step, expression) -> what is said of its storage


def entries(
    evidence: SectionView, others: Sequence[RecordedSection], here: Section, code: Collection[int]
) -> defaultdict[int, list[MarginEntry]]:
    """All that stands beside the lines of a section. `here` is its entry in the record of this build.

    A claim whose line is not among those of `code` says its caption here.
    """
    by_line = defaultdict[int, list[MarginEntry]](list)
    badges = storage_badges(evidence)
    # Of each rank, by expression: mostly all have the same.
    of_ranks = [(rank, group_by(rank.values, expression_key)) for rank in evidence.rank_views]
    for key in dict.fromkeys(key for _rank, shown in of_ranks for key in shown):
        rank, group = next((rank, shown[key]) for rank, shown in of_ranks if key in shown)
        entry = _shown_value(group, rank, others, badges)
        texts = tuple(_loop_values(shown[key], rank) if key in shown else "–" for rank, shown in of_ranks)
        seen = {tuple(v.value for v in shown.get(key, ())) for _rank, shown in of_ranks}
        if len(seen) > 1:
            # `0 · 1 · 2 · 3`; what all say at the beginning, `float32 [2] · 8 B · `, once.
            words = [text.split(" · ") for text in texts]
            alike = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
            common = "".join(f"{column[0]} · " for column in alike)
            rest = [text.removeprefix(common) for text in texts]
            sign = " | " if any(mark in text for text in rest for mark in ("·", ",")) else " · "
            in_a_row = common + sign.join(rest) if len({*texts}) > 1 else texts[0]
            often = [_turns_in(shown[key], rank)[0] for rank, shown in of_ranks if key in shown]
            turns = " | ".join(often) if len({*often}) > 1 else entry.turns
            entry = replace(entry, text=in_a_row, ranks=texts, turns=turns)
        by_line[group[0].line].append(entry)
    for claim in evidence.claims:
        beside = by_line[claim.line]
        kept = claim.kind == "axes" and claim.verdict == "holds"
        if kept and beside and isinstance(beside[0], ShownValue):
            # The promise of an annotation belongs to the variable, which is the first value of its line.
            beside[0] = replace(beside[0], promise=claim.text)
            continue
        # On which device it was judged, or what it needs; of a section the box says the rest.
        remark = evidence.record.environment.device.name if evidence.stamp else ""
        if not evidence.stamp and claim.verdict == "needs-device":
            if any(other.entry.has_run and not other.current for other in others):
                remark = _("recorded from an older text")
            elif not here.requires:
                remark = _("(needs {device})", device=describe_need(claim.why))
        elif evidence.entry.shares and claim.verdict in ("holds", "fails"):
            on = claim.why.partition("\n")[0] if claim.why.startswith("on ") else ""
            remark = ", ".join(filter(None, [on, remark]))
        # The verdict and both sides; the caption stands in the code, and else here.
        judged = ClaimVerdict(
            claim.verdict,
            side_values(claim, evidence.entry.snapshots),
            "" if claim.line in code else claim.caption,
            ngettext("{n} time", "{n} times", claim.count) if claim.count > 1 else "",
            remark,
            claim,
            common_side(claim, evidence.entry.snapshots) or "",
        )
        beside.insert(1 if claim.kind == "axes" else len(beside), AxesPromise(claim.text) if kept else judged)
    for error in evidence.errors:
        if error.kind != "inspect":  # of an inspection its value says so already
            by_line[error.line].append(RaisedError(error.message[:LONGEST]))
    return by_line


def expression_key(value: Value) -> tuple[int, str, str, str | None]:
    """What tells one expression on one line: a loop or a second inspection shows it again."""
    return value.line, value.text, value.kind, value.unit


# ---------------------------------------------------------------------------- values


def _shown_value(
    group: Sequence[Value], evidence: SectionView, others: Sequence[RecordedSection], badges: Badges
) -> ShownValue:
    """The entry of what one expression was, once or in a loop."""
    value = group[0]
    text = _loop_values(group, evidence)
    turns, series = _turns_in(group, evidence)

    device = evidence.record.environment.device.name
    measured = value.kind == "measure"
    elsewhere: list[tuple[str, str]] = []  # the same measurement in recordings of other devices
    if measured and not evidence.stamp:
        runs = [evidence, *(other.view_at(evidence.first) for other in others)]
        alike = [[v for v in run.values if v.text == value.text and v.kind == "measure"] for run in runs]
        nth = [v.step for v in alike[0]].index(value.step)
        for there, same in zip(runs[1:], alike[1:], strict=True):
            elsewhere += [(brief_value(same[nth], there), there.stamp)] if nth < len(same) else []
    # A recording's date and versions are in the box above.
    where = device if evidence.stamp else _("measured on {device}", device=device)
    return ShownValue(
        value.text,
        text,
        turns,
        series,
        badges.get((value.step, value.text), "") if len(group) == 1 else "",
        where if measured else "",
        tuple(elsewhere),
        any(v.error for v in group),
    )


def _turns_in(group: Sequence[Value], evidence: SectionView) -> tuple[str, Series | None]:
    """How many iterations, as far as the loops' records tell, and the course of the number over them."""
    value, loops = group[0], {v.loop for v in group if v.loop is not None}
    total = sum(evidence.entry.loops[loop].count for loop in loops)
    if len(loops) == 1:
        turns = ngettext("{n} turn", "{n} turns", total)
    elif loops:
        turns = _("{n} turns of {loops} loops", n=number(total), loops=number(len(loops)))
    else:
        turns = _("first and last of {n}", n=number(len(group))) if len(group) > 1 else ""
    place = value.loop, value.line, value.text
    course = (s for s in evidence.series if (s.loop, s.line, s.text) == place)
    return turns, next(course, None) if turns else None


def _loop_values(group: Sequence[Value], evidence: SectionView) -> str:
    """A value, or the first and the last of several."""
    first, last = brief_value(group[0], evidence), brief_value(group[-1], evidence)
    if len(group) > 1 and first == last:
        return _("{value} … unchanged", value=first)
    return first if len(group) == 1 else f"{first} … {last}"


def brief_value(value: Value, evidence: SectionView) -> str:
    """One value as short text."""
    snapshot = evidence.snapshot_of(value)
    if value.error or snapshot is None:
        return "✗ " + (value.error or _("no value"))
    long = len(formatting.line(snapshot, value.unit)) > SHORT and not formatting.measurement(snapshot)
    if isinstance(snapshot, Mapping) and snapshot.items and long:
        count = ngettext("{n} entry", "{n} entries", snapshot.length)
        return f"{snapshot.type.rpartition('.')[2]} · {count}"  # its table is on the shelf
    if isinstance(snapshot, Tensor) and has_bits(snapshot):
        return formatting.line(snapshot)  # its bits are on the shelf
    if isinstance(snapshot, Opaque) and snapshot.form and long:
        return snapshot.type.rpartition(".")[2]  # what it shows of itself is on the shelf
    return formatting.line(snapshot, value.unit)


def storage_badges(evidence: SectionView) -> Badges:
    """By step and expression: `same storage as x`; `own storage` where others share.

    A badge says nothing of a name that has another value by then: a view of what `x` was before `x = x + 1`
    shares storage with an earlier `x`.
    """
    tensors: list[tuple[Value, int]] = []
    for value in evidence.values:
        snapshot = evidence.snapshot_of(value)
        if value.loop is None and isinstance(snapshot, Tensor) and snapshot.storage is not None:
            tensors.append((value, snapshot.storage))
    now = {(value.step, value.text): storage for value, storage in tensors}
    latest: dict[str, tuple[int, Value]] = {}  # expression -> its storage, and where it was last seen
    names: dict[int, list[str]] = {}
    badges: Badges = {}
    fresh: list[tuple[int, str]] = []
    for value, storage in tensors:
        latest |= {text: (storage, value) for (step, text), storage in now.items() if step == value.step}
        sharers = names.setdefault(storage, [])
        others = [name for name in sharers if name != value.text]
        if not sharers:
            fresh.append((value.step, value.text))
        elif sharers[0] != value.text:
            name = ""
            for other in others:
                # Shared still, unless a statement that ran since has set a name of that expression.
                shared, seen = latest[other]
                names_ = set(seen.reads or [seen.text])
                since = evidence.entry.steps[seen.step + 1 : value.step + 1]
                if shared == storage and not any(
                    frame == value.frame and not names_.isdisjoint(evidence.entry.statements[number].binds)
                    for frame, number in since
                ):
                    name = other
                    break
            badges[value.step, value.text] = (
                _("same storage as {name}", name=name)
                if name
                else _("shares storage with an earlier {name}", name=others[0])
            )
        if value.text not in sharers:
            sharers.append(value.text)
    if badges:
        first = min(badges)
        badges |= {key: _("own storage") for key in fresh if key > first}
    return badges


# ---------------------------------------------------------------------------- claims


def caption(claim: Claim) -> str:
    """The caption: the author's, or for an annotation that holds the engine's."""
    return _(claim.caption) if claim.kind == "axes" and claim.caption else claim.caption


def side_values(claim: Claim, snapshots: Sequence[Snapshot]) -> str:
    """Both sides' values in the claim's test, or why an annotation does not hold; "" where nothing ran."""
    if claim.verdict in ("not-reached", "needs-device"):
        return ""
    if claim.kind == "axes":
        return claim.why
    shown = formatting.sides(claim, snapshots)
    if claim.verdict != "holds" or len(claim.form) != len(shown) + 1:
        return formatting.claim(claim, snapshots)
    claim = _with_signs(claim, len(shown))
    text = formatting.claim(claim, snapshots, shown)
    one = _one_side(claim, shown)
    if one is None:
        return text
    # What holds, with its values: `6 = 6`; equal sides that need a second line are named once.
    if one in PLAIN:
        return one
    if len(text) <= ROOM:
        return text
    return _("both {value}", value=one) if len(shown) == 2 else _("all {value}", value=one)


def common_side(claim: Claim, snapshots: Sequence[Snapshot]) -> str | None:
    """The value that all sides of a claim have; None where they differ, are alone, or nothing ran."""
    if claim.verdict != "holds" or claim.kind == "axes":
        return None
    shown = formatting.sides(claim, snapshots)
    if len(claim.form) != len(shown) + 1:
        return None
    return _one_side(_with_signs(claim, len(shown)), shown)


def _with_signs(claim: Claim, sides: int) -> Claim:
    """The claim with signs in its form where a call compares; a tolerance stands behind it."""
    for called, (sign, usual) in AS_SIGNS.items():
        if sides == 2 and claim.form[:2] == (called, ", "):
            bound = claim.form[2].removesuffix(")").strip(", ") or usual
            claim = replace(claim, form=("", sign, f" ({bound})" if bound else ""))
    form = claim.form
    for written, sign in COMPARED.items():
        form = tuple(part.replace(written, sign) for part in form)
    return replace(claim, form=form)


def _one_side(claim: Claim, shown: Sequence[str]) -> str | None:
    """The one value of all sides; None where they differ."""
    # `[1.0, 3.0] == [1, 3]` holds, and both are `[1, 3]`: the `.0` of whole floats goes, but in no text.
    bare = [
        side if "'" in side or '"' in side else re.sub(r"(?<=\d)\.0(?![\d.])", "", side) for side in shown
    ]
    one, *others = dict.fromkeys(bare)
    alone = len(shown) > 1 and not claim.form[0] and (not claim.form[-1] or " ≈ " in claim.form)
    equal = {*claim.form[1:-1]} <= {" = ", " ≈ ", " is "}
    return one if alone and equal and not others else None


# ---------------------------------------------------------------------------- what is not here


def absence(device: str, evidence: SectionView, others: Sequence[RecordedSection]) -> str:
    """Why a section has nothing of this build, and whose recording stands in its place, if there is one."""
    why = not_run(device)
    if evidence.stamp:
        return _("{why}. What stands here was recorded: {stamp}.", why=why, stamp=evidence.stamp)
    older = [other.stamp for other in others if other.entry.has_run]
    return _("{why}. Recorded: {stamp}.", why=why, stamp=older[0]) if older else f"{why}."


def not_run(device: str) -> str:
    """The one wording of what waits for a device: `Not run (needs a GPU)`."""
    return _("Not run (needs {device})", device=describe_need(device))


def describe_need(required: str) -> str:
    """What is required, in words: `a GPU`, `4 ranks`, `2 ranks on GPUs`."""
    if required == OLDER:
        return _("a new recording")
    need = needs(required or None)
    if not (many := need.ranks or need.simulated):
        return _(need.kind.words)
    return _(need.kind.words_of_ranks, ranks=ranks(many, bool(need.simulated)))


def ranks(count: int, simulated: bool) -> str:
    """`4 ranks`, `1,024 simulated ranks`."""
    if simulated:
        return ngettext("{n} simulated rank", "{n} simulated ranks", count)
    return ngettext("{n} rank", "{n} ranks", count)


SIMULATED = gettext_noop(
    "Simulated: one process runs as one of them. Shapes, counts and bytes are as on so many ranks; "
    "what the others would have sent is made up."
)
