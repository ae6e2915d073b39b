"""What a parameter is, and how large its first value should be."""
import itertools
import math
from statistics import median

import torch
from jaxtyping import Float
from torch import Tensor, nn

from litbook import aside, figure, misbelief, note, question

from .figures import plot_spread, plot_truncation
from .models import Stack, whole_numbers


def parameters() -> None:
    """Parameters and their first values."""
    note(r"""
        Before training, the weights of a model are random numbers. How large should they be? If
        they are too large, the outputs grow from layer to layer, and the gradients with them. The
        answer comes from counting the terms of a sum. This part also shows what makes a tensor a
        parameter, and what happens when parameters are moved to another device.
    """)
    a_parameter_is_a_tensor_that_is_registered()
    dividing_by_the_root_keeps_the_scale()
    unscaled_outputs_overflow()
    unscaled_gradients_explode()
    relu_needs_larger_weights()
    truncation_bounds_are_absolute()


@aside
def a_parameter_is_a_tensor_that_is_registered() -> None:
    """A module lists, saves and moves its registered parameters, but no plain tensor."""
    note(r"""
        What makes a tensor a parameter of a model, one that is trained and saved? It has to be
        wrapped in `nn.Parameter`, and be an attribute of a *module*, PyTorch's word for a model or
        a part of one. The module keeps a list of its parameters, and an optimizer is usually given
        this list. A plain tensor in the same module is not on the list: even if it gets a gradient
        (`requires_grad=True`), it is not trained, saved or moved, and no error says so.
        (`register_buffer` is for tensors that are saved and moved, but not trained.)
    """)
    module = nn.Module()
    module.learned = nn.Parameter(torch.randn(4, 2))  # @unnoticed: 4, 2, arguments swapped: any shape
    module.forgotten = torch.randn(4, 2, requires_grad=True)  # @unnoticed: 4, 2, arguments swapped: any shape
    kinds = type(module.learned), type(module.learned.data)  # @hide
    assert kinds == (nn.Parameter, Tensor), "The data of a parameter are a plain tensor."  # @hide
    names = [name for name, _ in module.named_parameters()]  # @inspect names
    assert names == ["learned"], "The module's list has only the parameter."
    assert list(module.state_dict()) == ["learned"], \
        "The module saves only the parameter."
    note(r"""
        A module's `to(device)` moves its parameters, and returns the same module. Here the other
        device is `meta`, where a tensor has a shape but no data:
    """)
    moved = module.to("meta")
    assert moved is module, "The module's to() returns the module itself."
    devices = module.learned.device.type, module.forgotten.device.type
    assert devices == ("meta", "cpu"), \
        "The parameter has moved, the plain tensor has not."
    model = Stack(width=64, layers=2)  # @hide
    total = sum(p.numel() for p in model.parameters())  # @hide
    assert total == 2 * 64**2 + 64 == 8256, "The model has 8256 parameters."  # @hide
    y: Float[Tensor, "batch"] = model(torch.randn(8, 64))  # @hide
    assert tuple(y.shape) == (8,), "There is one output for each row."  # @hide
    first, second, final = [whole_numbers(*p.shape) for p in model.parameters()]  # @hide
    rows, single = whole_numbers(8, 64), first @ second @ final  # @hide
    deep = rows @ first @ second @ final  # @hide
    assert torch.equal(rows @ single, deep), "One matrix gives the same outputs as the three layers."  # @hide
    question(r"""
        A module has three tensors: a parameter of `3 × 5` elements, a plain tensor of `5` elements
        that requires a gradient, and a parameter of `7`. An optimizer gets the module's list. How
        many elements does it train?
    """, answer=sum(
        p.numel() for p in nn.ParameterList([torch.ones(3, 5), torch.ones(7)]).parameters()
    ),
        wrong={
            "The plain tensor is not on the module's list.": 27,
        },
        check=3 * 5 + 7,
        hint="Which of the three tensors are on the module's list?",
        why=r"""
            Both parameters are on the list, `15 + 7` elements. The plain tensor gets a gradient,
            but the optimizer does not know about it.
        """, unit="elements")


def outputs(n: int, scale: float) -> Float[Tensor, "draws col"]:
    """The outputs of a layer with `n` inputs, for 192 random rows of inputs; its random weights have the standard deviation `scale`."""
    return torch.randn(192, n) @ (torch.randn(n, 64) * scale)


