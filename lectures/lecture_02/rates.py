"""How a rate is measured: the warm-up, the wait, and shares of a peak as a GPU reaches them."""
import csv
import inspect
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import mean, median

import torch
import torch.nn.functional as F
from hardware import Card, find, how_to_add, peak
from timing import Timing, beyond_cache, time_call, time_graph
from torch import Tensor
from units import TERA, GiB

from litbook import aside, figure, misbelief, note, question, requires

from .figures import plot_measured_roof, plot_sweep
from .measure import (
    E4M3, E5M2, Point, Reading, as_percent, clock_and_power, cool_down, dense_peak,
    float32_products, intensity, narrow_format, scaled, shrunk, utilization,
)


def measuring_a_rate() -> None:
    """Measuring a rate."""
    note(r"""
        A rate is work divided by time. The work is counted, and
        [peaks and MFU](#mfu_counts_what_the_model_needs) say what to compare the rate with. That
        leaves the time, and it is easy to measure it wrongly. Each section that needs a GPU says
        first what to expect by the datasheet, and then measures it.
    """)
    the_first_calls_are_not_the_ones_to_time()
    five_formats_are_measured_here()
    three_bad_measurements_are_repeated_here()
    larger_matmuls_come_closer_to_the_peak()
    a_lower_clock_lowers_the_peak()
    the_roof_is_measured_here()
    the_gpu_counts_bytes_too()


def mean_seconds(call: Callable[[], object], runs: int) -> float:  # @stepover
    """The mean seconds of the first `runs` calls, without a warm-up."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return mean(times)


def starts_slowly(x: Tensor, extra: int) -> Callable[[], Tensor]:  # @stepover
    """A matmul whose first call does `extra` more matmuls, to imitate set-up."""
    ready: list[int] = []

    def call() -> Tensor:
        while len(ready) < extra:
            ready.append((x @ x).numel())
        return x @ x

    return call


def the_first_calls_are_not_the_ones_to_time() -> None:
    """Do not time the first calls: they include set-up."""
    note(r"""
        How long does an operation take? The obvious way is to call it a few times and take the
        mean. But the first call is slow, because it includes set-up: the library chooses a
        *kernel*, the program that the device will run, perhaps compiles it, and allocates memory.

        By hand: the first of `5` calls takes $11$ ms, and each of the other four takes $1$ ms. The
        mean is `(11 + 4) / 5 = 3` ms instead of $1$ ms.

        The fix is a *warm-up*: call the operation until several calls take about the same time, and
        only then measure. `time_call` does so, and reports the *median*, the middle one of the
        times in order, because a few slow calls hardly change it.

        To imitate set-up, `starts_slowly` returns a function that does one matmul in a call, and
        `200` more in its first call. `mean_seconds` takes the mean of `5` calls without a warm-up,
        so it returns the time of `(201 + 4) / 5 = 41` matmuls. Times vary, so the claim asks only
        for more than `5`:
    """)
    x = torch.randn(16, 16)
    cold = mean_seconds(starts_slowly(x, 200), runs=5)  # @measure cold as s
    steady = time_call(starts_slowly(x, 200), repeats=11).seconds  # @measure steady as s
    assert 5 * steady < cold, \
        "The mean without a warm-up is more than 5 times too long."
    misbelief("Published timings are averages over many runs, after a warm-up.", r"""
        Not all of them: the timer of CS336 takes the mean of `5` calls without a warm-up [@cs336].
        Before you quote a time, ask how it was measured.
    """)
    peak_rate = dense_peak("H100 SXM", "bfloat16")  # @hide
    usual = 1 / (0.75 * peak_rate)  # seconds for a FLOP  # @hide
    ratio = (5 / 2.684e14 - 4 * usual) / usual  # @hide
    assert 9.8 < ratio < 9.9, \
        "If four of five runs reach 0.75 of the peak, the first takes nearly 10 times as long as each."  # @hide
    misbelief("The MFU of `bfloat16` is low because its peak is optimistic.", rf"""
        CS336 assumes so for the mean of `5` such calls, an MFU of {2.684e14 / peak_rate:.2f}
        [@cs336]. The MFU is the rate reached, divided by the peak, the datasheet's highest rate.
        But if four of them reached $0.75$, a first call about {ratio:.0f} times as long as each
        explains the number. Whether it was, only a measurement after a warm-up can tell.
    """)
    times = [16, 1, 1, 1, 1]  # @hide
    question(r"""
        Without a warm-up, `5` calls take `16`, `1`, `1`, `1` and `1` ms. What is their mean, and
        what is their median? Give two numbers.
    """, answer=[mean(times), median(times)],
        check=[20 / 5, 1],
        hint="Add up the times for the mean. Which time is in the middle for the median?", unit="ms",
        why=r"""
            The mean is `20 / 5 = 4` ms, because a fifth of the slow call is in it. The median is
            the third in order, `1` ms, however slow the first call is.
        """)


PRODUCT = 16384, 32768, 8192  # rows, inner, columns of the product that others have timed


def product_shape() -> tuple[int, int, int]:
    """Rows, inner and columns of a large matmul, halved until the GPU has room for it."""
    def needed(rows: int) -> int:
        return 8 * (rows * 2 * rows + 2 * rows * rows // 2 + rows * rows // 2)

    rows = scaled(PRODUCT[0], needed)
    return rows, 2 * rows, rows // 2


def product_call(
    name: str, shape: tuple[int, int, int]
) -> Callable[[], Tensor]:
    """A function without arguments that multiplies two random matrices on the GPU in a format.

    `float8` accumulates in the fast way; PyTorch's default is the exact way, which is slower on a Hopper GPU.
    """
    rows, inner, cols = shape
    x = torch.randn(rows, inner, device="cuda")
    if name == "float8":  # row-major times column-major, and a scale for each
        w = torch.randn(cols, inner, device="cuda").to(E4M3).t()
        one, whole = torch.ones((), device="cuda"), F.ScalingType.TensorWise
        fast = partial(F.scaled_mm, use_fast_accum=True)
        return partial(fast, x.to(E4M3), w, one, whole, one, whole)
    dtype = torch.float32 if name == "tf32" else getattr(torch, name)
    w = torch.randn(inner, cols, device="cuda")
    return partial(torch.matmul, x.to(dtype), w.to(dtype))


def time_product(name: str, shape: tuple[int, int, int]) -> Timing:  # @stepover
    """The time of the matmul in a format, warm, after a rest; TF32 for `tf32` alone."""
    with float32_products("high" if name == "tf32" else "highest"):
        call = product_call(name, shape)
        cool_down()
        return time_call(call, "cuda")


def for_a_second(call: Callable[[], object]) -> tuple[Timing, Reading]:  # @stepover
    """The time of a call over a second without a rest, and the GPU's clock and power."""
    timing = time_call(call, "cuda", total=1.0)
    return timing, clock_and_power(call, timing.seconds)


