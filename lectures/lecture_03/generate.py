"""Generating: what is kept for each token, what is read for the next, and how fast that can be."""
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from counters import flops
from hardware import CARDS, find
from napkin import RESERVE, room
from timing import Timing, time_graph
from torch import Tensor
from units import GB, MICRO, GiB, KiB
from plots import BLUE, GREEN, stacks

from litbook import aside, explore, figure, misbelief, note, question, requires

from .block import Cache, Transformer, written_attention
from .counts import Config, attention_flops, block_weights, cache_bytes, forward_flops, parameter_count
from .figures import cells
from .published import LLAMA_2_7B, LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, LLAMA_32_1B, SMALL
from .regimes import BANDWIDTH, H100, PEAK, bytes_moved


def generating() -> None:
    """Generating."""
    note(r"""
        In training, a model processes whole sequences at once. When it generates, it adds one new
        token at a time. The forward pass of a token costs the same FLOPs in both cases. But each
        step reads all weights from the GPU's memory for this single token. So generating is
        memory-bound: the GPU waits for its memory, and its arithmetic units are mostly idle.
    """)
    a_cache_gives_the_same_answer_for_less()
    a_token_leaves_its_keys_and_values()
    prefill_does_more_flops_per_byte()
    bandwidth_sets_the_pace()
    a_batch_shares_the_weights()
    memory_limits_the_batch()
    attention_over_a_cache_gains_nothing_from_a_batch()
    a_guess_is_cheap_to_check()
    guesses_pay_if_they_are_often_right()
    decoding_is_timed_on_the_gpu()


def a_cache_gives_the_same_answer_for_less() -> None:
    """With a KV cache, each token's keys and values are computed once, not again for every later token."""
    note(r"""
        A language model generates a sequence one token at a time. In attention, each token has a
        *key* and a *value*, and a new token uses the keys and values of all earlier tokens. Does
        the model have to compute them again for each new token?

        No, because a token's key and value depend only on this token and the tokens before it. A
        new token does not change them. So the model can store them in a *KV cache*, and each step
        processes only the newest token.

        By hand, take $3$ steps that start from one token. Without a cache, the steps process $1$,
        $2$ and $3$ tokens: `1 + 2 + 3 = 6`. With a cache each step processes one: `1 + 1 + 1 = 3`,
        half of the work.

        Now do both in `8` steps, with a small `model`. The `8` `tokens` are given, so both process
        the same sequence. The model returns a score for each token that may come next. With a cache
        it gets each token alone, and adds the token's key and value to the cache:
    """)
    model = Transformer(SMALL, "written").double()  # @hide
    model.requires_grad_(False)  # @hide
    tokens = torch.randint(SMALL.vocabulary, (1, 8))  # @hide

    def without_cache() -> Tensor:
        for step in range(1, 9):
            scores: Tensor = model(tokens[:, :step])  # all tokens so far
        return scores  # from the last step: one row of scores per token

    def with_cache() -> Tensor:
        cache = model.caches(1)  # empty, for 1 sequence
        scores = [model(token, cache) for token in tokens.split(1, dim=1)]
        return torch.cat(scores, dim=1)

    assert torch.allclose(without_cache(), with_cache()), \
        "The scores are the same with and without a cache."
    note("`flops` counts the FLOPs of all `8` steps:")
    ratio = flops(without_cache) / flops(with_cache)  # @inspect round(ratio, 1) as times
    assert round(ratio, 1) == 4.5, \
        "Without a cache, 8 steps cost 4.5 times the FLOPs of 8 steps with it."
    first = flops(lambda: model(tokens[:, :1]))  # @hide
    formula = (sum(forward_flops(SMALL, n, n) for n in range(2, 9)),
               sum(forward_flops(SMALL, 1, n) for n in range(2, 9)))  # @hide
    assert (flops(without_cache) - first, flops(with_cache) - first) == formula, \
        "From the second token on, the formula for a forward pass gives the same FLOPs."  # @hide
    steps = range(1, 9)  # @hide
    note(rf"""
        Without a cache the `8` steps process `1 + 2 + … + 8 = {sum(steps)}` tokens, and with a
        cache only `8`. That is `{sum(steps)} / 8`, or {sum(steps) / 8}, times as many. The longer
        the sequence, the more a cache saves. Its price is memory for all keys and values.
    """)
    grids = {
        "without a cache": [[1 if at <= step else 0 for at in steps] for step in steps],
        "with a cache": [[1 if at == step else 2 if at < step else 0 for at in steps] for step in steps],
    }  # @hide
    through = [sum(row.count(1) for row in grid) for grid in grids.values()]  # @hide
    assert through == [sum(steps), len(steps)], \
        "A blue cell is a token that goes through the model."  # @hide
    figure(cells(grids, [("not there yet", "none"), ("goes through the model", BLUE), ("in the cache", GREEN)],
                 ("step", "token")), caption=r"""
                     A sequence generated token by token, a row for each step. Without a cache all
                     tokens so far go through the model in each step; with it, only the new one.
                 """, alt=r"""
                     Two grids of eight by eight cells. In the left one a whole triangle goes
                     through the model, in the right one only its diagonal; what is below it is in
                     the cache.
                 """)
    there, processed = 1, 0  # tokens  # @hide
    for _ in range(1000):  # @hide
        processed += there
        there += 1
    question("A model starts from one token and runs `1000` steps. On average, how many tokens does a step process without a cache?",
        answer=sum(range(1, 1001)) / 1000, check=processed / 1000,
        unit="tokens", hint="The first step processes `1` token, and the last step `1000`.", within=0.01,
        wrong={"That is the last step; the earlier steps process fewer tokens.": 1000,
               "That is with a cache.": 1}, why=r"""
                   Step $n$ processes $n$ tokens, on average `(1 + 1000) / 2`. With a cache each
                   step processes one, so the cache saves nearly all of this work.
               """)


def weighed_cache(config: Config, batch: int = 1) -> int:
    """Bytes of the KV cache of full sequences, added up from its tensors in bfloat16; `batch`: how many sequences."""
    with torch.device("meta"):
        like = torch.empty((), dtype=torch.bfloat16)
        return config.layers * Cache(config, batch, like).memory.nbytes


