"""A question about a model and its GPUs to an answer: whether it fits, what would, how long, how fast, for what price.

In go the texts of the fields, a `Shape` and a row of the device table; out come a verdict, remarks, and rows, each with
its formula, the numbers put in, and the section that proves it. The terminal and the site's calculator show the same
answer: the site's script is a translation of this file. Formulas are those of `napkin.py`; none is written here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import napkin as nk
from napkin import RECIPES, Recipe, Shape
from napkin_native import get, has, sorted_by
from napkin_text import (
    flop,
    read_number,
    rough,
    seconds,
    share,
    short,
    short_in,
    size,
    things,
    whole_text,
    words,
)

MOST_DEVICES = 10_000_000
SPAN = [0.75, 1.25]  # of the MFU asked for: the span that is shown beside it, 0.3 to 0.5 of 0.4
HOPPER = ["H100 SXM", "H200", "H800 SXM"]  # what the first assumptions on price, MFU and power are of
HOPPER_WATTS = 700


@dataclass(frozen=True)
class Field:
    """A field of the form and an option of the terminal."""

    name: str
    label: str
    hint: str
    kind: str  # of number, a key of `SUFFIXES`; "choice"; "shape" for a number that makes a shape
    defaults: list[str]  # in pretraining, fine-tuning, serving; one where they agree
    jobs: str = "pfs"  # the jobs that ask for it
    first: str = ""  # the jobs that ask for it at once
    least: float = 1
    most: float = 1e9
    whole: bool = True
    choices: list[list[str]] | None = None  # key and words of each choice


CHOICES: dict[str, list[list[str]]] = {
    "job": [["pretrain", "pretrain"], ["finetune", "fine-tune"], ["serve", "serve"]],
    "recompute": [
        ["none", "keep all"],
        ["selective", "recompute norms and elementwise steps"],
        ["full", "recompute whole layers"],
    ],
    "offload": [["no", "on the GPU"], ["yes", "offloaded to host memory"]],
    "zero": [
        ["0", "nothing: data parallelism"],
        ["1", "the optimizer's state (ZeRO 1)"],
        ["2", "gradients also (ZeRO 2)"],
        ["3", "weights also (ZeRO 3, FSDP)"],
    ],
    "format": [
        ["bfloat16", "bfloat16"],
        ["float16", "float16"],
        ["float8", "float8"],
        ["tf32", "TF32"],
        ["float32", "float32"],
    ],
    "precision": [
        ["bfloat16", "bfloat16"],
        ["float8", "8 bits in the layers"],
        ["mxfp4", "4 bits in the layers (MXFP4)"],
        ["mxfp4-experts", "4 bits in the experts (MXFP4)"],
    ],
    "cache": [["2", "16 bits"], ["1", "8 bits"]],
}
RECIPE_CHOICES = [[r.key, r.name] for r in RECIPES]

FIELDS = [
    Field("devices", "GPUs", "how many", "count", ["1024", "8", "1"], "pfs", "pfs", 1, MOST_DEVICES),
    Field(
        "tokens", "Training tokens", "such as 15T or 200M", "count", ["15T", "200M", "1"], "pf", "pf", 1, 1e18
    ),
    Field(
        "context",
        "Tokens of a sequence",
        "the context; 8k is 8,192",
        "length",
        ["8192", "8192", "1"],
        "pf",
        "pf",
        1,
        1e9,
    ),
    Field(
        "recipe",
        "Recipe",
        "dtypes and optimizer",
        "choice",
        ["adamw-mixed"],
        "pf",
        "pf",
        choices=RECIPE_CHOICES,
    ),
    Field(
        "recompute",
        "Activations",
        "kept for the backward pass, or computed again",
        "choice",
        ["full"],
        "pf",
        "pf",
        choices=CHOICES["recompute"],
    ),
    Field(
        "precision",
        "Weights",
        "their format in memory",
        "choice",
        ["bfloat16"],
        "s",
        "s",
        choices=CHOICES["precision"],
    ),
    Field("users", "Concurrent requests", "users at the same time", "count", ["16"], "s", "s", 1, 1e7),
    Field(
        "prompt", "Tokens of a prompt", "of each request; 2k is 2,048", "length", ["2048"], "s", "s", 1, 1e8
    ),
    Field("output", "Tokens of the output", "of each request", "length", ["512"], "s", "s", 1, 1e8),
    Field(
        "parameters",
        "Parameters",
        "empty: those of the shape; a number of your own overrides them",
        "count",
        [""],
        "pfs",
        "",
        1,
        1e15,
    ),
    Field(
        "mfu",
        "MFU",
        "of a run that recomputes nothing; Llama 3 reached 0.38 to 0.43 on H100s",
        "share",
        ["0.4"],
        "pfs",
        "",
        0.0001,
        1,
        False,
    ),
    Field(
        "format",
        "Format of the matmuls",
        "sets the peak",
        "choice",
        ["bfloat16"],
        "pf",
        choices=CHOICES["format"],
    ),
    Field(
        "reserve",
        "Memory kept free",
        "for buffers, fragments and the driver: an assumption",
        "share",
        ["10 %"],
        "pfs",
        "",
        0,
        0.9,
        False,
    ),
    Field("sequences", "Sequences on each GPU", "of a microbatch", "count", ["1"], "pf", "", 1, 1e6),
    Field(
        "offload",
        "State of the optimizer",
        "and the master copy",
        "choice",
        ["no"],
        "pf",
        choices=CHOICES["offload"],
    ),
    Field("rank", "Rank of the adapters", "of LoRA and QLoRA", "count", ["16"], "f", "", 1, 1e5),
    Field(
        "zero",
        "What data parallelism shards",
        "among the GPUs that hold copies",
        "choice",
        ["3"],
        "pf",
        choices=CHOICES["zero"],
    ),
    Field("tensor", "Ranks of tensor parallelism", "share each matmul", "count", ["1"], "pf", "", 1, 1e4),
    Field(
        "stages", "Stages of the pipeline", "each has some of the layers", "count", ["1"], "pf", "", 1, 1e4
    ),
    Field(
        "microbatches",
        "Microbatches in a step",
        "their gradients add up; offloaded state waits once a step",
        "count",
        ["1"],
        "pf",
        "",
        1,
        1e6,
    ),
    Field(
        "within",
        "Done within, in days",
        "asks the other way round: how many GPUs?",
        "days",
        ["30", "1", "1"],
        "pf",
        "",
        0.001,
        1e6,
        False,
    ),
    Field(
        "cache", "Elements of the KV cache", "their format", "choice", ["2"], "s", choices=CHOICES["cache"]
    ),
    Field(
        "limit",
        "Limit of TPOT, in ms",
        "the longest wait for a token",
        "ms",
        ["50"],
        "s",
        "",
        0.01,
        1e6,
        False,
    ),
    Field(
        "price", "Price of a GPU-hour, in $", "an example", "money", ["2"], "pfs", "", 0, 1e4, False
    ),
    Field(
        "watts",
        "Power of a GPU, in watts",
        "empty: 700 for H100, H200 and H800 SXM; type it for others",
        "watts",
        [""],
        "pf",
        "",
        1,
        1e5,
        False,
    ),
    Field("node", "GPUs in a node", "whole nodes are what one rents", "count", ["8"], "pf", "", 1, 1e4),
    Field(
        "inside",
        "Link in a node, in GB/s",
        "one direction; 450: NVLink of an H100 SXM",
        "link",
        ["450"],
        "pfs",
        "",
        0.001,
        1e6,
        False,
    ),
    Field(
        "between",
        "Link between nodes, in GB/s",
        "one direction, for each GPU; 50: 400 Gbit/s",
        "link",
        ["50"],
        "pf",
        "",
        0.001,
        1e6,
        False,
    ),
    Field(
        "host",
        "Link to the host, in GB/s",
        "one direction, for offloaded state",
        "link",
        ["50"],
        "pf",
        "",
        0.001,
        1e6,
        False,
    ),
    Field(
        "ram",
        "Memory of a host, in GB/s",
        "its bandwidth, for offloaded state: an assumption",
        "link",
        ["300"],
        "pf",
        "",
        0.001,
        1e6,
        False,
    ),
]


@dataclass(frozen=True)
class Question:
    """What the fields say; numbers are floats, and sizes have the units of their fields."""

    job: str = "pretrain"
    devices: float = 1
    tokens: float = 1
    context: float = 1
    recipe: str = "adamw-mixed"
    recompute: str = "full"
    precision: str = "bfloat16"
    users: float = 1
    prompt: float = 1
    output: float = 1
    parameters: float = 0  # 0: those of the shape
    mfu: float = 0.4
    format: str = "bfloat16"
    reserve: float = 0.1
    sequences: float = 1
    offload: str = "no"
    rank: float = 16
    zero: str = "3"
    tensor: float = 1
    stages: float = 1
    microbatches: float = 1
    within: float = 30
    cache: str = "2"
    limit: float = 50
    price: float = 2
    watts: float = 0  # 0: what the device may draw, where that is known
    node: float = 8
    inside: float = 450
    between: float = 50
    host: float = 50
    ram: float = 300


@dataclass(frozen=True)
class Device:
    """A row of the device table: memory in bytes, bandwidth in bytes per second, peaks in FLOP/s by format."""

    name: str
    memory: float
    bandwidth: float
    peaks: dict[str, float | None]


@dataclass(frozen=True)
class Asked:
    """A question that can be answered, or what is wrong with it, by field."""

    question: Question
    wrong: dict[str, str]


@dataclass(frozen=True)
class Row:
    """One result: its number, its words, its formula with the numbers put in, and the section that proves it."""

    part: str  # "fit", "run", "traffic", "serve" or "model"
    key: str
    name: str
    value: float
    text: str
    remark: str
    formula: str
    section: str  # a key of SECTIONS
    bound: str = ""  # "upper bound", "lower bound", or an estimate


@dataclass(frozen=True)
class Offer:
    """A change after which it fits: what it costs and gives up, and the fields to change. `OFFER_HEADS` names the cells."""

    cells: list[str]
    fields: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """The verdict, what would fit, what to mind, and all rows."""

    fits: bool
    title: str
    text: str
    heads: list[str]  # of the table of changes
    changes: list[Offer]
    warnings: list[str]
    rows: list[Row]


@dataclass(frozen=True)
class Plan:
    """What training keeps on each device, in bytes, and how long it takes, in seconds."""

    state: float
    activations: float
    logits: float
    need: float
    room: float
    host: float  # bytes in the memory of the hosts, in all
    seconds: float
    waiting: float  # of these, for what is offloaded


MOST_OFFERS = 5
OFFER_HEADS = {
    "train": ["It would fit with", "takes about", "costs", "on each GPU", "but"],
    "serve": ["It would fit with", "TPOT at least", "a million tokens, at least", "requests that fit", "but"],
}

# --- from texts to a question


def default_of(field: Field, job: str) -> str:
    """What a field says until someone types."""
    place = 0 if job == "pretrain" else 1 if job == "finetune" else 2
    return field.defaults[place] if len(field.defaults) > 1 else field.defaults[0]


def asks(field: Field, job: str) -> bool:
    """Whether a job asks for this field."""
    return has(field.jobs, job[0])


def wrong_number(field: Field, text: str, value: float) -> str:
    """What is wrong with a number in a field; empty where nothing is."""
    if field.name == "mfu" and value > 1:
        percent = f" For {short(value)} percent write {short(value / 100)}." if value <= 100 else ""
        return f"MFU cannot exceed 1: nothing does more than its peak.{percent}"
    if value < field.least:
        return f"“{text.strip()[0:24]}” is too small: at least {short(field.least)}."
    if value > field.most:
        return f"“{text.strip()[0:24]}” is too large: at most {words(field.most)}."
    if field.whole and value != math.floor(value):
        return f"“{text.strip()[0:24]}” is not a whole number."
    return ""


def read_question(texts: dict[str, str]) -> Asked:
    """The question that the texts of the fields say; a field that is not there has its default."""
    wrong: dict[str, str] = {}
    values: dict[str, Any] = {}
    job = get(texts, "job", "pretrain")
    if not has(["pretrain", "finetune", "serve"], job):
        return Asked(Question(), {"job": f"“{job[0:24]}” is no job: pretrain, finetune or serve."})
    values["job"] = job
    for field in FIELDS:
        if not asks(field, job):
            continue
        text = get(texts, field.name, default_of(field, job))
        if field.choices is not None:
            known = [choice[0] for choice in field.choices]
            if has(known, text):
                values[field.name] = text
            else:
                wrong[field.name] = f"“{text[0:24]}” is not one of {', '.join(known)}."
        elif text.strip() != "" or default_of(field, job) != "":
            example = default_of(field, job)
            if example == "":
                example = "700" if field.name == "watts" else "32B"
            read = read_number(text, field.kind, example)
            problem = read.wrong if read.wrong != "" else wrong_number(field, text, read.value)
            if problem != "":
                wrong[field.name] = problem
            else:
                values[field.name] = read.value
    return Asked(Question(**values), wrong)


def recipe_of(q: Question) -> Recipe:
    """The recipe that is asked for."""
    for recipe in RECIPES:
        if recipe.key == q.recipe:
            return recipe
    return RECIPES[0]


def recipe_bytes(recipe: Recipe) -> int:
    """Bytes of each trained parameter."""
    return recipe.parameter + recipe.gradient + recipe.master + recipe.state


def divides(s: Shape, ranks: float) -> str:
    """Why a layer cannot be divided among so many ranks; empty where it can."""
    if s.heads % ranks != 0:
        return f"{s.heads} query heads do not divide among {words(ranks)}."
    if s.kv_rank == 0 and s.kv_heads % ranks != 0 and ranks % s.kv_heads != 0:
        return f"{s.kv_heads} KV heads do not divide among {words(ranks)}."
    if (s.dense_layers > 0 or s.experts == 1) and s.hidden % ranks != 0:
        return f"An FFN of {s.hidden} does not divide among {words(ranks)}."
    if s.experts > 1 and s.expert_hidden % ranks != 0:
        return f"An expert's FFN of {s.expert_hidden} does not divide among {words(ranks)}."
    return ""


def peak_of(q: Question, device: Device) -> float:
    """The peak in FLOP/s that the question's matmuls have on a device; 0 where it has no unit for them."""
    if q.job != "serve":
        return get(device.peaks, q.format, 0)  # type: ignore[no-any-return]
    usual = get(device.peaks, "bfloat16", get(device.peaks, "float16", 0))
    return get(device.peaks, "float8", usual) if q.precision == "float8" else usual  # type: ignore[no-any-return]


