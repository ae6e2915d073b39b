"""Peak rates and MFU, on paper."""
import math

import torch
import torch.nn.functional as F
from hardware import CARDS
from jaxtyping import Float
from lecture_03.block import Transformer
from lecture_03.counts import Config, forward_flops
from processor import measure_core
from timing import quickest
from torch import Tensor
from units import GB, TERA

from litbook import aside, misbelief, note, question

from .measure import as_percent, dense_peak, product_seconds, utilization


def peaks_and_mfu() -> None:
    """Peaks and MFU."""
    note(r"""
        How well is a GPU used? To find out, divide the FLOPs that it does in a second by its peak.
        That sounds simple, but goes wrong in two ways. A GPU has several peaks, and dividing by the
        wrong one gives a share that is far too high or too low. And a time that is
        [measured carelessly](#the_first_calls_are_not_the_ones_to_time) is not the time that the
        work takes.
    """)
    every_peak_belongs_to_a_format()
    sparsity_means_two_of_every_four()
    narrow_formats_are_fast_because_of_their_units()
    mfu_counts_what_the_model_needs()
    the_denominator_decides()
    the_peak_of_this_cpu_is_measured()
    mfu_rises_with_the_width_of_a_model()


def every_peak_belongs_to_a_format() -> None:
    """A GPU has a different peak for each number format."""
    note(r"""
        How many FLOPs can a GPU do in a second? That depends on the number format, because
        different units of the chip do the work. Ordinary units compute in `float32`. *Tensor cores*
        multiply small blocks of matrices. They are much faster, and the fewer bits of an element
        they use, the faster they are. An element in `tf32` is a `float32` in memory; the tensor
        cores round its fraction to `10` bits before they multiply. `dense_peak` looks up the peak
        of a GPU for *dense* matrices, those without a fixed pattern of zeros. One TFLOP/s is
        `10**12` FLOPs in a second:
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
        GPU has many identical parts, its *multiprocessors*. The peak is their number, times the
        FLOPs that each does in a tick of the clock, times the ticks in a second. An A100 has `108`
        multiprocessors, and its clock ticks `1.41e9` times a second. A multiply-add is `2` FLOPs.
        In a tick, a multiprocessor does `64` of them in `float32` [@nvidia-ampere], which is
        `64 * 2 = 128` FLOPs. In `bfloat16`, each of its `4` tensor cores does `256`, which is
        `4 * 256 * 2 = 2048` FLOPs in all [@nvidia-ampere].
    """)
    products = [108 * 128 * 1.41e9, 108 * 2048 * 1.41e9]  # float32, bfloat16
    rebuilt = [round(rate / TERA, 1) for rate in products]  # @inspect rebuilt
    assert rebuilt == [19.5, 311.9], \
        "The products are 19.5 and 311.9 TFLOP/s: up to rounding, the peaks above."
    hopper = 132 * 256 * 1.98e9, 132 * 4096 * 1.83e9  # an H100 [@nvidia-hopper]  # @hide
    newer = [round(rate / TERA, 1) for rate in hopper]  # @hide
    assert newer == [66.9, 989.4], \
        "An H100 has 132 multiprocessors that do twice as much in a tick, and the products fit as well."  # @hide
    misbelief("The peak of an A100 is `312` TFLOP/s.", rf"""
        Only in `bfloat16` and `float16`, on the tensor cores. In ordinary `float32` the peak is
        {a100[0]} TFLOP/s, and in `tf32` it is {a100[1]:.0f}.
    """)
    question(r"""
        An A100 works at its peak. In `bfloat16` it needs `1` s for a matmul. How long does it need
        for the same matmul in ordinary `float32`?
    """, answer=dense_peak("A100 SXM 80GB", "bfloat16") / (a100[0] * TERA),
        wrong={
            "That is tf32, on the tensor cores.": 2,
        },
        check=2048 / 128,
        hint="The FLOPs are the same. How many times slower does the GPU do them?", unit="s",
        why=r"""
            The FLOPs are the same, and the peak is `312 / 19.5 = 16` times lower: in `float32` a
            multiprocessor does `128` FLOPs a tick instead of `2048`.
        """)


