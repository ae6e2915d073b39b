"""Three reasons to wait: for arithmetic, for memory, for the program that launches both."""
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from counters import Watching, tensors_in
from hardware import CARDS, find
from jaxtyping import Float
from timing import Timing, time_call, time_graph
from torch import Tensor
from torch.utils.flop_counter import flop_registry
from units import MICRO
from plots import curves

from litbook import aside, explore, figure, misbelief, note, question, requires

from .block import Block, RMSNorm, turns
from .counts import Config, block_weights, matrices
from .figures import plot_lanes
from .published import LLAMA_3_8B

H100 = CARDS["H100 SXM"]
PEAK, BANDWIDTH = 989.5e12, 3.35e12  # of an H100: FLOP/s in bfloat16, bytes/s
LAUNCH = 5e-6  # seconds to hand one operation to a GPU, assumed


def three_regimes() -> None:
    """Three regimes."""
    note(r"""
        What limits the speed of a GPU while it runs a model? There are three answers. Either the
        GPU computes all the time: it is *compute-bound*. Or its arithmetic units wait for bytes
        from memory: it is *memory-bound*. Or it has nothing to do until the program launches the
        next operation: it is *launch-bound*. A fix for one of these does nothing for the others, so
        first find out which one applies, by counting FLOPs and bytes.
    """)
    every_operation_has_an_intensity()
    fusion_saves_the_bytes_between_operations()
    operations_run_in_turn()
    a_block_has_three_regimes()
    one_change_shows_the_limit()
    eager_compiled_and_in_a_graph()


# --- what is moved


class Operation(NamedTuple):
    """One operation that PyTorch ran: its name, its FLOPs, and the bytes it read and wrote."""

    name: str
    flops: int
    read: int
    written: int

    @property
    def moved(self) -> int:
        """Bytes read and written together."""
        return self.read + self.written


OVERWRITES = "copy_", "fill_", "zero_"  # operations that read nothing of the tensor that they change


class Traffic(Watching):
    """While it is active, lists every operation that PyTorch runs, with its FLOPs and the bytes that it moves.

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
    """Bytes of these tensors in memory; an expanded tensor counts only with the memory behind it."""
    return sum(min(t.nbytes, t.untyped_storage().nbytes()) for t in tensors)


def operations_of(call: Callable[[], object]) -> list[Operation]:  # @stepover
    """Runs a function without arguments; returns its operations, each with its FLOPs and the bytes read and written."""
    with torch.no_grad(), Traffic() as traffic:
        call()
    return traffic.operations


def bytes_moved(call: Callable[[], object]) -> int:  # @stepover
    """Runs a function without arguments; returns the bytes that all its operations read and write."""
    return sum(op.moved for op in operations_of(call))


# --- sections


def every_operation_has_an_intensity() -> None:
    """An operation is memory-bound unless it does enough FLOPs per byte."""
    note(rf"""
        When is an operation on a GPU limited by memory, and when by arithmetic? Both go on at the
        same time: while the GPU computes, it fetches the next bytes from its memory.

        Suppose a GPU can do $200$ FLOPs while one byte arrives.

        - An operation with $100$ FLOPs per byte has done them in half of this time, and then waits
          for the next byte. It is *memory-bound*.
        - An operation with $400$ FLOPs per byte never waits, because the next byte arrives before
          the FLOPs are done. It is *compute-bound*.

        The FLOPs per byte of an operation are its *arithmetic intensity*. The FLOPs that a GPU can
        do while one byte arrives are its *ridge*: its peak divided by its memory bandwidth. So an
        operation is compute-bound if its intensity is above the ridge, and memory-bound if it is
        below.

        The {H100.name} has a peak of {PEAK / 1e12:.1f} TFLOP/s in `bfloat16` and a bandwidth of
        {BANDWIDTH / 1e12:.2f} TB/s [@nvidia-h100]:
    """)
    card = H100.bfloat16, H100.bandwidth  # @hide
    assert card == (PEAK, BANDWIDTH) == (989.5e12, 3.35e12), \
        "Peak and bandwidth are those of the datasheet, for dense matrices."  # @hide
    ridge = 989.5e12 / 3.35e12  # @inspect round(ridge) as FLOP/B
    assert 295 < ridge < 296, \
        "While a byte arrives, an H100 can do 295 FLOPs."  # @hide
    note(r"""
        Now the intensity of a matmul of tokens and a matrix of weights. In `bfloat16` a weight has
        `2` bytes. For each token it costs `2` FLOPs, a multiplication and an addition. By hand, and
        counting only the bytes of the weights:

        - With $1$ token, each weight costs $2$ FLOPs for its $2$ bytes: $1$ FLOP per byte.
        - With $10$ tokens, each weight costs $20$ FLOPs for the same $2$ bytes: $10$ FLOPs per
          byte.

        So as long as nearly all bytes are weights, the intensity is about the number of tokens,
        because each weight is read once and used for every token. With many tokens it is below
        their number, because the tokens are also read and the results are written. For $m$ tokens
        of $k$ elements, and a matrix of $k$ rows and $n$ columns, it is

        $$
        \frac{\text{FLOPs}}{\text{bytes}} =
        \frac{2mkn}{2(\underbrace{mk}_{\text{tokens}} + \underbrace{kn}_{\text{weights}}
        + \underbrace{mn}_{\text{results}})}.
        $$

        Take a matrix of Llama-3-8B with $k = 4096$ and $n = 14336$:
    """)

    def intensity(m: int) -> float:
        k, n = 4096, 14336
        return 2 * m * k * n / (2 * (m * k + k * n + m * n))

    one, many = intensity(1), intensity(2048)  # @inspect round(one) as FLOP/B, round(many) as FLOP/B
    assert one < ridge, \
        "With 1 token, the matmul is memory-bound."
    assert many > ridge, \
        "With 2048 tokens, the matmul is compute-bound."
    k, n = matrices(LLAMA_3_8B)["gate"]  # @hide
    assert (k, n) == (4096, 14336), \
        "The gate of Llama-3-8B has these rows and columns."  # @hide
    with torch.device("meta"):  # @hide
        matrix: Float[Tensor, "k n"] = torch.empty(k, n).bfloat16()
        tokens: Float[Tensor, "m k"] = torch.empty(2048, k).bfloat16()
    products = operations_of(lambda: (tokens @ matrix, tokens[:1] @ matrix))  # @hide
    counted = [op.flops / op.moved for op in products if op.flops]  # @hide
    assert counted == [many, one], \
        "The tensors give the same intensity as the formula."  # @hide
    assert [round(x) for x in (many, one)] == [1247, 1], \
        "To a whole number, the intensities are 1247 and 1."  # @hide
    counts = range(1, 2049)  # @hide
    figure(curves({"the ridge": (counts, [ridge for _ in counts]), "the matmul": (counts, [*map(intensity, counts)])},
                  "tokens", "FLOPs per byte"),
        caption="FLOPs per byte of the matmul, and the H100's ridge. Where the curve is below the ridge, the matmul is memory-bound.",
        alt="A curve that rises from one, crosses a level line, and flattens.")
    note(rf"""
        A model that generates for one user processes `1` token at a time: {one:.0f} FLOP per byte,
        where the H100 could do {ridge:.0f}. So the GPU's arithmetic units are idle nearly all the
        time. For matmuls with weights, processing the tokens of many users together fixes that.
    """)
    question(r"""
        A GPU can do `300` FLOPs while one byte arrives. The weights of a matrix are now stored in
        `1` byte each instead of `2`, and the GPU computes as fast as before. Count only the bytes
        of the weights. At how many tokens does the intensity of the matmul reach the ridge?
    """, answer=300 * 1 / 2, check=next(m for m in range(1, 999) if 2 * m / 1 >= 300), unit="tokens", within=0.02,
        wrong={
            "That is with weights of 2 bytes.": 300,
            "Fewer bytes make the intensity higher, so fewer tokens are enough.": 600,
        }, hint="How many FLOPs per byte does one token bring now?",
        why="Each token brings `2` FLOPs for the `1` byte of a weight. So `150` tokens bring `300` FLOPs per byte.")


def shares(parts: Mapping[str, float]) -> dict[str, float]:
    """Divides each part by the sum of all parts."""
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()}


@torch.library.custom_op("lecture_03::rms_norm", mutates_args=())
def norm_kernel(x: Tensor, gain: Tensor) -> Tensor:  # @stepover
    """RMSNorm as a single operation, as on a GPU: reads `x` and the gains once, and writes the result once."""
    return F.rms_norm(x, gain.shape, gain)


norm_kernel.register_fake(lambda x, gain: torch.empty_like(x))


class KernelNorm(RMSNorm):
    """The layer that runs `norm_kernel`, so that a counter sees one operation on any device."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = norm_kernel(x, self.gain)
        return y


