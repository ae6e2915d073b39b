"""Every piece of global state that `state.entries` names is changed by a lecture, and restored.

The changes stand in `CHANGES`, one for each entry: an entry without one fails, so that no entry is untested.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from tests.running import messages, record, section

from litbook.run import state

CHANGES = {
    "environment variables": "os.environ['LITBOOK_LEFT'] = '1'; os.environ.pop('PATH')",
    "sys.path": "sys.path.append('/left'); sys.path = ['/other']",
    "sys.argv": "sys.argv.append('left')",
    "standard streams": "sys.stdin = sys.stderr = None",
    "end of the process": "os._exit = print",
    "import hooks": "sys.meta_path.append(print); sys.path_hooks.insert(0, print)",
    "bytecode files": "sys.dont_write_bytecode = not sys.dont_write_bytecode",
    "recursion limit": "sys.setrecursionlimit(1234)",
    "switch interval": "sys.setswitchinterval(0.01)",
    "digits of integers": "sys.set_int_max_str_digits(0)",
    "trace function": "sys.settrace(lambda *_: None)",
    "profile function": "sys.setprofile(lambda *_: None)",
    "trace function of threads": "threading.settrace(lambda *_: None)",
    "profile function of threads": "threading.setprofile(lambda *_: None)",
    "exception hooks": "sys.excepthook = sys.displayhook = threading.excepthook = print",
    "warning filters": "warnings.simplefilter('ignore')",
    "showwarning": "warnings.showwarning = print",
    "logging": "logging.basicConfig(level=5, force=True); logging.disable(50)",
    "locale": "locale.setlocale(locale.LC_ALL, next(n for n in ('C', 'C.UTF-8') if n != locale.setlocale(locale.LC_ALL)))",
    "random": "random.seed(99)",
    "decimal context": "decimal.getcontext().prec = 3",
    "garbage collector": "(gc.disable if gc.isenabled() else gc.enable)(); gc.set_threshold(1, 2, 3)",
    "umask": "os.umask(0o777)",
    "signal handlers": "[signal.signal(s, lambda *_: None) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]",
    "builtins": "builtins.left = 1; builtins.abs = len; del builtins.hex",
    "numpy random": "numpy.random.seed(99)",
    "numpy print options": "numpy.set_printoptions(precision=1, legacy='1.13')",
    "numpy error handling": "numpy.seterr(all='raise')",
    "torch default dtype": "torch.set_default_dtype(torch.float64)",
    "torch default device": "torch.set_default_device('meta')",
    "torch threads": "torch.set_num_threads(torch.get_num_threads() + 1)",
    "torch grad mode": "torch.set_grad_enabled(False)",
    "torch determinism": "torch.use_deterministic_algorithms(True, warn_only=True)",
    "torch matmul precision": "torch.set_float32_matmul_precision('medium')",
    "torch anomaly mode": "torch.set_anomaly_enabled(True)",
    "torch autocast": "torch.set_autocast_enabled('cpu', True); torch.set_autocast_dtype('cpu', torch.float16)",
    "torch repeated warnings": "torch.set_warn_always(not torch.is_warn_always_enabled())",
    "torch print options": "torch.set_printoptions(precision=1, sci_mode=True)",
    "torch random": "torch.manual_seed(99)",
    "CUDA random": "torch.cuda.manual_seed_all(99)",
    "cuDNN": "torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark",
    "matplotlib settings": "matplotlib.rcParams['figure.dpi'] = 17; matplotlib.style.use('ggplot')",
}

IMPORTS = (
    "import builtins, decimal, gc, locale, logging, os, random, signal, sys, threading, warnings\n"
    "import numpy, torch, matplotlib, matplotlib.style\n"
)


def seen(value: Any) -> str:
    """A value as text, so that what is changed in place still compares as it was."""
    if isinstance(value, dict):
        value = sorted(value.items())  # the order of environment variables is nobody's business
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    return repr(value)


def entry(name: str) -> state.Entry:
    return next(e for e in state.entries() if e.name == name)


def test_every_entry_has_a_change_that_tests_it() -> None:
    names = {e.name for e in state.entries()}
    assert names <= set(CHANGES)
    assert set(CHANGES) - names <= {"CUDA random"}  # there only with a device
    assert np and mpl  # imported, so that their entries are there


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("ending", ["", "raise ValueError('after the change')"], ids=["returns", "raises"])
def test_what_a_lecture_changes_is_put_back(tmp_path: Path, name: str, ending: str) -> None:
    if name == "CUDA random" and not torch.cuda.is_available():
        pytest.skip("needs CUDA: torch sees no such device")
    it = entry(name)
    before = seen(it.read())
    text = section(
        f"{CHANGES[name]}\nreport(ENTRY.read())\n{ending}",
        f"{IMPORTS}here = sys.modules[{__name__!r}]\nreport, ENTRY = here.changed, here.entry({name!r})\n",
    )
    during.clear()
    made = record(tmp_path, text)
    after = seen(it.read())
    assert messages(made) == ([m for m in messages(made) if "after the change" in m] if ending else [])
    assert during and during[0] != before, "the lecture did not change it: the test could not fail"
    assert after == before


during: list[str] = []


def changed(value: Any) -> None:
    """Called by the lecture, with what it made of the state."""
    during.append(seen(value))


def test_the_same_objects_are_back_in_their_places(tmp_path: Path) -> None:
    before = sys.stdin, sys.stdout, sys.stderr, sys.path, sys.meta_path, print, hex
    record(
        tmp_path,
        section("sys.stdin = sys.stderr = sys.stdout = None; builtins.print = builtins.hex = None", IMPORTS),
    )
    after = sys.stdin, sys.stdout, sys.stderr, sys.path, sys.meta_path, print, hex
    assert all(a is b for a, b in zip(before, after, strict=True))


def test_an_entry_that_cannot_be_restored_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    put_back: list[int] = []

    def refuse(_: object) -> None:
        raise RuntimeError

    listed = [
        state.Entry("first", lambda: 1, put_back.append),
        state.Entry("bad", lambda: 2, refuse),
        state.Entry("last", lambda: 3, put_back.append),
    ]
    monkeypatch.setattr(state, "entries", lambda: listed)
    with pytest.raises(KeyError), state.restored():
        raise KeyError
    assert put_back == [3, 1]


def test_the_working_directory_is_fresh_and_gone_afterwards() -> None:
    before = Path.cwd()
    with state.temporary_folder() as folder:
        assert Path.cwd() == folder.resolve()
        assert list(folder.iterdir()) == []
        (folder / "left").mkdir()
    assert Path.cwd() == before
    assert not folder.exists()
