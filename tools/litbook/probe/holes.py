"""What a hole of a word's own f-string puts into its text is marked on its way to readers.

`mark_holes` writes an instrumented word's call so that its f-strings put two noncharacters around what they
compute. The word takes them out again before it looks at its text (`without_marks`), and the record keeps the
text with one `HOLE` in their place (`with_holes`): every other character of it somebody has typed, or has
come by a detour. Only literals of the call itself are marked, and what no marks can change is between them
and the word: `+`, a choice, `strip`, `join`, `dedent`, a `replace` of blanks.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TypeVar

from litbook.lecture.author_words import CLOSES, OPENS, UNKNOWN, WORDS
from litbook.python.file import File
from litbook.python.nodes import dotted, is_literal
from litbook.python.strings import HOLE

Tree = TypeVar("Tree", bound=ast.AST)

_MARKED = re.compile(f"{OPENS}[^{OPENS}{CLOSES}]*{CLOSES}")
_MARKS = str.maketrans("", "", OPENS + CLOSES)
_LEAST = 4  # characters of a text that somebody typed: "2 GB"
_NUMBERED = re.compile(r"\d[\d.,]*[ -]?[a-z%]")
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
    said = hole.translate(_MARKS).strip().casefold()
    if len(said) < _LEAST or not _NUMBERED.search(said):
        return ""
    return hole if any(text in said or said in text for text in typed) else ""


def typed_texts(
    files: Iterable[File], words: Callable[[ast.Module], Mapping[str, str]], elsewhere: Set[ast.AST]
) -> frozenset[str]:
    """The texts with a number and a letter that stand in files as values: "70 billion", "512 GPUs".

    Not what a word is given, which is judged where it stands, nor captions, docstrings and what looks one up;
    and nothing of the functions `elsewhere`.
    """
    texts = set[str]()
    for file in files:
        names, todo = words(file.tree), list[ast.AST]([file.tree])
        for node in todo:  # which grows
            match node:
                case _ if node in elsewhere:
                    pass
                case ast.Call(func=func) if dotted(func) in names:
                    holes = [one for one in ast.walk(node) if isinstance(one, ast.FormattedValue)]
                    todo += [hole.value for hole in holes if not isinstance(hole.value, ast.Constant)]
                case ast.Assert(test=looked_at) | ast.Subscript(value=looked_at):
                    todo.append(looked_at)
                case ast.Constant(str(text)) if _NUMBERED.search(text.casefold()):
                    texts.add(text.strip().casefold())
                case ast.Dict(values=shown):  # whose keys are names, and look something up
                    todo += shown
                case ast.Expr(ast.Constant()):
                    pass
                case _:
                    todo += ast.iter_child_nodes(node)
    return frozenset(text for text in texts if len(text) >= _LEAST)
