"""Lecture 91: what a model costs, in the words that litbook and edtrace have in common."""

from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn

from litbook import note


def main() -> None:
    note("A lecture for comparison: tensors, views, products, gradients, and a training loop.")
    bytes_are_counts_times_widths()
    a_view_shares_memory()
    a_product_costs_two_operations_per_term()
    gradients_have_the_shape_of_their_parameters()
    adam_keeps_two_numbers_per_parameter()
    a_small_model_learns()
    a_product_takes_time()


def bytes_are_counts_times_widths() -> None:
    """A tensor costs its element count times its element width."""
    torch.manual_seed(0)
    note("A small matrix in `float32`, then in `bfloat16`:")
    x = torch.randn(64, 64)  # @inspect x, x.shape, x.dtype
    size = x.numel() * x.element_size()  # @inspect size
    assert size == 4 * 64 * 64, "four bytes each"
    y = x.bfloat16()  # @inspect y
    half = y.numel() * y.element_size()  # @inspect half
    assert half == size // 2, "half as much"
    note("The widths of some types:")
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8):
        width = torch.empty(1, dtype=dtype).element_size()  # @inspect dtype width
        assert width in (1, 2, 4, 8)


def a_view_shares_memory() -> None:
    """A view rewrites strides over the same storage."""
    x = torch.arange(24.0).reshape(4, 6)  # @inspect x
    t = x.T  # @inspect t
    note("Transposing moves nothing: what is written through one name is read through the other.")
    t[0, 0] = 100.0
    assert x[0, 0].item() == 100.0, "the same memory"
    strides = t.stride()  # @inspect strides
    assert strides == (1, 6)
    flat = t.reshape(-1)  # @inspect flat
    copied = flat.data_ptr() != x.data_ptr()  # @inspect copied
    assert copied, "this one had to copy"
    row = x[1]  # @inspect row
    column = x[:, 1]  # @inspect column
    assert row.is_contiguous()
    assert not column.is_contiguous(), "a column is spread out"


def operations(rows: int, inner: int, columns: int) -> int:
    """FLOPs of one product: a multiplication and an addition per term."""
    terms = rows * inner * columns
    return 2 * terms


def a_product_costs_two_operations_per_term() -> None:
    """A product of matrices costs twice the product of its three lengths."""
    torch.manual_seed(0)
    a = torch.randn(32, 48)
    b = torch.randn(48, 16)
    c = a @ b  # @inspect c
    cost = operations(32, 48, 16)  # @inspect cost
    assert cost == 2 * a.numel() * 16
    by_hand = 0.0
    for k in range(48):
        by_hand += a[0, k].item() * b[k, 0].item()  # @inspect by_hand
    assert abs(by_hand - c[0, 0].item()) < 1e-3, "one entry, term by term"


def gradients_have_the_shape_of_their_parameters() -> None:
    """A gradient is as large as what it is the gradient of."""
    torch.manual_seed(0)
    x = torch.randn(8, 16)
    w = torch.randn(16, 4, requires_grad=True)  # @inspect w
    loss = (x @ w).pow(2).mean()  # @inspect loss
    loss.backward()
    assert w.grad is not None
    assert w.grad.shape == w.shape
    gradient = w.grad  # @inspect gradient
    expected = 2 * x.T @ (x @ w.detach()) / (8 * 4)
    assert torch.allclose(gradient, expected, atol=1e-5), "by the rule of the chain"


def adam_keeps_two_numbers_per_parameter() -> None:
    """Adam keeps two numbers for each parameter."""
    model = nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.randn(4, 64)).sum().backward()
    optimizer.step()
    kept = 0
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, Tensor) and value.ndim > 0:
                kept += value.numel()  # @inspect kept
    assert kept == 2 * sum(p.numel() for p in model.parameters())


class Model(nn.Module):
    """Two layers and a nonlinearity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(16, width)
        self.second = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.first(x))
        y: Tensor = self.second(hidden)
        return y


def a_small_model_learns() -> None:
    """A loss falls while a model is trained."""
    torch.manual_seed(0)
    inputs = torch.randn(256, 16)
    targets = inputs.sum(1, keepdim=True).sin()
    model = Model(128)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    first = nn.functional.mse_loss(model(inputs), targets).item()  # @inspect first
    for _ in range(200):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = loss.item()  # @inspect now
    assert now < first / 2, "it has learned"


def a_product_takes_time() -> None:
    """The time of a product of matrices, measured inside the lecture."""
    torch.manual_seed(0)
    a = torch.randn(512, 512)
    b = torch.randn(512, 512)
    times = []
    for _ in range(40):
        start = perf_counter()
        a @ b
        times.append(perf_counter() - start)
    middle = median(times)
    assert middle > 0
    note("A rate is an amount of work divided by this time; how large it is depends on the machine.")


if __name__ == "__main__":
    main()
