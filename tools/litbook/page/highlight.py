"""Python text -> lines of coloured runs. One pass of Pygments over the whole text, so that a line inside a
multi-line string is coloured as one; then the text is cut into lines that each stand alone.
"""

from __future__ import annotations

import functools
import keyword
from typing import Any, ClassVar

from msgspec import Struct
from pygments.lexer import Lexer, inherit, words
from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES, Token, _TokenType

Cuts = tuple[tuple[int, int], ...]
CodeLink = tuple[int, int, str]  # column, length, address

# What a reader's eye should find: keywords, strings, numbers, comments, definitions, builtins.
# Everything else (names, operators, brackets) stays plain, which also keeps pages small.
_CLASSES = (
    (Token.Keyword.Constant, "kc"),
    (Token.Keyword, "k"),
    (Token.Operator.Word, "k"),
    (Token.Comment, "c"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "m"),
    (Token.Name.Function, "nf"),
    (Token.Name.Class, "nf"),
    (Token.Name.Decorator, "nd"),
    (Token.Name.Builtin.Pseudo, "kc"),
    (Token.Name.Builtin, "nb"),
    (Token.Name.Exception, "nb"),
)

# What Pygments may take for more than a name.
_LISTED = {
    word
    for rules in PythonLexer.tokens.values()
    for rule in rules
    if isinstance(rule, tuple) and isinstance(rule[0], words)
    for word in rule[0].words
}
_MORE = {*_LISTED, *keyword.kwlist, *keyword.softkwlist, "lazy", "self", "cls", "Ellipsis", "NotImplemented"}


class FastPythonLexer(PythonLexer):  # type: ignore[misc]  # Pygments ships no types
    """As its base, in half the time: that tries forty rules before the one for a name."""

    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"(?<=[^\s\\]) +", Token.Text),
            (r"[]{}:(),;[]", Token.Punctuation),
            (r"[-~+/*%=<>&^|]|\.(?!\d)", Token.Operator),
            (rf"(?!(?:{'|'.join(sorted(_MORE))})\b)[A-Za-z][A-Za-z0-9_]*(?![\w\"'])", Token.Name),
            inherit,
        ]
    }


class CodeLine(Struct, frozen=True, dict=True):
    """One line of a file: its runs of equally coloured text, and whether it begins inside a string."""

    number: int
    runs: tuple[tuple[str, str], ...]  # (class, text)
    in_string: bool = False
    was_blank: bool = False  # also before its directive was cut away

    @functools.cached_property
    def text(self) -> str:
        """What is shown, without colours."""
        return "".join(text for _, text in self.runs)

    @property
    def indent(self) -> int:
        """Leading spaces."""
        return len(self.text) - len(self.text.lstrip(" "))


@functools.lru_cache(maxsize=64)  # the contents, the list of lectures and the front page show the same text
def lines(source: str, cuts: Cuts = ()) -> list[CodeLine]:
    """Every line of Python `source`, cut where its directive begins."""
    ends = dict(cuts)
    source = source.replace("\r\n", "\n").replace("\r", "\n")  # as Python counts lines
    raw = source.split("\n")
    # Coloured piece by piece, cut before top-level definitions, never inside a string of several lines.
    pieces, quotes = list[list[str]]([[]]), 0
    for line in raw:
        if pieces[-1] and not quotes % 2 and line.startswith(("def ", "class ", "async def ", "@")):
            pieces.append([])
        pieces[-1].append(line)
        quotes += line.count('"""') + line.count("'''")
    rows = [row for piece in pieces for row in _color_piece("\n".join(piece))]
    coloured = []
    for number, (runs, inside) in enumerate(rows, 1):
        text = "".join(text for _, text in runs)
        kept, left = list[tuple[str, str]](), len(text)
        if number in ends:  # up to there, without the spaces that then end the line
            left = len(text[: ends[number]].rstrip())
        for name, text in runs:
            kept += [(name, text[:left])] if left > 0 else []
            left -= len(text)
        coloured.append(CodeLine(number, tuple(kept), inside, not raw[number - 1].strip()))
    return coloured


@functools.lru_cache(maxsize=2000)  # of a lecture that is edited, all definitions but one are known
def _color_piece(piece: str) -> list[tuple[list[tuple[str, str]], bool]]:
    return color_lines(piece, FastPythonLexer(stripnl=False, ensurenl=False))


def color_lines(source: str, lexer: Lexer) -> list[tuple[list[tuple[str, str]], bool]]:
    """Per line: runs of (class, text), and whether it begins inside a string."""
    rows: list[tuple[list[tuple[str, str]], bool]] = [([], False)]
    for token, text in lexer.get_tokens(source):
        name = _class(token)
        for i, piece in enumerate(text.split("\n")):
            if i:
                rows.append(([], name == "s"))
            runs = rows[-1][0]
            if runs and piece and (runs[-1][0] == name or piece.isspace()):
                runs[-1] = (runs[-1][0], runs[-1][1] + piece)
            elif piece:
                runs.append((name, piece))
    return rows


@functools.cache
def _class(token: _TokenType) -> str:
    if token not in STANDARD_TYPES and token.parent is None:
        return ""
    return next((name for kind, name in _CLASSES if token in kind), "")
