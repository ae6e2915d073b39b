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
    E4M3, E5M2, Point, Reading, as_percent, clock_and_power, cool_down,
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


def seconds_of_calls(call: Callable[[], object], runs: int) -> list[float]:  # @stepover
    """The seconds of each of the first `runs` calls."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def starts_slowly(x: Tensor, extra: int) -> Callable[[], Tensor]:  # @stepover
    """A matmul whose first call does `extra` more matmuls, to imitate set-up."""
    ready: list[int] = []

    def call() -> Tensor:
        while len(ready) < extra:
            ready.append((x @ x).numel())
        return x @ x

    return call


def the_first_calls_are_not_the_ones_to_time() -> None:
    """Do not time the first call of an operation: it can include set-up."""
    note(r"""
        How long does an operation take? Calling it a few times and taking the mean can mislead,
        because the first call can include *set-up*, which later calls do not repeat: the library
        chooses a *kernel*, the program that the device runs for the operation, perhaps compiles it,
        and allocates memory.

        By hand: an operation takes $1$ ms, and its first call another $10$ ms for set-up. Then the
        mean of `5` calls is `(11 + 1 + 1 + 1 + 1) / 5 = 3` ms instead of $1$ ms.

        The fix is a *warm-up*: make a call first, and do not count it. Of the calls after it, take
        the *median*, the middle one of the times in order: one call that another program interrupts
        hardly changes it, while it can change the mean a lot.

        Here set-up is imitated, so that its cost is known. `starts_slowly` returns a function that
        does one matmul in each call, and `200` more in its first call. `seconds_of_calls` times its
        first `5` calls. Together they do `201 + 4 = 205` matmuls, so expect the mean to be about
        `205 / 5 = 41` times the time of a single matmul:
    """)
    x = torch.randn(16, 16)
    times = seconds_of_calls(starts_slowly(x, 200), runs=5)  # @measure times as s
    cold = mean(times)  # @measure cold as s
    warm = median(times[1:])  # the first call is the warm-up  # @measure warm as s
    assert 5 * warm < cold, \
        "The mean of all calls is more than 5 times the median of the calls after the first."
    note(r"""
        The times are different in each run, and the first call has some real set-up as well, so the
        claim asks only for more than `5` times. In this book, `time_call` measures in this way: it
        repeats a call until several calls in a row take about the same time, and then returns the
        median of many more calls.
    """)
    misbelief("Published timings are averages over many runs, after a warm-up.", r"""
        By its source code, the timer of the course CS336 takes the mean of `5` calls without a
        warm-up [@cs336]. Before you quote a time, ask how it was measured.
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
    """The speed-up of a matmul in another format is the ratio of the peaks, times the ratio of the shares reached."""
    note(r"""
        An H100 has a *peak* of `989.5` TFLOP/s in `bfloat16` and of `67` in `float32`
        [@nvidia-h100]. Is a matmul `989.5 / 67 = 14.8` times as fast in `bfloat16`? Only if it
        reaches the same share of the peak in both formats, because a peak is an upper bound.

        By hand: in one format the peak is $10$ TFLOP/s, and a matmul reaches $0.8$ of it, so it
        does `10 * 0.8 = 8` TFLOP/s. In another the peak is $100$, and the same matmul reaches only
        $0.6$ of it, `100 * 0.6 = 60` TFLOP/s. It is `60 / 8 = 7.5` times as fast, not $10$ times:
        the *speed-up* is the ratio of the peaks times the ratio of the shares,
        `10 * 0.6 / 0.8 = 7.5`.

        Suppose that both shares are between $0.5$ and $1$. The speed-up on an H100 is lowest,
        `14.8 * 0.5 = 7.4`, if `bfloat16` reaches $0.5$ of its peak and `float32` all of its own. It
        is highest, `14.8 / 0.5 = 29.6`, the other way round.

        The matmul must be large, because a GPU has many arithmetic units, and small matmuls leave
        most of them idle. Take [one](#the_denominator_decides) of `16384 * 32768` by `32768 * 8192`
        elements. It costs `2 * 16384 * 32768 * 8192 = 8.796e12` FLOPs. At the peaks of an H100 that
        takes

        | format | time at the peak, s |
        |---|---|
        | `float32` | `8.796e12 / 67e12 = 0.131` |
        | `tf32`: inputs in `float32`, rounded to $10$ bits of fraction to multiply | `8.796e12 / 494.5e12 = 0.0178` |
        | `bfloat16`, `float16` | `8.796e12 / 989.5e12 = 0.0089` |
        | `float8`, one byte per element | `8.796e12 / 1979e12 = 0.0044` |

        Expect longer times. In `bfloat16`, others measured `789 / 989.5 = 0.80` of the peak of an
        H100 SXM [@measured-h100], and `496 / 756.5 = 0.66` of the lower peak of an H100 PCIe
        [@measured-h100-pcie].

        `formats` lists the formats of the table that this GPU can multiply. `time_product` makes
        two random matrices of this `shape` in a format, waits a second, so that the GPU is not hot
        from the format before, and returns the median time of their matmul after a warm-up:
    """)
    shape = product_shape()  # @measure shape  # @hide
    work = 2 * shape[0] * shape[1] * shape[2]  # @measure work as FLOP  # @hide
    card = find(torch.cuda.get_device_name())  # the datasheet
    formats = formats_to_time(card)  # @hide
    timed = {}  # @hide
    for name in formats:
        timed[name] = time_product(name, shape)  # @measure timed[name]
    if card is not None and card.bfloat16 is not None:
        peak_ratio = card.bfloat16 / card.float32  # @measure peak_ratio as times
        speedup = timed["float32"].seconds / timed["bfloat16"].seconds  # @measure speedup as times
        assert 1 < speedup < 2 * peak_ratio, \
            "In bfloat16, the matmul is faster, by less than twice the ratio of the peaks."
        assert speedup > peak_ratio / 2, \
            "The speed-up is more than half of the ratio of the peaks."
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
    if card is not None and card.name in boards and shape == PRODUCT:  # @hide
        assert known["bfloat16"] >= 0.6, \
            "On an H100 SXM or an H200, bfloat16 reaches 60 % of its peak or more."  # @hide
    if card is not None and card.name in boards and shape == PRODUCT:  # @hide
        assert known["float32"] >= 0.6, \
            "On an H100 SXM or an H200, float32 reaches 60 % of its own peak or more."  # @hide
    if torch.cuda.get_device_capability() >= (8, 9):  # GPUs that multiply one-byte floats  # @hide
        mixed, plain = products_of_ones()  # @measure mixed, plain
        assert mixed.dtype == torch.bfloat16, "The result is in bfloat16."  # @hide
        assert mixed.sum().item() == 32**3, \
            "The entries of E5M2 times E4M3 add up to 32 * 32 * 32."  # @hide
        assert plain.sum().item() == 32**3, \
            "The entries of E4M3 times E4M3 add up to 32 * 32 * 32 as well."  # @hide
    question(r"""
        On an A100, a matmul in `float32` takes `80` ms, and reaches `0.8` of the peak. In
        `bfloat16` it reaches only `0.4` of the peak, which is `16` times as high. How long does it
        take?
    """, answer=80e-3 * (0.8 * 19.5) / (0.4 * 312),
        # The first time in which tensor cores, at 0.4 of 2048 FLOPs a tick, do what the ordinary units do, at 0.8 of 128:
        check=min(ms for ms in (2.5, 5, 10, 20, 40, 80) if ms * 0.4 * 2048 >= 80 * 0.8 * 128) / 1e3, unit="s",
        wrong={
            "That would be right if both reached the same share of their peak.": 0.08 / 16,
        },
        why="The peak is `16` times as high, but the share is half as large. So the matmul is `16 / 2 = 8` times as fast, and takes `80 / 8 = 10` ms.")


