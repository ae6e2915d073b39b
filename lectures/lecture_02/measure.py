"""What several parts count and measure with."""
import gc
import math
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pickle import UnpicklingError
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from counters import flops, saved_bytes_of
from hardware import CARDS, peak
from timing import one_thread, time_call
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from .models import OPTIMIZERS, Decoder, Stack, linear_batch

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2  # the two formats of one byte


def same_storage(x: Tensor, y: Tensor) -> bool:
    """True if two tensors are views of the same storage, be it of different parts of it."""
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


# What libraries raise when they refuse. A misspelt name raises something
# else, and is not swallowed.
REFUSALS = RuntimeError, TypeError, ValueError, AssertionError, UnpicklingError


def message_of(call: Callable[[], object]) -> str:
    """The error that a call raises, as text; an empty text if it raises none."""
    try:
        call()
    except REFUSALS as error:
        return f"{type(error).__name__}: {error}"
    return ""


@contextmanager
def float32_products(precision: str = "highest") -> Iterator[None]:
    """Inside this block matmuls of float32 have this precision; `high` allows TF32, which rounds their inputs to ten bits of fraction."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def cool_down(seconds: float = 1.0) -> None:
    """Waits until the GPU is idle, and a while longer, so that it is cool again.

    So no format pays for the heat of another.
    """
    torch.cuda.synchronize()
    time.sleep(seconds)


def default_allocator() -> bool:
    """True if PyTorch hands out the GPU's memory as it does by default."""
    names = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"
    set_otherwise = any(os.environ.get(name) for name in names)
    return torch.cuda.get_allocator_backend() == "native" and not set_otherwise


class Reading(NamedTuple):
    """What a GPU's driver says: ticks of its clock in a second, and power in W; None if it does not."""

    clock: float | None
    power: float | None

    def __str__(self) -> str:
        if self.clock is None or self.power is None:
            return "not available"
        return f"{self.clock / 1e6:.0f} MHz, {self.power:.0f} W"


def clock_and_power(call: Callable[[], object], seconds: float) -> Reading:  # @stepover
    """The GPU's clock and power while it repeats a call of so many seconds, as its driver says them."""
    # Handed over ahead, so that it works while the driver is asked.
    for _ in range(math.ceil(1.5 / seconds)):
        call()
    asked = "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"
    card = getattr(torch.cuda.get_device_properties(), "uuid", None)
    try:
        done = subprocess.run(
            ["nvidia-smi", *asked, *([f"--id=GPU-{card}"] if card else [])],
            capture_output=True, text=True, timeout=20, check=True)
        clock, power = (float(number) for number in done.stdout.split(","))
    except (OSError, ValueError, subprocess.SubprocessError):
        return Reading(None, None)
    finally:
        torch.cuda.synchronize()
    return Reading(clock * 1e6, power)


def free_bytes() -> int:
    """The bytes of the GPU's memory that this program can still get."""
    gc.collect()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def scaled(size: int, needed: Callable[[int], int]) -> int:
    """Halves a size until the bytes that it needs fit into the GPU's free memory, and returns it."""
    free = free_bytes()
    while size > 1 and needed(size) > free:
        size //= 2
    return size


def shrunk(size: int, asked: int) -> str:
    """A sentence that says that a size was reduced because the GPU has too little memory; else empty."""
    if size == asked:
        return ""
    return f" This GPU has room for `{size}` only, not for `{asked}`."


def narrow_format() -> torch.dtype:
    """`bfloat16`, or `float16` on a GPU that does not multiply `bfloat16`."""
    modern = torch.cuda.get_device_capability() >= (8, 0)
    return torch.bfloat16 if modern else torch.float16


def adamw_step(parameter: Tensor) -> dict[str, Tensor]:
    """Takes one AdamW step on a random gradient; returns what AdamW keeps for the parameter."""
    parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW([parameter])
    optimizer.step()
    return dict(optimizer.state[parameter])


