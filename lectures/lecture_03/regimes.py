"""Three reasons to wait: for arithmetic, for memory, for the program that launches both."""
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from counters import Alive, Watching, tensors_in
from hardware import CARDS, find
from jaxtyping import Float
from timing import SLACK, Timing, one_thread, quickest, time_call, time_graph
from torch import Tensor
from torch.utils.flop_counter import flop_registry
from units import MICRO

from litbook import aside, figure, misbelief, note, question, requires

from .block import Block, RMSNorm, turns, written_attention
from .counts import Config, block_weights, matrices
from .figures import plot_lines, plot_shares
from .published import LLAMA_3_8B

H100 = CARDS["H100 SXM"]
PEAK, BANDWIDTH = 1979e12 / 2, H100.bandwidth  # dense bfloat16; held against the card in the first section
LAUNCH = 5e-6  # seconds, assumed: what handing one operation to a GPU costs


def three_regimes() -> None:
    """Three regimes."""
    note(r"""
        What limits the speed of a card while it runs a model? There are three answers. It computes
        all the time; we say that it waits for *arithmetic*. Its arithmetic waits for bytes from
        *memory*. Or it has nothing to do, and waits for the program to *launch* the next operation.
        A remedy for one of these does nothing for the others. So first find out which it is, by
        counting FLOPs and bytes.
    """)
    every_operation_has_an_intensity()
    a_block_moves_more_than_it_multiplies()
    fusion_saves_the_bytes_between_operations()
    fused_attention_reads_keys_again()
    fusion_makes_no_product_faster()
    even_one_number_takes_microseconds()
    operations_run_in_turn()
    eager_compiled_and_in_a_graph()


# --- what is moved


class Operation(NamedTuple):
    """One operation that PyTorch carried out: FLOPs where a formula is known, and bytes."""

    name: str
    flops: int
    read: int
    written: int

    @property
    def moved(self) -> int:
        """Bytes in and out."""
        return self.read + self.written


OVERWRITES = "copy_", "fill_", "zero_"  # operations that read nothing of the tensor that they change


