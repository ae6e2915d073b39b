"""How long a run takes and whether it fits, on a napkin."""
from counters import flops, saved_bytes_of
import math

import torch
from hardware import CARDS, peak
from jaxtyping import BFloat16, Float
from torch import Tensor, nn
from units import DAY, GB, TERA
from plots import stacks

from litbook import aside, explore, figure, misbelief, note, question

from .figures import plot_roofline
from .measure import adamw_step, dense_peak, intensity
from .price import (
    a_run_is_paid_for_in_gpu_hours,
    boards_draw_half_of_the_power,
)


def napkin_math() -> None:
    """Napkin math."""
    note(r"""
        A few multiplications estimate a training run that keeps a building full of GPUs busy for
        months. The arithmetic is the easy part. The hard part is to put in the right peak rate, and
        to know whose memory is being counted.
    """)
    flops_are_work_and_flops_per_second_a_rate()
    a_training_run_in_three_lines()
    the_printed_peak_is_twice_too_large()
    training_holds_four_values_per_parameter()
    adamw_follows_the_dtype_it_is_given()
    a_master_copy_saves_no_memory()
    pooled_memory_needs_sharded_state()
    activations_grow_with_the_batch()
    the_roofline_shows_what_waits_for_memory()
    a_run_is_paid_for_in_gpu_hours()
    boards_draw_half_of_the_power()


def flops_are_work_and_flops_per_second_a_rate() -> None:
    """FLOPs count work; FLOP/s is a rate."""
    note(r"""
        How much work is a *matmul*, the multiplication of two matrices? Nearly all the work of a
        language model is matmuls.

        Work is counted in FLOPs. A *FLOP* is one floating-point operation: one multiplication or
        one addition. Each entry of the result is computed from a row of the first matrix and a
        column of the second. By hand, for the row `1, 2, 3` and the column `4, 5, 6`, starting from
        zero:

        - `0 + 1 * 4 = 4`
        - `4 + 2 * 5 = 14`
        - `14 + 3 * 6 = 32`

        Each line is a multiplication and an addition, so the entry costs `2 * 3 = 6` FLOPs. A
        matrix of `2` rows and `3` columns times one of `3` rows and `4` columns has `2 * 4 = 8`
        such entries. That makes `8 * 6 = 48` FLOPs.

        PyTorch can count them. `torch.randn` makes a matrix of random numbers, and `flops` runs a
        call and returns the count. A sentence with a tick is a claim that the run has checked:
    """)
    a = torch.randn(2, 3)
    b = torch.randn(3, 4)
    once = flops(lambda: a @ b)  # @inspect once as FLOP
    assert once == 2 * 2 * 3 * 4, "PyTorch counts 48 FLOPs."
    note(r"""
        FLOPs are an amount of work. FLOPs per second, FLOP/s, are a speed. A machine that needs `2`
        seconds for this matmul does `48 / 2 = 24` FLOP/s. It needs `4` seconds for two such
        matmuls. That is twice the work at the same speed, because the time has doubled as well:
    """)
    twice = flops(lambda: (a @ b, a @ b))  # @inspect twice as FLOP
    assert twice == 48 + 48, "Two matmuls are twice the work."
    assert twice / 4 == once / 2 == 24, "The speed is 24 FLOP/s in both cases."

    misbelief("Compute is measured in FLOPS.", r"""
        The word can mean work (with the S as a plural) or speed (FLOPs *per second*). This book
        writes FLOPs for work and FLOP/s for speed. Work divided by speed is a time.
    """)
    question(r"""
        A machine does `1e12` FLOP/s. How long does it take to multiply two square matrices of
        `1000` rows and `1000` columns?
    """, answer=flops(lambda: torch.ones(1000, 1000) @ torch.ones(1000, 1000)) / 1e12,
        wrong={
            "The additions are missing: each term costs an addition as well as a multiplication.": 1000**3 / 1e12,
            "That is the size of a matrix, not the work of a matmul.": 1000**2 / 1e12,
        },
        check=2 * 1000**3 / 10**12,
        hint=r"""
            How many multiplications and additions make one entry of the result, and how many
            entries does the result have?
        """, unit="s",
        why=r"""
            The result has `1000 * 1000` entries. Each costs `1000` multiplications and `1000`
            additions. That makes `2e9` FLOPs of work. Divided by a speed of `1e12` FLOP/s, this is
            a time of `0.002` seconds.
        """)


