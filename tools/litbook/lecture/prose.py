"""A lecture's text -> the texts in it that are prose, each with its place and what its section's code holds.

Prose is what a reader reads as the book's own words: notes, both texts of a misbelief, questions, hints and
wrong answers, captions and alternative texts of figures and images, the text of a link, the lecture's title,
the headings of sections and of the helpers that a page shows. Nothing runs here, and what Markdown is, is not
known.

What a text says that is put together elsewhere only a run can tell: `said` gives what the record has of it.
The caption of a claim is the claim in words, and its section knows the numbers: `captions` gives both.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import inspect
import itertools
import operator
import re
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from litbook.lecture.author_words import UNKNOWN, WORDS, arguments, calls
from litbook.lecture.model import Lecture, Watch
from litbook.lecture.program import Program
from litbook.lecture.sections import words_in
from litbook.python import scopes
from litbook.python.file import File
from litbook.python.nodes import DefinitionNode, FunctionNode, children, dotted, has_docstring, is_literal
from litbook.python.strings import HOLE, Passage, SourceText
from litbook.record.model import Record, Section


@dataclass(frozen=True)
class ProseText:
    """One text, a `HOLE` where something is computed; its section's code holds the numbers `held`."""

    file: File
    kind: Literal["words", "heading", "exercise", "wrong", "label", "caption", "answer"]
    passage: Passage
    held: frozenset[float]
    factors: frozenset[float] = frozenset()  # of these what its code multiplies or compares with
    names: frozenset[str] = frozenset()  # that a hole could name here
    word: tuple[int, int] = (0, 0)  # line and column of the call that it is given to
    made: bool = False  # what a run has put together: its places are that of the call
    whole: bool = False  # what a run puts together there is of these texts alone, and of holes

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


