"""The schedule: warm-up, decay, clipping."""
import math
from typing import Any

import torch
from counters import Watching, flops, tensors_in
from torch import nn

from litbook import aside, note, question

from .optimizer import walk


def settled(t: int, beta: float = 0.9) -> float:
    """How long Adam's step is after `t` gradients of pure noise, in learning rates, by formula."""
    return math.sqrt((1 - beta) / (1 + beta) * (1 + beta**t) / (1 - beta**t))


@aside
def adam_starts_with_its_longest_steps() -> None:
    """On noise Adam's first steps are its longest, and they are taken on the least evidence."""
    note(r"""
        Most training runs begin with a *warm-up*: their learning rate rises from almost nothing.
        Why? Give the optimizer Adam gradients that are pure noise, so that every step leads astray.
        How long are its steps?

        Adam divides its average of the gradients by their usual size. After one step the average
        holds a single gradient, and the step is as long as the learning rate. Later the average
        holds many gradients of different signs, which cancel, so the step is shorter. Let $\beta$
        be the factor by which the average fades, usually `0.9`. At a learning rate of one, after
        $t$ steps, the length of a step is on average (as the root of the mean square)

        $$\sqrt{\frac{1-\beta}{1+\beta} \cdot \frac{1+\beta^t}{1-\beta^t}}$$

        Measure it: `walk` takes `100` steps of PyTorch's Adam with `2000` parameters on random
        gradients. `settled` is the formula. The steps `1`, `2`, `10` and `100`:
    """)
    noise = torch.randn(100, 2000, dtype=torch.float64)  # @unnoticed: 100 -> 101, 100 -> 200, 2000, dtype= dropped, float64: enough of it
    places = walk(torch.optim.Adam, noise, lr=1.0)
    lengths = places.diff(dim=0).square().mean(dim=1).sqrt()
    when = [1, 2, 10, 100]  # @unnoticed: 2, 10: steps on the way
    measured = [lengths[t - 1].item() for t in when]  # @inspect measured
    predicted = [settled(t) for t in when]  # @inspect predicted
    pair = measured, predicted
    seen, told = ([round(x, 1) for x in some] for some in pair)
    assert seen == told, \
        "The measured lengths are those of the formula, to a tenth."
    ratio = predicted[0] / settled(10**6)  # @inspect ratio as times  # @unnoticed: 10 -> 11, 10 -> 20, 6: long after the first steps
    assert round(ratio, 2) == 4.36, \
        "The first step is 4.36 times as long as a step long after the start."
    note(r"""
        So Adam takes its longest step first, when it has seen a single gradient. A warm-up makes
        the rate small where the steps are long. Here the rate rises over `10` steps:
    """)
    rates = [min(1, (t + 1) / 10) for t in range(100)]  # @unnoticed: 100: long after the warm-up
    steps = [rate * settled(t + 1) for t, rate in enumerate(rates)]
    assert round(steps[0], 1) == 0.1, \
        "With a warm-up, the first step has a tenth of its length."
    assert max(steps) < 0.34, \
        "With a warm-up, no step is longer than a third of the rate."
    lost = len(rates) - sum(rates)  # @inspect lost as steps
    assert round(lost, 1) == 4.5, \
        "The warm-up costs as much way as 4.5 steps at the full rate."
    question(r"""
        Long after the start, $\beta^t$ is zero. With $\beta$ = `0.95` instead of `0.9`, how many
        times as long as such a step is the first step?
    """, answer=round(1 / settled(10**6, 0.95), 2),
        wrong={
            "The root is missing.": 39,
            "That is for 0.9.": 4.36,
        },
        check=round(math.sqrt(1.95 / 0.05), 2), unit="times", why=r"""
            The first step has length `1`. A late one has length $\sqrt{0.05 / 1.95}$, since the
            second fraction is one where $\beta^t$ is zero. `1` divided by that is $\sqrt{39}$.
        """)


def wander(rates: list[float], start: float, noise: float) -> float:
    """How far from zero SGD ends with these rates and noisy gradients (root of the mean square)."""
    w = torch.full((64000,), start, dtype=torch.float64)
    for rate in rates:
        w -= rate * (w + noise * torch.randn_like(w))
    return w.square().mean().sqrt().item()


