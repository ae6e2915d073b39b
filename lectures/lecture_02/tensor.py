"""How tensors are made, and how many bytes they take."""
import math

import torch
from hardware import CARDS
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from units import GB, GiB, MiB

from litbook import aside, misbelief, note, question

from .measure import adamw_step, deterministic, message_of


def tensors() -> None:
    """Tensors."""
    note(r"""
        Parameters, gradients, optimizer state, activations, data: in PyTorch all of it is tensors.
        So the memory of a training run is the memory of its tensors, and that can be read off, with
        one trap: two tensors may be looking at the same bytes.
    """)
    a_fresh_tensor_costs_count_times_width()
    a_tensor_can_be_weighed_without_memory()
    a_view_can_hold_more_or_less_than_it_reports()
    one_decimal_point_decides_the_dtype()
    four_ways_to_make_a_tensor()
    randn_draws_from_the_standard_normal()
    truncation_narrows_the_spread()
    most_tensors_hold_floats()


@aside
def one_decimal_point_decides_the_dtype() -> None:
    """One number with a decimal point makes a whole tensor `float32`."""
    note(r"""
        `torch.tensor` makes a tensor from lists of numbers. All elements of a tensor have one
        number format, its *dtype*. Which one is it, if some numbers are written with a decimal
        point and some without? A single point is enough to make all of them `float32`. Without any,
        the tensor is of integers, `int64`:
    """)
    m: Float[Tensor, "row col"] = torch.tensor([[1.0, 2, 3], [4, 5, 6]])  # @inspect m
    assert m.shape == (2, 3), "Two lists of three numbers make two rows."  # @hide
    assert m.dtype == torch.float32, \
        "One of the six has a point: all are floats."
    whole: Int[Tensor, "n"] = torch.tensor([1, 4, 9])  # @inspect whole
    assert whole.dtype == torch.int64, "None has a point: all are integers."
    note(r"""
        That matters because integers have no gradient: they cannot change by a little. Asking for
        one with `requires_grad_()` is an error. (`message_of` runs a call and returns its error.)
    """)
    refused = message_of(lambda: whole.requires_grad_())  # @inspect refused
    assert "floating point" in refused, "A gradient needs floats."
    question(r"""
        Python writes floats with a point, or with `e` as in `1e3`. How many of these accept
        `requires_grad_()`: `torch.tensor([3, 4])`, `torch.tensor([3, 4.])`,
        `torch.tensor([1e3, 1])`, `torch.tensor([10**3, 1])`?
    """, answer=sum(
        message_of(torch.tensor(numbers).requires_grad_) == ""
        for numbers in ([3, 4], [3, 4.0], [1e3, 1], [10**3, 1])
    ),
        check=sum(
            any(isinstance(it, float) for it in numbers)
            for numbers in ([3, 4], [3, 4.0], [1e3, 1], [10**3, 1])
        ),
        wrong={
            "1e3 is a float, too.": 1,
            "10**3 is an integer.": 3,
        },
        why="`4.` and `1e3` are floats, and one float is enough. The other two hold integers only.")


@aside
def four_ways_to_make_a_tensor() -> None:
    """zeros, ones, randn and empty make a tensor from a shape; empty leaves its numbers unset."""
    note(r"""
        Four functions make a tensor of a given shape. `zeros` and `ones` fill it with zeros and
        with ones, and `randn` with random numbers. What does `empty` fill it with? Nothing. It only
        takes the memory, and the tensor shows whatever was in that memory before:
    """)
    makers = (torch.zeros, torch.ones, torch.randn, torch.empty)
    shapes = [tuple(make(4, 8).shape) for make in makers]  # @inspect shapes
    assert shapes == [(4, 8)] * 4, \
        "All four make a tensor of 4 rows and 8 columns."
    assert torch.ones(4, 8).sum() == 32, "The ones of torch.ones add up to 32."  # @hide
    note(r"""
        That may be zeros by chance, so a program that forgets to fill the tensor may seem to work.
        PyTorch's deterministic mode shows the mistake: it fills an `empty` tensor with NaN, "not a
        number". Whatever is computed with a NaN is a NaN as well. (`deterministic` switches the
        mode on for the lines inside.)
    """)
    with deterministic():
        unwritten = torch.empty(4, 8)  # @inspect unwritten  # @unnoticed: arguments swapped: any shape
    assert unwritten.isnan().sum() == 32, "All 32 numbers are NaN."
    question(r"""
        Deterministic mode is on. In a new `torch.empty(4, 8)` all elements but one are set to `1`.
        What is the sum of the tensor?
    """, answer=torch.cat([torch.ones(31), unwritten[0, :1]]).sum().item(),
        check=sum([1.0] * 31) + math.nan,
        wrong={
            "The element that was not set is NaN, not zero.": 31,
            "The element that was not set is NaN, not one.": 32,
        },
        why="One element is still NaN, and a sum with a NaN in it is NaN.")