def first_runs(rows: int, inner: int, cols: int) -> list[float]:  # @stepover
    """The seconds of each of the first five matmuls in bfloat16, after five in float32."""
    x = torch.randn(rows, inner, device="cuda")
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


def in_a_new_program(shape: tuple[int, int, int]) -> list[float]:  # @stepover
    """The seconds of the first five matmuls in a new program, where nothing has run yet.

    The list is empty on a GPU that accepts only one program at a time.
    """
    torch.cuda.empty_cache()
    text = f"import json, time, torch\n\n{inspect.getsource(first_runs)}\n"
    call = f"print(json.dumps(first_runs(*{shape!r})))"
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


def launch_and_finish(call: Callable[[], object]) -> tuple[float, float]:  # @stepover  # @show
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
    """A cold start makes a matmul look too slow, and a missing wait makes it look too fast."""
    note(r"""
        You time a matmul on a GPU, and the *MFU*, the share of the GPU's peak that it reaches, is
        surprisingly low, or even above $1$. Is it the GPU, or the measurement? Check for two
        mistakes first:

        - a *cold start*: the first call of a program was timed as well. It is slower, because it
          includes [set-up](#the_first_calls_are_not_the_ones_to_time).
        - *no wait*: the timer was stopped when the call returned. That is too early, because the
          call only hands the matmul to the GPU (a *launch*), and then the GPU works on it.

        By hand, with assumed times: a matmul takes $10$ ms, the set-up in the first call another
        $90$ ms, and a launch $0.01$ ms.

        | how it is timed | time shown, ms | the MFU is multiplied by |
        |---|---|---|
        | correctly: after a warm-up, until the GPU has finished | $10$ | `10 / 10 = 1` |
        | cold start: the mean of the first five calls | `(100 + 4 * 10) / 5 = 28` | `10 / 28 = 0.36` |
        | no wait: until the call returns | $0.01$ | `10 / 0.01 = 1000` |

        Now make both mistakes with a large matmul in `bfloat16`, of `16384 * 32768` by
        `32768 * 8192` elements. At its peak of `989.5e12` FLOP/s an H100 needs
        `2 * 16384 * 32768 * 8192 / 989.5e12 = 0.0089` s for it [@nvidia-h100]. A launch takes some
        microseconds, so without a wait expect a rate far above the peak.

        `in_a_new_program` returns the times of the first five calls in `bfloat16` in a new Python
        process. `launch_and_finish` makes a call, and reads the timer before and after
        `torch.cuda.synchronize()`, which waits for the GPU. `matmul` is a function that does this
        matmul, `work` is the number of its FLOPs, and `peak_rate` is the GPU's peak in FLOP/s:
    """)
    shape = product_shape()  # @measure shape  # @hide
    good = time_product("bfloat16", shape)  # @measure good  # @hide
    ways = {}  # @hide
    card = find(torch.cuda.get_device_name())  # @hide
    peak_rate, boost = peak(card, "bfloat16"), card.boost if card else 1  # @hide
    work = 2 * shape[0] * shape[1] * shape[2]  # @hide
    cold = in_a_new_program(shape)  # @measure cold as s
    if cold:  # it is empty where a GPU accepts only one program
        first = cold[0] / median(cold)  # @measure first as times
        assert first > 1, \
            "The first of the five calls is slower than their median."
    if cold:  # @hide
        ways["first five calls"] = mean(cold)
    matmul = product_call("bfloat16", shape)  # @hide
    launched, finished = launch_and_finish(matmul)  # @measure launched, finished as s
    assert launched < finished - launched, \
        "Most of the time passes between the launch and the end of the work."
    ways |= {"no wait": launched, "warm-up and wait": good.seconds}  # @hide
    shares = {way: utilization(work, t, peak_rate) for way, t in ways.items()}  # @hide
    lines = [
        f"| {way} | {t * 1000:.3f} | {as_percent(shares[way])} |"
        for way, t in ways.items()
    ]  # @hide
    if peak_rate is not None:
        assert work / launched > peak_rate, \
            "Without waiting, the rate is higher than the peak: a sign of a bad measurement."
    note(f"{good.device}, `bfloat16`.{shrunk(shape[0], PRODUCT[0])}")
    note("| how | ms | MFU |\n|---|---|---|\n" + "\n".join(lines))
    if peak_rate is not None:  # @hide
        assert work / good.seconds <= peak_rate * boost, \
            "Measured correctly, the rate does not exceed the peak."  # @hide
    if peak_rate is not None:  # @hide
        assert 0.3 * peak_rate < work / good.seconds, \
            "Measured correctly, the rate is more than 30 % of the peak."  # @hide
    misbelief("The MFU of `bfloat16` is low because its peak is optimistic.", r"""
        The course CS336 says so of an MFU of $0.27$, the mean of the first five calls on an H100
        [@cs336]. But suppose that four of them reach $0.75$, and the first takes $10$ times as
        long. Then the mean time is `(10 + 4) / 5 = 2.8` times as long, and the MFU is
        `0.75 / 2.8 = 0.27`. A measurement after a warm-up shows which it is.
    """)
    question(r"""
        The first of `5` runs took `104` ms, the others `14` ms each. At `14` ms the MFU is `0.63`.
        What MFU does the mean of the five runs give?
    """, answer=round(0.63 * 14 / ((104 + 4 * 14) / 5), 3),
        check=round(5 / sum(ms / 14 / 0.63 for ms in (104, 14, 14, 14, 14)), 3),  # the harmonic mean of five MFUs
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
    """Launched one by one, matmuls that take less time than a launch stay far below the peak."""
    note(r"""
        Why does a GPU come close to its peak only with large matmuls? One reason is the *launch*:
        to start a matmul, the program hands it to the GPU, and that takes some microseconds,
        whatever the size. If the matmul takes less than that, the GPU is idle until the next
        launch.

        By hand, for an H100 with a peak of `989.5e12` FLOP/s in `bfloat16` [@nvidia-h100], and a
        launch of $5$ µs, an assumed value. A matmul of two $n \times n$ matrices costs $2n^3$
        FLOPs:

        | width $n$ | the matmul at the peak takes, s | one matmul every | share of the peak |
        |---|---|---|---|
        | $256$ | `2 * 256**3 / 989.5e12 = 3.4e-8` | launch: $5$ µs | `3.4e-8 / 5e-6 = 0.0068` at most |
        | $8192$ | `2 * 8192**3 / 989.5e12 = 1.1e-3` | matmul: $1100$ µs | `1.1e-3 / 1.1e-3 = 1` at most |

        So at a width of $256$ the launches limit the rate to less than a hundredth of the peak. At
        $8192$ the next launch is over long before the matmul is.

        Launches can be avoided: a *CUDA graph* is a recorded list of operations that is launched
        once. `time_call` launches each matmul, and `time_graph` records many in one graph; both
        return the time of one matmul. For small `n`, expect a higher rate in the graph, and for
        large `n` the same. Even in a graph a small matmul stays below the peak: it has too little
        work for all units of the GPU, and waits until its matrices are read from memory.

        The widths are powers of two, from $256$ on. `pairs` are random $n \times n$ matrices in
        `bfloat16`, more of them than fit into the GPU's *cache*, its small fast memory:
    """)
    largest = scaled(16384, lambda n: 20 * n * n)  # @hide
    sizes = [2**k for k in range(8, 15) if 2**k <= largest]  # @hide
    launched, rates = [], []  # FLOP/s  # @hide
    for n in sizes:  # 256, 512, 1024, ...
        pairs = beyond_cache(partial(random_pair, n), "cuda")  # @hide
        single = time_call(torch.matmul, "cuda", inputs=pairs)  # @measure single
        in_graph = time_graph(torch.matmul, pairs)  # @measure in_graph
        launched.append(2 * n**3 / single.seconds)  # @measure launched[-1] as FLOP/s
        rates.append(2 * n**3 / in_graph.seconds)  # @measure rates[-1] as FLOP/s
    assert launched[0] < max(launched) / 2, \
        "Launched one by one, the smallest matmul has less than half of the best rate."
    small = [r for n, r in zip(sizes, rates) if n <= 2048]  # @hide
    gains = [after / before for before, after in pairwise(small)]  # @measure gains as times  # @hide
    assert min(gains, default=1) > 0.9, \
        "In a graph, doubling the width up to 2048 lowers the rate by less than a tenth, if at all."  # @hide
    assert rates[0] < max(rates) / 2, \
        "The smallest matmul has less than half of the best rate."  # @hide
    lost = rates[0] / launched[0]  # @measure lost as times  # @hide
    assert lost > 0.9, \
        "In a graph, the smallest matmul has at least nine tenths of its rate with single launches."  # @hide
    card = find(torch.cuda.get_device_name())  # @hide
    rate = peak(card, str(narrow_format()))  # @hide
    if card is not None and rate is not None:  # @hide
        assert max(rates) <= rate * card.boost, "No matmul exceeds the peak."  # @hide
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
        # Cut into blocks of 256, the large matmul is so many small ones, in the time of two:
        check=len([(row, col, inner) for row in (0, 256) for col in (0, 256) for inner in (0, 256)]) / 2, unit="times",
        wrong={
            "That counts FLOPs alone; the time doubles.": 8,
            "The FLOPs grow with the third power of the width.": 2,
        },
        hint="How many times as many FLOPs does the large matmul need?",
        why="Twice the width means `8` times the FLOPs, and they take twice the time.")