@aside
def sparsity_means_two_of_every_four() -> None:
    """On a datasheet, sparsity means that two of every four neighbours are zero."""
    note(r"""
        Half of the weights of a matrix are zero. Does a GPU multiply it twice as fast? Only if the
        zeros follow a pattern: of every `4` neighbouring weights, `2` are zero. Then only the other
        two are stored, with their positions, and half of the multiplications are skipped
        [@mishra2021]. That is what a datasheet means by *sparsity*. The weights `0, 5, 0, 6` fit
        the pattern; `0, 5, 7, 6` break it. To make weights fit, cut them into groups of `4`, and
        set the two smallest of each group to zero:
    """)
    w: Float[Tensor, "group 4"] = torch.randn(2**16, 4)
    smallest = w.abs().topk(2, largest=False).indices
    pruned = w.scatter(1, smallest, 0.0)
    zeros = (pruned == 0).sum(dim=1)  # @inspect zeros
    assert zeros.min() == zeros.max() == 2, "Every group has two zeros."
    note(r"""
        And does an ordinary matmul skip zeros? No. Otherwise an all-zero matrix would take almost
        no time, less than a small matrix. `product_seconds` measures how long it takes to multiply
        a matrix by itself, on one core of this processor. `small` is the time for a matrix of `64`
        rows and columns:
    """)
    x = torch.randn(512, 512)
    dense = product_seconds(x)  # @measure dense as s
    empty = product_seconds(torch.zeros(512, 512))  # @measure empty as s
    small = product_seconds(x[:64, :64].contiguous())  # @measure small as s
    assert small < min(dense, empty), \
        "512 rows and columns of zeros take longer than the small matrix."
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
        why="The first four neighbours have more zeros than they need. The last four have none, and need two.")


@aside
def narrow_formats_are_fast_because_of_their_units() -> None:
    """Large matmuls are fast in low-precision formats because of the units that multiply them."""
    note(r"""
        Why is a large matmul in `bfloat16` faster than in `float32`? Not because more of its
        elements fit into memory, but because of the hardware units that multiply: they set the
        speed of a large matmul. Two comparisons show this. The A100 was sold with two sizes of
        memory, and both GPUs have the same peak [@nvidia-a100]:
    """)
    small, large = CARDS["A100 SXM 40GB"], CARDS["A100 SXM 80GB"]
    assert large.memory / small.memory == 2.0, \
        "One GPU has twice the memory of the other."
    rates = small.bfloat16, large.bfloat16  # @inspect rates as FLOP/s
    assert rates == (312e12, 312e12), "Both GPUs have the same peak."
    note(r"""
        The size of an element does not determine the peak either. Compare two formats with
        `float32` on an H100. A `bfloat16` element has half as many bytes. A TF32 element has the
        same number of bytes as a `float32`, but special units multiply it, and use fewer of its
        bits:
    """)
    ordinary = dense_peak("H100 SXM", "float32")
    narrow = dense_peak("H100 SXM", "bfloat16") / ordinary  # @inspect narrow as times
    widths = torch.float32.itemsize, torch.bfloat16.itemsize
    assert widths == (4, 2), \
        "A float32 has 4 bytes, a bfloat16 has 2."  # @hide
    assert 14.7 < narrow < 14.8, \
        "With half the bytes, the peak of bfloat16 is nearly 15 times as high."
    same_bytes = dense_peak("H100 SXM", "tf32") / ordinary  # @inspect same_bytes as times
    assert 7.3 < same_bytes < 7.4, \
        "With the same bytes, the peak of TF32 is more than 7 times as high."
    misbelief("Low-precision formats are fast because memory is fixed: more of them fit and run side by side.",
        rf"""
            A large matmul is fast because of the units that multiply. TF32 has the same number of
            bytes as `float32`, and {same_bytes:.1f} times its peak.
        """)
    question(rf"""
        The larger A100 moves `{large.bandwidth / GB:.0f}` GB/s between memory and chip, the smaller
        one `{small.bandwidth / GB:.0f}`. How many times as fast is the larger GPU at a matmul that
        runs at its peak, and at an addition that is memory-bound, which means that it waits for
        memory? Give two numbers.
    """, answer=[rates[1] / rates[0], large.bandwidth / small.bandwidth],
        check=[1.0, 2039 / 1555], unit="times",
        hint="Which of the two operations depends on the peak, and which on the GB/s?",
        why=r"""
            Both GPUs have the same peak, so the matmul takes the same time on either. A
            memory-bound addition is faster by the ratio of the GB/s.
        """)


