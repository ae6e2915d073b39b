"""Reuse: a section on which nothing has changed is not run again; whatever it depends on makes it run.

The oracle is a run without a store: a record that was put together from kept sections has to say what that says.
"""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from tests.running import SAMPLES, command, shown, write

from litbook import reuse, trace
from litbook.render.terminal import Terminal
from litbook.run import run
from litbook.store import FOLDER, Store, of

BOOK = '''
"""A book."""
import json
import random
import rates
from rates import peak
from litbook import note, question, link

WIDTH = 4
TABLE = {"a": 1, "b": 2}
TAKEN = []


def double(x):
    return 2 * x  # @inspect x


def twice_double(x):
    return double(double(x))


class Box:
    size = 3


def main():
    note("Prose of main.")
    first()
    part()
    last()


def first():
    """First."""
    note(f"{WIDTH} bytes.")
    a = twice_double(WIDTH)  # @inspect a
    assert a == 16, "four times"


def part():
    """A part."""
    note("Prose of the part.")
    second()
    third()


def second():
    """Second."""
    link(third)
    b = double(Box.size)  # @inspect b
    for i in range(10):
        c = i * b  # @inspect c
    assert b == 6, "twice"


def third():
    """Third."""
    d = peak("b") + random.random()  # @inspect d
    question("How much?", answer=d, hint="Less than all.")
    assert 2 < d < 4, "the rate"


def last():
    """Last."""
    e = sorted(TABLE)  # @inspect e
    print("printed")
    assert e == ["a", "b"], "both"
'''
RATES = "import far\nSCALE = 1\ndef peak(name):\n    return SCALE * far.TABLE[name]\n"
FAR = 'TABLE = {"a": 1, "b": 2}\n'
ALL = ["first", "second", "third", "last"]


