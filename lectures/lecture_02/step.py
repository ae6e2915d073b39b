"""What one training step takes, in bytes and in FLOPs."""
from counters import Alive, saved_bytes_of
import gc
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor
from units import GiB, MiB

from litbook import aside, figure, misbelief, note, question, requires

from .figures import plot_bill
from .measure import (
    bill, gradient_bytes, scaled, shrunk, step_flops,
)
from .models import OPTIMIZERS, Stack, linear_batch, whole_numbers
from .timeline import the_batch_decides_where_memory_peaks


def the_bill_of_a_step() -> None:
    """The bill of a training step."""
    note(r"""
        What does a training step cost in memory? A small model of square matrices is a good place
        to count, because every tensor in it can be named. The usual formula gives a result that is
        too low. Here each term is compared with a measurement.
    """)
    parameters_follow_from_the_shapes()
    autograd_keeps_more_than_the_hidden_layers()
    without_gradients_two_outputs_are_alive()
    gradients_come_in_two_kinds()
    the_bill_in_bytes()
    the_bill_is_measured_on_the_gpu()
    the_batch_decides_where_memory_peaks()
    parts_of_a_batch_add_up_to_the_whole()


def parameters_follow_from_the_shapes() -> None:
    """The number of parameters follows from the shapes of the matrices."""
    note(r"""
        This part adds up the memory of a training step of a small model called `Stack`. How many
        parameters does it have? Its input is a row of $d$ elements; $d$ is the *width*. Then come
        $L$ hidden layers, each a matrix of $d \times d$ weights and nothing else: no bias, no
        activation function. The *head*, the last layer, turns $d$ elements into a single output,
        with $d$ weights. Together that makes

        [@eq:weights]: $$
        P = L\,d^2 + d
        $$

        parameters. A width of $d=4$ and $L=2$ hidden layers give `2 * 4**2 + 4 = 36`. PyTorch
        counts the same number, and agrees with the formula for width `64` as well:
    """)
    counts = []
    for width, layers in ((4, 2), (64, 2)):
        model = Stack(width, layers)
        counts.append(sum(p.numel() for p in model.parameters()))  # @inspect counts
    assert counts[0] == 4 * 4 * 2 + 4 == 36, \
        "Width 4 and 2 hidden layers give 36 parameters."
    assert counts[1] == 64 * 64 * 2 + 64 == 8256, \
        "Width 64 and 2 hidden layers give 8256 parameters."
    question("A `Stack` of width `10` has `410` parameters. How many hidden layers does it have?",
             answer=next(
                 n for n in range(99) if sum(p.numel() for p in Stack(10, n).parameters()) == 410
             ),
        wrong={
            "The head is not a hidden layer.": 5,
        },
        check=(410 - 10) // 10**2,
        hint="How many weights does the head have, and how many does each hidden layer have?", unit="layers",
             why=r"""
                 The head has `10` weights, so `400` are left for the hidden layers. Each has
                 `10 * 10 = 100`.
             """)