def formats_to_time(card: Card | None) -> list[str]:
    """The names of the formats that a GPU multiplies."""
    names = ["float32", "tf32", "bfloat16", "float16"]
    names += ["float8"] if torch.cuda.get_device_capability() >= (8, 9) else []
    return [n for n in names if card is None or peak(card, n) is not None]


def products_of_ones() -> tuple[Tensor, Tensor]:
    """The products of two matrices of `32 * 32` ones: in E5M2 times E4M3, and in E4M3 times E4M3."""
    one = torch.tensor(1.0, device="cuda")
    ones = torch.ones(32, 32, device="cuda")
    left, right = ones.to(E5M2), ones.to(E4M3).t()  # stored by columns
    kind = F.ScalingType.TensorWise  # one scale for the whole matrix
    mixed = F.scaled_mm(left, right, one, kind, one, kind)
    plain = F.scaled_mm(right.t(), right, one, kind, one, kind)
    return mixed, plain


@aside
@requires("cuda")
def five_formats_are_measured_here() -> None:
    """In a format with a higher peak a matmul should be faster; how much faster has to be measured."""
    note(r"""
        The peak of an H100 in `bfloat16` is `989.5 / 67 = 14.8` times that in `float32`
        [@nvidia-h100]. Is a matmul that many times as fast? Only a measurement can tell, because a
        peak is an upper bound. A matmul that reaches `0.8` of the peak in `float32` and $0.6$ in
        `bfloat16` is `14.8 * 0.6 / 0.8 = 11.1` times as fast. If each reaches half of its peak or
        more, the factor is between half of this ratio and twice the ratio.

        The matmul must be large, because a GPU has many arithmetic units, and small matmuls leave
        most of them idle. Take the [large one](#the_denominator_decides) of `16384 * 32768` by
        `32768 * 8192` elements. It needs `2 * 16384 * 32768 * 8192 = 8.796e12` FLOPs. Divided by
        the peaks of an H100, in TFLOP/s, that is

        | format | time at the peak, ms |
        |---|---|
        | `float32` | `8796 / 67 = 131` |
        | `tf32`, which uses some of the `32` bits | `8796 / 494.5 = 17.8` |
        | `bfloat16`, `float16` | `8796 / 989.5 = 8.89` |
        | `float8` | `8796 / 1979 = 4.44` |

        Expect somewhat longer times: in `bfloat16`, others measured `789` TFLOP/s, which is
        `789 / 989.5 = 0.80` of the peak [@measured-h100]. On the PCIe board, which gets half the
        power, they measured `496 / 756.5 = 0.66` [@measured-h100-pcie].

        `time_product` times the matmul in a format, after a rest and a warm-up. (Of the two kinds
        of `float8`, `E4M3` and `E5M2`, it is `E4M3` here. `F.scaled_mm` multiplies it by either,
        and returns `bfloat16`, because a sum of many products needs more bits than its terms.)
    """)
    shape = product_shape()  # @measure shape  # @hide
    work = 2 * shape[0] * shape[1] * shape[2]  # @measure work as FLOP  # @hide
    card = find(torch.cuda.get_device_name())  # the datasheet
    formats = formats_to_time(card)  # @hide
    timed = {}
    for name in formats:
        timed[name] = time_product(name, shape)  # @measure timed[name]
    if card is not None and card.bfloat16 is not None:
        peak_ratio = card.bfloat16 / card.float32  # @measure peak_ratio as times
        speedup = timed["float32"].seconds / timed["bfloat16"].seconds  # @measure speedup as times
        assert 1 < speedup < 2 * peak_ratio, \
            "In bfloat16, the matmul is faster, by less than twice the ratio of the peaks."
        assert speedup > peak_ratio / 2, \
            "The rate in bfloat16, divided by that in float32, is more than half of the ratio of their peaks."
    shares = {n: utilization(work, t.seconds, peak(card, n)) for n, t in timed.items()}  # @hide
    lines = [
        f"| `{name}` | {t.seconds * 1000:.3f} "
        f"| {work / t.seconds / TERA:.1f} | {as_percent(shares[name])} |"
        for name, t in timed.items()
    ]  # @hide
    device = torch.cuda.get_device_name()  # @hide
    note(f"{device}; {timed['float32'].method}. {how_to_add(device)}{shrunk(shape[0], PRODUCT[0])}")
    note("| format | median, ms | TFLOP/s | MFU |\n|---|---|---|---|\n" + "\n".join(lines))
    known = {n: share for n, share in shares.items() if share is not None}  # @measure known  # @hide
    if card is not None:  # @hide
        assert 0 < min(known.values()), "Each format does some work."  # @hide
    if card is not None:
        assert max(known.values()) <= card.boost, "No format exceeds its peak."
    boards = "H100 SXM", "H200"  # @hide
    if card is not None and card.name in boards and shape == PRODUCT:
        assert known["bfloat16"] >= 0.6, \
            "On an H100 SXM or an H200, bfloat16 reaches 60 % of its peak or more."
    if card is not None and card.name in boards and shape == PRODUCT:  # @hide
        assert known["float32"] >= 0.6, \
            "On an H100 SXM or an H200, float32 reaches 60 % of its own peak or more."  # @hide
    if torch.cuda.get_device_capability() >= (8, 9):  # GPUs that multiply one-byte floats  # @hide
        mixed, plain = products_of_ones()  # @measure mixed, plain
        assert mixed.dtype == torch.bfloat16, "The result is in bfloat16."
        assert mixed.sum().item() == 32**3, \
            "The entries of E5M2 times E4M3 add up to 32 * 32 * 32."
        assert plain.sum().item() == 32**3, \
            "The entries of E4M3 times E4M3 add up to 32 * 32 * 32 as well."  # @hide
    question(r"""
        On an A100, a matmul in `float32` takes `80` ms, and reaches `0.8` of the peak. In
        `bfloat16` it reaches only `0.4` of the peak, which is `16` times as high. How long does it
        take?
    """, answer=80e-3 * (0.8 * 19.5) / (0.4 * 312),
        check=0.08 / (16 / 2), unit="s",
        wrong={
            "That would be right if both reached the same share of their peak.": 0.08 / 16,
        },
        why="The peak is `16` times as high, but the share is half as large. So the matmul is `16 / 2 = 8` times as fast, and takes `80 / 8 = 10` ms.")


