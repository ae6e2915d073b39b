"""Matmuls, and axes that carry names."""
from counters import Watching
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
    a_matmul_sums_over_the_shared_axis()
    a_batched_matmul_is_one_large_matmul()
    a_forgotten_transpose_is_silent_on_squares()
    an_annotation_names_axes_and_a_checker_holds_it()
    einsum_sums_the_axes_left_out()
    reduce_names_the_axis_it_removes()
    the_order_in_the_parentheses_matters()
    repeat_copies_nothing()


def a_matmul_sums_over_the_shared_axis() -> None:
    """A matmul sums over the axis that its two matrices share."""
    note(r"""
        Nearly everything that a language model computes is a *matmul*, a matrix multiplication.
        What happens in one?

        By hand: the left matrix has a row `[1, 2, 3]`, and the right one has a column `[10, 1, 1]`.
        Multiply them element by element, and add up: `1 * 10 + 2 * 1 + 3 * 1 = 15`. That is one
        entry of the result. There is such an entry for each row of the left matrix and each column
        of the right one.

        The row and the column must have the same length, because each element of the row is
        multiplied by one of the column. They lie along an axis that both matrices share. The sum
        removes this axis, so the result does not have it: it is *contracted*.

        In a layer of a model, a row of the left matrix is a token, and a column of the right one
        holds the weights of an output. Here `16` tokens of `32` elements, the axis `hidden`, are
        multiplied by a matrix for `2` outputs. All elements are one:
    """)
    x: Float[Tensor, "token hidden"] = torch.ones(16, 32)
    w: Float[Tensor, "hidden out"] = torch.ones(32, 2)
    y: Float[Tensor, "token out"] = x @ w  # @inspect y.shape
    entries = set(y.flatten().tolist())  # the different values  # @inspect entries
    assert tuple(y.shape) == (16, 2), \
        "The result has an entry for each token and each output."
    assert entries == {32.0}, "Each entry is the sum of 32 products of ones."

    shapes = {name: (len(t), t.shape[1]) for name, t in {"x": x, "w": w, "y": y}.items()}  # @hide
    figure(rectangles([shapes], {"x": BLUE, "w": GREEN, "y": GOLD}), caption=r"""
        The two matrices and their product to scale. The width of `x` is the height of `w`, the axis
        that both share; `y` has the height of `x` and the width of `w`.
    """, alt="A wide rectangle, a narrow one twice as high, and a third as high as the first and as narrow as the second.")
    note(r"""
        So a layer fixes how many elements a token must have. How many tokens there are is free.
    """)
    question(r"""
        Now `1000` tokens of `32` elements are multiplied, instead of `16` tokens, and there are
        still `2` outputs. How many elements must `w` have?
    """, answer=w.numel(),
        check=32 * 2,
        wrong={
            "Those are the entries of the result.": 2000,
            "That is x, the left matrix.": 32000,
        },
        hint="Which axes does `w` have? Is the tokens' axis one of them?",
        why=r"""
            `w` has the axes `hidden` and `out`, with `32 * 2 = 64` elements. All tokens are
            multiplied by the same `w`, so their number does not matter.
        """)


