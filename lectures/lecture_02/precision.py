"""Training in mixed precision, and weights in one byte."""
from counters import Watching, flops
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from timing import time_call
from torch import Tensor, nn

from litbook import aside, figure, misbelief, note, question, requires

from .blocks import an_outlier_ruins_its_own_block_only
from .figures import plot_scale
from .measure import (
    E4M3, cool_down, error_of, float32_products, narrow_format, scaled, shrunk,
)
from .models import Stack, linear_batch


def mixed_precision() -> None:
    """Mixed precision and quantization."""
    note(r"""
        Mixed precision is often described as a low-precision forward pass and a full-precision
        backward pass. Watch the matmuls as they run, and the backward pass turns out to use the
        same format. Only what is kept from step to step stays in full precision.
    """)
    flops_do_not_depend_on_the_format()
    the_backward_pass_uses_low_precision_too()
    a_step_is_timed_in_both_precisions()
    one_byte_needs_a_scale()
    an_outlier_ruins_its_own_block_only()
    quantized_weights_trade_error_for_bytes()


@aside
def flops_do_not_depend_on_the_format() -> None:
    """A matmul costs the same number of FLOPs in every format, and fewer bytes in a low-precision one."""
    note(r"""
        Does a matmul in a low-precision format cost fewer FLOPs? No, because the format does not
        change how many multiplications and additions there are. Two `2 * 2` matrices have a result
        of $4$ entries, each of $2$ multiplications and $2$ additions: $4 \cdot 4 = 16$ FLOPs. Two
        matrices of `64` rows and columns need $2 \cdot 64^3 = 524288$. The format changes how many
        bytes an element needs, and how many FLOPs a device performs per second.

        `flops` counts by the shapes of the matrices. Multiply a matrix by itself in four formats:
    """)
    formats = torch.float64, torch.float32, torch.bfloat16, torch.float16
    squares = [torch.ones(64, 64, dtype=dtype) for dtype in formats]
    counts = [flops(partial(torch.matmul, x, x)) for x in squares]  # x @ x  # @inspect counts as FLOP
    assert counts == [524288, 524288, 524288, 524288], \
        "The FLOPs are the same in all four formats."
    sizes = [x.nbytes for x in squares]  # @inspect sizes as B
    assert sizes == [32768, 16384, 8192, 8192], \
        "A matrix needs 32, 16, 8 and 8 KiB."
    misbelief("Higher precision means more compute.", rf"""
        The number of FLOPs is the same, {counts[0]:,} in `float64` and in `bfloat16`. What differs
        is the bytes of a matrix, {sizes[0]:,} and {sizes[2]:,}, and how fast a device computes.
    """)
    note(r"""
        So low-precision formats save memory, and time on a device with units for them, but not
        work. Advice: start in `float32`, so that any error is a bug in your code and not an effect
        of rounding. Then run the matmuls in `bfloat16`, and watch the loss. Keep the weights in
        `float32`, because a `bfloat16` weight [rounds small updates away](#small_updates_are_lost).
    """)
    pair = [torch.ones(128, 128, dtype=d) for d in (formats[0], formats[2])]  # @hide
    work = [flops(partial(torch.matmul, x, x)) for x in pair]  # @hide
    question(r"""
        Both matrices of a matmul are converted from `float64`, `8` bytes per element, to
        `bfloat16`, `2` bytes per element. Divide the FLOPs after by the FLOPs before, and the bytes
        after by the bytes before. What are the two ratios?
    """, answer=[work[1] / work[0], pair[1].nbytes / pair[0].nbytes],
        check=[1.0, 2 / 8],
        hint="Does the format change the number of multiplications?",
        why=r"""
            The matmul has the same number of multiplications and additions as before, so the first
            ratio is `1`. An element needs `2` bytes instead of `8`, so the second ratio is a
            quarter.
        """)


class Products(Watching):
    """While it is active, it records the formats that go into every matmul."""

    def __init__(self) -> None:
        super().__init__()
        self.formats: list[torch.dtype] = []

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        if operation is torch.ops.aten.mm.default:
            formats = args[0].dtype, args[1].dtype
            self.formats.append(torch.promote_types(*formats))


