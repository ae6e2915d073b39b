"""What models since Llama 3 change: the size of a head, experts, a compressed cache, windows."""
from dataclasses import replace

import torch
from counters import flops
from jaxtyping import Float
from torch import Tensor
from plots import BLUE
from .figures import cells

from litbook import aside, figure, misbelief, note, question

from .block import Cache, Experts, Transformer, written_attention
from .counts import Config, cache_bytes, expert_weights, idle_weights, parameter_count
from .published import MISTRAL_7B, MIXTRAL, SMALL
from .regimes import BANDWIDTH, PEAK


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
    a_window_bounds_the_cache()


@aside
def a_token_meets_a_few_of_many_experts() -> None:
    """In a mixture of experts, memory depends on all parameters, FLOPs only on the active ones."""
    note(r"""
        Can a model have more parameters without computing more per token? Yes, if a token is
        multiplied by only some of them.

        A *mixture of experts* has several feed-forward networks in each layer, the *experts*. A
        small matrix, the *router*, gives every expert a score for each token, and the token goes
        through only the few experts with the highest scores. By hand, take $4$ experts of $10$
        weights, and $2$ of them for each token:

        - The memory holds all $4 \cdot 10 = 40$ weights, because the next token may go through
          other experts.
        - A token is multiplied by only $2 \cdot 10 = 20$ weights, because nothing is computed in
          the other experts: they are *idle*.

        Now count the FLOPs of a small layer, `experts`. It has `8` experts, and an expert has `3`
        matrices of `64 * 160` weights. The router is one matrix of `64 * 8`. `x` holds `32` tokens,
        and each goes through `2` experts:
    """)
    part = Experts(replace(SMALL, experts=8, active=2))  # @hide
    experts, x = part, torch.randn(1, 32, 64)  # @hide
    counted = flops(lambda: experts(x))  # @inspect counted as FLOP
    # 2 FLOPs per weight, 32 tokens, 2 experts and the router
    expected = 2 * 32 * (2 * (3 * 64 * 160) + 64 * 8)  # @inspect expected as FLOP
    assert counted == expected, \
        "Each token costs the FLOPs of two experts and of the router."
    assert expert_weights(SMALL) == 3 * 64 * 160, \
        "An expert has three matrices."  # @hide
    note(r"""
        So the FLOPs of the matrices depend only on the *active* parameters, those that are not idle
        for the token. (Attention's two matmuls are extra, as in any model.) Mixtral-8x7B has
        `46702792704` parameters in `32` layers of `8` experts, and a token goes through `2`
        [@mixtral]. So for this token `6` experts in each layer are idle, with `3` matrices of
        `4096 * 14336` weights each:
    """)
    total = 46702792704
    assert total == parameter_count(MIXTRAL), \
        "The formula gives the number of parameters of Mixtral."  # @hide
    idle = 32 * 6 * (3 * 4096 * 14336)  # @inspect round(idle / 1e9, 1) as billion
    assert idle == idle_weights(MIXTRAL), \
        "These are the weights of 6 experts in all layers."  # @hide
    active = total - idle  # @inspect round(active / 1e9, 1) as billion
    assert (round(total / 1e9), round(active / 1e9)) == (47, 13), \
        "Of 47 billion parameters, 13 billion are active for a token, as published."
    with torch.device("meta"):  # @hide
        model = Transformer(MIXTRAL)
    sizes = {name: p.numel() for name, p in model.named_parameters()}  # @hide
    in_experts = sum(n for name, n in sizes.items() if ".experts." in name)  # @hide
    assert sum(sizes.values()) == total, \
        "The built model has the same number of parameters."  # @hide
    assert total - in_experts * 6 / 8 == active, \
        "Without 6 of 8 experts, the active parameters are left."  # @hide
    note(rf"""
        To serve Mixtral, you need memory for all its weights, `2` bytes each: {2 * total / 1e9:.0f}
        GB. But a token costs only the FLOPs of a model with {active / 1e9:.0f} billion parameters.
    """)
    assert parameter_count(MISTRAL_7B) * 8 > 1.2 * total, \
        "Eight whole models of Mistral's size would have more parameters."  # @hide
    misbelief("A model with `8` experts, each of the size of Mistral-7B, has `8` times the parameters of Mistral-7B.", rf"""
        It has {total / 1e9:.1f} billion, and Mistral-7B {parameter_count(MISTRAL_7B) / 1e9:.1f}
        billion. That is {total / parameter_count(MISTRAL_7B):.1f} times as many, because only the
        feed-forward part exists `8` times. There is one copy of attention, norms, embedding and
        head.
    """)
    picked = part.router(x[0]).topk(2).indices.tolist()  # @hide
    routed = [[int(expert in chosen) for chosen in picked] for expert in range(8)]  # @hide
    busy = [sum(row) for row in routed]  # @hide
    assert sum(busy) == 2 * 32, "Each token goes through two experts."  # @hide
    figure(cells({"": routed}, [("idle for this token", "none"), ("goes through", BLUE)], ("expert", "token")), caption=r"""
        Which of `8` experts each of the `32` tokens goes through in the small layer above: two in
        each column. All experts have to be in memory.
    """, alt=rf"""
        A grid of eight rows and thirty-two columns, with two filled cells in each column. The rows
        have from {min(busy)} to {max(busy)} filled cells.
    """)
    layers = [Experts(replace(SMALL, experts=16, active=2)) for _ in range(10)]  # @hide
    token, million = x[:, :1], 1e6 / expert_weights(SMALL)  # @hide
    held = sum(p.numel() for layer in layers for p in layer.experts.parameters())  # @hide
    routing = flops(lambda: [layer.router(token) for layer in layers])  # @hide
    met = (flops(lambda: [layer(token) for layer in layers]) - routing) / 2  # @hide
    question(r"""
        Another model has `10` layers with `16` experts each, and an expert has `1e6` weights. A
        token goes through `2` experts in each layer. How many weights do all experts of the model
        have, and how many of them are active for a token? Write both numbers with a comma between
        them.
    """, answer=[10 * 16 * 1e6, 10 * 2 * 1e6], check=[held * million, met * million], unit="weights", within=0.01,
        hint="First count the experts of all layers.",
        why="There are `10 * 16` experts of `1e6` weights, and a token goes through `10 * 2` of them. Memory depends on the first number, FLOPs on the second.")