def a_token_leaves_its_keys_and_values() -> None:
    """Each token adds one row of keys and one of values per layer to the KV cache."""
    note(r"""
        When a model generates a sequence, its *KV cache* stores the keys and values of all tokens
        so far, so that they are not computed again. How much memory does the cache need?

        Every token adds one row of keys and one row of values in every layer, because each layer
        computes its own. By hand, take a model of `1` layer whose rows have `4` elements of `2`
        bytes:

        - A row needs `4 * 2 = 8` bytes.
        - A token adds two rows, `2 * 8 = 16` bytes.
        - $3$ tokens need `3 * 16 = 48` bytes.

        In general, with $2$ rows in each of $L$ layers, $d_{kv}$ elements in a row and $w$ bytes
        per element, $T$ tokens need

        [@eq:cache]: $$
        \text{bytes of the KV cache} = 2\,L\,d_{kv}\,T\,w
        $$

        Now Llama-3-8B. It has `32` layers, and `8` [*KV heads*](#query_heads_share_keys) in each. A
        token has a key of `128` elements in each KV head, so its row of keys has `8 * 128`
        elements. An element in `bfloat16` needs `2` bytes, and a full sequence has `8192` tokens
        [@llama-3-8b]:
    """)
    per_token = 2 * 32 * (8 * 128) * 2  # @inspect per_token as B
    assert per_token == cache_bytes(LLAMA_3_8B, 1) == 128 * KiB, \
        "One token needs 128 KiB."  # @hide
    full_sequence = per_token * 8192  # @inspect full_sequence as B
    assert full_sequence == weighed_cache(LLAMA_3_8B), \
        "The formula gives the bytes of the tensors of a full cache."  # @hide
    assert full_sequence == 2**30, \
        "A full sequence needs one GiB."
    older = weighed_cache(LLAMA_2_7B) / LLAMA_2_7B.context  # @hide
    assert older / per_token == 4.0, \
        "A token of Llama-2-7B needs 4 times as many bytes."  # @hide
    assert 15 * full_sequence > 2 * parameter_count(LLAMA_3_8B) > 14 * full_sequence, \
        "The caches of 15 full sequences need more memory than the weights."  # @hide
    note(rf"""
        A token needs {per_token // KiB} KiB, and a full sequence one GiB. A server needs this
        memory for every sequence that it is generating at that moment: the caches of `15` full
        sequences already need more memory than the model's `2 * 8030261248` bytes of weights.
    """)
    three = LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B  # @hide
    keys = {(c.kv_heads, c.head) for c in three}  # @hide
    layers = [c.layers for c in three]  # @hide
    assert layers == [32, 80, 126], \
        "The Llama 3 of 8, 70 and 405 billion parameters have 32, 80 and 126 layers."  # @hide
    assert keys == {(8, 128)}, \
        "The Llama 3 of 8, 70 and 405 billion parameters have the same KV heads."  # @hide
    sizes = parameter_count(LLAMA_3_405B) / parameter_count(LLAMA_3_8B)  # @hide
    largest = weighed_cache(LLAMA_3_405B) / LLAMA_3_405B.context  # @hide
    caches = largest / per_token  # @hide
    assert 50 < sizes < 51, \
        "The largest Llama 3 has more than 50 times the parameters of the smallest."  # @hide
    assert caches == 126 / 32, \
        "Its cache for a token is larger by its layers alone, 126 instead of 32."  # @hide
    misbelief("The KV cache of a model grows in proportion to its parameters.", rf"""
        The cache grows with the layers, the KV heads and their size, not with the parameters.
        Llama-3-405B has {sizes:.0f} times the parameters of Llama-3-8B. But it also has `8` KV
        heads of `128` elements, and `126` layers instead of `32` [@llama3]. So its cache per token
        is only `126 / 32`, or {caches:.1f}, times as large.
    """)
    question(r"""
        Llama-2-7B also has `32` layers, but `32` keys of `128` elements in a row instead of `8`
        [@llama-2-7b]. How many KiB does one of its tokens add to the KV cache in `bfloat16`?
    """, answer=4 * 128, check=older / KiB, unit="KiB", within=0.01, wrong={
            "That is with 8 keys in a row; here there are four times as many.": 128,
            "A row of values is as long as a row of keys, so both are four times as long, and so is their sum.": 2 * 4 * 128,
        }, hint="How much longer is a row than in Llama-3-8B?",
        why="A row has `32` keys instead of `8`, so a token needs `4 * 128` KiB. Sharing keys and values among query heads saves this memory.")


def decoding_bytes(config: Config, batch: int, context: int) -> int:
    """Bytes read in one decoding step: the weights once, and for each of `batch` sequences the cache of `context` tokens."""
    head = config.vocabulary * config.width
    weights = config.layers * block_weights(config) + head
    return 2 * weights + batch * cache_bytes(config, context)


def full_caches(model: Transformer, batch: int, tokens: int) -> list[Cache]:
    """A KV cache for each layer, filled with any values; `batch`: how many sequences, `tokens`: how many positions are filled."""
    caches = model.caches(batch)
    for cache in caches:
        cache.length = tokens
    return caches


MODEST = Config(layers=4, width=256, heads=8, kv_heads=2, hidden=704, vocabulary=2000, context=512)


