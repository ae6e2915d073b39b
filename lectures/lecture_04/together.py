"""All together: meshes of ranks, published layouts, and what hides the traffic."""
import warnings
from dataclasses import dataclass
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

from litbook import aside, figure, note, question, requires

from .drawings import plot_arrivals, plot_widths
from .figures import plot_traffic
from .sharded_state import local_part
from .tensor_parallel import FeedForward, all_reduce_bytes


def all_together() -> None:
    """All together."""
    note(r"""
        Large runs share their work in several ways at once. The ranks form a *mesh*, a grid with an
        axis for each way. Two GPUs then exchange weights along one axis, and tokens along another.
        How long should each axis be? That follows from the bandwidth of each link, and from the
        memory of a GPU.
    """)
    one_axis_carries_weights_the_other_tokens()
    the_axes_multiply()
    flops_per_byte_follow_the_tokens()
    enough_tokens_hide_the_weights()
    weights_can_be_gathered_once()
    enough_width_hides_the_tokens()
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
    """On a mesh, one axis carries weights, and the other one tokens."""
    note(r"""
        Can four ranks share a model in two ways at once? Arrange them in a table of two rows and
        two columns, a *mesh*:

        | | column | column |
        |---|---|---|
        | row | rank 0 | rank 1 |
        | row | rank 2 | rank 3 |

        - The two ranks of a *row* have the same tokens, and each matrix is split between them, by
          [tensor parallelism](#columns_then_rows_need_one_sum). Each rank computes with half of a
          matrix, and all-reduces add up their results for the tokens. The axis *tensor* runs along
          a row.
        - The two ranks of a *column* have different tokens and use the same half of each matrix.
          Each stores half of this half, by [FSDP](#fsdp_does_the_same), and gathers the rest when
          it is needed. The axis *data* runs down a column.

        So rank 0 exchanges tokens with rank 1 and weights with rank 2. With rank 3 it exchanges
        nothing, because the two have neither tokens nor weights in common. With `16` times as many
        examples in the batch, rank 0 should send `16` times as many bytes to rank 1, because there
        are `16` times as many results to add up. To rank 2 it should send the same number of bytes
        as before, because the number of weights does not change.

        `shard` cuts a model of two layers along both axes. The model trains with a batch of `64`
        examples, and then of `1024`. `sends` lists for each rank how many bytes it sends to each
        other rank. The first run of each batch only opens connections:
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
        own = x.chunk(2)[row]  # the examples of this rank
        model(own).square().mean().backward()  # not measured
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
    by_rank_0 = [sends[batch][0] for batch in (64, 1024)]  # to each rank
    weight_bytes = [sent[2] for sent in by_rank_0]  # @inspect weight_bytes as B
    assert weight_bytes[0] == weight_bytes[1], \
        "Along the axis data, rank 0 sends the same number of bytes for 64 examples and for 1024."
    token_bytes = [sent[1] for sent in by_rank_0]  # @inspect token_bytes as B
    assert 15 < token_bytes[1] / token_bytes[0] < 16, \
        "Along the axis tensor, it sends nearly 16 times as many bytes for 16 times as many examples."
    assert [sent[3] for sent in by_rank_0] == [0, 0], \
        "To rank 3, which is in another row and column, it sends nothing."  # @zero: no axis joins them
    figure(plot_traffic({f"a batch of {batch}": table for batch, table in sends.items()}),
        caption=r"""
            Bytes from each rank (row) to each other rank (column) in one step. Ranks 0 and 1 are
            one row of the mesh, and ranks 2 and 3 are the other.
        """,
        alt=r"""
            Two tables of four by four cells. In both, ranks two apart exchange the same number of
            bytes. Ranks next to each other exchange few with the small batch, and most with the
            large one.
        """)
    note(r"""
        The factor is not quite `16`, because each message has a short header that does not grow.

        So the axis *tensor* belongs inside a node, on the fast links, if tokens cause more traffic
        than weights.
    """)
    question(r"""
        The two ranks of a row are on one node with a fast link, and the rows are on different nodes
        with a slow link between them. A run has few, wide layers and very many tokens. Somebody
        swaps the axes, so that *tensor* crosses the slow link. In a step, tokens cause `1000` MB of
        traffic and weights `50` MB. By what factor does the traffic over the slow link change?
    """, answer=1000 / 50, check=(1000 + 50 - 50) / 50, unit="times",
        hint="What does each axis carry, and which of them crosses the slow link before and after?",
        why=r"""
            Before the swap, weights cross the slow link, `50` MB. Afterwards tokens cross it,
            `1000` MB. So the axis with more traffic belongs on the fast link.
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

    @property
    def gpus(self) -> int:
        """GPUs in all: the axes multiply."""
        return self.tensor * self.context * self.stages * self.data

    @property
    def tokens(self) -> int:
        """Tokens of a step."""
        return self.data * self.sequences * self.sequence


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
        How do `16384` GPUs train one model? The report on Llama 3 describes it for the 405B
        model [@llama3]: the GPUs share the work in four ways at once. Think of the GPUs as a grid
        with four axes. The lengths of the axes are the *layout*:

        - *tensor*: GPUs that share each matrix,
        - *context*: GPUs that share one long sequence,
        - *stages*: GPUs that have different layers, in a pipeline,
        - *data*: groups of GPUs, each with its own tokens.

        Start small. With $2$ GPUs for each matrix and $3$ stages, $2 \cdot 3$ GPUs run one copy of
        the model. Two such groups, each with its own tokens, have $12$ GPUs. In the same way, the
        second layout of the report has `8` (tensor), `1` (context), `16` (stages) and `128` (data):
        `8 * 1 * 16 * 128 = 16384` GPUs.

        How many tokens are in a step? Only the axis *data* matters, because all GPUs of a group
        work on the same sequences. In the second layout, `128` groups get `16` sequences of `8192`
        tokens each: `128 * 16 * 8192 = 16777216` tokens. `LLAMA_3` holds the three layouts of the
        report:
    """)
    gpus = [layout.gpus for layout in LLAMA_3]  # @inspect gpus
    assert gpus[1:] == [16384, 16384], \
        "The second and the third layout have 16384 GPUs."  # @hide
    assert gpus == [8 * 1 * 16 * 64, 8 * 1 * 16 * 128, 8 * 16 * 16 * 8], \
        "The lengths of the axes of each layout multiply to the number of GPUs that the report gives."
    tokens = [layout.tokens for layout in LLAMA_3]  # @inspect tokens
    assert tokens == [64 * 32 * 8192, 128 * 16 * 8192, 8 * 16 * 131072], \
        "With each of the three layouts, a step has nearly 17 million tokens."
    rows = [
        f"| {a.gpus:,} | {a.tensor} | {a.context} | {a.stages} | {a.data} "
        f"| {a.sequences} | {a.sequence:,} |"
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
        In [FSDP](#fsdp_does_the_same) each of $G$ ranks keeps a shard of all weights, and gathers a
        layer before it runs. How many FLOPs does a GPU compute for each byte that it receives?

        Take four ranks with `256` tokens each, and four weights of `4` bytes, one from each rank's
        shard. A GPU already has one of them, so three arrive: `3 * 4 = 12` bytes. Each weight costs
        `2` FLOPs per token, and all four weights cost `4 * 2 * 256 = 2048` FLOPs. That is
        `2048 / 12`, about `170.7` FLOPs for each byte that arrives. With twice as many tokens it is
        twice as many FLOPs per byte, because a weight arrives once and every token uses it.

        With $T$ tokens and $w$ bytes per weight on $G$ ranks, $G - 1$ of every $G$ weights arrive:

        [@eq:hide]: $$
        \frac{\text{FLOPs}}{\text{byte}}
        = \frac{\overbrace{G \cdot 2\,T}^{\text{FLOPs with all } G}}{\underbrace{(G-1) \cdot w}_{\text{bytes that arrive}}}
        $$

        Here $T$ is the number of tokens of *one microbatch*, not of the step, because weights are
        dropped when their layer is done. If the tokens of a step come in several *microbatches*,
        all weights are gathered again for each of them.

        Now the four ranks process their `256` tokens in `1`, `2` and `8` microbatches. In the
        forward pass, `flops` counts what a rank computes, and `Wire` counts the bytes that it
        sends. A rank receives the same number of bytes as it sends. `ratios` are the FLOPs per
        byte:
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
        formula[microbatches] = ranks * 2 * tokens / ((ranks - 1) * 4)
    assert round(formula[1], 1) == 170.7, \
        "For one microbatch, the formula gives 170.7 FLOPs per byte."  # @hide
    assert all(0.99 < ratios[m] / formula[m] < 1 for m in ratios), \
        "For 1, 2 and 8 microbatches, FLOPs per byte are those of the formula with the tokens of one microbatch. Headers make them less than 1 % lower."
    assert ratios[1] / ratios[8] == 8.0, \
        "In eight microbatches, the same tokens give an eighth of the FLOPs for each byte."
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
            once. Only larger microbatches give more FLOPs for each byte.
        """)


