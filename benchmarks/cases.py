"""What is measured, in stages, at which sizes. Results are JSON; nothing is judged here.

A stage measures what belongs together, all contestants in turn, and can be measured again alone. What it
finds is a part of the results, laid into them by `merged`.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import outside, texts
from benchmarks.spreads import interleaved

Found = dict[str, Any]
Say = Callable[[str], object]
Turns = Mapping[str, int]  # by contestant
REPO = outside.REPO
LECTURES = {
    "shared": REPO / "benchmarks" / "lectures" / "lecture_shared.py",
    "lecture 02": REPO / "lectures" / "lecture_02",
}
LONG = 60.0  # seconds after which a contestant gets no second turn
EVERYONE = (
    *("plain", "litbook", "run_lecture"),
    *("nbconvert", "edtrace", "edtrace, nothing inspected"),
)


@dataclass(frozen=True)
class Size:
    """How much is measured: for the table, quickly for a look, or next to nothing for a test."""

    rounds: int
    whole: dict[str, Turns]  # by stage
    iterations: int
    snapshots: tuple[int, ...]  # bytes
    growing_lines: tuple[int, ...]
    growing_steps: tuple[int, ...]
    pages: tuple[str, ...] = ("shared", "lecture 02")
    commands: int = 11  # turns of each
    saves: int = 9
    builds: int = 3
    patience: float = 120.0  # seconds that a contestant gets for one lecture
    enough: float = 170.0  # seconds after which whole processes begin no further round
    edtrace: bool = True
    largest_for_edtrace: int = 2**24  # bytes of a tensor: it writes seven times as many


FULL = Size(
    rounds=7,
    whole={
        "shared": dict.fromkeys(EVERYONE, 3),
        "lecture 02": {"plain": 5, "litbook": 5, "run_lecture": 2},
    },
    iterations=10**6,
    snapshots=(2**10, 2**15, 2**20, 2**24, 2**28, 2**30),
    growing_lines=(10, 100, 1_000, 10_000),
    growing_steps=(10**3, 10**4, 10**5, 10**6),
)
QUICK = Size(
    rounds=3,
    whole={
        "shared": dict.fromkeys(EVERYONE, 1),
        "lecture 02": {"plain": 1, "litbook": 1, "run_lecture": 1},
    },
    iterations=10**5,
    snapshots=(2**10, 2**20, 2**26),
    growing_lines=(10, 100, 1_000),
    growing_steps=(10**3, 10**4, 10**5),
    pages=("shared",),
    commands=3,
    saves=3,
    builds=1,
)


@dataclass(frozen=True)
class Stage:
    """What `--only` names. `measure` returns its part of the results; `say` hears what is being measured."""

    name: str
    what: str
    measure: Callable[[Say], Found]


def stages(size: Size) -> list[Stage]:
    """In the order in which they run: what matters most first."""
    return [
        *(
            Stage(f"processes-{name.replace(' ', '-')}", f"whole processes, {name}", part)
            for name in size.whole
            for part in [partial(_processes, size, name)]
        ),
        Stage("commands", "commands that answer at once", partial(_commands_that_answer, size)),
        Stage("save", "a save in `make serve`", partial(_save, size)),
        Stage("build", "a strict build of the site", partial(_build, size)),
        Stage("lines", "what a recorded line costs", partial(_cases_of, size, "lines")),
        Stage("times", "times measured inside a lecture", partial(_cases_of, size, "times")),
        Stage("snapshots", "snapshots of tensors", partial(_snapshots, size)),
        Stage("pages", "drawing pages", partial(_pages, size)),
        Stage("growth", "growth", partial(_growth, size)),
    ]


def merged(results: Found, part: Found) -> None:
    """Lay what a stage has found into the results: entry by entry, so that no other stage's is lost."""
    for name, entries in part.items():
        results.setdefault(name, {}).update(entries)


# ---------------------------------------------------------------------------- inside one process