def check(q: Question, s: Shape, device: Device) -> dict[str, str]:
    """What cannot exist, by the field that says it."""
    wrong: dict[str, str] = {}
    if q.job == "serve":
        problem = divides(s, q.devices)
        if problem != "":
            wrong["devices"] = problem
        if q.precision == "mxfp4-experts" and s.experts == 1:
            wrong["precision"] = "This model has no experts."
        return wrong
    problem = divides(s, q.tensor)
    if problem != "":
        wrong["tensor"] = problem
    if s.layers % q.stages != 0:
        wrong["stages"] = f"{s.layers} layers do not divide among {words(q.stages)}."
    elif q.devices % (q.tensor * q.stages) != 0:
        wrong["devices"] = (
            f"It has to be a multiple of {words(q.tensor * q.stages)}: tensor ranks times stages."
        )
    if peak_of(q, device) == 0:
        wrong["format"] = f"The {device.name} has no unit for {q.format}, so there is no peak to count with."
    if q.job == "pretrain" and recipe_of(q).frozen > 0:
        wrong["recipe"] = "Adapters need a trained model: choose fine-tune."
    return wrong


# --- training


def weight_scale(q: Question, s: Shape) -> float:
    """Parameters asked for, by those of the shape; 1 where none are typed."""
    return q.parameters / nk.parameter_count(s) if q.parameters > 0 else 1


def trained_parameters(q: Question, s: Shape) -> float:
    """Parameters that training changes."""
    if recipe_of(q).frozen > 0:
        return nk.adapter_parameters(s, int(q.rank))
    return q.parameters if q.parameters > 0 else nk.parameter_count(s)


def flops_per_token(q: Question, s: Shape) -> float:
    """FLOPs that the model needs for a token of training."""
    adapters = nk.adapter_parameters(s, int(q.rank)) if recipe_of(q).frozen > 0 else 0
    attention = nk.training_flops(s, q.context, adapters) - nk.training_flops(s, 0, adapters)
    return nk.training_flops(s, 0, adapters) * weight_scale(q, s) + attention


def executed_flops(q: Question, s: Shape) -> float:
    """FLOPs that the devices do for a token of training, what is recomputed included."""
    return flops_per_token(q, s) + nk.recomputed_flops(s, q.context, q.recompute) * weight_scale(q, s)


def step_tokens(q: Question) -> float:
    """Tokens in a step of all devices."""
    return q.devices / (q.tensor * q.stages) * q.microbatches * q.sequences * q.context


