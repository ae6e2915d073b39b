"""What a hole of a word's own f-string puts into its text is marked on its way to readers.

`mark_holes` changes an instrumented word's call so that its f-strings put two noncharacters around what they
compute. The word takes them out again before it looks at its text (`without_marks`), and the record keeps the
text with one `HOLE` in their place (`with_holes`): every other character of it somebody has typed, or has
come by a detour. Only literals of the call itself are marked, and what no marks can change is between them
and the word: `+`, a choice, `strip`, `join`, `dedent`, a `replace` of blanks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from litbook.lecture.author_words import CLOSES, OPENS, UNKNOWN, WORDS, arguments
from litbook.python.nodes import dotted, is_literal
from litbook.python.strings import HOLE

_MARKED = re.compile(f"{OPENS}[^{OPENS}{CLOSES}]*{CLOSES}")
_MARKS = str.maketrans("", "", OPENS + CLOSES)
_BLIND = ("strip", "lstrip", "rstrip", "join")  # methods of a text that look at no character in the middle


def mark_holes(call: ast.Call, words: Mapping[str, str]) -> None:
    """Change a call of one of the `words` so that what its f-strings compute is marked."""
    fields = WORDS.get(words[dotted(call.func)], UNKNOWN).fields
    for place, argument in arguments(call):
        if place in fields:
            _mark(argument)


def _mark(node: ast.expr | None) -> None:
    match node:
        case ast.JoinedStr(values):
            node.values = [part for value in values for part in _marked(value)]
        case ast.Call(ast.Attribute(literal, "replace"), [*given]) if all(map(_is_blank, given)):
            _mark(literal)  # it is dedented
        case _:
            for part in _parts(node):
                _mark(part)


def _marked(value: ast.expr) -> list[ast.expr]:
    """A part of an f-string, between marks where it computes something."""
    if not isinstance(value, ast.FormattedValue) or is_literal(value.value):
        return [value]
    if isinstance(value.value, ast.JoinedStr) and value.conversion == -1 and not value.format_spec:
        _mark(value.value)
        return [value]
    begin, end = (ast.copy_location(ast.Constant(mark), value) for mark in (OPENS, CLOSES))
    return [begin, value, end]


def _parts(node: ast.expr | None) -> list[ast.expr | None]:
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


def with_holes(text: str) -> str:
    """The text with a `HOLE` for all that is marked in it."""
    return text if text.isascii() else _MARKED.sub(HOLE, text).translate(_MARKS)
