"""Contestants that take turns within one process: `python -m benchmarks.inside CASE ARGUMENTS RESULT`.

ARGUMENTS is JSON. RESULT becomes a file of pyperf, with one value a round for each contestant.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import texts
from benchmarks.one import packed, program, silence, traced
from benchmarks.results import Results, add, dump, interleaved
from litbook.record import encoding, model
from litbook.run.run import run

BUDGET = 25.0  # seconds, after which a case makes no further round than it must


@contextlib.contextmanager
def lecture(text: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lecture_case.py")
        file.write_text(text, encoding="utf-8")
        yield file


def seconds_of(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def plainly(file: Path) -> float:
    """What the section takes in plain Python, without reading and compiling the text."""
    with silence():
        return seconds_of(program(file).main)


def under_edtrace(text: str, file: Path) -> tuple[float, int]:
    """Seconds of its run, and bytes of its trace."""
    renamed = file.with_name("edtraced_case.py")
    renamed.write_text(texts.renamed(text, "edtrace"), encoding="utf-8")
    seconds, trace = traced("edtrace", renamed)
    return seconds, len(trace)


def lines(kind: str, size: int, small: int, rounds: int) -> Results:
    """Seconds of each line that runs, and bytes left; edtrace runs the `small` one of the kind, if any."""
    case, shorter = texts.KINDS[kind](size), texts.KINDS[kind](small or size)
    weights: dict[str, float] = {}
    with lecture(case.text) as file:

        def recorded() -> float:
            record = run(file)
            if problems := [error.message for _, error in record.errors()] or record.count()["fails"]:
                raise AssertionError(f"the case fails: {problems}")
            weights["litbook"] = len(encoding.dumps(record).encode())
            return record.by_key["one"].seconds / case.lines

        def edtraced() -> float:
            seconds, weight = under_edtrace(shorter.text, file)
            weights["edtrace, in proportion"] = weight * case.lines / shorter.lines
            return seconds / shorter.lines

        ways = {"plain": lambda: plainly(file) / case.lines, "litbook": recorded}
        seconds = interleaved(ways | ({"edtrace": edtraced} if small else {}), rounds, BUDGET)
    found: Results = {}
    add(found, f"each line that runs / {kind}", seconds, lines=case.lines)
    add(found, f"left by such a section / {kind}", weights, "byte")
    return found


def matmul(row: str, side: int, repeats: int, stepover: bool, edtrace: bool, rounds: int) -> Results:
    """What a lecture measures of a matmul: in plain Python, recorded, and under edtrace."""
    text = texts.timed_matmul(side, repeats, stepover=stepover)
    with lecture(text) as file:

        def recorded() -> float:
            one = run(file).by_key["one"]
            shown = one.snapshots[next(it.value for it in one.values if it.text == "seconds") or 0]
            return float(shown.number or 0.0) if isinstance(shown, model.Scalar) else 0.0

        def told(module: str, call: Callable[[], object]) -> float:
            call()
            return float(sys.modules[module].MEASURED[-1])

        ways = {"plain": lambda: told(file.stem, lambda: plainly(file)), "litbook": recorded}
        if edtrace:
            ways["edtrace"] = lambda: told("edtraced_case", lambda: under_edtrace(text, file))
        found: Results = {}
        add(found, f"a time measured inside a lecture / {row}", interleaved(ways, rounds))
    return found


def snapshots(kind: str, size: int, edtrace: bool, rounds: int) -> Results:
    """A tensor of `size` bytes: its sum, statistics by torch, a snapshot, its text, edtrace's value of it.

    `kind` is a dtype, or `strided`: every second column of a float32 matrix that is twice as large.
    """
    import msgspec
    import torch

    from litbook.snapshot.snapshot import snapshot

    torch.manual_seed(0)
    side = int((size / 2) ** 0.5) // 2 * 2
    dtype = torch.float32 if kind == "strided" else getattr(torch, kind)
    if kind == "strided":
        x = torch.randn(side, side)[:, ::2]
    elif dtype.is_floating_point:
        x = torch.randn(size // dtype.itemsize).to(dtype)
    else:
        x = torch.randint(-100, 100, (size // dtype.itemsize,), dtype=dtype)

    def statistics() -> None:
        floating = x if dtype.is_floating_point else x.to(torch.float32)  # `std_mean` has no integers
        for it in (*torch.aminmax(x), *torch.std_mean(floating)):
            it.item()

    values: dict[str, Callable[[], Any]] = {
        "torch's statistics": statistics,
        "torch's sum": lambda: x.sum().item(),
        "litbook": lambda: msgspec.to_builtins(snapshot(x)),
        "repr": lambda: repr(x),
    }
    if edtrace:
        execute = importlib.import_module("edtrace.execute")
        values["edtrace"] = lambda: asdict(execute.to_serializable_value(x))
    unit, whole = next((u, n) for u, n in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)) if size >= n)
    row, found = f"{kind}, {size // whole} {unit}", dict[str, Any]()
    ways = {who: lambda call=call: seconds_of(call) for who, call in values.items()}
    add(found, f"a snapshot of a tensor / {row}", interleaved(ways, rounds))
    left = {who: len(json.dumps(values[who](), ensure_ascii=False)) for who in list(values)[2:]}
    add(found, f"left by such a snapshot / {row}", left, "byte")
    return found


def growth(kind: str, size: int, edtrace: bool, rounds: int) -> Results:
    """A lecture of so many `lines`, or a loop of so many `iterations`: seconds by stage, and bytes."""
    from litbook.html import page
    from litbook.lecture import parse

    text = (texts.long(size) if kind == "lines" else texts.loop(size, inspect=True)).text
    row, found = f"{text.count(chr(10)) if kind == 'lines' else size:,} {kind}", dict[str, Any]()
    with lecture(text) as file:
        for _ in range(rounds):
            took = {"plain": plainly(file)}
            parse.parse_files.cache_clear()  # each round reads the text anew
            parse._parse_file.cache_clear()
            took["read"] = seconds_of(lambda: parse.read(file))
            start = perf_counter()
            record = run(file)
            ran = perf_counter()
            written = encoding.dumps(record).encode()
            took |= {"run": ran - start, "write": perf_counter() - ran}
            start = perf_counter()
            drawn = page.pages(record)
            took["draw"] = perf_counter() - start
            add(found, f"growth with {kind} / {row}", took)
        left = {"record": len(written), "compressed": packed(written)}
        left["pages"] = sum(len(it.encode()) for it in drawn.values())
        if edtrace:
            seconds, left["edtrace"] = under_edtrace(text, file)
            add(found, f"growth with {kind} / {row}", {"edtrace": seconds})
    add(found, f"growth with {kind}, left / {row}", left, "byte")
    return found


CASES: dict[str, Callable[..., Results]] = {
    "lines": lines,
    "matmul": matmul,
    "snapshots": snapshots,
    "growth": growth,
}

if __name__ == "__main__":
    dump(Path(sys.argv[3]), CASES[sys.argv[1]](**json.loads(sys.argv[2])))
