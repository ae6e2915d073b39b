"""What a backward pass leaves behind, and what it costs."""
from counters import Alive, flops, saved_bytes_of
import warnings
from functools import partial
from typing import Any

import torch
from einops import einsum
from jaxtyping import Float
from timing import one_thread, time_call
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode
from plots import stacks

from litbook import aside, explore, figure, misbelief, note, question, requires

from .figures import plot_kept, plot_leaves, plot_products
from .measure import (
    counted, decoder_flops, narrow_format, scaled, shrunk,
)
from .models import whole_numbers


def gradients() -> None:
    """Gradients."""
    note(r"""
        How much does a backward pass cost? The rule says twice the forward pass. This part derives
        the rule from the matmuls that a backward pass is made of. The derivation shows when the
        rule holds, what it leaves out, and what is saved when a layer is not trained.
    """)
    backward_fills_the_leaves()
    the_backward_pass_needs_two_matmuls()
    autograd_leaves_out_what_no_weight_needs()
    six_per_parameter_and_token_is_a_special_case()
    in_a_transformer_backward_is_twice_forward()
    attention_grows_with_the_context()
    checkpointing_trades_flops_for_memory()
    checkpointing_is_measured_here()


def backward_fills_the_leaves() -> None:
    """`backward()` stores a gradient in each tensor that asked for one: in the weights."""
    note(r"""
        A backward pass computes the *gradient* of the loss with respect to each weight: how much
        the loss changes when the weight changes a little. Where does PyTorch store these gradients?

        Take three inputs `x` and three weights `w`. The prediction is the sum of the inputs times
        their weights. The target is `5`. The *error* is the prediction minus the target, and the
        loss is half of its square. Only the weights ask for a gradient, with `requires_grad=True`:
    """)
    x = torch.tensor([1.0, 2.0, 3.0])
    w = torch.ones(3, requires_grad=True)
    prediction = x @ w  # @inspect prediction
    loss = 0.5 * (prediction - 5) ** 2  # @inspect loss
    assert (prediction.item(), loss.item()) == (6.0, 0.5), \
        "The prediction is 6, so the error is 1 and the loss 0.5."
    loss.backward()
    assert w.grad is not None, "The weights have a gradient."  # @hide
    assert w.grad.tolist() == [1.0, 2.0, 3.0], \
        "The gradient of each weight is the error, 1, times its input."
    note(r"""
        Each weight now has a gradient in `.grad`: the error, `1`, times its input. Check the last
        one, whose input is `3`. Let the weight grow by $0.01$. The prediction and the error grow by
        `3 * 0.01 = 0.03`. The loss grows from `1**2 / 2 = 0.5` to `1.03**2 / 2 = 0.53045`: by about
        `3` times the growth of the weight.

        Why does no other tensor have a gradient? PyTorch stores a gradient only in a *leaf*, a
        tensor that was not computed from other tensors, and only if the leaf asked for one:

        - `x` and `w` are leaves. `w` asked for a gradient, and `x` did not.
        - `prediction` and `loss` were computed. The backward pass uses their gradients to compute
          the gradient of `w`, and then drops them, because no later step needs them.

        So stored gradients need as much memory as the weights that are trained, however many
        tensors the model computes on the way.
    """)
    leaf = x.is_leaf, x.requires_grad, x.grad  # @hide
    assert leaf == (True, False, None), \
        "The input is a leaf, did not ask, and has no gradient."  # @hide
    assert w.is_leaf, "The weights are a leaf."  # @hide
    with warnings.catch_warnings(record=True) as caught:  # @hide
        warnings.simplefilter("always")
        dropped = prediction.grad, loss.grad
    assert dropped == (None, None), "Prediction and loss keep no gradient."  # @hide
    assert prediction.is_leaf is False, "The prediction is no leaf."  # @hide
    assert len(caught) == 2, "PyTorch warns whoever looks for them."  # @hide
    model = nn.Linear(4, 1)  # @hide
    start, nothing = model.weight.detach().clone(), model.weight.grad  # @hide
    assert nothing is None, "Before the backward pass, the weights have no gradient."  # @hide
    model(torch.randn(8, 4)).square().mean().backward()  # @hide
    assert torch.equal(model.weight, start), \
        "After the backward pass, the weights are the same as before."  # @hide
    torch.optim.SGD(model.parameters(), lr=0.1).step()  # @hide
    assert not torch.equal(model.weight, start), "After the optimizer's step, the weights have changed."  # @hide
    misbelief("The backward pass computes gradients and updates the parameters.", r"""
        It leaves every parameter as it was, bit for bit. The optimizer's `step()` updates them.
    """)
    graph = {
        "x": (x.tolist(), x.grad), "w": (w.tolist(), w.grad), "prediction": (prediction.item(), dropped[0]),
        "loss": (loss.item(), dropped[1]),
    }  # @hide
    figure(plot_leaves({name: (value, None if grad is None else grad.tolist()) for name, (value, grad) in graph.items()}),
        caption="The four tensors, and what each has in `.grad` after the backward pass.", alt=r"""
            Arrows from x and w to the prediction and from there to the loss. Only the box of w has
            a gradient.
        """)
    again = x @ w  # @hide
    again.retain_grad()  # @hide
    kept = 0.5 * (again - 5) ** 2  # @hide
    kept.retain_grad()  # @hide
    kept.backward()  # @hide
    assert again.grad is not None, \
        "After retain_grad(), the prediction keeps its gradient."  # @hide
    assert kept.grad is not None, "After retain_grad(), the loss keeps its gradient as well."  # @hide
    both = again.grad.item(), kept.grad.item()  # @hide
    assert both == (1.0, 1.0), "The gradient of the prediction is the error, and the gradient of the loss is one."  # @hide
    question(r"""
        The target is `8` instead of `5`. The inputs are `1`, `2`, `3` and the weights one, as
        before. What gradients do the three weights get?
    """, answer=torch.autograd.grad(0.5 * (x @ w - 8) ** 2, w)[0].tolist(),
        check=[(1 + 2 + 3 - 8) * value for value in x.tolist()],
        hint="How large is the error now, and what is it multiplied by?",
        why=r"""
            The error is now `6 - 8 = -2`, and the gradient of each weight is the error times its
            input: `-2 * (1, 2, 3)`.
        """)


