"""All together: meshes of ranks, published layouts, what hides the traffic, and a search for a layout."""
import warnings
from collections.abc import Iterator
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
from wire import HEADER, Wire, from_all_ranks

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
        axis for each way. Two cards then talk along one axis about weights, and along another about
        tokens. How long should each axis be? That follows from what each link carries in a second,
        and from what a card holds.
    """)
    one_axis_carries_weights_the_other_tokens()
    the_axes_multiply()
    enough_tokens_hide_the_weights()
    enough_width_hides_the_tokens()
    a_search_finds_a_published_layout()
    a_thousand_ranks_can_be_simulated()


class Layer(nn.Module):
    """A feed-forward part whose result is added to its input."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.part = FeedForward(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.part(x)
        return y


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
        Four ranks can share a model in two ways at once. Arrange them in a table of two rows and
        two columns, a *mesh*: ranks 0 and 1 are the first row, ranks 2 and 3 the second.

        - The two ranks of a *row* have the same tokens and share each matrix, by
          [tensor parallelism](#columns_then_rows_need_one_sum): each computes with half of it, and
          an all-reduce adds up what they get for the tokens. This is the axis *tensor*.
        - The two ranks of a *column* have different tokens and use the same half of each matrix.
          Each keeps a quarter of the matrix, by [FSDP](#fsdp_does_the_same), and gets the other
          quarter of its half when it is needed. This is the axis *data*.

        Who sends how much to whom? We train two layers with a batch of `64` rows, and then with
        `1024`. `feed_forward_layers` makes them with the same weights on every rank, and `shard`
        cuts them along both axes. `Wire` counts the bytes to each other rank:
    """)
    rank = dist.get_rank()
    row, column = divmod(rank, 2)
    across = 2 * (1 - row) + column  # the other rank of this column
    beside = 2 * row + (1 - column)  # the other rank of this row
    corner = 2 * (1 - row) + (1 - column)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    model = feed_forward_layers(2, 128, 320)
    shard(model, mesh)
    alone = feed_forward_layers(2, 128, 320)  # @hide
    sends = {}
    for batch in (64, 1024):
        x = torch.randn(batch, 128)
        mine = x.chunk(2)[row]  # the rows of this rank
        # The first step sets up connections and buffers.
        model(mine).square().mean().backward()
        model.zero_grad()
        with Wire() as wire:
            model(mine).square().mean().backward()
        sends[batch] = from_all_ranks(wire.to)
        alone.zero_grad()  # @hide
        alone(x).square().mean().backward()  # @hide
        expected = gradients_at(alone, row, column)  # @hide
        ours = [local_part(p.grad) for p in model.parameters() if p.grad is not None]  # @hide
        for part, wanted in zip(ours, expected, strict=True):  # @hide
            assert torch.allclose(part, wanted, atol=1e-7), \
                "Each rank has its part of the gradient of one process, up to rounding."
    small, large = (sends[batch][rank] for batch in sends)  # by this rank
    weights = [small[across], large[across]]  # @inspect weights as B
    assert weights[0] == weights[1], \
        "Along the axis data, a rank sends as many bytes for 64 rows as for 1024."
    tokens = [small[beside], large[beside]]  # @inspect tokens as B
    assert 15 < tokens[1] / tokens[0] < 16, \
        "Along the axis tensor, it sends nearly 16 times the bytes for 16 times the rows."
    assert [small[corner], large[corner]] == [0, 0], \
        "To the rank in the other row and column, it sends nothing."  # @zero: no axis joins them
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
    note(rf"""
        So weights and their gradients travel along the axis data, and tokens along the axis tensor.
        A rank sends its quarter of the weights once forward and once backward, and adding up
        gradients takes here as much as both. These bytes do not depend on the batch, because the
        model is the same for any. Those of tokens grow with it, but for {4 * 12 * HEADER} bytes of
        headers.
    """)
    sizes = [batch // 2 * 128 * 4 for batch in sends]  # bytes of the tokens  # @hide
    by_formula = [4 * all_reduce_bytes(size, 2) for size in sizes]  # @hide
    above = [sent - size for sent, size in zip(tokens, by_formula)]  # @hide
    assert above == [4 * 12 * HEADER] * 2, \
        "Tokens take four all-reduces with 12 headers each: one forward in each layer, and two backward in the second."  # @hide
    half = sum(p.nbytes for p in alone.parameters()) / 2  # @hide
    gathers, sums = 2 * half / 2, all_reduce_bytes(half, 2)  # @hide
    ratio = weights[0] / (gathers + sums)  # @hide
    assert 1 < ratio < 1.02, \
        "Weights take two all-gathers and one all-reduce of half the model, and headers."  # @hide
    question(r"""
        In a step, each rank of such a mesh sends `983040` bytes of weights and gradients along the
        axis data, for any batch. Along the axis tensor it sends `1024` bytes for each row of the
        batch. For how many rows does it send as much along both axes?
    """, answer=983040 / 1024, check=(gathers + sums) / (by_formula[0] / 64), unit="rows",
        hint="Which of the two grows with the batch?",
        why="Weights and gradients take the same bytes for any batch, and each row adds `1024` bytes along the axis tensor: `983040 / 1024`.")


@dataclass(frozen=True)
class Layout:
    """How a run shares its work: the number of ranks along each axis, and what a step is."""

    tensor: int
    context: int
    stages: int
    data: int
    sequence: int   # tokens
    sequences: int  # of each rank along the axis data, in a step
    reached: float  # FLOP/s of a card, as reported

    @property
    def cards(self) -> int:
        """Cards in all: the axes multiply."""
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
    """In a layout the axes multiply to the number of cards."""
    note(r"""
        How do `16384` cards train one model? The report on Llama 3 tells it for the 405B model
        [@llama3]: they share the work in four ways at once. Think of the cards as a grid with four
        axes. The lengths of the axes are the *layout*:

        - *tensor*: cards that share each matrix,
        - *context*: cards that share one long text,
        - *stages*: cards that have different layers, in a pipeline,
        - *data*: groups of cards that have tokens of their own.

        Each card has one place along each axis. So the lengths multiply to the number of cards. The
        second layout is `8 * 1 * 16 * 128 = 16384`. Cards along the axes tensor and stages work on
        the same tokens, and those along the axis context on parts of the same texts. So only groups
        along the axis data add to the tokens of a step: here `128` groups take `16` texts of `8192`
        tokens each. `LLAMA_3` holds the three layouts of the report:
    """)
    cards = [layout.cards for layout in LLAMA_3]  # @inspect cards
    assert cards == [8 * 16 * 64, 16384, 8 * 16 * 16 * 8], \
        "The axes of each layout multiply to the number of cards that the report gives."
    tokens = [layout.tokens for layout in LLAMA_3]  # @inspect tokens
    assert tokens == [64 * 32 * 8192, 128 * 16 * 8192, 8 * 16 * 131072], \
        "With each of the three layouts, a step has nearly 17 million tokens."
    beside = 2048 // 16  # cards of a stage of DeepSeek-V3  # @hide
    copies = beside // 64  # @hide
    assert (beside, copies) == (128, 2), \
        "A stage of DeepSeek-V3 has 128 cards, with two copies of each of its experts."  # @hide
    misbelief("Experts are one more axis of a layout.", rf"""
        They are none: the cards of the axis data hold them. DeepSeek-V3 was trained on `2048` cards
        with `16` stages, so a stage had `2048 / 16 = 128` cards [@deepseek-v3]. Each of them had
        tokens of its own, so all {beside} count along the axis data. The experts of a stage were
        spread over `64` of these same cards, and the other `64` held {copies - 1} more copy.
    """)
    note(r"""
        How well do the layouts use the cards? The *MFU* is the rate that a card reached over its
        peak. In a plain pipeline, cards would wait in a share of the time, the
        [bubble](#microbatches_fill_the_pipeline). With `16` stages and `16` sequences, one after
        the other, it is `15 / (16 + 15)`, nearly half:
    """)
    mfu = [layout.reached / PEAK for layout in LLAMA_3]  # @inspect mfu as %
    printed = [0.43, 0.41, 0.38]
    difference = max(abs(ours - theirs) for ours, theirs in zip(mfu, printed))  # @inspect difference as %
    assert difference < 0.006, \
        "The reported rates over the peak are the MFUs of the report, within 0.6 points."
    waits = [float(bubble(a.stages, a.sequences)) for a in LLAMA_3]  # @inspect waits as %
    assert waits[1] == 15 / (16 + 15), \
        "With the second layout, cards would wait 48 % of the time."
    assert [round(wait, 2) for wait in waits] == [0.32, 0.48, 0.48], \
        "In a plain pipeline, cards would wait 32, 48 and 48 % of the time."
    rows = [
        f"| {a.cards:,} | {a.tensor} | {a.context} | {a.stages} | {a.data} "
        f"| {m:.1%} | {w:.0%} |"
        for a, m, w in zip(LLAMA_3, mfu, waits)
    ]  # @hide
    note("| cards | tensor | context | stages | data | MFU | bubble |\n|--:|--:|--:|--:|--:|--:|--:|\n" + "\n".join(rows))
    note(r"""
        The run lost less than this bubble, because it [interleaved](#more_pieces_wait_less): it
        gave each card several short pieces of the model in place of one long one.
    """)
    question(r"""
        A run has `4096` cards, `8` along the axis tensor, `8` stages, and all others along the axis
        data. Each group along the axis data takes `16` sequences of `8192` tokens. How many tokens
        has a step?
    """, answer=4096 // (8 * 8) * 16 * 8192, check=Layout(8, 1, 8, 64, 8192, 16, 0).tokens, unit="tokens", within=0.02,
        wrong={"Cards along the axes tensor and stages share their tokens.": 4096 * 16 * 8192},
        hint="How many groups are there along the axis data?",
        why="`4096 / (8 * 8) = 64` groups along the axis data take `16` sequences of `8192` tokens each. Cards along the axes tensor and stages work on these same tokens.")


NVLINK = 900e9 / 2  # bytes a second that a card sends inside a computer, of both directions together [nvidia-hopper]
NETWORK = 400e9 / 8  # bytes a second between computers: a card has 400 Gbit/s [llama3]


@requires("linux, ranks=4")
def enough_tokens_hide_the_weights() -> None:
    """With enough tokens on each rank, FSDP's traffic takes no time."""
    note(r"""
        In [FSDP](#fsdp_does_the_same) each of $G$ ranks keeps a shard, a part of all weights, and
        gathers the weights of a layer before it runs the layer. While a card computes one layer,
        the weights of the next can arrive. If they arrive in time, the traffic costs no time: it
        *hides*. How many tokens must a card have for that?

        Take one weight of $w$ bytes. Once it has arrived, it takes $2$ FLOPs for each of $T$
        tokens. So more tokens mean more computing for each byte. With `256` tokens and $w$ = `4`,
        that is `2 * 256 / 4 = 128` FLOPs for each byte. On four ranks only `3 / 4` of the weights
        have to arrive, because a rank has its own shard. That makes `128 * 4 / 3`. In general:

        [@eq:hide]: $$
        \frac{\text{FLOPs}}{\text{byte}} = \frac{2\,T}{w} \cdot \frac{G}{G-1}
        $$

        Here FLOPs and bytes are counted, by `flops` and `Wire`. `feed_forward_layers` makes four
        layers, and `shard` applies FSDP to them on four ranks:
    """)
    ranks = dist.get_world_size()
    model = feed_forward_layers(4, 128, 320)
    shard(model, init_device_mesh("cpu", (ranks,), mesh_dim_names=("data",)))
    ratios = {}
    for tokens in (32, 256):  # @unnoticed: 32, 256: any numbers of tokens
        with torch.no_grad(), Wire() as wire:
            work = flops(partial(model, torch.randn(tokens, 128)))
        assert wire.sent == 4 * (3 * 128 * 320 * 3 + 18 * HEADER), \
            "In each of 4 layers, a rank sends three fourths of the weights, and 18 headers."  # @hide
        ratios[tokens] = work / wire.sent  # @inspect ratios[tokens] as FLOP/B
    exact = {tokens: 2 * tokens / 4 * ranks / (ranks - 1) for tokens in ratios}  # @inspect exact
    close = [ratios[tokens] / exact[tokens] for tokens in ratios]  # @inspect close
    assert 0.97 < min(close) <= max(close) < 1, \
        "Counted FLOPs per byte are those of the formula, a little less because of headers."
    note(rf"""
        How many FLOPs for each byte are enough? As many as a card can compute while it sends one
        byte. An H100 computes {PEAK / 1e12:.0f} teraFLOPs a second. To cards in the same computer
        it sends {NVLINK / 1e9:.0f} GB/s, over *NVLink* [@nvidia-hopper], and to other computers
        {NETWORK / 1e9:.0f} GB/s, over the network of Llama 3 [@llama3]. Weights in `bfloat16` have
        $w$ = `2` bytes. With many ranks, the formula then gives one FLOP per byte for each token.
        So `near` and `far` below are also the tokens that a card needs:
    """)
    near, far = PEAK / NVLINK, PEAK / NETWORK  # @inspect near as tokens, far as tokens
    assert (round(near), round(far)) == (2199, 19790), \
        "2199 tokens hide the traffic over NVLink, and 19790 tokens that over the network."
    note(r"""
        Did the cards that trained Llama 3 [@llama3] have that many? There were `8192` of them at
        first. With FSDP on all of them, each card would have its own part of a step's tokens,
        `alone`. In the [layout](#the_axes_multiply) that was used, groups of `8 * 16 = 128` cards
        share their tokens: `8` share each matrix, in each of `16` stages. So a card works on the
        tokens of its group, `together`. It computes and gathers only a `128`th of the weights, but
        FLOPs and bytes shrink alike, and the formula stays:
    """)
    alone = LLAMA_3[0].tokens / LLAMA_3[0].cards  # @inspect alone as tokens
    assert alone == 2048 < near < far, \
        "With FSDP alone, a card would have 2048 tokens: too few even for NVLink."
    together = LLAMA_3[0].tokens / LLAMA_3[0].data  # @inspect together as tokens
    assert together == 8 * 16 * alone > 13 * far, \
        "In a group of 128 cards it has 128 times as many: more than enough for the network."
    note(r"""
        So FSDP on all cards would have waited for the network, because each card has too few
        tokens. That is one reason to share matrices and layers as well.
    """)
    question(r"""
        A card sends `100` GB/s and computes `400` teraFLOPs a second. With FSDP in `bfloat16` and
        many ranks, it computes one FLOP for each byte and each token. From how many tokens on does
        the traffic hide?
    """, answer=400e12 / 100e9, check=400e12 * 2 / 100e9 / 2, unit="tokens", within=0.02,
        hint="How many FLOPs does the card compute while it sends one byte?",
        why="While it sends one byte, the card computes `400e12 / 100e9 = 4000` FLOPs. So it needs `4000` tokens, one FLOP per byte for each.")


def enough_width_hides_the_tokens() -> None:
    """With enough width, tensor parallelism computes longer than it sends."""
    note(r"""
        In [tensor parallelism](#heads_are_columns) `8` cards share each matrix of a Transformer
        block. For that, they all-reduce the tokens: twice forward, once after attention and once
        after the feed-forward part. Is that slower than computing? We compare the FLOPs that a card
        computes with the bytes that it sends. Both grow with the number of tokens, so one token is
        enough to tell.

        Take a block of Llama 3's 405B model [@llama3]. A token has `WIDTH` = `16384` numbers of `2`
        bytes. On `8` cards an all-reduce sends `2 * 7 / 8` times these bytes. The block has `BLOCK`
        weights, about three billion, of which a card has an eighth, and each takes `2` FLOPs for a
        token. (The scores of attention are left out.)
    """)
    sent = 2 * all_reduce_bytes(WIDTH * 2, 8)  # @inspect sent as B
    assert sent == 2 * (2 * 7 / 8) * 16384 * 2, \
        "For two all-reduces of a token, a card sends 114688 bytes."
    computed = 2 * BLOCK / 8  # @inspect computed as FLOP
    inside = computed / sent  # @inspect inside as FLOP/B
    near, far = PEAK / NVLINK, PEAK / NETWORK  # @inspect near as FLOP/B, far as FLOP/B
    assert (round(near), round(far)) == (2199, 19790), \
        "In the time of one byte, an H100 can compute 2199 FLOPs over NVLink, and 19790 over the network."
    assert near < inside < far, \
        "For each byte, a card computes more FLOPs than that over NVLink, and fewer over the network."
    note(rf"""
        `near` and `far` are the FLOPs that an H100 can compute while it sends one byte: over
        *NVLink*, the fast link inside a computer [@nvidia-hopper], and over the network between
        computers [@llama3]. A card computes {inside:,.0f} FLOPs for each byte. So over NVLink
        sending takes less time than computing, and over the network more. Therefore cards that
        share matrices stand in one computer.

        A wider model computes more for each byte: with twice the width $d$ a token has twice the
        bytes, but the weights of a block, which grow as $d^2$, are $4$ times as many.

        Even over NVLink the traffic is not free. A block waits for each all-reduce, so the time of
        sending is added to that of computing. (Backward there are two all-reduces again, and a
        weight takes `4` FLOPs.)
    """)
    forward = near / inside  # @inspect forward as %
    step = near * 2 * sent / ((2 + 4) * BLOCK / 8)  # @inspect step as %
    assert 0.31 < forward < 0.32, \
        "Over NVLink, sending adds nearly a third to the time of computing forward."
    assert 0.2 < step < 0.22, \
        "To the time of a whole step it adds about a fifth."
    figure(plot_hiding(
            {t: 2 * t / 2 for t in (256, 2**22)}, inside,
            {"the network asks for this": far, "NVLink asks for this": near},
            {"FSDP alone": LLAMA_3[0].tokens / LLAMA_3[0].cards,
             "with tensor and stages": LLAMA_3[0].tokens / LLAMA_3[0].data}),
        caption="How many FLOPs a card computes for each byte that it sends, of tokens (tensor parallelism) and of weights ([FSDP](#enough_tokens_hide_the_weights)). Above a dashed line, sending takes less time than computing. The points are the run on `8192` cards: with FSDP alone, and as it was.",
        alt=r"""
            Over the tokens at each rank, the line of FSDP's weights rises as fast as they do, and
            that of tensor parallelism's tokens is flat. FSDP alone lies just below what NVLink asks
            for. With tensor and stages it lies above what the network asks for.
        """)
    misbelief("A larger batch makes tensor parallelism cheaper.", r"""
        It does not: it has more to compute and as much more to send. A wider model does, or fewer
        cards that share a matrix.
    """)
    question(r"""
        A block has `850` million weights, and a token has `8192` numbers of `2` bytes. `8` cards
        share the block. Forward, a weight takes `2` FLOPs for a token. Each card all-reduces the
        token twice, and an all-reduce sends `2 * 7/8` times its bytes. How many FLOPs does a card
        compute for each byte?
    """, answer=2 * 850e6 / 8 / (2 * all_reduce_bytes(8192 * 2, 8)), check=850e6 / (4 * 7 * 8192), unit="FLOP/B", within=0.02,
        wrong={"Each card has an eighth of the weights only.": 2 * 850e6 / (2 * 2 * 7 / 8 * 8192 * 2)},
        hint="How many FLOPs does one token take on a card, and how many bytes are two all-reduces of it?",
        why="A token takes `2 * 850e6 / 8` FLOPs on a card. Two all-reduces of its `16384` bytes send `2 * 2 * 7/8 * 16384 = 57344` bytes. The ratio is about `3706`.")


def layouts(cards: int, sequences: int) -> Iterator[Layout]:
    """All layouts of `cards` cards in powers of two, a sequence or more for each data rank."""
    for tensor in (1, 2, 4, 8, 16, 32):
        for stages in (1, 2, 4, 8, 16, 32, 64):
            data = cards // (tensor * stages)
            if 1 <= data <= sequences:
                each = sequences // data
                yield Layout(tensor, 1, stages, data, 8192, each, 0.0)


def step_seconds(layout: Layout) -> float:
    """Estimates the seconds of a step in a layout, with arithmetic at the peak.

    The bubble stretches arithmetic and sums of tokens; FSDP costs what does not hide.
    """
    tokens = layout.tokens / layout.data
    share = layout.tensor * layout.stages
    attention = 12 * LAYERS * WIDTH * layout.sequence / 2
    computing = (6 * N + attention) * tokens / share / PEAK
    link = NVLINK if layout.tensor <= 8 else NETWORK  # eight in a computer
    one_sum = all_reduce_bytes(tokens * WIDTH * 2, layout.tensor) / link
    summing = LAYERS / layout.stages * 4 * one_sum
    waiting = float(bubble(layout.stages, layout.sequences))
    # Weights go out in bfloat16, gradients come back in float32.
    others = (layout.data - 1) / layout.data
    weights = (2 + 4) * N / share * others / NETWORK
    return (computing + summing) / (1 - waiting) + max(0, weights - computing)


def card_bytes(layout: Layout, kept: int) -> float:
    """Estimates the bytes on a card; the feed-forward part keeps `kept` rows for each token.

    With the first stage of ZeRO and 1F1B. A row is one of the hidden width.
    """
    share = layout.tensor * layout.stages
    # Weights in bfloat16; gradients, master copy and moments in shards.
    state = 2 * N / share + 16 * N / layout.cards
    norms, attention = 2 * (2 * WIDTH + 4), 2 * (3 * WIDTH + 2 * KEYS) + 4 * 128
    token = norms + attention + 2 * (WIDTH + kept * HIDDEN)
    open_now = min(layout.sequences, layout.stages)
    tokens = open_now * layout.sequence
    return state + tokens * token * LAYERS / layout.stages / layout.tensor


@aside
def a_search_finds_a_published_layout() -> None:
    """Of all layouts that fit, a simple estimate picks the one of Llama 3."""
    note(r"""
        Llama 3's 405B model was trained on `16384` H100 cards, with `2048` sequences of `8192`
        tokens in a step [@llama3]. How should so many cards share the work? A
        [layout](#the_axes_multiply) gives three numbers, whose product is the number of cards: how
        many cards share each matrix (*tensor*), how many stages the pipeline has (*stages*), and
        how many groups have tokens of their own (*data*). We try all layouts in powers of two.

        `step_seconds` estimates how long a step takes:

        - the arithmetic, at the peak of the card, and the all-reduces of shared matrices, over
          NVLink or, with more than `8` cards, over the network;
        - both made longer by the *bubble*, the share of time in which cards of a pipeline wait;
        - the traffic of FSDP, as far as it takes longer than the arithmetic.

        `card_bytes` estimates what a card holds: its part of weights, gradients and moments, and
        what it keeps for the backward pass. In a feed-forward part that is `3` rows of numbers for
        each token. `ranked` sorts the layouts that fit on a card, the fastest first:
    """)
    tried = [*layouts(16384, 2048)]
    published = Layout(8, 1, 16, 128, 8192, 16, 0.0)
    assert len(tried) == 36, "There are 36 layouts in powers of two."
    assert published in tried, "The layout of Llama 3 is among them."
    memory = CARDS["H100 SXM"].memory

    def ranked(rows: int) -> list[Layout]:
        fitting = [a for a in tried if card_bytes(a, rows) < memory]
        return sorted(fitting, key=step_seconds)

    best = ranked(3)
    first = [(a.tensor, a.stages, a.data) for a in best[:3]]  # @inspect first  # @unnoticed: 3: as many as one likes
    assert len(best) == 19, "19 of the 36 layouts fit."
    assert best[0] == published, \
        "The fastest of these is the layout of Llama 3: tensor 8, stages 16, data 128."
    seconds = [step_seconds(layout) for layout in best[:4]]  # @inspect seconds as s
    fastest, second, third, fourth = seconds
    assert 1 < second / fastest < third / fastest < 1.03, \
        "The second and the third take up to 3 % longer."
    assert 1.3 < fourth / fastest < 1.4, "The fourth takes a third longer."
    took = 6 * N * published.tokens / (published.cards * LLAMA_3[1].reached)  # @hide
    close = step_seconds(published) / took  # @hide
    assert 0.97 < close < 1, \
        "The estimate is within 3 % of the seconds that follow from the rate in the report."  # @hide
    note(r"""
        Why this one? More than `8` cards for each matrix would have to use the slow network. Fewer
        stages would make the bubble smaller, but then each card has more layers, and they do not
        fit. So the answer depends on memory. What if a feed-forward part keeps only `2` rows for
        each token, or `4` as in
        [the block that we counted](#lecture_03.the_block_of_today_keeps_other_tensors)?
    """)
    leaner = ranked(2)
    place = leaner.index(published) + 1  # @inspect place
    assert place == 3, \
        "With two rows it is only the third: layouts with fewer stages fit, and are faster."
    too_much = card_bytes(published, 4) / memory  # @inspect too_much as times
    assert 1.05 < too_much < 1.1, \
        "With four rows it does not fit: it takes 5 to 10 % more than the card has."
    misbelief("The best layout follows from the model alone.", r"""
        It follows from the model, the links and the memory together. A few bytes more or less for
        each token change it.
    """)
    question(r"""
        In a step, each of the `16384` cards computes for `1024` tokens. A token takes `6` FLOPs for
        each of `404` billion weights, and the peak of an H100 is `989.5` teraFLOPs a second. How
        many seconds does this arithmetic take at the peak?
    """, answer=6 * 404e9 * 1024 / 989.5e12, check=6 * 404e9 * 2**24 / 16384 / PEAK, unit="s", within=0.05,
        why="`6 * 404e9 * 1024` FLOPs, divided by the peak. The estimate says more than twice that: all-reduces, the bubble and attention are the rest.")


@aside
@requires("simulated ranks=1024")
def a_thousand_ranks_can_be_simulated() -> None:
    """Shapes and counts need no second rank: a thousand can be simulated in one process."""
    note(r"""
        You want to know what each of `1024` cards would hold and exchange, and you have one
        processor. PyTorch can pretend: one process plays one rank of a process group that says it
        has `1024`. Its [collectives](#an_all_reduce_leaves_the_sum_everywhere) send nothing and
        return at once, with tensors of the right shape. So the values are made up. An all-reduce of
        a tensor of ones should give `1024` everywhere:
    """)
    ranks = dist.get_world_size()  # @inspect ranks
    ones = torch.ones(4)
    dist.all_reduce(ones)  # @unnoticed: left out: what is simulated adds nothing
    assert ones.sum() == 4, "The simulated all-reduce has added nothing."
    note(r"""
        But shapes and counts are right. Take four feed-forward layers, on a *mesh* of `128` by `8`
        ranks. The `8` ranks of a row share each matrix
        ([tensor parallelism](#columns_then_rows_need_one_sum)). The `128` ranks of a column share
        what each keeps of that ([FSDP](#fsdp_does_the_same)). `shard` cuts the model like this:
    """)
    mesh = init_device_mesh("cpu", (128, 8), mesh_dim_names=("data", "tensor"))
    model = feed_forward_layers(4, 1024, 4096)
    total = sum(p.numel() for p in model.parameters())  # @inspect total
    shard(model, mesh)
    held = sum(local_part(p).numel() for p in model.parameters())  # @inspect held
    assert held * ranks == total == 4 * 3 * 1024 * 4096, \
        "Each rank holds a 1024th of the weights."
    note("Which collectives does a step take? `CommDebugMode` counts them:")
    x = torch.zeros(2, 1024, requires_grad=True)  # @unnoticed: 2: any number of rows
    # To count it hands on views of outputs, and FSDP would warn of one.
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
        So each layer takes one reduce-scatter of gradients, two all-gathers of weights, forward and
        backward, and three all-reduces of tokens: one forward, and one backward for each of the two
        matrices that read them. None of these numbers depends on how many ranks there are.
    """)
    question(r"""
        The model has `4` layers, each with `3` matrices of `1024` by `4096` weights, `4` bytes
        each. How many bytes of them does each of the `1024` ranks hold?
    """, answer=4 * 4 * 3 * 1024 * 4096 // 1024, check=sum(local_part(p).nbytes for p in model.parameters()), unit="B", within=0.02,
        wrong={"That is with tensor parallelism alone.": 4 * 4 * 3 * 1024 * 4096 // 8},
        why="All weights take `4 * 3 * 1024 * 4096 * 4` bytes. Both axes cut them, into `128 * 8 = 1024` parts.")
