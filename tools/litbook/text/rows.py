"""Statements of a file -> the lines of a cell, without directives, and where in them values are shown.

It knows the text and its directives; not which cells there are, nor how a notebook shows a value.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from litbook.text.lecture import File, Lecture
from litbook.text.plan import SECTIONS, span
from litbook.text.tree import Definition, FunctionNode, mark_of

_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True)
class Show:
    """An expression that the lecture shows: `kind` is "inspect", "measure", or "answer" of a question."""

    kind: str
    text: str
    unit: str | None
    line: int


@dataclass(frozen=True)
class Row:
    """A line of a cell. With a `show`, the renderer writes the call behind the spaces of `text`, or none."""

    text: str
    show: Show | None = None
    inline: bool = False  # the call follows the line above after a semicolon


@dataclass(frozen=True)
class Code:
    """One statement, or several that share lines, of the function `function`; a module is one too.

    `end` is where a semicolon keeps a notebook from showing the value of the last expression:
    row and column, None where there is nothing to keep.
    """

    function: int
    first: int
    last: int
    rows: tuple[Row, ...]
    hidden: bool = False
    device: str | None = None
    end: tuple[int, int] | None = None
    spaced: bool = False  # an empty line stands above
    role: str = ""  # "definition" or "call": its cell holds nothing else


Placed = dict[tuple[int, str], list[Row]]  # by line: what is written "before" it, "on" it, and "after" it


class Rows:
    """Writes statements of one file of a lecture."""

    def __init__(self, lecture: Lecture, file: File) -> None:
        self.lecture, self.lines = lecture, file.lines
        self.cuts = dict(reversed(file.cuts))
        self.inside = _lines_in_strings(file.text)

    def code(self, group: Sequence[ast.stmt], function: int, dedent: int, device: str | None) -> Code:
        """Statements that share lines, with the comment right above them, `dedent` columns to the left.

        What they show comes with those of a section: `function` owns them.
        """
        first, last = span(group)
        top = self._comment_above(first)
        without = _lines_of_marks(group)
        placed: Placed = defaultdict(list)
        for statement in group if self.lecture.functions[function].kind in SECTIONS else ():
            for anchor in _showing(statement, self.lecture):
                if shows := self._shows(anchor):
                    self._place(anchor, shows, placed)
        rows: list[Row] = []
        for line in range(top, last + 1):
            if line not in without:
                rows += [_dedented(row, dedent) for row in placed.get((line, "before"), ())]
                rows.append(Row(self._line(line, dedent)))
                rows += [replace(row, inline=True) for row in placed.get((line, "on"), ())]
                rows += [_dedented(row, dedent) for row in placed.get((line, "after"), ())]
        hidden = all(it in self.lecture.hidden for it in group)
        spaced = top > 1 and not self.lines[top - 2].strip()
        end = self._end(group[-1], rows, dedent)
        return Code(function, first, last, tuple(rows), hidden, device, end, spaced)

    def segment(self, node: ast.expr) -> str:
        """The author's own text of an expression. `ast.get_source_segment` reads the whole file each time."""
        last, column = node.end_lineno or node.lineno, node.end_col_offset
        lines = [line.encode() for line in self.lines[node.lineno - 1 : last]]
        lines[-1] = lines[-1][:column]
        lines[0] = lines[0][node.col_offset :]
        return b"\n".join(lines).decode()

    def _line(self, number: int, dedent: int) -> str:
        """A line without its directives; of one that begins inside a string all spaces stay."""
        line = self.lines[number - 1]
        if number in self.cuts:
            line = line[: self.cuts[number]].rstrip()
        return line if number in self.inside else line[min(dedent, len(self._indent(number))) :]

    def _indent(self, number: int) -> str:
        text = self.lines[number - 1]
        return text[: len(text) - len(text.lstrip())]

    def _comment_above(self, first: int) -> int:
        """The first line of the comment that stands right above a statement, if any."""
        top = first
        while top > 1 and self.lines[top - 2].strip().startswith("#") and top - 1 not in self.inside:
            if self.lines[top - 2].strip().startswith("# ---"):  # the lecture's own headings
                break
            top -= 1
        return top

    def _end(self, node: ast.stmt, rows: Sequence[Row], dedent: int) -> tuple[int, int] | None:
        """Where the value of a last expression would be shown: its row, and the column behind it."""
        if not isinstance(node, ast.Expr) or node.end_lineno is None or rows[-1].show is not None:
            return None
        column = len(self._before(node.end_lineno, node.end_col_offset or 0))
        lost = 0 if node.end_lineno in self.inside else min(dedent, len(self._indent(node.end_lineno)))
        return len(rows) - 1, column - lost

    def _before(self, line: int, column: int) -> str:
        """The text of a line before a column of the tree, which counts bytes."""
        return self.lines[line - 1].encode()[:column].decode()

    # -- what is shown

    def _shows(self, anchor: ast.AST) -> list[Show]:
        watches = (self.lecture.watches[i] for i in self.lecture.watches_of.get(anchor, ()))
        return [Show(it.kind, it.text, it.unit, it.line) for it in watches if it.kind != "clear"]

    def _place(self, anchor: ast.AST, shows: Sequence[Show], placed: Placed) -> None:
        """After a simple statement; at the start of a block; before what leaves the block."""
        if isinstance(anchor, ast.Match):
            for case in anchor.cases:
                self._place(case, shows, placed)
            return
        body: list[ast.stmt] = getattr(anchor, "body", None) or []
        if body and not isinstance(anchor, ast.ClassDef) and anchor not in self.lecture.stepover:
            line = span(body[:1])[0]
            placed[line, "before"] += [Row(self._indent(line), it) for it in shows]
            return
        assert isinstance(anchor, ast.stmt)
        indent = self._indent(anchor.lineno)
        if isinstance(anchor, _LEAVES):
            placed[anchor.lineno, "before"] += [Row(indent, it) for it in shows]
        elif self._begins_its_line(anchor):
            placed[anchor.end_lineno or anchor.lineno, "after"] += [Row(indent, it) for it in shows]
        else:
            placed[anchor.end_lineno or anchor.lineno, "on"] += [Row("", it) for it in shows]

    def _begins_its_line(self, anchor: ast.stmt) -> bool:
        """Whether at most statements of the same block stand before `anchor` on its line: `a = 1; b = 2`."""
        try:
            ast.parse(self._before(anchor.lineno, anchor.col_offset).strip())
        except SyntaxError:
            return False  # `if x:` ...
        return True


