"""Matrix products, and axes that carry names."""
from counters import flops, flops_by_operation
from collections.abc import Callable
from functools import partial
from importlib import metadata
from inspect import signature
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import Rearrange
from jaxtyping import Float, jaxtyped
from torch import Tensor, nn
from plots import BLUE, GOLD, GREEN
from tiles import rectangles

from litbook import aside, figure, misbelief, note, question

from .figures import plot_folding
from .measure import message_of, same_storage
from .models import whole_numbers

block_diag: Callable[..., Tensor] = torch.block_diag  # typed here; torch leaves it untyped


def matmul_and_named_axes() -> None:
    """Matrix products and named axes."""
    note(r"""
        Forget to transpose a square matrix and PyTorch raises no error: the product has the right
        shape and the wrong numbers. Axes that are known only by position make such slips easy to
        write and hard to see. This part counts what products cost, and then gives the axes names.
    """)
    a_product_contracts_one_axis()
    a_batched_product_is_one_folded_product()
    a_batch_on_both_sides_cannot_fold()
    only_the_last_axis_is_special()
    a_forgotten_transpose_is_silent_on_squares()
    an_annotation_names_dtype_rank_and_sizes()
    a_bare_annotation_enforces_nothing()
    a_checker_makes_annotations_binding()
    one_pattern_serves_numpy_and_torch()
    einsum_sums_the_axes_left_out()
    an_ellipsis_stands_for_any_axes()
    einsum_checks_sizes_but_stretches_ones()
    reduce_names_the_axis_it_removes()
    reduce_takes_more_than_one_tensor()
    pooling_is_a_reduction()
    the_order_in_the_parentheses_matters()
    heads_share_a_small_matrix()
    repeat_copies_nothing()
    a_rearrange_layer_hides_the_input_size()
    einops_errors_repeat_the_pattern()


def a_product_contracts_one_axis() -> None:
    """A matrix product sums over the axis its sides share."""
    note(r"""
        Nearly all that a language model computes are products of matrices. What happens in one?
        Take a row of the left matrix and a column of the right one. Multiply them number by number,
        and add up. That is one entry of the result. There is an entry for each row of the left
        matrix, here a token, and each column of the right one, here an output. The axis over which
        was added up, `hidden`, is in both matrices, and not in the result. One says that it is
        *contracted*.

        Here `16` tokens of `32` numbers are multiplied by a matrix for `2` outputs. All numbers are
        one, so each entry adds up `32` ones:
    """)
    m, k, n = 16, 32, 2
    x: Float[Tensor, "token hidden"] = torch.ones(m, k)
    w: Float[Tensor, "hidden out"] = torch.ones(k, n)
    y: Float[Tensor, "token out"] = x @ w  # @inspect y.shape
    entries = set(y.flatten().tolist())  # @inspect entries
    assert tuple(y.shape) == (16, 2), \
        "The result has an entry for each token and each output."
    assert entries == {32.0}, "Each entry is the sum of 32 products of ones."

    note(r"""
        What does that cost? With $m$ tokens, $k$ numbers in each and $n$ outputs, there are $mn$
        entries, and each takes $k$ multiplications and $k$ additions. So a product takes
        `2 * m * k * n` FLOPs, here `2 * 16 * 32 * 2`. `flops` returns what PyTorch's counter sees:
    """)
    reported = flops(lambda: x @ w)  # @inspect reported as FLOP
    assert reported == 2 * m * k * n, "PyTorch counts 2 * 16 * 32 * 2 FLOPs."
    shapes = {"x": (m, k), "w": (k, n), "y": (m, n)}  # @hide
    figure(rectangles([shapes], {"x": BLUE, "w": GREEN, "y": GOLD}), caption=r"""
        The two matrices and their product to scale. The width of `x` is the height of `w`, the axis
        that both share; `y` has the height of one and the width of the other.
    """, alt="A wide rectangle, a narrow one twice as high, and a third as high as the first and as narrow as the second.")
    question("A product of a matrix of `(m, 64)` numbers and one of `(64, 8)` takes `102400` FLOPs. What is `m`?",
             answer=102400 // flops(lambda: torch.ones(1, 64) @ torch.ones(64, 8)),
        check=next(m for m in range(999) if 2 * m * 64 * 8 == 102400),
        wrong={
            "The additions are missing.": 200,
        },
        hint="How many FLOPs does a single row take?",
        why="A row takes `2 * 64 * 8 = 1024` FLOPs, and `102400` FLOPs are enough for `100` rows.")


