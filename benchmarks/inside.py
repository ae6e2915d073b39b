"""Ways that take turns within one process: `python -m benchmarks.inside NAME ARGUMENTS RESULT`.

ARGUMENTS is JSON, RESULT a file of JSON. Each function of `CASES` returns what was
measured, as lists of seconds, one for each round.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import msgspec

from benchmarks import notebooks, texts
from benchmarks.one import bibliography_of, program, silence
from benchmarks.spreads import interleaved, spread
from litbook.record import encoding, model

Found = dict[str, Any]


BUDGET = 25.0  # seconds, after which a case makes no further round than it must


def lines(case: texts.Case, rounds: int, small: texts.Case | None) -> Found:
    """A lecture in plain Python, recorded, and as a notebook; edtrace runs the `small` one of the same kind.

    Seconds are those of the section alone, without reading and compiling the text; edtrace's are of its run.
    """
    with tempfile.TemporaryDirectory() as folder, notebooks.kernel() as kernel:
        lecture, other = Path(folder, "lecture_case.py"), Path(folder, "lecture_small.py")
        lecture.write_text(case.text, encoding="utf-8")
        last: Found = {}
        ways = {
            "plain": lambda: _seconds_of_one(lecture),
            "litbook": lambda: _recorded(lecture, last),
            "nbconvert": lambda: _in_a_notebook(kernel, case.text, last),
        }
        if small is not None:
            other.write_text(small.text, encoding="utf-8")
            ways["small plain"] = lambda: _seconds_of_one(other)
            ways["edtrace"] = lambda: _edtraced(small.text, Path(folder), last)
        found: Found = {"seconds": interleaved(ways, rounds, 5, BUDGET)}
    return found | {"lines": case.lines, "small lines": small.lines if small else 0, **last}


def _seconds_of_one(lecture: Path) -> float:
    """What the section takes in plain Python."""
    with silence():
        module = program(lecture)
        start = perf_counter()
        module.main()
        return perf_counter() - start


def _recorded(lecture: Path, last: Found) -> float:
    from litbook.run.run import run

    record = run(lecture)
    if problems := [error.message for _, error in record.errors()] or record.count()["fails"]:
        raise AssertionError(f"the case fails: {problems}")
    text = encoding.dumps(record).encode()
    last["bytes"], last["gzip"] = len(text), len(gzip.compress(text, mtime=0))
    return record.by_key["one"].seconds


def _in_a_notebook(kernel: notebooks.Kernel, text: str, last: Found) -> float:
    seconds, notebook = kernel.run(text)
    last["notebook bytes"] = notebooks.weight(notebook)
    return seconds


def _edtraced(text: str, folder: Path, last: Found) -> float:
    name = "edtraced_case"
    (folder / f"{name}.py").write_text(texts.for_edtrace(text), encoding="utf-8")
    sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    execute = importlib.import_module("edtrace.execute").execute
    try:
        start = perf_counter()
        with silence():
            traced = execute(module_name=name, inspect_all_variables=False)
        seconds = perf_counter() - start
    finally:
        sys.settrace(None)
        sys.path.remove(str(folder))
    written = json.dumps(asdict(traced), indent=2).encode()
    last["edtrace bytes"], last["edtrace gzip"] = len(written), len(gzip.compress(written, mtime=0))
    return seconds


def product(side: int, repeats: int, rounds: int, stepover: bool, edtrace: bool) -> Found:
    """What a lecture measures of a product: in plain Python, recorded, in a notebook, and under edtrace."""
    case = texts.timed_product(side, repeats, stepover=stepover)
    with tempfile.TemporaryDirectory() as folder, notebooks.kernel() as kernel:
        lecture = Path(folder, "lecture_case.py")
        lecture.write_text(case.text, encoding="utf-8")

        def in_plain() -> float:
            with silence():
                module = program(lecture)
                module.main()
            return float(module.MEASURED[-1])

        def under_edtrace() -> float:
            _edtraced(case.text, Path(folder), {})
            return float(sys.modules["edtraced_case"].MEASURED[-1])

        def in_a_notebook() -> float:
            kernel.run(case.text)
            return kernel.value("MEASURED[-1]")

        ways = {"plain": in_plain, "litbook": lambda: _measured(lecture), "nbconvert": in_a_notebook}
        ways |= {"edtrace": under_edtrace} if edtrace else {}
        return {"seconds": interleaved(ways, rounds)}


def _measured(lecture: Path) -> float:
    """What the lecture's `@measure` says in the record."""
    from litbook.run.run import run

    record = run(lecture)
    one = record.by_key["one"]
    value = next(it.value for it in one.values if it.text == "seconds")
    shown = one.snapshots[value or 0]
    return float(shown.number or 0.0) if isinstance(shown, model.Scalar) else 0.0


def snapshots(kind: str, size: int, rounds: int, edtrace: bool) -> Found:
    """A tensor of `size` bytes: its sum, the same statistics with torch, a snapshot, edtrace's value, and the
    text that a notebook shows.

    `kind` is a dtype, or `strided`: every second column of a float32 matrix that is twice as large.
    """
    import torch

    from litbook.snapshot.snapshot import snapshot

    x = _tensor(torch, kind, size)
    last: Found = {}

    def read() -> float:
        start = perf_counter()
        low, high = torch.aminmax(x)
        last["read"] = (low.item(), high.item(), *(it.item() for it in torch.std_mean(_floating(torch, x))))
        return perf_counter() - start

    def once() -> float:
        start = perf_counter()
        last["sum"] = x.sum().item()
        return perf_counter() - start

    def shot() -> float:
        start = perf_counter()
        last["shot"] = snapshot(x)
        return perf_counter() - start

    def whole() -> float:
        start = perf_counter()
        value = asdict(importlib.import_module("edtrace.execute").to_serializable_value(x))
        last["edtrace bytes"] = len(json.dumps(value, indent=2))
        return perf_counter() - start

    def printed() -> float:
        start = perf_counter()
        last["text bytes"] = len(repr(x).encode())
        return perf_counter() - start

    ways = {"pass": once, "read": read, "litbook": shot, "notebook": printed}
    ways |= {"edtrace": whole} if edtrace else {}
    seconds = interleaved(ways, rounds)
    shown = json.dumps(msgspec.to_builtins(last["shot"]), ensure_ascii=False)
    bytes_ = {"bytes": len(shown.encode()), "text bytes": last["text bytes"]}
    return {"seconds": seconds, "edtrace bytes": last.get("edtrace bytes"), **bytes_}


