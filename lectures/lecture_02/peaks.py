"""Peak rates and MFU, on paper and measured, and the roofline measured."""
import inspect
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import mean, median

import torch
import torch.nn.functional as F
from hardware import CARDS, Card, find, how_to_add, peak
from jaxtyping import Float
from timing import BUSY, Timing, beyond_cache, time_call, time_graph
from torch import Tensor
from units import GB, TERA, GiB, MiB

from litbook import aside, figure, misbelief, note, question, requires

from .figures import plot_measured_roof, plot_sweep
from .measure import (
    E4M3, Point, clock_and_power, cool_down, dense_peak, float32_products, intensity, narrow_format,
    product_seconds, scaled, shrunk,
)


def peaks_and_mfu() -> None:
    """Peaks and MFU."""
    note(r"""
        How well is a card used? One divides the FLOPs that it does in a second by its peak. That
        sounds simple, and goes wrong in two ways. A card has several peaks, and dividing by the
        wrong one gives a share that is far too high or too low. And a time that is measured
        carelessly is not the time of the work.
    """)
    every_peak_belongs_to_a_format()
    compare_dense_with_dense()
    sparsity_means_two_of_every_four()
    narrow_formats_are_fast_because_of_their_units()
    tf32_saves_no_bytes()
    the_first_calls_are_not_the_ones_to_time()
    mfu_counts_what_the_model_needs()
    the_denominator_decides()
    a_sparse_peak_halves_the_answer()
    one_slow_first_call_explains_a_low_mfu()
    without_a_peak_there_is_no_mfu()
    a_launch_returns_before_the_work_is_done()
    five_formats_are_measured_here()
    three_bad_measurements_are_repeated_here()
    larger_products_come_closer_to_the_peak()
    the_roof_is_measured_here()


def every_peak_belongs_to_a_format() -> None:
    """A GPU has a different peak for each number format."""
    note(r"""
        How many FLOPs can a GPU do in a second? That depends on the number format, because
        different units of the chip do the work. Ordinary units compute in `float32`. *Tensor cores*
        multiply small blocks of matrices, much faster, and the faster the narrower the numbers.
        `tf32` is a `float32` that the tensor cores [round](#tf32_saves_no_bytes) before they
        multiply it. `dense_peak` looks up the peak of a GPU for ordinary, dense matrices. In
        TFLOP/s, which are `10**12` FLOPs in a second:
    """)
    formats = "float32", "tf32", "bfloat16"
    a100 = [dense_peak("A100 SXM 80GB", f) / TERA for f in formats]
    h100 = [dense_peak("H100 SXM", f) / TERA for f in formats]
    assert a100 == [19.5, 156.0, 312.0], \
        "The peaks of an A100 are 19.5, 156 and 312 TFLOP/s."
    assert h100 == [67.0, 494.5, 989.5], \
        "The peaks of an H100 are 67, 494.5 and 989.5 TFLOP/s."
    note(r"""
        The datasheets print these numbers [@nvidia-a100; @nvidia-h100]. Where do they come from? A
        GPU has many equal parts, its *multiprocessors*. The peak is their number, times the FLOPs
        that each does in a tick of the clock, times the ticks in a second. An A100 has `108`
        multiprocessors, and its clock ticks `1.41e9` times a second. In a tick each does `128`
        FLOPs in `float32`, or `2048` in `bfloat16` [@nvidia-ampere]:
    """)
    ampere = [108 * 128 * 1.41e9, 108 * 2048 * 1.41e9]  # A100: the same two
    rebuilt = [round(rate / TERA, 1) for rate in ampere]  # @inspect rebuilt
    assert rebuilt == [19.5, 311.9], \
        "The products are 19.5 and 311.9 TFLOP/s, the peaks of the datasheet."
    hopper = 132 * 256 * 1.98e9, 132 * 4096 * 1.83e9  # an H100 [@nvidia-hopper]  # @hide
    newer = [round(rate / TERA, 1) for rate in hopper]  # @hide
    assert newer == [66.9, 989.4], \
        "An H100 has 132 multiprocessors that do twice as much in a tick, and the products fit, too."  # @hide
    misbelief("The peak of an A100 is `312` TFLOP/s.", rf"""
        Only in `bfloat16` and `float16`, on the tensor cores. In ordinary `float32` the peak is
        {a100[0]} TFLOP/s, and in `tf32` it is {a100[1]:.0f}.
    """)
    question(r"""
        An A100 works at its peak. In `bfloat16` it needs `1` s for a product. How long does it need
        for the same product in ordinary `float32`?
    """, answer=dense_peak("A100 SXM 80GB", "bfloat16") / (a100[0] * TERA),
        wrong={
            "That is tf32, on the tensor cores.": 2,
        },
        check=2048 / 128,
        hint="The FLOPs are the same. How many times slower are they done?", unit="s",
        why=r"""
            The FLOPs are the same, and the peak is `312 / 19.5 = 16` times lower: in `float32` a
            multiprocessor does `128` FLOPs a tick instead of `2048`.
        """)


@aside
def compare_dense_with_dense() -> None:
    """Compare two cards by the same kind of peak, dense with dense."""
    note(r"""
        How many times as fast as an A100 is an H100 in `bfloat16`? The datasheet of the H100 prints
        `1979` TFLOP/s [@nvidia-h100]. That number is for *sparse* matrices, of which half of the
        numbers are zero [in a given pattern](#sparsity_means_two_of_every_four). Training
        multiplies *dense* matrices, without such zeros. For these the peak is half as high:
    """)
    printed = 1979e12  # @inspect printed as FLOP/s
    dense = dense_peak("H100 SXM", "bfloat16")  # @inspect dense as FLOP/s
    assert printed / dense == 2.0, "The printed peak is twice the dense peak."
    note(r"""
        The peak that one usually reads for the A100, `312` TFLOP/s, is a dense one [@nvidia-a100].
        So divide the dense peak of the H100 by it, not the sparse one:
    """)
    older = dense_peak("A100 SXM 80GB", "bfloat16")  # @inspect older as FLOP/s
    mixed, fair = printed / older, dense / older  # @inspect mixed, fair as times
    assert 6.3 < mixed < 6.4, \
        "Sparse divided by dense, the factor would be more than 6."
    assert 3.1 < fair < 3.2, \
        "Dense divided by dense, the factor is a little more than 3."
    misbelief(f"An H100 is more than {mixed:.0f} times an A100.", rf"""
        That divides a sparse peak by a dense one. Dense by dense it is {fair:.2f} times.
    """)
    narrow = dense_peak("H100 SXM", "float8")
    question(rf"""
        In `float8` the datasheet of the H100 prints `{2 * narrow / TERA:.0f}` TFLOP/s, with
        sparsity. How many times its dense `bfloat16` peak is its dense `float8` peak?
    """, answer=narrow / dense,
        check=3958 / 1979, unit="times",
        wrong={
            "That divides a sparse peak by a dense one.": 4,
        },
        hint="Take both peaks with sparsity, or both without.",
        why=r"""
            Both dense peaks are half of what the datasheet prints, so their ratio is that of the
            printed ones. Numbers of half the width are multiplied twice as fast.
        """)


