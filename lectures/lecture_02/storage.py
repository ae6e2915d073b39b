"""Storage, strides and views: when two tensors are one memory."""
import io
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from units import KiB, MiB

from litbook import aside, explore, misbelief, note, question

from .figures import plot_strides
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
    a_small_view_keeps_everything_alive()


def a_tensor_is_memory_and_a_way_to_read_it() -> None:
    """A tensor is a line of memory and a record of how to read it."""
    note(r"""
        Take a column out of a matrix, and no element is copied. How then does the column find its
        elements? A tensor has two parts. Its elements are flattened into one line of memory; this
        is the *storage*. A record, the *metadata*, says how to read them: the dtype; the shape;
        where to begin, the *offset*; and for each axis a *stride*, the number of elements from one
        index to the next.

        A new matrix lies in memory row by row, which is called *row-major*. In a matrix of `2` rows
        and `3` columns, the next row is `3` elements further on, and the next column is `1` element
        further on. So the strides are `(3, 1)`, and element $(i, j)$ lies at

        $$
        \text{offset} + i \cdot 3 + j \cdot 1
        $$

        With the offset `0`, element `(1, 2)` lies at `0 + 1 * 3 + 2 * 1 = 5`: it is the last of the
        six elements.

        The middle column begins at element `1`, and its next element is one row further on. So the
        column has the offset `1` and the stride `3`:
    """)
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    middle = x[:, 1]  # @inspect middle
    whole = x.storage_offset(), x.stride()  # @inspect whole
    part = middle.storage_offset(), middle.stride()  # @inspect part
    assert whole == (0, (3, 1)), \
        "The matrix begins at 0; the next row is 3 elements on, the next column 1."
    assert part == (1, (3,)), \
        "The column begins at 1, and its next element is 3 elements on."
    assert same_storage(x, middle), \
        "The matrix and its column use the same storage."

    misbelief("A tensor is just a pointer to memory.", r"""
        A pointer says where the elements are, but not how to read them. The matrix and its column
        share one storage, and differ in offset, shape and strides.
    """)
    later = middle.data_ptr() - x.data_ptr()  # @hide
    assert later == 1 * x.element_size(), \
        "The column begins one element later in memory."  # @hide
    piece = torch.zeros(4, 5)[1:, 2]  # @hide
    question(r"""
        `m` is a new matrix of `4` rows and `5` columns. `m[1:, 2]` is its column `2`, from row `1`
        on. What are the offset and the stride of this view?
    """, answer=(piece.storage_offset(), *piece.stride()),
        check=(torch.arange(20).view(4, 5)[1, 2].item(), torch.arange(20).view(4, 5)[1:, 2].diff()[0].item()),
        hint=r"""
            Number the elements of `m` in the order of memory. Where does the slice begin, and how
            far away is its next element?
        """,
        why=r"""
            The strides of `m` are `(5, 1)`. The view begins at element `(1, 2)`, which lies at
            `1 * 5 + 2 * 1 = 7`. Its next element is one row further on, `5` elements.
        """)


