"""The schedule: warm-up, decay, clipping."""
import math
from typing import Any

import torch
from counters import Watching, flops, tensors_in
from torch import nn

from litbook import aside, note, question

from .optimizer import walk


def settled(t: int, beta: float = 0.9) -> float:
    """How long Adam's step is after `t` gradients of pure noise, at a rate of one, by formula."""
    return math.sqrt((1 - beta) / (1 + beta) * (1 + beta**t) / (1 - beta**t))


@aside
def adam_starts_with_its_longest_steps() -> None:
    """On noise Adam's first steps are its longest, and they are taken on the least evidence."""
    note(r"""
        Why does nearly every run begin with a *warm-up*, a learning rate that rises from almost
        nothing? Give Adam gradients that are pure noise. There is nothing to learn, so every step
        is a mistake. How long are they?
    """)
    note(r"""
        After the first step Adam's average holds one gradient. So that step is as long as the rate,
        and rests on this gradient alone. Later the average holds many, they cancel, and the step
        shrinks. With $\beta$ for this average, after $t$ steps:

        $$\sqrt{\frac{1-\beta}{1+\beta} \cdot \frac{1+\beta^t}{1-\beta^t}}$$
    """)
    noise = torch.randn(100, 2000, dtype=torch.float64)  # @unnoticed: 100 -> 101, 100 -> 200, 2000, dtype= dropped, float64: enough of it
    places = walk(torch.optim.Adam, noise, lr=1.0)
    lengths = places.diff(dim=0).square().mean(dim=1).sqrt()
    when = [1, 2, 10, 100]  # @unnoticed: 2, 10: steps on the way
    measured = [lengths[t - 1].item() for t in when]  # @inspect measured
    predicted = [settled(t) for t in when]  # @inspect predicted
    pair = measured, predicted
    seen, told = ([round(x, 1) for x in some] for some in pair)
    assert seen == told, "measured, predicted, to a tenth"
    ratio = predicted[0] / settled(10**6)  # @inspect ratio as times  # @unnoticed: 10 -> 11, 10 -> 20, 6: long after the first steps
    assert round(ratio, 2) == 4.36, "first step against settled ones"
    note(r"""
        A warm-up takes the rate down where the steps are long. It costs no bytes, a multiplication
        a step for the whole model, and nearly half of its own length in steps at the full rate:
    """)
    rates = [min(1, (t + 1) / 10) for t in range(100)]  # @unnoticed: 100: long after the warm-up
    steps = [rate * settled(t + 1) for t, rate in enumerate(rates)]
    assert round(steps[0], 1) == 0.1, "the first is a tenth as long"
    assert max(steps) < 0.34, "with ten steps of warm-up no step is long"
    lost = len(rates) - sum(rates)  # @inspect lost as steps
    assert round(lost, 1) == 4.5, "of ten, at the full rate"
    question(r"""
        With `0.95` for this average instead of `0.9`, how many times as long as the settled step is
        the first one?
    """, answer=round(1 / settled(10**6, 0.95), 2),
        check=round(math.sqrt(1.95 / 0.05), 2), unit="times")


def wander(rates: list[float], start: float, noise: float) -> float:
    """How far from zero SGD ends, in the root of the mean square, on a parabola with noisy gradients."""
    w = torch.full((64000,), start, dtype=torch.float64)
    for rate in rates:
        w -= rate * (w + noise * torch.randn_like(w))
    return w.square().mean().sqrt().item()


@aside
def decay_trades_distance_for_quiet() -> None:
    """At a constant rate SGD never arrives; a rate that decays arrives and walks half as far."""
    note(r"""
        Why end with a rate of zero? On the parabola $w^2/2$, with noise of size one on its
        gradient, SGD at a constant rate $\eta$ does not come to rest. It settles at a distance that
        the rate decides:

        $$\sqrt{\frac{\eta}{2-\eta}}$$
    """)
    count, rate = 200, 0.1
    constant = [rate] * count
    floor = math.sqrt(rate / (2 - rate))  # @inspect floor
    stays = wander(constant, start=1.0, noise=1.0)  # @inspect stays  # @unnoticed: 1.0: where it began is forgotten
    assert round(stays, 2) == round(floor, 2), "measured, predicted"
    note("Let the rate fall in a straight line to zero over as many steps:")
    falling = [rate * (1 - t / count) for t in range(count)]
    quiet = wander(falling, start=1.0, noise=1.0)  # @inspect quiet  # @unnoticed: 1.0: where it began is forgotten
    variance = 1.0  # @unnoticed: 1.0: where it began is forgotten
    for eta in falling:
        variance = (1 - eta) ** 2 * variance + eta**2
    predicted = math.sqrt(variance)  # @inspect predicted
    assert math.isclose(quiet, predicted, rel_tol=0.01), "measured, predicted"
    assert quiet < floor / 2, "less than half as far from the goal"
    note(r"""
        It costs distance. All rates together are how far a constant gradient could carry a weight,
        and a straight line to zero has half of them, as a cosine has [@sgdr]. Without noise, what
        is left of the way is the product of all $1-\eta$:
    """)
    turns = [math.cos(math.pi * t / count) for t in range(count)]
    cosine = [rate * (1 + turn) / 2 for turn in turns]
    sums = [sum(rates) / sum(constant) for rates in (falling, cosine)]  # @inspect sums
    assert [round(s, 1) for s in sums] == [0.5, 0.5], "half the distance"
    pair = constant, falling
    left = [wander(rates, start=1.0, noise=0.0) for rates in pair]  # @inspect left
    expected = [math.prod(1 - eta for eta in rates) for rates in pair]
    assert all(map(math.isclose, left, expected)), "measured, predicted"
    ratio = left[1] / left[0]  # @inspect ratio as times
    assert 40000 < ratio < 45000, "as much of the way is left"
    assert [round(c, 5) for c in cosine[::50]] == [0.1, 0.08536, 0.05, 0.01464], \
        "the cosine falls from the full rate"  # @hide
    note(r"""
        So: the full rate as long as there is way to go, and decay at the end. That is why a run
        that is stopped before its schedule ends looks worse than one that was planned as short.
    """)
    question("At which constant rate does SGD settle at a distance of one half?",
             answer=2 * 0.25 / (1 + 0.25),
        check=next(r / 1000 for r in range(1, 2000) if math.sqrt(r / (2000 - r)) >= 0.5))