@aside
def randn_draws_from_the_standard_normal() -> None:
    """`randn` draws numbers with mean 0 and standard deviation 1."""
    note(r"""
        `torch.randn` draws random numbers from the standard *normal distribution*. Its mean is `0`,
        and its standard deviation, `std`, is `1`: that is how far from the mean the numbers
        typically lie. Draw a million of them, and look:
    """)
    x = torch.randn(10**6)  # @inspect x  # @unnoticed: 10 -> 11, 6: more draws come nearer
    middle = abs(round(x.mean().item(), 2))  # @inspect middle
    std = round(x.std().item(), 2)  # @inspect std
    assert (middle, std) == (0.0, 1.0), \
        "To two digits, the mean is 0 and the standard deviation 1."
    note(r"""
        How many of the numbers lie within one standard deviation of the mean, so between `-1` and
        `1`? For any normal distribution the share is the same, $\operatorname{erf}(1/\sqrt{2})$,
        about two thirds:
    """)
    theory = math.erf(1 / math.sqrt(2))  # @inspect theory as %
    inside = (x.abs() < 1).double().mean().item()  # @inspect inside as %  # @unnoticed: .double(): the mean of ones and zeros is exact enough in either
    assert 0.995 < inside / theory < 1.005, \
        "The share of the draws is that of the formula."

    def correlation(y: Tensor, back: int) -> float:  # @hide
        pairs = torch.stack([y[:-back], y[back:]])
        return abs(round(pairs.corrcoef()[0, 1].item(), 2))

    related = [correlation(x, 1), correlation(x, 10), correlation(x.abs(), 1)]  # @hide
    assert related == [0.0, 0.0, 0.0], "A number does not depend on the one before, nor on the tenth before."  # @hide
    note(r"""
        For another mean and another deviation, multiply and add: `3 + 2 * torch.randn(n)` has the
        mean `3` and the standard deviation `2`.
    """)
    y = 3 + 2 * x  # @unnoticed: + -> -: as likely, since x is symmetric
    moved = round(y.mean().item(), 1), round(y.std().item(), 1)  # @inspect moved
    assert moved == (3.0, 2.0), \
        "The mean of 3 + 2 * x is 3, its standard deviation 2."
    question("What share of the entries of `3 + 2 * torch.randn(10**6)` lies between `1` and `5`?",
             answer=round(((y > 1) & (y < 5)).double().mean().item(), 2),
        check=round(theory, 2), unit="%",
        why="The mean is `3` and the standard deviation `2`, so `1` to `5` is one standard deviation to either side, as `-1` to `1` is for `randn` itself.")


@aside
def truncation_narrows_the_spread() -> None:
    """Random weights whose tails are cut off spread less than `std` says."""
    note(r"""
        Weights are often drawn from a normal distribution whose *tails*, the numbers far from the
        mean, are cut off. `trunc_normal_` does that: it fills a tensor with numbers that lie
        between `a` and `b`. (Its underscore says that it overwrites the tensor.) Ask for a standard
        deviation of `std=1`, and cut at `-2` and `2`. Is the standard deviation of the weights `1`?
        No, it is smaller, because the numbers farthest from the mean are missing:
    """)
    x = torch.empty(10**6)  # @unnoticed: 10 -> 11, 6: more draws come nearer
    y = nn.init.trunc_normal_(x, mean=0, std=1, a=-2, b=2)  # @inspect x
    assert y is x, "trunc_normal_ returns the tensor itself."  # @hide
    assert x.abs().max() <= 2, "No number is beyond the cut."
    std = x.std().item()  # @inspect std
    density = math.exp(-2) / math.sqrt(2 * math.pi)  # @hide
    theory = math.sqrt(1 - 4 * density / math.erf(math.sqrt(2)))  # @hide
    assert 0.8796 < theory < 0.8797, "In theory, a cut at two deviations leaves 0.88 of them."  # @hide
    assert 0.997 < std / theory < 1.003, "The standard deviation is that of theory."  # @hide
    assert round(std, 2) == 0.88, "The standard deviation is 0.88, not 1."
    note(rf"""
        So `std` is the standard deviation *before* the cut. A cut at twice `std` leaves {std:.2f}
        times as much. To end up with a certain standard deviation, ask for more.
    """)
    question(r"""
        The weights should *end up* with a standard deviation of `0.02`, after a cut at twice the
        `std` that you ask for. Which `std` is that?
    """, answer=round(0.02 / theory, 3), check=round(0.02 / std, 3),
        wrong={
            "That is what is left if you ask for 0.02.": round(0.02 * 0.88, 4),
        },
        why="The cut leaves `0.88` of `std`, so ask for `0.02 / 0.88`.")


