"""Generating text: what is kept for each token, what is read for the next, and how fast that can be."""
import math
from dataclasses import replace
from functools import partial

import torch
from counters import flops
from hardware import CARDS, find
from jaxtyping import Float
from timing import SLACK, Timing, quickest, time_graph
from torch import Tensor
from units import GB, MICRO, GiB, KiB, MiB

from litbook import aside, explore, figure, misbelief, note, question, requires

from .block import Cache, Transformer, written_attention
from .counts import Config, attention_flops, block_weights, cache_bytes, forward_flops, parameter_count
from .figures import plot_paces
from .published import GPT_3, LLAMA_2_7B, LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, LLAMA_32_1B, SMALL
from .regimes import BANDWIDTH, H100, PEAK, bytes_moved


def generating() -> None:
    """Generating."""
    note(r"""
        In training, a model sees whole texts at once. When it writes, it sees one new token at a
        time, and all tokens before it are its context. The weights are the same, and so are the
        FLOPs for each token. But each step reads all weights for a single token, so a card uses
        hardly any of its arithmetic.
    """)
    a_cache_gives_the_same_answer_for_less()
    a_token_leaves_its_keys_and_values()
    reading_is_work_and_writing_is_waiting()
    bandwidth_sets_the_pace()
    a_batch_shares_the_weights()
    beyond_some_context_no_batch_helps()
    attention_over_a_cache_gains_nothing_from_a_batch()
    a_guess_is_cheap_to_check()
    writing_is_timed_on_the_card()


def one_by_one(model: Transformer, tokens: Tensor) -> Tensor:
    """The model's scores for tokens that it is shown one at a time, with a cache."""
    caches = model.caches(len(tokens))
    singles = tokens.split(1, dim=1)
    return torch.cat([model(token, caches) for token in singles], dim=1)


def a_cache_gives_the_same_answer_for_less() -> None:
    """A KV cache computes each token's keys and values once, not again for every later token."""
    note(r"""
        To continue a text, a model needs the logits of the last token only. But the last token
        looks at the keys and values of all tokens before it. Do these have to be computed again at
        each step? They do not. No token looks ahead, so a new token changes nothing about the
        earlier ones. A *KV cache* keeps their keys and values. Here a small model reads a text at
        once, and then token by token with a cache:
    """)
    model = Transformer(SMALL, "written").double()
    tokens = torch.randint(SMALL.vocabulary, (1, 8))
    with torch.no_grad():
        whole: Float[Tensor, "batch seq vocab"] = model(tokens)
        singly: Float[Tensor, "batch seq vocab"] = one_by_one(model, tokens)
    assert torch.allclose(whole, singly), "the same scores"
    note(r"""
        How much work does the cache save? Without it, each new token takes a pass over all tokens
        so far. With it, a pass over one. (We count from the second token on; the first has no
        earlier token to look at.)
    """)
    lengths, caches = range(2, 8 + 1), model.caches(1)
    with torch.no_grad():
        anew = sum(flops(partial(model, tokens[:, :n])) for n in lengths)
        model(tokens[:, :1], caches)
        rest = tokens[:, 1:].split(1, dim=1)
        cached = flops(lambda: [model(token, caches) for token in rest])
    counted = anew, cached  # @inspect counted as FLOP
    formula = (sum(forward_flops(SMALL, n, n) for n in lengths),
               sum(forward_flops(SMALL, 1, n) for n in lengths))
    assert counted == formula, "by the counter, by the formula"
    saved = anew / cached  # @inspect saved as times
    assert 5 < saved < 5.1, "a little more than half the length"
    weights, pairs = 2 * 7504658432, 4 * 32 * 4096
    ones, squares = 500500, 333833500  # sums of n and of its square, to 1000
    again = weights * ones + pairs * squares
    once = weights * 1000 + pairs * ones
    question("Llama-3-8B writes `1000` tokens. How many times the work is it without a cache?",
        answer=sum(forward_flops(LLAMA_3_8B, n, n) for n in range(1, 1001))
        / sum(forward_flops(LLAMA_3_8B, 1, n) for n in range(1, 1001)), check=again / once,
        unit="times", hint="half of what number, about?", within=0.1, why=r"""
            Without a cache, token `n` costs a pass over `n` tokens. From `1` to `1000` that is
            `500.5` on average. The rest is attention, whose part grows with the text.
        """)