def a_batched_matmul_is_one_large_matmul() -> None:
    """A batch times one matrix runs as a single large matmul."""
    note(r"""
        A layer of a language model multiplies all tokens of a batch by one matrix `w`. Does PyTorch
        run a small matmul for each sequence of the batch, or one large matmul for all? That
        matters, because small ones leave most of a GPU idle.

        By hand: $2$ sequences of $3$ tokens are two matrices of $3$ rows, and each is multiplied by
        `w`. Stack them into one matrix of $6$ rows, multiply it once, and cut the result in two
        again. Nothing changes, because each row of the result needs only its own row of the input,
        and all rows meet the same `w`.

        There can be several leading axes. Here `x` has the leading axes `4` and `8`, so it is a
        stack of `4 * 8 = 32` *sheets* of `16` rows each. `x @ w` multiplies each sheet by `w`.
        First as a loop over the sheets:
    """)
    x = whole_numbers(4, 8, 16, 32)  # random whole numbers
    w = whole_numbers(32, 2)
    y = x @ w  # @inspect y.shape
    looped = torch.zeros(4, 8, 16, 2)
    for i, j in np.ndindex(4, 8):
        looped[i, j] = x[i, j] @ w
    assert tuple(y.shape) == (4, 8, 16, 2), "The leading axes stay."  # @hide
    assert torch.equal(y, looped), \
        "The loop over the sheets gives the same result."

    note(r"""
        And now stacked into one tall matrix of `4 * 8 * 16 = 512` rows. Only the last axis of `x`
        is summed over, so the axes before it can become one. `operations_of` lists the operations
        that PyTorch really runs for `x @ w`. A matmul of two matrices is called `mm`; `view` and
        `_unsafe_view`, a kind of view, only change the shape:
    """)
    folded = (x.view(512, 32) @ w).view(4, 8, 16, 2)  # @inspect folded.shape
    operations = operations_of(lambda: x @ w)  # @inspect operations
    assert torch.equal(y, folded), \
        "Stacked, multiplied and cut again, the result is the same."
    assert operations.count("mm") == 1, \
        "PyTorch runs a single matmul of two matrices."
    figure(plot_folding(*x.shape, *w.shape[1:]), caption=rf"""
        The same matmul, as written (above) and as run (below). The {x.shape[2]} rows of each sheet
        become {x.shape[2]} neighbouring rows of the tall matrix, a band (drawn shorter than the
        sheet).
    """, alt=r"""
        Above, a stack of wide sheets in groups by batch, times one narrow matrix, gives a stack of
        thin sheets. Below, one tall matrix made of the same number of bands, times the same narrow
        matrix, gives one tall thin matrix.
    """)
    note(r"""
        So short sequences do not make the matmuls with weights small, if there are enough of them
        in the batch.
    """)
    question(r"""
        Now `x` has the shape `(5, 16, 32)`, and each of its `5` sheets is multiplied by a matrix of
        its own. How many matmuls of two matrices are needed?
    """, answer=len(torch.ones(5, 16, 32) @ torch.ones(5, 32, 2)),
        check=5 * 16 // 16,
        wrong={
            "All rows of one tall matrix meet the same matrix of weights.": 1,
            "The rows of one sheet do share their matrix.": 80,
        },
        hint="Which rows meet the same matrix?",
        why=r"""
            Rows can be stacked only if they meet the same matrix. Each sheet has its own, so there
            are `5` matmuls of `16` rows each.
        """)


