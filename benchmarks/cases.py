"""What is measured, at which sizes. Results are JSON; nothing is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import outside, texts

Found = dict[str, Any]
REPO = outside.REPO
LECTURES = {
    "shared": REPO / "benchmarks" / "lectures" / "lecture_shared.py",
    "lecture 02": REPO / "lectures" / "lecture_02.py",
}
PATIENCE = 600.0  # seconds that one contestant gets for one lecture
LONG = 90.0  # seconds after which a contestant gets no second turn


@dataclass(frozen=True)
class Size:
    """How much is measured: for the table, quickly for a look, or next to nothing for a test."""

    rounds: int
    whole_rounds: dict[str, int]  # by lecture
    iterations: int
    snapshots: tuple[int, ...]  # bytes
    growing_lines: tuple[int, ...]
    growing_steps: tuple[int, ...]
    edtrace: bool = True
    largest_for_edtrace: int = 2**24  # bytes of a tensor: it writes seven times as many


FULL = Size(
    rounds=7,
    whole_rounds={"shared": 3, "lecture 02": 3},
    iterations=10**6,
    snapshots=(2**10, 2**15, 2**20, 2**24, 2**28, 2**30),
    growing_lines=(10, 100, 1_000, 10_000),
    growing_steps=(10**3, 10**4, 10**5, 10**6),
)
QUICK = Size(
    rounds=3,
    whole_rounds={"shared": 2},
    iterations=10**5,
    snapshots=(2**10, 2**20, 2**26),
    growing_lines=(10, 100, 1_000),
    growing_steps=(10**3, 10**4, 10**5),
)


def measured(size: Size, say: Callable[[str], object]) -> Found:
    """Everything that the page shows, measured now. `say` hears what is being measured."""
    found: Found = {"whole": {}, "cases": {}, "snapshots": []}
    for name, rounds in size.whole_rounds.items():
        say(f"whole processes: {name}, {rounds} rounds")
        found["whole"][name] = whole(LECTURES[name], rounds, edtrace=size.edtrace)
    for name, (case, arguments) in _cases(size).items():
        say(name)
        rounds = (
            max(2 * size.rounds, 9) if case == "product" else size.rounds
        )  # the sign test needs eight or more
        found["cases"][name] = inside(case, arguments | {"rounds": rounds}, size.edtrace)
    for kind, count in _tensors(size):
        say(f"snapshot: {kind}, {count:,} bytes")
        alone = size.edtrace and kind == "float32" and count <= size.largest_for_edtrace
        arguments = {
            "kind": kind,
            "size": count,
            "edtrace": alone,
            "rounds": 3 if count > 2**20 else size.rounds,
        }
        shot = inside("snapshots", arguments, size.edtrace)
        found["snapshots"].append({"kind": kind, "size": count, **shot})
    say("growth")
    arguments = {"lines": size.growing_lines, "steps": size.growing_steps, "rounds": 3}
    found["growth"] = inside("growth", arguments, size.edtrace)
    return found


def _cases(size: Size) -> dict[str, tuple[str, Found]]:
    """Names of cases, each with its function in `inside` and the arguments. `small` is what edtrace gets."""
    n = size.iterations
    small = {"small": 0} if not size.edtrace else {}
    few = {"small": min(n, 3000)} | small
    products: Found = {"edtrace": size.edtrace}
    return {
        "a loop, nothing inspected": ("loop", {"size": n, "inspect": False, **few}),
        "a loop, its line inspected": ("loop", {"size": n, "inspect": True, **few}),
        "lines that run once": ("straight", {"size": min(n, 1000), **few}),
        "a recursion 900 deep, 20 times": ("recursion", {"size": 900, "times": 20, "small": 200} | small),
        "a recursion that branches": ("tree", {"size": 22, "small": 10} | small),
        "a training loop": ("training", {"size": min(n, 300), "small": min(n, 100)} | small),
        "small product": ("product", {"side": 64, "repeats": 200, "stepover": False, **products}),
        "small product, `@stepover`": ("product", {"side": 64, "repeats": 200, "stepover": True, **products}),
        "large product": ("product", {"side": 512, "repeats": 20, "stepover": False, **products}),
        "large product, `@stepover`": ("product", {"side": 512, "repeats": 20, "stepover": True, **products}),
    }


def _tensors(size: Size) -> list[tuple[str, int]]:
    most = max(size.snapshots)
    others = [(kind, min(most, 2**28)) for kind in ("strided", "bfloat16", "float64", "int64", "int8")]
    return [("float32", count) for count in size.snapshots] + others


def inside(name: str, arguments: Found, edtrace: bool = True) -> Found:
    """A case of `inside.CASES`, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        python = outside.python() if edtrace else Path(sys.executable)
        command = [str(python), "-m", "benchmarks.inside", name, json.dumps(arguments), str(result)]
        done = outside.call(command, REPO, 4 * PATIENCE)
        if done.returncode:
            raise RuntimeError(f"the case {name!r} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        found: Found = json.loads(result.read_text(encoding="utf-8"))
        return found


# ---------------------------------------------------------------------------- whole processes


def whole(lecture: Path, rounds: int, *, edtrace: bool) -> Found:
    """A lecture, run by each contestant in a process of its own: seconds outside, and what the process says.

    A contestant that fails, or needs longer than `PATIENCE`, takes no further part; `failed` says why. One
    that needs longer than `LONG` has one turn.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        commands = _commands(lecture, folder, edtrace)
        found: Found = {"seconds": {name: [] for name in commands}, "said": {}, "failed": {}}
        for i in range(rounds):
            names = list(commands)
            for name in names[i % len(names) :] + names[: i % len(names)]:
                if name not in found["failed"] and max(found["seconds"][name], default=0.0) < LONG:
                    _take_turn(name, commands[name], folder, found)
        for name in found["failed"]:
            del found["seconds"][name]
        if "plain" in found["failed"]:
            raise RuntimeError(f"{lecture.name} fails in plain Python: {found['failed']['plain']}")
    return found


def _take_turn(name: str, command: list[str], folder: Path, found: Found) -> None:
    start = perf_counter()
    try:
        done = outside.call(command, folder, PATIENCE)
    except subprocess.TimeoutExpired:
        found["failed"][name] = f"not finished after {PATIENCE:.0f} s"
        return
    found["seconds"][name].append(perf_counter() - start)
    if done.returncode:
        found["failed"][name] = (done.stderr.strip().splitlines() or ["no message"])[-1]
    result = folder / f"{name}.json"
    if result.exists():
        found["said"].setdefault(name, []).append(json.loads(result.read_text(encoding="utf-8")))


def _commands(lecture: Path, folder: Path, edtrace: bool) -> dict[str, list[str]]:
    """Each contestant's command. What it is to read is written into `folder`."""
    one = [sys.executable, "-m", "benchmarks.one"]
    text = lecture.read_text(encoding="utf-8")
    (folder / "notebook.ipynb").write_text(texts.notebook(text, lecture.stem), encoding="utf-8")
    run_lecture = [sys.executable, str(REPO / "tools" / "run_lecture.py"), str(lecture), "--quiet"]
    commands = {
        "plain": [*one, "plain", str(lecture), "plain.json"],
        "litbook": [*one, "litbook", str(lecture), "litbook.json"],
        "run_lecture": [*run_lecture, "--fresh", "--out", "out.json"],
        "run_lecture, again": [*run_lecture, "--out", "out.json"],
        "nbconvert": [
            *(sys.executable, "-m", "nbconvert", "--execute", "--to", "html"),
            *("--ExecutePreprocessor.timeout=-1", "notebook.ipynb"),
        ],
    }
    if edtrace:
        for name, inspect in (("edtrace", True), ("edtrace, nothing inspected", False)):
            renamed = folder / f"renamed_{inspect}.py"
            renamed.write_text(texts.for_edtrace(text, inspect=inspect), encoding="utf-8")
            python = str(outside.python())
            commands[name] = [python, "-m", "benchmarks.one", "edtrace", str(renamed), f"{name}.json"]
    return commands