def offloaded(q: Question) -> bool:
    """Whether the optimizer's state is in the memory of the hosts."""
    return q.offload == "yes"


def state_bytes(q: Question, s: Shape) -> float:
    """Bytes of weights, gradients and optimizer state on each device."""
    recipe, share_of, zero = recipe_of(q), q.tensor * q.stages, int(q.zero)
    ranks = q.devices / share_of
    per = recipe.parameter + recipe.gradient if offloaded(q) else recipe_bytes(recipe)
    state = nk.state_on_rank(
        trained_parameters(q, s) / share_of, per, recipe.parameter, recipe.gradient, zero, ranks
    )
    if recipe.frozen > 0:
        state += (
            nk.frozen_bytes(s, recipe.frozen) * weight_scale(q, s) / share_of / (ranks if zero == 3 else 1)
        )
    return state


def gathered_bytes(q: Question, s: Shape) -> float:
    """Bytes of the weights that stage 3 gathers at once."""
    recipe, share_of = recipe_of(q), q.tensor * q.stages
    if q.zero != "3" or q.devices == share_of:
        return 0
    width = recipe.frozen if recipe.frozen > 0 else min(recipe.parameter, 2)
    return nk.gathered_parameters(s) * width / q.tensor


def unfused_bytes(q: Question, s: Shape) -> float:
    """Bytes that a loss which is not fused holds on each device beside the softmax.

    16-bit logits, and gradients in both formats: 2 + 2 + 4 bytes of each logit, twice those of the softmax.
    """
    return 2 * nk.logits_bytes(s.vocabulary, q.sequences * q.context) / q.tensor


def plan_of(q: Question, s: Shape, device: Device) -> Plan:
    """What each device keeps, and how long training takes."""
    tokens = q.sequences * q.context
    state = state_bytes(q, s)
    activations = (
        nk.activation_bytes(s, tokens, q.recompute, q.stages, min(q.microbatches, q.stages)) / q.tensor
    )
    logits = nk.logits_bytes(s.vocabulary, tokens) / q.tensor
    peak = peak_of(q, device)
    recipe, trained = recipe_of(q), trained_parameters(q, s)
    waiting = 0.0
    if offloaded(q):
        update = nk.offload_seconds(
            trained, recipe, q.devices, q.host * 1e9, math.ceil(q.devices / q.node), q.ram * 1e9
        )
        waiting = update * (q.tokens / step_tokens(q))
    host = (recipe.master + recipe.state) * trained if offloaded(q) else 0
    time = 0 if peak == 0 else nk.training_seconds(executed_flops(q, s) * q.tokens, q.devices, peak, q.mfu)
    return Plan(
        state,
        activations,
        logits,
        state + activations + logits,
        nk.room(device.memory, q.reserve, gathered_bytes(q, s)),
        host,
        time + waiting,
        waiting,
    )


def fits(q: Question, s: Shape, device: Device) -> bool:
    """Whether what each device keeps has room: the book's one rule."""
    if q.job == "serve":
        return divides(s, q.devices) == "" and sequences_that_fit(q, s, device) >= q.users
    plan = plan_of(q, s, device)
    return plan.need <= plan.room


def first_that_fits(q: Question, s: Shape, device: Device) -> float:
    """The least number of devices that holds what is asked; 0 where none does."""
    if q.job == "serve":
        for count in range(1, s.heads + 1):
            if fits(replace(q, devices=float(count)), s, device):
                return count
        return 0
    unit = q.tensor * q.stages
    return unit * least_count(lambda n: fits(replace(q, devices=n * unit), s, device), MOST_DEVICES / unit)


def least_count(enough: Callable[[float], bool], most: float) -> float:
    """The least whole number that is enough, where each larger one is enough, too; 0 where none up to `most` is."""
    high = 1.0
    while not enough(high):
        high = high * 2
        if high > most:
            return 0
    low = math.floor(high / 2)  # that many are not enough, or are none
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        if enough(float(middle)):
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True)
class Change:
    """A question with something changed, in words, whether it trains in the same way, and what it gives up."""

    words: str
    question: Question
    same: bool
    loss: str = ""


def memory_changes(q: Question, s: Shape) -> list[Change]:
    """What one may change that leaves the results of training the same, but for rounding."""
    changes: list[Change] = []
    if q.recompute == "none":
        changes.append(
            Change(
                "recompute norms and elementwise steps",
                replace(q, recompute="selective"),
                True,
                "computes these twice",
            )
        )
    if q.recompute != "full":
        changes.append(
            Change("recompute whole layers", replace(q, recompute="full"), True, "computes layers twice")
        )
    if not offloaded(q):
        changes.append(
            Change("offload the optimizer's state to host memory", replace(q, offload="yes"), True)
        )
    if q.zero != "3":
        changes.append(
            Change(
                "shard weights, gradients and state (ZeRO 3, FSDP)",
                replace(q, zero="3"),
                True,
                "sends weights for each microbatch",
            )
        )
    if q.sequences > 1:
        changes.append(
            Change("one sequence on each GPU", replace(q, sequences=1.0), True, "has smaller matmuls")
        )
    for ranks in [2.0, 4.0, 8.0]:
        if ranks > q.tensor and q.devices % (ranks * q.stages) == 0 and divides(s, ranks) == "":
            changes.append(
                Change(
                    f"tensor parallelism over {words(ranks)} GPUs",
                    replace(q, tensor=ranks),
                    True,
                    "sends activations in each layer",
                )
            )
    return changes


def recipe_changes(q: Question) -> list[Change]:
    """Other recipes and shorter sequences: these train differently."""
    changes: list[Change] = []
    for recipe in RECIPES:
        adapters = recipe.frozen > 0
        smaller = (
            recipe_bytes(recipe) < recipe_bytes(recipe_of(q))
            and recipe.parameter == 2
            and recipe.warning == ""
        )
        if adapters and q.job == "finetune" and recipe_of(q).frozen == 0:
            loss = "trains adapters alone, beside frozen weights"
            loss = f"{loss} of 4 bits (dequantizing these is not counted)" if recipe.key == "qlora" else loss
            lean = replace(q, recipe=recipe.key, offload="no")
            changes.append(Change(recipe.name, lean, False, loss))
            if q.recompute == "full":  # what adapters leave free may keep what would be computed twice
                less = replace(lean, recompute="selective")
                changes.append(Change(f"{recipe.name}; recompute norms and elementwise steps alone", less, False, loss))
        elif smaller and not adapters and recipe_of(q).frozen == 0:
            loss = (
                "trains with another optimizer"
                if has(["adafactor", "muon"], recipe.key)
                else "rounds more of what training keeps"
            )
            changes.append(Change(recipe.name, replace(q, recipe=recipe.key), False, loss))
        elif recipe.key == "qlora" and q.recipe == "lora":
            changes.append(
                Change(
                    recipe.name,
                    replace(q, recipe="qlora"),
                    False,
                    "rounds the frozen weights to 4 bits (dequantizing these is not counted)",
                )
            )
    if q.context >= 2048:
        half = math.floor(q.context / 2)
        changes.append(
            Change(
                f"sequences of {whole_text(half)} tokens",
                replace(q, context=float(half)),
                False,
                "sees half of the context",
            )
        )
    return changes


def serving_changes(q: Question, s: Shape, device: Device) -> list[Change]:
    """What one may change in serving."""
    changes: list[Change] = []
    if q.precision == "bfloat16":
        changes.append(
            Change("weights of 8 bits in the layers", replace(q, precision="float8"), False, "rounds weights")
        )
    if q.precision == "bfloat16" or q.precision == "float8":
        changes.append(
            Change("weights of 4 bits in the layers", replace(q, precision="mxfp4"), False, "rounds weights")
        )
    if q.cache == "2":
        changes.append(Change("a KV cache of 8 bits", replace(q, cache="1"), False, "rounds keys and values"))
    most = sequences_that_fit(q, s, device)
    if most >= 1 and most < q.users:
        changes.append(
            Change(
                f"{things(most, 'request')} at the same time, and the others wait",
                replace(q, users=float(most)),
                True,
                "lets requests wait",
            )
        )
    return changes


def more_changes(q: Question, s: Shape, device: Device) -> list[Change]:
    """Every single change."""
    if q.job == "serve":
        return serving_changes(q, s, device)
    return [*memory_changes(q, s), *recipe_changes(q)]


def same_question(one: Question, other: Question) -> bool:
    """Whether two questions ask the same."""
    for field in FIELDS:
        if vars(one)[field.name] != vars(other)[field.name]:
            return False
    return True


