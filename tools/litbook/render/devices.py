"""The devices page: the machines behind the numbers, and what differed between them.

A table for each lecture: this build, and every recording of another device. What differed is compared
elsewhere and comes as `Difference`s; this module shows it, and knows no tolerances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from litbook.document import amounts, margin
from litbook.document.search import Passage
from litbook.html import finished
from litbook.html.finished import Page
from litbook.record.model import LIBRARIES, Record
from litbook.render import books, markup, prose, report
from litbook.render.catalogue import _, day, later, ngettext, number
from litbook.render.edition import Edition
from litbook.render.markup import Html, tag

TITLE = later("Devices")
SHOWN = 40  # differences listed for one recording; the rest is counted
INTRODUCTION = later(
    "A value that depends on the machine stands on a lecture's page beside the device it was measured on. "
    "These are the machines. A build runs what its own machine can; the rest comes out of recordings, which "
    "were made elsewhere and are kept beside the lectures. No number is written by hand."
)


@dataclass(frozen=True)
class Difference:
    """One value or claim that was not the same on another device; each change is (of what, was, is, by)."""

    section: str
    line: int
    what: str
    changes: tuple[tuple[str, str, str, str], ...] = ()


Found = Mapping[tuple[str, str], Sequence[Difference]]  # by the lecture's folder and the device's slug


def page(lectures: Sequence[Edition], found: Found) -> Page:
    """The page as Markdown. It stands beside the lectures' folders."""
    parts = [markup.heading(1, _(TITLE)), tag("p", _(INTRODUCTION))]
    for it in lectures:
        title = prose.inline(it.record.title, prose.Setting(prose.Citations(books.NOTHING_CITED)))
        parts += [markup.heading(2, title, it.folder), _machines(it), _missing(it)]
        for recording in it.elsewhere():
            parts += _differing(it, recording, found)
    return finished.page(parts, [Passage("", _(TITLE), (_(INTRODUCTION),))])


# ---------------------------------------------------------------------------- the machines


def _machines(edition: Edition) -> Html:
    """A column for each machine, a row for each thing that is known of one of them."""
    runs = [edition.record, *edition.elsewhere()]
    heads = [_("what"), _("this build"), *[_("recording")] * len(runs[1:])]
    rows = [(_(name), [read(run) for run in runs]) for name, read in FACTS.items()]
    rows.append((_("sections of an older text"), ["", *(_older(edition.record, run) for run in runs[1:])]))
    body = (tag("tr", tag("th", name, scope="row"), *markup.cells(of)) for name, of in rows if any(of))
    return _scrolling(_("Machines that ran {lecture}", lecture=edition.folder), markup.table(heads, body))


def _scrolling(label: str, table: Html) -> Html:
    return tag("div", table, class_="lb-scroll", role="region", aria_label=label, tabindex=0)


def _cores(record: Record) -> str:
    return ngettext("{n} core", "{n} cores", record.environment.cores)


def _gpu(read: Callable[[Record], object]) -> Callable[[Record], str]:
    def known(record: Record) -> str:
        value = read(record) if record.environment.device.kind != "cpu" else None
        return "" if value is None else str(value)

    return known


def _version(name: str) -> Callable[[Record], str]:
    return lambda record: record.environment.versions.get(name, "")


FACTS: dict[str, Callable[[Record], str]] = {
    later("device"): lambda r: r.environment.device.name,
    later("its memory"): lambda r: (
        amounts.size(r.environment.device.memory) if r.environment.device.memory else ""
    ),
    later("compute capability"): _gpu(lambda r: r.environment.device.capability),
    later("GPUs visible, the first used"): _gpu(lambda r: r.environment.device.count),
    later("driver"): _gpu(lambda r: r.environment.device.driver),
    "CUDA": _gpu(lambda r: r.environment.device.cuda),
    later("processor"): lambda r: f"{r.environment.cpu}, {_cores(r)}",
    later("threads of torch"): lambda r: str(r.environment.threads or ""),
    later("operating system"): lambda r: f"{r.environment.os}, {r.environment.machine}",
    "Python": lambda r: r.environment.python,
    **{name: _version(name) for name in LIBRARIES},
    later("date"): lambda r: day(r.environment.date),
    later("commit"): lambda r: r.environment.commit or "",
    later("time taken"): lambda r: f"{number(r.seconds)} s" if r.seconds else "",
    later("claims that hold"): lambda r: number(r.count()["holds"]),
    later("claims that fail"): lambda r: number(r.count()["fails"]),
    later("claims not run"): lambda r: number(r.count()["needs-device"]),
}


def _older(here: Record, there: Record) -> str:
    """How many sections that both have are of another text in the recording."""
    own = {it.key: it.digest for it in here.sections if it.kind != "module"}
    return str(sum(own.get(it.key, it.digest) != it.digest for it in there.sections))


def _missing(edition: Edition) -> Html:
    """What waits for a device that nobody has recorded on."""
    ran = {"slow", *(run.environment.device.kind for run in edition.runs())}
    needed = sorted({it.requires for it in edition.record.sections if it.requires} - ran)
    waiting = [
        section.key
        for section, claim in edition.record.claims()
        if claim.verdict == "needs-device" and section.requires in needed
    ]
    if not needed or not waiting:
        return markup.NOTHING
    sections = len(set(waiting))
    command = f"litbook record {edition.folder} --device {needed[0]}"
    missing = f"{margin.not_run(needed[0])}."
    return tag(
        "p",
        tag("strong", missing),
        " ",
        ngettext(
            "{n} claim in {sections} wait for one: ",
            "{n} claims in {sections} wait for one: ",
            len(waiting),
            sections=ngettext("{n} section", "{n} sections", sections),
        ),
        tag("code", command),
    )


# ---------------------------------------------------------------------------- what differed


def _differing(edition: Edition, recording: Record, found: Found) -> list[Html]:
    device = recording.environment.device
    differences = found.get((edition.folder, device.slug), ())
    head = markup.heading(
        3, _("What differed on {device}", device=device.name), f"{edition.folder}-{device.slug}"
    )
    words = [report.releases(edition.record, recording, _("this build"))]
    if not differences:
        words.append(
            _("Every value and claim that both runs are to agree on is the same, within the tolerances.")
        )
        return [head, tag("p", " ".join(filter(None, words)))]
    words.append(
        ngettext(
            "{n} difference in what both runs are to agree on:",
            "{n} differences in what both runs are to agree on:",
            len(differences),
        )
    )
    rows = [_row(it, change) for it in differences[:SHOWN] for change in it.changes[:1]]
    titles = (_("section"), _("value"), _("on {device}", device=device.name), _("in this build"), _("by"))
    left = len(differences) - SHOWN
    return [
        head,
        tag("p", " ".join(filter(None, words))),
        _scrolling(
            _("Differences of {lecture} on {device}", lecture=edition.folder, device=device.name),
            markup.table(titles, rows),
        ),
        *([tag("p", _("and {n} more", n=number(left)))] if left > 0 else []),
    ]


def _row(it: Difference, change: tuple[str, str, str, str]) -> Html:
    at, was, now, by = change
    section, what = (
        _("{section}, line {line}", section=it.section, line=it.line),
        tag("code", f"{it.what}{at}"),
    )
    return tag("tr", *markup.cells((section, what, was, now, by)))
