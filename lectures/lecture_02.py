"""Lecture 02: PyTorch and resource accounting."""
import io
import itertools
import math
import statistics
import struct
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from inspect import signature
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import Rearrange
from hardware import CARDS, find, peak
from jaxtyping import BFloat16, Bool, Float, Int, UInt8, jaxtyped
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from litbook import figure, misbelief, note, requires

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
    napkin_math()
    tensors()
    number_formats()
    tensors_on_a_gpu()
    storage_and_views()
    elementwise()
    matmul_and_named_axes()


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


def median_seconds(call: Callable[[], object], repeats: int = 7) -> float:  # @stepover
    """The middle one of several wall-clock times, in seconds, after one call to warm up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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
        rows="N15",
    )


def a_training_run_in_three_lines() -> None:
    """Parameters, tokens and a peak rate give the length of a training run."""
    params, tokens, gpus = 70 * 10**9, 15 * 10**12, 1024
    note(
        f"How long do {gpus} H100s need to train {params / 1e9:.0f} billion parameters on "
        f"{tokens / 1e12:.0f} trillion tokens? A forward and backward pass spends about `6` "
        "FLOPs per parameter and token [@kaplan2020]."
    )
    work = 6 * params * tokens                                  # @inspect work as FLOP
    assert work == 63 * 10**23, "6.3e24 FLOPs"
    note(
        "The SXM version of the card, multiplying ordinary (dense) `bfloat16` matrices, "
        "promises a rate [@nvidia-h100]. *Model FLOPs utilization*, MFU, is the fraction of "
        "that promise that useful work really gets. Take one half; it is an assumption, and "
        "an optimistic one for a run of this size."
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
    share = attention / by_rule                                 # @inspect share
    assert 0.153 < share < 0.154, "left out, relative to counted"
    short = 12 * layers * width * 1024 / by_rule                # @inspect short
    assert share / short == 8.0, "proportional to the context"
    note(
        f"At this context the rule is {share:.0%} short; at an eighth of it, {short:.0%}. A "
        "kernel that skips the masked half of the scores spends about half of that."
    )


def the_promise_is_printed_twice_too_large() -> None:
    """The large number on the datasheet is for matrices that are half zeros."""
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
        rows="N02",
    )
    note("Nor is every card called H100 the same card [@nvidia-h100-pcie]:")
    pcie = peak(CARDS["H100 PCIe"], "bfloat16")                 # @inspect pcie as FLOP/s
    nvl = peak(CARDS["H100 NVL"], "bfloat16")                   # @inspect nvl as FLOP/s
    assert (pcie, nvl) == (756.5e12, 835.5e12), "PCIe and NVL promise less"


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
        caption="Days for the same run against the MFU assumed. The dot is the estimate above.",
        alt="Three falling curves of days against MFU. The one for the sparse peak runs at "
        "half the height of the one for the dense peak, the PCIe card's above both. A dot "
        "marks the dense estimate at an MFU of one half.",
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
        "The parameter itself, its gradient, and the two *moments*: running averages of the "
        "gradient and of its square, introduced by Adam [@kingma2015]. Take a real step and "
        "weigh what is left."
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
    limit = CARDS["H100 SXM"].memory / per_parameter            # @inspect limit
    assert limit == 5 * 10**9, "an upper bound, not an estimate"
    note(
        f"Not even {limit / 1e9:.0f} billion parameters fit into "
        f"{CARDS['H100 SXM'].memory / GB:.0f} GB [@nvidia-h100], because activations, "
        "temporaries and fragmentation have not been given a byte yet."
    )


def adamw_follows_the_dtype_it_is_given() -> None:
    """A bfloat16 model gets bfloat16 moments, and no master copy."""
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
        "AdamW costs `16` bytes per parameter.",
        "With float32 everywhere, yes. Call `model.bfloat16()` first and it is "
        f"{per_parameter:.0f}: `torch.optim.AdamW` stores its state in the dtype of the "
        "parameter and never makes a float32 copy by itself. What that thrift does to small "
        "updates is shown under number formats.",
        rows="N11",
    )


def a_master_copy_eats_what_it_saves() -> None:
    """Half-width weights with a full-width master copy save no memory."""
    note(
        "Mixed-precision recipes keep a `float32` *master copy* of the weights for the "
        "optimizer and let the model compute with a narrow copy of it [@micikevicius2018]. "
        "Weigh the pieces, here with `bfloat16` as the narrow format, and add them up in "
        "every combination in use."
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
        "`bfloat16` throughout": (half, half, 0, thrifty),
    }
    sums = [sum(parts) for parts in recipes.values()]           # @inspect sums as B
    assert sums == [16, 16, 18, 12, 8], "bytes per parameter"
    rows = [f"| {name} | {p} | {g} | {c} | {m} | {p + g + c + m} |"
            for name, (p, g, c, m) in recipes.items()]
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


def pooled_memory_needs_sharded_state() -> None:
    """Eight GPUs hold an eightfold model only if each keeps an eighth of it."""
    gpus, per_parameter = 8, 16
    memory = CARDS["H100 SXM"].memory                           # @inspect memory as B
    pooled = memory * gpus // per_parameter                     # @inspect pooled
    assert pooled == 40 * 10**9, "all memory as one pool"
    replicated = memory // per_parameter                        # @inspect replicated
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
    bill = [2 * p.nbytes + m for p, m in zip(owned, moments)]   # @inspect bill as B
    assert sum(bill) == 16 * 8000, "together they hold it once"
    per_gpu = max(bill) / 8000                                  # @inspect per_gpu as B
    assert per_gpu == 2.0, "per parameter, on each GPU"
    misbelief(
        f"{gpus} H100s can train a model of {pooled / 1e9:.0f} billion parameters.",
        "The pool could hold its state, and nothing else. Without sharding the limit stays "
        f"{replicated / 1e9:.0f} billion, however many GPUs there are; with it, "
        f"{pooled / 1e9:.0f} billion is a ceiling that activations, temporaries and "
        "fragmentation push down.",
        rows="N08",
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
        "The backward pass needs values that the forward pass computed. Autograd keeps them, "
        "and PyTorch lets us watch each one being saved. For two layers without bias, with "
        "the input and the weights not counted, two tensors of batch × sequence × width "
        "remain: the output of either layer."
    )
    base = saved_bytes(batch=8, seq=16, width=64)               # @inspect base as B
    assert base == 2 * (8 * 16 * 64) * 4, "two hidden tensors in float32"
    assert saved_bytes(16, 16, 64) == 2 * base, "twice the batch"
    assert saved_bytes(8, 32, 64) == 2 * base, "twice the sequence"
    state = 16 * (2 * 64 * 64)                                  # @inspect state as B
    assert state / base == 2.0, "weights, gradients and moments"
    note(
        "At this batch the activations are half the size of that; at four times the batch "
        "they are twice its size, and the optimizer's bill has not moved. So bytes per "
        "parameter give a bound and never an estimate. Real layers save more than these two: "
        "nonlinearities, normalizations and attention keep tensors of their own."
    )
    assert saved_bytes(32, 16, 64) == 2 * state, "at four times the batch"


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
        "reader, uses every weight once:"
    )
    with torch.device("meta"):
        w: Float[Tensor, "out inner"] = torch.empty(4096, 4096).bfloat16()
        x: Float[Tensor, "inner one"] = torch.empty(4096, 1).bfloat16()
    y = w @ x
    work = flops(lambda: w @ x)                                 # @inspect work as FLOP
    moved = w.nbytes + x.nbytes + y.nbytes                      # @inspect moved as B
    intensity = work / moved                                    # @inspect intensity as FLOP/B
    assert 0.999 < intensity < 1.0, "one FLOP per byte"
    reachable = intensity / balance                             # @inspect reachable
    assert 0.0033 < reachable < 0.0034, "of the promised rate, at best"
    note(
        f"At most {reachable:.1%} of the peak, and no better code can help. Only more FLOPs "
        "per byte can."
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
    m: Float[Tensor, "row col"] = torch.tensor([[1.0, 2, 3], [4, 5, 6]])  # @inspect m
    assert m.shape == (2, 3), "two rows, three columns"
    assert m.dtype == torch.float32, "one float literal is enough"
    whole: Int[Tensor, "n"] = torch.tensor([1, 4, 9])           # @inspect whole
    assert whole.dtype == torch.int64, "integers stay integers"
    note("A forgotten point shows up late, at the first operation that only floats have:")
    refused = message_of(lambda: whole.requires_grad_())        # @inspect refused
    assert "floating point" in refused, "integers have no gradient"


def four_ways_to_make_a_tensor() -> None:
    """Zeros, ones, noise, or whatever was there."""
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


def randn_draws_from_the_standard_normal() -> None:
    """`randn` draws independent samples with mean zero and spread one."""
    x = torch.randn(10**6)                                      # @inspect x
    mean = round(x.mean().item(), 2)                            # @inspect mean
    std = round(x.std().item(), 2)                              # @inspect std
    assert (mean, std) == (0.0, 1.0), "to two digits"
    inside = (x.abs() < 1).double().mean().item()               # @inspect inside
    theory = math.erf(1 / math.sqrt(2))                         # @inspect theory
    assert 0.995 < inside / theory < 1.005, "share within one deviation"


def truncation_narrows_the_spread() -> None:
    """Cutting off the tails shrinks the deviation below the one asked for."""
    note(
        "A usual way to initialize weights: allocate without writing, then fill in place. "
        "The trailing underscore marks an operation that overwrites its argument."
    )
    x = torch.empty(10**6)
    y = nn.init.trunc_normal_(x, mean=0, std=1, a=-2, b=2)      # @inspect x
    assert y.data_ptr() == x.data_ptr(), "filled in place"
    assert x.abs().max() <= 2, "the tails are gone"
    std = x.std().item()                                        # @inspect std
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    theory = math.sqrt(1 - 4 * density / math.erf(math.sqrt(2)))  # @inspect theory
    assert 0.8796 < theory < 0.8797, "for bounds of two deviations"
    assert 0.997 < std / theory < 1.003, "a million draws agree"
    note(
        f"Asked for a standard deviation of one, it delivers {std:.2f}. The argument names "
        "the normal *before* the cut."
    )


def most_tensors_hold_floats() -> None:
    """Nearly all bytes are floats; indices and masks are not."""
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


def a_fresh_tensor_costs_count_times_width() -> None:
    """A fresh tensor costs its element count times its element width."""
    x: Float[Tensor, "row col"] = torch.zeros(4, 8)             # @inspect x
    assert x.numel() == 4 * 8, "elements in all"
    assert x.element_size() == 4, "bytes per float32"
    assert x.nbytes == 128, "count times width"
    assert x.untyped_storage().nbytes() == 128, "what is really allocated"


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
        "That matrix takes `2.3` GB.",
        f"It takes {binary} GiB, which is {decimal:.2f} GB. Mixing the two units gives a "
        "number that is wrong in both. GPU datasheets speak decimal, most memory tools "
        "binary.",
        rows="D06",
    )
    note(
        "Whether that is a lot depends on what else the card must hold. To train it with "
        "AdamW takes"
    )
    training = size * 16 // 4                                   # @inspect training as B
    assert training / GiB == 9.0, "GiB of training state"


def a_view_can_hold_more_or_less_than_it_reports() -> None:
    """A view reports the bytes it shows, not the bytes it keeps alive."""
    note(
        "A *view* is a second tensor over the same storage. `nbytes` multiplies count by "
        "width and cannot tell. Expand one number to a long vector, and one number is "
        "stored:"
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
        rows="T06",
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
        "2^{e-\\mathrm{bias}} \\cdot (1+f)$. Take `0.15625`, which is $1.25 \\cdot 2^{-3}$, "
        "in `float32`:"
    )
    pattern = bits(0.15625, torch.float32)                      # @inspect pattern
    fields = "0", "01111100", "01000000000000000000000"
    assert pattern == "".join(fields), "sign, exponent, fraction"
    assert layout(torch.float32) == (1, 8, 23), "bits for each field"
    power = int(fields[1], 2) - 127                             # @inspect power
    assert power == -3, "exponent bits, less the bias"
    assert 2.0**power * (1 + 0b01 / 4) == 0.15625, "a quarter of the way up"
    decoded = decode(pattern, torch.float32)                    # @inspect decoded
    assert decoded == 0.15625, "by the definition"


def float32_is_the_default() -> None:
    """`float32` is PyTorch's default, not everyone's."""
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
    counted = torch.arange(3)                                   # @inspect counted.dtype
    assert counted.dtype == torch.int64, "not every factory makes floats"
    note(
        "How much precision a network needs has no proof, only experience, and the "
        "experience is that it gets by with far less than this [@micikevicius2018]. So take "
        "`float32` as the safe place to start from and the yardstick for anything narrower, "
        "and expect to pay for it in memory."
    )


def float32_overflows_too() -> None:
    """`float32` is stable relative to its neighbours, not absolutely."""
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

    depths = [layers_until_infinity() for _ in range(25)]       # @inspect depths
    typical = median(depths)                                    # @inspect typical
    assert typical == 43, "layers until infinity"
    powers = math.log(torch.finfo(torch.float32).max, 8)        # @inspect powers
    assert 42.6 < powers < 42.7, "factors of eight in the range"
    note(
        "The cure is not a wider format but a smaller factor, which is what initialization "
        "is about."
    )


def float16_spends_little_on_range() -> None:
    """`float16` halves the bytes and keeps a short exponent."""
    assert layout(torch.float16) == (1, 5, 10), "sign, exponent, fraction"
    x = torch.zeros(4, 8, dtype=torch.float16)
    assert (x.element_size(), x.nbytes) == (2, 64), "half of float32"
    largest = torch.finfo(torch.float16).max                    # @inspect largest
    assert largest == (2 - 2**-10) * 2**15, "all fraction bits set"
    note(
        f"Above {largest:.0f} comes infinity. Values up to half a step beyond still round "
        "down; the next one does not."
    )
    rounded = cast(65519, torch.float16)                        # @inspect rounded
    assert rounded == 65504.0, "rounds down to the largest"
    assert cast(65520, torch.float16) == math.inf, "rounds up to infinity"
    smallest = 2.0**-24                                         # @inspect smallest
    assert cast(smallest, torch.float16) == 2**-24, "just above zero"
    assert cast(smallest / 2, torch.float16) == 0.0, "half of it is nothing"


def small_values_vanish_in_float16() -> None:
    """A gradient of `1e-8` is zero in `float16`."""
    gone = cast(1e-8, torch.float16)                            # @inspect gone
    assert gone == 0.0, "no error, no warning"
    note(
        "Just above zero the values of `float16` are evenly spaced, $2^{-24}$ apart. "
        "Rounding to them is a staircase whose first step is at half that distance; "
        "everything to its left becomes zero. Gradients live there."
    )
    unit = 2.0**-24
    xs = [unit * i / 100 for i in range(-50, 451)]
    ys = [cast(x, torch.float16) for x in xs]
    stairs = sorted({y / unit for y in ys})                     # @inspect stairs
    assert stairs == [0, 1, 2, 3, 4], "five values on this stretch"
    figure(
        staircase_figure(xs, ys, unit, lost=1e-8),
        caption="float16 near zero, both axes in units of its smallest value. The dot is 1e-8.",
        alt="A staircase of steps one unit wide along the diagonal. The first step up is at "
        "one half of the smallest value; a dot for 1e-8 lies left of it, on the floor at "
        "zero.",
    )


def bfloat16_is_the_top_half_of_float32() -> None:
    """`bfloat16` is `float32` with the lower half cut off."""
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
        rows="D23",
    )


def bfloat16_has_the_exponents_of_float32() -> None:
    """The same exponents do not quite make the same range."""
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
        rows="D19",
    )


def bfloat16_is_much_coarser() -> None:
    """`bfloat16` has between two and three significant digits."""
    eps = {d: torch.finfo(d).eps for d in FORMATS[:3]}          # @inspect eps
    note("The *machine epsilon* is the gap between one and the next number.")
    coarse = eps[torch.bfloat16]
    assert coarse == 1 / 128, "no number between 1 and 1.0078"
    against_half = coarse / eps[torch.float16]                  # @inspect against_half
    assert against_half == 8.0, "coarser than float16"
    against_full = coarse / eps[torch.float32]                  # @inspect against_full
    assert against_full == 65536.0, "coarser than float32"
    total = torch.tensor(256.0, dtype=torch.bfloat16) + 1       # @inspect total
    assert total == 256, "adding one does nothing"
    digits = math.log10(2 / coarse)                             # @inspect digits
    assert 2.40 < digits < 2.41, "significant decimal digits"
    misbelief(
        "bfloat16's precision is slightly lower.",
        f"{against_half:.0f} times lower than float16's and {against_full:,.0f} times lower "
        f"than float32's: about {digits:.1f} decimal digits.",
        rows="D21",
    )


def one_byte_comes_in_two_formats() -> None:
    """One byte is so little that there are two ways to spend it."""
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
        caption="Every positive value of either format: eight to a doubling above, four below.",
        alt="Two rows of vertical ticks on a logarithmic axis. The row for E4M3 is dense and "
        "ends at 448; the row for E5M2 has half as many ticks per doubling and stretches "
        "from far below the first of E4M3 up to 57344.",
    )


def one_buys_range_the_other_resolution() -> None:
    """`E5M2` reaches farther, `E4M3` lies closer."""
    fine, wide = torch.finfo(E4M3), torch.finfo(E5M2)
    assert (fine.min, fine.max) == (-448, 448), "all of `E4M3`"
    assert (wide.min, wide.max) == (-57344, 57344), "all of `E5M2`"
    assert wide.max / fine.max == 128.0, "`E5M2` reaches farther"
    assert wide.eps / fine.eps == 2.0, "`E4M3` is finer"
    closer = cast(0.3952, E4M3), cast(0.3952, E5M2)             # @inspect closer
    assert closer == (0.40625, 0.375), "0.3952 in either format"
    note(
        "Choose `E5M2` where range is short, as for gradients, and `E4M3` where resolution "
        "is, as for weights and activations: so advises the paper that proposed the pair "
        "[@micikevicius2022]."
    )


def the_two_overflow_differently() -> None:
    """What happens above the largest value depends on the format, and on the release."""
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


def one_byte_is_for_storing_and_multiplying() -> None:
    """PyTorch stores one-byte floats and feeds them to matrix products, and little else."""
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
        "It was *proposed* then, as an interchange format, by authors from NVIDIA, Arm and "
        "Intel [@micikevicius2022]. A proposal leaves room: on overflow, where one library "
        "saturates, another returns NaN [@ml-dtypes].",
        rows="D33",
    )


def one_value_in_five_formats() -> None:
    """One tenth is five different numbers."""
    note(
        "No binary format holds `0.1`. Each stores its nearest neighbour, and the bits, "
        "decoded by hand, agree:"
    )
    names = [str(d).removeprefix("torch.") for d in FORMATS]
    patterns = [bits(0.1, d) for d in FORMATS]                  # @inspect patterns
    stored = [cast(0.1, d) for d in FORMATS]                    # @inspect stored
    by_hand = [decode(p, d) for p, d in zip(patterns, FORMATS)]
    assert by_hand == stored, "definition and machine agree"
    errors = [abs(value - 0.1) / 0.1 for value in stored]       # @inspect errors
    worst = names[errors.index(max(errors))]                    # @inspect worst
    assert worst == "float8_e5m2", "fewest fraction bits"
    assert 0.0624 < max(errors) < 0.0626, "a sixteenth off"
    assert 1.4e-8 < min(errors) < 1.5e-8, "float32 comes closest"
    fields = [layout(d) for d in FORMATS]
    figure(
        bits_figure(names, patterns, fields, stored),
        caption="The bits of 0.1: sign, exponent, fraction. A filled box is a one.",
        alt="Five rows of boxes, one per bit, coloured by field. float32 has 1 sign, 8 "
        "exponent and 23 fraction bits, float16 1, 5 and 10, bfloat16 1, 8 and 7 equal to "
        "the start of float32 but for rounding, and the one-byte formats 1, 4, 3 and 1, 5, "
        "2. Beside each row stands the value stored.",
    )


def the_machine_prints_its_own_limits() -> None:
    """`torch.finfo` is the table to trust, because it is not a copy."""
    single, half, brain = [str(torch.finfo(d)) for d in FORMATS[:3]]
    assert single == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"
    ), "float32, as printed"
    assert half == (
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, "
        "smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)"
    ), "float16, as printed"
    assert brain == (
        "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=bfloat16)"
    ), "bfloat16, as printed"
    true = torch.finfo(torch.bfloat16).smallest_normal          # @inspect true
    slip = round(math.log10(1.17549e38 / true))                 # @inspect slip
    assert slip == 76, "orders of magnitude"
    misbelief(
        "The smallest normal bfloat16 is `1.17549e38`.",
        f"A copied table said so. Its missing minus sign is worth {slip} orders of magnitude. "
        "Print such tables, never type them.",
        rows="D27",
    )
    limits = [torch.finfo(d) for d in FORMATS]
    decades = [math.log10(f.max / f.smallest_normal) for f in limits]
    rounded = [round(d, 1) for d in decades]                    # @inspect rounded
    assert rounded == [76.5, 9.0, 76.5, 4.5, 9.0], "powers of ten spanned"
    figure(
        decades_figure(FORMATS),
        caption="From the smallest normal number to the largest. The numbers are decades.",
        alt="Horizontal bars on an axis of powers of ten. float32 and bfloat16 span about 76 "
        "decades around one; float16 and float8 E5M2 about nine, float8 E4M3 four and a "
        "half.",
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
    note("Add one, again and again, and keep the total in the narrow format.")
    brain = running_sum(1.0, 4000, torch.bfloat16)              # @inspect brain
    half = running_sum(1.0, 4000, torch.float16)                # @inspect half
    single = running_sum(1.0, 4000, torch.float32)              # @inspect single
    assert brain == 2**8, "bfloat16 stops here"
    assert half == 2**11, "float16 stops here"
    assert single == 4000, "float32 is exact"
    note(
        "At $2^8$ the next `bfloat16` is two away. Plus one lands in the middle, rounds to "
        "the even neighbour, and stays. It is the *running* total that must be wide; the "
        "terms may be narrow. PyTorch's own reductions know this:"
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


def small_updates_are_lost() -> None:
    """A weight that is too coarse ignores small updates."""
    steps = 1000
    note(f"A weight of one, and {steps} updates that should take it to zero:")
    coarse = running_sum(-1e-3, steps, torch.bfloat16, start=1.0)           # @inspect coarse
    assert coarse == 1.0, "not one of them arrived"
    fine = running_sum(-1e-3, steps, torch.float32, start=1.0)              # @inspect fine
    assert round(fine, 4) == 0.0, "float32 gets there"
    below = torch.tensor(1.0, dtype=torch.bfloat16).view(torch.int16) - 1
    gap = 1 - below.view(torch.bfloat16).item()                 # @inspect gap
    assert gap == 2**-8, "down to the next number"
    assert 0.25 < 1e-3 / gap < 0.26, "the update, in gaps"
    note(
        "The master copy of mixed precision is the cure in one line: update it, then round "
        "it for the model."
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
    assert round(mean, 2) == 0.0, "the updates arrived"
    spread = w.float().std().item()                             # @inspect spread
    assert 0.038 < spread < 0.044, "at the price of noise"
    misbelief(
        "Parameters and optimizer state must be float32, or training is unstable.",
        "What fails first is not stability but progress: small updates are lost. And *must* "
        "is too strong. A master copy cures it, random rounding cures it, and optimizers "
        "with one-byte states train well [@dettmers2022].",
        rows="D39",
    )


def scaling_the_loss_saves_small_gradients() -> None:
    """Multiply the loss by a large number, and small gradients survive `float16`."""
    note(
        "A gradient that passes through `float16` is rounded to `float16`. This one is "
        "`1e-8` when it sets out and zero when it arrives:"
    )
    w = torch.tensor([1.0], requires_grad=True)
    (w.half().float() * 1e-8).sum().backward()
    assert w.grad is not None, "it has a gradient"
    assert w.grad.item() == 0.0, "but nothing is in it"
    note(
        "The standard cure scales the loss before the backward pass, and the gradients back "
        "down, in `float32`, before the step [@micikevicius2018]. PyTorch's `GradScaler` "
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


def autocast_chooses_for_each_operation() -> None:
    """Mixed precision decides per operation, not per layer."""
    note(
        "Under `torch.autocast` the parameters stay `float32`. Operations on a list of safe "
        "ones cast their inputs down as they run; others are left alone or cast up."
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
    x = torch.zeros(32, 32)                                     # @inspect x.device
    assert x.device == torch.device("cpu"), "the default"
    note(
        "Name a device to create a tensor there, or `.to(device)` to copy one. Without need, "
        "`.to` copies nothing:"
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


def ask_before_you_move() -> None:
    """Ask what there is, and the same code runs with and without a GPU."""
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
        rows="G04",
    )


@requires("cuda")
def moving_allocates_on_the_gpu() -> None:
    """`memory_allocated` counts blocks."""
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


@requires("cuda")
def deleting_returns_blocks_to_a_cache() -> None:
    """`del` gives memory back to PyTorch, not to the driver."""
    note(
        "Asking the driver for memory is slow, so PyTorch keeps freed blocks for the next "
        "tensor. *Allocated* is what tensors hold; *reserved* is what PyTorch holds. Another "
        "program sees only the second."
    )
    torch.cuda.empty_cache()
    start = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    x = torch.empty(64 * MiB, device="cuda")
    held = torch.cuda.memory_allocated() - start[0]             # @inspect held as B
    assert held == 256 * MiB, "held by the tensor"
    del x
    after = torch.cuda.memory_allocated()
    assert after == start[0], "no tensor holds it"
    kept = torch.cuda.memory_reserved() - start[1]              # @inspect kept as B
    assert kept == 256 * MiB, "PyTorch still does"
    torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved()
    assert reserved == start[1], "now the driver has it back"
    note(
        "Watching both numbers is sound practice. Calling `empty_cache` in a training loop "
        "rarely is: it makes room for other programs, not for this one, and costs time."
    )


@requires("cuda")
def the_driver_knows_how_much_memory_there_is() -> None:
    """The size on the box is not the size a program gets."""
    total = torch.cuda.get_device_properties(0).total_memory    # @measure total as B
    free, seen = torch.cuda.mem_get_info()                      # @measure free as B
    assert free < seen, "the context already takes some"
    card = find(torch.cuda.get_device_name())                   # @measure card
    if card is not None:
        ratio = total / card.memory                             # @measure ratio
        assert 0.98 < ratio < 1.08, "near the datasheet, not on it"
    note(
        "So read `total_memory` where a program depends on it, and leave the nominal figure "
        "to napkins."
    )


def gpu_seconds(work: Callable[[], object], repeats: int = 20) -> float:    # @stepover
    """Median seconds that one call of `work` keeps the GPU busy, after a warm-up."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return float(median(times))


