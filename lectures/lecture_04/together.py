"""All together: meshes of ranks, published layouts, what hides the traffic, and a search for a layout."""
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import torch
import torch.distributed as dist
from counters import flops
from hardware import CARDS
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from wire import Wire, from_all_ranks

from litbook import aside, figure, misbelief, note, question, requires

from .drawings import plot_hiding
from .figures import plot_traffic
from .pipeline import bubble
from .sharded_state import local_part
from .tensor_parallel import FeedForward, all_reduce_bytes


def all_together() -> None:
    """All together."""
    note(r"""
        Large runs share their work in several ways at once. The ranks form a *mesh*, a grid with an
        axis for each way. Two GPUs then exchange weights along one axis, and tokens along another.
        How long should each axis be? That follows from what each link carries in a second, and from
        the memory of a GPU.
    """)
    one_axis_carries_weights_the_other_tokens()
    the_axes_multiply()
    the_published_run_lost_less_than_its_bubble()
    enough_tokens_hide_the_weights()
    weights_can_be_gathered_once()
    enough_width_hides_the_tokens()
    a_search_finds_a_published_layout()
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
    """Cuts the products along the axis tensor, if there is one, and the state along data."""
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
    """On a mesh, one axis carries weights, and the other one tokens."""
    note(r"""
        Can four ranks share a model in two ways at once? Arrange them in a table of two rows and
        two columns, a *mesh*:

        | | column | column |
        |---|---|---|
        | row | rank 0 | rank 1 |
        | row | rank 2 | rank 3 |

        - The two ranks of a *row* have the same tokens and share each matrix, by
          [tensor parallelism](#columns_then_rows_need_one_sum). Each computes with half of it, and
          all-reduces add up what they get for the tokens. This is the axis *tensor*.
        - The two ranks of a *column* have different tokens and use the same half of each matrix.
          Each stores half of this half, by [FSDP](#fsdp_does_the_same), and gathers the rest when
          it is needed. This is the axis *data*.

        So rank 0 exchanges tokens with rank 1 and weights with rank 2. With rank 3 it exchanges
        nothing, because they share neither tokens nor weights. More rows in the batch should mean
        more bytes for rank 1, and the same for rank 2.

        `shard` cuts a model of two layers along both axes. It trains with a batch of `64` rows, and
        then of `1024`. `sends` says for each rank how many bytes go to each other rank:
    """)
    rank = dist.get_rank()
    row, column = divmod(rank, 2)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    model = feed_forward_layers(2, 128, 320)
    shard(model, mesh)
    alone = feed_forward_layers(2, 128, 320)  # @hide
    sends = {}
    for batch in (64, 1024):
        x = torch.randn(batch, 128)
        own = x.chunk(2)[row]  # the rows of this rank
        model(own).square().mean().backward()  # sets up connections
        model.zero_grad()
        with Wire() as wire:
            model(own).square().mean().backward()
        sends[batch] = from_all_ranks(wire.to)
        alone.zero_grad()  # @hide
        alone(x).square().mean().backward()  # @hide
        expected = gradients_at(alone, row, column)  # @hide
        ours = [local_part(p.grad) for p in model.parameters() if p.grad is not None]  # @hide
        for part, wanted in zip(ours, expected, strict=True):  # @hide
            assert torch.allclose(part, wanted, atol=1e-7), \
                "Each rank has its part of the gradient of one process, up to rounding."
    small, large = sends[64][0], sends[1024][0]  # bytes from rank 0
    weight_bytes = [small[2], large[2]]  # @inspect weight_bytes as B
    assert weight_bytes[0] == weight_bytes[1], \
        "Along the axis data, rank 0 sends the same number of bytes for 64 rows and for 1024."
    token_bytes = [small[1], large[1]]  # @inspect token_bytes as B
    assert 15 < token_bytes[1] / token_bytes[0] < 16, \
        "Along the axis tensor, it sends nearly 16 times the bytes for 16 times the rows."
    assert [small[3], large[3]] == [0, 0], \
        "To rank 3, which is in another row and column, it sends nothing."  # @zero: no axis joins them
    figure(plot_traffic({f"a batch of {batch}": table for batch, table in sends.items()}),
        caption=r"""
            Bytes from each rank (row) to each other rank (column) in one step. Ranks 0 and 1 are a
            row of the mesh, and ranks 2 and 3 the other.
        """,
        alt=r"""
            Two tables of four by four cells. In both, ranks two apart exchange the same number of
            bytes. Ranks next to each other exchange few with the small batch, and most with the
            large one.
        """)
    note("It is not quite `16` times, because each message has a short header that does not grow.")
    token_formula = [4 * all_reduce_bytes(batch // 2 * 128 * 4, 2) for batch in sends]  # @hide
    assert all(1 < b / f < 1.08 for b, f in zip(token_bytes, token_formula)), \
        "Tokens cost four all-reduces: one forward in each layer, and two backward in the second; headers add up to 8 %."  # @hide
    half = sum(p.nbytes for p in alone.parameters()) / 2  # @hide
    gathers, sums = 2 * half / 2, all_reduce_bytes(half, 2)  # @hide
    assert 1 < weight_bytes[0] / (gathers + sums) < 1.02, \
        "Weights cost two all-gathers and one all-reduce of half the model, and headers."  # @hide
    question(r"""
        The two ranks of a row are on one node with a fast link, and the rows are on different nodes
        with a slow link between them. A run has few, wide layers and very many tokens. Somebody
        swaps the axes, so that *tensor* crosses the slow link. In a step, tokens are `1000` MB of
        traffic and weights `50` MB. By what factor does the traffic over the slow link change?
    """, answer=1000 / 50, check=(1000 + 50 - 50) / 50, unit="times",
        hint="What does each axis carry, and which of them crosses the slow link before and after?",
        why=r"""
            Before, weights cross the slow link, `50` MB. Afterwards tokens do, `1000` MB. So the
            axis with more traffic belongs on the fast link.
        """)


@dataclass(frozen=True)
class Layout:
    """How a run shares its work: the number of ranks along each axis, and what a step is."""

    tensor: int
    context: int
    stages: int
    data: int
    sequence: int   # tokens
    sequences: int  # of each rank along the axis data, in a step
    reached: float = 0.0  # FLOP/s of a GPU, as reported

    @property
    def gpus(self) -> int:
        """GPUs in all: the axes multiply."""
        return self.tensor * self.context * self.stages * self.data

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.data * self.sequences * self.sequence


LLAMA_3 = (  # 405B, table 4 of its report [llama3]
    Layout(8, 1, 16, 64, 8192, 32, 430e12),
    Layout(8, 1, 16, 128, 8192, 16, 400e12),
    Layout(8, 16, 16, 8, 131072, 16, 380e12),
)
PEAK = CARDS["H100 SXM"].bfloat16 or 0.0
LAYERS, WIDTH, HIDDEN, KEYS, VOCABULARY = 126, 16384, 53248, 1024, 128256  # of Llama 3 405B [llama3]
BLOCK = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS + 3 * WIDTH * HIDDEN  # weights of one block
N = LAYERS * BLOCK + VOCABULARY * WIDTH  # of all matrices


def the_axes_multiply() -> None:
    """In a layout the axes multiply to the number of GPUs."""
    note(r"""
        How do `16384` GPUs train one model? The report on Llama 3 tells it for the 405B model
        [@llama3]: they share the work in four ways at once. Think of the GPUs as a grid with four
        axes. The lengths of the axes are the *layout*:

        - *tensor*: GPUs that share each matrix,
        - *context*: GPUs that share one long sequence,
        - *stages*: GPUs that have different layers, in a pipeline,
        - *data*: groups of GPUs that have tokens of their own.

        Start small. With $2$ GPUs for each matrix and $3$ stages, $2 \cdot 3$ GPUs run one copy of
        the model. Two such groups with tokens of their own are $12$ GPUs. In the same way, the
        second layout of the report is `8 * 1 * 16 * 128 = 16384`.

        How many tokens has a step? Only the axis data counts, because all GPUs of a group work on
        the same sequences. In the second layout, `128` groups get `16` sequences of `8192` tokens
        each. `LLAMA_3` holds the three layouts of the report:
    """)
    gpus = [layout.gpus for layout in LLAMA_3]  # @inspect gpus
    assert gpus == [8 * 16 * 64, 16384, 8 * 16 * 16 * 8], \
        "The axes of each layout multiply to the number of GPUs that the report gives."
    tokens = [layout.tokens for layout in LLAMA_3]  # @inspect tokens
    assert tokens == [64 * 32 * 8192, 128 * 16 * 8192, 8 * 16 * 131072], \
        "With each of the three layouts, a step has nearly 17 million tokens."
    rows = [
        f"| {a.gpus:,} | {a.tensor} | {a.context} | {a.stages} | {a.data} "
        f"| {a.sequences} | {a.sequence:,} |"
        for a in LLAMA_3
    ]  # @hide
    note("| GPUs | tensor | context | stages | data | sequences of a group | tokens of a sequence |\n|--:|--:|--:|--:|--:|--:|--:|\n" + "\n".join(rows))
    stage_gpus = 2048 // 16  # GPUs of a stage of DeepSeek-V3  # @hide
    copies = stage_gpus // 64  # @hide
    assert (stage_gpus, copies) == (128, 2), \
        "A stage of DeepSeek-V3 has 128 GPUs, with two copies of each of its experts."  # @hide
    misbelief("Expert parallelism always multiplies the number of GPUs.", rf"""
        It did not in DeepSeek-V3 [@deepseek-v3]. That run had `2048` GPUs and `16` stages, so a
        stage had `2048 / 16 = 128` GPUs. All {stage_gpus} had tokens of their own and count along
        the axis data. The experts of a stage were spread over `64` of these same GPUs, and the
        other `64` held one more copy of them. (Other systems do give experts an axis of their own.)
    """)
    question(r"""
        A run has `4096` GPUs, `8` along the axis tensor, `8` stages, and all others along the axis
        data. Somebody makes it `16` stages on the same GPUs. Each group along the axis data still
        gets `16` sequences. By what factor does the number of tokens of a step change?
    """, answer=0.5, check=Layout(8, 1, 16, 32, 8192, 16).tokens / Layout(8, 1, 8, 64, 8192, 16).tokens, unit="times",
        wrong={"The number of groups has changed.": 1, "A longer pipeline leaves fewer groups.": 2},
        hint="How many groups are left along the axis data?",
        why=r"""
            `4096 / (8 * 8) = 64` groups become `4096 / (8 * 16) = 32`. The axes have to multiply to
            `4096`, so a longer one makes another one shorter, and only the axis data adds tokens.
        """)


@aside
def the_published_run_lost_less_than_its_bubble() -> None:
    """With a plain pipeline, the published run would have needed three quarters of its peak."""
    note(r"""
        How well do [these layouts](#the_axes_multiply) use the GPUs? The *MFU* is the rate that a
        GPU reached over its peak. The report gives the rates [@llama3].

        In a plain pipeline, GPUs would wait in a share of the time, the
        [bubble](#microbatches_fill_the_pipeline). With `16` stages and `16` sequences, one after
        the other, it is `15 / (16 + 15)`, nearly half. So even at its peak in the rest of the time,
        a GPU would reach an MFU of `16 / 31`:
    """)
    mfu = [layout.reached / PEAK for layout in LLAMA_3]  # @inspect mfu as %
    printed = [0.43, 0.41, 0.38]  # in the report
    gaps = [abs(ours - theirs) for ours, theirs in zip(mfu, printed)]  # @hide
    assert max(gaps) < 0.006, \
        "The reported rates over the peak are the MFUs of the report, within 0.6 points."
    waits = [float(bubble(a.stages, a.sequences)) for a in LLAMA_3]  # @inspect waits as %
    assert waits[1] == 15 / (16 + 15), \
        "With the second layout, GPUs would wait 48 % of the time."  # @hide
    assert [round(wait, 2) for wait in waits] == [0.32, 0.48, 0.48], \
        "In a plain pipeline, GPUs would wait 32, 48 and 48 % of the time."
    busy = mfu[1] / (1 - waits[1])  # @inspect busy as %
    assert 0.75 < busy < 0.8, \
        "To reach the MFU of the second layout with that bubble, a GPU would have to reach three quarters of its peak while it works."
    note(r"""
        The run did not need that. It [interleaved](#more_pieces_wait_less): each GPU had several
        short pieces of the model in place of one long one, so it waited less.
    """)
    question(r"""
        A pipeline of `16` stages gets `16` sequences, and each GPU has `4` pieces of the model.
        With an MFU of `0.41`, what share of the peak does a GPU reach while it does not wait?
    """, answer=0.41 / (64 / (64 + 15)), check=0.41 / float(1 - bubble(16, 16, pieces=4)), unit="%", within=0.02,
        hint="What is the bubble with four pieces?",
        why=r"""
            A GPU works in `4 * 16 = 64` of `64 + 15` steps. So `0.41` is `64 / 79` of what it
            reaches while it works: about `51 %`.
        """)


NVLINK = 900e9 / 2  # bytes a second that a GPU sends inside a node, of both directions together [nvidia-hopper]
NETWORK = 400e9 / 8  # bytes a second between nodes: a GPU has 400 Gbit/s [llama3]


@requires("linux, ranks=4")
def enough_tokens_hide_the_weights() -> None:
    """With enough tokens in each microbatch, FSDP's traffic costs no time."""
    note(r"""
        In [FSDP](#fsdp_does_the_same) each of $G$ ranks keeps a shard of all weights, and gathers a
        layer before it runs. While a GPU computes one layer, the weights of the next can arrive. If
        they arrive in time, the traffic costs no time: it is *hidden*. How many tokens does a GPU
        need for that?

        Take one weight of `4` bytes, and `256` tokens. When it has arrived, it costs `2` FLOPs for
        each token, so the GPU does `2 * 256 / 4 = 128` FLOPs for each byte that arrived. With twice
        the tokens it does twice as much, because the weight arrives once and every token uses it.

        On four ranks only `3 / 4` of the weights have to arrive, because a rank has its own shard.
        With $T$ tokens and $w$ bytes per weight:

        [@eq:hide]: $$
        \frac{\text{FLOPs}}{\text{byte}}
        = \frac{\overbrace{2\,T}^{\text{FLOPs of a weight}}}{\underbrace{w}_{\text{its bytes}}}
        \cdot \frac{G}{G-1}
        $$

        But weights are dropped when their layer is done. If the tokens of a step come in several
        *microbatches*, weights are gathered for each of them. So $T$ are the tokens of *one
        microbatch*, not those of the step. Four ranks with `256` tokens each, in one microbatch and
        in more:
    """)
    ranks = dist.get_world_size()
    model = feed_forward_layers(4, 128, 320)
    shard(model, init_device_mesh("cpu", (ranks,), mesh_dim_names=("data",)))
    ratios, formula = {}, {}
    for microbatches in (1, 2, 8):
        tokens = 256 // microbatches
        with torch.no_grad(), Wire() as wire:
            work = sum(flops(partial(model, torch.randn(tokens, 128)))
                       for _ in range(microbatches))
        ratios[microbatches] = work / wire.sent  # @inspect ratios[microbatches] as FLOP/B
        formula[microbatches] = 2 * tokens / 4 * ranks / (ranks - 1)
    assert all(0.97 < ratios[m] / formula[m] < 1 for m in ratios), \
        "For 1, 2 and 8 microbatches, FLOPs per byte are those of the formula with the tokens of one microbatch, up to 3 %."
    assert ratios[8] < ratios[1] / 7.9, \
        "In eight microbatches, the same tokens have less than an eighth of the FLOPs for each byte, up to headers."
    note(rf"""
        How many FLOPs for each byte are enough? The number that a GPU can do while it receives one
        byte. An H100 does {PEAK / 1e12:.0f} teraFLOPs a second. From GPUs in the same node it
        receives {NVLINK / 1e9:.0f} GB/s, over *NVLink* [@nvidia-hopper], and from other nodes
        {NETWORK / 1e9:.0f} GB/s, over the network of Llama 3 [@llama3]. Weights in `bfloat16` have
        `2` bytes, so with many ranks the formula gives one FLOP per byte for each token. Then the
        FLOPs per byte are also the tokens that are needed:
    """)
    nvlink_tokens, network_tokens = PEAK / NVLINK, PEAK / NETWORK  # @inspect nvlink_tokens as tokens, network_tokens as tokens
    assert (round(nvlink_tokens), round(network_tokens)) == (2199, 19790), \
        "In the forward pass, 2199 tokens hide the traffic over NVLink, and 19790 that over the network."
    links = nvlink_tokens, network_tokens
    backward_tokens = [(2 + 4) / 4 * tokens for tokens in links]  # @inspect backward_tokens as tokens
    assert [round(link) for link in backward_tokens] == [3298, 29685], \
        "In the backward pass it takes 3298 and 29685 tokens, half as many again."
    note(r"""
        The backward pass needs more, because it moves `2` bytes for a weight and `4` for its
        gradient in `float32`, and does only `4` FLOPs per token for them.
    """)
    question(r"""
        A GPU has `32768` tokens in a step, which hide the traffic of FSDP. To save memory, somebody
        runs them in `4` microbatches. A GPU does `19790` FLOPs in the time of one byte, and in
        `bfloat16` with many ranks it does one FLOP per byte for each token. How many times as long
        as the arithmetic does the forward traffic take now?
    """, answer=19790 / (32768 / 4), check=PEAK / NETWORK * 4 / 32768, unit="times", within=0.02,
        wrong={"Weights are gathered again for each microbatch.": 19790 / 32768},
        hint="How many tokens use a weight each time it has arrived?",
        why=r"""
            A microbatch has `8192` tokens, and the weights are gathered for each. So there are
            `8192` FLOPs per byte, where `19790` would be needed: the traffic takes `2.4` times as
            long as the arithmetic.
        """)


def weights_can_be_gathered_once() -> None:
    """A published run has microbatches too small to hide FSDP, so it gathers weights once in a step."""
    note(rf"""
        [FSDP is hidden](#enough_tokens_hide_the_weights) if a microbatch has enough tokens: on an
        H100 with the network of Llama 3 [@llama3], {PEAK / NETWORK:,.0f} in the forward pass. Did
        that run have so many?

        At first it had `8192` GPUs. With FSDP alone, each would have its own part of a step's
        tokens. In the [layout](#the_axes_multiply) that was used, groups of `8 * 16 = 128` GPUs
        share their tokens: `8` share each matrix, in each of `16` stages. A GPU works on all tokens
        of its group. It computes with only a `128`th of the weights, and gathers only these, so the
        FLOPs per byte stay those of the formula:
    """)
    run, network_tokens = LLAMA_3[0], PEAK / NETWORK
    alone = run.tokens / run.gpus  # @inspect alone as tokens
    group = run.tokens / run.data  # @inspect group as tokens
    assert alone == 2048 < PEAK / NVLINK, \
        "With FSDP alone, a GPU would have 2048 tokens in a step: too few even for NVLink."
    assert group == 8 * 16 * alone > 13 * network_tokens, \
        "In a group of 128 GPUs it has 128 times as many, 13 times what the network asks for."
    microbatch = group / run.sequences  # @inspect microbatch as tokens
    assert microbatch == 8192 < network_tokens, \
        "But they come in 32 microbatches, a sequence of 8192 tokens each, and these are too few."
    note(r"""
        So with weights gathered for each microbatch, the run would have waited for the network. It
        did something else: it kept gathered weights until the end of the step [@llama3]. Then all
        `32` microbatches use a weight that has arrived once, and the tokens of the whole step
        count. Strictly, that is not FSDP, but the first or second
        [stage of ZeRO](#each_rank_updates_a_shard). What does it cost in memory?
    """)
    whole_bytes = 2 * N / (run.tensor * run.stages)  # @inspect whole_bytes as B
    assert 6.3e9 < whole_bytes < 6.4e9, \
        "A GPU keeps all weights of its slice and stage, 6.3 GB in bfloat16."
    shard_bytes = whole_bytes / run.data  # @inspect shard_bytes as B
    assert shard_bytes < 0.1e9, \
        "With a shard alone, it would be less than 0.1 GB."
    question(r"""
        A run is waiting for the network, because FSDP gathers weights for each of many small
        microbatches. Which of these can help? Give `1` or `0` for each: keep gathered weights until
        the end of the step; larger microbatches; more GPUs along the axis data, with the same
        tokens for each group.
    """, answer=[1, 1, 0], check=[int(32 * 8192 > 19790), int(4 * 8192 > 19790), int(8192 > 19790)],
        hint="Which of them change how many tokens use a weight that has arrived once?",
        why=r"""
            The first two let more tokens use a weight that has arrived. More GPUs along the axis
            data leave the tokens of a microbatch as they are, and a GPU gathers nearly all of its
            weights either way.
        """)


def enough_width_hides_the_tokens() -> None:
    """With a large model dimension, tensor parallelism computes longer than it sends."""
    note(r"""
        In [tensor parallelism](#a_block_needs_four_all_reduces) `8` GPUs share each matrix of a
        Transformer block. For that, they all-reduce the tokens, twice in the forward pass. Does
        sending take longer than computing? Both grow with the number of tokens, so one token is
        enough to tell.

        Take a tiny block first, with model dimension $d = 4$ and $12 d^2$ weights on two GPUs. A
        token costs each GPU `2 * 12 * 16 / 2 = 192` FLOPs. Two all-reduces of its `4` elements send
        `2 * 4 * 2` bytes in `bfloat16`: `192 / 16 = 12` FLOPs per byte. With twice the dimension,
        the FLOPs grow by $4$ and the bytes by $2$, because a block has $d^2$ weights for each $d$
        elements of a token. So wider models compute more for each byte.

        Now a block of Llama 3's 405B model [@llama3] on `8` GPUs. `WIDTH` is $d$, `16384`, and
        `BLOCK` are the weights of a block, about three billion. (The scores of attention are left
        out.)
    """)
    sent = 2 * all_reduce_bytes(WIDTH * 2, 8)  # @inspect sent as B
    assert sent == 2 * (2 * 7 / 8) * 16384 * 2, \
        "For two all-reduces of a token, a GPU sends 114688 bytes."  # @hide
    computed = 2 * BLOCK / 8  # @inspect computed as FLOP
    intensity = computed / sent  # @inspect intensity as FLOP/B
    nvlink, network = PEAK / NVLINK, PEAK / NETWORK  # @inspect nvlink as FLOP/B, network as FLOP/B
    assert (round(nvlink), round(network)) == (2199, 19790), \
        "In the time of one byte, an H100 can do 2199 FLOPs over NVLink, and 19790 over the network."  # @hide
    assert nvlink < intensity < network, \
        "For each byte, a GPU does more FLOPs than fit into its time over NVLink, and fewer than over the network."
    note(rf"""
        `nvlink` and `network` are the FLOPs that an H100 can do while it sends one byte inside a
        node [@nvidia-hopper] and between nodes [@llama3]. The block does {intensity:,.0f}. So over
        NVLink sending takes less time than computing, and over the network more. That is why GPUs
        that share matrices are in one node.

        But even over NVLink the traffic is not free. A block cannot go on before an all-reduce is
        done, so the time of sending is added to that of computing. (Backward there are two
        all-reduces again, and a weight costs `4` FLOPs.)
    """)
    forward_share = nvlink / intensity  # @inspect forward_share as %
    step_share = nvlink * 2 * sent / ((2 + 4) * BLOCK / 8)  # @inspect step_share as %
    assert 0.31 < forward_share < 0.32, \
        "Over NVLink, sending adds nearly a third to the time of computing in the forward pass."
    assert 0.2 < step_share < 0.22, \
        "To the time of a whole step it adds about a fifth."
    run = LLAMA_3[0]  # @hide
    figure(plot_hiding(
            {t: 2 * t / 2 for t in (256, 2**22)}, intensity,
            {"the network asks for this": network, "NVLink asks for this": nvlink},
            {"FSDP alone": run.tokens / run.gpus, "one microbatch": float(run.sequence),
             "a group's whole step": run.tokens / run.data}),
        caption="How many FLOPs a GPU does for each byte that it sends, of tokens (tensor parallelism) and of weights ([FSDP](#enough_tokens_hide_the_weights)). Above a dashed line, sending takes less time than computing. The points are the run on `8192` GPUs [@llama3]: with FSDP alone, with weights gathered for each microbatch, and with weights gathered once in a step, as it was.",
        alt=r"""
            Over the tokens that share an arrived weight, the line of FSDP's weights rises as fast
            as they do, and that of tensor parallelism's tokens is flat. FSDP alone lies just below
            what NVLink asks for, one microbatch lies below what the network asks for, and a group's
            whole step far above it.
        """)
    question(r"""
        A run with tensor parallelism spends much of its time in all-reduces. Which of these makes
        the share smaller? Give `1` or `0` for each: a larger batch; a larger model dimension; fewer
        GPUs that share a matrix.
    """, answer=[0, 1, 1], check=[int(after > 12) for after in (2 * 192 / (2 * 16), 4 * 192 / (2 * 16), 2 * 192 / 16)],
        hint="Which of them changes the FLOPs per byte of one token?",
        why=r"""
            A larger batch has more to compute and just as much more to send. A larger model
            dimension computes more for each byte. With fewer GPUs, each computes more of a token
            and sends no more for it.
        """)


def layouts(gpus: int, sequences: int) -> Iterator[Layout]:
    """All layouts of so many GPUs in powers of two, a sequence or more for each data rank."""
    for tensor in (1, 2, 4, 8, 16, 32):
        for stages in (1, 2, 4, 8, 16, 32, 64):
            data = gpus // (tensor * stages)
            if 1 <= data <= sequences:
                yield Layout(tensor, 1, stages, data, 8192, sequences // data)


def step_seconds(layout: Layout, pieces: int = 1, rate: float = PEAK) -> float:
    """Estimates the seconds of a step in a layout, with arithmetic at `rate`.

    The bubble stretches arithmetic and sums of tokens; weights and gradients cost what is not hidden. Each rank has
    `pieces` of the model.
    """
    tokens = layout.tokens / layout.data
    share = layout.tensor * layout.stages
    attention = 12 * LAYERS * WIDTH * layout.sequence / 2
    computing = (6 * N + attention) * tokens / share / rate
    link = NVLINK if layout.tensor <= 8 else NETWORK  # eight in a node
    one_sum = all_reduce_bytes(tokens * WIDTH * 2, layout.tensor) / link
    summing = LAYERS / layout.stages * 4 * one_sum
    waiting = float(bubble(layout.stages, layout.sequences, pieces))
    # Once in a step: weights in bfloat16, gradients in float32.
    others = (layout.data - 1) / layout.data
    weights = (2 + 4) * N / share * others / NETWORK
    return (computing + summing) / (1 - waiting) + max(0, weights - computing)


def gpu_bytes(layout: Layout, kept: int) -> float:
    """Estimates the bytes on a GPU; the feed-forward part keeps `kept` vectors of its inner size for each token.

    With the first stage of ZeRO and 1F1B.
    """
    share = layout.tensor * layout.stages
    # Weights in bfloat16; gradients, master copy and moments in shards.
    state = 2 * N / share + 16 * N / layout.gpus
    norms, attention = 2 * (2 * WIDTH + 4), 2 * (3 * WIDTH + 2 * KEYS) + 4 * 128
    token = norms + attention + 2 * (WIDTH + kept * HIDDEN)
    under_way = min(layout.sequences, layout.stages)
    tokens = under_way * layout.sequence
    return state + tokens * token * LAYERS / layout.stages / layout.tensor


@aside
def a_search_finds_a_published_layout() -> None:
    """Among the layouts that fit, a simple estimate has Llama 3's near the top, and memory decides its rank."""
    note(r"""
        Llama 3's 405B model was trained on `16384` H100 GPUs, with `2048` sequences of `8192`
        tokens in a step [@llama3]. Would we have chosen the same [layout](#the_axes_multiply)?

        A layout here has three axes, whose lengths multiply to the number of GPUs: *tensor*,
        *stages* and *data*. With two GPUs there would be three layouts in powers of two: one for
        each axis that gets the `2`. We try all of them for `16384`, and sort those that fit by an
        estimate of the time of a step. `step_seconds` adds up:

        - the arithmetic, at the peak of the GPU,
        - the all-reduces of tokens, over NVLink up to `8` GPUs, else over the network,
        - the [bubble](#microbatches_fill_the_pipeline), which stretches both,
        - the weights and gradients, sent once in a step, as far as that takes longer than the
          arithmetic.

        `gpu_bytes` estimates the memory: weights, gradients, optimizer and the activations that are
        kept. How many vectors a feed-forward part keeps for each token depends on what is computed
        again. We begin with `3` vectors. `memory` is what the driver of an H100 reports:
    """)
    tried = [*layouts(16384, 2048)]
    published = LLAMA_3[1]
    memory = CARDS["H100 SXM"].capacity  # @inspect memory as B
    assert len(tried) == 36, "There are 36 layouts in powers of two."

    def ranked(kept: int, memory: float) -> list[tuple[int, int, int]]:
        fitting = [a for a in tried if gpu_bytes(a, kept) < memory]
        fitting.sort(key=step_seconds)
        return [(a.tensor, a.stages, a.data) for a in fitting]

    best = ranked(3, memory)
    first = best[:3]  # @inspect first  # @unnoticed: 3: as many as one likes
    assert len(best) == 24, "24 of the 36 layouts fit."
    assert best[:2] == [(8, 8, 256), (8, 16, 128)], \
        "The fastest has 8 stages; the layout of Llama 3, tensor 8, stages 16, data 128, is the second."
    quickest = step_seconds(Layout(8, 1, 8, 256, 8192, 8))
    gap = step_seconds(published) / quickest - 1  # @inspect gap as %
    assert 0.03 < gap < 0.04, \
        "By the estimate, it takes 3 to 4 % longer than the first."
    note(r"""
        Why are the first ones alike? More than `8` GPUs for each matrix would have to use the slow
        network. Fewer would need longer pipelines, with larger bubbles. The number of stages is a
        matter of memory: fewer stages have smaller bubbles, but each GPU then has more layers, and
        keeps more. So a few GB decide which one is the first:
    """)
    by_datasheet = ranked(3, 80e9)
    assert by_datasheet[0] == (8, 16, 128), \
        "With the 80 GB of the datasheet, the layout of Llama 3 is the first."
    leaner = ranked(2, memory)
    assert leaner.index((8, 16, 128)) == 2, \
        "If only 2 vectors are kept for a token, it is the third: two layouts with fewer stages fit, and are faster."
    assert (8, 16, 128) not in ranked(4, memory), \
        "If 4 vectors are kept, it does not fit."
    misbelief("The best layout follows from the model alone.", r"""
        It follows from the model, the links and the memory together, and the first few are within a
        few percent.
    """)
    took = 6 * N * published.tokens / (published.gpus * published.reached)  # @hide
    plain, interleaved = step_seconds(published) / took, step_seconds(published, pieces=4) / took  # @hide
    slower = step_seconds(published, rate=0.7 * PEAK) / took  # @hide
    assert interleaved < 0.63 < 0.98 < plain < 1 < 1.3 < slower, \
        "Over the reported time, the estimate is 0.98, but 0.62 with four pieces on a rank, and 1.33 at 70 % of the peak."  # @hide
    note(rf"""
        The estimate is good for comparing, not for predicting. It says {plain:.2f} of the reported
        time. But with interleaving in four pieces, it would be {interleaved:.2f}, and with
        arithmetic at seven tenths of the peak and no interleaving {slower:.2f}.
    """)
    question(r"""
        By the estimate, a layout with `8` stages is faster than one with `16`. Still a run uses
        `16`. Its GPUs have `80` GB. Which of these would explain it? Give `1` or `0` for each: with
        `8` stages it would need `80.2` GB; the all-reduces of tokens are faster with `16` stages;
        the run interleaves, which makes the bubble small in either case.
    """, answer=[1, 0, 1], check=[int(gpu_bytes(Layout(8, 1, 8, 256, 8192, 8), 3) > 80e9),
            int(all_reduce_bytes(8192, 8) < all_reduce_bytes(8192, 8)),
            int(bubble(16, 16, 4) - bubble(8, 8, 4) < bubble(16, 16) - bubble(8, 8) + Fraction(1, 50))],
        why=r"""
            What does not fit is out, however fast it would be. All-reduces do not depend on the
            number of stages. And where the bubble is small anyway, longer pipelines cost little.
        """)


@aside
@requires("simulated ranks=1024")
def a_thousand_ranks_can_be_simulated() -> None:
    """Shapes and counts need no second rank: a thousand can be simulated in one process."""
    note(r"""
        You want to know what each of `1024` GPUs would hold and exchange, and you have one CPU. Can
        you find out?

        PyTorch can pretend: one process plays one rank of a process group that says it has `1024`.
        Its [collectives](#an_all_reduce_leaves_the_sum_everywhere) send nothing and return at once,
        with tensors of the correct shape. So the values are made up. An all-reduce of a tensor of
        ones should give `1024` everywhere:
    """)
    ranks = dist.get_world_size()  # @inspect ranks
    ones = torch.ones(4)
    dist.all_reduce(ones)  # @unnoticed: left out: what is simulated adds nothing
    assert ones.sum() == 4, "The simulated all-reduce has added nothing."
    note(r"""
        But shapes and counts are correct, because they depend only on the sizes and not on the
        values. Take four feed-forward layers, on a *mesh* of `128` by `8` ranks. The `8` ranks of a
        row share each matrix ([tensor parallelism](#columns_then_rows_need_one_sum)). The `128`
        ranks of a column share what each keeps of that ([FSDP](#fsdp_does_the_same)). `shard` cuts
        the model like this:
    """)
    mesh = init_device_mesh("cpu", (128, 8), mesh_dim_names=("data", "tensor"))
    model = feed_forward_layers(4, 1024, 4096)
    total = sum(p.numel() for p in model.parameters())  # @inspect total
    shard(model, mesh)
    held = sum(local_part(p).numel() for p in model.parameters())  # @inspect held
    assert held * ranks == total == 4 * 3 * 1024 * 4096, \
        "Each rank holds a 1024th of the weights."
    note("Which collectives does a step need? `CommDebugMode` counts them:")
    x = torch.zeros(2, 1024, requires_grad=True)  # @unnoticed: 2: any number of rows
    # Counting returns views of outputs, and FSDP would warn of one.
    with CommDebugMode() as counter, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # @unnoticed: left out: a warning changes no value
        model(x).sum().backward()
    counts = {
        str(operation).split(".")[-1]: n
        for operation, n in counter.get_comm_counts().items()
    }  # @inspect counts
    assert sorted(counts.values()) == [4, 4 * 2, 4 + 4 * 2], \
        "For four layers, there are 4, 8 and 12 collectives of three kinds."
    note(r"""
        So each layer needs one reduce-scatter of gradients, two all-gathers of weights, forward and
        backward, and three all-reduces of tokens: one forward, and one backward for each of the two
        matrices that read them. None of these numbers depends on how many ranks there are.
    """)
    question(r"""
        The model has `4` layers, each with `3` matrices of `1024` by `4096` weights, `4` bytes
        each. How many bytes of them does each of the `1024` ranks hold?
    """, answer=4 * 4 * 3 * 1024 * 4096 // 1024, check=sum(local_part(p).nbytes for p in model.parameters()), unit="B", within=0.02,
        wrong={"That is with tensor parallelism alone.": 4 * 4 * 3 * 1024 * 4096 // 8},
        why="All weights take `4 * 3 * 1024 * 4096 * 4` bytes. Both axes cut them, into `128 * 8 = 1024` parts.")
