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
    a_batch_reads_most_experts()
    a_latent_replaces_keys_and_values()
    queries_meet_latents_directly()
    deepseek_is_counted()
    a_window_bounds_the_cache()


@aside
def a_head_has_a_size_of_its_own() -> None:
    """All heads together can be wider than the model."""
    note(r"""
        In attention, a token of $d$ elements is turned into a *query* for each head. In Llama all
        queries of a token together have $d$ elements, the same number as the token. Does it have to
        be so? No. In Qwen3-0.6B a token has $d = 1024$ elements, and `16` heads have queries of
        `128` elements [@qwen3-06b]. All queries of a token together have `16 * 128 = 2048`
        elements, twice as many as the token.

        What does that cost? Take two heads and a token of $4$ elements. With heads of $2$ elements
        the query matrix has $4 \cdot (2 \cdot 2) = 16$ weights, with heads of $4$ elements
        $4 \cdot (2 \cdot 4) = 32$. In the same way, all four matrices of attention double in this
        model:

        - The query matrix turns `1024` elements into `2048`, and the output matrix turns these
          back. Each has `1024 * 2048` weights instead of `1024 * 1024`.
        - The matrices of keys and values turn `1024` elements into those of `8` KV heads: `8 * 128`
          instead of `8 * 64`, which heads of `1024 / 16 = 64` elements would have.

        The three matrices of the feed-forward part stay as they are, with $h = 3072$ elements
        inside. To check this, count the parameters of the whole model: `28` blocks, a last norm,
        and one table of `151936` rows, which serves as embedding and as head [@qwen3]. A block has
        two norms of $d$ gains. Qwen3 also normalizes the query and the key of each head, with `128`
        gains for queries and `128` for keys:
    """)
    d, queries, keys, h = 1024, 16 * 128, 8 * 128, 3072
    attention = 2 * d * queries + 2 * d * keys  # @inspect attention
    feed_forward = 3 * d * h  # @inspect feed_forward
    gains = 2 * d + 2 * 128
    whole = 28 * (attention + feed_forward + gains) + d + 151936 * d  # @inspect whole
    assert whole == parameter_count(QWEN_3) == 596_049_920, \
        "Counted by hand, Qwen3-0.6B has 596,049,920 parameters, the same number as the general formula gives."
    with torch.device("meta"):  # @hide
        model = Transformer(QWEN_3)
    built = sum(p.numel() for p in model.parameters())  # @hide
    assert built == whole, \
        "The built model has the same number of parameters."  # @hide
    narrow = replace(QWEN_3, head_size=0)  # heads of width / heads elements  # @hide
    fewer = 1 - parameter_count(narrow) / whole  # @hide
    assert 0.14 < fewer < 0.15, \
        "With heads of 1024 / 16 elements, more than 14 % of the parameters would be missing."  # @hide
    wider = attention_flops(QWEN_3, 1, 1000) / attention_flops(narrow, 1, 1000)  # @hide
    assert wider == 2.0, \
        "With the wide heads, scores and sums cost twice the FLOPs."  # @hide
    note(rf"""
        With heads as in Llama, of `1024 / 16` elements, the model would have {fewer:.0%} fewer
        parameters. Attention's two matmuls, scores and weighted sums, would cost half the FLOPs. So
        this is the price of wider heads. What they gain, no count can show: one has to train both
        models and compare their losses.
    """)
    with torch.device("meta"):  # @hide
        other = Attention(replace(QWEN_3, width=2048, heads=24), "fused")  # @hide
    question(r"""
        Another model has tokens of `2048` elements and `24` heads with queries of `128` elements.
        How many weights do its query matrix and its output matrix have together, in one layer?
    """, answer=2 * 2048 * (24 * 128), check=other.query.weight.numel() + other.out.weight.numel(), unit="weights", wrong={
        "The heads together have 3072 elements, not 2048.": 2 * 2048 * 2048,
        "There are two such matrices.": 2048 * 24 * 128,
    }, hint="How many elements do all query heads have together?", why=r"""
        All queries together have `24 * 128` elements, more than a token has. One matrix turns
        `2048` elements into these, and the other turns them back.
    """)