def _dedented(row: Row, dedent: int) -> Row:
    return replace(row, text=row.text[dedent:])


def _showing(node: ast.AST, lecture: Lecture) -> Iterator[ast.AST]:
    """The statements and parts of `node` that may show something; nothing that is stepped over does.

    For a section that stays a function `node` is its definition: its body shows, its signature does not.
    """
    if not isinstance(node, FunctionNode):
        yield node
        if isinstance(node, ast.ClassDef) or node in lecture.stepover:
            return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(
            child, FunctionNode
        ):
            yield from _showing(child, lecture)


def _lines_of_marks(group: Sequence[ast.stmt]) -> set[int]:
    return {
        line
        for node in group if isinstance(node, Definition)
        for it in node.decorator_list if mark_of(it)
        for line in range(it.lineno, (it.end_lineno or it.lineno) + 1)
    }  # fmt: skip


def _lines_in_strings(text: str) -> set[int]:
    """The lines that begin inside a string: their spaces are part of it."""
    found: set[int] = set()
    opened: list[int] = []
    start = getattr(tokenize, "FSTRING_START", None)
    end = getattr(tokenize, "FSTRING_END", None)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            found |= set(range(token.start[0] + 1, token.end[0] + 1))
        elif start is not None and token.type == start:
            opened.append(token.start[0])
        elif end is not None and token.type == end:
            found |= set(range(opened.pop() + 1, token.end[0] + 1))
    return found
