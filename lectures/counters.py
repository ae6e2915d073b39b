"""Counting what a call does: its FLOPs, the bytes that it keeps for a backward pass, and those alive at once.

The counts are PyTorch's own: `FlopCounterMode` knows formulas for products, convolutions and attention,
`saved_tensors_hooks` is shown every tensor that autograd puts aside, and a dispatch mode sees every operation. None is
shown the formula that it is to check.
"""

from collections.abc import Callable, Iterable
from typing import Any, Self

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode


def flops_by_operation(call: Callable[[], object]) -> dict[str, int]:
    """Runs `call` and returns a dictionary: for the name of each operation, its FLOPs as PyTorch counts them."""
    with FlopCounterMode(display=False) as counter:
        call()
    counts = counter.get_flop_counts().get("Global", {})
    return {str(operation): count for operation, count in counts.items()}


def flops(call: Callable[[], object]) -> int:
    """Runs `call` and returns the FLOPs of all its operations together, as PyTorch counts them."""
    return sum(flops_by_operation(call).values())


def saved_bytes_of(
    forward: Callable[[], Tensor], given: Iterable[Tensor] = ()
) -> int:
    """Runs `forward` and returns the bytes that autograd keeps for the backward pass, not counting the tensors `given`."""
    kept: dict[int, int] = {}

    def keep(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with saved_tensors_hooks(keep, lambda t: t):
        loss = forward()
    known = {t.untyped_storage().data_ptr() for t in given}
    del loss  # it kept the graph, and with it the storages, alive until here
    return sum(size for place, size in kept.items() if place not in known)


def tensors_in(tree: Any) -> list[Tensor]:
    """Returns the list of all tensors in `tree`: nested lists, tuples and dictionaries."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


class Watching(TorchDispatchMode):
    """A context manager whose method `see` is called for every PyTorch operation inside the `with` block."""

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        """Notes what is to be noted of one operation; here nothing."""

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        self.see(func, args, kwargs or {}, made)
        return made


class Alive(Watching):
    """A context manager; `most` is the peak number of bytes that tensors made inside the `with` block held at one time."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[int, tuple[StorageWeakRef, int]] = {}
        self.most = 0  # bytes

    def see(self, operation: Any, args: Any, kwargs: Any, made: Any) -> None:
        given = {t.untyped_storage()._cdata for t in tensors_in((args, kwargs))}
        for storage in (t.untyped_storage() for t in tensors_in(made)):
            if storage._cdata not in given:
                entry = StorageWeakRef(storage), storage.nbytes()
                self.made[storage._cdata] = entry
        there = self.made.items()
        self.made = {at: it for at, it in there if not it[0].expired()}
        alive = sum(size for _, size in self.made.values())
        self.most = max(self.most, alive)
