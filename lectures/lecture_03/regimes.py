"""Three reasons to wait: for arithmetic, for memory, for the program that launches both."""
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from counters import Watching, tensors_in
from hardware import CARDS
from jaxtyping import Float
from timing import Timing, one_thread, time_call, time_graph
from torch import Tensor
from torch.utils.flop_counter import flop_registry
from units import MICRO

from litbook import aside, figure, misbelief, note, question, requires

from .block import Block, fused_attention, turns, written_attention
from .counts import block_weights, matrices
from .figures import plot_lines, plot_shares
from .published import LLAMA_3_8B

H100 = CARDS["H100 SXM"]
PEAK, BANDWIDTH = 1979e12 / 2, H100.bandwidth  # dense bfloat16; held against the card in the first section
LAUNCH = 5e-6  # seconds, assumed: what handing one operation to a GPU costs


def three_regimes() -> None:
    """Three regimes."""
    note(r"""
        A slow model is slow for one of three reasons: it computes, it moves bytes, or it waits to
        be told what to do next. What helps against one does nothing for the others: a faster
        multiplier still waits for memory, and faster memory for a program that is slow to say what
        comes next. So first find out which it is. That takes counting, not a profiler.
    """)
    every_operation_has_an_intensity()
    a_block_moves_more_than_it_multiplies()
    fusion_saves_the_bytes_between_operations()
    fusion_changes_how_attention_grows()
    fusion_makes_no_product_faster()
    even_one_number_takes_microseconds()
    the_largest_of_three_times_decides()
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


