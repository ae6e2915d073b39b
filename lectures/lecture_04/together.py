"""All together: meshes of ranks, published layouts, and what hides the traffic."""
import math
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist
from counters import flops
from hardware import CARDS
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from wire import Wire, from_all_ranks

from litbook import aside, figure, note, question, requires

from .drawings import plot_widths
from .figures import plot_traffic
from .sharded_state import local_part
from .tensor_parallel import FeedForward, all_reduce_bytes


def all_together() -> None:
    """All together."""
    note(r"""
        Large runs share their work in several ways at once. The ranks form a *mesh*, a grid with an
        axis for each way. GPUs then exchange weights along one axis, and results for tokens along
        another. How long should each axis be? That follows from the bandwidth of each link, and
        from the memory of a GPU.
    """)
    one_axis_carries_weights_the_other_tokens()
    the_axes_multiply()
    flops_per_byte_follow_the_tokens()
    enough_tokens_hide_the_weights()
    weights_can_be_gathered_once()
    a_large_dimension_hides_the_tokens()
    a_thousand_ranks_can_be_simulated()


class Layer(nn.Module):
    """A feed-forward part with a residual connection."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.part = FeedForward(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.part(x)  # type: ignore[no-any-return]


COLUMNS_THEN_ROWS = {"part.gate": ColwiseParallel, "part.up": ColwiseParallel, "part.down": RowwiseParallel}


def feed_forward_layers(layers: int, width: int, hidden: int) -> nn.Sequential:
    """A model of feed-forward layers, with the same weights on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(*(Layer(width, hidden) for _ in range(layers)))


def shard(model: nn.Sequential, mesh: DeviceMesh) -> None:
    """Splits the matrices among the ranks of the axis tensor, if there is one, and the state among those of the axis data."""
    for layer in model:
        if "tensor" in (mesh.mesh_dim_names or ()):
            plan = {name: kind() for name, kind in COLUMNS_THEN_ROWS.items()}
            parallelize_module(layer, mesh["tensor"], plan)
        fully_shard(layer, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])


def gradients_at(model: nn.Module, row: int, column: int) -> list[Tensor]:
    """What the rank in this row and column of a mesh of two by two keeps of each gradient of a whole model."""
    kept = []
    for name, p in model.named_parameters():
        # By columns, or by rows for `down`; nn.Linear stores the transpose.
        side = int(name.endswith("down.weight"))
        assert p.grad is not None
        kept.append(p.grad.chunk(2, dim=side)[column].chunk(2)[row])
    return kept


