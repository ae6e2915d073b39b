"""Counting what a call does: its FLOPs, and the bytes that it keeps for a backward pass.

Both counts are PyTorch's own: `FlopCounterMode` knows formulas for products, convolutions and attention, and
`saved_tensors_hooks` is shown every tensor that autograd puts aside. Neither is shown the formula that it is to check.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode


def flops_by_operation(call: Callable[[], object]) -> dict[str, int]:
    """FLOPs that PyTorch's counter attributes to each operation of the call."""
    with FlopCounterMode(display=False) as counter:
        call()
    counts = counter.get_flop_counts().get("Global", {})
    return {str(operation): count for operation, count in counts.items()}


def flops(call: Callable[[], object]) -> int:
    """All FLOPs that PyTorch's counter sees in the call."""
    return sum(flops_by_operation(call).values())


def saved_bytes_of(
    forward: Callable[[], Tensor], given: Iterable[Tensor] = ()
) -> int:
    """Bytes that autograd keeps for the backward pass, each storage once, without the `given`."""
    kept: dict[int, int] = {}

    def keep(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with saved_tensors_hooks(keep, lambda t: t):
        loss = forward()
    known = {t.untyped_storage().data_ptr() for t in given}
    del loss  # it kept the graph, and with it the storages, alive until here
    return sum(size for place, size in kept.items() if place not in known)
