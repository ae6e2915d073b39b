"""Numbers of tensors: as JSON holds them, and their statistics in one pass that loses no digits.

This module knows lists of Python numbers, and flat blocks of torch or numpy, which agree in every operation
used here. It does not know where the blocks lie in memory, nor which tensor they are from.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from litbook.record import model

# ---------------------------------------------------------------------------- as JSON holds them


def numbers(values: list[Any], narrow: bool) -> tuple[model.Number, ...]:
    """Values as JSON holds them; `narrow` says that they are floats of at most 32 bits, or pairs of them."""
    if values and type(values[0]) is complex:
        if narrow:
            values = [*map(complex, shortest([v.real for v in values]), shortest([v.imag for v in values]))]
        return tuple(map(repr, values))
    return tuple(map(model.number, shortest(values) if narrow else values))


def shortest(values: list[float]) -> list[float]:
    """Each value, a float32, as the shortest decimal that reads back to the same float32.

    So 0.1, not 0.10000000149011612. Six digits always survive (FLT_DIG, C 5.2.4.2.2), except in
    subnormals; nine are always enough.
    """
    digits = 1 if any(0 < abs(v) < 2**-126 for v in values) else 6
    short = [float(f"{v:.{digits}g}") for v in values]
    for more in range(digits + 1, 10):
        wrong = [i for i, read in enumerate(array("f", short)) if read != values[i]]
        if not wrong:
            break
        for i in wrong:
            short[i] = float(f"{values[i]:.{more}g}")
    return short


# ---------------------------------------------------------------------------- statistics


class PartialStats(NamedTuple):
    """What one block of elements contributes. NaN and inf are counted, and left out of all the rest."""

    n: int
    low: Any = None
    high: Any = None
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from `mean`
    total: int | None = None  # exact sum, of integers
    nan: int = 0
    inf: int = 0


def stats_of(values: list[Any]) -> PartialStats:
    """The part of a short list of Python numbers."""
    finite = [v for v in values if not isinstance(v, float) or math.isfinite(v)]
    nan = sum(v != v for v in values)
    inf = len(values) - len(finite) - nan
    if not finite:
        return PartialStats(0, nan=nan, inf=inf)
    mean = math.fsum(finite) / len(finite)
    squares = math.fsum((v - mean) * (v - mean) for v in finite)
    total = None if isinstance(finite[0], float) else sum(finite)
    return PartialStats(len(finite), min(finite), max(finite), mean, squares, total, nan, inf)


def join_parts(parts: Iterable[PartialStats]) -> PartialStats:
    """All parts as one: means and squares after Chan, Golub and LeVeque (1979), which loses no digits."""
    a, nan, inf = PartialStats(0), 0, 0
    for b in parts:
        nan, inf = nan + b.nan, inf + b.inf
        if not a.n or not b.n:
            a = a if a.n else b
            continue
        n, apart = a.n + b.n, b.mean - a.mean
        a = PartialStats(
            n,
            min(a.low, b.low),
            max(a.high, b.high),
            a.mean + apart * b.n / n,
            a.squares + b.squares + apart * apart * a.n * b.n / n,
            None if a.total is None or b.total is None else a.total + b.total,
        )
    return a._replace(nan=nan, inf=inf)


def stats(whole: PartialStats, repeat: int, narrow: bool) -> model.Stats:
    """Every element counts `repeat` times. `std` is the population's: divided by the count, as numpy does."""
    nan, inf = whole.nan * repeat, whole.inf * repeat
    if not whole.n:
        return model.Stats(nan=nan, inf=inf)
    mean = whole.mean if whole.total is None else whole.total / whole.n
    std: Any = None if isinstance(whole.low, bool) else math.sqrt(max(whole.squares, 0.0) / whole.n)
    low, high = whole.low, whole.high
    if narrow:  # no more digits than the elements have: the rest depends on the order of summation
        low, high, mean, std = shortest(list(array("f", [low, high, mean, std])))
    return model.Stats(model.number(low), model.number(high), _finite(mean), _finite(std), nan, inf)


def _finite(value: float | None) -> float | None:
    """None where squares or sums overflowed."""
    return value if value is not None and math.isfinite(value) else None


class Reader:
    """Reads blocks for statistics, always into the same scratch memory.

    `library` is the module torch or numpy. `work` is the dtype that floats are computed in, because not
    every dtype has reductions; integers and bools are exact, need none, and give None.
    """

    def __init__(self, library: Any, work: Any, most: int) -> None:
        self.library, self.work = library, work
        empty = partial(library.empty, most, device="cpu")  # numpy knows `device` since 2.0
        self.scratch = empty(dtype=work or library.float64)
        self.stage = empty(dtype=work) if work else None
        self.guess: float | None = None  # the last block's mean: close enough, and saves a pass

    def read_block(self, block: Any) -> PartialStats:
        """What `block` contributes; it has at least one element and at most as many as were announced."""
        if self.stage is None or block.dtype == self.work:  # most are of the working dtype already
            flat = block.reshape(-1)
        else:
            flat = self.stage[: math.prod(block.shape)]
            flat.reshape(block.shape)[...] = block
        low, high = flat.min().item(), flat.max().item()
        if not -math.inf < low <= high < math.inf:
            finite, inf = flat[self.library.isfinite(flat)], int(self.library.isinf(flat).sum())
            part = self.read_block(finite) if len(finite) else PartialStats(0)
            return part._replace(nan=len(flat) - len(finite) - inf, inf=inf)
        total = None
        if not self.work:  # the exact sum: in two halves where 64 bits might not hold it
            fits = max(abs(low), abs(high)) * len(flat) < 2**63
            upper, lower = (0, flat) if fits else (int((flat >> 32).sum()) << 32, flat & 0xFFFFFFFF)
            total = upper + int(lower.sum())
        # Mean, and squares about it, from distances to a first guess: so few digits cancel.
        about = self.guess if total is None else total / len(flat)
        about = flat.mean().item() if about is None else about
        apart = self.scratch[: len(flat)]
        if flat.dtype == apart.dtype:
            self.library.subtract(flat, about, out=apart)
        else:
            apart[...] = flat
            apart -= about
        # Not dot(): BLAS adds up in a row and lost 5 digits of a float32 variance; sum() adds pairwise.
        left = apart.sum().item()
        apart *= apart
        mean, squares = about + left / len(flat), apart.sum().item() - left * left / len(flat)
        if not math.isfinite(squares) and self.work is self.library.float32:  # a square overflowed
            return Reader(self.library, self.library.float64, len(flat)).read_block(flat)
        self.guess = mean
        return PartialStats(len(flat), low, high, mean, squares, total)
