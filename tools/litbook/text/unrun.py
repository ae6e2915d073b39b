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

from litbook.errors import LitbookError, Problem
from litbook.record.model import Record
from litbook.text.source import Definition, Lecture, parse

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
    ended = _ended_early(lecture, record)
    elsewhere = {key for other in recordings for key in _keys_that_ran(other)}
    dead = _behind_an_end(lecture)
    reached = _Reached(lecture, record)
    found = []
    for item in _items(lecture):
        function = lecture.statements[item.statement].function
        asked = record.asked(_section(lecture, function)) and function not in ended
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
        return parse(record.sources[0].text, record.sources[0].path)
    return None


def _ended_early(lecture: Lecture, record: Record) -> set[int]:
    """The functions that an exception kept from their end: that is what is to be said of them."""
    raised = {error.function for error in record.errors if error.kind != "inspect"}
    whole = any(lecture.functions[i].kind in ("module", "main") for i in raised)
    return set(range(len(lecture.functions))) if whole else raised


def _named(lecture: Lecture, item: _Item, device: str | None) -> Unrun:
    if device is None:
        what, way_out = f"never ran: {item.what} {item.text}", WAY_OUT_DEAD
    else:
        what = f"has not run yet: {item.what} {item.text}: it needs {device}"
        way_out = "record the lecture where there is one: run_lecture.py --record"
    line = lecture.lines[item.line - 1]
    place = lecture.place(item.line, len(line) - len(line.lstrip()) + 1)
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
    function = lecture.functions[lecture.statements[item.statement].function]
    return function.name, item.text


def _section(lecture: Lecture, function: int) -> int | None:
    """What `Record.asked` can answer for: a section. Of helpers only a whole run says something."""
    return function if lecture.functions[function].kind in ("part", "section") else None


def _behind_an_end(lecture: Lecture) -> set[int]:
    """Statements that stand behind a `return`, `raise`, `break` or `continue` of their own block."""
    found: set[int] = set()
    for node in ast.walk(lecture.tree):
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
        self.entered = {frame.function for frame in record.frames}
        self.unreached = set(record.unreached)
        self.ran_claims = {(claim.function, claim.line) for claim in record.claims if claim.count}
        self.named = _uses(lecture)
        self.missing = {claim.function for claim in record.claims if claim.verdict == "needs-device"} | {
            i for i, function in enumerate(lecture.functions) if function.requires and i not in self.entered
        }

    def ran(self, statement: int) -> bool | None:
        """Whether it ran; None where a record cannot say: in a helper that was only called unrecorded."""
        spec = self.lecture.statements[statement]
        if (spec.function, spec.first) in self.ran_claims:
            return True
        if spec.function in self.entered:
            return statement not in self.unreached
        function = self.lecture.functions[spec.function]
        if function.kind in ("helper", "class"):
            return None if function.name in self.named or function.name.startswith("__") else False
        return False

    def missing_device(self, function: int) -> str | None:
        """The device that kept a section, or a part above it, from running."""
        at: int | None = function
        while at is not None:
            spec = self.lecture.functions[at]
            if spec.requires and at in self.missing:
                return spec.requires
            at = spec.parent
        return None


def _uses(lecture: Lecture) -> set[str]:
    """The names that something in the text refers to, other than by defining them."""
    found = set()
    for node in ast.walk(lecture.tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, Definition) and node.decorator_list:
            found.add(node.name)  # its decorator may call it
    return found


def _keys_that_ran(record: Record) -> set[Key]:
    lecture = _read(record)
    if lecture is None:
        return set()
    reached = _Reached(lecture, record)
    return {_key(lecture, item) for item in _items(lecture) if reached.ran(item.statement)}
