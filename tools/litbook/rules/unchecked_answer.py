"""Questions whose answer is computed in one way only: an author who errs there is told by nobody.

In goes a lecture, out come problems. Nothing runs: whether two ways agree, the run says. An answer has a
second way where its question has a `check=` of another text, or where its function asserts `answer == other`.
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Mapping

from litbook.finding import Finding
from litbook.lecture.calls import LectureCalls
from litbook.lecture.model import Lecture
from litbook.python import scopes

WAY_OUT = "compute it a second way, check=…: by a count, a counter, a published number"
DEEPEST = 50  # names that stand for names
_ALIKE = ("int", "float", "round", "abs", "copy", "deepcopy")
SAME = "write another way to it: a count, a counter, a published number"


def find_unchecked(lecture: Lecture) -> list[Finding]:
    """The questions of `lecture` whose answer has no second way, in the order of its files."""
    text, problems = LectureCalls(lecture), dict[tuple[int, int], Finding]()
    # What the asserts of each function say that something else equals, or is close to.
    compared = defaultdict[int, list[list[ast.expr]]](list)
    for statement, number in lecture.statement_of.items():
        test = statement.test if isinstance(statement, ast.Assert) else None
        for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
            match part:
                case ast.Compare(left, ops, others) if all(isinstance(op, ast.Eq) for op in ops):
                    compared[lecture.statements[number].function].append([left, *others])
                case ast.Call(func, [one, other, *_]):
                    if ast.unparse(func).rpartition(".")[2] in ("isclose", "allclose", "equal"):
                        compared[lecture.statements[number].function].append([one, other])
    for statement, number in lecture.statement_of.items():
        match statement:
            case ast.Expr(ast.Call(keywords=keywords)) if text.word(statement) == "question":
                given = {keyword.arg: keyword.value for keyword in keywords}
                if None in given or "answer" not in given:  # `**asked` may hold it; a run says what lacks
                    continue
                answer, check = given["answer"], given.get("check")
                if isinstance(check, ast.Constant) and check.value is None:
                    check = None
                function = lecture.statements[number].function
                known = scopes.bound_once(lecture.node_of[function])
                once_more = check is not None and _same(answer, check, known)
                sides = (
                    several for several in compared[function] if any(_same(answer, one) for one in several)
                )
                elsewhere = any(not _same(answer, one, known) for several in sides for one in several)
                if not once_more and (check is not None or elsewhere):
                    continue
                file = lecture.file_of_statement(number)
                way = "its check= is the answer once more" if once_more else "nothing checks it"
                what = f"the answer {ast.unparse(answer):.60} has one way only: {way}"
                place = file.place_of(check if check is not None else answer)
                way_out = SAME if once_more else WAY_OUT
                problems[file.number, place.line] = Finding("unchecked", what, place, way_out)
    return [problems[place] for place in sorted(problems)]


def count(lecture: Lecture) -> int:
    """How many questions the text of `lecture` asks."""
    text = LectureCalls(lecture)
    return sum(text.word(statement) == "question" for statement in lecture.statement_of)


def _same(one: ast.expr, other: ast.expr, known: Mapping[str, ast.expr] = {}) -> bool:
    """Whether two expressions are one, the names that are `known` written out."""
    one, other = (_Aliases(known).visit(copy.deepcopy(_written_out(side, known))) for side in (one, other))
    return ast.dump(one) == ast.dump(other)


class _Aliases(ast.NodeTransformer):
    """Inside of an expression, what is only another name for a name or a number."""

    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name, or what it is another one for."""
        meant: ast.expr = node
        for _ in range(DEEPEST):
            further = self.known.get(meant.id) if isinstance(meant, ast.Name) else None
            if not isinstance(further, ast.Name | ast.Constant):
                break
            meant = further
        return meant


def _written_out(node: ast.expr, known: Mapping[str, ast.expr], depth: int = 0) -> ast.expr:
    """An expression without what leaves its value as it is: other names for it, `int(…)`, `+ 0`, `* 1`."""
    if depth > DEEPEST:
        return node
    match node:
        case ast.Name(name) if name in known:
            return _written_out(known[name], known, depth + 1)
        case ast.Call(func, [inner], []) if ast.unparse(func).rpartition(".")[2] in _ALIKE:
            return _written_out(inner, known, depth + 1)
        case ast.NamedExpr(_, inner) | ast.UnaryOp(ast.UAdd(), inner):
            return _written_out(inner, known, depth + 1)
        case ast.Subscript(ast.List([inner]) | ast.Tuple([inner]), ast.Constant(value=0 | -1)):
            return _written_out(inner, known, depth + 1)
        case ast.BinOp(inner, ast.Add() | ast.Sub(), ast.Constant(value=0)) | ast.BinOp(
            ast.Constant(value=0), ast.Add(), inner
        ):
            return _written_out(inner, known, depth + 1)
        case ast.BinOp(inner, ast.Mult() | ast.Div() | ast.Pow(), ast.Constant(value=1)) | ast.BinOp(
            ast.Constant(value=1), ast.Mult(), inner
        ):
            return _written_out(inner, known, depth + 1)
    return node