def planned(size: Size) -> dict[str, tuple[str, Found]]:
    """Names of cases, each with its function in `inside` and the arguments. `small` is what edtrace gets."""
    n = size.iterations
    small = {"small": 0} if not size.edtrace else {}
    few = {"small": min(n, 3000)} | small
    products: Found = {"edtrace": size.edtrace}
    return {
        "a loop, nothing inspected": ("loop", {"size": n, "inspect": False, **few}),
        "a loop, its line inspected": ("loop", {"size": n, "inspect": True, **few}),
        "lines that run once": ("straight", {"size": min(n, 3000), **few}),
        "a recursion 900 deep, 20 times": ("recursion", {"size": 900, "times": 20, "small": 200} | small),
        "a recursion that branches": ("tree", {"size": 22, "small": 10} | small),
        "a training loop": ("training", {"size": min(n, 300), "small": min(n, 100)} | small),
        "small product": ("product", {"side": 64, "repeats": 200, "stepover": False, **products}),
        "small product, `@stepover`": ("product", {"side": 64, "repeats": 200, "stepover": True, **products}),
        "large product": ("product", {"side": 512, "repeats": 20, "stepover": False, **products}),
        "large product, `@stepover`": ("product", {"side": 512, "repeats": 20, "stepover": True, **products}),
    }


def _cases_of(size: Size, kind: str, say: Say) -> Found:
    found: Found = {}
    for name, (case, arguments) in planned(size).items():
        if (case == "product") == (kind == "times"):
            say(name)
            rounds = max(2 * size.rounds, 9) if case == "product" else size.rounds  # the sign test needs 8
            found[name] = inside(case, arguments | {"rounds": rounds}, size)
    return {"cases": found}


def _snapshots(size: Size, say: Say) -> Found:
    found: Found = {}
    most = max(size.snapshots)
    others = [(kind, min(most, 2**28)) for kind in ("strided", "bfloat16", "float64", "int64", "int8")]
    for kind, count in [*(("float32", count) for count in size.snapshots), *others]:
        say(f"{kind}, {count:,} bytes")
        arguments = {
            "kind": kind,
            "size": count,
            "edtrace": size.edtrace and kind == "float32" and count <= size.largest_for_edtrace,
            "rounds": 3 if count > 2**20 else size.rounds,
        }
        found[f"{kind} {count}"] = {"kind": kind, "size": count, **inside("snapshots", arguments, size)}
    return {"snapshots": found}


def _pages(size: Size, say: Say) -> Found:
    found: Found = {}
    for name in size.pages:
        say(name)
        arguments = {"lecture": str(LECTURES[name]), "rounds": size.rounds}
        # edtrace takes no part, and its environment does not have nbconvert's templates
        found[name] = inside("pages", arguments, replace(size, edtrace=False))
    return {"pages": found}


def _growth(size: Size, say: Say) -> Found:
    found: Found = {"lines": [], "steps": []}
    for kind, sizes in (("lines", size.growing_lines), ("steps", size.growing_steps)):
        for n in sizes:
            say(f"{n:,} {kind}")
            arguments = {"kind": kind, "size": n, "rounds": 3, "edtrace": size.edtrace and n <= 10**4}
            found[kind].append(inside("growth", arguments, size))
    return {"growth": found}


