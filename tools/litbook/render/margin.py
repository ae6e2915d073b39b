"""What stands beside a line of code: values, claims, errors. One short line each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from litbook.record.model import Claim, Error, Mapping, Opaque, Section, Snapshot, Tensor, Value, grouped
from litbook.render import bits, drawings, markup, prose, values
from litbook.render.catalogue import _, later, ngettext, number
from litbook.render.evidence import Evidence, Other
from litbook.render.markup import Html, tag

LONGEST = 90  # characters of an error beside its line
ROOM = 40  # characters of a claim that fit on one line of the margin
SHORT = 48  # characters up to which a mapping needs no table
PLAIN = ("True", "False", "None")  # sides that are said once
# Calls that compare two values, and how the margin writes them.
AS_SIGNS = {
    "torch.equal(": " = ",
    "not torch.equal(": " ≠ ",
    "torch.allclose(": " ≈ ",
    "math.isclose(": " ≈ ",
}
SIGNS = {"holds": "✓", "fails": "✗", "not-reached": "–", "needs-device": "○"}
DEVICES = {"cuda": later("a GPU"), "slow": later("minutes"), "": later("another device")}
Badges = dict[tuple[int, str], str]  # (step, expression) -> what is said of its storage

WORDS = {
    "holds": later("holds"),
    "fails": later("fails"),
    "not-reached": later("not reached"),
    "needs-device": later("not run"),
}


def build(
    evidence: Evidence,
    others: Sequence[Other],
    setting: prose.Setting,
    here: Section,
    code: Collection[int],
) -> defaultdict[int, list[Html]]:
    """All margin notes of a section, by line. `here` is its entry in the record of this build.

    A claim whose line is not among those of `code` says its caption here.
    """
    notes = defaultdict[int, list[Html]](list)
    badges = sharing(evidence)
    for group in groups(evidence.values):
        elsewhere = _elsewhere(group[0], evidence, others)
        notes[group[0].line].append(_value(group, evidence, badges, elsewhere))
    for claim in evidence.claims:
        text = _claim(claim, evidence, others, here, None if claim.line in code else setting)
        beside = notes[claim.line]
        # The promise of an annotation belongs to the variable, which is the first value of its line.
        if claim.kind == "axes" and beside and claim.verdict == "holds":
            beside[0] = markup.join([beside[0], text])
        else:
            beside.insert(1 if claim.kind == "axes" else len(beside), text)
    return notes


def groups(found: Sequence[Value]) -> list[list[Value]]:
    """Values of one expression on one line: several where a loop or a second inspection shows it again."""
    return list(grouped(found, lambda it: (it.line, it.text, it.kind, it.unit)).values())


def brief(value: Value, evidence: Evidence) -> str:
    """One value as short text."""
    it = evidence.snapshot_of(value)
    if value.error or it is None:
        return "✗ " + (value.error or _("no value"))
    long = len(values.line(it, value.unit)) > SHORT and not values.measurement(it)
    if isinstance(it, Mapping) and it.items and long:
        entries = ngettext("{n} entry", "{n} entries", it.length)
        return f"{it.type.rpartition('.')[2]} · {entries}"  # its table is on the shelf
    if isinstance(it, Tensor) and bits.drawable(it):
        return values.line(it)  # its bits are on the shelf
    if isinstance(it, Opaque) and it.form and long:
        return it.type.rpartition(".")[2]  # what it shows of itself is on the shelf
    return values.line(it, value.unit)


# ---------------------------------------------------------------------------- values


def _value(group: Sequence[Value], evidence: Evidence, badges: Badges, elsewhere: Html) -> Html:
    value = group[0]
    words = [brief(v, evidence) for v in group]
    if len(words) == 1:
        text = words[0]
    elif words[0] == words[-1]:
        text = _("{value} … unchanged", value=words[0])
    else:
        text = f"{words[0]} … {words[-1]}"
    parts = [tag("b", value.text), markup.SPACE, tag("span", text, class_="lb-text")]
    if count := _turns(group, evidence):
        parts.append(tag("small", f" {count}"))
        parts.append(_spark(value, evidence))
    if (badge := badges.get((value.step, value.text))) and len(group) == 1:
        parts += [markup.SPACE, tag("span", badge, class_="lb-badge")]
    if value.kind == "measure":
        device = (
            evidence.record.environment.device.name
        )  # a recording's date and versions are in the box above
        where = device if evidence.stamp else _("measured on {device}", device=device)
        parts += [markup.SPACE, tag("small", where, class_="lb-measured")]
    class_ = "lb-val lb-bad" if any(v.error for v in group) else "lb-val"
    return tag("div", *parts, elsewhere, class_=class_)


def _turns(group: Sequence[Value], evidence: Evidence) -> str:
    """`in 1,000 turns`, as far as the loops' records tell."""
    loops = {v.loop for v in group if v.loop is not None}
    if not loops:
        return _("first and last of {n}", n=number(len(group))) if len(group) > 1 else ""
    total = sum(evidence.entry.loops[loop].count for loop in loops)
    if len(loops) == 1:
        return ngettext("{n} turn", "{n} turns", total)
    return _("{n} turns of {loops} loops", n=number(total), loops=number(len(loops)))