class Moved(Watching):
    """Adds up the bytes that operations read and write while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        declared = [it.alias_info for it in operation._schema.arguments]
        changed = [a for a, it in zip(args, declared) if it and it.is_write]
        touched = tensors_in((args, changed or made))
        self.bytes += sum(t.nbytes for t in touched)


@aside
def clipping_is_paid_for_at_every_step() -> None:
    """Clipping reads every gradient twice, also when there is nothing to clip."""
    note(r"""
        What does it cost to limit the length of a gradient? `clip_grad_norm_` takes the norm of all
        gradients together, and multiplies them by the limit over the norm, where that is less than
        one. The gradient keeps its direction [@pascanu2013]:
    """)
    w = nn.Parameter(torch.zeros(1000, 1000))
    start = torch.randn(1000, 1000)
    w.grad = start.clone()
    norm = torch.nn.utils.clip_grad_norm_([w], 1.0).item()  # @inspect norm
    root = math.sqrt(w.numel())
    assert math.isclose(norm, root, rel_tol=0.01), \
        "about the root of a million, before"
    assert torch.allclose(w.grad, start / norm), "shorter, the same direction"
    note(r"""
        A reading for the norm, a reading and a writing for the product. No product of matrices, so
        `FlopCounterMode` sees nothing; the bytes are seen. Here nothing is clipped any more:
    """)
    with Moved() as moved:
        torch.nn.utils.clip_grad_norm_([w], 2.0)  # @unnoticed: 2.0: any limit that is not reached
    per_parameter = moved.bytes / w.numel()  # @inspect per_parameter as B
    assert round(per_parameter) == 3 * 4, "read twice, written once"
    seen = flops(lambda: torch.nn.utils.clip_grad_norm_([w], 2.0))  # @inspect seen as FLOP
    assert seen == 0, "not on the counter's list"  # @zero: the counter has no formula for it
    note(r"""
        What does it change? For Adam, less than it seems: if every gradient is made shorter by the
        same factor, Adam does not notice, since it divides by their size.
    """)
    gradients = torch.randn(50, 5, dtype=torch.float64)  # @unnoticed: 50, 5, arguments swapped: any gradients
    usual = walk(torch.optim.Adam, gradients, lr=0.1, eps=0)
    short = walk(torch.optim.Adam, gradients / 100, lr=0.1, eps=0)  # @unnoticed: / -> *, 100, factor 100 left out: any factor
    assert torch.allclose(usual, short), "a hundredth of each, the same walk"
    note(r"""
        It is the outlier that matters. Let all gradients be one but a single one of a hundred. Its
        square stays in the second average for about a thousand steps, and makes all of them short.
        Two hundred steps later:
    """)
    ones = torch.ones(300, 1, dtype=torch.float64)  # @unnoticed: dtype= dropped, float64: any format
    ones[99] = 100
    places = walk(torch.optim.Adam, ones, lr=1.0)
    length = (places[-2] - places[-1]).item()  # @inspect length
    squares = 1 - 0.999**300 + (100**2 - 1) * 0.001 * 0.999**200
    predicted = math.sqrt((1 - 0.999**300) / squares)  # @inspect predicted
    assert round(length, 4) == round(predicted, 4), "measured, predicted"
    clipped = walk(torch.optim.Adam, ones.clamp(max=1), lr=1.0)
    full = (clipped[-2] - clipped[-1]).item()  # @inspect full
    assert math.isclose(full, 1, rel_tol=1e-6), "clipped: the full step"
    question(r"""
        A model has `1` billion parameters with gradients in `float32`. How many bytes does clipping
        move in a step?
    """, answer=10**9 * round(per_parameter),
        check=10**9 * (4 + 4 + 4), unit="B")