def the_backward_pass_needs_two_matmuls() -> None:
    """Each matmul of the forward pass needs two matmuls in the backward pass."""
    note(r"""
        Why does a backward pass cost twice as much as a forward pass? Because each matmul of the
        forward pass needs two in the backward pass: one for the gradient of the weights, and one
        for the gradient of the input, which the layer below needs.

        By hand, with single numbers: a layer multiplies its input $h = 2$ by its weight $w = 3$.
        The layer above sends back $g = 5$, the gradient of the loss with respect to the output.

        - If $w$ grows a little, the output grows `2` times as much, and the loss `5` times as much
          as the output. So the gradient of $w$ is `2 * 5 = 10`.
        - If $h$ grows a little, the output grows `3` times as much. So the gradient of $h$ is
          `3 * 5 = 15`.

        Forward one multiplication, backward two. Now a second row of data has $h = 4$ and $g = 1$.
        It uses the same weight, so the gradient of $w$ is a sum over the rows:
        `2 * 5 + 4 * 1 = 14`. This is the matmul `h.T @ g` of the columns $h = (2, 4)$ and
        $g = (5, 1)$. With a second column in $w$, $h$ would reach the loss in two ways, so its
        gradient is a sum over the columns: the matmul `g @ w.T`.

        Check this with matrices of small whole numbers, for which sums are exact. `y.backward(g)`
        starts the backward pass from a given `g`, so no loss is needed:
    """)
    rows, inner, cols = 64, 32, 16
    h: Float[Tensor, "row inner"] = whole_numbers(rows, inner).requires_grad_()
    w: Float[Tensor, "inner col"] = whole_numbers(inner, cols).requires_grad_()
    y: Float[Tensor, "row col"] = h @ w
    g: Float[Tensor, "row col"] = whole_numbers(rows, cols)
    y.backward(g)
    sizes = *h.shape, w.size(1)  # @hide
    assert sizes == (64, 32, 16), \
        "The layer has 64 rows, 32 inputs and 16 outputs."  # @hide
    for_w: Float[Tensor, "inner col"] = einsum(h, g, "i j, i k -> j k")  # @hide
    for_h: Float[Tensor, "row inner"] = einsum(w, g, "j k, i k -> i j")  # @hide
    assert w.grad is not None, "The weights have a gradient."  # @hide
    assert h.grad is not None, "The input has one."  # @hide
    assert torch.equal(w.grad, h.T @ g), \
        "Autograd finds the gradient h.T @ g for the weights."
    assert torch.equal(h.grad, g @ w.T), \
        "Autograd finds the gradient g @ w.T for the input."
    assert torch.equal(w.grad, for_w), "einsum finds the gradient of the weights."  # @hide
    assert torch.equal(h.grad, for_h), "einsum finds the gradient of the input."  # @hide
    note(r"""
        What do the three matmuls cost? All have the same three sizes, `64` rows, `32` inputs and
        `16` outputs, so each does `64 * 32 * 16` multiplications with an addition:
        `2 * 64 * 32 * 16` FLOPs.
    """)
    forward = flops(lambda: h @ w)  # @inspect forward as FLOP
    weights = flops(lambda: h.T @ g)  # @inspect weights as FLOP
    inputs = flops(lambda: g @ w.T)  # @inspect inputs as FLOP
    assert forward == 2 * rows * inner * cols, "The forward matmul takes 2 * 64 * 32 * 16 FLOPs."  # @hide
    assert weights == inputs == forward, \
        "Each of the two backward matmuls costs the same number of FLOPs as the forward one."
    note(r"""
        So the matmuls of a training step cost `1 + 2 = 3` times the FLOPs of the forward pass, if
        every layer needs both gradients.
    """)
    tally: list[str] = []  # @hide
    _ = counted(tally, 5, 8) @ counted(tally, 8, 3)  # @hide
    per_weight = len(tally) / (5 * 3)  # @hide
    assert per_weight == 2 * 8 - 1 == 15, "Each weight takes 15 operations for 8 rows."  # @hide
    one = flops(lambda: torch.ones(5, 1) @ torch.ones(1, 3))  # @hide
    assert one == 2 * 5 * 3, "PyTorch's counter says 2 FLOPs for each weight and row."  # @hide
    row = torch.tensor([[1.0, 2.0]], requires_grad=True)  # @hide
    column = torch.tensor([[3.0], [4.0]], requires_grad=True)  # @hide
    arriving = torch.tensor([[5.0]])  # @hide
    got = torch.autograd.grad(row @ column, (row, column), arriving)  # @hide
    question(r"""
        A row $h = (1, 2)$ is multiplied by a column $w = (3, 4)$, and the gradient of their product
        is $g = 5$. What gradients do the row and the column get?
    """, answer=[t.flatten().tolist() for t in got],
        check=[[5 * 3.0, 5 * 4.0], [5 * 1.0, 5 * 2.0]],
        hint="The gradient of each factor is $g$ times the other factor.",
        why=r"""
            The gradient of the row is `g @ w.T`, `5 * (3, 4)`. The gradient of the column is
            `h.T @ g`, `5 * (1, 2)`.
        """)