def a_training_run_in_three_lines() -> None:
    """Work divided by speed gives the length of a training run."""
    note(r"""
        How long do `1024` GPUs need to train a model of `70` billion *parameters* on `15` trillion
        *tokens*? Parameters are the values that training adjusts, and tokens are words or pieces of
        words. One of the Llama 3 models has this size and was trained on about this number of
        tokens [@llama3].

        The work comes first, in FLOPs, floating-point operations. For each token, a *forward pass*
        computes a prediction. It does about one multiplication and one addition per parameter: $2$
        FLOPs. A *backward pass* computes the *gradients*, which say how to change the parameters;
        it costs about $4$ FLOPs per parameter. Together that is about `2 + 4 = 6` FLOPs per
        parameter and token [@kaplan2020]; a later section
        [shows why](#six_per_parameter_and_token_is_a_special_case).

        The speed comes next, in FLOP/s, FLOPs per second. The *peak* of a GPU is the rate that its
        datasheet states. No run reaches it all the time. *Model FLOPs utilization*, MFU, is the
        share of the peak that a run does reach.

        Try it on a tiny run: $10$ parameters, $100$ tokens, and $2$ GPUs with a peak of $60$ FLOP/s
        each, at an MFU of $0.5$.

        - The work is `6 * 10 * 100 = 6000` FLOPs.
        - The speed is `2 * 60 * 0.5 = 60` FLOP/s.
        - The run takes `6000 / 60 = 100` seconds.

        With $N$ parameters, $D$ tokens and $G$ GPUs:

        [@eq:time]: $$
                \mathrm{seconds} = \frac{6ND}{G \times \mathrm{peak} \times \mathrm{MFU}}
        $$

        Now the real run, on the GPU H100 SXM. In `bfloat16`, the number format of most training,
        its peak is `989.5e12` FLOP/s [@nvidia-h100]. That is the peak for *dense* matrices, which
        are ordinary ones. (The datasheet's larger number is
        [for matrices that are half zeros](#the_printed_peak_is_twice_too_large).)
    """)
    params, tokens, gpus = 70 * 10**9, 15 * 10**12, 1024
    peak_rate = 989.5e12  # FLOP/s of one GPU
    mfu = 0.5  # assumed
    work = 6 * params * tokens  # @inspect work as FLOP
    assert work == 63 * 10**23, "6 * 70e9 * 15e12 is 6.3e24 FLOPs of work."  # @hide
    assert peak_rate == dense_peak("H100 SXM", "bfloat16"), "This is the dense peak of the H100 SXM."  # @hide
    seconds = work / (gpus * peak_rate * mfu)
    days = seconds / (24 * 60 * 60)  # @inspect days as days
    per_day = peak_rate * mfu * gpus * DAY  # @hide
    assert 4.377e22 < per_day < 4.378e22, \
        "In a day, all GPUs together do 4.38e22 FLOPs."  # @hide
    assert 143.92 < days < 143.93, \
        "The run takes 144 days on these assumptions."
    note(r"""
        An MFU of one half is optimistic. The Llama 3 report states between `0.38` and `0.43` for
        its largest model [@llama3]:
    """)
    modest = work / (gpus * peak_rate * 0.4) / (24 * 60 * 60)  # @inspect modest as days
    assert 179.9 < modest < 180.0, "At an MFU of 0.4 the run takes 180 days."
    note(rf"""
        The assumed MFU alone has moved the end of the run by {modest - days:.0f} days. So an
        estimate should always state its MFU.
    """)
    question(r"""
        The same run has to end within `30` days, at an MFU of `0.5`. How many GPUs does it need?
    """, answer=math.ceil(work / (peak_rate * mfu * DAY * 30)),
        wrong={
            "That is at twice the rate: the MFU is missing, or the peak is the printed one.": math.ceil(work / (peak_rate * DAY * 30)),
            "That is at an MFU of 0.4.": math.ceil(work / (peak_rate * 0.4 * DAY * 30)),
            "Only the forward pass is counted, a third of the work.": math.ceil(work / 3 / (peak_rate * mfu * DAY * 30)),
        },
        check=math.ceil(days * gpus / 30),
        hint="GPUs times days stays the same. What is this product in the run above?", unit="GPUs", within=0.05,
        why=rf"""
            At the same MFU, GPUs times days stays the same: `1024` GPUs times {days:.1f} days.
            Divided by `30` days that is {days * gpus / 30:,.1f}, so {math.ceil(days * gpus / 30):,}
            GPUs.
        """)