def block_operations(
    tokens: int, config: Config = LLAMA_3_8B
) -> list[Operation]:
    """The operations of one block in bfloat16, with unfused attention; `tokens`: how many tokens it processes."""
    with torch.device("meta"):
        block = Block(config, "written")
        block.before_attention = KernelNorm(config.width)
        block.before_feed_forward = KernelNorm(config.width)
        block.bfloat16()
        x = torch.empty(1, tokens, config.width, dtype=torch.bfloat16)
        turn = turns(config.head, tokens, like=x)
    return operations_of(lambda: block(x, turn))


def seconds_at_best(op: Operation) -> float:
    """Seconds that an operation takes on an H100 at best: the time of its FLOPs or the time of its bytes, whichever is longer.

    It is assumed that nothing stays in the GPU's cache from one operation to the next.
    """
    return max(op.flops / PEAK, op.moved / BANDWIDTH)


KINDS = {"mm": "matmuls with weights", "bmm": "matmuls in attention"}


def by_kind(
    operations: Sequence[Operation], price: Callable[[Operation], float]
) -> dict[str, float]:
    """Adds up what `price` gives for each operation (FLOPs, bytes or seconds), separately for three kinds of operation."""
    sums = dict.fromkeys([*KINDS.values(), "all in between"], 0.0)
    for op in operations:
        sums[KINDS.get(op.name, "all in between")] += price(op)
    return sums


def between_by_hand(config: Config, tokens: int) -> int:  # @hide
    """Bytes that move between the matmuls of a block in bfloat16; gains and angles are left out, as few."""
    d, kv = tokens * config.width, tokens * config.kv_width
    h, pairs = tokens * config.hidden, tokens**2
    numbers = (2 + 2 + 2) * config.heads * pairs  # scores
    numbers += (1 + 2 + 1) * pairs    # the mask: filled, cut, added
    numbers += 9 * d + 9 * kv         # queries and keys, turned
    numbers += 2 * d + 2 * d          # queries and results, put in order
    numbers += 2 * 2 * d + 2 * 3 * d  # two norms, two additions
    numbers += (2 + 3) * h            # SiLU, and its product with up
    return 2 * numbers