def two_layers(
    b: int, d: int, k: int,
    first: bool = True, second: bool = True, data: bool = False,
) -> tuple[int, int]:
    """Forward and backward FLOPs of two layers on `b` rows; flags say which tensors need gradients."""
    with torch.device("meta"):
        x = torch.empty(b, d, requires_grad=data)
        w1 = torch.empty(d, d, requires_grad=first)
        w2 = torch.empty(d, k, requires_grad=second)
    with FlopCounterMode(display=False) as forward:
        loss = (x @ w1 @ w2).square().mean()
    return int(forward.get_total_flops()), flops(loss.backward)


@aside
def autograd_leaves_out_what_no_weight_needs() -> None:
    """Autograd leaves out each backward matmul whose result is not needed."""
    note(r"""
        In fine-tuning, some layers are often *frozen*: their weights are not trained, because
        `requires_grad` is `False` for them. How much of the backward pass does that save? It
        depends on which layers are frozen, because *autograd*, which runs PyTorch's backward pass,
        computes a gradient only if a tensor with `requires_grad=True` needs it, here a trained
        weight.

        A layer multiplies its input by its weights, and has up to
        [two backward matmuls](#the_backward_pass_needs_two_matmuls) of the same cost:

        - for the gradient of its weights, which is needed if these weights are trained;
        - for the gradient of its input, which is needed if a layer *before* it is trained, because
          the gradients of that layer are computed from it.

        By hand, one row of data passes through two layers, with `3 * 3 = 9` and `3 * 2 = 6`
        weights. A matmul costs `2` FLOPs per weight, a multiplication and an addition. The backward
        pass costs, in FLOPs:

        | trained | gradient of the first weights | gradient of the second layer's input | gradient of the second weights | sum |
        |---|---|---|---|---|
        | both layers | `2 * 9 = 18` | `2 * 6 = 12` | `2 * 6 = 12` | `18 + 12 + 12 = 42` |
        | the second only | $0$ | $0$ | `2 * 6 = 12` | `12` |
        | the first only | `2 * 9 = 18` | `2 * 6 = 12` | $0$ | `18 + 12 = 30` |

        The first layer's input is data. No weight comes before it, so its gradient is never
        computed and has no column. With only the second layer trained, the backward pass ends
        there. With only the first trained, the frozen second layer has to pass the gradient on.

        Now `b` rows, and layers of `d * d` and `d * k` weights, with sizes from CS336 [@cs336].
        `two_layers` runs both passes on tensors that have a shape but no elements, and returns the
        FLOPs of the forward and of the backward pass, as PyTorch counts them:
    """)
    b, d, k = 16384, 32768, 8192
    backward = two_layers(b, d, k)[1]  # @inspect backward as FLOP
    first_frozen = two_layers(b, d, k, first=False)[1]  # @inspect first_frozen as FLOP
    second_frozen = two_layers(b, d, k, second=False)[1]  # @inspect second_frozen as FLOP
    assert backward == 2 * b * d * d + 4 * b * d * k, \
        "With both layers trained, the backward pass has three matmuls, not four."
    assert first_frozen == 2 * b * d * k, \
        "With the first layer frozen, one matmul is left."
    assert second_frozen == backward - 2 * b * d * k, \
        "With the second layer frozen, one matmul is left out."
    by_hand = [two_layers(1, 3, 2, *trained)[1] for trained in ((True, True), (False, True), (True, False))]  # @hide
    assert by_hand == [42, 12, 30], "In the case by hand, PyTorch counts 42, 12 and 30 FLOPs."  # @hide
    forward = two_layers(b, d, k)[0]  # @hide
    assert forward == 2 * b * d * d + 2 * b * d * k, \
        "The forward pass has two matmuls."  # @hide
    assert forward == 43_980_465_111_040, "They take 44 TFLOP."  # @hide
    assert backward == 52_776_558_133_248, \
        "The three backward matmuls take 53 TFLOP."  # @hide
    small_one = two_layers(64, 32, 16)[1] - 4 * 64 * 32 * 16  # @hide
    assert small_one == 2 * 64 * 32 * 32, \
        "In a smaller network, the first layer has one matmul as well."  # @hide
    assert two_layers(b, d, k, data=True)[1] == 2 * forward, \
        "If the data ask for a gradient as well, there are four."  # @hide
    costs = [2 * b * d * d, 2 * b * d * k]  # @hide
    assert 2 * sum(costs) - costs[0] == backward, \
        "The backward pass has each matmul twice, less one."  # @hide
    figure(plot_products(costs),
        caption=r"""
            The matmuls of a training step of these two layers, both trained. Dashed: the gradient
            of the data, which is not needed.
        """,
        alt=r"""
            Bars for two layers. The wide first layer has a forward matmul and a weight gradient of
            equal length, and its input gradient is a dashed outline. The narrower second layer has
            three short bars: forward, weight gradient, input gradient.
        """)
    left = first_frozen / backward, second_frozen / backward  # @hide
    note(rf"""
        So freezing the first layer leaves {left[0]:.0%} of this backward pass, and freezing the
        second leaves {left[1]:.0%}.

        In a stack of matmuls whose layers are all trained, only the gradient of the data is left
        out. Let the stack have $P$ weights, of which $d^2$ are in the first layer. Three matmuls,
        one forward and two backward, cost `3 * 2 = 6` FLOPs per weight and row, and one matmul of
        the first layer is missing. So a training step on $B$ rows costs

        [@eq:step-flops]: $$
        6BP - 2Bd^2
        $$

        FLOPs. In the case by hand these are `6 * (9 + 6) - 2 * 9 = 72`: the backward pass costs
        `42`, and the forward pass `18 + 12 = 30`.
    """)
    passed_on = second_frozen - 2 * b * d * d  # @hide
    assert passed_on == 2 * b * d * k, "The frozen layer still takes 2bdk FLOPs, for the layer below."  # @hide
    x, w1, w2 = torch.randn(64, 32), torch.randn(32, 32), torch.randn(32, 16).requires_grad_()  # @hide

    def second_gradient(train_first: bool) -> Tensor:  # @hide
        loss = (x @ w1.clone().requires_grad_(train_first) @ w2).square().mean()
        return torch.autograd.grad(loss, w2)[0]

    trained, frozen = second_gradient(True), second_gradient(False)  # @hide
    assert torch.equal(frozen, trained), "With w1 frozen, the gradient of w2 is the same, bit for bit."  # @hide
    misbelief(r"""
        In `x @ w1 @ w2` the gradient of `x @ w1` must be known before the gradient of `w2` can be
        computed.
    """, "With `w1` frozen, the gradient of `x @ w1` is never computed, and the gradient of `w2` is still the same.")
    misbelief(r"The backward pass of the last layer, with $d \times k$ weights and a batch of $b$, costs $4bdk$.",
        r"""
            The gradient of its weights costs half of that, $2bdk$. The other half is the gradient
            of its input, which is computed only if a layer before it is trained, or if the data
            have `requires_grad=True`.
        """)
    question(r"""
        `100` rows of data pass through a frozen layer of `10 × 10` weights and then a trained layer
        of `10 × 1`. A colleague freezes the second layer instead and trains the first. How many
        FLOPs does the backward pass cost, before and after?
    """, answer=[two_layers(100, 10, 1, first=False)[1], two_layers(100, 10, 1, second=False)[1]],
        check=[2 * 100 * 10, 2 * 100 * 10 + 2 * 100 * 10 * 10], unit="FLOP",
        hint="Which gradients are needed in each case, and which have to be passed on?",
        why=r"""
            Before, only the gradient of the second layer's weights is needed, `2 * 100 * 10 * 1`.
            After, the frozen second layer passes the gradient on, which costs the same, and the
            first computes the gradient of its weights, `2 * 100 * 10 * 10`.
        """)