def dividing_by_the_root_keeps_the_scale() -> None:
    """Weights divided by the root of the number of inputs keep outputs as large as inputs."""
    note(r"""
        Before training, the weights of a layer are random numbers. How large should they be? An
        output is a sum with one term for each input: the input times its weight. The more terms are
        added, the larger the sum is, and the next layer makes it larger still.

        First by hand. Let `4` inputs and `4` weights each be `1` or `-1`. Then each term is `1` or
        `-1`, and the terms partly cancel. There are `2**4 = 16` possible rows of four signs:

        - in `2` rows all signs are equal, and the sum is `4` or `-4`;
        - in `8` rows one sign differs, and the sum is `2` or `-2`;
        - in `6` rows there are two of each, and the sum is `0`.

        The mean of the squared sums is $(2 \cdot 16 + 8 \cdot 4 + 6 \cdot 0) / 16 = 4$. So a sum of
        four terms has a typical size of $\sqrt 4 = 2$, not of four:
    """)
    sums = [sum(signs) for signs in itertools.product((1, -1), repeat=4)]
    mean_square = sum(s * s for s in sums) / len(sums)  # @inspect mean_square
    assert mean_square == 4, \
        "Over all rows of four signs, the mean squared sum is 4."
    note(r"""
        For $n$ terms the mean squared sum is $n$, and the typical size its root, $\sqrt n$. Why?
        The square of a sum consists of the squares of the terms, and of products of two different
        terms. The terms are independent, and each is positive as often as negative. So each product
        of two different terms is also positive as often as negative, and the products cancel on
        average. Only the $n$ squares remain, each `1` on average.

        The mean square of numbers with mean zero is their *variance*, and its root, the typical
        size, is their *standard deviation*. So divide the weights by the root, $\sqrt n$, and
        outputs are as large as inputs. `outputs` draws a matrix of inputs with `n` columns and
        standard deviation `1`, and a matrix of weights with `n` rows and a given standard
        deviation, and returns their product:
    """)
    widths = [256, 1024, 4096, 16384]
    roots = [math.sqrt(n) for n in widths]  # @inspect roots
    unscaled = [outputs(n, 1.0).std().item() for n in widths]  # @inspect unscaled
    divided = [outputs(n, n**-0.5).std().item() for n in widths]  # @inspect divided
    y: Float[Tensor, "col"] = torch.randn(16384) @ torch.randn(16384, 32)  # @hide
    assert tuple(y.shape) == (32,), "There is one output for each column."  # @hide
    printed = [-40.78, 150.81, -84.10, 60.34, 18.92]  # @hide
    draws = [round(abs(p) / math.sqrt(16384), 2) for p in printed]  # @hide
    assert draws == [0.32, 1.18, 0.66, 0.47, 0.15], \
        "The outputs that CS336 prints in five editions are of that size as well."  # @hide
    measured = [s / r for s, r in zip(unscaled, roots)]  # @hide
    assert [round(s / r, 1) for s, r in zip(unscaled, roots)] == [1.0] * 4, \
        "With weights of standard deviation 1, the outputs' standard deviation is the root of the number of inputs."
    assert 0.95 < min(measured), \
        "The outputs' standard deviation is less than 5 % below the root."  # @hide
    assert max(measured) < 1.05, \
        "The outputs' standard deviation is less than 5 % above the root."  # @hide
    growth = (unscaled[-1] / unscaled[0]) ** 2  # @hide
    assert round(math.log2(growth)) == 6, \
        "From 256 to 16384 inputs, the variance doubles 6 times, as the inputs do."  # @hide
    assert [round(s, 1) for s in divided] == [1.0] * 4, \
        "With weights divided by the root, the outputs have the size of the inputs."
    figure(plot_spread(widths, unscaled, divided), caption=r"""
        Standard deviation of the outputs against the number of inputs: with weights of variance
        one, and with these weights divided by the root. Both axes are logarithmic.
    """, alt=rf"""
        With unit weights the dots climb along a dotted line of slope one half, from {roots[0]:.0f}
        at a width of {widths[0]} to {roots[-1]:.0f} at {widths[-1]}. With weights divided by the
        root of the width they stay on a level line at one.
    """)
    misbelief("The variance of the output is related to the square root of the number of inputs.",
              "The *variance* grows with the number of inputs itself. The *standard deviation* grows with its root.")
    z = outputs(16384, 1 / math.sqrt(16384)).flatten()  # @hide
    different = len(set(z.tolist()))  # @hide
    assert 0.99 < different / z.numel(), "Hardly any two outputs are equal."  # @hide
    inside = (z.abs() < 1).double().mean().item()  # @hide
    assert 0.64 < inside < 0.73, \
        "About two thirds of the outputs lie between -1 and 1."  # @hide
    misbelief("After scaling, each element of the output is constant.", rf"""
        No, the elements are as random as before: {inside:.0%} of them lie between `-1` and `1`, the
        others do not. Only their standard deviation is the same for any width.
    """)
    drawn = nn.init.xavier_normal_(torch.empty(32, 16384)).std().item() * math.sqrt(16384)  # @hide
    formula = math.sqrt(2 * 16384 / (16384 + 32))  # @hide
    assert round(formula, 5) == 1.41283, "For 16384 inputs and 32 outputs, the formulas differ by a factor of 1.41."  # @hide
    assert 0.98 < drawn / formula < 1.02, "The weights that were drawn differ by the same factor."  # @hide
    misbelief("Scaling by one over the root of the inputs is Xavier initialization, up to a constant.", rf"""
        It is LeCun's rule [@lecun1998]. Xavier initialization divides by the root of
        `(inputs + outputs) / 2`, a compromise between the sizes of outputs and of gradients
        [@glorot2010]. The factor depends on the shape: its weights are equal to LeCun's for a
        square layer, and {formula:.2f} times as large for `16384` inputs and `32` outputs.
    """)
    question(r"""
        A script draws all weights of a model with a standard deviation of `0.02`. Which of its
        layers make outputs larger than inputs: those with more or those with fewer inputs, and from
        what number of inputs on?
    """, answer=round(1 / 0.02**2),
        wrong={
            "That is the root of the number of inputs.": 50,
        },
        check=next(n for n in range(1, 9999) if 0.02 * math.sqrt(n) >= 1),
        hint=r"For which $n$ is $1/\sqrt{n}$ equal to `0.02`?", unit="inputs",
        why=r"""
            An output has the size $0.02\,\sqrt{n}$, so layers with more inputs make larger outputs.
            $1/\sqrt{n}$ is `0.02` at $n$ = `50 * 50`: above that, outputs are larger than inputs.
        """)