def a_batched_product_is_one_folded_product() -> None:
    """A batch times one matrix runs as a single large product."""
    note(r"""
        A language model multiplies a whole batch by one matrix of weights. Does the machine run
        many small products for that, or one large product? That matters, because a GPU is fast only
        with large ones.

        Take a tensor `x` with four axes: `4 * 8` sheets, each a matrix of `16 * 32` numbers.
        `x @ w` multiplies each sheet by `w`. So its result is that of a loop over the first two
        axes. (`whole_numbers` draws small whole numbers, so that sums are exact.)
    """)
    batch, seq, rows, inner, out = 4, 8, 16, 32, 2
    x = whole_numbers(batch, seq, rows, inner)
    w: Float[Tensor, "inner out"] = whole_numbers(inner, out)
    y: Float[Tensor, "b s row out"] = x @ w  # @inspect y.shape
    looped = torch.zeros(batch, seq, rows, out)
    for b, s in np.ndindex(batch, seq):
        looped[b, s] = x[b, s] @ w
    assert tuple(y.shape) == (4, 8, 16, 2), "The leading axes stay."  # @hide
    assert torch.equal(y, looped), \
        "The loop over the sheets gives the same result."

    note(r"""
        But PyTorch does not run a loop. All sheets are multiplied by the same `w`, and each row of
        the result needs only its own row of `x`. So PyTorch stacks the rows of all sheets into one
        tall matrix of `4 * 8 * 16 = 512` rows, and multiplies it once. `flops_by_operation` returns
        the FLOPs of each operation that ran. It shows a single `mm`, a product of two matrices:
    """)
    folded = (x.reshape(-1, inner) @ w).view(batch, seq, rows, out)
    reported = flops_by_operation(lambda: x @ w)  # @inspect reported as FLOP
    tall = batch * seq * rows  # @inspect tall
    by_hand = 2 * tall * inner * out  # @inspect by_hand as FLOP
    assert torch.equal(y, folded), \
        "Stacked, multiplied and cut again, the result is the same."
    assert reported == {"aten.mm": by_hand}, \
        "PyTorch ran one product, with the FLOPs that we counted by hand."
    assert by_hand == 65536, "That is 2 times 512 rows times 32 times 2."  # @hide
    note(rf"""
        So one product ran, of `2 * 512 * 32 * 2` FLOPs, which is {by_hand:,}.
    """)
    figure(plot_folding(batch, seq, rows, inner, out), caption=r"""
        The same product, as written (above) and as run (below). Every sheet of the batch becomes a
        band of the tall matrix, drawn flatter than it is.
    """, alt=r"""
        Above, a stack of wide sheets in groups by batch, times one narrow matrix, gives a stack of
        thin sheets. Below, one tall matrix made of as many bands, times the same narrow matrix,
        gives one tall thin matrix.
    """)
    question(r"""
        How many FLOPs does `x @ w` take, if `x` has the shape `(2, 5, 6, 10)` and `w` the shape
        `(10, 3)`?
    """, answer=flops(lambda: torch.ones(2, 5, 6, 10) @ torch.ones(10, 3)),
        wrong={
            "The additions are missing.": 2 * 5 * 6 * 10 * 3,
            "That is one sheet; there are ten of them.": 2 * 6 * 10 * 3,
        },
        check=2 * (2 * 5 * 6) * 10 * 3,
        hint="How many rows are left when all leading axes are stacked?",
        why=r"""
            The tall matrix has `2 * 5 * 6 = 60` rows of `10` numbers, and `w` has `3` columns:
            `2 * 60 * 10 * 3` FLOPs.
        """, unit="FLOP")


@aside
def a_batch_on_both_sides_cannot_fold() -> None:
    """With a batch on both sides nothing folds, and the FLOPs stay the same."""
    note(r"""
        If every example brings a right side of its own, there is no common `w` to stack the vectors
        for. PyTorch then runs `bmm`, a batch of products in one call.
    """)
    x: Float[Tensor, "b s row inner"] = whole_numbers(4, 8, 16, 32)
    own: Float[Tensor, "b s inner out"] = whole_numbers(4, 8, 32, 2)
    shared = flops_by_operation(lambda: x @ own[0, 0])  # @inspect shared
    separate = flops_by_operation(lambda: x @ own)  # @inspect separate
    assert shared == {"aten.mm": 65536}, "one tall product"
    assert separate == {"aten.bmm": 65536}, "many products, as many FLOPs"
    question(r"""
        The FLOPs stay the same, but the bytes do not. How many *more* have to be read when `16`
        examples bring a `float32` right side of shape `(512, 512)` each, instead of sharing one?
    """, answer=(16 - 1) * torch.ones(512, 512).nbytes,
        check=16 * 512**2 * 4 - 512**2 * 4, unit="B")


@aside
def only_the_last_axis_is_special() -> None:
    """To a product, every axis but the last is just another batch axis."""
    note(r"""
        Four axes invite stories about what each of them does. The product knows one story: the last
        axis is summed over, and all others are repeated over.
    """)
    note(r"""
        In `x` of shape `(4, 8, 16, 32)` one may want to see batch, token, and two axes of the token
        itself. A token is a vector, and only the last axis is contracted. The third is one more
        axis to repeat the product over.
    """)
    note(r"""
        If the third axis played a part of its own in `x @ w`, swapping it with the first would
        disturb the result. It only swaps the result in the same way.
    """)
    x: Float[Tensor, "a b c hidden"] = whole_numbers(4, 8, 16, 32)
    w: Float[Tensor, "hidden out"] = whole_numbers(32, 2)
    y: Float[Tensor, "a b c out"] = x @ w
    swapped = x.transpose(0, 2) @ w  # @inspect swapped.shape
    assert tuple(swapped.shape) == (16, 8, 4, 2), "only hidden is gone"
    assert torch.equal(swapped, y.transpose(0, 2)), "swapped, nothing else"
    question(r"""
        For the same `x` and a `v` of shape `(8, 5)`, what is the shape of `x.transpose(1, 3) @ v`?
    """, answer=tuple((x.transpose(1, 3) @ torch.ones(8, 5)).shape),
        check=(4, 32, 16, 5))