def mfu_counts_what_the_model_needs() -> None:
    """MFU counts the FLOPs that the model needs, not those that the GPU does."""
    note(r"""
        How well does a training step use a GPU? *Model FLOPs utilization*, MFU, answers that with
        one number:

        $$
        \mathrm{MFU} = \frac{\mathrm{FLOPs\ that\ the\ model\ needs}}{\mathrm{seconds} \times
        \mathrm{peak}}
        $$

        Why "that the model needs"? Because some FLOPs that a GPU does do not advance the training.
        A training step needs `6` FLOPs per parameter and token, `2` in the forward pass and `2 + 2`
        in the [backward pass](#a_gradient_is_two_more_products). To save memory, some steps do
        [their forward pass twice](#checkpointing_trades_flops_for_memory). Then the GPU does `8`
        FLOPs, but the model still needs only `6`.

        Suppose such a step, with `10**9` parameters and `500_000` tokens, takes `8` s on an H100,
        whose `bfloat16` peak is `989.5 * 10**12` FLOP/s. The model needs
        `6 * 10**9 * 500_000 = 3e15` FLOPs. At its peak the GPU could do `8 * 989.5e12 = 7.9e15` in
        that time. So the MFU is `3 / 7.9 = 0.38`. With `8` FLOPs instead of `6`, the share would be
        a third higher, `4 / 7.9 = 0.51`. `utilization` divides FLOPs by seconds and by the peak:
    """)
    params, tokens, seconds = 10**9, 500_000, 8.0
    peak_rate = dense_peak("H100 SXM", "bfloat16")
    needed, done = 6 * params * tokens, 8 * params * tokens
    mfu = utilization(needed, seconds, peak_rate)  # @inspect mfu
    hardware = utilization(done, seconds, peak_rate)  # @inspect hardware
    assert mfu is not None, "The peak is known."  # @hide
    assert hardware is not None, "The peak is known for both."  # @hide
    assert 0.37 < mfu < 0.38, \
        "MFU counts 6 FLOPs per parameter and token, and is 0.38."
    assert 1.33 < hardware / mfu < 1.34, \
        "Counting the 8 FLOPs that the GPU does, the share would be a third higher."  # @hide
    misbelief("MFU is the actual FLOP/s divided by the peak.", rf"""
        That is *hardware* utilization, here {hardware:.1%}. MFU does not count what is recomputed
        [@palm]; here it is {mfu:.1%}.
    """)
    note("Now let the GPU also wait `2` s for other machines. The FLOPs stay the same, but the step takes `10` s instead of `8`:")
    stalled = utilization(needed, seconds + 2.0, peak_rate)  # @inspect stalled
    assert stalled is not None, "The peak is known here as well."  # @hide
    assert 0.79 < stalled / mfu < 0.81, \
        "With the waiting, MFU is 8 / 10 of what it was."  # @hide
    misbelief("MFU ignores communication and other overhead.", rf"""
        It does not: the clock keeps running while the GPU waits. Here MFU falls from {mfu:.1%} to
        {stalled:.1%}.
    """)
    question(r"""
        The model needs `6` FLOPs per parameter and token, `2` of them in the forward pass. A step
        repeats *half* of its forward pass. Counting all FLOPs that the GPU does, its utilization is
        `0.42`. What is its MFU?
    """, answer=0.42 * needed / (7 * params * tokens),
        wrong={
            "Only half of the forward pass is repeated, not all of it.": 0.42 * 6 / 8,
            "That counts what the GPU does, and MFU what the model needs.": 0.42,
        },
        check=0.42 * 6 / 7,
        hint="How many FLOPs does the GPU do for each `6` that the model needs?",
        why=r"""
            Half of the forward pass is `1` FLOP, so the GPU does `7` for each `6` that the model
            needs. MFU counts the `6`: `0.42 * 6 / 7`.
        """)


