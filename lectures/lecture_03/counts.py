"""What a Transformer costs, from its configuration alone: parameters, FLOPs, activations, KV cache.

Nothing here knows PyTorch, so nothing here can peep: lecture 03 holds every formula against a model in `block.py`.
Counts are whole numbers; sizes are bytes.
"""
from __future__ import annotations

from dataclasses import dataclass

ALL = 10**9  # tokens: no sequence is as long, so such a window hides nothing


@dataclass(frozen=True)
class Config:
    """The sizes of a model: number of layers, model dimension, query heads, KV heads, intermediate size, vocabulary, context."""

    layers: int
    width: int
    heads: int       # of queries
    kv_heads: int    # KV heads: the same number, or fewer
    hidden: int      # the intermediate size, inside the feed-forward part
    vocabulary: int
    context: int     # tokens of the longest sequence
    tied: bool = False  # whether the head's matrix is the embedding's
    bias: bool = False  # whether queries, keys and values have one, in Qwen2.5
    head_size: int = 0  # elements in one query or key; 0: width over heads
    normed: bool = False  # whether each query and key goes through a norm
    experts: int = 1    # feed-forward networks in each layer
    active: int = 1     # experts that a token goes through
    window: int = ALL   # tokens that a token attends to, itself included

    def __post_init__(self) -> None:
        """Heads divide the width, and KV heads those of queries, or there is no such model."""
        width, heads, keys = self.width, self.heads, self.kv_heads
        if not self.head_size and width % heads:
            raise ValueError(
                f"a width of {width} is no multiple of {heads} heads")
        if heads % keys:
            raise ValueError(
                f"{heads} heads are no multiple of {keys} heads of keys")
        if not self.active <= self.experts:
            raise ValueError(
                f"{self.active} experts for a token "
                f"are more than {self.experts}")

    @property
    def head(self) -> int:
        """Elements in one query, key or value."""
        return self.head_size or self.width // self.heads

    @property
    def query_width(self) -> int:
        """Elements in all queries of one token."""
        return self.heads * self.head

    @property
    def kv_width(self) -> int:
        """Elements in all keys of one token; all its values have the same number."""
        return self.kv_heads * self.head


def matrices(config: Config) -> dict[str, tuple[int, int]]:
    """Rows and columns of the seven matrices of one block, by the name of the matrix.

    With experts, those of one expert. A matrix has a row for each element of its input.
    """
    d, h = config.width, config.hidden
    q, kv = config.query_width, config.kv_width
    return {
        "query": (d, q), "key": (d, kv), "value": (d, kv), "out": (q, d),
        "gate": (d, h), "up": (d, h), "down": (h, d),
    }


def block_weights(config: Config) -> int:
    """Weights of one block that a token is multiplied by: those of its seven matrices.

    With experts, those of attention, of the router and of the active experts.
    """
    dense = sum(rows * cols for rows, cols in matrices(config).values())
    more = (config.active - 1) * expert_weights(config)
    router = config.width * config.experts * (config.experts > 1)
    return dense + more + router


def expert_weights(config: Config) -> int:
    """Weights of one expert, or of a block's only feed-forward part: its matrices gate, up and down."""
    return 3 * config.width * config.hidden


def idle_weights(config: Config) -> int:
    """Weights, in all layers, of the experts that a token does not go through."""
    idle = config.experts - config.active
    return config.layers * idle * expert_weights(config)


def parameter_count(config: Config) -> int:
    """Number of parameters of a model: those of its blocks, its last norm, the embedding and the head."""
    d = config.width
    biases = (config.query_width + 2 * config.kv_width) * config.bias
    gains = 2 * d + 2 * config.head * config.normed
    tables = config.vocabulary * d * (2 - config.tied)
    blocks = config.layers * (block_weights(config) + gains + biases)
    return blocks + idle_weights(config) + d + tables


def attention_flops(config: Config, tokens: int, context: int) -> int:
    """FLOPs of scores and weighted sums in all layers; `tokens`: how many are computed, `context`: how many each attends to.

    A token attends to no more than the window.
    """
    seen = min(context, config.window)
    return config.layers * 2 * (2 * tokens * seen * config.query_width)


def forward_flops(config: Config, tokens: int, context: int) -> int:
    """FLOPs of a forward pass; `tokens`: how many are computed, `context`: how many each of them attends to.

    Two for each weight and token, the head included, and those of attention.
    """
    blocks = config.layers * block_weights(config)
    head = config.vocabulary * config.width
    pairs = attention_flops(config, tokens, context)
    return 2 * tokens * (blocks + head) + pairs


def activation_bytes(
    config: Config, context: int, *, fused: bool = True, norm: int = 2
) -> int:
    """Bytes per token that one block keeps for the backward pass, in bfloat16.

    Each norm keeps its input, `norm` bytes per element, and one float32 per token: 2 bytes in a kernel of its own, 8 where
    PyTorch writes it out in float32. Fused attention keeps a float32 for each head, unfused attention a weight
    for each head and each of the `context` tokens. Each active expert keeps a copy of its tokens, what it returns, and
    28 bytes of choices and shares.
    """
    d, hidden = config.width, config.hidden
    q, kv = config.query_width, config.kv_width
    routed = config.experts > 1
    heads = config.heads + config.kv_heads
    norms = 2 * (norm * d + 4) + config.normed * (norm * (q + kv) + 4 * heads)
    # Input of the projections; queries, keys and values; input of `out`.
    attention = 2 * (d + q + 2 * kv + q)
    weights = config.heads * (4 if fused else 2 * context)
    # Input of gate and up; gate, its SiLU, up, and input of `down`.
    # Of experts also the router's input, and a result.
    expert = 2 * (d + 4 * hidden + d * routed) + 28 * routed
    return norms + attention + weights + config.active * expert + 2 * d * routed


def cache_bytes(config: Config, tokens: int, width: int = 2) -> int:
    """Bytes of the KV cache of one sequence, in all layers; `tokens`: how many are in it, `width`: bytes of an element.

    Only the tokens of the window are kept.
    """
    kept = min(tokens, config.window)
    return 2 * config.layers * config.kv_width * kept * width
