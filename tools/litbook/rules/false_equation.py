"""Equations between numbers, in texts for readers, that do not hold: `3 × 4 = 13`, and so `3 < 2`.

In go the texts as a run has put them together, out come problems. A text is read for numbers, signs of
arithmetic and brackets that stand between `=`, `≈`, `<` and the like; whatever else stands among them, a name
say, ends a side, and a side that is no whole expression is let be. A number is right to its last digit, in
its unit or in the plain one, and within a percent where numbers with decimals are what it is computed from.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from litbook.finding import Finding, Place
from litbook.lecture.author_words import SEEN
from litbook.record.model import Record, Section

WAY_OUT = "compute both sides in an f-string's {…}; where it is meant, say so: # @allow false-equation: WHY"
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?![\w,]*\d)"
_TOKEN = re.compile(rf"(?P<number>{_NUMBER})|(?P<sign>\*\*|[-+*/()])|(?P<equal>[=≈])|\s+")
_RUN = re.compile(rf"(?:{_NUMBER}|\*\*|[-+*/()=≈<>≤≥]|[ ]|\n(?!\n))+")
_OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip
# What stands in Markdown and in formulas for a sign, and what only looks like one.
_WRITTEN = (
    (r"(?m)^\s*(?:[-*+]|\d+[.)])\s+", " ¦ "),
    (r"\\(?:cdot|times)\b|[×·⋅]", "*"),
    (r"\\approx\b", "≈"),
    (r"\\leq?\b|(?<![<=])<=(?!=)", "≤"),
    (r"\\geq?\b|(?<![>=])>=(?!=)", "≥"),
    (r"\\lt\b", "<"),
    (r"\\gt\b", ">"),
    (r"==", "="),
    (r"[-=]>|<-|!=|<<|>>", " ¦ "),
    (r"\\[,;:! ]", " "),
    (r"\{,\}", ","),
    (r"−", "-"),
    (r"\*\*(?=[^\W\d])|(?<=[^\W\d])\*\*|(?<=[.:])\*\*", " ¦ "),
    (r"\^", "**"),
    (r"[`$]", ""),
)
_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_PREFIXES = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6, "m": -1, "µ": -2, "u": -2, "n": -3}
_WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "percent": 0.01, "cents": 0.01}
_BEHIND = re.compile(rf"\s*(?:(%)|({'|'.join(_WORDS)})\b|([kKMGTPEmµun])i?(?:B|b|bit|FLOP|Hz|W|J|s|m)\b)")
# What an equation begins behind: a word, a mark of punctuation, a bracket that opens; not behind a name, `n`.
_BEGINS = re.compile(r"(?:^|[(|:;,.!?\"“—¦])\s*$|(?:(?<![^\W_])[aAI]|[^\W\d_]{2,})[.:;,]?\s+$")
_SIGNS = re.compile("([=≈<>≤≥])")
_SLACK = {"≈": 0.05}  # of what is computed from numbers that may have been rounded
_MOST = 300.0  # digits


class _Side(NamedTuple):
    """One side of an equation: its text, its value, and how far off a number is that was rounded to this."""

    text: str
    value: float
    off: float | None  # None of what is no single number
    decimals: bool


def find_false(record: Record) -> Iterator[Finding]:
    """The equations that do not hold, in the texts of each section, at the lines of their words."""
    for section in record.sections:
        source, told = record.sources[section.file], set[tuple[int, str]]()
        for line, text in _texts(section):
            for equation, value in false_equations(text):
                if (line, equation) not in told:
                    told.add((line, equation))
                    place = Place.of_line(source.path, source.text, section.first + line)
                    yield Finding(
                        "false-equation", f"{equation} does not hold: it is {value}", place, WAY_OUT
                    )


def _texts(section: Section) -> Iterator[tuple[int, str]]:
    """What readers see, with its line. What a misbelief says may be false; what the run says, may not."""
    for piece in section.pieces:
        if piece.kind in SEEN:
            texts = (piece.data, "") if piece.kind == "misbelief" else (piece.text, piece.why)
            yield from ((piece.line, text) for text in texts)
    for claim in section.claims:
        if claim.verdict == "holds":
            yield claim.line, claim.caption


def false_equations(text: str) -> Iterator[tuple[str, str]]:
    """Each equation between numbers in a text that does not hold, and what its first side comes to."""
    text = re.sub(r"(?<=\d)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda power: f"**{power[1].translate(_POWERS)}", text)
    for pattern, sign in _WRITTEN:
        text = re.sub(pattern, sign, text)
    for run in _RUN.finditer(text):
        if not _SIGNS.search(run[0]):
            continue
        start = run.end() - len(run[0].lstrip())
        before, behind = text[:start], text[run.end() :]
        parts = _SIGNS.split(run[0])
        sides = [_side(part) for part in parts[::2]]
        if not _BEGINS.search(before) or re.search(r"%\s+of\s*$", before):
            sides[0] = None  # `n * 3 = 12`: it begins before
        unit, apart = _BEHIND.match(behind), run[0][-1:].isspace()
        if (not apart and not unit and re.match(r"[\w\\{^_]", behind)) or re.match(
            r"[\[{\\]", behind.lstrip()
        ):
            sides[-1] = None  # `= 12n`
        for at, (left, right) in enumerate(pairwise(sides)):
            sign = parts[2 * at + 1]
            if left is None or right is None or (sign in "=≈" and None not in (left.off, right.off)):
                continue
            scales = _scales(unit) if at == len(sides) - 2 and unit else (1.0,)
            if not any(_agree(left, right, scale, sign) for scale in scales):
                value = f"{left.value:,.0f}" if left.value.is_integer() else f"{left.value:,.6g}"
                yield f"{left.text} {sign} {right.text}", value


def _scales(unit: re.Match[str]) -> tuple[float, ...]:
    """What a number may have to be multiplied with for the unit behind it."""
    percent, word, prefix = unit.groups()
    if prefix:
        power = _PREFIXES[prefix]
        return 1.0, 1e3**power, 2.0 ** (10 * power)
    return 1.0, 0.01 if percent else _WORDS[word]


def _side(text: str) -> _Side | None:
    """A side of an equation; None where it is no expression of numbers alone."""
    text = " ".join(text.split()).removesuffix("(").strip()
    numbers = re.findall(_NUMBER, text)
    if re.search(r"\d\s+\d", text) or not numbers:
        return None
    with contextlib.suppress(SyntaxError, ValueError, ArithmeticError, RecursionError, TypeError):
        value = _value(ast.parse(text.replace(",", ""), mode="eval").body)
        alone = re.fullmatch(rf"-?\s*{_NUMBER}", text)
        return _Side(
            text, value, _off(numbers[0]) if alone else None, any("." in number for number in numbers)
        )
    return None


def _value(node: ast.expr) -> float:
    """What an expression of numbers comes to. Raises `ValueError` for anything else."""
    match node:
        case ast.Constant(int() | float() as number):
            return float(number)
        case ast.UnaryOp(ast.USub(), inner):
            return -_value(inner)
        case ast.BinOp(left, sign, right):
            one, other = _value(left), _value(right)
            if isinstance(sign, ast.Pow) and one and abs(other * math.log10(abs(one))) > _MOST:
                raise ValueError("too large")
            return _OPERATORS[type(sign)](one, other)
    raise ValueError("no number")


def _off(number: str) -> float:
    """Half of the last digit of a number: 0.05 of 3.2, and 500 of 12,000, whose zeros may be rounded."""
    digits, _, exponent = number.replace(",", "").partition("e")
    whole, _, decimals = digits.partition(".")
    last = -len(decimals) if decimals else len(whole) - len(whole.rstrip("0")) if whole.strip("0") else 0
    return 0.5 * 10.0 ** (last + int(exponent or 0))


def _agree(left: _Side, right: _Side, scale: float, sign: str) -> bool:
    """Whether two sides are to each other as the sign says, as far as what is written tells."""
    off = max(side.off or 0.0 for side in (left, right)) * scale * 1.0001
    rounded = left.decimals or right.decimals or sign == "≈"
    slack = _SLACK.get(sign, 0.01) if rounded else 1e-9
    apart = left.value - right.value * scale
    if (sign in "<≤" and apart < 0) or (sign in ">≥" and apart > 0):
        return True
    if sign in "<>" and None not in (left.off, right.off) and not rounded:
        return False  # two whole numbers that are written there
    return abs(apart) <= off or abs(apart) <= slack * max(abs(left.value), abs(right.value * scale))