def inside(name: str, arguments: Found, size: Size) -> Found:
    """A case of `inside.CASES`, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        python = outside.python() if size.edtrace else Path(sys.executable)
        command = [str(python), "-m", "benchmarks.inside", name, json.dumps(arguments), str(result)]
        return _result(command, result, 2 * size.patience)


def _result(command: list[str], result: Path, patience: float) -> Found:
    done = outside.call(command, REPO, patience)
    if done.status:
        raise RuntimeError(f"{' '.join(command[1:5])} ended with {done.status}:\n{done.complaint[-2000:]}")
    found: Found = json.loads(result.read_text(encoding="utf-8"))
    return found


# ---------------------------------------------------------------------------- what an author waits for


def _commands_that_answer(size: Size, say: Say) -> Found:
    """Commands that run no lecture, and a Python that does nothing."""
    tool, name = str(REPO / "tools" / "run_lecture.py"), "lecture_02"
    asked = {
        "`python -c pass`": ["-c", "pass"],
        "`run_lecture.py --help`": [tool, "--help"],
        "`run_lecture.py lecture_02 --list`": [tool, name, "--list"],
        "`run_lecture.py lecture_02 no_such_section`": [tool, name, "no_such_section"],
    }
    say(f"{size.commands} turns of {len(asked)} commands")

    def seconds(arguments: list[str]) -> float:
        return outside.call([sys.executable, *arguments], REPO, size.patience).seconds

    ways = {name: partial(seconds, arguments) for name, arguments in asked.items()}
    return {"commands": interleaved(ways, size.commands)}


def _save(size: Size, say: Say) -> Found:
    say(f"{size.saves} saves, each of another section of lecture 02")
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        command = [sys.executable, "-m", "benchmarks.saves", str(size.saves), str(result)]
        return {"save": _result(command, result, 3 * size.patience)}


def _build(size: Size, say: Say) -> Found:
    """Each build in a process of its own, as `make build` has it."""
    found: Found = {"seconds": [], "said": []}
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        for i in range(size.builds):
            say(f"build {i + 1} of {size.builds}")
            command = [sys.executable, "-m", "benchmarks.builds", str(result)]
            start = perf_counter()
            found["said"].append(_result(command, result, 3 * size.patience))
            found["seconds"].append(perf_counter() - start)
    return {"build": found}


# ---------------------------------------------------------------------------- whole processes


def _processes(size: Size, name: str, say: Say) -> Found:
    turns = {who: n for who, n in size.whole[name].items() if size.edtrace or not who.startswith("edtrace")}
    return {"whole": {name: whole(LECTURES[name], turns, size, say)}}


def whole(lecture: Path, turns: Turns, size: Size, say: Say) -> Found:
    """A lecture, run by each contestant in a process of its own: seconds outside, and what the process says.

    A contestant that fails, or needs longer than `size.patience`, takes no further part; `failed` says why.
    One that needs longer than `LONG` has one turn. No round begins after `size.enough` seconds.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        commands = {
            name: it for name, it in _commands(lecture, folder, size.edtrace).items() if name in turns
        }
        found: Found = {"seconds": {name: [] for name in commands}, "memory": {}, "said": {}, "failed": {}}
        start = perf_counter()
        for i in range(max(turns.values())):
            if i and perf_counter() - start > size.enough:
                break
            names = [name for name in commands if i < turns[name] and name not in found["failed"]]
            say(f"round {i + 1}: {', '.join(names)}")
            for name in names[i % len(names) :] + names[: i % len(names)]:
                if max(found["seconds"][name], default=0.0) < LONG:
                    take_turn(name, commands[name], folder, found, size.patience)
        for name in found["failed"]:
            del found["seconds"][name]
        if "plain" in found["failed"]:
            raise RuntimeError(f"{lecture.name} fails in plain Python: {found['failed']['plain']}")
    return found


def take_turn(name: str, command: list[str], folder: Path, found: Found, patience: float) -> None:
    """Run the contestant, and note in `found` what it took, what it says, or why it failed."""
    try:
        done = outside.call(command, folder, patience)
    except outside.TooLong as error:
        found["failed"][name] = str(error)
        return
    found["seconds"][name].append(done.seconds)
    found["memory"].setdefault(name, []).append(done.memory)
    if done.status:
        found["failed"][name] = (done.complaint.strip().splitlines() or ["no message"])[-1]
        return
    said, left = folder / f"{name}.json", folder / LEAVES.get(name, "nothing")
    if said.exists():
        found["said"].setdefault(name, []).append(json.loads(said.read_text(encoding="utf-8")))
    elif left.exists():
        content = left.read_bytes()
        weights = {"bytes": len(content), "gzip": len(gzip.compress(content, mtime=0))}
        found["said"].setdefault(name, []).append(weights)


LEAVES = {"run_lecture": "out.json", "nbconvert": "notebook.html"}


def _commands(lecture: Path, folder: Path, edtrace: bool) -> dict[str, list[str]]:
    """Each contestant's command. What it is to read is written into `folder`.

    A folder is read by litbook and by plain Python alone: a notebook and edtrace want one file.
    """
    one = [sys.executable, "-m", "benchmarks.one"]
    run_lecture = [sys.executable, str(REPO / "tools" / "run_lecture.py"), str(lecture), "--quiet"]
    commands = {
        "plain": [*one, "plain", str(lecture), "plain.json"],
        "litbook": [*one, "litbook", str(lecture), "litbook.json"],
        "run_lecture": [*run_lecture, "--out", "out.json"],
    }
    if lecture.is_dir():
        return commands
    text = lecture.read_text(encoding="utf-8")
    (folder / "notebook.ipynb").write_text(texts.notebook(text, lecture.stem), encoding="utf-8")
    commands["nbconvert"] = [
        *(sys.executable, "-m", "nbconvert", "--execute", "--to", "html"),
        *("--ExecutePreprocessor.timeout=-1", "notebook.ipynb"),
    ]
    if edtrace:
        for name, inspect in (("edtrace", True), ("edtrace, nothing inspected", False)):
            renamed = folder / f"renamed_{inspect}.py"
            renamed.write_text(texts.for_edtrace(text, inspect=inspect), encoding="utf-8")
            python = str(outside.python())
            commands[name] = [python, "-m", "benchmarks.one", "edtrace", str(renamed), f"{name}.json"]
    return commands
