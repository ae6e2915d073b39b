"""Optimizers: their rules, and what each of them remembers."""
import math
from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from plots import curves

from litbook import aside, explore, figure, misbelief, note, question

from .figures import plot_path
from .measure import gradient_bytes, state_bytes
from .models import OPTIMIZERS, Stack, linear_batch
from .muon import muon_makes_singular_values_equal

CURVES = torch.tensor([1.0, 10.0], dtype=torch.float64)  # along the two axes of a bowl

State = dict[str, Any]
Rule = Callable[[Tensor, Tensor, State], Tensor]  # parameter, gradient, state: what to subtract


def optimizers() -> None:
    """Optimizers."""
    note(r"""
        Every optimizer in this part fits in a few lines. They differ in what they remember about
        past gradients, one or two values for every parameter. The usual one-line summaries get that
        memory wrong: they say *average* where the code keeps a sum, and leave out the correction
        that determines the first steps.
    """)
    plain_sgd_remembers_nothing()
    momentum_is_a_decayed_sum()
    adam_corrects_for_its_start()
    adamw_decays_weights_outside_the_root()
    gradients_add_up_until_they_are_cleared()
    optimizers_differ_in_what_they_remember()
    muon_makes_singular_values_equal()


class Descent:
    """An optimizer that applies a rule to each gradient and subtracts the result from the parameter."""

    def __init__(self, parameters: Iterable[Tensor], rule: Rule) -> None:
        self.parameters, self.rule = list(parameters), rule
        self.states: list[State] = [{} for _ in self.parameters]

    def step(self) -> None:
        with torch.no_grad():
            for p, state in zip(self.parameters, self.states):
                if p.grad is not None:
                    p -= self.rule(p, p.grad, state)


def walk(
    kind: Callable[..., Any], gradients: Tensor, **settings: Any
) -> Tensor:
    """The values of parameters, (step, parameter): at the start, where all are one, and after each step of an optimizer with the given gradients."""
    p = torch.ones_like(gradients[0]).requires_grad_()
    optimizer = kind([p], **settings)
    places = [p.detach().clone()]
    for gradient in gradients:
        p.grad = gradient.clone()
        optimizer.step()
        places.append(p.detach().clone())
    return torch.stack(places)


def lengths_of(places: Tensor, digits: int = 3) -> list[float]:
    """By how much each step of a walk lowered the parameter, rounded to `digits` decimals."""
    steps = places.diff(dim=0).neg().flatten().tolist()
    return [round(step, digits) for step in steps]


def sgd(lr: float) -> Rule:
    """The rule of plain SGD: the gradient times the learning rate."""
    return lambda p, g, state: lr * g