def weighed_cache(config: Config, batch: int = 1) -> int:
    """Bytes of the cache of a model in bfloat16, built without data."""
    with torch.device("meta"):
        like = torch.empty((), dtype=torch.bfloat16)
        return config.layers * Cache(config, batch, like).memory.nbytes


def a_token_leaves_its_keys_and_values() -> None:
    """Each token adds one row of keys and one of values per layer to the KV cache."""
    note(r"""
        How much memory does the cache take? Each token adds a row of keys and a row of values in
        every layer. With $L$ layers, rows of $d_{kv}$ numbers and $w$ bytes a number, $T$ tokens
        take

        [@eq:cache]: $$
        \text{bytes of the KV cache} = 2\,L\,d_{kv}\,T\,w
        $$

        Llama-3-8B in `bfloat16`, for a single token and for the whole context that it was made for:
    """)
    token = cache_bytes(LLAMA_3_8B, 1)  # @inspect token as B
    whole = weighed_cache(LLAMA_3_8B)  # @inspect whole as B
    assert token * LLAMA_3_8B.context == whole, "by the formula, by its tensors"
    assert token == 128 * KiB, "for one token"
    assert whole == GiB, "for one full context"
    note("Llama-2-7B is an older model of about the same size [@llama-2-7b]. It shares no heads, so that every head of queries has keys of its own:")
    older = weighed_cache(LLAMA_2_7B) / LLAMA_2_7B.context  # @inspect older as B
    assert older / token == 4.0, "times as much for a token"
    misbelief("The cache of a larger model is larger in proportion.", rf"""
        It need not be. The cache grows with the layers and with the width of keys, and a larger
        model can have keys of the same width. The models of the report on Llama 3 have
        {LLAMA_3_8B.kv_heads} heads of keys each, with {LLAMA_3_8B.head} numbers [@llama3].
    """)
    three = LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B
    keys = {(c.kv_heads, c.head) for c in three}
    assert keys == {(8, 128)}, "heads of keys, numbers in each"
    sizes = parameter_count(LLAMA_3_405B) / parameter_count(LLAMA_3_8B)  # @inspect sizes as times
    largest = weighed_cache(LLAMA_3_405B) / LLAMA_3_405B.context
    caches = largest / token  # @inspect caches as times
    assert 50 < sizes < 51, "the largest has so many parameters"
    assert caches == 126 / 32, "and a cache with more layers, that is all"
    question(r"""
        GPT-3 has `96` layers and `96` heads of `128` numbers, none shared [@gpt3]. How many bytes
        does one token leave in `bfloat16`?
    """, answer=weighed_cache(GPT_3) // GPT_3.context, check=2 * 96 * 96 * 128 * 2, unit="B", within=0.05,
        why=f"One text of `2048` tokens then keeps {weighed_cache(GPT_3) / GB:.1f} GB.")


def decoding_bytes(config: Config, batch: int, context: int) -> int:
    """Bytes to read for one token in each of `batch` sequences: all weights once, every cache once."""
    head = config.vocabulary * config.width
    weights = config.layers * block_weights(config) + head
    return 2 * weights + batch * cache_bytes(config, context)


def full_caches(model: Transformer, batch: int, tokens: int) -> list[Cache]:
    """Caches that hold so many tokens of each sequence, with any values: counting does not look at them."""
    caches = model.caches(batch)
    for cache in caches:
        cache.length = tokens
    return caches


MODEST = Config(4, 256, 8, 2, 704, 2000, 512)  # small enough to be counted in a moment