def six_per_parameter_and_token_is_a_special_case() -> None:
    """The rule of 6 FLOPs per parameter and token assumes three matmuls in every layer."""
    note(r"""
        An [estimate of a training run](#a_training_run_in_three_lines) counts `6` FLOPs per
        parameter and token. Where does the `6` come from? Each weight is used in three matmuls, and
        in each it costs a multiplication and an addition. With the input $h$ of the layer and the
        gradient $g$ of its output:

        - forward, $h \cdot w$ is added to the output: `2` FLOPs;
        - backward, $h \cdot g$ is added to the gradient of the weight: `2` FLOPs;
        - backward, $w \cdot g$ is added to the gradient of the input: `2` FLOPs.

        That is `6` FLOPs for each row of data, and in a language model a row is a token.

        The first layer of a model may need only `4`. Its input is data. Data are not trained, so
        their gradient is not needed. Take two layers on `b` rows, the first with `d * d` weights,
        the second with `d * k`. If `k` is a quarter of `d`, four of five weights are in the first
        layer. Then a weight costs `4/5 * 4 + 1/5 * 6 = 4.4` FLOPs per row on average. `two_layers`
        counts the FLOPs from the shapes alone, without data:
    """)
    b, d, k = 16384, 32768, 8192  # @unnoticed: 16384: any batch
    forward, backward = two_layers(b, d, k)
    params = d * d + d * k  # @inspect params
    assert params == 1_342_177_280, "The two layers have 1.34 billion weights."  # @hide
    coefficient = (forward + backward) / (b * params)  # @inspect coefficient
    assert coefficient == 4.4, \
        "A step costs 4.4 FLOPs per parameter and row."
    ratio = backward / forward  # @hide
    assert ratio == 1.2, \
        "Here the backward pass costs 1.2 times the forward pass."  # @hide
    misbelief("The backward pass costs twice the forward pass.", rf"""
        Not here: it costs {ratio} times the forward pass. The first layer, with `4/5` of the
        weights, has one backward matmul, and the second, with `1/5`, has two:
        `1 * 4/5 + 2 * 1/5 = 1.2`. If every layer has two, the rule holds.
    """)
    misbelief("A training step costs `6` FLOPs per parameter and token.", r"""
        It does if every layer has three matmuls. A layer whose input is data has only two, and
        costs `2 * 2 = 4`.
    """)
    two = {"forward": 2.0, "gradient of the weights": 2.0}  # @hide
    layers = {"first layer": two, "second layer": {**two, "gradient of the input": 2.0}}  # @hide
    first, second = (sum(of.values()) for of in layers.values())  # @hide
    assert first * d * d + second * d * k == coefficient * params, "The bars are what was counted."  # @hide
    figure(stacks(layers, "FLOPs per weight and row"), caption=r"""
        FLOPs of a training step in each of the two layers, matmul by matmul. The data need no
        gradient, so the first layer lacks a matmul.
    """, alt="Two stacked bars, of two equal parts and of three.")
    note(r"""
        In a deep stack of equal layers the rule is nearly exact, because the first layer has only a
        small share of the weights: with $L$ layers a step costs $6 - 2/L$ FLOPs per parameter and
        row.
    """)
    question(r"""
        A model has two layers with the same number of weights, and the data need no gradient. How
        many FLOPs per parameter and row does a training step cost, on average over all parameters?
    """, answer=sum(two_layers(8, 64, 64)) / (8 * 2 * 64**2),
        wrong={
            "The first layer lacks the gradient of its input.": 6,
            "That is for a second layer with a quarter of the weights of the first.": 4.4,
        },
        check=(4 + 6) / 2,
        hint="How many matmuls does each of the two layers need, forward and backward?", unit="FLOPs per parameter and row",
        why=r"""
            The first layer has two matmuls, `4` FLOPs per weight and row. The second has three,
            `6`. Both have the same number of weights, so the average is `5`.
        """)