@aside
def experts_want_large_batches() -> None:
    """With experts, many more tokens are needed before the experts' matmuls are compute-bound."""
    note(r"""
        In a model with *experts*, a layer has several feed-forward networks, and each token goes
        through only a few of them. Why do services that host such models process very many
        sequences at once?

        For each matmul, a GPU reads the weights from memory once. With few tokens it waits for this
        read: the matmul is *memory-bound*. With enough tokens the arithmetic takes longer than the
        read: the matmul is *compute-bound*. Each weight has $2$ bytes and costs $2$ FLOPs per
        token, so a matmul of `n` tokens does `n` FLOPs per byte of weights. By its datasheet
        [@nvidia-h100], an H100 does `989.5e12` FLOPs and reads `3.35e12` bytes a second. So,
        counting only the bytes of the weights, a matmul is compute-bound from this number of tokens
        on:
    """)
    dense = 989.5e12 / 3.35e12  # @inspect round(dense, 1) as tokens
    assert dense == PEAK / BANDWIDTH, "These are the numbers of the datasheet."  # @hide
    note(r"""
        With experts, the layer needs more tokens, because each expert receives only a part of them.
        In generation each sequence brings one token per step, so more tokens mean more sequences.
        If a token goes through $1$ of $2$ experts, an expert receives $1/2$ of the tokens on
        average, so the layer needs $2$ times as many.

        Suppose again an H100 and weights of $2$ bytes, and tokens that are spread evenly over the
        experts. In DeepSeek-V3 a token goes through `8` of `256` [@deepseek-v3]:
    """)
    deepseek = dense * 256 / 8  # @inspect round(deepseek, 1) as tokens
    assert 9451 < deepseek < 9452, \
        "Spread evenly, DeepSeek-V3 needs at least 9,452 tokens at once."
    note(rf"""
        So the experts of DeepSeek-V3 need {deepseek / dense:.0f} times as many tokens at once as
        matmuls of the same size in a model without experts. With half of these tokens, at least
        half of the GPU's arithmetic is idle in these matmuls.
    """)
    received, dealt = [0] * 128, 0  # @hide
    while min(received) < 300:  # one token more, to the next four experts in turn  # @hide
        for place in range(4):
            received[(4 * dealt + place) % 128] += 1
        dealt += 1
    question(r"""
        A model sends each token through `4` of `128` experts. How many tokens have to go through
        the layer at once for an expert to receive `300` on average?
    """, answer=300 * 128 / 4, check=dealt, unit="tokens", within=0.01, wrong={
            "Each token goes through 4 experts, not one.": 300 * 128,
            "An expert receives fewer tokens than the layer, not more.": 300 * 4 / 128,
        }, hint="What share of all tokens does an expert receive?",
        why="On average an expert receives `4/128` of the tokens, so `128/4` times `300` tokens are needed.")