def reading_is_work_and_writing_is_waiting() -> None:
    """Reading a prompt does many FLOPs with each byte, and writing does about one."""
    note(r"""
        A model answers in two phases. It first runs all tokens of the prompt at once; this is
        *prefill*. Then it writes token after token; this is *decoding*. Decoding is slower. Does it
        do more work? Count the FLOPs of both for each token, masked pairs included:
    """)
    with torch.device("meta"):
        model = Transformer(MODEST, "written").bfloat16()
        tokens, caches = torch.zeros(1, 512).long(), model.caches(1)
    with torch.no_grad():
        prefill = flops(lambda: model(tokens[:, :511], caches))  # @inspect prefill as FLOP
        step = flops(lambda: model(tokens[:, 511:], caches))  # @inspect step as FLOP
    assert prefill == forward_flops(MODEST, 511, 511), "all but one at once"
    assert step == forward_flops(MODEST, 1, 512), "the last one"
    more = 511 * step / prefill  # @inspect more as times
    assert round(more, 3) == 1.0, "as many for each token"
    note(r"""
        The FLOPs are the same. What about the bytes? A decoding step reads every weight, and the
        cache of all tokens before. `decoding_bytes` adds these up. Compare that with the bytes that
        enter and leave the operations of one decoding step, with attention fused into one kernel:
    """)
    model = Transformer(MODEST, "fused").bfloat16()
    caches = full_caches(model, 1, 511)
    last = torch.zeros(1, 1, dtype=torch.int64)
    moved = bytes_moved(lambda: model(last, caches))  # @inspect moved as B
    extra = moved / decoding_bytes(MODEST, 1, 512)  # @inspect extra as times
    assert 1 < extra < 1.06, "little but weights and cache"
    note(r"""
        The formula holds, so use it for a model too large to run here: Llama-3-8B with a context of
        `2048` tokens. Compare the FLOPs per byte of writing one token with those of reading a
        prompt of that length. The prompt reads the weights only once for all its tokens. (The bytes
        of its activations are left out, so its FLOPs per byte are an upper bound.)
    """)
    config, context = LLAMA_3_8B, 2048
    read = decoding_bytes(config, 1, context)  # @inspect read as B
    alone = forward_flops(config, 1, context) / read  # @inspect alone as FLOP/B
    together = forward_flops(config, context, context) / read  # @inspect together as FLOP/B
    assert round(alone, 1) == 1.1, "writing"
    assert 2100 < together < 2200, "reading, if that were all"
    ridge = PEAK / BANDWIDTH  # @inspect ridge as FLOP/B
    assert alone < ridge < together, "on either side of what an H100 balances"
    note(rf"""
        While a byte arrives from memory, an {H100.name}
        [can do {ridge:.0f} FLOPs](#every_operation_has_an_intensity): its *ridge*. Reading a prompt
        of this length keeps it busy. Writing a single sequence, it waits nearly all the time.
    """)
    question(r"""
        Which share of an H100's peak can writing reach at best, with a single sequence and this
        context?
    """, answer=alone / ridge, check=forward_flops(config, 1, context) / PEAK / (read / BANDWIDTH), unit="%",
        within=0.05, why=r"""
            So hundreds of tokens could be computed in the time that one takes, if they shared the
            reading.
        """)


HEAVY = Config(2, 1024, 16, 4, 2816, 2000, 64)  # heavier than the cache of most processors
LIGHT = replace(HEAVY, width=64, hidden=176, vocabulary=20)  # as many calls, and hardly a weight


