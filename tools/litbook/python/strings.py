"""String literals of a source text -> their characters, each with the line and column it stands at.

A syntax tree knows where a literal begins and ends, not where a character of its value stands: escapes,
line continuations, triple quotes and implicit concatenation lie between. So the literal's own text is read
again here, the same way on every Python; an f-string's `{…}` becomes one character, `HOLE`.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from bisect import bisect_right
from dataclasses import dataclass

HOLE = "\ue000"  # a private character: stands for what an f-string computes

_OPENING = re.compile(r"(?P<prefix>[A-Za-z]{0,2})(?P<quote>'''|\"\"\"|'|\")")
_BETWEEN = re.compile(r"(?:\s|\\\n|#[^\n]*\n)*")  # what may stand between two literals that are one string
_ESCAPE = re.compile(r"(?s)\\(?:\n|N\{[^}]*\}|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[0-7]{1,3}|.)")


@dataclass(frozen=True)
class Passage:
    """A text, and for each of its characters where it stands: 1-based line, 1-based column in characters."""

    text: str
    places: tuple[tuple[int, int], ...]

    def __add__(self, other: Passage) -> Passage:
        return Passage(self.text + other.text, self.places + other.places)

    def __getitem__(self, part: slice) -> Passage:
        return Passage(self.text[part], self.places[part])

    def dedent(self) -> Passage:
        """The text without its indentation, as the author's words take it."""
        text, places, behind = inspect.cleandoc(self.text), [], 0
        for character in text:
            if not character.isspace():  # all that is left out, or put in for a tab, is space
                behind = self.text.index(character, behind) + 1
            places.append(self.places[max(0, behind - 1)])
        return Passage(text, tuple(places))


class SourceText:
    """A source text in which literals are looked up."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0]  # of the lines, as offsets into the text
        for match in re.finditer("\n", text):
            self.starts.append(match.end())

    def offset(self, line: int, column: int) -> int:
        """The offset of a tree's position: its columns count bytes of UTF-8."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        shown = self.text[start:end]
        return start + (column if shown.isascii() else len(shown.encode()[:column].decode(errors="ignore")))

    def hole(self, node: ast.expr) -> Passage:
        """One `HOLE` where the expression `node` stands."""
        return Passage(HOLE, ((node.lineno, node.col_offset + 1),))

    def passage(self, node: ast.Constant | ast.JoinedStr) -> Passage:
        """The characters of a string or f-string."""
        at = start = self.offset(node.lineno, node.col_offset)
        end = self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        characters = list[tuple[str, int]]()  # of one or more literals side by side, each with its offset
        while at < end and (opening := _OPENING.match(self.text, at)):
            at = self._literal(opening, characters)
            between = _BETWEEN.match(self.text, at)
            at = between.end() if between else at
        places, line = [], bisect_right(self.starts, start)
        for _, offset in characters:  # in rising order: the line only moves on
            while line < len(self.starts) and self.starts[line] <= offset:
                line += 1
            places.append((line, offset - self.starts[line - 1] + 1))
        return Passage("".join(character for character, _ in characters), tuple(places))

    def _literal(self, opening: re.Match[str], into: list[tuple[str, int]]) -> int:
        """Read one literal; the offset behind its closing quote."""
        prefix, quote, at = opening["prefix"].lower(), opening["quote"], opening.end()
        while at < len(self.text) and not self.text.startswith(quote, at):
            character = self.text[at]
            if character == "\\":
                match = _ESCAPE.match(self.text, at)
                written = match[0] if match else "\\"
                if "r" in prefix:
                    into += [(part, at + i) for i, part in enumerate(written)]
                elif written != "\\\n":
                    value = ""
                    with contextlib.suppress(SyntaxError, ValueError):
                        value = ast.literal_eval(f'"{written}"') if written != '\\"' else '"'
                    into.append((value if len(value) == 1 else written[-1], at))
                at += len(written)
            elif character in "{}" and "f" in prefix:
                doubled = self.text[at : at + 2] in ("{{", "}}")
                into.append((character if doubled else HOLE, at))
                at = at + 2 if doubled else self._behind_hole(at + 1)
            else:
                into.append((character, at))
                at += 1
        return at + len(quote)

    def _behind_hole(self, at: int) -> int:
        """The offset behind the `}` that ends a hole; strings, brackets and a format may stand inside."""
        depth = 0
        while at < len(self.text):
            character = self.text[at]
            if character in "'\"":
                start = at  # of the literal: an `f` before its quote makes its braces holes
                while start and self.text[start - 1] in "rRbBuUfFtT" and at - start < 2:
                    start -= 1
                named = start and re.match(r"\w", self.text[start - 1])
                opening = _OPENING.match(self.text, at if named else start)
                at = self._literal(opening, []) if opening else at + 1
                continue
            if character in "([{":
                depth += 1
            elif character in ")]" or (character == "}" and depth):
                depth -= 1
            elif character == "}":
                return at + 1
            elif character == ":" and not depth:
                at += 1
                while at < len(self.text) and self.text[at] != "}":  # the format
                    at = self._behind_hole(at + 1) if self.text[at] == "{" else at + 1
                return at + 1
            at += 1
        return at