@aside
def a_latent_replaces_keys_and_values() -> None:
    """DeepSeek-V3's latent attention caches one latent and one short key per token and layer, not keys and values for every head."""
    note(r"""
        How can the KV cache be made smaller? The *KV cache* stores the keys and values of all
        tokens of a sequence. A standard cache stores them for every head of each layer. Instead, a
        layer can store one short vector per token for all heads, the *latent*, which a matrix
        computes from the token's vector. The latent is enough, because two other matrices, which
        are the same for all tokens, turn it into the keys and the values of every head.

        By hand, take $10$ heads with keys and values of $2$ elements. A standard cache stores
        $10 \cdot (2 + 2) = 40$ elements per token and layer. With a latent of $5$ elements, it
        stores $5$. As code, for `1000` tokens with random latents, because only the sizes are
        compared:
    """)
    latents = torch.randn(1000, 5)  # one for each token
    to_keys, to_values = torch.randn(2, 5, 10 * 2)  # the two matrices
    keys, values = latents @ to_keys, latents @ to_values  # of all 10 heads
    standard_size = keys.numel() + values.numel()  # @inspect standard_size as elements
    latent_size = latents.numel()  # @inspect latent_size as elements
    assert standard_size == 8 * latent_size, \
        "The keys and values have 8 times as many elements as the latents."
    note(r"""
        DeepSeek-V3 has `128` heads with keys and values of `128` elements, and a latent of `512`
        elements [@deepseek-v3]. One part of each key does not come from the latent: `64` more
        elements, which are [rotated](#rotary_embedding_tells_distances) by the position of the
        token. They are the same for all heads, so they are stored once. Compare with a standard
        cache for the same heads, with keys of `128` elements:
    """)
    standard = 128 * (128 + 128)  # @inspect standard as elements
    with_latent = 512 + 64  # @inspect with_latent as elements
    ratio = standard / with_latent  # @inspect round(ratio) as times
    assert round(ratio) == 57, \
        "Per token and layer, the standard cache is about 57 times as large."
    token = 61 * with_latent * 2  # @hide
    assert token == 70_272, \
        "In all 61 layers, a token needs 70272 bytes in bfloat16."  # @hide
    note(rf"""
        So per token and layer, a standard cache would be {ratio:.0f} times as large. A cache in
        which groups of heads share keys and values, with `8` *KV heads*, that is, `8` keys and `8`
        values per token, would be `8 * (128 + 128) / 576`, or {8 * (128 + 128) / with_latent:.1f}
        times as large. In exchange, each step also multiplies by the two matrices.
    """)
    sizes = Config(layers=1, width=20 * 100, heads=20, kv_heads=20, hidden=1, vocabulary=1, context=1)  # @hide
    element = torch.empty(())  # @hide
    question(r"""
        Another model has `20` heads with keys and values of `100` elements. It stores a latent of
        `400` elements for each token instead. What percentage of the standard cache remains?
    """, answer=400 / (20 * (100 + 100)), check=torch.empty(400).nbytes / Cache(sizes, 1, element).memory.nbytes, unit="%", within=0.02, wrong={
            "A standard cache stores keys and values.": 400 / (20 * 100),
            "All heads share one latent.": 400 / 200,
        }, hint="How many elements per token does a standard cache store in a layer?",
        why="A standard cache stores `20 * (100 + 100)` elements per token and layer, and the latent replaces all of them.")