def bandwidth_sets_the_pace() -> None:
    """One token per pass: the pace is bandwidth divided by the bytes of the model."""
    note(r"""
        How fast can a model write a single text, one token in each pass? A pass reads all weights,
        and hardly anything else takes time. So the tokens per second are at most the bandwidth
        divided by the bytes of the model. For Llama-3-8B in `bfloat16` with a short context, and
        the bandwidths of datasheets:
    """)
    size = decoding_bytes(LLAMA_3_8B, 1, 0)  # @inspect size as B
    cards = "L4", "A100 SXM 80GB", "H100 SXM", "H200"
    pace = {name: CARDS[name].bandwidth / size for name in cards}  # @inspect pace as tokens/s
    assert 223 < pace["H100 SXM"] < 224, "at most, a token a pass"
    faster = pace["H200"] / pace["H100 SXM"]  # @inspect faster as times
    assert math.isclose(faster, 4.8 / 3.35), "same arithmetic, more bandwidth"
    sources = "; ".join(f"@{CARDS[name].source}" for name in cards)
    note(rf"""
        (The bandwidths are from [{sources}].) The arithmetic of an H100 would allow many more
        tokens:
    """)
    possible = PEAK / forward_flops(LLAMA_3_8B, 1, 0)  # @inspect possible as tokens/s
    assert 65_000 < possible < 66_000, "tokens a second, by arithmetic alone"
    unused = possible / pace["H100 SXM"]  # @inspect unused as times
    assert 295 < unused < 296, "as much would it allow"
    misbelief("A card with twice the FLOP/s writes twice as fast.", rf"""
        The H200 has the arithmetic of the H100 and writes {4.8 / 3.35:.1f} times as fast
        [@nvidia-h200].
    """)
    note(r"""
        A processor is no different, if the weights do not fit into its cache. Here it runs such a
        model on a token alone and on `16` at once. Beside it, the time that it takes merely to add
        up all weights, and the time of a model with as many calls and hardly a weight:
    """)
    model, light = Transformer(HEAVY), Transformer(LIGHT)
    tokens = torch.zeros(1, 16, dtype=torch.int64)
    weights = [p for p in model.parameters() if p is not model.embedding.weight]
    heavy = sum(p.nbytes for p in weights)  # @inspect heavy as B
    assert heavy > 90e6, "more than most processors have of cache"
    with torch.no_grad():
        reading = quickest(lambda: [p.sum() for p in weights])  # @measure reading as s
        single = quickest(lambda: model(tokens[:, :1]))  # @measure single as s
        at_once = quickest(lambda: model(tokens), 5)  # @measure at_once as s
        calls = quickest(lambda: light(tokens[:, :1]))  # @measure calls as s
    assert calls < reading, "it is not the calls that take the time"
    alike = single / reading  # @measure alike as times
    assert 1 / SLACK < alike < SLACK, "about as long as reading"
    gain = 16 * single / at_once  # @measure gain as times
    assert 1 < gain < 16, "together: less than one after the other"
    question(r"""
        Llama-3-8B with half a byte for each weight, on an H100 with `3.35` TB/s: how many tokens a
        second, at best? It reads `7504658432` weights for each.
    """, answer=3.35e12 / (7504658432 / 2), check=4 * pace["H100 SXM"], unit="tokens/s", within=0.05,
        why=r"""
            The pace grows by the factor by which the bytes shrink: faster arithmetic has no part in
            it.
        """)


def step_seconds(config: Config, batch: int, context: int) -> float:
    """Seconds of a decoding step on an H100 at best: products with weights, then attention over the caches."""
    weights = decoding_bytes(config, 1, 0) / BANDWIDTH
    products = max(weights, forward_flops(config, batch, 0) / PEAK)
    caches = batch * cache_bytes(config, context) / BANDWIDTH
    attention = attention_flops(config, batch, context) / PEAK
    return products + max(caches, attention)


def pace_of(config: Config, batch: int, context: int) -> float:
    """Tokens per second of all sequences together on an H100, at best."""
    return batch / step_seconds(config, batch, context)


MEMORY = H100.reported or H100.memory  # bytes: what its driver shows, where someone has seen it


def room_for(
    config: Config, context: int, cards: int = 1, memory: int = MEMORY
) -> int:
    """Sequences of that context whose caches fit beside the weights, if nothing else takes any memory."""
    left = cards * memory - 2 * parameter_count(config)
    return left // cache_bytes(config, context)