@aside
def most_tensors_hold_floats() -> None:
    """Weights, gradients and activations are floats; token ids are integers, and masks are booleans."""
    note(r"""
        Are all tensors of a language model floats? Nearly. The text comes in as integers, the
        *token ids*. Each of them picks a row from a table of weights. From there on, everything
        that is learned or computed is floats. The *mask* of attention, which says what may look at
        what, is booleans: true or false. Make one of each. `adamw_step` makes a step of the
        optimizer and returns what it remembers, such as the moments:
    """)
    table = nn.Embedding(100, 4)  # @unnoticed: 100 -> 101, 100 -> 200, 4: as many rows as there are tokens, or more
    tokens: Int[Tensor, "seq"] = torch.tensor([7, 42, 99])  # @inspect tokens
    activations: Float[Tensor, "seq dim"] = table(tokens)  # @inspect activations
    mask: Bool[Tensor, "query key"] = torch.ones(3, 3).tril().bool()  # @inspect mask
    activations.sum().backward()
    assert table.weight.grad is not None, "The table has a gradient."  # @hide
    moment = adamw_step(table.weight)["exp_avg"]
    floats = [table.weight, table.weight.grad, moment, activations]
    kinds = {t.dtype for t in floats}  # @inspect kinds
    assert kinds == {torch.float32}, \
        "Weights, gradient, moment and activations are float32."
    assert tokens.dtype == torch.int64, "The token ids are int64."
    assert mask.dtype == torch.bool, "The mask is of booleans."
    widths = tokens.element_size(), mask.element_size()  # @inspect widths
    assert widths == (8, 1), "A token id takes 8 bytes, a boolean takes 1."
    question(r"""
        A sequence has `1024` token ids, of `8` bytes each, and a mask with a boolean of one byte
        for each pair of tokens. How many times the bytes of the ids does the mask take?
    """, answer=torch.ones(1024, 1024, dtype=torch.bool).nbytes // torch.arange(1024).nbytes,
        check=1024 * 1024 * widths[1] // (1024 * widths[0]),
        unit="times",
        wrong={
            "A token id takes 8 bytes, a boolean only one.": 1024,
        },
        why="The ids take `1024 * 8` bytes, and the mask `1024 * 1024`. The ratio is `1024 / 8`.")


def a_fresh_tensor_costs_count_times_width() -> None:
    """A new tensor takes its number of elements times the bytes of each."""
    note(r"""
        How many bytes does a tensor take? All its elements have one number format, its *dtype*. In
        the default, `float32`, an element takes `4` bytes, so `4` rows of `8` columns take
        `4 * 8 * 4 = 128`. Compare that with the tensor's *storage*, the memory that was really
        allocated. (`numel` is the number of elements, `element_size` the bytes of each, `nbytes`
        their product.)
    """)
    x: Float[Tensor, "row col"] = torch.zeros(4, 8)  # @inspect x
    assert x.numel() == 4 * 8, "The tensor has 32 elements."
    assert x.element_size() == 4, "Each element takes 4 bytes."
    assert x.nbytes == 128, "The tensor takes 32 times 4, 128 bytes."
    assert x.untyped_storage().nbytes() == 128, \
        "128 bytes were really allocated."
    question("A fresh `float32` tensor of shape `(25, n)` costs `6000` bytes. What is `n`?",
             answer=6000 // torch.zeros(25, 1).nbytes,
        wrong={
            "That counts a byte for each number; a float32 has four.": 6000 // 25,
            "That is for numbers of eight bytes.": 6000 // 200,
        },
        check=next(n for n in range(999) if torch.empty(25, n).nbytes == 6000),
        hint="How many elements are that, at `4` bytes each?",
        why=r"""
            `6000` bytes are `6000 / 4 = 1500` elements. In `25` rows that makes `1500 / 25 = 60`
            for each row.
        """)