@aside
def the_backward_pass_uses_low_precision_too() -> None:
    """Under autocast the matmuls of the backward pass are in `bfloat16` as well."""
    note(r"""
        Mixed precision keeps weights in `float32` and multiplies in a low-precision format. Does
        that hold for the backward pass as well? The speed of training depends on it, because the
        backward pass has more than half of the FLOPs.

        `torch.autocast` is PyTorch's switch for mixed precision [@pytorch-amp]. Below, it is on
        only for the forward pass, which rounds copies of the weights and inputs to `bfloat16`. The
        backward pass also multiplies in `bfloat16`, although autocast is off: autograd has saved
        these copies, and [multiplies the gradients by them](#the_backward_pass_needs_two_matmuls).

        Take a model of two hidden layers of width `64` and a *head*, the last layer. Each is a
        single matrix, so the forward pass has `3` matmuls. The batch has `8` rows. The backward
        pass has two for each matrix, but the first layer needs no gradient of its input:
        `2 * 3 - 1 = 5`. `Products` records the format of every matmul:
    """)
    model, (x, y) = Stack(64, 2), linear_batch(64, 8)  # @unnoticed: 8: any batch
    with Products() as forward, torch.autocast("cpu", torch.bfloat16):
        output = model(x)  # @inspect output.dtype
    loss = F.mse_loss(output.float(), y)  # in float32
    with Products() as backward:
        loss.backward()
    assert forward.formats == [torch.bfloat16] * 3, \
        "The 3 matmuls of the forward pass are in bfloat16."
    assert backward.formats == [torch.bfloat16] * 5, \
        "The 5 matmuls of the backward pass are in bfloat16."
    misbelief("Mixed precision is `bfloat16` forward, `float32` for the rest.", rf"""
        Not only forward: all {len(backward.formats)} matmuls of the backward pass are in `bfloat16`
        as well. The weights and gradients that are stored are in `float32`, and so is the loss.
    """)
    assert loss.dtype == torch.float32, "The loss is in float32."  # @hide
    stored = {w.dtype for w in model.weights}
    assert stored == {torch.float32}, "The weights are stored in float32."
    gradients = [w.grad for w in model.weights if w.grad is not None]
    assert len(gradients) == 3, "Each matrix has a gradient."  # @hide
    assert {g.dtype for g in gradients} == {torch.float32}, \
        "The gradients of the weights are stored in float32."
    deep, (x, y) = Stack(8, 5), linear_batch(8, 4)  # @hide
    with Products() as seen:  # @hide
        with torch.autocast("cpu", torch.bfloat16):
            output = deep(x)
        F.mse_loss(output.float(), y).backward()
    question(r"""
        A model has `5` hidden layers and a head, each one matrix. How many matmuls in `bfloat16`
        does a step under autocast need, forward and backward together?
    """, answer=seen.formats.count(torch.bfloat16),
        wrong={
            "The first layer needs no gradient of its input: one matmul fewer.": 18,
            "That is the forward pass alone; the backward pass is in bfloat16 as well.": 6,
            "The head is a matrix as well.": 14,
        },
        check=6 + 2 * 6 - 1,
        hint="How many matrices are there, with the head, and how many matmuls does each need?", unit="matmuls", why=r"""
            There are `6` matrices. The forward pass has `6` matmuls, the backward pass
            `2 * 6 - 1 = 11`, since the first layer needs no gradient of its input. All are in
            `bfloat16`.
        """)


def train_step(  # @stepover
    model: Stack, optimizer: torch.optim.Optimizer,
    x: Tensor, y: Tensor, mixed: bool,
) -> None:
    """Takes a training step, with or without mixed precision."""
    with torch.autocast("cuda", narrow_format(), enabled=mixed):
        output = model(x)
    F.mse_loss(output.float(), y).backward()
    optimizer.step()
    optimizer.zero_grad()


def most_bytes(call: Callable[[], object]) -> int:  # @stepover
    """The most bytes of GPU memory in use at once while a call runs."""
    torch.cuda.reset_peak_memory_stats()
    call()
    return torch.cuda.max_memory_allocated()


