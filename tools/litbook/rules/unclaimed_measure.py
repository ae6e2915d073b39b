"""Measured values that a page shows and no claim reads: whatever they come to, the book builds.

In goes a lecture, out come problems. Nothing runs. A claim reads a value by its name, or by the name of what
is computed from it, in the same section; so does an `if`, which decides what is claimed.
"""

from __future__ import annotations

import ast
from collections import defaultdict

from litbook.finding import Finding
from litbook.lecture.model import Lecture
from litbook.python import scopes
from litbook.python.nodes import DefinitionNode, children

WAY_OUT = "claim what it may be, from both sides where that can be told"


def find_unclaimed(lecture: Lecture) -> list[Finding]:
    """The `@measure`s of the sections of `lecture` that no claim reads, in the order of the sections."""
    statements, problems = defaultdict[int, list[ast.stmt]](list), list[Finding]()
    for statement, number in lecture.statement_of.items():
        statements[lecture.statements[number].function].append(statement)
    for function in lecture.order:
        tests = [s.test for s in statements[function] if isinstance(s, ast.Assert | ast.If)]
        wholes = {ast.dump(node) for test in tests for node in ast.walk(test) if isinstance(node, ast.expr)}
        judged = set[str]().union(*map(scopes.reads, tests))
        size = -1
        while size != len(judged):  # what a name that a claim reads is computed from is read by it, too
            size = len(judged)
            for statement in statements[function]:
                given = {*scopes.binds(statement), *scopes.touched_names(statement, arguments=False)}
                if not judged.isdisjoint(given):
                    # Of a definition all of it, else not the statements inside.
                    parts = [part for part in children(statement) if not isinstance(part, ast.stmt)]
                    whole = isinstance(statement, DefinitionNode)
                    judged.update(*map(scopes.reads, [statement] if whole else parts))
        file = lecture.file_of_function(function)
        for statement in statements[function]:
            for watch in (lecture.watches[i] for i in lecture.watches_of.get(statement, ())):
                read = not judged.isdisjoint(scopes.reads(watch.node, called=False))
                if watch.kind == "measure" and not read and ast.dump(watch.node) not in wholes:
                    what = f"no claim reads {watch.text}, which is measured"
                    problems.append(Finding("unbounded", what, file.place(watch.line, 1), WAY_OUT))
    return problems
