"""The models that several parts use, with their data and their optimizers."""
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn


def whole_numbers(*shape: int) -> Tensor:
    """A float32 tensor of random whole numbers from -9 to 9, so small that sums and products are exact."""
    return torch.randint(-9, 10, shape).float()


class Decoder(nn.Module):
    """A small language model, with its matmuls only: no masks, biases or normalizations."""

    def __init__(self, vocab: int, d: int, heads: int, layers: int) -> None:
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({
                "qkv": nn.Linear(d, 3 * d, bias=False),
                "out": nn.Linear(d, d, bias=False),
                "up": nn.Linear(d, 4 * d, bias=False),
                "down": nn.Linear(4 * d, d, bias=False),
            })
            for _ in range(layers)
        )
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            assert isinstance(block, nn.ModuleDict)
            split, h = "b t (n h c) -> n b h t c", self.heads
            q, k, v = rearrange(block["qkv"](x), split, n=3, h=h)
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            mixed = scores.softmax(dim=-1) @ v
            x = x + block["out"](rearrange(mixed, "b h t c -> b t (h c)"))
            x = x + block["down"](F.gelu(block["up"](x)))
        logits: Tensor = self.head(x)
        return logits


class Stack(nn.Module):
    """Layers of square weight matrices without biases, and a last one with one output."""

    def __init__(
        self,
        width: int,
        layers: int,
        generator: torch.Generator | None = None,
        between: nn.Module | None = None,
    ) -> None:
        super().__init__()
        shapes = [(width, width)] * layers + [(width, 1)]
        drawn = [torch.randn(size, generator=generator) for size in shapes]
        self.weights = nn.ParameterList([w / width**0.5 for w in drawn])
        self.between = nn.Identity() if between is None else between

    def forward(self, x: Float[Tensor, "batch width"]) -> Tensor:
        *hidden, head = self.weights
        for w in hidden:
            x = self.between(x @ w)
        y: Tensor = (x @ head).squeeze(-1)
        return y


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "AdaGrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "RMSProp": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def linear_batch(
    width: int, batch: int, generator: torch.Generator | None = None
) -> tuple[Float[Tensor, "batch width"], Float[Tensor, "batch"]]:
    """Random inputs (batch, width), and as targets their products with the weights 0, 1, 2, …."""
    x = torch.randn(batch, width, generator=generator)
    return x, x @ torch.arange(float(width))