def a_project(root: Path) -> Path:
    """The lecture of a project, with two modules beside it."""
    (root / "mkdocs.yml").touch()
    folder = root / "lectures"
    folder.mkdir()
    write(folder, RATES, "rates.py")
    write(folder, FAR, "far.py")
    return write(folder, BOOK, "lecture_01.py")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one lecture and two modules beside it."""
    return a_project(tmp_path)


def same(record: trace.Record) -> trace.Record:
    """The record without what differs from run to run on purpose."""
    environment = dataclasses.replace(record.environment, date="", commit=None)
    return dataclasses.replace(record, environment=environment, seconds={}, reused=())


def ran(path: Path, **options: Any) -> list[str]:
    """Run the lecture with its store, and say which sections ran; the record is what a run without gives."""
    store = of(path)
    assert store is not None
    record = run(path, store=store, **options)
    assert same(record) == same(run(path, **{k: v for k, v in options.items() if k != "fresh"}))
    taken = dict(record.reused)
    return [record.functions[i].name for i in _leaves(record) if record.functions[i].name not in taken]


def _leaves(record: trace.Record) -> list[int]:
    return [i for i, f in enumerate(record.functions) if f.kind == "section"]


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, old
    file.write_text(text.replace(old, new))


def test_nothing_changed_and_nothing_runs(project: Path) -> None:
    assert ran(project) == ALL
    assert ran(project) == []


def test_editing_one_section_runs_that_one_and_moves_the_lines_of_the_others(project: Path) -> None:
    ran(project)
    edit(project, "    b = double(Box.size)", "    extra = 1\n\n    b = double(Box.size) + 0 * extra")
    assert ran(project) == ["second"]
    edit(project, '"""A book."""', '"""A book,\n\nwith more lines.\n"""')
    assert ran(project) == []


@pytest.mark.parametrize(
    "file, old, new, expected",
    [
        ("lecture_01.py", 'assert a == 16, "four times"', 'assert a == 16, "4 times"', ["first"]),
        ("lecture_01.py", "# @inspect a", "# @inspect a, a + 1", ["first"]),
        ("lecture_01.py", "return 2 * x  # @inspect x", "return x + x  # @inspect x", ["first", "second"]),
        ("lecture_01.py", "return double(double(x))", "return 4 * x", ["first"]),
        ("lecture_01.py", "WIDTH = 4", "WIDTH = 2 * 2", ["first"]),
        ("lecture_01.py", "size = 3", "size = 1 + 2", ["second"]),
        ("lecture_01.py", '"b": 2}\nTAKEN', '"b": 3}\nTAKEN', ["last"]),
        ("lecture_01.py", "Prose of main.", "Other prose of main.", []),
        ("lecture_01.py", "Prose of the part.", "Other prose.", []),
        ("lecture_01.py", '"""Third."""', '"""The third."""', ["third"]),
        ("lecture_01.py", "    second()\n    third()\n", "    third()\n    second()\n", []),
        ("lecture_01.py", "    part()\n    last()\n", "    last()\n", []),
        ("rates.py", "SCALE = 1", "SCALE = 1.0", ["third"]),
        ("far.py", '"a": 1', '"a": 7', ["third"]),
    ],
)
def test_each_kind_of_text_runs_exactly_what_depends_on_it(
    project: Path, file: str, old: str, new: str, expected: list[str]
) -> None:
    ran(project)
    edit(project.parent / file, old, new)
    assert ran(project) == expected


def test_a_claim_that_now_fails_is_run_each_time_and_never_kept(project: Path) -> None:
    ran(project)
    edit(project, "assert b == 6", "assert b == 7")
    assert ran(project) == ["second"]
    assert ran(project) == ["second"]
    edit(project, 'assert b == 7, "twice"', "raise ValueError")
    assert ran(project) == ["second"]
    assert ran(project) == ["second"]
    edit(project, "raise ValueError", 'assert b == 6, "twice"')
    assert ran(project) == []


def test_seed_python_machine_device_and_versions_run_everything(project: Path, monkeypatch) -> None:
    ran(project)
    assert ran(project, seed=1) == ALL
    assert ran(project) == []
    assert ran(project, device="cpu") == ALL
    real = reuse.surroundings

    def changed(**different: Any) -> None:
        def seen(environment: trace.Environment, device: str) -> str:
            return real(dataclasses.replace(environment, **different), device)

        monkeypatch.setattr(reuse, "surroundings", seen)

    gpu = trace.Device("cuda", "nvidia-h200", "NVIDIA H200")
    for different in ({"versions": {"torch": "2.99"}}, {"python": "3.99"}, {"device": gpu}, {"threads": 99}):
        changed(**different)
        assert ran(project) == ALL, different
        assert ran(project) == [], different


@pytest.mark.parametrize("name", ["engine", "installed"])
def test_another_engine_or_another_library_runs_everything(project: Path, monkeypatch, name: str) -> None:
    ran(project)
    monkeypatch.setattr(reuse, name, lambda: "another")
    assert ran(project) == ALL


def test_a_variable_that_libraries_read_runs_everything(project: Path, monkeypatch) -> None:
    ran(project)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert ran(project) == ALL
    monkeypatch.setenv("PS1", "$")
    assert ran(project) == []


def test_fresh_takes_nothing_and_keeps_everything(project: Path) -> None:
    ran(project)
    assert ran(project, fresh=True) == ALL
    assert ran(project) == []


# ------------------------------------------------------------------------ what sections hand on


def lecture(*sections: str, before: str = "") -> str:
    """A lecture of several sections `s0`, `s1` ..., with `before` above them."""
    calls = "\n".join(f"    s{i}()" for i in range(len(sections)))
    bodies = "\n\n".join(
        f'def s{i}():\n    """S{i}."""\n'
        + "\n".join(f"    {line}" for line in dedent(body).strip().splitlines())
        for i, body in enumerate(sections)
    )
    return f'"""A lecture."""\nfrom litbook import note\n{dedent(before)}\n\ndef main():\n{calls}\n\n\n{bodies}\n'


READ = "x = len(STATE)  # @inspect x"


@pytest.mark.parametrize(
    "before, change",
    [
        ("STATE = []", "STATE.append(1)"),
        ("STATE = {}", 'STATE["a"] = 1'),
        ("STATE = [0]", "alias = STATE\nalias.append(2)"),
        ("STATE = [0]\ndef grow(what):\n    what.append(3)", "grow(STATE)"),
        ("STATE = ''", "global STATE\nSTATE = 'abc'"),
        ("STATE = [[1]]\ndef read(): return STATE", "STATE[0] = [2]\nread().append(1)"),
        ("class Box:\n    kept = []\nSTATE = Box.kept", "Box.kept.append(1)"),
        ("def f(kept=[]): return kept\nSTATE = f()", "f().append(1)"),
    ],
)
def test_a_section_that_changes_what_others_read_is_never_left_out(
    project: Path, before: str, change: str
) -> None:
    project.write_text(lecture("y = 1  # @inspect y", change, READ, "z = 2  # @inspect z", before=before))
    assert ran(project) == ["s0", "s1", "s2", "s3"]
    assert "s1" in ran(project)
    edit(project, change.splitlines()[-1].strip(), f"{change.splitlines()[-1].strip()}; pass")
    again = ran(project)  # compared with a run of everything
    assert "s1" in again
    assert "s0" not in again


@pytest.mark.parametrize(
    "change",
    [
        "import os\nos.environ['SECTION'] = 'was here'",
        "import decimal\ndecimal.getcontext().prec = 5",
        "from pathlib import Path\nPath('left.txt').write_text('behind')",
        "import warnings\nwarnings.simplefilter('always')",
        "import sys\nsys.setrecursionlimit(2345)",
    ],
)
def test_a_section_that_changes_the_process_makes_those_after_it_depend_on_it(
    project: Path, change: str
) -> None:
    project.write_text(lecture("y = 1", change, "z = 2  # @inspect z"))
    ran(project)
    assert "s1" in ran(project)
    edit(project, change.splitlines()[-1], change.splitlines()[-1] + "  # edited")
    assert ran(project) == ["s1", "s2"]


@pytest.mark.parametrize(
    "body",
    [
        "x = eval('1')",
        "x = globals()",
        "import sys\nx = sys._getframe().f_lineno  # @inspect x",
        "import os\nx = os.getenv('HOME')",
        "import inspect, json\nx = inspect.getsource(json)",
        "import time\nx = time.time()",
        "import importlib\nx = importlib.import_module('json')",
        "from datetime import datetime\nx = datetime.now()",
        "import subprocess\nx = subprocess.run",
        "from pathlib import Path\nx = Path('/tmp').exists()",
        "x = next(COUNTER)  # @inspect x",
    ],
)
def test_what_the_text_cannot_tell_runs_each_time(project: Path, body: str) -> None:
    project.write_text(lecture("y = 1", body, before="import itertools\nCOUNTER = itertools.count()"))
    ran(project)
    record = run(project, store=of(project))
    assert dict(record.reused).keys() == {"s0"}


def test_a_section_that_runs_twice_or_in_a_branch_runs_each_time(project: Path) -> None:
    text = lecture("y = 1  # @inspect y", "z = 2  # @inspect z", "w = 3")
    project.write_text(
        text.replace("    s1()\n", "    s1()\n    s1()\n").replace(
            "    s2()\n", "    if 1:\n        s2()\n", 1
        )
    )
    ran(project)
    assert ran(project) == ["s1", "s2"]


def test_a_file_that_a_section_reads_is_an_input(project: Path) -> None:
    data = project.parent / "data.txt"
    data.write_text("seven")
    project.write_text(lecture(f"with open({str(data)!r}) as f:\n    x = f.read()  # @inspect x", "y = 1"))
    ran(project)
    assert ran(project) == []
    data.write_text("eight")
    assert ran(project) == ["s0"]
    data.unlink()
    assert ran(project) == ["s0"]


def test_module_code_that_sets_something_is_everybodys_input(project: Path) -> None:
    project.write_text(lecture("y = 1", "z = 2", before="import decimal\ndecimal.getcontext().prec = 7"))
    ran(project)
    assert ran(project) == []
    edit(project, "prec = 7", "prec = 8")
    assert ran(project) == ["s0", "s1"]


def test_code_of_main_between_sections_runs_each_time_and_is_an_input(project: Path) -> None:
    text = lecture("y = 1", "x = len(STATE)  # @inspect x", "z = 2", before="STATE = []")
    project.write_text(text.replace("    s1()\n", "    STATE.append(1)\n    s1()\n", 1))
    ran(project)
    assert ran(project) == []
    edit(project, "STATE.append(1)", "STATE.extend([1, 2])")
    assert ran(project) == ["s1"]


def test_an_exception_of_a_section_elsewhere_leaves_the_others_kept(project: Path) -> None:
    project.write_text(lecture("y = 1", "1 / 0", "z = 2"))
    ran(project)
    assert ran(project) == ["s1"]


# ------------------------------------------------------------------------ composed is run


def test_what_torch_hangs_on_a_dispatch_mode_is_no_change_of_the_lecture(project: Path) -> None:
    text = """
    '''A book.'''
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    def main():
        one()
        two()

    def one():
        with Seen():
            a = torch.ones(2).sum().item()  # @inspect a

    def two():
        with Seen():
            b = torch.ones(3).sum().item()  # @inspect b
    """
    path = write(project.parent, text, "lecture_02.py")
    assert ran(path) == ["one", "two"]
    assert ran(path) == []


@pytest.mark.parametrize("sample", ["tour", "failing"])
def test_the_samples_composed_are_the_samples_run(tmp_path: Path, sample: str) -> None:
    path = SAMPLES / f"{sample}.py"
    file = tmp_path / "store"
    first = run(path, store=Store(file))
    second = run(path, store=Store(file))
    assert same(first) == same(second) == same(run(path))
    assert bool(second.reused) == (sample == "tour")  # in the other each section fails


TENSORS = lecture(
    "a = torch.arange(6.0)  # @inspect a\nb = a.view(2, 3)  # @inspect b\nassert b.shape == (2, 3)",
    "c = torch.ones(2)  # @inspect c\nd = [c, c.view(1, 2)]  # @inspect d\nfor i in range(9):\n    e = torch.ones(i)  # @inspect e",
    "f = torch.rand(3)  # @inspect f, f[:2]\nassert (f < 1).all()",
    before="import torch",
)


def test_memory_is_numbered_as_in_a_run_of_everything(project: Path) -> None:
    project.write_text(TENSORS)
    ran(project)
    edit(project, "a = torch.arange(6.0)", "z = torch.ones(4)  # @inspect z\n    a = torch.arange(6.0)")
    assert ran(project) == ["s0"]
    edit(project, "c = torch.ones(2)", "c = torch.ones(3)")
    assert ran(project) == ["s1"]


def test_a_tensor_of_the_module_is_shared_by_sections_so_they_run(project: Path) -> None:
    project.write_text(
        lecture(
            "x = W  # @inspect x",
            "y = 1",
            "z = W.T  # @inspect z",
            before="import torch\nW = torch.ones(2, 2)",
        )
    )
    ran(project)
    assert ran(project) == ["s0", "s2"]


PIECES = [
    "x = 1  # @inspect x",
    "STATE.append({n})",
    "y = len(STATE)  # @inspect y",
    "for i in range({n} + 3):\n    z = i * {n}  # @inspect z",
    "w = helper({n})  # @inspect w",
    "assert helper(1) == 2, 'two'",
    "note(f'{{len(STATE)}} so far')",
    "v = random.random()  # @inspect v",
    "u = [helper(k) for k in range({n})]  # @inspect u",
    "raise ValueError({n})",
    "global TOP\nTOP = {n}",
    "t = TOP  # @inspect t",
    "print({n})",
]
bodies = st.lists(st.tuples(st.sampled_from(PIECES), st.integers(0, 4)), min_size=1, max_size=3)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(bodies, min_size=2, max_size=4), min_size=2, max_size=4),
    st.lists(st.integers(1, 3), min_size=4, max_size=4),
)
def test_whatever_the_edits_the_record_is_that_of_a_run_of_everything(
    tmp_path_factory, versions: list[list[list[tuple[str, int]]]], helpers: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("random")
    path, file = folder / "lecture_01.py", folder / "store"
    for sections, times in zip(versions, helpers, strict=False):
        before = f"import random\nSTATE = []\nTOP = 0\ndef helper(x):\n    return x * 2 ** {times} // {2 ** (times - 1)}"
        texts = ["\n".join(piece.format(n=n) for piece, n in body) for body in sections]
        path.write_text(lecture(*(_legal(text) for text in texts), before=before))
        assert same(run(path, store=Store(file))) == same(run(path))


def _legal(text: str) -> str:
    """`global` comes first, and once."""
    return "global TOP\n" * ("global TOP" in text) + text.replace("global TOP\n", "")


# ------------------------------------------------------------------------ the file


def spoil(file: Path, how: str) -> None:
    content = file.read_bytes()
    match how:
        case "cut":
            file.write_bytes(content[: len(content) // 2])
        case "empty":
            file.write_bytes(b"")
        case "damaged":
            file.write_bytes(content[:-20] + b"x" * 20)
        case "another version":
            file.write_bytes(content.replace(b"fragments 1", b"fragments 9"))
        case "noise":
            file.write_bytes(os.urandom(5000))
        case "folder":
            file.unlink()
            file.mkdir()


@pytest.mark.parametrize("how", ["cut", "empty", "damaged", "another version", "noise", "folder"])
def test_a_store_that_cannot_be_trusted_is_as_good_as_none(project: Path, how: str) -> None:
    ran(project)
    store = of(project)
    assert store is not None
    assert store.file is not None
    spoil(store.file, how)
    assert ran(project) == ALL


class Exploit:
    def __reduce__(self) -> Any:
        return os.mkdir, ("exploited",)


def test_a_store_makes_nothing_but_the_data_of_records(project: Path, tmp_path: Path, monkeypatch) -> None:
    ran(project)
    store = of(project)
    assert store is not None
    monkeypatch.chdir(tmp_path)
    for key in store._found:
        store._used[key] = 1.0, pickle.dumps(Exploit())
    store.save()
    assert ran(project) == ALL
    assert not (tmp_path / "exploited").exists()


def test_a_store_is_bounded_and_forgets_what_was_used_longest_ago(tmp_path: Path, monkeypatch) -> None:
    from litbook import store as room

    monkeypatch.setattr(room, "MOST", 3000)
    one = Store(tmp_path / "store")
    for number in range(10):
        one._found[f"old{number}"] = float(number), b"x" * 1000
    one._used["new"] = 100.0, b"x" * 1000
    one.save()
    assert set(Store(tmp_path / "store")._found) == {"new", "old9"}


def test_a_disk_that_cannot_be_written_costs_nothing_but_time(project: Path) -> None:
    (project.parent.parent / FOLDER).write_text("in the way")
    assert ran(project) == ALL
    assert ran(project) == ALL


def test_a_lecture_of_no_project_has_no_store(tmp_path: Path) -> None:
    assert of(write(tmp_path, BOOK)) is None


# ------------------------------------------------------------------------ the command line


def printed(path: Path, store: Store | None) -> str:
    out = io.StringIO()
    run(path, store=store, listener=Terminal(Console(file=out, width=100, force_terminal=False)))
    return out.getvalue()


def test_the_terminal_shows_a_reused_section_as_if_it_had_run(project: Path) -> None:
    fresh = printed(project, None)
    assert printed(project, of(project)) == fresh
    edit(project, "    b = double(Box.size)", "\n    b = double(Box.size)")
    moved = printed(project, of(project))
    assert moved == printed(project, None)
    assert moved != fresh


def test_the_command_line_reuses_counts_and_can_be_told_not_to(project: Path) -> None:
    def last(*words: str) -> str:
        done = command(project, "--quiet", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    assert last() == "4 claims hold, 0 fail, 0 need another device"
    assert last() == "4 claims hold, 0 fail, 0 need another device; 4 sections reused"
    assert last("--fresh") == "4 claims hold, 0 fail, 0 need another device"
    assert last("first", "second") == "2 claims hold, 0 fail, 0 need another device"
    assert last("--record") == "4 claims hold, 0 fail, 0 need another device"
    assert sorted(p.name for p in (project.parent.parent / FOLDER).iterdir())[0] == ".gitignore"


def test_a_reused_section_says_when_it_ran_and_how_long_it_took(project: Path) -> None:
    first = run(project, store=of(project))
    second = run(project, store=of(project))
    assert dict(second.reused) == dict.fromkeys(ALL, first.environment.date)
    assert {name: second.seconds[name] for name in ALL} == pytest.approx(
        {name: first.seconds[name] for name in ALL}, abs=1e-4
    )
    again = trace.loads(trace.dumps(second))
    assert again == second


def test_shown_values_come_from_the_text_of_now(project: Path) -> None:
    ran(project)
    edit(project, "WIDTH = 4", "WIDTH = 5")
    record = run(project, store=of(project))
    assert shown(record, "a") == [20]
    assert record.count().fails == 1


@pytest.mark.parametrize("python", [sys.executable])
def test_a_first_and_a_second_process_agree(project: Path, python: str, tmp_path: Path) -> None:
    outs = [tmp_path / f"{n}.json" for n in range(2)]
    for out in outs:
        assert command(project, "--quiet", "--out", out).returncode == 0
    first, second = map(trace.read, outs)
    assert same(first) == same(second)
    assert len(second.reused) == 4
