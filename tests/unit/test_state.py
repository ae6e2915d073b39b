"""Every piece of global state that `state.entries` names is changed by a lecture, and restored; so are names.

The changes stand in `CHANGES`, one for each entry: an entry without one fails, so that no entry is untested.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.running import claims, messages, record, section

from litbook.run import restore

CHANGES = {
    "environment variables": "os.environ['LITBOOK_LEFT'] = '1'; os.environ.pop('PATH')",
    "sys.path": "sys.path.append('/left'); sys.path = ['/other']",
    "sys.argv": "sys.argv.append('left')",
    "finders": "sys.meta_path.append(print)",
    "path hooks": "sys.path_hooks.insert(0, print)",
    "recursion limit": "sys.setrecursionlimit(1234)",
    "digits of integers": "sys.set_int_max_str_digits(0)",
    "trace function": "sys.settrace(lambda *_: None)",
    "profile function": "sys.setprofile(lambda *_: None)",
    "warning filters": "warnings.simplefilter('ignore')",
    "random": "random.seed(99)",
    "garbage collector": "(gc.disable if gc.isenabled() else gc.enable)()",
    "its thresholds": "gc.set_threshold(1, 2, 3)",
    "SIGINT": "signal.signal(signal.SIGINT, lambda *_: None)",
    "SIGTERM": "signal.signal(signal.SIGTERM, lambda *_: None)",
    "SIGALRM": "signal.signal(signal.SIGALRM, lambda *_: None)",
    "numpy random": "numpy.random.seed(99)",
    "torch random": "torch.manual_seed(99)",
    "CUDA random": "torch.cuda.manual_seed_all(99)",
}

IMPORTS = "import builtins, gc, json, os, random, signal, sys, threading, warnings\nimport numpy, torch\n"


def seen(value: Any) -> str:
    """A value as text, so that what is changed in place still compares as it was."""
    if isinstance(value, dict):
        value = sorted(value.items())  # the order of environment variables is nobody's business
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    return repr(value)


def entry(name: str) -> restore.StateEntry:
    return next(e for e in restore.entries() if e.name == name)


def test_every_entry_has_a_change_that_tests_it() -> None:
    names = {e.name for e in restore.entries()}
    assert names <= set(CHANGES)
    assert set(CHANGES) - names <= {"CUDA random"}  # there only with a device
    assert np  # imported, so that its entry is there


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
    before = sys.stdin, sys.stdout, sys.stderr, sys.path, sys.meta_path, json.dumps, os.replace, os._exit
    text = "sys.stdin = sys.stderr = sys.stdout = None; json.dumps = os.replace = os._exit = print"
    assert messages(record(tmp_path, section(text, IMPORTS))) == []
    after = sys.stdin, sys.stdout, sys.stderr, sys.path, sys.meta_path, json.dumps, os.replace, os._exit
    assert all(a is b for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    "line",
    [
        "builtins.print = builtins.hex = None",
        "builtins.hex = lambda x: 'hex'; del builtins.print",
        "builtins.hex = builtins.print = None; builtins.len = builtins.isinstance = 0",
        "builtins.__dict__.clear()",
    ],
)
def test_a_lecture_that_replaces_builtins_has_no_verdict_and_they_are_back(tmp_path: Path, line: str) -> None:
    before = dict(vars(builtins))
    with pytest.raises(restore.BuiltinReplaced) as caught:
        record(tmp_path, section(f"{line}\nassert 1 == 1", IMPORTS))
    assert all(vars(builtins)[name] is thing for name, thing in before.items() if name != "_")
    assert str(caught.value).startswith("the lecture replaces ")
    assert "of builtins, and so the recorder: no verdict\n    define it under a name of its own" in str(
        caught.value
    )


def test_a_builtin_that_is_put_back_by_the_lecture_is_no_error(tmp_path: Path) -> None:
    body = "with mock.patch('builtins.print') as said:\n    print('x')\nassert said.call_count == 1"
    assert claims(record(tmp_path, section(body, "from unittest import mock"))) == {
        "said.call_count == 1": "holds"
    }


def test_an_entry_that_cannot_be_restored_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    put_back: list[int] = []

    def refuse(_: object) -> None:
        raise RuntimeError

    listed = [
        restore.StateEntry("first", lambda: 1, put_back.append),
        restore.StateEntry("bad", lambda: 2, refuse),
        restore.StateEntry("last", lambda: 3, put_back.append),
    ]
    monkeypatch.setattr(restore, "entries", lambda: listed)
    with pytest.raises(KeyError), restore.restore_state():
        raise KeyError
    assert put_back == [3, 1]


def test_the_working_directory_is_fresh_and_gone_afterwards() -> None:
    before = Path.cwd()
    with restore.temporary_folder() as folder:
        assert Path.cwd() == folder.resolve()
        assert list(folder.iterdir()) == []
        (folder / "left").mkdir()
    assert Path.cwd() == before
    assert not folder.exists()
