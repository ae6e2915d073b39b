"""What the text of a lecture says, as data: functions, statements, watches, claims.

The other modules of this package fill a `Lecture`; everybody else reads it. It holds no values.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Literal

from litbook.errors import Ambiguous, NotFound
from litbook.finding import Finding, Place
from litbook.python.file import File
from litbook.python.imports import NameResolver
from litbook.python.nodes import FunctionNode
from litbook.python.scopes import steady_names, touched_names
from litbook.record import model

INSTALLED = {"site-packages", "dist-packages"}  # what lies there is nobody's own
FunctionKind = Literal["module", "main", "part", "section", "helper", "class"]
SECTIONS = ("main", "part", "section")  # the kinds of functions that a reader meets as sections


@dataclass(frozen=True, slots=True)
class LectureFunction:
    """A module, function or class of the lecture's text; sections and parts are functions too.

    `file` counts the lecture's files; lines are those of that file. `key` names it within the lecture, with
    the names around it: `Decoder.forward`. `parent` is, for a section, the part or main that calls it first.
    """

    name: str
    kind: FunctionKind
    first: int
    last: int
    heading: str = ""
    body: int = 0  # first line of the body after the docstring
    parent: int | None = None
    requires: str | None = None
    aside: bool = False
    hidden: bool = False
    shown: bool = False  # a helper that is the idea
    file: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True)
class SourceStatement:
    """One statement: its lines, and what it is to a reader. `function` owns it."""

    function: int
    first: int
    last: int  # of a compound statement: the last line of its header
    kind: model.StatementKind = "code"
    end: int = 0  # last line with the whole body
    target: int | None = None  # for "section": the function called; for "def": the function defined
    opener: int = 0  # line of the `else`, `except`, `case` … of which it is the first statement


@dataclass(frozen=True, slots=True)
class Watch:
    """One expression of an `@inspect`, `@measure` or `@clear`, and where it stands."""

    kind: str
    text: str
    unit: str | None
    line: int
    node: ast.expr = field(compare=False)
    file: int = 0


@dataclass(frozen=True, slots=True)
class Assertion:
    """An `assert`, or an annotation, that is a claim: it stands in a section's own body."""

    statement: int
    kind: str  # "assert" or "axes"
    text: str
    caption: str
    form: tuple[str, ...]  # the test's text around its operands
    operands: tuple[ast.expr, ...] = field(compare=False)
    operand_texts: tuple[str, ...] = ()
    measured: bool = False  # it mentions what its section measures: two runs agree on its verdict alone
    zero: bool = False  # its author says that zero, or nothing, is the point
    shown: bool = False  # its author says that the comparison is the lesson
    written: bool = False  # its section may have written into something before it
    node: ast.Assert | ast.AnnAssign | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Allowance:
    """What `# @allow CODE: why` excuses, on the lines of its statement.

    It is `general` unless the run or a trial has a use of its own for it: `@fails`, `@zero`, `@unnoticed` and
    `# survives` are such uses, by the codes `claim-fails`, `vacuous`, `unnoticed` and `mutant`.
    """

    code: str
    why: str
    place: Place
    last: int  # line
    general: bool = True

    def excuses(self, finding: Finding) -> bool:
        """Whether a finding is of its code and stands on its statement's lines."""
        at = finding.place
        return (
            at is not None
            and finding.code == self.code
            and at.path == self.place.path
            and self.first <= at.line <= self.last
        )

    first: int = 0