def plain_sgd_remembers_nothing() -> None:
    """Plain SGD subtracts the gradient times the learning rate and remembers nothing."""
    note(r"""
        An *optimizer* changes the parameters so that the loss falls. The simplest one is
        *stochastic gradient descent*, SGD. (Stochastic means random: each gradient comes from a
        random batch.) It multiplies the gradient $g$ by a factor $\eta$, the *learning rate*, and
        subtracts that from the parameter $p$:

        $$p \leftarrow p - \eta\,g$$

        The gradient says how the loss grows with $p$, so subtracting it makes the loss fall. By
        hand, a parameter starts at `1`, the learning rate is `0.1`, and the gradients are `2`, `4`
        and `-2`:

        - after the first step it is `1 - 0.1 * 2 = 0.8`;
        - after the second, `0.8 - 0.1 * 4 = 0.4`;
        - after the third, `0.4 + 0.1 * 2 = 0.6`: a negative gradient moves it up.

        PyTorch's SGD reads the gradient from `.grad`, and takes the same steps:
    """)
    p, ours = 1.0, []
    w = torch.tensor(1.0, requires_grad=True)
    optimizer, theirs = torch.optim.SGD([w], lr=0.1), []
    for g in (2.0, 4.0, -2.0):
        p = p - 0.1 * g
        ours.append(round(p, 4))
        w.grad = torch.tensor(g)
        optimizer.step()
        theirs.append(round(w.item(), 4))
    assert ours == [0.8, 0.4, 0.6], "Our three steps are those by hand."
    assert theirs == ours, "PyTorch's SGD takes the same three steps."
    gradients = torch.randn(20, 5, dtype=torch.float64)  # @hide
    walked = walk(Descent, gradients, rule=sgd(lr=0.1))  # @hide
    library = walk(torch.optim.SGD, gradients, lr=0.1)  # @hide
    assert walked.shape == (21, 5), "There are the start and 20 steps."  # @hide
    assert torch.allclose(walked, library), \
        "With 20 random gradients of 5 parameters they agree as well."  # @hide
    note(r"""
        Nothing is kept for the next step, because a step needs only the parameter and its present
        gradient. So SGD needs no memory of its own.
    """)
    question(r"""
        A model of `8` billion parameters in `float32` is trained with plain SGD. How many bytes
        does the optimizer keep from one step to the next, in addition to parameters and gradients?
    """, answer=state_bytes(optimizer),
        wrong={
            "That is one value of 4 bytes for each parameter. What would SGD keep it for?": 4 * 8 * 10**9,
            "Parameters and gradients do not count here.": 8 * 8 * 10**9,
        },
        check=0, unit="B",
        hint="What does the next step need that is neither a parameter nor a gradient?",
        why=r"""
            None. The next step needs only the parameter and its next gradient. Other optimizers
            remember one or two values for each parameter.
        """)


def momentum(lr: float, beta: float = 0.9) -> Rule:
    """The rule of momentum: the learning rate times a sum of gradients in which older ones fade."""

    def rule(p: Tensor, g: Tensor, state: State) -> Tensor:
        total: Tensor = beta * state.get("sum", torch.zeros_like(g)) + g
        state["sum"] = total
        return lr * total

    return rule


def down_a_bowl(rate: float, momentum: float) -> Tensor:  # @stepover
    """The positions of thirty SGD steps from (1, 1) in the bowl (x² + 10 y²) / 2."""
    p = torch.ones(2, dtype=torch.float64).requires_grad_()
    optimizer = torch.optim.SGD([p], lr=rate, momentum=momentum)
    places = [p.detach().clone()]
    for _ in range(30):
        p.grad = CURVES * p.detach()
        optimizer.step()
        places.append(p.detach().clone())
    return torch.stack(places)


def bowl_places(rate: float, momentum: float) -> list[Any]:  # @stepover
    """The positions of some steps of SGD in the bowl, to six decimals."""
    places = down_a_bowl(rate, momentum)[[1, 2, 3, 5, 10, 20, 30]]
    return [[round(x, 6) for x in place] for place in places.tolist()]


