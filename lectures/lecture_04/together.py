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
from .tensor_parallel import FeedForward, all_reduce_bytes, gradients, slices


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


@requires("linux, ranks=4")
def one_axis_carries_weights_the_other_tokens() -> None:
    """On a mesh, one axis carries weights, and the other one tokens."""
    note(r"""
        A *mesh* is a grid of ranks. Here it has two rows and two columns: ranks 0 and 1 are the
        first row, ranks 2 and 3 the second.

        - The two ranks of a row have the same tokens and share each matrix product. This is the
          axis *tensor*.
        - The two ranks of a column have different tokens and the same slice of the weights, of
          which each keeps half, by FSDP. This is the axis *data*.

        So a rank has one neighbor along each axis, and one across the corner. Who sends how much to
        whom, for a batch of `64` rows and for one of `1024`? `feed_forward_layers` makes two layers
        with the same weights on every rank, and `shard` cuts them along both axes:
    """)
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    row = mesh.get_local_rank("data")
    # Neighbors along data, along tensor, along none.
    across, beside, corner = rank ^ 2, rank ^ 1, rank ^ 3
    cut, alone = (feed_forward_layers(2, 128, 320) for _ in range(2))
    shard(cut, mesh)
    talk = {}
    for batch in (64, 1024):
        x = torch.randn(batch, 128)
        # The first step sets up connections and buffers.
        cut(x.chunk(2)[row]).square().mean().backward()  # @unnoticed: 2: any rows will do
        cut.zero_grad()
        with Wire() as wire:
            cut(x.chunk(2)[row]).square().mean().backward()
        alone.zero_grad()
        alone(x).square().mean().backward()
        products = slices(gradients(alone), mesh.get_local_rank("tensor"), 2)
        for ours, theirs in zip(gradients(cut).values(), products.values()):
            wanted = theirs.chunk(2)[row]
            assert torch.allclose(local_part(ours), wanted, atol=1e-7), \
                "Each rank has its part of the gradient of one process."
        talk[batch] = from_all_ranks(wire.to)
    mine = {batch: table[rank] for batch, table in talk.items()}
    small, large = (sent[across] for sent in mine.values())  # @inspect small as B, large as B
    tokens = [sent[beside] for sent in mine.values()]  # @inspect tokens as B
    assert small == large, "Along the axis data, as much is sent for any batch."
    assert 15 < tokens[1] / tokens[0] < 16, \
        "Along the axis tensor, 16 times the batch sends nearly 16 times the bytes."
    diagonal = [sent[corner] for sent in mine.values()]
    assert diagonal == [0, 0], "Across the corner, nothing is sent."  # @zero: no axis joins them
    figure(plot_traffic({f"a batch of {batch}": table for batch, table in talk.items()}),
        caption=r"""
            Bytes from each rank (row) to each other rank (column) in one step. Ranks 0 and 1 share
            products, and so do ranks 2 and 3.
        """,
        alt=r"""
            Two tables of four by four cells. In both, ranks two apart exchange the same number of
            bytes. Ranks next to each other exchange few with the small batch, and most with the
            large one.
        """)
    note(r"""
        Where do these bytes come from? Along the axis tensor, tokens are all-reduced: forward once
        in each of the two layers, and backward twice in the second layer, for `gate` and for `up`.
        (The first layer has no layer below it that needs a gradient.) Along the axis data, FSDP
        gathers a layer's weights twice and adds up its gradients once,
        [which costs gloo as much as an all-reduce](#a_ring_sends_less_than_twice_the_tensor). Each
        rank's slice is half of the model:
    """)
    sizes = [batch // 2 * 128 * 4 for batch in talk]  # bytes of the tokens
    by_formula = [4 * all_reduce_bytes(size, 2) for size in sizes]  # @inspect by_formula as B
    above = [sent - size for sent, size in zip(tokens, by_formula)]  # @inspect above as B
    assert above == [4 * 12 * HEADER] * 2, \
        "Tokens take the bytes of four all-reduces, and 12 headers each."
    half = sum(p.nbytes for p in alone.parameters()) / 2
    gathers, sums = 2 * half / 2, all_reduce_bytes(half, 2)
    ratio = small / (gathers + sums)  # @inspect ratio
    assert 1 < ratio < 1.02, \
        "Weights take two all-gathers and an all-reduce of half the model, and headers."
    question(r"""
        In a step, each rank of such a mesh sends `983040` bytes of weights along the axis data, for
        any batch. Along the axis tensor it sends `1024` bytes for each row of the batch. For how
        many rows does it send as much along both axes?
    """, answer=983040 / 1024, check=(gathers + sums) / (by_formula[0] / 64), unit="rows",
        hint="Which of the two grows with the batch?",
        why="Weights take the same bytes for any batch, and each row adds `1024` bytes along the axis tensor: `983040 / 1024`.")


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
        The report on Llama 3 says in a table how the 405B model was trained [@llama3]: first on
        `8192` cards, then on `16384`, at last on `16384` with long texts. For each it gives a
        *layout*, the lengths of four axes: tensor (ranks that share a product), context (ranks that
        share a text), stages (of a pipeline) and data (ranks with tokens of their own). `LLAMA_3`
        holds the three layouts.

        What follows from the lengths? Each card has one place along each axis, so their product is
        the number of cards. And only along the axis data are tokens different. So the tokens of a
        step are those of a sequence, times the sequences of a rank, times the ranks along the axis
        data:
    """)
    cards = [layout.cards for layout in LLAMA_3]  # @inspect cards
    assert cards == [8192, 16384, 16384], \
        "The axes multiply to the reported numbers of cards."
    tokens = [layout.tokens for layout in LLAMA_3]  # @inspect tokens
    assert tokens == [2**24] * 3, \
        "With each layout, a step has 16 million tokens."
    beside = 2048 // 16  # cards of a stage of DeepSeek-V3  # @hide
    copies = beside // 64  # @hide
    assert (beside, copies) == (128, 2), \
        "A stage of DeepSeek-V3 has 128 cards, with two copies of each of its experts."  # @hide
    misbelief("Experts are one more axis of a layout.", rf"""
        They are none. DeepSeek-V3 was trained on `2048` cards, with `16` stages, and the experts of
        a stage were spread over `64` cards [@deepseek-v3]. But these cards do not share tokens:
        each has tokens of its own, and sends them to the experts. So all `2048 / 16` cards of a
        stage are ranks along the axis data, and its experts lie *inside* this axis: these {beside}
        cards hold {copies} copies of each expert.
    """)
    note(r"""
        How well do these layouts use their cards? The report gives the FLOP/s that each card
        reached. Over the peak of an H100, that is the *MFU*. In a pipeline of $G$ stages with $\mu$
        microbatches, ranks wait in a share of $(G-1)/(\mu+G-1)$ of the time, the *bubble* of
        [@eq:bubble]. Let a microbatch be one sequence:
    """)
    mfu = [layout.reached / PEAK for layout in LLAMA_3]  # @inspect mfu as %
    printed = [0.43, 0.41, 0.38]
    difference = max(abs(ours - theirs) for ours, theirs in zip(mfu, printed))  # @inspect difference as %
    assert difference < 0.006, \
        "MFU, the reported rate over the peak, is within a point of the table's."
    waits = [float(bubble(a.stages, a.sequences)) for a in LLAMA_3]  # @inspect waits as %
    assert [round(wait, 2) for wait in waits] == [0.32, 0.48, 0.48], \
        "In a plain pipeline, a rank would wait 32, 48 and 48 % of the time."
    rows = [
        f"| {a.cards:,} | {a.tensor} | {a.context} | {a.stages} | {a.data} "
        f"| {m:.1%} | {w:.0%} |"
        for a, m, w in zip(LLAMA_3, mfu, waits)
    ]
    note("| cards | tensor | context | stages | data | MFU | bubble |\n|--:|--:|--:|--:|--:|--:|--:|\n" + "\n".join(rows))
    note(r"""
        The run lost less than this bubble, because it
        [interleaved its stages](#more_pieces_wait_less).
    """)
    question(r"""
        A run has `4096` cards, `8` along the axis tensor, `8` stages, and all others along the axis
        data. Each rank along the axis data takes `16` sequences of `8192` tokens. How many tokens
        has a step?
    """, answer=4096 // (8 * 8) * 16 * 8192, check=Layout(8, 1, 8, 64, 8192, 16, 0).tokens, unit="tokens", within=0.02,
        hint="How many ranks are there along the axis data?",
        why="`4096 / (8 * 8) = 64` ranks along the axis data take `16` sequences of `8192` tokens each. Ranks along the other axes share these tokens.")


NVLINK = 900e9 / 2  # bytes a second that a card sends inside a computer, of both directions together [nvidia-hopper]
NETWORK = 400e9 / 8  # bytes a second between computers: a card has 400 Gbit/s [llama3]


@requires("linux, ranks=4")
def enough_tokens_hide_the_weights() -> None:
    """With enough tokens on each rank, FSDP's traffic takes no time."""
    note(r"""
        In FSDP each of $G$ ranks keeps a shard of the weights, and gathers the weights of a layer
        before it runs the layer. While a card computes one layer, the weights of the next can
        arrive. If they arrive in time, the traffic costs no time: it *hides*. When do they?

        Forward, each weight takes $2$ FLOPs for each of $T$ tokens, and it has $w$ bytes. A share
        of $(G-1)/G$ of the weights has to arrive, because the rank has its own shard already. So
        for each byte, a card computes

        [@eq:hide]: $$
        \frac{\text{FLOPs}}{\text{byte}} = \frac{2\,T}{w} \cdot \frac{G}{G-1}
        $$

        More tokens give each byte more time to arrive. Here both are counted, FLOPs and bytes, with
        $w = 4$ in `float32`. `feed_forward_layers` makes four layers, and `shard` applies FSDP to
        them on four ranks:
    """)
    ranks = dist.get_world_size()
    model = feed_forward_layers(4, 128, 320)
    shard(model, init_device_mesh("cpu", (ranks,), mesh_dim_names=("data",)))
    ratios = {}
    for tokens in (32, 256):  # @unnoticed: 32, 256: any numbers of tokens
        with torch.no_grad(), Wire() as wire:
            work = flops(partial(model, torch.randn(tokens, 128)))
        assert wire.sent == 4 * (3 * 128 * 320 * 3 + 18 * HEADER), \
            "In each of 4 layers, a rank sends three fourths of the weights, and 18 headers."
        ratios[tokens] = work / wire.sent  # @inspect ratios[tokens] as FLOP/B
    exact = {tokens: 2 * tokens / 4 * ranks / (ranks - 1) for tokens in ratios}  # @inspect exact
    close = [ratios[tokens] / exact[tokens] for tokens in ratios]  # @inspect close
    assert 0.97 < min(close) <= max(close) < 1, \
        "Counted FLOPs per byte are those of the formula, less some for headers."
    note(rf"""
        The traffic hides if computing takes at least as long as sending. An H100 computes
        {PEAK / 1e12:.0f} teraFLOPs a second. Inside a computer its NVLink sends {NVLINK / 1e9:.0f}
        GB/s [@nvidia-hopper]. Between computers, Llama 3's network sends {NETWORK / 1e9:.0f} GB/s
        [@llama3]. In `bfloat16`, where $w$ = `2`, and with many ranks, the formula gives one FLOP
        per byte for each token. So a rank needs as many tokens as a card computes FLOPs while it
        sends one byte: `near` over NVLink, `far` over the network.

        How many tokens had a card that trained Llama 3 [@llama3]? `LLAMA_3[0]` is the layout of its
        first run. `alone` is what each card would have with FSDP on all cards. `shared` is what a
        rank along the axis *data* has in the layout as it was used. The cards of such a rank work
        on the same tokens: they share each matrix product (the axis *tensor*) or hold different
        layers (the axis *stages*). Each of them computes and gathers its part of the weights only,
        so FLOPs and bytes shrink alike, and the formula stays:
    """)
    near, far = PEAK / NVLINK, PEAK / NETWORK  # @inspect near as tokens, far as tokens
    assert (round(near), round(far)) == (2199, 19790), \
        "2199 tokens hide the traffic inside a computer, 19790 between computers."
    alone = LLAMA_3[0].tokens / LLAMA_3[0].cards  # @inspect alone as tokens
    assert alone == 2048 < near < far, \
        "With FSDP alone, a card of Llama 3 would have 2048 tokens: too few."
    shared = LLAMA_3[0].tokens / LLAMA_3[0].data  # @inspect shared as tokens
    assert 13 * far < shared < 14 * far, \
        "A rank along the axis data has more than enough."
    note(r"""
        With FSDP on all cards, a step would wait for the network, because each card has too few
        tokens. In the layout as it was used, fewer ranks divide the tokens of a step, and each has
        more than enough. That is one reason for the axes tensor and stages.
    """)
    question(r"""
        A rank sends `100` GB/s and computes `400` teraFLOPs a second. From how many tokens on each
        rank does the forward traffic of FSDP hide, in `bfloat16` and with many ranks?
    """, answer=400e12 / 100e9, check=400e12 * 2 / 100e9 / 2, unit="tokens", within=0.02,
        hint="How many FLOPs does the card compute while it sends one byte?",
        why="With `2` bytes a weight and many ranks, there is one FLOP per byte for each token. The card computes `400e12 / 100e9 = 4000` FLOPs while it sends a byte.")


def enough_width_hides_the_tokens() -> None:
    """With enough width, tensor parallelism computes longer than it sends."""
    note(r"""
        In tensor parallelism, ranks share each matrix of a block, and all-reduce the tokens: twice
        forward, once after attention and once after the feed-forward part. How much does a card
        compute for each byte that it sends? FLOPs and bytes both grow with the number of tokens, so
        that number cancels, and one token is enough to tell. With the width $d$ of a token, the
        weights of a block grow as $d^2$, and so do the FLOPs for a token; the bytes of a token grow
        as $d$. So a wider model computes more for each byte. Take a block of Llama 3's 405B model
        [@llama3], with `BLOCK` weights, shared by `8` cards. Forward, a weight takes `2` FLOPs for
        a token; the scores of attention are left out. A token has `WIDTH` numbers of `2` bytes.
        `all_reduce_bytes` gives what a card sends to all-reduce it:
    """)
    sent = 2 * all_reduce_bytes(WIDTH * 2, 8)  # @inspect sent as B
    inside = 2 * BLOCK / 8 / sent  # @inspect inside as FLOP/B
    near, far = PEAK / NVLINK, PEAK / NETWORK  # @inspect near as FLOP/B, far as FLOP/B
    assert (round(near), round(far)) == (2199, 19790), \
        "NVLink asks for 2199 FLOPs for each byte, the network for 19790."
    assert near < inside < far, \
        "A card computes more than NVLink asks for, and less than the network does."
    note(rf"""
        Is that enough? While an H100 sends one byte, it could compute {near:,.0f} FLOPs over
        NVLink, the link inside a computer [@nvidia-hopper], and {far:,.0f} over the network between
        computers [@llama3]. So over NVLink sending takes less time than computing, and over the
        network more. Therefore the cards that share products stand in one computer. But a block
        waits for each all-reduce, so the time of sending is added to that of computing. Backward
        there are two all-reduces again, and a weight takes `4` FLOPs:
    """)
    forward = near / inside  # @inspect forward as %
    step = near * 2 * sent / ((2 + 4) * BLOCK / 8)  # @inspect step as %
    assert 0.31 < forward < 0.32, \
        "Not hidden, the traffic over NVLink adds nearly a third to the time of computing forward."
    assert 0.2 < step < 0.22, \
        "To that of a whole step it adds about a fifth."
    note(r"""
        The figure has both kinds of traffic, for Llama 3's run on `8192` cards [@llama3]. The more
        tokens a card has, the more it computes for each byte of FSDP's weights. The left point is
        FSDP on all cards. The right one is the layout that was used: FSDP between groups of cards,
        which share products or hold different layers. Such a group has many more tokens than a card
        would have alone.
    """)
    figure(plot_hiding(
            {t: 2 * t / 2 for t in (256, 2**22)}, inside,
            {"the network asks for this": far, "NVLink asks for this": near},
            {"FSDP alone": LLAMA_3[0].tokens / LLAMA_3[0].cards,
             "with tensor and stages": LLAMA_3[0].tokens / LLAMA_3[0].data}),
        caption="How many FLOPs a card computes for each byte that it sends, for weights (FSDP) and for tokens (tensor parallelism). Above a dashed line, sending takes less time than computing.",
        alt=r"""
            Over the tokens at each rank, the line of FSDP's weights rises as fast as they do, and
            that of tensor parallelism's tokens is flat. FSDP alone lies just below what NVLink asks
            for. With tensor and stages it lies above what the network asks for.
        """)
    misbelief("A larger batch makes tensor parallelism cheaper.", r"""
        It does not: it has more to compute and as much more to send. A wider model does, or fewer
        cards along the axis.
    """)
    question(r"""
        A block has `850` million weights and the width `8192`, and `8` cards share it. Forward,
        each card all-reduces a token twice, and an all-reduce sends `2 * 7/8` times the bytes of
        the token, which has `2` for each number. How many FLOPs does a card compute for each byte?
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
        Llama 3's 405B model was trained on `16384` cards, with `2048` sequences of `8192` tokens in
        a step [@llama3]. A layout says how many cards share products (tensor), how many stages the
        pipeline has, and how many ranks have tokens of their own (data). Which layout is the
        fastest that fits? We try all in powers of two, and put the counts of this lecture together.

        `step_seconds` estimates the time of a step. It adds the arithmetic at the peak and the
        all-reduces of tensor parallelism, which nothing hides. The bubble of the pipeline stretches
        both. FSDP costs what does not hide behind the arithmetic. `card_bytes` estimates what a
        card holds: weights, its shards of the rest, and the activations of all microbatches that
        the schedule `1F1B` keeps. `ranked` sorts the layouts that fit, the fastest first:
    """)
    tried = [*layouts(16384, 2048)]
    published = Layout(8, 1, 16, 128, 8192, 16, 0.0)
    assert len(tried) == 36, "There are 36 layouts."
    assert published in tried, "The layout of Llama 3 is among them."
    memory = CARDS["H100 SXM"].memory

    def ranked(kept: int) -> list[Layout]:
        fitting = [a for a in tried if card_bytes(a, kept) < memory]
        return sorted(fitting, key=step_seconds)

    best = ranked(3)
    first = [(a.tensor, a.stages, a.data) for a in best[:3]]  # @inspect first  # @unnoticed: 3: as many as one likes
    assert best[0] == published, "It is the fastest that fits."
    assert len(best) == 19, "19 layouts fit."
    seconds = [step_seconds(layout) for layout in best[:4]]  # @inspect seconds as s
    fastest, second, third, fourth = seconds
    assert 1 < second / fastest < third / fastest < 1.03, \
        "Two others are nearly as fast, within 3 %."
    assert 1.3 < fourth / fastest < 1.4, "The next one takes a third longer."
    note(r"""
        The layouts that come close have more stages and as many cards along the axis tensor. More
        than eight cards there would have to use the network. But the answer depends on memory.
        Above, the feed-forward part keeps three rows of its hidden width for each token: `gate`,
        `up`, and the input of `down`. What if it kept only two, or four as in
        [the block that we counted](#lecture_03.the_block_of_today_keeps_other_tensors)?
    """)
    leaner = ranked(2)
    place = leaner.index(published) + 1  # @inspect place
    assert place == 3, \
        "With two rows it is the third: layouts with fewer stages fit and are faster."
    too_much = card_bytes(published, 4) / memory  # @inspect too_much as times
    assert 1.05 < too_much < 1.1, \
        "With four rows it does not fit: it is too large by 5 to 10 %."
    misbelief("The best layout follows from the model.", r"""
        It follows from the model, the links and the memory together. A few bytes more or less for
        each token change it.
    """)
    note(r"""
        How good is the estimate? The report gives the rate that each card reached, which gives the
        seconds that a step took:
    """)
    took = 6 * N * published.tokens / (published.cards * LLAMA_3[1].reached)  # @inspect took as s
    close = step_seconds(published) / took  # @inspect close
    assert 0.97 < close < 1, \
        "The estimate is within 3 % of the seconds that the report gives."
    note(r"""
        That is closer than it deserves. No card multiplies at its peak, which makes the estimate
        too short. And the run interleaved its stages, which made its bubble smaller than ours.
    """)
    question(r"""
        In the published layout, how many seconds of a step are the arithmetic of the matrices at
        the peak of an H100, `989.5` teraFLOPs a second? Take `404` billion weights and `1024`
        tokens for each of the `16384` cards.
    """, answer=6 * 404e9 * 1024 / 989.5e12, check=6 * 404e9 * 2**24 / 16384 / PEAK, unit="s", within=0.05,
        why="`6` FLOPs for each weight and token are `6 * 404e9 * 1024`, divided by the peak. The estimate says more than twice that: all-reduces, the bubble and attention are the rest.")


@aside
@requires("simulated ranks=1024")
def a_thousand_ranks_can_be_simulated() -> None:
    """Shapes and counts need no second rank: a thousand can be simulated in one process."""
    note(r"""
        Who has no thousand cards can still see what each of them would hold. PyTorch has a process
        group that says it has `1024` ranks, and sends nothing. Its collectives return at once, with
        tensors of the right shape. Their values are made up:
    """)
    ranks = dist.get_world_size()  # @inspect ranks
    ones = torch.ones(4)
    dist.all_reduce(ones)  # @unnoticed: left out: what is simulated adds nothing
    assert ones.sum() == 4, "After the all-reduce, nothing has been added."
    note(r"""
        So no value can be trusted, but every count can. We cut four feed-forward layers on a mesh
        of `128` by `8` ranks: their state by FSDP along the axis data, and their products along the
        axis tensor:
    """)
    mesh = init_device_mesh("cpu", (128, 8), mesh_dim_names=("data", "tensor"))
    model = feed_forward_layers(4, 1024, 4096)
    total = sum(p.numel() for p in model.parameters())  # @inspect total
    shard(model, mesh)
    held = sum(local_part(p).numel() for p in model.parameters())  # @inspect held
    assert held * ranks == total == 4 * 3 * 1024 * 4096, \
        "A rank holds a 1024th of the weights."
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
        "A step has 4, 8 and 12 collectives of three kinds."
    note(r"""
        For each layer there are one reduce-scatter of gradients, two all-gathers of weights,
        forward and backward, and three all-reduces of tokens: one forward, and backward one for
        each of the two matrices that read them. (By hand, a rank adds up its parts of the two
        gradients first, and [one is enough](#heads_are_columns).) None of these numbers depends on
        how many ranks there are.
    """)
    question(r"""
        The model has `4` layers, each with `3` matrices of `1024` by `4096` weights in `float32`.
        How many bytes of them does each of the `1024` ranks hold?
    """, answer=4 * 4 * 3 * 1024 * 4096 // 1024, check=sum(local_part(p).nbytes for p in model.parameters()), unit="B", within=0.02,
        wrong={"That is with tensor parallelism alone.": 4 * 4 * 3 * 1024 * 4096 // 8},
        why="All weights take `4 * 3 * 1024 * 4096 * 4` bytes. Both axes cut them, into `128 * 8 = 1024` parts.")