def a_batch_shares_the_weights() -> None:
    """A batch shares one reading of the weights, but each sequence adds its own cache."""
    note(r"""
        A weight that has been read can be used for many sequences. So a service writes many texts
        at once, in a *batch*. How many bytes does a step with a batch read? Count them in the small
        model, for one sequence and for sixteen:
    """)
    model = Transformer(MODEST).bfloat16()
    grown = []
    for batch in (1, 16):
        caches = full_caches(model, batch, 511)
        tokens = torch.zeros(batch, 1, dtype=torch.int64)
        grown.append(bytes_moved(partial(model, tokens, caches)))
    ratio = grown[1] / grown[0]  # @inspect ratio as times
    by_formula = [decoding_bytes(MODEST, batch, 512) for batch in (1, 16)]  # @inspect by_formula as B
    predicted = by_formula[1] / by_formula[0]  # @inspect predicted as times
    above = ratio / predicted  # @inspect above
    assert 1 < above < 1.2, "weights once, and a cache for each"
    note(r"""
        How long does a step with a batch take? It has two parts, which run one after the other. The
        first are the products with weights. They read the weights once for the whole batch, and do
        FLOPs for each sequence; the longer of the times counts. The second is attention, which
        reads the cache of every sequence. With $N$ weights of $w$ bytes, $B$ sequences and $C$
        bytes of KV cache in each:

        [@eq:step]: $$
        \text{step} = \max\left(\frac{N w}{\text{bandwidth}},\; \frac{2BN}{\text{peak}}\right)
        + \frac{B\,C}{\text{bandwidth}}
        $$

        `step_seconds` computes this. (It also counts attention's FLOPs, which never take longer
        than its bytes here.) The tokens per second of all sequences together, for Llama-3-8B on an
        H100 at best, with short texts and with long ones:
    """)
    batches = [1, 4, 16, 64, 256]
    short = [pace_of(LLAMA_3_8B, b, 128) for b in batches]  # @inspect short as tokens/s
    long = [pace_of(LLAMA_3_8B, b, 8192) for b in batches]  # @inspect long as tokens/s
    assert short[3] / short[0] > 58, "short: the weights are shared"
    ceiling = BANDWIDTH / cache_bytes(LLAMA_3_8B, 8192)  # @inspect ceiling as tokens/s
    assert 0.9 < long[4] / ceiling < 1, "long: no batch helps beyond that"
    steps = [step_seconds(LLAMA_3_8B, b, 0) for b in range(999)]
    turn = next(b for b in range(2, 999) if steps[b] > steps[1])
    assert turn == 296, "sequences: from here on products wait for arithmetic"
    both = 1e3 * step_seconds(LLAMA_3_8B, 512, 128)  # @inspect both as ms
    assert 10.3 < both < 10.4, "512 short texts: products, then caches"
    note(rf"""
        How many full contexts fit? The {H100.name} is sold as one of 80 GB [@nvidia-h100], and its
        driver shows a little more [@{H100.seen}]. Beside the weights, if nothing else took any
        memory:
    """)
    fits = room_for(LLAMA_3_8B, 128), room_for(LLAMA_3_8B, 8192)  # @inspect fits
    assert fits[1] == 64, "full contexts at most, by what the driver shows"
    sold = room_for(LLAMA_3_8B, 8192, memory=H100.memory)  # @inspect sold
    assert sold == 59, "by the number that it is sold by"
    note(r"""
        Activations, CUDA itself and gaps between caches take memory too, so fewer fit in a real
        service.
    """)
    more = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    figure(plot_paces(more, {c: [pace_of(LLAMA_3_8B, b, c) for b in more] for c in (128, 2048, 8192)},
                      {c: room_for(LLAMA_3_8B, c) for c in (128, 2048, 8192)}),
        caption=f"Llama-3-8B on an {H100.name}, at best. Thin where the caches no longer fit.",
        alt=r"""
            Tokens per second against the number of sequences, both logarithmic, for three lengths
            of context. The curve for short texts rises in a straight line to some hundred
            sequences; the others bend and level off, the longest first, and become thin where
            memory ends.
        """)

    def paces(sequences: int, context: int) -> dict[str, float]:
        if sequences > room_for(LLAMA_3_8B, context):
            raise ValueError("the caches do not fit beside the weights")
        pace = pace_of(LLAMA_3_8B, sequences, context)
        return {"all together": pace, "each text": pace / sequences}

    grid = explore(paces, over={"sequences": more, "context": [128, 512, 2048, 8192, 32768]},
        at={"sequences": 8, "context": 2048}, kind="curve", unit="tokens/s",
        do="Set the context to `8192` and go from one sequence to as many as fit. Then go back to `128`.",
        see=r"""
            With long texts both lines bend: what all write together levels off, and each text waits
            for the caches of the others. With short ones it is nearly a straight line, up to
            hundreds of sequences.
        """,
        caption=f"Llama-3-8B on an {H100.name}, at best, while the caches fit beside the weights.",
        alt=r"""
            Two lines over the number of sequences: the tokens per second of all together, which
            rises, and of each text, which falls.
        """)  # @hide
    one, full = (grid[s, 8192]["all together"] for s in (1, 64))
    assert full < 13 * one, "long: levels off"
    assert max(s for s, c in grid if c == 8192) == 64, \
        "and ends where the card is full"
    waits = [64 * alone[0] / alone[3] for alone in (short, long)]  # @inspect waits as times
    assert 1.06 < waits[0] < 1.08, "short texts: hardly longer"
    assert 5.2 < waits[1] < 5.3, "long texts: several times as long"
    note(rf"""
        No single text gets faster. With {batches[3]} short texts each waits {waits[0] - 1:.0%}
        longer for its next token than it would alone. With {batches[3]} long texts each waits
        {waits[1]:.1f} times as long. So a larger batch makes tokens cheaper and slower, and a
        service has to choose.
    """)
    question(r"""
        Llama-3-70B takes two cards' memory for its `70553706496` weights alone. Four H100 together
        have `4 * 81559` MiB. How many full contexts of `8192` tokens fit beside the weights at
        most, in `bfloat16`? The model has `80` layers, and keys of `1024` numbers.
    """, answer=(4 * 81559 * MiB - 2 * 70553706496) // (2 * 80 * 1024 * 8192 * 2),
        check=room_for(LLAMA_3_70B, 8192, cards=4), unit="contexts", within=0.02, why=r"""
            From all bytes take `2` for each weight; divide the rest by the KV cache of a full
            context, which has keys and values.
        """)


