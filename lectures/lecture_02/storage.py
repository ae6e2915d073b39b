"""Storage, strides and views: when two tensors are one memory."""
import io
import struct
import warnings
from typing import Any

import torch
from jaxtyping import Float, Int
from timing import SLACK, quickest, time_call
from torch import Tensor
from units import KiB, MiB

from litbook import aside, explore, misbelief, note, question

from .figures import plot_strides
from .measure import message_of, same_storage


def storage_and_views() -> None:
    """Storage, strides and views."""
    note(r"""
        Transposing a matrix moves none of its numbers. Nor does taking a column, or cutting a block
        out of the middle. A tensor is a short record that says how to read a line of memory, and
        most of what looks like rearranging data only writes another record.
    """)
    a_tensor_is_memory_and_a_way_to_read_it()
    strides_turn_an_index_into_an_address()
    a_storage_is_indexed_by_bytes()
    basic_indexing_shares_and_picking_copies()
    view_gives_the_same_numbers_another_shape()
    a_transpose_swaps_strides()
    contiguous_means_reading_in_storage_order()
    some_shapes_cannot_be_a_view()
    a_view_needs_axes_that_merge()
    contiguous_copies_only_when_it_must()
    a_small_view_keeps_everything_alive()
    a_view_costs_the_same_at_any_size()


def a_tensor_is_memory_and_a_way_to_read_it() -> None:
    """A tensor is a line of memory and a record of how to read it."""
    note(r"""
        Take a column out of a matrix, and no number is copied. How then does the column find its
        numbers? A tensor has two parts. Its numbers lie one after the other in memory; this is the
        *storage*. A record, the *metadata*, says how to read them: the dtype; the shape; the place
        where to begin, the *offset*; and for each axis a *stride*, the number of elements from one
        index to the next.

        A new matrix lies in memory row by row, which is called *row-major*. In a matrix of `2` rows
        and `3` columns, the next row is `3` elements on, and the next column `1`. So the strides
        are `(3, 1)`, and element $(i, j)$ lies at

        $$
        \text{offset} + i \cdot 3 + j \cdot 1
        $$

        The middle column begins at element `1`, and its next element is a row further on. So it has
        the offset `1` and the stride `3`:
    """)
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    middle = x[:, 1]  # @inspect middle
    whole = x.storage_offset(), x.stride()
    part = middle.storage_offset(), middle.stride()
    assert whole == (0, (3, 1)), \
        "The matrix begins at 0; a row is 3 steps, a column 1."
    assert part == (1, (3,)), \
        "The column begins at 1, and its next element is 3 steps on."
    assert same_storage(x, middle), \
        "The matrix and its column use the same storage."

    misbelief("A tensor is just a pointer to memory.", r"""
        The pointer alone says where the numbers are, and not how to read them. The matrix and its
        column share one storage, and differ in offset, shape and strides.
    """)
    later = middle.data_ptr() - x.data_ptr()  # @hide
    assert later == 1 * x.element_size(), \
        "The column begins one element later in memory."  # @hide

    note(r"""
        The dtype, too, only says how to read. `view(torch.int32)` reads the bytes of the same
        floats as integers. In binary, the first one shows the bits of the float `1.0`:
    """)
    integers: Int[Tensor, "row col"] = x.view(torch.int32)
    one = f"{integers[0, 0].item():032b}"  # @inspect one
    assert one == "00111111100000000000000000000000", \
        "Read as an integer, the first element shows the bits of 1.0."
    assert same_storage(x, integers), \
        "Floats and integers use the same storage."  # @hide
    piece = torch.zeros(4, 5)[1:, 2]  # @hide
    question(r"""
        `m` is a new matrix of `4` rows and `5` columns. `m[1:, 2]` is its column `2`, from row `1`
        on. What are the offset and the stride of this view?
    """, answer=(piece.storage_offset(), *piece.stride()),
        check=(torch.arange(20).view(4, 5)[1, 2].item(), torch.arange(20).view(4, 5)[1:, 2].diff()[0].item()),
        hint=r"""
            Number the elements of `m` in the order of memory. Where does the slice begin, and how
            far is its next element?
        """,
        why=r"""
            The strides of `m` are `(5, 1)`. The view begins at element `(1, 2)`, which lies at
            `1 * 5 + 2 * 1 = 7`. Its next element is one row further on, `5` elements.
        """)


