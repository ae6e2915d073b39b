"""Claims that hold and say nothing: `0 == 0` of what counted nothing, `all` of nothing, NaN, `x == x`.

In goes a record, which keeps both sides of every comparison; out come problems. Each comparison of a claim is
looked at, and each call with two arguments (`torch.equal(a, b)`). Of a claim that ran more than once only the
text says something: the record keeps the sides of one time. Where zero is the point,
`# @allow vacuous: why` says so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from litbook.finding import Finding, Place
from litbook.lecture.model import Lecture
from litbook.python import scopes
from litbook.record import model
from litbook.record.model import Record, Section, Snapshot
from litbook.record.ranks import ranks_of
from litbook.rules.tautology import SAME, expression, why_same

WAY_OUT = "claim also that there was something to see; where zero is the point, say so: # @allow vacuous: WHY"
WAY_OUT_SAME = "claim something that can be false; where this is the point, say so: # @allow vacuous: WHY"
WAY_OUT_ONE = (
    "keep a copy of what was before: x.clone(), copy.deepcopy(x); that both are one is claimed by"
    " a is b, a.data_ptr() == b.data_ptr(), or np.shares_memory(a, b)"
)
WAY_OUT_NAN = (
    "claim that it is nan: math.isnan(x), or that it is not; where this is the point, say so:"
    " # @allow vacuous: WHY"
)
WAY_OUT_THERE = "call it, or claim that it is there: … is not None"
VAST = "its tolerance is as large as what it compares, so that zero would do"
CUT = "it stops at"
WAY_OUT_VAST = "take a smaller tolerance; where zero may do, say so: # @allow vacuous: WHY"
WAY_OUT_CUT = (
    "say that both are of one length: zip(…, strict=True), or cut the longer one there: xs[:n];"
    " where this is the point, say so: # @allow vacuous: WHY"
)
NAN = "it compares with nan, which equals nothing and has no order"
BOTH_NAN = "both sides are nan"
BOTH_ZERO = "both sides are zero"
NEVER_EQUAL = "types that are never equal"
UNLIKE_SHAPES = "their shapes differ, so that nobody looks at what they hold"
ONE_CONTENT = "both sides hold the same objects"
WAY_OUT_NEVER = (
    'compare with what it could be equal to, tuple(x) != (2, 3), str(x) != "3";'
    " where this is the point, say so: # @allow vacuous: WHY"
)
WAY_OUT_UNIQUE = (
    "compare what they hold: their fields, their state_dict(), list(x); that both are two: a is not b"
)
WAY_OUT_SHAPES = "claim that the shapes differ, x.shape != y.shape, or compare what has one shape"
_EQUAL = ("==", "is", "<=", ">=")  # what holds between a thing and itself
# Where something stands, of which the first is zero; and how many axes a number has.
_POSITIONS = (
    "argmax argmin det dim find index ndim numel rank relu returncode storage_offset stride trace".split()
)
# What is zero of nothing.
_COUNTS = "abs all any count_nonzero dist max min norm prod sum tensor zeros".split()
_CALLS = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


def find_vacuous(record: Record, lecture: Lecture | None = None) -> list[Finding]:
    """The claims and asserts that hold and say nothing, in the order of the book, each with why.

    Of a `lecture` that is given, names that a section gives a value once stand for what gives it.
    """
    problems, nodes = list[Finding](), {}
    if lecture is not None:
        nodes = {lecture.key(index): node for node, index in lecture.function_of.items()}
    # One that ran in several processes says something where it does in any.
    for section in record.sections:
        of_ranks = ranks_of(section) if section.claims else []
        known = scopes.bound_once(nodes[section.key]) if section.claims and section.key in nodes else {}
        for number, claim in enumerate(section.claims):
            if claim.verdict == "holds" and claim.kind == "assert" and not claim.zero:
                judged = [entry.claims[number] for entry in of_ranks]
                reasons = [_why_vacuous(section, own, known) for own in judged if own.verdict == "holds"]
                # But nan on one rank says nothing of that rank, whatever the others have.
                nan = next((why for why in reasons if why == NAN), "")
                if why := (all(reasons) and reasons[0]) or nan or why_same(claim.text):
                    problems.append(_problem(record, section, claim.line, "claim", why))
    says = {(check.key, check.line, check.column) for check in record.asserts if not check.nothing}
    for check in record.asserts:
        if check.nothing and (check.key, check.line, check.column) not in says:
            stands_in = record.by_key.get(check.key) or record.definition_of[check.key]
            problems.append(_problem(record, stands_in, check.line, "assert", check.nothing))
    files = [source.path for source in record.sources]
    at = {(p.place.path, p.place.line, p.what): p for p in problems if p.place}
    return [at[place] for place in sorted(at, key=lambda place: (files.index(place[0]), place[1]))]


def _why_vacuous(section: Section, claim: model.Claim, known: Mapping[str, ast.expr]) -> str:
    """Why a claim that held says nothing; "" where it says something. Of names some are `known`."""
    texts = tuple(side.text for side in claim.operands)
    meant = any(_means_zero(ast.unparse(known[text])) for text in texts if text in known)
    shots = [None if side.value is None else section.snapshots[side.value] for side in claim.operands]
    reasons = why_nothing(claim.form, texts, shots, claim.count == 1)
    return next((why for why in reasons if not (meant and why == BOTH_ZERO)), claim.nothing)


def _problem(
    record: Record, stands_in: Section | model.Definition, line: int, kind: str, why: str
) -> Finding:
    source = record.sources[stands_in.file]
    place = Place.of_line(source.path, source.text, stands_in.first + line)
    says = "overlooks what is left" if why.startswith(CUT) else "says nothing"
    return Finding("vacuous", f"this {kind} {says}: {why}", place, _way_out(why))


def _way_out(why: str) -> str:
    if why in (NAN, BOTH_NAN):
        return WAY_OUT_NAN
    if why == VAST:
        return WAY_OUT_VAST
    if why.startswith(CUT):
        return WAY_OUT_CUT
    if why == SAME:
        return WAY_OUT_SAME
    if why.startswith(NEVER_EQUAL):
        return WAY_OUT_NEVER
    if why.endswith("equals itself alone"):
        return WAY_OUT_UNIQUE
    if why == UNLIKE_SHAPES:
        return WAY_OUT_SHAPES
    one = (
        "both sides are one",
        "both sides are the same",
        "both sides are views",
        "both sides ask",
        ONE_CONTENT,
    )
    if why.startswith(one):
        return WAY_OUT_ONE
    return WAY_OUT_THERE if why.startswith("it asserts") else WAY_OUT


def why_nothing(
    form: Sequence[str], texts: Sequence[str], shots: Sequence[Snapshot | None], once: bool
) -> Iterator[str]:
    """Why an assert that held says nothing, of each of its comparisons.

    `form` is its text around the operands, `shots` are what these were, None where nobody asked for one; and
    whether it ran `once`.
    """
    for i, (a, b) in enumerate(pairwise(shots)):
        left, right = texts[i : i + 2]
        before, between = form[i].split(), form[i + 1].strip(" ()")
        ends = form[i + 2][:1] == ")" or "=" in form[i + 2]  # of a call, perhaps with keywords
        called = between == "," and form[i].endswith("(") and ends
        if a is None or b is None or not (called or between):
            continue
        if between in _EQUAL or called:
            if left == right and not _calls(left):
                yield f"both sides are {left}"
            sides = (left, a), (right, b)
            means_zero = any(_means_zero(text) or _is_low_precision(shot) for text, shot in sides)
            if once and _number(a) == _number(b) == 0 and not means_zero:
                yield BOTH_ZERO
            if once and _is_empty(a) and _is_empty(b):
                yield "both sides are empty"
            if called and once and _is_nan(a) and _is_nan(b):
                yield BOTH_NAN
        if once and between in ("<=", ">=") and _is_empty(a if between == "<=" else b):
            yield "nothing is within everything"
        if once and between == "in" and _is_empty(a) and isinstance(b, model.Scalar):
            yield "the empty text is in every text"
        outside = between == "not in" or (between == "in" and before[-1:] == ["not"])
        if once and outside and _is_empty(b):
            yield "nothing is in what is empty"
        if any(_number(shot) == 0 and _taken_from_itself(text) for text, shot in ((left, a), (right, b))):
            yield "what is taken from itself is zero"
        denied = between in ("!=", "not in") or (before[-1:] == ["not"] and not called)
        if denied and once and left != right and "nan" in (_number(a), _number(b)):
            yield NAN


def _taken_from_itself(text: str) -> bool:
    """Whether it holds a difference of the same thing twice."""
    for node in ast.walk(expression(text) or ast.Constant("")):
        match node:
            case ast.BinOp(left, ast.Sub(), right) if ast.dump(left) == ast.dump(right):
                return not _calls(ast.unparse(left))
    return False


def _means_zero(text: str) -> bool:
    """Whether that it is zero says much: what a division or `^` leaves, a position, what holds no name."""
    match tree := expression(text):
        case ast.BinOp(left, ast.Mod() | ast.BitXor() | ast.RShift(), _) if not _is_zero(left):
            return True
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) | ast.Attribute(attr=name) if (
            name in _POSITIONS
        ):
            return True
        case ast.Subscript(slice=ast.Tuple([*at])) if all(isinstance(one, ast.Constant) for one in at):
            return True
        case ast.Subscript(ast.Name() | ast.Attribute(), ast.Constant(int())):
            return True
        case ast.Call(ast.Attribute(ast.Name("math" | "torch" | "np" | "numpy" | "F"), name), [_, *_]):
            return name not in _COUNTS
    inner = [] if tree is None or isinstance(tree, ast.Constant) else [*ast.walk(tree)]
    named = {node.id for node in inner if isinstance(node, ast.Name)} - {"int", "round", "abs"}
    return bool(inner) and not named and not any(map(_is_zero, inner))


def _is_zero(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _is_low_precision(shown: Snapshot) -> bool:
    """Whether it is in a format that rounds what is small to zero: that it did says much."""
    return isinstance(shown, model.Tensor) and shown.dtype.startswith(("float16", "bfloat16", "float8"))


def _calls(text: str) -> bool:
    """Whether the same text may give another object each time."""
    tree = expression(text)
    return tree is None or any(isinstance(node, _CALLS) for node in ast.walk(tree))


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
