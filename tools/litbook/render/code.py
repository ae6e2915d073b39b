"""Python text -> highlighted lines. One pass of Pygments over the whole text, so that a line inside a
multi-line string is coloured as one; then the text is cut into lines that each stand alone.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.lexers.python import PythonLexer
from pygments.token import STANDARD_TYPES, Token, _TokenType
from pygments.util import ClassNotFound

from litbook.render import markup
from litbook.render.markup import Html, tag

Cuts = tuple[tuple[int, int], ...]
Link = tuple[int, int, str]  # column, length, address

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


@dataclass(frozen=True)
class Line:
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

    def html(self, dedent: int = 0, links: Sequence[Link] = ()) -> Html:
        """The line as HTML, `dedent` spaces further left unless it begins inside a string.

        `links` are in order; what is cut off the line is no longer linked.
        """
        runs = _cut_at_links(self.runs, links) if links else [(name, text, "") for name, text in self.runs]
        if runs and not self.in_string:
            first = runs[0][1]
            lost = min(dedent, len(first) - len(first.lstrip(" ")))
            runs[0] = (runs[0][0], first[lost:], runs[0][2])
        return markup.join(_anchor(name, text, to) for name, text, to in runs if text)


@functools.lru_cache(maxsize=64)  # the contents, the list of lectures and the front page show the same text
def lines(source: str, cuts: Cuts = ()) -> list[Line]:
    """Every line of Python `source`, cut where its directive begins."""
    ends = dict(cuts)
    source = source.replace("\r\n", "\n").replace("\r", "\n")  # as Python counts lines
    raw = source.split("\n")
    coloured = [row for piece in _pieces(raw) for row in _color_piece(piece)]
    return [
        Line(i, tuple(_cut(runs, ends.get(i))), inside, not raw[i - 1].strip())
        for i, (runs, inside) in enumerate(coloured, 1)
    ]


def _pieces(lines: Sequence[str]) -> Iterator[str]:
    """The text cut before top-level definitions, never inside a string that goes over several lines."""
    piece: list[str] = []
    quotes = 0
    for line in lines:
        if piece and not quotes % 2 and line.startswith(("def ", "class ", "async def ", "@")):
            yield "\n".join(piece)
            piece = []
        piece.append(line)
        quotes += line.count('"""') + line.count("'''")
    yield "\n".join(piece)


@functools.lru_cache(maxsize=2000)  # of a lecture that is edited, all definitions but one are known
def _color_piece(piece: str) -> list[tuple[list[tuple[str, str]], bool]]:
    return _color(piece, PythonLexer(stripnl=False, ensurenl=False))


@functools.lru_cache(maxsize=2000)  # notebooks of one lecture repeat what they need
def fence(source: str, language: str, *, tabindex: int | None = None) -> Html:
    """A fenced block of a note as one line of HTML; with a `tabindex` keys can scroll it."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        lexer = None
    if lexer is None:
        body = markup.text(source)
    else:
        rows = _color(source, lexer)
        lines_ = (markup.join(_span(*run) for run in runs) for runs, _ in rows)
        body = markup.join(lines_, "\n")
    return tag("pre", tag("code", body), tabindex=tabindex, class_="lb-fence")


def _color(source: str, lexer: Lexer) -> list[tuple[list[tuple[str, str]], bool]]:
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


def _cut(runs: list[tuple[str, str]], column: int | None) -> list[tuple[str, str]]:
    """The runs up to `column`, without the spaces that then end the line."""
    if column is None:
        return runs
    kept: list[tuple[str, str]] = []
    for name, text in runs:
        kept.append((name, text[:column]))
        column -= len(text)
        if column <= 0:
            break
    while kept and not kept[-1][1].rstrip():
        kept.pop()
    if kept:
        kept[-1] = (kept[-1][0], kept[-1][1].rstrip())
    return kept


def _cut_at_links(runs: Sequence[tuple[str, str]], links: Sequence[Link]) -> list[tuple[str, str, str]]:
    """The runs, cut where a link begins and ends: (class, text, address)."""
    found: list[tuple[str, str, str]] = []
    at = 0
    for name, text in runs:
        end = at + len(text)
        done = at
        for column, length, address in links:
            if done <= column and column + length <= end:
                found.append((name, text[done - at : column - at], ""))
                found.append((name, text[column - at : column + length - at], address))
                done = column + length
        found.append((name, text[done - at :], ""))
        at = end
    return found


def _anchor(name: str, text: str, address: str) -> Html:
    span = _span(name, text)
    return tag("a", span, href=address) if address else span


def _span(name: str, text: str) -> Html:
    return tag("span", text, class_=name) if name else markup.join([text])
