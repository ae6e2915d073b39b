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
        A line copied from script to script cuts initial weights off at two bounds, to be rid of
        outliers. It removes none, because the bounds are not in the units that its readers think.
        How large first values should be is a matter of counting the terms of a sum.
    """)
    a_parameter_is_a_tensor_that_is_registered()
    an_output_is_a_sum_of_many_terms()
    dividing_by_the_root_keeps_the_scale()
    xavier_agrees_for_square_layers_only()
    unscaled_gradients_explode()
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
    """Many draws of x @ w, x of unit variance and length `n`, the weights `scale` times that."""
    return torch.randn(192, n) @ (torch.randn(n, 64) * scale)


@aside
def an_output_is_a_sum_of_many_terms() -> None:
    """Outputs of a layer grow with the root of its number of inputs."""
    note(r"""
        Before training, the weights of a layer are random numbers. How large should they be? With
        variance `1` they are too large, and the wider the layer, the worse. The reason: an output
        is a sum, with one term for each input, input times weight. Let inputs and weights have mean
        `0` and variance `1`. Then each term has variance `1`. The variances of independent terms
        add up. So with $n$ inputs an output has variance $n$, and *standard deviation*, the root of
        the variance, $\sqrt{n}$. Here are `32` outputs of `16384` inputs. Their standard deviation
        should be `128`:
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
    widths = [256, 4096, 65536]  # @unnoticed: 256, 4096, 65536: any widths
    spread = [outputs(n, 1 / math.sqrt(n)).std().item() for n in widths]  # @inspect spread
    rounded = [round(s, 1) for s in spread]
    assert rounded == [1.0, 1.0, 1.0], \
        "With 256, 4096 and 65536 inputs, outputs have a standard deviation of 1."
    y = outputs(16384, 1 / math.sqrt(16384)).flatten()  # @inspect y  # @unnoticed: 16384: about as many as the root is of
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
    """Dividing by the root of the inputs is Xavier's rule for square layers only."""
    note(r"""
        Xavier, or Glorot, initialization balances forward and backward pass with a deviation of
        $\sqrt{2/(n_\mathrm{in}+n_\mathrm{out})}$ [@glorot2010]. Dividing by the root of the inputs
        alone is older and carries LeCun's name [@lecun1998]. `against_lecun` divides the first
        deviation, as drawn, by the second:
    """)

    def against_lecun(rows: int, cols: int) -> float:
        w = nn.init.xavier_normal_(torch.empty(cols, rows))
        return w.std().item() * math.sqrt(rows)

    side, rows, cols = 512, 16384, 32  # @unnoticed: 512: any square
    square = against_lecun(side, side)  # @inspect square
    narrow = against_lecun(rows, cols)  # @inspect narrow
    assert 0.98 < square < 1.02, "the same for a square layer"
    formula = math.sqrt(2 * rows / (rows + cols))  # @inspect formula
    assert round(formula, 5) == 1.41283, "by Glorot's formula"
    assert 0.98 < narrow / formula < 1.02, "as measured"
    misbelief("Scaling by one over the root of the inputs is Xavier initialization, up to a constant.",
        rf"""
            Their ratio depends on the shape: one for square layers, {formula:.2f} for this narrow
            one. And `nn.Linear` does neither.
        """)
    default = nn.Linear(4096, 64).weight.detach() * math.sqrt(4096)  # @unnoticed: 64: any number of outputs
    assert 0.99 < default.abs().max() < 1.01, "uniform, cut off at one"
    std = default.std().item()  # @inspect std
    assert 0.57 < std < 0.585, "one over the root of three"
    question(r"""
        A layer turns `100` inputs into `700` outputs. Which deviation does Glorot's formula give
        its weights, and which does LeCun's?
    """, answer=[math.sqrt(2 / (100 + 700)), 1 / math.sqrt(100)],
        check=[0.05, 0.1],
        why="More outputs than inputs: for the sake of the backward pass, Glorot draws smaller ones.")


