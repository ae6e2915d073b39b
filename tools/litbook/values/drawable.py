"""What of a tensor can be drawn: its bits, a card of its values, the storage under it."""

from __future__ import annotations

import itertools
import math
import struct

from msgspec.structs import replace

from litbook.record.model import Number, Snapshot, Tensor
from litbook.values import floats, formatting

SMALL_STORAGE = 16  # elements that fit side by side on a phone
MANY = 64  # elements of a view whose walk is drawn


def has_bits(tensor: Tensor) -> bool:
    """Whether the record holds bits of this tensor that are drawn."""
    return bool(tensor.bits) and tensor.dtype in floats.FORMATS


def has_card(snapshot: Snapshot) -> bool:
    """Whether a tensor has more to show than its line."""
    return (
        isinstance(snapshot, Tensor)
        and bool(snapshot.shape and snapshot.values)
        and not formatting.is_short(snapshot)
    )


def has_storage(tensor: Tensor) -> bool:
    """Whether the record holds all that a drawing of this tensor's storage needs."""
    memory, strides = tensor.memory, tensor.strides
    if memory is None or strides is None or not 0 < len(tensor.shape) <= 4:
        return False
    if not 0 < len(memory) <= SMALL_STORAGE or not 0 < math.prod(tensor.shape) <= MANY:
        return False
    return all(0 <= i < len(memory) for i in indices(tensor))


_FORMATS = {
    "float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
    "uint8": "B", "bool": "?",
}  # fmt: skip


def reread(tensor: Tensor, seen: Tensor) -> Tensor | None:
    """What `tensor` is now that its storage was `seen` through another one; None where that is not known.

    Both have their whole storage in the record. Each reads the same bytes as its own dtype.
    """
    if tensor.dtype == seen.dtype:
        cells = seen.memory
    else:
        cells = _cast(seen, tensor)
    if cells is None or tensor.memory is None or len(cells) != len(tensor.memory):
        return None
    if cells == tensor.memory:
        return tensor
    if tensor.bits or len(tensor.values) != math.prod(tensor.shape):
        return None
    return replace(tensor, memory=cells, values=tuple(cells[i] for i in indices(tensor)), stats=None)


def _cast(seen: Tensor, to: Tensor) -> tuple[Number, ...] | None:
    """The memory of one tensor as numbers of the dtype of another one."""
    ours, theirs = _FORMATS.get(seen.dtype), _FORMATS.get(to.dtype)
    if ours is None or theirs is None or seen.memory is None:
        return None
    try:
        content = struct.pack(f"={len(seen.memory)}{ours}", *seen.memory)
        numbers = struct.unpack(f"={len(content) // struct.calcsize('=' + theirs)}{theirs}", content)
    except (struct.error, OverflowError, TypeError):  # of nan, or of large integers, the record has a text
        return None
    if not all(math.isfinite(number) and abs(number) < 2**53 for number in numbers):
        return None
    return tuple(_shortest(number, theirs) for number in numbers)


def _shortest(number: Number, letter: str) -> Number:
    """The shortest decimal that is the same number in the format, as a record has it."""
    if letter in "fe" and isinstance(number, float):
        texts = (f"{number:.{digits}g}" for digits in range(1, 10))
        same = (float(text) for text in texts if _rounded(float(text), letter) == number)
        return next(same, number)
    return number


def _rounded(number: float, letter: str) -> float | None:
    try:
        rounded: float = struct.unpack(letter, struct.pack(letter, number))[0]
    except OverflowError:
        return None
    return rounded


def indices(tensor: Tensor) -> list[int]:
    """The storage index of every element, in row-major order of the tensor; of more than `MANY`, `[-1]`."""
    if math.prod(tensor.shape) > MANY:
        return [-1]
    places = itertools.product(*(range(size) for size in tensor.shape))
    strides = tensor.strides or ()
    return [tensor.offset + sum(i * s for i, s in zip(place, strides, strict=False)) for place in places]