@aside
def strides_turn_an_index_into_an_address() -> None:
    """The address of an element is the offset plus each index times its stride."""
    note(r"""
        Where in memory does the element `x[1, 2]` of a matrix lie? A new matrix lies in memory row
        by row, which is called *row-major*. Its
        [*strides*](#a_tensor_is_memory_and_a_way_to_read_it) say how many elements it is to the
        next row and to the next column. With `4` columns that is `4` and `1`. So `x[1, 2]` lies
        `1 * 4 + 2 * 1 = 6` elements after the first. Each number in this matrix is its own address,
        and `line` has them in the order of memory:
    """)
    x: Float[Tensor, "row col"] = torch.arange(16.0).view(4, 4)  # @inspect x
    line = x.flatten()  # @inspect line
    assert x.stride() == (4, 1), \
        "The next row is 4 elements on, the next column 1."
    assert line[x.stride(0)].item() == 4.0, "4 elements on, the second row begins."  # @hide
    place = 1 * x.stride(0) + 2 * x.stride(1)  # @inspect place
    assert place == 6, "By its strides, x[1, 2] lies at address 6."
    assert line[place] == x[1, 2], "At address 6 is the number x[1, 2]."

    note(r"""
        A view that begins elsewhere also has an *offset*, the address of its first element. `block`
        below is a view of the lower right part of `x`. It begins at address `6`, and has the
        strides of `x`. So its element `[1, 1]` lies at `6 + 1 * 4 + 1 * 1 = 11`. Without the offset
        one would read address `5`, which is not in the block at all:
    """)
    block = x[1:, 2:]  # @inspect block, block.storage_offset(), block.stride()
    start, strides = block.storage_offset(), block.stride()
    steps = 1 * strides[0] + 1 * strides[1]  # @inspect steps
    assert (start, strides) == (6, (4, 1)), \
        "The block has the offset 6 and the strides of x."
    assert line[start + steps] == block[1, 1], \
        "With the offset, the address leads to block[1, 1]."
    assert line[steps] not in block, \
        "Without the offset, it leads to a number outside the block."
    question(r"""
        A new tensor of shape `(3, 4, 5)` lies in memory in the same way: the last index goes up
        first, then the one before it. How many elements lie before the one at `[2, 1, 3]`?
    """, answer=torch.arange(60).view(3, 4, 5)[2, 1, 3].item(),
        check=2 * 20 + 1 * 5 + 3,
        wrong={
            "That adds up the indices; each has a stride.": 6,
            "The first index steps over 4 * 5 elements.": 2 * 5 + 1 * 5 + 3,
        },
        why="The strides are `(20, 5, 1)`, so the address is `2 * 20 + 1 * 5 + 3 * 1`.")


@aside
def a_storage_is_indexed_by_bytes() -> None:
    """The storage of a tensor is counted in bytes, not in elements."""
    note(r"""
        How can one look at the memory of a tensor itself? `x.untyped_storage()` gives it. This
        storage knows nothing of the dtype: its entries are single bytes, counted from zero. A
        `float32` has `4` bytes, so entry `6` is the third byte of element `1`. To read element `6`,
        take all of its bytes, and let `struct.unpack` make a float of them. In this matrix, element
        `6` has the value `6`:
    """)
    x: Any = torch.arange(16.0).view(4, 4)
    raw = x.untyped_storage()
    width = x.element_size()  # @inspect width as B, raw.nbytes() as B
    assert len(raw) == 16 * width, "The storage has 16 times 4 entries."
    assert divmod(6, width) == (1, 2), \
        "Entry 6 is in element 1, two bytes after its first."
    packed = bytes(raw[i] for i in range(6 * width, 7 * width))
    assert struct.unpack("=f", packed) == (6.0,), \
        "The bytes 24 to 27 are the float 6."

    note(r"""
        There is an older way, `x.storage()`, which counts elements. It gives a warning, because it
        will be removed [@pytorch_storage]. In its place, flatten the tensor, and index that:
    """)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # @unnoticed: left out, 'ignore': a warning changes no value
        old = x.storage()[6]
    assert old == 6.0, "The old storage counts elements: entry 6 is 6."
    place = 6
    assert x.flatten()[place] == old, \
        "Flattened, the tensor has the same entry."
    assert x.as_strided((), (), place) == old, "as_strided reads it, too."  # @hide
    misbelief("`x.storage()[6]` is how to read element `6` of a tensor's memory.", r"""
        It works with a warning, and will be removed. `x.untyped_storage()[6]` is something else: a
        byte of element `1`. `x.flatten()[6]` reads element `6`.
    """)
    question(r"""
        A number of an `int64` tensor has `8` bytes. In which element does entry `42` of its untyped
        storage lie, counted from `0`?
    """,
             answer=42 // torch.zeros(8, dtype=torch.int64).element_size(),
        check=sum(last <= 42 for last in range(8, 999, 8)),
        wrong={
            "Elements are counted from zero.": 6,
            "That would be elements of four bytes.": 10,
        },
        why="Element `5` has the bytes `40` to `47`, and `42` is one of them.")