def in_whole_nodes(first: float, q: Question, s: Shape, device: Device) -> float:
    """`first` devices, rounded up to whole nodes; 0 where they lie in one node, or where so many cannot be or do not fit."""
    whole = math.ceil(first / q.node) * q.node
    if first <= q.node or whole % (q.tensor * q.stages) != 0:
        return 0
    return whole if fits(replace(q, devices=float(whole)), s, device) else 0


def more_devices(q: Question, s: Shape, device: Device) -> list[Change]:
    """The first number of devices that fits, in whole nodes where these fit; none where no number does."""
    first = first_that_fits(q, s, device)
    if first == 0:
        return []
    count = max(first, in_whole_nodes(first, q, s, device))
    loss = f"rents {words(count - q.devices)} more"
    if q.job != "serve":
        loss = f"{loss}, and a step has more tokens"
    return [Change(f"{words(count)} GPUs", replace(q, devices=float(count)), True, loss)]


def cost_of(change: Change, s: Shape, device: Device) -> float:
    """By what a change is judged, in the order of prices: the seconds of all GPUs, of training or of a token."""
    q = change.question
    if q.job == "serve":
        return busy_step(q, s, device, q.users) / q.users * q.devices
    return plan_of(q, s, device).seconds * q.devices


def cheapest_changes(q: Question, s: Shape, device: Device) -> list[Change]:
    """At most `MOST_OFFERS` changes after which it fits, cheapest first.

    Among them are more GPUs, and the cheapest of those that leave the training as it is. One step each where that is enough,
    else two.
    """
    first = more_changes(q, s, device)
    found = [c for c in first if fits(c.question, s, device)]
    if len(found) == 0:
        for one in first:
            for two in more_changes(one.question, s, device):
                known = [
                    c for c in found if same_question(c.question, two.question)
                ]  # the same two in the other order
                if len(known) == 0 and fits(two.question, s, device):
                    loss = (
                        f"{one.loss} and {two.loss}"
                        if one.loss != "" and two.loss != ""
                        else one.loss + two.loss
                    )
                    found.append(
                        Change(f"{one.words}, and {two.words}", two.question, one.same and two.same, loss)
                    )
    ranked = sorted_by(found, lambda c: cost_of(c, s, device))
    same = [c for c in ranked if c.same]
    kept = [*more_devices(q, s, device), *same[0:1]]
    for change in ranked:
        known = [c for c in kept if same_question(c.question, change.question)]
        if len(kept) < MOST_OFFERS and len(known) == 0:
            kept.append(change)
    return sorted_by(kept, lambda c: cost_of(c, s, device))


# --- serving


def sequence_bytes(q: Question, s: Shape) -> float:
    """Bytes of the KV cache of one request at its end, on all GPUs together."""
    return nk.cache_bytes(s, q.prompt + q.output, int(q.cache)) * nk.cache_copies(s, q.devices)


def sequences_that_fit(q: Question, s: Shape, device: Device) -> float:
    """Requests whose caches have room beside the weights; below 0 where the weights have none."""
    room = nk.room(device.memory, q.reserve, 0) * q.devices
    left = room - nk.weight_bytes(s, q.precision) * weight_scale(q, s)
    return -1 if left < 0 else math.floor(left / sequence_bytes(q, s))


def middle_bytes(q: Question, s: Shape) -> float:
    """Bytes of the KV cache of one request with half of its output behind it, on all GPUs together."""
    return nk.cache_bytes(s, q.prompt + q.output / 2, int(q.cache)) * nk.cache_copies(s, q.devices)


def weights_of_step(q: Question, s: Shape, batch: float) -> float:
    """Bytes of weights that a step of so many tokens reads, on all GPUs together."""
    return nk.weights_read(s, q.precision, batch) * weight_scale(q, s)


def flops_of_token(q: Question, s: Shape) -> float:
    """FLOPs to decode one token, half of the output behind it."""
    weights = nk.decoding_flops(s, 0)
    return weights * weight_scale(q, s) + nk.decoding_flops(s, q.prompt + q.output / 2) - weights


def step_of(q: Question, s: Shape, device: Device, batch: float, chunk: float = 0) -> float:
    """Least seconds of a step that gives each of `batch` requests a token, half of the output behind it.

    The step also prefills `chunk` tokens of each request's prompt.
    """
    flops = flops_of_token(q, s) + nk.prefill_flops(s, q.prompt) * weight_scale(q, s) * chunk / q.prompt
    step = nk.decoding_seconds(
        weights_of_step(q, s, batch),
        flops,
        middle_bytes(q, s),
        batch,
        q.devices * device.bandwidth,
        q.devices * peak_of(q, device),
    )
    return step + nk.all_reduce_seconds(s, batch * (1 + chunk), q.devices, q.inside * 1e9)


def busy_step(q: Question, s: Shape, device: Device, batch: float) -> float:
    """Least seconds of a step when prompts of later requests share the steps, in chunks: what throughput and price follow from."""
    return step_of(q, s, device, batch, q.prompt / q.output)


def pace(q: Question, s: Shape, device: Device, batch: float, latency: float, count: int) -> list[str]:
    """TPOT, tokens/s of each request, and of all, with so many seconds of latency in a step, in so many digits."""
    step, busy = step_of(q, s, device, batch) + latency, busy_step(q, s, device, batch) + latency
    return [seconds(step, count), short_in(1 / step, count), short_in(batch / busy, count)]


def prefill_of(q: Question, s: Shape, device: Device) -> float:
    """Least seconds to prefill the prompt of one request."""
    flops = nk.prefill_flops(s, q.prompt) * weight_scale(q, s)
    computing = flops / (q.devices * peak_of(q, device))
    reading = weights_of_step(q, s, q.prompt) / (q.devices * device.bandwidth)
    return max(computing, reading) + nk.all_reduce_seconds(s, q.prompt, q.devices, q.inside * 1e9)


def batch_at_limit(q: Question, s: Shape, device: Device, latency: float = 0) -> float:
    """The most requests in a step that keeps the limit of TPOT and fits; 0 where one alone does not."""
    most, limit = sequences_that_fit(q, s, device), q.limit / 1000 - latency
    if most < 1 or step_of(q, s, device, 1) > limit:
        return 0
    low, high = 1.0, most + 1.0
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        if step_of(q, s, device, middle) <= limit:
            low = middle
        else:
            high = middle
    return low


# --- answers


def model_rows(q: Question, s: Shape) -> list[Row]:
    """What the model is, whatever it is used for."""
    count, active = nk.parameter_count(s), nk.active_parameters(s)
    of_all = (
        f"{share(active / count)} of all" if s.experts > 1 else "without the embedding, which is looked up"
    )
    if s.tied and s.experts == 1:
        of_all = "the embedding is the head as well"
    cached = (
        "one latent for all heads"
        if s.kv_rank > 0
        else f"2 × {s.layers} layers × {s.kv_heads} KV heads × {s.head_size} × 2 B"
    )
    if s.windowed_layers > 0:
        cached += f"; {s.windowed_layers} of {s.layers} layers keep {words(s.window)} tokens"
    forward = nk.forward_flops(s, q.context if q.job != "serve" else q.prompt)
    return [
        Row(
            "model",
            "parameters",
            "Parameters of the shape",
            count,
            whole_text(count),
            words(count),
            f"{s.layers} layers, and {whole_text(nk.table_parameters(s))} in tables",
            "parameters",
        ),
        Row(
            "model",
            "active",
            "Active parameters per token",
            active,
            whole_text(active),
            of_all,
            "the weights that a token is multiplied by",
            "experts",
        ),
        Row(
            "model",
            "forward",
            "FLOPs per token, forward",
            forward,
            flop(forward),
            "with attention over the whole context",
            f"2 × {words(active)} + {flop(forward - 2 * active)} of attention",
            "flops",
        ),
        Row(
            "model",
            "cache",
            "KV cache of a token",
            nk.cache_bytes(s, 1, 2),
            size(nk.cache_bytes(s, 1, 2)),
            cached,
            f"{size(nk.cache_bytes(s, 1, 2) / s.layers)} in each of {s.layers} layers, 16 bits",
            "latent" if s.kv_rank > 0 else "cache",
        ),
    ]


def divided(text: str, ranks: float) -> str:
    """A term, divided among ranks."""
    return f"{text} ÷ {words(ranks)}" if ranks > 1 else text


