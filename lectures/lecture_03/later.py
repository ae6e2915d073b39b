"""What models since Llama 3 change: the size of a head, experts, a compressed cache, windows."""
import math
from dataclasses import replace

import torch
from counters import flops
from jaxtyping import Float
from torch import Tensor
from plots import BLUE
from units import GiB
from .figures import cells

from litbook import aside, figure, misbelief, note, question

from .block import Experts, Transformer, written_attention
from .counts import cache_bytes, expert_weights, forward_flops, idle_weights, parameter_count
from .published import MISTRAL_7B, MIXTRAL, SMALL
from .regimes import BANDWIDTH, H100, PEAK


def later_models() -> None:
    """Later models."""
    note(r"""
        Models that came after Llama-3-8B keep the structure of the block: norm, attention, norm,
        feed-forward part. But they change its parts. The feed-forward part is split into experts,
        the KV cache is compressed, or a layer attends only to the last tokens.
    """)
    a_token_meets_a_few_of_many_experts()
    experts_want_large_batches()
    a_latent_replaces_keys_and_values()
    queries_meet_latents_directly()
    a_window_bounds_the_cache()


@aside
def a_token_meets_a_few_of_many_experts() -> None:
    """In a mixture of experts, memory depends on all parameters, FLOPs only on the active ones."""
    note(r"""
        Can a model have more parameters without computing more per token? Yes, if a token is not
        multiplied by all of them. A *mixture of experts* has several feed-forward networks in each
        layer, the *experts*. For each token, a small matrix, the *router*, gives every expert a
        score. The token goes through only the few experts with the highest scores. Their results
        are added up, weighted by the softmax of these scores. With $4$ experts of $10$ weights, $2$
        of them for each token, $4 \cdot 10 = 40$ weights are in memory, and a token is multiplied
        by $2 \cdot 10 = 20$.

        Mixtral-8x7B has `32` layers with `8` experts each, and a token goes through `2` of them
        [@mixtral]. So in each layer `6` experts are idle for this token. An expert has three
        matrices of `4096 * 14336` weights. `parameter_count` counts all parameters of the model.
        `active` counts the *active* parameters, all except those of idle experts:
    """)
    total = parameter_count(MIXTRAL)  # @inspect round(total / 1e9, 1) as billion
    idle = 32 * 6 * (3 * 4096 * 14336)  # @inspect round(idle / 1e9, 1) as billion
    assert idle == idle_weights(MIXTRAL), \
        "These are the weights of 6 experts in all layers."  # @hide
    active = total - idle  # @inspect round(active / 1e9, 1) as billion
    assert (total, active) == (46_702_792_704, 12_879_925_248), \
        "The model has 47 billion parameters, of which 13 billion are active for a token, as published."
    with torch.device("meta"):  # @hide
        model = Transformer(MIXTRAL)
    sizes = {name: p.numel() for name, p in model.named_parameters()}  # @hide
    in_experts = sum(n for name, n in sizes.items() if ".experts." in name)  # @hide
    assert sum(sizes.values()) == total, \
        "The built model has the same number of parameters."  # @hide
    assert total - in_experts * 6 / 8 == active, \
        "Without 6 of 8 experts, the active parameters are left."  # @hide
    note(r"""
        Do the FLOPs depend on all parameters, or only on the active ones? Count them for a small
        layer. `Experts` builds `8` experts and a router. A token has `64` elements, and `160`
        inside an expert. Each of `32` tokens goes through `2` experts:
    """)
    config = replace(SMALL, experts=8, active=2)
    part, x = Experts(config), torch.randn(1, 32, 64)
    counted = flops(lambda: part(x))  # @inspect counted as FLOP
    in_two_experts = 2 * 32 * 2 * (3 * 64 * 160)
    in_router = 2 * 32 * 64 * 8
    assert counted == in_two_experts + in_router, \
        "The 32 tokens cost the FLOPs of two experts each, and those of the router."
    assert expert_weights(config) == 3 * 64 * 160, \
        "An expert of the small layer has three matrices of 64 * 160 weights."  # @hide
    weights = 2 * total  # @hide
    assert 1.16 < weights / H100.memory < 1.17, \
        "Mixtral's weights are 1.17 times the 80 GB of a GPU."  # @hide
    assert weights > H100.memory, \
        "In bfloat16, all weights are more than a GPU of 80 GB has."  # @hide
    note(rf"""
        So the FLOPs depend only on the active parameters, because nothing is computed in an idle
        expert. The memory depends on all parameters, because the next token may go through other
        experts. Mixtral's weights need {weights / 1e9:.0f} GB in `bfloat16`, and a token is
        multiplied by {2 * active / 1e9:.0f} GB of them.
    """)
    assert parameter_count(MISTRAL_7B) * 8 > 1.2 * total, \
        "Eight whole models of Mistral's size would have more parameters."  # @hide
    misbelief("A model with `8` experts, each of the size of Mistral-7B, has `8` times the parameters of Mistral-7B.", rf"""
        It has {total / parameter_count(MISTRAL_7B):.1f} times as many, because only the
        feed-forward part exists `8` times. Attention, norms and tables exist once.
    """)
    picked = part.router(x[0]).topk(2).indices.tolist()  # @hide
    routed = [[int(expert in chosen) for chosen in picked] for expert in range(8)]  # @hide
    busy = [sum(row) for row in routed]  # @hide
    assert sum(busy) == 2 * 32, "Each token goes through two experts."  # @hide
    figure(cells({"": routed}, [("weights unread", "none"), ("goes through", BLUE)], ("expert", "token")), caption=r"""
        Which of `8` experts each of the `32` tokens goes through in the small layer above: two in
        each column. All experts have to be in memory.
    """, alt=rf"""
        A grid of eight rows and thirty-two columns, with two filled cells in each column. The rows
        have from {min(busy)} to {max(busy)} filled cells.
    """)
    question(r"""
        Another model has `10` layers with `16` experts each, and an expert has `1e6` weights. A
        token goes through `2` experts in each layer. How many weights do all experts of the model
        have, and how many of them are active for a token? Write both numbers with a comma between
        them.
    """, answer=[10 * 16 * 1e6, 10 * 2 * 1e6], check=[160_000_000, 160_000_000 * 2 / 16], unit="weights", within=0.01,
        hint="First count the experts of all layers.",
        why="There are `10 * 16` experts of `1e6` weights, and a token goes through `10 * 2` of them. Memory depends on the first number, FLOPs on the second.")


