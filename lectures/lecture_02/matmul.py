"""Matrix products, and axes that carry names."""
from counters import flops, flops_by_operation
from collections.abc import Callable
from functools import partial
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
        Take a row of the left matrix and a column of the right one, multiply them number by number,
        and add up. That is one entry of the result. There is an entry for each row of the left
        matrix, here a token, and each column of the right one, here an output. The axis that is
        summed over, `hidden`, is in both matrices, and not in the result: it is *contracted*.

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

    shapes = {"x": (m, k), "w": (k, n), "y": (m, n)}  # @hide
    figure(rectangles([shapes], {"x": BLUE, "w": GREEN, "y": GOLD}), caption=r"""
        The two matrices and their product to scale. The width of `x` is the height of `w`, the axis
        that both share; `y` has the height of one and the width of the other.
    """, alt="A wide rectangle, a narrow one twice as high, and a third as high as the first and as narrow as the second.")
    question(r"""
        A matrix of ones has `100` rows and `64` columns, and another one has `64` rows and `8`
        columns. How many entries has their product, and what is each of them? Give two numbers.
    """, answer=[(torch.ones(100, 64) @ torch.ones(64, 8)).numel(), (torch.ones(1, 64) @ torch.ones(64, 1)).item()],
        check=[100 * 8, 64.0],
        hint="Which axis is in both matrices, and which axes are left?",
        why=r"""
            An entry belongs to one of `100` rows and one of `8` columns, which makes `800`. Each
            adds up `64` products of `1 * 1`, since the axis of `64` is the one that both share.
        """)


