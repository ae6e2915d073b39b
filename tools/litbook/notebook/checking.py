"""What a workbook's cells call. The text of this file is packed into each: it needs the standard library.

It judges as `html/assets/answers.js` does: `tests/answers.py` has the cases that both are held against.
"""

from __future__ import annotations

import contextlib
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0,
         "hour": 3600.0, "day": 86400.0, "week": 604800.0, "year": 31557600.0}  # fmt: skip
MANY = {"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12, "thousand": 1e3, "million": 1e6, "billion": 1e9,
        "trillion": 1e12}  # fmt: skip
S = r"[\s\ufeff]"
N = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?"
FORMULA = re.compile(rf"({N}(?:{S}*[*×·/^x]{S}*{N})*){S}*([^0-9]*)", re.IGNORECASE)
PHYSICAL = re.compile(r"(b|flop|wh?|bit|s)(/|\Z)")
FORMAT = "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]"  # no one sees them
LONGEST, MOST, DEPTH = 1000, 64, 5  # characters of an answer, its parts, and how deep they lie


class UnreadableAnswer(Exception):
    """What a value is that is no answer."""


def open_workbook(data: dict[str, Any]) -> tuple[Any, ...]:
    """The names that the cells use: `answers`, `check`, `reveal` and `tally`."""
    book = Workbook(data)
    return book.answers, book.check, book.reveal, book.tally