@aside
def basic_indexing_shares_and_picking_copies() -> None:
    """Indexing with numbers and slices makes a view; picking with a list or a mask makes a copy."""
    note(r"""
        If you change a matrix, does a part that you took from it before change, too? It does if the
        part is a *view*, a tensor over the same memory. A row and a column are views: a fixed step
        in memory leads from one of their elements to the next, and that is all a view needs. A part
        that is picked by a list or by a mask is a *copy*, because its elements may lie anywhere.
        `same_storage` says whether two tensors use the same memory:
    """)
    x = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    row, column = x[0], x[:, 1]  # @inspect row, column
    assert same_storage(x, row), "The row is a view of x."
    assert same_storage(x, column), "The column is a view of x."
    gapless = row.is_contiguous(), column.is_contiguous()  # @hide
    assert gapless == (True, False), "The elements of the row lie side by side, those of the column do not."  # @hide
    listed, masked = x[[0]], x[x > 0]  # @inspect listed, masked
    assert not same_storage(x, listed), "What a list picked is a copy."
    assert not same_storage(x, masked), "What a mask picked is a copy."

    note("Now write into the matrix. The new number shows in both views, and in neither copy:")
    x[0, 1] = 100  # @inspect x, row, column, listed
    assert row.tolist() == [1, 100, 3], "The row has the new number."
    assert column.tolist() == [100, 5], "The column has the new number."
    assert listed.tolist() == [[1, 2, 3]], "The first copy has the old number."
    assert masked.tolist() == [1, 2, 3, 4, 5, 6], "The second copy has the old number."  # @hide

    note(r"""
        A write like this one is *in place*. `x = x + 1` is not: it makes a new tensor and gives it
        the old name. The row still reads the old memory:
    """)
    x = x + 1  # @inspect x
    assert x[0].tolist() == [2, 101, 4], \
        "The new tensor has numbers one larger."
    assert row.tolist() == [1, 100, 3], "The row has not changed."
    question(r"""
        How many of `x[1:]`, `x[[0, 1]]`, `x[:, ::2]`, `x[x > 50]` and `x[1, 2]` are views of `x`?
    """, answer=sum(
        same_storage(x, part) for part in (x[1:], x[[0, 1]], x[:, ::2], x[x > 50], x[1, 2])
    ),
        check=sum(
            x.data_ptr() <= part.data_ptr() < x.data_ptr() + x.nbytes
            for part in (x[1:], x[[0, 1]], x[:, ::2], x[x > 50], x[1, 2])
        ),
        wrong={
            "A single element is a view, too.": 2,
        },
        why=r"""
            `x[[0, 1]]` picks with a list, and `x[x > 50]` with a mask: these two are copies. The
            others index with numbers and slices.
        """)


