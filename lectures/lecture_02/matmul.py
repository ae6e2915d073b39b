"""Matmuls, and axes that carry names."""
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
from torch import Tensor
from plots import BLUE, GOLD, GREEN
from tiles import rectangles

from litbook import aside, figure, misbelief, note, question

from .figures import plot_folding
from .measure import message_of, same_storage
from .models import whole_numbers

block_diag: Callable[..., Tensor] = torch.block_diag  # typed here; torch leaves it untyped


def matmul_and_named_axes() -> None:
    """Matmuls and named axes."""
    note(r"""
        Forget to transpose a square matrix and PyTorch raises no error: the matmul has the right
        shape and the wrong values. Axes that are known only by position make such slips easy to
        make and hard to see. This part counts what matmuls cost, and then gives the axes names.
    """)
    a_product_contracts_one_axis()
    a_batched_product_is_one_folded_product()
    a_forgotten_transpose_is_silent_on_squares()
    an_annotation_names_axes_and_a_checker_holds_it()
    einsum_sums_the_axes_left_out()
    reduce_names_the_axis_it_removes()
    the_order_in_the_parentheses_matters()
    heads_share_a_small_matrix()
    repeat_copies_nothing()


def a_product_contracts_one_axis() -> None:
    """A matmul sums over the axis that its two matrices share."""
    note(r"""
        Nearly everything that a language model computes is a matmul. What happens in one? Take a
        row of the left matrix and a column of the right one, multiply them element by element, and
        add up the products. The sum is one entry of the result. There is an entry for each row of
        the left matrix, here a token, and each column of the right one, here an output. The axis
        that is summed over, `hidden`, is in both matrices, and not in the result: it is
        *contracted*.

        Here `16` tokens of `32` elements are multiplied by a matrix for `2` outputs. All elements
        are one, so each entry adds up `32` ones:
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
        that both share; `y` has the height of `x` and the width of `w`.
    """, alt="A wide rectangle, a narrow one twice as high, and a third as high as the first and as narrow as the second.")
    question(r"""
        A matrix of ones has `100` rows and `64` columns, and another one has `64` rows and `8`
        columns. How many entries does their product have, and what is the value of each? Give two
        numbers.
    """, answer=[(torch.ones(100, 64) @ torch.ones(64, 8)).numel(), (torch.ones(1, 64) @ torch.ones(64, 1)).item()],
        check=[100 * 8, 64.0],
        hint="Which axis is in both matrices, and which axes are left?",
        why=r"""
            There is an entry for each of `100` rows and each of `8` columns, which makes `800`.
            Each adds up `64` products of `1 * 1`, since the axis of `64` is the one that both
            share.
        """)