def first_runs(rows: int, inner: int, cols: int, left: str) -> list[float]:  # @stepover
    """The seconds of each of the first five matmuls in bfloat16, after five in float32.

    `left` says how the left matrix is made: "ones" or "randn".
    """
    x = getattr(torch, left)(rows, inner, device="cuda")
    w = torch.randn(inner, cols, device="cuda")
    times: list[float] = []
    for dtype in (torch.float32, torch.bfloat16):
        x, w = x.to(dtype), w.to(dtype)
        torch.cuda.synchronize()
        times = []
        for _ in range(5):
            start = time.perf_counter()
            x @ w
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    return times


def in_a_new_program(shape: tuple[int, int, int], left: str) -> list[float]:  # @stepover
    """The seconds of the first five matmuls in a new program, where nothing has run yet.

    The list is empty on a GPU that accepts only one program at a time.
    """
    torch.cuda.empty_cache()
    text = f"import json, time, torch\n\n{inspect.getsource(first_runs)}\n"
    call = f"print(json.dumps(first_runs(*{shape!r}, {left!r})))"
    done = subprocess.run(
        [sys.executable, "-c", text + call],
        capture_output=True, text=True, timeout=240, check=False,
    )
    if "busy or unavailable" in done.stderr:
        return []
    if done.returncode:
        raise RuntimeError(f"the new program failed: {done.stderr[-500:]}")
    found: list[float] = json.loads(done.stdout)
    return found


