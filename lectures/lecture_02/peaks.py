"""Peak rates and MFU, on paper."""
from counters import Watching, flops, tensors_in
from typing import Any

import torch
import torch.nn.functional as F
from lecture_03.block import Block, Transformer, turns
from lecture_03.counts import Config, forward_flops
from processor import measure_core
from timing import quickest
from torch import Tensor
from torch.utils.flop_counter import flop_registry
from units import TERA

from litbook import aside, misbelief, note, question

from .measure import dense_peak, product_seconds, utilization


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
    mfu_counts_what_the_model_needs()
    the_denominator_decides()
    the_peak_of_this_cpu_is_measured()
    mfu_rises_with_the_model_dimension()


def every_peak_belongs_to_a_format() -> None:
    """A GPU has a different peak for each number format."""
    note(r"""
        How many FLOPs can a GPU do in a second? That depends on the number format, because
        different units of the chip do the work:

        - Ordinary units compute with single elements, in `float32`.
        - *Tensor cores* multiply small blocks of matrices in one step, and are much faster.

        Tensor cores multiply `bfloat16`, for example. They also multiply `tf32`: that is a
        `float32` in memory, but they use only some of its bits.

        `dense_peak` looks up the peaks of the datasheets [@nvidia-a100; @nvidia-h100] for *dense*
        matrices, which have no fixed [pattern of zeros](#sparsity_means_two_of_every_four). One
        TFLOP/s is `10**12` FLOPs in a second. (For the H100's tensor cores, the datasheet prints
        twice the dense peak.)
    """)
    formats = "float32", "tf32", "bfloat16"
    a100 = [dense_peak("A100 SXM 80GB", f) / TERA for f in formats]  # @inspect a100
    h100 = [dense_peak("H100 SXM", f) / TERA for f in formats]  # @inspect h100
    assert a100 == [19.5, 156.0, 312.0], \
        "The peaks of an A100 are 19.5, 156 and 312 TFLOP/s."
    assert h100 == [67.0, 494.5, 989.5], \
        "The peaks of an H100 are 67, 494.5 and 989.5 TFLOP/s."
    note(r"""
        Where do the A100's `19.5` and `312` come from? A GPU consists of many identical parts, its
        *multiprocessors*, which all work at the ticks, or cycles, of one clock:

        $$
        \text{peak} = \text{multiprocessors} \times \text{FLOPs of each in a tick} \times
        \text{ticks in a second}
        $$

        An A100 has `108` multiprocessors and `1.41e9` ticks in a second. In each tick, the ordinary
        units of a multiprocessor do `64` multiply-adds, and a multiply-add is `2` FLOPs. Its `4`
        tensor cores do `256` multiply-adds each in `bfloat16` [@nvidia-ampere]:
    """)
    ordinary = 108 * (64 * 2) * 1.41e9
    tensor_cores = 108 * (4 * 256 * 2) * 1.41e9
    rebuilt = [round(peak / TERA, 1) for peak in (ordinary, tensor_cores)]  # @inspect rebuilt
    assert rebuilt == [19.5, 311.9], \
        "Up to rounding, these are the peaks in float32 and bfloat16."
    assert tensor_cores == 16 * ordinary, "The tensor cores do sixteen times as much."  # @hide
    hopper = 132 * 256 * 1.98e9, 132 * 4096 * 1.83e9  # an H100 [@nvidia-hopper]  # @hide
    newer = [round(rate / TERA, 1) for rate in hopper]  # @hide
    assert newer == [66.9, 989.4], \
        "An H100 has 132 multiprocessors that do twice as much in a tick, and the products fit as well."  # @hide
    misbelief("The peak of an A100 is `312` TFLOP/s.", rf"""
        That is the peak of the tensor cores in `bfloat16`. In ordinary `float32` the peak is
        {a100[0]} TFLOP/s, and in `tf32` it is {a100[1]:.0f}.
    """)
    same_bytes, narrow = h100[1] / h100[0], h100[2] / h100[0]  # @hide
    widths = torch.float32.itemsize, torch.bfloat16.itemsize  # @hide
    assert widths == (4, 2), "A float32 has 4 bytes, a bfloat16 has 2."  # @hide
    assert 7.3 < same_bytes < 7.4, \
        "With the same bytes, the peak of TF32 is more than 7 times as high."  # @hide
    assert 14.7 < narrow < 14.8, \
        "With half the bytes, the peak of bfloat16 is nearly 15 times as high."  # @hide
    misbelief("Low-precision formats are fast because they take less memory: more of their numbers fit and run side by side.",
        rf"""
            By the datasheet, the peak of an H100 in `tf32` is {same_bytes:.1f} times that in
            `float32`, though an element has the same bytes in memory: the tensor cores make the
            difference. Fewer bits double their peak: in `bfloat16` it is {narrow:.1f} times that in
            `float32`.
        """)
    note(r"""
        So a program that does its matmuls in ordinary `float32` uses only a small part of what the
        GPU can do.
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
    """On a datasheet, sparsity means two zeros in every group of four weights."""
    note(r"""
        Half of the weights of a matrix are zero. Can a GPU multiply it twice as fast? Only if the
        zeros follow a pattern: cut each row into groups of `4` neighbouring weights; in each group,
        at least `2` have to be zero. Then the matrix can be stored without these zeros: in each
        group the `2` other weights, with their positions. The GPU multiplies only what is stored,
        so it does half of the multiplications [@mishra2021]. That is what a datasheet means by
        *sparsity*.

        By hand, multiply the group `0, 5, 0, 6` by the elements `1, 2, 3, 4`. With the zeros it is
        `0 * 1 + 5 * 2 + 0 * 3 + 6 * 4 = 34`, four multiplications. Stored are the values `5` and
        `6` and the positions `1` and `3`, counted from zero. The elements at these positions are
        `2` and `4`, so it is `5 * 2 + 6 * 4 = 34`, two multiplications. The group `0, 5, 7, 6` does
        not fit: there is no room for its third value.

        Now compute two such groups, one in each row of `w`, from what is stored:
    """)
    w = torch.tensor([[0.0, 5.0, 0.0, 6.0], [7.0, 0.0, 0.0, -8.0]])
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])  # @unnoticed: 3.0: it meets only zeros
    values = w[w != 0].view(2, 2)  # @inspect values.tolist()
    positions = w.nonzero()[:, 1].view(2, 2)  # @inspect positions.tolist()
    result = (values * x[positions]).sum(dim=1)  # @inspect result
    assert result.tolist() == (w @ x).tolist() == [34, -25], \
        "Two multiplications in each row give the same as four."
    random = product_seconds(torch.randn(512, 512))  # @hide
    zeros = product_seconds(torch.zeros(512, 512))  # @hide
    assert zeros > random / 3, \
        "On one core, a matrix of zeros takes more than a third of the time of a random one."  # @hide
    note(r"""
        So a peak *with sparsity* on a datasheet holds for such matrices only. For an H100 in
        `bfloat16` it is `1979` TFLOP/s (`10**12` FLOPs per second), and half of that for *dense*
        matrices, which have no such pattern [@nvidia-h100].
    """)
    misbelief("Sparse means that most entries are zero, and that the hardware skips zeros.", r"""
        The doubled rate of a datasheet needs two zeros in each group of four, and the matrix has to
        be stored without them. An ordinary matmul on this processor does not skip zeros: with a
        matrix of zeros, it takes more than a third of the time that a random one takes.
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


def mfu_counts_what_the_model_needs() -> None:
    """MFU counts the FLOPs that the model needs, not those that the GPU does."""
    note(r"""
        How well does a training step use a GPU? *Model FLOPs utilization*, MFU, answers that with
        one number, a share of the GPU's peak:

        $$
        \mathrm{MFU} = \frac{\mathrm{FLOPs\ that\ the\ model\ needs}}{\mathrm{seconds} \times
        \mathrm{peak}}
        $$

        By hand, count for one parameter and one token. The model needs $6$ FLOPs, $2$ in the
        forward pass and $4$ in the [backward pass](#the_backward_pass_needs_two_matmuls). Suppose
        that the GPU could do $16$ FLOPs at its peak in the time of the step. Then the MFU is
        `6 / 16 = 0.375`.

        But this GPU is busier than that. To save memory, the step does its
        [forward pass twice](#checkpointing_trades_flops_for_memory), so the GPU does $8$ FLOPs. Its
        *hardware* utilization is `8 / 16 = 0.5`. MFU counts only $6$, because the repeated $2$ do
        not train the model any further.

        Now such a step in real numbers, on an H100:
    """)
    params, tokens, seconds = 10**9, 500_000, 8.0
    peak_rate = dense_peak("H100 SXM", "bfloat16")  # FLOPs per second
    needed = 6 * params * tokens
    mfu = needed / (seconds * peak_rate)  # @inspect mfu as %
    done = 8 * params * tokens  # with the repeated forward pass
    hardware = done / (seconds * peak_rate)  # @inspect hardware as %
    assert 0.37 < mfu < 0.38, \
        "MFU counts 6 FLOPs per parameter and token, and is 38 %."
    assert 1.33 < hardware / mfu < 1.34, \
        "Counting the 8 FLOPs that the GPU does, the share would be a third higher."  # @hide
    misbelief("MFU is the actual FLOP/s divided by the peak.", rf"""
        That is *hardware* utilization, here {hardware:.1%}. MFU does not count what is recomputed
        [@palm]; here it is {mfu:.1%}.
    """)
    note("Now let the GPU also wait `2` s for other GPUs. The FLOPs stay the same, but the step takes `10` s instead of `8`:")
    stalled = needed / ((seconds + 2.0) * peak_rate)  # @inspect stalled as %
    assert 0.30 < stalled < 0.31, "With the waiting, the MFU is 30 %."
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
    """To see how well a matmul uses its units, divide its rate by the peak of those units."""
    note(r"""
        A matmul runs at a certain rate, in FLOPs (additions and multiplications) per second,
        FLOP/s. To see how well it used the GPU, divide its rate by a *peak*, the highest rate that
        is possible. But a GPU has units of several kinds, each with a peak of its own. Which one is
        right? That of the units that did the matmul, because it could not have run faster than
        these.

        By hand, take a chip with two kinds of units. Those for `float32` have a peak of $10$
        FLOP/s, and those for `bfloat16` have $100$. A matmul in `float32` runs at $8$ FLOP/s:

        - `8 / 10 = 0.8`: its units are well used.
        - `8 / 100 = 0.08` says nothing about them. Even at their full peak it would be only
          `10 / 100 = 0.1`.

        The course CS336 measured a matmul in `float32` on an H100, of `16384 * 32768` by
        `32768 * 8192` elements. That costs `2 * 16384 * 32768 * 8192 = 8.796e12` FLOPs, and it ran
        at `5.409e13` FLOP/s [@cs336], so it took `8.796e12 / 5.409e13 = 0.163` s.

        Which units did it? An H100 has *ordinary units* for `float32`, and faster *tensor cores*
        for formats such as `bfloat16`. For a matmul in `float32`, PyTorch uses the tensor cores
        only on request [@pytorch-precision]. So the ordinary units did this one.

        By the datasheet, the peak of the ordinary units is `67` TFLOP/s (`10**12` FLOP/s)
        [@nvidia-h100]. For the tensor cores in `bfloat16` it prints `1979` [@nvidia-h100], but only
        for [matrices with a pattern of zeros](#sparsity_means_two_of_every_four). For all others
        the peak is `1979 / 2 = 989.5`. `dense_peak` looks up both:
    """)
    rate = 5.409e13  # FLOP/s
    work = 2 * 16384 * 32768 * 8192  # @hide
    assert work == 8_796_093_022_208, "The matmul takes 8.8e12 FLOPs."  # @hide
    seconds = round(work / rate, 3)  # @hide
    assert seconds == 0.163, \
        "At this rate, the FLOPs of the matmul take 0.163 s."  # @hide
    ordinary_share = rate / dense_peak("H100 SXM", "float32")  # @inspect ordinary_share as %
    assert 0.806 < ordinary_share < 0.808, \
        "The rate is four fifths of the float32 peak."
    typed = rate / 67.5e12  # @hide
    assert 0.800 < typed < 0.802, \
        "With the peak of 67.5e12 in the course's code, the share is nearly the same."  # @hide
    quoted = dense_peak("H100 SXM", "bfloat16")  # @hide
    tensor_share = rate / dense_peak("H100 SXM", "bfloat16")  # @inspect tensor_share as %
    assert 0.054 < tensor_share < 0.055, \
        "The rate is about 5.5 % of the bfloat16 peak."
    note(rf"""
        So the matmul uses its units well: it reached {ordinary_share:.1%} of their peak. The
        {tensor_share:.1%} says nothing about that. Even at the full peak of the ordinary units, a
        matmul reaches only `67 / 989.5 = 0.068` of the tensor cores' peak.
    """)
    misbelief(f"An H100 has a peak of {quoted / TERA} TFLOP/s for a `float32` matmul.", r"""
        That is the peak in `bfloat16`. In `float32` it is `67` TFLOP/s [@nvidia-h100].
    """)
    allowed = dense_peak("H100 SXM", "tf32")  # @hide
    question(rf"""
        This matmul reached {ordinary_share:.1%} of a peak of `67e12` FLOP/s, in {seconds} s. On
        request, the tensor cores multiply `float32` elements rounded to fewer bits (TF32). Their
        peak is then `{allowed / TERA}e12` FLOP/s. How many seconds would the matmul take at the
        same share of that peak?
    """, answer=seconds * dense_peak("H100 SXM", "float32") / allowed,
        wrong={
            "At the same share of a higher peak it is faster.": seconds,
            "That is at the full peak.": work / allowed,
        },
        check=0.163 * 67 / 494.5,
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
    """The peak of one core of this CPU is measured with a loop of multiply-adds."""
    note(r"""
        How many FLOPs can one core of this CPU do in a second? The datasheet of a GPU prints such a
        peak; that of a CPU usually does not. So measure it: run a loop that does nothing but *fused
        multiply-adds*, the fastest arithmetic of the core, and divide its FLOPs by its time.

        By hand, take a core with two units for multiply-adds. In each tick of its clock, a unit
        takes $16$ pairs of `float32` elements, multiplies each pair, and adds a third element. That
        is $2$ FLOPs for each pair, so a unit does `16 * 2 = 32` FLOPs in a tick:

        - A loop with $12$ multiply-adds in each pass does `12 * 32 = 384` FLOPs per pass. Two units
          need $6$ ticks for them.
        - At $3$ billion ticks in a second, $6$ ticks are `6 / 3e9 = 2e-9` s. So the peak is
          `384 / 2e-9 = 192e9` FLOP/s.
        - At $2$ billion ticks in a second, a pass takes `6 / 2e9 = 3e-9` s, and the peak is only
          `384 / 3e-9 = 128e9` FLOP/s.

        The clock of a CPU does change: it rises when the chip is cool, and falls when the
        multiply-add units work hard. So a clock measured during lighter work can be higher than the
        clock during multiply-adds, and the multiply-adds themselves have to be timed.
        `measure_core` does that, with a loop of $12$ multiply-adds, and takes the shortest of many
        times, because a peak is the highest speed. `rate_of` returns the FLOP/s that PyTorch
        reaches on the same core, in a matmul of two square matrices:
    """)
    core = measure_core()
    highest = core.peak if core else None  # @measure highest as FLOP/s
    per_tick = core.per_tick if core else None  # @measure per_tick as FLOP  # @hide
    most = core.most_per_tick if core else 1  # @hide
    assert per_tick is None or 1 / 8 < per_tick / most < 1.05, \
        "In a tick, the core does between an eighth of what two units can do and 1.05 times that."  # @hide
    assert not (highest and per_tick) or 5e8 < highest / per_tick < 1e10, \
        "The clock, where known, is between half a GHz and ten."  # @hide
    rate = rate_of(512)  # @measure rate as FLOP/s
    share = rate / highest if highest else None  # @measure share as %
    # Were the peak the rate of a matmul, this would be 1.
    # Seen on two CPUs: 0.60 to 0.84.
    assert share is None or 1 / 8 < share < 0.95, \
        "A matmul of 512 rows and columns reaches more than an eighth of the peak, and less than 95 % of it."
    here = "The peak could be measured here. The next section divides by it." if core else (
        "This machine is not an x86-64 under Linux, or does not let programs make machine code. So its peak is *not available* here, "
        "and neither is a share of it."
    )  # @hide
    note(f"{here}")
    question(r"""
        While its multiply-add units work, the clock of a core falls from `3e9` to `2e9` ticks in a
        second. A program does not time multiply-adds. It measures the clock while the core adds
        integers, at `3e9` ticks, and multiplies it by the FLOPs in a tick. By how much is this
        "peak" too high?
    """, answer=3e9 / 2e9 - 1,
        # The first share by which the true peak has to be raised to be the program's:
        check=next(more for more in range(300) if 64 * 2e9 * (1 + more / 100) >= 64 * 3e9) / 100, unit="%", within=0.02,
        wrong={
            "That is by how much the true peak is lower.": 1 - 2 / 3,
        },
        hint="At which clock do the multiply-adds run, and at which was the loop measured?",
        why=r"""
            Multiply-adds run at `2e9` ticks in a second, and the program counts with `3e9`. That is
            `3 / 2` of the true number, and the FLOPs in a tick are the same.
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


class Between(Watching):  # @hide
    """While it is active, it counts the elements of what operations between the matmuls make."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        if operation.overloadpacket not in flop_registry and not operation.is_view:
            self.elements += sum(t.numel() for t in tensors_in(made))


def flops_for_each_element(config: Config, layers: int) -> float:  # @hide
    """The FLOPs of the matmuls in so many blocks of a model, for each element between the matmuls; 64 tokens go forward."""
    with torch.device("meta"):
        blocks = [Block(config, "written") for _ in range(layers)]
        x, turn = torch.empty(1, 64, config.width), turns(config.head, 64)

    def forward() -> Tensor:
        y = x
        for block in blocks:
            y = block(y, turn)
        return y

    with torch.no_grad(), Between() as between:
        forward()
    return flops(forward) / between.elements


def mfu_rises_with_the_model_dimension() -> None:
    """On one CPU core, a training step has a higher MFU with a model dimension of 512 than with 128."""
    note(r"""
        Why does a small model reach a smaller share of a processor's peak than a large one? This
        share, the *MFU* of a training step, counts only the FLOPs of matmuls. But a step also works
        on single elements between the matmuls, for example to normalize them. That takes time, and
        MFU does not count it. In a larger model it is a smaller part of the step, because matmuls
        grow faster than the number of elements.

        By hand, take one matrix of a layer. The *model dimension* $d$ is the number of elements of
        a token, so the matrix has $d \cdot d$ weights, and each costs $2$ FLOPs per token:

        - With $d = 2$, the matmul does `2 * 2 * 2 = 8` FLOPs for a token of $2$ elements: $4$ FLOPs
          per element.
        - With $d = 4$, it does `4 * 4 * 2 = 32` FLOPs for a token of $4$ elements: $8$ FLOPs per
          element.

        So with twice the $d$, the matmuls with weights do twice as many FLOPs for each element that
        the step processes between them. A second cause is that
        [larger matmuls come closer to the peak](#larger_matmuls_come_closer_to_the_peak).

        Measure the effect of both together (the measurement cannot tell them apart), for the small
        *Transformer* that the next lecture builds, with two layers. `step_model` describes it for a
        given $d$. `time_of_a_step` times a training step on `256` tokens, in sequences of `64`, on
        one core, whose peak was [measured above](#the_peak_of_this_cpu_is_measured). The peak is
        the same for all models, so more FLOPs per second mean a higher MFU. `forward_flops` counts
        the matmuls of the forward pass. The backward pass costs twice that, which makes three
        forward passes in all:
    """)
    core = measure_core()
    core_peak = core.peak if core else None
    work, seconds, mfu = {}, {}, {}
    for d in (128, 256, 512):
        model = step_model(d)
        work[d] = 3 * forward_flops(model, 256, 64)
        seconds[d] = time_of_a_step(model)  # @measure seconds[d] as s
        mfu[d] = utilization(work[d], seconds[d], core_peak)  # @measure mfu[d] as %
    assert work[128] / seconds[128] < work[512] / seconds[512], \
        "The largest model does more FLOPs per second than the smallest."
    assert all(share is None or 0 < share <= 1 for share in mfu.values()), \
        "Each MFU is a share of the peak, between 0 and 1."  # @hide
    assert (mfu[512] is None) == (core_peak is None), \
        "An MFU is shown where the peak is known."  # @hide
    growth = work[256] / work[128], work[512] / work[256]  # @hide
    assert [round(g, 1) for g in growth] == [3.8, 3.9], \
        "With every doubling of the model dimension, a step costs nearly four times as many FLOPs."  # @hide
    note("So a low MFU can come from the size of the model, not only from the code.")
    question(r"""
        Instead of the model dimension, you double the number of layers. By what factor does the
        ratio of the matmuls' FLOPs to the elements between the matmuls change?
    """, answer=2 / 2,
        check=flops_for_each_element(model, 4) / flops_for_each_element(model, 2), unit="times",
        wrong={
            "There are also twice as many elements between the matmuls.": 2,
            "That is for the FLOPs when the model dimension doubles.": 4,
        },
        hint="How many times as many matmuls are there, and how many times as many elements between them?",
        why=r"""
            Every layer is as before, and there are twice as many. So both the FLOPs of the matmuls
            and the elements between them double, and their ratio stays. A deeper model does not
            raise the MFU in this way; a wider one does.
        """)
