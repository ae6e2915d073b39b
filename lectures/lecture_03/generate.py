"""Generating: what is kept for each token, what is read for the next, and how fast that can be."""
import math
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from counters import flops
from hardware import CARDS, find
from jaxtyping import Float
from napkin import RESERVE, room
from timing import Timing, time_graph
from torch import Tensor
from units import GB, MICRO, GiB, KiB
from plots import BLUE, GREEN, stacks

from litbook import aside, explore, figure, misbelief, note, question, requires

from .block import Cache, Transformer, written_attention
from .counts import Config, attention_flops, block_weights, cache_bytes, forward_flops, parameter_count
from .figures import cells
from .published import GPT_3, LLAMA_2_7B, LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, LLAMA_32_1B, SMALL
from .regimes import BANDWIDTH, H100, PEAK, bytes_moved


def generating() -> None:
    """Generating."""
    note(r"""
        In training, a model processes whole sequences at once. When it generates, it adds one new
        token at a time. A token costs the same FLOPs in both cases. But each step reads all weights
        from the GPU's memory for this single token. So generating is memory-bound: the GPU waits
        for its memory, and its arithmetic units are mostly idle.
    """)
    a_cache_gives_the_same_answer_for_less()
    a_token_leaves_its_keys_and_values()
    reading_is_work_and_writing_is_waiting()
    bandwidth_sets_the_pace()
    a_batch_shares_the_weights()
    memory_limits_the_batch()
    attention_over_a_cache_gains_nothing_from_a_batch()
    a_guess_is_cheap_to_check()
    guesses_pay_if_they_are_often_right()
    a_step_has_a_bound()
    writing_is_timed_on_the_card()


def one_by_one(model: Transformer, tokens: Tensor) -> Tensor:
    """Feeds the model the tokens one at a time, with a KV cache; returns the logits for all of them."""
    caches = model.caches(len(tokens))
    singles = tokens.split(1, dim=1)
    return torch.cat([model(token, caches) for token in singles], dim=1)


def a_cache_gives_the_same_answer_for_less() -> None:
    """With a KV cache, each token's keys and values are computed once, not again for every later token."""
    note(r"""
        A language model generates a sequence one token at a time. In attention, each token has a
        *key* and a *value*, and the new token uses the keys and values of all earlier tokens. Does
        the model have to recompute them for each new token? No. A token's key and value depend only
        on this token and on the tokens before it, because no token attends to later ones. So a new
        token does not change the earlier keys and values, and a *KV cache* keeps them.

        Check that the *logits*, the scores that the model gives to each possible next token, are
        the same with a cache and without. A small model, with unfused attention, processes a
        sequence of `8` tokens at once. Then `one_by_one` feeds it the same tokens one at a time,
        with a cache:
    """)
    model = Transformer(SMALL, "written").double()
    tokens = torch.randint(SMALL.vocabulary, (1, 8))
    with torch.no_grad():
        logits: Float[Tensor, "batch seq vocab"] = model(tokens)
        from_cache: Float[Tensor, "batch seq vocab"] = one_by_one(model, tokens)
    assert torch.allclose(logits, from_cache), \
        "Both methods give the same logits."
    note(r"""
        How much work does the cache save? Without it, the model processes all $n$ tokens so far to
        generate token $n + 1$. With it, the model processes only the last token. In `3` steps that
        is `1 + 2 + 3 = 6` tokens without a cache, and `1 + 1 + 1 = 3` with it, so without a cache
        the model does twice the work. Now take `8` steps. `flops` counts their FLOPs, without a
        cache and with one:
    """)
    with torch.no_grad():
        runs = [partial(model, tokens[:, :n]) for n in range(1, 9)]
        without_cache = sum(flops(run) for run in runs)  # @inspect without_cache as FLOP
        with_cache = flops(lambda: one_by_one(model, tokens))  # @inspect with_cache as FLOP
    with torch.no_grad():  # @hide
        first = flops(runs[0])
    formula = (sum(forward_flops(SMALL, n, n) for n in range(2, 9)),
               sum(forward_flops(SMALL, 1, n) for n in range(2, 9)))  # @hide
    assert (without_cache - first, with_cache - first) == formula, \
        "From the second token on, the formula for a forward pass gives the same FLOPs."  # @hide
    saved = without_cache / with_cache  # @inspect round(saved, 2) as times
    assert 4.5 < saved < 4.6, \
        "Without a cache, 8 steps cost between 4.5 and 4.6 times the FLOPs."
    note(rf"""
        Without a cache, the steps process `1`, `2` and so on up to `8` tokens, on average
        `(1 + 8) / 2`, which is {(1 + 8) / 2}. With a cache each step processes `1`. So without a
        cache, the matmuls with weights cost {(1 + 8) / 2} times as many FLOPs. The longer the
        sequence, the more a cache saves.

        The counted ratio is {saved:.2f}, a little more, because the cache saves even more in
        attention.
    """)
    sums = sum(range(1, 1001)), sum(n * n for n in range(1, 1001))  # @hide
    assert sums == (500500, 333833500), \
        "The numbers from 1 to 1000 add up to 500500, and their squares to 333833500."  # @hide
    steps = range(1, 9)  # @hide
    grids = {
        "without a cache": [[1 if at <= step else 0 for at in steps] for step in steps],
        "with a cache": [[1 if at == step else 2 if at < step else 0 for at in steps] for step in steps],
    }  # @hide
    through = [sum(row.count(1) for row in grid) for grid in grids.values()]  # @hide
    assert through == [sum(steps), len(steps)], \
        "A blue cell is a token that goes through the model."  # @hide
    figure(cells(grids, [("not there yet", "none"), ("goes through the model", BLUE), ("kept", GREEN)],
                 ("step", "token")), caption=r"""
                     A sequence generated token by token, a row for each step. Without a cache all
                     tokens so far go through the model in each step; with it, only the new one.
                 """, alt=r"""
                     Two grids of eight by eight cells. In the left one a whole triangle goes
                     through the model, in the right one only its diagonal; what is below it is
                     kept.
                 """)
    question("Llama-3-8B starts from one token and runs `1000` steps, each of which generates a token. About how many times as many FLOPs do these steps cost without a cache as with one?",
        answer=(2 * 7504658432 * 500500 + 4 * 32 * 4096 * 333833500) / (2 * 7504658432 * 1000 + 4 * 32 * 4096 * 500500), check=sum(forward_flops(LLAMA_3_8B, n, n) for n in range(1, 1001))
        / sum(forward_flops(LLAMA_3_8B, 1, n) for n in range(1, 1001)),
        unit="times", hint="How many tokens does a step without a cache process, on average?", within=0.1,
        wrong={"That is the last step; the earlier steps process fewer tokens.": 1000}, why=r"""
            Without a cache, step $n$ processes $n$ tokens. In steps `1` to `1000` these are
            `500500` tokens, on average `500.5`; with a cache each step processes one. Attention
            saves a little more, because without a cache a step combines all $n^2$ pairs of its
            tokens, `333833500` in all steps.
        """)


