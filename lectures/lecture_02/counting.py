"""What counts as a FLOP, and how many FLOPs a matmul costs."""
from counters import flops
from functools import cmp_to_key

import torch
from hardware import CARDS
from jaxtyping import Float
from timing import quickest
from torch import Tensor
from units import DAY, TERA

from litbook import aside, explore, misbelief, note, question

from .figures import plot_box
from .measure import arithmetic, counted, dense_peak
from .tiling import a_matmul_in_tiles_loads_less


def counting_flops() -> None:
    """Counting FLOPs."""
    note(r"""
        How much work is a matmul of two matrices, or the forward pass of a whole model? The measure
        is FLOPs. This part says what counts as a FLOP, gives two formulas that are enough for most
        estimates, and shows which operations take much time for few FLOPs. Each count is made
        twice: by a formula, and by a program that does not know the formula.
    """)
    only_arithmetic_counts()
    a_product_costs_two_m_k_n()
    a_forward_pass_costs_two_per_parameter()
    not_everything_else_is_linear()
    cheap_in_flops_is_not_cheap_in_time()
    a_matmul_in_tiles_loads_less()
    a_rate_times_a_time_is_work()


@aside
def only_arithmetic_counts() -> None:
    """A FLOP is an addition or a multiplication; moving and comparing elements costs none."""
    note(r"""
        Which operations on a matrix cost FLOPs? Additions and multiplications do, and copies and
        comparisons do not. `counted` makes a matrix whose elements record each `+`, `*` and `<` in
        a list, the tally. Add a matrix of `3 × 5` elements to itself:
    """)
    tally: list[str] = []
    a = counted(tally, 3, 5)
    total = a + a
    assert total.shape == (3, 5), "There is a sum for each of the 15 numbers."  # @hide
    assert tally == ["+"] * 3 * 5, \
        "The tally has 15 additions, one per element."
    note(r"""
        Now transpose the matrix and copy it. Nothing is recorded, because the elements are only
        moved. Then compare each element with another one. The comparisons are recorded, but they
        are not arithmetic, so they are not FLOPs either. (PyTorch's own counter leaves out more: an
        operation that it has no formula for, even a sum, counts as zero [@pytorch_flop_counter].)
    """)
    tally.clear()
    turned = a.T.copy()
    assert turned.shape == (5, 3), "The copy is transposed."  # @hide
    assert tally == [], \
        "For the transposed copy, the tally is empty."  # @zero: there was none to count
    smaller = a < a[::-1]
    assert smaller.shape == (3, 5), "There is a comparison for each of the 15 numbers."  # @hide
    assert tally == ["<"] * 3 * 5, \
        "For the comparison, the tally has 15 times <, and no + or *."
    misbelief("A FLOP is any operation that involves floating-point numbers.", r"""
        A copy, a conversion to another format and a comparison involve them as well, and cost no
        FLOP. Only additions and multiplications are counted.
    """)
    x = torch.randn(3, 5)  # @hide
    handled = flops(lambda: (x.t().contiguous(), x.bfloat16(), x > 0))  # @hide
    assert handled == 0, \
        "PyTorch's counter also reports nothing for a copy, a conversion and a comparison."  # @zero: the counter counts products alone  # @hide
    summed, multiplied = flops(lambda: x + x), flops(lambda: x @ x.T)  # @hide
    assert summed == 0, \
        "A sum is arithmetic, but PyTorch's counter leaves it out."  # @zero: it counts products alone  # @hide
    assert multiplied == 2 * 3 * 5 * 3, "It counts the matmul of two matrices."  # @hide
    tally.clear()
    p, q = counted(tally, 4, 6), counted(tally, 4, 6)
    smaller = (p * q + p).T < q.T
    question(r"""
        `p` and `q` have `4 × 6` elements each, and `*` multiplies them element by element. The
        tally has every operation of `(p * q + p).T < q.T`. How many of these are FLOPs?
    """, answer=arithmetic(tally),
        check=2 * 4 * 6, unit="FLOP",
        wrong={
            "The comparisons are not FLOPs.": 72,
            "Each element takes a multiplication and an addition.": 24,
        },
        hint="Which of `*`, `+`, `.T` and `<` is arithmetic?",
        why=r"""
            Each of the `24` elements takes a multiplication and an addition. Transposing costs
            nothing, and the `24` comparisons are not arithmetic.
        """)


