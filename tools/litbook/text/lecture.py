"""What the text of a lecture says, as data: functions, statements, watches, claims.

The other modules of this package fill a `Lecture`; everybody else reads it. It holds no values.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Literal

from litbook.errors import Place
from litbook.record import model
from litbook.text.tree import first_line, lines_of

INSTALLED = {"site-packages", "dist-packages"}  # what lies there is nobody's own
FunctionKind = Literal["module", "main", "part", "section", "helper", "class"]
StatementKind = Literal["code", "claim", "piece", "section", "def", "doc", "hidden"]


@dataclass(frozen=True)
class Function:
    """A module, function or class of the lecture's text; sections and parts are functions too.

    `file` counts the lecture's files; lines are those of that file. `key` names it within the lecture, with
    the names around it: `Decoder.forward`. `digest` is the hash of its text. `parent` is, for a section, the
    part or main that calls it first.
    """

    name: str
    kind: FunctionKind
    first: int
    last: int
    heading: str = ""
    body: int = 0  # first line of the body after the docstring
    parent: int | None = None
    requires: str | None = None
    hidden: bool = False
    digest: str = ""
    file: int = 0
    key: str = ""


@dataclass(frozen=True)
class Statement:
    """One statement: its lines, and what it is to a reader. `function` owns it."""

    function: int
    first: int
    last: int  # of a compound statement: the last line of its header
    kind: StatementKind = "code"
    end: int = 0  # last line with the whole body
    target: int | None = None  # for "section": the function called; for "def": the function defined


@dataclass(frozen=True)
class Watch:
    """One expression of an `@inspect`, `@measure` or `@clear`, and where it stands."""

    kind: str
    text: str
    unit: str | None
    line: int
    node: ast.expr = field(compare=False)


@dataclass(frozen=True)
class Assertion:
    """An `assert`, or an annotation, that is a claim: it stands in a section's own body."""

    statement: int
    kind: str  # "assert" or "axes"
    text: str
    caption: str
    form: tuple[str, ...]  # the test's text around its operands
    operands: tuple[ast.expr, ...] = field(compare=False)
    operand_texts: tuple[str, ...] = ()
    node: ast.Assert | ast.AnnAssign | None = field(default=None, compare=False)


@dataclass
class Lecture:
    """Everything that the text of one lecture says. Built by `parse`; read-only afterwards."""

    path: str
    text: str
    tree: ast.Module
    title: str = ""
    functions: list[Function] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    claims: list[Assertion] = field(default_factory=list)
    cuts: list[tuple[int, int]] = field(default_factory=list)
    function_of: dict[ast.AST, int] = field(default_factory=dict)
    statement_of: dict[ast.stmt, int] = field(default_factory=dict)
    watches_of: dict[ast.AST, list[int]] = field(default_factory=dict)
    claim_of: dict[ast.stmt, int] = field(default_factory=dict)
    hidden: set[ast.AST] = field(default_factory=set)
    stepover: set[ast.AST] = field(default_factory=set)
    untouched: set[ast.AST] = field(default_factory=set)
    order: list[int] = field(default_factory=list)  # parts and sections, as `main` reaches them
    warns: bool = True  # whether the compiler may have something to say about the text

    @cached_property
    def lines(self) -> list[str]:
        """The text's physical lines, without their ends, counted as Python counts them."""
        return lines_of(self.text)

    def place(self, line: int, column: int = 1) -> Place:
        """The position `line`:`column` (1-based) with the user's own text."""
        lines = self.lines
        return Place(self.path, line, column, lines[line - 1] if 0 < line <= len(lines) else "")

    def source(self) -> model.Source:
        """The file as the record keeps it."""
        digest = sha256(self.text.encode()).hexdigest()
        return model.Source(self.path, digest, self.text, tuple(sorted(self.cuts)))

    def section_names(self) -> list[str]:
        """Names of the parts and sections, in the order in which `main` reaches them."""
        return [self.functions[i].name for i in self.order]

    def text_of(self, statement: ast.stmt) -> str:
        """The physical lines of a statement, with its decorators."""
        return "\n".join(self.lines[first_line(statement) - 1 : statement.end_lineno])
