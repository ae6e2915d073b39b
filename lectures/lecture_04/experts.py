"""Expert parallelism: each rank keeps some experts, and tokens travel to those that the router picks."""
import math
from functools import partial

import torch
import torch.distributed as dist
import torch.nn.functional as F
from counters import flops
from jaxtyping import Float, Int
from torch import Tensor, nn
from wire import HEADER, Wire, from_all_ranks

from litbook import aside, figure, misbelief, note, question, requires

from .collectives import difference
from .figures import plot_traffic
from .tensor_parallel import ROUNDING, FeedForward


def expert_parallelism() -> None:
    """Expert parallelism."""
    note(r"""
        A model of experts has many feed-forward parts, the *experts*, in each layer, and a router
        that picks a few of them for each token. Let each rank keep some of the experts, whole. Then
        it is not the weights that travel, but the tokens: to the experts that were picked, and
        back.
    """)
    the_router_decides_the_bytes()
    the_step_waits_for_the_fullest_rank()
    a_token_may_be_kept_to_few_nodes()


class Router(nn.Module):
    """For each token its two experts with the highest scores, and their shares of the result.

    The shares add up to one. `favor` is added to the first expert's score.
    """

    def __init__(self, width: int, experts: int, favor: float = 0.0) -> None:
        super().__init__()
        self.scores = nn.Linear(width, experts, bias=False).double()
        self.favor = favor

    def forward(
        self, x: Float[Tensor, "t d"]
    ) -> tuple[Float[Tensor, "t two"], Int[Tensor, "t two"]]:
        scores = self.scores(x)
        scores[:, 0] += self.favor
        best, chosen = scores.topk(2)
        return best.softmax(dim=-1), chosen


def in_one_process(
    x: Float[Tensor, "t d"], shares: Float[Tensor, "t two"],
    chosen: Int[Tensor, "t two"], experts: list[FeedForward],
) -> Float[Tensor, "t d"]:  # @stepover
    """The layer's results for the tokens `x`, with all experts in one process."""
    y = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        token, place = (chosen == number).nonzero(as_tuple=True)
        y[token] += shares[token, place, None] * expert(x[token])
    return y


def all_to_all_rows(
    x: Float[Tensor, "n d"], going: list[int], coming: list[int]
) -> Float[Tensor, "m d"]:
    """Sends `going[r]` rows of `x` to rank r, in order; returns the rows that came."""
    came = x.new_empty(sum(coming), *x.shape[1:])
    dist.all_to_all_single(came, x.contiguous(), coming, going)
    return came