@aside
def a_forgotten_transpose_is_silent_on_squares() -> None:
    """A forgotten transpose raises an error, except on square matrices."""
    note(r"""
        Attention compares every token of a sequence with every other: the sequence, times its own
        transpose over the last two axes.
    """)
    x: Float[Tensor, "batch seq hidden"] = torch.ones(2, 2, 3)
    y = x @ x.transpose(-2, -1)  # @inspect y.shape
    assert tuple(y.shape) == (2, 2, 2), "batch, token, token"
    entries = set(y.flatten().tolist())  # @inspect entries
    assert entries == {3.0}, "each a sum over hidden"

    note("Leave the transpose out, and these sizes give you away.")
    error = message_of(lambda: x @ x)  # @inspect error
    assert "Expected size for first two" in error, "caught by the sizes"

    note("When the sequence is as long as the vectors are wide, nothing does.")
    square = torch.arange(27.0).view(3, 3, 3)
    right = square @ square.transpose(-2, -1)  # @inspect right[0]
    wrong = square @ square  # @inspect wrong[0]
    assert right.shape == wrong.shape, "the shapes agree"
    assert not torch.equal(right, wrong), "the numbers do not"
    note(r"""
        Advice for tests, then: give every axis a size of its own. As for the code, `-2, -1` does
        not say which axes are meant. Names would, and the rest of this part gives them.
    """)
    shapes = (2, 4, 4), (4, 4, 2), (2, 4, 8), (1, 8, 4), (3, 8, 8)  # @unnoticed: 8, 2, 4, 1, 3: squares stay square, and what is none stays none
    tried = [torch.ones(shape) for shape in shapes]
    errors = [message_of(partial(torch.matmul, t, t)) for t in tried]
    question(r"""
        For how many of the shapes `(2, 4, 4)`, `(4, 4, 2)`, `(2, 4, 8)`, `(1, 8, 4)` and
        `(3, 8, 8)` of `x` does `x @ x` raise no error?
    """, answer=errors.count(""),
        check=sum(rows == cols for rows, cols in ((4, 4), (4, 2), (4, 8), (8, 4), (8, 8))))


@aside
def an_annotation_names_dtype_rank_and_sizes() -> None:
    """A jaxtyping annotation states dtype, rank and the names of the axes."""
    note(r"""
        `Float[Tensor, "batch seq heads hidden"]` describes a tensor of floats, of any width, with
        an axis for each name [@jaxtyping]. It says what a comment would say, and `isinstance` tells
        whether a tensor fits. Try a tensor with four axes, one with three, and one of integers:
    """)
    names: Any = Float[Tensor, "batch seq heads hidden"]
    x = torch.ones(2, 2, 1, 3)  # @unnoticed: 2, 1, 3: any sizes
    fits = [isinstance(value, names) for value in (x, x[0], x.int())]  # @inspect fits
    assert fits == [True, False, False], "Only the first fits."

    note(r"""
        A name that occurs twice must stand for one size. When a page of this book is built, each
        variable with such an annotation is checked: dtype, axes and sizes.
    """)
    square: Any = Float[Tensor, "n n"]
    even, uneven = torch.ones(3, 3), torch.ones(3, 4)  # @unnoticed: arguments swapped, 3 -> 6: any two sizes
    assert isinstance(even, square), "A square has one size for both axes."
    assert not isinstance(uneven, square), "Two sizes do not fit one name."

    note("Despite its name, the package does not need JAX:")
    needed = metadata.requires("jaxtyping") or []  # @measure needed
    others = [package for package in needed if not package.startswith("jax")]
    assert others == needed != [], "It requires another package, not JAX."
    question(r"""
        How many of `torch.ones(1, 1)`, `torch.ones(3, 3).double()`, `torch.ones(9)`,
        `torch.ones(3, 3).int()` and `torch.ones(2, 3) @ torch.ones(3, 2)` fit
        `Float[Tensor, "n n"]`?
    """, answer=sum(
        isinstance(value, square)
        for value in (torch.ones(1, 1), even.double(), torch.ones(9), even.int(),
                      torch.ones(2, 3) @ torch.ones(3, 2))
    ),
        check=sum(
            t.is_floating_point() and t.dim() == 2 and t.size(0) == t.size(1)
            for t in (torch.ones(1, 1), even.double(), torch.ones(9), even.int(), torch.ones(2, 2))
        ))