def momentum_is_a_decayed_sum() -> None:
    """Momentum takes longer steps where gradients agree, because it accumulates them."""
    note(r"""
        *Momentum* is the simplest optimizer with a memory: it keeps moving in the direction in
        which it has been moving [@polyak1964]. For each parameter it remembers a number $s$, a sum
        of the gradients so far, in which older ones have less and less weight. Each step multiplies
        $s$ by a factor $\beta$, usually `0.9`, adds the new gradient $g$, and moves the parameter
        by $s$ times the learning rate $\eta$:

        $$s \leftarrow \beta\,s + g \qquad p \leftarrow p - \eta\,s$$

        By hand, let the gradient always be `1` and the learning rate `1`. Then $s$ is

        - `1` in the first step;
        - `0.9 * 1 + 1 = 1.9` in the second;
        - `0.9 * 1.9 + 1 = 2.71` in the third.

        The steps become longer, because old gradients are still part of $s$. They stop growing when
        a step leaves $s$ as it was, $s = \beta s + g$. Solved for $s$:

        $$
        s = \frac{g}{1-\beta}
        $$

        With $\beta = 0.9$ that is `1 / (1 - 0.9) = 10` times the gradient. PyTorch's SGD with
        `momentum=0.9` takes the same steps as this loop:
    """)
    s, lengths = 0.0, []
    for _ in range(200):  # @unnoticed: 200: long enough
        s = 0.9 * s + 1  # the gradient is always 1
        lengths.append(round(s, 2))  # @unnoticed: 2: more digits are as exact
    first = lengths[:3]  # @inspect first
    assert first == [1.0, 1.9, 2.71], \
        "The first three steps have lengths 1, 1.9 and 2.71."
    assert lengths[-1] == 10.0, \
        "In the long run a step has length 1 / (1 - 0.9)."
    ones = torch.ones(200, 1, dtype=torch.float64)  # @hide
    library = lengths_of(walk(torch.optim.SGD, ones, lr=1, momentum=0.9), 2)  # @hide
    assert library == lengths, "PyTorch's steps have the same lengths."  # @hide
    gradients = torch.randn(20, 5, dtype=torch.float64)  # @hide
    ours = walk(Descent, gradients, rule=momentum(lr=0.1))  # @hide
    theirs = walk(torch.optim.SGD, gradients, lr=0.1, momentum=0.9)  # @hide
    assert ours.shape == (21, 5), "There are the start and 20 steps."  # @hide
    assert torch.allclose(ours, theirs), \
        "With random gradients, our momentum and PyTorch's take the same 20 steps."  # @hide
    note(r"""
        If gradients change direction from step to step, they cancel in the sum, and the steps stay
        short. So with momentum, steps are long where gradients agree, and short where they do not.
        The picture shows both:
    """)
    straight = down_a_bowl(0.04, 0.0)  # @hide
    assert torch.allclose(straight[-1], (1 - 0.04 * CURVES) ** 30), \
        "Without momentum, a step leaves 1 minus rate times curvature."  # @hide
    explore(bowl_places, over={
        "rate": [round(0.02 * i, 2) for i in range(1, 21)],
        "momentum": [0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98],
    }, at={"rate": 0.04, "momentum": 0.9}, module="pictures/path.js",
        still=plot_path(down_a_bowl(0.04, 0.9).tolist(), CURVES.tolist()),
        do="Raise the rate without momentum until the path leaves the bowl. Then add momentum: how high can the rate be now?",
        see=rf"""
            Without momentum the path jumps across the steep axis and leaves the bowl above a rate
            of {2 / CURVES.max():.1f}. With momentum it tolerates nearly twice that rate, and moves
            along the flat axis much sooner; with too much momentum it swings past the lowest point
            again and again.
        """, caption=rf"""
            Thirty steps of SGD in a bowl, one dot per step. Each line joins points of equal loss.
            The loss curves {CURVES[1] / CURVES[0]:.0f} times as strongly along the vertical axis.
            The cross is the lowest point.
        """, alt=r"""
            Oval level lines around a cross, and a path that swings across them and past the cross
            before it comes near.
        """)  # @hide
    settings = {"lr": 1, "momentum": 0.9, "dampening": 0.9}  # @hide
    damped = walk(torch.optim.SGD, ones, **settings)  # @hide
    averaged = lengths_of(damped, 6)  # @hide
    assert set(averaged) == {1.0}, \
        "With dampening, the sum would be an average of ones."  # @hide
    misbelief("Momentum is SGD with an exponential average of the gradients.", rf"""
        PyTorch keeps a sum, not an average. If the gradient is always one, an average stays at one.
        The sum grows, and the steps get {lengths[-1]:.0f} times as long.
    """)
    question(r"""
        Plain SGD did well at a learning rate of `0.1`. With momentum and $\beta$ = `0.95`, which
        learning rate gives steps of the same length in the long run, if the gradient stays the
        same?
    """, answer=0.1 * (1 - 0.95),
        check=0.1 / sum(0.95**t for t in range(2000)),
        wrong={
            "At this rate the steps would be 20 times as long.": 0.1,
            "That is for a factor of 0.9.": 0.01,
        },
        hint=r"By which factor, $1/(1-\beta)$, does momentum make the steps longer?",
        why=r"""
            Momentum makes the steps `1 / (1 - 0.95) = 20` times as long. So the learning rate has
            to be `20` times smaller, `0.1 / 20`.
        """)