def _spark(value: Value, evidence: Evidence) -> Html:
    for series in evidence.series:
        if (series.loop, series.line, series.text) == (value.loop, value.line, value.text):
            return markup.join([" ", drawings.sparkline(series)])
    return markup.NOTHING


def _elsewhere(value: Value, evidence: Evidence, others: Sequence[Other]) -> Html:
    """The same measurement in recordings of other devices."""
    if value.kind != "measure" or evidence.stamp:
        return markup.NOTHING
    nth = [v.step for v in evidence.values if v.text == value.text and v.kind == "measure"].index(value.step)
    found = []
    for there in (other.at(evidence.first) for other in others):
        same = [v for v in there.values if v.text == value.text and v.kind == "measure"]
        if nth < len(same):
            text = tag("span", brief(same[nth], there), class_="lb-text")
            stamp = tag("small", there.stamp)
            found.append(tag("div", text, " ", stamp, class_="lb-else"))
    return markup.join(found)


def sharing(evidence: Evidence) -> Badges:
    """By step and expression: `same storage as x`; `own storage` where others share.

    A badge says nothing of a name that has another value by then: a view of what `x` was before `x = x + 1`
    shares storage with an earlier `x`.
    """
    tensors = [(v, it) for v in evidence.values if v.loop is None and (it := _tensor(v, evidence))]
    now = {(v.step, v.text): it.storage for v, it in tensors}
    latest: dict[str, tuple[int | None, Value]] = {}  # expression -> its storage, and where it was last seen
    names: dict[int | None, list[str]] = {}
    found: Badges = {}
    fresh: list[tuple[int, str]] = []
    for value, it in tensors:
        latest |= {text: (storage, value) for (step, text), storage in now.items() if step == value.step}
        sharers = names.setdefault(it.storage, [])
        others = [name for name in sharers if name != value.text]
        if not sharers:
            fresh.append((value.step, value.text))
        elif sharers[0] != value.text:
            still = (
                n
                for n in others
                if latest[n][0] == it.storage and not _rebound(latest[n][1], value, evidence)
            )
            name = next(still, "")
            found[value.step, value.text] = (
                _("same storage as {name}", name=name)
                if name
                else _("shares storage with an earlier {name}", name=others[0])
            )
        if value.text not in sharers:
            sharers.append(value.text)
    if found:
        seen = min(found)
        found |= {key: _("own storage") for key in fresh if key > seen}
    return found


def _tensor(value: Value, evidence: Evidence) -> Tensor | None:
    it = evidence.snapshot_of(value)
    return it if isinstance(it, Tensor) and it.storage is not None else None


def _rebound(seen: Value, value: Value, evidence: Evidence) -> bool:
    """Whether a statement that ran after `seen`, up to `value`, sets a name of that expression."""
    names = set(seen.reads or [seen.text])
    entry = evidence.entry
    return any(
        frame == value.frame and not names.isdisjoint(entry.statements[statement].binds)
        for frame, statement in entry.steps[seen.step + 1 : value.step + 1]
    )


# ---------------------------------------------------------------------------- claims


def _claim(
    claim: Claim, evidence: Evidence, others: Sequence[Other], here: Section, setting: prose.Setting | None
) -> Html:
    """The verdict and both sides; the caption stands in the code, and here where `setting` is given."""
    verdict = claim.verdict
    if claim.kind == "axes" and verdict == "holds":
        return _kept_promise(claim)
    sign = tag("span", SIGNS[verdict], class_="lb-sign", aria_hidden="true")
    said = markup.text(_(WORDS[verdict]))
    if verdict == "holds":
        said = tag("span", f"{said}:", class_="lb-said")
    elif verdict == "fails":
        said = tag("strong", said)
    parts = [sign, markup.SPACE, said, markup.SPACE]
    if setting and claim.caption:
        parts += [prose.inline(claim.caption, setting), markup.SPACE]
    if test := sides(claim, evidence.entry.snapshots):
        parts.append(tag("span", test, class_="lb-sides"))
    if claim.count > 1:
        parts.append(tag("small", " · ", ngettext("{n} time", "{n} times", claim.count)))
    if tail := _tail(claim, evidence, others, here):
        parts += [markup.SPACE, tag("small", tail, class_="lb-measured" if test else None)]
    return tag("div", *parts, class_=f"lb-claim lb-{verdict}")


def _held(claim: Claim, snapshots: Sequence[Snapshot]) -> str:
    """What holds, with its values: `6 = 6`; equal sides that need a second line are named once."""
    shown = values.sides(claim, snapshots)
    if len(claim.form) != len(shown) + 1:
        return values.claim(claim, snapshots)
    for called, sign in AS_SIGNS.items():
        if len(shown) == 2 and claim.form[:2] == (called, ", "):
            claim = replace(claim, form=("", sign, ""))
    claim = replace(claim, form=tuple(it.replace(" == ", " = ") for it in claim.form))
    text = values.claim(claim, snapshots)
    one, *others = dict.fromkeys(_plain(side) for side in shown)
    bare = len(shown) > 1 and not any(claim.form[:: len(shown)])
    if others or not bare or not {*claim.form[1:-1]} <= {" = ", " ≈ ", " is "}:
        return text
    if one in PLAIN:
        return one
    if len(text) <= ROOM:
        return text
    return _("both {value}", value=one) if len(shown) == 2 else _("all {value}", value=one)


