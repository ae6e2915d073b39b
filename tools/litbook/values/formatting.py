"""A snapshot as one line of plain text, and a claim's test with its values put in.

The page, the terminal view and the notebook all speak through this file, so that a number reads the
same everywhere. Nothing is invented: a shortened number is shortened the same way on both sides of a
comparison, and where shortening would make two different values look equal, neither is shortened.
"""

from __future__ import annotations

import contextlib
import fractions
import math
import re
import unicodedata
from collections.abc import Sequence as SequenceOf

from litbook.i18n import _
from litbook.i18n import number as count
from litbook.markdown.escape import spell
from litbook.record import model
from litbook.record.model import Claim, Mapping, Number, Opaque, Scalar, Sequence, Snapshot, Tensor
from litbook.values import floats, units

_RAISED = ("Error", "Exception", "Warning", "Exit", "Interrupt", "StopIteration")  # ends of names
MOST = 5000  # characters of a text that are looked at: more than a record has of a value
WIDEST = 200  # characters of one line; what is longer ends in an ellipsis
SHORT_SIDE = 32  # characters up to which a claim shows all numbers of a tensor


def line(snapshot: Snapshot, unit: str | None = None) -> str:
    """One line of plain text that says what `snapshot` is, at most `WIDEST` characters.

    `unit` drives the display of numbers, also inside sequences and 0-dimensional tensors:
    `B`, `FLOP`, `FLOP/s`, `B/s`, `s`, `%` (a fraction, shown times 100), `bits` (of a tensor that keeps them,
    its bits); any other label follows the number as it stands.
    """
    return _bound(_line(snapshot, unit))


def full_text(snapshot: Snapshot, unit: str | None = None) -> str:
    """All that the record has of what is too long for one line; empty for what `line` says whole."""
    text = _line(snapshot, unit)
    return text if len(text) > WIDEST else ""


def is_cut(snapshot: Snapshot) -> bool:
    """Whether the record itself has only the beginning."""
    if isinstance(snapshot, Scalar | Opaque):
        return snapshot.cut
    return isinstance(snapshot, Sequence) and snapshot.length > len(snapshot.items)


def claim(claim: Claim, snapshots: SequenceOf[Snapshot], shown: SequenceOf[str] | None = None) -> str:
    """The claim's test with values in place of its operands: `(1, 3) == (1, 3)`.

    An operand that was never evaluated stays as source, and so does the whole test where the record
    holds no form of it. `shown` are its `sides`, for who has them already.
    """
    if len(claim.form) != len(claim.operands) + 1:
        return _bound(_visible(claim.text))
    parts = map(str.__add__, claim.form, [*(shown or sides(claim, snapshots)), ""])
    return _bound(_visible("".join(parts).strip()), 3 * WIDEST)


def sides(claim: Claim, snapshots: SequenceOf[Snapshot]) -> list[str]:
    """What stands in a claim's test for each of its operands."""
    there = [None if operand.value is None else snapshots[operand.value] for operand in claim.operands]
    texts: list[str] = []
    for operand, side in zip(claim.operands, there, strict=True):
        text = _visible(operand.text) if side is None else line(side)
        if isinstance(side, Tensor) and side.values:  # its numbers: `2×3: 0.5, 1.5, …` of many
            text = number(side.values[0])
            if side.shape:
                count = len(side.values)  # of which each takes two signs or more
                whole = count == math.prod(side.shape) and 2 * count <= SHORT_SIDE
                nested = units.grid(_numbers(side), side.shape) if whole else ""
                text = nested if nested and len(nested) <= SHORT_SIDE else _beginning(side, _numbers(side, 2))
        elif isinstance(side, Opaque) and side.type == "generator":  # `all(x > 0 for x in …)`
            text = "…"  # what it gave is gone, and its own text only names it
        texts.append(text)
    # Where shortening hides a difference, every digit stands there: `0.30000000000000004 != 0.3`.
    # So does rounding: `1.0 != 1`, of which one is 1.0000000000000002.
    read = (re.sub(r"\.0(?!\d)", "", text) for text in texts)
    alike = len({text for text, side in zip(read, there, strict=True) if side is not None})
    if alike == len(there) - there.count(None):
        return _told_apart(texts, claim, there)
    exact = [None if side is None else _exact(side) for side in there]
    hides = alike < len({side for side in exact if side is not None})
    texts = [
        digits if hides and digits is not None else text for text, digits in zip(texts, exact, strict=True)
    ]
    return _told_apart(texts, claim, there)