class Operations(Watching):
    """While it is active, it lists the names of the operations that PyTorch runs."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        self.names.append(operation.overloadpacket.__name__)


def operations_of(call: Callable[[], object]) -> list[str]:
    """Runs `call` and returns the names of the operations that PyTorch runs for it."""
    with Operations() as seen:
        call()
    return seen.names


@aside
def a_forgotten_transpose_is_silent_on_squares() -> None:
    """A forgotten transpose of the last two axes raises an error in a matmul, except on square matrices."""
    note(r"""
        Does PyTorch notice a forgotten transpose? Take a matmul that needs one. To compare a token
        with another, multiply their elements one by one, and add up. The matmul of a sequence with
        its own transpose compares all pairs of its tokens at once.

        Here is a batch of `5` sequences, each of `2` tokens with `3` elements, all ones.
        `transpose(-2, -1)` swaps the last two axes:
    """)
    x = torch.ones(5, 2, 3)
    y = x @ x.transpose(-2, -1)  # @inspect y.shape
    assert tuple(y.shape) == (5, 2, 2), \
        "Each sequence has an entry for each pair of its tokens."
    entries = set(y.flatten().tolist())  # @hide
    assert entries == {3.0}, "Each entry is the sum of 3 products of ones."  # @hide

    note(r"""
        Without the transpose, PyTorch raises an error. The second matrix must have `3` rows, the
        number of columns of the first, and it has only `2`. PyTorch's message gives the first two
        sizes of the second tensor, sequences and rows: it needs `[5, 3]` and is `[5, 2]`.
        (`message_of` runs a call and returns its error.)
    """)
    error = message_of(lambda: x @ x)  # @inspect error
    assert "Expected size for first two" in error, \
        "The matmul without the transpose raises an error."

    note(r"""
        Now let each sequence have `3` tokens of `3` elements, so that its matrix is square. A
        square matrix can be multiplied by itself as well as by its transpose, so PyTorch raises no
        error, and the values are wrong:
    """)
    square = torch.arange(27.0).view(3, 3, 3)
    right = square @ square.transpose(-2, -1)  # @inspect right[0]
    wrong = square @ square  # @inspect wrong[0]
    assert right.shape == wrong.shape, \
        "With and without the transpose, the shape is the same."
    assert not torch.equal(right, wrong), \
        "With and without the transpose, the values differ."
    note(r"""
        So in a test of a matmul, give each axis a different size. Then the matmul raises an error
        if the transpose of the last two axes is forgotten.
    """)
    shapes = (2, 4, 4), (4, 4, 2), (2, 4, 8), (1, 8, 4), (3, 8, 8)  # @hide
    tried = [torch.ones(shape) for shape in shapes]  # @hide
    errors = [message_of(partial(torch.matmul, t, t)) for t in tried]  # @hide
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
    """An annotation states the dtype and the axes of a tensor; a call ignores it, unless a checker is attached."""
    note(r"""
        How can code say which axes a tensor has? With an annotation of the package jaxtyping
        [@jaxtyping]: `Float[Tensor, "batch seq heads hidden"]` describes a tensor of floats of any
        precision with four axes, one for each name. An axis may have any size, but where a name
        occurs twice, both axes have the same size: a `3 × 3` matrix fits `"n n"`, and a `3 × 4`
        matrix does not. `isinstance` tells whether a tensor fits:
    """)
    names: Any = Float[Tensor, "batch seq heads hidden"]
    x = torch.ones(2, 2, 1, 3)  # four axes; x[0] has three  # @unnoticed: 2, 1, 3: any sizes
    fits = [isinstance(value, names) for value in (x, x[0], x.int())]  # @inspect fits
    assert fits == [True, False, False], \
        "Only the tensor of floats with four axes fits."
    square: Any = Float[Tensor, "n n"]  # @hide
    assert not isinstance(torch.ones(3, 4), square), \
        "A 3 × 4 matrix does not fit n n."  # @hide
    note(r"""
        When a function is called, Python ignores such annotations. The decorator `jaxtyped`
        attaches a *checker*, which compares every argument of a call with its annotation, as
        `isinstance` did above, and raises an error if one does not fit [@jaxtyping_checking].
    """)

    def bare(  # @hide
        x: Float[Tensor, "b d"], w: Float[Tensor, "d k"]
    ) -> Float[Tensor, "b k"]:
        return x @ w

    checked = jaxtyped(typechecker=instance_checker)(bare)  # @hide
    x, w = torch.ones(5, 2, 3), torch.ones(3, 4)  # @hide
    assert bare(x, w).dim() == 3, \
        "Without a checker, a call runs although x has three axes."  # @hide
    refused = message_of(lambda: checked(x, w))  # @hide
    assert "checking parameter 'x'" in refused, \
        "With a checker, a call raises an error if x has three axes instead of two."  # @hide
    size = message_of(lambda: checked(x[0], torch.ones(7, 4)))  # @hide
    assert "checking parameter 'w'" in size, \
        "With the checker, a w whose d is 7 raises an error as well: the d of x is 3."  # @hide
    assert torch.equal(checked(x[0], w), x[0] @ w), "A call that fits the annotations runs as before."  # @hide
    misbelief("Such annotations are documentation only; nothing is ever enforced.",
              "Without a checker that is so. With one, the dtype, the number of axes, and equal sizes for equal names are enforced.")
    even = torch.ones(3, 3)  # @hide
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
        `x @ y.transpose(-2, -1)` computes the dot product of each row of `x` with each row of `y`,
        but it does not say which axes these are. `einsum` of einops names them. Its pattern lists
        the axes of the two tensors left of the arrow, and the axes of the result right of it. The
        rule: multiply the tensors, and sum over each axis that the result does not name.

        By hand, for the rows `[1, 2]` and `[3, 4]`: `"hidden, hidden ->"` names no axis of the
        result, so the products are summed, `1 * 3 + 2 * 4 = 11`.

        Here `x` is a batch of `2`, each with `3` rows, called `query`. `y` is a batch of `2`, each
        with `5` rows, called `key`. A row has `4` elements, called `hidden`. The result does not
        name `hidden`, so that axis is summed over. It names `batch`, so that axis is kept.
        `whole_numbers` draws small whole numbers, so that sums are exact:
    """)
    x, y = whole_numbers(2, 3, 4), whole_numbers(2, 5, 4)
    old = x @ y.transpose(-2, -1)
    pattern = "batch query hidden, batch key hidden -> batch query key"
    new = einsum(x, y, pattern)  # @inspect new.shape
    assert torch.equal(new, old), \
        "einsum gives what the matmul with the transpose gives."

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
        `einsum` is often called a matmul with good bookkeeping. But it does not check all sizes. If
        an axis has two different sizes, `einsum` raises an error, unless one of them is `1`. Then
        it uses that one element for every position. Here `hidden` has `4` elements in `x`, `7` in
        `wide`, and `1` in `thin`:
    """)
    front = "... query hidden, ... key hidden -> ... query key"  # @hide
    scores = einsum(whole_numbers(5, 2, 3, 4), y, front)  # @hide
    assert tuple(scores.shape) == (5, 2, 3, 5), \
        "The result has the axes 5 and 2 in front, then queries and keys."  # @hide
    wide, thin = torch.ones(2, 5, 7), torch.ones(2, 5, 1)
    error = message_of(lambda: einsum(x, wide, pattern))
    assert "does not broadcast" in error, "Sizes of 4 and 7 raise an error."
    stretched = einsum(x, thin, pattern)  # @inspect stretched.shape
    assert torch.equal(stretched[:, :, 0], x.sum(-1)), \
        "Sizes of 4 and 1 raise no error: the one element is used four times."
    note(r"""
        (In Einstein's convention of `1916` there was no arrow: every index that appears twice is
        summed over [@einstein1916].)
    """)
    question(r"""
        `a` and `b` are matrices of ones, both of shape `(3, 4)`. What is
        `einsum(a, b, "row col, row col ->")`?
    """, answer=einsum(torch.ones(3, 4), torch.ones(3, 4), "row col, row col ->").item(),
        check=3.0 * 4,
        wrong={
            "The rows are summed over as well: the result names no axis.": 4,
            "The columns are summed over as well: the result names no axis.": 3,
        },
        hint="Which axes does the result name, and which are summed over?",
        why=r"""
            No axis is named right of the arrow, so all products are added up: `3 * 4` products of
            `1 * 1`.
        """)


@aside
def reduce_names_the_axis_it_removes() -> None:
    """reduce() names the axis that it removes, and leaves it out after the arrow."""
    note(r"""
        To *reduce* an axis is to combine all values along it into one: the mean of the row `1 2 6`
        is `3`, and its sum is `9`. `x.mean(dim=-1)` reduces the last axis, and does not say which
        one that is. `reduce` of einops names it: the axis stands left of the arrow, and not right
        of it. `...` stands for all other axes. einops compares the names left and right of the
        arrow, but does not know whether the last axis really is `hidden`. Here each token has `4`
        elements, called `hidden`, and their mean is taken. (`whole_numbers` draws small whole
        numbers.)
    """)
    x = whole_numbers(2, 3, 4)  # batch, token, hidden
    old = x.mean(dim=-1)
    new = reduce(x, "... hidden -> ...", "mean")  # @inspect new
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
    listed = reduce([x, ones], "copy ... -> ...", "sum")  # @hide
    assert torch.equal(listed, x + ones), \
        "Given a list of two tensors, reduce adds them over the new axis copy."  # @hide
    table, each = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), "row col -> row"  # @hide
    products = reduce(table, each, "prod")  # @hide
    assert products.tolist() == [6, 120], "The products are 6 and 120."  # @hide
    misbelief('`reduce(x, "... hidden -> ...", "sum")` is the einops form of `x.mean(-1)`.',
              "It is the form of `x.sum(-1)`: for four ones it gives `4`, and their mean is `1`.")
    misbelief("`reduce` works on one tensor only.", r"""
        It takes a list of tensors of one shape as well, and stacks them along a new first axis that
        the pattern names: `reduce([x, y], "copy ... -> ...", "sum")` adds them.
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
    box, pattern = torch.ones(4, 5, 7), "batch seq hidden -> hidden"  # @hide
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
    """In `(heads hidden)` a head is a contiguous block; in `(hidden heads)` the heads are interleaved."""
    note(r"""
        A row of `8` elements must be split into `2` equal pieces, *heads*. Which elements belong to
        the first head? `rearrange` of einops splits axes: its pattern lists the old axes left of
        the arrow, and the new axes right of it [@rogozhnikov2022]. `(heads hidden)` is one old axis
        that is read as two.

        The order of the two names matters. Along the row, the index of the last name changes at
        every element, like the last digit of a counter. The index of the first name changes only
        when the last one wraps round to `0`. By hand, with `4` elements and `2` heads:

        | element | `0` | `1` | `2` | `3` |
        |---|---|---|---|---|
        | its head in `(heads hidden)` | `0` | `0` | `1` | `1` |
        | its head in `(hidden heads)` | `0` | `1` | `0` | `1` |

        Now a row of the values from `0` to `7` both ways:
    """)
    row = torch.arange(8.0)
    split = "(heads hidden) -> heads hidden"
    interleave = "(hidden heads) -> heads hidden"
    halves = rearrange(row, split, heads=2)  # @inspect halves
    interleaved = rearrange(row, interleave, heads=2)  # @inspect interleaved
    assert tuple(halves.shape) == (2, 4), \
        "The first pattern makes two heads of four elements."  # @hide
    assert interleaved.shape == halves.shape, \
        "Both patterns make a tensor of the same shape."
    assert halves.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]], \
        "With (heads hidden), the first head has the values 0 to 3."
    assert interleaved.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]], \
        "With (hidden heads), the first head has every other value."
    assert same_storage(row, halves), "Splitting copies no number."  # @hide
    w = whole_numbers(4, 4)  # @hide
    joined = (halves @ w).flatten()  # @hide
    assert torch.equal(joined, row @ block_diag(w, w)), "One matrix with w twice on its diagonal does to the row what w does to both heads."  # @hide
    note("So the shape does not show which of the two was meant; the values do.")
    uneven = message_of(lambda: rearrange(torch.ones(9), split, heads=2))  # @hide
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
            The last name, `a`, increases at every element, and `b` at every third. `b = 1` begins
            at `3`, and `a = 2` is two elements further on.
        """)


@aside
def repeat_copies_nothing() -> None:
    """einops' repeat() along a new axis copies no data, so a write to one repetition changes all."""
    note(r"""
        In the einops pattern `"h w -> c h w"`, `c` appears only right of the arrow. It is a new
        axis, and `repeat` repeats the tensor along it. Here a picture of `9 * 9` elements is
        repeated `3` times. Does that need `3` times the memory? No. The new axis has the
        [stride](#a_tensor_is_memory_and_a_way_to_read_it) `0`: the step in memory from one
        repetition to the next is zero, so all three are the same elements in memory.
    """)
    picture: Float[Tensor, "h w"] = torch.zeros(9, 9)
    views: Float[Tensor, "c h w"] = repeat(picture, "h w -> c h w", c=3)
    memory = views.untyped_storage().nbytes()  # @inspect views.nbytes as B, memory as B
    assert tuple(views.shape) == (3, 9, 9), "The result has three pictures."  # @hide
    assert views.stride() == (0, 9, 1), \
        "From repetition to repetition the stride is 0, from row to row 9."
    assert views.nbytes == 3 * memory, \
        "The storage has a third of the bytes that views.nbytes reports."

    note(r"""
        So a write to one repetition changes all of them, and the picture as well. To change one
        alone, make copies with `clone` first:
    """)
    views[0, 4, 4] = 7  # @unnoticed: 0: any of the three
    assert views[:, 4, 4].tolist() == [7, 7, 7], \
        "The write to one repetition changed all three."
    assert picture[4, 4].item() == 7, "The write changed the picture as well."
    error = message_of(lambda: views.add_(1))  # @hide
    assert "a single memory location" in error, "A write to the whole tensor is refused."  # @hide
    copies = views.clone()
    copies[0, 4, 4] = 8
    assert copies[:, 4, 4].tolist() == [8, 7, 7], \
        "The write to a copy changed only this copy."
    assert copies.stride() == (81, 9, 1), \
        "From copy to copy the stride is 81, a whole picture."  # @hide

    array = repeat(np.zeros((9, 9)), "h w -> c h w", c=3)  # @hide
    joined = repeat(picture, "h w -> (c h) w", c=3)  # @hide
    steps = array.strides[0] // array.itemsize, joined.stride()  # @hide
    assert steps == (81, (9, 1)), "For a NumPy array, repeat makes real copies, 81 elements apart."  # @hide
    assert not same_storage(picture, joined), "Joined to another axis, the copies are real."  # @hide
    question('The strides of `picture` are `(9, 1)`. What are the strides of `repeat(picture, "h w -> h c w", c=5)`?',
             answer=repeat(picture, "h w -> h c w", c=5).stride(),
        check=(9, 0, 1),
        why="`h` and `w` keep their strides, `9` and `1`. The new axis `c` is between them, and has the stride `0`.")