class Workbook:
    """The questions of one lecture, and what a reader has answered so far."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.questions, self.words, self.marks = data["questions"], data["words"], data["marks"]
        self.answers: dict[int, Any] = {}

    def check(self, number: int) -> None:
        """Say whether the answer to a question is right; if it is, why."""
        right, said = self.judge(number)
        print(said)
        if right:
            _show(self.questions[number - 1]["why"])

    def reveal(self, number: int) -> None:
        """Show the answer to a question, and why it is so."""
        if question := self._question(number):
            print(f"{self.words['answer']}: {question['reply']}")
            _show(question["why"])
        else:
            print(self.say("none", n=number))

    def tally(self) -> None:
        """Say how many questions are answered, and which are not."""
        numbers = range(1, len(self.questions) + 1)
        right = [number for number in numbers if self.judge(number)[0]]
        print(self.say("done", n=len(right), all=len(self.questions)))
        if left := [str(number) for number in numbers if number not in right]:
            print(self.say("left", numbers=", ".join(left)))

    def judge(self, number: int) -> tuple[bool, str]:
        """Whether the answer to a question is right, and what is said of it, as on the page."""
        if not (question := self._question(number)):
            return False, self.say("none", n=number)
        try:
            why = self.judge_text(question, as_text(self.answers.get(number)))
        except UnreadableAnswer as problem:
            return False, self.say("unusable", value=problem)
        except UnjudgedAnswer as problem:
            return False, str(problem)
        except Exception:  # of what a reader has made, whatever it does when it is asked
            return False, str(self.words["unread"])
        return not why, self.say("isWrong", why=why[0].upper() + why[1:]) if why else self.words["isRight"]

    def _question(self, number: Any) -> Any:
        whole = isinstance(number, int) and 1 <= number <= len(self.questions)
        return self.questions[number - 1] if whole else None

    def say(self, name: str, **values: object) -> str:
        """One of the words that the page has, too, with these values in the place of their `{names}`."""
        return re.sub(r"{(\w+)}", lambda match: str(values[match[1]]), self.words[name])

    # -- as the script of a page

    def judge_text(self, question: dict[str, Any], text: str) -> str:
        """What is wrong with an answer; "" for nothing. Raises `UnjudgedAnswer` where it cannot be judged."""
        values, count = question["values"], len(question["values"])
        bare = re.sub(r"^[\[({]|,?[\])}]\Z", "", _trim(re.sub(FORMAT, "", text)))
        if not bare:
            raise UnjudgedAnswer(self.words["first"])
        # A common mistake, by the number that comes of it.
        wrong = question["wrong"] if count < 2 else ()
        known = next((said for said, value in wrong if not self.judge_part(bare, value, question)), "")
        parts = [bare] if count < 2 else _split(bare, count)
        if not parts:
            raise UnjudgedAnswer(self.say("many", n=count))
        last = re.search(r"[^0-9\s\ufeff]*\Z", bare)[0]  # type: ignore[index]  # "40, 80 GB" is GB twice
        parts = [f"{part} {last}" if re.search(rf"[0-9]{S}*\Z", part) else part for part in parts]
        found = [self.judge_part(part, value, question) for part, value in zip(parts, values, strict=True)]
        if known and found[0]:
            return f"{found[0]}. {known.removesuffix('.')}"
        if count < 2 or not any(found):
            return found[0] if count < 2 else ""
        told = (verdict or self.words["right"] for verdict in found)
        return ", ".join(self.say("part", n=i, verdict=verdict) for i, verdict in enumerate(told, 1))

    def judge_part(self, text: str, value: float | str, question: dict[str, Any]) -> str:
        """What is wrong with one part of an answer; "" for nothing."""
        if isinstance(value, str):
            return "" if _normalize(text) == _normalize(value) else str(self.words["notIt"])
        asked = question["unit"]
        number, word = self.read_number(text)
        size, base = read_unit(asked, True)
        of_bytes = re.search(r"^b|/b", base) is not None
        many, its = read_unit(word, of_bytes)
        if its and base not in (its, f"{its}/s") and (PHYSICAL.match(its) or PHYSICAL.match(base)):
            raise UnjudgedAnswer(self.say("unit" if asked else "plain", unit=asked, word=word))
        shown = (read_unit(name, of_bytes)[0] / size for name in question["shown"])
        given = [many / size] if word else [1.0, 1 / size, *shown]
        ratio = min((_ratio(it * number, value) for it in given), key=_distance)
        if not (value or number) or (ratio > 0 and max(ratio, 1 / ratio) <= 1 + question["within"]):
            return ""
        if not ratio > 0:
            return str(self.words["sign"])
        return self.say("small" if ratio < 1 else "large", n=self.format_factor(max(ratio, 1 / ratio)))

    def read_number(self, text: str) -> tuple[float, str]:
        """`1,024`, `3 × 10^8`, `1/64`, `2 GiB` as a number and a unit."""
        bare = re.sub(rf"^(about|[~≈=$\s\ufeff])+|\.?{S}*\Z", "", text, flags=re.IGNORECASE)
        bare = re.sub(r"^(-?0),", r"\1.", re.sub("[−–]", "-", bare).replace("**", "^"))
        bare = re.sub(r"([0-9])[\s\ufeff_'’,](?=[0-9]{3}(?![0-9]))", r"\1", bare)
        found = FORMULA.fullmatch(re.sub(r"([0-9]),(?=[0-9])", r"\1.", bare, count=1))
        value = 1.0 if found else math.nan
        signs = re.split(rf"{S}*([*×·/x]){S}*", found[1], flags=re.IGNORECASE) if found else []
        for sign, part in zip(["*", *signs[1::2]], signs[::2], strict=False):
            *bases, power = map(float, part.split("^"))
            for base in reversed(bases):
                power = _power(base, power)
            value = _ratio(value, power) if sign == "/" else value * power
        if not math.isfinite(value):
            raise UnjudgedAnswer(self.words["unread"])
        return value, _trim(found[2]) if found else ""

    def format_factor(self, value: float) -> str:
        """A number with three digits that count."""
        if math.isinf(value):
            return "∞"
        group, point = self.marks
        digits = format(Context(3, ROUND_HALF_UP).create_decimal(repr(value)), ",f")
        whole, _, rest = digits.partition(".")
        rest = rest.rstrip("0")
        return whole.replace(",", group) + (point + rest if rest else "")


class UnjudgedAnswer(Exception):
    """Why an answer cannot be judged, in the words of the page."""


def as_text(value: Any, depth: int = 0) -> str:
    """A value as one would type it. Raises `UnreadableAnswer`: what it is instead."""
    if value is None or value is ...:
        return ""
    if isinstance(value, str):
        if len(value) <= LONGEST:
            return value
        raise UnreadableAnswer(f"{len(value):,} characters")
    kind = type(value).__name__
    if isinstance(value, bool) or kind == "dtype" or kind.startswith("dtype["):
        return str(value)
    if hasattr(value, "tolist") and hasattr(value, "shape"):  # of torch or numpy
        if math.prod(value.shape) > MOST:
            raise UnreadableAnswer(f"{kind} {tuple(value.shape)}")
        return as_text(value.tolist(), depth)
    if isinstance(value, int | float | Fraction | Decimal):
        with contextlib.suppress(OverflowError):
            if math.isfinite(float(value)):
                return str(value)  # a fraction as `1/3`
        raise UnreadableAnswer(kind if isinstance(value, int) else str(value))
    if isinstance(value, list | tuple | range) and len(value) <= MOST and depth < DEPTH:
        texts = [as_text(part, depth + 1) for part in value]
        if all(texts):
            return ", ".join(texts)
    raise UnreadableAnswer(kind)


def read_unit(text: str, of_bytes: bool) -> tuple[float, str]:
    """`GiB` as 2 ** 30 and `b`. Where no bytes are asked for, `70B` is 70 billion."""
    text = re.sub("seconds?", "s", re.sub("bytes?", "b", text.lower()))
    name, slash, per = text.partition("/")
    per, one = slash + per, name.removesuffix("s")
    if name == "%":
        return 0.01, ""
    found = re.fullmatch("([kmgtpe]?)(i?)(b|flop|wh?|bit)", one)
    if found and (of_bytes or name != "b"):
        return (1024.0 if found[2] else 1000.0) ** " kmgtpe".index(found[1] or " "), found[3] + per
    if time := TIMES.get(name) or TIMES.get(one):
        return time, f"s{per}"
    many = re.match(rf"(?:([a-z0-9_]+illion|thousand|[kmgbt])(?![^\s\ufeff]))?{S}*", one)
    times, word = (many[1], one[many.end() :]) if many else ("", one)
    return MANY.get(times, 1.0), word + per


def _split(text: str, count: int) -> list[str] | None:
    """The parts of an answer, if there are so many: between semicolons and the like, commas, spaces."""
    word = r"(?<![a-zA-Z0-9_])and(?![a-zA-Z0-9_])"
    for by in (rf";|{word}|,{S}", ",", r"[\s\ufeff,;]+"):
        parts = (re.sub(r"[()\[\]{}]", "", part) for part in re.split(by, text))
        if len(found := [part for part in parts if _trim(part)]) == count:
            return found
    return None


def _trim(text: str) -> str:
    return re.sub(rf"^{S}+|{S}+\Z", "", text)


def _normalize(text: str) -> str:
    return re.sub(r"^torch\.|[\"'`]", "", _trim(text).lower())


def _power(base: float, exponent: float) -> float:
    """As JavaScript has it: what is too large is infinite, and what is no real number is none."""
    try:
        power = base**exponent
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return math.nan if isinstance(power, complex) else power


def _ratio(a: float, b: float) -> float:
    """As JavaScript divides: by 0, too."""
    if b:
        return a / b
    return math.copysign(math.inf, a) * math.copysign(1.0, b) if a and a == a else math.nan


def _distance(ratio: float) -> float:
    """How many times too large or too small, as a logarithm."""
    return abs(math.log(abs(ratio))) if ratio and math.isfinite(ratio) else math.inf


def _show(text: str) -> None:
    """Markdown below the cell."""
    if text:
        from IPython.display import Markdown, display

        display(Markdown(text))
