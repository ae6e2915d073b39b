"""How long a call takes: warm up until it is stable, repeat, report the median and the spread.

A GPU is warm when it has done the same work for a while: at rest its clock is low, and rises while it works. Three
calls that agree may all be slow ones.

A GPU is timed with CUDA events, which the device itself records before and after each call. The
CPU only queues the work, so a host clock read without waiting would measure the queueing. Where a
driver has no events, the host's clock is read around a call and a wait for it. A CPU is timed with
`perf_counter`. `Timing.method` says which it was.

A call that reads the same small buffers every time finds them in the cache from the second time on.
`beyond_cache` makes as many sets of buffers as it takes to outgrow it, and `time_call` hands them to
the call in turn. Use random data: a product of zeros can run faster than any real one.

A call of a few microseconds is over before the next one has been launched, so events around it time
the launching. `time_graph` captures many calls in one CUDA graph, which is launched once.
"""

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from statistics import median, quantiles
from time import perf_counter, thread_time

import torch

LEAST = {"cpu": 3, "cuda": 20}  # fewest repeats accepted, by type of device
WINDOW = 3  # calls in a row that have to agree before the warm-up ends
WARM = {"cpu": 0.0, "cuda": 0.2}  # seconds of the same work before anything is timed, at least
TOTAL = 0.02  # seconds that all repeats take together, at least
BRIEFEST = 1e-6  # seconds that a call is taken to last at least, when repeats are counted out
ROUND = 2e-4  # seconds that a round of brief calls takes at least
CACHE = 32 * 2**20  # bytes of cache where the system does not say
ROOM = 8  # as many times the cache do all sets together fill: of twice, some would still be found in it
MOST = 512  # sets of buffers
CAPTURED = 16  # calls in a graph, at least


@dataclass(frozen=True)
class Timing:
    """A measured time: its median in seconds, its spread, and how it was measured."""

    seconds: float  # median over the repeats, of one call
    spread: float  # interquartile range divided by the median
    repeats: int
    device: str  # "cpu", or the name that CUDA reports
    method: str  # the clock, the warm-up, and the sets of buffers in turn


Inputs = Sequence[Sequence[torch.Tensor]]  # what the call is given, set by set
Clock = Callable[[Callable[[], object], int], list[float]]  # seconds of each of so many calls
Event = Callable[..., torch.cuda.Event]  # its constructor is untyped


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside this block PyTorch computes with one thread only."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def time_call(  # @stepover
    call: Callable[..., object],
    device: str | torch.device = "cpu",
    repeats: int = 20,
    tolerance: float = 0.1,
    patience: int = 50,
    total: float = TOTAL,
    inputs: Inputs = ((),),
) -> Timing:
    """Calls a function many times and returns its median time, in seconds, as a `Timing`.

    The warm-up takes 0.2 s on a GPU. It ends when three calls in a row differ by at most `tolerance`
    of their median, or after `patience` calls more; `method` says which. Then `repeats` more calls are timed one by one, or
    as many as take `total` seconds together. Each call is given the next set of `inputs`.

    Raises ValueError for a device that is neither CPU nor CUDA, for fewer than 20 repeats on a GPU
    or 3 on a CPU, for a `patience` too short to see three calls, and for no inputs at all.
    """
    where = torch.device(device)
    if where.type not in LEAST:
        known = ", ".join(LEAST)
        raise ValueError(f"cannot time on {where}: expected one of {known}")
    least = LEAST[where.type]
    if repeats < least:
        raise ValueError(
            f"{repeats} repeats on {where}: expected at least {least}"
        )
    if patience < WINDOW:
        raise ValueError(
            f"a patience of {patience} calls: expected at least {WINDOW}"
        )
    if not inputs:
        raise ValueError(
            "no inputs: expected at least one set, which may be empty"
        )
    turns = cycle(inputs)

    def once() -> None:
        call(*next(turns))

    settings = repeats, tolerance, patience, total, WARM[where.type]
    if where.type == "cuda":
        with torch.cuda.device(where):
            clock, name = _cuda_clock()
            timing = _measure(once, clock, name, *settings)
            device_name = torch.cuda.get_device_name(where)
    else:
        timing = _measure(once, _clock_seconds, "perf_counter", *settings)
        device_name = "cpu"
    seconds, spread, count, method = timing
    if len(inputs) > 1:
        method += f", {len(inputs)} sets of buffers in turn"
    return Timing(seconds, spread, count, device_name, method)


def quickest(call: Callable[[], object], rounds: int = 20) -> float:  # @stepover
    """Runs a call in `rounds` rounds, on one thread; returns the fewest seconds of computing that one call needed.

    What other programs run beside it does not count, while this one waits for its turn; what they do to caches and
    clocks only adds, which is why the least is taken. A brief call is made many times in a round.
    """
    with one_thread():
        call()
        start = perf_counter()
        call()
        many = max(1, round(ROUND / max(perf_counter() - start, BRIEFEST)))
        least = math.inf
        for _ in range(rounds):
            start = thread_time()
            for _ in range(many):
                call()
            least = min(least, thread_time() - start)
    return least / many