def weighed_cache(config: Config, batch: int = 1) -> int:
    """Bytes of the KV cache of full sequences, added up from its tensors in bfloat16; `batch`: how many sequences."""
    with torch.device("meta"):
        like = torch.empty((), dtype=torch.bfloat16)
        return config.layers * Cache(config, batch, like).memory.nbytes


def a_token_leaves_its_keys_and_values() -> None:
    """Each token adds one row of keys and one of values per layer to the KV cache."""
    note(r"""
        When a model generates a sequence, it keeps the keys and values of all tokens so far, in its
        *KV cache*. How much memory does the cache need? In every layer, each token adds one row of
        keys and one row of values. In Llama-3-8B,
        [`4` query heads share](#heads_of_queries_share_keys) one key and one value, those of a *KV
        head*. So a row has `128` elements for each KV head, not for each query head. With $L$
        layers, $d_{kv}$ elements in a row and $w$ bytes per element, $T$ tokens need

        [@eq:cache]: $$
        \text{bytes of the KV cache} = 2\,L\,d_{kv}\,T\,w
        $$

        The factor `2` is needed because keys and values are both kept. One layer with rows of $4$
        elements of $2$ bytes needs $2 \cdot 1 \cdot 4 \cdot 3 \cdot 2 = 48$ bytes for $3$ tokens.
        Llama-3-8B has $L = 32$ and `8` KV heads of `128` elements, so $d_{kv} = 8 \cdot 128$. It
        was made for sequences of $T = 8192$ tokens [@llama-3-8b]. In `bfloat16`, an element needs
        $w = 2$ bytes. As a check, `weighed_cache` builds the tensors of a full cache and adds up
        their bytes:
    """)
    token = 2 * 32 * (8 * 128) * 2  # @inspect token as B
    assert token == cache_bytes(LLAMA_3_8B, 1) == 128 * KiB, \
        "One token needs 128 KiB."  # @hide
    sequence = token * 8192  # @inspect sequence as B
    assert sequence == weighed_cache(LLAMA_3_8B), \
        "The formula gives the bytes of the tensors of a full cache."
    assert sequence == GiB, \
        "A full sequence needs one GiB."
    older = weighed_cache(LLAMA_2_7B) / LLAMA_2_7B.context  # @hide
    assert older / token == 4.0, \
        "A token of Llama-2-7B needs 4 times as many bytes."  # @hide
    note(rf"""
        So a token needs `2` (key and value) × `32` layers × `8` KV heads × `128` elements × `2`
        bytes, which is {token // KiB} KiB. A sequence of `8192` tokens needs `8192` times that,
        exactly one GiB.
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
    caches = largest / token  # @hide
    assert 50 < sizes < 51, \
        "The largest Llama 3 has more than 50 times the parameters of the smallest."  # @hide
    assert caches == 126 / 32, \
        "Its cache for a token is larger by its layers alone, 126 instead of 32."  # @hide
    misbelief("The KV cache of a model grows in proportion to its parameters.", rf"""
        The cache grows with the layers and the KV heads, not with the parameters. Llama-3-405B has
        {sizes:.0f} times the parameters of Llama-3-8B. But it has the same number of KV heads, and
        `126` layers instead of `32` [@llama3]. So its cache per token is only `126 / 32`, or
        {caches:.1f}, times as large.
    """)
    question(r"""
        GPT-3 has `96` layers and `96` heads of `128` elements, each with its own keys and values
        [@gpt3]. How many bytes does one token add to its KV cache in `bfloat16`?
    """, answer=2 * 96 * (96 * 128) * 2, check=weighed_cache(GPT_3) // GPT_3.context, unit="B", within=0.05, wrong={
            "One factor of two is missing: there are keys and values, and an element needs two bytes.": 2 * 96 * 96 * 128,
        }, hint="Without sharing, a row of keys has `96 * 128` elements.",
        why=f"It is `2 * 96 * (96 * 128) * 2`: keys and values, layers, elements in a row, bytes. One sequence of `2048` tokens then needs {weighed_cache(GPT_3) / GB:.1f} GB.")


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


def reading_is_work_and_writing_is_waiting() -> None:
    """Prefill does many FLOPs per byte, and decoding does about one."""
    note(r"""
        A model answers in two phases. First it processes all tokens of the prompt at once; this is
        *prefill*. Then it generates one token at a time; this is *decoding*. A generated token
        costs the same FLOPs as one of the prompt, because each is multiplied by every weight once.
        Yet generating it takes much longer. Why?

        Take a model with a single weight of `2` bytes. Multiplying it by a token costs `2` FLOPs.
        Prefill of `100` tokens reads the weight once, `2` bytes, and does `2 * 100` FLOPs. To
        generate one token, the GPU reads the same `2` bytes again, and does `2` FLOPs. So decoding
        does one FLOP per byte, and prefill does one FLOP per byte for every token of the prompt.
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
    note(r"""
        Now a real model. Llama-3-8B has
        [`7504658432` weights](#training_costs_six_per_weight_and_twelve_per_pair) of `2` bytes in
        its matrices. In addition to these, a GPU moves the KV cache, the keys and values of all
        tokens so far, [`131072` bytes per token](#a_token_leaves_its_keys_and_values). Compare
        generating one token after `2048` others with prefill of `2048` tokens. Both read the
        weights once. Prefill writes a cache of `2048` tokens, and decoding reads it.
        `forward_flops(config, tokens, context)` gives the FLOPs of a forward pass over `tokens`
        tokens that attend to `context` tokens: `2` per weight and token, and the FLOPs of attention
        for all pairs, including the masked ones. The [ridge](#every_operation_has_an_intensity) of
        an H100 is its peak divided by its bandwidth, the FLOPs that it can do while one byte
        arrives:
    """)
    weights, cache = 2 * 7504658432, 131072 * 2048
    moved = weights + cache
    decoding = forward_flops(LLAMA_3_8B, 1, 2048) / moved  # @inspect round(decoding, 2) as FLOP/B
    prefill = forward_flops(LLAMA_3_8B, 2048, 2048) / moved  # @inspect round(prefill) as FLOP/B
    assert moved == decoding_bytes(LLAMA_3_8B, 1, 2048), \
        "These are the bytes of the weights and of the cache."  # @hide
    assert round(decoding, 2) == 1.05, \
        "Decoding does about one FLOP per byte."
    assert 2100 < prefill < 2200, \
        "Prefill of 2048 tokens does about 2000 times as many FLOPs per byte."  # @hide
    ridge = PEAK / BANDWIDTH  # @inspect round(ridge) as FLOP/B
    assert decoding < ridge < prefill, \
        "Decoding is below the ridge of an H100, and prefill is above it."
    small, full = Transformer(MODEST, "fused").bfloat16(), 511  # @hide
    filled = full_caches(small, 1, full)  # @hide
    last = torch.zeros(1, 1, dtype=torch.int64)  # @hide
    counted = bytes_moved(lambda: small(last, filled))  # @hide
    extra = counted / decoding_bytes(MODEST, 1, full + 1)  # @hide
    assert 1 < extra < 1.06, \
        "In a small model, weights and cache are nearly all bytes that its operations move when it generates."  # @hide
    note(rf"""
        An H100 can do {ridge:.0f} FLOPs while one byte arrives from its memory. Prefill does
        {prefill:,.0f} FLOPs per byte, about one for each of the `2048` tokens, and some more for
        attention. That is above the ridge, so prefill is compute-bound: the GPU computes all the
        time. Decoding does only {decoding:.2f} FLOPs per byte, so decoding is memory-bound: the GPU
        waits for its memory nearly all the time.
    """)
    question(r"""
        Llama-3-8B processes a short prompt of `100` tokens. About how many FLOPs does the GPU do
        per byte that it moves?
    """, answer=100 * (2 * 7504658432 + 4 * 32 * 4096 * 100) / (2 * 7504658432 + 131072 * 100),
        check=forward_flops(LLAMA_3_8B, 100, 100) / decoding_bytes(LLAMA_3_8B, 1, 100),
        unit="FLOP/B", within=0.1, wrong={
            "That is for generating one token; here the weights serve 100 tokens.": 1,
        }, hint="How often is a weight used in this pass, and how often is it read?", why=r"""
            A weight of `2` bytes is read once and used for each of the `100` tokens, with `2` FLOPs
            each time. That is about `100` FLOPs per byte, still below the ridge, so the prefill of
            this prompt is memory-bound.
        """)


def bandwidth_sets_the_pace() -> None:
    """For one sequence, tokens per second are at most the bandwidth divided by the bytes of the weights."""
    note(r"""
        A model generates a single sequence, one token in each pass through the model. How fast can
        a GPU do that at best? In each pass the GPU reads all weights from its memory. That takes
        far longer than the arithmetic for a single token, so the reading determines the time. With
        weights of $10$ GB and a bandwidth of $1000$ GB/s, the weights can be read $1000 / 10 = 100$
        times a second. In general the tokens per second are at most

        $$
        \frac{\text{bandwidth}}{\text{bytes that a pass reads}}.
        $$

        For each token, Llama-3-8B reads
        [`7504658432` weights](#training_costs_six_per_weight_and_twelve_per_pair) of `2` bytes,
        those of its blocks and its output matrix. (It also reads the KV cache. In a short sequence
        the cache is small compared with the weights, so it is left out here, and the result is an
        upper bound.) `CARDS` holds the datasheets of GPUs. Divide the bandwidths of four of them by
        these bytes:
    """)
    size = 2 * 7504658432  # bytes
    counted = decoding_bytes(LLAMA_3_8B, 1, 0)  # @hide
    assert size == counted, \
        "A pass over one token reads two bytes for each weight."  # @hide
    cards = "L4", "A100 SXM 80GB", "H100 SXM", "H200"
    pace = {name: CARDS[name].bandwidth / size for name in cards}
    rounded = {name: round(rate) for name, rate in pace.items()}  # @inspect rounded as tokens/s
    h100 = pace["H100 SXM"]
    assert 223 < h100 < 224, \
        "An H100 generates no more than 223 tokens a second."  # @hide
    faster = pace["H200"] / h100  # @inspect round(faster, 2) as times
    assert round(faster, 3) == round(4.8 / 3.35, 3), \
        "An H200 decodes 4.8 / 3.35 times as fast as an H100, in proportion to its bandwidth."
    sources = "; ".join(f"@{CARDS[name].source}" for name in cards)  # @hide
    note(rf"""
        An H100 has `3.35` TB/s, so it generates at most `3.35e12 / {size}` tokens a second, which
        is {h100:.0f} [{sources}]. Would its arithmetic allow more? A token costs `2` FLOPs per
        weight, so divide the GPU's peak by `2 * 7504658432`:
    """)
    by_arithmetic = PEAK / (2 * 7504658432)  # @inspect round(by_arithmetic) as tokens/s
    assert 65_000 < by_arithmetic < 66_000, \
        "By its arithmetic alone, an H100 could generate 65,926 tokens a second."  # @hide
    assert by_arithmetic == PEAK / forward_flops(LLAMA_3_8B, 1, 0), \
        "Two FLOPs for each weight are those of the formula."  # @hide
    unused = by_arithmetic / h100  # @inspect round(unused) as times
    assert 295 < unused < 296, \
        "That is 295 times the tokens that its memory allows."  # @hide
    misbelief("A GPU with twice the FLOP/s decodes twice as fast.", rf"""
        Only the bandwidth matters, because the arithmetic alone would allow {unused:.0f} times as
        many tokens per second. The H200 has the same FLOP/s as the H100. It generates
        {4.8 / 3.35:.1f} times as fast, because its bandwidth is higher by this factor
        [@nvidia-h200].
    """)
    question(r"""
        Llama-3-8B is stored with half a byte for each weight, on an H100 with `3.35` TB/s. The GPU
        reads `7504658432` weights for each token. How many tokens a second does it generate at
        best?
    """, answer=3.35e12 / (7504658432 / 2), check=4 * pace["H100 SXM"], unit="tokens/s", within=0.05, wrong={
            "That is with two bytes for each weight.": 3.35e12 / (7504658432 * 2),
            "That is with one byte for each weight.": 3.35e12 / 7504658432,
            "Half a byte a weight: divide the bytes by two, do not multiply.": 3.35e12 / (7504658432 * 4),
        }, hint="How many bytes are read for one token?",
        why=r"""
            For one token `7504658432 / 2` bytes are read, a quarter of the bytes in `bfloat16`. So
            decoding is `4` times as fast, although the arithmetic is no faster.
        """)


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
        To generate one token of a sequence, a GPU reads all weights of the model. Can many
        sequences share this read?

        They can, because the tokens of all sequences are multiplied by the same weights. Suppose
        reading the weights takes `10` ms, and reading the KV cache of one sequence `1` ms. One
        sequence alone needs `10 + 1` ms for a token. Five sequences in a *batch* need `10 + 5` ms,
        and each of them gets a token in that time. The weights are read once, but every cache has
        to be read, because each sequence has its own keys and values.

        So a step has two parts, which run one after another:

        - *The matmuls with weights.* The GPU reads $N$ weights of $w$ bytes, once for all
          sequences. Each of $B$ sequences costs $2N$ FLOPs. The GPU reads and computes at the same
          time, so this part takes as long as the longer of the two.
        - *Attention.* The KV cache of one sequence, the keys and values of its tokens, has $C$
          bytes, and the GPU reads $B$ of these caches. This part takes as long as the reading,
          because attention does only
          [`4` FLOPs per byte](#attention_over_a_cache_gains_nothing_from_a_batch), far fewer than
          an H100 can do while a byte arrives.

        [@eq:step]: $$
        \text{step} = \max\left(\frac{N w}{\text{bandwidth}},\; \frac{2BN}{\text{peak}}\right)
        + \frac{B\,C}{\text{bandwidth}}
        $$

        Take Llama-3-8B on an H100, which reads `3.35e12` bytes a second. Reading `2 * 7504658432`
        bytes of weights takes `4.48` ms. Reading the cache of a long sequence of `8192` tokens,
        `2**30` bytes, takes `0.32` ms; reading the cache of a short sequence of `128` tokens takes
        `1/64` of this, `0.005` ms. The `2 * 48 * 7504658432` FLOPs of `48` sequences take `0.73`
        ms, less than reading the weights, so the maximum is the time to read the weights. `pace_of`
        divides the tokens of a step, one for each sequence, by the least time of the step:
    """)
    weights = 1e3 * 2 * 7504658432 / BANDWIDTH  # @hide
    one_cache = 1e3 * GiB / BANDWIDTH  # @hide
    assert (round(weights, 2), round(one_cache, 2), round(one_cache / 64, 4)) == (4.48, 0.32, 0.005), \
        "An H100 reads the weights in 4.48 ms, a cache of one GiB in 0.32 ms, and one of 128 tokens in 0.005 ms."  # @hide
    computing = 1e3 * 2 * 48 * 7504658432 / PEAK  # @hide
    assert round(computing, 2) == 0.73, \
        "The FLOPs of 48 sequences with the weights take 0.73 ms."  # @hide
    assert round(PEAK / BANDWIDTH) == 295, \
        "While a byte arrives, an H100 can do 295 FLOPs."  # @hide
    assert attention_flops(LLAMA_3_8B, 1, 8192) == 4 * GiB, \
        "Attention does 4 FLOPs per byte of the cache."  # @hide
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
    batches = [1, 4, 16, 48]  # @inspect batches
    short = [pace_of(LLAMA_3_8B, b, 128) for b in batches]
    long = [pace_of(LLAMA_3_8B, b, 8192) for b in batches]
    for_short = [round(pace) for pace in short]  # @inspect for_short as tokens/s
    for_long = [round(pace) for pace in long]  # @inspect for_long as tokens/s
    assert 45 < short[3] / short[0] < 46, \
        "In total, 48 short sequences get almost 46 times the tokens of one."
    assert 11 < long[3] / long[0] < 12, \
        "In total, 48 long sequences get less than 12 times the tokens of one."
    assert for_short == [223, 889, 3508, 10168], \
        "Short sequences get 223, 889, 3508 and 10168 tokens a second together."  # @hide
    assert for_long == [208, 694, 1665, 2416], \
        "Long sequences get 208, 694, 1665 and 2416 tokens a second together."  # @hide
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
    full_step = step_seconds(LLAMA_3_8B, 48, 8192)  # @hide
    assert round(1e3 * full_step, 2) == 19.87, \
        "A step of 48 long sequences takes 4.48 + 48 * 0.32 milliseconds, 20."  # @hide
    note(rf"""
        With {batches[3]} short sequences the total throughput is {short[3] / short[0]:.1f} times
        that of one sequence, because the weights are read once for all of them. With {batches[3]}
        long sequences the factor is only {long[3] / long[0]:.1f}, because the long cache of each
        sequence has to be read: at best a step takes `4.48` ms for the weights and `48 * 0.32` ms
        for the caches, {1e3 * full_step:.1f} ms in all.

        A single sequence gets no faster in a batch, because it also waits while the caches of the
        others are read.
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
    question(r"""
        On some GPU, reading the weights of a model takes `10` ms, and reading the cache of one
        sequence takes `0.2` ms. The step is memory-bound. The GPU generates `50` sequences at once.
        How many tokens a second is that in total?
    """, answer=50 / (10e-3 + 50 * 0.2e-3), check=1e3 * 50 / (10 + 10), unit="tokens/s", within=0.01, wrong={
            "Each sequence has its own cache: add the time of one cache 50 times.": 50 / (10e-3 + 0.2e-3),
            "That is for each sequence; in total there are 50 times as many.": 1 / (10e-3 + 50 * 0.2e-3),
            "The weights are read once for all sequences.": 50 / (50 * (10e-3 + 0.2e-3)),
            "The caches also have to be read.": 50 / 10e-3,
        }, hint="How long does one step take?",
        why="A step takes `10` ms for the weights, read once, and `50 * 0.2` ms for the caches: `20` ms. It generates `50` tokens.")


def memory_limits_the_batch() -> None:
    """A GPU's memory limits the batch: in addition to the weights, it has to hold the cache of each sequence."""
    note(rf"""
        When a GPU generates many sequences at once, its memory holds the weights of the model once,
        and for each sequence a *KV cache*, the keys and values of its tokens. How many sequences
        fit? As many as

        $$
        \frac{{\text{{memory}} - \text{{weights}}}}{{\text{{cache of one sequence}}}},
        $$

        rounded down. With $10$ GB of memory, $4$ GB of weights and caches of $2$ GB,
        $(10 - 4) / 2 = 3$ sequences fit. Take Llama-3-8B on an {H100.name}. It has
        [`8030261248` parameters](#published_counts_follow_from_eight_numbers) of `2` bytes. For
        each of `8192` tokens, a full sequence's cache needs
        [`2` (key and value) × `32` layers × `8` KV heads × `128` elements × `2` bytes](#a_token_leaves_its_keys_and_values),
        in total one GiB. The GPU is sold with `80` GB, and a tenth is
        [kept free](#checkpointing_lets_a_large_model_fit), for buffers and temporary results. So
        `72` GB are available for weights and caches:
    """)
    memory = 72 * 10**9  # bytes
    assert memory == MEMORY, \
        "This is nine tenths of the memory of an H100."  # @hide
    assert 2 * 32 * (8 * 128) * 2 * 8192 == GiB == cache_bytes(LLAMA_3_8B, 8192), \
        "The cache of a full sequence needs one GiB."  # @hide
    left = memory - 2 * 8030261248  # @inspect round(left / GiB, 1) as GiB
    sequences = left // GiB  # @inspect sequences
    assert sequences == 52, \
        "In addition to the weights, the caches of 52 full sequences fit."
    assert sequences == room_for(LLAMA_3_8B, LLAMA_3_8B.context), \
        "The formula that later sections use gives the same number."  # @hide
    note(rf"""
        The weights need `2 * 8030261248` bytes, {2 * 8030261248 / 1e9:.2f} GB, so {left / 1e9:.2f}
        GB are left. A GiB is `2**30` bytes, so these are {left / GiB:.1f} GiB, and {sequences} full
        sequences fit.

        Shorter sequences have smaller caches, so more of them fit. The limit matters, because a
        larger batch gives more tokens per second in total:
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
        Llama-3-70B has `70553706496` parameters of `2` bytes. The cache of a full sequence needs
        `2 * 80 * 1024 * 8192 * 2` bytes: keys and values, `80` layers, `8 * 128` elements, `8192`
        tokens, `2` bytes. Weights and caches are split over four H100s, which together have
        `4 * 80` GB, and a tenth is kept free. At most how many full sequences fit in addition to
        the weights?
    """, answer=(4 * 72 * 10**9 - 2 * 70553706496) // (2 * 80 * 1024 * 8192 * 2),
        check=room_for(LLAMA_3_70B, 8192, gpus=4), unit="sequences", within=0.02, wrong={
            "The weights need two bytes each.": (4 * 72 * 10**9 - 70553706496) // (2 * 80 * 1024 * 8192 * 2),
            "A tenth of the memory is kept free.": (4 * 80 * 10**9 - 2 * 70553706496) // (2 * 80 * 1024 * 8192 * 2),
            "The weights also have to be in memory.": 4 * 72 * 10**9 // (2 * 80 * 1024 * 8192 * 2),
        }, hint="How many bytes do the weights leave for the caches?", why=r"""
            Subtract `2` bytes for each parameter from `4 * 72` GB. Divide the rest by the cache of
            a full sequence, and round down.
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
    """A batch does not raise the intensity of attention over a cache; sharing heads does."""
    note(r"""
        When a model generates many sequences at once, the weights are read once for all of them.
        But each sequence has its own *KV cache*, the keys and values of its tokens, and attention
        reads it for each new token. How many FLOPs does attention do per byte of the cache? This is
        its *intensity*. Take one element of a key. In `bfloat16` it has `2` bytes. Each query head
        that uses this key multiplies the element once and adds the result once: `2` FLOPs. The same
        holds for an element of a value. So:

        - If one head uses a key, attention does one FLOP per byte. If four heads share the key, it
          does four.
        - The number of sequences does not matter, because each sequence has its own keys and
          values.

        `cache_intensity(heads, kv_heads, batch)` counts the FLOPs and divides them by the bytes of
        the cache. First take `32` query heads that share `8` KV heads, with one sequence and with
        `64`:
    """)
    by_batch = {batch: cache_intensity(32, 8, batch) for batch in (1, 64)}  # @inspect by_batch as FLOP/B
    assert by_batch[1] == by_batch[64] == 32 / 8, \
        "For one sequence and for 64, attention does 4 FLOPs per byte."
    note("Now take one sequence, and let `32` query heads use `32`, `8` or a single KV head:")
    by_sharing = [cache_intensity(32, g, 1) for g in (32, 8, 1)]  # @inspect by_sharing as FLOP/B
    assert by_sharing == [1, 4, 32], \
        "If 1, 4 or 32 heads share a key, attention does 1, 4 or 32 FLOPs per byte."
    ridge = PEAK / BANDWIDTH
    assert 9 < ridge / max(by_sharing) < 10, \
        "Even if all heads share one key, the ridge of an H100 is more than 9 times as high."
    note(rf"""
        An H100 can do {ridge:.0f} FLOPs while one byte arrives from its memory; this is its
        *ridge*. Attention does far fewer FLOPs per byte, so it is memory-bound at any batch size.

        Sharing helps: if more query heads share a key, there are fewer keys, so the cache is
        smaller and is read faster. This is a reason for *grouped-query attention*, in which heads
        share keys [@gqa].
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
    """Checking four guessed tokens takes hardly longer than generating one."""
    note(r"""
        When a model generates a single sequence, the GPU reads all weights for each token, and its
        arithmetic is mostly idle. *Speculative decoding* makes use of this idle arithmetic. A small
        model guesses the next few tokens. The large model processes all guesses in one pass, and
        computes at each position which token it would generate next [@leviathan2023]. A guess is
        wrong if the large model would have generated a different token. The guesses before the
        first wrong one are kept. What does such a pass cost?

        To check `4` guesses, the large model processes `5` tokens: the last token of the sequence
        and the guesses. Compare this with a pass over one token, which generates one token. Here
        the large model has only `4` layers and a model dimension of `256`. `flops` counts the FLOPs
        of a pass, and `bytes_moved` the bytes that its operations read and write. After either pass
        the sequence is `512` tokens long. The earlier tokens are in the KV cache, which
        `full_caches` fills:
    """)
    model = Transformer(MODEST).bfloat16()  # @unnoticed: .bfloat16(): the quotients are the same in any format

    def pass_over(count: int) -> tuple[int, int]:
        tokens = torch.zeros(1, count, dtype=torch.int64)
        caches = full_caches(model, 1, 512 - count)
        work = flops(partial(model, tokens, caches))
        caches = full_caches(model, 1, 512 - count)
        return work, bytes_moved(partial(model, tokens, caches))

    one, five = pass_over(1), pass_over(5)
    more_flops = five[0] / one[0]  # @inspect more_flops as times
    more_bytes = five[1] / one[1]  # @inspect round(more_bytes, 2) as times
    assert more_flops == 5.0, \
        "A pass over 5 tokens costs 5 times the FLOPs of a pass over one."
    assert 1 < more_bytes < 1.2, \
        "A pass over 5 tokens moves less than 1.2 times the bytes of a pass over one."
    note(rf"""
        The check costs {more_flops:.0f} times the FLOPs, but moves only {more_bytes:.2f} times the
        bytes, because the weights, which are most of the bytes, are read once for all tokens of a
        pass. Generating a single sequence is memory-bound, so the time depends on the bytes, and
        the check takes hardly longer than generating one token.
    """)
    question(r"""
        A model reads `10` GB of weights in a pass, and each token in the pass moves another `0.1`
        GB. How many times as many bytes does a pass over `6` tokens move as a pass over one?
    """, answer=(10 + 6 * 0.1) / (10 + 0.1), check=106 / 101, unit="times", within=0.01, wrong={
            "The weights are read once for all tokens.": 6,
        }, hint="How many GB is a pass over one token?",
        why="A pass over one token moves `10.1` GB, and a pass over `6` tokens `10.6` GB, because the weights are read once.")


@aside
def guesses_pay_if_they_are_often_right() -> None:
    """Guessed tokens make decoding faster if they are often right."""
    note(r"""
        In *speculative decoding* a small model guesses the next few tokens of a sequence. The large
        model checks all guesses in one pass. This takes hardly longer than
        [generating one token](#a_guess_is_cheap_to_check), because the weights are read once in
        either case. How many tokens does such a pass give?

        The guesses before the first wrong one are kept. The pass also gives one token of the large
        model's own: it replaces the wrong guess, or follows the last guess if all are right. Take
        two guesses, each right half of the time, independently of the other. The large model's own
        token is always produced. The first guess is kept in half of the passes, and the second
        guess, which is kept only if both are right, in `0.5 * 0.5 = 0.25` of the passes. On average
        that is `1 + 0.5 + 0.25 = 1.75` tokens per pass. With $n$ guesses, each right with
        probability $p$, the average is [@leviathan2023]

        $$
        1 + p + p^2 + \dots + p^n \quad\text{tokens.}
        $$

        Take $p = 0.8$ and $n = 4$. To check the formula, draw at random: each of the `100_000` rows
        of `right` says which of `4` guesses are right. `cumprod` multiplies along a row, so after
        the first wrong guess all entries become zero. `drawn` is the mean over all rows, and
        `expected` is the result of the formula:
    """)
    p, n = 0.8, 4
    right = torch.rand(100_000, n) < p  # @unnoticed: 100_000: more draws come nearer
    drawn = (1 + right.cumprod(dim=1).sum(dim=1)).double().mean().item()  # @inspect round(drawn, 1) as tokens  # @unnoticed: .double(): exact enough
    expected = 1 + p + p**2 + p**3 + p**4  # @inspect round(expected, 1) as tokens
    assert 3.3 < expected < 3.4, \
        "By the formula, one pass gives 3.4 tokens on average."
    # Drawn with ten seeds, it was off by at most 0.004.
    assert math.isclose(drawn, expected, rel_tol=0.01), \
        "The random draws agree with the formula to within 1 %."
    note(r"""
        The guesses also take time. Suppose a guess takes a fraction $q$ of the time of a pass of
        the large model. Then $n$ guesses and their check take the time of $1 + nq$ passes. The
        large model alone would need one pass per token. So decoding is faster by the factor

        [@eq:speculation]: $$
        \text{gain} = \frac{1 + p + p^2 + \dots + p^n}{1 + nq}
        $$

        [@leviathan2023]. Let the smallest Llama-3.2 guess for Llama-3-8B. Both spend their time
        reading weights, so $q$ is the small model's bytes divided by the large model's.
        `decoding_bytes` gives the bytes that are read for a token, here of `1` sequence with an
        empty context of `0` tokens:
    """)
    q = decoding_bytes(LLAMA_32_1B, 1, 0) / decoding_bytes(LLAMA_3_8B, 1, 0)  # @inspect round(q, 3)
    assert 0.16 < q < 0.17, \
        "A guess of the small model takes less than 17 % of a pass of the large one."
    gain = expected / (1 + n * q)  # @inspect round(gain, 2) as times
    assert 2 < gain < 2.1, \
        "With the time for the guesses, the sequence is generated twice as fast."
    best = max(range(1, 20), key=lambda n: (1 - p ** (n + 1)) / (1 + n * q))  # @hide
    assert best == 4, "Four guesses at a time gain most here."  # @hide
    note(rf"""
        So `4` guesses and their check take the time of `1 + 4 * {q:.3f}` passes, and give
        {expected:.1f} tokens if {p:.0%} of the guesses are right. The sequence is generated
        {gain:.1f} times as fast.
    """)
    question(r"""
        The small model has learned another language, and all its `4` guesses are wrong every time.
        How many times as fast as the large model alone is speculative decoding then? (A guess takes
        `0.165` of the time of a pass.)
    """, answer=1 / (1 + 4 * 0.165), check=(1 - 0.0 ** (n + 1)) / (1 + n * 0.165), unit="times", within=0.02,
        wrong={
            "The guesses take time, right or wrong.": 1.0,
            "Each pass still gives the large model's own token.": 0.0,
        }, hint="How many tokens do four guesses and their check give, and how long do they take?", why=r"""
            Each check gives one token, the large model's own, and takes `1 + 4 * 0.165` passes with
            its guesses. So a poor small model makes decoding slower. It never makes the result
            worse, because a wrong guess is not kept.
        """)


@aside
def a_step_has_a_bound() -> None:
    """Before a GPU is timed, its bandwidth gives a lower bound on the time of a step."""
    note(r"""
        How fast should a real GPU generate if decoding is memory-bound, so that the GPU waits for
        its memory? Before anything is timed, compute two lower bounds for a step: the time to read
        all bytes from memory, and the time to do the arithmetic. The step cannot be faster than the
        longer one.

        Take `8` layers of Llama-3-8B, each with `218103808` weights, and its head of
        `128256 * 4096`, together `2270167040` weights of `2` bytes. A step generates one token of
        each sequence. It reads each weight once, however many sequences there are, and does `2`
        FLOPs with it for each sequence. It also reads the KV cache of each sequence, its keys and
        values: `2` (key and value) × `8` layers × `8` KV heads × `128` elements × `1024` tokens ×
        `2` bytes. An H100 reads `3.35e12` bytes and does `989.5e12` FLOPs a second, by its
        datasheet. `sizes` are the bytes of a step for `1`, `8` and `32` sequences, and `bounds` are
        the seconds that reading them takes at least:
    """)
    weights, cache = 2 * 2270167040, 2 * 8 * (8 * 128) * 1024 * 2  # bytes
    batches = [1, 8, 32]
    sizes = [weights + b * cache for b in batches]  # @inspect sizes as B
    bounds = [size / 3.35e12 for size in sizes]
    in_ms = [round(1e3 * bound, 2) for bound in bounds]  # @inspect in_ms as ms
    assert in_ms == [1.37, 1.44, 1.68], \
        "By its bytes, a step takes at least 1.37, 1.44 and 1.68 ms."  # @hide
    arithmetic = 2 * 32 * 2270167040 / 989.5e12  # @inspect round(1e3 * arithmetic, 2) as ms
    assert 9 < weights / 3.35e12 / arithmetic < 10, \
        "Even for 32 sequences, reading the weights takes 9 times as long as their FLOPs."
    assert block_weights(LLAMA_3_8B) == 218103808, \
        "A layer of Llama-3-8B has 218,103,808 weights."  # @hide
    config = replace(LLAMA_3_8B, layers=8, context=1024)  # @hide
    assert sizes == [decoding_bytes(config, b, 1024) for b in batches], \
        "The formula of earlier sections gives the same bytes."  # @hide
    longer = bounds[1] / bounds[0]  # @inspect round(longer, 2) as times
    assert round(longer, 2) == 1.05, \
        "A step for 8 sequences should take 1.05 times as long as for one."
    note(rf"""
        So the bytes determine the time. A step for `8` sequences should take only {longer:.2f}
        times as long as for one, because nearly all of its bytes are weights, which are read once.
        If each sequence read the weights separately, the step would take `8` times as long.
        [If a GPU is available](#writing_is_timed_on_the_card), its times are compared with these
        bounds.
    """)
    question(r"""
        Another GPU does twice as many FLOPs a second as this H100, and reads `3.35e12` bytes a
        second like it. How many ms does a step for one sequence take at least?
    """, answer=1e3 * (2 * 2270167040 + cache) / 3.35e12, check=1e3 * decoding_bytes(config, 1, 1024) / BANDWIDTH, unit="ms", within=0.02, wrong={
            "Only the arithmetic is twice as fast, and the step is memory-bound.": 1e3 * bounds[0] / 2,
        }, hint="Which of the two lower bounds is the longer one?",
        why="The bytes take far longer than the FLOPs, so only the bandwidth matters, and it is the same on both GPUs.")


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
def writing_is_timed_on_the_card() -> None:
    """On a GPU, a decoding step should use a large share of the memory bandwidth."""
    note(r"""
        Is decoding memory-bound on a real GPU, so that the GPU waits for its memory? The model has
        `8` layers of Llama-3-8B and its head, `2270167040` weights of `2` bytes, and each sequence
        has `1024` tokens. On an H100, a step that generates one token of each sequence
        [takes at least](#a_step_has_a_bound)

        | sequences | to read its bytes, ms | to compute its matmuls with weights, ms |
        |---|---|---|
        | `1` | `1.37` | `0.005` |
        | `8` | `1.44` | `0.037` |
        | `32` | `1.68` | `0.147` |

        Even for `32` sequences, reading takes `1.68 / 0.147 = 11.4` times as long as computing. So
        if a step takes about as long as reading its bytes, the memory is the limit.

        If a GPU is available, the code below compares its times with these bounds. `random_model`
        builds the model, and `time_decoding` times a step. `find` looks up the GPU's datasheet.
        `share` is the share of the bandwidth that a step uses: its bytes divided by its seconds and
        by the bandwidth. At the bound the share would be `1`. A real GPU stays below that, because
        a step is a chain of short *kernels*, programs on the GPU, and memory is idle while each one
        starts and finishes. So the code requires a share above `0.4`: a step may take up to
        `1 / 0.4 = 2.5` times as long as the reading.

        A second sign: a step for `8` sequences must take less than twice as long as a step for one.
        If each sequence read the weights separately, the step would take `8` times as long:
    """)
    config, context = replace(LLAMA_3_8B, layers=8, context=1024), 1024
    batches = [1, 8, 32]
    sizes = [decoding_bytes(config, b, context) for b in batches]
    in_ms = [round(1e3 * size / BANDWIDTH, 2) for size in sizes]
    assert in_ms == [1.37, 1.44, 1.68], \
        "An H100 reads the bytes of these steps in 1.37, 1.44 and 1.68 ms."
    weights = decoding_bytes(config, 1, 0)  # @hide
    assert weights == 2 * 2270167040, \
        "A step reads 2,270,167,040 weights of 2 bytes."  # @hide
    assert [round(1e3 * b * weights / PEAK, 3) for b in batches] == [0.005, 0.037, 0.147], \
        "An H100 does 2 FLOPs for each weight and sequence in 0.005, 0.037 and 0.147 ms."  # @hide
    model = random_model(config)
    timed = [time_decoding(model, b, context) for b in batches]  # @measure timed
    paces = [b / t.seconds for b, t in zip(batches, timed)]  # @measure paces as tokens/s
    assert paces == sorted(paces), \
        "With more sequences, the total tokens per second rise."
    assert timed[1].seconds < 2 * timed[0].seconds, \
        "A step for 8 sequences takes less than twice as long as for one."
    gpu = find(torch.cuda.get_device_name())
    if gpu is not None:
        share = [
            size / t.seconds / gpu.bandwidth for size, t in zip(sizes, timed)
        ]  # @measure share as %
        assert max(share) <= 1, \
            "No step reads more bytes in a second than the bandwidth allows."  # @hide
        assert share[0] > 0.4, \
            "For one sequence, the GPU reads at more than 0.4 of its bandwidth."
        if gpu.bfloat16 is not None:  # @hide
            work = forward_flops(config, 1, context) / gpu.bfloat16  # s
            busy = work / timed[0].seconds  # @measure busy as %
            assert busy < share[0], \
                "The GPU uses a smaller share of its arithmetic than of its bandwidth."  # @hide
    rows = "\n".join(
        f"| {batch} | {t.seconds / MICRO:.0f} | {batch / t.seconds:,.0f} |"
        for batch, t in zip(batches, timed)
    )  # @hide
    note(f"{timed[0].device}:")
    note(f"| sequences | µs for a step | tokens/s in total |\n|---|---|---|\n{rows}")
    question(r"""
        A step of some model reads `4.5` GB in all, weights and cache together, on a GPU with a
        bandwidth of `2e12` bytes a second. It takes `3` ms. What share of its bandwidth does the
        GPU use, in percent?
    """, answer=4.5e9 / 3e-3 / 2e12, check=4.5 / (3 * 2), unit="%", within=0.01, wrong={
            "Divide the bytes by the time, and then by the bandwidth.": 3e-3 * 2e12 / 4.5e9,
        }, hint="How long does the reading alone take by the datasheet?",
        why="At `2e12` bytes a second, `4.5` GB take `2.25` ms. The step takes `3` ms, so the GPU uses `2.25 / 3` of its bandwidth.")
