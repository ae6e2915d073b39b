"""What a section may set for itself: read before it, and put back behind it.

Each setting is a name, a way to read, a way to write; a library's are read where the library is there. A
variable of `contextvars` needs none, since each section runs in a copy of the context. What stays: what a
section does to files, to objects of the lecture and to names of modules (`lecture.leaning` tells of these),
the trace function (a debugger's), limits of the process, `os.putenv`.
"""

from __future__ import annotations

import contextlib
import decimal
import gc
import locale
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from litbook.record.device_kinds import devices
from litbook.run.restore import StateEntry, random_state, set_environment, set_filters

_ALL = slice(None)  # the list stays, and gets back what was in it
_LOCALE = partial(locale.setlocale, locale.LC_ALL), partial(locale.setlocale, locale.LC_ALL)
_HOOKS = (sys, "displayhook"), (sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")
_STREAMS = (sys, "stdin"), (sys, "stdout"), (sys, "stderr")
_TIMERS = [
    getattr(signal, name)
    for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
    if hasattr(signal, name)
]
_SIGNALS = sorted(signal.valid_signals())


def settings() -> list[StateEntry]:
    """What a section may set for itself; what runs after it finds what was set before it.

    Of libraries those that are there when it begins. They are put back from the last to the first.
    """
    found = [
        StateEntry("time zone", lambda: time.tzname, lambda _: time.tzset()),  # behind the environment
        StateEntry("environment variables", lambda: dict(os.environ), set_environment),
        StateEntry("working folder", Path.cwd, os.chdir),
        StateEntry("umask", _umask, os.umask),
        StateEntry("sys.path", lambda: list(sys.path), lambda v: sys.path.__setitem__(_ALL, v)),
        StateEntry("sys.argv", lambda: list(sys.argv), lambda v: setattr(sys, "argv", v)),
        StateEntry("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
        StateEntry("digits of integers", sys.get_int_max_str_digits, sys.set_int_max_str_digits),
        StateEntry("switch interval", sys.getswitchinterval, sys.setswitchinterval),
        StateEntry("garbage collector", gc.isenabled, lambda on: (gc.enable if on else gc.disable)()),
        StateEntry("its thresholds", gc.get_threshold, lambda v: gc.set_threshold(*v)),
        StateEntry("signals", lambda: {n: signal.getsignal(n) for n in _SIGNALS}, _set_signals),
        *(StateEntry(f"timer {n}", partial(signal.getitimer, n), partial(_set_timer, n)) for n in _TIMERS),
        *(_attribute(thing, name) for thing, name in (*_HOOKS, *_STREAMS)),
        StateEntry("warning filters", lambda: list(warnings.filters), set_filters),
        _attribute(warnings, "showwarning"),
        _attribute(logging, "_warnings_showwarning"),  # of `captureWarnings`
        StateEntry("decimal arithmetic", _decimals, _set_decimals),
        StateEntry("locale", *_LOCALE),
        StateEntry("logs", _logs, _set_logs),
    ]
    if calendar := sys.modules.get("calendar"):
        found.append(StateEntry("first weekday", calendar.firstweekday, calendar.setfirstweekday))
    if csv := sys.modules.get("csv"):
        found.append(StateEntry("longest field", csv.field_size_limit, csv.field_size_limit))
    if socket := sys.modules.get("socket"):
        found.append(StateEntry("timeout", socket.getdefaulttimeout, socket.setdefaulttimeout))
    if matplotlib := sys.modules.get("matplotlib"):
        values = matplotlib.rcParams  # as it is: asking for the backend would choose one
        found.append(StateEntry("matplotlib", partial(dict.copy, values), partial(dict.update, values)))
        maps = matplotlib.colormaps
        found.append(StateEntry("colour maps", partial(set[str], maps), partial(_remove_maps, maps)))
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        found.append(StateEntry("open figures", pyplot.get_fignums, partial(_close_figures, pyplot)))
    if numpy := sys.modules.get("numpy"):
        found.append(StateEntry("numpy's errors", numpy.geterr, lambda v: numpy.seterr(**v)))
        found.append(StateEntry("what hears of them", numpy.geterrcall, numpy.seterrcall))
        found.append(StateEntry("numpy's buffer", numpy.getbufsize, numpy.setbufsize))
        shown = numpy.get_printoptions, lambda v: numpy.set_printoptions(**v)
        found.append(StateEntry("numpy's printing", *shown))
    if torch := sys.modules.get("torch"):
        found += [StateEntry(f"torch {name}", read, write) for name, read, write in _of_torch(torch)]
    return [*found, *random_state()]


def _attribute(thing: Any, name: str) -> StateEntry:
    return StateEntry(name, partial(getattr, thing, name), partial(setattr, thing, name))


def _of_torch(torch: Any) -> list[tuple[str, Callable[[], Any], Callable[[Any], object]]]:
    options, cuda, backends = torch._tensor_str.PRINT_OPTS, torch.backends.cuda, torch.backends
    flags = [(backends.cudnn, name) for name in ("enabled", "benchmark", "deterministic")]
    flags.append((backends.mkldnn, "enabled"))
    switch, to = torch.set_autocast_enabled, torch.set_autocast_dtype
    kinds = ["cpu", *(kind.name for kind in devices() if kind.casts)]
    return [
        ("default dtype", torch.get_default_dtype, torch.set_default_dtype),
        ("default device", torch.get_default_device, torch.set_default_device),
        ("threads", torch.get_num_threads, torch.set_num_threads),
        ("gradients", torch.is_grad_enabled, torch.set_grad_enabled),
        ("anomalies", torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        ("precision", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        ("determinism", torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
        ("printing", lambda: dict(vars(options)), vars(options).update),
        ("warnings", torch.is_warn_always_enabled, torch.set_warn_always),
        ("small floats", _flushes, torch.set_flush_denormal),
        *((f"autocast {k}", partial(torch.is_autocast_enabled, k), partial(switch, k)) for k in kinds),
        *((f"{k} autocast", partial(torch.get_autocast_dtype, k), partial(to, k)) for k in kinds),
        *((name, partial(getattr, module, name), partial(setattr, module, name)) for module, name in flags),
        ("flash", cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
        ("lean attention", cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
        ("plain attention", cuda.math_sdp_enabled, cuda.enable_math_sdp),
    ]  # fmt: skip


def _flushes(smallest: float = 5e-324) -> bool:
    """Whether the processor takes floats that are too small to be normal for zero; torch cannot be asked."""
    return smallest * 1.0 == 0


def _umask() -> int:
    """The mask of new files: it is read by setting it."""
    os.umask(was := os.umask(0o077))
    return was


_DECIMAL = "prec", "rounding", "Emin", "Emax", "capitals", "clamp"


def _decimals() -> list[Any]:
    """What decimal arithmetic goes by. A copy of a context of `contextvars` shares the object that has it."""
    context = decimal.getcontext()
    return [*(getattr(context, name) for name in _DECIMAL), dict(context.flags), dict(context.traps)]


def _set_decimals(before: list[Any]) -> None:
    context = decimal.getcontext()
    for name, value in zip((*_DECIMAL, "flags", "traps"), before, strict=True):
        setattr(context, name, value)


def _set_signals(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def _set_timer(which: int, before: tuple[float, float]) -> None:
    """End what the section began. A timer that ran before it goes on, unless the section ended it."""
    if before[0] == 0 or signal.getitimer(which)[0] == 0:
        signal.setitimer(which, *before)


_LoggerState = tuple[int, list[logging.Handler], list[Any], bool, bool]


def _logs() -> tuple[int, dict[str, _LoggerState]]:
    """What is logged: the level below which nothing is, and the state of each logger."""
    loggers = {
        name: it for name, it in logging.root.manager.loggerDict.items() if isinstance(it, logging.Logger)
    }
    state = {
        name: (it.level, [*it.handlers], [*it.filters], it.propagate, bool(it.disabled))
        for name, it in {"": logging.root, **loggers}.items()
    }
    return logging.root.manager.disable, state


def _set_logs(before: tuple[int, dict[str, _LoggerState]]) -> None:
    """Put each logger back; one that is new is as new ones are."""
    logging.disable(before[0])
    for name in _logs()[1]:
        logger = logging.getLogger(name) if name else logging.root
        level, logger.handlers[:], logger.filters[:], logger.propagate, logger.disabled = before[1].get(
            name, (logging.NOTSET, [], [], True, False)
        )
        logger.setLevel(level)


def _remove_maps(maps: Any, before: set[str]) -> None:
    for name in {*maps} - before:
        maps.unregister(name)


def _close_figures(pyplot: Any, before: list[int]) -> None:
    for number in {*pyplot.get_fignums()} - {*before}:
        pyplot.close(number)


def put_back(before: list[tuple[StateEntry, Any]]) -> None:
    """Write what was read before, where it is another by now."""
    for entry, value in reversed(before):
        with contextlib.suppress(Exception):  # one that cannot be restored must not keep the others
            same = False
            with contextlib.suppress(Exception):  # of arrays nobody knows what `==` says
                same = bool(entry.read() == value)
            if not same:
                entry.write(value)