def _plain(side: str) -> str:
    """A side without the `.0` of whole floats: `[1.0, 3.0] == [1, 3]` holds, and both are `[1, 3]`."""
    return side if "'" in side or '"' in side else re.sub(r"(?<=\d)\.0(?![\d.])", "", side)


def _kept_promise(claim: Claim) -> Html:
    """A kept promise of dtype and axes stands beside the value, in few words."""
    sign = tag("span", "✓", class_="lb-sign", title=claim.text)
    words = tag("span", " ", _("dtype and axes"), class_="lb-words")
    return tag("span", sign, words, class_="lb-claim lb-axes")


def caption(claim: Claim) -> str:
    """The caption: the author's, or for an annotation that holds the engine's."""
    return _(claim.caption) if claim.kind == "axes" and claim.caption else claim.caption


def sides(claim: Claim, snapshots: Sequence[Snapshot]) -> str:
    """Both sides' values in the claim's test, or why an annotation does not hold; "" where nothing ran."""
    if claim.verdict in ("not-reached", "needs-device"):
        return ""
    if claim.kind == "axes":
        return claim.why
    return _held(claim, snapshots) if claim.verdict == "holds" else values.claim(claim, snapshots)


def _tail(claim: Claim, evidence: Evidence, others: Sequence[Other], here: Section) -> str:
    if evidence.stamp:  # the section's box says the rest
        return evidence.record.environment.device.name
    if claim.verdict != "needs-device":
        return ""
    for other in others:
        for there in other.entry.claims:
            if there.text == claim.text and there.verdict in ("holds", "fails"):
                parts = _(WORDS[there.verdict]), sides(there, other.entry.snapshots), other.stamp
                return " · ".join(filter(None, parts))
    # of a section the box says which device
    return "" if here.requires else _("(needs {device})", device=_(DEVICES.get(claim.why, claim.why)))


def absence(device: str, evidence: Evidence, others: Sequence[Other]) -> str:
    """Why a section has nothing of this build, and whose recording stands in its place, if there is one."""
    if evidence.stamp:
        return _("{why}. What stands here was recorded: {stamp}.", why=not_run(device), stamp=evidence.stamp)
    older = [other.stamp for other in others if other.entry.ran]
    if older:
        return _("{why}. Recorded: {stamp}.", why=not_run(device), stamp=older[0])
    return f"{not_run(device)}."


def not_run(device: str) -> str:
    """The one wording of what waits for a device: `Not run (needs a GPU)`."""
    return _("Not run (needs {device})", device=_(DEVICES.get(device, device)))


# ---------------------------------------------------------------------------- what went wrong


def error(it: Error) -> Html:
    """An error as one short note; its box says more."""
    sign = tag("strong", "✗ ", _("error"))
    return tag("div", sign, " ", it.message[:LONGEST], class_="lb-val lb-bad")


def failure_box(claim: Claim, evidence: Evidence, path: str) -> Html:
    """A failed claim, impossible to overlook: its source, what each side was, and where it stands."""
    rows = []
    for side in claim.operands:
        was = _("never evaluated") if side.value is None else values.line(evidence.snapshot(side.value))
        if was != side.text:
            rows.append(tag("dt", tag("code", side.text)))
            rows.append(tag("dd", was))
    head = tag("strong", _("This claim fails.")), markup.text(f" {claim.caption} ")
    where = tag("small", f"{path}:{claim.line}")
    body = tag("code", claim.text, class_="lb-source")
    why = (tag("p", line) for line in claim.why.splitlines())
    return tag("div", tag("p", *head, where), body, tag("dl", *rows), *why, class_="lb-failure")


def error_box(it: Error, path: str) -> Html:
    """An error with the own lines of its traceback: the lecture's, and those of the modules beside it."""
    head = {
        "exit": _("The lecture tried to exit."),
        "inspect": _("This value could not be taken."),
        "assert": _("An assert is wrong here."),
    }.get(it.kind, _("The lecture raised here."))
    where = tag("small", f"{path}:{it.line}")
    parts = [tag("p", tag("strong", head), " ", where)]
    if it.trace:
        places = (
            (_("{place} in {name}", place=f"{p}:{line}", name=name), source)
            for p, line, name, source in it.trace
        )
        trace = (f"{place}\n    {source.strip()}" for place, source in places)
        parts.append(tag("pre", "\n".join(trace)))
    elif it.text:
        parts.append(tag("code", it.text.strip(), class_="lb-source"))
    message = tag("p", tag("code", it.message))
    return tag("div", *parts, message, class_="lb-failure")