class Traffic(Watching):
    """Inside, notes every operation with the bytes of the tensors that go in and come out.

    A view moves nothing, and neither does memory that is only reserved. An embedding reads the rows that are looked
    up, not its table. What is overwritten is not read, and nothing is read for its shape alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        given, results = tensors_in((args, kwargs)), tensors_in(made)
        name = operation._overloadpacket.__name__
        looks_up = operation is torch.ops.aten.embedding.default
        if looks_up:
            given = [given[1], *results]
        elif name in OVERWRITES:
            given = given[1:]
        elif name.startswith("new_") or name.endswith("_like"):
            given = []
        work = flop_registry.get(operation._overloadpacket)
        spent = work(*args, **kwargs, out_val=made) if work else 0
        changes = looks_up or operation._schema.is_mutable
        if "empty" in name or (not changes and shares_memory(given, results)):
            given, results = [], []
        done = Operation(name, spent, bytes_of(given), bytes_of(results))
        self.operations.append(done)


def shares_memory(given: list[Tensor], results: list[Tensor]) -> bool:
    """Whether every result is a view of something given."""
    places = {t.untyped_storage()._cdata for t in given}
    inside = [t.untyped_storage()._cdata in places for t in results]
    return bool(places) and all(inside)


def bytes_of(tensors: list[Tensor]) -> int:
    """Bytes of the tensors; of one that repeats its memory, the memory."""
    return sum(min(t.nbytes, t.untyped_storage().nbytes()) for t in tensors)


def operations_of(call: Callable[[], object]) -> list[Operation]:  # @stepover
    """What the call does, operation by operation, without gradients."""
    with torch.no_grad(), Traffic() as traffic:
        call()
    return traffic.operations


def bytes_moved(call: Callable[[], object]) -> int:  # @stepover
    """Bytes that go into and come out of all operations of the call."""
    return sum(op.moved for op in operations_of(call))


# --- sections


def every_operation_has_an_intensity() -> None:
    """An operation waits for memory unless it does enough FLOPs with each byte."""
    note(rf"""
        When does an operation wait for memory, and when for arithmetic? Compare two numbers. The
        *intensity* of an operation is its FLOPs divided by the bytes that it moves. The *ridge* of
        a card is the FLOPs that it can do while one byte arrives: its peak divided by its
        bandwidth. An operation with an intensity below the ridge waits for memory. With an
        intensity above the ridge it waits for arithmetic. The {H100.name} has a peak of
        {PEAK / 1e12:.1f} TFLOP/s in `bfloat16`, and a bandwidth of {BANDWIDTH / 1e12:.2f} TB/s
        [@nvidia-h100]:
    """)
    card = H100.bfloat16, H100.bandwidth  # @hide
    assert card == (PEAK, BANDWIDTH), \
        "Both numbers are those of the datasheet, for dense matrices."  # @hide
    ridge = PEAK / BANDWIDTH  # @inspect ridge as FLOP/B
    assert 295 < ridge < 296, \
        "While a byte arrives, an H100 can do so many FLOPs."
    note(r"""
        Take a product of $m$ tokens with a matrix of $k$ rows and $n$ columns. It does $2mkn$
        FLOPs. In `bfloat16` it reads and writes $2(mk + kn + mn)$ bytes. `operations_of` does not
        know this formula: it lists the operations that PyTorch runs, with the bytes of the tensors
        that go in and come out. The matrix is the gate of Llama-3-8B, once with `2048` tokens and
        once with one:
    """)
    k, n = matrices(LLAMA_3_8B)["gate"]  # @inspect k, n
    with torch.device("meta"):
        w: Float[Tensor, "k n"] = torch.empty(k, n).bfloat16()
        many: Float[Tensor, "m k"] = torch.empty(2048, k).bfloat16()
        gate: Float[Tensor, "m n"] = torch.empty(2048, n).bfloat16()
    products = operations_of(lambda: (many @ w, many[:1] @ w))
    weighed = [op.flops / op.moved for op in products if op.flops]  # @inspect weighed as FLOP/B
    formula = [m * k * n / (m * k + k * n + m * n) for m in (2048, 1)]
    assert weighed == formula, \
        "The tensors give the same intensity as the formula."
    assert weighed[0] > 4 * ridge, \
        "With 2048 tokens, the intensity is far above the ridge."
    assert round(weighed[1], 3) == 1.0, \
        "With one token, the product does one FLOP with each byte."
    single = operations_of(lambda: F.silu(gate))[0]  # @hide
    each = single.moved / gate.numel()  # @hide
    assert each == 4.0, \
        "An elementwise operation moves 4 bytes for each number: it reads 2 and writes 2."  # @hide
    note(rf"""
        With `2048` tokens the product does {weighed[0]:,.0f} FLOPs with each byte, and waits for
        arithmetic. With one token it does {weighed[1]:.0f}, and waits for memory. The cause: each
        weight is read once, and used once for each token.

        The intensity bounds the utilization. Below the ridge, an operation reaches at most the
        share intensity / ridge of the peak. Above the ridge, it can reach the whole peak:

        [@eq:bound]: $$
        \text{{MFU}} \le \min\left(1,\; \frac{{\text{{intensity}}}}{{\text{{ridge}}}}\right)
        $$

        Here are five operations, from the lowest intensity to the highest. The first three do at
        most one FLOP for each number, and no number of tokens changes that:
    """)
    table = {
        "copy": 0.0,
        "sum of two": gate.numel() / bytes_moved(lambda: gate + gate),
        "ReLU": gate.numel() / bytes_moved(lambda: gate.relu()),
        "one token's product": weighed[1],
        "product of 2048 tokens": weighed[0],
    }  # @inspect table as FLOP/B
    bound = {name: min(1, each / ridge) for name, each in table.items()}  # @inspect bound as %
    assert 0.0008 < bound["ReLU"] < 0.0009, \
        "A ReLU reaches at most this share of the peak."
    assert 0.0033 < bound["one token's product"] < 0.0035, \
        "So does a product with one token."
    assert bound["product of 2048 tokens"] == 1, \
        "A product with 2048 tokens can reach the whole peak."
    question(rf"""
        The gate of Llama-3-8B is a matrix with $k = 4096$ and $n = 14336$, and the ridge of an H100
        is `{ridge:.1f}` FLOPs a byte. How many tokens have to go through the gate together before
        it waits for arithmetic?
    """, answer=next(m for m in range(1, 999) if m * k * n / (m * k + k * n + m * n) > ridge),
             check=math.ceil(ridge * k * n / (k * n - ridge * (k + n))), within=0.02,
             unit="tokens", hint="Set the intensity $mkn/(mk + kn + mn)$ equal to the ridge, and solve for $m$.", why=r"""
                 The intensity $mkn/(mk + kn + mn)$ has to exceed the ridge. Without the bytes of
                 the tokens it would be $m$. With them it is a little less, so a few more tokens
                 than the ridge are needed.
             """)


def shares(parts: Mapping[str, float]) -> dict[str, float]:
    """Each part as a share of all."""
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()}


@torch.library.custom_op("lecture_03::rms_norm", mutates_args=())
def norm_kernel(x: Tensor, gain: Tensor) -> Tensor:  # @stepover
    """RMSNorm as one operation, as CUDA has it: it reads `x` and the gains, and writes its result."""
    return F.rms_norm(x, gain.shape, gain)


norm_kernel.register_fake(lambda x, gain: torch.empty_like(x))


class KernelNorm(RMSNorm):
    """An RMSNorm that a counter sees as one operation, on any device."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = norm_kernel(x, self.gain)
        return y


def block_operations(
    tokens: int, config: Config = LLAMA_3_8B
) -> list[Operation]:
    """What a block does with `tokens` tokens in bfloat16 on a card: attention written out, each norm one kernel."""
    with torch.device("meta"):
        block = Block(config, "written")
        block.before_attention = KernelNorm(config.width)
        block.before_feed_forward = KernelNorm(config.width)
        block.bfloat16()
        x = torch.empty(1, tokens, config.width, dtype=torch.bfloat16)
        turn = turns(config.head, tokens, like=x)
    return operations_of(lambda: block(x, turn))