def a_batched_product_is_one_folded_product() -> None:
    """A batch times one matrix runs as a single large matmul."""
    note(r"""
        A language model multiplies a whole batch by one matrix of weights. Does the machine run
        many small matmuls for that, or one large one? That matters, because a GPU is fast only with
        large ones.

        Take a tensor `x` with two leading axes of `4` and `8`. That makes `4 * 8 = 32` sheets, each
        a matrix of `16` rows and `32` columns. `x @ w` multiplies each sheet by `w`. A loop over
        the sheets gives the same result. (`whole_numbers` draws small whole numbers, so that sums
        are exact.)
    """)
    first, second, rows, inner, out = 4, 8, 16, 32, 2
    x = whole_numbers(first, second, rows, inner)
    w: Float[Tensor, "inner out"] = whole_numbers(inner, out)
    y: Float[Tensor, "first second row out"] = x @ w  # @inspect y.shape
    looped = torch.zeros(first, second, rows, out)
    for i, j in np.ndindex(first, second):
        looped[i, j] = x[i, j] @ w
    assert tuple(y.shape) == (4, 8, 16, 2), "The leading axes stay."  # @hide
    assert torch.equal(y, looped), \
        "The loop over the sheets gives the same result."

    note(r"""
        But PyTorch does not run a loop. It stacks the rows of all sheets into one tall matrix of
        `4 * 8 * 16 = 512` rows, and multiplies it once. The result is the same, because each row of
        it needs only its own row of `x`, and the same `w`. (Only the last axis is *contracted*,
        which means summed over.)

        The tall result has `512 * 2` entries, each a sum of `32` terms, with a multiplication and
        an addition for each term: `2 * 512 * 32 * 2` FLOPs. `flops_by_operation` lists each
        operation that ran with its FLOPs. There is a single `aten.mm`, PyTorch's name for a matmul
        of two matrices:
    """)
    folded = (x.reshape(512, 32) @ w).view(4, 8, 16, 2)  # @inspect folded.shape
    reported = flops_by_operation(lambda: x @ w)  # @inspect reported as FLOP
    tall = first * second * rows  # @inspect tall
    by_hand = 2 * tall * inner * out  # @inspect by_hand as FLOP
    assert torch.equal(y, folded), \
        "Stacked, multiplied and split again, the result is the same."
    assert reported == {"aten.mm": by_hand}, \
        "PyTorch ran one matmul, with the FLOPs that we counted by hand."
    assert by_hand == 65536, "That is 2 times 512 rows times 32 times 2."  # @hide
    figure(plot_folding(first, second, rows, inner, out), caption=rf"""
        The same matmul, as written (above) and as run (below). The {rows} rows of each sheet become
        {rows} neighbouring rows of the tall matrix, a band. (The bands are drawn less high than the
        sheets, so that the tall matrix fits.)
    """, alt=r"""
        Above, a stack of wide sheets in groups by batch, times one narrow matrix, gives a stack of
        thin sheets. Below, one tall matrix made of the same number of bands, times the same narrow
        matrix, gives one tall thin matrix.
    """)
    question(r"""
        How many FLOPs does `x @ w` cost, if `x` has the shape `(2, 5, 6, 10)` and `w` the shape
        `(10, 3)`?
    """, answer=flops(lambda: torch.ones(2, 5, 6, 10) @ torch.ones(10, 3)),
        wrong={
            "The additions are missing.": 2 * 5 * 6 * 10 * 3,
            "That is one sheet; there are ten of them.": 2 * 6 * 10 * 3,
        },
        check=2 * (2 * 5 * 6) * 10 * 3,
        hint="How many rows are left when all leading axes are stacked?",
        why=r"""
            The tall matrix has `2 * 5 * 6 = 60` rows of `10` elements, and `w` has `3` columns. So
            there are `60 * 3` entries of `10` terms, and `2` FLOPs for each term:
            `2 * 60 * 10 * 3 = 3600`.
        """, unit="FLOP")