@requires("cuda")
def a_narrow_product_is_timed_here() -> None:
    """What a narrower format buys is measured, card by card."""
    note(
        "The many arithmetic units of a GPU pay off on large products and sit idle on small "
        "ones. The same matrix product in both formats, against the rates that the card "
        "promises:"
    )
    n = 8192
    a = torch.randn(n, n, device="cuda")
    b = a.bfloat16()
    wide = gpu_seconds(lambda: a @ a)                           # @measure wide as s
    narrow = gpu_seconds(lambda: b @ b)                         # @measure narrow as s
    speedup = wide / narrow                                     # @measure speedup
    card = find(torch.cuda.get_device_name())
    promised = peak(card, "float32"), peak(card, "bfloat16")    # @measure promised
    achieved = 2 * n**3 / wide, 2 * n**3 / narrow               # @measure achieved
    if promised[1] is not None:
        assert narrow < wide, "narrow is faster"
    work = flops(lambda: b @ b)                                 # @inspect work as FLOP
    assert work == flops(lambda: a @ a) == 2 * 8192**3, "the same work"


@requires("cuda")
def both_one_byte_formats_multiply() -> None:
    """Tensor cores multiply either one-byte format and return a wider one."""
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
              "metadata the pointer says where the numbers are and not what they mean.",
              rows="S02")
    later = middle.data_ptr() - x.data_ptr()  # @inspect later as B
    assert later == 1 * x.element_size(), "one element further on"

    note("Even the dtype is only a way of reading. Here the bytes of the same floats are read as "
         "integers, and the float `1.0` shows its bits.")
    bits: Int[Tensor, "row col"] = x.view(torch.int32)
    one = f"{bits[0, 0].item():032b}"  # @inspect one
    assert one == "00111111100000000000000000000000", "the float one"
    assert same_storage(x, bits), "same bytes, another dtype"


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


