"""Training in mixed precision, and weights in one byte."""
from counters import Watching, flops, saved_bytes_of
import math
import warnings
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from timing import time_call
from torch import Tensor, nn

from litbook import aside, link, misbelief, note, question, requires

from .blocks import (
    an_outlier_ruins_its_own_block_only,
    four_bits_hold_eight_sizes,
    smaller_blocks_need_finer_scales,
)
from .measure import (
    cool_down, error_of, float32_products, narrow_format, scaled, shrunk,
)
from .models import Stack, linear_batch


def mixed_precision() -> None:
    """Mixed precision and quantization."""
    note(r"""
        Mixed precision is often described as a narrow forward pass and a wide backward pass. Watch
        the products as they run, and the backward pass turns out to be just as narrow. What stays
        wide is what is kept from step to step.
    """)
    flops_do_not_depend_on_the_format()
    the_backward_pass_is_narrow_too()
    autocast_saves_on_activations_only()
    a_step_is_timed_in_both_precisions()
    the_loss_scale_finds_its_own_level()
    one_byte_needs_a_scale()
    four_bits_hold_eight_sizes()
    an_outlier_ruins_its_own_block_only()
    smaller_blocks_need_finer_scales()
    what_supports_one_byte_training()
    quantized_weights_trade_error_for_bytes()


def flops_do_not_depend_on_the_format() -> None:
    """A wider format costs no more FLOPs, only more bytes and more time for each."""
    misbelief("Higher precision means more compute.", r"""
        It is the same number of FLOPs in every format. What changes is the rate at which a device
        does them, and the bytes it moves for them.
    """)
    formats = torch.float64, torch.float32, torch.bfloat16, torch.float16
    squares = [torch.ones(64, 64, dtype=dtype) for dtype in formats]
    counts = [flops(partial(torch.matmul, x, x)) for x in squares]  # @inspect counts as FLOP
    assert counts == [524288, 524288, 524288, 524288], "the same work"
    sizes = [x.nbytes for x in squares]  # @inspect sizes as B
    assert sizes == [32768, 16384, 8192, 8192], "other bytes"
    note(r"""
        Advice: start in `float32`, where mistakes are yours and not the format's, and narrow from
        there, watching the loss. For language models the usual place to arrive is `bfloat16`
        products over `float32` weights. The old warning that low-precision training is very hard
        still holds where nothing at all is kept wide.
    """)
    pair = [torch.ones(128, 128, dtype=d) for d in (formats[0], formats[2])]
    work = [flops(partial(torch.matmul, x, x)) for x in pair]
    question(r"""
        Both factors of a product of width `128` are cast from `float64` to `bfloat16`. To which
        fraction do its FLOPs fall, and to which its bytes?
    """, answer=[work[1] / work[0], pair[1].nbytes / pair[0].nbytes],
        check=[1.0, 2 / 8])


