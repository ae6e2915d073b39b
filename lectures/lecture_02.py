"""Lecture 02: PyTorch and resource accounting."""
import inspect
import io
import itertools
import json
import math
import os
import random
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key, partial
from importlib import metadata
from inspect import signature
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import Rearrange
from hardware import CARDS, Card, find, how_to_add, peak
from jaxtyping import BFloat16, Bool, Float, Int, UInt8, jaxtyped
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from timing import Timing, beyond_cache, time_call
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from litbook import figure, link, misbelief, note, question, requires

KiB, MiB, GiB = 2**10, 2**20, 2**30
GB = 10**9
TERA = 10**12
DAY = 24 * 60 * 60
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
FORMATS = (torch.float32, torch.float16, torch.bfloat16, E4M3, E5M2)
GREY, BLUE, RED, GREEN, GOLD = "#6b7280", "#3949ab", "#b3421f", "#16794c", "#b98518"
block_diag: Callable[..., Tensor] = torch.block_diag  # typed here; torch leaves it untyped


def main() -> None:
    note(
        "Training a language model spends resources that can be counted before anything is "
        "switched on. This lecture counts them. The numbers below come out of the lines "
        "beside them, or carry their source; a line with a tick is a claim, and would have "
        "stopped the build had it failed."
    )
    note(
        "The chapter follows, and checks, lecture 2 of Stanford's CS336, *Language Modeling from "
        "Scratch*, in its edition of 2025 [@cs336]. Its number, its order and many of its "
        "examples are that lecture's. The course publishes its code together with what the code "
        "printed, and only for that reason can a reader check it line by line."
    )
    note(
        "You need Python and a little linear algebra; PyTorch is explained where it is used. "
        "Each section stands alone: a thesis, a few lines that test it, a question at the end."
    )
    note("**The estimate.** How long will it take, and will it fit? First on a napkin:")
    napkin_math()
    note("**Memory.** What a number costs, what it can hold, and when two tensors are one memory:")
    tensors()
    number_formats()
    tensors_on_a_gpu()
    storage_and_views()
    note("**Compute.** What is done with tensors, what it costs, how much of a promise arrives:")
    elementwise()
    matmul_and_named_axes()
    counting_flops()
    peaks_and_mfu()
    note("**A training step.** Its pieces one by one, and then the bill for all of them:")
    gradients()
    parameters()
    data_and_randomness()
    optimizers()
    the_bill_of_a_step()
    note("**A training run.** Steps repeated, interrupted, resumed, and done in fewer bits:")
    training()
    checkpoints()
    mixed_precision()
    summary()


# --- helpers


def same_storage(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors read the same block of memory."""
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


def message_of(call: Callable[[], object]) -> str:
    """'ErrorType: message' of the exception that the call raises, '' if it raises none."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def flops_by_operation(call: Callable[[], object]) -> dict[str, int]:
    """FLOPs that PyTorch's counter attributes to each operation of the call."""
    with FlopCounterMode(display=False) as counter:
        call()
    counts = counter.get_flop_counts().get("Global", {})
    return {str(operation): count for operation, count in counts.items()}


def flops(call: Callable[[], object]) -> int:
    """All FLOPs that PyTorch's counter sees in the call."""
    return sum(flops_by_operation(call).values())


def whole_numbers(*shape: int) -> Tensor:
    """Random whole numbers held as float32: their sums and products are exact."""
    return torch.randint(-9, 10, shape).float()


def free_bytes() -> int:
    """Bytes of the card's memory that this program can still get, PyTorch's cache included."""
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def scaled(size: int, needed: Callable[[int], int]) -> int:
    """`size`, halved until the bytes that it needs fit into the card's free memory."""
    free = free_bytes()
    while size > 1 and needed(size) > free:
        size //= 2
    return size


def shrunk(size: int, asked: int) -> str:
    """What a note adds where a card was too small for the size that was asked for."""
    if size == asked:
        return ""
    return f" This card has room for `{size}` only, not for `{asked}`."


def narrow_format() -> torch.dtype:
    """`bfloat16`, or `float16` on a card whose matrix units have no other."""
    modern = torch.cuda.get_device_capability() >= (8, 0)
    return torch.bfloat16 if modern else torch.float16


# --- napkin math


def napkin_math() -> None:
    """Napkin math."""
    note(
        "A training run that will keep a building full of GPUs busy for months fits into a "
        "few multiplications. The arithmetic is the easy part. What decides whether the "
        "answer is right is which peak rate goes in, and whose memory is being counted."
    )
    flops_are_work_and_flops_per_second_a_rate()
    a_training_run_in_three_lines()
    the_rule_leaves_attention_out()
    the_promise_is_printed_twice_too_large()
    days_are_inverse_to_mfu()
    adamw_keeps_four_numbers_per_parameter()
    adamw_follows_the_dtype_it_is_given()
    a_master_copy_eats_what_it_saves()
    pooled_memory_needs_sharded_state()
    activations_grow_with_the_batch()
    bandwidth_is_the_third_resource()


def flops_are_work_and_flops_per_second_a_rate() -> None:
    """FLOPs count work; FLOP/s is a rate."""
    note(
        "A *FLOP* is one floating-point operation: an addition or a multiplication. Each "
        "entry of a matrix product is a sum of products, one multiplication and one addition "
        "per term, so the count is twice the product of the three lengths."
    )
    note(
        "To read the code: `Float[Tensor, \"row inner\"]` states the dtype of a tensor and names "
        "its axes, and a run has checked that the tensor fits. `flops` runs a call and returns "
        "what PyTorch's own counter saw. Helpers like it are defined in the lecture, too."
    )
    a: Float[Tensor, "row inner"] = torch.randn(2, 3)
    b: Float[Tensor, "inner col"] = torch.randn(3, 4)
    once = flops(lambda: a @ b)                                 # @inspect once as FLOP
    assert once == 2 * 2 * 3 * 4, "multiply and add, per term"
    twice = flops(lambda: (a @ b, a @ b))                       # @inspect twice as FLOP
    assert twice == 48 + 48, "doing it again doubles the work"
    note("A machine that takes twice as long for twice the work has not become faster:")
    seconds = 1e-6
    assert twice / (2 * seconds) == once / seconds, "the rate is unchanged"
    misbelief(
        "Compute is measured in FLOPS.",
        "The capital S is read as a plural by some and as *per second* by others. This book "
        "writes FLOPs for an amount of work and FLOP/s for a speed; dividing the first by "
        "the second gives seconds.",
    )
    side = torch.empty(1000, 1000, device="meta")  # @hide
    question(
        "A machine sustains `1e12` FLOP/s. How long does it take to multiply "
        "two square matrices of side `1000`?",
        answer=flops(lambda: side @ side) / 1e12, unit="s",
    )


def a_training_run_in_three_lines() -> None:
    """Parameters, tokens and a peak rate give the length of a training run."""
    note(
        "How long do `1024` H100s need to train `70` billion parameters on `15` trillion tokens? "
        "The forward pass computes the prediction, the backward pass the gradients. Together "
        "they spend about `6` FLOPs per parameter and token [@kaplan2020]."
    )
    params, tokens, gpus = 70 * 10**9, 15 * 10**12, 1024
    work = 6 * params * tokens                                  # @inspect work as FLOP
    assert work == 63 * 10**23, "6.3e24 FLOPs"
    note(
        "An H100 is sold on several boards; SXM names the fastest. For ordinary (*dense*) "
        "matrices of `bfloat16`, a number format of half the usual width, its datasheet promises "
        "a rate [@nvidia-h100]."
    )
    note(
        "*Model FLOPs utilization*, MFU, is the fraction of that promise that useful work "
        "really gets. Take one half; it is an assumption, and an optimistic one for a run of "
        "this size."
    )
    rate = peak(CARDS["H100 SXM"], "bfloat16")                  # @inspect rate as FLOP/s
    assert rate == 1979e12 / 2, "dense, bfloat16, SXM"
    mfu = 0.5
    per_day = rate * mfu * gpus * DAY                           # @inspect per_day as FLOP
    assert 4.377e22 < per_day < 4.378e22, "delivered in one day"
    days = work / per_day                                       # @inspect days as days
    assert 143.92 < days < 143.93, "on these assumptions"
    note(
        f"So: **{days:.0f} days**, *if* the peak is the dense one, the MFU {mfu}, and no "
        "machine fails. An estimate is worth as much as the conditions printed next to it."
    )
    question(
        "The same run has to end within `30` days, at the same MFU. How many "
        "GPUs does it take?",
        answer=math.ceil(work / (rate * mfu * DAY * 30)), unit="GPUs",
    )


def the_rule_leaves_attention_out() -> None:
    """Six FLOPs per parameter and token leave out what attention does."""
    note(
        "The rule counts multiplications by parameters. Attention also multiplies "
        "activations by activations: about $12\\,L\\,d\\,T$ further FLOPs per token for $L$ "
        "layers of width $d$ and a context of $T$ tokens. For the published `70B` model of "
        "the Llama 3 family, `80` layers of width `8192`, trained on `8192` tokens at a time "
        "[@llama3], that is not nothing:"
    )
    layers, width, context = 80, 8192, 8192
    attention = 12 * layers * width * context                   # @inspect attention as FLOP
    by_rule = 6 * 70 * 10**9                                    # @inspect by_rule as FLOP
    share = attention / by_rule                                 # @inspect share as %
    assert 0.153 < share < 0.154, "left out, relative to counted"
    short = 12 * layers * width * 1024 / by_rule                # @inspect short as %
    assert share / short == 8.0, "proportional to the context"
    note(
        f"At this context the rule is {share:.0%} short; at an eighth of it, {short:.0%}. Half "
        "of these FLOPs let a token look at *later* tokens. A language model throws their results "
        "away, and code that skips them saves that half."
    )
    question(
        "At about which context does attention cost this model as much as "
        "everything that the rule counts?",
        answer=round(by_rule / (12 * layers * width)), unit="tokens",
    )


def the_promise_is_printed_twice_too_large() -> None:
    """The large number on the datasheet is for matrices that are half zeros."""
    note(
        "The rate in large type has a footnote, *with sparsity*: two of every four weights must "
        "be zero. Training does not offer that, so halve it."
    )
    dense = peak(CARDS["H100 SXM"], "bfloat16")                 # @inspect dense as FLOP/s
    assert dense == 989.5e12, "what a dense product can reach"
    sparse = dense * CARDS["H100 SXM"].sparse_factor            # @inspect sparse as FLOP/s
    assert sparse == 1979e12, "the number in large type"
    note(
        "The rate can be rebuilt from the chip [@nvidia-hopper]: `132` multiprocessors, each "
        "completing `4096` dense half-precision FLOPs per clock tick, at `1.83` GHz under "
        "such load."
    )
    rebuilt = 132 * 4096 * 1.83e9                               # @inspect rebuilt as FLOP/s
    assert 0.9998 < rebuilt / dense < 1.0, "same number, other road"
    misbelief(
        f"An H100 does {sparse / TERA:.0f} TFLOP/s in bfloat16.",
        "Only when two of every four weights are zero [@nvidia-hopper]. A dense product has "
        f"{dense / TERA:.1f} to aim for; with the other number in the denominator, every MFU "
        "comes out half as good as it is.",
    )
    note("Nor is every card called H100 the same card [@nvidia-h100-pcie]:")
    pcie = peak(CARDS["H100 PCIe"], "bfloat16")                 # @inspect pcie as FLOP/s
    nvl = peak(CARDS["H100 NVL"], "bfloat16")                   # @inspect nvl as FLOP/s
    assert (pcie, nvl) == (756.5e12, 835.5e12), "PCIe and NVL promise less"
    question(
        "The datasheet of the L4 prints `242` TFLOP/s for `bfloat16`, with "
        "sparsity [@nvidia-l4]. A dense product runs there at `91` TFLOP/s. "
        "What share of the peak is that?",
        answer=91 / (242 / 2), unit="%",
    )


def days_are_inverse_to_mfu() -> None:
    """One wrong factor moves the answer by months."""
    note(
        "The same run again, with both assumptions as variables. For its largest model the "
        "Llama 3 report states an MFU between `0.38` and `0.43` [@llama3]; one half is a "
        "hope. Vary such assumptions before quoting an estimate."
    )
    work, gpus = 6 * 70 * 10**9 * 15 * 10**12, 1024
    dense, pcie = 989.5e12, 756.5e12

    def days(rate: float, mfu: float) -> float:
        return work / (rate * mfu * gpus * DAY)

    assumed = days(dense, 0.5)                                  # @inspect assumed as days
    assert 143.92 < assumed < 143.93, "the estimate so far"
    modest = days(dense, 0.4)                                   # @inspect modest as days
    assert 179.9 < modest < 180.0, "a fifth less MFU"
    mistaken = days(2 * dense, 0.5)                             # @inspect mistaken as days
    assert 71.96 < mistaken < 71.97, "the sparse peak, by mistake"
    cards = days(pcie, 0.5)                                     # @inspect cards as days
    assert 188.2 < cards < 188.3, "PCIe cards instead of SXM"
    note(
        f"Dropping the MFU to `0.4` costs {modest - assumed:.0f} days. Reading the wrong line "
        f"of the datasheet *saves* {assumed - mistaken:.0f} on paper, and none in the "
        "building."
    )
    figure(
        days_figure(days, [pcie, dense, 2 * dense]),
        caption="Days for the same run against the MFU assumed. The dot is the estimate above. The "
        "lower the MFU, the more days each further loss costs.",
        alt="Three falling curves of days against MFU. The one for the sparse peak runs at "
        "half the height of the one for the dense peak, the PCIe card's above both. A dot "
        "marks the dense estimate at an MFU of one half.",
    )
    question(
        "Suppose the run took `160` days on the SXM cards, without a failure. "
        "Which MFU did it reach?",
        answer=round(days(dense, 1.0) / 160, 2),
    )


def adamw_step(parameter: Tensor) -> dict[str, Tensor]:
    """Take one AdamW step on a random gradient; return the optimizer's state for the parameter."""
    parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW([parameter])
    optimizer.step()
    return dict(optimizer.state[parameter])


def adamw_keeps_four_numbers_per_parameter() -> None:
    """In float32, AdamW training holds four numbers for every parameter."""
    note(
        "AdamW, the optimizer in these estimates, keeps more than the parameter and its "
        "gradient: two *moments*, running averages of the gradient and of its square, as "
        "introduced by Adam [@kingma2015]. PyTorch names them `exp_avg` and `exp_avg_sq`. Take a "
        "real step and weigh what is left."
    )
    p = nn.Parameter(torch.randn(1000))
    state = adamw_step(p)                                       # @inspect sorted(state)
    assert p.grad is not None, "the gradient is kept"
    moments = state["exp_avg"].nbytes + state["exp_avg_sq"].nbytes
    held = p.nbytes + p.grad.nbytes + moments                   # @inspect held as B
    per_parameter = held / p.numel()                            # @inspect per_parameter as B
    assert per_parameter == 4 + 4 + (4 + 4), "parameter, gradient, moments"
    assert state["step"].nbytes == 4, "plus one counter per tensor"
    note("Turned around, a card of a given size bounds the model that can be trained on it:")
    limit = CARDS["H100 SXM"].memory / per_parameter            # @inspect limit as parameters
    assert limit == 5 * 10**9, "an upper bound, not an estimate"
    note(
        f"Not even {limit / 1e9:.0f} billion parameters fit into "
        f"{CARDS['H100 SXM'].memory / GB:.0f} GB [@nvidia-h100], because activations, "
        "temporaries and fragmentation have not been given a byte yet."
    )
    question(
        "Another optimizer keeps one moment instead of two, also in "
        "`float32`. How many parameters can it train at most on a card of "
        "`24` GB?",
        answer=24 * GB // (p.nbytes * 3 // p.numel()), unit="parameters",
    )


def adamw_follows_the_dtype_it_is_given() -> None:
    """A bfloat16 model gets bfloat16 moments, and no master copy."""
    note(
        "Those bytes per parameter are no constant of the optimizer. Give it parameters in "
        "`bfloat16`, and the moments shrink with them:"
    )
    n = 1000
    p = nn.Parameter(torch.randn(n, dtype=torch.bfloat16))
    state = adamw_step(p)
    assert state["exp_avg"].dtype == torch.bfloat16, "as the parameter"
    kept = sorted(state)                                        # @inspect kept
    assert kept == ["exp_avg", "exp_avg_sq", "step"], "no float32 copy"
    moments = state["exp_avg"].nbytes + state["exp_avg_sq"].nbytes
    per_parameter = (2 * p.nbytes + moments) / n                # @inspect per_parameter as B
    assert per_parameter == 2 + 2 + (2 + 2), "half of the float32 model"
    misbelief(
        f"AdamW costs {2 * per_parameter:.0f} bytes per parameter.",
        "With float32 everywhere, yes. Call `model.bfloat16()` first and it is "
        f"{per_parameter:.0f}: `torch.optim.AdamW` stores its state in the dtype of the "
        "parameter and never makes a float32 copy by itself. What that thrift does to small "
        "updates is shown under number formats.",
    )
    p64 = nn.Parameter(torch.randn(n).double())  # @hide
    state = adamw_step(p64)  # @hide
    question(
        "Someone calls `model.double()` first, which makes every parameter "
        "`float64`. How many bytes per parameter does training with AdamW "
        "hold then?",
        answer=(2 * p64.nbytes + sum(state[m].nbytes for m in kept[:2])) / n,
        unit="B",
    )


def a_master_copy_eats_what_it_saves() -> None:
    """Half-width weights with a full-width master copy save no memory."""
    note(
        "Mixed-precision recipes keep a `float32` *master copy* of the weights for the "
        "optimizer and let the model compute with a narrow copy of it [@micikevicius2018]. It "
        "sounds like a saving. Weigh the pieces, here with `bfloat16` as the narrow format, and "
        "add them up in every combination in use."
    )
    n = 1000
    master = nn.Parameter(torch.randn(n))
    state = adamw_step(master)
    weights: BFloat16[Tensor, "n"] = master.detach().bfloat16()
    averages = state["exp_avg"], state["exp_avg_sq"]
    full = master.nbytes // n                                   # @inspect full as B
    half = weights.nbytes // n                                  # @inspect half as B
    moments = sum(m.nbytes for m in averages) // n              # @inspect moments as B
    thrifty = sum(m.bfloat16().nbytes for m in averages) // n   # @inspect thrifty as B
    recipes = {                     # parameter, gradient, master, moments
        "`float32` throughout": (full, full, 0, moments),
        "`bfloat16` and master": (half, half, full, moments),
        "the same, gradients in `float32`": (half, full, full, moments),
        "the same, moments in `bfloat16`": (half, half, full, thrifty),
        "`bfloat16`, moments in `float32`": (half, half, 0, moments),
        "`bfloat16` throughout": (half, half, 0, thrifty),
    }
    sums = [sum(parts) for parts in recipes.values()]           # @inspect sums as B
    assert sums == [16, 16, 18, 12, 12, 8], "bytes per parameter"
    line = "| {} | {} | {} | {} | {} | {} |"  # @hide
    rows = [line.format(name, *p, sum(p)) for name, p in recipes.items()]  # @hide
    note(
        "Bytes per parameter:\n\n"
        "| recipe | parameter | gradient | master | moments | sum |\n"
        "|---|---|---|---|---|---|\n" + "\n".join(rows)
    )
    note(
        "The first two sums agree because the master copy takes back exactly what the narrow "
        "parameter and gradient gave, as long as the moments stay wide. What the mixed "
        "recipe buys is speed: faster arithmetic units, and half the bytes to read for each "
        "weight. How much speed depends on the card and has to be measured on it."
    )
    bare = sums[4]                                              # @inspect bare as B
    pool = 8 * CARDS["H100 SXM"].memory                         # @inspect pool as B
    most = pool // bare                                         # @inspect most as parameters
    assert most == 53_333_333_333, "on eight cards, if all is sharded"
    note(
        "Without a master copy, but with wide moments, eight H100s reach "
        f"{most / 1e9:.0f} billion parameters: so counts CS336 in its edition of 2026 "
        "[@cs336-2026]. `torch.optim.AdamW`, as shown, does not do this by itself. What it gives "
        "up is small steps. An update below the spacing of `bfloat16` leaves the weight [where it "
        "was](#small_updates_are_lost), however precisely it was computed."
    )
    question(
        "Parameter and gradient in `bfloat16`, a `float32` master copy, and "
        "each moment squeezed into a single byte. How many bytes per "
        "parameter?",
        answer=half + half + full + 2 * torch.uint8.itemsize, unit="B",
    )


def pooled_memory_needs_sharded_state() -> None:
    """Eight GPUs hold an eightfold model only if each keeps an eighth of it."""
    note(
        "On the invoice, the memories of eight GPUs add up. Whether they add up for one model is "
        "another question. Two readings of the same hardware:"
    )
    gpus, per_parameter = 8, 16
    memory = CARDS["H100 SXM"].memory                           # @inspect memory as B
    pooled = memory * gpus // per_parameter                     # @inspect pooled as parameters
    assert pooled == 40 * 10**9, "all memory as one pool"
    replicated = memory // per_parameter                        # @inspect replicated as parameters
    assert replicated == 5 * 10**9, "a full copy on every GPU"
    note(
        "Which of the two holds is decided by the software. Plain data parallelism copies "
        "everything to every GPU. Sharding, as in ZeRO stage 3 and PyTorch's FSDP, gives "
        "each GPU a slice of parameters, gradients and moments to own [@zero]. In miniature, "
        "with a real optimizer for every slice:"
    )
    slices = torch.randn(8000).chunk(gpus)
    owned = [nn.Parameter(s.clone()) for s in slices]
    states = [adamw_step(p) for p in owned]
    moments = [s["exp_avg"].nbytes + s["exp_avg_sq"].nbytes for s in states]
    held = [2 * p.nbytes + m for p, m in zip(owned, moments)]   # @inspect held[0] as B
    assert sum(held) == 16 * 8000, "together they hold it once"
    per_gpu = max(held) / 8000                                  # @inspect per_gpu as B
    assert per_gpu == 2.0, "per parameter, on each GPU"
    misbelief(
        f"{gpus} H100s can train a model of {pooled / 1e9:.0f} billion parameters.",
        "The pool could hold its state, and nothing else. Without sharding the limit stays "
        f"{replicated / 1e9:.0f} billion, however many GPUs there are; with it, "
        f"{pooled / 1e9:.0f} billion is a ceiling that activations, temporaries and "
        "fragmentation push down.",
    )
    question(
        "A gentler kind of sharding splits only the moments over the `8` "
        "GPUs; every GPU keeps all parameters and gradients. How many bytes "
        "per parameter does each GPU hold in `float32`?",
        answer=4 + 4 + sum(moments) / 8000 / gpus, unit="B",
    )


def saved_bytes(batch: int, seq: int, width: int) -> int:
    """Bytes of activations that autograd keeps for a small network of two linear layers."""
    weights = [torch.randn(width, width).requires_grad_() for _ in "ab"]
    x = torch.randn(batch, seq, width)
    kept: dict[int, int] = {}

    def keep(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with saved_tensors_hooks(keep, lambda t: t):
        loss = (x @ weights[0] @ weights[1]).square().mean()
    loss.backward()
    given = {t.untyped_storage().data_ptr() for t in (x, *weights)}
    return sum(size for place, size in kept.items() if place not in given)


def activations_grow_with_the_batch() -> None:
    """Activations are the part of the bill that the batch decides."""
    note(
        "The backward pass needs values that the forward pass computed, the *activations*. "
        "*Autograd*, the part of PyTorch that computes gradients, keeps them, and lets us watch "
        "each one being saved."
    )
    note(
        "For two layers without bias, with the input and the weights not counted, two tensors "
        "of batch × sequence × width remain: the output of either layer."
    )
    base = saved_bytes(batch=8, seq=16, width=64)               # @inspect base as B
    assert base == 2 * (8 * 16 * 64) * 4, "two hidden tensors in float32"
    assert saved_bytes(16, 16, 64) == 2 * base, "twice the batch"
    assert saved_bytes(8, 32, 64) == 2 * base, "twice the sequence"
    state = 16 * (2 * 64 * 64)                                  # @inspect state as B
    assert state / base == 2.0, "the optimizer's bill, in activations"
    assert saved_bytes(32, 16, 64) == 2 * state, "at four times the batch"
    note(
        "At a batch of `8` the activations are half of what weights, gradients and moments "
        "take; at `32` they are twice as much, and the optimizer's bill has not moved. So bytes "
        "per parameter give a bound and never an estimate. Real layers save more than these "
        "two: nonlinearities, normalizations and attention keep tensors of their own."
    )
    question(
        "Weights, gradients and moments took twice the bytes of the "
        "activations at first. Double the width, and keep batch and sequence: "
        "what is that factor now?",
        answer=16 * (2 * 128 * 128) / saved_bytes(8, 16, 128),
    )


def bandwidth_is_the_third_resource() -> None:
    """Memory and compute do not explain an idle GPU; bandwidth does."""
    note(
        "Two resources are usually counted: bytes that have to fit and FLOPs that have to be "
        "done. Count a third, the bytes per second between memory and the arithmetic units. "
        "Leave it out, and an MFU below one has no visible cause. For an H100 SXM "
        "[@nvidia-h100]:"
    )
    rate = peak(CARDS["H100 SXM"], "bfloat16")                  # @inspect rate as FLOP/s
    assert rate == 989.5e12, "dense bfloat16"
    balance = rate / CARDS["H100 SXM"].bandwidth                # @inspect balance as FLOP/B
    assert 295.3 < balance < 295.4, "FLOPs to do per byte moved"
    note(
        "Work that does fewer FLOPs per byte than this waits for memory: the *roofline* "
        "[@roofline]. A matrix times a single vector, the heart of generating text for one "
        "reader, uses every weight once. (A tensor on the device `meta` has a shape and no data, "
        "which is enough for counting.)"
    )
    with torch.device("meta"):
        w: Float[Tensor, "out inner"] = torch.empty(4096, 4096).bfloat16()
        x: Float[Tensor, "inner one"] = torch.empty(4096, 1).bfloat16()
    y = w @ x
    work = flops(lambda: w @ x)                                 # @inspect work as FLOP
    moved = w.nbytes + x.nbytes + y.nbytes                      # @inspect moved as B
    per_byte = work / moved                                     # @inspect per_byte as FLOP/B
    assert 0.999 < per_byte < 1.0, "one FLOP per byte"
    reachable = per_byte / balance                              # @inspect reachable as %
    assert 0.0033 < reachable < 0.0034, "of the promised rate, at best"
    note(
        f"At most {reachable:.1%} of the peak, and no better code can help. Only more FLOPs "
        "per byte can."
    )
    question(
        "Several readers can share one pass over `w` if their vectors are the "
        "columns of one matrix. Count only the bytes of `w`: with how many "
        "columns does an H100 SXM stop waiting for memory?",
        answer=math.ceil(balance), unit="columns",
    )


# --- tensors


def tensors() -> None:
    """Tensors."""
    note(
        "Parameters, gradients, optimizer state, activations, data: in PyTorch all of it is "
        "tensors. So the memory of a training run is the memory of its tensors, and that can "
        "be read off, with one trap: two tensors may be looking at the same bytes."
    )
    one_decimal_point_decides_the_dtype()
    four_ways_to_make_a_tensor()
    randn_draws_from_the_standard_normal()
    truncation_narrows_the_spread()
    most_tensors_hold_floats()
    a_fresh_tensor_costs_count_times_width()
    a_tensor_can_be_weighed_without_memory()
    a_view_can_hold_more_or_less_than_it_reports()


def one_decimal_point_decides_the_dtype() -> None:
    """One decimal point turns a whole tensor into floats."""
    note(
        "`torch.tensor` takes nested lists. All elements of a tensor share one type, its *dtype*, "
        "and the numbers in the lists decide which:"
    )
    m: Float[Tensor, "row col"] = torch.tensor([[1.0, 2, 3], [4, 5, 6]])  # @inspect m
    assert m.shape == (2, 3), "two rows, three columns"
    assert m.dtype == torch.float32, "one float literal is enough"
    whole: Int[Tensor, "n"] = torch.tensor([1, 4, 9])           # @inspect whole
    assert whole.dtype == torch.int64, "integers stay integers"
    note("A forgotten point shows up late, at the first operation that only floats have:")
    refused = message_of(lambda: whole.requires_grad_())        # @inspect refused
    assert "floating point" in refused, "integers have no gradient"
    lists = [3, 4], [3, 4.], [1e3, 1], [10**3, 1]  # @hide
    candidates = [torch.tensor(numbers) for numbers in lists]  # @hide
    question(
        "How many of these accept `requires_grad_()`: `torch.tensor([3, 4])`, "
        "`torch.tensor([3, 4.])`, `torch.tensor([1e3, 1])`, "
        "`torch.tensor([10**3, 1])`?",
        answer=sum(message_of(t.requires_grad_) == "" for t in candidates),
    )


def four_ways_to_make_a_tensor() -> None:
    """Zeros, ones, noise, or whatever was there."""
    note("Four functions make a tensor from nothing but a shape. They differ in what is in it.")
    makers = (torch.zeros, torch.ones, torch.randn, torch.empty)
    shapes = [tuple(make(4, 8).shape) for make in makers]       # @inspect shapes
    assert shapes == [(4, 8)] * 4, "same shape from each"
    assert torch.ones(4, 8).sum() == 32, "each of them one"
    note(
        "`empty` promises a shape and nothing else. On a fresh page of memory it often "
        "*shows* zeros, which is luck. PyTorch's deterministic mode rules luck out: it fills "
        "the tensor with NaN, so that code which reads before it writes is found out."
    )
    torch.use_deterministic_algorithms(True)
    unwritten = torch.empty(4, 8)                               # @inspect unwritten
    torch.use_deterministic_algorithms(False)
    assert unwritten.isnan().sum() == 32, "nothing was promised"
    question(
        "Deterministic mode is on. In a fresh `torch.empty(4, 8)` every "
        "element but one is set to `1`. What is the sum of the tensor?",
        answer=torch.cat([torch.ones(31), unwritten[0, :1]]).sum().item(),
    )


def randn_draws_from_the_standard_normal() -> None:
    """`randn` draws independent samples with mean zero and spread one."""
    note(
        "The *spread* is the standard deviation, `std`, or *deviation* for short. The draws come "
        "from the normal distribution, which puts a known share of them within one deviation of "
        "its mean."
    )
    x = torch.randn(10**6)                                      # @inspect x
    mean = abs(round(x.mean().item(), 2))                       # @inspect mean
    std = round(x.std().item(), 2)                              # @inspect std
    assert (mean, std) == (0.0, 1.0), "to two digits"
    pairs = torch.stack([x[:-1], x[1:]])
    correlation = abs(round(pairs.corrcoef()[0, 1].item(), 2))  # @inspect correlation
    assert correlation == 0.0, "no draw predicts the next"
    inside = (x.abs() < 1).double().mean().item()               # @inspect inside
    theory = math.erf(1 / math.sqrt(2))                         # @inspect theory
    assert 0.995 < inside / theory < 1.005, "as many as there should be"
    y = 3 + 2 * x  # @hide
    question(
        "What share of the entries of `3 + 2 * torch.randn(10**6)` lies "
        "between `1` and `5`?",
        answer=round(((y > 1) & (y < 5)).double().mean().item(), 2), unit="%",
    )


def truncation_narrows_the_spread() -> None:
    """Cutting off the tails shrinks the deviation below the one asked for."""
    note(
        "A usual way to initialize weights: allocate without writing, then fill in place. "
        "The trailing underscore marks an operation that overwrites its argument."
    )
    x = torch.empty(10**6)
    y = nn.init.trunc_normal_(x, mean=0, std=1, a=-2, b=2)      # @inspect x
    assert y is x, "filled in place"
    assert x.abs().max() <= 2, "the tails are gone"
    note("Without its tails a distribution is narrower. By how much, theory can tell:")
    std = x.std().item()                                        # @inspect std
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    theory = math.sqrt(1 - 4 * density / math.erf(math.sqrt(2)))  # @inspect theory
    assert 0.8796 < theory < 0.8797, "for bounds of two deviations"
    assert 0.997 < std / theory < 1.003, "a million draws agree"
    note(
        f"Asked for a standard deviation of one, it delivers {std:.2f}. The argument names "
        "the normal *before* the cut."
    )
    question(
        "The weights should *end up* with a deviation of `0.02`, after a cut "
        "at twice the `std` that you ask for. Which `std` is that?",
        answer=round(0.02 / theory, 4),
    )


def most_tensors_hold_floats() -> None:
    """Nearly all bytes are floats; indices and masks are not."""
    note(
        "A language model gets integers, the *token ids*. It looks each of them up in a table of "
        "vectors, and from there on everything that it learns or computes is floats."
    )
    table = nn.Embedding(100, 4)
    tokens: Int[Tensor, "seq"] = torch.tensor([7, 42, 99])      # @inspect tokens
    activations: Float[Tensor, "seq dim"] = table(tokens)       # @inspect activations
    mask: Bool[Tensor, "query key"] = torch.ones(3, 3).tril().bool()  # @inspect mask
    activations.sum().backward()
    moment = adamw_step(table.weight)["exp_avg"]
    floats = [table.weight, table.weight.grad, moment, activations]
    kinds = {t.dtype for t in floats if t is not None}          # @inspect kinds
    assert kinds == {torch.float32}, "parameters to activations"
    assert tokens.dtype == torch.int64, "token ids are integers"
    assert mask.dtype == torch.bool, "a mask is a yes or no"
    widths = tokens.element_size(), mask.element_size()         # @inspect widths
    assert widths == (8, 1), "bytes per id, bytes per yes or no"
    ids = torch.arange(1024)  # @hide
    mask_bytes = torch.ones(1024, 1024, dtype=torch.bool).nbytes  # @hide
    question(
        "A sequence of `1024` token ids comes with a causal mask, a yes or no "
        "for each pair of tokens. How many times the bytes of the ids does "
        "the mask take?",
        answer=mask_bytes // ids.nbytes, unit="times",
    )


def a_fresh_tensor_costs_count_times_width() -> None:
    """A fresh tensor costs its element count times its element width."""
    note("The arithmetic, and beside it what was really allocated, the *storage*:")
    x: Float[Tensor, "row col"] = torch.zeros(4, 8)             # @inspect x
    assert x.numel() == 4 * 8, "elements in all"
    assert x.element_size() == 4, "bytes per float32"
    assert x.nbytes == 128, "count times width"
    assert x.untyped_storage().nbytes() == 128, "what is really allocated"
    question(
        "A fresh `float32` tensor of shape `(25, n)` costs `6000` bytes. What "
        "is `n`?",
        answer=6000 // torch.zeros(25, 1).nbytes,
    )


def a_tensor_can_be_weighed_without_memory() -> None:
    """A tensor need not be allocated to be weighed."""
    note(
        "GPT-3 has a width of `12288`; the first matrix of each of its feed-forward blocks "
        "is four times as tall [@gpt3]. The device `meta` keeps shape and dtype but no data, "
        "so weighing it is free."
    )
    d = 12288
    w: Float[Tensor, "up width"] = torch.empty(4 * d, d, device="meta")  # @inspect w
    size = w.nbytes                                             # @inspect size as B
    assert size == 2304 * 1024 * 1024, "2304 MiB"
    binary = size / 1024**3                                     # @inspect binary as GiB
    assert binary == 2.25, "in GiB, powers of two"
    decimal = size / 10**9                                      # @inspect decimal as GB
    assert 2.415 < decimal < 2.416, "in GB, powers of ten"
    misbelief(
        f"That matrix takes {size / MiB / 1000:.1f} GB.",
        f"It takes {binary} GiB, which is {decimal:.2f} GB. Mixing the two units gives a "
        "number that is wrong in both. GPU datasheets speak decimal, most memory tools "
        "binary.",
    )
    note(
        "Whether that is a lot depends on what else the card must hold. To train it with "
        "AdamW, its gradient and two moments of the same size must be held as well:"
    )
    training = (1 + 1 + 2) * size                               # @inspect training as B
    assert training / GiB == 9.0, "GiB of training state"
    question(
        "An L40S has `48` GB [@nvidia-l40s]. If nothing else needed room, how "
        "many such matrices could it train with AdamW?",
        answer=CARDS["L40S"].memory // training,
    )


def a_view_can_hold_more_or_less_than_it_reports() -> None:
    """A view reports the bytes it shows, not the bytes it keeps alive."""
    note(
        "A *view* is a second tensor over the same storage. `nbytes` multiplies count by "
        "width and cannot tell. Expand one number to a long vector, and one number is "
        "stored: from each element to the next, the *stride*, is no step at all."
    )
    wide = torch.ones(1).expand(1000)                           # @inspect wide.stride()
    assert wide.nbytes == 4000, "what it reports"
    assert wide.untyped_storage().nbytes() == 4, "what it holds"
    note(
        "And a single column of a matrix keeps the whole matrix in memory, even after its "
        "name is gone:"
    )
    matrix = torch.zeros(1000, 1000)
    column = matrix[:, 0]                                       # @inspect column.stride()
    del matrix
    assert column.nbytes == 4000, "what it reports"
    assert column.untyped_storage().nbytes() == 4_000_000, "what it holds"
    copy = column.clone()
    assert copy.untyped_storage().nbytes() == 4000, "a copy lets go"
    misbelief(
        "The memory of a tensor is set by its number of elements and its dtype.",
        "For a freshly allocated tensor, yes. For views ask `untyped_storage().nbytes()`, "
        "and count each storage once.",
    )
    grid = torch.zeros(100, 100)[::2, ::2]  # @hide
    question(
        "`torch.zeros(100, 100)[::2, ::2]` takes every other row and column. "
        "How many bytes *more* than it reports does it keep alive?",
        answer=grid.untyped_storage().nbytes() - grid.nbytes, unit="B",
    )


# --- number formats


def number_formats() -> None:
    """Number formats."""
    total = torch.tensor(256.0, dtype=torch.bfloat16) + 1       # @inspect total
    note(
        "In `bfloat16`, the working format of many language models, `256 + 1` is "
        f"{total.item():.0f}. Nothing is broken. A number format is a budget of bits, spent "
        "on range or on resolution. What goes wrong in low-precision training can be read "
        "off from how it was spent."
    )
    a_float_is_three_fields()
    float32_is_the_default()
    float32_overflows_too()
    float16_spends_little_on_range()
    small_values_vanish_in_float16()
    bfloat16_is_the_top_half_of_float32()
    bfloat16_has_the_exponents_of_float32()
    bfloat16_is_much_coarser()
    one_byte_comes_in_two_formats()
    one_buys_range_the_other_resolution()
    the_two_overflow_differently()
    one_byte_is_for_storing_and_multiplying()
    one_value_in_five_formats()
    the_machine_prints_its_own_limits()
    a_running_sum_stalls()
    small_updates_are_lost()
    rounding_at_random_saves_them()
    scaling_the_loss_saves_small_gradients()
    autocast_chooses_for_each_operation()


def bits(value: float, dtype: torch.dtype) -> str:
    """The bits that a tensor of `dtype` stores for `value`, sign first."""
    width = torch.finfo(dtype).bits
    raw = {8: torch.uint8, 16: torch.int16, 32: torch.int32}[width]
    stored = torch.tensor(value, dtype=dtype).view(raw).item()
    return format(int(stored) % 2**width, f"0{width}b")


def cast(value: float, dtype: torch.dtype) -> float:
    """`value` after a round trip through `dtype`."""
    return float(torch.tensor(value, dtype=torch.float64).to(dtype).double())


def layout(dtype: torch.dtype) -> tuple[int, int, int]:
    """How many bits `dtype` gives to sign, exponent and fraction."""
    fraction = -int(math.log2(torch.finfo(dtype).eps))
    return 1, torch.finfo(dtype).bits - 1 - fraction, fraction


def decode(pattern: str, dtype: torch.dtype) -> float:
    """The value of a bit pattern (of a normal number), by the definition of a float."""
    _, exponent, fraction = layout(dtype)
    bias = (1 << exponent - 1) - 1
    power = int(pattern[1 : 1 + exponent], 2) - bias
    sign = -1.0 if pattern[0] == "1" else 1.0
    along = int(pattern[1 + exponent :], 2) / (1 << fraction)
    return sign * 2.0**power * (1 + along)


def a_float_is_three_fields() -> None:
    """A float is a sign, a power of two, and a fraction to scale it by."""
    note(
        "The exponent says between which two powers of two the value lies, the fraction how "
        "far along. With $s$, $e$ and $f$ read from the bits, the value is $(-1)^s \\cdot "
        "2^{e-\\mathrm{bias}} \\cdot (1+f)$. The bias, `127` in `float32`, lets exponents be "
        "stored without a sign."
    )
    note("Take `0.15625`, which is $1.25 \\cdot 2^{-3}$, and read its fields off the drawing:")
    pattern = bits(0.15625, torch.float32)                      # @inspect pattern
    x = torch.tensor(0.15625)                                   # @inspect x as bits
    fields = "0", "01111100", "01000000000000000000000"
    assert pattern == "".join(fields), "sign, exponent, fraction"
    assert layout(torch.float32) == (1, 8, 23), "bits for each field"
    power = int(fields[1], 2) - 127                             # @inspect power
    assert power == -3, "exponent bits, less the bias"
    assert 2.0**power * (1 + 0b01 / 4) == 0.15625, "a quarter of the way up"
    decoded = decode(pattern, torch.float32)                    # @inspect decoded
    assert decoded == 0.15625, "by the definition"
    question(
        "A `float32` has sign `1`, exponent `10000001` and a fraction of `11` "
        "followed by zeros. Which number is it?",
        answer=decode("1" + "10000001" + "11".ljust(23, "0"), torch.float32),
    )


def float32_is_the_default() -> None:
    """`float32` is PyTorch's default, not everyone's."""
    note("The same zeros, ordered from two libraries, come in two sizes:")
    x = torch.zeros(4, 8)                                       # @inspect x.dtype
    y = np.zeros((4, 8))                                        # @inspect y.dtype
    assert x.dtype == torch.float32, "PyTorch's floats"
    assert y.dtype == np.float64, "NumPy's floats"
    note(
        "NumPy, like most of scientific Python, defaults to double precision; PyTorch halves "
        "that. The default is for floating-point factories only, and crossing between the "
        "two libraries carries the wider dtype along:"
    )
    crossed = torch.from_numpy(y)                               # @inspect crossed.dtype
    assert crossed.nbytes == 2 * x.nbytes, "twice the memory, unasked"
    places = torch.arange(3)                                    # @inspect places.dtype
    assert places.dtype == torch.int64, "not every factory makes floats"
    note(
        "There is no proof of how much precision a network needs, only experience: it gets by "
        "with far less than this [@micikevicius2018]. So take `float32` as the safe place to "
        "start from and the yardstick for anything narrower, and expect to pay for it in memory."
    )
    three = [torch.zeros(1000), torch.arange(1000)]  # @hide
    three += [torch.from_numpy(np.zeros(1000))]  # @hide
    question(
        "How many bytes do `torch.zeros(1000)`, `torch.arange(1000)` and "
        "`torch.from_numpy(np.zeros(1000))` take together?",
        answer=sum(t.nbytes for t in three), unit="B",
    )


def float32_overflows_too() -> None:
    """Even `float32` overflows, after a few dozen unscaled layers."""
    note(
        "Multiply a vector by random matrices of width `64`, unscaled. Each product makes "
        "its entries about $\\sqrt{64}$ times larger, so the largest `float32` is not many "
        "layers away."
    )

    def layers_until_infinity() -> int:
        x, depth = torch.randn(64), 0
        while x.isfinite().all():
            x, depth = torch.randn(64, 64) @ x, depth + 1
        return depth

    depths = [layers_until_infinity() for _ in range(25)]  # @inspect min(depths), max(depths)
    typical = median(depths)                                    # @inspect typical
    assert typical == 43, "layers until infinity"
    powers = math.log(torch.finfo(torch.float32).max, 8)        # @inspect powers
    assert 42.6 < powers < 42.7, "factors of eight from one to the top"
    note(
        "The cure is not a wider format but a smaller factor: weights divided by $\\sqrt{64}$ "
        "to begin with. That is what initialization is about."
    )
    question(
        "With matrices of width `256`, each product makes the entries about "
        "`16` times larger. About how many layers fit into the range of "
        "`float32`?",
        answer=round(math.log(torch.finfo(torch.float32).max, 16)),
        unit="layers",
    )


def float16_spends_little_on_range() -> None:
    """`float16` halves the bytes and keeps a short exponent."""
    note(
        "Of its bits, `5` are for the exponent and `10` for the fraction. Both ends of its range "
        "are therefore close enough to walk to."
    )
    assert layout(torch.float16) == (1, 5, 10), "sign, exponent, fraction"
    x = torch.zeros(4, 8, dtype=torch.float16)
    assert (x.element_size(), x.nbytes) == (2, 64), "half of float32"
    largest = torch.finfo(torch.float16).max                    # @inspect largest
    assert largest == (2 - 2**-10) * 2**15, "all fraction bits set"
    note(
        f"Above {largest:.0f} comes infinity, but not at once. What lies less than half a step "
        "beyond is still rounded down to it."
    )
    rounded = cast(65519, torch.float16)                        # @inspect rounded
    assert rounded == 65504.0, "rounds down to the largest"
    assert cast(65520, torch.float16) == math.inf, "rounds up to infinity"
    smallest = 2.0**-24                                         # @inspect smallest
    assert cast(smallest, torch.float16) == 2**-24, "just above zero"
    assert cast(smallest / 2, torch.float16) == 0.0, "half of it is nothing"
    top = torch.tensor(largest, dtype=torch.float16)  # @hide
    question(
        "Which number of `float16` comes right before the largest?",
        answer=(top.view(torch.int16) - 1).view(torch.float16).item(),
    )


def small_values_vanish_in_float16() -> None:
    """A gradient of `1e-8` is zero in `float16`."""
    note("Gradients of that size occur in training [@micikevicius2018]. `float16` makes this of one:")
    gone = cast(1e-8, torch.float16)                            # @inspect gone
    assert gone == 0.0, "no error, no warning"
    note(
        "Just above zero the values of `float16` are evenly spaced, $2^{-24}$ apart. "
        "Rounding to them is a staircase whose first step is at half that distance. "
        "Everything to the left of it becomes zero. The smallest value, one of half its size, and "
        "the gradient:"
    )
    small = torch.tensor([2**-24, 2**-25, 1e-8]).half()         # @inspect small as bits
    assert small[1:].tolist() == [0, 0], "no bit is left"
    note("The values there are, and what is rounded to them:")
    unit = 2.0**-24
    xs = [unit * i / 100 for i in range(-50, 451)]
    ys = [cast(x, torch.float16) for x in xs]
    stairs = sorted({abs(y) / unit for y in ys})                    # @inspect stairs
    assert stairs == [0, 1, 2, 3, 4], "five values on this stretch"
    figure(
        staircase_figure(xs, ys, unit, lost=1e-8),
        caption="float16 near zero, both axes in units of its smallest value. The dot is that gradient: "
        f"it would have to be {unit / 2 / 1e-8:.0f} times as large to survive.",
        alt="A staircase of steps one unit wide along the diagonal. The first step up is at "
        "one half of the smallest value; the dot lies left of it, on the floor at zero.",
    )
    question(
        "What does `1e-7` become in `float16`?",
        answer=cast(1e-7, torch.float16),
    )


def bfloat16_is_the_top_half_of_float32() -> None:
    """`bfloat16` is `float32` with the lower half cut off."""
    note(
        "Keep the first `16` bits of a `float32`. The exponent comes through whole; the cut goes "
        "through the fraction."
    )
    top = bits(0.15625, torch.bfloat16)                         # @inspect top
    full = bits(0.15625, torch.float32)                         # @inspect full
    assert top == full[:16], "the same leading bits"
    assert layout(torch.bfloat16) == (1, 8, 7), "more exponent"
    assert layout(torch.float16) == (1, 5, 10), "more fraction"
    sizes = [torch.finfo(d).bits // 8 for d in FORMATS[:3]]     # @inspect sizes
    assert sizes == [4, 2, 2], "bytes: as many as float16"
    note("So what vanished in `float16` survives here, about a thousandth off:")
    kept = cast(1e-8, torch.bfloat16)                           # @inspect kept
    assert kept == 1.0011717677116394e-08, "not zero"
    off = kept / 1e-8 - 1                                       # @inspect off
    assert 0.00117 < off < 0.00118, "relative error"
    misbelief(
        "Google Brain invented bfloat16 in `2018`.",
        "The place is right: the name is short for *Brain floating point* [@wang2019]. The "
        "year is not, since Google's second TPU, at work in `2017`, already multiplied in it "
        "[@norrie2021]. No line of code can settle a date, so this book gives the place and "
        "a source.",
    )
    question(
        "If the lower half is simply cut off, how many different `float32` "
        "patterns become the same `bfloat16`?",
        answer=2 ** (len(full) - len(top)),
    )


def bfloat16_has_the_exponents_of_float32() -> None:
    """The same exponents do not quite make the same range."""
    note("Equal exponents suggest an equal range. Look at both of its ends.")
    wide, narrow = torch.finfo(torch.float32), torch.finfo(torch.bfloat16)
    first = narrow.smallest_normal                              # @inspect first
    assert first == wide.smallest_normal == 2**-126, "same lower end"
    assert narrow.max < wide.max, "but fewer bits fill the top"
    ratio = narrow.max / wide.max                               # @inspect ratio
    assert 0.9960 < ratio < 0.9962, "the largest is smaller"
    held = cast(3.4e38, torch.float32)                          # @inspect held
    lost = cast(3.4e38, torch.bfloat16)                         # @inspect lost
    assert held < lost == math.inf, "finite, then infinite"
    note(
        "At the other end both have *subnormal* numbers, which trade fraction bits for a "
        "little more range below the first normal number. Fewer fraction bits, less to "
        "trade:"
    )
    assert cast(2**-149, torch.float32) == 2**-149, "smallest float32"
    assert cast(2**-133, torch.bfloat16) == 2**-133, "smallest bfloat16"
    assert cast(2**-134, torch.bfloat16) == 0.0, "below it, zero"
    times = 2**-133 / 2**-149                                   # @inspect times
    assert times == 65536.0, "smallest against smallest"
    misbelief(
        "bfloat16 has the same dynamic range as float32.",
        f"It has the same *exponent* range. Its largest value is {1 - ratio:.1%} smaller and "
        f"its smallest is {times:,.0f} times larger, which matters to almost nobody, until a "
        "sentinel such as `3.4e38` turns infinite.",
    )
    codes = torch.arange(1, 2**15, dtype=torch.int16)  # @hide
    positive = codes.view(torch.bfloat16)  # @hide
    question(
        "Subnormal numbers are evenly spaced. How many positive ones does "
        "`bfloat16` have?",
        answer=(positive < narrow.smallest_normal).sum().item(),
    )


def bfloat16_is_much_coarser() -> None:
    """`bfloat16` has between two and three significant digits."""
    note(
        "Resolution is measured at one: the *machine epsilon* of a format is the gap from there "
        "to its next number."
    )
    eps = {d: torch.finfo(d).eps for d in FORMATS[:3]}          # @inspect eps
    coarse = eps[torch.bfloat16]
    assert coarse == 1 / 128, "no number between 1 and 1.0078"
    against_half = coarse / eps[torch.float16]                  # @inspect against_half
    assert against_half == 8.0, "coarser than float16"
    against_full = coarse / eps[torch.float32]                  # @inspect against_full
    assert against_full == 65536.0, "coarser than float32"
    digits = math.log10(2 / coarse)                             # @inspect digits
    assert 2.40 < digits < 2.41, "significant decimal digits"
    note("With so few digits counting ends early. The next pattern of bits after `256` is `258`:")
    total = torch.tensor(256.0, dtype=torch.bfloat16) + 1       # @inspect total as bits
    assert total.item() == 256, "adding one does nothing"
    after = torch.tensor(258.0, dtype=torch.bfloat16)           # @inspect after as bits
    patterns = after.view(torch.int16) - total.view(torch.int16)
    assert patterns == 1, "nothing lies between"
    misbelief(
        "bfloat16's precision is slightly lower.",
        f"{against_half:.0f} times lower than float16's and {against_full:,.0f} times lower "
        f"than float32's: about {digits:.1f} decimal digits.",
    )
    thousand = torch.tensor(1000.0, dtype=torch.bfloat16)  # @hide
    following = thousand.view(torch.int16) + 1  # @hide
    question(
        "Which `bfloat16` comes right after `1000`?",
        answer=following.view(torch.bfloat16).item(),
    )


def one_byte_comes_in_two_formats() -> None:
    """One byte is so little that there are two ways to spend it."""
    note(
        "`E4M3` and `E5M2` carry their fields in their names: bits of exponent, and bits of "
        "*mantissa*, another word for the fraction."
    )
    assert layout(E4M3) == (1, 4, 3), "named after its fields"
    assert layout(E5M2) == (1, 5, 2), "named after its fields"
    note(
        "A byte has few enough values to look at all of them. `view` reads the same bits as "
        "another type:"
    )
    codes: UInt8[Tensor, "code"] = torch.arange(256).to(torch.uint8)
    fine: Float[Tensor, "code"] = codes.view(E4M3).float()      # @inspect fine
    wide: Float[Tensor, "code"] = codes.view(E5M2).float()      # @inspect wide
    assert codes.view(E4M3).nbytes == 256, "one byte for each"
    distinct = fine[fine.isfinite()].unique().numel()           # @inspect distinct
    assert distinct == 253, "finite, and one zero"
    special = fine.isinf().sum().item(), fine.isnan().sum().item()
    assert special == (0, 2), "`E4M3`: no infinity, two NaN"
    special = wide.isinf().sum().item(), wide.isnan().sum().item()
    assert special == (2, 6), "`E5M2`: both infinities, six NaN"
    figure(
        byte_figure(fine[fine > 0].tolist(), wide[wide > 0].tolist()),
        caption="Every positive value of either format. From any number to its double, E4M3 has "
        "eight values and E5M2 four, which it spreads over more doublings.",
        alt="Two rows of vertical ticks on a logarithmic axis. The row for E4M3 is dense and "
        f"ends at {torch.finfo(E4M3).max:.0f}; the row for E5M2 has half as many ticks per "
        "doubling and stretches from far below the first of E4M3 up to "
        f"{torch.finfo(E5M2).max:.0f}.",
    )
    question(
        "How many different finite values does `E5M2` have, zero counted once?",
        answer=wide[wide.isfinite()].unique().numel(),
    )


def one_buys_range_the_other_resolution() -> None:
    """`E5M2` reaches farther, `E4M3` lies closer."""
    note("The bit that one of them gives to range, the other gives to resolution.")
    fine, wide = torch.finfo(E4M3), torch.finfo(E5M2)
    assert (fine.min, fine.max) == (-448, 448), "all of `E4M3`"
    assert (wide.min, wide.max) == (-57344, 57344), "all of `E5M2`"
    assert wide.max / fine.max == 128.0, "`E5M2` reaches farther"
    assert wide.eps / fine.eps == 2.0, "`E4M3` is finer"
    note("The largest value of each, in bits. Only the patterns above it mean something else:")
    top_fine = torch.tensor(fine.max).to(E4M3)                  # @inspect top_fine as bits
    top_wide = torch.tensor(wide.max).to(E5M2)                  # @inspect top_wide as bits
    assert top_fine.view(torch.uint8) == 0b0_1111_110, "just below NaN"
    assert top_wide.view(torch.uint8) == 0b0_11110_11, "just below infinity"
    closer = cast(0.3952, E4M3), cast(0.3952, E5M2)             # @inspect closer
    assert closer == (0.40625, 0.375), "0.3952 in either format"
    note(
        "Choose `E5M2` where range is short, as for gradients, and `E4M3` where resolution "
        "is, as for weights and activations: so advises the paper that proposed the pair "
        "[@micikevicius2022]."
    )
    question(
        "From `16` to `32` it takes `E4M3` eight steps and `E5M2` four. What "
        "does each of them store for `18.5`?",
        answer=(cast(18.5, E4M3), cast(18.5, E5M2)),
    )


def the_two_overflow_differently() -> None:
    """What happens above the largest value depends on the format, and on the release."""
    note(
        "Something too large must become something: infinity, NaN, or the largest value that "
        "there is. All of these are in use."
    )
    overflow = cast(1e6, E5M2)                                  # @inspect overflow
    assert overflow == math.inf, "`E5M2` overflows to infinity"
    note(
        "`E4M3` has no infinity to overflow to. Recent releases of PyTorch saturate at the "
        "largest value; older ones returned NaN on a CPU [@pytorch-saturate]. The release "
        "that built this page says:"
    )
    raw = cast(500.0, E4M3)                                     # @measure raw
    note("If the result must not depend on that, clamp before the cast:")
    clamped = torch.tensor([500.0, -1e6, 300.0]).clamp(-448, 448).to(E4M3)
    assert clamped.tolist() == [448.0, -448.0, 288.0], "the same everywhere"
    many = torch.tensor([1000.0, 2000.0, -3000.0, 64.0])  # @hide
    question(
        "The numbers `1000`, `2000`, `-3000` and `64` are clamped and cast to "
        "`E4M3` in this way. What do the results add up to in `float32`?",
        answer=many.clamp(-448, 448).to(E4M3).float().sum().item(),
    )


def one_byte_is_for_storing_and_multiplying() -> None:
    """PyTorch stores one-byte floats and feeds them to matrix products, and little else."""
    note("Add such a tensor to itself, and PyTorch refuses:")
    x = torch.ones(2, dtype=E4M3)                               # @inspect x
    refused = message_of(lambda: x + x)                         # @inspect refused
    assert "not implemented" in refused, "no addition"
    y = (x.float() + x.float()).to(E4M3)                        # @inspect y
    assert y.float().tolist() == [2.0, 2.0], "widen, compute, narrow"
    note(
        "The arithmetic for these formats is in the tensor cores of recent cards. Hopper, "
        "the H100's generation, multiplies both formats and accumulates in something wider "
        "[@nvidia-hopper]; the generation before has no unit for them:"
    )
    hopper = peak(CARDS["H100 SXM"], "float8")                  # @inspect hopper as FLOP/s
    ampere = peak(CARDS["A100 SXM 80GB"], "float8")             # @inspect ampere
    assert hopper == 1979e12, "dense, either format"
    assert ampere is None, "no promise, so no number"
    misbelief(
        "FP8 was standardized in `2022`.",
        "It was *proposed* then, by authors from NVIDIA, Arm and Intel [@micikevicius2022]. The "
        "Open Compute Project made it a specification, OFP8, in `2023` [@ofp8]. On overflow it "
        "lets a library saturate or not, and libraries differ [@ml-dtypes].",
    )
    question(
        "Two `E4M3` vectors of `1000` elements are added in this way. How "
        "many bytes do the two widened copies and their sum take, before the "
        "result is narrowed?",
        answer=3 * torch.ones(1000, dtype=E4M3).float().nbytes, unit="B",
    )


def one_value_in_five_formats() -> None:
    """One tenth is five different numbers."""
    note(
        "No binary format holds `0.1`. Each stores its nearest neighbour, as the bits decoded by "
        "hand confirm."
    )
    names = [str(d).removeprefix("torch.") for d in FORMATS]
    patterns = [bits(0.1, d) for d in FORMATS]
    stored = [cast(0.1, d) for d in FORMATS]                    # @inspect stored
    by_hand = [decode(p, d) for p, d in zip(patterns, FORMATS)]
    assert by_hand == stored, "definition and machine agree"
    errors = [abs(value - 0.1) / 0.1 for value in stored]       # @inspect errors as %
    worst = names[errors.index(max(errors))]                    # @inspect worst
    assert worst == "float8_e5m2", "fewest fraction bits"
    assert 0.0624 < max(errors) < 0.0626, "a sixteenth off"
    assert 1.4e-8 < min(errors) < 1.5e-8, "float32 comes closest"
    note("Side by side, `bfloat16` looks like the start of `float32`, but for rounding:")
    tenth = torch.tensor(0.1, dtype=torch.float64)
    single = tenth.to(torch.float32)                            # @inspect single as bits
    half = tenth.to(torch.float16)                              # @inspect half as bits
    brain = tenth.to(torch.bfloat16)                            # @inspect brain as bits
    fine = tenth.to(E4M3)                                       # @inspect fine as bits
    wide = tenth.to(E5M2)                                       # @inspect wide as bits
    assert brain.float() > single, "rounded up, not cut off"
    question(
        "How many of the five formats hold `1 + 1/256` exactly?",
        answer=sum(cast(1 + 1 / 256, d) == 1 + 1 / 256 for d in FORMATS),
    )


def the_machine_prints_its_own_limits() -> None:
    """`torch.finfo` is the table to trust, because it is not a copy."""
    note(
        "It prints what a format can do. `eps` is the gap above one, `smallest_normal` the "
        "smallest number with a full fraction, `tiny` its older name, and `resolution` a power "
        "of ten that says how many decimal digits to expect."
    )
    single, half, brain = [str(torch.finfo(d)) for d in FORMATS[:3]]
    assert single == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, "
        "eps=1.19209e-07, smallest_normal=1.17549e-38, tiny=1.17549e-38, "
        "dtype=float32)"
    ), "float32, as printed"
    assert half == (
        "finfo(resolution=0.001, min=-65504, max=65504, "
        "eps=0.000976562, smallest_normal=6.10352e-05, tiny=6.10352e-05, "
        "dtype=float16)"
    ), "float16, as printed"
    assert brain == (
        "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, "
        "eps=0.0078125, smallest_normal=1.17549e-38, tiny=1.17549e-38, "
        "dtype=bfloat16)"
    ), "bfloat16, as printed"
    true = torch.finfo(torch.bfloat16).smallest_normal          # @inspect true
    slip = round(math.log10(1.17549e38 / true))                 # @inspect slip
    assert slip == 76, "orders of magnitude"
    misbelief(
        "The smallest normal bfloat16 is `1.17549e38`.",
        f"A copied table said so. Its missing minus sign is worth {slip} orders of magnitude. "
        "Print such tables, never type them.",
    )
    note("How far do the formats reach? Count powers of ten, the *decades* between the ends:")
    limits = [torch.finfo(d) for d in FORMATS]
    decades = [math.log10(f.max / f.smallest_normal) for f in limits]
    rounded = [round(d, 1) for d in decades]                    # @inspect rounded
    assert rounded == [76.5, 9.0, 76.5, 4.5, 9.0], "powers of ten spanned"
    figure(
        decades_figure(FORMATS),
        caption="From the smallest normal number to the largest. The numbers are decades: bfloat16 has "
        "the reach of float32 in half the bytes, float16 little more than a tenth of it.",
        alt="Horizontal bars on an axis of powers of ten. float32 and bfloat16 span about "
        f"{decades[0]:.0f} decades around one; float16 and float8 E5M2 about nine, float8 E4M3 four and a "
        "half.",
    )
    question(
        "How many of the five formats hold both `1e5` and `1e-5` as normal "
        "numbers?",
        answer=sum(f.smallest_normal <= 1e-5 and 1e5 <= f.max for f in limits),
    )


def running_sum(
    term: float, count: int, dtype: torch.dtype, start: float = 0.0
) -> float:
    """Add `term` to `start` `count` times, rounding to `dtype` after each addition."""
    total = torch.tensor(start, dtype=dtype)
    step = torch.tensor(term, dtype=dtype)
    for _ in range(count):
        total = total + step
    return float(total)


def a_running_sum_stalls() -> None:
    """A long sum stops growing once its gaps are wider than what is added."""
    note("Add one, `4000` times over, and keep the total in the format at hand.")
    brain = running_sum(1.0, 4000, torch.bfloat16)              # @inspect brain
    half = running_sum(1.0, 4000, torch.float16)                # @inspect half
    single = running_sum(1.0, 4000, torch.float32)              # @inspect single
    assert brain == 2**8, "bfloat16 stops here"
    assert half == 2**11, "float16 stops here"
    assert single == 4000, "float32 is exact"
    note(
        "At $2^8$ the next `bfloat16` is two away. Adding one leads to the middle between them, "
        "which is rounded back, now and every time after. So the *running* total must be wide; "
        "the terms may be narrow. PyTorch's own sums know this:"
    )
    terms = torch.ones(1000, dtype=torch.bfloat16)
    at_once = terms.sum().item()                                # @inspect at_once
    assert at_once == 1000, "accumulated wide, rounded once"
    one_by_one = running_sum(1.0, 1000, torch.bfloat16)         # @inspect one_by_one
    assert one_by_one == 256, "accumulated narrow"
    note(
        "So the advice to keep long accumulations in `float32` has a mechanism behind it. "
        "The broader warning, that training in narrow formats is unstable, is best taken "
        "apart the same way: stalled sums here, lost updates and vanished gradients next."
    )
    question(
        "Add `4` instead of `1`, again and again, in `float16`. Where does "
        "the total stop?",
        answer=running_sum(4.0, 4000, torch.float16),
    )


def small_updates_are_lost() -> None:
    """A weight that is too coarse ignores small updates."""
    note("A weight of one, and `1000` updates of a thousandth each that should take it to zero:")
    steps = 1000
    coarse = running_sum(-1e-3, steps, torch.bfloat16, start=1.0)           # @inspect coarse
    assert coarse == 1.0, "not one of them arrived"
    fine = running_sum(-1e-3, steps, torch.float32, start=1.0)              # @inspect fine
    assert round(fine, 4) == 0.0, "float32 gets there"
    note(
        "The update is a fraction of the gap to the next number down, so it is rounded away. (To "
        "find that number, read the bits as an integer and subtract one.)"
    )
    below = torch.tensor(1.0, dtype=torch.bfloat16).view(torch.int16) - 1
    gap = 1 - below.view(torch.bfloat16).item()                 # @inspect gap
    assert gap == 2**-8, "down to the next number"
    assert 0.25 < 1e-3 / gap < 0.26, "the update, in gaps"
    note(
        "The cure is the *master copy* of mixed precision: a wide weight to update, and a rounded "
        "one for the model to use."
    )
    master = torch.tensor(1.0)
    for _ in range(steps):
        master -= 1e-3
    weight = master.bfloat16()                                  # @inspect weight
    assert round(weight.item(), 4) == 0.0, "updated wide, used narrow"
    note(
        "It is fair to say that low resolution matters little for *inputs* of a matrix "
        "product, where errors average out. It matters for weights that are nudged and for "
        "totals that grow."
    )
    two = torch.tensor(2.0, dtype=torch.bfloat16)  # @hide
    under = two.view(torch.int16) - 1  # @hide
    question(
        "The gap below a `bfloat16` weight of `2` is twice as wide. How much "
        "can be taken from such a weight at most without any effect?",
        answer=(2 - under.view(torch.bfloat16).item()) / 2,
    )


def round_randomly(x: Float[Tensor, "n"]) -> BFloat16[Tensor, "n"]:
    """Round to bfloat16, up or down with probability given by the distance to either neighbour."""
    noise = torch.randint(0, 2**16, x.shape, dtype=torch.int32)
    kept = (x.view(torch.int32) + noise) & ~0xFFFF
    return kept.view(torch.float32).bfloat16()


def rounding_at_random_saves_them() -> None:
    """Weights need not be stored in `float32`, if rounding is done with care."""
    note(
        "Round up or down *at random*, so that a third of the way up means up a third of the "
        "time, and small updates arrive on average [@gupta2015]. The same run, in `bfloat16` "
        "from end to end, for many weights at once:"
    )
    w: BFloat16[Tensor, "n"] = torch.ones(4096, dtype=torch.bfloat16)
    for _ in range(1000):
        w = round_randomly(w.float() - 1e-3)
    mean = w.float().mean().item()                              # @inspect mean
    assert abs(round(mean, 2)) == 0.0, "the updates arrived"
    spread = w.float().std().item()                             # @inspect spread
    assert 0.038 < spread < 0.044, "at the price of noise"
    misbelief(
        "Parameters and optimizer state must be float32, or training is unstable.",
        "What fails first is not stability but progress: small updates are lost. And *must* "
        "is too strong. A master copy cures it, random rounding cures it, and optimizers "
        "with one-byte states train well [@dettmers2022].",
    )
    question(
        "The `bfloat16` before `4` is `1/64` away. An update of `-1e-3` is "
        "rounded at random for `1000` weights of exactly `4`. How many of "
        "them move, on average?",
        answer=round(1000 * 1e-3 / (1 / 64)), unit="weights",
    )


def scaling_the_loss_saves_small_gradients() -> None:
    """Multiply the loss by a large number, and small gradients survive `float16`."""
    note(
        "The model computes with a `float16` copy of `w`, and the loss is `1e-8` times that. So "
        "the gradient sets out as `1e-8`, passes through `float16`, and arrives as zero:"
    )
    w = torch.tensor([1.0], requires_grad=True)
    (w.half().float() * 1e-8).sum().backward()
    assert w.grad is not None, "it has a gradient"
    assert w.grad.item() == 0.0, "but nothing is in it"
    note(
        "The standard cure multiplies the loss before the backward pass, and divides the "
        "gradients, in `float32`, before the step [@micikevicius2018]. PyTorch's `GradScaler` "
        "does both; it also skips the step and lowers the scale when a gradient overflows."
    )
    w.grad.zero_()
    scaler = torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD([w], lr=0.1)
    loss = (w.half().float() * 1e-8).sum()
    scaler.scale(loss).backward()
    assert scaler.get_scale() == 2**16, "its first scale"
    scaler.unscale_(optimizer)
    recovered = w.grad.item()                                   # @inspect recovered
    assert 9.996e-9 < recovered < 9.998e-9, "back, to three digits"
    by_hand = cast(1e-8 * 65536, torch.float16) / 65536         # @inspect by_hand
    assert recovered == by_hand, "the same by hand"
    note(
        "`bfloat16` has enough exponents to do without, which is a good reason to prefer it "
        "where the card has it."
    )
    question(
        "The largest `float16` is `65504`. About how large may a gradient be, "
        "if it is not to overflow at that first scale?",
        answer=torch.finfo(torch.float16).max / scaler.get_scale(),
    )


def autocast_chooses_for_each_operation() -> None:
    """Mixed precision decides per operation, not per layer."""
    note(
        "*Mixed precision* means several formats in one step. Under `torch.autocast` the "
        "parameters stay `float32`. Operations on a list of safe ones cast their inputs down as "
        "they run; others are left alone or cast up."
    )
    x = torch.randn(4, 8)
    layer = nn.Linear(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = layer(x)                                      # @inspect product.dtype
        weights = torch.softmax(x, dim=-1)                      # @inspect weights.dtype
        q = x.view(1, 1, 4, 8)
        attended = nn.functional.scaled_dot_product_attention(q, q, q)
    assert product.dtype == torch.bfloat16, "matrix products are narrow"
    assert weights.dtype == torch.float32, "softmax of float32 stays wide"
    assert attended.dtype == torch.bfloat16, "attention is narrow"
    product.float().sum().backward()
    assert layer.weight.grad is not None, "and the way back"
    kept = {layer.weight.dtype, layer.weight.grad.dtype}        # @inspect kept
    assert kept == {torch.float32}, "parameter and gradient stay wide"
    note(
        "Advice, then, rather than law. Train in mixed precision. Run matrix products in "
        "`bfloat16`, those of attention included; \"attention in `float32`\" is too coarse a "
        "rule. Keep in `float32` what adds up or normalizes: softmax and normalization "
        "statistics, the loss, long sums, the weights that the optimizer updates."
    )
    question(
        "Make the layer `nn.Linear(8, 32)`, under the same autocast. How many "
        "bytes do its output for this `x` and the gradient of its weight take "
        "together?",
        answer=4 * 32 * product.itemsize + 32 * 8 * layer.weight.grad.itemsize,
        unit="B",
    )


# --- tensors on a GPU


def tensors_on_a_gpu() -> None:
    """Tensors on a GPU."""
    note(
        "A GPU has memory of its own, and nothing moves there unless it is told to. Its "
        "allocator then hands out memory in blocks and keeps what you give back, so the "
        "figures that PyTorch reports match neither the sum of your tensors nor what "
        "`nvidia-smi` shows."
    )
    tensors_start_on_the_cpu()
    ask_before_you_move()
    blocks_are_multiples_of_a_smallest_one()
    moving_allocates_on_the_gpu()
    deleting_returns_blocks_to_a_cache()
    the_driver_knows_how_much_memory_there_is()
    a_narrow_product_is_timed_here()
    both_one_byte_formats_multiply()


def tensors_start_on_the_cpu() -> None:
    """A tensor is made in CPU memory unless something says otherwise."""
    note("A GPU in the machine changes nothing about this line:")
    x = torch.zeros(32, 32)                                     # @inspect x.device
    assert x.device == torch.device("cpu"), "the default"
    note(
        "Name a device to create a tensor there, or call `.to(device)` to copy one. Where the "
        "tensor is already in place, `.to` copies nothing. (The device `meta`, used here because "
        "every machine has it, keeps shapes and no data.)"
    )
    assert x.to("cpu") is x, "already there"
    shape_only = torch.zeros(32, 32, device="meta")
    assert shape_only.device.type == "meta", "created elsewhere"
    note(
        "`torch.set_default_device` changes the default for everything created after it. As "
        "a context it is easier to keep track of:"
    )
    with torch.device("meta"):
        inside = torch.zeros(32, 32)
    after = torch.zeros(32, 32)
    assert inside.device.type == "meta", "inside the context"
    assert after.device.type == "cpu", "after it"
    moved = [x.to("cpu"), x.to(torch.float32), x.to(torch.float64)]  # @hide
    moved += [x.to("meta"), x.to("cpu", torch.float32)]  # @hide
    question(
        "How many of these are `x` itself: `x.to(\"cpu\")`, "
        "`x.to(torch.float32)`, `x.to(torch.float64)`, `x.to(\"meta\")`, "
        "`x.to(\"cpu\", torch.float32)`?",
        answer=sum(t is x for t in moved),
    )


def ask_before_you_move() -> None:
    """Ask what there is, and the same code runs with and without a GPU."""
    note("Pick the device once, from what PyTorch finds, and name that variable everywhere else.")
    count = torch.cuda.device_count()                           # @measure count
    available = torch.cuda.is_available()                       # @measure available
    held = torch.cuda.memory_allocated()                        # @measure held as B
    assert available == (count > 0), "two ways to ask"
    device = "cuda" if available else "cpu"                     # @measure device
    x = torch.zeros(32, 32, device=device)
    assert x.sum() == 0, "runs on either"
    note("Asking about a GPU that is not there is an error, so guard every such line:")
    refused = message_of(lambda: torch.cuda.get_device_properties(count))   # @measure refused
    silence = ""
    assert refused != silence, "no properties of a missing device"
    if count == 0:
        assert held == 0, "nothing allocated on no GPU"
        stranded = message_of(lambda: torch.zeros(32, 32).to("cuda:0"))     # @measure stranded
        assert stranded != silence, "and nowhere to move to"
    question(
        "`torch.zeros(32, 32).to(\"cuda:3\")` ran without an error. How many "
        "GPUs does PyTorch see there at least?",
        answer=torch.device("cuda:3").index + 1, unit="GPUs",
    )


def blocks_are_multiples_of_a_smallest_one() -> None:
    """On a GPU a tensor costs its bytes, rounded up to whole blocks."""
    note(
        "PyTorch's GPU allocator rounds every request up to a multiple of `512` bytes "
        "[@pytorch-allocator]. Square `float32` matrices of four sizes, as derived from that "
        "rule:"
    )
    block = 512                                                 # @inspect block as B
    asked = [side * side * 4 for side in (1, 10, 32, 33)]       # @inspect asked
    taken = [-(-size // block) * block for size in asked]       # @inspect taken
    assert asked == [4, 400, 4096, 4356], "bytes of the tensor"
    assert taken == [512, 512, 4096, 4608], "bytes of its block"
    lost = [t - a for t, a in zip(taken, asked)]                # @inspect lost
    assert lost == [508, 112, 0, 252], "bytes rounded away"
    misbelief(
        "Allocated memory grows by exactly the bytes of the tensor.",
        f"For `32` × `32` it does, because {asked[2]:,} happens to be a multiple of {block}. "
        f"A `10` × `10` matrix of {asked[1]} bytes takes {taken[1]}.",
    )
    question(
        "How many bytes does a `bfloat16` vector of `300` elements take on "
        "the GPU?",
        answer=-(-300 * torch.bfloat16.itemsize // block) * block, unit="B",
    )


@requires("cuda")
def moving_allocates_on_the_gpu() -> None:
    """`memory_allocated` counts blocks."""
    note("Put tensors on the GPU, two at a time, and read how much more memory PyTorch counts.")
    x = torch.zeros(32, 32)
    before = torch.cuda.memory_allocated()                      # @measure before as B
    y = x.to("cuda:0")                                          # @inspect y.device
    z = torch.zeros(32, 32, device="cuda:0")                    # @inspect z.device
    gpu = torch.device("cuda", 0)
    assert y.device == z.device == gpu, "moved, and created"
    assert x.device == torch.device("cpu"), "the original stayed"
    grown = torch.cuda.memory_allocated() - before              # @inspect grown as B
    assert grown == 2 * (32 * 32 * 4), "two tensors, no remainder"
    before = torch.cuda.memory_allocated()
    small = [torch.zeros(10, 10, device="cuda:0") for _ in range(2)]
    grown = torch.cuda.memory_allocated() - before              # @inspect grown as B
    assert grown == 2 * 512, "not twice 400"
    before = torch.cuda.memory_allocated()
    odd = [torch.zeros(33, 33, device="cuda:0") for _ in range(2)]
    grown = torch.cuda.memory_allocated() - before              # @inspect grown as B
    assert grown == 2 * 4608, "not twice 4356"
    assert len(small) == len(odd) == 2, "kept alive until here"
    before = torch.cuda.memory_allocated()  # @hide
    both = z.to("cuda:0"), z.bfloat16()  # @hide
    question(
        "By how much does `memory_allocated` grow when `z.to(\"cuda:0\")` and "
        "`z.bfloat16()` are both kept?",
        answer=torch.cuda.memory_allocated() - before, unit="B",
    )


@requires("cuda")
def deleting_returns_blocks_to_a_cache() -> None:
    """`del` gives memory back to PyTorch, not to the driver."""
    note(
        "Asking the driver for memory is slow, so PyTorch keeps freed blocks for the next "
        "tensor. *Allocated* is what tensors hold; *reserved* is what PyTorch holds. Another "
        "program sees only the second."
    )
    count = scaled(64 * MiB, lambda n: 8 * n)                   # @measure count
    start = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    x = torch.empty(count, device="cuda")
    held = torch.cuda.memory_allocated() - start[0]             # @measure held as B
    assert held == 4 * count, "held by the tensor"
    del x
    after = torch.cuda.memory_allocated()
    assert after == start[0], "no tensor holds it"
    kept = torch.cuda.memory_reserved() - start[1]              # @measure kept as B
    assert kept == 4 * count, "PyTorch still does"
    torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved()
    assert reserved == start[1], "now the driver has it back"
    note(
        "Watching both numbers is sound practice. Calling `empty_cache` in a training loop "
        "rarely is: it makes room for other programs, not for this one, and costs time."
    )
    x = torch.empty(count, device="cuda")  # @hide
    del x  # @hide
    half = torch.empty(count // 2, device="cuda")  # @hide
    cached = torch.cuda.memory_reserved() - start[1]  # @hide
    taken = torch.cuda.memory_allocated() - start[0]  # @hide
    question(
        "After `del x`, and without `empty_cache`, a tensor of half as many "
        "floats is made. How many of the bytes that `x` had does PyTorch then "
        "hold for no tensor?",
        answer=cached - taken, unit="B",
    )


@requires("cuda")
def the_driver_knows_how_much_memory_there_is() -> None:
    """The size on the box is not the size a program gets."""
    used = torch.cuda.current_device()                          # @measure used
    assert used == 0, "the first of those that are visible"
    properties = torch.cuda.get_device_properties(used)
    name = properties.name                                      # @measure name
    units = properties.multi_processor_count                    # @measure units
    cache = properties.L2_cache_size                            # @measure cache as B
    capability = properties.major, properties.minor             # @measure capability
    assert capability == torch.cuda.get_device_capability(), "two ways to ask"
    note(
        "With several GPUs the first one is used; `CUDA_VISIBLE_DEVICES` decides which that is. "
        "Of its memory the datasheet names one size, the driver reports another, and by the time "
        "a program can ask, some of that is taken."
    )
    total = properties.total_memory                             # @measure total as B
    free, seen = torch.cuda.mem_get_info()                      # @measure free as B
    assert free < seen, "the context already takes some"
    card = find(name)                                           # @measure card
    if card is not None:
        ratio = total / card.memory                             # @measure ratio
        assert 0.98 < ratio < 1.08, "near the datasheet, not on it"
    note(
        "So read `total_memory` where a program depends on it, and leave the nominal figure "
        "to napkins."
    )
    question(
        "An L4 is sold with `24` GB, decimal [@nvidia-l4]. If `total_memory` "
        "were exactly that, how many GiB would a tool show that counts in "
        "powers of two?",
        answer=CARDS["L4"].memory / GiB, unit="GiB",
    )


@requires("cuda")
def a_narrow_product_is_timed_here() -> None:
    """What a narrower format buys is measured, card by card."""
    note(
        "The many arithmetic units of a GPU pay off on large products and sit idle on small "
        "ones. The same square matrix product in both formats, against the rates that the "
        "card promises:"
    )
    n = scaled(8192, lambda n: 20 * n * n)                      # @measure n
    a = torch.randn(n, n, device="cuda")
    b = a.bfloat16()
    wide = time_call(lambda: a @ a, "cuda")                     # @measure wide
    narrow = time_call(lambda: b @ b, "cuda")                   # @measure narrow
    speedup = wide.seconds / narrow.seconds                     # @measure speedup as times
    card = find(torch.cuda.get_device_name())
    promised = peak(card, "float32"), peak(card, "bfloat16")    # @measure promised
    achieved = [2 * n**3 / t.seconds for t in (wide, narrow)]   # @measure achieved as FLOP/s
    if promised[1] is not None:
        assert narrow.seconds < wide.seconds, "narrow is faster"
    work = flops(lambda: b @ b)                                 # @measure work as FLOP
    assert work == flops(lambda: a @ a) == 2 * n**3, "the same work"
    question(
        "An A100 promises `19.5` TFLOP/s in `float32` and `312` in `bfloat16` "
        "[@nvidia-a100]. A wide product takes `80` ms there. How long does "
        "the narrow one take, if both come equally close to their promise?",
        answer=80e-3 * 19.5 / 312, unit="s",
    )


@requires("cuda")
def both_one_byte_formats_multiply() -> None:
    """Tensor cores multiply either one-byte format and return a wider one."""
    note("Multiply an `E5M2` matrix by an `E4M3` one, on a card that has units for them:")
    if torch.cuda.get_device_capability() >= (8, 9):
        one = torch.tensor(1.0, device="cuda")
        ones = torch.ones(32, 32, device="cuda")
        left, right = ones.to(E5M2), ones.to(E4M3).t()
        mixed = torch._scaled_mm(
            left, right, one, one, out_dtype=torch.bfloat16
        )                                                       # @inspect mixed
        plain = torch._scaled_mm(
            right.t(), right, one, one, out_dtype=torch.bfloat16
        )                                                       # @inspect plain
        assert mixed.dtype == torch.bfloat16, "wider than what went in"
        assert mixed.sum().item() == 32**3, "`E5M2` times `E4M3`"
        assert plain.sum().item() == 32**3, "`E4M3` times `E4M3`"
    question(
        "A `(16, 64)` matrix in `E5M2` times a `(64, 32)` matrix in `E4M3`, "
        "with the result in `bfloat16`. How many bytes do the three matrices "
        "take together?",
        answer=16 * 64 * E5M2.itemsize + 64 * 32 * E4M3.itemsize
            + 16 * 32 * torch.bfloat16.itemsize,
        unit="B",
    )


# --- storage and views


def storage_and_views() -> None:
    """Storage, strides and views."""
    note("Transposing a matrix moves none of its numbers. Nor does taking a column, or cutting a "
         "block out of the middle. A tensor is a short record that says how to read a line of "
         "memory, and most of what looks like rearranging data only writes another record.")
    a_tensor_is_memory_and_a_way_to_read_it()
    strides_turn_an_index_into_an_address()
    a_storage_is_indexed_by_bytes()
    basic_indexing_shares_and_picking_copies()
    view_gives_the_same_numbers_another_shape()
    a_transpose_swaps_strides()
    contiguous_means_reading_in_storage_order()
    some_shapes_cannot_be_a_view()
    a_view_needs_axes_that_merge()
    contiguous_copies_only_when_it_must()
    a_small_view_keeps_everything_alive()
    a_view_costs_the_same_at_any_size()


def a_tensor_is_memory_and_a_way_to_read_it() -> None:
    """A tensor is a line of memory and a record of how to read it."""
    note("The line of memory is the *storage*. The record, its *metadata*, holds the dtype, the "
         "shape, the place in the storage to begin (the *offset*), and for each axis how many "
         "elements to step over to raise its index by one (the *stride*).")
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    middle = x[:, 1]  # @inspect middle
    whole = x.storage_offset(), x.stride()
    part = middle.storage_offset(), middle.stride()
    assert whole == (0, (3, 1)), "all of it, row by row"
    assert part == (1, (3,)), "starts later, steps wider"
    assert same_storage(x, middle), "nothing was copied"

    misbelief("A tensor is just a pointer to memory.",
              "Tensors over one storage differ in start, shape, strides or dtype. Without that "
              "metadata the pointer says where the numbers are and not what they mean.")
    later = middle.data_ptr() - x.data_ptr()  # @inspect later as B
    assert later == 1 * x.element_size(), "one element further on"

    note("Even the dtype is only a way of reading. Here the bytes of the same floats are read as "
         "integers, and the float `1.0` shows its bits.")
    bits: Int[Tensor, "row col"] = x.view(torch.int32)
    one = f"{bits[0, 0].item():032b}"  # @inspect one
    assert one == "00111111100000000000000000000000", "the float one"
    assert same_storage(x, bits), "same bytes, another dtype"
    piece = torch.zeros(4, 5)[1:, 2]  # @hide
    question("`m` is a fresh matrix of shape `(4, 5)`. What are the offset "
             "and the stride of `m[1:, 2]`?",
             answer=(piece.storage_offset(), *piece.stride()))


def strides_turn_an_index_into_an_address() -> None:
    """An element's address is the offset plus each index times its stride."""
    note("PyTorch lays a new matrix out row by row, which is called *row-major*. To go down a row "
         "means stepping over as many elements as a row has; to go right, over a single one.")
    x: Float[Tensor, "row col"] = torch.arange(16.0).view(4, 4)  # @inspect x
    line = x.flatten()  # @inspect line
    assert x.stride() == (4, 1), "down a row, right a column"
    assert line[x.stride(0)].item() == 4.0, "where the next row begins"

    note(r"So element $(i, j)$ lies at $i \, s_0 + j \, s_1$, where $s$ are the strides. Every "
         "number in this matrix is its own address, which makes that easy to check.")
    place = 1 * x.stride(0) + 2 * x.stride(1)  # @inspect place
    assert place == 6, "one row down, two columns right"
    assert line[place] == x[1, 2], "the element found at that address"

    note("That is right only for a tensor that begins where its storage begins. A block cut from "
         "the middle keeps its parent's strides and gets an offset. Leave the offset out, and you "
         "read an element of the parent that the block does not even contain.")
    block = x[1:, 2:]  # @inspect block, block.storage_offset(), block.stride()
    start, strides = block.storage_offset(), block.stride()
    steps = 1 * strides[0] + 1 * strides[1]  # @inspect steps
    assert (start, strides) == (6, (4, 1)), "own offset, parent's strides"
    assert line[start + steps] == block[1, 1], "with the offset: right"
    assert line[steps] not in block, "without it: outside the block"
    question("A fresh tensor of shape `(3, 4, 5)` is laid out in the same "
             "way, last axis fastest. How many elements lie before the one at "
             "`[2, 1, 3]`?",
             answer=torch.arange(60).view(3, 4, 5)[2, 1, 3].item())


def a_storage_is_indexed_by_bytes() -> None:
    """An untyped storage is indexed by bytes, not by elements."""
    note("The memory behind a tensor can be opened and read, and there are two ways in. The older "
         "one counts elements: entry `6` of `x.storage()` is element `6`.")
    x: Any = torch.arange(16.0).view(4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        old = x.storage()[6]
    assert old == 6.0, "the typed storage counts elements"

    misbelief("`x.storage()[6]` is how to read element `6` of a tensor's memory.",
              "It works, and warns that it will be removed. The storage that replaces it counts "
              "bytes, and its entry `6` lies inside element `1`.")
    note("The typed storage is deprecated in favour of the untyped one [@pytorch_storage], which "
         "knows bytes and no dtype. There, element `6` has to be put together from its bytes.")
    raw = x.untyped_storage()
    width = x.element_size()  # @inspect width as B, raw.nbytes() as B
    assert len(raw) == 16 * width, "a length in bytes"
    assert divmod(6, width) == (1, 2), "entry six: inside element one"
    packed = bytes(raw[i] for i in range(6 * width, 7 * width))
    assert struct.unpack("=f", packed) == (6.0,), "together, element six"

    note("To look at storage order without touching the storage, ask the tensor: flatten it, or "
         "let `as_strided` read at an offset of your choice.")
    place = 6
    assert x.flatten()[place] == old, "flattened, then indexed"
    assert x.as_strided((), (), place) == old, "no axes, only an offset"
    question("In which element of an `int64` tensor does entry `42` of its "
             "untyped storage lie?",
             answer=42 // torch.zeros(8, dtype=torch.int64).element_size())


def basic_indexing_shares_and_picking_copies() -> None:
    """Indexing with numbers and slices shares; picking with lists or masks copies."""
    note("A tensor that reads another's storage is a *view* of it. A row, a column, any regular "
         "grid of elements is some offset and some strides, so it needs no copy.")
    x = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    row, column = x[0], x[:, 1]  # @inspect row, column
    assert same_storage(x, row), "a row is a view"
    assert same_storage(x, column), "so is a column"
    gapless = row.is_contiguous(), column.is_contiguous()
    assert gapless == (True, False), "the column has gaps"

    note("Elements picked by a list or by a mask may lie anywhere. No stride describes that, so "
         "PyTorch copies, even where the pick happens to be a plain row.")
    listed, masked = x[[0]], x[x > 0]  # @inspect listed, masked
    assert not same_storage(x, listed), "a list copies"
    assert not same_storage(x, masked), "a mask copies"

    note("The difference shows at the first write. A change *in place* reaches every tensor over "
         "that storage, and no other.")
    x[0, 1] = 100  # @inspect x, row, column, listed
    assert row.tolist() == [1, 100, 3], "the row sees it"
    assert column.tolist() == [100, 5], "the column sees it"
    assert listed.tolist() == [[1, 2, 3]], "the copy does not"

    note("Arithmetic that makes a new tensor is no such change, even when it reuses the old name.")
    x = x + 1  # @inspect x
    assert row.tolist() == [1, 100, 3], "the old storage is untouched"
    parts = x[1:], x[[0, 1]], x[:, ::2], x[x > 50], x[1, 2]  # @hide
    question("How many of `x[1:]`, `x[[0, 1]]`, `x[:, ::2]`, `x[x > 50]` and "
             "`x[1, 2]` share the storage of `x`?",
             answer=sum(same_storage(x, part) for part in parts))


def view_gives_the_same_numbers_another_shape() -> None:
    """view() reads the same numbers, in the same order, under another shape."""
    note("Nothing moves and nothing changes its order. The line of numbers is cut into rows of "
         "another length.")
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    y = x.view(3, 2)  # @inspect y
    assert y.tolist() == [[1, 2], [3, 4], [5, 6]], "not the transpose"
    assert same_storage(x, y), "one storage, two shapes"

    misbelief("`x.view(3, 2)` takes a `3x2` matrix and shows it as `2x3`.",
              "The arguments are the shape that comes out. The matrix that goes in is `2x3`.")
    shapes = tuple(x.shape), tuple(y.shape)
    assert shapes == ((2, 3), (3, 2)), "from here, to there"

    misbelief("`view()` accepts any tensor and treats it as another one.",
              "The element counts must agree, and the strides must be able to express the new "
              "shape. Otherwise it raises.")
    few = message_of(lambda: x.view(2, 2))  # @inspect few
    turned = message_of(lambda: x.t().view(2, 3))  # @inspect turned
    assert "is invalid for input of size 6" in few, "counts must agree"
    assert "not compatible with" in turned, "strides must allow it"
    z = torch.arange(12).view(3, 4)  # @hide
    question("For `z = torch.arange(12).view(3, 4)`, what is "
             "`z.view(4, 3)[2, 1]`?",
             answer=z.view(4, 3)[2, 1].item())


def a_transpose_swaps_strides() -> None:
    """A transpose swaps strides and leaves the storage alone."""
    note("Rows become columns when the steps trade places.")
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x, x.stride()
    y: Float[Tensor, "col row"] = x.transpose(1, 0)  # @inspect y, y.stride()
    assert x.stride() == (3, 1), "a step down, right"
    assert y.stride() == (1, 3), "the same steps, swapped"
    assert same_storage(x, y), "no number moved"

    note("One storage means one set of numbers. Writing through the matrix changes its transpose.")
    x[0][0] = 100  # @inspect x, y
    assert y[0][0] == 100, "seen through the transpose"

    note("What the transpose loses is the plain order: walking along its rows now jumps about in "
         "memory. Such a tensor is called *non-contiguous*.")
    assert x.is_contiguous() is True, "rows in storage order"
    assert y.is_contiguous() is False, "rows that jump"
    question("What are the strides of `torch.zeros(2, 3, 4).transpose(0, 2)`?",
             answer=torch.zeros(2, 3, 4).transpose(0, 2).stride())


def contiguous_means_reading_in_storage_order() -> None:
    """A tensor is contiguous when reading it row by row never jumps in memory."""
    note("Transposing is not the only way to lose that. Keep the left half of every row, and there "
         "are gaps in memory; keep the upper rows whole, and there are none.")
    x = torch.arange(16.0).view(4, 4)  # @inspect x
    left, top = x[:, :2], x[:2]  # @inspect left, top
    gapless = [part.is_contiguous() for part in (x, left, top)]
    assert gapless == [True, False, True], "only the cut through rows"

    note("The numbers here are their own addresses, so the steps of the walk are the differences "
         "between neighbours. Contiguous means that all of them are `1`.")
    down, across = top.flatten().diff(), left.flatten().diff()
    assert down.tolist() == [1, 1, 1, 1, 1, 1, 1], "no jump anywhere"
    assert across.tolist() == [1, 3, 1, 3, 1, 3, 1], "a jump after each row"
    parts = x[1:3], x[:, 1:], x[::2], x[2], x[:, 0]  # @hide
    question("How many of `x[1:3]`, `x[:, 1:]`, `x[::2]`, `x[2]` and "
             "`x[:, 0]` are contiguous?",
             answer=sum(part.is_contiguous() for part in parts))


def some_shapes_cannot_be_a_view() -> None:
    """Where no stride expresses the new shape, view() refuses and reshape() copies."""
    note("Read the transpose of a `2x3` matrix row by row, and note where in the storage each "
         "element lies.")
    x = torch.arange(1.0, 7.0).view(2, 3)
    y = x.transpose(1, 0)  # @inspect y
    places = torch.arange(6).view(2, 3).t().flatten()  # @inspect places
    assert places.diff().tolist() == [3, -2, 3, -2, 3], "forward and back"

    note("A row of the new shape would have to step forward and back in turn. A stride is a "
         "single number, so no such view exists, and PyTorch says so.")
    error = message_of(lambda: y.view(2, 3))  # @inspect error
    assert error == (
        "RuntimeError: view size is not compatible with input tensor's size and stride (at least "
        "one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
    ), "the exact words"

    note("The way out is a copy in reading order, made by `contiguous()`. `reshape()` makes the "
         "same copy here, and none where a view will do. Whether a write to the result reaches "
         "the original therefore depends on strides that the call does not show.")
    copied = y.contiguous().view(2, 3)  # @inspect copied
    reshaped, shared = y.reshape(2, 3), x.reshape(3, 2)
    assert copied.tolist() == [[1, 4, 2], [5, 3, 6]], "in reading order"
    assert not same_storage(x, copied), "in a storage of its own"
    assert torch.equal(reshaped, copied), "reshape: same numbers"
    assert not same_storage(x, reshaped), "copied, because it must"
    assert same_storage(x, shared), "shared, because it can"
    x.reshape(3, 2)[0, 0] = 9  # @hide
    x.t().reshape(2, 3)[0, 0] = 8  # @hide
    question("First `x.reshape(3, 2)[0, 0] = 9`, then "
             "`x.t().reshape(2, 3)[0, 0] = 8`. What is `x[0, 0]` now?",
             answer=x[0, 0].item())


def a_view_needs_axes_that_merge() -> None:
    """A view needs no contiguous tensor, only axes that merge."""
    note("A transpose is not contiguous, and some views of it are refused. Far from all:")
    misbelief("A non-contiguous tensor cannot be viewed any further.",
              "Splitting an axis, adding one, indexing and transposing back all work, without a "
              "copy.")
    y = torch.arange(1.0, 7.0).view(2, 3).t()  # @inspect y
    longer, row, back = y.view(3, 1, 2), y[0], y.t()
    assert y.is_contiguous() is False, "rows that jump"
    assert tuple(longer.shape) == (3, 1, 2), "viewed all the same"
    assert same_storage(y, longer), "without a copy"
    assert same_storage(y, row), "so is a row of it"
    assert same_storage(y, back), "and the way back"

    misbelief("`view()` only works on contiguous memory.",
              "Contiguous memory is enough, but not required.")
    note("Only *merging* axes is demanding. Neighbouring axes merge when a step along the outer "
         "one is as long as a whole walk along the inner one: the outer stride must equal the "
         "inner size times the inner stride.")
    block = torch.arange(24.0).view(2, 3, 4)[:, :, :2]  # @inspect block.stride()
    outer, middle, inner = block.stride()
    merged = block.view(6, 2)  # @inspect merged, merged.stride()
    error = message_of(lambda: block.view(2, 6))  # @inspect error
    assert block.is_contiguous() is False, "half of each row is missing"
    inner_walk = block.size(2) * inner  # @inspect inner_walk
    assert outer == block.size(1) * middle, "step and walk agree: merge"
    assert same_storage(block, merged), "so this is a view"
    assert (middle, inner_walk) == (4, 2), "step and walk differ"
    assert "view size is not compatible" in error, "so this is refused"
    question("Of `torch.zeros(4, 6, 8)[:, :3]`, `view` can merge one pair of "
             "neighbouring axes. Which shape does that give?",
             answer=tuple(torch.zeros(4, 6, 8)[:, :3].view(4, -1).shape))


def contiguous_copies_only_when_it_must() -> None:
    """contiguous() copies only when it must, and reshape() never promised to."""
    note("Two calls are trusted to make a fresh, gapless tensor. Neither always does.")
    misbelief("`contiguous()` makes a copy, so afterwards the tensors no longer share memory.",
              "On a contiguous tensor it returns that very tensor. To be sure of a copy, "
              "`clone()`.")
    x = torch.arange(1.0, 7.0).view(2, 3)
    assert x.contiguous() is x, "nothing to do, the same object"
    assert not same_storage(x, x.t().contiguous()), "had to be copied"
    assert not same_storage(x, x.clone()), "a clone is always a copy"

    misbelief("Use `contiguous()` or `reshape()` to make a tensor contiguous.",
              "`reshape()` promises a shape. Where a view will do it returns the view, gaps and "
              "all.")
    block = torch.arange(24.0).view(2, 3, 4)[:, :, :2]
    flat = block.reshape(6, 2)  # @inspect flat, flat.stride()
    assert flat.stride() == (4, 1), "rows of two, four apart"
    assert flat.is_contiguous() is False, "reshape left the gaps"
    assert flat.contiguous().stride() == (2, 1), "contiguous closed them"
    turned, back = x.t().contiguous(), x.t().t().contiguous()  # @hide
    made = x.contiguous(), turned, back, x.reshape(3, 2), x.clone()  # @hide
    question("How many bytes of new memory do `x.contiguous()`, "
             "`x.t().contiguous()`, `x.t().t().contiguous()`, "
             "`x.reshape(3, 2)` and `x.clone()` take together?",
             answer=sum(t.nbytes for t in made if not same_storage(x, t)),
             unit="B")


def a_small_view_keeps_everything_alive() -> None:
    """A small view keeps the whole storage alive."""
    note("Keep one row of a matrix, delete the matrix, and no memory comes back.")
    misbelief("Views are free.",
              "They cost no copy. But a storage lives as long as its last view, and a saved view "
              "takes all of it along.")
    base = torch.zeros(1024, 1024)
    row = base[0]  # @inspect row.nbytes as B
    del base
    held = row.untyped_storage().nbytes()  # @inspect held as B
    assert row.nbytes == 4 * KiB, "what the row needs"
    assert held == 4 * MiB, "what it holds"

    note("`torch.save` keeps the sharing between the tensors it writes, so it writes storages. "
         f"This row of {row.nbytes / KiB:.0f} KiB makes a file of {held / MiB:.0f} MiB. A clone "
         "brings a storage of its own size.")
    whole, alone = io.BytesIO(), io.BytesIO()
    torch.save(row, whole)
    torch.save(row.clone(), alone)
    with_base, row_only = whole.tell(), alone.tell()  # @inspect with_base as B, row_only as B
    assert with_base // MiB == 4, "the file holds the matrix"
    assert row_only // MiB == 0, "the clone's file does not"
    one = torch.zeros(256, 1024)[0, 0]  # @hide
    question("In each of `100` steps a loop computes fresh `float32` logits "
             "of shape `(256, 1024)` and appends `logits[0, 0]` to a list. "
             "How much memory does the list keep alive?",
             answer=100 * one.untyped_storage().nbytes(), unit="B")


def a_view_costs_the_same_at_any_size() -> None:
    """The time of a view does not grow with the tensor; the time of a copy does."""
    note("A transpose writes a few integers, whatever the matrix. Making the transposed matrix "
         "contiguous reads and writes every number.")
    small, x = torch.randn(2, 2), torch.randn(2048, 2048)
    small_view = time_call(lambda: small.t(), repeats=7).seconds  # @measure small_view as s
    view = time_call(lambda: x.t(), repeats=7).seconds  # @measure view as s
    copy = time_call(lambda: x.t().contiguous(), repeats=7).seconds  # @measure copy as s
    assert max(small_view, view) < copy, "any view beats the copy"
    assert x.t().contiguous().nbytes == 16 * MiB, "memory the copy takes"
    assert same_storage(x, x.t()), "the view takes none"

    note("The bill for a view may come later, to whoever reads it. `clone()` and the copy above "
         "move equally many bytes, but `clone()` reads memory in order and the copy of the "
         "transpose cannot. Whether a view or a copy is faster in the end is worth measuring.")
    clone = time_call(lambda: x.clone(), repeats=7).seconds  # @measure clone as s
    slowdown = copy / clone  # @measure slowdown as times
    question("A `float64` matrix of shape `(1000, 500)` is transposed and "
             "made contiguous. How many bytes are read and written, taken "
             "together?",
             answer=2 * torch.zeros(1000, 500, dtype=torch.float64).nbytes,
             unit="B")


def elementwise() -> None:
    """Elementwise operations and the causal mask."""
    note("Operations on single elements look too simple to go wrong. Yet they can turn integers "
         "into floats, they cost time that the FLOP counter reports as nothing, and the triangle "
         "of zeros that keeps a language model from reading ahead is easily put on the wrong side "
         "of the diagonal.")
    elementwise_operations_make_a_new_tensor()
    an_integer_tensor_turns_into_floats()
    the_flop_counter_sees_only_products()
    triu_keeps_the_diagonal_and_above()
    the_causal_mask_keeps_the_lower_triangle()
    pytorchs_causal_attention_agrees()
    the_other_triangle_is_right_in_the_other_layout()
    a_leak_shows_when_the_future_changes()


def elementwise_operations_make_a_new_tensor() -> None:
    """An elementwise operation makes a new tensor, unless its name ends in an underscore."""
    note("An elementwise operation computes each output from the input at the same place, so the "
         "shape stays. The result gets memory of its own even when no value changes.")
    x = torch.ones(2, 3)
    same_values = x * 1  # @inspect same_values
    assert same_values.shape == x.shape, "the shape is kept"
    assert torch.equal(same_values, x), "so are the values"
    assert not same_storage(x, same_values), "but in new memory"

    note("A trailing underscore marks the variant that works *in place*: it overwrites its tensor "
         "and returns it, and every view of that storage sees the change.")
    row = x[0]
    returned = x.add_(1)  # @inspect returned, row
    assert returned is x, "the very same object"
    assert row.tolist() == [2, 2, 2], "the view sees it"
    doubled = x * 2  # @hide
    raised = doubled + 1  # @hide
    made = doubled, raised, raised.abs_()  # @hide
    question("How many times does `(x * 2 + 1).abs_()` take new memory for a "
             "result?",
             answer=len({t.data_ptr() for t in made} - {x.data_ptr()}))


def an_integer_tensor_turns_into_floats() -> None:
    """Division and roots turn an integer tensor into floats."""
    note("PyTorch calls it *promotion*. Powers and sums of integers are integers and stay so; "
         "roots and quotients become `float32`, the default float.")
    x: Int[Tensor, "n"] = torch.tensor([1, 4, 9])  # @inspect x
    power, root, inverse = x.pow(2), x.sqrt(), x.rsqrt()  # @inspect power, root, inverse
    assert power.tolist() == [1, 16, 81], "squares of the integers"
    assert root.tolist() == [1, 2, 3], "their square roots"
    thirds = torch.tensor([1, 1 / 2, 1 / 3])
    assert torch.allclose(inverse, thirds), "one over the root"
    assert power.dtype == torch.int64, "a power stays integer"
    assert root.dtype == inverse.dtype == torch.float32, "a root does not"

    note("There are several ways to double a tensor, and they do not agree on the dtype. "
         "`torch.equal` does not mind: it compares values.")
    added, times, over = x + x, x * 2, x / 0.5  # @inspect added, times, over
    assert added.tolist() == times.tolist() == [2, 8, 18], "sum and product"
    assert over.tolist() == [2, 8, 18], "and the quotient"
    assert added.dtype == times.dtype == torch.int64, "two stay integer"
    assert over.dtype == torch.float32, "the quotient does not"
    assert torch.equal(added, over), "equal all the same"

    note("In place there is no room for promotion. The result would have to be written into a "
         "storage of integers, so PyTorch refuses.")
    error = message_of(lambda: x.sqrt_())  # @inspect error
    assert "Float can't be cast" in error, "refused in place"
    question("`torch.arange(1000)` takes `8000` bytes. How many does "
             "`torch.arange(1000) / 1` take?",
             answer=(torch.arange(1000) / 1).nbytes, unit="B")


def the_flop_counter_sees_only_products() -> None:
    """PyTorch's FLOP counter counts products and reports zero for elementwise work."""
    note("Most tensors of a program are the results of operations on others, and each of those "
         "costs memory and arithmetic. Arithmetic is counted in *FLOPs*, floating-point "
         "operations. PyTorch's counter has formulas for matrix products and their kin; an "
         "operation without a formula contributes zero [@pytorch_flop_counter].")
    n = 10
    x = torch.randn(n, n)
    y = x + 1  # @inspect y.nbytes as B
    reported = flops(lambda: x + 1)  # @inspect reported as FLOP
    normalized = flops(lambda: x.softmax(-1))
    product = flops(lambda: x @ x)  # @inspect product as FLOP
    assert y.numel() == 100, "additions that were done"
    assert reported == 0, "additions that were reported"
    assert normalized == 0, "exponentials and quotients: none"
    assert product == 2 * n**3, "a product is counted"

    note("Zero is a convention, not a price. The input has to be read and the result written, and "
         "for elementwise work those bytes are usually the cost to watch.")
    assert (x.nbytes, y.nbytes) == (400, 400), "bytes read, bytes written"
    per_addition = (x.nbytes + y.nbytes) / y.numel()  # @inspect per_addition as B
    assert per_addition == 8, "bytes moved for each addition"
    a, b = torch.ones(10, 20), torch.ones(20, 30)  # @hide
    question("With `a` of shape `(10, 20)` and `b` of shape `(20, 30)`, how "
             "many FLOPs does the counter report for "
             "`(a @ b + 1).softmax(-1)`?",
             answer=flops(lambda: (a @ b + 1).softmax(-1)), unit="FLOP")


def triu_keeps_the_diagonal_and_above() -> None:
    """triu() keeps the diagonal and what lies above; tril() the diagonal and below."""
    note("Each keeps one triangle of a matrix and puts zeros in the other. The diagonal belongs "
         "to both. An argument shifts the border: with `1`, `triu` drops the diagonal too.")
    ones: Float[Tensor, "row col"] = torch.ones(3, 3)
    upper, lower = ones.triu(), ones.tril()  # @inspect upper, lower
    strict = ones.triu(diagonal=1)  # @inspect strict
    above, below = upper.tolist(), lower.tolist()
    shifted = strict.tolist()
    assert above == [[1, 1, 1], [0, 1, 1], [0, 0, 1]], "diagonal and above"
    assert below == [[1, 0, 0], [1, 1, 0], [1, 1, 1]], "diagonal and below"
    assert shifted == [[0, 1, 1], [0, 0, 1], [0, 0, 0]], "what lies above"
    question("How many ones are left in `torch.ones(5, 5).tril(diagonal=1)`?",
             answer=int(torch.ones(5, 5).tril(diagonal=1).sum().item()))


def attention_weights(x: Tensor, keep: Tensor) -> Tensor:
    """The softmax over keys of each query's scores, (query, key), where `keep` allows them."""
    scores = x @ x.t() / math.sqrt(x.shape[-1])
    return scores.masked_fill(~keep, -math.inf).softmax(dim=-1)


def plot_masks(causal: Tensor, leaking: Tensor) -> Figure:  # @hide
    """Both weight matrices as squares whose area is the weight; weights on the future in red."""
    fig = Figure(figsize=(7, 3.6), facecolor="none", layout="constrained")
    panels = fig.subplots(1, 2, gridspec_kw={"wspace": 0.12})
    titles = ("keep tril: nothing ahead", "keep triu: the future leaks in")
    for axes, weights, title in zip(panels, (causal, leaking), titles, strict=True):
        draw_weights(axes, weights)
        axes.set_title(title, color=GREY, fontsize=11)
    return fig


def draw_weights(axes: Axes, weights: Tensor) -> None:  # @hide
    """One square for each weight, query down, key across."""
    n = weights.shape[0]
    for query, key in itertools.product(range(n), range(n)):
        weight = weights[query, key].item()
        side = 0.94 * math.sqrt(weight)
        corner = (key - side / 2, query - side / 2)
        color = RED if key > query else BLUE
        axes.add_patch(Rectangle(corner, side, side, facecolor=color, edgecolor="none"))
        cell = Rectangle((key - 0.5, query - 0.5), 1, 1, facecolor="none", edgecolor=GREY)
        cell.set(linewidth=0.6, clip_on=False)
        axes.add_patch(cell)
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal", facecolor="none")
    axes.set_xticks(range(n), [f"key {key}" for key in range(n)])
    axes.set_yticks(range(n), [f"query {query}" for query in range(n)])
    axes.tick_params(colors=GREY, length=0)
    axes.spines[:].set_visible(False)


def the_causal_mask_keeps_the_lower_triangle() -> None:
    """With queries as rows, the causal mask keeps the lower triangle."""
    note("Attention scores every token (the *query*) against every token (the *key*), and turns "
         "each query's scores into weights that add up to one [@vaswani2017]. A language model "
         "must not look ahead, so a *causal mask* removes keys later than the query. Queries are "
         "rows here, as in $Q K^T$.")
    misbelief("The causal attention mask is `triu`.",
              "In this layout `triu` lets the first token read all the others, and lets the last "
              "read only itself. PyTorch's own causal attention keeps `tril`.")
    n = 4
    x: Float[Tensor, "query channel"] = torch.randn(n, 8)
    keep: Bool[Tensor, "query key"] = torch.ones(n, n, dtype=torch.bool)
    causal = attention_weights(x, keep.tril())  # @inspect causal
    leaking = attention_weights(x, keep.triu())  # @inspect leaking
    future = keep.triu(diagonal=1)
    last = leaking[-1].tolist()
    assert causal[future].tolist() == [0, 0, 0, 0, 0, 0], "no weight ahead"
    assert leaking[future].count_nonzero() == 6, "weight on all of it"
    assert last == [0, 0, 0, 1], "and the last sees no past"
    figure(plot_masks(causal, leaking),
           caption="Attention weights under both masks; the area of a square is its weight. Red "
                   "squares are weights on tokens that have not been written yet.",
           alt="Grids of squares with queries down and keys across. Under tril all squares lie on "
               "or below the diagonal. Under triu they lie on or above it, and all those above "
               "are red: each query except the last puts weight on later keys.")
    past = torch.ones(100, 100, dtype=torch.bool).tril()  # @hide
    same = torch.ones(100, 8)  # @hide
    question("How many of the weights does the causal mask set to zero in a "
             "sequence of `100` tokens?",
             answer=(attention_weights(same, past) == 0).sum().item())


def pytorchs_causal_attention_agrees() -> None:
    """PyTorch's own causal attention keeps the lower triangle."""
    note("Attention ends by averaging one *value* per key with those weights. Let the values be "
         "the rows of the identity, and the output is the weights themselves: PyTorch's function "
         "shows its mask.")
    n = 4
    x = torch.randn(n, 8)
    keep = torch.ones(n, n, dtype=torch.bool)
    q, values = x[None], torch.eye(n)[None]
    attend = F.scaled_dot_product_attention
    builtin = attend(q, q, values, is_causal=True)[0]  # @inspect builtin
    causal = attention_weights(x, keep.tril())
    leaking = attention_weights(x, keep.triu())
    assert torch.allclose(builtin, causal), "is_causal means tril"
    assert not torch.allclose(builtin, leaking), "it is not triu"
    same = torch.zeros(1, 4, 8)  # @hide
    tens = torch.tensor([[[0.0], [10], [20], [30]]])  # @hide
    question("All scores are equal, and the values of the four keys are `0`, "
             "`10`, `20`, `30`. What does attention with `is_causal=True` "
             "return for the third query?",
             answer=attend(same, same, tens, is_causal=True)[0, 2].item())


def the_other_triangle_is_right_in_the_other_layout() -> None:
    """A triangle is causal only together with what its rows mean."""
    note("Those who write `triu` may mean another matrix, in which entry $(i, j)$ is what token "
         "$i$ gives to token $j$. Its rows are the sources. That is the transpose, and there the "
         "upper triangle is causal. A triangle without a word on its rows is neither right nor "
         "wrong.")
    n = 4
    keep = torch.ones(n, n, dtype=torch.bool)
    weights = attention_weights(torch.randn(n, 8), keep.tril())
    by_query: Float[Tensor, "query key"] = weights
    by_key: Float[Tensor, "key query"] = weights.t()  # @inspect by_key
    assert torch.equal(by_query, by_query.tril()), "queries as rows: lower"
    assert torch.equal(by_key, by_key.triu()), "sources as rows: upper"

    note("A mask may also name what to *remove*. Then, with queries as rows, it is `triu` after "
         "all, but without the diagonal: keep `tril()`, or mask out `triu(diagonal=1)`.")
    remove = keep.triu(diagonal=1)  # @inspect remove
    with_diagonal = keep.triu()
    assert torch.equal(~remove, keep.tril()), "one mask, said two ways"
    more = with_diagonal.sum() - remove.sum()  # @inspect more.item()
    assert more == n, "triu would remove the diagonal too"
    others = ~keep.tril(diagonal=1)  # @hide
    question("Queries are rows, the mask names what to remove, and each token "
             "may see the past, itself and the *next* token. Which `diagonal` "
             "does `triu` get?",
             answer=next(d for d in range(n) if keep.triu(d).equal(others)))


def a_leak_shows_when_the_future_changes() -> None:
    """A leak shows itself when the future changes and the past moves."""
    note("Shapes do not betray a wrong mask, and a training loss that profits from it only looks "
         "good. One test does: change the last token and see which outputs move. It is worth "
         "keeping among a model's tests.")
    n = 4
    x = torch.rand(n, 8)
    changed = torch.cat([x[:-1], torch.rand(1, 8)])
    keep = torch.ones(n, n, dtype=torch.bool)

    def moved(mask: Tensor) -> list[bool]:
        before = attention_weights(x, mask) @ x
        after = attention_weights(changed, mask) @ changed
        return [not torch.allclose(before[i], after[i]) for i in range(n)]

    causal, leaking = moved(keep.tril()), moved(keep.triu())
    note("Which outputs moved, from the first token to the last, under either mask:")
    assert causal == [False, False, False, True], "the past stands still"
    assert leaking == [True, True, True, True], "every token saw the last"
    tokens = torch.rand(10, 8)  # @hide
    mask = torch.ones(10, 10, dtype=torch.bool).tril()  # @hide
    before = attention_weights(tokens, mask) @ tokens  # @hide
    tokens[2] = torch.rand(8)  # @hide
    after = attention_weights(tokens, mask) @ tokens  # @hide
    question("In a sequence of `10` tokens under the causal mask, the third "
             "is changed. How many outputs move?",
             answer=(after - before).abs().amax(1).gt(1e-4).sum().item())


def matmul_and_named_axes() -> None:
    """Matrix products and named axes."""
    note("Forget to transpose a square matrix and PyTorch raises no error: the product has the "
         "right shape and the wrong numbers. Axes that are known only by position make such slips "
         "easy to write and hard to see. This part counts what products cost, and then gives the "
         "axes names.")
    a_product_contracts_one_axis()
    a_batched_product_is_one_folded_product()
    a_batch_on_both_sides_cannot_fold()
    only_the_last_axis_is_special()
    a_forgotten_transpose_is_silent_on_squares()
    an_annotation_names_dtype_rank_and_sizes()
    a_bare_annotation_enforces_nothing()
    a_checker_makes_annotations_binding()
    one_pattern_serves_numpy_and_torch()
    einsum_sums_the_axes_left_out()
    an_ellipsis_stands_for_any_axes()
    einsum_checks_sizes_but_stretches_ones()
    reduce_names_the_axis_it_removes()
    reduce_takes_more_than_one_tensor()
    pooling_is_a_reduction()
    the_order_in_the_parentheses_matters()
    heads_share_a_small_matrix()
    repeat_copies_nothing()
    a_rearrange_layer_hides_the_input_size()
    einops_errors_repeat_the_pattern()


def a_product_contracts_one_axis() -> None:
    """A matrix product sums over the axis its sides share."""
    note("The left side ends with an axis that the right side begins with, here `hidden`. It is "
         "*contracted*: multiplied pair by pair and summed away. The others stay.")
    m, k, n = 16, 32, 2
    x: Float[Tensor, "token hidden"] = torch.ones(m, k)
    w: Float[Tensor, "hidden out"] = torch.ones(k, n)
    y: Float[Tensor, "token out"] = x @ w  # @inspect y.shape
    entries = set(y.flatten().tolist())  # @inspect entries
    assert tuple(y.shape) == (16, 2), "the outer axes stay"
    assert entries == {32.0}, "ones, summed along hidden"

    note("Each of the `m * n` entries takes `k` multiplications and `k` additions, the first of "
         "them to zero. So a product costs `2 * m * k * n` FLOPs, and PyTorch's counter agrees.")
    reported = flops(lambda: x @ w)  # @inspect reported as FLOP
    assert reported == 2 * m * k * n, "counted as by hand"
    row, narrow = torch.ones(1, 64), torch.ones(64, 8)  # @hide
    question("A product of shapes `(m, 64)` and `(64, 8)` costs `102400` "
             "FLOPs. What is `m`?",
             answer=102400 // flops(lambda: row @ narrow))


def plot_folding(batch: int, seq: int, rows: int, inner: int, out: int) -> Figure:  # @hide
    """A stack of products as it is written, above the single product as it is run."""
    fig = Figure(figsize=(7, 5.4), facecolor="none", layout="constrained")
    axes = fig.subplots()
    sheets, folded = f"{batch} x {seq} sheets of {rows} x", f"{batch * seq * rows} x"
    blue, green, gold = (BLUE, "#a9b2ee"), (GREEN, "#9ad6b8"), (GOLD, "#b98518")
    for left, width, colors in ((0, inner, blue), (128, out, green)):
        draw_sheets(axes, (left, 76), (width, rows), (batch, seq), colors)
        for band in range(batch * seq):
            axes.add_patch(patch((left, 4 + 1.6 * band), (width, 1.6), colors))
        axes.text(left, 73, f"{sheets} {width}", color=GREY, fontsize=9, va="top")
        axes.text(left, 1, f"{folded} {width}", color=GREY, fontsize=9, va="top")
    for bottom in (76, 12):
        axes.add_patch(patch((92, bottom), (out, inner), gold))
        axes.text(81, bottom + 16, "@", color=GREY, fontsize=14, ha="center", va="center")
        axes.text(110, bottom + 16, "=", color=GREY, fontsize=14, ha="center", va="center")
    axes.text(92, 73, f"{inner} x {out}", color=GREY, fontsize=9, va="top")
    axes.text(92, 9, f"{inner} x {out}", color=GREY, fontsize=9, va="top")
    axes.text(0, 134, "as written", color=GREY, fontsize=11, weight="bold")
    axes.text(0, 58, "as run", color=GREY, fontsize=11, weight="bold")
    axes.set(xlim=(-2, 190), ylim=(-6, 140), aspect="equal", facecolor="none")
    axes.set_axis_off()
    return fig


def draw_sheets(  # @hide
    axes: Axes, corner: tuple[float, float], size: tuple[int, int], stack: tuple[int, int],
    colors: tuple[str, str],
) -> None:
    """The sheets of a stack from back to front, one group for each example of the batch."""
    batch, seq = stack
    for sheet in reversed(range(batch * seq)):
        shift = 0.9 * sheet + 3 * (sheet // seq)
        axes.add_patch(patch((corner[0] + shift, corner[1] + shift), size, colors))


def patch(  # @hide
    corner: tuple[float, float], size: tuple[float, float], colors: tuple[str, str]
) -> Rectangle:
    """A filled rectangle with a light edge."""
    return Rectangle(corner, *size, facecolor=colors[0], edgecolor=colors[1], linewidth=0.5)


def a_batched_product_is_one_folded_product() -> None:
    """A product with leading axes means a loop and runs as one folded product."""
    note("The leading axes are kept: what `w` does to a vector happens for every example of the "
         "batch and every token of the sequence. In meaning that is a loop over matrices.")
    batch, seq, rows, inner, out = 4, 8, 16, 32, 2
    x = whole_numbers(batch, seq, rows, inner)
    w: Float[Tensor, "inner out"] = whole_numbers(inner, out)
    y: Float[Tensor, "b s row out"] = x @ w  # @inspect y.shape
    looped = torch.zeros(batch, seq, rows, out)
    for b, s in np.ndindex(batch, seq):
        looped[b, s] = x[b, s] @ w
    assert tuple(y.shape) == (4, 8, 16, 2), "leading axes kept"
    assert torch.equal(y, looped), "the loop gives the same"

    note("In fact nothing loops. All vectors along the last axis are stacked into one tall "
         "matrix, and the counter finds a single `mm`, the plain product of two matrices.")
    folded = (x.reshape(-1, inner) @ w).view(batch, seq, rows, out)
    reported = flops_by_operation(lambda: x @ w)  # @inspect reported as FLOP
    tall = batch * seq * rows  # @inspect tall
    by_hand = 2 * tall * inner * out  # @inspect by_hand as FLOP
    assert torch.equal(y, folded), "folded, multiplied, unfolded"
    assert reported == {"aten.mm": by_hand}, "one product, counted by hand"
    assert by_hand == 65536, "the product in full"
    figure(plot_folding(batch, seq, rows, inner, out),
           caption="The same product, as written and as run. Every sheet becomes a band of the "
                   "tall matrix, drawn flatter than it is.",
           alt="Above, a stack of wide sheets in groups by batch, times one narrow matrix, gives "
               "a stack of thin sheets. Below, one tall matrix made of as many bands, times the "
               "same narrow matrix, gives one tall thin matrix.")
    left, right = torch.ones(2, 5, 6, 10), torch.ones(10, 3)  # @hide
    question("How many FLOPs does `x @ w` cost for `x` of shape "
             "`(2, 5, 6, 10)` and `w` of shape `(10, 3)`?",
             answer=flops(lambda: left @ right), unit="FLOP")


def a_batch_on_both_sides_cannot_fold() -> None:
    """With a batch on both sides nothing folds, and the FLOPs stay the same."""
    note("If every example brings a right side of its own, there is no common `w` to stack the "
         "vectors for. PyTorch then runs `bmm`, a batch of products in one call.")
    x: Float[Tensor, "b s row inner"] = whole_numbers(4, 8, 16, 32)
    own: Float[Tensor, "b s inner out"] = whole_numbers(4, 8, 32, 2)
    shared = flops_by_operation(lambda: x @ own[0, 0])  # @inspect shared
    separate = flops_by_operation(lambda: x @ own)  # @inspect separate
    assert shared == {"aten.mm": 65536}, "one tall product"
    assert separate == {"aten.bmm": 65536}, "many products, as many FLOPs"
    question("The FLOPs stay the same, but the bytes do not. How many *more* "
             "have to be read when `16` examples bring a `float32` right side "
             "of shape `(512, 512)` each, instead of sharing one?",
             answer=(16 - 1) * torch.ones(512, 512).nbytes, unit="B")


def only_the_last_axis_is_special() -> None:
    """To a product, every axis but the last is just another batch axis."""
    note("Four axes invite stories about what each of them does. The product knows one story: the "
         "last axis is summed over, and all others are repeated over.")
    misbelief("In `x` of shape `(4, 8, 16, 32)` the axes are batch, token, and two axes of the "
              "token itself.",
              "A token is a vector, and only the last axis is contracted. The third is one more "
              "axis to repeat the product over.")
    note("If the third axis played a part of its own in `x @ w`, swapping it with the first would "
         "disturb the result. It only swaps the result in the same way.")
    x: Float[Tensor, "a b c hidden"] = whole_numbers(4, 8, 16, 32)
    w: Float[Tensor, "hidden out"] = whole_numbers(32, 2)
    y: Float[Tensor, "a b c out"] = x @ w
    swapped = x.transpose(0, 2) @ w  # @inspect swapped.shape
    assert tuple(swapped.shape) == (16, 8, 4, 2), "only hidden is gone"
    assert torch.equal(swapped, y.transpose(0, 2)), "swapped, nothing else"
    question("For the same `x` and a `v` of shape `(8, 5)`, what is the shape "
             "of `x.transpose(1, 3) @ v`?",
             answer=tuple((x.transpose(1, 3) @ torch.ones(8, 5)).shape))


def a_forgotten_transpose_is_silent_on_squares() -> None:
    """A forgotten transpose raises an error, except on square matrices."""
    note("Attention compares every token of a sequence with every other: the sequence, times its "
         "own transpose over the last two axes.")
    x: Float[Tensor, "batch seq hidden"] = torch.ones(2, 2, 3)
    y = x @ x.transpose(-2, -1)  # @inspect y.shape
    assert tuple(y.shape) == (2, 2, 2), "batch, token, token"
    entries = set(y.flatten().tolist())  # @inspect entries
    assert entries == {3.0}, "each a sum over hidden"

    note("Leave the transpose out, and these sizes give you away.")
    error = message_of(lambda: x @ x)  # @inspect error
    assert "Expected size for first two" in error, "caught by the sizes"

    note("When the sequence is as long as the vectors are wide, nothing does.")
    square = torch.arange(27.0).view(3, 3, 3)
    right = square @ square.transpose(-2, -1)  # @inspect right[0]
    wrong = square @ square  # @inspect wrong[0]
    assert right.shape == wrong.shape, "the shapes agree"
    assert not torch.equal(right, wrong), "the numbers do not"
    note("Advice for tests, then: give every axis a size of its own. As for the code, `-2, -1` "
         "does not say which axes are meant. Names would, and the rest of this part gives them.")
    shapes = (2, 4, 4), (4, 4, 2), (2, 4, 8), (1, 8, 4), (3, 8, 8)  # @hide
    tried = [torch.ones(shape) for shape in shapes]  # @hide
    errors = [message_of(partial(torch.matmul, t, t)) for t in tried]  # @hide
    question("For how many of the shapes `(2, 4, 4)`, `(4, 4, 2)`, "
             "`(2, 4, 8)`, `(1, 8, 4)` and `(3, 8, 8)` of `x` does `x @ x` "
             "raise no error?",
             answer=errors.count(""))


def an_annotation_names_dtype_rank_and_sizes() -> None:
    """A jaxtyping annotation states dtype, rank and the names of the axes."""
    note("`Float[Tensor, \"batch seq heads hidden\"]` describes a tensor of floats with an axis "
         "for each name [@jaxtyping]. It says what a comment would say, and it can be asked "
         "whether a tensor fits.")
    names: Any = Float[Tensor, "batch seq heads hidden"]
    x = torch.ones(2, 2, 1, 3)
    fits = [isinstance(value, names) for value in (x, x[0], x.int())]  # @inspect fits
    assert fits == [True, False, False], "itself, an axis less, integers"

    note("A name used twice must stand for one size. Inside this book an annotation on a variable "
         "is checked in that way when the page is built.")
    square: Any = Float[Tensor, "n n"]
    even, uneven = torch.ones(3, 3), torch.ones(3, 4)
    assert isinstance(even, square), "one size for both"
    assert not isinstance(uneven, square), "two sizes for one name"

    note("The name notwithstanding, the package does not need JAX.")
    needed = metadata.requires("jaxtyping") or []  # @measure needed
    jax = [package for package in needed if package.startswith("jax")]
    assert len(jax) == 0, "JAX is not required"
    values = [torch.ones(1, 1), even.double(), torch.ones(9)]  # @hide
    values += [even.int(), torch.ones(2, 3) @ torch.ones(3, 2)]  # @hide
    question("How many of `torch.ones(1, 1)`, `torch.ones(3, 3).double()`, "
             "`torch.ones(9)`, `torch.ones(3, 3).int()` and "
             "`torch.ones(2, 3) @ torch.ones(3, 2)` fit "
             "`Float[Tensor, \"n n\"]`?",
             answer=sum(isinstance(value, square) for value in values))


def a_bare_annotation_enforces_nothing() -> None:
    """An annotation by itself enforces nothing."""
    note("Python stores an annotation and moves on. Here a tensor with an axis too many walks in, "
         "and a tensor that contradicts the annotation walks out.")

    def project(
        x: Float[Tensor, "b d"], w: Float[Tensor, "d k"]
    ) -> Float[Tensor, "b k"]:
        return x @ w

    y = project(torch.ones(5, 2, 3), torch.ones(3, 4))  # @inspect y.shape
    promised: Any = project.__annotations__["return"]
    assert tuple(y.shape) == (5, 2, 4), "computed without complaint"
    assert not isinstance(y, promised), "not what the annotation says"
    question("Now the first argument has an axis too few: what is the shape "
             "of `project(torch.ones(7), torch.ones(7, 4))`?",
             answer=tuple(project(torch.ones(7), torch.ones(7, 4)).shape))


def instance_checker(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refusing arguments and results that do not fit their annotation."""
    hints = function.__annotations__

    def refuse_others(values: dict[str, Any]) -> None:
        for name, value in values.items():
            hint = hints.get(name, Any)
            if hint is not Any and not isinstance(value, hint):
                raise TypeError(f"{name} is not {hint}")

    def checked(*args: Any, **kwargs: Any) -> Any:
        refuse_others(signature(function).bind(*args, **kwargs).arguments)
        result = function(*args, **kwargs)
        refuse_others({"return": result})
        return result

    return checked


def a_checker_makes_annotations_binding() -> None:
    """jaxtyped and a runtime checker make annotations binding."""
    note("Decorate the function, and the same annotations are checked at every call.")
    misbelief("Such annotations are documentation only; nothing is ever enforced.",
              "Not by Python. `jaxtyped` with a runtime checker enforces dtype, rank, and one "
              "size for each name across arguments and result.")
    note("Beartype and typeguard are the usual checkers [@jaxtyping_checking]. A small one is "
         "enough to see it work: `instance_checker` asks `isinstance` of every argument and of "
         "the result.")

    @jaxtyped(typechecker=instance_checker)
    def project(
        x: Float[Tensor, "b d"], w: Float[Tensor, "d k"], turn: bool = False
    ) -> Float[Tensor, "b k"]:
        return (x @ w).t() if turn else x @ w

    x, w = torch.ones(2, 3), torch.ones(3, 4)
    size = message_of(lambda: project(x, torch.ones(7, 4)))  # @inspect size
    rank = message_of(lambda: project(torch.ones(5, 2, 3), w))
    dtype = message_of(lambda: project(x.int(), w))
    result = message_of(lambda: project(x, w, turn=True))
    assert torch.equal(project(x, w), x @ w), "a good call passes"
    assert "checking parameter 'w'" in size, "two sizes for one name"
    assert "checking parameter 'x'" in rank, "an axis too many"
    assert "checking parameter 'x'" in dtype, "integers for floats"
    assert "checking the return value" in result, "axes the wrong way round"
    def passes(n: int) -> bool:  # @hide
        w = torch.ones(3, n)
        return message_of(lambda: project(x, w, turn=True)) == ""

    question("`project(x, torch.ones(3, n), turn=True)` returns the axes the "
             "wrong way round, and for a single `n` the checker lets it pass. "
             "Which?",
             answer=next(n for n in range(1, 9) if passes(n)))


def one_pattern_serves_numpy_and_torch() -> None:
    """An einops pattern says what happens to each axis, in NumPy as in PyTorch."""
    note("Einops moves, splits, joins and reduces axes by name [@rogozhnikov2022]. The idea goes "
         "back to the summation convention of 1916, by which an index that appears twice is "
         "summed over [@einstein1916]. In a pattern, inputs stand left of the arrow and outputs "
         "right.")
    image: Float[Tensor, "h w c"] = torch.randn(3, 3, 9)
    old: Float[Tensor, "c h w"] = image.permute(2, 0, 1)
    new: Float[Tensor, "c h w"] = rearrange(image, "h w c -> c h w")  # @inspect new.shape
    assert tuple(new.shape) == (9, 3, 3), "channels come first"
    assert torch.equal(new, old), "old way, new way"

    note("The pattern belongs to no framework. The same call takes a NumPy array and returns one.")
    array = rearrange(image.numpy(), "h w c -> c h w")
    assert type(array) is np.ndarray, "NumPy in, NumPy out"
    assert np.array_equal(array, new.numpy()), "the same numbers"
    question("Which four numbers must `x.permute` get to do what "
             "`rearrange(x, \"a b c d -> d a c b\")` does?",
             answer=tuple("abcd".index(name) for name in "dacb"))


def einsum_sums_the_axes_left_out() -> None:
    """einsum iterates over the axes named in the output and sums over the others."""
    note("The attention scores again, the old way and the new. The pattern says what is compared "
         "with what, and no index is negative.")
    x: Float[Tensor, "batch query hidden"] = whole_numbers(2, 3, 4)
    y: Float[Tensor, "batch key hidden"] = whole_numbers(2, 5, 4)
    pattern = "batch query hidden, batch key hidden -> batch query key"
    old: Float[Tensor, "batch query key"] = x @ y.transpose(-2, -1)
    new: Float[Tensor, "batch query key"] = einsum(x, y, pattern)  # @inspect new
    assert torch.equal(new, old), "old way, new way"

    note("Read it as loops. Every name in the output is a loop over places to fill; every name "
         "left out, here `hidden`, is a sum inside.")
    looped = torch.zeros(2, 3, 5)
    for batch, query, key in np.ndindex(2, 3, 5):
        looped[batch, query, key] = (x[batch, query] * y[batch, key]).sum()
    assert tuple(new.shape) == (2, 3, 5), "a loop for each name kept"
    assert torch.equal(new, looped), "a sum for each name left out"

    note("The rule does not ask for a product. With one input, leaving a name out is just a sum.")
    summed = einsum(x, "batch query hidden -> batch query")  # @inspect summed
    assert torch.equal(summed, x.sum(-1)), "hidden is summed away"
    a = torch.ones(3, 4)  # @hide
    question("`a` and `b` are matrices of ones, both of shape `(3, 4)`. What "
             "is `einsum(a, b, \"row col, row col ->\")`?",
             answer=einsum(a, a, "row col, row col ->").item())


def an_ellipsis_stands_for_any_axes() -> None:
    """An ellipsis stands for any leading axes, and they broadcast."""
    note("Code that should not care how many batch axes there are writes `...` for them. They are "
         "matched from the right, as in any broadcast, so the inputs may even have different "
         "numbers of them.")
    x = whole_numbers(5, 2, 3, 4)
    y = whole_numbers(2, 6, 4)
    pattern = "... query hidden, ... key hidden -> ... query key"
    scores = einsum(x, y, pattern)  # @inspect scores.shape
    old = x @ y.transpose(-2, -1)
    assert tuple(scores.shape) == (5, 2, 3, 6), "leading axes broadcast"
    assert torch.equal(scores, old), "old way, new way"
    x, y = torch.ones(7, 1, 3, 4), torch.ones(5, 6, 4)  # @hide
    question("With the same pattern, what shape do the scores of `x` of shape "
             "`(7, 1, 3, 4)` and `y` of shape `(5, 6, 4)` have?",
             answer=tuple(einsum(x, y, pattern).shape))


def einsum_checks_sizes_but_stretches_ones() -> None:
    """einsum refuses sizes that disagree, unless one of them is one."""
    note("It helps to think of einsum as a matrix product that keeps the books: a name with two "
         "sizes is an error. The message speaks of a *subscript*, a single letter: einops calls "
         "PyTorch's own `einsum`, which does not know the names.")
    x, wide = torch.ones(2, 3, 4), torch.ones(2, 3, 5)
    pattern = "batch query hidden, batch key hidden -> batch query key"
    error = message_of(lambda: einsum(x, wide, pattern))  # @inspect error
    assert "does not broadcast" in error, "the sizes disagree"
    assert "hidden" not in error, "the name is lost"

    note("The books have a gap. An axis of size `1` is stretched without a word, where `@` "
         "refuses. That is broadcasting, and it may not be what was meant.")
    thin = torch.ones(2, 3, 1)
    entries = set(einsum(x, thin, pattern).flatten().tolist())
    refused = message_of(lambda: x @ thin.transpose(-2, -1))  # @inspect refused
    assert entries == {4.0}, "summed over the stretched axis"
    assert "RuntimeError" in refused, "the product refuses"
    x, y = torch.ones(2, 3, 6), 2 * torch.ones(2, 5, 1)  # @hide
    question("With the same pattern: `x` holds ones in shape `(2, 3, 6)`, `y` "
             "holds twos in shape `(2, 5, 1)`. What is every entry of the "
             "result?",
             answer=einsum(x, y, pattern).unique().item())


def reduce_names_the_axis_it_removes() -> None:
    """reduce() aggregates the axis that disappears from its pattern."""
    note("To *reduce* an axis is to make one number of all that lies along it. The pattern says "
         "which: the axis is there on the left of the arrow and gone on the right.")
    x: Float[Tensor, "batch seq hidden"] = whole_numbers(2, 3, 4)
    old: Float[Tensor, "batch seq"] = x.mean(dim=-1)
    new: Float[Tensor, "batch seq"] = reduce(x, "... hidden -> ...", "mean")  # @inspect new
    assert torch.equal(new, old), "old way, new way"
    assert tuple(new.shape) == (2, 3), "hidden is gone"

    misbelief("`reduce(x, \"... hidden -> ...\", \"sum\")` is the einops form of `x.mean(-1)`.",
              "It is the form of `x.sum(-1)`. Sum and mean differ by the length of the axis, as "
              "one assert would have told.")
    ones = torch.ones(2, 3, 4)
    total = reduce(ones, "... hidden -> ...", "sum")
    mean = ones.mean(-1)  # @inspect total, mean
    assert total.tolist() == [[4, 4, 4], [4, 4, 4]], "the sum of ones"
    assert mean.tolist() == [[1, 1, 1], [1, 1, 1]], "the mean of ones"
    assert torch.equal(total, ones.sum(-1)), "the true old way"
    box, pattern = torch.ones(4, 5, 7), "batch seq hidden -> hidden"  # @hide
    sums = reduce(box, pattern, "sum")  # @hide
    means = reduce(box, pattern, "mean")  # @hide
    question("A tensor of shape `(4, 5, 7)` is reduced by "
             "`batch seq hidden -> hidden`. By which factor do its sum and "
             "its mean differ?",
             answer=(sums / means).unique().item())


def reduce_takes_more_than_one_tensor() -> None:
    """reduce() takes a name, a function, or a list of tensors."""
    note("The last argument says how to aggregate: one of seven names, or a function that takes "
         "the tensor and the axes to remove.")
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    each = "row col -> row"
    sums, means = reduce(x, each, "sum"), reduce(x, each, "mean")
    most, least = reduce(x, each, "max"), reduce(x, each, "min")
    products = reduce(x, each, "prod")  # @inspect sums, means, products
    some, every = reduce(x > 3, each, "any"), reduce(x > 3, each, "all")
    spread = reduce(x, each, lambda t, axes: t.amax(axes) - t.amin(axes))
    assert sums.tolist() == [6, 15], "the sum of each row"
    assert means.tolist() == [2, 5], "its mean value"
    assert most.tolist() == [3, 6], "its largest value"
    assert least.tolist() == [1, 4], "its smallest value"
    assert products.tolist() == [6, 120], "the product of its values"
    assert some.tolist() == every.tolist() == [False, True], "any and all"
    assert spread.tolist() == [2, 2], "a function of our own"

    misbelief("`reduce` works on one tensor only.",
              "A list of equal shapes is stacked on a new first axis, which the pattern can then "
              "reduce.")
    total = reduce([x, 10 * x], "copy row col -> row col", "sum")  # @inspect total
    assert torch.equal(total, 11 * x), "two tensors, added"
    copies = [x, 2 * x, 3 * x]  # @hide
    question("With the same `x`, what does "
             "`reduce([x, 2 * x, 3 * x], \"copy row col -> copy\", \"max\")` "
             "hold?",
             answer=reduce(copies, "copy row col -> copy", "max").tolist())


def pooling_is_a_reduction() -> None:
    """Average pooling is a reduction over the inside of each tile."""
    note("*Average pooling* replaces each tile of a picture by its mean. The library wants a batch "
         "of pictures with channels, so a single picture first gets two axes of size `1`. The old "
         "way adds them one by one; a pattern writes them where they go.")
    picture: Float[Tensor, "h w"] = whole_numbers(9, 9)
    old = picture.unsqueeze(0).unsqueeze(0)  # @inspect old.shape
    new = rearrange(picture, "h w -> 1 1 h w")
    assert tuple(old.shape) == (1, 1, 9, 9), "batch and channel of one"
    assert torch.equal(new, old), "old way, new way"

    note("Parentheses split an axis: `(h tile)` reads `h` groups of `tile` neighbours. Leave the "
         "tile's axes out on the right, and what remains is average pooling.")
    pattern = "b c (h tile_h) (w tile_w) -> b h w c"
    pooled = reduce(new, pattern, "mean", tile_h=3, tile_w=3)  # @inspect pooled.shape
    library = F.avg_pool2d(new, kernel_size=3)
    by_pattern, by_library = pooled.flatten(), library.flatten()
    assert tuple(pooled.shape) == (1, 3, 3, 1), "a mean for each tile"
    assert torch.allclose(by_pattern, by_library), "the library's pooling"
    many = torch.ones(8, 3, 32, 32)  # @hide
    tiled = reduce(many, pattern, "mean", tile_h=4, tile_w=8)  # @hide
    question("Into which shape does the same pattern reduce a batch of shape "
             "`(8, 3, 32, 32)` with `tile_h=4` and `tile_w=8`?",
             answer=tuple(tiled.shape))


def the_order_in_the_parentheses_matters() -> None:
    """Inside parentheses the first name is the outer, slowly changing one."""
    note("Split the last axis into heads. With `(heads hidden)`, where `heads` is the outer "
         "factor, each head gets a run of neighbours. With the names the other way round the "
         "heads take turns. The shapes do not tell the difference.")
    x: Float[Tensor, "batch seq joint"] = torch.arange(48.0).view(2, 3, 8)
    split = "... (heads hidden) -> ... heads hidden"
    deal = "... (hidden heads) -> ... heads hidden"
    halves = rearrange(x, split, heads=2)  # @inspect halves[0, 0]
    turns = rearrange(x, deal, heads=2)  # @inspect turns[0, 0]
    runs, strided = halves[0, 0].tolist(), turns[0, 0].tolist()
    assert tuple(halves.shape) == (2, 3, 2, 4), "two heads of four"
    assert turns.shape == halves.shape, "and two, either way"
    assert runs == [[0, 1, 2, 3], [4, 5, 6, 7]], "heads as outer factor"
    assert strided == [[0, 2, 4, 6], [1, 3, 5, 7]], "heads as inner factor"
    assert same_storage(x, halves), "a view, no number moved"

    note("One factor may be left to einops: whatever remains of the axis, even if that is `1`.")
    image = torch.randn(3, 3, 9)
    parts = rearrange(image, "c (r p) w -> c r p w", p=3)  # @inspect parts.shape
    assert tuple(parts.shape) == (3, 1, 3, 9), "one group of three"
    v = torch.arange(12)  # @hide
    question("For `v = torch.arange(12)`, what is "
             "`rearrange(v, \"(b a) -> a b\", a=3)[2, 1]`?",
             answer=rearrange(v, "(b a) -> a b", a=3)[2, 1].item())


def heads_share_a_small_matrix() -> None:
    """Split, multiply each head, join: the same as one block-diagonal matrix."""
    note("In attention one axis often carries several *heads* side by side. Split them off, "
         "transform each by the same small matrix, and join them again.")
    x: Float[Tensor, "batch seq joint"] = whole_numbers(2, 3, 8)
    w: Float[Tensor, "hidden1 hidden2"] = whole_numbers(4, 4)
    split = "... (heads hidden1) -> ... heads hidden1"
    heads = rearrange(x, split, heads=2)
    mixed = einsum(heads, w, "... hidden1, hidden1 hidden2 -> ... hidden2")
    joined = rearrange(mixed, "... heads hidden2 -> ... (heads hidden2)")  # @inspect joined.shape
    assert tuple(heads.shape) == (2, 3, 2, 4), "two heads of four"
    assert joined.shape == x.shape, "joined to the old shape"

    note("All in all this is a linear map of the whole axis. Its matrix has `w` on the diagonal, "
         "once per head, and zeros elsewhere. The heads spend no FLOPs on those zeros.")
    dense: Float[Tensor, "joint joint"] = block_diag(w, w)  # @inspect dense
    assert torch.equal(joined, x @ dense), "the same map"
    split_cost = flops(lambda: heads @ w)  # @inspect split_cost as FLOP
    dense_cost = flops(lambda: x @ dense)  # @inspect dense_cost as FLOP
    assert dense_cost == 2 * split_cost, "zeros included, twice the FLOPs"
    row, apart = torch.ones(1, 512), torch.ones(8, 64)  # @hide
    big, small = torch.eye(512), torch.eye(64)  # @hide
    question("An axis of `512` numbers carries `8` heads. By which factor "
             "does the block-diagonal matrix cost more FLOPs than splitting "
             "the heads off?",
             answer=flops(lambda: row @ big) // flops(lambda: apart @ small),
             unit="times")


def repeat_copies_nothing() -> None:
    """repeat() along a new axis copies nothing, so one write shows in every copy."""
    note("A name that is new on the right of the arrow repeats the tensor along a new axis. "
         "Nothing is repeated in memory: with a stride of `0`, every index along that axis lands "
         "on the same number.")
    picture: Float[Tensor, "h w"] = torch.zeros(9, 9)
    copies: Float[Tensor, "c h w"] = repeat(picture, "h w -> c h w", c=3)
    memory = copies.untyped_storage().nbytes()  # @inspect copies.nbytes as B, memory as B
    assert tuple(copies.shape) == (3, 9, 9), "three pictures to look at"
    assert copies.stride() == (0, 9, 1), "no step along the new axis"
    assert copies.nbytes == 3 * memory, "one in memory"

    note("Write to one element of one copy, and it changes in all copies and in the original. A "
         "write to the tensor as a whole PyTorch refuses; this one it lets pass.")
    copies[0, 4, 4] = 7
    error = message_of(lambda: copies.add_(1))  # @inspect error
    assert copies[:, 4, 4].tolist() == [7, 7, 7], "every copy changed"
    assert picture[4, 4].item() == 7, "and the original"
    assert "a single memory location" in error, "the whole is refused"

    note("If the copies are to be written to, make them real.")
    real = copies.clone(memory_format=torch.contiguous_format)
    real[0, 4, 4] = 8
    assert real[:, 4, 4].tolist() == [8, 7, 7], "only one changed"
    assert real.stride() == (81, 9, 1), "a stride of one whole picture"
    question("What are the strides of "
             "`repeat(picture, \"h w -> h c w\", c=5)`?",
             answer=repeat(picture, "h w -> h c w", c=5).stride())


def a_rearrange_layer_hides_the_input_size() -> None:
    """Rearrange is a layer too, and hides which input sizes work."""
    note("As a layer, the pattern says what is flattened between the convolutions and the linear "
         "layer. It does not say that the linear layer counts on `16 * 5 * 5` numbers. Pictures "
         "of `32x32` produce them; others fail, and fail a layer late.")
    network = nn.Sequential(
        nn.Conv2d(3, 6, kernel_size=5), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, kernel_size=5), nn.MaxPool2d(2),
        Rearrange("b c h w -> b (c h w)"),
        nn.Linear(16 * 5 * 5, 120), nn.ReLU(), nn.Linear(120, 10),
    )
    scores = network(torch.randn(2, 3, 32, 32))  # @inspect scores.shape
    assert tuple(scores.shape) == (2, 10), "scores for each picture"
    small = torch.randn(2, 3, 28, 28)
    late = message_of(lambda: network(small))  # @inspect late
    assert "(2x256 and 400x120)" in late, "fails in the linear layer"

    def works(size: int) -> bool:
        picture = torch.randn(1, 3, size, size)
        return message_of(lambda: network(picture)) == ""

    note("A few larger sizes slip through, because pooling drops a remainder at the edge. None of "
         "this is visible in the code.")
    sizes = [size for size in range(16, 65) if works(size)]  # @inspect sizes
    assert sizes == [32, 33, 34, 35], "the sizes that run"

    note("Advice: write the assumption into the pattern. Then the layer that makes it reports it.")
    network[4] = Rearrange("b c h w -> b (c h w)", h=5, w=5)
    here = message_of(lambda: network(small))  # @inspect here
    assert "Shape mismatch, 4 != 5" in here, "fails where it was assumed"
    question("How many numbers must the first linear layer count on for "
             "pictures of `40x40`?",
             answer=network[:4](torch.randn(1, 3, 40, 40)).numel())


def einops_errors_repeat_the_pattern() -> None:
    """An einops error repeats the pattern, the shape and the sizes it was given."""
    note("Whether names make code easier to read is a matter of taste. What they do for error "
         "messages can be run: each of these slips is caught where it is made, in the words of "
         "the pattern.")
    x = torch.ones(2, 3, 9)
    pattern = "... (heads hidden) -> ... heads hidden"
    uneven = message_of(lambda: rearrange(x, pattern, heads=2))  # @inspect uneven
    forgotten = message_of(lambda: rearrange(x, "b s h -> b h"))  # @inspect forgotten
    missing = message_of(lambda: rearrange(x, "b s -> s b"))  # @inspect missing
    assert "can't divide axis of length 9" in uneven, "heads that misfit"
    assert pattern in uneven, "the pattern is quoted"
    assert str(x.shape) in uneven, "so is the shape"
    assert "should be on both): {'s'}" in forgotten, "an axis that got lost"
    assert "expected 2 dims. Received 3" in missing, "an axis nobody named"
    def fits(heads: int) -> bool:  # @hide
        wide = torch.ones(2, 3, 12)
        return message_of(lambda: rearrange(wide, pattern, heads=heads)) == ""

    question("For how many values of `heads` does the pattern fit a last axis "
             "of length `12`?",
             answer=sum(fits(heads) for heads in range(1, 13)))


# --- counting FLOPs


def counting_flops() -> None:
    """Counting FLOPs."""
    note(
        "Transpose the largest matrix you have, convert it to another format, compare it with "
        "zero. Every float in it has been touched, and no FLOP has been spent. What "
        "counts is a convention, and it pays to know it exactly. So everything here is "
        "counted twice: by a formula, and by a machine that was not shown the formula."
    )
    only_arithmetic_counts()
    a_product_costs_two_m_k_n()
    the_missing_additions_do_not_matter()
    a_forward_pass_costs_two_per_parameter()
    not_everything_else_is_linear()
    cheap_in_flops_is_not_cheap_in_time()
    budgets_that_made_history()
    a_rate_times_a_time_is_work()


class Counted:
    """A number that writes every addition and multiplication done with it into a tally."""

    def __init__(self, value: float, tally: list[str]) -> None:
        self.value, self.tally = value, tally

    def __add__(self, other: "Counted") -> "Counted":
        self.tally.append("+")
        return Counted(self.value + other.value, self.tally)

    def __mul__(self, other: "Counted") -> "Counted":
        self.tally.append("*")
        return Counted(self.value * other.value, self.tally)

    def __lt__(self, other: "Counted") -> bool:
        return self.value < other.value


def counted(
    tally: list[str], rows: int, cols: int
) -> npt.NDArray[np.object_]:
    """A matrix of random numbers that share one tally."""
    numbers = [Counted(x, tally) for x in torch.randn(rows * cols).tolist()]
    return np.array(numbers, dtype=object).reshape(rows, cols)


def only_arithmetic_counts() -> None:
    """A FLOP is an addition or a multiplication; handling floats costs none."""
    note(
        "To see what is counted, take numbers that keep a tally of what is done with them. NumPy "
        "can hold such objects in a matrix and calls their own `+` and `*`. Adding two matrices "
        "takes one addition for each entry."
    )
    tally: list[str] = []
    a = counted(tally, 3, 5)
    total = a + a
    assert total.shape == (3, 5), "a sum for each entry"
    assert tally == ["+"] * 3 * 5, "one addition for each"
    note("Turn the matrix over, copy it, compare it with itself, and the tally stays empty.")
    tally.clear()
    turned, smaller = a.T.copy(), a < a[::-1]
    assert turned.shape == smaller.T.shape == (5, 3), "moved, compared"
    assert tally == [], "no arithmetic was done"
    misbelief(
        "A FLOP is any operation that involves floating-point numbers.",
        "Copies, casts and comparisons involve nothing else and are not counted. Only arithmetic "
        "is; PyTorch's counter takes the same view.",
    )
    x = torch.randn(3, 5)
    handled = flops(lambda: (x.t().contiguous(), x.bfloat16(), x > 0))
    assert handled == 0, "copied, cast, compared"
    tally.clear()  # @hide
    p, q = counted(tally, 4, 6), counted(tally, 4, 6)  # @hide
    smaller = (p * q + p).T < q.T  # @hide
    question(
        "`p` and `q` have `4 × 6` numbers each. What does the tally count in "
        "`(p * q + p).T < q.T`?",
        answer=len(tally), unit="FLOP",
    )


def a_product_costs_two_m_k_n() -> None:
    """A product of m × k by k × n costs 2mkn FLOPs, and in truth a little less."""
    note(
        "Each of the $mn$ entries is a sum of $k$ products: $k$ multiplications and, since the "
        "first has nothing to be added to, $k-1$ additions. The tally agrees to the last one."
    )
    m, k, n = 3, 5, 7
    tally: list[str] = []
    product = counted(tally, m, k) @ counted(tally, k, n)
    times, plus = tally.count("*"), tally.count("+")            # @inspect times, plus
    assert product.shape == (m, n) == (3, 7), "the inner length is gone"
    assert times == m * k * n == 105, "multiplications"
    assert plus == m * (k - 1) * n == 84, "additions"
    note(
        "The usual formula charges for the additions that do not happen as well, which makes it "
        "easy to remember: twice the product of the lengths. It also suits the hardware, whose "
        "*fused multiply-add* does both in one step and counts as `2` FLOPs."
    )
    x, w = torch.randn(m, k), torch.randn(k, n)
    work = flops(lambda: x @ w)                                 # @inspect work as FLOP
    assert work == 2 * m * k * n == 210, "as PyTorch counts"
    assert work - (times + plus) == m * n == 21, "one too many per entry"
    tally.clear()  # @hide
    outer = counted(tally, 4, 1) @ counted(tally, 1, 6)  # @hide
    question(
        "A column of `4` numbers times a row of `6` is a product, too. How "
        "many operations does it really take, and how many does the formula "
        "charge?",
        answer=[len(tally), flops(lambda: torch.ones(4, 1) @ torch.ones(1, 6))],
        unit="FLOP",
    )


def the_missing_additions_do_not_matter() -> None:
    """At any size that matters, one addition per entry is nothing."""
    note("The formula charges one addition too many for each entry. Is that worth correcting?")
    b, d, k = 1024, 256, 64
    small = flops(lambda: torch.ones(b, d) @ torch.ones(d, k))  # @inspect small as FLOP
    assert small == 2 * 1024 * 256 * 64 == 33_554_432, "fits any laptop"
    exact = b * k * (2 * d - 1)                                 # @inspect exact as FLOP
    assert exact / small == 511 / 512, "the formula is a trifle high"
    note(
        "Now a product worth a GPU. Nothing is allocated for it here: on the device `meta` a "
        "tensor has a shape and no data, and the counter needs no more."
    )
    rows, inner, cols = 16384, 32768, 8192
    with torch.device("meta"):
        x: Float[Tensor, "row inner"] = torch.empty(rows, inner)
        w: Float[Tensor, "inner col"] = torch.empty(inner, cols)
    y: Float[Tensor, "row col"] = x @ w                         # @inspect y.shape
    work = flops(lambda: x @ w)                                 # @inspect work as FLOP
    assert work == 2 * rows * inner * cols, "formula and counter"
    assert work == 8_796_093_022_208, "the same, in digits"
    sizes = [t.nbytes / GiB for t in (x, w, y)]                 # @inspect sizes as GiB
    assert sizes == [2.0, 1.0, 0.5], "what it would take to run it"
    missing = work - rows * cols * (2 * inner - 1)              # @inspect missing as FLOP
    assert missing == 16384 * 8192, "one per entry, again"
    assert missing / work == 1 / 65536, "lost in any rounding"
    question(
        "How long must the inner length be for the missing additions to be "
        "just one hundredth of what the formula charges?",
        answer=next(k for k in range(1, 999) if 1 / (2 * k) <= 1 / 100),
    )


def a_forward_pass_costs_two_per_parameter() -> None:
    """A forward pass costs two FLOPs per parameter and row of data."""
    note(
        "In a stack of linear maps each weight meets each row of data once: a multiplication and "
        "an addition. What a row is depends on the model: a data point in regression, a token in "
        "a language model, whichever sequence of the batch it belongs to."
    )
    with torch.device("meta"):
        shapes = (64, 64), (64, 64), (64, 1)
        weights = [torch.empty(shape) for shape in shapes]
        points: Float[Tensor, "point width"] = torch.empty(1024, 64)
        tokens: Float[Tensor, "batch seq width"] = torch.empty(8, 128, 64)

    def forward(x: Tensor) -> Tensor:
        for w in weights:
            x = x @ w
        return x

    params = sum(w.numel() for w in weights)                    # @inspect params
    assert params == 2 * 64**2 + 64, "parameters"
    work = flops(lambda: forward(points))                       # @inspect work as FLOP
    assert work == 2 * 1024 * params, "data points times parameters"
    same = flops(lambda: forward(tokens))                       # @inspect same as FLOP
    assert same == work, "as many tokens, as many FLOPs"
    wide = torch.empty(1000, 3000, device="meta")  # @hide
    text = torch.empty(4, 250, 1000, device="meta")  # @hide
    work = flops(lambda: text @ wide)  # @hide
    question(
        "`4` sequences of `250` tokens pass through a linear map, and the "
        f"counter says `{work / 1e9:.0f}e9` FLOPs. How many weights has the "
        "map?",
        answer=wide.numel(), unit="weights",
    )


def not_everything_else_is_linear() -> None:
    """Apart from products, cost is not always linear in size."""
    misbelief(
        "Every operation other than a matrix product costs as much as its tensors are large.",
        "Elementwise ones do: one operation per entry. The scores of attention grow with the "
        "square of the sequence, a convolution multiplies by the size of its kernel, and sorting "
        "and factorizing grow faster than what they are given.",
    )
    note("*Attention* scores every token against every other, so twice the tokens are more than twice "
         "the work:")

    def scores(seq: int) -> int:
        q = torch.empty(seq, 64, device="meta")
        return flops(lambda: q @ q.t())

    assert scores(2048) == 4 * scores(1024), "twice the tokens"
    note("In a *convolution* each entry of the result is a sum over a whole kernel:")
    image, kernel = torch.randn(1, 3, 8, 8), torch.randn(4, 3, 3, 3)
    filtered = F.conv2d(image, kernel)                          # @inspect filtered.shape
    work = flops(lambda: F.conv2d(image, kernel))               # @inspect work as FLOP
    assert work / filtered.numel() == 2 * 3 * 3 * 3, "a kernel per output"
    note("*Sorting* does no arithmetic, so count comparisons. They, too, outgrow the list:")

    def comparisons(n: int) -> int:
        tally: list[str] = []

        def order(p: int, q: int) -> int:
            tally.append("<")
            return p - q

        sorted(torch.randperm(n).tolist(), key=cmp_to_key(order))
        return len(tally)

    growth = comparisons(4096) / comparisons(2048)              # @inspect growth as times
    assert 2.1 < growth < 2.3, "sorting twice as many"
    note(
        "The counter knows formulas for products, convolutions and attention; what is not on its "
        "list it reports as nothing. Even attention falls through when a device runs it with a "
        "kernel that the list lacks. Read a zero as *not known*."
    )
    svd = flops(lambda: torch.linalg.svd(torch.randn(64, 64)))
    assert svd == 0, "reported, not spent"
    q = torch.randn(1, 1, 16, 8)
    fused = flops(lambda: F.scaled_dot_product_attention(q, q, q))  # @measure fused as FLOP
    picture, square = torch.randn(1, 16, 8, 8), torch.randn(4, 16, 5, 5)  # @hide
    filtered = F.conv2d(picture, square)  # @hide
    question(
        "How many FLOPs does one output of a convolution cost that reads "
        "`16` channels with kernels of `5 × 5`?",
        answer=flops(lambda: F.conv2d(picture, square)) // filtered.numel(),
        unit="FLOP",
    )


def cheap_in_flops_is_not_cheap_in_time() -> None:
    """An operation with hardly any FLOPs can still take its share of the time."""
    note("Multiply a matrix by itself; then take the exponential of each of its entries.")
    n = 1024
    x = torch.randn(n, n)
    work = flops(lambda: x @ x)                                 # @inspect work as FLOP
    share = n * n / work                                        # @inspect share as %
    assert share == 1 / 2048, "one exponential per entry"
    note(
        "Count each exponential as one operation, which flatters it. Beside a product of the "
        "same matrix that is next to nothing. Then look at the clock:"
    )
    product = time_call(lambda: x @ x, repeats=5, patience=5)   # @stepover
    powers = time_call(x.exp, repeats=5, patience=5)            # @stepover
    time_share = powers.seconds / product.seconds               # @measure time_share as %
    assert share < time_share, "far more time than FLOPs"
    note(
        "An elementwise operation moves its input in and its output out to do one operation on "
        "each number. A product uses each number again and again."
    )
    moved = 2 * x.nbytes / n**2                                 # @inspect moved as B
    assert moved == 8.0, "bytes for one exponential"
    reuse = work / (3 * x.nbytes)                               # @inspect reuse as FLOP/B
    assert 170 < reuse < 171, "FLOPs for each byte of a product"
    misbelief(
        "For large matrices nothing is as expensive as the product.",
        "In FLOPs that is true. In time, operations that only pass over memory cost much more "
        "than their share of FLOPs, the more so the faster the multipliers are.",
    )
    narrow = torch.empty(1536, 1536, dtype=torch.bfloat16, device="meta")  # @hide
    question(
        "How many FLOPs for each byte of its three matrices does a square "
        "product do in `bfloat16`, at a width of `1536`?",
        answer=flops(lambda: narrow @ narrow) / (3 * narrow.nbytes),
        unit="FLOP/B",
    )


def budgets_that_made_history() -> None:
    """One training budget is published, one is guessed, one was written into an order."""
    note(
        "The GPT-3 paper tabulates `174,600` million parameters, `300` billion tokens and "
        "`3.14e23` FLOPs in all [@gpt3]. `6` FLOPs per parameter and token rebuild the last from "
        "the others."
    )
    gpt3 = 6 * 174.6e9 * 300e9                                  # @inspect gpt3 as FLOP
    assert 3.142e23 < gpt3 < 3.144e23, "the published total"
    rumour = 2e25                                               # @inspect rumour as FLOP
    ratio = rumour / gpt3                                       # @inspect ratio as times
    assert 63.6 < ratio < 63.7, "if it is true"
    misbelief(
        "Training GPT-4 took `2e25` FLOPs.",
        "The report on it withholds the compute [@gpt4]. Estimates from outside put it above "
        f"`1e25` [@epoch], some near `2e25`, {ratio:.0f} times GPT-3; no one has published the "
        "number.",
    )
    threshold, biological = 1e26, 1e23
    runs = threshold / gpt3                                     # @inspect runs as times
    assert 318 < runs < 319, "GPT-3 trainings up to the line"
    over = gpt3 / biological                                    # @inspect over as times
    assert 3.1 < over < 3.2, "GPT-3 is over the other one"
    misbelief(
        "In the United States, models trained with at least `1e26` FLOPs had to be reported.",
        "The order of `2023` said *greater than*, it counted integer or floating-point "
        "operations, and it set a second line at `1e23` for models trained primarily on "
        "biological sequence data [@eo14110]. It was revoked in `2025` [@eo14148].",
    )
    question(
        "How many trillion tokens bring a model of `1` billion parameters, "
        "trained on biological sequences, up to the line for such models?",
        answer=biological / (6 * 1e9) / 1e12, unit="trillion tokens",
    )


def a_rate_times_a_time_is_work() -> None:
    """A rate times a time is an amount of work, if the days are the days you mean."""
    note(
        "FLOPs are an amount, FLOP/s a rate; in speech and in capitals they sound the same. "
        "Advice: never write FLOPS. With the stroke written out, units multiply like numbers, as "
        "here for `8` cards at their dense peak, day and night for `14` days."
    )
    rate = dense_peak("H100 SXM", "bfloat16")                   # @inspect rate as FLOP/s
    assert rate / TERA == 989.5, "a tera is ten to the twelfth"
    fortnight = 8 * 14 * DAY * rate                             # @inspect fortnight as FLOP
    assert 9.574e21 < fortnight < 9.576e21, "nothing lost on the way"
    week = 8 * 7 * DAY * rate                                   # @inspect week as FLOP
    assert 4.787e21 < week < 4.789e21, "a number in circulation"
    misbelief(
        "`8` H100s deliver `4.788e21` FLOPs in `2` weeks.",
        "CS336 printed this number beside those words; its code multiplied by `7` days "
        "[@cs336], until the edition of 2026 added the missing factor [@cs336-2026]. One week at "
        "full peak happens to be two at half of it, so the slip and an MFU of `0.5` look the same.",
    )
    assert week == 0.5 * fortnight, "right by accident"
    older = dense_peak("A100 SXM 80GB", "bfloat16")  # @hide
    question(
        "How many days does one A100, at its dense `bfloat16` peak of "
        f"`{older / TERA:.0f}` teraFLOP/s, need for `1e21` FLOPs?",
        answer=1e21 / older / DAY, unit="days",
    )


# --- peaks, MFU and the roofline


def peaks_and_mfu() -> None:
    """Peaks, MFU and the roofline."""
    note(
        "One measurement makes a good utilization or a miserable one, depending on what it is "
        "divided by. A card has a peak for every number format, its datasheet prints some of "
        "them doubled, and a clock that is read too early, or started too early, spoils the "
        "rest."
    )
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
    the_roofline_tells_waiting_from_working()
    a_launch_returns_before_the_work_is_done()
    five_formats_are_measured_here()
    three_bad_measurements_are_repeated_here()
    larger_products_come_closer_to_the_peak()
    the_roof_is_measured_here()


def dense_peak(card: str, dtype: str) -> float:
    """The dense peak of a listed card, in FLOP/s."""
    rate = peak(CARDS[card], dtype)
    if rate is None:
        raise LookupError(f"{card} promises no rate for {dtype}")
    return rate


def every_peak_belongs_to_a_format() -> None:
    """A peak without its number format says nothing."""
    note("Ask for *the* peak of a card, and there are as many answers as there are formats:")
    formats = "float32", "tf32", "bfloat16"
    a100 = [dense_peak("A100 SXM 80GB", f) / TERA for f in formats]
    h100 = [dense_peak("H100 SXM", f) / TERA for f in formats]
    assert a100 == [19.5, 156.0, 312.0], "an A100, by format"
    assert h100 == [67.0, 494.5, 989.5], "an H100, by format"
    rows = zip(formats, a100, h100, strict=True)  # @hide
    note(
        "Dense peaks in TFLOP/s, from the datasheets [@nvidia-a100; @nvidia-h100]. `float32` "
        "means the ordinary units, the other lines the *tensor cores*, which multiply small "
        "blocks of matrices:\n\n| format | A100 SXM | H100 SXM |\n|---|---|---|\n"
        + "\n".join(f"| `{name}` | {a} | {h} |" for name, a, h in rows)
    )
    note(
        "Such numbers can be checked against the chip: multiprocessors, times FLOPs that each "
        "completes in a tick, times ticks per second. The A100 has `108` multiprocessors at "
        "`1.41` GHz [@nvidia-ampere]; the H100 SXM `132` at `1.83` GHz, or at `1.98` when the "
        "tensor cores rest [@nvidia-hopper]. For each card, `float32` and `bfloat16`:"
    )
    ampere = 108 * 128 * 1.41e9, 108 * 2048 * 1.41e9
    hopper = 132 * 256 * 1.98e9, 132 * 4096 * 1.83e9
    rebuilt = [round(rate / TERA, 1) for rate in ampere + hopper]
    assert rebuilt == [19.5, 311.9, 66.9, 989.4], "two rates of each"
    misbelief(
        "The peak of an A100 is `312` TFLOP/s.",
        "In `bfloat16` or `float16`, with dense matrices, on tensor cores. Ordinary `float32` "
        f"gets {a100[0]}, TF32 {a100[1]:.0f}.",
    )
    question(
        "At its peak in `bfloat16` an A100 needs `1` s for a product. How "
        "long does it need at best in ordinary `float32`?",
        answer=dense_peak("A100 SXM 80GB", "bfloat16") / (a100[0] * TERA),
        unit="s",
    )


def compare_dense_with_dense() -> None:
    """Two cards compare only on the same line of the datasheet."""
    note("How many times an A100 is an H100? That depends on which line of its datasheet is read.")
    printed = 1979e12                                           # @inspect printed as FLOP/s
    dense = dense_peak("H100 SXM", "bfloat16")                  # @inspect dense as FLOP/s
    assert printed / dense == 2.0, "printed with sparsity"
    note(
        "The larger one is for weights of which half are zero in a prescribed pattern "
        f"[@nvidia-h100]. Training multiplies dense matrices and sees at most {dense / TERA} "
        "TFLOP/s. The A100's usual number is a dense one:"
    )
    older = dense_peak("A100 SXM 80GB", "bfloat16")
    mixed, fair = printed / older, dense / older                # @inspect mixed, fair as times
    assert 6.3 < mixed < 6.4, "sparse against dense"
    assert 3.1 < fair < 3.2, "dense against dense"
    formats = dense / dense_peak("H100 SXM", "float32")         # @inspect formats as times
    assert 14.7 < formats < 14.8, "bfloat16 against float32"
    misbelief(
        f"An H100 is more than {mixed:.0f} times an A100.",
        "Only if one is quoted sparse and the other dense. Like for like it promises "
        f"{fair:.2f} times as much, and its own tensor cores {formats:.1f} times its ordinary "
        "units. A factor means something once both lines are named.",
    )
    narrow = dense_peak("H100 SXM", "float8")  # @hide
    question(
        "In `float8` the datasheet of the H100 prints "
        f"`{2 * narrow / TERA:.0f}` TFLOP/s, with sparsity. How many times "
        "its dense `bfloat16` peak is its dense `float8` peak?",
        answer=narrow / dense, unit="times",
    )


def sparsity_means_two_of_every_four() -> None:
    """On a datasheet, sparsity means two zeros in every four neighbours."""
    note("The doubled rate has a condition, and a matrix with many zeros need not meet it.")
    misbelief(
        "Sparse means that most entries are zero, and that the hardware skips zeros.",
        "The doubled rate needs *structured* sparsity: of every four neighbouring weights two "
        "are zero, so that the others can be stored close together with their places "
        "[@mishra2021]. Zeros elsewhere are multiplied like any number.",
    )
    note("Cut the weights into groups of `4`, and set the two smallest of each to zero:")
    w: Float[Tensor, "group four"] = torch.randn(2**16, 4)
    smallest = w.abs().topk(2, largest=False).indices
    pruned = w.scatter(1, smallest, 0.0)
    zeros = (pruned == 0).sum(dim=1)                            # @inspect zeros
    assert zeros.min() == zeros.max() == 2, "two in every group"
    note("Now make half of the weights zero at random. The pattern holds only for some groups:")
    scattered = torch.where(torch.rand_like(w) < 0.5, w, 0.0)
    fits = ((scattered == 0).sum(dim=1) >= 2).double().mean().item()  # @inspect fits
    share = sum(math.comb(4, z) for z in (2, 3, 4)) / 2**4      # @inspect share
    assert share == 11 / 16, "chance of two or more in a group"
    assert 0.97 < fits / share < 1.03, "so many groups do"
    x = torch.randn(8, 4)
    with_zeros = flops(lambda: scattered @ x.t())               # @inspect with_zeros as FLOP
    assert with_zeros == flops(lambda: w @ x.t()), "zeros cost the same"
    row = torch.tensor([[0, 0, 0, 0], [5, 6, 7, 8]])  # @hide
    question(
        "Half of the weights `0, 0, 0, 0, 5, 6, 7, 8` are zero. How many "
        "more have to become zero before this row can run at the doubled "
        "rate?",
        answer=(2 - (row == 0).sum(dim=1)).clamp(min=0).sum().item(),
        unit="weights",
    )


def narrow_formats_are_fast_because_of_their_units() -> None:
    """Narrow formats are fast because of the units that multiply them."""
    misbelief(
        "Narrow formats are fast because memory is fixed: more of them fit and run side by side.",
        "Memory says how much fits, not how fast it is multiplied. The rate comes from the "
        "arithmetic units, and for operations that wait for memory from its bandwidth.",
    )
    note("The A100 came with two sizes of memory and one set of rates [@nvidia-a100].")
    small, large = CARDS["A100 SXM 40GB"], CARDS["A100 SXM 80GB"]
    assert large.memory / small.memory == 2.0, "twice as much fits"
    rates = small.bfloat16, large.bfloat16                      # @inspect rates as FLOP/s
    assert rates == (312e12, 312e12), "and no product is faster"
    note("Nor do the bytes of a format predict its rate. On an H100, against `float32`:")
    ordinary = dense_peak("H100 SXM", "float32")
    narrow = dense_peak("H100 SXM", "bfloat16") / ordinary      # @inspect narrow as times
    widths = torch.float32.itemsize, torch.bfloat16.itemsize
    assert widths == (4, 2), "half the bytes"
    assert 14.7 < narrow < 14.8, "not twice the rate"
    same_bytes = dense_peak("H100 SXM", "tf32") / ordinary      # @inspect same_bytes as times
    assert 7.3 < same_bytes < 7.4, "TF32: all four bytes, and faster"
    note("And on the processor that built this page, which has its own opinion of narrow formats:")
    x = torch.randn(512, 512)
    wide = product_seconds(x)                                   # @measure wide as s
    half = product_seconds(x.bfloat16())                        # @measure half as s
    gain = wide / half                                          # @measure gain as times
    question(
        f"The larger A100 moves `{large.bandwidth / GB:.0f}` GB/s, the "
        f"smaller one `{small.bandwidth / GB:.0f}`. How many times as fast is "
        "the larger one at a product that runs at its peak, and at an "
        "addition that waits for memory?",
        answer=[rates[1] / rates[0], large.bandwidth / small.bandwidth],
        unit="times",
    )


def product_seconds(x: Tensor) -> float:                        # @stepover
    """Seconds that the product of a matrix with itself takes on the CPU."""
    return time_call(lambda: x @ x, repeats=5, patience=9).seconds


def to_tf32(x: Tensor) -> Tensor:
    """`x` rounded to the ten fraction bits of TF32, still in `float32`."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def tf32_saves_no_bytes() -> None:
    """TF32 rounds what goes into the multiplier and saves no bytes."""
    note(
        "TF32 keeps the exponent of `float32` and `10` of its fraction bits [@nvidia-ampere]. "
        "Tensors stay `float32`; the multiplier reads no more of them than that. On any machine "
        "the effect can be had by rounding the inputs."
    )
    x, y = torch.randn(256, 256), torch.randn(256, 256)
    size = to_tf32(x).nbytes                                    # @inspect size as B
    assert size == x.nbytes == 256 * 256 * 4, "as large as before"
    near = torch.tensor([1 + 2**-10, 1 + 2**-12])
    assert to_tf32(near).tolist() == [1 + 2**-10, 1.0], "ten bits stay"
    exact = x.double() @ y.double()

    def error(a: Tensor, b: Tensor) -> float:
        off = a.double() @ b.double() - exact
        return float(off.norm() / exact.norm())

    tf32 = error(to_tf32(x), to_tf32(y))                        # @inspect tf32 as %
    assert 2.8e-4 < tf32 < 3.2e-4, "relative error of the product"
    bfloat16 = error(x.bfloat16(), y.bfloat16())                # @inspect bfloat16 as %
    assert 7.5 < bfloat16 / tf32 < 8.5, "three bits fewer, three doublings"
    note(
        "Because it changes results, PyTorch leaves it off. `highest` means true `float32`; "
        "`torch.set_float32_matmul_precision(\"high\")` allows TF32 [@pytorch-precision], and "
        "only then is its peak the one to divide by."
    )
    setting = torch.get_float32_matmul_precision()              # @inspect setting
    assert setting == "highest", "off unless asked for"
    whole = torch.arange(1.0, 9999.0)  # @hide
    question(
        "Which is the first whole number above zero that TF32 rounds to "
        "another one?",
        answer=int(whole[to_tf32(whole) != whole][0]),
    )


def mean_seconds(call: Callable[[], object], runs: int) -> float:  # @stepover
    """The plain mean of `runs` timed calls: no warm-up, no spread."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return mean(times)


def starts_slowly(x: Tensor, extra: int) -> Callable[[], Tensor]:  # @stepover
    """A product whose first call does `extra` products more, as libraries do when they set up."""
    ready: list[int] = []

    def call() -> Tensor:
        while len(ready) < extra:
            ready.append((x @ x).numel())
        return x @ x

    return call


def the_first_calls_are_not_the_ones_to_time() -> None:
    """The first calls are not the ones to time."""
    note(
        "On its first call a library chooses a *kernel*, the program that the device will run, "
        "perhaps compiles it, and asks for memory. The obvious timer takes the mean of the first "
        "few calls, and that is in it."
    )
    note(
        "The timer of this book calls until several calls in a row agree, and only then "
        "measures. It reports the median, and as its spread the distance between the quartiles. "
        "Here both time a call that sets up once, and slowly:"
    )
    x = torch.randn(64, 64)
    setup = 2000
    cold = mean_seconds(starts_slowly(x, setup), runs=5)        # @measure cold as s
    steady = time_call(starts_slowly(x, setup), repeats=11)     # @measure steady
    assert steady.seconds < cold, "set-up is in the mean"
    expected = (5 + setup) / 5                                  # @inspect expected as times
    assert expected == 401.0, "by counting products"
    observed = cold / steady.seconds                            # @measure observed as times
    misbelief(
        "Published timings are averages over many runs, after a warm-up.",
        "A careful timer works like that. The one behind CS336's H100 timings takes the mean of "
        "`5` runs without a warm-up; its `bfloat16` run started cold [@cs336]. Ask how before "
        "quoting how fast.",
    )
    note(
        "It is a common observation that larger products come closer to a machine's peak. Test it: "
        "a machine that is busy with something else can say otherwise. Rates of square ones here:"
    )
    sizes = [32, 128, 512]
    squares = [torch.randn(n, n) for n in sizes]
    seconds = [product_seconds(s) for s in squares]
    rates = [2 * n**3 / t for n, t in zip(sizes, seconds, strict=True)]  # @measure rates as FLOP/s
    question(
        "Setting up still costs `2000` calls. Over how many runs must the "
        "obvious timer take its mean to come out only a tenth too high?",
        answer=round(setup / (1.1 - 1)), unit="runs",
    )


def utilization(
    work: float, seconds: float, rate: float | None
) -> float | None:
    """Work per second as a fraction of `rate`, or None where no rate is promised."""
    return None if rate is None else work / seconds / rate


def mfu_counts_what_the_model_needs() -> None:
    """MFU counts what the model needs, not what the hardware does."""
    note(
        "A step pushes `500_000` tokens through `10**9` parameters, in `8.0` s on an H100: "
        "numbers made up for the occasion. The model needs `6` FLOPs per parameter and token. To "
        "save memory this step also repeats its forward pass, which makes `8`. Which of the two "
        "counts goes into the *model FLOPs utilization*?"
    )
    params, tokens, seconds = 10**9, 500_000, 8.0
    rate = dense_peak("H100 SXM", "bfloat16")
    needed, done = 6 * params * tokens, 8 * params * tokens
    mfu = utilization(needed, seconds, rate)                    # @inspect mfu
    hardware = utilization(done, seconds, rate)                 # @inspect hardware
    assert mfu is not None, "the peak is known"
    assert hardware is not None, "for both"
    assert 0.37 < mfu < 0.38, "model FLOPs utilization"
    assert 1.33 < hardware / mfu < 1.34, "busier, and no faster"
    misbelief(
        "MFU is the actual FLOP/s divided by the promised FLOP/s.",
        "That is *hardware* utilization. Model FLOPs utilization counts what forward and "
        "backward pass of a training step require over the time they took; recomputation adds "
        "time and no model FLOPs [@palm]. A single timed product has only the first kind; by "
        "custom, and below, that is called its MFU too.",
    )
    stalled = utilization(needed, seconds + 2.0, rate)          # @inspect stalled
    assert stalled is not None, "still a known peak"
    assert 0.79 < stalled / mfu < 0.81, "after waiting for others"
    misbelief(
        "MFU ignores communication and other overhead.",
        "The numerator does. The clock does not: time spent waiting for other machines lowers "
        "MFU, and showing that is what it is for.",
    )
    question(
        "A step that repeats only *half* of its forward pass reports a "
        "hardware utilization of `0.42`. What is its MFU?",
        answer=0.42 * needed / (7 * params * tokens),
    )


def the_denominator_decides() -> None:
    """One measured rate gives several utilizations, and one of them is right."""
    note(
        "The trace of CS336 reports the large product of the previous part on an H100 in `float32`: "
        "`0.163` s, or `5.407e13` FLOP/s [@cs336]. It is a single measurement without a spread, "
        "good enough as material for arithmetic."
    )
    work, rate = 2 * 16384 * 32768 * 8192, 5.407e13
    seconds = round(work / rate, 3)                             # @inspect seconds as s
    assert seconds == 0.163, "the time fits the rate"
    right = rate / dense_peak("H100 SXM", "float32")            # @inspect right
    assert 0.806 < right < 0.808, "by the datasheet's 67e12"
    typed = rate / 67.5e12                                      # @inspect typed
    assert 0.800 < typed < 0.802, "by the trace's own 67.5e12"
    misbelief(
        "An H100 promises `6.75e13` FLOP/s in `float32`.",
        "That is a constant typed into the lecture's code. The datasheet says `67` teraFLOP/s "
        "[@nvidia-h100], the chip's units and clock say a little less, as computed above. It is "
        "the rate of the ordinary units; with TF32 the promise is another.",
    )
    promised = dense_peak("H100 SXM", "bfloat16")
    wrong = rate / promised                                     # @inspect wrong
    assert 0.054 < wrong < 0.055, "by another format's peak"
    misbelief(
        f"An H100 promises {promised / TERA} TFLOP/s to a `float32` product.",
        "That is the promise for `bfloat16`. The tensors were `float32`, and TF32 is off by "
        f"default: the product reached {right:.1%} of its peak, not {wrong:.1%}.",
    )
    allowed = dense_peak("H100 SXM", "tf32")  # @hide
    question(
        f"With TF32 switched on, an H100 promises `{allowed / TERA}e12` "
        "FLOP/s. How long would this product take at the same share of that "
        "peak?",
        answer=work / (right * allowed), unit="s",
    )


def a_sparse_peak_halves_the_answer() -> None:
    """Divided by the sparse peak, every utilization is half of what it is."""
    note(
        "The same trace repeats the product in `bfloat16`: `0.032` s, or `2.735e14` FLOP/s "
        "[@cs336]. Again it is a single measurement."
    )
    work, rate = 2 * 16384 * 32768 * 8192, 2.735e14
    seconds = round(work / rate, 3)                             # @inspect seconds as s
    assert seconds == 0.032, "the time fits the rate"
    speedup = rate / 5.407e13                                   # @inspect speedup as times
    assert 5.05 < speedup < 5.07, "over float32, on that day"
    dense = rate / dense_peak("H100 SXM", "bfloat16")           # @inspect dense
    assert 0.276 < dense < 0.277, "by the dense peak"
    sparse = rate / 1979e12                                     # @inspect sparse
    assert 0.138 < sparse < 0.139, "by the sparse one"
    note(
        f"These matrices were dense, so the product reached {dense:.1%} of its peak. CS336 divides "
        "by the dense one; notes on it that kept the datasheet's `1979e12` have "
        f"{sparse:.1%} [@cs336]."
    )
    question(
        "What is the highest utilization that a dense product can ever show "
        "if it is divided by the sparse peak?",
        answer=dense_peak("H100 SXM", "bfloat16") / 1979e12,
    )


def one_slow_first_call_explains_a_low_mfu() -> None:
    """One slow first call is enough to explain a low MFU."""
    note(
        "The published rate of the `bfloat16` product is the mean of `5` runs. Suppose that it "
        "really runs at `0.75` of its peak, and that only the first run was cold. How slow must "
        "that one have been?"
    )
    work = 2 * 16384 * 32768 * 8192
    rate = dense_peak("H100 SXM", "bfloat16")
    average = work / 2.735e14                                   # @inspect average as s
    steady = work / (0.75 * rate)                               # @inspect steady as s
    first = 5 * average - 4 * steady                            # @inspect first as s
    needed = first / steady                                     # @inspect needed as times
    assert 9.5 < needed < 9.7, "times a normal call"
    assert 0.0321 < (first + 4 * steady) / 5 < 0.0322, "the published mean"
    misbelief(
        "The MFU of `bfloat16` is low because its promise is optimistic.",
        f"Perhaps; it is a hypothesis. A first call that takes {needed:.1f} times as long as the "
        "others gives the same number, and first calls like that are ordinary. So are throttled "
        "clocks and unlucky layouts. Only measuring again, warm, decides.",
    )
    note(
        "It is often said that an MFU of one half is good. As a rule of thumb that is fair: a "
        "report on a very large run gives `0.38` to `0.43` [@llama3]. Whether a number is good "
        "depends on the model, the network and the number of cards. Compare with your own last "
        "run before comparing with anyone."
    )
    question(
        "With the same slow first call, which share of the peak would the "
        "mean of `50` runs have shown?",
        answer=0.75 / ((needed + 49) / 50),
    )


def without_a_peak_there_is_no_mfu() -> None:
    """Where no peak is known, the MFU is not available."""
    note(
        "A card that is not on the list, or a CPU, promises nothing that could be divided by. "
        "The honest answer is a word."
    )
    nowhere = peak(find("a laptop"), "bfloat16")                # @inspect nowhere
    mfu = utilization(1e10, 1.0, nowhere)                       # @inspect mfu
    assert mfu is None, "no promise, no fraction"
    shown = as_percent(mfu)                                     # @inspect shown
    assert shown == "not available", "what a page prints"
    note(
        "The alternative can be seen in the trace of CS336: `mfu = 11739062719` [@cs336]. The "
        "code ran on a CPU, and where it knew no peak it divided by `1` FLOP/s."
    )
    absurd = utilization(11_739_062_719, 1.0, 1.0)              # @inspect absurd
    assert absurd == 11_739_062_719, "a rate, posing as a fraction"
    question(
        "A program that knew no peak divided by `1` FLOP/s and printed an "
        "MFU of `3e10`. Later the machine's peak turns out to be `6e11` "
        "FLOP/s. What was the MFU?",
        answer=utilization(3e10, 1.0, 6e11),
    )


def as_percent(share: float | None) -> str:
    """A share for humans."""
    return "not available" if share is None else f"{share:.1%}"


def intensity(rows: int, inner: int, cols: int, width: int = 2) -> float:
    """FLOPs per byte of a product whose three matrices, `width` bytes a number, move once."""
    numbers = rows * inner + inner * cols + rows * cols
    return 2 * rows * inner * cols / (width * numbers)


def the_roofline_tells_waiting_from_working() -> None:
    """The roofline tells waiting for memory from working."""
    note(
        "A card has two speeds, and work needs both: bytes to be moved and FLOPs to be done. "
        "FLOPs per byte is the *intensity* of an operation. Times the bandwidth it gives the "
        "rate that memory can feed, up to the peak, which is the roof [@roofline]. On an H100 "
        "SXM [@nvidia-h100] the slope meets the roof at the *ridge*:"
    )
    rate = dense_peak("H100 SXM", "bfloat16")
    bandwidth = CARDS["H100 SXM"].bandwidth
    ridge = rate / bandwidth                                    # @inspect ridge as FLOP/B
    assert 295.3 < ridge < 295.4, "FLOPs to do per byte"
    n = 8192
    with torch.device("meta"):
        x, w = torch.empty(64, n).bfloat16(), torch.empty(n, n).bfloat16()
    y = x @ w
    moved = x.nbytes + w.nbytes + y.nbytes                      # @inspect moved as B
    some = flops(lambda: x @ w) / moved                         # @inspect some as FLOP/B
    assert some == intensity(64, n, n), "formula and tensors"
    note(
        "A layer of a language model, that many weights wide and tall, multiplies as many "
        "rows as there are tokens. With few tokens it waits for its weights. The point where "
        "it stops waiting can be searched for:"
    )
    tokens = next(m for m in range(1, n) if intensity(m, n, n) > ridge)  # @inspect tokens
    assert tokens == 319, "tokens at once, to reach the roof"
    shapes = {"x + y": 1 / (3 * 2), "1 token": intensity(1, n, n)}
    shapes |= {"64 tokens": some, "4096 tokens": intensity(4096, n, n)}
    reached = {s: min(1, i / ridge) for s, i in shapes.items()}  # @inspect reached as %
    assert 0.21 < reached["64 tokens"] < 0.22, "waits for its weights"
    assert reached["4096 tokens"] == 1, "works at the peak"
    assert 0.00056 < reached["x + y"] < 0.00057, "hardly works at all"
    waiting = [name for name, part in reached.items() if part < 1]
    figure(
        plot_roofline(rate, bandwidth, shapes),
        caption="The roofline of an H100 SXM in dense bfloat16, and operations at their best. On the "
        "slope only more bandwidth or more FLOPs per byte would help, on the roof only a higher peak.",
        alt="Attainable FLOP/s against FLOPs per byte, both logarithmic. The roof rises with the "
        f"bandwidth and turns flat at the peak. On the slope lie dots for {', '.join(waiting)}; "
        f"on the flat part one for {', '.join(set(shapes) - set(waiting))}.",
    )
    card = CARDS["A100 SXM 80GB"]  # @hide
    older = dense_peak(card.name, "bfloat16")  # @hide
    question(
        f"An A100 promises `{older / TERA:.0f}e12` FLOP/s in `bfloat16` and "
        f"moves `{card.bandwidth / TERA:.3f}e12` B/s. Above how many FLOPs "
        "per byte does it stop waiting for memory?",
        answer=older / card.bandwidth, unit="FLOP/B",
    )


@requires("cuda")
def a_launch_returns_before_the_work_is_done() -> None:
    """A launch returns before the work is done."""
    note(
        "The CPU hands a product to the GPU and goes on. A clock that is read now has timed the "
        "handing over. `torch.cuda.synchronize()` waits for what was handed over."
    )
    n = scaled(8192, lambda n: 20 * n * n)                      # @measure n
    x = torch.randn(n, n, device="cuda")
    shape = (x @ x).shape                                       # @measure shape
    torch.cuda.synchronize()
    start = time.perf_counter()
    product = x @ x
    launched = time.perf_counter() - start                      # @measure launched as s
    torch.cuda.synchronize()
    finished = time.perf_counter() - start                      # @measure finished as s
    assert product.shape == shape, "handed over, then done"
    assert launched < finished - launched, "most was still to come"
    promised = peak(find(torch.cuda.get_device_name()), "float32")
    impossible = 2 * n**3 / launched                            # @measure impossible as FLOP/s
    if promised is not None:
        assert promised < impossible, "faster than the card can be"
    question(
        "A launch takes `10` µs, the product itself `20` ms. A program "
        "launches `100` of them and then synchronizes. What does a clock "
        "show just before it does so, and what just after?",
        answer=[100 * 10e-6, 10e-6 + 100 * 20e-3], unit="s",
    )


PRODUCT = 16384, 32768, 8192  # rows, inner, columns of the product that others have timed


def product_shape() -> tuple[int, int, int]:
    """Rows, inner and columns of the product of this lecture, halved until the card holds it."""
    def needed(rows: int) -> int:
        return 8 * (rows * 2 * rows + 2 * rows * rows // 2 + rows * rows // 2)

    rows = scaled(PRODUCT[0], needed)
    return rows, 2 * rows, rows // 2


def product_call(
    name: str, shape: tuple[int, int, int]
) -> Callable[[], Tensor]:
    """The product of two random matrices on the card, in the format `name`, ready to be called.

    `float8` adds up the fast way; PyTorch's default is the exact way, which a Hopper card does slower.
    """
    rows, inner, cols = shape
    x = torch.randn(rows, inner, device="cuda")
    if name == "float8":  # row-major times column-major, and a scale for each
        w = torch.randn(cols, inner, device="cuda").to(E4M3).t()
        one = torch.ones((), device="cuda")
        fast = partial(torch._scaled_mm, use_fast_accum=True)
        call = partial(fast, out_dtype=torch.bfloat16)
        return partial(call, x.to(E4M3), w, one, one)
    dtype = torch.float32 if name == "tf32" else getattr(torch, name)
    w = torch.randn(inner, cols, device="cuda")
    return partial(torch.matmul, x.to(dtype), w.to(dtype))


def time_product(name: str, shape: tuple[int, int, int]) -> Timing:   # @stepover
    """The product in the format `name`, timed warm after a rest; TF32 is on for `tf32` alone."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    try:
        call = product_call(name, shape)
        torch.cuda.synchronize()
        # At its power limit a card slows down: no format pays for another.
        time.sleep(1)
        return time_call(call, "cuda")
    finally:
        torch.set_float32_matmul_precision(before)


def formats_to_time(card: Card | None) -> list[str]:
    """The formats that this card has units for; all that PyTorch multiplies, if nobody knows the card."""
    names = ["float32", "tf32", "bfloat16", "float16"]
    names += ["float8"] if torch.cuda.get_device_capability() >= (8, 9) else []
    return [n for n in names if card is None or peak(card, n) is not None]


@requires("cuda")
def five_formats_are_measured_here() -> None:
    """Each format is measured warm, and divided by its own dense peak."""
    shape = product_shape()                                     # @measure shape
    note(
        "The product of this lecture on random data: after a second of rest, warm, timed by the "
        "device's own events, the median of many repeats. `float8`, where the card has it, adds up "
        "the fast way, with fewer bits for the sums." + shrunk(shape[0], PRODUCT[0])
    )
    device = torch.cuda.get_device_name()
    card = find(device)
    work = 2 * shape[0] * shape[1] * shape[2]                   # @measure work as FLOP
    timed = {}
    for name in formats_to_time(card):
        timed[name] = time_product(name, shape)                 # @measure timed[name]
    rates = {name: work / t.seconds for name, t in timed.items()}
    shares = {n: utilization(r, 1.0, peak(card, n)) for n, r in rates.items()}
    lines = [
        f"| `{name}` | {t.seconds * 1000:.3f} | {t.spread:.1%} "
        f"| {rates[name] / TERA:.1f} | {as_percent(shares[name])} |"
        for name, t in timed.items()
    ]
    note(
        f"{device}; {timed['float32'].method}. {how_to_add(device)}\n\n"
        "| format | median, ms | spread | TFLOP/s | MFU, of its own dense peak |\n"
        "|---|---|---|---|---|\n" + "\n".join(lines)
    )
    known = {n: share for n, share in shares.items() if share is not None}  # @measure known
    if card is not None:
        assert 0 < min(known.values()), "work was done"
        assert max(known.values()) <= 1, "and no promise exceeded"
    if card is not None and card.bfloat16 is not None:
        promised = card.bfloat16 / card.float32                 # @measure promised as times
        speedup = rates["bfloat16"] / rates["float32"]          # @measure speedup as times
        assert speedup > promised / 2, "at least half of what is promised"
    hopper = torch.cuda.get_device_capability() == (9, 0)
    if card is not None and hopper and shape == PRODUCT:
        assert known["bfloat16"] >= 0.7, "Hopper, measured properly"
        assert known["float32"] >= 0.7, "and without its matrix units"
    question(
        "A line of such a table reads `12.00` ms. How many FLOP/s is that, for `16384` × "
        "`32768` times `32768` × `8192`?",
        answer=2 * PRODUCT[0] * PRODUCT[1] * PRODUCT[2] / 12e-3, unit="FLOP/s",
    )


def first_runs(rows: int, inner: int, cols: int) -> dict[str, list[float]]:  # @stepover
    """Seconds of the first five products, in float32 and then in bfloat16, on the host's clock."""
    found: dict[str, list[float]] = {}
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.randn(rows, inner, device="cuda").to(dtype)
        w = torch.randn(inner, cols, device="cuda").to(dtype)
        torch.cuda.synchronize()
        times = found[str(dtype).removeprefix("torch.")] = []
        for _ in range(5):
            start = time.perf_counter()
            x @ w
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    return found


def in_a_new_program(shape: tuple[int, int, int]) -> dict[str, list[float]]:  # @stepover
    """`first_runs` in a program of its own, where nothing has run yet: only there a first run is first."""
    torch.cuda.empty_cache()
    text = f"import json, time, torch\n\n{inspect.getsource(first_runs)}\n"
    call = f"print(json.dumps(first_runs(*{shape!r})))"
    done = subprocess.run(
        [sys.executable, "-c", text + call],
        capture_output=True, text=True, timeout=240, check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the new program failed: {done.stderr[-500:]}")
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def without_waiting(call: Callable[[], object]) -> float:       # @stepover
    """Mean seconds of five warm calls on a clock that does not wait for the device."""
    call()
    torch.cuda.synchronize()
    seconds = mean_seconds(call, runs=5)
    torch.cuda.synchronize()
    return seconds


@requires("cuda")
def three_bad_measurements_are_repeated_here() -> None:
    """The published MFU is repeated the way it was made, and then measured."""
    shape = product_shape()                                     # @measure shape
    note(
        "CS336 reports an MFU of `0.276` for this product in `bfloat16`: from the mean of five "
        "runs without a warm-up, after the same in `float32` [@cs336]. Here a new program does that on this "
        "card, with a wait after each run." + shrunk(shape[0], PRODUCT[0])
    )
    runs = in_a_new_program(shape)["bfloat16"]                  # @measure runs as s
    cold = mean(runs)                                           # @measure cold as s
    good = time_product("bfloat16", shape)                      # @measure good
    assert good.seconds < cold, "set-up is in the mean of the first runs"
    first = runs[0] / median(runs)                              # @measure first as times
    assert 1 < first, "the first run is the slow one"
    note(
        "Two more ways to measure badly. Without a wait, the clock stops when the work has "
        "been handed over. And a product of zeros switches fewer transistors, draws less "
        "power, and lets the card keep a higher clock:"
    )
    call = product_call("bfloat16", shape)
    launched = without_waiting(call)                            # @measure launched as s
    assert launched < good.seconds, "not even started"
    blank_pair = [torch.zeros(n, dtype=torch.bfloat16, device="cuda")
                  for n in (shape[:2], shape[1:])]
    zeros = time_call(partial(torch.matmul, *blank_pair), "cuda")  # @measure zeros
    assert zeros.seconds < 1.05 * good.seconds, "never slower than real numbers"
    ways = {
        "first five runs": cold, "no wait": launched, "zeros": zeros.seconds,
        "warm, events, random data": good.seconds,
    }
    rate = peak(find(torch.cuda.get_device_name()), "bfloat16")
    work = 2 * shape[0] * shape[1] * shape[2]
    shares = {way: utilization(work, t, rate) for way, t in ways.items()}  # @measure shares
    lines = [
        f"| {way} | {t * 1000:.3f} | {as_percent(shares[way])} |"
        for way, t in ways.items()
    ]
    note(
        f"{good.device}, `bfloat16`:\n\n| how | ms | MFU |\n|---|---|---|\n" + "\n".join(lines)
    )
    if rate is not None:
        assert work / launched > rate, "more than the card can do: an alarm"
        assert work / cold < work / good.seconds <= rate, "too low, and right"
    question(
        "A program averages its first `5` runs. The first took `104` ms, the others `14` ms "
        "each. Which MFU does it report, if `14` ms are `0.63` of the peak?",
        answer=round(0.63 * 14 / ((104 + 4 * 14) / 5), 3),
    )


def random_pair(n: int) -> tuple[Tensor, Tensor]:               # @stepover
    """Two random square matrices on the card, in its two-byte format."""
    dtype = narrow_format()
    x, y = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
    return x, y


@requires("cuda")
def larger_products_come_closer_to_the_peak() -> None:
    """The larger the product, the closer it comes to the peak."""
    largest = scaled(16384, lambda n: 20 * n * n)               # @measure largest
    note(
        "MFU is higher where products dominate, and products do better when they are large: a "
        "small one is over before it has filled the card. Square products in the narrow "
        "format, small ones on many buffers in turn, so that none is found in the cache."
        + shrunk(largest, 16384)
    )
    dtype = narrow_format()                                     # @measure dtype
    rate = peak(find(torch.cuda.get_device_name()), str(dtype))
    sizes = [2**p for p in range(8, 15) if 2**p <= largest]     # @measure sizes
    rates = []
    for n in sizes:
        pairs = beyond_cache(partial(random_pair, n), "cuda")
        timing = time_call(torch.matmul, "cuda", inputs=pairs)  # @measure timing
        rates.append(2 * n**3 / timing.seconds)                 # @measure rates[-1] as FLOP/s
    assert rates[0] < rates[-1], "the largest beats the smallest"
    if rate is not None:
        shares = [r / rate for r in rates]                      # @measure shares
        assert 0 < shares[0], "the smallest does some work"
        assert max(shares) <= 1, "none exceeds the promise"
    figure(
        plot_sweep(sizes, rates, rate),
        caption="Rate of a square product against its size, in the narrow format; dashed, the dense peak.",
        alt="A curve of TFLOP/s against matrix size, rising from a small fraction of the peak for "
        "the smallest matrix to most of what it will reach at a few thousand rows.",
    )
    question(
        "From a width of `256` to one of `512` a product takes only twice as "
        "long. How many times as high is its rate?",
        answer=(512 / 256) ** 3 / 2, unit="times",
    )


class Point(NamedTuple):
    """An operation under a measured roof."""

    intensity: float  # FLOPs per byte
    rate: float  # FLOP/s


def measured_points(n: int, dtype: torch.dtype) -> dict[str, Point]:  # @stepover
    """Intensity and rate of an addition, and of products of 1, 64 and 4096 rows with n × n weights."""
    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, device="cuda").to(dtype)

    vectors = beyond_cache(lambda: (numbers(n * n), numbers(n * n)), "cuda")
    added = time_call(torch.add, "cuda", inputs=vectors).seconds
    points = {"x + y": Point(1 / (3 * dtype.itemsize), n * n / added)}
    del vectors

    def layer(rows: int) -> tuple[Tensor, Tensor]:
        return numbers(rows, n), numbers(n, n)

    for rows in (1, 64, 4096):
        pairs = beyond_cache(partial(layer, rows), "cuda")
        taken = time_call(torch.matmul, "cuda", inputs=pairs).seconds
        name = "1 token" if rows == 1 else f"{rows} tokens"
        per_byte = intensity(rows, n, n, dtype.itemsize)
        points[name] = Point(per_byte, 2 * rows * n * n / taken)
    return points


@requires("cuda")
def the_roof_is_measured_here() -> None:
    """A copy shows the bandwidth, and no operation passes the promised roof."""
    count = scaled(256 * MiB, lambda n: 14 * n)                 # @measure count
    note(
        "The slope of the roofline is the bandwidth, which a large copy shows: every byte is "
        "read once and written once, and nothing is computed." + shrunk(count, 256 * MiB)
    )
    card, dtype = find(torch.cuda.get_device_name()), narrow_format()
    x = torch.randn(count, device="cuda").to(dtype)
    y = torch.empty_like(x)
    copied = time_call(lambda: y.copy_(x), "cuda")              # @measure copied
    bandwidth = (x.nbytes + y.nbytes) / copied.seconds          # @measure bandwidth as B/s
    if card is not None:
        share = bandwidth / card.bandwidth                      # @measure share
        assert share <= 1, "no more than the datasheet promises"
        assert share > 0.5, "and more than half of it"
    del x, y
    n = scaled(8192, lambda n: 16 * n * n + 40 * 4096 * n)      # @measure n
    note(
        "Beside it, an addition and the products of a layer with a few tokens, on weights that "
        "are not in the cache:" + shrunk(n, 8192)
    )
    points = measured_points(n, dtype)                          # @measure points
    ratio = points["4096 tokens"].rate / points["1 token"].rate  # @measure ratio as times
    assert ratio > 10, "one token waits for the weights"
    rate = peak(card, str(dtype))
    if card is not None and rate is not None:
        slope, found = card.bandwidth, points.values()
        over = [p.rate / min(rate, p.intensity * slope) for p in found]  # @measure over
        assert max(over) <= 1, "all of them under the promised roof"
    top = rate or max(point.rate for point in points.values())
    ridge = top / bandwidth                                     # @measure ridge as FLOP/B
    slopes = {"dashed": bandwidth}
    slopes |= {} if card is None else {"solid": card.bandwidth}
    figure(
        plot_measured_roof(top, slopes, points),
        caption="Measured rates. Dashed, the bandwidth that the copy showed."
        + (" Solid, the roof that the datasheet promises." if "solid" in slopes else ""),
        alt="TFLOP/s against FLOPs per byte, both logarithmic, with the roof of bandwidth and "
        "peak. An addition and the product of a single token lie low on the slope, that of many "
        "tokens near the flat part.",
    )
    question(
        "A copy of `2` GiB takes `1` ms. Which bandwidth is that?",
        answer=2 * 2 * GiB / 1e-3, unit="B/s",
    )


# --- gradients


def gradients() -> None:
    """Gradients."""
    note(
        "That a backward pass costs twice its forward pass is usually derived on a network of "
        "two layers. For that network it is false, because one product is missing. Knowing which "
        "one tells you when the rule holds, and what freezing a layer saves."
    )
    backward_fills_the_leaves()
    backward_changes_no_parameter()
    a_gradient_is_two_more_products()
    each_sample_costs_two_per_weight()
    a_weight_gradient_needs_no_input_gradient()
    the_other_product_is_paid_for_the_layer_below()
    the_first_layer_has_nothing_below()
    six_per_parameter_and_token_is_a_special_case()
    in_a_transformer_backward_is_twice_forward()
    attention_is_what_the_rule_leaves_out()
    checkpointing_trades_flops_for_memory()
    checkpointing_is_measured_here()
    the_same_sum_in_another_order_is_another_number()


def backward_fills_the_leaves() -> None:
    """`backward()` leaves gradients in the leaves that asked for them, and nowhere else."""
    note(
        "Three inputs, three weights, a target of `5`. Only the weights ask for a gradient, by "
        "`requires_grad=True`:"
    )
    x: Float[Tensor, "inner"] = torch.tensor([1.0, 2.0, 3.0])
    w: Float[Tensor, "inner"] = torch.ones(3, requires_grad=True)
    prediction = x @ w                                          # @inspect prediction
    loss = 0.5 * (prediction - 5) ** 2                          # @inspect loss
    assert (prediction.item(), loss.item()) == (6.0, 0.5), "one too high"
    loss.backward()
    assert w.grad is not None, "w asked for one"
    assert w.grad.tolist() == [1.0, 2.0, 3.0], "error times input"
    note(
        "A *leaf* is a tensor that was not computed from others. The rest have no `.grad`, for "
        "two reasons. `x` is a leaf, but never asked. Prediction and loss are no leaves: their "
        "gradients were computed, used and dropped, and PyTorch warns whoever looks for them."
    )
    leaf = x.is_leaf, x.requires_grad, x.grad
    assert leaf == (True, False, None), "a leaf that did not ask"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dropped = prediction.grad, loss.grad
    assert dropped == (None, None), "not kept"
    assert prediction.is_leaf is False, "computed, so no leaf"
    assert len(caught) == 2, "a warning for each"
    note("Call `retain_grad()` before the backward pass, and such a gradient is kept.")
    again = x @ w
    again.retain_grad()
    kept = 0.5 * (again - 5) ** 2
    kept.retain_grad()
    kept.backward()
    assert again.grad is not None, "kept on request"
    assert kept.grad is not None, "even the loss's own"
    both = again.grad.item(), kept.grad.item()
    assert both == (1.0, 1.0), "the error; and one"
    question(
        "The target is `8` instead of `5`, with the same `x` and `w`. Which "
        "gradient does `w` get?",
        answer=torch.autograd.grad(0.5 * (x @ w - 8) ** 2, w)[0].tolist(),
    )


def backward_changes_no_parameter() -> None:
    """`backward()` changes no parameter; the optimizer does."""
    note(
        "A training step has three parts. The forward pass ends in the loss, the backward "
        "pass in gradients, and the third applies them."
    )
    model = nn.Linear(4, 1)
    x, target = torch.randn(8, 4), torch.randn(8, 1)
    start = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = F.mse_loss(model(x), target)                         # @inspect loss
    assert model.weight.grad is None, "forward: a loss, no gradient"
    loss.backward()
    assert model.weight.grad is not None, "backward: a gradient"
    assert torch.equal(model.weight, start), "and the same weights"
    misbelief(
        "The backward pass computes gradients and updates the parameters.",
        "It fills `.grad` and leaves every parameter as it was, bit for bit. `optimizer.step()` "
        "updates.",
    )
    optimizer.step()
    expected = start - 0.1 * model.weight.grad
    assert not torch.equal(model.weight, start), "now they have moved"
    assert torch.allclose(model.weight, expected), "against the gradient"
    p = torch.tensor(3.0, requires_grad=True)  # @hide
    (4 * p).backward()  # @hide
    seen = [p.item()]  # @hide
    torch.optim.SGD([p], lr=0.25).step()  # @hide
    seen.append(p.item())  # @hide
    question(
        "A weight of `3` gets a gradient of `4`, and the learning rate is "
        "`0.25`. What is the weight after `backward()`, and what after "
        "`step()`?",
        answer=seen,
    )


def a_gradient_is_two_more_products() -> None:
    """Behind each product in the forward pass stand two in the backward pass."""
    note(
        "A layer takes $h$ to $y = hw$. Later, from the layers above, the gradient of the loss "
        "by $y$ arrives; call it $g$. `y.backward(g)` starts from there, with no loss in sight. "
        "All values are small whole numbers, so that sums come out equal in any order."
    )
    b, d, k = 64, 32, 16
    h: Float[Tensor, "row inner"] = whole_numbers(b, d).requires_grad_()
    w: Float[Tensor, "inner col"] = whole_numbers(d, k).requires_grad_()
    y: Float[Tensor, "row col"] = h @ w
    g: Float[Tensor, "row col"] = whole_numbers(b, k)           # @inspect g
    y.backward(g)
    note(
        "The chain rule sums over whatever an entry touched: a weight touched every row of $y$, "
        "an input every column.\n\n"
        r"$$\frac{\partial L}{\partial w_{jk}} = \sum_i h_{ij}\, g_{ik} \qquad "
        r"\frac{\partial L}{\partial h_{ij}} = \sum_k w_{jk}\, g_{ik}$$"
    )
    for_w: Float[Tensor, "inner col"] = einsum(h, g, "i j, i k -> j k")
    for_h: Float[Tensor, "row inner"] = einsum(w, g, "j k, i k -> i j")
    assert w.grad is not None, "autograd's answer"
    assert h.grad is not None, "for both"
    assert torch.equal(w.grad, for_w), "the sums, written out"
    assert torch.equal(h.grad, for_h), "the sums, written out"
    assert torch.equal(for_w, h.t() @ g), "a product"
    assert torch.equal(for_h, g @ w.t()), "another product"
    note(
        "Three products, `h @ w`, `h.T @ g` and `g @ w.T`, run over the same three lengths in "
        "different roles. So each costs the same:"
    )
    forward = flops(lambda: h @ w)                              # @inspect forward as FLOP
    weights = flops(lambda: h.t() @ g)                          # @inspect weights as FLOP
    inputs = flops(lambda: g @ w.t())                           # @inspect inputs as FLOP
    assert forward == 2 * b * d * k, "the forward product"
    assert weights == inputs == forward, "and as much for each other"
    row = torch.tensor([[1.0, 2.0]], requires_grad=True)  # @hide
    column = torch.tensor([[3.0], [4.0]], requires_grad=True)  # @hide
    arriving = torch.tensor([[5.0]])  # @hide
    got = torch.autograd.grad(row @ column, (row, column), arriving)  # @hide
    question(
        "A row $(1, 2)$ is multiplied by a column $(3, 4)$, and a gradient "
        "of `5` arrives. Which gradients do row and column get?",
        answer=[t.flatten().tolist() for t in got],
    )


def each_sample_costs_two_per_weight() -> None:
    """Every sample costs two FLOPs for every weight gradient."""
    note(
        "An entry of the weight gradient is a sum over the samples: a multiplication for each of "
        "them, and one addition fewer. Numbers that write every operation into a tally confirm "
        "it:"
    )
    b, d, k = 8, 5, 3
    tally: list[str] = []
    g = counted(tally, d, b) @ counted(tally, b, k)
    assert g.shape == (5, 3), "a gradient for each weight"
    per_weight = len(tally) / (d * k)                           # @inspect per_weight
    assert per_weight == 2 * b - 1 == 15, "per weight, counted"
    note("At a batch of realistic size the one that is missing no longer matters:")
    large = 16384
    share = (2 * large - 1) / (2 * large)                       # @inspect share
    assert share == 32767 / 32768, "of two for each sample"
    misbelief(
        "For each sample the gradient of a weight takes one operation, so a batch takes twice as "
        "many as it has samples.",
        "The two halves of that sentence do not fit: one operation each makes $BDK$. A sample "
        "costs two: a multiplication, and the addition to the sum so far.",
    )
    one = flops(lambda: torch.ones(d, 1) @ torch.ones(1, k))    # @inspect one as FLOP
    assert one == 2 * d * k, "two per weight"
    batch = flops(lambda: torch.ones(d, b) @ torch.ones(b, k))  # @inspect batch as FLOP
    assert batch == b * one == 240, "and the batch adds up"
    tally.clear()  # @hide
    small = counted(tally, 2, 10) @ counted(tally, 10, 3)  # @hide
    work = flops(lambda: torch.ones(2, 10) @ torch.ones(10, 3))  # @hide
    question(
        "A layer of `2 × 3` weights sees `10` samples. How many FLOPs does "
        "its weight gradient take by PyTorch's counter, and how many by the "
        "tally?",
        answer=[work, len(tally)], unit="FLOP",
    )


def two_layers(
    b: int, d: int, k: int,
    first: bool = True, second: bool = True, data: bool = False,
) -> tuple[int, int]:
    """Forward and backward FLOPs of x @ w1 @ w2, and which of w1, w2 and x want gradients."""
    with torch.device("meta"):
        x = torch.empty(b, d, requires_grad=data)
        w1 = torch.empty(d, d, requires_grad=first)
        w2 = torch.empty(d, k, requires_grad=second)
    with FlopCounterMode(display=False) as forward:
        loss = (x @ w1 @ w2).square().mean()
    return int(forward.get_total_flops()), flops(loss.backward)


def a_weight_gradient_needs_no_input_gradient() -> None:
    """A weight's gradient needs the gradient above it, not the one it passes on."""
    note(
        "From here on there are two layers, `h1 = x @ w1` and `h2 = h1 @ w2`, with $B$ rows of "
        "data, $D$ inputs and hidden values, and $K$ outputs."
    )
    misbelief(
        "In `x @ w1 @ w2` the gradient of the hidden values, `h1.grad`, must be known before "
        "`w2.grad` can be computed.",
        "`w2.grad` is made of `h1` and the gradient of `h2`. Freeze `w1`, and `h1.grad` is never "
        "computed, while `w2.grad` comes out the same to the bit.",
    )

    def second_gradient(train_first: bool) -> Tensor:
        torch.manual_seed(1)
        x = torch.randn(64, 32)
        w1, w2 = torch.randn(32, 32), torch.randn(32, 16)
        w1.requires_grad_(train_first)
        w2.requires_grad_()
        h1 = x @ w1
        loss = (h1 @ w2).square().mean()
        return torch.autograd.grad(loss, w2)[0]

    trained, frozen = second_gradient(True), second_gradient(False)
    assert torch.equal(frozen, trained), "identical, bit for bit"
    note(
        "`two_layers` counts such a network with `FlopCounterMode` on the meta device: forward, "
        "then backward. With `w1` frozen, a single product is left of the backward pass."
    )
    b, d, k = 64, 32, 16
    backward = two_layers(b, d, k, first=False)[1]              # @inspect backward as FLOP
    assert backward == 2 * b * d * k == 65536, "one product: h1.T @ h2.grad"
    question(
        "`100` rows pass a frozen layer of `10 × 10` and a trained one of "
        "`10 × 1`. What does the backward pass cost?",
        answer=two_layers(100, 10, 1, first=False)[1], unit="FLOP",
    )


def the_other_product_is_paid_for_the_layer_below() -> None:
    """A layer's second backward product is paid for the layer below."""
    note("Freeze `w2` instead, and what its gradient cost can be told from what it passes on.")
    b, d, k = 64, 32, 16
    whole = two_layers(b, d, k)[1]                              # @inspect whole as FLOP
    without_second = two_layers(b, d, k, second=False)[1]       # @inspect without_second as FLOP
    own = whole - without_second                                # @inspect own as FLOP
    assert own == 2 * b * d * k, "what w2.grad adds"
    passed_on = without_second - 2 * b * d * d                  # @inspect passed_on as FLOP
    assert passed_on == 2 * b * d * k, "h1.grad, for w1's sake"
    misbelief(
        r"In the backward pass the last layer, $D \times K$ weights and a batch of $B$, costs $4BDK$.",
        "The gradient of its weights costs half of that. The other half hands the gradient on to "
        "the layer below: still due when the last layer is frozen, gone when the one below is.",
    )
    question(
        "`100` rows pass a trained layer of `10 × 10` and a frozen one of "
        "`10 × 1`. What does the backward pass cost?",
        answer=two_layers(100, 10, 1, second=False)[1], unit="FLOP",
    )


def the_first_layer_has_nothing_below() -> None:
    """The first layer has nothing below it, so one product is missing."""
    note(
        "The usual derivation takes a wide first layer and a narrower second one. Counting its "
        "FLOPs takes no time, because nothing is computed."
    )
    b, d, k = 16384, 32768, 8192
    forward = two_layers(b, d, k)[0]                            # @inspect forward as FLOP
    backward = two_layers(b, d, k)[1]                           # @inspect backward as FLOP
    assert forward == 2 * b * d * d + 2 * b * d * k, "two products"
    assert forward == 43_980_465_111_040, "44 TFLOP"
    assert backward == 2 * b * d * d + 4 * b * d * k, "three, not four"
    assert backward == 52_776_558_133_248, "53 TFLOP, not 88"
    small_one = two_layers(64, 32, 16)[1] - 4 * 64 * 32 * 16    # @inspect small_one as FLOP
    assert small_one == 2 * 64 * 32 * 32, "the first layer's share"
    misbelief(
        r"In the backward pass the first layer, $D \times D$ weights and a batch of $B$, costs "
        "$4BDD$, as every layer does.",
        "Its input is data, and nobody wants the gradient of data. Autograd skips that product; "
        "the layer costs $2BDD$.",
    )
    claimed = 4 * b * d * d + 4 * b * d * k                     # @inspect claimed as FLOP
    too_high = claimed / backward - 1                           # @inspect too_high
    assert 0.66 < too_high < 0.67, "overstated by two thirds"
    misbelief(
        "The backward pass of these two layers costs $4BDD + 4BDK$.",
        f"It costs $2BDD + 4BDK$. The formula with both fours is {too_high:.0%} too high here.",
    )
    note("Ask for the gradient of the data, and the product appears:")
    assert two_layers(b, d, k, data=True)[1] == claimed, "now it is true"
    costs = [2 * b * d * d, 2 * b * d * k]
    figure(
        plot_products(costs),
        caption="The products of a training step of two layers. Grey: the one nobody needs.",
        alt="Bars for two layers. The wide first layer has a forward product and a weight "
        "gradient of equal length, and its input gradient is a dashed grey outline. The narrower "
        "second layer has three short bars: forward, weight gradient, input gradient.",
    )
    y = torch.empty(8, 8, device="meta")  # @hide
    for _ in range(10):  # @hide
        y = y @ torch.empty(8, 8, device="meta", requires_grad=True)
    question(
        "`10` square layers in a row are all trained, on data that wants no "
        "gradient. Of how many products does their backward pass consist?",
        answer=flops(y.sum().backward) // (2 * 8**3), unit="products",
    )


def six_per_parameter_and_token_is_a_special_case() -> None:
    """Twice forward, and six per parameter, hold when every input wants a gradient."""
    note(
        "Two rules of thumb are derived from such a network: backward costs twice forward, and "
        "a step costs `6` FLOPs per parameter and row of data. The same network again:"
    )
    b, d, k = 16384, 32768, 8192
    forward, backward = two_layers(b, d, k)
    params = d * d + d * k                                      # @inspect params
    assert params == 1_342_177_280, "weights of both layers"
    ratio = backward / forward                                  # @inspect ratio as times
    assert ratio == 1.2, "in this very example"
    misbelief(
        "The backward pass costs twice the forward pass.",
        f"In the example that usually illustrates it, {ratio} times. It is twice where the input "
        "of every product wants a gradient too, as in a language model.",
    )
    coefficient = (forward + backward) / (b * params)           # @inspect coefficient
    assert coefficient == 4.4, "FLOPs per parameter and row"
    misbelief(
        "A training step costs `6` FLOPs per parameter and token.",
        f"Here it costs {coefficient}. The rule is a first approximation. It charges a first "
        "layer and an embedding table too much, and it charges nothing for attention and for "
        "what is computed twice; the next sections measure both.",
    )
    note("Let the data want a gradient, and both rules are exact:")
    forward, backward = two_layers(b, d, k, data=True)
    assert backward / forward == 2.0, "with gradients for the data"
    assert (forward + backward) / (b * params) == 6.0, "the rule"
    question(
        "What is the coefficient if the second layer is square like the "
        "first, and nobody wants a gradient for the data?",
        answer=sum(two_layers(8, 64, 64)) / (8 * 2 * 64**2),
        unit="FLOPs per parameter and row",
    )


class Decoder(nn.Module):
    """A decoder-only Transformer reduced to its products: no masks, biases or normalizations."""

    def __init__(self, vocab: int, d: int, heads: int, layers: int) -> None:
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({
                "qkv": nn.Linear(d, 3 * d, bias=False),
                "out": nn.Linear(d, d, bias=False),
                "up": nn.Linear(d, 4 * d, bias=False),
                "down": nn.Linear(4 * d, d, bias=False),
            })
            for _ in range(layers)
        )
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            assert isinstance(block, nn.ModuleDict)
            split, h = "b t (n h c) -> n b h t c", self.heads
            q, k, v = rearrange(block["qkv"](x), split, n=3, h=h)
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            mixed = scores.softmax(dim=-1) @ v
            x = x + block["out"](rearrange(mixed, "b h t c -> b t (h c)"))
            x = x + block["down"](F.gelu(block["up"](x)))
        logits: Tensor = self.head(x)
        return logits


def decoder_flops(
    vocab: int, d: int, heads: int, layers: int,
    context: int, batch: int = 1,
) -> tuple[int, int]:
    """Forward and backward FLOPs of a `Decoder` on `batch` sequences, on the meta device."""
    with torch.device("meta"):
        model = Decoder(vocab, d, heads, layers)
        tokens = torch.zeros(batch, context, dtype=torch.int64)
    with FlopCounterMode(display=False) as forward:
        loss = model(tokens).square().mean()
    return int(forward.get_total_flops()), flops(loss.backward)


def in_a_transformer_backward_is_twice_forward() -> None:
    """In a language model the backward pass costs exactly twice the forward pass."""
    note(
        "The first product of a language model does not start from data. It starts from rows "
        "of an embedding table, which is trained and wants its gradient; looking them up "
        "costs no FLOPs. So no product is missing. The smallest GPT-2 has `12` layers of "
        "width `768`, a vocabulary of `50257` and a context of `1024` [@gpt2]."
    )
    vocab, d, heads, layers, context = 50257, 768, 12, 12, 1024
    forward, backward = decoder_flops(vocab, d, heads, layers, context)
    assert backward == 2 * forward, "to the last FLOP"
    note(
        "What is multiplied in each layer are four matrices: queries, keys and values in one, "
        "then output, up and down. The output head comes on top. The embedding table is only "
        "read."
    )
    matrices = layers * (3 + 1 + 4 + 4) * d * d + d * vocab     # @inspect matrices
    left_over = forward + backward - 6 * matrices * context     # @inspect left_over as FLOP
    attention = 12 * layers * d * context * context
    assert left_over == attention, "attention, and nothing else"
    note(
        "What six per parameter leaves out is attention. Over a context of $T$ tokens, queries "
        "meet keys and weights meet values at $2dT$ FLOPs each, per token and layer, and the "
        "backward pass takes twice that again: $12LdT$ per token in $L$ layers. The masked half "
        "is included, since an ordinary product computes it too."
    )
    four = decoder_flops(vocab, d, heads, layers, context, batch=4)
    assert four == (4 * forward, 4 * backward), "and linear in the batch"
    question(
        "How many FLOPs does a training step of a decoder take that has `2` "
        "layers of width `10`, a vocabulary of `100` and one sequence of `5` "
        "tokens?",
        answer=sum(decoder_flops(100, 10, 2, 2, 5)), unit="FLOP",
    )


def attention_is_what_the_rule_leaves_out() -> None:
    """How far the rule is off depends on the context."""
    note(
        "Six per parameter and token is written $6ND$, with $N$ parameters and $D$ tokens. Here "
        "is what GPT-2's shape costs, divided by that, at three lengths of context:"
    )
    vocab, d, heads, layers = 50257, 768, 12, 12
    matrices = 12 * layers * d * d + d * vocab
    contexts = [128, 1024, 8192]
    shape = vocab, d, heads, layers
    steps = [sum(decoder_flops(*shape, t)) for t in contexts]
    ruled = [6 * matrices * t for t in contexts]
    ratios = [round(s / r, 3) for s, r in zip(steps, ruled, strict=True)]
    assert ratios == [1.019, 1.153, 2.222], "measured over 6ND"
    note(
        "At a short context the rule is excellent, at a long one it misses more than half. GPT-3 "
        "has `96` layers of width `12288` and a context of `2048` [@gpt3], and there it is "
        "close. Every layer costs the same, so two small depths tell the cost of any other."
    )
    one, two, three = (
        sum(decoder_flops(vocab, 12288, 96, n, 2048)) for n in (1, 2, 3)
    )
    layer = two - one                                           # @inspect layer as FLOP
    assert three - two == layer, "the third costs as much"
    step = one + 95 * layer                                     # @inspect step as FLOP
    matrices = 12 * 96 * 12288**2 + 12288 * vocab               # @inspect matrices
    assert 174.5e9 < matrices < 174.6e9, "175 billion, as published"
    large = step / (6 * matrices * 2048)                        # @inspect large
    assert 1.027 < large < 1.028, "attention adds little"
    with_table = step / (6 * (matrices + 12288 * vocab) * 2048)  # @inspect with_table
    assert 1.023 < with_table < 1.025, "counting the table as well"
    question(
        "The ratios of the small model belong to contexts of `128`, `1024` "
        "and `8192`. Which one belongs to `4096`?",
        answer=round(sum(decoder_flops(*shape, 4096)) / (4 * ruled[1]), 3),
    )


def train_in_segments(
    layers: int, segment: int, rows: int, width: int
) -> tuple[int, int, Tensor]:
    """Bytes saved, FLOPs and first gradient of a step, recomputed in segments (0: not at all)."""
    torch.manual_seed(2)
    stack = torch.randn(layers, width, width) / width**0.5
    weights = [w.clone().requires_grad_() for w in stack]
    x = torch.randn(rows, width, requires_grad=True)
    own = {w.untyped_storage().data_ptr() for w in weights}
    kept: dict[int, int] = {}

    def keep(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    def run(x: Tensor, *part: Tensor) -> Tensor:
        for w in part:
            x = torch.tanh(x @ w)
        return x

    with FlopCounterMode(display=False) as counter:
        with saved_tensors_hooks(keep, lambda t: t):
            for i in range(0, layers, segment or layers):
                part = weights[i : i + (segment or layers)]
                if segment:
                    x = checkpoint(run, x, *part, use_reentrant=False)
                else:
                    x = run(x, *part)
        x.sum().backward()
    first = weights[0].grad
    assert first is not None
    saved = sum(size for place, size in kept.items() if place not in own)
    return saved, int(counter.get_total_flops()), first


def checkpointing_trades_flops_for_memory() -> None:
    """Checkpointing keeps less and computes the forward pass twice."""
    note(
        "Autograd keeps every activation until the backward pass has used it. *Activation "
        "checkpointing* keeps only the inputs of segments and computes the rest again when it is "
        "needed [@chen2016]. A stack of `16` layers, each a product and a tanh, can be watched "
        "saving:"
    )
    layers, rows, width = 16, 8, 32
    plain, once, exact = train_in_segments(layers, 0, rows, width)
    saved, work, gradient = train_in_segments(layers, 4, rows, width)
    one = rows * width * 4                                      # @inspect one as B
    assert plain == (layers + 1) * one == 17408, "input and all outputs"
    assert saved == layers // 4 * one == 4096, "one input per segment"
    note(
        "Kept until the end, that is. While the backward pass works on a segment, the outputs of "
        "its layers exist once more. Longer segments keep less and recompute more at once; the "
        "best length is the square root of the depth."
    )
    peaks = {n: layers // n + n for n in (1, 2, 4, 8, 16)}      # @inspect peaks
    assert min(peaks.values()) == peaks[4] == 8, "outputs at once"
    note("The price is a second forward pass. The gradient is the same.")
    params = layers * width * width
    assert once == 6 * rows * params == 786_432, "the rule"
    assert work == 8 * rows * params == 1_048_576, "and a forward pass"
    assert torch.equal(gradient, exact), "bit for bit"
    useful = once / work                                    # @inspect useful
    assert useful == 0.75, "of the FLOPs done count for MFU"
    kept, again, _ = train_in_segments(layers, 2, rows, width)  # @hide
    question(
        "In segments of `2` instead of `4`, how many bytes are kept, and how "
        "many more FLOPs are done than with `4`?",
        answer=[kept, again - work],
    )


def tanh_layers(x: Tensor, *weights: Tensor) -> Tensor:
    """Products with all weights, a tanh after each."""
    for w in weights:
        x = torch.tanh(x @ w)
    return x


def deep_gradient(weights: list[Tensor], x: Tensor, segment: int) -> Tensor:   # @stepover
    """First gradient of a step through the layers, recomputed in segments (0: not at all)."""
    for w in weights:
        w.grad = None
    for i in range(0, len(weights), segment or len(weights)):
        part = weights[i : i + (segment or len(weights))]
        if segment:
            x = checkpoint(
                tanh_layers, x, *part,
                use_reentrant=False, preserve_rng_state=False,
            )
        else:
            x = tanh_layers(x, *part)
    x.sum().backward()
    first = weights[0].grad
    assert first is not None
    return first


@requires("cuda")
def checkpointing_is_measured_here() -> None:
    """On a card, checkpointing lowers the peak and takes longer."""
    width = scaled(4096, lambda w: 400 * w * w)                 # @measure width
    note(
        "The same on a GPU, with a batch large enough for activations to matter. The peak is "
        "what `max_memory_allocated` has seen since it was reset." + shrunk(width, 4096)
    )
    layers, rows, dtype = 16, 4 * width, narrow_format()
    drawn = torch.randn(layers, width, width, device="cuda") / width**0.5
    weights = [w.to(dtype).requires_grad_() for w in drawn]
    x = torch.randn(rows, width, device="cuda").to(dtype)
    del drawn
    gradients, peaks, times = [], [], []
    for segment in (0, 4):
        step = partial(deep_gradient, weights, x, segment)
        times.append(time_call(step, "cuda"))                   # @measure times[-1]
        torch.cuda.reset_peak_memory_stats()
        gradients.append(step().clone())
        peaks.append(torch.cuda.max_memory_allocated())         # @measure peaks as B
    assert peaks[1] < peaks[0], "fewer activations at once"
    slower = times[1].seconds / times[0].seconds                # @measure slower as times
    assert 1 < slower < 2, "one forward pass more, never a whole step"
    off = float((gradients[0] - gradients[1]).norm() / gradients[0].norm())  # @measure off
    assert off < 0.02, "and the gradient is the same"
    question(
        "A step without checkpointing takes `90` ms, all of it in products. How long does it "
        "take with checkpointing, if nothing else changes?",
        answer=90 * 8 / 6, unit="ms",
    )


def the_same_sum_in_another_order_is_another_number() -> None:
    """The same sum in another order is another number."""
    note(
        "Floating-point addition is not associative. A GPU that adds in whatever order its "
        "threads finish can therefore give another gradient every time, with the same seed."
    )
    big, small = torch.tensor(2.0**24), torch.tensor(1.0)
    left = (big + small) + small                                # @inspect left
    right = big + (small + small)                               # @inspect right
    assert right - left == 2.0, "float32, three numbers"
    note(
        "`torch.use_deterministic_algorithms(True)` picks a fixed order where PyTorch has one "
        "and refuses where it has none [@pytorch-randomness]. Writing to the same place twice "
        "is such a case; which of the writes comes last is anyone's guess. The switch is off by "
        "default, and then the guess is made without a word."
    )
    enabled = torch.are_deterministic_algorithms_enabled()
    assert enabled is False, "off by default"
    place, values = torch.tensor([0, 0]), torch.tensor([1.0, 2.0])
    torch.use_deterministic_algorithms(True)
    refused = message_of(lambda: torch.zeros(3).put_(place, values))  # @inspect refused
    total = torch.zeros(3).index_add(0, place, values)          # @inspect total
    torch.use_deterministic_algorithms(False)
    assert "does not have a deterministic" in refused, "an error, not a guess"
    silent = message_of(lambda: torch.zeros(3).put_(place, values))
    assert silent == "", "without the switch it just runs"
    assert total.tolist() == [3.0, 0.0, 0.0], "adding has one"
    note(
        "Advice for a run that must be repeatable: fix the seeds, switch this on, and on a "
        "GPU set `CUBLAS_WORKSPACE_CONFIG=:4096:8` before the program starts "
        "[@pytorch-randomness]. Equal bits then hold for one release on one kind of machine, "
        "and they can cost speed."
    )
    question(
        "By how much does `2**24` grow in `float32` when `1` is added to it "
        "`1000` times, one after the other?",
        answer=(sum([small] * 1000, start=big) - big).item(),
    )


# --- parameters


def parameters() -> None:
    """Parameters and their first values."""
    note(
        "A line copied from script to script cuts initial weights off at two bounds, to be "
        "rid of outliers. It removes none, because the bounds are not in the units that its "
        "readers think. How large first values should be is a matter of counting the terms of a sum."
    )
    a_parameter_is_a_tensor_that_is_registered()
    an_output_is_a_sum_of_many_terms()
    dividing_by_the_root_keeps_the_scale()
    xavier_agrees_for_square_layers_only()
    unscaled_gradients_explode()
    truncation_bounds_are_absolute()
    weights_are_truncated_and_outputs_are_not()
    a_deep_linear_model_is_one_matrix()
    a_module_moves_in_place()


def a_parameter_is_a_tensor_that_is_registered() -> None:
    """A parameter is a tensor that wants a gradient and that its module knows about."""
    note("A parameter is a tensor in a thin wrapper, which says that it is to be trained:")
    w = nn.Parameter(torch.randn(4, 2))                         # @inspect w
    assert isinstance(w, Tensor), "a tensor like others"
    kinds = type(w), type(w.data)                               # @inspect kinds
    assert kinds == (nn.Parameter, Tensor), "`.data` is a plain one"
    assert w.requires_grad is True, "which wants a gradient"
    note(
        "A module registers a parameter as soon as it is assigned to an attribute. A plain tensor "
        "is assigned just as well, and then overlooked: by optimizers, by checkpoints and by "
        "`.to`."
    )
    module = nn.Module()
    module.learned, module.forgotten = w, torch.randn(4, 2)
    names = [name for name, _ in module.named_parameters()]     # @inspect names
    assert names == ["learned"], "one of the two"
    assert list(module.state_dict()) == ["learned"], "also when saving"
    module = nn.Module()  # @hide
    module.first = nn.Parameter(torch.ones(3, 5))  # @hide
    module.second = torch.ones(5, requires_grad=True)  # @hide
    module.third = nn.Parameter(torch.ones(7))  # @hide
    question(
        "A module has a parameter of `3 × 5`, a plain tensor of `5` numbers "
        "that wants a gradient, and a parameter of `7`. How many numbers "
        "does its optimizer train?",
        answer=sum(p.numel() for p in module.parameters()), unit="numbers",
    )


def outputs(n: int, scale: float) -> Float[Tensor, "draws col"]:
    """Many draws of x @ w, x of unit variance and length `n`, the weights `scale` times that."""
    return torch.randn(192, n) @ (torch.randn(n, 64) * scale)


def an_output_is_a_sum_of_many_terms() -> None:
    """With unit weights, an output is as large as the root of its number of inputs."""
    note(
        "Inputs and weights have a standard deviation of `1`. Sums of their products do not."
    )
    x, w = torch.randn(16384), torch.randn(16384, 32)
    y: Float[Tensor, "col"] = x @ w                             # @inspect y
    assert tuple(y.shape) == (32,), "one number per column"
    note(
        "Each output is a sum of products of variance one, as many as there are inputs. Variances "
        "of independent terms add up. So the variance of the sum is the number of inputs, and "
        "its deviation is the root of that number. A single output does not show it; the "
        "`53.789` that CS336 prints [@cs336] is one draw:"
    )
    draw = 53.789 / math.sqrt(16384)                            # @inspect draw
    assert 0.42 < draw < 0.421, "of a deviation"
    note("Many draws do show it:")
    widths = [256, 1024, 4096, 16384]
    spread = [outputs(n, 1.0).std().item() for n in widths]     # @inspect spread
    roots = [math.sqrt(n) for n in widths]                      # @inspect roots
    measured = [s / r for s, r in zip(spread, roots, strict=True)]  # @inspect measured
    assert 0.95 < min(measured), "not below the root"
    assert max(measured) < 1.05, "nor above, at any width"
    misbelief(
        "The variance of the output is related to the square root of the number of inputs.",
        "The *variance* grows with the number itself, the *standard deviation* with its root.",
    )
    growth = (spread[-1] / spread[0]) ** 2                      # @inspect growth as times
    assert round(math.log2(growth)) == 6, "as many doublings as the width"
    scaled = [outputs(n, n**-0.5).std().item() for n in widths]
    figure(
        plot_spread(widths, spread, scaled),
        caption="What unit weights let grow with the root of the width, scaled weights keep at one. "
        "Standard deviation of x @ w, both axes logarithmic.",
        alt="With unit weights the dots climb along a dotted line of slope one half, from "
        f"{roots[0]:.0f} at a width of {widths[0]} to {roots[-1]:.0f} at {widths[-1]}. With "
        "weights divided by the root of the width they stay on a level line at one.",
    )
    question(
        "Weights have a deviation of `0.1` instead of `1`, and there are "
        "`10,000` inputs of unit variance. Which deviation do outputs have, "
        "to the nearest whole number?",
        answer=round(outputs(10_000, 0.1).std().item()),
    )


def dividing_by_the_root_keeps_the_scale() -> None:
    """Divided by the root of the inputs, outputs stay at one whatever the width."""
    note("`outputs` multiplies random inputs by random weights of the given deviation.")
    widths = [256, 4096, 65536]
    spread = [outputs(n, 1 / math.sqrt(n)).std().item() for n in widths]  # @inspect spread
    rounded = [round(s, 1) for s in spread]
    assert rounded == [1.0, 1.0, 1.0], "independent of the width"
    misbelief(
        "After scaling, each element of the output is constant.",
        "Of constant *order*. The values are as random as before, around zero with a deviation "
        "near one; the number printed beside that sentence was a single draw.",
    )
    y = outputs(16384, 1 / math.sqrt(16384)).flatten()          # @inspect y
    different = len(set(y.tolist()))                            # @measure different
    assert 0.99 < different / y.numel(), "hardly two alike"
    inside = (y.abs() < 1).double().mean().item()               # @inspect inside
    assert 0.64 < inside < 0.73, "about two thirds within one"
    question(
        "A script draws all weights with a deviation of `0.02`. For which "
        "number of inputs does that keep outputs at `1`?",
        answer=round(1 / 0.02**2), unit="inputs",
    )


def xavier_agrees_for_square_layers_only() -> None:
    """Dividing by the root of the inputs is Xavier's rule for square layers only."""
    note(
        "Xavier, or Glorot, initialization balances forward and backward pass with a "
        "deviation of "
        r"$\sqrt{2/(n_\mathrm{in}+n_\mathrm{out})}$ [@glorot2010]. Dividing by the root of the "
        "inputs alone is older and carries LeCun's name [@lecun1998]."
    )

    def against_lecun(inputs: int, outputs: int) -> float:
        w = nn.init.xavier_normal_(torch.empty(outputs, inputs))
        return w.std().item() * math.sqrt(inputs)

    square = against_lecun(512, 512)                            # @inspect square
    narrow = against_lecun(16384, 32)                           # @inspect narrow
    assert 0.98 < square < 1.02, "the same for a square layer"
    formula = math.sqrt(2 * 16384 / (16384 + 32))               # @inspect formula
    assert 1.412 < formula < 1.413, "by Glorot's formula"
    assert 0.98 < narrow / formula < 1.02, "as measured"
    misbelief(
        "Scaling by one over the root of the inputs is Xavier initialization, up to a constant.",
        f"Their ratio depends on the shape: one for square layers, {formula:.2f} for this narrow "
        "one. And `nn.Linear` does neither.",
    )
    default = nn.Linear(4096, 64).weight.detach() * math.sqrt(4096)
    assert 0.99 < default.abs().max() < 1.01, "uniform, cut off at one"
    std = default.std().item()                                  # @inspect std
    assert 0.57 < std < 0.585, "one over the root of three"
    question(
        "A layer turns `100` inputs into `700` outputs. Which deviation does "
        "Glorot's formula give its weights, and which does LeCun's?",
        answer=[math.sqrt(2 / (100 + 700)), 1 / math.sqrt(100)],
    )


def unscaled_gradients_explode() -> None:
    """Unscaled layers make gradients explode."""
    note(
        "Activations of unscaled layers overflow before long. Gradients run through the layers "
        "twice, forwards and back, and grow faster still. Ten layers of width `64`:"
    )

    def first_gradient(scale: float) -> float:
        torch.manual_seed(3)
        x = torch.randn(8, 64)
        stack = torch.randn(10, 64, 64) * scale
        weights = [w.requires_grad_() for w in stack]
        y = x
        for w in weights:
            y = y @ w
        loss = y.square().mean()
        return float(torch.autograd.grad(loss, weights[0])[0].norm())

    wild = first_gradient(1.0)                                  # @inspect wild
    tame = first_gradient(1 / 8)                                # @inspect tame
    note(
        "Each layer that is left unscaled is `8` times too large, the root of its width. The loss "
        "is a square, so it holds every layer's factor twice; the derivative by the first layer "
        "takes one of that layer's away. Powers of two divide exactly, so the ratio is exact too."
    )
    assert wild / tame == 8.0 ** (2 * 10 - 1), "to the last factor"
    note(
        "Advice: scale so that each layer keeps the size of what it gets. Glorot's rule was made "
        "for linear and tanh layers. A ReLU throws away half of its input, and He's rule, with a "
        "`2` under the root, makes up for it [@he2015]."
    )
    lecun = he = torch.randn(64, 1024)
    for _ in range(4):
        w = torch.randn(1024, 1024) / math.sqrt(1024)
        lecun, he = (lecun @ w).relu(), (he @ w * math.sqrt(2)).relu()
    left = lecun.square().mean().item()                         # @inspect left
    kept = he.square().mean().item()                            # @inspect kept
    assert round(math.log2(left)) == -4, "variance halved by each layer"
    assert round(math.log2(kept)) == 0, "and kept, with the two"
    question(
        "How many times as large as the scaled one is the first layer's "
        "gradient in a stack of only `3` unscaled layers of this width?",
        answer=8 ** (2 * 3 - 1), unit="times",
    )


def truncated(bound: float) -> Float[Tensor, "inner col"]:
    """Weights of a 16384 × 128 layer, in units of their nominal deviation, cut at ± `bound`."""
    n = 16384
    w = torch.empty(n, 128)
    nn.init.trunc_normal_(w, std=n**-0.5, a=-bound, b=bound)
    return w * math.sqrt(n)


def truncation_bounds_are_absolute() -> None:
    """The bounds of `trunc_normal_` are absolute, so ±3 cuts nothing."""
    note("A layer of `16384` inputs, its weights scaled by the root of that:")
    std = 1 / math.sqrt(16384)                                  # @inspect std
    assert 3 / std == 384.0, "deviations away"
    misbelief(
        "`trunc_normal_(w, std=1 / sqrt(n), a=-3, b=3)` removes outliers beyond three "
        "deviations.",
        f"`a` and `b` are values, not multiples. At this width they lie {3 / std:.0f} deviations "
        "out, where no draw ever falls. Write `a=-3 * std, b=3 * std`.",
    )
    note("`truncated` draws such weights and returns them as multiples of their deviation.")
    absolute = truncated(3.0)                                   # @inspect absolute
    beyond = (absolute.abs() > 3).sum().item()                  # @inspect beyond
    expected = absolute.numel() * math.erfc(3 / math.sqrt(2))   # @inspect expected
    assert 0.94 < beyond / expected < 1.06, "as many as an uncut normal has"
    note("Far wider bounds give the very same weights:")
    torch.manual_seed(4)
    uncut = truncated(300.0)
    torch.manual_seed(4)
    same = truncated(3.0)
    assert torch.equal(same, uncut), "not a single draw differs"
    note("Bounds in deviations do cut, and what they leave is narrower by a known factor.")
    relative = truncated(3 * std)                               # @inspect relative
    assert 2.9 < relative.abs().max() < 3.0001, "nothing beyond three"
    assert relative.abs().max() < absolute.abs().max(), "unlike before"
    shrunk = relative.std().item()                              # @inspect shrunk
    density = math.exp(-4.5) / math.sqrt(2 * math.pi)
    theory = math.sqrt(1 - 6 * density / math.erf(3 / math.sqrt(2)))  # @inspect theory
    assert 0.9865 < theory < 0.9867, "what the cut leaves"
    assert 0.99 < shrunk / theory < 1.01, "and what was drawn"
    figure(
        plot_truncation(absolute, relative),
        caption=f"{absolute.numel():,} initial weights, in deviations. Bounds of `±3` leave both "
        "tails, bounds of `±3·std` cut them off.",
        alt="Two bell curves that coincide in the middle. The one with bounds of plus and minus "
        "three runs on to beyond four on either side; the one with bounds of three deviations "
        "ends at three.",
    )
    question(
        "A layer of `400` inputs gets weights with a deviation of one over "
        "the root of `400`. Which `b` cuts them off at two deviations?",
        answer=2 / math.sqrt(400),
    )


def weights_are_truncated_and_outputs_are_not() -> None:
    """It is the weights that are drawn from a truncated normal, not the outputs."""
    misbelief(
        "For extra safety the output values can be truncated.",
        "What is truncated are the initial weights, once, when they are drawn. Outputs go where "
        "their sum takes them.",
    )
    w = truncated(3 / math.sqrt(16384)) / math.sqrt(16384)
    y = torch.randn(512, 16384) @ w
    largest = w.abs().max().item() * math.sqrt(16384)           # @inspect largest
    assert 2.9 < largest < 3.0001, "weights stay within"
    std = y.std().item()                                        # @inspect std
    assert 0.95 < std < 1.02, "outputs are of size one, as planned"
    farthest = y.abs().max().item() / std                       # @inspect farthest
    assert largest < farthest, "and outliers of their own"
    question(
        "Every weight lies within `3/128`, and each of the `16384` inputs is "
        "`1` or `-1`. How large can an output get at worst, where its usual "
        "deviation is `1`?",
        answer=3 / 128 * 16384,
    )


class Linear(nn.Module):
    """A linear layer without a bias, its weight stored inputs first."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        w = torch.randn(inputs, outputs) / math.sqrt(inputs)
        self.weight = nn.Parameter(w)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


class DeepLinear(nn.Module):
    """Square layers, then one that leaves a single number for each row."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        squares = (Linear(width, width) for _ in range(layers))
        self.layers = nn.Sequential(*squares)
        self.final = Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.final(self.layers(x))
        return y.squeeze(-1)


def a_deep_linear_model_is_one_matrix() -> None:
    """Depth without a nonlinearity is one matrix in disguise."""
    note("`DeepLinear` stacks square layers and ends in one that leaves a single number a row.")
    model = DeepLinear(width=64, layers=2)
    sizes = {name: p.numel() for name, p in model.state_dict().items()}  # @inspect sizes
    square = 64 * 64
    assert sizes == {
        "layers.0.weight": square, "layers.1.weight": square, "final.weight": 64
    }, "no biases"
    total = sum(sizes.values())                                 # @inspect total
    assert total == 2 * 64**2 + 64 == 8256, "parameters"
    x: Float[Tensor, "batch width"] = torch.randn(8, 64)
    y: Float[Tensor, "batch"] = model(x)                        # @inspect y
    assert tuple(y.shape) == (8,), "one value per example"
    note(
        "Multiply its matrices together, and the whole network is a single column of weights. "
        "Extra layers cost parameters and FLOPs and can express nothing more. Whole numbers for "
        "weights make the comparison exact."
    )
    weights = [whole_numbers(*p.shape) for p in model.parameters()]
    first, second, final = weights
    x = whole_numbers(8, 64)
    single: Float[Tensor, "width one"] = first @ second @ final  # @inspect single.shape
    assert single.numel() == 64, "do the work of them all"
    deep = x @ first @ second @ final
    assert torch.equal(x @ single, deep), "the same outputs"
    bent = (x @ first).relu() @ second @ final
    assert not torch.equal(bent, deep), "not with a ReLU inside"
    deeper = DeepLinear(width=10, layers=5)  # @hide
    question(
        "How many parameters of a `DeepLinear(width=10, layers=5)` could be "
        "saved by a model that expresses just as much?",
        answer=sum(p.numel() for p in deeper.parameters()) - 10,
        unit="parameters",
    )


def a_module_moves_in_place() -> None:
    """Moving a module changes it; moving a tensor makes another one."""
    note(
        "`model.to(device)` moves the parameters inside the module and returns the module, so "
        "the result may be ignored. The result of `tensor.to(device)` may not: the original "
        "stays where it was. Any device shows this, `meta` too."
    )
    model, x = DeepLinear(width=4, layers=1), torch.randn(4)
    moved, copy = model.to("meta"), x.to("meta")
    assert moved is model, "the same module"
    assert model.final.weight.device.type == "meta", "which has moved"
    assert copy is not x, "another tensor"
    assert x.device.type == "cpu", "while this one stayed"
    net, batch = DeepLinear(width=4, layers=3), [torch.ones(4), torch.ones(4)]  # @hide
    ignored = net.to("meta"), [t.to("meta") for t in batch]  # @hide
    places = [t.device.type for t in (*net.parameters(), *batch)]  # @hide
    question(
        "A `DeepLinear` with `3` square layers and a batch of `2` tensors "
        "are sent to `meta`, and every result is ignored. How many tensors "
        "move, and how many stay behind?",
        answer=[places.count("meta"), places.count("cpu")], unit="tensors",
    )


# --- randomness and data


def data_and_randomness() -> None:
    """Randomness and data."""
    note("What a model learns from is a row of integers in a file, and the file does not say how "
         "wide the integers are. Which of them it sees first is decided by a random generator, "
         "and a program has more of those than its seeds reach. Neither slip raises an error. "
         "Both change every number that follows.")
    chance_enters_in_three_places()
    each_library_keeps_a_generator_of_its_own()
    a_shared_generator_couples_what_shares_it()
    text_becomes_a_row_of_integers()
    a_token_file_does_not_know_its_dtype()
    a_memory_map_loads_what_is_touched()
    a_memory_map_may_write_to_your_data()
    the_size_of_the_data_is_tokens_times_width()
    a_batch_is_inputs_and_their_next_tokens()
    the_last_start_leaves_room_for_a_target()
    narrow_tokens_need_a_cast()
    stacking_arrays_comes_before_converting_them()
    pinning_needs_an_accelerator()
    a_pinned_copy_does_not_wait()
    a_prefetch_hides_the_copy()


def chance_enters_in_three_places() -> None:
    """Chance sets the first weights, drops activations and orders the data."""
    note("Weights start as random numbers. *Dropout* sets random activations to zero while "
         "training. The examples come in shuffled order. Do any of them twice, and the second "
         "time is different.")
    first, second = nn.Linear(4, 4).weight, nn.Linear(4, 4).weight
    assert not torch.equal(first, second), "two initializations"
    ones = torch.ones(100)
    dropped, again = F.dropout(ones), F.dropout(ones)  # @inspect dropped
    assert not torch.equal(dropped, again), "two sets of zeros"
    order, reorder = torch.randperm(100), torch.randperm(100)
    assert not torch.equal(order, reorder), "two shuffles"

    note("None of it is chance in the strict sense. A *generator* computes the numbers from a "
         "state; a *seed* sets that state, and from there the sequence is fixed.")

    def after_seeding() -> Tensor:
        torch.manual_seed(0)
        return F.dropout(ones)

    assert torch.equal(after_seeding(), after_seeding()), "the same zeros"
    note("Advice: fix the seeds while looking for a bug, because two runs that agree to the last "
         "bit can be compared line by line. Vary them before believing a result, because one "
         "seed is a sample of one.")
    results = set()  # @hide
    for call in range(10):  # @hide
        if call in (0, 5):
            torch.manual_seed(0)
        results.add(tuple(F.dropout(ones).tolist()))
    question("`F.dropout(ones)` is called `10` times in a row, and before "
             "the first and the sixth call the seed is set to `0`. How many "
             "different results are there?",
             answer=len(results), unit="results")


def each_library_keeps_a_generator_of_its_own() -> None:
    """PyTorch, NumPy and Python each keep a generator of their own, and NumPy keeps two kinds."""
    note("Hence the usual three lines, `torch.manual_seed`, `np.random.seed` and `random.seed`. "
         "Draw from each library after seeding, and from NumPy also in its newer way.")

    def draws() -> list[float]:
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        old, new = np.random.rand(), np.random.default_rng().random()
        return [torch.rand(1).item(), old, random.random(), new]

    first, second = draws(), draws()  # @measure first, second
    repeats = [a == b for a, b in zip(first, second)]  # @inspect repeats
    assert repeats == [True, True, True, False], "the newer one escapes"

    misbelief("Seeding PyTorch, NumPy and Python makes a run reproducible.",
              "It seeds three generators. Whatever makes a generator of its own needs a seed of "
              "its own, and a seed does nothing about the order in which a device adds up.")
    newer, same = np.random.default_rng(0), np.random.default_rng(0)
    assert newer.random() == same.random(), "seeded where it is made"
    note("The rest of the list is longer: worker processes that load data, kernels that are "
         "chosen by timing them, additions in whatever order threads arrive, the number of "
         "threads, the versions of the libraries [@pytorch-randomness]. The part on training "
         "returns to it.")
    def partly() -> list[float]:  # @hide
        torch.manual_seed(0)
        random.seed(0)
        old, new = np.random.rand(), np.random.default_rng(7).random()
        return [torch.rand(1).item(), random.random(), old, new]

    question("A program seeds PyTorch and Python, and draws from both, from "
             "`np.random.rand()` and from `np.random.default_rng(7)`. How "
             "many of the four draws repeat in the next run?",
             answer=sum(a == b for a, b in zip(partly(), partly())),
             unit="draws")


def a_shared_generator_couples_what_shares_it() -> None:
    """Two purposes that share a generator change each other's draws."""
    misbelief("Use a different seed for every source of randomness.",
              "Between libraries equal seeds do no harm: each turns them into another sequence. "
              "Two generators of the same library do need different ones. But what does most "
              "harm is one generator for several purposes.")
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    draws = torch.rand(1).item(), np.random.rand(), random.random()
    rounded = [round(draw, 3) for draw in draws]  # @inspect rounded
    assert rounded == [0.496, 0.549, 0.844], "three sequences from seed 0"
    twins = [torch.Generator().manual_seed(0) for _ in range(2)]
    first, second = (torch.rand(1, generator=g).item() for g in twins)
    assert first == second == draws[0], "but one kind, one sequence"

    note("Here dropout and the shuffle both draw from PyTorch's global generator. Switch dropout "
         "on, and the data come in another order, so a comparison of the two runs compares two "
         "things at once. A generator for the shuffle alone keeps the order.")

    def order(dropout: bool, own: torch.Generator | None) -> list[int]:
        torch.manual_seed(0)
        if dropout:
            F.dropout(torch.ones(8))
        shuffled: list[int] = torch.randperm(8, generator=own).tolist()
        return shuffled

    without = order(False, own=None)  # @inspect without
    reshuffled = order(True, own=None)  # @inspect reshuffled
    assert reshuffled != without, "dropout moved the data"
    without = order(False, torch.Generator().manual_seed(0))
    kept = order(True, torch.Generator().manual_seed(0))  # @inspect kept
    assert kept == without, "the order stays"
    orders = set()  # @hide
    for dropout in (False, True):  # @hide
        own = torch.Generator().manual_seed(0)
        orders |= {tuple(order(dropout, None)), tuple(order(dropout, own))}
    question("`order` is called with dropout off and on, each time without a "
             "generator and with one of seed `0`. How many different orders "
             "come out of the four calls?",
             answer=len(orders), unit="orders")


def text_becomes_a_row_of_integers() -> None:
    """To a language model, data is one long row of integers."""
    note("A *tokenizer* cuts text into pieces from a fixed list, the *vocabulary*, and writes "
         "down the number of each piece. The simplest possible one takes bytes for pieces. It "
         "shows all there is to know here: numbers in, text out, nothing lost.")
    text = "count everything, même ça"
    tokens = np.frombuffer(text.encode(), dtype=np.uint8)  # @inspect tokens
    assert tokens[:5].tolist() == [99, 111, 117, 110, 116], "c, o, u, n, t"
    assert tokens.tobytes().decode() == text, "and back"
    extra = len(tokens) - len(text)  # @inspect extra
    assert extra == 2, "two letters take two bytes each"
    question("How many tokens does the simplest tokenizer make of "
             "`naïve café`?",
             answer=len("naïve café".encode()), unit="tokens")


def a_token_file_does_not_know_its_dtype() -> None:
    """A file of raw tokens does not know its dtype, and reads as anything."""
    note("`tofile` writes the bytes of an array and nothing else. A *memory map* treats such a "
         "file as an array: `np.memmap` takes the name and, from you, the dtype.")
    tokens = np.arange(1, 11, dtype=np.int32)
    raw = NamedTemporaryFile(suffix=".bin")
    tokens.tofile(raw.name)
    size = Path(raw.name).stat().st_size  # @inspect size as B
    assert size == 10 * 4, "ten numbers, nothing else"
    back = np.memmap(raw.name, dtype=np.int32, mode="r")  # @inspect back
    assert back.tolist() == tokens.tolist(), "what was written"
    note("Leave the dtype out, or get it wrong, and the same bytes are other tokens. No error.")
    unstated = np.memmap(raw.name, mode="r")  # @inspect unstated
    wrong = np.memmap(raw.name, dtype=np.int64, mode="r")  # @inspect wrong
    assert (len(unstated), len(wrong)) == (40, 5), "other lengths"

    misbelief("`array.tofile(\"data.npy\")` writes a NumPy file, and NumPy can load it back.",
              "The name promises a header that is not there. `np.load` finds none, takes the "
              "bytes for a pickled Python object and refuses.")
    refused = message_of(lambda: np.load(raw.name))  # @inspect refused
    assert "pickle" in refused, "not a NumPy file"
    note("Call raw files `.bin`, or spend a few bytes on a real header and map that:")
    headed = NamedTemporaryFile(suffix=".npy")
    np.save(headed.name, tokens)
    mapped = np.load(headed.name, mmap_mode="r")
    header = Path(headed.name).stat().st_size - size  # @inspect header as B
    assert header == 128, "states dtype and shape"
    assert mapped.dtype == np.int32, "known without being told"
    question("`12` tokens are written as `int64`, and the file is mapped as "
             "`uint16`. How many tokens appear?",
             answer=len(np.arange(12, dtype=np.int64).view(np.uint16)),
             unit="tokens")


def resident_bytes() -> int:
    """Bytes of this process that are in physical memory now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def a_memory_map_loads_what_is_touched() -> None:
    """A memory map loads the pages that are touched, and no others."""
    note("A file of `50` GB, larger than the memory of most laptops. It is *sparse*: its length "
         "is set, and no block of the disk has been written yet. Touch a few tokens in its middle, "
         "then a longer stretch at its start, and watch the memory of this process:")
    size = 50 * GB
    file = NamedTemporaryFile(suffix=".bin")
    file.truncate(size)
    before = resident_bytes()
    data = np.memmap(file.name, dtype=np.uint16, mode="r")
    assert len(data) == 25 * 10**9, "tokens within reach"
    middle = len(data) // 2
    data[middle : middle + 1024].sum()
    peek = resident_bytes() - before  # @measure peek as B
    stretch = data[: 32 * MiB]
    stretch.sum()
    read = resident_bytes() - before - peek  # @measure read as B
    assert stretch.nbytes == 64 * MiB, "a stretch of the file"
    assert peek < read, "touched pages are resident"
    note("The operating system does this, in small blocks called *pages*, and it is not "
         "*swapping*. Swapping moves a program's own memory out to disk. Here the file is the "
         "disk copy: a page is read when it is touched, counts as resident from then on, and may "
         "be dropped without writing whenever memory runs short.")
    question("`1000` tokens are read from a map, each from a page of its "
             "own, and a page has `4096` B. How many bytes become resident "
             "at least?",
             answer=1000 * 4096, unit="B")


def a_memory_map_may_write_to_your_data() -> None:
    """A memory map opened carelessly writes to your data."""
    misbelief("Through a memory map one can read, compute with and modify any part of the file.",
              "One can, and that is the trouble. The default mode writes: an assignment meant "
              "for an array in memory changes the training set on disk.")
    tokens = np.arange(1, 11, dtype=np.int32)
    file = NamedTemporaryFile(suffix=".bin")
    tokens.tofile(file.name)
    careless = np.memmap(file.name, dtype=np.int32)
    assert careless.mode == "r+", "the default is read and write"
    careless[0] = 99
    careless.flush()
    on_disk = np.fromfile(file.name, dtype=np.int32)  # @inspect on_disk
    assert on_disk[0] == 99, "the file has changed"

    note("Mode `r` refuses to write. Mode `c`, *copy on write*, keeps the changes to itself.")
    locked = np.memmap(file.name, dtype=np.int32, mode="r")
    refused = message_of(lambda: locked.__setitem__(1, 99))  # @inspect refused
    assert "read-only" in refused, "refused"
    private = np.memmap(file.name, dtype=np.int32, mode="c")
    private[1] = 99
    on_disk = np.fromfile(file.name, dtype=np.int32)
    assert (private[1], on_disk[1]) == (99, 2), "changed here, not there"
    note("Advice: for one long file of tokens, read at random places, a map in mode `r` is hard "
         "to beat. Data that must be parsed, decompressed or streamed want something else.")
    careless[5] = 50  # @hide
    careless.flush()  # @hide
    private = np.memmap(file.name, dtype=np.int32, mode="c")  # @hide
    private[5] = 60  # @hide
    on_disk = np.fromfile(file.name, dtype=np.int32)  # @hide
    question("Token `5` is set to `50` through a map in mode `r+`, then to "
             "`60` through one in mode `c`. What is it on disk, and what in "
             "the second map?",
             answer=[int(on_disk[5]), int(private[5])])


def the_size_of_the_data_is_tokens_times_width() -> None:
    """The size of a tokenized data set is tokens times bytes per token."""
    note("The largest models of the first LLaMA family were trained on `1.4` trillion tokens "
         "[@touvron2023]. Stored as `uint16`, or as `int32` like the example above:")
    tokens = 14 * 10**11
    narrow = tokens * np.dtype(np.uint16).itemsize  # @inspect narrow as B
    wide = tokens * np.dtype(np.int32).itemsize  # @inspect wide as B
    assert narrow == 2800 * GB, "two bytes a token"
    assert wide == 5600 * GB, "four bytes a token"
    note("The paper also gives the size on disk of each source of text, from a crawl of the web "
         "down to answers from a forum [@touvron2023]. Their sum:")
    text = (3300 + 783 + 328 + 83 + 85 + 92 + 78) * GB  # @inspect text as B
    assert text == 4749 * GB, "before tokenization"
    misbelief(f"LLaMA's training data is {narrow / TERA} TB.",
              f"The token ids are, at {narrow // tokens} bytes each. At {wide // tokens} they are "
              f"twice that, and the text was {text / TERA:.2f} TB. Say what is counted, and how "
              "wide.")
    note("How wide depends on the vocabulary. `uint16` can number this many tokens; Llama 3, with "
         "`128K` of them [@llama3], needs more.")
    vocabulary = np.iinfo(np.uint16).max + 1  # @inspect vocabulary
    assert vocabulary == 65536, "ids from zero up"
    question("A tokenizer with a vocabulary of `100,000` turns a text into "
             "`2` trillion tokens. How large is the file, in the narrowest "
             "of the formats `uint8`, `uint16` and `uint32` that will do?",
             answer=2 * 10**12 * np.min_scalar_type(100_000 - 1).itemsize,
             unit="B")


def get_batch(
    data: NDArray[Any], batch: int, length: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch length"], Int[Tensor, "batch length"]]:
    """Random stretches of `data`, and the same stretches one token later, as int64."""
    last = len(data) - length
    starts = torch.randint(last, (batch,), generator=generator).tolist()
    rows = np.stack([data[i : i + length + 1] for i in starts])
    tokens = torch.from_numpy(rows.astype(np.int64))
    return tokens[:, :-1], tokens[:, 1:]


def a_batch_is_inputs_and_their_next_tokens() -> None:
    """A batch is inputs and targets, and the targets are the inputs one token later."""
    note("A language model predicts the next token at every position, so the right answer for "
         "each input token is its successor in the file. `get_batch` cuts stretches a token "
         "too long and returns two views of them. The tokens here count up, which makes the "
         "shift visible.")
    data = np.arange(1, 11, dtype=np.int32)
    x, y = get_batch(data, 2, 4, torch.Generator().manual_seed(0))  # @inspect x, y
    assert x.shape == (2, 4), "batch, length"
    assert torch.equal(y, x + 1), "every target is the next token"
    assert same_storage(x, y), "two views of one stretch"
    assert x.dtype == torch.int64, "widened from int32"

    note("Batch, length and generator all matter, and the same seed gives the same batch.")
    other, _ = get_batch(data, 3, 5, torch.Generator().manual_seed(0))
    again, _ = get_batch(data, 2, 4, torch.Generator().manual_seed(0))
    moved, _ = get_batch(data, 2, 4, torch.Generator().manual_seed(1))
    assert other.shape == (3, 5), "another batch, another length"
    assert torch.equal(again, x), "same seed, same stretches"
    assert not torch.equal(moved, x), "another seed, others"
    long, _ = get_batch(np.arange(9999), 8, 1024, torch.Generator())  # @hide
    question("How many bytes do inputs and targets of `8` stretches of "
             "`1024` tokens occupy together?",
             answer=long.untyped_storage().nbytes(), unit="B")


def the_last_start_leaves_room_for_a_target() -> None:
    """How far the starts may go depends on whether targets are taken."""
    misbelief("A stretch may start anywhere in `randint(len(data) - length)`.",
              "With targets that is exactly right. Without them it is one short, and the last "
              "token of the file is never seen at all.")
    data = np.arange(1, 11, dtype=np.int32)
    generator = torch.Generator().manual_seed(0)
    x, y = get_batch(data, 4000, 4, generator)
    starts = (x[:, 0] - 1).unique().tolist()  # @inspect starts
    assert starts == [0, 1, 2, 3, 4, 5], "as many as ten less four"
    inputs, targets = x.unique().tolist(), y.unique().tolist()
    assert inputs == [1, 2, 3, 4, 5, 6, 7, 8, 9], "the last is no input"
    assert targets == [2, 3, 4, 5, 6, 7, 8, 9, 10], "but it is a target"
    note("A file with no room for a target has no valid start, and says so:")
    refused = message_of(lambda: get_batch(data[:4], 1, 4, generator))  # @inspect refused
    assert "to be less than" in refused, "four tokens are too few"
    fits, _ = get_batch(data[:5], 1, 4, generator)
    assert fits.tolist() == [[1, 2, 3, 4]], "five are just enough"
    question("At how many places can a stretch of `30` tokens start in a "
             "file of `100`, with targets and without?",
             answer=[100 - 30, 100 - 30 + 1], unit="places")


def narrow_tokens_need_a_cast() -> None:
    """Tokens are stored narrow and used wide."""
    note("A narrow format is right for the file and wrong for the model. An embedding refuses "
         "`uint16` for an index, and the loss refuses `int32` for a target.")
    tokens = torch.from_numpy(np.array([[1, 2, 3]], dtype=np.uint16))
    table = nn.Embedding(10, 4)
    refused = message_of(lambda: table(tokens))  # @inspect refused
    assert "indices" in refused, "no uint16 for an index"
    scores, targets = torch.randn(3, 10), tokens.flatten()
    refused = message_of(lambda: F.cross_entropy(scores, targets.int()))  # @inspect refused
    assert "Long" in refused, "no int32 for a target"
    note("So `get_batch` casts. What it widens is a batch, not the file.")
    wide = tokens.long()
    assert table(wide).shape == (1, 3, 4), "a vector per token"
    assert F.cross_entropy(scores, wide.flatten()).dim() == 0, "a loss"
    assert wide.nbytes / tokens.nbytes == 4, "the price, per batch"
    stored = torch.zeros(16, 1000, dtype=torch.uint16)  # @hide
    question("How many bytes do `16` rows of `1000` tokens from a `uint16` "
             "file take on disk, and how many once an embedding can use them "
             "as `int64`?",
             answer=[stored.nbytes, stored.long().nbytes], unit="B")


def stacking_arrays_comes_before_converting_them() -> None:
    """Stack arrays in NumPy; PyTorch would take them apart number by number."""
    note("The short way from several arrays to one tensor is `torch.tensor(list_of_arrays)`. It "
         "gives the right answer, walks through every number as a Python object, and warns.")
    data = np.arange(1, 11, dtype=np.int32)
    parts = [data[start : start + 4] for start in (0, 3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        walked = torch.tensor(parts)  # @inspect walked
    stacked = torch.from_numpy(np.stack(parts))
    assert torch.equal(walked, stacked), "the same tensor"
    warning = next(str(w.message) for w in caught if w.category is UserWarning)  # @inspect warning
    assert "extremely slow" in warning, "PyTorch's own words"
    question("How many Python objects does `torch.tensor` walk through for a "
             "list of `64` arrays of `1025` tokens?",
             answer=np.stack([np.zeros(1025)] * 64).size, unit="objects")


def pinning_needs_an_accelerator() -> None:
    """CPU memory is pageable unless it is pinned, and pinning needs an accelerator."""
    note("The operating system may move or drop a page of ordinary memory at any time, so a GPU "
         "cannot be left alone to copy from it: the driver first copies into a buffer that stays "
         "put. *Pinned* memory stays put from the start. Pinning is itself a copy, made by the "
         "CPU while the program waits, and without an accelerator PyTorch refuses.")
    x = torch.randn(4, 8)
    assert x.is_pinned() is False, "pageable by default"
    available = torch.cuda.is_available()  # @measure available
    if not available:
        silence = ""
        refused = message_of(x.pin_memory)  # @measure refused
        assert refused != silence, "so guard the call"
    note("What pinning buys, and that only a loop which fetches ahead gets it, needs a GPU to "
         "show. The next two sections measure it there.")
    size = torch.empty(25 * MiB, device="meta").nbytes  # @hide
    question("A tensor of `100` MiB is sent to the GPU `3` times. How many "
             "bytes are copied inside CPU memory on the way if it is "
             "pageable, and how many if it is pinned once, beforehand?",
             answer=[copies * size for copies in (3, 1)], unit="B")


@requires("cuda")
def a_pinned_copy_does_not_wait() -> None:
    """A copy from pinned memory returns before it has finished."""
    count = scaled(64 * MiB, lambda n: 16 * n)  # @measure count
    pageable = torch.randn(count)
    note(f"The same numbers to the GPU, from either kind of memory: {pageable.nbytes // MiB} MiB.")
    pinned = pageable.pin_memory()
    assert pinned.is_pinned() is True, "a pinned copy of it"
    slow = time_call(lambda: pageable.to("cuda"), "cuda")  # @measure slow
    quick = partial(pinned.to, "cuda", non_blocking=True)
    fast = time_call(quick, "cuda")  # @measure fast
    assert fast.seconds < slow.seconds, "no detour through a buffer"
    rates = [pinned.nbytes / t.seconds for t in (slow, fast)]  # @measure rates as B/s
    arrived = torch.cuda.Event()
    there = quick()
    arrived.record()
    done = arrived.query()  # @measure done
    assert done is False, "the call returned first"
    note("That is the point, and the danger. Until the copy has arrived the pinned memory must "
         "not be overwritten, so wait for the event before the next batch is put into it.")
    arrived.synchronize()
    assert torch.equal(there.cpu(), pageable), "now it is there"
    question("At `25e9` B/s, for how long after the call must this pinned "
             "memory be left alone?",
             answer=pinned.nbytes / 25e9, unit="s")


@requires("cuda")
def a_prefetch_hides_the_copy() -> None:
    """Copying overlaps with computing only if the loop asks for the next batch early."""
    inner = scaled(16384, lambda n: 40 * 4096 * n + 160 * 1024 * 4 * n)  # @measure inner
    batches = [torch.randn(1024, inner).pin_memory() for _ in range(8)]
    w = torch.randn(inner, 4096, device="cuda")
    side, main_stream = torch.cuda.Stream(), torch.cuda.current_stream()

    def in_turn() -> list[Tensor]:
        fetched = (batch.to("cuda", non_blocking=True) for batch in batches)
        return [(x @ w).sum() for x in fetched]

    def fetch(index: int) -> Tensor:
        with torch.cuda.stream(side):
            return batches[index].to("cuda", non_blocking=True)

    def ahead() -> list[Tensor]:
        side.wait_stream(main_stream)
        sums, following = [], fetch(0)
        for index in range(len(batches)):
            main_stream.wait_stream(side)
            x = following
            x.record_stream(main_stream)
            if index + 1 < len(batches):
                following = fetch(index + 1)
            sums.append((x @ w).sum())
        return sums

    expected, sums = torch.stack(in_turn()), torch.stack(ahead())
    assert torch.allclose(sums, expected), "the same sums"
    serial = time_call(in_turn, "cuda")  # @measure serial
    overlapped = time_call(ahead, "cuda")  # @measure overlapped
    assert overlapped.seconds < serial.seconds, "the copies are hidden"
    misbelief("Pinned memory makes fetching and computing run in parallel.",
              "It only allows that. A loop that asks for a batch and then uses it still waits "
              "for every copy; one that asks for the next batch first does not.")
    question("Each of `8` batches takes `3` ms to copy and `5` ms to "
             "multiply. How long does it take until all products are there, "
             "in turn and ahead?",
             answer=[8 * (3 + 5), 3 + 8 * max(3, 5)], unit="ms")


# --- optimizers


State = dict[str, Any]
Rule = Callable[[Tensor, Tensor, State], Tensor]  # parameter, gradient, state: what to subtract


def optimizers() -> None:
    """Optimizers."""
    note("Every optimizer in this part fits in a few lines. What sets them apart is what they "
         "remember about past gradients, a number or two for every parameter. The usual one-line "
         "summaries get that memory wrong: they say *average* where the code keeps a sum, and "
         "leave out the correction that decides the first steps.")
    plain_sgd_remembers_nothing()
    momentum_is_a_decayed_sum()
    adagrad_divides_by_the_root_of_a_sum()
    the_place_of_epsilon_matters()
    rmsprop_forgets()
    adam_corrects_for_its_start()
    adamw_decays_weights_outside_the_root()
    an_optimizer_knows_tensors_not_layers()
    one_step_is_four_calls()
    gradients_add_up_until_they_are_cleared()
    optimizers_differ_in_what_they_remember()


class Descent:
    """An optimizer that subtracts from each parameter what `rule` makes of its gradient."""

    def __init__(self, parameters: Iterable[Tensor], rule: Rule) -> None:
        self.parameters, self.rule = list(parameters), rule
        self.states: list[State] = [{} for _ in self.parameters]

    def step(self) -> None:
        with torch.no_grad():
            for p, state in zip(self.parameters, self.states):
                if p.grad is not None:
                    p -= self.rule(p, p.grad, state)


def walk(
    kind: Callable[..., Any], gradients: Tensor, **settings: Any
) -> Tensor:
    """Where a parameter goes that starts at one and meets these gradients, step by step."""
    p = torch.ones_like(gradients[0]).requires_grad_()
    optimizer = kind([p], **settings)
    places = [p.detach().clone()]
    for gradient in gradients:
        p.grad = gradient.clone()
        optimizer.step()
        places.append(p.detach().clone())
    return torch.stack(places)


def lengths_of(places: Tensor, digits: int) -> list[float]:
    """How far down each step of a walk went, rounded."""
    steps = places.diff(dim=0).neg().flatten().tolist()
    return [round(step, digits) for step in steps]


def sgd(lr: float) -> Rule:
    """The gradient, times the learning rate."""
    return lambda p, g, state: lr * g


def plain_sgd_remembers_nothing() -> None:
    """Plain SGD subtracts the gradient times the learning rate and remembers nothing."""
    note("*Stochastic gradient descent*: the gradient $g$ is that of a random batch, and $\\eta$ is "
         "the learning rate.\n\n$$p \\leftarrow p - \\eta\\,g$$")
    note("`walk` starts parameters at one, hands an optimizer some gradients in turn, and returns "
         "where the parameters were. Ours beside PyTorch's, in double precision so that rounding "
         "does not blur the comparison:")
    gradients = torch.randn(20, 5, dtype=torch.float64)
    ours = walk(Descent, gradients, rule=sgd(lr=0.1))  # @inspect ours
    theirs = walk(torch.optim.SGD, gradients, lr=0.1)
    assert ours.shape == (21, 5), "the start and twenty steps"
    assert torch.allclose(ours, theirs), "step for step"

    note("The line that is easy to leave out is the guard. A parameter that took no part in the "
         "loss has no gradient, not a gradient of zero.")
    used, unused = (torch.ones(2, requires_grad=True) for _ in range(2))
    used.sum().backward()
    Descent([used, unused], sgd(lr=0.5)).step()
    assert used.tolist() == [0.5, 0.5], "one step down"
    assert unused.tolist() == [1, 1], "left alone"
    missing: Any = unused.grad
    careless = message_of(lambda: sgd(lr=0.5)(unused, missing, {}))  # @inspect careless
    assert "NoneType" in careless, "without the guard"
    met = torch.tensor([[2.0], [-1.0], [0.5]])  # @hide
    question("A parameter starts at `1` and meets the gradients `2`, `-1` "
             "and `0.5` at a rate of `0.5`. Where does it end?",
             answer=walk(torch.optim.SGD, met, lr=0.5)[-1].item())


def momentum(lr: float, beta: float = 0.9) -> Rule:
    """A sum of gradients in which older ones fade."""

    def rule(p: Tensor, g: Tensor, state: State) -> Tensor:
        total: Tensor = beta * state.get("sum", torch.zeros_like(g)) + g
        state["sum"] = total
        return lr * total

    return rule


def momentum_is_a_decayed_sum() -> None:
    """Momentum takes longer steps, because it adds gradients up."""
    note("Momentum keeps moving the way it has been moving [@polyak1964]. It remembers one number "
         "per parameter, $s$.\n\n"
         "$$s \\leftarrow \\beta\\,s + g \\qquad p \\leftarrow p - \\eta\\,s$$")
    gradients = torch.randn(20, 5, dtype=torch.float64)
    ours = walk(Descent, gradients, rule=momentum(lr=0.1))  # @inspect ours
    theirs = walk(torch.optim.SGD, gradients, lr=0.1, momentum=0.9)
    assert torch.allclose(ours, theirs), "step for step"

    misbelief("Momentum is SGD with an exponential average of the gradients.",
              "What PyTorch keeps is a decayed *sum*. Under a constant gradient an average stays "
              "where it is; the sum grows, and the steps with it.")
    ones = torch.ones(200, 1, dtype=torch.float64)
    summed = walk(torch.optim.SGD, ones, lr=1, momentum=0.9)
    lengths = lengths_of(summed, 2)  # @inspect lengths
    assert lengths[:3] == [1.0, 1.9, 2.71], "longer and longer"
    assert lengths[-1] == 10.0, "one over one minus beta"
    note("So switching momentum on multiplies the learning rate, in effect, unless the new "
         "gradient is damped to match. That is what `dampening` is for, and then it is an "
         "average.")
    settings = {"lr": 1, "momentum": 0.9, "dampening": 0.9}
    damped = walk(torch.optim.SGD, ones, **settings)
    averaged = lengths_of(damped, 6)  # @inspect averaged
    assert set(averaged) == {1.0}, "an average of ones"
    question("Plain SGD did well at a rate of `0.1`. Which rate keeps its "
             "steps under a constant gradient, in the long run, with a "
             "momentum of `0.95`?",
             answer=0.1 * (1 - 0.95))


def adagrad(lr: float, eps: float = 1e-10) -> Rule:
    """The gradient over the root of the sum of all squared gradients so far."""

    def rule(p: Tensor, g: Tensor, state: State) -> Tensor:
        total: Tensor = state.get("sum", torch.zeros_like(g)) + g**2
        state["sum"] = total
        return lr * g / (total.sqrt() + eps)

    return rule


def adagrad_divides_by_the_root_of_a_sum() -> None:
    """AdaGrad's steps shrink with every gradient that a parameter has seen."""
    note("AdaGrad gives each parameter a learning rate of its own, divided by the root of all "
         "squared gradients so far [@duchi2011].\n\n"
         "$$s \\leftarrow s + g^2 \\qquad "
         "p \\leftarrow p - \\eta\\,\\frac{g}{\\sqrt{s}+\\epsilon}$$")
    gradients = torch.randn(20, 5, dtype=torch.float64)
    ours = walk(Descent, gradients, rule=adagrad(lr=0.1))  # @inspect ours
    theirs = walk(torch.optim.Adagrad, gradients, lr=0.1)
    assert torch.allclose(ours, theirs), "step for step"

    misbelief("AdaGrad averages the squared gradients.",
              "It adds them, and nothing fades. After `t` equal gradients the step is `1` over "
              "the root of `t`, on its way to zero.")
    ones = torch.ones(100, 1, dtype=torch.float64)
    places = walk(torch.optim.Adagrad, ones, lr=1)
    lengths = lengths_of(places, 3)  # @inspect lengths
    some = lengths[0], lengths[3], lengths[99]
    assert some == (1.0, 0.5, 0.1), "steps 1, 4 and 100"

    note("That is a merit where gradients are *sparse*, as for the embeddings of rare words. The "
         "parameter that is seldom touched still has its long steps ahead of it. Below, one "
         "coordinate gets a gradient every time, the other only at the last step.")
    sparse = torch.ones(25, 2, dtype=torch.float64)
    sparse[:-1, 1] = 0
    places = walk(torch.optim.Adagrad, sparse, lr=1)
    final = lengths_of(places[-2:], 3)  # @inspect final
    assert final == [0.2, 1.0], "often updated, rarely updated"
    two = torch.tensor([[3.0], [4.0]], dtype=torch.float64)  # @hide
    question("At a rate of `1` AdaGrad meets a gradient of `3`, then one of "
             "`4`. How long is the second step?",
             answer=lengths_of(walk(torch.optim.Adagrad, two, lr=1), 3)[1])


def the_place_of_epsilon_matters() -> None:
    """A small constant in the wrong place switches AdaGrad off for small gradients."""
    note("The small number `eps` keeps the division from being one by zero. It looks harmless "
         "inside the root.")
    eps = signature(torch.optim.Adagrad).parameters["eps"].default  # @inspect eps
    misbelief("AdaGrad divides by `sqrt(sum + 1e-5)`.",
              f"PyTorch adds `{eps}`, and adds it *outside* the root. The first step of AdaGrad "
              "is then the learning rate, however small the gradient.")
    g = torch.tensor([1.0, 1e-2, 1e-3, 1e-4], dtype=torch.float64)  # @inspect g
    places = walk(torch.optim.Adagrad, g[None], lr=0.01)
    outside = lengths_of(places, 6)  # @inspect outside
    assert outside == [0.01, 0.01, 0.01, 0.01], "the same for all"
    by_hand = (0.01 * g / (g**2 + 1e-5).sqrt()).tolist()
    inside = [round(step, 6) for step in by_hand]  # @inspect inside
    assert inside == [0.01, 0.009535, 0.003015, 0.000316], "damped"
    border = math.sqrt(1e-5)  # @inspect border
    assert round(border, 5) == 0.00316, "where the constant takes over"
    note(f"Below a gradient of about {border:.3f} the constant outweighs the square, and what "
         "is left of AdaGrad's first step is that of plain SGD at a larger rate.")
    question("With `1e-8` inside the root and a gradient of `1e-4`, how long "
             "is the first step at the same rate?",
             answer=0.01 * 1e-4 / math.sqrt(1e-4**2 + 1e-8))


def rmsprop(lr: float, alpha: float = 0.99, eps: float = 1e-8) -> Rule:
    """The gradient over the root of the average squared gradient."""

    def rule(p: Tensor, g: Tensor, state: State) -> Tensor:
        before = state.get("square", torch.zeros_like(g))
        square: Tensor = alpha * before + (1 - alpha) * g**2
        state["square"] = square
        return lr * g / (square.sqrt() + eps)

    return rule


def rmsprop_forgets() -> None:
    """RMSProp replaces AdaGrad's sum by an average, so its steps do not die out."""
    note("Here the squared gradients really are averaged, exponentially: old ones fade "
         "[@rmsprop].\n\n"
         "$$s \\leftarrow \\alpha\\,s + (1-\\alpha)\\,g^2 \\qquad "
         "p \\leftarrow p - \\eta\\,\\frac{g}{\\sqrt{s}+\\epsilon}$$")
    gradients = torch.randn(20, 5, dtype=torch.float64)
    ours = walk(Descent, gradients, rule=rmsprop(lr=0.1))  # @inspect ours
    theirs = walk(torch.optim.RMSprop, gradients, lr=0.1)
    assert torch.allclose(ours, theirs), "step for step"

    note("Under equal gradients the step settles at the learning rate instead of falling to "
         "zero. But look at where it starts. The average begins at zero and needs time to learn "
         "how large gradients are; until then the steps are too long.")
    ones = torch.ones(1000, 1, dtype=torch.float64)
    places = walk(torch.optim.RMSprop, ones, lr=1)
    lengths = lengths_of(places, 2)  # @inspect lengths
    assert lengths[-1] == 1.0, "the learning rate, in the end"
    assert (lengths[0], lengths[99]) == (10.0, 1.26), "too long at first"
    seven = torch.tensor([[7.0]], dtype=torch.float64)  # @hide
    first = walk(torch.optim.RMSprop, seven, lr=1, alpha=0.75)  # @hide
    question("Old squares are weighted by `0.75` instead of `0.99`. How long "
             "is the first step at a rate of `1`, for a gradient of `7`?",
             answer=lengths_of(first, 2)[0])


def adam(
    lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
    correct: bool = True,
) -> Rule:
    """Averaged gradient over the root of the averaged square, each corrected for its start."""

    def rule(p: Tensor, g: Tensor, state: State) -> Tensor:
        if not state:
            zero = torch.zeros_like(g)
            state.update(t=0, m=zero, v=zero)
        state["t"] += 1
        state["m"] = betas[0] * state["m"] + (1 - betas[0]) * g
        state["v"] = betas[1] * state["v"] + (1 - betas[1]) * g**2
        lack = [b ** state["t"] if correct else 0 for b in betas]
        mean: Tensor = state["m"] / (1 - lack[0])
        square: Tensor = state["v"] / (1 - lack[1])
        return lr * mean / (square.sqrt() + eps)

    return rule


def adam_corrects_for_its_start() -> None:
    """Adam is RMSProp with averaged gradients and a correction for the first steps."""
    note("Two averages, of the gradient and of its square, each divided by the share of it that "
         "has been filled after $t$ steps [@kingma2015]:\n\n"
         "$$m \\leftarrow \\beta_1 m + (1-\\beta_1)\\,g$$\n\n"
         "$$v \\leftarrow \\beta_2 v + (1-\\beta_2)\\,g^2$$\n\n"
         "$$p \\leftarrow p - \\eta\\,\\frac{m/(1-\\beta_1^t)}{\\sqrt{v/(1-\\beta_2^t)}+\\epsilon}$$")
    gradients = torch.randn(20, 5, dtype=torch.float64)
    ours = walk(Descent, gradients, rule=adam(lr=0.1))  # @inspect ours
    theirs = walk(torch.optim.Adam, gradients, lr=0.1)
    assert torch.allclose(ours, theirs), "step for step"

    misbelief("Adam is RMSProp plus momentum.",
              "That leaves out the correction. Both averages start at zero, so both are too "
              "small at first, and the square, which averages longer, more so.")
    note("Corrected, the first step is the learning rate itself, whatever the gradient. Without "
         "the correction it is too long, because the average under the line of the fraction "
         "starts out further below its mark than the one above it.")
    seven = torch.tensor([[7.0]], dtype=torch.float64)
    first = lengths_of(walk(torch.optim.Adam, seven, lr=1), 3)  # @inspect first
    assert first == [1.0], "the learning rate"
    raw = walk(Descent, seven, rule=adam(lr=1, correct=False))
    uncorrected = lengths_of(raw, 3)  # @inspect uncorrected
    ratio = (1 - 0.9) / math.sqrt(1 - 0.999)  # @inspect ratio
    assert uncorrected == [round(ratio, 3)] == [3.162], "too long"
    shorter = adam(lr=1, betas=(0.9, 0.96), correct=False)  # @hide
    raw = walk(Descent, seven, rule=shorter)  # @hide
    question("With `0.9` and `0.96` for the two averages, how long is Adam's "
             "first step at a rate of `1` if it is not corrected?",
             answer=lengths_of(raw, 3)[0])


def adamw(lr: float, decay: float = 0.01) -> Rule:
    """Adam's step, and a small share of the parameter itself."""
    step = adam(lr)
    return lambda p, g, state: lr * decay * p + step(p, g, state)


def adamw_decays_weights_outside_the_root() -> None:
    """AdamW shrinks the weights directly; in Adam the same setting does something else."""
    note("*Weight decay* pulls every weight a little towards zero. AdamW does so beside Adam's "
         "step [@loshchilov2019].")
    gradients = torch.randn(20, 5, dtype=torch.float64)
    ours = walk(Descent, gradients, rule=adamw(lr=0.1))  # @inspect ours
    settings = {"lr": 0.1, "weight_decay": 0.01}
    theirs = walk(torch.optim.AdamW, gradients, **settings)
    assert torch.allclose(ours, theirs), "step for step"

    note("Adam has a `weight_decay` too, and adds it to the gradient. There it is divided by its "
         "own size like any gradient. Give both a weight of one, a gradient of zero and the same "
         "decay:")
    nothing = torch.zeros(1, 1, dtype=torch.float64)
    beside = walk(torch.optim.AdamW, nothing, **settings)
    within = walk(torch.optim.Adam, nothing, **settings)
    weights = [round(w[-1].item(), 4) for w in (beside, within)]  # @inspect weights
    assert weights == [0.999, 0.9], "AdamW, Adam"
    note("AdamW took learning rate times decay. Adam took a full step of its learning rate, "
         "because a lone decay, however weak, is all the gradient there is.")
    settings = {"lr": 0.01, "weight_decay": 0.1}  # @hide
    beside = walk(torch.optim.AdamW, nothing, **settings)  # @hide
    within = walk(torch.optim.Adam, nothing, **settings)  # @hide
    question("Now the learning rate is `0.01` and the decay `0.1`. Where "
             "does one step take a weight of `1`, without any other "
             "gradient, with AdamW and with Adam?",
             answer=[round(w[-1].item(), 4) for w in (beside, within)])


class Stack(nn.Module):
    """Square matrices without bias, something between them, and a head with one output."""

    def __init__(
        self,
        width: int,
        layers: int,
        generator: torch.Generator | None = None,
        between: nn.Module | None = None,
    ) -> None:
        super().__init__()
        shapes = [(width, width)] * layers + [(width, 1)]
        drawn = [torch.randn(size, generator=generator) for size in shapes]
        self.weights = nn.ParameterList([w / width**0.5 for w in drawn])
        self.between = between or nn.Identity()

    def forward(self, x: Float[Tensor, "batch width"]) -> Tensor:
        *hidden, head = self.weights
        for w in hidden:
            x = self.between(x @ w)
        y: Tensor = (x @ head).squeeze(-1)
        return y


def an_optimizer_knows_tensors_not_layers() -> None:
    """An optimizer knows parameters and groups of them, never layers."""
    misbelief("The optimizer goes through the layers, and each layer has its accumulators.",
              "It is handed a list of tensors and keeps its state by tensor. What belongs to "
              "which layer it cannot know.")
    note("`Stack` is the model of this part and the next ones: square matrices, one after the "
         "other, and a head with a single output.")
    model = Stack(width=4, layers=2)
    optimizer = torch.optim.Adagrad(model.parameters())
    groups = [len(group["params"]) for group in optimizer.param_groups]  # @inspect groups
    assert groups == [3], "one group of three tensors"
    assert len(optimizer.state) == 3, "a state for each tensor"

    note("The groups are yours to make. A group is a set of tensors that share settings, and its "
         "usual purpose is to spare some of them something, such as weight decay.")
    *hidden, head = model.parameters()
    spared = {"params": [head], "weight_decay": 0.0}
    usual = {"params": hidden, "weight_decay": 0.1}
    split = torch.optim.AdamW([usual, spared])
    decays = [group["weight_decay"] for group in split.param_groups]  # @inspect decays
    assert decays == [0.1, 0.0], "one setting for each group"
    layers = [nn.Linear(2, 2) for _ in range(12)]  # @hide
    kinds = [[x.weight for x in layers], [x.bias for x in layers]]  # @hide
    grouped = torch.optim.Adagrad([{"params": kind} for kind in kinds])  # @hide
    question("A model has `12` linear layers, each with a weight and a bias, "
             "and its biases are spared the decay. How many groups does "
             "AdaGrad have, and how many states?",
             answer=[len(grouped.param_groups), len(grouped.state)])


def gradient_bytes(model: nn.Module) -> int:
    """Bytes of all gradients that the model holds."""
    gradients = [p.grad for p in model.parameters()]
    return sum(g.nbytes for g in gradients if g is not None)


def one_step_is_four_calls() -> None:
    """One step of training is four calls, and the last one frees the gradients."""
    note("Loss, `backward()`, `step()`, `zero_grad()`. Between them, weigh the gradients:")
    model = Stack(width=4, layers=2)
    optimizer = torch.optim.Adagrad(model.parameters())
    before = [p.detach().clone() for p in model.parameters()]
    loss = F.mse_loss(model(torch.randn(2, 4)), torch.tensor([4.0, 5.0]))  # @inspect loss.item()
    loss.backward()
    held = gradient_bytes(model)  # @inspect held as B
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    freed = held - gradient_bytes(model)  # @inspect freed as B
    pairs = zip(before, model.parameters())
    changed = [not torch.equal(old, new) for old, new in pairs]
    assert held == 36 * 4, "a gradient for every parameter"
    assert freed == 36 * 4, "all of it given back"
    assert changed == [True, True, True], "every tensor has moved"
    note("Spelling out `set_to_none=True` changes nothing. Gradients have been dropped rather "
         "than filled with zeros by default since PyTorch `2.0`.")
    settings = inspect.signature(torch.optim.Optimizer.zero_grad).parameters
    default = settings["set_to_none"].default  # @inspect default
    assert default is True, "the default frees them"
    model = Stack(8, 1)  # @hide
    model(torch.ones(2, 8)).sum().backward()  # @hide
    question("How many bytes does `zero_grad` give back for a stack of width "
             "`8` with one hidden layer?",
             answer=gradient_bytes(model), unit="B")


def gradients_add_up_until_they_are_cleared() -> None:
    """Without `zero_grad` every step repeats all the gradients before it."""
    misbelief("`zero_grad` is optional; it only saves memory.",
              "`backward` *adds* to the gradients. Left alone, they hold the sum over all steps "
              "so far, and each step walks along that sum.")
    w = torch.ones(3, requires_grad=True)
    x = torch.tensor([1.0, 2.0, 3.0])
    (w @ x).backward()
    assert w.grad is not None, "a first gradient"
    once = w.grad.tolist()  # @inspect once
    (w @ x).backward()
    twice = w.grad.tolist()  # @inspect twice
    assert (once, twice) == ([1, 2, 3], [2, 4, 6]), "added, not replaced"
    note("What that does to training: `200` steps on random inputs whose targets are a fixed "
         "linear function of them, from the same start, on the same data, with and without "
         "clearing.")

    def losses(clear: bool) -> list[float]:
        start = torch.Generator().manual_seed(1)
        model = Stack(width=16, layers=0, generator=start)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        data, seen = torch.Generator().manual_seed(0), []
        for _ in range(200):
            x, y = linear_batch(16, 4, data)
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            if clear:
                optimizer.zero_grad()
            seen.append(loss.item())
        return seen

    cleared, piled = losses(clear=True), losses(clear=False)
    ends = cleared[0], cleared[-1], piled[-1]  # @measure ends
    assert cleared[0] == piled[0], "the same start"
    assert cleared[-1] < cleared[0], "it learns"
    assert piled[-1] > piled[0], "it gets worse than untrained"
    p = torch.tensor(1.0, requires_grad=True)  # @hide
    for _ in range(3):  # @hide
        p.backward()
        torch.optim.SGD([p], lr=0.1).step()
    question("A weight of `1` meets a gradient of `1` at every step, and the "
             "rate is `0.1`. Where is it after `3` steps without "
             "`zero_grad`?",
             answer=round(p.item(), 3))


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes that the optimizer remembers, single numbers such as step counters left out."""
    states = optimizer.state.values()
    tensors = [v for s in states for v in s.values() if torch.is_tensor(v)]
    return sum(t.nbytes for t in tensors if t.dim() > 0)


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "AdaGrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "RMSProp": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def optimizers_differ_in_what_they_remember() -> None:
    """An optimizer remembers nothing, one tensor, or two for each parameter."""
    note("Take a step with each, and weigh what it keeps in multiples of the parameters.")

    def kept(name: str) -> float:
        p = torch.randn(1000, requires_grad=True)
        p.sum().backward()
        optimizer = OPTIMIZERS[name]([p])
        optimizer.step()
        return state_bytes(optimizer) / p.nbytes

    copies = {name: kept(name) for name in OPTIMIZERS}  # @inspect copies
    assert list(copies.values()) == [0, 1, 1, 1, 2, 2], "copies of the model"
    misbelief("The optimizer's state is as large as the model.",
              "That holds for optimizers that remember one number per parameter. Plain SGD "
              "remembers none, Adam and AdamW two.")
    each = [4 + 4 + 4 * n for n in copies.values()]  # @inspect each as B
    assert each == [8, 12, 12, 12, 16, 16], "parameter, gradient, state"
    question("A run with `5` billion `float32` parameters changes from Adam "
             "to momentum. How many bytes does that free?",
             answer=5 * 10**9 * int(each[4] - each[1]), unit="B")


# --- the bill of a step


def the_bill_of_a_step() -> None:
    """The bill of a training step."""
    note("A small model of square matrices is a good place to learn accounting, because every "
         "tensor in it can be named. Its usual formulas come out too low for memory and too high "
         "for compute. Here each entry stands beside a measurement.")
    parameters_follow_from_the_shapes()
    autograd_keeps_more_than_the_hidden_layers()
    a_nonlinearity_may_save_a_copy_of_its_own()
    without_gradients_two_outputs_are_alive()
    gradients_come_in_two_kinds()
    the_bill_in_bytes()
    the_bill_is_measured_on_the_card()
    a_step_does_less_than_six_flops()
    small_batches_make_the_optimizer_count()
    parts_of_a_batch_add_up_to_the_whole()
    attention_multiplies_without_parameters()
    sharding_divides_the_state()


def parameters_follow_from_the_shapes() -> None:
    """The model has one weight for every place in its matrices."""
    note("With $L$ hidden layers of width $D$, no bias and a head with one output, that is "
         "$D^2 L + D$.")
    counts = []
    for width, layers in ((4, 2), (64, 2)):
        model = Stack(width, layers)
        counts.append(sum(p.numel() for p in model.parameters()))  # @inspect counts
    assert counts[0] == 4 * 4 * 2 + 4 == 36, "a model to count by hand"
    assert counts[1] == 64 * 64 * 2 + 64 == 8256, "and a larger one"
    model = Stack(10, 4)  # @hide
    total = sum(p.numel() for p in model.parameters())  # @hide
    question(f"A model of width `10` has `{total}` parameters. How many "
             "hidden layers?",
             answer=len(model.weights) - 1, unit="layers")


def saved_bytes_of(
    forward: Callable[[], Tensor], given: Iterable[Tensor] = ()
) -> int:
    """Bytes that autograd keeps for the backward pass, each storage once, without the `given`."""
    kept: dict[int, int] = {}

    def keep(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with saved_tensors_hooks(keep, lambda t: t):
        loss = forward()
    known = {t.untyped_storage().data_ptr() for t in given}
    del loss  # it kept the graph, and with it the storages, alive until here
    return sum(size for place, size in kept.items() if place not in known)


def linear_batch(
    width: int, batch: int, generator: torch.Generator | None = None
) -> tuple[Float[Tensor, "batch width"], Float[Tensor, "batch"]]:
    """Random inputs and, for targets, their products with the weights 0, 1, 2, and so on."""
    x = torch.randn(batch, width, generator=generator)
    return x, x @ torch.arange(float(width))


def autograd_keeps_more_than_the_hidden_layers() -> None:
    """Autograd keeps the input, every layer's output and the target."""
    note("For the backward pass each product needs the input it had, and the loss needs "
         "prediction and target. PyTorch shows every tensor that it puts aside. Weights are left "
         "out of the count, since they are there anyway.")

    def kept(batch: int, width: int, layers: int) -> int:
        model, (x, y) = Stack(width, layers), linear_batch(width, batch)
        weights = list(model.parameters())
        return saved_bytes_of(lambda: F.mse_loss(model(x), y), weights) // 4

    sizes = (2, 4, 2), (8, 64, 2), (8, 64, 10)
    measured = [kept(*size) for size in sizes]  # @inspect measured
    assert measured == [28, 1552, 5648], "numbers kept"
    exact = [b * d * (n + 1) + 2 * b for b, d, n in sizes]
    assert measured == exact, "input, outputs, prediction, target"
    misbelief("The activations are batch times width times layers.",
              "Those are the hidden ones. Input, prediction and target are kept as well, and in a "
              "short model they are much of the whole.")
    hidden = [b * d * n for b, d, n in sizes]  # @inspect hidden
    shares = [round(h / m, 2) for h, m in zip(hidden, measured)]  # @inspect shares
    assert shares == [0.57, 0.66, 0.91], "share of what is kept"
    question("How many bytes does autograd keep for a model with `1` hidden "
             "layer of width `3`, at a batch of `10`?",
             answer=4 * kept(10, 3, 1), unit="B")


def a_nonlinearity_may_save_a_copy_of_its_own() -> None:
    """Whether a nonlinearity costs memory depends on which side of it is saved."""
    note("The derivative of ReLU can be read off its *output*, which the next product keeps "
         "anyway. That of GELU needs its *input*, which nobody else keeps.")

    def kept(between: nn.Module) -> int:
        model = Stack(64, 2, between=between)
        x, y = linear_batch(64, 8)
        weights = list(model.parameters())
        return saved_bytes_of(lambda: F.mse_loss(model(x), y), weights)

    plain = kept(nn.Identity())  # @inspect plain as B
    relu = kept(nn.ReLU())  # @inspect relu as B
    gelu = kept(nn.GELU())  # @inspect gelu as B
    assert relu - plain == 0, "ReLU adds nothing"
    extra = gelu - plain  # @inspect extra as B
    assert extra == 2 * (8 * 64) * 4, "GELU adds a tensor per layer"
    note("So formulas for activations belong to one model. For another, measure again.")
    question("The derivative of the hyperbolic tangent is one minus the "
             "square of its value. How many bytes does `nn.Tanh` add here?",
             answer=kept(nn.Tanh()) - plain, unit="B")


def alive_at_once(layers: int, *, gradients: bool, trains: bool = True) -> int:
    """Bytes of the layers' outputs at the most crowded moment of a forward pass."""
    linear = [nn.Linear(64, 64) for _ in range(layers)]
    model = nn.Sequential(*linear).train(trains)
    outputs: list[tuple[StorageWeakRef, int]] = []
    crowds: list[int] = []

    def look(layer: nn.Module, given: Any, made: Tensor) -> None:
        outputs.append((StorageWeakRef(made.untyped_storage()), made.nbytes))
        crowds.append(sum(size for ref, size in outputs if not ref.expired()))

    for layer in linear:
        layer.register_forward_hook(look)
    with torch.set_grad_enabled(gradients):
        model(torch.randn(8, 64))
    return max(crowds)


def without_gradients_two_outputs_are_alive() -> None:
    """Without gradients an output lives until the next layer has read it."""
    note("A model that is only used has no backward pass to keep anything for. Under "
         "`torch.no_grad()` the output of a layer is freed as soon as the next one is there. "
         "`alive_at_once` counts the outputs that exist at the most crowded moment of a forward "
         "pass:")
    one = 8 * 64 * 4  # @inspect one as B
    training = alive_at_once(16, gradients=True)  # @inspect training as B
    using = alive_at_once(16, gradients=False)  # @inspect using as B
    assert training == 16 * one, "the output of every layer"
    assert using == 2 * one, "one being read, one being written"
    deeper = alive_at_once(64, gradients=False)  # @inspect deeper as B
    assert deeper == using, "at any depth"
    misbelief("`model.eval()` turns gradients off.",
              "It tells dropout and normalization that this is not training. Autograd keeps what "
              "it kept before, and only `torch.no_grad()` or its like makes it stop.")
    evaluated = alive_at_once(16, gradients=True, trains=False)  # @inspect evaluated as B
    assert evaluated == training, "`eval` saves nothing"
    note("A model that writes text also keeps, for each token so far, its keys and values. That "
         "*cache* does grow with the depth, and is not an activation of the step.")
    outputs = [alive_at_once(48, gradients=g) // one for g in (False, True)]  # @hide
    question("Each of `48` layers has an output of `100` MiB. How many MiB of "
             "outputs are alive at once under `no_grad`, and how many if it is "
             "forgotten?",
             answer=[100 * count for count in outputs], unit="MiB")


def gradients_come_in_two_kinds() -> None:
    """Parameter gradients stay until they are cleared; activation gradients come and go."""
    note("The small model, unrolled, so that the gradient of its first hidden values can be kept:")
    model, (x, y) = Stack(4, 2), linear_batch(4, 2)
    hidden = x @ model.weights[0]
    hidden.retain_grad()
    output = (hidden @ model.weights[1] @ model.weights[2]).squeeze(-1)
    F.mse_loss(output, y).backward()
    stay = gradient_bytes(model)  # @inspect stay as B
    assert stay == 36 * 4, "as many as parameters"
    note("On its way down, the backward pass also computes the gradient of every activation, as "
         "large as the activation itself. One had to be asked to stay in order to be seen here. "
         "The others were dropped as soon as they had been used, but at the peak some of them "
         "are alive, and they belong on the bill.")
    passing = hidden.grad
    assert passing is not None, "asked to stay"
    assert passing.shape == hidden.shape == (2, 4), "one for each number"
    x, y = linear_batch(4, 1000)  # @hide
    hidden = x @ model.weights[0]  # @hide
    F.mse_loss(model(x), y).backward()  # @hide
    question("The batch grows from `2` to `1000`. How many bytes of "
             "gradients stay, and how many pass through `hidden`?",
             answer=[gradient_bytes(model), hidden.nbytes], unit="B")


def bill(name: str, width: int, layers: int, batch: int) -> dict[str, int]:
    """Bytes by kind that one training step with the named optimizer leaves or keeps."""
    model, (x, y) = Stack(width, layers), linear_batch(width, batch)
    weights = list(model.parameters())
    optimizer = OPTIMIZERS[name](weights)
    activations = saved_bytes_of(lambda: F.mse_loss(model(x), y), weights)
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    return {
        "parameters": sum(w.nbytes for w in weights), "gradients": gradient_bytes(model),
        "optimizer state": state_bytes(optimizer), "activations": activations,
    }


def plot_bill(bills: dict[str, dict[str, int]], unit: int = KiB) -> Figure:  # @hide
    """One horizontal bar per optimizer, stacked by kind of memory, in KiB or MiB."""
    fig, ax = blank(7.5, 3.4)
    kinds = zip(("parameters", "gradients", "optimizer state", "activations"),
                (BLUE, GREEN, RED, GOLD))
    left = [0.0] * len(bills)
    for kind, color in kinds:
        sizes = [entry[kind] / unit for entry in bills.values()]
        ax.barh(list(bills), sizes, left=left, color=color, height=0.65, label=kind)
        left = [start + size for start, size in zip(left, sizes)]
    for row, total in enumerate(left):
        ax.text(total + max(left) / 200, row, f"{total:.0f}", va="center", color=GREY)
    ax.invert_yaxis()
    ax.set(xlabel="KiB" if unit == KiB else "MiB", xlim=(0, max(left) * 1.09))
    fig.legend(loc="outside upper center", ncols=4, frameon=False, labelcolor=GREY)
    return fig


def the_bill_in_bytes() -> None:
    """Memory is parameters, gradients, optimizer state and activations, and then some."""
    note("`bill` takes one step and weighs what it keeps. A model of width `4` with two hidden "
         "layers, at a batch of `2`, with AdaGrad:")
    small = bill("AdaGrad", width=4, layers=2, batch=2)  # @inspect small as B
    assert list(small.values()) == [144, 144, 144, 112], "measured, by kind"
    misbelief("In float32 a step takes `4 * (parameters + activations + gradients + state)` "
              "bytes, with batch times width times layers for the activations.",
              "The four kinds are right. With that count of activations the formula misses "
              "input, prediction and target. And it leaves out what lives only for a moment: "
              "activation gradients, and the temporary tensors of the step.")
    formula = 4 * (36 + 2 * 4 * 2 + 36 + 36)  # @inspect formula as B
    total = sum(small.values())  # @inspect total as B
    assert (formula, total) == (496, 544), "promised, measured"

    note("This is the example of CS336 [@cs336]. Notes on it give it `64` dimensions, which belong "
         f"to an earlier model there; the {formula} bytes are those of width `4` and batch `2`. The "
         "wider model has another bill, at a batch of `8`:")
    wide = bill("AdaGrad", width=64, layers=2, batch=8)  # @inspect wide as B
    formula = 4 * (3 * 8256 + 8 * 64 * 2)  # @inspect formula as B
    assert (formula, sum(wide.values())) == (103168, 105280), "again short"

    note("All six optimizers, on the wider model:")
    batch = 64
    bills = {name: bill(name, 64, 2, batch) for name in OPTIMIZERS}
    rest = {sum(b.values()) - b["optimizer state"] for b in bills.values()}
    kept = 4 * (64 * 64 * 3 + 2 * 64)  # @inspect kept as B
    assert rest == {2 * 4 * 8256 + kept}, "all else is equal"
    figure(plot_bill(bills),
           caption="Only the optimizer's state differs. One step of the wider model at a batch of "
                   f"{batch}, measured, in KiB.",
           alt="Six stacked bars, one for each optimizer. Parameters, gradients and activations "
               "are the same in all of them. Optimizer state is missing for SGD, as long as the "
               "parameters for momentum, AdaGrad and RMSProp, and twice as long for Adam and "
               "AdamW.")
    question("What does the first example, of width `4` and batch `2`, cost "
             "with Adam?",
             answer=sum(bill("Adam", width=4, layers=2, batch=2).values()),
             unit="B")


def bill_on_card(  # @stepover
    name: str, width: int, layers: int, batch: int
) -> tuple[dict[str, int], int]:
    """How far `memory_allocated` grows with each kind of memory in one step, and the step's peak."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    stages = [torch.cuda.memory_allocated()]

    def grown() -> int:
        stages.append(torch.cuda.memory_allocated())
        return stages[-1] - stages[-2]

    model = Stack(width, layers).cuda()
    parameters = grown()
    optimizer = OPTIMIZERS[name](model.parameters())
    state = grown()  # AdaGrad makes its own at once
    x, y = (t.cuda() for t in linear_batch(width, batch))
    loss = F.mse_loss(model(x), y)
    activations = grown()
    loss.backward()
    del loss, x, y
    gradients = grown() + activations
    optimizer.step()
    state += grown()
    found = {
        "parameters": parameters, "gradients": gradients,
        "optimizer state": state, "activations": activations,
    }
    return found, torch.cuda.max_memory_allocated() - stages[0]


@requires("cuda")
def the_bill_is_measured_on_the_card() -> None:
    """On a card the four kinds can be watched growing; they are never all there at once."""
    width = scaled(2048, lambda w: 200 * w * w)  # @measure width
    layers, batch = 4, width
    note("The same bill from the allocator's own counter, read before and after each part of a "
         "step. One step goes first and is thrown away: in it the library for products takes a "
         "workspace and keeps it." + shrunk(width, 2048))
    size = width, layers, batch
    bill_on_card("SGD", *size)  # @stepover
    watched = {name: bill_on_card(name, *size) for name in OPTIMIZERS}  # @stepover
    bills = {name: found for name, (found, _) in watched.items()}  # @measure bills
    shares = [b["optimizer state"] / b["parameters"] for b in bills.values()]
    copies = [round(share, 2) for share in shares]  # @measure copies
    assert copies == [0, 1, 1, 1, 2, 2], "remembered, in copies of the model"
    counted = bill("AdamW", *size)  # @measure counted as B
    over = [bills["AdamW"][kind] - size for kind, size in counted.items()]  # @measure over as B
    assert min(over) >= 0, "nothing that was counted is missing"
    assert max(over) < MiB, "and blocks are rounded up, no more"
    sums = {name: sum(b.values()) for name, b in bills.items()}
    peaks = {name: high / sums[name] for name, (_, high) in watched.items()}  # @measure peaks
    assert peaks["SGD"] < 1, "activations go while gradients come"
    figure(plot_bill(bills, MiB),
           caption="One step on the card by the allocator's counter, in MiB.",
           alt="Six stacked bars, one for each optimizer. Parameters, gradients and activations "
               "are the same in all of them; optimizer state is nothing, one or two copies of "
               "the parameters.")
    question("A model has `4` GiB of parameters in `float32` and is trained with AdamW. How many "
             "bytes does `memory_allocated` grow by in its first call of `step`?",
             answer=2 * 4 * GiB, unit="B")


def step_flops(batch: int, width: int, layers: int) -> int:
    """FLOPs of one forward and backward pass, as counted, on tensors without data."""
    with torch.device("meta"):
        model = Stack(width, layers)
        x, y = torch.empty(batch, width), torch.empty(batch)
    return flops(lambda: F.mse_loss(model(x), y).backward())


def a_step_does_less_than_six_flops() -> None:
    """The first layer needs no gradient for its input, so six FLOPs per weight is too many."""
    note("Forward is one product per matrix. Backward is two: one for the gradient of the "
         "weights, one for the gradient of the layer's input, which the layer below needs. Below "
         "the first layer there is only data, and the gradient of data is of no use.")
    misbelief("A training step takes `6` times batch times parameters FLOPs.",
              "Less by `2` times batch times the weights of the first matrix, whose input is data. "
              "In a deep model that is little; in a short one it is not.")
    sizes = (2, 4, 2), (8, 64, 2), (4, 16, 0)
    measured = [step_flops(*size) for size in sizes]  # @inspect measured as FLOP
    assert measured == [368, 330752, 256], "as counted"
    parameters = [d * d * n + d for b, d, n in sizes]
    rule = [6 * size[0] * p for size, p in zip(sizes, parameters)]
    assert rule == [432, 396288, 384], "by the rule"
    first = [2 * b * (d * d if n else d) for b, d, n in sizes]
    exact = [r - f for r, f in zip(rule, first)]
    assert measured == exact, "the rule without that product"
    shares = [round(m / r, 3) for m, r in zip(measured, rule)]  # @inspect shares
    assert shares == [0.852, 0.835, 0.667], "of the rule"
    question("How many FLOPs does a step take with a batch of `10`, a width "
             "of `5` and `3` hidden layers?",
             answer=step_flops(10, 5, 3), unit="FLOP")


def small_batches_make_the_optimizer_count() -> None:
    """The optimizer's own FLOPs do not grow with the batch, and no counter shows them."""
    note("`FlopCounterMode` counts products of matrices. Ask it what an update costs:")
    model, (x, y) = Stack(4, 2), linear_batch(4, 2)
    optimizer = OPTIMIZERS["SGD"](model.parameters())
    F.mse_loss(model(x), y).backward()
    reported = flops(optimizer.step)  # @inspect reported as FLOP
    assert reported == 0, "elementwise work is not counted"
    note("Nothing, it says. But even plain SGD multiplies and subtracts once for every parameter. "
         "The small model has `36`:")
    by_hand = 2 * 36  # @inspect by_hand as FLOP
    tiny = by_hand / step_flops(2, 4, 2)  # @inspect tiny
    assert round(tiny, 3) == 0.196, "on top, at a batch of 2"
    large = by_hand / step_flops(2048, 4, 2)  # @inspect large
    assert round(tiny / large) == 1024, "at a batch of 2048: hardly any"
    note("Relative to the matrix products the optimizer shrinks as the batch grows. Its time does "
         "not go by FLOPs anyway: it reads and writes every state once, so count its bytes.")
    question("From which batch size on does plain SGD add less than a "
             "hundredth to the products of this small model?",
             answer=math.ceil(100 * by_hand / step_flops(1, 4, 2)))


def parts_of_a_batch_add_up_to_the_whole() -> None:
    """A batch in parts gives the same gradient, and keeps the activations of one part."""
    note("`backward` adds to the gradients. That spoils a run whose author forgets to clear them, "
         "and makes room in one whose batch does not fit: cut it into *micro-batches*, call "
         "`backward` for each, and step once. This is *gradient accumulation*. Whole numbers for "
         "data and weights make the comparison exact.")
    model, parts = Stack(16, 2), 4
    for w in model.weights:
        w.data = whole_numbers(*w.shape).double()
    x, y = whole_numbers(32, 16).double(), whole_numbers(32).double()

    def accumulated(sizes: list[int], share: float) -> Tensor:
        model.zero_grad()
        for inputs, targets in zip(x.split(sizes), y.split(sizes)):
            loss = F.mse_loss(model(inputs), targets) * share
            loss.backward()
        return torch.cat([w.grad.flatten() for w in model.weights])

    whole, quarters = accumulated([32], 1), [8] * parts
    misbelief("Call `backward` on each micro-batch, do not clear, and step at the end.",
              "Each loss is the mean over its own part, so what adds up is the whole gradient as "
              "many times as there are parts. Divide each loss by their number.")
    careless = accumulated(quarters, 1)
    assert torch.equal(careless, 4 * whole), "four times too long a step"
    careful = accumulated(quarters, 1 / parts)
    assert torch.equal(careful, whole), "exactly the whole gradient"
    note("With numbers that get rounded, the last bits differ: the order of the sum is another. "
         "What is kept for the backward pass, and what is computed:")

    def kept(batch: int) -> int:
        small, (inputs, targets) = Stack(16, 2), linear_batch(16, batch)
        return saved_bytes_of(
            lambda: F.mse_loss(small(inputs), targets), small.parameters()
        )

    sizes = [kept(32), kept(8)]  # @inspect sizes as B
    assert sizes[1] == sizes[0] / parts, "one part at a time"
    at_once = step_flops(32, 16, 2)  # @inspect at_once as FLOP
    in_parts = parts * step_flops(8, 16, 2)  # @inspect in_parts as FLOP
    assert in_parts == at_once, "the same FLOPs"
    note("The price is that products get smaller, and [small ones come less close to the "
         "peak](#larger_products_come_closer_to_the_peak). Parameters, gradients and the "
         "optimizer's state take what they took: it is the batch that fits now, not a larger "
         "model.")
    shares = [n / len(x) for n in (24, 8)]  # @hide
    question("Cut the batch of `32` into `24` and `8` instead. What must each "
             "of the two losses be multiplied by?",
             answer=shares)


def attention_multiplies_without_parameters() -> None:
    """A Transformer is the same idea, with products in it that no parameter pays for."""
    note("A single attention head, with four square matrices and a sequence of $T$ tokens. The "
         "products by parameters cost what the rule says. Scores and their sum over values are "
         "products of activations with each other, $4\\,T^2 D$ FLOPs forward, and belong to no "
         "parameter at all.")
    seq, width = 512, 256
    with torch.device("meta"):
        weights = [torch.empty(width, width) for _ in range(4)]
        wq, wk, wv, wo = (w.requires_grad_() for w in weights)
        x = torch.empty(seq, width, requires_grad=True)

    def attend() -> Tensor:
        scores = (x @ wq) @ (x @ wk).t()
        return scores.softmax(-1) @ (x @ wv) @ wo

    forward = flops(attend)  # @inspect forward as FLOP
    by_parameters = 2 * seq * 4 * width**2  # @inspect by_parameters as FLOP
    assert forward == by_parameters + 4 * seq**2 * width, "both kinds"
    total = flops(lambda: attend().sum().backward())  # @inspect total as FLOP
    assert total / forward == 3.0, "backward is twice forward"
    above = total / (3 * by_parameters)  # @inspect above
    assert above == 2.0, "times the rule, at this length"
    note("Inside a model the layer's input comes from the layer below, so here the gradient of "
         "the input is needed, and nothing is saved.")
    x = torch.empty(2048, width, device="meta", requires_grad=True)  # @hide
    question("The width stays, and the sequence grows to `2048` tokens. How "
             "many times as much as the rule says does it cost now?",
             answer=flops(attend) / (2 * 2048 * 4 * width**2), unit="times")


def sharding_divides_the_state() -> None:
    """Each of several devices can step its share of the parameters, with the same result."""
    note("In data parallelism every device holds the whole model, sees other data, and after "
         "averaging has the same gradients. Then all of them update all parameters: the same "
         "work, and the same state, many times over. ZeRO's first stage gives each device one "
         "*shard* of the parameters to step [@zero]. In miniature, with slices of one tensor for devices:")
    devices, n = 4, 4096
    start, gradients = torch.randn(n), torch.randn(3, n)

    def stepped(share: slice) -> tuple[Tensor, int]:
        p = start[share].clone().requires_grad_()
        optimizer = torch.optim.Adam([p], lr=0.1)
        for gradient in gradients:
            p.grad = gradient[share].clone()
            optimizer.step()
        return p.detach(), state_bytes(optimizer)

    whole, state = stepped(slice(0, n))  # @inspect state as B
    part = n // devices
    shards = [stepped(slice(i, i + part)) for i in range(0, n, part)]
    together = torch.cat([shard for shard, _ in shards])
    share = shards[0][1]  # @inspect share as B
    assert torch.equal(together, whole), "bit for bit the same"
    assert state / share == 4.0, "state on each device"
    per_parameter = 4 + 4 + share / n  # @inspect per_parameter as B
    assert per_parameter == 10.0, "instead of 16"
    note("After every step each device fetches the shards it did not compute, and that is most of "
         "the model:")
    fetched = (n - part) * 4  # @inspect fetched as B
    assert fetched / whole.nbytes == 0.75, "of the parameters"
    note("That need not cost extra traffic. If each device receives only its shard of the averaged "
         "gradients, instead of all of them, the total is that of plain data parallelism [@zero].")
    question("How many bytes per parameter does each of `16` devices hold?",
             answer=4 + 4 + stepped(slice(0, n // 16))[1] / n, unit="B")


# --- training


def training() -> None:
    """A training loop."""
    note("The training loop of CS336, in its edition of 2025, takes a learning rate and a number of "
         "layers as arguments and uses neither [@cs336]. So its two runs, the second meant as "
         "tuning, are one experiment. Nothing about the loop looks wrong; it could have happened "
         "to anyone. What finds it is to change each argument once and ask whether anything "
         "happened.")
    the_task_has_a_known_answer()
    the_loop_finds_it()
    every_argument_must_change_something()
    a_batch_loss_is_noise()
    a_rate_is_too_small_right_or_too_large()
    deeper_needs_a_smaller_rate()
    the_same_seed_repeats_every_bit()


def the_task_has_a_known_answer() -> None:
    """The data come from a linear function whose weights are known."""
    note("`linear_batch` draws standard normal inputs, and multiplies them by weights that count "
         "up from zero. So a model that predicts zero has an expected squared error of "
         "$\\sum_i i^2$: the loss to start from.")
    x, y = linear_batch(16, 100_000)
    predicted = sum(i**2 for i in range(16))  # @inspect predicted
    assert predicted == 1240, "for a width of 16"
    measured = y.square().mean().item()  # @inspect measured
    assert 0.97 < measured / predicted < 1.03, "as expected"
    note("As many examples as weights determine them all. A training loop has to find the same:")
    solved = torch.linalg.lstsq(x[:16].double(), y[:16].double()).solution  # @inspect solved
    assert solved.round().tolist() == list(range(16)), "solvable"
    question("Which loss do you expect before the first step for a width of "
             "`4`, from a model that predicts zero?",
             answer=sum(i**2 for i in range(4)))


class Run(NamedTuple):
    """What a training run leaves behind."""

    model: Stack
    batch_losses: list[float]  # on the batch of each step, before the step
    losses: list[float]  # on one fixed batch, after each step


def train(
    *, width: int = 16, layers: int = 0, batch: int = 4, steps: int = 200,
    lr: float = 0.05, seed: int = 0,
) -> Run:
    """Train a stack by SGD on random batches; evaluate it on one batch that never changes."""
    for_weights = torch.Generator().manual_seed(2 * seed)
    for_data = torch.Generator().manual_seed(2 * seed + 1)
    model = Stack(width, layers, for_weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for_test = torch.Generator().manual_seed(12345)
    test_x, test_y = linear_batch(width, 16, for_test)
    run = Run(model, [], [])
    for _ in range(steps):
        x, y = linear_batch(width, batch, for_data)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run.batch_losses.append(loss.item())
        with torch.no_grad():
            run.losses.append(F.mse_loss(model(test_x), test_y).item())
    return run


def the_loop_finds_it() -> None:
    """Get a batch, forward, backward, step, clear: repeated, it finds the weights."""
    note("The whole loop, for a model without hidden layers. Weights and data have a generator each.")
    model = Stack(16, 0, torch.Generator().manual_seed(0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(1)
    for _ in range(200):
        x, y = linear_batch(16, 4, data)
        loss = F.mse_loss(model(x), y)  # @inspect loss.item()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    note("`train` is this loop as a function. Besides the loss on the batch of each step it keeps "
         "the loss on one fixed batch.")
    run = train(lr=0.05, steps=200)
    learned = run.model.weights[0]
    assert torch.equal(learned, model.weights[0]), "the same, bit for bit"
    assert len(run.losses) == 200, "one for each step"
    final = round(run.losses[-1], 6)  # @inspect final
    assert final == 0.0, "no error is left"
    w = learned.flatten().tolist()
    found = [round(value, 3) for value in w]  # @inspect found
    assert found == list(range(16)), "the weights themselves"
    batch = signature(train).parameters["batch"].default  # @hide
    question(f"Each step takes a fresh batch of `{batch}`. How many examples "
             "has this run seen for each weight that it had to find?",
             answer=len(run.losses) * batch // len(w), unit="examples")


def every_argument_must_change_something() -> None:
    """Change each argument of a function once; whatever changes nothing is not used."""
    note("`train` has six arguments. Nudge them one at a time.")
    usual: dict[str, Any] = {
        "width": 16, "layers": 0, "batch": 4,
        "steps": 20, "lr": 0.05, "seed": 0,
    }
    other = {
        "width": 8, "layers": 1, "batch": 8,
        "steps": 21, "lr": 0.01, "seed": 1,
    }
    base = train(**usual).losses

    def changes(name: str) -> bool:
        return train(**usual | {name: other[name]}).losses != base

    moved = [name for name in other if changes(name)]  # @inspect moved
    assert moved == list(inspect.signature(train).parameters), "all six"

    misbelief("A `train` that is given `num_layers` and `lr` trains with them.",
              "The one of CS336 wrote its own values into the body [@cs336]. Asked "
              "for other layers or another rate, it returned losses equal to the last bit.")

    def deaf(num_layers: int, lr: float) -> list[float]:
        return train(layers=0, lr=0.01, steps=20).losses

    small, large = deaf(num_layers=0, lr=0.01), deaf(num_layers=4, lr=0.1)
    assert small == large, "equal bits"
    def differ(name: str) -> int:  # @hide
        nudged = train(**usual | {name: other[name]}).losses
        return sum(a != b for a, b in zip(base, nudged))

    question("How many of the first `20` losses change when `steps` is "
             "nudged, and how many when `seed` is?",
             answer=[differ("steps"), differ("seed")], unit="losses")


def a_batch_loss_is_noise() -> None:
    """The loss on the batch at hand is noise; a fixed batch shows the progress."""
    note("A few steps at a small learning rate, each with a handful of fresh examples. The "
         "printed loss goes up and down with the luck of the draw. On a batch that stays the "
         "same, it falls every time.")
    run = train(lr=0.01, steps=10)
    seen = [round(loss) for loss in run.batch_losses]  # @inspect seen
    fixed = [round(loss) for loss in run.losses]  # @inspect fixed

    def rises(losses: Sequence[float]) -> int:
        return sum(b > a for a, b in pairwise(losses))

    assert rises(run.batch_losses) == 5, "up, out of nine changes"
    assert rises(run.losses) == 0, "on the fixed batch: none"
    assert seen[-1] > seen[0], "it seems to get worse"
    assert fixed[-1] < fixed[0], "it got better"
    question("How many of the `9` changes would you expect to be rises if "
             "the batch loss were nothing but luck?",
             answer=(len(run.batch_losses) - 1) / 2)


def plot_losses(runs: dict[float, list[float]]) -> Figure:  # @hide
    """Loss against step on a logarithmic axis, one labelled curve for each learning rate."""
    fig, ax = blank(7, 4)
    colors = (GOLD, GREEN, BLUE, GREY, RED)
    for (lr, losses), color in zip(runs.items(), colors):
        shown = [(i, v) for i, v in enumerate(losses) if math.isfinite(v) and 1e-12 < v < 1e11]
        steps, values = zip(*shown)
        ax.plot(steps, values, color=color, lw=1.8)
        last = steps[-1]
        text = f"{lr:g}" + (", diverges" if values[-1] > 1e9 else "")
        up = {0.05: 7, 0.1: -5}.get(lr, 0)
        ax.annotate(text, (last, values[-1]), (6, up), textcoords="offset points",
                    color=color, va="center")
    ax.set_yscale("log")
    ax.set(xlabel="step", ylabel="loss on the fixed batch", xlim=(0, 225), ylim=(1e-14, 1e12))
    ax.set_xticks(range(0, 201, 50))
    return fig


def a_rate_is_too_small_right_or_too_large() -> None:
    """Rates differing by a small factor learn slowly, learn well, bounce or diverge."""
    note("Compare rates on the same seed, the same number of steps and the same fixed batch.")
    rates = (0.01, 0.05, 0.1, 0.2, 0.5)
    runs = {lr: train(lr=lr, steps=200).losses for lr in rates}
    ends = {lr: losses[-1] for lr, losses in runs.items()}  # @measure ends
    assert 0.36 < ends[0.01] < 0.40, "0.01: on its way"
    good = round(ends[0.05], 6), round(ends[0.1], 6)
    assert good == (0.0, 0.0), "0.05 and 0.1: there"
    assert ends[0.2] > ends[0.01], "0.2: bounces about"
    assert math.isfinite(ends[0.5]) is False, "0.5: diverges"
    figure(plot_losses(runs),
           caption="Between a rate that is too small and one that diverges lies a factor of "
                   f"{rates[-1] / rates[0]:.0f}. Loss on the fixed batch, five learning rates.",
           alt="Loss against step on a logarithmic axis. The curve for "
               f"{rates[0]} falls slowly, those for {rates[1]} and {rates[2]} fall to the floor "
               f"of the format, {rates[3]} wanders around its start, and {rates[4]} climbs off "
               "the page within the first steps.")
    misbelief("`10` steps at another learning rate are a bit of tuning.",
              "CS336 set `0.1`, which its loop ignored [@cs336]. Had it listened, the "
              "last batch loss would still have been noise. What makes rates comparable is "
              "a fixed seed, a fixed test batch and enough steps.")
    tried = (0.1, 0.5, 0.9, 1.0, 1.1)  # @hide
    best = min(tried, key=lambda r: abs(1 - 2 * r))  # @hide
    bounces = [r for r in tried if abs(1 - 2 * r) == 1]  # @hide
    diverges = [r for r in tried if abs(1 - 2 * r) > 1]  # @hide
    question("For the loss $w^2$ a step at rate $r$ multiplies $w$ by $1 - "
             "2r$. Which of the rates `0.1`, `0.5`, `0.9`, `1.0` and `1.1` "
             "is the best, which one only bounces, and which diverges?",
             answer=[best, *bounces, *diverges])


def deeper_needs_a_smaller_rate() -> None:
    """The deeper the model, the smaller the largest rate that it survives."""
    note("A stack of linear layers computes nothing that one layer could not. It is only harder "
         "to train. Add two hidden layers at a rate that was cautious a moment ago:")
    run = train(layers=2, lr=0.01, steps=10)  # @inspect run.batch_losses
    final = run.losses[-1]  # @inspect final
    assert math.isnan(final) is True, "not a number any more"
    smaller = train(layers=2, lr=0.001, steps=200)
    final = round(smaller.losses[-1], 3)  # @inspect final
    assert final == 0.0, "a tenth of the rate learns"

    note("For each depth, the largest of six rates at which the loss stays finite:")
    rates = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)

    def largest(layers: int) -> float:
        runs = {lr: train(layers=layers, lr=lr, steps=60) for lr in rates}
        return max(r for r in rates if math.isfinite(runs[r].losses[-1]))

    survived = [largest(layers) for layers in (0, 1, 2, 4)]  # @inspect survived
    assert survived == [0.1, 0.003, 0.001, 0.0003], "0, 1, 2, 4 layers"
    misbelief("Pass `num_layers` and `lr` through, and the loop is repaired.",
              "Then it diverges at the very values it was called with. An argument that is "
              "finally used needs a default that has been tried.")
    chain = torch.full((5,), 2.0, requires_grad=True)  # @hide
    question("Let a model be a product of weights, each of them `2`. How "
             "many times as large is the gradient of the first one in a "
             "model of `5` weights as in a model of `1`?",
             answer=torch.autograd.grad(chain.prod(), chain)[0][0].item(),
             unit="times")


def the_same_seed_repeats_every_bit() -> None:
    """A repeated run agrees to the last bit, until something adds in another order."""
    note("With a seed for the weights and one for the data, nothing is left to chance:")
    first, second = train(steps=20), train(steps=20)
    assert first.losses == second.losses, "bit for bit"
    note("That is one program, one machine, one thread count. Rounded addition depends on its "
         "order, and parallel code does not always add in the same one. The part on gradients "
         "shows the switch that insists on an order. What it guards against, in three numbers:")
    a, b, c = (torch.tensor(value) for value in (0.1, 0.3, 0.4))
    left, right = (a + b) + c, a + (b + c)
    apart = (right - left).item()  # @inspect apart
    assert apart == 2.0**-24, "the last bit of the sum"
    note("In a whole run: turn the batches around, so that the same examples are added in another "
         "order. The bits differ. They stay close here only because training pulls both runs to "
         "the same weights.")

    def trained(turned: bool) -> Tensor:
        model = Stack(16, 0, torch.Generator().manual_seed(0))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        data = torch.Generator().manual_seed(1)
        for _ in range(20):
            x, y = linear_batch(16, 4, data)
            if turned:
                x, y = x.flip(0), y.flip(0)
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        learned: Tensor = model.weights[0].detach()
        return learned

    straight, around = trained(turned=False), trained(turned=True)
    drift = (straight - around).abs().max().item()  # @measure drift
    assert torch.allclose(straight, around, rtol=1e-4), "the same training"
    assert not torch.equal(straight, around), "not the same bits"
    big = torch.tensor(1e8)  # @hide
    question("`float32` keeps about `7` digits. What does it make of "
             "`(1e8 + 1) - 1e8`, and what of `(1e8 - 1e8) + 1`?",
             answer=[((big + 1) - big).item(), ((big - big) + 1).item()])


# --- checkpoints


def checkpoints() -> None:
    """Checkpoints."""
    note("Stop a run in the middle, load its model and its optimizer, go on, and it ends "
         "somewhere else. Whatever the next step depends on has to be in the file, and it is more "
         "than those two.")
    a_long_run_saves_by_the_clock()
    an_unused_optimizer_has_nothing_to_save()
    a_resumed_run_needs_all_of_its_state()
    loading_a_file_restores_nothing()
    loading_an_optimizer_keeps_references()
    torch_load_refuses_what_it_does_not_know()


def a_long_run_saves_by_the_clock() -> None:
    """How often to save follows from how often the run dies and how long a save takes."""
    note("Over `54` days of training its largest model, the Llama 3 team counted `419` unexpected "
         "interruptions [@llama3].")
    hours = 54 * 24 / 419  # @inspect hours
    assert 3.09 < hours < 3.10, "from one to the next"
    note("Save rarely, and every crash costs much work; save often, and the saves cost the time. "
         "The sum is smallest near $\\sqrt{2\\,s\\,m}$, where $s$ is the time of a save and $m$ "
         "the mean time between crashes [@young1974]. Assume that a save holds the run up for "
         "`1` minute:")
    save, between = 1, hours * 60
    every = math.sqrt(2 * save * between)  # @inspect every
    assert 19.2 < every < 19.3, "minutes between saves"

    def lost(interval: float) -> float:
        return save / interval + interval / 2 / between

    share = lost(every)  # @inspect share
    assert round(share, 3) == 0.104, "of all time, at best"
    assert lost(every / 2) > share, "more often: worse"
    assert lost(every * 2) > share, "less often: worse"
    note("As advice: measure how long a save takes and how often runs die, and let these two "
         "numbers set the clock.")
    question("A save takes `2` minutes, and a run dies every `100` minutes. "
             "How many minutes should lie between two saves?",
             answer=math.sqrt(2 * 2 * 100), unit="minutes")


def saved_size(*parts: object) -> int:
    """Bytes of the file that `torch.save` makes of the parts."""
    file = io.BytesIO()
    torch.save(parts, file)
    return file.tell()


def an_unused_optimizer_has_nothing_to_save() -> None:
    """Before its first step an optimizer has no state, and a checkpoint of it is half empty."""
    note("The same model and optimizer are saved twice, before the first step and after it:")
    model = Stack(64, 3)
    optimizer = torch.optim.Adam(model.parameters())
    weights = sum(p.nbytes for p in model.parameters())  # @inspect weights as B
    fresh = saved_size(model.state_dict(), optimizer.state_dict())  # @inspect fresh as B
    assert len(optimizer.state_dict()["state"]) == 0, "nothing to save yet"
    x, y = linear_batch(64, 4)
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    used = saved_size(model.state_dict(), optimizer.state_dict())  # @inspect used as B
    assert len(optimizer.state_dict()["state"]) == 4, "one per tensor"
    assert (used - fresh) // weights == 2, "two copies of the weights more"
    note("A test that saves and loads an optimizer which has never stepped tests an empty "
         "dictionary. Take a few steps first.")
    large = 2 * 10**9 * 4 // GB  # @hide
    question("A model of `2` billion `float32` weights trains with Adam. How "
             "many GB does a checkpoint take before the first step, and how "
             "many after it?",
             answer=[large, large * (1 + (used - fresh) // weights)], unit="GB")


class Session:
    """A run with all that can get lost: dropout, a schedule, an optimizer's memory, data order."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = Stack(8, 1, between=nn.Dropout(0.1))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.data = torch.Generator().manual_seed(1)
        self.steps = 0

    def advance(self, count: int) -> None:
        """Train on; the learning rate falls with the number of steps."""
        for _ in range(count):
            for group in self.optimizer.param_groups:
                group["lr"] = 0.1 / math.sqrt(1 + self.steps)
            x, y = linear_batch(8, 4, self.data)
            F.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.steps += 1

    def save(self, parts: Iterable[str]) -> io.BytesIO:
        """A file with the named parts of the state."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "steps": self.steps,
            "data": self.data.get_state(),
            "dropout": torch.get_rng_state(),
        }
        file = io.BytesIO()
        torch.save({part: state[part] for part in parts}, file)
        file.seek(0)
        return file

    def load(self, file: io.BytesIO) -> None:
        """Take over whatever parts the file has."""
        state = torch.load(file)
        self.steps = state.get("steps", 0)
        if "model" in state:
            self.model.load_state_dict(state["model"])
        if "optimizer" in state:
            self.optimizer.load_state_dict(state["optimizer"])
        if "data" in state:
            self.data.set_state(state["data"])
        if "dropout" in state:
            torch.set_rng_state(state["dropout"])


def drift(parts: Iterable[str]) -> float:
    """How far the weights of a run resumed with these parts end from those of an unbroken one."""
    whole, first, second = Session(), Session(), Session()
    torch.manual_seed(0)
    whole.advance(20)
    torch.manual_seed(0)
    first.advance(10)
    file = first.save(parts)
    torch.manual_seed(0)
    second.load(file)
    second.advance(10)
    pairs = zip(whole.model.weights, second.model.weights)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


def a_resumed_run_needs_all_of_its_state() -> None:
    """A run resumes bit for bit if everything that the next step reads was saved."""
    note("The run below has five kinds of state: weights, Adam's averages, the step that sets "
         "the learning rate, the generator that picks the data, and the one behind dropout. "
         "Train it without a break, and again with a stop, a file and a new start in the middle.")
    parts = ["model", "optimizer", "steps", "data", "dropout"]
    complete = drift(parts)  # @inspect complete
    assert complete == 0.0, "the same to the last bit"

    misbelief("A checkpoint is the model and the optimizer.",
              "Those are two of the five. With only them the run goes on, without a word, as "
              "another run.")
    usual = drift(["model", "optimizer"])  # @inspect usual
    assert usual > complete, "drifted off"
    note("Leave out one part at a time and see how far the weights end from where they should be.")
    costs = {part: drift([p for p in parts if p != part]) for part in parts}  # @inspect costs
    needed = [part for part, cost in costs.items() if cost > 0]  # @inspect needed
    assert needed == parts, "all of them"
    note("The generator is the position in the data here, because it picks every batch. A run "
         "that walks through a shuffled file has to save where it stands. One that scales its "
         "loss saves the scaler, too.")
    question("How many of the `5` parts must a checkpoint of a run hold that "
             "has no dropout and never changes its learning rate?",
             answer=len(set(parts) - {"dropout", "steps"}), unit="parts")


def loading_a_file_restores_nothing() -> None:
    """`torch.load` returns a dictionary; the model learns nothing of it."""
    misbelief("To resume, call `torch.load` on the checkpoint.",
              "That reads the file. Model and optimizer stay as they were until each is handed "
              "its part with `load_state_dict`.")
    trained, fresh = Stack(4, 1), Stack(4, 1)
    file = io.BytesIO()
    torch.save({"model": trained.state_dict()}, file)
    file.seek(0)
    state = torch.load(file)  # @inspect state

    def equal() -> list[bool]:
        pairs = zip(trained.parameters(), fresh.parameters())
        return [torch.equal(a, b) for a, b in pairs]

    assert equal() == [False, False], "loaded, not restored"
    fresh.load_state_dict(state["model"])
    assert equal() == [True, True], "now restored"
    trained, fresh = Stack(4, 5), Stack(4, 5)  # @hide
    state = reloaded(trained.state_dict())  # @hide
    read = sum(equal())  # @hide
    fresh.load_state_dict(state)  # @hide
    question("Two fresh stacks have `5` hidden layers each, and the first "
             "one is saved. How many tensors of the second agree with it "
             "after `torch.load`, and how many after `load_state_dict`?",
             answer=[read, sum(equal())], unit="tensors")


def loading_an_optimizer_keeps_references() -> None:
    """A model copies what it loads; an optimizer goes on writing into the loaded tensors."""
    note("Two methods of the same name, and two habits. It matters to whoever loads one "
         "checkpoint twice, say to try two learning rates from the same point.")
    model = Stack(4, 0)
    x, y = linear_batch(4, 2)
    optimizer = torch.optim.Adam(model.parameters())
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    file = io.BytesIO()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, file)
    file.seek(0)
    loaded = torch.load(file)
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    w, saved = model.weights[0], loaded["optimizer"]["state"][0]
    average = optimizer.state[w]["exp_avg"]
    assert not same_storage(w, loaded["model"]["weights.0"]), "weights: copied"
    assert same_storage(average, saved["exp_avg"]), "averages: referred to"

    note("The next step changes the optimizer in place, and with it the checkpoint in memory.")
    before = saved["exp_avg"].clone()
    optimizer.step()
    assert not torch.equal(saved["exp_avg"], before), "altered"
    assert saved["step"] == 2, "even its step counter"
    note("So load from the file each time, or pass in a `copy.deepcopy`.")
    second = torch.optim.Adam(model.parameters())  # @hide
    second.load_state_dict(loaded["optimizer"])  # @hide
    second.step()  # @hide
    question("A second optimizer now loads the same `loaded[\"optimizer\"]` and takes "
             "one step. What does the step counter in the checkpoint say?",
             answer=int(saved["step"]))


def reloaded(value: object) -> Any:
    """The value after `torch.save` and `torch.load`."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file)


def torch_load_refuses_what_it_does_not_know() -> None:
    """`torch.load` reads tensors and plain values, and refuses the rest."""
    misbelief("`torch.load(path)` gives back whatever `torch.save` wrote.",
              "It once did. Now it loads tensors and plain Python values only, unless told "
              "otherwise. A pickled object may run any code on loading, so trust is something "
              "to be declared.")
    note("Save some values, load each again, and collect what error comes, if any:")
    loads = [torch.get_rng_state(), random.getstate(), {"step": 3}]
    errors = [message_of(partial(reloaded, value)) for value in loads]
    assert errors == ["", "", ""], "loaded without complaint"
    fails = [np.random.get_state(), np.float64(0.5), nn.Linear(2, 2)]
    errors = [message_of(partial(reloaded, value)) for value in fails]
    refusals = ["Weights only load failed" in e for e in errors]  # @inspect refusals
    assert refusals == [True, True, True], "NumPy values, a module"

    note("The state of NumPy's generator is what hurts, because resuming may need it. Newer "
         "NumPy generators describe themselves in plain values, which pass.")
    rng = np.random.default_rng(0)
    rng.random(5)
    saved = rng.bit_generator.state  # @inspect saved
    restored = np.random.default_rng()
    restored.bit_generator.state = reloaded(saved)
    assert restored.random() == rng.random(), "the next draw agrees"
    given = [3, torch.ones(2), np.float64(3), {"lr": 0.1}]  # @hide
    given += [np.random.default_rng(0), nn.Linear(2, 2).state_dict()]  # @hide
    errors = [message_of(partial(reloaded, value)) for value in given]  # @hide
    question("How many of these can be saved and loaded: `3`, "
             "`torch.ones(2)`, `np.float64(3)`, `dict(lr=0.1)`, "
             "`np.random.default_rng(0)` and the `state_dict()` of a layer?",
             answer=errors.count(""), unit="values")


# --- mixed precision


def mixed_precision() -> None:
    """Mixed precision and quantization."""
    note("Mixed precision is often described as a narrow forward pass and a wide backward pass. "
         "Watch the products as they run, and the backward pass turns out to be just as narrow. "
         "What stays wide is what is kept from step to step.")
    flops_do_not_depend_on_the_format()
    the_backward_pass_is_narrow_too()
    autocast_saves_on_activations_only()
    a_step_is_timed_in_both_precisions()
    the_loss_scale_finds_its_own_level()
    one_byte_needs_a_scale()
    what_supports_one_byte_training()
    quantized_weights_trade_error_for_bytes()


def flops_do_not_depend_on_the_format() -> None:
    """A wider format costs no more FLOPs, only more bytes and more time for each."""
    misbelief("Higher precision means more compute.",
              "It is the same number of FLOPs in every format. What changes is the rate at which "
              "a device does them, and the bytes it moves for them.")
    formats = torch.float64, torch.float32, torch.bfloat16, torch.float16
    squares = [torch.ones(64, 64, dtype=dtype) for dtype in formats]
    counts = [flops(partial(torch.matmul, x, x)) for x in squares]  # @inspect counts as FLOP
    assert counts == [524288, 524288, 524288, 524288], "the same work"
    sizes = [x.nbytes for x in squares]  # @inspect sizes as B
    assert sizes == [32768, 16384, 8192, 8192], "other bytes"
    note("Advice: start in `float32`, where mistakes are yours and not the format's, and narrow "
         "from there, watching the loss. For language models the usual place to arrive is "
         "`bfloat16` products over `float32` weights. The old warning that low-precision "
         "training is very hard still holds where nothing at all is kept wide.")
    pair = [torch.ones(128, 128, dtype=d) for d in (formats[0], formats[2])]  # @hide
    work = [flops(partial(torch.matmul, x, x)) for x in pair]  # @hide
    question("Both factors of a product of width `128` are cast from "
             "`float64` to `bfloat16`. To which fraction do its FLOPs fall, "
             "and to which its bytes?",
             answer=[work[1] / work[0], pair[1].nbytes / pair[0].nbytes])


class Products(TorchDispatchMode):
    """Notes the formats that go into every matrix product while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.formats: list[torch.dtype] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is torch.ops.aten.mm.default:
            formats = args[0].dtype, args[1].dtype
            self.formats.append(torch.promote_types(*formats))
        return func(*args, **(kwargs or {}))


def the_backward_pass_is_narrow_too() -> None:
    """Under autocast the backward pass multiplies in the narrow format as well."""
    note("`torch.autocast` is PyTorch's switch for mixed precision [@pytorch-amp]. Here is the "
         "small model under it, while `Products` writes down the format of every product:")
    model, (x, y) = Stack(64, 2), linear_batch(64, 8)
    with Products() as forward, torch.autocast("cpu", torch.bfloat16):
        output = model(x)  # @inspect output.dtype
    loss = F.mse_loss(output.float(), y)
    with Products() as backward:
        loss.backward()
    assert forward.formats == [torch.bfloat16] * 3, "one for each layer"
    assert backward.formats == [torch.bfloat16] * 5, "two each, less one"
    misbelief("Mixed precision is `bfloat16` forward, `float32` for the rest.",
              "Every product of the backward pass is narrow too, and so are the gradients that "
              "travel between layers. Wide are the stored weights, their gradients and the "
              "optimizer's state.")
    weight = model.weights[0]
    assert weight.dtype == torch.float32, "the weights as stored"
    assert weight.grad is not None, "with a gradient"
    assert weight.grad.dtype == torch.float32, "widened on arrival"
    deep, (x, y) = Stack(8, 5), linear_batch(8, 4)  # @hide
    with Products() as seen:  # @hide
        with torch.autocast("cpu", torch.bfloat16):
            output = deep(x)
        F.mse_loss(output.float(), y).backward()
    question("How many narrow products does a whole step take, forward and "
             "backward, with `5` hidden layers?",
             answer=seen.formats.count(torch.bfloat16), unit="products")


def autocast_saves_on_activations_only() -> None:
    """Autocast halves hidden activations, and adds narrow copies of the input and the weights."""
    note("Parameters, gradients and Adam's averages cost as much as before. What shrinks is "
         "hidden activations. Against that stand copies in the narrow format, made for the "
         "products and kept for the backward pass: of the input, and of every weight but the "
         "first, which no input gradient needs.")

    def kept(batch: int, narrow: bool) -> int:
        model, x = Stack(64, 2, between=nn.ReLU()), torch.randn(batch, 64)
        given = [x, *model.parameters()]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            return saved_bytes_of(lambda: model(x).square().sum(), given)

    large, small = 4096, 8
    wide = kept(large, narrow=False)  # @inspect wide as B
    narrow = kept(large, narrow=True)  # @inspect narrow as B
    assert wide == 4 * (2 * large * 64 + large), "hidden and output"
    copies = 2 * (64 * 64 + 64)  # @inspect copies as B
    halved = 2 * (2 * large * 64 + large)  # @inspect halved as B
    assert narrow == halved + 2 * large * 64 + copies, "and the input"
    saving = wide / narrow  # @inspect saving
    assert round(saving, 2) == 1.33, "a deeper model comes closer to 2"
    note("With few examples, the copies alone weigh more than everything that was there to save:")
    wide = kept(small, narrow=False)  # @inspect wide as B
    narrow = kept(small, narrow=True)  # @inspect narrow as B
    assert narrow > copies > wide, "a small batch: a loss"
    question("With `9` hidden layers instead of `2`, and a batch so large "
             "that the last output and the copies of the weights do not "
             "matter: how many times fewer bytes does autocast keep?",
             answer=4 * 9 / (2 * 9 + 2), unit="times")


@requires("cuda")
def a_step_is_timed_in_both_precisions() -> None:
    """What mixed precision saves is measured, in seconds and in bytes."""
    width = scaled(4096, lambda w: 400 * w * w)  # @measure width
    note("One step of a model with `8` hidden layers and AdamW, without autocast and with it."
         + shrunk(width, 4096))
    model = Stack(width, 8, between=nn.GELU()).cuda()
    x, y = (t.cuda() for t in linear_batch(width, batch=2 * width))
    optimizer = torch.optim.AdamW(model.parameters())
    dtype = narrow_format()  # @measure dtype

    def step(narrow: bool) -> None:  # @stepover
        with torch.autocast("cuda", dtype=dtype, enabled=narrow):
            output = model(x)
        F.mse_loss(output.float(), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    wide = time_call(lambda: step(False), "cuda")  # @measure wide
    narrow = time_call(lambda: step(True), "cuda")  # @measure narrow
    assert narrow.seconds < wide.seconds, "narrow products are faster"
    peaks = []
    for narrowed in (False, True):
        torch.cuda.reset_peak_memory_stats()
        step(narrowed)
        peaks.append(torch.cuda.max_memory_allocated())  # @measure peaks as B
    assert peaks[1] < peaks[0], "narrow activations are smaller"
    note("Whether this is a good balance of speed and stability is for each model to show. Time "
         "and memory saved are what it has to be weighed against.")
    question("How many bytes do weights, gradients and AdamW's averages of "
             "this model take, in either precision?",
             answer=16 * sum(p.numel() for p in model.parameters()), unit="B")


def the_loss_scale_finds_its_own_level() -> None:
    """A gradient scaler skips steps that overflow, and lowers its scale until they do not."""
    note("`float16` loses small gradients, so the loss is multiplied by a large factor first "
         "[@micikevicius2018]. Too large a factor, and the gradient overflows instead. PyTorch's "
         "scaler finds the level by trial: an infinite gradient means no step and half the scale.")
    top = torch.finfo(torch.float16).max
    note("The weight below becomes `float16` on its way into the loss. So its gradient of `10`, "
         f"times the scale, has to fit into that format, whose largest number is {top:.0f}.")
    w = torch.tensor([1.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.01)
    scaler = torch.amp.GradScaler("cpu")
    scales, weights = [], []
    for _ in range(6):
        optimizer.zero_grad()
        loss = (w.half().float() * 10).sum()
        scales.append(scaler.get_scale())  # @inspect scales
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        weights.append(round(w.item(), 2))  # @inspect weights
    assert scales[:4] == [65536, 32768, 16384, 8192], "halved"
    assert scales[4:] == [4096, 4096], "then kept"
    assert weights == [1.0, 1.0, 1.0, 1.0, 0.9, 0.8], "four steps skipped"
    largest = top / 10  # @inspect largest
    power = 2 ** int(math.log2(largest))  # @inspect power
    assert power == 4096, "the power of two that just fits"
    note("The skipped steps are the cost, and the scale is state: `scaler.state_dict()` belongs "
         "in the checkpoint. `bfloat16` has the range to do without all this.")
    assert scaler.state_dict()["scale"] == 4096, "to be saved"
    fits = 2 ** int(math.log2(torch.finfo(torch.float16).max / 100))  # @hide
    question("The gradient is `100` instead of `10`. At which scale does the "
             "scaler settle, and after how many skipped steps?",
             answer=[fits, round(math.log2(scales[0] / fits))])


def through(x: Tensor, dtype: torch.dtype, scaled: bool = True) -> Tensor:
    """`x` after a round trip through a one-byte format, scaled to fill its range or as it is."""
    scale = torch.finfo(dtype).max / x.abs().max() if scaled else 1.0
    return (x * scale).to(dtype).float() / scale


def error_of(y: Tensor, exact: Tensor) -> float:
    """The size of the error relative to the size of the exact result."""
    return float((y - exact).norm() / exact.norm())


def one_byte_needs_a_scale() -> None:
    """In one byte a tensor needs a scale of its own, or its small values are gone."""
    note("`torch.autocast` knows `bfloat16` and `float16`. Asked for a byte, it warns, switches "
         "itself off, and the product is as wide as ever.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autocast("cpu", dtype=torch.float8_e4m3fn):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert product.dtype == torch.float32, "not supported, not used"

    note("So FP8 training scales by hand or by library: every tensor is stretched to fill "
         "the format's range, and the factor is carried along. Weights of a layer with small "
         "values, and what a product makes of them:")
    x, w = torch.randn(64, 256), torch.randn(256, 256) * 1e-4
    exact = x @ w
    fine, wide = torch.float8_e4m3fn, torch.float8_e5m2
    lost = error_of(x @ through(w, fine, scaled=False), exact)  # @inspect lost
    assert lost == 1.0, "everything: rounded to zero"
    errors = [error_of(x @ through(w, d), exact) for d in (fine, wide)]  # @inspect errors
    assert 0.0255 < errors[0] < 0.0275, "E4M3, scaled"
    assert 0.049 < errors[1] < 0.057, "E5M2, scaled"
    ratio = errors[1] / errors[0]  # @inspect ratio
    assert 1.9 < ratio < 2.15, "one fraction bit less"
    question(f"The largest number of E4M3 is `{torch.finfo(fine).max:.0f}`. "
             "Which factor stretches a tensor whose largest entry is `0.007` "
             "to this range?",
             answer=torch.finfo(fine).max / 0.007, unit="times")


def what_supports_one_byte_training() -> None:
    """Layers that multiply in one byte and training in one byte are two different works."""
    misbelief("NVIDIA's Transformer Engine uses FP8 throughout training.",
              "Notes on CS336 say so, having run two of its references together [@cs336]. It is a "
              "library of layers, such as linear ones, that multiply in FP8, and it "
              "leaves the rest to the program around it [@transformer-engine]. Gradients, "
              "optimizer state and communication in FP8 are another work, by Peng and others "
              "[@peng2023].")
    note("Two sources of mixed precision are as easily mixed up. The method was proposed in a paper "
         "by Micikevicius and others [@micikevicius2018]. What PyTorch's functions do is written in "
         "PyTorch's documentation [@pytorch-amp], and not in the paper.")
    link("https://docs.pytorch.org/docs/stable/amp.html", "torch.amp, the documentation")
    note("What a single byte could save at most is quickly counted: weight, gradient and Adam's two "
         "averages in `float32`, and the same four in a byte each. Recipes that work keep some of "
         "the four wider, so the truth lies between.")
    formats = torch.float32, torch.float8_e4m3fn
    wide, narrow = (4 * d.itemsize for d in formats)
    assert (wide, narrow) == (16, 4), "bytes per parameter"
    question("Suppose that a recipe stores weight and gradient in a byte "
             "each and leaves Adam's averages in `float32`. How many bytes "
             "per parameter is that?",
             answer=sum(2 * d.itemsize for d in formats), unit="B")


def quantize(
    w: Float[Tensor, "inner out"], bits: int
) -> tuple[Tensor, Tensor]:
    """Whole numbers of so many bits, and the scale of each column."""
    top = 2 ** (bits - 1) - 1
    scale = w.abs().amax(dim=0) / top
    return (w / scale).round().to(torch.int8), scale


def quantized_weights_trade_error_for_bytes() -> None:
    """Quantization makes a trained model smaller, and a little wrong."""
    note("A model that is only used needs no gradients, and can do with coarse weights: whole "
         "numbers, and one scale for each column of a matrix.")
    x, w = torch.randn(64, 256), torch.randn(256, 256)
    exact = x @ w
    error = {}
    for bits in (8, 4):
        whole, scale = quantize(w, bits)
        error[bits] = error_of(x @ (whole * scale), exact)  # @inspect error
    assert w.nbytes / whole.nbytes == 4.0, "one byte for each weight"
    extra = scale.nbytes / whole.nbytes  # @inspect extra
    assert round(extra, 3) == 0.016, "more, for the scales"
    assert 0.0064 < error[8] < 0.0074, "8 bits: under a hundredth off"
    assert 0.12 < error[4] < 0.13, "4 bits: an eighth off"
    misbelief("Quantizing a trained model improves its performance.",
              f"Its size and often its speed. Its answers get worse: by {error[8]:.1%} for this "
              f"random matrix at `8` bits, by {error[4]:.0%} at `4`. Whether that matters has to "
              "be measured on the model's task.")

    note("`4` bits have no dtype of their own here. Such numbers share a byte in pairs:")
    whole, _ = quantize(w, 4)
    low, high = (whole.flatten() & 15).view(-1, 2).unbind(1)
    packed = (low | high << 4).to(torch.uint8)  # @inspect packed
    assert packed.nbytes == w.nbytes // 8, "really an eighth"
    halves = torch.stack([packed & 15, packed >> 4], dim=1).to(torch.int8)
    restored = torch.where(halves > 7, halves - 16, halves)
    assert torch.equal(restored.view(256, 256), whole), "and back"
    whole, scale = quantize(torch.randn(1000, 400), 4)  # @hide
    question("How many bytes does a matrix of `1000 × 400` take at `4` bits "
             "a weight, packed in pairs, with its scales in `float32`?",
             answer=whole.numel() // 2 + scale.nbytes, unit="B")


# --- summary


def summary() -> None:
    """Summary."""
    note("A chapter of counting ends with the formulas. Each was held against a measurement in the "
         "section named beside it, and is held against one more here.")
    the_formulas_and_where_they_were_shown()
    the_four_kinds_of_memory_are_a_list_not_a_total()
    count_first_then_run()


def the_formulas_and_where_they_were_shown() -> None:
    """The formulas, an example of each, and the section that shows it."""
    note("First the examples, formula beside measurement. The model is the small one again: two "
         "hidden layers of width `64`, here with AdamW.")
    width, layers, batch = 64, 2, 8
    parameters = width**2 * layers + width  # @inspect parameters
    assert parameters == 8256, "the model of this chapter"
    kept = 4 * (batch * width * (layers + 1) + 2 * batch)  # @inspect kept as B
    measured = bill("AdamW", width, layers, batch)  # @inspect measured as B
    assert kept == measured["activations"], "formula, measured"
    work = 6 * batch * parameters - 2 * batch * width**2  # @inspect work as FLOP
    assert work == step_flops(batch, width, layers), "formula, counted"
    state = 16 * parameters  # @inspect state as B
    held = sum(measured.values()) - kept  # @inspect held as B
    assert state == held, "formula, measured"
    product = 2 * batch * width * width  # @inspect product as FLOP
    x, w = torch.ones(batch, width), torch.ones(width, width)
    assert product == flops(lambda: x @ w), "formula, counted"
    tokens = 14 * 10**11 * 2 / 1e12  # @inspect tokens as TB
    assert tokens == 2.8, "of token ids"
    note("Three that need more than this model: attention, from the decoder of the part on "
         "gradients; the bytes that a product moves; and the time of a large run.")
    context, vocab = 128, 100
    attention = 12 * layers * width * context  # @inspect attention as FLOP
    matrices = 12 * layers * width**2 + vocab * width
    counted = sum(decoder_flops(vocab, width, 2, layers, context))
    assert counted == (6 * matrices + attention) * context, "formula, counted"
    moved = x.nbytes + w.nbytes + (x @ w).nbytes  # @inspect moved as B
    per_byte = product / moved  # @inspect per_byte
    formula = intensity(batch, width, width, width=4)
    assert per_byte == formula, "formula, measured"
    promised = 1024 * dense_peak("H100 SXM", "bfloat16")  # @inspect promised as FLOP/s
    days = 6 * 70e9 * 15e12 / (promised * 0.5 * DAY)  # @inspect days as days
    assert 143.92 < days < 143.93, "the run of the first page"
    note(f"""The table. $B$ rows pass $L$ hidden layers of width $D$ with $P$ parameters in all; a product takes
$m \\times k$ by $k \\times n$. A decoder adds a context of $T$ tokens, and a whole run has $N$ parameters.
The examples are those above, with a batch of eight.

| what | formula | example | shown in |
|---|---|---|---|
| bytes of a tensor | count × width | {w.nbytes:,} B | [a fresh tensor](#a_fresh_tensor_costs_count_times_width) |
| FLOPs of a product | $2mkn$ | {product:,} | [products](#a_product_costs_two_m_k_n) |
| FLOPs per byte of it | $2mkn / (4(mk+kn+mn))$ | {per_byte:.1f} | [the roofline](#the_roofline_tells_waiting_from_working) |
| parameters | $D^2L+D$ | {parameters:,} | [shapes](#parameters_follow_from_the_shapes) |
| kept activations | $4(BD(L+1)+2B)$ | {kept:,} B | [what autograd keeps](#autograd_keeps_more_than_the_hidden_layers) |
| AdamW, `float32` | $16P$ | {state:,} B | [four numbers](#adamw_keeps_four_numbers_per_parameter) |
| a step | $6BP-2BD^2$ | {work:,} FLOPs | [a step](#a_step_does_less_than_six_flops) |
| attention, per token | $12LDT$ | {attention:,} FLOPs | [attention](#in_a_transformer_backward_is_twice_forward) |
| sharded over $n$ | $8P+8P/n$ | {10 * parameters:,} B for `4` | [sharding](#sharding_divides_the_state) |
| token file | tokens × width | {tokens} TB | [token files](#the_size_of_the_data_is_tokens_times_width) |
| time of a run | $6N\\,\\mathrm{{tokens}} / (\\mathrm{{peak}} \\times \\mathrm{{MFU}})$ | {days:.0f} days | [three lines](#a_training_run_in_three_lines) |
""")
    question("From which batch on do the kept activations of this model "
             "outweigh all that AdamW holds?",
             answer=next(b for b in range(1, 999) if kept / batch * b > state))


class Temporaries(TorchDispatchMode):
    """Notes the bytes of every tensor that is made in memory of its own while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        given = [x for x in args if isinstance(x, Tensor)]
        if isinstance(made, Tensor):
            if not any(same_storage(made, x) for x in given):
                self.sizes.append(made.nbytes)
        return made


def the_four_kinds_of_memory_are_a_list_not_a_total() -> None:
    """Parameters, gradients, optimizer state and activations are a list, not yet a total."""
    note("The same step once more, by kind:")
    kinds = bill("AdamW", 64, 2, 8)  # @inspect kinds as B
    assert len(kinds) == 4, "the four kinds"
    total = sum(kinds.values())  # @inspect total as B
    assert total == 138304, "of all four"
    note("The list is complete for what a step *keeps*. On top of it come gradients of "
         "activations, temporary tensors, and what the allocator rounds up. The temporaries can "
         "be watched as they are made. AdamW, on a CPU, makes two for every parameter on its way "
         "to the update:")
    p = torch.randn(8256, requires_grad=True)
    p.sum().backward()
    optimizer = OPTIMIZERS["AdamW"]([p])
    with Temporaries() as seen:
        optimizer.step()
    made = sum(size for size in seen.sizes if size > 4)  # @inspect made as B
    kept = state_bytes(optimizer)  # @inspect kept as B
    assert made - kept == 2 * p.nbytes, "beside the new state"
    question("How many bytes of temporary tensors does such a step of AdamW "
             "make for a model of `1` billion parameters?",
             answer=10**9 * (made - kept) // p.numel(), unit="B")


def count_first_then_run() -> None:
    """Count first, then run, then explain the difference."""
    note("The mechanics are plain: tensors, products, gradients, a loop. The habit is the part "
         "worth keeping. Write down bytes and FLOPs before running, measure, and do not rest "
         "until the two agree or you can say why not. Intuitions grow from there; a rule of thumb "
         "is trusted as far as its conditions are printed with it.")
    guess = 6 * 8 * 8256  # @inspect guess as FLOP
    counted = step_flops(8, 64, 2)  # @inspect counted as FLOP
    gap = guess - counted  # @inspect gap as FLOP
    assert gap == 2 * 8 * 64 * 64, "the first layer's input gradient"
    note("A gap with a name is not an error any more. It is something known about the machine.")
    question("Half the width, twice the batch, the same depth: how large is "
             "the gap between guess and count?",
             answer=6 * 16 * (2 * 32**2 + 32) - step_flops(16, 32, 2),
             unit="FLOP")


# --- figures


def blank(width: float, height: float) -> tuple[Figure, Axes]:  # @hide
    """A transparent figure whose frame and text are readable in light and dark."""
    fig = Figure(figsize=(width, height), layout="constrained")
    fig.patch.set_alpha(0)
    ax = fig.subplots()
    ax.patch.set_alpha(0)
    ax.tick_params(colors=GREY, which="both")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.xaxis.label.set_color(GREY)
    ax.yaxis.label.set_color(GREY)
    return fig, ax


def days_figure(days: Callable[[float, float], float], rates: list[float]) -> Figure:   # @hide
    """Days against MFU, one labelled curve per rate, a dot at one half on the middle curve."""
    fig, ax = blank(7, 3.4)
    levels = [m / 100 for m in range(20, 71)]
    names = "PCIe card", "SXM card", "SXM, sparse peak (wrong)"
    for name, rate, color, ls in zip(names, rates, (GOLD, BLUE, RED), ("-", "-", "--")):
        ax.plot(levels, [days(rate, m) for m in levels], color=color, lw=2, ls=ls)
        ax.annotate(name, (0.71, days(rate, 0.7)), va="center", color=GREY)
    ax.plot(0.5, days(rates[1], 0.5), "o", color=BLUE, ms=8)
    ax.set(xlabel="model FLOPs utilization", ylabel="days", xlim=(0.2, 0.95), ylim=(0, None))
    ax.set_xticks([0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    return fig


def staircase_figure(  # @hide
    xs: list[float], ys: list[float], unit: float, lost: float
) -> Figure:
    """Rounded value against value, in units of the smallest one."""
    fig, ax = blank(6, 3.6)
    scaled = [x / unit for x in xs]
    ax.plot(scaled, scaled, color=GREY, lw=1, ls=":", label="exact")
    ax.plot(scaled, [y / unit for y in ys], color=BLUE, lw=2, label="float16")
    ax.plot([lost / unit], [0], "o", color=RED, ms=9, label="1e-8 becomes 0")
    ax.set(xlabel="x / 2⁻²⁴", ylabel="float16(x) / 2⁻²⁴", xlim=(-0.5, 4.5), ylim=(-0.5, 4.5))
    ax.legend(frameon=False, labelcolor=GREY, loc="upper left")
    return fig


def byte_figure(fine: list[float], wide: list[float]) -> Figure:  # @hide
    """Every positive value as a tick on a logarithmic axis."""
    fig, ax = blank(8, 2.4)
    for row, ticks, color in ((0, fine, BLUE), (-1, wide, RED)):
        finite = [t for t in ticks if math.isfinite(t)]
        ax.vlines(finite, row - 0.32, row + 0.32, color=color, lw=0.9)
    ax.set_xscale("log", base=2)
    ax.set_yticks([0, -1], ["E4M3", "E5M2"])
    ax.set(xlabel="value", ylim=(-1.5, 0.5))
    ax.spines["left"].set_visible(False)
    return fig


def decades_figure(formats: tuple[torch.dtype, ...]) -> Figure:  # @hide
    """A bar per format from its smallest normal number to its largest, in powers of ten."""
    fig, ax = blank(8, 2.6)
    for row, dtype in enumerate(formats):
        info = torch.finfo(dtype)
        low, high = math.log10(info.smallest_normal), math.log10(info.max)
        color = (BLUE, RED, GREEN, GOLD, GOLD)[row]
        ax.barh(-row, high - low, left=low, height=0.6, color=color)
        ax.text(high + 1, -row, f"{high - low:.1f}", va="center", color=GREY)
    names = [str(d).removeprefix("torch.") for d in formats]
    ax.set_yticks([-row for row in range(len(formats))], names)
    ax.set(xlabel="power of ten", xlim=(-42, 48))
    ax.spines["left"].set_visible(False)
    return fig


def plot_roofline(rate: float, bandwidth: float, shapes: dict[str, float]) -> Figure:  # @hide
    """The roof in TFLOP/s against intensity, and a labelled dot for each shape."""
    fig, ax = blank(7, 3.8)
    xs = [0.05, rate / bandwidth, 1e4]
    ax.plot(xs, [min(rate, x * bandwidth) / TERA for x in xs], color=BLUE, lw=2)
    for name, x in shapes.items():
        y = min(rate, x * bandwidth) / TERA
        ax.plot(x, y, "o", color=RED if x < rate / bandwidth else GREEN, ms=8)
        ax.annotate(name, (x, y), (8, -12), textcoords="offset points", color=GREY)
    ax.set(xscale="log", yscale="log", xlabel="FLOPs per byte", ylabel="attainable TFLOP/s")
    ax.set_ylim(0.1, 3000)
    return fig


def plot_measured_roof(rate: float, slopes: dict[str, float], points: dict[str, Point]) -> Figure:  # @hide
    """A roof in TFLOP/s for each slope, by line style, and a labelled dot for each measured operation."""
    fig, ax = blank(7, 3.8)
    for style, bandwidth in slopes.items():
        xs = [0.05, rate / bandwidth, 1e4]
        ax.plot(xs, [min(rate, x * bandwidth) / TERA for x in xs], color=BLUE, lw=2, ls=style)
    for name, point in points.items():
        at = point.intensity, point.rate / TERA
        ax.plot(*at, "o", color=RED if point.intensity < rate / min(slopes.values()) else GREEN, ms=8)
        ax.annotate(name, at, (8, -12), textcoords="offset points", color=GREY)
    ax.set(xscale="log", yscale="log", xlabel="FLOPs per byte", ylabel="TFLOP/s")
    return fig


def plot_sweep(sizes: list[int], rates: list[float], promised: float | None) -> Figure:  # @hide
    """Rates in TFLOP/s against size, and the promised rate where there is one."""
    fig, ax = blank(7, 3.4)
    ax.plot(sizes, [rate / TERA for rate in rates], "o-", color=BLUE, lw=2)
    if promised is not None:
        ax.axhline(promised / TERA, color=RED, ls="--", lw=1.5)
    ax.set(xlabel="rows and columns", ylabel="TFLOP/s", ylim=(0, None))
    ax.set_xscale("log", base=2)
    return fig


def plot_products(costs: list[int]) -> Figure:                  # @hide
    """A bar for each product of a step, layer by layer; the first input gradient greyed out."""
    fig, ax = blank(8, 3.4)
    kinds = ("forward", BLUE), ("weight gradient", RED), ("input gradient", GREEN)
    for layer, cost in enumerate(costs):
        for row, (kind, color) in enumerate(kinds):
            y, length = -(4 * layer + row), cost / TERA
            skipped = layer == 0 and row == 2
            ax.barh(y, length, 0.8, facecolor="none" if skipped else color,
                    edgecolor=GREY if skipped else color, ls="--" if skipped else "-")
            label = f"{kind}: {'not computed' if skipped else f'{length:.1f} TFLOP'}"
            ax.text(length + 0.5, y, label, va="center", color=GREY)
    ax.set_yticks([-1, -5], ["first layer", "second layer"])
    ax.set(xlabel="TFLOP", xlim=(0, 1.4 * max(costs) / TERA))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return fig


def plot_spread(widths: list[int], raw: list[float], scaled: list[float]) -> Figure:  # @hide
    """Deviation against width on logarithmic axes, with and without scaling."""
    fig, ax = blank(7, 3.6)
    ax.plot(widths, [math.sqrt(n) for n in widths], ls=":", color=GREY, lw=1.5)
    ax.plot(widths, [1.0] * len(widths), ls=":", color=GREY, lw=1.5)
    ax.plot(widths, raw, "o", color=RED, ms=8)
    ax.plot(widths, scaled, "s", color=BLUE, ms=8)
    ax.annotate("unit weights: slope ½", (widths[1], raw[1]), (10, -14),
                textcoords="offset points", color=GREY)
    ax.annotate("weights / √n", (widths[1], scaled[1]), (10, 8),
                textcoords="offset points", color=GREY)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set(xlabel="inputs n", ylabel="std of x @ w", ylim=(0.5, 256))
    return fig


def plot_truncation(absolute: Tensor, relative: Tensor) -> Figure:  # @hide
    """Histograms of both draws on a logarithmic scale of counts."""
    fig, ax = blank(8, 3.4)
    bins = [i / 5 for i in range(-27, 28)]
    ax.hist(absolute.flatten().numpy(), bins, histtype="step", color=RED, lw=2, label="±3")
    ax.hist(relative.flatten().numpy(), bins, color=BLUE, alpha=0.55, label="±3·std")
    ax.set(yscale="log", xlabel="weight / std", ylabel="weights")
    ax.legend(frameon=False, labelcolor=GREY)
    return fig


if __name__ == "__main__":
    main()