@aside
def the_printed_peak_is_twice_too_large() -> None:
    """The large number on the H100's datasheet is for matrices that are half zeros."""
    note(r"""
        The datasheet of the H100 prints `1979` TFLOP/s, trillions of FLOPs per second, for
        `bfloat16` in large type [@nvidia-h100]. Why should an estimate use only half of it? Because
        the GPU reaches that number only if it can skip half of the multiplications. A footnote says
        *with sparsity*: two of every four weights
        [have to be zero](#sparsity_means_two_of_every_four).

        Take the four weights $0, 3, 0, 5$. The GPU multiplies only by $3$ and by $5$. The datasheet
        still counts four multiplications, in the time of two: twice the speed. The matrices of a
        model in training are *dense*: they have no such zeros, so nothing can be skipped. `peak`
        looks up the peak for dense matrices:
    """)
    printed = 1979e12  # in large type, in FLOP/s
    dense = peak(CARDS["H100 SXM"], "bfloat16")  # @inspect dense as FLOP/s
    assert dense == 989.5e12, "A dense matmul can reach at most this."  # @hide
    assert printed == dense * CARDS["H100 SXM"].sparse_factor, \
        "The peak with sparsity is the number in large type."  # @hide
    assert printed / dense == 2.0, "The printed peak is twice the dense peak."
    misbelief(f"An H100 does {printed / TERA:.0f} TFLOP/s in bfloat16.", rf"""
        That is the most it can do, and only if two of every four weights are zero [@nvidia-hopper].
        A dense matmul reaches at most {dense / TERA:.1f} TFLOP/s.
    """)
    older = 312e12  # the A100's dense peak  # @hide
    assert older == dense_peak("A100 SXM 80GB", "bfloat16"), "The A100's dense peak is 312 TFLOP/s."  # @hide
    mixed, fair = printed / older, dense / older  # @hide
    assert 6.3 < mixed < 6.4, \
        "Sparse divided by dense, the factor would be more than 6."  # @hide
    assert 3.1 < fair < 3.2, \
        "Dense divided by dense, the factor is a little more than 3."  # @hide
    misbelief(f"An H100 is more than {mixed:.0f} times an A100.", rf"""
        That divides the H100's sparse peak by the A100's dense `312` TFLOP/s [@nvidia-a100]. Dense
        by dense, the peak is {fair:.2f} times as high.
    """)
    rate = 2.684e14  # @hide
    speedup = rate / 5.409e13  # @hide
    assert 4.95 < speedup < 4.97, \
        "The rate is nearly 5 times that of the same matmul in float32."  # @hide
    used, halved = rate / dense, rate / printed  # @hide
    assert 0.271 < used < 0.272, \
        "Divided by the dense peak, the rate is 27 % of it."  # @hide
    assert 0.135 < halved < 0.136, \
        "Divided by the sparse peak, it is half of that, less than 14 %."  # @hide
    pcie = peak(CARDS["H100 PCIe"], "bfloat16")  # @hide
    nvl = peak(CARDS["H100 NVL"], "bfloat16")  # @hide
    assert (pcie, nvl) == (756.5e12, 835.5e12), \
        "The dense peaks of the boards PCIe and NVL are lower than that of SXM."  # @hide
    question(r"""
        Someone estimates the time of a training run with dense matrices as work divided by speed.
        As the speed of a GPU, they take half of the sparse peak. In fact the run reaches half of
        the dense peak. Divide the estimated time by the true time: what is the result?
    """, answer=(1 / printed) / (1 / dense),
        check=1 / CARDS["H100 SXM"].sparse_factor,
        wrong={
            "The assumed speed is the whole dense peak, not half of it.": 1,
            "A higher speed makes the estimate shorter.": 2,
        },
        hint="By what factor is the assumed speed too high?",
        why=r"""
            The sparse peak is twice the dense peak, so the assumed speed is twice the true speed.
            Work divided by twice the speed is half of the time.
        """)