@aside
def decay_trades_distance_for_quiet() -> None:
    """At a constant rate SGD never arrives; a rate that decays arrives and walks half as far."""
    note(r"""
        Most training runs end with a learning rate that falls to zero. Why? Take a loss with its
        lowest point at zero, $w^2/2$, whose gradient is $w$. Real gradients are noisy, because each
        comes from a small batch. So add noise of size one. At a constant learning rate $\eta$ SGD
        then never comes to rest: the noise of each step keeps pushing it. It settles at a distance
        from zero of

        $$\sqrt{\frac{\eta}{2-\eta}}$$

        on average (as the root of the mean square). `wander` takes a learning rate for each step,
        and returns how far from zero SGD ends. First `200` steps at a rate of `0.1`:
    """)
    count, rate = 200, 0.1
    constant = [rate] * count
    floor = math.sqrt(rate / (2 - rate))  # @inspect floor
    stays = wander(constant, start=1.0, noise=1.0)  # @inspect stays  # @unnoticed: 1.0: where it began is forgotten
    assert round(stays, 2) == round(floor, 2), \
        "The measured distance is that of the formula, to two digits."
    note("Now let the rate fall in a straight line from `0.1` to zero over as many steps:")
    falling = [rate * (1 - t / count) for t in range(count)]
    quiet = wander(falling, start=1.0, noise=1.0)  # @inspect quiet  # @unnoticed: 1.0: where it began is forgotten
    variance = 1.0  # @hide
    for eta in falling:  # @hide
        variance = (1 - eta) ** 2 * variance + eta**2
    predicted = math.sqrt(variance)  # @hide
    assert math.isclose(quiet, predicted, rel_tol=0.01), \
        "The distance is what adding up the noise of all steps gives."  # @hide
    assert quiet < floor / 2, \
        "With a falling rate, SGD ends at less than half that distance."
    note(r"""
        So a falling rate lets SGD arrive, because small steps follow less of the noise. What does
        it cost? Way. The sum of all rates is how far a constant gradient of one could carry a
        weight. For a straight line to zero it is half of that for a constant rate. The other usual
        shape, half a wave of a cosine, has the same sum [@sgdr]:
    """)
    turns = [math.cos(math.pi * t / count) for t in range(count)]
    cosine = [rate * (1 + turn) / 2 for turn in turns]
    sums = [sum(rates) / sum(constant) for rates in (falling, cosine)]  # @inspect sums
    assert [round(s, 1) for s in sums] == [0.5, 0.5], \
        "Line and cosine have half the sum of the constant rate."
    pair = constant, falling  # @hide
    left = [wander(rates, start=1.0, noise=0.0) for rates in pair]  # @hide
    expected = [math.prod(1 - eta for eta in rates) for rates in pair]  # @hide
    assert all(map(math.isclose, left, expected)), \
        "Without noise, each step leaves one minus its rate of the way."  # @hide
    ratio = left[1] / left[0]  # @hide
    assert 40000 < ratio < 45000, \
        "Without noise, the falling rate ends far farther from zero."  # @hide
    assert [round(c, 5) for c in cosine[::50]] == [0.1, 0.08536, 0.05, 0.01464], \
        "the cosine falls from the full rate"  # @hide
    note(r"""
        So keep the full rate while there is way to go, and let it fall at the end. A run that is
        stopped before its rate has fallen is still at the distance of a large rate. It looks worse
        than a run that was planned to be short.
    """)
    question(r"""
        Noise has size one, and the rate $\eta$ is constant. At which rate does SGD settle at a
        distance of `0.5`?
    """, answer=2 * 0.25 / (1 + 0.25),
        wrong={
            "The distance has to be squared first.": 2 * 0.5 / 1.5,
        },
        check=next(r / 1000 for r in range(1, 2000) if math.sqrt(r / (2000 - r)) >= 0.5), why=r"""
            $\eta/(2-\eta)$ has to be the square of the distance, `0.25`. So $\eta$ is `0.25` times
            $2-\eta$, which makes `1.25` times $\eta$ equal to `0.5`.
        """)


class Moved(Watching):
    """While it is active, it adds up the bytes that operations read and write."""

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
        *Clipping* limits the length of the gradient, so that a rare one that is far too large does
        no harm: it is made shorter and keeps its direction [@pascanu2013]. `clip_grad_norm_`
        computes the length of all gradients together, their *norm*. If it is above the limit, all
        of them are multiplied by the limit over the norm. Take a million random gradients and a
        limit of `1`:
    """)
    w = nn.Parameter(torch.zeros(1000, 1000))
    start = torch.randn(1000, 1000)
    w.grad = start.clone()
    norm = torch.nn.utils.clip_grad_norm_([w], 1.0).item()  # @inspect norm
    root = math.sqrt(w.numel())
    assert math.isclose(norm, root, rel_tol=0.01), \
        "The norm was about 1000, the root of a million."
    assert torch.allclose(w.grad, start / norm), \
        "The gradients were all divided by this norm."
    note(r"""
        What does that cost? `Moved` adds up the bytes that operations read and write. Clip once
        more, with a limit that is not reached:
    """)
    with Moved() as moved:
        torch.nn.utils.clip_grad_norm_([w], 2.0)  # @unnoticed: 2.0: any limit that is not reached
    per_parameter = moved.bytes / w.numel()  # @inspect per_parameter as B
    assert round(per_parameter) == 3 * 4, \
        "Each gradient of 4 bytes is read twice and written once."
    seen = flops(lambda: torch.nn.utils.clip_grad_norm_([w], 2.0))  # @hide
    assert seen == 0, "PyTorch's counter sees no FLOP in it."  # @zero: the counter has no formula for it  # @hide
    note(r"""
        One reading is for the norm. The other, and the writing, are for the product with a factor,
        which is `1` here. PyTorch multiplies in any case, because on a GPU asking whether the norm
        is too large would make the program wait.
    """)
    question(r"""
        A model has `1` billion parameters with gradients in `float32`. How many bytes does clipping
        read and write in a step?
    """, answer=10**9 * round(per_parameter),
        wrong={
            "Each gradient is read twice, and written once.": 4 * 10**9,
            "The writing is missing.": 8 * 10**9,
        },
        check=10**9 * (4 + 4 + 4), unit="B", why=r"""
            A gradient has `4` bytes. It is read for the norm, read again for the product, and
            written: `12` bytes for each parameter, whether anything is clipped or not.
        """)