def prefill_does_more_flops_per_byte() -> None:
    """Prefill of a long prompt does many FLOPs per byte, and decoding one sequence does about one."""
    note(r"""
        A model answers in two phases. *Prefill* processes all tokens of the prompt in one pass.
        *Decoding* then generates one token per pass. A generated token costs about the same FLOPs
        as a token of the prompt. Yet generating it takes much longer. Why?

        Because a pass reads each weight from the GPU's memory once, no matter how many tokens it
        processes. By hand, take a single weight of `2` bytes. Multiplying it by a token and adding
        the product to a sum costs `2` FLOPs.

        - Prefill of $10$ tokens reads $2$ bytes and does $10 \cdot 2$ FLOPs: $10$ FLOPs per byte.
        - Decoding one token reads the same $2$ bytes and does $2$ FLOPs: $1$ FLOP per byte.

        Now count for Llama-3-8B, only the bytes of weights and KV cache. Its matmuls read
        [`7504658432` weights](#training_costs_six_per_weight_and_twelve_per_pair) (the embedding is
        only looked up). The [KV cache](#a_token_leaves_its_keys_and_values) has `131072` bytes per
        token. Both passes move the same bytes: all weights once, and the cache of `2048` tokens
        once, which prefill writes and decoding reads. `forward_flops` gives the FLOPs of a pass,
        `2` per weight and token, and those of attention:
    """)
    with torch.device("meta"):  # @hide
        model = Transformer(MODEST, "written").bfloat16()
        tokens, caches = torch.zeros(1, 512).long(), model.caches(1)
    with torch.no_grad():  # @hide
        prompt = flops(lambda: model(tokens[:, :511], caches))
        generated = flops(lambda: model(tokens[:, 511:], caches))
    read = prompt / 511  # @hide
    assert prompt == forward_flops(MODEST, 511, 511), \
        "The formula for a forward pass gives the FLOPs of prefill."  # @hide
    assert generated == forward_flops(MODEST, 1, 512), \
        "The formula also gives those of a decoding step."  # @hide
    assert round(generated / read, 3) == 1.0, \
        "In a small model, a generated token costs the same FLOPs as one of 511 in a prompt, up to a thousandth."  # @hide
    moved = 2 * 7504658432 + 2048 * 131072  # bytes
    # 2048 new tokens, each with all 2048: a little too many, without a mask
    prefill = forward_flops(LLAMA_3_8B, 2048, 2048) / moved  # @inspect round(prefill) as FLOP/B
    # 1 new token, compared with 2048
    decoding = forward_flops(LLAMA_3_8B, 1, 2048) / moved  # @inspect round(decoding, 2) as FLOP/B
    assert moved == decoding_bytes(LLAMA_3_8B, 1, 2048), \
        "These are the bytes of the weights and of the cache."  # @hide
    assert 2100 < prefill < 2200, \
        "Prefill of 2048 tokens does about 2000 times as many FLOPs per byte."  # @hide
    small, full = Transformer(MODEST, "fused").bfloat16(), 511  # @hide
    filled = full_caches(small, 1, full)  # @hide
    last = torch.zeros(1, 1, dtype=torch.int64)  # @hide
    counted = bytes_moved(lambda: small(last, filled))  # @hide
    extra = counted / decoding_bytes(MODEST, 1, full + 1)  # @hide
    assert 1 < extra < 1.06, \
        "In a small model, weights and cache are nearly all bytes that its operations move when it generates."  # @hide
    note(r"""
        How many FLOPs can a GPU do while one byte arrives? This is its
        [ridge](#every_operation_has_an_intensity). An H100 does at most `989.5e12` FLOPs in
        `bfloat16` and reads at most `3.35e12` bytes a second:
    """)
    ridge = 989.5e12 / 3.35e12  # @inspect round(ridge) as FLOP/B
    assert ridge == PEAK / BANDWIDTH, "These are the numbers of the datasheet."  # @hide
    assert round(decoding, 2) == 1.05, "Decoding does about one FLOP per byte."  # @hide
    assert decoding < ridge < prefill, \
        "Decoding is below the ridge of an H100, and prefill is above it."
    note(rf"""
        Prefill of `2048` tokens does more FLOPs per byte than the ridge, so it is *compute-bound*:
        its arithmetic takes longer than the reading. Decoding one sequence does only
        {decoding:.2f}, while the GPU can do {ridge:.0f}, so it is *memory-bound*: the arithmetic
        units are idle nearly all the time. So more FLOP/s shorten the prefill of a long prompt. For
        decoding one sequence, more bandwidth helps, or fewer bytes to read.
    """)
    question(r"""
        Leave the KV cache and attention out, as in the case by hand. How many tokens must a prompt
        have for its prefill to be compute-bound on an H100?
    """, answer=math.ceil(989.5e12 / 3.35e12), check=next(n for n in range(1, 999) if forward_flops(LLAMA_3_8B, n, 0) / decoding_bytes(LLAMA_3_8B, 1, 0) > ridge),
        unit="tokens", within=0.05, wrong={
            "A weight costs 2 FLOPs per token, and also has 2 bytes: that is one FLOP per byte and token.": ridge / 2,
        }, hint="How many FLOPs per byte does each token of the prompt add?", why=r"""
            Each token of the prompt adds one FLOP per byte, and the ridge is about `295` FLOPs per
            byte. The prefill of a shorter prompt is memory-bound, like decoding.
        """)


def bandwidth_sets_the_pace() -> None:
    """For one sequence, tokens per second are at most the bandwidth divided by the bytes of the weights."""
    note(r"""
        A model generates a single sequence, one token per pass. How many tokens a second can a GPU
        generate at most?

        In each pass the GPU reads all weights from its memory. The reading limits the speed,
        because it takes far longer than the arithmetic for a single token. By hand, take weights of
        $10$ GB and a bandwidth of $1000$ GB/s. The GPU can read the weights $1000 / 10 = 100$ times
        a second, so it generates at most $100$ tokens a second. In general:

        $$
        \text{tokens per second} \le \frac{\text{bandwidth}}{\text{bytes of the weights}}.
        $$

        Of Llama-3-8B's weights, a pass reads
        [`7504658432`](#training_costs_six_per_weight_and_twelve_per_pair) of `2` bytes: all but the
        embedding, of which it reads one row. (The GPU also reads the KV cache, which makes it a
        little slower. So this is an upper bound.) Here are the bandwidths of four
        GPUs [@nvidia-l4; @nvidia-a100; @nvidia-h100; @nvidia-h200]:
    """)
    size = 2 * 7504658432  # bytes
    counted = decoding_bytes(LLAMA_3_8B, 1, 0)  # @hide
    assert size == counted, \
        "A pass over one token reads two bytes for each weight."  # @hide
    bandwidths = {  # bytes per second
        "L4": 0.3e12, "A100": 2.039e12, "H100": 3.35e12, "H200": 4.8e12,
    }
    cards = "L4", "A100 SXM 80GB", "H100 SXM", "H200"  # @hide
    assert [*bandwidths.values()] == [CARDS[name].bandwidth for name in cards], \
        "These are the bandwidths of the datasheets."  # @hide
    sources = [CARDS[name].source for name in cards]  # @hide
    assert sources == ["nvidia-l4", "nvidia-a100", "nvidia-h100", "nvidia-h200"], \
        "These are the datasheets."  # @hide
    at_most = {gpu: round(rate / size) for gpu, rate in bandwidths.items()}  # @inspect at_most as tokens/s
    h100 = 3.35e12 / size  # @hide
    assert at_most["H100"] == 223 < h100 < 224, \
        "An H100 generates at most 223 tokens a second."
    note(r"""
        Would the arithmetic of an H100 allow more? It does `989.5e12` FLOPs a second, and a token
        costs `2` FLOPs per weight:
    """)
    by_arithmetic = 989.5e12 / (2 * 7504658432)  # @inspect round(by_arithmetic) as tokens/s
    assert 65_000 < by_arithmetic < 66_000, \
        "By its arithmetic alone, an H100 could generate 65,926 tokens a second."  # @hide
    assert by_arithmetic == PEAK / forward_flops(LLAMA_3_8B, 1, 0), \
        "Two FLOPs for each weight are those of the formula."  # @hide
    unused = by_arithmetic / h100  # @hide
    assert 295 < unused < 296, \
        "That is 295 times the tokens that its memory allows."  # @hide
    note(rf"""
        Its arithmetic would allow {by_arithmetic:,.0f} tokens a second, but its memory only
        {h100:.0f}. So to generate a single sequence faster, let the GPU read fewer bytes for each
        token, or choose a GPU with more bandwidth.
    """)
    misbelief("A GPU with twice the FLOP/s decodes twice as fast.", rf"""
        Of the GPU's two speeds, only the bandwidth matters here, because the arithmetic alone would
        allow {unused:.0f} times as many tokens per second as the memory. The H200 has the same
        FLOP/s as the H100. Its bound is {4.8 / 3.35:.1f} times as high, because its bandwidth is
        `4.8 / 3.35` times as high [@nvidia-h200].
    """)
    question(r"""
        An H100 generates at most `223` tokens a second with `2` bytes for each weight. Now the same
        weights are stored in half a byte each, and the arithmetic is no faster. How many tokens a
        second does the GPU generate at most?
    """, answer=4 * h100, check=3.35e12 / (7504658432 / 2), unit="tokens/s", within=0.02, wrong={
            "The arithmetic is not what limits the GPU; it now reads fewer bytes.": 223,
            "Half a byte is a quarter of 2 bytes.": 2 * 223,
            "With fewer bytes to read, the GPU generates more tokens, not fewer.": 223 / 4,
        }, hint="By what factor do the bytes shrink?",
        why="For each token the GPU reads a quarter of the bytes. So it can generate `4` times as many tokens, although the arithmetic is no faster.")


