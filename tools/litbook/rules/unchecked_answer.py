"""Questions whose answer is computed in one way only: an author who errs there is told by nobody.

In goes a lecture, out come problems. Nothing runs: whether two ways agree, the run says. An answer has a
second way where its question has a `check=` of another text, or where its function asserts `answer == other`.
"""

from __future__ import annotations

import ast
from collections import defaultdict

from litbook.finding import Finding
from litbook.lecture.calls import LectureCalls
from litbook.lecture.model import Lecture

WAY_OUT = "compute it a second way, check=…: by a count, a counter, a published number"
SAME = "write another way to it: a count, a counter, a published number"


def find_unchecked(lecture: Lecture) -> list[Finding]:
    """The questions of `lecture` whose answer has no second way, in the order of its files."""
    text, problems = LectureCalls(lecture), dict[tuple[int, int], Finding]()
    # What the asserts of each function say that something else equals, or is close to.
    compared = defaultdict[int, list[ast.expr]](list)
    for statement, number in lecture.statement_of.items():
        test = statement.test if isinstance(statement, ast.Assert) else None
        for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
            match part:
                case ast.Compare(left, ops, others) if all(isinstance(op, ast.Eq) for op in ops):
                    compared[lecture.statements[number].function] += [left, *others]
                case ast.Call(func, [one, other, *_]):
                    if ast.unparse(func).rpartition(".")[2] in ("isclose", "allclose", "equal"):
                        compared[lecture.statements[number].function] += [one, other]
    for statement, number in lecture.statement_of.items():
        match statement:
            case ast.Expr(ast.Call(keywords=keywords)) if text.word(statement) == "question":
                given = {keyword.arg: keyword.value for keyword in keywords}
                if None in given or "answer" not in given:  # `**asked` may hold it; a run says what lacks
                    continue
                answer, check = given["answer"], given.get("check")
                if isinstance(check, ast.Constant) and check.value is None:
                    check = None
                others = compared[lecture.statements[number].function]
                once_more = check is not None and _same(answer, check)
                if not once_more and (check is not None or any(_same(answer, other) for other in others)):
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


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)
