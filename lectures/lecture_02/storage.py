"""Storage, strides and views: when two tensors are one memory."""
import io
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from units import KiB, MiB

from litbook import aside, explore, figure, misbelief, note, question

from .figures import plot_strides, plot_walk
from .measure import message_of, same_storage


def storage_and_views() -> None:
    """Storage, strides and views."""
    note(r"""
        Transposing a matrix moves none of its elements. Nor does taking a column, or cutting a
        block out of the middle. A tensor is a short record that says how to read a line of memory,
        and most operations that seem to rearrange data only write another record.
    """)
    a_tensor_is_memory_and_a_way_to_read_it()
    strides_turn_an_index_into_an_address()
    numbers_and_slices_share_lists_and_masks_copy()
    a_transpose_swaps_strides()
    some_shapes_cannot_be_a_view()
    axes_merge_where_the_steps_fit()
    a_small_view_keeps_everything_alive()


def a_tensor_is_memory_and_a_way_to_read_it() -> None:
    """A tensor is a line of memory and a record of how to read it."""
    note(r"""
        Take a column out of a matrix, and no element is copied. How then does the column find its
        elements?
    """)
    numbers = torch.arange(1.0, 7.0).view(2, 3)  # @hide
    middle = numbers[:, 1]  # @hide
    figure(plot_walk(numbers, int(middle.storage_offset()), middle.stride(0)),
        caption=r"""
            A matrix, and the line of memory that has the first row and then the second. A column
            begins at a position in this line, and takes steps of equal length.
        """,
        alt=r"""
            A matrix of two rows and three columns, its middle column shaded. Below it the six
            elements in a line, the same two shaded, with an arrow from the first to the second.
        """)
    note(r"""
        A tensor has two parts. The *storage* is one line of memory that contains the elements. The
        *metadata* is a short record of how to read this line:

        - the *dtype* is the format of an element, and the *shape* is the length of each axis;
        - the *offset* is the position of the first element in the storage;
        - the *stride* of an axis is the step in the storage from one index to the next.

        By hand: a new matrix of `2` rows and `3` columns is stored row by row, which is called
        *row-major*. If its rows are `1 2 3` and `4 5 6`, the storage is `1 2 3 4 5 6`. The next
        column is `1` step away, and the next row is `3` steps away. So the strides are `(3, 1)`,
        and element $(i, j)$ is at position

        $$
        \text{offset} + i \cdot 3 + j \cdot 1
        $$

        The middle column is `2` and `5`. It needs no copy, because its elements already lie in the
        storage at a fixed step: the first is at position `1`, and the next is `3` steps away. So
        the column is a second record for the same storage, with the offset `1` and the stride `3`:
    """)
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    column = x[:, 1]  # of all rows, the element with index 1  # @inspect column
    whole = x.storage_offset(), x.stride()  # @inspect whole
    part = column.storage_offset(), column.stride()  # @inspect part
    assert whole == (0, (3, 1)), \
        "The matrix has the offset 0 and the strides 3 and 1."
    assert part == (1, (3,)), \
        "The column has the offset 1 and the stride 3."
    assert same_storage(x, column), \
        "The matrix and its column use the same storage."

    misbelief("A tensor is just a pointer to memory.", r"""
        A pointer says where the elements are, but not how to read them. The matrix and its column
        share one storage, and differ in offset, shape and strides.
    """)
    later = column.data_ptr() - x.data_ptr()  # @hide
    assert later == 1 * x.element_size(), \
        "The column begins one element later in memory."  # @hide
    note(r"""
        So a column of a huge matrix costs only another short record. But writing to the column
        changes the matrix.
    """)
    piece = torch.zeros(4, 5)[1:, 2]  # @hide
    question(r"""
        `m` is a new matrix of `4` rows and `5` columns. `m[1:, 2]` is its column `2`, from row `1`
        on. What are the offset and the stride of this view?
    """, answer=(piece.storage_offset(), *piece.stride()),
        check=(torch.arange(20).view(4, 5)[1, 2].item(), torch.arange(20).view(4, 5)[1:, 2].diff()[0].item()),
        hint=r"""
            Number the elements of `m` in the order of memory. Where does the column begin, and how
            far away is its next element?
        """,
        why=r"""
            The strides of `m` are `(5, 1)`. The view begins at element `(1, 2)`, which is at
            position `1 * 5 + 2 * 1 = 7`. Its next element is one row further on, `5` steps.
        """)