@dataclass
class Lecture:
    """Everything that the text of one lecture says. Built by `parse`; read-only afterwards.

    Functions, statements, watches and claims are numbered over all `files`; the first has `main`.
    """

    files: list[File]
    names: NameResolver  # what a name means in each file
    name: str = ""  # of the file, or of the folder
    title: str = ""
    functions: list[LectureFunction] = field(default_factory=list)
    statements: list[SourceStatement] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    claims: list[Assertion] = field(default_factory=list)
    function_of: dict[ast.AST, int] = field(default_factory=dict)
    statement_of: dict[ast.stmt, int] = field(default_factory=dict)
    watches_of: dict[ast.AST, list[int]] = field(default_factory=dict)
    claim_of: dict[ast.stmt, int] = field(default_factory=dict)
    hidden: set[ast.AST] = field(default_factory=set)
    stepover: set[ast.AST] = field(default_factory=set)
    untouched: set[ast.AST] = field(default_factory=set)
    compiled: set[ast.AST] = field(default_factory=set)  # those of them that a compiler reads
    fails: set[ast.AST] = field(default_factory=set)  # asserts that are meant to fail
    zeros: set[ast.AST] = field(default_factory=set)  # asserts of which zero, or nothing, is the point
    shown: set[ast.AST] = field(default_factory=set)  # asserts whose comparison is the lesson; helpers
    unnoticed: dict[ast.AST, list[tuple[Place, str]]] = field(default_factory=dict)  # changes, and why
    allowances: list[Allowance] = field(default_factory=list)
    remarks: list[Finding] = field(default_factory=list)  # what another tool takes for a comment
    order: list[int] = field(default_factory=list)  # parts and sections, as `main` reaches them
    namesakes: dict[str, list[int]] = field(default_factory=dict)  # these, by their names

    @cached_property
    def node_of(self) -> dict[int, ast.AST]:
        """The module, function or class of each number."""
        return {number: node for node, number in self.function_of.items()}

    @cached_property
    def main(self) -> int | None:
        """The number of `main`; None in a text that is no lecture."""
        return next((i for i, function in enumerate(self.functions) if function.kind == "main"), None)

    def sources(self) -> tuple[model.Source, ...]:
        """The files as the record keeps them."""
        digests = ((file, sha256(file.text.encode()).hexdigest()) for file in self.files)
        return tuple(model.Source(f.path, digest, f.text, tuple(sorted(f.cuts))) for f, digest in digests)

    def touched_names(self, statement: ast.stmt, function: ast.AST | None) -> tuple[str, ...]:
        """The local names of a `function` that a statement touches, and that are not inspected there."""
        kind = self.statements[self.statement_of[statement]].kind
        if not isinstance(function, FunctionNode) or kind != "code":
            return ()
        watches = (self.watches[number] for number in self.watches_of.get(statement, ()))
        shown = {watch.node.id for watch in watches if isinstance(watch.node, ast.Name)}
        return tuple(name for name in touched_names(statement) if name in steady_names(function) - shown)

    def file_of(self, filename: str) -> int | None:
        """The number of the file that lies at `filename`, as code objects say it; None for any other."""
        return next((file.number for file in self.files if file.filename == filename), None)

    def file_of_function(self, function: int) -> File:
        """The file in which a function stands."""
        return self.files[self.functions[function].file]

    def file_of_statement(self, statement: int) -> File:
        """The file in which a statement stands."""
        return self.file_of_function(self.statements[statement].function)

    def section_around(self, function: int) -> int:
        """The section that a function is, or stands in; of a helper at the left margin the module."""
        spec, helper = self.functions[function], ("helper", "class")
        if spec.kind not in helper:
            return function
        there = ((i, f) for i, f in enumerate(self.functions) if f.file == spec.file)
        others = ((i, f) for i, f in there if f.kind not in helper)
        return max((f.first, i) for i, f in others if f.first <= spec.first <= f.last)[1]

    def section_names(self) -> list[str]:
        """Names of the parts and sections, in the order in which `main` reaches them; no two are equal."""
        return [self.section_name(i) for i in self.order]

    def section_name(self, function: int) -> str:
        """The section's name; with its file in front, where another file has one of that name."""
        name = self.functions[function].name
        return name if len(self.namesakes[name]) < 2 else self._full_name(function)

    def key(self, function: int) -> str:
        """What its entry in a record is called: a section as it is asked for, all else with its file."""
        asked_for = self.functions[function].kind in ("part", "section")
        return self.section_name(function) if asked_for else self.functions[function].key

    def section(self, name: str) -> int:
        """The section called `name`, or `file.name`. Raises `NotFound`, or `Ambiguous` where several are."""
        sections = [i for i in self.order if self._full_name(i) == name] or self.namesakes.get(name, [])
        if not sections:
            idle = any(spec.name == name and spec.kind == "helper" for spec in self.functions)
            hint = f"{name}() is no section: neither main() nor a part calls it as `{name}()`" if idle else ""
            raise NotFound("section", name, self.section_names(), hint)
        if len(sections) > 1:
            raise Ambiguous("section", name, [self._full_name(i) for i in sections])
        return sections[0]

    def _full_name(self, function: int) -> str:
        spec = self.functions[function]
        return f"{PurePosixPath(self.files[spec.file].path).stem}.{spec.name}"
