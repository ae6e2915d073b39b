"""What counts as a FLOP, and how many FLOPs a matmul costs."""
from counters import Watching, flops, tensors_in
from functools import cmp_to_key
from typing import Any

import torch
from hardware import CARDS
from jaxtyping import Float
from torch import Tensor
from units import DAY, TERA

from litbook import aside, explore, misbelief, note, question

from .figures import plot_box
from .measure import arithmetic, counted, dense_peak
from .tiling import a_matmul_in_tiles_loads_less, tiles_must_be_large_enough


def counting_flops() -> None:
    """Counting FLOPs."""
    note(r"""
        How much work is a matmul of two matrices, or the forward pass of a whole model? The measure
        is FLOPs. This part says what counts as a FLOP, gives two formulas that are enough for most
        estimates, and shows which operations take much time for few FLOPs. Each count is made
        twice: by a formula, and by a program that does not know the formula.
    """)
    only_arithmetic_counts()
    a_matmul_costs_two_m_k_n()
    a_forward_pass_costs_two_per_parameter()
    cheap_in_flops_is_not_cheap_in_time()
    a_matmul_in_tiles_loads_less()
    tiles_must_be_large_enough()
    a_rate_times_a_time_is_work()


@aside
def only_arithmetic_counts() -> None:
    """By convention additions and multiplications are FLOPs; copies and comparisons are not."""
    note(r"""
        Which operations on a matrix cost FLOPs? By convention arithmetic counts, such as additions,
        multiplications and divisions, and copies, conversions and comparisons do not.

        A record shows how many of each there are. `counted` makes a matrix whose elements write
        each `+`, `*` and `<` into a list, the *tally*. Add a `3 × 5` matrix to itself:
    """)
    tally: list[str] = []
    a = counted(tally, 3, 5)
    total = a + a
    assert total.shape == (3, 5), "There is a sum for each of the 15 numbers."  # @hide
    assert tally == ["+"] * 3 * 5, \
        "The tally has 15 additions, one per element."
    note(r"""
        So the sum costs `15` FLOPs. Then compare each element with another one. The comparisons are
        recorded, but they are not arithmetic, so they are not FLOPs:
    """)
    smaller = a < a[::-1]  # with the rows in reverse order
    assert smaller.shape == (3, 5), "There is a comparison for each of the 15 numbers."  # @hide
    assert tally[15:] == ["<"] * 3 * 5, \
        "The comparison adds 15 times < to the tally, and no + or *."
    misbelief("A FLOP is any operation that involves floating-point numbers.", r"""
        A copy, a conversion to another format and a comparison involve them as well, and cost no
        FLOP. Arithmetic is counted, such as additions and multiplications.
    """)
    note(r"""
        PyTorch's own counter leaves out more: an operation that it has no formula for, even a sum,
        counts as zero [@pytorch_flop_counter].
    """)
    x = torch.randn(3, 5)
    summed = flops(lambda: x + x)  # @inspect summed as FLOP
    handled = flops(lambda: (x.t().contiguous(), x.bfloat16(), x > 0))  # @hide
    assert handled == 0, \
        "PyTorch's counter also reports nothing for a copy, a conversion and a comparison."  # @zero: the counter counts products alone  # @hide
    assert summed == 0, \
        "A sum is arithmetic, but PyTorch's counter leaves it out."  # @zero: it counts products alone
    multiplied = flops(lambda: x @ x.T)  # @hide
    assert multiplied == 2 * 3 * 5 * 3, "It counts the matmul of two matrices."  # @hide

    def comparisons(n: int) -> int:  # @hide
        tally: list[str] = []

        def order(p: int, q: int) -> int:
            tally.append("<")
            return p - q

        sorted(torch.randperm(n).tolist(), key=cmp_to_key(order))
        return len(tally)

    growth = comparisons(4096) / comparisons(2048)  # @hide
    assert 2.1 < growth < 2.3, \
        "Sorting 4096 numbers takes more than twice as many comparisons as sorting 2048."  # @hide
    misbelief("The cost of every operation other than a matmul is proportional to the size of its tensors.",
        rf"""
            For elementwise operations it is. But sorting, which costs comparisons and no FLOPs,
            needs about $n \log_2 n$ of them for $n$ values: {growth:.1f} times as many for `4096`
            as for `2048`.
        """)
    tally.clear()  # @hide
    p, q = counted(tally, 4, 6), counted(tally, 4, 6)  # @hide
    smaller = (p * q + p).T < q.T  # @hide
    question(r"""
        `p` and `q` have `4 × 6` elements each, and `*` multiplies them element by element. The
        tally has every operation of `(p * q + p).T < q.T`. How many of these are FLOPs?
    """, answer=arithmetic(tally),
        check=2 * 4 * 6, unit="FLOP",
        wrong={
            "The comparisons are not FLOPs.": 72,
            "Each element costs a multiplication and an addition.": 24,
        },
        hint="Which of `*`, `+`, `.T` and `<` is arithmetic?",
        why=r"""
            Each of the `24` elements costs a multiplication and an addition. Transposing costs
            nothing, and the `24` comparisons are not arithmetic.
        """)