@requires("linux, ranks=4")
def one_axis_carries_weights_the_other_tokens() -> None:
    """On a mesh of tensor parallelism and FSDP, traffic grows with the batch along only one axis."""
    note(r"""
        A model is too large for one GPU. Can ranks share it by tensor parallelism and by FSDP at
        once, and which of them then exchange what?

        Yes: arrange the ranks in a table, a *mesh*:

        | | one half of each matrix | the other half |
        |---|---|---|
        | first half of the tokens | rank 0 | rank 1 |
        | second half of the tokens | rank 2 | rank 3 |

        - Ranks of a *row* exchange results for tokens, because they have the same tokens and
          different halves of a matrix. That is
          [tensor parallelism](#columns_then_rows_need_one_sum).
        - Ranks of a *column* exchange weights, because they need the same half of a matrix, and
          each keeps only a part of it. That is [FSDP](#fsdp_does_the_same).

        By hand, take $4$ tokens of $4$ elements, and a matrix of $4$ rows and $2$ columns. Each
        half of the matrix is two of its rows, `2 * 2 = 4` weights. A result has $2$ elements, one
        for each column.

        - Ranks 0 and 1 have the same $2$ tokens. With two rows each, they compute terms of the
          results, and add them up: `2 * 2 = 4` elements.
        - Ranks 0 and 2 need the same $4$ weights. Each keeps $2$, and receives the other $2$.
        - Ranks 0 and 3 have neither tokens nor weights in common, so they exchange nothing.

        With $16$ times as many tokens, ranks 0 and 1 add up `16 * 4 = 64` elements. Ranks 0 and 2
        still receive $2$ weights each, because the matrix has not changed.

        Now a `model` of two feed-forward layers, one batch, and a second batch `16` times as large.
        `shard` splits each matrix by PyTorch's `parallelize_module` along the axis `"tensor"`, a
        row, and by `fully_shard` along the axis `"data"`, a column. `Wire` counts the bytes that a
        rank sends to each other rank in a step:
    """)
    rank = dist.get_rank()  # @hide
    row, column = divmod(rank, 2)  # @hide
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    model = feed_forward_layers(2, 128, 320)  # @hide
    shard(model, mesh)
    alone = feed_forward_layers(2, 128, 320)  # @hide
    tables = {}  # @hide
    for batch in (512, 8192):
        x = torch.randn(batch, 128)  # @hide
        own = x.chunk(2)[row]  # the tokens of this rank's row
        model(own).square().mean().backward()  # opens connections  # @hide
        model.zero_grad()  # @hide
        with Wire() as wire:
            model(own).square().mean().backward()
        tables[batch] = from_all_ranks(wire.to)  # of all ranks
        alone.zero_grad()  # @hide
        alone(x).square().mean().backward()  # @hide
        expected = gradients_at(alone, row, column)  # @hide
        ours = [local_part(p.grad) for p in model.parameters() if p.grad is not None]  # @hide
        for part, wanted in zip(ours, expected, strict=True):  # @hide
            assert torch.allclose(part, wanted, atol=1e-7), \
                "Each rank has its part of the gradient of one process, up to rounding."
    small, large = tables[512][0], tables[8192][0]  # sent by rank 0
    row_growth = large[1] / small[1]  # to rank 1  # @inspect row_growth as .1f
    column_growth = large[2] / small[2]  # to rank 2  # @inspect column_growth as .1f
    assert math.isclose(row_growth, 16, rel_tol=0.01), \
        "With the large batch, rank 0 sends 16 times as many bytes to rank 1, in its row, within 1 %."
    assert column_growth == 1, \
        "With both batches, rank 0 sends the same number of bytes to rank 2, in its column."
    assert large[3] == small[3] == 0, \
        "To rank 3, rank 0 sends nothing."  # @zero: no axis joins them
    tokens_bytes, shard_bytes = 4 * 256 * 128, 4 * 3 * 128 * 320 // 4  # @hide
    assert 0 < small[1] - 2 * 2 * tokens_bytes < 0.01 * small[1], \
        "To rank 1, rank 0 sends two all-reduces of 256 tokens for each of two layers, plus headers."  # @hide
    assert 0 < small[2] - 2 * 4 * shard_bytes < 0.01 * small[2], \
        "To rank 2, it sends four shards of each of two layers, plus headers."  # @hide
    figure(plot_traffic({f"a batch of {batch}": table for batch, table in tables.items()}),
        caption=r"""
            Bytes from each rank (row) to each other rank (column) in one step. Ranks 0 and 1 are
            one row of the mesh, and ranks 2 and 3 are the other. (On CPUs, PyTorch does a
            reduce-scatter as a whole all-reduce. So ranks of a column send a third more than FSDP
            needs.)
        """,
        alt=r"""
            Two tables of four by four cells. In both, ranks two apart exchange the same number of
            bytes. Ranks next to each other exchange few with the small batch, and most with the
            large one.
        """)
    note(rf"""
        The bytes sent to rank 1 can be calculated. With the small batch, a row has `256` tokens of
        `128` elements of `4` bytes, and on two ranks an all-reduce sends its tensor once. So in
        four all-reduces, one forward and one backward for each of two layers, rank 0 sends
        `4 * 256 * 128 * 4` = {2 * 2 * tokens_bytes:,} bytes. Headers come on top. They do not grow
        with the batch, so the factor is a little less than `16`.

        So if results for tokens cause more traffic than weights, place each row of the mesh inside
        a node, a machine whose GPUs have fast links.
    """)
    def across(nodes: list[int]) -> int:  # MB between ranks of different nodes  # @hide
        pairs = [(a, b) for a in range(4) for b in range(4) if nodes[a] != nodes[b]]
        in_rows = sum(a // 2 == b // 2 for a, b in pairs)
        in_columns = sum(a % 2 == b % 2 for a, b in pairs)
        return 1000 * in_rows + 50 * in_columns

    question(r"""
        The two ranks of a row are on one node with a fast link, and the rows are on different nodes
        with a slow link between them. In a step, tensor parallelism causes `1000` MB of traffic and
        FSDP `50` MB. Somebody swaps the axes, so that ranks of a row are on different nodes. By
        what factor does the traffic over the slow link change?
    """, answer=1000 / 50, check=across([0, 1, 0, 1]) / across([0, 0, 1, 1]), unit="times",
        hint="Which traffic crosses the slow link before, and which afterwards?",
        why=r"""
            Before the swap, weights cross the slow link, `50` MB. Afterwards results for tokens
            cross it, `1000` MB. So the axis with more traffic belongs on the fast link.
        """)


@dataclass(frozen=True)
class Layout:
    """How a run shares its work: the number of ranks along each axis, and what a step is."""

    tensor: int
    context: int
    stages: int
    data: int
    sequence_tokens: int
    group_sequences: int  # of each rank along the axis data, in a step

    @property
    def gpus(self) -> int:
        """GPUs in all: the axes multiply."""
        return self.tensor * self.context * self.stages * self.data

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.data * self.group_sequences * self.sequence_tokens


LLAMA_3 = (  # 405B, table 4 of its report [llama3]
    Layout(8, 1, 16, 64, 8192, 32),
    Layout(8, 1, 16, 128, 8192, 16),
    Layout(8, 16, 16, 8, 131072, 16),
)
PEAK = CARDS["H100 SXM"].bfloat16 or 0.0
WIDTH, HIDDEN, KEYS = 16384, 53248, 1024  # of Llama 3 405B [llama3]
BLOCK = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS + 3 * WIDTH * HIDDEN  # weights of one block


def the_axes_multiply() -> None:
    """In a layout, the lengths of the axes multiply to the number of GPUs."""
    note(r"""
        How do `16384` GPUs train one model? In the report on Llama 3 [@llama3], the GPUs that train
        the 405B model share the work in four ways at once. Each way is an axis of a grid of GPUs:

        - *tensor*: GPUs that share each matrix,
        - *context*: GPUs that share one long sequence,
        - *stages*: GPUs that have different layers, in a pipeline,
        - *data*: groups of GPUs, each with its own sequences.

        The lengths of the axes are the *layout*. Start small: two GPUs share each matrix, and there
        are three stages. So `2 * 3 = 6` GPUs run one copy of the model. Two such groups, each with
        its own sequences, have `6 * 2 = 12` GPUs. The lengths multiply, because each combination of
        one position on every axis is one GPU.

        How many tokens are in a training step? Count only the axis *data*, because all GPUs of a
        group work on the same sequences (along the axis *context*, on different parts of them). If
        each of the two groups gets $5$ sequences of $10$ tokens, a step has `2 * 5 * 10 = 100`
        tokens.

        `LLAMA_3` lists the three layouts of the report, the last one for long sequences. The table
        below shows them:
    """)
    gpus = [run.tensor * run.context * run.stages * run.data
            for run in LLAMA_3]  # @inspect gpus
    assert gpus == [8192, 16384, 16384], \
        "The lengths of the axes of each layout multiply to the number of GPUs that the report gives."
    tokens = [run.data * run.group_sequences * run.sequence_tokens
              for run in LLAMA_3]  # @inspect tokens
    assert tokens == 3 * [2**24], \
        "With each of the three layouts, a step has 2**24 tokens, nearly 17 million."
    rows = [
        f"| {a.gpus:,} | {a.tensor} | {a.context} | {a.stages} | {a.data} "
        f"| {a.group_sequences} | {a.sequence_tokens:,} |"
        for a in LLAMA_3
    ]  # @hide
    note("| GPUs | tensor | context | stages | data | sequences of a group | tokens of a sequence |\n|--:|--:|--:|--:|--:|--:|--:|\n" + "\n".join(rows))
    question(r"""
        A run has `4096` GPUs, `8` along the axis tensor, `8` stages, and all others along the axis
        data. Somebody changes it to `16` stages on the same GPUs. Each group along the axis data
        still gets `16` sequences. By what factor does the number of tokens of a step change?
    """, answer=0.5, check=Layout(8, 1, 16, 32, 8192, 16).tokens / Layout(8, 1, 8, 64, 8192, 16).tokens, unit="times",
        wrong={"The number of groups has changed.": 1, "A longer pipeline leaves fewer groups.": 2},
        hint="How many groups are left along the axis data?",
        why=r"""
            `4096 / (8 * 8) = 64` groups become `4096 / (8 * 16) = 32`. The lengths of the axes have
            to multiply to `4096`, so a longer axis makes another one shorter, and only the axis
            *data* adds tokens.
        """)


NVLINK = 900e9 / 2  # bytes a second inside a node [nvidia-hopper]
NETWORK = 400e9 / 8  # bytes a second between nodes: 400 Gbit/s [llama3]


@requires("linux, ranks=4")
def flops_per_byte_follow_the_tokens() -> None:
    """In FSDP, the FLOPs for each byte that arrives grow with the tokens of a microbatch."""
    note(r"""
        In [FSDP](#fsdp_does_the_same) each rank keeps a shard of all weights, and gathers a layer's
        weights from the other ranks before the layer runs. How many FLOPs does a GPU compute for
        each byte that it receives?

        By hand, take two ranks and two weights of $4$ bytes. A rank keeps one of the weights and
        receives the other: $4$ bytes. Each of the two weights costs $2$ FLOPs per token.

        - With $10$ tokens: $2 \text{ weights} \cdot 2 \text{ FLOPs} \cdot 10 \text{ tokens} = 40$
          FLOPs for $4$ bytes, $10$ FLOPs per byte.
        - With $20$ tokens: $2 \text{ weights} \cdot 2 \text{ FLOPs} \cdot 20 \text{ tokens} = 80$
          FLOPs for $4$ bytes, $20$ FLOPs per byte.
        - With $20$ tokens as two *microbatches* of $10$: again $80$ FLOPs. But by default FSDP
          frees a layer's weights as soon as the layer has run, so they arrive twice: $8$ bytes,
          $10$ FLOPs per byte.

        So what counts is the number of tokens in one microbatch, because all of them use a weight
        each time it arrives. On $G$ ranks, $G - 1$ of every $G$ weights arrive. With $T$ tokens in
        a microbatch and $w$ bytes per weight:

        [@eq:hide]: $$
        \frac{\text{FLOPs}}{\text{byte}}
        = \frac{\overbrace{G \cdot 2\,T}^{\text{FLOPs of } G \text{ weights}}}{\underbrace{(G-1) \cdot w}_{\text{bytes that arrive}}}
        $$

        Four ranks check it in the forward pass of `model`, each with `256` tokens in `1`, `2` or
        `8` microbatches. With weights of $4$ bytes and one microbatch, the formula gives
        `4 * 2 * 256 / (3 * 4)` FLOPs per byte. A rank receives the same number of bytes as it
        sends. `flops(partial(model, x))` runs `model(x)` and counts its FLOPs:
    """)
    ranks = dist.get_world_size()  # @hide
    model = feed_forward_layers(4, 128, 320)  # @hide
    shard(model, init_device_mesh("cpu", (ranks,), mesh_dim_names=("data",)))  # @hide
    ratios = {}  # @hide
    for microbatches in (1, 2, 8):
        tokens = 256 // microbatches  # of one microbatch
        x = torch.randn(tokens, 128)
        with torch.no_grad(), Wire() as wire:
            work = sum(flops(partial(model, x))
                       for _ in range(microbatches))
        # This rank's FLOPs per byte that it sent, headers included:
        ratio = work / wire.sent  # @inspect ratio as FLOP/B
        assert math.isclose(ratio, 4 * 2 * tokens / (3 * 4), rel_tol=0.01), \
            "The FLOPs per byte are those of the formula, within 1 %."
        ratios[microbatches] = ratio  # @hide
    assert ratios[1] / ratios[8] == 8.0, \
        "In eight microbatches, the same tokens give an eighth of the FLOPs per byte."
    note(r"""
        Large microbatches help FSDP: if computing one layer takes at least as long as receiving the
        next layer's weights,
        [the GPU waits only for the first layer](#enough_tokens_hide_the_weights).
    """)
    with torch.no_grad(), Wire() as wire_4:  # @hide
        work_4 = sum(flops(partial(model, torch.randn(256, 128))) for _ in range(4))  # @hide
    question(r"""
        A rank has `8192` tokens in a step, as one microbatch. Now it gets `32768` tokens in a step,
        as four microbatches of `8192`. By what factor do the FLOPs per byte that arrives in FSDP
        change?
    """, answer=1.0, check=round(work_4 / wire_4.sent / ratios[1], 2), unit="times",
        wrong={"The weights are also gathered four times as often.": 4},
        hint="How often does a weight arrive in a step, before and after?",
        why=r"""
            The rank computes `4` times as many FLOPs, and every weight arrives `4` times instead of
            once. Larger microbatches would give more FLOPs for each byte.
        """)


def enough_tokens_hide_the_weights() -> None:
    """With enough tokens in each microbatch, FSDP's traffic can be hidden."""
    note(rf"""
        While a GPU computes one layer, [FSDP](#fsdp_does_the_same) can already gather the weights
        of the next. If they arrive in time, their traffic costs no time: it is *hidden*. How many
        tokens does a GPU need for that?

        A weight in `bfloat16` has $2$ bytes, and costs $2$ FLOPs per token. Assume many ranks, so
        that nearly every weight has to arrive. Take a slow GPU that computes $10$ FLOPs while one
        byte arrives. While a weight arrives, it can compute `2 * 10 = 20` FLOPs.

        - With $5$ tokens, a weight costs `2 * 5 = 10` FLOPs. That is too few, and the GPU waits.
        - With $10$ tokens, a weight costs `2 * 10 = 20` FLOPs. That is enough, and the next layer's
          weights arrive in time.

        So $10$ tokens are enough for $10$ FLOPs per byte, because each token costs one FLOP for
        each byte of a weight. What counts is the number of tokens in one *microbatch*, because the
        weights [arrive again for each microbatch](#flops_per_byte_follow_the_tokens).

        Now take an H100. It computes at most {PEAK / 1e12:.1f}e12 FLOPs a second, its `PEAK`. From
        GPUs in the same node it receives {NVLINK / 1e9:.0f}e9 bytes a second over `NVLINK`
        [@nvidia-hopper]. From other nodes it receives {NETWORK / 1e9:.0f}e9 bytes a second over the
        `NETWORK`, in a cluster like that of Llama 3 [@llama3]. The number of tokens that it needs
        is again the number of FLOPs that it can compute while one byte arrives:
    """)
    nvlink_tokens = PEAK / NVLINK  # @inspect nvlink_tokens as tokens
    assert round(nvlink_tokens) == 2199, \
        "Over NVLink, 2199 tokens in a microbatch hide the traffic of the forward pass."
    network_tokens = PEAK / NETWORK  # @inspect network_tokens as tokens
    assert round(network_tokens) == 19790, \
        "Over the network, 19790 tokens hide it."
    assert nvlink_tokens < 8192 < network_tokens, \
        "A sequence of 8192 tokens is enough over NVLink, and too short over the network."  # @hide
    note(r"""
        So at these rates, one sequence of `8192` tokens is enough inside a node, and too short
        between nodes. A GPU that computes below its peak needs fewer tokens. In the backward pass,
        both the FLOPs and the traffic double, if gradients also have $2$ bytes. So the number stays
        the same.
    """)
    question(r"""
        A GPU has `40000` tokens in a step. That is about twice the number that hides the traffic of
        FSDP over the network. To save memory, somebody runs them in `4` microbatches. About how
        long does the traffic of the forward pass take now, as a multiple of the time of the
        arithmetic?
    """, answer=19790 / (40000 / 4), check=PEAK / NETWORK * 4 / 40000, unit="times", within=0.05,
        wrong={"The weights arrive again for each microbatch.": 19790 / 40000},
        hint="How many tokens use a weight each time it has arrived?",
        why=r"""
            A microbatch has `10000` tokens, about half of what is needed. So the traffic takes
            about twice as long as the arithmetic.
        """)


def weights_can_be_gathered_once() -> None:
    """If FSDP keeps gathered weights until the end of a step, a GPU waits for them in only one microbatch."""
    note(rf"""
        In [FSDP](#fsdp_does_the_same) a GPU gathers weights from other GPUs while it computes. If
        they arrive too late, it waits. That happens if the *microbatches*, the parts in which a
        step's batch is processed, are too small. What can be done?

        Keep the gathered weights until the end of the step. Then the GPU waits for them only in the
        first microbatch, because after that it has them.

        By hand, suppose the weights take $10$ ms to arrive, and the arithmetic of a microbatch
        takes $4$ ms. Both go on at the same time, so a microbatch takes the longer of the two. For
        a step of five microbatches:

        - *Arithmetic alone* takes `5 * 4 = 20` ms.
        - *Gathered for each microbatch*: each takes $10$ ms. That is `5 * 10 = 50` ms.
        - *Gathered once*: the first takes $10$ ms, and each of the others $4$ ms. That is
          `10 + 4 * 4 = 26` ms.

        How much would that be in a large run? Calculate the forward pass for one layout of the run
        that trained Llama 3 with 405 billion weights [@llama3]. There `8 * 16 = 128` GPUs form a
        group. The group shares the model, so a GPU computes with a `128`th of the weights. In a
        step, a group gets `32` sequences of `8192` tokens. Take each sequence as a microbatch.
        Other groups work on other sequences. FSDP shards the weights again, among $64$ groups, so
        nearly all of a GPU's weights have to arrive.

        Each weight has $2$ bytes and costs $2$ FLOPs per token. Assume peak rates: by the data
        sheet, an H100 computes {PEAK / 1e12:.1f}e12 FLOPs a second (`PEAK`), and in this run's
        network {NETWORK / 1e9:.0f}e9 bytes a second arrive at a GPU (`NETWORK`) [@llama3]:
    """)
    run = LLAMA_3[0]  # @hide
    assert (run.gpus, run.data, run.group_sequences, run.sequence_tokens) == (8192, 64, 32, 8192), \
        "The layout has 8192 GPUs, 64 groups, and 32 sequences of 8192 tokens for each group."  # @hide
    assert (run.tensor, run.stages) == (8, 16), \
        "The GPUs of a group share the model 8 and 16 ways."  # @hide
    weights = 405e9 / (8 * 16)  # of one GPU  # @inspect weights
    arriving = 2 * weights / NETWORK  # @inspect arriving as s
    computing = 2 * weights * 8192 / PEAK  # a microbatch  # @inspect computing as s
    gathered_each = 32 * arriving  # @inspect gathered_each as s
    gathered_once = arriving + 31 * computing  # @inspect gathered_once as s
    arithmetic = 32 * computing  # @inspect arithmetic as s
    assert computing < arriving, \
        "At these rates, a GPU waits for the weights in each microbatch that gathers them."  # @hide
    assert round(gathered_each / arithmetic, 1) == 2.4, \
        "Gathered for each microbatch, the forward pass takes 2.4 times as long as its arithmetic."
    assert round(gathered_once / arithmetic, 2) == 1.04, \
        "Gathered once, it takes 4 % longer than its arithmetic."

    def taken(microbatches: int, arriving: float, computing: float, keep: bool) -> float:  # one by one  # @hide
        total, here = 0.0, False
        for _ in range(microbatches):
            total += computing if here else max(computing, arriving)
            here = keep
        return total

    by_hand = [taken(5, 10, 4, keep) for keep in (False, True)]  # @hide
    assert by_hand == [50, 26], "By hand, it is 50 and 26 ms."  # @hide
    one_by_one = [taken(32, arriving, computing, keep) for keep in (False, True)]  # @hide
    assert all(map(math.isclose, one_by_one, [gathered_each, gathered_once])), \
        "Added up one microbatch at a time, the published layout takes the same."  # @hide
    note(rf"""
        So at peak rates, gathering once removes nearly all of the waiting. A slower GPU waits less:
        at `computing / arriving`, {computing / arriving:.0%} of its peak, the arithmetic of a
        microbatch takes as long as the arrival, so it would not wait in either case. The run
        reached 43 % of the peak on average [@llama3], so it had less to gain than calculated here.

        The price is memory: a GPU keeps all the weights that it computes with, here
        {2 * weights / 1e9:.1f} GB, and not only its shard, {2 * weights / 64 / 1e9:.1f} GB.
    """)
    def waiting(microbatch: int, once: bool, groups: int) -> float:  # s, for one weight  # @hide
        late = 2 * (groups - 1) / groups / NETWORK - 2 * microbatch / PEAK
        return (1 if once else 32 * 8192 // microbatch) * max(0.0, late)

    changed = [waiting(8192, True, 64), waiting(4 * 8192, False, 64), waiting(8192, False, 128)]  # @hide
    question(r"""
        A run waits for the network, because FSDP gathers weights for each of many small
        microbatches. Which of these can help? Give `1` or `0` for each: keep gathered weights until
        the end of the step; larger microbatches; more groups, each with the same microbatches as
        before.
    """, answer=[1, 1, 0], check=[int(seconds < waiting(8192, False, 64)) for seconds in changed],
        hint="How often do weights arrive, and how long can the GPU compute meanwhile?",
        why=r"""
            Kept weights arrive once in a step. In a larger microbatch, the GPU has more to compute
            while weights arrive. With more groups, a microbatch has the same number of tokens as
            before, and a GPU has to gather nearly all of its weights either way.
        """)


def a_large_dimension_hides_the_tokens() -> None:
    """With a larger model dimension, tensor parallelism does more FLOPs for each byte that it sends."""
    note(rf"""
        In [tensor parallelism](#a_block_needs_four_all_reduces), the GPUs that share a block
        all-reduce the tokens twice in the forward pass. Does sending take longer than computing?
        That depends on the *model dimension* $d$, the number of elements of a token, because the
        number of weights grows with $d^2$, and the bytes of a token only with $d$. The number of
        tokens does not matter: FLOPs and bytes both grow with it. So one token is enough.

        By hand, take $d = 4$, a block of $12 d^2$ weights, as in many Transformers, and two GPUs:

        - *Computing.* The block has `12 * 4 * 4 = 192` weights, so each GPU has `192 / 2 = 96`. A
          token costs $2$ FLOPs for each of them: `2 * 96 = 192` FLOPs.
        - *Sending.* A token has $4$ elements of $2$ bytes, $8$ bytes in all. On $G$ GPUs,
          [an all-reduce sends](#a_ring_sends_less_than_twice_the_tensor) $2\,(G-1)/G$ times its
          tensor. For two GPUs this factor is $1$, so two all-reduces send `2 * 8 = 16` bytes.

        That is `192 / 16 = 12` FLOPs per byte. With $d = 8$ there are $4$ times as many FLOPs and
        $2$ times as many bytes, so $24$ FLOPs per byte. In general, the quotient is $3d/(G-1)$:
        more GPUs lower it, because each computes less and sends a little more.

        Is $d$ large enough in a real model? Take Llama 3 with 405 billion weights [@llama3], and
        one of its blocks on $8$ GPUs. The block has {BLOCK / 1e9:.2f} billion weights (`BLOCK`),
        and $d$ is `16384` [@llama3]:
    """)

    def flops_per_byte(d: int, weights: float, gpus: int) -> float:  # @hide
        return 2 * weights / gpus / (2 * all_reduce_bytes(2 * d, gpus))

    by_hand = [flops_per_byte(d, 12 * d**2, 2) for d in (4, 8)]  # @hide
    assert by_hand == [12, 24], \
        "The tiny block on two GPUs does 12 FLOPs per byte, and 24 with twice the model dimension."  # @hide
    assert all(math.isclose(flops_per_byte(d, 12 * d**2, gpus), 3 * d / (gpus - 1)) for d in (4, 64) for gpus in (2, 3, 8)), \
        "The short formula gives the same number of FLOPs per byte."  # @hide
    computed = 2 * BLOCK / 8  # FLOPs for a token on one GPU  # @inspect computed as FLOP
    sent = 2 * (2 * 7 / 8) * (2 * 16384)  # two all-reduces  # @inspect sent as B
    intensity = computed / sent  # FLOPs for each byte  # @inspect intensity as FLOP/B
    assert intensity == flops_per_byte(WIDTH, BLOCK, 8), \
        "The formula of the picture gives the same number for the published block."  # @hide
    note(rf"""
        Sending takes longer if the GPU could compute more than these {intensity:,.0f} FLOPs while
        it sends a byte. By the data sheet, an H100 computes {PEAK / 1e12:.1f}e12 FLOPs a second
        (`PEAK`), and sends {NVLINK / 1e9:.0f}e9 bytes a second over `NVLINK`, inside a node
        [@nvidia-hopper]. Over the `NETWORK` between nodes, it sends {NETWORK / 1e9:.0f}e9 bytes a
        second [@llama3]. All are peaks:
    """)
    nvlink = PEAK / NVLINK  # @inspect nvlink as FLOP/B
    network = PEAK / NETWORK  # @inspect network as FLOP/B
    assert intensity > nvlink, \
        "Inside a node, computing takes longer than sending, if both run at their peaks."
    assert intensity < network, \
        "Over the network, sending takes longer than computing, if both run at their peaks."
    note(r"""
        So if `8` such GPUs share this block, they belong in one node. (The backward pass also has
        two all-reduces, and twice as many FLOPs.)
    """)
    assert flops_per_byte(WIDTH, BLOCK, 4) > 2 * intensity, \
        "On 4 GPUs instead of 8, a GPU does more than twice as many FLOPs per byte."  # @hide
    widths = [2**n for n in range(10, 16)]  # @hide
    figure(plot_widths({gpus: {d: flops_per_byte(d, 12 * d * d, gpus) for d in widths} for gpus in (2, 4, 8)},
                       (WIDTH, intensity), {"needed over\nthe network": network, "needed over\nNVLink": nvlink}),
        caption=r"""
            FLOPs for each byte that a GPU sends, for a block of $12 d^2$ weights. Above a dashed
            line, computing takes longer than sending. The point is the block of `Llama-3` on `8`
            GPUs.
        """,
        alt=r"""
            Three lines that rise with the model dimension, on logarithmic scales. The fewer GPUs
            share a block, the higher the line. The point of the published model lies between the
            two dashed lines.
        """)
    question(r"""
        A run with tensor parallelism spends much of its time in all-reduces. Which of these makes
        this share of the time smaller, if only FLOPs and bytes matter? Give `1` or `0` for each: a
        larger batch; a larger model dimension; fewer GPUs that share a matrix.
    """, answer=[0, 1, 1], check=[int(2 * 192 / (2 * 16) > 192 / 16), int(flops_per_byte(2 * WIDTH, 4 * BLOCK, 8) > intensity),
            int(flops_per_byte(WIDTH, BLOCK, 4) > intensity)],
        hint="Which of them changes the FLOPs per byte of one token?",
        why=r"""
            With a larger batch, a GPU computes more and sends more, in the same proportion. With a
            larger model dimension, it computes more for each byte. With fewer GPUs, each computes
            more for a token and sends a little less.
        """)


@aside
@requires("simulated ranks=1024")
def a_thousand_ranks_can_be_simulated() -> None:
    """The weights that one of a thousand ranks keeps can be counted in one process."""
    note(r"""
        You want to know how many weights each of `1024` GPUs would keep, and you have one CPU. Can
        you find out?

        Yes, because the shape of a shard depends only on sizes, and not on any values. PyTorch's
        `fake` backend makes use of that: one process plays one rank of a group that claims to have
        `1024` ranks. This line starts such a group:

        `dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1024)`

        (`FakeStore` is in PyTorch's internal `torch.testing._internal.distributed.fake_pg`.) Its
        [collectives](#an_all_reduce_leaves_the_sum_everywhere) send nothing, and return tensors of
        the correct shape with wrong values. A real all-reduce of ones over `1024` ranks would give
        `1024` everywhere. A simulated one leaves the ones as they are.

        But the counts of weights are correct. Take four feed-forward layers, each of three matrices
        of `1024 * 4096` weights, on `1024` ranks in a mesh, a table of `128` rows with `8` ranks in
        each. Each matrix is first cut into `8` slices, one for each rank of a row, by
        [tensor parallelism](#columns_then_rows_need_one_sum). Then each slice is cut into `128`
        pieces, one for each row, by [FSDP](#fsdp_does_the_same). `shard` makes both cuts, with
        PyTorch's `parallelize_module` and `fully_shard`, and `local_part` returns the piece of this
        rank:
    """)
    mesh = init_device_mesh("cpu", (128, 8), mesh_dim_names=("data", "tensor"))
    model = feed_forward_layers(4, 1024, 4096)
    total = sum(p.numel() for p in model.parameters())  # @inspect total
    shard(model, mesh)
    kept = sum(local_part(p).numel() for p in model.parameters())  # @inspect kept
    assert kept == total / (128 * 8), "This rank keeps a 1024th of the weights."
    ranks = dist.get_world_size()  # @hide
    ones = torch.ones(4)  # @hide
    dist.all_reduce(ones)  # @unnoticed: left out: what is simulated adds nothing  # @hide
    assert ones.sum() == 4, "A simulated all-reduce of ones does not add anything."  # @hide
    note("So you can count the weights that one rank keeps in a layout for many GPUs before you pay for them.")
    question(r"""
        A model runs on simulated ranks. Which of these are the same as on real GPUs? Give `1` or
        `0` for each: the number of bytes of weights on a rank; the loss; the shape of a gradient.
    """, answer=[1, 0, 1], check=[int(kept * ranks == total), int(ones[0] == ranks), int(ones.shape == (4,))],
        hint="Which of them depend on values from other ranks?",
        why=r"""
            The loss is computed from values that the other ranks should have sent, and these are
            wrong. The number of bytes and the shape depend only on sizes.
        """)
