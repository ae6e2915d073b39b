"""Tensors of torch and arrays of numpy: where they lie, a corner of their values, their statistics.

One class holds what the two have in common, and one class for each says how it is read. This module knows
shapes, strides and devices. It does not know what contains a tensor, only what may still be spent on it.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from litbook.errors import Stopped
from litbook.record import model
from litbook.record.limits import (
    BLOCK,
    COLUMNS,
    CORNER,
    GLIMPSED,
    LEADING,
    MEMORY,
    NESTED_READ,
    PATTERNS,
    ROWS,
    TYPE_NAME,
    VALUES,
    WHOLE,
)
from litbook.snapshot import libraries
from litbook.snapshot.safe_types import clean_text, name_of
from litbook.snapshot.statistics import Reader, join_parts, numbers, stats, stats_of
from litbook.snapshot.storages import Storages


class TensorBudget:
    """What one snapshot may still spend on tensors, and what was said about the one that it is of."""

    def __init__(self, storages: Storages | None, axes: tuple[str, ...] | None) -> None:
        self.storages = storages if storages is not None else Storages()
        self.axes = axes
        self.bits = False  # whether to keep the bits of floats
        self.brief = False  # whether only what is small and in main memory is read
        self._values = VALUES
        self._reading = math.inf

    def nest(self) -> None:
        """From here on tensors are inside a container: nobody named their axes, and reading has a budget."""
        self.axes, self.bits = None, False
        self._reading = min(self._reading, NESTED_READ)

    def axes_of(self, rank: int) -> tuple[str, ...] | None:
        return tuple(self.axes) if self.axes is not None and len(self.axes) == rank else None

    def may_read(self, count: int) -> bool:
        """Whether statistics may read `count` more elements."""
        self._reading -= count
        return self._reading >= 0

    def may_show(self, count: int) -> bool:
        """Whether `count` more tensor values fit into this snapshot."""
        if count > self._values:
            return False
        self._values -= count
        return True


def tensor(torch: libraries.Torch, value: Any, kind: type, allowance: TensorBudget) -> model.Snapshot:
    """The snapshot of a torch tensor, to be taken within `torch.quiet()`."""
    innermost, functorch = value, torch.c._functorch
    # Inside `torch.func.grad` the values are in a tensor within. (Within vmap there are none to see.)
    while functorch.is_gradtrackingtensor(innermost):
        innermost = functorch.get_unwrapped(innermost)
    shape = _read_or((None,), torch.shape, innermost)
    if any(type(n) is not int for n in shape):  # nested, or traced with symbolic sizes
        dtype = str(torch.dtype(innermost)).removeprefix("torch.")
        return model.Opaque(name_of(kind), f"{dtype} tensor", why="it has no fixed shape")
    grad = _read_or(False, torch.requires_grad, value)
    return _TorchReader(torch, innermost, allowance).snapshot(type=name_of(kind), requires_grad=grad)


def array(value: Any, kind: type, allowance: TensorBudget) -> model.Tensor:
    """The snapshot of a numpy array, with sizes and strides in elements as for tensors."""
    with libraries.numpy().errstate(all="ignore"):
        return _NumpyReader(value, allowance).snapshot(type=name_of(kind))


def _read_or(default: Any, read: Callable[..., Any], *arguments: Any) -> Any:
    """`read(*arguments)`, or `default` where this kind of tensor has no such thing."""
    try:
        return read(*arguments)
    except Stopped:
        raise
    except Exception:
        return default


# ---------------------------------------------------------------------------- what both have


class _ElementReader(ABC):
    """One tensor or array being read: its metadata at first, then all that takes looking at elements."""

    meta: model.Tensor  # without values
    itemsize: int
    is_float: bool
    is_complex: bool
    narrow: bool  # floats of at most 32 bits, or pairs of them
    alike: bool  # whether the storage holds just such elements: of the same dtype, not conjugated
    library: Any  # the module whose `Reader` reads it, torch or numpy
    allowance: TensorBudget

    @abstractmethod
    def _is_readable(self) -> bool:
        """Whether there are numbers in reach."""

    @abstractmethod
    def _strided_elements(self) -> tuple[Any, tuple[int, ...]]:
        """The elements as a plain tensor or array, and its strides in whatever unit."""

    @abstractmethod
    def _storage_elements(self) -> Any:
        """All elements of the storage in its own order."""

    @abstractmethod
    def _list(self, piece: Any) -> list[Any]:
        """The elements of a piece of `_strided_elements`, row-major, as Python numbers."""

    @abstractmethod
    def _bytes_of(self, piece: Any) -> bytes:
        """The same, as they lie in memory."""

    def _host_piece(self, piece: Any) -> Any:
        """A piece of `_strided_elements`, where the reader can read it."""
        return piece

    def snapshot(self, **more: Any) -> model.Tensor:
        """The metadata with `more` of it, values, and statistics."""
        values, corner, statistics = self._values()
        memory = _read_or(None, self._memory, values if corner is None else ())
        bits = _read_or(None, self._bits) if self.allowance.bits else None
        return replace(
            self.meta, **more, stats=statistics, corner=corner, values=values, memory=memory, bits=bits
        )

    def _values(self) -> tuple[tuple[model.Number, ...], tuple[int, ...] | None, model.Stats | None]:
        """Values, how far they reach (None: they are all there are), and statistics."""
        count = math.prod(self.meta.shape)
        # A glimpse leaves unread what is much, or not in main memory.
        unread = self.allowance.brief and (count > GLIMPSED or self.meta.device != "cpu")
        if not count or unread or not _read_or(False, self._is_readable):
            return (), None, None
        most = CORNER // 2 if self.is_complex else CORNER  # a complex value is two numbers
        corner: list[int] = []
        if count > WHOLE:  # columns and rows first, then the leading axes from the inside
            for back, n in enumerate(reversed(self.meta.shape)):
                reach = (COLUMNS, ROWS)[back] if back < 2 else LEADING
                corner.insert(0, min(n, reach, max(most // math.prod(corner), 1)))
        raw = _read_or(None, self._first, corner)
        shown = raw is not None and self.allowance.may_show(len(raw))
        statistics = _read_or(None, self._statistics, None if corner else raw)
        kept = numbers(raw, self.narrow) if shown else ()
        return kept, tuple(corner) if shown and corner else None, statistics

    def _first(self, corner: list[int]) -> list[Any]:
        elements, _ = self._strided_elements()
        return self._list(elements[tuple(map(slice, corner))] if corner else elements)

    def _memory(self, values: tuple[model.Number, ...]) -> tuple[model.Number, ...] | None:
        """The whole storage in its own order, if it is small. `values` are all of the tensor's, or none."""
        count = (self.meta.storage_bytes or 0) // self.itemsize
        if self.allowance.brief and self.meta.device != "cpu":
            return None
        if not (
            0 < count <= MEMORY and self.alike and self._is_readable() and self.allowance.may_show(count)
        ):
            return None
        if len(values) == count and self.meta.contiguous:
            return values
        return numbers(self._list(self._storage_elements()), self.narrow)

    def _bits(self) -> tuple[str, ...] | None:
        """The bits of the first elements of the last axis, or of all elements where they are few."""
        count, shape = math.prod(self.meta.shape), self.meta.shape
        if not (self.is_float and count and self._is_readable()):
            return None
        first = shape if count <= PATTERNS else (*[1] * (len(shape) - 1), min(shape[-1], PATTERNS))
        elements, _ = self._strided_elements()
        raw, size = self._bytes_of(elements[tuple(map(slice, first))]), self.itemsize
        patterns = (int.from_bytes(raw[i : i + size], sys.byteorder) for i in range(0, len(raw), size))
        return tuple(f"{pattern:0{2 * size}x}" for pattern in patterns)

    def _statistics(self, raw: list[Any] | None) -> model.Stats | None:
        """From `raw` where that is the whole tensor, else from reading it; None if neither is sensible."""
        if self.is_complex or self.allowance.brief:
            return None
        if raw is not None:
            return stats(stats_of(raw), 1, self.narrow)
        # The same elements, each once: axes of stride 0 repeat them. The longest stride comes outermost, so
        # that a transposed tensor is read from its beginning to its end.
        once, strides = self._strided_elements()
        repeat = math.prod(n for n, s in zip(once.shape, strides, strict=True) if not s)
        once = once[tuple(slice(0, 1) if not s else slice(None, None, -1 if s < 0 else 1) for s in strides)]
        order = sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))
        once = once.transpose(order) if hasattr(once, "flags") else once.permute(order)
        count = math.prod(once.shape)
        if count * self.itemsize > (self.meta.storage_bytes or 0):
            return None  # windows that overlap: more elements than memory
        if not self.allowance.may_read(count):
            return None
        wide = self.library.float32 if self.narrow else self.library.float64
        reader = Reader(self.library, wide if self.is_float else None, min(count, BLOCK))
        parts = (reader.read_block(self._host_piece(piece)) for piece in _pieces(once))
        return stats(join_parts(parts), repeat, self.narrow)