def step_seconds(config: Config, batch: int, context: int) -> float:
    """Seconds of one decoding step on an H100 at best; `batch`: how many sequences, `context`: tokens of each."""
    weights = decoding_bytes(config, 1, 0) / BANDWIDTH
    products = max(weights, forward_flops(config, batch, 0) / PEAK)
    caches = batch * cache_bytes(config, context) / BANDWIDTH
    attention = attention_flops(config, batch, context) / PEAK
    return products + max(caches, attention)


def pace_of(config: Config, batch: int, context: int) -> float:
    """Tokens per second that an H100 decodes in total at best; `batch`: how many sequences, `context`: tokens of each."""
    return batch / step_seconds(config, batch, context)


MEMORY = int(room(H100.memory, RESERVE, 0))  # bytes: a tenth is kept free


def room_for(
    config: Config, context: int, gpus: int = 1, memory: int = MEMORY
) -> int:
    """How many sequences fit into the memory that the weights leave for KV caches; `context`: tokens of each, `gpus`: how many GPUs."""
    left = gpus * memory - 2 * parameter_count(config)
    return left // cache_bytes(config, context)


def a_batch_shares_the_weights() -> None:
    """A batch shares one read of the weights, but each sequence adds its own cache."""
    note(r"""
        To generate one token of a sequence, a GPU reads all weights of the model. Can several
        sequences share this read?

        Yes, because the tokens of all sequences are multiplied by the same weights. But each
        sequence has its own *KV cache*, the keys and values of its tokens, and the GPU has to read
        every cache. Suppose reading the weights takes `10` ms and reading one cache `1` ms:

        - One sequence: a step takes `10 + 1 = 11` ms and generates $1$ token.
        - Five sequences, a *batch*: a step takes `10 + 5 = 15` ms and generates $5$ tokens.

        While the GPU reads the weights, it multiplies them by the tokens of the batch, so the
        longer of the two counts. Then it reads the caches. With $N$ weights of $w$ bytes, $2$ FLOPs
        per weight and sequence, a batch size of $B$ sequences, and caches of $C$ bytes, a step
        takes about as long as this. The bandwidth is in bytes per second, and the peak in FLOPs per
        second:

        [@eq:step]: $$
        \text{step} = \max\left(\frac{N w}{\text{bandwidth}},\; \frac{2BN}{\text{peak}}\right)
        + \frac{B\,C}{\text{bandwidth}}
        $$

        Take Llama-3-8B on an H100, with up to `48` sequences. Their arithmetic takes less time than
        reading the weights, so the maximum is the reading, at `3.35e12` bytes a second. The
        [cache](#a_token_leaves_its_keys_and_values) of a long sequence of `8192` tokens needs
        `2**30` bytes, and that of a short one of `128` tokens `1/64` of this:
    """)
    assert round(48 / (PEAK / BANDWIDTH), 3) == 0.163, \
        "The FLOPs of 48 sequences with the weights take 0.163 times as long as reading the weights."  # @hide
    assert attention_flops(LLAMA_3_8B, 1, 8192) == 4 * GiB, \
        "Attention does 4 FLOPs per byte of the cache, so it takes less time than reading the cache."  # @hide
    model = Transformer(MODEST).bfloat16()  # @hide
    grown = []  # @hide
    for batch in (1, 16):  # @hide
        caches = full_caches(model, batch, 511)
        tokens = torch.zeros(batch, 1, dtype=torch.int64)
        grown.append(bytes_moved(partial(model, tokens, caches)))
    ratio = grown[1] / grown[0]  # @hide
    by_formula = [decoding_bytes(MODEST, batch, 512) for batch in (1, 16)]  # @hide
    predicted = by_formula[1] / by_formula[0]  # @hide
    above = ratio / predicted  # @hide
    assert by_formula == [7_184_384, 15_048_704], \
        "For a small model, weights once and 1 or 16 caches are 7,184,384 and 15,048,704 bytes."  # @hide
    assert 1 < above < 1.2, \
        "The bytes that its operations move grow as the formula says, to within a fifth."  # @hide
    weights = 2 * 7504658432 / 3.35e12  # @inspect weights as s
    long_cache = 2**30 / 3.35e12  # @inspect long_cache as s

    def tokens_per_second(batch: int, cache: float) -> float:
        return batch / (weights + batch * cache)

    long = [tokens_per_second(n, long_cache) for n in (1, 48)]  # @inspect long as tokens/s
    short = [tokens_per_second(n, long_cache / 64) for n in (1, 48)]  # @inspect short as tokens/s
    (one_long, many_long), (one_short, many_short) = long, short  # @hide
    assert round(many_long / one_long, 1) == 11.6, \
        "In total, 48 long sequences get 11.6 times the tokens per second of one."
    assert round(many_short / one_short, 1) == 45.6, \
        "In total, 48 short sequences get 45.6 times the tokens per second of one."
    by_helper = [pace_of(LLAMA_3_8B, *it) for it in ((1, 8192), (48, 8192), (1, 128), (48, 128))]  # @hide
    assert [round(pace, 6) for pace in by_helper] == [round(pace, 6) for pace in (one_long, many_long, one_short, many_short)], \
        "The formula that later sections use gives the same."  # @hide
    ceiling = BANDWIDTH / cache_bytes(LLAMA_3_8B, 8192)  # @hide
    assert round(pace_of(LLAMA_3_8B, 256, 8192) / ceiling, 4) == 0.9482, \
        "256 long sequences get 95 % of bandwidth divided by one cache, which no batch exceeds."  # @hide
    steps = [step_seconds(LLAMA_3_8B, b, 0) for b in range(999)]  # @hide
    turn = next(b for b in range(2, 999) if steps[b] > steps[1])  # @hide
    assert turn == 296, \
        "From 296 sequences on, the matmuls are compute-bound."  # @hide
    both = 1e3 * step_seconds(LLAMA_3_8B, 512, 128)  # @hide
    assert round(both, 2) == 10.33, \
        "A step of 512 short sequences takes 10.33 milliseconds."  # @hide
    note(rf"""
        With `48` short sequences the total throughput is {many_short / one_short:.1f} times that of
        one, because nearly all bytes are weights, read once for all sequences. With `48` long
        sequences the factor is only {many_long / one_long:.1f}, because reading `48` long caches
        takes longer than reading the weights.

        So a batch raises the total throughput most when the sequences are short. Each single
        sequence gets slower in a batch, because it waits while the caches of the others are read:
        with `48` long ones, it gets {many_long / 48:.0f} tokens a second instead of {one_long:.0f}.
    """)
    more = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]  # @hide

    def paces(sequences: int, context: int) -> dict[str, float]:  # @hide
        if sequences > room_for(LLAMA_3_8B, context):
            raise ValueError("the caches do not fit beside the weights")
        pace = pace_of(LLAMA_3_8B, sequences, context)
        return {"total": pace, "each sequence": pace / sequences}

    grid = explore(paces, over={"sequences": more, "context": [128, 512, 2048, 8192, 32768]},
        at={"sequences": 8, "context": 2048}, kind="curve", unit="tokens/s",
        do="Set the context to `8192` and go from one sequence to as many as fit. Then set the context to `128` and do the same.",
        see=rf"""
            With long sequences the total levels off, because each sequence also waits while the
            caches of the others are read. With short sequences the total first grows nearly in
            proportion to their number. From {turn} sequences on, the FLOPs take longer than reading
            the weights.
        """,
        caption=f"Tokens per second of Llama-3-8B on an {H100.name}, at best, for as many sequences as fit into its memory.",
        alt=r"""
            Two lines over the number of sequences: the total tokens per second, which rise, and
            those of each sequence, which fall.
        """)  # @hide
    one, full = (grid[s, 8192]["total"] for s in (1, 32))  # @hide
    assert 10.4 < full / one < 10.5, \
        "With long sequences, the total levels off."  # @hide
    assert max(s for s, c in grid if c == 8192) == 32, \
        "The line ends where twice the sequences no longer fit."  # @hide
    scaled = Config(layers=1, width=256, heads=8, kv_heads=2, hidden=256, vocabulary=1092, context=100)  # @hide
    once, cached = decoding_bytes(scaled, 1, 0), weighed_cache(scaled, 50)  # @hide
    assert weighed_cache(scaled) / once == 0.2 / 10, \
        "In a model of suitable sizes, a cache has 0.2 / 10 of the bytes of the weights."  # @hide
    question(r"""
        On some GPU, reading the weights of a model takes `10` ms, and reading the cache of one
        sequence takes `0.2` ms. The arithmetic takes less time than the reading. The GPU generates
        `50` sequences at once. How many tokens a second is that in total?
    """, answer=50 / (10e-3 + 50 * 0.2e-3), check=50 / (10e-3 * (once + cached) / once), unit="tokens/s", within=0.01, wrong={
            "Each sequence has its own cache: add the time of one cache 50 times.": 50 / (10e-3 + 0.2e-3),
            "That is for each sequence; in total there are 50 times as many.": 1 / (10e-3 + 50 * 0.2e-3),
            "The weights are read once for all sequences.": 50 / (50 * (10e-3 + 0.2e-3)),
            "The caches also have to be read.": 50 / 10e-3,
        }, hint="How long does one step take?",
        why="A step takes `10` ms for the weights, read once, and `50 * 0.2` ms for the caches: `20` ms. It generates `50` tokens.")