def training_holds_four_values_per_parameter() -> None:
    """Training with AdamW in float32 holds four values for every parameter."""
    note(r"""
        How large a model can one GPU train? A much smaller one than it could store, because
        training keeps four values in memory for every parameter:

        - the parameter itself;
        - its gradient;
        - two *moments*, running averages of the gradient and of the gradient's square.

        The moments belong to the *optimizer*, which turns a gradient into a change of the
        parameter. AdamW, the usual optimizer, needs both [@kingma2015].

        In `float32` each value needs `4` bytes, so one parameter needs `4 + 4 + 4 + 4 = 16` bytes
        in training. For $P$ parameters that is

        [@eq:state]: $$
        (4 + 4 + 4 + 4)\,P = 16P
        $$

        bytes. Measure it for `1000` parameters. `adamw_step` takes one training step with a random
        gradient and returns what AdamW keeps:
    """)
    p = nn.Parameter(torch.randn(1000))
    state = adamw_step(p)
    first, second = state["exp_avg"], state["exp_avg_sq"]  # the two moments  # @unnoticed: 'exp_avg': both are alike in size
    assert p.grad is not None, "The gradient is kept."  # @hide
    moments = first.nbytes + second.nbytes
    held = p.nbytes + p.grad.nbytes + moments  # @inspect held as B
    per_parameter = held / 1000  # @inspect per_parameter as B
    assert per_parameter == 4 + 4 + (4 + 4), \
        "Parameter, gradient and two moments need 16 bytes per parameter."
    assert sorted(state) == ["exp_avg", "exp_avg_sq", "step"], "AdamW keeps two moments and a counter."  # @hide
    assert state["step"].nbytes == 4, \
        "A counter of 4 bytes is also kept for each tensor."  # @hide
    note("An H100 has `80` GB of memory [@nvidia-h100]. Divide that by `16` bytes per parameter:")
    limit = 80 * 10**9 / 16  # @inspect limit as parameters
    assert CARDS["H100 SXM"].memory / per_parameter == limit, "So many parameters of 16 bytes fit into an H100."  # @hide
    assert limit == 5 * 10**9, \
        "At 16 bytes per parameter, at most 5 billion parameters fit into one H100."
    note(r"""
        In practice fewer fit, because the results that the forward pass keeps for the backward pass
        [need memory as well](#activations_grow_with_the_batch).
    """)
    stored = {"parameter": p.nbytes / 1000}  # @hide
    training = {**stored, "gradient": p.grad.nbytes / 1000, "moments": moments / 1000}  # @hide
    assert sum(training.values()) == per_parameter, "The parts add up."  # @hide
    figure(stacks({"stored": stored, "in training": training}, "bytes per parameter"), caption=r"""
        Bytes per parameter in `float32`: if it is only stored, and in training with AdamW.
    """, alt="Two stacked bars. In training, the parameter is a quarter, its gradient another, and the moments are half.")
    question(r"""
        Another optimizer keeps one moment instead of two, also in `float32`. How many parameters
        can it train at most on a GPU with `24` GB of memory?
    """, answer=24 * GB // (p.nbytes * 3 // p.numel()),
        wrong={
            "That is with two moments, as AdamW has them.": 24 * GB // 16,
            "The gradient is missing.": 24 * GB // 8,
            "That is what the GPU could store: the gradient and the moment are missing.": 24 * GB // 4,
        },
        check=24 * 10**9 // (3 * 4),
        hint=r"""
            How many values are kept for each parameter if there is only one moment, and how many
            bytes do they need?
        """, unit="parameters",
        why=r"""
            Parameter, gradient and one moment are three values of `4` bytes each, `12` bytes in
            all. `24` GB divided by `12` bytes is `2` billion.
        """)


@aside
def adamw_follows_the_dtype_it_is_given() -> None:
    """PyTorch's AdamW keeps `bfloat16` moments for a `bfloat16` model, and no master copy."""
    note(r"""
        In `float32`, training with AdamW holds
        [`16` bytes per parameter](#training_holds_four_values_per_parameter), `4` for each of four
        values: the parameter, its gradient and two *moments*, running averages of the gradient and
        of its square. How many bytes per parameter does it hold if the model is in `bfloat16`, a
        format of `2` bytes?

        Half as many, because PyTorch's AdamW makes its moments in the format of the parameter:
        `2 + 2 + 2 + 2 = 8`. It does not keep a *master copy*, a second copy of each parameter in
        `float32`. `adamw_step` takes one step with `1000` parameters and returns what AdamW keeps:
        the moments, `exp_avg` and `exp_avg_sq`, and a counter, `step`, which is not counted here:
    """)
    n = 1000  # @hide
    p = nn.Parameter(torch.randn(1000, dtype=torch.bfloat16))
    state = adamw_step(p)
    kept = sorted(state)  # @inspect kept
    assert kept == ["exp_avg", "exp_avg_sq", "step"], \
        "AdamW keeps two moments and a counter, and no copy in float32."
    first, second = state["exp_avg"], state["exp_avg_sq"]  # @unnoticed: 'exp_avg': both are alike in size
    assert first.dtype == torch.bfloat16, \
        "The moments are in bfloat16, like the parameter."
    assert p.grad is not None, "The gradient is kept."  # @hide
    held = p.nbytes + p.grad.nbytes + first.nbytes + second.nbytes
    per_parameter = held / 1000  # @inspect per_parameter as B
    assert per_parameter == 2 + 2 + (2 + 2), \
        "Parameter, gradient and two moments need 8 bytes per parameter."
    misbelief(f"AdamW costs {2 * per_parameter:.0f} bytes per parameter.", rf"""
        With `float32` throughout it does. After `model.bfloat16()` it costs {per_parameter:.0f}.
    """)
    note("`bfloat16` throughout has a price, which [another section shows](#small_updates_are_lost): small updates get lost.")
    p64 = nn.Parameter(torch.randn(n).double())  # @hide
    state = adamw_step(p64)  # @hide
    question(r"""
        Someone calls `model.double()` first, which makes every parameter a `float64` of `8` bytes.
        How many bytes per parameter does training with AdamW hold then?
    """, answer=(2 * p64.nbytes + sum(state[m].nbytes for m in kept[:2])) / n,
        wrong={
            "The moments take the format of the parameter as well.": 24,
            "That is with float32.": 16,
        },
        check=4 * torch.float64.itemsize, unit="B", why=r"""
            The gradient and the moments take the format of the parameter. Four values of `8` bytes
            are `32`.
        """)