@aside
def experts_want_large_batches() -> None:
    """With experts, many more tokens are needed before the matmuls are compute-bound."""
    note(r"""
        Why do services that host models with *experts* process so many sequences at once? In
        generation, each sequence brings one token per step. To multiply the tokens by a matrix, a
        GPU reads the matrix once. With few tokens it waits for this read: the matmul is
        *memory-bound*. Experts make this worse. They are feed-forward networks, and each token goes
        through only a few of them, in Mixtral through `2` of `8`. So on average an expert receives
        only a quarter of all tokens: of $100$ tokens in the layer, it receives
        $100 \cdot 2/8 = 25$. For an expert to receive $100$ tokens, `8 / 2` times as many have to
        go through the layer.

        A GPU is used well if its matmuls are *compute-bound*: it computes all the time and does not
        wait for weights to arrive. How many tokens does a matmul need for that? A matmul of $n$
        tokens with a matrix of $r$ rows and $c$ columns does $2nrc$ FLOPs and moves $nr + rc + nc$
        elements of `2` bytes, so it does
        [$nrc/(nr + rc + nc)$ FLOPs per byte](#every_operation_has_an_intensity). An H100 can do $R$
        FLOPs, about `295`, while a byte arrives. The matmul becomes compute-bound when the two are
        equal, $nrc/(nr + rc + nc) = R$. Solved for $n$:

        $$
        n = \frac{1}{1/R - 1/r - 1/c}.
        $$

        `enough(rows, cols)` computes this $n$, rounded up. Mistral-7B has no experts, and its
        feed-forward part has matrices of `4096` rows and `14336` columns. Each expert of Mixtral
        has matrices of the same size. In DeepSeek-V3 a token goes through `8` of `256` experts,
        whose matrices have `7168` rows and `2048` columns [@deepseek-v3]:
    """)
    ridge = PEAK / BANDWIDTH
    assert round(ridge) == 295, "The ridge of an H100 is 295."  # @hide

    def enough(rows: int, cols: int) -> int:
        return math.ceil(1 / (1 / ridge - 1 / rows - 1 / cols))

    mistral = enough(4096, 14336)  # @inspect mistral as tokens
    mixtral = enough(4096, 14336) * 8 // 2  # @inspect mixtral as tokens
    deepseek = enough(7168, 2048) * 256 // 8  # @inspect deepseek as tokens
    assert mistral == 326, \
        "With 326 tokens, the feed-forward part of Mistral is compute-bound."
    assert mixtral == 4 * 326, \
        "Mixtral needs 8 / 2 times the 326 tokens that each expert needs."
    assert deepseek == 32 * 363, \
        "DeepSeek-V3 needs 256 / 8 times the 363 tokens that each expert needs."
    note(rf"""
        So Mistral needs {mistral} tokens at once, Mixtral {mixtral:,}, and DeepSeek-V3
        {deepseek:,}: the smaller the share of the experts that a token goes through, the more
        tokens are needed, because each expert receives a smaller share of them.
    """)
    question(r"""
        A model sends each token through `4` of `128` experts. How many tokens have to go through
        the layer at once for an expert to receive `300` on average?
    """, answer=300 * 128 / 4, check=300 / (4 / 128), unit="tokens", within=0.01, wrong={
            "Each token goes through 4 experts, not one.": 300 * 128,
            "An expert receives fewer tokens than the layer, not more.": 300 * 4 / 128,
        }, hint="What share of all tokens does an expert receive?",
        why="On average an expert receives `4/128` of the tokens, so `128/4` times `300` tokens are needed.")