@aside
def view_gives_the_same_numbers_another_shape() -> None:
    """view() reads the same numbers in the same order, in another shape."""
    note(r"""
        What does `x.view(3, 2)` do to a matrix of `2` rows and `3` columns? It gives it `3` rows
        and `2` columns. No number moves: the numbers stay in their order in memory, `1` to `6`, and
        are cut into rows of two instead of three. So the result is not the transpose:
    """)
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    y = x.view(3, 2)  # @inspect y
    assert y.tolist() == [[1, 2], [3, 4], [5, 6]], \
        "The numbers stay in order, in rows of two."
    assert same_storage(x, y), "Both tensors use the same storage."
    shapes = tuple(x.shape), tuple(y.shape)
    assert shapes == ((2, 3), (3, 2)), \
        "x is 2 by 3, and x.view(3, 2) is 3 by 2."
    misbelief("`x.view(3, 2)` takes a `3x2` matrix and shows it as `2x3`.",
              "It is the other way round. `3, 2` is the shape of the result; `x` itself is `2x3`.")

    note(r"""
        PyTorch refuses a view in two cases: if the new shape has another number of elements, and if
        [no strides](#some_shapes_cannot_be_a_view) give it, as for the transpose. (`message_of`
        runs a call and returns its error.)
    """)
    few = message_of(lambda: x.view(2, 2))  # @inspect few
    turned = message_of(lambda: x.t().view(2, 3))  # @inspect turned
    assert "'[2, 2]' is invalid for input of size 6" in few, \
        "Six elements do not fit the shape (2, 2)."
    assert "not compatible with" in turned, \
        "For the transpose, no strides give the shape (2, 3)."
    misbelief("`view()` accepts any tensor and treats it as another one.", r"""
        It refuses a shape with another number of elements, as `(2, 2)` for six, and a shape that no
        strides give.
    """)
    question(r"""
        `z = torch.arange(12).view(3, 4)` has the numbers from `0` to `11`, in `3` rows. What is
        `z.view(4, 3)[2, 1]`, the element in row `2` and column `1`, both counted from `0`?
    """,
             answer=torch.arange(12).view(3, 4).view(4, 3)[2, 1].item(),
        check=2 * 3 + 1,
        wrong={
            "That is z[2, 1], in rows of four.": 9,
            "That is the element of the transpose.": 6,
        },
        why="`z.view(4, 3)` has the rows `0, 1, 2`, then `3, 4, 5`, then `6, 7, 8`. Row `2` begins with `6`.")


def a_transpose_swaps_strides() -> None:
    """A transpose swaps two strides and moves no number."""
    note(r"""
        What does it cost to transpose a large matrix? Next to nothing, because no number moves. A
        matrix has two *strides*: how many elements of memory to step for the next row, and for the
        next column. The transpose reads the same memory with these two swapped:
    """)
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x, x.stride()
    y: Float[Tensor, "col row"] = x.transpose(1, 0)  # @inspect y, y.stride()
    assert x.stride() == (3, 1), \
        "In the matrix, the next row is 3 elements on, the next column 1."
    assert y.stride() == (1, 3), \
        "In the transpose, the next row is 1 element on, the next column 3."
    assert same_storage(x, y), "Matrix and transpose use the same storage."

    note("Both read the same numbers. So writing into the matrix changes its transpose, too:")
    x[0][0] = 100  # @inspect x, y
    assert y[0][0] == 100, "The transpose has the new number."

    note(r"""
        Reading the transpose row by row jumps back and forth in memory. A tensor that is read row
        by row in the order of memory is *contiguous*; the transpose is *non-contiguous*:
    """)
    assert x.is_contiguous() is True, "The matrix is contiguous."
    assert y.is_contiguous() is False, "The transpose is not contiguous."
    note(r"""
        Try other strides in the picture. A stride of `0` reads the same cell of memory again and
        again. That is how PyTorch repeats a row without copying it.
    """)
    strip = torch.arange(12.0)  # @hide

    def read(  # @hide
        rows: int, columns: int, row_stride: int, column_stride: int,
        offset: int,
    ) -> dict[str, Any]:
        strides = row_stride, column_stride
        view = strip.as_strided((rows, columns), strides, offset)
        elements = view.int().tolist()
        kept = len({n for row in elements for n in row})
        whole = view.is_contiguous()
        return {"elements": elements, "contiguous": whole, "kept": kept}

    ranges = {"rows": range(1, 5), "columns": range(1, 5)}  # @hide
    ranges |= {"row_stride": range(5), "column_stride": range(5)}  # @hide
    ranges |= {"offset": range(12)}  # @hide
    begin = {"rows": 2, "columns": 3, "row_stride": 3, "column_stride": 1}  # @hide
    begin |= {"offset": 0}  # @hide
    matrix = read(**begin)["elements"]  # @hide
    assert matrix == [[0, 1, 2], [3, 4, 5]], \
        "The picture begins with a matrix of 2 rows and 3 columns."  # @hide
    explore(read, over=ranges, at=begin, module="pictures/strides.js",
        still=plot_strides(matrix, len(strip)),
        do=r"""
            Turn this matrix into its transpose. Which sliders does it take? Then make all rows
            equal: how many cells of memory does the view still read?
        """,
        see=r"""
            With `3` rows of `2`, a row stride of `1` and a column stride of `3` the same cells are
            read in another order. With a row stride of `0` every row is the same row, and memory
            holds it once.
        """,
        caption=r"""
            Twelve cells of memory, and the matrix that a view reads from them. The value of each
            cell is its index. The *offset* is the cell in which the view begins. The *row stride*
            is the step to the next row, the *column stride* the step to the next column, in cells.
        """,
        alt="A strip of twelve numbered cells, and below it the grid of those that a view reads.")  # @hide
    turned, repeated = read(3, 2, 1, 3, 0), read(4, 3, 0, 1, 0)  # @hide
    assert turned["elements"] == [[0, 3], [1, 4], [2, 5]], \
        "With swapped strides, the picture shows the transpose."  # @hide
    assert repeated["elements"] == [[0, 1, 2]] * 4, \
        "With a row stride of 0, the picture shows four equal rows."  # @hide
    assert repeated["kept"] == 3, "The four equal rows are three numbers in memory."  # @hide
    question("A new tensor of shape `(2, 3, 4)` has the strides `(12, 4, 1)`. What are the strides of `torch.zeros(2, 3, 4).transpose(0, 2)`, which swaps its first and its last axis?",
             answer=torch.zeros(2, 3, 4).transpose(0, 2).stride(),
        check=(1, 4, 3 * 4),
        hint="Which two of the strides change places?",
        why=r"""
            Swapping two axes swaps their strides: `12` and `1` change places, and the `4` in the
            middle stays.
        """)