@aside
def a_master_copy_saves_no_memory() -> None:
    """A `float32` master copy uses up all the bytes that `bfloat16` weights and gradients save."""
    note(r"""
        In `bfloat16` a weight needs `2` bytes instead of `4`. Does training then keep fewer bytes
        per weight? Not in a usual recipe of *mixed precision*, in which the optimizer keeps each
        weight a second time, in `float32`. Updates are added to this *master copy*, because
        `bfloat16` has little precision: a number much smaller than the weight
        [is rounded away](#small_updates_are_lost) when it is added [@micikevicius2018].

        Count the bytes for one weight, without activations:

        - `float32` throughout: `4` for the weight, `4` for the gradient, `4 + 4` for AdamW's two
          moments, together `16`.
        - Mixed precision: `2` for the weight and `2` for the gradient, which saves `4`. The master
          copy needs `4` more, and the moments `4 + 4` as before, together `16` again.

        The same calculation for six recipes:
    """)
    recipes = {  # bytes of: weight, gradient, master copy, two moments
        "float32 throughout": (4, 4, 0, 4 + 4),
        "mixed precision": (2, 2, 4, 4 + 4),
        "mixed precision, gradients in float32": (2, 4, 4, 4 + 4),
        "mixed precision, moments in bfloat16": (2, 2, 4, 2 + 2),
        "no master copy, moments in float32": (2, 2, 0, 4 + 4),
        "bfloat16 throughout": (2, 2, 0, 2 + 2),
    }
    sums = [sum(parts) for parts in recipes.values()]  # @inspect sums as B
    assert sums == [16, 16, 18, 12, 12, 8], \
        "The six recipes need 16, 16, 18, 12, 12 and 8 bytes per parameter."
    n = 1000  # @hide
    master = nn.Parameter(torch.randn(n))  # @hide
    state = adamw_step(master)  # @hide
    weights: BFloat16[Tensor, "n"] = master.detach().bfloat16()  # @hide
    averages = state["exp_avg"], state["exp_avg_sq"]  # @hide
    full, half = master.nbytes // n, weights.nbytes // n  # @hide
    moments = sum(m.nbytes for m in averages) // n  # @hide
    assert recipes["mixed precision"] == (half, half, full, moments), "The tensors of mixed precision have these bytes."  # @hide
    note(r"""
        So mixed precision saves no bytes per weight, and with gradients in `float32` it needs `18`.
        It is used for
        [faster matmuls and smaller activations](#a_step_is_timed_in_both_precisions). Moments in
        `bfloat16` save `4` bytes. Leaving out the master copy also saves `4`, but then small
        updates are rounded away.
    """)
    question(r"""
        A recipe keeps weight and gradient in `bfloat16`, a master copy in `float32`, and each of
        the two moments in a single byte. How many bytes does it need per parameter?
    """, answer=half + half + full + 2 * torch.uint8.itemsize,
        wrong={
            "There are two moments, a byte each.": half + half + full + 1,
            "The master copy is missing.": half + half + 2,
            "The gradient is missing.": half + full + 2,
        },
        check=2 + 2 + 4 + 1 + 1,
        hint="Five values are kept for each parameter. How many bytes does each need?", unit="B",
        why=r"""
            Weight and gradient need `2` bytes each, the master copy `4`, the two moments `1` each:
            `2 + 2 + 4 + 1 + 1 = 10`.
        """)


