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
    a_fresh_tensor_costs_count_times_width()
    a_tensor_can_be_weighed_without_memory()
    a_view_can_hold_more_or_less_than_it_reports()
    a_new_tensor_is_float32_on_the_cpu()


@aside
def a_new_tensor_is_float32_on_the_cpu() -> None:
    """A new tensor is in `float32` and in CPU memory, unless its values or an argument say otherwise."""
    note(r"""
        Which number format (*dtype*) and which device does a tensor get if you name neither?
        `float32`, with `4` bytes per element, and the memory of the CPU. That holds for all
        functions that make a tensor from a shape: `zeros`, `ones`, `empty`, and `randn`, which
        draws from the *normal distribution* with mean `0` and standard deviation `1`:
    """)
    makers = (torch.zeros, torch.ones, torch.randn, torch.empty)
    shapes = [tuple(make(4, 8).shape) for make in makers]
    assert shapes == [(4, 8)] * 4, \
        "All four make a tensor of 4 rows and 8 columns."  # @hide
    x = torch.zeros(4, 8)  # @inspect x.dtype, x.device  # @unnoticed: arguments swapped: the same number of elements
    assert x.dtype == torch.float32, "PyTorch's zeros are float32."
    assert x.device == torch.device("cpu"), "A new tensor is on the CPU."
    draws = torch.randn(10**6)  # @hide
    middle, std = abs(round(draws.mean().item(), 2)), round(draws.std().item(), 2)  # @hide
    assert (middle, std) == (0.0, 1.0), \
        "To two digits, the mean is 0 and the standard deviation 1."  # @hide
    note(r"""
        The arguments `dtype=` and `device=` set both. Without `dtype=`, three things change the
        dtype:

        - *The values.* A list of integers becomes `int64`, and so does `torch.arange`, which counts
          up from zero. A single number with a decimal point makes the whole tensor `float32`.
        - *Another library.* NumPy's default is `float64`, `8` bytes per element, and a tensor made
          from a NumPy array keeps that dtype.
        - *An operation.* A quotient of integers is `float32`, even if it is a whole number.
    """)
    whole = torch.tensor([1, 4, 9])
    m: Float[Tensor, "row col"] = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    y = np.zeros((4, 8))
    added, over = whole + whole, whole / 0.5
    dtypes = whole.dtype, added.dtype, over.dtype  # @inspect dtypes
    assert m.dtype == torch.float32, \
        "One of the six has a decimal point, so all become floats."
    assert dtypes == (torch.int64, torch.int64, torch.float32), \
        "Integers and their sums are int64, a quotient is float32."
    assert torch.equal(added, over), "torch.equal compares only the values, and finds them equal."  # @hide
    assert y.dtype == np.float64, "NumPy's zeros are float64."
    assert torch.from_numpy(y).nbytes == 2 * x.nbytes, \
        "A tensor made from the array needs twice as many bytes."
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
        How many bytes do `torch.zeros(1000)`, `torch.arange(1000)` and
        `torch.from_numpy(np.zeros(1000))` need together?
    """, answer=sum(
        t.nbytes
        for t in (torch.zeros(1000), torch.arange(1000), torch.from_numpy(np.zeros(1000)))
    ),
        check=1000 * (4 + 8 + 8), unit="B",
        wrong={
            "Only torch.zeros makes float32; the other two have 8 bytes per element.": 1000 * (4 + 4 + 4),
            "arange makes int64, with 8 bytes per element.": 1000 * (4 + 4 + 8),
        },
        why="The zeros are in `float32`, `4` bytes each. `arange` makes `int64` and NumPy `float64`, both with `8`.")


def a_fresh_tensor_costs_count_times_width() -> None:
    """A new tensor needs its number of elements times the bytes per element."""
    note(r"""
        How many bytes does a tensor need? All its elements have the same number format, its
        *dtype*. In the default, `float32`, an element needs `4` bytes, so `4` rows of `8` columns
        need `4 * 8 * 4 = 128` bytes. Compare that with the tensor's *storage*, the memory that was
        actually allocated. (`numel` is the number of elements, `element_size` the number of bytes
        per element, `nbytes` their product.)
    """)
    x: Float[Tensor, "row col"] = torch.zeros(4, 8)  # @inspect x
    assert x.numel() == 4 * 8, "The tensor has 32 elements."
    assert x.element_size() == 4, "Each element needs 4 bytes."
    assert x.nbytes == 128, "The tensor needs 32 times 4, or 128 bytes."
    assert x.untyped_storage().nbytes() == 128, \
        "128 bytes were actually allocated."
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


def a_tensor_can_be_weighed_without_memory() -> None:
    """The bytes of a tensor can be computed without allocating it."""
    note(r"""
        How much memory does one matrix of GPT-3, a large language model, need? Its largest matrices
        have `4 * 12288` rows of `12288` elements [@gpt3]. You do not have to allocate one to find
        out. A tensor on the device `meta` has a shape and a dtype, but no data, so its `nbytes` is
        still right: `4 * 12288` rows, times `12288` elements in each, times `4` bytes for each
        `float32`. (A MiB is `1024 * 1024` bytes.)
    """)
    d = 12288
    w: Float[Tensor, "up width"] = torch.empty(4 * d, d, device="meta")  # @inspect w
    size = w.nbytes  # @inspect size as B
    assert size == 2304 * 1024 * 1024, "The matrix needs 2304 MiB."
    binary = size / 1024**3  # @inspect binary as GiB
    assert binary == 2.25, \
        "The matrix needs 2.25 GiB; a GiB is 1024 cubed bytes."
    decimal = size / 10**9  # @inspect decimal as GB
    assert 2.415 < decimal < 2.416, "The matrix needs 2.416 GB; a GB is 10**9 bytes."  # @hide
    misbelief(f"That matrix takes {size / MiB / 1000:.1f} GB.", rf"""
        That is `2304` MiB divided by `1000`. But `1024` MiB are one GiB, which makes {binary} GiB,
        and one GB is `10**9` bytes, which makes {decimal:.2f} GB.
    """)
    note(r"""
        Training needs more. With AdamW, the matrix, its gradient and two moments of the same size
        are [held in memory](#adamw_keeps_four_numbers_per_parameter):
    """)
    training = (1 + 1 + 2) * size  # @inspect training as B
    assert training / GiB == 9.0, "Training the matrix needs 9 GiB."
    card = CARDS["H100 SXM"]  # @hide
    reported = card.reported  # @hide
    assert reported is not None, "The memory that the H100 reports is known."  # @hide
    assert 0.99 < reported / (80 * GiB) < 1, \
        "An H100, sold as 80 GB, reports nearly 80 GiB."  # @hide
    assert 1.06 < reported / (80 * GB) < 1.07, "What an H100 reports is more than 80 GB."  # @hide
    question(rf"""
        Training this matrix needs `9` GiB. The L40S, a GPU, reports
        {(CARDS['L40S'].reported or 0) // MiB:,} MiB of memory [@seen-modal]. If nothing else needed
        memory, how many such matrices could it train?
    """, answer=(CARDS["L40S"].reported or 0) // training,
        wrong={
            "That is the matrix alone, without gradient and moments.": (CARDS["L40S"].reported or 0) // size,
            "There are two moments, not one.": (CARDS["L40S"].reported or 0) // (3 * size),
        },
        check=sum(k * training <= 46068 * MiB for k in range(1, 99)),
        hint="How many GiB is that number of MiB? A GiB is `1024` MiB.",
        why=r"""
            Divide the MiB by `1024`: the GPU has just under `45` GiB. Four matrices need
            `4 * 9 = 36` GiB, and five would need `45` GiB, a little too much.
        """)


def a_view_can_hold_more_or_less_than_it_reports() -> None:
    """A view keeps the whole storage in memory, however little of it the view shows."""
    note(r"""
        Keep one column of a matrix, delete the matrix, and no memory is freed. Why? The column is a
        *view*: a second tensor over the same *storage*, the memory in which the elements are. A
        storage is freed only when no tensor uses it any more, so the column keeps the whole matrix
        in memory. To free the matrix, copy the column with `clone` first, and keep only the copy.

        `nbytes` does not reveal this, because it counts only the elements that the column *shows*,
        here `1000` elements of `4` bytes. The storage has `1000 * 1000` elements:
    """)
    matrix = torch.zeros(1000, 1000)
    column = matrix[:, 0]
    del matrix  # @unnoticed: left out: the column keeps the storage either way
    assert column.nbytes == 4000, "The column reports 4000 bytes."
    assert column.untyped_storage().nbytes() == 4_000_000, \
        "The column keeps 4,000,000 bytes in memory."
    copy = column.clone()
    assert copy.untyped_storage().nbytes() == 4000, \
        "A copy of the column keeps 4000 bytes."
    misbelief("The memory of a tensor is set by its number of elements and its dtype.", rf"""
        Not for a view: the column has {column.numel()} elements of `4` bytes, and keeps
        {column.untyped_storage().nbytes():,} bytes in memory. Call `untyped_storage().nbytes()` to
        see that.
    """)
    grid = torch.zeros(100, 100)[::2, ::2]  # @hide
    question(r"""
        `torch.zeros(100, 100)[::2, ::2]` is a view of every other row and column. How many bytes
        does it keep in memory *beyond* those that it reports?
    """, answer=grid.untyped_storage().nbytes() - grid.nbytes,
        wrong={
            "That is everything that it keeps in memory; subtract what it reports.": 4 * 100**2,
            "That is what it reports.": 4 * 50**2,
            "Those are elements; each has four bytes.": 100**2 - 50**2,
        },
        check=4 * (100 * 100 - 50 * 50),
        hint="How many elements does the view show, and how many does its storage have?", unit="B",
        why=r"""
            The view reports `50 * 50` elements of `4` bytes, `10000` bytes. It keeps the storage of
            all `100 * 100` elements, `40000` bytes. The difference is `30000`.
        """)
