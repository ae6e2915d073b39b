"""What of a tensor can be drawn: its bits, a card of its values, the storage under it."""

from __future__ import annotations

import itertools
import math

from litbook.record.model import Snapshot, Tensor
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


def indices(tensor: Tensor) -> list[int]:
    """The storage index of every element, in row-major order of the tensor; of more than `MANY`, `[-1]`."""
    if math.prod(tensor.shape) > MANY:
        return [-1]
    places = itertools.product(*(range(size) for size in tensor.shape))
    strides = tensor.strides or ()
    return [tensor.offset + sum(i * s for i, s in zip(place, strides, strict=False)) for place in places]