@aside
def unscaled_gradients_explode() -> None:
    """Unscaled layers make gradients explode."""
    note(r"""
        Weights straight from `torch.randn`, *unscaled*, make activations overflow before long.
        Gradients grow with them, and under a squared loss faster still. Ten layers of width `64`:
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
    note(r"""
        Each layer that is left unscaled is `8` times too large, the root of its width. The loss is
        a square, so it holds every layer's factor twice; the derivative by the first layer takes
        away one of that layer's factors. Powers of two divide exactly, so the ratio is exact too.
    """)
    assert wild / tame == 8.0 ** (2 * 10 - 1), "to the last factor"
    note(r"""
        Advice: scale so that each layer keeps the size of what it gets. LeCun's rule divides by the
        root of the number of inputs, as Glorot's does for square matrices; they suit linear and
        tanh layers. A ReLU throws away half of the square of its input, on average, and He's rule,
        with a `2` under the root, makes up for it [@he2015].
    """)
    n = 512  # @unnoticed: 512: any width
    lecun = he = torch.randn(64, n)  # @unnoticed: 64: any batch
    for _ in range(4):
        w = torch.randn(n, n) / math.sqrt(n)
        lecun, he = (lecun @ w).relu(), (he @ w * math.sqrt(2)).relu()
    left = lecun.square().mean().item()  # @inspect left
    kept = he.square().mean().item()  # @inspect kept
    assert round(math.log2(left)) == -4, "mean square halved by each layer"
    assert round(kept) == 1, "and kept, with the two"
    question(r"""
        How many times as large as the scaled one is the first layer's gradient in a stack of only
        `3` unscaled layers of this width?
    """, answer=8 ** (2 * 3 - 1),
        check=8.0**3 * 8.0**2, unit="times")


def truncated(
    bound: float, generator: torch.Generator | None = None
) -> Float[Tensor, "inner col"]:
    """Weights of a 16384 × 64 layer, in units of their nominal deviation, cut at ± `bound`."""
    n = 16384
    w, std = torch.empty(n, 64), n**-0.5
    nn.init.trunc_normal_(w, 0, std, -bound, bound, generator)
    return w * math.sqrt(n)


@aside
def truncation_bounds_are_absolute() -> None:
    """The bounds of `trunc_normal_` are absolute, so ±3 cuts nothing."""
    note("A layer of `16384` inputs, its weights scaled by the root of that:")
    std = 1 / math.sqrt(16384)  # @inspect std
    assert 3 / std == 384.0, "deviations away"
    misbelief(r"""
        `trunc_normal_(w, std=1 / sqrt(n), a=-3, b=3)` removes outliers beyond three deviations.
    """, rf"""
        `a` and `b` are values, not multiples. At this width they lie {3 / std:.0f} deviations out,
        where no draw ever falls. Write `a=-3 * std, b=3 * std`.
    """)
    note("`truncated` draws such weights and returns them as multiples of their deviation.")
    absolute = truncated(3.0)  # @inspect absolute
    beyond = (absolute.abs() > 3).sum().item()  # @inspect beyond
    expected = absolute.numel() * math.erfc(3 / math.sqrt(2))  # @inspect expected
    assert 0.94 < beyond / expected < 1.06, "as many as an uncut normal has"
    note("Far wider bounds give the very same weights:")
    uncut = truncated(300.0, torch.Generator().manual_seed(4))
    same = truncated(3.0, torch.Generator().manual_seed(4))
    assert torch.equal(same, uncut), "not a single draw differs"
    note("Bounds in deviations do cut, and what they leave is narrower by a known factor.")
    relative = truncated(3 * std)  # @inspect relative
    assert 2.9 < relative.abs().max() < 3.0001, "nothing beyond three"
    assert relative.abs().max() < absolute.abs().max(), "unlike before"
    left = relative.std().item()  # @inspect left
    density = math.exp(-4.5) / math.sqrt(2 * math.pi)
    kept = math.erf(3 / math.sqrt(2))
    assert round(kept, 4) == 0.9973, "of all draws lie between"  # @hide
    theory = math.sqrt(1 - 6 * density / kept)  # @inspect theory
    assert 0.98657 < theory < 0.98659, "what the cut leaves"
    assert 0.99 < left / theory < 1.01, "and what was drawn"
    figure(plot_truncation(absolute, relative), caption=rf"""
        {absolute.numel():,} initial weights, in deviations. Bounds of `±3` leave both tails, bounds
        of `±3·std` cut them off.
    """, alt=r"""
        Two bell curves that coincide in the middle. The one with bounds of plus and minus three
        runs on to beyond four on either side; the one with bounds of three deviations ends at
        three.
    """)
    question(r"""
        A layer of `400` inputs gets weights with a deviation of one over the root of `400`. Which
        `b` cuts them off at two deviations?
    """, answer=2 / math.sqrt(400),
        check=2 / 20)


@aside
def weights_are_truncated_and_outputs_are_not() -> None:
    """It is the weights that are drawn from a truncated normal, not the outputs."""
    note(r"""
        What is truncated for safety are the initial weights, once, when they are drawn. Outputs are
        not: they go where their sum takes them.
    """)
    w = truncated(3 / math.sqrt(16384)) / math.sqrt(16384)
    y = torch.randn(512, 16384) @ w  # @unnoticed: 512: any batch
    largest = w.abs().max().item() * math.sqrt(16384)  # @inspect largest
    assert 2.9 < largest < 3.0001, "weights stay within"
    std = y.std().item()  # @inspect std
    assert 0.95 < std < 1.02, "outputs are of size one, as planned"
    farthest = y.abs().max().item() / std  # @inspect farthest  # @unnoticed: / -> *, factor std left out: that deviation is one
    assert farthest > largest, "and outliers of their own"
    question(r"""
        Every weight lies within `3/128`, and each of the `16384` inputs is `1` or `-1`. How large
        can an output get at worst, where its usual deviation is `1`?
    """, answer=3 / 128 * 16384,
        check=3 * math.sqrt(16384))


@aside
def a_deep_linear_model_is_one_matrix() -> None:
    """Depth without a nonlinearity is one matrix in disguise."""
    note("`Stack` puts square layers on one another and ends in one that leaves a single number a row.")
    model = Stack(width=64, layers=2)
    sizes = {name: p.numel() for name, p in model.state_dict().items()}  # @inspect sizes
    square = 64 * 64
    assert sizes == {
        "weights.0": square, "weights.1": square, "weights.2": 64
    }, "no biases"
    total = sum(sizes.values())  # @inspect total
    assert total == 2 * 64**2 + 64 == 8256, "parameters"
    x: Float[Tensor, "batch width"] = torch.randn(8, 64)
    y: Float[Tensor, "batch"] = model(x)  # @inspect y
    assert tuple(y.shape) == (8,), "one value per example"
    note(r"""
        Multiply its matrices together, and the whole network is a single column of weights. Extra
        layers cost parameters and FLOPs and can express nothing more. Whole numbers for weights
        make the comparison exact.
    """)
    weights = [whole_numbers(*p.shape) for p in model.parameters()]
    first, second, final = weights
    x = whole_numbers(8, 64)  # @unnoticed: 8: any batch
    single: Float[Tensor, "width one"] = first @ second @ final  # @inspect single.shape
    assert single.numel() == 64, "do the work of them all"
    deep = x @ first @ second @ final
    assert torch.equal(x @ single, deep), "the same outputs"
    bent = (x @ first).relu() @ second @ final
    assert not torch.equal(bent, deep), "not with a ReLU inside"
    question(r"""
        How many parameters of a `Stack(width=10, layers=5)` could be saved by a model that
        expresses just as much?
    """, answer=sum(p.numel() for p in Stack(width=10, layers=5).parameters()) - 10,
        check=5 * 10**2 + 10 - 10, unit="parameters")


@aside
def a_module_moves_in_place() -> None:
    """Moving a module changes it; moving a tensor makes another one."""
    note(r"""
        `model.to(device)` moves the parameters inside the module and returns the module, so the
        result may be ignored. The result of `tensor.to(device)` may not: the original stays where
        it was. The device `meta`, where a tensor has a shape and no numbers, shows it as well as a
        GPU. The model is a `Stack`: square matrices, and one more at its end, the *head*.
    """)
    model, x = Stack(width=4, layers=1), torch.randn(4)  # @unnoticed: 4, 1: any size
    moved, copy = model.to("meta"), x.to("meta")
    assert moved is model, "the same module"
    assert {w.device.type for w in model.weights} == {"meta"}, "which has moved"
    assert copy is not x, "another tensor"
    assert x.device.type == "cpu", "while this one stayed"
    net, batch = Stack(width=4, layers=3), [torch.ones(4), torch.ones(4)]  # @unnoticed: 4: any size
    ignored = net.to("meta"), [t.to("meta") for t in batch]
    places = [t.device.type for t in (*net.parameters(), *batch)]
    question(r"""
        A `Stack` with `3` square layers and a batch of `2` tensors are sent to `meta`, and every
        result is ignored. How many tensors move, and how many stay behind?
    """, answer=[places.count("meta"), places.count("cpu")],
        check=[3 + 1, 2], unit="tensors",
        why="The module moves its parameters in place: three square matrices and the head. Of each tensor `.to` makes another one, which nobody keeps.")
