"""What went wrong in a run, and how many claims hold: the same lines in the terminal and in a build."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from litbook.i18n import _
from litbook.markdown.escape import spell
from litbook.page.view import here, origin
from litbook.record import compare
from litbook.record.limits import LARGE_IMAGE
from litbook.record.model import Record, Scalar, grouped
from litbook.rules.shown_nowhere import lost
from litbook.values import formatting

LONG = 2.0  # seconds, from which on a run says which sections took longest
MOST = 3  # of them
NAMED = 5  # sections that a line names; the rest is counted


def problems(record: Record) -> list[str]:
    """Every failed claim and every error, in line order; each names its place and repeats the user's line."""
    texts: list[tuple[int, int, list[str]]] = []
    missing = dict[str, list[str]]()  # what several imports miss, said once
    for section in record.sections:
        path, evidence = record.sources[section.file].path, here(record, section)
        for claim in evidence.claims:
            if claim.verdict != "fails":
                continue
            lines = [f"{path}:{claim.line}: claim fails: {claim.caption or claim.text}"]
            texts.append((section.file, claim.line, lines))
            if claim.kind == "axes":
                lines += [f"    {claim.text}", f"    {claim.why}"]
                continue
            lines.append(f"    assert {claim.text}")
            if claim.operands:
                lines.append(f"    {formatting.claim(claim, section.snapshots)}")
            for text, at in dict.fromkeys((operand.text, operand.value) for operand in claim.operands):
                # Literals say themselves what they are.
                if at is not None and not re.match(r"""[\d"'(\[{-]""", text):
                    seen = section.snapshots[at]
                    # With every digit, where that is short: `0.1 + 0.2 is 0.3` would be a lie.
                    exact = formatting.line(seen)
                    if isinstance(seen, Scalar) and isinstance(seen.number, float):
                        exact = seen.text
                    lines.append(f"      {text} is {exact}")
            lines += [f"      {line}" for line in claim.why.splitlines()]
        for kept, error in zip(section.errors, evidence.errors, strict=True):
            message = error.message.replace("\n", "\n        ")
            file, line, _name, inner = error.trace[-1] if error.trace else (path, error.line, "", error.text)
            if message.startswith("ModuleNotFoundError") and message in missing:
                missing[message].append(f"    and at {file}:{line}")
                continue
            lines = [f"{file}:{line}: {message}", *([f"    {inner.strip()}"] if inner.strip() else [])]
            for file, line, function, _text in reversed(error.trace[:-1]):
                lines.append(f"    called from {file}:{line} in {function}")
            if message.startswith("ModuleNotFoundError"):
                missing[message] = lines
            texts.append((*origin(record, section, kept), lines))
    return [harmless("\n".join(lines)) for _, _, lines in sorted(texts, key=lambda text: text[:2])]


def remarks(record: Record) -> list[str]:
    """What is no error: pictures that take long to load, values that nobody sees, each with its place."""
    lines = []
    for section in record.sections:
        path, its = record.sources[section.file].path, here(record, section)
        for piece in its.pieces if its.calls else ():
            size = len(piece.data.partition(",")[2].rstrip("=")) * 3 // 4
            if piece.kind == "image" and size > LARGE_IMAGE:
                head = f"{path}:{piece.line}: a picture of {size:,} bytes: {piece.alt[:60]}"
                way_out = "every reader loads it: fewer pixels, JPEG or WebP take less"
                lines.append(harmless(f"{head}\n    {way_out}"))
        texts = record.sources[section.file].text.split("\n")
        rows = {section.first + it.first: it for it in section.statements if it.first == it.last}
        margin = min((len(texts[at - 1]) - len(texts[at - 1].lstrip()) for at in rows), default=0)
        for at, statement in rows.items():
            code = texts[at - 1][margin:]  # within a block, a `try` say, a value may be asked for to raise
            if statement.kind == "code" and not code.startswith(" ") and (found := lost(code)):
                what, way_out = found
                lines.append(harmless(f"{path}:{at}: {what}\n    {code.rstrip()}\n    {way_out}"))
    return lines


def older(record: Record, recordings: Sequence[Record]) -> list[str]:
    """The sections of each recording that something has changed since, and how they are recorded anew."""
    lines = list[str]()
    for recording, pairs in itertools.groupby(compare.older(record, recordings), lambda pair: pair[0]):
        keys, device = [key for _, key in pairs], recording.environment.device
        some = f"{_number(len(keys), 'section')} recorded from an older text: {_named(keys)}"
        file, anew = f"{record.lecture}.{device.slug}.json", record_anew(record.lecture, device.kind)
        lines.append(harmless(f"{file}: {some}\n    to record anew: {anew}"))
    return lines


