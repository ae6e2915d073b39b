"""Statements of a file -> the lines of a cell, without directives, and where in them values are shown.

It knows the text and its directives; not which cells there are, nor how a notebook shows a value.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from litbook.lecture.model import SECTIONS, Lecture, Watch
from litbook.notebook.plan import span
from litbook.python.file import File
from litbook.python.nodes import FunctionNode, directly_in

_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True)
class CellLine:
    """A line of a cell. With a `watch`, the renderer writes the call behind the spaces of `text`, or none."""

    text: str
    watch: Watch | None = None
    inline: bool = False  # the call follows the line above after a semicolon


@dataclass(frozen=True)
class CellCode:
    """One statement, or several that share lines, of the function `function`; a module is one too."""

    function: int
    first: int
    last: int
    rows: tuple[CellLine, ...]
    hidden: bool = False
    device: str | None = None
    quiet: str = ""  # the last row where a cell ends here: no notebook shows the value of its expression
    spaced: bool = False  # an empty line stands above
    definition: bool = False  # its cell holds nothing else
    call: bool = False  # of the whole function


LinesByPlace = dict[tuple[int, str], list[CellLine]]  # by line: what is written "before" it, and "after" it


class CellLineWriter:
    """Writes statements of one file of a lecture."""

    def __init__(self, lecture: Lecture, file: File) -> None:
        self.lecture, self.lines = lecture, file.lines
        self.cuts = dict(reversed(file.cuts))
        # The lines that begin inside a string: their spaces are part of it.
        kinds = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
        tokens = (t for t in tokenize.generate_tokens(io.StringIO(file.text).readline) if t.type in kinds)
        self.inside = {line for t in tokens for line in range(t.start[0] + 1, t.end[0] + 1)}

    def code(self, group: Sequence[ast.stmt], function: int, dedent: int = 0) -> CellCode:
        """Statements that share lines, with the comment right above them, `dedent` columns to the left.

        What they show comes with those of a section: `function` owns them.
        """
        first, last = span(group)
        top = first  # with the comment right above, but for the lecture's own headings
        while top > 1 and top - 1 not in self.inside:
            above = self.lines[top - 2].strip()
            if not above.startswith("#") or above.startswith("# ---"):
                break
            top -= 1
        placed: LinesByPlace = defaultdict(list)
        for statement in group if self.lecture.functions[function].kind in SECTIONS else ():
            for anchor in _showing_nodes(statement):
                watches = [self.lecture.watches[i] for i in self.lecture.watches_of.get(anchor, ())]
                self._place(anchor, [watch for watch in watches if watch.kind != "clear"], placed, dedent)
        rows: list[CellLine] = []
        for line in range(top, last + 1):
            rows += placed[line, "before"]
            rows.append(CellLine(self._line(line, dedent)))
            rows += placed[line, "after"]
        quiet, end = "", group[-1]
        if isinstance(end, ast.Expr) and end.end_lineno == last and rows[-1].watch is None:
            quiet = self._line(last, dedent, len(self._text_before(last, end.end_col_offset or 0)))
        hidden, spaced = self.lecture.hidden.issuperset(group), top > 1 and not self.lines[top - 2].strip()
        return CellCode(function, first, last, tuple(rows), hidden=hidden, quiet=quiet, spaced=spaced)

    def _line(self, number: int, dedent: int, semicolon: int | None = None) -> str:
        """A line without its directives; of one that begins inside a string all spaces stay."""
        line = self.lines[number - 1]
        if number in self.cuts:
            line = line[: self.cuts[number]].rstrip()
        if semicolon is not None:
            line = f"{line[:semicolon]};{line[semicolon:]}"
        return line if number in self.inside else line[min(dedent, len(self._indent(number))) :]

    def _indent(self, number: int) -> str:
        text = self.lines[number - 1]
        return text[: len(text) - len(text.lstrip())]

    def _text_before(self, line: int, column: int) -> str:
        """The text of a line before a column of the tree, which counts bytes."""
        return self.lines[line - 1].encode()[:column].decode()

    def _place(self, anchor: ast.AST, watches: Sequence[Watch], placed: LinesByPlace, dedent: int) -> None:
        """After a simple statement; at the start of a block; before what leaves the block."""
        if isinstance(anchor, ast.Match):
            for case in anchor.cases:
                self._place(case, watches, placed, dedent)
            return
        body = [] if isinstance(anchor, ast.ClassDef) else directly_in(anchor)
        statement = body[0] if body else anchor
        assert isinstance(statement, ast.stmt)
        before = bool(body) or isinstance(anchor, _LEAVES)
        line = span([statement])[0] if before else statement.end_lineno or statement.lineno
        indent = self._indent(line if body else statement.lineno)[dedent:]
        inline = False
        if not before:
            # At most statements of the same block stand before it on its line: `a = 1; b = 2`, not `if x:`.
            try:
                ast.parse(self._text_before(statement.lineno, statement.col_offset).strip())
            except SyntaxError:
                inline = True
        placed[line, "before" if before else "after"] += [
            CellLine("" if inline else indent, watch, inline) for watch in watches
        ]


def _showing_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The statements and parts of `node` that may show something; nothing in a class does.

    For a section that stays a function `node` is its definition: its body shows, its signature does not.
    """
    if not isinstance(node, FunctionNode):
        yield node
        if isinstance(node, ast.ClassDef):
            return
    for child in directly_in(node):
        if not isinstance(child, FunctionNode):
            yield from _showing_nodes(child)
