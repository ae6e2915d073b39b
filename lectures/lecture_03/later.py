"""What models since Llama 3 change: the size of a head, experts, a compressed cache, windows."""
import math
from dataclasses import replace

import torch
from counters import flops
from einops import einsum
from jaxtyping import Float
from torch import Tensor
from plots import BLUE
from units import GiB
from .figures import cells

from litbook import aside, figure, misbelief, note, question

from .block import Attention, Experts, Transformer, written_attention
from .counts import attention_flops, cache_bytes, expert_weights, forward_flops, idle_weights, parameter_count
from .published import MISTRAL_7B, MIXTRAL, QWEN_3, SMALL
from .regimes import BANDWIDTH, H100, PEAK


def later_models() -> None:
    """Later models."""
    note(r"""
        Models that came after Llama-3-8B keep the plan of the block: norm, attention, norm,
        feed-forward part. They change its parts. A head gets a size of its own, the feed-forward
        part is split into experts, the KV cache is compressed, or a layer looks at the last tokens
        only.
    """)
    a_head_has_a_size_of_its_own()
    a_token_meets_a_few_of_many_experts()
    experts_want_large_batches()
    a_latent_replaces_keys_and_values()
    deepseek_is_counted()
    a_window_bounds_the_cache()


@aside
def a_head_has_a_size_of_its_own() -> None:
    """The heads together need not be as wide as the model."""
    note(r"""
        In Llama a token has $d$ numbers, and all its queries together have $d$ numbers as well. It
        need not be so. Qwen3-0.6B is `1024` numbers wide, and has `16` heads of queries with `128`
        numbers each [@qwen3-06b]. So all queries of a token have `16 * 128` numbers, twice as many
        as the token.

        What does that change? With $a$ heads of $c$ numbers, the query matrix turns $d$ numbers
        into $ac$, so it has $d \cdot ac$ weights instead of $d^2$. The output matrix turns $ac$
        numbers into $d$, and has as many. The other five matrices stay as they were. With $d_{kv}$
        numbers in all keys of a token, and $h$ numbers inside the feed-forward part, a layer has

        $$2d \cdot ac + 2d\,d_{kv} + 3dh$$

        weights. Count the parameters of this model by hand: `28` layers, `8` KV heads, $h = 3072$,
        and one table for `151936` tokens. (Its norms have `2` more rows of gains, as long as a
        head, since each query and key goes through a norm of its own [@qwen3].)
    """)
    d, queries, keys, h = 1024, 16 * 128, 8 * 128, 3072
    weights = 2 * d * queries + 2 * d * keys + 3 * d * h  # @inspect weights
    gains = 2 * d + 2 * 128  # @inspect gains
    by_hand = 28 * (weights + gains) + d + 151936 * d  # @inspect by_hand
    assert by_hand == parameter_count(QWEN_3) == 596_049_920, \
        "By hand and by formula, the model has 0.6 billion parameters."
    with torch.device("meta"):  # @hide
        model = Transformer(QWEN_3)
    built = sum(p.numel() for p in model.parameters())  # @hide
    assert built == by_hand, \
        "The built model has as many parameters."  # @hide
    narrow = replace(QWEN_3, head_size=0)  # heads of width / heads numbers  # @hide
    fewer = 1 - parameter_count(narrow) / by_hand  # @hide
    assert 0.14 < fewer < 0.15, \
        "With heads of 1024 / 16 numbers, more than 14 % of the parameters would be missing."  # @hide
    wider = attention_flops(QWEN_3, 1, 1000) / attention_flops(narrow, 1, 1000)  # @hide
    assert wider == 2.0, \
        "With the wide heads, scores and sums take twice the FLOPs."  # @hide
    note(rf"""
        With heads of `1024 / 16` numbers, as Llama would have them, the model would have
        {fewer:.0%} fewer parameters, and the products of attention would take half the FLOPs. So
        the size of a head is a choice: wider heads cost weights and FLOPs.
    """)
    with torch.device("meta"):  # @hide
        other = Attention(replace(QWEN_3, width=2048, heads=24), "fused")  # @hide
    question(r"""
        Another model has tokens of `2048` numbers and `24` heads of queries with `128` numbers
        each. How many weights have its query matrix and its output matrix together, in one layer?
    """, answer=2 * 2048 * (24 * 128), check=other.query.weight.numel() + other.out.weight.numel(), unit="weights", wrong={
        "The heads together are 3072 numbers wide, not 2048.": 2 * 2048 * 2048,
        "There are two such matrices.": 2048 * 24 * 128,
    }, hint="How many numbers have all heads of queries together?", why=r"""
        All heads together have `24 * 128` numbers, more than a token has. One matrix leads from
        `2048` numbers to these, and the other leads back.
    """)