def _told_apart(texts: list[str], claim: Claim, there: SequenceOf[Snapshot | None]) -> list[str]:
    """The sides of a claim that says that they differ, or of one that fails; with their types if need be.

    Of two long ones that differ in the middle, what is around the place.
    """
    differs = claim.verdict == "fails" or any(word in " ".join(claim.form) for word in ("!=", "not"))
    if len(texts) != 2 or not differs or None in there:
        return texts
    a, b = texts
    if len(a) >= WIDEST <= len(b):
        whole = [_line(side, None) for side in there if side is not None]
        return _around_difference(*whole) if whole[0] != whole[1] else texts
    if a != b and _skeleton(a) == _skeleton(b):  # they look alike: `é` in one character, and in two
        return [ascii(text)[1:-1] if text.isprintable() else text for text in texts]
    kinds = [side.dtype if isinstance(side, Tensor) else side.type for side in there if side is not None]
    if a == b and kinds[0] != kinds[1]:
        return [f"{text} ({_visible(kind)})" for text, kind in zip(texts, kinds, strict=True)]
    if a == b:
        texts = [_exact(side, True) for side in there if side is not None]
    # Two objects of one text, or tensors that differ where nothing is shown of them.
    unequal = "==" in claim.form[1] if claim.verdict == "fails" else "!=" in claim.form[1]
    another = _("another")
    return [texts[0], f"{texts[1]} ({another})"] if unequal and texts[0] == texts[1] else texts


# Letters of other alphabets, dashes and quotation marks that look like those of ASCII.
_LOOKALIKES = str.maketrans(
    "АВЕКМНОРСТХаеорсухіјѕԁһΑΒΕΖΗΙΚΜΝΟΡΤΥΧον‐‑‒–—−‘’“”",
    "ABEKMHOPCTXaeopcyxijsdhABEZHIKMNOPTYXov------''\"\"",
)


def _skeleton(text: str) -> str:
    """What is left of a text for who looks at it: two that differ elsewhere cannot be told apart."""
    return unicodedata.normalize("NFKC", text).translate(_LOOKALIKES)


def _around_difference(a: str, b: str) -> list[str]:
    """Two long texts, each cut to what is around the first sign that differs."""
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, at - WIDEST // 2)
    cut = [text[start : start + WIDEST - 2] for text in (a, b)]
    return [
        f"{'…' * (start > 0)}{part}{'…' * (start + len(part) < len(text))}"
        for part, text in zip(cut, (a, b), strict=True)
    ]


def _numbers(tensor: Tensor, most: int | None = None) -> list[str]:
    """The values that the record has of a tensor; integers go without commas, which separate them."""
    return [str(value) if type(value) is int else number(value) for value in tensor.values[:most]]


def _beginning(tensor: Tensor, numbers: list[str]) -> str:
    """The sizes of a tensor, and the first of its numbers: `16×1: 0.5, 1.5, …`."""
    dots = [] if len(numbers) == math.prod(tensor.shape) else ["…"]
    return f"{'×'.join(map(str, tensor.shape))}: {', '.join([*numbers, *dots])}"


def short(snapshot: Snapshot) -> str:
    """A number as one would write it into a formula, `65536`; "" for what is none."""
    if not isinstance(snapshot, Scalar) or snapshot.number is None or isinstance(snapshot.number, bool):
        return ""
    return str(snapshot.number) if isinstance(snapshot.number, int) else number(snapshot.number)


def number(value: Number, unit: str | None = None) -> str:
    """A number as the record holds it (see `model.Number`), with its unit."""
    exact = model.python_number(value)
    return plain_line(str(value)) if exact is None else units.amount(exact, _visible(unit or ""))


def shape(tensor: Tensor) -> str:
    """The axes with their names and sizes: `[row 2, col 3]`."""
    sizes = tensor.shape
    names = tensor.axes if tensor.axes and len(tensor.axes) == len(sizes) else ("",) * len(sizes)
    axes = (f"{_visible(name)} {size}".strip() for name, size in zip(names, sizes, strict=True))
    return f"[{', '.join(axes)}]"


