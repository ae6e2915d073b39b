"""All rules, a row each: code, severity, what it reads, and the function from a subject to findings.

A rule of one's own is a `Rule` that a package names as an entry point of the group `litbook.rules`; an
optional package of litbook's calls `register`. What a rule finds, why that is wrong, an example and the way
out stand in its explanation, of which the docs are made: see `explain`.
"""

from __future__ import annotations

import functools
import re
import textwrap
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from inspect import cleandoc, getdoc
from pathlib import Path
from typing import Any, Literal

from litbook import plugins
from litbook.errors import LitbookError, NotFound
from litbook.finding import Finding
from litbook.lecture.directives import UNREAD
from litbook.lecture.model import Lecture
from litbook.lecture.prose import lines_with_links
from litbook.markdown.refusals import KINDS, RefusalKind
from litbook.rules import (
    false_equation,
    leaning,
    never_ran,
    recorded,
    run,
    unbacked_number,
    unchecked_answer,
    vacuous,
)
from litbook.rules import unclaimed_measure as measures
from litbook.rules.subject import Subject

Severity = Literal["error", "warn", "off"]
SEVERITIES: tuple[Severity, ...] = ("error", "warn", "off")
GROUP = "litbook.rules"  # of entry points
FROM_ENTRY_POINTS = set[str]()  # the codes of other packages' rules


@dataclass(frozen=True, eq=False)
class Rule:
    """One kind of thing that can be wrong.

    `find` gives the findings of its code, and may give others, which are left to their own rules. It reads
    the lecture's "text" alone; a "run", for which the lecture runs first; or "trials", many runs, which only
    `check` makes. What it reads of the "book" is no one lecture's; what only who draws "pages" can find it
    leaves to them. Where the author has meant no claim, in another tool's words, a `lenient` one is a remark.
    """

    code: str
    find: Callable[[Subject], Iterable[Finding]]
    severity: Severity = "error"
    reads: Literal["text", "run", "book", "pages", "trials"] = "run"
    lenient: bool = False
    doc: str = ""
    refuses: bool = False  # the lecture cannot run: nobody can choose another severity

    @property
    def explanation(self) -> Explanation:
        """What it finds, why that is wrong, an example, the way out."""
        return explain(self.doc or written().get(self.code) or getdoc(self.find) or "")

    @property
    def summary(self) -> str:
        """What it finds, in a sentence."""
        return self.explanation.what


@dataclass(frozen=True)
class Explanation:
    """The parts of a rule's explanation. `example` is a lecture, or a section's body; `then` a later one."""

    what: str
    why: str = ""
    example: str = ""
    then: str = ""
    way_out: str = ""


@functools.cache
def written() -> Mapping[str, str]:
    """The explanations that stand in a file, by code; of kinds of notes the example, by `note: KIND`."""
    text = Path(__file__).with_name("explanations.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (.+)\n\n((?:(?!## ).*\n)*)", text, re.MULTILINE))


_PARTS = {"Why": "why", "Example": "example", "Then": "then", "Way out": "way_out"}
_PART = re.compile(rf"^({'|'.join(_PARTS)}):[ ]*", re.MULTILINE)


def explain(text: str) -> Explanation:
    """The parts of a text: what a rule finds, then `Why:`, `Example:`, perhaps `Then:`, and `Way out:`."""
    what, *rest = _PART.split(cleandoc(text))
    parts = {
        _PARTS[name]: textwrap.dedent(part).strip("\n")
        if name in ("Example", "Then")
        else " ".join(part.split())
        for name, part in zip(rest[::2], rest[1::2], strict=True)
    }
    return Explanation(" ".join(what.split()), **parts)


# ---------------------------------------------------------------------------- the rows


def _text_of_run(subject: Subject) -> Lecture | None:
    """The text that ran; None where somebody has changed it into no lecture."""
    try:
        return subject.runs.lecture
    except (LitbookError, IndexError):
        return None


def _never_ran(subject: Subject) -> Iterable[Finding]:
    lecture, runs = _text_of_run(subject), subject.runs
    return (
        [one.finding for one in never_ran.find_never_ran(lecture, runs.record, runs.runs()[1:])]
        if lecture
        else []
    )


def _find_uncalled(subject: Subject) -> Iterable[Finding]:
    lecture = _text_of_run(subject)
    return never_ran.find_uncalled(lecture, subject.record) if lecture else []