def a_product_costs_two_m_k_n() -> None:
    """A matmul of m × k by k × n elements counts as 2mkn FLOPs."""
    note(r"""
        How many FLOPs does it cost to multiply a matrix of $m \times k$ elements by one of
        $k \times n$? By hand, with `3 * 5` and `5 * 7`: the result has `3 * 7 = 21` entries, each a
        sum of `5` terms, which makes `105` multiplications. Adding up `5` terms takes `4`
        additions, because the sum starts with the first term: `21 * 4 = 84`.

        By convention the first term counts as an addition as well. So each of $mn$ entries has $k$
        terms of `2` FLOPs, and a matmul counts as

        [@eq:product]: $$
        2mkn
        $$

        FLOPs. Test it with numbers of a special kind: each writes a `*` or a `+` into a list
        whenever it is multiplied or added. `counted` makes matrices of such numbers, and the list
        is `tally`:
    """)
    m, k, n = 3, 5, 7
    tally: list[str] = []
    product = counted(tally, m, k) @ counted(tally, k, n)
    times, plus = tally.count("*"), tally.count("+")  # @inspect times, plus
    assert product.shape == (m, n) == (3, 7), \
        "The result has m rows and n columns."  # @hide
    assert times == m * k * n == 105, "The matmul takes mkn multiplications."
    assert plus == m * (k - 1) * n == 84, "The matmul takes m(k-1)n additions."
    note(rf"""
        The formula gives `2 * 3 * 5 * 7 = 210`. That is one more for each of the `21` entries than
        the {times + plus} counted here. For large $k$ the difference is small, because it is one of
        $2k$ operations in each entry. And the formula fits the hardware, which does a
        multiplication and an addition in one step. PyTorch's counter uses it as well:
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
            The volume grows eightfold and the faces fourfold, so each element is used in twice as
            many multiplications. With `n` at one, each element of the left matrix is used in only
            one.
        """, caption=r"""
            A matmul as a box of cubes. Each cube is a multiplication, of a row of the left matrix,
            a column of the right one, and a position on the inner axis. The matrices and the sums
            are faces of the box.
        """, alt=r"""
            A box, seven cubes wide, three high and five deep. Its side is the left matrix, its top
            the right one, its front the sums.
        """)  # @hide
    tally.clear()  # @hide
    outer = counted(tally, 4, 1) @ counted(tally, 1, 6)  # @hide
    question(r"""
        A column of `4` elements times a row of `6` is a matmul with $k=1$. How many multiplications
        and additions does it really take, and how many FLOPs does the formula give?
    """, answer=[len(tally), flops(lambda: torch.ones(4, 1) @ torch.ones(1, 6))],
        check=[4 * 6, 2 * 4 * 1 * 6],
        hint="Each entry has a single term. How many additions does it take?",
        why=r"""
            With $k=1$ an entry is a single multiplication and nothing is added: `4 * 6 = 24`. The
            formula still counts an addition for each multiplication: `2 * 4 * 1 * 6 = 48`.
        """, unit="FLOP")


def a_forward_pass_costs_two_per_parameter() -> None:
    """A forward pass costs two FLOPs per parameter and token."""
    note(r"""
        How many FLOPs does the forward pass of a model cost? Take a model of *linear* layers: each
        multiplies its input by a matrix of weights. In such a matmul, each weight is used once for
        each row of the input, in a multiplication and an addition: `2` FLOPs. So a model of $P$
        weights, also called *parameters*, costs

        $$
        2BP
        $$

        FLOPs for $B$ rows, regardless of the shapes of its matrices. In a language model a row is a
        *token*, a word or a piece of one.

        Count it for three layers with `64 * 64 + 64 * 64 + 64 * 1 = 8256` weights. First the input
        is a matrix of `1024` rows. Then it is `8` sequences of `128` tokens, again `8 * 128 = 1024`
        rows. (On the device `meta`, tensors have shapes and no data, which is enough for counting.)
    """)
    with torch.device("meta"):
        shapes = (64, 64), (64, 64), (64, 1)
        weights = [torch.empty(shape) for shape in shapes]
        rows: Float[Tensor, "row width"] = torch.empty(1024, 64)
        tokens: Float[Tensor, "batch seq width"] = torch.empty(8, 128, 64)

    def forward(x: Tensor) -> Tensor:
        for w in weights:
            x = x @ w
        return x

    params = sum(w.numel() for w in weights)  # @inspect params
    assert params == 2 * 64**2 + 64, "The three layers have 8256 weights."  # @hide
    work = flops(lambda: forward(rows))  # @inspect work as FLOP
    assert work == 2 * 1024 * params, \
        "PyTorch's counter finds two FLOPs for each row and weight."
    same = flops(lambda: forward(tokens))  # @inspect same as FLOP
    assert same == work, \
        "8 sequences of 128 tokens cost the same number of FLOPs as 1024 rows."
    question(r"""
        `4` sequences of `250` tokens pass through a linear layer, and the counter says `6e9` FLOPs.
        How many weights does the layer have?
    """, answer=6 * 10**9 // flops(lambda: torch.ones(4, 250, 1) @ torch.ones(1, 1)),
        wrong={
            "The additions are missing.": 6 * 10**6,
            "That is for one sequence: there are four.": 12 * 10**6,
        },
        check=6 * 10**9 // (2 * 4 * 250),
        hint="How many tokens are there, and how many FLOPs does a token cost for each weight?",
        why=r"""
            There are `4 * 250 = 1000` tokens, and each costs `2` FLOPs per weight. So `6e9` is
            `2 * 1000` times the number of weights.
        """,
        unit="weights")