def a_storage_is_indexed_by_bytes() -> None:
    """An untyped storage is indexed by bytes, not by elements."""
    note("A storage can be opened and read. The older way in counts elements: entry `6` of "
         "`x.storage()` is element `6`.")
    x: Any = torch.arange(16.0).view(4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        old = x.storage()[6]
    assert old == 6.0, "the typed storage counts elements"

    misbelief("`x.storage()[6]` is how to read element `6` of a tensor's memory.",
              "It works, and warns that it will be removed. The storage that replaces it counts "
              "bytes, and its entry `6` lies inside element `1`.", rows="S06")
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
    x = x + 1  # @inspect x, row
    assert row.tolist() == [1, 100, 3], "the old storage is untouched"


def view_gives_the_same_numbers_another_shape() -> None:
    """view() reads the same numbers, in the same order, under another shape."""
    note("Nothing moves and nothing changes its order. The line of numbers is cut into rows of "
         "another length.")
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    y = x.view(3, 2)  # @inspect y
    assert y.tolist() == [[1, 2], [3, 4], [5, 6]], "not the transpose"
    assert same_storage(x, y), "one storage, two shapes"

    misbelief("`x.view(3, 2)` takes a `3x2` matrix and shows it as `2x3`.",
              "The arguments are the shape that comes out. The matrix that goes in is `2x3`.",
              rows="S10")
    shapes = tuple(x.shape), tuple(y.shape)
    assert shapes == ((2, 3), (3, 2)), "from here, to there"

    misbelief("`view()` accepts any tensor and treats it as another one.",
              "The element counts must agree, and the strides must be able to express the new "
              "shape. Otherwise it raises.", rows="S11")
    few = message_of(lambda: x.view(2, 2))  # @inspect few
    turned = message_of(lambda: x.t().view(2, 3))  # @inspect turned
    assert "is invalid for input of size 6" in few, "counts must agree"
    assert "not compatible with" in turned, "strides must allow it"


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


def contiguous_means_reading_in_storage_order() -> None:
    """A tensor is contiguous when reading it row by row never jumps in memory."""
    note("Transposing is not the only way to lose that. A cut across the rows leaves gaps; a cut "
         "between rows leaves none.")
    x = torch.arange(16.0).view(4, 4)  # @inspect x
    left, top = x[:, :2], x[:2]  # @inspect left, top
    gapless = [part.is_contiguous() for part in (x, left, top)]
    assert gapless == [True, False, True], "only the cut through rows"

    note("The numbers here are their own addresses, so the steps of the walk are the differences "
         "between neighbours. Contiguous means that all of them are `1`.")
    down, across = top.flatten().diff(), left.flatten().diff()
    assert down.tolist() == [1, 1, 1, 1, 1, 1, 1], "no jump anywhere"
    assert across.tolist() == [1, 3, 1, 3, 1, 3, 1], "a jump after each row"


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


def a_view_needs_axes_that_merge() -> None:
    """A view needs no contiguous tensor, only axes that merge."""
    misbelief("A non-contiguous tensor cannot be viewed any further.",
              "Splitting an axis, adding one, indexing and transposing back all work.",
              rows="S16")
    y = torch.arange(1.0, 7.0).view(2, 3).t()  # @inspect y
    longer, row, back = y.view(3, 1, 2), y[0], y.t()
    assert y.is_contiguous() is False, "rows that jump"
    assert tuple(longer.shape) == (3, 1, 2), "viewed all the same"
    assert same_storage(y, longer), "without a copy"
    assert same_storage(y, row), "so is a row of it"
    assert same_storage(y, back), "and the way back"

    misbelief("`view()` only works on contiguous memory.",
              "Contiguous memory is enough, but not required.", rows="S17")
    note("Only *merging* axes is demanding. Neighbouring axes merge when a step along the outer "
         "one is as long as a whole walk along the inner one: the outer stride must equal the "
         "inner size times the inner stride.")
    block = torch.arange(24.0).view(2, 3, 4)[:, :, :2]  # @inspect block.stride()
    outer, middle, inner = block.stride()
    merged = block.view(6, 2)  # @inspect merged, merged.stride()
    error = message_of(lambda: block.view(2, 6))  # @inspect error
    assert block.is_contiguous() is False, "half of each row is missing"
    walk = block.size(2) * inner  # @inspect walk
    assert outer == block.size(1) * middle, "step and walk agree: merge"
    assert same_storage(block, merged), "so this is a view"
    assert (middle, walk) == (4, 2), "step and walk differ"
    assert "view size is not compatible" in error, "so this is refused"


def contiguous_copies_only_when_it_must() -> None:
    """contiguous() copies only when it must, and reshape() never promised to."""
    misbelief("`contiguous()` makes a copy, so afterwards the tensors no longer share memory.",
              "On a contiguous tensor it returns that very tensor. To be sure of a copy, "
              "`clone()`.", rows="S20")
    x = torch.arange(1.0, 7.0).view(2, 3)
    assert x.contiguous() is x, "nothing to do, the same object"
    assert not same_storage(x, x.t().contiguous()), "had to be copied"
    assert not same_storage(x, x.clone()), "a clone is always a copy"

    misbelief("Use `contiguous()` or `reshape()` to make a tensor contiguous.",
              "`reshape()` promises a shape. Where a view will do it returns the view, gaps and "
              "all.", rows="S22")
    block = torch.arange(24.0).view(2, 3, 4)[:, :, :2]
    flat = block.reshape(6, 2)  # @inspect flat, flat.stride()
    assert flat.stride() == (4, 1), "rows of two, four apart"
    assert flat.is_contiguous() is False, "reshape left the gaps"
    assert flat.contiguous().stride() == (2, 1), "contiguous closed them"


def a_small_view_keeps_everything_alive() -> None:
    """A small view keeps the whole storage alive."""
    misbelief("Views are free.",
              "They cost no copy. But a storage lives as long as its last view, and a saved view "
              "takes all of it along.", rows="S23")
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


def a_view_costs_the_same_at_any_size() -> None:
    """The time of a view does not grow with the tensor; the time of a copy does."""
    note("A transpose writes a few integers, whatever the matrix. Making the transposed matrix "
         "contiguous reads and writes every number.")
    small, x = torch.randn(2, 2), torch.randn(2048, 2048)
    small_view = median_seconds(lambda: small.t())  # @measure small_view as s
    view = median_seconds(lambda: x.t())  # @measure view as s
    copy = median_seconds(lambda: x.t().contiguous())  # @measure copy as s
    assert max(small_view, view) < copy, "any view is cheaper"
    assert x.t().contiguous().nbytes == 16 * MiB, "memory the copy takes"
    assert same_storage(x, x.t()), "the view takes none"

    note("The bill for a view may come later, to whoever reads it. `clone()` and the copy above "
         "move equally many bytes, but `clone()` reads memory in order and the copy of the "
         "transpose cannot. Whether a view or a copy is faster in the end is worth measuring.")
    clone = median_seconds(lambda: x.clone())  # @measure clone as s
    slowdown = copy / clone  # @measure slowdown as times


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


def an_integer_tensor_turns_into_floats() -> None:
    """Division and roots turn an integer tensor into floats."""
    note("PyTorch calls it *promotion*. Powers and sums of integers are integers and stay so; "
         "roots and quotients become `float32`, the default float.")
    x: Int[Tensor, " place"] = torch.tensor([1, 4, 9])  # @inspect x
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

    note("In place there is no room for promotion: a storage of integers would have to take "
         "floats.")
    error = message_of(lambda: x.sqrt_())  # @inspect error
    assert "Float can't be cast" in error, "refused in place"


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
              "read only itself. PyTorch's own causal attention keeps `tril`.", rows="E05")
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
    assert causal == [False, False, False, True], "the past stands still"
    assert leaking == [True, True, True, True], "every token knew"


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
    note("The shared axis, here `hidden`, is *contracted*: multiplied pair by pair and summed "
         "away. The others stay.")
    m, k, n = 16, 32, 2
    x: Float[Tensor, "token hidden"] = torch.ones(m, k)
    w: Float[Tensor, "hidden out"] = torch.ones(k, n)
    y: Float[Tensor, "token out"] = x @ w  # @inspect y.shape
    entries = set(y.flatten().tolist())  # @inspect entries
    assert tuple(y.shape) == (16, 2), "the outer axes stay"
    assert entries == {32.0}, "ones, summed along hidden"

    note("Each of the `m * n` entries takes `k` multiplications and `k` additions, the first of "
         "them to zero. So a product costs `2 * m * k * n` FLOPs, and PyTorch's counter agrees.")
    counted = flops(lambda: x @ w)  # @inspect counted as FLOP
    assert counted == 2 * m * k * n, "counted as by hand"


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
    counted = flops_by_operation(lambda: x @ w)  # @inspect counted
    tall = batch * seq * rows  # @inspect tall
    by_hand = 2 * tall * inner * out  # @inspect by_hand as FLOP
    assert torch.equal(y, folded), "folded, multiplied, unfolded"
    assert counted == {"aten.mm": by_hand}, "one product, counted by hand"
    assert by_hand == 65536, "the product in full"
    figure(plot_folding(batch, seq, rows, inner, out),
           caption="The same product, as written and as run. Every sheet becomes a band of the "
                   "tall matrix, drawn flatter than it is.",
           alt="Above, a stack of wide sheets in groups by batch, times one narrow matrix, gives "
               "a stack of thin sheets. Below, one tall matrix made of as many bands, times the "
               "same narrow matrix, gives one tall thin matrix.")


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