@aside
def a_token_meets_a_few_of_many_experts() -> None:
    """In a mixture of experts, memory follows all parameters, FLOPs the active ones."""
    note(r"""
        Can a model have more parameters and not compute more for a token? Yes, if a token is not
        multiplied by all of them. A *mixture of experts* has several feed-forward parts in each
        layer, the *experts*. For each token, a small matrix, the *router*, gives every expert a
        score. The token goes only through the few experts with the best scores. Their results are
        added up, weighted by the softmax of these scores. With $4$ experts of $10$ weights, $2$ of
        them for each token, $4 \cdot 10 = 40$ weights are in memory, and a token is multiplied by
        $2 \cdot 10 = 20$.

        Mixtral-8x7B has `32` layers with `8` experts each, and a token goes through `2` of them
        [@mixtral]. So in each layer `6` experts are idle for this token. An expert has three
        matrices of `4096 * 14336` weights. `parameter_count` counts all parameters of the model.
        `active` counts the *active* parameters, all but those of idle experts:
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
        Do the FLOPs follow all parameters, or the active ones? Count them for a small layer.
        `Experts` builds `8` experts and a router. A token has `64` elements, and `160` inside an
        expert. Each of `32` tokens goes through `2` experts:
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
        So the FLOPs follow the active parameters, because nothing is computed in an idle expert.
        The memory follows all parameters, because the next token may go through other experts.
        Mixtral's weights need {weights / 1e9:.0f} GB in `bfloat16`, and a token is multiplied by
        {2 * active / 1e9:.0f} GB of them.
    """)
    assert parameter_count(MISTRAL_7B) * 8 > 1.2 * total, \
        "Eight whole models of Mistral's size would have more parameters."  # @hide
    misbelief("A model of `8` experts, each of the size of Mistral-7B, has `8` times its parameters.", rf"""
        It has {total / parameter_count(MISTRAL_7B):.1f} times as many, because only the
        feed-forward part is there `8` times. Attention, norms and tables are there once.
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
        why="There are `10 * 16` experts of `1e6` weights, and a token goes through `10 * 2` of them. Memory follows the first number, FLOPs the second.")


@aside
def experts_want_large_batches() -> None:
    """With experts, many more tokens are needed before a GPU waits for arithmetic."""
    note(r"""
        Why do services of models with *experts* work on so many sequences at once? To multiply
        tokens by a matrix, a GPU reads the matrix once. With few tokens it waits for this reading.
        Experts make it worse: they are feed-forward parts of which each token goes through only a
        few. In Mixtral a token goes through `2` of `8`. So on average an expert sees only a quarter
        of all tokens: of $100$ tokens in the layer, it sees $100 \cdot 2/8 = 25$. For an expert to
        see $100$ tokens, `8 / 2` times as many have to go through the layer.

        How many tokens does a matrix have to see before the GPU waits for arithmetic? A matmul of
        $n$ tokens with a matrix of $r$ rows and $c$ columns does $2nrc$ FLOPs and moves
        $nr + rc + nc$ elements of `2` bytes, so it does
        [$nrc/(nr + rc + nc)$ FLOPs with each byte](#every_operation_has_an_intensity). An H100 can
        do $R$ FLOPs, about `295`, while a byte arrives. The GPU begins to wait for arithmetic when
        the two are equal, $nrc/(nr + rc + nc) = R$. Turn both sides over; $(nr + rc + nc)/nrc$ is
        $1/c + 1/n + 1/r$:

        $$
        \frac{1}{c} + \frac{1}{n} + \frac{1}{r} = \frac{1}{R}, \quad\text{so}\quad
        n = \frac{1}{1/R - 1/r - 1/c}.
        $$

        `enough(rows, cols)` computes this $n$, rounded up. Mistral-7B has no experts, and its
        feed-forward part has matrices of `4096` rows and `14336` columns, as has each expert of
        Mixtral. In DeepSeek-V3 a token goes through `8` of `256` experts, whose matrices have
        `7168` rows and `2048` columns [@deepseek-v3]:
    """)
    ridge = PEAK / BANDWIDTH
    assert round(ridge) == 295, "The ridge of an H100 is 295."  # @hide

    def enough(rows: int, cols: int) -> int:
        return math.ceil(1 / (1 / ridge - 1 / rows - 1 / cols))

    mistral = enough(4096, 14336)  # @inspect mistral as tokens
    mixtral = enough(4096, 14336) * 8 // 2  # @inspect mixtral as tokens
    deepseek = enough(7168, 2048) * 256 // 8  # @inspect deepseek as tokens
    assert mistral == 326, \
        "With 326 tokens, the feed-forward part of Mistral waits for arithmetic."
    assert mixtral == 4 * 326, \
        "Mixtral needs 8 / 2 times the 326 tokens that each expert needs."
    assert deepseek == 32 * 363, \
        "DeepSeek-V3 needs 256 / 8 times the 363 tokens that each expert needs."
    note(rf"""
        So Mistral needs {mistral} tokens at once, Mixtral {mixtral:,}, and DeepSeek-V3
        {deepseek:,}: the smaller the share of the experts that a token goes through, the more
        tokens are needed. A large service therefore spreads the experts over many GPUs, to which
        all GPUs send tokens.
    """)
    question(r"""
        A model sends each token through `4` of `128` experts. How many tokens have to go through
        the layer at once for an expert to see `300` on average?
    """, answer=300 * 128 / 4, check=300 / (4 / 128), unit="tokens", within=0.01, wrong={
            "Each token goes through 4 experts, not one.": 300 * 128,
            "An expert sees fewer tokens than the layer, not more.": 300 * 4 / 128,
        }, hint="What share of all tokens does an expert see?",
        why="On average an expert sees `4/128` of the tokens, so `128/4` times `300` tokens are needed.")


@aside
def a_batch_reads_most_experts() -> None:
    """A batch of some dozens of tokens already reads most of the experts."""
    note(r"""
        In a *mixture of experts*, each token goes through a few of many feed-forward parts, the
        experts. In each layer of DeepSeek-V3 it goes through `8` of `256`. When the model generates
        a single sequence, one token at a time, the GPU has to read the weights of only these `8`.
        How many does it have to read when it generates `64` sequences at once, so for `64` tokens
        in each step?

        Say that each token chooses its experts at random. Take one expert. A token chooses it with
        probability `8 / 256`, and passes it by with probability `1 - 8 / 256`. All `64` tokens pass
        it by with probability `(1 - 8 / 256) ** 64`, because they choose independently. Otherwise
        it is read. So on average the share `1 - (1 - 8 / 256) ** 64` of the experts is read. To
        check it, give each expert a random score for each token: `topk(8)` then chooses `8` of
        `256` experts at random. `chosen` does this for `64` tokens in each of the `58` layers of
        DeepSeek-V3 that have experts [@deepseek-v3], `flatten(1)` puts all `64 * 8` choices of a
        layer in one row, and `touched` is the share of experts that are chosen:
    """)
    chosen = torch.rand(58, 64, 256).topk(8).indices.flatten(1)  # @unnoticed: 58 -> 59, 64 -> 65: less than two draws differ
    touched = sum(len(layer.unique()) for layer in chosen) / (58 * 256)  # @inspect touched as %  # @unnoticed: 256 -> 257: hardly another share
    expected = 1 - (1 - 8 / 256) ** 64  # @inspect expected as %
    assert math.isclose(touched, expected, rel_tol=0.02), \
        "Drawn and by formula, 64 tokens read 87 % of all experts."
    work = 64 * 8 / 256  # @inspect work as tokens
    assert work == 2.0, "Each expert gets 2 tokens on average."
    note(rf"""
        So with `64` tokens the GPU reads {expected:.0%} of all experts, because it rarely happens
        that no token chooses an expert. But an expert gets only {work:.0f} tokens on average, so
        each weight that is read is used for few tokens.
    """)
    question(r"""
        Each token goes through `1` of `4` experts, chosen at random, and there are `3` tokens. What
        share of the experts is read on average, in percent?
    """, answer=1 - (1 - 1 / 4) ** 3, check=1 - 27 / 64, unit="%", within=0.01, wrong={
            "Tokens may choose the same expert.": 0.75,
            "That is the share of the experts that no token chooses.": 0.75**3,
        }, hint="With what probability does none of them choose a given expert?",
        why="A token does not choose a given expert with probability `3/4`, and none of the three does with `3/4 * 3/4 * 3/4`. All other experts are read.")


@aside
def a_latent_replaces_keys_and_values() -> None:
    """Latent attention caches one short row for all heads."""
    note(r"""
        While a model generates a sequence, its *KV cache* keeps the keys and values of all tokens
        so far. How small can it be? DeepSeek-V3 has `128` heads, with keys and values of `128`
        elements. A usual cache would keep a key and a value for every head, for each token and
        layer. DeepSeek-V3 keeps one short row for all heads instead, the *latent*, of `512`
        elements. When attention needs keys and values, two matrices make those of all heads from
        the latent. Usual keys are [turned by their position](#rotary_embedding_tells_distances).
        Those from a latent are not, because then
        [queries could not be scored against latents directly](#queries_meet_latents_directly). So
        another `64` elements, which are turned and serve all heads, tell the position. This is
        *latent attention* [@deepseek-v3].

        Count the elements that a token keeps in a layer: usually `128` heads × (`128` for the key +
        `128` for the value), and with a latent `512 + 64`:
    """)
    usual = 128 * (128 + 128)  # @inspect usual as elements
    latent = 512 + 64  # @inspect latent as elements
    assert (usual, latent) == (32768, 576), \
        "In each layer a token keeps 576 elements, instead of 32,768 without latents."
    token = 61 * latent * 2  # @hide
    assert token == 70_272, \
        "In all 61 layers, a token needs 70272 bytes in bfloat16."  # @hide
    llama = cache_bytes(
        replace(SMALL, layers=61, heads=128, kv_heads=8, head_size=128), 1)  # @hide
    assert llama == 2 * 61 * 8 * 128 * 2, \
        "With 8 KV heads of 128 elements, a token would keep 249,856 bytes."  # @hide
    saved = llama / token  # @hide
    assert 3.5 < saved < 3.6, \
        "With 8 KV heads instead, it would need 3.6 times as many bytes."  # @hide
    note(rf"""
        So a usual cache would be {usual / latent:.0f} times as large, because it keeps a row for
        each head, where a single latent serves all heads. If all heads shared `8` keys and values
        of `128` elements, as in Llama-3, a token would keep {saved:.1f} times as much as with a
        latent.
    """)
    question(r"""
        A token of DeepSeek-V3 keeps `576` elements of `2` bytes in each of `61` layers. How many
        tokens fit into one GiB of cache?
    """, answer=GiB // token, check=2**30 // (61 * (512 + 64) * 2), unit="tokens", within=0.02, wrong={
            "A GiB is 2**30 bytes, not 10**9.": 10**9 // (61 * 576 * 2),
            "Each element needs two bytes.": 2**30 // (61 * 576),
        }, hint="First the bytes of one token.",
        why="A token needs `61 * 576 * 2` bytes, and a GiB has `2**30`. In a GiB, Llama-3-8B, a much smaller model, keeps only `8192` tokens.")


@aside
def queries_meet_latents_directly() -> None:
    """With latent attention a query is scored against the latents themselves."""
    note(r"""
        In [latent attention](#a_latent_replaces_keys_and_values) the cache keeps a short row for
        each token, its *latent*, and two matrices make a key and a value from it. A new token looks
        at all earlier ones. Do all their keys and values have to be made first? No. Take a query
        $q$, a latent $z$, and the matrix $W$ that makes keys. The key is $Wz$, and the *score* is
        the product of query and key. In the product $q^T W z$ one can begin at either end, because
        matrix multiplication is associative:

        $$
        q \cdot (W z) = (W^T q) \cdot z.
        $$

        On the left, $W$ makes a key of each latent. On the right, $W^T$ is multiplied by the query
        once, and the result is scored against the latents themselves. Values work in the same way:
        first take the weighted sum of the latents, then multiply this one row by the matrix of
        values.

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
        Making keys and values costs {work[0]:,} FLOPs in all. With the latents themselves it is
        only {work[1]:,}, because each matrix is multiplied by one row and not by `64`. One says
        that the matrices are *absorbed* into the query and the result.
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
def deepseek_is_counted() -> None:
    """The parameters of DeepSeek-V3 follow from its shapes, nearly all in experts."""
    note(r"""
        DeepSeek-V3 is published with `671` billion parameters, and a token is multiplied by `37`
        billion of them [@deepseek-v3]. Where are so many parameters, and why are so few of them
        active for a token? Count them from the shapes of the matrices. A token has `7168` elements.

        First the *experts*, feed-forward parts of which a token goes through only a few. `58`
        layers have `256` experts each, of which a token goes through `8`, and one more that all
        tokens go through. An expert has three matrices of `7168 * 2048` weights [@deepseek-v3]:
    """)
    d = 7168
    expert = 3 * d * 2048
    experts = 58 * (256 + 1) * expert  # @inspect round(experts / 1e9, 1) as billion
    note(r"""
        The code adds up all else, a line for each kind. The first `3` layers have one wide feed-forward
        part instead of experts. In `58` layers a *router* chooses the experts, with a row of
        weights and a bias for each. All `61` layers have attention, whose `128` heads make keys
        and values from a [short row for each token](#a_latent_replaces_keys_and_values), the
        latent. There are gains of norms, and two tables with a row for each of `129280` tokens
        [@deepseek-v3]:
    """)
    dense = 3 * (3 * d * 18432)
    routers = 58 * 256 * (d + 1)
    queries = d * 1536 + 1536 * 128 * (128 + 64)  # by way of 1536 elements
    keys_and_values = d * (512 + 64) + 512 * 128 * (128 + 128)  # by way of 512
    out = 128 * 128 * d
    attention = 61 * (queries + keys_and_values + out)
    gains = 61 * (2 * d + 1536 + 512) + d
    table = 129280 * d
    rest = dense + routers + attention + gains + 2 * table  # @inspect round(rest / 1e9, 1) as billion
    total = experts + rest  # @inspect round(total / 1e9) as billion
    assert total == 671_026_419_200, \
        "The shapes give 671,026,419,200 parameters, the 671 billion that are published."
    note("For a token, `256 - 8` experts of each of the `58` layers are idle. Of the table at the beginning it looks up a single row. All other parameters are active:")
    idle = 58 * (256 - 8) * expert
    active = total - idle - table  # @inspect round(active / 1e9) as billion
    assert round(active / 1e9) == 37, \
        "For a token 37 billion parameters are active, as published."
    share = experts / total  # @inspect share as %
    assert 0.97 < share < 0.98, "98 % of all parameters are in the experts."
    note(rf"""
        So both published numbers follow from the shapes. They are far apart because {share:.0%} of
        all parameters are in experts, and in each layer a token goes through only `8` of `256`.
    """)
    used = 58 * (8 + 1) * expert + rest - table  # @hide
    question(r"""
        For a token, `37` billion of the `671` billion parameters of DeepSeek-V3 are active. What is
        that in percent?
    """, answer=round(37 / 671, 3), check=round(used / total, 3), unit="%", within=0.02, wrong={
            "That is the share of the experts that a token goes through; attention and head serve every token.": 8 / 256,
        }, hint="Divide the active parameters by all parameters.",
        why="All of attention, the shared expert and the head are active for a token, but only `8` of `256` experts in a layer: `37` of `671` billion.")


@aside
def a_window_bounds_the_cache() -> None:
    """With a window, the cache and attention's FLOPs stop growing with the sequence."""
    note(r"""
        While a model generates a sequence, its *KV cache* keeps the keys and values of all tokens
        so far, and each new token looks at all of them. Can the cache stop growing? In the first
        Mistral-7B a token looks, in each layer, at the last `4096` tokens only, itself included.
        This is its *window* [@mistral-7b]. The keys and values of older tokens are never looked at
        again, so they need not be kept.

        Check this for the newest token of a sequence of `10` tokens, with a window of `4` tokens.
        `written_attention` computes attention. `windowed` has all ten keys and values and a window,
        and `recent` has the last four alone:
    """)
    q: Float[Tensor, "b t h c"] = torch.randn(1, 1, 2, 8).double()  # newest
    k, v = torch.randn(2, 1, 10, 2, 8).double()  # @unnoticed: 1, 10: any batch, and any sequence longer than the window
    windowed = written_attention(q, k, v, window=4)
    recent = written_attention(q, k[:, -4:], v[:, -4:])
    assert torch.allclose(windowed, recent), \
        "The last four keys and values alone give the same result."
    whole = written_attention(q, k, v)  # @hide
    assert not torch.allclose(windowed, whole), \
        "Without a window, the older keys count."  # @hide
    note(r"""
        So the KV cache grows up to the window and no further. (The FLOPs of attention for a new
        token also stop growing, because it looks at no more tokens than that.) Mistral-7B has `32`
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
    model = Transformer(replace(SMALL, window=4)).double()  # @hide
    tokens = torch.arange(12)[None]  # @hide

    def matters(position: int) -> bool:  # @hide
        other = tokens.clone()
        other[0, position] = 99
        with torch.no_grad():
            return not torch.allclose(model(tokens)[0, -1], model(other)[0, -1])

    reach = [11 - position for position in range(12) if matters(position)]  # @hide
    assert max(reach) == 2 * (4 - 1), \
        "In a model of two layers with a window of 4, the last token depends on tokens up to 6 positions back."  # @hide
    note(rf"""
        Older tokens still have an effect, by way of the tokens between. With a window of `4`, a
        token looks back `3` positions in the second layer, at a token that has looked back `3`
        positions in the first. So with two layers it depends on tokens up to `2 * (4 - 1)`, which
        is {max(reach)}, positions back.
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
        Another model has `24` layers, keys of `512` elements in all, and a window of `2048` tokens.
        It keeps keys and values of the window alone. How many bytes does its KV cache need for a
        sequence of `16384` tokens, in `bfloat16`?
    """, answer=2 * 24 * 512 * 2048 * 2,
        check=cache_bytes(replace(MISTRAL_7B, layers=24, kv_heads=4, window=2048), 16384), unit="B",
        within=0.02, wrong={
            "No more is kept than the window.": 2 * 24 * 512 * 16384 * 2,
            "The cache has keys and values.": 24 * 512 * 2048 * 2,
        }, hint="How many tokens are kept?",
        why="Only the last `2048` tokens are kept. For each there are keys and values, in `24` layers, of `512` elements of `2` bytes: `2 * 24 * 512 * 2048 * 2`.")
