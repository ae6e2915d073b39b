"""Numbers as people write and read them: "200M" to 2e8, and 131055505408 bytes to "131.1 GB".

In go texts or numbers, out come numbers or texts, the same in the terminal and on the site, whose calculator runs a
translation of this file. Nothing here knows what a number is for.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from napkin_native import get, has, number_of, ten_to

DIGITS = "0123456789"
COUNTS = {
    "": 0, "k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "b": 9, "bn": 9, "g": 9, "billion": 9,
    "t": 12, "tn": 12, "trillion": 12,
}
SUFFIXES: dict[str, dict[str, int]] = {
    "count": COUNTS, "length": {"": 0, "k": 0, "m": 0}, "share": {"": 0, "%": -2}, "link": {"": 0, "gb": 0, "gb/s": 0}, "money": {"": 0},
    "watts": {"": 0, "w": 0, "kw": 3}, "days": {"": 0, "d": 0, "day": 0, "days": 0}, "ms": {"": 0, "ms": 0},
}


@dataclass(frozen=True)
class ReadNumber:
    """A number that was read, or what is wrong with its text."""

    value: float
    wrong: str = ""


def digits_of(text: str, start: int) -> str:
    """The digits of a text from a place on."""
    end = start
    while end < len(text) and has(DIGITS, text[end]):
        end += 1
    return text[start:end]


def read_number(text: str, kind: str, example: str) -> ReadNumber:
    """The number that a text says, such as "70B", "7e10", "1,024" or "40 %"; `kind` is a key of `SUFFIXES`."""
    plain = text.strip().lower().replace("−", "-").replace("\u00a0", " ").replace("\u202f", " ")
    if plain == "":
        return ReadNumber(0, f"Give a number, such as {example}.")
    quoted = f"“{text.strip()[0:24]}…”" if len(text.strip()) > 24 else f"“{text.strip()}”"
    place, sign = 0, 1
    if plain[0] == "-" or plain[0] == "+":
        sign, place = (-1 if plain[0] == "-" else 1), 1
    whole = digits_of(plain, place)
    place += len(whole)
    if len(whole) > 0 and len(whole) < 4:
        while place < len(plain) and has(",_ ", plain[place]) and len(digits_of(plain, place + 1)) == 3:
            whole += digits_of(plain, place + 1)
            place += 4
    fraction = ""
    if place < len(plain) and plain[place] == ".":
        fraction = digits_of(plain, place + 1)
        place += 1 + len(fraction)
    power = 0
    if place + 1 < len(plain) and plain[place] == "e":
        signed = 1 if has("+-", plain[place + 1]) else 0
        exponent = digits_of(plain, place + 1 + signed)
        if len(exponent) > 0 and len(exponent) < 5:
            power = int(number_of(exponent)) * (-1 if plain[place + 1] == "-" else 1)
            place += 1 + signed + len(exponent)
    suffix = plain[place:len(plain)].strip()
    known = SUFFIXES[kind]
    if not has(known, suffix) or whole + fraction == "":
        comma = " Decimals take a point." if suffix[0:1] == "," else ""
        return ReadNumber(0, f"{quoted} is not a number that this field knows; write it like {example}.{comma}")
    number = sign * number_of(f"{whole}.{fraction}0e{power + get(known, suffix, 0)}")
    if kind == "length":  # contexts come in powers of two: 8k is 8,192
        number = number * (1024 if suffix == "k" else 1048576 if suffix == "m" else 1)
    return ReadNumber(number)


def grouped(whole: str) -> str:
    """Digits with a comma between thousands."""
    text = ""
    for i in range(len(whole)):
        if i > 0 and (len(whole) - i) % 3 == 0:
            text += ","
        text += whole[i]
    return text


def whole_text(value: float) -> str:
    """A whole number in full, up to a quadrillion."""
    if abs(value) >= 1e15:
        return short(value)
    return ("-" if value < 0 else "") + grouped(f"{math.floor(abs(value) + 0.5)}")


def short(value: float) -> str:
    """A number in four significant digits: 32,760, 7.86, 0.0001234."""
    return short_in(value, 4)


def short_in(value: float, count: int) -> str:
    """A number in so many significant digits, without zeros at its end."""
    if value == 0:
        return "0"
    if value < 0:
        return "-" + short_in(-value, count)
    order = 0
    while order < 308 and value >= ten_to(order + 1):
        order += 1
    while order > -300 and value < ten_to(order):
        order -= 1
    step = order - count + 1
    rounded = math.floor(value / ten_to(step) + 0.5) if step >= 0 else math.floor(value * ten_to(-step) + 0.5)
    if rounded >= ten_to(count):
        rounded, step, order = rounded // 10, step + 1, order + 1
    if order >= 15 or order < -5:
        mantissa = short_in(rounded / ten_to(count - 1), count)
        return f"{mantissa}e{order}"
    if step >= 0:
        return grouped(f"{rounded}" + zeros(step))
    text = f"{rounded}"
    text = zeros(1 - step - len(text)) + text
    fraction = text[len(text) + step:len(text)]
    while fraction.endswith("0"):
        fraction = fraction[0:len(fraction) - 1]
    return grouped(text[0:len(text) + step]) + ("." + fraction if len(fraction) > 0 else "")


def rough(value: float) -> float:
    """A number in two significant digits, for what is known to a third."""
    return number_of(short_in(value, 2).replace(",", ""))


def zeros(count: int) -> str:
    """So many zeros; none where the count is negative."""
    text = ""
    for _ in range(max(count, 0)):
        text += "0"
    return text


def scaled(value: float, names: list[str]) -> str:
    """A number with the largest of these units, each a thousand of the one before, that it reaches."""
    i = 0
    while i + 1 < len(names) and abs(value) >= 999.95 * ten_to(3 * i):
        i += 1
    return f"{short(value / ten_to(3 * i))} {names[i]}".strip()


def size(value: float) -> str:
    """Bytes, such as 131.1 GB."""
    return scaled(value, ["B", "kB", "MB", "GB", "TB", "PB", "EB"])


def flop(value: float) -> str:
    """Floating-point operations, such as 224.1 GFLOP."""
    return scaled(value, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"])


def words(value: float) -> str:
    """A count, such as 1,024 or 32.76 billion."""
    if value == math.floor(value) and abs(value) < 1_000_000:
        return whole_text(value)
    return short(value) if value < 999_950 else scaled(value / ten_to(6), ["million", "billion", "trillion", "quadrillion"])


def seconds(value: float, count: int = 4) -> str:
    """A time in seconds, such as 12.3 ms, 7.86 hours or 144 days, in so many significant digits."""
    if value < 1:
        return f"{short_in(value * 1000, count)} ms" if value >= 0.001 else f"{short_in(value * 1000000, count)} µs"
    if value < 120:
        return f"{short_in(value, count)} seconds"
    if value < 7200:
        return f"{short_in(value / 60, count)} minutes"
    if value < 172800:
        return f"{short_in(value / 3600, count)} hours"
    return f"{short_in(value / 86400, count)} days" if value < 63115200 else f"{short_in(value / 31557600, count)} years"


def share(value: float) -> str:
    """A share in percent."""
    return f"{short_in(value * 100, 3)} %"


def things(count: float, name: str) -> str:
    """A count and its noun: 1 device, 9 devices."""
    return f"{words(count)} {name}" if count == 1 else f"{words(count)} {name}s"
