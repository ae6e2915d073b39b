"""Expert parallelism: each rank keeps some experts, and tokens travel to those that the router picks."""
import math

import torch
import torch.distributed as dist
from jaxtyping import Float, Int
from torch import Tensor, nn
from wire import Wire, from_all_ranks

from litbook import figure, note, question, requires

from .figures import plot_traffic
from .tensor_parallel import FeedForward


def expert_parallelism() -> None:
    """Expert parallelism."""
    note(r"""
        In each layer, a mixture-of-experts model has many feed-forward parts, the *experts*, and a
        router that picks a few of them for each token. Let each rank keep some experts, each of
        them whole. Then the tokens travel, not the weights: to the experts that were picked, and
        back.
    """)
    the_router_decides_the_bytes()
    the_step_waits_for_the_fullest_rank()


TOP = 2  # experts for each token


class Router(nn.Module):
    """For each token, picks the two experts with the highest scores, and computes the share that each has in the result.

    The two shares of a token add up to one. `favor` is added to the first expert's score.
    """

    def __init__(self, width: int, experts: int, favor: float = 0.0) -> None:
        super().__init__()
        self.scores = nn.Linear(width, experts, bias=False).double()
        self.favor = favor

    def forward(
        self, x: Float[Tensor, "t d"]
    ) -> tuple[Float[Tensor, "t 2"], Int[Tensor, "t 2"]]:
        scores = self.scores(x)
        scores[:, 0] += self.favor
        best, chosen = scores.topk(TOP)
        return best.softmax(dim=-1), chosen


def run_in_one_process(
    x: Float[Tensor, "t d"], shares: Float[Tensor, "t 2"],
    chosen: Int[Tensor, "t 2"], experts: list[FeedForward],
) -> Float[Tensor, "t d"]:  # @stepover
    """The layer's results for the tokens `x`, with all experts in one process."""
    y = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        token, choice = (chosen == number).nonzero(as_tuple=True)
        y[token] += shares[token, choice, None] * expert(x[token])
    return y


def all_to_all_rows(
    x: Float[Tensor, "n d"], to_ranks: list[int], from_ranks: list[int]
) -> Float[Tensor, "m d"]:
    """Sends `to_ranks[r]` rows of `x` to rank r, in order; returns the rows that arrive."""
    received = x.new_empty(sum(from_ranks), *x.shape[1:])
    dist.all_to_all_single(received, x.contiguous(), from_ranks, to_ranks)
    return received


