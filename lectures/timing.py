"""How long a call takes: warm up until it is stable, repeat, report the median and the spread.

A GPU is timed with CUDA events, which the device itself records before and after each call. The
CPU only queues the work, so a host clock read without waiting would measure the queueing. A CPU is
timed with `perf_counter`.

What is timed is the caller's business, and so is the cache: a call that reads the same small
buffers every time finds them in the cache from the second time on. To time memory instead, hand in
a call that walks through several buffers, together larger than the cache (`itertools.cycle` over
them does it). Use random data: a product of zeros can run faster than any real one.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

import torch

LEAST = {"cpu": 3, "cuda": 20}  # fewest repeats accepted, by type of device
WINDOW = 3  # calls in a row that have to agree before the warm-up ends


@dataclass(frozen=True)
class Timing:
    """What was measured, and how."""

    seconds: float  # median over the repeats, of one call
    spread: float  # interquartile range divided by the median
    repeats: int
    device: str  # "cpu", or the name that CUDA reports
    method: str  # the clock, and how the warm-up went


def time_call(
    call: Callable[[], object],
    device: str | torch.device = "cpu",
    repeats: int = 20,
    tolerance: float = 0.1,
    patience: int = 50,
) -> Timing:
    """Time one `call` whose work runs on `device`.

    The warm-up ends when three calls in a row differ by at most `tolerance` of their median, or
    after `patience` calls; `method` says which. Then `repeats` more calls are timed one by one.

    Raises ValueError for a device that is neither CPU nor CUDA, for fewer than 20 repeats on a GPU
    or 3 on a CPU, and for a `patience` too short to see three calls.
    """
    where = torch.device(device)
    if where.type not in LEAST:
        raise ValueError(f"cannot time on {where}: expected one of {', '.join(LEAST)}")
    if repeats < LEAST[where.type]:
        raise ValueError(f"{repeats} repeats on {where}: expected at least {LEAST[where.type]}")
    if patience < WINDOW:
        raise ValueError(f"a patience of {patience} calls: expected at least {WINDOW}")
    if where.type == "cuda":
        with torch.cuda.device(where):
            name = torch.cuda.get_device_name(where)
            return _measure(call, _event_seconds, name, repeats, tolerance, patience)
    return _measure(call, _clock_seconds, "cpu", repeats, tolerance, patience)


def _measure(
    call: Callable[[], object],
    clock: Callable[[Callable[[], object], int], list[float]],
    device: str,
    repeats: int,
    tolerance: float,
    patience: int,
) -> Timing:
    calls, stable = _warm_up(lambda: clock(call, 1)[0], tolerance, patience)
    times = clock(call, repeats)
    middle = median(times)
    low, _, high = quantiles(times, n=4, method="inclusive")
    name = "CUDA events" if clock is _event_seconds else "perf_counter"
    end = "stable" if stable else "still unstable"
    method = f"{name}, {end} after {calls} warm-up calls"
    return Timing(middle, (high - low) / middle, repeats, device, method)


def _warm_up(once: Callable[[], float], tolerance: float, patience: int) -> tuple[int, bool]:
    """How many calls the warm-up took, and whether it ended because the times agreed."""
    times: list[float] = []
    while len(times) < patience:
        times.append(once())
        last = times[-WINDOW:]
        if len(last) == WINDOW and max(last) - min(last) <= tolerance * median(last):
            return len(times), True
    return len(times), False


def _clock_seconds(call: Callable[[], object], count: int) -> list[float]:
    """Seconds of each of `count` calls, by the host's clock."""
    times = []
    for _ in range(count):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return times


def _event_seconds(call: Callable[[], object], count: int) -> list[float]:
    """Seconds of each of `count` calls, by events on the current stream; waits once, at the end."""
    event: Callable[..., torch.cuda.Event] = torch.cuda.Event  # its constructor is untyped
    pairs = []
    for _ in range(count):
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()
        call()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1000 for start, end in pairs]