def adam(
    lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
    correct: bool = True,
) -> Rule:
    """Adam's rule: the average gradient over the root of the average square, corrected for the start."""

    def rule(p: Tensor, g: Tensor, state: State) -> Tensor:
        if not state:
            zero = torch.zeros_like(g)
            state.update(t=0, m=zero, v=zero)
        state["t"] += 1
        state["m"] = betas[0] * state["m"] + (1 - betas[0]) * g
        state["v"] = betas[1] * state["v"] + (1 - betas[1]) * g**2
        lack = [b ** state["t"] if correct else 0 for b in betas]
        average: Tensor = state["m"] / (1 - lack[0])
        square: Tensor = state["v"] / (1 - lack[1])
        return lr * average / (square.sqrt() + eps)

    return rule


def adam_corrects_for_its_start() -> None:
    """Adam's first step is as long as the learning rate, unless the gradient is near zero."""
    note(r"""
        *Adam* keeps two running averages for every weight. The average of the gradient, $m$, says
        in which direction the loss grows. The average of the squared gradient, $v$, says how large
        gradients usually are. Adam divides $m$ by the root of $v$ and steps against it, so the
        steps of a weight with small gradients are about as long as those of a weight with large
        ones. Each step first updates both averages with the new gradient $g$:

        $$m \leftarrow 0.9\,m + 0.1\,g \qquad v \leftarrow 0.999\,v + 0.001\,g^2$$

        By hand, let the first gradient be `7`. Both averages begin at zero. After one step $m$ is
        `0.1 * 7 = 0.7`, and $v$ is `0.001 * 7**2 = 0.049`. Both are too small, because the gradient
        has only a share of `0.1` in $m$, and its square a share of `0.001` in $v$. The rest is the
        zero from the beginning. So Adam divides each average by this share [@kingma2015]:

        - $m$ becomes `0.7 / 0.1 = 7`;
        - $v$ becomes `0.049 / 0.001 = 49`, and its root is `7`;
        - the step is `7 / 7 = 1` times the learning rate: the gradient cancels.

        Without this correction $m$ is $10$ times too small, and the root of $v$, which divides it,
        is $\sqrt{1000} \approx 32$ times too small. So the first step is
        $\sqrt{1000} / 10 \approx 3.2$ times too *long*. Compare that with a step of PyTorch's Adam
        from zero, for two weights with the gradients `7` and `0.001`:
    """)
    g = 7.0  # @unnoticed: 7.0: any gradient
    m, v = (1 - 0.9) * g, (1 - 0.999) * g**2
    uncorrected = m / math.sqrt(v)  # @inspect uncorrected
    assert round(uncorrected, 3) == 3.162, \
        "Without the correction, the first step is 3.162 times the learning rate."
    corrected = m / (1 - 0.9) / math.sqrt(v / (1 - 0.999))  # @inspect corrected
    assert math.isclose(corrected, 1), "With it, the gradient cancels."
    w = torch.zeros(2, requires_grad=True)
    w.grad = torch.tensor([g, 0.001])  # @unnoticed: 0.001: any small gradient
    torch.optim.Adam([w], lr=1).step()
    first = [round(-x, 3) for x in w.tolist()]  # @inspect first
    assert first == [1.0, 1.0], \
        "With the correction, both first steps are as long as the learning rate."
    note(r"""
        In later steps the shares grow. With the factors $\beta_1 = 0.9$ and $\beta_2 = 0.999$ they
        are $1 - \beta_1^t$ and $1 - \beta_2^t$ in step $t$. With the learning rate $\eta$, and a
        tiny $\epsilon$ that prevents a division by zero, every step, once $m$ and $v$ are updated,
        is

        $$p \leftarrow p - \eta\,\frac{m/(1-\beta_1^t)}{\sqrt{v/(1-\beta_2^t)}+\epsilon}$$
    """)
    gradients = torch.randn(20, 5, dtype=torch.float64)  # @hide
    ours = walk(Descent, gradients, rule=adam(lr=0.1))  # @hide
    theirs = walk(torch.optim.Adam, gradients, lr=0.1)  # @hide
    assert ours.shape == (21, 5), "There are the start and 20 steps."  # @hide
    assert torch.allclose(ours, theirs), \
        "With random gradients, the formula and PyTorch's Adam take the same 20 steps."  # @hide
    moved = (ours[1] - ours[0]).abs()  # @hide
    assert torch.allclose(moved, torch.full_like(moved, 0.1)), \
        "In the first step each of five weights moves by the learning rate, 0.1."  # @hide
    steady = torch.full((30, 1), g, dtype=torch.float64)  # @hide
    walks = walk(torch.optim.Adam, steady, lr=1), walk(Descent, steady, rule=adam(lr=1, correct=False))  # @hide
    long = [lengths_of(steps, 3) for steps in walks]  # @hide
    assert set(long[0]) == {1.0}, \
        "With the correction, every step of a steady gradient is as long as the rate."  # @hide
    assert long[1][0] == 3.162 < long[1][-1], \
        "Without it, the steps begin at 3.162 and grow."  # @hide
    figure(curves({"with the correction": (range(1, 31), long[0]), "without it": (range(1, 31), long[1])},
                  "step", "length of the step, in learning rates"),
        caption=r"""
            The lengths of Adam's first steps, if the gradient is the same in each. Without the
            correction they grow at first: the average gradient approaches its final value sooner
            than the average square.
        """,
        alt="A level line at one. A curve above it begins at about three and rises.")
    misbelief("Adam is RMSProp plus momentum.", rf"""
        That leaves out the correction: neither momentum nor RMSProp (which divides the gradient by
        the root of $v$) divides by $1 - \beta^t$. Without the correction, the first step would be
        {uncorrected:.3f} times as long.
    """)
    pair = torch.tensor([[1000.0, 0.001]], dtype=torch.float64)  # @hide
    moves = lengths_of(walk(torch.optim.Adam, pair, lr=0.01), 3)  # @hide
    question(r"""
        In the first step of a training run, one weight has the gradient `1000`, and another has
        `0.001`. The learning rate is `0.01`. By how much does Adam lower each of the two weights?
        Give two numbers.
    """, answer=moves,
        check=[0.01, 0.01],
        hint="What happens to the gradient in the first step?",
        why=r"""
            By the learning rate, both of them. In the first step the corrected $m$ is the gradient,
            and the root of the corrected $v$ is its size, so the gradient cancels. (Plain SGD would
            take steps of `10` and `0.00001`.)
        """)