@aside
def not_everything_else_is_linear() -> None:
    """With twice the data, some operations cost more than twice as much."""
    note(r"""
        A tensor becomes twice as large. Does an operation on it cost twice as much? An
        [elementwise](#elementwise_operations_make_a_new_tensor) one does, because it does the same
        to each element. Two others cost more. In *attention*, each token is compared with every
        token: `2` tokens make `2 * 2 = 4` pairs, and `4` tokens `4 * 4 = 16`. Each pair costs a dot
        product of two rows, here of `64` elements. `scores` counts their FLOPs:
    """)

    def scores(seq: int) -> int:
        q = torch.empty(seq, 64, device="meta")
        return flops(lambda: q @ q.t())

    assert scores(2048) == 4 * scores(1024), \
        "Attention's scores cost 4 times as many FLOPs for 2048 tokens as for 1024."
    note(r"""
        *Sorting* compares numbers. In a list that is twice as long, each number is compared about
        once more, because both halves are sorted as before, and then merged. `comparisons` counts
        for a shuffled list:
    """)

    def comparisons(n: int) -> int:
        tally: list[str] = []

        def order(p: int, q: int) -> int:
            tally.append("<")
            return p - q

        sorted(torch.randperm(n).tolist(), key=cmp_to_key(order))
        return len(tally)

    growth = comparisons(4096) / comparisons(2048)  # @measure growth as times
    assert 2.1 < growth < 2.3, \
        "Sorting 4096 numbers takes more than twice as many comparisons as sorting 2048."
    misbelief("The cost of every operation other than a matmul is proportional to the size of its tensors.",
        r"""
            For elementwise operations it is. The scores of attention grow with the square of the
            number of tokens, and sorting takes more comparisons for each number of a longer list.
        """)
    question(r"""
        For `1024` tokens the scores of attention cost `scores(1024)` FLOPs. How many times as many
        do they cost for `8192` tokens?
    """, answer=scores(8192) / scores(1024),
        check=8**2, unit="times",
        wrong={
            "That is for an operation that does the same to each element.": 8,
            "That is for 2048 tokens.": 4,
        },
        hint="How many times as many tokens are there, and how many times as many pairs of tokens?",
        why="There are `8` times as many tokens, so `8 * 8` times as many pairs. Each pair costs a dot product as before.")


def cheap_in_flops_is_not_cheap_in_time() -> None:
    """An operation with few FLOPs can take much time, because it has to move its elements."""
    note(r"""
        Does an operation with few FLOPs take little time? Not if it has to move many bytes for
        them. First by hand, for a matrix of `2 * 2` elements of `4` bytes. The addition `x + 1`
        does `4` FLOPs. It reads `4` elements and writes `4`, which are `8 * 4 = 32` bytes: an
        eighth of a FLOP per byte. The matmul of two such matrices adds up `2` terms for each of `4`
        entries, so it does `2 * (2 * 4) = 16` FLOPs. It reads two matrices and writes one, which
        are `3 * 4 * 4 = 48` bytes: a third of a FLOP per byte.

        Make the matrix larger, and the addition stays at an eighth, because each element is still
        used once. For the matmul the ratio rises, because each element is used for a whole row or
        column of the result. With `1024 * 1024` elements the addition does one FLOP for each entry,
        and the matmul `2 * 1024`:
    """)
    n = 1024
    x = torch.randn(n, n)
    assert x.element_size() == 4, "An element has 4 bytes."  # @hide
    work = flops(lambda: x @ x)  # @inspect work as FLOP
    share = n * n / work  # @inspect share as %
    assert share == 1 / 2048, \
        "The addition does one FLOP where the matmul does 2048."
    note(rf"""
        So the addition has {share:.2%} of the FLOPs. Does it also have {share:.2%} of the time?
        `quickest` returns the shortest time of several calls:
    """)
    product, plus = quickest(lambda: x @ x, 5), quickest(lambda: x + 1, 5)  # @measure product as s, plus as s
    time_share = plus / product  # @measure time_share as %
    assert share < time_share, \
        "The addition's share of the time exceeds its share of the FLOPs."
    note(r"""
        No: its share of the time is much larger, because the addition is *memory-bound*: it waits
        for memory. On an H100 the share is larger still, because the arithmetic of this GPU is
        faster relative to its memory: at most `989.5e12` FLOPs per second in `bfloat16`, and
        `3.35e12` bytes per second [@nvidia-h100]. At these rates the matmul's `2 * 1024**3` FLOPs
        take `2.17` µs. The addition moves `2 * 1024**2` elements of `2` bytes, in `1.25` µs:
    """)
    matmul_time = work / dense_peak("H100 SXM", "bfloat16")  # @inspect matmul_time as s
    both = 2 * n * n * 2  # read and write n * n elements of 2 bytes
    addition_time = both / CARDS["H100 SXM"].bandwidth  # @inspect addition_time as s
    assert 0.57 < addition_time / matmul_time < 0.58, \
        "With 1/2048 of the FLOPs, the addition takes 58 % of the time."
    rounded = round(1e6 * matmul_time, 2), round(1e6 * addition_time, 2)  # @hide
    assert rounded == (2.17, 1.25), "They take 2.17 and 1.25 microseconds."  # @hide
    misbelief("For large matrices nothing is as expensive as the matmul.", r"""
        In FLOPs that is true. In time, two additions of such matrices cost more than their matmul
        on an H100, because an addition waits for memory.
    """)
    narrow = torch.empty(1536, 1536, dtype=torch.bfloat16, device="meta")  # @hide
    question(r"""
        Two matrices of `1536 * 1536` elements are multiplied in `bfloat16`, with `2` bytes an
        element. Divide the FLOPs by the bytes of the three matrices: the two inputs and the result.
        How many FLOPs per byte is that?
    """, answer=flops(lambda: narrow @ narrow) / (3 * narrow.nbytes),
        wrong={
            "The additions are missing.": 1536 / 6,
            "Only one of three matrices is counted.": 1536,
        },
        check=1536 / 3,
        hint="The FLOPs are `2 * 1536 ** 3`. How many bytes do the three matrices take?",
        why=r"""
            `2 * 1536 ** 3` FLOPs divided by `3 * 1536 ** 2 * 2` bytes is `1536 / 3 = 512`. The
            larger the matrices, the more FLOPs per byte.
        """, unit="FLOP/B")


