"""Whether a recording agrees with itself: what no run writes was changed by hand, or by a merge.

In go a recording's text and the record that was read of it; `check` raises a `RecordError` for marks of a
merge, keys that stand twice, dates that are none or lie ahead, numbers that are not what their text says, and
verdicts that do not follow from their operands; these compare values of Python's own types alone. Whatever
else was changed breaks the `seal` of its section. A seal is no signature: who forges a recording forges it.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from litbook.errors import RecordError
from litbook.record import encoding
from litbook.record.model import (
    Claim,
    Environment,
    Record,
    Scalar,
    Section,
    Sequence,
    Snapshot,
    python_number,
)
from litbook.record.model import Mapping as MappingSnapshot
from litbook.record.ranks import ranks_of

MERGE = "has marks of a merge"
_MARK = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7})(?: |$)", re.MULTILINE)
AHEAD = timedelta(days=1)  # clocks differ
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip
_WORDS = {"True": True, "False": False, "None": None}
_CONTAINERS: Mapping[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple}
_WRAPPED = re.compile(r"np\.(?:float|int|uint)\d+\((.*)\)|np\.(True|False)_")


class _Unknown(Exception):
    """A value that a recording does not hold whole."""


def merge_marks(text: str) -> bool:
    """Whether a text has marks that a merge has left: in JSON as it is written none begins a line."""
    return _MARK.search(text) is not None


def check(text: str, record: Record, shown: str) -> None:
    """Raise `RecordError`, naming the file as it is `shown`, where the recording contradicts itself."""
    try:
        json.loads(text, object_pairs_hook=_without_doubles)
    except ValueError as error:
        raise RecordError(f"{shown} was changed by hand or damaged: {error}") from None
    environments = [record.environment, *(section.run for section in record.sections if section.run)]
    why = next(filter(None, map(_date, environments)), "")
    why = why or next(filter(None, map(_section, record.sections)), "")
    if why:
        raise RecordError(f"{shown} was changed by hand or damaged: {why}")


def seal(section: Section, environment: Environment) -> str:
    """The hash of a section's entry and of the environment that it ran in, but for where it stands.

    So lines above it may come and go, on another branch as well.
    """
    bare = encoding.text_of(replace(section, seal="", file=0, first=0, run=None))
    text = f"{bare}\n{encoding.text_of(section.run or environment)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def sealed(record: Record) -> Record:
    """The record with a seal on each section."""
    sections = (replace(entry, seal=seal(entry, record.environment)) for entry in record.sections)
    return replace(record, sections=tuple(sections))


def check_seals(record: Record, shown: str) -> None:
    """Raise `RecordError` where a section is not as it was recorded.

    Nothing is said where none has a seal: the recording is from before there were any.
    """
    for section in record.sections if any(entry.seal for entry in record.sections) else ():
        if section.seal != seal(section, record.environment):
            what = f"section {section.key!r:.80} is not what was recorded there"
            raise RecordError(f"{shown} was changed by hand or damaged: {what}")


def _without_doubles(pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    for key in keys if len(keys) > len({*keys}) else ():
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r:.80} stands twice in one object")


def _date(environment: Environment) -> str:
    try:
        date = datetime.strptime(environment.date, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return f"{environment.date!r:.60} is no date"
    return f"its date, {environment.date}, lies ahead" if date > datetime.now(UTC) + AHEAD else ""


def _section(section: Section) -> str:
    """What contradicts itself in a section; nothing where nothing does."""
    for shot in section.snapshots:
        for scalar in _scalars(shot):
            if not _agrees(scalar):
                return f"a value of {section.key!r} says {scalar.text:.60} and is {scalar.number!r:.60}"
    for entry in ranks_of(section):
        for claim in entry.claims:
            for side in claim.operands:
                operand = None if side.value is None else entry.snapshots[side.value]
                if operand and not _is_literal(side.text, operand):
                    return f"a claim of {section.key!r} has {side.text:.60}, which is another value there"
            if (true := _truth(claim, entry.snapshots)) is not None and true != (claim.verdict == "holds"):
                is_true = "true" if true else "false"
                return f"a claim of {section.key!r} {claim.verdict}, and is {is_true}: {claim.text:.100}"
    return ""


def _scalars(shot: Snapshot) -> Iterator[Scalar]:
    todo = [shot]
    for one in todo:
        match one:
            case Scalar():
                yield one
            case Sequence(items=items):
                todo += items
            case MappingSnapshot(keys=keys, items=items):
                todo += (*keys, *items)


def _agrees(scalar: Scalar) -> bool:
    """Whether text and number of a scalar are one value."""
    if scalar.number is None or scalar.cut:
        return True
    wrapped = _WRAPPED.fullmatch(scalar.text)
    if scalar.type not in ("int", "float", "bool") and not wrapped:
        return True  # an enumeration, say, whose text is its name
    text = (wrapped[1] or wrapped[2]) if wrapped else scalar.text
    said = _WORDS[text] if text in _WORDS else python_number(text)
    held = python_number(scalar.number)
    return said == held or (said != said and held != held) or (bool(wrapped) and _near(said, held))


def _near(said: Any, held: Any) -> bool:
    """A short float's text has as many digits as it needs, its number all."""
    return isinstance(said, float) and isinstance(held, float) and abs(said - held) <= 1e-3 * abs(held)


def _truth(claim: Claim, snapshots: tuple[Snapshot, ...]) -> bool | None:
    """What a claim of comparisons comes to, from its operands; None where they do not tell."""
    if claim.verdict not in ("holds", "fails") or len(claim.form) < 3:
        return None
    first, *between, last = claim.form
    signs = [sign.strip() for sign in between]
    if first or last or not {*signs} <= {*_OPERATORS}:
        return None
    try:
        texts = {*signs} <= {"==", "!="}  # of which nothing else is known
        sides = [_value(snapshots[side.value], texts) for side in claim.operands if side.value is not None]
        if len(sides) != len(signs) + 1:
            return None
        return all(_OPERATORS[sign](a, b) for sign, a, b in zip(signs, sides, sides[1:], strict=False))
    except (_Unknown, TypeError):
        return None


def _is_literal(text: str, shot: Snapshot) -> bool:
    """Whether a snapshot is what its text says, where this is a number, or a list of these."""
    said = _WORDS[text] if text in _WORDS else python_number(text)
    try:
        if text.startswith("["):
            said = json.loads(text)
        return said is None or said == _value(shot, texts=False) or said != said
    except (ValueError, _Unknown):
        return True


def _value(shot: Snapshot, texts: bool) -> Any:
    """The value of a snapshot that holds it whole, of Python's own types; of `texts` a stand-in."""
    match shot:
        case Scalar(type="int" | "float" | "bool" | "NoneType", text=text, cut=False):
            number = _WORDS[text] if text in _WORDS else python_number(text)
            if number is not None or text == "None":
                return number
        case Scalar(type="str", text=text, cut=False) if texts:
            return "str", text
        case Sequence(type=name, length=length, items=items) if name in _CONTAINERS and len(items) == length:
            return _CONTAINERS[name](_value(item, texts) for item in items)
        case MappingSnapshot(type="dict", length=length, keys=keys, items=items) if len(items) == length:
            return {_value(key, texts): _value(item, texts) for key, item in zip(keys, items, strict=True)}
    raise _Unknown
