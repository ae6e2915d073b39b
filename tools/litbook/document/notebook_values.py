"""A recorded value -> the text that a notebook's `show` prints of the same value when it is alive."""

from __future__ import annotations

import math
import re
from typing import Any

from litbook.document import standin
from litbook.record import model


def in_words(shown: model.Snapshot, unit: str = "", depth: int = 0) -> str:
    """A recorded value as `standin.spelled` says a live one."""
    if isinstance(shown, model.Scalar):
        if bits := re.fullmatch(r".*\((\d+) bits\)", shown.text) if shown.type == "int" else None:
            return f"an integer of {bits[1]} bits {unit}".strip()
        if shown.type == "int" or shown.number is not None:
            value = shown.text if shown.number is None else shown.number
            return standin.number(_number(value), unit, bool(depth))
        return standin.quoted(shown.text, shown.cut)
    if isinstance(shown, model.Tensor):
        count = math.prod(shown.shape)
        whole = (
            shown.corner is None and len(shown.values) == count and shown.device == "cpu" and 0 < count <= 64
        )
        held = [_number(v) for v in shown.values] if whole else []
        text = standin.tensor(shown.dtype, shown.shape, shown.device, shown.bytes, held, unit, depth)
        if unit == "bits" and shown.bits and held and count <= 8 and shown.dtype in standin.FORMATS:
            text += standin.bits([int(pattern, 16) for pattern in shown.bits], shown.dtype)
        return text
    if isinstance(shown, model.Opaque):
        if network := re.fullmatch(r"(\w+)\(.*, (\d+) parameters", shown.text, re.DOTALL):
            return f"{network[1]} with {int(network[2]):,} parameters"
        if re.fullmatch(r"[\w<>]+(\.[\w<>]+)+", shown.text):  # a class or function, by its module and name
            return shown.text.rpartition(".")[2]
        return standin.quoted(shown.text, shown.cut)
    if depth >= 3:
        return "…"
    if isinstance(shown, model.Sequence):
        texts = [in_words(item, unit, depth + 1) for item in shown.items[:12]]
        return standin.sequence(shown.type.rpartition(".")[2], texts, shown.length)
    named = bool(shown.keys) and all(isinstance(k, model.Scalar) and k.type == "name" for k in shown.keys)
    kind = shown.type.rpartition(".")[2] if named else ""
    pairs = [
        (in_words(k, "", depth + 1), in_words(v, unit, depth + 1))
        for k, v in list(zip(shown.keys, shown.items, strict=False))[:12]
    ]
    return standin.mapping(kind, pairs, shown.length)


def _number(value: model.Number) -> Any:
    """A number as Python has it; text that is none, as it is."""
    number = model.python_number(value)
    return value if number is None else number