@aside
def a_latent_replaces_keys_and_values() -> None:
    """Latent attention caches one short row for all heads."""
    note(r"""
        While a model generates a sequence, its *KV cache* keeps the keys and values of all tokens
        so far. How small can it be? DeepSeek-V3 has `128` heads, with keys and values of `128`
        elements. A standard cache would keep a key and a value for every head, for each token and
        layer. DeepSeek-V3 keeps one short row for all heads instead, the *latent*, of `512`
        elements. When attention needs keys and values, two matrices reconstruct the keys and values
        of all heads from the latent. Another `64` elements, which all heads also share, encode the
        [position](#rotary_embedding_tells_distances). This is *latent attention* [@deepseek-v3].

        Count the elements cached per token and layer: in a standard cache `128` heads × (`128` for
        the key + `128` for the value), and with a latent `512 + 64`:
    """)
    usual = 128 * (128 + 128)  # @inspect usual as elements
    latent = 512 + 64  # @inspect latent as elements
    assert (usual, latent) == (32768, 576), \
        "Each layer caches 576 elements per token, instead of 32,768 without latents."
    token = 61 * latent * 2  # @hide
    assert token == 70_272, \
        "In all 61 layers, a token needs 70272 bytes in bfloat16."  # @hide
    note(rf"""
        So a standard cache would be {usual / latent:.0f} times as large, because it keeps a key and
        a value for each head, while all heads share a single latent.
    """)
    question(r"""
        For each token, DeepSeek-V3 caches `576` elements of `2` bytes in each of `61` layers. How
        many tokens fit into one GiB of cache?
    """, answer=GiB // token, check=2**30 // (61 * (512 + 64) * 2), unit="tokens", within=0.02, wrong={
            "A GiB is 2**30 bytes, not 10**9.": 10**9 // (61 * 576 * 2),
            "Each element needs two bytes.": 2**30 // (61 * 576),
        }, hint="First the bytes of one token.",
        why="A token needs `61 * 576 * 2` bytes, and a GiB has `2**30`. In a GiB, Llama-3-8B, a much smaller model, keeps only `8192` tokens.")


