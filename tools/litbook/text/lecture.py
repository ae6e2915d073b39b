"""What the text of a lecture says, as data: functions, statements, watches, claims.

The other modules of this package fill a `Lecture`; everybody else reads it. It holds no values.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from litbook.errors import Ambiguous, NotFound, Place
from litbook.record import model
from litbook.text.tree import first_line, lines_of

if TYPE_CHECKING:
    from litbook.text.imports import Names

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
    aside: bool = False
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
    opener: int = 0  # line of the `else`, `except`, `case` … of which it is the first statement


@dataclass(frozen=True)
class Watch:
    """One expression of an `@inspect`, `@measure` or `@clear`, and where it stands."""

    kind: str
    text: str
    unit: str | None
    line: int
    node: ast.expr = field(compare=False)
    file: int = 0


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
    measured: bool = False  # it mentions what its section measures: two runs agree on its verdict alone
    zero: bool = False  # its author says that zero, or nothing, is the point
    node: ast.Assert | ast.AnnAssign | None = field(default=None, compare=False)


@dataclass
class File:
    """One file of a lecture: its text and its tree.

    `filename` is where it lies, or is said to, and what its code objects are called; `module` is what Python
    calls it, `name` what it is called within the lecture: "" for the only file and for `__init__`, else
    `models`.
    """

    path: str  # as messages and the record name it
    text: str
    tree: ast.Module
    filename: str = ""
    module: str = ""
    name: str = ""
    number: int = 0
    cuts: list[tuple[int, int]] = field(default_factory=list)  # where a shown line ends, before its directive
    warns: bool = True  # whether the compiler may have something to say about the text

    @cached_property
    def lines(self) -> list[str]:
        """The text's physical lines, without their ends, counted as Python counts them."""
        return lines_of(self.text)

    def place(self, line: int, column: int = 1) -> Place:
        """The position `line`:`column` (1-based) with the user's own text."""
        lines = self.lines
        return Place(self.path, line, column, lines[line - 1] if 0 < line <= len(lines) else "")

    def at(self, node: ast.stmt | ast.expr | ast.alias) -> Place:
        """Where a node begins. The tree counts columns in bytes, and so no reader does."""
        line = self.lines[node.lineno - 1]
        return self.place(node.lineno, len(line.encode()[: node.col_offset].decode()) + 1)

    def text_of(self, statement: ast.stmt) -> str:
        """The physical lines of a statement, with its decorators."""
        return "\n".join(self.lines[first_line(statement) - 1 : statement.end_lineno])

    def source(self) -> model.Source:
        """The file as the record keeps it."""
        digest = sha256(self.text.encode()).hexdigest()
        return model.Source(self.path, digest, self.text, tuple(sorted(self.cuts)))


def with_modules(files: Sequence[File]) -> list[File]:
    """The files of a lecture with their names, for Python and within the lecture; the first has `main`.

    A file in the folder of an `__init__.py` is a module of that package. Any other one stands beside the
    lecture. A lecture that is one file goes without a name of either kind.
    """
    paths = [PurePosixPath(file.path) for file in files]
    package = paths[0].parent.name if paths and paths[0].name == "__init__.py" else ""
    found = list[File]()
    for file, path in zip(files, paths, strict=True):
        inside = package and path.parent == paths[0].parent
        name = "" if path == paths[0] else path.stem
        found.append(replace(file, module=f"{package}.{name}".rstrip(".") if inside else name, name=name))
    return found


@dataclass
class Lecture:
    """Everything that the text of one lecture says. Built by `parse`; read-only afterwards.

    Functions, statements, watches and claims are numbered over all `files`; the first has `main`.
    """

    files: list[File]
    names: Names  # what a name means in each file
    name: str = ""  # of the file, or of the folder
    title: str = ""
    functions: list[Function] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
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
    zeros: dict[ast.AST, Place] = field(default_factory=dict)  # where `@zero` stands, by its statement
    order: list[int] = field(default_factory=list)  # parts and sections, as `main` reaches them

    def place(self, line: int, column: int = 1, file: int = 0) -> Place:
        """The position `line`:`column` (1-based) of a file with the user's own text."""
        return self.files[file].place(line, column)

    def sources(self) -> tuple[model.Source, ...]:
        """The files as the record keeps them."""
        return tuple(file.source() for file in self.files)

    def file_of(self, filename: str) -> int | None:
        """The number of the file that lies at `filename`, as code objects say it; None for any other."""
        return self._numbers.get(filename)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {file.filename: file.number for file in self.files}

    def file_of_function(self, function: int) -> File:
        """The file in which a function stands."""
        return self.files[self.functions[function].file]

    def file_of_statement(self, statement: int) -> File:
        """The file in which a statement stands."""
        return self.file_of_function(self.statements[statement].function)

    def section_around(self, function: int) -> int:
        """The section that a function is, or stands in; of a helper at the left margin the module."""
        spec, found = self.functions[function], function
        if spec.kind in ("helper", "class"):
            inside = [
                i
                for i, it in enumerate(self.functions)
                if it.file == spec.file and it.kind not in ("helper", "class")
            ]
            found = max(
                (i for i in inside if self.functions[i].first <= spec.first <= self.functions[i].last),
                key=lambda i: self.functions[i].first,
            )
        return found

    def section_names(self) -> list[str]:
        """Names of the parts and sections, in the order in which `main` reaches them; no two are equal."""
        return [self.section_name(i) for i in self.order]

    def section_name(self, function: int) -> str:
        """The section's name; with its file in front, where another file has one of that name."""
        spec = self.functions[function]
        return spec.name if len(self._named[spec.name]) < 2 else self._full_name(function)

    def key(self, function: int) -> str:
        """What its entry in a record is called: a section as it is asked for, all else with its file."""
        asked_for = self.functions[function].kind in ("part", "section")
        return self.section_name(function) if asked_for else self.functions[function].key

    def section(self, name: str) -> int:
        """The section called `name`, or `file.name`. Raises `NotFound`, or `Ambiguous` where several are."""
        found = [i for i in self.order if self._full_name(i) == name] or self._named.get(name, [])
        if not found:
            raise NotFound("section", name, self.section_names())
        if len(found) > 1:
            raise Ambiguous("section", name, [self._full_name(i) for i in found])
        return found[0]

    def _full_name(self, function: int) -> str:
        spec = self.functions[function]
        return f"{PurePosixPath(self.files[spec.file].path).stem}.{spec.name}"

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        """The sections of every name."""
        return model.grouped(self.order, lambda i: self.functions[i].name)