def a_matmul_costs_two_m_k_n() -> None:
    """A matmul of m × k by k × n elements counts as 2mkn FLOPs."""
    note(r"""
        How many FLOPs does it cost to multiply a matrix of $m \times k$ elements by one of
        $k \times n$?

        By hand, start with one entry of the result, for $k = 3$. It is a row times a column:
        `1 * 10 + 2 * 1 + 3 * 1`. That is $3$ multiplications, and $2$ additions between the $3$
        products. By convention the first product counts as added as well, as if the sum began at
        zero. So the entry counts as `2 * 3 = 6` FLOPs.

        The result has $m$ rows of $n$ entries. Each entry counts as $2k$ FLOPs, because each of its
        $k$ products costs a multiplication, and an addition to the sum. So a matmul counts as

        [@eq:product]: $$
        2mkn
        $$

        FLOPs. The convention fits the hardware, which does a multiplication and an addition in one
        step.

        Test the formula with matrices that count for themselves: `counted` makes a matrix whose
        elements write a `*` or a `+` into the list `tally` whenever they are multiplied or added:
    """)
    m, k, n = 3, 5, 7
    tally: list[str] = []
    product = counted(tally, m, k) @ counted(tally, k, n)
    times, plus = tally.count("*"), tally.count("+")  # @inspect times, plus
    assert product.shape == (m, n) == (3, 7), \
        "The result has m rows and n columns."  # @hide
    assert times == m * k * n == 105, "The matmul does mkn multiplications."
    assert plus == m * (k - 1) * n == 84, "It does m(k-1)n additions."
    note(r"""
        So the formula counts one addition too many for each entry. In a model $k$ is in the
        hundreds or thousands, and one of $2k$ FLOPs hardly matters. PyTorch's counter uses the
        formula as well:
    """)
    x, w = torch.randn(m, k), torch.randn(k, n)
    work = flops(lambda: x @ w)  # @inspect work as FLOP
    assert work == 2 * m * k * n == 210, \
        "PyTorch's counter says 2mkn, 210 FLOPs."
    assert work - (times + plus) == m * n == 21, \
        "The formula counts one FLOP too many for each of the 21 entries."  # @hide
    small = flops(lambda: torch.ones(1024, 256) @ torch.ones(256, 64))  # @hide
    assert small == 2 * 1024 * 256 * 64 == 33_554_432, \
        "The counter multiplies 2 by the three lengths."  # @hide
    exact = 1024 * 64 * (2 * 256 - 1)  # @hide
    assert exact / small == 511 / 512, "Of 512 FLOPs that the formula counts, 511 are really done."  # @hide
    rows, inner, cols = 16384, 32768, 8192  # @hide
    with torch.device("meta"):  # @hide
        left, right = torch.empty(rows, inner), torch.empty(inner, cols)
    large = flops(lambda: left @ right)  # @hide
    assert large == 8_796_093_022_208, "The formula says 8.8e12 FLOPs."  # @hide
    missing = large - rows * cols * (2 * inner - 1)  # @hide
    assert missing == 16384 * 8192, "One addition is missing for each entry of the result."  # @hide
    assert missing / large == 1 / 65536, "Of 65536 FLOPs that the formula counts, one is not done."  # @hide

    def boxed(m: int, k: int, n: int) -> dict[str, int]:  # @hide
        tally: list[str] = []
        _ = counted(tally, m, k) @ counted(tally, k, n)
        return {
            "multiplications": tally.count("*"), "additions": tally.count("+"),
            "numbers": m * k + k * n + m * n,
        }

    sides = range(1, 9)  # @hide
    explore(boxed, over={"m": sides, "k": sides, "n": sides}, at={"m": m, "k": k, "n": n},
        module="pictures/box.js", still=plot_box((m, k, n), {k: times}),
        do="Set the sides to `2`, `3` and `4`. Then make all of them twice as long. How many times as large are the volume and the faces?",
        see=r"""
            With sides twice as long, the volume is `2**3 = 8` times as large and the faces are
            `2**2 = 4` times as large, so each element is used in twice as many multiplications.
            With `n` at one, each element of the left matrix is used in only one.
        """, caption=r"""
            A matmul as a box of cubes. Each cube is one multiplication. Its position shows the row
            of the left matrix, the column of the right one, and the index on the inner axis. The
            matrices and the sums are faces of the box.
        """, alt=r"""
            A box, seven cubes wide, three high and five deep. Its side is the left matrix, its top
            the right one, its front the sums.
        """)  # @hide
    tally.clear()  # @hide
    outer = counted(tally, 4, 1) @ counted(tally, 1, 6)  # @hide
    question(r"""
        A column of `4` elements times a row of `6` is a matmul with $k=1$. How many multiplications
        and additions does it really do, and how many FLOPs does the formula give?
    """, answer=[len(tally), flops(lambda: torch.ones(4, 1) @ torch.ones(1, 6))],
        check=[4 * 6, 2 * 4 * 1 * 6],
        hint="Each entry is a single product. How many additions does it need?",
        why=r"""
            With $k=1$ an entry is a single multiplication and nothing is added: `4 * 6 = 24`. The
            formula still counts an addition for each multiplication: `2 * 4 * 1 * 6 = 48`.
        """, unit="FLOP")