@aside
def strides_turn_an_index_into_an_address() -> None:
    """The address of an element, counted in elements, is the offset plus each index times its stride."""
    note(r"""
        Where in memory is the element `x[1, 2]` of a matrix? Memory is one line, and a new matrix
        lies in it row by row. The [*strides*](#a_tensor_is_memory_and_a_way_to_read_it) of the
        matrix are the steps to the next row and to the next column. With `4` columns they are `4`
        and `1`. So `x[1, 2]` is `1 * 4 + 2 * 1 = 6` elements after the first.

        In this matrix the value of each element is its own address, counted in elements. `line` has
        the elements row by row, as they lie in memory here:
    """)
    x = torch.arange(16.0).view(4, 4)  # @inspect x
    line = x.flatten()
    assert x.stride() == (4, 1), \
        "The next row is 4 elements on, the next column 1."
    assert line[x.stride(0)].item() == 4.0, "The second row begins 4 elements further on."  # @hide
    address = 1 * x.stride(0) + 2 * x.stride(1)  # @inspect address
    assert address == 6, "By its strides, x[1, 2] is at address 6."
    assert line[address] == x[1, 2], "At address 6 is the element x[1, 2]."

    note(r"""
        A block of neighbouring rows and columns is a view of the same memory, and has the strides
        of the matrix. But it begins elsewhere, at an *offset*. `block` is the part of `x` that
        begins at row `1` and column `2`, at address `6`. The address of `block[1, 1]` is
        `6 + 1 * 4 + 1 * 1 = 11`:
    """)
    block = x[1:, 2:]  # @inspect block, block.storage_offset(), block.stride()
    offset = block.storage_offset()
    assert (offset, block.stride()) == (6, (4, 1)), \
        "The block has the offset 6 and the strides of x."
    assert line[offset + 1 * 4 + 1 * 1] == block[1, 1], \
        "The offset plus the steps is the address of block[1, 1]."
    assert line[1 * 4 + 1 * 1] not in block, "Without the offset, it leads outside the block."  # @hide
    misbelief("`x.storage()[6]` is how to read element `6` of a tensor's memory.", r"""
        It works, with a warning, but will be removed [@pytorch_storage]. If `x` has the offset `0`
        and its elements lie row by row without gaps, as here, use `x.flatten()[6]`.
    """)
    question(r"""
        A new tensor of shape `(3, 4, 5)` is laid out in the same way: the last index changes
        fastest, then the one before it. How many elements come before the one at `[2, 1, 3]`?
    """, answer=torch.arange(60).view(3, 4, 5)[2, 1, 3].item(),
        check=2 * 20 + 1 * 5 + 3,
        wrong={
            "That adds up the indices; each has a stride.": 6,
            "The first index steps over 4 * 5 elements.": 2 * 5 + 1 * 5 + 3,
        },
        why="The strides are `(20, 5, 1)`, so the address is `2 * 20 + 1 * 5 + 3 * 1`.")


@aside
def numbers_and_slices_share_lists_and_masks_copy() -> None:
    """Indexing with numbers and slices never copies, nor does `view()`; picking with a list or a mask does."""
    note(r"""
        You take a part of a matrix, and later change the matrix. Does the part change as well? It
        does if the part is a *view*, a tensor over the same memory.

        A row or a column is a view, because a fixed step in memory leads from one of its elements
        to the next. This step is the *stride*. The matrix below has two, `(3, 1)`: `3` elements to
        the next row, and `1` to the next column. `x.view(3, 2)` is a view as well: it cuts the same
        line of elements into rows of two. `same_storage` says whether two tensors use the same
        memory:
    """)
    x = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    row, column, y = x[0], x[:, 1], x.view(3, 2)  # @inspect row, column, y
    assert all(same_storage(x, part) for part in (row, column, y)), \
        "The row, the column and x.view(3, 2) are views of x."
    assert y.tolist() == [[1, 2], [3, 4], [5, 6]], \
        "The elements stay in order, in rows of two."
    gapless = row.is_contiguous(), column.is_contiguous()  # @hide
    assert gapless == (True, False), "The elements of the row lie side by side, those of the column do not."  # @hide
    note(r"""
        A part that is picked with a list of indices, such as `[0]`, or with a mask of true and
        false, such as `x > 0`, is a *copy*, because its elements may be anywhere in memory, with no
        fixed step between them:
    """)
    listed = x[[0]]  # row 0, picked with a list
    masked = x[x > 0]  # @hide
    assert not same_storage(x, listed), "A part picked with a list is a copy."
    assert not same_storage(x, masked), "A part picked with a mask is a copy."

    note("Now write into the matrix. The views show the new value, and the copies do not:")
    x[0, 1] = 100  # @inspect row, column, y, listed
    seen = row[1].item(), column[0].item(), y[0, 1].item()
    assert seen == (100, 100, 100), \
        "All three views have the new value."
    assert listed.tolist() == [[1, 2, 3]], "The copy has the old value."
    assert masked.tolist() == [1, 2, 3, 4, 5, 6], "The second copy has the old value."  # @hide
    misbelief("`x.view(3, 2)` takes a `3x2` matrix and shows it as `2x3`.",
              "It is the other way round. `3, 2` is the shape of the result; `x` itself is `2x3`.")
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
            "A single element is a view as well.": 2,
        },
        why=r"""
            `x[[0, 1]]` picks with a list, and `x[x > 50]` with a mask: these two are copies. The
            others index with numbers and slices.
        """)


