"""Asserts and `@inspect`s that never ran. A pure function of a build's record and the recordings there are.

An assert counts as run when it was reached, in this run or in a recording of any device, wherever it stands;
and as never judged where its test raised and the exception was swallowed. What did not run is one of two
things. It *waits*: its section requires a device that is not here and that nobody has
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
from litbook.text.lecture import Lecture
from litbook.text.source import parse_sources
from litbook.text.tree import Definition, own_nodes

Key = tuple[str, str]  # the function's key and the text: what a claim is called in another recording

WAY_OUT_RAISED = "let it be judged, or mark its line @fails if it is meant to raise"
WAY_OUT_DEAD = "let a run reach it, mark its section @requires(…), or take it out"


@dataclass(frozen=True)
class Unrun:
    """An assert or an `@inspect` that never ran; `dead` where no known device can reach it."""

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
    dead = {number for file in lecture.files for number in _behind_an_end(lecture, file.tree)}
    reached = _Reached(lecture, record)
    found = [*_raised(lecture, record)]
    for item in _items(lecture):
        function = lecture.statements[item.statement].function
        ran = _key(lecture, item) in elsewhere or reached.ran(item.statement) is not False
        if not reached.asked(function) or (ran and item.statement not in dead):
            continue
        device = None if item.statement in dead else reached.missing_device(function)
        found.append(_never(lecture, item, device))
    return found


def _raised(lecture: Lecture, record: Record) -> Iterator[Unrun]:
    """Asserts whose test raised, where nobody heard of it."""
    number_of = {lecture.key(i): i for i in range(len(lecture.functions))}
    ended = {section.key for section, error in record.errors() if error.kind not in ("inspect", "assert")}
    for it in record.asserts:
        if it.raised and it.key not in ended:
            spec = lecture.functions[number_of[it.key]]
            what = f"never judged: the assert {it.text} raised {it.raised}, and that was swallowed"
            place = lecture.place(spec.first + it.line, file=spec.file)
            yield Unrun(Problem("never-judged", what, place, WAY_OUT_RAISED), True)


def _read(record: Record) -> Lecture | None:
    """The text of a record, taken apart again; None where somebody has changed it into no lecture."""
    with contextlib.suppress(LitbookError, IndexError):
        return parse_sources(record.sources)
    return None


def _never(lecture: Lecture, item: _Item, device: str | None) -> Unrun:
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
    file = {item: lecture.file_of_statement(item.statement).number for item in found}
    return sorted(found, key=lambda item: (file[item], item.line, item.text))


def _statement(lecture: Lecture, anchor: ast.AST) -> int:
    """The statement whose running shows what is watched there: of a block, the first one inside it."""
    body: list[ast.stmt] = getattr(anchor, "body", [])
    if not body or isinstance(anchor, ast.ClassDef):
        return lecture.statement_of[anchor]  # type: ignore[index]
    return lecture.statement_of[body[0]]


def _key(lecture: Lecture, item: _Item) -> Key:
    return lecture.key(lecture.statements[item.statement].function), item.text


def _behind_an_end(lecture: Lecture, tree: ast.Module) -> Iterator[int]:
    """Statements that stand behind a `return`, `raise`, `break` or `continue` of their own block."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for statement in _dead(block) if isinstance(block, list) else ():
                inside = (it for it in ast.walk(statement) if isinstance(it, ast.stmt))
                yield from (lecture.statement_of[it] for it in inside)


def _dead(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    ended = False
    for statement in block:
        if ended:
            yield statement
        ended = ended or isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue)


# ---------------------------------------------------------------------------- what did run


