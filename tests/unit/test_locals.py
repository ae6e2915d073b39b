"""Local names: what they hold after each step that touches them, though nobody asked."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from tests.running import messages, one, plain, record, section, steps

from litbook.python.scopes import steady_names, touched_names
from litbook.record import encoding, model, ranks, recordings
from litbook.record.limits import GLIMPSES

TORCH = "import torch"


def number(shot: model.Snapshot) -> Any:
    """A number, or how many things there are."""
    return shot.length if isinstance(shot, model.Sequence) else plain(shot)


def seen(made: model.Record) -> list[tuple[int, str, Any]]:
    """Line, name and value of each look; of a name that is not known any more `...`."""
    entry, lines = one(made), steps(made)[-len(one(made).steps) :]
    return [
        (lines[it.step], it.name, ... if it.value is None else number(entry.snapshots[it.value]))
        for it in entry.locals
    ]


def told(made: model.Record) -> list[tuple[str, Any]]:
    return [(name, value) for _, name, value in seen(made)]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("x = y = f(z)", "x y"),
        ("x, (y, *z) = f()", "x y z"),
        ("x[i].y = f(z)", "x"),
        ("x += 1", "x"),
        ("x: int = 3", "x"),
        ("x: int", ""),
        ("x.add_(y)", "x y"),
        ("f(x, y.z, *w, k=v)", "x y w"),
        ("x.a().b()", ""),
        ("for x, y in z: w = 1", "x y"),
        ("with f() as x, g() as (y, z): w = 1", "x y z"),
        ("a and (b := 1)", ""),
        ("del x", ""),
        ("shared = 1", ""),
        ("kept = 1", ""),
        ("taken = 1", ""),
    ],
)
def test_a_statement_touches_what_has_a_value_when_it_has_run(line: str, names: str) -> None:
    others = "v, w, x, y, z, a, b, taken = range(8)\n"
    text = f"def around():\n kept = 1\n def f():\n  global shared; nonlocal kept\n  {others}  {line}\n"
    function = ast.parse(text + "  def g():\n   nonlocal taken\n   del taken\n").body[0].body[1]  # type: ignore[attr-defined]
    steady = steady_names(function)
    assert [name for name in touched_names(function.body[3]) if name in steady] == names.split()


def test_each_name_is_kept_when_it_changes(tmp_path: Path) -> None:
    made = record(
        tmp_path, section("a = 1\nb = [a]\nb.append(2)\nc = a\nc = 1\na += 1  # @inspect a\nprint(b)")
    )
    assert messages(made) == []
    # Not `a` where it is inspected, nor a number that is as it was; a list that was looked at again is.
    assert told(made) == [("a", 1), ("b", 1), ("b", 2), ("c", 1), ("b", 2)]


def test_in_a_loop_the_first_turns_and_the_end_are_known_and_the_rest_is_not(tmp_path: Path) -> None:
    made = record(tmp_path, section("n = 0\nfor i in range(9):\n    n += i\nm = n"))
    first = [("n", 0), ("i", 0), ("i", 1), ("n", 1), ("i", 2), ("n", 3)]
    assert told(made) == [*first, ("i", ...), ("n", ...), ("i", 8), ("n", 36), ("m", 36)]


def test_a_loop_inside_another_is_looked_at_in_the_first_turns_of_both(tmp_path: Path) -> None:
    made = record(tmp_path, section("for i in range(9):\n    for j in range(9):\n        k = 10 * i + j"))
    pairs = [value for name, value in told(made) if name == "k" and value is not ...]
    assert pairs == [10 * i + j for i in range(3) for j in (0, 1, 2, 8)] + [88]


@pytest.mark.parametrize(
    ("body", "last"),
    [
        ("for i in []:\n    x = i\ny = 1", [("y", 1)]),
        ("for i in range(9):\n    if i == 5: break\n    x = i", [("i", 5), ("x", 4)]),
        ("i = 0\nwhile True:\n    i += 1\n    if i > 7: break\ny = i", [("i", 8), ("y", 8)]),
        ("try:\n    for i in range(9): x = 1 // (7 - i)\nexcept ZeroDivisionError: y = 1", [("y", 1)]),
    ],
)
def test_however_a_loop_ends(tmp_path: Path, body: str, last: list[tuple[str, Any]]) -> None:
    made = record(tmp_path, section(body))
    assert messages(made) == []
    assert told(made)[-len(last) :] == last


def test_a_name_is_known_no_more_where_a_recursion_ended_the_looks(tmp_path: Path) -> None:
    text = (
        "def f(n):\n    for i in range(9):\n        if n and not i: f(n - 1)\n        x = n\n    return x\n"
    )
    made = record(tmp_path, section("f(1)", text))
    outer = [
        v for frame, v in ((it.frame, it.value) for it in one(made).locals if it.name == "x") if frame == 1
    ]
    assert [plain(one(made).snapshots[v]) for v in outer if v is not None][-1] == 1


def test_tensors_are_glimpsed_and_lists_of_calls_end(tmp_path: Path) -> None:
    text = "def f(n):\n    x = torch.full((n,), 1.5)\n    return x\n"
    body = "x = torch.zeros(2)\nx[0] = 3\ny = [f(2) for _ in range(4)]\n"
    body += "\n".join(["f(1)"] * (2 * GLIMPSES))
    made = record(tmp_path, section(body, TORCH + "\n" + text))
    assert messages(made) == []
    held = [it for it in one(made).locals if it.name == "x" and it.frame > 0]
    assert len(held) == GLIMPSES, "later ones are not looked at, and no name is said to hold what it does not"
    mine = [one(made).snapshots[it.value] for it in one(made).locals if it.frame == 0 and it.name == "x"]  # type: ignore[index]
    assert [shot.memory for shot in mine] == [(0, 0), (3, 0)]  # type: ignore[union-attr]
    assert len({shot.storage for shot in mine}) == 1  # type: ignore[union-attr]


def test_nothing_runs_and_nothing_stays_alive(tmp_path: Path) -> None:
    text = """
        import weakref
        class Loud:
            def __repr__(self): raise SystemExit
            def __eq__(self, other): raise SystemExit
            def __getattr__(self, name): raise SystemExit
        """
    made = record(tmp_path, section("x = Loud()\nr = weakref.ref(x)\nx = 1\nassert r() is None", text))
    assert messages(made) == []
    assert [claim.verdict for claim in one(made).claims] == ["holds"]


def test_generators_and_coroutines_keep_their_own(tmp_path: Path) -> None:
    text = "def gen(n):\n    for i in range(n):\n        x = i * n\n        yield x\n"
    made = record(tmp_path, section("a, b = gen(2), gen(3)\nnext(a), next(b), next(b)", text))
    assert messages(made) == []
    names = {frame: [plain(one(made).snapshots[it.value]) for it in one(made).locals if it.frame == frame and it.name == "x"]  # type: ignore[index]
             for frame in (1, 2)}  # fmt: skip
    assert names == {1: [0], 2: [0, 3]}


def test_a_recording_holds_none_and_no_snapshot_of_them(tmp_path: Path) -> None:
    made = record(tmp_path, section("x = [1234]\ny = 5  # @inspect y\nassert y == 5"))
    kept = one(recordings.trim(made))
    assert kept.locals == ()
    assert [plain(kept.snapshots[v.value]) for v in kept.values] == [5]  # type: ignore[index]
    assert [plain(shot) for shot in kept.snapshots] == [5]


def test_of_ranks_neither(tmp_path: Path) -> None:
    both = [record(tmp_path, section(f"a = [{rank}]\nb = 5  # @inspect b\nassert b == 5")) for rank in (0, 1)]
    made = ranks.join_ranks(both[0], both, ["one"])
    assert [len(ranks.of_rank(one(made), rank).locals) for rank in (0, 1)] == [1, 1]
    kept = encoding.loads(recordings.dumps(made))
    assert [ranks.of_rank(one(kept), rank).locals for rank in (0, 1)] == [(), ()]
    assert [plain(shot) for shot in one(kept).snapshots] == [5]