def autograd_keeps_more_than_the_hidden_layers() -> None:
    """In a stack of matmuls, autograd saves the input of every layer, the prediction and the target."""
    note(r"""
        Which tensors does autograd, the part of PyTorch that computes gradients, save for the
        backward pass? In a `Stack`, whose layers are matmuls and nothing else, it saves the input
        of every layer, because the gradient of a layer's weights
        [is computed from its input](#the_backward_pass_needs_two_matmuls).

        By hand, for a batch of `2` rows of `4` elements, and a model of `2` hidden layers and a
        head. The head, the last layer, outputs one number per row, the *prediction*.

        - Each of the `3` layers has an input of `2 * 4 = 8` elements: the input of the model, and
          the outputs of the two hidden layers. That makes `3 * 8 = 24`.
        - The loss is the mean of $(\mathrm{prediction} - \mathrm{target})^2$. Its gradient is
          computed from both, so autograd saves `2` predictions and `2` targets as well:
          `2 + 2 = 4`.

        Together that is `24 + 4 = 28` elements. In this book, all of these saved tensors count as
        *activations*. For $B$ rows, width $d$ and $L$ hidden layers, the same count gives

        [@eq:kept]: $$
        Bd\,(L+1) + 2B
        $$

        elements, `8 * 64 * 3 + 2 * 8 = 1552` for `8` rows, width `64` and `2` hidden layers.
        Compare that with PyTorch. `linear_batch` generates inputs `x` and targets `y`.
        `saved_bytes_of` adds up the bytes that autograd saves, without the weights:
    """)

    def kept(batch: int, width: int, layers: int) -> int:
        model, (x, y) = Stack(width, layers), linear_batch(width, batch)
        loss = lambda: F.mse_loss(model(x), y)
        # elements of 4 bytes
        return saved_bytes_of(loss, model.parameters()) // 4

    # Rows of the batch, width, hidden layers of three models:
    sizes = (2, 4, 2), (8, 64, 2), (8, 64, 10)
    measured = [kept(*size) for size in sizes]  # @inspect measured
    assert measured == [28, 1552, 5648], "For the three models, autograd saves 28, 1552 and 5648 elements."  # @hide
    exact = [b * d * (n + 1) + 2 * b for b, d, n in sizes]  # @inspect exact
    assert measured == exact, "The formula gives the same three numbers."
    misbelief("The activations are batch times width times layers.", rf"""
        Those are the outputs of the hidden layers alone, {2 * 4 * 2} elements in the first model.
        Autograd also saves the input, the prediction and the target, {measured[0]} in all.
    """)
    note(r"""
        So at a fixed width, activations grow with the batch and with the number of layers. The
        weights grow with the layers, but not with the batch.
    """)
    question(r"""
        The second of the three models, of width `64` with a batch of `8` rows, gets one more hidden
        layer. How many more elements does autograd save?
    """, answer=kept(8, 64, 3) - kept(8, 64, 2),
        wrong={
            "Those are the weights of the layer, which do not count as saved.": 4096,
            "The number of predictions and targets stays the same.": 528,
        },
        check=8 * 64,
        hint="Which one tensor does the new layer need for its gradient?",
        why=r"""
            The new layer's input is saved, `8 * 64` elements. The head still outputs one number per
            row, so there are no more predictions and targets.
        """, unit="elements")


def alive_at_once(layers: int, *, gradients: bool, trains: bool = True) -> int:
    """The most bytes of layer outputs that a forward pass has in memory at once."""
    model, x = Stack(64, layers).train(trains), torch.randn(8, 64)
    with torch.set_grad_enabled(gradients), Alive() as alive:
        model(x)
    return alive.most


