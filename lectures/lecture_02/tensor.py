"""How tensors are made, and how many bytes they take."""

import numpy as np
import torch
from hardware import CARDS
from jaxtyping import Float, Int
from torch import Tensor, nn
from units import GB, GiB, MiB

from litbook import aside, misbelief, note, question

from .measure import adamw_step


def tensors() -> None:
    """Tensors."""
    note(r"""
        Parameters, gradients, optimizer state, activations, data: in PyTorch all of these are
        tensors. So the memory of a training run is the memory of its tensors, and each tensor
        reports how many bytes it needs. There is one trap: two tensors may use the same bytes.
    """)
    a_new_tensor_needs_count_times_bytes()
    bytes_can_be_counted_without_allocating()
    a_view_can_hold_more_or_less_than_it_reports()
    a_new_tensor_is_float32_on_the_cpu()


@aside
def a_new_tensor_is_float32_on_the_cpu() -> None:
    """A new tensor is in `float32` and in CPU memory, unless its values or an argument say otherwise."""
    note(r"""
        A tensor has a number format, its *dtype*, and a device that holds its elements. What does
        PyTorch choose if you name neither? `float32`, with `4` bytes per element, and the memory of
        the CPU. `torch.zeros`, `torch.ones`, `torch.empty` and `torch.randn`, which draws from the
        normal distribution, all choose the same:
    """)
    x = torch.zeros(2, 3)  # @inspect x.dtype, x.device  # @unnoticed: arguments swapped: the same number of elements
    assert x.dtype == torch.float32, "PyTorch's zeros are float32."
    assert x.device == torch.device("cpu"), "A new tensor is on the CPU."
    makers = (torch.zeros, torch.ones, torch.randn, torch.empty)  # @hide
    shapes = [tuple(make(4, 8).shape) for make in makers]  # @hide
    assert shapes == [(4, 8)] * 4, "All four make a tensor of 4 rows and 8 columns."  # @hide
    formats = [make(4, 8).dtype for make in makers]  # @hide
    assert formats == [torch.float32] * 4, "All four make float32."  # @hide
    draws = torch.randn(10**6)  # @hide
    middle, std = abs(round(draws.mean().item(), 2)), round(draws.std().item(), 2)  # @hide
    assert (middle, std) == (0.0, 1.0), \
        "To two digits, the mean is 0 and the standard deviation 1."  # @hide
    note(r"""
        The arguments `dtype=` and `device=` change that. Without `dtype=`, a tensor that is made
        *from values* takes its dtype from them. A list of integers becomes `int64`, with `8` bytes
        per element. A single decimal point makes all elements `float32`. A NumPy array keeps its
        dtype; that of `np.zeros` is `float64`, also `8` bytes:
    """)
    ids = torch.tensor([1, 4, 9])  # @inspect ids.dtype
    m = torch.tensor([[1.0, 2, 3], [4, 5, 6]])  # @inspect m.dtype
    y = np.zeros((2, 3))
    from_numpy = torch.from_numpy(y)  # @inspect from_numpy.dtype
    assert ids.dtype == torch.int64, "A list of integers becomes int64."
    assert m.dtype == torch.float32, \
        "One of the six has a decimal point, so all become floats."
    assert y.dtype == np.float64, "NumPy's zeros are float64."
    assert from_numpy.nbytes == 2 * x.nbytes, \
        "A tensor made from the array needs twice as many bytes."
    assert m.tolist() == [[1, 2, 3], [4, 5, 6]], "The values are the same."  # @hide
    added, over = ids + ids, ids / 0.5  # @hide
    assert (added.dtype, over.dtype) == (torch.int64, torch.float32), \
        "Sums of integers are int64, a quotient is float32."  # @hide
    assert torch.equal(added, over), "torch.equal compares only the values, and finds them equal."  # @hide
    note(r"""
        In a language model nearly all tensors are floats: weights, activations, gradients and the
        optimizer's state. The *token ids*, which pick rows from a table of weights, are integers.
        There is no proof of how much precision a network needs. In practice, far less than that of
        `float32` is enough [@micikevicius2018].
    """)
    table = nn.Embedding(100, 4)  # @hide
    tokens: Int[Tensor, "seq"] = torch.tensor([7, 42, 99])  # @hide
    activations: Float[Tensor, "seq dim"] = table(tokens)  # @hide
    activations.sum().backward()  # @hide
    moment = adamw_step(table.weight)["exp_avg"]  # @hide
    kinds = {t.dtype for t in (table.weight, table.weight.grad, moment, activations) if t is not None}  # @hide
    assert kinds == {torch.float32}, "Weights, gradient, moment and activations are float32."  # @hide
    assert tokens.dtype == torch.int64, "The token ids are int64."  # @hide
    question(r"""
        How many bytes do `torch.zeros(1000)`, `torch.tensor([7] * 1000)` and
        `torch.from_numpy(np.zeros(1000))` need together?
    """, answer=sum(
        t.nbytes
        for t in (torch.zeros(1000), torch.tensor([7] * 1000), torch.from_numpy(np.zeros(1000)))
    ),
        check=1000 * (4 + 8 + 8), unit="B",
        wrong={
            "Only torch.zeros makes float32; the other two have 8 bytes per element.": 1000 * (4 + 4 + 4),
            "A list of integers becomes int64, with 8 bytes per element.": 1000 * (4 + 4 + 8),
        },
        why="The zeros are in `float32`, `4` bytes each. The integers become `int64` and NumPy's zeros are `float64`, both with `8`.")