def memory_limits_the_batch() -> None:
    """A GPU's memory limits the batch: in addition to the weights, it has to hold the cache of each sequence."""
    note(rf"""
        A GPU generates many sequences at once, a *batch*. How many fit into its memory?

        The memory holds the weights once, because all sequences use the same ones, and a *KV cache*
        for each sequence, its own keys and values. By hand, take $10$ GB of memory, weights of $4$
        GB and caches of $2$ GB: $(10 - 4) / 2 = 3$ sequences fit. In general, the number of
        sequences is

        $$
        \frac{{\text{{memory}} - \text{{weights}}}}{{\text{{cache of one sequence}}}},
        \text{{ rounded down.}}
        $$

        Take Llama-3-8B on an {H100.name}, which has {H100.memory / 1e9:.0f} GB. A tenth of its
        memory is [kept free](#checkpointing_lets_a_large_model_fit) for temporary results, so `72`
        GB are available. The model has
        [`8030261248` parameters](#published_counts_follow_from_eight_numbers) of `2` bytes. The
        cache of a full sequence, `8192` tokens, needs
        [`2**30` bytes](#a_token_leaves_its_keys_and_values), {2**30 / 1e9:.2f} GB:
    """)
    memory = 72 * 10**9  # bytes
    assert memory == MEMORY, \
        "This is nine tenths of the memory of an H100."  # @hide
    assert 2 * 32 * (8 * 128) * 2 * 8192 == 2**30 == cache_bytes(LLAMA_3_8B, 8192), \
        "The cache of a full sequence needs one GiB."  # @hide
    weights = 2 * 8030261248  # @inspect round(weights / GB, 1) as GB
    sequences = (memory - weights) // 2**30  # @inspect sequences
    left = memory - weights  # @hide
    assert sequences == 52, \
        "The weights and 52 full caches fit."
    assert sequences == room_for(LLAMA_3_8B, LLAMA_3_8B.context), \
        "The formula that later sections use gives the same number."  # @hide
    note(rf"""
        The weights leave {left / 1e9:.1f} GB, room for {sequences} caches of {2**30 / 1e9:.2f} GB.
        The limit matters, because a larger batch
        [generates more tokens per second](#a_batch_shares_the_weights) in total. So a server limits
        the length of its sequences, makes weights or caches smaller, or uses more GPUs:
    """)

    def with_caches(sequences: int, tokens: int, kv_heads: int) -> dict[str, Any]:  # @hide
        config = replace(LLAMA_3_8B, kv_heads=kv_heads)
        cache = cache_bytes(config, tokens)
        return {
            "memory": memory, "weights": 2 * parameter_count(config), "cache": cache,
            "weights_ms": 1e3 * decoding_bytes(config, 1, 0) / BANDWIDTH, "caches_ms": 1e3 * sequences * cache / BANDWIDTH,
            "total": pace_of(config, sequences, tokens), "fits": sequences <= room_for(config, tokens),
        }

    start = with_caches(16, 8192, 8)  # @hide
    cached = explore(with_caches, over={
        "sequences": [2**i for i in range(10)], "tokens": [2**i for i in range(9, 18, 2)], "kv_heads": [1, 8, 32],
    }, at={"sequences": 16, "tokens": 8192, "kv_heads": 8}, module="pictures/cache.js",
        still=stacks({"one H100": {"weights": start["weights"] / GB, "KV caches": 16 * start["cache"] / GB}}, "GB"),
        do="Add sequences until the GPU is full. Which then takes more time, reading the weights or reading the caches? Then choose another number of KV heads.",
        see=rf"""
            With `32` sequences of `8192` tokens, twice as many no longer fit. Reading their caches
            takes {start['caches_ms'] * 2 / start['weights_ms']:.1f} times as long as reading the
            weights. With `32` KV heads, caches are {32 // 8} times as large, and not even `16`
            sequences fit.
        """, caption=rf"""
            The weights of Llama-3-8B in the memory of an {H100.name}, and a stripe for the KV cache
            of each sequence. Below, the least time that a step needs to read both.
        """, alt=r"""
            A frame, the memory of a GPU, with a bar in it: the weights, and behind them a stripe
            for each sequence. Below it two bars, the time to read the weights and the time to read
            the caches.
        """)  # @hide
    assert [s for s in (16, 32, 64, 128) if cached[s, 8192, 8]["fits"]] == [16, 32], \
        "In the picture 32 sequences of 8192 tokens fit, and 64 do not."  # @hide
    assert 2.2 < cached[32, 8192, 8]["caches_ms"] / cached[32, 8192, 8]["weights_ms"] < 2.4, \
        "Reading 32 caches takes about 2.3 times as long as reading the weights."  # @hide
    assert [s for s in (8, 16, 32) if cached[s, 8192, 32]["fits"]] == [8], \
        "With 32 KV heads, 16 sequences no longer fit."  # @hide
    question(r"""
        The weights are stored in one byte each instead of `2`, and the caches stay as they are. How
        many full sequences fit now?
    """, answer=(72 * 10**9 - 8030261248) // 2**30,
        check=(MEMORY - parameter_count(LLAMA_3_8B)) // cache_bytes(LLAMA_3_8B, 8192), unit="sequences", within=0.02, wrong={
            "Only the weights are half as large, not the caches.": 2 * 52,
            "The weights are smaller, so more memory is left for caches.": 52,
            "The weights still have to be in memory.": 72 * 10**9 // 2**30,
        }, hint="How many GB do the weights leave for the caches?", why=r"""
            The weights need `8` GB instead of `16`, so `64` GB are left, and each cache needs
            `1.07` GB. That is only a little more room, because the caches use most of the memory.
        """)


