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
    bias: bool = False  # whether queries, keys and values have one, as in Qwen's models

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
    tables = config.vocabulary * d * (1 if config.tied else 2)
    return config.layers * (block_weights(config) + 2 * d + biases) + d + tables


def attention_flops(config: Config, tokens: int, context: int) -> int:
    """FLOPs of scores and weighted sums in all layers where each token is scored against `context` others."""
    return config.layers * 2 * (2 * tokens * context * config.width)


def forward_flops(config: Config, tokens: int, context: int) -> int:
    """FLOPs of a forward pass: two per weight and token, the head included, and attention."""
    weights = config.layers * block_weights(config) + config.vocabulary * config.width
    return 2 * tokens * weights + attention_flops(config, tokens, context)


def cache_bytes(config: Config, tokens: int, width: int = 2) -> int:
    """Bytes of the keys and values of `tokens` tokens in all layers, `width` bytes a number."""
    return 2 * config.layers * config.kv_width * tokens * width
