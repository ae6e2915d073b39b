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
        A matrix product $x W$ can be shared among ranks in two ways.

        - Cut $W$ by *columns*. Each rank needs all of $x$, and computes some columns of the result.
        - Cut $W$ by *rows*. Each rank needs only some columns of $x$. Its result has full size, but
          each number in it is only a part of a sum. An all-reduce adds the parts up.

        Four ranks try both. $x$ has `2` tokens of `4` numbers, and $W$ is `4` by `4`:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x: Float[Tensor, "t d"] = torch.arange(8.0).view(2, 4)
    matrix: Float[Tensor, "d n"] = torch.arange(16.0).view(4, 4) % 5
    columns: Float[Tensor, "t 1"] = x @ matrix.chunk(ranks, dim=1)[rank]  # @inspect columns
    assert torch.equal(columns, (x @ matrix)[:, rank : rank + 1]), \
        "Cut by columns, a rank computes a column of the result."
    rows = matrix.chunk(ranks)[rank]
    part: Float[Tensor, "t n"] = x.chunk(ranks, dim=1)[rank] @ rows  # @inspect part
    total = part.clone()
    dist.all_reduce(total)  # @inspect total
    assert not torch.equal(part, x @ matrix), \
        "Cut by rows, a rank computes only a part of each sum."
    assert torch.equal(total, x @ matrix), \
        "The all-reduce adds the parts up to the result."
    note(r"""
        Now take two products, one after the other. A matrix cut by columns leaves each rank some
        columns of the result, and a matrix cut by rows needs just these as its input. So cut the
        first matrix by columns and the second by rows: then nothing has to be sent between the two.

        The feed-forward part of a block has that form. Two matrices read a token, `gate` and `up`.
        The function SiLU is applied to each number that `gate` gives, and the result is multiplied
        by the number that `up` gives in the same column. The third matrix, `down`, reads these
        products. Between the matrices, no number meets one of another column. So `gate` and `up`
        are cut by columns and `down` by rows, and one all-reduce at the end is enough.

        `whole` is such a part, of width `8` and `16` wide inside. `mine` is one rank's slice of it:
        a feed-forward part that is `4` wide inside, with the weights that `slices` cuts out.
        `areas` has the share of each matrix that this rank keeps:
    """)
    whole = FeedForward(8, 16).double()
    mine = FeedForward(8, 16 // ranks).double()
    mine.load_state_dict(slices(whole.state_dict(), rank, ranks))
    tokens: Float[Tensor, "b s width"] = torch.randn(2, 3, 8).double()
    y = mine(tokens)
    assert not torch.allclose(y, whole(tokens)), \
        "Before the all-reduce, a rank has only a part of each sum."
    dist.all_reduce(y)
    assert difference(y, whole(tokens)) < ROUNDING, \
        "After it, every rank has the result of the whole part."
    shares = from_all_ranks(mine.state_dict())
    held = {
        name: owners(w, [share[name] for share in shares])
        for name, w in whole.state_dict().items()
    }
    areas = [(at == rank).float().mean().item() for at in held.values()]  # @inspect areas
    assert areas == [1 / ranks] * 3, \
        "Each of four ranks keeps a fourth of each matrix."
    figure(plot_owners({name.removesuffix(".weight"): at.T for name, at in held.items()}),
        caption=r"""
            Which rank keeps which weight of the feed-forward part. Rows are inputs, columns are
            outputs.
        """,
        alt=r"""
            Three matrices as blocks in four colors, one for each rank. In gate and up a rank has
            some columns, in down the rows with the same numbers.
        """)
    misbelief("It does not matter which of the two matrices is cut by columns.", r"""
        It does. If `gate` is cut by rows, a rank has only a part of each sum before SiLU. But SiLU
        is not linear: SiLU of the parts, added up, is not SiLU of the sum. So an all-reduce would
        have to come before SiLU, besides the one at the end. In the numbers from above, `part` is a
        rank's part of a sum, and `total` the sum:
    """)
    curved = F.silu(part)
    dist.all_reduce(curved)
    assert not torch.allclose(curved, F.silu(total)), \
        "SiLU of the parts, added up, is not SiLU of the sum."
    question(r"""
        A feed-forward part has three matrices that turn `4096` numbers into `14336`, or back. `8`
        ranks share it. How many weights does each of them keep?
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
        Attention can be shared among ranks by its heads. A head of queries is a few columns of the
        query matrix, and no head looks at another. So each rank keeps some heads: their columns of
        `query`, `key` and `value`, and their rows of `out`. Several heads of queries may read one
        head of keys, which has to be on their rank. So, unless heads of keys are copied, the number
        of ranks has to divide their number.

        Four ranks share a block of width `64`, with `8` heads of queries and `4` heads of keys and
        values. So each rank gets two heads of queries and one of keys:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    whole = Block().double()
    mine = Block(ranks, Enter.apply, Leave.apply).double()
    mine.load_state_dict(slices(whole.state_dict(), rank, ranks))
    heads = mine.attention.query.out_features // 8  # @inspect heads
    assert heads == 2, "Each rank has two heads of queries."
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
            Which rank keeps which heads. Columns of squares are heads; in `out`, rows are. A square
            is {size} by {size} weights.
        """,
        alt=r"""
            Four matrices in squares of four colors. In query each rank has two columns of squares,
            in key and value one, and in out two rows.
        """)
    x: Float[Tensor, "b t d"] = torch.randn(2, 128, 64).double()
    x.requires_grad_()
    z = x.detach().clone().requires_grad_()
    y = whole(x)
    y.square().sum().backward()
    note(r"""
        How many bytes does the block send? It has two parts, attention and feed-forward. Each ends
        with a matrix that is cut by rows, so each rank then has only a part of every sum. So
        forward, an all-reduce stands behind each part. Backward, each rank's slices give only a
        part of the gradient of the tokens that came in. So backward, an all-reduce adds these parts
        up where the tokens came in [@shoeybi2019].

        `Leave` stands behind a part: it all-reduces forward. `Enter` stands before a part: it
        all-reduces backward. The block runs on `2` sequences of `128` tokens of `64` numbers:
    """)
    with Wire() as forth:
        made = mine(z)
    with Wire() as back:
        made.square().sum().backward()
    assert difference(made, y) < ROUNDING, \
        "The result is that of the whole block."
    assert difference(gradient_of(z), gradient_of(x)) < ROUNDING, \
        "The gradient of the tokens is that of the whole block."
    grads, kept = slices(gradients(whole), rank, ranks), gradients(mine)
    assert max(difference(kept[n], grads[n]) for n in kept) < ROUNDING, \
        "Each rank has its slice of each weight's gradient."
    formula = 2 * all_reduce_bytes(x.nbytes, ranks)  # @inspect formula as B
    ratios = forth.sent / formula, back.sent / formula  # @inspect ratios
    assert 1 < min(ratios) <= max(ratios) < 1.02, \
        "Forward and backward each send two all-reduces of the tokens, and headers."
    note(r"""
        There are two all-reduces each way, four in all. What is summed are the tokens, so the
        traffic grows with the tokens and not with the weights. Take $B$ sequences of $T$ tokens of
        $d$ numbers, $w$ bytes each. An all-reduce on $G$ ranks sends $2\,(G-1)/G$ times the bytes
        of its tensor. So each rank sends

        [@eq:tensor]: $$
        4 \cdot \frac{2\,(G-1)}{G} \cdot B\,T\,d\,w
        $$

        bytes in each block and step, and no rank can go on before they have arrived.
    """)
    question(r"""
        A block of width `16384` gets `8192` tokens in `bfloat16`, and `8` ranks share it. How many
        bytes does each of them send in a step?
    """, answer=4 * 2 * 7 / 8 * 8192 * 16384 * 2, check=4 * all_reduce_bytes(8192 * 16384 * 2, 8), unit="B", within=0.05,
        wrong={"Half of it is missing: either the way back, or the second half of each all-reduce.": 4 * 7 / 8 * 8192 * 16384 * 2},
        hint="How many bytes are the tokens, and how often are they all-reduced?",
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
        In tensor parallelism, an all-reduce ends each of the two parts of a block. After it, every
        rank has all tokens, and all ranks do the same work on them: the norm, and the sum with what
        came in. Nothing there looks at several tokens at once. So each of four ranks could do it
        for a fourth of the tokens.

        An all-reduce is a reduce-scatter and an all-gather. So take the two apart. Behind a part,
        do the reduce-scatter only: it leaves each rank the sums of its own tokens. Before the next
        part, behind its norm, do the all-gather. That is *sequence parallelism* [@korthikanti2022].

        We compare two blocks on four ranks. `scattering` has the functions `Gather` and `Scatter`
        at the ends of its parts. `summed` is the block of tensor parallelism, whose functions
        `Enter` and `Leave` do a whole all-reduce. The input are `2` sequences of `128` tokens, of
        which a rank has a fourth:
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
        "A rank has the result of its own tokens."
    grad = gradient_of(x).chunk(ranks, dim=1)[rank]
    assert difference(gradient_of(mine), grad) < ROUNDING, \
        "A rank has the gradient of its own tokens."
    ratio = wire.sent / (4 * all_reduce_bytes(x.nbytes, ranks))  # @inspect ratio
    assert 1 < ratio < 1.02, \
        "A rank sends as many bytes as four all-reduces do, and headers."
    note(r"""
        So sequence parallelism sends as much as the four all-reduces of tensor parallelism, because
        the halves of an all-reduce send together what it sends. What is gained is memory. For the
        backward pass, a norm keeps its input, the input divided by its root mean square, and that
        root: $2d + 1$ numbers for a token of width $d$. Now each rank keeps these for its own
        tokens alone:
    """)
    weights = [*summed.parameters(), *scattering.parameters()]
    before = saved_bytes_of(lambda: summed(x), weights)  # @inspect before as B
    after = saved_bytes_of(lambda: scattering(mine), weights)  # @inspect after as B
    two_norms = 2 * (2 * 64 + 1) * x[..., 0].nbytes
    assert before - after == two_norms * (ranks - 1) / ranks, \
        "Of what the two norms kept, a rank now keeps a fourth."
    note(rf"""
        So a rank keeps {after / before:.0%} of the bytes that it kept before. The rest is what
        attention and the feed-forward part compute inside, which tensor parallelism has cut
        already, and the gathered tokens that enter the matrices. Megatron does not keep these, but
        gathers them once more in the backward pass [@korthikanti2022].
    """)
    misbelief("With sequence parallelism the gradients of all weights are finished where they are made.", r"""
        The gradients of the matrices are. But the gains of a norm are whole on every rank, and each
        rank's norm saw its own tokens only. So their gradients have to be added up over the ranks.
    """)
    gain = gradient_of(scattering.attention_norm.weight)
    wanted = gradient_of(whole.attention_norm.weight)
    assert not torch.allclose(gain, wanted), \
        "A rank has a part of the gains' gradient."
    dist.all_reduce(gain)
    assert torch.allclose(gain, wanted), \
        "Added up over the ranks, it is the whole gradient."
    question(r"""
        Suppose that a norm keeps its input and nothing else. With sequence parallelism on `8`
        ranks, how many bytes do the `2` norms of a block keep on each rank, for `8192` tokens of
        width `16384` in `bfloat16`?
    """, answer=2 * 8192 * 16384 * 2 // 8, check=2 * (8192 // 8) * 16384 * 2, unit="B", within=0.05,
        wrong={"That is without it: every rank keeps all tokens.": 2 * 8192 * 16384 * 2},
        why="Each rank keeps `8192 / 8 = 1024` of the tokens, and for each of the two norms `16384` numbers of `2` bytes a token.")


@aside
@requires("linux, ranks=4")
def a_loss_needs_three_numbers_per_token() -> None:
    """A loss over sharded logits sends three numbers per token, not the logits."""
    note(r"""
        The last matrix of a language model gives each token a score, the *logit*, for each entry of
        the vocabulary. If it is cut by columns, each rank has the logits of some entries. Does the
        loss need all logits in one place?

        It does not. For each token, the loss is the logarithm of the sum of the exponentials of all
        logits, less the logit of the right entry. To keep the exponentials small, the largest logit
        is taken off first. So the ranks have to combine three numbers for each token: the largest
        logit (`top`), a sum (`total`), and the right logit (`right`). Four ranks do that for `1024`
        tokens and `1024` entries, so each rank has a fourth of the columns of logits:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    logits: Float[Tensor, "t n"] = torch.randn(1024, 1024).double()
    targets: Int[Tensor, " t"] = torch.randint(1024, (1024,))
    mine: Float[Tensor, "t part"] = logits.chunk(ranks, dim=1)[rank].clone()
    first = rank * mine.shape[1]  # the entry of this rank's first column
    here = (targets >= first) & (targets < first + mine.shape[1])
    with Wire() as wire:
        top = mine.amax(dim=1)
        dist.all_reduce(top, dist.ReduceOp.MAX)
        total = (mine - top[:, None]).exp().sum(dim=1)
        dist.all_reduce(total)
        place = (targets - first).clamp(0, mine.shape[1] - 1)
        right = mine.gather(1, place[:, None])[:, 0] * here
        dist.all_reduce(right)
    loss = (total.log() + top - right).mean()  # @inspect loss
    assert difference(loss, F.cross_entropy(logits, targets)) < ROUNDING, \
        "The loss is that of one process."
    formula = 3 * all_reduce_bytes(1024 * 8, ranks)  # @inspect formula as B
    assert wire.sent - formula == 3 * 36 * HEADER, \
        "Three numbers for each token are all-reduced, with 36 headers each."
    note(r"""
        Backward, nothing is sent at all. The gradient of a logit is its share of the softmax, less
        one at the right entry, and each rank has all that it takes for its own columns. How much
        would it cost to gather the logits instead?
    """)
    grad = (mine - top[:, None]).exp() / total[:, None]
    grad[here, place[here]] -= 1
    logits.requires_grad_()
    F.cross_entropy(logits, targets, reduction="sum").backward()
    wanted = gradient_of(logits).chunk(ranks, dim=1)[rank]
    assert difference(grad, wanted) < ROUNDING, \
        "Each rank has its part of the gradient."
    parts = [torch.empty_like(mine) for _ in range(ranks)]
    with Wire() as gathering:
        dist.all_gather(parts, mine)
    more = gathering.sent / wire.sent  # @inspect more as times
    assert round(more) == 150, \
        "Gathering the logits takes 150 times the bytes."
    question(r"""
        The vocabulary of `Llama-3` has `128256` entries. In a ring of $G$ ranks, an all-gather
        sends $(G-1)/G$ of a tensor, an all-reduce twice as much. For each token, how many times as
        many bytes does an all-gather of its `128256` logits send as three all-reduces of one number
        each?
    """, answer=128256 / (3 * 2), check=128256 * 7 / 8 / (3 * all_reduce_bytes(1, 8)), unit="times", within=0.05,
        why=r"""
            An all-gather sends the share $(G-1)/G$ of `128256` numbers. The three all-reduces send
            twice that share of `3` numbers. So the ratio is `128256 / (3 * 2)`, on any number of
            ranks.
        """)