@aside
def the_denominator_decides() -> None:
    """A utilization is right only if it divides by the peak of the format that was used."""
    note(r"""
        A utilization is a measured rate divided by a peak. A GPU has a peak for each number format,
        so which one is right? The peak of the format that was used, because no other peak applies
        to the units that did the work. The course CS336 published a measurement: a matmul of
        `16384 * 32768` by `32768 * 8192` elements in `float32` on an H100 took `0.163` s, which is
        `5.409e13` FLOP/s [@cs336]:
    """)
    work, rate = 2 * 16384 * 32768 * 8192, 5.409e13
    assert work == 8_796_093_022_208, "The matmul takes 8.8e12 FLOPs."  # @hide
    seconds = round(work / rate, 3)  # @inspect seconds as s
    assert seconds == 0.163, \
        "At this rate, the FLOPs of the matmul take 0.163 s."
    right = rate / dense_peak("H100 SXM", "float32")  # @inspect right as %
    assert 0.806 < right < 0.808, \
        "The rate is four fifths of the float32 peak."
    typed = rate / 67.5e12  # @hide
    assert 0.800 < typed < 0.802, \
        "With the peak of 67.5e12 in the course's code, the share is nearly the same."  # @hide
    promised = dense_peak("H100 SXM", "bfloat16")
    wrong = rate / promised  # @inspect wrong as %
    assert 0.054 < wrong < 0.055, \
        "The rate is a twentieth of the bfloat16 peak."
    note(rf"""
        The tensors were `float32`, and the ordinary units multiplied them. (PyTorch uses TF32 only
        on request, by `torch.set_float32_matmul_precision("high")` [@pytorch-precision].) The peak
        of these units is `67` TFLOP/s [@nvidia-h100], so the matmul reached {right:.1%} of its
        peak. Divided by the number that is quoted most often, the peak in `bfloat16`, the rate
        would be only {wrong:.1%}.
    """)
    misbelief(f"An H100 has a peak of {promised / TERA} TFLOP/s for a `float32` matmul.", r"""
        That is the peak in `bfloat16`. In `float32` it is 67 TFLOP/s [@nvidia-h100].
    """)
    allowed = dense_peak("H100 SXM", "tf32")
    question(rf"""
        This matmul reached {right:.1%} of a peak of `67e12` FLOP/s, in {seconds} s. With TF32
        switched on, an H100 has a peak of `{allowed / TERA}e12` FLOP/s. How many seconds would the
        matmul take at the same share of that peak?
    """, answer=work / (right * allowed),
        wrong={
            "At the same share of a higher peak it is faster.": work / rate,
            "That is at the full peak.": work / allowed,
        },
        check=work / rate * 67 / 494.5,
        hint="At the same share of a higher peak, how many times as fast is it?",
        why=r"""
            The TF32 peak is `494.5 / 67` times as high. At the same share of it, the rate is higher
            by this factor, and the time is shorter by this factor.
        """, unit="s")


def rate_of(n: int) -> float:  # @stepover
    """The rate in FLOP/s of a matmul of two n × n matrices in float32, on one core."""
    a, b = torch.randn(n, n), torch.randn(n, n)
    return 2 * n**3 / quickest(lambda: a @ b, 10)


