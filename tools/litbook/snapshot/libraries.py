"""Torch and numpy: looked up in `sys.modules`, never imported, and called so that nobody notices.

This module knows which of torch's onlookers there are (modes, autograd, functorch, autocast, the profiler,
the tracer) and how each is kept out. It does not know what is read meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from litbook.snapshot.safe_types import MRO, NAMESPACE


class Torch:
    """What snapshots need of torch, taken from the C base class, which subclasses cannot override."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.c = module._C
        self.base = module._C.TensorBase
        self.Tensor = module.Tensor
        self.Module = module.nn.Module
        self.shape = self.base.shape.__get__
        self.dtype = self.base.dtype.__get__
        self.device = self.base.device.__get__
        self.layout = self.base.layout.__get__
        self.requires_grad = self.base.requires_grad.__get__
        self.is_quantized = self.base.is_quantized.__get__
        # Each excludes one kind of onlooker: __torch_function__ and its modes; dispatch modes such as
        # FlopCounterMode; autograd, with its hooks and version counters; functorch; autocast.
        guards = "DisableTorchFunction _DisableTorchDispatch _AutoDispatchBelowAutograd"
        guards += " _DisableFuncTorch _DisableAutocast"
        self._guards = [getattr(self.c, guard, nullcontext) for guard in guards.split()]

    @contextmanager
    def without_observers(self) -> Iterator[None]:
        """Operations in here are seen by no mode, hook, profiler, tracer or autograd graph."""
        function, dispatch, autograd, functorch, autocast = self._guards
        with self._without_profiler(), function(), dispatch(), autograd(), functorch(), autocast():
            tracing = self.c._get_tracing_state()
            self.c._set_tracing_state(None)
            try:
                yield
            finally:
                self.c._set_tracing_state(tracing)

    @contextmanager
    def without_modes(self) -> Iterator[None]:
        """For foreign code, which needs working dispatch: no modes and no graph, all else as ever."""
        modes: Any = nullcontext
        if self.c._len_torch_dispatch_stack():
            modes = sys.modules["torch.utils._python_dispatch"]._disable_current_modes
        function, _, _, _, autocast = self._guards
        with self._without_profiler(), function(), autocast(), self.module.no_grad(), modes():
            yield

    @contextmanager
    def _without_profiler(self) -> Iterator[None]:
        """The profiler would list these operations among the lecture's."""
        profiled = getattr(self.module.autograd.profiler, "_is_profiler_enabled", False)
        if profiled:
            self.c._autograd._enable_record_function(False)
        try:
            yield
        finally:
            if profiled:
                self.c._autograd._enable_record_function(True)

    def is_plain(self, kind: type) -> bool:
        """Whether no Python code stands between a tensor of this type and its metadata."""
        if kind is self.Tensor:
            return True
        owner = next((b for b in MRO(kind) if "__torch_dispatch__" in NAMESPACE(b)), self.base)
        if owner is self.Tensor or owner is self.base:
            return True
        dispatch = NAMESPACE(owner)["__torch_dispatch__"]
        return getattr(dispatch, "__func__", dispatch) is self.c._disabled_torch_dispatch_impl


_found: Torch | None = None


def torch() -> Torch | None:
    """Torch, if the lecture has imported it, whole."""
    global _found
    module = sys.modules.get("torch")
    if module is None:
        return None
    if _found is None or _found.module is not module:
        try:
            _found = Torch(module)
        except AttributeError:  # half imported, or something else of that name
            return None
    return _found


def numpy() -> Any:
    """The module numpy, if the lecture has imported it, whole; else None."""
    module = sys.modules.get("numpy")
    return module if hasattr(module, "ndarray") and hasattr(module, "generic") else None


def is_array(kind: type) -> bool:
    """Whether `kind` is numpy's array or a subclass of it."""
    module = numpy()
    return module is not None and issubclass(kind, module.ndarray)


def is_masked(kind: type) -> bool:
    """Whether arrays of this kind have elements that do not count: what lies in memory there is no value."""
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return isinstance(masked, type) and issubclass(kind, masked)


def array_memory(array: Any) -> tuple[int, int]:
    """Address and bytes of an array, read with numpy's own methods."""
    base = numpy().ndarray
    return base.__array_interface__.__get__(array)["data"][0], base.nbytes.__get__(array)