@aside
def a_window_bounds_the_cache() -> None:
    """If every layer has a window, the KV cache stops growing once the window is full."""
    note(r"""
        While a model generates a sequence, its *KV cache* stores the keys and values of all tokens
        so far, and each new token attends to all of them. Can the cache stop growing?

        Yes, if each layer lets a token attend only to the last few tokens, the layer's *window*,
        which includes the token itself. Older keys and values are then never used again, so the
        program can drop them. With a window of $4$ tokens, the cache stores at most $4$ keys and
        values per layer.

        Check this for the newest token of a sequence of `10` tokens. `query` belongs to this token;
        `keys` and `values` have the axes sequence, token, head and element. `windowed` is computed
        from all of them with a window of `4` tokens, and `recent` from only the last four, without
        a window:
    """)
    query: Float[Tensor, "b t h c"] = torch.randn(1, 1, 2, 8).double()  # @hide
    keys, values = torch.randn(2, 1, 10, 2, 8).double()  # @hide
    attention = written_attention  # @hide
    windowed = attention(query, keys, values, window=4)
    recent = attention(query, keys[:, -4:], values[:, -4:])
    same = torch.allclose(windowed, recent)
    assert same, "The last four keys and values give the same result."
    whole = written_attention(query, keys, values)  # @hide
    assert not torch.allclose(windowed, whole), \
        "Without a window, the older keys count."  # @hide
    note(r"""
        So if the program drops old keys and values, the cache grows only up to the window. The
        first Mistral-7B has a window of `4096` tokens, and `32` layers with `8` KV heads of `128`
        elements of `2` bytes [@mistral-7b]. Compute the size of its cache for sequences of three
        lengths:
    """)
    lengths = [1024, 4096, 32768]
    per_token = 2 * 32 * (8 * 128) * 2  # bytes, keys and values
    caches = {n: min(n, 4096) * per_token for n in lengths}  # @inspect caches as B
    assert caches[32768] == caches[4096] == 4 * caches[1024], \
        "From 4096 tokens on, the cache stops growing."
    assert [*caches.values()] == [cache_bytes(MISTRAL_7B, n) for n in lengths], \
        "The formula for the cache gives the same bytes."  # @hide
    note(rf"""
        A sequence of `32768` tokens needs {caches[32768] / 2**20:.0f} MiB, an eighth of what it
        would need without a window.
    """)
    order = torch.arange(12)  # @hide
    back = (order[:, None] - order[None]).tolist()  # @hide
    seen = [[int(0 <= far <= 3) for far in row] for row in back]  # @hide
    assert sum(seen[-1]) == 4, "The last token sees the last four."  # @hide
    figure(cells({"": seen}, [("unseen", "none"), ("seen", BLUE)], ("token", "looks at token")), caption=r"""
        Which tokens each of `12` tokens attends to in a layer, with a window of `4`. The band never
        gets wider, so neither does the cache.
    """, alt="A grid with a band along the diagonal, four cells wide.")

    def stored(count: int) -> int:  # @hide
        """Elements of values that the newest of `count` tokens uses."""
        key = torch.zeros(1, count, 1, 2)
        value = torch.ones_like(key, requires_grad=True)
        mixed = written_attention(key[:, -1:], key, value, window=2048)
        used, = torch.autograd.grad(mixed.sum(), value)
        return int(used.count_nonzero())

    question(r"""
        A model with a window of `2048` tokens needs `100` MB for the cache of a sequence of `1024`
        tokens. How many MB does it need for a sequence of `16384` tokens?
    """, answer=2 * 100, check=100 * stored(16384) / stored(1024), unit="MB", within=0.02, wrong={
            "Only the window is stored.": 1600,
            "A sequence of 1024 tokens does not fill the window.": 100,
        }, hint="How many tokens are stored?",
        why="Only the last `2048` tokens are stored, twice as many as in the short sequence.")
