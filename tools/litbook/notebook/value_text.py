"""A recorded value -> the text that a notebook's `show` prints of the same value when it is alive."""

from __future__ import annotations

import math
import re
from typing import Any

from litbook.explore import chart
from litbook.notebook import runtime
from litbook.page.blocks import Explore
from litbook.record import model
from litbook.record.model import Live


def in_words(shown: model.Snapshot, unit: str = "", depth: int = 0) -> str:
    """A recorded value as `standin.spelled` says a live one."""
    if isinstance(shown, model.Scalar):
        if bits := re.fullmatch(r".*\((\d+) bits\)", shown.text) if shown.type == "int" else None:
            return f"an integer of {bits[1]} bits {unit}".strip()
        if shown.type == "int" or shown.number is not None:
            value = shown.text if shown.number is None else shown.number
            return runtime.number(_number(value), unit, bool(depth))
        return runtime.quote_text(shown.text, shown.cut)
    if isinstance(shown, model.Tensor):
        count = math.prod(shown.shape)
        whole = (
            shown.corner is None and len(shown.values) == count and shown.device == "cpu" and 0 < count <= 64
        )
        held = [_number(v) for v in shown.values] if whole else []
        text = runtime.tensor(shown.dtype, shown.shape, shown.device, shown.bytes, held, unit, depth)
        if unit == "bits" and shown.bits and held and count <= 8 and shown.dtype in runtime.FORMATS:
            text += runtime.bits([int(pattern, 16) for pattern in shown.bits], shown.dtype)
        return text
    if isinstance(shown, model.Opaque):
        if network := re.fullmatch(r"(\w+)\(.*, (\d+) parameters", shown.text, re.DOTALL):
            return f"{network[1]} with {int(network[2]):,} parameters"
        if re.fullmatch(r"[\w<>]+(\.[\w<>]+)+", shown.text):  # a class or function, by its module and name
            return shown.text.rpartition(".")[2]
        return runtime.quote_text(shown.text, shown.cut)
    if depth >= 3:
        return "…"
    if isinstance(shown, model.Sequence):
        texts = [in_words(item, unit, depth + 1) for item in shown.items[:12]]
        return runtime.sequence(shown.type.rpartition(".")[2], texts, shown.length)
    named = bool(shown.keys) and all(isinstance(k, model.Scalar) and k.type == "name" for k in shown.keys)
    kind = shown.type.rpartition(".")[2] if named else ""
    pairs = [
        (in_words(k, "", depth + 1), in_words(v, unit, depth + 1))
        for k, v in list(zip(shown.keys, shown.items, strict=False))[:12]
    ]
    return runtime.mapping(kind, pairs, shown.length)


def _number(value: model.Number) -> Any:
    """A number as Python has it; text that is none, as it is."""
    number = model.python_number(value)
    return value if number is None else number


def explore_text(block: Explore) -> str:
    """The block as a notebook tells it: where the author starts, and at both ends."""
    if isinstance(block.grid, Live):
        return "\n\n".join(filter(None, [block.caption and f"*{block.caption}*", block.do, block.see]))
    columns = [
        (where, dict(zip(block.grid.names, point.texts, strict=True)))
        for where, point in chart.chart(block.grid).ends()
        if not point.gap
    ]
    return runtime.explore_markdown(columns, block.do, block.caption, block.see)
