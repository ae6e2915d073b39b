"""Three optimizers in a stretched bowl: one that lies along the axes, and one that is turned."""
import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from litbook import aside, figure, note, question

from .figures import plot_paths

CURVES = torch.tensor([1.0, 10.0], dtype=torch.float64)  # along the bowl's two axes

WAYS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.18),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.03, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
}


def descend(name: str, turn: Float[Tensor, "2 2"]) -> Float[Tensor, "place 2"]:
    """The places of an optimizer, a row for each, with bowl and start turned."""
    p = (turn @ torch.ones(2, dtype=torch.float64)).requires_grad_()
    optimizer = WAYS[name]([p])
    places = [p.detach().clone()]
    for _ in range(30):
        optimizer.zero_grad()
        along = turn.T @ p
        ((CURVES * along**2).sum() / 2).backward()
        optimizer.step()
        places.append(p.detach().clone())
    return torch.stack(places)


@aside
def adam_knows_axes_not_shapes() -> None:
    """Adam does not feel that a bowl is stretched, as long as it lies along the axes."""
    note(r"""
        Adam divides the gradient of each parameter by the usual size of that gradient. What is that
        good for? Try it with a pair of parameters, $x$ and $y$, whose loss is a bowl, `10` times as
        curved along $y$ as along $x$:

        $$L = \tfrac12\,(x^2 + 10\,y^2)$$

        Plain SGD has a problem there. The gradient along an axis is curvature times coordinate, so
        at a learning rate of `0.18` a step multiplies $x$ by `1 - 0.18 * 1 = 0.82`, and $y$ by
        `1 - 0.18 * 10 = -0.8`. The steep axis limits the rate, because at a rate a little higher
        its factor falls below `-1` and the path leaves the bowl. The flat axis has to wait.

        `descend` starts at $x=y=1$, takes thirty steps, and returns all places. `WAYS` has three
        optimizers, each with a rate that suits it: SGD, SGD with
        [momentum](#momentum_is_a_decayed_sum), and Adam. `CURVES` are the two curvatures, and
        `straight` says that the bowl is not turned:
    """)
    straight = torch.eye(2, dtype=torch.float64)
    paths = {name: descend(name, straight) for name in WAYS}
    left = paths["SGD"][1] / paths["SGD"][0]  # @inspect left
    assert torch.allclose(left, 1 - 0.18 * CURVES), \
        "A step of SGD multiplies x by 0.82 and y by -0.8."
    assert torch.allclose(paths["SGD"][-1], left**30), \
        "Each of the thirty steps multiplies by the same."  # @hide
    note(r"""
        With Adam the steep axis sets no limit. Along $y$ the gradient is `10` times as large, and
        so is its usual size, by which Adam divides it. The factor cancels. Since both coordinates
        begin at `1`, they stay equal:
    """)
    flat, steep = paths["Adam"].T
    apart = (flat - steep).abs().max().item()  # @inspect apart
    assert apart < 1e-8, "With Adam, x and y stay equal all the way."
    note(r"""
        Does Adam know the shape of the bowl, then? Turn the bowl and the start by `30` degrees. An
        optimizer that knew the shape would take the same path, turned. So `descend` runs in the
        turned bowl, and `path @ turn` turns each of its places back by `30` degrees. Compare these
        with the first path:
    """)
    c, s = math.cos(math.pi / 6), math.sin(math.pi / 6)
    turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    turned = {name: descend(name, turn) for name in WAYS}
    back = {name: path @ turn for name, path in turned.items()}
    same = [n for n in WAYS if torch.allclose(back[n], paths[n])]
    assert same == ["SGD", "momentum"], \
        "Turned back, the paths of SGD and of momentum are those in the first bowl."
    astray = (back["Adam"] - paths["Adam"]).norm(dim=1).max().item()  # @inspect astray  # @unnoticed: - -> +, 'Adam': as far, by chance
    assert 1.2 < astray < 2, \
        "Turned back, Adam's path is more than 1.2 away from its first one somewhere."
    note(r"""
        SGD and momentum take the same path, because the gradient turns with the bowl. Adam takes
        another one, because it divides along the axes of the parameters. These are no longer the
        axes of the bowl, so steep and flat are mixed in each gradient, and nothing cancels.
    """)
    past = paths["momentum"].amin(0).tolist()  # @hide
    figure(plot_paths({"along the axes": paths, "turned": turned}, CURVES.tolist(), [0, 30]),
        caption=r"""
            Thirty steps of three optimizers in a bowl, and in the same bowl turned. Adam's path is
            straight only where the bowl lies along the axes.
        """, alt=rf"""
            Two panels of oval level lines around a minimum, each with three paths from the same
            start. SGD jumps across the bowl at each step, to {left[1]:.1f} of its height, while it
            creeps along it. Momentum rolls past the minimum, to {past[0]:.2f} along the flat axis
            and {past[1]:.2f} along the steep one. Adam comes straight down the diagonal. In the
            turned panel the paths of SGD and momentum are turned with the bowl, and Adam's swings
            out, up to {astray:.2f} from where it would be.
        """)
    question(rf"""
        In the bowl along the axes, $x$ is `{flat[10]:.3f}` after ten steps of Adam. What is $y$
        then? And what is $y$ after a single step of SGD, at the rate of `0.18`? Give two numbers.
    """, answer=[round(steep[10].item(), 3), round(paths["SGD"][1, 1].item(), 3)],
        check=[round(flat[10].item(), 3), 1 - 0.18 * 10],
        hint="In which of the two optimizers does the curvature cancel?",
        why=r"""
            Adam divides the gradient along $y$ by its usual size, which is `10` times as large as
            along $x$, as is the gradient. So $x$ and $y$ stay equal. SGD does not divide: its step
            multiplies $y$ by `1 - 0.18 * 10 = -0.8`.
        """)