def a_forward_pass_costs_two_per_parameter() -> None:
    """In linear layers, a forward pass costs two FLOPs per parameter and token."""
    note(r"""
        How many FLOPs does the forward pass of a model cost? Take a model of *linear* layers. Each
        layer multiplies its input by a matrix of weights, the *parameters* of the model. The rows
        of the input are *tokens*, words or pieces of words.

        By hand, take a token of `2` elements and a matrix of `2 * 3` weights. Each of the $6$
        weights is multiplied by one element of the token, and the product is added to one of $3$
        sums, which start at zero. So a token costs `2 * 6 = 12` FLOPs, and $5$ tokens cost
        `5 * 12 = 60`.

        A forward pass costs $2$ FLOPs per parameter and token, because each weight is used once for
        each token, in a multiplication and an addition. So with $P$ parameters, $T$ tokens cost

        $$
        2PT
        $$

        FLOPs, whatever the shapes of the matrices. Count it for three layers and `8` sequences of
        `128` tokens:
    """)
    w1, w2, w3 = torch.randn(64, 64), torch.randn(64, 64), torch.randn(64, 1)
    x: Float[Tensor, "batch seq d"] = torch.randn(8, 128, 64)
    params = w1.numel() + w2.numel() + w3.numel()  # @inspect params
    assert params == 2 * 64**2 + 64, "The three layers have 8256 weights."  # @hide
    work = flops(lambda: x @ w1 @ w2 @ w3)  # @inspect work as FLOP
    assert work == 2 * params * (8 * 128), \
        "PyTorch's counter finds two FLOPs for each token and weight."
    note(r"""
        So a model with `8` billion parameters costs about `2 * 8e9 = 16e9` FLOPs for each token, in
        its matmuls with weights.
    """)
    question(r"""
        One model is a single layer of `10 * 100` weights. Another model is `10` layers of `10 * 10`
        weights. Both process the same tokens. How many times as many FLOPs does the forward pass of
        the second model cost?
    """, answer=10 * flops(lambda: torch.ones(1, 10) @ torch.ones(10, 10))
        / flops(lambda: torch.ones(1, 10) @ torch.ones(10, 100)),
        wrong={
            "Its layers are ten times as many, but each has a tenth of the weights.": 10,
        },
        check=10 * 10 * 10 / (10 * 100),
        hint="How many parameters does each model have?",
        why=r"""
            Both have `1000` parameters, and each of them is used once for each token. The number
            and the shape of the layers do not matter.
        """,
        unit="times")


