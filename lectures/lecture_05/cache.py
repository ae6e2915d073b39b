"""The cache as memory: pages, shared prefixes, fewer bytes per element, and a state instead."""
import math

import torch
from counters import flops
from lecture_03.block import Cache, Transformer
from lecture_03.published import SMALL
from torch import Tensor

from litbook import aside, explore, figure, misbelief, note, question

from .figures import plot_pages
from .llama import (
    BANDWIDTH,
    KV_BYTES,
    PEAK,
    WEIGHTS,
    prefill_flops,
    prefill_seconds,
    sequences_that_fit,
    step_seconds,
)


def the_cache_as_memory() -> None:
    """The cache as memory."""
    note(r"""
        The KV cache grows while a service runs: each token of each sequence adds keys and values.
        This part is about where keys and values are kept, which of them can be shared, and how to
        make them smaller.
    """)
    pages_waste_half_a_page()
    a_shared_prefix_is_computed_once()
    a_smaller_cache_lets_more_sequences_in()
    eight_bits_barely_change_attention()
    a_state_can_replace_the_cache()


def pages_waste_half_a_page() -> None:
    """A KV cache in pages wastes about half a page per sequence."""
    note(r"""
        When a request arrives, nobody knows how long its answer will be. How much memory should be
        set aside for its KV cache?

        The simple way is to reserve memory for the maximum length. By hand: sequences may have up
        to $16$ tokens, and one stops after $9$. The memory for $16 - 9 = 7$ tokens was never used.

        The other way is to allocate memory in *pages* of a fixed number of tokens, say $4$. The
        sequence gets its first page with its first token, the next one with the fifth token, and
        the third one with the ninth. Three pages have room for $12$ tokens, so the room for $3$
        tokens is unused. The pages may be anywhere in memory: their numbers, in order, are the
        sequence's *page table*, with which attention finds the keys and values.

        Only the last page can have unused room, because a new page is allocated only when the
        previous one is full. The last page of a sequence may hold $1$, $2$, $3$ or $4$ tokens. Then
        room for $3$, $2$, $1$ or $0$ tokens is unused, $1.5$ on average: nearly half a page,
        however long the sequence is. Operating systems allocate memory in this way, and vLLM uses
        it for the KV cache [@kwon2023]. Its `block_size` is the number of tokens in a page
        [@vllm-args].

        Draw the lengths of `20_000` sequences, `600` tokens on average, and at most `8192`. A page
        has room for `16` tokens, so on average the room for $(0 + 1 + \dots + 15) / 16 = 7.5$
        tokens should be unused:
    """)
    lengths = (600 * torch.empty(20_000).exponential_()).ceil().clamp(max=8192)
    page = 16  # tokens
    pages = (lengths / page).ceil()
    unused = (pages * page - lengths).mean().item()  # @inspect round(unused, 1) as tokens
    # Drawn with ten seeds, it was between 7.4 and 7.6.
    assert 7.3 < unused < 7.7, \
        "There is unused room for 7.5 tokens, to within 0.2: nearly half a page."
    share_used = (lengths.sum() / (pages * page).sum()).item()  # @inspect share_used as %
    assert 0.98 < share_used < 0.99, \
        "In pages, more than 98 % of the memory holds tokens."
    share_reserved = (lengths.mean() / 8192).item()  # @inspect share_reserved as %
    assert 0.07 < share_reserved < 0.08, \
        "If memory for 8192 tokens is reserved per sequence, tokens fill little more than 7 % of it."
    every = torch.arange(1, 16 * 100 + 1)  # @hide
    assert ((-every) % 16).double().mean() == 7.5, \
        "If every length is equally frequent, exactly 7.5 tokens of a page of 16 are unused."  # @hide
    by_hand, table = [], []  # @hide
    for position in range(9):  # @hide
        if position % 4 == 0:
            table.append(position)
        by_hand.append(len(table))
    assert by_hand == [1, 1, 1, 1, 2, 2, 2, 2, 3], \
        "Pages of 4 come with the first, the fifth and the ninth token."  # @hide
    note(r"""
        A published study also found much waste. In the systems that it measured, which reserved
        memory in advance, only `20.4` to `38.2` percent of the cache's memory held tokens
        [@kwon2023].
    """)
    figure(plot_pages({"A": 9, "B": 6, "C": 3}, 4, order="ABACBA"),
        caption=r"""
            Small pages, as three sequences A, B and C fill them. A page belongs to one sequence;
            only the last page of each has unused room.
        """,
        alt=r"""
            Six rows of four cells. Three rows belong to A, two to B and one to C, in mixed order.
            The last row of A has three empty cells, that of B two, and that of C one.
        """)

    def unused_share(tokens_per_page: int, mean_length: int) -> dict[str, float]:  # @hide
        scaled = (lengths * (mean_length / 600)).ceil()
        room = (scaled / tokens_per_page).ceil() * tokens_per_page
        return {"unused": (1 - scaled.sum() / room.sum()).item()}

    grid = explore(unused_share, over={"tokens_per_page": [1, 4, 16, 64, 256, 1024], "mean_length": [100, 600, 2400]},
        at={"tokens_per_page": 16, "mean_length": 600}, kind="bars", unit="%", limit=("a twentieth", 0.05),
        do="For each mean length, how large can a page be if at most a twentieth of the memory may be unused?",
        see="For `100` tokens on average, `4`; for `600`, `16` (a page of `64` just misses it); for `2400`, `64`.",
        caption="The share of the cache's memory that is unused, for lengths drawn at random.",
        alt="A bar that grows with the page and shrinks with the mean length, next to a line at a twentieth.")  # @hide
    largest = {m: max(p for p, mean in grid if mean == m and grid[p, m]["unused"] < 0.05) for m in (100, 600, 2400)}  # @hide
    assert largest == {100: 4, 600: 16, 2400: 64}, \
        "These are the largest pages of the grid that waste less than 5 %."  # @hide
    misbelief("To be safe, a service has to reserve memory for the longest answer.", rf"""
        In pages, nothing is reserved in advance: {share_used:.0%} of the memory held tokens,
        instead of {share_reserved:.0%}. If all pages are in use, the service pauses a sequence,
        gives its pages to others, and later recomputes its cache.
    """)
    question(r"""
        With pages of `1` token nothing would be unused, but the page table gets longer. A sequence
        has `600` tokens. Divide the number of entries of its page table with pages of `1` token by
        the number with pages of `16`. What is the ratio?
    """, answer=600 / 38, check=-(-600 // 1) / -(-600 // 16), unit="times", within=0.02,
        hint="The table has one entry per page.",
        why="The table has an entry per page. `600 / 16` is `37.5`, so `38` pages are needed instead of `600`. And with pages of `1` token, attention has to look up an address for every token.")


PAGE = 4  # tokens


class PagedCache(Cache):
    """The KV cache of one sequence in one layer, in pages of a pool that all sequences share."""

    def __init__(self, pool: Tensor, free: list[int]) -> None:
        self.pool = pool  # keys and values: [2, page, offset, KV head, element]
        self.free = free  # numbers of the pages that nobody has
        self.table: list[int] = []  # this sequence's pages, in order
        self.length = 0  # tokens so far

    def extended(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Adds keys and values of new tokens, and returns those of all tokens so far."""
        for key, value in zip(k[0], v[0]):  # one token after the other
            offset = self.length % PAGE
            if offset == 0:  # the last page is full
                self.table.append(self.free.pop())
            page = self.table[-1]
            self.pool[0, page, offset] = key
            self.pool[1, page, offset] = value
            self.length += 1
        # The pages in the order of the table, joined to one row of tokens.
        keys, values = self.pool[:, self.table].flatten(1, 2)
        return keys[None, : self.length], values[None, : self.length]


def new_pools(pages: int) -> list[tuple[Tensor, list[int]]]:
    """Returns, for each layer of the small model, a pool of `pages` pages and the shuffled list of its free pages' numbers."""
    shape = 2, pages, PAGE, SMALL.kv_heads, SMALL.head
    return [(torch.zeros(shape).double(), torch.randperm(pages).tolist())
            for _ in range(SMALL.layers)]


def a_shared_prefix_is_computed_once() -> None:
    """A prefix that many requests share is computed and kept once."""
    note(r"""
        A chat service puts the same long instructions before each user's question. Does the model
        have to process them again for every user?

        By hand, with [pages](#pages_waste_half_a_page) of $4$ tokens: instructions of $8$ tokens
        need $2$ pages, and a question of $4$ tokens needs $1$. Two users need $3 + 3 = 6$ pages if
        each has all pages to itself, and $2 + 1 + 1 = 4$ if both page tables begin with the same
        two pages.

        A prefix can be shared, because the keys and values of a token depend only on this token and
        on the tokens before it. No question comes before the instructions, so their keys and values
        are the same for every question. This is *prefix caching* [@zheng2024].

        A small model processes a prefix of `8` tokens once, and then two questions.

        - `new_pools(16)` makes `16` pages for each layer, with a list of the free pages.
        - `first` has a `PagedCache` for each layer: it takes pages from this list, and keeps their
          numbers in its page table.
        - `share(first)` makes the caches for a question: their page tables begin with a copy of the
          prefix's page tables. No keys or values are copied.

        `logits` are computed with these caches, and `whole` without any cache. `shared` and
        `complete` are the FLOPs with and without the cached prefix:
    """)
    model = Transformer(SMALL).double().requires_grad_(False)
    prefix = torch.randint(100, (1, 8))
    questions = [torch.randint(100, (1, 4)) for _ in range(2)]
    pools = new_pools(16)
    first = [PagedCache(pool, free) for pool, free in pools]
    model(prefix, first)
    for tokens in questions:
        caches = share(first)  # the same pages, and then pages of its own
        logits = model(tokens, caches)  # @inspect list(logits.shape)
        whole = model(torch.cat([prefix, tokens], dim=1))  # @inspect list(whole.shape)
        assert torch.allclose(logits, whole[:, 8:]), \
            "For each question, the logits are those of a pass over prefix and question together, up to rounding."
    shared = flops(lambda: model(questions[0], share(first)))  # @inspect shared as FLOP
    complete = flops(lambda: model(torch.cat([prefix, questions[0]], dim=1)))  # @inspect complete as FLOP
    assert 2.9 < complete / shared < 3.1, \
        "With the prefix in the cache, a third of the tokens cost about a third of the FLOPs."
    used = 16 - len(pools[0][1])  # @hide
    assert used == 2 + 1 + 1 + 1, \
        "Three passes over questions, of 4 tokens each, use one page each, and the prefix uses two."  # @hide
    note(r"""
        For Llama-3-8B on an H100, take instructions of `1000` tokens and a question of `500`.
        `prefill_seconds` is a lower bound of the time of a prefill; `earlier` is the number of
        tokens that are already in the cache:
    """)
    cold = prefill_seconds(1500)  # @inspect cold as s
    warm = prefill_seconds(500, earlier=1000)  # @inspect warm as s
    kept = 1000 * KV_BYTES  # @inspect kept as B
    assert (round(1e3 * cold, 1), round(1e3 * warm, 1)) == (21.8, 7.4), \
        "A user's first token comes after 7.4 ms instead of 21.8 ms."
    assert kept == 131_072_000, \
        "Each further user saves 131 MB of cache."
    assert math.isclose(cold - warm, prefill_seconds(1000), rel_tol=1e-3), \
        "What is saved is the prefill of the instructions alone, to within 0.1 %."  # @hide
    ratio = prefill_flops(1250) / prefill_flops(250, earlier=1000)  # @hide
    assert 4.8 < ratio < 5, "Attention included, 1250 tokens cost nearly 5 times the FLOPs of 250 after 1000."  # @hide
    note("In vLLM, `enable_prefix_caching` switches prefix caching on [@vllm-args].")
    question(r"""
        A service puts the user's name *before* the instructions, to be friendly: name,
        instructions, question. The instructions have `1000` tokens, the names `2`, and all names
        begin with different tokens. For how many tokens can the keys and values be shared?
    """, answer=0, check=len([t for t, (a, b) in enumerate(zip("ACCC", "BCCC")) if "ACCC"[: t + 1] == "BCCC"[: t + 1]]),
        unit="tokens", hint="What do the keys of the instructions depend on, if a name comes first?",
        wrong={"The instructions are equal, but their tokens attend to the name.": 1000},
        why=r"""
            From the second layer on, the keys of a token depend on all tokens before it. With
            different names before them, equal instructions get different keys and values.
        """)
    question(r"""
        Instructions have `1000` tokens and a question has `250`. Attention does few FLOPs compared
        with the weights. By what factor does prefix caching reduce the FLOPs until the first token?
    """, answer=(1000 + 250) / 250, check=2 * WEIGHTS * 1250 / (2 * WEIGHTS * 250), unit="times",
        within=0.03, hint="Which tokens still have to run through the model?",
        why="Only the `250` tokens of the question still run through the model. (They still attend to the instructions, but that costs few FLOPs here.)")


def share(caches: list[PagedCache]) -> list[PagedCache]:
    """Returns caches, one per layer, for a new sequence: their page tables begin with the pages of `caches`, which must be full."""
    copies = []
    for cache in caches:
        copy = PagedCache(cache.pool, cache.free)
        copy.table, copy.length = list(cache.table), cache.length
        copies.append(copy)
    return copies


def a_smaller_cache_lets_more_sequences_in() -> None:
    """For a large batch of long sequences, a smaller cache helps more than smaller weights."""
    note(r"""
        Which should be stored in $8$ bits first, the weights or the KV cache?

        That depends on what a decode step spends its time on. By hand: reading the weights takes
        $10$ ms, reading one cache takes $1$ ms, and the latency target is $20$ ms. So
        $(20 - 10) / 1 = 10$ sequences meet the target.

        - With half the bytes for weights, reading them takes $5$ ms: $(20 - 5) / 1 = 15$ sequences.
        - With half the bytes for caches, each takes $0.5$ ms: $(20 - 10) / 0.5 = 20$ sequences.

        The larger the batch, the larger the share of the step that reads caches, because the
        weights are read once per step, but every sequence has its own cache. So in a large batch,
        halving the caches saves more.

        There is one more limit. Reading the weights and the arithmetic happen at the same time, so
        a step takes the longer of these, plus the time for reading the caches.

        Now Llama-3-8B on an H100, with `2048` tokens in each cache, and
        [a target](#a_latency_limit_picks_the_batch) of $20$ ms. `step_seconds` also takes the bytes
        per `weight` and per `element` of the cache. Weights of `1` byte are converted to `2` bytes
        before they are multiplied, so the arithmetic does not get faster:
    """)

    def largest_batch(weight: float, element: float) -> int:
        return max(b for b in range(1, 1000)
                   if step_seconds(b, 2048, weight, element) <= 0.020)

    neither = largest_batch(weight=2, element=2)  # @inspect neither as sequences
    only_weights = largest_batch(weight=1, element=2)  # @inspect only_weights as sequences
    only_cache = largest_batch(weight=2, element=1)  # @inspect only_cache as sequences
    both = largest_batch(weight=1, element=1)  # @inspect both as sequences
    assert (neither, only_weights) == (193, 209), \
        "Weights in 8 bits raise the batch from 193 to 209 sequences."
    assert only_cache == both == 362, \
        "A cache in 8 bits raises it to 362, with or without smaller weights."
    room = sequences_that_fit(2048, element=1)  # @hide
    assert room == 416 > only_cache, \
        "Memory has room for 416 caches in 8 bits."  # @hide
    alone = [1e3 * step_seconds(1, 2048, weight, element)
             for weight, element in ((2, 2), (1, 2), (2, 1))]  # @hide
    assert [round(ms, 2) for ms in alone] == [4.56, 2.32, 4.52], \
        "For one sequence it is the other way round: 4.56 ms, 2.32 ms with smaller weights, 4.52 ms with a smaller cache."  # @hide
    arithmetic = 1e3 * 2 * WEIGHTS / PEAK  # ms per sequence  # @hide
    reading, cache = 1e3 * WEIGHTS / BANDWIDTH, 1e3 * 2048 * KV_BYTES / BANDWIDTH  # ms  # @hide
    busy, saved = only_weights * arithmetic, 2 * reading - only_weights * arithmetic  # ms  # @hide
    assert neither + int(saved / cache) == only_weights, \
        "The time that smaller weights save is enough for 16 more caches."  # @hide
    assert both * arithmetic > 2 * reading, \
        "With 362 sequences, the arithmetic takes longer than reading weights of two bytes."  # @hide
    assert int(20 / (arithmetic + cache)) == only_weights, \
        "If each sequence adds its arithmetic and its cache, 20 ms are enough for 209 sequences."  # @hide
    half_a_byte = 1 / 2  # @hide
    assert largest_batch(half_a_byte, element=1) == both, \
        "Weights in 4 bits add nothing."  # @hide
    note(rf"""
        Smaller weights are read in {reading:.2f} ms instead of {2 * reading:.2f} ms. But with
        {only_weights} sequences the arithmetic takes longer, {busy:.2f} ms, and a step takes the
        longer of the two. So smaller weights save ${2 * reading:.2f} - {busy:.2f} = {saved:.2f}$
        ms, which is enough for {int(saved / cache)} more caches of {cache:.4f} ms. With {both}
        sequences the arithmetic takes {both * arithmetic:.2f} ms, longer than reading the weights
        in either format, so smaller weights add nothing.

        In vLLM, `kv_cache_dtype` is the format of keys and values [@vllm-args].
    """)
    misbelief("A KV cache with half the bytes halves the latency.", rf"""
        For one sequence of `2048` tokens, a token takes {alone[2]:.2f} ms instead of {alone[0]:.2f}
        ms: nearly all of the time goes to reading the weights. A smaller cache changes how many
        sequences meet the latency target together: {only_cache} instead of {neither}.
    """)
    question(r"""
        A service decodes one short request at a time, and never more. You can halve the bytes of
        the weights or of the cache, but not both. With the better choice, by what factor does the
        time per output token shrink, at most?
    """, answer=2.0, check=step_seconds(1, 0) / step_seconds(1, 0, weight=1), unit="times",
        hint="What does a decode step read if there is one sequence with a short cache?",
        why="Nearly all bytes of the step are weights, so halving these halves the time. A smaller cache changes nearly nothing here.")


@aside
def eight_bits_barely_change_attention() -> None:
    """For normally distributed keys and values, one byte per element changes attention by about a hundredth."""
    note(r"""
        Keys and values in $8$ bits use half the memory. How large is the error of attention then?

        By hand, round the key `[0.504, -1.27, 0.02]`. The largest absolute value, $1.27$, is mapped
        to $127$, so the *scale* is $1.27 / 127 = 0.01$. Divided by the scale and rounded, the
        elements are the integers $50$, $-127$ and $2$. Multiplied by the scale, they are $0.50$,
        $-1.27$ and $0.02$: the first is off by $0.004$.

        The error is small, because the integers from $-127$ to $127$ divide the range of each key
        into $254$ steps, and rounding is off by at most half a step. Such errors go up as often as
        down, so they partly cancel in the sums of attention.

        Draw `4096` keys and values of normally distributed elements, and `64` queries. Each key and
        each value of `128` elements has its own scale of `4` bytes:
    """)
    queries = torch.randn(64, 128)
    keys, values = torch.randn(2, 4096, 128)

    def rounded(x: Tensor) -> Tensor:
        scale = x.abs().amax(dim=-1, keepdim=True) / 127
        integers = (x / scale).round().to(torch.int8)
        restored: Tensor = integers * scale
        return restored

    def attend(keys: Tensor, values: Tensor) -> Tensor:
        scores = queries @ keys.T / 128**0.5
        mixed: Tensor = scores.softmax(dim=-1) @ values
        return mixed

    exact = attend(keys, values)
    difference = attend(rounded(keys), rounded(values)) - exact
    error = (difference.norm() / exact.norm()).item()  # @inspect error as %
    # Drawn with ten seeds, it was between 0.89 and 0.95 %.
    assert 0.0085 < error < 0.0100, \
        "The output of attention is off by about 0.9 %."
    per_element = 1 + 4 / 128  # bytes  # @inspect per_element as B
    scales = keys.abs().amax(dim=-1, keepdim=True) / 127  # @hide
    assert ((keys / scales).round().to(torch.int8).nbytes + scales.nbytes) / keys.numel() == per_element, \
        "With its scale, an element uses 1.03 bytes, as in such tensors."  # @hide
    key = torch.tensor([0.504, -1.27, 0.02])  # @hide
    assert torch.allclose(rounded(key), torch.tensor([0.50, -1.27, 0.02])), \
        "The key by hand comes back with 0.50 for 0.504."  # @hide
    gap = (rounded(keys) - keys).abs() / (keys.abs().amax(dim=-1, keepdim=True) / 127)  # @hide
    assert 0.49 < gap.max() < 0.501, \
        "No element is off by more than half a scale."  # @hide
    note(r"""
        In real models, some elements of the keys are much larger than the rest [@liu2024kivi]. The
        scale follows the largest element, so all others of this key are rounded in larger steps.
        Formats for caches therefore store such elements separately, or give each channel a scale.
    """)
    question(r"""
        The scale is shared by a whole page: `16` keys of `128` elements have one scale of `4`
        bytes. How many bytes does an element use, with its share of the scale?
    """, answer=1 + 4 / (16 * 128), check=(16 * 128 * 1 + 4) / (16 * 128), unit="B", within=0.0005,
        hint="How many elements share the `4` bytes?",
        wrong={"That is with a scale for each key.": 1.03125},
        why="`2048` elements share the scale. The price: the largest element of the page sets the step for all of its keys.")


@aside
def a_state_can_replace_the_cache() -> None:
    """Linear attention keeps a state of fixed size instead of a cache that grows."""
    note(r"""
        A KV cache grows with each token. Can a model remember the past in a fixed number of bytes?

        Yes, if attention drops the softmax. Then the output for a query $q$ is the sum of
        $(q \cdot k)\, v$ over all keys $k$ and values $v$ so far. Take numbers instead of vectors,
        by hand: keys $1$ and $2$, values $10$ and $20$, query $3$. Term by term, the output is
        $3 \cdot 1 \cdot 10 + 3 \cdot 2 \cdot 20 = 150$. But $3$ is a common factor:
        $3 \cdot (1 \cdot 10 + 2 \cdot 20) = 3 \cdot 50 = 150$.

        So the sum of $k\,v$ can be kept instead of all keys and values, because without the softmax
        the query is a factor of every term. With vectors the sum is a matrix, the *state*, to which
        each token adds $k v^\top$. This is *linear attention* [@katharopoulos2020].

        The state does not depend on the query, so query heads that share a KV head also share its
        state. Here are `4` query heads and one KV head; `tril` sets the products with later keys to
        zero:
    """)
    queries = torch.randn(4, 40, 8).double()  # four heads, 40 tokens
    keys, values = torch.randn(2, 40, 8).double()  # one head
    at_once = (queries @ keys.T).tril() @ values  # all pairs, masked
    state = torch.zeros(8, 8).double()
    outputs = []
    for token, (k, v) in enumerate(zip(keys, values)):
        state += torch.outer(k, v)
        outputs.append(queries[:, token] @ state)
    assert at_once.shape == (4, 40, 8), "Four query heads share the state."  # @hide
    assert torch.allclose(torch.stack(outputs, dim=1), at_once), \
        "One token at a time with a state gives the same as all pairs of tokens, up to rounding."
    note(r"""
        With the dimensions of Llama-3-8B, a layer would keep a state of `128` by `128` elements for
        each of `8` KV heads. An element of the state has `4` bytes, because thousands of terms are
        added to it. For each token, the KV cache of the layer has a key and a value for each of
        these heads, of `128` elements of `2` bytes:
    """)
    fixed = 8 * 128 * 128 * 4  # @inspect fixed as B
    per_token = 2 * 8 * 128 * 2  # @inspect per_token as B
    equal = fixed / per_token  # @inspect equal as tokens
    assert equal == 128, \
        "At 128 tokens both have the same size. Beyond that, the state is smaller than the cache."
    assert 32 * per_token == KV_BYTES, \
        "In 32 layers, these are the bytes of a token in the KV cache."  # @hide
    assert torch.zeros(8, 128, 128).nbytes == fixed, \
        "These are the bytes of such tensors."  # @hide
    note(r"""
        The price is that values interfere. Take a stored key as the query. The output is free of
        other values only if all other keys are orthogonal to this key, and in `128` dimensions at
        most `128` keys are orthogonal to each other. So recent models combine both kinds of layers:
        in MiniMax-01, one layer in eight uses softmax attention [@minimax-01].
    """)
    many, width = torch.randn(200, 128).double(), 128  # @hide
    assert torch.linalg.matrix_rank(many) == width, \
        "Of 200 random keys in 128 dimensions, only 128 are linearly independent."  # @hide
    question(r"""
        A service decodes chats of `64` tokens with the dimensions above. By what factor does a step
        read more bytes per layer for a state than for a KV cache?
    """, answer=8 * 128 * 128 * 4 / (64 * 2 * 8 * 128 * 2), check=128 / 64, unit="times",
        hint="At how many tokens do both have the same size?",
        wrong={"That is with a state for each of 32 query heads. Query heads share the states of their KV heads.": 8},
        why="Both have the same size at `128` tokens. For shorter sequences the fixed state is the larger of the two.")