def launch_and_finish(call: Callable[[], object]) -> tuple[float, float]:  # @stepover
    """The seconds until a call has returned, and until the GPU has finished its work."""
    call()  # a warm-up
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    launched = time.perf_counter() - start
    torch.cuda.synchronize()
    return launched, time.perf_counter() - start


@aside
@requires("cuda")
def three_bad_measurements_are_repeated_here() -> None:
    """A cold start, a missing wait and a matrix of zeros each spoil a measurement."""
    note(r"""
        CS336 reports an MFU of `0.271` for a matmul in `bfloat16` on an H100 [@cs336]. Is the GPU
        so slow, or is the measurement bad? There are three ways to measure badly:

        - *A cold start.* The published time is the mean of the first five runs of a new program,
          with a matrix of ones on the left. If the first run takes $10$ times as long as the
          others, the mean is `(10 + 4) / 5 = 2.8` times their time. So expect an MFU of more than
          twice that after a [warm-up](#the_first_calls_are_not_the_ones_to_time).
        - *No wait.* The CPU hands a matmul to the GPU and continues immediately; that is a
          *launch*, and takes some microseconds. This matmul takes at least
          `2 * 16384 * 32768 * 8192 / 989.5e12 = 0.0089` s [@nvidia-h100]. So expect a rate far
          above the peak, if the clock is read before `torch.cuda.synchronize()`, which waits until
          everything that was launched is done.
        - *Zeros.* A matmul of zeros can be faster than one of random elements, because fewer
          transistors of the chip switch, so it draws less power and can keep a higher clock.

        First the matmul, `call`, is measured well: after a warm-up, with a wait, on random
        elements. Then each mistake is made. (A GPU that accepts only one program at a time cannot
        run the new program.)
    """)
    shape = product_shape()  # @measure shape  # @hide
    good = time_product("bfloat16", shape)  # @measure good
    ways = {}  # @hide
    ones = in_a_new_program(shape, "ones")  # @measure ones as s
    runs = in_a_new_program(shape, "randn")  # @measure runs as s  # @hide
    if ones and runs:  # @hide
        ways["first five runs, of ones"] = mean(ones)
        ways["first five runs, random data"] = mean(runs)
    if ones and runs:
        first = [s[0] / median(s) for s in (ones, runs)]  # @measure first as times
        assert 1 < min(first), \
            "The first of the five runs is slower than their median."
    call = product_call("bfloat16", shape)  # @hide
    launched, finished = launch_and_finish(call)  # @measure launched, finished as s
    assert launched < finished - launched, \
        "Most of the time passes between the launch and the end of the work."
    blank_pair = [torch.zeros(n, dtype=torch.bfloat16, device="cuda")
                  for n in (shape[:2], shape[1:])]  # @hide
    of_zeros = partial(torch.matmul, *blank_pair)  # @hide
    zeros = time_call(of_zeros, "cuda")  # @measure zeros
    assert zeros.seconds < 1.05 * good.seconds, \
        "Zeros are never slower than random numbers."
    ways |= {
        "no wait": launched, "zeros": zeros.seconds,
        "warm, events, random data": good.seconds,
    }  # @hide
    card = find(torch.cuda.get_device_name())  # @hide
    rate, boost = peak(card, "bfloat16"), card.boost if card else 1  # @hide
    work = 2 * shape[0] * shape[1] * shape[2]  # @hide
    shares = {way: utilization(work, t, rate) for way, t in ways.items()}  # @hide
    lines = [
        f"| {way} | {t * 1000:.3f} | {as_percent(shares[way])} |"
        for way, t in ways.items()
    ]  # @hide
    note(f"{good.device}, `bfloat16`.{shrunk(shape[0], PRODUCT[0])}")
    note("| how | ms | MFU |\n|---|---|---|\n" + "\n".join(lines))
    if rate is not None:
        assert work / launched > rate, \
            "Without waiting, the rate is higher than the peak: a sign of a bad measurement."
        assert 0.3 * rate < work / good.seconds <= rate * boost, \
            "Measured correctly, the rate is between 30 % and 100 % of the peak."
    question(r"""
        The first of `5` runs took `104` ms, the others `14` ms each. At `14` ms the MFU is `0.63`.
        What MFU does the mean of the five runs give?
    """, answer=round(0.63 * 14 / ((104 + 4 * 14) / 5), 3),
        check=round(0.63 / ((104 / 14 + 4) / 5), 3),
        wrong={
            "That is without the slow first run.": 0.63,
        },
        hint="What is the mean of the times? A longer time gives a lower MFU.",
        why=r"""
            The mean is `(104 + 4 * 14) / 5 = 32` ms. The FLOPs are the same, so the MFU is
            `14 / 32` of `0.63`.
        """)


