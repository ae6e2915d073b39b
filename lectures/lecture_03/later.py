"""What models since Llama 3 change: the size of a head, experts, a compressed cache, windows."""
import math
from dataclasses import replace

import torch
from counters import flops
from einops import einsum
from jaxtyping import Float
from torch import Tensor
from units import GB, GiB

from litbook import aside, misbelief, note, question

from .block import Experts, Transformer, written_attention
from .counts import attention_flops, cache_bytes, expert_weights, forward_flops, idle_weights, parameter_count
from .generate import weighed_cache
from .published import MISTRAL_7B, MIXTRAL, QWEN_3, SMALL
from .regimes import BANDWIDTH, H100, PEAK


def later_models() -> None:
    """Later models."""
    note(r"""
        Models that came later keep the plan of the block: norm, attention, norm, feed-forward part.
        They change its parts. A head gets a size of its own, the feed-forward part is split into
        experts, the cache is compressed, or a layer looks at the last tokens only.
    """)
    a_head_has_a_size_of_its_own()
    a_token_meets_a_few_of_many_experts()
    experts_want_large_batches()
    deepseek_is_counted()
    a_latent_replaces_keys_and_values()
    a_window_bounds_the_cache()


def a_head_has_a_size_of_its_own() -> None:
    """The heads together need not be as wide as the model."""
    note(r"""
        In the models so far the heads of queries share the width of a token: together they are as
        wide as it is. Nothing demands that. Qwen3-0.6B is `1024` numbers wide and has `16` heads of
        `128` numbers each [@qwen3-06b]. Together its queries are twice as wide as a token. So with
        $a$ heads of $c$ numbers, the matrices of queries and of attention's result have
        $d \cdot ac$ weights each, in the place of $d^2$.

        Qwen3 makes two more changes. The biases of Qwen2.5 are gone. And each query and each key
        goes through an RMSNorm before it is turned, which keeps scores from growing without bound
        [@qwen3]. This is *QK-norm*. It has a gain for each number of a head, and all heads of a
        layer share these gains.
    """)
    config = QWEN_3  # @inspect config
    d, queries, keys, h, c = 1024, 16 * 128, 8 * 128, 3072, 128
    matrices = 2 * d * queries + 2 * d * keys + 3 * d * h  # @inspect matrices
    gains = 2 * d + 2 * c  # @inspect gains
    by_hand = 28 * (matrices + gains) + d + 151936 * d  # @inspect by_hand
    assert by_hand == parameter_count(config) == 596_049_920, \
        "0.6 billion, by hand and by formula"
    with torch.device("meta"):
        model = Transformer(config)
    built = sum(p.numel() for p in model.parameters())
    assert built == by_hand, "counted in the model"
    note("What if its heads were as narrow as width over heads?")
    narrow = replace(config, head_size=0)
    fewer = 1 - parameter_count(narrow) / by_hand  # @inspect fewer as %
    assert 0.14 < fewer < 0.15, "of the parameters would be missing"
    wider = attention_flops(config, 1, 1000) / attention_flops(narrow, 1, 1000)  # @inspect wider as times
    assert wider == 2.0, "the FLOPs of scores and sums: they follow the heads"
    question(r"""
        This model has `28` layers and `8` heads of keys, with `128` numbers in each. How many bytes
        does a token leave in its KV cache, in `bfloat16`?
    """, answer=2 * 28 * 8 * 128 * 2, check=weighed_cache(QWEN_3) // QWEN_3.context, unit="B", why=r"""
        Nearly as many as in Llama-3-8B, a much larger model. The cache knows layers, heads of keys
        and their size, and nothing else of a model.
    """)


def a_token_meets_a_few_of_many_experts() -> None:
    """With experts, memory follows all parameters, and FLOPs those that a token meets."""
    note(r"""
        Most weights of a block are in its feed-forward part. Can a model have more of them without
        computing more? A *mixture of experts* has several feed-forward parts in each layer, the
        *experts*. A small matrix, the *router*, scores all experts for each token. The token goes
        through the best few, and what these return is added up, each with a share that the scores
        decide. Mixtral-8x7B has the shape of Mistral-7B with `8` experts in each layer, of which a
        token goes through `2` [@mixtral]:
    """)
    total = parameter_count(MIXTRAL)  # @inspect total
    idle = idle_weights(MIXTRAL)  # @inspect idle
    active = total - idle  # @inspect active
    assert (total, active) == (46_702_792_704, 12_879_925_248), \
        "47 and 13 billion, as published"
    with torch.device("meta"):
        model = Transformer(MIXTRAL)
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    in_experts = sum(n for name, n in sizes.items() if ".experts." in name)  # @inspect in_experts
    assert sum(sizes.values()) == total, "counted in the model"
    assert total - in_experts * 6 / 8 == active, "without six of eight experts"
    note("Which of the two numbers decides the FLOPs? A layer of a small model, run and counted:")
    config = replace(SMALL, experts=8, active=2)
    part, x = Experts(config), torch.randn(1, 32, 64)
    counted = flops(lambda: part(x))  # @inspect counted as FLOP
    routing = 2 * 32 * 64 * 8
    assert counted == 32 * 2 * 2 * expert_weights(config) + routing, \
        "two experts and the router"
    note(r"""
        The FLOPs follow the active parameters. A trained token costs six for each of them. The
        memory follows all parameters, because the next token may want other experts:
    """)
    weights = 2 * total  # @inspect weights as B
    assert weights > H100.memory, "more than a card of 80 GB has"
    misbelief("A model of `8` experts, each of the size of Mistral-7B, has `8` times its parameters.", rf"""
        It has {total / parameter_count(MISTRAL_7B):.1f} times as many. Only the feed-forward part
        is there once for each expert. Attention, norms and tables are there once.
    """)
    assert parameter_count(MISTRAL_7B) * 8 > 1.2 * total, \
        "eight whole models would be more"
    question(r"""
        How many GB of Mixtral's weights does a single token leave unread, in `bfloat16`? A layer
        has `8` experts of three matrices of `4096 * 14336` weights, and the model has `32` layers.
    """, answer=2 * 32 * 6 * 3 * 4096 * 14336 / GB, check=2 * idle / GB, unit="GB", within=0.05,
        why="Six experts of eight in each layer: three quarters of the experts, and most of the model.")


@aside
def experts_want_large_batches() -> None:
    """Experts divide the batch, so each waits for memory longer."""
    note(r"""
        A matrix waits for memory until enough tokens go through it
        [at once](#every_operation_has_an_intensity). With experts the tokens of a batch are
        divided. If a token goes through $k$ of $E$ experts, an expert sees $k/E$ of the batch on
        average. So the batch has to be $E/k$ times as large before the experts wait for arithmetic.
        For the largest matrices of an expert on an H100:
    """)
    ridge = PEAK / BANDWIDTH

    def enough(rows: int, cols: int) -> int:
        """Tokens from which a product with that matrix waits for arithmetic."""
        least = 1 / (1 / ridge - 1 / rows - 1 / cols)
        return math.ceil(least)

    mixtral = enough(4096, 14336) * 8 / 2  # @inspect mixtral
    assert mixtral == 4 * 326, "tokens in a step, for Mixtral"
    deepseek = enough(7168, 2048) * 256 / 8  # @inspect deepseek
    assert deepseek == 32 * 363, "for DeepSeek-V3, with 8 of 256"
    note(r"""
        And a batch reads more weights than a token does. Of DeepSeek-V3's experts a single token
        reads `8` in each layer. How many do `64` tokens read that choose at random? Drawn for `58`
        layers, and by the chance that all `64` pass one by:
    """)
    chosen = torch.rand(58, 64, 256).topk(8).indices.flatten(1)
    touched = sum(len(layer.unique()) for layer in chosen) / (58 * 256)  # @inspect touched as %
    expected = 1 - (1 - 8 / 256) ** 64  # @inspect expected as %
    assert math.isclose(touched, expected, rel_tol=0.02), \
        "of all experts, drawn and by formula"
    work = 64 * 8 / 256  # @inspect work
    assert work == 2.0, "tokens for each expert, on average"
    note(r"""
        So a batch of that size reads nearly all experts, and gives each of them hardly any tokens
        to work on. Large services spread the experts over many cards, so that each card's experts
        see the tokens of all.
    """)
    question(r"""
        A model sends each token through `4` of `128` experts. How many tokens have to be in a step
        for an expert to see `300` on average?
    """, answer=300 * 128 / 4, check=300 / (4 / 128), unit="tokens",
        why="On average an expert sees `4/128` of the tokens.")


@aside
def deepseek_is_counted() -> None:
    """The parameters of DeepSeek-V3 follow from its shapes, nearly all in experts."""
    note(r"""
        The report on DeepSeek-V3 gives all its shapes [@deepseek-v3]. It has `61` layers of width
        `7168` and a vocabulary of `129280`, with two tables. Three layers have a plain feed-forward
        part, `18432` wide inside. The other `58` have `256` experts, each `2048` wide inside, and
        one more that every token goes through. A router has a row and a bias for each of the `256`.
        Attention makes queries, keys and values from compressed rows, as the next section explains:
    """)
    d, heads = 7168, 128
    queries = d * 1536 + 1536 * heads * (128 + 64)
    keys = d * (512 + 64) + 512 * heads * (128 + 128)
    out = heads * 128 * d
    attention = queries + keys + out  # @inspect attention
    gains = 1536 + 512 + 2 * d
    expert = 3 * d * 2048  # @inspect expert
    dense, routed = 3 * d * 18432, 257 * expert + 256 * d + 256
    blocks = 61 * (attention + gains) + 3 * dense + 58 * routed
    total = blocks + d + 2 * 129280 * d  # @inspect total
    assert total == 671_026_419_200, \
        "parameters: the report rounds to 671 billion"
    idle = 58 * (256 - 8) * expert  # @inspect idle
    met = total - idle - 129280 * d  # @inspect met
    assert round(met / 1e9) == 37, \
        "billion that a token is multiplied by, as reported"
    share = 58 * 257 * expert / total  # @inspect share as %
    assert 0.97 < share < 0.98, "of all parameters are the experts'"
    question(r"""
        How many GB do DeepSeek-V3's parameters take in a format of one byte?
    """, answer=total / GB, check=671.0264192, unit="GB", within=0.05,
        why="More than a server of eight H100 has.")
    assert total > 8 * H100.memory, "more than eight cards of 80 GB"


def a_latent_replaces_keys_and_values() -> None:
    """Latent attention caches one short row for all heads."""
    note(r"""
        The KV cache keeps a key and a value for every head of keys. DeepSeek-V3 has `128` heads,
        with keys and values of `128` numbers, and shares none. It keeps something else: for each
        token and layer a *latent*, a row of `512` numbers, from which two matrices make the keys
        and the values of all heads. (Positions need `64` more numbers, a part of the key that is
        turned and that all heads share.) This is *latent attention* [@deepseek-v3]:
    """)
    plain, latent = 128 * (128 + 128), 512 + 64  # @inspect plain, latent
    assert (plain, latent) == (32768, 576), "numbers for a token and layer"
    token = 61 * latent * 2  # @inspect token as B
    assert token == 70_272, "for a token in all 61 layers, in bfloat16"
    llama = cache_bytes(
        replace(SMALL, layers=61, heads=128, kv_heads=8, head_size=128), 1)
    saved = llama / token  # @inspect saved as times
    assert 3.5 < saved < 3.6, "less even than with 8 heads of keys"
    note(r"""
        Must the keys of all earlier tokens be computed anew from the latents at each step? They
        need not be. With a query $q$, a latent $z$ and the matrix $W$ that makes keys, the score is
        $q \cdot (W z)$, and that is $(W^T q) \cdot z$. So multiply the query by the matrix once,
        and score it against the latents themselves. The values are treated alike: first add up
        latents, then multiply by their matrix once. The matrices are *absorbed*. Four small heads
        and `64` tokens, both ways:
    """)
    tokens, heads, size, width = 64, 4, 8, 16
    z: Float[Tensor, "t z"] = torch.randn(tokens, width).double()
    q: Float[Tensor, "h c"] = torch.randn(heads, size).double()
    to_key, to_value = torch.randn(2, heads, size, width).double()

    def unabsorbed() -> Tensor:
        keys = einsum(to_key, z, "h c z, t z -> h t c")
        values = einsum(to_value, z, "h c z, t z -> h t c")
        weights = einsum(q, keys, "h c, h t c -> h t").softmax(dim=-1)
        mixed: Tensor = einsum(weights, values, "h t, h t c -> h c")
        return mixed

    def absorbed() -> Tensor:
        queries = einsum(q, to_key, "h c, h c z -> h z")
        weights = einsum(queries, z, "h z, t z -> h t").softmax(dim=-1)
        latents = einsum(weights, z, "h t, t z -> h z")
        mixed: Tensor = einsum(latents, to_value, "h z, h c z -> h c")
        return mixed

    assert torch.allclose(absorbed(), unabsorbed()), "the same result"
    work = flops(unabsorbed), flops(absorbed)  # @inspect work as FLOP
    once, pairs = 2 * 2 * heads * size * width, 2 * 2 * heads * tokens
    assert work[0] == tokens * once + pairs * size, \
        "every key and value made anew"
    assert work[1] == once + pairs * width, \
        "two matrices once, longer scores and sums"
    note(r"""
        There is a second gain. All `128` heads read the same latent, so each byte of the cache is
        used `128` times over. Scores take `576` multiplications and sums `512`, for each head:
    """)
    intensity = 2 * 128 * (576 + 512) / (2 * 576)  # @inspect intensity as FLOP/B
    ridge = PEAK / BANDWIDTH
    assert 0.8 < intensity / ridge < 0.83, \
        "of the ridge of an H100: nearly balanced"
    question(r"""
        One GiB holds the caches of how many tokens of DeepSeek-V3? (Of Llama-3-8B it holds `8192`.)
    """, answer=GiB // token, check=2**30 // (61 * (512 + 64) * 2), unit="tokens", within=0.02,
        why="Nearly twice as many, for a model that is much larger.")


def a_window_bounds_the_cache() -> None:
    """With a window, the cache and attention's FLOPs stop growing with the text."""
    note(r"""
        Does a token have to look at the whole text? In Mistral-7B each layer looks at the last
        `4096` tokens, the token itself included: its *window* [@mistral-7b]. Keys and values that
        are older can be thrown away. The newest of `10` tokens with a window of `4`, over all keys
        and over the last four alone:
    """)
    q: Float[Tensor, "b t h c"] = torch.randn(1, 1, 2, 8).double()
    k, v = torch.randn(2, 1, 10, 2, 8).double()
    windowed = written_attention(q, k, v, window=4)
    recent = written_attention(q, k[:, -4:], v[:, -4:])
    assert torch.allclose(windowed, recent), "the older ones are not missed"
    whole = written_attention(q, k, v)
    assert not torch.allclose(windowed, whole), "without a window they count"
    note("So the cache grows up to the window and no further, and so do the FLOPs of a new token:")
    lengths = [1024, 4096, 32768]
    caches = [cache_bytes(MISTRAL_7B, n) for n in lengths]  # @inspect caches as B
    assert caches[1] == 4 * caches[0] == caches[2], \
        "as large as the window, and no larger"
    work = [forward_flops(MISTRAL_7B, 1, n) for n in lengths]  # @inspect work as FLOP
    assert work[0] < work[1] == work[2], "the same from there on"
    note(r"""
        Is what lies before the window lost? A token looks at tokens that themselves looked back. So
        each layer reaches further, by the window less one. A model of two layers with a window of
        `4`: which earlier tokens change the last one's scores?
    """)
    model = Transformer(replace(SMALL, window=4)).double()
    tokens = torch.arange(12)[None]

    def matters(place: int) -> bool:
        other = tokens.clone()
        other[0, place] = 99
        with torch.no_grad():
            return not torch.allclose(model(tokens)[0, -1], model(other)[0, -1])

    reach = [11 - place for place in range(12) if matters(place)]  # @inspect reach
    assert max(reach) == 2 * (4 - 1), "tokens back: two layers, three each"
    question(r"""
        Mistral-7B has `32` layers, and keys of `1024` numbers. How many bytes does its KV cache
        take for a text of `32768` tokens, in `bfloat16`, if what is older than the window is thrown
        away?
    """, answer=2 * 32 * 1024 * 4096 * 2, check=cache_bytes(MISTRAL_7B, 32768), unit="B", within=0.05,
        why="As many as for `4096` tokens, an eighth of what the whole text would take.")
