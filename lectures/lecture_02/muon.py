"""Muon: one moment, and products in the update."""
import torch
from counters import flops
from torch import Tensor, nn

from litbook import aside, note, question

from .measure import error_of, state_bytes

FACTORS = 3.4445, -4.7750, 2.0315  # of the polynomial, by [@muon]


def newton_schulz(g: Tensor, rounds: int = 5) -> Tensor:
    """The matrix with its singular values sent through Muon's polynomial, `rounds` times."""
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
        Can an optimizer remember less than Adam and do more? Muon keeps one moment for a matrix. It
        spends products on it instead: the update is the moment with all its singular values brought
        near one, so that no direction is much weaker than the others [@muon].
    """)
    note(r"""
        No decomposition is needed. Divide by the norm, and repeat a few times, with three fixed
        factors:

        $$X \leftarrow aX + b\,XX^TX + c\,(XX^T)^2X$$

        Singular vectors stay, and each singular value $s$ becomes $as + bs^3 + cs^5$. So the result
        can be predicted number by number. Take a gradient of which each direction is weaker than
        the one before:
    """)
    u, v = (torch.linalg.qr(torch.randn(32, 32)).Q for _ in range(2))  # @unnoticed: 32: any size
    strengths = 0.9 ** torch.arange(32.0)
    g = u @ strengths.diag() @ v
    spread = (strengths[0] / strengths[-1]).item()  # @inspect spread as times
    assert round(spread) == 26, "strongest to weakest, before"
    a, b, c = FACTORS
    s = strengths / strengths.norm()
    for _ in range(5):
        s = a * s + b * s**3 + c * s**5
    level = torch.linalg.svdvals(newton_schulz(g))
    predicted = s.sort(descending=True).values
    assert torch.allclose(level, predicted), "measured, predicted"
    spread = (level.max() / level.min()).item()  # @inspect spread as times
    assert round(spread, 1) == 1.7, "strongest to weakest, after"
    note(r"""
        Near one, not one: the factors are chosen for few rounds. The distance of $XX^T$ from the
        identity, before and after, as a share of the identity:
    """)
    one = torch.eye(32)
    pair = g / g.norm(), newton_schulz(g)
    before, after = (error_of(x @ x.T, one) for x in pair)
    distance = before, after  # @inspect distance
    assert round(before, 2) == 0.97, "before: far from orthogonal"
    assert round(after, 2) == 0.34, "after: nearer"
    note(r"""
        PyTorch has Muon for matrices; it takes the products in `bfloat16`. Its first update points
        where ours does, and what it keeps is one number per parameter:
    """)
    p = nn.Parameter(torch.zeros(32, 32))
    optimizer = torch.optim.Muon([p], lr=1.0, weight_decay=0.0)  # @unnoticed: 0.0, weight_decay= dropped: zeros do not decay
    p.grad = g.clone()
    optimizer.step()
    gap = error_of(-p.detach(), newton_schulz(g))  # @inspect gap
    assert round(gap, 1) == 0.0, "the rounding of a narrow format"  # @zero: another way to the same
    copies = state_bytes(optimizer) / p.nbytes  # @inspect copies
    assert copies == 1.0, "a single moment; Adam has two"
    x = torch.zeros(2, 2)  # @unnoticed: 2: any size
    x[0, 0] = 0.1
    gram = x @ x.T
    question("What becomes of a singular value of `0.1` in one round?",
             answer=round(a * 0.1 + b * 0.1**3 + c * 0.1**5, 4),
        check=round((a * x + (b * gram + c * gram @ gram) @ x)[0, 0].item(), 4))


@aside
def a_large_batch_pays_for_the_products() -> None:
    """What Muon multiplies does not grow with the batch, so a large batch hides it."""
    note(r"""
        An update that multiplies matrices: is that not too expensive? For $m$ rows and $n$ columns
        a round takes three products: $XX^T$ and the last one cost $2m^2n$ each, the square of the
        small matrix $2m^3$. With five rounds that is $10\,(2m^2n + m^3)$. PyTorch's optimizer,
        counted:
    """)

    def counted(rows: int, cols: int) -> int:
        p = nn.Parameter(torch.randn(rows, cols))
        optimizer = torch.optim.Muon([p])
        p.grad = torch.randn_like(p)
        return flops(optimizer.step)

    m, n = 32, 64  # @unnoticed: 64: a wide matrix
    update = counted(m, n)  # @inspect update as FLOP
    assert update == 10 * (2 * m * m * n + m**3), "counted, by formula"
    assert counted(n, m) == update, "a tall matrix is turned first"
    note(r"""
        For a square matrix that is $30m^3$, and a batch of $B$ rows costs the layer $6Bm^2$ forward
        and backward. The ratio is $5m/B$. Both counted, at two batches:
    """)
    square = counted(m, m)

    def step(batch: int) -> int:
        x, w = (torch.randn(k, m, requires_grad=True) for k in (batch, m))
        return flops(lambda: (x @ w).sum().backward())

    small, large = square / step(32), square / step(32 * 500)
    shares = small, large  # @inspect shares as %
    assert small == 5 * m / 32 == 5, "as many rows as the layer is wide"
    assert large == 5 * m / (32 * 500) == 0.01, "five hundred times as many"
    note(r"""
        A *row* is a token here. A language model that is `8192` wide and sees `4000000` tokens in a
        step pays this much on top:
    """)
    share = 5 * 8192 / 4000000  # @inspect share as %
    assert share == 0.01024, "by the same formula"
    question(r"""
        How many tokens does a step need at a width of `4096`, for the products of Muon to cost at
        most a twentieth of the step's own?
    """, answer=5 * 4096 * 20,
        check=next(n for n in range(4096, 10**7, 4096) if 5 * 4096 / n <= 1 / 20), unit="tokens")