@aside
def a_token_meets_a_few_of_many_experts() -> None:
    """With experts, memory follows all parameters, and FLOPs those that a token meets."""
    note(r"""
        Most weights of a Transformer block are in its feed-forward part. Can a model have more of
        them without computing more? A *mixture of experts* has several feed-forward parts in each
        layer, the *experts*. A small matrix, the *router*, scores all experts for each token. The
        token goes through the few experts with the best scores, and their results are added up,
        weighted by the scores.

        Mixtral-8x7B has `32` layers with `8` experts each, and each token goes through `2` of them
        [@mixtral]. An expert has three matrices of `4096 * 14336` weights. So in each layer a token
        leaves `6` experts idle. `parameter_count` counts all parameters of the model:
    """)
    total = parameter_count(MIXTRAL)  # @inspect total
    idle = 32 * 6 * (3 * 4096 * 14336)  # @inspect idle
    assert idle == idle_weights(MIXTRAL), \
        "These are the weights of 6 experts in all layers."  # @hide
    active = total - idle  # @inspect active
    assert (total, active) == (46_702_792_704, 12_879_925_248), \
        "The model has 47 billion parameters, and a token meets 13 billion, as published."
    with torch.device("meta"):  # @hide
        model = Transformer(MIXTRAL)
    sizes = {name: p.numel() for name, p in model.named_parameters()}  # @hide
    in_experts = sum(n for name, n in sizes.items() if ".experts." in name)  # @hide
    assert sum(sizes.values()) == total, \
        "The built model has as many parameters."  # @hide
    assert total - in_experts * 6 / 8 == active, \
        "Without 6 of 8 experts, the active parameters are left."  # @hide
    note(r"""
        Which of the two numbers decides the FLOPs, all parameters or the active ones? Count the
        feed-forward part of one small layer, `64` wide and `160` inside. It has `8` experts, and
        each of `32` tokens goes through `2`. `Experts` is such a part:
    """)
    config = replace(SMALL, experts=8, active=2)
    part, x = Experts(config), torch.randn(1, 32, 64)
    counted = flops(lambda: part(x))  # @inspect counted as FLOP
    in_two_experts = 2 * 32 * 2 * (3 * 64 * 160)  # @inspect in_two_experts as FLOP
    in_router = 2 * 32 * 64 * 8  # @inspect in_router as FLOP
    assert counted == in_two_experts + in_router, \
        "The layer takes the FLOPs of two experts for each token, and those of the router."
    assert expert_weights(config) == 3 * 64 * 160, \
        "An expert of the small layer has three matrices of 64 * 160 weights."  # @hide
    weights = 2 * total  # @hide
    assert 1.16 < weights / H100.memory < 1.17, \
        "Mixtral's weights are 1.17 times the 80 GB of a card."  # @hide
    assert weights > H100.memory, \
        "In bfloat16, all weights are more than a card of 80 GB has."  # @hide
    note(rf"""
        So the FLOPs follow the active parameters: each token takes those of `2` experts and of the
        router. The memory follows all parameters, because the next token may go through other
        experts. Mixtral's weights take {weights / 1e9:.0f} GB in `bfloat16`, and a token computes
        with {2 * active / 1e9:.0f} GB of them.
    """)
    assert parameter_count(MISTRAL_7B) * 8 > 1.2 * total, \
        "Eight whole models of Mistral's size would have more parameters."  # @hide
    misbelief("A model of `8` experts, each of the size of Mistral-7B, has `8` times its parameters.", rf"""
        It has {total / parameter_count(MISTRAL_7B):.1f} times as many. Only the feed-forward part
        is there once for each expert. Attention, norms and tables are there once for all.
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
        token goes through `2` experts in each layer. How many weights of experts does the model
        have, and how many of them does a token meet? Write both numbers with a comma between them.
    """, answer=[10 * 16 * 1e6, 10 * 2 * 1e6], check=[160_000_000, 160_000_000 * 2 / 16], unit="weights", within=0.01,
        hint="First one layer.",
        why="There are `10 * 16` experts, and a token meets `10 * 2` of them. Memory follows the first number, FLOPs the second.")


