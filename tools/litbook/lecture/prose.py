"""A lecture's text -> the texts in it that are prose, each with its place and what its section's code holds.

Prose is what a reader reads as the book's own words: notes, both texts of a misbelief, questions and hints,
captions and alternative texts of figures and images, the text of a link, the headings of sections. The
caption of a claim is none: it is a label, and what it labels stands beside it, computed. Nothing runs here,
and what Markdown is, is not known.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from litbook.lecture.author_words import UNKNOWN, WORDS, arguments, calls
from litbook.lecture.model import Lecture
from litbook.lecture.program import Program
from litbook.python import scopes
from litbook.python.file import File
from litbook.python.nodes import FunctionNode
from litbook.python.strings import HOLE, Passage, SourceText


@dataclass(frozen=True)
class ProseText:
    """One text, a `HOLE` where something is computed; its section's code holds the numbers `held`."""

    file: File
    kind: Literal["words", "heading", "exercise"]
    passage: Passage
    held: frozenset[float]
    names: frozenset[str] = frozenset()  # that a hole could name here

    def fills(self, braced: str) -> bool:
        """Whether `braced` is a hole whose names are all known here, and not a set written out: `{a, b}`."""
        try:
            literal = ast.parse(f"f{braced!r}", mode="eval").body
        except (SyntaxError, ValueError):
            return False
        holes = [node for node in ast.walk(literal) if isinstance(node, ast.FormattedValue)]
        names = {node.id for hole in holes for node in ast.walk(hole) if isinstance(node, ast.Name)}
        is_set = any(isinstance(hole.value, ast.Tuple) for hole in holes)
        return not is_set and bool(names & self.names) and names <= self.names.union(dir(builtins))


def prose(lecture: Lecture) -> Iterator[ProseText]:
    """Every text of `lecture` that is prose, in the order of its statements."""
    sources, program = [SourceText(file.text) for file in lecture.files], Program(lecture.names)

    @functools.cache
    def code_numbers(function: ast.AST) -> frozenset[float]:
        """The numbers in its code, and in what it names at the top of any file; not of sections."""
        if isinstance(function, ast.Module):
            return frozenset()
        file = lecture.functions[lecture.function_of[function]].file
        nodes = [function]
        for binding in (program.binding(file, name) for name in scopes.reads(function)):
            index = lecture.function_of.get(binding.node) if binding else None
            is_section = index is not None and lecture.functions[index].kind in ("main", "part", "section")
            nodes += [binding.node] if binding and not is_section else []
        constants = (node.value for top in nodes for node in ast.walk(top) if isinstance(node, ast.Constant))
        numbers = (value for value in constants if isinstance(value, int | float) and type(value) is not bool)
        return frozenset(float(min(abs(number), sys.float_info.max)) for number in numbers)

    margins = [frozenset().union(*map(scopes.sets, file.tree.body)) for file in lecture.files]
    for statement, number in lecture.statement_of.items():
        spec = lecture.statements[number]
        file, node = lecture.file_of_statement(number), lecture.node_of[spec.function]
        for call in calls(statement) if spec.kind == "piece" else ():
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            word = WORDS.get(name, UNKNOWN)
            local = scopes.local_names(node) if isinstance(node, FunctionNode) else frozenset[str]()
            names = margins[file.number] | local
            for argument in (argument for place, argument in arguments(call) if place in word.fields):
                finder = _LiteralFinder(node, sources[file.number])
                for passage in (finder.passage_of(argument), *finder.others):
                    kind: Literal["words", "exercise"] = "exercise" if name == "question" else "words"
                    yield ProseText(file, kind, passage.dedent(), code_numbers(node), names)
        if spec.kind == "doc" and lecture.functions[spec.function].kind in ("part", "section"):
            assert isinstance(statement, ast.Expr)
            assert isinstance(statement.value, ast.Constant)
            docstring = sources[file.number].passage(statement.value).dedent()
            end = len(docstring.text.partition("\n")[0])
            heading = Passage(docstring.text[:end], docstring.places[:end])
            yield ProseText(file, "heading", heading, code_numbers(node))


class _LiteralFinder:
    """Follows an expression to the literals that it is put together from."""

    def __init__(self, function: ast.AST, source: SourceText) -> None:
        self.function = function
        self.source = source
        self.others: list[Passage] = []
        self.followed: set[str] = set()

    def passage_of(self, node: ast.expr) -> Passage:
        """`node` as one passage, with a hole for what is no literal; what fills the hole goes to `others`."""
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                return self.source.passage(node)
            case ast.BinOp(left, ast.Add(), right):
                return self.passage_of(left) + self.passage_of(right)
            case ast.BinOp(left, ast.Mod(), _):
                return _fill_fields(self.passage_of(left), r"%(\(\w+\))?[-+ #0]*[\d*]*(\.[\d*]+)?[a-zA-Z%]")
            case ast.Call(ast.Attribute(literal, "format")):
                before = len(self.others)
                made = _fill_fields(self.passage_of(literal), _FIELD)
                self.others[before:] = [_fill_fields(other, _FIELD) for other in self.others[before:]]
                return made
            case ast.Call(ast.Attribute(literal, "join"), [given]):
                self.collect_literals(given)
                self.collect_literals(literal)
            case ast.Call(ast.Attribute(ast.Constant(value=str()) | ast.JoinedStr() as literal)):
                return _fill_fields(
                    self.passage_of(literal), r"[{}]"
                )  # "...".replace(…), which may fill them
            case ast.Call(ast.Name("dedent" | "cleandoc"), [given]):
                return self.passage_of(given)
            case _:
                self.collect_literals(node)
        return self.source.hole(node)

    def collect_literals(self, node: ast.expr) -> None:
        """Literals that may become part of the text: of the branches, items and names in `node`."""
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
                self.others.append(self.passage_of(node))
            case ast.BinOp(left, _, right):  # "-" * 40
                self.collect_literals(left)
                self.collect_literals(right)
            case ast.IfExp(_, yes, no):
                self.collect_literals(yes)
                self.collect_literals(no)
            case ast.BoolOp(_, items) | ast.List(items) | ast.Tuple(items):
                for item in items:
                    self.collect_literals(item)
            case ast.GeneratorExp(item) | ast.ListComp(item) | ast.Starred(item) | ast.NamedExpr(_, item):
                self.collect_literals(item)
            case ast.Name(name) if name not in self.followed:
                self.followed.add(name)
                for value in self.assigned_values(name):
                    self.collect_literals(value)

    def assigned_values(self, name: str) -> Iterator[ast.expr]:
        """What `name` is assigned, and appended, in the function."""
        for node in ast.walk(self.function):
            match node:
                case ast.Assign(targets, value) if any(
                    isinstance(t, ast.Name) and t.id == name for t in targets
                ):
                    yield value
                case ast.AnnAssign(ast.Name(target), value=ast.expr() as value) if target == name:
                    yield value
                case ast.AugAssign(ast.Name(target), _, value) if target == name:
                    yield value
                case ast.Call(ast.Attribute(ast.Name(target), "append"), [value]) if target == name:
                    yield value


_FIELD = r"\{[^{}]*\}"  # what `format` fills


def _fill_fields(passage: Passage, fields: str) -> Passage:
    """A passage with a hole over every field that `%` or `format` fills."""
    return Passage(re.sub(fields, lambda match: HOLE * len(match[0]), passage.text), passage.places)