def random_pair(n: int) -> tuple[Tensor, Tensor]:  # @stepover
    """Two random square matrices on the GPU, in its two-byte format."""
    dtype = narrow_format()
    x, y = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
    return x, y


@aside
@requires("cuda")
def larger_matmuls_come_closer_to_the_peak() -> None:
    """Small matmuls stay far from the peak."""
    note(r"""
        Why does a small matmul stay far from the peak of a GPU? At the peak of an H100, a matmul of
        width $256$ would be done in `2 * 256**3 / 989.5e12 = 3.4e-8` s [@nvidia-h100]. But each
        [launch](#three_bad_measurements_are_repeated_here) takes some microseconds, and meanwhile
        the GPU is idle. With $5$ µs for a launch, expect at most `2 * 256**3 / 5e-6 = 6.7e12`
        FLOP/s, less than a hundredth of the peak. At a width of $8192$ the matmul itself takes
        `2 * 8192**3 / 989.5e12 = 1.1e-3` s, and launches hardly count.

        Square matmuls of growing width $n$, of $2n^3$ FLOPs each, are timed in two ways.
        `time_call` launches them one by one. `time_graph` records many of them as one *CUDA graph*,
        which the GPU then runs without waiting for the program. `pairs` are more random matrices
        than fit into the cache, so each is read from memory:
    """)
    largest = scaled(16384, lambda n: 20 * n * n)  # @hide
    sizes = [2**k for k in range(8, 15) if 2**k <= largest]
    launched, rates = [], []  # FLOP/s  # @hide
    for n in sizes:
        pairs = beyond_cache(partial(random_pair, n), "cuda")
        single = time_call(torch.matmul, "cuda", inputs=pairs)  # @measure single
        timing = time_graph(torch.matmul, pairs)  # @measure timing
        launched.append(2 * n**3 / single.seconds)  # @measure launched[-1] as FLOP/s
        rates.append(2 * n**3 / timing.seconds)  # @measure rates[-1] as FLOP/s
    small = [r for n, r in zip(sizes, rates) if n <= 2048]
    gains = [after / before for before, after in pairwise(small)]  # @measure gains as times
    assert min(gains, default=1) > 0.9, \
        "Up to a width of 2048, doubling the width does not lower the rate."
    assert rates[0] < max(rates) / 2, \
        "The smallest matmul has less than half of the best rate."
    lost = rates[0] / launched[0]  # @measure lost as times
    assert lost > 0.9, \
        "Launched one by one, the smallest matmul is not faster than in a graph."
    card = find(torch.cuda.get_device_name())  # @hide
    rate = peak(card, str(narrow_format()))  # @hide
    if card is not None and rate is not None:
        assert max(rates) <= rate * card.boost, "No matmul exceeds the peak."
    figure(plot_sweep(sizes, rates, launched, rate), caption=r"""
        Rate of a square matmul against its size, in the low-precision format: in a graph, and
        launched one by one (thin line). The dashed line is the dense peak.
    """, alt=r"""
        Two curves of TFLOP/s against matrix size, rising from a small fraction of the peak for the
        smallest matrix to most of what it will reach at a few thousand rows. The curve of single
        launches lies below the other at small sizes and joins it at large ones.
    """)
    question(r"""
        A square matmul of width `512` takes only twice as long as one of width `256`. How many
        times as high is its rate, in FLOP/s?
    """, answer=(512 / 256) ** 3 / 2,
        check=8 / 2, unit="times",
        wrong={
            "That counts FLOPs alone; the time doubles.": 8,
            "The FLOPs grow with the third power of the width.": 2,
        },
        hint="How many times as many FLOPs does the large matmul need?",
        why="Twice the width means `8` times the FLOPs, and they take twice the time.")