@aside
def unscaled_outputs_overflow() -> None:
    """Without scaling, the outputs of a stack of equally large random matrices grow by about the same factor in every layer, until they overflow."""
    note(r"""
        What happens in a deep stack of equally large matrices if the weights come straight from
        `torch.randn`? The outputs grow by about the same factor in every layer, because each matrix
        multiplies the size of its inputs by the square root of their number. At some depth they are
        too large for their format, and become infinite. (*Scaling* prevents it: weights are
        [divided by the square root of the number of inputs](#dividing_by_the_root_keeps_the_scale).)

        By hand: the weights, and the first inputs, are independent random numbers with mean `0` and
        variance `1`. With `64` inputs, an output is a sum of `64` products of an input and a
        weight. Each product has variance `1 * 1 = 1`. Variances of independent terms add up, so the
        output has variance `64`, and a typical size (standard deviation) of $\sqrt{64} = 8$. The
        next layer gets inputs of size `8`, and its outputs have size `8 * 8 = 64`.

        So $L$ layers make $8^L = 2^{3L}$. The largest value of `float32` is just below $2^{128}$,
        and outputs of typical size reach it after $128/3$ layers, nearly `43`.
        `layers_until_infinity` multiplies random inputs by such matrices until an element is
        infinite. In `25` runs:
    """)

    def layers_until_infinity() -> int:
        x, depth = torch.randn(64), 0
        while x.isfinite().all():
            x, depth = torch.randn(64, 64) @ x, depth + 1
        return depth

    powers = math.log(torch.finfo(torch.float32).max, 8)  # @hide
    depths = [layers_until_infinity() for _ in range(25)]  # @inspect min(depths), max(depths)  # @unnoticed: 25: enough for the middle of them
    typical = median(depths)
    assert 42.6 < powers < 42.7, \
        "From 1 to the largest float32 it takes 42.7 factors of 8."  # @hide
    assert typical == 43, \
        "In the median run, an element is infinite after 43 layers."
    question(r"""
        Layers with `16` inputs and `16` outputs have weights of standard deviation `1`. After how
        many layers do outputs of size `1` reach the size $2^{128}$?
    """, answer=round(math.log(2.0) * 128 / math.log(math.sqrt(16))),
        check=128 // 2, unit="layers",
        wrong={
            "A sum of 16 terms does not grow 16 times: its terms partly cancel.": 32,
        },
        hint="By which power of two does each layer multiply the size?",
        why=r"""
            Each layer multiplies the size by $\sqrt{16} = 4 = 2^2$, so the size is $2^{128}$ after
            `128 / 2 = 64` layers.
        """)