def state_formula(q: Question, s: Shape) -> str:
    """`state_bytes` with the numbers put in."""
    recipe, share_of, zero = recipe_of(q), q.tensor * q.stages, int(q.zero)
    ranks = q.devices / share_of
    per = recipe.parameter + recipe.gradient if offloaded(q) else recipe_bytes(recipe)
    shared = 2 * (per - nk.state_on_rank(1, per, recipe.parameter, recipe.gradient, zero, 2))
    kept, each, among = per - shared, f"{per} B", share_of
    if kept == 0:
        among = q.devices
    elif kept < per and ranks > 1:
        each = f"({short(kept)} + {short(shared)} ÷ {words(ranks)}) B"
    text = divided(f"{words(trained_parameters(q, s))} × {each}", among)
    if recipe.frozen > 0:
        frozen = divided(
            size(nk.frozen_bytes(s, recipe.frozen) * weight_scale(q, s)), q.devices if zero == 3 else share_of
        )
        text = f"{frozen} of frozen weights + {text}"
    return text


def fit_rows(q: Question, s: Shape, device: Device, plan: Plan) -> list[Row]:
    """What each device keeps in training."""
    recipe, trained = recipe_of(q), trained_parameters(q, s)
    ranks = q.devices / (q.tensor * q.stages)
    kept = (
        "all"
        if q.recompute == "none"
        else "inputs of layers"
        if q.recompute == "full"
        else "results of matmuls"
    )
    among = f"ZeRO {q.zero} among {things(ranks, 'rank')}" if q.zero != "0" else "whole on each rank"
    if q.tensor * q.stages > 1:
        among += f", each of {words(q.tensor * q.stages)} GPUs"
    if offloaded(q):
        among += f"; {recipe.master + recipe.state} B of each parameter are in host memory"
    gathered = gathered_bytes(q, s)
    unfused = unfused_bytes(q, s)
    free = (
        "weights that are gathered at once"
        if gathered > device.memory * q.reserve
        else "for buffers and fragments"
    )
    rows = [
        Row(
            "fit",
            "need",
            "Memory needed on each GPU",
            plan.need,
            size(plan.need),
            f"of {size(plan.room)}",
            f"{size(plan.state)} + {size(plan.activations)} + {size(plan.logits)}",
            "fit",
        ),
        Row(
            "fit",
            "state",
            "Weights, gradients, optimizer",
            plan.state,
            size(plan.state),
            among,
            state_formula(q, s),
            recipe.section,
        ),
        Row(
            "fit",
            "activations",
            "Activations",
            plan.activations,
            size(plan.activations),
            f"kept: {kept}",
            f"{words(q.sequences)} × {words(q.context)} tokens, {s.layers} layers of width {s.width}",
            "recompute" if q.recompute == "full" else "activations",
        ),
        Row(
            "fit",
            "logits",
            "Softmax of the logits",
            plan.logits,
            size(plan.logits),
            f"one copy in float32; a loss that is not fused holds {size(unfused)} more",
            divided(f"4 B × {words(s.vocabulary)} × {words(q.sequences * q.context)} tokens", q.tensor),
            "logits",
        ),
        Row(
            "fit",
            "free",
            "Kept free",
            device.memory - plan.room,
            size(device.memory - plan.room),
            free,
            f"{share(q.reserve)} of {size(device.memory)}, or {size(gathered)} of gathered weights",
            "fit",
        ),
    ]
    if offloaded(q):
        rows.append(
            Row(
                "fit",
                "host",
                "In host memory, in all",
                plan.host,
                size(plan.host),
                "of all nodes together",
                f"{recipe.master + recipe.state} B × {words(trained)}",
                "state",
            )
        )
    return rows


def power_of(q: Question, device: Device) -> float:
    """The watts of a device: those that are typed, or 700; 0 where neither is known."""
    return q.watts if q.watts > 0 else HOPPER_WATTS if has(HOPPER, device.name) else 0


def run_rows(q: Question, s: Shape, device: Device, plan: Plan) -> list[Row]:
    """How long training takes, and what it is paid for."""
    peak, needed, executed = peak_of(q, device), flops_per_token(q, s), executed_flops(q, s)
    hours = plan.seconds * q.devices / 3600
    work = executed * q.tokens
    slow, fast = q.mfu * SPAN[0], min(q.mfu * SPAN[1], 1)
    low = nk.training_seconds(work, q.devices, peak, slow) + plan.waiting
    high = nk.training_seconds(work, q.devices, peak, fast) + plan.waiting
    by = first_in_time(q, s, device)
    adapters = nk.adapter_parameters(s, int(q.rank)) if recipe_of(q).frozen > 0 else 0
    attention = nk.training_flops(s, q.context, adapters) - nk.training_flops(s, 0, adapters)
    factor = 4 if adapters > 0 else 6
    active = nk.active_parameters(s) * weight_scale(q, s)
    more = f" + 6 × {words(adapters)}" if adapters > 0 else ""
    waits = f", {seconds(plan.waiting)} of it for offloaded state" if plan.waiting > 0 else ""
    offload = f" + {seconds(plan.waiting)}" if plan.waiting > 0 else ""
    again = executed - needed
    mfu = q.mfu * needed / executed
    watts = power_of(q, device)
    rows = [
        Row(
            "run",
            "time",
            "Training time",
            plan.seconds,
            seconds(plan.seconds),
            f"{seconds(high, 2)} to {seconds(low, 2)} at {short(fast)} to {short(slow)} of the peak{waits}",
            f"{words(q.tokens)} tokens × {flop(executed)} ÷ ({words(q.devices)} × {flop(peak)}/s × {short(q.mfu)}){offload}",
            "days",
            "estimate",
        ),
        Row(
            "run",
            "hours",
            "GPU-hours",
            hours,
            words(hours),
            "time × GPUs",
            f"{seconds(plan.seconds)} × {words(q.devices)}",
            "hours",
            "estimate",
        ),
        Row(
            "run",
            "price",
            "Price",
            hours * q.price,
            f"${words(hours * q.price)}",
            f"at ${short(q.price)} a GPU-hour",
            f"{short(hours)} × {short(q.price)}",
            "hours",
            "estimate",
        ),
        Row(
            "run",
            "energy",
            "Energy of the GPUs",
            hours * watts,
            f"{words(hours * watts / 1000)} kWh",
            f"at {short(watts)} W each",
            f"{short(hours)} h × {short(watts)} W",
            "watts",
            "estimate",
        ),
        Row(
            "run",
            "flops",
            "FLOPs per token of training",
            needed,
            flop(needed),
            f"attention {share(attention / needed)}",
            f"{factor} × {words(active)}{more} + {flop(attention)} of attention",
            "frozen" if adapters > 0 else "training",
        ),
        Row(
            "run",
            "again",
            "Recomputed per token",
            again,
            flop(again),
            f"{share(again / needed)} more",
            "the layers' forward pass, without a last matmul" if again > 0 else "no matmul is repeated",
            "recompute",
        ),
        Row(
            "run",
            "mfu",
            "MFU with this recomputation",
            mfu,
            share(mfu),
            f"HFU {share(q.mfu)}, which counts recomputed FLOPs",
            f"{short(q.mfu)} × {flop(needed)} ÷ {flop(executed)}",
            "mfu",
        ),
        Row(
            "run",
            "steps",
            "Steps",
            q.tokens / step_tokens(q),
            words(math.ceil(q.tokens / step_tokens(q))),
            f"of {words(step_tokens(q))} tokens",
            f"{words(q.tokens)} ÷ {words(step_tokens(q))}",
            "step",
        ),
        Row(
            "run",
            "within",
            "GPUs to be done in time",
            by,
            words(by) if by > 0 else "none",
            f"within {seconds(q.within * nk.DAY)}, by time alone; memory may need more",
            f"{flop(work)} ÷ ({seconds(q.within * nk.DAY)} × {flop(peak)}/s × {short(q.mfu)})"
            + (", with the waits for offloaded state" if offloaded(q) else ""),
            "days",
            "estimate",
        ),
    ]
    return [row for row in rows if row.key != "energy" or watts > 0]


def first_in_time(q: Question, s: Shape, device: Device) -> float:
    """The least number of GPUs with which training takes no longer than asked, waits included; 0 where none is enough."""
    most = q.within * nk.DAY
    if not offloaded(q):
        return max(math.ceil(executed_flops(q, s) * q.tokens / (most * peak_of(q, device) * q.mfu)), 1)
    return least_count(lambda n: plan_of(replace(q, devices=n), s, device).seconds <= most, MOST_DEVICES)


def step_seconds(q: Question, s: Shape, device: Device) -> float:
    """Seconds of a step's arithmetic on one device."""
    tokens = q.microbatches * q.sequences * q.context / (q.tensor * q.stages)
    return nk.training_seconds(executed_flops(q, s) * tokens, 1, peak_of(q, device), q.mfu)