@aside
def a_forgotten_transpose_is_silent_on_squares() -> None:
    """A forgotten transpose raises an error, except on square matrices."""
    note(r"""
        Does PyTorch notice a forgotten transpose? Take a matmul that needs one. Each token is a row
        of elements. To compare a token with another, multiply their rows element by element, and
        add up. One matmul, of the sequence with its own transpose, compares all tokens of a
        sequence. `transpose(-2, -1)` swaps the last two axes. Here `2` sequences have `2` tokens of
        `3` elements each, all ones:
    """)
    x: Float[Tensor, "batch seq hidden"] = torch.ones(2, 2, 3)
    y = x @ x.transpose(-2, -1)  # @inspect y.shape
    assert tuple(y.shape) == (2, 2, 2), \
        "Each sequence has an entry for each pair of its tokens."
    entries = set(y.flatten().tolist())  # @inspect entries
    assert entries == {3.0}, "Each entry is the sum of 3 products of ones."

    note(r"""
        Leave the transpose out, and PyTorch raises an error: a matrix of `2 * 3` elements cannot be
        multiplied by another one of `2 * 3`. (`message_of` runs a call and returns its error.)
    """)
    error = message_of(lambda: x @ x)  # @inspect error
    assert "Expected size for first two" in error, \
        "The matmul without the transpose is refused."

    note(r"""
        Now let each sequence have `3` tokens of `3` elements. Its matrix is square. A square matrix
        can be multiplied by itself as well as by its transpose, so PyTorch raises no error, and the
        values are wrong:
    """)
    square = torch.arange(27.0).view(3, 3, 3)
    right = square @ square.transpose(-2, -1)  # @inspect right[0]
    wrong = square @ square  # @inspect wrong[0]
    assert right.shape == wrong.shape, \
        "With and without the transpose, the shape is the same."
    assert not torch.equal(right, wrong), \
        "With and without the transpose, the values differ."
    note(r"""
        So in a test, give each axis a different size. Then a forgotten transpose raises an error.
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
            "(4, 4, 2) holds matrices of 4 * 2 elements; the first size counts the matrices.": 3,
        },
        why=r"""
            The last two sizes are the sizes of the matrices. The matrices are square in `(2, 4, 4)`
            and in `(3, 8, 8)`, so only they can be multiplied by themselves.
        """)


@aside
def an_annotation_names_axes_and_a_checker_holds_it() -> None:
    """An annotation states the dtype and the axes of a tensor; only a checker enforces it."""
    note(r"""
        How can code say which axes a tensor has? By an annotation of the package jaxtyping
        [@jaxtyping]: `Float[Tensor, "batch seq heads hidden"]` describes a tensor of floats with
        one axis for each name. A name stands for any size, but for the same size wherever it occurs.
        `isinstance` tells whether a tensor fits:
    """)
    names: Any = Float[Tensor, "batch seq heads hidden"]
    x = torch.ones(2, 2, 1, 3)  # @unnoticed: 2, 1, 3: any sizes
    fits = [isinstance(value, names) for value in (x, x[0], x.int())]  # @inspect fits
    assert fits == [True, False, False], \
        "Only the tensor of floats with four axes fits."
    square: Any = Float[Tensor, "n n"]
    assert not isinstance(torch.ones(3, 4), square), \
        "A matrix of 3 * 4 elements does not fit n n."
    note(r"""
        Python itself does not look at annotations when a function is called. A *decorator* makes
        every call check them: a *checker* compares each argument with its annotation, and
        `jaxtyped` makes sure that a name stands for one size in the whole call
        [@jaxtyping_checking]. `bare` and `checked` are the same function, without and with the
        decorator. The first argument should have two axes; give it three:
    """)

    def bare(
        x: Float[Tensor, "b d"], w: Float[Tensor, "d k"]
    ) -> Float[Tensor, "b k"]:
        return x @ w

    checked = jaxtyped(typechecker=instance_checker)(bare)
    x, w = torch.ones(5, 2, 3), torch.ones(3, 4)  # @unnoticed: 5, 2, 4: any sizes beside the inner one
    assert bare(x, w).dim() == 3, \
        "Without a checker, the call runs and returns three axes."
    refused = message_of(lambda: checked(x, w))
    size = message_of(lambda: checked(x[0], torch.ones(7, 4)))
    assert "checking parameter 'x'" in refused, \
        "With the checker, the call is refused at x."
    assert "checking parameter 'w'" in size, \
        "With the checker, a w whose d differs from the d of x is refused as well."
    assert torch.equal(checked(x[0], w), x[0] @ w), "A call that fits the annotations runs as before."  # @hide
    misbelief("Such annotations are documentation only; nothing is ever enforced.", r"""
        Without a checker that is so. With one, dtype, number of axes and sizes are enforced. When a
        page of this book is built, the annotated variables are checked as well.
    """)
    even = torch.ones(3, 3)
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
            "Doubles are floats as well.": 2,
            "Integers do not fit Float.": 4,
        },
        why=r"""
            `torch.ones(9)` has one axis, and `.int()` makes integers. The other three are square
            matrices of floats; the matmul gives the shape `(2, 2)`.
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
def einsum_sums_the_axes_left_out() -> None:
    """einsum sums over the axes that its result does not name."""
    note(r"""
        `x @ y.transpose(-2, -1)` multiplies each row of `x` by each row of `y`, but it does not say
        which axes these are. `einsum` of einops says it with names. Its pattern lists the axes of
        the two tensors left of the arrow, and the axes of the result right of it. The rule:
        multiply the tensors, and sum over each axis that the result does not name. The rule is old:
        by Einstein's convention of `1916`, an index that appears twice is summed over
        [@einstein1916].

        Here `x` has `2` batches of `3` rows, called `query`, and `y` has `2` batches of `5` rows,
        called `key`. A row has `4` elements, called `hidden`. The result does not name `hidden`, so
        that axis is summed over. (`whole_numbers` draws small whole numbers, so that sums are
        exact.)
    """)
    x: Float[Tensor, "batch query hidden"] = whole_numbers(2, 3, 4)
    y: Float[Tensor, "batch key hidden"] = whole_numbers(2, 5, 4)
    pattern = "batch query hidden, batch key hidden -> batch query key"
    old: Float[Tensor, "batch query key"] = x @ y.transpose(-2, -1)
    new: Float[Tensor, "batch query key"] = einsum(x, y, pattern)  # @inspect new
    assert torch.equal(new, old), \
        "einsum gives what the matmul with the transpose gives."  # @hide

    note(r"""
        A pattern can be read as loops. There is a loop over each name right of the arrow: `batch`,
        `query` and `key`. Inside is a sum over the name that is missing there, `hidden`:
    """)
    looped = torch.zeros(2, 3, 5)
    for batch, query, key in np.ndindex(2, 3, 5):
        looped[batch, query, key] = (x[batch, query] * y[batch, key]).sum()
    assert tuple(new.shape) == (2, 3, 5), \
        "The result has an axis for each name right of the arrow."  # @hide
    assert torch.equal(new, looped), "The loops give the same result."
    summed = einsum(x, "batch query hidden -> batch query")  # @hide
    assert torch.equal(summed, x.sum(-1)), \
        "einsum of x alone gives what x.sum(-1) gives."  # @hide
    note(r"""
        `einsum` is often called a matmul with good bookkeeping. Yet it refuses a name with two
        sizes only if neither of them is `1`:
    """)
    front = "... query hidden, ... key hidden -> ... query key"  # @hide
    scores = einsum(whole_numbers(5, 2, 3, 4), y, front)  # @hide
    assert tuple(scores.shape) == (5, 2, 3, 5), \
        "The result has the axes 5 and 2 in front, then queries and keys."  # @hide
    wide, thin = torch.ones(2, 5, 7), torch.ones(2, 5, 1)
    error = message_of(lambda: einsum(x, wide, pattern))
    assert "does not broadcast" in error, \
        "A hidden of 4 and one of 7 are refused."
    stretched = einsum(x, thin, pattern)
    assert torch.equal(stretched[:, :, 0], x.sum(-1)), \
        "A hidden of 4 and one of 1 are not: the one element is used four times."
    question(r"""
        `a` and `b` are matrices of ones, both of shape `(3, 4)`. What is
        `einsum(a, b, "row col, row col ->")`?
    """, answer=einsum(torch.ones(3, 4), torch.ones(3, 4), "row col, row col ->").item(),
        check=3.0 * 4,
        wrong={
            "The rows are summed over as well: the result names no axis.": 4,
            "The columns are summed over as well: the result names no axis.": 3,
        },
        why=r"""
            No axis is named right of the arrow, so all products are added up: `3 * 4` products of
            `1 * 1`.
        """)


@aside
def reduce_names_the_axis_it_removes() -> None:
    """reduce() removes the axis that its pattern names on the left only."""
    note(r"""
        To *reduce* an axis is to combine all values along it into one, such as their mean.
        `x.mean(dim=-1)` reduces the last axis, and does not say which one that is. `reduce` of
        einops names it: the pattern has the axis left of the arrow, and not right of it. `...`
        stands for all other axes. Here each token has `4` elements, called `hidden`, and their mean
        is taken. (`whole_numbers` draws small whole numbers.)
    """)
    x: Float[Tensor, "batch seq hidden"] = whole_numbers(2, 3, 4)
    old: Float[Tensor, "batch seq"] = x.mean(dim=-1)
    new: Float[Tensor, "batch seq"] = reduce(x, "... hidden -> ...", "mean")  # @inspect new
    assert torch.equal(new, old), \
        "reduce gives what x.mean(dim=-1) gives."
    assert tuple(new.shape) == (2, 3), "The axis hidden is gone."  # @hide

    note(r"""
        The last argument says *how* to reduce, here `"mean"`. With `"sum"`, four ones make `4`:
    """)
    ones = torch.ones(2, 3, 4)
    total = reduce(ones, "... hidden -> ...", "sum")
    assert total.tolist() == [[4, 4, 4], [4, 4, 4]], \
        "The sums are 4."
    assert torch.equal(total, ones.sum(-1)), \
        "reduce with sum gives what x.sum(-1) gives."
    table, each = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), "row col -> row"  # @hide
    products = reduce(table, each, "prod")  # @hide
    assert products.tolist() == [6, 120], "The products are 6 and 120."  # @hide
    doubled = reduce([table, 10 * table], "copy row col -> row col", "sum")  # @hide
    assert torch.equal(doubled, 11 * table), "A list of two tensors is added up over the new axis copy."  # @hide
    misbelief('`reduce(x, "... hidden -> ...", "sum")` is the einops form of `x.mean(-1)`.',
        r"""
            It is the form of `x.sum(-1)`: for four ones it gives `4`, and their mean is `1`. CS336
            shows the two side by side, as the new way and the old one [@cs336].
        """)
    misbelief("`reduce` works on one tensor only.", r"""
        It takes a list of tensors of one shape as well, and stacks them along a new first axis that
        the pattern names: `reduce([x, y], "copy row col -> row col", "sum")` adds them.
    """)
    picture: Float[Tensor, "h w"] = whole_numbers(9, 9)  # @hide
    tiles = "(h tile_h) (w tile_w) -> h w"  # @hide
    pooled = reduce(picture, tiles, "mean", tile_h=3, tile_w=3)  # @hide
    old = picture.unsqueeze(0).unsqueeze(0)  # @hide
    assert tuple(old.shape) == (1, 1, 9, 9), \
        "unsqueeze makes a batch of one picture with one channel."  # @hide
    library = F.avg_pool2d(old, kernel_size=3)  # @hide
    assert torch.allclose(library[0, 0], pooled), \
        "PyTorch's pooling gives the same means."  # @hide
    box, pattern = torch.ones(4, 5, 7), "batch seq hidden -> hidden"  # @unnoticed: 7, arguments swapped: axes that are not reduced
    question(r"""
        A tensor of shape `(4, 5, 7)` is reduced by `batch seq hidden -> hidden`. The sum is how
        many times the mean?
    """, answer=(reduce(box, pattern, "sum") / reduce(box, pattern, "mean")).unique().item(),
        check=4.0 * 5, unit="times",
        wrong={
            "hidden is right of the arrow, so it is not reduced.": 4 * 5 * 7,
        },
        why=r"""
            `batch` and `seq` are reduced, so `4 * 5` elements become one. Their mean is their sum
            divided by `20`.
        """)