def _tensor(torch: Any, kind: str, size: int) -> Any:
    torch.manual_seed(0)
    if kind == "strided":
        side = int((size / 2) ** 0.5) // 2 * 2
        return torch.randn(side, side)[:, ::2]
    dtype = getattr(torch, kind)
    count = size // dtype.itemsize
    if dtype.is_floating_point:
        return torch.randn(count, dtype=torch.float32).to(dtype)
    return torch.randint(-100, 100, (count,), dtype=dtype)


def _floating(torch: Any, x: Any) -> Any:
    """`std_mean` has no integers; half-precision tensors it reads as they are."""
    return x if x.dtype.is_floating_point else x.to(torch.float32)


def pages(lecture: str, rounds: int) -> Found:
    """A lecture that has run, drawn: as its pages, and by nbconvert as the page of its notebook.

    The record is read from its JSON, as for a page drawn later; the notebook is in memory. A folder has none.
    """
    from litbook.html import page
    from litbook.run.run import run

    path = Path(lecture)
    known = bibliography_of(path)
    text, last = encoding.dumps(run(path)), dict[str, Any]()

    def ours() -> float:
        start = perf_counter()
        drawn = page.pages(encoding.loads(text), known)
        seconds = perf_counter() - start
        last["bytes"] = sum(len(it.encode()) for it in drawn.values())
        last["pages"], last["largest"] = len(drawn), max(len(it.encode()) for it in drawn.values())
        return seconds

    ways = {"litbook": ours}
    if path.is_file():
        with notebooks.kernel() as kernel:
            _, notebook = kernel.run(path.read_text(encoding="utf-8"))

        def theirs() -> float:
            start = perf_counter()
            last["nbconvert bytes"] = len(notebooks.html(notebook).encode())
            return perf_counter() - start

        ways["nbconvert"] = theirs
    return {"seconds": interleaved(ways, rounds, 3, BUDGET), **last}


def growth(kind: str, size: int, rounds: int, edtrace: bool) -> Found:
    """A lecture of so many `lines`, or a loop of so many `steps`: seconds by stage, and bytes."""
    case = texts.long(size) if kind == "lines" else texts.loop(size, inspect=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        found = _grown(case, folder / "lecture_grown.py", rounds)
        if edtrace:
            last: Found = {}
            found["edtrace"] = {
                "seconds": _edtraced(case.text, folder, last),
                "record": last["edtrace bytes"],
            }
    return found


def _grown(case: texts.Case, lecture: Path, rounds: int) -> Found:
    """One lecture, stage by stage: median seconds of each, and how much it left."""
    from litbook.html import page
    from litbook.lecture import parse
    from litbook.run.run import run

    lecture.write_text(case.text, encoding="utf-8")
    stages: dict[str, list[float]] = {"plain": [], "read": [], "run": [], "write": [], "render": []}
    began = perf_counter()
    for _ in range(rounds):
        stages["plain"].append(_seconds_of_one(lecture))
        parse.parse_files.cache_clear()  # each round reads the text anew
        parse._parse_file.cache_clear()
        start = perf_counter()
        parse.read(lecture)
        read = perf_counter()
        record = run(lecture)
        ran = perf_counter()
        text = encoding.dumps(record).encode()
        written = perf_counter()
        drawn = page.pages(record)
        for name, seconds in zip(
            ("read", "run", "write", "render"),
            (read - start, ran - read, written - ran, perf_counter() - written),
            strict=True,
        ):
            stages[name].append(seconds)
        if perf_counter() - began > BUDGET:
            break
    return {
        "lines": case.text.count("\n"),
        "executed": case.lines,
        "seconds": {name: median(values) for name, values in stages.items()},
        "spread": {name: spread(values).data() for name, values in stages.items()},
        "record": len(text),
        "gzip": len(gzip.compress(text, mtime=0)),
        "pages": sum(len(it.encode()) for it in drawn.values()),
    }


CASES: dict[str, Callable[..., Found]] = {
    "loop": lambda rounds, size, small, inspect: lines(
        texts.loop(size, inspect=inspect), rounds, texts.loop(small, inspect=inspect) if small else None
    ),
    "straight": lambda rounds, size, small: lines(
        texts.straight(size), rounds, texts.straight(small) if small else None
    ),
    "recursion": lambda rounds, size, times, small: lines(
        texts.recursion(size, times), rounds, texts.recursion(small, 1) if small else None
    ),
    "tree": lambda rounds, size, small: lines(texts.tree(size), rounds, texts.tree(small) if small else None),
    "training": lambda rounds, size, small: lines(
        texts.training(size), rounds, texts.training(small) if small else None
    ),
    "product": product,
    "snapshots": snapshots,
    "pages": pages,
    "growth": growth,
}


def main(name: str, arguments: str, result: str) -> None:
    import torch  # noqa: F401  not part of what is timed

    Path(result).write_text(json.dumps(CASES[name](**json.loads(arguments))), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
