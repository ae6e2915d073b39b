"""What the lecture's text says, so that its record need not say it again.

A record holds the text of its lecture, and much of the rest stands there word for word: prose but for the
numbers in it, claims, captions, headings, the names that a line binds. Here is a reading of the text that is
good enough to find most of it, and the same for whoever writes and whoever reads. It need not be right: the
record says what differs, and all of it where there is no text. It reads lines, and knows no values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from inspect import cleandoc

Prose = tuple[str, ...]
"""Words of the text with holes between them."""

_HOLE = "\0"
_LITERAL = re.compile(
    r'(?P<how>(?<!\w)[rf]{1,2}|)(?:"""(?P<long>(?:[^\\"]|\\.|"(?!""))*)"""|"(?P<short>(?:[^\\"\n]|\\.)*)")',
    re.DOTALL,
)
_BETWEEN = re.compile(r"[\s\\]*")
_BRACES = re.compile(r"\{\{|\}\}|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "\n": "", "\\": "\\", '"': '"', "'": "'"}
_WORDS = ("note(", "misbelief(", "question(", "figure(", "image(", "link(")


# ---------------------------------------------------------------------------- sections and statements


def heading(lines: Sequence[str]) -> str:
    """What the docstring in the lines of a section or definition begins with, without the full stop."""
    first = next((line.strip() for line in lines if line.strip().startswith('"""')), "")
    return first.removeprefix('"""').removesuffix('"""').strip().removesuffix(".")


def digest(lines: Sequence[str]) -> str:
    """The hash of the lines, as the text's own analysis makes it."""
    return sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()[:16]


def kind(line: str) -> str:
    """What a statement is that begins with the line: a piece, a docstring, or plain code."""
    begins = line.strip()
    return "piece" if begins.startswith(_WORDS) else "doc" if begins.startswith('"""') else "code"


def names(line: str) -> tuple[str, ...]:
    """The names in front of `=`, or of a loop's `in`."""
    left, equals, _ = line.strip().partition(" = ")
    if not equals:
        left, _, _ = left.removeprefix("for ").partition(" in ") if left.startswith("for ") else ("", "", "")
    found = tuple(name.strip(" ()*") for name in left.partition(":")[0].split(","))
    return found if all(name.isidentifier() for name in found) else ()


# ---------------------------------------------------------------------------- claims

_CAPTION = re.compile(r',\s*"([^"\\]*)"')  # a plain string behind the test


def claimed(lines: Sequence[str]) -> str:
    """What stands behind `assert` on the lines of a statement."""
    return " ".join(line.strip() for line in lines).removeprefix("assert ")


def caption(claim: str, text: str) -> str:
    """The plain string behind the test `text` in what is `claimed`."""
    behind = _CAPTION.match(claim, len(text)) if claim.startswith(text) else None
    return behind[1] if behind else ""


# ---------------------------------------------------------------------------- prose


@lru_cache(maxsize=4096)
def proses(statement: str) -> tuple[Prose, ...]:
    """The strings of a statement, in order; neighbours are one. Between the words is what a run fills in."""
    found, parts, end = list[Prose](), list[str](), -1
    for literal in _LITERAL.finditer(statement):
        if parts and _BETWEEN.fullmatch(statement, end, literal.start()) is None:
            found.append(_words(parts))
            parts = []
        parts.append(_literal(literal))
        end = literal.end()
    return (*found, _words(parts)) if parts else tuple(found)


def _literal(literal: re.Match[str]) -> str:
    """The text of a string, with a mark where an f-string has a hole."""
    body, how = literal["long"] if literal["short"] is None else literal["short"], literal["how"]
    if "r" not in how:
        body = _ESCAPE.sub(lambda it: _ESCAPED.get(it[1], it[0]), body)
    return _BRACES.sub(lambda it: it[0][0] if it[0] in ("{{", "}}") else _HOLE, body) if "f" in how else body


def _words(parts: list[str]) -> Prose:
    return tuple(cleandoc("".join(parts)).split(_HOLE))


def fills(prose: Prose, text: str) -> list[str] | None:
    """What stands in the holes of the prose, for it to be the text; None where it is another."""
    first, *rest = prose
    if not text.startswith(first):
        return None
    found, at = [], len(first)
    for i, words in enumerate(rest):
        last = i == len(rest) - 1
        start = len(text) - len(words) if last else text.find(words, at)
        if start < at or not text.startswith(words, start):
            return None
        found.append(text[at:start])
        at = start + len(words)
    return found if at == len(text) else None


def filled(prose: Prose, found: Sequence[str]) -> str:
    """The text of the prose with its holes filled."""
    return "".join(part for pair in zip(prose, [*found, ""], strict=True) for part in pair)