def only_the_last_axis_is_special() -> None:
    """To a product, every axis but the last is just another batch axis."""
    misbelief("In `x` of shape `(4, 8, 16, 32)` the axes are batch, token, and two axes of the "
              "token itself.",
              "A token is a vector, and only the last axis is contracted. The third is one more "
              "axis to repeat the product over.", rows="M06")
    note("If the third axis played a part of its own in `x @ w`, swapping it with the first would "
         "disturb the result. It only swaps the result in the same way.")
    x: Float[Tensor, "a b c hidden"] = whole_numbers(4, 8, 16, 32)
    w: Float[Tensor, "hidden out"] = whole_numbers(32, 2)
    y: Float[Tensor, "a b c out"] = x @ w
    swapped = x.transpose(0, 2) @ w  # @inspect swapped.shape
    assert tuple(swapped.shape) == (16, 8, 4, 2), "only hidden is gone"
    assert torch.equal(swapped, y.transpose(0, 2)), "swapped, nothing else"


def a_forgotten_transpose_is_silent_on_squares() -> None:
    """A forgotten transpose raises an error, except on square matrices."""
    note("To compare every token of a sequence with every other, multiply by the transpose of the "
         "last two axes.")
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
    misbelief("Such annotations are documentation only; nothing is ever enforced.",
              "Not by Python. `jaxtyped` with a runtime checker enforces dtype, rank, and one "
              "size for each name across arguments and result.", rows="M18")
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