def state_traffic(q: Question, s: Shape) -> float:
    """Bytes that a device sends in a step for weights and gradients; frozen weights are gathered as well."""
    recipe, share_of, zero = recipe_of(q), q.tensor * q.stages, int(q.zero)
    ranks = q.devices / share_of
    sent = nk.sent_for_state(
        trained_parameters(q, s) / share_of, recipe.parameter, recipe.gradient, zero, ranks, q.microbatches
    )
    if recipe.frozen > 0 and zero == 3:
        frozen = nk.frozen_bytes(s, recipe.frozen) * weight_scale(q, s) / share_of
        sent += 2 * q.microbatches * frozen * (ranks - 1) / ranks
    return sent


def traffic_seconds(q: Question, s: Shape) -> float:
    """Seconds that this takes on the link of the node, or between nodes where there are several."""
    return state_traffic(q, s) / ((q.inside if q.devices <= q.node else q.between) * 1e9)


def traffic_rows(q: Question, s: Shape, device: Device) -> list[Row]:
    """What a device sends in a step, and how long that takes beside its arithmetic."""
    ranks, tokens = q.devices / (q.tensor * q.stages), q.microbatches * q.sequences * q.context
    rows: list[Row] = []
    if ranks > 1:
        sent, link = state_traffic(q, s), f"{short(q.inside)} GB/s in a node"
        if q.devices > q.node:
            link = f"{short(q.between)} GB/s between nodes"
        rows.append(
            Row(
                "traffic",
                "sent-state",
                "Sent for weights and gradients",
                sent,
                size(sent),
                f"{seconds(traffic_seconds(q, s))} at {link}; arithmetic {seconds(step_seconds(q, s, device))}",
                f"ZeRO {q.zero}, {microbatches(q)}, {things(ranks, 'rank')}",
                "sharded",
            )
        )
    if q.tensor > 1:
        sent = nk.sent_for_matmuls(tokens, s.width, s.layers / q.stages, q.tensor, q.recompute)
        time = sent / (q.inside * 1e9)
        rows.append(
            Row(
                "traffic",
                "sent-matmuls",
                "Sent for tensor parallelism",
                sent,
                size(sent),
                f"{seconds(time)} at {short(q.inside)} GB/s, which does not hide",
                f"{5 if q.recompute == 'full' else 4} all-reduces in each of {short(s.layers / q.stages)} layers",
                "tensor",
            )
        )
    if q.stages > 1:
        sent, waits = nk.sent_to_stages(tokens, s.width, q.stages), nk.bubble(q.stages, q.microbatches)
        rows.append(
            Row(
                "traffic",
                "sent-stages",
                "Sent to other stages",
                sent,
                size(sent),
                "there and back",
                f"2 B × {words(tokens)} tokens × {s.width}",
                "pipeline",
            )
        )
        rows.append(
            Row(
                "traffic",
                "bubble",
                "Bubble of the pipeline",
                waits,
                share(waits),
                "of a step, a stage waits",
                f"({words(q.stages)} - 1) ÷ ({words(q.microbatches)} + {words(q.stages)} - 1)",
                "pipeline",
            )
        )
    return rows


def serve_fit_rows(q: Question, s: Shape, device: Device) -> list[Row]:
    """What serving keeps in memory."""
    weights, each = nk.weight_bytes(s, q.precision) * weight_scale(q, s), sequence_bytes(q, s)
    room, most = nk.room(device.memory, q.reserve, 0) * q.devices, sequences_that_fit(q, s, device)
    copies = nk.cache_copies(s, q.devices)
    kept = f", {short(copies)} copies" if copies > 1 else ""
    return [
        Row(
            "fit",
            "need",
            "Memory needed, all GPUs",
            weights + q.users * each,
            size(weights + q.users * each),
            f"of {size(room)}",
            f"{size(weights)} + {words(q.users)} × {size(each)}",
            "batch",
        ),
        Row(
            "fit",
            "weights",
            "Weights",
            weights,
            size(weights),
            f"{size(weights / q.devices)} on each of {things(q.devices, 'GPU')}",
            f"{words(nk.parameter_count(s) * weight_scale(q, s))} parameters, {short(weights / (nk.parameter_count(s) * weight_scale(q, s)))} B each on average",
            "quantized" if q.precision != "bfloat16" else "parameters",
        ),
        Row(
            "fit",
            "sequence",
            "KV cache of a request",
            each,
            size(each),
            f"{words(q.prompt)} + {words(q.output)} tokens{kept}",
            f"{q.cache} B × {words(each / int(q.cache))} elements",
            "latent" if s.kv_rank > 0 else "window" if s.windowed_layers > 0 else "cache",
        ),
        Row(
            "fit",
            "most",
            "Concurrent sequences that fit",
            max(most, 0),
            words(max(most, 0)),
            "full length, no pages shared",
            f"({size(room)} - {size(weights)}) ÷ {size(each)}",
            "batch",
        ),
    ]


def serve_rows(q: Question, s: Shape, device: Device) -> list[Row]:
    """How fast a service answers, and for what price."""
    batch = min(q.users, sequences_that_fit(q, s, device))
    step, first = step_of(q, s, device, batch), prefill_of(q, s, device)
    mixed = busy_step(q, s, device, batch)
    total, most = batch / mixed, batch_at_limit(q, s, device)
    hourly = q.devices * q.price / 3600
    price_in, price_out = first / q.prompt * hourly * 1e6, hourly / total * 1e6
    alone, link = step_of(q, s, device, 1), nk.all_reduce_seconds(s, 1, q.devices, q.inside * 1e9)
    on_link = f" + {seconds(link * batch)} on the link" if link > 0 else ""
    first_on_link = f" + {seconds(link * q.prompt)} on the link" if link > 0 else ""
    of_all = f"({words(q.devices)} × {size(device.bandwidth)}/s)"
    peak = f"({words(q.devices)} × {flop(peak_of(q, device))}/s)"
    flops = nk.prefill_flops(s, q.prompt) * weight_scale(q, s)
    read, prompt_read = weights_of_step(q, s, batch), weights_of_step(q, s, q.prompt)
    each, cached = flops_of_token(q, s), f"{words(batch)} × {size(middle_bytes(q, s))} of cache"
    tpot_formula = f"({size(read)} of weights + {cached}) ÷ {of_all}"
    if batch * each / peak_of(q, device) > read / device.bandwidth:
        tpot_formula = f"{words(batch)} × {flop(each)} ÷ {peak} + {cached} ÷ {of_all}"
    ttft_formula = f"{flop(flops)} ÷ {peak}"
    if prompt_read / device.bandwidth > flops / peak_of(q, device):
        ttft_formula = f"{size(prompt_read)} of weights ÷ {of_all}"
    slower = max(flops / (q.devices * peak_of(q, device) * q.mfu) + link * q.prompt, first)
    limited = step_of(q, s, device, most) if most > 0 else 0
    together = (
        f"; if {words(batch)} arrive together, the last waits {seconds(batch * slower)} at that"
        if batch > 1
        else ""
    )
    full_memory = "; more do not fit" if most >= sequences_that_fit(q, s, device) else ""
    latency = nk.all_reduce_latency(s, q.devices)
    slow = batch / (mixed + latency)
    waits: list[Row] = [
        Row(
            "serve",
            "ttft",
            "Time to first token (TTFT)",
            first,
            seconds(first),
            f"nobody waiting; at {short(q.mfu)} of the peak {seconds(slower)}{together}",
            ttft_formula + first_on_link,
            "prefill",
            "lower bound",
        ),
        Row(
            "serve",
            "tpot",
            "Time per output token (TPOT)",
            step,
            seconds(step),
            f"in a batch of {words(batch)}, while no prompt is prefilled",
            tpot_formula + on_link,
            "touched" if s.experts > 1 else "shared",
            "lower bound",
        ),
    ]
    if latency > 0:
        waits.append(
            Row(
                "serve",
                "latency",
                "TPOT with latency of all-reduces",
                step + latency,
                seconds(step + latency),
                f"{seconds(nk.ALL_REDUCE)} each, as measured on eight A100s",
                f"{seconds(step)} + 2 × {s.layers} layers × {seconds(nk.ALL_REDUCE)}",
                "floor",
                "estimate",
            )
        )
    if batch > 1:
        waits.append(
            Row(
                "serve",
                "each",
                f"Tokens/s for each of the {words(batch)} users"
                + (f" of {words(q.users)} that fit" if batch < q.users else ""),
                1 / step,
                short(1 / step),
                "while no prompt is prefilled" + about(short_in(1 / (step + latency), 3), latency),
                f"1 ÷ {seconds(step)}",
                "decoding",
                "upper bound",
            )
        )
    return [
        *waits,
        Row(
            "serve",
            "alone",
            "Tokens/s of one request alone",
            1 / alone,
            short(1 / alone),
            "batch of 1" + about(short_in(1 / (alone + latency), 3), latency),
            f"1 ÷ {seconds(alone)}",
            "decoding",
            "upper bound",
        ),
        Row(
            "serve",
            "total",
            "Total throughput, output tokens/s",
            total,
            short(total),
            f"{words(batch)} at a time, prompts prefilled in the same steps"
            + about(short_in(slow, 3), latency),
            f"{words(batch)} ÷ {seconds(mixed)}, a step with {short(q.prompt / q.output)} prompt tokens for each output token",
            "chunks",
            "upper bound",
        ),
        Row(
            "serve",
            "requests",
            "Requests per minute",
            total * 60 / q.output,
            short(total * 60 / q.output),
            f"of {words(q.output)} output tokens" + about(short_in(slow * 60 / q.output, 3), latency),
            f"60 × {short(total)} ÷ {words(q.output)}",
            "chunks",
            "upper bound",
        ),
        Row(
            "serve",
            "limit",
            "Batch at the limit of TPOT",
            most,
            words(most),
            (
                f"{seconds(limited)} of {short(q.limit)} ms{full_memory}"
                if most > 0
                else "one request alone takes longer"
            )
            + about(words(batch_at_limit(q, s, device, latency)), latency),
            f"the largest that fits with TPOT up to {short(q.limit)} ms",
            "limit",
            "upper bound",
        ),
        Row(
            "serve",
            "price-in",
            "Price of a million prompt tokens",
            price_in,
            f"${short(price_in)}",
            "prefilled alone; the price of output tokens contains it",
            f"{seconds(first)} ÷ {words(q.prompt)} × {words(q.devices)} × {short(q.price)} an hour × 1 million",
            "bill",
            "lower bound",
        ),
        Row(
            "serve",
            "price-out",
            "Price of a million output tokens",
            price_out,
            f"${short(price_out)}",
            "with their prompts, at the total throughput" + about(f"${short_in(hourly / slow * 1e6, 3)}", latency),
            f"{words(q.devices)} × {short(q.price)} an hour ÷ 3,600 ÷ {short(total)} tokens/s × 1 million",
            "bill",
            "lower bound",
        ),
    ]