class Traffic(Watching):
    """Inside, notes every operation with the bytes of the tensors that go in and come out.

    A view moves nothing. An embedding reads the rows that are looked up, not its table.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[Operation] = []

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        given, results = tensors_in((args, kwargs)), tensors_in(made)
        looks_up = operation is torch.ops.aten.embedding.default
        if looks_up:
            given = [given[1], *results]
        work = flop_registry.get(operation._overloadpacket)
        spent = work(*args, **kwargs, out_val=made) if work else 0
        changes = looks_up or operation._schema.is_mutable
        if not changes and shares_memory(given, results):
            given, results = [], []
        name = operation._overloadpacket.__name__
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
    """An operation waits for memory unless it does enough with each byte."""
    note(rf"""
        When does an operation wait for memory? *Intensity* is FLOPs per byte moved. A card has such
        a number, too: the FLOPs that it could do while one byte arrives. An operation below it
        waits for memory, one above it for arithmetic. For the {H100.name}, from its
        datasheet [@nvidia-h100]:
    """)
    card = H100.bfloat16, H100.bandwidth
    assert card == (PEAK, BANDWIDTH), "dense, in bfloat16"
    ridge = PEAK / BANDWIDTH  # @inspect ridge as FLOP/B
    assert 295 < ridge < 296, "FLOPs while a byte arrives"
    note(r"""
        A product that turns $m$ tokens of $k$ numbers into $n$ each should do $2mkn$ FLOPs on
        $2(mk + kn + mn)$ bytes in `bfloat16`. `operations_of` was not told so: it lists what
        PyTorch carries out, and weighs the tensors that go in and come out. The gate of Llama-3-8B,
        for many tokens and for one:
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
        So it is not the operation that is fast or slow, but the operation on so many tokens. An
        elementwise one is different: it is the same for a token as for a million, and it waits on
        any card that adds faster than it reads.
    """)
    single = operations_of(lambda: F.silu(gate))[0]
    each = single.moved / gate.numel()  # @inspect each as B
    assert each == 4.0, "bytes for every number: one read, one written"
    question("How many tokens have to go through this gate together before arithmetic is the wait?",
             answer=next(m for m in range(1, 999) if m * k * n / (m * k + k * n + m * n) > ridge),
             unit="tokens", hint="the intensity is a little less than the number of tokens")


def shares(parts: Mapping[str, float]) -> dict[str, float]:
    """Each part as a share of all."""
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()}


def block_operations(tokens: int) -> list[Operation]:
    """What one block of Llama-3-8B does with `tokens` tokens in bfloat16, attention written out."""
    with torch.device("meta"):
        block = Block(LLAMA_3_8B, "written").bfloat16()
        x = torch.empty(1, tokens, LLAMA_3_8B.width, dtype=torch.bfloat16)
        turn = turns(LLAMA_3_8B.head, tokens, like=x)
    return operations_of(lambda: block(x, turn))


def seconds_at_best(op: Operation) -> float:
    """Seconds on the H100 with perfect use of its arithmetic or of its memory, whichever takes longer."""
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


def a_block_moves_more_than_it_multiplies() -> None:
    """The operations between the products do no work to speak of and move most of the bytes."""
    note(r"""
        What takes a block its time? List all that it does with a sequence of `2048` tokens,
        attention written out, one operation after the other as PyTorch runs it. There are three
        kinds: products with weights, products of attention, and everything in between.
    """)
    done = block_operations(2048)
    kernels = sum(op.moved > 0 for op in done)  # @measure kernels
    work = shares(by_kind(done, lambda op: op.flops))  # @inspect work as %
    bytes_ = shares(by_kind(done, lambda op: op.moved))  # @inspect bytes_ as %
    time = shares(by_kind(done, seconds_at_best))  # @inspect time as %
    assert 0.9 < work["products with weights"] < 0.97, "of the FLOPs"
    assert work["all in between"] == 0, "nothing that a counter would count"  # @zero
    assert 0.65 < bytes_["all in between"] < 0.75, "and most of the bytes"
    figure(plot_shares({"FLOPs": work, "bytes": bytes_, "time at best": time}), caption=rf"""
        One block of Llama-3-8B, by kind of operation: its FLOPs, the bytes it moves, and the least
        time it needs on an {H100.name}.
    """, alt=rf"""
        Three stacked bars. In the one of FLOPs nearly all is products with weights; in the one of
        bytes most is what lies between the products; the one of time is shared between them,
        {time['all in between']:.0%} to what lies between.
    """)
    note(rf"""
        On paper the block is a few large products. On the clock {time['all in between']:.0%} of its
        time goes to reading numbers, doing one thing to each, and writing them back.
    """)
    question("What share of the bytes lies between the products if the sequence has only `128` tokens?",
             answer=shares(by_kind(block_operations(128), lambda op: op.moved))["all in between"], unit="%", hint="the weights are read in any case")


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
        What can be saved where nothing is computed less? *Fusing* operations means to read a number
        once, do everything to it while it is in a register, and write it once. No FLOP is saved.
        What is saved are the tensors in between, and they can be counted beforehand. In passes over
        one tensor, for `normalized`, `gated` and ten additions:
    """)
    with torch.device("meta"):
        x, up = torch.empty(2048, 4096), torch.empty(2048, 4096)
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
        A gain of so many times is the most that can be had, where memory is the wait. The longer
        the chain, the larger it is; a single addition has nothing to gain. `torch.compile` finds
        such chains and writes one kernel for each. PyTorch's own `F.rms_norm` is one on a GPU.
    """)
    misbelief("Fusion makes models faster because it saves computation.", rf"""
        The ten additions are ten additions, fused or not. They get {gains[2]:.0f} times as fast
        because nine tensors are never written.
    """)
    as_written, least = passes(lambda a, b, c: a * b + c, x, up, x + 1)
    question("`a * b + c` on three tensors: how many times as fast can fusion make it at best?",
        answer=as_written / least, unit="times",
        why="Six passes become four: what the product leaves is neither written nor read again.")


def attention_bytes(how: Callable[..., Tensor], tokens: int) -> int:
    """Bytes that attention moves for one sequence: eight heads of sixteen numbers, in float32."""
    q, k, v = (torch.randn(1, tokens, 8, 16) for _ in range(3))
    return bytes_moved(lambda: how(q, k, v))


@aside
def fusion_changes_how_attention_grows() -> None:
    """Only in attention does fusion change the law of growth."""
    note(r"""
        A fused chain of elementwise operations moves fewer bytes, but twice the tokens are still
        twice the bytes. Attention is the exception. Written out, it makes scores for every pair of
        tokens and passes over them again and again. Fused, it never puts one into memory
        [@dao2022]; queries, keys, values and results are all that moves:
    """)
    lengths = [128, 256, 512, 1024]
    apart = [attention_bytes(written_attention, t) for t in lengths]  # @inspect apart as B
    fused = [attention_bytes(fused_attention, t) for t in lengths]  # @inspect fused as B
    assert fused[3] == 2 * fused[2], "fused, they grow with the tokens"
    growth = apart[3] / apart[2]  # @inspect growth as times
    assert 3.8 < growth < 4, "written out, nearly four times"
    least = 4 * 1024 * 8 * 16 * 4
    statistics = fused[3] - least  # @inspect statistics as B
    assert statistics == 4 * 8 * 1024, "and a number for each token and head"
    figure(plot_lines(lengths, {"written out": apart, "fused": fused}, "tokens", "bytes moved", log=True),
        caption="Bytes that attention moves, by the tensors that go in and out of its operations.",
        alt=r"""
            Two lines against the number of tokens, both axes logarithmic. The one for written-out
            attention lies far higher and rises twice as steeply as the fused one.
        """)
    note(r"""
        The FLOPs are the same, or a few more: what left memory is computed again when the backward
        pass wants it. It pays nevertheless. With arithmetic so much cheaper than traffic, computing
        twice is the better bargain.
    """)
    question("At `1024` tokens, how many times as many bytes does the written-out form move?",
             answer=apart[3] / fused[3], unit="times")


@aside
def fusion_makes_no_product_faster() -> None:
    """Fusion makes no product faster, and a token alone is all products."""
    note(r"""
        How much can fusion give a whole block, at the very best? Let everything between the
        products with weights vanish, attention included, and compare the time before and after. It
        is the time at best on an H100, of computing or of reading and writing, whichever is longer;
        `by_kind` adds it up in three groups. First `2048` tokens at once:
    """)
    many = by_kind(block_operations(2048), seconds_at_best)  # @inspect many as s
    gain = sum(many.values()) / many["products with weights"]  # @inspect gain as times
    assert 2.1 < gain < 2.4, "more cannot be had"
    note(r"""
        The products with weights stay. They wait for arithmetic, not for memory, and moving fewer
        bytes around them leaves that as it was. Now a single token, the first of a text:
    """)
    one = by_kind(block_operations(1), seconds_at_best)  # @inspect one as s
    alone = sum(one.values()) / one["products with weights"]  # @inspect alone as times
    assert round(alone, 3) == 1.001, "a thousandth or so"
    weights = 2 * block_weights(LLAMA_3_8B) / BANDWIDTH  # @inspect weights as s
    above = one["products with weights"] / weights  # @inspect above
    assert above < 1.001, "the time is that of reading the weights"
    misbelief("Generating waits for memory, so fusion helps it most.", rf"""
        What it waits for are the weights, and each is read once already. All the rest, which fusion
        might let vanish, takes a {1 / (alone - 1):,.0f}th of that time. A long text adds its cache
        to what is read, and no fusion spares that. Fewer bytes per weight would help; and fusion
        does, but by saving *launches*, which come next.
    """)
    few = by_kind(block_operations(64), seconds_at_best)
    question("And with `64` tokens at once: how many times as fast can the block become at best?",
        answer=sum(few.values()) / few["products with weights"], unit="times", within=0.03, why=r"""
            The weights are still read once, which takes as long as before. All else grows with the
            tokens, from a thousandth and a half for one.
        """)


def quickest(call: Callable[[], object]) -> float:  # @stepover
    """Seconds of a call on one thread, the least of several medians: what else the machine does only adds."""
    with torch.no_grad(), one_thread():
        timed = [time_call(call, repeats=5, patience=6) for _ in range(4)]
    return min(timing.seconds for timing in timed)


def even_one_number_takes_microseconds() -> None:
    """A thousand numbers take hardly longer than one."""
    note(r"""
        How long does the smallest call take? Add one to a single number, and PyTorch looks up the
        device, the dtype and the shape, makes a tensor for the result, decides whether gradients
        are wanted, and then adds. With more numbers only the adding gets longer. Time on this
        machine:
    """)
    sizes = [2**p for p in (0, 5, 10, 15, 20)]
    given = [torch.zeros(size) for size in sizes]
    seconds = [quickest(partial(torch.add, x, 1)) for x in given]  # @measure seconds as s
    small, large = seconds[2] / seconds[0], seconds[4] / seconds[2]  # @measure small, large as times
    assert small < large, "a thousand times the numbers, twice"
    figure(plot_lines(sizes, {"one addition": [s / MICRO for s in seconds]}, "numbers", "µs", log=True),
           caption="Time of one call against the numbers it adds to, on the machine that built this page.",
           alt="A line that is level up to some thousand numbers and then rises.")
    note(r"""
        The level part of the line is *overhead*: the price of the call. It belongs to the program
        that says what is to be done, so a faster card does not lower it. On a GPU the program runs
        ahead and the overhead hides behind the work, as long as there is work to hide behind.
    """)
    question(r"""
        A call costs `5` µs of overhead, and a card adds at `3.35` TB/s, reading and writing `2`
        bytes for each number. How many numbers take as long as the call?
    """, answer=5e-6 * 3.35e12 / (2 + 2), unit="numbers", within=0.1,
        why="Anything smaller costs the same, however fast the card.")


def three_times(tokens: int) -> tuple[float, float, float]:
    """Seconds that a block on an H100 needs for its arithmetic, for its bytes, and for its launches."""
    done = block_operations(tokens)
    work = sum(op.flops for op in done) / PEAK
    traffic = sum(op.moved for op in done) / BANDWIDTH
    return work, traffic, LAUNCH * sum(op.moved > 0 for op in done)


def the_largest_of_three_times_decides() -> None:
    """Count FLOPs, bytes and launches; the longest of three times names the remedy."""
    note(r"""
        Everything is counted now. Arithmetic takes FLOPs over peak, memory takes bytes over
        bandwidth, launching takes operations times the price of one; for a GPU, assume `5e-6` s.
        All three run at once, so the longest one is what is seen:
    """)
    assert LAUNCH == 5e-6, "assumed, for each operation"
    lengths = [1, 8, 64, 512, 4096]
    times = [three_times(t) for t in lengths]  # @inspect times as s
    names = "arithmetic", "memory", "launches"
    longest = [names[t.index(max(t))] for t in times]  # @inspect longest
    assert longest == ["launches"] * 3 + ["memory"] * 2, "as it is written"
    work, traffic, launches = ([t[i] / MICRO for t in times] for i in range(3))
    figure(plot_lines(lengths, {"arithmetic": work, "memory": traffic, "launches": launches},
                      "tokens", "µs", log=True),
        caption=rf"""
            A block of Llama-3-8B on an {H100.name}, attention written out: arithmetic, memory and
            launches against the number of tokens.
        """, alt=r"""
            Three curves against tokens. Launches are level and highest for few tokens; memory is
            level at first and rises from some hundred tokens on; arithmetic rises throughout and
            stays below memory.
        """)
    note(r"""
        Written out, the block never waits for arithmetic, the one thing that was paid for: as the
        sequence grows, the scores to move grow faster. How to tell the three apart, and what helps:

        | it waits for | you see | remedy |
        |---|---|---|
        | launches | half the batch takes as long | CUDA graph, compiler, larger batch |
        | memory | more FLOPs on the same bytes are free | fusion, narrower numbers, larger batch |
        | arithmetic | near the peak of its format | faster format, more cards, fewer FLOPs |
    """)
    question(r"""
        With attention and everything else fused away, products of weights remain. How many µs does
        the block then need for `4096` tokens on this card, at best?
    """, answer=by_kind(block_operations(4096), seconds_at_best)["products with weights"] / MICRO,
        unit="µs", within=0.05)


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
        PyTorch as it comes is *eager*: it launches each operation when it meets it. `torch.compile`
        fuses chains between the products. A *CUDA graph* records all launches and hands them over
        at once; it changes nothing that runs. So the first should help where memory is the wait,
        the second where launching is. The same block with a single token and with two thousand:
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
    """, answer=[1 / (32 * 400e-6), 1 / (32 * 150e-6)], unit="tokens/s")
