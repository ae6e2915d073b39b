"""Claims and `@inspect`s that never ran. A pure function of this build's record and the recordings there are.

A claim counts as run when its statement was reached, in this run or in a recording of any device. What was
not is one of two things. It *waits*: its section requires a device that is not here and that nobody has
recorded yet. Or it is *dead*: it stands behind a `return`, in a function that nothing calls, in a branch that
no run took. Such a line promises what nobody has seen, and no known device will ever see it.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from litbook.errors import LitbookError, Problem
from litbook.record.model import Definition, Record, Section
from litbook.text.source import Definition as DefinitionNode
from litbook.text.source import Lecture, Text, parse_files

Key = tuple[str, str]  # the function's key and the text: what a claim is called in another recording

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
    ended = _ended_early(record)
    elsewhere = {key for other in recordings for key in _keys_that_ran(other)}
    dead = _behind_an_end(lecture)
    reached = _Reached(lecture, record)
    found = []
    for item in _items(lecture):
        function = lecture.statements[item.statement].function
        key = lecture.key(function)
        section = record.by_key.get(key)
        asked = _asked(record, section) and not ended & {"main", key}
        if not asked or _key(lecture, item) in elsewhere:
            continue
        if item.statement not in dead and reached.ran(item.statement) is not False:
            continue
        device = None if item.statement in dead else reached.missing_device(function)
        found.append(_named(lecture, item, device))
    return found


def _read(record: Record) -> Lecture | None:
    """The text of a record, taken apart again; None where somebody has changed it into no lecture."""
    with contextlib.suppress(LitbookError, IndexError):
        return parse_files(tuple(_text(source.path, source.text) for source in record.sources))
    return None


def _text(path: str, text: str) -> Text:
    """A file of the record under the name that it has within its lecture: of a folder, or alone."""
    place = PurePosixPath(path)
    return Text(path, text, place.stem, "" if place.stem == "__init__" else place.stem)


def _asked(record: Record, section: Section | None) -> bool:
    """Whether it was to run. Of helpers only a whole run says something."""
    inside = section is not None and section.kind in ("part", "section")
    return record.was_asked(section) if section is not None and inside else not record.asked


def _ended_early(record: Record) -> set[str]:
    """The sections that an exception kept from their end: that is what is to be said of them."""
    raised = {section for section, error in record.errors() if error.kind != "inspect"}
    return {"main" if section.kind in ("module", "main") else section.key for section in raised}


def _named(lecture: Lecture, item: _Item, device: str | None) -> Unrun:
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


def _key(lecture: Lecture, item: _Item) -> Key:
    return lecture.key(lecture.statements[item.statement].function), item.text


def _behind_an_end(lecture: Lecture) -> set[int]:
    """Statements that stand behind a `return`, `raise`, `break` or `continue` of their own block."""
    found: set[int] = set()
    for node in _nodes(lecture):
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
        self.lecture = lecture
        self.keys = [lecture.key(number) for number in range(len(lecture.functions))]
        self.within = _within(lecture)
        self.entered = {key for section in record.sections for key in _entered(section)}
        self.reached = {it for section in record.sections for it in _reached(record, section)}
        self.ran_claims = {(section.key, claim.line) for section, claim in record.claims() if claim.count}
        self.named = _uses(lecture)
        self.missing = {
            section.key for section, claim in record.claims() if claim.verdict == "needs-device"
        } | {
            key
            for key, it in zip(self.keys, lecture.functions, strict=True)
            if it.requires and key not in self.entered
        }

    def ran(self, statement: int) -> bool | None:
        """Whether it ran; None where a record cannot say: in a helper that was only called unrecorded."""
        spec = self.lecture.statements[statement]
        key, function = self.keys[spec.function], self.lecture.functions[spec.function]
        if (key, spec.first - function.first) in self.ran_claims:
            return True
        if key in self.entered:
            return (key, self.within[statement]) in self.reached
        if function.kind in ("helper", "class"):
            return None if function.name in self.named or function.name.startswith("__") else False
        return False

    def missing_device(self, function: int) -> str | None:
        """The device that kept a section, or a part above it, from running."""
        at: int | None = function
        while at is not None:
            spec = self.lecture.functions[at]
            if spec.requires and self.keys[at] in self.missing:
                return spec.requires
            at = spec.parent
        return None


def _within(lecture: Lecture) -> list[int]:
    """Statement -> its number in its own function."""
    found, counts = [], dict[int, int]()
    for statement in lecture.statements:
        number = counts.get(statement.function, 0)
        found.append(number)
        counts[statement.function] = number + 1
    return found


def _entered(section: Section) -> list[str]:
    """The keys of what ran while the section did."""
    return [section.key, *section.calls] if section.ran else list(section.calls)


def _reached(record: Record, section: Section) -> Iterator[tuple[str, int]]:
    """Key and number of every statement that ran in a section, as far as it can be known to."""
    silent = set(section.unreached)
    entries: list[Section | Definition] = [section, *(record.definition_of[key] for key in section.calls)]
    for place, entry in enumerate(entries):
        if place or section.ran:
            yield from (
                (entry.key, number)
                for number in range(len(entry.statements))
                if (place, number) not in silent
            )


def _nodes(lecture: Lecture) -> Iterator[ast.AST]:
    return (node for file in lecture.files for node in ast.walk(file.tree))


def _uses(lecture: Lecture) -> set[str]:
    """The names that something in the text refers to, other than by defining them."""
    found = set()
    for node in _nodes(lecture):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, DefinitionNode) and node.decorator_list:
            found.add(node.name)  # its decorator may call it
    return found


def _keys_that_ran(record: Record) -> set[Key]:
    lecture = _read(record)
    if lecture is None:
        return set()
    reached = _Reached(lecture, record)
    return {_key(lecture, item) for item in _items(lecture) if reached.ran(item.statement)}