@aside
def the_order_in_the_parentheses_matters() -> None:
    """In `(heads hidden)` a head is a run of neighbours; in `(hidden heads)` the heads take turns."""
    note(r"""
        A row of `8` elements is to be split into `2` *heads*, which are equal pieces. Which
        elements belong to the first head? `rearrange` of einops splits axes: its pattern lists the
        old axes left of the arrow, and the new axes right of it [@rogozhnikov2022].
        `(heads hidden)` is one axis, to be read as two. The order of the names matters, because the
        index of the last name changes fastest: it goes up by one from each element to the next. In
        `(heads hidden)` the last name is `hidden`, so neighbours belong to one head. In
        `(hidden heads)` neighbours belong to different heads. Split rows both ways; the first row
        has the values from `0` to `7`:
    """)
    x: Float[Tensor, "batch seq joint"] = torch.arange(48.0).view(2, 3, 8)
    split = "... (heads hidden) -> ... heads hidden"
    deal = "... (hidden heads) -> ... heads hidden"
    halves = rearrange(x, split, heads=2)  # @inspect halves[0, 0]
    turns = rearrange(x, deal, heads=2)  # @inspect turns[0, 0]
    runs, strided = halves[0, 0].tolist(), turns[0, 0].tolist()
    assert tuple(halves.shape) == (2, 3, 2, 4), \
        "The first pattern makes two heads of four elements."
    assert turns.shape == halves.shape, \
        "The second pattern makes a tensor of the same shape."
    assert runs == [[0, 1, 2, 3], [4, 5, 6, 7]], \
        "With (heads hidden), the first head has the values 0 to 3."
    assert strided == [[0, 2, 4, 6], [1, 3, 5, 7]], \
        "With (hidden heads), the first head has every other value."
    assert same_storage(x, halves), "Splitting copies no number."  # @hide
    note("So the shape does not show which of the two was meant; only the values do.")
    uneven = message_of(lambda: rearrange(torch.ones(2, 3, 9), split, heads=2))  # @hide
    assert "can't divide axis of length 9" in uneven, \
        "The first error says that 9 cannot be divided."  # @hide
    image = torch.randn(3, 3, 9)  # @hide
    parts = rearrange(image, "c (r p) w -> c r p w", p=3)  # @hide
    assert tuple(parts.shape) == (3, 1, 3, 9), "One of two sizes may be left out: 3 rows in groups of 3 are one group."  # @hide
    new, array = rearrange(image, "h w c -> c h w"), rearrange(image.numpy(), "h w c -> c h w")  # @hide
    assert tuple(new.shape) == (9, 3, 3), "The channels come first."  # @hide
    assert type(array) is np.ndarray, "A NumPy array stays a NumPy array."  # @hide
    lay = Rearrange("b c h w -> b (c h w)", h=5, w=5)  # @hide
    small = message_of(lambda: lay(torch.ones(2, 16, 4, 4)))  # @hide
    assert "Shape mismatch, 4 != 5" in small, "A pattern as a layer of a model refuses a size that it does not expect."  # @hide
    question(r"""
        `v` has the values from `0` to `11`. `rearrange(v, "(b a) -> a b", a=3)` is a matrix with a
        row for each index of `a` and a column for each index of `b`. What does it have in row `2`
        and column `1`, both counted from `0`?
    """, answer=rearrange(torch.arange(12), "(b a) -> a b", a=3)[2, 1].item(),
        check=1 * 3 + 2,
        wrong={
            "That is for (a b), where neighbours lie along b.": 9,
        },
        why=r"""
            The last name, `a`, changes fastest: `a` goes up by one with each element, and `b` with
            every third. `b = 1` begins at `3`, and `a = 2` is two elements further on.
        """)


