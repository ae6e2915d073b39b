"""Tensor parallelism: each rank keeps a slice of every matrix, and what the slices give is added up."""
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from counters import saved_bytes_of
from einops import rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor, nn
from wire import HEADER, Wire, from_all_ranks

from litbook import aside, figure, misbelief, note, question, requires

from .collectives import difference
from .data_parallel import gradient_of
from .drawings import plot_owners


def tensor_parallelism() -> None:
    """Tensor parallelism."""
    note(r"""
        Sharded state cuts up what a rank *keeps*. Each rank still runs every product in full, on
        data of its own. *Tensor parallelism* cuts up the products themselves: all ranks work on the
        same tokens, and each computes with its own slice of every matrix. That takes traffic inside
        each block, so it is used among cards that are closely linked.
    """)
    columns_then_rows_need_one_sum()
    heads_are_columns()
    a_sum_can_be_left_scattered()
    a_loss_needs_three_numbers_per_token()


class FeedForward(nn.Module):
    """A feed-forward part: `down(silu(gate(x)) * up(x))`, with `hidden` numbers inside."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        y: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return y


ROUNDING = 1e-12  # what adding in another order may change in float64, relative to the largest number


SUMMED = "out", "down"  # the matrices that end a part: their inputs are cut, and their results added up


def slices(
    whole: Mapping[str, Tensor], rank: int, ranks: int
) -> dict[str, Tensor]:
    """What a rank keeps of each matrix: some columns, or some rows of `out` and `down`.

    `nn.Linear` stores the transpose, so columns are rows of its `weight`. Gains stay whole.
    """
    kept = {}
    for name, w in whole.items():
        side = int(name.split(".")[-2] in SUMMED)
        kept[name] = w.chunk(ranks, dim=side)[rank] if w.dim() == 2 else w
    return kept


def owners(whole: Tensor, kept: list[Tensor]) -> Int[Tensor, "row col"]:
    """For each weight of `whole` the number of the rank that keeps it, found by its value."""
    has = torch.stack([torch.isin(whole, part) for part in kept])
    return has.int().argmax(dim=0)


@requires("ranks=4")
def columns_then_rows_need_one_sum() -> None:
    """Cut the first matrix by columns and the next by rows, and one sum is left to do."""
    note(r"""
        A matrix may be too large for one card. So four [ranks](#a_rank_sees_its_own_memory_alone),
        processes for one card each, share it: each keeps a slice and computes with that. There are
        two ways to cut a product $x W$. Take a token `x = [1, 2, 3, 4]` and a matrix $W$ of `4` by
        `4` numbers whose first column is `[0, 4, 3, 2]`. The first number of the result is
        `1 * 0 + 2 * 4 + 3 * 3 + 4 * 2 = 25`.

        - Cut $W$ by *columns*: rank 0 keeps the first column and computes the `25` alone, from all
          of `x`. Each rank has one number of the result.
        - Cut $W$ by *rows*: each rank needs only one number of `x`, and computes one of the four
          products in that sum. An [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) adds them
          up. The other numbers of the result come about in the same way.
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x: Float[Tensor, "t d"] = torch.arange(1.0, 5.0).view(1, 4)
    matrix: Float[Tensor, "d n"] = torch.tensor(
        [[0.0, 1, 2, 3], [4, 0, 1, 2], [3, 4, 0, 1], [2, 3, 4, 0]]
    )
    assert matrix[:, 0].tolist() == [0, 4, 3, 2], \
        "This is the first column of the matrix."  # @hide
    column: Float[Tensor, "t 1"] = x @ matrix.chunk(ranks, dim=1)[rank]  # @inspect column
    assert torch.equal(column, (x @ matrix)[:, rank : rank + 1]), \
        "Cut by columns, a rank computes one number of the result."
    row = matrix.chunk(ranks)[rank]
    part: Float[Tensor, "t n"] = x.chunk(ranks, dim=1)[rank] @ row  # @inspect part
    firsts = from_all_ranks(part[0, 0].item())  # @inspect firsts
    assert firsts == [1 * 0, 2 * 4, 3 * 3, 4 * 2], \
        "Cut by rows, each rank has one of the four products in the first number."
    total = part.clone()
    dist.all_reduce(total)  # @inspect total
    assert total[0, 0] == 25, "The all-reduce adds them up to 25."
    assert torch.equal(total, x @ matrix), \
        "It gives every rank the whole result."
    note(r"""
        Now take two products, one after the other. If the first matrix is cut by columns, each rank
        has some numbers of the result. If the second is cut by rows, each rank needs just these
        numbers. So nothing has to be sent between the two, and one all-reduce at the end is enough.

        The feed-forward part of a Transformer block is made like this. Two matrices, `gate` and
        `up`, read a token. The function SiLU is applied to each number from `gate`, and the result
        is multiplied by the number from `up` in the same column. The third matrix, `down`, reads
        these products. No number meets one of another column before `down`. So we cut `gate` and
        `up` by columns and `down` by rows. `whole` is such a part, of width `8` and `16` wide
        inside, and `mine` is a rank's slice of it, `16 / 4` wide inside:
    """)
    whole = FeedForward(8, 16).double()
    mine = FeedForward(8, 16 // ranks).double()
    mine.load_state_dict(slices(whole.state_dict(), rank, ranks))
    kept = sum(w.numel() for w in mine.parameters())  # @inspect kept
    assert kept * ranks == 3 * 8 * 16, \
        "Each rank keeps a fourth of the 3 * 8 * 16 weights."
    tokens: Float[Tensor, "b s width"] = torch.randn(2, 3, 8).double()
    y = mine(tokens)
    assert not torch.allclose(y, whole(tokens)), \
        "Before the all-reduce, a rank has only a part of each sum."
    dist.all_reduce(y)
    assert difference(y, whole(tokens)) < ROUNDING, \
        "After the all-reduce, every rank has the result of the whole part, up to rounding."
    shares = from_all_ranks(mine.state_dict())  # @hide
    held = {
        name: owners(w, [share[name] for share in shares])
        for name, w in whole.state_dict().items()
    }  # @hide
    areas = [(at == rank).float().mean().item() for at in held.values()]  # @hide
    assert areas == [1 / ranks] * 3, \
        "Each of four ranks keeps a fourth of each of the three matrices."  # @hide
    figure(plot_owners({name.removesuffix(".weight"): at.T for name, at in held.items()}),
        caption=r"""
            Which rank keeps which weight of the feed-forward part. Rows are inputs, columns are
            outputs.
        """,
        alt=r"""
            Three matrices as blocks in four colors, one for each rank. In gate and up a rank has
            some columns, in down the rows with the same numbers.
        """)
    misbelief("It does not matter which matrix is cut by columns and which by rows.", r"""
        It does. If `gate` is cut by rows, each rank has only a part of each sum when SiLU comes.
        But SiLU of the parts, added up, is not SiLU of the sum. So a second all-reduce would have
        to come before SiLU. Above, `part` is a rank's part of a sum, and `total` the sum:
    """)
    curved = F.silu(part)
    dist.all_reduce(curved)
    assert not torch.allclose(curved, F.silu(total)), \
        "SiLU of the four parts, added up, is not SiLU of the sum."
    question(r"""
        A feed-forward part has three matrices of `4096 * 14336` weights each. `8` ranks share it,
        and each keeps a slice of each matrix. How many weights does each rank keep?
    """, answer=3 * 4096 * 14336 // 8, check=sum(w.numel() for w in narrow(4096, 14336, 8).parameters()), unit="weights",
        wrong={"That is all of them.": 3 * 4096 * 14336, "There are three matrices, not two.": 2 * 4096 * 14336 // 8},
        hint="How many weights has one of the matrices, and what share of it does a rank keep?",
        why="There are three matrices of `4096 * 14336` weights. Each is cut along the side that is `14336` long, so a rank keeps an eighth of each.")


def narrow(width: int, hidden: int, ranks: int) -> FeedForward:
    """One rank's slice of a feed-forward part: shapes alone, without numbers."""
    with torch.device("meta"):
        return FeedForward(width, hidden // ranks)


class Attention(nn.Module):
    """Causal attention with `heads` heads of queries and `kv_heads` of keys, of `size` numbers.

    As in the lecture before, without rotary embedding.
    """

    def __init__(
        self, width: int, heads: int, kv_heads: int, size: int
    ) -> None:
        super().__init__()
        self.query = nn.Linear(width, heads * size, bias=False)
        self.key = nn.Linear(width, kv_heads * size, bias=False)
        self.value = nn.Linear(width, kv_heads * size, bias=False)
        self.out = nn.Linear(heads * size, width, bias=False)
        self.size = size

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        made = self.query(x), self.key(x), self.value(x)
        by_head = "b t (h c) -> b h t c"
        q, k, v = (rearrange(y, by_head, c=self.size) for y in made)
        mixed = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True
        )
        y: Tensor = self.out(rearrange(mixed, "b h t c -> b t (h c)"))
        return y


Step = Callable[[Tensor], Tensor]


def unchanged(x: Tensor) -> Tensor:
    """Returns `x`. A block that runs on one rank has nothing to exchange."""
    return x


class Block(nn.Module):
    """A Transformer block, or a rank's slice: `enter` is called before each part, `leave` after."""

    def __init__(
        self, ranks: int = 1, enter: Step = unchanged, leave: Step = unchanged
    ) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(64)
        self.feed_forward_norm = nn.RMSNorm(64)
        self.attention = Attention(64, 8 // ranks, 4 // ranks, 8)
        self.feed_forward = FeedForward(64, 160 // ranks)
        self.enter, self.leave = enter, leave

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        normed = self.enter(self.attention_norm(x))
        x = x + self.leave(self.attention(normed))
        normed = self.enter(self.feed_forward_norm(x))
        return x + self.leave(self.feed_forward(normed))


class Enter(torch.autograd.Function):
    """Forward: returns the tokens as they are. Backward: all-reduces their gradient.

    Every rank has the tokens, and a part of their gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        whole = grad.clone()
        dist.all_reduce(whole)
        return whole


class Leave(torch.autograd.Function):
    """Forward: all-reduces the parts of sums. Backward: returns the gradient as it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        whole = x.clone()
        dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def all_reduce_bytes(size: float, ranks: int) -> float:
    """Bytes that each of `ranks` ranks in a ring sends to all-reduce `size` bytes."""
    return 2 * (ranks - 1) / ranks * size


@requires("linux, ranks=4")
def heads_are_columns() -> None:
    """A head is a few columns, so each rank computes heads of its own."""
    note(r"""
        How can four ranks share the attention of a Transformer block? Attention is made of *heads*,
        which work side by side on the same tokens, and no head looks at another. The queries of a
        head come from a few columns of the matrix `query`, and the last matrix, `out`, has a few
        rows for each head. So each rank takes some heads: their columns of `query`, `key` and
        `value`, and their rows of `out`. As in the
        [feed-forward part](#columns_then_rows_need_one_sum), columns come first and rows last, so
        one all-reduce at the end adds up what the ranks have.

        Here a block is `64` wide. It has `8` heads of queries, and `4` heads of keys and values, of
        which each serves two heads of queries. So each of four ranks gets two heads of queries and
        one of keys and values. `slices` cuts the weights of a rank out of those of the whole block:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    whole = Block().double()
    mine = Block(ranks, Enter.apply, Leave.apply).double()
    mine.load_state_dict(slices(whole.state_dict(), rank, ranks))
    heads = mine.attention.query.out_features // 8  # @inspect heads
    assert heads == 2, "Each rank has two heads of queries, of 8 columns each."
    numbered = {  # each weight says by its number which one it is
        name: torch.arange(w.numel()).view_as(w)
        for name, w in whole.attention.state_dict().items()
    }  # @hide
    shares = from_all_ranks(slices(numbered, rank, ranks))  # @hide
    held = {
        name: owners(w, [share[name] for share in shares]).T
        for name, w in numbered.items()
    }  # @hide
    size = whole.attention.size  # @hide
    squares = {name: at[::size, ::size] for name, at in held.items()}  # @hide
    grown = partial(repeat, pattern="r c -> (r i) (c o)", i=size, o=size)  # @hide
    assert all(torch.equal(at, grown(squares[n])) for n, at in held.items()), \
        "No rank has only a part of a head."  # @hide
    figure(plot_owners({name.removesuffix(".weight"): at for name, at in squares.items()}),
        caption=rf"""
            Which rank keeps which heads. Each column of squares is a head; in `out`, each row is. A
            square is {size} by {size} weights.
        """,
        alt=r"""
            Four matrices in squares of four colors. In query each rank has two columns of squares,
            in key and value one, and in out two rows.
        """)
    note(r"""
        What does the block send? Forward, it all-reduces the tokens twice: once behind attention
        and once behind the feed-forward part. `Leave` does that. Backward, a rank's slices give
        only a part of the gradient of the tokens that came in. So backward, there is an all-reduce
        where the tokens came in, once for each of the two parts. `Enter` does that [@shoeybi2019].
        That is two all-reduces forward and two backward. We run the block on `2` sequences of `128`
        tokens. `x` goes through the whole block, and its copy `z` through the slices:
    """)
    x: Float[Tensor, "b t d"] = torch.randn(2, 128, 64).double()
    x.requires_grad_()
    y = whole(x)
    y.square().sum().backward()
    z = x.detach().clone().requires_grad_()
    with Wire() as forth:
        made = mine(z)
    with Wire() as back:
        made.square().sum().backward()
    assert difference(made, y) < ROUNDING, \
        "The result of the slices is that of the whole block, up to rounding."
    assert difference(gradient_of(z), gradient_of(x)) < ROUNDING, \
        "The gradient of the tokens is that of the whole block, up to rounding."
    grads, kept = slices(gradients(whole), rank, ranks), gradients(mine)
    assert max(difference(kept[n], grads[n]) for n in kept) < ROUNDING, \
        "Each rank has its slice of each weight's gradient, up to rounding."
    formula = 2 * all_reduce_bytes(x.nbytes, ranks)  # @inspect formula as B
    ratios = forth.sent / formula, back.sent / formula  # @inspect ratios
    assert 1 < min(ratios) <= max(ratios) < 1.02, \
        "Forward and backward, a rank sends the bytes of two all-reduces of the tokens each, and headers."
    note(r"""
        What is added up are tokens. So the traffic grows with the tokens and not with the weights.
        Take $B$ sequences of $T$ tokens of $d$ numbers, $w$ bytes each. An all-reduce on $G$ ranks
        sends $2\,(G-1)/G$ times the bytes of its tensor. With four of them, each rank sends

        [@eq:tensor]: $$
        4 \cdot \frac{2\,(G-1)}{G} \cdot B\,T\,d\,w
        $$

        bytes in each block and step. And no rank can go on before they have arrived, because the
        next part needs the whole sums.
    """)
    question(r"""
        A block of width `16384` gets `8192` tokens in `bfloat16`, `2` bytes for each number, and
        `8` ranks share it. In a step there are four all-reduces of the tokens. How many bytes does
        each rank send?
    """, answer=4 * 2 * 7 / 8 * 8192 * 16384 * 2, check=4 * all_reduce_bytes(8192 * 16384 * 2, 8), unit="B", within=0.05,
        wrong={"Half of it is missing: either the way back, or the second half of each all-reduce.": 4 * 7 / 8 * 8192 * 16384 * 2},
        hint="How many bytes are the tokens, and what does one all-reduce of them send?",
        why="The tokens take `8192 * 16384 * 2` bytes, `268` MB. Four all-reduces send `2 * 7 / 8` of that each, nearly `2` GB in all; the 405B model of Llama 3 has `126` such blocks [@llama3].")


def gradients(module: nn.Module) -> dict[str, Tensor]:
    """The gradient of each parameter of a module, by the parameter's name."""
    return {name: gradient_of(p) for name, p in module.named_parameters()}


def all_gather_tokens(x: Float[Tensor, "b t d"]) -> Float[Tensor, "b all d"]:
    """The tokens of all ranks, in order, from this rank's tokens."""
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts, dim=1)


def reduce_scatter_tokens(
    x: Float[Tensor, "b all d"]
) -> Float[Tensor, "b t d"]:
    """This rank's tokens of the sum of all ranks' `x`, sending no more than is needed."""
    parts = torch.stack(x.chunk(dist.get_world_size(), dim=1))
    came = torch.empty_like(parts)
    dist.all_to_all_single(came, parts)
    return came.sum(dim=0)


class Gather(torch.autograd.Function):
    """Forward: all-gathers the tokens. Backward: reduce-scatters their gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return all_gather_tokens(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return reduce_scatter_tokens(grad)


class Scatter(torch.autograd.Function):
    """Forward: reduce-scatters the parts of sums. Backward: all-gathers the gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return reduce_scatter_tokens(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return all_gather_tokens(grad)


@aside
@requires("linux, ranks=4")
def a_sum_can_be_left_scattered() -> None:
    """Sequence parallelism sends as many bytes, and keeps less."""
    note(r"""
        In [tensor parallelism](#heads_are_columns) ranks share the matrices of a block, but not
        what lies between: after each part an all-reduce gives every rank all tokens. Then all four
        ranks compute the same norms of the same tokens, and keep the same numbers for the backward
        pass. Since a norm looks at one token at a time, each rank could do it for a fourth of the
        tokens.

        For that, take the all-reduce apart into its [two halves](#an_all_reduce_has_two_halves).
        Behind a part, the reduce-scatter leaves each rank the sums of its own tokens. The norm runs
        on these. Before the next matrices, the all-gather collects the tokens of all ranks. That is
        *sequence parallelism* [@korthikanti2022].

        We compare two blocks on four ranks: `summed` does whole all-reduces (`Enter`, `Leave`), and
        `scattering` the two halves apart (`Gather`, `Scatter`). The input are `2` sequences of
        `128` tokens of `64` numbers, and `mine` is a rank's fourth of them:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    whole = Block().double()
    summed = Block(ranks, Enter.apply, Leave.apply).double()
    scattering = Block(ranks, Gather.apply, Scatter.apply).double()
    for cut in (summed, scattering):
        cut.load_state_dict(slices(whole.state_dict(), rank, ranks))
    x: Float[Tensor, "b all d"] = torch.randn(2, 128, 64).double()
    mine: Float[Tensor, "b t d"] = x.chunk(ranks, dim=1)[rank].clone()  # @inspect mine
    x.requires_grad_()
    mine.requires_grad_()
    y = whole(x)
    y.square().sum().backward()
    with Wire() as wire:
        made = scattering(mine)
        made.square().sum().backward()
    its = y.chunk(ranks, dim=1)[rank]
    assert difference(made, its) < ROUNDING, \
        "A rank has the result of its own tokens, up to rounding."
    grad = gradient_of(x).chunk(ranks, dim=1)[rank]
    assert difference(gradient_of(mine), grad) < ROUNDING, \
        "A rank has the gradient of its own tokens, up to rounding."
    ratio = wire.sent / (4 * all_reduce_bytes(x.nbytes, ranks))  # @inspect ratio
    assert 1 < ratio < 1.02, \
        "A rank sends as many bytes as in the four all-reduces of tensor parallelism, and headers."
    note(r"""
        The traffic is the same, because the two halves of an all-reduce send together what it
        sends. What is gained is memory. `saved_bytes_of` counts what autograd keeps on this rank
        for the backward pass:
    """)
    weights = [*summed.parameters(), *scattering.parameters()]
    before = saved_bytes_of(lambda: summed(x), weights)  # @inspect before as B
    after = saved_bytes_of(lambda: scattering(mine), weights)  # @inspect after as B
    less = after / before  # @inspect less as %
    assert 0.67 < less < 0.68, \
        "With sequence parallelism, a rank keeps about two thirds of the bytes."
    two_norms = 2 * (2 * 64 + 1) * x[..., 0].nbytes  # @hide
    assert before - after == two_norms * (ranks - 1) / ranks, \
        "Of what the two norms kept, 2 * 64 + 1 numbers for a token, a rank now keeps a fourth."  # @hide
    note(r"""
        The difference is what the two norms keep: now only for a rank's own tokens. The rest is
        what attention and the feed-forward part compute inside, which tensor parallelism has shared
        already, and the gathered tokens that enter the matrices. Megatron does not keep these, but
        gathers them once more in the backward pass [@korthikanti2022].
    """)
    misbelief("With sequence parallelism the gradients of all weights are finished where they are made.", r"""
        The gradients of the matrices are. But a norm has factors of its own, its *gains*, which are
        the same on every rank, and each rank's norm saw only a fourth of the tokens. So the
        gradients of the gains have to be added up over the ranks.
    """)
    gain = gradient_of(scattering.attention_norm.weight)  # @hide
    wanted = gradient_of(whole.attention_norm.weight)  # @hide
    assert not torch.allclose(gain, wanted), \
        "A rank has only a part of the gradient of the gains."  # @hide
    dist.all_reduce(gain)  # @hide
    assert torch.allclose(gain, wanted), \
        "Added up over the ranks, it is the whole gradient of the gains."  # @hide
    question(r"""
        Suppose that a norm keeps its input and nothing else. With sequence parallelism on `8`
        ranks, how many bytes do the `2` norms of a block keep on each rank, for `8192` tokens of
        width `16384` with `2` bytes for each number?
    """, answer=2 * 8192 * 16384 * 2 // 8, check=2 * (8192 // 8) * 16384 * 2, unit="B", within=0.05,
        wrong={"That is without it: every rank keeps all tokens.": 2 * 8192 * 16384 * 2},
        why="Each rank keeps `8192 / 8 = 1024` of the tokens, and for each of the two norms `16384` numbers of `2` bytes a token.")


@aside
@requires("linux, ranks=4")
def a_loss_needs_three_numbers_per_token() -> None:
    """A loss over sharded logits sends three numbers per token, not the logits."""
    note(r"""
        For each token, a language model computes a score, the *logit*, for every entry of its
        vocabulary, `1024` here. In [tensor parallelism](#columns_then_rows_need_one_sum) the last
        matrix is cut by columns, so each of four ranks has the logits of `256` entries. The loss
        needs all logits of a token. Must they be sent to one place?

        They need not. The loss of a token is

        $$
        \log \sum_i e^{z_i} - z_{\text{right}}
        $$

        with the logits $z_i$ and that of the right entry. Each rank can add up the exponentials of
        its own logits. So the ranks have to all-reduce only three numbers for each token: the
        largest logit (`top`), which is taken off first so that the exponentials stay small; the sum
        (`total`); and the logit of the right entry (`right`), which is zero on all ranks but one.
        Here are `1024` tokens:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    logits: Float[Tensor, "t n"] = torch.randn(1024, 1024).double()
    targets: Int[Tensor, " t"] = torch.randint(1024, (1024,))
    mine: Float[Tensor, "t part"] = logits.chunk(ranks, dim=1)[rank].clone()
    assert mine.shape[1] == 256, "A rank has the logits of 256 entries."  # @hide
    first = rank * mine.shape[1]  # the entry of this rank's first column
    here = (targets >= first) & (targets < first + mine.shape[1])
    with Wire() as wire:
        top = mine.amax(dim=1)  # first number
        dist.all_reduce(top, dist.ReduceOp.MAX)
        total = (mine - top[:, None]).exp().sum(dim=1)  # second number
        dist.all_reduce(total)
        # Third number: here is 1 where the right entry is on this rank, else 0.
        place = (targets - first).clamp(0, mine.shape[1] - 1)
        right = mine.gather(1, place[:, None])[:, 0] * here
        dist.all_reduce(right)
    loss = (total.log() + top - right).mean()  # @inspect loss
    assert difference(loss, F.cross_entropy(logits, targets)) < ROUNDING, \
        "The loss is that of one process with all logits, up to rounding."
    parts = [torch.empty_like(mine) for _ in range(ranks)]
    with Wire() as gathering:
        dist.all_gather(parts, mine)
    more = gathering.sent / wire.sent  # @inspect more as times
    assert round(more) == 150, \
        "To gather all logits on every rank, a rank sends 150 times the bytes."
    formula = 3 * all_reduce_bytes(1024 * 8, ranks)  # @hide
    assert wire.sent - formula == 3 * 36 * HEADER, \
        "A rank sends three all-reduces of one number for each token, with 36 headers each."  # @hide
    note(rf"""
        Why `150`? For each token, an all-gather sends three fourths of `1024` numbers, and an
        all-reduce twice three fourths of one number. So the ratio to three all-reduces should be
        `1024 / (3 * 2)`, about {1024 / (3 * 2):.0f}. The short headers of the messages make it
        less.

        Backward, nothing at all is sent: the gradient of a logit is its share of the sum of
        exponentials, less one at the right entry, and each rank has all that it needs for its own
        logits.
    """)
    grad = (mine - top[:, None]).exp() / total[:, None]  # @hide
    grad[here, place[here]] -= 1  # @hide
    logits.requires_grad_()  # @hide
    F.cross_entropy(logits, targets, reduction="sum").backward()  # @hide
    wanted = gradient_of(logits).chunk(ranks, dim=1)[rank]  # @hide
    assert difference(grad, wanted) < ROUNDING, \
        "Each rank computes its part of the gradient alone, up to rounding."  # @hide
    question(r"""
        The vocabulary of `Llama-3` has `128256` entries. On $G$ ranks, an all-gather sends
        $(G-1)/G$ of a tensor, and an all-reduce twice as much. For each token, how many times as
        many bytes does an all-gather of its `128256` logits send as three all-reduces of one number
        each?
    """, answer=128256 / (3 * 2), check=128256 * 7 / 8 / (3 * all_reduce_bytes(1, 8)), unit="times", within=0.05,
        why=r"""
            An all-gather sends the share $(G-1)/G$ of `128256` numbers. The three all-reduces send
            twice that share of `3` numbers. So the ratio is `128256 / (3 * 2)`, on any number of
            ranks.
        """)