def a_tensor_can_be_weighed_without_memory() -> None:
    """The bytes of a tensor can be computed without allocating it."""
    note(r"""
        How much memory does one matrix of GPT-3, a large language model, take? Its largest have
        `4 * 12288` rows of `12288` numbers [@gpt3]. You need not allocate one to find out: a tensor
        on the device `meta` has a shape and a dtype, but no data. Its `nbytes` is still right,
        `4 * 12288 * 12288 * 4`:
    """)
    d = 12288
    w: Float[Tensor, "up width"] = torch.empty(4 * d, d, device="meta")  # @inspect w
    size = w.nbytes  # @inspect size as B
    assert size == 2304 * 1024 * 1024, "The matrix takes 2304 MiB."
    binary = size / 1024**3  # @inspect binary as GiB
    assert binary == 2.25, \
        "The matrix takes 2.25 GiB; a GiB is 1024 cubed bytes."
    decimal = size / 10**9  # @inspect decimal as GB
    assert 2.415 < decimal < 2.416, "The matrix takes 2.416 GB; a GB is 10**9 bytes."  # @hide
    misbelief(f"That matrix takes {size / MiB / 1000:.1f} GB.", rf"""
        It takes {binary} GiB, which is {decimal:.2f} GB. The wrong number is `2304 / 1000`: MiB
        divided as if a thousand of them were a GB. But `1024` MiB are one GiB, and one GB is
        `10**9` bytes.
    """)
    note(r"""
        Training needs more. With AdamW, the matrix, its gradient and two moments of the same size
        are [held in memory](#adamw_keeps_four_numbers_per_parameter):
    """)
    training = (1 + 1 + 2) * size  # @inspect training as B
    assert training / GiB == 9.0, "Training the matrix takes 9 GiB."
    card = CARDS["H100 SXM"]  # @hide
    reported = card.reported  # @hide
    assert reported is not None, "The memory that the H100 reports is known."  # @hide
    assert 0.99 < reported / (80 * GiB) < 1, \
        "An H100, sold as 80 GB, reports nearly 80 GiB."  # @hide
    assert 1.06 < reported / (80 * GB) < 1.07, "What an H100 reports is more than 80 GB."  # @hide
    question(rf"""
        To train this matrix takes `9` GiB. A GPU, the L40S, is sold with `48` GB [@nvidia-l40s],
        and its driver reports {(CARDS['L40S'].reported or 0) // MiB:,} MiB [@seen-modal]. If
        nothing else needed memory, how many such matrices could it train?
    """, answer=(CARDS["L40S"].reported or 0) // training,
        wrong={
            "That is the matrix alone, without gradient and moments.": (CARDS["L40S"].reported or 0) // size,
            "There are two moments, not one.": (CARDS["L40S"].reported or 0) // (3 * size),
        },
        check=sum(k * training <= 46068 * MiB for k in range(1, 99)),
        hint="How many GiB are that many MiB? A GiB is `1024` MiB.",
        why=r"""
            Divide the MiB by `1024`: the card has just under `45` GiB. Four matrices take
            `4 * 9 = 36` GiB, and five would take `45`, a little too much.
        """)


def a_view_can_hold_more_or_less_than_it_reports() -> None:
    """A view keeps the whole storage in memory, whatever it shows of it."""
    note(r"""
        Keep one column of a matrix, delete the matrix, and no memory is freed. Why? The column is a
        *view*: a second tensor over the same *storage*, the memory in which the numbers lie. A
        storage is freed only when no tensor uses it any more, so the column keeps the whole matrix
        in memory. `nbytes` does not show that, because it counts only the elements that the column
        *shows*:
    """)
    matrix = torch.zeros(1000, 1000)
    column = matrix[:, 0]  # @inspect column.stride()
    del matrix  # @unnoticed: left out: the column keeps the storage either way
    assert column.nbytes == 4000, "The column reports 4000 bytes."
    assert column.untyped_storage().nbytes() == 4_000_000, \
        "The column keeps 4,000,000 bytes in memory."
    copy = column.clone()
    assert copy.untyped_storage().nbytes() == 4000, \
        "A copy of the column keeps 4000 bytes."
    note(r"""
        A view can also hold less than it reports. `expand` shows one number as a vector of `1000`.
        Its *stride*, the step in the storage from one element to the next, is zero, so it reads the
        same number again and again:
    """)
    wide = torch.ones(1).expand(1000)  # @inspect wide.stride()
    assert wide.nbytes == 4000, "The expanded vector reports 4000 bytes."
    assert wide.untyped_storage().nbytes() == 4, \
        "The storage of the expanded vector has 4 bytes."
    misbelief("The memory of a tensor is set by its number of elements and its dtype.", rf"""
        Not for a view: the column has {column.numel()} elements of `4` bytes, and keeps
        {column.untyped_storage().nbytes():,} bytes in memory. Ask `untyped_storage().nbytes()`, and
        count each storage once.
    """)
    grid = torch.zeros(100, 100)[::2, ::2]  # @hide
    question(r"""
        `torch.zeros(100, 100)[::2, ::2]` is a view of every other row and column. How many bytes
        does it keep in memory *beyond* those that it reports?
    """, answer=grid.untyped_storage().nbytes() - grid.nbytes,
        wrong={
            "That is all it keeps in memory; subtract what it reports.": 4 * 100**2,
            "That is what it reports.": 4 * 50**2,
            "Those are numbers; each has four bytes.": 100**2 - 50**2,
        },
        check=4 * (100 * 100 - 50 * 50),
        hint="How many numbers does the view show, and how many does its storage have?", unit="B",
        why=r"""
            The view reports `50 * 50` numbers of `4` bytes, `10000` bytes. It keeps the storage of
            all `100 * 100`, `40000` bytes. The difference is `30000`.
        """)