def adamw(lr: float, decay: float = 0.01) -> Rule:
    """AdamW's rule: subtracts Adam's step, and a small share of the parameter itself."""
    step = adam(lr)
    return lambda p, g, state: lr * decay * p + step(p, g, state)


@aside
def adamw_decays_weights_outside_the_root() -> None:
    """AdamW subtracts the decay from a weight; Adam adds it to the gradient and then rescales it."""
    note(r"""
        *Weight decay* pulls every weight a little towards zero in each step. Adam and AdamW both
        have a setting `weight_decay` in PyTorch. Can its value be kept when the optimizer changes?
        No, because they apply the decay at different points:

        - *Adam* adds decay × weight to the gradient. Then it
          [divides the gradient by its usual size](#adam_corrects_for_its_start), and the decay with
          it.
        - *AdamW* takes Adam's step without the decay, and also subtracts learning rate × decay ×
          weight, which nothing divides [@loshchilov2019]. (In PyTorch, this is the weight before
          the step.)

        By hand, take one step with a learning rate of `0.1`, a decay of `0.01` and a weight of `1`.
        In the first step a gradient's usual size is the gradient's own size. So Adam divides the
        gradient by itself, which makes `1`, and the weight falls by the learning rate. (A gradient
        of `0` makes `0`: a tiny number that is added to the divisor avoids `0 / 0`.)

        | gradient | Adam subtracts | AdamW subtracts |
        |---|---|---|
        | `0` | `0.1 * 0.01 / 0.01 = 0.1` | `0.1 * 0 + 0.1 * 0.01 * 1 = 0.001` |
        | `100` | `0.1 * 100.01 / 100.01 = 0.1` | `0.1 * 100 / 100 + 0.1 * 0.01 * 1 = 0.101` |

        Without a gradient, Adam's decay is `0.1 / 0.001 = 100` times as strong as AdamW's. With a
        gradient of `100` it has no effect: Adam's step is `0.1` without it as well. AdamW subtracts
        `0.001` for the decay in both rows.

        `walk` starts two weights at `1` and takes one step, with a gradient of `0` for the first
        and of `100` for the second. `lengths_of` returns by how much each weight decreases:
    """)
    gradients = torch.tensor([[0.0, 100.0]], dtype=torch.float64)
    settings = {"lr": 0.1, "weight_decay": 0.01}
    adam_walk = walk(torch.optim.Adam, gradients, **settings)
    adamw_walk = walk(torch.optim.AdamW, gradients, **settings)
    by_adam = lengths_of(adam_walk)  # @inspect by_adam
    by_adamw = lengths_of(adamw_walk)  # @inspect by_adamw
    assert by_adam == [0.1, 0.1], \
        "Adam lowers both weights by 0.1."
    assert by_adamw == [0.001, 0.101], \
        "AdamW lowers the weight without a gradient by 0.001, and the other by 0.101."
    plain = lengths_of(walk(torch.optim.Adam, gradients, lr=0.1))  # @hide
    assert plain == [0.0, 0.1], "Without decay, Adam lowers only the second weight, by 0.1."  # @hide
    random = torch.randn(20, 5, dtype=torch.float64)  # @hide
    ours = walk(Descent, random, rule=adamw(lr=0.1))  # @hide
    theirs = walk(torch.optim.AdamW, random, **settings)  # @hide
    assert ours.shape == (21, 5), "There are the start and 20 steps."  # @hide
    assert torch.allclose(ours, theirs), \
        "With random gradients, the rule above and PyTorch's AdamW take the same 20 steps."  # @hide
    note(r"""
        So the same number means different things in Adam and in AdamW. Tune the weight decay again
        when the optimizer changes.
    """)
    nothing = torch.zeros(1, 1)  # @hide
    question(r"""
        Now the learning rate is `0.01` and the decay `0.1`. A weight of `1` gets no gradient apart
        from the decay. What is the weight after one step, first with AdamW, then with Adam?
    """, answer=[
        round(walk(kind, nothing, lr=0.01, weight_decay=0.1)[-1].item(), 4)
        for kind in (torch.optim.AdamW, torch.optim.Adam)
    ],
        check=[1 - 0.01 * 0.1, 1 - 0.01], why=r"""
            AdamW subtracts learning rate times decay, `0.01 * 0.1 = 0.001`. Adam subtracts the full
            learning rate, `0.01`, because it divides the decay by its own size.
        """)