class _Reached:
    """Which statements of a lecture one run of it reached."""

    def __init__(self, lecture: Lecture, record: Record) -> None:
        self.lecture, self.record = lecture, record
        self.keys = [lecture.key(i) for i in range(len(lecture.functions))]
        self.entered: set[str] = set()  # keys of what was called
        self.missed: dict[str, list[set[int]]] = {}  # key -> for each section that called it, what it missed
        for section in record.sections:
            called = (section.key, *section.calls)
            for place in {frame.called for frame in section.frames}:
                missed = {number for where, number in section.unreached if where == place}
                self.entered.add(called[place])
                self.missed.setdefault(called[place], []).append(missed)
        claims = {(s.key, claim.line) for s, claim in record.claims() if claim.count}
        self.ran_asserts = claims | {(it.key, it.line) for it in record.asserts}
        silent = {it for node in lecture.untouched for it in ast.walk(node)}
        asserts = (it for it in lecture.statement_of if isinstance(it, ast.Assert) and it not in silent)
        self.recorded = {lecture.statement_of[it] for it in asserts}
        self.ended = {s.key for s, error in record.errors() if error.kind not in ("inspect", "assert")}
        self.broken = any(s.key in self.ended for s in record.sections if s.kind in ("module", "main"))
        self.uses = {number: set(_names_in(node)) for node, number in lecture.function_of.items()}
        self.named = set[str]().union(*self.uses.values())
        self.missing = {s.key for s, claim in record.claims() if claim.verdict == "needs-device"} | {
            s.key for s in record.sections if s.requires and not s.ran
        }

    def asked(self, function: int) -> bool:
        """Whether a function was to run to its end. Of helpers only a whole run says something.

        Where an exception kept it from that, that is what is to be said of it.
        """
        section = self.record.by_key.get(self.keys[function])
        of_section = section is not None and section.kind in ("part", "section")
        asked = self.record.was_asked(section) if section and of_section else not self.record.asked
        return asked and not self.broken and self.keys[function] not in self.ended

    def ran(self, statement: int) -> bool | None:
        """Whether it ran; None where a record cannot say: in a helper that was only called unrecorded."""
        spec = self.lecture.statements[statement]
        key, function = self.keys[spec.function], self.lecture.functions[spec.function]
        if (key, spec.first - function.first) in self.ran_asserts:
            return True
        if statement in self.recorded:
            return False
        if key in self.entered:
            own = [i for i, it in enumerate(self.lecture.statements) if it.function == spec.function]
            return any(own.index(statement) not in missed for missed in self.missed[key])
        if function.kind in ("helper", "class"):
            return None if function.name in self.named or function.name.startswith("__") else False
        return False

    def missing_device(self, function: int) -> str | None:
        """The device that kept a section, or all that may call a definition, from running."""
        found = {it: self.lecture.functions[it].requires for it in self._callers(function)}
        missing = all(device and self.keys[it] in self.missing for it, device in found.items())
        return next(iter(found.values()), None) if missing else None

    def _callers(self, function: int) -> set[int]:
        """The sections that a definition stands in, or that name it, themselves or through others."""
        found, seen, todo = set[int](), {function}, [function]
        while todo:
            at = todo.pop()
            around = self.lecture.section_around(at)
            if at == around or self.lecture.functions[around].kind != "module":
                found.add(around)
                continue
            names = {name.partition("#")[0] for name in self.lecture.functions[at].key.split(".")}
            users = {i for i, used in self.uses.items() if names & used} - seen
            seen |= users
            todo += users
        return found


def _names_in(node: ast.AST) -> Iterator[str]:
    """The names that a module, function or class refers to itself, other than by defining them."""
    for inner in own_nodes(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr
        elif isinstance(inner, ast.Lambda):
            yield from _names_in(inner)
        elif isinstance(inner, Definition) and inner.decorator_list:
            yield inner.name  # its decorator may call it


def _keys_that_ran(recording: Record) -> Iterator[Key]:
    """The claims and shown expressions that ran in a recording, which has no text to take apart."""
    yield from ((it.key, it.text) for it in recording.asserts)
    for section in recording.sections:
        yield from ((section.key, claim.text) for claim in section.claims if claim.count)
        yield from ((recording.called(section, it.frame).key, it.text) for it in section.values)