def enough_tokens_hide_the_weights() -> None:
    """With enough tokens in each microbatch, FSDP's traffic can be hidden."""
    note(rf"""
        While a GPU computes one layer, the weights of the next can arrive. If they arrive in time,
        the traffic of [FSDP](#fsdp_does_the_same) costs no time: it is *hidden*. How many tokens
        does a GPU need for that?

        The arithmetic has to take at least as long as the traffic. So for each byte that arrives,
        the GPU needs at least as many FLOPs of work as it can do in the time that one byte takes to
        arrive. The peak of an H100, `PEAK`, is {PEAK / 1e12:.1f} teraFLOPs a second. From GPUs in
        the same node it receives {NVLINK / 1e9:.0f} GB/s (`NVLINK`), over the links of that name
        [@nvidia-hopper]. From other nodes it receives {NETWORK / 1e9:.0f} GB/s (`NETWORK`), if the
        network is like that of Llama 3 [@llama3].

        So while one byte arrives over NVLink, the GPU can do
        `{PEAK / 1e12:.1f}e12 / {NVLINK / 1e9:.0f}e9`, or {PEAK / NVLINK:.0f} FLOPs. While one byte
        arrives over the network, it can do `{PEAK / 1e12:.1f}e12 / {NETWORK / 1e9:.0f}e9`, or
        {PEAK / NETWORK:.0f} FLOPs.

        How many tokens give so many FLOPs? A weight in `bfloat16` has $2$ bytes, and costs $2$
        FLOPs per token. So $8$ tokens cost `2 * 8 = 16` FLOPs for $2$ bytes, $8$ FLOPs per byte. On
        many ranks, nearly all weights have to arrive. Then
        [the FLOPs per byte](#flops_per_byte_follow_the_tokens) equal the number of tokens. So
        {PEAK / NVLINK:.0f} FLOPs per byte need {PEAK / NVLINK:.0f} tokens:
    """)
    nvlink_tokens, network_tokens = PEAK / NVLINK, PEAK / NETWORK  # @inspect nvlink_tokens as tokens, network_tokens as tokens
    assert (round(nvlink_tokens), round(network_tokens)) == (2199, 19790), \
        "In the forward pass, 2199 tokens hide the traffic over NVLink, and 19790 tokens hide the traffic over the network."
    question(r"""
        A GPU has `32768` tokens in a step, enough to hide the traffic of FSDP. To save memory,
        somebody runs them in `4` microbatches, and FSDP gathers the weights for each. A GPU does
        `19790` FLOPs in the time that one byte takes to arrive, and in `bfloat16` with many ranks
        it does one FLOP per byte for each token. How long does the forward traffic take now, as a
        multiple of the time of the arithmetic?
    """, answer=19790 / (32768 / 4), check=PEAK / NETWORK * 4 / 32768, unit="times", within=0.02,
        wrong={"Weights are gathered again for each microbatch.": 19790 / 32768},
        hint="How many tokens use a weight each time it has arrived?",
        why=r"""
            A microbatch has `8192` tokens, and the weights are gathered for each. So there are
            `8192` FLOPs per byte, but `19790` would be needed: the traffic takes `2.4` times as
            long as the arithmetic.
        """)


