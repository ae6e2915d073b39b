"""What a lecture may change outside itself, and how it is put back.

`run` captures this before a lecture and restores it after, however the lecture ends, so that a warm
process (a preview, a test run) can run another. Each entry is a name, a way to read, a way to write.
"""

from __future__ import annotations

import builtins
import contextlib
import decimal
import gc
import locale
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One piece of global state."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


def entries() -> list[Entry]:
    """Every piece of state that is restored: the interpreter's, and of those libraries that are imported."""
    return [*_interpreter(), *_numpy(), *_torch(), *_matplotlib()]


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Everything in `entries` is afterwards what it was before, also after an exception."""
    before = [(entry, entry.read()) for entry in entries()]
    try:
        yield
    finally:
        for entry, value in reversed(before):
            with contextlib.suppress(Exception):  # one that cannot be restored must not keep the others
                entry.write(value)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A fresh working directory, removed afterwards; the old one is restored."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="litbook-", ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def _interpreter() -> list[Entry]:
    return [
        Entry("environment variables", lambda: dict(os.environ), _set_environment),
        Entry("sys.path", lambda: list(sys.path), lambda v: sys.path.__setitem__(slice(None), v)),
        Entry("sys.argv", lambda: list(sys.argv), lambda v: setattr(sys, "argv", v)),
        Entry("standard streams", _streams, _set_streams),
        Entry("end of the process", lambda: os._exit, lambda v: setattr(os, "_exit", v)),
        Entry("import hooks", lambda: (list(sys.meta_path), list(sys.path_hooks)), _set_import_hooks),
        Entry("bytecode files", lambda: sys.dont_write_bytecode, _set_bytecode),
        Entry("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
        Entry("switch interval", sys.getswitchinterval, sys.setswitchinterval),
        Entry("digits of integers", sys.get_int_max_str_digits, sys.set_int_max_str_digits),
        Entry("trace function", sys.gettrace, sys.settrace),
        Entry("profile function", sys.getprofile, sys.setprofile),
        Entry("trace function of threads", threading.gettrace, threading.settrace),
        Entry("profile function of threads", threading.getprofile, threading.setprofile),
        Entry("exception hooks", _hooks, _set_hooks),
        Entry("warning filters", lambda: list(warnings.filters), _set_filters),
        Entry("showwarning", lambda: warnings.showwarning, lambda v: setattr(warnings, "showwarning", v)),
        Entry("logging", _logging, _set_logging),
        Entry("locale", lambda: locale.setlocale(locale.LC_ALL), partial(locale.setlocale, locale.LC_ALL)),
        Entry("random", random.getstate, random.setstate),
        Entry("decimal context", lambda: decimal.getcontext().copy(), decimal.setcontext),
        Entry("garbage collector", lambda: (gc.isenabled(), gc.get_threshold()), _set_gc),
        Entry("umask", _umask, os.umask),
        Entry("signal handlers", _signals, _set_signals),
        Entry("builtins", lambda: dict(vars(builtins)), _set_builtins),
    ]


def _set_environment(value: dict[str, str]) -> None:
    for name in set(os.environ) - set(value):
        del os.environ[name]
    os.environ.update(value)


def _streams() -> tuple[Any, Any, Any]:
    return sys.stdin, sys.stdout, sys.stderr


def _set_streams(value: tuple[Any, Any, Any]) -> None:
    sys.stdin, sys.stdout, sys.stderr = value


def _set_bytecode(value: bool) -> None:
    sys.dont_write_bytecode = value


def _set_import_hooks(value: tuple[list[Any], list[Any]]) -> None:
    sys.meta_path[:], sys.path_hooks[:] = value


def _logging() -> tuple[int, int, list[Any]]:
    root = logging.getLogger()
    return root.level, root.manager.disable, list(root.handlers)


def _set_logging(value: tuple[int, int, list[Any]]) -> None:
    root = logging.getLogger()
    level, disabled, root.handlers[:] = value
    root.setLevel(level)
    logging.disable(disabled)


def _hooks() -> tuple[Any, Any, Any]:
    return sys.excepthook, sys.displayhook, threading.excepthook


def _set_hooks(value: tuple[Any, Any, Any]) -> None:
    sys.excepthook, sys.displayhook, threading.excepthook = value


def _set_filters(value: list[Any]) -> None:
    warnings.filters[:] = value  # type: ignore[index]
    getattr(warnings, "_filters_mutated", lambda: None)()  # drops the cache of what was shown


def _set_gc(value: tuple[bool, tuple[int, int, int]]) -> None:
    enabled, threshold = value
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(*threshold)


def _umask() -> int:
    before = os.umask(0o022)
    os.umask(before)
    return before


_SIGNALS = [signal.Signals[n] for n in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, n)]


def _signals() -> dict[signal.Signals, Any]:
    return {number: signal.getsignal(number) for number in _SIGNALS}


def _set_signals(value: dict[signal.Signals, Any]) -> None:
    if threading.current_thread() is threading.main_thread():
        for number, handler in value.items():
            signal.signal(number, handler)


def _set_builtins(value: dict[str, Any]) -> None:
    for name in set(vars(builtins)) - set(value) - {"_"}:
        delattr(builtins, name)
    for name, thing in value.items():
        if vars(builtins).get(name) is not thing:
            setattr(builtins, name, thing)


def _numpy() -> list[Entry]:
    np = sys.modules.get("numpy")
    if np is None:
        return []
    return [
        Entry("numpy random", np.random.get_state, np.random.set_state),
        Entry("numpy print options", np.get_printoptions, lambda v: np.set_printoptions(**_without_none(v))),
        Entry("numpy error handling", np.geterr, lambda v: np.seterr(**v)),
    ]


def _without_none(options: dict[str, Any]) -> dict[str, Any]:
    """To the setter, None says "as it is"."""
    return {name: value for name, value in options.items() if value is not None}


def _torch() -> list[Entry]:
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    cudnn = torch.backends.cudnn
    entries = [
        Entry("torch default dtype", torch.get_default_dtype, torch.set_default_dtype),
        Entry("torch default device", lambda: _default_device(torch), torch.set_default_device),
        Entry("torch threads", torch.get_num_threads, torch.set_num_threads),
        Entry("torch grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
        Entry("torch determinism", lambda: _deterministic(torch), lambda v: _set_deterministic(torch, v)),
        Entry(
            "torch matmul precision", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
        ),
        Entry("torch anomaly mode", torch.is_anomaly_enabled, torch.set_anomaly_enabled),
        Entry("torch autocast", lambda: _autocast(torch), lambda v: _set_autocast(torch, v)),
        Entry("torch repeated warnings", torch.is_warn_always_enabled, torch.set_warn_always),
        Entry("torch print options", lambda: _print_options(torch), lambda v: _set_print_options(torch, v)),
        Entry("torch random", torch.random.get_rng_state, torch.random.set_rng_state),
        Entry("cuDNN", lambda: _flags(cudnn), lambda v: _set_flags(cudnn, v)),
    ]
    if torch.cuda.is_available():
        entries.append(Entry("CUDA random", torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all))
    return entries


def _default_device(torch: Any) -> Any:
    """None where nothing was set: `get_default_device()` cannot tell that from an explicit "cpu"."""
    mode = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if mode is None else mode.device


def _deterministic(torch: Any) -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _set_deterministic(torch: Any, value: tuple[bool, bool]) -> None:
    if value != _deterministic(torch):  # setting it imports torch's compiler, which takes seconds
        torch.use_deterministic_algorithms(value[0], warn_only=value[1])


def _autocast(torch: Any) -> dict[str, tuple[bool, Any]]:
    return {d: (torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")}


def _set_autocast(torch: Any, value: dict[str, tuple[bool, Any]]) -> None:
    for device, (enabled, dtype) in value.items():
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)


def _print_options(torch: Any) -> dict[str, Any]:
    return dict(vars(torch._tensor_str.PRINT_OPTS))


def _set_print_options(torch: Any, value: dict[str, Any]) -> None:
    vars(torch._tensor_str.PRINT_OPTS).update(value)


_CUDNN = ("enabled", "benchmark", "deterministic", "allow_tf32")


def _flags(module: Any) -> dict[str, bool]:
    return {name: getattr(module, name) for name in _CUDNN}


def _set_flags(module: Any, value: dict[str, bool]) -> None:
    for name, flag in value.items():
        setattr(module, name, flag)


def _matplotlib() -> list[Entry]:
    mpl = sys.modules.get("matplotlib")
    if mpl is None:
        return []
    return [Entry("matplotlib settings", lambda: dict(mpl.rcParams), lambda v: _set_rc(mpl, v))]


def _set_rc(mpl: Any, value: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated settings warn when written back
        dict.update(mpl.rcParams, value)