@aside
def beyond_some_context_no_batch_helps() -> None:
    """Beyond a few hundred tokens of context, no batch makes decoding compute-bound."""
    note(r"""
        Can a batch always be made large enough for decoding to wait for arithmetic? A larger batch
        shares the weights among more texts. It does not share their caches. In the limit of a very
        large batch, reading the weights costs each token nothing. What is left for each token are
        its FLOPs, and its own cache of $T$ tokens to read:

        [@eq:limit]: $$
        \text{FLOPs per byte} \to \frac{2N + 4\,L\,a\,c\,T}{4\,L\,d_{kv}\,T}
        $$

        ($a c$ is the number of heads times the numbers in each, $d_{kv}$ the numbers in all keys of
        a token, each of `2` bytes.) The quotient falls with the context. Where it is below the
        ridge of the card, no batch helps. For Llama-3-8B on an H100:
    """)
    ridge = PEAK / BANDWIDTH

    def intensity(batch: int, context: int) -> float:
        work = forward_flops(LLAMA_3_8B, batch, context)
        return work / decoding_bytes(LLAMA_3_8B, batch, context)

    huge = 10**9
    last = max(t for t in range(1, 9999) if intensity(huge, t) > ridge)  # @inspect last
    assert last == 393, \
        "tokens: from the next one on every batch waits for memory"
    pairs, numbers = 4 * 32 * 32 * 128, 4 * 32 * 8 * 128
    by_hand = 2 * 7504658432 / (ridge * numbers - pairs)  # @inspect by_hand
    assert math.floor(by_hand) == last, "the limit, solved for T"
    reach = intensity(huge, 8192) / ridge  # @inspect reach as %
    assert 0.06 < reach < 0.07, "of the peak, with full contexts"
    note(rf"""
        So a long context decides before the batch does. With `8192` tokens in each text, an H100
        reaches at most {reach:.0%} of its peak, however many texts it writes. Only a smaller cache
        helps: fewer heads of keys, fewer bytes a number, a window, or a latent.
    """)
    question(r"""
        Keep the cache in `1` byte a number. Up to how many tokens of context can a batch then make
        decoding compute-bound? A token takes `15009316864` FLOPs in matrices.
    """, answer=15009316864 / (ridge * numbers / 2 - pairs),
        check=2 * 7504658432 / (PEAK / BANDWIDTH * cache_bytes(LLAMA_3_8B, 1, width=1)
                                - attention_flops(LLAMA_3_8B, 1, 1)),
        unit="tokens", within=0.05, why="A little more than twice as many: half the bytes, and as many FLOPs.")