@aside
def contiguous_means_reading_in_storage_order() -> None:
    """A tensor is contiguous if reading it row by row never jumps in memory."""
    note(r"""
        A tensor is *contiguous* if its elements, read row by row, lie side by side in memory. A
        [transpose](#a_transpose_swaps_strides) is not. What about a part of a matrix? That depends
        on the cut. The upper rows of a matrix lie side by side. The left halves of its rows do not:
        after each of them, the right half is left out.

        Each number in this matrix is its own address. So `diff`, the difference between neighbours,
        gives the steps that reading takes in memory:
    """)
    x = torch.arange(16.0).view(4, 4)  # @inspect x
    top, left = x[:2], x[:, :2]  # @inspect top, left
    down, across = top.flatten().diff(), left.flatten().diff()
    assert down.tolist() == [1, 1, 1, 1, 1, 1, 1], \
        "Reading the upper rows, each step is 1."
    assert across.tolist() == [1, 3, 1, 3, 1, 3, 1], \
        "Reading the left halves, each new row is a step of 3."
    gapless = [part.is_contiguous() for part in (x, left, top)]  # @inspect gapless
    assert gapless == [True, False, True], \
        "The matrix and its upper rows are contiguous, the left halves are not."
    question(r"""
        `x` is a new matrix of `4` rows and `4` columns. How many of `x[1:3]`, `x[:, 1:]`, `x[::2]`,
        `x[2]` and `x[:, 0]` are contiguous?
    """,
             answer=sum(part.is_contiguous() for part in (x[1:3], x[:, 1:], x[::2], x[2], x[:, 0])),
        check=sum(
            all(step == 1 for step in part.flatten().diff().tolist())
            for part in (x[1:3], x[:, 1:], x[::2], x[2], x[:, 0])
        ),
        wrong={
            "x[::2] leaves out every other row.": 3,
        },
        why="`x[1:3]` is two whole rows side by side, and `x[2]` is one row. The other three leave something out in between.")


