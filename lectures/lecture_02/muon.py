"""Muon: one moment, and matmuls in the update."""
import torch
from torch import Tensor, nn

from litbook import aside, note, question

from .measure import error_of, state_bytes

FACTORS = 3.4445, -4.7750, 2.0315  # of the polynomial, by [@muon]


def newton_schulz(g: Tensor, rounds: int = 5) -> Tensor:
    """A matrix of the same shape whose singular values are all near one."""
    a, b, c = FACTORS
    x: Tensor = g / g.norm()
    for _ in range(rounds):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


@aside
def muon_levels_a_gradient_with_products() -> None:
    """Muon keeps one moment, and makes all its singular values nearly equal."""
    note(r"""
        Adam keeps two values, the *moments*, for each parameter. Can an optimizer work with one?
        *Muon* can, for weights that form a matrix [@muon]. Its one moment is a running sum of
        gradients. A matrix stretches some directions more than others; its *singular values* say by
        how much. Muon brings all singular values of the moment near one, so that a step moves weak
        directions as far as strong ones.

        This needs only matmuls. Divide the matrix by its norm, then repeat this update for a few
        rounds, with fixed factors $a$, $b$ and $c$:

        $$X \leftarrow aX + b\,XX^TX + c\,(XX^T)^2X$$

        One such round turns each singular value $s$ into $as + bs^3 + cs^5$ and leaves the
        directions as they are. `newton_schulz` does five rounds. `u` and `v` are random rotations,
        so the gradient `g` below has the singular values `strengths`, which fall from `1` by a
        factor of `0.9` each. Compare them before and after:
    """)
    u, v = (torch.linalg.qr(torch.randn(32, 32)).Q for _ in range(2))  # @unnoticed: 32: any size
    strengths = 0.9 ** torch.arange(32.0)
    g = u @ strengths.diag() @ v
    spread = (strengths[0] / strengths[-1]).item()  # @inspect spread as times
    assert round(spread) == 26, \
        "Before, the largest singular value is 26 times the smallest."
    a, b, c = FACTORS  # @hide
    s = strengths / strengths.norm()  # @hide
    for _ in range(5):  # @hide
        s = a * s + b * s**3 + c * s**5
    level = torch.linalg.svdvals(newton_schulz(g))
    predicted = s.sort(descending=True).values  # @hide
    assert torch.allclose(level, predicted), \
        "The polynomial, applied to each singular value, predicts the result."  # @hide
    spread = (level.max() / level.min()).item()  # @inspect spread as times
    assert round(spread, 1) == 1.7, \
        "After five rounds, the largest is only 1.7 times the smallest."
    one = torch.eye(32)  # @hide
    pair = g / g.norm(), newton_schulz(g)  # @hide
    before, after = (error_of(x @ x.T, one) for x in pair)  # @hide
    assert round(before, 2) == 0.97, "Before, the matmul of the matrix with its transpose is far from the identity."  # @hide
    assert round(after, 2) == 0.34, "Afterwards, it is nearer."  # @hide
    note("PyTorch has Muon as well. It keeps one value for each parameter:")
    p = nn.Parameter(torch.zeros(32, 32))
    optimizer = torch.optim.Muon([p], lr=1.0, weight_decay=0.0)  # @unnoticed: 0.0, weight_decay= dropped: zeros do not decay
    p.grad = g.clone()
    optimizer.step()
    gap = error_of(-p.detach(), newton_schulz(g))  # @hide
    assert round(gap, 1) == 0.0, \
        "PyTorch's update agrees with ours, up to the rounding of bfloat16."  # @zero: another way to the same  # @hide
    copies = state_bytes(optimizer) / p.nbytes  # @inspect copies
    assert copies == 1.0, "Muon keeps one value per parameter; Adam keeps two."
    x = torch.zeros(2, 2)  # @hide
    x[0, 0] = 0.1  # @hide
    gram = x @ x.T  # @hide
    question(rf"""
        The factors are $a$ = `{a}`, $b$ = `{b}` and $c$ = `{c}`. What does one round turn a
        singular value of `0.1` into?
    """, answer=round(a * 0.1 + b * 0.1**3 + c * 0.1**5, 4),
        wrong={
            "The third and fifth powers are missing.": a * 0.1,
        },
        check=round((a * x + (b * gram + c * gram @ gram) @ x)[0, 0].item(), 4), within=0.005, why=r"""
            The first term is `3.4445 * 0.1`, a much larger value. The powers of `0.1` are small, so
            the other terms change little: a small singular value grows quickly.
        """)