def seconds_at_best(op: Operation) -> float:
    """Seconds on the H100 with perfect use of its arithmetic or of its memory, whichever takes longer.

    Nothing is taken to stay in the card's cache from one operation to the next.
    """
    return max(op.flops / PEAK, op.moved / BANDWIDTH)


KINDS = {"mm": "products with weights", "bmm": "products in attention"}


def by_kind(
    operations: Sequence[Operation], price: Callable[[Operation], float]
) -> dict[str, float]:
    """The price of all operations, added up for each kind of them."""
    found = dict.fromkeys([*KINDS.values(), "all in between"], 0.0)
    for op in operations:
        found[KINDS.get(op.name, "all in between")] += price(op)
    return found


def between_by_hand(config: Config, tokens: int) -> int:
    """Bytes that move between the products of a block in bfloat16; gains and angles are left out, as few."""
    d, kv = tokens * config.width, tokens * config.kv_width
    h, pairs = tokens * config.hidden, tokens**2
    numbers = (2 + 2 + 2) * config.heads * pairs  # scores
    numbers += (1 + 2 + 1) * pairs    # the mask: filled, cut, added
    numbers += 9 * d + 9 * kv         # queries and keys, turned
    numbers += 2 * d + 2 * d          # queries and results, put in order
    numbers += 2 * 2 * d + 2 * 3 * d  # two norms, two additions
    numbers += (2 + 3) * h            # SiLU, and its product with up
    return 2 * numbers


@aside
def a_block_moves_more_than_it_multiplies() -> None:
    """The operations between the products do hardly any FLOPs and move most of the bytes."""
    note(r"""
        Where does a block of Llama-3-8B spend its time on an H100? `block_operations` lists all its
        operations for a sequence of `2048` tokens, with attention written out. There are three
        kinds: products with weights, the two products of attention, and everything in between, such
        as norms, the softmax and additions. `by_kind` adds up a price over the operations of each
        kind. The price is once the FLOPs, once the bytes, and once the time at best: the time of
        the FLOPs or of the bytes, whichever is longer:
    """)
    done = block_operations(2048)
    kernels = sum(op.moved > 0 for op in done)  # @measure kernels
    assert 34 < kernels < 39, \
        "It launches so many operations that move anything."  # @hide
    work = shares(by_kind(done, lambda op: op.flops))  # @inspect work as %
    bytes_ = shares(by_kind(done, lambda op: op.moved))  # @inspect bytes_ as %
    time = shares(by_kind(done, seconds_at_best))  # @inspect time as %
    assert 0.9 < work["products with weights"] < 0.97, \
        "Nearly all FLOPs are products with weights."
    assert work["all in between"] == 0, \
        "A counter counts nothing for what lies between."  # @zero: it has no formula for them
    assert 0.63 < bytes_["all in between"] < 0.65, \
        "Most of the bytes move between the products."
    assert 0.39 < time["all in between"] < 0.41, \
        "So does this share of the time at best."
    between = by_kind(done, lambda op: op.moved)["all in between"]  # @hide
    by_hand = between_by_hand(LLAMA_3_8B, 2048)  # @hide
    near = math.isclose(between, by_hand, rel_tol=0.001)  # @hide
    assert near, \
        "Added up by hand, tensor by tensor, as many bytes move between the products."  # @hide
    figure(plot_shares({"FLOPs": work, "bytes": bytes_, "time at best": time}), caption=rf"""
        One block of Llama-3-8B, by kind of operation: its FLOPs, the bytes it moves, and the least
        time it needs on an {H100.name}.
    """, alt=rf"""
        Three stacked bars. In the one of FLOPs nearly all is products with weights; in the one of
        bytes most is what lies between the products; the one of time is shared between them,
        {time['all in between']:.0%} to what lies between.
    """)
    note(rf"""
        By its FLOPs, the block is a few large products: {work["products with weights"]:.0%} are
        products with weights. But {bytes_["all in between"]:.0%} of the bytes move between the
        products, and that takes {time["all in between"]:.0%} of the time at best. Each of these
        operations reads numbers, does one thing to each of them, and writes them back.
    """)
    few = by_kind(block_operations(128), lambda op: op.moved)  # @hide
    share = shares(few)["all in between"]  # @hide
    products = sum(few.values()) - few["all in between"]  # @hide
    by_hand = between_by_hand(LLAMA_3_8B, 128)  # @hide
    question(rf"""
        With only `128` tokens, the products of the block move `{round(products / 1e6)}` MB, nearly
        all of it weights, and the operations between them move `{round(by_hand / 1e6)}` MB. What
        share of the bytes lies between the products now?
    """, answer=round(share, 3), check=round(by_hand / (by_hand + products), 3), unit="%",
        hint="Divide by all bytes, not by those of the products.", within=0.05, wrong={
            "Divide by all bytes, not by those of the products alone.": by_hand / products,
        }, why=r"""
            The weights are read in any case. What lies between the products grows with the tokens,
            and with so few tokens it has become small.
        """)