@aside
def queries_meet_latents_directly() -> None:
    """With latent attention, a query can be scored against the latents themselves."""
    note(r"""
        In [latent attention](#a_latent_replaces_keys_and_values) the cache keeps a short row for
        each token, its *latent*, and two matrices make a key and a value from it. A new token
        attends to all earlier tokens. Do all their keys and values have to be computed first? No.
        Take a query $q$, a latent $z$, and the matrix $W$ that makes keys. The key is $Wz$, and the
        *score* is the dot product of query and key. The product $q^T W z$ can be computed from
        either end, because matrix multiplication is associative:

        $$
        q \cdot (W z) = (W^T q) \cdot z.
        $$

        On the left, $W$ makes a key of each latent. On the right, $W^T$ is multiplied by the query
        once, and the result is scored against the latents themselves. Values work in the same way:
        first take the weighted sum of the latents, then multiply this one row by the value matrix.

        Here are both orders for one head. There are `64` earlier tokens with latents of `16`
        elements, and the query, a key and a value have `8` elements:
    """)
    tokens, size, width = 64, 8, 16
    z: Float[Tensor, "t z"] = torch.randn(tokens, width).double()
    q: Float[Tensor, "1 c"] = torch.randn(1, size).double()
    to_key, to_value = torch.randn(2, width, size).double()

    def with_keys() -> Tensor:
        keys, values = z @ to_key, z @ to_value
        weights = (q @ keys.T).softmax(dim=-1)
        mixed: Tensor = weights @ values
        return mixed

    def with_latents() -> Tensor:
        weights = (q @ to_key.T @ z.T).softmax(dim=-1)
        mixed: Tensor = weights @ z @ to_value
        return mixed

    assert torch.allclose(with_latents(), with_keys()), \
        "Both orders give the same result."
    work = flops(with_keys), flops(with_latents)  # @inspect work as FLOP
    one_row = 2 * width * size  # FLOPs of a row times one of the matrices
    assert work[0] == 2 * tokens * one_row + 2 * (2 * tokens * size), \
        "With keys and values, both matrices are used for each of 64 tokens."
    assert work[1] == 2 * one_row + 2 * (2 * tokens * width), \
        "With latents, both matrices are used once, and scores and sums are longer."
    assert work == (34_816, 4_608), \
        "With keys and values attention costs 34,816 FLOPs, and with latents 4,608."  # @hide
    note(rf"""
        With keys and values, attention costs {work[0]:,} FLOPs, most of them to make `64` keys and
        `64` values. With the latents themselves it costs only {work[1]:,}, because each matrix is
        multiplied by one row instead of `64`.
    """)
    question(r"""
        In one head, queries and keys have `8` elements and latents `16`. There are `1000` earlier
        tokens. How many FLOPs does it cost to make the keys of all these tokens?
    """, answer=1000 * 2 * 8 * 16, check=flops(lambda: torch.ones(1000, 16) @ torch.ones(16, 8)), unit="FLOP", within=0.01, wrong={
            "The additions are missing.": 1000 * 8 * 16,
            "That is for one token.": 2 * 8 * 16,
        }, hint="How many weights does the matrix that makes a key have?",
        why="The matrix has `8 * 16` weights, and each costs a multiplication and an addition for each of `1000` tokens. Multiplied by the query instead, the matrix costs `2 * 8 * 16` FLOPs once, because there is one query.")