def through_experts(
    x: Float[Tensor, "t d"], shares: Float[Tensor, "t two"],
    chosen: Int[Tensor, "t two"], mine: list[FeedForward],
) -> tuple[Float[Tensor, "t d"], list[int], list[int]]:
    """The layer's results for `x`; the copies of tokens sent to each rank, and from each."""
    ranks = dist.get_world_size()
    # Copies of tokens, sorted by expert.
    order = chosen.flatten().argsort(stable=True)
    copies = torch.bincount(chosen.flatten(), minlength=ranks * len(mine))
    going = copies.view(ranks, len(mine))
    # How many for each of this rank's experts.
    coming = all_to_all_rows(going, [1] * ranks, [1] * ranks)
    out, back = going.sum(1).tolist(), coming.sum(1).tolist()
    came = all_to_all_rows(x[order // 2], out, back)
    parts = came.split(coming.flatten().tolist())
    made = [mine[i % len(mine)](part) for i, part in enumerate(parts)]
    returned = all_to_all_rows(torch.cat(made), back, out)
    weighed = returned * shares.flatten()[order, None]
    return torch.zeros_like(x).index_add(0, order // 2, weighed), out, back


def all_experts() -> list[FeedForward]:  # @stepover
    """Eight experts, feed-forward parts of width 64; each of four ranks keeps two."""
    return [FeedForward(64, 96).double() for _ in range(8)]


@requires("linux, ranks=4")
def the_router_decides_the_bytes() -> None:
    """Tokens are sent to their experts, and the results come back."""
    note(r"""
        A layer has eight *experts*, feed-forward parts of which each token goes through only two. A
        small matrix, the *router*, picks these two. Each of four ranks keeps two of the experts,
        and has `512` tokens of its own. But the experts of a token may be on any rank. So a rank
        makes two copies of each token, `2 * 512` in all, and sends each copy to the rank of its
        expert, in an [all-to-all](#an_all_to_all_transposes). Each rank runs its experts on what
        came, and a second all-to-all brings the results back. How many bytes does a rank send?

        `through_experts` does all that. It returns the results, how many copies this rank sent to
        each rank (`going`), and how many came from each (`coming`). `in_one_process` computes the
        same in one place:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    experts, router = all_experts(), Router(64, 8)
    mine = experts[2 * rank : 2 * rank + 2]
    x: Float[Tensor, "t d"] = torch.randn(ranks, 512, 64).double()[rank]
    with torch.no_grad():
        shares, chosen = router(x)
        with Wire() as wire:
            y, going, coming = through_experts(x, shares, chosen, mine)
        alone = in_one_process(x, shares, chosen, experts)
        assert difference(y, alone) < ROUNDING, \
            "The results are those of one process with all experts, up to rounding."
    flow = from_all_ranks(going)  # @inspect flow
    assert sum(map(sum, flow)) == 2 * 512 * ranks, \
        "There are two copies of each of the 4 * 512 tokens."
    figure(plot_traffic({"copies of tokens": flow}),
        caption=r"""
            How many copies of each rank's tokens (row) went to the experts of each rank (column).
            On the diagonal are those that stayed.
        """,
        alt="A table of four by four cells with a number in each, all of nearly the same shade.")
    note(r"""
        A copy whose expert is on its own rank stays there. The others leave (`away`). A rank also
        sends the results of the copies that came from other ranks (`for_others`):
    """)
    size = x[0].nbytes  # of a token or a result  # @inspect size as B
    away = sum(going) - going[rank]  # @inspect away
    for_others = sum(coming) - coming[rank]  # @inspect for_others
    moved = (away + for_others) * size  # @inspect moved as B
    ratio = wire.sent / moved  # @inspect ratio
    assert 1 < ratio < 1.01, \
        "A rank sends the bytes of both, and a few headers."
    assert wire.sent - moved == 27 * HEADER + 3 * 2 * 8, \
        "The rest are 27 headers, and how many copies come for each of 6 experts."  # @hide
    left = [sum(row) - row[r] for r, row in enumerate(flow)]
    leaving = sum(left) / sum(map(sum, flow))  # @inspect leaving as %
    assert math.isclose(leaving, (ranks - 1) / ranks, rel_tol=0.03), \
        "About three quarters of all copies leave their rank, within 3 %."
    note(r"""
        So with experts that are picked evenly, three of four copies leave, because three of four
        ranks are other ranks. On $G$ ranks the share is $(G-1)/G$. With $k$ experts for each of $T$
        tokens of its own, of $d$ numbers with $w$ bytes for each number, a rank sends

        [@eq:experts]: $$
        2 \cdot \frac{G - 1}{G} \cdot k\,T\,d\,w
        $$

        bytes forward: the copies, and on average as many results. Backward it sends as many again.
    """)
    many = torch.arange(32)  # @hide
    _, picked = Router(64, len(many))(x)  # @hide
    assert torch.equal(picked.unique(), torch.arange(32)), \
        "Of 32 experts, all are picked."  # @hide
    stay = torch.isin(picked, many.chunk(ranks)[rank]).double().mean().item()  # @hide
    still = 1 - sum(from_all_ranks(stay)) / ranks  # @hide
    assert 0.74 < still < 0.76, \
        "With 32 experts, eight on each rank, three quarters of the copies leave, too."  # @hide
    misbelief("The more experts a layer has, the more is sent.", rf"""
        The number of experts is not in the formula, because a token still goes to two of them. With
        `32` experts, eight on each rank, {still:.0%} of the copies leave, as many as with eight.
        More experts take more memory, and each gets fewer tokens.
    """)
    question(r"""
        A layer sends each token to `8` experts, which are spread evenly over `64` cards. A card has
        `4096` tokens of `7168` numbers, `2` bytes each. How many bytes does it send forward, copies
        and results together?
    """, answer=2 * 63 / 64 * 8 * 4096 * 7168 * 2, check=2 * (8 * 4096 - 8 * 4096 / 64) * 7168 * 2, unit="B", within=0.05,
        wrong={"Results come back, too.": 63 / 64 * 8 * 4096 * 7168 * 2},
        hint="How many copies does the card make, and what share of them leaves?",
        why="Each token has `8` copies, of `7168` numbers of `2` bytes, and `63` of `64` leave. The results come back, which doubles it: nearly a gigabyte in each layer.")


@requires("ranks=4")
def the_step_waits_for_the_fullest_rank() -> None:
    """If a router has a favorite, one rank gets most of the tokens, and all wait for it."""
    note(r"""
        A layer has eight *experts*, feed-forward parts, and each of four ranks keeps two of them. A
        *router*, a small matrix, gives each token a score for each expert, and the token goes to
        the two experts with the highest scores.
        [The copies of tokens](#the_router_decides_the_bytes) travel to the ranks of these experts.
        What happens if the router has a favorite?

        Each rank has `512` tokens, so there are `4 * 2 * 512 = 4096` copies, a thousand for each
        rank if the router is even. We run the layer twice: with an even router, and with one that
        adds `1` to all scores of the first expert, which is on rank 0. `flows` has the copies from
        each rank to each, and `work` the FLOPs that each rank's experts do:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    experts = all_experts()
    mine = experts[2 * rank : 2 * rank + 2]
    x: Float[Tensor, "t d"] = torch.randn(ranks, 512, 64).double()[rank]
    flows, work = {}, {}
    for name, favor in {"even": 0.0, "a favorite": 1.0}.items():
        torch.manual_seed(1)
        shares, chosen = Router(64, 8, favor)(x)
        _, going, coming = through_experts(x, shares, chosen, mine)
        came = x.new_empty(sum(coming), 64)
        work[name] = from_all_ranks(flops(partial(mine[0], came)))  # @inspect work[name] as FLOP
        flows[name] = from_all_ranks(going)
    assert sum(map(sum, flows["even"])) == 4096, \
        "With the even router, there are 4096 copies."  # @hide
    assert sum(work["even"]) == sum(work["a favorite"]), \
        "All ranks together do as many FLOPs with a favorite as without."
    slowest = {
        name: max(each) * ranks / sum(each) for name, each in work.items()
    }  # @inspect slowest as times
    assert 1.04 < slowest["even"] < 1.06, \
        "With the even router, the fullest rank does 1.05 times the mean of all ranks."
    assert 1.9 < slowest["a favorite"] < 2.1, \
        "With a favorite, the fullest rank does about twice the mean."
    figure(plot_traffic(flows),
        caption=r"""
            How many copies of each rank's tokens (row) went to the experts of each rank (column),
            with an even router and with one that favors an expert of rank 0.
        """,
        alt="Two tables of four by four cells. The first is even; in the second all four cells of the first column are dark.")
    note(rf"""
        With a favorite, the layer takes {slowest['a favorite']:.1f} times as long as if all ranks
        had the same to do, because all ranks wait for the results of the fullest one. This is why
        routers are trained to be even. DeepSeek-V3 adds a number to each expert's score, and lowers
        it for experts that get too many tokens [@deepseek-v3].
    """)
    question(r"""
        Each of `4` ranks has `1024` copies of tokens. Half of all copies go to experts on the first
        rank, and the others are spread evenly over the other three. How many times as much as the
        mean of all ranks does the first rank have to do?
    """, answer=0.5 * 4, check=(0.5 * 1024 * 4) / 1024, unit="times",
        wrong={"That is the share, not how it compares to the mean.": 0.5},
        hint="What share of all copies does a rank get on average?",
        why="On average a rank gets a fourth of all copies, and the first gets half: `0.5 / 0.25`.")


def nodes_of(picked: Int[Tensor, "t k"]) -> Int[Tensor, " t"]:
    """For each token the number of nodes that its picked experts are on; a node has 32 of them."""
    return F.one_hot(picked // 32, 8).amax(dim=1).sum(dim=1)


def best_on_four_nodes(
    scores: Float[Tensor, "t experts"]
) -> Int[Tensor, "t eight"]:
    """The eight best experts of each token on the four nodes whose two best have the most together."""
    by_node = scores.view(-1, 8, 32)
    four = by_node.topk(2, dim=2).values.sum(dim=2).topk(4).indices
    allowed = torch.zeros(len(scores), 8, dtype=torch.bool)
    allowed = allowed.scatter(1, four, value=True)
    theirs = by_node.masked_fill(~allowed[:, :, None], -1).flatten(1)
    return theirs.topk(8).indices


@aside
def a_token_may_be_kept_to_few_nodes() -> None:
    """A token whose experts are on few nodes crosses the slow network less often."""
    note(r"""
        A *node* is a computer with several cards, `8` say, which are linked much faster with each
        other than with cards of other nodes. In a layer of
        [experts](#the_router_decides_the_bytes), feed-forward parts of which a token goes through a
        few, the experts stand on many nodes. If two of a token's experts are on the same node, the
        token crosses the slow network only once, and is handed on inside the node. So on how many
        nodes are a token's experts?

        DeepSeek-V3 has `256` experts in a layer, `32` on each of `8` nodes, and picks the `8` with
        the highest scores for each token [@deepseek-v3]. We draw random scores for `20000` tokens,
        and `nodes_of` counts the nodes of each token's experts. Chance tells what to expect: a node
        is missed if all eight experts are among the other `224`:
    """)
    scores: Float[Tensor, "t experts"] = torch.rand(20_000, 256)
    best = scores.topk(8)
    node = best.indices // 32  # @hide
    assert node.flatten().bincount().min() > 0.97 * node.numel() / 8, \
        "Each of the 8 nodes has an eighth of the picked experts, within 3 %."  # @hide
    touched = nodes_of(best.indices).double().mean().item()  # @inspect touched  # @unnoticed: .double() -> .float(): counts are small
    expected = 8 * (1 - math.comb(224, 8) / math.comb(256, 8))  # @inspect expected
    assert math.isclose(touched, expected, rel_tol=0.01), \
        "On average, a token's eight experts are on 5.3 nodes, as chance says within 1 %."
    note(r"""
        DeepSeek-V3 limits the nodes of a token to four. For each node, its router adds up the two
        highest scores there, and keeps the four nodes with the highest sums. Then it picks the
        eight best experts on these nodes. `best_on_four_nodes` does that:
    """)
    limited = best_on_four_nodes(scores)
    now = nodes_of(limited)
    assert now.max() == 4, \
        "Now the experts of a token are on at most four nodes."
    saved = 1 - now.double().mean().item() / touched  # @inspect saved as %  # @unnoticed: .double() -> .float(): counts are small
    assert 0.24 < saved < 0.26, \
        "On average, a token goes to a quarter fewer nodes than before."
    lost = 1 - (scores.gather(1, limited).sum() / best.values.sum()).item()  # @inspect lost as %
    assert 0.003 < lost < 0.0035, \
        "The scores of the picked experts are only 0.3 % lower than those of the best eight."
    note(r"""
        So a token crosses the slow network less often, and hardly loses anything: on four of the
        eight nodes there are nearly always experts that are about as good.
    """)
    question(r"""
        Between nodes a card sends `50` GB/s, and inside a node `160` GB/s [@deepseek-v3]. How many
        copies of a token can be handed on inside a node in the time in which one copy crosses the
        network?
    """, answer=160 / 50, check=(1 / 50e9) / (1 / 160e9), unit="copies", within=0.02,
        why="Inside a node `160 / 50 = 3.2` copies take as long as one between nodes. So `3.2` experts a node cost no more time than one: with four nodes some `13`, while the model picks `8`.")