class Moved(Watching):  # @hide
    """While it is active, it adds up the bytes of all tensors that operations read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        self.bytes += sum(t.nbytes for t in tensors_in((args, kwargs, made)))


def cheap_in_flops_is_not_cheap_in_time() -> None:
    """An operation with few FLOPs can take a long time, because it has to move its elements."""
    note(r"""
        Does an operation with few FLOPs, floating-point operations, take little time? Not if it has
        to move many bytes to do them. So divide its FLOPs by its bytes.

        By hand, with matrices of `10 * 10` elements in `bfloat16`, which has `2` bytes per element:

        - The addition `x + 1` does $100$ FLOPs. It reads $100$ elements and writes $100$,
          `200 * 2 = 400` bytes in total. That is `100 / 400 = 0.25` FLOPs per byte.
        - The matmul `x @ w` does $10$ multiplications and $10$ additions for each of $100$ entries,
          `2 * 10 * 100 = 2000` FLOPs. It reads two matrices and writes one, `300 * 2 = 600` bytes
          in total. That is `2000 / 600 = 3.3` FLOPs per byte.

        In larger matrices the addition stays at $0.25$, because it uses each element once. A matmul
        of $n \times n$ matrices does more FLOPs per byte the larger $n$ is, because it uses each
        element $n$ times: an element of `x` is multiplied by all $n$ elements of a row of `w`.

        How many FLOPs per byte keep the arithmetic units busy? In a second, an H100 does at most
        `989.5e12` FLOPs in `bfloat16`, and its memory moves at most `3.35e12` bytes [@nvidia-h100].
        So while one byte is moved, it can do `989.5e12 / 3.35e12 = 295` FLOPs. This number is its
        *ridge*. With fewer FLOPs per byte, an operation is *memory-bound*: the bytes that it moves
        set its time. Now with `1024 * 1024` elements:
    """)
    n = 1024
    rate = dense_peak("H100 SXM", "bfloat16")  # FLOPs per second
    bandwidth = CARDS["H100 SXM"].bandwidth  # bytes per second
    ridge = rate / bandwidth  # @inspect ridge as FLOP/B
    addition = n**2 / (2 * n**2 * 2)  # @inspect addition as FLOP/B
    matmul = 2 * n**3 / (3 * n**2 * 2)  # @inspect matmul as FLOP/B
    assert addition < ridge < matmul, \
        "The addition is memory-bound, and the matmul is not."
    x = torch.empty(n, n, dtype=torch.bfloat16, device="meta")  # @hide
    assert matmul == flops(lambda: x @ x) / (3 * x.nbytes), "PyTorch's counter and the sizes of the matrices say the same."  # @hide
    assert round(ridge) == 295, "That is 295 FLOPs per byte."  # @hide
    note(r"""
        What does that mean for their times? The matmul takes at least the time of its FLOPs. The
        addition takes at least the time of its bytes, if they come from the GPU's memory and not
        from a cache, a small fast store on the chip:
    """)
    matmul_time = 2 * n**3 / rate  # @inspect matmul_time as s
    addition_time = 2 * n**2 * 2 / bandwidth  # @inspect addition_time as s
    assert 0.57 < addition_time / matmul_time < 0.58, \
        "The addition's least time is 58 % of the matmul's least time."
    assert 2 * n**3 / n**2 == 2048, \
        "But the matmul does 2048 times as many FLOPs."
    misbelief("For large matrices nothing is as expensive as the matmul.", rf"""
        In FLOPs that is true. In time it depends on the size: by the least times above, two
        additions of `1024 * 1024` elements need {2e6 * addition_time:.1f} µs, and the matmul
        {1e6 * matmul_time:.1f} µs, because an addition is memory-bound. The larger the matrices,
        the more the matmul costs.
    """)
    note(r"""
        So a model does its elementwise operations faster if it moves fewer bytes for them, for
        example with several operations in one pass over the elements.
    """)
    with Moved() as moved:  # @hide
        y = (x + 1) * 2
    question(r"""
        `x + 1` and then `* 2` are two operations, and each reads all elements and writes all
        elements. A *fused* program does both to an element between reading and writing it. On an
        H100, how many times as fast is it at best?
    """, answer=(2 * 2 * n**2 * 2) / (2 * n**2 * 2),
        wrong={
            "The FLOPs are the same, but the bytes are not.": 1,
            "The fused program still writes its result.": 4,
        },
        check=moved.bytes / (x.nbytes + y.nbytes),
        hint="What sets the time of these operations, and how much of it is left?",
        why=r"""
            Both operations are memory-bound, so bytes set their time. The fused program reads once
            and writes once instead of twice. That is half of the bytes, so it takes half of the
            time.
        """, unit="times")


@aside
def a_rate_times_a_time_is_work() -> None:
    """A rate in FLOP/s times a time in seconds is work in FLOPs, and work divided by a rate is a time."""
    note(r"""
        How many FLOPs can `8` H100s do in `14` days, at their peak in `bfloat16`? FLOPs are an
        amount of work, and FLOP/s is a rate. By hand, at $3$ FLOP/s, $4$ seconds are enough for
        `3 * 4 = 12` FLOPs. Advice: never write FLOPS. Some write it for FLOPs, others for FLOP/s.

        By the data sheet, the peak of an H100 for dense matrices is `989.5e12` FLOP/s
        [@nvidia-h100]. A day has `86400` seconds, so the work is `8 * 14 * 86400 * 989.5e12` FLOPs:
    """)
    rate = dense_peak("H100 SXM", "bfloat16")  # @inspect rate as FLOP/s
    assert rate / TERA == 989.5, "By its data sheet, an H100 does at most 989.5e12 FLOPs in a second."  # @hide
    two_weeks = 8 * 14 * DAY * rate  # @inspect two_weeks as FLOP
    assert 9.574e21 < two_weeks < 9.576e21, \
        "In 14 days at their peak, 8 GPUs do 9.6e21 FLOPs."
    week = 8 * 7 * DAY * rate  # @hide
    assert week == 0.5 * two_weeks, \
        "One week at the peak is as much as 14 days at half of it."  # @hide
    note(r"""
        The training of GPT-3 was more work. By the rule of
        [`6` FLOPs per parameter and token](#a_training_run_in_three_lines), its `174.6` billion
        parameters and `300` billion tokens give `3.14e23` FLOPs, the total that the paper reports
        [@gpt3]. Divided by the rate, the work is a time:
    """)
    gpt3 = 6 * 174.6e9 * 300e9  # @inspect gpt3 as FLOP
    assert 3.142e23 < gpt3 < 3.144e23, "The rule gives the published total."
    days = gpt3 / (8 * rate) / DAY  # @inspect days as days
    assert round(days, -1) == 460, \
        "At their peak, 8 H100s would need about 460 days for GPT-3's FLOPs."
    note(r"""
        Of GPT-4 only guesses are known: the report on it withholds the compute [@gpt4]. Estimates
        from outside are above `1e25` FLOPs [@epoch]; take `2e25`. (For scale, in the United States
        an executive order of `2023`, revoked in `2025` [@eo14148], required reports on models
        trained with more than `1e26` operations, and on models for biological sequences above
        `1e23` [@eo14110].)
    """)
    assert 63.6 < 2e25 / gpt3 < 63.7, \
        "A guess of 2e25 FLOPs for GPT-4 is 64 times GPT-3."
    older = dense_peak("A100 SXM 80GB", "bfloat16")  # @hide
    question(rf"""
        How many days does one A100, at its dense `bfloat16` peak of `{older / TERA:.0f}e12` FLOP/s,
        need for `1e21` FLOPs?
    """, answer=1e21 / older / DAY,
        check=1e21 / 312e12 / 86400, unit="days",
        hint="Work divided by rate is a time in seconds. How many seconds does a day have?",
        why="`1e21` FLOPs divided by `312e12` FLOP/s are seconds, and a day has `86400` of them.")
