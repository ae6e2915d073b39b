"""The player's values against plain Python under `sys.settrace`: none that is shown as current is false."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.running import SAMPLES, record, section
from tests.tracing import compare, player_states, track

from litbook.run.run import run


@pytest.mark.parametrize(("name", "steps", "current"), [("stepped", 350, 900), ("stepped_parts", 700, 3000)])
def test_no_value_that_is_shown_as_current_is_another(
    tmp_path: Path, name: str, steps: int, current: int
) -> None:
    file = tmp_path / f"lecture_{name}.py"
    shutil.copy(SAMPLES / f"{name}.py", file)
    done = compare(file, run(file, device="cpu"))
    assert done.false == []
    assert done.steps - done.lost > steps
    assert done.right == done.current > current
    assert done.cells > 20


def shown(folder: Path, body: str, before: str = "") -> list[dict[str, tuple[str, int]]]:
    """By step what is said of each name of the section, with the line that it was seen at, or 0."""
    states = player_states(track(record(folder, section(body, before))))
    return [{name: told for (_, name), told in state.values.items()} for state in states]


def test_after_a_fold_nothing_of_the_loop_is_known(tmp_path: Path) -> None:
    steps = shown(tmp_path, "k = 1\nfor i in range(40):\n    a = i\n    k += 1\nb = a")
    folded = [step for step in steps if "a" not in step and "i" not in step and "k" not in step]
    assert len(folded) >= 6, "all steps of the last two iterations, before the loop is looked at"
    assert steps[-1] == {"i": ("39", 0), "a": ("39", 0), "k": ("41", 0), "b": ("39", 0)}


def test_what_can_change_is_told_with_its_line(tmp_path: Path) -> None:
    steps = shown(tmp_path, "x = [1]\ny = x\nn = 3\ny.append(2)")
    assert steps[-2:] == [
        {"x": ("[1]", 0), "y": ("[1]", 0), "n": ("3", 0)},
        {"x": ("[1]", 11), "y": ("[1, 2]", 0), "n": ("3", 0)},
    ]


def test_a_name_that_is_deleted_is_gone(tmp_path: Path) -> None:
    steps = shown(tmp_path, "x = 1  # @inspect x + 1\ny = [x]\ndel x, y\nz = 2")
    assert steps[-1] == {"z": ("2", 0)}


def test_where_steps_were_not_kept_no_value_is_of_another(tmp_path: Path) -> None:
    fib = "def fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\n"
    steps = shown(tmp_path, "b = fib(22)  # @inspect b\nc = 1  # @inspect c\nd = 2", fib)
    assert steps[-1] == {"b": ("17711", 0)} or steps[-1] == {"b": ("17,711", 0)}


def test_what_a_hidden_line_gives_is_not_of_the_step_before(tmp_path: Path) -> None:
    steps = shown(tmp_path, "h = 1\nh = 2  # @hide\nk = 3")
    assert [step.get("h") for step in steps[-2:]] == [("1", 0), None], "nobody looked"


def test_the_sides_of_a_claim_that_runs_again_are_not_told(tmp_path: Path) -> None:
    data = track(
        record(tmp_path, section("for i in range(4):\n    assert i * 2 == i + i, 'twice'\nassert i == 3"))
    )
    assert [claim[2] for claim in data["claims"]] == ["judged 4 times", "3 = 3"]


def test_a_view_in_another_dtype_is_redrawn_when_bytes_change(tmp_path: Path) -> None:
    body = "x = torch.tensor([1.0, 2.0])\ny = x.view(torch.int32)\nz = [y]\ny[0] = 0\nw = x"
    states = player_states(track(record(tmp_path, section(body, "import torch"))))
    drawn = [
        {name: [cells[i] for i in reads] for (_, name), reads in names.items()}
        for cells, names, seen in states[-2].memories
        if not seen
    ]
    assert {"x": ["0", "2"]} in drawn
    assert {"y": ["0", "1,073,741,824"]} in drawn
    assert all(seen == 0 for name, (_, seen) in states[-2].values.items() if name[1] in "xy")


def test_what_no_step_can_have_changed_stays_known(tmp_path: Path) -> None:
    steps = shown(tmp_path, "x = [1]\nn = 3\nif n > 2:\n    m = n * 2\nx.append(2)\nk = 1")
    assert [step["x"] for step in steps[-6:-2]] == [("[1]", 0)] * 4
    assert [step["x"] for step in steps[-2:]] == [("[1, 2]", 0)] * 2


@pytest.mark.parametrize(
    "line",
    [
        "len(x)",
        "x += [2]",
        "x[0] = 2",
        "del y",
        "n = next(y)",
        "n = 1 in y",
        "n, m = x, y",
        "n = [*y]",
        "n = [i for i in x]",
    ],
)
def test_what_a_step_may_have_changed_is_told_with_its_line(tmp_path: Path, line: str) -> None:
    steps = shown(tmp_path, f"x = [1]\nz = x\ny = iter(x)\n{line}\nk = 1")
    assert steps[-1]["z"][1] > 0