def cache_intensity(heads: int, kv_heads: int, batch: int) -> float:
    """FLOPs of attention per byte of the KV cache in bfloat16, when each sequence generates one token."""
    with torch.device("meta"):
        q = torch.empty(batch, 1, heads, 128, dtype=torch.bfloat16)
        k = torch.empty(batch, 1024, kv_heads, 128, dtype=torch.bfloat16)
        v = torch.empty_like(k)
    return flops(lambda: written_attention(q, k, v)) / (k.nbytes + v.nbytes)


@aside
def attention_over_a_cache_gains_nothing_from_a_batch() -> None:
    """A batch does not raise the intensity of attention over a cache; sharing keys and values does."""
    note(r"""
        When a model generates many sequences at once, the weights are read once for all of them.
        But each sequence has its own *KV cache*, the keys and values of its tokens, and attention
        reads it for each new token. How many FLOPs does attention do per byte of the cache? This is
        its *intensity*.

        Attention has several *query heads*, and some of them may share a key and a value. Take one
        element of a key. In `bfloat16` it has `2` bytes. Each query head that uses this key
        multiplies the element once and adds the product to a sum: `2` FLOPs. An element of a value
        costs the same. So:

        - If one head uses a key, attention does one FLOP per byte. If $4$ heads share the key, it
          does $4$.
        - A larger batch changes nothing, because each sequence has its own keys and values.

        `cache_intensity(heads, kv_heads, batch)` runs attention for one new token of each sequence,
        counts the FLOPs of its two matmuls and divides them by the bytes of the cache. A *KV head*
        makes one key and one value per token. First `32` query heads share `8` KV heads, for one
        sequence and for `64`. Then, for one sequence, each of `32` query heads has its own KV head,
        or all share one:
    """)
    by_batch = {batch: cache_intensity(32, 8, batch) for batch in (1, 64)}  # @inspect by_batch as FLOP/B
    assert by_batch[1] == by_batch[64] == 32 / 8, \
        "For one sequence and for 64, attention does 4 FLOPs per byte."
    by_kv_heads = {n: cache_intensity(32, n, 1) for n in (32, 1)}  # @inspect by_kv_heads as FLOP/B
    assert [*by_kv_heads.values()] == [1, 32], \
        "With 32 KV heads attention does 1 FLOP per byte, and with one KV head 32."
    ridge = PEAK / BANDWIDTH  # @hide
    assert 9 < ridge / max(by_kv_heads.values()) < 10, \
        "Even if all heads share one key, the ridge of an H100 is more than 9 times as high."  # @hide
    note(rf"""
        By its datasheet [@nvidia-h100], an H100 does `989.5e12` FLOPs and reads `3.35e12` bytes a
        second, so it can do {ridge:.0f} FLOPs while one byte arrives. Here attention does at most
        `32`, so with these heads and one new token per sequence it is memory-bound at any batch
        size: it takes at least the time to read the cache.

        Sharing helps: if more query heads share a key and a value, there are fewer of both, so the
        cache is smaller and is read faster. This is a reason for *grouped-query attention*, in
        which heads share keys and values [@gqa].
    """)
    question(r"""
        A model has `64` query heads that share `8` KV heads. An element of its cache has `1` byte.
        How many FLOPs does attention do per byte of the cache?
    """, answer=2 * 64 / 8, check=2 * cache_intensity(64, 8, 1), unit="FLOP/B",
        wrong={
            "A head does a multiplication and an addition with each element.": 64 / 8,
            "Eight heads share a key: 64 divided by 8.": 2 * 64,
        }, hint="How many heads use one element of a key?",
        why="Each key serves `64 / 8` heads. Each of them does `2` FLOPs with an element, which has one byte.")