def reachable(clock: float | None) -> float | None:
    """The FLOP/s in `bfloat16` of all multiprocessors at a clock; None where that is not known.

    In a tick, a multiprocessor of an A100 does 2048 FLOPs [@nvidia-ampere], one of an H100 or H200 does 4096 [@nvidia-hopper].
    """
    each = {(8, 0): 2048, (9, 0): 4096}.get(torch.cuda.get_device_capability())
    if each is None or clock is None:
        return None
    parts = torch.cuda.get_device_properties().multi_processor_count
    return parts * each * clock


@aside
@requires("cuda")
def a_lower_clock_lowers_the_peak() -> None:
    """A lower clock lowers the rate that a GPU can reach."""
    note(r"""
        Why does even a large matmul, on a warm GPU, stay below the peak? One reason is the clock.
        An H100 has `132` multiprocessors, and each does `4096` FLOPs in `bfloat16` in a tick. The
        peak is stated for `1.83e9` ticks in a second: `132 * 4096 * 1.83e9 = 989e12` FLOP/s
        [@nvidia-hopper]. With fewer ticks it can reach less, for example
        `132 * 4096 * 1.6e9 = 865e12`, which is `865 / 989 = 0.87` of the peak.

        The clock falls when the power reaches a limit, on an H100 SXM `700` W [@nvidia-h100]: a
        large matmul may need more, because it keeps all units busy. (Zeros would need less, so
        measure with random elements.)

        `for_a_second` repeats a square matmul for a second, while the driver reports clock and
        power in a `reading`. Each rate is then divided by what its clock allows. Expect more power,
        and a lower clock, for a larger width `n`:
    """)
    largest = scaled(16384, lambda n: 20 * n * n)  # @hide
    sizes = [2**k for k in range(10, 15) if 2**k <= largest]
    rates, readings = [], []  # @hide
    for n in sizes:
        call = partial(torch.matmul, *random_pair(n))
        timing, reading = for_a_second(call)  # @measure timing, reading
        rates.append(2 * n**3 / timing.seconds)  # @measure rates[-1] as FLOP/s
        readings.append(reading)
    limits = [reachable(reading.clock) for reading in readings]  # @hide
    clocks = [p.clock for p in readings if p.clock]  # @measure clocks as Hz
    powers = [p.power for p in readings if p.power]  # @measure powers as W
    driver_tells = len(clocks) == len(powers) == len(sizes)
    if driver_tells:
        assert powers[0] < powers[-1], \
            "The largest matmul draws more power than the smallest."
        assert clocks[-1] < 1.05 * clocks[0], \
            "The clock of the largest matmul is at most 5 % higher than that of the smallest."
    reached = [utilization(r, 1.0, most) for r, most in zip(rates, limits)]  # @hide
    known = [share for share in reached if share is not None]  # @measure known as %
    if known:
        assert max(known) < 1.1, \
            "No matmul exceeds by a tenth what its clock allows."
        assert max(known) > 0.6, \
            "The best matmul does more than 60 % of what its clock allows."
    lines = [
        f"| {n} | {r / TERA:.1f} | {reading} | {as_percent(part)} |"
        for n, r, reading, part in zip(sizes, rates, readings, reached)
    ]  # @hide
    note("| width | TFLOP/s for a second | clock, power | of the reachable "
         "|\n|---|---|---|---|\n" + "\n".join(lines))
    question(r"""
        A GPU has `132` multiprocessors, and each does `4096` FLOPs in a tick. Under load, its clock
        falls to `1.5e9` ticks in a second, and a matmul does `730e12` FLOP/s. What share is that of
        the rate that the GPU can reach at this clock?
    """, answer=730e12 / (132 * 4096 * 1.5e9),
        check=0.73 / 0.811008, within=0.01,
        wrong={
            "That is the share of the peak, at 1.83e9 ticks in a second.": 730e12 / (132 * 4096 * 1.83e9),
        },
        hint="How many FLOP/s do all multiprocessors do at this clock?",
        why=r"""
            At this clock the GPU can reach `132 * 4096 * 1.5e9 = 811e12` FLOP/s, so the matmul does
            `730 / 811 = 0.90` of that, although its MFU is only `0.74`.
        """)