@aside
def unscaled_gradients_explode() -> None:
    """If the loss of a stack of matrices is its squared output, weights that are too large make gradients grow more than outputs."""
    note(r"""
        If all weights of a deep stack are $c$ times too large, how much larger are its gradients?
        If the loss is the square of the output, even more than its outputs. The output contains the
        weights of each layer once, so the loss contains them twice. The gradient is the derivative
        with respect to one of them, which takes one away.

        By hand, take two layers with one weight each, $a$ and $b$, and the input `1`. The output is
        $ab$, the loss $(ab)^2 = a^2b^2$, and the gradient of $a$ is $2ab^2$:

        | both weights | output | gradient of $a$ |
        |---|---|---|
        | `1` | `1 * 1 = 1` | `2 * 1 * 1**2 = 2` |
        | `3` | `3 * 3 = 9` | `2 * 3 * 3**2 = 54` |

        With weights `3` times as large, the output is $3^2 = 9$ times as large, and the gradient
        `54 / 2 = 27` times, $3^3$. In general, for $L$ layers, the factor of the output is $c^L$,
        and that of the gradient $c^{2L - 1}$.

        Now matrices. A layer with `64` inputs keeps its outputs about as large as its inputs if
        weights of standard deviation `1` are *scaled*, that is,
        [divided by the square root](#dividing_by_the_root_keeps_the_scale) of `64`, which is `8`.
        Unscaled weights are `8` times as large. In `10` layers, expect gradients that are $8^{19}$
        times as large, because `2 * 10 - 1 = 19`. (Dividing by `8`, a power of two, rounds nothing,
        so the factor is exact.) `first_gradient` sends `5` random rows through the layers, takes
        the mean squared output as the loss, and returns the norm of the gradient of the first
        layer:
    """)
    x, stack = torch.randn(5, 64), torch.randn(10, 64, 64)  # @unnoticed: 5: any batch

    def first_gradient(scale: float) -> float:
        y, weights = x, [w.requires_grad_() for w in stack * scale]
        for w in weights:
            y = y @ w
        loss = y.square().mean()
        return float(torch.autograd.grad(loss, weights[0])[0].norm())

    ratio = first_gradient(1) / first_gradient(1 / 8)  # @inspect ratio
    assert ratio == 8.0 ** (2 * 10 - 1), \
        "Without scaling, the gradient is 8 ** 19 times as large."
    stack = stack[:3]  # @hide
    question(r"""
        A stack has `3` layers of `64` inputs, and its loss is the mean squared output. How many
        times as large is the gradient of the first layer with unscaled weights as with scaled ones?
    """, answer=8 ** (2 * 3 - 1),
        check=first_gradient(1.0) / first_gradient(1 / 8), unit="times",
        wrong={
            "The derivative takes away one factor of the first layer.": 8**6,
            "The loss is a square.": 8**3,
        },
        hint="How often is the factor `8` in the loss, and how many does the derivative take away?",
        why="The squared loss has the factor `8` twice for each layer, `6` times. The derivative takes away one: `8 ** 5`.")


@aside
def relu_needs_larger_weights() -> None:
    """With ReLU, weights have to be larger by the root of two to keep the size of outputs."""
    note(r"""
        *ReLU* sets negative numbers to zero. *LeCun's rule* divides the weights by
        [the root of the number of inputs](#dividing_by_the_root_keeps_the_scale). Does it still
        keep outputs as large as inputs if ReLU is applied after each layer?

        No. About half of the outputs are negative and become zero, so each layer loses half of the
        *mean square*, the mean of all squared values. *He's rule* multiplies LeCun's weights by
        $\sqrt{2}$ [@he2015]. That doubles the mean square, and makes up for the lost half. Send
        `64` random rows through `4` layers with ReLU, with each rule:
    """)
    n = 512  # @unnoticed: 512: any width
    lecun = he = torch.randn(64, n)  # @unnoticed: 64: any batch
    for _ in range(4):
        w = torch.randn(n, n) / math.sqrt(n)
        lecun = (lecun @ w).relu()
        he = (he @ (w * math.sqrt(2))).relu()
    left = lecun.square().mean().item()  # @inspect left
    kept = he.square().mean().item()  # @inspect kept
    assert round(math.log2(left)) == -4, \
        "With LeCun's rule, the mean square is halved 4 times."
    assert round(kept) == 1, "With He's rule, the mean square stays near 1."
    stacks = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 10)  # all signs of ten weights  # @hide
    runs = torch.ones(len(stacks))  # @hide
    for layer in stacks.T:  # @hide
        runs = (runs * layer).relu()
    question(r"""
        `10` layers with ReLU have weights divided by the root of the number of inputs, without He's
        factor. How many times smaller is the mean square after these layers than before?
    """, answer=2**10,
        check=1 / runs.square().mean().item(), unit="times",
        wrong={
            "That adds up the halvings instead of multiplying them.": 20,
        },
        hint="What share of the mean square does each layer leave?",
        why="Each layer leaves half. After `10` layers that is `1 / 2**10`.")


