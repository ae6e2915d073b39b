"""A Transformer of today: RMSNorm, rotary embedding, grouped-query attention, SwiGLU.

Axes: b sequences, t tokens, s tokens that are looked at, d the width, h heads, g KV heads, c elements in a head. `counts.py` says what all of it costs.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from .counts import ALL, Config

How = Literal["written", "fused"]
Turns = Float[Tensor, "2 t half"]  # cosines and sines


class RMSNorm(nn.Module):
    """A norm: divides each token's elements by their root mean square, and multiplies each by its learned gain."""

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        return F.rms_norm(x, self.gain.shape, self.gain, self.eps)


def turns(
    head: int, tokens: int, start: int = 0, base: float = 10_000.0,
    like: Tensor | None = None,
) -> Turns:
    """Cosines and sines of the angles of rotary embedding, for `tokens` positions, from `start` on.

    Device and dtype are those of `like`; the angles themselves are float32.
    """
    where = None if like is None else like.device
    speeds = base ** -(torch.arange(0, head, 2, device=where) / head)
    places = torch.arange(start, start + tokens, device=where)
    angles = torch.outer(places, speeds)
    both = torch.stack([angles.cos(), angles.sin()])
    return both if like is None else both.to(like.dtype)


def rotate(
    x: Float[Tensor, "b t h c"], turn: Turns
) -> Float[Tensor, "b t h c"]:
    """Rotates each query or key in `x` by the angles of its position; the result has the shape of `x`.

    The first half of each head holds x coordinates, and the second half y coordinates.
    """
    cos, sin = rearrange(turn, "two t half -> two t 1 half")
    along, across = x.chunk(2, dim=-1)
    both = along * cos - across * sin, across * cos + along * sin
    return torch.cat(both, dim=-1)