def many(count: int, noun: str) -> str:
    """`1 claim`, `1,200 claims`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def plain_line(text: str) -> str:
    """Any text as one line that hides nothing, bounded as a value is."""
    return _bound(_visible(text))


# ---------------------------------------------------------------------------- by kind


def _line(snapshot: Snapshot, unit: str | None) -> str:
    match snapshot:
        case Scalar() if (exact := _number_in(snapshot, unit)) is not None:
            return number(exact, unit)
        case Scalar():
            text = snapshot.text
            if snapshot.type == "torch.device":  # its repr is device(type='cpu'); its name says the same
                text = ":".join(re.findall(r"(?<=type=')[^']*|(?<=index=)\d+", text)) or text
            if snapshot.type == "fractions.Fraction":  # Fraction(3, 4) as it is printed
                text = re.sub(r"^Fraction\((-?\d+), (\d+)\)$", r"\1/\2", text)
            text = _visible(text) + ("…" if snapshot.cut else "")
            return f"{text} {_visible(unit)}" if unit else text
        case Tensor():
            spelled = list[str]()
            if snapshot.bits and unit == "bits":
                unit = None
                for pattern in snapshot.bits:
                    # Sign, exponent and fraction apart where the format is known: `0 01111011 1001101`.
                    bits = floats.read(pattern, snapshot.dtype)
                    spelled.append(" ".join(bits.fields) if bits else f"0x{_visible(pattern)}")
            dtype, device = _visible(snapshot.dtype), [_visible(snapshot.device)] * (snapshot.device != "cpu")
            if not snapshot.shape and len(snapshot.values) == 1:
                return " · ".join([number(snapshot.values[0], unit), dtype, *device, *spelled])
            parts = [f"{dtype} {shape(snapshot)}", units.size(snapshot.bytes), *device]
            if is_short(snapshot):
                parts.append(", ".join(number(value, unit) for value in snapshot.values))
            return " · ".join([*parts, *([", ".join(spelled)] if spelled else [])])
        case Sequence():
            # A comma separates the items, so integers go without it: `(1000, 1000)`.
            items = [
                _visible(item.text)
                if isinstance(item, Scalar) and item.type == "int" and not unit
                else part_line(item, unit)
                for item in snapshot.items
            ]
            return _enclose(snapshot, items)
        case Mapping():
            measured = measurement(snapshot, unit)
            return measured or _pairs(snapshot, [part_line(item, unit) for item in snapshot.items])
        case Opaque():
            text = _visible(snapshot.text) + ("…" if snapshot.cut else "") or _visible(snapshot.type)
            name = snapshot.type.rpartition(".")[2]
            if name.endswith(_RAISED) and snapshot.text and not snapshot.text.startswith(name):
                text = f"{_visible(name)}: {text}"  # of an exception the record has what it says
            return f"{text} ({_visible(snapshot.why)})" if snapshot.why else text


def _number_in(scalar: Scalar, unit: str | None) -> Number | None:
    """The number that a scalar is; of a `Fraction` or a `Decimal`, too, where a unit may scale it."""
    fractional = scalar.type in ("fractions.Fraction", "decimal.Decimal") and not scalar.cut
    if scalar.number is None and unit and fractional:
        with contextlib.suppress(ValueError, ArithmeticError):
            written = re.sub(r"^\w+\((.*)\)$", r"\1", scalar.text).replace("'", "")
            return float(fractions.Fraction(written.replace(", ", "/")))
    return scalar.number


def is_short(tensor: Tensor) -> bool:
    """Whether the one line already holds every value: up to six of them in one dimension."""
    return len(tensor.shape) == 1 and 0 < len(tensor.values) == tensor.shape[0] <= 6


def _enclose(sequence: Sequence, items: list[str]) -> str:
    """The items in the brackets of their kind, with how many there are beyond them."""
    if sequence.length > len(items):
        items = [*items, _("… {n} in all", n=count(sequence.length))]
    name, inside = sequence.type.rpartition(".")[2], ", ".join(items)
    match sequence.type:
        case "list":
            return f"[{inside}]"
        case "tuple" | "torch.Size":  # these two are equal where they hold the same
            return f"({inside}{',' if sequence.length == 1 else ''})"
        case "range":
            return _range(sequence)
        case "set" | "frozenset" if not sequence.length:
            return f"{name}()"  # {} is an empty dict
        case "set":
            return f"{{{inside}}}"
        case "frozenset":
            return f"frozenset({{{inside}}})"
    return (
        f"{_visible(name)}([{inside}])" if sequence.length else f"{_visible(name)}()"
    )  # a kind of its own: of a deque, of a dict's keys


def _range(sequence: Sequence) -> str:
    """A range as one writes it: the one with these numbers that ends right behind them."""
    numbers = [item.number for item in sequence.items if isinstance(item, Scalar)]
    whole = [n for n in numbers if isinstance(n, int)]
    if len(whole) < len(sequence.items) or (sequence.length and not whole):
        return f"range({', '.join(map(str, numbers))}, …)"
    start = whole[0] if whole else 0
    step = whole[1] - start if len(whole) > 1 else 1
    ends = [start + step * (sequence.length - 1) + (1 if step > 0 else -1)] if sequence.length else [0]
    ends = [start, *ends] if start or step != 1 else ends
    return f"range({', '.join(map(str, [*ends, step] if step != 1 else ends))})"


def part_line(item: Snapshot, unit: str | None = None) -> str:
    """One of several values: in one unit where `line` says a single value in two or three.

    Of bytes and FLOPs the exact number while it is short, else the one with a prefix. Text has no unit.
    """
    if not isinstance(item, Scalar):
        return _line(item, unit)
    exact = None if item.number is None else model.python_number(item.number)
    return _line(item, None) if exact is None else units.brief(exact, _visible(unit or ""))


def measurement(snapshot: Snapshot, unit: str | None = None) -> str:
    """`9.314 ms · spread 1.2 % · 20 × CUDA events, …`: a value, its spread, its method; else "".

    That is any record with `seconds`, `spread`, `repeats` and `method`, such as the book's `timing.Timing`.
    """
    if not isinstance(snapshot, Mapping):
        return ""
    fields = {_key(k): v for k, v in zip(snapshot.keys, snapshot.items, strict=False)}
    if not {"seconds", "spread", "repeats", "method"} <= set(fields):
        return ""
    seconds, spread = _line(fields["seconds"], unit or "s"), _line(fields["spread"], "%")
    method = _key(fields["method"]).strip("'\"")
    varied = _("spread {percent}", percent=spread)
    return f"{seconds} · {varied} · {_line(fields['repeats'], None)} × {method}"


def _pairs(mapping: Mapping, items: list[str], quoted: bool = False) -> str:
    keys = [_line(k, None) if quoted else _key(k) for k in mapping.keys]
    pairs = [f"{key} {item}" for key, item in zip(keys, items, strict=False)]
    if mapping.length > len(pairs):
        pairs.append(_("… {n} in all", n=count(mapping.length)))
    name = _visible(mapping.type.rpartition(".")[2])
    body = " · ".join(pairs)
    if name == "dict":
        return f"{{{body}}}"
    return f"{name}: {body}" if body else f"{name}()"


def _key(key: Snapshot) -> str:
    """A key without the quotes that its repr has, where it is a plain word."""
    text = _line(key, None)
    bare = text[1:-1] if len(text) > 2 and text[0] == text[-1] in "'\"" else text
    return bare if bare.isidentifier() and bare not in ("True", "False", "None") else text


# ---------------------------------------------------------------------------- text


def _bound(text: str, widest: int = WIDEST) -> str:
    return text if len(text) <= widest else text[: widest - 1] + "…"


def _visible(text: str) -> str:
    """`text` on one line; controls and direction marks, which could disguise it, are spelled out.

    So are characters that another way to write them would look like: `e` and an accent, which look like `é`.
    """
    if not unicodedata.is_normalized("NFC", text):
        text = _BEYOND_ASCII.sub(_spell_composed, text)
    if text.isprintable():
        return text
    signs = {"\n": "⏎", "\t": " ", "\r": "␍"}
    return "".join(signs.get(c) or spell(c) for c in text[:MOST]) + text[MOST:][:1]


_BEYOND_ASCII = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")  # with what an accent stands on


def _spell_composed(part: re.Match[str]) -> str:
    """As Python escapes it, where it is not what composing it gives."""
    known = unicodedata.is_normalized("NFC", part[0])
    return part[0] if known else part[0].encode("ascii", "backslashreplace").decode()


def _exact(snapshot: Snapshot, quoted: bool = False) -> str:
    """The snapshot with every digit that the record has, and keys that are texts `quoted`."""
    if isinstance(snapshot, Scalar):
        return _visible(snapshot.text) + ("…" if snapshot.cut else "")
    if isinstance(snapshot, Sequence):
        return _enclose(snapshot, [_exact(item, quoted) for item in snapshot.items])
    if isinstance(snapshot, Mapping):
        return _pairs(snapshot, [_exact(item, quoted) for item in snapshot.items], quoted)
    if isinstance(snapshot, Tensor) and snapshot.values:
        digits = [str(value) for value in snapshot.values]
        return _beginning(snapshot, digits) if snapshot.shape else digits[0]
    return line(snapshot)