@aside
def a_window_bounds_the_cache() -> None:
    """With a window, the cache and attention's FLOPs stop growing with the sequence."""
    note(r"""
        While a model generates a sequence, its *KV cache* keeps the keys and values of all tokens
        so far, and each new token attends to all of them. Can the cache stop growing? In each layer
        of the first Mistral-7B, a token attends only to the last `4096` tokens, itself included.
        These tokens are its *window* [@mistral-7b]. The keys and values of older tokens are never
        used again, so they do not have to be kept.

        Check this for the newest token of a sequence of `10` tokens, with a window of `4` tokens.
        `written_attention` computes attention. `windowed` uses all ten keys and values with a
        window, and `recent` uses only the last four:
    """)
    q: Float[Tensor, "b t h c"] = torch.randn(1, 1, 2, 8).double()  # newest
    k, v = torch.randn(2, 1, 10, 2, 8).double()  # @unnoticed: 1, 10: any batch, and any sequence longer than the window
    windowed = written_attention(q, k, v, window=4)
    recent = written_attention(q, k[:, -4:], v[:, -4:])
    assert torch.allclose(windowed, recent), \
        "The last four keys and values give the same result."
    whole = written_attention(q, k, v)  # @hide
    assert not torch.allclose(windowed, whole), \
        "Without a window, the older keys count."  # @hide
    note(r"""
        So the KV cache grows up to the window and no further. (The FLOPs of attention for a new
        token also stop growing, because the token attends only to its window.) Mistral-7B has `32`
        layers and `8` KV heads, of `128` elements of `2` bytes. Compute its cache for sequences of
        three lengths:
    """)
    lengths = [1024, 4096, 32768]  # @inspect lengths as tokens  # @unnoticed: 32768: any length beyond the window
    caches = [2 * 32 * (8 * 128) * min(n, 4096) * 2 for n in lengths]  # @inspect caches as B
    assert caches[1] == 4 * caches[0] == caches[2], \
        "From 4096 tokens on, the cache stays at 512 MiB."
    assert caches == [cache_bytes(MISTRAL_7B, n) for n in lengths], \
        "The formula for the cache gives the same bytes."  # @hide
    work = [forward_flops(MISTRAL_7B, 1, n) for n in lengths]  # @hide
    assert work[0] < work[1] == work[2], \
        "From 4096 tokens on, a new token costs the same FLOPs."  # @hide
    order = torch.arange(12)  # @hide
    back = (order[:, None] - order[None]).tolist()  # @hide
    seen = [[int(0 <= far <= 3) for far in row] for row in back]  # @hide
    assert sum(seen[-1]) == 4, "The last token sees the last four."  # @hide
    figure(cells({"": seen}, [("unseen", "none"), ("seen", BLUE)], ("token", "looks at token")), caption=r"""
        Which tokens each of `12` tokens attends to in a layer, with a window of `4`. The band never
        gets wider, so neither does the cache.
    """, alt="A grid with a band along the diagonal, four cells wide.")
    question(r"""
        Another model has `24` layers, keys of `512` elements in all KV heads together, and a window
        of `2048` tokens. It keeps only the keys and values of the window. How many bytes does its
        KV cache need for a sequence of `16384` tokens, in `bfloat16`?
    """, answer=2 * 24 * 512 * 2048 * 2,
        check=cache_bytes(replace(MISTRAL_7B, layers=24, kv_heads=4, window=2048), 16384), unit="B",
        within=0.02, wrong={
            "Only the window is kept.": 2 * 24 * 512 * 16384 * 2,
            "The cache has keys and values.": 24 * 512 * 2048 * 2,
        }, hint="How many tokens are kept?",
        why="Only the last `2048` tokens are kept. For each there are keys and values, in `24` layers, of `512` elements of `2` bytes: `2 * 24 * 512 * 2048 * 2`.")
