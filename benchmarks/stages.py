"""What is measured, in stages, at which sizes. Nothing is judged here."""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import contestants, texts
from benchmarks.contestants import REPO, Failed, call
from benchmarks.one import left
from benchmarks.results import Results, add, interleaved, load, merge

SHARED, LECTURE_02 = REPO / "benchmarks" / "lectures" / "lecture_shared.py", REPO / "lectures" / "lecture_02"
PATIENCE = 120.0  # seconds that a contestant gets for one lecture


@dataclass(frozen=True)
class Size:
    """How much is measured: for the page, or for a look."""

    rounds: int = 7
    whole: int = 5  # rounds of whole processes
    iterations: int = 10**6
    snapshots: tuple[int, ...] = (2**10, 2**15, 2**20, 2**24, 2**28, 2**30)
    lines: tuple[int, ...] = (10, 100, 1_000, 10_000)
    steps: tuple[int, ...] = (10**3, 10**4, 10**5, 10**6)
    commands: int = 11
    saves: int = 9
    builds: int = 3


QUICK = Size(2, 1, 10**5, (2**10, 2**20, 2**26), (10, 100, 1_000), (10**3, 10**4, 10**5), 3, 2, 1)


class Measuring:
    """A stage's `results`; whom it could not measure is in `absent`, with the reason."""

    def __init__(self, size: Size, say: Callable[[str], object]) -> None:
        self.size, self.say = size, say
        self.results: Results = {}
        self.python, missing = contestants.python()
        self.absent = dict(missing)
        if importlib.util.find_spec("mkdocs_jupyter") is None:
            self.absent["mkdocs-jupyter"] = "not installed here"

    def run(self, module: str, *arguments: object, ours: bool = False) -> tuple[float, int]:
        """Take what a module of ours finds in a process of its own; the process's seconds and memory."""
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "result.json")
            python = sys.executable if ours else str(self.python)
            command = [python, "-m", f"benchmarks.{module}", *map(str, arguments), str(result)]
            took = call(command, REPO, 4 * PATIENCE)
            merge(self.results, list(load(result).values()))
            return took

    def inside(self, case: str, **arguments: object) -> None:
        self.say(f"{case}: {', '.join(map(str, arguments.values()))}")
        self.run("inside", case, json.dumps(arguments))


