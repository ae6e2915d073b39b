"""Claims that hold and say nothing: `0 == 0` of what counted nothing, `all` of nothing, NaN, `x == x`.

In goes a record, which keeps both sides of every comparison; out come problems. Each comparison of a claim is
looked at, and each call with two arguments (`torch.equal(a, b)`). Of a claim that ran more than once only the
text says something: the record keeps the sides of one time. Where zero is the point, `# @zero: why` says so.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator

from litbook.errors import Place, Problem
from litbook.record import model
from litbook.record.model import Claim, Record, Section, Snapshot

WAY_OUT = "claim also that there was something to see; where zero is the point, say so: # @zero: why"
_EQUAL = ("==", "is", "<=", ">=")  # what holds between a thing and itself
_CALLS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


def vacuous(record: Record) -> list[Problem]:
    """The claims that hold and say nothing, in the order of the book, each with its line and why."""
    problems = list[Problem]()
    for section, claim in record.claims():
        if claim.verdict == "holds" and claim.kind == "assert" and not claim.zero:
            if why := next(_reasons(section, claim), ""):
                source, number = record.sources[section.file], section.first + claim.line
                line = source.text.split("\n")[number - 1]
                place = Place(source.path, number, len(line) - len(line.lstrip()) + 1, line)
                problems.append(Problem("vacuous", f"this claim says nothing: {why}", place, WAY_OUT))
    return problems


def _reasons(section: Section, claim: Claim) -> Iterator[str]:
    """Why a claim says nothing, of each of its comparisons."""
    for i, operand in enumerate(claim.operands):
        of_all = claim.form[i].endswith("all(") or claim.form[i].endswith("not any(")
        if of_all and operand.value is not None and claim.count == 1:
            if claim.form[i + 1][:1] == ")" and _is_empty(section.snapshots[operand.value]):
                yield f"{claim.form[i].split()[-1]}…) looked at nothing"
    for i, (left, right) in enumerate(zip(claim.operands, claim.operands[1:], strict=False)):
        before, between = claim.form[i].split(), claim.form[i + 1].strip(" ()")
        ends = claim.form[i + 2][:1] == ")" or "=" in claim.form[i + 2]  # of a call, perhaps with keywords
        called = between == "," and claim.form[i].endswith("(") and ends
        if left.value is None or right.value is None or not (called or between):
            continue
        a, b = section.snapshots[left.value], section.snapshots[right.value]
        if between in _EQUAL or called:
            if left.text == right.text and not _calls(left.text):
                yield f"both sides are {left.text}"
            if claim.count == 1 and _number(a) == _number(b) == 0:
                yield "both sides are zero"
            if claim.count == 1 and _is_empty(a) and _is_empty(b):
                yield "both sides are empty"
            if called and claim.count == 1 and _is_nan(a) and _is_nan(b):
                yield "both sides are nan"
        denied = between == "!=" or (before[-1:] == ["not"] and not called)
        if denied and claim.count == 1 and left.text != right.text and "nan" in (_number(a), _number(b)):
            yield "it compares with nan, which equals nothing and has no order"


def _calls(text: str) -> bool:
    """Whether the same text may give another object each time."""
    with contextlib.suppress(SyntaxError, ValueError):
        return any(isinstance(node, _CALLS) for node in ast.walk(ast.parse(text, mode="eval")))
    return True


def _number(shown: Snapshot) -> model.Number | None:
    """The number that a scalar is, or a tensor of one element."""
    if isinstance(shown, model.Scalar) and shown.type != "bool":
        return shown.number
    if isinstance(shown, model.Tensor) and shown.dtype != "bool" and set(shown.shape) <= {1}:
        return next(iter(shown.values), None)
    return None


def _is_nan(shown: Snapshot) -> bool:
    """Whether all of it that is kept is nan."""
    if isinstance(shown, model.Tensor) and shown.values:
        return set(shown.values) == {"nan"}
    return _number(shown) == "nan"


def _is_empty(shown: Snapshot) -> bool:
    """Whether it holds nothing. The shape of a scalar is no list of nothing."""
    match shown:
        case model.Sequence() | model.Mapping():
            return shown.length == 0 and not shown.type.endswith("Size")
        case model.Tensor():
            return 0 in shown.shape
        case model.Scalar():
            return shown.type in ("str", "bytes") and shown.text in ("''", "b''")
    return False
