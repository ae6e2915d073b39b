"""What went wrong in a run, and how many claims hold: the same lines in the terminal and in a build."""

from __future__ import annotations

from collections.abc import Sequence

from litbook.document.visible import spell
from litbook.record.limits import LARGE_IMAGE
from litbook.record.model import Claim, Error, Record, Scalar, Snapshot
from litbook.render import values
from litbook.render.catalogue import _
from litbook.render.evidence import here, origin

LONG = 2.0  # seconds, from which on a run says which sections took longest
MOST = 3  # of them


def problems(record: Record) -> list[str]:
    """Every failed claim and every error, in line order; each names its place and repeats the user's line."""
    found: list[tuple[int, int, str]] = []
    for section in record.sections:
        path, its = record.sources[section.file].path, here(record, section)
        failing = [claim for claim in its.claims if claim.verdict == "fails"]
        found += [(section.file, it.line, _claim(path, it, section.snapshots)) for it in failing]
        found += [
            (*origin(record, section, error), _error(path, it))
            for error, it in zip(section.errors, its.errors, strict=True)
        ]
    return [harmless(text) for _, _, text in sorted(found, key=lambda it: it[:2])]


def remarks(record: Record) -> list[str]:
    """What is no error: pictures that take readers long to load, each with its place."""
    found = []
    for section in record.sections:
        path, its = record.sources[section.file].path, here(record, section)
        for it in its.pieces if its.calls else ():
            size = len(it.data.partition(",")[2].rstrip("=")) * 3 // 4
            if it.kind == "image" and size > LARGE_IMAGE:
                head = f"{path}:{it.line}: a picture of {size:,} bytes: {it.alt[:60]}"
                found.append(
                    harmless(f"{head}\n    every reader loads it: fewer pixels, JPEG or WebP take less")
                )
    return found


def refers(record: Record) -> bool:
    """Whether any prose of the run cites a work, or links to something in the book."""
    said = (
        text for section in record.sections for it in section.pieces for text in (it.text, it.data, it.why)
    )
    return any("[@" in text or "](#" in text or text.startswith(("cite:", "function:")) for text in said)


def harmless(text: str) -> str:
    """`text` without characters that steer a terminal: `ESC [31m` would colour, or worse."""
    if text.isprintable():
        return text
    return "".join(spell(c, kept="\n\t\u200c\u200d\u2028\u2029") for c in text)


def summary(record: Record) -> str:
    """The last line of every run: `212 claims hold, 0 fail, 14 not run`."""
    found, names = record.count(), ("holds", "fails", "needs-device", "not-reached")
    hold, fail, elsewhere, unreached = (found[name] for name in names)
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
        inside = dict.fromkeys((it.parent for it in record.sections), 0.0)
        for it in record.sections:
            inside[it.parent] += it.seconds
        lecture = f"{record.lecture} " * (len(records) > 1)
        its = [it for it in record.sections if it.kind not in ("module", "main")]
        took += [(it.seconds - inside.get(it.key, 0.0), lecture + it.key) for it in its]
    if sum(seconds for seconds, _ in took) < LONG:
        return ""
    first = [
        f"{name} {seconds:.1f} s" for seconds, name in sorted(took, reverse=True)[:MOST] if seconds > 0.05
    ]
    return "longest: " * bool(first) + ", ".join(first)


def releases(own: Record, there: Record, name: str = "this run") -> str:
    """That a recording was made by another release of PyTorch than what is compared with it; "" where not."""
    was, now = (r.environment.versions.get("torch", "") for r in (there, own))
    if was.partition("+")[0] == now.partition("+")[0]:
        return ""
    return harmless(
        _("This recording was made by torch {was}, {run} by torch {now}.", was=was, run=name, now=now)
    )


def holds(record: Record) -> bool:
    """Whether nothing failed and nothing was raised."""
    return not any(record.errors()) and record.count()["fails"] == 0


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _claim(path: str, claim: Claim, snapshots: Sequence[Snapshot]) -> str:
    lines = [f"{path}:{claim.line}: claim fails: {claim.caption or claim.text}"]
    if claim.kind == "axes":
        return "\n".join([*lines, f"    {claim.text}", f"    {claim.why}"])
    lines.append(f"    assert {claim.text}")
    if claim.operands:
        lines.append(f"    {values.claim(claim, snapshots)}")
    seen = dict.fromkeys((o.text, o.value) for o in claim.operands if not _is_literal(o.text))
    lines += [f"      {text} is {_exact(snapshots[at])}" for text, at in seen if at is not None]
    lines += [f"      {line}" for line in claim.why.splitlines()]
    return "\n".join(lines)


def _exact(snapshot: Snapshot) -> str:
    """With every digit, where that is short: `0.1 + 0.2 is 0.3` would be a lie."""
    if isinstance(snapshot, Scalar) and isinstance(snapshot.number, float):
        return snapshot.text
    return values.line(snapshot)


def _is_literal(text: str) -> bool:
    """Literals say themselves what they are."""
    return text[:1].isdigit() or text[:1] in "\"'([{-"


def _error(path: str, error: Error) -> str:
    message = error.message.replace("\n", "\n        ")
    at, line, _, inner = error.trace[-1] if error.trace else (path, error.line, "", error.text)
    lines = [f"{at}:{line}: {message}"]
    if inner.strip():
        lines.append(f"    {inner.strip()}")
    outer = [f"{at}:{line} in {function}" for at, line, function, _ in reversed(error.trace[:-1])]
    lines += [f"    called from {place}" for place in outer]
    return "\n".join(lines)