def reachable(clock: float | None) -> float | None:
    """The FLOP/s in `bfloat16` of all multiprocessors at a clock; None where that is not known.

    In a cycle, a multiprocessor of an A100 does 2048 FLOPs [@nvidia-ampere], one of an H100 or H200 does 4096 [@nvidia-hopper].
    """
    each = {(8, 0): 2048, (9, 0): 4096}.get(torch.cuda.get_device_capability())
    if each is None or clock is None:
        return None
    parts = torch.cuda.get_device_properties().multi_processor_count
    return parts * each * clock


@aside
@requires("cuda")
def a_lower_clock_lowers_the_peak() -> None:
    """At a lower clock than that of its stated peak, a GPU cannot reach the peak."""
    note(r"""
        Why does even a large matmul, on a warm GPU, stay below the peak? One reason is the *clock*,
        the number of cycles in a second. In a cycle each unit of the chip does at most a fixed
        number of FLOPs, so with fewer cycles in a second the chip can do fewer FLOPs in a second.

        By hand: a chip has $2$ units, and each does $3$ FLOPs in a cycle. At $10$ cycles in a
        second it does at most `2 * 3 * 10 = 60` FLOP/s. At $8$ it does at most `2 * 3 * 8 = 48`,
        which is `48 / 60 = 0.8` of that.

        An H100 has `132` units, its *multiprocessors*, and each does `4096` FLOPs in `bfloat16` in
        a cycle. Its peak is stated for `1.83e9` cycles in a second: `132 * 4096 * 1.83e9 = 989e12`
        FLOP/s [@nvidia-hopper]. At $1.6 \cdot 10^9$ cycles it can do `132 * 4096 * 1.6e9 = 865e12`,
        which is `865 / 989 = 0.87` of the peak.

        What lowers the clock? A GPU may draw only so much power, `700` W in an H100 SXM
        [@nvidia-h100]. When it reaches this limit, it lowers its clock. A large matmul of random
        elements may need that much, because it keeps all units busy. So from a small to a large
        width `n`, expect more power, and a lower clock if the limit is reached.

        Here the matmul of each width is repeated for a second. `reading` is the clock and the power
        that the GPU's driver reports in that second, or nothing where it does not tell. `reachable`
        multiplies multiprocessors, FLOPs per cycle and clock, as above. `share` is the measured
        rate divided by that. (The driver reports the clock at one instant, so a share may be a
        little above $1$.) `powers` and `known` are the powers and shares of all widths;
        `driver_tells` says whether there is a reading for each:
    """)
    largest = scaled(16384, lambda n: 20 * n * n)  # @hide
    sizes = [2**k for k in range(10, 15) if 2**k <= largest]  # @hide
    rates, readings, shares = [], [], []  # @hide
    for n in sizes:  # 1024, 2048, 4096, ...
        call = partial(torch.matmul, *random_pair(n))
        timing, reading = for_a_second(call)  # @measure timing, reading
        rate = 2 * n**3 / timing.seconds  # @measure rate as FLOP/s
        limit = reachable(reading.clock)  # @measure limit as FLOP/s
        share = rate / limit if limit else None  # @measure share as %
        rates.append(rate)  # @hide
        readings.append(reading)  # @hide
        shares.append(share)  # @hide
    clocks = [p.clock for p in readings if p.clock]  # @measure clocks as Hz  # @hide
    powers = [p.power for p in readings if p.power]  # @measure powers as W  # @hide
    driver_tells = len(clocks) == len(powers) == len(sizes)  # @hide
    if driver_tells:
        assert powers[0] < powers[-1], \
            "The largest matmul draws more power than the smallest."
    if driver_tells:  # @hide
        assert clocks[-1] < 1.05 * clocks[0], \
            "The clock of the largest matmul is at most 5 % higher than that of the smallest."  # @hide
    known = [share for share in shares if share is not None]  # @measure known as %  # @hide
    if known:
        assert max(known) < 1.1, \
            "No matmul reaches more than 110 % of what its clock allows."
    if known:  # @hide
        assert max(known) > 0.6, \
            "The best matmul does more than 60 % of what its clock allows."  # @hide
    lines = [
        f"| {n} | {r / TERA:.1f} | {reading} | {as_percent(part)} |"
        for n, r, reading, part in zip(sizes, rates, readings, shares)
    ]  # @hide
    note("| width | TFLOP/s over a second | clock, power | share of what the clock allows "
         "|\n|---|---|---|---|\n" + "\n".join(lines))
    question(r"""
        A GPU has `132` multiprocessors, and each does `4096` FLOPs in a cycle. Under load, its
        clock falls to `1.5e9` cycles in a second, and a matmul does `730e12` FLOP/s. What share is
        that of the rate that the GPU can reach at this clock?
    """, answer=730e12 / (132 * 4096 * 1.5e9),
        check=0.73 / 0.811008, within=0.01,
        wrong={
            "That is the share of the peak, at 1.83e9 cycles in a second.": 730e12 / (132 * 4096 * 1.83e9),
        },
        hint="How many FLOP/s do all multiprocessors do at this clock?",
        why=r"""
            At this clock the GPU can reach `132 * 4096 * 1.5e9 = 811e12` FLOP/s, so the matmul does
            `730 / 811 = 0.90` of that, although its MFU is only `0.74`.
        """)