@aside
def a_guess_is_cheap_to_check() -> None:
    """By calculation, for one sequence, a pass over a token and four guesses takes hardly longer than over the token alone."""
    note(r"""
        A language model generates one token per pass. Can a pass give several tokens?

        It can, if a small, fast model guesses them first. Say that it guesses “sat on a hat” after
        “The cat”. The large model's KV cache holds “The”; “cat” is the newest token and not yet
        processed. So one pass processes “cat” and the four guesses: `5` tokens. A pass computes the
        next token at every position, so it shows what the large model itself would generate if it
        always takes its most probable token:

        - after “The cat”: “sat”, so the first guess is right;
        - after “The cat sat”: “on”, so the second guess is right;
        - after “The cat sat on”: “the”, so the guess “a” is wrong.

        So “the” replaces “a”, and the guess “hat” is dropped, because it follows the wrong “a”. One
        pass gave “sat on the”. This is *speculative decoding* [@leviathan2023].

        Does a pass over `5` tokens take longer than a pass over one? Hardly, for one sequence,
        because the GPU spends the pass on reading weights, and reads each weight once for all
        tokens. It does the arithmetic while the next weights arrive. Count only the matmuls with
        weights. In Llama-3-8B these have `7504658432` weights of `2` bytes. An H100 reads `3.35e12`
        bytes and does `989.5e12` FLOPs a second:
    """)
    reading = 2 * 7504658432 / 3.35e12  # @inspect reading as s
    # 5 tokens, 2 FLOPs per weight and token
    arithmetic = 5 * 2 * 7504658432 / 989.5e12  # @inspect arithmetic as s
    assert (BANDWIDTH, PEAK) == (3.35e12, 989.5e12), \
        "These are the rates of the datasheet."  # @hide
    assert 59 < reading / arithmetic < 60, \
        "Reading the weights takes 59 times as long as the arithmetic for 5 tokens."
    model = Transformer(MODEST).bfloat16()  # @hide

    def pass_over(count: int) -> tuple[int, int]:  # @hide
        tokens = torch.zeros(1, count, dtype=torch.int64)
        caches = full_caches(model, 1, 512 - count)
        work = flops(partial(model, tokens, caches))
        caches = full_caches(model, 1, 512 - count)
        return work, bytes_moved(partial(model, tokens, caches))

    one, five = pass_over(1), pass_over(5)  # @hide
    more_bytes = five[1] / one[1]  # @hide
    assert five[0] == 5 * one[0], \
        "In a small model, a pass over 5 tokens costs 5 times the FLOPs of a pass over one."  # @hide
    assert 1 < more_bytes < 1.2, \
        "It moves less than 1.2 times the bytes."  # @hide
    note(r"""
        So while the weights are read, the GPU has time to check many guesses. In this way
        speculative decoding uses arithmetic units that are otherwise idle. The small model's passes
        take time as well.
    """)
    question(r"""
        At these rates, over how many tokens can one pass run before the arithmetic takes longer
        than reading the weights?
    """, answer=int(989.5e12 / 3.35e12), unit="tokens", within=0.02,
        check=next(n for n in range(1, 999) if arithmetic / 5 * (n + 1) > reading),
        wrong={"The arithmetic for 5 tokens already counts 5 of them.": 59},
        hint="The arithmetic grows with the tokens, and the reading does not.",
        why=r"""
            The arithmetic for `5` tokens takes `1/59` of the time of the reading. So the arithmetic
            for about `5 * 59` tokens takes as long as the reading.
        """)


def gain_in(checks: Sequence[Sequence[bool]], cost: float) -> float:  # @hide
    """Tokens that these checks give for each pass they take; of each guess they say if it is right, `cost`: passes of a guess."""
    tokens = passes = 0.0
    for guesses in checks:
        passes += 1
        tokens += 1
        going = True
        for right in guesses:
            passes += cost
            going = going and right
            tokens += going
    return tokens / passes


@aside
def guesses_pay_if_they_are_often_right() -> None:
    """Speculative decoding makes one sequence faster if its guesses are cheap and often right."""
    note(r"""
        In *speculative decoding* a small model guesses the next few tokens of a sequence, and the
        large model checks all guesses in one pass. For one sequence, a check takes hardly longer
        than [generating one token](#a_guess_is_cheap_to_check), because the weights are read once
        in either case. How much faster is decoding then?

        A guess is right if it is the token that the large model would generate. A check keeps all
        guesses before the first wrong one, and adds one token from the large model. So $n$ guesses
        give $1$ to $n + 1$ tokens.

        By hand, take two guesses, each right half of the time, independently of the other:

        - Every check gives the token from the large model: `1`.
        - In half of the checks the first guess is right: $0.5$.
        - In a quarter of the checks the second guess is right too: $0.5 \cdot 0.5 = 0.25$.

        On average a check gives $1 + 0.5 + 0.25 = 1.75$ tokens. Suppose a guess takes $0.1$ of the
        time of a large model's pass. Two guesses and the check take $2 \cdot 0.1 + 1 = 1.2$ passes,
        and the large model alone needs one pass per token. So decoding is $1.75 / 1.2 = 1.46$ times
        as fast. In general, with $n$ guesses that are each right with probability $p$,
        independently of the others, and each take $q$ times as long as a pass, the gain is
        [@leviathan2023]

        [@eq:speculation]: $$
        \text{gain} = \frac{1 + p + p^2 + \dots + p^n}{1 + nq}
        $$

        Let Llama-3.2-1B guess `4` tokens for Llama-3-8B. A pass takes about as long as reading the
        weights of all matmuls, `2` bytes each: `2.47` GB for the small model and `15.01` GB for the
        large one. Suppose a guess is right with probability `0.8`:
    """)
    p = 0.8
    tokens = 1 + p + p**2 + p**3 + p**4  # @inspect round(tokens, 1) as tokens
    q = 2.47 / 15.01  # @inspect round(q, 3) as passes
    gain = tokens / (1 + 4 * q)  # @inspect round(gain, 2) as times
    n = 4  # @hide
    assert 2 < gain < 2.1, \
        "With 80 % of the guesses right, each independently, four at a time double the speed."
    read = [decoding_bytes(model, 1, 0) / 1e9 for model in (LLAMA_32_1B, LLAMA_3_8B)]  # @hide
    assert [round(size, 2) for size in read] == [2.47, 15.01], \
        "For a token, the two models read 2.47 and 15.01 GB of weights."  # @hide
    right = torch.rand(100_000, n) < p  # @hide
    drawn = (1 + right.cumprod(dim=1).sum(dim=1)).double().mean().item()  # ten seeds: off by at most 0.004  # @hide
    assert math.isclose(drawn, tokens, rel_tol=0.01), \
        "100,000 random checks agree with the formula to within 1 %."  # @hide
    halves = [(first, second) for first in (True, False) for second in (True, False)]  # @hide
    assert math.isclose(gain_in(halves, 0.1), 1.75 / 1.2), \
        "The four cases of two guesses, one after another, give 1.75 / 1.2 tokens for each pass."  # @hide
    best = max(range(1, 20), key=lambda n: (1 - p ** (n + 1)) / (1 + n * q))  # @hide
    assert best == 4, "Four guesses at a time gain most here."  # @hide
    note(rf"""
        So a check gives {tokens:.1f} tokens, and with its guesses takes as long as {1 + n * q:.2f}
        passes. Guessing pays if the small model is fast and often right. More guesses are not
        always better: here a fifth lowers the gain from {gain:.3f} to
        {(tokens + p**5) / (1 + 5 * q):.3f}, because each guess takes time, and a later guess counts
        only if all before it are right.
    """)
    question(r"""
        The small model has learned another language, and all its `4` guesses are wrong every time.
        How many times as fast as the large model alone is speculative decoding then? (A guess takes
        `0.165` of the time of a pass.)
    """, answer=1 / (1 + 4 * 0.165), check=gain_in([[False] * 4], 0.165), unit="times", within=0.02,
        wrong={
            "The guesses take time, right or wrong.": 1.0,
            "Each pass still gives the token from the large model.": 0.0,
        }, hint="How many tokens do four guesses and their check give, and how long do they take?", why=r"""
            Each check gives one token, from the large model, and takes `1 + 4 * 0.165` passes with
            its guesses. So a poor small model makes decoding slower. It never makes the result
            worse, because a wrong guess is not kept.
        """)


