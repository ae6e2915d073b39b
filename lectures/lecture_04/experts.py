"""Expert parallelism: each rank keeps some experts, and tokens travel to those that the router picks."""
import math
from functools import partial

import torch
import torch.distributed as dist
from counters import flops
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


class Router(nn.Module):  # @show
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


class Dispatch:
    """How the copies of this rank's tokens travel to the ranks of their experts, and back.

    `counts` says how many copies go to each rank's experts, `to_ranks` how many to each rank, and `from_ranks` how many
    come from each. `order` lists the copies by expert; copy c is one of token `c // TOP`.
    """

    def __init__(self, chosen: Int[Tensor, "t 2"], own_experts: int) -> None:
        ranks = dist.get_world_size()
        self.order = chosen.flatten().argsort(stable=True)
        self.tokens = self.order // TOP  # of each copy, in this order
        counts = chosen.flatten().bincount(minlength=ranks * own_experts)
        self.counts = counts.view(ranks, own_experts)
        # The ranks tell each other how many copies will come for each expert.
        self.arriving = all_to_all_rows(self.counts, [1] * ranks, [1] * ranks)
        self.to_ranks: list[int] = self.counts.sum(1).tolist()
        self.from_ranks: list[int] = self.arriving.sum(1).tolist()

    def send(self, x: Float[Tensor, "t d"]) -> list[Tensor]:
        """Sends the copies of tokens; returns those that arrive, in a list: for each rank, for each own expert."""
        received = all_to_all_rows(
            x[self.tokens], self.to_ranks, self.from_ranks
        )
        return [*received.split(self.arriving.flatten().tolist())]

    def send_back(
        self, results: list[Tensor], shares: Float[Tensor, "t 2"]
    ) -> Float[Tensor, "t d"]:
        """Sends results back; returns for each token of this rank their sum, weighted by its shares."""
        returned = all_to_all_rows(
            torch.cat(results), self.from_ranks, self.to_ranks
        )
        weighted = returned * shares.flatten()[self.order, None]
        y = torch.zeros(len(shares), *returned.shape[1:]).to(returned)
        return y.index_add(0, self.tokens, weighted)


def all_experts() -> list[FeedForward]:  # @stepover
    """Eight experts, all of the same size: feed-forward parts of dimension 64. Each of four ranks keeps two."""
    return [FeedForward(64, 96).double() for _ in range(8)]


def own_tokens() -> Float[Tensor, "512 64"]:
    """This rank's 512 tokens."""
    return torch.randn(dist.get_world_size(), 512, 64).double()[dist.get_rank()]