def a_new_tensor_needs_count_times_bytes() -> None:
    """A new tensor needs its number of elements times the bytes per element."""
    note(r"""
        How many bytes does a tensor need? All its elements have the same number format, its
        *dtype*, so every element needs the same number of bytes. The tensor needs the number of
        elements times that.

        The default dtype is `float32`, with `4` bytes per element. A tensor of $2$ rows and $3$
        columns has $6$ elements and needs $24$ bytes. PyTorch gives all three numbers, here for a
        tensor of `4` rows and `8` columns:
    """)
    x = torch.zeros(4, 8)  # @inspect x  # @unnoticed: arguments swapped: the same number of elements
    elements = x.numel()  # @inspect elements
    bytes_each = x.element_size()  # @inspect bytes_each as B
    needed = x.nbytes  # @inspect needed as B
    assert elements == 4 * 8, "The tensor has 32 elements."
    assert x.element_size() == 4, "Each element needs 4 bytes."
    assert x.nbytes == 128, "The tensor needs 32 times 4, or 128 bytes."
    note(r"""
        The memory that holds the elements is the tensor's *storage*. A new tensor's storage has
        just the size that it needs:
    """)
    storage = x.untyped_storage().nbytes()  # @inspect storage as B
    assert storage == needed == 128, "The storage has 128 bytes."
    question("A fresh `float32` tensor of shape `(25, n)` costs `6000` bytes. What is `n`?",
             answer=6000 // torch.zeros(25, 1).nbytes,
        wrong={
            "That counts one byte per element; a float32 has four.": 6000 // 25,
            "That is for elements of eight bytes.": 6000 // 200,
        },
        check=next(n for n in range(999) if torch.empty(25, n).nbytes == 6000),
        hint="How many elements is that, at `4` bytes each?",
        why=r"""
            `6000` bytes are `6000 / 4 = 1500` elements. With `25` rows, each row has
            `1500 / 25 = 60` of them.
        """)