@aside
def experts_want_large_batches() -> None:
    """Experts divide the batch, so each waits for memory longer."""
    note(r"""
        A product with a matrix waits for memory until enough tokens go through the matrix
        [at once](#every_operation_has_an_intensity). With $n$ tokens and a matrix of $r$ rows and
        $c$ columns it does $nrc/(nr + rc + nc)$ FLOPs for each byte, in `bfloat16`. An H100 can do
        `ridge` FLOPs while a byte arrives. Set both equal, and solve for $n$: that many tokens are
        enough. With *experts*, the tokens of a batch are divided among several feed-forward parts.
        If each token goes through $k$ of $E$ experts, an expert sees $k/E$ of the batch on average.
        So the batch has to be $E/k$ times as large:
    """)
    ridge = PEAK / BANDWIDTH  # @inspect ridge as FLOP/B

    def enough(rows: int, cols: int) -> int:
        """Tokens from which a product with that matrix waits for arithmetic."""
        least = 1 / (1 / ridge - 1 / rows - 1 / cols)
        return math.ceil(least)

    dense = enough(4096, 14336)  # @inspect dense
    mixtral = dense * 8 / 2  # @inspect mixtral
    assert mixtral == 4 * 326, \
        "A step of Mixtral needs 1304 tokens, with 2 of 8 experts."
    deepseek = enough(7168, 2048) * 256 / 8  # @inspect deepseek
    assert deepseek == 32 * 363, \
        "A step of DeepSeek-V3 needs 11616, with 8 of 256 experts."
    note(rf"""
        Mistral's feed-forward part needs {dense} tokens in a step, and Mixtral's experts, which are
        as large, need {mixtral:,.0f}. DeepSeek-V3 needs {deepseek:,.0f}.

        A batch also reads more weights than a single token does. A token reads `8` of the `256`
        experts in each layer of DeepSeek-V3. How many do `64` tokens read that choose at random?
        Draw it for `58` layers, and compare it with the chance that not all `64` tokens pass an
        expert by:
    """)
    chosen = torch.rand(58, 64, 256).topk(8).indices.flatten(1)  # @unnoticed: 58 -> 59, 64 -> 65: less than two draws differ
    touched = sum(len(layer.unique()) for layer in chosen) / (58 * 256)  # @inspect touched as %
    read = touched * 58 * 256  # @hide
    assert math.isclose(read, round(read)), "The share is one of whole experts in 58 layers of 256."  # @hide
    expected = 1 - (1 - 8 / 256) ** 64  # @inspect expected as %
    assert math.isclose(touched, expected, rel_tol=0.02), \
        "Drawn and by formula, 64 tokens read 87 % of all experts."
    work = 64 * 8 / 256  # @inspect work
    assert work == 2.0, "Each expert gets 2 tokens on average."
    note(rf"""
        So a batch of `64` tokens reads {expected:.0%} of all experts, and gives each of them only
        {work:.0f} tokens to work on. Large services spread the experts over many cards, so that
        each card's experts see the tokens of all.
    """)
    question(r"""
        A model sends each token through `4` of `128` experts. How many tokens have to be in a step
        for an expert to see `300` on average?
    """, answer=300 * 128 / 4, check=300 / (4 / 128), unit="tokens",
        why="On average an expert sees `4/128` of the tokens, so the step needs `128/4` times as many as an expert.")