def a_batched_product_is_one_folded_product() -> None:
    """A batch times one matrix runs as a single large product."""
    note(r"""
        A language model multiplies a whole batch by one matrix of weights. Does the machine run
        many small products for that, or one large product? That matters, because a GPU is fast only
        with large ones.

        Take a tensor `x` of `4 * 8` sheets, each a matrix of `16 * 32` numbers. `x @ w` multiplies
        each sheet by `w`, with the result of a loop over the sheets. (`whole_numbers` draws small
        whole numbers, so that sums are exact.)
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
        But PyTorch does not run a loop. Each row of the result needs only its own row of `x`, and
        the same `w`. So PyTorch stacks the rows of all sheets into one tall matrix of
        `4 * 8 * 16 = 512` rows, and multiplies it once. `flops_by_operation` returns the FLOPs of
        each operation that ran. It shows a single `mm`, a product of two matrices:
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
    """If each sheet has a matrix of its own, the product stays many small products."""
    note(r"""
        A batch of sheets times *one* matrix
        [runs as one large product](#a_batched_product_is_one_folded_product), because the rows of
        all sheets can be stacked. What if each sheet has a right matrix of its own? Then the rows
        of two sheets are multiplied by different matrices, so they cannot be stacked. PyTorch runs
        `bmm` instead, a batch of small products in one call.

        Here `x` has `4 * 8` sheets of `16 * 32` numbers. `each` has a matrix of `32 * 2` numbers
        for every sheet; `single` is the first of them, shared by all sheets. `flops_by_operation`
        returns the FLOPs of each operation that ran. (`whole_numbers` draws small whole numbers.)
    """)
    x: Float[Tensor, "b s row inner"] = whole_numbers(4, 8, 16, 32)
    each: Float[Tensor, "b s inner out"] = whole_numbers(4, 8, 32, 2)
    single = each[0, 0]  # @unnoticed: 0: any of them
    shared = flops_by_operation(lambda: x @ single)  # @inspect shared
    separate = flops_by_operation(lambda: x @ each)  # @inspect separate
    assert shared == {"aten.mm": 65536}, \
        "With one matrix for all sheets, PyTorch runs one product, mm."
    assert separate == {"aten.bmm": 65536}, \
        "With a matrix for each sheet, it runs bmm, which takes as many FLOPs."
    note(r"""
        The FLOPs are the same, because a row takes `2 * 32 * 2` FLOPs with any matrix. The bytes
        are not the same: for `bmm`, `32` matrices have to be read instead of one.
    """)
    question(r"""
        `16` examples are multiplied by `float32` matrices of shape `(512, 512)`. How many *more*
        bytes of matrices have to be read if each example has a matrix of its own, than if all share
        one?
    """, answer=(16 - 1) * torch.ones(512, 512).nbytes,
        check=16 * 512**2 * 4 - 512**2 * 4, unit="B",
        wrong={
            "One of the 16 is read in any case.": 16 * 512**2 * 4,
            "Those are numbers; each has four bytes.": 15 * 512**2,
        },
        why=r"""
            A matrix has `512 * 512` numbers of `4` bytes. `16` of them are read instead of one,
            which makes `15` more.
        """)


@aside
def only_the_last_axis_is_special() -> None:
    """`x @ w` sums over the last axis of `x` and treats all other axes alike."""
    note(r"""
        A tensor `x` of shape `(4, 8, 16, 32)` is multiplied by a matrix `w` of shape `(32, 2)`.
        What does each of the four axes do? Only the last axis is *contracted*, which means summed
        over: each row of `32` numbers becomes a row of `2`. The other three axes only say where the
        row stands. It makes no difference to the product whether one of them is called batch,
        token, or something else.

        Test that: swap the first axis with the third, once before the product and once after it.
        Axes are counted from `0`, so that is `transpose(0, 2)`. If the third axis played a part of
        its own in the product, the two results would differ. (`whole_numbers` draws small whole
        numbers, so that sums are exact.)
    """)
    x: Float[Tensor, "a b c hidden"] = whole_numbers(4, 8, 16, 32)
    w: Float[Tensor, "hidden out"] = whole_numbers(32, 2)
    y: Float[Tensor, "a b c out"] = x @ w  # @inspect y.shape
    swapped = x.transpose(0, 2) @ w  # @inspect swapped.shape
    assert tuple(swapped.shape) == (16, 8, 4, 2), \
        "Swapped before the product, the result has the shape (16, 8, 4, 2)."
    assert torch.equal(swapped, y.transpose(0, 2)), \
        "Swapped after the product, the result is the same."
    note("The results agree, because the product computes each row by itself and leaves it in its place.")
    question(r"""
        `x` has the shape `(4, 8, 16, 32)` and `v` the shape `(8, 5)`. What is the shape of
        `x.transpose(1, 3) @ v`?
    """, answer=tuple((x.transpose(1, 3) @ torch.ones(8, 5)).shape),
        check=(4, 32, 16, 5),
        why=r"""
            Swapping the axes `1` and `3` gives the shape `(4, 32, 16, 8)`. The product turns each
            row of `8` numbers into a row of `5`.
        """)


@aside
def a_forgotten_transpose_is_silent_on_squares() -> None:
    """A forgotten transpose raises an error, except on square matrices."""
    note(r"""
        Does PyTorch notice a forgotten transpose? Take a product that needs one. A batch `x` holds
        sequences of tokens, and each token is a row of numbers. To compare a token with another,
        multiply their rows number by number, and add up. All tokens of a sequence are compared with
        each other by one product, of the sequence with its own transpose. `transpose(-2, -1)` swaps
        the last two axes. Here `2` sequences have `2` tokens of `3` numbers each, all ones:
    """)
    x: Float[Tensor, "batch seq hidden"] = torch.ones(2, 2, 3)
    y = x @ x.transpose(-2, -1)  # @inspect y.shape
    assert tuple(y.shape) == (2, 2, 2), \
        "Each sequence has an entry for each pair of its tokens."
    entries = set(y.flatten().tolist())  # @inspect entries
    assert entries == {3.0}, "Each entry is the sum of 3 products of ones."

    note(r"""
        Leave the transpose out, and PyTorch raises an error: a matrix of `2 * 3` numbers cannot be
        multiplied by another one of `2 * 3`. (`message_of` runs a call and returns its error.)
    """)
    error = message_of(lambda: x @ x)  # @inspect error
    assert "Expected size for first two" in error, \
        "The product without the transpose is refused."

    note(r"""
        Now let each sequence have `3` tokens of `3` numbers. Its matrix is a square. A square can
        be multiplied by itself as well as by its transpose, so PyTorch raises no error, and the
        numbers are wrong:
    """)
    square = torch.arange(27.0).view(3, 3, 3)
    right = square @ square.transpose(-2, -1)  # @inspect right[0]
    wrong = square @ square  # @inspect wrong[0]
    assert right.shape == wrong.shape, \
        "With and without the transpose, the shape is the same."
    assert not torch.equal(right, wrong), \
        "With and without the transpose, the numbers differ."
    note(r"""
        So in a test, give each axis a size of its own. Then a forgotten transpose raises an error.
    """)
    shapes = (2, 4, 4), (4, 4, 2), (2, 4, 8), (1, 8, 4), (3, 8, 8)  # @unnoticed: 8, 2, 4, 1, 3: squares stay square, and what is none stays none
    tried = [torch.ones(shape) for shape in shapes]
    errors = [message_of(partial(torch.matmul, t, t)) for t in tried]
    question(r"""
        For how many of the shapes `(2, 4, 4)`, `(4, 4, 2)`, `(2, 4, 8)`, `(1, 8, 4)` and
        `(3, 8, 8)` of `x` does `x @ x` raise no error?
    """, answer=errors.count(""),
        check=sum(rows == cols for rows, cols in ((4, 4), (4, 2), (4, 8), (8, 4), (8, 8))),
        wrong={
            "(4, 4, 2) holds matrices of 4 * 2 numbers; the first size counts the matrices.": 3,
        },
        why=r"""
            The last two sizes are those of the matrices. They are squares in `(2, 4, 4)` and in
            `(3, 8, 8)`, so these two can be multiplied by themselves.
        """)


@aside
def an_annotation_names_dtype_rank_and_sizes() -> None:
    """A jaxtyping annotation states the dtype of a tensor and the names of its axes."""
    note(r"""
        How can code say which axes a tensor has? By an annotation of the package jaxtyping
        [@jaxtyping]. It says what a comment would say, and a program can check it.
        `Float[Tensor, "batch seq heads hidden"]` describes a tensor of floats, of any number of
        bits, with one axis for each name. `isinstance` tells whether a tensor fits. Try a tensor
        with four axes, one with three, and one of integers:
    """)
    names: Any = Float[Tensor, "batch seq heads hidden"]
    x = torch.ones(2, 2, 1, 3)  # @unnoticed: 2, 1, 3: any sizes
    fits = [isinstance(value, names) for value in (x, x[0], x.int())]  # @inspect fits
    assert fits == [True, False, False], \
        "Only the tensor of floats with four axes fits."

    note(r"""
        A name may stand for any size. But a name that occurs twice must stand for one size. So
        `"n n"` describes square matrices:
    """)
    square: Any = Float[Tensor, "n n"]
    even, uneven = torch.ones(3, 3), torch.ones(3, 4)  # @unnoticed: arguments swapped, 3 -> 6: any two sizes
    assert isinstance(even, square), "A matrix of 3 * 3 numbers fits."
    assert not isinstance(uneven, square), \
        "A matrix of 3 * 4 numbers does not fit."
    note(r"""
        Many variables of this book have such an annotation. When a page is built, each of them is
        checked.
    """)
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
        ),
        wrong={
            "Doubles are floats, too.": 2,
            "Integers do not fit Float.": 4,
        },
        why=r"""
            `torch.ones(9)` has one axis, and `.int()` makes integers. The other three are square
            matrices of floats; the product has the shape `(2, 2)`.
        """)


@aside
def a_bare_annotation_enforces_nothing() -> None:
    """Python does not check an annotation."""
    note(r"""
        The [annotation](#an_annotation_names_dtype_rank_and_sizes) `Float[Tensor, "b d"]` of an
        argument says that it is a tensor of floats with two axes, called `b` and `d`. Does Python
        check that when the function is called? No: Python keeps annotations beside the function,
        and runs the function without looking at them. The first argument of `project` should have
        two axes. Give it a tensor with three:
    """)

    def project(
        x: Float[Tensor, "b d"], w: Float[Tensor, "d k"]
    ) -> Float[Tensor, "b k"]:
        return x @ w

    y = project(torch.ones(5, 2, 3), torch.ones(3, 4))  # @inspect y.shape
    assert tuple(y.shape) == (5, 2, 4), \
        "The call raises no error and returns a tensor with three axes."
    note(r"""
        The result does not fit the annotation of the result either, which has the two axes `b` and
        `k`. One has to ask, with `isinstance`, to find out:
    """)
    promised: Any = project.__annotations__["return"]
    assert not isinstance(y, promised), \
        "The result does not fit the annotation."
    question(r"""
        `torch.ones(7)` has one axis, and the annotation of `x` has two. What is the shape of
        `project(torch.ones(7), torch.ones(7, 4))`?
    """, answer=tuple(project(torch.ones(7), torch.ones(7, 4)).shape),
        check=torch.ones(7, 4).sum(0).shape,
        why=r"""
            Nobody checks the annotation, so `x @ w` runs: a vector of `7` numbers times a matrix of
            `7 * 4` is a vector of `4`.
        """)


def instance_checker(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that first checks the arguments, and then the result, against their annotations."""
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
    """A decorator makes every call check the annotations."""
    note(r"""
        [Python does not check annotations](#a_bare_annotation_enforces_nothing). How does one get
        them checked? By a *decorator*, a line above a function that adds something to every call.
        Here it is `jaxtyped`, from the package jaxtyping. It sees to it that a name such as `d`
        stands for one size in the whole call, and leaves the rest to a *checker*
        [@jaxtyping_checking]. Ours, `instance_checker`, calls `isinstance` for each argument and
        for the result.

        `project` multiplies `x` by `w`. With `turn=True` it returns the transpose, which is a
        mistake on purpose:
    """)

    @jaxtyped(typechecker=instance_checker)
    def project(
        x: Float[Tensor, "b d"], w: Float[Tensor, "d k"], turn: bool = False
    ) -> Float[Tensor, "b k"]:
        return (x @ w).t() if turn else x @ w

    x, w = torch.ones(2, 3), torch.ones(3, 4)  # @unnoticed: 2, 4: any sizes beside the inner one
    assert torch.equal(project(x, w), x @ w), \
        "A call that fits the annotations runs as before."
    note(r"""
        Four calls do not fit. In the first, `d` is `3` in `x` and `7` in `w`. In the second, `x`
        has three axes. In the third, it has integers. The fourth returns the axes `k b` instead of
        `b k`. `message_of` returns the error of each; its first words say what was refused:
    """)
    size = message_of(lambda: project(x, torch.ones(7, 4)))  # @inspect size  # @unnoticed: arguments swapped, 4: the inner sizes disagree all the same
    rank = message_of(lambda: project(torch.ones(5, 2, 3), w))  # @unnoticed: 5, 2, 3: any sizes of three axes
    dtype = message_of(lambda: project(x.int(), w))
    result = message_of(lambda: project(x, w, turn=True))
    assert "checking parameter 'w'" in size, \
        "The first call is refused at w, since d has two sizes."
    assert "f32[7,4]" in size, "The error names the shape of w."  # @hide
    assert "checking parameter 'x'" in rank, \
        "The second call is refused at x, for its three axes."
    assert "checking parameter 'x'" in dtype, \
        "The third call is refused at x, for its integers."
    assert "checking the return value" in result, \
        "The fourth call is refused at its result, for the order of axes."
    misbelief("Such annotations are documentation only; nothing is ever enforced.", r"""
        Without a checker that is so. With one, all four calls above are refused: dtype, number of
        axes and sizes are checked, in arguments and in the result.
    """)

    def passes(n: int) -> bool:  # @hide
        w = torch.ones(3, n)
        return message_of(lambda: project(x, w, turn=True)) == ""

    question(r"""
        `x` has the shape `(2, 3)`. `project(x, torch.ones(3, n), turn=True)` returns the transpose
        of the product, and for a single `n` the checker does not notice. For which?
    """, answer=next(n for n in range(1, 9) if passes(n)),
        check=x.shape[0],
        why=r"""
            `b` is `2` and `k` is `n`. The transpose has the shape `(n, 2)`, and the annotation asks
            for `(2, n)`. These are the same shape only if `n` is `2`.
        """)


@aside
def one_pattern_serves_numpy_and_torch() -> None:
    """An einops pattern moves axes by name, in NumPy as in PyTorch."""
    note(r"""
        `image.permute(2, 0, 1)` moves the last axis of an image to the front. But its numbers do
        not say what the axes are. The library einops gives axes names [@rogozhnikov2022]. In its
        *patterns*, the axes stand left of the arrow as they are, and right of it as they should be;
        `rearrange` moves them. Here an image of `3` rows (`h`) and `3` columns (`w`) has `9` colour
        channels (`c`), and the channels should come first:
    """)
    image: Float[Tensor, "h w c"] = torch.randn(3, 3, 9)
    old: Float[Tensor, "c h w"] = image.permute(2, 0, 1)
    new: Float[Tensor, "c h w"] = rearrange(image, "h w c -> c h w")  # @inspect new.shape
    assert tuple(new.shape) == (9, 3, 3), "The channels come first."
    assert torch.equal(new, old), \
        "permute and rearrange give the same tensor."

    note("Patterns are not tied to PyTorch. `rearrange` of a NumPy array gives a NumPy array:")
    array = rearrange(image.numpy(), "h w c -> c h w")
    assert type(array) is np.ndarray, "A NumPy array stays a NumPy array."
    assert np.array_equal(array, new.numpy()), \
        "It has the same numbers."  # @hide
    question(r"""
        `permute` gets, for each axis of the result, the number of the axis that goes there, counted
        from `0`. Which four numbers make `x.permute` do what `rearrange(x, "a b c d -> d a c b")`
        does?
    """, answer=tuple("abcd".index(name) for name in "dacb"),
        check=tuple(
            (1, 2, 3, 4).index(size)
            for size in rearrange(torch.ones(1, 2, 3, 4), "a b c d -> d a c b").shape
        ),
        why=r"""
            The axes `a`, `b`, `c` and `d` have the numbers `0`, `1`, `2` and `3`. The result has
            them in the order `d a c b`.
        """)


@aside
def einsum_sums_the_axes_left_out() -> None:
    """einsum sums over the axes that its result does not name."""
    note(r"""
        `x @ y.transpose(-2, -1)` multiplies each row of `x` by each row of `y`, but it does not say
        which axes these are. `einsum` of einops says it with names. In its pattern, the axes of the
        two tensors stand left of the arrow, and those of the result right of it. Its rule: multiply
        the tensors, and sum over each axis that the result does not name.

        Here `x` has `2` batches of `3` rows, called `query`, and `y` has `2` batches of `5` rows,
        called `key`. A row has `4` numbers, called `hidden`. The result does not name `hidden`, so
        that axis is summed over. (`whole_numbers` draws small whole numbers, so that sums are
        exact.)
    """)
    x: Float[Tensor, "batch query hidden"] = whole_numbers(2, 3, 4)
    y: Float[Tensor, "batch key hidden"] = whole_numbers(2, 5, 4)
    pattern = "batch query hidden, batch key hidden -> batch query key"
    old: Float[Tensor, "batch query key"] = x @ y.transpose(-2, -1)
    new: Float[Tensor, "batch query key"] = einsum(x, y, pattern)  # @inspect new
    assert torch.equal(new, old), \
        "einsum gives what the product with the transpose gives."

    note(r"""
        A pattern can be read as loops. There is a loop over each name right of the arrow: `batch`,
        `query` and `key`. Inside is a sum over the name that is missing there, `hidden`:
    """)
    looped = torch.zeros(2, 3, 5)
    for batch, query, key in np.ndindex(2, 3, 5):
        looped[batch, query, key] = (x[batch, query] * y[batch, key]).sum()
    assert tuple(new.shape) == (2, 3, 5), \
        "The result has an axis for each name right of the arrow."
    assert torch.equal(new, looped), "The loops give the same result."

    note("The same rule holds for a single tensor. If the result does not name `hidden`, each row is summed:")
    summed = einsum(x, "batch query hidden -> batch query")  # @inspect summed
    assert torch.equal(summed, x.sum(-1)), \
        "einsum of x alone gives what x.sum(-1) gives."
    note(r"""
        The rule is an old one: by Einstein's convention of `1916`, an index that appears twice is
        summed over [@einstein1916].
    """)
    question(r"""
        `a` and `b` are matrices of ones, both of shape `(3, 4)`. What is
        `einsum(a, b, "row col, row col ->")`?
    """, answer=einsum(torch.ones(3, 4), torch.ones(3, 4), "row col, row col ->").item(),
        check=3.0 * 4,
        wrong={
            "The rows are summed over, too: the result names no axis.": 4,
            "The columns are summed over, too: the result names no axis.": 3,
        },
        why=r"""
            Nothing stands right of the arrow, so all products are added up: `3 * 4` products of
            `1 * 1`.
        """)


@aside
def an_ellipsis_stands_for_any_axes() -> None:
    """In a pattern, `...` stands for all axes that come before the named ones."""
    note(r"""
        A function may get one sequence, a batch of sequences, or a tensor with still more axes in
        front. How does one pattern serve them all? `...` in a pattern stands for any number of
        axes. Those of two tensors are matched from the right, and an axis that one of them lacks is
        *broadcast*: the same numbers are used at each of its places.

        In this pattern of `einsum`, each `query` is multiplied by each `key` and summed over
        `hidden`. `x` has the axes `5, 2` in front, and `y` only `2`. So the twos are matched, and
        `y` is used for each of the `5`. (`whole_numbers` draws small whole numbers.)
    """)
    x = whole_numbers(5, 2, 3, 4)
    y = whole_numbers(2, 6, 4)
    pattern = "... query hidden, ... key hidden -> ... query key"
    scores = einsum(x, y, pattern)  # @inspect scores.shape
    old = x @ y.transpose(-2, -1)
    assert tuple(scores.shape) == (5, 2, 3, 6), \
        "The result has the axes 5 and 2 in front, then queries and keys."
    assert torch.equal(scores, old), \
        "The product with a transpose gives the same result."
    question(r"""
        An axis of size `1` is broadcast, too. With the same pattern, what is the shape of the
        result for `x` of shape `(7, 1, 3, 4)` and `y` of shape `(5, 6, 4)`?
    """, answer=tuple(einsum(torch.ones(7, 1, 3, 4), torch.ones(5, 6, 4), pattern).shape),
        check=(torch.ones(7, 1, 3, 4) @ torch.ones(5, 4, 6)).shape,
        why=r"""
            In front, `x` has `7, 1` and `y` has `5`. From the right, the `1` is matched with the
            `5` and becomes `5`, and the `7` stays. Then come `3` queries and `6` keys.
        """)


@aside
def einsum_checks_sizes_but_stretches_ones() -> None:
    """einsum refuses a name with two sizes, unless one of them is one."""
    note(r"""
        `einsum` is often called a matrix product with good bookkeeping: a name in its pattern
        stands for one size. What if a name gets two sizes? In the pattern below, `hidden` is the
        last axis of both tensors. It is `4` in `x` and `5` in `wide`, and that is an error.
        (`message_of` runs a call and returns its error.)
    """)
    x, wide = torch.ones(2, 3, 4), torch.ones(2, 3, 5)  # @unnoticed: 2, 3, 5, arguments swapped: sizes beside the two that differ
    pattern = "batch query hidden, batch key hidden -> batch query key"
    error = message_of(lambda: einsum(x, wide, pattern))  # @inspect error  # @unnoticed: arguments swapped: they disagree in either order
    assert "does not broadcast" in error, "The two sizes are refused."
    assert "hidden" not in error, \
        "The error does not mention the name hidden."
    note(r"""
        The error speaks of a *subscript* instead, a single letter, because einops hands the work to
        PyTorch's own `einsum`, which knows letters only.

        One slip goes unnoticed. If one of the two sizes is `1`, there is no error: the axis is
        *broadcast*, which means that its one number is multiplied by all `4` numbers of the other
        tensor. `@` refuses that:
    """)
    thin = torch.ones(2, 3, 1)  # @unnoticed: 3: any number of keys
    entries = set(einsum(x, thin, pattern).flatten().tolist())
    assert entries == {4.0}, \
        "With sizes 4 and 1, each entry is the sum of 4 products."
    refused = message_of(lambda: x @ thin.transpose(-2, -1))  # @inspect refused
    assert "RuntimeError" in refused, "@ refuses the sizes 4 and 1."
    question(r"""
        With the same pattern: `x` holds ones in shape `(2, 3, 6)`, `y` holds twos in shape
        `(2, 5, 1)`. What is every entry of the result?
    """, answer=einsum(torch.ones(2, 3, 6), 2 * torch.ones(2, 5, 1), pattern).unique().item(),
        check=6 * 1 * 2.0,
        wrong={
            "The axis of size 1 is used for all six numbers of x.": 2,
        },
        why=r"""
            `hidden` is `6` in `x` and `1` in `y`. The single two is multiplied by each of the six
            ones, and the six products of `2` are added up.
        """)


@aside
def reduce_names_the_axis_it_removes() -> None:
    """reduce() removes the axis that its pattern names on the left only."""
    note(r"""
        To *reduce* an axis is to make one number of all that lie along it, such as their mean or
        their sum. `x.mean(dim=-1)` reduces the last axis. `reduce` of einops names it: the pattern
        has the axis left of the arrow, and not right of it. `...` stands for all other axes. Here
        each token has `4` numbers, called `hidden`, and their mean is taken:
    """)
    x: Float[Tensor, "batch seq hidden"] = whole_numbers(2, 3, 4)
    old: Float[Tensor, "batch seq"] = x.mean(dim=-1)
    new: Float[Tensor, "batch seq"] = reduce(x, "... hidden -> ...", "mean")  # @inspect new
    assert torch.equal(new, old), \
        "reduce gives what x.mean(dim=-1) gives."
    assert tuple(new.shape) == (2, 3), "The axis hidden is gone."

    note("The last argument says *how* to reduce. Compare the sum and the mean of rows of four ones:")
    ones = torch.ones(2, 3, 4)
    total = reduce(ones, "... hidden -> ...", "sum")
    average = ones.mean(-1)  # @inspect total, average
    assert total.tolist() == [[4, 4, 4], [4, 4, 4]], \
        "The sums are 4."
    assert average.tolist() == [[1, 1, 1], [1, 1, 1]], "The means are 1."
    assert torch.equal(total, ones.sum(-1)), \
        "reduce with sum gives what x.sum(-1) gives."
    misbelief('`reduce(x, "... hidden -> ...", "sum")` is the einops form of `x.mean(-1)`.',
        r"""
            It is the form of `x.sum(-1)`: of four ones it makes `4`, and their mean is `1`. CS336
            shows the two side by side, as the new way and the old one [@cs336].
        """)
    box, pattern = torch.ones(4, 5, 7), "batch seq hidden -> hidden"  # @unnoticed: 7, arguments swapped: axes that are not reduced
    question(r"""
        A tensor of shape `(4, 5, 7)` is reduced by `batch seq hidden -> hidden`. How many times the
        mean is the sum?
    """, answer=(reduce(box, pattern, "sum") / reduce(box, pattern, "mean")).unique().item(),
        check=4.0 * 5, unit="times",
        wrong={
            "hidden is right of the arrow, so it is not reduced.": 4 * 5 * 7,
        },
        why=r"""
            `batch` and `seq` are reduced, so `4 * 5` numbers become one. Their mean is their sum
            divided by `20`.
        """)


@aside
def reduce_takes_more_than_one_tensor() -> None:
    """reduce() can sum, multiply, take the largest or call your function, also over a list of tensors."""
    note(r"""
        `reduce` of einops makes one number of all that lie along an axis: the axis that its pattern
        has left of the arrow only. The last argument says how, by one of seven names: `"sum"`,
        `"mean"`, `"max"`, `"min"`, `"prod"` for the product, and for masks `"any"` and `"all"`. It
        can also be a function, which gets the tensor and the axes to remove. Here each of two rows
        becomes one number:
    """)
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    each = "row col -> row"
    sums = reduce(x, each, "sum")  # @inspect sums
    products = reduce(x, each, "prod")  # @inspect products
    spread = reduce(x, each, lambda t, axes: t.amax(axes) - t.amin(axes))  # @inspect spread
    assert sums.tolist() == [6, 15], "The rows add up to 6 and 15."
    assert products.tolist() == [6, 120], "The products are 6 and 120."
    assert spread.tolist() == [2, 2], \
        "Our function gives the largest number less the smallest, 2."
    means, most, least = (reduce(x, each, how) for how in ("mean", "max", "min"))  # @hide
    some, every = reduce(x > 3, each, "any"), reduce(x > 3, each, "all")  # @hide
    assert means.tolist() == [2, 5], "The means of the rows are 2 and 5."  # @hide
    assert most.tolist() == [3, 6], "The largest numbers of the rows are 3 and 6."  # @hide
    assert least.tolist() == [1, 4], "The smallest numbers of the rows are 1 and 4."  # @hide
    assert some.tolist() == every.tolist() == [False, True], "All numbers of the second row are above 3, none of the first."  # @hide

    note(r"""
        `reduce` also takes a *list* of tensors of one shape. It stacks them along a new first axis,
        which the pattern names like any other. Here this axis is called `copy`, and is summed over,
        so the two tensors are added:
    """)
    total = reduce([x, 10 * x], "copy row col -> row col", "sum")  # @inspect total
    assert torch.equal(total, 11 * x), "x plus 10 times x is 11 times x."
    misbelief("`reduce` works on one tensor only.", r"""
        It takes a list of tensors, too: above it added two. They need to have the same shape.
    """)
    question(r"""
        `x` has the rows `1, 2, 3` and `4, 5, 6`. What does
        `reduce([x, 2 * x, 3 * x], "copy row col -> copy", "max")` hold?
    """, answer=reduce([x, 2 * x, 3 * x], "copy row col -> copy", "max").tolist(),
        check=[k * 6.0 for k in (1, 2, 3)],
        why=r"""
            `row` and `col` are removed, so of each of the three tensors the largest number is left:
            `6`, `2 * 6` and `3 * 6`.
        """)


@aside
def pooling_is_a_reduction() -> None:
    """Average pooling is a mean over the axes inside each tile."""
    note(r"""
        *Average pooling* makes a picture smaller: it cuts the picture into tiles and replaces each
        tile by its mean. How does one write that with names? In an einops pattern, parentheses
        split an axis in two: `(h tile_h)` reads an axis as `h` groups of `tile_h` neighbours. Right
        of the arrow stand only `h` and `w`, the tile's row and column. The axes inside the tile are
        missing there, so `reduce` takes the mean over them. Here a picture of `9 * 9` numbers has
        tiles of `3 * 3`:
    """)
    picture: Float[Tensor, "h w"] = whole_numbers(9, 9)
    tiles = "(h tile_h) (w tile_w) -> h w"
    pooled = reduce(picture, tiles, "mean", tile_h=3, tile_w=3)  # @inspect pooled
    assert tuple(pooled.shape) == (3, 3), "The result has a mean for each tile."
    corner = picture[:3, :3].mean()  # @inspect corner
    assert torch.allclose(pooled[0, 0], corner), \
        "The first entry is the mean of the tile in the upper left corner."

    note(r"""
        PyTorch's own pooling is `avg_pool2d`. It wants a batch of pictures with colour channels, so
        a single picture first gets two axes of size `1`. Two calls of `unsqueeze` add them, or a
        pattern that has `1 1` in front:
    """)
    old = picture.unsqueeze(0).unsqueeze(0)  # @inspect old.shape
    new = rearrange(picture, "h w -> 1 1 h w")
    assert tuple(old.shape) == (1, 1, 9, 9), \
        "unsqueeze makes a batch of one picture with one channel."
    assert torch.equal(new, old), "The pattern makes the same tensor."
    library = F.avg_pool2d(new, kernel_size=3)
    assert torch.allclose(library[0, 0], pooled), \
        "PyTorch's pooling gives the same means."
    batch = "b c (h tile_h) (w tile_w) -> b c h w"
    question(r"""
        Into which shape does `"b c (h tile_h) (w tile_w) -> b c h w"` reduce a batch of shape
        `(8, 3, 32, 32)` with `tile_h=4` and `tile_w=8`?
    """, answer=tuple(reduce(torch.ones(8, 3, 32, 32), batch, "mean", tile_h=4, tile_w=8).shape),
        check=(8, 3, 32 // 4, 32 // 8),
        why="Batch and channels stay. `32` rows make `8` tiles of `4`, and `32` columns make `4` tiles of `8`.")


@aside
def the_order_in_the_parentheses_matters() -> None:
    """In `(heads hidden)` a head is a run of neighbours; in `(hidden heads)` the heads take turns."""
    note(r"""
        A row of `8` numbers is to be split into `2` *heads*, which are equal pieces. Which numbers
        belong to the first head? In an einops pattern, that depends on the order of the names in
        the parentheses. The last name counts neighbours. In `(heads hidden)` the last name is
        `hidden`, so neighbours belong to one head. In `(hidden heads)` the last name is `heads`, so
        neighbours belong to different heads. Split rows of numbers in both ways; the first row has
        the numbers from `0` to `7`:
    """)
    x: Float[Tensor, "batch seq joint"] = torch.arange(48.0).view(2, 3, 8)
    split = "... (heads hidden) -> ... heads hidden"
    deal = "... (hidden heads) -> ... heads hidden"
    halves = rearrange(x, split, heads=2)  # @inspect halves[0, 0]
    turns = rearrange(x, deal, heads=2)  # @inspect turns[0, 0]
    runs, strided = halves[0, 0].tolist(), turns[0, 0].tolist()
    assert tuple(halves.shape) == (2, 3, 2, 4), \
        "The first pattern makes two heads of four numbers."
    assert turns.shape == halves.shape, \
        "The second pattern makes a tensor of the same shape."
    assert runs == [[0, 1, 2, 3], [4, 5, 6, 7]], \
        "With (heads hidden), the first head has the numbers 0 to 3."
    assert strided == [[0, 2, 4, 6], [1, 3, 5, 7]], \
        "With (hidden heads), it has every other number."
    assert same_storage(x, halves), "Splitting copies no number."  # @hide
    note("So the shape does not show which of the two was meant; only the numbers do.")
    image = torch.randn(3, 3, 9)  # @hide
    parts = rearrange(image, "c (r p) w -> c r p w", p=3)  # @hide
    assert tuple(parts.shape) == (3, 1, 3, 9), "One of two sizes may be left out: 3 rows in groups of 3 are one group."  # @hide
    question(r"""
        `v` has the numbers from `0` to `11`. `rearrange(v, "(b a) -> a b", a=3)` is a matrix with a
        row for each index of `a` and a column for each index of `b`. What does it have in row `2`
        and column `1`, both counted from `0`?
    """, answer=rearrange(torch.arange(12), "(b a) -> a b", a=3)[2, 1].item(),
        check=1 * 3 + 2,
        wrong={
            "That is for (a b), where neighbours lie along b.": 9,
        },
        why=r"""
            The last name, `a`, counts neighbours: `a` goes up by one with each number, and `b` with
            every third. `b = 1` begins at `3`, and `a = 2` is two further on.
        """)


@aside
def heads_share_a_small_matrix() -> None:
    """Splitting an axis into heads makes a product cheaper."""
    note(r"""
        In a Transformer, the row of numbers of a token is often cut into equal pieces, *heads*,
        that are multiplied separately. What does that save? Here a row of `8` numbers is cut into
        `2` heads of `4`. Each head is multiplied by the same `4 * 4` matrix `w`, and the results
        are put side by side again.

        `rearrange` cuts and joins: in its pattern, `(heads hidden1)` is one axis of
        `heads * hidden1` numbers. `einsum` multiplies, and sums over `hidden1`, the name that its
        result does not have:
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
        One matrix of `8 * 8` numbers gives the same result. `block_diag` makes it: `w` stands on
        its diagonal, once for each head, and everything else is zero, because a head uses no number
        of another head. But the large product multiplies by these zeros, too. For each token, the
        heads take `2 * (2 * 4 * 4)` FLOPs, and the large matrix `2 * 8 * 8`, twice as many:
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
    """einops' repeat() copies no number of a tensor, so one write shows in every copy."""
    note(r"""
        A name that stands only *right* of the arrow of an einops pattern is a new axis, and
        `repeat` repeats the tensor along it. Here a picture of `9 * 9` numbers is repeated `3`
        times. Does that take `3` times the memory? No. The new axis has the
        [stride](#a_tensor_is_memory_and_a_way_to_read_it) `0`: the step in memory from one copy to
        the next is zero, so all three copies are the same numbers.
    """)
    picture: Float[Tensor, "h w"] = torch.zeros(9, 9)
    copies: Float[Tensor, "c h w"] = repeat(picture, "h w -> c h w", c=3)
    memory = copies.untyped_storage().nbytes()  # @inspect copies.nbytes as B, memory as B
    assert tuple(copies.shape) == (3, 9, 9), "The result shows three pictures."
    assert copies.stride() == (0, 9, 1), \
        "From copy to copy it is 0 steps, from row to row 9."
    assert copies.nbytes == 3 * memory, \
        "The memory holds a third of the numbers that are shown."

    note(r"""
        So a write to one copy changes all of them, and the picture as well. To change one copy
        alone, make real copies with `clone` first:
    """)
    copies[0, 4, 4] = 7  # @unnoticed: 0: any of the three
    assert copies[:, 4, 4].tolist() == [7, 7, 7], \
        "The write to one copy changed all three."
    assert picture[4, 4].item() == 7, "The write changed the picture, too."
    error = message_of(lambda: copies.add_(1))  # @hide
    assert "a single memory location" in error, "A write to the whole tensor is refused."  # @hide
    real = copies.clone()
    real[0, 4, 4] = 8
    assert real[:, 4, 4].tolist() == [8, 7, 7], \
        "The write to a real copy changed only this copy."
    assert real.stride() == (81, 9, 1), \
        "From real copy to real copy it is 81 steps, a whole picture."

    array = repeat(np.zeros((9, 9)), "h w -> c h w", c=3)  # @hide
    joined = repeat(picture, "h w -> (c h) w", c=3)  # @hide
    steps = array.strides[0] // array.itemsize, joined.stride()  # @hide
    assert steps == (81, (9, 1)), "Of a NumPy array, repeat makes real copies, 81 numbers apart."  # @hide
    assert not same_storage(picture, joined), "Joined to another axis, the copies are real."  # @hide
    question('The strides of `picture` are `(9, 1)`. What are the strides of `repeat(picture, "h w -> h c w", c=5)`?',
             answer=repeat(picture, "h w -> h c w", c=5).stride(),
        check=(9, 0, 1),
        why="`h` and `w` keep their strides, `9` and `1`. The new axis `c` stands between them, and has the stride `0`.")


@aside
def a_rearrange_layer_hides_the_input_size() -> None:
    """A pattern used as a layer should state the sizes that the next layer needs."""
    note(r"""
        A network for pictures often ends in linear layers, which take a fixed number of numbers.
        Where is it noticed if a picture has the wrong size? In the network below, two convolutions
        (`Conv2d`) and two poolings (`MaxPool2d`) make a picture smaller. Then a pattern, used as a
        layer with `Rearrange`, lays all numbers of a picture in one row. The linear layer after it
        takes `16 * 5 * 5 = 400` numbers. A picture of `32 * 32` leaves just as many. One of
        `28 * 28` leaves `16 * 4 * 4 = 256`, and the error comes from the linear layer.
        (`message_of` runs a call and returns its error.)
    """)
    network = nn.Sequential(
        nn.Conv2d(3, 6, kernel_size=5), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, kernel_size=5), nn.MaxPool2d(2),
        Rearrange("b c h w -> b (c h w)"),
        nn.Linear(16 * 5 * 5, 120), nn.ReLU(), nn.Linear(120, 10),
    )
    scores = network(torch.randn(2, 3, 32, 32))  # @inspect scores.shape  # @unnoticed: 32 -> 33: halved, they are as many
    assert tuple(scores.shape) == (2, 10), \
        "Pictures of 32 * 32 pass through the network."
    small = torch.randn(2, 3, 28, 28)  # @unnoticed: 28 -> 29: halved, they are as many
    late = message_of(lambda: network(small))  # @inspect late
    assert "(2x256 and 400x120)" in late, \
        "Pictures of 28 * 28 fail in the linear layer: 256 is not 400."

    def works(size: int) -> bool:  # @hide
        picture = torch.randn(1, 3, size, size)
        return message_of(lambda: network(picture)) == ""

    sizes = [size for size in range(16, 65) if works(size)]  # @hide
    assert sizes == [32, 33, 34, 35], "Of the sizes from 16 to 64, four run, since pooling drops a remainder."  # @hide
    note(r"""
        That error does not say that the *picture* was too small. The pattern can say it: give it
        the sizes that are expected, `h=5` and `w=5`. Then the error comes from the pattern, where
        the sizes are still sizes of a picture:
    """)
    network[4] = Rearrange("b c h w -> b (c h w)", h=5, w=5)  # @unnoticed: h= dropped, w= dropped: one of the two sizes is enough
    here = message_of(lambda: network(small))  # @inspect here
    assert "Shape mismatch, 4 != 5" in here, \
        "The pattern refuses a picture of height 4 where 5 is expected."
    passed = network(torch.randn(2, 3, 32, 32))  # @hide
    assert tuple(passed.shape) == (2, 10), "Pictures of 32 * 32 still pass."  # @hide
    question(r"""
        Each convolution takes `4` off height and width, and each pooling halves them. There are
        `16` channels at the end. How many numbers does a picture of `40 * 40` leave for the linear
        layer?
    """, answer=network[:4](torch.randn(1, 3, 40, 40)).numel(),
        check=16 * (((40 - 4) // 2 - 4) // 2) ** 2,
        wrong={
            "That is one channel of 16.": 49,
            "That leaves out the second convolution and pooling.": 16 * 18**2,
        },
        why=r"""
            `40 - 4 = 36` is halved to `18`, and `18 - 4 = 14` to `7`. So `16 * 7 * 7` numbers are
            left.
        """)


@aside
def einops_errors_repeat_the_pattern() -> None:
    """An einops error repeats the pattern and the shape that it was given."""
    note(r"""
        What does an error tell when a pattern does not fit a tensor? Here `x` has the shape
        `(2, 3, 9)`, and three patterns are wrong. The first splits the last axis into `2` equal
        heads, but `9` cannot be halved. The second leaves out the axis `s` on the right. The third
        names two axes, and `x` has three. `message_of` returns the error of each:
    """)
    x = torch.ones(2, 3, 9)
    pattern = "... (heads hidden) -> ... heads hidden"
    uneven = message_of(lambda: rearrange(x, pattern, heads=2))  # @inspect uneven
    forgotten = message_of(lambda: rearrange(x, "b s h -> b h"))  # @inspect forgotten
    missing = message_of(lambda: rearrange(x, "b s -> s b"))  # @inspect missing
    assert "can't divide axis of length 9" in uneven, \
        "The first error says that 9 cannot be divided."
    assert pattern in uneven, "The first error repeats the pattern."
    assert "torch.Size([2, 3, 9])" in uneven, \
        "The first error repeats the shape of x."
    assert "should be on both): {'s'}" in forgotten, \
        "The second error says that s is missing on one side."
    assert "expected 2 dims. Received 3" in missing, \
        "The third error says that two axes were expected, and three came."
    note("So each error comes where the mistake is, in the names that one has written.")
    def fits(heads: int) -> bool:
        wide = torch.ones(2, 3, 12)
        return message_of(lambda: rearrange(wide, pattern, heads=heads)) == ""

    question(r"""
        `"... (heads hidden) -> ... heads hidden"` splits a last axis of `12` numbers. For how many
        values of `heads` from `1` on does that raise no error?
    """, answer=sum(fits(heads) for heads in range(1, 13)),
        check=sum(12 % heads == 0 for heads in range(1, 13)),
        wrong={
            "1 and 12 divide 12 as well.": 4,
        },
        why="`heads` must divide `12`: `1`, `2`, `3`, `4`, `6` and `12` do.")