def normalized(x: Tensor, gain: Tensor) -> Tensor:
    """RMSNorm, one operation at a time."""
    return x * (x.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt() * gain


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """What SwiGLU does between its products."""
    return F.silu(gate) * up


def lifted(x: Tensor) -> Tensor:
    """Ten additions."""
    for _ in range(10):
        x = x + 1
    return x


def passes(call: Callable[..., Tensor], *given: Tensor) -> tuple[float, float]:
    """Bytes moved as they are written, and at least, in units of what comes out."""
    made = call(*given)
    least = bytes_of([*given, made])
    return bytes_moved(partial(call, *given)) / made.nbytes, least / made.nbytes


def fusion_saves_the_bytes_between_operations() -> None:
    """Fusion removes what one operation writes and the next one reads again."""
    note(r"""
        An *elementwise* operation does the same to each number of a tensor. Can a chain of such
        operations run faster without computing less? Yes: read each number once, do all operations
        while it is in the processor, and write it once. This is *fusion*. It saves no FLOP. It
        saves writing and reading the tensors in between. `passes` counts that for three chains: a
        norm, the gate of SwiGLU, which is `F.silu(gate) * up`, and ten additions. The unit is one
        pass over a tensor, reading or writing. Each pair of numbers is the passes as PyTorch runs
        the chain, and the passes if it is fused:
    """)
    with torch.device("meta"):
        x, up = torch.empty(16384, 4096), torch.empty(16384, 4096)
        gain = torch.empty(4096)
    norm, gate = passes(normalized, x, gain), passes(gated, x, up)
    chain = passes(lifted, x)
    counts = [round(c, 2) for c in (*norm, *gate, *chain)]  # @inspect counts
    assert counts[:2] == [7.0, 2.0], \
        "A norm takes 7 passes, and 2 if it is fused."
    assert counts[2:4] == [5.0, 3.0], \
        "The gate of SwiGLU takes 5 passes, and 3 if it is fused."
    assert counts[4:] == [20.0, 2.0], \
        "Ten additions take 20 passes, and 2 if they are fused."
    gains = [as_written / least for as_written, least in (norm, gate, chain)]  # @inspect gains as times
    assert gains[2] == 10.0, "Ten additions gain a factor of 10 at most."
    note(rf"""
        Take the gate of SwiGLU. SiLU reads the gate and writes a result; the product reads that
        result and `up`, and writes its own. That is {counts[2]:.0f} passes. Fused, the gate and
        `up` are read, and the product is written: {counts[3]:.0f} passes. So it can get at most
        {gains[1]:.2f} times as fast, if memory is all that it waits for.

        The longer the chain, the larger the gain. `torch.compile` finds such chains and makes one
        kernel of each. On a GPU, PyTorch's own `F.rms_norm` is such a kernel.
    """)
    misbelief("Fusion makes models faster because it saves computation.", rf"""
        It saves no computation: all ten additions are still done. They can get up to {gains[2]:.0f}
        times as fast because the tensors in between are never written and read.
    """)
    as_written, least = passes(lambda a, b, c: a * b + c, x, up, x + 1)  # @hide
    question("PyTorch runs `a * b + c` as a product and then a sum. All three tensors have the same size. How many times as fast can fusion make it at best?",
        answer=as_written / least, check=6 / 4, unit="times", wrong={
            "The product also writes its result, and the sum reads it again.": 5 / 4,
            "Fused, three tensors are read and one is written.": 2.0,
        }, hint="Count the passes of each operation: what it reads and what it writes.",
        why="As it stands, each of the two operations reads two tensors and writes one: `6` passes. Fused, three tensors are read and one is written: `4` passes.")


@one_thread()
def in_tiles(  # @stepover
    rows: int,
    q: Float[Tensor, "n d"],
    k: Float[Tensor, "n d"],
    v: Float[Tensor, "n d"],
) -> tuple[Float[Tensor, "n d"], int]:
    """Causal attention of one head that looks at `rows` tokens at a time, and how many numbers it loads for that."""
    n, d = q.shape
    mask = torch.full((rows, rows), -torch.inf).triu(1)
    mixed, loaded = torch.empty_like(q), 0
    for end in range(rows, n + 1, rows):
        tile, result = q[end - rows:end], torch.zeros(rows, d)
        top, total = torch.full((rows, 1), -torch.inf), torch.zeros(rows, 1)
        loaded += tile.numel()
        for start in range(0, end, rows):
            keys, values = (x[start:start + rows] for x in (k, v))
            loaded += keys.numel() + values.numel()
            scores = tile @ keys.T / math.sqrt(d)
            if start + rows == end:
                scores = scores + mask
            # Sums so far are scaled anew when a larger score comes.
            before, top = top, scores.amax(1, keepdim=True).maximum(top)
            weights, scale = (scores - top).exp(), (before - top).exp()
            total = total * scale + weights.sum(1, keepdim=True)
            result = result * scale + weights @ values
        mixed[end - rows:end] = result / total
    return mixed, loaded


@one_thread()
def most_made(call: Callable[[], object]) -> int:  # @stepover
    """Bytes of what operations of the call make, when they are most."""
    with Alive() as watch:
        call()
    return watch.most


@aside
def fused_attention_reads_keys_again() -> None:
    """Fused attention needs no memory for its scores, but reads its keys many times."""
    note(r"""
        A *fused kernel* does several operations on numbers while they are in the fast memory beside
        a card's arithmetic. Can fused attention read each key and value only once? It cannot,
        because each query has to meet all keys before it, and the fast memory holds only a few of
        them. So a fused kernel works in *tiles*, groups of rows. It takes a tile of queries and
        loads the keys and values tile by tile. Then it takes the next tile of queries [@dao2022].
        `in_tiles` does this, and counts the numbers that it loads. Its result is that of
        written-out attention:
    """)
    n, d = 512, 64
    q, k, v = torch.randn(3, n, d)
    tiled = in_tiles(16, q, k, v)[0]
    whole = written_attention(*(x[None, :, None] for x in (q, k, v)))
    flat = whole.flatten(0, 2)
    assert torch.allclose(tiled, flat, atol=1e-5), \
        "In tiles, the result is the same."
    note(r"""
        In tiles, the scores are never all there at once. So how does the memory grow with the text?
        `most_made` measures the most bytes that are alive at once. Compare a text with one of half
        its length, written out and in tiles:
    """)

    def halves(made: Callable[[int], int]) -> list[int]:
        return [made(n // 2), made(n)]

    def written(t: int) -> Tensor:
        return written_attention(*torch.randn(3, 1, t, 1, d))

    def fused(t: int) -> Tensor:
        return in_tiles(32, *torch.randn(3, t, d))[0]

    apart = halves(lambda t: most_made(partial(written, t)))
    tiles = halves(lambda t: most_made(partial(fused, t)))
    memory = [apart[1] / apart[0], tiles[1] / tiles[0]]  # @inspect memory as times
    assert 3.5 < memory[0] < 4, \
        "Written out, twice the text takes nearly 4 times the memory."
    assert 1.8 < memory[1] < 2, "In tiles, it takes twice the memory."
    note(r"""
        And how do the loads grow? A tile has $r$ rows of $c$ numbers, where $c$ is the size of a
        head. The fast memory holds four tiles, one each of queries, keys, values and results:
        $M = 4rc$ numbers in all. $T$ tokens make $T/r$ tiles of queries. With a causal mask, each
        tile of queries loads half of all keys and values on average:

        [@eq:loads]: $$
        \text{loads} \approx \frac{T}{r} \cdot T c = \frac{4\,T^2 c^2}{M} \qquad\text{with } M = 4\,r\,c
        $$

        So the loads grow with the square of the text. No exact attention does better [@dao2022].
        But twice the fast memory halves them. Count the loads with tiles of `16` and of `32` rows:
    """)
    lengths = [128, 256, 512]

    def loads(rows: int) -> list[int]:
        return [in_tiles(rows, *torch.randn(3, t, d))[1] for t in lengths]

    small, large = loads(16), loads(32)  # @inspect small, large
    growth = small[2] / small[1]  # @inspect growth as times
    assert 3.7 < growth < 4, "Twice the tokens take nearly 4 times the loads."
    formula = [4 * t**2 * d**2 / (4 * 16 * d) for t in lengths]
    above = [count / least for count, least in zip(small, formula)]
    assert above[0] > above[1] > above[2] > 1, \
        "The longer the text, the nearer the formula comes."
    assert above[2] < 1.1, "For the longest, it is less than a tenth too small."
    fewer = small[2] / large[2]  # @inspect fewer as times
    assert 1.8 < fewer < 2, "Twice the fast memory takes nearly half the loads."
    lines = {
        "written out": [bytes_moved(partial(written, t)) for t in lengths],
        "tiles of 16": [4 * count for count in small],
        "tiles of 32": [4 * count for count in large],
        "each number once": [4 * 4 * t * d for t in lengths],
    }
    again = lines["tiles of 32"][2] / lines["each number once"][2]  # @hide
    assert again == (512 / 32 + 1) / 4 + 0.25, \
        "In tiles of 32, a number is loaded so many times on average."  # @hide
    more = lines["written out"][2] / lines["tiles of 16"][2]  # @inspect more as times
    assert 3 < more < 3.1, \
        "Written out, attention moves so many times the bytes of tiles of 16."
    figure(plot_lines(lengths, lines, "tokens", "bytes moved", log=True),
        caption=r"""
            Bytes that one head of attention moves: written out, by what goes in and out of its
            operations; in tiles, by what is loaded.
        """, alt=r"""
            Four lines against the number of tokens, both axes logarithmic. The one for written-out
            attention lies highest. Below it, and as steep, lie those of two sizes of tile, the
            larger tile below the smaller. Reading each number once lies lowest and rises half as
            steeply.
        """)
    note(r"""
        So fused attention saves memory and bytes, and reads keys many times all the same. It saves
        no FLOPs: in the forward pass they are the same, and in the backward pass there are more,
        because the scores are computed again.
    """)
    read = [sum(tile >= key for tile in range(64)) for key in range(64)]
    question(r"""
        A kernel takes `8192` tokens in `64` tiles of `128`, with a causal mask. How often is a key
        loaded, on average?
    """, answer=(8192 / 128 + 1) / 2, check=sum(read) / len(read), unit="times", within=0.03,
        why="The first tile of keys is loaded for all `64` tiles of queries, and the last for one. On average that is `(64 + 1) / 2`.")


@aside
def fusion_makes_no_product_faster() -> None:
    """Fusion makes no product faster, and for a single token products are nearly everything."""
    note(r"""
        *Fusion* joins operations so that the tensors between them are never written and read. How
        much can it speed up a whole block of Llama-3-8B at most? Suppose that everything but the
        products with weights took no time. `seconds_at_best` gives the time of an operation on an
        H100: that of its FLOPs or that of its bytes, whichever is longer. `by_kind` adds these
        times up for each kind of operation. First for `2048` tokens at once:
    """)
    many = by_kind(block_operations(2048), seconds_at_best)  # @inspect many as s
    gain = sum(many.values()) / many["products with weights"]  # @inspect gain as times
    assert 1.95 < gain < 2, \
        "With 2048 tokens, fusion makes the block at most so many times as fast."
    note(rf"""
        At most {gain:.2f} times as fast, since the products with weights stay. With so many tokens
        they wait for arithmetic, so moving fewer bytes does not help them. Now a single token, the
        first of a text:
    """)
    one = by_kind(block_operations(1), seconds_at_best)  # @inspect one as s
    alone = sum(one.values()) / one["products with weights"]  # @inspect alone as times
    assert round(alone, 3) == 1.001, \
        "With one token, fusion gains a thousandth or so."
    weights = 2 * block_weights(LLAMA_3_8B) / BANDWIDTH  # @inspect weights as s
    above = one["products with weights"] / weights
    assert 1 < above < 1.001, \
        "The time of the products is the time of reading the weights."
    misbelief("Generating waits for memory, so fusion helps it most.", rf"""
        Fusion hardly helps it. Generating waits for the weights, and each weight is read only once
        already. All the rest, which fusion could save, takes a {1 / (alone - 1):,.0f}th of that
        time.
    """)
    few = by_kind(block_operations(64), seconds_at_best)
    heavy = by_kind(block_operations(64), lambda op: op.moved)
    by_bytes = sum(heavy.values()) / heavy["products with weights"]
    products = heavy["products with weights"]
    others = sum(heavy.values()) - products
    question(rf"""
        With `64` tokens everything waits for memory. The products with weights move
        `{round(products / 1e6)}` MB, and all else moves `{round(others / 1e6, 1)}` MB. How many
        times as fast can fusion make the block at best?
    """, answer=sum(few.values()) / few["products with weights"], check=by_bytes, unit="times", within=0.03, why=r"""
        If all else took no time, the time of the products would be left. All bytes divided by the
        bytes of the products is the gain.
    """)


def even_one_number_takes_microseconds() -> None:
    """Adding to a thousand numbers takes hardly longer than adding to one."""
    note(r"""
        How long does the smallest operation of PyTorch take? To add one to a single number, PyTorch
        looks up device, dtype and shape, makes a tensor for the result, and asks whether gradients
        are wanted. Then it adds. With more numbers only the adding takes longer. `quickest`
        measures the shortest time of a call on this machine, for one number, a thousand and a
        million, and two sizes between:
    """)
    sizes = [2**p for p in (0, 5, 10, 15, 20)]  # @inspect sizes  # @unnoticed: 0, 5, 15: points of the curve
    given = [torch.zeros(size) for size in sizes]
    seconds = [quickest(partial(torch.add, x, 1)) for x in given]  # @measure seconds as s
    small, large = seconds[2] / seconds[0], seconds[4] / seconds[2]  # @measure small, large as times
    assert small < SLACK, \
        f"A thousand numbers take less than {SLACK} times as long as one."
    assert large > SLACK, \
        f"A million take more than {SLACK} times as long as a thousand."
    figure(plot_lines(sizes, {"one addition": [s / MICRO for s in seconds]}, "numbers", "µs", log=True),
           caption="Time of one call against the numbers it adds to, on the machine that built this page.",
           alt="A line that is level up to some thousand numbers and then rises.")
    note(r"""
        The left part of the line is level: up to some thousand numbers, the time is that of the
        call itself. This time is *overhead*. It is spent by the program, so a faster card does not
        make it shorter. With a GPU, the program can *launch* operations ahead: it hands the next
        ones over while the card still works on earlier ones. Then the overhead is hidden, as long
        as the card has enough to do.
    """)
    question(r"""
        A call takes `5` µs of overhead. A card moves `3.35e12` bytes a second, and an addition
        reads `2` bytes and writes `2` bytes for each number. For how many numbers does moving them
        take as long as the call?
    """, answer=5e-6 * 3.35e12 / (2 + 2), check=LAUNCH / (4 / BANDWIDTH), unit="numbers", within=0.1, wrong={
            "Each number is read and written: 4 bytes.": 5e-6 * 3.35e12 / 2,
        }, hint="How many bytes does the card move in that time?",
        why="In `5` µs the card moves `5e-6 * 3.35e12` bytes, and each number takes `4` of them. A smaller addition takes the time of the call, however fast the card.")


class Wait(NamedTuple):
    """Seconds that a block takes on an H100 at best: what its operations wait for, and what launching them takes."""

    arithmetic: float  # of operations that wait for it longer than for memory
    memory: float      # of all others
    launches: float

    @property
    def card(self) -> float:
        """Seconds that the card is busy: its operations run one after the other."""
        return self.arithmetic + self.memory


def waits(tokens: int, config: Config = LLAMA_3_8B) -> Wait:
    """What a block of so many tokens waits for on an H100, at best."""
    done = block_operations(tokens, config)
    bound = [op for op in done if op.flops / PEAK > op.moved / BANDWIDTH]
    work, both = (sum(map(seconds_at_best, ops)) for ops in (bound, done))
    return Wait(work, both - work, LAUNCH * sum(op.moved > 0 for op in done))


def operations_run_in_turn() -> None:
    """A card runs its operations one after the other, while the program launches the next ones."""
    note(rf"""
        How long does a Transformer block take on a card at best? Within an operation, a card
        computes while the next bytes arrive. So an operation takes the time of its FLOPs or that of
        its bytes, whichever is longer. The card starts an operation when the one before it has
        ended. So the times of all operations add up. Meanwhile the program hands over the next
        operations, one launch for each; assume {LAUNCH / MICRO:.0f} µs for a launch. With $n$
        operations, of which operation $i$ does $F_i$ FLOPs and moves $Q_i$ bytes:

        [@eq:block-time]: $$
        \text{{time}} = \max\left(n \cdot \text{{launch}},\;
        \sum_i \max\left(\frac{{F_i}}{{\text{{peak}}}},
        \frac{{Q_i}}{{\text{{bandwidth}}}}\right)\right)
        $$

        `waits` computes this for a block of Llama-3-8B on an H100, from `1` token to `4096`. It
        splits the time of the card: `arithmetic` adds up the operations that wait for it, `memory`
        all others:
    """)
    lengths = [1, 8, 64, 512, 4096]  # @unnoticed: 8, 64: points of the curves
    times = [waits(t) for t in lengths]  # @inspect times
    longer = [t.launches > t.card for t in times]  # @inspect longer
    assert longer == [True] * 3 + [False] * 2, \
        "With 64 tokens or fewer, launching takes longer than the card."
    work = [t.arithmetic / t.card for t in times]  # @inspect work as %
    assert work[:3] == [0.0] * 3, \
        "With so few tokens, no operation waits for arithmetic."
    assert 0.69 < work[3] < 0.71, \
        "With 512 tokens, most of the card's time is arithmetic."
    assert 0.36 < work[4] < 0.38, "With 4096 tokens, less than half is."
    note(rf"""
        So one block waits for three different things. With up to `64` tokens it waits for launches.
        With `512` tokens, {work[3]:.0%} of the card's time is arithmetic. With `4096` tokens only
        {work[4]:.0%} is, because the scores of written-out attention grow with the square of the
        tokens, and moving them takes memory's time.
    """)
    figure(plot_lines(lengths, {
        "waiting for memory": [t.memory / MICRO for t in times],
        "card, in all": [t.card / MICRO for t in times],
        "launches": [t.launches / MICRO for t in times],
    }, "tokens", "µs", log=True),
        caption=rf"""
            A block of Llama-3-8B on an {H100.name}, attention written out: what the card needs at
            best, the part of it that waits for memory, and launches, against the number of tokens.
        """, alt=r"""
            Three curves against tokens. Launches are level and highest for few tokens. What the
            card needs is level at first, soon passes the launches, and rises ever more steeply. The
            part that waits for memory is all of it for few tokens, less than half in the middle,
            and more than half at the end.
        """)
    done = block_operations(512)  # @hide
    work_alone = sum(op.flops for op in done) / PEAK  # @hide
    moving = sum(op.moved for op in done) / BANDWIDTH  # @hide
    more = times[3].card / max(work_alone, moving)  # @hide
    assert 1.27 < more < 1.29, \
        "In turn, the block takes so many times the larger total."  # @hide
    misbelief("Computing and moving bytes overlap, so the larger of the two totals is the time.", rf"""
        They overlap within an operation only. While the softmax reads and writes its scores, no
        product runs. With `512` tokens the block takes {more:.2f} times the larger of the two
        totals.
    """)
    half = replace(LLAMA_3_8B, width=2048, heads=16, kv_heads=4, hidden=7168)  # @hide
    usual, fewer, narrow = waits(64), waits(32), waits(64, half)  # @hide
    same = fewer.launches / usual.launches, fewer.card / usual.card  # @hide
    assert same[0] == 1, "Half the tokens take as many launches."  # @hide
    assert 0.95 < same[1] < 1, \
        "The card takes nearly as long, since it waits for weights."  # @hide
    apart = narrow.launches / usual.launches, narrow.card / usual.card  # @hide
    assert apart[0] == 1, "Half the width takes as many launches."  # @hide
    assert 0.25 < apart[1] < 0.28, "The card takes a quarter of the time."  # @hide
    note(rf"""
        How can one tell on a real card what a block waits for? Change one thing and watch the time.
        A *CUDA graph* launches all operations at once, so only a block that waits for launches gets
        faster in it. At half the width there are as many launches, and the card needs only
        {apart[1]:.0%} of its time with `64` tokens, so a block that waits for launches does not get
        faster.

        | it waits for | you see | remedy |
        |---|---|---|
        | launches | faster in a graph; half the width takes as long | CUDA graph, compiler, larger batch |
        | memory | no faster in a graph; more FLOPs on the same bytes take no time | fusion, narrower numbers, larger batch |
        | arithmetic | no faster in a graph; near the peak of its format | faster format, more cards, fewer FLOPs |
    """)
    listed = by_kind(block_operations(4096), seconds_at_best)  # @hide
    question(r"""
        A block has `218103808` weights in matrices, and `4096` tokens go through it. Its products
        with weights then wait for arithmetic. How many µs do they take at best on a card that does
        `989.5e12` FLOP/s?
    """, answer=2 * 4096 * 218103808 / 989.5e12 / MICRO, check=listed["products with weights"] / MICRO,
        unit="µs", within=0.05, wrong={
            "Each weight and token takes two FLOPs.": 4096 * 218103808 / 989.5e12 / MICRO,
        }, hint="How many FLOPs does a weight take for all tokens?",
        why="They do `2 * 4096 * 218103808` FLOPs. Divide by the FLOPs of a second; a µs is a millionth of it.")


def three_ways(tokens: int) -> tuple[dict[str, Timing], dict[str, Tensor]]:  # @stepover
    """A block of Llama-3-8B on the card: launched by PyTorch, compiled, in a graph, and compiled in a graph.

    What comes back are the time of each way and what the first two computed.
    """
    block = Block(LLAMA_3_8B).cuda().bfloat16()
    x = torch.randn(1, tokens, LLAMA_3_8B.width, device="cuda").bfloat16()
    turn = turns(LLAMA_3_8B.head, tokens, like=x)
    compiled = torch.compile(block, dynamic=False)
    with torch.no_grad():
        results = {"eager": block(x, turn), "compiled": compiled(x, turn)}
        timed = {
            "eager": time_call(lambda: block(x, turn), "cuda"),
            "compiled": time_call(lambda: compiled(x, turn), "cuda"),
            "graph": time_graph(lambda: block(x, turn)),
            "compiled, graph": time_graph(lambda: compiled(x, turn)),
        }
    return timed, results


@aside
@requires("cuda")
def eager_compiled_and_in_a_graph() -> None:
    """With one token a graph helps, with many a compiler."""
    note(r"""
        PyTorch usually runs *eager*: it launches each operation when it comes to it.
        `torch.compile` fuses the operations between the products of a block. A *CUDA graph* records
        all launches and hands them over at once; the same operations run. So compiling should help
        where a block waits for memory, and a graph where it waits for launches. `three_ways` times
        a block of Llama-3-8B in each way, with a single token and with `2048`:
    """)
    few, _ = three_ways(1)  # @measure few
    many, results = three_ways(2048)  # @measure many
    apart = results["eager"] - results["compiled"]
    off = (apart.float().norm() / results["eager"].float().norm()).item()  # @measure off
    assert off < torch.finfo(torch.bfloat16).eps, \
        "Compiled, the block gives the same results."
    gain = few["eager"].seconds / few["graph"].seconds  # @measure gain as times
    assert 1 < gain, "With one token, a graph makes the block faster."
    same = many["eager"].seconds / many["graph"].seconds  # @measure same as times
    assert same < gain, "With many tokens, it helps less."
    launch = few["eager"].seconds * LAUNCH / waits(1).launches  # @measure launch as s
    assert LAUNCH / 5 < launch < 5 * LAUNCH, \
        "An operation takes about the time that was assumed for a launch."
    card = find(torch.cuda.get_device_name())
    if card is not None and card.bfloat16 is not None:
        weights = 2 * block_weights(LLAMA_3_8B)
        reading = weights / card.bandwidth / few["compiled, graph"].seconds  # @measure reading as %
        assert 0.3 < reading <= 1, \
            "With one token, reading the weights takes at least 0.3 of the time."
        took = many["compiled, graph"].seconds
        working = 2048 * weights / card.bfloat16 / took  # @measure working as %
        assert 0.2 < working <= card.boost, \
            "With many tokens, the FLOPs of the products take at least 0.2 of it."
    rows = "\n".join(
        f"| {way} | {t.seconds / MICRO:.0f} | {many[way].seconds / MICRO:.0f} |"
        for way, t in few.items()
    )
    note(f"{few['eager'].device}, in µs:")
    note(f"| how | a single token | two thousand |\n|---|---|---|\n{rows}")
    question(r"""
        Eager, a block takes `400` µs for a token; in a graph it takes `150` µs. A model has `32`
        such blocks, and nothing else takes time. How many tokens a second does it write, eager and
        in a graph?
    """, answer=[1 / (32 * 400e-6), 1 / (32 * 150e-6)], check=[78.125, 10**6 / 4800], unit="tokens/s",
        within=0.02, why="A token takes the time of all blocks, and one over that time is the pace.")
