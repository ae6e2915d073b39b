"""Storage, strides and views: when two tensors are one memory."""
import io
import struct
import warnings
from typing import Any

import torch
from jaxtyping import Float, Int
from timing import SLACK, time_call
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

        Element `(1, 1)` lies at `0 + 3 + 1 = 4`. The middle column begins at element `1`, and its
        next element is a row further on, `3` elements. So it has the offset `1` and the stride `3`:
    """)
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    middle = x[:, 1]  # @inspect middle
    whole = x.storage_offset(), x.stride()
    part = middle.storage_offset(), middle.stride()
    assert whole == (0, (3, 1)), \
        "The matrix begins at 0; a row is 3 steps, a column 1."
    assert part == (1, (3,)), \
        "The column begins at 1, and its next element is 3 steps on."
    assert same_storage(x, middle), "Both use the same storage."

    misbelief("A tensor is just a pointer to memory.", r"""
        The pointer alone says where the numbers are, and not how to read them. The matrix and its
        column share one storage, and differ in offset, shape and strides.
    """)
    later = middle.data_ptr() - x.data_ptr()  # @hide
    assert later == 1 * x.element_size(), \
        "The column begins one element later in memory."  # @hide

    note(r"""
        The dtype, too, only says how to read. `view(torch.int32)` reads the bytes of the same
        floats as integers. The first one, written in binary, shows the bits of the float `1.0`:
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
    """An element's address is the offset plus each index times its stride."""
    note(r"""
        PyTorch lays a new matrix out row by row, which is called *row-major*. To go down a row
        means stepping over as many elements as a row has; to go right, over a single one.
    """)
    x: Float[Tensor, "row col"] = torch.arange(16.0).view(4, 4)  # @inspect x
    line = x.flatten()  # @inspect line
    assert x.stride() == (4, 1), "down a row, right a column"
    assert line[x.stride(0)].item() == 4.0, "where the next row begins"

    note(r"""
        So element $(i, j)$ lies at $i \, s_0 + j \, s_1$, where $s$ are the strides. Every number
        in this matrix is its own address, which makes that easy to check.
    """)
    place = 1 * x.stride(0) + 2 * x.stride(1)  # @inspect place
    assert place == 6, "one row down, two columns right"
    assert line[place] == x[1, 2], "the element found at that address"

    note(r"""
        That is right only for a tensor that begins where its storage begins. A block cut from the
        middle keeps its parent's strides and gets an offset. Leave the offset out, and you read an
        element of the parent that the block does not even contain.
    """)
    block = x[1:, 2:]  # @inspect block, block.storage_offset(), block.stride()
    start, strides = block.storage_offset(), block.stride()
    steps = 1 * strides[0] + 1 * strides[1]  # @inspect steps
    assert (start, strides) == (6, (4, 1)), "own offset, parent's strides"
    assert line[start + steps] == block[1, 1], "with the offset: right"
    assert line[steps] not in block, "without it: outside the block"
    question(r"""
        A fresh tensor of shape `(3, 4, 5)` is laid out in the same way, last axis fastest. How many
        elements lie before the one at `[2, 1, 3]`?
    """, answer=torch.arange(60).view(3, 4, 5)[2, 1, 3].item(),
        check=2 * 20 + 1 * 5 + 3)


