"""What a hole of a word's own f-string puts into its text is marked on its way to readers.

`mark_holes` writes an instrumented word's call so that its f-strings put two noncharacters around what they
compute. The word takes them out again before it looks at its text (`without_marks`), and the record keeps the
text with one `HOLE` in their place (`with_holes`): every other character of it somebody has typed, or has
come by a detour. Only literals of the call itself are marked, and what no marks can change is between them
and the word: `+`, a choice, `strip`, `join`, `dedent`, a `replace` of blanks.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import TypeVar

from litbook.lecture.author_words import CLOSES, OPENS, UNKNOWN, WORDS
from litbook.lecture.sections import words_in
from litbook.python.file import File
from litbook.python.nodes import dotted, is_literal
from litbook.python.strings import HOLE

Tree = TypeVar("Tree", bound=ast.AST)

_MARKED = re.compile(f"{OPENS}[^{OPENS}{CLOSES}]*{CLOSES}")
_MARKS = str.maketrans("", "", OPENS + CLOSES)
_LEAST = 4  # characters of a text that somebody typed: "2 GB"
_NUMBERED = re.compile(r"\d[\d.,]*[ -]?[a-z%×€$]|[a-z€$×≈:][ :]*\d|\d[/:]\d")
_BLIND = ("strip", "lstrip", "rstrip", "join")  # methods of a text that look at no character in the middle


def mark_holes(call: ast.Call, words: Mapping[str, str]) -> ast.Call:
    """A call of one of the `words`, or a copy of it in which what its f-strings compute is marked."""
    fields = WORDS.get(words[dotted(call.func)], UNKNOWN).fields
    args = [(_mark(value) if place in fields else None) or value for place, value in enumerate(call.args)]
    keywords = list[ast.keyword]()
    for keyword in call.keywords:
        marked = _mark(keyword.value) if keyword.arg in fields else None
        keywords.append(keyword if marked is None else ast.keyword(keyword.arg, marked))
    if args == call.args and keywords == call.keywords:
        return call
    new = copy.copy(call)
    new.args, new.keywords = args, keywords
    for before, after in zip(call.keywords, keywords, strict=True):
        if after is not before:
            ast.copy_location(after, before)
    return new


def rewrite(node: Tree, change: Callable[[ast.expr], ast.expr | None]) -> Tree:
    """The tree with what `change` gives in the place of expressions: a copy along the way to these alone."""
    new = node
    for name in node._fields:
        value = getattr(node, name, None)
        several = value if isinstance(value, list) else [value]
        if not any(isinstance(one, ast.AST) for one in several):
            continue
        changed = [
            (isinstance(one, ast.expr) and change(one)) or rewrite(one, change)
            if isinstance(one, ast.AST)
            else one
            for one in several
        ]
        if any(one is not before for one, before in zip(changed, several, strict=True)):
            new = copy.copy(node) if new is node else new
            setattr(new, name, changed if isinstance(value, list) else changed[0])
    return new


def _mark(node: ast.expr) -> ast.expr | None:
    """An expression with its holes marked; None where it has none."""
    match node:
        case ast.JoinedStr(values):
            marked = [part for value in values for part in _marked(value)]
            if all(part is value for part, value in zip(marked, values, strict=False)):
                return None
            new = copy.copy(node)
            new.values = marked
            return new
        case ast.Call(ast.Attribute(literal, "replace"), [*given]) if all(map(_is_blank, given)):
            whole = {id(literal)}  # it is dedented
        case _:
            whole = {*map(id, _parts(node))}
    if not whole:
        return None
    changed = rewrite(node, lambda part: (_mark(part) or part) if id(part) in whole else None)
    return None if changed is node else changed


def _marked(value: ast.expr) -> list[ast.expr]:
    """A part of an f-string, between marks where it computes something."""
    if not isinstance(value, ast.FormattedValue) or is_literal(value.value):
        return [value]
    if isinstance(value.value, ast.JoinedStr) and value.conversion == -1 and not value.format_spec:
        inner = _mark(value.value)
        if inner is None:
            return [value]
        new = copy.copy(value)
        new.value = inner
        return [new]
    begin, end = (ast.copy_location(ast.Constant(mark), value) for mark in (OPENS, CLOSES))
    return [begin, value, end]


def _parts(node: ast.expr) -> list[ast.expr | None]:
    """The expressions whose texts come whole into that of `node`."""
    match node:
        case ast.BinOp(left, ast.Add(), right) | ast.IfExp(_, left, right):
            return [left, right]
        case ast.BoolOp(_, several) | ast.Tuple(several) | ast.List(several) | ast.Dict(several):
            return [*several]
        case ast.GeneratorExp(item) | ast.ListComp(item) | ast.Starred(item):
            return [item]
        case ast.Call(ast.Attribute(literal, name), given) if name in _BLIND:
            return [literal, *given]
        case ast.Call(ast.Name("dedent" | "cleandoc"), [given]):
            return [given]
    return []


def _is_blank(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and not node.value.strip()


def without_marks(text: str) -> str:
    """The text as its author meant it."""
    return text if text.isascii() else text.translate(_MARKS)


def with_holes(text: str, typed: Iterable[str] = ()) -> str:
    """The text with a `HOLE` for all that is marked in it, but for what holds one of the texts `typed`."""
    if text.isascii():
        return text
    return _MARKED.sub(lambda hole: _typed_in(hole[0], typed) or HOLE, text).translate(_MARKS)


def _typed_in(hole: str, typed: Iterable[str]) -> str:
    """What fills a hole, where somebody has typed it elsewhere, or part of it; else ""."""
    said = _words(hole.translate(_MARKS))
    if said in typed:
        return hole
    if len(said) < _LEAST or not _NUMBERED.search(said):
        return ""
    held = (text for text in typed if len(text) >= _LEAST and _NUMBERED.search(text))
    part_of = (
        f" {text} " in f" {said} " or f" {said} " in f" {text} " or text.startswith(said) for text in held
    )
    return hole if any(part_of) else ""


def _words(text: str) -> str:
    """A text as it is compared: in small letters, with blanks for what only joins or marks its words."""
    return " ".join(re.sub(r"[*_\u2010\u2011-]+", " ", text.casefold()).split())


def typed_texts(files: Iterable[File], elsewhere: Set[ast.AST]) -> frozenset[str]:
    """The texts with a number that stand in files as values, for readers alone: "70 billion", "512 GPUs".

    Not what a word is given, which is judged where it stands, nor captions, docstrings and what looks one up;
    nothing of the functions `elsewhere`; and nothing that other code reads, which is data: a prompt, a text
    that is expected, what is parsed.
    """
    texts = set[str]()
    for file in files:
        finder = _TypedTexts(words_in(file.tree), elsewhere)
        with contextlib.suppress(RecursionError):  # an expression of any depth holds no such text
            finder.visit(file.tree)
        texts |= finder.texts
        for name, values in finder.given.items():
            texts.update(*map(_texts_in, values if name not in finder.read else ()))
    return frozenset(map(_words, texts))


class _TypedTexts(ast.NodeVisitor):
    """Of a file the `texts` that are values; those that names are `given`; and the names that code reads."""

    def __init__(self, words: Mapping[str, str], elsewhere: Set[ast.AST]) -> None:
        self.words, self.elsewhere = words, elsewhere
        self.texts, self.read = set[str](), set[str]()
        self.given = defaultdict[str, list[ast.expr]](list)

    def visit(self, node: ast.AST) -> None:
        """Another section's texts are none of this one's."""
        if node not in self.elsewhere:
            super().visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """A word's holes hold values, and what a method is given is one; what a function is given is data."""
        if dotted(node.func) in self.words:
            for hole in ast.walk(node):
                if isinstance(hole, ast.FormattedValue):
                    self.texts.update(_texts_in(hole.value))
        elif isinstance(node.func, ast.Attribute):
            self.generic_visit(node)
        else:
            for argument in node.args:
                if not isinstance(argument, ast.Constant):
                    self.visit(argument)

    def visit_Expr(self, node: ast.Expr) -> None:
        """A docstring is judged elsewhere; a helper that is called alone perhaps says what it is given."""
        match node.value:
            case ast.Constant():
                return
            case ast.Call(func=func, args=args) if dotted(func) not in self.words:
                self.texts.update(*map(_texts_in, args))
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """What one name is given; the names in that are read."""
        match node.targets:
            case [ast.Name(name)]:
                self.given[name].append(node.value)
                self._read_in(node.value)
            case _:
                self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """What a claim expects is data."""
        self._read_in(node.test)

    def visit_Compare(self, node: ast.Compare) -> None:
        """So is what is compared."""
        self._read_in(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """What only looks something up is no value."""
        self.visit(node.value)

    def visit_Dict(self, node: ast.Dict) -> None:
        """Nor are keys, which are names."""
        for value in node.values:
            self.visit(value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Of an f-string of other code the holes."""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A text."""
        self.texts.update(_texts_in(node))

    def visit_Name(self, node: ast.Name) -> None:
        """A name that is read."""
        self._read_in(node)

    def _read_in(self, node: ast.AST) -> None:
        inner = (it for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load))
        self.read.update(it.id for it in inner)


def _texts_in(node: ast.AST) -> Iterator[str]:
    """The texts in an expression that hold a number; without its keys and formats."""
    todo: list[ast.AST | None] = [node]
    for inner in todo:  # which grows
        match inner:
            case ast.Constant(str(text)) if _NUMBERED.search(text.casefold()):
                yield text
            case ast.FormattedValue(value=value) | ast.Subscript(value=value):
                todo.append(value)
            case ast.Dict(values=values):
                todo += values
            case ast.AST():
                todo += ast.iter_child_nodes(inner)