def measured_points(n: int, dtype: torch.dtype) -> dict[str, Point]:  # @stepover
    """FLOPs per byte and measured FLOP/s of an addition, and of matmuls with 1, 64 and 4096 rows."""
    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, device="cuda").to(dtype)

    vectors = beyond_cache(
        lambda: (numbers(n * n), numbers(n * n)), "cuda", least=8
    )
    added = time_call(torch.add, "cuda", inputs=vectors).seconds
    points = {"x + y": Point(1 / (3 * dtype.itemsize), n * n / added)}
    del vectors

    def layer(rows: int) -> tuple[Tensor, Tensor]:
        return numbers(rows, n), numbers(n, n)

    for rows in (1, 64, 4096):
        pairs = beyond_cache(partial(layer, rows), "cuda", least=8)
        taken = time_call(torch.matmul, "cuda", inputs=pairs).seconds
        name = "one token" if rows == 1 else f"{rows} tokens"
        per_byte = intensity(rows, n, n, dtype.itemsize)
        points[name] = Point(per_byte, 2 * rows * n * n / taken)
    return points


@aside
@requires("cuda")
def the_roof_is_measured_here() -> None:
    """A copy shows the bandwidth, and other operations should stay below the roofline."""
    note(r"""
        A [roofline](#the_roofline_shows_what_waits_for_memory) says how fast an operation can be at
        most. By hand, take an H100, with a *bandwidth* of `3.35e12` bytes in a second and a peak of
        `989.5e12` FLOP/s in `bfloat16` [@nvidia-h100]:

        - `x + y` reads two elements and writes one, of $2$ bytes each, for one FLOP: at most
          `3.35e12 / (3 * 2) = 0.56e12` FLOP/s.
        - A matmul of one token does $2$ FLOPs for each weight of $2$ bytes: at most
          `2 * 3.35e12 / 2 = 3.35e12` FLOP/s.
        - With thousands of tokens, each weight is used thousands of times: the peak is then the
          limit.
    """)
    count = scaled(2**28, lambda n: 14 * n)  # @hide
    n = scaled(8192, lambda n: 40 * n * n + 80 * 4096 * n)  # @measure n  # @hide
    note(rf"""
        First measure the bandwidth with a large copy of `x` to `y`, because a copy computes
        nothing: it only reads and writes each byte once. With `2**28` elements it takes an H100 at
        least `2 * 2 * 2**28 / 3.35e12 = 0.00032` s. Then `measured_points` returns the rates of an
        addition, and of matmuls of `1`, `64` and `4096` tokens by weights of `n * n` elements, with
        `n = 8192`. The weights are not in the cache.{shrunk(n, 8192)}
    """)
    dtype = narrow_format()  # @hide
    x = torch.randn(count, device="cuda").to(dtype)  # @hide
    y = torch.empty_like(x)  # @hide
    copied = time_call(lambda: y.copy_(x), "cuda")  # @measure copied
    bandwidth = (x.nbytes + y.nbytes) / copied.seconds  # @measure bandwidth as B/s
    del x, y  # @hide
    points = measured_points(n, dtype)  # @measure points
    card = find(torch.cuda.get_device_name())  # @hide
    if card is not None:
        share = bandwidth / card.bandwidth  # @measure share
        assert share <= 1, "The copy is no faster than the datasheet says."
        assert share > 0.5, \
            "The copy reaches more than half of the datasheet's bandwidth."
    ratio = points["4096 tokens"].rate / points["one token"].rate  # @measure ratio as times
    assert ratio > 10, \
        "With 4096 tokens the rate is more than 10 times the rate with one token."
    rate = peak(card, str(dtype))  # @hide
    if card is not None and rate is not None:
        slope, found = card.bandwidth, points.values()
        roofs = [min(rate * card.boost, p.intensity * slope) for p in found]
        over = [p.rate / roof for p, roof in zip(found, roofs)]  # @measure over
        assert max(over) <= 1, \
            "All operations stay below the datasheet's roofline."
    top = rate or max(point.rate for point in points.values())  # @hide
    slopes = {"dashed": bandwidth}  # @hide
    slopes |= {} if card is None else {"solid": card.bandwidth}  # @hide
    solid = "" if card is None else " The solid line is the datasheet's roof."  # @hide
    figure(plot_measured_roof(top, slopes, points),
        caption=f"Measured rates. The dashed line is the bandwidth of the copy.{solid}", alt=r"""
            TFLOP/s against FLOPs per byte, both logarithmic, with the roof of bandwidth and peak.
            An addition and the matmul of a single token lie low on the slope, the matmul of many
            tokens lies near the flat part.
        """)
    question(r"""
        A copy of `2` GiB takes `1` ms. How many bytes does the memory move in a second, reading and
        writing together?
    """, answer=2 * 2 * GiB / 1e-3,
        check=2**32 / 1e-3,
             unit="B/s",
        wrong={
            "Each byte is read and written.": 2 * GiB / 1e-3,
        },
        hint="What happens to each byte in a copy?",
        why="Each byte is read once and written once, so a copy of `2` GiB moves `4` GiB.")