class _Code:
    """What code holds that stands around a text: numbers and names."""

    def __init__(self, lecture: Lecture) -> None:
        self.lecture, self.program = lecture, Program(lecture.names)
        self.numbers = functools.cache(self._numbers)
        self.factors = functools.cache(self._factors)
        self.margins = [frozenset().union(*map(scopes.sets, file.tree.body)) for file in lecture.files]

    def _numbers(self, function: ast.AST) -> frozenset[float]:
        return _numbers_in(self.nodes(function))

    def _factors(self, function: ast.AST) -> frozenset[float]:
        """The numbers that its code multiplies with or divides by, or asserts something of, by name, too."""
        nodes, more = list[ast.AST](), set[float]()
        for node in [] if isinstance(function, ast.Module) else ast.walk(function):
            match node:
                case ast.BinOp(left, ast.Mult() | ast.Div() | ast.FloorDiv() | ast.Pow(), right):
                    nodes += [part for part in (left, right) if isinstance(part, ast.Constant | ast.Name)]
                case ast.BinOp(left, ast.Add(), right) if ast.dump(left) == ast.dump(right):
                    more.add(2)
                case ast.BinOp(_, ast.LShift() | ast.RShift(), ast.Constant(int(places))) if 0 < places < 64:
                    more |= {places, 2**places}
                case ast.Call(ast.Attribute(attr="chunk" | "split" | "array_split" | "tensor_split"), given):
                    nodes += given
                case ast.Assert(test=test):
                    nodes.append(test)
        return _numbers_in([*nodes, *self._constants(function, nodes)]) | more

    def _constants(self, function: ast.AST, nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
        """What names in nodes of a function are given at the top of a file, where that is a number."""
        named = {inner.id for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        if named:
            file = self.lecture.functions[self.lecture.function_of[function]].file
            for binding in (self.program.binding(file, name) for name in named):
                match binding and binding.node:
                    case (
                        ast.Assign(value=ast.Constant() as value)
                        | ast.AnnAssign(value=ast.Constant() as value)
                    ):
                        yield value

    def nodes(self, function: ast.AST) -> list[ast.AST]:
        """A function, and what it names at the top of any file; no sections."""
        lecture = self.lecture
        if isinstance(function, ast.Module):
            return []
        file = lecture.functions[lecture.function_of[function]].file
        nodes = [function]
        for binding in (self.program.binding(file, name) for name in scopes.reads(function)):
            index = lecture.function_of.get(binding.node) if binding else None
            is_section = index is not None and lecture.functions[index].kind in ("main", "part", "section")
            nodes += [binding.node] if binding and not is_section else []
        return nodes

    def names(self, file: File, function: ast.AST) -> frozenset[str]:
        """The names that a hole could have there."""
        local = scopes.local_names(function) if isinstance(function, FunctionNode) else frozenset[str]()
        return self.margins[file.number] | local


def _numbers_in(nodes: Iterable[ast.AST]) -> frozenset[float]:
    constants = (node.value for top in nodes for node in ast.walk(top) if isinstance(node, ast.Constant))
    numbers = (value for value in constants if isinstance(value, int | float) and type(value) is not bool)
    return frozenset(float(min(abs(number), sys.float_info.max)) for number in numbers)


_FOLDED = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
           ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow}  # fmt: skip
_IN_TEXT = re.compile(r"\d+(?:[,_]\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
_NO_VALUES = ("storage",)  # fields of a snapshot that number what it has


def captions(lecture: Lecture, record: Record) -> Iterator[ProseText]:
    """The captions of the claims that ran; what is put together by more than an f-string, as the run had it.

    Of each are held the numbers of its section's code and of the texts in it that are no caption's, and all
    values that the run has of the section.
    """
    sources, code = [SourceText(file.text) for file in lecture.files], _Code(lecture)
    held = dict[int, frozenset[float]]()
    for claim in lecture.claims:
        function, caption = lecture.statements[claim.statement].function, getattr(claim.node, "msg", None)
        section = record.by_key.get(lecture.key(function))
        if caption is None or section is None or not section.has_run:
            continue
        node, file = lecture.node_of[function], lecture.file_of_function(function)
        said = {one.line: one.caption for one in section.claims}
        if function not in held:
            known = _written(code.nodes(node)), _computed(section)
            texts = "\n".join(said.values())
            both = (one for one in itertools.chain(*known) if not isinstance(one, str) or one not in texts)
            numbers = (_numbers_of(one) if isinstance(one, str) else (one,) for one in both)
            held[function] = frozenset(itertools.chain(*numbers))
        finder = _LiteralFinder(node, sources[file.number], file.tree)
        for passage in (finder.passage_of(caption), *finder.others):
            yield ProseText(file, "caption", passage.dedent(), held[function])
        given = [*finder.assigned_values(caption.id)] if isinstance(caption, ast.Name) else [caption]
        if not given or not all(map(_is_plain, given)):
            text = said.get(lecture.statements[claim.statement].first - section.first, "")
            places = finder.source.hole(caption).places * len(text)
            yield ProseText(file, "caption", Passage(text, places), held[function])


def _is_plain(node: ast.expr) -> bool:
    """Whether all that a text shows stands in it, or in holes of its f-strings."""
    match node:
        case ast.BinOp(left, ast.Add(), right):
            return _is_plain(left) and _is_plain(right)
    return isinstance(node, ast.Constant | ast.JoinedStr)


def _written(nodes: Iterable[ast.AST]) -> Iterator[float | str]:
    """The numbers and texts in code, and what it says of numbers alone: 19 of `2 * 10 - 1`."""
    todo, values = [*nodes], dict[ast.AST, float]()
    for node in todo:
        todo += (child for child in ast.iter_child_nodes(node) if child is not getattr(node, "msg", None))
    for node in reversed(todo):  # what an expression is made of before it
        match node:
            case ast.Constant(value=int() | float() as value) if abs(value) < sys.float_info.max:
                values[node] = float(value)
            case ast.Constant(value=str() as text) | ast.Name(text) | ast.Attribute(attr=text):
                yield text  # of NAME_3_70B, too
            case ast.BinOp(left, op, right) if type(op) in _FOLDED and left in values and right in values:
                with contextlib.suppress(ArithmeticError, TypeError):  # one too large, or complex
                    values[node] = abs(_FOLDED[type(op)](values[left], values[right]))
    yield from values.values()


def _computed(section: Section) -> Iterator[float | str]:
    """The numbers and texts among the values that a run has of a section."""
    todo: list[object] = [msgspec.to_builtins((section.snapshots, section.series, section.loops))]
    for value in todo:
        match value:
            case dict():
                todo += (inner for name, inner in value.items() if name not in _NO_VALUES)
            case list() | tuple():
                todo += value
            case str():
                yield value.strip("'\"")
            case int() | float():
                yield float(min(abs(value), sys.float_info.max))


def _numbers_of(text: str) -> Iterator[float]:
    return (float(re.sub("[,_]", "", match[0])) for match in _IN_TEXT.finditer(text))


def prose(lecture: Lecture, shown: Container[str] = ()) -> Iterator[ProseText]:
    """Every text of `lecture` that stands in it as prose, in the order of its statements.

    `shown` are the keys of the helpers that a page shows.
    """
    sources, code = [SourceText(file.text) for file in lecture.files], _Code(lecture)
    for function, node in lecture.node_of.items():  # a section without a docstring has its name for a heading
        of = lecture.functions[function]
        if of.kind in ("part", "section") and isinstance(node, FunctionNode) and not has_docstring(node):
            column = (
                lecture.file_of_function(function).lines[node.lineno - 1].index(of.name, node.col_offset) + 1
            )
            places = (*((node.lineno, column + i) for i in range(len(of.heading))),)
            named = Passage(of.heading, places)
            yield ProseText(lecture.file_of_function(function), "heading", named, code.numbers(node))
    for statement, number in lecture.statement_of.items():
        spec = lecture.statements[number]
        file, node = lecture.file_of_statement(number), lecture.node_of[spec.function]
        for call, name in _words(statement, file, node, alone=spec.kind == "piece"):
            fields, names = WORDS.get(name, UNKNOWN).fields, code.names(file, node)
            if name == "question" and (answer := _typed_answer(call)):
                typed, at = sources[file.number].hole(answer).places, (call.lineno, call.col_offset)
                text = str(answer.value) if isinstance(answer, ast.Constant) else ast.unparse(answer)
                yield ProseText(file, "answer", Passage(text, typed * len(text)), frozenset(), word=at)
            for place, argument in ((place, given) for place, given in arguments(call) if place in fields):
                finder = _LiteralFinder(node, sources[file.number], file.tree)
                for passage in (finder.passage_of(argument), *finder.others):
                    kind = _kind(str(place) if place == "wrong" else name)
                    at, whole = (call.lineno, call.col_offset), bool(finder.others) and finder.whole
                    held = code.numbers(node)
                    yield ProseText(
                        file, kind, passage.dedent(), held, code.factors(node), names, at, whole=whole
                    )
        if spec.kind != "doc" or not isinstance(statement, ast.Expr):
            continue
        of, held = lecture.functions[spec.function], frozenset[float]()
        if of.kind == "module" and file.number == 0:  # the title
            held = _numbers_in(file.tree for file in lecture.files)
        elif of.kind in ("part", "section") or lecture.key(spec.function) in shown:
            held = code.numbers(node)
        else:
            continue
        assert isinstance(statement.value, ast.Constant)
        docstring = sources[file.number].passage(statement.value).dedent()
        end = len(docstring.text.partition("\n")[0])
        yield ProseText(file, "heading", Passage(docstring.text[:end], docstring.places[:end]), held)


def _typed_answer(call: ast.Call) -> ast.expr | None:
    """The answer of a question that is a literal and that nothing computed checks."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    answer, check = given.get("answer"), given.get("check")
    typed = answer is not None and is_literal(answer) and (check is None or is_literal(check))
    return answer if typed else None


def _kind(word: str) -> Literal["words", "exercise", "wrong"]:
    """What a word's text is: of a question what an exercise gives, or what one might say wrongly."""
    return "exercise" if word == "question" else "wrong" if word == "wrong" else "words"


def _words(
    statement: ast.stmt, file: File, function: ast.AST, *, alone: bool
) -> Iterator[tuple[ast.Call, str]]:
    """The author's words that a statement calls, and which each is, in its own lines: not in its blocks.

    One that does nothing else (`alone`) may call them by names of its own.
    """
    if alone:
        for call in calls(statement):
            yield (
                call,
                call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", ""),
            )
        return
    words = words_in(file.tree)
    if not words or isinstance(statement, DefinitionNode):
        return
    local = scopes.local_names(function) if isinstance(function, FunctionNode) else frozenset[str]()
    todo = children(statement)
    for node in todo:
        if isinstance(node, ast.expr | ast.keyword | ast.withitem | ast.comprehension):
            todo += children(node)
        name = dotted(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in words and name.partition(".")[0] not in local:
            yield node, words[name]


def typed_measures(lecture: Lecture) -> Iterator[tuple[Watch, str]]:
    """The `@measure`s of names that their own line gives a number that is written there."""
    for node, watches in lecture.watches_of.items():
        match node:
            case ast.Assign(targets, value) if is_literal(value):
                names = {target.id for target in targets if isinstance(target, ast.Name)}
                for watch in (lecture.watches[number] for number in watches):
                    if watch.kind == "measure" and watch.text in names:
                        yield watch, ast.unparse(value)


def said(lecture: Lecture, record: Record, texts: Iterable[ProseText]) -> Iterator[ProseText]:
    """What words were given while the lecture ran, where that is none of the `texts` that stand in it.

    Of the labels inside figures those that are typed, at their places.
    """
    code, index = _Code(lecture), {lecture.key(i): i for i in range(len(lecture.functions))}
    known = {(text.file.number, *text.word, text.passage.text) for text in texts}
    whole = {(text.file.number, *text.word) for text in texts if text.whole}
    wordings = dict.fromkeys(said for section in record.sections for said in section.wordings)
    for wording in wordings:
        if wording.key not in index or wording.word == "label":
            continue  # the text is another by now
        spec, node = lecture.functions[index[wording.key]], lecture.node_of[index[wording.key]]
        file, line = lecture.files[spec.file], spec.first + wording.line
        call = file.number, line, wording.column
        if call in whole or (*call, wording.text) in known or not 0 < line <= len(file.lines):
            continue
        column = len(file.lines[line - 1].encode()[: wording.column].decode(errors="ignore")) + 1
        passage = Passage(wording.text, ((line, column),) * len(wording.text))
        at = line, wording.column
        held, factors = code.numbers(node), code.factors(node)
        yield ProseText(file, _kind(wording.word), passage, held, factors, word=at, made=True)
    labels = {wording.text for wording in wordings if wording.word == "label"}
    for file in lecture.files if labels else ():
        source = SourceText(file.text)
        # What only looks one up is no label: `reached["64 tokens"]`.
        slices = [node.slice for node in ast.walk(file.tree) if isinstance(node, ast.Subscript)]
        keys = {id(key) for each in slices for key in ast.walk(each)}
        alone = (it for it in ast.walk(file.tree) if isinstance(it, ast.stmt) and not hasattr(it, "body"))
        beside = {id(node): statement for statement in alone for node in ast.walk(statement)}
        for literal in ast.walk(file.tree):
            if (
                isinstance(literal, ast.Constant)
                and isinstance(literal.value, str)
                and id(literal) not in keys
            ):
                if inspect.cleandoc(literal.value) in labels:
                    held = _numbers_in([beside[id(literal)]] if id(literal) in beside else [])
                    yield ProseText(file, "label", source.passage(literal).dedent(), held)


class _LiteralFinder:
    """Follows an expression to the literals that it is put together from."""

    def __init__(self, function: ast.AST, source: SourceText, module: ast.Module) -> None:
        self.function = function
        self.module = module
        self.source = source
        self.others: list[Passage] = []
        self.followed: set[str] = set()
        self.whole = True  # whether that is all

    def passage_of(self, node: ast.expr) -> Passage:
        """`node` as one passage, with a hole for what is no literal; what fills the hole goes to `others`."""
        match node:
            case ast.Constant(value=str()):
                return self.source.passage(node)
            case ast.JoinedStr():
                return self._fill_literals(node)
            case ast.BinOp(left, ast.Add(), right):
                return self.passage_of(left) + self.passage_of(right)
            case ast.BinOp(left, ast.Mod(), _):
                self.whole = False
                return _fill_fields(self.passage_of(left), r"%(\(\w+\))?[-+ #0]*[\d*]*(\.[\d*]+)?[a-zA-Z%]")
            case ast.Call(ast.Attribute(literal, "format")):
                before, self.whole = len(self.others), False
                made = _fill_fields(self.passage_of(literal), _FIELD)
                self.others[before:] = [_fill_fields(other, _FIELD) for other in self.others[before:]]
                return made
            case ast.Call(ast.Attribute(literal, "join"), [given]):
                self.collect_literals(given)
                self.collect_literals(literal)
            case ast.Call(ast.Attribute(ast.Constant(value=str()) | ast.JoinedStr() as literal)):
                self.whole = False  # "...".replace(…), which may fill them
                return _fill_fields(self.passage_of(literal), r"[{}]")
            case ast.Call(ast.Name("dedent" | "cleandoc"), [given]):
                return self.passage_of(given)
            case _:
                self.collect_literals(node)
        return self.source.hole(node)

    def _fill_literals(self, node: ast.JoinedStr) -> Passage:
        """An f-string; a hole that is a literal is that literal."""
        passage = self.source.passage(node)
        holes = [value for value in node.values if isinstance(value, ast.FormattedValue)]
        places = [at for at, character in enumerate(passage.text) if character == HOLE]
        if len(holes) != len(places):
            return passage  # a text may hold that character
        for hole, at in reversed([*zip(holes, places, strict=True)]):
            value = self._named(hole.value)
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and value is not hole.value:
                passage = passage[:at] + self.source.passage(value) + passage[at + 1 :]
            elif is_literal(hole.value):
                typed = Passage("", ())
                for text in _typed(hole.value):
                    typed += Passage(text, passage.places[at : at + 1] * len(text))
                passage = passage[:at] + typed + passage[at + 1 :]
        return passage

    def _named(self, node: ast.expr) -> ast.expr:
        """What a name stands for that is bound once, here or at the top of the file; else the node."""
        if not isinstance(node, ast.Name):
            return node
        local = isinstance(self.function, FunctionNode) and node.id in scopes.local_names(self.function)
        tops: Iterable[ast.AST] = ast.walk(self.function) if local else self.module.body
        nodes = [inner for top in tops for inner in ([top] if local else ast.walk(top))]
        stores = [n for n in nodes if isinstance(n, ast.Name) and n.id == node.id]
        bound = [n for n in stores if not isinstance(n.ctx, ast.Load)]
        given = [n.value for n in nodes if isinstance(n, ast.Assign) and n.targets == bound]
        return given[0] if len(bound) == 1 and given else node

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
            case ast.Dict(keys):
                for key in filter(None, keys):
                    self.collect_literals(key)
            case ast.GeneratorExp(item) | ast.ListComp(item) | ast.Starred(item) | ast.NamedExpr(_, item):
                self.collect_literals(item)
            case ast.Name(name):
                values = [*self.assigned_values(name)]
                self.whole &= bool(values) and isinstance(self.function, FunctionNode)
                for value in values if name not in self.followed else ():
                    self.followed.add(name)
                    self.collect_literals(value)
            case ast.Call(ast.Attribute(ast.Constant(value=str()), "join"), [given]):
                self.collect_literals(given)
            case ast.Constant():
                pass
            case _:
                self.whole = False

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
                case ast.Call(ast.Attribute(ast.Name(target), "extend" | "insert")) if target == name:
                    yield ast.Name("")  # what is nowhere assigned


def _typed(node: ast.expr) -> list[str]:
    """What a literal comes to, or all texts in it of which it shows one or more."""
    with contextlib.suppress(ValueError, TypeError, SyntaxError):
        return [str(ast.literal_eval(node))]
    texts = (inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant))
    return [f" {text} " for text in texts if isinstance(text, str)]


_FIELD = r"\{[^{}]*\}"  # what `format` fills


def _fill_fields(passage: Passage, fields: str) -> Passage:
    """A passage with a hole over every field that `%` or `format` fills."""
    return Passage(re.sub(fields, lambda match: HOLE * len(match[0]), passage.text), passage.places)


def lines_with_links(lecture: Lecture) -> frozenset[tuple[str, int]]:
    """Path and line of each statement with a link to a work: in other tools' words that cites it.

    `link(function)` leads to code, which is no source.
    """
    defined = {function.name for function in lecture.functions}
    lines = set[tuple[str, int]]()
    for file in lecture.files:
        words = words_in(file.tree)
        for statement in (node for node in ast.walk(file.tree) if isinstance(node, ast.Expr)):
            for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
                target = call.args[0] if call.args else None
                code = isinstance(target, ast.Name) and target.id in defined
                if words.get(dotted(call.func)) == "link" and not code:
                    last = statement.end_lineno or statement.lineno
                    lines |= {(file.path, line) for line in range(statement.lineno, last + 1)}
    return frozenset(lines)