@aside
def some_shapes_cannot_be_a_view() -> None:
    """Where no strides give the new shape, `view()` fails and `reshape()` copies."""
    note(r"""
        `view` reads the memory of a tensor in another shape, and copies nothing. When does that
        fail? A view has one [stride](#a_tensor_is_memory_and_a_way_to_read_it) for each axis: a
        fixed number of elements in memory from one index to the next. If the new shape would need
        steps of different lengths along one axis, there is no such view.

        The transpose of a matrix of `2` rows and `3` columns is an example. Read it row by row. Its
        elements lie at these places in memory:
    """)
    x = torch.arange(1.0, 7.0).view(2, 3)
    y = x.transpose(1, 0)  # @inspect y
    places = torch.arange(6).view(2, 3).t().flatten()  # @inspect places
    assert places.diff().tolist() == [3, -2, 3, -2, 3], \
        "From one element to the next, the places go forward 3 and back 2."

    note(r"""
        Now ask for `2` rows of `3`. The first row would be at the places `0`, `3` and `1`: a step
        of `3`, then a step of `-2`. A stride is a single number, so no such view exists, and
        PyTorch says so:
    """)
    error = message_of(lambda: y.view(2, 3))  # @inspect error
    assert error == (
        "RuntimeError: view size is not compatible with input tensor's size and stride (at least "
        "one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
    ), "PyTorch's error says that the stride is not compatible."  # @hide

    note(r"""
        The way out is a copy. `contiguous()` copies the elements in the order of reading, and then
        `view` works. `reshape()` decides by itself: it makes a view where one exists, and a copy
        where none does. So a write to its result changes the original in one case, and not in the
        other:
    """)
    copied = y.contiguous().view(2, 3)  # @inspect copied
    reshaped, shared = y.reshape(2, 3), x.reshape(3, 2)
    assert copied.tolist() == [[1, 4, 2], [5, 3, 6]], \
        "The copy has the elements in the order of reading."
    assert not same_storage(x, copied), "The copy has a storage of its own."  # @hide
    assert torch.equal(reshaped, copied), "reshape gives the same numbers as the copy."  # @hide
    assert not same_storage(x, reshaped), \
        "Of the transpose, reshape makes a copy."
    assert same_storage(x, shared), \
        "Of the matrix itself, reshape makes a view."
    assert tuple(shared.shape) == (3, 2), "It has the shape that was asked for."  # @hide
    x.reshape(3, 2)[0, 0] = 9  # @unnoticed: arguments swapped: the first number has the same place
    x.t().reshape(2, 3)[0, 0] = 8  # @unnoticed: left out, 8, 0: what is written into a copy is thrown away
    question(r"""
        `x` is a new matrix of `2` rows and `3` columns, and `x.t()` its transpose. First
        `x.reshape(3, 2)[0, 0] = 9` runs, then `x.t().reshape(2, 3)[0, 0] = 8`. What is `x[0, 0]`
        now?
    """, answer=x[0, 0].item(),
        check=9.0,
        hint="Which of the two `reshape` makes a view of `x`, and which a copy?",
        why=r"""
            `reshape` of `x` itself makes a view, so `9` is written into `x`. `reshape` of the
            transpose makes a copy. `8` is written into the copy, and `x` keeps its `9`.
        """)


@aside
def a_view_needs_axes_that_merge() -> None:
    """`view()` also works on tensors that are not contiguous, unless it has to merge axes that do not fit."""
    note(r"""
        A tensor is *contiguous* if reading it row by row never jumps in memory; the transpose `y`
        of a matrix is not. Can `view` change its shape all the same? Often it can. To add an axis,
        for example, other strides are enough, and no number moves:
    """)
    y = torch.arange(1.0, 7.0).view(2, 3).t()  # @inspect y
    longer = y.view(3, 1, 2)
    row, back = y[0], y.t()  # @hide
    assert y.is_contiguous() is False, "The transpose is not contiguous."
    assert tuple(longer.shape) == (3, 1, 2), "view adds an axis to it."
    assert same_storage(y, longer), "The view of it copies nothing."
    assert same_storage(y, row), "Its row is a view, too."  # @hide
    assert same_storage(y, back), "Its transpose is a view, too."  # @hide
    misbelief("A non-contiguous tensor cannot be viewed any further.", r"""
        It can: the shape `(3, 1, 2)` above is a view of a tensor that is not contiguous.
    """)

    note(r"""
        Only *merging* two neighbouring axes into one can fail, because the new axis has a single
        stride. A walk along the whole inner axis must end just where the next step of the outer
        axis begins. So the outer stride must be the *size* of the inner axis times its stride.

        `block` has the shape `(2, 3, 2)` and the strides `(12, 4, 1)`, and is not contiguous. Its
        first two axes merge: `12` is `3 * 4`. Its last two do not: `4` is not `2 * 1`.
    """)
    block = torch.arange(24.0).view(2, 3, 4)[:, :, :2]  # @inspect block.stride()  # @unnoticed: arguments swapped: the first two axes merge in either order
    outer, middle, inner = block.stride()
    assert (outer, middle, inner) == (12, 4, 1), "The strides of the block are 12, 4 and 1."  # @hide
    assert block.is_contiguous() is False, "The block is not contiguous."
    assert outer == block.size(1) * middle, \
        "The first stride is 3 times the second."
    merged = block.view(6, 2)  # @inspect merged.stride()
    assert same_storage(block, merged), \
        "Merging the first two axes makes a view."
    inner_walk = block.size(2) * inner  # @hide
    assert (middle, inner_walk) == (4, 2), "The second stride is 4, and a walk along the last axis is 2."  # @hide
    error = message_of(lambda: block.view(2, 6))  # @inspect error
    assert "view size is not compatible" in error, \
        "Merging the last two axes is refused."
    misbelief("`view()` only works on contiguous memory.",
              "Contiguous memory is enough, but it is not needed: `block` is not contiguous, and `block.view(6, 2)` works.")
    question(r"""
        `torch.zeros(4, 6, 8)[:, :3]` has the shape `(4, 3, 8)` and the strides `(48, 8, 1)`. `view`
        can merge one pair of neighbouring axes. Which shape does that give?
    """, answer=tuple(torch.zeros(4, 6, 8)[:, :3].view(4, -1).shape),
        check=(4, 3 * 8),
        why=r"""
            The last two merge: the stride `8` is `8 * 1`. The first two do not: `48` is not
            `3 * 8`.
        """)


