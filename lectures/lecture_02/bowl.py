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
    """Where an optimizer's thirty steps lead from (1, 1), bowl and start turned by the matrix."""
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
        What does dividing by a root buy? A plane is enough to see it. The loss is a bowl, far more
        curved along one axis than along the other:

        $$L = \tfrac12\,(x^2 + 10\,y^2)$$
    """)
    note(r"""
        `descend` starts at `(1, 1)`, takes thirty steps, and returns all places. First SGD. A step
        leaves of each coordinate one minus rate times curvature. Along the steep axis that is
        negative, so the path jumps from side to side, and a larger rate would soon throw it out of
        the bowl. The flat axis has to wait:
    """)
    straight = torch.eye(2, dtype=torch.float64)
    paths = {name: descend(name, straight) for name in WAYS}
    left = paths["SGD"][1] / paths["SGD"][0]  # @inspect left
    assert torch.allclose(left, 1 - 0.18 * CURVES), "after a step"
    assert torch.allclose(paths["SGD"][-1], left**30), "after thirty"
    note(r"""
        Adam divides each gradient by the usual size of that gradient. The factor of ten is in both,
        and cancels. Adam cannot tell the steep axis from the flat one:
    """)
    flat, steep = paths["Adam"].T
    apart = (flat - steep).abs().max().item()  # @inspect apart
    assert apart < 1e-8, "down the diagonal"
    note(r"""
        Does it know the shape of the bowl, then? Turn bowl and start together, and look along the
        turned axes. The path of an optimizer that knew shapes would just turn with them:
    """)
    c, s = math.cos(math.pi / 6), math.sin(math.pi / 6)
    turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    turned = {name: descend(name, turn) for name in WAYS}
    back = {name: path @ turn for name, path in turned.items()}
    same = [n for n in WAYS if torch.allclose(back[n], paths[n])]
    assert same == ["SGD", "momentum"], "the same path, turned"
    astray = (back["Adam"] - paths["Adam"]).norm(dim=1).max().item()  # @unnoticed: - -> +, 'Adam': as far, by chance
    assert 1.2 < astray < 2, "Adam takes another"
    past = paths["momentum"].amin(0).tolist()  # @hide
    figure(plot_paths({"along the axes": paths, "turned": turned}, CURVES.tolist(), [0, 30]),
        caption=r"""
            Thirty steps of three optimizers in a bowl, a dot for each, and in the same bowl turned.
            Adam's straight line was a gift of the axes.
        """, alt=rf"""
            Two panels of oval level lines around a minimum, each with three paths from the same
            start. SGD jumps across the bowl at each step, to {left[1]:.1f} of its height, while it
            creeps along it. Momentum rolls past the minimum, to {past[0]:.2f} along the flat axis
            and {past[1]:.2f} along the steep one. Adam comes straight down the diagonal. In the
            turned panel the paths of SGD and momentum are turned with the bowl, and Adam's swings
            out, up to {astray:.2f} from where it would be.
        """)
    question("A bowl has curvatures of `1` and `50`. Above which rate does SGD leave it?",
             answer=2 / 50,
        check=next(r / 1000 for r in range(1, 999) if abs(1 - (r + 1) / 1000 * 50) > 1))
