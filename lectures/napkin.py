"""Napkin math as functions: how long a run takes and costs, what it keeps in memory, what fits, how fast it writes.

The site's calculator computes with these very functions: its script is written from them when the site is built, with
the recipes and limits of this file. Sizes are bytes, times are days, rates are FLOP/s.

A number outside its limits raises `ValueError`: an MFU above 1 is a mistake, not a result.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from units import DAY


@dataclass(frozen=True)
class Recipe:
    """The bytes that training keeps for every parameter, by what they are for."""

    key: str
    name: str
    parameter: int
    gradient: int
    master: int  # a copy of the parameter in float32, beside the narrow one
    state: int   # the optimizer's own

    @property
    def total(self) -> int:
        """Bytes per parameter."""
        return self.parameter + self.gradient + self.master + self.state


RECIPES = (
    Recipe("adamw", "AdamW, float32 throughout", 4, 4, 0, 8),
    Recipe("adamw-mixed", "AdamW, bfloat16, float32 master copy", 2, 2, 4, 8),
    Recipe("adamw-mixed-grad32", "AdamW, bfloat16, float32 master copy and gradients", 2, 4, 4, 8),
    Recipe("adamw-mixed-state16", "AdamW, bfloat16 also for moments, float32 master copy", 2, 2, 4, 4),
    Recipe("adamw-bfloat16-state32", "AdamW, bfloat16, float32 moments, no master copy", 2, 2, 0, 8),
    Recipe("adamw-bfloat16", "AdamW, bfloat16 throughout", 2, 2, 0, 4),
    Recipe("momentum", "SGD with momentum, float32", 4, 4, 0, 4),
    Recipe("sgd", "plain SGD, float32", 4, 4, 0, 0),
)


@dataclass(frozen=True)
class Limit:
    """The smallest and the largest value that an input may have."""

    least: float
    most: float
    whole: bool = False


LIMITS = {
    "parameters": Limit(1, 1e15, whole=True),
    "tokens": Limit(1, 1e18, whole=True),
    "devices": Limit(1, 1e7, whole=True),
    "mfu": Limit(0.0001, 1),
    "bytes": Limit(0.01, 1000),
    "within": Limit(0.001, 1e6),
    "layers": Limit(1, 1e4, whole=True),
    "width": Limit(1, 1e6, whole=True),
    "heads": Limit(1, 1e6, whole=True),
    "kv_heads": Limit(1, 1e6, whole=True),
    "hidden": Limit(1, 1e7, whole=True),
    "vocabulary": Limit(1, 1e8, whole=True),
    "context": Limit(1, 1e9, whole=True),
    "head_size": Limit(1, 1e6, whole=True),
    "experts": Limit(1, 1e5, whole=True),
    "active": Limit(1, 1e5, whole=True),
    "window": Limit(1, 1e9, whole=True),
    "sequences": Limit(1, 1e6, whole=True),
    "reserve": Limit(0, 0.9),
    "price": Limit(0, 1e4),
    "watts": Limit(1, 1e5),
    "serving": Limit(1, 1e5, whole=True),
    "weight": Limit(0, 1000),
    "gradient": Limit(0, 1000),
    "tensor": Limit(1, 1e4, whole=True),
    "stages": Limit(1, 1e4, whole=True),
    "microbatches": Limit(1, 1e6, whole=True),
    "inside": Limit(0.001, 1e6),
    "between": Limit(0.001, 1e6),
}


def checked(name: str, value: float) -> float:
    """The value itself if it lies within the limits of this name; else a ValueError."""
    limit = LIMITS[name]
    if not limit.least <= value <= limit.most:  # NaN is refused here, too
        raise ValueError(f"{name} has to be from {limit.least:g} to {limit.most:g}, not {value!r}")
    if limit.whole and value != math.floor(value):
        raise ValueError(f"{name} has to be a whole number, not {value!r}")
    return value


# --- the formulas


def work(parameters: float, tokens: float) -> float:
    """The FLOPs of training: 6 for each parameter and token, 2 forward and 4 backward."""
    return 6 * checked("parameters", parameters) * checked("tokens", tokens)


def days(
    parameters: float, tokens: float, devices: float, peak: float | None, mfu: float
) -> float | None:
    """Days of training on so many devices, at a share `mfu` of their peak in FLOP/s.

    None where no peak is known: then there is nothing to divide by.
    """
    total = work(parameters, tokens)
    rate = checked("mfu", mfu) * checked("devices", devices)
    return None if peak is None else total / (peak * rate * DAY)


def devices_for(
    parameters: float, tokens: float, within: float, peak: float | None, mfu: float
) -> int | None:
    """The fewest devices that end the training within so many days, at a share `mfu` of the peak.

    None where no peak is known. It is the formula above, solved for the devices.
    """
    total = work(parameters, tokens)
    rate = checked("mfu", mfu) * checked("within", within)
    return None if peak is None else math.ceil(total / (peak * rate * DAY))


def memory_per_device(
    parameters: float, per_parameter: float, devices: float = 1, *, sharded: bool
) -> float:
    """Bytes of parameters, gradients and optimizer state on each device."""
    held = checked("parameters", parameters) * checked("bytes", per_parameter)
    return held / checked("devices", devices) if sharded else held


def largest_model(
    memory: float, per_parameter: float, devices: float = 1, *, sharded: bool
) -> int:
    """The most parameters whose state fits into so many bytes of memory on each device."""
    pool = memory * checked("devices", devices) if sharded else memory
    return math.floor(pool / checked("bytes", per_parameter))


def kept_activations(
    per_token: float, layers: float, width: float, tokens: float, again: float, batches: float = 1
) -> float:
    """Bytes of activations that a step keeps on a device, in all layers.

    `per_token` is what one block keeps of a token. With `again` 1, every block is checkpointed: it keeps its input
    alone, in bfloat16, and is computed again, one block of one batch at a time. With `again` 0 all is kept.
    """
    inputs = batches * 2 * width * layers + per_token
    return tokens * (again * inputs + (1 - again) * batches * layers * per_token)


def softmax_bytes(vocabulary: float, tokens: float) -> float:
    """Bytes of the softmax over the vocabulary for so many tokens, in float32."""
    return 4 * vocabulary * tokens


def most_sequences(memory: float, reserve: float, state: float, sequence: float) -> int:
    """How many sequences fit on a device beside the state, with a share in reserve."""
    return math.floor((memory * (1 - checked("reserve", reserve)) - state) / sequence)


def device_hours(days: float | None, devices: float) -> float | None:
    """Days times devices, in hours: what a run is paid for."""
    return None if days is None else 24 * days * checked("devices", devices)


def decoding_seconds(
    weights: float, flops: float, cache: float, batch: float, bandwidth: float, peak: float
) -> float:
    """Seconds in which a batch of texts gets one token each, at best.

    `weights` and `cache`, of one text, are bytes; `flops` are those of one token; rates are of all devices together.
    """
    return max(weights / bandwidth, batch * flops / peak) + batch * cache / bandwidth


# What follows is counted in lecture 04, in bytes that crossed a wire and steps that ran.


def state_on_rank(
    parameters: float, per_parameter: float, weight: float, gradient: float, zero: int, ranks: float
) -> float:
    """Bytes of weights, gradients and optimizer state on each rank, at a stage of ZeRO from 0 to 3.

    Of `per_parameter` bytes, `weight` and `gradient` are those of both, and the optimizer has the rest. The stage `zero`
    of ZeRO shards the optimizer from 1 on, gradients from 2 on, weights at 3.
    """
    shared = (zero > 0) * (per_parameter - weight - gradient) + (zero > 1) * gradient + (zero > 2) * weight
    return parameters * (per_parameter - shared + shared / ranks)


def sent_for_state(
    parameters: float, weight: float, gradient: float, zero: int, ranks: float, microbatches: float
) -> float:
    """Bytes that a rank sends in a step for gradients and weights.

    Gradients are reduce-scattered. Then these are gathered, or the weights in their place from stage 1 on. Stage 3 gathers
    weights twice for each microbatch instead.
    """
    gathered = gradient + (zero > 0) * (weight - gradient) + (zero > 2) * (2 * microbatches - 1) * weight
    return parameters * (gradient + gathered) * (ranks - 1) / ranks


def sent_for_products(tokens: float, width: float, layers: float, ranks: float) -> float:
    """Bytes that a rank sends in a step for four all-reduces in each layer, in bfloat16."""
    return layers * 4 * (2 * (ranks - 1) / ranks) * (2 * tokens * width)


def sent_to_stages(tokens: float, width: float, stages: float) -> float:
    """Bytes that a stage sends to its neighbours in a step, in bfloat16."""
    return min(stages - 1, 2) * (2 * tokens * width)


def bubble(stages: float, microbatches: float) -> float:
    """The share of a step in which a stage waits, from the counts of stages and microbatches."""
    return (stages - 1) / (microbatches + stages - 1)


def step_seconds(computing: float, products: float, state: float, bubble: float) -> float:
    """Seconds of a step, from seconds of arithmetic, two kinds of traffic, and the bubble."""
    return (computing + products) / (1 - bubble) + max(0, state - computing)