@aside
def contiguous_copies_only_when_it_must() -> None:
    """contiguous() copies only if it must, and reshape() may return a tensor that is not contiguous."""
    note(r"""
        `x.contiguous()` gives a tensor that is *contiguous*: read row by row, its elements lie side
        by side in memory. Is it a copy? Only if `x` is not contiguous, as the transpose `x.t()`. If
        `x` is, then `contiguous()` returns `x` itself. A sure copy is `x.clone()`. (`same_storage`
        says whether two tensors use the same memory.)
    """)
    x = torch.arange(1.0, 7.0).view(2, 3)  # @unnoticed: arguments swapped: any matrix
    assert x.contiguous() is x, "Of x, contiguous returns x itself."
    assert not same_storage(x, x.t().contiguous()), \
        "Of the transpose, contiguous makes a copy."
    assert not same_storage(x, x.clone()), "clone makes a copy."
    misbelief("`contiguous()` makes a copy, so afterwards the tensors no longer share memory.",
        "If the tensor is contiguous already, it is returned itself, and a write to the one is a write to the other.")

    note(r"""
        `reshape` promises a shape, and no more. If a view will do, it returns the view, with its
        gaps. The block below has rows of two, which lie `4` elements apart in memory:
    """)
    block = torch.arange(24.0).view(2, 3, 4)[:, :, :2]  # @unnoticed: arguments swapped: six rows of two in either order
    flat = block.reshape(6, 2)  # @inspect flat, flat.stride()
    assert flat.stride() == (4, 1), \
        "After reshape, the rows are still 4 elements apart."
    assert flat.is_contiguous() is False, "The result is not contiguous."
    assert flat.contiguous().stride() == (2, 1), \
        "After contiguous, the rows lie side by side, 2 elements apart."
    misbelief("Use `contiguous()` or `reshape()` to make a tensor contiguous.", r"""
        `contiguous()` does that. `reshape()` need not: its result above has rows of `2` that lie
        `4` apart.
    """)
    question(r"""
        `x` is a new `float32` matrix of `2` rows and `3` columns. How many bytes of new memory do
        `x.contiguous()`, `x.t().contiguous()`, `x.t().t().contiguous()`, `x.reshape(3, 2)` and
        `x.clone()` take together?
    """, answer=sum(
        t.nbytes
        for t in (x.contiguous(), x.t().contiguous(), x.t().t().contiguous(), x.reshape(3, 2),
                  x.clone())
        if not same_storage(x, t)
    ),
        check=2 * x.numel() * 4, unit="B",
        wrong={
            "Only two of the five are copies.": 5 * 6 * 4,
            "Those are numbers; each has four bytes.": 2 * 6,
            "Transposed twice, x is contiguous again.": 3 * 6 * 4,
        },
        why="`x.t().contiguous()` and `x.clone()` are copies, of `6 * 4` bytes each. The others use the memory of `x`.")