@aside
def a_rate_times_a_time_is_work() -> None:
    """A rate in FLOP/s times a time in seconds is work in FLOPs, the unit in which budgets are compared."""
    note(r"""
        How many FLOPs can `8` H100s do in `14` days, at their dense peak? FLOPs are an amount of
        work, and FLOP/s is a rate. Advice: never write FLOPS. FLOP/s shows how the units multiply:
        FLOP/s times seconds is FLOPs. Here that is `8 * 14 * 86400 * 989.5e12`:
    """)
    rate = dense_peak("H100 SXM", "bfloat16")  # @inspect rate as FLOP/s
    assert rate / TERA == 989.5, "One H100 does 989.5e12 FLOPs in a second."
    fortnight = 8 * 14 * DAY * rate  # @inspect fortnight as FLOP
    assert 9.574e21 < fortnight < 9.576e21, \
        "In 14 days, 8 GPUs do 9.6e21 FLOPs."
    week = 8 * 7 * DAY * rate  # @hide
    assert week == 0.5 * fortnight, \
        "One week at the peak is as much as two weeks at half of it."  # @hide
    note(r"""
        How does that compare with the training of GPT-3? By the rule of
        [`6` FLOPs per parameter and token](#a_training_run_in_three_lines), its `174.6` billion
        parameters and `300` billion tokens make `3.14e23` FLOPs, the total that the paper reports
        [@gpt3]. Of GPT-4 only guesses are known: the report on it withholds the compute [@gpt4].
        Estimates from outside are above `1e25` FLOPs [@epoch], some near `2e25`. Limits are set in
        FLOPs as well: in the United States an order of `2023` required reports on models trained
        with more than `1e26` operations, and on models for biological sequences above `1e23`
        [@eo14110]; it was revoked in `2025` [@eo14148]:
    """)
    gpt3, rumour = 6 * 174.6e9 * 300e9, 2e25  # @inspect gpt3 as FLOP
    assert 3.142e23 < gpt3 < 3.144e23, "The rule gives the published total."
    assert 32 < gpt3 / fortnight < 33, \
        "GPT-3 needed 33 such fortnights of 8 H100s at their peak."
    ratio = rumour / gpt3  # @inspect ratio as times
    assert 63.6 < ratio < 63.7, \
        "A guess of 2e25 FLOPs for GPT-4 is 64 times GPT-3."
    older = dense_peak("A100 SXM 80GB", "bfloat16")
    question(rf"""
        How many days does one A100, at its dense `bfloat16` peak of `{older / TERA:.0f}e12` FLOP/s,
        need for `1e21` FLOPs?
    """, answer=1e21 / older / DAY,
        check=1e21 / 312e12 / 86400, unit="days",
        hint="Work divided by rate is a time in seconds. How many seconds does a day have?",
        why="`1e21` FLOPs divided by `312e12` FLOP/s are seconds, and a day has `86400` of them.")
