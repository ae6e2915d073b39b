"""What counts as a FLOP, and how many FLOPs a product costs."""
from counters import flops
from functools import cmp_to_key, partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from timing import quickest, time_call
from torch import Tensor
from units import DAY, TERA, GiB

from litbook import aside, explore, figure, misbelief, note, question

from .figures import plot_box
from .measure import arithmetic, counted, dense_peak


def counting_flops() -> None:
    """Counting FLOPs."""
    note(r"""
        Transpose the largest matrix you have, convert it to another format, compare it with zero.
        Every float in it has been touched, and no FLOP has been spent. What counts is a convention,
        and it pays to know it exactly. So everything here is counted twice: by a formula, and by a
        machine that was not shown the formula.
    """)
    only_arithmetic_counts()
    a_product_costs_two_m_k_n()
    a_product_fills_a_box()
    the_missing_additions_do_not_matter()
    a_forward_pass_costs_two_per_parameter()
    not_everything_else_is_linear()
    cheap_in_flops_is_not_cheap_in_time()
    budgets_that_made_history()
    a_rate_times_a_time_is_work()


@aside
def only_arithmetic_counts() -> None:
    """A FLOP is an addition or a multiplication; handling floats costs none."""
    note(r"""
        To see what is counted, take numbers that keep a tally of what is done with them. NumPy can
        hold such objects in a matrix and calls their own `+` and `*`. Adding two matrices takes one
        addition for each entry.
    """)
    tally: list[str] = []
    a = counted(tally, 3, 5)
    total = a + a
    assert total.shape == (3, 5), "a sum for each entry"
    assert tally == ["+"] * 3 * 5, "one addition for each"
    note(r"""
        Turn the matrix over and copy it, and the tally stays empty. Compare it with itself, and the
        tally fills with comparisons; none of them is arithmetic.
    """)
    tally.clear()
    turned = a.T.copy()
    assert turned.shape == (5, 3), "turned over"
    assert tally == [], "moved and copied: nothing was done"  # @zero: there was none to count
    smaller = a < a[::-1]
    assert smaller.shape == (3, 5), "compared"
    assert tally == ["<"] * 3 * 5, "a comparison for each, no arithmetic"
    misbelief("A FLOP is any operation that involves floating-point numbers.", r"""
        A copy, a cast and a comparison handle floats, too, and are not counted. Only arithmetic is.
        PyTorch's own counter counts less still: of arithmetic the products of matrices alone.
    """)
    x = torch.randn(3, 5)  # @unnoticed: 3, 5, arguments swapped: any shape
    handled = flops(lambda: (x.t().contiguous(), x.bfloat16(), x > 0))  # @unnoticed: .bfloat16(): any cast
    assert handled == 0, "copied, cast, compared"  # @zero: the counter counts products alone
    summed, multiplied = flops(lambda: x + x), flops(lambda: x @ x.T)
    assert summed == 0, \
        "A sum is arithmetic, and PyTorch's counter leaves it out."  # @zero: it counts products alone
    assert multiplied == 2 * 3 * 5 * 3, "It counts the product of two matrices."
    tally.clear()
    p, q = counted(tally, 4, 6), counted(tally, 4, 6)
    smaller = (p * q + p).T < q.T
    question(r"""
        `p` and `q` have `4 × 6` numbers each. The tally has every operation of
        `(p * q + p).T < q.T`. How many of these are FLOPs?
    """, answer=arithmetic(tally),
        check=2 * 4 * 6, unit="FLOP",
        why="Each of the `24` numbers takes a multiplication and an addition. Turning costs nothing, and the `24` comparisons are no arithmetic.")