@aside
def heads_share_a_small_matrix() -> None:
    """Splitting an axis into heads makes a matmul cheaper."""
    note(r"""
        In a Transformer, the row of elements of a token is often cut into equal pieces, *heads*,
        that are multiplied separately. What does that save? Here a row of `8` elements is cut into
        `2` heads of `4`. Each head is multiplied by the same `4 * 4` matrix `w`, and the results
        are put side by side again.

        `rearrange` cuts and joins: in its pattern, `(heads hidden1)` is one axis of
        `heads * hidden1` elements. `einsum` multiplies, and sums over `hidden1`, the name that its
        result does not have:
    """)
    x: Float[Tensor, "batch seq joint"] = whole_numbers(2, 3, 8)
    w: Float[Tensor, "hidden1 hidden2"] = whole_numbers(4, 4)
    split = "... (heads hidden1) -> ... heads hidden1"
    heads = rearrange(x, split, heads=2)
    mixed = einsum(heads, w, "... hidden1, hidden1 hidden2 -> ... hidden2")
    joined = rearrange(mixed, "... heads hidden2 -> ... (heads hidden2)")  # @inspect joined.shape
    assert tuple(heads.shape) == (2, 3, 2, 4), \
        "There are 2 heads of 4 elements for each token."
    assert joined.shape == x.shape, "After joining, the tensor has its old shape."  # @hide

    note(r"""
        One matrix of `8 * 8` elements gives the same result. `block_diag` makes it: `w` is on its
        diagonal, once for each head, and everything else is zero, because a head uses no element of
        another head. But the large matmul multiplies by these zeros as well. At `2` FLOPs for each
        weight, a token costs `2 * (4 * 4)` in each of `2` heads, together `64`, and
        `2 * (8 * 8) = 128` with the large matrix:
    """)
    dense: Float[Tensor, "joint joint"] = block_diag(w, w)  # @inspect dense
    assert torch.equal(joined, x @ dense), \
        "The large matrix gives the same result."
    split_cost = flops(lambda: heads @ w)  # @inspect split_cost as FLOP
    dense_cost = flops(lambda: x @ dense)  # @inspect dense_cost as FLOP
    assert dense_cost == 2 * split_cost, \
        "The large matrix takes twice the FLOPs of two heads."
    question(r"""
        A row of `512` elements is cut into `8` heads of `64`. One matrix of `512 * 512` costs how
        many times the FLOPs of the heads?
    """, answer=flops(lambda: torch.ones(1, 512) @ torch.eye(512))
        // flops(lambda: torch.ones(8, 64) @ torch.eye(64)),
        check=(512 * 512) // (8 * 64 * 64), unit="times",
        wrong={
            "That compares with one head; there are eight.": 64,
        },
        hint="How many multiplications does a row take with heads, and how many without?",
        why=r"""
            The heads take `8 * 64 * 64` multiplications per row. The large matrix takes
            `512 * 512`, which is `8` times as many. All but one eighth of its elements are zeros.
        """)