def _pieces(array: Any) -> Iterator[Any]:
    """`array` in pieces of at most `BLOCK` elements, split along its outermost axes."""
    inner = math.prod(array.shape[1:])
    if math.prod(array.shape) <= BLOCK:
        yield array
    elif inner > BLOCK:
        for row in array:
            yield from _pieces(row)
    else:
        step = BLOCK // inner
        for i in range(0, array.shape[0], step):
            yield array[i : i + step]


# ---------------------------------------------------------------------------- torch


class _TorchReader(_ElementReader):
    """A torch tensor. What its kind does not have is left at its default, field by field."""

    def __init__(self, torch: libraries.Torch, tensor: Any, allowance: TensorBudget) -> None:
        self.torch, self.tensor, self.allowance = torch, tensor, allowance
        base, dtype = torch.base, torch.dtype(tensor)
        self.itemsize = dtype.itemsize
        self.is_float, self.is_complex = dtype.is_floating_point, dtype.is_complex
        self.narrow = dtype.itemsize <= (8 if self.is_complex else 4 if self.is_float else 0)
        self.alike = not (base.is_conj(tensor) or base.is_neg(tensor))
        name = str(dtype).removeprefix("torch.")
        # Torch has no reductions of the unsigned integers that it took over from numpy.
        self.library = libraries.numpy() if name in ("uint16", "uint32", "uint64") else torch.module
        is_strided = torch.layout(tensor) is torch.module.strided
        self.storage = _read_or(None, self._storage) if is_strided else None
        strides: tuple[int, ...] | None = _read_or(None, base.stride, tensor) if is_strided else None
        self.strides = strides if strides is not None and all(type(s) is int for s in strides) else None
        shape = tuple(torch.shape(tensor))
        self.meta = model.Tensor(
            type="",
            dtype=name,
            shape=shape,
            strides=self.strides,
            offset=_read_or(0, base.storage_offset, tensor),
            device=str(torch.device(tensor)),
            bytes=self._bytes(),
            storage=_read_or(None, allowance.storages.number, self.storage),
            storage_bytes=self.storage.nbytes() if self.storage is not None else None,
            contiguous=self.strides is not None and _read_or(False, base.is_contiguous, tensor),
            axes=allowance.axes_of(len(shape)),
        )

    def _storage(self) -> Any:
        storage = self.torch.base.untyped_storage(self.tensor)
        storage.data_ptr()  # raises for what only looks like a storage, in wrappers around other tensors
        return storage

    def _bytes(self) -> int:
        """Elements times their width; of a sparse tensor, what its parts take."""
        parts = _SPARSE.get(str(self.torch.layout(self.tensor)))
        if not parts:
            return int(self.torch.base.numel(self.tensor)) * self.itemsize
        tensors = [getattr(self.torch.base, part)(self.tensor) for part in parts]
        return sum(int(t.numel()) * int(t.element_size()) for t in tensors)

    def _is_readable(self) -> bool:
        """Whether there is memory behind this tensor, and all of it is there."""
        if self.storage is None or self.strides is None or self.torch.is_quantized(self.tensor):
            return False
        device = self.storage.device.type
        if device == "meta" or not self.storage.data_ptr():
            return False
        if getattr(getattr(self.torch.module, device, None), "is_current_stream_capturing", bool)():
            return False  # reading back waits for the device, which would break the capture of a CUDA graph
        end = self.meta.offset + _span(self.meta.shape, self.strides)
        return bool(end * self.itemsize <= self.storage.nbytes())

    def _strided_elements(self) -> tuple[Any, tuple[int, ...]]:
        strides = self.strides or ()
        return self.torch.module.as_strided(self.tensor, self.meta.shape, strides, self.meta.offset), strides

    def _storage_elements(self) -> Any:
        count = (self.meta.storage_bytes or 0) // self.itemsize
        return self.torch.module.as_strided(self.tensor, (count,), (1,), 0)

    def _list(self, piece: Any) -> list[Any]:
        return list(self._to_host(piece).reshape(-1).tolist())

    def _bytes_of(self, piece: Any) -> bytes:
        torch = self.torch.module
        here = (
            torch.resolve_neg(self._to_host(piece)).reshape(-1).clone(memory_format=torch.contiguous_format)
        )
        return bytes(here.view(torch.uint8).tolist())

    def _host_piece(self, piece: Any) -> Any:
        if self.torch.device(piece).type != "cpu" and _span(piece.shape, piece.stride()) > 16 * piece.numel():
            raise ValueError("too thinly spread over the device's memory to be copied")
        here = self.torch.module.resolve_neg(self._to_host(piece, 16 * BLOCK))
        if self.library is self.torch.module:
            return here
        return here.clone().numpy()  # a clone: numpy() forbids the lecture's own storage to be resized

    def _to_host(self, view: Any, most: int = BLOCK) -> Any:
        """`view` in main memory, without allocating on the device.

        A copy of a strided view would first be packed on the device, and a lecture that counts peak memory
        would count that too. So the contiguous run around it is copied, or one for each row if it is long.
        """
        torch = self.torch.module
        if self.torch.device(view).type == "cpu":
            return view
        span = _span(view.shape, view.stride())
        if span <= most or not view.ndim:
            run = self._copy_to_host(torch.as_strided(view, (span,), (1,), view.storage_offset()))
            return torch.as_strided(run, view.shape, view.stride(), 0)
        return torch.stack([self._to_host(row, most) for row in torch.unbind(view)])

    def _copy_to_host(self, run: Any) -> Any:
        target = self.torch.module.empty(run.shape, dtype=self.torch.dtype(run), device="cpu")
        return target.copy_(run)


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last, both included, in memory."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


