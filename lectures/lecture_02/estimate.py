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
    the_promise_is_printed_twice_too_large()
    adamw_keeps_four_numbers_per_parameter()
    adamw_follows_the_dtype_it_is_given()
    a_master_copy_eats_what_it_saves()
    pooled_memory_needs_sharded_state()
    activations_grow_with_the_batch()
    the_roofline_tells_waiting_from_working()
    a_run_is_paid_for_in_gpu_hours()
    boards_draw_half_of_the_power()


def flops_are_work_and_flops_per_second_a_rate() -> None:
    """FLOPs count work; FLOP/s is a rate."""
    note(r"""
        How much work is a *matmul*, the multiplication of two matrices? Nearly all the work of a
        language model is matmuls.
    """)
    note(r"""
        A *FLOP* is one floating-point operation: an addition or a multiplication. Take a matrix of
        `2` rows and `3` columns times one of `3` rows and `4` columns. The result has `2 * 4`
        entries, each a sum of `3` terms. Each term counts as `2` FLOPs, a multiplication and an
        addition. So the `2 * 4` entries of `3` terms cost `2 * (2 * 3 * 4) = 48` FLOPs.
    """)
    note(r"""
        In the code, `Float[Tensor, "row inner"]` says that a tensor (PyTorch's array) holds floats,
        and names its axes. `flops` runs a call and returns the FLOPs that PyTorch's own counter
        saw. A sentence with a tick is a claim that the run has checked.
    """)
    a: Float[Tensor, "row inner"] = torch.randn(2, 3)
    b: Float[Tensor, "inner col"] = torch.randn(3, 4)
    once = flops(lambda: a @ b)  # @inspect once as FLOP
    assert once == 2 * 2 * 3 * 4, "PyTorch counts 48 FLOPs."
    twice = flops(lambda: (a @ b, a @ b))  # @inspect twice as FLOP
    assert twice == 48 + 48, "Two matmuls are twice the work."
    note(r"""
        FLOPs are an amount of work. FLOPs divided by seconds are a speed, FLOP/s. If one matmul
        takes a microsecond, `1e-6` s, its speed is `48 / 1e-6 = 48e6` FLOP/s. Two matmuls, one
        after another, take twice the time. The work doubles as well, so the speed stays the same:
    """)
    assert twice / 2e-6 == once / 1e-6 == 48e6, \
        "96 FLOPs in two microseconds are the same 48e6 FLOP/s as 48 in one."

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
            The result has `1000 * 1000` entries. Each counts as `1000` multiplications and `1000`
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

        First the work. For each token a *forward pass* computes a prediction. It multiplies and
        adds once for each parameter: `2` FLOPs. A *backward pass* computes the *gradients*, which
        say how to change the parameters, and costs about twice as much. Together that is about `6`
        FLOPs per parameter and token [@kaplan2020]; a later section
        [shows why](#six_per_parameter_and_token_is_a_special_case).
    """)
    params, tokens, gpus = 70 * 10**9, 15 * 10**12, 1024
    work = 6 * params * tokens  # @inspect work as FLOP
    assert work == 63 * 10**23, "6 * 70e9 * 15e12 is 6.3e24 FLOPs of work."  # @hide
    note(r"""
        Then the speed. The GPU is an H100 SXM. Its datasheet prints a *peak* rate for each number
        format. Most training uses `bfloat16`, numbers of `2` bytes. The number in large type is
        [for matrices that are half zeros](#the_promise_is_printed_twice_too_large), because the GPU
        skips zeros. For ordinary, *dense* matrices the peak is half of that [@nvidia-h100].
        `dense_peak` looks it up.

        No run reaches the peak all the time. *Model FLOPs utilization*, MFU, is the share of the
        peak that a run reaches. Assume one half, which is optimistic. With $N$ parameters, $D$
        tokens and $G$ GPUs the run takes

        [@eq:time]: $$
                \mathrm{seconds} = \frac{6ND}{G \times \mathrm{peak} \times \mathrm{MFU}}
        $$

        In a day of `24 * 3600 = 86400` seconds, all GPUs at half of their peak do
        `1024 * 989.5e12 * 0.5 * 86400 = 4.38e22` FLOPs. So the run takes `6.3e24 / 4.38e22 = 144`
        days:
    """)
    rate = dense_peak("H100 SXM", "bfloat16")  # @inspect rate as FLOP/s
    assert rate == 1979e12 / 2, \
        "The dense peak is half of the 1979 TFLOP/s that the datasheet prints."
    mfu = 0.5
    per_day = rate * mfu * gpus * DAY  # FLOPs in a day  # @inspect per_day
    assert 4.377e22 < per_day < 4.378e22, \
        "In a day, all GPUs together do 4.38e22 FLOPs."  # @hide
    days = work / per_day  # @inspect days as days
    assert 143.92 < days < 143.93, \
        "The run takes 144 days on these assumptions."
    modest = work / (rate * 0.4 * gpus * DAY)  # @inspect modest as days
    assert 179.9 < modest < 180.0, "At an MFU of 0.4 the run takes 180 days."
    note(rf"""
        The run takes **{days:.0f} days**, *if* the MFU is {mfu} and no machine fails. The Llama 3
        report states an MFU between `0.38` and `0.43` for its largest model [@llama3]. At `0.4` the
        run takes {modest:.0f} days, {modest - days:.0f} more. So an estimate should always state
        its assumptions.
    """)
    question(r"""
        The same run has to end within `30` days, at an MFU of `0.5`. How many GPUs does it need?
    """, answer=math.ceil(work / (rate * mfu * DAY * 30)),
        wrong={
                        "That is at twice the rate: the MFU is missing, or the peak is the printed one.": math.ceil(work / (rate * DAY * 30)),
            "That is at an MFU of 0.4.": math.ceil(work / (rate * 0.4 * DAY * 30)),
            "Only the forward pass is counted: 2 FLOPs of 6.": math.ceil(work / 3 / (rate * mfu * DAY * 30)),
        },
        check=math.ceil(days * gpus / 30),
        hint="GPUs times days stays the same. What is this product in the run above?", unit="GPUs", within=0.05,
        why=rf"""
            At the same MFU, GPUs times days stays the same: `1024` GPUs times {days:.1f} days.
            Divided by `30` days that is {days * gpus / 30:,.1f}, so {math.ceil(days * gpus / 30):,}
            GPUs.
        """)


@aside
def the_promise_is_printed_twice_too_large() -> None:
    """The large number on a datasheet is for matrices that are half zeros."""
    note(r"""
        The datasheet of the H100 prints `1979` TFLOP/s for `bfloat16` in large type [@nvidia-h100].
        Why should an estimate use only half of it? A footnote says *with sparsity*: the GPU reaches
        it only if two of every four weights [are zero](#sparsity_means_two_of_every_four), because
        it skips these. The matrices of a model in training are *dense*: they have no such zeros.
        `peak` looks up the dense peak, and `sparse_factor` says how many times as high the peak
        with sparsity is:
    """)
    dense = peak(CARDS["H100 SXM"], "bfloat16")  # @inspect dense as FLOP/s
    assert dense == 989.5e12, "A dense matmul can reach at most this."  # @hide
    printed = dense * CARDS["H100 SXM"].sparse_factor  # @inspect printed as FLOP/s
    assert printed == 1979e12, \
        "The peak with sparsity is the number in large type."
    assert printed / dense == 2.0, "The printed peak is twice the dense peak."
    misbelief(f"An H100 does {printed / TERA:.0f} TFLOP/s in bfloat16.", rf"""
        It does so only when two of every four weights are zero [@nvidia-hopper]. A dense matmul
        reaches at most {dense / TERA:.1f} TFLOP/s.
    """)
    note(r"""
        Whoever divides by the wrong peak gets every answer wrong by a factor of two. How many times
        as fast as an A100 is an H100? The `312` TFLOP/s usually quoted for the A100 are a dense
        peak [@nvidia-a100]:
    """)
    older = dense_peak("A100 SXM 80GB", "bfloat16")
    mixed, fair = printed / older, dense / older  # @inspect mixed, fair as times
    assert 6.3 < mixed < 6.4, \
        "Sparse divided by dense, the factor would be more than 6."
    assert 3.1 < fair < 3.2, \
        "Dense divided by dense, the factor is a little more than 3."
    misbelief(f"An H100 is more than {mixed:.0f} times an A100.", rf"""
        That divides a sparse peak by a dense one. Dense by dense it is {fair:.2f} times.
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
        The estimate of a training run is its FLOPs divided by GPUs times peak times MFU. Someone
        uses the sparse peak, and measures the MFU of an earlier run correctly, against the dense
        peak. By what factor is the estimated time wrong?
    """, answer=(1 / printed) / (1 / dense),
        check=1 / CARDS["H100 SXM"].sparse_factor, unit="times",
        wrong={
            "Two errors would cancel if the MFU had been measured against the sparse peak as well.": 1,
            "A higher peak makes the estimate shorter.": 2,
        },
        hint="Peak times MFU is the rate that the run is expected to reach. What is it here?",
        why=r"""
            Peak times MFU comes out twice as high as the rate that the earlier run reached, so the
            estimate is half of the true time.
        """)


def adamw_keeps_four_numbers_per_parameter() -> None:
    """Training with AdamW in float32 holds four values for every parameter."""
    note(r"""
        How large a model can one GPU train? Only a quarter of the size that it could store, because
        training holds three more values for every parameter. One is its gradient. The other two
        belong to the *optimizer*, which turns a gradient into a change of the parameter. AdamW, the
        usual optimizer, keeps two *moments*: running averages of the gradient and of its square
        [@kingma2015]. A number in `float32` needs `4` bytes, so in training a parameter needs
        `4 + 4 + 4 + 4 = 16` bytes instead of `4`.

        `adamw_step` gives `1000` parameters a random gradient, takes one step with it, and returns
        what AdamW keeps. PyTorch calls the moments `exp_avg` and `exp_avg_sq`; `step` is a single
        counter. Add up the bytes of parameters, gradients and moments:
    """)
    p = nn.Parameter(torch.randn(1000))  # @unnoticed: 1000: any number of parameters
    state = adamw_step(p)  # @inspect sorted(state)
    assert p.grad is not None, "The gradient is kept."  # @hide
    moments = state["exp_avg"].nbytes + state["exp_avg_sq"].nbytes
    held = p.nbytes + p.grad.nbytes + moments  # @inspect held as B
    per_parameter = held / p.numel()  # @inspect per_parameter as B
    assert per_parameter == 4 + 4 + (4 + 4), \
        "Parameter, gradient and two moments take 16 bytes per parameter."
    assert state["step"].nbytes == 4, \
        "A counter of 4 bytes is also kept for each tensor."  # @hide
    card = CARDS["H100 SXM"]
    note(rf"""
        So for $P$ parameters, training with AdamW in `float32` holds

        [@eq:state]: $$
        (4 + 4 + 4 + 4)\,P = 16P
        $$

        bytes: parameter, gradient, two moments. An H100 is sold with {card.memory / GB:.0f} GB
        [@nvidia-h100]. Divide that by `16` bytes per parameter:
    """)
    limit = card.memory / per_parameter  # @inspect limit as parameters
    assert limit == 5 * 10**9, \
        "At most 5 billion parameters fit into the memory of one H100."
    note(rf"""
        So one H100 trains at most {limit / 1e9:.0f} billion parameters. In practice fewer fit,
        because the results that the forward pass keeps for the backward pass
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
        can it train at most on a GPU that is sold with `24` GB?
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
            Parameter, gradient and one moment are three numbers of `4` bytes each, `12` bytes in
            all. `24` GB divided by `12` bytes is `2` billion.
        """)


@aside
def adamw_follows_the_dtype_it_is_given() -> None:
    """A bfloat16 model gets bfloat16 moments, and no master copy."""
    note(r"""
        Training with AdamW holds
        [`16` bytes per parameter](#adamw_keeps_four_numbers_per_parameter): the parameter, its
        gradient and two moments, at `4` bytes each. Is that so for every model? No, because AdamW
        makes its moments in the format of the parameter. For parameters in `bfloat16`, `2` bytes
        each, the sum is `2 + 2 + 2 + 2 = 8`. `adamw_step` takes a step with `1000` such parameters
        and returns what AdamW keeps:
    """)
    n = 1000  # @unnoticed: 1000: any number of parameters
    p = nn.Parameter(torch.randn(n, dtype=torch.bfloat16))
    state = adamw_step(p)
    assert state["exp_avg"].dtype == torch.bfloat16, \
        "The moments are in bfloat16, like the parameter."
    kept = sorted(state)  # @inspect kept
    assert kept == ["exp_avg", "exp_avg_sq", "step"], \
        "AdamW keeps two moments and a counter, and no copy in float32."
    moments = state["exp_avg"].nbytes + state["exp_avg_sq"].nbytes
    per_parameter = (2 * p.nbytes + moments) / n  # @inspect per_parameter as B
    assert per_parameter == 2 + 2 + (2 + 2), \
        "Parameter, gradient and two moments take 8 bytes per parameter."
    misbelief(f"AdamW costs {2 * per_parameter:.0f} bytes per parameter.", rf"""
        With `float32` throughout it does. After `model.bfloat16()` it costs {per_parameter:.0f}.
        The price is that small updates [get lost](#small_updates_are_lost), because
        `torch.optim.AdamW` never makes a copy in `float32` by itself.
    """)
    p64 = nn.Parameter(torch.randn(n).double())
    state = adamw_step(p64)
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
def a_master_copy_eats_what_it_saves() -> None:
    """`bfloat16` weights with a `float32` master copy save no memory."""
    note(r"""
        In `bfloat16` a weight needs `2` bytes instead of `4`. Does a model with such weights train
        in less memory? Not in the usual recipe, *mixed precision*: the model computes with weights
        and gradients in `bfloat16`, and the optimizer keeps a *master copy* of each weight in
        `float32`, because small updates [get lost](#small_updates_are_lost) in low-precision
        weights [@micikevicius2018].

        Count the bytes for one parameter. `float32` throughout: parameter `4`, gradient `4`, two
        moments `4 + 4`, together `16`. Mixed precision: parameter `2`, gradient `2`, master copy
        `4`, two moments `4 + 4`, together `16` again, because the master copy costs what parameter
        and gradient save. `adamw_step` takes a step of the optimizer and returns its moments. The
        code compares these two recipes with four others:
    """)
    n = 1000  # @unnoticed: 1000: bytes of a number are the same for any count
    master = nn.Parameter(torch.randn(n))
    state = adamw_step(master)
    weights: BFloat16[Tensor, "n"] = master.detach().bfloat16()
    averages = state["exp_avg"], state["exp_avg_sq"]  # @unnoticed: 'exp_avg', 'exp_avg_sq': both are alike in size
    full = master.nbytes // n  # @inspect full as B
    half = weights.nbytes // n  # @inspect half as B
    moments = sum(m.nbytes for m in averages) // n  # @inspect moments as B
    thrifty = sum(m.bfloat16().nbytes for m in averages) // n  # @inspect thrifty as B
    recipes = {                     # parameter, gradient, master, moments
        "`float32` throughout": (full, full, 0, moments),
        "`bfloat16` and master": (half, half, full, moments),
        "the same, gradients in `float32`": (half, full, full, moments),
        "the same, moments in `bfloat16`": (half, half, full, thrifty),
        "`bfloat16`, moments in `float32`": (half, half, 0, moments),
        "`bfloat16` throughout": (half, half, 0, thrifty),
    }
    sums = [sum(parts) for parts in recipes.values()]  # @inspect sums as B
    assert sums == [16, 16, 18, 12, 12, 8], \
        "The six recipes take 16, 16, 18, 12, 12 and 8 bytes per parameter."
    rows = [f"| {name} | {' | '.join(map(str, p))} | {sum(p)} |" for name, p in recipes.items()]  # @hide
    note("Bytes per parameter of the six recipes:")
    note("| recipe | parameter | gradient | master | moments | sum |\n|---|---|---|---|---|---|\n"
         + "\n".join(rows))
    note(r"""
        Mixed precision brings speed instead, because matmuls in `bfloat16` are faster. A recipe
        without a master copy needs less memory, but loses small updates.
    """)
    question(r"""
        A recipe keeps parameter and gradient in `bfloat16`, a master copy in `float32`, and each of
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
            Parameter and gradient need `2` bytes each, the master copy `4`, the two moments `1`
            each: `2 + 2 + 4 + 1 + 1 = 10`.
        """)


def pooled_memory_needs_sharded_state() -> None:
    """Eight GPUs train a model eight times as large only if each keeps an eighth of it."""
    note(r"""
        Does the largest model grow in proportion to the number of GPUs? Only if it is cut into
        slices, one for each GPU. Training with AdamW in `float32` holds
        [`16` bytes](#adamw_keeps_four_numbers_per_parameter) per parameter: `4` each for the
        parameter, its gradient and two moments.

        First by hand. Take two tiny GPUs with room for `16` bytes each, and a model of `2`
        parameters. A full copy needs `2 * 16 = 32` bytes. It fits on neither GPU, although the two
        together have that much. Cut in two, the model fits: each GPU keeps one parameter with its
        gradient and moments. When a GPU needs the other parameter, it fetches a copy and drops the
        copy right after. (The memory for this copy is not counted here.)

        Now take eight H100s of `80` GB each [@nvidia-h100]. With a slice on every GPU the memories
        add up, because no parameter is kept twice: the largest model has `8 * 80e9 / 16`
        parameters. With a full copy on every GPU it has `80e9 / 16`:
    """)
    gpus, per_parameter = 8, 16
    memory = CARDS["H100 SXM"].memory  # @inspect memory as B
    pooled = memory * gpus // per_parameter  # @inspect pooled as parameters
    assert pooled == 40 * 10**9, \
        "With a slice on every GPU, eight H100s hold 40 billion parameters."
    replicated = memory // per_parameter  # @inspect replicated as parameters
    assert replicated == 5 * 10**9, \
        "With a full copy on every GPU, eight H100s hold 5 billion."
    note(r"""
        Plain *data parallelism* keeps full copies, because every GPU trains the whole model on its
        own part of the data. Cutting the state into slices is called *sharding* [@zero]. Try it
        with `8000` parameters: `chunk` cuts them into `8` slices, and `adamw_step` takes a step
        with each and returns its moments, `exp_avg` and `exp_avg_sq`. A slice of `8000 / 8 = 1000`
        parameters needs `16 * 1000` bytes. For each parameter of the whole model that is
        `16 * 1000 / 8000 = 2` bytes:
    """)
    slices = torch.randn(8000).chunk(gpus)
    owned = [nn.Parameter(s.clone()) for s in slices]
    states = [adamw_step(p) for p in owned]
    moments = [s["exp_avg"].nbytes + s["exp_avg_sq"].nbytes for s in states]
    held = [  # a gradient has the size of its parameter
        2 * p.nbytes + m for p, m in zip(owned, moments)
    ]  # @inspect held[0] as B
    assert sum(held) == 16 * 8000, \
        "Together, the slices take 16 bytes per parameter."  # @hide
    per_gpu = max(held) / 8000  # @inspect per_gpu as B
    assert per_gpu == 2.0, \
        "A slice takes an eighth of 16: 2 bytes for each parameter of the whole model."

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
        Without sharding the limit is {replicated / 1e9:.0f} billion, however many GPUs there are.
        With sharding, {pooled / 1e9:.0f} billion fill all memory, and nothing is left for the rest
        of training.
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
        A *batch* is a set of token sequences that pass through a model together. What memory grows
        with the batch? Parameters, gradients and moments do not: their number is the same for any
        batch. The *activations* do. They are the results of the forward pass that the backward pass
        needs, and they grow because every token has its own. *Autograd*, the part of PyTorch that
        computes gradients, keeps them.

        Take two layers of `64 * 64` weights. For each token, autograd keeps the output of the
        first, because the gradient of the second layer's weights is computed from it, and the
        output of the second, because the loss squares it. An output has `64` elements of `4` bytes.
        So a token needs `2 * 64 * 4 = 512` bytes, and a batch of `8` sequences of `16` tokens needs
        `8 * 16 * 512 = 65536`. `saved_bytes` runs the layers and adds up what autograd keeps:
    """)
    base = saved_bytes(batch=8, seq=16, width=64)  # @inspect base as B
    assert base == 2 * (8 * 16 * 64) * 4, \
        "Autograd keeps the outputs of the two layers."
    assert saved_bytes(16, 16, 64) == 2 * base, \
        "With 16 sequences, autograd keeps twice as much."
    assert saved_bytes(8, 32, 64) == 2 * base, \
        "With 32 tokens a sequence, autograd keeps twice as much."
    note("Compare that with the `2 * 64 * 64` weights, at `16` bytes each for the weight, its gradient and AdamW's two moments:")
    state = 16 * (2 * 64 * 64)  # @inspect state as B
    assert state / base == 2.0, \
        "With 8 sequences, weights, gradients and moments take twice as many bytes as the activations."
    assert saved_bytes(32, 16, 64) == 2 * state, \
        "With 32 sequences, the activations take twice as many bytes as weights, gradients and moments."
    batches = {
        f"{n} sequences": {"weights, gradients, moments": state / 1024, "activations": saved_bytes(n, 16, 64) / 1024}
        for n in (4, 8, 16, 32)
    }  # @hide
    figure(stacks(batches, "KiB"), caption=r"""
        Memory of the two layers in training, for four batches. The first part is the same in all;
        the activations double with the batch.
    """, alt="Four stacked bars. Activations are a quarter of the first part in the first bar, and twice as long in the last.")
    question(r"""
        With a batch of `8` sequences of `16` tokens, weights, gradients and moments (`16` bytes for
        each weight) take twice as many bytes as the activations. Now double the width to `128`: two
        layers of `128 * 128` weights, `128` elements for each token, the same batch. Divide the
        bytes of weights, gradients and moments by the bytes of the activations: what is the ratio
        now?
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


def the_roofline_tells_waiting_from_working() -> None:
    """The roofline: an operation that does few FLOPs per byte waits for memory."""
    note(r"""
        Why can a GPU be busy and yet reach only a fraction of its peak? Because its arithmetic
        units wait for data: every element first has to *move* from the GPU's memory to the units.

        First by hand. To generate one token, a model multiplies a single vector by each of its
        matrices. In `bfloat16` a weight has `2` bytes, and is used for `2` FLOPs, a multiplication
        and an addition: one FLOP per byte. An H100 does `989.5e12` FLOPs per second, and its memory
        delivers `3.35e12` bytes [@nvidia-h100]. So while one byte arrives, the GPU could do
        `989.5e12 / 3.35e12 = 295` FLOPs. It does one, and waits the rest of the time.

        Three terms describe this:

        - *bandwidth*: the bytes that memory moves in a second;
        - *intensity*: the FLOPs that an operation does for each byte that it moves;
        - *ridge*: the FLOPs that the GPU can do while one byte arrives, peak divided by bandwidth.

        Below the ridge an operation is *memory-bound*: it waits for memory, because its FLOPs are
        done before the next byte arrives. Above the ridge it is *compute-bound*: the arithmetic
        takes longer. An operation reaches at most this share of the peak [@roofline]:

        [@eq:roof]: $$
        \min\left(1, \frac{\mathrm{intensity}}{\mathrm{ridge}}\right)
        $$

        Plotted against the intensity, this share is a slope with a flat top, the *roofline*.

        Count it for a vector times a matrix of `8192 * 8192` weights. (On the device `meta` a
        tensor has a shape and no data, which is enough for counting.)
    """)
    rate = dense_peak("H100 SXM", "bfloat16")
    bandwidth = CARDS["H100 SXM"].bandwidth
    ridge = rate / bandwidth  # @inspect ridge as FLOP/B
    assert 295.3 < ridge < 295.4, "While one byte arrives, an H100 can do 295 FLOPs."  # @hide
    n = 8192
    with torch.device("meta"):
        x: Float[Tensor, "1 inner"] = torch.empty(1, n).bfloat16()
        w: Float[Tensor, "inner out"] = torch.empty(n, n).bfloat16()
    y = x @ w
    work = flops(lambda: x @ w)  # @inspect work as FLOP
    moved = x.nbytes + w.nbytes + y.nbytes  # @inspect moved as B
    per_byte = work / moved  # @inspect per_byte as FLOP/B
    assert 0.999 < per_byte < 1.0, "One token makes about one FLOP per byte."  # @hide
    assert per_byte == intensity(1, n, n), "The helper intensity computes the same from the three sides."  # @hide
    reachable = per_byte / ridge  # @inspect reachable as %
    assert 0.0033 < reachable < 0.0034, "One token reaches at most 0.34 % of the peak."  # @hide
    note(rf"""
        However good the code is, one token at a time reaches at most {reachable:.1%} of the peak.

        With more tokens at a time, each weight is still read once, but used for every token: with
        `8` tokens, a weight of `2` bytes is used for `16` FLOPs, `8` per byte. How many tokens does
        it take to reach the ridge? At one FLOP per byte and token, about {ridge:.0f}, and a few
        more, because vectors and results move as well. `intensity` computes the FLOPs per byte of a
        matmul from its three dimensions, with all bytes that move:
    """)
    tokens = next(m for m in range(1, n) if intensity(m, n, n) > ridge)  # @inspect tokens
    assert tokens == 319, \
        "With 319 tokens at a time, the matmul no longer waits for memory."
    note("The picture shows this matmul for several numbers of tokens:")
    shapes = {"one token": per_byte}
    shapes |= {f"{m} tokens": intensity(m, n, n) for m in (64, 4096)}  # @unnoticed: arguments swapped: the formula is the same in its three sizes
    reached = {s: min(1, i / ridge) for s, i in shapes.items()}  # @inspect reached as %
    assert 0.21 < reached["64 tokens"] < 0.22, "With 64 tokens at a time, the matmul reaches at most 21 % of the peak."  # @hide
    assert reached["4096 tokens"] == 1, \
        "With 4096 tokens at a time, the matmul can reach the peak."
    waiting = [name for name, part in reached.items() if part < 1]  # @hide
    figure(plot_roofline(rate, bandwidth, shapes), caption=r"""
        The roofline of an H100 SXM in dense bfloat16: the highest rate for each intensity. On the
        slope an operation is memory-bound. On the flat roof it is compute-bound and can reach the
        peak.
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
        caption="Both times of a matmul with a matrix of `8192` by `8192` in bfloat16: moving its bytes, and doing its FLOPs.",
        alt="Two lines over the number of tokens: moving bytes, flat at first, and arithmetic, which crosses it.")  # @hide
    few, many = grid[256, "H100 SXM"], grid[512, "H100 SXM"]  # @hide
    assert few["moving bytes"] > few["arithmetic"], "With 256 tokens, moving bytes takes longer."  # @hide
    assert many["moving bytes"] < many["arithmetic"], "With 512 tokens, arithmetic takes longer."  # @hide
    card = CARDS["A100 SXM 80GB"]  # @hide
    older = dense_peak(card.name, "bfloat16")  # @hide
    question(rf"""
        An A100 has a peak of `{older / TERA:.0f}e12` FLOP/s in `bfloat16` and moves
        `{card.bandwidth / TERA:.3f}e12` B/s. How many FLOPs per byte does an operation need on this
        GPU to stop waiting for memory?
    """, answer=older / card.bandwidth,
        wrong={
            "That is the ridge of the H100.": ridge,
            "That is bytes per FLOP, not FLOPs per byte.": card.bandwidth / older,
        },
        check=312e12 / 2.039e12,
        hint="How many FLOPs can the GPU do while one byte arrives?", unit="FLOP/B", within=0.02, why=r"""
            An operation stops waiting at the ridge, which is peak divided by bandwidth:
            `312e12 / 2.039e12`. The GPU can do this number of FLOPs while one byte arrives.
        """)
