"""Three reasons to wait: for arithmetic, for memory, for the program that launches both."""
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from counters import Alive, Watching, tensors_in
from hardware import CARDS
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
        What does a card wait for while it runs a model? There are three answers. It computes, and
        waits for *arithmetic*. It moves bytes, and waits for *memory*. Or it has nothing to do, and
        waits for the program to *launch* the next operation. A remedy for one of these does nothing
        for the others. So first find out which it is, by counting FLOPs and bytes.
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
        When does an operation wait for memory? Compare two numbers. The *intensity* of an operation
        is its FLOPs divided by the bytes that it moves. The *ridge* of a card is the FLOPs that it
        can do while one byte arrives: its peak divided by its bandwidth. An operation with an
        intensity below the ridge waits for memory. One above it waits for arithmetic. For the
        {H100.name}, from its datasheet [@nvidia-h100]:
    """)
    card = H100.bfloat16, H100.bandwidth
    assert card == (PEAK, BANDWIDTH), "dense, in bfloat16"
    ridge = PEAK / BANDWIDTH  # @inspect ridge as FLOP/B
    assert 295 < ridge < 296, "FLOPs while a byte arrives"
    note(r"""
        Take a product of a matrix of $k$ rows and $n$ columns with $m$ tokens. It does $2mkn$
        FLOPs, and reads and writes $2(mk + kn + mn)$ bytes in `bfloat16`. Check this with
        `operations_of`, which does not know the formula: it lists the operations that PyTorch runs,
        with the bytes of the tensors that go in and come out. The matrix is the gate of Llama-3-8B,
        with many tokens and with one:
    """)
    k, n = matrices(LLAMA_3_8B)["gate"]  # @inspect k, n
    with torch.device("meta"):
        w: Float[Tensor, "k n"] = torch.empty(k, n).bfloat16()
        many: Float[Tensor, "m k"] = torch.empty(2048, k).bfloat16()
        gate: Float[Tensor, "m n"] = torch.empty(2048, n).bfloat16()
    products = operations_of(lambda: (many @ w, many[:1] @ w))
    weighed = [op.flops / op.moved for op in products if op.flops]  # @inspect weighed as FLOP/B
    formula = [m * k * n / (m * k + k * n + m * n) for m in (2048, 1)]
    assert weighed == formula, "by its tensors, by its lengths"
    assert weighed[0] > 4 * ridge, "many tokens wait for arithmetic"
    assert round(weighed[1], 3) == 1.0, "one token waits for weights"
    note(r"""
        So the same product waits for arithmetic with many tokens, and for memory with one: each
        weight is read once, and used once for each token. An elementwise operation is different. It
        does the same with each number, however many tokens there are, and always waits for memory:
    """)
    single = operations_of(lambda: F.silu(gate))[0]
    each = single.moved / gate.numel()  # @inspect each as B
    assert each == 4.0, "bytes for every number: one read, one written"
    note(r"""
        So the intensity bounds the utilization. Below the ridge, an operation reaches at most the
        quotient of its intensity and the ridge. Above it, it can reach the whole peak:

        [@eq:bound]: $$
        \text{MFU} \le \min\left(1,\; \frac{\text{intensity}}{\text{ridge}}\right)
        $$

        Here are five operations on the same numbers, from the lowest intensity to the highest. An
        addition or a comparison counts as one FLOP:
    """)
    table = {
        "copy": 0.0,
        "sum of two": gate.numel() / bytes_moved(lambda: gate + gate),
        "ReLU": gate.numel() / bytes_moved(lambda: gate.relu()),
        "one token's product": weighed[1],
        "product of 2048 tokens": weighed[0],
    }  # @inspect table as FLOP/B
    bound = {name: min(1, each / ridge) for name, each in table.items()}  # @inspect bound as %
    assert 0.0008 < bound["ReLU"] < 0.0009, "of the peak, at most"
    assert 0.0033 < bound["one token's product"] < 0.0035, "at most"
    assert bound["product of 2048 tokens"] == 1, "arithmetic decides"
    question("How many tokens have to go through this gate together before it waits for arithmetic?",
             answer=next(m for m in range(1, 999) if m * k * n / (m * k + k * n + m * n) > ridge),
             check=math.ceil(ridge * k * n / (k * n - ridge * (k + n))),
             unit="tokens", hint="the intensity is a little less than the number of tokens", why=r"""
                 The intensity $mkn/(mk + kn + mn)$ has to exceed the ridge. Without the bytes of
                 the tokens it would be $m$, so a few more tokens than the ridge are needed.
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


