"""Claims and `@inspect`s that never ran. A pure function of this build's record and the recordings there are.

A claim counts as run when its statement was reached, in this run or in a recording of any device. What was
not is one of two things. It *waits*: its section requires a device that is not here and that nobody has
recorded yet. Or it is *dead*: it stands behind a `return`, in a function that nothing calls, in a branch that
no run took. Such a line promises what nobody has seen, and no known device will ever see it.
"""

from __future__ import annotations

import ast
import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from litbook.errors import LitbookError, Problem
from litbook.record.model import Record, Section
from litbook.text.source import Definition, Lecture, parse_sources

Key = tuple[str, str]  # the function's name and the text: what a claim is called in another recording

WAY_OUT_DEAD = "let a run reach it, mark its section @requires(…), or take it out"


@dataclass(frozen=True)
class Unrun:
    """A claim or an `@inspect` that never ran; `dead` where no known device can reach it."""

    problem: Problem
    dead: bool


@dataclass(frozen=True)
class _Item:
    statement: int
    line: int
    what: str  # "the claim", "@inspect"
    text: str


def unrun(record: Record, recordings: Sequence[Record] = ()) -> list[Unrun]:
    """What never ran, in the order of the text. Of a run of some sections, nothing of the others."""
    lecture = _read(record)
    if lecture is None:
        return []
    elsewhere = {key for other in recordings for key in _keys_that_ran(other)}
    dead = _behind_an_end(lecture)
    reached = _Reached(lecture, record)
    found = []
    for item in _items(lecture):
        function = lecture.statements[item.statement].function
        if not reached.tells(function) or (reached.keys[function], item.text) in elsewhere:
            continue
        if item.statement not in dead and reached.ran(item.statement) is not False:
            continue
        device = None if item.statement in dead else reached.missing_device(function)
        found.append(_never_ran(lecture, item, device))
    return found


def _read(record: Record) -> Lecture | None:
    """The text of a record, taken apart again; None where somebody has changed it into no lecture."""
    with contextlib.suppress(LitbookError, IndexError):
        return parse_sources(record.sources)
    return None


def _keys_that_ran(recording: Record) -> Iterator[Key]:
    """The claims and shown expressions of a recording that ran there."""
    for section in recording.sections:
        for claim in section.claims:
            if claim.count:
                yield section.key, claim.text
        for value in section.values:
            yield recording.called(section, value.frame).key, value.text


def _never_ran(lecture: Lecture, item: _Item, device: str | None) -> Unrun:
    if device is None:
        what, way_out = f"never ran: {item.what} {item.text}", WAY_OUT_DEAD
    else:
        what = f"has not run yet: {item.what} {item.text}: it needs {device}"
        way_out = "record the lecture where there is one: run_lecture.py --record"
    file = lecture.file_of_statement(item.statement)
    line = file.lines[item.line - 1]
    place = file.place(item.line, len(line) - len(line.lstrip()) + 1)
    return Unrun(Problem("never-ran", what, place, way_out), device is None)


# ---------------------------------------------------------------------------- what could run


def _items(lecture: Lecture) -> list[_Item]:
    """Every `assert`, every annotation that is a claim, and every watched expression."""
    found = []
    for node, number in lecture.statement_of.items():
        claim = lecture.claim_of.get(node)
        if claim is not None:
            found.append(_Item(number, node.lineno, "the claim", lecture.claims[claim].text))
        elif isinstance(node, ast.Assert):
            found.append(_Item(number, node.lineno, "the assert", ast.unparse(node.test)))
    for anchor, watches in lecture.watches_of.items():
        statement = _statement(lecture, anchor)
        asked = [lecture.watches[number] for number in watches]
        found += [_Item(statement, w.line, f"@{w.kind}", w.text) for w in asked if w.kind != "clear"]
    return sorted(found, key=lambda item: (item.line, item.text))