@aside
def a_storage_is_indexed_by_bytes() -> None:
    """An untyped storage is indexed by bytes, not by elements."""
    note(r"""
        The memory behind a tensor can be opened and read, and there are two ways in. The older one
        counts elements: entry `6` of `x.storage()` is element `6`.
    """)
    x: Any = torch.arange(16.0).view(4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # @unnoticed: left out, 'ignore': a warning changes no value
        old = x.storage()[6]
    assert old == 6.0, "the typed storage counts elements"

    misbelief("`x.storage()[6]` is how to read element `6` of a tensor's memory.", r"""
        It works, and warns that it will be removed. The storage that replaces it counts bytes, and
        its entry `6` lies inside element `1`.
    """)
    note(r"""
        The typed storage is deprecated in favour of the untyped one [@pytorch_storage], which knows
        bytes and no dtype. There, element `6` has to be put together from its bytes.
    """)
    raw = x.untyped_storage()
    width = x.element_size()  # @inspect width as B, raw.nbytes() as B
    assert len(raw) == 16 * width, "a length in bytes"
    assert divmod(6, width) == (1, 2), "entry six: inside element one"
    packed = bytes(raw[i] for i in range(6 * width, 7 * width))
    assert struct.unpack("=f", packed) == (6.0,), "together, element six"

    note(r"""
        To look at storage order without touching the storage, ask the tensor: flatten it, or let
        `as_strided` read at an offset of your choice.
    """)
    place = 6
    assert x.flatten()[place] == old, "flattened, then indexed"
    assert x.as_strided((), (), place) == old, "no axes, only an offset"
    question("In which element of an `int64` tensor does entry `42` of its untyped storage lie?",
             answer=42 // torch.zeros(8, dtype=torch.int64).element_size(),
        check=sum(last <= 42 for last in range(8, 999, 8)))


@aside
def basic_indexing_shares_and_picking_copies() -> None:
    """Indexing with numbers and slices shares; picking with lists or masks copies."""
    note(r"""
        A tensor that reads another's storage is a *view* of it. A row, a column, any regular grid
        of elements is some offset and some strides, so it needs no copy.
    """)
    x = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    row, column = x[0], x[:, 1]  # @inspect row, column
    assert same_storage(x, row), "a row is a view"
    assert same_storage(x, column), "so is a column"
    gapless = row.is_contiguous(), column.is_contiguous()
    assert gapless == (True, False), "the column has gaps"

    note(r"""
        Elements picked by a list or by a mask may lie anywhere. No stride describes that, so
        PyTorch copies, even where the pick happens to be a plain row.
    """)
    listed, masked = x[[0]], x[x > 0]  # @inspect listed, masked
    assert not same_storage(x, listed), "a list copies"
    assert not same_storage(x, masked), "a mask copies"

    note(r"""
        The difference shows at the first write. A change *in place* reaches every tensor over that
        storage, and no other.
    """)
    x[0, 1] = 100  # @inspect x, row, column, listed
    assert row.tolist() == [1, 100, 3], "the row sees it"
    assert column.tolist() == [100, 5], "the column sees it"
    assert listed.tolist() == [[1, 2, 3]], "the copy does not"
    assert masked.tolist() == [1, 2, 3, 4, 5, 6], "nor does the other"

    note("Arithmetic that makes a new tensor is no such change, even when it reuses the old name.")
    x = x + 1  # @inspect x
    assert x[0].tolist() == [2, 101, 4], "a new tensor"
    assert row.tolist() == [1, 100, 3], "the old storage is untouched"
    question(r"""
        How many of `x[1:]`, `x[[0, 1]]`, `x[:, ::2]`, `x[x > 50]` and `x[1, 2]` share the storage
        of `x`?
    """, answer=sum(
        same_storage(x, part) for part in (x[1:], x[[0, 1]], x[:, ::2], x[x > 50], x[1, 2])
    ),
        check=sum(
            x.data_ptr() <= part.data_ptr() < x.data_ptr() + x.nbytes
            for part in (x[1:], x[[0, 1]], x[:, ::2], x[x > 50], x[1, 2])
        ))


@aside
def view_gives_the_same_numbers_another_shape() -> None:
    """view() reads the same numbers, in the same order, under another shape."""
    note(r"""
        Nothing moves and nothing changes its order. The line of numbers is cut into rows of another
        length.
    """)
    x: Float[Tensor, "row col"] = torch.arange(1.0, 7.0).view(2, 3)  # @inspect x
    y = x.view(3, 2)  # @inspect y
    assert y.tolist() == [[1, 2], [3, 4], [5, 6]], "not the transpose"
    assert same_storage(x, y), "one storage, two shapes"

    misbelief("`x.view(3, 2)` takes a `3x2` matrix and shows it as `2x3`.",
              "The arguments are the shape that comes out. The matrix that goes in is `2x3`.")
    shapes = tuple(x.shape), tuple(y.shape)
    assert shapes == ((2, 3), (3, 2)), "from here, to there"

    misbelief("`view()` accepts any tensor and treats it as another one.", r"""
        The element counts must agree, and the strides must be able to express the new shape.
        Otherwise it raises.
    """)
    few = message_of(lambda: x.view(2, 2))  # @inspect few
    turned = message_of(lambda: x.t().view(2, 3))  # @inspect turned
    assert "'[2, 2]' is invalid for input of size 6" in few, "counts must agree"
    assert "not compatible with" in turned, "strides must allow it"
    question("For `z = torch.arange(12).view(3, 4)`, what is `z.view(4, 3)[2, 1]`?",
             answer=torch.arange(12).view(3, 4).view(4, 3)[2, 1].item(),
        check=2 * 3 + 1)


def a_transpose_swaps_strides() -> None:
    """A transpose swaps two strides and moves no number."""
    note(r"""
        What does it cost to transpose a large matrix? Next to nothing, because no number moves. A
        matrix has two *strides*: how many elements of memory to step for the next row, and how many
        for the next column. The transpose reads the same memory with these two swapped:
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
        The order of reading has changed. Reading the transpose row by row jumps back and forth in
        memory. A tensor that is read row by row in the order of memory is *contiguous*; the
        transpose is *non-contiguous*:
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
    """A tensor is contiguous when reading it row by row never jumps in memory."""
    note(r"""
        Transposing is not the only way to lose that. Keep the left half of every row, and there are
        gaps in memory; keep the upper rows whole, and there are none.
    """)
    x = torch.arange(16.0).view(4, 4)  # @inspect x
    left, top = x[:, :2], x[:2]  # @inspect left, top
    gapless = [part.is_contiguous() for part in (x, left, top)]
    assert gapless == [True, False, True], "only the cut through rows"

    note(r"""
        The numbers here are their own addresses, so the steps of the walk are the differences
        between neighbours. Contiguous means that all of them are `1`.
    """)
    down, across = top.flatten().diff(), left.flatten().diff()
    assert down.tolist() == [1, 1, 1, 1, 1, 1, 1], "no jump anywhere"
    assert across.tolist() == [1, 3, 1, 3, 1, 3, 1], "a jump after each row"
    question("How many of `x[1:3]`, `x[:, 1:]`, `x[::2]`, `x[2]` and `x[:, 0]` are contiguous?",
             answer=sum(part.is_contiguous() for part in (x[1:3], x[:, 1:], x[::2], x[2], x[:, 0])),
        check=sum(
            all(step == 1 for step in part.flatten().diff().tolist())
            for part in (x[1:3], x[:, 1:], x[::2], x[2], x[:, 0])
        ))


def some_shapes_cannot_be_a_view() -> None:
    """Where no strides give the new shape, `view()` fails and `reshape()` copies."""
    note(r"""
        `view` reads the memory of a tensor in another shape, and copies nothing. When does that
        fail? A view has one stride for each axis: a fixed number of elements from one index to the
        next. If the new shape would need steps of different lengths along one axis, there is no
        such view.

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
    """A view needs no contiguous tensor, only axes that merge."""
    note("A transpose is not contiguous, and some views of it are refused. Far from all:")
    misbelief("A non-contiguous tensor cannot be viewed any further.",
        "Splitting an axis, adding one, indexing and transposing back all work, without a copy.")
    y = torch.arange(1.0, 7.0).view(2, 3).t()  # @inspect y
    longer, row, back = y.view(3, 1, 2), y[0], y.t()  # @unnoticed: 0: any row
    assert y.is_contiguous() is False, "rows that jump"
    assert tuple(longer.shape) == (3, 1, 2), "viewed all the same"
    assert same_storage(y, longer), "without a copy"
    assert same_storage(y, row), "so is a row of it"
    assert same_storage(y, back), "and the way back"

    misbelief("`view()` only works on contiguous memory.",
              "Contiguous memory is enough, but not required.")
    note(r"""
        Only *merging* axes is demanding. Neighbouring axes merge when a step along the outer one is
        as long as a whole walk along the inner one: the outer stride must equal the inner size
        times the inner stride.
    """)
    block = torch.arange(24.0).view(2, 3, 4)[:, :, :2]  # @inspect block.stride()  # @unnoticed: arguments swapped: the first two axes merge in either order
    outer, middle, inner = block.stride()
    merged = block.view(6, 2)  # @inspect merged, merged.stride()
    error = message_of(lambda: block.view(2, 6))  # @inspect error
    assert block.is_contiguous() is False, "half of each row is missing"
    inner_walk = block.size(2) * inner  # @inspect inner_walk  # @unnoticed: * -> /: the inner stride is 1
    assert outer == block.size(1) * middle, "step and walk agree: merge"
    assert same_storage(block, merged), "so this is a view"
    assert (middle, inner_walk) == (4, 2), "step and walk differ"
    assert "view size is not compatible" in error, "so this is refused"
    question(r"""
        Of `torch.zeros(4, 6, 8)[:, :3]`, `view` can merge one pair of neighbouring axes. Which
        shape does that give?
    """, answer=tuple(torch.zeros(4, 6, 8)[:, :3].view(4, -1).shape),
        check=(4, 3 * 8))


@aside
def contiguous_copies_only_when_it_must() -> None:
    """contiguous() copies only when it must, and reshape() never promised to."""
    note("Two calls are trusted to make a fresh, gapless tensor. Neither always does.")
    misbelief("`contiguous()` makes a copy, so afterwards the tensors no longer share memory.",
        "On a contiguous tensor it returns that very tensor. To be sure of a copy, `clone()`.")
    x = torch.arange(1.0, 7.0).view(2, 3)  # @unnoticed: arguments swapped: any matrix
    assert x.contiguous() is x, "nothing to do, the same object"
    assert not same_storage(x, x.t().contiguous()), "had to be copied"
    assert not same_storage(x, x.clone()), "a clone is always a copy"

    misbelief("Use `contiguous()` or `reshape()` to make a tensor contiguous.",
        "`reshape()` promises a shape. Where a view will do it returns the view, gaps and all.")
    block = torch.arange(24.0).view(2, 3, 4)[:, :, :2]  # @unnoticed: arguments swapped: six rows of two in either order
    flat = block.reshape(6, 2)  # @inspect flat, flat.stride()
    assert flat.stride() == (4, 1), "rows of two, four apart"
    assert flat.is_contiguous() is False, "reshape left the gaps"
    assert flat.contiguous().stride() == (2, 1), "contiguous closed them"
    question(r"""
        How many bytes of new memory do `x.contiguous()`, `x.t().contiguous()`,
        `x.t().t().contiguous()`, `x.reshape(3, 2)` and `x.clone()` take together?
    """, answer=sum(
        t.nbytes
        for t in (x.contiguous(), x.t().contiguous(), x.t().t().contiguous(), x.reshape(3, 2),
                  x.clone())
        if not same_storage(x, t)
    ),
        check=2 * x.numel() * 4, unit="B")


@aside
def a_small_view_keeps_everything_alive() -> None:
    """A small view keeps the whole storage alive."""
    note("Keep one row of a matrix, delete the matrix, and no memory comes back.")
    misbelief("Views are free.", r"""
        They cost no copy. But a storage lives as long as its last view, and a saved view takes all
        of it along.
    """)
    base = torch.zeros(1024, 1024)
    row = base[0]  # @inspect row.nbytes as B
    del base  # @unnoticed: left out: the storage is as large while the matrix has a name
    held = row.untyped_storage().nbytes()  # @inspect held as B
    assert row.nbytes == 4 * KiB, "what the row needs"
    assert held == 4 * MiB, "what it holds"

    note(rf"""
        `torch.save` keeps the sharing between the tensors it writes, so it writes storages. This
        row of {row.nbytes / KiB:.0f} KiB makes a file of {held / MiB:.0f} MiB. A clone brings a
        storage of its own size.
    """)
    whole, alone = io.BytesIO(), io.BytesIO()
    torch.save(row, whole)
    torch.save(row.clone(), alone)
    with_base, row_only = whole.tell(), alone.tell()  # @inspect with_base as B, row_only as B
    assert with_base // MiB == 4, "the file holds the matrix"
    assert row.nbytes < row_only < 2 * row.nbytes, \
        "the clone's file holds the row, and a little about it"
    question(r"""
        In each of `100` steps a loop computes fresh `float32` logits of shape `(256, 1024)` and
        appends `logits[0, 0]` to a list. How much memory does the list keep alive?
    """, answer=100 * torch.zeros(256, 1024)[0, 0].untyped_storage().nbytes(),
        check=100 * 256 * 1024 * 4, unit="B")


@aside
def a_view_costs_the_same_at_any_size() -> None:
    """The time of a view does not grow with the tensor; the time of a copy does."""
    note(r"""
        A transpose writes a few integers, whatever the matrix. Making the transposed matrix
        contiguous reads and writes every number.
    """)
    small, x = torch.randn(2, 2), torch.randn(2048, 2048)  # @unnoticed: 2: a few numbers
    small_view = time_call(lambda: small.t(), repeats=7).seconds  # @measure small_view as s
    view = time_call(lambda: x.t(), repeats=7).seconds  # @measure view as s
    copy = time_call(lambda: x.t().contiguous(), repeats=7).seconds  # @measure copy as s
    assert max(small_view, view) < copy, "any view beats the copy"
    small_copy = time_call(lambda: small.t().contiguous(), repeats=7).seconds  # @measure small_copy as s
    assert view < small_copy, "the large view beats a copy of four numbers"
    assert small_copy < copy, "and a copy grows"
    assert x.t().contiguous().nbytes == 16 * MiB, "memory the copy takes"
    assert same_storage(x, x.t()), "the view takes none"

    note(r"""
        The bill for a view may come later, to whoever reads it. `clone()` and the copy above move
        equally many bytes, but `clone()` reads memory in order and the copy of the transpose
        cannot. Whether a view or a copy is faster in the end is worth measuring.
    """)
    clone = time_call(lambda: x.clone(), repeats=7).seconds  # @measure clone as s
    slowdown = copy / clone  # @measure slowdown as times
    least, most = 1 / SLACK, 100 * SLACK  # @hide
    assert least < slowdown < most, \
        "the copy of the transpose is not much quicker than the clone"
    question(r"""
        A `float64` matrix of shape `(1000, 500)` is transposed and made contiguous. How many bytes
        are read and written, taken together?
    """, answer=2 * torch.zeros(1000, 500, dtype=torch.float64).nbytes,
        check=1000 * 500 * 8 * 2, unit="B")
