"""Which memory is which: a number for every storage of a run.

This module knows storages of torch and arrays of numpy that own their memory: where each begins, where it
ends, and whether it still lives. It knows nothing of tensors, shapes or values.
"""

from __future__ import annotations

import weakref
from typing import Any

from litbook.snapshot.libraries import array_memory, is_array
from litbook.snapshot.safe_types import is_one_of, name_of


class Storages:
    """Numbers the storages of one run from 1, so that shared memory shows as an equal number.

    Each number is held with a weak reference: the storage may die, and whatever later lives at the same
    address gets a new number. Memory that torch and numpy share (`from_numpy`, `.numpy()`, DLPack) has
    one number.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.taken = 0  # the last number that was given
        self._borrowed = False  # whether any memory so far may have two owners

    def number(self, storage: Any) -> int:
        """The number of a torch storage, or of the numpy array that owns its memory.

        Raises `TypeError` for anything else.
        """
        # Since torch 2.1 the Python object of a storage lives as long as the storage: it can stand for it.
        key = id(storage)
        ref, number = self._numbers.get(key, (None, 0))
        if ref is None or ref() is not storage:
            if not (is_array(type(storage)) or is_one_of(type(storage), {"torch": "UntypedStorage"})):
                raise TypeError(f"{name_of(type(storage))} is no storage")
            # A live storage in the same memory has its number already. Only borrowed memory has two owners:
            # torch can resize what it allocated itself, and nothing else.
            self._borrowed = self._borrowed or is_array(type(storage)) or not storage.resizable()
            here, number = _region(storage) if self._borrowed else None, self.taken + 1
            for living, other in list(self._numbers.values()) if here else ():
                there = _region(living())
                if here and there and there[0] == here[0] and there[1] < here[2] and here[1] < there[2]:
                    number = other
                    break
            self.taken = max(self.taken, number)
            self._numbers[key] = weakref.ref(storage, lambda _: self._numbers.pop(key, None)), number
        return number


def _region(storage: Any) -> tuple[str, int, int] | None:
    """Device, first address and end of the memory; None where there is none."""
    if storage is None:
        return None
    if is_array(type(storage)):
        device, (start, size) = "cpu", array_memory(storage)
    else:
        device, start, size = str(storage.device), storage.data_ptr(), storage.nbytes()
    return (device, start, start + size) if start and size else None