def _statement(lecture: Lecture, anchor: ast.AST) -> int:
    """The statement whose running shows what is watched there: of a block, the first one inside it."""
    body: list[ast.stmt] = getattr(anchor, "body", [])
    if not body or isinstance(anchor, ast.ClassDef):
        return lecture.statement_of[anchor]  # type: ignore[index]
    return lecture.statement_of[body[0]]


def _behind_an_end(lecture: Lecture) -> set[int]:
    """Statements that stand behind a `return`, `raise`, `break` or `continue` of their own block."""
    found: set[int] = set()
    for node in (inner for file in lecture.files for inner in ast.walk(file.tree)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                found |= {number for statement in _dead(block) for number in _numbers(lecture, statement)}
    return found


def _dead(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    ended = False
    for statement in block:
        if ended:
            yield statement
        ended = ended or isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue)


def _numbers(lecture: Lecture, statement: ast.stmt) -> Iterator[int]:
    for inner in ast.walk(statement):
        if isinstance(inner, ast.stmt):
            yield lecture.statement_of[inner]


# ---------------------------------------------------------------------------- what did run


class _Reached:
    """Which statements of a lecture one run of it reached."""

    def __init__(self, lecture: Lecture, record: Record) -> None:
        self.lecture, self.record = lecture, record
        self.keys = [_key_of(lecture, number) for number in range(len(lecture.functions))]
        self.within = _numbers_within(lecture)
        self.silent: dict[str, set[int]] = {}  # what was entered -> its statements that no section reached
        for section in record.sections:
            for place, key in enumerate((section.key, *section.calls)):
                if place or section.ran:
                    missed = {number for at, number in section.unreached if at == place}
                    self.silent[key] = self.silent.get(key, missed) & missed
        self.ran_claims = {
            (section.key, section.first + claim.line) for section, claim in record.claims() if claim.count
        }
        self.used = _uses(lecture)

    def tells(self, function: int) -> bool:
        """Whether this run says anything of a function: not where an exception ended it, or nobody asked."""
        if self._ended:
            return False
        section = self._section(function)
        if section is None:
            return not self.record.asked
        return self.record.was_asked(section) and not _ends(section)

    @cached_property
    def _ended(self) -> bool:
        """Whether an exception kept the whole lecture from its end: that is what is to be said of it."""
        return any(section.kind in ("module", "main") and _ends(section) for section in self.record.sections)

    def _section(self, function: int) -> Section | None:
        kind = self.lecture.functions[function].kind
        return self.record.by_key.get(self.keys[function]) if kind in ("part", "section") else None

    def ran(self, statement: int) -> bool | None:
        """Whether it ran; None where a record cannot say: in a helper that was only called unrecorded."""
        spec = self.lecture.statements[statement]
        key = self.keys[spec.function]
        if (key, spec.first) in self.ran_claims:
            return True
        if key in self.silent:
            return self.within[statement] not in self.silent[key]
        function = self.lecture.functions[spec.function]
        if function.kind in ("helper", "class"):
            return None if function.name in self.used or function.name.startswith("__") else False
        return False

    def missing_device(self, function: int) -> str | None:
        """The device that kept a section, or a part above it, from running."""
        section = self._section(function)
        while section is not None:
            if section.requires and not section.ran:
                return section.requires
            section = self.record.by_key.get(section.parent)
        return None


def _ends(section: Section) -> bool:
    return any(error.kind != "inspect" for error in section.errors)


def _key_of(lecture: Lecture, function: int) -> str:
    """What a function is called in a record."""
    spec = lecture.functions[function]
    return lecture.section_name(function) if spec.kind in ("part", "section") else spec.key


def _numbers_within(lecture: Lecture) -> list[int]:
    """Statement -> which of its function's statements it is."""
    seen = Counter[int]()
    found = []
    for statement in lecture.statements:
        found.append(seen[statement.function])
        seen[statement.function] += 1
    return found


def _uses(lecture: Lecture) -> set[str]:
    """The names that something in the text refers to, other than by defining them."""
    found = set()
    for node in (inner for file in lecture.files for inner in ast.walk(file.tree)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, Definition) and node.decorator_list:
            found.add(node.name)  # its decorator may call it
    return found