@aside
def a_bare_annotation_enforces_nothing() -> None:
    """An annotation by itself enforces nothing."""
    note(r"""
        Python stores an annotation and moves on. Here a tensor with an axis too many walks in, and
        a tensor that contradicts the annotation walks out.
    """)

    def project(
        x: Float[Tensor, "b d"], w: Float[Tensor, "d k"]
    ) -> Float[Tensor, "b k"]:
        return x @ w

    y = project(torch.ones(5, 2, 3), torch.ones(3, 4))  # @inspect y.shape
    promised: Any = project.__annotations__["return"]
    assert tuple(y.shape) == (5, 2, 4), "computed without complaint"
    assert not isinstance(y, promised), "not what the annotation says"
    question(r"""
        Now the first argument has an axis too few: what is the shape of
        `project(torch.ones(7), torch.ones(7, 4))`?
    """, answer=tuple(project(torch.ones(7), torch.ones(7, 4)).shape),
        check=torch.ones(7, 4).sum(0).shape)


def instance_checker(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refusing arguments and results that do not fit their annotation."""
    hints = function.__annotations__

    def refuse_others(values: dict[str, Any]) -> None:
        for name, value in values.items():
            hint = hints.get(name, Any)
            if hint is not Any and not isinstance(value, hint):
                raise TypeError(f"{name} is not {hint}")

    def checked(*args: Any, **kwargs: Any) -> Any:
        refuse_others(signature(function).bind(*args, **kwargs).arguments)
        result = function(*args, **kwargs)
        refuse_others({"return": result})
        return result

    return checked


@aside
def a_checker_makes_annotations_binding() -> None:
    """jaxtyped and a runtime checker make annotations binding."""
    note("Decorate the function, and the same annotations are checked at every call.")
    misbelief("Such annotations are documentation only; nothing is ever enforced.", r"""
        Not by Python. `jaxtyped` with a runtime checker enforces dtype, rank, and one size for each
        name across arguments and result.
    """)
    note(r"""
        Beartype and typeguard are the usual checkers [@jaxtyping_checking]. A small one is enough
        to see it work: `instance_checker` asks `isinstance` of every argument and of the result.
    """)

    @jaxtyped(typechecker=instance_checker)
    def project(
        x: Float[Tensor, "b d"], w: Float[Tensor, "d k"], turn: bool = False
    ) -> Float[Tensor, "b k"]:
        return (x @ w).t() if turn else x @ w

    x, w = torch.ones(2, 3), torch.ones(3, 4)  # @unnoticed: 2, 4: any sizes beside the inner one
    size = message_of(lambda: project(x, torch.ones(7, 4)))  # @inspect size  # @unnoticed: arguments swapped, 4: the inner sizes disagree all the same
    rank = message_of(lambda: project(torch.ones(5, 2, 3), w))  # @unnoticed: 5, 2, 3: any sizes of three axes
    dtype = message_of(lambda: project(x.int(), w))
    result = message_of(lambda: project(x, w, turn=True))
    assert torch.equal(project(x, w), x @ w), "a good call passes"
    assert "checking parameter 'w'" in size, "two sizes for one name"
    assert "f32[7,4]" in size, "with the shape that was given"
    assert "checking parameter 'x'" in rank, "an axis too many"
    assert "checking parameter 'x'" in dtype, "integers for floats"
    assert "checking the return value" in result, "axes the wrong way round"
    def passes(n: int) -> bool:
        w = torch.ones(3, n)
        return message_of(lambda: project(x, w, turn=True)) == ""

    question(r"""
        `project(x, torch.ones(3, n), turn=True)` returns the axes the wrong way round, and for a
        single `n` the checker lets it pass. Which?
    """, answer=next(n for n in range(1, 9) if passes(n)),
        check=x.shape[0])


@aside
def one_pattern_serves_numpy_and_torch() -> None:
    """An einops pattern says what happens to each axis, in NumPy as in PyTorch."""
    note(r"""
        Einops moves, splits, joins and reduces axes by name [@rogozhnikov2022]. The idea goes back
        to the summation convention of 1916, by which an index that appears twice is summed over
        [@einstein1916]. In a pattern, inputs stand left of the arrow and outputs right.
    """)
    image: Float[Tensor, "h w c"] = torch.randn(3, 3, 9)
    old: Float[Tensor, "c h w"] = image.permute(2, 0, 1)
    new: Float[Tensor, "c h w"] = rearrange(image, "h w c -> c h w")  # @inspect new.shape
    assert tuple(new.shape) == (9, 3, 3), "channels come first"
    assert torch.equal(new, old), "old way, new way"

    note("The pattern belongs to no framework. The same call takes a NumPy array and returns one.")
    array = rearrange(image.numpy(), "h w c -> c h w")
    assert type(array) is np.ndarray, "NumPy in, NumPy out"
    assert np.array_equal(array, new.numpy()), "the same numbers"
    question(r"""
        Which four numbers must `x.permute` get to do what `rearrange(x, "a b c d -> d a c b")`
        does?
    """, answer=tuple("abcd".index(name) for name in "dacb"),
        check=tuple(
            (1, 2, 3, 4).index(size)
            for size in rearrange(torch.ones(1, 2, 3, 4), "a b c d -> d a c b").shape
        ))


@aside
def einsum_sums_the_axes_left_out() -> None:
    """einsum iterates over the axes named in the output and sums over the others."""
    note(r"""
        The attention scores again, the old way and the new. The pattern says what is compared with
        what, and no index is negative.
    """)
    x: Float[Tensor, "batch query hidden"] = whole_numbers(2, 3, 4)
    y: Float[Tensor, "batch key hidden"] = whole_numbers(2, 5, 4)
    pattern = "batch query hidden, batch key hidden -> batch query key"
    old: Float[Tensor, "batch query key"] = x @ y.transpose(-2, -1)
    new: Float[Tensor, "batch query key"] = einsum(x, y, pattern)  # @inspect new
    assert torch.equal(new, old), "old way, new way"

    note(r"""
        Read it as loops. Every name in the output is a loop over places to fill; every name left
        out, here `hidden`, is a sum inside.
    """)
    looped = torch.zeros(2, 3, 5)
    for batch, query, key in np.ndindex(2, 3, 5):
        looped[batch, query, key] = (x[batch, query] * y[batch, key]).sum()
    assert tuple(new.shape) == (2, 3, 5), "a loop for each name kept"
    assert torch.equal(new, looped), "a sum for each name left out"

    note("The rule does not ask for a product. With one input, leaving a name out is just a sum.")
    summed = einsum(x, "batch query hidden -> batch query")  # @inspect summed
    assert torch.equal(summed, x.sum(-1)), "hidden is summed away"
    question(r"""
        `a` and `b` are matrices of ones, both of shape `(3, 4)`. What is
        `einsum(a, b, "row col, row col ->")`?
    """, answer=einsum(torch.ones(3, 4), torch.ones(3, 4), "row col, row col ->").item(),
        check=3.0 * 4)


@aside
def an_ellipsis_stands_for_any_axes() -> None:
    """An ellipsis stands for any leading axes, and they broadcast."""
    note(r"""
        Code that should not care how many batch axes there are writes `...` for them. They are
        matched from the right, as in any broadcast, so the inputs may even have different numbers
        of them.
    """)
    x = whole_numbers(5, 2, 3, 4)
    y = whole_numbers(2, 6, 4)
    pattern = "... query hidden, ... key hidden -> ... query key"
    scores = einsum(x, y, pattern)  # @inspect scores.shape
    old = x @ y.transpose(-2, -1)
    assert tuple(scores.shape) == (5, 2, 3, 6), "leading axes broadcast"
    assert torch.equal(scores, old), "old way, new way"
    question(r"""
        With the same pattern, what shape do the scores of `x` of shape `(7, 1, 3, 4)` and `y` of
        shape `(5, 6, 4)` have?
    """, answer=tuple(einsum(torch.ones(7, 1, 3, 4), torch.ones(5, 6, 4), pattern).shape),
        check=(torch.ones(7, 1, 3, 4) @ torch.ones(5, 4, 6)).shape)


@aside
def einsum_checks_sizes_but_stretches_ones() -> None:
    """einsum refuses sizes that disagree, unless one of them is one."""
    note(r"""
        It helps to think of einsum as a matrix product that keeps the books: a name with two sizes
        is an error. The message speaks of a *subscript*, a single letter: einops calls PyTorch's
        own `einsum`, which does not know the names.
    """)
    x, wide = torch.ones(2, 3, 4), torch.ones(2, 3, 5)  # @unnoticed: 2, 3, 5, arguments swapped: sizes beside the two that differ
    pattern = "batch query hidden, batch key hidden -> batch query key"
    error = message_of(lambda: einsum(x, wide, pattern))  # @inspect error  # @unnoticed: arguments swapped: they disagree in either order
    assert "does not broadcast" in error, "the sizes disagree"
    assert "hidden" not in error, "the name is lost"

    note(r"""
        The books have a gap. An axis of size `1` is stretched without a word, where `@` refuses.
        That is broadcasting, and it may not be what was meant.
    """)
    thin = torch.ones(2, 3, 1)  # @unnoticed: 3: any number of keys
    entries = set(einsum(x, thin, pattern).flatten().tolist())
    refused = message_of(lambda: x @ thin.transpose(-2, -1))  # @inspect refused
    assert entries == {4.0}, "summed over the stretched axis"
    assert "RuntimeError" in refused, "the product refuses"
    question(r"""
        With the same pattern: `x` holds ones in shape `(2, 3, 6)`, `y` holds twos in shape
        `(2, 5, 1)`. What is every entry of the result?
    """, answer=einsum(torch.ones(2, 3, 6), 2 * torch.ones(2, 5, 1), pattern).unique().item(),
        check=6 * 1 * 2.0)


@aside
def reduce_names_the_axis_it_removes() -> None:
    """reduce() aggregates the axis that disappears from its pattern."""
    note(r"""
        To *reduce* an axis is to make one number of all that lies along it. The pattern says which:
        the axis is there on the left of the arrow and gone on the right.
    """)
    x: Float[Tensor, "batch seq hidden"] = whole_numbers(2, 3, 4)
    old: Float[Tensor, "batch seq"] = x.mean(dim=-1)
    new: Float[Tensor, "batch seq"] = reduce(x, "... hidden -> ...", "mean")  # @inspect new
    assert torch.equal(new, old), "old way, new way"
    assert tuple(new.shape) == (2, 3), "hidden is gone"

    misbelief('`reduce(x, "... hidden -> ...", "sum")` is the einops form of `x.mean(-1)`.',
        r"""
            CS336 has them side by side, as the new way and the old [@cs336]. It is the form of
            `x.sum(-1)`. Sum and mean differ by the length of the axis, as one assert would have
            told.
        """)
    ones = torch.ones(2, 3, 4)
    total = reduce(ones, "... hidden -> ...", "sum")
    average = ones.mean(-1)  # @inspect total, average
    assert total.tolist() == [[4, 4, 4], [4, 4, 4]], "the sum of ones"
    assert average.tolist() == [[1, 1, 1], [1, 1, 1]], "the mean of ones"
    assert torch.equal(total, ones.sum(-1)), "the true old way"
    box, pattern = torch.ones(4, 5, 7), "batch seq hidden -> hidden"  # @unnoticed: 7, arguments swapped: axes that are not reduced
    question(r"""
        A tensor of shape `(4, 5, 7)` is reduced by `batch seq hidden -> hidden`. By which factor do
        its sum and its mean differ?
    """, answer=(reduce(box, pattern, "sum") / reduce(box, pattern, "mean")).unique().item(),
        check=4.0 * 5)


@aside
def reduce_takes_more_than_one_tensor() -> None:
    """reduce() takes a name, a function, or a list of tensors."""
    note(r"""
        The last argument says how to aggregate: one of seven names, or a function that takes the
        tensor and the axes to remove.
    """)
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    each = "row col -> row"
    sums, means = reduce(x, each, "sum"), reduce(x, each, "mean")
    most, least = reduce(x, each, "max"), reduce(x, each, "min")
    products = reduce(x, each, "prod")  # @inspect sums, means, products
    some, every = reduce(x > 3, each, "any"), reduce(x > 3, each, "all")
    spread = reduce(x, each, lambda t, axes: t.amax(axes) - t.amin(axes))
    assert sums.tolist() == [6, 15], "the sum of each row"
    assert means.tolist() == [2, 5], "its mean value"
    assert most.tolist() == [3, 6], "its largest value"
    assert least.tolist() == [1, 4], "its smallest value"
    assert products.tolist() == [6, 120], "the product of its values"
    assert some.tolist() == every.tolist() == [False, True], "any and all"
    assert spread.tolist() == [2, 2], "a function of our own"

    misbelief("`reduce` works on one tensor only.",
        "A list of equal shapes is stacked on a new first axis, which the pattern can then reduce.")
    total = reduce([x, 10 * x], "copy row col -> row col", "sum")  # @inspect total
    assert torch.equal(total, 11 * x), "two tensors, added"
    question(r"""
        With the same `x`, what does `reduce([x, 2 * x, 3 * x], "copy row col -> copy", "max")`
        hold?
    """, answer=reduce([x, 2 * x, 3 * x], "copy row col -> copy", "max").tolist(),
        check=[k * 6.0 for k in (1, 2, 3)])


@aside
def pooling_is_a_reduction() -> None:
    """Average pooling is a reduction over the inside of each tile."""
    note(r"""
        *Average pooling* replaces each tile of a picture by its mean. PyTorch's `avg_pool2d` wants
        a batch of pictures with channels, so a single picture first gets two axes of size `1`.
        `unsqueeze` adds them one by one; the pattern of `rearrange` writes them where they go.
    """)
    picture: Float[Tensor, "h w"] = whole_numbers(9, 9)
    old = picture.unsqueeze(0).unsqueeze(0)  # @inspect old.shape
    new = rearrange(picture, "h w -> 1 1 h w")
    assert tuple(old.shape) == (1, 1, 9, 9), "batch and channel of one"
    assert torch.equal(new, old), "by unsqueeze, and by a pattern"

    note(r"""
        Parentheses split an axis: `(h tile)` reads `h` groups of `tile` neighbours. The tile's axes
        do not stand on the right, so `reduce` takes a mean over them. That is average pooling:
    """)
    pattern = "b c (h tile_h) (w tile_w) -> b c h w"
    pooled = reduce(new, pattern, "mean", tile_h=3, tile_w=3)  # @inspect pooled.shape
    library = F.avg_pool2d(new, kernel_size=3)
    assert tuple(pooled.shape) == (1, 1, 3, 3), "a mean for each tile"
    assert torch.allclose(pooled, library), "the library's pooling"
    question(r"""
        Into which shape does the same pattern reduce a batch of shape `(8, 3, 32, 32)` with
        `tile_h=4` and `tile_w=8`?
    """, answer=tuple(reduce(torch.ones(8, 3, 32, 32), pattern, "mean", tile_h=4, tile_w=8).shape),
        check=(8, 3, 32 // 4, 32 // 8),
        why="Batch and channels stay. `32` rows make `8` tiles of `4`, and `32` columns make `4` tiles of `8`.")


@aside
def the_order_in_the_parentheses_matters() -> None:
    """Inside parentheses the first name is the outer, slowly changing one."""
    note(r"""
        Split the last axis into heads. With `(heads hidden)`, where `heads` is the outer factor,
        each head gets a run of neighbours. With the names the other way round the heads take turns.
        The shapes do not tell the difference.
    """)
    x: Float[Tensor, "batch seq joint"] = torch.arange(48.0).view(2, 3, 8)
    split = "... (heads hidden) -> ... heads hidden"
    deal = "... (hidden heads) -> ... heads hidden"
    halves = rearrange(x, split, heads=2)  # @inspect halves[0, 0]
    turns = rearrange(x, deal, heads=2)  # @inspect turns[0, 0]
    runs, strided = halves[0, 0].tolist(), turns[0, 0].tolist()
    assert tuple(halves.shape) == (2, 3, 2, 4), "two heads of four"
    assert turns.shape == halves.shape, "and two, either way"
    assert runs == [[0, 1, 2, 3], [4, 5, 6, 7]], "heads as outer factor"
    assert strided == [[0, 2, 4, 6], [1, 3, 5, 7]], "heads as inner factor"
    assert same_storage(x, halves), "a view, no number moved"

    note("One factor may be left to einops: whatever remains of the axis, even if that is `1`.")
    image = torch.randn(3, 3, 9)
    parts = rearrange(image, "c (r p) w -> c r p w", p=3)  # @inspect parts.shape
    assert tuple(parts.shape) == (3, 1, 3, 9), "one group of three"
    question('For `v = torch.arange(12)`, what is `rearrange(v, "(b a) -> a b", a=3)[2, 1]`?',
             answer=rearrange(torch.arange(12), "(b a) -> a b", a=3)[2, 1].item(),
        check=1 * 3 + 2)


def heads_share_a_small_matrix() -> None:
    """Splitting an axis into heads makes a product cheaper."""
    note(r"""
        In a Transformer, a row of numbers is often cut into equal pieces, *heads*, that are
        multiplied separately. Here a row of `8` numbers is cut into `2` heads of `4`, each head is
        multiplied by the same `4 * 4` matrix `w`, and the results are put side by side again.
        `rearrange` cuts and joins: in its pattern, `(heads hidden1)` is one axis of
        `heads * hidden1` numbers. `einsum` multiplies, and adds up over `hidden1`, the letter that
        the result does not have:
    """)
    x: Float[Tensor, "batch seq joint"] = whole_numbers(2, 3, 8)
    w: Float[Tensor, "hidden1 hidden2"] = whole_numbers(4, 4)
    split = "... (heads hidden1) -> ... heads hidden1"
    heads = rearrange(x, split, heads=2)
    mixed = einsum(heads, w, "... hidden1, hidden1 hidden2 -> ... hidden2")
    joined = rearrange(mixed, "... heads hidden2 -> ... (heads hidden2)")  # @inspect joined.shape
    assert tuple(heads.shape) == (2, 3, 2, 4), \
        "There are 2 heads of 4 numbers for each token."
    assert joined.shape == x.shape, "After joining, the tensor has its old shape."  # @hide

    note(r"""
        The same result comes from one large matrix of `8 * 8` numbers. It has `w` on its diagonal,
        once for each head, and zeros elsewhere, because a head uses no number of another head. But
        the large product also multiplies by the zeros. The heads take `2 * (2 * 4 * 4)` FLOPs a
        token, and the large matrix `2 * 8 * 8`, twice as many:
    """)
    dense: Float[Tensor, "joint joint"] = block_diag(w, w)  # @inspect dense
    assert torch.equal(joined, x @ dense), \
        "The large matrix gives the same result."
    split_cost = flops(lambda: heads @ w)  # @inspect split_cost as FLOP
    dense_cost = flops(lambda: x @ dense)  # @inspect dense_cost as FLOP
    assert dense_cost == 2 * split_cost, \
        "The large matrix takes twice the FLOPs of two heads."
    question(r"""
        A row of `512` numbers is cut into `8` heads of `64`. How many times the FLOPs of the heads
        does one matrix of `512 * 512` take?
    """, answer=flops(lambda: torch.ones(1, 512) @ torch.eye(512))
        // flops(lambda: torch.ones(8, 64) @ torch.eye(64)),
        check=(512 * 512) // (8 * 64 * 64), unit="times",
        wrong={
            "That compares with one head; there are eight.": 64,
        },
        hint="How many multiplications does a row take with heads, and how many without?",
        why=r"""
            The heads take `8 * 64 * 64` multiplications a row, the large matrix `512 * 512`, which
            is `8` times as many. All but one eighth of its numbers are zeros.
        """)


@aside
def repeat_copies_nothing() -> None:
    """repeat() along a new axis copies nothing of a tensor, so one write shows in every copy."""
    note(r"""
        A name that is new on the right of the arrow repeats the tensor along a new axis. Nothing of
        a PyTorch tensor is repeated in memory: with a stride of `0`, every index along that axis
        lands on the same number.
    """)
    picture: Float[Tensor, "h w"] = torch.zeros(9, 9)
    copies: Float[Tensor, "c h w"] = repeat(picture, "h w -> c h w", c=3)
    memory = copies.untyped_storage().nbytes()  # @inspect copies.nbytes as B, memory as B
    assert tuple(copies.shape) == (3, 9, 9), "three pictures to look at"
    assert copies.stride() == (0, 9, 1), "no step along the new axis"
    assert copies.nbytes == 3 * memory, "one in memory"

    note(r"""
        Write to one element of one copy, and it changes in all copies and in the original. PyTorch
        refuses a write to the whole tensor, but it allows a write to one element:
    """)
    copies[0, 4, 4] = 7  # @unnoticed: 0: any of the three
    error = message_of(lambda: copies.add_(1))  # @inspect error
    assert copies[:, 4, 4].tolist() == [7, 7, 7], "Every copy changed."
    assert picture[4, 4].item() == 7, "The original changed, too."
    assert "a single memory location" in error, \
        "The write to the whole tensor is refused."

    note(r"""
        Two other cases make real copies: the same pattern on a NumPy array, and a pattern that
        joins the new axis to another. `own` has the array's step from copy to copy and the strides
        of the joined tensor:
    """)
    array = repeat(np.zeros((9, 9)), "h w -> c h w", c=3)
    joined = repeat(picture, "h w -> (c h) w", c=3)
    own = array.strides[0] // array.itemsize, joined.stride()  # @inspect own
    assert own == (81, (9, 1)), \
        "The array's copies are 81 numbers apart; the joined ones are rows."
    assert not same_storage(picture, joined), \
        "The joined tensor has memory of its own."

    note("To write to one copy alone, make real copies with `clone`:")
    real = copies.clone()
    real[0, 4, 4] = 8
    assert real[:, 4, 4].tolist() == [8, 7, 7], "Only one copy changed."
    assert real.stride() == (81, 9, 1), \
        "From copy to copy it is 81 numbers, one picture."
    question('What are the strides of `repeat(picture, "h w -> h c w", c=5)`?',
             answer=repeat(picture, "h w -> h c w", c=5).stride(),
        check=(9, 0, 1))


@aside
def a_rearrange_layer_hides_the_input_size() -> None:
    """Rearrange is a layer too, and hides which input sizes work."""
    note(r"""
        As a layer, the pattern says what is flattened between the convolutions and the linear
        layer. It does not say that the linear layer counts on `16 * 5 * 5` numbers. Pictures of
        `32x32` produce them; others fail, and fail a layer late.
    """)
    network = nn.Sequential(
        nn.Conv2d(3, 6, kernel_size=5), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, kernel_size=5), nn.MaxPool2d(2),
        Rearrange("b c h w -> b (c h w)"),
        nn.Linear(16 * 5 * 5, 120), nn.ReLU(), nn.Linear(120, 10),
    )
    scores = network(torch.randn(2, 3, 32, 32))  # @inspect scores.shape  # @unnoticed: 32 -> 33: halved, they are as many
    assert tuple(scores.shape) == (2, 10), "scores for each picture"
    small = torch.randn(2, 3, 28, 28)  # @unnoticed: 28 -> 29: halved, they are as many
    late = message_of(lambda: network(small))  # @inspect late
    assert "(2x256 and 400x120)" in late, "fails in the linear layer"

    def works(size: int) -> bool:
        picture = torch.randn(1, 3, size, size)
        return message_of(lambda: network(picture)) == ""

    note(r"""
        A few larger sizes slip through, because pooling drops a remainder at the edge. None of this
        is visible in the code.
    """)
    sizes = [size for size in range(16, 65) if works(size)]  # @inspect sizes
    assert sizes == [32, 33, 34, 35], "the sizes that run"

    note("Advice: write the assumption into the pattern. Then the layer that makes it reports it.")
    network[4] = Rearrange("b c h w -> b (c h w)", h=5, w=5)
    here = message_of(lambda: network(small))  # @inspect here
    assert "Shape mismatch, 4 != 5" in here, "fails where it was assumed"
    question("How many numbers must the first linear layer count on for pictures of `40x40`?",
             answer=network[:4](torch.randn(1, 3, 40, 40)).numel(),
        check=16 * (((40 - 4) // 2 - 4) // 2) ** 2)


@aside
def einops_errors_repeat_the_pattern() -> None:
    """An einops error repeats the pattern, the shape and the sizes it was given."""
    note(r"""
        Whether names make code easier to read is a matter of taste. What they do for error messages
        can be run: each of these slips is caught where it is made, in the words of the pattern.
    """)
    x = torch.ones(2, 3, 9)
    pattern = "... (heads hidden) -> ... heads hidden"
    uneven = message_of(lambda: rearrange(x, pattern, heads=2))  # @inspect uneven
    forgotten = message_of(lambda: rearrange(x, "b s h -> b h"))  # @inspect forgotten
    missing = message_of(lambda: rearrange(x, "b s -> s b"))  # @inspect missing
    assert "can't divide axis of length 9" in uneven, "heads that misfit"
    assert pattern in uneven, "the pattern is quoted"
    assert "torch.Size([2, 3, 9])" in uneven, "so is the shape"
    assert "should be on both): {'s'}" in forgotten, "an axis that got lost"
    assert "expected 2 dims. Received 3" in missing, "an axis nobody named"
    def fits(heads: int) -> bool:
        wide = torch.ones(2, 3, 12)
        return message_of(lambda: rearrange(wide, pattern, heads=heads)) == ""

    question("For how many values of `heads` does the pattern fit a last axis of length `12`?",
             answer=sum(fits(heads) for heads in range(1, 13)),
        check=sum(12 % heads == 0 for heads in range(1, 13)))