def einsum_checks_sizes_but_stretches_ones() -> None:
    """einsum refuses sizes that disagree, unless one of them is one."""
    note("It helps to think of einsum as a matrix product that keeps the books: a name with two "
         "sizes is an error. The message comes from PyTorch, which has been given a letter for "
         "the name.")
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


def reduce_names_the_axis_it_removes() -> None:
    """reduce() aggregates the axis that disappears from its pattern."""
    note("What says which axis to aggregate is its absence on the right.")
    x: Float[Tensor, "batch seq hidden"] = whole_numbers(2, 3, 4)
    old: Float[Tensor, "batch seq"] = x.mean(dim=-1)
    new: Float[Tensor, "batch seq"] = reduce(x, "... hidden -> ...", "mean")  # @inspect new
    assert torch.equal(new, old), "old way, new way"
    assert tuple(new.shape) == (2, 3), "hidden is gone"

    misbelief("`reduce(x, \"... hidden -> ...\", \"sum\")` is the einops form of `x.mean(-1)`.",
              "It is the form of `x.sum(-1)`. Sum and mean differ by the length of the axis, as "
              "one assert would have told.", rows="M25")
    ones = torch.ones(2, 3, 4)
    total = reduce(ones, "... hidden -> ...", "sum")
    mean = ones.mean(-1)  # @inspect total, mean
    assert total.tolist() == [[4, 4, 4], [4, 4, 4]], "the sum of ones"
    assert mean.tolist() == [[1, 1, 1], [1, 1, 1]], "the mean of ones"
    assert torch.equal(total, ones.sum(-1)), "the true old way"