@aside
def in_a_transformer_backward_is_twice_forward() -> None:
    """In a Transformer that computes nothing twice, the matmuls of the backward pass cost twice those of the forward pass."""
    note(r"""
        How many FLOPs does the backward pass of a Transformer cost, compared with its forward pass?
        Its matmuls cost twice the FLOPs. A matmul multiplies two matrices, and the gradient of each
        is one more matmul of the same cost. In a Transformer both gradients are needed, because
        both matrices depend on trained weights:

        - Most matmuls multiply the output of an earlier layer by weights. Even the first layer has
          such an input: rows of the *embedding table*, trained vectors, one for each token of the
          vocabulary.
        - *Attention* has two matmuls without weights. It multiplies *queries* by *keys*, and the
          *attention weights*, which are made from the results, by *values*. Queries, keys and
          values are computed from the tokens with trained weights.

        By hand, multiply `5` queries of `2` elements by `3` keys. Each element of a result is a sum
        of products, and each product costs `2` FLOPs, a multiplication and an addition to the sum:

        | matmul | sums | products in each sum | FLOPs |
        |---|---|---|---|
        | forward | `5 * 3`: each query with each key | `2`, the elements | `5 * 3 * 2 * 2 = 60` |
        | gradient of the queries | `5 * 2` elements | `3`, the keys | `5 * 2 * 3 * 2 = 60` |
        | gradient of the keys | `3 * 2` elements | `5`, the queries | `3 * 2 * 5 * 2 = 60` |

        That is `60` FLOPs forward and `120` backward. Now a whole model, with the sizes of the
        smallest GPT-2 [@gpt2]. `decoder_flops` builds a Transformer from tensors that have a shape
        but no data, runs both passes, and returns the FLOPs of their matmuls, as PyTorch counts
        them:
    """)
    gpt2 = {
        "vocab": 50257, "d": 768, "heads": 12, "layers": 12, "context": 1024
    }
    forward, backward = decoder_flops(**gpt2)  # @inspect forward as FLOP, backward as FLOP
    assert backward == 2 * forward, \
        "The matmuls of the backward pass cost exactly twice those of the forward pass."
    with torch.device("meta"):  # @hide
        queries, keys = torch.empty(5, 2, requires_grad=True), torch.empty(2, 3, requires_grad=True)
        frozen = torch.empty(2, 3)
    by_hand = flops(lambda: queries @ keys)  # @hide
    scores = queries @ keys  # @hide
    assert (by_hand, flops(scores.sum().backward)) == (60, 120), \
        "In the case by hand, PyTorch counts 60 FLOPs forward and 120 backward."  # @hide
    one_sided = flops((queries @ frozen).sum().backward)  # @hide
    assert one_sided == by_hand, \
        "If only one of two matrices needs a gradient, backward costs the same as forward."  # @hide
    d, heads, context = gpt2["d"], gpt2["heads"], gpt2["context"]  # @hide
    with torch.device("meta"):  # @hide
        q = torch.empty(1, heads, context, d // heads).bfloat16()
        q.requires_grad_()
    fused = torch.ops.aten._scaled_dot_product_flash_attention  # @hide
    once = flops(lambda: fused(q, q, q))  # @hide
    mixed = fused(q, q, q)[0]  # @hide
    back = flops(lambda: mixed.sum().backward())  # @hide
    assert back / once == 2.5, \
        "In a fused kernel of attention, backward takes five matmuls for two."  # @hide
    assert once == 4 * d * context**2, \
        "Forward, it costs the same number of FLOPs as unfused."  # @hide
    four = decoder_flops(**gpt2, batch=4)  # @hide
    assert four == (4 * forward, 4 * backward), \
        "Four sequences take four times the FLOPs."  # @hide
    note(r"""
        The title has a condition: nothing is computed twice. *Fused* attention does not store the
        products of queries and keys. It computes them again in the backward pass, which then costs
        more than twice its forward pass.
    """)
    question(r"""
        In a layer the matmuls with weights cost `40` GFLOP forward, and the two of attention `10`.
        Now the weights of this layer are frozen, so they need no gradient; those of all other
        layers are trained. How many GFLOP do the matmuls of this layer cost in the backward pass?
    """, answer=40 * one_sided / by_hand + 10 * backward / forward,
        check=40 * 1 + 10 * 2, unit="GFLOP",
        wrong={
            "The frozen weights need no gradient, which saves one matmul of two.": 100,
            "Queries, keys and values come from earlier, trained layers, so both gradients are needed.": 50,
        },
        hint="For each matmul, which of its two matrices depends on trained weights?",
        why=r"""
            A matmul with frozen weights needs only the gradient of its input: `40`. In attention
            both matrices depend on trained weights of earlier layers: `2 * 10 = 20`.
        """)


@aside
def attention_grows_with_the_context() -> None:
    """The rule of 6 FLOPs per weight and token leaves out attention, whose cost per token grows with the context."""
    note(r"""
        By how much is the [rule](#six_per_parameter_and_token_is_a_special_case) of `6` FLOPs per
        weight and token too low for a Transformer? It leaves out *attention*, because attention has
        two matmuls without weights. They compare each token with every token of the *context*, the
        sequence that it is part of. So their cost per token grows with the context.

        By hand, take one layer and a context of `3` tokens. Each token has a *query*, a *key* and a
        *value*, vectors of `2` elements. A product costs `2` FLOPs, a multiplication and an
        addition to a sum. One token needs

        - its query times each of `3` keys: `3 * 2 * 2 = 12` FLOPs;
        - the `3` values, each times one number, added up: `3 * 2 * 2 = 12` FLOPs.

        That is `12 + 12 = 24` FLOPs forward. The backward pass costs
        [twice the FLOPs](#in_a_transformer_backward_is_twice_forward), so both passes cost
        `24 + 2 * 24 = 72`. In general, with $L$ layers, $d$ elements (the model dimension) and a
        context of $T$ tokens, the number of FLOPs per token is

        [@eq:attention]: $$
        12\,L\,d\,T
        $$

        The factor is $12 = 2 \cdot 2 \cdot 3$: two matmuls, $2$ FLOPs for each product, and $3$
        because the backward pass costs as much as two forward passes. By hand,
        `12 * 1 * 2 * 3 = 72`. (Tokens after the one in question count too: they are compared, and
        then masked.)

        Check it with the smallest GPT-2 [@gpt2]: `12` layers, $d = 768$, a context of `1024` tokens
        and a vocabulary of `50257`. Each layer has matrices with $12d^2$ weights in all, and a last
        matrix has $d$ weights for each token of the vocabulary. `decoder_flops` returns the FLOPs
        of both passes over one sequence, as PyTorch counts them. What remains above the rule should
        be attention:
    """)
    vocab, d, heads, layers, context = 50257, 768, 12, 12, 1024
    matrices = layers * 12 * d * d + d * vocab  # weights
    both_passes = sum(decoder_flops(vocab, d, heads, layers, context))
    per_token = both_passes / context  # @inspect per_token as FLOP
    left_over = per_token - 6 * matrices  # @inspect left_over as FLOP
    attention = 12 * layers * d * context  # @inspect attention as FLOP
    assert left_over == attention, \
        "What is left over is attention, and nothing else."
    assert matrices == 123_532_032, "The matrices have 124 million weights."  # @hide
    assert attention == 113_246_208, \
        "For each token, attention takes 113 million FLOPs."  # @hide
    ratios = {  # @hide
        t: round(sum(decoder_flops(vocab, d, heads, layers, t)) / (6 * matrices * t), 3)
        for t in (128, 1024, 8192)
    }
    assert ratios == {128: 1.019, 1024: 1.153, 8192: 2.222}, \
        "Both passes together cost 1.019, 1.153 and 2.222 times what the rule says."  # @hide
    small = 6 * (1 * 12 * 2 * 2 + 2 * 5) * 3 + 12 * 1 * 2 * 3 * 3  # @hide
    assert sum(decoder_flops(5, 2, 1, 1, 3)) == small, \
        "In a tiny model, each of 3 tokens costs 72 FLOPs more than the rule says."  # @hide
    note(rf"""
        So the matmuls of this model cost {ratios[1024]:.2f} times what the rule says. With the same
        weights it would be {ratios[128]:.2f} times for a context of `128` tokens, and
        {ratios[8192]:.2f} times for `8192`. In a model with a larger $d$ the same context matters
        less, because the weights of a layer grow with $d^2$, and its attention only with $d$.
    """)
    longer = sum(decoder_flops(vocab, d, heads, layers, 2 * context))  # @hide
    left = longer - 6 * matrices * 2 * context  # @hide
    question(r"""
        The context becomes twice as long, and the model is trained on one sequence of that length.
        By what factor do the FLOPs of the matmuls with weights grow, and by what factor those of
        attention? Give two numbers.
    """, answer=[6 * matrices * 2 * context / (6 * matrices * context), left / (attention * context)],
        check=[2, 2**2],
        hint="How many tokens are there, and with how many is each of them compared?",
        why=r"""
            There are twice as many tokens, so the FLOPs of the matmuls with weights double. In
            attention each of them is also compared with twice as many tokens, so its FLOPs grow by
            a factor of `2 * 2`.
        """, unit="times")


def tanh_layers(x: Tensor, *weights: Tensor) -> Tensor:
    """The output of layers that multiply by a weight and apply tanh."""
    for w in weights:
        x = torch.tanh(x @ w)
    return x


def in_segments(
    weights: list[Tensor], x: Tensor, segment: int | None
) -> Tensor:
    """The output of all layers; the backward pass recomputes them segment by segment (None: nothing is recomputed)."""
    for i in range(0, len(weights), segment or len(weights)):
        part = weights[i : i + (segment or len(weights))]
        if segment:
            x = checkpoint(
                tanh_layers, x, *part,
                use_reentrant=False, preserve_rng_state=False,
            )
        else:
            x = tanh_layers(x, *part)
    return x


@one_thread()
def train_in_segments(
    layers: int, segment: int | None, rows: int, width: int
) -> tuple[int, int, Tensor]:
    """Bytes kept, FLOPs, and the first gradient of a step that recomputes by segments (None: nothing)."""
    drawn = torch.Generator().manual_seed(2)
    stack = torch.randn(layers, width, width, generator=drawn) / width**0.5
    weights = [w.clone().requires_grad_() for w in stack]
    x = torch.randn(rows, width, generator=drawn).requires_grad_()
    saved = saved_bytes_of(lambda: in_segments(weights, x, segment), weights)
    with FlopCounterMode(display=False) as counter:
        in_segments(weights, x, segment).sum().backward()
    first = weights[0].grad
    assert first is not None
    return saved, int(counter.get_total_flops()), first


@one_thread()
def most_alive(layers: int, segment: int) -> float:  # @stepover
    """The largest number of layer outputs that a step has in memory at once."""
    rows, width = 512, 8
    stack = torch.randn(layers, width, width) / width**0.5
    weights = [w.clone().requires_grad_() for w in stack]
    x = torch.randn(rows, width)
    with Alive() as alive:
        in_segments(weights, x, segment).sum().backward()
    return alive.most / (rows * width * 4)


def moment_of(layers: int, segment: int, moment: int) -> dict[str, Any]:  # @stepover
    """For one time of a step: which layer it computes, forward or backward, and which layer outputs are in memory."""
    kept, again, time = {0}, 0, -1
    starts = range(0, layers, segment)

    def now(phase: str, layer: int) -> dict[str, Any]:
        return {"phase": phase, "layer": layer,
                "kept": sorted(kept), "again": again}

    for layer in range(1, layers + 1):  # it keeps the inputs of segments
        kept.add(layer)
        kept -= {layer - 1} - set(starts)
        if (time := time + 1) == moment:
            return now("forward", layer)
    kept.discard(layers)
    for start in reversed(starts):
        for layer in range(start + 1, start + segment + 1):
            kept.add(layer)
            again += 1
            if (time := time + 1) == moment:
                return now("again", layer)
        for layer in reversed(range(start + 1, start + segment + 1)):
            kept.discard(layer)
            if (time := time + 1) == moment:
                return now("backward", layer)
        kept.discard(start)
    raise ValueError(f"a step has {3 * layers} moments, not {moment}")


@aside
def checkpointing_trades_flops_for_memory() -> None:
    """Activation checkpointing keeps fewer activations and computes the forward pass twice."""
    note(r"""
        The activations of a training step do not fit into memory. Does the batch have to become
        smaller? Not if you can pay for a third more FLOPs.

        Usually autograd keeps the output of every layer until the backward pass has used it.
        *Activation checkpointing* cuts the layers into segments and keeps only the input of each
        segment. When the backward pass comes to a segment, it recomputes the outputs of its layers
        [@chen2016].

        Try it with `16` layers, each a matmul and a tanh. `train_in_segments` takes a training
        step, and returns the bytes that are kept when the backward pass begins, the FLOPs of all
        matmuls, and the gradient. First there are no segments (`None`), then segments of `4`
        layers:
    """)
    layers, rows, width = 16, 8, 32
    all_kept, once, exact = train_in_segments(layers, None, rows, width)
    kept, twice, gradient = train_in_segments(layers, 4, rows, width)
    one = rows * width * 4  # @inspect one as B
    assert all_kept == (layers + 1) * one == 17408, \
        "Without segments, the input and all 16 outputs are kept."
    assert kept == layers // 4 * one == 4096, \
        "With segments of 4 layers, only the inputs of the 4 segments are kept."
    note(r"""
        How long should a segment be? With $L$ layers in segments of $s$ layers, memory peaks when
        the backward pass begins with the last segment. Then two things are in memory: the inputs of
        all segments, $L/s$ tensors, and the recomputed outputs of this segment, $s$ tensors:

        [@eq:segments]: $$
        \frac{L}{s} + s
        $$

        For `16` layers:

        - segments of `2`: `16 / 2 + 2 = 10`;
        - segments of `4`: `16 / 4 + 4 = 8`;
        - segments of `8`: `16 / 8 + 8 = 10`.

        The product of the two terms is always $L$. Two numbers with a fixed product have the
        smallest sum when they are equal, so the sum is smallest for $s = \sqrt L$:
    """)
    lengths = (1, 2, 4, 8, 16)  # @hide
    peaks = {n: most_alive(layers, n) for n in lengths}  # @hide
    best = min(lengths, key=lambda n: peaks[n])  # @hide
    assert best == 4, "Segments of 4 layers take the least memory."  # @hide
    over = [peaks[n] - layers // n - n for n in lengths]  # @hide
    assert 0 <= min(over) <= max(over) < 0.13, \
        "Measured, it is L / s + s outputs, or up to an eighth of an output more."  # @hide
    filled = {n: [moment_of(layers, n, t) for t in range(3 * layers)] for n in lengths}  # @hide
    fullest = {n: max(len(it["kept"]) for it in all_) for n, all_ in filled.items()}  # @hide
    assert fullest == {n: layers // n + n for n in lengths}, \
        "At the fullest moment L / s + s outputs are there."  # @hide
    computed_again = {all_[-1]["again"] for all_ in filled.values()}  # @hide
    assert computed_again == {layers}, "Each layer is computed again once."  # @hide
    explore(lambda segment, moment: moment_of(layers, segment, moment - 1),
        over={"segment": [*lengths], "moment": range(1, 3 * layers + 1)}, at={"segment": 4, "moment": 24}, module="pictures/kept.js",
        still=plot_kept(filled[4], 23),
        do="Move the time through a step. Then try segments of `1`, of `16` and of `4`: which has the lowest peak?",
        see=r"""
            With segments of `1` the inputs of all layers are kept. With `16` there is one segment,
            and all of its outputs are recomputed and in memory at once. With segments of `4` at
            most `8` outputs are in memory. In every case each layer is recomputed once.
        """, caption=r"""
            Outputs of `16` layers that are in memory at one moment of a step, as filled dots, and
            how many there are at each moment. Kept inputs of segments and the forward pass are
            blue, recomputed outputs gold.
        """, alt=r"""
            A row of dots, of which four inputs of segments and two outputs of the last segment are
            filled. Below it, bars that rise by steps in the forward pass and then go up and down
            with each segment, lower each time.
        """)  # @hide
    note(r"""
        The price is a second forward pass. For each weight and row, a step costs `2` FLOPs forward,
        `2` for the gradient of the weights and `2` for that of the input. The second forward pass
        adds `2`: `6 + 2 = 8`. The gradient is the same:
    """)
    params = layers * width * width
    assert once == 6 * rows * params == 786_432, \
        "Without segments, a step costs 6 FLOPs per weight and row."
    assert twice == 8 * rows * params == 1_048_576, \
        "With segments, a step costs 8 FLOPs per weight and row."
    assert torch.equal(gradient, exact), \
        "The gradient is the same, bit for bit."
    useful = once / twice  # @hide
    assert useful == 0.75, "Of these FLOPs, three quarters count for MFU."  # @hide
    inputs, again, _ = train_in_segments(layers, 2, rows, width)  # @hide
    question(r"""
        `16` layers are cut into segments of `2` layers instead of `4`. The input of a segment needs
        `1024` bytes. How many bytes are kept when the backward pass begins, and how many more FLOPs
        does a step cost than with segments of `4`?
    """, answer=[inputs, again - twice],
        check=[layers // 2 * one, 0],
        hint=r"""
            How many segments are there? And how often is each layer recomputed, with segments of
            `2` and of `4`?
        """,
        why=r"""
            There are `16 / 2 = 8` segments, and the input of each is kept: `8 * 1024` bytes. Each
            layer is recomputed once, however the layers are cut, so the FLOPs stay the same.
        """)


def deep_gradient(  # @stepover
    weights: list[Tensor], x: Tensor, segment: int | None
) -> Tensor:
    """The first gradient of a step that recomputes its layers by segments (None: nothing)."""
    for w in weights:
        w.grad = None
    in_segments(weights, x, segment).sum().backward()
    first = weights[0].grad
    assert first is not None
    return first


@aside
@requires("cuda")
def checkpointing_is_measured_here() -> None:
    """On a GPU, activation checkpointing should use less memory and take more time."""
    width = scaled(4096, lambda w: 400 * w * w)  # @measure width  # @hide
    note(rf"""
        [Activation checkpointing](#checkpointing_trades_flops_for_memory) keeps only the input of
        each segment of layers, and computes the other activations a second time. What does that
        change on a GPU, for `16` layers in segments of `4`?

        - *Memory.* Without segments, the input and the outputs of all layers are in memory,
          `16 + 1 = 17` activations. With segments there are, at the peak, the inputs of the `4`
          segments and the outputs of one segment's `4` layers, `16 / 4 + 4 = 8`. An activation has
          `16384 * 4096` elements of `2` bytes, `2**27` bytes: `17 * 2**27 / 2**30 = 2.125` GiB
          without segments, `8 * 2**27 / 2**30 = 1` GiB with. The weights and all gradients are
          added to both.
        - *Time.* With a second forward pass, a step costs `2 + 2 + 4 = 8` FLOPs per weight and row
          of `x` instead of `6`, and takes about a third longer.

        `weights` are `16` matrices of `4096 * 4096` elements, and `x` is a large batch. The first
        step has no segments (`None`). `deep_gradient` runs a forward and a backward pass, here
        called a step, and `max_memory_allocated` returns the most memory in use since it was reset.
        The gradients may differ a little in rounding.{shrunk(width, 4096)}
    """)
    layers, rows, dtype = 16, 4 * width, narrow_format()  # @hide
    drawn = torch.randn(layers, width, width, device="cuda") / width**0.5  # @hide
    weights = [w.to(dtype).requires_grad_() for w in drawn]  # @hide
    x = torch.randn(rows, width, device="cuda").to(dtype)  # @hide
    del drawn  # @hide
    gradients, peaks, times = [], [], []  # @hide
    for segment in (None, 4):
        step = partial(deep_gradient, weights, x, segment)
        times.append(time_call(step, "cuda"))  # @measure times[-1]
        torch.cuda.reset_peak_memory_stats()
        gradients.append(step().clone())
        peaks.append(torch.cuda.max_memory_allocated())  # @measure peaks as B
    assert peaks[1] < peaks[0], "In segments, a step uses less memory."
    slower = times[1].seconds / times[0].seconds  # @measure slower as times
    assert 1 < slower < 2, \
        "In segments, a step takes longer, and less than twice as long."
    first, second = gradients  # @hide
    off = float((first - second).norm() / first.norm())  # @measure off
    assert off < 0.02, "The gradient is the same, to 2 %."
    question(r"""
        A step without checkpointing takes `90` ms, all of it in matmuls: `2` FLOPs per weight and
        row forward, `4` backward. With checkpointing the forward pass is computed twice. How many
        ms does the step take then?
    """, answer=90 * 8 / 6,
        check=90 * len(["x @ w", "x @ w again", "gradient of w", "gradient of x"])
        / len(["x @ w", "gradient of w", "gradient of x"]), unit="ms",
        wrong={
            "Only the forward pass is computed twice.": 180,
            "The forward pass is a third of the step, not half.": 135,
        },
        hint="Which part of the `90` ms is the forward pass?",
        why="The forward pass is `2` of `6` FLOPs, a third of the time. It is computed once more: `90 + 30`.")