def time_graph(  # @stepover
    call: Callable[..., object], inputs: Inputs = ((),), repeats: int = 20
) -> Timing:
    """Runs a call on the GPU as a CUDA graph; returns its median time, without the time to launch it.

    The calls take the sets of `inputs` in turn; each set is used as often as any other. What comes back
    is the time of a replay, divided by the calls in it.
    """
    rounds = math.ceil(CAPTURED / len(inputs))
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        call(*inputs[0])  # which may set up what a capture does not allow
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for given in inputs:
                call(*given)
    timing = time_call(graph.replay, "cuda", repeats)
    calls = rounds * len(inputs)
    replays = f"replays of a graph of {calls} calls"
    method = f"{timing.method}, {replays} on {len(inputs)} sets of buffers"
    return replace(timing, seconds=timing.seconds / calls, method=method)


def beyond_cache(
    make: Callable[[], Sequence[torch.Tensor]],
    device: str | torch.device = "cpu",
    least: int = 1,
) -> list[Sequence[torch.Tensor]]:
    """Makes sets of tensors, so many that together they do not fit into the device's last cache."""
    sets = [make()]
    each = max(1, sum(t.nbytes for t in sets[0]))
    wanted = min(MOST, max(least, math.ceil(ROOM * cache_bytes(device) / each)))
    return sets + [make() for _ in range(wanted - 1)]


def cache_bytes(device: str | torch.device) -> int:
    """Size of a device's last cache before its main memory, in bytes."""
    where = torch.device(device)
    if where.type == "cuda":
        card = torch.cuda.get_device_properties(where)
        return int(card.L2_cache_size) or CACHE
    try:
        return max(0, os.sysconf("SC_LEVEL3_CACHE_SIZE")) or CACHE
    except (ValueError, OSError, AttributeError):
        return CACHE


def _measure(  # @stepover
    once: Callable[[], object],
    clock: Clock,
    name: str,
    repeats: int,
    tolerance: float,
    patience: int,
    total: float,
    warm: float,
) -> tuple[float, float, int, str]:
    """Median in seconds, spread, number of repeats, and a text on the method."""
    calls, stable, last = _warm_up(
        lambda: clock(once, 1)[0], tolerance, patience, warm
    )
    count = max(repeats, math.ceil(total / max(last, BRIEFEST)))
    times = clock(once, count)
    middle = median(times)
    low, _, high = quantiles(times, n=4, method="inclusive")
    end = "stable" if stable else "still unstable"
    method = f"{name}, {end} after {calls} warm-up calls"
    return middle, (high - low) / middle, count, method


def _warm_up(  # @stepover
    once: Callable[[], float], tolerance: float, patience: int, warm: float
) -> tuple[int, bool, float]:
    """Number of calls of the warm-up, whether their times agreed at the end, and the last median."""
    times: list[float] = []
    start = perf_counter()
    while perf_counter() - start < warm:
        times.append(once())
    patience += len(times)
    while len(times) < patience:
        times.append(once())
        last = times[-WINDOW:]
        apart = max(last) - min(last)
        if len(last) == WINDOW and apart <= tolerance * median(last):
            return len(times), True, median(last)
    return len(times), False, median(times[-WINDOW:])


def _clock_seconds(call: Callable[[], object], count: int) -> list[float]:  # @stepover
    """Seconds of each of `count` calls, by the host's clock."""
    times = []
    for _ in range(count):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return times


def _cuda_clock() -> tuple[Clock, str]:
    """A clock for calls on the GPU, and its name: CUDA events where the driver has them."""
    event: Event = torch.cuda.Event
    try:
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()
        end.record()
        torch.cuda.synchronize()
        start.elapsed_time(end)
    except (RuntimeError, NotImplementedError):
        return _waiting_seconds, "perf_counter around a wait (no CUDA events)"
    return _event_seconds, "CUDA events"


def _event_seconds(call: Callable[[], object], count: int) -> list[float]:  # @stepover
    """Seconds of each of `count` calls, by events on the current stream; waits once, at the end."""
    event: Event = torch.cuda.Event
    # Made before the first call, and in full when they are first recorded.
    timed = functools.partial(event, enable_timing=True)
    pairs = [(timed(), timed()) for _ in range(count)]
    for start, end in pairs:
        start.record()
        end.record()
    for start, end in pairs:
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1000 for start, end in pairs]


def _waiting_seconds(call: Callable[[], object], count: int) -> list[float]:  # @stepover
    """Seconds of each of `count` calls, from an idle device until it is idle again."""

    def finished() -> None:
        call()
        torch.cuda.synchronize()

    torch.cuda.synchronize()
    return _clock_seconds(finished, count)