def the_peak_of_this_cpu_is_measured() -> None:
    """The peak of a CPU has to be measured with multiply-adds, because its clock changes."""
    note(r"""
        How fast can this machine multiply at best? Datasheets of GPUs print a peak. Datasheets of
        CPUs do not.

        First by hand. A core of a modern CPU has two units for *fused multiply-adds*. In a tick of
        the clock each unit takes `8` pairs of `float32` elements, multiplies each pair and adds a
        third element. So `2` units with `8` elements each, and `2` FLOPs per element, make
        `2 * 8 * 2 = 32` FLOPs in a tick. At three billion ticks per second that is
        `3e9 * 32 = 96e9` FLOP/s for one core. (Units for `16` elements do twice as much.)

        The difficulty is the number of ticks per second, because the clock changes: it rises when
        the chip is cool, and falls when these units work. So neither the clock that the system
        reports nor a clock that is measured with other arithmetic gives the peak. Measure the
        multiply-adds themselves. `measure_core` times a loop of multiply-adds in which none waits
        for another, so that both units are always busy. For comparison it also measures the clock,
        with a loop in which each multiplication waits for the previous one. Peak divided by clock
        is the number of FLOPs per tick:
    """)
    core = measure_core()
    highest = core.peak if core else None  # @measure highest as FLOP/s
    clock = core.clock if core else None  # @measure clock as Hz
    per_tick = core.per_tick if core else None  # @measure per_tick as FLOP
    part = per_tick / core.most_per_tick if core and per_tick else None  # @measure part as %  # @hide
    assert part is None or 1 / 8 < part < 1.05, \
        "In a tick, the core does between an eighth of what two units can do and all of it."  # @hide
    assert clock is None or 5e8 < clock < 1e10, \
        "The clock, where known, is between half a GHz and ten."  # @hide
    here = "Here that could be measured." if core else (
        "This machine is not an x86-64 under Linux, or does not let programs make machine code. So its peak is *not available* here, "
        "and neither is a share of it."
    )  # @hide
    note(rf"""
        {here} What share of that peak does PyTorch reach? `rate_of` returns the FLOP/s of a matmul
        of two square matrices on the same core. `utilization` divides it by the peak, and returns
        `None` where no peak is known:
    """)
    rate = rate_of(512)  # @measure rate as FLOP/s
    share = utilization(rate, 1.0, highest)  # @measure share as %
    assert share is None or 1 / 8 < share < 1.1, \
        "A matmul of 512 rows and columns reaches between an eighth of the peak and all of it."
    question(r"""
        A core has two units for fused multiply-adds on registers of `16` `float32` elements. When
        they work, its clock falls from `3.1e9` to `2.4e9` ticks per second. A program measures the
        clock with a loop of integer operations, and multiplies the clock by the FLOPs per tick. By
        how much is this "peak" too high?
    """, answer=3.1e9 * 2 * 16 * 2 / (2.4e9 * 2 * 16 * 2) - 1,
        check=3.1 / 2.4 - 1, unit="%", within=0.02,
        wrong={
            "That is by how much the true peak is lower.": 1 - 2.4 / 3.1,
        },
        hint="At which clock do the multiply-adds run, and at which was the loop measured?",
        why=r"""
            The multiply-adds run at the lower clock: `2.4e9` times `64` FLOPs. The program uses
            `3.1e9` times `64`, which is `3.1 / 2.4` times as much.
        """)


def step_model(width: int) -> Config:
    """The small Transformer of `lecture_03`, with two layers of this model dimension."""
    return Config(
        layers=2, width=width, heads=width // 32, kv_heads=width // 64,
        hidden=11 * width // 4, vocabulary=27, context=64,
    )