def losses(clear: bool) -> list[float]:
    """The losses of 200 steps of SGD on 16 weights, with or without `zero_grad` after each step."""
    start = torch.Generator().manual_seed(1)
    model = Stack(width=16, layers=0, generator=start)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data, seen = torch.Generator().manual_seed(0), []
    for _ in range(200):
        x, y = linear_batch(16, 4, data)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if clear:
            optimizer.zero_grad()
        seen.append(loss.item())
    return seen


@aside
def gradients_add_up_until_they_are_cleared() -> None:
    """Without `zero_grad` every step adds all earlier gradients again."""
    note(r"""
        A training step is four calls: compute the loss, `backward()`, `step()`, `zero_grad()`. Why
        the last one? Because `backward` *adds* a new gradient to the one that is already there.
        Take `w @ x`, the sum of weights times inputs. Its gradient with respect to `w` is `x`. Call
        `backward` for it twice:
    """)
    w = torch.ones(3, requires_grad=True)
    x = torch.tensor([1.0, 2.0, 3.0])
    (w @ x).backward()
    assert w.grad is not None, "The first backward pass makes a gradient."  # @hide
    once = w.grad.tolist()  # @inspect once
    (w @ x).backward()
    twice = w.grad.tolist()  # @inspect twice
    assert (once, twice) == ([1, 2, 3], [2, 4, 6]), \
        "The first gradient is x, and the second pass doubles it."
    note(r"""
        So without `zero_grad` each step uses the sum of all gradients so far. Old ones count as
        much as the new one, although the weights have changed since. (Gradient accumulation adds
        gradients on purpose, but within one step, with the same weights.) What does leaving it out
        do to training? `losses` fits a linear model with `16` weights to data from another linear
        model, with `200` steps of SGD at a learning rate of `0.01`, and returns the loss of each
        step. Both runs have the same start and data, and one leaves out `zero_grad`:
    """)
    cleared, piled = losses(clear=True), losses(clear=False)
    start, learned, worse = cleared[0], cleared[-1], piled[-1]  # @measure start, learned, worse
    assert start == piled[0], "Both runs begin with the same loss."
    assert learned < start, "With zero_grad, the loss falls."
    assert start < worse, \
        "Without zero_grad, the loss ends above that of the untrained model."
    model = Stack(width=4, layers=2)  # @hide
    optimizer = torch.optim.Adagrad(model.parameters())  # @hide
    groups = [len(group["params"]) for group in optimizer.param_groups]  # @hide
    assert groups == [3], "AdaGrad has one group, with three tensors in it."  # @hide
    before = [p.detach().clone() for p in model.parameters()]  # @hide
    F.mse_loss(model(torch.randn(2, 4)), torch.tensor([4.0, 5.0])).backward()  # @hide
    held = gradient_bytes(model)  # @hide
    optimizer.step()  # @hide
    optimizer.zero_grad()  # @hide
    assert (held, gradient_bytes(model)) == (36 * 4, 0), "zero_grad() frees the gradients of all 36 parameters."  # @hide
    changed = [not torch.equal(old, new) for old, new in zip(before, model.parameters())]  # @hide
    assert changed == [True, True, True], "The step changed every matrix."  # @hide
    default = signature(torch.optim.Optimizer.zero_grad).parameters["set_to_none"].default  # @hide
    assert default is True, "Dropping gradients is PyTorch's default as well."  # @hide
    misbelief("`zero_grad` is optional; it only saves memory.", rf"""
        It keeps old gradients out of the next step. Without it the loss above went from {start:.0f}
        to {worse / 1e6:.2f} million; with it, to {learned:.2g}.
    """)
    p = torch.tensor(1.0, requires_grad=True)  # @hide
    for _ in range(3):  # @hide
        p.backward()
        torch.optim.SGD([p], lr=0.1).step()
    question(r"""
        A weight of `1` has a gradient of `1` in every step, and the learning rate is `0.1`. What is
        the weight after `3` steps of SGD without `zero_grad`?
    """, answer=round(p.item(), 3),
        wrong={
            "That is with zero_grad: without it the gradients add up.": 0.7,
        },
        check=1 - 0.1 * (1 + 2 + 3), why=r"""
            Without `zero_grad` the gradient is `1` in the first step, `2` in the second and `3` in
            the third. A tenth of each is subtracted, `0.6` in all.
        """)