def three_operations(count: int) -> None:
    """A sum, SiLU and a cast of `count` elements in `bfloat16`, between two marks for a profiler."""
    x, y = torch.ones(2, count, dtype=torch.bfloat16, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    torch.add(x, y)
    F.silu(x)
    x.float()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


COUNTERS = "dram__bytes_read.sum", "dram__bytes_write.sum"  # of NVIDIA's profiler, `ncu`


def bytes_by_the_counters(count: int) -> list[float]:  # @stepover
    """The bytes that the GPU's memory moved for each of the three operations, as it counts them.

    They run in a new program under `ncu`. The list is empty without `ncu`, or where nobody may read counters.
    """
    torch.cuda.empty_cache()
    text = "import torch\nimport torch.nn.functional as F\n\n"
    text += inspect.getsource(three_operations) + f"\nthree_operations({count})"
    command = [
        "ncu", "--profile-from-start", "off", "--clock-control", "none",
        "--csv", "--page", "raw", "--print-units", "base",
        "--metrics", ",".join(COUNTERS), sys.executable, "-c", text,
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    lines = [s for s in done.stdout.splitlines() if s.startswith('"')]
    moved = []
    for kernel in csv.DictReader(lines):
        numbers = [kernel.get(name, "").replace(",", "") for name in COUNTERS]
        if all(n.replace(".", "", 1).isdecimal() for n in numbers):  # no units
            moved.append(sum(map(float, numbers)))
    return moved if len(moved) == 3 else []


@aside
@requires("cuda")
def the_gpu_counts_bytes_too() -> None:
    """For three elementwise operations, a GPU counts the same bytes as you by hand, to within a fifth."""
    note(r"""
        How many bytes does an operation move? This book counts them by hand: each input is read
        once and each output is written once. A GPU counts as well: its memory has counters for the
        bytes that are read and written. Do the two counts agree?

        Take two tensors `x` and `y` in `bfloat16`, `2` bytes for each element. By hand:

        - The sum `x + y` reads two tensors and writes one: `2 + 2 + 2 = 6` bytes for each element.
        - SiLU, an elementwise function, reads one and writes one: `2 + 2 = 4` bytes.
        - A cast to `float32`, `4` bytes for each element, reads one and writes one: `2 + 4 = 6`
          bytes.

        Both tensors must be far larger than the GPU's *cache*, a small and fast memory, because
        data in the cache is not read from the main memory. So each has `2**29` elements, which are
        `2 * 2**29 = 1.07e9` bytes; the cache of an H100 holds `50e6` [@nvidia-hopper].
    """)
    count = scaled(2**29, lambda n: 16 * n)  # @measure count  # @hide
    note(rf"""
        `bytes_by_the_counters` runs the three operations on tensors of `count` elements in a new
        process under a *profiler*, a program that reads the counters, and returns the bytes of
        each. Divided by the bytes counted by hand, each should be near `1`. (Where nobody may read
        the counters, the list is empty and nothing is compared.){shrunk(count, 2**29)}
    """)
    counted = bytes_by_the_counters(count)  # @measure counted as B
    expected = [6 * count, 4 * count, 6 * count]  # @measure expected as B
    if counted:
        ratios = [c / e for c, e in zip(counted, expected)]  # @measure ratios as times
        assert 0.8 < min(ratios), \
            "Each operation moves at least four fifths of the bytes counted by hand."
        assert max(ratios) < 1.2, \
            "No operation exceeds the bytes counted by hand by more than a fifth."
    question(r"""
        A tensor has `2**29` elements in `bfloat16`. The operation `x * 2` reads them and writes the
        same number of elements. How many bytes does it move?
    """, answer=2 * 2 * 2**29,
        check=4 * 2**29, unit="B",
        wrong={
            "The result is written as well.": 2 * 2**29,
            "An element in bfloat16 has two bytes.": 2 * 2**29 * 4,
        },
        hint="How many bytes does the tensor have? Each is read, and the same number of bytes is written.",
        why="The tensor has `2 * 2**29` bytes. They are read once, and the same number of bytes is written.")