@aside
def sparsity_means_two_of_every_four() -> None:
    """On a datasheet, sparsity means that two of every four neighbours are zero."""
    note(r"""
        Half of the weights of a matrix are zero. Does a GPU multiply it twice as fast? Only if the
        zeros follow a pattern: of every `4` neighbouring weights, `2` are zero. Then the other two
        are stored next to each other, with their places, and half of the multiplications are left
        out [@mishra2021]. That is what a datasheet means by *sparsity*. Cut random weights into
        groups of `4`, and set the two smallest of each group to zero:
    """)
    w: Float[Tensor, "group four"] = torch.randn(2**16, 4)
    smallest = w.abs().topk(2, largest=False).indices
    pruned = w.scatter(1, smallest, 0.0)
    zeros = (pruned == 0).sum(dim=1)  # @inspect zeros
    assert zeros.min() == zeros.max() == 2, "Every group has two zeros."
    note(r"""
        Now set each weight to zero with a chance of one half. Again half of the weights are zero,
        but they are spread unevenly. Of the `2**4 = 16` ways to choose zeros in a group of four,
        `11` have two zeros or more, and the others break the pattern:
    """)
    scattered = torch.where(torch.rand_like(w) < 0.5, w, 0.0)
    fits = ((scattered == 0).sum(dim=1) >= 2).double().mean().item()  # @inspect fits
    share = sum(math.comb(4, z) for z in (2, 3, 4)) / 2**4  # @inspect share
    assert share == 11 / 16, "The chance of two zeros or more is 11 / 16."
    assert 0.97 < fits / share < 1.03, \
        "Of the groups that were drawn, about 11 / 16 have two zeros or more."
    note(r"""
        And does an ordinary product skip zeros? No. Otherwise a matrix of nothing but zeros would
        take next to no time. `product_seconds` times the product of a matrix with itself, on one
        core of this processor:
    """)
    x = torch.randn(512, 512)
    dense = product_seconds(x)  # @measure dense as s
    empty = product_seconds(torch.zeros(512, 512))  # @measure empty as s
    small = product_seconds(x[:64, :64].contiguous())  # @measure small as s  # @hide
    assert small < min(dense, empty), \
        "The zeros take longer than a small product."  # @hide
    slower = max(empty, dense) / min(empty, dense)  # @measure slower as times
    assert slower < BUSY, "Zeros take about as long as random numbers."
    misbelief("Sparse means that most entries are zero, and that the hardware skips zeros.", r"""
        The doubled rate of a datasheet needs two zeros in every four neighbours. Zeros elsewhere
        are multiplied like any other number.
    """)
    question(r"""
        Half of the weights `0, 0, 0, 0, 5, 6, 7, 8` are zero. How many more have to become zero, so
        that every group of four neighbours has at least two zeros?
    """, answer=(2 - (torch.tensor([[0, 0, 0, 0], [5, 6, 7, 8]]) == 0).sum(dim=1))
        .clamp(min=0).sum().item(),
        check=sum(max(0, 2 - row.count(0)) for row in ([0, 0, 0, 0], [5, 6, 7, 8])), unit="weights",
        wrong={
            "Half of all weights is not enough: each group needs two zeros.": 0,
        },
        hint="Look at each of the two groups by itself.",
        why="The first four neighbours have more zeros than they need. The others have none, and need two.")


@aside
def narrow_formats_are_fast_because_of_their_units() -> None:
    """Narrow formats are fast because of the units that multiply them."""
    note(r"""
        Why is a product in `bfloat16` faster than in `float32`? Not because more of its numbers fit
        into memory. Memory decides how large a model can be. How fast a product is, the units
        decide that multiply. Two comparisons show it. The A100 was sold with two sizes of memory,
        and both cards have the same peak [@nvidia-a100]:
    """)
    small, large = CARDS["A100 SXM 40GB"], CARDS["A100 SXM 80GB"]
    assert large.memory / small.memory == 2.0, \
        "One card has twice the memory of the other."
    rates = small.bfloat16, large.bfloat16  # @inspect rates as FLOP/s
    assert rates == (312e12, 312e12), "Both cards have the same peak."
    note(r"""
        And the bytes of a number do not decide its rate. Compare two formats with `float32` on an
        H100. A `bfloat16` takes half the bytes. [TF32](#tf32_saves_no_bytes) takes as many bytes as
        `float32`, but special units multiply it with fewer of its bits:
    """)
    ordinary = dense_peak("H100 SXM", "float32")
    narrow = dense_peak("H100 SXM", "bfloat16") / ordinary  # @inspect narrow as times
    widths = torch.float32.itemsize, torch.bfloat16.itemsize
    assert widths == (4, 2), \
        "A float32 takes 4 bytes, a bfloat16 takes 2."
    assert 14.7 < narrow < 14.8, \
        "With half the bytes, the peak of bfloat16 is nearly 15 times as high."
    same_bytes = dense_peak("H100 SXM", "tf32") / ordinary  # @inspect same_bytes as times
    assert 7.3 < same_bytes < 7.4, \
        "With the same bytes, the peak of TF32 is more than 7 times as high."
    misbelief("Narrow formats are fast because memory is fixed: more of them fit and run side by side.",
        rf"""
            A product is fast because of the units that multiply. With the bytes of `float32`, TF32
            has {same_bytes:.1f} times its peak.
        """)
    question(rf"""
        The larger A100 moves `{large.bandwidth / GB:.0f}` GB/s between memory and chip, the smaller
        one `{small.bandwidth / GB:.0f}`. How many times as fast is the larger card at a product
        that runs at its peak, and at an addition that waits for memory? Give two numbers.
    """, answer=[rates[1] / rates[0], large.bandwidth / small.bandwidth],
        check=[1.0, 2039 / 1555], unit="times",
        hint="Which of the two operations depends on the peak, and which on the GB/s?",
        why=r"""
            Both cards have the same peak, so the product takes as long on either. An addition that
            waits for memory is faster by the ratio of the GB/s.
        """)