def weights_can_be_gathered_once() -> None:
    """A published run has microbatches too small to hide FSDP, and gathers weights once in a step."""
    note(rf"""
        [FSDP's traffic is hidden](#enough_tokens_hide_the_weights) if enough tokens use a weight
        each time it has arrived. Did a published run have enough?

        Over the network of Llama 3 [@llama3], an H100 can do {PEAK / NETWORK:,.0f} FLOPs in the
        time that one byte takes to arrive. In `bfloat16`, each token costs $2$ FLOPs for the $2$
        bytes of a weight: one FLOP per byte. So the GPU needs {PEAK / NETWORK:,.0f} tokens each
        time a weight arrives.

        `run` is the first [layout](#the_axes_multiply) in their report, with `8192` GPUs. `8` of
        them share each matrix (*tensor*), in each of `16` *stages*. These `8 * 16 = 128` GPUs are a
        group, and work on the same tokens. There are `64` groups, each with its own tokens
        (*data*). FSDP cuts a GPU's weights into shards along this last axis. In a step, a group has
        `32` sequences, and each of them is one microbatch:
    """)
    run = LLAMA_3[0]  # tensor 8, stages 16, data 64
    assert (run.gpus, run.tensor * run.stages, run.data, run.sequences) == (8192, 128, 64, 32), \
        "The layout has 8192 GPUs, 64 groups of 128, and 32 sequences for each group."  # @hide
    needed = PEAK / NETWORK  # @inspect needed as tokens
    microbatch = run.sequence  # @inspect microbatch as tokens
    assert microbatch == 8192 < needed, \
        "A microbatch has 8192 tokens, too few to hide the traffic."
    step_tokens = run.tokens / run.data  # @inspect step_tokens as tokens
    assert step_tokens == 32 * microbatch > 13 * needed, \
        "The 32 microbatches of a group's step have 32 * 8192 = 262144 tokens, more than 13 times what is needed."
    figure(plot_arrivals({"a microbatch": microbatch, "a group's step": step_tokens}, needed),
        caption=r"""
            Tokens that use a weight each time it has arrived, if it is gathered for each microbatch
            and if it is gathered once in a step. The dashed line is the number of tokens that hides
            the traffic over the network in the forward pass.
        """,
        alt="Two bars on a logarithmic scale. That of a microbatch ends before the dashed line, that of a group's step far beyond it.")
    note(r"""
        So if the run had gathered weights for each microbatch, it would have waited for the
        network. Instead, it kept gathered weights until the end of the step [@llama3]. Then each
        weight arrives once, and the tokens of all `32` microbatches use it. The price is memory,
        because a GPU then keeps the weights that it computes with, and not only its shard of them.
    """)
    question(r"""
        A run waits for the network, because FSDP gathers weights for each of many small
        microbatches. Which of these can help? Give `1` or `0` for each: keep gathered weights until
        the end of the step; larger microbatches; more groups, each with the same microbatches as
        before.
    """, answer=[1, 1, 0], check=[int(32 * 8192 > 19790), int(4 * 8192 > 19790), int(8192 > 19790)],
        hint="Which of them change how many tokens use a weight each time it has arrived?",
        why=r"""
            The first two let more tokens use a weight that has arrived. With more groups, a
            microbatch has the same number of tokens as before, and a GPU has to gather nearly all
            of its weights either way.
        """)