def run_experts(
    x: Float[Tensor, "t d"], shares: Float[Tensor, "t 2"],
    chosen: Int[Tensor, "t 2"], own_experts: list[FeedForward],
) -> Float[Tensor, "t d"]:
    """The layer's results for this rank's tokens `x`; each rank runs its own experts on all copies that arrive.

    Copy c is one of token `c // TOP`, for expert `chosen.flatten()[c]`.
    """
    ranks = dist.get_world_size()
    order = chosen.flatten().argsort(stable=True)  # copies by expert
    counts = chosen.flatten().bincount(minlength=ranks * len(own_experts))
    counts = counts.view(ranks, len(own_experts))
    # The ranks tell each other how many copies will come for each expert.
    arriving = all_to_all_rows(counts, [1] * ranks, [1] * ranks)
    to_ranks, from_ranks = counts.sum(1).tolist(), arriving.sum(1).tolist()
    copies = all_to_all_rows(x[order // TOP], to_ranks, from_ranks)
    # Those from each rank, for each of this rank's experts in turn.
    parts = copies.split(arriving.flatten().tolist())
    results = [
        own_experts[i % len(own_experts)](part) for i, part in enumerate(parts)
    ]
    returned = all_to_all_rows(torch.cat(results), from_ranks, to_ranks)
    weighted = returned * shares.flatten()[order, None]
    return torch.zeros_like(x).index_add(0, order // TOP, weighted)


def all_experts() -> list[FeedForward]:  # @stepover
    """Eight experts, all of the same size: feed-forward parts of dimension 64. Each of four ranks keeps two."""
    sizes = [(64, 96)] * 8
    return [FeedForward(*s).double().requires_grad_(False) for s in sizes]


def own_tokens() -> Float[Tensor, "512 64"]:
    """This rank's 512 tokens."""
    return torch.randn(dist.get_world_size(), 512, 64).double()[dist.get_rank()]


def sum_over_ranks(number: float) -> float:  # @stepover
    """The sum of all ranks' numbers."""
    total: float = sum(from_all_ranks(number))
    return total


@requires("linux, ranks=4")
def the_router_decides_the_bytes() -> None:
    """Tokens are sent to their experts, and the results come back."""
    note(r"""
        A layer has eight *experts*, and each expert is a feed-forward network. A small matrix, the
        *router*, picks two of them for each token. Four ranks keep two experts each. How many bytes
        do they send?

        Follow one token on rank 0. The router picks an expert on rank 0 and an expert on rank 2.

        - Rank 0 makes two copies of the token. One copy stays, and one is sent to rank 2.
        - The expert on rank 2 computes a result of the same size as the token.
        - Rank 2 sends this result back. Rank 0 adds up the two results, each multiplied by its
          *share*, a number that the router computes.

        So each copy that leaves its rank costs two messages of the size of a token. The size of the
        experts does not matter, because their weights stay where they are.

        Now each rank has `512` tokens `x`, so there are `4 * 512 * 2 = 4096` copies. A token has
        `64` elements of `8` bytes, in all `64 * 8 = 512` bytes. `router` chooses two experts for
        each token, and their shares. `run_experts` sends all copies in one
        [all-to-all](#an_all_to_all_transposes), an exchange in which each rank sends different data
        to each rank. It runs this rank's `own_experts`, and sends the results back in a second
        all-to-all. `Wire` counts bytes, and `sum_over_ranks` adds up the numbers of the ranks:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @hide
    router, experts = Router(64, 8).requires_grad_(False), all_experts()  # @hide
    own_experts = experts[2 * rank : 2 * rank + 2]  # @hide
    x = own_tokens()  # @hide
    with Wire() as wire:
        shares, chosen = router(x)
        y = run_experts(x, shares, chosen, own_experts)
    expected = run_in_one_process(x, shares, chosen, experts)  # @hide
    assert torch.allclose(y, expected), \
        "The results equal those of one process with all experts, up to rounding."
    owners = chosen // 2  # experts 0 and 1 are on rank 0, and so on
    leaving = (owners != rank).sum().item()  # to other ranks  # @inspect leaving as copies
    all_leaving = sum_over_ranks(leaving)  # @inspect all_leaving as copies
    assert math.isclose(all_leaving / (4 * 512 * 2), 3 / 4, rel_tol=0.03), \
        "About three quarters of all copies leave their rank."
    sent = sum_over_ranks(wire.sent)  # @inspect sent as B
    assert math.isclose(sent, 2 * all_leaving * x[0].nbytes, rel_tol=0.01), \
        "For each copy that leaves, the ranks send 2 * 512 bytes; the rest, mostly headers, is less than 1 %."
    table = from_all_ranks(owners.flatten().bincount(minlength=4).tolist())  # @hide
    assert sum(map(sum, table)) == 2 * 512 * ranks, \
        "There are two copies of each of the 4 * 512 tokens."  # @hide
    assert sum(sum(row) - row[r] for r, row in enumerate(table)) == all_leaving, \
        "The copies off the diagonal of the picture are those that leave."  # @hide
    figure(plot_traffic({"copies of tokens": table}),
        caption=r"""
            How many copies of each rank's tokens (row) went to the experts of each rank (column).
            The diagonal shows the copies that stayed.
        """,
        alt="A table of four by four cells with a number in each, all of nearly the same shade.")
    note(r"""
        Three quarters leave, because three of the four ranks are other ranks. On $G$ ranks, if
        tokens are routed evenly, a copy leaves with probability $(G-1)/G$. Let each rank have $T$
        tokens of $d$ elements of $w$ bytes, and let each token use $k$ experts. Then in the forward
        pass a rank sends, on average,

        [@eq:experts]: $$
        \underbrace{2}_{\text{out, back}} \cdot \underbrace{\frac{G - 1}{G}}_{\text{part that leaves}} \cdot
        \underbrace{k\,T}_{\text{copies}} \cdot \underbrace{d\,w}_{\text{bytes of a token}} .
        $$

        In the backward pass, gradients travel the same routes. The number of experts is not in the
        formula, so with the same $G$ and $k$, a model can have more experts without more traffic.
    """)
    _, picked = Router(64, 32)(x)  # @hide
    stay = torch.isin(picked, torch.arange(32).chunk(ranks)[rank]).double().mean().item()  # @hide
    still = 1 - sum(from_all_ranks(stay)) / ranks  # @hide
    assert picked.unique().numel() == 32, "Of 32 experts, all are picked."  # @hide
    assert 0.74 < still < 0.76, \
        "With 32 experts, eight on each rank, three quarters of the copies leave as well."  # @hide
    question(r"""
        A model has `8` experts in each layer, and each token uses two of them. Somebody doubles the
        size of every expert, and lets each token use four of the `8`. The ranks and the tokens stay
        the same. By what factors do the memory for experts and the traffic change? Give two
        numbers.
    """, answer=[2.0, 4 / 2], check=[FeedForward(4, 16).up.weight.numel() / FeedForward(4, 8).up.weight.numel(), 2 * 4 * 512 / (2 * 2 * 512)],
        hint="How many copies does a token have, and how large is a copy?",
        why=r"""
            An expert of twice the size has twice as many weights. But it gets and returns vectors
            of the same size as before. The traffic doubles only because each token has four copies
            instead of two.
        """)


@requires("ranks=4")
def the_step_waits_for_the_fullest_rank() -> None:
    """If a router has a favorite expert, its rank gets more tokens than the others, so they would have to wait for it."""
    note(r"""
        A *router* scores several feed-forward networks, the *experts*, for each token, and
        [copies of the token are sent](#the_router_decides_the_bytes) to the best two. Four ranks
        keep two of eight experts each. What does it cost if the router has a *favorite*, an expert
        that it picks far more often than the others?

        Then the layer takes as long as the rank of the favorite, because every rank needs results
        from it, and cannot continue without them.

        By hand, take $12$ tokens, so $24$ copies. All experts have the same size, so suppose that a
        rank needs $1$ ms for each copy that it gets.

        | | rank 0 | rank 1 | rank 2 | rank 3 | the layer |
        |---|---|---|---|---|---|
        | even router | `6` copies | `6` | `6` | `6` | $6$ ms |
        | a favorite on rank 0 | `10 + 2 = 12` | `2 + 2 = 4` | `2 + 2 = 4` | `2 + 2 = 4` | $12$ ms |

        Here $10$ of the $12$ tokens pick the favorite. The other seven experts share the other $14$
        copies, so each gets $2$. The layer takes twice as long, although there are $24$ copies in
        both cases.

        Now four ranks have `512` tokens each. Two routers have the same random weights, but the
        second one adds `1` to every token's score for the first expert, on rank 0. With that, about
        `5/6` of all tokens pick it, as by hand. For each router, `busiest[name]` is the number of
        copies on the rank that gets most of them, divided by the mean over all ranks, `2 * 512`:
    """)
    x = own_tokens()  # @hide
    tables, busiest = {}, {}  # @hide
    for name, favor in {"even": 0.0, "favorite": 1.0}.items():
        torch.manual_seed(9)  # the same weights for both routers  # @hide
        _, chosen = Router(64, 8, favor)(x)  # two experts per token
        owners = chosen // 2  # experts 0 and 1 are on rank 0, and so on
        copies = owners.flatten().bincount(minlength=4)  # to each rank
        tables[name] = from_all_ranks(copies.tolist())  # @hide
        dist.all_reduce(copies)  # adds up over ranks  # @inspect copies.tolist()
        most = copies.max().item()
        busiest[name] = most / (2 * 512)  # @inspect busiest[name] as times
    picked = (chosen == 0).any(dim=1).double().mean().item()  # @hide
    assert math.isclose(sum(from_all_ranks(picked)) / 4, 5 / 6, rel_tol=0.02), \
        "About 5/6 of all tokens pick the favorite, as by hand."  # @hide
    assert all(sum(map(sum, table)) == 4 * 2 * 512 for table in tables.values()), \
        "There are two copies of each of the 4 * 512 tokens."  # @hide
    assert 1 < busiest["even"] < 1.01, \
        "With the even router, the busiest rank gets the mean number of copies, within 1 %."
    assert 1.9 < busiest["favorite"] < 2.1, \
        "With a favorite, the busiest rank gets about twice the mean number of copies."
    figure(plot_traffic(tables),
        caption=r"""
            How many copies of each rank's tokens (row) went to the experts of each rank (column),
            with an even router and with one that has a favorite on rank 0.
        """,
        alt="Two tables of four by four cells. The first is even; in the second all four cells of the first column are dark.")
    note(r"""
        So with this favorite, the layer would take about twice as long, if the time of a rank is
        proportional to its copies. (No time is measured here.) This is why training keeps the load
        of the experts balanced. DeepSeek-V3 adds a number to each expert's score, and lowers this
        number for experts that get too many tokens [@deepseek-v3].
    """)
    pairs = [torch.tensor([[0, other] for other in range(1, n)]) for n in (4, 16)]  # @hide
    favored = [chosen.flatten().bincount().double() for chosen in pairs]  # copies to each rank  # @hide
    question(r"""
        Each rank now keeps one expert. Each token uses two experts, and one of them is always the
        same favorite. So half of all copies go to one rank, and the others share the rest evenly.
        Compare the time of the layer with that of an even router: how many times as long does it
        take on `4` ranks, and on `16`? Give two numbers.
    """, answer=[0.5 * 4, 0.5 * 16], check=[(copies.max() / copies.mean()).item() for copies in favored],
        hint="What share of all copies would a rank get from an even router?",
        why=r"""
            The rank of the favorite has half of all copies in either case. An even router would
            give it a quarter on `4` ranks, and a sixteenth on `16`. So the layer takes
            `0.5 / (1/4) = 2` and `0.5 / (1/16) = 8` times as long.
        """)
