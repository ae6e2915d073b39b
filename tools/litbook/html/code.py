"""Lines of coloured runs -> HTML: a numbered line of a page, and a fenced block of a note."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from litbook.html import elements
from litbook.html.elements import Html, tag
from litbook.page.highlight import CodeLine, CodeLink, FastPythonLexer, color_lines


def line(source: CodeLine, dedent: int = 0, links: Sequence[CodeLink] = ()) -> Html:
    """One line, `dedent` spaces further left unless it begins inside a string.

    `links` are in order; what is cut off the line is no longer linked.
    """
    runs: list[tuple[str, str, str]] = []  # cut where a link begins and ends: class, text, address
    at = 0
    for name, text in source.runs:
        end, done = at + len(text), at
        for column, length, address in links:
            if done <= column and column + length <= end:
                runs.append((name, text[done - at : column - at], ""))
                runs.append((name, text[column - at : column + length - at], address))
                done = column + length
        runs.append((name, text[done - at :], ""))
        at = end
    if runs and not source.in_string:
        first = runs[0][1]
        lost = min(dedent, len(first) - len(first.lstrip(" ")))
        runs[0] = (runs[0][0], first[lost:], runs[0][2])
    spans = ((_span(name, text), address) for name, text, address in runs if text)
    return elements.join(tag("a", span, href=address) if address else span for span, address in spans)


@functools.lru_cache(maxsize=2000)  # notebooks of one lecture repeat what they need
def fence(source: str, language: str, *, tabindex: int | None = None) -> Html:
    """A fenced block of a note as one line of HTML; with a `tabindex` keys can scroll it."""
    lexer: Lexer | None = None  # of no language, or of one that nobody knows
    if language in FastPythonLexer.aliases:
        lexer = FastPythonLexer(stripnl=False, ensurenl=False)
    elif language:
        with contextlib.suppress(ClassNotFound):
            lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    if lexer is None:
        body = elements.text(source)
    else:
        rows = color_lines(source, lexer)
        lines_ = (elements.join(_span(*run) for run in runs) for runs, _ in rows)
        body = elements.join(lines_, "\n")
    return tag("pre", tag("code", body), tabindex=tabindex, class_="lb-fence")


@functools.lru_cache(maxsize=10_000)  # most of a lecture's code is the same few thousand words
def _span(name: str, text: str) -> Html:
    return tag("span", text, class_=name) if name else elements.join([text])
