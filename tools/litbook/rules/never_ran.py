"""Asserts and `@inspect`s that never ran. A pure function of a build's record and the recordings there are.

An assert counts as run when this run reached it; or, in a section that waits here for its device or for time,
when a recording did whose section depended on the same. Whether it was judged then, the run itself says. What
did not run is one of two things. It *waits*: its section requires a device that is not here and that nobody
has recorded yet. Or it is *dead*: it stands behind a `return`, in a function that nothing calls, in a branch
that no run took. Such a line promises what nobody has seen, and no known device will ever see it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, dropwhile, islice

from litbook.finding import Finding, Place
from litbook.lecture.model import Lecture
from litbook.lecture.sections import is_plain
from litbook.python.nodes import DefinitionNode, blocks, own_nodes
from litbook.record.model import Record

CheckKey = tuple[str, str]  # the function's key and the text: what a claim is called in another recording

_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
WAY_OUT_UNCALLED = "call it in main() or a part, or take it out"
WAY_OUT_DEAD = "let a run reach it, mark its section @requires(…), or take it out"


@dataclass(frozen=True)
class UnreachedCheck:
    """An assert or an `@inspect` that never ran; `dead` where no known device can reach it."""

    finding: Finding
    dead: bool


def find_never_ran(
    lecture: Lecture, record: Record, recordings: Sequence[Record] = ()
) -> list[UnreachedCheck]:
    """What never ran, in the order of the text. Of a run of some sections, nothing of the others."""
    reached, result = _ReachedStatements(lecture, record), list[UnreachedCheck]()
    # What ran in a recording, for want of its device or time here, and stands on the same as it did then.
    elsewhere = set[CheckKey]()
    for other, section in ((kept, section) for kept in recordings for section in kept.sections):
        here, another = record.by_key.get(section.key), other.environment.device.slug
        if here is None or here.depends != section.depends:
            continue
        if here.has_run and another == record.environment.device.slug:
            continue
        elsewhere.update((section.key, claim.text) for claim in section.claims if claim.count)
        elsewhere.update((other.callee(section, value.frame).key, value.text) for value in section.values)
        # Asserts that are no claims stand together; which of them this section reached, its statements say.
        for nth, key in enumerate((section.key, *section.calls)):
            called = other.definition_of[key] if nth else section
            missed = {number for where, number in section.unreached if where == nth}
            lines = {row.first for number, row in enumerate(called.statements) if number not in missed}
            asserts = (one for one in other.asserts if one.key == key)
            elsewhere.update((key, one.text) for one in asserts if not called.statements or one.line in lines)
    # Statements that stand behind a `return`, `raise`, `break` or `continue` of their own block.
    dead = set[int]()
    for node in (node for file in lecture.files for node in (file.tree, *blocks(file.tree))):
        for name in ("body", "orelse", "finalbody"):
            block: list[ast.stmt] = getattr(node, name, [])
            behind = dropwhile(lambda statement: not isinstance(statement, _ENDS), block)
            for statement in islice(behind, 1, None):
                inside = (inner for inner in (statement, *blocks(statement)) if isinstance(inner, ast.stmt))
                dead.update(lecture.statement_of[inner] for inner in inside)
    for number, place, kind, text in _promises(lecture):
        function, is_dead = lecture.statements[number].function, number in dead
        ran = (reached.keys[function], text) in elsewhere or reached.has_run(number) is not False
        if not reached.was_asked(function) or (ran and not is_dead):
            continue
        device = None if is_dead else reached.missing_device(function)
        what, way_out = f"never ran: {kind} {text}", WAY_OUT_DEAD
        spec = lecture.functions[function]
        if spec.kind == "helper" and "." not in spec.key and spec.name not in reached.named:
            way_out = f"nothing calls {spec.name}(): call it (a section: in main() or a part), or take it out"
        if device is not None:
            what = f"has not run yet: {kind} {text}: it needs {device}"
            way_out = f"record the lecture where there is one: litbook record {record.lecture}"
        result.append(
            UnreachedCheck(
                Finding("never-ran" if device is None else "waits", what, place, way_out), device is None
            )
        )
    return result


def find_uncalled(lecture: Lecture, record: Record) -> list[Finding]:
    """Functions with prose that nothing names, and that claim nothing: no page shows them, no run calls them.

    Those that claim something `find_never_ran` tells.
    """
    named = {name for node in lecture.function_of for name in _names_in(node)}
    claiming = {lecture.statements[number].function for number, *_ in _promises(lecture)}
    problems = dict[int, Finding]()
    for number in lecture.statement_of.values() if not record.asked else ():
        row = lecture.statements[number]
        spec, file = lecture.functions[row.function], lecture.file_of_function(row.function)
        if row.kind == "piece" and spec.kind == "helper" and spec.name not in named:
            if row.function not in claiming and is_plain(file, lecture.node_of[row.function]):
                what, way_out = f"nothing calls {spec.name}(), so that no page shows it", WAY_OUT_UNCALLED
                problems.setdefault(row.function, Finding("uncalled", what, file.place(spec.first), way_out))
    return list(problems.values())


def _denies(node: ast.stmt) -> bool:
    """Whether it is `assert False`, which in a `case` is there for never running."""
    return isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant) and not node.test.value


def _promises(lecture: Lecture) -> list[tuple[int, Place, str, str]]:
    """Every `assert`, every annotation that is a claim, and every watched expression, in order.

    Each with its statement, its place, what it is ("the claim", "@inspect"), and its text.
    """
    rows = list[tuple[int, Place, str, str]]()
    inner = (node for file in lecture.files for node in blocks(file.tree))
    unwanted = {
        one for node in inner if isinstance(node, ast.match_case) for one in node.body if _denies(one)
    }
    for node, number in lecture.statement_of.items():
        claim, file = lecture.claim_of.get(node), lecture.file_of_statement(number)
        if node in unwanted:
            continue
        if claim is not None:
            rows.append((number, file.place_of(node), "the claim", lecture.claims[claim].text))
        elif isinstance(node, ast.Assert):
            rows.append((number, file.place_of(node), "the assert", ast.unparse(node.test)))
    for anchor, watches in lecture.watches_of.items():
        # The statement whose running shows what is watched there: of a block, the first one inside it.
        body: list[ast.stmt] = getattr(anchor, "body", [])
        shows = anchor if not body or isinstance(anchor, ast.ClassDef) else body[0]
        number = lecture.statement_of[shows]  # type: ignore[index]  # a `case` has a body
        for watch in (lecture.watches[i] for i in watches):
            if watch.kind != "clear":
                code = lecture.files[watch.file].lines[watch.line - 1]
                place = lecture.files[watch.file].place(watch.line, len(code) - len(code.lstrip()) + 1)
                rows.append((number, place, f"@{watch.kind}", watch.text))
    file_of = lecture.file_of_statement
    return sorted(rows, key=lambda row: (file_of(row[0]).number, row[1].line, row[1].column, row[3]))


class _ReachedStatements:
    """Which statements of a lecture one run of it reached."""

    def __init__(self, lecture: Lecture, record: Record) -> None:
        self.lecture, self.record = lecture, record
        self.keys = [lecture.key(i) for i in range(len(lecture.functions))]
        counts = [count() for _ in lecture.functions]
        self.places = [next(counts[row.function]) for row in lecture.statements]  # each in its function
        self.entered: set[str] = set()  # keys of what was called
        self.missed: dict[str, list[set[int]]] = {}  # key -> for each section that called it, what it missed
        for section in record.sections:
            called = (section.key, *section.calls)
            for place in {frame.called for frame in section.frames}:
                missed = {number for where, number in section.unreached if where == place}
                self.entered.add(called[place])
                self.missed.setdefault(called[place], []).append(missed)
        # Each is known by its own place; a section's claims stand in the record in the order of its text.
        self.ran_asserts = set[int]()
        places = {(check.key, check.line, check.column) for check in record.asserts}
        claims = dict[str, list[int]]()
        for node, number in lecture.statement_of.items():
            spec = lecture.statements[number]
            key, first = self.keys[spec.function], lecture.functions[spec.function].first
            if node in lecture.claim_of:
                claims.setdefault(key, []).append(number)
            if (key, spec.first - first, node.col_offset) in places:
                self.ran_asserts.add(number)
        for section in record.sections:
            numbers = claims.get(section.key, [])
            both = zip(numbers, section.claims, strict=False)
            self.ran_asserts.update(number for number, claim in both if claim.count)
        silent = {inner for node in lecture.compiled for inner in ast.walk(node)}
        heard = (node for node in lecture.statement_of if node not in silent)
        self.recorded = {lecture.statement_of[node] for node in heard if isinstance(node, ast.Assert)}
        self.ended = {s.key for s, error in record.errors() if error.kind not in ("inspect", "assert")}
        self.broken = any(s.key in self.ended for s in record.sections if s.kind in ("module", "main"))
        self.uses = {number: set(_names_in(node)) for node, number in lecture.function_of.items()}
        self.named = set[str]().union(*self.uses.values())
        self.missing = {s.key for s, claim in record.claims() if claim.verdict == "needs-device"} | {
            s.key for s in record.sections if s.requires and not s.has_run
        }

    def was_asked(self, function: int) -> bool:
        """Whether a function was to run to its end. Of helpers only a whole run says something.

        Where an exception kept it from that, that is what is to be said of it.
        """
        section = self.record.by_key.get(self.keys[function])
        of_section = section is not None and section.kind in ("part", "section")
        asked = self.record.was_asked(section) if section and of_section else not self.record.asked
        return asked and not self.broken and self.keys[function] not in self.ended

    def has_run(self, statement: int) -> bool | None:
        """Whether it ran; None where a record cannot say: in a helper that was only called unrecorded."""
        spec = self.lecture.statements[statement]
        key, function = self.keys[spec.function], self.lecture.functions[spec.function]
        if statement in self.ran_asserts:
            return True
        if statement in self.recorded:
            return False
        if key in self.entered:
            return any(self.places[statement] not in missed for missed in self.missed[key])
        if function.kind in ("helper", "class"):
            return None if function.name in self.named or function.name.startswith("__") else False
        return False

    def missing_device(self, function: int) -> str | None:
        """The device that kept a section, or all that may call a definition, from running."""
        # The sections that the definition stands in, or that name it, themselves or through others.
        callers, seen, todo = set[int](), {function}, [function]
        while todo:
            at = todo.pop()
            around = self.lecture.section_around(at)
            if at == around or self.lecture.functions[around].kind != "module":
                callers.add(around)
                continue
            within = self.lecture.functions[at].key.removeprefix(f"{self.lecture.file_of_function(at).name}.")
            names = {name.partition("#")[0] for name in within.split(".")}
            users = {i for i, used in self.uses.items() if names & used} - seen
            seen |= users
            todo += users
        devices = {caller: self.lecture.functions[caller].requires for caller in callers}
        missing = all(device and self.keys[caller] in self.missing for caller, device in devices.items())
        return next(iter(devices.values()), None) if missing else None


def _names_in(node: ast.AST) -> Iterator[str]:
    """The names that a module, function or class refers to itself, other than by defining them."""
    for inner in own_nodes(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield inner.attr
        elif isinstance(inner, ast.Lambda):
            yield from _names_in(inner)
        elif isinstance(inner, DefinitionNode) and inner.decorator_list:
            yield inner.name  # its decorator may call it