def about(text: str, latency: float) -> str:
    """An estimate beside a bound; empty where nothing is sent."""
    return f"; about {text} with latency of all-reduces" if latency > 0 else ""


def spread(q: Question) -> bool:
    """Whether GPUs send to one another within a node."""
    return (
        q.devices > 1 if q.job == "serve" else q.tensor > 1 or (q.devices > q.stages and q.devices <= q.node)
    )


def warnings_of(q: Question, s: Shape, device: Device, left_out: list[str]) -> list[str]:
    """What to mind, whether it fits or not."""
    warnings: list[str] = []
    count = nk.parameter_count(s)
    if q.parameters > 0 and q.parameters != count:
        warnings.append(
            f"{words(q.parameters)} parameters are typed over the {words(count)} of the shape: weights, state and their FLOPs are"
            f" those of your number; activations, attention and KV cache are those of the shape."
        )
    if q.job != "serve" and recipe_of(q).warning != "":
        warnings.append(f"{recipe_of(q).name}: {recipe_of(q).warning}.")
    longest = q.context if q.job != "serve" else q.prompt + q.output
    if longest > s.context:
        warnings.append(
            f"{words(longest)} tokens are more than the {words(s.context)} that this model is made for."
        )
    if q.job != "serve" and q.format == "float8":
        warnings.append(
            "Published MFUs of runs in float8 are mostly shares of the bfloat16 peak: with such an MFU choose bfloat16."
        )
    if q.job != "serve" and s.experts > 1 and q.devices > q.tensor * q.stages:
        warnings.append(
            "Expert parallelism is not among the layouts: experts are divided like all other weights. Traffic and memory"
            " are those of this layout; the hours count active experts, whatever the layout."
        )
    if q.job == "serve" and s.kv_rank > 0 and q.devices > 1:
        warnings.append(
            f"Tensor parallelism keeps each latent on all {words(q.devices)} GPUs. Services of such models divide requests"
            " among GPUs instead (data parallelism of attention), which is not counted here and lets more sequences in."
        )
    if q.job == "serve" and q.devices > q.node:
        warnings.append(
            f"{words(q.devices)} GPUs are more than a node of {words(q.node)} has: between nodes all-reduces are slower"
            " than the link in a node says."
        )
    if device.name != "H100 SXM" and device.name != "H200" and q.inside == 450 and spread(q):
        warnings.append(
            f"The link in a node, 450 GB/s, is NVLink of an H100 SXM: give that of your {device.name}."
        )
    if not has(HOPPER, device.name):
        taken: list[str] = []
        if q.price == 2:
            taken.append("the price of $2 a GPU-hour")
        if q.job != "serve" and q.mfu == 0.4:
            taken.append("the MFU of 0.4 (Llama 3's)")
        if len(taken) > 0:
            warnings.append(f"Assumed as for an H100: {', '.join(taken)}. Give those of your {device.name}.")
        if q.job != "serve" and q.watts == 0:
            warnings.append(
                f"No energy is given, because the power of your {device.name} is not known here: type it."
            )
    if q.job != "serve" and offloaded(q) and fits(q, s, device):
        plan, often = plan_of(q, s, device), plan_of(replace(q, microbatches=q.microbatches * 8), s, device)
        warnings.append(
            f"Offloaded state waits for the host once a step: {seconds(plan.waiting, 2)} of {seconds(plan.seconds, 2)} at {microbatches(q)} of"
            f" {words(step_tokens(q))} tokens in all. With eight times as many microbatches it would be {seconds(often.seconds, 2)}."
        )
    if q.job != "serve" and q.recipe == "qlora":
        warnings.append(
            "QLoRA dequantizes each weight at every use. That is not counted, so its hours are LoRA's, and too few."
        )
    if q.job == "serve" and fits(q, s, device):
        step = step_of(q, s, device, q.users)
        if step * 1000 > q.limit:
            warnings.append(
                f"TPOT is at least {seconds(step)}, above the limit of {short(q.limit)} ms: serve fewer at a time."
            )
    if q.job != "serve" and q.stages > 1:
        idle = nk.bubble(q.stages, q.microbatches)
        warnings.append(
            f"The pipeline's bubble, {share(idle)} of the time, is not in the hours: an MFU of a report contains its own."
        )
    if q.job == "finetune" and recipe_of(q).frozen > 0 and s.experts > 1:
        warnings.append("Adapters are counted for attention and shared FFNs, not for routed experts.")
    for part in left_out:
        warnings.append(f"Left out: {part}.")
    return warnings


def microbatches(q: Question) -> str:
    """The microbatches of a step, in words."""
    return "1 microbatch" if q.microbatches == 1 else f"{words(q.microbatches)} microbatches"


def cells_of(change: Change, s: Shape, device: Device) -> list[str]:
    """A change, its time and price, what comes out of it, and what it gives up."""
    q = change.question
    if q.job == "serve":
        step, busy = step_of(q, s, device, q.users), busy_step(q, s, device, q.users)
        price = busy / q.users * q.devices * q.price / 3600 * 1e6
        return [change.words, seconds(step), f"${short_in(price, 2)}", words(sequences_that_fit(q, s, device)), change.loss]
    plan = plan_of(q, s, device)
    remarks = [] if change.loss == "" else [change.loss]
    if needs_fused_loss(q, s, plan):
        remarks.append("needs a fused loss")
    if plan.host > 0:
        remarks.append(f"keeps {size(plan.host)} in host memory")
    if plan.waiting > 0:
        remarks.append(
            f"waits {seconds(plan.waiting, 2)} for the host at {microbatches(q)} in a step, less with more of them"
        )
    if recipe_of(q).warning != "":
        remarks.append(recipe_of(q).warning)
    price = plan.seconds * q.devices / 3600 * q.price
    return [
        change.words,
        seconds(plan.seconds, 2),
        f"${words(rough(price))}",
        f"{size(plan.need)} of {size(plan.room)}",
        "; ".join(remarks),
    ]


def offer_of(change: Change, q: Question, s: Shape, device: Device) -> Offer:
    """A change in the cells of a table, and the fields that it changes."""
    fields: dict[str, str] = {}
    for field in FIELDS:
        before, after = vars(q)[field.name], vars(change.question)[field.name]
        if before != after:
            fields[field.name] = after if field.choices is not None else whole_text(after)
    return Offer(cells_of(change, s, device), fields)