@aside
def truncation_bounds_are_absolute() -> None:
    """The bounds of `trunc_normal_` are values, not multiples of the standard deviation."""
    note(r"""
        Some scripts cut off large initial weights, *outliers*, with
        `trunc_normal_(w, std=std, a=-3, b=3)`. That is meant to allow three standard deviations on
        either side. Does it?

        No, because `a` and `b` are values, not multiples of `std`. (Their defaults, `-2` and `2`,
        are values as well.) A layer with `16384` inputs may have weights with a standard deviation
        of one over the root of `16384`, `1 / 128`. Then the bound `3` is `3 * 128 = 384` standard
        deviations away, and no weight comes near it. The bounds have to be `-3 * std` and
        `3 * std`. Draw weights for `64` outputs with each, divide them by `std`, and count those
        that are beyond `3`:
    """)
    std = 1 / math.sqrt(16384)
    w = torch.empty(16384, 64)
    absolute = nn.init.trunc_normal_(w, std=std, a=-3, b=3) / std
    w = nn.init.trunc_normal_(w, std=std, a=-3 * std, b=3 * std)
    relative = w / std
    beyond = [int((x.abs() > 3).sum()) for x in (absolute, relative)]  # @inspect beyond
    expected = w.numel() * math.erfc(3 / math.sqrt(2))  # @hide
    assert 0.94 < beyond[0] / expected < 1.06, \
        "With bounds of 3, the number of weights beyond three deviations is that of a normal distribution, to 6 %."
    uncut, same = [  # @hide
        nn.init.trunc_normal_(w.clone(), 0, std, -bound, bound, torch.Generator().manual_seed(4))
        for bound in (300, 3)
    ]
    assert torch.equal(same, uncut), \
        "Bounds of 300 give the very same weights as bounds of 3."  # @hide
    assert 2.9 < relative.abs().max() <= 3, \
        "With bounds of 3 * std, the largest weight is near three deviations, and none is beyond."
    misbelief(r"""
        `trunc_normal_(w, std=1 / sqrt(n), a=-3, b=3)` removes outliers beyond three deviations.
    """, rf"""
        In this layer it removes none: the bounds are {3 / std:.0f} standard deviations away. Write
        `a=-3 * std, b=3 * std`.
    """)
    figure(plot_truncation(absolute, relative), caption=rf"""
        {absolute.numel():,} initial weights, in standard deviations. Bounds of `±3` leave both
        tails; bounds of `±3·std` cut them off.
    """, alt=r"""
        Two bell curves that coincide in the middle. The one with bounds of plus and minus three
        runs on to beyond four on either side; the one with bounds of three deviations ends at
        three.
    """)
    wide = nn.init.trunc_normal_(torch.empty(10**6), mean=0, std=1, a=-2, b=2)  # @hide
    density = math.exp(-2) / math.sqrt(2 * math.pi)  # @hide
    theory = math.sqrt(1 - 4 * density / math.erf(math.sqrt(2)))  # @hide
    assert 0.8796 < theory < 0.8797, "In theory, cutting at two deviations leaves a standard deviation of 0.88."  # @hide
    assert 0.997 < wide.std().item() / theory < 1.003, "The standard deviation agrees with the theory."  # @hide
    outs = torch.randn(512, 16384) @ (relative / math.sqrt(16384))  # @hide
    farthest, largest = outs.abs().max() / outs.std(), relative.abs().max()  # @hide
    assert farthest > largest, \
        "The largest output is farther out than any weight, in standard deviations."  # @hide

    def farthest_weight(b: float) -> float:  # of such a layer, in standard deviations  # @hide
        drawn = nn.init.trunc_normal_(torch.empty(400, 64), std=1 / math.sqrt(400), a=-b, b=b)
        return drawn.abs().max().item() * math.sqrt(400)

    question(r"""
        The weights of a layer with `400` inputs should have a standard deviation of `1` over the
        root of `400` *before* they are cut off at two deviations. What `b` does that need?
    """, answer=2 / math.sqrt(400),
        check=next(b for b in (k / 100 for k in range(1, 300)) if farthest_weight(b) > 1.9),
        wrong={
            "b is a value, not a multiple of the standard deviation.": 2,
        },
        hint="How large is the standard deviation?",
        why="The standard deviation is `1 / 20`, and `b` is a value: two standard deviations.")