@aside
def without_gradients_two_outputs_are_alive() -> None:
    """In a chain of layers without gradients, an output lives until the next layer has read it."""
    note(r"""
        A model that is used and not trained has no backward pass. How much memory do the outputs of
        its layers need then?

        In training, autograd keeps all of them for the backward pass. Under `torch.no_grad()`
        nothing is kept. In a chain of layers, where each output is read by one layer only, it is
        freed as soon as that layer has read it. While a layer computes, two tensors are in memory:
        its input and its output. The number of layers does not matter.

        Take `16` hidden layers of width `64`, and `8` rows. `alive_at_once` runs the forward pass,
        looks after each operation which outputs are still in memory, and returns the largest number
        of bytes that they need at one time:
    """)
    # The output of one hidden layer, and of the head, the last layer:
    one, head = 8 * 64 * 4, 8 * 4  # @inspect one as B, head as B
    training = alive_at_once(16, gradients=True)  # @inspect training as B
    using = alive_at_once(16, gradients=False)  # @inspect using as B
    assert training == 16 * one + head, \
        "In training, the outputs of all layers are in memory."
    assert using == 2 * one, \
        "Under no_grad, only two are: one being read, one being written."
    deeper = alive_at_once(64, gradients=False)  # @inspect deeper as B
    assert deeper == using, \
        "With 64 layers, still only two outputs are in memory."
    note("Another switch is `model.eval()`, here `trains=False`. Does it free the outputs as well?")
    evaluated = alive_at_once(16, gradients=True, trains=False)  # @inspect evaluated as B
    assert evaluated == training, \
        "After model.eval(), all outputs are still kept."
    misbelief("`model.eval()` turns gradients off.", rf"""
        It only tells layers such as dropout that this is not training. {evaluated:,} bytes are in
        memory, as before. Only `torch.no_grad()` or a similar switch stops that.
    """)
    question(r"""
        Each of `48` layers has an output of `100` MiB. How many MiB of outputs are in memory at
        once under `no_grad`, and how many if `no_grad` is forgotten?
    """, answer=[100 * (alive_at_once(48, gradients=g) // one) for g in (False, True)],
        check=[100 * 2, 100 * 48], unit="MiB", why=r"""
            Under `no_grad` two outputs are in memory, the one being read and the one being written.
            Otherwise autograd keeps all `48`.
        """)


@aside
def gradients_come_in_two_kinds() -> None:
    """Gradients of parameters stay until they are cleared; gradients of activations are not kept."""
    note(r"""
        A backward pass computes gradients of two kinds. How much memory does each need?

        - *Gradients of parameters* are what the optimizer reads. So they stay until they are
          cleared.
        - *Gradients of activations* are only needed on the way: the gradient of a layer's output,
          an *activation*, is used to compute the gradients of the layer's weights and of its input,
          and then its memory is freed. While it exists, it is as large as the activation.

        Here is a model of two hidden layers of width `4` and a head, `4 * 4 + 4 * 4 + 4 = 36`
        parameters, on a batch of `2` rows. `hidden` is the output of the first layer. `retain_grad`
        tells autograd to store its gradient. The head has one output per row, and `[:, 0]` removes
        that axis. `gradient_bytes` adds up the gradients of the parameters:
    """)
    model, (x, y) = Stack(4, 2), linear_batch(4, 2)
    hidden = x @ model.weights[0]
    hidden.retain_grad()
    output = (hidden @ model.weights[1] @ model.weights[2])[:, 0]
    assert torch.equal(output, model(x)), "the model's own result"  # @hide
    F.mse_loss(output, y).backward()
    stay = gradient_bytes(model)  # @inspect stay as B
    assert stay == 36 * 4, \
        "Each of the 36 parameters has a gradient of 4 bytes."
    assert hidden.grad is not None, "The gradient of the hidden values was kept."  # @hide
    assert hidden.grad.shape == hidden.shape == (2, 4), \
        "The gradient of hidden has one element for each hidden value."
    with warnings.catch_warnings(action="ignore"):  # @hide
        dropped = output.grad
    assert dropped is None, \
        "Without retain_grad, the gradient of output is not kept: output.grad is None."
    note(r"""
        So a larger batch does not need more memory for the gradients of parameters, because the
        number of parameters stays the same. It does for the gradients of activations, while they
        exist, because each row has activations of its own.
    """)
    x, y = linear_batch(4, 1000)  # @hide
    hidden = x @ model.weights[0]  # @hide
    F.mse_loss(model(x), y).backward()  # @hide
    question(r"""
        The batch grows from `2` rows to `1000`. How many bytes do the gradients of parameters need,
        and how many does the gradient of the first hidden values need?
    """, answer=[gradient_bytes(model), hidden.nbytes],
        check=[4 * 36, 4 * 1000 * 4], unit="B", why=r"""
            There are `36` parameters for any batch, so their gradients need `144` bytes. The hidden
            values are now `1000` rows of `4` elements of `4` bytes.
        """)


def the_bill_in_bytes() -> None:
    """A training step keeps parameters, gradients, optimizer state and activations."""
    note(r"""
        What fills the memory in training, and with how many bytes? Values of four kinds. A step
        computes *activations* with the *parameters*, *gradients* from the activations, and new
        parameters from the gradients and the optimizer's *state*. Each kind is kept because
        something computed later needs it. (The sum of their bytes is not
        [the peak](#the_batch_decides_where_memory_peaks), which has to fit into memory: these bytes
        are not all there at the same time, and tensors that live only briefly are added.)

        By hand, for a `Stack`, a model whose layers are matmuls and nothing else, of two hidden
        layers of width `4` and a head, with a batch of `2` rows, the optimizer AdaGrad and
        `float32`, $4$ bytes for each value:

        | kind | values | bytes |
        |---|---|---|
        | parameters: two matrices of `4 * 4`, and the head's `4` weights | `4 * 4 + 4 * 4 + 4 = 36` | `36 * 4 = 144` |
        | gradients: one for each parameter | $36$ | $144$ |
        | optimizer state, what it remembers from step to step: in AdaGrad one value for each parameter | $36$ | $144$ |
        | activations, which [autograd saves](#autograd_keeps_more_than_the_hidden_layers): for each of `2` rows, the inputs of three layers, `4` values each, and, for the gradient of the loss, the prediction and the target | `2 * (3 * 4 + 1 + 1) = 28` | `28 * 4 = 112` |

        Together that is `144 + 144 + 144 + 112 = 544` bytes. `bill` takes such a training step, and
        adds up the bytes of each kind:
    """)
    small = bill("AdaGrad", width=4, layers=2, batch=2)  # @inspect small as B
    assert list(small.values()) == [144, 144, 144, 112], \
        "Parameters, gradients and state need 144 bytes each, activations 112."
    formula = 4 * (36 + 2 * 4 * 2 + 36 + 36)  # @hide
    total = sum(small.values())  # @inspect total as B
    assert (formula, total) == (496, 544), \
        "CS336's formula gives 496 bytes, and 544 are measured."  # @hide
    assert total == 544, "Together that is 544 bytes."
    misbelief(r"""
        In float32 a step needs `4 * (parameters + activations + gradients + state)` bytes, with
        batch times width times layers for the activations.
    """, rf"""
        The four kinds are right, but the activations are too few. This formula, from the course
        CS336 [@cs336], counts only the outputs of the two hidden layers, `2 * 4 * 2 = 16` values.
        Autograd also saves the input, the prediction and the target. The formula gives {formula}
        bytes, and {total} are measured.
    """)
    wide = bill("AdaGrad", width=64, layers=2, batch=8)  # @hide
    formula = 4 * (3 * 8256 + 8 * 64 * 2)  # @hide
    assert (formula, sum(wide.values())) == (103168, 105280), \
        "For a model of width 64, the formula is too low as well."  # @hide

    note(r"""
        With another optimizer only its state changes. The picture shows that for a model of width
        `64` with `64 * 64 * 2 + 64 = 8256` parameters: each additional value per parameter adds
        `4 * 8256 / 1024 = 32.25` KiB.
    """)
    batch = 64  # @hide
    bills = {name: bill(name, 64, 2, batch) for name in OPTIMIZERS}  # @hide
    rest = {sum(b.values()) - b["optimizer state"] for b in bills.values()}  # @hide
    kept = 4 * (batch * 64 * 3 + 2 * batch)  # @hide
    assert rest == {2 * 4 * 8256 + kept}, "Parameters, gradients and activations are equal for all six optimizers."  # @hide
    figure(plot_bill(bills), caption=rf"""
        Bytes that a step keeps, for six optimizers, in KiB, measured at a batch of {batch}. Only
        the optimizer state differs.
    """, alt=r"""
        Six stacked bars, one for each optimizer. Parameters, gradients and activations are the same
        in all of them. Optimizer state is absent for SGD, as large as the parameters for momentum,
        AdaGrad and RMSProp, and twice as large for Adam and AdamW.
    """)
    question(rf"With AdaGrad, a step of the model of `36` parameters keeps `{total}` bytes. AdaGrad remembers one value for each parameter, Adam two. How many bytes does the step keep with Adam?",
             answer=sum(bill("Adam", width=4, layers=2, batch=2).values()),
        wrong={
            "That is with AdaGrad.": total,
            "Adam remembers one more value than AdaGrad, not two.": total + 2 * 144,
        },
        check=total + 4 * 36,
        hint="Only the optimizer's state grows. By how many bytes for each parameter?",
        why=r"""
            Adam remembers one more value for each of the `36` parameters, `4` bytes each: `144`
            bytes more. Everything else stays the same.
        """, unit="B")


def bill_on_card(  # @stepover
    name: str, width: int, layers: int, batch: int
) -> tuple[dict[str, int], int]:
    """The bytes of GPU memory that each kind takes in one step, and the step's peak."""
    gc.collect()  # now, not in between: a first optimizer is held by a cycle
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    stages = [torch.cuda.memory_allocated()]

    def grown() -> int:
        stages.append(torch.cuda.memory_allocated())
        return stages[-1] - stages[-2]

    model = Stack(width, layers).cuda()
    parameters = grown()
    optimizer = OPTIMIZERS[name](model.parameters())
    state = grown()  # AdaGrad makes its own at once
    x, y = (t.cuda() for t in linear_batch(width, batch))
    loss = F.mse_loss(model(x), y)
    activations = grown()
    loss.backward()
    del loss, x, y
    gradients = grown() + activations
    optimizer.step()
    state += grown()
    found = {
        "parameters": parameters, "gradients": gradients,
        "optimizer state": state, "activations": activations,
    }
    return found, torch.cuda.max_memory_allocated() - stages[0]


@aside
@requires("cuda")
def the_bill_is_measured_on_the_gpu() -> None:
    """On a GPU, the bytes in use should agree with the bytes counted, if the tensors are large."""
    width = scaled(2048, lambda w: 200 * w * w)  # @measure width  # @hide
    note(rf"""
        Does a GPU really use the bytes that were counted for
        [parameters, gradients, optimizer state and activations](#the_bill_in_bytes)? For large
        tensors, expect it to within a MiB for each kind. For small ones it uses more, because
        PyTorch rounds the bytes of each tensor up to whole
        [blocks](#blocks_are_multiples_of_a_smallest_one) of $512$ bytes.

        By hand, count for values of $4$ bytes:

        - A matrix of `4 * 4` has `4 * 4 * 4 = 64` bytes and gets $512$, which is `512 / 64 = 8`
          times as many.
        - A matrix of `2048 * 2048` has `2048 * 2048 * 4 = 2**24` bytes, $16$ MiB. That is a whole
          number of blocks, `2**24 / 512 = 32768`, so nothing is added.

        So take `4` hidden layers of a `width` of `2048`, with one such matrix each, and a batch of
        `2048` rows, so that the input of each layer has $16$ MiB as well. The last layer, the
        *head*, turns `2048` values into one, so its weights have only `2048 * 4 = 8192` bytes. With
        the optimizer AdamW, expect

        | kind | MiB |
        |---|---|
        | parameters: $4$ matrices | `4 * 16 = 64` |
        | gradients: one for each parameter | `4 * 16 = 64` |
        | optimizer state: two values for each parameter, made in the first call of `step` | `2 * 64 = 128` |
        | activations: each of the $5$ layers keeps its input, for the gradient of its weights | `5 * 16 = 80` |

        `memory_allocated` returns the bytes that tensors use on the GPU, so its growth is what the
        parameters of a new model need. `bill_on_card` measures each kind in this way, during a
        training step. `bill` counts the same bytes from the sizes of the
        tensors:{shrunk(width, 2048)}
    """)
    before = torch.cuda.memory_allocated()
    model = Stack(width, 4).cuda()
    grown = torch.cuda.memory_allocated() - before  # @measure grown as B
    assert 0 <= grown - 4 * (4 * width**2 + width) < MiB, \
        "Four matrices and a head of float32 need the bytes counted for them, or less than a MiB more."
    del model  # @hide
    size = width, 4, width  # width, hidden layers, rows of the batch
    bill_on_card("SGD", *size)  # @stepover  # @hide
    watched = {name: bill_on_card(name, *size) for name in OPTIMIZERS}  # @stepover  # @hide
    bills = {name: found for name, (found, _) in watched.items()}  # @measure bills  # @hide
    shares = [b["optimizer state"] / b["parameters"] for b in bills.values()]  # @hide
    copies = [round(share, 2) for share in shares]  # @measure copies  # @hide
    assert copies == [0, 1, 1, 1, 2, 2], \
        "SGD has no state; momentum, AdaGrad and RMSProp have as many bytes of it as of parameters, Adam and AdamW twice as many."  # @hide
    measured, _ = bill_on_card("AdamW", *size)  # @measure measured as B  # @stepover
    counted = bill("AdamW", *size)  # @measure counted as B
    over = [measured[kind] - counted[kind] for kind in counted]  # @measure over as B
    assert 0 <= min(over) <= max(over) < MiB, \
        "With AdamW, each kind needs the bytes counted for it, or less than a MiB more."
    found, peak = watched["SGD"]  # @hide
    share = peak / sum(found.values())  # @measure share as %  # @hide
    assert share < 1, "With SGD, at this width and batch, the peak is below the sum of all kinds."  # @hide
    figure(plot_bill(bills, MiB),
        caption="One step on the GPU, measured by the allocator's counter, in MiB.", alt=r"""
            Six stacked bars, one for each optimizer. Parameters, gradients and activations are the
            same in all of them; optimizer state is nothing, one or two copies of the parameters.
        """)
    question(r"""
        A model has `4` GiB of parameters in `float32` and is trained with AdamW. By how many bytes
        does `memory_allocated` grow in the first call of `step`?
    """, answer=2 * 4 * GiB,
        wrong={
            "AdamW keeps two values for each parameter.": 4 * GiB,
        },
        check=8 * 2**30, unit="B", why=r"""
            AdamW allocates its state in the first call of `step`: two values for each parameter, so
            twice the bytes of the parameters. Parameters and gradients are already in memory.
        """)


@aside
def parts_of_a_batch_add_up_to_the_whole() -> None:
    """In gradient accumulation, the gradients of parts of a batch add up to that of the whole, if each part is weighted by its share."""
    note(r"""
        The activations of a batch do not fit into memory. Can you process a part of the batch at a
        time, and get the same training step? Yes, if each example's gradient depends on that
        example alone (batch normalization breaks this), because `backward` *adds* to the gradients
        that are already there. So cut the batch into *micro-batches*, call `backward` for each, and
        take one step at the end. This is *gradient accumulation*.

        By hand: four examples have the gradients $1$, $2$, $3$ and $6$. The loss is a mean, so the
        gradient of the whole batch is `(1 + 2 + 3 + 6) / 4 = 3`. Two micro-batches have the
        gradients `(1 + 2) / 2 = 1.5` and `(3 + 6) / 2 = 4.5`, and the sum `1.5 + 4.5 = 6` is twice
        too large. So multiply each loss by its part's share of the batch, here `2 / 4 = 0.5`:
        `0.5 * 1.5 + 0.5 * 4.5 = 3`.

        The same with a `Stack` of two hidden layers of width `16`, and `32` examples, inputs `x`
        and targets `y`. All are whole numbers, so that no sum is rounded. `accumulated` calls
        `backward` for micro-batches of given sizes, and returns the gradient of all weights:
    """)
    model = Stack(16, 2).double()  # @hide
    with torch.no_grad():  # @hide
        for w in model.weights:
            w.copy_(whole_numbers(*w.shape))
    x, y = whole_numbers(32, 16).double(), whole_numbers(32).double()  # @hide

    def accumulated(sizes: list[int], factor: float) -> Tensor:
        model.zero_grad()
        for inputs, targets in zip(x.split(sizes), y.split(sizes)):
            loss = F.mse_loss(model(inputs), targets) * factor
            loss.backward()
        return torch.cat([w.grad.flatten() for w in model.weights])

    whole = accumulated([32], factor=1)  # the whole batch at once
    unweighted = accumulated([8, 8, 8, 8], factor=1)
    weighted = accumulated([8, 8, 8, 8], factor=1 / 4)
    assert torch.equal(unweighted, 4 * whole), \
        "With a factor of 1, the gradient is 4 times too large."
    assert torch.equal(weighted, whole), \
        "With the share, 1/4, it is exactly the whole gradient."
    misbelief("Call `backward` on each micro-batch, do not clear, and step at the end.", r"""
        Without the share, the gradient of four equal parts is $4$ times too large, because each
        loss is the mean over its own part. If the loss is a mean over tokens, weight each
        micro-batch by its share of the tokens.
    """)
    note(r"""
        What does that save? The model has three layers, two hidden ones and the head, each with
        `16` inputs. For each row autograd saves these inputs and, for the gradient of the loss, the
        prediction and the target: `3 * 16 + 1 + 1 = 50` values of $4$ bytes. That is
        `32 * 50 * 4 = 6400` bytes for the whole batch, and `8 * 50 * 4 = 1600` for a micro-batch,
        and only one micro-batch at a time is in memory. `bill` measures these bytes in a training
        step:
    """)
    sizes = [bill("SGD", 16, 2, rows)["activations"] for rows in (32, 8)]  # @inspect sizes as B
    assert sizes == [6400, 1600], \
        "A micro-batch of 8 rows needs a quarter of the activations of 32 rows."
    at_once = step_flops(32, 16, 2)  # @hide
    assert 4 * step_flops(8, 16, 2) == at_once, \
        "In micro-batches, a step costs the same number of FLOPs."  # @hide
    weights = [*model.parameters()]  # @hide
    apart = [  # of each part alone  # @hide
        torch.cat([g.flatten() for g in torch.autograd.grad(F.mse_loss(model(inputs), targets), weights)])
        for inputs, targets in zip(x.split([24, 8]), y.split([24, 8]))
    ]
    factors = torch.linalg.lstsq(torch.stack(apart, dim=1), whole[:, None]).solution  # so that they add up to the whole  # @hide
    question(r"""
        A batch of `32` examples is cut into parts of `24` and `8`, and each loss is the mean over
        its part. By what factor does each of the two losses have to be multiplied?
    """, answer=[n / len(x) for n in (24, 8)],
        check=factors.flatten().tolist(),
        hint="Each loss is a mean over its own part. What share of the examples is that?",
        why=r"""
            Each loss is a mean over its own part, so it is weighted by its share of the examples:
            three quarters and one quarter. With one half for each, the eight examples would count
            as much as the `24`.
        """)