def loss_of_a_step(model: Transformer, tokens: Tensor) -> Tensor:
    """The loss of a batch of sequences: how well each next token is predicted."""
    scores = model(tokens[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())


def time_of_a_step(config: Config) -> float:  # @stepover
    """The shortest time, in seconds, in which one core does a training step on 256 tokens: forward, backward and AdamW."""
    model = Transformer(config, "written")
    tokens = torch.randint(0, 27, (4, 65))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step() -> None:
        optimizer.zero_grad()
        loss_of_a_step(model, tokens).backward()
        optimizer.step()

    return quickest(step, 12 * 128 // config.width)


def mfu_rises_with_the_width_of_a_model() -> None:
    """The MFU of a training step rises with the model dimension, because matmuls take a larger share of the time."""
    note(r"""
        What is the MFU of a training step on this machine? Take a small language model, the
        *Transformer* that the next lecture builds, with two layers, at model dimensions of `128`,
        `256` and `512`, and `256` tokens per step. `time_of_a_step` returns the shortest time of a
        step on one core: forward pass, backward pass, and the update of the weights by AdamW. The
        model needs the FLOPs of its forward pass, which `forward_flops` counts, and twice that
        number for the backward pass. The peak was
        [measured above](#the_peak_of_this_cpu_is_measured):
    """)
    core = measure_core()
    models = {width: step_model(width) for width in (128, 256, 512)}
    # 256 tokens, in sequences of 64
    work = {w: 3 * forward_flops(model, 256, 64) for w, model in models.items()}  # @inspect work as FLOP
    seconds = {w: time_of_a_step(model) for w, model in models.items()}  # @measure seconds as s
    highest = core.peak if core else None
    mfu = {w: utilization(work[w], seconds[w], highest) for w in models}
    shown = {w: as_percent(share) for w, share in mfu.items()}  # @measure shown
    rates = {w: work[w] / seconds[w] for w in models}  # @measure rates as FLOP/s
    assert rates[128] < rates[512], \
        "The largest model does more FLOPs per second than the smallest."
    assert all(share is None or 0 < share <= 1 for share in mfu.values()), \
        "Each MFU is a share of the peak, between 0 and 1."  # @hide
    assert (shown[512] == as_percent(None)) == (highest is None), \
        "An MFU is shown where the peak is known."  # @hide
    note(r"""
        Why does the MFU rise? Take a matrix of $d$ rows and $d$ columns, and double $d$. The matrix
        has `4` times as many weights, so each token costs `4` times as many FLOPs. But the token
        itself has only `2` times as many elements. The work between the matmuls is done element by
        element. It is memory-bound, which means that it waits for memory, and MFU does not count
        it. So with every doubling, matmuls take a larger share of the time, because their work
        grows faster, and the MFU rises. In this model the FLOPs grow nearly fourfold (those of the
        attention scores and of the last layer only twofold):
    """)
    growth = work[256] / work[128], work[512] / work[256]  # @inspect growth as times
    assert [round(g, 1) for g in growth] == [3.8, 3.9], \
        "With every doubling of the model dimension, a step takes nearly four times as many FLOPs."
    question(r"""
        Two models do the same number of FLOPs per token: one has `8` layers of model dimension
        `1024`, the other `32` layers of `512`. Nearly all of their FLOPs are in matrices of
        $12 d^2$ weights per layer. How many times as many elements does a token have between the
        matmuls in the second model as in the first? And which of the two models has the higher MFU?
    """, answer=(32 * 512) / (8 * 1024),
        check=math.prod([32 / 8, 512 / 1024]), unit="times",
        wrong={
            "A layer of half the width has half the elements.": 4,
            "There are four times as many layers.": 0.5,
        },
        hint="A token has a number of elements in proportion to d in each layer.",
        why=r"""
            In each layer a token has elements in proportion to $d$: half as many, in `32 / 8` times
            as many layers, so twice as many in all. The first model does the same arithmetic with
            half of that work and a quarter of the calls, so it has the higher MFU.
        """)