def normalized(x: Tensor, gain: Tensor) -> Tensor:
    """RMSNorm of `x` in separate operations; the result has the shape of `x`."""
    return x * (x.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt() * gain


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """`F.silu(gate) * up`: two elementwise operations, as in SwiGLU."""
    return F.silu(gate) * up


def lifted(x: Tensor) -> Tensor:
    """`x + 10`, computed in ten additions in a row."""
    for _ in range(10):
        x = x + 1
    return x


def passes(call: Callable[..., Tensor], *given: Tensor) -> tuple[float, float]:
    """Bytes that a function moves, divided by the bytes of its result: as PyTorch runs it, and if it were fused."""
    made = call(*given)
    least = bytes_of([*given, made])
    return bytes_moved(partial(call, *given)) / made.nbytes, least / made.nbytes


def fusion_saves_the_bytes_between_operations() -> None:
    """Fusion removes what one operation writes and the next one reads again."""
    note(r"""
        Can a chain of operations run faster without computing less? Take two operations from the
        feed-forward part of Llama, `F.silu(gate) * up`. Both are *elementwise*: they do the same to
        each element of a tensor. Reading or writing a whole tensor once is a *pass* over memory.
        PyTorch runs the two operations one after another:

        | operation | reads | writes | passes |
        |---|---|---|---|
        | SiLU | `gate` | its result | `2` |
        | multiplication | that result, `up` | the product | `3` |

        A single *kernel*, a program that runs on the GPU, can do both. For each element it reads
        `gate` and `up`, applies both operations, and writes the product. For the whole tensors that
        is two reads and one write: $3$ passes instead of $2 + 3 = 5$. Joining operations like this
        is called *fusion*. It saves passes because the result of the first operation is never
        written to memory and never read back.

        `passes` adds up the bytes that each operation reads and writes, and divides them by the
        bytes of one tensor. Its two results are the passes without fusion and with it:
    """)
    with torch.device("meta"):  # @hide
        gate, up = torch.empty(16384, 4096), torch.empty(16384, 4096)
    assert gate.nbytes == 2**28 > 50e6, \
        "Each tensor takes 256 MiB, more than the 50 MB of an H100's cache."  # @hide
    separate, fused = passes(gated, gate, up)  # @hide
    assert (separate, fused) == (5.0, 3.0), \
        "The gate needs 5 passes, and 3 if it is fused."  # @hide

    def silu_times_up(gate: Tensor, up: Tensor) -> Tensor:
        return F.silu(gate) * up

    counted = passes(silu_times_up, gate, up)  # @inspect counted
    assert counted == (5.0, 3.0), \
        "The two operations need 5 passes, and 3 if they are fused."
    note(rf"""
        Both do the same FLOPs. But an elementwise operation does far fewer FLOPs per byte than the
        GPU could do while one byte arrives, so it is memory-bound: its time is the time to move its
        bytes. With `3` passes instead of `5` it is up to `5 / 3` times as fast,
        {separate / fused:.2f} times. A longer chain gains more:
    """)

    def ten_additions(x: Tensor) -> Tensor:
        for _ in range(10):
            x = x + 1
        return x

    chain = passes(ten_additions, gate)  # @inspect chain
    assert chain == (20.0, 2.0), \
        "Ten additions need 20 passes, and 2 if they are fused."
    assert passes(lifted, gate) == chain, \
        "`lifted` does the same ten additions."  # @hide
    gain_of_norm = passes(normalized, gate, gate[0])  # @hide
    assert [round(count, 2) for count in gain_of_norm] == [7.0, 2.0], \
        "A norm takes 7 passes, and 2 if it is fused."  # @hide
    misbelief("Fusion makes models faster because it saves computation.", r"""
        Fusion saves no computation: all ten additions are still done. They can be up to `20 / 2`
        times as fast, because the intermediate tensors are neither written nor read.
    """)
    note("In practice, `torch.compile` finds such chains in a model, and can turn a chain into a single kernel.")
    in_two, in_one = passes(lambda a, b, c: a * b + c, gate, up, up + 1)  # @hide
    question("PyTorch runs `a * b + c` as a multiplication and then an addition. All three tensors have the same size. How many times as fast can fusion make it at best?",
        answer=6 / 4, check=in_two / in_one, unit="times", wrong={
            "The multiplication also writes its result, and the addition reads it again.": 5 / 4,
            "Fused, three tensors are read and one is written.": 2.0,
        }, hint="Count the passes of each operation: what it reads and what it writes.",
        why="Unfused, each of the two operations reads two tensors and writes one: `6` passes. Fused, three tensors are read and one is written: `4` passes.")


class Wait(NamedTuple):
    """Seconds of one block on an H100 at best: of compute-bound operations, of memory-bound operations, and of launches."""

    arithmetic: float  # of operations whose FLOPs take longer than their bytes
    memory: float      # of all others
    launches: float

    @property
    def gpu(self) -> float:
        """Seconds that the GPU is busy: its operations run one after another."""
        return self.arithmetic + self.memory


def waits(tokens: int, config: Config = LLAMA_3_8B) -> Wait:
    """Adds up the seconds of one block on an H100 by what limits it; `tokens`: how many tokens it processes."""
    done = block_operations(tokens, config)
    bound = [op for op in done if op.flops / PEAK > op.moved / BANDWIDTH]
    work, both = (sum(map(seconds_at_best, ops)) for ops in (bound, done))
    return Wait(work, both - work, LAUNCH * sum(op.moved > 0 for op in done))


AT_THE_END = "at the end"
AFTER_EACH = "after each operation"


def in_lanes(launch: int, operation: int, the_program_waits: str) -> dict[str, Any]:  # @hide
    """When each of eight operations is handed over and when it starts, when all are done, and the idle time, in µs."""
    free = ready = 0  # until when the program and the GPU are busy
    handed, starts = [], []
    for _ in range(8):
        handed.append(free + launch)
        starts.append(max(handed[-1], ready))
        ready = starts[-1] + operation
        free = ready if the_program_waits == AFTER_EACH else handed[-1]
    idle = ready - 8 * operation
    return {"handed": handed, "starts": starts, "total": ready, "idle": idle}


def operations_run_in_turn() -> None:
    """A GPU runs its operations one after another, while the program launches the next ones."""
    note(rf"""
        A Python program on the CPU runs a chain of operations on a GPU. What is the least time that
        they can take?

        The program *launches* each operation: it hands the operation to the GPU and goes on without
        waiting for the result. Assume {LAUNCH / MICRO:.0f} µs for a launch, however small the
        operation is. Meanwhile the GPU runs the operations that were launched before, one after
        another. By hand, with eight operations:

        - If each runs for $2$ µs, launching takes $8 \cdot 5 = 40$ µs, and running takes
          $8 \cdot 2 = 16$ µs. The GPU waits for every launch. The chain takes at least $40$ µs.
        - If each runs for $20$ µs, running takes $8 \cdot 20 = 160$ µs. The program is always ahead
          with its launches. The chain takes at least $160$ µs.

        So a chain takes at least as long as the longer of two totals, all launches or all the GPU's
        work, because the two overlap.

        Within an operation, the GPU also does two things at a time: it computes while the next
        bytes arrive. So it takes at least the longer of these: its FLOPs divided by the GPU's
        *peak*, the FLOPs that it can do per second, and its bytes divided by the *bandwidth*, the
        bytes that it can move per second. If the two are $3$ µs and $7$ µs, it takes at least $7$
        µs. For $n$ operations:

        [@eq:block-time]: $$
        \text{{time}} \ge \max\left(n \cdot \text{{launch}},\;
        \sum_{{\text{{operations}}}} \max\left(\frac{{\text{{FLOPs}}}}{{\text{{peak}}}},
        \frac{{\text{{bytes}}}}{{\text{{bandwidth}}}}\right)\right)
        $$

        In the simulation below, the chain takes a little longer than this bound. `total_time` goes
        through the eight operations and returns the time, in µs, at which the last one is done:
    """)

    def total_time(launch: int, run: int) -> int:
        launched = gpu_done = 0
        for _ in range(8):
            launched = launched + launch
            # An operation starts when it is launched and the GPU is free:
            gpu_done = max(launched, gpu_done) + run
        return gpu_done

    short, long = total_time(5, 2), total_time(5, 20)  # @inspect short as µs, long as µs
    assert short == 8 * 5 + 2, \
        "After the last launch, the last short operation still has to run."
    assert long == 5 + 8 * 20, \
        "Before the first long operation, the GPU waits for one launch."
    lanes = in_lanes(5, 2, AT_THE_END)  # @hide
    assert [lanes["total"], in_lanes(5, 20, AT_THE_END)["total"]] == [short, long], \
        "The picture shows the same times."  # @hide
    note("So when operations are shorter than launches, a faster GPU hardly helps: fewer or faster launches do. Try other times:")
    after_each = in_lanes(5, 2, AFTER_EACH)["total"]  # @hide
    assert after_each == 8 * (5 + 2), \
        "If the program waits for each, the times add up."  # @hide
    explore(in_lanes, over={
        "launch": range(1, 13), "operation": range(2, 26, 2), "the_program_waits": [AT_THE_END, AFTER_EACH],
    }, at={"launch": 5, "operation": 2, "the_program_waits": AT_THE_END}, module="pictures/lanes.js",
        still=plot_lanes(5, 2, lanes),
        do="Make the operations longer until the GPU is never idle. Then let the program wait after each operation.",
        see=r"""
            Once an operation takes longer than a launch, the GPU is busy from the first launch on.
            If the program waits after each operation, the GPU is idle during every launch.
        """, caption=r"""
            Eight operations, in µs. Above, the program launches them; a launch returns before its
            operation has run. Below, the GPU runs them one after another.
        """, alt=r"""
            Two lanes. Above, eight launches without a gap. Below, eight short operations, each
            begun when its launch has ended, and gaps between them.
        """)  # @hide
    two = [Operation("mm", round(30e-6 * PEAK), round(10e-6 * BANDWIDTH), 0),
           Operation("softmax", round(5e-6 * PEAK), round(40e-6 * BANDWIDTH), 0)]  # @hide
    question(r"""
        A program runs two operations. The first needs `30` µs to compute its FLOPs and `10` µs to
        move its bytes, and the second `5` µs and `40` µs. A launch takes `5` µs. How many µs do
        both take at least, by the formula?
    """, answer=max(2 * 5, max(30, 10) + max(5, 40)), check=round(sum(map(seconds_at_best, two)) / MICRO, 3), unit="µs", within=0.01,
        wrong={
            "Within an operation, computing and moving bytes overlap: take the longer one.": 30 + 10 + 5 + 40,
            "The operations run one after another: take the longer time of each, then add.": max(30 + 5, 10 + 40),
            "The program launches while the GPU works: these times do not add up.": 30 + 40 + 10,
        }, hint="How long does each operation take by itself?",
        why="The first takes `30` µs, the time of its FLOPs, and the second `40` µs, the time of its bytes. They run one after another, so the times add up. Meanwhile the launches take only `10` µs.")


def done_after(launch: float, runs: Sequence[float]) -> float:  # @hide
    """When the last operation is done, if none is waited for; `launch`: how long a launch takes, `runs`: how long each runs."""
    launched = gpu_done = 0.0
    for run in runs:
        launched += launch
        gpu_done = max(launched, gpu_done) + run
    return gpu_done


def a_block_has_three_regimes() -> None:
    """By calculation, more tokens move a block with unfused attention from launch-bound to compute-bound to memory-bound."""
    note(r"""
        What limits the speed of a Transformer block on a GPU? That depends on how many tokens the
        block processes, because three parts of its time grow differently with the tokens:

        - *Launching*: the program launches each operation, that is, hands it to the GPU. This takes
          the same time for any number of tokens.
        - *Matmuls with weights*: the GPU reads the weights, which takes the same time for any
          number of tokens, and meanwhile computes, which takes longer with every token. The longer
          of the two counts. If that is reading, the matmul is *memory-bound*; if it is computing,
          *compute-bound*.
        - *Scores of attention*: there is one for each pair of tokens, so their number grows with
          the square of the number of tokens. *Unfused* attention consists of separate operations,
          which write all scores to memory and read them again. These are memory-bound.

        The program launches while the GPU works. So the block is *launch-bound* if launching takes
        longer than the GPU's work. Otherwise it is called compute-bound or memory-bound after the
        operations that take more of the GPU's time.

        By hand, suppose that launching takes $40$ µs, reading the weights $20$ µs, computing $1$ µs
        per token, and moving the scores $0.01$ µs per pair of tokens:

        | tokens | launching, µs | matmuls, µs | scores, µs | the block is |
        |---|---|---|---|---|
        | $10$ | $40$ | $20$ (computing: $10$) | $0.01 \cdot 10^2 = 1$ | launch-bound: $40 > 20 + 1$ |
        | $50$ | $40$ | $50$ (reading: $20$) | $0.01 \cdot 50^2 = 25$ | compute-bound: $50 + 25 > 40$, and $50 > 25$ |
        | $200$ | $40$ | $200$ (reading: $20$) | $0.01 \cdot 200^2 = 400$ | memory-bound: $200 + 400 > 40$, and $400 > 200$ |

        Now calculate a block of Llama-3-8B on an H100. `block_operations` lists its operations,
        each with its FLOPs and the bytes that it moves. By the datasheet [@nvidia-h100], the GPU
        does `989.5e12` FLOPs in a second, `PEAK`, and moves `3.35e12` bytes, `BANDWIDTH`. The
        operations run [one after another](#operations_run_in_turn). `gpu_times` adds up the µs of
        the compute-bound operations, and those of the memory-bound ones:
    """)

    def gpu_times(tokens: int) -> tuple[float, float]:
        done = block_operations(tokens)
        # of each operation, the µs for its FLOPs and for its bytes
        times = [
            (1e6 * op.flops / PEAK, 1e6 * op.moved / BANDWIDTH) for op in done
        ]
        computing = sum(work for work, traffic in times if work > traffic)
        moving = sum(traffic for work, traffic in times if work <= traffic)
        return computing, moving

    micros = {n: gpu_times(n) for n in (1, 8, 64, 512, 4096)}
    assert (PEAK, BANDWIDTH) == (989.5e12, 3.35e12), \
        "These are the numbers of the datasheet."  # @hide
    by_tokens = {tokens: waits(tokens) for tokens in micros}  # @hide
    assert all(math.isclose(sum(micros[n]), 1e6 * t.gpu) for n, t in by_tokens.items()), \
        "A sum over all operations gives the same time for the GPU's work."  # @hide
    launch_bound = [tokens for tokens, t in by_tokens.items() if t.launches > t.gpu]  # @hide
    assert launch_bound == [1, 8, 64], \
        "With 1, 8 and 64 tokens, launching takes longer than the GPU's work."  # @hide
    assert sum(micros[64]) < 36 * 5, \
        "With 64 tokens, the GPU's work takes less time than 36 launches of 5 µs."
    assert micros[512][0] > micros[512][1], \
        "With 512 tokens, the compute-bound operations take longer than the memory-bound ones."
    assert micros[4096][0] < micros[4096][1], \
        "With 4096 tokens, the memory-bound operations take longer than the compute-bound ones."
    lengths, times = [*by_tokens], [*by_tokens.values()]  # @hide
    arithmetic = [t.arithmetic / t.gpu for t in times]  # @hide
    assert arithmetic[:3] == [0.0] * 3, \
        "With 1, 8 and 64 tokens, no operation is compute-bound."  # @hide
    assert 0.69 < arithmetic[3] < 0.71, \
        "With 512 tokens, 70 % of the GPU's time is spent in compute-bound operations."  # @hide
    assert 0.36 < arithmetic[4] < 0.38, \
        "With 4096 tokens, 37 % of the GPU's time is spent in compute-bound operations, and the rest in memory-bound ones."  # @hide
    assert [round(t.gpu / t.launches, 2) for t in times[:3]] == [0.77, 0.73, 0.78], \
        "With 1, 8 and 64 tokens, the GPU takes 0.77, 0.73 and 0.78 times as long as launching."  # @hide
    longest = [
        "launch-bound" if t.launches > t.gpu else "compute-bound" if t.arithmetic > t.memory else "memory-bound"
        for t in times]  # @hide
    assert longest == ["launch-bound"] * 3 + ["compute-bound", "memory-bound"], \
        "With more and more tokens, the block is launch-bound, then compute-bound, then memory-bound."  # @hide
    counts = [round(t.launches / LAUNCH) for t in times]  # @hide
    assert counts == [34, 36, 36, 36, 36], \
        "The block has 36 operations, and 34 with one token."  # @hide
    rows = "\n".join(
        f"| {tokens:,} | {t.launches / MICRO:.0f} | {t.arithmetic / MICRO:,.0f} | {t.memory / MICRO:,.0f} | {name} |"
        for tokens, t, name in zip(lengths, times, longest))  # @hide
    note(f"""
        | tokens | launching, µs | compute-bound operations, µs | memory-bound operations, µs | the block is |
        |---|---|---|---|---|
        {rows}
    """.replace("\n        ", "\n"))
    quick = LAUNCH / 2  # @hide
    still = [quick / LAUNCH * t.launches > t.gpu for t in times]  # @hide
    assert still == [False] * 5, "With launches of half that time, none of the five is launch-bound."  # @hide
    weights = 218103808  # @hide
    assert weights == block_weights(LLAMA_3_8B), \
        "The matrices of a block have 218103808 weights."  # @hide
    reading, computing = 2 * weights / BANDWIDTH, 2 * 512 * weights / PEAK  # @hide
    assert round(1e6 * reading) == 130, \
        "Reading the weights once takes 130 µs."  # @hide
    assert math.isclose(computing, times[3].arithmetic), \
        "With 512 tokens, the compute-bound operations are the matmuls with weights."  # @hide
    moving_scores = 8 * 2 * 32 * 4096**2 / BANDWIDTH  # @hide
    assert 0.8 < moving_scores / times[4].memory < 0.9, \
        "With 4096 tokens, most of the time of memory-bound operations is for moving scores."  # @hide
    note(rf"""
        Launching is the number of operations times {LAUNCH / MICRO:.0f} µs, which are assumed. In
        each row, one reckoning gives most of the longest time:

        - Up to `64` tokens: launching `36` operations takes `36 * 5 = 180` µs. (With one token, two
          copies are not needed.) The GPU takes little longer than reading the weights, `218103808`
          of `2` bytes: at `3.35e12` bytes a second, {reading / MICRO:.0f} µs.
        - `512` tokens: each weight is read once, but costs `2 * 512` FLOPs. `2 * 512 * 218103808`
          FLOPs at `989.5e12` a second take {computing / MICRO:.0f} µs.
        - `4096` tokens: attention has `32` heads, and each head has `4096 * 4096` scores of `2`
          bytes. They are moved `8` times. A matmul writes them; scaling, the mask (which hides
          later tokens) and softmax each read and write them; another matmul reads them. That takes
          {moving_scores / MICRO:,.0f} of the {times[4].memory / MICRO:,.0f} µs.

        So what helps depends on the number of tokens: here, fewer launches up to `64`, more FLOP/s
        with `512`, and with `4096` *fused* attention, which does not move the scores. Where the
        first range ends depends on the assumed {LAUNCH / MICRO:.0f} µs: with half of that,
        {quick / MICRO:.1f} µs, none of the five is launch-bound.
    """)
    long = block_operations(4096)  # @hide
    between = by_kind(long, lambda op: op.moved)["all in between"]  # @hide
    assert math.isclose(between, between_by_hand(LLAMA_3_8B, 4096), rel_tol=0.001), \
        "Added up by hand, tensor by tensor, the same bytes move between the matmuls."  # @hide
    listed = by_kind(long, seconds_at_best)  # @hide
    products = 2 * 4096 * block_weights(LLAMA_3_8B) / PEAK  # @hide
    assert math.isclose(listed["matmuls with weights"], products), \
        "With 4096 tokens, the matmuls with weights take their FLOPs divided by the peak."  # @hide
    at_first = [50 / 2, 100 / 2]  # the other 38 operations take no time: that is best  # @hide
    question(r"""
        A block has `40` operations, and a launch takes `5` µs. Its compute-bound operations take
        `50` µs on the GPU, and its memory-bound operations `100` µs. A new GPU halves both of these
        times. How many µs does the block take at best on the new GPU?
    """, answer=max(40 * 5, 25 + 50), check=done_after(5, at_first + [0.0] * 38), unit="µs", within=0.01, wrong={
            "The program launches while the GPU works: these times do not add up.": 40 * 5 + 25 + 50,
            "The GPU waits for the launches, which take longer.": 25 + 50,
        }, hint="How long do all launches take?",
        why="Launching takes `40 * 5` µs, longer than the GPU's work on the old GPU and on the new one. The block is launch-bound, so a faster GPU does not help.")


@aside
def one_change_shows_the_limit() -> None:
    """By calculation, two trial changes tell launch-bound, memory-bound and compute-bound blocks apart."""
    note(r"""
        A block of your model is slow on a GPU. How do you find out what limits it? Change something
        and time the block again, because its time falls only if what limits it shrinks. There are
        three limits:

        - *Launch-bound*: the GPU waits for the program, which *launches* each operation, that is,
          hands it to the GPU.
        - *Memory-bound*: the GPU waits for bytes from its memory.
        - *Compute-bound*: the GPU computes all the time.

        Two changes tell them apart if one limit is clearly above the others. For both, random
        weights are enough, since only the time counts:

        - *Half the width*: half the model dimension, half the heads and half the intermediate size,
          the number of elements inside the feed-forward part. The launches stay the same. Each
          matrix has half the rows and half the columns, so its arithmetic and its bytes shrink to a
          quarter.
        - *Weights of one byte* instead of two, with a matmul that converts them to `bfloat16` on
          the chip. Only the bytes shrink, to half.

        By hand, take three blocks. Suppose that nearly all bytes are weights, and that a block
        takes the longest time in its row, because the program launches while the GPU computes and
        moves bytes:

        | block | launching, µs | arithmetic, µs | moving bytes, µs | takes now, µs |
        |---|---|---|---|---|
        | A | `90` | `20` | `40` | `90` |
        | B | `30` | `20` | `90` | `90` |
        | C | `30` | `90` | `40` | `90` |

        `changed` calculates the time of a block after each change:
    """)
    blocks = {"A": (90, 20, 40), "B": (30, 20, 90), "C": (30, 90, 40)}

    def changed(launching: int, arithmetic: int, moving: int) -> list[float]:
        half_width = max(launching, arithmetic / 4, moving / 4)
        one_byte = max(launching, arithmetic, moving / 2)
        return [half_width, one_byte]

    times = {name: changed(*block) for name, block in blocks.items()}  # @inspect times as µs
    assert times == {"A": [90, 90], "B": [30, 45], "C": [30, 90]}, \
        "Each of the three blocks answers the two changes differently."
    assert [max(block) for block in blocks.values()] == [90, 90, 90], \
        "Before the changes, each block takes 90 µs."  # @hide
    half = replace(LLAMA_3_8B, width=2048, heads=16, kv_heads=4, hidden=7168)  # @hide
    assert block_weights(LLAMA_3_8B) == 4 * block_weights(half) == 218103808, \
        "At half the width, a block has a quarter of the weights."  # @hide
    usual, narrow = (waits(64, it) for it in (LLAMA_3_8B, half))  # @hide
    launching = [round(it.launches / MICRO) for it in (usual, narrow)]  # @hide
    assert launching == [36 * 5, 36 * 5], \
        "At half the width, the launches take 180 µs as before."  # @hide
    working = [round(it.gpu / MICRO) for it in (usual, narrow)]  # @hide
    assert working == [141, 38], \
        "At half the width, the GPU takes 38 µs instead of 141."  # @hide
    note(rf"""
        | half the width | weights of one byte | the block is | what helps |
        |---|---|---|---|
        | hardly faster | hardly faster | launch-bound, as A | a larger batch, which does more per launch; a *CUDA graph*, which hands all launches to the GPU at once |
        | much faster | much faster | memory-bound, as B | fewer bytes per weight; more tokens per pass |
        | much faster | hardly faster | compute-bound, as C | a number format in which the GPU computes faster; more GPUs |

        A block of Llama-3-8B with `64` tokens on an H100 is like A. By
        [calculation](#a_block_has_three_regimes), its `36` launches of `5` µs, which are assumed,
        take `36 * 5 = 180` µs, and the GPU's work takes {working[0]} µs. At half the width the
        GPU's work takes only {working[1]} µs, a little more than a quarter, because the bytes of
        activations shrink only to half. But the launches still take {launching[1]} µs. So the block
        is no faster.
    """)
    trials = range(0, 92, 2)  # µs of launches, of arithmetic and of moving bytes  # @hide
    fitting = [
        max(launches, work, moving / 2)
        for launches in trials for work in trials for moving in trials
        if max(launches, work, moving) == 90 and changed(launches, work, moving) == [30, 88]
    ]  # @hide
    question(r"""
        A block takes `90` µs. At half the width it takes `30` µs. With weights of one byte instead
        of two, and arithmetic as fast as before, it takes `88` µs. The GPU is replaced by one with
        twice the memory bandwidth and the same peak. About how many µs does the block take then:
        `30`, `45` or `90`?
    """, answer=90, check=min((30, 45, 90), key=lambda offer: max(abs(offer - time) for time in fitting)), unit="µs", within=0.05, wrong={
            "Half the bytes hardly helped, so the time is not the time to move bytes.": 45,
            "That is the time at half the width.": 30,
        }, hint="Which row of the table is this?",
        why="Half the width makes the block faster, so it is not launch-bound. Half the bytes hardly help, so it is compute-bound. More bandwidth does not help either.")


def three_ways(tokens: int) -> tuple[dict[str, Timing], dict[str, Tensor]]:  # @stepover
    """Times a block with unfused attention on the GPU in four ways: eager, compiled, in a CUDA graph, and compiled in a graph.

    Returns the four times, and the results of the eager and of the compiled block, to be compared.
    """
    block = Block(LLAMA_3_8B, "written").cuda().bfloat16()
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


def between_on_gpu(tokens: int) -> float:  # @stepover
    """The share of a block's time on the GPU that its matmuls do not need; `tokens`: how many tokens it processes."""
    block = Block(LLAMA_3_8B, "written").cuda().bfloat16()
    x = torch.randn(1, tokens, LLAMA_3_8B.width, device="cuda").bfloat16()
    turn = turns(LLAMA_3_8B.head, tokens, like=x)
    heads, c = LLAMA_3_8B.heads, LLAMA_3_8B.head
    sizes = [(1, tokens, *shape) for shape in matrices(LLAMA_3_8B).values()]
    sizes += [(heads, tokens, c, tokens), (heads, tokens, tokens, c)]
    pairs = [
        [torch.randn(n, *shape, device="cuda").bfloat16()
         for shape in ((rows, inner), (inner, cols))]
        for n, rows, inner, cols in sizes
    ]
    with torch.no_grad():
        whole = time_graph(lambda: block(x, turn)).seconds
        products = time_graph(lambda: [a @ b for a, b in pairs]).seconds
    return 1 - products / whole


@aside
@requires("cuda")
def eager_compiled_and_in_a_graph() -> None:
    """A CUDA graph removes the time of launching; by calculation that helps a block with one token, and not one with 2048."""
    note(r"""
        When does a CUDA graph make a model faster? When launching takes longer than the GPU's work,
        because launching is all that a graph removes. Usually PyTorch runs a block in *eager* mode:
        the program *launches* its operations one by one, that is, hands them to the GPU, and the
        GPU works meanwhile. So the block takes about as long as all launches or as the GPU's work,
        whichever is longer. A *CUDA graph* hands over all operations in one call, so little more
        than the GPU's work is left.

        By hand, take $4$ operations and $5$ µs for a launch. If each runs for $2$ µs, launching
        takes $4 \cdot 5 = 20$ µs and the GPU's work $4 \cdot 2 = 8$ µs. So eager takes $20$ µs, and
        a graph $8$. If each runs for $50$ µs, the GPU's work takes $4 \cdot 50 = 200$ µs, eager and
        in a graph.

        Now a block of Llama-3-8B with `218103808` weights on an H100, which by its datasheet moves
        `3.35e12` bytes and does `989.5e12` FLOPs in a second [@nvidia-h100]. A launch is assumed to
        take $5$ µs. There are [`34` operations](#a_block_has_three_regimes) with one token, and
        `36` with `2048`, where two copies are added.

        | tokens | launching, µs | the GPU's work, µs | eager, µs | in a graph, µs |
        |---|---|---|---|---|
        | `1` | `34 * 5 = 170` | `130` | `170` | `130` |
        | `2048` | `36 * 5 = 180` | `1781` | `1781` | `1781` |

        - With `1` token the GPU has to read all weights, `2` bytes each: `130` µs. So with a graph
          the block should be `170 / 130` times as fast.
        - With `2048` tokens the matmuls with weights do `2 * 2048 * 218103808` FLOPs, which takes
          `903` µs. Attention is *unfused*: its separate operations move the scores of all pairs of
          tokens `8` times. (A matmul writes them; scaling, the causal mask and softmax each read
          and write them; another matmul reads them.) For `32` heads and `2` bytes per score, these
          `8 * 32 * 2048 * 2048 * 2` bytes take `641` µs. What is left, mainly operations between
          the matmuls that move no scores, takes `237` µs. The sum is `1781` µs, much longer than
          launching. So a graph should save nothing.

        On a GPU, the block is timed with one token (`few`) and with `2048` (`many`), each `eager`
        and in a `graph`. The table below also has both ways after `torch.compile`, which turns
        several operations into one:
    """)
    alone = [2 * 218103808 / 3.35e12, 2 * 2048 * 218103808 / 989.5e12]  # s  # @hide
    assert [round(s / MICRO) for s in alone] == [130, 903], \
        "Reading the weights takes 130 µs, and with 2048 tokens the matmuls with weights take 903 µs."  # @hide
    scores = 8 * 32 * 2048 * 2048 * 2 / BANDWIDTH  # s  # @hide
    others = waits(2048).gpu - alone[1] - scores  # @hide
    assert [round(s / MICRO) for s in (scores, others)] == [641, 237], \
        "With 2048 tokens, moving the scores takes 641 µs, and all that is left 237 µs."  # @hide
    predicted = [(w.launches, w.gpu) for w in (waits(1), waits(2048))]  # @hide
    in_micros = [[round(s / MICRO) for s in times] for times in predicted]  # @hide
    assert in_micros == [[170, 130], [180, 1781]], \
        "Predicted are 170 and 130 µs for one token, 180 and 1781 µs for 2048."  # @hide
    counts = [round(launches / LAUNCH) for launches, _ in predicted]  # @hide
    assert counts == [34, 36], \
        "With one token the block has 34 operations, and 36 with 2048."  # @hide
    few, _ = three_ways(1)  # @measure few  # @hide
    many, results = three_ways(2048)  # @measure many  # @hide
    gain = few["eager"].seconds / few["graph"].seconds  # @measure gain as times
    assert 1 < gain, "With one token, a graph makes the block faster."
    small_gain = many["eager"].seconds / many["graph"].seconds  # @measure small_gain as times
    assert small_gain < gain, "With 2048 tokens, a graph helps less."
    apart = results["eager"] - results["compiled"]  # @hide
    off = (apart.float().norm() / results["eager"].float().norm()).item()  # @measure off  # @hide
    assert off < torch.finfo(torch.bfloat16).eps, \
        "Compiled, the block gives the same results, up to rounding."  # @hide
    launch = few["eager"].seconds * LAUNCH / waits(1).launches  # @measure launch as s  # @hide
    assert LAUNCH / 5 < launch < 5 * LAUNCH, \
        "Eager, an operation takes 1/5 to 5 times the time that was assumed for a launch."  # @hide
    gpu = find(torch.cuda.get_device_name())  # @hide
    if gpu is not None and gpu.bfloat16 is not None:  # @hide
        weights = 2 * block_weights(LLAMA_3_8B)
        reading = weights / gpu.bandwidth / few["compiled, graph"].seconds  # @measure reading as %
        assert 0.3 < reading <= 1, \
            "With one token, compiled in a graph, reading the weights is at least 0.3 of the time."  # @hide
        took = many["compiled, graph"].seconds
        working = 2048 * weights / gpu.bfloat16 / took  # @measure working as %
        assert 0.2 < working <= gpu.boost, \
            "With 2048 tokens, the FLOPs of the matmuls are at least 0.2 of the time."  # @hide
    between = between_on_gpu(2048)  # @measure between as %  # @hide
    at_best = by_kind(block_operations(2048), seconds_at_best)  # @hide
    counted = between / shares(at_best)["all in between"]  # @measure counted as times  # @hide
    assert 0.5 < counted < 2, \
        "The operations between the matmuls take 1/2 to 2 times the share of the time that was predicted."  # @hide
    rows = "\n".join(
        f"| {way} | {t.seconds / MICRO:.0f} | {many[way].seconds / MICRO:.0f} |"
        for way, t in few.items()
    )  # @hide
    note(f"{few['eager'].device}, in µs:")
    note(f"| how | a single token | many tokens |\n|---|---|---|\n{rows}")
    question(r"""
        For a single token, launching the operations of another block takes `400` µs, and running
        them takes the GPU `150` µs. A model has `32` such blocks, and nothing else takes time. How
        many tokens a second does it generate at best, eager and in a graph? Write both numbers with
        a comma between them.
    """, answer=[1 / (32 * 400e-6), 1 / (32 * 150e-6)], check=[1e6 / sum([max(400, 150)] * 32), 1e6 / sum([150] * 32)], unit="tokens/s",
        within=0.02, hint="The program launches while the GPU works. Which takes longer?",
        why="Eager, a block takes the longer time, `400` µs, so a token takes `32 * 400` µs. In a graph only the `150` µs of the GPU are left, so a token takes `32 * 150` µs. One second divided by the time of a token gives the tokens per second.")