def a_block_moves_more_than_it_multiplies() -> None:
    """The operations between the products do hardly any FLOPs and move most of the bytes."""
    note(r"""
        Where does a block spend its time? `block_operations` lists all its operations for a
        sequence of `2048` tokens, with attention written out. There are three kinds: products with
        weights, the two products of attention, and everything in between. A norm counts as one
        operation, as PyTorch runs it on CUDA. For each kind, add up the FLOPs, the bytes, and the
        time at best:
    """)
    done = block_operations(2048)
    kernels = sum(op.moved > 0 for op in done)  # @measure kernels
    work = shares(by_kind(done, lambda op: op.flops))  # @inspect work as %
    bytes_ = shares(by_kind(done, lambda op: op.moved))  # @inspect bytes_ as %
    time = shares(by_kind(done, seconds_at_best))  # @inspect time as %
    assert 0.9 < work["products with weights"] < 0.97, "of the FLOPs"
    assert work["all in between"] == 0, "nothing that a counter would count"  # @zero: it has no formula for them
    assert 0.63 < bytes_["all in between"] < 0.65, "and most of the bytes"
    assert 0.39 < time["all in between"] < 0.41, "of the time at best"
    note(r"""
        Is the list right? Add up the bytes in between by hand. For each kind of tensor, multiply
        its numbers by how often such a tensor is read or written. Scores, for example, are scaled,
        masked, and go through the softmax. Each of these steps reads them and writes them:
    """)
    between = by_kind(done, lambda op: op.moved)["all in between"]  # @inspect between as B
    by_hand = between_by_hand(LLAMA_3_8B, 2048)  # @inspect by_hand as B
    near = math.isclose(between, by_hand, rel_tol=0.001)
    assert near, "by the list, by hand"
    figure(plot_shares({"FLOPs": work, "bytes": bytes_, "time at best": time}), caption=rf"""
        One block of Llama-3-8B, by kind of operation: its FLOPs, the bytes it moves, and the least
        time it needs on an {H100.name}.
    """, alt=rf"""
        Three stacked bars. In the one of FLOPs nearly all is products with weights; in the one of
        bytes most is what lies between the products; the one of time is shared between them,
        {time['all in between']:.0%} to what lies between.
    """)
    note(rf"""
        By its FLOPs, the block is a few large products. But of the time that it needs at best,
        {time['all in between']:.0%} goes to reading numbers, doing one thing to each of them, and
        writing them back.
    """)
    few = by_kind(block_operations(128), lambda op: op.moved)
    share = shares(few)["all in between"]
    products = sum(few.values()) - few["all in between"]
    by_hand = between_by_hand(LLAMA_3_8B, 128)
    question(r"""
        What share of the bytes lies between the products if the sequence has only `128` tokens?
    """, answer=round(share, 3), check=round(by_hand / (by_hand + products), 3), unit="%",
        hint="the weights are read in any case", within=0.05, why=r"""
            The weights are as heavy as before, and all that grows with the tokens has become small.
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
        Can a chain of elementwise operations run faster without computing less? Yes: read each
        number once, do all operations while it is in the processor, and write it once. This is
        *fusion*. It saves no FLOP. It saves writing and reading the tensors in between, and these
        can be counted. Here are three chains: a norm, the gate of SwiGLU, and ten additions. The
        unit is one pass over the tensor that comes out, first as PyTorch runs the chain, then
        fused:
    """)
    with torch.device("meta"):
        x, up = torch.empty(16384, 4096), torch.empty(16384, 4096)
        gain = torch.empty(4096)
    norm, gate = passes(normalized, x, gain), passes(gated, x, up)
    chain = passes(lifted, x)
    counts = [round(c, 2) for c in (*norm, *gate, *chain)]  # @inspect counts
    assert counts[:2] == [7.0, 2.0], "a norm written out, and fused"
    assert counts[2:4] == [5.0, 3.0], "the gate of SwiGLU"
    assert counts[4:] == [20.0, 2.0], "ten additions in a row"
    gains = [as_written / least for as_written, least in (norm, gate, chain)]  # @inspect gains as times
    assert gains[2] == 10.0, "a chain gains as much as it is long"
    note(r"""
        These gains are upper bounds, for tensors larger than the card's cache. The longer the
        chain, the larger the gain. A single addition gains nothing. `torch.compile` finds such
        chains and makes one kernel of each. On a GPU, PyTorch's own `F.rms_norm` is such a kernel.
    """)
    misbelief("Fusion makes models faster because it saves computation.", rf"""
        It saves none: the ten additions are still computed. They get {gains[2]:.0f} times as fast
        because the tensors in between are never written and read.
    """)
    as_written, least = passes(lambda a, b, c: a * b + c, x, up, x + 1)
    question("`a * b + c` on three tensors: how many times as fast can fusion make it at best?",
        answer=as_written / least, check=6 / 4, unit="times",
        why="Six passes become four: what the product leaves is neither written nor read again.")


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
        A fused chain of elementwise operations reads each number once. Can fused attention do so
        too? It cannot, because each query has to meet all keys before it, and the fast memory
        beside the arithmetic holds only a few of them. So a fused kernel works in *tiles*, groups
        of rows. It takes a tile of queries and loads the keys and values tile by tile. Then it
        takes the next tile of queries [@dao2022]. `in_tiles` does this, and counts the numbers that
        it loads. Its result is that of written-out attention:
    """)
    n, d = 512, 64
    q, k, v = torch.randn(3, n, d)
    tiled = in_tiles(16, q, k, v)[0]
    whole = written_attention(*(x[None, :, None] for x in (q, k, v)))
    flat = whole.flatten(0, 2)
    assert torch.allclose(tiled, flat, atol=1e-5), "the same result"
    note(r"""
        It never holds all scores at once. So how does its memory grow? Compare the most bytes that
        are alive at once for all tokens with those for half of them, written out and in tiles:
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
    assert 3.5 < memory[0] < 4, "written out: nearly four times"
    assert 1.8 < memory[1] < 2, "in tiles: twice"
    note(r"""
        And how do its loads grow? A tile has $r$ rows of a head's $c$ numbers. The fast memory
        holds four tiles, one each of queries, keys, values and results, $M$ numbers in all. $T$
        tokens make $T/r$ tiles of queries. With a causal mask, each of them loads half of all keys
        and values on average:

        [@eq:loads]: $$
        \text{loads} \approx \frac{T}{r} \cdot T c = \frac{4\,T^2 c^2}{M} \qquad\text{with } M = 4\,r\,c
        $$

        So the loads grow with the square of the text, as the bytes of written-out attention do. No
        exact attention does better [@dao2022]. Fusing makes the constant smaller, and more fast
        memory makes it smaller still:
    """)
    lengths = [128, 256, 512]

    def loads(rows: int) -> list[int]:
        return [in_tiles(rows, *torch.randn(3, t, d))[1] for t in lengths]

    small, large = loads(16), loads(32)  # @inspect small, large
    growth = small[2] / small[1]  # @inspect growth as times
    assert 3.7 < growth < 4, "twice the tokens: nearly four times the loads"
    formula = [4 * t**2 * d**2 / (4 * 16 * d) for t in lengths]
    above = [count / least for count, least in zip(small, formula)]  # @inspect above as times
    assert above[0] > above[1] > above[2] > 1, "closer, the longer"
    assert above[2] < 1.1, "of the formula, for the longest"
    fewer = small[2] / large[2]  # @inspect fewer as times
    assert 1.8 < fewer < 2, "half the loads with twice the fast memory"
    lines = {
        "written out": [bytes_moved(partial(written, t)) for t in lengths],
        "tiles of 16": [4 * count for count in small],
        "tiles of 32": [4 * count for count in large],
        "each number once": [4 * 4 * t * d for t in lengths],
    }
    again = lines["tiles of 32"][2] / lines["each number once"][2]  # @inspect again as times
    assert again == (512 / 32 + 1) / 4 + 0.25, \
        "as often as a number is loaded in these tiles"
    more = lines["written out"][2] / lines["tiles of 16"][2]  # @inspect more as times
    assert 3 < more < 3.1, "the bytes, written out"
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
        A card also has a cache between its memory and the fast memory of each processor, which
        serves a part of these loads. In the forward pass the FLOPs are the same. In the backward
        pass there are more, because the scores are computed again.
    """)
    read = [sum(tile >= key for tile in range(64)) for key in range(64)]
    question(r"""
        A kernel takes `8192` tokens in tiles of `128`, with a causal mask. How often is a key
        loaded, on average?
    """, answer=(8192 / 128 + 1) / 2, check=sum(read) / len(read), unit="times", within=0.03,
        why="The first tile of keys is loaded for every tile of queries, the last one once.")


@aside
def fusion_makes_no_product_faster() -> None:
    """Fusion makes no product faster, and for a single token products are nearly everything."""
    note(r"""
        How much can fusion speed up a whole block at most? Suppose that everything but the products
        with weights took no time, attention included. Compare the time before and after. For each
        operation, count the time at best on an H100: that of its FLOPs or that of its bytes,
        whichever is longer. `by_kind` adds these up for each kind of operation. First for `2048`
        tokens at once:
    """)
    many = by_kind(block_operations(2048), seconds_at_best)  # @inspect many as s
    gain = sum(many.values()) / many["products with weights"]  # @inspect gain as times
    assert 1.95 < gain < 2, "times as fast, and no more"
    note(r"""
        The products with weights stay. With so many tokens they wait for arithmetic, so moving
        fewer bytes does not help them. Now a single token, the first of a text:
    """)
    one = by_kind(block_operations(1), seconds_at_best)  # @inspect one as s
    alone = sum(one.values()) / one["products with weights"]  # @inspect alone as times
    assert round(alone, 3) == 1.001, "a thousandth or so"
    weights = 2 * block_weights(LLAMA_3_8B) / BANDWIDTH  # @inspect weights as s
    above = one["products with weights"] / weights  # @inspect above
    assert 1 < above < 1.001, "the time is that of reading the weights"
    misbelief("Generating waits for memory, so fusion helps it most.", rf"""
        It waits for the weights, and each weight is read only once already. All the rest, which
        fusion could save, takes a {1 / (alone - 1):,.0f}th of that time. A long text adds its cache
        to what is read, and no fusion saves that. Fewer bytes for each weight would help. Fusion
        helps a little in another way: it saves *launches*, which come next.
    """)
    few = by_kind(block_operations(64), seconds_at_best)
    heavy = by_kind(block_operations(64), lambda op: op.moved)
    by_bytes = sum(heavy.values()) / heavy["products with weights"]
    question("And with `64` tokens at once: how many times as fast can the block become at best?",
        answer=sum(few.values()) / few["products with weights"], check=by_bytes, unit="times", within=0.03, why=r"""
            The weights are still read once, which takes as long as before. All else grows with the
            tokens, from a thousandth for one.
        """)


def even_one_number_takes_microseconds() -> None:
    """Adding to a thousand numbers takes hardly longer than adding to one."""
    note(r"""
        How long does the smallest operation take? To add one to a single number, PyTorch looks up
        device, dtype and shape, makes a tensor for the result, and asks whether gradients are
        wanted. Then it adds. With more numbers only the adding takes longer. The times on this
        machine, for one number up to a million:
    """)
    sizes = [2**p for p in (0, 5, 10, 15, 20)]
    given = [torch.zeros(size) for size in sizes]
    seconds = [quickest(partial(torch.add, x, 1)) for x in given]  # @measure seconds as s
    small, large = seconds[2] / seconds[0], seconds[4] / seconds[2]  # @measure small, large as times
    assert small < SLACK, "a thousand numbers take hardly longer than one"
    assert large > SLACK, "a million take much longer than a thousand"
    figure(plot_lines(sizes, {"one addition": [s / MICRO for s in seconds]}, "numbers", "µs", log=True),
           caption="Time of one call against the numbers it adds to, on the machine that built this page.",
           alt="A line that is level up to some thousand numbers and then rises.")
    note(r"""
        The level part of the line is *overhead*, the time of the call itself. It is spent by the
        program, so a faster card does not make it shorter. With a GPU, the program can launch
        operations ahead while the card still works on earlier ones. Then the overhead is hidden, as
        long as the card has enough to do.
    """)
    question(r"""
        A call costs `5` µs of overhead, and a card adds at `3.35` TB/s, reading and writing `2`
        bytes for each number. How many numbers take as long as the call?
    """, answer=5e-6 * 3.35e12 / (2 + 2), check=LAUNCH / (4 / BANDWIDTH), unit="numbers", within=0.1,
        why="Anything smaller costs the same, however fast the card.")


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
        How long does a block take at best? Within an operation, a card computes while the next
        bytes arrive. So an operation takes the time of its FLOPs or that of its bytes, whichever is
        longer. The card starts an operation when the one before it has ended. So the times of all
        operations add up. Meanwhile the program launches the next operations. Launching all takes
        the number of operations times the time of one launch. For a GPU, assume
        {LAUNCH / MICRO:.0f} µs. With $n$ operations, of which operation $i$ does $F_i$ FLOPs and
        moves $Q_i$ bytes:

        [@eq:block-time]: $$
        \text{{time}} = \max\left(n \cdot \text{{launch}},\;
        \sum_i \max\left(\frac{{F_i}}{{\text{{peak}}}},
        \frac{{Q_i}}{{\text{{bandwidth}}}}\right)\right)
        $$

        `waits` splits the sum by what each operation waits for:
    """)
    lengths = [1, 8, 64, 512, 4096]
    times = [waits(t) for t in lengths]  # @inspect times
    longer = [t.launches > t.card for t in times]  # @inspect longer
    assert longer == [True] * 3 + [False] * 2, "few tokens wait for launches"
    work = [t.arithmetic / t.card for t in times]  # @inspect work as %
    assert work[:3] == [0.0] * 3, "of the rest, all is memory's"
    assert 0.69 < work[3] < 0.71, "at 512 tokens most is arithmetic's"
    assert 0.36 < work[4] < 0.38, "at 4096 the scores have outgrown it"
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
    misbelief("Computing and moving bytes overlap, so the larger of the two totals is the time.", r"""
        They overlap within an operation only. While the softmax reads and writes its scores, no
        product runs. So add up the longer time of each operation:
    """)
    done = block_operations(512)
    work_alone = sum(op.flops for op in done) / PEAK
    moving = sum(op.moved for op in done) / BANDWIDTH
    more = times[3].card / max(work_alone, moving)  # @inspect more as times
    assert 1.27 < more < 1.29, "in turn, against the larger total"
    note("How can one tell on a card what a block waits for? Change something and see what happens to the time. Half the tokens, and half the width:")
    half = replace(LLAMA_3_8B, width=2048, heads=16, kv_heads=4, hidden=7168)
    usual, fewer, narrow = waits(64), waits(32), waits(64, half)
    same = fewer.launches / usual.launches, fewer.card / usual.card  # @inspect same as times
    assert same[0] == 1, "half the tokens: as many launches"
    assert 0.95 < same[1] < 1, "and nearly as long, since it waits for weights"
    apart = narrow.launches / usual.launches, narrow.card / usual.card  # @inspect apart as times
    assert apart[0] == 1, "half the width: as many launches"
    assert 0.25 < apart[1] < 0.28, "but a quarter of the weights"
    note(r"""
        With half the tokens, a block takes nearly as long if it waits for launches, and also if it
        waits for weights. So that test cannot tell the two apart. Two others can. A *CUDA graph*
        launches all operations at once, so only a block that waits for launches gets faster in it.
        And at half the width, only such a block does not get faster.

        | it waits for | you see | remedy |
        |---|---|---|
        | launches | faster in a graph; half the width takes as long | CUDA graph, compiler, larger batch |
        | memory | no faster in a graph; more FLOPs on the same bytes are free | fusion, narrower numbers, larger batch |
        | arithmetic | no faster in a graph; near the peak of its format | faster format, more cards, fewer FLOPs |
    """)
    listed = by_kind(block_operations(4096), seconds_at_best)
    question(r"""
        Suppose that only the products with weights took any time. How many µs does the block then
        need for `4096` tokens on this card, at best? It has `218103808` weights in matrices.
    """, answer=2 * 4096 * 218103808 / PEAK / MICRO, check=listed["products with weights"] / MICRO,
        unit="µs", within=0.05,
        why="With so many tokens each weight is used often enough: the products wait for arithmetic.")


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
        PyTorch usually runs *eager*: it launches each operation when it meets it. `torch.compile`
        fuses chains between the products. A *CUDA graph* records all launches and hands them over
        at once, and what runs is the same. So compiling should help where a block waits for memory,
        and a graph where it waits for launches. The same block with a single token and with two
        thousand:
    """)
    few, _ = three_ways(1)  # @measure few
    many, results = three_ways(2048)  # @measure many
    apart = results["eager"] - results["compiled"]
    off = (apart.float().norm() / results["eager"].float().norm()).item()  # @measure off
    assert off < torch.finfo(torch.bfloat16).eps, "compiled, the same results"
    gain = few["eager"].seconds / few["graph"].seconds  # @measure gain as times
    assert 1 < gain, "one token: a graph helps"
    same = many["eager"].seconds / many["graph"].seconds  # @measure same as times
    assert same < gain, "many tokens: it has less to hide"
    rows = "\n".join(
        f"| {way} | {t.seconds / MICRO:.0f} | {many[way].seconds / MICRO:.0f} |"
        for way, t in few.items()
    )
    note(f"{few['eager'].device}, in µs:")
    note(f"| how | a single token | two thousand |\n|---|---|---|\n{rows}")
    question(r"""
        Eager, a block takes `400` µs for a token; in a graph, `150` µs. At `32` blocks, how many
        tokens a second does each give?
    """, answer=[1 / (32 * 400e-6), 1 / (32 * 150e-6)], check=[78.125, 10**6 / 4800], unit="tokens/s",
        why="One over the time of all blocks.")