def reduce_takes_more_than_one_tensor() -> None:
    """reduce() takes a name, a function, or a list of tensors."""
    note("Beside `sum`, `mean`, `max` and `min` there are `prod`, `any` and `all`, and a function "
         "of tensor and axes will do as well.")
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
              "reduce.", rows="M27")
    total = reduce([x, 10 * x], "copy row col -> row col", "sum")  # @inspect total
    assert torch.equal(total, 11 * x), "two tensors, added"


def pooling_is_a_reduction() -> None:
    """Average pooling is a reduction over the inside of each tile."""
    note("A single picture becomes a batch of one with one channel by adding axes of size `1`. "
         "The old way adds them one by one; a pattern writes them where they go.")
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


def heads_share_a_small_matrix() -> None:
    """Split, multiply each head, join: the same as one block-diagonal matrix."""
    note("The patterns combined, on an axis that carries several *heads* side by side. Split the "
         "heads off, transform each by the same small matrix, and join them again.")
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

    note("Write to an element of one copy, and it changes in all of them and in the original. "
         "PyTorch refuses a write to the tensor as a whole, but not this one.")
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


# --- figures for number formats and napkin math


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


def bits_figure(  # @hide
    names: list[str], patterns: list[str], fields: list[tuple[int, int, int]], stored: list[float]
) -> Figure:
    """One row of boxes per format, coloured by field, filled where the bit is one."""
    fig, ax = blank(10, 2.8)
    for row, (name, pattern, widths, value) in enumerate(zip(names, patterns, fields, stored)):
        colors = [c for c, w in zip((RED, GREEN, BLUE), widths) for _ in range(w)]
        for i, (bit, color) in enumerate(zip(pattern, colors)):
            face, ink = (color, "white") if bit == "1" else ("none", GREY)
            ax.bar(i, 0.74, 0.84, bottom=-row - 0.37, facecolor=face, edgecolor=color, lw=1.2)
            ax.text(i, -row, bit, ha="center", va="center", color=ink, fontsize=8)
        ax.text(-1, -row, name, ha="right", va="center", color=GREY)
        ax.text(len(pattern) + 0.2, -row, f"{value:.9g}", va="center", color=GREY)
    for x, field in ((0, "sign"), (4.5, "exponent"), (20, "fraction")):
        ax.text(x, 0.6, field, ha="center", color=GREY)
    ax.set(xlim=(-8, 38), ylim=(-len(patterns) + 0.5, 1.1))
    ax.set_axis_off()
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


if __name__ == "__main__":
    main()