@aside
@requires("cuda")
def a_step_is_timed_in_both_precisions() -> None:
    """In mixed precision, a training step with a large batch should need less time and memory."""
    width = scaled(4096, lambda w: 400 * w * w)  # @measure width  # @hide
    note(rf"""
        What does *mixed precision* save in a training step on a GPU? It does the matmuls in a
        `16`-bit format, and keeps the weights in `float32`. So it saves time, because matmuls in a
        `16`-bit format are faster: an H100 does up to `989.5 / 67 = 14.8` times as many FLOPs in a
        second in `bfloat16` as in `float32` [@nvidia-h100]. (The step as a whole gains less. Among
        other things, the optimizer's update is still in `float32`.)

        Whether it saves memory depends on the batch. *Activations*, what the forward pass keeps for
        the backward pass, need $2$ bytes per element instead of $4$. But each matmul uses a
        `16`-bit copy of its weights, and the copies of all layers stay in memory until the backward
        pass has used them.

        By hand, for one layer of `4 * 4` weights with an activation function, here GELU. Two
        tensors are kept for it: its output before GELU, and its output after GELU, which is the
        input of the next layer.

        | rows of the batch | activations: bytes less | copies of weights: bytes more | saved |
        |---|---|---|---|
        | $1$ | $2$ tensors × rows × $4$ elements × $2$ bytes: `2 * 1 * 4 * 2 = 16` | `4 * 4 * 2 = 32` | `16 - 32 = -16` |
        | $10$ | `2 * 10 * 4 * 2 = 160` | `4 * 4 * 2 = 32` | `160 - 32 = 128` |

        Now `8` such layers of a `width` of `4096`, and `2 * 4096 = 8192` rows:

        - activations: `8 * 2 * 8192 * 4096 * 2 = 2**30` bytes less, a GiB;
        - copies of weights: `8 * 4096 * 4096 * 2 = 2**28` bytes more, `2**28 / 2**30 = 0.25` GiB.

        So at the start of the backward pass, when all of these are in memory, expect about
        `1 - 0.25 = 0.75` GiB less. Weights, gradients and AdamW's two averages need the same bytes
        in both, because they stay in `float32`, $4$ bytes each.

        `step(True)` takes such a training step with AdamW in mixed precision, which PyTorch calls
        `autocast`, and `step(False)` takes it without. `most_bytes` returns the most memory in use
        during a call. `full` and `mixed` are the times of a step without autocast and with
        it:{shrunk(width, 4096)}
    """)
    model = Stack(width, 8, between=nn.GELU()).cuda()  # @hide
    x, y = (t.cuda() for t in linear_batch(width, batch=2 * width))  # @hide
    optimizer = torch.optim.AdamW(model.parameters())  # @hide
    step = partial(train_step, model, optimizer, x, y)  # @hide
    with float32_products():  # with all 32 bits, not in TF32  # @hide
        full = time_call(lambda: step(False), "cuda")  # @measure full
    cool_down()  # @hide
    mixed = time_call(lambda: step(True), "cuda")  # @measure mixed  # @hide
    bytes_full = most_bytes(lambda: step(False))  # @measure bytes_full as B
    bytes_mixed = most_bytes(lambda: step(True))  # @measure bytes_mixed as B
    assert bytes_mixed < bytes_full, "The step needs less memory with autocast."
    assert mixed.seconds < full.seconds, "The step is faster with autocast."
    note(r"""
        The claims ask only for less. If the peak of the step is at another moment, less may be
        saved than $0.75$ GiB. Whether a model still trains as well has to be checked for each
        model.
    """)
    question(r"""
        A model has `8` hidden layers of `4096 * 4096` weights and a head of `4096`. How many bytes
        do weights, gradients and AdamW's two averages need, with autocast or without?
    """, answer=16 * (8 * 4096**2 + 4096),
        check=sum(
            rows * cols * torch.float32.itemsize
            for kind in ("weights", "gradients", "averages", "averages of squares")
            for rows, cols in [(4096, 4096)] * 8 + [(4096, 1)]
        ), unit="B", within=0.02, why=r"""
            Four values of `4` bytes are kept for each weight, and autocast changes none of them.
        """)


def codes_of_one_byte(dtype: torch.dtype) -> Tensor:
    """Every positive finite value of a format of one byte."""
    values = torch.arange(256).to(torch.uint8).view(dtype).float()
    return values[(values > 0) & values.isfinite()]


def through(x: Tensor, dtype: torch.dtype, scaled_up: bool = True) -> Tensor:
    """A tensor rounded to a one-byte format and back, with or without a scale that maps its largest element to the largest value of the format."""
    scale = torch.finfo(dtype).max / x.abs().max() if scaled_up else 1.0
    return (x * scale).to(dtype).float() / scale


