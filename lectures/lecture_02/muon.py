"""Muon: one moment, and matmuls in the update."""
import torch
from torch import Tensor, nn

from litbook import aside, note, question

from .measure import error_of, state_bytes

FACTORS = 3.4445, -4.7750, 2.0315  # of the polynomial, by [@muon]


def newton_schulz(g: Tensor, rounds: int = 5) -> Tensor:  # @show
    """A matrix of the same shape whose singular values are similar to each other."""
    a, b, c = FACTORS
    x: Tensor = g / g.norm()
    for _ in range(rounds):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x


@aside
def muon_makes_singular_values_equal() -> None:
    """Five rounds of matmuls make the singular values of Muon's update similar, unless some are very small."""
    a, b, c = FACTORS  # @hide
    note(r"""
        Why does the optimizer *Muon* do matmuls in its update? To make the update about equally
        large in every direction. The update is made from the *moment*, a running average of the
        gradients, which is a matrix [@muon]. A matrix stretches some directions more than others,
        and its *singular values* say by how much. Matmuls can make them similar.

        See it in a diagonal matrix with positive elements: its singular values are the elements. If
        $X$ has `0.8` and `0.2` on its diagonal, then $XX^TX$ has `0.8**3 = 0.512` and
        `0.2**3 = 0.008`. So this product turns each singular value $s$ into $s^3$. In the same way,
        $(XX^T)^2X$ turns $s$ into $s^5$. Both hold for every matrix. It is a diagonal one between
        two rotations or reflections, $X = USV^T$, and where the factors of $XX^TX$ meet, these
        cancel: $V^TV$ and $U^TU$ are the identity, and $US^3V^T$ is left. So the step

        $$X \leftarrow aX + b\,XX^TX + c\,(XX^T)^2X$$

        turns each $s$ into $as + bs^3 + cs^5$. Muon's author chose $a = 3.4445$, $b = -4.775$ and
        $c = 2.0315$ [@muon]. By hand, one step turns

        - `0.8` into `3.4445 * 0.8 - 4.775 * 0.8**3 + 2.0315 * 0.8**5 = 0.98`;
        - `0.2` into `3.4445 * 0.2 - 4.775 * 0.2**3 + 2.0315 * 0.2**5 = 0.65`.

        The larger was `0.8 / 0.2 = 4` times the smaller, and is now `0.98 / 0.65 = 1.5` times the
        smaller.

        Muon takes five such steps, its *rounds*. Before them it divides the matrix by its norm, the
        root of the sum of the squares of its elements. That is also the root of the sum of the
        squares of the singular values, so afterwards none is larger than $1$. `newton_schulz` does
        all this. Try it with a matrix `g` whose `32` singular values are known, because it is made
        from them: each is `0.9` times the one before.
    """)
    u, v = (torch.linalg.qr(torch.randn(32, 32)).Q for _ in range(2))  # two random rotations  # @hide
    strengths = 0.9 ** torch.arange(32.0)  # 32 singular values
    g = u @ strengths.diag() @ v.T  # u and v: random rotations
    before = (strengths[0] / strengths[-1]).item()  # @inspect before as times
    assert round(before) == 26, \
        "Before, the largest singular value is 26 times the smallest."
    level = torch.linalg.svdvals(newton_schulz(g))  # singular values
    after = (level.max() / level.min()).item()  # @inspect after as times
    assert round(after, 1) == 1.7, \
        "After five rounds, the largest is only 1.7 times the smallest."
    s = strengths / strengths.norm()  # @hide
    for _ in range(5):  # @hide
        s = a * s + b * s**3 + c * s**5
    predicted = s.sort(descending=True).values  # @hide
    assert torch.allclose(level, predicted, atol=1e-4), \
        "The polynomial, applied to each singular value, predicts the result."  # @hide
    one = torch.eye(32)  # @hide
    pair = g / g.norm(), newton_schulz(g)  # @hide
    far, near = (error_of(x @ x.T, one) for x in pair)  # @hide
    assert round(far, 2) == 0.97, "Before, the matmul of the matrix with its transpose is far from the identity."  # @hide
    assert round(near, 2) == 0.34, "Afterwards, it is nearer."  # @hide
    ends = [round(a * s + b * s**3 + c * s**5, 2) for s in (0.8, 0.2)]  # @hide
    assert ends == [0.98, 0.65], "One round turns 0.8 into 0.98, and 0.2 into 0.65."  # @hide
    assert a**5 < 500, "Five rounds raise a singular value less than 500 times."  # @hide
    p = nn.Parameter(torch.zeros(32, 32))  # @hide
    optimizer = torch.optim.Muon([p], lr=1.0)  # @hide
    p.grad = g  # @hide
    optimizer.step()  # @hide
    gap = error_of(-p.detach(), newton_schulz(g))  # @hide
    assert round(gap, 1) == 0.0, \
        "PyTorch's update agrees with ours, up to the rounding of bfloat16."  # @zero: another way to the same  # @hide
    copies = state_bytes(optimizer) / p.nbytes  # @hide
    assert copies == 1.0, "PyTorch's Muon keeps one value per parameter."  # @hide
    note(r"""
        One round multiplies a singular value by at most $a = 3.4445$, so five rounds multiply it by
        at most $a^5$, less than `500`. So one of $0.0001$ is at most `0.0001 * 500 = 0.05` after
        them: very small ones stay small.
    """)
    longer, usual = (newton_schulz(factor * g).norm().item() for factor in (10, 1))  # @hide
    question(r"""
        All gradients become `10` times as large, and so does the moment. How many times as long is
        Muon's step?
    """, answer=round(longer / usual, 3),
        check=round((10 * g / (10 * g).norm()).norm().item() / (g / g.norm()).norm().item(), 3), unit="times",
        wrong={
            "The moment is divided by its norm first.": 10,
        },
        hint="What is the norm of the larger moment, and what is done with it?",
        why=r"""
            The norm is `10` times as large as well, and the moment is divided by it. So the rounds
            begin with the same matrix, and the step has the same length.
        """)
