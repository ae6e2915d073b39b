"""A training loop, and what its losses say."""
import math
from inspect import signature
from typing import NamedTuple

import torch
import torch.nn.functional as F

from litbook import aside, figure, misbelief, note, question

from .figures import plot_losses
from .models import Stack, linear_batch


def training() -> None:
    """A training loop."""
    note(r"""
        The training loop of CS336, in its edition of 2025, takes a learning rate and a number of
        layers as arguments and uses neither [@cs336]. So its two runs, the second meant as tuning,
        are the same experiment. Nothing about the loop looks wrong; this could have happened to
        anyone. To find such a mistake, change each argument once and see whether the result
        changes.
    """)
    the_task_has_a_known_answer()
    the_loop_finds_it()
    a_rate_is_too_small_right_or_too_large()
    an_unused_argument_changes_nothing()


def the_task_has_a_known_answer() -> None:
    """With a task whose answer is known, the loss of a model that predicts zero can be computed."""
    note(r"""
        How can one tell that the data and the loss function of a training loop are right? Give it a
        task whose answer is known, and compute what the first loss has to be.

        The inputs $x_0, x_1, x_2, \ldots$ are random and independent, with mean `0` and variance
        `1`. The *target* is $0 \cdot x_0 + 1 \cdot x_1 + 2 \cdot x_2 + \ldots$, so the correct
        weights are `0`, `1`, `2` and so on. The loss is the *mean squared error*: the mean of
        $(\mathrm{prediction} - \mathrm{target})^2$.

        Take a model that always predicts zero. Its error is the whole target, so its loss is the
        mean square of the target. By hand, for three weights:

        - $0 \cdot x_0$ has the mean square `0**2 = 0`;
        - $1 \cdot x_1$ has the mean square `1**2 = 1`, because $x_1$ has variance `1`;
        - $2 \cdot x_2$ has the mean square `2**2 = 4`, for the same reason.

        The target has the mean square `0 + 1 + 4 = 5`. Mean squares of independent terms with mean
        zero [add up](#dividing_by_the_root_keeps_the_scale), because the product of two such terms
        has mean zero. `linear_batch` draws inputs and targets, here for `16` weights:
    """)
    x, y = linear_batch(16, 100_000)  # @unnoticed: 100_000: more draws come nearer
    predicted = sum(i**2 for i in range(16))  # @inspect predicted
    assert predicted == 1240, "The squares of 0 to 15 add up to 1240."
    measured = y.square().mean().item()  # @inspect measured
    assert 0.97 < measured / predicted < 1.03, \
        "The measured mean square of the targets is within 3 % of 1240."
    note(r"""
        So if a loop on this task starts from weights of zero, and its first loss on a large batch
        is far from that number, its data or its loss function is wrong.
    """)
    solved = torch.linalg.lstsq(x[:16].double(), y[:16].double()).solution  # @hide
    assert solved.round().tolist() == list(range(16)), \
        "Solved as equations, 16 examples give the weights."  # @hide
    signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 4)  # all rows of four signs  # @hide
    moments = signs.mean().item(), signs.square().mean().item()  # @hide
    assert moments == (0, 1), "Signs have mean 0 and variance 1, as the inputs do."  # @hide
    question(r"""
        With `4` inputs the weights are `0`, `1`, `2` and `3`. What loss do you expect before the
        first step, from a model that predicts zero?
    """, answer=sum(i**2 for i in range(4)),
        wrong={
            "The weights begin at zero, not at one.": 30,
            "Add up the squares of the weights, not the weights.": 6,
        },
        check=F.mse_loss(torch.zeros(16), signs @ torch.arange(4.0)).item(),
        hint="What is the mean square of each of the four terms?",
        why=r"""
            The error is the whole target. Its four terms have mean squares `0`, `1`, `4` and `9`,
            and these add up.
        """)


