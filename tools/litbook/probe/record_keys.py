"""A lecture's text as the record has it: keys instead of numbers, lines counted from the first of a section.

In goes a `Lecture`, where functions and statements are numbered through and lines are those of a file; out
come the definitions of a record, and the statements of its sections. It knows nothing of a run but what was
reached.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping
from functools import cached_property

from litbook.lecture import dependencies
from litbook.lecture.author_words import static_text
from litbook.lecture.model import Lecture
from litbook.python.nodes import DefinitionNode, FunctionNode, LoopNode, parameters
from litbook.python.scopes import binds
from litbook.record import model

SECTIONS = ("module", "main", "part", "section")  # the kinds of functions that are sections of a record


class RecordKeys:
    """Where the functions and statements of one lecture stand in its record."""

    def __init__(self, lecture: Lecture) -> None:
        self.lecture = lecture
        self.is_section = [function.kind in SECTIONS for function in lecture.functions]
        self.keys = [lecture.key(number) for number in range(len(lecture.functions))]
        self.within: list[int] = []  # statement -> its number in its own section or definition
        self.statements_of: list[list[int]] = [[] for _ in lecture.functions]  # function -> its statements
        for number, statement in enumerate(lecture.statements):
            self.within.append(len(self.statements_of[statement.function]))
            self.statements_of[statement.function].append(number)
        self.scale = max(1, len(lecture.statements))  # a step is its frame's number times this, plus its own
        self._names = {function.name for function in lecture.functions}
        self.spoken: set[int] = set()  # statements of code that turn out to be words
        self.claims: dict[int, list[int]] = {}  # function -> its claims
        for number, claim in enumerate(lecture.claims):
            self.claims.setdefault(lecture.statements[claim.statement].function, []).append(number)
        functions = ((i, node) for i, node in lecture.node_of.items() if isinstance(node, FunctionNode))
        self.parameters = {i: [shown for shown, _ in parameters(node)] for i, node in functions}
        # For every watch, the innermost loop around it in its own function, or -1; and that function.
        loops, owners = [-1] * len(lecture.watches), [0] * len(lecture.watches)
        self.loop_around: dict[int, int] = {}  # the same of every loop statement

        def walk(node: ast.AST, loop: int, owner: int) -> None:
            inside = loop
            if isinstance(node, LoopNode):
                inside = lecture.statement_of[node]
                self.loop_around[inside] = loop
            within = lecture.function_of[node] if isinstance(node, FunctionNode) else owner
            for number in lecture.watches_of.get(node, []):
                loops[number], owners[number] = inside, within
            within = lecture.function_of.get(node, owner)
            for name, value in ast.iter_fields(node):
                around = loop if name == "orelse" else inside
                for child in value if isinstance(value, list) else [value]:
                    # No statement is in an expression.
                    if isinstance(child, ast.AST) and not isinstance(child, ast.expr):
                        walk(child, -1 if isinstance(child, DefinitionNode) else around, within)

        for file in lecture.files:
            walk(file.tree, -1, 0)
        self.loop_of_watch, self.owner_of_watch = loops, owners

    @cached_property
    def digests(self) -> Mapping[str, dependencies.Digests]:
        """Of every section and definition what `depends` says; a run knows what lies beside the lecture."""
        return dependencies.digests(self.lecture)

    def line(self, function: int, line: int) -> int:
        """A line of a file, counted from the first of the function; that one is 0."""
        return line - self.lecture.functions[function].first

    @cached_property
    def statement_at(self) -> dict[tuple[int, int], int]:
        """File and line -> the innermost statement there."""
        innermost: dict[tuple[int, int], int] = {}
        for number, statement in enumerate(self.lecture.statements):
            file = self.lecture.functions[statement.function].file
            for line in range(statement.first, statement.end + 1):
                innermost[file, line] = number
        return innermost

    @cached_property
    def module_of(self) -> dict[int, int]:
        """File -> the function that stands for its own lines."""
        return {f.file: number for number, f in enumerate(self.lecture.functions) if f.kind == "module"}

    def order(self) -> list[int]:
        """The functions that are sections, in the order of the book: modules, `main`, parts and theirs."""
        main = () if self.lecture.main is None else (self.lecture.main,)
        return [*self.module_of.values(), *main, *self.lecture.order]

    def definition(self, function: int, reached: Container[int]) -> model.Definition:
        """A helper or class as the record has it; also a section that was called as a helper is."""
        spec = self.lecture.functions[function]
        return model.Definition(
            key=self.keys[function],
            kind="class" if spec.kind == "class" else "helper",
            file=spec.file,
            first=spec.first,
            lines=spec.last - spec.first + 1,
            heading=spec.heading,
            body=self.line(function, spec.body) if spec.body else 0,
            hidden=spec.hidden,
            shown=spec.shown,
            digest=self.digests[self.keys[function]].text,
            statements=self.statements(function, reached),
        )

    def statements(self, function: int, reached: Container[int]) -> tuple[model.Statement, ...]:
        """A function's statements; a note that was not `reached` carries its text, which pages show."""
        made = list[model.Statement]()
        for number in self.statements_of[function]:
            statement, node = self.lecture.statements[number], self.node_of[number]
            silent = statement.kind == "piece" and number not in reached
            made.append(
                model.Statement(
                    first=self.line(function, statement.first),
                    last=self.line(function, statement.last),
                    kind="piece" if number in self.spoken else statement.kind,
                    end=self.line(function, statement.end),
                    target=self.keys[statement.target] if statement.target is not None else "",
                    prose=static_text(node, self._names) if silent else "",
                    binds=binds(node),
                )
            )
        return tuple(made)

    def touched_names(self, statement: int) -> tuple[str, ...]:
        """The local names that a statement touches, each of which has a probe of its own."""
        function = self.lecture.node_of[self.lecture.statements[statement].function]
        return self.lecture.touched_names(self.node_of[statement], function)

    @cached_property
    def node_of(self) -> list[ast.stmt]:
        """Every statement's node, by its number."""
        return list(self.lecture.statement_of)

    def unreached_statements(
        self, entered: dict[int, int], reached: Container[int]
    ) -> tuple[tuple[int, int], ...]:
        """Statements of the functions `entered`, by their place, that could have run and did not."""
        every = ((place, i) for place, function in entered.items() for i in self.statements_of[function])
        return tuple((at, self.within[i]) for at, i in every if i not in reached and i not in self._silent)

    def is_untouched(self, statement: int) -> bool:
        """Whether it runs as it stands, without anything of ours in it."""
        return self.node_of[statement] in self._untouched

    @cached_property
    def _untouched(self) -> set[ast.AST]:
        return {child for top in self.lecture.untouched for child in ast.walk(top) if child is not top}

    @cached_property
    def _silent(self) -> set[int]:
        """Statements that never say that they ran: docstrings; those of functions without probes."""
        inside = self._untouched
        rows, numbered = self.lecture.statements, self.lecture.statement_of.items()  # a change adds nodes
        return {number for node, number in numbered if rows[number].kind == "doc" or node in inside}