def cache_intensity(heads: int, kv_heads: int, batch: int) -> float:
    """FLOPs of attention over a cache for each byte of the cache, for one new token, in bfloat16."""
    with torch.device("meta"):
        q = torch.empty(batch, 1, heads, 128, dtype=torch.bfloat16)
        k = torch.empty(batch, 1024, kv_heads, 128, dtype=torch.bfloat16)
        v = torch.empty_like(k)
    return flops(lambda: written_attention(q, k, v)) / (k.nbytes + v.nbytes)


@aside
def attention_over_a_cache_gains_nothing_from_a_batch() -> None:
    """A batch does not raise the intensity of attention over a cache; sharing heads does."""
    note(r"""
        A batch shares the weights. It does not share caches: each belongs to one text. How many
        FLOPs does attention do with a byte of the cache? A number of a key takes `2` bytes in
        `bfloat16`. Each head of queries that shares the key uses that number in one multiplication
        and one addition, `2` FLOPs. So attention does one FLOP per byte for each head that shares
        the key, whatever the batch.
    """)
    found = {batch: cache_intensity(32, 8, batch) for batch in (1, 64)}  # @inspect found as FLOP/B
    assert found[1] == found[64] == 32 / 8, "the same for one text and for many"
    by_sharing = [cache_intensity(32, g, 1) for g in (32, 8, 1)]  # @inspect by_sharing as FLOP/B
    assert by_sharing == [1, 4, 32], "no head shared, four share, all share"
    ridge = PEAK / BANDWIDTH
    assert 9 < ridge / max(by_sharing) < 10, \
        "even that one waits for memory by far"
    note(r"""
        This is the reason for grouped-query attention [@gqa]. If more heads share a key, the cache
        gets smaller and attention over it faster, by the same factor. A larger batch does not help.
    """)
    question(r"""
        A model with `64` heads of queries and `8` of keys keeps its cache in `1` byte a number. How
        many FLOPs does attention do for each byte of it?
    """, answer=2 * 64 / 8, check=2 * cache_intensity(64, 8, 1), unit="FLOP/B",
        why="Eight heads share each key, and a FLOP for each of them now has half the bytes.")


@aside
def a_guess_is_cheap_to_check() -> None:
    """Checking four guessed tokens reads hardly more than writing one."""
    note(r"""
        While weights are read, a card's arithmetic is idle. *Speculative decoding* uses it. A small
        model guesses the next few tokens, and the large model checks all of them in one pass
        [@leviathan2023]. A pass over several tokens gives the same logits as one token at a time,
        as the cache showed. How much does the check cost? A pass that checks guesses takes one
        token more: the guesses, and before them the last token of the text, which is not in the
        cache yet.
    """)
    written = Transformer(MODEST, "written").bfloat16()
    fused = Transformer(MODEST, "fused").bfloat16()
    moved, work = [], []
    for guesses in (0, 4):
        tokens = torch.zeros(1, 1 + guesses, dtype=torch.int64)
        caches = [full_caches(fused, 1, 511 - guesses) for _ in range(2)]
        work.append(flops(partial(written, tokens, caches[0])))
        moved.append(bytes_moved(partial(fused, tokens, caches[1])))
    dearer = work[1] / work[0]  # @inspect dearer as times
    heavier = moved[1] / moved[0]  # @inspect heavier as times
    assert dearer == 5.0, "five times the FLOPs for four guesses"
    assert 1 < heavier < 1.2, "and hardly more bytes"
    note(r"""
        How many tokens does such a pass bring? A guess counts only if all guesses before it were
        right. After the last right guess, the pass also gives one token of its own. If each guess
        is right with probability $p$, a pass over $n$ guesses brings $(1 - p^{n+1}) / (1 - p)$
        tokens on average [@leviathan2023]. Compare this with random draws:
    """)
    p, n = 0.8, 4
    right = torch.rand(100_000, n) < p
    drawn = (1 + right.cumprod(dim=1).sum(dim=1)).double().mean().item()  # @inspect drawn
    expected = (1 - p ** (n + 1)) / (1 - p)  # @inspect expected
    assert 3.3 < expected < 3.4, "tokens from one reading of the weights"
    # Drawn with ten seeds, it was off by at most 0.004.
    assert math.isclose(drawn, expected, rel_tol=0.01), "as drawn"
    note(r"""
        The small model takes time too. Let one guess take the share $q$ of a pass of the large
        model. Then $n$ guesses and their check take as long as $1 + nq$ passes. So the text is
        written faster by a factor of

        [@eq:speculation]: $$
        \text{gain} = \frac{1 - p^{n+1}}{(1 - p)(1 + nq)}
        $$

        [@leviathan2023]. Let the smallest Llama-3.2 guess for Llama-3-8B. Both wait for their
        weights, so $q$ is the quotient of their bytes:
    """)
    q = decoding_bytes(LLAMA_32_1B, 1, 0) / decoding_bytes(LLAMA_3_8B, 1, 0)  # @inspect q
    assert 0.16 < q < 0.17, "of a pass for each guess"
    gain = expected / (1 + n * q)  # @inspect gain as times
    assert 2 < gain < 2.1, "as fast, the guesses paid for"
    best = max(range(1, 20), key=lambda n: (1 - p ** (n + 1)) / (1 + n * q))  # @inspect best
    assert best == 4, "guesses at a time gain most here"
    halves = [1 + one + one * two for one in (0, 1) for two in (0, 1)]
    question(r"""
        A guesser is right half of the time and guesses `2` tokens. How many tokens does a pass of
        the large model bring on average?
    """, answer=(1 - 0.5**3) / (1 - 0.5), check=sum(halves) / len(halves), unit="tokens", why=r"""
        Its own token always comes, the first guess in half of the passes, and the second, which
        needs the first, in a quarter.
    """)