@aside
def strides_turn_an_index_into_an_address() -> None:
    """The address of an element is the offset plus each index times its stride."""
    note(r"""
        Where in memory is the element `x[1, 2]` of a matrix? A new matrix is in memory row by row.
        Its [*strides*](#a_tensor_is_memory_and_a_way_to_read_it) are the distances, in elements, to
        the next row and to the next column: with `4` columns, `4` and `1`. So `x[1, 2]` is
        `1 * 4 + 2 * 1 = 6` elements after the first. The value of each element of this matrix is
        its address, and `line` has the elements in the order of memory:
    """)
    x: Any = torch.arange(16.0).view(4, 4)  # @inspect x
    line = x.flatten()
    assert x.stride() == (4, 1), \
        "The next row is 4 elements on, the next column 1."
    assert line[x.stride(0)].item() == 4.0, "The second row begins 4 elements further on."  # @hide
    place = 1 * x.stride(0) + 2 * x.stride(1)  # @inspect place
    assert place == 6, "By its strides, x[1, 2] lies at address 6."
    assert line[place] == x[1, 2], "At address 6 is the element x[1, 2]."

    note(r"""
        A view that begins elsewhere also has an *offset*, the address of its first element. `block`
        is a view of the lower right part of `x`. It begins at address `6`, and has the strides of
        `x`. So its element `[1, 1]` is at `6 + 1 * 4 + 1 * 1 = 11`:
    """)
    block = x[1:, 2:]  # @inspect block, block.storage_offset(), block.stride()
    start, strides = block.storage_offset(), block.stride()
    steps = 1 * strides[0] + 1 * strides[1]
    assert (start, strides) == (6, (4, 1)), \
        "The block has the offset 6 and the strides of x."
    assert line[start + steps] == block[1, 1], \
        "With the offset, the address leads to block[1, 1]."
    assert line[steps] not in block, "Without the offset, it leads outside the block."  # @hide
    note(r"""
        The storage itself has no dtype: `x.untyped_storage()` has one entry for each *byte*. An
        element has `4` bytes, so entry `6` belongs to element `1`:
    """)
    raw, size = x.untyped_storage(), x.element_size()
    assert len(raw) == 16 * size, "The storage has 16 times 4 entries."
    assert divmod(6, size) == (1, 2), \
        "Entry 6 is in element 1, two bytes after its first."
    misbelief("`x.storage()[6]` is how to read element `6` of a tensor's memory.", r"""
        It works, with a warning, but will be removed [@pytorch_storage]. `x.untyped_storage()[6]`
        is something else, a byte of element `1`. To read element `6`, use `x.flatten()[6]`.
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
    """Indexing with numbers and slices makes a view, and so does `view()`; picking with a list or a mask makes a copy."""
    note(r"""
        If you change a matrix, does a part that you took from it earlier change as well? It does if
        the part is a *view*, a tensor over the same memory. A row and a column are views, because a
        fixed step in memory leads from one of their elements to the next, and that is all a view
        needs. A part that is picked with a list or a mask is a *copy*, because its elements may be
        anywhere. `x.view(3, 2)` is a view as well: it cuts the elements into rows of two instead of
        three, in the same order. `same_storage` says whether two tensors use the same memory:
    """)
    x = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    row, column, y = x[0], x[:, 1], x.view(3, 2)  # @inspect row, column, y
    shared = [same_storage(x, part) for part in (row, column, y)]
    assert shared == [True] * 3, \
        "The row, the column and x.view(3, 2) are views of x."
    assert y.tolist() == [[1, 2], [3, 4], [5, 6]], \
        "The elements stay in order, in rows of two."
    gapless = row.is_contiguous(), column.is_contiguous()  # @hide
    assert gapless == (True, False), "The elements of the row lie side by side, those of the column do not."  # @hide
    listed, masked = x[[0]], x[x > 0]
    assert not same_storage(x, listed), "A part picked with a list is a copy."
    assert not same_storage(x, masked), "A part picked with a mask is a copy."

    note("Now write into the matrix. The views show the new value, and the copies do not:")
    x[0, 1] = 100  # @inspect row, column, y, listed
    seen = row[1].item(), column[0].item(), y[0, 1].item()
    assert seen == (100, 100, 100), \
        "All three views have the new value."
    assert listed.tolist() == [[1, 2, 3]], "The first copy has the old value."
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
        What does it cost to transpose a large matrix? Next to nothing, because no element moves. A
        matrix has two *strides*: the number of elements in memory from one row to the next, and
        from one column to the next. The transpose reads the same memory with these two swapped,
        here `(1, 3)` instead of `(3, 1)`:
    """)
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x, x.stride()
    y: Float[Tensor, "col row"] = x.transpose(1, 0)  # @inspect y, y.stride()
    assert x.stride() == (3, 1), \
        "In the matrix, the next row is 3 elements on, the next column 1."
    assert y.stride() == (1, 3), \
        "In the transpose the two are swapped: 1 along its first axis, col, and 3 along its second, row."
    assert same_storage(x, y), "Matrix and transpose use the same storage."

    note("Both read the same elements. So writing into row `0` and column `1` of the matrix changes row `1` and column `0` of its transpose:")
    x[0][1] = 100  # @inspect x, y
    assert y[1][0] == 100, \
        "The transpose has the new value, at the swapped position."

    note(r"""
        Reading the transpose row by row jumps back and forth in memory: it reads the cells
        `0, 3, 1, 4, 2, 5`. A tensor is *contiguous* if reading it row by row follows the order of
        memory; the transpose is *non-contiguous*:
    """)
    assert x.is_contiguous() is True, "The matrix is contiguous."
    assert y.is_contiguous() is False, "The transpose is not contiguous."
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
        fixed number of elements in memory from one index to the next. If the new shape would need
        steps of different lengths along one axis, there is no such view.

        The transpose of a matrix of `2` rows and `3` columns is an example. Read row by row, its
        elements are at these addresses:
    """)
    x = torch.arange(1.0, 7.0).view(2, 3)
    y = x.t()  # @inspect y
    addresses = torch.arange(6).view(2, 3).t().flatten()  # @inspect addresses
    assert addresses.diff().tolist() == [3, -2, 3, -2, 3], \
        "From one element to the next, the address goes forward 3 and back 2."
    note(r"""
        A first row of three elements would be at `0`, `3` and `1`: a step of `3`, then one of `-2`.
        So PyTorch refuses `y.view(2, 3)`. A copy helps: `contiguous()` copies the elements in the
        order in which they are read. The copy is *contiguous*, so `view` works. `reshape()` decides
        by itself: it returns a view where one exists, and a copy where none does:
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
    reshaped, shared = y.reshape(2, 3), x.reshape(3, 2)
    assert copied.tolist() == [[1, 4, 2], [5, 3, 6]], \
        "The copy has the elements in the order in which they are read."
    assert not same_storage(x, reshaped), \
        "For the transpose, reshape makes a copy."
    assert same_storage(x, shared), \
        "For the matrix itself, reshape makes a view."
    assert x.contiguous() is x, \
        "x is contiguous already, so contiguous returns x itself."
    misbelief("`contiguous()` makes a copy, so afterwards the tensors no longer share memory.",
        "If the tensor is contiguous already, `contiguous()` returns the tensor itself, and writing to the result changes the original.")
    note(r"""
        Does `view` need contiguous memory, then? No: only *merging* two neighbouring axes can fail,
        because the new axis has a single stride. They merge if the inner axis ends exactly where
        the next step of the outer axis begins: the outer stride has to equal the size of the inner
        axis times its stride. `block` has the shape `(2, 3, 2)` and the strides `(12, 4, 1)`. Its
        first two axes merge, because `3 * 4 = 12`. Its last two do not, because `4` is not `2 * 1`:
    """)
    whole = torch.arange(24.0).view(2, 3, 4)
    block = whole[:, :, :2]  # @inspect block.stride()
    top, left = whole[0, :2], whole[0, :, :2]  # @hide
    gapless = [part.is_contiguous() for part in (whole, left, top)]  # @hide
    assert gapless == [True, False, True], "The matrix and its upper rows are contiguous, the left halves are not."  # @hide
    assert block.is_contiguous() is False, "The block is not contiguous."
    merged = block.view(6, 2)  # @inspect merged.stride()
    assert same_storage(block, merged), \
        "Merging the first two axes makes a view."
    refused = message_of(lambda: block.view(2, 6))  # @inspect refused
    assert "view size is not compatible" in refused, \
        "Merging the last two axes is refused."
    longer = block.view(2, 3, 1, 2)  # @hide
    assert same_storage(block, longer), "Adding an axis copies nothing."  # @hide
    misbelief("A non-contiguous tensor cannot be viewed any further.", r"""
        It can: `block` is not contiguous, and `block.view(6, 2)` is a view of it.
    """)
    misbelief("`view()` only works on contiguous memory.",
              "Contiguous memory is sufficient, but not necessary: `view()` fails only where axes have to be merged and cannot be.")
    flat = block.reshape(6, 2)  # @hide
    assert flat.is_contiguous() is False, "The result is not contiguous."  # @hide
    misbelief("Use `contiguous()` or `reshape()` to make a tensor contiguous.", r"""
        `contiguous()` does that. `reshape()` does not have to: `block.reshape(6, 2)` is a view,
        with rows of `2` elements that begin `4` elements apart in memory.
    """)
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
def a_small_view_keeps_everything_alive() -> None:
    """Saving a row to a file saves the whole matrix, unless the row is cloned."""
    note(r"""
        What is in the file if one row of a matrix is saved? A row is a *view*: it uses the memory
        of the whole matrix and [keeps it](#a_view_can_hold_more_or_less_than_it_reports). Here the
        matrix has `1024` rows of `1024` elements of `4` bytes, which makes `4` MiB, and a row has
        `4` KiB:
    """)
    base = torch.zeros(1024, 1024)
    row = base[0]  # @inspect row.nbytes as B
    del base  # @unnoticed: left out: the storage is as large while the matrix has a name
    held = row.untyped_storage().nbytes()  # @inspect held as B
    assert row.nbytes == 4 * KiB, "The row shows 4 KiB."
    assert held == 4 * MiB, "The row keeps 4 MiB in memory."

    note(r"""
        `torch.save` writes the whole storage of a tensor, so that tensors that share memory share
        it again after loading. So the file has `4` MiB as well. A clone has memory of its own, only
        as much as the row needs. Save both; `tell` gives the length of the file:
    """)
    whole, alone = io.BytesIO(), io.BytesIO()
    torch.save(row, whole)
    torch.save(row.clone(), alone)
    with_base, row_only = whole.tell(), alone.tell()  # @inspect with_base as B, row_only as B
    assert with_base // MiB == 4, "The file with the row has 4 MiB."
    assert row.nbytes < row_only < 2 * row.nbytes, \
        "The file with the clone has less than twice the 4 KiB of the row."
    misbelief("Views are free.", r"""
        Making a view costs nothing. But a view keeps the whole memory of the tensor that it was
        taken from: the row of `4` KiB keeps `4` MiB, in memory and in a file.
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