class Run(NamedTuple):
    """What a training run leaves behind: its model, and the loss of each step."""

    model: Stack
    batch_losses: list[float]  # on the batch of each step, before the step
    losses: list[float]  # on one fixed batch, after each step


def train(
    *, width: int = 16, layers: int = 0, batch: int = 4, steps: int = 200,
    lr: float = 0.05, seed: int = 0,
) -> Run:
    """Trains a stack of layers by SGD on random batches, and returns the run with its losses."""
    for_weights = torch.Generator().manual_seed(2 * seed)
    for_data = torch.Generator().manual_seed(2 * seed + 1)
    model = Stack(width, layers, for_weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for_test = torch.Generator().manual_seed(12345)
    test_x, test_y = linear_batch(width, 16, for_test)
    run = Run(model, [], [])
    for _ in range(steps):
        x, y = linear_batch(width, batch, for_data)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run.batch_losses.append(loss.item())
        with torch.no_grad():
            run.losses.append(F.mse_loss(model(test_x), test_y).item())
    return run


def the_loop_finds_it() -> None:
    """A training loop repeats five lines; on linear data without noise, it finds the weights."""
    note(r"""
        A training loop repeats five lines:

        - get a batch;
        - compute the loss, which says how far the predictions are from the targets;
        - `backward()` computes the gradient: how the loss grows with each weight;
        - `step()` moves each weight against its gradient, times the learning rate `lr`;
        - `zero_grad()` clears the gradients, because the next `backward()` would add to them.

        Does the loop find the weights that made its data? In the data of `linear_batch` each target
        is a weighted sum of `16` inputs, with the weights `0` to `16 - 1 = 15`. The model has `16`
        weights of its own, which start at random values. The loop takes `200` steps, each with a
        new batch of `4` examples:
    """)
    # 16 inputs, no hidden layer:
    model = Stack(16, 0, torch.Generator().manual_seed(0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(1)
    for _ in range(200):
        x, y = linear_batch(16, 4, data)
        loss = F.mse_loss(model(x), y)  # @inspect loss.item()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    note(r"""
        Has it found them? Each loss above is from a different batch, so they cannot be compared.
        `train` runs the same loop, and after each step measures the loss on a batch that stays the
        same. This loss can fall to zero, because the data have no noise: with the correct weights
        every prediction equals its target.
    """)
    run = train(lr=0.05, steps=200)
    assert torch.equal(run.model.weights[0], model.weights[0]), \
        "The function finds the same weights as the loop above."  # @hide
    assert len(run.losses) == 200, "There is a loss for each step."  # @hide
    final = round(run.losses[-1], 6)  # @inspect final
    assert final == 0.0, "At the end the loss is zero, to six decimals."  # @zero: the loss comes to its least
    w = run.model.weights[0].flatten().tolist()
    found = [round(value, 3) for value in w]  # @inspect found
    assert found == list(range(16)), "The loop has found the weights 0 to 15."
    usual = signature(train).parameters  # @hide
    assert (usual["batch"].default, usual["width"].default) == (4, 16), "The function draws batches of 4 rows of 16 inputs."  # @hide
    falling, billionth = run.losses[-1] / run.losses[0], 1e-9  # @hide
    assert falling < billionth, "The loss ends at less than a billionth."  # @hide
    figure(plot_losses({0.05: run.losses}), caption=r"""
        Loss on the fixed batch after each of the `200` steps, at a learning rate of `0.05`, on a
        logarithmic scale.
    """, alt="A line that falls over more than ten powers of ten, with small bumps.")
    early = Stack(16, 0)  # @hide
    before = early.weights[0].detach().clone()  # @hide
    rule = torch.optim.SGD(early.parameters(), lr=0.05)  # @hide
    x, y = linear_batch(16, 4)  # @hide
    F.mse_loss(early(x), y).backward()  # @hide
    rule.zero_grad()  # @hide
    rule.step()  # @hide
    question(r"""
        Somebody swaps the last two lines: `zero_grad()` now comes right after `backward()`, and
        `step()` comes last. How many of the `16` weights does a training step change then?
    """, answer=int((early.weights[0] != before).sum()),
        wrong={
            "step() reads the gradients; what does it find there?": 16,
        },
        check=0,
        hint="What does `step()` read, and what is left of it?", unit="weights",
        why=r"""
            None. The gradients are cleared before `step()` reads them, so it finds no gradient. The
            loss never falls, and no error says why.
        """)


@aside
def a_rate_is_too_small_right_or_too_large() -> None:
    """In a linear model, a learning rate can be too small, right or too large."""
    note(r"""
        How can one see that a learning rate is too small or too large? By the loss on a fixed
        batch, one that stays the same. If the rate is too small, this loss falls slowly. If it is
        too large, the loss grows, or goes up and down without coming near its minimum, because
        steps overshoot the minimum and end farther from it than they began.

        By hand, take one weight $w$ that starts at `1`, and the loss $w^2$, which has its minimum
        at zero. The gradient is $2w$, so a step at the learning rate $r$ turns $w$ into
        $w - r \cdot 2w = (1 - 2r)\,w$:

        | rate | factor of each step | weight after two steps | |
        |---|---|---|---|
        | `0.1` | `1 - 2 * 0.1 = 0.8` | `1 * 0.8 * 0.8 = 0.64` | approaches zero slowly |
        | `0.5` | `1 - 2 * 0.5 = 0` | `1 * 0 * 0 = 0` | is at zero after the first step |
        | `1.1` | `1 - 2 * 1.1 = -1.2` | `1 * -1.2 * -1.2 = 1.44` | overshoots zero, and ends farther away |

        At `1.1` the run *diverges*: farther from zero the gradient is larger, so each step is
        larger than the one before.

        Now a linear model with `16` weights, whose limit is found by trying. `train` runs
        [the training loop](#the_loop_finds_it) for `200` steps, each on a new random batch of $4$
        examples, and returns the loss on a fixed batch after each step. Start and data are the same
        in every run. For five rates, `tenth` has the losses after ten steps, and `ends` the last
        losses:
    """)
    rates = (0.01, 0.05, 0.1, 0.2, 0.5)
    runs = {lr: train(lr=lr, steps=200).losses for lr in rates}
    tenth = {lr: losses[9] for lr, losses in runs.items()}  # @measure tenth
    ends = {lr: losses[-1] for lr, losses in runs.items()}  # @measure ends
    assert tenth[0.2] < tenth[0.01], \
        "After ten steps, the loss at 0.2 is lower than at 0.01."
    assert round(ends[0.01], 1) == 0.4, \
        "At 0.01 the last loss is 0.4."
    assert max(ends[0.05], ends[0.1]) < 1e-6, \
        "At 0.05 and at 0.1 the last loss is below a millionth."
    assert ends[0.2] > ends[0.01], \
        "At 0.2 the last loss is higher than at 0.01."
    assert math.isfinite(ends[0.5]) is False, \
        "At 0.5 the last loss is not a finite number."
    figure(plot_losses(runs), caption=r"""
        Loss on the fixed batch after each step, for five learning rates. The axis of losses is
        logarithmic.
    """, alt=rf"""
        Loss against step on a logarithmic axis. The curve for {rates[0]} falls slowly, those for
        {rates[1]} and {rates[2]} fall to the floor of the format, {rates[3]} wanders around its
        start, and {rates[4]} climbs off the page within the first steps.
    """)
    note(r"""
        For `200` steps of this model, `0.01` is too small: the loss is still falling. `0.5` is too
        large: the run diverges. `0.2` is too large as well: the loss goes up and down, because each
        step uses another batch. On some batches a step at this rate shrinks the error, on others it
        overshoots and enlarges it.
    """)
    misbelief("Ten steps at another learning rate are a bit of tuning.", rf"""
        Ten steps can mislead. After ten, the loss at `0.2` is {tenth[0.2]:.0f} and that at `0.01`
        is {tenth[0.01]:.0f}, so `0.2` looks better. After {len(runs[0.1])} it is far worse. Compare
        rates after enough steps, from the same start and on the same fixed batch.
    """)
    tried = (0.1, 0.5, 0.9, 1.0, 1.1)  # @hide
    question(r"""
        In the case by hand, which of the rates `0.1`, `0.5`, `0.9`, `1.0` and `1.1` is the best,
        which one makes the weight bounce between two values, and which one diverges?
    """, answer=[
        min(tried, key=lambda r: abs(1 - 2 * r)), *(r for r in tried if abs(1 - 2 * r) == 1),
        *(r for r in tried if abs(1 - 2 * r) > 1),
    ],
        check=[1 / 2, 2 / 2, 1.1], why=r"""
            At `0.5` the factor is `0`: one step reaches the minimum. At `1.0` it is `-1`, so the
            weight only changes its sign. At `1.1` it is `-1.2`, and the weight grows with each
            step.
        """)


@aside
def an_unused_argument_changes_nothing() -> None:
    """Change the learning rate: if all losses stay the same, the training loop does not use it."""
    note(r"""
        Does a training loop use the learning rate that it is given? Nothing in its losses says so.
        Run it twice with different values, from the same start and on the same data. If the loop
        uses the rate, the losses differ. If they are the same, bit for bit, it does not, and every
        comparison of learning rates that was made with it compared nothing.

        By hand: the weight is `1`, the loss its square, so the gradient is `2`. One step at a rate
        of `0.1` gives `1 - 0.1 * 2 = 0.8`, and at `0.2` it gives `1 - 0.2 * 2 = 0.6`. If both calls
        return `0.8`, the second rate was not used.

        `deaf` contains this mistake. It takes a number of layers and a learning rate, and ignores
        both: it calls `train`, which trains a stack of layers, with fixed values. Its losses after
        each of three steps:
    """)

    def deaf(num_layers: int, lr: float) -> list[float]:
        return train(layers=0, lr=0.01, steps=3).losses

    small, large = deaf(num_layers=0, lr=0.01), deaf(num_layers=4, lr=0.1)
    assert small == large, "Other arguments give the same losses, bit for bit."
    other_rate = train(layers=0, lr=0.02, steps=3).losses
    assert small != other_rate, \
        "Called directly, train gives other losses at another rate."
    run = train(layers=2, lr=0.01, steps=10)  # @hide
    assert math.isfinite(run.losses[-1]) is False, \
        "At a rate of 0.01, the loss is not a finite number after ten steps."  # @hide
    smaller = train(layers=2, lr=0.001, steps=200)  # @hide
    assert round(smaller.losses[-1], 3) == 0.0, \
        "At a rate of 0.001, the deep model learns: its loss falls to zero."  # @zero: the loss comes to its least  # @hide
    misbelief("A `train` that is given `num_layers` and `lr` trains with them.", r"""
        Not in the course CS336, in its edition of 2025: its `train` ignores both and uses fixed
        values [@cs336]. So a second run, meant to tune the learning rate, repeats the first.
    """)
    rates_seen = [0.1, 0.1, 0.1]  # @hide
    weights = [1 - 2 * rate for rate in rates_seen]  # @hide
    question(r"""
        Somebody calls a training loop with the learning rates `0.1`, `0.2` and `0.4`, for one step
        from a weight of `1` with the loss $w^2$. The loop ignores its argument and always uses
        `0.1`. How many different weights do the three calls return, and how many would they return
        if the loop used its argument? Give two numbers.
    """, answer=[len(set(weights)), len({1 - 2 * rate for rate in (0.1, 0.2, 0.4)})],
        check=[len({0.8}), len({0.8, 0.6, 0.2})],
        hint="What is the weight after one step at each rate that is really used?",
        why=r"""
            All three calls return `1 - 0.1 * 2 = 0.8`, one weight. With their own rates they would
            return `0.8`, `0.6` and `0.2`.
        """)
