"""How a run went, in a line: how many claims hold, which sections took longest, what recorded it.

In goes a record, out come lines for people: the same in the terminal and in a build.
"""

from __future__ import annotations

from collections.abc import Sequence

from litbook.i18n import _
from litbook.markdown.escape import spell
from litbook.record.model import Record

LONG = 2.0  # seconds, from which on a run says which sections took longest
MOST = 3  # of them


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
    text = f"{count_of(hold, 'claim')} {'holds' if hold == 1 else 'hold'}"
    text += f", {fail} {'fails' if fail == 1 else 'fail'}, {elsewhere} not run"
    if unreached:
        text += f", {unreached} {'was' if unreached == 1 else 'were'} not reached"
    if errors := len(list(record.errors())):
        text += f"; {count_of(errors, 'error')}"
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


def count_of(count: int, noun: str) -> str:
    """`1 claim`, `2 claims`."""
    return f"{count} {noun}" + ("" if count == 1 else "s")