def enough_width_hides_the_tokens() -> None:
    """With a large model dimension, tensor parallelism in a node spends more time computing than sending."""
    note(rf"""
        In [tensor parallelism](#a_block_needs_four_all_reduces) `8` GPUs share each matrix of a
        Transformer block. To do so, they all-reduce the tokens twice in the forward pass. Does
        sending take longer than computing? Both grow with the number of tokens, so one token is
        enough to tell.

        Take a tiny block first, with model dimension $d = 4$ and $12 d^2$ weights, on two GPUs.

        - *Computing.* The block has `12 * 16 = 192` weights, so each of the two GPUs has
          `192 / 2 = 96`. A token costs `2` FLOPs for each weight: `2 * 96 = 192` FLOPs.
        - *Sending.* The token has `4` elements of `2` bytes in `bfloat16`, `8` bytes. On two GPUs,
          [an all-reduce sends](#a_ring_sends_less_than_twice_the_tensor) its tensor once, `8`
          bytes. Two all-reduces send `16` bytes.

        That is `192 / 16 = 12` FLOPs per byte. With twice the model dimension it is twice as many,
        because the number of weights grows with $d^2$, and the bytes of a token only with $d$. In
        the code, `all_reduce_bytes` counts what an all-reduce sends.

        Now take a block of Llama 3's 405B model [@llama3], without the scores of attention. `WIDTH`
        is its $d$, `16384`, and `BLOCK` is the number of its weights, {BLOCK / 1e9:.3f} billion. On
        `8` GPUs, a token costs `2 * BLOCK / 8`, about {2 * BLOCK / 8e6:.0f} million FLOPs on each
        GPU, and the GPU sends {2 * all_reduce_bytes(2 * WIDTH, 8):,.0f} bytes: two all-reduces,
        each `2 * 7/8` times the `2 * 16384` bytes of the token. In the time that it takes to send
        one byte, an H100 can do
        [its peak divided by a link's bandwidth](#enough_tokens_hide_the_weights): `nvlink` FLOPs
        inside a node, and `network` FLOPs between nodes:
    """)

    def flops_per_byte(d: int, weights: float, gpus: int) -> float:
        computed = 2 * weights / gpus  # FLOPs of a GPU for a token
        sent = 2 * all_reduce_bytes(2 * d, gpus)  # two all-reduces
        return computed / sent

    assert flops_per_byte(4, 12 * 4**2, 2) == 12, \
        "The tiny block on two GPUs does 12 FLOPs per byte."
    assert flops_per_byte(8, 12 * 8**2, 2) == 24, \
        "With twice the model dimension it does 24."
    intensity = flops_per_byte(WIDTH, BLOCK, 8)  # @inspect intensity as FLOP/B
    nvlink, network = PEAK / NVLINK, PEAK / NETWORK  # @inspect nvlink as FLOP/B, network as FLOP/B
    assert (round(nvlink), round(network)) == (2199, 19790), \
        "While one byte is sent, an H100 can do 2199 FLOPs over NVLink, and 19790 over the network."  # @hide
    assert round(intensity) == 6949, \
        "The published block does 6949 FLOPs per byte."  # @hide
    assert nvlink < intensity < network, \
        "For each byte that it sends, a GPU computes 6949 FLOPs: more than the 2199 that it can do while one byte is sent over NVLink, and fewer than the 19790 while one byte is sent over the network."
    note(r"""
        So over NVLink, the links inside a node, sending takes less time than computing. Over the
        network it takes more. That is why GPUs that share matrices are in one node.
    """)
    assert flops_per_byte(WIDTH, BLOCK, 4) > 2 * intensity, \
        "On 4 GPUs instead of 8, a GPU does more than twice as many FLOPs per byte."  # @hide
    widths = [2**n for n in range(10, 16)]  # @hide
    figure(plot_widths({gpus: {d: flops_per_byte(d, 12 * d * d, gpus) for d in widths} for gpus in (2, 4, 8)},
                       (WIDTH, intensity), {"needed over the network": network, "needed over NVLink": nvlink}),
        caption="FLOPs for each byte that a GPU sends, if a block of $12 d^2$ weights is shared by `2`, `4` or `8` GPUs. Above a dashed line, sending takes less time than computing. The point is the block of Llama 3's 405B model [@llama3] on `8` GPUs.",
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
    """Shapes and counts need no second rank: a thousand ranks can be simulated in one process."""
    note(r"""
        You want to know what each of `1024` GPUs would hold and exchange, and you have one CPU. Can
        you find out?

        PyTorch can pretend, with its `fake` backend: one process plays one rank of a process group
        that claims to have `1024` ranks. Its
        [collectives](#an_all_reduce_leaves_the_sum_everywhere) send nothing and return at once,
        with tensors of the correct shape. So the values are made up. An all-reduce of a tensor of
        ones should give `1024` everywhere:
    """)
    ranks = dist.get_world_size()  # @inspect ranks
    ones = torch.ones(4)
    dist.all_reduce(ones)  # @unnoticed: left out: what is simulated adds nothing
    assert ones.sum() == 4, "The simulated all-reduce has added nothing."
    note(r"""
        But shapes and counts are correct, because they depend only on sizes, not on values. Take
        four feed-forward layers, on a *mesh* of `128` by `8` ranks. The `8` ranks of a row of the
        mesh cut each matrix into `8` slices
        ([tensor parallelism](#columns_then_rows_need_one_sum)). The `128` ranks of a column of the
        mesh have the same slice, and cut it into `128` shards ([FSDP](#fsdp_does_the_same)).
        `shard` does both:
    """)
    mesh = init_device_mesh("cpu", (128, 8), mesh_dim_names=("data", "tensor"))
    model = feed_forward_layers(4, 1024, 4096)
    total = sum(p.numel() for p in model.parameters())  # @inspect total
    shard(model, mesh)
    held = sum(local_part(p).numel() for p in model.parameters())  # @inspect held
    assert held * ranks == total == 4 * 3 * 1024 * 4096, \
        "Each rank holds a 1024th of the weights."
    note("Which collectives does a step need? PyTorch's `CommDebugMode` counts them:")
    x = torch.zeros(2, 1024, requires_grad=True)  # @unnoticed: 2: any number of rows
    # CommDebugMode makes FSDP warn about views, harmlessly.
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
        So each of the four layers needs six collectives:

        - one reduce-scatter of gradients,
        - two all-gathers of weights, one forward and one backward,
        - three all-reduces of tokens: one forward, and two backward, because two matrices have the
          tokens as input.

        None of these numbers depends on the number of ranks.
    """)
    question(r"""
        The model has `4` layers, each with `3` matrices of `1024` by `4096` weights, `4` bytes
        each. How many bytes of them does each of the `1024` ranks hold?
    """, answer=4 * 4 * 3 * 1024 * 4096 // 1024, check=sum(local_part(p).nbytes for p in model.parameters()), unit="B", within=0.02,
        wrong={"That is with tensor parallelism alone.": 4 * 4 * 3 * 1024 * 4096 // 8},
        why="All weights have `4 * 3 * 1024 * 4096 * 4` bytes. Both axes cut them, into `128 * 8 = 1024` parts.")