def random_model(config: Config) -> Transformer:  # @stepover
    """A model on the card in bfloat16, with random weights that never were anywhere else."""
    with torch.device("meta"):
        model = Transformer(config).bfloat16()
    model.to_empty(device="cuda")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.02)
    return model


def time_writing(model: Transformer, batch: int, context: int) -> Timing:  # @stepover
    """One token for each of `batch` sequences, the last of its context, all launches in one graph."""
    token = torch.zeros(batch, 1, dtype=torch.int64, device="cuda")
    caches = model.caches(batch)
    for cache in caches:
        cache.memory.normal_()

    def step() -> None:
        for cache in caches:
            cache.length = context - 1
        model(token, caches)

    with torch.no_grad():
        return time_graph(step)


@aside
@requires("cuda")
def writing_is_timed_on_the_card() -> None:
    """On a card, writing comes near its bandwidth and stays far from its arithmetic."""
    note(r"""
        How near does a real card come? Eight layers of Llama-3-8B with random weights write the
        next token, for one sequence and for many. They run in a CUDA graph, so that launches do not
        count. Compare the bytes per second with the card's bandwidth:
    """)
    config, context = replace(LLAMA_3_8B, layers=8, context=1024), 1024
    model = random_model(config)
    batches = [1, 8, 32]
    timed = [time_writing(model, b, context) for b in batches]  # @measure timed
    paces = [b / t.seconds for b, t in zip(batches, timed)]  # @measure paces as tokens/s
    assert paces == sorted(paces), "together, many write more than few"
    pairs = list(zip(batches, timed))
    used = [decoding_bytes(config, b, context) / t.seconds for b, t in pairs]  # @measure used as B/s
    card = find(torch.cuda.get_device_name())
    if card is not None:
        share = [rate / card.bandwidth for rate in used]  # @measure share as %
        assert max(share) <= 1, "never faster than the weights arrive"
    work = forward_flops(config, 1, context) / timed[0].seconds  # @measure work as FLOP/s
    if card is not None and card.bfloat16 is not None:
        busy = work / card.bfloat16  # @measure busy as %
        assert busy < used[0] / card.bandwidth, "less to do than memory has"
    rows = "\n".join(
        f"| {batch} | {t.seconds / MICRO:.0f} | {batch / t.seconds:,.0f} |"
        for batch, t in pairs
    )
    note(f"{timed[0].device}:")
    note(f"| sequences | µs for a token | tokens/s together |\n|---|---|---|\n{rows}")
    question(r"""
        A card writes `200` tokens a second for one sequence and `8` times as many for `10`. By
        which factor does each of the ten wait longer than the one did?
    """, answer=10 / 8, check=(10 / (8 * 200)) / (1 / 200), unit="times",
        why="A step takes `1/200` s for one, and `10/1600` s for ten.")