@aside
def a_latent_replaces_keys_and_values() -> None:
    """Latent attention caches one short row for all heads."""
    note(r"""
        A usual KV cache keeps a key and a value for every KV head. DeepSeek-V3 has `128` heads with
        keys and values of `128` numbers, and would have to keep all of them. It keeps something
        smaller: for each token and layer a *latent*, a row of `512` numbers, from which two
        matrices make the keys and the values of all heads. `64` more numbers are a part of the key
        that carries the position and that all heads share. This is *latent
        attention* [@deepseek-v3]:
    """)
    plain, latent = 128 * (128 + 128), 512 + 64  # @inspect plain, latent
    assert (plain, latent) == (32768, 576), \
        "A token would keep 32768 numbers in a layer, and keeps 576."
    token = 61 * latent * 2  # @inspect token as B
    assert token == 70_272, \
        "In all 61 layers, a token takes 70272 bytes in bfloat16."
    llama = cache_bytes(
        replace(SMALL, layers=61, heads=128, kv_heads=8, head_size=128), 1)  # @hide
    assert llama == 2 * 61 * 8 * 128 * 2, \
        "With 8 KV heads of 128 numbers, a token would keep 249,856 bytes."  # @hide
    saved = llama / token  # @hide
    assert 3.5 < saved < 3.6, \
        "With 8 KV heads instead, it would take 3.6 times as many."  # @hide
    note(rf"""
        That is {plain / latent:.0f} times less than without latents, and {saved:.1f} times less
        than with `8` KV heads.

        Must the keys of all earlier tokens be computed from their latents again at each step? They
        need not be. Take a query $q$, a latent $z$ and the matrix $W$ that makes keys. The score is
        $q \cdot (W z)$, which equals $(W^T q) \cdot z$. So multiply the query by the matrix once,
        and score it against the latents themselves. The values work alike: first add up latents,
        then multiply by their matrix once. One says that the matrices are *absorbed*. Here are both
        ways for `4` small heads and `64` tokens:
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

    assert torch.allclose(absorbed(), unabsorbed()), \
        "Both ways give the same result."
    work = flops(unabsorbed), flops(absorbed)  # @inspect work as FLOP
    assert work == (139_264, 18_432), \
        "Made anew, keys and values take far more FLOPs."
    once, pairs = 2 * 2 * heads * size * width, 2 * 2 * heads * tokens
    assert work[0] == tokens * once + pairs * size, \
        "Not absorbed, every key and value is made again."
    assert work[1] == once + pairs * width, \
        "Absorbed, the matrices are used once, and scores and sums are longer."
    note(rf"""
        Absorbed, this small example takes {work[1]:,} FLOPs instead of {work[0]:,}.
    """)
    question(r"""
        A token of DeepSeek-V3 keeps `576` numbers of `2` bytes in each of `61` layers. How many
        tokens fit into one GiB of cache?
    """, answer=GiB // token, check=2**30 // (61 * (512 + 64) * 2), unit="tokens", within=0.02, wrong={
            "A GiB is 2**30 bytes, not 10**9.": 10**9 // (61 * 576 * 2),
            "Each number takes two bytes.": 2**30 // (61 * 576),
        }, hint="First the bytes of one token.",
        why="A token takes `61 * 576 * 2` bytes. Llama-3-8B, a much smaller model, fits only `8192` tokens into a GiB.")


@aside
def deepseek_is_counted() -> None:
    """The parameters of DeepSeek-V3 follow from its shapes, nearly all in experts."""
    note(r"""
        Do the parameters of DeepSeek-V3 follow from its shapes? Its report gives all of them
        [@deepseek-v3]. It has `61` layers of width `7168` and a vocabulary of `129280`, with two
        tables. Three layers have a plain feed-forward part, `18432` wide inside. The other `58`
        have `256` experts, each `2048` wide inside, and one more that every token goes through. A
        *router*, which chooses the experts of a token, has a row and a bias for each of the `256`.
        Attention has `128` heads and works with [latents](#a_latent_replaces_keys_and_values): keys
        and values of `128` numbers come from a row of `512`, and `64` more numbers of a key carry
        the position. Queries come from a row of `1536` numbers, `128` and `64` for each head:
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
        "The shapes give 671 billion parameters, as reported."
    idle = 58 * (256 - 8) * expert  # @inspect idle
    met = total - idle - 129280 * d  # @inspect met
    assert round(met / 1e9) == 37, \
        "A token is multiplied by 37 billion of them, as reported."
    share = 58 * 257 * expert / total  # @inspect share as %
    assert 0.97 < share < 0.98, "98 % of all parameters are in the experts."
    note(rf"""
        So the shapes give {total / 1e9:.0f} billion parameters, {share:.0%} of them in experts. A
        token goes through `8` of `256` experts in each layer, and so is multiplied by only
        {met / 1e9:.0f} billion parameters.
    """)
    routed = 9 * expert + 256 * d + 256
    used = 61 * (attention + gains) + 3 * dense + 58 * routed
    question(r"""
        What share of all its parameters is DeepSeek-V3 multiplied by for one token?
    """, answer=met / total, check=(used + d + 129280 * d) / total, unit="%", within=0.05, wrong={
            "That is the share of the experts that a token goes through; attention and head serve every token.": 8 / 256,
        }, hint="Divide the parameters that a token meets by all parameters.",
        why="A token meets all of attention, the shared expert and the head, but only `8` of `256` experts in a layer: `37` of `671` billion.")


@aside
def a_window_bounds_the_cache() -> None:
    """With a window, the cache and attention's FLOPs stop growing with the text."""
    note(r"""
        Does a token have to look at the whole text? In the first Mistral-7B a token looks, in each
        layer, at the last `4096` tokens, itself included. This is its *window* [@mistral-7b]. So
        keys and values of older tokens can be thrown away. Check this with a text of `10` tokens
        and a window of `4`. First all keys are there, and the window hides the older ones. Then
        only the last four keys and values are there at all:
    """)
    q: Float[Tensor, "b t h c"] = torch.randn(1, 1, 2, 8).double()  # newest
    k, v = torch.randn(2, 1, 10, 2, 8).double()  # @unnoticed: 1, 10: any batch, and any text longer than the window
    windowed = written_attention(q, k, v, window=4)
    recent = written_attention(q, k[:, -4:], v[:, -4:])
    assert torch.allclose(windowed, recent), \
        "The last four keys and values give the whole result."
    whole = written_attention(q, k, v)  # @hide
    assert not torch.allclose(windowed, whole), \
        "Without a window, the older keys count."  # @hide
    note(r"""
        So the KV cache grows up to the window and no further, and so do the FLOPs of attention for
        a new token. Mistral-7B has `32` layers and `8` KV heads of `128` numbers. Compute its cache
        in `bfloat16` for texts of three lengths:
    """)
    lengths = [1024, 4096, 32768]  # @inspect lengths  # @unnoticed: 32768: any length beyond the window
    caches = [2 * 32 * (8 * 128) * min(n, 4096) * 2 for n in lengths]  # @inspect caches as B
    assert caches[1] == 4 * caches[0] == caches[2], \
        "From 4096 tokens on, the cache grows no further."
    assert caches == [cache_bytes(MISTRAL_7B, n) for n in lengths], \
        "The formula for the cache gives the same bytes."  # @hide
    work = [forward_flops(MISTRAL_7B, 1, n) for n in lengths]  # @hide
    assert work[0] < work[1] == work[2], \
        "From 4096 tokens on, a new token takes the same FLOPs."  # @hide
    model = Transformer(replace(SMALL, window=4)).double()  # @hide
    tokens = torch.arange(12)[None]  # @hide

    def matters(place: int) -> bool:  # @hide
        other = tokens.clone()
        other[0, place] = 99
        with torch.no_grad():
            return not torch.allclose(model(tokens)[0, -1], model(other)[0, -1])

    reach = [11 - place for place in range(12) if matters(place)]  # @hide
    assert max(reach) == 2 * (4 - 1), \
        "In a model of two layers with a window of 4, the last token depends on tokens up to 6 places back."  # @hide
    note(rf"""
        Is what lies before the window lost? Not quite. A token looks at tokens that themselves
        looked back in the layer below. So each layer reaches further back, by the window less one.
        In a small model of `2` layers with a window of `4`, the last token depends on tokens up to
        {max(reach)} places back, `4 - 1` for each layer.
    """)
    order = torch.arange(12)  # @hide
    back = (order[:, None] - order[None]).tolist()  # @hide
    one, two = ([[int(0 <= far <= reach) for far in row] for row in back] for reach in (3, max(reach)))  # @hide
    assert sum(two[-1]) == len(reach), "The last row is what the last token depends on."  # @hide
    figure(cells({"one layer": one, "two layers": two}, [("unseen", "none"), ("seen", BLUE)],
                 ("token", "depends on token")), caption=r"""
                     On which tokens each of `12` tokens depends, with a window of `4`, after one
                     layer and after two. The band of a layer never gets wider, so neither does the
                     cache.
                 """, alt=r"""
                     Two grids with a band along the diagonal. The band of one layer is four cells
                     wide, that of two layers seven.
                 """)
    question(r"""
        Another model has `24` layers, keys of `512` numbers in all, and a window of `2048` tokens.
        It keeps keys and values of the window alone. How many bytes does its KV cache take for a
        text of `16384` tokens, in `bfloat16`?
    """, answer=2 * 24 * 512 * 2048 * 2,
        check=cache_bytes(replace(MISTRAL_7B, layers=24, kv_heads=4, window=2048), 16384), unit="B",
        within=0.02, wrong={
            "No more is kept than the window.": 2 * 24 * 512 * 16384 * 2,
            "The cache has keys and values.": 24 * 512 * 2048 * 2,
        }, hint="How many tokens are kept?",
        why="It is as many as for `2048` tokens: keys and values, layers, numbers, tokens, bytes. The rest of the text is not kept.")