def bytes_can_be_counted_without_allocating() -> None:
    """The bytes of a tensor can be computed without allocating it."""
    note(r"""
        How much memory does one matrix of GPT-3, a large language model, need? You can find out on
        any machine, however small, because the bytes of a tensor depend only on its shape and its
        dtype, not on its values.

        PyTorch has a device for this, called `meta`. A tensor there has a shape and a dtype, but no
        values, and nothing is allocated. The largest matrices in each layer of GPT-3 have
        `4 * 12288` rows and `12288` columns [@gpt3]:
    """)
    w = torch.empty(4 * 12288, 12288, device="meta")
    size = w.nbytes  # @inspect size as B
    assert w.device.type == "meta", "Nothing is allocated."  # @hide
    assert w.shape[0] == 4 * w.shape[1], "It has four times as many rows as columns."  # @hide
    assert size == 4 * 12288 * 12288 * 4, "It needs 4 bytes for each float32."
    assert size == 2304 * 1024 * 1024, "The matrix needs 2304 MiB."  # @hide
    note(rf"""
        Memory sizes are given in one of two units. A *GiB* is `1024**3` bytes, and a *GB* is
        `10**9` bytes, {1 - GB / GiB:.0%} less:
    """)
    binary = size / 1024**3  # @inspect binary as GiB
    assert binary == 2.25, \
        "The matrix needs 2.25 GiB; a GiB is 1024 cubed bytes."  # @hide
    decimal = size / 10**9  # @hide
    assert 2.415 < decimal < 2.416, "The matrix needs 2.416 GB; a GB is 10**9 bytes."  # @hide
    misbelief(f"That matrix needs {size / MiB / 1000:.1f} GB.", rf"""
        This mixes the units: {size // MiB} MiB, of `1024**2` bytes each, were divided by `1000`.
        The correct figures are {binary} GiB and {decimal:.2f} GB.
    """)
    note(r"""
        Training needs more. With AdamW, the matrix, its gradient and two moments of the same size
        are [held in memory](#training_holds_four_values_per_parameter):
    """)
    training = (1 + 1 + 2) * binary  # @inspect training as GiB
    assert training == 9.0, "Training the matrix needs 9 GiB."
    card = CARDS["H100 SXM"]  # @hide
    reported = card.reported  # @hide
    assert reported is not None, "The memory that the H100 reports is known."  # @hide
    assert 0.99 < reported / (80 * GiB) < 1, \
        "An H100, sold as 80 GB, reports nearly 80 GiB."  # @hide
    assert 1.06 < reported / (80 * GB) < 1.07, "What an H100 reports is more than 80 GB."  # @hide
    halved = torch.empty(4 * 12288, 12288, device="meta", dtype=torch.bfloat16)  # @hide
    question(r"""
        The same matrix, its gradient and its two moments are all in `bfloat16`, a format of `2`
        bytes. How many GiB do the four need?
    """, answer=4 * halved.nbytes / GiB,
        wrong={
            "That is in float32, with 4 bytes per element.": training,
            "That is the matrix alone, without gradient and moments.": binary / 2,
        },
        check=9 / 2, unit="GiB",
        hint="What do the bytes of a tensor depend on?",
        why=r"""
            The shape is the same, and each element needs `2` bytes instead of `4`. So each of the
            four tensors needs half of its bytes, and `9 / 2 = 4.5`.
        """)


def a_view_can_hold_more_or_less_than_it_reports() -> None:
    """A view keeps the whole storage in memory, however little of it the view shows."""
    note(r"""
        You keep one column of a matrix and delete the matrix. Why does this free no memory? Because
        the column is a *view*: it has no elements of its own, but uses the *storage* of the matrix,
        the memory that holds its elements. PyTorch frees a storage only when no tensor uses it any
        more.

        Take a matrix of $3$ rows and $3$ columns, with $4$ bytes per element. Its storage has $36$
        bytes. A column has $3$ elements, which are $12$ bytes, but as long as the column exists,
        all $36$ bytes stay in memory.

        `nbytes` does not show that, because it counts only the elements of the column. Here is a
        larger matrix:
    """)
    matrix = torch.zeros(1000, 1000)
    column = matrix[:, 0]  # all rows, column 0
    del matrix  # @unnoticed: left out: the column keeps the storage either way
    reported = column.nbytes  # @inspect reported as B
    kept = column.untyped_storage().nbytes()  # @inspect kept as B
    assert reported == 4000, "The column reports 4000 bytes."
    assert kept == 4_000_000, \
        "The column keeps 4,000,000 bytes in memory."
    note(r"""
        To free the matrix, copy the column with `clone`, and keep only the copy. The copy has a
        storage of its own:
    """)
    copy = column.clone()
    del column  # @unnoticed: left out: the copy has its own storage either way
    kept_by_copy = copy.untyped_storage().nbytes()  # @inspect kept_by_copy as B
    assert kept_by_copy == 4000, \
        "A copy of the column keeps 4000 bytes."
    misbelief("The memory of a tensor is set by its number of elements and its dtype.", rf"""
        Not for a view: the column had {copy.numel()} elements of `4` bytes, and kept {kept:,} bytes
        in memory. Call `untyped_storage().nbytes()` to see that.
    """)
    grid = torch.zeros(100, 100)[:50]  # @hide
    question(r"""
        `x = torch.zeros(100, 100)` is followed by `x = x[:50]`, which shows the first `50` rows.
        How many bytes of memory does the second line free?
    """, answer=4 * 100 * 100 - grid.untyped_storage().nbytes(),
        wrong={
            "Those are the bytes of the rows that x no longer shows. The storage still holds them.": 4 * 50 * 100,
        },
        check=0,
        hint="Which storage does the new `x` use?", unit="B",
        why=r"""
            The new `x` is a view of the old tensor. It shows half of the elements, but keeps the
            whole storage of `100 * 100` elements in memory, so nothing is freed.
        """)
