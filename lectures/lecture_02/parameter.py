"""What a parameter is, and how large its first value should be."""
import math

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
        parameter, and what happens to parameters that are moved.
    """)
    a_parameter_is_a_tensor_that_is_registered()
    an_output_is_a_sum_of_many_terms()
    dividing_by_the_root_keeps_the_scale()
    xavier_agrees_for_square_layers_only()
    unscaled_gradients_explode()
    relu_needs_larger_weights()
    truncation_bounds_are_absolute()
    weights_are_truncated_and_outputs_are_not()
    a_deep_linear_model_is_one_matrix()
    a_module_moves_in_place()


@aside
def a_parameter_is_a_tensor_that_is_registered() -> None:
    """A parameter is a tensor that its module knows about."""
    note(r"""
        What makes a tensor a parameter of a model, one that is trained and saved? It has to be
        wrapped in `nn.Parameter`. A *module*, PyTorch's word for a part of a model, keeps a list of
        its parameters, and this list is what one hands to an optimizer. A plain tensor in the same
        place is not on the list: it is neither trained nor saved, and no error says so. First the
        wrapper:
    """)
    w = nn.Parameter(torch.randn(4, 2))  # @inspect w  # @unnoticed: 4, 2, arguments swapped: any shape
    assert isinstance(w, Tensor), "A parameter is a tensor."
    kinds = type(w), type(w.data)  # @hide
    assert kinds == (nn.Parameter, Tensor), "The data of a parameter are a plain tensor."  # @hide
    assert w.requires_grad is True, "A parameter asks for a gradient."
    note("Now give a module one parameter and one plain tensor, and ask which it knows:")
    module = nn.Module()
    module.learned, module.forgotten = w, torch.randn(4, 2)  # @unnoticed: 4, 2, arguments swapped: any shape
    names = [name for name, _ in module.named_parameters()]  # @inspect names
    assert names == ["learned"], "The module's list has the parameter alone."
    assert list(module.state_dict()) == ["learned"], \
        "The module saves the parameter alone."  # @hide
    module = nn.Module()
    module.first = nn.Parameter(torch.ones(3, 5))  # @hide
    module.second = torch.ones(5, requires_grad=True)  # @hide
    module.third = nn.Parameter(torch.ones(7))  # @hide
    question(r"""
        A module has three tensors: a parameter of `3 × 5` numbers, a plain tensor of `5` numbers
        that asks for a gradient, and a parameter of `7`. How many numbers does an optimizer train?
    """, answer=sum(p.numel() for p in module.parameters()),
        wrong={
            "The plain tensor is not on the module's list.": 27,
        },
        check=3 * 5 + 7,
        hint="Which of the three tensors are on the module's list?",
        why=r"""
            Both parameters are on the list, `15 + 7` numbers. The plain tensor gets a gradient, but
            the optimizer does not know about it.
        """, unit="numbers")


def outputs(n: int, scale: float) -> Float[Tensor, "draws col"]:
    """Outputs of a layer with `n` inputs for many random draws; its weights have size `scale`."""
    return torch.randn(192, n) @ (torch.randn(n, 64) * scale)


@aside
def an_output_is_a_sum_of_many_terms() -> None:
    """Outputs of a layer grow with the root of its number of inputs."""
    note(r"""
        Before training, the weights of a layer are random numbers. How large should they be? With
        variance `1` they are too large, because an output is a sum with one term for each input,
        input times weight. Let inputs and weights have mean `0` and variance `1`. Then each term
        has variance `1`, and the variances of independent terms add up. So with $n$ inputs an
        output has variance $n$, and *standard deviation*, the root of the variance, $\sqrt{n}$.
        Here are `32` outputs of `16384` inputs. Their standard deviation should be `128`:
    """)
    x, w = torch.randn(16384), torch.randn(16384, 32)
    y: Float[Tensor, "col"] = x @ w  # @inspect y
    assert tuple(y.shape) == (32,), "There is one output for each column."  # @hide
    printed = [-40.78, 150.81, -84.10, 60.34, 18.92]  # @hide
    draws = [abs(p) / math.sqrt(16384) for p in printed]  # @hide
    rounded = [round(draw, 2) for draw in draws]  # @hide
    assert rounded == [0.32, 1.18, 0.66, 0.47, 0.15], \
        "The outputs that CS336 prints in five editions are of that size, too."  # @hide
    note(r"""
        `32` numbers are too few to measure a standard deviation. `outputs` draws thousands: it
        multiplies random inputs by random weights of a given standard deviation, here `1`. Compare
        the standard deviation of the outputs with the root of the number of inputs:
    """)
    widths = [256, 1024, 4096, 16384]
    spread = [outputs(n, 1.0).std().item() for n in widths]  # @inspect spread
    roots = [math.sqrt(n) for n in widths]  # @inspect roots
    assert roots == [16, 32, 64, 128], \
        "The roots of the four numbers of inputs are 16, 32, 64 and 128."  # @hide
    measured = [s / r for s, r in zip(spread, roots)]  # @inspect measured  # @hide
    assert 0.95 < min(measured), \
        "The outputs' standard deviation is less than 5 % below the root."  # @hide
    assert max(measured) < 1.05, \
        "The outputs' standard deviation is less than 5 % above the root."  # @hide
    growth = (spread[-1] / spread[0]) ** 2  # @hide
    assert round(math.log2(growth)) == 6, \
        "From 256 to 16384 inputs, the variance doubles 6 times, as the inputs do."  # @hide
    misbelief("The variance of the output is related to the square root of the number of inputs.",
              "The *variance* grows with the number of inputs itself. The *standard deviation* grows with its root.")
    note("The way out is to divide the weights by that root. The picture shows outputs with both kinds of weights:")
    level = [outputs(n, n**-0.5).std().item() for n in widths]  # @hide
    figure(plot_spread(widths, spread, level), caption=r"""
        Standard deviation of the outputs against the number of inputs: with weights of variance
        one, and with these weights divided by the root. Both axes are logarithmic.
    """, alt=rf"""
        With unit weights the dots climb along a dotted line of slope one half, from {roots[0]:.0f}
        at a width of {widths[0]} to {roots[-1]:.0f} at {widths[-1]}. With weights divided by the
        root of the width they stay on a level line at one.
    """)
    question(r"""
        A layer has `10,000` inputs of mean `0` and variance `1`. Its weights have a standard
        deviation of `0.1` instead of `1`. Which standard deviation do its outputs have, to the
        nearest whole number?
    """, answer=round(outputs(10_000, 0.1).std().item()),
        wrong={
            "That is the variance; its root is asked for.": 100,
        },
        check=round(0.1 * math.sqrt(10_000)),
        hint="The variance of each term is now `0.1` squared. How many terms are added?",
        why=r"""
            Each term has variance `0.01`, and `10,000` of them add up to `100`. The standard
            deviation is the root of that, `10`.
        """, within=0.1)


@aside
def dividing_by_the_root_keeps_the_scale() -> None:
    """With weights divided by the root of the number of inputs, outputs are as large as inputs."""
    note(r"""
        A layer has $n$ inputs, and an output is a sum of $n$ terms, input times weight. With
        weights of standard deviation `1`, outputs have standard deviation
        [$\sqrt{n}$](#an_output_is_a_sum_of_many_terms). Outputs are the inputs of the next layer,
        so they should stay as large as the inputs, with a standard deviation of `1`. So divide the
        weights by $\sqrt{n}$; then the outputs are divided by it, too. `outputs` multiplies random
        inputs by random weights of a given standard deviation:
    """)
    widths = [256, 4096, 65536]
    spread = {n: outputs(n, 1 / math.sqrt(n)).std().item() for n in widths}  # @inspect spread
    rounded = {n: round(s, 1) for n, s in spread.items()}
    assert rounded == {256: 1.0, 4096: 1.0, 65536: 1.0}, \
        "With 256, 4096 and 65536 inputs, outputs have a standard deviation of 1."
    inputs = 16384  # @unnoticed: 16384: any width
    y = outputs(inputs, 1 / math.sqrt(inputs)).flatten()  # @inspect y
    different = len(set(y.tolist()))  # @hide
    assert 0.99 < different / y.numel(), "Hardly two outputs are alike."  # @hide
    inside = (y.abs() < 1).double().mean().item()  # @inspect inside as %  # @hide
    assert 0.64 < inside < 0.73, \
        "About two thirds of the outputs lie between -1 and 1."  # @hide
    misbelief("After scaling, each element of the output is constant.", rf"""
        No, the elements are as random as before: {inside:.0%} of them lie between `-1` and `1`, the
        others do not. What is the same for any width is their standard deviation.
    """)
    question(r"""
        A script draws all weights with a standard deviation of `0.02`. For which number of inputs
        do outputs have a standard deviation of `1`?
    """, answer=round(1 / 0.02**2),
        wrong={
            "That is the root of the number of inputs.": 50,
        },
        check=next(n for n in range(1, 9999) if 0.02 * math.sqrt(n) >= 1),
        hint=r"For which $n$ is $1/\sqrt{n}$ equal to `0.02`?", unit="inputs",
        why=r"$1/\sqrt{n}$ has to be `0.02`. So the root is `1 / 0.02 = 50`, and $n$ is `50 * 50`.")


@aside
def xavier_agrees_for_square_layers_only() -> None:
    """Xavier's rule and division by the root of the inputs agree for square layers only."""
    note(r"""
        There are two common rules for the standard deviation of a layer's first weights, with
        $n_\mathrm{in}$ inputs and $n_\mathrm{out}$ outputs. LeCun's rule [@lecun1998] looks at the
        inputs alone, so that outputs are
        [as large as inputs](#dividing_by_the_root_keeps_the_scale):

        $$1/\sqrt{n_\mathrm{in}}$$

        Xavier's rule, also called Glorot's, looks at the outputs, too, so that gradients in the
        backward pass keep their size as well as possible [@glorot2010]:

        $$\sqrt{2/(n_\mathrm{in}+n_\mathrm{out})}$$

        With as many outputs as inputs, both are the same. With fewer outputs, Xavier's weights are
        larger. `against_lecun` draws weights by Xavier's rule, in a matrix with a row for each
        output, as PyTorch keeps it, and divides their standard deviation by LeCun's:
    """)

    def against_lecun(inputs: int, outputs: int) -> float:
        w = nn.init.xavier_normal_(torch.empty(outputs, inputs))
        return w.std().item() * math.sqrt(inputs)

    inputs, outputs = 16384, 32
    square = against_lecun(512, 512)  # @inspect square  # @unnoticed: 512: any square
    narrow = against_lecun(inputs, outputs)  # @inspect narrow
    assert 0.98 < square < 1.02, \
        "For a square layer, both rules agree."
    formula = math.sqrt(2 * inputs / (inputs + outputs))  # @inspect formula
    assert round(formula, 5) == 1.41283, \
        "For 16384 inputs and 32 outputs, the formulas differ by a factor of 1.41."
    assert 0.98 < narrow / formula < 1.02, \
        "The weights that were drawn differ by the same factor."
    misbelief("Scaling by one over the root of the inputs is Xavier initialization, up to a constant.",
        rf"""
            The factor between them is no constant: it is one for a square layer, and {formula:.2f}
            for this layer with few outputs.
        """)
    note(r"""
        PyTorch's `nn.Linear` follows neither rule by default. It draws weights evenly between
        $-1/\sqrt{n_\mathrm{in}}$ and $1/\sqrt{n_\mathrm{in}}$, which makes their standard deviation
        smaller than LeCun's by a factor of $\sqrt{3}$. Here the weights are multiplied by
        $\sqrt{n_\mathrm{in}}$:
    """)
    default = nn.Linear(4096, 64).weight.detach() * math.sqrt(4096)  # @unnoticed: 64: any number of outputs
    assert 0.99 < default.abs().max() < 1.01, "The largest weight is at 1."
    std = default.std().item()  # @inspect std
    assert 0.57 < std < 0.585, \
        "Their standard deviation is one over the root of 3."
    question(r"""
        A layer has `100` inputs and `700` outputs. Which standard deviation does Xavier's rule give
        its weights, and which LeCun's? Give two numbers.
    """, answer=[math.sqrt(2 / (100 + 700)), 1 / math.sqrt(100)],
        check=[0.05, 0.1],
        hint="Put the two numbers into the two formulas.",
        why=r"""
            Xavier's rule gives the root of `2 / 800`, LeCun's one over the root of `100`. With more
            outputs than inputs, Xavier's weights are the smaller ones.
        """)


@aside
def unscaled_gradients_explode() -> None:
    """Weights that are too large make gradients explode."""
    note(r"""
        Weights straight from `torch.randn` have a standard deviation of `1`. In a layer with `64`
        inputs they make outputs `8` times [as large as inputs](#an_output_is_a_sum_of_many_terms),
        $\sqrt{64}$. What does that do to the gradients of a deep model? `first_gradient` multiplies
        by `10` layers of width `64`, squares the result for a loss, and returns how large the
        gradient of the first layer is. Compare unscaled weights with weights divided by `8`:
    """)

    x, stack = torch.randn(8, 64), torch.randn(10, 64, 64)  # @unnoticed: 8: any batch

    def first_gradient(scale: float) -> float:
        weights = [w.requires_grad_() for w in stack * scale]
        y = x
        for w in weights:
            y = y @ w
        loss = y.square().mean()
        return float(torch.autograd.grad(loss, weights[0])[0].norm())

    wild = first_gradient(1.0)  # @inspect wild
    tame = first_gradient(1 / 8)  # @inspect tame
    assert wild / tame == 8.0 ** (2 * 10 - 1), \
        "Without scaling, the gradient is 8 ** 19 times as large."
    note(r"""
        Why `8 ** 19`? Each of the `10` layers makes the output `8` times as large. The loss squares
        the output, so it has the factor `8` twice for each layer, `2 * 10` times in all. The
        gradient of the first layer's weights has one factor less: the loss is a multiple of the
        *square* of these weights, and the derivative of a square is only a multiple of the weights.
    """)
    question(r"""
        How many times as large is the gradient of the first layer without scaling, in a stack of
        `3` layers of width `64`, with a squared loss?
    """, answer=8 ** (2 * 3 - 1),
        check=8.0**3 * 8.0**2, unit="times",
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
        *ReLU* between two layers sets negative numbers to zero. Does division of the weights by
        [the root of the number of inputs](#dividing_by_the_root_keeps_the_scale) still keep outputs
        as large as inputs? No. About half of the numbers are negative, so each layer loses half of
        the *mean square*, the mean of all squared numbers. He's rule makes up for that by a factor
        of $\sqrt{2}$ on the weights, because it doubles their squares [@he2015]. Send `64` random
        rows through `4` layers with ReLU, by both rules:
    """)
    n = 512  # @unnoticed: 512: any width
    lecun = he = torch.randn(64, n)  # @unnoticed: 64: any batch
    for _ in range(4):
        w = torch.randn(n, n) / math.sqrt(n)
        lecun, he = (lecun @ w).relu(), (he @ w * math.sqrt(2)).relu()
    left = lecun.square().mean().item()  # @inspect left
    kept = he.square().mean().item()  # @inspect kept
    assert round(math.log2(left)) == -4, \
        "By LeCun's rule, the mean square is halved 4 times, to 1 / 16."
    assert round(kept) == 1, "By He's rule, the mean square stays near 1."
    question(r"""
        `10` layers with ReLU have weights divided by the root of the number of inputs, without He's
        factor. By how many times is the mean square smaller after them than before?
    """, answer=2**10,
        check=math.prod([2] * 10), unit="times",
        wrong={
            "That adds up the halvings instead of multiplying them.": 20,
        },
        hint="What does each layer leave of the mean square?",
        why="Each layer leaves half. After `10` layers that is `1 / 2**10`.")



def truncated(
    bound: float, generator: torch.Generator | None = None
) -> Float[Tensor, "inner col"]:
    """Weights of 16384 inputs and 64 outputs, of unit deviation, cut off at ± `bound`."""
    n = 16384
    w, std = torch.empty(n, 64), n**-0.5
    nn.init.trunc_normal_(w, 0, std, -bound, bound, generator)
    return w * math.sqrt(n)


@aside
def truncation_bounds_are_absolute() -> None:
    """The bounds of `trunc_normal_` are values, not multiples of the standard deviation."""
    note(r"""
        Some scripts cut off large initial weights, *outliers*, by
        `trunc_normal_(w, std=std, a=-3, b=3)`. That is meant to allow three standard deviations to
        either side. But `a` and `b` are values. With `16384` inputs the standard deviation of the
        weights is one over the root of that, `1 / 128`, so `3` is far away:
    """)
    std = 1 / math.sqrt(16384)  # @inspect std
    assert 3 / std == 384.0, "The value 3 is 384 standard deviations."
    misbelief(r"""
        `trunc_normal_(w, std=1 / sqrt(n), a=-3, b=3)` removes outliers beyond three deviations.
    """, rf"""
        It removes none: the bounds are {3 / std:.0f} standard deviations away, where no number is
        ever drawn. Write `a=-3 * std, b=3 * std`.
    """)
    note(r"""
        `truncated` draws weights with given bounds, and returns them as multiples of `std`. With
        the bounds `-3` and `3` as many are beyond three standard deviations as without bounds.
        (`math.erfc(3 / math.sqrt(2))` is the share of a normal distribution that lies out there.)
        And much wider bounds, of `300`, give the same weights:
    """)
    absolute = truncated(3.0)  # @inspect absolute
    beyond = (absolute.abs() > 3).sum().item()  # @inspect beyond
    expected = absolute.numel() * math.erfc(3 / math.sqrt(2))  # @inspect expected
    assert 0.94 < beyond / expected < 1.06, \
        "As many weights are beyond three deviations as one expects without bounds."
    uncut = truncated(300.0, torch.Generator().manual_seed(4))
    same = truncated(3.0, torch.Generator().manual_seed(4))
    assert torch.equal(same, uncut), \
        "Bounds of 300 give the very same weights as bounds of 3."
    note("With bounds of `3 * std`, no weight is beyond three standard deviations:")
    relative = truncated(3 * std)  # @inspect relative
    assert 2.9 < relative.abs().max() < 3.0001, \
        "With bounds of 3 * std, the largest weight is at three deviations."
    assert relative.abs().max() < absolute.abs().max(), \
        "Without a cut, the largest weight is larger."  # @hide
    figure(plot_truncation(absolute, relative), caption=rf"""
        {absolute.numel():,} initial weights, in deviations. Bounds of `±3` leave both tails, bounds
        of `±3·std` cut them off.
    """, alt=r"""
        Two bell curves that coincide in the middle. The one with bounds of plus and minus three
        runs on to beyond four on either side; the one with bounds of three deviations ends at
        three.
    """)
    question(r"""
        A layer of `400` inputs gets weights with a standard deviation of `1` over the root of
        `400`. Which `b` cuts them off at two standard deviations?
    """, answer=2 / math.sqrt(400),
        check=2 / 20,
        wrong={
            "b is a value, not a multiple of the standard deviation.": 2,
        },
        hint="How large is the standard deviation?",
        why="The standard deviation is `1 / 20`, and `b` is a value: two of them.")


@aside
def weights_are_truncated_and_outputs_are_not() -> None:
    """Cutting off large weights does not cut off large outputs."""
    note(r"""
        If the initial weights are [cut off](#truncation_bounds_are_absolute) at three standard
        deviations, are the outputs of the layer cut off, too? No. An output is a sum of many terms,
        input times weight. Each weight is bounded, but the inputs are not, and many small terms can
        add up. `truncated` draws weights for `16384` inputs, cut off at three standard deviations.
        Multiply `512` random rows by them:
    """)
    w = truncated(3 / math.sqrt(16384)) / math.sqrt(16384)
    y = torch.randn(512, 16384) @ w  # @unnoticed: 512: any batch
    largest = w.abs().max().item() * math.sqrt(16384)  # @inspect largest
    assert 2.9 < largest < 3.0001, \
        "The largest weight is at three standard deviations."
    std = y.std().item()  # @inspect std
    assert 0.95 < std < 1.02, \
        "The standard deviation of the outputs is about 1."
    farthest = y.abs().max().item() / std  # @inspect farthest  # @unnoticed: / -> *, factor std left out: that deviation is one
    assert farthest > largest, \
        "The largest output is farther out than any weight, in standard deviations."
    question(r"""
        Every weight lies between `-3/128` and `3/128`, and each of the `16384` inputs of a layer is
        `1` or `-1`. How large can an output be at most?
    """, answer=3 / 128 * 16384,
        check=3 * math.sqrt(16384),
        wrong={
            "That is the bound of the weights, in standard deviations.": 3,
        },
        hint="How large is each term of the sum at most, and how many are there?",
        why=r"""
            Each of the `16384` terms is at most `3/128`, and they may all have the same sign. That
            is `384` standard deviations of the outputs, and practically never happens.
        """)


@aside
def a_deep_linear_model_is_one_matrix() -> None:
    """Linear layers without a nonlinearity between them are equal to a single matrix."""
    note(r"""
        Is a model with more layers more powerful? Not if its layers only multiply by a matrix. Then
        the matrices can be multiplied with each other beforehand, and one matrix does the work of
        all of them. `Stack` is such a model: square layers on top of each other, here two of width
        `64`, and a last one with a single output:
    """)
    model = Stack(width=64, layers=2)
    sizes = {name: p.numel() for name, p in model.state_dict().items()}  # @inspect sizes
    square = 64 * 64  # @hide
    assert sizes == {
        "weights.0": square, "weights.1": square, "weights.2": 64
    }, "Two layers have 64 * 64 parameters, the last has 64, and there are no biases."  # @hide
    total = sum(sizes.values())  # @inspect total
    assert total == 2 * 64**2 + 64 == 8256, "The model has 8256 parameters."
    x: Float[Tensor, "batch width"] = torch.randn(8, 64)  # @hide
    y: Float[Tensor, "batch"] = model(x)  # @hide
    assert tuple(y.shape) == (8,), "There is one output for each row."  # @hide
    note(r"""
        Now multiply the three matrices with each other. The product is a single column of `64`
        weights, and gives the same outputs. (`whole_numbers` draws small whole numbers in their
        places, so that sums are exact.)
    """)
    weights = [whole_numbers(*p.shape) for p in model.parameters()]
    first, second, final = weights
    x = whole_numbers(8, 64)  # @unnoticed: 8: any batch
    single: Float[Tensor, "width one"] = first @ second @ final  # @inspect single.shape
    assert single.numel() == 64, "The product of the matrices has 64 numbers."
    deep = x @ first @ second @ final
    assert torch.equal(x @ single, deep), \
        "One matrix gives the same outputs as the three layers."
    note("A single matrix is no longer enough with a *nonlinearity* between the layers, such as `relu`, which sets negative numbers to zero:")
    bent = (x @ first).relu() @ second @ final
    assert not torch.equal(bent, deep), \
        "With a relu inside, the outputs differ from those of one matrix."
    question(r"""
        `Stack(width=10, layers=5)` has `5` layers of `10 × 10` parameters and a last one of `10`. A
        single matrix does the same. How many parameters does it save?
    """, answer=sum(p.numel() for p in Stack(width=10, layers=5).parameters()) - 10,
        check=5 * 10**2 + 10 - 10, unit="parameters",
        wrong={
            "The single matrix has parameters, too.": 510,
            "The product of all matrices has a single column.": 410,
        },
        hint="Which shape has the product of all matrices?",
        why=r"""
            The model has `5 * 100 + 10` parameters. The product of all matrices is one column of
            `10`.
        """)


@aside
def a_module_moves_in_place() -> None:
    """`to()` moves a module itself, but makes a copy of a tensor."""
    note(r"""
        A program sends its model and its data to another device, and writes `model.to(device)` and
        `x.to(device)`. Only the model has moved. Why? A module's `to` replaces the parameters
        inside the module. A tensor's `to` returns a copy on the other device, and leaves the tensor
        where it is. So write `x = x.to(device)`.

        The device `meta` shows it without a GPU. On it a tensor has a shape and no numbers. The
        model is a `Stack` with one square layer of width `4`, and a last layer with one output:
    """)
    model, x = Stack(width=4, layers=1), torch.randn(4)  # @unnoticed: 4, 1: any size
    moved, copy = model.to("meta"), x.to("meta")
    assert moved is model, "The module's to() returns the module itself."
    assert {w.device.type for w in model.weights} == {"meta"}, \
        "The parameters of the module are on meta."
    assert copy is not x, "The tensor's to() returns another tensor."
    assert x.device.type == "cpu", "The tensor itself is still on the CPU."
    net, batch = Stack(width=4, layers=3), [torch.ones(4), torch.ones(4)]  # @unnoticed: 4: any size
    ignored = net.to("meta"), [t.to("meta") for t in batch]
    places = [t.device.type for t in (*net.parameters(), *batch)]
    question(r"""
        A `Stack` has `3` square layers and a last layer, each with one parameter tensor. It and the
        `2` tensors of a batch are sent to `meta` by `to("meta")`, and the results are not kept. How
        many of these tensors are on `meta` then, and how many on the CPU? Give two numbers.
    """, answer=[places.count("meta"), places.count("cpu")],
        check=[3 + 1, 2], unit="tensors",
        hint="Which `to` changes what it is called on?",
        why=r"""
            The module moves its own parameters: three square matrices and the last one. Of each
            tensor `to` makes a copy, which nobody keeps.
        """)
