"""What a run puts back: what litbook itself needs after the lecture, and the random state of each section.

A lecture has a process to itself, so nothing is put back for the sake of another one. What stays changed
until the process ends: defaults of libraries, threads, the trace of what was imported; what a section sets,
`settings` puts back behind it. Put back is what would change what litbook does with the record: the modules
it is made of, the limits of the interpreter, what `run` has set itself. Each entry is a name, a way to read,
a way to write.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from litbook.errors import LitbookError
from litbook.record.device_kinds import devices

# Modules of Python's that litbook uses after the lecture. Of these and of its own the names are put back.
NEEDED = (
    "builtins", "contextlib", "dataclasses", "hashlib", "io", "json", "json.decoder", "json.encoder", "math",
    "os", "os.path", "random", "re", "signal", "sys", "threading", "time", "typing", "warnings",
)  # fmt: skip


class BuiltinReplaced(LitbookError):
    """The lecture replaced a builtin, and left it so."""

    slug = "replaced"
    exit_status = 1


@dataclass(frozen=True)
class StateEntry:
    """One piece of global state."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


_ALL = slice(None)  # the list stays, and gets back what was in it


def entries() -> list[StateEntry]:
    """Every piece of state that is restored: the interpreter's, and the random state of libraries."""
    return [
        StateEntry("environment variables", lambda: dict(os.environ), set_environment),
        StateEntry("sys.path", lambda: list(sys.path), lambda v: sys.path.__setitem__(_ALL, v)),
        StateEntry("sys.argv", lambda: list(sys.argv), lambda v: setattr(sys, "argv", v)),
        StateEntry("finders", lambda: list(sys.meta_path), lambda v: sys.meta_path.__setitem__(_ALL, v)),
        StateEntry("path hooks", lambda: list(sys.path_hooks), lambda v: sys.path_hooks.__setitem__(_ALL, v)),
        StateEntry("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
        StateEntry("digits of integers", sys.get_int_max_str_digits, sys.set_int_max_str_digits),
        StateEntry("trace function", sys.gettrace, sys.settrace),
        StateEntry("profile function", sys.getprofile, sys.setprofile),
        StateEntry("warning filters", lambda: list(warnings.filters), set_filters),
        StateEntry("garbage collector", gc.isenabled, lambda on: (gc.enable if on else gc.disable)()),
        StateEntry("its thresholds", gc.get_threshold, lambda v: gc.set_threshold(*v)),
        # From another thread than the main one, which cannot change them, none can be put back.
        *(StateEntry(n.name, partial(signal.getsignal, n), partial(signal.signal, n)) for n in _SIGNALS),
        *random_state(),
    ]


@contextlib.contextmanager
def restore_state() -> Iterator[None]:
    """Everything in `entries` is afterwards what it was before, also after an exception.

    Raises `BuiltinReplaced` instead of whatever came of it where the lecture has replaced a builtin: what
    recorded it used that, too.
    """
    ours = [name for name in sys.modules if name.partition(".")[0] == "litbook"]
    modules = [vars(sys.modules[name]) for name in (*NEEDED, *ours) if name in sys.modules]
    names = [(dict(values), values.update) for values in modules]
    before = [(entry, entry.read()) for entry in entries()]
    was, is_now = dict(vars(builtins)), vars(builtins).copy
    try:
        yield
    finally:
        now = is_now()
        for kept, put_back in names:
            put_back(kept)  # first of all, and with nothing that a lecture can replace
        for entry, value in reversed(before):
            with contextlib.suppress(Exception):  # one that cannot be restored must not keep the others
                entry.write(value)
        if other := sorted(name for name in was if name != "_" and now.get(name) is not was[name]):
            raise BuiltinReplaced(
                f"the lecture replaces {', '.join(other[:5])} of builtins, and so the recorder: no verdict\n"
                "    define it under a name of its own in the lecture"
            ) from None


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A fresh working directory, removed afterwards; the old one is restored."""
    before = Path.cwd()
    folder = tempfile.mkdtemp(prefix="litbook-")
    os.chdir(folder)
    try:
        yield Path(folder)
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


def set_environment(value: dict[str, str]) -> None:
    """Make these the environment variables, and no others."""
    for name in set(os.environ) - set(value):
        del os.environ[name]
    os.environ.update(value)


def set_filters(value: list[Any]) -> None:
    warnings.filters[:] = value  # type: ignore[index]
    getattr(warnings, "_filters_mutated", lambda: None)()  # drops the cache of what was shown


_SIGNALS = [signal.Signals[n] for n in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, n)]


def random_state() -> list[StateEntry]:
    """The random state: every section starts from its seed; what runs after it finds that from before."""
    states = [StateEntry("random", random.getstate, random.setstate)]
    if numpy := sys.modules.get("numpy"):
        states.append(StateEntry("numpy random", numpy.random.get_state, numpy.random.set_state))
    if torch := sys.modules.get("torch"):
        states.append(StateEntry("torch random", torch.random.get_rng_state, torch.random.set_rng_state))
        for kind in devices():
            if module := kind.module:
                every = module.get_rng_state_all, module.set_rng_state_all
                states.append(StateEntry(f"{kind.label} random", *every))
    return states