def a_transpose_swaps_strides() -> None:
    """A transpose swaps two strides and moves no element."""
    note(r"""
        What does it cost to transpose a large matrix? Next to nothing, because no element moves.

        A matrix is one line of memory with two *strides*: the number of elements from one row to
        the next, and from one column to the next. Here the rows are `1 2 3` and `4 5 6`, stored as
        `1 2 3 4 5 6`, so the strides are `(3, 1)`. In the transpose, rows and columns change
        places. So the transpose is the same memory with the strides swapped, `(1, 3)`:
    """)
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x, x.stride()
    y: Float[Tensor, "col row"] = x.transpose(1, 0)  # @inspect y, y.stride()
    assert x.stride() == (3, 1), "The strides of the matrix are 3 and 1."
    assert y.stride() == (1, 3), "In the transpose the strides are swapped."
    assert same_storage(x, y), "Matrix and transpose use the same storage."

    note("Both read the same elements. So writing to row `0`, column `1` of the matrix changes row `1`, column `0` of its transpose:")
    x[0, 1] = 100  # @inspect x, y
    assert y[1, 0] == 100, \
        "The transpose has the new value, at the swapped position."

    note(r"""
        Read row by row, the elements of the transpose are at positions `0, 3, 1, 4, 2, 5`. A tensor
        is *contiguous* if reading it row by row follows the order of memory, without gaps. The
        transpose is *non-contiguous*:
    """)
    assert x.is_contiguous() is True, "The matrix is contiguous."
    assert y.is_contiguous() is False, "The transpose is not contiguous."
    refused = message_of(lambda: y.view(6))  # @hide
    assert "view size is not compatible" in refused, "A view of the transpose as one row is refused."  # @hide
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
    note(r"""
        These positions have no fixed step, so `y.view(6)`, which never copies, raises an error.
        `y.contiguous()` copies the elements into memory row by row, and this copy costs time and
        memory.
    """)
    explore(read, over=ranges, at=begin, module="pictures/strides.js",
        still=plot_strides(matrix, len(strip)),
        do=r"""
            Turn this matrix into its transpose. Which sliders do you have to move? Then make all
            rows equal: how many cells of memory does the view still read?
        """,
        see=r"""
            With `3` rows of `2`, a row stride of `1` and a column stride of `3` the same cells are
            read in a different order. With a row stride of `0` every row is the same row, and
            memory holds it once.
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
    assert repeated["kept"] == 3, "The four equal rows are three elements in memory."  # @hide
    question("A new tensor of shape `(2, 3, 4)` has the strides `(12, 4, 1)`. What are the strides of `torch.zeros(2, 3, 4).transpose(0, 2)`, which swaps its first and its last axis?",
             answer=torch.zeros(2, 3, 4).transpose(0, 2).stride(),
        check=(1, 4, 3 * 4),
        hint="Which two of the strides change places?",
        why=r"""
            Swapping two axes swaps their strides: `12` and `1` change places, and the `4` in the
            middle stays.
        """)


@aside
def some_shapes_cannot_be_a_view() -> None:
    """Where no strides give the new shape, `view()` fails and `reshape()` copies."""
    note(r"""
        `view` reads the memory of a tensor in another shape, and copies nothing. When does that
        fail? A view has one [stride](#a_tensor_is_memory_and_a_way_to_read_it) for each axis: a
        fixed step in memory from one index to the next.

        Take the transpose of a matrix of `2` rows and `3` columns. In this matrix the value of each
        element is its position in memory, counted in elements:
    """)
    x = torch.arange(6.0).view(2, 3)
    y = x.t()  # @inspect y
    assert y.flatten().diff().tolist() == [3, -2, 3, -2, 3], \
        "From one element of y to the next, the position goes forward 3 and back 2."
    note(r"""
        In the shape `(2, 3)`, the first row of `y` would be the elements at `0`, `3` and `1`: a
        step of `3`, then a step of `-2`. One axis cannot have both, so `y.view(2, 3)` raises an
        error. Two methods help:

        - `contiguous()` returns a tensor whose elements lie in memory row by row. It copies them,
          unless they lie so already. After that, `view` works.
        - `reshape()` decides by itself: it returns a view where one exists, and a copy where none
          does.
    """)
    error = message_of(lambda: y.view(2, 3))  # @hide
    assert error == (
        "RuntimeError: view size is not compatible with input tensor's size and stride (at least "
        "one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
    ), "PyTorch's error says that the stride is not compatible."  # @hide
    few = message_of(lambda: x.view(2, 2))  # @hide
    assert "'[2, 2]' is invalid for input of size 6" in few, "Six elements do not fit the shape (2, 2)."  # @hide
    misbelief("`view()` accepts any tensor and treats it as another one.", r"""
        It refuses a shape with a different number of elements, such as `(2, 2)` for six, and a
        shape that no strides can give.
    """)
    copied = y.contiguous().view(2, 3)  # @inspect copied
    assert copied.tolist() == [[0, 3, 1], [4, 2, 5]], \
        "The copy has the elements in the order in which they are read."
    assert not same_storage(y, y.reshape(2, 3)), \
        "In the shape (2, 3), reshape makes a copy of the transpose."
    assert same_storage(x, x.reshape(3, 2)), \
        "For the matrix itself, reshape makes a view."
    assert x.contiguous() is x, \
        "x is contiguous already, so contiguous returns x itself."
    misbelief("`contiguous()` makes a copy, so afterwards the tensors no longer share memory.",
        "If the tensor is contiguous already, `contiguous()` returns the tensor itself, and writing to the result changes the original.")
    views = [not message_of(partial(y.view, shape)) for shape in ((6,), (2, 3), (3, 2, 1))]  # @hide
    question(r"""
        `y` is the transpose above, of shape `(3, 2)`. How many of the shapes `(6,)`, `(2, 3)` and
        `(3, 2, 1)` can `y.view` give?
    """, answer=sum(views),
        check=sum(same_storage(y, y.reshape(shape)) for shape in ((6,), (2, 3), (3, 2, 1))),
        wrong={"A single axis of six elements would need steps of 3 and of -2.": 2},
        hint="Which of these shapes need, along one axis, steps of two lengths?",
        why=r"""
            Only `(3, 2, 1)`: an axis of size $1$ is added, and no step changes. In the other two,
            one axis would need steps of `3` and of `-2`.
        """)


@aside
def axes_merge_where_the_steps_fit() -> None:
    """A tensor with gaps can be viewed in another shape, if one stride fits all steps of the merged axes."""
    note(r"""
        A slice can leave gaps between its rows. Such a tensor is not
        [contiguous](#some_shapes_cannot_be_a_view). Does `view` still work?

        It does, in some shapes. By hand, take `2` matrices of `3` rows with `4` elements, numbered
        in the order in which they lie in memory. Keep the first `2` elements of each row:

        - The `6` rows begin at the positions `0`, `4`, `8`, `12`, `16` and `20`. They are always
          `4` apart, so one axis with the stride `4` can run over all of them. The shape `(6, 2)` is
          a view.
        - In the shape `(2, 6)`, the first row would be at `0`, `1`, `4`, `5`, `8` and `9`, with
          steps of `1` and `3`. No stride fits, so this is no view.

        In general two neighbouring axes merge into one, if the stride of the left axis is the
        stride of the right axis times its size. In `block`, the slice in the code below, the axes
        have the strides `12`, `4` and `1` and the sizes `2`, `3` and `2`. The first two merge,
        because `12 = 4 * 3`. The last two do not, because `4` is not `1 * 2`:
    """)
    whole = torch.arange(24.0).view(2, 3, 4)
    block = whole[:, :, :2]  # @inspect block.stride()
    assert block.stride() == (4 * 3, 4, 1), "The first two strides fit: 12 is 4 times 3."  # @hide
    top, left = whole[0, :2], whole[0, :, :2]  # @hide
    gapless = [part.is_contiguous() for part in (whole, left, top)]  # @hide
    assert gapless == [True, False, True], "The matrix and its upper rows are contiguous, the left halves are not."  # @hide
    assert block.is_contiguous() is False, "The block is not contiguous."
    merged = block.view(6, 2)  # @inspect merged.stride()
    assert same_storage(block, merged), \
        "As 6 rows of 2 elements, it is still a view."
    starts = merged[:, 0].tolist(), block[0].flatten().tolist()  # @hide
    assert starts == ([0, 4, 8, 12, 16, 20], [0, 1, 4, 5, 8, 9]), "The rows begin 4 elements apart; the elements have gaps."  # @hide
    refused = message_of(lambda: block.view(2, 6))  # @inspect refused
    assert "view size is not compatible" in refused, \
        "As 2 rows of 6 elements, it is refused."
    longer = block.view(2, 3, 1, 2)  # @hide
    assert same_storage(block, longer), "Adding an axis copies nothing."  # @hide
    misbelief("`view()` only works on contiguous memory.", r"""
        `block` is not contiguous, and `block.view(6, 2)` is a view of it.
    """)
    flat = block.reshape(6, 2)  # @hide
    assert flat.is_contiguous() is False, "The result is not contiguous."  # @hide
    misbelief("Use `contiguous()` or `reshape()` to make a tensor contiguous.", r"""
        `contiguous()` does that. `reshape()` does not have to: `block.reshape(6, 2)` is a view, and
        not contiguous either.
    """)
    question(r"""
        `torch.zeros(4, 6, 8)[:, :3]` has the shape `(4, 3, 8)` and the strides `(48, 8, 1)`. `view`
        can merge one pair of neighbouring axes into one axis. Which shape does that give?
    """, answer=tuple(torch.zeros(4, 6, 8)[:, :3].view(4, -1).shape),
        check=(4, 3 * 8),
        hint="For which pair is the left stride equal to the right stride times the right size?",
        why=r"""
            The last two merge, because `8 = 1 * 8`. The first two do not, because `48` is not
            `8 * 3`.
        """)


@aside
def a_small_view_keeps_everything_alive() -> None:
    """`torch.save` writes the whole matrix of a row, unless the row is cloned."""
    note(r"""
        You save one row of a matrix to a file. How large is the file? As large as the whole matrix,
        because a row is a *view*: it shares the matrix's memory, and
        [as long as the row exists](#a_view_can_hold_more_or_less_than_it_reports), that memory is
        not freed, even after `del base`. Here the matrix has `1024` rows of `1024` elements of `4`
        bytes. That is `4` MiB, and a row is `4` KiB:
    """)
    base = torch.zeros(1024, 1024)
    row = base[0]  # @inspect row.nbytes as B
    del base  # @unnoticed: left out: the storage is as large while the matrix has a name
    held = row.untyped_storage().nbytes()  # @inspect held as B
    assert row.nbytes == 4 * KiB, "The row reports 4 KiB."
    assert held == 4 * MiB, "The row keeps 4 MiB in memory."

    note(r"""
        `torch.save` writes the whole storage of a tensor, so that tensors that share memory share
        it again after loading. A *clone* is a copy with its own memory, just large enough for the
        row. Save both, to `io.BytesIO`, a file in memory; `tell` returns its size. What both files
        have beyond the elements describes them, such as their dtype:
    """)
    whole, alone = io.BytesIO(), io.BytesIO()
    torch.save(row, whole)
    torch.save(row.clone(), alone)
    with_base, row_only = whole.tell(), alone.tell()  # @inspect with_base as B, row_only as B
    assert with_base // MiB == 4, "The file with the row is 4 MiB."
    assert row.nbytes < row_only < 2 * row.nbytes, \
        "The file with the clone is less than twice the 4 KiB of the row."
    misbelief("Views are free.", r"""
        Making a view copies nothing. But a view keeps the whole memory of its tensor: the row of
        `4` KiB keeps `4` MiB, in memory and in a file that `torch.save` writes.
    """)
    question(r"""
        In each of `100` steps a loop computes a new `float32` tensor of shape `(256, 1024)`, called
        `logits`, and appends the view `logits[0, 0]` to a list. How many bytes does the list keep
        in memory?
    """, answer=100 * torch.zeros(256, 1024)[0, 0].untyped_storage().nbytes(),
        check=100 * 256 * 1024 * 4, unit="B",
        wrong={
            "Each view keeps all elements of its tensor, not one.": 100 * 4,
            "That is the tensor of a single step.": 256 * 1024 * 4,
            "Those are elements; each has four bytes.": 100 * 256 * 1024,
        },
        why="Each entry of the list is a view of one element, but keeps all `256 * 1024` elements of `4` bytes. The list has `100` entries.")