@requires("linux, ranks=4")
def the_router_decides_the_bytes() -> None:
    """Tokens are sent to their experts, and the results come back."""
    note(r"""
        A layer has eight *experts*. Each of them is a feed-forward part, and each token uses only
        two of them. A small matrix, the *router*, picks these two. Each of four ranks keeps two of
        the experts. How many bytes does a rank send for its tokens?

        Follow one token on rank 0 whose experts are on ranks 0 and 2. Rank 0 makes two copies of
        the token. One copy stays, and the other goes to rank 2. There the expert computes a result
        of the same size, and the result comes back. So this token costs two messages of its size.

        Rank 0 sends the copy, and rank 2 sends the result. Rank 0 also sends results, for the
        copies that it receives from other ranks.

        So the traffic depends on the number of tokens and on the number of experts per token. The
        size of the experts does not matter, because weights stay where they are.

        Each rank has `512` tokens of its own, and so `2 * 512` copies. The copies go out in one
        [all-to-all](#an_all_to_all_transposes), and the results come back in another: in an
        all-to-all, each rank sends different data to each rank. `Dispatch` does both. Its
        `to_ranks` counts the copies that this rank sends to each rank, and `from_ranks` counts the
        copies that it receives from each. `table` collects the `to_ranks` of all ranks, one row for
        each:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    experts, router = all_experts(), Router(64, 8)
    own_experts = experts[2 * rank : 2 * rank + 2]
    x = own_tokens()
    with torch.no_grad():
        shares, chosen = router(x)
        with Wire() as wire:
            dispatch = Dispatch(chosen, own_experts=2)
            # A tensor from each rank for each of the two experts here.
            copies = dispatch.send(x)
            results = [own_experts[i % 2](c) for i, c in enumerate(copies)]
            y = dispatch.send_back(results, shares)  # @inspect y
        expected = run_in_one_process(x, shares, chosen, experts)
    assert torch.allclose(y, expected), \
        "The results equal those of one process with all experts, up to rounding."
    table = from_all_ranks(dispatch.to_ranks)  # @inspect table
    assert sum(map(sum, table)) == 2 * 512 * ranks, \
        "There are two copies of each of the 4 * 512 tokens."  # @hide
    figure(plot_traffic({"copies of tokens": table}),
        caption=r"""
            How many copies of each rank's tokens (row) went to the experts of each rank (column).
            The diagonal shows the copies that stayed.
        """,
        alt="A table of four by four cells with a number in each, all of nearly the same shade.")
    copies_sent = sum(dispatch.to_ranks) - dispatch.to_ranks[rank]  # @inspect copies_sent
    results_sent = sum(dispatch.from_ranks) - dispatch.from_ranks[rank]  # @inspect results_sent
    ratio = wire.sent / ((copies_sent + results_sent) * x[0].nbytes)  # @inspect ratio
    assert 1 < ratio < 1.01, \
        "A rank sends its copies for other ranks and the results for other ranks' copies; headers add less than 1 %."
    leaving_copies = [sum(row) - row[r] for r, row in enumerate(table)]
    leaving = sum(leaving_copies) / sum(map(sum, table))  # @inspect leaving as %
    assert math.isclose(leaving, (ranks - 1) / ranks, rel_tol=0.03), \
        "About three quarters of all copies leave their rank, within 3 %."
    note(r"""
        Three of four copies leave, because three of four ranks are other ranks. On $G$ ranks with
        experts that are picked evenly, the share is $(G-1)/G$. A rank with $T$ tokens of $d$
        elements of $w$ bytes, and with $k$ experts for each token, sends

        [@eq:experts]: $$
        \underbrace{2}_{\text{there, back}} \cdot \underbrace{\frac{G - 1}{G}}_{\text{leave}} \cdot
        \underbrace{k\,T}_{\text{copies}} \cdot \underbrace{d\,w}_{\text{bytes of one}}
        $$

        bytes in the forward pass. In the backward pass, gradients travel the same routes.
    """)
    _, picked = Router(64, 32)(x)  # @hide
    stay = torch.isin(picked, torch.arange(32).chunk(ranks)[rank]).double().mean().item()  # @hide
    still = 1 - sum(from_all_ranks(stay)) / ranks  # @hide
    assert picked.unique().numel() == 32, "Of 32 experts, all are picked."  # @hide
    assert 0.74 < still < 0.76, \
        "With 32 experts, eight on each rank, three quarters of the copies leave as well."  # @hide
    question(r"""
        A model has `8` experts in each layer, two for each token. It is changed to `64` experts of
        the same size, on the same ranks, still two for each token. By what factors do the memory
        for experts and the traffic change? Give two numbers.
    """, answer=[64 / 8, 1.0], check=[64 * FeedForward(4, 8).up.weight.numel() / (8 * 4 * 8), round(still / leaving, 1)],
        hint="Is the number of experts in the formula?",
        why=r"""
            Each expert has its own weights, so the memory grows by a factor of `8`. A token still
            has two copies, and the same share of them leaves.
        """)


@requires("ranks=4")
def the_step_waits_for_the_fullest_rank() -> None:
    """If a router has a favorite, one rank gets more tokens than the others, and all wait for it."""
    note(r"""
        Each of four ranks keeps two of eight experts, and
        [copies of tokens travel to them](#the_router_decides_the_bytes). What happens if the router
        has a favorite expert? Suppose that there are $400$ copies. With an even router, each rank
        gets $100$. Now rank 0 gets $200$ of them, and the others share the rest. No rank can
        continue before all results are back, because each has tokens that went to rank 0. So the
        layer takes as long as rank 0 needs for its $200$ copies, twice as long as before, although
        the total work is the same.

        Four ranks with `512` tokens each run the layer twice: with an even router, and with one
        that adds `1` to all scores of the first expert, which is on rank 0. `flops` counts the
        `work` of a rank's experts. All experts have the same size, so one of them can stand for
        both, and the values of the copies do not matter. `fullest` is the work of the rank that has
        the most, divided by the mean work of all ranks:
    """)
    ranks = dist.get_world_size()
    own_expert = all_experts()[0]
    x = own_tokens()
    tables, work = {}, {}
    for name, favor in {"even": 0.0, "a favorite": 1.0}.items():
        torch.manual_seed(1)
        _, chosen = Router(64, 8, favor)(x)
        dispatch = Dispatch(chosen, own_experts=2)
        copies = x.new_empty(sum(dispatch.from_ranks), 64)  # of any values
        work[name] = from_all_ranks(flops(partial(own_expert, copies)))  # @inspect work[name] as FLOP
        tables[name] = from_all_ranks(dispatch.to_ranks)
    assert sum(map(sum, tables["even"])) == 4 * 2 * 512, \
        "There are two copies of each of the 4 * 512 tokens."  # @hide
    assert sum(work["even"]) == sum(work["a favorite"]), \
        "All ranks together do the same number of FLOPs with a favorite as without."
    fullest = {name: max(each) * ranks / sum(each)
               for name, each in work.items()}  # @inspect fullest["even"] as times, fullest["a favorite"] as times
    assert 1.04 < fullest["even"] < 1.06, \
        "With the even router, the fullest rank does 1.05 times the mean work of all ranks, by chance."
    assert 1.9 < fullest["a favorite"] < 2.1, \
        "With a favorite, the fullest rank does about twice the mean work."
    figure(plot_traffic(tables),
        caption=r"""
            How many copies of each rank's tokens (row) went to the experts of each rank (column),
            with an even router and with one that favors an expert of rank 0.
        """,
        alt="Two tables of four by four cells. The first is even; in the second all four cells of the first column are dark.")
    note(r"""
        This is why routers are trained to pick experts evenly. DeepSeek-V3 adds a number to each
        expert's score, and lowers this number for experts that get too many tokens [@deepseek-v3].
    """)
    question(r"""
        Each token uses two experts, and one of them is always the same favorite. So half of all
        copies go to one rank, and the others share the rest evenly. Compare the time of the layer
        with that of an even router: how many times as long does it take on `4` ranks, and on `16`?
        Give two numbers.
    """, answer=[0.5 * 4, 0.5 * 16], check=[0.5 / (1 / 4), 0.5 / (1 / 16)],
        hint="What share of all copies would a rank get from an even router?",
        why=r"""
            The rank of the favorite has half of all copies in either case. An even router would
            give it a fourth on `4` ranks, and a sixteenth on `16`. So the layer takes
            `0.5 / (1/4) = 2` and `0.5 / (1/16) = 8` times as long.
        """)