_SPARSE = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


# ---------------------------------------------------------------------------- numpy


class _NumpyReader(_ElementReader):
    """A numpy array, and the array at the end of its chain of views, which owns the memory."""

    def __init__(self, value: Any, allowance: TensorBudget) -> None:
        self.library, self.allowance = libraries.numpy(), allowance
        base = self.library.ndarray
        owner = value
        while issubclass(type(within := base.base.__get__(owner)), base):
            owner = within
        # Subclasses are shed.
        self.array, self.owner = array, whole = base.view(value, base), base.view(owner, base)
        letter, self.itemsize = array.dtype.kind, array.itemsize
        self.is_number = letter in "biufc" and array.dtype.fields is None
        self.is_float, self.is_complex = letter == "f", letter == "c"
        self.narrow = array.itemsize <= {"f": 4, "c": 8}.get(letter, 0)
        self.alike = whole.dtype == array.dtype and (whole.flags.c_contiguous or whole.flags.f_contiguous)
        (start, size), (origin, storage_size) = libraries.array_memory(array), libraries.array_memory(whole)
        strides = None  # of a field of a record array, say
        if self.itemsize and not any(s % self.itemsize for s in array.strides):
            strides = tuple(s // self.itemsize for s in array.strides)
        self.meta = model.Tensor(
            type="",
            dtype=clean_text(str(array.dtype.name), TYPE_NAME)[0],
            shape=array.shape,
            strides=strides,
            offset=(start - origin) // self.itemsize if array.size and self.itemsize else 0,
            bytes=size,
            storage=_read_or(None, allowance.storages.number, owner),
            storage_bytes=storage_size,
            contiguous=array.flags.c_contiguous,
            axes=allowance.axes_of(array.ndim),
        )

    def _is_readable(self) -> bool:
        return self.is_number

    def _strided_elements(self) -> tuple[Any, tuple[int, ...]]:
        return self.array, self.array.strides

    def _storage_elements(self) -> Any:
        return self.owner.ravel(order="K")

    def _list(self, piece: Any) -> list[Any]:
        if (self.is_float or self.is_complex) and not self.narrow:  # tolist() leaves a longdouble one
            piece = piece.astype("c16" if self.is_complex else "f8", copy=False)
        return list(piece.ravel().tolist())

    def _bytes_of(self, piece: Any) -> bytes:
        return bytes(piece.astype(piece.dtype.newbyteorder("="), copy=False).tobytes())