class Counted:
    """A number that notes each addition, multiplication and comparison in a list, the tally."""

    def __init__(self, value: float, tally: list[str]) -> None:
        self.value, self.tally = value, tally

    def __add__(self, other: "Counted") -> "Counted":
        self.tally.append("+")
        return Counted(self.value + other.value, self.tally)

    def __mul__(self, other: "Counted") -> "Counted":
        self.tally.append("*")
        return Counted(self.value * other.value, self.tally)

    def __lt__(self, other: "Counted") -> bool:
        self.tally.append("<")
        return self.value < other.value


def arithmetic(tally: list[str]) -> int:
    """How many additions and multiplications a tally has."""
    return tally.count("+") + tally.count("*")


def counted(
    tally: list[str], rows: int, cols: int
) -> npt.NDArray[np.object_]:
    """A matrix of random numbers that note their arithmetic in one tally."""
    numbers = [Counted(x, tally) for x in torch.randn(rows * cols).tolist()]
    return np.array(numbers, dtype=object).reshape(rows, cols)


def dense_peak(card: str, dtype: str) -> float:
    """The peak of a GPU for dense matmuls in a number format, in FLOP/s."""
    rate = peak(CARDS[card], dtype)
    if rate is None:
        raise LookupError(f"{card} promises no rate for {dtype}")
    return rate


def utilization(
    work: float, seconds: float, peak_rate: float | None
) -> float | None:
    """FLOPs per second as a share of a peak in FLOP/s; None where no peak is known."""
    return None if peak_rate is None else work / seconds / peak_rate


def as_percent(share: float | None) -> str:
    """A share as text in percent, or the text `not available` for None."""
    return "not available" if share is None else f"{share:.1%}"


def intensity(rows: int, inner: int, cols: int, width: int = 2) -> float:
    """The FLOPs per byte of a matmul whose three matrices move once."""
    numbers = rows * inner + inner * cols + rows * cols
    return 2 * rows * inner * cols / (width * numbers)


class Point(NamedTuple):
    """An operation as a point below the roofline: FLOPs per byte, and FLOP/s."""

    intensity: float  # FLOPs per byte
    rate: float  # FLOP/s


def decoder_flops(
    vocab: int, d: int, heads: int, layers: int,
    context: int, batch: int = 1,
) -> tuple[int, int]:
    """Forward and backward FLOPs of a small language model of this size, as PyTorch counts them."""
    with torch.device("meta"):
        model = Decoder(vocab, d, heads, layers)
        tokens = torch.zeros(batch, context, dtype=torch.int64)
    with FlopCounterMode(display=False) as forward:
        loss = model(tokens).square().mean()
    return int(forward.get_total_flops()), flops(loss.backward)


def error_of(y: Tensor, exact: Tensor) -> float:
    """The size of a tensor's error, divided by the size of the exact result."""
    return float((y - exact).norm() / exact.norm())


def gradient_bytes(model: nn.Module) -> int:
    """The bytes of all gradients that a model holds."""
    gradients = [p.grad for p in model.parameters()]
    return sum(g.nbytes for g in gradients if g is not None)


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """The bytes that an optimizer keeps, without single numbers such as counters."""
    states = optimizer.state.values()
    tensors = [v for s in states for v in s.values() if torch.is_tensor(v)]
    return sum(t.nbytes for t in tensors if t.dim() > 0)


def bill(name: str, width: int, layers: int, batch: int) -> dict[str, int]:
    """The bytes of a training step by kind: parameters, gradients, optimizer state, activations."""
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


def step_flops(batch: int, width: int, layers: int) -> int:
    """The FLOPs of a forward and a backward pass through a stack of layers, as PyTorch counts them."""
    with torch.device("meta"):
        model = Stack(width, layers)
        x, y = torch.empty(batch, width), torch.empty(batch)
    return flops(lambda: F.mse_loss(model(x), y).backward())


def product_seconds(x: Tensor) -> float:  # @stepover
    """The seconds that a matrix times itself takes on one core of the CPU."""
    with one_thread():
        return time_call(lambda: x @ x, repeats=5, patience=9).seconds
