"""What a Transformer costs, from its configuration alone: parameters, FLOPs, activations, KV cache.

Nothing here knows PyTorch, so nothing here can peep: lecture 03 holds every formula against a model in `block.py`.
Counts are whole numbers; sizes are bytes.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """The numbers that a model's shapes follow from."""

    layers: int
    width: int
    heads: int       # of queries
    kv_heads: int    # of keys and values: as many, or fewer
    hidden: int      # the width inside the feed-forward part
    vocabulary: int
    context: int     # tokens of the longest sequence
    tied: bool = False  # whether the head's matrix is the embedding's
    bias: bool = False  # whether queries, keys and values have one, as in Qwen

    def __post_init__(self) -> None:
        """Heads divide the width, and heads of keys those of queries, or there is no such model."""
        width, heads, keys = self.width, self.heads, self.kv_heads
        if width % heads:
            raise ValueError(
                f"a width of {width} is no multiple of {heads} heads")
        if heads % keys:
            raise ValueError(
                f"{heads} heads are no multiple of {keys} heads of keys")

    @property
    def head(self) -> int:
        """Numbers in one query, key or value."""
        return self.width // self.heads

    @property
    def kv_width(self) -> int:
        """Numbers in all keys of one token, and in all its values."""
        return self.kv_heads * self.head


def matrices(config: Config) -> dict[str, tuple[int, int]]:
    """Rows and columns of each matrix of one block; a token's numbers go in by the rows."""
    d, kv, h = config.width, config.kv_width, config.hidden
    return {
        "query": (d, d), "key": (d, kv), "value": (d, kv), "out": (d, d),
        "gate": (d, h), "up": (d, h), "down": (h, d),
    }


def block_weights(config: Config) -> int:
    """Weights in the matrices of one block."""
    return sum(rows * cols for rows, cols in matrices(config).values())


def parameter_count(config: Config) -> int:
    """All parameters: matrices and gains of the blocks, the last gain, embedding and head."""
    d = config.width
    biases = (d + 2 * config.kv_width) * config.bias
    tables = config.vocabulary * d * (2 - config.tied)
    return config.layers * (block_weights(config) + 2 * d + biases) + d + tables


def attention_flops(config: Config, tokens: int, context: int) -> int:
    """FLOPs of scores and weighted sums in all layers where each token is scored against `context` others."""
    return config.layers * 2 * (2 * tokens * context * config.width)


def forward_flops(config: Config, tokens: int, context: int) -> int:
    """FLOPs of a forward pass: two per weight and token, the head included, and attention."""
    blocks = config.layers * block_weights(config)
    head = config.vocabulary * config.width
    pairs = attention_flops(config, tokens, context)
    return 2 * tokens * (blocks + head) + pairs


def activation_bytes(
    config: Config, context: int, *, fused: bool = True, norm: int = 2
) -> int:
    """Bytes that one block keeps for the backward pass, for each token, in bfloat16.

    Each norm keeps its input, `norm` bytes a number, and one float32 a token: 2 bytes in a kernel of its own, 8 where
    PyTorch writes it out in float32. Fused attention keeps a float32 for each head, written-out attention a weight
    for each head and each of the `context` tokens.
    """
    d, kv, hidden = config.width, config.kv_width, config.hidden
    norms = 2 * (norm * d + 4)
    # Inputs: of the projections, of `out`, of gate and up, of `down`.
    inputs = 2 * (d + d + d + hidden)
    # Queries, keys, values; gate, its SiLU, and up.
    products = 2 * (d + 2 * kv + 3 * hidden)
    weights = config.heads * (4 if fused else 2 * context)
    return norms + inputs + products + weights


def cache_bytes(config: Config, tokens: int, width: int = 2) -> int:
    """Bytes of the keys and values of `tokens` tokens in all layers, `width` bytes a number."""
    return 2 * config.layers * config.kv_width * tokens * width