def seconds_beyond_cache(  # @stepover
    call: Callable[..., object], *shapes: tuple[int, ...]
) -> float:
    """The seconds of a call on random tensors of these shapes, so many sets in turn that they do not fit into the cache."""
    dtype = narrow_format()

    def tensors() -> list[Tensor]:
        return [torch.randn(shape, device="cuda").to(dtype) for shape in shapes]

    inputs = beyond_cache(tensors, "cuda", least=8)
    return time_call(call, "cuda", inputs=inputs).seconds


@aside
@requires("cuda")
def the_roof_is_measured_here() -> None:
    """The bandwidth, which a large copy measures, limits operations with few FLOPs per byte."""
    count = scaled(2**28, lambda n: 14 * n)  # @hide
    n = scaled(8192, lambda n: 40 * n * n + 80 * 4096 * n)  # @measure n  # @hide
    note(rf"""
        What is the maximum speed of an operation? Either the arithmetic or the memory limits it.
        Its rate is at most the *peak*, and at most its FLOPs per byte times the *bandwidth*, the
        bytes that the memory moves in a second. The smaller of the two is the
        [roofline](#the_roofline_shows_what_waits_for_memory).

        By hand: a GPU has a peak of $100$ FLOP/s and moves $10$ bytes in a second. An operation
        with $2$ FLOPs per byte does at most `2 * 10 = 20` FLOP/s, because it waits for memory. One
        with $50$ could do `50 * 10 = 500`, but the peak limits it to $100$.

        An H100 moves `3.35e12` bytes in a second and has a peak of `989.5e12` FLOP/s in `bfloat16`
        [@nvidia-h100]. Let a matmul multiply $t$ tokens of $n$ elements by $n \times n$ weights,
        $2$ bytes each. It does $2tn^2$ FLOPs, and moves $2(tn + n^2 + tn)$ bytes: tokens, weights
        and results. So it does $tn / (n + 2t)$ FLOPs per byte, for $n = 8192$:

        | tokens $t$ | FLOPs per byte | at most, FLOP/s |
        |---|---|---|
        | $1$ | `1 * 8192 / (8192 + 2 * 1) = 1` | `1 * 3.35e12 = 3.35e12` |
        | $64$ | `64 * 8192 / (8192 + 2 * 64) = 63` | `63 * 3.35e12 = 211e12` |
        | $4096$ | `4096 * 8192 / (8192 + 2 * 4096) = 2048` | the peak, since `2048 * 3.35e12` is more |

        So with one token expect less than a hundredth of the rate with $4096$. How near does a GPU
        come to that? A large copy of `x` to `y` measures the bandwidth, because it computes
        nothing: it reads each byte once and writes it once. `seconds_beyond_cache` times a matmul
        while it cycles through so many random matrices that none is still in the *cache*, the small
        fast memory on the chip. `card` is the datasheet of this GPU, if the book has
        it:{shrunk(n, 8192)}
    """)
    dtype = narrow_format()  # @hide
    x = torch.randn(count, device="cuda").to(dtype)  # @hide
    y = torch.empty_like(x)  # @hide
    copied = time_call(lambda: y.copy_(x), "cuda")  # @measure copied
    bandwidth = (x.nbytes + y.nbytes) / copied.seconds  # @measure bandwidth as B/s
    del x, y  # @hide
    added = seconds_beyond_cache(torch.add, (n * n,), (n * n,))  # @measure added as s  # @hide
    points = {"x + y": Point(1 / 6, n * n / added)}  # 1 FLOP for 3 elements of 2 bytes  # @hide
    labels = {1: "one token", 64: "64 tokens", 4096: "4096 tokens"}  # @hide
    for tokens in (1, 64, 4096):
        seconds = seconds_beyond_cache(torch.matmul, (tokens, n), (n, n))
        reached = 2 * tokens * n * n / seconds  # @measure reached as FLOP/s
        points[labels[tokens]] = Point(intensity(tokens, n, n), reached)  # @hide
    card = find(torch.cuda.get_device_name())  # @hide
    if card is not None:
        share = bandwidth / card.bandwidth  # @measure share as %
        assert share <= 1, "The copy is no faster than the datasheet says."
    if card is not None:  # @hide
        assert share > 0.5, \
            "The copy reaches more than half of the datasheet's bandwidth."  # @hide
    ratio = points["4096 tokens"].rate / points["one token"].rate  # @measure ratio as times  # @hide
    assert ratio > 10, \
        "With 4096 tokens the rate is more than 10 times the rate with one token."
    rate = peak(card, str(dtype))  # @hide
    if card is not None and rate is not None:  # @hide
        slope, found = card.bandwidth, points.values()
        roofs = [min(rate * card.boost, p.intensity * slope) for p in found]
        over = [p.rate / roof for p, roof in zip(found, roofs)]  # @measure over
        assert max(over) <= 1, \
            "The addition and the three matmuls stay below the datasheet's roofline."  # @hide
    top = rate or max(point.rate for point in points.values())  # @hide
    slopes = {"dashed": bandwidth}  # @hide
    slopes |= {} if card is None else {"solid": card.bandwidth}  # @hide
    solid = "" if card is None else " The solid line is the datasheet's roof."  # @hide
    figure(plot_measured_roof(top, slopes, points),
        caption=f"Measured rates of the matmuls and of an addition, `x + y`. The dashed line is the bandwidth of the copy.{solid}", alt=r"""
            TFLOP/s against FLOPs per byte, both logarithmic, with the roof of bandwidth and peak.
            An addition and the matmul of a single token lie low on the slope, the matmul of many
            tokens lies near the flat part.
        """)
    question(r"""
        A copy of `2` GiB takes `2` ms. How many bytes does the memory move in a second, reading and
        writing together?
    """, answer=2 * 2 * GiB / 2e-3,
        check=2**32 / 2e-3,
             unit="B/s",
        wrong={
            "Each byte is read and written.": 2 * GiB / 2e-3,
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
        check=sum(2**29 * kind.itemsize for kind in (torch.bfloat16, torch.bfloat16)), unit="B",  # read, written
        wrong={
            "The result is written as well.": 2 * 2**29,
            "An element in bfloat16 has two bytes.": 2 * 2**29 * 4,
        },
        hint="How many bytes does the tensor have? Each is read, and the same number of bytes is written.",
        why="The tensor has `2 * 2**29` bytes. They are read once, and the same number of bytes is written.")