def how_many(q: Question, s: Shape, device: Device) -> str:
    """The first number of devices that fits, and of whole nodes."""
    first = first_that_fits(q, s, device)
    if first == 0:
        return f"No number of GPUs up to {words(s.heads if q.job == 'serve' else MOST_DEVICES)} is enough, as it is divided here."
    if q.job == "serve":
        return f"The first number of GPUs that fits is {words(first)}, of those among which {s.heads} heads divide."
    whole = in_whole_nodes(first, q, s, device)
    in_nodes = f"; in whole nodes of {words(q.node)}, {words(whole)}" if whole > first else ""
    smallest = replace(q, devices=first)
    fused = ", with a fused loss" if needs_fused_loss(smallest, s, plan_of(smallest, s, device)) else ""
    return f"The first number of GPUs that fits is {words(first)}{fused}{in_nodes}."


def needs_fused_loss(q: Question, s: Shape, plan: Plan) -> bool:
    """Whether a plain loss, which holds more of the logits, would not fit beside the rest."""
    return plan.need + unfused_bytes(q, s) > plan.room


def largest_part(plan: Plan) -> str:
    """What needs most of a device's memory, in a sentence."""
    if plan.state >= max(plan.activations, plan.logits):
        return f"What breaks first is the state: weights, gradients and optimizer, {size(plan.state)}."
    if plan.activations >= plan.logits:
        return f"What breaks first are the activations, {size(plan.activations)}."
    return f"What breaks first is the softmax of the logits, {size(plan.logits)}."


def text_of(rows: list[Row], key: str) -> str:
    """What the row of this key says."""
    for row in rows:
        if row.key == key:
            return row.text
    return ""


def answer(q: Question, s: Shape, device: Device, left_out: list[str]) -> Answer:
    """The whole answer to a question that `check` has nothing against."""
    warnings = warnings_of(q, s, device, left_out)
    right = fits(q, s, device)
    heads = OFFER_HEADS["serve"] if q.job == "serve" else OFFER_HEADS["train"]
    changes = [] if right else [offer_of(c, q, s, device) for c in cheapest_changes(q, s, device)]
    if q.job == "serve":
        most = sequences_that_fit(q, s, device)
        rows = serve_fit_rows(q, s, device)
        if most >= 1:
            rows = [*rows, *serve_rows(q, s, device)]
        have = f"{size(rows[0].value)} of {size(nk.room(device.memory, q.reserve, 0) * q.devices)} on {things(q.devices, device.name)}."
        have = have.replace(f"{device.name}s", device.name)
        if right:
            latency, bound = nk.all_reduce_latency(s, q.devices), pace(q, s, device, q.users, 0, 4)
            found = pace(q, s, device, q.users, latency, 3)
            later = (
                f"; with the latency of all-reduces about {found[0]}, {found[1]} and {found[2]}"
                if latency > 0
                else ""
            )
            text = (
                f"{have} TTFT at least {text_of(rows, 'ttft')}. TPOT at least {bound[0]}, tokens/s at most {bound[1]} for each"
                f" of {things(q.users, 'user')} and {bound[2]} in all{later}."
            )
            return Answer(True, "It fits.", text, heads, changes, warnings, [*rows, *model_rows(q, s)])
        why = (
            "The weights alone do not fit."
            if most < 0
            else f"Beside the weights {words(most)} of {words(q.users)} requests fit."
        )
        return Answer(
            False,
            "It does not fit.",
            f"{have} {why} {how_many(q, s, device)}",
            heads,
            changes,
            warnings,
            [*rows, *model_rows(q, s)],
        )
    plan = plan_of(q, s, device)
    have = f"{size(plan.need)} of {size(plan.room)} on each {device.name}, with {things(q.sequences, 'sequence')} of {words(q.context)} tokens."
    rows = fit_rows(q, s, device, plan)
    if right:
        run, traffic = run_rows(q, s, device, plan), traffic_rows(q, s, device)
        slow = traffic_seconds(q, s)
        computing = step_seconds(q, s, device)
        hours = plan.seconds * q.devices / 3600
        text = (
            f"{have} About {seconds(plan.seconds, 2)} ({run[0].remark}), {words(rough(hours))} GPU-hours,"
            f" ${words(rough(hours * q.price))} at ${short(q.price)} a GPU-hour."
        )
        unfused = unfused_bytes(q, s)
        if needs_fused_loss(q, s, plan):
            text += (
                f" This needs a fused loss: a plain one, as in Hugging Face's models, also holds 16-bit logits and gradients, {size(unfused)}"
                " more, and then it does not fit."
            )
        if slow > computing:
            text += (
                " But in this layout a step sends for longer than it computes: at the rates of the links, the run takes"
                f" at least {seconds(plan.seconds * slow / computing, 2)}."
            )
            warnings.append(
                f"A step's weights and gradients take {seconds(slow)} to send and its arithmetic {seconds(computing)}, so the"
                " hours are too few: use more sequences on each GPU, another stage of ZeRO, or another layout."
            )
        return Answer(True, "It fits.", text, heads, changes, warnings, [*rows, *run, *traffic, *model_rows(q, s)])
    text = f"{have} {largest_part(plan)} {how_many(q, s, device)}"
    return Answer(False, "It does not fit.", text, heads, changes, warnings, [*rows, *model_rows(q, s)])


# --- to take along


def as_markdown(found: Answer, given: list[list[str]]) -> str:
    """The answer and its assumptions as two tables in Markdown."""
    lines = [f"**{found.title}** {found.text}", ""]
    for warning in found.warnings:
        lines.append(f"- Mind: {warning}")
    if len(found.warnings) > 0:
        lines.append("")
    if len(found.changes) > 0:
        lines.append(f"| {' | '.join(found.heads)} |")
        lines.append("|---|---|---|---|---|")
        for change in found.changes:
            lines.append(f"| {' | '.join([cell(it) for it in change.cells])} |")
        lines.append("")
    lines.append("| assumption | value |")
    lines.append("|---|---|")
    for row in given:
        lines.append(f"| {cell(row[0])} | {cell(row[1])} |")
    lines.append("")
    lines.append("| result | value | remark | formula |")
    lines.append("|---|---|---|---|")
    for result in found.rows:
        bound = f" ({result.bound})" if result.bound != "" else ""
        lines.append(
            f"| {cell(result.name)}{bound} | {cell(result.text)} | {cell(result.remark)} | {cell(result.formula)} |"
        )
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """A cell of a table in Markdown."""
    return text.replace("|", "\\|").replace("\n", " ")


def as_csv(found: Answer, given: list[list[str]]) -> str:
    """The answer and its assumptions as CSV; numbers in full, sizes in bytes, times in seconds."""
    lines = ["kind,name,value,bound,text,remark"]
    for row in given:
        lines.append(f"assumption,{quoted(row[0])},,,{quoted(row[1])},")
    lines.append(f"verdict,{quoted(found.title)},,,{quoted(found.text)},")
    for change in found.changes:
        lines.append(f"change,{quoted(change.cells[0])},,,{quoted('; '.join(change.cells[1:4]))},{quoted(change.cells[4])}")
    for warning in found.warnings:
        lines.append(f"warning,{quoted('Mind')},,,{quoted(warning)},")
    for result in found.rows:
        lines.append(
            f"result,{quoted(result.name)},{full(result.value)},{result.bound},{quoted(result.text)},{quoted(result.remark)}"
        )
    return "\n".join(lines) + "\n"


def full(value: float) -> str:
    """A number: a whole one in full, another in four digits, without commas."""
    whole = value < 1e15 and (value >= 1e6 or value == math.floor(value))
    return f"{math.floor(value)}" if whole else short(value).replace(",", "")


def quoted(text: str) -> str:
    """A field of CSV."""
    return '"' + text.replace('"', '""') + '"'


def assumptions(texts: dict[str, str], s: Shape, device: Device) -> list[list[str]]:
    """What an answer rests on: model, device, and each field that its job asks for."""
    job = get(texts, "job", "pretrain")
    rows = [["Job", job], ["Model", s.name], ["Device", f"{device.name}, {size(device.memory)}"]]
    for field in FIELDS:
        if asks(field, job):
            text = get(texts, field.name, default_of(field, job))
            if field.choices is not None:
                for choice in field.choices:
                    if choice[0] == text:
                        text = choice[1]
            if field.kind == "length":
                text = words(read_number(text, field.kind, "").value)  # what was typed as 8k
            if text != "":
                rows.append([field.label, text])
    return rows
