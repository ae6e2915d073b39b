"""The devices page: the machines behind the numbers, and what differed between them.

A table for each lecture: this build, and every recording of another device. What differed is compared
elsewhere; this module shows it, and knows no tolerances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from litbook.html import elements
from litbook.html.elements import Html, Page, tag
from litbook.i18n import _, day, gettext_noop, ngettext, number
from litbook.markdown import to_html
from litbook.markdown.links import Citations, NoteContext
from litbook.page import margin, sitemap
from litbook.page.runs import LectureRuns
from litbook.page.search import SearchPassage
from litbook.record.compare import Difference
from litbook.record.device_kinds import devices, needs
from litbook.record.model import Record
from litbook.rules import outcome
from litbook.values import units

TITLE = gettext_noop("Devices")
SHOWN = 40  # differences listed for one recording; the rest is counted
INTRODUCTION = gettext_noop(
    "A value that depends on the machine stands on a lecture's page beside the device it was measured on. "
    "These are the machines. A build runs what its own machine can; the rest comes out of recordings, which "
    "were made elsewhere and are kept beside the lectures. No number is written by hand."
)


# By a lecture's folder and a device's slug, what a recording of that device says differently.
Differences = Mapping[tuple[str, str], Sequence[Difference]]


def page(lectures: Sequence[LectureRuns], differences: Differences) -> Page:
    """The page as Markdown. It stands beside the lectures' folders."""
    parts = [elements.heading(1, _(TITLE)), tag("p", _(INTRODUCTION))]
    for edition in lectures:
        title = to_html.inline(edition.record.title, NoteContext(Citations(sitemap.NOTHING_CITED)))
        # A column for each machine, a row for each thing that is known of one of them.
        runs = [edition.record, *edition.other_recordings()]
        libraries = dict.fromkeys(name for run in runs for name in run.environment.versions)
        columns = [_facts(run, libraries) for run in runs]
        depends = {s.key: s.depends for s in edition.record.sections}
        for run, column in zip(runs, columns, strict=True):
            older = sum(depends.get(s.key, s.depends) != s.depends for s in run.sections)
            column[_("sections of an older text")] = "" if run is edition.record else str(older)
        heads = [_("what"), _("this build"), *[_("recording")] * len(runs[1:])]
        rows = []
        for name in columns[0]:
            cells = [column[name] for column in columns]
            if any(cells):
                rows.append(tag("tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells)))
        parts += [
            elements.heading(2, title, edition.folder),
            _wide_table(_("Machines that ran {lecture}", lecture=edition.folder), heads, rows),
            _missing_device(edition),
        ]
        for recording in edition.other_recordings():
            slug = recording.environment.device.slug
            parts += _difference_table(edition, recording, differences.get((edition.folder, slug), ()))
    return elements.page(parts, [SearchPassage("", _(TITLE), (_(INTRODUCTION),))])


def _wide_table(label: str, heads: Sequence[str], rows: Sequence[Html]) -> Html:
    """A table that is wider than a phone."""
    titles = tag("tr", *(tag("th", title, scope="col") for title in heads))
    table = tag("table", tag("thead", titles), tag("tbody", *rows))
    return tag("div", table, class_="lb-scroll", role="region", aria_label=label, tabindex=0)


# ---------------------------------------------------------------------------- the machines


def _facts(run: Record, libraries: Iterable[str]) -> dict[str, str]:
    """What is known of the machine of one run, and what came out; "" where nothing is."""
    where, claims = run.environment, run.count()
    device = where.device
    gpu = None if device.kind == "cpu" else device
    cores = ngettext("{n} core", "{n} cores", where.cores)
    facts = {
        _("device"): device.name,
        _("its memory"): units.size(device.memory) if device.memory else "",
        _("compute capability"): gpu and gpu.capability,
        _("GPUs visible, the first used"): gpu and gpu.count,
        _("driver"): gpu and gpu.driver,
        "CUDA": gpu and gpu.cuda,
        _("processor"): f"{where.cpu}, {cores}",
        _("threads of torch"): where.threads or "",
        _("operating system"): f"{where.os}, {where.machine}",
        "Python": where.python,
        **{name: where.versions.get(name) for name in libraries},
        _("date"): day(where.date),
        _("commit"): where.commit,
        _("time taken"): f"{number(run.seconds)} s" if run.seconds else "",
        _("claims that hold"): number(claims["holds"]),
        _("claims that fail"): number(claims["fails"]),
        _("claims not run"): number(claims["needs-device"]),
    }
    return {name: "" if fact is None else str(fact) for name, fact in facts.items()}


def _missing_device(edition: LectureRuns) -> Html:
    """What waits for a device that nobody has recorded on."""
    kinds = {kind.name for kind in devices()} - {run.environment.device.kind for run in edition.runs()}
    required = {section.requires for section in edition.record.sections if section.requires}
    needed = sorted(need for need in required if needs(need).device in kinds)
    waits = (section for section, claim in edition.record.claims() if claim.verdict == "needs-device")
    waiting = [section.key for section in waits if section.requires in needed]
    if not needed or not waiting:
        return elements.NOTHING
    words = ngettext(
        "{n} claim in {sections} wait for one: ", "{n} claims in {sections} wait for one: ", len(waiting),
        sections=ngettext("{n} section", "{n} sections", len({*waiting})),
    )  # fmt: skip
    missing = tag("strong", f"{margin.not_run(needed[0])}.")
    command = tag("code", f"litbook record {edition.folder} --device {needs(needed[0]).device}")
    return tag("p", missing, " ", words, command)


# ---------------------------------------------------------------------------- what differed


def _difference_table(
    edition: LectureRuns, recording: Record, differences: Sequence[Difference]
) -> list[Html]:
    """What one recording says differently, in a table; that nothing differs, where it is so."""
    device = recording.environment.device
    title = _("What differed on {device}", device=device.name)
    told = _("Every value and claim that both runs are to agree on is the same, within the tolerances.")
    if count := len(differences):
        told = ngettext(
            "{n} difference in what both runs are to agree on:",
            "{n} differences in what both runs are to agree on:",
            count,
        )
    words = filter(None, [outcome.releases(edition.record, recording, _("this build")), told])
    parts = [elements.heading(3, title, f"{edition.folder}-{device.slug}"), tag("p", " ".join(words))]
    rows = []
    for difference in differences[:SHOWN]:
        where = _("{section}, line {line}", section=difference.section, line=difference.place.line)
        for change in difference.changes[:1]:
            about = f" {change.aspect}" if change.aspect else ""
            what = tag("td", tag("code", f"{difference.what}{change.element}"), about)
            rest = (tag("td", cell) for cell in (change.was, change.now, change.by))
            rows.append(tag("tr", tag("td", where), what, *rest))
    if count:
        label = _("Differences of {lecture} on {device}", lecture=edition.folder, device=device.name)
        heads = _("section"), _("value"), _("on {device}", device=device.name), _("in this build"), _("by")
        parts.append(_wide_table(label, heads, rows))
    parts += [tag("p", _("and {n} more", n=number(count - SHOWN)))] if count > SHOWN else []
    return parts