def pooled_memory_needs_sharded_state() -> None:
    """In training, eight GPUs hold a model eight times as large only if each keeps its own eighth."""
    note(r"""
        Can a model be larger with more GPUs? Only if each GPU keeps a different part of it, because
        full copies fill all memories with the same values.

        Training with AdamW in `float32` holds
        [`16` bytes](#training_holds_four_values_per_parameter) per parameter, the state of the
        model: `4` each for the parameter, its gradient and two *moments*, running averages of the
        gradient and of its square. Take $2$ tiny GPUs with $16$ bytes of memory each.

        - *A full copy on each:* the $16$ bytes hold one parameter with its gradient and moments.
          Both GPUs hold the same one, so they hold a model of $1$ parameter.
        - *A slice on each:* every GPU holds a different parameter in its $16$ bytes, so they hold a
          model of $2$ parameters. To compute with the other parameter, a GPU fetches a copy, and
          drops it right after. (Memory for such copies is not counted here.)

        Plain *data parallelism* keeps full copies: each GPU trains the whole model on its own part
        of the data. Cutting parameters, gradients and moments into slices is called *sharding*
        [@zero]. Compare both on eight H100s of `80` GB each [@nvidia-h100]:
    """)
    memory = 80 * 10**9  # bytes of one GPU
    replicated = memory // 16  # @inspect replicated as parameters
    assert replicated == 5 * 10**9, \
        "With a full copy on every GPU, eight H100s hold 5 billion parameters."
    pooled = 8 * replicated  # @inspect pooled as parameters
    assert pooled == 40 * 10**9, \
        "With a slice on every GPU, eight H100s hold 40 billion parameters."
    gpus = 8  # @hide
    assert memory == CARDS["H100 SXM"].memory, "An H100 is sold with 80 GB."  # @hide
    owned = [nn.Parameter(s.clone()) for s in torch.randn(8000).chunk(gpus)]  # @hide
    states = [adamw_step(p) for p in owned]  # @hide
    moments = [s["exp_avg"].nbytes + s["exp_avg_sq"].nbytes for s in states]  # @hide
    held = [2 * p.nbytes + m for p, m in zip(owned, moments)]  # @hide
    assert sum(held) == 16 * 8000, \
        "Together, the slices take 16 bytes per parameter."  # @hide
    assert max(held) == 16 * 8000 / 8, "A slice takes an eighth of that."  # @hide

    def state(billions: int, devices: int) -> dict[str, float]:  # @hide
        each = billions * 1e9 / devices
        named = {"parameters": 4, "gradients": 4, "moments": 8}
        return {name: size * each for name, size in named.items()}

    fits = (c for c in range(1, 99) if sum(state(70, c).values()) < memory)  # @hide
    enough = next(fits)  # @hide
    assert enough == 15, \
        "15 GPUs hold the state of 70 billion parameters, fewer do not."  # @hide
    explore(state, over={"billions": [1, 3, 8, 13, 34, 70, 405], "devices": [1, 2, 4, 8, 16, 32, 128, 1024]},
        at={"billions": 8, "devices": 1}, kind="stack", unit="B", limit=("memory of one H100", memory),
        do="Choose `70` billion parameters. How many GPUs are needed to fit their state, sharded?",
        see=f"Parameters, gradients and moments of that model are `16 * 70e9` bytes. At least {enough} GPUs are needed, so `16` on the slider.",
        caption="Bytes of parameters, gradients and moments that each GPU keeps when they are sharded.",
        alt="A bar of parameters, gradients and moments beside the memory of one GPU.")
    misbelief(f"{gpus} H100s can train a model of {pooled / 1e9:.0f} billion parameters.", rf"""
        At `16` bytes per parameter, the limit without sharding is {replicated / 1e9:.0f} billion,
        however many GPUs there are. With sharding, {pooled / 1e9:.0f} billion fill all memory, and
        nothing is left for the rest of training.
    """)
    question(r"""
        In `float32` a parameter, its gradient and its two moments need `4` bytes each. Another kind
        of sharding cuts only the moments into `8` slices; every GPU keeps all parameters and
        gradients. How many bytes per parameter does each of the `8` GPUs hold?
    """, answer=4 + 4 + sum(moments) / 8000 / gpus,
        wrong={
            "Here nothing is cut; the moments have to be cut into slices.": 16,
            "That is with everything sharded, parameters and gradients too.": 16 / gpus,
            "The gradients are missing: every GPU keeps all of them.": 4 + 8 / gpus,
        },
        check=(8 * 8000 + held[0] // 2) / 8000,
        hint=r"""
            What does a GPU keep for every parameter, and what part of the two moments?
        """, unit="B",
        why=r"""
            Every GPU keeps a parameter and a gradient, `8` bytes. The moments, another `8`, are cut
            into `8` slices, so `1` byte is added.
        """)


def saved_bytes(batch: int, seq: int, width: int) -> int:
    """The bytes of activations that autograd keeps for a batch that passes through two linear layers."""
    weights = [torch.randn(width, width).requires_grad_() for _ in "ab"]
    x = torch.randn(batch, seq, width)
    return saved_bytes_of(
        lambda: (x @ weights[0] @ weights[1]).square().mean(), (x, *weights)
    )


def activations_grow_with_the_batch() -> None:
    """The memory of activations grows with the batch."""
    note(r"""
        A *batch* is a set of token sequences that pass through a model together. Which memory does
        a larger batch need more of? Not that of parameters, gradients and AdamW's
        [moments](#training_holds_four_values_per_parameter): a model has the same number of them
        for any batch.

        It is the *activations*, the results of the forward pass that the backward pass needs. They
        grow with the batch, because each token has its own results. *Autograd*, the part of PyTorch
        that computes gradients, saves them.

        Take two layers whose outputs have `2` elements for each token, and a loss that squares the
        second output. Autograd saves two results. (It also saves the weights and the input, which
        are in memory anyway and are not counted here.) For one token the two results are

        - the first layer's output, because the gradient of the second layer's weights depends on
          it: `2` elements of `4` bytes, so `8` bytes;
        - the second layer's output, because the gradient of its square depends on it: `8` bytes.

        That is `8 + 8 = 16` bytes for one token, $32$ for two, and $48$ for three.

        `saved_bytes` measures that for layers of any width. With `64` elements in place of `2`, a
        token needs `2 * 64 * 4 = 512` bytes. Begin with `8` sequences of `16` tokens:
    """)
    base = saved_bytes(batch=8, seq=16, width=64)  # @inspect base as B
    assert base == 8 * 16 * 512, \
        "Autograd saves 512 bytes for each of 8 * 16 tokens."
    assert saved_bytes(batch=16, seq=16, width=64) == 2 * base, \
        "With 16 sequences, autograd saves twice as much."
    assert saved_bytes(8, 32, 64) == 2 * base, "With 32 tokens a sequence, autograd saves twice as much."  # @hide
    note(r"""
        Compare that with the layers' `2 * 64 * 64` weights. A weight, its gradient and its two
        moments need `4 + 4 + 8 = 16` bytes:
    """)
    state = 16 * (2 * 64 * 64)  # @inspect state as B
    assert state / base == 2.0, \
        "With 8 sequences, weights, gradients and moments need twice as many bytes as the activations."
    assert saved_bytes(batch=32, seq=16, width=64) == 2 * state, \
        "With 32 sequences, the activations need twice as many bytes as weights, gradients and moments."
    batches = {
        f"{n} sequences": {"weights, gradients, moments": state / 1024, "activations": saved_bytes(n, 16, 64) / 1024}
        for n in (4, 8, 16, 32)
    }  # @hide
    figure(stacks(batches, "KiB"), caption=r"""
        Memory of the two layers in training, for four batches. The first part is the same in all;
        the activations double with the batch.
    """, alt="Four stacked bars. Activations are a quarter of the first part in the first bar, and twice as long in the last.")
    note("So when a training step runs out of memory, fewer sequences help, but they reduce only the activations.")
    question(r"""
        With `8` sequences, weights, gradients and moments need twice as many bytes as the
        activations. Now double the width, for the same batch: two layers of `128 * 128` weights,
        and outputs of `128` elements. How many times as many bytes as the activations do weights,
        gradients and moments need now?
    """, answer=16 * (2 * 128 * 128) / saved_bytes(8, 16, 128),
        wrong={
            "Only the weights were doubled, and they grow with the square of the width.": 2,
            "The activations grow with the width as well.": 8,
        },
        check=2 * state / base,
        hint="By what factor do the weights grow, and by what factor do the elements for each token?",
        why=r"""
            With twice the width there are `4` times as many weights and twice as many activations.
            So the ratio of two becomes `2 * 4 / 2 = 4`.
        """)


def the_roofline_shows_what_waits_for_memory() -> None:
    """The roofline: an operation that does few FLOPs per byte waits for memory."""
    note(r"""
        Why can a GPU be busy and yet reach only a fraction of its peak? Because it can only compute
        with bytes that have arrived from its memory, and loading a byte takes longer than computing
        a FLOP.

        Take a GPU that can do $10$ FLOPs while one byte arrives.

        - An operation with $1$ FLOP per byte reaches $1/10$ of the peak: the GPU does one FLOP, and
          could do nine more before the next byte arrives.
        - An operation with $5$ FLOPs per byte reaches $5/10$ of the peak.
        - An operation with $20$ FLOPs per byte keeps the GPU busy for longer than a byte takes to
          arrive. It can reach the whole peak.

        The FLOPs per byte of an operation are its *intensity*. The FLOPs that the GPU can do while
        one byte arrives are its *ridge*: peak divided by *bandwidth*, the bytes that memory
        delivers in a second. An operation reaches at most this share of the peak [@roofline]:

        [@eq:roof]: $$
        \min\left(1, \frac{\mathrm{intensity}}{\mathrm{ridge}}\right)
        $$

        Below the ridge an operation is *memory-bound*: it waits for bytes. Above it, an operation
        is *compute-bound*: its arithmetic sets the time.

        Now an H100, with a peak of `989.5e12` FLOP/s in `bfloat16` and a bandwidth of `3.35e12`
        bytes per second [@nvidia-h100]. To generate one token, a model multiplies a vector by each
        of its matrices. A weight in `bfloat16` has `2` bytes, and is used for `2` FLOPs, a
        multiplication and an addition. So the intensity is `1` FLOP per byte:
    """)
    ridge = 989.5e12 / 3.35e12  # @inspect ridge as FLOP/B
    assert 295.3 < ridge < 295.4, \
        "While one byte arrives, an H100 can do 295 FLOPs."
    reachable = 1 / ridge  # @inspect reachable as %
    assert 0.0033 < reachable < 0.0034, "One token reaches at most 0.34 % of the peak."  # @hide
    rate, bandwidth = dense_peak("H100 SXM", "bfloat16"), CARDS["H100 SXM"].bandwidth  # @hide
    assert rate / bandwidth == ridge, "This is the ridge by the datasheet."  # @hide
    n = 8192  # @hide
    with torch.device("meta"):  # @hide
        x: Float[Tensor, "1 inner"] = torch.empty(1, n).bfloat16()
        w: Float[Tensor, "inner out"] = torch.empty(n, n).bfloat16()
    y = x @ w  # @hide
    per_byte = flops(lambda: x @ w) / (x.nbytes + w.nbytes + y.nbytes)  # @hide
    assert 0.999 < per_byte < 1.0, "One token makes about one FLOP per byte."  # @hide
    assert per_byte == intensity(1, n, n), "The helper intensity computes the same from the three sides."  # @hide
    tokens = next(m for m in range(1, n) if intensity(m, n, n) > ridge)  # @hide
    assert tokens == 319, "With 319 tokens at a time, the matmul no longer waits for memory."  # @hide
    note(rf"""
        So with weights in `bfloat16`, one token at a time reaches at most {reachable:.1%} of the
        peak, however good the code is.

        With `64` tokens at a time, each weight still arrives only once, but is used for all `64`.
        So the intensity is about `64` FLOPs per byte. (Vectors and results have to move as well,
        which makes it slightly less.)
    """)
    together = 64 / ridge  # @inspect together as %
    assert 0.21 < together < 0.22, \
        "With 64 tokens at a time, the matmul reaches at most 22 % of the peak."
    note(rf"""
        If only weights moved, {ridge:.0f} tokens would reach the ridge. With vectors and results
        counted, $t$ tokens and a matrix of `8192` by `8192` weights have the intensity
        $t / (1 + 2t / 8192)$, which is above the ridge from {tokens} tokens on. This is why a
        server generates tokens for many users at a time. In the picture, called a *roofline*, the
        slope is memory-bound and the flat part compute-bound:
    """)
    shapes = {"one token": per_byte}  # @hide
    shapes |= {f"{m} tokens": intensity(m, n, n) for m in (64, 4096)}  # @hide
    reached = {s: min(1, i / ridge) for s, i in shapes.items()}  # @hide
    assert 0.21 < reached["64 tokens"] < 0.22, "With 64 tokens at a time, the matmul reaches at most 21 % of the peak."  # @hide
    assert reached["4096 tokens"] == 1, \
        "With 4096 tokens at a time, the matmul can reach the peak."  # @hide
    waiting = [name for name, part in reached.items() if part < 1]  # @hide
    figure(plot_roofline(rate, bandwidth, shapes), caption=r"""
        The highest rate that an H100 SXM can reach in dense `bfloat16`, for each intensity.
    """, alt=rf"""
        Attainable FLOP/s against FLOPs per byte, both logarithmic. The roof rises with the
        bandwidth and turns flat at the peak. On the slope lie dots for {', '.join(waiting)}; on the
        flat part one for {', '.join(set(shapes) - set(waiting))}.
    """)

    def waits(tokens: int, card: str) -> dict[str, float]:  # @hide
        moved = 2 * (tokens * n + n * n + tokens * n)
        return {"moving bytes": moved / CARDS[card].bandwidth,
                "arithmetic": 2 * tokens * n * n / dense_peak(card, "bfloat16")}

    grid = explore(waits, over={"tokens": [2**i for i in range(13)], "card": ["A100 SXM 80GB", "H100 SXM"]},
        at={"tokens": 16, "card": "H100 SXM"}, kind="curve", unit="s",
        do="Raise the number of tokens until both take the same time.",
        see=rf"""
            Up to a few hundred tokens, moving bytes takes longer, and its time hardly grows,
            because the weights are read once for all tokens. On an H100 both take the same time at
            {tokens} tokens. With more, arithmetic takes longer.
        """,
        caption="A matmul with a matrix of `8192` by `8192` in bfloat16: the time of moving its bytes, and that of doing its FLOPs.",
        alt="Two lines over the number of tokens: moving bytes, flat at first, and arithmetic, which crosses it.")  # @hide
    few, many = grid[256, "H100 SXM"], grid[512, "H100 SXM"]  # @hide
    assert few["moving bytes"] > few["arithmetic"], "With 256 tokens, moving bytes takes longer."  # @hide
    assert many["moving bytes"] < many["arithmetic"], "With 512 tokens, arithmetic takes longer."  # @hide
    question(r"""
        An operation does `30` FLOPs per byte. It runs on an H100, and then on a GPU with twice the
        peak and the same bandwidth. How many times as fast can it be on the second GPU?
    """, answer=min(2 * rate, 30 * bandwidth) / min(rate, 30 * bandwidth),
        wrong={
            "The operation waits for memory, which is no faster.": 2,
            "Its bytes arrive as fast as before, so it is not slower.": 0.5,
        },
        check=1, unit="times",
        hint="Is `30` FLOPs per byte below or above the ridge of the H100?", why=r"""
            `30` is far below the ridge of `295`, so the operation is memory-bound: its time is the
            time in which its bytes arrive. The same bandwidth means the same time, `1` times as
            fast.
        """)