@aside
def optimizers_differ_in_what_they_remember() -> None:
    """The six optimizers here remember zero, one or two values for each parameter."""
    note(r"""
        An optimizer remembers something about past gradients, its *state*. How much memory does
        that need? It depends on how many values it remembers for each parameter:

        - plain SGD: nothing;
        - momentum: a sum of gradients; AdaGrad: a sum of their squares [@duchi2011]; RMSProp: an
          average of their squares [@rmsprop];
        - Adam and AdamW: two averages, of gradients and of their squares.

        Count them. `OPTIMIZERS` is a dictionary of these six. `remembered` takes one step and
        divides the bytes of the state by the bytes of the parameters. (`state_bytes` leaves out a
        counter of steps, one number for a whole tensor.)
    """)

    def remembered(name: str) -> float:
        p = torch.randn(1000, requires_grad=True)
        p.sum().backward()
        optimizer = OPTIMIZERS[name]([p])
        optimizer.step()
        return state_bytes(optimizer) / p.nbytes

    copies = {name: remembered(name) for name in OPTIMIZERS}  # @inspect copies
    assert list(copies.values()) == [0, 1, 1, 1, 2, 2], \
        "SGD keeps nothing, Adam and AdamW two values for each parameter, the others one."
    misbelief("The optimizer's state is as large as the model.", r"""
        In the same format, that holds only for optimizers that remember one value for each
        parameter. Plain SGD remembers none, and Adam and AdamW remember two: their state is twice
        as large as the model.
    """)
    ones = torch.ones(1000, 1)  # @hide
    lengths = lengths_of(walk(torch.optim.Adagrad, ones, lr=1))  # @hide
    some = lengths[0], lengths[3], lengths[99]  # @hide
    assert some == (1.0, 0.5, 0.1), \
        "AdaGrad's steps 1, 4 and 100 have lengths 1, 1/2 and 1/10."  # @hide
    faded = lengths_of(walk(torch.optim.RMSprop, ones, lr=1))  # @hide
    ends = faded[0], faded[-1]  # @hide
    assert ends == (10.0, 1.0), \
        "RMSProp's first step has length 10, and its last is as long as the learning rate."  # @hide
    sparse = torch.ones(25, 2, dtype=torch.float64)  # @hide
    sparse[:-1, 1] = 0  # @hide
    final = lengths_of(walk(torch.optim.Adagrad, sparse, lr=1)[-2:], 3)  # @hide
    assert final == [0.2, 1.0], "The last step has length 1/5 for the first parameter, and 1 for the second."  # @hide
    g = torch.tensor([1.0, 1e-2, 1e-3, 1e-4], dtype=torch.float64)  # @hide
    outside = lengths_of(walk(torch.optim.Adagrad, g[None], lr=0.01), 6)  # @hide
    assert outside == [0.01, 0.01, 0.01, 0.01], \
        "Outside the root, AdaGrad's constant changes none of the four steps."  # @hide
    inside = [round(step, 6) for step in (0.01 * g / (g**2 + 1e-5).sqrt()).tolist()]  # @hide
    assert inside == [0.01, 0.009535, 0.003015, 0.000316], \
        "Under the root, the constant makes the step of the smallest gradient 30 times shorter."  # @hide
    misbelief("AdaGrad averages the squared gradients.", rf"""
        It adds them up, and divides each gradient by the root of the sum. The sum grows, so with a
        gradient of `1` in each step the hundredth has a length of only {lengths[99]} learning
        rates. With an average the steps would not shrink.
    """)
    question(r"""
        A run with `5` billion `float32` parameters switches from Adam to momentum. How many bytes
        does that free?
    """, answer=5 * 10**9 * 4 * int(copies["Adam"] - copies["momentum"]),
        wrong={
            "One of the two moments stays.": 4 * 10**10,
            "That counts one byte for each value.": 5 * 10**9,
        },
        check=5 * 10**9 * 4,
        hint="How many values per parameter does each of the two remember?",
        why=r"""
            Adam remembers two values for each parameter and momentum one, so one value of `4` bytes
            is freed for each parameter. Parameter and gradient stay.
        """, unit="B")
