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
from torch.utils.checkpoint import checkpoint
from wire import Wire, from_all_ranks

from litbook import aside, figure, misbelief, note, question, requires

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
    """If a matrix is cut by columns, each rank gets some results; if by rows, it gets a part of every result."""
    note(r"""
        A matrix $W$ may be too large for one GPU. How can ranks share a matmul $xW$, each with a
        slice of $W$?

        By hand, take two ranks, the token `x = [1, 2]`, and a matrix with the rows `[3, 4]` and
        `[5, 6]`. The result has two elements:

        - first column: `1 * 3 + 2 * 5 = 13`,
        - second column: `1 * 4 + 2 * 6 = 16`.

        Cut the matrix *by columns*. Rank 0 has the first column and computes the $13$, and rank 1
        computes the $16$. Each rank needs all of `x`.

        Cut the matrix *by rows*. Rank 0 has the row `[3, 4]` and needs only the `1` of `x`. It
        computes `1 * 3` and `1 * 4`. Rank 1 computes `2 * 5` and `2 * 6`. No rank has a result yet,
        because the two terms of each sum are on different ranks. An
        [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) adds up the terms.

        Now four ranks share a matrix of four rows and four columns, first by columns:
    """)
    rank = dist.get_rank()
    x = torch.tensor([1, 2, 3, 4])
    w: Int[Tensor, "row column"] = torch.tensor(
        [[0, 1, 2, 3], [4, 0, 1, 2], [3, 3, 0, 1], [2, 4, 4, 0]]
    )  # @inspect w
    result = x @ w  # on one rank, with all of w  # @inspect result
    element = x @ w[:, rank]  # this rank's column  # @inspect element
    assert from_all_ranks(element.item()) == result.tolist(), \
        "Cut by columns, each rank has one element of the result."
    assert result.tolist() == [25, 26, 20, 10], \
        "The four elements differ."  # @hide
    note("Then the four ranks share the matrix by rows:")
    terms = x[rank] * w[rank]  # this rank's row  # @inspect terms
    assert (terms != result).all(), \
        "Cut by rows, a rank has none of the results, but one term of each."
    dist.all_reduce(terms)
    assert torch.equal(terms, result), \
        "After the all-reduce, every rank has the whole result."
    note(r"""
        So a cut by columns needs all of the input, and nothing has to be added up. If every rank
        needs the whole result, an all-gather has to collect it. A cut by rows needs only a part of
        the input, and costs an all-reduce. PyTorch calls the two ways `ColwiseParallel` and
        `RowwiseParallel`.
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
    """Cut the first matrices by columns and the last by rows, and the forward pass needs only one all-reduce."""
    note(r"""
        The feed-forward part of a Transformer block has three matrices. `gate` and `up` each map a
        token `x` to a longer vector. `down` maps the product of the two vectors back:

        $$\text{hidden} = \mathrm{SiLU}(x \cdot \text{gate}) \odot (x \cdot \text{up}), \qquad
        \text{result} = \text{hidden} \cdot \text{down}$$

        SiLU and $\odot$ work on each element by itself. How often do ranks that share the three
        matrices have to communicate?

        Cut `gate` and `up` [by columns](#a_matmul_can_be_cut_in_two_ways). Then each rank computes
        some elements of `hidden`. Cut `down` by rows. Take two ranks, `hidden = [3, 4]`, and a
        `down` with a single column, `[2, 5]`:

        - Rank 0 has computed the $3$ and keeps the $2$. It computes `3 * 2 = 6`.
        - Rank 1 has computed the $4$ and keeps the $5$. It computes `4 * 5 = 20`.
        - An all-reduce adds up the two terms: `6 + 20 = 26`.

        So one all-reduce is enough in the forward pass, because the rows of `down` on a rank need
        exactly those elements of `hidden` that this rank has computed.

        Now `hidden` has $16$ elements, and four ranks share the matrices. Each uses four columns of
        `gate` and `up` and the same four rows of `down`: `own` is their slice. The claims compare
        `result` with that of one process that has all of the matrices:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @hide
    gate, up, down = draw((8, 16), (8, 16), (16, 8))  # random matrices
    x = torch.randn(3, 8).double()  # 3 tokens of 8 elements
    own = slice(4 * rank, 4 * rank + 4)  # 4 of 16, from 4 * rank on
    hidden = F.silu(x @ gate[:, own]) * (x @ up[:, own])
    result = hidden @ down[own]  # this rank's part of each sum
    whole = (F.silu(x @ gate) * (x @ up)) @ down  # @hide
    assert not torch.allclose(result, whole), \
        "Before the all-reduce, a rank does not have the result."
    dist.all_reduce(result)
    assert torch.allclose(result, whole), \
        "After the all-reduce, every rank has the result of one process, up to rounding."
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
        It does. If `gate` is cut by rows, each rank has only its own part of each sum when SiLU
        needs the whole sum. So the ranks need another all-reduce before SiLU.
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
        Another feed-forward part computes `down(SiLU(norm(up(x))))`. Its norm divides a token's
        elements by the root of the mean of their squares. `up` is cut by columns and `down` by
        rows, and weights are never sent. How many all-reduces does one forward pass need?
    """, answer=2, check=len((squares, normed)), unit="all-reduces",
        wrong={"The norm needs the squares of all columns, and a rank has only some.": 1},
        hint="Can a rank compute the norm, and then SiLU, from its own columns?",
        why=r"""
            The mean is taken over all columns, so the ranks first add up their sums of squares: one
            number for each token. This cannot wait until the end, because SiLU of a column needs
            the norm. The second all-reduce is the one at the end.
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
        rank 1 computes `[3, 4]`. The first element of the output is `[1, 2, 3, 4]` times the first
        column of the output projection, `[1, 0, 2, 1]`.

        - Rank 0 keeps the rows of the projection for its own head. It computes `1 * 1 + 2 * 0 = 1`.
        - Rank 1 keeps the other rows. It computes `3 * 2 + 4 * 1 = 10`.
        - The element is `1 + 10 = 11`, and neither rank knows it.

        An [all-reduce](#an_all_reduce_leaves_the_sum_everywhere) is all that is missing, because
        each element of the output is a sum over all heads, and a sum can be computed in parts.

        Four ranks check it with PyTorch's own `layer` of four heads. Its matrices `query`, `key`,
        `value` and `projection` have $64$ rows and $64$ columns. A head uses $16$ columns of the
        first three matrices, and $16$ rows of the projection:
    """)
    layer = nn.MultiheadAttention(64, 4, bias=False).double()  # @hide
    layer.requires_grad_(False)  # @hide
    query, key, value = layer.in_proj_weight.T.chunk(3, dim=1)  # @hide
    projection = layer.out_proj.weight.T  # @hide
    rank = dist.get_rank()
    # The same seed on every rank, so the same x:
    x: Float[Tensor, "token 64"] = torch.randn(10, 64).double()
    own = slice(16 * rank, 16 * rank + 16)  # this rank's head
    q, k, v = x @ query[:, own], x @ key[:, own], x @ value[:, own]
    head = F.scaled_dot_product_attention(q, k, v)
    terms = head @ projection[own]
    total = terms.clone()
    dist.all_reduce(total)
    whole = layer(x, x, x)[0]  # PyTorch's own result, all heads
    assert not torch.allclose(terms, whole), \
        "Before the all-reduce, a rank does not have the layer's output."
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
    note(r"""
        A head stays whole on its rank. So if ranks share the heads evenly, the number of heads has
        to be a multiple of the number of ranks.
    """)
    parts = [10.0, -4.0, 1.0, 5.0]  # @hide
    question(r"""
        Four ranks have one head each. For one element of the output, they compute `10`, `-4`, `1`
        and `5`, in the order of ranks. Somebody removes the all-reduce. With what value does rank 2
        continue, and what would be correct? Give two numbers.
    """, answer=[parts[2], sum(parts)], check=[1.0, 12.0],
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


class SumForward(torch.autograd.Function):
    """The autograd function behind `sum_forward`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return summed(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class SumBackward(torch.autograd.Function):
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
    """In a training step without recomputation, tensor parallelism needs four all-reduces per block."""
    note(r"""
        In *tensor parallelism* all ranks work on the same tokens, but each rank keeps only a slice
        of every matrix. How often do the ranks that share a Transformer have to communicate?

        They need four all-reduces in each block: two in the forward pass, because each rank
        computes only some terms of a sum, and two in the backward pass, because each rank's
        gradient is again only a term of a sum.

        By hand, take two ranks that share one matmul. Its input is a single value $x$, and both
        ranks have it. Rank 0 computes the term $3x$, rank 1 computes the term $5x$, and the output
        is their sum.

        - *Forward*, with $x = 2$: rank 0 has $6$ and rank 1 has $10$. Neither knows the output. An
          all-reduce adds up: $6 + 10 = 16$.
        - *Backward*: rank 0 finds the gradient $3$ for $x$, and rank 1 finds $5$. The output is
          $3x + 5x$, so the gradient is $8$. An all-reduce adds up: $3 + 5 = 8$.

        A block has two parts, [attention](#heads_are_columns) and the
        [feed-forward part](#columns_then_rows_need_one_sum). In each of them, as by hand, all ranks
        have the same input, and each rank computes terms of the output. So each part needs one
        all-reduce forward and one backward, and the block needs four [@shoeybi2019].

        In the code, `attention` and `feed_forward` are the parts with this rank's slices. Two
        functions do the all-reduces:

        - `sum_forward` adds up the ranks' terms in the forward pass. In the backward pass it does
          nothing: all ranks have the same output, so each already has the whole gradient of it.
        - `sum_backward` does nothing in the forward pass, because all ranks have the same input. In
          the backward pass it adds up the ranks' terms of the gradient.

        `Wire` counts the bytes that this rank sends, and `one_all_reduce` those of a single
        all-reduce of a tensor like `x`:
    """)
    matrices = block_matrices()  # @hide
    slices = own_slices(matrices)  # @hide
    attention = partial(attend, matrices=slices[0])  # @hide
    feed_forward = partial(feed, matrices=slices[1])  # @hide

    def block(x: Tensor) -> Tensor:
        for part in (attention, feed_forward):
            terms = part(sum_backward(norm(x)))
            x = x + sum_forward(terms)
        return x

    x = torch.randn(2, 128, 64).double().requires_grad_()  # @hide
    with Wire() as one_all_reduce:  # @hide
        dist.all_reduce(torch.ones_like(x))
    with Wire() as forward:
        y = block(x)
    with Wire() as backward:
        y.square().sum().backward()
    assert forward.sent == backward.sent == 2 * one_all_reduce.sent, \
        "The forward pass sends exactly the bytes of two all-reduces, and so does the backward pass."
    pass_bytes = 2 * (2 * 3 / 4) * (256 * 64 * 8)  # @hide
    note(r"""
        So the ranks exchange activations and gradients of activations, but no weights and no
        gradients of weights. On $G$ ranks, each rank sends
        [$2\,(G-1)/G$ times the tensor](#a_ring_sends_less_than_twice_the_tensor) in an all-reduce.
        The tensor has $d$ elements of $w$ bytes for each of $T$ tokens. So in a training step each
        rank sends for one block

        [@eq:tensor]: $$
        \underbrace{4}_{\text{all-reduces}} \cdot \underbrace{\frac{2\,(G-1)}{G}}_{\text{sent by each}}
        \cdot \underbrace{T\,d\,w}_{\text{bytes of the tensor}} \quad\text{bytes.}
        $$
    """)
    note(rf"""
        Here $G = 4$, $T = 256$, $d = 64$ and $w = 8$. So the two all-reduces of the forward pass
        send `2 * 6/4 * 256 * 64 * 8` = {pass_bytes:,.0f} bytes. The counted bytes are
        {forward.sent / pass_bytes - 1:.1%} more, because each message also has a header.

        With [checkpointing](#lecture_03.checkpointing_lets_a_large_model_fit), the backward pass
        first runs the block forward again, but only up to the last activation that it needs. The
        second all-reduce comes after that, so it is not repeated. The step has five all-reduces
        instead of four:
    """)
    with Wire() as checkpointed:  # @hide
        gradient_of_tokens(checkpoint(block, x, use_reentrant=False), x)
    sent_before = forward.sent + backward.sent  # @hide
    assert math.isclose(sent_before, 2 * pass_bytes, rel_tol=0.01), \
        "A rank sends the bytes of the formula, plus headers of less than 1 %."  # @hide
    assert math.isclose(checkpointed.sent / sent_before, 5 / 4, rel_tol=0.02), \
        "With checkpointing, a rank sends five quarters of these bytes."
    whole = run_block(x, matrices, torch.clone, torch.clone)  # @hide
    assert torch.allclose(y, whole), \
        "The output equals that of the whole block on one rank, up to rounding."  # @hide
    [gradient] = [p.grad for p in (x,) if p.grad is not None]  # @hide
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
    """The autograd function behind `all_gather`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return all_gather_tokens(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return reduce_scatter_tokens(grad)


class Scatter(torch.autograd.Function):
    """The autograd function behind `reduce_scatter`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return reduce_scatter_tokens(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return all_gather_tokens(grad)


def all_gather(x: Tensor) -> Tensor:
    """All-gathers tokens in the forward pass; reduce-scatters their gradients in the backward pass."""
    y: Tensor = Gather.apply(x)
    return y


def reduce_scatter(x: Tensor) -> Tensor:
    """Reduce-scatters parts of sums in the forward pass; all-gathers gradients in the backward pass."""
    y: Tensor = Scatter.apply(x)
    return y


@aside
@requires("linux, ranks=4")
def a_sum_can_be_left_scattered() -> None:
    """In sequence parallelism, a rank normalizes only its own tokens, and stores fewer activations."""
    note(r"""
        In [tensor parallelism](#a_block_needs_four_all_reduces) every rank has the results for all
        tokens after each all-reduce. So all ranks normalize the same tokens, and store the same
        activations for the backward pass. Can each rank store only some of them?

        Yes, because a norm works on each token by itself, so each rank can normalize only its own
        tokens. An all-reduce has [two halves](#an_all_reduce_has_two_halves): a *reduce-scatter*,
        which leaves each rank with the sums for its own tokens, and an *all-gather*, which gives
        them to all ranks. Put the norm between the halves. This is *sequence parallelism*
        [@korthikanti2022].

        By hand, take two ranks and the tokens A and B, of $2$ elements each. The norm divides a
        token by the root of the mean of its squares, for A by $\sqrt{(3^2 + 3^2) / 2} = 3$:

        | | token A | token B |
        |---|---|---|
        | terms of rank 0 | `[1, 2]` | `[1, 1]` |
        | terms of rank 1 | `[2, 1]` | `[1, -3]` |
        | their sums | `[3, 3]` | `[2, -2]` |
        | normalized | `[1, 1]` | `[1, -1]` |

        - *Tensor parallelism*: an all-reduce gives both sums to both ranks. Each rank normalizes
          and stores both tokens.
        - *Sequence parallelism*: a reduce-scatter gives the sum of A to rank 0, and that of B to
          rank 1. Each rank normalizes and stores one token. An all-gather then gives both
          normalized tokens to both ranks.

        The traffic stays the same, because the halves together send what the all-reduce sends.

        A block has two parts, `attention` and `feed_forward`, here with this rank's slices of the
        matrices. `x_own` are this rank's tokens. For each part, the rank normalizes them, gathers
        the normalized tokens of all ranks, computes its terms, and reduce-scatters these. The
        result is added to `x_own`, also token by token. So the norm of the second part comes
        between a reduce-scatter and an all-gather:
    """)
    rank, ranks = dist.get_rank(), dist.get_world_size()  # @hide
    slices = own_slices(block_matrices())  # @hide
    attention = partial(attend, matrices=slices[0])  # @hide
    feed_forward = partial(feed, matrices=slices[1])  # @hide
    weights = [*slices[0], *slices[1]]  # @hide
    x = torch.randn(2, 128, 64).double()  # @hide
    x_own = x.chunk(ranks, dim=1)[rank].clone().requires_grad_()  # @hide
    x.requires_grad_()  # @hide

    def block(x_own: Tensor) -> Tensor:
        for part in (attention, feed_forward):
            tokens = all_gather(norm(x_own))
            x_own = x_own + reduce_scatter(part(tokens))
        return x_own

    tensor_block = partial(run_block, matrices=slices, before=sum_backward, after=sum_forward)  # @hide
    with Wire() as all_reduces:  # @hide
        y = tensor_block(x)
        gradient = gradient_of_tokens(y, x)
    with Wire() as halves:  # @hide
        y_own = block(x_own)
        gradient_own = gradient_of_tokens(y_own, x_own)
    assert torch.allclose(y_own, y.chunk(ranks, dim=1)[rank]), \
        "For its own tokens, a rank has the result of tensor parallelism, up to rounding."
    assert torch.allclose(gradient_own, gradient.chunk(ranks, dim=1)[rank]), \
        "A rank has the gradient for its own tokens, up to rounding."  # @hide
    assert math.isclose(halves.sent, all_reduces.sent, rel_tol=0.01), \
        "In the forward and backward pass, the halves send the same number of bytes as the all-reduces, up to headers."
    note(r"""
        How much memory does that save? For its backward pass, a norm stores the `64` elements of
        each token and the number by which it divides them: `65` values, of `8` bytes because the
        run is in `float64`. The block has two norms and `256` tokens. So on each rank, they store
        `2 * 256 * 65 * 8` bytes with tensor parallelism, and on four ranks a quarter of that with
        sequence parallelism.

        `saved_bytes_of` counts the bytes that a rank stores for the backward pass of a whole block,
        without weights. `tensor_block` is the block with tensor parallelism, and `x` are all
        tokens:
    """)
    tensor_stored = saved_bytes_of(lambda: tensor_block(x), weights)  # @inspect tensor_stored as B
    sequence_stored = saved_bytes_of(lambda: block(x_own), weights)  # @inspect sequence_stored as B
    saved = tensor_stored - sequence_stored  # @hide
    assert saved == 2 * 256 * 65 * 8 * 3 / 4, \
        "The difference is three quarters of what the two norms store with tensor parallelism."
    note(rf"""
        So this small block stores {100 * saved / tensor_stored:.0f} % less in all. It is not three
        quarters, because inside attention and the feed-forward part a rank still stores activations
        of all tokens.
    """)
    question(r"""
        A layer is split in the same way as the norms here: each rank computes it for its own
        tokens. Which of these layers need no exchange for that? Give `1` or `0` for each: a norm
        over each token's elements; dropout, which sets random elements to zero; softmax over the
        sequence.
    """, answer=[1, 1, 0], check=[int(by_token) for by_token in (True, True, False)],
        hint="Does the result for one token depend on another token?",
        why=r"""
            A norm and dropout treat each token by itself. A softmax over the sequence divides by a
            sum over all tokens, and a rank has only some of them.
        """)