def one_byte_needs_a_scale() -> None:
    """In one byte, a tensor of small values needs a scale, or they become zero."""
    note(r"""
        Can the weights of a layer be stored in a single byte each? First by hand. The one-byte
        format `E4M3` has values up to `448`. Its smallest value above zero is $2^{-9}$, about
        $0.002$, and what is smaller than half of that is rounded to zero.

        A layer has three weights, `0.0004`, `-0.0001` and `0.0002`. In `E4M3` all three become
        zero, and so do all outputs of the layer.

        Now multiply the weights by a *scale*, chosen so that the largest becomes `448`:
        `448 / 0.0004 = 1,120,000`. They become `448`, `-112` and `224`, and `E4M3` holds each
        exactly. After the matmul, divide the outputs by the scale. That gives the correct result,
        because a common factor can be taken out of a sum of products:
        $\sum_j x_j (s\,w_j) = s \sum_j x_j w_j$.
    """)
    weights = torch.tensor([4e-4, -1e-4, 2e-4])
    smallest = codes_of_one_byte(E4M3).min().item()  # @hide
    scale = torch.finfo(E4M3).max / weights.abs().max()  # @inspect scale
    assert smallest == 2**-9, "The smallest positive value of E4M3 is 2**-9."  # @hide
    without = weights.to(E4M3).float().tolist()  # @inspect without
    with_scale = (weights * scale).to(E4M3).float().tolist()  # @inspect with_scale
    assert [abs(w) for w in without] == [0, 0, 0], \
        "Without a scale, all three weights become zero."  # @zero: they underflow
    assert with_scale == [448, -112, 224], \
        "With a scale, the format holds all three."
    note(r"""
        Now take a layer of `256 * 256` random weights of a typical size of `1e-4`, so small that
        without a scale all become zero. `through` rounds weights to a one-byte format and back,
        with a scale or without. `error_of` subtracts the exact outputs, and divides the norm of the
        difference by the norm of the exact outputs:
    """)
    with warnings.catch_warnings(record=True) as caught:  # @hide
        warnings.simplefilter("always")
        with torch.autocast("cpu", dtype=torch.float8_e4m3fn):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
    said = str(caught[-1].message)  # @hide
    assert "Disabling autocast" in said, \
        "Asked for one byte on a CPU, autocast warns and switches off."  # @hide
    assert product.dtype == torch.float32, "The matmul is then float32."  # @hide
    x, w = torch.randn(64, 256), torch.randn(256, 256) * 1e-4  # @unnoticed: 64, 256, 1e-4: any size, any small weights
    exact = x @ w
    lost = error_of(x @ through(w, E4M3, scaled_up=False), exact)  # @inspect lost as %
    assert lost == 1.0, \
        "Without a scale, all weights are zero, and the error is 100 %."
    error = error_of(x @ through(w, E4M3), exact)  # @inspect error as %  # @unnoticed: arguments swapped: hardly another length to divide by
    assert 0.0255 < error < 0.0275, \
        "With a scale, the error in E4M3 is less than 3 %."
    factor = (torch.finfo(E4M3).max / w.abs().max()).item()  # @hide
    figure(plot_scale(w.flatten(), factor, (smallest, torch.finfo(E4M3).max)), caption=r"""
        How the weights are distributed over the powers of two, before and after they are multiplied
        by the scale. Grey: the values that E4M3 holds.
    """, alt=r"""
        Two bell-shaped histograms on a logarithmic axis. The one without a scale lies left of the
        grey range of the format, where everything becomes zero. The one with a scale lies inside
        it, with its right end at the largest value.
    """)
    note(r"""
        So a layer of such small weights is stored with a scale. Then a weight becomes zero only if
        the largest is at least `448 / 2**-10 = 458,752` times as large.
    """)
    question(r"""
        The layer of three small weights, `0.0004`, `-0.0001` and `0.0002`, gets a fourth weight,
        `448`. It is stored in `E4M3` with one scale. How many of the four weights are still
        different from zero then?
    """, answer=int((through(torch.tensor([4e-4, -1e-4, 2e-4, 448.0]), E4M3) != 0).sum()),
        wrong={
            "The largest weight determines the scale. How large is the scale now?": 4,
        },
        check=1, unit="weights",
        hint="The largest weight is multiplied by the scale and becomes `448`. How large is the scale?",
        why=r"""
            The scale is `448 / 448 = 1`, so the three small weights become zero, as without a
            scale. One *outlier* is enough to lose them; a scale for each
            [block](#an_outlier_ruins_its_own_block_only) limits the harm.
        """)


def quantize(  # @show
    w: Float[Tensor, "inner out"], size: int
) -> tuple[Tensor, Tensor]:
    """Rounds weights to integers of `size` bits; returns the integers and one scale for each column."""
    top = 2 ** (size - 1) - 1
    scale = w.abs().amax(dim=0) / top
    return (w / scale).round().to(torch.int8), scale


def in_pairs(whole: Tensor) -> Tensor:
    """Packs integers of half a byte in pairs, each pair in a byte."""
    low, high = (whole.flatten() & 15).view(-1, 2).unbind(1)  # the last 4 bits
    return (low | high << 4).to(torch.uint8)