@aside
def a_small_view_keeps_everything_alive() -> None:
    """A row saved to a file takes the whole matrix along, unless it is cloned."""
    note(r"""
        A row of a matrix is a *view*: it uses the memory of the whole matrix and
        [keeps it](#a_view_can_hold_more_or_less_than_it_reports), also after the matrix is deleted.
        Here the matrix has `1024` rows of `1024` numbers of `4` bytes, which makes `4` MiB, and a
        row of it `4` KiB:
    """)
    base = torch.zeros(1024, 1024)
    row = base[0]  # @inspect row.nbytes as B
    del base  # @unnoticed: left out: the storage is as large while the matrix has a name
    held = row.untyped_storage().nbytes()  # @inspect held as B
    assert row.nbytes == 4 * KiB, "The row shows 4 KiB."
    assert held == 4 * MiB, "The row keeps 4 MiB in memory."

    note(r"""
        What happens if the row is saved to a file? `torch.save` writes the whole memory that a
        tensor uses, so that tensors which share memory share it again when they are loaded. So the
        file has `4` MiB as well. A clone has memory of its own, just as much as the row needs. Save
        both; `tell` gives the length of the file:
    """)
    whole, alone = io.BytesIO(), io.BytesIO()
    torch.save(row, whole)
    torch.save(row.clone(), alone)
    with_base, row_only = whole.tell(), alone.tell()  # @inspect with_base as B, row_only as B
    assert with_base // MiB == 4, "The file of the row has 4 MiB."
    assert row.nbytes < row_only < 2 * row.nbytes, \
        "The file of the clone has less than twice the 4 KiB of the row."
    misbelief("Views are free.", r"""
        Making one costs nothing. But a view keeps the memory of the tensor that it was taken from:
        the row of `4` KiB keeps `4` MiB, in memory and in a file.
    """)
    question(r"""
        In each of `100` steps a loop computes a new `float32` tensor of shape `(256, 1024)`, called
        `logits`, and appends the view `logits[0, 0]` to a list. How many bytes does the list keep
        in memory?
    """, answer=100 * torch.zeros(256, 1024)[0, 0].untyped_storage().nbytes(),
        check=100 * 256 * 1024 * 4, unit="B",
        wrong={
            "Each view keeps all numbers of its tensor, not one.": 100 * 4,
            "That is the tensor of a single step.": 256 * 1024 * 4,
            "Those are numbers; each has four bytes.": 100 * 256 * 1024,
        },
        why="Each entry is a view of one number, and keeps all `256 * 1024` numbers of `4` bytes. The list has `100` of them.")


@aside
def a_view_costs_the_same_at_any_size() -> None:
    """The time of a view does not grow with the tensor; the time of a copy does."""
    note(r"""
        How long does it take to transpose a large matrix? `x.t()` makes a *view*: it writes down
        two swapped strides and moves no number, so it takes as long for a large matrix as for a
        small one. `x.t().contiguous()` makes a copy: it reads and writes every number. Time both
        for a matrix of `2 * 2` numbers and for one of `2048 * 2048`. `time_call` runs a call
        several times and returns the time of one:
    """)
    small, x = torch.randn(2, 2), torch.randn(2048, 2048)  # @unnoticed: 2: a few numbers
    small_view = time_call(lambda: small.t(), repeats=7).seconds  # @measure small_view as s
    view = time_call(lambda: x.t(), repeats=7).seconds  # @measure view as s
    small_copy = time_call(lambda: small.t().contiguous(), repeats=7).seconds  # @measure small_copy as s
    copy = time_call(lambda: x.t().contiguous(), repeats=7).seconds  # @measure copy as s
    assert max(small_view, view) < copy, \
        "Both views take less time than the copy of the large matrix."
    assert view < small_copy, \
        "The view of the large matrix takes less than a copy of four numbers."
    assert small_copy < copy, "The copy takes longer for the large matrix."
    assert x.t().contiguous().nbytes == 16 * MiB, \
        "The copy of the large matrix takes 16 MiB."
    assert same_storage(x, x.t()), "The view takes no memory for numbers."  # @hide

    note(r"""
        But a view may slow down what comes later. Whoever reads the transpose row by row jumps in
        memory, and the copy above does so, too. `x.clone()` copies as many bytes in the order of
        memory. How many times as long the copy of the transpose takes, by the shortest time of each
        that `quickest` finds:
    """)
    clone = quickest(lambda: x.clone(), 7)  # @measure clone as s
    slowdown = quickest(lambda: x.t().contiguous(), 7) / clone  # @measure slowdown as times
    least, most = 1 / SLACK, 100 * SLACK  # @hide
    assert least < slowdown < most, "The copy of the transpose is not much quicker than the clone."  # @hide
    question(r"""
        A `float64` number has `8` bytes. A `float64` matrix of shape `(1000, 500)` is transposed
        and copied by `contiguous()`. How many bytes are read and written, taken together?
    """, answer=2 * torch.zeros(1000, 500, dtype=torch.float64).nbytes,
        check=1000 * 500 * 8 * 2, unit="B",
        wrong={
            "Each number is read and written.": 1000 * 500 * 8,
            "A float64 has 8 bytes.": 1000 * 500 * 4 * 2,
        },
        why="The matrix has `1000 * 500` numbers of `8` bytes. Each is read once, and written once.")
