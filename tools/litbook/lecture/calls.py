"""A lecture's statements as calls: of a section, of one of the author's words, of what else.

In goes a lecture's text, parsed. What is worked out here is worked out once for all that ask.
"""

from __future__ import annotations

import ast

from litbook.lecture.author_words import STATED, calls
from litbook.lecture.model import Lecture
from litbook.lecture.program import NameInFile, Program
from litbook.python import scopes
from litbook.python.nodes import FunctionNode, all_nodes, blocks, body_of, dotted


class LectureCalls:
    """A lecture's statements as calls: of which section or author's word, and what they read."""

    def __init__(self, lecture: Lecture) -> None:
        self.lecture = lecture
        self.main = lecture.main
        self.called: dict[int, list[int]] = {}  # the sections that a section calls, in order
        for row in lecture.statements:
            if row.kind == "section" and row.target is not None:
                self.called.setdefault(row.function, []).append(row.target)
        self.read: dict[ast.stmt, frozenset[str]] = {}  # by `reads`: notebooks ask for the same again
        self.program = Program(lecture.names, self.reads)

    def file(self, function: int) -> int:
        """The number of the file in which a function stands."""
        return self.lecture.functions[function].file

    def function(self, index: int) -> FunctionNode:
        """The definition of a section."""
        node = self.lecture.node_of[index]
        assert isinstance(node, FunctionNode)
        return node

    def body(self, index: int) -> list[ast.stmt]:
        """The statements of a section without its docstring."""
        return body_of(self.function(index))

    def local_names(self, index: int) -> frozenset[str]:
        """The names that a section has to itself."""
        return scopes.local_names(self.function(index))

    def reads(self, node: ast.stmt) -> frozenset[str]:
        """The names of the module, and builtins, that a statement needs to run, be called and be shown."""
        if node not in self.read:
            local = frozenset[str]()
            if isinstance(node, FunctionNode | ast.ClassDef):
                local = scopes.local_names(node)
            anchors = (node, *blocks(node))
            watches = (i for anchor in anchors for i in self.lecture.watches_of.get(anchor, ()))
            shown = (scopes.reads(self.lecture.watches[i].node) - local for i in watches)
            self.read[node] = scopes.reads(node).union(*shown)
        return self.read[node]

    def keys(self, index: int, *statements: ast.stmt) -> list[NameInFile]:
        """The names of a section's file that some of its statements read."""
        local, file = self.local_names(index), self.file(index)
        return [(file, name) for statement in statements for name in self.reads(statement) - local]

    def target(self, statement: ast.stmt) -> int | None:
        """The section that a statement calls and does nothing else; a hidden call is still one."""
        row = self.lecture.statements[self.lecture.statement_of[statement]]
        return row.target if row.kind in ("section", "hidden") and isinstance(statement, ast.Expr) else None

    def word(self, statement: ast.stmt) -> str:
        """The author's word by which a statement tells what the record has, else nothing.

        The first of several on one line; nothing where a question, whose answer runs, is one of these.
        """
        row = self.lecture.statements[self.lecture.statement_of[statement]]
        names = list[str]()
        for call in calls(statement) if row.kind == "piece" else ():
            head, _, name = dotted(call.func).rpartition(".")
            full = name if head else self.program.origin(self.file(row.function), name)
            names.append(full.rpartition(".")[2])
        told = [name for name in names if name != "speaker_note"] or names
        if not told or not STATED.issuperset(told) or (len(names) > 1 and "question" in names):
            return ""
        return "" if any(isinstance(node, ast.NamedExpr) for node in all_nodes(statement)) else told[0]

    def answer(self, statement: ast.stmt) -> tuple[ast.expr, str | None] | None:
        """What computes the answer of a question, and in which unit it is."""
        match statement:
            case ast.Expr(ast.Call(keywords=keywords)) if self.word(statement) == "question":
                given = {keyword.arg: keyword.value for keyword in keywords}
                unit = getattr(given.get("unit"), "value", None)
                return (given["answer"], unit) if "answer" in given else None
        return None