@aside
def quantized_weights_trade_error_for_bytes() -> None:
    """Weights that are stored in fewer bits need fewer bytes, and make a matmul less accurate."""
    note(r"""
        A trained model that is only used can be stored in fewer bytes. How much less accurate are
        its matmuls then? To *quantize* a matrix is to replace its weights by small integers, with a
        *scale*: integer times scale is approximately the weight. Here there is a scale for each
        column; many tools have one for each small block of weights.

        By hand, a column with the weights `0.7`, `-0.2` and `0.33`, in integers of `4` bits, from
        `-7` to `7`:

        - the scale maps the weight that is largest in absolute value to the largest integer:
          `0.7 / 7 = 0.1`;
        - each weight is divided by the scale and rounded: `7`, `-2` and `3`;
        - integer times scale gives approximately the old weights: `0.7`, `-0.2` and `0.3`.

        In `8` bits the integers go up to `127`, so the scale is `0.7 / 127 = 0.0055`. The scale is
        the distance between the values that can be stored, and rounding is off by at most half of
        it. So the bound on each weight's error is `127 / 7 = 18` times as large in `4` bits as in
        `8`. A matmul adds up weights times elements, so expect its error to grow by the same
        factor.

        `quantize` does the same with a random matrix. `error_of` divides the norm of the result's
        error by the norm of the exact result:
    """)
    by_hand, step = quantize(torch.tensor([[0.7], [-0.2], [0.33]]), 4)  # @hide
    assert by_hand.flatten().tolist() == [7, -2, 3], "The column by hand becomes 7, -2 and 3."  # @hide
    assert torch.allclose(by_hand * step, torch.tensor([[0.7], [-0.2], [0.3]])), \
        "Integers times scale are 0.7, -0.2 and 0.3."  # @hide
    x, w = torch.randn(64, 256), torch.randn(256, 256)
    fine, scale = quantize(w, 8)
    fine_error = error_of(x @ (fine * scale), x @ w)  # @inspect fine_error as %
    coarse, scale = quantize(w, 4)
    coarse_error = error_of(x @ (coarse * scale), x @ w)  # @inspect coarse_error as %
    assert 0.0064 < fine_error < 0.0074, \
        "With 8 bits, the relative error of the matmul is 0.7 %."
    assert 0.12 < coarse_error < 0.13, \
        "With 4 bits, the relative error is about an eighth."
    assert 17 < coarse_error / fine_error < 19, \
        "With 4 bits, the error is about 127 / 7 times as large as with 8 bits."
    assert fine.abs().max() == 127, "In 8 bits the largest integer is 127."  # @hide
    assert w.nbytes / fine.nbytes == 4.0, \
        "With 8 bits, the integers need a quarter of the bytes of float32."  # @hide
    misbelief("Quantizing a trained model improves its performance.", rf"""
        It makes the model smaller, but less accurate: the outputs of this random matrix are off by
        {fine_error:.1%} at `8` bits and by {coarse_error:.0%} at `4`. How much that harms a model
        has to be measured on its task. (Speed is not measured here.)
    """)
    note(r"""
        An integer of `8` bits needs one byte, a quarter of the bytes of `float32`. No element of a
        PyTorch tensor has less than a byte, so `in_pairs` puts two integers of `4` bits into each
        byte, one into its lower `4` bits and one into its upper `4`:
    """)
    dtypes = {each for each in vars(torch).values() if isinstance(each, torch.dtype)}  # @hide
    assert min(each.itemsize for each in dtypes) == 1, \
        "No dtype of PyTorch has elements of less than one byte."  # @hide
    packed = in_pairs(coarse)  # @inspect packed.nbytes as B
    assert packed.nbytes == w.nbytes // 8, \
        "Packed in pairs, the integers need an eighth of the bytes of float32."
    assert scale.nbytes / packed.nbytes == 1 / 32, \
        "The scales of the columns add 3.1 % to these bytes."
    halves = torch.stack([packed & 15, packed >> 4], dim=1).to(torch.int8)  # @hide
    restored = torch.where(halves > 7, halves - 16, halves)  # @hide
    assert torch.equal(restored.view(256, 256), coarse), "Unpacked, they are the same integers."  # @hide
    whole, scale = quantize(torch.randn(1000, 400), 4)  # @hide
    question(r"""
        A matrix has `1000` rows and `400` columns, at `4` bits per weight, packed in pairs, with
        one scale in `float32` for each column. How many bytes does it need?
    """, answer=whole.numel() // 2 + scale.nbytes,
        wrong={
            "The scales are missing.": 200_000,
            "That is a byte for each weight: two share a byte.": 401_600,
            "There is a scale for each column, not for each row.": 204_000,
        },
        check=1000 * 400 * 4 // 8 + 400 * 4, unit="B", within=0.001, why=r"""
            `400000` weights need half a byte each, `200000` bytes. The `400` scales need `4` bytes
            each, `1600` more.
        """)
