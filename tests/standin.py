"""A STAND-IN for a GPU, for tests on machines that have none. No number that it gives describes any real card.

Real are PyTorch's own operations: values, dtypes, shapes, gradients, optimizers, all on the CPU. Imitated are

    placement   a tensor is on `cuda:0` if its storage was put there; operations refuse to mix two devices
    memory      blocks of 512 bytes, a cache that `empty_cache` hands back, peaks, `torch.OutOfMemoryError`
    time        a clock for the host and one for each stream, which advance by what an operation would take on
                `Card`; launches return at once, pageable copies wait, pinned ones do not, events read the clock
    FP8         `torch._scaled_mm` and `F.scaled_mm` with the rules of their CUDA version
    graphs      what is captured takes its time when it is replayed, and one launch for all of it; a capture
                refuses what waits for the card, what asks it, and what sets up a library
    compiling   `torch.compile` gives back what it was given, so nothing is fused
    snapshots   litbook asks a tensor's C base class where it is, beneath every mode; there the answer is imitated

With `data=False` tensors of the card have no values (they are on the meta device), so that a lecture can be run
at the sizes of a large card; what is read back from there is zero, and comparisons of such tensors are true.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from litbook.snapshot import libraries

MiB = 2**20
BLOCK = 512  # bytes
CUDA = torch.device("cuda", 0)
IS_CUDA, IS_CPU = (vars(torch._C.TensorBase)[name].__get__ for name in ("is_cuda", "is_cpu"))
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


@dataclass
class Card:
    """The imitated card: what it is called, what it holds, and how fast its clock says it is."""

    name: str = "NVIDIA H200"
    memory: int = 512 * MiB
    context: int = 8 * MiB  # what the driver keeps for itself
    capability: tuple[int, int] = (9, 0)
    bandwidth: float = 4.3e12  # bytes per second
    link: float = 50e9  # of pinned copies; pageable ones get a quarter
    launch: float = 5e-6  # seconds of the host for each operation
    tick: float = (
        1e-7  # seconds of the host for a look at its clock; with large ones a warm-up takes few calls
    )
    setup: float = 0.05  # seconds of the host for the first product in each format
    rates: dict[str, float] = field(
        default_factory=lambda: {"float32": 52e12, "tf32": 400e12, "16": 750e12, "8": 1300e12}
    )
    cache: int = 4 * MiB
    count: int = 1
    data: bool = True  # whether tensors have values
    events: bool = True  # whether the driver has events


class _Stream:
    """One queue of work: `at` is when all of it will be done."""

    def __init__(self, state: _State) -> None:
        self.state, self.at = state, 0.0

    def wait_stream(self, other: _Stream) -> None:
        self.at = max(self.at, other.at)

    def wait_event(self, event: Any) -> None:
        self.at = max(self.at, event.at)

    def synchronize(self) -> None:
        self.state.host = max(self.state.host, self.at)

    def is_capturing(self) -> bool:
        return self.state.capturing is not None


class _State:
    """Everything that the stand-in keeps about its card."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.host = 1000.0
        self.main = _Stream(self)
        self.current = self.main
        self.streams = [self.main]
        self.blocks: dict[int, tuple[StorageWeakRef, int]] = {}
        self.pinned: dict[int, StorageWeakRef] = {}
        self.reserved = self.peak = 0
        self.total = 0  # bytes of the blocks, those included whose end has not been noticed yet
        self.destination: str | None = None  # where what is made now goes: "card", "cpu", or with its inputs
        self.ready: set[str] = set()  # formats whose kernels are loaded
        self.capturing: _Graph | None = None  # what operations go into instead of the stream
        self.backing = "cpu" if card.data else "meta"
        self.narrow: torch.dtype | None = (
            None  # what autocast narrows to; PyTorch's own passes over meta tensors
        )

    # -- memory

    def holds(self, tensor: torch.Tensor) -> bool:
        key = tensor.untyped_storage()._cdata
        return key in self.blocks and not self.blocks[key][0].expired()

    def put(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        if self.holds(tensor):
            return
        size = -(-storage.nbytes() // BLOCK) * BLOCK
        most = self.card.memory - self.card.context
        if self.total + size > min(self.peak, self.reserved, most):  # else nothing below can change
            self.allocated()
        if self.total + size > most:
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {size / MiB:.2f} MiB. GPU 0 has a total capacity of "
                f"{self.card.memory / MiB:.2f} MiB (stand-in)"
            )
        self.blocks[storage._cdata] = StorageWeakRef(storage), size
        self.total += size
        self.reserved, self.peak = max(self.reserved, self.total), max(self.peak, self.total)

    def allocated(self) -> int:
        for key in [k for k, (ref, _) in self.blocks.items() if ref.expired()]:
            del self.blocks[key]
        self.total = sum(size for _, size in self.blocks.values())
        return self.total

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        ref = self.pinned.get(tensor.untyped_storage()._cdata)
        return ref is not None and not ref.expired()

    # -- time

    def spend(self, seconds: float) -> None:
        """One operation on the card: the host launches it, the stream does it when its turn comes."""
        if self.capturing is not None:
            self.capturing.seconds += max(1e-6, seconds)
            return
        self.host += self.card.launch
        self.current.at = max(self.current.at, self.host) + max(2e-6, seconds)

    def refuse(self, what: str) -> None:
        """What a program may not do while it captures a graph: a card that captures does not work."""
        if self.capturing is not None:
            raise RuntimeError(
                f"CUDA error: operation not permitted when stream is capturing (stand-in, in {what})"
            )

    def wait(self) -> None:
        self.refuse("a wait for the card")
        self.host = max([self.host, *(stream.at for stream in self.streams)])

    def now(self) -> float:
        self.host += self.card.tick
        return self.host

    def sleep(self, seconds: float) -> None:
        self.host += seconds

    def rate(self, tensor: torch.Tensor) -> tuple[str, float]:
        name = {4: "float32", 2: "16", 1: "8"}.get(tensor.element_size(), "float32")
        if name == "float32" and torch.get_float32_matmul_precision() != "highest":
            name = "tf32"
        return name, self.card.rates[name]


PRODUCTS = {"mm", "bmm", "addmm", "_scaled_mm", "baddbmm"}
CROSSING = {"copy_", "_to_copy", "set_", "detach", "index"}


class _Operations(TorchDispatchMode):
    """Below autograd: where results lie, what mixes devices, and what each operation takes."""

    def __init__(self, state: _State) -> None:
        super().__init__()
        self.state = state

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        state, name = self.state, func.overloadpacket.__name__
        given = [t for t in tree_leaves((args, kwargs or {})) if isinstance(t, torch.Tensor)]
        here = [t for t in given if state.holds(t)]
        wanted = state.destination
        if wanted is None and here and name not in CROSSING:
            other = [t for t in given if t.dim() and not state.holds(t)]
            if other:
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two devices, "
                    f"cuda:0 and cpu! (stand-in, in {func})"
                )
        if here and name in ("_local_scalar_dense", "equal", "allclose"):
            state.wait()
            if not state.card.data:
                return name != "_local_scalar_dense" or 0.0
        out = func(*args, **(kwargs or {}))
        made = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        if wanted == "card" or (wanted is None and here):
            for tensor in made:
                state.put(tensor)
        if here or wanted == "card":
            self._spend(name, given, made)
        else:
            state.host += 1e-7 + sum(t.nbytes for t in made) / 20e9
        return out

    def _spend(self, name: str, given: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        state = self.state
        views = {t.untyped_storage()._cdata for t in given}
        if made and all(t.untyped_storage()._cdata in views for t in made) and not name.endswith("_"):
            return  # a view costs the host a moment, and the card nothing
        seconds = sum(t.nbytes for t in [*given, *made]) / state.card.bandwidth
        if name in PRODUCTS:
            a, b = [t for t in given if t.dim() >= 2][:2]
            form, rate = state.rate(a)
            if form not in state.ready:
                state.refuse("the first product of its format, which sets up a library")
                state.ready.add(form)
                state.host += state.card.setup
            seconds = max(seconds, 2 * a.numel() * b.shape[-1] / rate)
        state.spend(seconds)


class _Calls(TorchFunctionMode):
    """Above autograd: devices as a program names them."""

    def __init__(self, state: _State) -> None:
        super().__init__()
        self.state = state

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        state, kwargs = self.state, dict(kwargs or {})
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if func == torch.Tensor.device.__get__:
            return CUDA if state.holds(args[0]) else func(*args)
        if func == IS_CUDA:
            return state.holds(args[0])
        if func == IS_CPU:
            return not state.holds(args[0]) and func(*args)
        if first is not None and func in MOVES:
            return MOVES[func](self, first, *args[1:], **kwargs)
        if state.narrow is not None and func in NARROWED:
            args = [self.to(t, state.narrow) if t.is_floating_point() else t for t in args]
        if func is torch.allclose and not state.card.data:
            return True
        if func is torch._scaled_mm:
            return self._scaled_mm(*args, **kwargs)
        if func is torch._scaled_mm_v2:
            a, b, (scale_a,), (recipe_a,), _, (scale_b,), (recipe_b,), _, _, dtype, *_ = args
            assert recipe_a == recipe_b == 0, "the stand-in knows a scale for each tensor only"
            return self._scaled_mm(a, b, scale_a, scale_b, out_dtype=dtype)
        if func is torch.nn.functional.scaled_dot_product_attention and first is not None:
            assert all(state.holds(t) == state.holds(first) for t in args[:3]), "one device for attention"
            with self._going("card" if state.holds(first) else None):  # as goes the mask that it makes
                return func(*args, **kwargs)
        if kwargs.get("device") is not None:
            return self._made(func, args, kwargs)
        return func(*args, **kwargs)

    def _made(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """A function that was told where its result goes."""
        device = torch.device(kwargs["device"])
        if device.type != "cuda":
            with self._going("cpu"):
                return func(*args, **kwargs)
        if device.index not in (None, *range(self.state.card.count)):
            raise RuntimeError("CUDA error: invalid device ordinal (stand-in)")
        with self._going("card"):
            out = func(*args, **{**kwargs, "device": self.state.backing})
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                self.state.put(tensor)
        return out

    @contextlib.contextmanager
    def _going(self, where: str | None) -> Iterator[None]:
        before, self.state.destination = self.state.destination, where
        try:
            yield
        finally:
            self.state.destination = before

    # -- moves

    def to(self, tensor: torch.Tensor, *args: Any, copy: bool = False, **kwargs: Any) -> torch.Tensor:
        """`Tensor.to` in all its spellings."""
        if args and isinstance(args[0], torch.Tensor):
            args = (args[0].device if not self.state.holds(args[0]) else CUDA, args[0].dtype, *args[1:])
        device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
        kept = tensor if dtype is None else tensor.to(dtype)
        if device is None or device.type == ("cuda" if self.state.holds(tensor) else tensor.device.type):
            return kept.clone() if copy and kept is tensor else kept
        if device.type == "cuda":
            return self._up(kept, non_blocking)
        return self._down(kept, device) if self.state.holds(kept) else kept.to(device)

    def _up(self, tensor: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        state = self.state
        quick = state.is_pinned(tensor)
        with self._going("card"):
            moved = tensor.clone() if state.card.data else tensor.to("meta")
        state.put(moved)
        state.spend(tensor.nbytes / (state.card.link if quick else state.card.link / 4))
        if not (quick and non_blocking):
            state.wait()
        return moved

    def _down(self, tensor: torch.Tensor, device: Any = "cpu") -> torch.Tensor:
        if not self.state.holds(tensor):
            return tensor
        self.state.spend(tensor.nbytes / self.state.card.link)
        self.state.wait()
        with self._going("cpu"):
            if self.state.card.data:
                return tensor.clone().to(device)
            return torch.zeros(tensor.shape, dtype=tensor.dtype, device=device)

    def cuda(self, tensor: torch.Tensor, device: Any = None, non_blocking: bool = False) -> torch.Tensor:
        return tensor if self.state.holds(tensor) else self._up(tensor, non_blocking)

    def pin_memory(self, tensor: torch.Tensor, device: Any = None) -> torch.Tensor:
        if self.state.holds(tensor):
            raise RuntimeError("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned")
        pinned = tensor.clone()
        self.state.pinned[pinned.untyped_storage()._cdata] = StorageWeakRef(pinned.untyped_storage())
        return pinned

    def is_pinned(self, tensor: torch.Tensor, device: Any = None) -> bool:
        return self.state.is_pinned(tensor)

    def numpy(self, tensor: torch.Tensor, **kwargs: Any) -> Any:
        if self.state.holds(tensor):
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() (stand-in)")
        return tensor.numpy(**kwargs)

    def tolist(self, tensor: torch.Tensor) -> Any:
        return self._down(tensor).tolist()

    # -- FP8

    def _scaled_mm(self, a: Any, b: Any, scale_a: Any, scale_b: Any, **kwargs: Any) -> torch.Tensor:
        """The product by its definition, after the rules of the CUDA version."""
        state = self.state
        assert state.card.capability >= (8, 9), "torch._scaled_mm needs capability 8.9 (stand-in)"
        assert all(state.holds(t) for t in (a, b, scale_a, scale_b)), "an operand is not on the card"
        assert {a.dtype, b.dtype} <= set(FLOAT8), "an operand is not FP8"
        assert {a.dtype, b.dtype} != {torch.float8_e5m2}, "cuBLAS multiplies no two E5M2 matrices"
        assert scale_a.dtype == scale_b.dtype == torch.float32, "scales are float32"
        assert a.is_contiguous() and b.t().is_contiguous(), "row-major times column-major"
        assert a.shape[1] % 16 == 0 and b.shape[1] % 16 == 0, "sizes are multiples of 16"
        dtype = kwargs.get("out_dtype") or a.dtype
        with self._going("cpu"):
            if state.card.data:
                out = ((a.float() * scale_a) @ (b.float() * scale_b)).to(dtype)
            else:
                out = torch.empty(a.shape[0], b.shape[1], dtype=dtype, device="meta")
        state.put(out)
        state.spend(2 * a.numel() * b.shape[1] / state.card.rates["8"])
        return out


NARROWED = {torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.nn.functional.linear}
MOVES: dict[Any, Callable[..., Any]] = {
    torch.Tensor.to: _Calls.to,
    torch.Tensor.cuda: _Calls.cuda,
    torch.Tensor.cpu: _Calls._down,
    torch.Tensor.pin_memory: _Calls.pin_memory,
    torch.Tensor.is_pinned: _Calls.is_pinned,
    torch.Tensor.numpy: _Calls.numpy,
    torch.Tensor.tolist: _Calls.tolist,
}


class _Graph:
    """Captured work: how long the stream takes for all of it."""

    def __init__(self, state: _State) -> None:
        self.state, self.seconds = state, 0.0

    def replay(self) -> None:
        self.state.spend(self.seconds)


class _Event:
    """A mark in a stream: `at` is when the work before it is done."""

    def __init__(self, state: _State, enable_timing: bool = False) -> None:
        if not state.card.events:
            raise RuntimeError("CUDA error: operation not supported (stand-in)")
        self.state, self.timing, self.at = state, enable_timing, -1.0

    def record(self, stream: _Stream | None = None) -> None:
        self.at = max((stream or self.state.current).at, self.state.host)

    def query(self) -> bool:
        self.state.refuse("event.query")
        return self.at <= self.state.host

    def synchronize(self) -> None:
        self.state.refuse("event.synchronize")
        self.state.host = max(self.state.host, self.at)

    def elapsed_time(self, end: _Event) -> float:
        assert self.timing and end.timing, "both events need enable_timing=True"
        assert self.query() and end.query(), "both events must have been reached: synchronize first"
        return (end.at - self.at) * 1000


def _cuda(state: _State) -> dict[str, Any]:
    """What stands for the names of `torch.cuda` meanwhile."""
    card = state.card

    def properties(device: Any = None) -> Any:
        index = torch.device("cuda", device).index if isinstance(device, int) else None
        if index is not None and index >= card.count:
            raise AssertionError("Invalid device id")
        return types.SimpleNamespace(
            name=card.name, total_memory=card.memory, major=card.capability[0], minor=card.capability[1],
            multi_processor_count=132, L2_cache_size=card.cache,
        )  # fmt: skip

    @contextlib.contextmanager
    def use(stream: _Stream) -> Iterator[None]:
        before, state.current = state.current, stream
        try:
            yield
        finally:
            state.current = before

    def new_stream() -> _Stream:
        state.streams.append(_Stream(state))
        return state.streams[-1]

    @contextlib.contextmanager
    def capture(graph: _Graph) -> Iterator[None]:
        assert state.capturing is None, "one capture at a time"
        state.capturing = graph
        try:
            yield
        finally:
            state.capturing = None

    def empty_cache() -> None:
        state.refuse("empty_cache")
        state.reserved = state.allocated()

    def reset_peak(device: Any = None) -> None:
        state.peak = state.allocated()

    return {
        "is_available": lambda: True,
        "device_count": lambda: card.count,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: card.name,
        "get_device_capability": lambda device=None: card.capability,
        "get_device_properties": properties,
        "mem_get_info": lambda device=None: (card.memory - card.context - state.reserved, card.memory),
        "memory_allocated": lambda device=None: state.allocated(),
        "memory_reserved": lambda device=None: state.reserved,
        "max_memory_allocated": lambda device=None: max(state.peak, state.allocated()),
        "reset_peak_memory_stats": reset_peak,
        "empty_cache": empty_cache,
        "get_allocator_backend": lambda: "native",
        "synchronize": lambda device=None: state.wait(),
        "Event": lambda enable_timing=False, **_: _Event(state, enable_timing),
        "Stream": new_stream,
        "stream": use,
        "current_stream": lambda device=None: state.current,
        "device": lambda device: contextlib.nullcontext(),
        "CUDAGraph": lambda: _Graph(state),
        "graph": capture,
        # Optimizers ask, and a CUDA build would ask the driver.
        "is_current_stream_capturing": lambda: state.capturing is not None,
        "get_rng_state_all": list,
        "set_rng_state_all": lambda states: None,
    }


@contextlib.contextmanager
def _narrowed(state: _State, dtype: torch.dtype, enabled: bool = True) -> Iterator[None]:
    before, state.narrow = state.narrow, dtype if enabled else None
    try:
        yield
    finally:
        state.narrow = before


def _new_program(state: _State) -> Callable[..., Any]:
    """What stands for `subprocess.run([python, "-c", text])`: the text runs here, with nothing loaded yet.

    And for nvidia-smi, asked for clock and power: each time the card is hotter; and for ncu, which counts what
    a sum, SiLU and a cast of so many numbers move.
    """
    real, asked = subprocess.run, itertools.count()

    def run(command: Any, *args: Any, **kwargs: Any) -> Any:
        if command[0] == "nvidia-smi":
            hot = next(asked)
            return subprocess.CompletedProcess(command, 0, f"{1900 - 10 * hot}, {300.5 + 20 * hot}\n", "")
        if command[0] == "ncu":
            count = int(command[-1].rpartition("(")[2].rstrip(")"))
            lines = [
                "==PROF== Connected",
                '"ID","Kernel Name",' + ",".join(f'"{n}"' for n in command[-4].split(",")),
            ]
            lines += ['"","","byte","byte"']
            lines += [
                f'"0","kernel","{read * count:,}","{write * count:,}"'
                for read, write in ((4, 2), (2, 2), (2, 4))
            ]
            return subprocess.CompletedProcess(command, 0, "\n".join(lines), "")
        if list(command[:2]) != [sys.executable, "-c"]:
            return real(command, *args, **kwargs)
        before, state.ready = state.ready, set()
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(command[2], {"__name__": "__main__"})
        state.ready = before
        return subprocess.CompletedProcess(command, 0, said.getvalue(), "")

    return run


@contextlib.contextmanager
def standin(card: Card) -> Iterator[_State]:
    """Inside, `torch.cuda` is the stand-in for `card`, in this thread."""
    state = _State(card)
    autocast = torch.autocast

    def narrowed(device_type: str, *args: Any, **kwargs: Any) -> Any:
        if device_type == "cuda" and not card.data:
            return _narrowed(state, *args, **kwargs)
        return autocast("cpu" if device_type == "cuda" else device_type, *args, **kwargs)

    def record_stream(tensor: torch.Tensor, stream: Any) -> None:
        assert isinstance(stream, _Stream), "a tensor is recorded on a stream"
        assert state.holds(tensor), "record_stream on a tensor of the CPU"

    def compiled(module: torch.nn.Module, *, dynamic: bool) -> torch.nn.Module:
        assert not dynamic, "one shape for each graph"
        return module

    asked = libraries.torch()
    assert asked is not None, "torch is imported above"
    real = asked.device

    def device(tensor: torch.Tensor) -> torch.device:
        return CUDA if card.data and state.holds(tensor) else real(tensor)

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(asked, "device", device))
        stack.enter_context(mock.patch.multiple(torch.cuda, **_cuda(state)))
        # By these an optimizer asks whether it is captured; a build without CUDA knows no accelerator.
        asks: dict[str, Any] = {
            "current_accelerator": lambda **_: CUDA,
            "current_stream": lambda: state.current,
        }
        stack.enter_context(mock.patch.multiple(torch.accelerator, **asks))
        stack.enter_context(mock.patch.object(torch, "autocast", narrowed))
        stack.enter_context(mock.patch.object(torch, "compile", compiled))
        stack.enter_context(mock.patch.object(torch.version, "cuda", "stand-in"))
        stack.enter_context(mock.patch.object(torch.Tensor, "record_stream", record_stream))
        stack.enter_context(mock.patch.object(time, "perf_counter", state.now))
        stack.enter_context(mock.patch.object(time, "sleep", state.sleep))
        stack.enter_context(mock.patch.object(subprocess, "run", _new_program(state)))
        stack.enter_context(_Operations(state))
        stack.enter_context(_Calls(state))
        yield state