class Cache:
    """The KV cache of one layer: the keys and values of all tokens so far, with room for a full sequence."""

    def __init__(self, config: Config, batch: int, like: Tensor) -> None:
        shape = 2, batch, config.context, config.kv_heads, config.head
        self.memory = like.new_empty(shape)
        self.length = 0  # tokens so far

    def extended(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Adds keys `k` and values `v` of new tokens, and returns the keys and values of all tokens so far."""
        start, self.length = self.length, self.length + k.shape[1]
        self.memory[:, :, start:self.length] = torch.stack([k, v])
        keys, values = self.memory[:, :, :self.length]
        return keys, values


def written_attention(
    q: Float[Tensor, "b t h c"],
    k: Float[Tensor, "b s g c"],
    v: Float[Tensor, "b s g c"],
    window: int = ALL,
) -> Float[Tensor, "b t h c"]:
    """Unfused causal attention, in separate operations: for each query, the weighted sum of the values that it may attend to.

    The last query may attend to the last `window` keys, the query before it to the keys one position earlier, and so on.
    """
    t, s, g = q.shape[1], k.shape[1], k.shape[2]
    q = rearrange(q, "b t (g r) c -> b g r t c", g=g)
    scores = einsum(q, k, "b g r t c, b s g c -> b g r t s")
    scores = scores / math.sqrt(q.shape[-1])
    later = scores.new_full((t, s), -torch.inf).triu(s - t + 1)
    if window < s:
        later = later + scores.new_full((t, s), -torch.inf).tril(s - t - window)
    weights = (scores + later).softmax(dim=-1)
    mixed = einsum(weights, v, "b g r t s, b s g c -> b g r t c")
    return rearrange(mixed, "b g r t c -> b t (g r) c")


def fused_attention(
    q: Float[Tensor, "b t h c"],
    k: Float[Tensor, "b s g c"],
    v: Float[Tensor, "b s g c"],
    window: int = ALL,
) -> Float[Tensor, "b t h c"]:
    """Fused causal attention, in one call that never stores all scores; the result is the same as in `written_attention`."""
    t, s, shared = q.shape[1], k.shape[1], q.shape[2] > k.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    causal, seen = t == s > 1, None
    if 1 < t < s or window < s:
        causal, seen = False, q.new_ones(t, s, dtype=torch.bool).tril(s - t)
        seen = seen.triu(s - t - window + 1)
    mixed = F.scaled_dot_product_attention(
        q, k, v, seen, is_causal=causal, enable_gqa=shared
    )
    return mixed.transpose(1, 2)


class Attention(nn.Module):
    """Attention of one block: the query, key, value and output matrices, and between them scores and weighted sums."""

    def __init__(self, config: Config, how: How) -> None:
        super().__init__()
        d, kv, q = config.width, config.kv_width, config.query_width
        self.query = nn.Linear(d, q, bias=config.bias)
        self.key = nn.Linear(d, kv, bias=config.bias)
        self.value = nn.Linear(d, kv, bias=config.bias)
        self.out = nn.Linear(q, d, bias=False)
        self.head = config.head
        norms = (
            RMSNorm(config.head) if config.normed else nn.Identity()
            for _ in range(2))
        self.query_norm, self.key_norm = norms
        attend = written_attention if how == "written" else fused_attention
        self.attend = partial(attend, window=config.window)

    def forward(
        self, x: Float[Tensor, "b t d"], turn: Turns, cache: Cache | None = None
    ) -> Float[Tensor, "b t d"]:
        made = self.query(x), self.key(x), self.value(x)
        split, c = "b t (h c) -> b t h c", self.head
        q, k, v = (rearrange(y, split, c=c) for y in made)
        q, k = rotate(self.query_norm(q), turn), rotate(self.key_norm(k), turn)
        if cache is not None:
            k, v = cache.extended(k, v)
        mixed = rearrange(self.attend(q, k, v), "b t h c -> b t (h c)")
        y: Tensor = self.out(mixed)
        return y


class SwiGLU(nn.Module):
    """The feed-forward part of one block: multiplies SiLU of gate by up, and turns the product back into d elements."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        y: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return y


class Experts(nn.Module):
    """Several feed-forward parts; each token goes through only the few that a router chooses for it."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.router = nn.Linear(config.width, config.experts, bias=False)
        several = (SwiGLU(config) for _ in range(config.experts))
        self.experts = nn.ModuleList(several)
        self.active = config.active

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        flat = x.flatten(0, 1)
        scores, chosen = self.router(flat).topk(self.active)
        shares = scores.softmax(dim=-1)
        y = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, place = (chosen == i).nonzero(as_tuple=True)
            result = expert(flat[token]) * shares[token, place, None]
            y.index_put_((token,), result, accumulate=True)
        return y.view_as(x)


class Block(nn.Module):
    """One block of a Transformer: adds attention and then the feed-forward part to its input, of d elements per token."""

    def __init__(self, config: Config, how: How = "fused") -> None:
        super().__init__()
        self.before_attention = RMSNorm(config.width)
        self.attention = Attention(config, how)
        self.before_feed_forward = RMSNorm(config.width)
        kind = Experts if config.experts > 1 else SwiGLU
        self.feed_forward = kind(config)

    def forward(
        self, x: Float[Tensor, "b t d"], turn: Turns, cache: Cache | None = None
    ) -> Float[Tensor, "b t d"]:
        x = x + self.attention(self.before_attention(x), turn, cache)
        x = x + self.feed_forward(self.before_feed_forward(x))
        return x


class Transformer(nn.Module):
    """A language model: for each token of a sequence, a logit for each token of the vocabulary."""

    def __init__(self, config: Config, how: How = "fused") -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        blocks = (Block(config, how) for _ in range(config.layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        for p in self.parameters():
            if p.dim() == 2 and not p.is_meta:  # there is nothing to draw
                nn.init.normal_(p, std=0.02)
        if config.tied:
            self.head.weight = self.embedding.weight

    def caches(self, batch: int) -> list[Cache]:
        """An empty KV cache for each layer, with room for `batch` sequences."""
        like = self.embedding.weight
        return [Cache(self.config, batch, like) for _ in self.blocks]

    def forward(
        self, tokens: Int[Tensor, "b t"], caches: Sequence[Cache] | None = None
    ) -> Float[Tensor, "b t vocabulary"]:
        x: Tensor = self.embedding(tokens)
        start = caches[0].length if caches else 0
        turn = turns(self.config.head, tokens.shape[1], start, like=x)
        for i, block in enumerate(self.blocks):
            x = block(x, turn, caches[i] if caches else None)
        logits: Tensor = self.head(self.norm(x))
        return logits