@aside
def repeat_copies_nothing() -> None:
    """einops' repeat() copies no data: all copies share memory, so a write to one changes all."""
    note(r"""
        A name that appears only *right* of the arrow of an einops pattern is a new axis, and
        `repeat` repeats the tensor along it. Here a picture of `9 * 9` elements is repeated `3`
        times. Does that take `3` times the memory? No. The new axis has the
        [stride](#a_tensor_is_memory_and_a_way_to_read_it) `0`: the step in memory from one copy to
        the next is zero, so all three copies are the same elements in memory.
    """)
    picture: Float[Tensor, "h w"] = torch.zeros(9, 9)
    copies: Float[Tensor, "c h w"] = repeat(picture, "h w -> c h w", c=3)
    memory = copies.untyped_storage().nbytes()  # @inspect copies.nbytes as B, memory as B
    assert tuple(copies.shape) == (3, 9, 9), "The result shows three pictures."
    assert copies.stride() == (0, 9, 1), \
        "From copy to copy the stride is 0, from row to row 9."
    assert copies.nbytes == 3 * memory, \
        "The memory holds a third of the elements that are shown."

    note(r"""
        So a write to one copy changes all of them, and the picture as well. To change one copy
        alone, make real copies with `clone` first:
    """)
    copies[0, 4, 4] = 7  # @unnoticed: 0: any of the three
    assert copies[:, 4, 4].tolist() == [7, 7, 7], \
        "The write to one copy changed all three."
    assert picture[4, 4].item() == 7, "The write changed the picture as well."
    error = message_of(lambda: copies.add_(1))  # @hide
    assert "a single memory location" in error, "A write to the whole tensor is refused."  # @hide
    real = copies.clone()
    real[0, 4, 4] = 8
    assert real[:, 4, 4].tolist() == [8, 7, 7], \
        "The write to a real copy changed only this copy."
    assert real.stride() == (81, 9, 1), \
        "From real copy to real copy the stride is 81, a whole picture."

    array = repeat(np.zeros((9, 9)), "h w -> c h w", c=3)  # @hide
    joined = repeat(picture, "h w -> (c h) w", c=3)  # @hide
    steps = array.strides[0] // array.itemsize, joined.stride()  # @hide
    assert steps == (81, (9, 1)), "For a NumPy array, repeat makes real copies, 81 elements apart."  # @hide
    assert not same_storage(picture, joined), "Joined to another axis, the copies are real."  # @hide
    question('The strides of `picture` are `(9, 1)`. What are the strides of `repeat(picture, "h w -> h c w", c=5)`?',
             answer=repeat(picture, "h w -> h c w", c=5).stride(),
        check=(9, 0, 1),
        why="`h` and `w` keep their strides, `9` and `1`. The new axis `c` is between them, and has the stride `0`.")