def _find_vacuous(subject: Subject) -> Iterable[Finding]:
    return vacuous.find_vacuous(subject.record, _text_of_run(subject))


def _failures(subject: Subject) -> Iterable[Finding]:
    return run.failures(subject.record)


def _unbacked(subject: Subject) -> Iterable[Finding]:
    # Other tools' words compute their texts elsewhere.
    runs = (subject.edition or subject.run) and not subject.foreign
    record = subject.record if runs else None
    found = filter(subject.was_asked, unbacked_number.find_unbacked(subject.lecture, record))
    if not subject.foreign:
        return found
    cited = lines_with_links(subject.lecture)
    return (one for one in found if one.place is None or (one.place.path, one.place.line) not in cited)


def _find_unread(subject: Subject) -> Iterable[Finding]:
    return subject.lecture.remarks


def _find_unchecked(subject: Subject) -> Iterable[Finding]:
    found, asked = unchecked_answer.find_unchecked(subject.lecture), unchecked_answer.count(subject.lecture)
    subject.notes.append(
        f"{len(found)} of {asked} answer{'' if asked == 1 else 's'} computed in one way only"
    )
    return found


def _recordings(subject: Subject) -> Iterable[Finding]:
    _ = subject.runs
    return subject.unreadable


def _prose(subject: Subject) -> Iterable[Finding]:
    return filter(subject.was_asked, subject.prose)


def _bibliography(subject: Subject) -> Iterable[Finding]:
    _ = subject.prose
    return [subject.unreadable_works] if subject.unreadable_works else []


def _refusals(subject: Subject) -> Iterable[Finding]:
    return subject.refusals


def _find_overlooked(subject: Subject) -> Iterable[Finding]:
    return subject.project.overlooked_files()


def _find_nothing(_: Subject) -> Iterable[Finding]:
    return ()


def _of_note(kind: RefusalKind) -> str:
    """The explanation of what a note may not hold."""
    holes = re.compile(r"[\s:]*\{[^{}]*\}")  # for words of the note
    what, way_out = (holes.sub("", text).strip() for text in (kind.what, kind.way_out))
    lines = [f"A note that no page can show: {what}.", "Why: readers would see another text than was meant."]
    example = written().get(f"note: {kind.code}", "").strip()
    return "\n".join([*lines, "Example:", f"    {example}", f"Way out: {way_out}."])


REFUSALS = (  # codes of what is found before anything runs: the lecture cannot run as it stands
    "unreadable not-text no-name no-init syntax too-deep no-main unknown-directive bad-directive"
    " homeless-directive bad-expression extra-module circular-import no-section no-claim bad-mark"
    " unknown-need no-aside replaced namesake"
).split()
PROSE = "broken-link bad-link unknown-citation unknown-name bad-math twice".split()
DRAWN = ("no-alt", "bad-picture", "no-notebook")  # codes of what only drawing a page finds
RULES: dict[str, Rule] = {}
"""By code, in the order in which a verdict lists what they find. Other packages' are in `all_rules`, too."""


def register(*rules: Rule) -> None:
    """Add rules; a code that is taken is an error of who adds it."""
    for rule in rules:
        if rule.code in RULES:
            raise LitbookError(f"two rules have the code {rule.code!r}\n    give one of them another code")
        RULES[rule.code] = rule


register(
    *(Rule(code, _refusals, reads="text", refuses=True) for code in REFUSALS),
    Rule("unreadable-recording", _recordings),
    Rule("differs", lambda subject: recorded.differences(subject.runs)),
    Rule("older", lambda subject: recorded.older(subject.runs)),
    Rule("claim-fails", _failures),
    Rule("raised", _failures),
    Rule("recorded-failure", lambda subject: recorded.failed(subject.runs)),
    Rule("large-picture", lambda subject: run.large_pictures(subject.record), "warn"),
    Rule("unconverted-unit", lambda subject: run.unconverted_units(subject.record)),
    Rule("false-equation", lambda subject: false_equation.find_false(subject.record)),
    Rule("rank-dependent", lambda subject: run.rank_dependent(subject.record)),
    Rule("shown-nowhere", lambda subject: run.shown_nowhere(subject.record), "warn"),
    Rule("uncalled", _find_uncalled, "warn"),
    Rule(UNREAD, _find_unread, "warn", reads="text"),
    Rule("leans", lambda subject: leaning.find_leaning(subject.lecture), "warn", reads="text"),
    Rule("bibliography", _bibliography),
    *(Rule(code, _prose) for code in PROSE),
    *(Rule(kind.code, _prose, doc=_of_note(kind)) for kind in KINDS),
    *(Rule(code, _find_nothing, reads="pages") for code in DRAWN),
    Rule("never-ran", _never_ran, lenient=True),
    Rule("waits", _never_ran, "off"),
    Rule("vacuous", _find_vacuous, lenient=True),
    Rule("unbacked", _unbacked),
    Rule("forgotten-f", _unbacked),
    Rule("unbacked-label", _unbacked, "warn"),
    Rule("unchecked", _find_unchecked, "off", reads="text"),
    Rule("unbounded", lambda subject: measures.find_unclaimed(subject.lecture), "off", reads="text"),
    Rule("unknown-allow", _find_nothing, reads="text"),  # these two: see `judge`
    Rule("unused-allow", _find_nothing, "warn", reads="text"),
    Rule("overlooked", _find_overlooked, reads="book"),
)