def whole(name: str, lecture: Path, it: Measuring) -> None:
    """A lecture, run by each contestant in a process of its own. Who fails takes no further part."""
    ways: dict[str, Callable[[], tuple[float, int]]] = {}
    for way in ("plain", "litbook"):
        ways[way] = partial(it.run, "one", way, lecture, name)
    tool = [sys.executable, str(REPO / "tools" / "run_lecture.py"), str(lecture), "--quiet", "--out"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        ways["run_lecture.py"] = partial(call, [*tool, "out.json"], folder, PATIENCE)
        if lecture.is_file():  # a notebook and the peers want one file
            import nbformat

            text = lecture.read_text(encoding="utf-8")
            nbformat.write(texts.notebook(text), folder / "notebook.ipynb")
            convert = [sys.executable, "-m", "nbconvert", "--execute", "--to", "html", "notebook.ipynb"]
            ways["nbconvert"] = partial(call, convert, folder, PATIENCE)
            for way in contestants.PEERS:
                if way not in it.absent:
                    (folder / f"lecture_{way}.py").write_text(texts.renamed(text, way), encoding="utf-8")
                    ways[way] = partial(it.run, "one", way, folder / f"lecture_{way}.py", name)
        for i in range(it.size.whole):
            it.say(f"round {i + 1}: {', '.join(ways)}")
            turn = i % len(ways)
            for who in [*list(ways)[turn:], *list(ways)[:turn]]:
                try:
                    seconds, memory = ways[who]()
                except Failed as error:
                    del ways[who]
                    it.absent[f"{who}, {name}"] = str(error)
                    continue
                add(it.results, f"whole process / {name}", {who: seconds})
                add(it.results, f"memory of the process / {name}", {who: memory}, "byte")
        if (page := folder / "notebook.html").exists():
            left(it.results, name, {"nbconvert": page.read_bytes()})
    if "plain" not in ways:
        raise Failed(f"{lecture.name} fails in plain Python: {it.absent[f'plain, {name}']}")


def commands(it: Measuring) -> None:
    tool = [sys.executable, str(REPO / "tools" / "run_lecture.py")]
    refused = ["sh", "-c", '"$@"; true', "sh", *tool]  # its exit status is 2
    asked = {
        "`python -c pass`": [sys.executable, "-c", "pass"],
        "`run_lecture.py --help`": [*tool, "--help"],
        "`run_lecture.py lecture_02 --list`": [*tool, "lecture_02", "--list"],
        "`run_lecture.py lecture_02 no_such_section`": [*refused, "lecture_02", "no_such_section"],
    }
    ways = {name: lambda words=words: call(words, REPO, PATIENCE)[0] for name, words in asked.items()}
    for name, seconds in interleaved(ways, it.size.commands).items():
        add(it.results, f"a command that runs no lecture / {name}", {"seconds": seconds})


def saves(it: Measuring) -> None:
    who = ["litbook", *(peer for peer in ("mkdocs-jupyter", "lectrace") if peer not in it.absent)]
    it.run("saves", it.size.saves, ",".join(who))


def build(it: Measuring) -> None:
    for _ in range(it.size.builds):
        seconds, _ = it.run("one", "build", REPO / "mkdocs.yml", "a strict build", ours=True)
        add(it.results, "a strict build / the whole process", {"seconds": seconds})


def lines(it: Measuring) -> None:
    """What a recorded line costs. edtrace gets smaller sizes, where ours would take it minutes."""
    n, edtrace = it.size.iterations, "edtrace" not in it.absent
    for kind, size, small in (
        ("a loop, nothing inspected", n, 3000),
        ("a loop, its line inspected", n, 3000),
        ("lines that run once", 3000, 3000),
        ("a recursion 900 deep", 20, 1),
        ("a recursion that branches", 22, 10),
        ("a training loop", 300, 300),
    ):
        it.inside("lines", kind=kind, size=size, small=small if edtrace else 0, rounds=it.size.rounds)


def times(it: Measuring) -> None:
    for name, side, repeats in (("small", 64, 200), ("large", 512, 20)):
        for more, stepover in (("", False), (", `@stepover`", True)):
            arguments = {"row": name + more, "side": side, "repeats": repeats, "stepover": stepover}
            it.inside("matmul", **arguments, edtrace="edtrace" not in it.absent, rounds=2 * it.size.rounds)


def snapshots(it: Measuring) -> None:
    most = min(max(it.size.snapshots), 2**28)
    for kind, size in [
        *(("float32", size) for size in it.size.snapshots),
        *((kind, most) for kind in ("strided", "bfloat16", "float64", "int64", "int8")),
    ]:
        edtrace = (
            "edtrace" not in it.absent and kind == "float32" and size <= 2**24
        )  # it writes seven times as much
        it.inside(
            "snapshots", kind=kind, size=size, edtrace=edtrace, rounds=3 if size > 2**20 else it.size.rounds
        )


def growth(it: Measuring) -> None:
    for kind, sizes in (("lines", it.size.lines), ("iterations", it.size.steps)):
        for size in sizes:
            edtrace = "edtrace" not in it.absent and size <= 10**4
            it.inside("growth", kind=kind, size=size, edtrace=edtrace, rounds=3)


STAGES: dict[str, Callable[[Measuring], None]] = {
    "shared": partial(whole, "shared", SHARED), "lecture-02": partial(whole, "lecture 02", LECTURE_02),
    "commands": commands, "saves": saves, "build": build, "lines": lines, "times": times,
    "snapshots": snapshots, "growth": growth,
}  # fmt: skip
