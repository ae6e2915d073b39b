"""Peak rates and MFU, on paper."""
import math
import os

import torch
from hardware import CARDS, find, peak
from jaxtyping import Float
from timing import BUSY
from torch import Tensor
from units import GB, TERA

from litbook import aside, misbelief, note, question

from .measure import as_percent, dense_peak, float32_products, product_seconds, utilization


def peaks_and_mfu() -> None:
    """Peaks and MFU."""
    note(r"""
        How well is a card used? One divides the FLOPs that it does in a second by its peak. That
        sounds simple, and goes wrong in two ways. A card has several peaks, and dividing by the
        wrong one gives a share that is far too high or too low. And a time that is
        [measured carelessly](#the_first_calls_are_not_the_ones_to_time) is not the time of the
        work.
    """)
    every_peak_belongs_to_a_format()
    compare_dense_with_dense()
    sparsity_means_two_of_every_four()
    narrow_formats_are_fast_because_of_their_units()
    tf32_saves_no_bytes()
    mfu_counts_what_the_model_needs()
    the_denominator_decides()
    a_sparse_peak_halves_the_answer()
    without_a_peak_there_is_no_mfu()


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