def to_tf32(x: Tensor) -> Tensor:
    """A float32 tensor rounded to the ten fraction bits of TF32."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@aside
def tf32_saves_no_bytes() -> None:
    """TF32 rounds the numbers that are multiplied, and saves no bytes."""
    note(r"""
        TF32 sounds like a number format, but no tensor is stored in it. The tensors stay `float32`.
        When tensor cores multiply them, they round the fraction of each number to `10` bits first
        [@nvidia-ampere]. So the product is faster and less exact, and memory is the same. Rounding
        shows the effect on any machine. `to_tf32` rounds to `10` fraction bits:
    """)
    x, y = torch.randn(256, 256), torch.randn(256, 256)
    size = to_tf32(x).nbytes  # @inspect size as B
    assert size == x.nbytes == 256 * 256 * 4, \
        "After rounding, a number still takes 4 bytes."
    near = torch.tensor([1 + 2**-10, 1 + 2**-12])  # @unnoticed: 10 -> 11, 2, 12: half a step is rounded up, what is smaller away
    assert to_tf32(near).tolist() == [1 + 2**-10, 1.0], \
        "The tenth fraction bit stays, the twelfth is rounded away."
    exact = x.double() @ y.double()

    def error(a: Tensor, b: Tensor) -> float:
        off = a.double() @ b.double() - exact
        return float(off.norm() / exact.norm())

    tf32 = error(to_tf32(x), to_tf32(y))  # @inspect tf32 as %
    assert 2.8e-4 < tf32 < 3.2e-4, \
        "With inputs rounded to TF32, the product is off by about 0.03 %."
    bfloat16 = error(x.bfloat16(), y.bfloat16())  # @inspect bfloat16 as %
    assert 7.5 < bfloat16 / tf32 < 8.5, \
        "With bfloat16, which has 7 fraction bits, it is off 8 times as much."
    note(r"""
        Because TF32 changes results, PyTorch does not use it for matrix products unless it is asked
        to, by `torch.set_float32_matmul_precision("high")`. The default is `"highest"`
        [@pytorch-precision]. So the peak of a `float32` product is that of TF32 only after this
        call. For convolutions TF32 is on by default [@pytorch-tf32].
    """)
    override = os.environ.get("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")  # @measure override
    setting = torch.get_float32_matmul_precision()  # @measure setting
    if override is None:
        assert setting == "highest", "TF32 is off for products by default."
    with float32_products("high"):  # @hide
        assert torch.get_float32_matmul_precision() == "high", "It can be switched on."
    assert torch.get_float32_matmul_precision() == setting, "Afterwards it is as before."  # @hide
    assert torch.backends.cudnn.allow_tf32 is True, \
        "TF32 is on for convolutions by default."
    whole = torch.arange(1.0, 9999.0)  # @unnoticed: 9999.0: far enough
    question("Which is the first whole number above zero that TF32 rounds to another one?",
             answer=int(whole[to_tf32(whole) != whole][0]),
        check=2 ** (10 + 1) + 1, within=0.0001,
        wrong={
            "There is a leading binary digit before the ten of the fraction.": 1025,
            "That is a power of two, and exact.": 2048,
        },
        hint="With the digit before the point, how many binary digits has a TF32 number?",
        why=r"""
            With the leading one, TF32 has `11` binary digits. They are enough for all whole numbers
            up to `2**11`. The next one needs a twelfth digit.
        """)


def mean_seconds(call: Callable[[], object], runs: int) -> float:  # @stepover
    """The mean seconds of so many calls, without warm-up."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return mean(times)