def a_product_costs_two_m_k_n() -> None:
    """A product of m × k by k × n numbers counts as 2mkn FLOPs."""
    note(r"""
        How many FLOPs does it take to multiply a matrix of $m \times k$ numbers by one of
        $k \times n$? The result has $mn$ entries. Each entry is a sum of $k$ terms, and each term
        takes a multiplication and an addition. So a product counts as

        [@eq:product]: $$
        2mkn
        $$

        FLOPs. Is that exact? Not quite: to add up $k$ terms takes only $k-1$ additions. Count once
        with numbers that write down every operation. `counted` makes matrices of such numbers; they
        note each `*` and `+` in a list, the tally:
    """)
    m, k, n = 3, 5, 7
    tally: list[str] = []
    product = counted(tally, m, k) @ counted(tally, k, n)
    times, plus = tally.count("*"), tally.count("+")  # @inspect times, plus
    assert product.shape == (m, n) == (3, 7), \
        "The result has m rows and n columns."  # @hide
    assert times == m * k * n == 105, "The product takes mkn multiplications."
    assert plus == m * (k - 1) * n == 84, "The product takes m(k-1)n additions."
    note(rf"""
        With $m = 3$, $k = 5$ and $n = 7$ there are {times} multiplications and {plus} additions,
        {times + plus} operations. The formula says `2 * 3 * 5 * 7`, one addition more for each of
        the `3 * 7` entries. Everybody uses the formula all the same: it is easy to remember, and
        for large $k$ the difference is small. It also fits the hardware, which does a
        multiplication and an addition in one step, a *fused multiply-add*. PyTorch's counter uses
        it, too:
    """)
    x, w = torch.randn(m, k), torch.randn(k, n)
    work = flops(lambda: x @ w)  # @inspect work as FLOP
    assert work == 2 * m * k * n == 210, \
        "PyTorch's counter says 2mkn, 210 FLOPs."
    assert work - (times + plus) == m * n == 21, \
        "That is one more than was done for each of the 21 entries."

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
            The volume grows eightfold and the faces fourfold, so each number serves twice as many
            multiplications. With `n` at one, each number of the left matrix serves only one.
        """, caption=r"""
            A product as a box of cubes. Each cube is a multiplication, of a row of the left matrix,
            a column of the right one, and a place on the inner axis. The matrices and the sums are
            faces of the box.
        """, alt=r"""
            A box, seven cubes wide, three high and five deep. Its side is the left matrix, its top
            the right one, its front the sums.
        """)  # @hide
    tally.clear()  # @hide
    outer = counted(tally, 4, 1) @ counted(tally, 1, 6)  # @hide
    question(r"""
        A column of `4` numbers times a row of `6` is a product with $k=1$. How many multiplications
        and additions does it really take, and how many FLOPs does the formula say?
    """, answer=[len(tally), flops(lambda: torch.ones(4, 1) @ torch.ones(1, 6))],
        check=[4 * 6, 2 * 4 * 1 * 6],
        hint="Each entry has a single term. How many additions does it take?",
        why=r"""
            With $k=1$ an entry is a single multiplication and nothing is added: `4 * 6 = 24`. The
            formula counts an addition for each multiplication all the same, `2 * 4 * 1 * 6 = 48`.
        """, unit="FLOP")


@aside
def a_product_fills_a_box() -> None:
    """A product fills a box: the work is its volume, the data are three of its faces."""
    note(r"""
        Why does a large product use a card better than many small ones? It helps to see the product
        of two matrices as a box. Each of its multiplications belongs to a row of the left matrix, a
        column of the right matrix, and a place on the inner axis that both share. So all
        multiplications together fill a box of $m \times k \times n$ places. The two matrices and
        the result are faces of the box.
    """)
    note(r"""
        Fill the box slice by slice. A slice is one place of the inner axis: a column of the left
        matrix meets a row of the right one. `cubes` counts the multiplications of a product with
        one place, with three, and with all five:
    """)

    def cubes(m: int, k: int, n: int) -> int:
        tally: list[str] = []
        _ = counted(tally, m, k) @ counted(tally, k, n)
        return tally.count("*")

    def numbers(m: int, k: int, n: int) -> int:
        return m * k + k * n + m * n

    m, k, n = 3, 5, 7
    fills = {depth: cubes(m, depth, n) for depth in (1, 3, k)}
    assert list(fills.values()) == [21, 63, 105], \
        "One slice, three and five have so many multiplications."
    assert fills[k] == m * k * n, "All of them are the volume of the box."
    filled = ", ".join(f"{d} of {k} slices, {it} multiplications" for d, it in fills.items())  # @hide
    figure(plot_box((m, k, n), fills), caption=r"""
        The product of a `3 × 5` and a `5 × 7` matrix as a box that fills slice by slice. Volume is
        work; the faces are what has to be read and written.
    """, alt=rf"""
        The same box again and again, {n} wide, {m} high and {k} deep, filled with cubes from the
        back: {filled}. The top of what is filled shows the rows of w used so far, the side the
        columns of x, the front the sums.
    """)
    note(r"""
        Make every side of the box twice as long. The volume, the work, becomes `8` times as large.
        The faces, the numbers to read and write, become `4` times as large. So each number serves
        twice as many multiplications. That is why large products keep arithmetic units busy, and
        small ones wait for memory.
    """)
    assert cubes(2 * m, 2 * k, 2 * n) == 8 * fills[k], \
        "Twice the sides make 8 times the work."
    larger = numbers(2 * m, 2 * k, 2 * n)
    assert larger == 4 * numbers(m, k, n) == 284, \
        "They make 4 times the numbers."
    assert cubes(1, k, n) == k * n, \
        "A single row takes one multiplication for each weight."  # @hide
    question(r"""
        Two matrices of `300 × 300` are multiplied. How many multiplications are there for each
        number in the three faces?
    """, answer=300**3 // (3 * 300**2),
        wrong={
            "There are three faces.": 300,
            "That counts the additions, too.": 200,
        },
        check=next(n for n in range(999) if n * 3 * 300**2 == 300**3),
        hint="Divide the volume of a cube by three of its faces.",
        why=r"""
            The volume is the third power of the side and each face the second, so what is left is a
            third of the side. Twice the side, twice as many multiplications for each number.
        """)


@aside
def the_missing_additions_do_not_matter() -> None:
    """At any size that matters, one addition per entry is nothing."""
    note("The formula charges one addition too many for each entry. Is that worth correcting?")
    b, d, k = 1024, 256, 64
    small = flops(lambda: torch.ones(b, d) @ torch.ones(d, k))  # @inspect small as FLOP
    assert small == 2 * 1024 * 256 * 64 == 33_554_432, "fits any laptop"
    exact = b * k * (2 * d - 1)  # @inspect exact as FLOP
    assert exact / small == 511 / 512, "the formula is a trifle high"
    note(r"""
        Now a product worth a GPU. Nothing is allocated for it here: on the device `meta` a tensor
        has a shape and no data, and the counter needs no more.
    """)
    rows, inner, cols = 16384, 32768, 8192
    with torch.device("meta"):
        x: Float[Tensor, "row inner"] = torch.empty(rows, inner)
        w: Float[Tensor, "inner col"] = torch.empty(inner, cols)
    y: Float[Tensor, "row col"] = x @ w  # @inspect y.shape
    work = flops(lambda: x @ w)  # @inspect work as FLOP
    assert work == 2 * rows * inner * cols, "formula and counter"
    assert work == 8_796_093_022_208, "the same, in digits"
    sizes = [t.nbytes / GiB for t in (x, w, y)]  # @inspect sizes as GiB
    assert sizes == [2.0, 1.0, 0.5], "what it would take to run it"
    missing = work - rows * cols * (2 * inner - 1)  # @inspect missing as FLOP
    assert missing == 16384 * 8192, "one per entry, again"
    assert missing / work == 1 / 65536, "lost in any rounding"
    question(r"""
        How long must the inner length be for the missing additions to be just one hundredth of what
        the formula charges?
    """, answer=next(k for k in range(1, 999) if 1 / (2 * k) <= 1 / 100),
        check=100 // 2)


def a_forward_pass_costs_two_per_parameter() -> None:
    """A forward pass takes two FLOPs per parameter and token."""
    note(r"""
        How many FLOPs does the forward pass of a model take? Take a model of *linear* layers: each
        multiplies its input by a matrix of weights. In such a product, each weight is used once for
        each row of the input, in a multiplication and an addition. So a model of $P$ weights takes

        $$
        2BP
        $$

        FLOPs for $B$ rows, whatever the shapes of its matrices are. In a language model a row is a
        token. Count it for three layers, `params` weights in all, once for `1024` rows, and once
        for `8` sequences of `128` tokens, which is as many:
    """)
    with torch.device("meta"):
        shapes = (64, 64), (64, 64), (64, 1)
        weights = [torch.empty(shape) for shape in shapes]
        points: Float[Tensor, "point width"] = torch.empty(1024, 64)
        tokens: Float[Tensor, "batch seq width"] = torch.empty(8, 128, 64)

    def forward(x: Tensor) -> Tensor:
        for w in weights:
            x = x @ w
        return x

    params = sum(w.numel() for w in weights)  # @inspect params
    assert params == 2 * 64**2 + 64, "The three layers have 8256 weights."  # @hide
    work = flops(lambda: forward(points))  # @inspect work as FLOP
    assert work == 2 * 1024 * params, \
        "PyTorch's counter finds two FLOPs for each row and weight."
    same = flops(lambda: forward(tokens))  # @inspect same as FLOP
    assert same == work, \
        "8 sequences of 128 tokens take as many FLOPs as 1024 rows."
    note(rf"""
        Both take `2 * 1024 * 8256` FLOPs, which is {work:,}. Only the number of rows and the number
        of weights matter.
    """)
    question(r"""
        `4` sequences of `250` tokens pass through a linear layer, and the counter says `6e9` FLOPs.
        How many weights has the layer?
    """, answer=6 * 10**9 // flops(lambda: torch.ones(4, 250, 1) @ torch.ones(1, 1)),
        wrong={
            "The additions are missing.": 6 * 10**6,
            "That is for one sequence: there are four.": 12 * 10**6,
        },
        check=6 * 10**9 // (2 * 4 * 250),
        hint="How many tokens are there, and how many FLOPs does a token take for each weight?",
        why=r"""
            There are `4 * 250 = 1000` tokens, and each takes `2` FLOPs per weight. So `6e9` is
            `2 * 1000` times the number of weights.
        """,
        unit="weights")


@aside
def not_everything_else_is_linear() -> None:
    """Apart from products, cost is not always linear in size."""
    misbelief("Every operation other than a matrix product costs as much as its tensors are large.",
        r"""
            Elementwise ones do: one operation per entry. The scores of attention grow with the
            square of the sequence, a convolution multiplies by the size of its kernel, and sorting
            and factorizing grow faster than what they are given.
        """)
    note(r"""
        *Attention* scores every token against every other, so twice the tokens are more than twice
        the work:
    """)

    def scores(seq: int) -> int:
        q = torch.empty(seq, 64, device="meta")
        return flops(lambda: q @ q.t())

    assert scores(2048) == 4 * scores(1024), "twice the tokens"
    note("In a *convolution* each entry of the result is a sum over a whole kernel:")
    image, kernel = torch.randn(1, 3, 8, 8), torch.randn(4, 3, 3, 3)
    filtered = F.conv2d(image, kernel)  # @inspect filtered.shape
    assert filtered.shape == (1, 4, 6, 6), "less at the edges"
    work = flops(lambda: F.conv2d(image, kernel))  # @inspect work as FLOP
    assert work / filtered.numel() == 2 * 3 * 3 * 3, "a kernel per output"
    note("*Sorting* does no arithmetic, so count comparisons. They, too, outgrow the list:")

    def comparisons(n: int) -> int:
        tally: list[str] = []

        def order(p: int, q: int) -> int:
            tally.append("<")
            return p - q

        sorted(torch.randperm(n).tolist(), key=cmp_to_key(order))
        return len(tally)

    growth = comparisons(4096) / comparisons(2048)  # @inspect growth as times
    assert 2.1 < growth < 2.3, "sorting twice as many"
    note(r"""
        The counter knows formulas for products, convolutions and attention; what is not on its list
        it reports as nothing. Even attention falls through when a device runs it with a kernel that
        the list lacks. Read a zero as *not known*.
    """)
    svd = flops(lambda: torch.linalg.svd(torch.randn(64, 64)))
    assert svd == 0, "reported, not spent"  # @zero: the counter has no formula for it
    q = torch.randn(1, 1, 16, 8)  # @unnoticed: 1, 16, 8: any shape
    fused = flops(lambda: F.scaled_dot_product_attention(q, q, q))  # @measure fused as FLOP
    weights = q @ q.mT
    written = flops(lambda: q @ q.mT) + flops(lambda: weights @ q)
    assert fused in (0, written), \
        "attention: nothing, or both products"
    question(r"""
        How many FLOPs does one output of a convolution cost that reads `16` channels with kernels
        of `5 × 5`?
    """, answer=flops(lambda: F.conv2d(torch.ones(1, 16, 5, 5), torch.ones(1, 16, 5, 5))),
        check=2 * 16 * 5 * 5,
        unit="FLOP")


def cheap_in_flops_is_not_cheap_in_time() -> None:
    """An operation with few FLOPs can take much time, because it has to move its numbers."""
    note(r"""
        Does an operation with few FLOPs take little time? Not always: its numbers have to be read
        from memory and written back, and that takes time, too. Compare two operations on a matrix
        `x` of `1024 * 1024` numbers: the product `x @ x`, and the addition `x + 1`. First their
        FLOPs. The addition does one for each entry, the product `2 * 1024`:
    """)
    n = 1024
    x = torch.randn(n, n)
    work = flops(lambda: x @ x)  # @inspect work as FLOP
    share = n * n / work  # @inspect share as %
    assert share == 1 / 2048, \
        "The addition does one FLOP where the product does 2048."
    note(rf"""
        The addition has {share:.2%} of the FLOPs of the product. Does it take {share:.2%} of the
        time, too? `quickest` runs a call several times and returns the shortest time:
    """)
    product, plus = quickest(lambda: x @ x, 5), quickest(lambda: x + 1, 5)  # @measure product as s, plus as s
    time_share = plus / product  # @measure time_share as %
    assert share < time_share, \
        "Of the product's time, the addition takes a larger share than of its FLOPs."
    moved = 2 * x.nbytes / n**2  # @inspect moved as B
    assert moved == 8.0, "The addition reads 4 and writes 4 bytes for each FLOP."  # @hide
    reuse = work / (3 * x.nbytes)  # @inspect reuse as FLOP/B
    assert 170 < reuse < 171, "The product does 170 FLOPs with each byte."  # @hide
    note(rf"""
        No: measured against the product, the addition takes a much larger share of the time than of
        the FLOPs. The cause is memory. The addition reads a number and writes a number, {moved:.0f}
        bytes, for a single FLOP. The product does {reuse:.0f} FLOPs with each byte of its three
        matrices, because it uses each number `1024` times.
    """)
    y = torch.empty_like(x)  # @hide
    add, power = partial(torch.add, x, 1, out=y), partial(torch.exp, x, out=y)  # @hide
    quick = time_call(add, repeats=5, patience=5)  # @stepover @hide
    slow = time_call(power, repeats=5, patience=5)  # @stepover @hide
    longer = slow.seconds / quick.seconds  # @hide
    misbelief("For large matrices nothing is as expensive as the product.", r"""
        In FLOPs that is true, and in time it need not be. An operation that does little with each
        number, such as an addition, waits for memory. The faster a card multiplies, the larger is
        its share of the time.
    """)
    narrow = torch.empty(1536, 1536, dtype=torch.bfloat16, device="meta")  # @hide
    question(r"""
        Two matrices of `1536 * 1536` numbers in `bfloat16`, `2` bytes a number, are multiplied.
        Divide the FLOPs by the bytes of the three matrices, the two and the result. How many FLOPs
        per byte are that?
    """, answer=flops(lambda: narrow @ narrow) / (3 * narrow.nbytes),
        wrong={
            "The additions are missing.": 1536 / 6,
            "Only one of three matrices is counted.": 1536,
        },
        check=1536 / 3,
        hint="The FLOPs are `2 * 1536 ** 3`. How many bytes do the three matrices take?",
        why=r"""
            `2 * 1536 ** 3` FLOPs divided by `3 * 1536 ** 2 * 2` bytes is `1536 / 3 = 512`. The
            larger the matrices, the more FLOPs are done with each byte.
        """, unit="FLOP/B")


@aside
def budgets_that_made_history() -> None:
    """One training budget is published, one is guessed, one was written into an order."""
    note(r"""
        The GPT-3 paper tabulates `174,600` million parameters, `300` billion tokens and `3.14e23`
        FLOPs in all [@gpt3]. `6` FLOPs per parameter and token rebuild the last from the others.
    """)
    gpt3 = 6 * 174.6e9 * 300e9  # @inspect gpt3 as FLOP
    assert 3.142e23 < gpt3 < 3.144e23, "the published total"
    rumour = 2e25  # @inspect rumour as FLOP
    ratio = rumour / gpt3  # @inspect ratio as times
    assert 63.6 < ratio < 63.7, "if it is true"
    note(rf"""
        Of GPT-4 only guesses are known: the report on it withholds the compute [@gpt4]. Estimates
        from outside put it above `1e25` [@epoch], some near `2e25`, {ratio:.0f} times GPT-3. Quoted
        often enough, a guess looks like a fact.
    """)
    threshold, biological = 1e26, 1e23
    runs = threshold / gpt3  # @inspect runs as times
    assert 318 < runs < 319, "GPT-3 trainings up to the line"
    over = gpt3 / biological  # @inspect over as times
    assert 3.1 < over < 3.2, "GPT-3 is over the other one"
    note(r"""
        In the United States an order of `2023` had models reported that were trained with more than
        `1e26` operations, integer or floating-point, and set a second line at `1e23` for models
        trained primarily on biological sequence data [@eo14110]. It was revoked in `2025`
        [@eo14148].
    """)
    question(r"""
        How many trillion tokens bring a model of `1` billion parameters, trained on biological
        sequences, up to the line for such models?
    """, answer=biological / (6 * 1e9) / 1e12,
        check=100 / 6, unit="trillion tokens")


@aside
def a_rate_times_a_time_is_work() -> None:
    """A rate times a time is an amount of work, if the days are the days you mean."""
    note(r"""
        FLOPs are an amount, FLOP/s a rate; in speech and in capitals they sound the same. Advice:
        never write FLOPS. With the stroke written out, units multiply like numbers, as here for `8`
        cards at their dense peak, day and night for `14` days.
    """)
    rate = dense_peak("H100 SXM", "bfloat16")  # @inspect rate as FLOP/s
    assert rate / TERA == 989.5, "a tera is ten to the twelfth"
    fortnight = 8 * 14 * DAY * rate  # @inspect fortnight as FLOP
    assert 9.574e21 < fortnight < 9.576e21, "nothing lost on the way"
    week = 8 * 7 * DAY * rate  # @inspect week as FLOP
    assert 4.787e21 < week < 4.789e21, "of one week"
    note(r"""
        CS336 of 2025 prints that number beside the words *8 H100s for 2 weeks*; its code multiplies
        by `7` days [@cs336], until the edition of 2026 adds the missing factor [@cs336-2026]. One
        week at full peak happens to be two at half of it, so the slip and an MFU of `0.5` look the
        same.
    """)
    assert week == 0.5 * fortnight, "right by accident"
    older = dense_peak("A100 SXM 80GB", "bfloat16")
    question(rf"""
        How many days does one A100, at its dense `bfloat16` peak of `{older / TERA:.0f}`
        teraFLOP/s, need for `1e21` FLOPs?
    """, answer=1e21 / older / DAY,
        check=1e21 / 312e12 / 86400, unit="days")
