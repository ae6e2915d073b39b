"""Tensor parallelism: each rank keeps a slice of every matrix, and what the slices give is added up."""
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from counters import saved_bytes_of
from jaxtyping import Float, Int
from torch import Tensor, nn
from wire import Wire, from_all_ranks

from litbook import aside, figure, misbelief, note, question, requires

from .collectives import difference
from .drawings import plot_owners


def tensor_parallelism() -> None:
    """Tensor parallelism."""
    note(r"""
        Sharded state divides what a rank *keeps*. Each rank still runs every matmul in full, on its
        own rows. *Tensor parallelism* divides the matmuls themselves: all ranks work on the same
        tokens, and each computes with its own slice of every matrix. This causes traffic within
        each block, so it is used among GPUs with fast links.
    """)
    a_matmul_can_be_cut_in_two_ways()
    columns_then_rows_need_one_sum()
    heads_are_columns()
    a_block_needs_four_all_reduces()
    a_sum_can_be_left_scattered()
    a_loss_needs_three_numbers_per_token()


class FeedForward(nn.Module):
    """A feed-forward part: `down(silu(gate(x)) * up(x))`, with `hidden` columns inside."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        gated: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return gated


ROUNDING = 1e-12  # tolerance for another summation order in float64, relative to the largest value


@requires("ranks=4")
def a_matmul_can_be_cut_in_two_ways() -> None:
    """Cut by columns, a matrix gives each rank some of the results; cut by rows, a part of every result."""
    note(r"""
        A matrix may be too large for one GPU. How can four ranks share a matmul $xW$, each with a
        slice of $W$?

        Take a token `x = [1, 2, 3, 4]`, and let the first column of $W$ be `[0, 4, 3, 2]`. The
        first element of the result is `1 * 0 + 2 * 4 + 3 * 3 + 4 * 2 = 25`.

        - Cut $W$ by *columns*. Rank 0 keeps the first column. It computes the `25` alone, and needs
          all of `x` for that. Each rank computes one element of the result.
        - Cut $W$ by *rows*. Rank 0 keeps the first row and needs only the first element of `x`. It
          computes `1 * 0`, rank 1 computes `2 * 4`, and so on. Each rank has one of the four terms
          of the `25`, and also one term of every other element. An
          [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) adds up the terms of all ranks.

        `chunk` cuts a matrix into groups of rows, and with `dim=1` into groups of columns:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x: Float[Tensor, "1 4"] = torch.tensor([[1.0, 2, 3, 4]])
    w: Float[Tensor, "4 4"] = torch.tensor(
        [[0.0, 1, 2, 3], [4, 0, 1, 2], [3, 3, 0, 1], [2, 4, 4, 0]]
    )
    element: Float[Tensor, "1 1"] = x @ w.chunk(ranks, dim=1)[rank]  # @inspect element
    elements = from_all_ranks(element.item())
    assert elements == (x @ w)[0].tolist() == [25, 26, 20, 10], \
        "Cut by columns, each rank computes one element of the result."
    assert len({*elements}) == 4, "The four elements differ."  # @hide
    terms: Float[Tensor, "1 4"] = x[:, rank : rank + 1] @ w.chunk(ranks)[rank]  # @inspect terms
    firsts = from_all_ranks(terms[0, 0].item())  # @inspect firsts
    assert firsts == [1 * 0, 2 * 4, 3 * 3, 4 * 2], \
        "Cut by rows, each rank has one of the four terms of the first element."
    total = terms.clone()
    dist.all_reduce(total)
    assert torch.equal(total, x @ w), \
        "The all-reduce gives every rank the whole result."
    note(r"""
        So a cut by columns needs all of the input, but no sum. A cut by rows needs only a part of
        the input, but then the results have to be added up. PyTorch calls the two ways
        `ColwiseParallel` and `RowwiseParallel`.
    """)
    question(r"""
        A matrix has `4096` rows (inputs) and `1024` columns (outputs), and is cut by *rows* among
        `8` ranks. How many values does a rank have after its own matmul for one token, before the
        all-reduce?
    """, answer=1024, check=(torch.empty(1, 4096 // 8) @ torch.empty(4096 // 8, 1024)).numel(), unit="values",
        wrong={"That is with a cut by columns: then a rank has only some of the results.": 128,
               "That is how much of the input it needs.": 512},
        hint="Does a rank have some of the results, or a part of each?",
        why=r"""
            With a cut by rows, a rank has a part of every result: all `1024` values, and each of
            them is one term of a sum of eight.
        """)


@requires("ranks=4")
def columns_then_rows_need_one_sum() -> None:
    """Cut the first matrices by columns and the last by rows, and one all-reduce is enough."""
    note(r"""
        The feed-forward part of a Transformer block has three matrices. `gate` and `up` map a token
        to a longer vector, and `down` maps it back:

        $$\big(\mathrm{SiLU}(x\,G) \odot x\,U\big)\, D$$

        How often do four ranks that share these matrices have to communicate?

        If a matrix is [cut by columns](#a_matmul_can_be_cut_in_two_ways), a rank computes some
        columns of the result, each of them complete. If it is cut by rows, a rank needs only some
        columns of the input, but has only a part of each sum. An all-reduce adds up the parts. So
        cut `gate` and `up` by columns and `down` by rows, because then each rank has computed
        exactly the columns that it needs next.

        By hand, with two ranks: let there be two columns between the matrices. For some token, rank
        0 computes $3$ in the first column, and rank 1 computes $4$ in the second. The result has
        one element, and `down` is the column `[2, 5]`. Rank 0 keeps the $2$ and computes
        `3 * 2 = 6`. Rank 1 keeps the $5$ and computes `4 * 5 = 20`. The element is `6 + 20 = 26`.

        SiLU and the multiplication $\odot$ need no exchange, because they work on each column by
        itself. So there is one all-reduce, at the very end. `draw` makes the matrices, and `own`
        selects the columns of this rank. `whole` is what one process computes with all columns:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    gate, up, down = draw((8, 16), (8, 16), (16, 8))
    x: Float[Tensor, "token 8"] = torch.randn(3, 8).double()
    own = slice(4 * rank, 4 * rank + 4)  # of 16 columns
    inside = F.silu(x @ gate[:, own]) * (x @ up[:, own])
    terms = inside @ down[own]  # this rank's rows
    total = terms.clone()
    dist.all_reduce(total)
    whole = (F.silu(x @ gate) * (x @ up)) @ down
    assert not torch.allclose(terms, whole), \
        "Before the all-reduce, a rank has only some terms of each sum."
    assert torch.allclose(total, whole), \
        "After the all-reduce, every rank has the result of one process with all columns, up to rounding."
    kept = 2 * gate[:, own].numel() + down[own].numel()  # @inspect kept
    assert kept * ranks == gate.numel() + up.numel() + down.numel(), \
        "Each rank keeps a fourth of the weights."
    bands = torch.tensor([r for r in range(ranks) for _ in range(4)])  # @hide
    figure(plot_owners({"gate": bands.expand(8, 16), "up": bands.expand(8, 16), "down": bands.expand(8, 16).T}),
        caption=r"""
            Which rank keeps which weight of the feed-forward part. Rows are inputs, columns are
            outputs.
        """,
        alt=r"""
            Three matrices as blocks in four colors, one for each rank. In gate and up a rank has
            some columns, in down the rows with the same numbers.
        """)
    misbelief("It does not matter which matrix is cut by columns and which by rows.", r"""
        It does. If `gate` is cut by rows, each rank has only a part of each sum before SiLU. But
        the sum of SiLU of the parts is not SiLU of the sum. So a second all-reduce is needed before
        SiLU.
    """)
    rows = slice(2 * rank, 2 * rank + 2)  # of 8 inputs  # @hide
    curved = F.silu(x[:, rows] @ gate[rows])  # @hide
    dist.all_reduce(curved)  # @hide
    assert not torch.allclose(curved, F.silu(x @ gate)), \
        "The sum of SiLU of the four parts is not SiLU of the sum."  # @hide
    squares = summed((x @ up[:, own]).square().sum(dim=1, keepdim=True))  # @hide
    normed = summed(F.silu(x @ up[:, own] / (squares / 16).sqrt()) @ down[own])  # @hide
    assert torch.allclose(normed, F.silu(norm(x @ up)) @ down), \
        "A norm before SiLU needs one more all-reduce, of a sum of squares for each token."  # @hide
    question(r"""
        Another feed-forward part computes `down(SiLU(norm(up(x))))`. Its norm divides all columns
        of a token by their root mean square. `up` is cut by columns and `down` by rows, and weights
        are never sent. How many all-reduces does one forward pass need?
    """, answer=2, check=len((squares, normed)), unit="all-reduces",
        wrong={"The norm needs the squares of all columns, and a rank has only some.": 1},
        hint="Can a rank compute the norm, and then SiLU, from its own columns?",
        why=r"""
            The mean square is taken over all columns, so the ranks first add up their sums of
            squares: one number for each token. This cannot wait until the end, because SiLU of a
            column needs the norm. The second all-reduce is the one at the end.
        """)


def draw(*shapes: tuple[int, int]) -> list[Tensor]:
    """Random matrices of these shapes in float64, the same on all ranks; results are about as large as inputs."""
    return [
        torch.randn(shape).double() / math.sqrt(shape[0]) for shape in shapes
    ]


@requires("linux, ranks=4")
def heads_are_columns() -> None:
    """Attention heads are independent, so ranks can share them and add up the results."""
    note(r"""
        Can several GPUs share one attention layer? Attention consists of *heads*, which work in
        parallel on the same tokens. No head needs the result of another. So each rank can compute
        some of the heads alone.

        Only the last matrix, the *output projection*, combines the heads. By hand, take two ranks
        with one head each. For some token, the head on rank 0 computes `[1, 2]`, and the head on
        rank 1 computes `[3, 4]`. One element of the output is a sum of these four values with the
        weights `1, 0, 2, 1`.

        - Rank 0 keeps the two weights for its own head, and computes `1 * 1 + 2 * 0 = 1`.
        - Rank 1 keeps the other two, and computes `3 * 2 + 4 * 1 = 10`.
        - The element is `1 + 10 = 11`, and neither rank knows it.

        The ranks only have to add up what they have, because each element is a sum over all heads,
        and a sum can be computed in parts. An
        [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) does that.

        Now take PyTorch's own `layer` of dimension `64` with four heads, on four ranks. Each head
        has `64 / 4 = 16` columns of `query`, `key` and `value`, and `16` rows of the `projection`.
        So the number of heads has to be a multiple of the number of ranks. (PyTorch keeps the first
        three matrices in one, `in_proj_weight`, with outputs as rows. We transpose it and cut it
        into three.)
    """)
    rank = dist.get_rank()
    layer = nn.MultiheadAttention(64, 4, bias=False).double()
    layer.requires_grad_(False)  # @hide
    query, key, value = layer.in_proj_weight.T.chunk(3, dim=1)
    projection = layer.out_proj.weight.T
    x: Float[Tensor, "token 64"] = torch.randn(10, 64).double()
    own = slice(16 * rank, 16 * rank + 16)  # this rank's head
    q, k, v = x @ query[:, own], x @ key[:, own], x @ value[:, own]
    head = F.scaled_dot_product_attention(q, k, v)
    terms = head @ projection[own]  # this rank's rows
    total = terms.clone()
    dist.all_reduce(total)
    whole = layer(x, x, x)[0]  # all heads
    assert not torch.allclose(terms, whole), \
        "Before the all-reduce, a rank has only the terms of its own head."
    assert torch.allclose(total, whole), \
        "After the all-reduce, every rank has the whole layer's output, up to rounding."
    starts = from_all_ranks(own.start)  # @hide
    assert starts == [0, 16, 32, 48], "Each of the 64 columns belongs to exactly one rank."  # @hide
    bands = (torch.tensor(starts) // 16).expand(4, 4)  # @hide
    figure(plot_owners({"query": bands, "key": bands, "value": bands, "projection": bands.T}),
        caption=r"""
            Which rank keeps which part of the four matrices. Rows are inputs, columns are outputs;
            a square is `16` by `16` weights.
        """,
        alt=r"""
            Four squares. In query, key and value each rank has one band of columns, in the output
            projection one band of rows.
        """)
    parts = [10.0, -4.0, 1.0, 3.0]  # @hide
    question(r"""
        Four ranks have one head each. For one element of the output, they compute `10`, `-4`, `1`
        and `3`, in the order of ranks. Somebody removes the all-reduce. With what value does rank 2
        continue, and what would be correct? Give two numbers.
    """, answer=[parts[2], sum(parts)], check=[1.0, 10.0],
        hint="What does rank 2 know without the all-reduce?",
        why=r"""
            Without the all-reduce each rank knows only the contribution of its own head, `1` on
            rank 2. The layer's output is the sum over all heads. So the ranks would continue with
            four different wrong values, and no error message would say so.
        """)


def summed(x: Tensor) -> Tensor:
    """The sum of all ranks' tensors."""
    total = x.clone()
    dist.all_reduce(total)
    return total


class SumForward(torch.autograd.Function):  # @show
    """The autograd function behind `sum_forward`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return summed(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class SumBackward(torch.autograd.Function):  # @show
    """The autograd function behind `sum_backward`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return summed(grad)


def sum_forward(x: Tensor) -> Tensor:
    """All-reduces `x` in the forward pass; passes the gradient on unchanged in the backward pass."""
    y: Tensor = SumForward.apply(x)
    return y


def sum_backward(x: Tensor) -> Tensor:
    """Passes `x` on unchanged in the forward pass; all-reduces its gradient in the backward pass."""
    y: Tensor = SumBackward.apply(x)
    return y


def attend(x: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """Causal attention in heads of dimension 16: query, key, value, and the output projection."""
    q, k, v = (
        (x @ matrix).unflatten(-1, (-1, 16)).transpose(1, 2)
        for matrix in matrices[:3]
    )
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return heads.transpose(1, 2).flatten(2) @ matrices[3]


def feed(x: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """A feed-forward part: gate, up and down."""
    return (F.silu(x @ matrices[0]) * (x @ matrices[1])) @ matrices[2]


def slices_of(matrices: Sequence[Tensor]) -> list[Tensor]:
    """This rank's columns of each matrix, and its rows of the last."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    columns = [matrix.chunk(ranks, dim=1)[rank] for matrix in matrices[:-1]]
    return [*columns, matrices[-1].chunk(ranks)[rank]]


def norm(x: Tensor) -> Tensor:
    """Root mean square norm over the last axis."""
    return F.rms_norm(x, x.shape[-1:])


Matrices = tuple[list[Tensor], list[Tensor]]  # of attention, and of the feed-forward part


def block_matrices() -> Matrices:
    """The matrices of a block of dimension 64, the same on all ranks."""
    attention = draw((64, 64), (64, 64), (64, 64), (64, 64))
    return attention, draw((64, 160), (64, 160), (160, 64))


def own_slices(matrices: Matrices) -> Matrices:
    """This rank's slices of the matrices of a block."""
    attention, feed_forward = matrices
    return slices_of(attention), slices_of(feed_forward)


def run_block(
    x: Tensor, matrices: Matrices,
    before: Callable[[Tensor], Tensor], after: Callable[[Tensor], Tensor],
) -> Tensor:
    """A Transformer block; ranks exchange `before` and `after` each of its two parts."""
    x = x + after(attend(before(norm(x)), matrices[0]))
    return x + after(feed(before(norm(x)), matrices[1]))


def gradient_of_tokens(y: Tensor, x: Tensor) -> Tensor:
    """The gradient of the tokens `x`, if the loss is the sum of the squares of `y`."""
    gradient: Tensor = torch.autograd.grad(y.square().sum(), x)[0]
    return gradient


def all_reduce_bytes(size: float, ranks: int) -> float:
    """Bytes that each rank sends in a ring all-reduce of a tensor of `size` bytes, on a given number of ranks."""
    return 2 * (ranks - 1) / ranks * size


@requires("linux, ranks=4")
def a_block_needs_four_all_reduces() -> None:
    """In a training step, tensor parallelism needs four all-reduces per block."""
    note(r"""
        In *tensor parallelism* all ranks work on the same tokens, but each keeps only a slice of
        every matrix. When do the ranks have to communicate?

        In the forward pass, [attention](#heads_are_columns) leaves each rank with a part of a sum,
        and an all-reduce adds up the parts. The feed-forward part of the block ends in the same
        way. That makes two all-reduces.

        For the backward pass, take one value by hand. Two ranks have the same input $x$. Rank 0
        computes $3x$, rank 1 computes $5x$, and the output is $3x + 5x$. So the gradient of $x$ is
        $8$. But rank 0 finds $3$, and rank 1 finds $5$.

        The two gradients have to be added up, because each rank used $x$ for a different term of
        the sum, and has only the gradient of its own term. A block has two such inputs: that of
        attention and that of the feed-forward part. That makes two more all-reduces, four in all
        [@shoeybi2019]. (The residual connection needs none, because every rank computes all of it.)

        Two helpers do this. `sum_forward` all-reduces in the forward pass, and passes the gradient
        on unchanged. `sum_backward` passes the tokens on unchanged, and all-reduces their gradient
        in the backward pass. `attention` and `feed_forward` compute with this rank's slices, and
        `norm` normalizes. `gradient_of_tokens` runs the backward pass. `one_all_reduce` is the
        number of bytes that a single all-reduce of the tokens `x` sends:
    """)
    matrices = block_matrices()
    slices = own_slices(matrices)
    attention = partial(attend, matrices=slices[0])
    feed_forward = partial(feed, matrices=slices[1])

    def split_block(x: Tensor) -> Tensor:
        terms = attention(sum_backward(norm(x)))
        x = x + sum_forward(terms)  # x + is the residual connection
        terms = feed_forward(sum_backward(norm(x)))
        return x + sum_forward(terms)

    x = torch.randn(2, 128, 64).double().requires_grad_()
    with Wire() as single:
        dist.all_reduce(torch.ones_like(x))
    one_all_reduce = single.sent  # @inspect one_all_reduce as B
    with Wire() as forward:
        y = split_block(x)
    with Wire() as backward:
        gradient = gradient_of_tokens(y, x)
    assert forward.sent == backward.sent == 2 * one_all_reduce, \
        "Each direction sends exactly as many bytes as two all-reduces."
    note(r"""
        So the ranks add up tokens, never weights. An all-reduce on $G$ ranks sends
        [$2\,(G-1)/G$ times its tensor](#a_ring_sends_less_than_twice_the_tensor). With $T$ tokens
        of $d$ elements of $w$ bytes, each rank sends, per block and step,

        [@eq:tensor]: $$
        \underbrace{4}_{\text{all-reduces}} \cdot \underbrace{\frac{2\,(G-1)}{G}}_{\text{sent by each}}
        \cdot \underbrace{T\,d\,w}_{\text{bytes of the tokens}} .
        $$
    """)
    whole = run_block(x, matrices, torch.clone, torch.clone)  # @hide
    assert torch.allclose(y, whole), \
        "The output equals that of the whole block on one rank, up to rounding."  # @hide
    assert torch.allclose(gradient, gradient_of_tokens(whole, x)), \
        "The gradient of the tokens also equals that of the whole block."  # @hide
    wide = slices_of(draw((64, 320), (64, 320), (320, 64)))  # @hide
    with Wire() as widened:  # @hide
        run_block(x, (slices[0], wide), sum_backward, sum_forward)
    question(r"""
        The intermediate (FFN) size of a block is doubled, so the block has far more weights. The
        tokens and the model dimension stay the same. By what factor does the traffic of each rank
        change?
    """, answer=1.0, check=widened.sent / forward.sent, unit="times",
        wrong={"The traffic does not grow with the weights: look at what the ranks add up.": 2},
        hint="Is the intermediate size in the formula?",
        why=r"""
            The ranks add up the outputs of each part, one vector of the model dimension per token.
            The number of intermediate columns that a rank used to compute its part does not matter.
        """)


def all_gather_tokens(x: Float[Tensor, "b t d"]) -> Float[Tensor, "b all d"]:
    """The tokens of all ranks, in order, from this rank's tokens."""
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts, dim=1)


def reduce_scatter_tokens(
    x: Float[Tensor, "b all d"]
) -> Float[Tensor, "b t d"]:
    """Adds up the ranks' `x`, and returns this rank's tokens of the sum; a rank sends all of `x` but its own tokens."""
    parts = torch.stack(x.chunk(dist.get_world_size(), dim=1))
    came = torch.empty_like(parts)
    dist.all_to_all_single(came, parts)
    return came.sum(dim=0)


class Gather(torch.autograd.Function):
    """The autograd function behind `gather`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return all_gather_tokens(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return reduce_scatter_tokens(grad)


class Scatter(torch.autograd.Function):
    """The autograd function behind `scatter`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return reduce_scatter_tokens(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return all_gather_tokens(grad)


def gather(x: Tensor) -> Any:
    """All-gathers tokens in the forward pass; reduce-scatters their gradients in the backward pass."""
    return Gather.apply(x)


def scatter(x: Tensor) -> Any:
    """Reduce-scatters parts of sums in the forward pass; all-gathers gradients in the backward pass."""
    return Scatter.apply(x)


@aside
@requires("linux, ranks=4")
def a_sum_can_be_left_scattered() -> None:
    """Sequence parallelism sends the same number of bytes as tensor parallelism, and keeps less."""
    note(r"""
        In [tensor parallelism](#a_block_needs_four_all_reduces) ranks share the matrices of a
        block, but not the operations between them: after each part, an all-reduce gives every rank
        all tokens. Then all ranks compute the same norms of the same tokens, and keep the same
        values for the backward pass. Can they share this work and memory as well?

        Take a token for each rank. A norm looks at one token at a time, so rank 0 could normalize
        the first, rank 1 the second, and so on. For that, split the all-reduce into its
        [two halves](#an_all_reduce_has_two_halves). After a part, the reduce-scatter leaves each
        rank with the sums of its own tokens. The rank computes the norm of only these tokens.
        Before the next matrices, the all-gather collects the tokens of all ranks. This is *sequence
        parallelism* [@korthikanti2022].

        `gather` and `scatter` do the two halves. `run_block` calls them before and after each part
        of a block, and `x_own` is this rank's fourth of the tokens:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    slices = own_slices(block_matrices())
    tensor_parallel = partial(
        run_block, matrices=slices, before=sum_backward, after=sum_forward
    )
    sequence_parallel = partial(
        run_block, matrices=slices, before=gather, after=scatter
    )
    x: Float[Tensor, "b all d"] = torch.randn(2, 128, 64).double()
    x_own: Float[Tensor, "b t d"] = x.chunk(ranks, dim=1)[rank].clone()  # @inspect x_own
    x.requires_grad_()
    x_own.requires_grad_()
    y = tensor_parallel(x)
    with Wire() as wire:
        y_own = sequence_parallel(x_own)
        gradient_own = gradient_of_tokens(y_own, x_own)
    assert torch.allclose(y_own, y.chunk(ranks, dim=1)[rank]), \
        "A rank has the result for its own tokens, up to rounding."
    gradient = gradient_of_tokens(y, x)  # @hide
    assert torch.allclose(gradient_own, gradient.chunk(ranks, dim=1)[rank]), \
        "A rank has the gradient for its own tokens, up to rounding."  # @hide
    ratio = wire.sent / (4 * all_reduce_bytes(x.nbytes, ranks))  # @inspect ratio
    assert 1 < ratio < 1.02, \
        "A rank sends the bytes of the four all-reduces of tensor parallelism, plus headers."
    note(r"""
        The traffic is the same, because the two halves of an all-reduce together send what it
        sends. The gain is memory: a rank no longer keeps what the norms need for other ranks'
        tokens. For each token, a norm keeps its `64` elements and the one factor that it multiplied
        them by, of `8` bytes each. `saved_bytes_of` counts what autograd keeps on this rank for the
        backward pass, without the weights:
    """)
    weights = [*slices[0], *slices[1]]
    all_tokens = saved_bytes_of(partial(tensor_parallel, x), weights)  # @inspect all_tokens as B
    own_tokens = saved_bytes_of(partial(sequence_parallel, x_own), weights)  # @inspect own_tokens as B
    assert all_tokens - own_tokens == 2 * (64 + 1) * 8 * 2 * 128 * 3 / 4, \
        "Each of two norms kept 64 + 1 values of 8 bytes for each of 2 * 128 tokens; three quarters of these are saved."
    question(r"""
        Ranks share a layer in the same way as the norms here: each rank computes it for its own
        tokens. Which of these layers need no exchange for that? Give `1` or `0` for each: a norm
        over each token's elements; dropout; softmax over the sequence.
    """, answer=[1, 1, 0], check=[int(by_token) for by_token in (True, True, False)],
        hint="Does the result for one token depend on another token?",
        why=r"""
            A norm and dropout treat each token by itself. A softmax over the sequence divides by a
            sum over all tokens, and a rank has only some of them.
        """)


@aside
@requires("linux, ranks=4")
def a_loss_needs_three_numbers_per_token() -> None:
    """A loss over sharded logits all-reduces three numbers per token, not the logits."""
    note(r"""
        For each token, a language model computes a score, the *logit*, for every entry of its
        vocabulary. With [tensor parallelism](#columns_then_rows_need_one_sum) the last matrix is
        cut by columns, so each of four ranks has the logits of a fourth of the entries. The loss
        needs all of them. Do the logits have to be gathered?

        No, because the loss of a token needs only a sum over all logits $z_i$, and the one logit of
        the target, the correct next token:

        $$
        \log \sum_i e^{z_i} - z_{\text{target}}
        $$

        Take two entries with $e^{z} = 1$ and $2$ on rank 0, and two with $3$ and $4$ on rank 1.
        Rank 0 knows $1 + 2 = 3$, rank 1 knows $3 + 4 = 7$, and the sum is $10$. Each rank sends one
        number instead of two, and one instead of thousands if it has thousands of entries.

        So three all-reduces of one number per token are enough: of the `largest` logit, which is
        subtracted first so that the exponentials do not overflow; of the sums; and of the target's
        logit, which is set to zero on all ranks but one. `own` holds a rank's logits, `24` for each
        token, and `is_own` says for which tokens the target is among them. `gather` needs a valid
        column for every token. So where the target is on another rank, we read an arbitrary column
        and multiply it by zero:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    logits: Float[Tensor, "t 96"] = torch.randn(16384, 96).double()
    targets: Int[Tensor, " t"] = torch.randint(96, (16384,))
    own: Float[Tensor, "t 24"] = logits.chunk(ranks, dim=1)[rank].clone()
    column = targets - 24 * rank  # in this rank's logits, if it is there
    is_own = (column >= 0) & (column < 24)
    valid = column.clamp(0, 23)[:, None]  # any column, where it is not
    with Wire() as wire:
        largest = own.amax(dim=1)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        sums = (own - largest[:, None]).exp().sum(dim=1)
        dist.all_reduce(sums)
        target_logits = own.gather(1, valid)[:, 0] * is_own
        dist.all_reduce(target_logits)
    loss = (sums.log() + largest - target_logits).mean()  # @inspect loss
    assert difference(loss, F.cross_entropy(logits, targets)) < ROUNDING, \
        "The loss equals that of one process with all logits, up to rounding."
    parts = [torch.empty_like(own) for _ in range(ranks)]
    with Wire() as gathering:
        dist.all_gather(parts, own)
    ratio = gathering.sent / wire.sent  # @inspect ratio as times
    assert math.isclose(ratio, 96 / (3 * 2), rel_tol=0.01), \
        "To gather all 96 logits on every rank, a rank sends 96 / (3 * 2) times as many bytes, within 1 % for headers."
    note(r"""
        Why this ratio? For each token, an all-gather sends three quarters of `96` values, and an
        all-reduce sends twice three quarters of one value.
    """)
    question(r"""
        The vocabulary of `Llama-3` has `128256` entries. How many times as many bytes does an
        all-gather of all logits send as three all-reduces of one number per token?
    """, answer=128256 / (3 * 2), check=128256 * 7 / 8 / (3 * all_reduce_bytes(1, 8)), unit="times", within=0.05,
        wrong={"An all-reduce sends twice what an all-gather of the same tensor sends.": 128256 / 3},
        why=r"""
            An all-gather sends a fraction $(G-1)/G$ of `128256` values. The three all-reduces send
            twice this fraction of `3` values. So the ratio is `128256 / (3 * 2)`, on any number of
            ranks.
        """)