def differing(differences: Sequence[compare.Difference]) -> list[str]:
    """A text for each value and claim that differs, and a line for all sections that are alike."""
    texts = [harmless(str(difference)) for difference in differences if difference.contradicts]
    sections = [difference for difference in differences if not difference.contradicts]
    for what, alike in grouped(sections, lambda difference: difference.what).items():
        some = f"each of {len(alike)} sections {what}: {_named([one.section for one in alike])}"
        texts.append(harmless(some if len(alike) > 1 else str(alike[0])))
    return texts


def failed(record: Record, recordings: Sequence[Record]) -> list[str]:
    """The claims that fail as they were recorded: no run leaves such a recording."""
    lines = list[str]()
    for recording in recordings:
        device = recording.environment.device
        file, anew = f"{record.lecture}.{device.slug}.json", record_anew(record.lecture, device.kind)
        for section in recording.sections:
            for claim in here(recording, section).claims:
                if claim.verdict == "fails":
                    place = f"{recording.sources[section.file].path}:{claim.line}"
                    what = f"{file}: {place}: claim fails: {claim.caption or claim.text}"
                    lines.append(harmless(f"{what}\n    assert {claim.text}\n    to record anew: {anew}"))
    return lines


def record_anew(lecture: str, device: str) -> str:
    """The command that replaces a recording."""
    return f"litbook record {lecture} --device {device} --approve"


def harmless(text: str) -> str:
    """`text` without characters that steer a terminal: `ESC [31m` would colour, or worse."""
    if text.isprintable():
        return text
    return "".join(spell(c, kept="\n\t\u200c\u200d\u2028\u2029") for c in text)


def summary(record: Record) -> str:
    """The last line of every run: `212 claims hold, 0 fail, 14 not run`."""
    counts, names = record.count(), ("holds", "fails", "needs-device", "not-reached")
    hold, fail, elsewhere, unreached = (counts[name] for name in names)
    text = f"{_number(hold, 'claim')} {'holds' if hold == 1 else 'hold'}"
    text += f", {fail} {'fails' if fail == 1 else 'fail'}, {elsewhere} not run"
    if unreached:
        text += f", {unreached} {'was' if unreached == 1 else 'were'} not reached"
    if errors := len(list(record.errors())):
        text += f"; {_number(errors, 'error')}"
    return text


def longest(records: Sequence[Record]) -> str:
    """Which sections took longest, each without those inside it; "" where all together were quick."""
    took: list[tuple[float, str]] = []
    for record in records:
        inside = dict.fromkeys((section.parent for section in record.sections), 0.0)
        for section in record.sections:
            inside[section.parent] += section.seconds
        lecture = f"{record.lecture} " * (len(records) > 1)
        its = [section for section in record.sections if section.kind not in ("module", "main")]
        took += [(section.seconds - inside.get(section.key, 0.0), lecture + section.key) for section in its]
    if sum(seconds for seconds, _ in took) < LONG:
        return ""
    first = [f"{name} {s:.1f} s" for s, name in sorted(took, reverse=True)[:MOST] if s > 0.05]
    return "longest: " * bool(first) + ", ".join(first)


def releases(fresh: Record, there: Record, name: str = "this run") -> str:
    """That a recording was made by another release of PyTorch than what is compared with it; "" where not."""
    was, now = (r.environment.versions.get("torch", "") for r in (there, fresh))
    if was.partition("+")[0] == now.partition("+")[0] or not (was and now):
        return ""
    return harmless(
        _("This recording was made by torch {was}, {run} by torch {now}.", was=was, run=name, now=now)
    )


def interpreters(fresh: Record, there: Record) -> str:
    """That a recording was made by another release of Python than this run; "" where both are, say, 3.12."""
    was, now = (r.environment.python for r in (there, fresh))
    if was.split(".")[:2] == now.split(".")[:2]:
        return ""
    return harmless(f"recorded by Python {was}, run by Python {now}: a value may depend on that")


def holds(record: Record) -> bool:
    """Whether nothing failed and nothing was raised."""
    return not any(record.errors()) and record.count()["fails"] == 0


def _named(keys: Sequence[str]) -> str:
    return ", ".join(keys[:NAMED]) + (f" and {len(keys) - NAMED} more" if len(keys) > NAMED else "")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