class Products(Watching):
    """Notes the formats that go into every matrix product while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.formats: list[torch.dtype] = []

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        if operation is torch.ops.aten.mm.default:
            formats = args[0].dtype, args[1].dtype
            self.formats.append(torch.promote_types(*formats))


def the_backward_pass_is_narrow_too() -> None:
    """Under autocast the backward pass multiplies in the narrow format as well."""
    note(r"""
        Which products does mixed precision make narrow: those of the forward pass, or all? Two
        thirds of the FLOPs hang on it.
    """)
    note(r"""
        *Mixed precision* keeps weights in `float32` and multiplies in a narrow format.
        `torch.autocast` is PyTorch's switch for it [@pytorch-amp]. Here is a model of three
        matrices under it, while `Products` writes down the format of every product. Expect one for
        each matrix forward and two backward, less the
        [one below the first layer](#the_first_layer_has_nothing_below):
    """)
    model, (x, y) = Stack(64, 2), linear_batch(64, 8)
    with Products() as forward, torch.autocast("cpu", torch.bfloat16):
        output = model(x)  # @inspect output.dtype
    loss = F.mse_loss(output.float(), y)
    with Products() as backward:
        loss.backward()
    assert forward.formats == [torch.bfloat16] * 3, "one for each layer"
    assert backward.formats == [torch.bfloat16] * 5, "two each, less one"
    misbelief("Mixed precision is `bfloat16` forward, `float32` for the rest.", r"""
        Every product of the backward pass is narrow too, and so are the gradients that travel
        between layers. Wide are the stored weights, their gradients and the optimizer's state.
    """)
    weight = model.weights[0]
    assert weight.dtype == torch.float32, "the weights as stored"
    assert weight.grad is not None, "with a gradient"
    assert weight.grad.dtype == torch.float32, "widened on arrival"
    deep, (x, y) = Stack(8, 5), linear_batch(8, 4)  # @unnoticed: 4: any batch
    with Products() as seen:
        with torch.autocast("cpu", torch.bfloat16):
            output = deep(x)
        F.mse_loss(output.float(), y).backward()
    question(r"""
        How many narrow products does a whole step take, forward and backward, with `5` hidden
        layers?
    """, answer=seen.formats.count(torch.bfloat16),
        wrong={
            "The first layer has nothing below it.": 18,
            "That is the forward pass alone.": 6,
            "The head is a matrix, too.": 14,
        },
        check=6 + 2 * 6 - 1,
        hint="How many matrices are there, the head included, and how many products has each?", unit="products", why=r"""
            One for each of six matrices, two each on the way back, less the one below the first
            layer. Who takes the backward pass for wide counts six.
        """)


def autocast_saves_on_activations_only() -> None:
    """Autocast halves hidden activations, and adds narrow copies of the input and the weights."""
    note(r"""
        How much memory does `torch.autocast` save? Of parameters, gradients and moments nothing,
        and with a small batch it costs some.
    """)
    note(r"""
        What shrinks is hidden activations. Against that stand copies in the narrow format, made for
        the products and kept for the backward pass: one of the input, and one of every weight but
        the first. (A weight is kept to pass a gradient down, and
        [below the first layer nobody wants one](#the_first_layer_has_nothing_below).)
    """)
    note(r"""
        `kept` counts all that autograd saves besides the given input and weights, for two hidden
        layers of width `64`. At a batch of `4096`:
    """)

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
    question(r"""
        With `9` hidden layers instead of `2`, and a batch so large that the last output and the
        copies of the weights do not matter: how many times fewer bytes does autocast keep?
    """, answer=4 * 9 / (2 * 9 + 2),
        wrong={
            "The narrow copy of the input is missing.": 2,
        },
        check=36 / 20,
        hint=r"""
            How many tensors of the batch are kept wide, and how many narrow? Do not forget the
            input.
        """, unit="times", within=0.02,
        why=r"""
            Wide, the `9` hidden outputs are kept at `4` bytes a number. Narrow, they are kept at
            `2`, and a narrow copy of the input joins them: ten tensors for nine. The copy keeps the
            factor from two.
        """)


@aside
@requires("cuda")
def a_step_is_timed_in_both_precisions() -> None:
    """What mixed precision saves is measured, in seconds and in bytes."""
    width = scaled(4096, lambda w: 400 * w * w)  # @measure width
    note(rf"""
        One step of a model with `8` hidden layers and AdamW, without autocast, and with it after a
        second of rest.{shrunk(width, 4096)}
    """)
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

    with float32_products():  # no TF32, whatever the environment says
        wide = time_call(lambda: step(False), "cuda")  # @measure wide
    cool_down()
    narrow = time_call(lambda: step(True), "cuda")  # @measure narrow
    assert narrow.seconds < wide.seconds, "narrow products are faster"
    peaks = []
    for narrowed in (False, True):
        torch.cuda.reset_peak_memory_stats()
        step(narrowed)
        peaks.append(torch.cuda.max_memory_allocated())  # @measure peaks as B
    assert peaks[1] < peaks[0], "narrow activations are smaller"
    note(r"""
        Whether this is a good balance of speed and stability is for each model to show. Time and
        memory saved are what it has to be weighed against.
    """)
    question(r"""
        How many bytes do weights, gradients and AdamW's averages of this model take, in either
        precision?
    """, answer=16 * sum(p.numel() for p in model.parameters()),
        check=16 * (8 * width**2 + width), unit="B")


@aside
def the_loss_scale_finds_its_own_level() -> None:
    """A gradient scaler skips steps that overflow, and lowers its scale until they do not."""
    note(r"""
        `float16` loses small gradients, so the loss is first multiplied by a large factor, the
        *scale* [@micikevicius2018]. With too large a scale the gradient overflows instead.
        PyTorch's scaler finds one by trial: an infinite gradient, or NaN, means no step and half
        the scale.
    """)
    top = torch.finfo(torch.float16).max
    note(rf"""
        The weight below becomes `float16` on its way into the loss. So its gradient of `10`, times
        the scale, has to fit into that format, whose largest number is {top:.0f}.
    """)
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
        weights.append(round(w.item(), 2))  # @inspect weights  # @unnoticed: 2: more digits are as exact
    assert scales[:4] == [65536, 32768, 16384, 8192], "halved"
    assert scales[4:] == [4096, 4096], "then kept"
    assert weights == [1.0, 1.0, 1.0, 1.0, 0.9, 0.8], "four steps skipped"
    largest = top / 10  # @inspect largest
    power = 2 ** int(math.log2(largest))  # @inspect power
    assert power == 4096, "the power of two that just fits"
    note(r"""
        The skipped steps are the cost. After `patience` good steps in a row the scaler tries twice
        the scale, and where that overflows another step is lost:
    """)
    patience = scaler.get_growth_interval()  # @inspect patience
    assert patience == 2000, "steps without an overflow"
    note(r"""
        The scale is state: `scaler.state_dict()` belongs in the checkpoint. `bfloat16` has the
        range to do without all this.
    """)
    assert scaler.state_dict()["scale"] == 4096, "to be saved"
    question(r"""
        The gradient is `100` instead of `10`. At which scale does the scaler first settle, and
        after how many skipped steps?
    """, answer=[
        fits := 2 ** int(math.log2(torch.finfo(torch.float16).max / 100)),
        round(math.log2(scales[0] / fits)),
    ],
        check=[512, len((65536, 32768, 16384, 8192, 4096, 2048, 1024))])


def through(x: Tensor, dtype: torch.dtype, stretch: bool = True) -> Tensor:
    """`x` after a round trip through a one-byte format, stretched to fill its range or as it is."""
    scale = torch.finfo(dtype).max / x.abs().max() if stretch else 1.0
    return (x * scale).to(dtype).float() / scale


@aside
def one_byte_needs_a_scale() -> None:
    """In one byte a tensor needs a scale of its own, or its small values are gone."""
    note(r"""
        `torch.autocast` multiplies in `bfloat16` or `float16`. Can one multiply in a format of a
        single byte in the same way? On a CPU `torch.autocast` refuses. And there is a reason to be
        careful: the small weights of a layer would be rounded to zero. The way out is a *scale*:
        multiply a tensor by a factor so that its largest number becomes the largest number of the
        format, and divide the factor out after the product. Take a layer with weights of about
        `1e-4`. `through` rounds them to a format of one byte, with or without a scale, and
        `error_of` compares the product with the exact one. `E4M3` has a bit more for the fraction
        than `E5M2`:
    """)
    with warnings.catch_warnings(record=True) as caught:  # @hide
        warnings.simplefilter("always")
        with torch.autocast("cpu", dtype=torch.float8_e4m3fn):
            product = torch.ones(2, 2) @ torch.ones(2, 2)
    said = str(caught[-1].message)  # @hide
    assert "Disabling autocast" in said, \
        "Asked for one byte on a CPU, autocast warns and switches off."  # @hide
    assert product.dtype == torch.float32, "The product is then float32."  # @hide
    x, w = torch.randn(64, 256), torch.randn(256, 256) * 1e-4
    exact = x @ w
    fine, wide = torch.float8_e4m3fn, torch.float8_e5m2
    lost = error_of(x @ through(w, fine, stretch=False), exact)  # @inspect lost
    assert lost == 1.0, \
        "Without a scale, all weights are zero, and the error is 100 %."
    errors = [error_of(x @ through(w, d), exact) for d in (fine, wide)]  # @inspect errors
    assert 0.0255 < errors[0] < 0.0275, \
        "With a scale, the error in E4M3 is less than 3 %."
    assert 0.049 < errors[1] < 0.057, "In E5M2 it is about 5 %."
    ratio = errors[1] / errors[0]  # @inspect ratio
    assert 1.9 < ratio < 2.15, "One bit less of the fraction doubles the error."
    note(rf"""
        Without a scale everything is lost. With a scale the error is {errors[0]:.1%} in `E4M3` and
        {errors[1]:.1%} in `E5M2`.
    """)
    question(rf"""
        The largest number of E4M3 is `{torch.finfo(fine).max:.0f}`. Which factor stretches a tensor
        whose largest entry is `0.007` to this range?
    """, answer=torch.finfo(fine).max / 0.007,
        wrong={
            "That would shrink it: divide the other way round.": 0.007 / 448,
        },
        check=448 / 7 * 1000,
        hint="What times the largest entry has to come out?",
        why=r"""
            The factor takes the largest entry to the largest number of the format, `448`. Stretched
            like that, the small entries use all of the range; the factor is kept and divided out
            after the product.
        """, unit="times")


@aside
def what_supports_one_byte_training() -> None:
    """Multiplying in one byte, keeping a byte, and sending a byte are three different steps."""
    note(r"""
        NVIDIA's Transformer Engine began as a library of layers, such as linear ones, that multiply
        in FP8 with a scale for each tensor: E4M3 on the way forward, E5M2 for the gradients
        [@transformer-engine]. It has grown since. Its recipes also scale by *block*, where E4M3
        serves in both directions because each block has a range of its own [@te-blockwise], and its
        Adam can keep both moments in FP8 [@te-adam]. To use FP8 also for gradients that are stored
        and sent between devices is another work, by Peng and others [@peng2023]. So ask of any
        recipe what is multiplied, what is kept and what is sent in a byte.
    """)
    note(r"""
        Two sources of mixed precision are as easily mixed up. The method was proposed in a paper by
        Micikevicius and others [@micikevicius2018]. What PyTorch's functions do is written in
        PyTorch's documentation [@pytorch-amp], and not in the paper.
    """)
    link("https://docs.pytorch.org/docs/stable/amp.html", "torch.amp, the documentation")
    note(r"""
        What a single byte could save at most in memory is quickly counted: weight, gradient and
        Adam's two averages in `float32`, and the same four in a byte each. Recipes that work keep
        some of the four wider, so the truth lies between.
    """)
    formats = torch.float32, torch.float8_e4m3fn
    wide, narrow = (4 * d.itemsize for d in formats)
    assert (wide, narrow) == (16, 4), "bytes per parameter"
    question(r"""
        Suppose that a recipe stores weight and gradient in a byte each and leaves Adam's averages
        in `float32`. How many bytes per parameter is that?
    """, answer=sum(2 * d.itemsize for d in formats),
        check=1 + 1 + 4 + 4, unit="B")


def quantize(
    w: Float[Tensor, "inner out"], size: int
) -> tuple[Tensor, Tensor]:
    """Whole numbers of `size` bits, and the scale of each column."""
    top = 2 ** (size - 1) - 1
    scale = w.abs().amax(dim=0) / top
    return (w / scale).round().to(torch.int8), scale


@aside
def quantized_weights_trade_error_for_bytes() -> None:
    """Quantization makes a trained model smaller, and a little wrong."""
    note(r"""
        A model that is only used needs no gradients, and can do with coarse weights: whole numbers,
        and one scale for each column of a matrix.
    """)
    x, w = torch.randn(64, 256), torch.randn(256, 256)
    exact = x @ w
    error = {}
    for size in (8, 4):
        whole, scale = quantize(w, size)
        error[size] = error_of(x @ (whole * scale), exact)  # @inspect error
    assert w.nbytes / whole.nbytes == 4.0, "one byte for each weight"
    extra = scale.nbytes / whole.nbytes  # @inspect extra
    assert round(extra, 3) == 0.016, "more, for the scales"
    assert 0.0064 < error[8] < 0.0074, "8 bits: under a hundredth off"
    assert 0.12 < error[4] < 0.13, "4 bits: an eighth off"
    misbelief("Quantizing a trained model improves its performance.", rf"""
        Its size and often its speed. Its answers get worse: by {error[8]:.1%} for this random
        matrix at `8` bits, by {error[4]:.0%} at `4`. Whether that matters has to be measured on the
        model's task.
    """)

    note("`4` bits have no dtype of their own here. Such numbers share a byte in pairs:")
    whole, _ = quantize(w, 4)
    low, high = (whole.flatten() & 15).view(-1, 2).unbind(1)
    packed = (low | high << 4).to(torch.uint8)  # @inspect packed
    assert packed.nbytes == w.nbytes // 8, "really an eighth"
    halves = torch.stack([packed & 15, packed >> 4], dim=1).to(torch.int8)
    restored = torch.where(halves > 7, halves - 16, halves)
    assert torch.equal(restored.view(256, 256), whole), "and back"
    whole, scale = quantize(torch.randn(1000, 400), 4)
    question(r"""
        How many bytes does a matrix of `1000 × 400` take at `4` bits a weight, packed in pairs,
        with its scales in `float32`?
    """, answer=whole.numel() // 2 + scale.nbytes,
        check=1000 * 400 * 4 // 8 + 400 * 4, unit="B")