@functools.cache
def all_rules() -> Mapping[str, Rule]:
    """Every rule by code: ours, and those of other packages. Raises `LitbookError` for a code taken twice."""
    # Two more: `check` alone tries them, but a lecture that excuses what they find has other commands, too.
    plugins.bring_in("mutants")
    for point in entry_points(group=GROUP):
        which = f"the entry point {point.name} of {GROUP}"
        try:
            rule: Any = point.load()
        except Exception as error:  # whatever another package's code raises
            raise LitbookError(f"{which} cannot be loaded: {_said(error)}\n    {point.value}") from error
        if not isinstance(rule, Rule):
            raise LitbookError(f"{which} is no Rule: {point.value}")
        if rule.severity not in SEVERITIES:
            raise NotFound("severity", rule.severity, list(SEVERITIES), f"of {which}")
        register(rule)
        FROM_ENTRY_POINTS.add(rule.code)
    return RULES


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def find(rule: Rule, subject: Subject) -> list[Finding]:
    """What a rule finds, and what it finds for others that its function serves.

    Raises `LitbookError` where another package's rule fails, and `NotFound` for a finding of no rule's code.
    """
    try:
        found = [*rule.find(subject)]
    except LitbookError:
        raise
    except Exception as error:
        if rule.code not in FROM_ENTRY_POINTS:
            raise
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise LitbookError(
            f"the rule {rule.code} failed: {_said(error)}\n    {at.filename}:{at.lineno}: {at.line}"
        ) from error
    for one in found:
        if one.code not in all_rules():
            raise NotFound("rule", one.code, list(all_rules()), f"it is the code of a finding of {rule.code}")
    return found


def find_rule(code: str) -> Rule:
    """The rule of that code. Raises `NotFound` with the nearest."""
    rules = all_rules()
    if code not in rules:
        raise NotFound("rule", code, list(rules), *_renamed(code))
    return rules[code]


def _renamed(code: str) -> Sequence[str]:
    near = [other for other in RULES if code in other or other in code]
    return [f"did you mean {', '.join(near)}?"] if near else []


def severities(options: Mapping[str, Any]) -> tuple[dict[str, Severity], list[str]]:
    """What a book says below `litbook:` of the severity of rules, by code; and a word on options of before.

    Raises `LitbookError` for a code that is none, a severity that is none, and for what refuses a lecture.
    """
    chosen, words = dict[str, Severity](), list[str]()
    given = dict(options.get("rules") or {})
    for name in ("unbacked", "unchecked"):
        if (old := options.get(name)) is not None and (old or "off") in SEVERITIES:
            given.setdefault(name, old)
            words.append(f"{name}: is a row of rules: now: rules: {{{name}: {old or 'off'}}}")
            if name == "unbacked":
                given.setdefault("forgotten-f", old)
    if (old := options.get("recordings")) is not None:
        given.setdefault("older", "warn" if old == recorded.MAY_BE_OLDER else "error")
        words.append(f"recordings: is a row of rules: now: rules: {{older: {given['older']}}}")
    for code, severity in given.items():
        level = "off" if severity is False else severity  # in YAML a bare `off` is False
        if find_rule(str(code)).refuses:
            raise LitbookError(f"rules: {code} says that a lecture cannot run\n    no severity changes that")
        if level not in SEVERITIES:
            raise NotFound(
                "severity", str(level), list(SEVERITIES), f"rules: {{{code}: {' | '.join(SEVERITIES)}}}"
            )
        chosen[str(code)] = level
    return chosen, words