def starts_slowly(x: Tensor, extra: int) -> Callable[[], Tensor]:  # @stepover
    """A product of matrices whose first call does `extra` more products, as set-up does."""
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
        mean. But the first call is slow: the library chooses a *kernel*, the program that the
        device will run, perhaps compiles it, and asks for memory. This set-up is then in the mean.
        The remedy is a *warm-up*: call the operation until the times of several calls agree, and
        only then measure. `time_call` does so, and reports the median.

        Take a product whose first call does the work of `200` more products. `mean_seconds` takes
        the mean of `5` calls without a warm-up:
    """)
    x = torch.randn(16, 16)
    setup = 200
    cold = mean_seconds(starts_slowly(x, setup), runs=5)  # @measure cold as s
    steady = time_call(starts_slowly(x, setup), repeats=11)  # @measure steady
    assert steady.seconds < cold, \
        "The mean without a warm-up is longer than the median after one."
    note(r"""
        The `5` calls do the work of `5 + 200` products. So the mean should be `205 / 5 = 41` times
        the time of one product:
    """)
    expected = (5 + setup) / 5  # @inspect expected as times
    assert expected == 41.0, \
        "By counting products, the mean should be 41 times too long."
    observed = cold / steady.seconds  # @measure observed as times
    tenth = (5 + setup / 10) / 5  # @hide
    assert tenth == 5.0, \
        "With a tenth of the set-up, the mean would be 5 times too long."  # @hide
    assert tenth < observed, "Measured, the mean is more than 5 times too long."  # @hide
    misbelief("Published timings are averages over many runs, after a warm-up.", r"""
        Not all of them: the timer of CS336 takes the mean of `5` calls without a warm-up [@cs336].
        Before you quote a time, ask how it was measured.
    """)
    question(r"""
        The first call does the work of `200` more calls, and there is no warm-up. How many calls
        are needed, so that their mean is only a tenth too high?
    """, answer=round(setup / (1.1 - 1)),
        wrong={
            "With 200 calls the mean is twice too high.": 200,
        },
        check=next(n for n in range(1, 9999) if (n + setup) / n <= 1.1),
        hint="How many products are done in $n$ calls, with the set-up?", unit="calls", within=0.05,
        why=r"""
            In $n$ calls the work of $n + 200$ products is done. A tenth too high means that the
            `200` are a tenth of $n$.
        """)


def utilization(
    work: float, seconds: float, rate: float | None
) -> float | None:
    """FLOPs per second as a share of a rate in FLOP/s; None where there is no rate."""
    return None if rate is None else work / seconds / rate


def mfu_counts_what_the_model_needs() -> None:
    """MFU counts the FLOPs that the model needs, not those that the card does."""
    note(r"""
        How well does a training step use a card? *Model FLOPs utilization*, MFU, is the answer in
        one number:

        $$
        \mathrm{MFU} = \frac{\mathrm{FLOPs\ that\ the\ model\ needs}}{\mathrm{seconds} \times \mathrm{peak}}
        $$

        Why "that the model needs"? Because a card can do FLOPs that bring training no further. A
        training step needs `6` FLOPs per parameter and token, `2` of them in the forward pass. To
        save memory, some steps do
        [their forward pass twice](#checkpointing_trades_flops_for_memory). Then the card does `8`,
        and the model still needs `6`.

        Take such a step with `10**9` parameters and `500_000` tokens, in `8` s on an H100 with its
        peak of `989.5 * 10**12` FLOP/s. `utilization` divides FLOPs by seconds and by the peak:
    """)
    params, tokens, seconds = 10**9, 500_000, 8.0
    rate = dense_peak("H100 SXM", "bfloat16")
    needed, done = 6 * params * tokens, 8 * params * tokens
    mfu = utilization(needed, seconds, rate)  # @inspect mfu
    hardware = utilization(done, seconds, rate)  # @inspect hardware
    assert mfu is not None, "The peak is known."  # @hide
    assert hardware is not None, "The peak is known for both."  # @hide
    assert 0.37 < mfu < 0.38, \
        "MFU counts 6 FLOPs per parameter and token, and is 0.38."
    assert 1.33 < hardware / mfu < 1.34, \
        "Counting the 8 FLOPs that the card does, the share would be a third higher."
    misbelief("MFU is the actual FLOP/s divided by the promised FLOP/s.", rf"""
        That is *hardware* utilization, here {hardware:.1%}. MFU does not count what is computed
        again [@palm], and is {mfu:.1%}.
    """)
    note("Let the step take `2` s more, in which the card waits for other machines. The FLOPs stay the same, and the seconds grow from `8` to `10`:")
    stalled = utilization(needed, seconds + 2.0, rate)  # @inspect stalled
    assert stalled is not None, "The peak is known here, too."  # @hide
    assert 0.79 < stalled / mfu < 0.81, \
        "With the waiting, MFU is 8 / 10 of what it was."  # @hide
    misbelief("MFU ignores communication and other overhead.", rf"""
        It does not: the seconds go on while the card waits. Here MFU falls from {mfu:.1%} to
        {stalled:.1%}.
    """)
    question(r"""
        The model needs `6` FLOPs per parameter and token, `2` of them in the forward pass. A step
        repeats *half* of its forward pass. Counting all FLOPs that the card does, its utilization
        is `0.42`. What is its MFU?
    """, answer=0.42 * needed / (7 * params * tokens),
        wrong={
            "Only half of the forward pass is repeated, not all of it.": 0.42 * 6 / 8,
            "That counts what the card does, and MFU what the model needs.": 0.42,
        },
        check=0.42 * 6 / 7,
        hint="How many FLOPs does the card do for each `6` that the model needs?",
        why=r"""
            Half of the forward pass is `1` FLOP, so the card does `7` for each `6` that the model
            needs. MFU counts the `6`: `0.42 * 6 / 7`.
        """)


@aside
def the_denominator_decides() -> None:
    """A utilization is right only if it divides by the peak of the format that was used."""
    note(r"""
        A utilization is a measured rate divided by a peak. A card has a peak for each number
        format, so which one is right? The one of the format that was used. The course CS336
        published a measurement: a product of `16384 * 32768` by `32768 * 8192` numbers in `float32`
        on an H100 took `0.163` s, which is `5.409e13` FLOP/s [@cs336]:
    """)
    work, rate = 2 * 16384 * 32768 * 8192, 5.409e13
    assert work == 8_796_093_022_208, "The product takes 8.8e12 FLOPs."  # @hide
    seconds = round(work / rate, 3)  # @inspect seconds as s
    assert seconds == 0.163, \
        "At this rate, the FLOPs of the product take 0.163 s."
    right = rate / dense_peak("H100 SXM", "float32")  # @inspect right as %
    assert 0.806 < right < 0.808, \
        "Divided by the float32 peak, the rate is four fifths of it."
    typed = rate / 67.5e12  # @hide
    assert 0.800 < typed < 0.802, \
        "With the peak of 67.5e12 in the course's code, it is nearly the same."  # @hide
    promised = dense_peak("H100 SXM", "bfloat16")
    wrong = rate / promised  # @inspect wrong as %
    assert 0.054 < wrong < 0.055, \
        "Divided by the bfloat16 peak, the rate is a twentieth of it."
    note(rf"""
        The tensors were `float32`, and the ordinary units multiplied them. Their peak is `67`
        TFLOP/s [@nvidia-h100], so the product reached {right:.1%} of its peak. The number that is
        quoted most, the peak in `bfloat16`, would give {wrong:.1%}.
    """)
    misbelief(f"An H100 promises {promised / TERA} TFLOP/s to a `float32` product.", r"""
        That is the promise for `bfloat16`. To `float32` it promises 67 TFLOP/s [@nvidia-h100].
    """)
    allowed = dense_peak("H100 SXM", "tf32")
    question(rf"""
        This product reached {right:.1%} of a peak of `67e12` FLOP/s, in {seconds} s. With TF32
        switched on, an H100 promises `{allowed / TERA}e12` FLOP/s. How many seconds would the
        product take at the same share of that peak?
    """, answer=work / (right * allowed),
        wrong={
            "At the same share of a higher peak it is faster.": work / rate,
            "That is at the full peak.": work / allowed,
        },
        check=work / rate * 67 / 494.5,
        hint="At the same share of a higher peak, how many times as fast is it?",
        why=r"""
            The TF32 peak is `494.5 / 67` times as high. At the same share of it the rate is as many
            times higher, and the time as many times shorter.
        """, unit="s")


@aside
def a_sparse_peak_halves_the_answer() -> None:
    """Divided by the sparse peak, a utilization is half of what it should be."""
    note(r"""
        CS336 also timed a product in `bfloat16` on an H100, with dense matrices, and got `2.684e14`
        FLOP/s [@cs336]. Which share of the peak is that? The datasheet prints `1979` TFLOP/s, for
        [sparse](#sparsity_means_two_of_every_four) matrices, of which half are zero [@nvidia-h100].
        The peak for dense matrices is half of that. Divide by both:
    """)
    work, rate = 2 * 16384 * 32768 * 8192, 2.684e14
    seconds = round(work / rate, 3)  # @hide
    assert work == 8_796_093_022_208, "The product takes 8.8e12 FLOPs."  # @hide
    assert seconds == 0.033, "At this rate they take 0.033 s, as published."  # @hide
    speedup = rate / 5.409e13  # @hide
    assert 4.95 < speedup < 4.97, \
        "The rate is nearly 5 times that of the same product in float32."  # @hide
    dense = rate / dense_peak("H100 SXM", "bfloat16")  # @inspect dense as %
    assert 0.271 < dense < 0.272, \
        "Divided by the dense peak, the rate is 27 % of it."
    sparse = rate / 1979e12  # @inspect sparse as %
    assert 0.135 < sparse < 0.136, \
        "Divided by the sparse peak, it is half of that, less than 14 %."
    note(rf"""
        The matrices were dense, so the dense peak is the right one, and the product reached
        {dense:.1%} of it. The sparse peak cannot be reached with dense matrices.
    """)
    question(r"""
        A dense product runs at the dense peak of its card, which is as fast as it can. Someone
        divides its rate by the sparse peak. Which share do they find?
    """, answer=dense_peak("H100 SXM", "bfloat16") / 1979e12,
        check=1 / CARDS["H100 SXM"].sparse_factor,
        wrong={
            "That is the share of the dense peak.": 1,
            "The sparse peak is the higher one.": 2,
        },
        hint="How many times as high as the dense peak is the sparse one?",
        why=r"""
            The sparse peak is twice the dense one. So even a perfect dense product seems to use
            half of the card.
        """)


@aside
def one_slow_first_call_explains_a_low_mfu() -> None:
    """One slow first call is enough to explain a low MFU."""
    note(r"""
        A product in `bfloat16` on an H100 was published at `2.684e14` FLOP/s, little more than a
        quarter of the peak, as the mean of `5` runs without a warm-up [@cs336]. Is the card so
        slow? Perhaps only the first run was, because it includes
        [set-up](#the_first_calls_are_not_the_ones_to_time). Suppose that the other four ran at
        `0.75` of the peak. How long did the first run take? All five together took `5` times the
        mean. Take away the other four:
    """)
    work = 2 * 16384 * 32768 * 8192
    rate = dense_peak("H100 SXM", "bfloat16")
    average = work / 2.684e14  # @inspect average as s
    steady = work / (0.75 * rate)  # @inspect steady as s
    first = 5 * average - 4 * steady  # @inspect first as s
    needed = first / steady  # @inspect needed as times
    assert 9.8 < needed < 9.9, \
        "The first run would have taken nearly 10 times as long as the others."
    assert 0.0327 < (first + 4 * steady) / 5 < 0.0328, \
        "Then the mean of the five runs is the published one."  # @hide
    misbelief("The MFU of `bfloat16` is low because its promise is optimistic.", rf"""
        So CS336 supposes [@cs336]. But a first run that takes {needed:.1f} times as long as the
        others explains the same number. Only a measurement after a warm-up can tell.
    """)
    note(r"""
        Which MFU is good, then? It is often said that an MFU of one half is good. A report on a
        very large training run gives `0.38` to `0.43` [@llama3]. It depends on the model, the
        network and the number of cards, so compare first with your own last run.
    """)
    question(r"""
        The first run takes `10` times as long as each of the others, and these run at `0.75` of the
        peak. Which share of the peak does the mean of `50` runs show?
    """, answer=0.75 / ((10 + 49) / 50),
        check=50 / (10 / 0.75 + 49 / 0.75),
        wrong={
            "The first run is one of the 50.": 0.75 / (60 / 50),
            "That leaves out the first run.": 0.75,
        },
        hint="How many ordinary runs could be done in the time of all runs?", within=0.005,
        why=r"""
            All `50` runs take as long as `10 + 49` ordinary ones. So the rate that the mean shows
            is lower by `50 / 59`.
        """)


@aside
def without_a_peak_there_is_no_mfu() -> None:
    """Where no peak is known, there is no MFU."""
    note(r"""
        What is the MFU on a laptop's CPU? MFU divides a measured rate by the peak of the device.
        The list of cards in this book has no peak for a laptop, so there is nothing to divide by.
        The honest answer is *not available*. `find` looks up a card by its name, `peak` looks up
        its peak, and `utilization` divides. Each returns `None` if it knows nothing:
    """)
    nowhere = peak(find("a laptop"), "bfloat16")  # @inspect nowhere
    mfu = utilization(1e10, 1.0, nowhere)  # @inspect mfu
    assert mfu is None, "Without a peak, utilization returns None."
    shown = as_percent(mfu)  # @inspect shown
    assert shown == "not available", "A page shows it as not available."
    note(r"""
        A program that divides by some other number prints nonsense. The trace of CS336 has
        `mfu = 11739062719` [@cs336]. The program ran on a CPU, knew no peak, and divided by `1`
        FLOP/s. So what it printed is the rate in FLOP/s, and no share of anything:
    """)
    absurd = utilization(11_739_062_719, 1.0, 1.0)  # @inspect absurd
    assert absurd == 11_739_062_719, \
        "Divided by 1 FLOP/s, the rate comes out unchanged."
    question(r"""
        A program knew no peak, divided by `1` FLOP/s and printed an MFU of `3e10`. Later one finds
        out that the peak of the machine is `6e11` FLOP/s. What was the MFU?
    """, answer=utilization(3e10, 1.0, 6e11),
        check=3e10 / 6e11,
        wrong={
            "The rate is divided by the peak, not the peak by the rate.": 20,
        },
        hint="What did the program print: a share, or a rate?",
        why="What it printed was the rate, `3e10` FLOP/s. Divided by the peak, that is the MFU.")


def as_percent(share: float | None) -> str:
    """A share as text in percent; `not available` for None."""
    return "not available" if share is None else f"{share:.1%}"


@aside
@requires("cuda")
def a_launch_returns_before_the_work_is_done() -> None:
    """A launch returns before the work is done."""
    note(r"""
        How does one time a product on a GPU? The CPU hands the product to the GPU and goes on at
        once; that is a *launch*. A clock that is read now has timed only the launch, and the rate
        seems higher than the card's peak. `torch.cuda.synchronize()` waits until all that was
        launched is done. Read the clock before this call and after it:
    """)
    n = scaled(8192, lambda n: 20 * n * n)  # @measure n
    x = torch.randn(n, n, device="cuda")
    shape = (x @ x).shape  # @measure shape  # @hide
    torch.cuda.synchronize()
    start = time.perf_counter()
    product = x @ x
    launched = time.perf_counter() - start  # @measure launched as s
    torch.cuda.synchronize()
    finished = time.perf_counter() - start  # @measure finished as s
    assert product.shape == shape, "The product has the shape of the first one."  # @hide
    assert launched < finished - launched, \
        "Most of the time passes between the launch and the end of the work."
    card = find(torch.cuda.get_device_name())
    promised = peak(card, "tf32") or peak(card, "float32")
    impossible = 2 * n**3 / launched  # @measure impossible as FLOP/s
    if promised is not None:
        assert promised < impossible, \
            "Timed by the launch alone, the rate is higher than the peak of the card."
    question(r"""
        A launch takes `10` µs, and the product itself takes `20` ms. A program launches `100`
        products and then synchronizes. How many seconds does a clock show just before it
        synchronizes, and how many just after?
    """, answer=[100 * 10e-6, 10e-6 + 100 * 20e-3],
        check=[1e-3, 2.00001],
        hint="The first clock sees launches only. After the first launch the card is never idle.",
        why=r"""
            Before synchronizing only launches have been timed, `100` of `10` µs. The card begins
            after the first one and then works without a pause, so the products decide the second
            reading.
        """, unit="s")


PRODUCT = 16384, 32768, 8192  # rows, inner, columns of the product that others have timed


def product_shape() -> tuple[int, int, int]:
    """Rows, inner and columns of a large product, halved until the GPU has room for it."""
    def needed(rows: int) -> int:
        return 8 * (rows * 2 * rows + 2 * rows * rows // 2 + rows * rows // 2)

    rows = scaled(PRODUCT[0], needed)
    return rows, 2 * rows, rows // 2


def product_call(
    name: str, shape: tuple[int, int, int]
) -> Callable[[], Tensor]:
    """A function without arguments that multiplies two random matrices on the GPU in a format.

    `float8` adds up the fast way; PyTorch's default is the exact way, which a Hopper card does slower.
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
    """The time of the product in a format, warm, after a rest; TF32 for `tf32` alone."""
    with float32_products("high" if name == "tf32" else "highest"):
        call = product_call(name, shape)
        cool_down()
        return time_call(call, "cuda")


def time_for_longer(  # @stepover
    name: str, shape: tuple[int, int, int]
) -> tuple[Timing, str]:
    """The time of the product over a second without a rest, and the GPU's clock and power."""
    with float32_products("high" if name == "tf32" else "highest"):
        call = product_call(name, shape)
        timing = time_call(call, "cuda", total=1.0)
        return timing, clock_and_power(call, timing.seconds)


def formats_to_time(card: Card | None) -> list[str]:
    """The names of the formats that a card multiplies."""
    names = ["float32", "tf32", "bfloat16", "float16"]
    names += ["float8"] if torch.cuda.get_device_capability() >= (8, 9) else []
    return [n for n in names if card is None or peak(card, n) is not None]


@aside
@requires("cuda")
def five_formats_are_measured_here() -> None:
    """Each format is measured warm, and divided by its own dense peak."""
    note(r"""
        Which share of its peak does the GPU at hand reach in a product, in each number format?
        `time_product` times the [large product](#the_denominator_decides) of `16384 × 32768` by
        `32768 × 8192` random numbers, after a rest of a second and a warm-up, and takes the median
        of many repeats. `time_for_longer` then times it for a second without a rest, because a card
        that grows hot, or reaches its power limit, lowers its clock. Each rate is divided by the
        dense peak of its own format.
    """)
    shape = product_shape()  # @measure shape
    note(rf"""
        What to expect depends on the board as much as on the chip. In `bfloat16` others measured
        `789` TFLOP/s on an H100 SXM [@measured-h100]. On the PCIe board of the same generation,
        which gets half the power, they measured `496`
        [@measured-h100-pcie].{shrunk(shape[0], PRODUCT[0])}
    """)
    device = torch.cuda.get_device_name()
    card = find(device)
    work = 2 * shape[0] * shape[1] * shape[2]  # @measure work as FLOP
    timed, sustained, said = {}, {}, {}
    for name in formats_to_time(card):
        timed[name] = time_product(name, shape)  # @measure timed[name]
        sustained[name], said[name] = time_for_longer(name, shape)  # @measure sustained[name], said[name]
    rates = {name: work / t.seconds for name, t in timed.items()}
    shares = {n: utilization(r, 1.0, peak(card, n)) for n, r in rates.items()}
    longer = {name: work / t.seconds for name, t in sustained.items()}
    lasting = {name: longer[name] / rate for name, rate in rates.items()}  # @measure lasting as %
    assert 0.5 < min(lasting.values()), \
        "For a second, each format keeps more than half of its first rate."
    assert max(lasting.values()) < 1.1, \
        "For a second, no format is more than a tenth faster than at first."
    lines = [
        f"| `{name}` | {t.seconds * 1000:.3f} | {t.spread:.1%} "
        f"| {rates[name] / TERA:.1f} | {as_percent(shares[name])} "
        f"| {longer[name] / TERA:.1f} | {said[name]} |"
        for name, t in timed.items()
    ]  # @hide
    note(f"{device}; {timed['float32'].method}. {how_to_add(device)}")
    note("| format | median, ms | spread | TFLOP/s | MFU, of its own dense peak "
         "| TFLOP/s for a second | clock and power then |\n|---|---|---|---|---|---|---|\n"
         + "\n".join(lines))
    known = {n: share for n, share in shares.items() if share is not None}  # @measure known
    if card is not None:
        assert 0 < min(known.values()), "Each format does some work."
        assert max(known.values()) <= card.boost, "No format exceeds its peak."
    if card is not None and card.bfloat16 is not None:
        promised = card.bfloat16 / card.float32  # @measure promised as times
        speedup = rates["bfloat16"] / rates["float32"]  # @measure speedup as times
        assert speedup > promised / 2, \
            "bfloat16 is faster than float32 by at least half of the factor that is promised."
    boards = "H100 SXM", "H200"
    if card is not None and card.name in boards and shape == PRODUCT:
        assert known["bfloat16"] >= 0.6, \
            "On an H100 SXM or an H200, bfloat16 reaches 60 % of its peak or more."
        assert known["float32"] >= 0.6, \
            "On an H100 SXM or an H200, float32 reaches 60 % of its own peak or more."
    question(r"""
        A product of `16384 × 32768` by `32768 × 8192` numbers takes `12` ms. How many FLOP/s is
        that?
    """, answer=2 * PRODUCT[0] * PRODUCT[1] * PRODUCT[2] / 12e-3,
        check=16384 * 32768 * 8192 / 6e-3,
        wrong={
            "The additions are missing.": PRODUCT[0] * PRODUCT[1] * PRODUCT[2] / 12e-3,
            "Divide by seconds, not by milliseconds.": 2 * PRODUCT[0] * PRODUCT[1] * PRODUCT[2] / 12,
        },
        hint="How many FLOPs has the product? Divide them by seconds, not by milliseconds.",
        why=r"""
            The product takes twice the product of the three lengths, `2 * 16384 * 32768 * 8192`
            FLOPs, and `0.012` s. Who forgets the additions gets half of that rate.
        """, unit="FLOP/s")


def first_runs(rows: int, inner: int, cols: int, left: str) -> list[float]:  # @stepover
    """The seconds of each of the first five products in bfloat16, after five in float32.

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
    """The seconds of the first five products in a new program, where nothing has run yet.

    Nothing comes back from a card that lets in one program at a time.
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


def without_waiting(call: Callable[[], object]) -> float:  # @stepover
    """The mean seconds of five calls, timed without waiting for the GPU to finish."""
    call()
    torch.cuda.synchronize()
    seconds = mean_seconds(call, runs=5)
    torch.cuda.synchronize()
    return seconds


@aside
@requires("cuda")
def three_bad_measurements_are_repeated_here() -> None:
    """A cold start, a missing wait and a matrix of zeros each spoil a measurement."""
    note(r"""
        CS336 reports an MFU of `0.271` for a product in `bfloat16` on an H100 [@cs336]. It is the
        mean of the first five runs of a new program, without a warm-up, with a matrix of ones on
        the left. How far does this way of measuring mislead? `in_a_new_program` repeats it on this
        GPU in a program of its own, once with ones and once with random numbers. `time_product`
        measures the same product after a warm-up.
    """)
    shape = product_shape()  # @measure shape
    good = time_product("bfloat16", shape)  # @measure good
    ways = {}
    ones = in_a_new_program(shape, "ones")  # @measure ones as s
    runs = in_a_new_program(shape, "randn")  # @measure runs as s
    if ones and runs:
        ways["first five runs, of ones"] = mean(ones)
        ways["first five runs, random data"] = mean(runs)
        first = [s[0] / median(s) for s in (ones, runs)]  # @measure first as times
        assert 1 < min(first), \
            "The first of the five runs is slower than their median."
    else:
        note("This card lets in one program at a time, and so no other can be new on it.")
    note(rf"""
        Here are two more ways to measure badly. `without_waiting` reads the clock before the GPU is
        done, so it times only that the work was handed over. And a product of zeros is easier for
        the chip: fewer of its switches change, so it draws less power and can keep a higher
        clock.{shrunk(shape[0], PRODUCT[0])}
    """)
    call = product_call("bfloat16", shape)
    launched = without_waiting(call)  # @measure launched as s
    assert launched < good.seconds, \
        "Without waiting, the clock shows less than the product takes."
    blank_pair = [torch.zeros(n, dtype=torch.bfloat16, device="cuda")
                  for n in (shape[:2], shape[1:])]
    zeros = time_call(partial(torch.matmul, *blank_pair), "cuda")  # @measure zeros
    assert zeros.seconds < 1.05 * good.seconds, \
        "Zeros are never slower than random numbers."
    ways |= {
        "no wait": launched, "zeros": zeros.seconds,
        "warm, events, random data": good.seconds,
    }
    card = find(torch.cuda.get_device_name())
    rate, boost = peak(card, "bfloat16"), card.boost if card else 1
    work = 2 * shape[0] * shape[1] * shape[2]
    shares = {way: utilization(work, t, rate) for way, t in ways.items()}
    lines = [
        f"| {way} | {t * 1000:.3f} | {as_percent(shares[way])} |"
        for way, t in ways.items()
    ]  # @hide
    note(f"{good.device}, `bfloat16`:")
    note("| how | ms | MFU |\n|---|---|---|\n" + "\n".join(lines))
    if rate is not None:
        assert work / launched > rate, \
            "Without waiting, the rate is higher than the peak: a sign of a bad clock."
        assert 0.3 * rate < work / good.seconds <= rate * boost, \
            "Measured well, the rate is between 30 % and 100 % of the peak."
    question(r"""
        The first of `5` runs took `104` ms, the others `14` ms each. At `14` ms the MFU is `0.63`.
        Which MFU does the mean of the five runs give?
    """, answer=round(0.63 * 14 / ((104 + 4 * 14) / 5), 3),
        check=round(0.63 / ((104 / 14 + 4) / 5), 3),
        wrong={
            "That is without the slow first run.": 0.63,
        },
        hint="What is the mean of the times? A longer time gives a lower MFU.",
        why=r"""
            The mean is `(104 + 4 * 14) / 5 = 32` ms. The FLOPs are the same, so the MFU is lower by
            `14 / 32`.
        """)


def random_pair(n: int) -> tuple[Tensor, Tensor]:  # @stepover
    """Two random square matrices on the GPU, in its two-byte format."""
    dtype = narrow_format()
    x, y = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
    return x, y


@aside
@requires("cuda")
def larger_products_come_closer_to_the_peak() -> None:
    """Small products stay far from the peak."""
    note(r"""
        How large must a product be, for a GPU to come close to its peak? A small product is over
        before it has given work to all parts of the chip. Often it is also over before the program
        has launched the next one, and then the GPU waits.
    """)
    largest = scaled(16384, lambda n: 20 * n * n)  # @measure largest
    note(rf"""
        So square products of growing size are timed in two ways. `time_call` launches them one by
        one. `time_graph` records many of them as one *CUDA graph*, which the GPU then runs without
        waiting for the program. They take many matrices in turn, so that none is found in the
        cache.{shrunk(largest, 16384)}
    """)
    dtype = narrow_format()  # @measure dtype
    card = find(torch.cuda.get_device_name())
    rate = peak(card, str(dtype))
    sizes = [2**p for p in range(8, 15) if 2**p <= largest]  # @measure sizes
    launched, rates = [], []
    for n in sizes:
        pairs = beyond_cache(partial(random_pair, n), "cuda")
        single = time_call(torch.matmul, "cuda", inputs=pairs)  # @measure single
        timing = time_graph(torch.matmul, pairs)  # @measure timing
        launched.append(2 * n**3 / single.seconds)  # @measure launched[-1] as FLOP/s
        rates.append(2 * n**3 / timing.seconds)  # @measure rates[-1] as FLOP/s
    small = [r for n, r in zip(sizes, rates) if n <= 2048]
    gains = [after / before for before, after in pairwise(small)]  # @measure gains as times
    assert min(gains, default=1) > 0.9, \
        "Up to a width of 2048, twice the width does not lower the rate."
    assert rates[0] < max(rates) / 2, \
        "The smallest product has less than half of the best rate."
    lost = rates[0] / launched[0]  # @measure lost as times
    assert lost > 0.9, \
        "Launched one by one, the smallest product is not faster."
    if rate is not None:
        shares = [r / rate for r in rates]  # @measure shares
        assert 0 < shares[0], "The smallest product has a rate above zero."
        assert max(shares) <= (card.boost if card else 1), \
            "No product exceeds the peak."
    figure(plot_sweep(sizes, rates, launched, rate), caption=r"""
        Rate of a square product against its size, in the narrow format: in a graph, and thin,
        launched one by one. Dashed, the dense peak.
    """, alt=r"""
        Two curves of TFLOP/s against matrix size, rising from a small fraction of the peak for the
        smallest matrix to most of what it will reach at a few thousand rows. The curve of single
        launches lies below the other at small sizes and joins it at large ones.
    """)
    question(r"""
        A square product of width `512` takes only twice as long as one of width `256`. How many
        times as high is its rate, in FLOP/s?
    """, answer=(512 / 256) ** 3 / 2,
        check=8 / 2, unit="times",
        wrong={
            "That counts FLOPs alone; the time doubles.": 8,
            "The FLOPs grow with the third power of the width.": 2,
        },
        hint="How many times the FLOPs of the small product has the large one?",
        why="Twice the width is `8` times the FLOPs, and they take twice the time.")


def measured_points(n: int, dtype: torch.dtype) -> dict[str, Point]:  # @stepover
    """FLOPs per byte and measured FLOP/s of an addition, and of products of 1, 64, 4096 rows."""
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
        name = "1 token" if rows == 1 else f"{rows} tokens"
        per_byte = intensity(rows, n, n, dtype.itemsize)
        points[name] = Point(per_byte, 2 * rows * n * n / taken)
    return points


@aside
@requires("cuda")
def the_roof_is_measured_here() -> None:
    """A copy shows the bandwidth, and no operation is faster than the roofline allows."""
    note(r"""
        A [roofline](#the_roofline_tells_waiting_from_working) says how fast an operation can be at
        most: it is limited by the card's peak, or by the bytes that its memory delivers, the
        *bandwidth*. Do measured operations stay below it?
    """)
    count = scaled(256 * MiB, lambda n: 14 * n)  # @measure count
    note(rf"""
        First measure the bandwidth, with a large copy. A copy computes nothing, and reads and
        writes each byte once.{shrunk(count, 256 * MiB)}
    """)
    card, dtype = find(torch.cuda.get_device_name()), narrow_format()
    x = torch.randn(count, device="cuda").to(dtype)
    y = torch.empty_like(x)
    copied = time_call(lambda: y.copy_(x), "cuda")  # @measure copied
    bandwidth = (x.nbytes + y.nbytes) / copied.seconds  # @measure bandwidth as B/s
    if card is not None:
        share = bandwidth / card.bandwidth  # @measure share
        assert share <= 1, "The copy is no faster than the datasheet promises."
        assert share > 0.5, \
            "The copy reaches more than half of the promised bandwidth."
    del x, y
    n = scaled(8192, lambda n: 40 * n * n + 80 * 4096 * n)  # @measure n
    note(rf"""
        Then measure an addition, and the products of a layer with `1`, `64` and `4096` tokens, each
        with weights that are not in the cache. `measured_points` returns their
        rates:{shrunk(n, 8192)}
    """)
    points = measured_points(n, dtype)  # @measure points
    ratio = points["4096 tokens"].rate / points["1 token"].rate  # @measure ratio as times
    assert ratio > 10, \
        "With 4096 tokens the rate is more than 10 times that with one token."
    rate = peak(card, str(dtype))
    if card is not None and rate is not None:
        slope, found = card.bandwidth, points.values()
        roofs = [min(rate * card.boost, p.intensity * slope) for p in found]
        over = [p.rate / roof for p, roof in zip(found, roofs)]  # @measure over
        assert max(over) <= 1, \
            "All operations stay below the promised roofline."
    top = rate or max(point.rate for point in points.values())
    ridge = top / bandwidth  # @measure ridge as FLOP/B
    if card is not None and rate is not None:
        promise = rate / card.bandwidth
        assert promise <= ridge < 2 * promise, \
            "With the measured bandwidth, the ridge is at more FLOPs per byte than promised."
    slopes = {"dashed": bandwidth}
    slopes |= {} if card is None else {"solid": card.bandwidth}
    solid = "" if card is None else " Solid, the roof that the datasheet promises."  # @hide
    figure(plot_measured_roof(top, slopes, points),
        caption=f"Measured rates. Dashed, the bandwidth that the copy showed.{solid}", alt=r"""
            TFLOP/s against FLOPs per byte, both logarithmic, with the roof of bandwidth and peak.
            An addition and the product of a single token lie low on the slope, that of many tokens
            near the flat part.
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