def random_model(config: Config) -> Transformer:  # @stepover
    """Builds a model of these sizes on the GPU, in bfloat16, with random weights."""
    with torch.device("meta"):
        model = Transformer(config).bfloat16()
    model.to_empty(device="cuda")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.02)
    return model


def time_decoding(model: Transformer, batch: int, context: int) -> Timing:  # @stepover
    """Times one decoding step of `batch` sequences as a CUDA graph; the new token is the last of `context` tokens."""
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
def decoding_is_timed_on_the_gpu() -> None:
    """A decoding step takes at least the time to read the weights and the caches once."""
    note(r"""
        How fast can a *decoding step* be, which generates one token of each sequence, and is yours
        near that? It takes at least the time to read its bytes, because the GPU has to read all
        weights of the model and the *KV cache* of each sequence, the keys and values of its tokens
        so far. Divide this time by the time of your step: that is the share of the memory bandwidth
        which the step uses.

        By hand, take weights of $10$ GB, $2$ sequences with caches of $1$ GB each, and a bandwidth
        of $3000$ GB per second. Reading takes $(10 + 2 \cdot 1) / 3000$ s, or $4$ ms. If a step
        takes $8$ ms, it uses $4 / 8 = 50\%$ of the bandwidth.

        Now take `8` of the layers of Llama-3-8B and its output matrix, which scores the tokens of
        the vocabulary, with sequences of `1024` tokens:

        - Weights: `8` layers of `218103808` weights, and `4096` for each of the `128256` tokens of
          the vocabulary, `2` bytes each: `4.54` GB.
        - The cache of a sequence: `2` (key and value) × `8` layers × `8` KV heads × `128` elements
          × `1024` tokens × `2` bytes: `0.034` GB.

        By its datasheet [@nvidia-h100], an H100 reads `3.35e12` bytes per second:

        | sequences | weights and caches, GB | to read them, ms |
        |---|---|---|
        | `1` | `4.54 + 0.03 = 4.57` | `1.37` |
        | `8` | `4.54 + 0.27 = 4.81` | `1.44` |
        | `32` | `4.54 + 1.07 = 5.61` | `1.68` |

        If reading were all, a step for `32` sequences would take `1.68 / 1.37` times as long as a
        step for one, and generate `32` tokens instead of one. The times are lower bounds. A real
        step takes longer, because it is a chain of short programs on the GPU, and the memory is
        idle while each one starts.

        On a GPU, `time_decoding` measures the time of a step of this model. `sizes` are the bytes
        of the table, which `decoding_bytes` computes from the model's sizes, `config`. `paces` are
        the tokens per second of all sequences together:
    """)
    config, context = replace(LLAMA_3_8B, layers=8, context=1024), 1024  # @hide
    batches = [1, 8, 32]
    sizes = [decoding_bytes(config, b, 1024) for b in batches]
    in_gb = [round(size / GB, 2) for size in sizes]  # @hide
    assert in_gb == [4.57, 4.81, 5.61], \
        "The steps read 4.57, 4.81 and 5.61 GB."  # @hide
    in_ms = [round(1e3 * size / BANDWIDTH, 2) for size in sizes]  # @hide
    assert in_ms == [1.37, 1.44, 1.68], \
        "An H100 reads the bytes of these steps in 1.37, 1.44 and 1.68 ms."  # @hide
    weights = decoding_bytes(config, 1, 0)  # @hide
    assert weights == 2 * (8 * 218103808 + 128256 * 4096) == 2 * 2270167040, \
        "A step reads 2,270,167,040 weights of 2 bytes."  # @hide
    assert (BANDWIDTH, PEAK) == (3.35e12, 989.5e12), \
        "These are bandwidth and peak of an H100."  # @hide
    caches = [round((size - weights) / GB, 2) for size in sizes]  # @hide
    assert caches == [0.03, 0.27, 1.07], \
        "The caches of 1, 8 and 32 sequences have 0.03, 0.27 and 1.07 GB."  # @hide
    of_one = round(weights / GB, 2), round((sizes[0] - weights) / GB, 3)  # @hide
    assert of_one == (4.54, 0.034), \
        "The weights have 4.54 GB, and a cache has 0.034 GB."  # @hide
    assert sizes[0] - weights == 2 * 8 * (8 * 128) * 1024 * 2, \
        "It also reads the keys and values of 1024 tokens."  # @hide
    assert [round(1e3 * b * weights / PEAK, 3) for b in batches] == [0.005, 0.037, 0.147], \
        "An H100 does 2 FLOPs for each weight and sequence in 0.005, 0.037 and 0.147 ms."  # @hide
    model = random_model(config)  # @hide
    timed = [time_decoding(model, b, 1024) for b in batches]  # @measure timed
    paces = [b / t.seconds for b, t in zip(batches, timed)]  # @measure paces as tokens/s
    assert paces == sorted(paces), \
        "With more sequences, the total tokens per second rise."
    assert timed[1].seconds < 2 * timed[0].seconds, \
        "A step for 8 sequences takes less than twice as long as for one."
    gpu = find(torch.cuda.get_device_name())  # None without a datasheet  # @hide
    if gpu is not None:  # @hide
        share = [
            size / t.seconds / gpu.bandwidth for size, t in zip(sizes, timed)
        ]  # @measure share as %
        assert max(share) <= 1, \
            "No step reads more bytes in a second than the bandwidth allows."  # @hide
        # 0.4: a guess, far below what is expected
        assert share[0] > 0.4, \
            "For one sequence, the GPU reads at more than 0.4 of its bandwidth."  # @hide
        if gpu.bfloat16 is not None:
            work = forward_flops(config, 1, context) / gpu.bfloat16  # s
            busy = work / timed[0].seconds  # @measure busy as %
            assert busy < share[0], \
                "The GPU uses a smaller share of its arithmetic than of its bandwidth."  # @hide
    rows = "\n".join(
        f"| {batch} | {t.seconds / MICRO:.0f} | {batch / t.seconds:,.0f} | {size / t.seconds / GB:,.0f} |"
        for batch, t, size in zip(batches, timed, sizes)
    )  # @hide
    note(f"{timed[0].device}:")
    note(f"| sequences | µs for a step | tokens/s in total | GB read per second |\n|---|---|---|---|\n{rows}")
    question(r"""
        A step of some model reads `4.5` GB in all, weights and cache together, on a GPU with a
        bandwidth of `2e12` bytes a second. It takes `3` ms. What share of its bandwidth does the
        GPU use, in percent?
    """, answer=4.5e9 / 3e-3 / 2e12, check=4.5 / (3 * 2), unit="%", within=0.01, wrong={
            "Divide the bytes by the time, and then by the bandwidth.": 3e-3 * 2e12 / 4.5e9,
        }, hint="How long does the reading alone take by the datasheet?",
        why="At `2e12` bytes a second, `4.5` GB take `2.25` ms. The step takes `3` ms, so the GPU uses `2.25 / 3` of its bandwidth.")
