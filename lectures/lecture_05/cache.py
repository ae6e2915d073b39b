"""The cache as memory: pages, shared prefixes, fewer bytes, and a state instead."""
import math
from dataclasses import replace

import torch
from counters import flops
from lecture_03.block import Cache, Transformer
from lecture_03.published import LLAMA_3_8B, SMALL
from torch import Tensor

from litbook import aside, explore, figure, misbelief, note, question

from .figures import plot_pages
from .llama import (
    BANDWIDTH,
    KV_BYTES,
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
    a_state_can_replace_the_cache()


def pages_waste_half_a_page() -> None:
    """A KV cache in pages wastes about half a page per sequence, on average."""
    note(r"""
        When a request arrives, nobody knows how long its answer will be. How much memory should be
        set aside for its KV cache?

        The simple way is to reserve memory for the maximum length. By hand: sequences may have up
        to $16$ tokens, and one stops after $9$. The memory for $16 - 9 = 7$ tokens is wasted.

        The other way is to allocate memory in *pages* of a fixed number of tokens, say $4$. The
        sequence gets its first page with its first token, the second one with the fifth token, and
        the third one with the ninth. Its three pages can hold $12$ tokens, so only the memory for
        $3$ tokens is unused.

        Only the last page can have unused memory, because a new page is allocated only when the
        previous one is full. If the last page is equally likely to hold $1$, $2$, $3$ or $4$
        tokens, then the memory for $3$, $2$, $1$ or $0$ tokens is unused: $1.5$ on average, or
        $(4 - 1) / 2$. For pages of $16$ it is $(16 - 1) / 2 = 7.5$, nearly half a page. It does not
        grow with the sequence.

        The pages may be anywhere in memory. The sequence's *page table* lists their numbers in
        order, so attention finds the keys and values. Operating systems allocate memory in this
        way, and vLLM uses it for the KV cache [@kwon2023]. Its `block_size` is the number of tokens
        in a page [@vllm-args].

        Now draw the lengths of `20_000` sequences from an exponential distribution. Most are short
        and a few are long: `600` tokens on average, and no more than `8192`. (Both numbers are
        chosen.)
    """)
    lengths = (600 * torch.empty(20_000).exponential_()).ceil().clamp(max=8192)
    page = 16  # tokens
    in_pages = page * (lengths / page).ceil()  # memory, in tokens
    unused = (in_pages - lengths).mean().item()  # @inspect round(unused, 1) as tokens
    # Drawn with ten seeds, it was between 7.4 and 7.6.
    assert 7.3 < unused < 7.7, \
        "Nearly half a page of 16 tokens is unused per sequence."
    share_used = (lengths.sum() / in_pages.sum()).item()  # @hide
    assert 0.98 < share_used < 0.99, \
        "In pages, more than 98 % of the memory holds tokens."  # @hide
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
    pool, free = torch.zeros(2, 5000, PAGE, 1, 1), list(range(5000))  # @hide
    caches = [PagedCache(pool, free) for _ in range(400)]  # @hide
    for cache, count in zip(caches, torch.randint(1, 41, (400,)).tolist()):  # @hide
        cache.extended(*torch.ones(2, 1, count, 1, 1))
    empty = PAGE * (5000 - len(free)) - sum(cache.length for cache in caches)  # @hide
    assert 1.3 < empty / 400 < 1.7, \
        "In 400 caches that take pages of 4 from one pool, room for about 1.5 tokens is unused in each."  # @hide
    model = Transformer(SMALL).double().requires_grad_(False)  # @hide
    prompt = torch.randint(100, (1, 11))  # @hide
    anywhere = model(prompt, [PagedCache(pool, free) for pool, free in new_pools(8)])  # @hide
    assert torch.allclose(anywhere, model(prompt, model.caches(1))), \
        "With pages at random addresses, a small model gives the same logits as with a cache in one piece, up to rounding."  # @hide
    tokens, order = {"A": 9, "B": 6, "C": 3}, "ABACBA"  # @hide
    assert [order.count(name) for name in tokens] == [-(-count // 4) for count in tokens.values()] == [3, 2, 1], \
        "In the picture, the sequences have 3, 2 and 1 pages of 4 tokens, as many as their tokens need."  # @hide
    note(rf"""
        A published study measured systems that reserved memory in advance: only `20.4` to `38.2`
        percent of the cache's memory held tokens [@kwon2023]. With the pages above it is
        {share_used:.0%}.
    """)
    figure(plot_pages(tokens, 4, order),
        caption=r"""
            Small pages, as three sequences A, B and C fill them. A page belongs to one sequence;
            only the last page of each has unused memory.
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
        In pages, nothing is reserved in advance: with the lengths above, {share_used:.0%} of the
        memory holds tokens. If all pages are in use, vLLM pauses a sequence, gives its pages to
        others, and later recomputes its cache [@kwon2023].
    """)
    question(r"""
        With pages of `1` token nothing would be unused, but the page table gets longer. A sequence
        has `600` tokens. Divide the number of entries of its page table with pages of `1` token by
        the number with pages of `16`. What is the ratio?
    """, answer=600 / 38,
        check=len(torch.empty(600).split(1)) / len(torch.empty(600).split(16)), unit="times", within=0.02,
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
    """A prefix that many requests share is computed and stored only once, while its pages are kept."""
    note(r"""
        A chat service puts the same long instructions before each user's question. Does the model
        have to process them again for every user?

        No, because the keys and values of a token depend only on this token and on the tokens
        before it. No question comes before the instructions, so the keys and values of the
        instructions are the same for every question. They are computed once, and as long as they
        are kept, every question reads them from the KV cache. This is *prefix caching*
        [@zheng2024].

        The service also stores them only once, because the [page tables](#pages_waste_half_a_page)
        of all users can point to the same pages. By hand, with pages of $4$ tokens: instructions of
        $8$ tokens need $2$ pages, and a question of $4$ tokens needs $1$. Two users need
        $2 + 1 + 1 = 4$ pages instead of $3 + 3 = 6$. If the instructions had $9$ tokens, the ninth
        would be in a page with the user's question, so it could not be shared.

        Try it with a small model and such pages, `instructions` of `8` tokens and two `questions`
        of `4`. `first` is an empty paged cache with a pool of $16$ pages. `share(first)` copies no
        keys or values: it makes a cache whose page table begins with the pages of `first`, so that
        the tokens of a question get the positions after the instructions.
    """)
    model = Transformer(SMALL).double().requires_grad_(False)  # @hide
    instructions = torch.randint(100, (1, 8))  # @hide
    questions = [torch.randint(100, (1, 4)) for _ in range(2)]  # @hide
    pools = new_pools(16)  # @hide
    first = [PagedCache(pool, free) for pool, free in pools]  # @hide
    free = pools[0][1]  # @hide
    model(instructions, first)  # once: fills two pages
    for tokens in questions:
        logits = model(tokens, share(first))  # the question alone
        # To compare: instructions and question, without a cache.
        whole = model(torch.cat([instructions, tokens], dim=1))
        end = whole[:, -4:]  # the tokens of the question
        assert torch.allclose(logits, end), \
            "For each question, the logits with the shared cache are those of a run without a cache, up to rounding."
    assert 16 - len(free) == 2 + 1 + 1, \
        "Two of 16 pages hold the instructions, and each question takes one more."
    pools = new_pools(16)  # @hide
    for tokens in questions:  # @hide
        model(torch.cat([instructions, tokens], dim=1), [PagedCache(*pool) for pool in pools])
    assert 16 - len(pools[0][1]) == 3 + 3, \
        "Without sharing, the two users need six pages."  # @hide
    named = [model.caches(1) for _ in range(2)]  # @hide
    for number, layers in enumerate(named):  # @hide
        model(torch.cat([torch.full((1, 1), number), instructions], dim=1), layers)
    gaps = [(one.memory - other.memory)[:, 0, 1:9].abs() for one, other in zip(*named)]  # @hide
    assert gaps[0].max() < 1e-9 < gaps[1].amax(dim=(2, 3)).min(), \
        "After different first tokens, equal instructions have different keys and values from the second layer on."  # @hide
    shared = flops(lambda: model(questions[0], share(first)))  # @hide
    complete = flops(lambda: model(torch.cat([instructions, questions[0]], dim=1)))  # @hide
    assert 2.9 < complete / shared < 3.1, \
        "With the prefix in the cache, a third of the tokens cost about a third of the FLOPs."  # @hide
    per_token = 1e3 * prefill_seconds(1500) / 1500  # @hide
    note(rf"""
        For Llama-3-8B on an H100, take instructions of `1000` tokens and a question of `500`.
        `prefill_seconds` is a lower bound on the time of a prefill, its FLOPs divided by the GPU's
        peak: about {per_token:.4f} ms per token, so about
        $500 \cdot {per_token:.4f} = {500 * per_token:.0f}$ ms for the question. `earlier` is the
        number of tokens that are already in the cache:
    """)
    without = prefill_seconds(1500)  # @inspect without as s
    with_prefix = prefill_seconds(500, earlier=1000)  # @inspect with_prefix as s
    assert 0.33 < with_prefix / without < 0.35, \
        "With the instructions in the cache, the first token comes in about a third of the time that it takes without."
    saved = 1000 * KV_BYTES  # @hide
    assert saved == 131_072_000, \
        "Each further user saves 131 MB of cache."  # @hide
    assert math.isclose(without - with_prefix, prefill_seconds(1000), rel_tol=1e-3), \
        "What is saved is the prefill of the instructions alone, to within 0.1 %."  # @hide
    ratio = prefill_flops(1250) / prefill_flops(250, earlier=1000)  # @hide
    assert 4.8 < ratio < 5, "Attention included, 1250 tokens cost nearly 5 times the FLOPs of 250 after 1000."  # @hide
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
        Instructions have `1000` tokens and a question has `250`. Attention costs few FLOPs compared
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
        Which should be stored in $8$ bits instead of $16$ first, the weights or the KV cache?

        That depends on what a [decode step](#a_step_is_a_sum) spends its time on. By hand: reading
        the weights takes $10$ ms, reading one cache takes $1$ ms, and the latency target is $20$
        ms. So $(20 - 10) / 1 = 10$ sequences meet the target.

        - With half the bytes for weights, reading them takes $5$ ms: $(20 - 5) / 1 = 15$ sequences.
        - With half the bytes for caches, each takes $0.5$ ms: $(20 - 10) / 0.5 = 20$ sequences.

        A smaller cache helps a large batch more, because every sequence reads a cache of its own,
        while the weights are read once per step. Smaller weights save $5$ ms once. Smaller caches
        save $0.5$ ms for each sequence: the same for $10$ sequences, and more for each further one.

        Now Llama-3-8B on an H100, with `8192` tokens in each cache and the same target. `weights`
        and `cache` are the times for reading the weights and one cache in $16$ bits. (The
        arithmetic runs while the weights are read, and for these batches takes less time than that,
        so it adds nothing.)
    """)
    target = 0.020  # s
    weights = 2 * WEIGHTS / BANDWIDTH  # 2 bytes each  # @inspect weights as s
    cache = 8192 * KV_BYTES / BANDWIDTH  # @inspect cache as s
    neither = int((target - weights) / cache)  # @inspect neither as sequences
    only_weights = int((target - weights / 2) / cache)  # @inspect only_weights as sequences
    only_cache = int((target - weights) / (cache / 2))  # @inspect only_cache as sequences
    assert (neither, only_weights, only_cache) == (48, 55, 96), \
        "Weights in 8 bits raise the batch from 48 to 55 sequences, and a cache in 8 bits raises it to 96."

    def largest_batch(weight: float, element: float) -> int:  # @hide
        return max(b for b in range(1, 1000) if step_seconds(b, 8192, weight, element) <= target)

    assert [largest_batch(2, 2), largest_batch(1, 2), largest_batch(2, 1)] == [neither, only_weights, only_cache], \
        "With the arithmetic counted as well, the largest batches are the same."  # @hide
    room = sequences_that_fit(8192, element=1)  # @hide
    assert room == 104 > only_cache, \
        "Memory has room for 104 caches in 8 bits."  # @hide
    alone = [1e3 * step_seconds(1, 8192, weight, element)
             for weight, element in ((2, 2), (1, 2), (2, 1))]  # @hide
    assert [round(ms, 2) for ms in alone] == [4.80, 2.56, 4.64], \
        "For one sequence it is the other way round: 4.80 ms, 2.56 ms with smaller weights, 4.64 ms with a smaller cache."  # @hide
    note(rf"""
        So with `8192` tokens in each cache, smaller weights make a step shorter than a smaller
        cache does for up to {int(weights / cache)} sequences, and for more sequences it is the
        other way round. In vLLM, `kv_cache_dtype` is the format of keys and values [@vllm-args].
    """)
    misbelief("A KV cache with half the bytes halves the latency.", rf"""
        For one sequence of `8192` tokens, a step takes {alone[2]:.2f} ms instead of {alone[0]:.2f}
        ms: nearly all of the time goes to reading the weights. A smaller cache changes how many
        sequences meet the latency target together: {only_cache} instead of {neither}.
    """)
    question(r"""
        A service decodes one short request at a time, and never more. You can halve the bytes of
        the weights or of the cache, but not both. With the better choice, by what factor does the
        time per output token shrink at most?
    """, answer=2.0, check=step_seconds(1, 0) / step_seconds(1, 0, weight=1), unit="times",
        hint="What does a decode step read if there is one sequence with a short cache?",
        why="Nearly all bytes of the step are weights, so halving these halves the time. A smaller cache changes nearly nothing here.")


@aside
def a_state_can_replace_the_cache() -> None:
    """Linear attention keeps a state of fixed size instead of a cache that grows."""
    note(r"""
        A KV cache grows with each token. Can a model remember the past in a fixed number of bytes?

        Yes, at a price, if attention drops the softmax. Then the output for a query $q$ is the sum
        of $(q \cdot k)\, v$ over the keys $k$ and values $v$ of all tokens so far. By hand, with
        numbers instead of vectors: keys $1$ and $2$, values $10$ and $20$, query $3$.

        - Term by term: $3 \cdot 1 \cdot 10 + 3 \cdot 2 \cdot 20 = 150$.
        - With the common factor $3$ taken out:
          $3 \cdot (1 \cdot 10 + 2 \cdot 20) = 3 \cdot 50 = 150$.

        So it is enough to store the $50$ instead of all keys and values, because without the
        softmax the query is a common factor of all terms. Each further token adds its own $k v$ to
        this sum. This is *linear attention* [@katharopoulos2020].

        With vectors, the query comes out of each term in the same way. Write $v$ as a row $v^\top$,
        and $q \cdot k$ as $q^\top k$. Then $(q^\top k)\, v^\top = q^\top (k v^\top)$. So each token
        adds the matrix $k v^\top$ to a *state* $S$, and the output for $q$ is $q^\top S$. Take one
        head and `40` tokens, with vectors of `8` elements:
    """)
    queries, keys, values = torch.randn(3, 40, 8).double()
    state, outputs = torch.zeros(8, 8).double(), list[Tensor]()
    for token in range(40):  # @stepover
        state += torch.outer(keys[token], values[token])
        outputs.append(queries[token] @ state)
        products = keys[: token + 1] @ queries[token]  # q · k so far
        assert torch.allclose(outputs[-1], products @ values[: token + 1]), \
            "For each token, the state gives the sum over all tokens so far."

    def retrieval_error(keys: Tensor) -> float:  # @hide
        values = torch.randn(len(keys), 8).double()
        found = keys @ (keys.T @ values)  # each key as a query
        return float((found - values).norm() / values.norm())

    basis = torch.linalg.qr(torch.randn(8, 8).double()).Q  # @hide
    many = torch.nn.functional.normalize(torch.randn(40, 8).double())  # @hide
    assert retrieval_error(basis) < 1e-12, \
        "A state of 8 orthogonal keys of 8 elements returns the value of each key."  # @hide
    assert retrieval_error(many) > 1, \
        "With 40 random keys of length 1, what a state returns is off by more than the values themselves."  # @hide
    terms = torch.einsum("tk,tv->tkv", *torch.randn(2, 4096, 8))  # @hide
    rounded, whole = torch.zeros(8, 8).bfloat16(), torch.zeros(8, 8)  # @hide
    for term in terms:  # @hide
        rounded, whole = rounded + term.bfloat16(), whole + term
    off = [float((kept - terms.double().sum(dim=0)).abs().max()) for kept in (rounded, whole)]  # @hide
    assert off[0] > 1, \
        "After 4096 additions, some element of a state in bfloat16 is off by more than 1."  # @hide
    assert off[1] < 0.001, \
        "In float32, every element is off by less than 0.001."  # @hide
    note(r"""
        How large is the state in a layer of Llama-3-8B, which has `8` KV heads of dimension `128`?
        For each KV head, the state is a matrix of `128` by `128` elements. An element usually has
        `4` bytes instead of `2`, to limit rounding errors in a sum of thousands of terms. The KV
        cache has, for every token, a key and a value of `128` elements for each of these heads, in
        `2` bytes each:
    """)
    state_bytes = 8 * 128 * 128 * 4  # @inspect state_bytes as B
    cache_per_token = 2 * 8 * 128 * 2  # @inspect cache_per_token as B
    assert state_bytes / cache_per_token == 128, \
        "At 128 tokens both have the same size. Beyond that, the state is smaller than the cache."
    assert 32 * cache_per_token == KV_BYTES, \
        "In 32 layers, these are the bytes of a token in the KV cache."  # @hide
    assert torch.zeros(8, 128, 128).nbytes == state_bytes, \
        "These are the bytes of such tensors."  # @hide
    note(r"""
        The price is that the state mixes the values of all tokens. The $8 \cdot 8 = 64$ elements
        above cannot hold $40$ independent values of $8$ elements, so a query cannot always retrieve
        a single one. So some recent models combine both kinds of layers. In MiniMax-01, one layer
        in eight uses softmax attention [@minimax-01].
    """)
    chat = Cache(replace(LLAMA_3_8B, context=64), 1, like=torch.empty(0).bfloat16())  # @hide
    question(r"""
        A service decodes chats with `64` tokens in the cache, and with the dimensions above. By
        what factor does a step with a state read more bytes per layer than a step with a KV cache?
    """, answer=8 * 128 * 128 * 4 / (64 * 2 * 8 * 128 * 2),
        check=torch.zeros(8, 128, 128).nbytes / chat.memory.nbytes, unit="times",
        hint="At how many tokens do both have the same size?",
        why="Both have the same size at `128` tokens. For shorter sequences the fixed state is the larger of the two.")
